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
 * Shared receive queues: receives that are taken by whichever queue pair needs one. libmlx5 links
 * them, each naming the one after it; the HCA follows the links.
 */

#ifndef SIM_SRQ_H
#define SIM_SRQ_H

#include "sim.h"

struct sim_srq {
    struct sim_obj super;
    uint64_t user_handle;
    uint32_t srqn;
    struct sim_pd *pd; /**< of the receives' keys; the queue pair may have another one */
    uint8_t *buffer;
    uint32_t count; /**< receives that the buffer has room for, a power of 2 */
    uint32_t shift; /**< log2 of the bytes of each */
    uint32_t max_wr;
    uint32_t max_sge;
    volatile __be32 *db; /**< how many were ever posted, modulo 65,536 */
    uint16_t taken;      /**< how many were ever taken */
    uint16_t head;       /**< the next to take */
    uint32_t limit;      /**< an event is due when fewer are left; 0: none is wanted */
    bool broken;         /**< the links make no sense */
    uint32_t events;     /**< asynchronous events sent */
};

/** Receives that are there to be taken. */
uint32_t sim_srq_posted(struct sim_srq *srq);

/** Take the first, of at least one. @return its index, or -1 if the queue is broken now */
int sim_srq_take(struct sim_srq *srq);

/** The data segments of a receive, and how many fit. */
const uint8_t *sim_srq_segments(const struct sim_srq *srq, uint32_t index, uint32_t *entries);

/** An event is wanted when fewer than so many are left, which may be now. */
void sim_srq_arm(struct sim_srq *srq, uint32_t limit);

#endif /* SIM_SRQ_H */
