/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Reductions by engines: numbers of arrays up to several launches, without kernels, and with a
 * driver that fails. What each kernel does is test_reduce's business.
 */

#include "engine_parts.h"

#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_reduce.h"

#define ARRAYS   37
#define ELEMENTS 5000

static test_end_t ends[ARRAYS];
static int64_t sums[ELEMENTS];

static void make(unsigned n)
{
    for (unsigned k = 0; k < n; ++k) {
        test_end_alloc(ON_DEVICE, sizeof(sums), &ends[k]);
        test_end_fill(&ends[k]);
    }
}

static void drop(unsigned n)
{
    for (unsigned k = 0; k < n; ++k) {
        test_end_free(&ends[k]);
    }
}

/* The sum of n arrays, in the place of array `to`. @return of the engine */
static int add(unsigned n, unsigned to, uint64_t count)
{
    const unsigned spare = 0 == to ? 1 : 0;
    opal_umrddt_gpu_engine_t *engine = test_engine_for(&ends[0], &ends[0]);
    opal_umrddt_gpu_copy_t *copy;
    uint64_t source[ARRAYS];
    int64_t value;
    int rc;

    memset(sums, 0, sizeof(sums));
    for (unsigned k = 0; k < n; ++k) {
        source[k] = ends[k].place.address;
        for (uint64_t i = 0; i < count; ++i) {
            memcpy(&value, ends[k].expected + i * sizeof(value), sizeof(value));
            sums[i] = (int64_t) ((uint64_t) sums[i] + (uint64_t) value);
        }
    }
    rc = opal_umrddt_gpu_reduce(engine, UMRDDT_GPU_REDUCE_SUM, UMRDDT_GPU_REDUCE_I64, source, n,
                                ends[to].place.address, ends[spare].place.address, count, &copy);
    if (OPAL_SUCCESS == rc) {
        rc = opal_umrddt_gpu_copy_wait(copy);
    }
    if (OPAL_SUCCESS == rc) {
        memcpy(ends[to].expected, sums, count * sizeof(sums[0]));
        CHECK(test_end_good(&ends[to]));
    }
    if (UMRDDT_GPU_REDUCE_SOURCES < n) {
        test_end_fill(&ends[spare]); /* it was overwritten */
    }
    return rc;
}

void test_reductions(void)
{
    static const unsigned numbers[] = {1, 2, 3, 16, 17, 31, 32, ARRAYS};
    opal_umrddt_gpu_engine_t *engine;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    make(ARRAYS);
    engine = test_engine_for(&ends[0], &ends[0]);
    CHECK(opal_umrddt_gpu_reduces(engine, UMRDDT_GPU_REDUCE_MINLOC, UMRDDT_GPU_REDUCE_DI));
    CHECK(!opal_umrddt_gpu_reduces(engine, UMRDDT_GPU_REDUCE_MINLOC, UMRDDT_GPU_REDUCE_F64));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        const unsigned n = numbers[i];

        CHECK(OPAL_SUCCESS == add(n, 0, ELEMENTS));
        CHECK(OPAL_SUCCESS == add(n, n - 1, 1 + typegen_below(&test_dice, ELEMENTS)));
        CHECK(OPAL_SUCCESS == add(n, n / 2, 1 + typegen_below(&test_dice, ELEMENTS)));
    }
    CHECK(3 * sizeof(numbers) / sizeof(numbers[0]) == test_stats().reductions);
    drop(ARRAYS);
}

void test_no_reductions(void)
{
    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    make(2);
    CHECK(OPAL_ERR_NOT_SUPPORTED == add(2, 0, 10));
    CHECK(0 == test_stats().reductions);
    drop(2);
}

/* The driver fails once: an error then, and no other time. */
void test_failed_reductions(void)
{
    int failed = 0;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    make(20);
    for (int i = 0; i < 6; ++i) {
        failed += OPAL_SUCCESS == add(20, 2, ELEMENTS) ? 0 : 1;
        for (unsigned k = 0; k < 20; ++k) {
            test_end_fill(&ends[k]);
        }
    }
    CHECK(1 == failed);
    drop(20);
}

/* Without flags that streams write: events say when it is complete. */
void test_reductions_by_events(void)
{
    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    make(3);
    for (int i = 0; i < 10; ++i) {
        CHECK(OPAL_SUCCESS == add(3, 1, ELEMENTS));
    }
    drop(3);
}
