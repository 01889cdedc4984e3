/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory of other processes: opened, stale, of a killed process; and as a file for other devices.
 */

#include "test_cuda.h"

#include <signal.h>
#include <sys/mman.h>

#define SIZE 10000

/* Two processes that pass the turn, and a handle, to each other. */
static int to_child[2];
static int to_parent[2];

static void put(int fd, const void *data, size_t size)
{
    CHECK((ssize_t) size == write(fd, data, size));
}

static void get(int fd, void *data, size_t size)
{
    CHECK((ssize_t) size == read(fd, data, size));
}

static void turn(int fd)
{
    put(fd, "x", 1);
}

static void await(int fd)
{
    char c;

    get(fd, &c, 1);
}

/* Is it this value, all of it? */
static int is(CUdeviceptr ptr, char value)
{
    char host[SIZE];
    size_t i;

    OK(cuMemcpyDtoH_v2(host, ptr, SIZE));
    for (i = 0; i < SIZE && value == host[i]; i++) {
    }
    return SIZE == i;
}

static void importer(void)
{
    CUipcMemHandle handle;
    CUipcMemHandle other;
    CUdeviceptr ptr;
    CUdeviceptr again;
    CUdeviceptr second;
    CUdeviceptr base;
    CUcontext primary;
    CUcontext own;
    unsigned type;
    size_t size;

    get(to_child[0], &handle, sizeof(handle));
    primary = test_begin(0);
    OK(cuIpcOpenMemHandle_v2(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(is(ptr, 1));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    CHECK(CU_MEMORYTYPE_DEVICE == type);
    OK(cuMemGetAddressRange_v2(&base, &size, ptr + 5));
    CHECK(base == ptr && SIZE <= size);
    /* Writes are visible there. */
    OK(cuMemsetD8_v2(ptr, 2, SIZE));
    OK(cuCtxSynchronize());
    /* Opened again: the same addresses, closed as often. */
    OK(cuIpcOpenMemHandle_v2(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again == ptr);
    OK(cuIpcCloseMemHandle(ptr));
    CHECK(is(ptr, 2));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ptr));
    /* Not in a second context of the device. */
    OK(cuCtxCreate_v2(&own, 0, 0));
    CHECK(CUDA_SUCCESS
          != cuIpcOpenMemHandle_v2(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxSetCurrent(primary));

    turn(to_parent[1]);
    /* The exporter frees it and allocates anew at the same address. */
    get(to_child[0], &other, sizeof(other));
    CHECK(0 != memcmp(&handle, &other, sizeof(handle)));
    OK(cuIpcOpenMemHandle_v2(&second, other, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(second != ptr && is(second, 3));
    /* An earlier mapping does not show the new memory. */
    CHECK(!is(ptr, 3));
    OK(cuIpcCloseMemHandle(ptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(ptr));
    CHECK(CUDA_SUCCESS != cuIpcOpenMemHandle_v2(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(is(second, 3));
    turn(to_parent[1]);
    /* The exporter is killed. */
    await(to_child[0]);
    CHECK(is(second, 3));
    OK(cuIpcCloseMemHandle(second));
    CHECK(CUDA_SUCCESS != cuIpcOpenMemHandle_v2(&ptr, other, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    memset(&other, 1, sizeof(other));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuIpcOpenMemHandle_v2(&ptr, other, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static void exporter(void)
{
    CUipcMemHandle handle;
    CUipcMemHandle other;
    CUdeviceptr first;
    CUdeviceptr ptr;
    void *host;

    (void) test_begin(0);
    OK(cuMemAlloc_v2(&ptr, SIZE));
    first = ptr;
    OK(cuMemsetD8_v2(ptr, 1, SIZE));
    OK(cuCtxSynchronize());
    /* Bytes that the driver does not write are unchanged. */
    memset(&handle, 0, sizeof(handle));
    memset(&other, 0, sizeof(other));
    OK(cuIpcGetMemHandle(&handle, ptr));
    OK(cuIpcGetMemHandle(&other, ptr));
    CHECK(0 == memcmp(&handle, &other, sizeof(handle)));
    CHECK(CUDA_SUCCESS != cuIpcOpenMemHandle_v2(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuMemHostAlloc(&host, 100, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&other, (uintptr_t) host));
    put(to_child[1], &handle, sizeof(handle));
    await(to_parent[0]);
    CHECK(is(first, 2));
    OK(cuMemFree_v2(first));
    OK(cuMemAlloc_v2(&ptr, SIZE));
    CHECK(ptr == first);
    OK(cuMemsetD8_v2(ptr, 3, SIZE));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, ptr));
    put(to_child[1], &handle, sizeof(handle));
    await(to_parent[0]);
    raise(SIGKILL);
}

static void between_processes(void)
{
    int status;
    pid_t child;
    pid_t other;

    CHECK(0 == pipe(to_child) && 0 == pipe(to_parent));
    other = fork();
    if (0 == other) {
        importer();
        exit(0);
    }
    child = fork();
    if (0 == child) {
        exporter();
        exit(0);
    }
    CHECK(child == waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) && SIGKILL == WTERMSIG(status));
    turn(to_child[1]);
    CHECK(other == waitpid(other, &status, 0) && 0 == status);
}

/* Events of another process: a stream here goes on when one there has come that far, and back. */
#define ROUNDS 30

static void event_owner(void)
{
    CUipcEventHandle handle;
    CUipcMemHandle memory;
    CUevent plain;
    CUevent event;
    CUevent answer;
    CUdeviceptr ptr;
    CUstream stream;
    int i;

    (void) test_begin(0);
    OK(cuMemAlloc_v2(&ptr, SIZE));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&answer, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(event));
    OK(cuIpcGetEventHandle(&handle, event));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&plain, handle));
    put(to_child[1], &handle, sizeof(handle));
    OK(cuIpcGetEventHandle(&handle, answer));
    put(to_child[1], &handle, sizeof(handle));
    OK(cuIpcGetMemHandle(&memory, ptr));
    put(to_child[1], &memory, sizeof(memory));
    for (i = 1; i <= ROUNDS; i++) {
        OK(cuMemsetD8Async(ptr, (unsigned char) i, SIZE, stream));
        OK(cuEventRecord(event, stream));
        turn(to_child[1]);
        /* It has recorded the answer, but may not have come that far. */
        await(to_parent[0]);
        OK(cuStreamWaitEvent(stream, answer, 0));
    }
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(stream));
    CHECK(is(ptr, 100));
    OK(cuEventDestroy_v2(event));
    OK(cuEventDestroy_v2(answer));
    turn(to_child[1]);
    await(to_parent[0]);
}

static void event_user(void)
{
    CUipcEventHandle handle;
    CUipcEventHandle answer_handle;
    CUipcMemHandle memory;
    CUevent event;
    CUevent answer;
    CUdeviceptr ptr;
    CUstream stream;
    void *host;
    int waited = 0;
    int i;

    (void) test_begin(1);
    get(to_child[0], &handle, sizeof(handle));
    get(to_child[0], &answer_handle, sizeof(answer_handle));
    get(to_child[0], &memory, sizeof(memory));
    OK(cuIpcOpenEventHandle(&event, handle));
    OK(cuIpcOpenEventHandle(&answer, answer_handle));
    OK(cuIpcOpenMemHandle_v2(&ptr, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(&host, SIZE, 0));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&answer_handle, event));
    for (i = 1; i <= ROUNDS; i++) {
        await(to_child[0]);
        waited += CUDA_ERROR_NOT_READY == cuEventQuery(event);
        OK(cuStreamWaitEvent(stream, event, 0));
        OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, stream));
        OK(cuMemsetD8Async(ptr, 100, SIZE, stream));
        OK(cuEventRecord(answer, stream));
        turn(to_parent[1]);
        OK(cuEventSynchronize(answer));
        CHECK(i == ((char *) host)[0] && i == ((char *) host)[SIZE - 1]);
    }
    printf("ok: events, %d of %d waited for\n", waited, ROUNDS);
    await(to_child[0]);
    /* It is gone there. */
    OK(cuEventSynchronize(event));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(&event, handle));
    memset(&handle, 3, sizeof(handle));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(&event, handle));
    OK(cuEventDestroy_v2(answer));
    turn(to_parent[1]);
}

