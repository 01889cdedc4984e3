/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_receive.h"

#include <endian.h>
#include <string.h>

#include "sim_event.h"
#include "sim_gpu.h"
#include "sim_srq.h"

#define INVALID_LKEY 0x100 /* ends the scatter list of a receive */

static struct sim_pieces scratch;

static bool posted(const struct sim_qp *qp)
{
    bool some = (uint16_t) be32toh(qp->db[0]) != qp->rq_next;

    atomic_thread_fence(memory_order_acquire);
    return 0 < qp->rq_count && some;
}

bool sim_receive_there(struct sim_qp *qp)
{
    return qp->rq_held || (NULL != qp->srq ? 0 < sim_srq_posted(qp->srq) : posted(qp));
}

bool sim_receive_take(struct sim_qp *qp)
{
    int index;

    if (qp->rq_held) {
        return true;
    }
    if (NULL == qp->srq) {
        qp->rq_index = qp->rq_next++;
    } else {
        index = sim_srq_take(qp->srq);
        if (0 > index) {
            return false;
        }
        qp->rq_index = (uint16_t) index;
    }
    qp->rq_held = true;
    return true;
}

static const uint8_t *segments(const struct sim_qp *qp, uint32_t *entries)
{
    if (NULL != qp->srq) {
        return sim_srq_segments(qp->srq, qp->rq_index, entries);
    }
    *entries = (1u << qp->rq_shift) / 16;
    return qp->rq + ((size_t) (qp->rq_index & (qp->rq_count - 1)) << qp->rq_shift);
}

uint8_t sim_receive_scatter(struct sim_qp *qp, uint32_t offset, uint32_t length,
                            const void *payload)
{
    struct sim_access access = {NULL != qp->srq ? qp->srq->pd : qp->pd, 0, IBV_ACCESS_LOCAL_WRITE};
    uint32_t entries;
    const uint8_t *wqe = segments(qp, &entries);
    uint32_t i;

    sim_pieces_start(&scratch, offset);
    for (i = 0; i < entries && 0 < length; i++) {
        struct mlx5_wqe_data_seg seg;
        uint32_t there;
        uint32_t part;

        memcpy(&seg, wqe + i * sizeof(seg), sizeof(seg));
        there = be32toh(seg.byte_count);
        if (0 == there && INVALID_LKEY == be32toh(seg.lkey)) {
            break;
        }
        if (offset >= there) {
            offset -= there;
            continue;
        }
        part = there - offset < length ? there - offset : length;
        if (NULL
            != sim_key_pieces(&access, be32toh(seg.lkey), be64toh(seg.addr) + offset, part,
                              &scratch)) {
            return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
        }
        offset = 0;
        length -= part;
    }
    if (0 < length) {
        return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    if (0 != sim_gpu_scatter(&scratch, payload)) {
        return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    }
    sim_pieces_count(&scratch);
    return 0;
}

void sim_receive_complete(struct sim_qp *qp, struct sim_cqe *cqe)
{
    cqe->wqe_counter = qp->rq_index;
    cqe->qpn = qp->qpn;
    cqe->uidx = qp->uidx;
    cqe->src_qpn = qp->dest_qpn;
    sim.count.recvs += MLX5_CQE_SYNDROME_WR_FLUSH_ERR == cqe->syndrome ? 0 : 1;
    qp->rq_held = false;
    if (!sim_cq_write(qp->recv_cq, cqe)) {
        sim_qp_fatal(qp);
    }
}

void sim_receive_fail(struct sim_qp *qp, uint8_t syndrome)
{
    struct sim_cqe cqe = {0};

    cqe.opcode = MLX5_CQE_RESP_ERR;
    cqe.syndrome = syndrome;
    sim_receive_complete(qp, &cqe);
}

bool sim_qp_flush_receives(struct sim_qp *qp)
{
    bool did = false;

    /* Those of a shared queue stay there, for others. */
    while (qp->rq_held || (NULL == qp->srq && posted(qp))) {
        (void) sim_receive_take(qp);
        sim_receive_fail(qp, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
        did = true;
    }
    if (NULL != qp->srq && !qp->last_reported) {
        qp->last_reported = true;
        sim_event_send(qp->super.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp->user_handle, &qp->events);
    }
    return did;
}
