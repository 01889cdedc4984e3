/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <errno.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "sim_event.h"
#include "sim_srq.h"

/* The smallest power of 2 that is not below n, as its logarithm. */
static uint32_t log2_up(uint32_t n)
{
    uint32_t log = 0;

    while (1ull << log < n) {
        log++;
    }
    return log;
}

int sim_cmd_create_srq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_create_srq request;
    struct ib_uverbs_create_srq_resp resp = {0};
    struct mlx5_ib_create_srq driver;
    struct mlx5_ib_create_srq_resp driver_resp = {0};
    struct sim_srq *srq;
    struct sim_pd *pd;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    sim_copy(&driver, sizeof(driver), call->driver_in, call->driver_in_size);
    pd = sim_obj_get(ctx, SIM_PD, request.pd_handle);
    /* What libmlx5 has made of max_wr and max_sge fills its buffer. */
    if (NULL == pd || 0 == driver.buf_addr || 0 == driver.db_addr || 0 != driver.flags
        || 0 == request.max_wr || request.max_wr >= sim.conf.max_wr || 31 < request.max_sge
        || request.srq_limit > request.max_wr) {
        return EINVAL;
    }
    if (sim.srqs_now >= sim.conf.srqs) {
        return 0 == sim.conf.srqs ? EOPNOTSUPP : ENOMEM;
    }
    srq = sim_obj_new(ctx, SIM_SRQ, sizeof(*srq));
    if (NULL == srq) {
        return ENOMEM;
    }
    srq->user_handle = request.user_handle;
    srq->srqn = 0x800 + srq->super.handle;
    srq->pd = pd;
    pd->super.uses++;
    srq->buffer = (uint8_t *) (uintptr_t) driver.buf_addr;
    srq->db = (volatile __be32 *) (uintptr_t) driver.db_addr;
    srq->count = 1u << log2_up(request.max_wr + 1);
    srq->shift = log2_up(32 < 16 + 16 * request.max_sge ? 16 + 16 * request.max_sge : 32);
    srq->max_wr = request.max_wr;
    srq->max_sge = request.max_sge;
    srq->limit = request.srq_limit;
    sim.srqs_now++;
    resp.srq_handle = srq->super.handle;
    resp.max_wr = srq->max_wr;
    resp.max_sge = srq->max_sge;
    resp.srqn = srq->srqn;
    driver_resp.srqn = srq->srqn;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    sim_copy(call->driver_out, call->driver_out_size, &driver_resp, sizeof(driver_resp));
    sim_log(2, "SRQ 0x%x: %u receives of %u segments", srq->srqn, srq->max_wr, srq->max_sge);
    return 0;
}

int sim_cmd_modify_srq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_modify_srq request;
    struct sim_srq *srq;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    srq = sim_obj_get(ctx, SIM_SRQ, request.srq_handle);
    /* As with real ones, the size stays. */
    if (NULL == srq || 0 != (request.attr_mask & ~(unsigned) IBV_SRQ_LIMIT)) {
        return EINVAL;
    }
    if (0 != (request.attr_mask & IBV_SRQ_LIMIT)) {
        if (request.srq_limit >= srq->count) {
            return EINVAL;
        }
        sim_srq_arm(srq, request.srq_limit);
    }
    return 0;
}

int sim_cmd_query_srq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_query_srq request;
    struct ib_uverbs_query_srq_resp resp = {0};
    struct sim_srq *srq;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    srq = sim_obj_get(ctx, SIM_SRQ, request.srq_handle);
    if (NULL == srq) {
        return EINVAL;
    }
    resp.max_wr = srq->max_wr;
    resp.max_sge = srq->max_sge;
    resp.srq_limit = srq->limit;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

void sim_srq_destroy(struct sim_obj *obj)
{
    struct sim_srq *srq = (struct sim_srq *) obj;

    srq->pd->super.uses--;
    sim.srqs_now--;
    sim_obj_free(srq);
}

int sim_cmd_destroy_srq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_destroy_srq request;
    struct ib_uverbs_destroy_srq_resp resp = {0};
    struct sim_srq *srq;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    srq = sim_obj_get(ctx, SIM_SRQ, request.srq_handle);
    if (NULL == srq) {
        return EINVAL;
    }
    if (0 < srq->super.uses) {
        return EBUSY;
    }
    resp.events_reported = sim_event_read(ctx, srq->user_handle, srq->events);
    sim_cmd_destroy(&srq->super);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}
