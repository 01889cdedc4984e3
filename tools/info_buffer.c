/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * Memory for the tests of HCAs: of the CPU, or of one GPU.
 */

#include "info_hca.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "umrddt_cuda_all.h"

/** NULL: the CPU's memory. */
static const umrddt_cuda_all_t *driver;

bool info_buffer_gpu(int gpu, char *why)
{
    const umrddt_cuda_all_t *all;
    CUcontext ctx;
    CUdevice device;
    int count = 0;

    if (OPAL_SUCCESS != umrddt_cuda_all_load(&all)) {
        snprintf(why, 192, "no GPUs: %s", opal_umrddt_gpu_driver_why_not());
        return false;
    }
    if (CUDA_SUCCESS != all->cuInit(0) || CUDA_SUCCESS != all->cuDeviceGetCount(&count)
        || gpu >= count) {
        snprintf(why, 192, "there is no GPU %d; this process has %d", gpu, count);
        return false;
    }
    if (CUDA_SUCCESS != all->cuDeviceGet(&device, gpu)
        || CUDA_SUCCESS != all->cuDevicePrimaryCtxRetain(&ctx, device)
        || CUDA_SUCCESS != all->cuCtxSetCurrent(ctx)) {
        snprintf(why, 192, "GPU %d refuses a context", gpu);
        return false;
    }
    driver = all;
    return true;
}

void *info_buffer_alloc(size_t size)
{
    CUdeviceptr pointer = 0;

    if (NULL == driver) {
        void *buffer = NULL;

        return 0 == posix_memalign(&buffer, 4096, size) ? buffer : NULL;
    }
    return CUDA_SUCCESS == driver->cuMemAlloc_v2(&pointer, size) ? (void *) (uintptr_t) pointer
                                                                 : NULL;
}

void info_buffer_free(void *buffer)
{
    if (NULL == driver) {
        free(buffer);
    } else if (NULL != buffer) {
        (void) driver->cuMemFree_v2((CUdeviceptr) (uintptr_t) buffer);
    }
}

int info_buffer_register(const info_link_t *link, mca_btl_umr_role_t role, void *buffer,
                         const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t **memory)
{
    opal_umrddt_gpu_memory_t where;

    if (NULL == driver) {
        return link->hca->memory_register_at(link->endpoint, role, buffer, layout, layout->size,
                                             memory);
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(buffer, &where)) {
        return OPAL_ERROR;
    }
    return link->hca->memory_register_gpu(link->endpoint, role, &where, buffer, layout,
                                          layout->size, memory);
}

bool info_buffer_write(void *buffer, const void *from, size_t size)
{
    if (NULL == driver) {
        memcpy(buffer, from, size);
        return true;
    }
    return CUDA_SUCCESS == driver->cuMemcpyHtoD_v2((CUdeviceptr) (uintptr_t) buffer, from, size)
           && CUDA_SUCCESS == driver->cuCtxSynchronize();
}

bool info_buffer_read(void *to, const void *buffer, size_t size)
{
    if (NULL == driver) {
        memcpy(to, buffer, size);
        return true;
    }
    return CUDA_SUCCESS == driver->cuMemcpyDtoH_v2(to, (CUdeviceptr) (uintptr_t) buffer, size);
}
