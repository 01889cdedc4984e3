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
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "sim_alloc.h"
#include "sim_engine.h"
#include "sim_gpu.h"
#include "sim_wire.h"

#define UAR_BYTES 4096

/* Commands in the older form, which libibverbs wraps into INVOKE_WRITE. */
static const struct {
    uint32_t number;
    int (*call)(struct sim_ctx *ctx, const struct sim_call *call);
} writes[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, sim_cmd_get_context},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, sim_cmd_query_device},
    {IB_USER_VERBS_CMD_QUERY_PORT, sim_cmd_query_port},
    {IB_USER_VERBS_CMD_ALLOC_PD, sim_cmd_alloc_pd},
    {IB_USER_VERBS_CMD_DEALLOC_PD, sim_cmd_dealloc_pd},
    {IB_USER_VERBS_CMD_REG_MR, sim_cmd_reg_mr},
    {IB_USER_VERBS_CMD_REREG_MR, sim_cmd_rereg_mr},
    {IB_USER_VERBS_CMD_DEREG_MR, sim_cmd_dereg_mr},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sim_cmd_create_channel},
    {IB_USER_VERBS_CMD_CREATE_CQ, sim_cmd_create_cq},
    {IB_USER_VERBS_CMD_DESTROY_CQ, sim_cmd_destroy_cq},
    {IB_USER_VERBS_CMD_CREATE_SRQ, sim_cmd_create_srq},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, sim_cmd_modify_srq},
    {IB_USER_VERBS_CMD_QUERY_SRQ, sim_cmd_query_srq},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, sim_cmd_destroy_srq},
    {IB_USER_VERBS_CMD_CREATE_QP, sim_cmd_create_qp},
    {IB_USER_VERBS_CMD_MODIFY_QP, sim_cmd_modify_qp},
    {IB_USER_VERBS_CMD_QUERY_QP, sim_cmd_query_qp},
    {IB_USER_VERBS_CMD_DESTROY_QP, sim_cmd_destroy_qp},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, sim_cmd_query_device_ex},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ, sim_cmd_create_cq_ex},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP, sim_cmd_create_qp_ex},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP, sim_cmd_modify_qp},
};

static struct ib_uverbs_attr *attr_of(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
    uint16_t i;

    for (i = 0; i < hdr->num_attrs; i++) {
        if (hdr->attrs[i].attr_id == id) {
            return &hdr->attrs[i];
        }
    }
    return NULL;
}

/* Data of an input attribute: short ones are in the attribute itself. */
static const void *attr_in(const struct ib_uverbs_attr *attr)
{
    return attr->len <= sizeof(attr->data) ? (const void *) &attr->data
                                           : (const void *) (uintptr_t) attr->data;
}

static void *attr_out(struct ib_uverbs_attr *attr)
{
    attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return (void *) (uintptr_t) attr->data;
}

/* Of the attribute IN of a command: the older form's REG_MR, or NULL. */
static const struct ib_uverbs_reg_mr *reg_mr_of(struct ib_uverbs_ioctl_hdr *hdr)
{
    struct ib_uverbs_attr *number = attr_of(hdr, UVERBS_ATTR_WRITE_CMD);
    struct ib_uverbs_attr *in = attr_of(hdr, UVERBS_ATTR_CORE_IN);

    return UVERBS_OBJECT_DEVICE == hdr->object_id && UVERBS_METHOD_INVOKE_WRITE == hdr->method_id
                   && NULL != number && IB_USER_VERBS_CMD_REG_MR == (uint32_t) number->data
                   && NULL != in && sizeof(struct ib_uverbs_reg_mr) <= in->len
               ? attr_in(in)
               : NULL;
}

void sim_cmd_gpu(struct ib_uverbs_ioctl_hdr *hdr, struct sim_gpu_memory *gpu)
{
    const struct ib_uverbs_reg_mr *request = reg_mr_of(hdr);
    struct ib_uverbs_attr *length = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
    struct ib_uverbs_attr *iova = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_IOVA);

    memset(gpu, 0, sizeof(*gpu));
    gpu->fd = -1;
    /* Unavailable memory is refused like pages that the CPU does not have. */
    if (NULL != request) {
        (void) sim_gpu_look(request->start, request->length, false, gpu);
    } else if (UVERBS_OBJECT_MR == hdr->object_id && UVERBS_METHOD_REG_DMABUF_MR == hdr->method_id
               && NULL != length && NULL != iova) {
        (void) sim_gpu_look(iova->data, length->data, true, gpu);
    }
}

