/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_req.h"

void sim_req_fail(struct sim_qp *qp, struct sim_req *req, uint8_t syndrome, uint8_t vendor,
                  const char *why)
{
    uint32_t i;

    if (req->done) {
        return;
    }
    sim_log(1, "QP 0x%x: work request %u (opcode 0x%x): %s", qp->qpn, req->wqe.index,
            req->wqe.opcode, why);
    req->done = true;
    req->syndrome = syndrome;
    req->vendor = vendor;
    for (i = qp->head; i != qp->send; i++) {
        if (sim_req_at(qp, i) == req) {
            qp->send = i;
            break;
        }
    }
}

static uint64_t ack_timeout(const struct sim_qp *qp)
{
    uint64_t ns = 0 == qp->timeout ? 20000000 : 4096ull << qp->timeout;

    /* Bounds of reasonable values between processes. */
    if (ns < 1000000) {
        ns = 1000000;
    }
    return ns < 4000000000ull ? ns : 4000000000ull;
}

uint32_t sim_req_oldest(struct sim_qp *qp)
{
    uint32_t i;

    for (i = qp->head; i != qp->tail; i++) {
        const struct sim_req *req = sim_req_at(qp, i);

        if (!req->done && sim_req_on_wire(req)) {
            break;
        }
    }
    return i;
}

void sim_req_wait_from(struct sim_qp *qp, uint32_t position, uint64_t sent, uint64_t until)
{
    uint32_t i;

    for (i = position; i != qp->tail; i++) {
        sim_req_at(qp, i)->sent = 0;
    }
    sim_req_at(qp, position)->sent = sent;
    qp->resume = position;
    qp->waiting = true;
    qp->wait_until = until;
}

void sim_req_go_on(struct sim_qp *qp)
{
    uint32_t i;

    qp->waiting = false;
    qp->epoch++;
    qp->send = qp->resume;
    qp->reads_out = 0;
    for (i = qp->head; i != qp->send; i++) {
        const struct sim_req *req = sim_req_at(qp, i);

        if (!req->done && sim_req_fetches(req)) {
            qp->reads_out++;
        }
    }
}

void sim_req_retry(struct sim_qp *qp, uint32_t position, const char *why)
{
    if (qp->waiting || position == qp->tail) {
        return;
    }
    if (0 != qp->timeout) {
        if (0 == qp->retries_left) {
            sim_req_fail(qp, sim_req_at(qp, position), MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
                         SIM_VENDOR_RETRY, why);
            return;
        }
        qp->retries_left--;
    }
    sim_req_wait_from(qp, position, 0, sim_now() + ack_timeout(qp));
}

void sim_req_look_for_breaks(struct sim_qp *qp)
{
    uint32_t breaks = sim_wire_breaks(qp->peer);
    uint32_t oldest;

    if (breaks == qp->conn_breaks) {
        return;
    }
    qp->conn_breaks = breaks;
    oldest = sim_req_oldest(qp);
    if (oldest == qp->tail) {
        return;
    }
    if (sim_wire_absent(qp->peer)) {
        sim_req_retry(qp, oldest, "the peer is gone");
    } else if (oldest != qp->send || 0 < sim_req_at(qp, oldest)->sent) {
        qp->waiting = false;
        sim_req_retry(qp, oldest, "the connection to the peer broke");
    }
}