static int events(void)
{
    int status;
    pid_t child;

    CHECK(0 == pipe(to_child) && 0 == pipe(to_parent));
    child = fork();
    CHECK(-1 != child);
    if (0 == child) {
        event_user();
        exit(0);
    }
    event_owner();
    CHECK(child == waitpid(child, &status, 0) && 0 == status);
    return 0;
}

/* A dma-buf, as the software ConnectX takes it: the file's position is where the memory begins. */
static void dmabuf(void)
{
    int supported;
    CUdeviceptr ptr;
    CUdeviceptr small;
    char *seen;
    off_t at;
    int fd = -1;

    (void) test_begin(0);
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    OK(cuMemAlloc_v2(&ptr, 4 << 20));
    if (!supported) {
        EXPECT(
            CUDA_ERROR_NOT_SUPPORTED,
            cuMemGetHandleForAddressRange(&fd, ptr, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        return;
    }
    OK(cuMemAlloc_v2(&small, 4 << 20));
    OK(cuMemsetD8_v2(ptr, 7, 4 << 20));
    OK(cuCtxSynchronize());
    OK(cuMemGetHandleForAddressRange(&fd, ptr + 8192, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                     0));
    EXPECT(
        CUDA_ERROR_INVALID_VALUE,
        cuMemGetHandleForAddressRange(&fd, ptr + 1, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    EXPECT(
        CUDA_ERROR_INVALID_VALUE,
        cuMemGetHandleForAddressRange(&fd, ptr, 8 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    at = lseek(fd, 0, SEEK_CUR);
    CHECK(-1 != at);
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    CHECK(MAP_FAILED != (void *) seen);
    CHECK(7 == seen[0]);
    memset(seen, 8, 10);
    {
        char host[20];

        OK(cuMemcpyDtoH_v2(host, ptr + 8190, 20));
        CHECK(7 == host[1] && 8 == host[2] && 8 == host[11] && 7 == host[12]);
    }
}

static int without(void)
{
    dmabuf();
    return 0;
}

int main(int argc, char **argv)
{
    if (1 < argc) {
        return 0 == strcmp(argv[1], "events") ? events() : without();
    }
    test_part("between processes", between_processes);
    test_part("dma-buf", dmabuf);
    test_again(argv, "without", "dmabuf=0");
    test_again(argv, "events", "delay=2000,seed=3");
    return 0;
}
