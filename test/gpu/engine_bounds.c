/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * What is bounded, and contexts that come and go.
 */

#include "engine_parts.h"

#include <malloc.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine_private.h"

#define LAYOUTS 12

static void copy_all(test_end_t *from, test_end_t *to)
{
    opal_umrddt_gpu_engine_t *engine = test_engine_for(from, to);
    const uint64_t size = from->place.layout->size;
    opal_umrddt_gpu_copy_t *copy;

    from->place.reached = true;
    to->place.reached = true;
    test_end_fill(to);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy(engine, &from->place, &to->place, 0, size, &copy));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copy));
    test_expect(from, to, 0, size);
    CHECK(test_end_good(to));
}

void test_bounds(void)
{
    /* Lists of 8000 bytes, five of them; and one of 40000 */
    opal_umrddt_gpu_engine_params_t params = {.how = OPAL_UMRDDT_GPU_HOW_KERNEL,
                                              .scheme = 0,
                                              .shape_cache = 40000,
                                              .staging = (size_t) 1 << 20,
                                              .staging_chunk = 4096};
    const uint64_t fit = 5;
    opal_umrddt_gpu_engine_stats_t before, after;
    test_end_t ends[LAYOUTS], packed, huge;
    uint64_t i, round;

    opal_umrddt_gpu_engine_params(&params);
    for (i = 0; i < LAYOUTS; ++i) {
        test_end_make(ON_DEVICE, test_blocks(1000, 16, 40, true), &ends[i]);
    }
    test_end_make(ON_DEVICE, test_blocks(6000, 16, 40, true), &huge);
    test_end_packed(ON_DEVICE, huge.place.layout->size, &packed);

    /* What fits stays. */
    for (round = 0; round < 5; ++round) {
        for (i = 0; i < fit; ++i) {
            copy_all(&ends[i], &packed);
        }
    }
    after = test_stats();
    CHECK(fit == after.shapes_made && fit == after.lists_uploaded);
    CHECK(fit * 8000 == after.shape_bytes_now);
    /* More than that: the bound holds, and what was used last is there. */
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < LAYOUTS; ++i) {
            copy_all(&ends[i], &packed);
            CHECK(params.shape_cache >= test_stats().shape_bytes_now);
        }
    }
    before = test_stats();
    for (i = LAYOUTS - fit; i < LAYOUTS; ++i) {
        copy_all(&ends[i], &packed);
    }
    after = test_stats();
    CHECK(before.shapes_made == after.shapes_made);
    CHECK(before.lists_uploaded == after.lists_uploaded);
    /* What can never stay: it is copied, and nothing has to leave for it. */
    copy_all(&huge, &packed);
    copy_all(&huge, &packed);
    CHECK(after.shape_bytes_now == test_stats().shape_bytes_now);
    for (i = LAYOUTS - fit; i < LAYOUTS; ++i) {
        copy_all(&ends[i], &packed);
    }
    CHECK(after.shapes_made + 2 == test_stats().shapes_made);
    for (i = 0; i < LAYOUTS; ++i) {
        test_end_free(&ends[i]);
    }
    test_end_free(&huge);
    test_end_free(&packed);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().shape_bytes_now);
}

/* A layout that no other has been like, in the memory of another: strided, or a list so short that
 * it goes with its only launch. */
static opal_iov_cache_layout_t *another(test_end_t *end, bool listed)
{
    OBJ_RELEASE(end->place.layout);
    end->place.layout = test_blocks(20, 16, 40, listed);
    return end->place.layout;
}

/* Copies of so many layouts, each its own; of one in between, which stays in use. @return bytes of
 * the heap */
static size_t copy_others(test_end_t *end, test_end_t *used, test_end_t *packed, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        (void) another(end, 0 != i % 2);
        copy_all(end, packed);
        if (0 == i % 500) {
            copy_all(used, packed);
        }
    }
    return mallinfo2().uordblks;
}

/* Layouts that have no list on the device: thousands are known, and what was not used for longest
 * is forgotten for each one more. */
void test_many(void)
{
    opal_iov_cache_layout_t *oldest;
    test_end_t end, used, packed;
    uint64_t made;
    size_t full, later;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_KERNEL, 0);
    test_end_make(ON_DEVICE, test_blocks(20, 16, 40, false), &end);
    test_end_make(ON_DEVICE, test_blocks(20, 16, 40, false), &used);
    test_end_packed(ON_DEVICE, end.place.layout->size, &packed);
    oldest = end.place.layout;
    OBJ_RETAIN(oldest);
    copy_all(&end, &packed);
    copy_all(&used, &packed);

    /* As many as there is room for: all are known, ... */
    full = copy_others(&end, &used, &packed, SHAPES - 2);
    CHECK(SHAPES == test_stats().shapes_made);
    OBJ_RELEASE(end.place.layout);
    end.place.layout = oldest;
    OBJ_RETAIN(oldest);
    copy_all(&end, &packed);
    CHECK(SHAPES == test_stats().shapes_made);

    /* ... and none of them when as many others have come, but the one that was used. */
    later = copy_others(&end, &used, &packed, SHAPES);
    made = test_stats().shapes_made;
    CHECK(2 * SHAPES == made);
    OBJ_RELEASE(end.place.layout);
    end.place.layout = oldest;
    copy_all(&end, &packed);
    CHECK(made + 1 == test_stats().shapes_made);
    copy_all(&used, &packed);
    CHECK(made + 1 == test_stats().shapes_made);

    /* Nor does the heap grow. */
    CHECK(later < full + 65536);
    CHECK(0 == test_stats().lists_uploaded);

    test_end_free(&end);
    test_end_free(&used);
    test_end_free(&packed);
    opal_umrddt_gpu_engines_close();
}

