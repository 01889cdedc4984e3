/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Streams, events and copies: ordered and unordered work, waits, and every byte. */

#include "test_cuda.h"

#include <sched.h>

#define SIZE 4096

/* Holds a stream until it is let go. */
static int gate;

static void wait_gate(void *data)
{
    (void) data;
    while (0 == __atomic_load_n(&gate, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static void open_gate(void)
{
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
}

static void *pinned(size_t size)
{
    void *p;

    OK(cuMemHostAlloc(&p, size, 0));
    memset(p, 0, size);
    return p;
}

static CUdeviceptr device(size_t size)
{
    CUdeviceptr p;

    OK(cuMemAlloc_v2(&p, size));
    OK(cuMemsetD8_v2(p, 0, size));
    OK(cuCtxSynchronize());
    return p;
}

/* Work behind a gate has not run, and the calls have returned nevertheless. */
static void asynchronous(void)
{
    CUdeviceptr ptr;
    CUstream stream;
    CUstream other;
    CUevent event;
    char *host;

    (void) test_begin(0);
    host = pinned(SIZE);
    ptr = device(SIZE);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(event));
    OK(cuLaunchHostFunc(stream, wait_gate, NULL));
    OK(cuMemsetD8Async(ptr, 9, SIZE, stream));
    OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, stream));
    OK(cuEventRecord(event, stream));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    CHECK(0 == host[0]);
    /* A stream of its own goes on, one that waits for the event does not. */
    OK(cuStreamSynchronize(other));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuMemsetD8Async(ptr, 4, SIZE, other));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    open_gate();
    OK(cuEventSynchronize(event));
    CHECK(9 == host[0] && 9 == host[SIZE - 1]);
    OK(cuStreamSynchronize(other));
    OK(cuStreamQuery(stream));
    OK(cuMemcpyDtoH_v2(host, ptr, SIZE));
    CHECK(4 == host[SIZE - 1]);
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
    OK(cuStreamDestroy_v2(other));
}

/* The default stream runs after the work in blocking streams, and before later work. */
static void default_stream(void)
{
    CUdeviceptr ptr;
    CUstream before;
    CUstream after;
    char *host;

    (void) test_begin(0);
    host = pinned(SIZE);
    ptr = device(SIZE);
    OK(cuStreamCreate(&before, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&after, CU_STREAM_DEFAULT));
    OK(cuLaunchHostFunc(before, wait_gate, NULL));
    OK(cuMemsetD8Async(ptr, 1, SIZE, before));
    OK(cuMemsetD8Async(ptr, 2, SIZE, NULL));
    OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, after));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(after));
    open_gate();
    OK(cuStreamSynchronize(after));
    CHECK(2 == host[0] && 2 == host[SIZE - 1]);
}

/*
 * A copy within a device does not wait for it, although it does not say async; SYNC_MEMOPS makes
 * it. cuMemcpyDtoD comes from a thread that is held up by nothing, so it would wait for ever.
 */
static void sync_memops(void)
{
    unsigned on = 1;
    CUdeviceptr from;
    CUdeviceptr to;
    CUstream stream;

    (void) test_begin(0);
    from = device(SIZE);
    to = device(SIZE);
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuLaunchHostFunc(stream, wait_gate, NULL));
    OK(cuMemcpyDtoD_v2(to, from, SIZE));
    OK(cuMemsetD8_v2(to, 1, SIZE));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    open_gate();
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, to));
    on = 0;
    OK(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, to));
    CHECK(1 == on);
    OK(cuMemcpyDtoD_v2(to, from, SIZE));
    OK(cuStreamQuery(NULL));
}

/*
 * Setting SYNC_MEMOPS waits for what calls that do not say async have begun on this memory, and for
 * nothing else. Memory of a pool takes it, and no copy waits for that. (All as a driver 580 does.)
 */