static int reg_dmabuf(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                      const struct sim_gpu_memory *gpu)
{
    struct ib_uverbs_attr *handle = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
    struct ib_uverbs_attr *pd = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE);
    struct ib_uverbs_attr *offset = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
    struct ib_uverbs_attr *length = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
    struct ib_uverbs_attr *iova = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
    struct ib_uverbs_attr *fd = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_FD);
    struct ib_uverbs_attr *flags = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
    struct ib_uverbs_attr *lkey = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY);
    struct ib_uverbs_attr *rkey = attr_of(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY);
    uint32_t made, key;
    int rc;

    if (!sim.conf.dmabuf) {
        return EOPNOTSUPP; /* a kernel without it */
    }
    if (NULL == handle || NULL == pd || NULL == offset || NULL == length || NULL == iova
        || NULL == fd || NULL == flags || NULL == lkey || NULL == rkey) {
        return EINVAL;
    }
    rc = sim_cmd_reg_dmabuf(ctx, (uint32_t) pd->data, offset->data, length->data, iova->data,
                            (int) fd->data_s64, (uint32_t) flags->data, gpu, &made, &key);
    if (0 == rc) {
        handle->data = made;
        memcpy(attr_out(lkey), &key, sizeof(key));
        memcpy(attr_out(rkey), &key, sizeof(key));
    }
    return rc;
}

static int invoke_write(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                        const struct sim_gpu_memory *gpu)
{
    struct ib_uverbs_attr *number = attr_of(hdr, UVERBS_ATTR_WRITE_CMD);
    struct ib_uverbs_attr *in = attr_of(hdr, UVERBS_ATTR_CORE_IN);
    struct ib_uverbs_attr *out = attr_of(hdr, UVERBS_ATTR_CORE_OUT);
    struct ib_uverbs_attr *driver_in = attr_of(hdr, UVERBS_ATTR_UHW_IN);
    struct ib_uverbs_attr *driver_out = attr_of(hdr, UVERBS_ATTR_UHW_OUT);
    struct sim_call call = {.gpu = 0 <= gpu->fd || NULL != gpu->ctx ? gpu : NULL};
    size_t i;

    if (NULL == number || (NULL == in && NULL == out)) {
        /* libibverbs tests so whether this form of commands is supported. */
        return ENOSPC;
    }
    if (NULL != in) {
        call.in = attr_in(in);
        call.in_size = in->len;
    }
    if (NULL != out) {
        call.out = attr_out(out);
        call.out_size = out->len;
        memset(call.out, 0, call.out_size);
    }
    if (NULL != driver_in) {
        call.driver_in = attr_in(driver_in);
        call.driver_in_size = driver_in->len;
    }
    if (NULL != driver_out) {
        call.driver_out = attr_out(driver_out);
        call.driver_out_size = driver_out->len;
        memset(call.driver_out, 0, call.driver_out_size);
    }
    for (i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        if (writes[i].number == (uint32_t) number->data) {
            return writes[i].call(ctx, &call);
        }
    }
    sim_log(2, "command 0x%x is not known", (unsigned) number->data);
    return EOPNOTSUPP;
}

