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
 * Send work requests in flight: shared by the files that send them, retransmit them and complete
 * them have in common.
 */

#ifndef SIM_REQ_H
#define SIM_REQ_H

#include "sim_qp.h"

/** Vendor error codes of our own. */
enum {
    SIM_VENDOR_BAD_WQE = 0x51,
    SIM_VENDOR_OVERFLOW = 0x52,
    SIM_VENDOR_GATHER = 0x53,
    SIM_VENDOR_UMR = 0x54,
    SIM_VENDOR_RETRY = 0x81,
    SIM_VENDOR_RNR = 0x82,
    SIM_VENDOR_REMOTE = 0x88,
    SIM_VENDOR_INJECTED = 0x99,
    SIM_VENDOR_FLUSH = 0xf5,
};

static inline struct sim_req *sim_req_at(struct sim_qp *qp, uint32_t position)
{
    return &qp->req[position & (qp->sq_count - 1)];
}

static inline struct sim_ring sim_req_shadow(const struct sim_qp *qp)
{
    struct sim_ring ring = {qp->shadow, qp->sq_count};

    return ring;
}

/* The wire carries it, and the peer answers it. */
static inline bool sim_req_on_wire(const struct sim_req *req)
{
    return MLX5_OPCODE_UMR != req->wqe.opcode && MLX5_OPCODE_NOP != req->wqe.opcode;
}

static inline bool sim_req_is_atomic(const struct sim_req *req)
{
    return MLX5_OPCODE_ATOMIC_CS == req->wqe.opcode || MLX5_OPCODE_ATOMIC_FA == req->wqe.opcode;
}

/* The peer answers it with data. */
static inline bool sim_req_fetches(const struct sim_req *req)
{
    return MLX5_OPCODE_RDMA_READ == req->wqe.opcode || sim_req_is_atomic(req);
}

static inline uint32_t sim_psn_minus(uint32_t a, uint32_t b)
{
    return (a - b) & 0xffffff;
}

/* a is not behind b. */
static inline bool sim_psn_reached(uint32_t a, uint32_t b)
{
    return sim_psn_minus(a, b) < 0x800000;
}

/** Free the memory for requests of a queue pair that has none. */
void sim_req_rings_give(struct sim_qp *qp);

/**
 * The request is finished, with an error. Nothing behind it goes out any more; what is before it
 * still completes.
 */
void sim_req_fail(struct sim_qp *qp, struct sim_req *req, uint8_t syndrome, uint8_t vendor,
                  const char *why);

/** Position of the oldest request that still waits for an answer; qp->tail if there is none. */
uint32_t sim_req_oldest(struct sim_qp *qp);

/**
 * The requests from a position on are to go out again later, the first from where the peer wants
 * it. Those before it were taken; reads among them go on being answered.
 */
void sim_req_wait_from(struct sim_qp *qp, uint32_t position, uint64_t sent, uint64_t until);

/** The wait is over. Answers to what went out before are no longer of interest. */
void sim_req_go_on(struct sim_qp *qp);

/** The request at a position was not accepted: retry after the timeout, as often as allowed. */
void sim_req_retry(struct sim_qp *qp, uint32_t position, const char *why);

/** If the connection broke since requests went out on it, their answers will never come. */
void sim_req_look_for_breaks(struct sim_qp *qp);

#endif /* SIM_REQ_H */
