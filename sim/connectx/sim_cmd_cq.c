/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "sim_cq.h"
#include "sim_engine.h"
#include "sim_event.h"

int sim_cmd_create_channel(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct sim_channel *channel = sim_obj_new(ctx, SIM_CHANNEL, sizeof(*channel));
    struct ib_uverbs_create_comp_channel_resp resp = {0};

    if (NULL == channel) {
        return ENOMEM;
    }
    if (0 != pipe2(channel->fd, O_CLOEXEC)) {
        int rc = errno;

        sim_obj_free(channel);
        return rc;
    }
    resp.fd = (uint32_t) channel->fd[0];
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

void sim_channel_destroy(struct sim_obj *obj)
{
    struct sim_channel *channel = (struct sim_channel *) obj;

    /* User space closes its end itself. */
    sim_close(channel->fd[1]);
    sim_obj_free(channel);
}

static struct sim_channel *channel_of(struct sim_ctx *ctx, int fd)
{
    struct sim_channel *found = NULL;
    uint32_t i;

    /* A closed channel's number may be in use again; the newest is meant. */
    for (i = 1; i < sim.nobjs; i++) {
        struct sim_channel *channel = (struct sim_channel *) sim.objs[i];

        if (NULL != channel && SIM_CHANNEL == channel->super.kind && ctx == channel->super.ctx
            && fd == channel->fd[0]) {
            found = channel;
        }
    }
    return found;
}

static int create(struct sim_ctx *ctx, const struct sim_call *call, uint64_t user_handle,
                  uint32_t cqe, int channel_fd, uint32_t vector,
                  struct ib_uverbs_create_cq_resp *resp)
{
    struct mlx5_ib_create_cq driver;
    struct mlx5_ib_create_cq_resp driver_resp = {0};
    struct sim_channel *channel = NULL;
    struct sim_cq *cq;

    sim_copy(&driver, sizeof(driver), call->driver_in, call->driver_in_size);
    if ((64 != driver.cqe_size && 128 != driver.cqe_size) || 0 == driver.buf_addr
        || 0 == driver.db_addr || 0 != (cqe & (cqe + 1)) || 0 == cqe || cqe > 4194303
        || 0 != driver.cqe_comp_en || SIM_COMP_VECTORS <= vector) {
        return EINVAL;
    }
    if (0 <= channel_fd) {
        channel = channel_of(ctx, channel_fd);
        if (NULL == channel) {
            return EINVAL;
        }
    }
    cq = sim_obj_new(ctx, SIM_CQ, sizeof(*cq));
    if (NULL == cq) {
        return ENOMEM;
    }
    cq->user_handle = user_handle;
    cq->cqn = 0x400 + cq->super.handle;
    cq->buffer = (uint8_t *) (uintptr_t) driver.buf_addr;
    cq->size = cqe + 1;
    cq->cqe_bytes = driver.cqe_size;
    cq->db = (volatile __be32 *) (uintptr_t) driver.db_addr;
    /* No event was requested yet; only user space writes this word. */
    cq->db[1] = UINT32_MAX;
    cq->armed_sn = UINT32_MAX;
    cq->channel = channel;
    if (NULL != channel) {
        channel->super.uses++;
        sim_engine_watch_channels();
    }
    resp->cq_handle = cq->super.handle;
    resp->cqe = cqe;
    driver_resp.cqn = cq->cqn;
    sim_copy(call->driver_out, call->driver_out_size, &driver_resp, sizeof(driver_resp));
    return 0;
}

int sim_cmd_create_cq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_create_cq request;
    struct ib_uverbs_create_cq_resp resp = {0};
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    rc = create(ctx, call, request.user_handle, request.cqe, request.comp_channel,
                request.comp_vector, &resp);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return rc;
}

int sim_cmd_create_cq_ex(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_ex_create_cq request;
    struct ib_uverbs_ex_create_cq_resp resp = {0};
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    rc = create(ctx, call, request.user_handle, request.cqe, request.comp_channel,
                request.comp_vector, &resp.base);
    resp.response_length = sizeof(resp);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return rc;
}

void sim_cq_destroy(struct sim_obj *obj)
{
    struct sim_cq *cq = (struct sim_cq *) obj;

    if (NULL != cq->channel) {
        cq->channel->super.uses--;
    }
    sim_obj_free(cq);
}

int sim_cmd_destroy_cq(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_destroy_cq request;
    struct ib_uverbs_destroy_cq_resp resp = {0};
    struct sim_cq *cq;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    cq = sim_obj_get(ctx, SIM_CQ, request.cq_handle);
    if (NULL == cq) {
        return EINVAL;
    }
    if (0 < cq->super.uses) {
        return EBUSY;
    }
    resp.comp_events_reported =
        sim_event_read_channel(cq->channel, cq->user_handle, cq->events_written);
    resp.async_events_reported = sim_event_read(ctx, cq->user_handle, cq->events);
    sim_cmd_destroy(&cq->super);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}
