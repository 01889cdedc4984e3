/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The pool of pinned buffers, on the software CUDA driver. */

#include "opal_config.h"

#include <pthread.h>
#include <stdint.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#include "gpu_test.h"

#define KIB(n) ((size_t) (n) << 10)
#define MIB(n) ((size_t) (n) << 20)

static const umrddt_cuda_all_t *driver;

/* On a device that is not the default one, where there is another. */
static CUcontext begin(void)
{
    CUcontext ctx;
    int devices = 0;

    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    EXPECT(CUDA_SUCCESS, driver->cuInit(0));
    EXPECT(CUDA_SUCCESS, driver->cuDeviceGetCount(&devices));
    EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(&ctx, 0, gpu_test_far(devices)));
    return ctx;
}

static opal_umrddt_gpu_staging_stats_t stats(void)
{
    opal_umrddt_gpu_staging_stats_t now;

    opal_umrddt_gpu_staging_stats(&now);
    return now;
}

static char *get(size_t size)
{
    void *buffer = NULL;

    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_staging_get(size, &buffer));
    CHECK(NULL != buffer && 0 == (uintptr_t) buffer % 4096);
    return buffer;
}

static bool is_pinned(const void *address)
{
    opal_umrddt_gpu_memory_t memory;

    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify(address, &memory));
    return OPAL_UMRDDT_GPU_PINNED == memory.kind;
}

static void none(void)
{
    void *buffer = &buffer;

    if (OPAL_SUCCESS == umrddt_cuda_all_load(&driver)) {
        printf("skipped: this machine has a driver of its own\n");
        return;
    }
    EXPECT(OPAL_ERR_NOT_AVAILABLE, opal_umrddt_gpu_staging_get(1, &buffer));
    CHECK(buffer == &buffer);
    opal_umrddt_gpu_staging_put(&buffer);
    opal_umrddt_gpu_staging_close();
    CHECK(0 == stats().gets && 0 == stats().bytes_now);
}

/* No context: said so, nothing is counted. */
static void no_context(void)
{
    void *buffer = &buffer;
    CUcontext ctx;

    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    EXPECT(OPAL_ERR_NOT_AVAILABLE, opal_umrddt_gpu_staging_get(1, &buffer));
    ctx = begin();
    EXPECT(CUDA_SUCCESS, driver->cuCtxPopCurrent_v2(&ctx));
    EXPECT(OPAL_ERR_NOT_AVAILABLE, opal_umrddt_gpu_staging_get(1, &buffer));
    CHECK(buffer == &buffer && 0 == stats().bytes_now);
    EXPECT(CUDA_SUCCESS, driver->cuCtxPushCurrent_v2(ctx));
    buffer = get(1);
    opal_umrddt_gpu_staging_put(buffer);
    /* MPI_Finalize may be called by a thread without one. */
    EXPECT(CUDA_SUCCESS, driver->cuCtxPopCurrent_v2(&ctx));
    CHECK(is_pinned(buffer));
    opal_umrddt_gpu_staging_close();
    CHECK(!is_pinned(buffer) && 0 == stats().bytes_now);
}

/* The same buffers again and again; every byte of them can be used; powers of 2. */
static void reuse(void)
{
    char *small;
    char *large;
    int i;

    (void) begin();
    opal_umrddt_gpu_staging_bound(MIB(4));
    small = get(1);
    large = get(KIB(100));
    CHECK(is_pinned(small) && is_pinned(small + 4095));
    CHECK(is_pinned(large) && is_pinned(large + KIB(128) - 1));
    memset(small, 1, 4096);
    memset(large, 2, KIB(128));
    CHECK(1 == small[4095] && 2 == large[0] && 2 == large[KIB(128) - 1]);
    CHECK(2 == stats().pinned && stats().used_now == stats().bytes_now);
    CHECK(KIB(4) + KIB(128) <= stats().bytes_now);
    opal_umrddt_gpu_staging_put(large);
    opal_umrddt_gpu_staging_put(small);
    CHECK(0 == stats().used_now && KIB(4) + KIB(128) <= stats().bytes_now);
    for (i = 0; i < 1000; i++) {
        char *again = get(KIB(64) + 1);
        char *small_again = get(4096);

        CHECK(again == large && small_again == small);
        opal_umrddt_gpu_staging_put(again);
        opal_umrddt_gpu_staging_put(small_again);
    }
    CHECK(2 == stats().pinned && 2002 == stats().gets);
    /* What is no buffer of ours, or was given back, changes nothing. */
    opal_umrddt_gpu_staging_put(small);
    opal_umrddt_gpu_staging_put(small + 1);
    opal_umrddt_gpu_staging_put(NULL);
    CHECK(0 == stats().used_now && get(1) == small && get(1) != small);
}

