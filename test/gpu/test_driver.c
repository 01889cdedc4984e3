/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The driver at run time and what a pointer is, on the software CUDA driver. Each part is a process
 * of its own: the driver is loaded once. With UMRDDT_TEST_GPU=real, those parts that need no
 * software run on the machine's own driver and its last GPU.
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"

#include "gpu_test.h"

static const umrddt_cuda_all_t *driver;
static bool real;
static int device = 1;

static opal_umrddt_gpu_memory_t classify(uintptr_t address)
{
    opal_umrddt_gpu_memory_t memory;

    memset(&memory, 0x55, sizeof(memory));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_classify((void *) address, &memory));
    return memory;
}

static opal_umrddt_gpu_driver_stats_t stats(void)
{
    opal_umrddt_gpu_driver_stats_t now;

    opal_umrddt_gpu_driver_stats(&now);
    return now;
}

static CUcontext begin(void)
{
    CUcontext ctx;

    CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&driver));
    CHECK('\0' == opal_umrddt_gpu_driver_why_not()[0]);
    CHECK(CUDA_SUCCESS == driver->cuInit(0));
    if (real) {
        CHECK(CUDA_SUCCESS == driver->cuDeviceGetCount(&device) && 0 < device--);
    }
    CHECK(CUDA_SUCCESS == driver->cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(ctx));
    return ctx;
}

/* A machine without it: no call, no error. */
static void no_driver(void)
{
    if (OPAL_SUCCESS == umrddt_cuda_all_load(&driver)) {
        printf("skipped: this machine has a driver of its own\n");
        return;
    }
    CHECK(NULL == driver && '\0' != opal_umrddt_gpu_driver_why_not()[0]);
    CHECK(OPAL_UMRDDT_GPU_HOST == classify((uintptr_t) &driver).kind);
    CHECK(OPAL_UMRDDT_GPU_HOST == classify(0).kind);
    CHECK(0 == stats().queries);
    CHECK(!opal_umrddt_gpu_in_use() && !opal_umrddt_gpu_has_context());
    CHECK(!opal_umrddt_gpu_device_find(NULL, &(opal_umrddt_gpu_memory_t){.size = 0}));
    CHECK(!opal_umrddt_gpu_base_takes(&(opal_umrddt_gpu_memory_t){
        .kind = OPAL_UMRDDT_GPU_DEVICE, .ctx = (CUcontext) &driver, .legacy_ipc = true}));
}

/* As long as it is not initialized there is system memory only, and it is not initialized from
 * here. */
static void not_initialized(void)
{
    int count;

    CHECK(OPAL_UMRDDT_GPU_HOST == classify((uintptr_t) &driver).kind);
    CHECK(1 == stats().queries);
    CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&driver));
    CHECK(CUDA_ERROR_NOT_INITIALIZED == driver->cuDeviceGetCount(&count));
    CHECK(!opal_umrddt_gpu_in_use() && !opal_umrddt_gpu_has_context());
    CHECK(!opal_umrddt_gpu_device_find(NULL, &(opal_umrddt_gpu_memory_t){.size = 0}));
    CHECK(CUDA_SUCCESS == driver->cuInit(0));
    CHECK(opal_umrddt_gpu_in_use() && !opal_umrddt_gpu_has_context());
    CHECK(OPAL_UMRDDT_GPU_HOST == classify((uintptr_t) &driver).kind);
}

