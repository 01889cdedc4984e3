/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory: access by CPU and devices, its attributes, and refused calls. */

#include "test_cuda.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096ul

static sigjmp_buf fault;

static void on_fault(int signal)
{
    (void) signal;
    siglongjmp(fault, 1);
}

/* Does the CPU die of reading here? */
static int cpu_faults(CUdeviceptr ptr)
{
    struct sigaction action;
    struct sigaction old;
    volatile int faulted = 1;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, &old);
    if (0 == sigsetjmp(fault, 1)) {
        (void) *(volatile char *) (uintptr_t) ptr;
        faulted = 0;
    }
    sigaction(SIGSEGV, &old, NULL);
    return faulted;
}

static unsigned attribute(CUpointer_attribute which, CUdeviceptr ptr)
{
    unsigned long long value = 0; /* the longest of the queried attributes */

    OK(cuPointerGetAttribute(&value, which, ptr));
    return (unsigned) value;
}

/* Without cuInit and without a context. */
static void nothing_yet(void)
{
    CUdeviceptr ptr;
    CUcontext ctx;
    int count;

    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&ptr, 100));
    OK(cuDriverGetVersion(&count));
    CHECK(11000 <= count);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(1 <= count);
    OK(cuCtxGetCurrent(&ctx));
    CHECK(NULL == ctx);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&ptr, 100));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&ctx));
    /* A child of a process that has initialized has no driver. */
    if (0 == fork()) {
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
        _exit(0);
    }
    CHECK(0 < wait(&count) && 0 == count);
}

static void device_memory(void)
{
    CUcontext ctx = test_begin(0);
    char host[3000];
    CUdeviceptr ptr;
    CUdeviceptr base;
    CUcontext of;
    size_t size;
    size_t left;
    size_t total;
    void *where;
    int ordinal = 7;
    size_t i;

    OK(cuMemAlloc_v2(&ptr, sizeof(host)));
    CHECK(0 == ptr % 256);
    CHECK(cpu_faults(ptr) && cpu_faults(ptr + sizeof(host) - 1));
    for (i = 0; i < sizeof(host); i++) {
        host[i] = (char) i;
    }
    OK(cuMemcpyHtoD_v2(ptr, host, sizeof(host)));
    memset(host, 0, sizeof(host));
    OK(cuMemcpyDtoH_v2(host, ptr, sizeof(host)));
    for (i = 0; i < sizeof(host); i++) {
        CHECK((char) i == host[i]);
    }
    OK(cuMemcpyDtoH_v2(host, ptr + 77, 1));
    CHECK(77 == host[0]);

    CHECK(CU_MEMORYTYPE_DEVICE == attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr + 9));
    CHECK(0 == attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr));
    CHECK(1 == attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr));
    CHECK(0 == ordinal);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
    CHECK(ctx == of);
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ptr + 5));
    CHECK(base == ptr);
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ptr + 5));
    CHECK(sizeof(host) == size);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&where, CU_POINTER_ATTRIBUTE_HOST_POINTER, ptr));
    OK(cuMemGetAddressRange_v2(&base, &size, ptr + 1234));
    CHECK(base == ptr && sizeof(host) == size);
    OK(cuMemGetInfo_v2(&left, &total));
    CHECK(left < total);

    /* Beyond its end, in its middle, twice, unknown. */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, ptr + 10, sizeof(host)));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ptr + 256));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&base, 0));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&base, total + 1));
    OK(cuMemFree_v2(ptr));
    OK(cuMemFree_v2(0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, ptr, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
}

/* The same address again is other memory. */
static void buffer_ids(void)
{
    unsigned long long id;
    unsigned long long last = 0;
    CUdeviceptr first = 0;
    CUdeviceptr ptr;
    int same = 0;
    int i;

    (void) test_begin(0);
    for (i = 0; i < 20; i++) {
        OK(cuMemAlloc_v2(&ptr, 4 << 20));
        same += ptr == first;
        first = 0 == i ? ptr : first;
        OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
        CHECK(id > last);
        last = id;
        OK(cuMemFree_v2(ptr));
    }
    CHECK(10 < same);
}

/* Many live side by side, those that were freed in between too. */
static void many(void)
{
    enum {
        COUNT = 200
    };
    CUdeviceptr ptr[COUNT];
    unsigned host;
    unsigned i;
    unsigned round;

    (void) test_begin(0);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < COUNT; i++) {
            if (0 == round || 0 == i % (round + 1)) {
                OK(cuMemAlloc_v2(&ptr[i], 4 + 100 * (size_t) (i % 90)));
                OK(cuMemsetD32_v2(ptr[i], i, 1));
            }
        }
        for (i = 0; i < COUNT; i++) {
            OK(cuMemcpyDtoH_v2(&host, ptr[i], 4));
            CHECK(i == host);
            if (0 == i % (round + 2)) {
                OK(cuMemFree_v2(ptr[i]));
            }
        }
    }
}

