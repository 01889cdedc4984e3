/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * Every allocation that the layouts make fails in turn: the first, then the second, and so on until
 * a run sees no fault. The linker puts the functions below in the place of malloc, calloc, realloc
 * and aligned_alloc (--wrap) in this program, and not in Open MPI's libraries.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#define NEVER UINT64_MAX

/* allocations until one fails; that one only */
static uint64_t countdown = NEVER;
static bool faulted;

static bool fails(void)
{
    if (NEVER == countdown || 0 < countdown--) {
        return false;
    }
    countdown = NEVER;
    faulted = true;
    return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

static void arm(uint64_t n)
{
    faulted = false;
    countdown = n;
}

/* @return whether a fault happened since arm */
static bool disarm(void)
{
    countdown = NEVER;
    return faulted;
}

static int watch(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    ++*(int *) context;
    return OPAL_SUCCESS;
}

static MPI_Datatype vector(int blocks)
{
    MPI_Datatype type;

    MPI_Type_vector(blocks, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void layout_create(void **state)
{
    MPI_Datatype type = vector(1000);
    uint64_t n;

    (void) state;
    for (n = 0;; ++n) {
        opal_iov_cache_layout_t *layout = NULL;
        int rc;

        arm(n);
        rc = opal_iov_cache_layout_create(opal_type(type), 2, &layout);
        if (!disarm()) {
            assert_int_equal(OPAL_SUCCESS, rc);
            OBJ_RELEASE(layout);
            break;
        }
        assert_int_equal(OPAL_ERR_OUT_OF_RESOURCE, rc);
        assert_null(layout);
    }
    /* lists and their items, the form and its arrays, the object: this loop has tried something */
    assert_true(4 <= n);
    MPI_Type_free(&type);
}

/* Every allocation of a form with lists, streams of streams and blocks, and of its sorted form. */
static void forms(void **state)
{
    const int lengths[3] = {1, 1, 1}, indices[9] = {40, 3, 17, 20, 9, 31, 1, 50, 46};
    const MPI_Aint places[3] = {0, 8, 400};
    MPI_Datatype fields[3] = {MPI_INT, MPI_DOUBLE, MPI_DATATYPE_NULL}, type, strided;
    opal_iov_cache_form_t *form, *sorted;
    uint64_t n;
    int rc;

    (void) state;
    MPI_Type_create_indexed_block(9, 1, indices, MPI_INT, &fields[2]);
    MPI_Type_create_struct(3, lengths, places, fields, &type);
    MPI_Type_free(&fields[2]);
    MPI_Type_create_hvector(20, 1, 4096, type, &strided);
    MPI_Type_free(&type);
    MPI_Type_create_hvector(5, 1, -200000, strided, &type);
    MPI_Type_free(&strided);
    MPI_Type_commit(&type);
    for (n = 0;; ++n) {
        form = NULL;
        arm(n);
        rc = opal_iov_cache_form_create(opal_type(type), 3, &form);
        if (!disarm()) {
            assert_int_equal(OPAL_SUCCESS, rc);
            break;
        }
        assert_int_equal(OPAL_ERR_OUT_OF_RESOURCE, rc);
        assert_null(form);
    }
    assert_true(8 <= n);
    for (n = 0;; ++n) {
        sorted = NULL;
        arm(n);
        rc = opal_iov_cache_form_sorted(form, &sorted);
        if (!disarm()) {
            assert_int_equal(OPAL_SUCCESS, rc);
            break;
        }
        assert_int_equal(OPAL_ERR_OUT_OF_RESOURCE, rc);
        assert_null(sorted);
    }
    assert_true(10 <= n);
    opal_iov_cache_form_free(sorted);
    opal_iov_cache_form_free(form);
    MPI_Type_free(&type);
}

static void cache_create(void **state)
{
    uint64_t n;

    (void) state;
    for (n = 0;; ++n) {
        opal_iov_cache_t *cache = NULL;
        int rc, calls = 0;

        arm(n);
        rc = opal_iov_cache_create(1 << 20, watch, &calls, &cache);
        if (!disarm()) {
            assert_int_equal(OPAL_SUCCESS, rc);
            opal_iov_cache_destroy(cache);
            break;
        }
        assert_int_equal(OPAL_ERR_OUT_OF_RESOURCE, rc);
        assert_null(cache);
    }
    assert_true(1 <= n);
}

/* Without memory for an entry the layout is handed out and not kept, and the cache goes on. */
static void cache_get(void **state)
{
    MPI_Datatype type = vector(100), other = vector(50);
    opal_iov_cache_layout_t *layout;
    uint64_t n;

    (void) state;
    for (n = 0;; ++n) {
        opal_iov_cache_t *cache;
        opal_iov_cache_stats_t stats;
        int rc, calls = 0;
        bool fault;

        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_create(1 << 20, watch, &calls, &cache));
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(other), 1, &layout));
        OBJ_RELEASE(layout);
        layout = NULL;
        arm(n);
        rc = opal_iov_cache_get(cache, opal_type(type), 1, &layout);
        fault = disarm();
        assert_true(opal_iov_cache_check(cache));
        if (OPAL_SUCCESS == rc) {
            assert_int_equal(100, layout->iov_count);
            OBJ_RELEASE(layout);
        } else {
            assert_int_equal(OPAL_ERR_OUT_OF_RESOURCE, rc);
            assert_null(layout);
        }
        /* and the next lookup keeps it */
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(type), 1, &layout));
        OBJ_RELEASE(layout);
        assert_true(opal_iov_cache_check(cache));
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(2, stats.entries);
        assert_int_equal(2, calls);
        opal_iov_cache_forget(cache, opal_type(type));
        assert_true(opal_iov_cache_check(cache));
        opal_iov_cache_destroy(cache);
        if (!fault) {
            assert_int_equal(OPAL_SUCCESS, rc);
            break;
        }
    }
    assert_true(6 <= n);
    MPI_Type_free(&type);
    MPI_Type_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_create),
        cmocka_unit_test(forms),
        cmocka_unit_test(cache_create),
        cmocka_unit_test(cache_get),
    };
    int failed;

    singleton_init(MPI_THREAD_SINGLE);
    failed = cmocka_run_group_tests_name("faults", tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
