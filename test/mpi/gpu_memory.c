/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "gpu_memory.h"

#include "mpitest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 64

/* Offset of the memory of GPU_INNER in its allocation, and the bytes after it. */
#define INNER_AT   1237
#define INNER_REST 771

gpu_driver_t gpu;

static int device_count;
static int own_device = -1;
static CUcontext contexts[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const kind_names[GPU_KINDS] = {"host",   "pinned", "registered", "managed",
                                                  "device", "inner",  "pool",       "vmm"};

void gpu_failed(const char *file, int line, const char *call, int error)
{
    const char *name = NULL;

    if (NULL == gpu.cuGetErrorName || CUDA_SUCCESS != gpu.cuGetErrorName(error, &name)) {
        name = "?";
    }
    mpitest_fail(file, line, "%s: error %d of the CUDA driver, %s", call, error, name);
}

/* POSIX's conversion of an object pointer to a function pointer. */
static void find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
}

static const char *load(void)
{
    static void *library;

    if (NULL == library) {
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (NULL == library) {
        return "there is no CUDA driver (libcuda.so.1)";
    }
#define FIND(name, base, version, arguments) find(library, #name, &gpu.name);
    UMRDDT_CUDA_FUNCTIONS(FIND)
#undef FIND
    if (NULL == gpu.cuInit || NULL == gpu.cuDeviceGetCount || NULL == gpu.cuDevicePrimaryCtxRetain
        || NULL == gpu.cuCtxSetCurrent) {
        return "the CUDA driver is too old";
    }
    return NULL;
}

CUcontext gpu_context(int device)
{
    CHECK(0 <= device && device < DEVICES && device < device_count);
    pthread_mutex_lock(&lock);
    if (NULL == contexts[device]) {
        CUdevice handle;

        GPU_OK(gpu.cuDeviceGet(&handle, device));
        GPU_OK(gpu.cuDevicePrimaryCtxRetain(&contexts[device], handle));
    }
    pthread_mutex_unlock(&lock);
    return contexts[device];
}

CUgreenCtx gpu_green(int device, CUcontext *ctx)
{
    CUdevResource all, some;
    CUdevResourceDesc desc;
    unsigned int count = 1;
    CUgreenCtx green = NULL;
    CUdevice handle;

    if (NULL == gpu.cuGreenCtxCreate || CUDA_SUCCESS != gpu.cuDeviceGet(&handle, device)
        || CUDA_SUCCESS != gpu.cuDeviceGetDevResource(handle, &all, CU_DEV_RESOURCE_TYPE_SM)
        || CUDA_SUCCESS != gpu.cuDevSmResourceSplitByCount(&some, &count, &all, NULL, 0, 1)
        || 1 != count || CUDA_SUCCESS != gpu.cuDevResourceGenerateDesc(&desc, &some, 1)
        || CUDA_SUCCESS
               != gpu.cuGreenCtxCreate(&green, desc, handle, CU_GREEN_CTX_DEFAULT_STREAM)) {
        return NULL;
    }
    GPU_OK(gpu.cuCtxFromGreenCtx(ctx, green));
    return green;
}

void gpu_context_set(int device, CUcontext ctx)
{
    CHECK(0 <= device && device < DEVICES && device < device_count);
    contexts[device] = ctx;
}

const char *gpu_begin(int turn)
{
    const char *why = load();
    int n = 0;

    if (NULL != why) {
        return why;
    }
    if (CUDA_SUCCESS != gpu.cuInit(0) || CUDA_SUCCESS != gpu.cuDeviceGetCount(&n) || 1 > n) {
        return "the CUDA driver finds no device";
    }
    device_count = n;
    own_device = turn % n;
    GPU_OK(gpu.cuCtxSetCurrent(gpu_context(own_device)));
    return NULL;
}

bool gpu_is_initialized(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    CUresult (*count_devices)(int *) = NULL;
    CUresult rc = CUDA_ERROR_NOT_INITIALIZED;
    int n = 0;

    if (NULL == library) {
        return false;
    }
    find(library, "cuDeviceGetCount", &count_devices);
    if (NULL != count_devices) {
        rc = count_devices(&n);
    }
    dlclose(library);
    return CUDA_ERROR_NOT_INITIALIZED != rc;
}

void gpu_begin_all(void)
{
    const char *why = gpu_begin(mpitest.rank);
    int have = NULL == why, all = 0;

    MPI_OK(MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (!all) {
        mpitest_skip(NULL == why ? "a rank has no CUDA driver or device" : why);
    }
}

int gpu_device_count(void)
{
    return device_count;
}

int gpu_device(void)
{
    return own_device;
}

void gpu_device_set(int device)
{
    CHECK(0 <= device && device < device_count);
    own_device = device;
}

const char *gpu_kind_name(gpu_kind_t kind)
{
    return kind < GPU_KINDS ? kind_names[kind] : "?";
}

gpu_kind_t gpu_kind_find(const char *name, size_t length)
{
    int kind = 0;

    while (
        kind < GPU_KINDS
        && (strlen(kind_names[kind]) != length || 0 != strncmp(kind_names[kind], name, length))) {
        ++kind;
    }
    return (gpu_kind_t) kind;
}

bool gpu_kind_is_cpus(gpu_kind_t kind)
{
    return GPU_HOST == kind || GPU_PINNED == kind || GPU_REGISTERED == kind;
}

static bool has_attribute(CUdevice_attribute attribute)
{
    CUdevice device;
    int value = 0;

    return CUDA_SUCCESS == gpu.cuDeviceGet(&device, own_device)
           && CUDA_SUCCESS == gpu.cuDeviceGetAttribute(&value, attribute, device) && 0 != value;
}

bool gpu_kind_available(gpu_kind_t kind)
{
    if (GPU_HOST == kind) {
        return true;
    }
    if (0 > own_device) {
        return false;
    }
    switch (kind) {
    case GPU_MANAGED:
        return has_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    case GPU_POOL:
        return NULL != gpu.cuMemAllocAsync
               && has_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    case GPU_VMM:
        return NULL != gpu.cuMemCreate
               && has_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    default:
        return true;
    }
}

int gpu_kinds_of(const char *list, gpu_kind_t *kinds)
{
    bool wanted[GPU_KINDS] = {false};
    int kind, n = 0;

    for (;;) {
        size_t length = strcspn(list, ",");
        bool all = 3 == length && 0 == strncmp(list, "all", length);
        bool gpus = 3 == length && 0 == strncmp(list, "gpu", length);
        gpu_kind_t one = gpu_kind_find(list, length);

        if (!all && !gpus && GPU_KINDS == one) {
            return 0;
        }
        for (kind = 0; kind < GPU_KINDS; ++kind) {
            wanted[kind] = wanted[kind] || all || (int) one == kind
                           || (gpus && !gpu_kind_is_cpus((gpu_kind_t) kind));
        }
        if ('\0' == list[length]) {
            break;
        }
        list += length + 1;
    }
    for (kind = 0; kind < GPU_KINDS; ++kind) {
        if (wanted[kind] && gpu_kind_available((gpu_kind_t) kind)) {
            kinds[n++] = (gpu_kind_t) kind;
        }
    }
    return n;
}

/* Two pieces of physical memory side by side, as allocators make it that grow; the buffer is in
 * both. */
static void make_mapped(gpu_memory_t *memory, size_t bytes, void *hint)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    size_t granularity = 0, half, i;
    CUdeviceptr ptr = 0, wanted = (uintptr_t) hint;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = memory->device;
    GPU_OK(
        gpu.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    half = (bytes + granularity - 1) / granularity * granularity;
    memory->room = 2 * half;
    GPU_OK(gpu.cuMemAddressReserve(&ptr, memory->room, 0, wanted, 0));
    for (i = 0; i < 2; ++i) {
        GPU_OK(gpu.cuMemCreate(&memory->handle[i], half, &prop, 0));
        GPU_OK(gpu.cuMemMap(ptr + i * half, half, 0, memory->handle[i], 0));
    }
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    GPU_OK(gpu.cuMemSetAccess(ptr, memory->room, &access, 1));
    memory->base = (unsigned char *) (uintptr_t) ptr;
    memory->addr = memory->base + half - bytes / 2 / 256 * 256;
}

static void make_inner(gpu_memory_t *memory, size_t bytes)
{
    CUdeviceptr ptr = 0;

    memory->room = INNER_AT + bytes + INNER_REST;
    GPU_OK(gpu.cuMemAlloc_v2(&ptr, memory->room));
    GPU_OK(gpu.cuMemsetD8_v2(ptr, 0x3c, memory->room));
    memory->base = (unsigned char *) (uintptr_t) ptr;
    memory->addr = memory->base + INNER_AT;
}

static gpu_memory_t *make(int device, gpu_kind_t kind, size_t bytes, void *hint)
{
    gpu_memory_t *memory = calloc(1, sizeof(*memory));
    size_t room = 0 == bytes ? 1 : bytes;
    CUdeviceptr ptr = 0;
    void *host = NULL;
    CUcontext was;

    CHECK(NULL != memory);
    memory->kind = kind;
    memory->bytes = bytes;
    memory->device = device;
    if (GPU_HOST == kind) {
        memory->base = memory->addr = malloc(room);
        CHECK(NULL != memory->base);
        return memory;
    }
    GPU_OK(gpu.cuCtxPushCurrent_v2(gpu_context(device)));
    switch (kind) {
    case GPU_PINNED:
        GPU_OK(gpu.cuMemHostAlloc(&host, room, CU_MEMHOSTALLOC_PORTABLE));
        break;
    case GPU_REGISTERED:
        host = malloc(room);
        CHECK(NULL != host);
        GPU_OK(gpu.cuMemHostRegister_v2(host, room, CU_MEMHOSTREGISTER_PORTABLE));
        break;
    case GPU_MANAGED:
        GPU_OK(gpu.cuMemAllocManaged(&ptr, room, CU_MEM_ATTACH_GLOBAL));
        break;
    case GPU_DEVICE:
        GPU_OK(gpu.cuMemAlloc_v2(&ptr, room));
        break;
    case GPU_INNER:
        make_inner(memory, bytes);
        break;
    case GPU_POOL:
        GPU_OK(gpu.cuMemAllocAsync(&ptr, room, NULL));
        /* In order with the stream; MPI is given it when it is there. */
        GPU_OK(gpu.cuStreamSynchronize(NULL));
        break;
    case GPU_VMM:
        make_mapped(memory, room, hint);
        break;
    default:
        mpitest_fail(__FILE__, __LINE__, "no kind of memory: %d", (int) kind);
    }
    if (NULL == memory->base) {
        memory->base = NULL != host ? host : (void *) (uintptr_t) ptr;
        memory->room = room;
    }
    if (NULL == memory->addr) {
        memory->addr = memory->base;
    }
    GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
    return memory;
}

gpu_memory_t *gpu_memory_on(int device, gpu_kind_t kind, size_t bytes)
{
    return make(device, kind, bytes, NULL);
}

gpu_memory_t *gpu_memory(gpu_kind_t kind, size_t bytes)
{
    return make(own_device, kind, bytes, NULL);
}

gpu_memory_t *gpu_memory_mapped_at(void *hint, size_t bytes)
{
    return make(own_device, GPU_VMM, bytes, hint);
}

/* The bytes beside the memory must be unchanged. */
static void check_inner(const gpu_memory_t *memory)
{
    unsigned char around[INNER_AT + INNER_REST];
    size_t i;

    GPU_OK(gpu.cuMemcpyDtoH_v2(around, (uintptr_t) memory->base, INNER_AT));
    GPU_OK(gpu.cuMemcpyDtoH_v2(around + INNER_AT,
                               (uintptr_t) memory->base + memory->room - INNER_REST, INNER_REST));
    for (i = 0; i < sizeof(around); ++i) {
        CHECK(0x3c == around[i]);
    }
}

void gpu_memory_free(gpu_memory_t *memory)
{
    CUdeviceptr ptr = (uintptr_t) memory->base;
    CUcontext was;

    if (GPU_HOST == memory->kind) {
        free(memory->base);
        free(memory);
        return;
    }
    GPU_OK(gpu.cuCtxPushCurrent_v2(gpu_context(memory->device)));
    switch (memory->kind) {
    case GPU_PINNED:
        GPU_OK(gpu.cuMemFreeHost(memory->base));
        break;
    case GPU_REGISTERED:
        GPU_OK(gpu.cuMemHostUnregister(memory->base));
        free(memory->base);
        break;
    case GPU_POOL:
        GPU_OK(gpu.cuMemFreeAsync(ptr, NULL));
        GPU_OK(gpu.cuStreamSynchronize(NULL));
        break;
    case GPU_VMM:
        GPU_OK(gpu.cuMemUnmap(ptr, memory->room));
        GPU_OK(gpu.cuMemRelease(memory->handle[0]));
        GPU_OK(gpu.cuMemRelease(memory->handle[1]));
        GPU_OK(gpu.cuMemAddressFree(ptr, memory->room));
        break;
    case GPU_INNER:
        check_inner(memory);
        GPU_OK(gpu.cuMemFree_v2(ptr));
        break;
    default:
        GPU_OK(gpu.cuMemFree_v2(ptr));
        break;
    }
    GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
    free(memory);
}

void gpu_write(gpu_memory_t *memory, size_t offset, const void *from, size_t bytes)
{
    CUcontext was;

    CHECK(offset <= memory->bytes && bytes <= memory->bytes - offset);
    if (gpu_kind_is_cpus(memory->kind)) {
        memcpy(memory->addr + offset, from, bytes);
    } else if (0 < bytes) {
        GPU_OK(gpu.cuCtxPushCurrent_v2(gpu_context(memory->device)));
        GPU_OK(gpu.cuMemcpyHtoD_v2((uintptr_t) memory->addr + offset, from, bytes));
        /* A copy from pageable memory may return before its end. */
        GPU_OK(gpu.cuStreamSynchronize(NULL));
        GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
    }
}

void gpu_read(const gpu_memory_t *memory, size_t offset, void *to, size_t bytes)
{
    CUcontext was;

    CHECK(offset <= memory->bytes && bytes <= memory->bytes - offset);
    if (gpu_kind_is_cpus(memory->kind)) {
        memcpy(to, memory->addr + offset, bytes);
    } else if (0 < bytes) {
        GPU_OK(gpu.cuCtxPushCurrent_v2(gpu_context(memory->device)));
        GPU_OK(gpu.cuMemcpyDtoH_v2(to, (uintptr_t) memory->addr + offset, bytes));
        GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
    }
}