static void sync_memops_set(void)
{
    CUdeviceptr mine, other, pool;
    unsigned char host[SIZE];
    CUstream stream, apart;
    unsigned on = 1;

    (void) test_begin(0);
    mine = device(SIZE);
    other = device(SIZE);
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&pool, SIZE, apart));
    OK(cuMemsetD8Async(pool, 1, SIZE, apart));
    OK(cuStreamSynchronize(apart));
    OK(cuMemsetD8_v2(mine, 7, SIZE));
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, mine));
    OK(cuMemcpyDtoHAsync_v2(host, mine, SIZE, apart));
    CHECK(7 == host[0] && 7 == host[SIZE - 1]);
    OK(cuLaunchHostFunc(stream, wait_gate, NULL));
    OK(cuMemsetD8_v2(other, 1, SIZE));
    on = 0;
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, mine));
    on = 1;
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, mine));
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pool));
    OK(cuMemcpyDtoD_v2(pool, other, SIZE));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    open_gate();
    OK(cuMemcpyDtoH_v2(host, pool, SIZE));
    CHECK(1 == host[SIZE - 1]);
    OK(cuMemFree_v2(pool));
}

/* An event in a blocking stream comes after the work in the default one; in another one it does
 * not.
 */
static void default_event(void)
{
    CUstream blocking, apart;
    CUevent after, beside;
    CUdeviceptr ptr;

    (void) test_begin(0);
    ptr = device(SIZE);
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&beside, CU_EVENT_DISABLE_TIMING));
    OK(cuLaunchHostFunc(NULL, wait_gate, NULL));
    OK(cuMemsetD8_v2(ptr, 1, SIZE));
    OK(cuEventRecord(after, blocking));
    OK(cuEventRecord(beside, apart));
    OK(cuEventSynchronize(beside));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    open_gate();
    OK(cuEventSynchronize(after));
}

/* late= keeps a call's work unfinished behind its return, and no asynchronous call's. */
static int unfinished(void)
{
    CUdeviceptr ptr;
    CUstream apart;
    char host[SIZE] = {0};

    (void) test_begin(0);
    ptr = device(SIZE);
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD8Async(ptr, 4, SIZE, apart));
    OK(cuStreamSynchronize(apart));
    OK(cuMemcpyHtoD_v2(ptr, host, SIZE));
    OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, apart));
    CHECK(4 == host[0]);
    OK(cuStreamSynchronize(NULL));
    OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, apart));
    CHECK(0 == host[0]);
    return 0;
}

/* Pageable memory may change as soon as the call is back. */
static void pageable(void)
{
    char host[SIZE];
    CUdeviceptr ptr;
    CUstream stream;

    (void) test_begin(0);
    ptr = device(SIZE);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(stream, wait_gate, NULL));
    memset(host, 6, SIZE);
    OK(cuMemcpyHtoDAsync_v2(ptr, host, SIZE, stream));
    memset(host, 0, SIZE);
    open_gate();
    OK(cuMemcpyDtoHAsync_v2(host, ptr, SIZE, stream));
    /* Into pageable memory: it is there when the call is back. */
    CHECK(6 == host[0] && 6 == host[SIZE - 1]);
}

static unsigned seed = 1;

static unsigned draw(unsigned bound)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % bound;
}

#define BOX 20000

