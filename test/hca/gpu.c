/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory of GPUs: registered, found again, never stale; refused; flushed. Run by gpu.sh on software
 * GPUs. */

#include "harness.h"

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"

#define FILLER 0x77
#define ROOM   (96u << 10)

#define OK(call) CHECK(CUDA_SUCCESS == (call), "a call of the driver failed")

static const umrddt_cuda_all_t *cuda;

static void begin(void)
{
    CUcontext ctx;

    if (NULL == cuda) {
        CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&cuda), "no CUDA driver");
        OK(cuda->cuInit(0));
        OK(cuda->cuDevicePrimaryCtxRetain(&ctx, harness.rank % 2));
        OK(cuda->cuCtxSetCurrent(ctx));
    }
}

static unsigned char *gpu_alloc(size_t bytes)
{
    CUdeviceptr ptr;

    OK(cuda->cuMemAlloc_v2(&ptr, bytes));
    OK(cuda->cuMemsetD8_v2(ptr, FILLER, bytes));
    OK(cuda->cuCtxSynchronize());
    return (unsigned char *) (uintptr_t) ptr;
}

static void gpu_free(unsigned char *ptr)
{
    OK(cuda->cuMemFree_v2((CUdeviceptr) (uintptr_t) ptr));
}

static opal_umrddt_gpu_memory_t where_is(const void *address)
{
    opal_umrddt_gpu_memory_t where;

    CHECK_RC(OPAL_SUCCESS, opal_umrddt_gpu_classify(address, &where));
    return where;
}

static void copy_in(unsigned char *to, const unsigned char *from, size_t bytes)
{
    OK(cuda->cuMemcpyHtoD_v2((CUdeviceptr) (uintptr_t) to, from, bytes));
    OK(cuda->cuCtxSynchronize());
}

/** At once, as the application's own copy would. */
static void copy_out(unsigned char *to, const unsigned char *from, size_t bytes)
{
    OK(cuda->cuMemcpyDtoH_v2(to, (CUdeviceptr) (uintptr_t) from, bytes));
}

static int gpu_register(const unsigned char *area, mca_btl_umr_role_t role,
                        const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t **memory)
{
    opal_umrddt_gpu_memory_t where = where_is(area);

    return harness.hca->memory_register_gpu(
        harness.endpoint, role, &where, (void *) (uintptr_t) area, layout, layout->size, memory);
}

/**
 * One message, every byte looked at.
 *
 * @param[in] send    this process sends
 * @param[in] device  this process's side is a GPU's
 */
static void transfer(bool send, bool device, unsigned salt)
{
    static unsigned char host[ROOM];
    opal_iov_cache_layout_t *layout =
        send ? layout_random(20000, ROOM - 2048, 30) : layout_vector(50, 400, 1000);
    unsigned char *area = device ? gpu_alloc(ROOM) : host;
    opal_umrddt_gpu_memory_t where;
    struct side side = {area + 700, layout, 0, 4};

    memset(host, FILLER, sizeof(host));
    if (send) {
        layout_fill(host + 700, layout, salt);
    }
    if (device) {
        copy_in(area, host, ROOM);
        where = where_is(area);
        harness.where = &where;
    }
    message(send, &side, layout->size, 100 + salt);
    harness.where = NULL;
    if (!send) {
        if (device) {
            memset(host, 0, ROOM);
            copy_out(host, area, ROOM);
        }
        layout_check(host, ROOM, host + 700, layout, layout->size, salt, FILLER);
    }
    harness_barrier();
    if (device) {
        gpu_free(area);
    }
    OBJ_RELEASE(layout);
}

/** All pairs of memory, in both directions. */
static void gpu_pairs(void)
{
    begin();
    for (unsigned i = 0; i < 24; ++i) {
        bool send = (int) (i % 2) == harness.rank;
        bool device = send ? 1 != i / 2 % 3 : 2 != i / 2 % 3;

        transfer(send, device, i);
    }
}

/** The same allocation is registered once, whichever part and role. */
static void gpu_hits(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    mca_btl_umr_stats_t before = *stats;
    mca_btl_umr_memory_t *memory;
    unsigned char *area;

    begin();
    area = gpu_alloc(ROOM);
    for (unsigned i = 0; i < 10; ++i) {
        CHECK_RC(OPAL_SUCCESS,
                 gpu_register(area + 5000 * i, 0 == i % 2 ? MCA_BTL_UMR_REMOTE : MCA_BTL_UMR_LOCAL,
                              layout, &memory));
        harness.hca->memory_release(memory);
    }
    CHECK(before.gpu_reg_misses + 1 == stats->gpu_reg_misses, "registered again");
    CHECK(before.gpu_reg_hits + 9 == stats->gpu_reg_hits, "%llu hits",
          (unsigned long long) (stats->gpu_reg_hits - before.gpu_reg_hits));
    CHECK(before.reg_misses == stats->reg_misses, "registered as the CPU's memory");
    /* Beyond the allocation. */
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             gpu_register(area + ROOM - 500, MCA_BTL_UMR_LOCAL, layout, &memory));
    gpu_free(area);
    OBJ_RELEASE(layout);
}

