/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Attributes of pointers. */

#include "gpu.h"

#include <string.h>

/* CU_DEVICE_INVALID */
#define NO_DEVICE -2

static bool on_host(const struct gpu_range *range)
{
    return GPU_HOST == range->kind || GPU_REGISTERED == range->kind;
}

static int access_flags(const struct gpu_range *range)
{
    CUcontext ctx = gpu_ctx_working();

    if (NULL == ctx || !gpu_ctx_exists(ctx)) {
        return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    if (gpu_may_touch(ctx, range, true)) {
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return gpu_may_touch(ctx, range, false) ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/*
 * One attribute of a pointer into a range, or of one into none (range is NULL), where it has a
 * value that says so.
 */
static CUresult get(void *data, CUpointer_attribute attribute, CUdeviceptr ptr,
                    const struct gpu_range *range)
{
    bool none = NULL == range;

    switch ((int) attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *) data =
            none || GPU_POOL == range->kind || GPU_VMM == range->kind ? NULL : range->ctx;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *) data = none ? 0 : on_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *) data = none ? 0 : ptr;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!none && !on_host(range) && GPU_MANAGED != range->kind) {
            *(void **) data = NULL;
            return CUDA_ERROR_INVALID_VALUE;
        }
        *(void **) data = none ? NULL : (void *) (uintptr_t) ptr;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *) data = none ? 0 : range->sync_memops;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *) data = none ? 0 : range->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *) data = !none && GPU_MANAGED == range->kind;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *) data = none ? NO_DEVICE : range->device;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *) data = !none && GPU_DEVICE == range->kind;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *) data = none ? 0 : range->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *) data = none ? 0 : range->size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *) data = !none;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *) data = none || NULL == range->physical ? 0 : range->flags;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned *) data = !none && (GPU_DEVICE == range->kind || GPU_VMM == range->kind);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *) data = none ? CU_MEM_ACCESS_FLAGS_PROT_NONE : access_flags(range);
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *) data = none ? NULL : range->pool;
        break;
    default:
        return 5 == (int) attribute ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static const struct gpu_range *find(CUdeviceptr ptr)
{
    const struct gpu_range *range = gpu_range_find(ptr);

    return NULL != range && range->freed ? NULL : range;
}

GPU_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                          CUdeviceptr ptr)
{
    const struct gpu_range *range;

    GPU_BEGIN(cuPointerGetAttribute);
    gpu_count.queries++;
    range = find(ptr);
    if (NULL == data || NULL == range) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    return gpu_end(get(data, attribute, ptr, range));
}

GPU_EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                           void **data, CUdeviceptr ptr)
{
    const struct gpu_range *range;
    unsigned i;

    GPU_BEGIN(cuPointerGetAttributes);
    gpu_count.queries++;
    if (NULL == attributes || NULL == data || 0 == count) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    range = find(ptr);
    for (i = 0; i < count; i++) {
        CUresult rc =
            NULL == data[i] ? CUDA_ERROR_INVALID_VALUE : get(data[i], attributes[i], ptr, range);

        /* A host pointer of memory that has none is no error here; get() left NULL. */
        if (CUDA_SUCCESS != rc && CU_POINTER_ATTRIBUTE_HOST_POINTER != attributes[i]) {
            return gpu_end(rc);
        }
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                          CUdeviceptr ptr)
{
    struct gpu_range *range;

    GPU_BEGIN(cuPointerSetAttribute);
    if (CUDA_SUCCESS != gpu_capture_unsafe()) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    range = gpu_range_find(ptr);
    if (NULL == value || NULL == range || range->freed
        || CU_POINTER_ATTRIBUTE_SYNC_MEMOPS != attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (GPU_VMM == range->kind) {
        return gpu_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    range->sync_memops = 0 != *(const unsigned *) value;
    /* Of a pool's memory nothing is waited for. */
    if (range->sync_memops && GPU_POOL != range->kind) {
        gpu_wait_late(range->id);
    }
    return gpu_end(CUDA_SUCCESS);
}

/* Of managed memory only. There is no advice and no prefetch in this driver: no range has any. */
GPU_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
                                           CUdeviceptr ptr, size_t count)
{
    const struct gpu_range *range;
    int *value = data;
    size_t i;

    GPU_BEGIN(cuMemRangeGetAttribute);
    gpu_count.queries++;
    range = find(ptr);
    if (NULL == data || NULL == range || GPU_MANAGED != range->kind || 0 == count
        || count > range->size - (size_t) (ptr - range->base)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    switch ((int) attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        if (sizeof(*value) != size) {
            return gpu_end(CUDA_ERROR_INVALID_VALUE);
        }
        break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        if (0 == size || 0 != size % sizeof(*value)) {
            return gpu_end(CUDA_ERROR_INVALID_VALUE);
        }
        break;
    default:
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < size / sizeof(*value); i++) {
        value[i] = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY == attribute ? 0 : NO_DEVICE;
    }
    return gpu_end(CUDA_SUCCESS);
}
