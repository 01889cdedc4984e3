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
 * RC queue pairs, and the credits of a send queue.
 */

#ifndef MCA_BTL_UMR_QP_H
#define MCA_BTL_UMR_QP_H

#include "opal/mca/btl/umr/btl_umr_device.h"

BEGIN_C_DECLS

/* Work request ids: kind and index. */
#define MCA_BTL_UMR_WR_RECEIVE        (1ull << 63)
#define MCA_BTL_UMR_WR_ID(index, seq) (((uint64_t) (index) << 32) | (uint32_t) (seq))
#define MCA_BTL_UMR_WR_INDEX(wr_id)   ((uint32_t) (((wr_id) & ~MCA_BTL_UMR_WR_RECEIVE) >> 32))
#define MCA_BTL_UMR_WR_SEQ(wr_id)     ((uint32_t) (wr_id))

/**
 * A send queue with its credits. libmlx5 does not detect an overflow, so work requests are posted
 * only if there is room. Work requests are numbered from 1. A completion covers all numbers up to
 * its own.
 */
typedef struct mca_btl_umr_sq_t {
    struct ibv_qp *qp;
    struct ibv_qp_ex *qpx;
    struct mlx5dv_qp_ex *mqpx;
    uint32_t depth;
    uint32_t posted;    /**< number of the last posted request */
    uint32_t done;      /**< number of the last request known to be complete */
    uint32_t signalled; /**< number of the last signalled request */
} mca_btl_umr_sq_t;

static inline uint32_t mca_btl_umr_sq_room(const mca_btl_umr_sq_t *sq)
{
    return sq->depth - (sq->posted - sq->done);
}

/** True if number @p seq is complete. */
static inline bool mca_btl_umr_sq_is_done(const mca_btl_umr_sq_t *sq, uint32_t seq)
{
    return 0 <= (int32_t) (sq->done - seq);
}

static inline void mca_btl_umr_sq_complete(mca_btl_umr_sq_t *sq, uint32_t seq)
{
    if (!mca_btl_umr_sq_is_done(sq, seq)) {
        sq->done = seq;
    }
}

/**
 * Take the next number. Signalled are: requests that a caller waits for (@p wanted), one in half a
 * queue so that credits come back, and the one that fills the queue. So the last posted request
 * always gives a completion, at the latest when it is flushed.
 *
 * @param[out] seq  its number
 *
 * @return IBV_SEND_SIGNALED or 0
 */
static inline unsigned int mca_btl_umr_sq_next(mca_btl_umr_sq_t *sq, bool wanted, uint32_t *seq)
{
    *seq = ++sq->posted;
    if (wanted || 0 == mca_btl_umr_sq_room(sq) || sq->posted - sq->signalled >= sq->depth / 2) {
        sq->signalled = sq->posted;
        return IBV_SEND_SIGNALED;
    }
    return 0;
}

/** The use of a queue pair. */
typedef enum mca_btl_umr_qp_kind_t {
    MCA_BTL_UMR_QP_DATA, /**< writes; small slots */
    MCA_BTL_UMR_QP_UMR,  /**< mappings; a slot holds a whole list */
    MCA_BTL_UMR_QP_RDMA  /**< writes, reads and atomics of both sides; no receives */
} mca_btl_umr_qp_kind_t;

/** Destination of a queue pair's packets. */
typedef struct mca_btl_umr_route_t {
    uint16_t lid;
    union ibv_gid gid;
    uint8_t mtu;       /**< enum ibv_mtu */
    uint8_t reads_in;  /**< concurrent reads and atomics of the peer; 0: 1 */
    uint8_t reads_out; /**< concurrent reads and atomics to the peer; 0: 1 */
} mca_btl_umr_route_t;

/**
 * Create an RC queue pair and bring it to INIT.
 *
 * @param[in,out] inline_bytes  room for a list in a slot (UMR only): requested, obtained
 *
 * @return 0 or errno
 */
int mca_btl_umr_qp_create(mca_btl_umr_hca_t *hca, mca_btl_umr_qp_kind_t kind, struct ibv_cq *cq,
                          uint32_t sq_depth, uint32_t rq_depth, uint32_t *inline_bytes,
                          mca_btl_umr_sq_t *sq);

/** Bring to RTR and RTS. @return 0 or errno */
int mca_btl_umr_qp_connect(const mca_btl_umr_device_t *device, struct ibv_qp *qp,
                           const mca_btl_umr_route_t *route, uint32_t peer_qpn, uint32_t peer_psn,
                           uint32_t psn);

/** The route to this port itself (loopback). */
void mca_btl_umr_qp_route_self(const mca_btl_umr_device_t *device, mca_btl_umr_route_t *route);

/** Connect a queue pair to itself. @return 0 or errno */
int mca_btl_umr_qp_connect_self(const mca_btl_umr_device_t *device, struct ibv_qp *qp);

/**
 * Post a write without bytes, which needs no key: its completion shows that the other side answers.
 * The send queue must have a free slot.
 *
 * @param[in] index  for the wr_id
 *
 * @return 0 or errno
 */
int mca_btl_umr_qp_probe(mca_btl_umr_sq_t *sq, uint32_t index);

/** Post @p count receives without a buffer, with this wr_id. @return 0 or errno */
int mca_btl_umr_qp_post_receives(struct ibv_qp *qp, uint64_t wr_id, uint32_t count);

/** Destroy; logs an error once. NULL is allowed. */
void mca_btl_umr_qp_destroy(mca_btl_umr_hca_t *hca, mca_btl_umr_sq_t *sq);

/** The next power of two: libmlx5 rounds queue sizes up like this. */
static inline uint64_t mca_btl_umr_round_up(uint64_t n)
{
    uint64_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

/** Memory that libmlx5 allocated for a queue pair, without its completions; bytes. */
uint64_t mca_btl_umr_qp_bytes(struct ibv_qp *qp);

/** The same for a completion queue. */
uint64_t mca_btl_umr_cq_bytes(struct ibv_cq *cq);

END_C_DECLS

#endif /* MCA_BTL_UMR_QP_H */