static void bound(void)
{
    void *buffer = NULL;
    char *a;
    char *b;
    char *c;

    (void) begin();
    opal_umrddt_gpu_staging_bound(MIB(4));
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(MIB(4) + 1, &buffer));
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(SIZE_MAX, &buffer));
    a = get(MIB(2));
    b = get(MIB(1));
    c = get(MIB(1));
    CHECK(MIB(4) == stats().bytes_now);
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(1, &buffer));
    CHECK(NULL == buffer);
    /* Unused ones make room, the least recently used first, and not more than are needed. */
    opal_umrddt_gpu_staging_put(b);
    opal_umrddt_gpu_staging_put(a);
    opal_umrddt_gpu_staging_put(c);
    b = get(KIB(512));
    CHECK(4 == stats().pinned && MIB(3) + KIB(512) == stats().bytes_now);
    CHECK(a == get(MIB(2)) && c == get(MIB(1)) && 4 == stats().pinned);
    /* Nothing is freed where that would not help. */
    opal_umrddt_gpu_staging_put(c);
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(MIB(2), &buffer));
    CHECK(c == get(MIB(1)) && 4 == stats().pinned);
    /* A lower bound: what comes back goes. */
    opal_umrddt_gpu_staging_bound(MIB(1));
    opal_umrddt_gpu_staging_put(a);
    CHECK(MIB(1) + KIB(512) == stats().bytes_now && !is_pinned(a));
    opal_umrddt_gpu_staging_put(c);
    CHECK(KIB(512) == stats().bytes_now);
    opal_umrddt_gpu_staging_put(b);
    CHECK(KIB(512) == stats().bytes_now && 0 == stats().used_now && b == get(KIB(300)));
    opal_umrddt_gpu_staging_put(b);
    opal_umrddt_gpu_staging_bound(0);
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(MIB(1), &buffer));
}

/* Everything goes; what is still taken is its taker's, and goes when it comes back. */
static void close_all(void)
{
    char *taken;
    char *cached;

    (void) begin();
    taken = get(MIB(1));
    cached = get(MIB(2));
    opal_umrddt_gpu_staging_put(cached);
    opal_umrddt_gpu_staging_close();
    CHECK(MIB(1) == stats().bytes_now && MIB(1) == stats().used_now && !is_pinned(cached));
    memset(taken, 1, MIB(1));
    opal_umrddt_gpu_staging_put(taken);
    CHECK(0 == stats().bytes_now && !is_pinned(taken));
    /* It can begin again. */
    opal_umrddt_gpu_staging_put(get(1));
    CHECK(0 < stats().bytes_now);
    opal_umrddt_gpu_staging_close();
    opal_umrddt_gpu_staging_close();
    CHECK(0 == stats().bytes_now);
}

/* The driver is gone before, or the context. */
static void gone(void)
{
    (void) begin();
    opal_umrddt_gpu_staging_put(get(1));
    opal_umrddt_gpu_staging_close();
    CHECK(0 == stats().bytes_now);
}

static void no_more_context(void)
{
    CUcontext ctx = begin();

    opal_umrddt_gpu_staging_put(get(MIB(1)));
    EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(ctx));
    opal_umrddt_gpu_staging_close();
    CHECK(0 == stats().bytes_now);
}

/* And another one comes: what went with the first one is not given to anybody. */
static void another_context(void)
{
    CUcontext ctx = begin();
    CUcontext other;
    char *taken = get(MIB(1));
    char *cached;

    opal_umrddt_gpu_staging_put(get(MIB(2)));
    EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(ctx));
    EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(&other, 0, 0));
    cached = get(MIB(4));
    memset(cached, 1, MIB(4));
    opal_umrddt_gpu_staging_check();
    CHECK(MIB(1) + MIB(4) == stats().bytes_now);
    /* They may have the same address; in any order. */
    opal_umrddt_gpu_staging_put(cached);
    opal_umrddt_gpu_staging_put(taken);
    CHECK(MIB(4) == stats().bytes_now && 0 == stats().used_now);
    CHECK(get(MIB(4)) == cached);
    memset(get(MIB(2)), 2, MIB(2));
    memset(get(MIB(1)), 2, MIB(1));
    CHECK(MIB(7) == stats().bytes_now);
}

