/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Addresses and physical memory apart, and the one mapped to the other. */

#include "gpu.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULE (2ull << 20)

/* Each has a file of its own. Its name has the device, for importing processes. */
struct gpu_physical {
    unsigned refs; /* the handle's, and one for each mapping */
    unsigned handles;
    int fd;
    int device;
    size_t size;
    CUmemAllocationProp prop;
    struct gpu_physical *next;
};

struct reservation {
    uintptr_t base;
    size_t size;
    char *view;
    struct reservation *next;
};

static struct gpu_physical *physicals;
static struct reservation *reservations;

static struct gpu_physical *physical_of(CUmemGenericAllocationHandle handle)
{
    struct gpu_physical *p;

    for (p = physicals; NULL != p && (uintptr_t) p != handle; p = p->next) {
    }
    return NULL != p && 0 < p->handles ? p : NULL;
}

int gpu_physical_fd(const struct gpu_physical *physical)
{
    return physical->fd;
}

static void drop(struct gpu_physical *physical)
{
    struct gpu_physical **p;

    if (0 < --physical->refs) {
        return;
    }
    for (p = &physicals; *p != physical; p = &(*p)->next) {
    }
    *p = physical->next;
    gpu_device[physical->device].used -= physical->size;
    gpu_count.bytes_now -= physical->size;
    close(physical->fd);
    free(physical);
}

static struct reservation *reservation_of(uintptr_t ptr, size_t size)
{
    struct reservation *r;

    for (r = reservations; NULL != r; r = r->next) {
        if (ptr >= r->base && ptr - r->base < r->size && size <= r->size - (ptr - r->base)) {
            return r;
        }
    }
    return NULL;
}

static bool prop_is_good(const CUmemAllocationProp *prop)
{
    return NULL != prop && CU_MEM_ALLOCATION_TYPE_PINNED == (int) prop->type
           && CU_MEM_LOCATION_TYPE_DEVICE == (int) prop->location.type && 0 <= prop->location.id
           && prop->location.id < gpu_device_count();
}

GPU_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                                  const CUmemAllocationProp *prop,
                                                  CUmemAllocationGranularity_flags option)
{
    GPU_BEGIN(cuMemGetAllocationGranularity);
    if (NULL == granularity || !prop_is_good(prop) || 1 < (int) option) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *granularity = GRANULE;
    return gpu_end(CUDA_SUCCESS);
}

/* The address that the caller requests, if it is aligned and free. The driver takes it as a hint.
 */
