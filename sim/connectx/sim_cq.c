/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cq.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "sim_event.h"

/* The doorbell record of a CQ, and the bits of an arm request. */
enum {
    DB_CONSUMER = 0,
    DB_ARM = 1,
    ARM_SOLICITED = 1 << 24,
};

void sim_cq_fail(struct sim_cq *cq)
{
    if (!cq->overrun) {
        cq->overrun = true;
        sim_event_send(cq->super.ctx, IBV_EVENT_CQ_ERR, cq->user_handle, &cq->events);
    }
}

bool sim_cq_write(struct sim_cq *cq, const struct sim_cqe *what)
{
    uint32_t consumer = be32toh(cq->db[DB_CONSUMER]) & 0xffffff;
    uint32_t used = (cq->producer - consumer) & 0xffffff;
    struct mlx5_cqe64 *cqe;
    uint8_t owner;

    if (cq->overrun || used >= cq->size) {
        if (!cq->overrun) {
            sim_log(1, "CQ 0x%x is overrun", cq->cqn);
            sim_cq_fail(cq);
        }
        return false;
    }
    cqe = (struct mlx5_cqe64 *) (cq->buffer + (cq->producer & (cq->size - 1)) * cq->cqe_bytes
                                 + (cq->cqe_bytes - 64));
    owner = 0 != (cq->producer & cq->size);

    memset(cqe, 0, offsetof(struct mlx5_cqe64, op_own));
    cqe->srqn_uidx = htobe32(what->uidx);
    cqe->wqe_counter = htobe16(what->wqe_counter);
    cqe->sop_drop_qpn = htobe32((uint32_t) what->wqe_opcode << 24 | what->qpn);
    if (MLX5_CQE_REQ_ERR == what->opcode || MLX5_CQE_RESP_ERR == what->opcode) {
        struct mlx5_err_cqe *err = (struct mlx5_err_cqe *) cqe;

        err->syndrome = what->syndrome;
        err->vendor_err_synd = what->vendor;
        if (MLX5_CQE_SYNDROME_WR_FLUSH_ERR != what->syndrome) {
            sim.count.errors++;
        }
    } else {
        cqe->byte_cnt = htobe32(what->bytes);
        cqe->imm_inval_pkey = what->imm;
        cqe->flags_rqpn = htobe32(what->src_qpn);
        cqe->timestamp = htobe64(sim_now());
    }
    /* The owner bit marks the completion as complete for the poller. */
    atomic_thread_fence(memory_order_release);
    *(volatile uint8_t *) &cqe->op_own = (uint8_t) (what->opcode << 4 | owner);
    cq->producer = (cq->producer + 1) & 0xffffff;
    if (what->solicited || MLX5_CQE_REQ_ERR == what->opcode || MLX5_CQE_RESP_ERR == what->opcode) {
        cq->producer_solicited = cq->producer;
    }
    sim.count.cqes++;
    sim_cq_events(cq);
    return true;
}

void sim_cq_events(struct sim_cq *cq)
{
    struct ib_uverbs_comp_event_desc event = {.cq_handle = cq->user_handle};
    uint32_t arm;
    uint32_t upto;

    if (NULL == cq->channel) {
        return;
    }
    arm = be32toh(cq->db[DB_ARM]);
    if (UINT32_MAX == arm || arm >> 28 == cq->armed_sn) {
        return;
    }
    upto = 0 != (arm & ARM_SOLICITED) ? cq->producer_solicited : cq->producer;
    /* Is there a completion newer than the last one consumed at the request? */
    if (0 == ((upto - (arm & 0xffffff)) & 0xffffff)
        || 0 != ((upto - (arm & 0xffffff)) & 0x800000)) {
        return;
    }
    if (sizeof(event) == write(cq->channel->fd[1], &event, sizeof(event))) {
        cq->armed_sn = arm >> 28;
        cq->events_written++;
        sim.count.events++;
    }
}
