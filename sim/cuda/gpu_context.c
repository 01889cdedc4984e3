/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Contexts: primary ones and others, which one is a thread's, and whose memory they reach. (Green
 * ones: gpu_green.c.) */

#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

static CUcontext contexts; /* also those that are destroyed, so that no pointer to one dangles */
static unsigned long long last_id;

static __thread CUcontext stack[GPU_CTX_DEPTH];
static __thread int depth;

CUcontext gpu_ctx_current(void)
{
    return 0 == depth ? NULL : stack[depth - 1];
}

CUcontext gpu_ctx_root(CUcontext ctx)
{
    return NULL != ctx && NULL != ctx->root && -1 != ctx->device ? ctx->root : ctx;
}

CUcontext gpu_ctx_working(void)
{
    return gpu_ctx_root(gpu_ctx_current());
}

CUcontext gpu_ctx_next(CUcontext ctx)
{
    return NULL == ctx ? contexts : ctx->next;
}

static bool known(CUcontext ctx)
{
    CUcontext c;

    for (c = contexts; NULL != c && c != ctx; c = c->next) {
    }
    return NULL != c;
}

/* Real drivers read a destroyed context. A primary context's handle stays valid. */
static void must_not_be_gone(CUcontext ctx, const char *function)
{
    if (gpu_conf.crash && NULL != ctx && known(ctx) && -1 == ctx->device && !ctx->primary) {
        fprintf(stderr, "software CUDA driver: %s of a context that was destroyed\n", function);
        abort();
    }
}

bool gpu_ctx_exists(CUcontext ctx)
{
    return known(ctx) && -1 != ctx->device && (NULL == ctx->root || -1 != ctx->root->device);
}

static CUcontext make(int device, unsigned flags, bool primary)
{
    CUcontext ctx = calloc(1, sizeof(*ctx));

    if (NULL == ctx) {
        return NULL;
    }
    ctx->device = device;
    ctx->flags = flags;
    ctx->primary = primary;
    ctx->id = ++last_id;
    ctx->legacy = gpu_stream_new(ctx, CU_STREAM_DEFAULT, 0);
    if (NULL == ctx->legacy) {
        free(ctx);
        return NULL;
    }
    ctx->next = contexts;
    contexts = ctx;
    return ctx;
}

static bool free_first(struct gpu_range *range, void *data)
{
    if (range->ctx == *(CUcontext *) data && GPU_POOL != range->kind && GPU_VMM != range->kind) {
        gpu_end_range(range);
        return false;
    }
    return true;
}

/* With the lock held, which is given up while work ends: its own, and others' that may use its
 * allocated, pinned, registered or opened in it, all of which goes with it. */
static void destroy(CUcontext ctx)
{
    uint64_t before;

    (void) gpu_drain(NULL);
    gpu_streams_end(ctx);
    do {
        before = gpu_range_generation;
        gpu_range_each(free_first, &ctx);
    } while (before != gpu_range_generation);
    ctx->device = -1;
}

static bool is_device(CUdevice device)
{
    return 0 <= device && device < gpu_device_count();
}

CUcontext gpu_ctx_new_green(CUcontext primary)
{
    CUcontext ctx = calloc(1, sizeof(*ctx));

    if (NULL != ctx) {
        ctx->device = primary->device;
        ctx->root = primary;
        ctx->flags = primary->flags;
        ctx->id = ++last_id;
        ctx->next = contexts;
        contexts = ctx;
    }
    return ctx;
}

void gpu_ctx_end_green(CUcontext green)
{
    green->device = -1;
}

CUcontext gpu_primary_retain(CUdevice device)
{
    struct gpu_device *dev = &gpu_device[device];

    if (NULL == dev->primary) {
        dev->primary = make(device, dev->primary_flags, true);
    }
    if (NULL != dev->primary) {
        dev->primary_refs++;
    }
    return dev->primary;
}

GPU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
    CUcontext primary;

    GPU_BEGIN(cuDevicePrimaryCtxRetain);
    if (NULL == ctx) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    primary = gpu_primary_retain(device);
    if (NULL == primary) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *ctx = primary;
    return gpu_end(CUDA_SUCCESS);
}

static void end_primary(struct gpu_device *dev)
{
    CUcontext ctx = dev->primary;

    dev->primary = NULL;
    dev->primary_refs = 0;
    if (NULL != ctx) {
        destroy(ctx);
    }
}

