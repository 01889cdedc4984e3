/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "sim_gpu.h"
#include "sim_mem.h"

#define PAGE 4096u

int sim_cmd_alloc_pd(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct sim_pd *pd = sim_obj_new(ctx, SIM_PD, sizeof(*pd));
    struct ib_uverbs_alloc_pd_resp resp = {0};
    struct mlx5_ib_alloc_pd_resp driver = {0};

    if (NULL == pd) {
        return ENOMEM;
    }
    pd->pdn = 0x1000 + pd->super.handle;
    resp.pd_handle = pd->super.handle;
    driver.pdn = pd->pdn;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    sim_copy(call->driver_out, call->driver_out_size, &driver, sizeof(driver));
    return 0;
}

int sim_cmd_dealloc_pd(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_dealloc_pd request;
    struct sim_pd *pd;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    pd = sim_obj_get(ctx, SIM_PD, request.pd_handle);
    if (NULL == pd) {
        return EINVAL;
    }
    if (0 < pd->super.uses) {
        return EBUSY;
    }
    sim_cmd_destroy(&pd->super);
    return 0;
}

/*
 * The rules of the kernel's driver.
 *
 * registered: bytes of the process that stay registered
 * gpu: memory of a GPU, which the driver has looked at
 */
static int check_reg(uint64_t start, uint64_t length, uint32_t flags, uint64_t registered, bool gpu)
{
    const unsigned writes =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const unsigned known = writes | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED
                           | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB;

    if (0 != (flags & ~known)) {
        /* No on-demand paging, no memory windows. */
        return EOPNOTSUPP;
    }
    if (0 != (flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
        && 0 == (flags & IBV_ACCESS_LOCAL_WRITE)) {
        return EINVAL;
    }
    if (0 == length) {
        return EINVAL;
    }
    if (0 != sim.conf.reg_bytes
        && (length > sim.conf.reg_bytes || registered > sim.conf.reg_bytes - length)) {
        return ENOMEM;
    }
    return gpu || sim_mem_mapped(start, length, 0 != (flags & writes)) ? 0 : EFAULT;
}

/* A key over memory that may be registered. */
static int make_mr(struct sim_ctx *ctx, struct sim_pd *pd, uint64_t start, uint64_t length,
                   uint64_t iova, uint32_t access, const struct sim_gpu_memory *gpu,
                   struct sim_key **made)
{
    int rc = check_reg(start, length, access, sim.reg_bytes_now, NULL != gpu);
    const struct fault *fault = 0 == rc ? sim_fault(FAULT_reg) : NULL;
    struct sim_key *key;

    if (NULL != fault && 0 != fault->how) {
        rc = (int) fault->how;
    } else if (0 == rc && (NULL != fault || (0 != sim.conf.mrs && sim.mrs_now >= sim.conf.mrs))) {
        rc = ENOMEM;
    }
    if (0 != rc) {
        sim_log(2, "registration of %llu bytes refused: %s", (unsigned long long) length,
                strerror(rc));
        return rc;
    }
    key = sim_obj_new(ctx, SIM_MR, sizeof(*key));
    if (NULL == key) {
        return ENOMEM;
    }
    key->addr = start;
    key->length = length;
    rc = NULL == gpu ? 0 : sim_gpu_map(key, gpu);
    if (0 == rc && 0 != sim_key_add(key)) {
        sim_gpu_unmap(key);
        rc = ENOMEM;
    }
    if (0 != rc) {
        sim_obj_free(key);
        return rc;
    }
    key->pd = pd;
    pd->super.uses++;
    key->access = access;
    key->iova = iova;
    sim.mrs_now++;
    sim.reg_bytes_now += length;
    sim.count.mrs++;
    *made = key;
    sim_log(2, "MR 0x%x: %llu bytes at 0x%llx%s", sim_key_value(key), (unsigned long long) length,
            (unsigned long long) iova, NULL == gpu ? "" : " of a GPU");
    return 0;
}

int sim_cmd_reg_mr(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_reg_mr request;
    struct ib_uverbs_reg_mr_resp resp = {0};
    struct sim_key *key;
    struct sim_pd *pd;
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    pd = sim_obj_get(ctx, SIM_PD, request.pd_handle);
    if (NULL == pd) {
        return EINVAL;
    }
    rc = make_mr(ctx, pd, request.start, request.length, request.hca_va, request.access_flags,
                 call->gpu, &key);
    if (0 != rc) {
        return rc;
    }
    resp.mr_handle = key->super.handle;
    resp.lkey = sim_key_value(key);
    resp.rkey = resp.lkey;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

int sim_cmd_reg_dmabuf(struct sim_ctx *ctx, uint32_t pd_handle, uint64_t offset, uint64_t length,
                       uint64_t iova, int fd, uint32_t access, const struct sim_gpu_memory *gpu,
                       uint32_t *handle, uint32_t *lkey)
{
    struct sim_pd *pd = sim_obj_get(ctx, SIM_PD, pd_handle);
    /* Where a dma-buf would begin with the memory, the software driver's file has a position. */
    off_t begins = lseek(fd, 0, SEEK_CUR);
    struct sim_gpu_memory memory = {.fd = fd, .ctx = gpu->ctx};
    struct sim_key *key;
    struct stat st;
    int rc;

    /* What another driver's dma-buf is of cannot be seen: its memory is the one at that address. */
    if (NULL == pd || 0 != fstat(fd, &st) || offset % PAGE != iova % PAGE
        || 0 != (access & IBV_ACCESS_ZERO_BASED)
        || (NULL == gpu->ctx && (-1 == begins || !S_ISREG(st.st_mode)))) {
        return EINVAL;
    }
    memory.offset = (uint64_t) begins + offset;
    rc = make_mr(ctx, pd, iova, length, iova, access, &memory, &key);
    if (0 == rc) {
        *handle = key->super.handle;
        *lkey = sim_key_value(key);
    }
    return rc;
}

int sim_cmd_rereg_mr(struct sim_ctx *ctx, const struct sim_call *call)
{
    const uint32_t known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    struct ib_uverbs_rereg_mr request;
    struct ib_uverbs_rereg_mr_resp resp = {0};
    struct sim_key *key;
    struct sim_pd *pd;
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    key = sim_obj_get(ctx, SIM_MR, request.mr_handle);
    if (NULL == key || 0 == request.flags || 0 != (request.flags & ~known)) {
        return EINVAL;
    }
    if (NULL != key->gpu_view || NULL != key->gpu_ctx) {
        return EOPNOTSUPP;
    }
    pd = key->pd;
    if (0 != (request.flags & IBV_REREG_MR_CHANGE_PD)) {
        pd = sim_obj_get(ctx, SIM_PD, request.pd_handle);
        if (NULL == pd) {
            return EINVAL;
        }
    }
    if (0 == (request.flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        request.start = key->addr;
        request.hca_va = key->iova;
        request.length = key->length;
    }
    if (0 == (request.flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        request.access_flags = key->access;
    }
    rc = check_reg(request.start, request.length, request.access_flags,
                   sim.reg_bytes_now - key->length, false);
    if (0 != rc) {
        return rc;
    }
    key->pd->super.uses--;
    key->pd = pd;
    pd->super.uses++;
    sim.reg_bytes_now += request.length - key->length;
    key->access = request.access_flags;
    key->addr = request.start;
    key->iova = request.hca_va;
    key->length = request.length;
    resp.lkey = sim_key_value(key);
    resp.rkey = resp.lkey;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

void sim_mr_destroy(struct sim_obj *obj)
{
    struct sim_key *key = (struct sim_key *) obj;

    sim_key_remove(key);
    sim_gpu_unmap(key);
    key->pd->super.uses--;
    sim.mrs_now--;
    sim.reg_bytes_now -= key->length;
    sim_obj_free(key);
}

int sim_cmd_dereg_mr(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_dereg_mr request;
    struct sim_obj *obj;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    obj = sim_obj_get(ctx, SIM_MR, request.mr_handle);
    if (NULL == obj) {
        return EINVAL;
    }
    sim_cmd_destroy(obj);
    return 0;
}