/* Boxes at random, between all kinds of memory, against loops. */
static void boxes(void)
{
    static unsigned char from_model[BOX];
    static unsigned char to_model[BOX];
    static unsigned char stack_like[2][BOX];
    unsigned char *host[2];
    CUdeviceptr dev[2];
    int i;

    (void) test_begin(0);
    host[0] = pinned(BOX);
    host[1] = pinned(BOX);
    dev[0] = device(BOX);
    dev[1] = device(BOX);
    for (i = 0; i < 300; i++) {
        CUDA_MEMCPY3D c;
        size_t x;
        size_t y;
        size_t z;
        int from_kind = (int) draw(3);
        int to_kind = (int) draw(3);
        unsigned char *from = 0 == from_kind ? host[0] : stack_like[0];
        unsigned char *to = 0 == to_kind ? host[1] : stack_like[1];

        for (x = 0; x < BOX; x++) {
            from_model[x] = (unsigned char) draw(256);
            to_model[x] = (unsigned char) draw(256);
        }
        memcpy(from, from_model, BOX);
        memcpy(to, to_model, BOX);
        OK(cuMemcpyHtoD_v2(dev[0], from_model, BOX));
        OK(cuMemcpyHtoD_v2(dev[1], to_model, BOX));
        memset(&c, 0, sizeof(c));
        c.WidthInBytes = 1 + draw(30);
        c.Height = 1 + draw(9);
        c.Depth = 1 + draw(5);
        c.srcXInBytes = draw(9);
        c.srcY = draw(4);
        c.srcZ = draw(3);
        c.srcPitch = c.srcXInBytes + c.WidthInBytes + draw(20);
        c.srcHeight = c.srcY + c.Height + draw(4);
        c.dstXInBytes = draw(9);
        c.dstY = draw(4);
        c.dstZ = draw(3);
        c.dstPitch = c.dstXInBytes + c.WidthInBytes + draw(20);
        c.dstHeight = c.dstY + c.Height + draw(4);
        c.srcMemoryType = 2 == from_kind ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        c.srcHost = from;
        c.srcDevice = dev[0];
        c.dstMemoryType = 2 == to_kind ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        c.dstHost = to;
        c.dstDevice = dev[1];
        if (1 == c.Depth && 0 == c.srcZ && 0 == c.dstZ && 0 == draw(2)) {
            CUDA_MEMCPY2D d = {.srcXInBytes = c.srcXInBytes,
                               .srcY = c.srcY,
                               .srcMemoryType = c.srcMemoryType,
                               .srcHost = from,
                               .srcDevice = dev[0],
                               .srcPitch = c.srcPitch,
                               .dstXInBytes = c.dstXInBytes,
                               .dstY = c.dstY,
                               .dstMemoryType = c.dstMemoryType,
                               .dstHost = to,
                               .dstDevice = dev[1],
                               .dstPitch = c.dstPitch,
                               .WidthInBytes = c.WidthInBytes,
                               .Height = c.Height};

            OK(0 == draw(2) ? cuMemcpy2D_v2(&d) : cuMemcpy2DAsync_v2(&d, NULL));
        } else {
            OK(0 == draw(2) ? cuMemcpy3D_v2(&c) : cuMemcpy3DAsync_v2(&c, NULL));
        }
        OK(cuStreamSynchronize(NULL));
        for (z = 0; z < c.Depth; z++) {
            for (y = 0; y < c.Height; y++) {
                for (x = 0; x < c.WidthInBytes; x++) {
                    size_t t =
                        c.dstXInBytes + x + c.dstPitch * (c.dstY + y + c.dstHeight * (c.dstZ + z));
                    size_t f =
                        c.srcXInBytes + x + c.srcPitch * (c.srcY + y + c.srcHeight * (c.srcZ + z));

                    CHECK(t < BOX && f < BOX);
                    to_model[t] = from_model[f];
                }
            }
        }
        if (2 == to_kind) {
            OK(cuMemcpyDtoH_v2(stack_like[1], dev[1], BOX));
            to = stack_like[1];
        }
        CHECK(0 == memcmp(to, to_model, BOX));
    }
}

static void refused(void)
{
    CUDA_MEMCPY2D c;
    CUdeviceptr ptr;
    char host[100];

    (void) test_begin(0);
    ptr = device(100);
    memset(&c, 0, sizeof(c));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = ptr;
    c.srcPitch = 50;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = host;
    c.dstPitch = 50;
    c.WidthInBytes = 10;
    c.Height = 2;
    OK(cuMemcpy2D_v2(&c));
    c.srcPitch = 5; /* rows over each other */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&c));
    c.srcPitch = 95; /* the second one goes beyond the end */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&c));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 101));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(ptr + 1, 0, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(ptr, (uintptr_t) host, 10));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery((CUstream) host));
}

static void two_devices(void)
{
    CUcontext ctx = test_begin(0);
    CUcontext peer;
    CUdeviceptr here;
    CUdeviceptr there;
    char host[64];
    int n;

    OK(cuDeviceGetCount(&n));
    if (2 > n) {
        printf("skipped: one device only\n");
        exit(0);
    }
    here = device(64);
    OK(cuDevicePrimaryCtxRetain(&peer, 1));
    OK(cuCtxPushCurrent_v2(peer));
    there = device(64);
    OK(cuMemsetD8_v2(there, 3, 64));
    OK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    CHECK(1 == n);
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuMemcpyPeer(here, ctx, there, peer, 64));
    OK(cuMemcpyDtoH_v2(host, here, 64));
    CHECK(3 == host[63]);
    OK(cuDeviceCanAccessPeer(&n, 0, 1));
    if (n) {
        OK(cuCtxEnablePeerAccess(peer, 0));
        EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(peer, 0));
        OK(cuCtxDisablePeerAccess(peer));
        EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(peer));
    }
}