/* All at once, and of unknown pointers. */
static void many_attributes(void)
{
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,  CU_POINTER_ATTRIBUTE_BUFFER_ID,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,   CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    CUcontext ctx = test_begin(0);
    unsigned type;
    unsigned long long id;
    unsigned managed;
    CUcontext of;
    void *host;
    CUmemoryPool pool;
    void *data[] = {&type, &id, &managed, &of, &host, &pool};
    int local = 0;
    CUdeviceptr ptr;

    OK(cuMemAlloc_v2(&ptr, 100));
    type = 99;
    OK(cuPointerGetAttributes(6, which, data, ptr + 1));
    CHECK(CU_MEMORYTYPE_DEVICE == type && 0 != id && 0 == managed && ctx == of && NULL == host
          && NULL == pool);
    type = 99;
    of = ctx;
    OK(cuPointerGetAttributes(6, which, data, (uintptr_t) &local));
    CHECK(0 == type && 0 == id && 0 == managed && NULL == of && NULL == host);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t) &local));
    /* A query needs no context. */
    OK(cuCtxSetCurrent(NULL));
    OK(cuPointerGetAttributes(6, which, data, ptr));
    CHECK(CU_MEMORYTYPE_DEVICE == type && ctx == of);
}

/* Attributes of a range of managed memory without advice. */
static void range_attributes(void)
{
    CUdeviceptr managed, device;
    int value[3] = {7, 7, 7}, one = 7;

    (void) test_begin(0);
    OK(cuMemAllocManaged(&managed, 10000, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAlloc_v2(&device, 10000));
    OK(cuMemRangeGetAttribute(&one, sizeof(one), CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                              managed, 10000));
    CHECK(-2 == one);
    one = 7;
    OK(cuMemRangeGetAttribute(&one, sizeof(one), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                              managed + 8, 9992));
    CHECK(-2 == one);
    OK(cuMemRangeGetAttribute(&one, sizeof(one), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 1));
    CHECK(0 == one);
    OK(cuMemRangeGetAttribute(value, 2 * sizeof(one), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed,
                              10000));
    CHECK(-2 == value[0] && -2 == value[1] && 7 == value[2]);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRangeGetAttribute(value, 8, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed,
                                  10000));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRangeGetAttribute(value, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, 10000));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRangeGetAttribute(&one, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 10001));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRangeGetAttribute(&one, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRangeGetAttribute(&one, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device, 100));
    EXPECT(
        CUDA_ERROR_INVALID_VALUE,
        cuMemRangeGetAttribute(&one, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, (uintptr_t) &one, 4));
}

static void host_memory(void)
{
    char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr device;
    CUdeviceptr ptr;
    void *host;
    unsigned flags;

    (void) test_begin(0);
    OK(cuMemHostAlloc(&host, 5000, CU_MEMHOSTALLOC_PORTABLE));
    memset(host, 5, 5000);
    CHECK(CU_MEMORYTYPE_HOST == attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t) host + 1));
    CHECK(0 == attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, (uintptr_t) host));
    OK(cuMemHostGetDevicePointer_v2(&device, host, 0));
    CHECK((uintptr_t) host == device);
    OK(cuMemHostGetFlags(&flags, host));
    CHECK(0 != (flags & CU_MEMHOSTALLOC_PORTABLE));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2((uintptr_t) host));
    OK(cuMemFreeHost(host));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));

    CHECK(MAP_FAILED != (void *) pages);
    OK(cuMemHostRegister_v2(pages + PAGE, 2 * PAGE, 0));
    CHECK(CU_MEMORYTYPE_HOST
          == attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t) pages + PAGE));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t) pages));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(pages + PAGE, PAGE, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
    OK(cuMemHostUnregister(pages + PAGE));
    munmap(pages, 4 * PAGE);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(pages, PAGE, 0));

    OK(cuMemAllocManaged(&ptr, 9000, CU_MEM_ATTACH_GLOBAL));
    CHECK(!cpu_faults(ptr) && !cpu_faults(ptr + 8999));
    CHECK(1 == attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr));
    CHECK(CU_MEMORYTYPE_DEVICE == attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    *(volatile char *) (uintptr_t) ptr = 3;
    OK(cuMemFree_v2(ptr));
}