static int alloc_uar(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    struct ib_uverbs_attr *handle = attr_of(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
    struct ib_uverbs_attr *offset = attr_of(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET);
    struct ib_uverbs_attr *length = attr_of(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH);
    struct ib_uverbs_attr *page = attr_of(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID);
    struct sim_uar *uar;
    uint64_t at;
    uint32_t bytes = UAR_BYTES;

    if (NULL == handle || NULL == offset || NULL == length || NULL == page) {
        return EINVAL;
    }
    uar = sim_obj_new(ctx, SIM_UAR, sizeof(*uar));
    if (NULL == uar) {
        return ENOMEM;
    }
    uar->page = uar->super.handle;
    at = (uint64_t) uar->page * UAR_BYTES;
    handle->data = uar->super.handle;
    memcpy(attr_out(offset), &at, sizeof(at));
    memcpy(attr_out(length), &bytes, sizeof(bytes));
    memcpy(attr_out(page), &uar->page, sizeof(uar->page));
    return 0;
}

static int free_uar(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    struct ib_uverbs_attr *handle = attr_of(hdr, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE);
    struct sim_obj *obj =
        NULL == handle ? NULL : sim_obj_get(ctx, SIM_UAR, (uint32_t) handle->data);

    if (NULL == obj) {
        return EINVAL;
    }
    sim_cmd_destroy(obj);
    return 0;
}

static int devx(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    struct ib_uverbs_attr *in = attr_of(hdr, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
    struct ib_uverbs_attr *out = attr_of(hdr, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);

    if (MLX5_IB_METHOD_DEVX_OTHER != hdr->method_id || NULL == in || NULL == out) {
        return EPROTONOSUPPORT;
    }
    return sim_devx_general(ctx, attr_in(in), in->len, attr_out(out), out->len);
}

static int devx_obj(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    struct ib_uverbs_attr *handle;
    struct ib_uverbs_attr *in;
    struct ib_uverbs_attr *out;
    uint32_t made = 0;
    int rc;

    switch (hdr->method_id) {
    case MLX5_IB_METHOD_DEVX_OBJ_CREATE:
        handle = attr_of(hdr, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
        in = attr_of(hdr, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
        out = attr_of(hdr, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
        if (NULL == handle || NULL == in || NULL == out) {
            return EINVAL;
        }
        rc = sim_devx_create(ctx, attr_in(in), in->len, attr_out(out), out->len, &made);
        handle->data = made;
        return rc;
    case MLX5_IB_METHOD_DEVX_OBJ_DESTROY:
        handle = attr_of(hdr, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE);
        return NULL == handle ? EINVAL : sim_devx_destroy(ctx, (uint32_t) handle->data);
    default:
        return EPROTONOSUPPORT;
    }
}

/* Does libibverbs only test whether a form of commands is supported? */
static bool is_question(struct ib_uverbs_ioctl_hdr *hdr)
{
    return UVERBS_OBJECT_DEVICE == hdr->object_id
           && (UVERBS_METHOD_INVOKE_WRITE != hdr->method_id
               || NULL == attr_of(hdr, UVERBS_ATTR_WRITE_CMD)
               || (NULL == attr_of(hdr, UVERBS_ATTR_CORE_IN)
                   && NULL == attr_of(hdr, UVERBS_ATTR_CORE_OUT)));
}

/* On a lost device, objects can only be released. */
static bool makes_something(struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *number = attr_of(hdr, UVERBS_ATTR_WRITE_CMD);

    switch (hdr->object_id) {
    case UVERBS_OBJECT_DEVICE:
        switch (NULL == number ? UINT32_MAX : (uint32_t) number->data) {
        case IB_USER_VERBS_CMD_DEALLOC_PD:
        case IB_USER_VERBS_CMD_DEREG_MR:
        case IB_USER_VERBS_CMD_DESTROY_CQ:
        case IB_USER_VERBS_CMD_DESTROY_QP:
        case IB_USER_VERBS_CMD_DESTROY_SRQ:
            return false;
        default:
            return true;
        }
    case MLX5_IB_OBJECT_UAR:
        return MLX5_IB_METHOD_UAR_OBJ_DESTROY != hdr->method_id;
    case MLX5_IB_OBJECT_DEVX_OBJ:
        return MLX5_IB_METHOD_DEVX_OBJ_DESTROY != hdr->method_id;
    case UVERBS_OBJECT_MR:
        return UVERBS_METHOD_REG_DMABUF_MR == hdr->method_id;
    default:
        return false; /* the newer forms of the above are not supported here */
    }
}

/* The latency of the firmware. Others may use the device while it works. */
static void slow_down(void)
{
    const struct fault *fault = sim_fault(FAULT_slow);

    if (NULL != fault) {
        const uint64_t us = 0 == fault->how ? 1000 : fault->how;
        const struct timespec time = {(time_t) (us / 1000000), (long) (us % 1000000) * 1000};

        pthread_mutex_unlock(&sim.lock);
        (void) nanosleep(&time, NULL);
        pthread_mutex_lock(&sim.lock);
    }
}

int sim_cmd_ioctl(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                  const struct sim_gpu_memory *gpu)
{
    sim.count.commands++;
    if (makes_something(hdr)) {
        const bool asks = is_question(hdr);

        if (!asks) {
            slow_down();
        }
        if (0 != (sim.gone & 1u << ctx->device)) {
            return EIO;
        }
        if (!asks) {
            const struct fault *fault = sim_fault(FAULT_command);

            if (NULL != fault) {
                return 0 == fault->how ? ENOMEM : (int) fault->how;
            }
        }
    }
    switch (hdr->object_id) {
    case UVERBS_OBJECT_DEVICE:
        return UVERBS_METHOD_INVOKE_WRITE == hdr->method_id ? invoke_write(ctx, hdr, gpu)
                                                            : EPROTONOSUPPORT;
    case UVERBS_OBJECT_MR:
        return UVERBS_METHOD_REG_DMABUF_MR == hdr->method_id ? reg_dmabuf(ctx, hdr, gpu)
                                                             : EPROTONOSUPPORT;
    case MLX5_IB_OBJECT_UAR:
        switch (hdr->method_id) {
        case MLX5_IB_METHOD_UAR_OBJ_ALLOC:
            return alloc_uar(ctx, hdr);
        case MLX5_IB_METHOD_UAR_OBJ_DESTROY:
            return free_uar(ctx, hdr);
        default:
            return EPROTONOSUPPORT;
        }
    case MLX5_IB_OBJECT_DEVX:
        return devx(ctx, hdr);
    case MLX5_IB_OBJECT_DEVX_OBJ:
        return devx_obj(ctx, hdr);
    default:
        /* "Use the older form": libibverbs does, for all that it has one of. */
        return EPROTONOSUPPORT;
    }
}

void sim_cmd_destroy(struct sim_obj *obj)
{
    switch (obj->kind) {
    case SIM_QP:
        sim_qp_destroy(obj);
        break;
    case SIM_SRQ:
        sim_srq_destroy(obj);
        break;
    case SIM_CQ:
        sim_cq_destroy(obj);
        break;
    case SIM_CHANNEL:
        sim_channel_destroy(obj);
        break;
    case SIM_MKEY:
        sim_mkey_destroy(obj);
        break;
    case SIM_MR:
        sim_mr_destroy(obj);
        break;
    default:
        sim_obj_free(obj);
        break;
    }
}

int sim_ctx_open(int fd, int device)
{
    struct sim_ctx *ctx = sim_alloc(sizeof(*ctx));

    if (NULL == ctx) {
        return ENOMEM;
    }
    ctx->fd = fd;
    ctx->device = device;
    ctx->async[0] = -1;
    ctx->async[1] = -1;
    ctx->next = sim.ctx;
    sim.ctx = ctx;
    atomic_fetch_add(&sim.contexts, 1);
    return 0;
}

struct sim_ctx *sim_ctx_of(int fd)
{
    struct sim_ctx *ctx;

    for (ctx = sim.ctx; NULL != ctx && ctx->fd != fd; ctx = ctx->next) {
        continue;
    }
    return ctx;
}

void sim_ctx_close(struct sim_ctx *ctx)
{
    struct sim_ctx **at;

    sim_obj_close(ctx);
    for (at = &sim.ctx; NULL != *at; at = &(*at)->next) {
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    }
    if (0 <= ctx->async[1]) {
        sim_close(ctx->async[1]);
    }
    sim_free(ctx);
    atomic_fetch_sub(&sim.contexts, 1);
}

void sim_cmd_forget(void)
{
    while (NULL != sim.ctx) {
        sim_ctx_close(sim.ctx);
    }
    memset(&sim.count, 0, sizeof(sim.count));
    memset(sim.ever, 0, sizeof(sim.ever));
    sim.rnr_left = 0;
    sim.rnr_over = false;
    sim.gone = 0;
}