/**
 * Memory is freed, and other memory gets the same address: it is registered again, cached mappings
 * are not found, and bytes go to the new memory.
 */
static void gpu_realloc(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(50, 400, 1000);
    static unsigned char host[ROOM];
    unsigned char *area = NULL;
    uint64_t misses, stale;
    uint64_t ids[4];
    bool send = 0 == harness.rank;

    begin();
    misses = stats->gpu_reg_misses;
    stale = stats->gpu_regs_stale;
    for (unsigned i = 0; i < 4; ++i) {
        unsigned char *again = gpu_alloc(ROOM);
        opal_umrddt_gpu_memory_t where = where_is(again);
        struct side side = {again, layout, 0, 64};
        mca_btl_umr_memory_t *memory;
        mca_btl_umr_keyset_t *keyset;

        CHECK(NULL == area || area == again, "another address");
        area = again;
        ids[i] = where.buffer_id;
        memset(host, FILLER, ROOM);
        if (send) {
            layout_fill(host, layout, i);
            copy_in(area, host, ROOM);
        }
        harness.where = &where;
        message(send, &side, layout->size, 200 + i);
        /* Mapped, and cached. */
        keyset =
            keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
        CHECK(0 == i || misses + i + 1 == stats->gpu_reg_misses, "not registered anew");
        harness.hca->keyset_keep(keyset);
        harness.hca->memory_release(memory);
        harness.where = NULL;
        if (!send) {
            copy_out(host, area, ROOM);
            layout_check(host, ROOM, host, layout, layout->size, i, FILLER);
        }
        harness_barrier();
        gpu_free(area);
    }
    CHECK(ids[0] != ids[1] && ids[1] != ids[2], "a BUFFER_ID came twice");
    CHECK(stale + 3 <= stats->gpu_regs_stale, "%llu stale registrations were dropped",
          (unsigned long long) (stats->gpu_regs_stale - stale));
    CHECK(1 >= stats->gpu_regs_now, "%llu registrations", (unsigned long long) stats->gpu_regs_now);
    OBJ_RELEASE(layout);
}

/** Never more than the bound; what is in use stays. (btl_umr_gpu_regs=4) */
static void gpu_bound(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    mca_btl_umr_memory_t *held[4], *memory;
    unsigned char *areas[8];

    begin();
    for (unsigned i = 0; i < 8; ++i) {
        areas[i] = gpu_alloc(ROOM);
        CHECK_RC(OPAL_SUCCESS, gpu_register(areas[i], MCA_BTL_UMR_LOCAL, layout, &memory));
        harness.hca->memory_release(memory);
        CHECK(4 >= stats->gpu_regs_now, "%llu registrations",
              (unsigned long long) stats->gpu_regs_now);
    }
    for (unsigned i = 0; i < 4; ++i) {
        CHECK_RC(OPAL_SUCCESS, gpu_register(areas[i], MCA_BTL_UMR_LOCAL, layout, &held[i]));
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, gpu_register(areas[4], MCA_BTL_UMR_LOCAL, layout, &memory));
    for (unsigned i = 0; i < 4; ++i) {
        harness.hca->memory_release(held[i]);
    }
    for (unsigned i = 0; i < 8; ++i) {
        gpu_free(areas[i]);
    }
    OBJ_RELEASE(layout);
}

/** The window is too small for the allocation: parts of it are registered; for these, others are
 * evicted; then it is reported, and counted. (bar_bytes=60000) */
static void gpu_bar(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(10, 1000, 3000);
    opal_iov_cache_layout_t *large = layout_vector(10, 1000, 9000);
    mca_btl_umr_memory_t *held, *memory;
    mca_btl_umr_stats_t before = *stats;
    opal_umrddt_gpu_memory_t where;
    unsigned char *area;

    begin();
    area = gpu_alloc(ROOM);
    where = where_is(area);
    CHECK_RC(OPAL_SUCCESS, gpu_register(area, MCA_BTL_UMR_LOCAL, layout, &held));
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
             gpu_register(area + 50000, MCA_BTL_UMR_LOCAL, layout, &memory));
    harness.hca->memory_release(held);
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, gpu_register(area, MCA_BTL_UMR_LOCAL, large, &memory));
    CHECK(before.gpu_reg_refused + 2 == stats->gpu_reg_refused, "%llu refused",
          (unsigned long long) (stats->gpu_reg_refused - before.gpu_reg_refused));
    CHECK(!harness.hca->gpu_reachable(harness.endpoint, &where), "tried again at once");
    /* Not queried from the kernel each time, but now and then. */
    for (unsigned i = 0; i < 2000; ++i) {
        (void) harness.hca->gpu_reachable(harness.endpoint, &where);
    }
    CHECK(harness.hca->gpu_reachable(harness.endpoint, &where), "never tried again");
    CHECK_RC(OPAL_SUCCESS, gpu_register(area + 50000, MCA_BTL_UMR_LOCAL, layout, &memory));
    harness.hca->memory_release(memory);
    gpu_free(area);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(large);
}

