/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * Advice for administrators.
 */

#include "info.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/** The first one whose two texts are in the reason. */
static const struct {
    const char *what; /**< was being done */
    const char *why;  /**< it failed; of strerror */
    const char *advice;
} table[] = {
    {"cannot be opened", "ermission denied",
     "Let the users of this machine read and write /dev/infiniband/uverbs* (rdma-core's udev rules\n"
     "do), and hand these devices to containers."},
    {"cannot be opened", "not permitted",
     "Let the users of this machine read and write /dev/infiniband/uverbs* (rdma-core's udev rules\n"
     "do), and hand these devices to containers."},
    {"cannot be opened with DEVX", "",
     "DEVX lets programs make keys. It needs a ConnectX-5 or newer, firmware that allows it, Linux 5\n"
     "or later (or NVIDIA's own driver), and rdma-core 31 or later."},
    {"", "annot allocate memory",
     "Most often this is the limit of locked memory, see above: raise it where processes are\n"
     "started. Else the device has no more room: see who uses it (rdma resource show)."},
    {"creates no indirect mkeys", "",
     "The device or its firmware has no UMR for user programs. It takes a ConnectX-5 or newer; bring\n"
     "its firmware up to date. A virtual function may be forbidden what its HCA can."},
    {"has no queue pair that maps mkeys", "",
     "The device or its firmware has no UMR for user programs. It takes a ConnectX-5 or newer; bring\n"
     "its firmware up to date. A virtual function may be forbidden what its HCA can."},
    {"has no active port", "",
     "See to its cable, and on InfiniBand to the subnet manager (ibstat, rdma link)."},
    {"has no port", "", "Name another port: ibv_devinfo shows which there are."},
    {"no RDMA device named", "", "Name another device: ibv_devices shows which there are."},
    {"GID", "",
     "On Ethernet a port needs an IP address on its network interface; show_gids or rdma link show\n"
     "what it has. btl_umr_gid_index chooses another GID."},
    {"no completion within", "",
     "The device does not answer: look for mlx5 in the kernel's log, and see that its port is up\n"
     "and may send to itself."},
    {"failed the UMR self-test", "",
     "The device does not do what umrddt needs, and is not used, so that nothing can be harmed.\n"
     "Bring the firmware up to date. If that does not help, the authors of umrddt would like to\n"
     "hear of it; please tell them all of this and \"--mca btl_umr_max_entries 4\" tried as well."},
};

const char *info_advice(const char *reason)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        if (NULL != strstr(reason, table[i].what) && NULL != strstr(reason, table[i].why)) {
            return table[i].advice;
        }
    }
    return NULL;
}

void info_advise(const char *reason)
{
    const char *line = info_advice(reason);
    const char *lead = "  what to do: ";

    while (NULL != line) {
        const char *end = strchr(line, '\n');

        printf("%s%.*s\n", lead, NULL == end ? (int) strlen(line) : (int) (end - line), line);
        line = NULL == end ? NULL : end + 1;
        lead = "              ";
    }
}

void info_locked_memory(void)
{
    struct rlimit limit;

    if (0 != getrlimit(RLIMIT_MEMLOCK, &limit)) {
        return;
    }
    if (info_json) {
        if (RLIM_INFINITY == limit.rlim_cur) {
            info_json_text("locked_memory_bytes", NULL);
        } else {
            info_json_number("locked_memory_bytes", (long long) limit.rlim_cur);
        }
        return;
    }
    if (RLIM_INFINITY == limit.rlim_cur) {
        printf("locked memory: unlimited, as it should be\n");
        return;
    }
    printf(
        "locked memory: %llu KiB a process (ulimit -l). Messages and device queues are locked; what\n"
        "  goes beyond this takes another way. Set memlock to unlimited in limits.conf, and\n"
        "  LimitMEMLOCK=infinity for the service that starts jobs (slurmd, sshd, ...).\n",
        (unsigned long long) limit.rlim_cur / 1024);
}