static char *reserve_at(CUdeviceptr wanted, size_t size, size_t alignment)
{
    char *at = (char *) (uintptr_t) wanted, *got;

    if (NULL == at || 0 != wanted % alignment) {
        return NULL;
    }
    got = mmap(at, size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (MAP_FAILED == got) {
        return NULL;
    }
    if (got != at) { /* a kernel before 4.17 ignores the flag */
        munmap(got, size);
        return NULL;
    }
    return got;
}

GPU_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                        CUdeviceptr wanted, unsigned long long flags)
{
    struct reservation *r;
    char *app;

    GPU_BEGIN(cuMemAddressReserve);
    if (NULL == ptr || 0 == size || 0 != size % GRANULE || 0 != flags
        || 0 != (alignment & (alignment - 1))) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    alignment = GRANULE > alignment ? GRANULE : alignment;
    r = calloc(1, sizeof(*r));
    app = reserve_at(wanted, size, alignment);
    if (NULL == app) {
        app = gpu_reserve(size, alignment);
    }
    if (NULL == r || NULL == app) {
        free(r);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    r->view = gpu_reserve(size, GRANULE);
    if (NULL == r->view) {
        munmap(app, size);
        free(r);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    r->base = (uintptr_t) app;
    r->size = size;
    r->next = reservations;
    reservations = r;
    *ptr = r->base;
    return gpu_end(CUDA_SUCCESS);
}

struct span {
    uintptr_t base;
    size_t size;
    size_t mapped; /* bytes of mappings within it */
    bool crossed;  /* a mapping is partly in it */
    struct gpu_range *first;
};

static bool look_at(struct gpu_range *range, void *data)
{
    struct span *span = data;

    if (range->base < span->base + span->size && span->base < range->base + range->size) {
        if (NULL == span->first) {
            span->first = range;
        }
        span->mapped += range->size;
        span->crossed = span->crossed || range->base < span->base
                        || range->base + range->size > span->base + span->size;
    }
    return true;
}

static struct span span_of(uintptr_t base, size_t size)
{
    struct span span = {base, size, 0, false, NULL};

    gpu_range_each(look_at, &span);
    return span;
}

GPU_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    struct reservation **p;

    GPU_BEGIN(cuMemAddressFree);
    for (p = &reservations; NULL != *p && (*p)->base != ptr; p = &(*p)->next) {
    }
    if (NULL == *p || (*p)->size != size || 0 != span_of(ptr, size).mapped) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    {
        struct reservation *r = *p;

        *p = r->next;
        munmap((void *) r->base, r->size);
        munmap(r->view, r->size);
        free(r);
    }
    return gpu_end(CUDA_SUCCESS);
}

/* With the descriptor, which becomes its own. */
static CUresult new_physical(int fd, int device, size_t size, const CUmemAllocationProp *prop,
                             CUmemGenericAllocationHandle *handle)
{
    struct gpu_physical *p = calloc(1, sizeof(*p));

    if (NULL == p) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->refs = 1;
    p->handles = 1;
    p->fd = fd;
    p->device = device;
    p->size = size;
    p->prop = *prop;
    p->next = physicals;
    physicals = p;
    gpu_device[device].used += size;
    gpu_count.bytes_now += size;
    *handle = (uintptr_t) p;
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                                const CUmemAllocationProp *prop, unsigned long long flags)
{
    char name[32];
    CUresult rc;
    int fd;

    GPU_BEGIN(cuMemCreate);
    if (NULL == handle || 0 == size || 0 != size % GRANULE || 0 != flags || !prop_is_good(prop)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (0 != ((int) prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
        return gpu_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    if (size > gpu_conf.memory - gpu_device[prop->location.id].used) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    snprintf(name, sizeof(name), "umrddt_gpu_%d", gpu_device[prop->location.id].physical);
    fd = memfd_create(name, MFD_CLOEXEC);
    if (-1 == fd || 0 != ftruncate(fd, (off_t) size)) {
        if (-1 != fd) {
            close(fd);
        }
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    rc = new_physical(fd, prop->location.id, size, prop, handle);
    gpu_count.allocs += CUDA_SUCCESS == rc;
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct gpu_physical *p;

    GPU_BEGIN(cuMemRelease);
    p = physical_of(handle);
    if (NULL == p) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    p->handles--;
    drop(p);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct gpu_physical *p;
    struct reservation *res;
    struct gpu_range r;

    GPU_BEGIN(cuMemMap);
    p = physical_of(handle);
    res = reservation_of(ptr, size);
    if (NULL == p || NULL == res || 0 != flags || 0 == size || 0 != offset || 0 != ptr % GRANULE
        || 0 != size % GRANULE || size > p->size) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (0 != span_of(ptr, size).mapped) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    memset(&r, 0, sizeof(r));
    r.base = r.map_base = ptr;
    r.size = r.map_size = size;
    r.kind = GPU_VMM;
    r.device = p->device;
    r.view = res->view + (ptr - res->base);
    r.flags = (unsigned) p->prop.requestedHandleTypes;
    r.slot = -1;
    r.physical = p;
    if (MAP_FAILED
        == mmap(r.view, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->fd, 0)) {
        return gpu_end(CUDA_ERROR_MAP_FAILED);
    }
    if (NULL == gpu_range_add(&r)) {
        (void) mmap(r.view, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    p->refs++;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct span span;

    GPU_BEGIN(cuMemUnmap);
    (void) gpu_drain(NULL);
    span = span_of(ptr, size);
    if (NULL == reservation_of(ptr, size) || 0 == span.mapped || span.crossed) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (; NULL != span.first; span = span_of(ptr, size)) {
        struct gpu_range *range = span.first;
        struct gpu_physical *physical = range->physical;

        (void) mmap(range->view, range->size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        gpu_range_remove(range);
        drop(physical);
    }
    return gpu_end(CUDA_SUCCESS);
}

struct rights {
    struct span span;
    const CUmemAccessDesc *desc;
    size_t count;
};

static bool set_rights(struct gpu_range *range, void *data)
{
    const struct rights *rights = data;
    size_t i;

    if (range->base >= rights->span.base && range->base < rights->span.base + rights->span.size) {
        for (i = 0; i < rights->count; i++) {
            range->access[rights->desc[i].location.id] = (unsigned char) rights->desc[i].flags;
        }
    }
    return true;
}

GPU_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                                   size_t count)
{
    struct rights rights;
    size_t i;

    GPU_BEGIN(cuMemSetAccess);
    rights.span = span_of(ptr, size);
    rights.desc = desc;
    rights.count = count;
    if (NULL == desc || 0 == count || NULL == reservation_of(ptr, size)
        || size != rights.span.mapped || rights.span.crossed) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < count; i++) {
        if (CU_MEM_LOCATION_TYPE_DEVICE != (int) desc[i].location.type || 0 > desc[i].location.id
            || desc[i].location.id >= gpu_device_count()
            || (0 != (int) desc[i].flags && 1 != (int) desc[i].flags && 3 != (int) desc[i].flags)) {
            return gpu_end(CUDA_ERROR_INVALID_VALUE);
        }
    }
    gpu_range_each(set_rights, &rights);
    /* Kernels have to look again. */
    __atomic_add_fetch(&gpu_range_generation, 1, __ATOMIC_RELEASE);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                   CUdeviceptr ptr)
{
    struct gpu_range *range;

    GPU_BEGIN(cuMemGetAccess);
    range = gpu_range_find(ptr);
    if (NULL == flags || NULL == location || NULL == range || GPU_VMM != range->kind
        || 0 > location->id || location->id >= gpu_device_count()) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = range->access[location->id];
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                                 CUmemAllocationHandleType type,
                                                 unsigned long long flags)
{
    struct gpu_physical *p;
    int fd;

    GPU_BEGIN(cuMemExportToShareableHandle);
    p = physical_of(handle);
    if (NULL == shared || NULL == p || 0 != flags
        || CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR != (int) type
        || 0 == ((int) p->prop.requestedHandleTypes & (int) type)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    if (-1 == fd) {
        return gpu_end(CUDA_ERROR_OPERATING_SYSTEM);
    }
    *(int *) shared = fd;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                   void *shared, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop;
    char path[64];
    char name[64] = "";
    struct stat st;
    int physical;
    int device;
    int fd;

    GPU_BEGIN(cuMemImportFromShareableHandle);
    if (NULL == handle || CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR != (int) type) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", (int) (intptr_t) shared);
    if (-1 == readlink(path, name, sizeof(name) - 1) || 0 != stat(path, &st)
        || 1 != sscanf(name, "/memfd:umrddt_gpu_%d", &physical)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (device = 0; device < gpu_device_count(); device++) {
        if (gpu_device[device].physical == physical) {
            break;
        }
    }
    if (gpu_device_count() == device) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    fd = fcntl((int) (intptr_t) shared, F_DUPFD_CLOEXEC, 0);
    if (-1 == fd) {
        return gpu_end(CUDA_ERROR_OPERATING_SYSTEM);
    }
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return gpu_end(new_physical(fd, device, (size_t) st.st_size, &prop, handle));
}

GPU_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct gpu_range *range;

    GPU_BEGIN(cuMemRetainAllocationHandle);
    if (CUDA_SUCCESS != gpu_capture_unsafe()) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    range = gpu_range_find((uintptr_t) address);
    if (NULL == handle || NULL == range || NULL == range->physical) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    range->physical->handles++;
    range->physical->refs++;
    *handle = (uintptr_t) range->physical;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                           CUmemGenericAllocationHandle handle)
{
    struct gpu_physical *p;

    GPU_BEGIN(cuMemGetAllocationPropertiesFromHandle);
    p = physical_of(handle);
    if (NULL == prop || NULL == p) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *prop = p->prop;
    return gpu_end(CUDA_SUCCESS);
}
