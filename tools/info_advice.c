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
     "Give the users of this machine read and write access to /dev/infiniband/uverbs*, as the udev\n"
     "rules of rdma-core do. Pass these devices to containers."},
    {"cannot be opened", "not permitted",
     "Give the users of this machine read and write access to /dev/infiniband/uverbs*, as the udev\n"
     "rules of rdma-core do. Pass these devices to containers."},
    {"cannot be opened with DEVX", "",
     "Programs create mkeys through DEVX. It requires a ConnectX-5 or newer, firmware that permits\n"
     "it, Linux 5 or later (or the driver of NVIDIA), and rdma-core 36 or later."},
    {"", "annot allocate memory",
     "The usual cause is the limit of locked memory, see above: raise it where processes are\n"
     "started. Otherwise the resources of the device are exhausted: see rdma resource show."},
    {"creates no indirect mkeys", "",
     "The device or its firmware has no UMR for user programs. UMR requires a ConnectX-5 or newer;\n"
     "update the firmware. A virtual function may have fewer capabilities than its HCA."},
    {"has no queue pair that maps mkeys", "",
     "The device or its firmware has no UMR for user programs. UMR requires a ConnectX-5 or newer;\n"
     "update the firmware. A virtual function may have fewer capabilities than its HCA."},
    {"has no active port", "",
     "Check the cable and, on InfiniBand, the subnet manager (ibstat, rdma link)."},
    {"has no port", "", "Name another port: ibv_devinfo lists the ports."},
    {"no RDMA device named", "", "Name another device: ibv_devices lists the devices."},
    {"GID", "",
     "On Ethernet a port needs an IP address on its network interface; see show_gids or rdma link.\n"
     "btl_umr_gid_index selects another GID."},
    {"no completion within", "",
     "The device does not respond: look for mlx5 in the kernel log, and check that its port is up\n"
     "and can send to itself."},
    {"failed the UMR self-test", "",
     "UMR failed a check that umrddt requires, and umrddt uses the device without it. Update the\n"
     "firmware. If that does not help, please report it to the authors of umrddt, with this output\n"
     "and the output with \"--mca btl_umr_max_entries 4\"."},
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
        printf("locked memory: unlimited\n");
        return;
    }
    printf(
        "locked memory: %llu KiB per process (ulimit -l). Buffers and device queues are locked;\n"
        "  messages beyond this limit use other protocols. Set memlock to unlimited in limits.conf, and\n"
        "  LimitMEMLOCK=infinity for the service that starts jobs (slurmd, sshd, ...).\n",
        (unsigned long long) limit.rlim_cur / 1024);
}