/** Neither kind of registration: reported once, not tried again. (dmabuf=0; peermem=0) */
static void gpu_refused(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    opal_umrddt_gpu_memory_t where;
    mca_btl_umr_memory_t *memory;
    unsigned char *area;

    begin();
    if (0 == harness.rank) {
        area = gpu_alloc(ROOM);
        where = where_is(area);
        CHECK(harness.hca->gpu_reachable(harness.endpoint, &where), "refused before it was tried");
        for (unsigned i = 0; i < 3; ++i) {
            CHECK_RC(OPAL_ERR_BAD_PARAM, gpu_register(area, MCA_BTL_UMR_LOCAL, layout, &memory));
        }
        CHECK(1 == stats->gpu_reg_refused, "tried %llu times",
              (unsigned long long) stats->gpu_reg_refused);
        CHECK(!harness.hca->gpu_reachable(harness.endpoint, &where), "still said to be reachable");
        CHECK(0 == stats->gpu_regs_now && 0 == stats->gpu_bytes_now, "something is registered");
    }
    OBJ_RELEASE(layout);
}

/**
 * A refusal of the HCA near to the GPU counts, even if no message requests that HCA. (devices=2,
 * switches=2: the first HCA of a process is near to the GPU with its number; this is the other
 * one.)
 */
static void gpu_refused_near(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    mca_btl_umr_endpoint_t *near, *first = harness.endpoint;
    opal_umrddt_gpu_memory_t where;
    mca_btl_umr_memory_t *memory;
    unsigned char *area;
    CUcontext own, other;

    begin();
    if (0 == harness.rank) {
        OK(cuda->cuCtxGetCurrent(&own));
        OK(cuda->cuDevicePrimaryCtxRetain(&other, 1));
        OK(cuda->cuCtxSetCurrent(other));
        area = gpu_alloc(ROOM);
        where = where_is(area);
        near = harness.hca->endpoint_near(first, area, where.device);
        CHECK(near != first, "the first HCA");
        CHECK(harness.hca->gpu_reachable(NULL, &where), "refused before it was tried");
        CHECK_RC(OPAL_ERR_BAD_PARAM,
                 harness.hca->memory_register_gpu(near, MCA_BTL_UMR_LOCAL, &where, area, layout,
                                                  layout->size, &memory));
        CHECK(!harness.hca->gpu_reachable(near, &where), "still said to be reachable");
        CHECK(harness.hca->gpu_reachable(first, &where), "the other one was not queried");
        CHECK(!harness.hca->gpu_reachable(NULL, &where), "every message would try again");
        gpu_free(area);
        OK(cuda->cuCtxSetCurrent(own));
    }
    OBJ_RELEASE(layout);
}

/** The driver reports that HCAs cannot access its memory: not tried at all. (UMRDDT_GPU: gdr=0) */
static void gpu_not_capable(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    opal_umrddt_gpu_memory_t where;
    mca_btl_umr_memory_t *memory;

    begin();
    where = where_is(gpu_alloc(ROOM));
    CHECK(!harness.hca->gpu_reachable(harness.endpoint, &where), "said to be reachable");
    CHECK_RC(OPAL_ERR_BAD_PARAM, gpu_register((unsigned char *) (uintptr_t) where.base,
                                              MCA_BTL_UMR_LOCAL, layout, &memory));
    CHECK(0 == harness.hca->stats()->gpu_reg_refused, "tried");
    OBJ_RELEASE(layout);
}

/** Managed memory and a pool's are not for the HCA. */
static void gpu_others(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    mca_btl_umr_memory_t *memory;
    CUdeviceptr managed, pooled;

    begin();
    OK(cuda->cuMemAllocManaged(&managed, ROOM, CU_MEM_ATTACH_GLOBAL));
    OK(cuda->cuMemAllocAsync(&pooled, ROOM, NULL));
    OK(cuda->cuCtxSynchronize());
    CHECK_RC(OPAL_ERR_BAD_PARAM, gpu_register((unsigned char *) (uintptr_t) managed,
                                              MCA_BTL_UMR_LOCAL, layout, &memory));
    CHECK_RC(OPAL_ERR_BAD_PARAM, gpu_register((unsigned char *) (uintptr_t) pooled,
                                              MCA_BTL_UMR_LOCAL, layout, &memory));
    CHECK(0 == harness.hca->stats()->gpu_reg_refused, "tried");
    OK(cuda->cuMemFree_v2(managed));
    OK(cuda->cuMemFree_v2(pooled));
    OBJ_RELEASE(layout);
}