static void kinds(void)
{
    CUcontext ctx = begin();
    opal_umrddt_gpu_memory_t m;
    static char registered[100];
    CUmemoryPool pool;
    CUdeviceptr plain;
    CUdeviceptr managed;
    CUdeviceptr pooled;
    void *pinned;

    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&plain, 10000));
    CHECK(CUDA_SUCCESS == driver->cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    CHECK(CUDA_SUCCESS == driver->cuMemAllocAsync(&pooled, 100, NULL));
    CHECK(CUDA_SUCCESS == driver->cuMemHostAlloc(&pinned, 100, 0));
    CHECK(CUDA_SUCCESS == driver->cuMemHostRegister_v2(registered, sizeof(registered), 0));
    CHECK(CUDA_SUCCESS == driver->cuDeviceGetDefaultMemPool(&pool, device));
    /* Also on a thread without a context. */
    CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(NULL));
    m = classify(plain + 9999);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && device == m.device && ctx == m.ctx && plain == m.base
          && 10000 == m.size && 0 != m.buffer_id && m.legacy_ipc && !m.sync_memops
          && NULL == m.pool);
    m = classify(pooled);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && pool == m.pool && NULL == m.ctx && !m.legacy_ipc);
    /* SYNC_MEMOPS is set once, and seen from then on; a pool's memory has no use for it. */
    CHECK(!opal_umrddt_gpu_sync_memops(pooled, &m) && !m.sync_memops);
    m = classify(plain + 9999);
    CHECK(opal_umrddt_gpu_sync_memops(plain + 9999, &m) && m.sync_memops);
    m = classify(plain);
    CHECK(m.sync_memops && opal_umrddt_gpu_sync_memops(plain, &m) && 1 == stats().syncs);
    CHECK(OPAL_UMRDDT_GPU_MANAGED == classify(managed + 99).kind);
    CHECK(OPAL_UMRDDT_GPU_PINNED == classify((uintptr_t) pinned).kind);
    CHECK(OPAL_UMRDDT_GPU_PINNED == classify((uintptr_t) &registered[99]).kind);
    CHECK(OPAL_UMRDDT_GPU_HOST == classify((uintptr_t) &registered[100]).kind);
    CHECK(OPAL_UMRDDT_GPU_HOST == classify((uintptr_t) &m).kind);
    /* Of all these an Open MPI with CUDA may be given the first, where its context is current. */
    m = classify(plain);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(ctx));
    CHECK(opal_umrddt_gpu_base_takes(&m));
    m = classify(pooled);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    m = classify(managed);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    m = classify((uintptr_t) pinned);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    m = classify((uintptr_t) registered);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    m = classify((uintptr_t) &m);
    CHECK(!opal_umrddt_gpu_base_takes(&m));
}

/* Mapped memory: of no context, and not for CUDA IPC. */
static void mapped(void)
{
    CUmemGenericAllocationHandle handle;
    opal_umrddt_gpu_memory_t m;
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    size_t bytes = 0;
    CUdeviceptr ptr;

    (void) begin();
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK(
        CUDA_SUCCESS
        == driver->cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(CUDA_SUCCESS == driver->cuMemAddressReserve(&ptr, 2 * bytes, 0, 0, 0));
    CHECK(CUDA_SUCCESS == driver->cuMemCreate(&handle, bytes, &prop, 0));
    CHECK(CUDA_SUCCESS == driver->cuMemMap(ptr, bytes, 0, handle, 0));
    CHECK(CUDA_SUCCESS == driver->cuMemSetAccess(ptr, bytes, &access, 1));
    m = classify(ptr + bytes - 1);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && device == m.device && NULL == m.ctx && !m.legacy_ipc
          && NULL == m.pool);
    CHECK(0 != (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR & m.handles));
    CHECK(!opal_umrddt_gpu_base_takes(&m));
    /* Other memory in its place is another allocation. */
    CHECK(CUDA_SUCCESS == driver->cuMemUnmap(ptr, bytes));
    CHECK(CUDA_SUCCESS == driver->cuMemRelease(handle));
    CHECK(CUDA_SUCCESS == driver->cuMemCreate(&handle, bytes, &prop, 0));
    CHECK(CUDA_SUCCESS == driver->cuMemMap(ptr, bytes, 0, handle, 0));
    CHECK(m.buffer_id != classify(ptr).buffer_id);
}

/* Memory of two devices in one process, looked at with either one's context, or with none. */
static void devices(void)
{
    CUcontext ctx[2];
    CUdeviceptr ptr[2];
    int i;
    int k;

    (void) begin();
    for (i = 0; i < 2; i++) {
        CHECK(CUDA_SUCCESS == driver->cuDevicePrimaryCtxRetain(&ctx[i], i));
        CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(ctx[i]));
        CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&ptr[i], 5000));
    }
    for (k = 0; k < 3; k++) {
        CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(2 == k ? NULL : ctx[k]));
        for (i = 0; i < 2; i++) {
            opal_umrddt_gpu_memory_t m = classify(ptr[i] + 4999);
            CUcontext now;

            CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && i == m.device && ctx[i] == m.ctx
                  && ptr[i] == m.base);
            CHECK((i == k) == opal_umrddt_gpu_base_takes(&m));
            CHECK(CUDA_SUCCESS == driver->cuCtxGetCurrent(&now));
            CHECK((2 == k ? NULL : ctx[k]) == now);
        }
    }
}

