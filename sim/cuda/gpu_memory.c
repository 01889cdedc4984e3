/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Memory. A device's is one sparse file in memory (a memfd), of which every allocation gets a piece
 * that was never used before, so that a stale mapping of another process never shows what came
 * later. The application gets inaccessible addresses; the library sees the same pieces at
 * gpu_device.view, at the same distance for all of a device. The first bytes of the file are a
 * table of BUFFER_IDs, by which another process detects whether exported memory still exists.
 */

#include "gpu.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE       4096ul
#define LARGE_PAGE (2ul << 20)
#define FILE_SIZE  (1ull << 44)
#define POISON     (1ul << 20)

static struct gpu_range **ranges; /* by address */
static size_t range_count;
static size_t range_room;
static uint64_t last_id;

uint64_t gpu_range_generation = 1;

/* The number of ranges that begin at or below an address. */
static size_t upto(uintptr_t address)
{
    size_t low = 0;
    size_t high = range_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ranges[middle]->base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct gpu_range *gpu_range_find(uintptr_t address)
{
    size_t n = upto(address);

    return 0 < n && address - ranges[n - 1]->base < ranges[n - 1]->size ? ranges[n - 1] : NULL;
}

struct gpu_range *gpu_range_add(const struct gpu_range *range)
{
    struct gpu_range *copy = malloc(sizeof(*copy));
    size_t n;

    if (NULL == copy) {
        return NULL;
    }
    if (range_count == range_room) {
        size_t room = 0 == range_room ? 64 : 2 * range_room;
        struct gpu_range **more = realloc(ranges, room * sizeof(*more));

        if (NULL == more) {
            free(copy);
            return NULL;
        }
        ranges = more;
        range_room = room;
    }
    *copy = *range;
    copy->id = ++last_id;
    n = upto(copy->base);
    memmove(&ranges[n + 1], &ranges[n], (range_count - n) * sizeof(ranges[0]));
    ranges[n] = copy;
    range_count++;
    __atomic_add_fetch(&gpu_range_generation, 1, __ATOMIC_RELEASE);
    return copy;
}

void gpu_range_remove(struct gpu_range *range)
{
    size_t n = upto(range->base) - 1;

    memmove(&ranges[n], &ranges[n + 1], (range_count - n - 1) * sizeof(ranges[0]));
    range_count--;
    __atomic_add_fetch(&gpu_range_generation, 1, __ATOMIC_RELEASE);
    free(range);
}

void gpu_range_each(bool (*call)(struct gpu_range *range, void *data), void *data)
{
    size_t i;

    for (i = 0; i < range_count; i++) {
        if (!call(ranges[i], data)) {
            return;
        }
    }
}

char *gpu_reserve(size_t size, size_t alignment)
{
    char *all =
        mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *aligned;

    if (MAP_FAILED == all) {
        return NULL;
    }
    aligned = (char *) (((uintptr_t) all + alignment - 1) & ~(uintptr_t) (alignment - 1));
    if (aligned > all) {
        munmap(all, (size_t) (aligned - all));
    }
    munmap(aligned + size, alignment - (size_t) (aligned - all));
    return aligned;
}

/* Twice the memory, as it is cut to pieces. */
static size_t space(void)
{
    return 2 * ((gpu_conf.memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1));
}

static CUresult open_device(struct gpu_device *dev)
{
    int fd;

    if (-1 != dev->fd) {
        return CUDA_SUCCESS;
    }
    fd = memfd_create("umrddt_gpu", MFD_CLOEXEC);
    if (-1 == fd || 0 != ftruncate(fd, (off_t) FILE_SIZE)) {
        goto failed;
    }
    dev->table = mmap(NULL, GPU_TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    dev->app = gpu_reserve(space(), LARGE_PAGE);
    dev->view = gpu_reserve(space(), LARGE_PAGE);
    if (MAP_FAILED == dev->table || NULL == dev->app || NULL == dev->view) {
        goto failed;
    }
    dev->file_at = GPU_TABLE_BYTES;
    dev->fd = fd;
    return CUDA_SUCCESS;
failed:
    if (-1 != fd) {
        close(fd);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Where the application sees it, nothing is, but with the option touch. */
static bool show(const struct gpu_range *range, int fd)
{
    return !gpu_conf.touch
           || MAP_FAILED
                  != mmap((void *) range->map_base, range->map_size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, (off_t) range->file_offset);
}

static void hide(void *at, size_t size)
{
    (void) mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0);
}

/* The lowest free addresses of a device: freed ones are used again, as the driver may. */
static uintptr_t find_gap(const struct gpu_device *dev, size_t size, size_t alignment)
{
    uintptr_t at = (uintptr_t) dev->app;
    uintptr_t end = at + space();
    size_t i;

    if (!gpu_conf.reuse && 0 != dev->app_at) {
        at = (dev->app_at + alignment - 1) & ~(alignment - 1);
    }
    for (i = upto(at - 1); i < range_count && ranges[i]->base < end; i++) {
        if (ranges[i]->map_base >= at + size) {
            break;
        }
        at = (ranges[i]->map_base + ranges[i]->map_size + alignment - 1) & ~(alignment - 1);
    }
    return at + size <= end ? at : 0;
}

CUresult gpu_alloc(CUcontext ctx, int device, enum gpu_kind kind, size_t size,
                   struct gpu_range **range)
{
    struct gpu_device *dev = &gpu_device[device];
    struct gpu_range r;
    size_t inside;
    CUresult rc;

    if (0 == size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > gpu_conf.memory - dev->used) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    rc = open_device(dev);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    /* Small ones begin anywhere in a page, as on a device, which gives multiples of 512 only. */
    inside = size < PAGE ? 512 * (last_id % 8) : 0;
    memset(&r, 0, sizeof(r));
    r.map_size = (inside + size + PAGE - 1) & ~(PAGE - 1);
    if (FILE_SIZE - dev->file_at < r.map_size) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r.map_base = find_gap(dev, r.map_size, size < LARGE_PAGE / 2 ? PAGE : LARGE_PAGE);
    if (0 == r.map_base) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r.base = r.map_base + inside;
    r.size = size;
    r.kind = kind;
    r.device = device;
    r.ctx = ctx;
    r.view = dev->view + (r.base - (uintptr_t) dev->app);
    r.file_offset = dev->file_at;
    r.slot = -1;
    if (MAP_FAILED
        == mmap(r.view - inside, r.map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                dev->fd, (off_t) r.file_offset)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* Programs must not rely on zeros. */
    memset(r.view, 0xdb, size < POISON ? size : POISON);
    *range = show(&r, dev->fd) ? gpu_range_add(&r) : NULL;
    if (NULL == *range) {
        hide(r.view - inside, r.map_size);
        hide((void *) r.map_base, r.map_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    dev->file_at += r.map_size;
    if (dev->app_at < r.map_base + r.map_size) {
        dev->app_at = r.map_base + r.map_size;
    }
    dev->used += size;
    gpu_count.allocs++;
    gpu_count.bytes_now += size;
    return CUDA_SUCCESS;
}

void gpu_free(struct gpu_range *range)
{
    struct gpu_device *dev = &gpu_device[range->device];

    if (-1 != range->slot) {
        __atomic_store_n(&dev->table[range->slot], 0, __ATOMIC_RELEASE);
    }
    hide(range->view - (range->base - range->map_base), range->map_size);
    if (gpu_conf.touch) {
        hide((void *) range->map_base, range->map_size);
    }
    (void) fallocate(dev->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     (off_t) range->file_offset, (off_t) range->map_size);
    gpu_pool_left(range);
    dev->used -= range->size;
    gpu_count.bytes_now -= range->size;
    gpu_range_remove(range);
}

void gpu_end_range(struct gpu_range *range)
{
    switch (range->kind) {
    case GPU_DEVICE:
    case GPU_POOL:
        gpu_free(range);
        return;
    case GPU_MANAGED:
        gpu_device[range->device].used -= range->size;
        gpu_count.bytes_now -= range->size;
        munmap((void *) range->map_base, range->map_size);
        break;
    case GPU_HOST:
        munmap((void *) range->map_base, range->map_size);
        break;
    case GPU_IPC:
        gpu_count.ipc_now--;
        munmap(range->view - (range->base - range->map_base), range->map_size);
        munmap((void *) range->map_base, range->map_size);
        break;
    default:
        break;
    }
    gpu_range_remove(range);
}

CUresult gpu_place_find(uintptr_t address, size_t size, struct gpu_place *place)
{
    struct gpu_range *range = gpu_range_find(address);
    struct gpu_range *last = range;
    struct gpu_range *next;
    const uintptr_t begin = address;

    memset(place, 0, sizeof(*place));
    if (NULL == range) {
        /* Pageable memory must not run into a range either. */
        size_t n = upto(address);

        place->view = (char *) address;
        return n < range_count && ranges[n]->base - address < size ? CUDA_ERROR_INVALID_VALUE
                                                                   : CUDA_SUCCESS;
    }
    /* Physical memory that is mapped side by side is one piece, also of several handles. */
    while (last->size - (address - last->base) < size) {
        next = gpu_range_find(last->base + last->size);
        if (GPU_VMM != last->kind || NULL == next || GPU_VMM != next->kind
            || next->view != last->view + last->size) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        size -= last->base + last->size - address;
        address = next->base;
        last = next;
    }
    place->known = true;
    place->range = range;
    place->kind = range->kind;
    place->view = range->view + (begin - range->base);
    place->on_device = GPU_DEVICE == range->kind || GPU_POOL == range->kind
                       || GPU_VMM == range->kind || GPU_IPC == range->kind;
    place->sync = range->sync_memops;
    place->freed = range->freed;
    return CUDA_SUCCESS;
}

bool gpu_may_touch(CUcontext ctx, const struct gpu_range *range, bool write)
{
    unsigned wanted = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;

    switch (range->kind) {
    case GPU_DEVICE:
    case GPU_IPC:
        /* Each context has its own memory; green ones that of their primary context. */
        return range->device == ctx->device
                   ? NULL == range->ctx || gpu_ctx_root(range->ctx) == gpu_ctx_root(ctx)
                   : 0 != (ctx->peers & 1u << range->device);
    case GPU_POOL:
    case GPU_VMM:
        return wanted == (range->access[ctx->device] & wanted);
    default:
        return true;
    }
}

/* ---- the API ---- */

GPU_EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemGetInfo_v2, &ctx);
    if (NULL != left) {
        *left = gpu_conf.memory - gpu_device[ctx->device].used;
    }
    if (NULL != total) {
        *total = gpu_conf.memory;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
    struct gpu_range *range;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuMemAlloc_v2, &ctx);
    rc = gpu_capture_unsafe();
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    rc = NULL == ptr ? CUDA_ERROR_INVALID_VALUE
                     : gpu_alloc(ctx, ctx->device, GPU_DEVICE, size, &range);
    if (CUDA_SUCCESS == rc) {
        *ptr = range->base;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                                       unsigned int element)
{
    struct gpu_range *range;
    CUcontext ctx;
    size_t line;
    CUresult rc;

    GPU_BEGIN_CTX(cuMemAllocPitch_v2, &ctx);
    if (NULL == ptr || NULL == pitch || (4 != element && 8 != element && 16 != element)
        || 0 == width || 0 == height || width > gpu_conf.memory
        || height > gpu_conf.memory / width) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    line = (width + 511) & ~511ul;
    rc = gpu_alloc(ctx, ctx->device, GPU_DEVICE, line * height, &range);
    if (CUDA_SUCCESS == rc) {
        *ptr = range->base;
        *pitch = line;
    }
    return gpu_end(rc);
}

CUcontext gpu_range_context(const void *address)
{
    const struct gpu_range *range = gpu_range_find((uintptr_t) address);

    return NULL == range        ? NULL
           : NULL != range->ctx ? range->ctx
                                : gpu_device[range->device].primary;
}

GPU_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
    struct gpu_range *range;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_MEMORY(cuMemFree_v2, ptr, &ctx);
    if (0 == ptr) {
        return gpu_end(CUDA_SUCCESS);
    }
    /* All that was begun before has to end, wherever it was begun. */
    rc = gpu_drain(NULL);
    if (CUDA_SUCCESS != ctx->error) {
        return gpu_end(ctx->error);
    }
    (void) rc;
    range = gpu_range_find(ptr);
    if (NULL == range || range->base != ptr || range->freed
        || (GPU_DEVICE != range->kind && GPU_POOL != range->kind && GPU_MANAGED != range->kind)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    gpu_end_range(range);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
    struct gpu_range *range;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemGetAddressRange_v2, &ctx);
    gpu_count.queries++;
    range = gpu_range_find(ptr);
    if (NULL == range || range->freed) {
        return gpu_end(CUDA_ERROR_NOT_FOUND);
    }
    if (NULL != base) {
        *base = range->base;
    }
    if (NULL != size) {
        *size = range->size;
    }
    return gpu_end(CUDA_SUCCESS);
}
