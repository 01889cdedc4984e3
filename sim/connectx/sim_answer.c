/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_req.h"

static struct sim_pieces scratch;

/* All up to and with psn was done by the peer. */
static void acknowledge(struct sim_qp *qp, uint32_t psn)
{
    uint32_t i;

    for (i = qp->head; i != qp->tail; i++) {
        struct sim_req *req = sim_req_at(qp, i);

        if (!req->begun || req->done || !sim_req_on_wire(req)) {
            continue;
        }
        if (!sim_psn_reached(psn, req->psn + req->packets - 1)) {
            break;
        }
        if (!sim_req_fetches(req)) {
            req->done = true;
            qp->retries_left = qp->retry_cnt;
            qp->rnr_left = qp->rnr_retry;
        }
    }
}

/* Position of the request that a packet belongs to; qp->tail if it is of none. */
static uint32_t position_of_psn(struct sim_qp *qp, uint32_t psn)
{
    uint32_t i;

    for (i = qp->head; i != qp->tail; i++) {
        const struct sim_req *req = sim_req_at(qp, i);

        if (req->begun && !req->done && sim_req_on_wire(req)
            && sim_psn_minus(psn, req->psn) < req->packets) {
            break;
        }
    }
    return i;
}

static void not_ready(struct sim_qp *qp, uint32_t position, const struct sim_frame *frame)
{
    /* IBA volume 1, table 45: hundredths of a millisecond. */
    static const uint32_t timer[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

    sim.count.rnrs++;
    if (7 != qp->rnr_retry) {
        if (0 == qp->rnr_left) {
            sim_req_fail(qp, sim_req_at(qp, position), MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR,
                         SIM_VENDOR_RNR, "the peer had no receive posted");
            return;
        }
        qp->rnr_left--;
    }
    sim_req_wait_from(qp, position,
                      (uint64_t) sim_psn_minus(frame->psn, sim_req_at(qp, position)->psn) * SIM_MTU,
                      sim_now() + 10000ull * timer[frame->syndrome & 31]);
}

static void take_data(struct sim_qp *qp, struct sim_req *req, const struct sim_frame *frame,
                      const void *payload)
{
    struct sim_ring ring = sim_req_shadow(qp);
    struct sim_access access = {qp->pd, qp->qpn, IBV_ACCESS_LOCAL_WRITE};
    const char *why;

    if (!sim_req_fetches(req) || frame->offset != req->sent
        || frame->length > req->length - req->sent) {
        return;
    }
    why = 0 == frame->length ? NULL
                             : sim_wqe_scatter(&ring, &req->wqe, &access, frame->offset,
                                               frame->length, payload, &scratch);
    req->sent += frame->length;
    if (NULL != why) {
        qp->reads_out--;
        sim_req_fail(qp, req, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, SIM_VENDOR_GATHER, why);
    } else if (0 != (frame->flags & SIM_LAST)) {
        qp->reads_out--;
        req->done = true;
        qp->retries_left = qp->retry_cnt;
    }
}

void sim_qp_answer(struct sim_qp *qp, const struct sim_frame *frame, const void *payload)
{
    struct sim_req *req;
    uint32_t position;

    if (IBV_QPS_RTS != qp->state || frame->src_qpn != qp->dest_qpn) {
        return;
    }
    if (SIM_ACK == frame->type) {
        acknowledge(qp, frame->psn);
        return;
    }
    position = position_of_psn(qp, frame->psn);
    if (position == qp->tail) {
        return;
    }
    req = sim_req_at(qp, position);
    switch (frame->type) {
    case SIM_DATA:
        take_data(qp, req, frame, payload);
        return;
    case SIM_NAK:
        acknowledge(qp, req->psn - 1);
        sim_req_fail(qp, req, frame->syndrome, SIM_VENDOR_REMOTE, "refused by the peer");
        return;
    default:
        break;
    }
    if (frame->epoch != qp->epoch || qp->waiting) {
        /* About something that goes out again anyway. */
        return;
    }
    acknowledge(qp, req->psn - 1);
    if (SIM_RNR == frame->type) {
        not_ready(qp, position, frame);
    } else {
        sim.count.drops++;
        sim_req_retry(qp, position, "the peer's queue pair does not take it");
    }
}