/** Which flush it was. UMRDDT_TEST_FLUSH: call, read, none. */
static void gpu_flushed(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    const char *how = getenv("UMRDDT_TEST_FLUSH");
    uint64_t calls = stats->gpu_flush_calls, reads = stats->gpu_flush_reads;
    uint64_t least = 0 == harness.rank ? 0 : 1;

    begin();
    transfer(0 == harness.rank, true, 77);
    transfer(0 == harness.rank, false, 78);
    CHECK(NULL != how, "UMRDDT_TEST_FLUSH is not set");
    CHECK(calls + (0 == strcmp(how, "call") ? least : 0) == stats->gpu_flush_calls, "%llu calls",
          (unsigned long long) (stats->gpu_flush_calls - calls));
    CHECK(reads + (0 == strcmp(how, "read") ? least : 0) == stats->gpu_flush_reads, "%llu reads",
          (unsigned long long) (stats->gpu_flush_reads - reads));
}

/** status of a flush that was waited for, or at once. */
static int flush(mca_btl_umr_memory_t *memory)
{
    struct done done = {0, OPAL_SUCCESS};
    int rc = harness.hca->memory_flush(memory, harness_done, &done);

    if (OPAL_ERR_WOULD_BLOCK == rc) {
        WAIT_UNTIL(0 < done.calls);
        rc = done.status;
    }
    return rc;
}

/**
 * Reads flush, and one fails, since its memory was freed (UMRDDT_GPU: dmabuf=0). From then on no
 * peer may write to a GPU that is flushed by reads, by the GPU's own rule or by the user's setting.
 * UMRDDT_TEST_FLUSH: read; or call, if the user has set that.
 */
static void gpu_unflushable(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    const char *how = getenv("UMRDDT_TEST_FLUSH");
    bool reads = NULL != how && 0 == strcmp(how, "read");
    mca_btl_umr_memory_t *memory;
    unsigned char *area;

    begin();
    area = gpu_alloc(ROOM);
    CHECK_RC(OPAL_SUCCESS, gpu_register(area, MCA_BTL_UMR_REMOTE, layout, &memory));
    CHECK_RC(OPAL_SUCCESS, flush(memory));
    gpu_free(area);
    if (reads) {
        CHECK_RC(OPAL_ERROR, flush(memory));
    }
    harness.hca->memory_release(memory);

    area = gpu_alloc(ROOM);
    CHECK_RC(reads ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS,
             gpu_register(area, MCA_BTL_UMR_REMOTE, layout, &memory));
    if (!reads) {
        harness.hca->memory_release(memory);
    }
    CHECK_RC(OPAL_SUCCESS, gpu_register(area, MCA_BTL_UMR_LOCAL, layout, &memory));
    harness.hca->memory_release(memory);
    gpu_free(area);
    OBJ_RELEASE(layout);
}

/** The context is destroyed before the HCA is closed. To be the last one. */
static void gpu_gone(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(10, 100, 300);
    mca_btl_umr_memory_t *memory;
    unsigned char *area;

    begin();
    area = gpu_alloc(ROOM);
    CHECK_RC(OPAL_SUCCESS, gpu_register(area, MCA_BTL_UMR_REMOTE, layout, &memory));
    OK(cuda->cuDevicePrimaryCtxReset_v2(harness.rank % 2));
    if (OPAL_UMRDDT_GPU_DEVICE == where_is(area).kind) {
        CHECK(false, "the memory survived its context");
    }
    CHECK(OPAL_SUCCESS != harness.hca->memory_flush(memory, harness_done, NULL),
          "flushed what is gone");
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
}

const struct test gpu_tests[] = {{"gpu_pairs", gpu_pairs},
                                 {"gpu_hits", gpu_hits},
                                 {"gpu_realloc", gpu_realloc},
                                 {"gpu_bound", gpu_bound},
                                 {"gpu_bar", gpu_bar},
                                 {"gpu_refused", gpu_refused},
                                 {"gpu_refused_near", gpu_refused_near},
                                 {"gpu_not_capable", gpu_not_capable},
                                 {"gpu_others", gpu_others},
                                 {"gpu_flushed", gpu_flushed},
                                 {"gpu_unflushable", gpu_unflushable},
                                 {"gpu_gone", gpu_gone},
                                 {NULL, NULL}};