/* A thread without a context: a stream, an event or memory has the context of its handle. */
static void no_context(void)
{
    CUdeviceptr ptr, pool = 0, base;
    CUcontext ctx, found = NULL;
    char host[16] = "as it was";
    CUevent event, start;
    unsigned flags;
    CUstream stream;
    size_t size;
    char *pins;
    float ms;

    ctx = test_begin(0);
    ptr = device(SIZE);
    pins = pinned(SIZE);
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&start, 0));
    OK(cuCtxSetCurrent(NULL));

    OK(cuEventRecord(start, stream));
    OK(cuMemcpyAsync(ptr, (uintptr_t) host, sizeof(host), stream));
    OK(cuMemcpyDtoHAsync_v2(pins, ptr, sizeof(host), stream));
    OK(cuMemsetD8Async(ptr, 7, SIZE, stream));
    OK(cuMemcpyPeerAsync(ptr, ctx, ptr + 1024, ctx, 1024, stream));
    OK(cuStreamWriteValue32_v2(stream, ptr, 1, 0));
    OK(cuMemAllocAsync(&pool, SIZE, stream));
    OK(cuMemFreeAsync(pool, stream));
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    OK(cuEventElapsedTime_v2(&ms, start, event));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
    OK(cuStreamGetFlags(stream, &flags));
    OK(cuStreamGetCtx(stream, &found));
    CHECK(ctx == found && 0 == strcmp("as it was", pins));

    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyAsync(ptr, ptr + 1024, 8, NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy(ptr, ptr + 1024, 8));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyHtoD_v2(ptr, host, 8));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(ptr, ctx, ptr + 1024, ctx, 8));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8_v2(ptr, 0, 8));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuEventRecord(event, NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuStreamQuery(NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemGetAddressRange_v2(&base, &size, ptr));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    OK(cuMemFreeHost(pins));
    OK(cuMemFree_v2(ptr));
    OK(cuEventDestroy_v2(event));
    OK(cuEventDestroy_v2(start));
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxGetCurrent(&found));
    CHECK(NULL == found);
    OK(cuCtxSetCurrent(ctx));
}

/* With delays that change with the seed the results are the same. */
static int late(void)
{
    CUdeviceptr ptr[2];
    CUstream stream[2];
    CUevent event;
    float ms;
    CUevent start;
    char *host;
    int i;

    (void) test_begin(0);
    host = pinned(SIZE);
    ptr[0] = device(SIZE);
    ptr[1] = device(SIZE);
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&start, 0));
    OK(cuStreamCreate(&stream[0], CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&stream[1], CU_STREAM_NON_BLOCKING));
    OK(cuEventRecord(start, stream[0]));
    for (i = 1; i < 20; i++) {
        OK(cuMemsetD8Async(ptr[0], (unsigned char) i, SIZE, stream[0]));
        OK(cuEventRecord(event, stream[0]));
        OK(cuStreamWaitEvent(stream[1], event, 0));
        OK(cuMemcpyDtoDAsync_v2(ptr[1], ptr[0], SIZE, stream[1]));
        OK(cuEventRecord(event, stream[1]));
        OK(cuStreamWaitEvent(stream[0], event, 0));
        OK(cuMemcpyDtoHAsync_v2(host, ptr[1], SIZE, stream[1]));
        OK(cuStreamSynchronize(stream[1]));
        CHECK(i == host[0] && i == host[SIZE - 1]);
    }
    OK(cuEventRecord(event, stream[0]));
    OK(cuEventSynchronize(event));
    OK(cuEventElapsedTime_v2(&ms, start, event));
    CHECK(0 < ms);
    return 0;
}

int main(int argc, char **argv)
{
    if (1 < argc) {
        return 0 == strcmp("unfinished", argv[1]) ? unfinished() : late();
    }
    test_part("asynchronous", asynchronous);
    test_part("the default stream", default_stream);
    test_part("SYNC_MEMOPS", sync_memops);
    test_part("SYNC_MEMOPS, when it is set", sync_memops_set);
    test_part("the default stream, by an event", default_event);
    test_part("pageable memory", pageable);
    test_part("boxes", boxes);
    test_part("refused", refused);
    test_part("two devices", two_devices);
    test_part("no context", no_context);
    test_again(argv, "late", "delay=2000,seed=1");
    test_again(argv, "late", "delay=2000,seed=2");
    test_again(argv, "unfinished", "late=100000");
    return 0;
}
