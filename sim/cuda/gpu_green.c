/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Green contexts: shares of a device's multiprocessors. Such a context is its device's primary one
 * under another name: memory, modules, streams and errors are that one's, and it lives as long. Who
 * computes on which multiprocessor is nothing that software could show.
 */

#include "gpu.h"

#include <stdlib.h>
#include <string.h>

/* As the Toolkit's manual has it of devices of 7.x: ours have few. */
#define PARTITION 2

#define SAYS(name, number, says) [number] = says,
static const int says[] = {UMRDDT_CUDA_DEVICE_ATTRIBUTES(SAYS)};

struct CUdevResourceDesc_st {
    unsigned magic;
};

struct CUgreenCtx_st {
    CUcontext ctx;
    CUdevice device;
    struct CUgreenCtx_st *next;
};

/* There is no call that ends one: it is one for all. */
static struct CUdevResourceDesc_st description;
static CUgreenCtx greens;

static bool is_device(CUdevice device)
{
    return 0 <= device && device < gpu_device_count();
}

GPU_EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                           CUdevResourceType type)
{
    GPU_BEGIN(cuDeviceGetDevResource);
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (NULL == resource || CU_DEV_RESOURCE_TYPE_SM != type) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    memset(resource, 0, sizeof(*resource));
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    resource->sm.smCount = (unsigned) says[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    resource->sm.minSmPartitionSize = PARTITION;
    resource->sm.smCoscheduledAlignment = PARTITION;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count,
                                                const CUdevResource *all, CUdevResource *rest,
                                                unsigned int flags, unsigned int least)
{
    unsigned size, most, i;

    GPU_BEGIN(cuDevSmResourceSplitByCount);
    (void) flags;
    if (NULL == count || NULL == all || CU_DEV_RESOURCE_TYPE_SM != all->type
        || all->sm.smCount < least) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    size = 0 == least ? PARTITION : (least + PARTITION - 1) / PARTITION * PARTITION;
    most = all->sm.smCount / size;
    /* Without groups: how many there could be. */
    *count = NULL == groups || most < *count ? most : *count;
    for (i = 0; NULL != groups && i < *count; i++) {
        groups[i] = *all;
        groups[i].sm.smCount = size;
    }
    if (NULL != rest) {
        *rest = *all;
        rest->sm.smCount -= *count * size;
        if (0 == rest->sm.smCount) {
            rest->type = CU_DEV_RESOURCE_TYPE_INVALID;
        }
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
                                              unsigned int count)
{
    GPU_BEGIN(cuDevResourceGenerateDesc);
    if (NULL == desc || NULL == resources || 0 == count
        || CU_DEV_RESOURCE_TYPE_SM != resources->type || 0 == resources->sm.smCount) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *desc = &description;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
                                     unsigned int flags)
{
    CUcontext primary;
    CUgreenCtx made;

    GPU_BEGIN(cuGreenCtxCreate);
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (NULL == green || &description != desc || CU_GREEN_CTX_DEFAULT_STREAM != flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    primary = gpu_primary_retain(device);
    made = calloc(1, sizeof(*made));
    if (NULL != made && NULL != primary) {
        made->device = device;
        made->ctx = gpu_ctx_new_green(primary);
    }
    if (NULL == made || NULL == made->ctx) {
        free(made);
        if (NULL != primary) {
            (void) gpu_primary_release(device);
        }
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->next = greens;
    greens = made;
    *green = made;
    return gpu_end(CUDA_SUCCESS);
}

static bool is_green(CUgreenCtx green)
{
    CUgreenCtx g;

    for (g = greens; NULL != g && g != green; g = g->next) {
    }
    return NULL != g;
}

GPU_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    CUgreenCtx *at = &greens;
    bool alive;

    GPU_BEGIN(cuGreenCtxDestroy);
    if (!is_green(green)) {
        return gpu_end(CUDA_ERROR_CONTEXT_IS_DESTROYED); /* as 580.159.04 says */
    }
    while (*at != green) {
        at = &(*at)->next;
    }
    *at = green->next;
    /* (else it was reset, and is not retained any more) */
    alive = gpu_ctx_exists(green->ctx);
    gpu_ctx_end_green(green->ctx);
    if (alive) {
        (void) gpu_primary_release(green->device);
    }
    free(green);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
    GPU_BEGIN(cuCtxFromGreenCtx);
    if (!is_green(green)) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (NULL == ctx) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *ctx = green->ctx;
    return gpu_end(CUDA_SUCCESS);
}
