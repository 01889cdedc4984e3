/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The pool of device memory for packed chunks, on the software CUDA driver. */

#include "opal_config.h"

#include <pthread.h>
#include <stdint.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

#include "gpu_test.h"
#include "umrddt_cuda_all.h"

#define KIB(n) ((size_t) (n) << 10)

static const umrddt_cuda_all_t *driver;

static opal_umrddt_gpu_engine_t *engine_on(int device, CUcontext *ctx)
{
    opal_umrddt_gpu_memory_t memory = {.kind = OPAL_UMRDDT_GPU_DEVICE, .device = device};
    opal_umrddt_gpu_engine_t *engine;

    EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(ctx, 0, device));
    memory.ctx = *ctx;
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_engine_get(&memory, &engine));
    return engine;
}

static opal_umrddt_gpu_scratch_stats_t stats(void)
{
    opal_umrddt_gpu_scratch_stats_t now;

    opal_umrddt_gpu_scratch_stats(&now);
    return now;
}

static uint64_t get(opal_umrddt_gpu_engine_t *engine, size_t size)
{
    opal_umrddt_gpu_memory_t memory;
    uint64_t address = 0;

    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_scratch_get(engine, size, &address));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify((void *) (uintptr_t) address, &memory));
    CHECK(OPAL_UMRDDT_GPU_DEVICE == memory.kind);
    CHECK(memory.ctx == opal_umrddt_gpu_engine_context(engine));
    return address;
}

/* What comes back is taken again, by the same engine and size, without the driver. */
static void again(opal_umrddt_gpu_engine_t *one, opal_umrddt_gpu_engine_t *other)
{
    uint64_t first = get(one, 5000), second;

    CHECK(1 == stats().allocated && KIB(8) == stats().bytes_now && KIB(8) == stats().used_now);
    opal_umrddt_gpu_scratch_put(first);
    CHECK(KIB(8) == stats().bytes_now && 0 == stats().used_now);
    second = get(one, KIB(8));
    CHECK(first == second && 1 == stats().allocated);
    opal_umrddt_gpu_scratch_put(second);
    second = get(other, KIB(8));
    CHECK(first != second && 2 == stats().allocated);
    opal_umrddt_gpu_scratch_put(second);
}

/* Never more than the bound; the oldest unused ones are evicted first. */
static void bounded(opal_umrddt_gpu_engine_t *one)
{
    uint64_t a, b, c = 0;

    opal_umrddt_gpu_scratch_bound(KIB(64));
    CHECK(OPAL_ERR_OUT_OF_RESOURCE == opal_umrddt_gpu_scratch_get(one, KIB(65), &c));
    a = get(one, KIB(32));
    b = get(one, KIB(32));
    CHECK(KIB(64) == stats().bytes_now);
    CHECK(OPAL_ERR_OUT_OF_RESOURCE == opal_umrddt_gpu_scratch_get(one, KIB(4), &c));
    CHECK(0 == c);
    opal_umrddt_gpu_scratch_put(a);
    c = get(one, KIB(16)); /* a goes */
    CHECK(KIB(48) == stats().bytes_now);
    opal_umrddt_gpu_scratch_bound(0);
    opal_umrddt_gpu_scratch_put(b);
    opal_umrddt_gpu_scratch_put(c);
    CHECK(0 == stats().bytes_now && 0 == stats().used_now);
    opal_umrddt_gpu_scratch_bound(KIB(1024));
}

static void *taker(void *argument)
{
    opal_umrddt_gpu_engine_t *engine = argument;
    int i;

    for (i = 0; i < 300; ++i) {
        uint64_t a = 0, b = 0;

        EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_scratch_get(engine, KIB(4 << i % 3), &a));
        EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_scratch_get(engine, KIB(8), &b));
        CHECK(0 != a && 0 != b && a != b);
        opal_umrddt_gpu_scratch_put(a);
        opal_umrddt_gpu_scratch_put(b);
    }
    return NULL;
}

static void threads(opal_umrddt_gpu_engine_t *one, opal_umrddt_gpu_engine_t *other)
{
    pthread_t thread[4];
    int i;

    for (i = 0; i < 4; ++i) {
        CHECK(0 == pthread_create(&thread[i], NULL, taker, 0 == i % 2 ? one : other));
    }
    for (i = 0; i < 4; ++i) {
        CHECK(0 == pthread_join(thread[i], NULL));
    }
    CHECK(0 == stats().used_now);
}

static void begin(void)
{
    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    EXPECT(CUDA_SUCCESS, driver->cuInit(0));
}

static void taken_and_given(void)
{
    opal_umrddt_gpu_engine_t *one, *other;
    CUcontext ctx[2];
    int devices = 0;

    begin();
    EXPECT(CUDA_SUCCESS, driver->cuDeviceGetCount(&devices));
    one = engine_on(0, &ctx[0]);
    other = engine_on(gpu_test_far(devices), &ctx[1]);
    again(one, other);
    bounded(one);
    threads(one, other);
    /* a context that the application has destroyed is not named: the software driver would crash */
    EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(ctx[0]));
    opal_umrddt_gpu_scratch_close();
    CHECK(0 == stats().bytes_now);
    opal_umrddt_gpu_engines_close();
}

static void refused(void)
{
    opal_umrddt_gpu_engine_t *engine;
    CUcontext ctx;
    uint64_t address = 0;

    begin();
    engine = engine_on(0, &ctx);
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, opal_umrddt_gpu_scratch_get(engine, KIB(8), &address));
    CHECK(0 == address && 0 == stats().bytes_now && 0 == stats().allocated);
    opal_umrddt_gpu_scratch_close();
    opal_umrddt_gpu_engines_close();
}

static void gone(void)
{
    opal_umrddt_gpu_engine_t *engine;
    CUcontext ctx;

    begin();
    engine = engine_on(0, &ctx);
    opal_umrddt_gpu_scratch_put(get(engine, KIB(8)));
    opal_umrddt_gpu_scratch_close();
    CHECK(0 == stats().bytes_now);
}

int main(int argc, char **argv)
{
    static const gpu_test_part_t parts[] = {
        {"taken and given", taken_and_given, "crash=1"},
        {"refused", refused, "fail=cuMemAlloc_v2:*:2"},
        {"the driver is gone", gone, "fail=cuMemFree_v2:*:4"},
    };

    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
