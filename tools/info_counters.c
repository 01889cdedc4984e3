/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "info_counters.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

/** The files in hw_counters and counters. */
static const struct {
    const char *directory;
    const char *name;
    const char *meaning;
} table[] = {
    {"hw_counters", "out_of_sequence", "packets came out of order or not"},
    {"hw_counters", "packet_seq_err", "the peer reported lost packets"},
    {"hw_counters", "implied_nak_seq_err", "responses were lost"},
    {"hw_counters", "local_ack_timeout_err", "no answer in time: loss, no route"},
    {"hw_counters", "rnr_nak_retry_err", "the peer had no receive posted"},
    {"hw_counters", "out_of_buffer", "no receive was posted"},
    {"hw_counters", "duplicate_request", "requests came twice"},
    {"hw_counters", "roce_adp_retrans", "adaptive retransmissions"},
    {"hw_counters", "roce_adp_retrans_to", "the same, after a timeout"},
    {"hw_counters", "roce_slow_restart", "slow restarts after a timeout"},
    {"hw_counters", "rx_icrc_encapsulated", "packets with a wrong checksum"},
    {"hw_counters", "np_ecn_marked_roce_packets", "congestion, marked by a switch"},
    {"hw_counters", "rp_cnp_handled", "congestion: asked to slow down"},
    {"hw_counters", "req_remote_access_errors", "the peer refused a key"},
    {"hw_counters", "resp_remote_access_errors", "this port refused a key"},
    {"hw_counters", "resp_local_length_error", "a message exceeded its receive"},
    {"hw_counters", "req_cqe_error", "requests ended with an error"},
    {"hw_counters", "resp_cqe_error", "receives ended with an error"},
    {"counters", "port_xmit_wait", "congestion: the port had to wait"},
    {"counters", "port_xmit_discards", "the port dropped packets"},
    {"counters", "port_rcv_errors", "damaged packets: cable, connector"},
    {"counters", "port_rcv_remote_physical_errors", "damaged packets before a switch"},
    {"counters", "symbol_error", "bit errors: cable or connector"},
    {"counters", "link_error_recovery", "the link recovered from errors"},
    {"counters", "link_downed", "the link was down"},
    {"counters", "local_link_integrity_errors", "too many bit errors"},
    {"counters", "excessive_buffer_overrun_errors", "the port's buffers overflowed"},
};

_Static_assert(INFO_COUNTERS >= sizeof(table) / sizeof(table[0]), "all have a value");

enum {
    COUNT = sizeof(table) / sizeof(table[0])
};

const char *info_counters_name(int index)
{
    return 0 <= index && COUNT > index ? table[index].name : NULL;
}

const char *info_counters_meaning(int index)
{
    return 0 <= index && COUNT > index ? table[index].meaning : NULL;
}

int info_counters_read(const char *directory, info_counters_t *counters)
{
    int available = 0;

    for (int i = 0; i < INFO_COUNTERS; ++i) {
        char path[PATH_MAX];
        FILE *file = NULL;

        counters->values[i] = -1;
        if (COUNT > i
            && (int) sizeof(path) > snprintf(path, sizeof(path), "%s/%s/%s", directory,
                                             table[i].directory, table[i].name)) {
            file = fopen(path, "re");
        }
        if (NULL != file) {
            if (1 != fscanf(file, "%lld", &counters->values[i])) {
                /* "N/A (no PMA)" */
                counters->values[i] = -1;
            }
            fclose(file);
        }
        available += 0 <= counters->values[i] ? 1 : 0;
    }
    return available;
}

int info_counters_of(const char *port, info_counters_t *counters)
{
    char name[64], directory[PATH_MAX] = "";
    unsigned number = 1;
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    if (1 > sscanf(port, "%63[^:]:%u", name, &number)) {
        name[0] = '\0';
    }
    for (int i = 0; NULL != list && i < count; ++i) {
        if (0 == strcmp(name, ibv_get_device_name(list[i]))) {
            snprintf(directory, sizeof(directory), "%s/ports/%u", list[i]->ibdev_path, number);
        }
    }
    if (NULL != list) {
        ibv_free_device_list(list);
    }
    return info_counters_read(directory, counters);
}

long long info_counters_growth(const info_counters_t *before, const info_counters_t *after,
                               int index)
{
    long long was = before->values[index], is = after->values[index];

    return 0 > was || is <= was ? 0 : is - was;
}