/* A device is found if the application has a context on it: its primary context is active, or the
 * calling thread's current context is one of it. */
static void found(void)
{
    const CUcontext primary = begin();
    uint8_t uuid[16], first[16];
    opal_umrddt_gpu_memory_t m;
    CUcontext own;

    CHECK(opal_umrddt_gpu_in_use() && opal_umrddt_gpu_has_context());
    CHECK(opal_umrddt_gpu_device_uuid(device, uuid) && opal_umrddt_gpu_device_uuid(0, first));
    CHECK(!opal_umrddt_gpu_device_uuid(1000, uuid));
    CHECK(opal_umrddt_gpu_device_find(NULL, &m));
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && device == m.device && NULL == m.ctx);
    CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(NULL));
    CHECK(!opal_umrddt_gpu_has_context());
    m.device = -1;
    CHECK(opal_umrddt_gpu_device_find(uuid, &m) && device == m.device);
    uuid[15] ^= 1;
    m.device = -1;
    CHECK(!opal_umrddt_gpu_device_find(uuid, &m) && -1 == m.device);
    if (0 == device) {
        return;
    }
    CHECK(!opal_umrddt_gpu_device_find(first, &m));
    CHECK(CUDA_SUCCESS == driver->cuCtxCreate_v2(&own, 0, 0) && own != primary);
    CHECK(opal_umrddt_gpu_device_find(first, &m) && 0 == m.device && own == m.ctx);
    CHECK(CUDA_SUCCESS == driver->cuCtxSetCurrent(primary));
    CHECK(!opal_umrddt_gpu_device_find(first, &m));
}

/* One call a pointer; another allocation at the same address is another allocation. */
static void cache(void)
{
    opal_umrddt_gpu_driver_stats_t before;
    opal_umrddt_gpu_memory_t first;
    opal_umrddt_gpu_memory_t second;
    CUdeviceptr ptr;
    CUdeviceptr again;
    CUdeviceptr more[20];
    int i;

    (void) begin();
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&ptr, 1 << 22));
    first = classify(ptr);
    before = stats();
    for (i = 0; i < 100; i++) {
        second = classify(ptr + 1000 * (unsigned) i);
        CHECK(0 == memcmp(&first, &second, sizeof(first)));
    }
    CHECK(before.queries + 100 == stats().queries && before.hits + 100 == stats().hits);
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(ptr));
    CHECK(OPAL_UMRDDT_GPU_HOST == classify(ptr).kind);
    CHECK(before.stale + 1 == stats().stale);
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&again, 1 << 22));
    CHECK(again == ptr);
    first = classify(ptr);
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(ptr));
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&again, 1 << 22));
    CHECK(again == ptr);
    second = classify(ptr);
    CHECK(first.buffer_id < second.buffer_id && before.stale + 2 == stats().stale);
    /* More than it holds. */
    for (i = 0; i < 20; i++) {
        CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&more[i], 100));
        CHECK(more[i] == classify(more[i] + 99).base);
    }
    for (i = 0; i < 20; i++) {
        CHECK(more[i] == classify(more[i]).base);
    }
}

/* An allocation that is held is not queried again, until the last holder releases it. Then another
 * one at its address is another allocation. */
