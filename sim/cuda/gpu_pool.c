/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory that is allocated and freed in the order of a stream, and the pools that it comes from. */

#include "gpu.h"

#include <stdlib.h>
#include <string.h>

struct CUmemPoolHandle_st {
    int device;
    bool of_device; /* a device's own, which is not destroyed */
    CUmemAllocationHandleType handle_types;
    uint64_t threshold;
    size_t used;
    unsigned char access[GPU_DEVICES_MAX];
    struct CUmemPoolHandle_st *next;
};

struct free_work {
    struct gpu_work head;
    CUdeviceptr ptr;
};

static CUmemoryPool pools;

static bool exists(CUmemoryPool pool)
{
    CUmemoryPool p;

    for (p = pools; NULL != p && p != pool; p = p->next) {
    }
    return NULL != p;
}

static bool is_device(int device)
{
    return 0 <= device && device < gpu_device_count();
}

static CUmemoryPool new_pool(int device)
{
    CUmemoryPool pool = calloc(1, sizeof(*pool));

    if (NULL != pool) {
        pool->device = device;
        pool->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        pool->next = pools;
        pools = pool;
    }
    return pool;
}

static CUresult default_pool(int device, CUmemoryPool *pool)
{
    struct gpu_device *dev = &gpu_device[device];

    if (NULL == dev->default_pool) {
        dev->default_pool = new_pool(device);
        if (NULL == dev->default_pool) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        dev->default_pool->of_device = true;
    }
    *pool = dev->default_pool;
    return CUDA_SUCCESS;
}

static CUresult current_pool(int device, CUmemoryPool *pool)
{
    if (NULL != gpu_device[device].pool) {
        *pool = gpu_device[device].pool;
        return CUDA_SUCCESS;
    }
    return default_pool(device, pool);
}

GPU_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetDefaultMemPool);
    if (NULL == pool || !is_device(device)) {
        return gpu_end(NULL == pool ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    }
    return gpu_end(default_pool(device, pool));
}

GPU_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetMemPool);
    if (NULL == pool || !is_device(device)) {
        return gpu_end(NULL == pool ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    }
    return gpu_end(current_pool(device, pool));
}

