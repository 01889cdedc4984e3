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
 * Send work requests as libmlx5 writes them: segments of 16 bytes in basic blocks of 64.
 */

#ifndef SIM_WQE_H
#define SIM_WQE_H

#include "sim.h"
#include "sim_key.h"

#define SIM_BB        64
#define SIM_WQE_BYTES 1024 /**< the largest */

/** The head of a work request, decoded. */
struct sim_wqe {
    uint16_t index; /**< basic block it starts at */
    uint8_t opcode; /**< MLX5_OPCODE_* */
    uint8_t blocks; /**< basic blocks it takes */
    uint16_t bytes;
    bool signaled;
    bool solicited;
    bool fence; /**< waits for all before it */
    __be32 imm; /**< or the mkey of a UMR, or the key that a send invalidates */
    uint64_t raddr;
    uint32_t rkey;
    uint16_t data;    /**< offset of the first data segment */
    uint64_t swap;    /**< of an atomic: the value to swap in, or to add */
    uint64_t compare; /**< of a compare and swap: with what */
};

/** A ring of basic blocks. */
struct sim_ring {
    const uint8_t *base;
    uint32_t blocks;
};

/** Copy bytes of a work request out of the ring, across its end if need be. */
void sim_ring_read(const struct sim_ring *ring, uint16_t index, uint32_t offset, void *to,
                   uint32_t bytes);

/**
 * Decode the head of the work request at a basic block.
 *
 * @retval NULL  fine
 * @retval text  the reason why no HCA would accept it
 */
const char *sim_wqe_decode(const struct sim_ring *ring, uint16_t index, uint32_t qpn,
                           struct sim_wqe *wqe);

/** The bytes that the data segments add up to. @return as sim_wqe_decode */
const char *sim_wqe_length(const struct sim_ring *ring, const struct sim_wqe *wqe,
                           uint64_t *length);

/**
 * Copy bytes [offset, offset + length) of the data segments.
 *
 * @param[in] pieces  scratch
 *
 * @retval NULL or why not
 */
const char *sim_wqe_gather(const struct sim_ring *ring, const struct sim_wqe *wqe,
                           const struct sim_access *access, uint64_t offset, uint32_t length,
                           void *to, struct sim_pieces *pieces);

/** The opposite: bytes go where the data segments say (RDMA read). */
const char *sim_wqe_scatter(const struct sim_ring *ring, const struct sim_wqe *wqe,
                            const struct sim_access *access, uint64_t offset, uint32_t length,
                            const void *from, struct sim_pieces *pieces);

/**
 * Execute a UMR: a new layout for its mkey, pending.
 *
 * @param[out] mkey  the mkey's index
 *
 * @retval NULL or why not
 */
const char *sim_wqe_umr(const struct sim_ring *ring, const struct sim_wqe *wqe,
                        const struct sim_access *access, uint32_t *mkey);

#endif /* SIM_WQE_H */