static void held_by(bool threads)
{
    opal_umrddt_gpu_memory_t first, second, system = {.kind = OPAL_UMRDDT_GPU_HOST, .buffer_id = 1};
    opal_umrddt_gpu_driver_stats_t before;
    uint64_t holds[2];
    CUdeviceptr ptr, again;
    int i;

    (void) begin();
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&ptr, 1 << 22));
    first = classify(ptr);
    CHECK(0 == opal_umrddt_gpu_memory_hold(&system, threads));
    holds[0] = opal_umrddt_gpu_memory_hold(&first, threads);
    holds[1] = opal_umrddt_gpu_memory_hold(&first, threads);
    CHECK(0 != holds[0] && 0 != holds[1]);
    before = stats();
    for (i = 0; i < 100; ++i) {
        second = classify(ptr + 1000 * (unsigned) i);
        CHECK(0 == memcmp(&first, &second, sizeof(first)));
    }
    CHECK(before.queries == stats().queries);
    /* one that would need the same slot is not held, and this one still is */
    second = first;
    second.buffer_id += 64;
    CHECK(0 == opal_umrddt_gpu_memory_hold(&second, threads));
    opal_umrddt_gpu_memory_release(holds[0], threads);
    (void) classify(ptr);
    CHECK(before.queries == stats().queries);
    opal_umrddt_gpu_memory_release(holds[1], threads);
    (void) classify(ptr);
    CHECK(before.queries + 1 == stats().queries);
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(ptr));
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&again, 1 << 22));
    CHECK(again == ptr && first.buffer_id != classify(ptr).buffer_id);
    /* now the slot is free */
    holds[0] = opal_umrddt_gpu_memory_hold(&second, threads);
    CHECK(second.buffer_id == holds[0]);
    opal_umrddt_gpu_memory_release(holds[0], threads);
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(again));
}

static void held(void)
{
    held_by(false);
    held_by(true);
}

/* Memory is found again if the thread has classified it, the whole range is in one allocation, and
 * it is still the same one. */
static void again_known(void)
{
    opal_umrddt_gpu_memory_t first, found;
    opal_umrddt_gpu_driver_stats_t before;
    CUdeviceptr ptr, next;
    const bool threads = false;
    uint64_t hold;
    void *pinned;

    (void) begin();
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&ptr, 1 << 22));
    memset(&found, 0x55, sizeof(found));
    first = found;
    CHECK(!opal_umrddt_gpu_classify_again(ptr, ptr + 100, &found));
    CHECK(0 == memcmp(&first, &found, sizeof(found)) && 0 == stats().queries);
    first = classify(ptr + 1000);
    before = stats();
    CHECK(opal_umrddt_gpu_classify_again(ptr, ptr + (1 << 22) - 1, &found));
    CHECK(0 == memcmp(&first, &found, sizeof(found)) && before.queries + 1 == stats().queries);
    CHECK(!opal_umrddt_gpu_classify_again(ptr, ptr + (1 << 22), &found));
    CHECK(!opal_umrddt_gpu_classify_again(ptr - 1, ptr + 1, &found));
    CHECK(!opal_umrddt_gpu_classify_again((uintptr_t) &ptr, (uintptr_t) &ptr, &found));
    hold = opal_umrddt_gpu_memory_hold(&first, threads);
    CHECK(opal_umrddt_gpu_classify_again(ptr + 5, ptr + 5, &found));
    opal_umrddt_gpu_memory_release(hold, threads);
    CHECK(before.queries + 1 == stats().queries);
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(ptr));
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&next, 1 << 22));
    CHECK(next == ptr && !opal_umrddt_gpu_classify_again(ptr, ptr, &found));
    CHECK(before.stale + 1 == stats().stale);
    CHECK(CUDA_SUCCESS == driver->cuMemHostAlloc(&pinned, 100, 0));
    (void) classify((uintptr_t) pinned);
    CHECK(!opal_umrddt_gpu_classify_again((uintptr_t) pinned, (uintptr_t) pinned, &found));
    CHECK(CUDA_SUCCESS == driver->cuMemFreeHost(pinned));
    CHECK(CUDA_SUCCESS == driver->cuMemFree_v2(next));
}

