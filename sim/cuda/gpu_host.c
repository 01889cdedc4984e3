/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory that the CPU can touch as well: pinned, registered, managed. */

#include "gpu.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096ul
#define SMALL (16 * PAGE)

/* Where memory begins in its first page: drivers cut small pinned buffers from larger ones. */
static size_t first_byte(enum gpu_kind kind, size_t size)
{
    return GPU_HOST == kind && size < SMALL ? 512 * (1 + gpu_random(PAGE / 512 - 1)) : 0;
}

/* Mapped memory as a range of its own. */
static CUresult make(CUcontext ctx, enum gpu_kind kind, size_t size, unsigned flags,
                     uintptr_t *base)
{
    size_t inside = first_byte(kind, size);
    struct gpu_range r;
    char *memory;

    if (0 == size || size > gpu_conf.memory) {
        return 0 == size ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(&r, 0, sizeof(r));
    r.map_size = (inside + size + PAGE - 1) & ~(PAGE - 1);
    memory = mmap(NULL, r.map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == (void *) memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r.map_base = (uintptr_t) memory;
    r.base = r.map_base + inside;
    r.size = size;
    r.kind = kind;
    r.device = ctx->device;
    r.ctx = ctx;
    r.view = memory + inside;
    r.flags = flags;
    r.slot = -1;
    if (NULL == gpu_range_add(&r)) {
        munmap(memory, r.map_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *base = r.base;
    return CUDA_SUCCESS;
}

static CUresult host_alloc(CUcontext ctx, void **ptr, size_t size, unsigned flags)
{
    uintptr_t base = 0;
    CUresult rc;

    if (NULL == ptr
        || 0
               != (flags
                   & ~(unsigned) (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
                                  | CU_MEMHOSTALLOC_WRITECOMBINED))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    rc = make(ctx, GPU_HOST, size, flags, &base);
    if (CUDA_SUCCESS == rc) {
        *ptr = (void *) base;
        gpu_count.host_allocs++;
    }
    return rc;
}

GPU_EXPORT CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemAllocHost_v2, &ctx);
    return gpu_end(host_alloc(ctx, ptr, size, 0));
}

GPU_EXPORT CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemHostAlloc, &ctx);
    return gpu_end(host_alloc(ctx, ptr, size, flags));
}

GPU_EXPORT CUresult cuMemFreeHost(void *ptr)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_MEMORY(cuMemFreeHost, ptr, &ctx);
    (void) gpu_drain(NULL);
    range = gpu_range_find((uintptr_t) ptr);
    if (NULL == range || (uintptr_t) ptr != range->base || GPU_HOST != range->kind) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    gpu_end_range(range);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *ptr, unsigned int flags)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemHostGetDevicePointer_v2, &ctx);
    range = gpu_range_find((uintptr_t) ptr);
    if (NULL == device || 0 != flags || NULL == range
        || (GPU_HOST != range->kind && GPU_REGISTERED != range->kind)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *device = (uintptr_t) ptr;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemHostGetFlags, &ctx);
    range = gpu_range_find((uintptr_t) ptr);
    if (NULL == flags || NULL == range
        || (GPU_HOST != range->kind && GPU_REGISTERED != range->kind)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return gpu_end(CUDA_SUCCESS);
}

static bool overlaps(struct gpu_range *range, void *data)
{
    struct gpu_range *wanted = data;

    if (range->base < wanted->base + wanted->size && wanted->base < range->base + range->size) {
        wanted->freed = true;
        return false;
    }
    return true;
}

GPU_EXPORT CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
    struct gpu_range r;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemHostRegister_v2, &ctx);
    if (NULL == ptr || 0 == size
        || 0
               != (flags
                   & ~(unsigned) (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))) {
        return gpu_end(NULL == ptr || 0 == size || 15 < flags ? CUDA_ERROR_INVALID_VALUE
                                                              : CUDA_ERROR_NOT_SUPPORTED);
    }
    memset(&r, 0, sizeof(r));
    r.base = (uintptr_t) ptr;
    r.size = size;
    r.map_base = r.base & ~(PAGE - 1);
    r.map_size = (r.base + size - r.map_base + PAGE - 1) & ~(PAGE - 1);
    /* It must be mapped: this fails for other addresses. */
    if (0 != msync((void *) r.map_base, r.map_size, MS_ASYNC)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    gpu_range_each(overlaps, &r);
    if (r.freed) {
        return gpu_end(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    r.kind = GPU_REGISTERED;
    r.device = ctx->device;
    r.ctx = ctx;
    r.view = ptr;
    r.flags = flags;
    r.slot = -1;
    if (NULL == gpu_range_add(&r)) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    gpu_count.host_allocs++;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemHostUnregister(void *ptr)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_MEMORY(cuMemHostUnregister, ptr, &ctx);
    (void) gpu_drain(NULL);
    range = gpu_range_find((uintptr_t) ptr);
    if (NULL == range || GPU_REGISTERED != range->kind || (uintptr_t) ptr != range->base) {
        return gpu_end(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    }
    gpu_end_range(range);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
    uintptr_t base = 0;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuMemAllocManaged, &ctx);
    if (NULL == ptr || (CU_MEM_ATTACH_GLOBAL != flags && CU_MEM_ATTACH_HOST != flags)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    rc = make(ctx, GPU_MANAGED, size, flags, &base);
    if (CUDA_SUCCESS == rc) {
        *ptr = base;
        gpu_device[ctx->device].used += size;
        gpu_count.allocs++;
        gpu_count.bytes_now += size;
    }
    return gpu_end(rc);
}