static void contexts(void)
{
    CUcontext ctx = test_begin(0);
    CUcontext other;
    CUcontext got;
    CUdeviceptr ptr;
    static char registered[100];
    unsigned flags;
    void *host;
    int active;
    int device;

    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxGetCurrent(&got));
    CHECK(other == got && other != ctx);
    OK(cuMemAlloc_v2(&ptr, 100));
    OK(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostRegister_v2(registered, sizeof(registered), 0));
    OK(cuCtxPopCurrent_v2(&got));
    CHECK(other == got);
    OK(cuCtxGetCurrent(&got));
    CHECK(ctx == got);
    OK(cuCtxGetDevice(&device));
    CHECK(0 == device);
    OK(cuCtxDestroy_v2(other));
    /* Its memory is gone with it. */
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t) host));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
    OK(cuMemHostRegister_v2(registered, sizeof(registered), 0));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(other));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(1 == active);
    OK(cuMemAlloc_v2(&ptr, 100));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(0 == active);
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&ptr, 100));
}

static void by_name(void)
{
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUdriverProcAddressQueryResult status;
    const char *text;
    void *function;
    CUdeviceptr ptr;

    (void) test_begin(0);
    OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
    CHECK(CU_GET_PROC_ADDRESS_SUCCESS == (int) status);
    alloc = (CUresult(*)(CUdeviceptr *, size_t)) function;
    OK(alloc(&ptr, 100));
    OK(cuMemFree_v2(ptr));
    (void) cuGetProcAddress_v2("cuNoSuchFunction", &function, 12000, 0, &status);
    CHECK(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND == (int) status && NULL == function);
    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(0 == strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult) 12345, &text));
}

/* ---- with options of the software driver ---- */

static int no_devices(void)
{
    EXPECT(CUDA_ERROR_NO_DEVICE, cuInit(0));
    return 0;
}

static int four_devices(void)
{
    int n;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    CHECK(4 == n);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&n, 4));
    OK(cuDeviceCanAccessPeer(&n, 0, 3));
    CHECK(0 == n);
    return 0;
}

static int faults(void)
{
    CUdeviceptr ptr;
    int n;

    EXPECT(CUDA_ERROR_UNKNOWN, cuInit(0));
    (void) test_begin(0);
    OK(cuMemAlloc_v2(&ptr, 100));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, 100));
    OK(cuMemAlloc_v2(&ptr, 100));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetCount(&n));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetCount(&n));
    /* The first copy breaks the context for good. */
    OK(cuMemcpyHtoDAsync_v2(ptr, &n, 4, NULL));
    EXPECT(CUDA_ERROR_ECC_UNCORRECTABLE, cuStreamSynchronize(NULL));
    EXPECT(CUDA_ERROR_ECC_UNCORRECTABLE, cuMemAlloc_v2(&ptr, 100));
    EXPECT(CUDA_ERROR_ECC_UNCORRECTABLE, cuMemFree_v2(ptr));
    return 0;
}

/* A device reads the CPU's writes, and the reverse; until it is freed. */
static int touched(void)
{
    CUdeviceptr ptr;
    int *there;
    int n = 5;

    (void) test_begin(0);
    OK(cuMemAlloc_v2(&ptr, 10000));
    there = (int *) (uintptr_t) ptr;
    there[2000] = 7;
    OK(cuMemcpyDtoH_v2(&n, ptr + 8000, 4));
    CHECK(7 == n);
    OK(cuMemsetD8_v2(ptr, 0x11, 10000));
    OK(cuCtxSynchronize());
    CHECK(0x11111111 == there[0] && 0x11111111 == there[2499]);
    OK(cuMemFree_v2(ptr));
    CHECK(cpu_faults(ptr));
    return 0;
}

static int bad_option(void)
{
    EXPECT(CUDA_ERROR_SYSTEM_NOT_READY, cuInit(0));
    return 0;
}

int main(int argc, char **argv)
{
    if (1 < argc) {
        return 0 == strcmp(argv[1], "none")    ? no_devices()
               : 0 == strcmp(argv[1], "four")  ? four_devices()
               : 0 == strcmp(argv[1], "fault") ? faults()
               : 0 == strcmp(argv[1], "touch") ? touched()
                                               : bad_option();
    }
    test_part("before the beginning", nothing_yet);
    test_part("device memory", device_memory);
    test_part("buffer ids", buffer_ids);
    test_part("many", many);
    test_part("attributes of ranges", range_attributes);
    test_part("many attributes", many_attributes);
    test_part("system memory", host_memory);
    test_part("contexts", contexts);
    test_part("functions by name", by_name);
    test_again(argv, "none", "devices=0");
    test_again(argv, "four", "devices=4,peer=0");
    test_again(argv, "fault",
               "fail=cuInit:1:999,faults=alloc:2;copy:1:214,fail=cuDeviceGetCount:*:801");
    test_again(argv, "touch", "touch=1");
    test_again(argv, "bad", "nonsense=1");
    test_again(argv, "bad", "devices=17");
    test_again(argv, "bad", "fail=cuNothing:1:1");
    return 0;
}