/* UCX without its module for CUDA takes no GPU memory; with it, UCX_TLS decides. */
static void ucx(void)
{
    static const struct {
        const char *tls;
        bool taken;
    } values[] = {
        {NULL, true},
        {"", true},
        {"all", true},
        {"rc,sm,all", true},
        {"cuda", true},
        {"sm,cuda_copy,cuda_ipc", true},
        {"^tcp", true},
        {"^cuda_ipc,gdr_copy", true},
        {"sm,cuda_ipc", false},
        {"rc,sm,self", false},
        {"cudax", false},
        {"^cuda", false},
        {"^tcp,cuda_copy", false},
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        CHECK(values[i].taken == opal_umrddt_gpu_ucx_tls(values[i].tls));
    }
    CHECK(!opal_umrddt_gpu_ucx_aware());
}

/* A driver that does not know the newer attributes: what it knows is there. */
static void old(void)
{
    opal_umrddt_gpu_memory_t m;
    CUdeviceptr ptr;

    (void) begin();
    CHECK(CUDA_SUCCESS == driver->cuMemAlloc_v2(&ptr, 100));
    m = classify(ptr);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && device == m.device && 0 != m.buffer_id
          && 0 == m.size);
    CHECK(2 == stats().queries);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == classify(ptr).kind);
    CHECK(3 == stats().queries && 0 == stats().hits);
}

static void broken(void)
{
    opal_umrddt_gpu_memory_t m;
    int host = 1;
    void *hidden = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void) begin();
    CHECK(MAP_FAILED != hidden);
    CHECK(OPAL_ERROR == opal_umrddt_gpu_classify(&m, &m));
    /* the CPU can read its own memory, and no other */
    memset(&m, 0xff, sizeof(m));
    opal_umrddt_gpu_presume(&host, &m);
    CHECK(OPAL_UMRDDT_GPU_HOST == m.kind && 0 == m.base && 0 == m.size && 0 == m.buffer_id);
    memset(&m, 0xff, sizeof(m));
    opal_umrddt_gpu_presume(hidden, &m);
    CHECK(OPAL_UMRDDT_GPU_DEVICE == m.kind && 0 == m.base && 0 == m.size && 0 == m.buffer_id);
    CHECK(0 == munmap(hidden, 1));
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *options; /* of the software driver; NULL: without it */
    bool on_real;        /* is true of every driver */
} parts[] = {
    {"no driver", no_driver, NULL, false},
    {"not initialized", not_initialized, "", true},
    {"kinds", kinds, "", true},
    {"mapped", mapped, "", true},
    {"devices", devices, "devices=2", false},
    {"found", found, "devices=2", false},
    {"cache", cache, "", true},
    {"held", held, "", true},
    {"found again", again_known, "", false},
    {"an old driver", old, "fail=cuPointerGetAttributes:1:1", false},
    {"UCX", ucx, NULL, false},
    {"a broken device", broken, "fail=cuPointerGetAttributes:*:700", false},
};

static int again(char **argv, size_t i)
{
    const char *build = getenv("UMRDDT_BUILDDIR");
    char *args[] = {argv[0], (char *) parts[i].name, NULL};
    char path[4096];
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(-1 != pid);
    if (0 == pid && real) {
        execv("/proc/self/exe", args);
        _exit(99);
    }
    if (0 == pid) {
        CHECK(NULL != build);
        snprintf(path, sizeof(path), "%s/sim/cuda/.libs%s%s", build,
                 NULL == getenv("LD_LIBRARY_PATH") ? "" : ":",
                 NULL == getenv("LD_LIBRARY_PATH") ? "" : getenv("LD_LIBRARY_PATH"));
        if (NULL != parts[i].options) {
            setenv("LD_LIBRARY_PATH", path, 1);
            setenv("UMRDDT_GPU", parts[i].options, 1);
        }
        unsetenv("CUDA_VISIBLE_DEVICES");
        execv("/proc/self/exe", args);
        _exit(99);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    printf("%s: %s\n", 0 == status ? "ok" : "FAILED", parts[i].name);
    return 0 != status;
}

int main(int argc, char **argv)
{
    int failed = 0;
    size_t i;

    real = NULL != getenv("UMRDDT_TEST_GPU") && 0 == strcmp("real", getenv("UMRDDT_TEST_GPU"));
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (real && !parts[i].on_real) {
            continue;
        }
        if (1 == argc) {
            failed |= again(argv, i);
        } else if (0 == strcmp(argv[1], parts[i].name)) {
            parts[i].run();
        }
    }
    return failed;
}