GPU_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    GPU_BEGIN(cuDeviceSetMemPool);
    if (!is_device(device)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (!exists(pool) || pool->device != device) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    gpu_device[device].pool = pool;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    GPU_BEGIN(cuMemPoolCreate);
    if (NULL == pool || NULL == props || CU_MEM_ALLOCATION_TYPE_PINNED != (int) props->allocType
        || CU_MEM_LOCATION_TYPE_DEVICE != (int) props->location.type) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_device(props->location.id)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (CU_MEM_HANDLE_TYPE_NONE != (int) props->handleTypes) {
        return gpu_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    *pool = new_pool(props->location.id);
    return gpu_end(NULL == *pool ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

static bool leave_pool(struct gpu_range *range, void *data)
{
    if (range->pool == data) {
        range->pool = NULL;
    }
    return true;
}

/* Its memory lives on until it is freed. */
GPU_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUmemoryPool *p;

    GPU_BEGIN(cuMemPoolDestroy);
    if (!exists(pool) || pool->of_device) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (gpu_device[pool->device].pool == pool) {
        gpu_device[pool->device].pool = NULL;
    }
    for (p = &pools; *p != pool; p = &(*p)->next) {
    }
    *p = pool->next;
    gpu_range_each(leave_pool, pool);
    free(pool);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    GPU_BEGIN(cuMemPoolTrimTo);
    (void) keep; /* nothing that was freed is kept */
    return gpu_end(exists(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

GPU_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                          void *value)
{
    GPU_BEGIN(cuMemPoolSetAttribute);
    if (!exists(pool) || NULL == value || 1 > (int) attribute || 8 < (int) attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == (int) attribute) {
        pool->threshold = *(const cuuint64_t *) value;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                          void *value)
{
    GPU_BEGIN(cuMemPoolGetAttribute);
    if (!exists(pool) || NULL == value || 1 > (int) attribute || 8 < (int) attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (4 > (int) attribute) {
        *(int *) value = 1;
    } else {
        *(cuuint64_t *) value =
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == (int) attribute ? pool->threshold : pool->used;
    }
    return gpu_end(CUDA_SUCCESS);
}

static bool set_access(struct gpu_range *range, void *data)
{
    CUmemoryPool pool = data;

    if (range->pool == pool) {
        memcpy(range->access, pool->access, sizeof(range->access));
    }
    return true;
}

GPU_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    size_t i;

    GPU_BEGIN(cuMemPoolSetAccess);
    if (!exists(pool) || NULL == map) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < count; i++) {
        if (CU_MEM_LOCATION_TYPE_DEVICE != (int) map[i].location.type
            || !is_device(map[i].location.id)) {
            return gpu_end(CUDA_ERROR_INVALID_DEVICE);
        }
        if (map[i].location.id != pool->device && !gpu_conf.peer) {
            return gpu_end(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        /* A device's access to its own memory cannot be taken away. */
        if (map[i].location.id == pool->device
            && CU_MEM_ACCESS_FLAGS_PROT_READWRITE != (int) map[i].flags) {
            return gpu_end(CUDA_ERROR_INVALID_VALUE);
        }
    }
    for (i = 0; i < count; i++) {
        pool->access[map[i].location.id] = (unsigned char) map[i].flags;
    }
    gpu_range_each(set_access, pool);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
                                       CUmemLocation *location)
{
    GPU_BEGIN(cuMemPoolGetAccess);
    if (NULL == flags || !exists(pool) || NULL == location || !is_device(location->id)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = (CUmemAccess_flags) pool->access[location->id];
    return gpu_end(CUDA_SUCCESS);
}

static CUresult alloc(CUcontext ctx, CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
                      CUstream handle)
{
    struct gpu_range *range;
    CUstream stream;
    CUresult rc = gpu_stream_get(ctx, handle, &stream);

    if (CUDA_SUCCESS == rc && (NULL == ptr || !exists(pool))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (CUDA_SUCCESS == rc && NULL != stream->capture) {
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (CUDA_SUCCESS == rc) {
        rc = gpu_alloc(ctx, pool->device, GPU_POOL, size, &range);
    }
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    range->pool = pool;
    pool->used += size;
    memcpy(range->access, pool->access, sizeof(range->access));
    *ptr = range->base;
    return gpu_submit(stream, gpu_work_nothing(), false);
}

GPU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
    CUmemoryPool pool;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuMemAllocAsync, stream, &ctx);
    rc = current_pool(ctx->device, &pool);
    return gpu_end(CUDA_SUCCESS == rc ? alloc(ctx, ptr, size, pool, stream) : rc);
}

GPU_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
                                            CUstream stream)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuMemAllocFromPoolAsync, stream, &ctx);
    return gpu_end(alloc(ctx, ptr, size, pool, stream));
}

void gpu_pool_left(struct gpu_range *range)
{
    if (NULL != range->pool) {
        range->pool->used -= range->size;
    }
}

static CUresult run_free(struct gpu_work *work, CUcontext ctx)
{
    struct gpu_range *range;

    (void) ctx;
    pthread_mutex_lock(&gpu_lock);
    range = gpu_range_find(((struct free_work *) work)->ptr);
    if (NULL == range || GPU_POOL != range->kind) {
        return gpu_end(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    gpu_free(range);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
    struct free_work *work;
    struct gpu_range *range;
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuMemFreeAsync, handle, &ctx);
    rc = gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS != rc || 0 == ptr) {
        return gpu_end(rc);
    }
    range = gpu_range_find(ptr);
    if (NULL == range || range->base != ptr || range->freed || GPU_POOL != range->kind) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (NULL != stream->capture) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    work = gpu_work_new(sizeof(*work), CU_GRAPH_NODE_TYPE_EMPTY, run_free, NULL);
    if (NULL == work) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    work->ptr = ptr;
    range->freed = true;
    return gpu_end(gpu_submit(stream, &work->head, false));
}
