/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory in the order of streams, and addresses apart from memory. */

#include "test_cuda.h"

#include <sched.h>

#define GRANULE (2ul << 20)

static int gate;

static void wait_gate(void *data)
{
    (void) data;
    while (0 == __atomic_load_n(&gate, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static unsigned long long attribute(CUpointer_attribute which, CUdeviceptr ptr)
{
    unsigned long long value = 0;

    OK(cuPointerGetAttribute(&value, which, ptr));
    return value;
}

static void stream_ordered(void)
{
    CUmemoryPool pool;
    CUmemoryPool of;
    CUdeviceptr ptr;
    CUdeviceptr second;
    CUstream stream;
    CUipcMemHandle handle;
    unsigned on = 1;
    char host[100];
    unsigned type;

    (void) test_begin(0);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&ptr, 100, stream));
    OK(cuMemsetD8Async(ptr, 4, 100, stream));
    OK(cuMemcpyDtoHAsync_v2(host, ptr, 100, stream));
    CHECK(4 == host[99]);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ptr));
    CHECK(of == pool);
    CHECK(CU_MEMORYTYPE_DEVICE == attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    CHECK(0 == attribute(CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
    CHECK(0 == attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr));
    CHECK(CUDA_SUCCESS != cuIpcGetMemHandle(&handle, ptr));
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
    /* It exists until the stream reaches its end; work that was begun before can use it. */
    OK(cuLaunchHostFunc(stream, wait_gate, NULL));
    OK(cuMemsetD8Async(ptr, 9, 100, stream));
    OK(cuMemFreeAsync(ptr, stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(ptr, stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(ptr, 1, 100, stream));
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    OK(cuMemAlloc_v2(&second, 100));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(second, stream));
    OK(cuMemAllocAsync(&ptr, 100, stream));
    OK(cuMemFree_v2(ptr));
}

static void own_pool(void)
{
    CUmemPoolProps props;
    CUmemoryPool pool;
    CUmemoryPool of;
    CUdeviceptr ptr;
    cuuint64_t used;

    (void) test_begin(0);
    memset(&props, 0, sizeof(props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemAllocAsync(&ptr, 5000, NULL));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ptr));
    CHECK(of == pool);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    CHECK(5000 <= used);
    OK(cuMemFreeAsync(ptr, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemPoolDestroy(pool));
    OK(cuDeviceGetDefaultMemPool(&of, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(of));
    OK(cuMemAllocAsync(&ptr, 10, NULL));
    OK(cuMemFreeAsync(ptr, NULL));
}

/* Copies need the right to memory of a pool, which allocations of a context do not need. */
static void rights(void)
{
    CUmemAccessDesc access;
    CUmemoryPool pool;
    CUcontext ctx[2];
    CUdeviceptr there;
    CUdeviceptr ptr;
    CUdeviceptr own;
    char byte = 0;
    int count = 0;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    if (2 > count) {
        return;
    }
    OK(cuDevicePrimaryCtxRetain(&ctx[1], 1));
    ctx[0] = test_begin(0);
    OK(cuMemAlloc_v2(&there, 100));
    OK(cuMemAllocAsync(&ptr, 100, NULL));
    OK(cuMemsetD8_v2(ptr, 5, 100));
    OK(cuMemsetD8_v2(there, 4, 100));
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(ctx[1]));
    OK(cuMemAlloc_v2(&own, 100));
    OK(cuMemcpy(own, there, 100));
    OK(cuMemcpyDtoH_v2(&byte, own, 1));
    CHECK(4 == byte);
    CHECK(CUDA_SUCCESS != cuMemcpyAsync(own, ptr, 100, NULL));
    CHECK(CUDA_SUCCESS != cuMemcpyAsync(ptr, own, 100, NULL));
    OK(cuMemcpyPeer(own, ctx[1], ptr, ctx[0], 100));
    OK(cuMemcpyDtoH_v2(&byte, own, 1));
    CHECK(5 == byte);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    memset(&access, 0, sizeof(access));
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = 1;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemcpyAsync(ptr, own, 100, NULL));
    OK(cuMemcpyAsync(own, ptr, 100, NULL));
    OK(cuCtxSynchronize());
}

/* Two pieces of memory side by side, seen as one; one of them at another address, too. */
static void mapped(void)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle handle[2];
    CUmemGenericAllocationHandle import;
    unsigned char host[8];
    CUdeviceptr ptr;
    CUdeviceptr other;
    CUdeviceptr base;
    size_t granularity;
    size_t size;
    unsigned type;
    int fd;

    (void) test_begin(0);
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(GRANULE == granularity);
    OK(cuMemCreate(&handle[0], GRANULE, &prop, 0));
    OK(cuMemCreate(&handle[1], GRANULE, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&import, 4096, &prop, 0));
    OK(cuMemAddressReserve(&ptr, 4 * GRANULE, 0, 0, 0));
    OK(cuMemMap(ptr, GRANULE, 0, handle[0], 0));
    OK(cuMemMap(ptr + GRANULE, GRANULE, 0, handle[1], 0));
    CHECK(CUDA_SUCCESS != cuMemMap(ptr, GRANULE, 0, handle[1], 0));
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(ptr, 2 * GRANULE, &access, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(ptr, 3 * GRANULE, &access, 1));
    OK(cuMemsetD8_v2(ptr, 3, 2 * GRANULE));
    OK(cuMemcpyDtoH_v2(host, ptr + GRANULE - 4, 8));
    CHECK(3 == host[0] && 3 == host[7]);
    /* Across the border, and no place else. */
    OK(cuMemsetD8_v2(ptr + GRANULE - 2, 6, 4));
    OK(cuMemcpyDtoH_v2(host, ptr + GRANULE - 4, 8));
    CHECK(3 == host[1] && 6 == host[2] && 6 == host[5] && 3 == host[6]);
    OK(cuMemcpyDtoH_v2(host, ptr, 1));
    CHECK(3 == host[0]);
    OK(cuMemsetD8_v2(ptr, 3, 2 * GRANULE));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, ptr + 2 * GRANULE - 4, 8));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr + 5));
    CHECK(CU_MEMORYTYPE_DEVICE == type);
    CHECK(attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr)
          != attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr + GRANULE));
    CHECK(1 == (attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, ptr) & 0xff));
    OK(cuMemGetAddressRange_v2(&base, &size, ptr + GRANULE + 9));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ptr));
    /* By a descriptor, as another process would. */
    OK(cuMemExportToShareableHandle(&fd, handle[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&import, (void *) (intptr_t) fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    OK(cuMemAddressReserve(&other, GRANULE, 0, 0, 0));
    OK(cuMemMap(other, GRANULE, 0, import, 0));
    OK(cuMemSetAccess(other, GRANULE, &access, 1));
    OK(cuMemsetD8_v2(other, 8, 10));
    OK(cuMemcpyDtoH_v2(host, ptr + GRANULE + 8, 4));
    CHECK(8 == host[1] && 3 == host[2]);
    /* Memory lives as long as it is mapped. */
    OK(cuMemRelease(handle[0]));
    OK(cuMemRelease(handle[1]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle[1]));
    OK(cuMemcpyDtoH_v2(host, ptr, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(ptr, 4 * GRANULE));
    OK(cuMemUnmap(ptr, 2 * GRANULE));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, ptr, 4));
    OK(cuMemAddressFree(ptr, 4 * GRANULE));
    OK(cuMemUnmap(other, GRANULE));
    OK(cuMemRelease(import));
    OK(cuMemAddressFree(other, GRANULE));
    /* The hint is followed if the address is free. */
    OK(cuMemAddressReserve(&ptr, GRANULE, 0, other, 0));
    CHECK(other == ptr);
    OK(cuMemAddressReserve(&ptr, GRANULE, 0, other, 0));
    CHECK(other != ptr);
    OK(cuMemAddressFree(ptr, GRANULE));
    OK(cuMemAddressFree(other, GRANULE));
}

int main(void)
{
    test_part("stream-ordered memory", stream_ordered);
    test_part("a pool", own_pool);
    test_part("rights to a pool", rights);
    test_part("mapped memory", mapped);
    return 0;
}
