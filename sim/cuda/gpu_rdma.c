/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Memory for HCAs: dma-bufs, addresses that an HCA is given (gpu_peer.h), and the flush of what
 * HCAs wrote.
 */

#include "gpu.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "gpu_peer.h"

#define PAGE 4096ul

int umrddt_gpu_peer_get(uint64_t address, uint64_t length, struct gpu_peer *peer);
int umrddt_gpu_peer_late(void (*flush)(void));

static void (*flusher)(void);

/* The file behind a range, opened anew: its position is the caller's. */
static int open_range(const struct gpu_range *range)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d",
             NULL == range->physical ? gpu_device[range->device].fd
                                     : gpu_physical_fd(range->physical));
    return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * A descriptor that another device, like the software ConnectX, can map. A dma-buf would begin with
 * the memory; this one is a file whose position says where the memory begins in it.
 */
GPU_EXPORT CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t size,
                                                  CUmemRangeHandleType type,
                                                  unsigned long long flags)
{
    struct gpu_range *range;
    CUcontext ctx;
    int fd;

    GPU_BEGIN_CTX(cuMemGetHandleForAddressRange, &ctx);
    if (NULL == handle || 0 == size || 1 < flags
        || CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD != (int) type || 0 != ptr % PAGE
        || 0 != size % PAGE) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!gpu_conf.dmabuf || !gpu_conf.gdr) {
        return gpu_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    /* The first page may begin before the memory. */
    range = gpu_range_find(ptr);
    for (size_t at = 512; NULL == range && PAGE > at; at += 512) {
        range = gpu_range_find(ptr + at);
    }
    if (NULL == range || (GPU_DEVICE != range->kind && GPU_VMM != range->kind)
        || size > range->map_size - (ptr - range->map_base)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    fd = open_range(range);
    if (-1 == fd) {
        return gpu_end(CUDA_ERROR_OPERATING_SYSTEM);
    }
    (void) lseek(fd, (off_t) (range->file_offset + (ptr - range->map_base)), SEEK_SET);
    *(int *) handle = fd;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT int umrddt_gpu_peer_get(uint64_t address, uint64_t length, struct gpu_peer *peer)
{
    struct gpu_range *range;
    int rc = -1;

    pthread_mutex_lock(&gpu_lock);
    range = gpu_range_find(address);
    if (NULL == range || GPU_HOST == range->kind || GPU_REGISTERED == range->kind
        || !gpu_conf.peermem || !gpu_conf.gdr) {
        rc = 0;
    } else if (GPU_DEVICE == range->kind && length <= range->size - (address - range->base)
               && CUDA_SUCCESS == gpu_publish(range)) {
        peer->fd = open_range(range);
        peer->offset = range->file_offset + (address - range->map_base);
        peer->alive = &gpu_device[range->device].table[range->slot];
        peer->id = range->id;
        rc = -1 == peer->fd ? -1 : 1;
    }
    pthread_mutex_unlock(&gpu_lock);
    return rc;
}

GPU_EXPORT int umrddt_gpu_peer_late(void (*flush)(void))
{
    __atomic_store_n(&flusher, flush, __ATOMIC_RELEASE);
    return 0 == gpu_conf.ordering;
}

GPU_EXPORT CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                               CUflushGPUDirectRDMAWritesScope scope)
{
    void (*flush)(void);
    CUcontext ctx;

    GPU_BEGIN_CTX(cuFlushGPUDirectRDMAWrites, &ctx);
    if (0 != (int) target || (100 != (int) scope && 200 != (int) scope)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!gpu_conf.flush) {
        return gpu_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    (void) gpu_end(CUDA_SUCCESS);
    flush = __atomic_load_n(&flusher, __ATOMIC_ACQUIRE);
    if (NULL != flush) {
        flush();
    }
    return CUDA_SUCCESS;
}
