/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Memory for other processes: IPC handles.
 *
 * A handle names the exporter's file by /proc/PID/fd/N, and a part of it. Nothing has a name
 * in a file system, so a killed process leaves nothing behind.
 */

#include "gpu.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE       4096ul
#define LARGE_PAGE (2ul << 20)
#define MAGIC      0x55504755u

/* The first of the 64 bytes of a handle. The others are neither written nor read: a
 * handle that is requested twice may differ in them. */
struct handle {
    uint32_t magic;
    int32_t pid;
    int32_t fd;
    uint16_t physical; /* device */
    uint16_t inside;   /* of the first page, bytes before the memory */
    uint64_t ino;
    uint64_t offset;
    uint64_t size;
    uint64_t id;
    uint32_t slot;
    uint32_t check; /* of all before it */
};

_Static_assert(sizeof(struct handle) < sizeof(CUipcMemHandle), "a handle has 64 bytes");

/* A handle that was not made here is refused, and does no harm. */
static uint32_t checksum(const struct handle *h)
{
    const unsigned char *bytes = (const unsigned char *) h;
    uint32_t sum = 2166136261u;
    size_t i;

    for (i = 0; i < offsetof(struct handle, check); i++) {
        sum = (sum ^ bytes[i]) * 16777619u;
    }
    return sum;
}

/* A place in the table, where others see that the memory exists. */
CUresult gpu_publish(struct gpu_range *range)
{
    struct gpu_device *dev = &gpu_device[range->device];
    int slot;

    for (slot = 0; - 1 == range->slot && slot < (int) GPU_TABLE_SLOTS; slot++) {
        if (0 == dev->table[slot]) {
            range->slot = slot;
        }
    }
    if (-1 == range->slot) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    __atomic_store_n(&dev->table[range->slot], range->id, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    struct gpu_range *range;
    struct handle h;
    struct stat st;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuIpcGetMemHandle, &ctx);
    range = gpu_range_find(ptr);
    if (NULL == handle || NULL == range || GPU_DEVICE != range->kind) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    rc = gpu_publish(range);
    if (CUDA_SUCCESS != rc || 0 != fstat(gpu_device[range->device].fd, &st)) {
        return gpu_end(CUDA_SUCCESS != rc ? rc : CUDA_ERROR_OPERATING_SYSTEM);
    }
    memset(&h, 0, sizeof(h));
    h.magic = MAGIC;
    h.pid = (int32_t) getpid();
    h.fd = gpu_device[range->device].fd;
    h.physical = (uint16_t) gpu_device[range->device].physical;
    h.inside = (uint16_t) (range->base - range->map_base);
    h.ino = st.st_ino;
    h.offset = range->file_offset;
    h.size = range->size;
    h.id = range->id;
    h.slot = (uint32_t) range->slot;
    h.check = checksum(&h);
    memcpy(handle, &h, sizeof(h));
    return gpu_end(CUDA_SUCCESS);
}

/* The exporter's file, if it is still the one, and the memory still there. */
static CUresult open_file(const struct handle *h, int *fd)
{
    char path[64];
    struct stat st;
    uint64_t id = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) h->pid, (int) h->fd);
    *fd = open(path, O_RDWR | O_CLOEXEC);
    if (-1 == *fd) {
        return CUDA_ERROR_MAP_FAILED;
    }
    if (0 != fstat(*fd, &st) || st.st_ino != h->ino
        || sizeof(id) != pread(*fd, &id, sizeof(id), (off_t) (h->slot * sizeof(id)))
        || id != h->id) {
        close(*fd);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult map(CUcontext ctx, const struct handle *h, int device, CUipcMemHandle *handle,
                    CUdeviceptr *ptr)
{
    struct gpu_range *range;
    struct gpu_range r;
    CUresult rc;
    int fd;

    rc = open_file(h, &fd);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    memset(&r, 0, sizeof(r));
    r.map_size = (h->inside + h->size + PAGE - 1) & ~(PAGE - 1);
    r.map_base = (uintptr_t) gpu_reserve(r.map_size, LARGE_PAGE);
    r.view = mmap(NULL, r.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t) h->offset);
    close(fd);
    if (0 == r.map_base || MAP_FAILED == r.view) {
        return CUDA_ERROR_MAP_FAILED;
    }
    r.view += h->inside;
    r.base = r.map_base + h->inside;
    r.size = h->size;
    r.kind = GPU_IPC;
    r.device = device;
    r.ctx = ctx;
    r.slot = -1;
    r.refs = 1;
    r.handle = *handle;
    range = gpu_range_add(&r);
    if (NULL == range) {
        munmap((void *) r.map_base, r.map_size);
        munmap(r.view - h->inside, r.map_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu_count.ipc_now++;
    *ptr = range->base;
    return CUDA_SUCCESS;
}

struct wanted {
    const CUipcMemHandle *handle;
    CUcontext ctx;
    struct gpu_range *range;
};

static bool is_opened(struct gpu_range *range, void *data)
{
    struct wanted *wanted = data;

    if (GPU_IPC == range->kind && range->ctx == wanted->ctx
        && 0 == memcmp(&range->handle, wanted->handle, sizeof(struct handle))) {
        wanted->range = range;
        return false;
    }
    return true;
}

/* Handles of one process may be opened by one context of a device only. */
static bool is_in_other_context(struct gpu_range *range, void *data)
{
    struct wanted *wanted = data;
    struct handle here, there;

    if (GPU_IPC == range->kind && range->ctx != wanted->ctx
        && range->ctx->device == wanted->ctx->device) {
        memcpy(&here, &range->handle, sizeof(here));
        memcpy(&there, wanted->handle, sizeof(there));
        if (here.pid == there.pid) {
            wanted->range = range;
            return false;
        }
    }
    return true;
}

GPU_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle,
                                          unsigned int flags)
{
    struct wanted wanted;
    struct handle h;
    CUcontext ctx;
    int device;

    GPU_BEGIN_CTX(cuIpcOpenMemHandle_v2, &ctx);
    memcpy(&h, &handle, sizeof(h));
    if (NULL == ptr || 0 != (flags & ~(unsigned) CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        || MAGIC != h.magic || checksum(&h) != h.check) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (getpid() == h.pid) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    for (device = 0; device < gpu_device_count(); device++) {
        if (gpu_device[device].physical == h.physical) {
            break;
        }
    }
    if (gpu_device_count() == device) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (device != ctx->device) {
        if (!gpu_conf.peer) {
            return gpu_end(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        if (0 != (flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) {
            ctx->peers |= 1u << device;
        }
    }
    wanted.handle = &handle;
    wanted.ctx = ctx;
    wanted.range = NULL;
    gpu_range_each(is_in_other_context, &wanted);
    if (NULL != wanted.range) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    gpu_count.ipc_opens++;
    gpu_range_each(is_opened, &wanted);
    if (NULL != wanted.range) {
        wanted.range->refs++;
        *ptr = wanted.range->base;
        return gpu_end(CUDA_SUCCESS);
    }
    return gpu_end(map(ctx, &h, device, &handle, ptr));
}

GPU_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuIpcCloseMemHandle, &ctx);
    range = gpu_range_find(ptr);
    if (NULL == range || GPU_IPC != range->kind || range->base != ptr) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (0 < --range->refs) {
        return gpu_end(CUDA_SUCCESS);
    }
    (void) gpu_drain(NULL);
    gpu_end_range(range);
    return gpu_end(CUDA_SUCCESS);
}