CUresult gpu_primary_release(CUdevice device)
{
    if (0 == gpu_device[device].primary_refs) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (0 == --gpu_device[device].primary_refs) {
        end_primary(&gpu_device[device]);
    }
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    GPU_BEGIN(cuDevicePrimaryCtxRelease_v2);
    return gpu_end(is_device(device) ? gpu_primary_release(device) : CUDA_ERROR_INVALID_DEVICE);
}

GPU_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    GPU_BEGIN(cuDevicePrimaryCtxReset_v2);
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    end_primary(&gpu_device[device]);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    GPU_BEGIN(cuDevicePrimaryCtxGetState);
    if (NULL == flags || NULL == active) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    *flags = gpu_device[device].primary_flags;
    *active = NULL != gpu_device[device].primary;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    GPU_BEGIN(cuDevicePrimaryCtxSetFlags_v2);
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (0 != (flags & ~(unsigned) CU_CTX_FLAGS_MASK)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    gpu_device[device].primary_flags = flags;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice device)
{
    GPU_BEGIN(cuCtxCreate_v2);
    if (NULL == ctx || 0 != (flags & ~(unsigned) CU_CTX_FLAGS_MASK)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (GPU_CTX_DEPTH == depth) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *ctx = make(device, flags, false);
    if (NULL == *ctx) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stack[depth++] = *ctx;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    GPU_BEGIN(cuCtxDestroy_v2);
    if (!gpu_ctx_exists(ctx) || ctx->primary || NULL != ctx->root) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    destroy(ctx);
    if (0 < depth && stack[depth - 1] == ctx) {
        depth--;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    GPU_BEGIN(cuCtxPushCurrent_v2);
    must_not_be_gone(ctx, "cuCtxPushCurrent");
    if (!known(ctx)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (GPU_CTX_DEPTH == depth) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stack[depth++] = ctx;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
    GPU_BEGIN(cuCtxPopCurrent_v2);
    if (0 == depth) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    must_not_be_gone(stack[depth - 1], "cuCtxPopCurrent");
    depth--;
    if (NULL != ctx) {
        *ctx = stack[depth];
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
    GPU_BEGIN(cuCtxSetCurrent);
    must_not_be_gone(ctx, "cuCtxSetCurrent");
    if (NULL != ctx && !known(ctx)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (NULL == ctx) {
        depth = 0 < depth ? depth - 1 : 0;
    } else if (0 == depth) {
        stack[depth++] = ctx;
    } else {
        stack[depth - 1] = ctx;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetCurrent(CUcontext *ctx)
{
    GPU_BEGIN(cuCtxGetCurrent);
    if (NULL == ctx) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *ctx = gpu_ctx_current();
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext ctx;

    GPU_BEGIN(cuCtxGetDevice);
    ctx = gpu_ctx_current();
    if (NULL == ctx || !gpu_ctx_exists(ctx)) {
        return gpu_end(NULL == ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    if (NULL == device) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *device = ctx->device;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuCtxGetFlags, &ctx);
    if (NULL == flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = ctx->flags;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    GPU_BEGIN(cuCtxGetId);
    ctx = NULL == ctx ? gpu_ctx_current() : ctx;
    must_not_be_gone(ctx, "cuCtxGetId");
    if (!gpu_ctx_exists(ctx)) {
        return gpu_end(known(ctx) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT);
    }
    if (NULL == id) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *id = ctx->id;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    GPU_BEGIN(cuCtxGetApiVersion);
    ctx = NULL == ctx ? gpu_ctx_current() : ctx;
    if (!gpu_ctx_exists(ctx)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (NULL == version) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *version = 3020;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuCtxGetStreamPriorityRange, &ctx);
    if (NULL != least) {
        *least = 0;
    }
    if (NULL != greatest) {
        *greatest = -5;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxSynchronize(void)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuCtxSynchronize, &ctx);
    gpu_count.syncs++;
    return gpu_end(gpu_drain(ctx));
}

GPU_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuCtxEnablePeerAccess, &ctx);
    if (0 != flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!gpu_ctx_exists(peer)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (peer->device == ctx->device) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (!gpu_conf.peer) {
        return gpu_end(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    }
    if (0 != (ctx->peers & 1u << peer->device)) {
        return gpu_end(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    }
    ctx->peers |= 1u << peer->device;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuCtxDisablePeerAccess, &ctx);
    if (!gpu_ctx_exists(peer)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (0 == (ctx->peers & 1u << peer->device)) {
        return gpu_end(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    }
    ctx->peers &= ~(1u << peer->device);
    return gpu_end(CUDA_SUCCESS);
}