/* The same layouts at several addresses, more of them than are remembered: each launch is the one
 * for these addresses, and for this range. */
void test_addresses(void)
{
    enum {
        BUFFERS = 18
    };
    opal_iov_cache_layout_t *layouts[2];
    test_end_t ends[2][BUFFERS];
    int i, k, round;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_KERNEL, 0);
    layouts[0] = test_blocks(40, 16, 40, true);
    layouts[1] = test_blocks(20, 32, 48, false);
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < BUFFERS; ++i) {
            OBJ_RETAIN(layouts[k]);
            test_end_make(ON_DEVICE, layouts[k], &ends[k][i]);
        }
        OBJ_RELEASE(layouts[k]);
    }
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < BUFFERS; ++i) {
            for (k = 0; k < BUFFERS; ++k) {
                copy_all(&ends[0][i], &ends[1][k]);
                if (0 == k % 6) {
                    copy_all(&ends[0][i], &ends[1][k]);
                }
            }
        }
    }
    CHECK(0 < test_stats().launches_again && 2 == test_stats().shapes_made);
    for (i = 0; i < BUFFERS; ++i) {
        test_end_free(&ends[0][i]);
        test_end_free(&ends[1][i]);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Contexts
 * ------------------------------------------------------------------------------------------- */

static bool works(void)
{
    const uint64_t before = test_stats().graph_launches;
    test_end_t ends[2];
    int i;

    test_end_make(ON_DEVICE, test_blocks(300, 16, 40, true), &ends[0]);
    test_end_make(ON_DEVICE, test_blocks(300, 16, 48, true), &ends[1]);
    for (i = 0; i < 12; ++i) {
        copy_all(&ends[0], &ends[1]);
    }
    test_end_free(&ends[0]);
    test_end_free(&ends[1]);
    return before < test_stats().graph_launches;
}

static opal_umrddt_gpu_engine_t *engine_now(void)
{
    opal_umrddt_gpu_engine_t *engine;
    test_end_t end;

    test_end_alloc(ON_DEVICE, 100, &end);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&end.is, &engine));
    test_end_free(&end);
    return engine;
}

/* A context goes while a copy of its engine, into memory that is not its own, is not known to be
 * over. Another context may get its handle, but not its engine. */
static void overtaken(void)
{
    const opal_umrddt_gpu_copy_end_t nothing = {.layout = NULL};
    opal_umrddt_gpu_engine_t *engine, *other;
    opal_umrddt_gpu_copy_t *copy;
    test_end_t end;
    CUcontext own;

    OK(cuCtxCreate_v2(&own, 0, 0));
    test_end_alloc(ON_DEVICE, 100, &end);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&end.is, &engine));
    test_end_free(&end);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy(engine, &nothing, &nothing, 0, 0, &copy));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&end.is, &other) && engine == other);
    OK(cuCtxDestroy_v2(own));
    CHECK(OPAL_SUCCESS != opal_umrddt_gpu_engine_get(&end.is, &other));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copy));
}

void test_contexts(void)
{
    opal_umrddt_gpu_engine_t *engines[2];
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_memory_t memory;
    CUcontext primary, own, now;
    unsigned active = 0;
    int state = 0, i;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_KERNEL, 0);
    OK(cuCtxGetCurrent(&primary));
    engines[0] = engine_now();
    CHECK(works());
    CHECK(engine_now() == engines[0]);
    CHECK(0 == opal_umrddt_gpu_engine_device(engines[0]));

    /* Memory of no context is done by the primary one, whose engine is there. */
    memset(&memory, 0, sizeof(memory));
    memory.kind = OPAL_UMRDDT_GPU_DEVICE;
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, &engine));
    CHECK(engine == engines[0]);
    memory.device = 99;
    CHECK(OPAL_ERROR == opal_umrddt_gpu_engine_get(&memory, &engine));

    /* What is current stays current. */
    OK(cuCtxSetCurrent(NULL));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_enter(engines[0]));
    OK(cuCtxGetCurrent(&now));
    CHECK(primary == now && opal_umrddt_gpu_engine_context(engines[0]) == now);
    opal_umrddt_gpu_engine_leave(engines[0]);
    OK(cuCtxGetCurrent(&now));
    CHECK(NULL == now);

    /* A context of the application's own goes, and others come, at its address too. */
    for (i = 0; i < 3; ++i) {
        OK(cuCtxCreate_v2(&own, 0, 0));
        engines[1] = engine_now();
        CHECK(engines[1] != engines[0] && own == opal_umrddt_gpu_engine_context(engines[1]));
        CHECK(works());
        OK(cuCtxDestroy_v2(own));
        OK(cuCtxSetCurrent(primary));
        CHECK(engine_now() == engines[0]);
        CHECK(works());
        OK(cuCtxSetCurrent(NULL));
    }
    overtaken();
    OK(cuCtxSetCurrent(primary));
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().shape_bytes_now && 0 == test_stats().graphs_now);

    /* The primary context is kept while an engine needs it, and not after that. */
    memory.device = 1;
    OK(cuDevicePrimaryCtxRelease_v2(1));
    OK(cuDevicePrimaryCtxGetState(1, &active, &state));
    CHECK(0 == state);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, &engine));
    CHECK(1 == opal_umrddt_gpu_engine_device(engine));
    OK(cuDevicePrimaryCtxGetState(1, &active, &state));
    CHECK(1 == state);
    opal_umrddt_gpu_engines_close();
    OK(cuDevicePrimaryCtxGetState(1, &active, &state));
    CHECK(0 == state);
    CHECK(works());

    /* Reset under the engine: its end is still no problem. */
    OK(cuDevicePrimaryCtxReset_v2(0));
    opal_umrddt_gpu_engines_close();
}