/* One of two goes, and no engine is created after it. */
static void other_context(void)
{
    CUcontext ctx = begin();
    CUcontext other;

    opal_umrddt_gpu_staging_put(get(MIB(1)));
    EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(&other, 0, 0));
    /* As long as both exist, each can use it. */
    opal_umrddt_gpu_staging_put(get(MIB(1)));
    CHECK(1 == stats().pinned);
    EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(ctx));
    memset(get(MIB(1)), 1, MIB(1));
    CHECK(2 == stats().pinned && 3 == stats().gets);
    CHECK(MIB(1) == stats().bytes_now && MIB(1) == stats().used_now);
}

/* Refused once: said so, nothing is lost, and the next time it works. */
static void refused(void)
{
    void *buffer = NULL;

    (void) begin();
    opal_umrddt_gpu_staging_bound(MIB(1));
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_staging_get(MIB(1), &buffer));
    CHECK(NULL == buffer && 0 == stats().bytes_now && 0 == stats().gets);
    EXPECT(OPAL_ERR_NOT_AVAILABLE, opal_umrddt_gpu_staging_get(MIB(1), &buffer));
    (void) get(MIB(1));
    CHECK(MIB(1) == stats().bytes_now && 1 == stats().pinned);
}

#define THREADS 4
#define ROUNDS  3000

static CUcontext shared;

static void *worker(void *data)
{
    unsigned seed = (unsigned) (uintptr_t) data;
    char mine = (char) seed;
    void *held[4] = {NULL, NULL, NULL, NULL};
    size_t sizes[4] = {0, 0, 0, 0};
    CUcontext ctx;
    int i;

    EXPECT(CUDA_SUCCESS, driver->cuCtxPushCurrent_v2(shared));
    for (i = 0; i < ROUNDS; i++) {
        int k = rand_r(&seed) % 4;
        int rc;

        if (NULL != held[k]) {
            CHECK(mine == ((char *) held[k])[0] && mine == ((char *) held[k])[sizes[k] - 1]);
            opal_umrddt_gpu_staging_put(held[k]);
            held[k] = NULL;
            continue;
        }
        sizes[k] = (size_t) 1 << rand_r(&seed) % 18;
        rc = opal_umrddt_gpu_staging_get(sizes[k], &held[k]);
        CHECK(OPAL_SUCCESS == rc || OPAL_ERR_OUT_OF_RESOURCE == rc);
        if (OPAL_SUCCESS == rc) {
            ((char *) held[k])[0] = mine;
            ((char *) held[k])[sizes[k] - 1] = mine;
        }
        CHECK(KIB(512) >= stats().bytes_now && stats().used_now <= KIB(512));
    }
    for (i = 0; i < 4; i++) {
        opal_umrddt_gpu_staging_put(held[i]);
    }
    EXPECT(CUDA_SUCCESS, driver->cuCtxPopCurrent_v2(&ctx));
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    uintptr_t i;

    shared = begin();
    opal_umrddt_gpu_staging_bound(KIB(512));
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_create(&thread[i], NULL, worker, (void *) (i + 1)));
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_join(thread[i], NULL));
    }
    CHECK(0 == stats().used_now && stats().pinned < stats().gets && 100 < stats().gets);
    opal_umrddt_gpu_staging_close();
    CHECK(0 == stats().bytes_now);
}

int main(int argc, char **argv)
{
    static const gpu_test_part_t parts[] = {
        {"no context", no_context, ""},
        {"reuse", reuse, ""},
        {"bound", bound, ""},
        {"close", close_all, ""},
        {"the driver is gone", gone, "fail=cuMemFreeHost:*:4"},
        {"the context is gone", no_more_context, ""},
        {"another context", another_context, ""},
        {"other context", other_context, ""},
        {"refused", refused, "fail=cuMemHostAlloc:1:2,fail=cuMemHostAlloc:2:709"},
        {"threads", threads, "delay=20"},
        {"no driver", none, NULL},
    };

    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
