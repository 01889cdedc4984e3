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
 * Counters of the HCA's operations, in units of hardware where it has them: work requests,
 * entries, packets. They say nothing about times.
 */

#ifndef SIM_COUNT_H
#define SIM_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Every counter: its name, and what --help says of it. */
#define SIM_COUNTERS(COUNTER)                                                                  \
    COUNTER(wqes, "send work requests fetched")                                                \
    COUNTER(wqe_blocks, "basic blocks of 64 bytes of these in their queues")                   \
    COUNTER(recvs, "receives used")                                                            \
    COUNTER(umrs, "UMR work requests executed")                                                \
    COUNTER(klm_entries, "entries that these wrote to mkeys")                                  \
    COUNTER(list_bytes, "bytes of entries that were read from memory, not the work request")   \
    COUNTER(invals, "mkeys invalidated")                                                       \
    COUNTER(klm_reads, "entries of mkeys read on the way from keys to memory")                 \
    COUNTER(klm_nested, "of those, entries of mkeys that were reached through other mkeys")    \
    COUNTER(pieces, "contiguous pieces gathered or scattered; one longer than 64 KiB is some") \
    COUNTER(writes, "RDMA writes begun")                                                       \
    COUNTER(reads, "RDMA reads begun")                                                         \
    COUNTER(atomics, "atomics begun")                                                          \
    COUNTER(sends, "sends begun")                                                              \
    COUNTER(wire_bytes, "payload put on the wire; retransmissions included")                   \
    COUNTER(wire_bytes_0, "of those, the payload of writes and sends of mlx5_0")               \
    COUNTER(wire_bytes_1, "of mlx5_1")                                                         \
    COUNTER(wire_bytes_2, "of mlx5_2")                                                         \
    COUNTER(wire_bytes_3, "of mlx5_3")                                                         \
    COUNTER(packets,                                                                           \
            "packets of the path's MTU that carried it, and requests of reads and atomics")    \
    COUNTER(cqes, "completions written")                                                       \
    COUNTER(errors, "of those with an error, flushes not counted")                             \
    COUNTER(events, "events sent, of completions and asynchronous ones")                       \
    COUNTER(rnrs, "receiver-not-ready answers received")                                       \
    COUNTER(drops, "requests that no queue pair took")                                         \
    COUNTER(breaks, "connections to other processes that broke")                               \
    COUNTER(again, "requests that came a second time")                                         \
    COUNTER(mrs, "registrations created")                                                      \
    COUNTER(gpu_mrs, "of those, over memory of GPUs")                                          \
    COUNTER(gpu_late, "pieces written to memory of GPUs that were held back")                  \
    COUNTER(gpu_flushes, "flushes requested by the CUDA driver")                               \
    COUNTER(mkeys, "mkeys created")                                                            \
    COUNTER(commands, "system calls to the device")                                            \
    COUNTER(faults, "planned faults that occurred")

#define SIM_COUNTER_MEMBER(name, help) uint64_t name;

struct sim_counters {
    SIM_COUNTERS(SIM_COUNTER_MEMBER)
};

/** Payload of a device's writes and sends went on the wire. */
static inline void sim_count_wire(struct sim_counters *count, int device, uint64_t bytes)
{
    uint64_t *of[] = {&count->wire_bytes_0, &count->wire_bytes_1, &count->wire_bytes_2,
                      &count->wire_bytes_3};

    if (device < (int) (sizeof(of) / sizeof(of[0]))) {
        *of[device] += bytes;
    }
}

/** Print all of them in one line: name=value ...; or as a JSON object. */
void sim_count_print(FILE *file, long pid, const struct sim_counters *count, bool json);

/** Print their descriptions, as --help shows them. */
void sim_count_help(FILE *file);

#endif /* SIM_COUNT_H */
