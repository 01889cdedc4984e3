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
 * The cache of layouts: counters, bound, order of use, death of datatypes, threads. The owner of
 * the datatypes is this test: its watch function notes what it promised, and free_type keeps the
 * promise.
 */

/* RTLD_NEXT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cmocka.h>

#include "singleton.h"

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/datatype/iov_cache/iov_cache_cache.h"

#define MIB ((size_t) 1 << 20)

/* Forms are made and freed through here (--wrap): how many, and what else happens meanwhile. */
static int reads, frees;
static void (*during_read)(void);

int __real_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form);
int __wrap_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form);

int __wrap_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form)
{
    int rc = __real_opal_iov_cache_form_create(type, count, form);

    __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
    if (NULL != during_read) {
        during_read();
    }
    return rc;
}

void __real_opal_iov_cache_form_free(opal_iov_cache_form_t *form);
void __wrap_opal_iov_cache_form_free(opal_iov_cache_form_t *form);

void __wrap_opal_iov_cache_form_free(opal_iov_cache_form_t *form)
{
    __atomic_add_fetch(&frees, 1, __ATOMIC_RELAXED);
    __real_opal_iov_cache_form_free(form);
}

/* The walks of what is too deep go through here. */
static int walks;
static int32_t walk_result; /* other than 0: what the convertor is made to answer */

int32_t opal_convertor_raw(opal_convertor_t *convertor, struct iovec *iov, uint32_t *iov_count,
                           size_t *length)
{
    int32_t (*original)(opal_convertor_t *, struct iovec *, uint32_t *, size_t *);

    __atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED);
    if (0 > walk_result) {
        return walk_result;
    }
    if (0 < walk_result) {
        /* no progress, and not done (1) or done (2) */
        *iov_count = 0;
        *length = 0;
        return walk_result - 1;
    }
    *(void **) &original = dlsym(RTLD_NEXT, "opal_convertor_raw");
    return original(convertor, iov, iov_count, length);
}

/* The owner of the datatypes. */
typedef struct {
    int answer;                  /* of the watch function */
    int calls;                   /* of the watch function */
    const opal_datatype_t *type; /* the last it was called with */
    void (*meanwhile)(opal_iov_cache_t *cache, const opal_datatype_t *type);
} owner_t;

static int watch(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    owner_t *owner = context;

    ++owner->calls;
    owner->type = type;
    if (NULL != owner->meanwhile) {
        owner->meanwhile(cache, type);
    }
    return owner->answer;
}

static opal_iov_cache_t *make_cache(size_t max_bytes, owner_t *owner)
{
    opal_iov_cache_t *cache = NULL;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_create(max_bytes, watch, owner, &cache));
    assert_non_null(cache);
    return cache;
}

static opal_iov_cache_layout_t *get(opal_iov_cache_t *cache, MPI_Datatype type, size_t count)
{
    opal_iov_cache_layout_t *layout = NULL;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(type), count, &layout));
    assert_true(opal_iov_cache_check(cache));
    return layout;
}

/* A lookup of which only the counters matter. */
static void use(opal_iov_cache_t *cache, MPI_Datatype type, size_t count)
{
    opal_iov_cache_layout_t *layout = get(cache, type, count);

    OBJ_RELEASE(layout);
    assert_true(opal_iov_cache_check(cache));
}

static MPI_Datatype vector(int blocks, int stride)
{
    MPI_Datatype type;

    MPI_Type_vector(blocks, 1, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Blocks of an int, no two of them at one distance: each costs memory. */
static MPI_Datatype scattered(int blocks, int seed)
{
    int *places = malloc((size_t) blocks * sizeof(*places)), i;
    MPI_Datatype type;

    for (i = 0; i < blocks; ++i) {
        places[i] = i * i + (10 + seed) * i;
    }
    MPI_Type_create_indexed_block(blocks, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    free(places);
    return type;
}

/* More loops within each other than a form has. */
static MPI_Datatype deep(void)
{
    MPI_Datatype type = MPI_INT, outer;
    MPI_Aint stride = 12;
    int i;

    for (i = 0; i < OPAL_IOV_CACHE_MAX_DEPTH + 1; ++i, stride *= 3) {
        MPI_Type_create_hvector(2, 1, stride, type, &outer);
        if (MPI_INT != type) {
            MPI_Type_free(&type);
        }
        type = outer;
    }
    MPI_Type_commit(&type);
    return type;
}

/* What an owner does when a type that it watches dies. */
static void free_type(opal_iov_cache_t *cache, MPI_Datatype type)
{
    opal_iov_cache_forget(cache, opal_type(type));
    assert_true(opal_iov_cache_check(cache));
    MPI_Type_free(&type);
}

/* No memory but of entries and tables that are there for the next layouts; as many as there were.
 */
static void assert_no_layouts(const opal_iov_cache_stats_t *stats, uint64_t most_entries)
{
    assert_int_equal(0, stats->entries);
    assert_true(most_entries * (sizeof(opal_iov_cache_entry_t) + 2 * OPAL_IOV_CACHE_LINE)
                >= stats->bytes);
}

static void expect(opal_iov_cache_t *cache, uint64_t hits, uint64_t misses, uint64_t evictions,
                   uint64_t forgotten, uint64_t uncached, uint64_t entries)
{
    opal_iov_cache_stats_t stats;

    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(hits, stats.hits);
    assert_int_equal(misses, stats.misses);
    assert_int_equal(evictions, stats.evictions);
    assert_int_equal(forgotten, stats.forgotten);
    assert_int_equal(uncached, stats.uncached);
    assert_int_equal(entries, stats.entries);
    assert_true(0 == entries || 256 < stats.bytes);
    if (0 == entries) {
        assert_no_layouts(&stats, misses);
    }
}

static void hits_and_misses(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype a = vector(10, 3), b = vector(20, 5);
    opal_iov_cache_layout_t *first, *second;

    (void) state;
    first = get(cache, a, 1);
    expect(cache, 0, 1, 0, 0, 0, 1);
    assert_int_equal(1, owner.calls);
    assert_ptr_equal(opal_type(a), owner.type);
    second = get(cache, a, 1);
    expect(cache, 1, 1, 0, 0, 0, 1);
    assert_ptr_equal(first, second);
    OBJ_RELEASE(second);
    /* another count and another type are other layouts; a type is watched once */
    second = get(cache, a, 2);
    expect(cache, 1, 2, 0, 0, 0, 2);
    assert_ptr_not_equal(first, second);
    assert_int_equal(20 - 1, second->iov_count); /* the copies touch */
    OBJ_RELEASE(second);
    use(cache, b, 1);
    expect(cache, 1, 3, 0, 0, 0, 3);
    assert_int_equal(2, owner.calls);
    use(cache, b, 0);
    expect(cache, 1, 4, 0, 0, 0, 4);
    assert_int_equal(2, owner.calls);
    OBJ_RELEASE(first);
    use(cache, a, 1);
    use(cache, a, 2);
    use(cache, b, 1);
    use(cache, b, 0);
    expect(cache, 5, 4, 0, 0, 0, 4);
    free_type(cache, a);
    expect(cache, 5, 4, 0, 2, 0, 2);
    free_type(cache, b);
    expect(cache, 5, 4, 0, 4, 0, 0);
    opal_iov_cache_destroy(cache);
}

/* A hit reads nothing. */
static void hits_do_not_read(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(100, 3);
    int i;

    (void) state;
    reads = 0;
    walks = 0;
    use(cache, type, 1);
    assert_int_equal(1, reads);
    for (i = 0; i < 50; ++i) {
        use(cache, type, 1);
    }
    assert_int_equal(1, reads);
    assert_int_equal(0, walks); /* and the one reading was not a walk */
    expect(cache, 50, 1, 0, 0, 0, 1);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&type);
}

/* The type dies while another thread reads it: that layout must not be kept for its address. */
static opal_iov_cache_t *dying_cache;
static const opal_datatype_t *dying_type;

static void die(void)
{
    opal_iov_cache_forget(dying_cache, dying_type);
}

static void forgotten_while_read(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    MPI_Datatype type = vector(100, 3);

    (void) state;
    dying_cache = make_cache(MIB, &owner);
    dying_type = opal_type(type);
    during_read = die;
    use(dying_cache, type, 1);
    during_read = NULL;
    assert_int_equal(0, owner.calls);
    expect(dying_cache, 0, 1, 0, 0, 1, 0);
    use(dying_cache, type, 1);
    use(dying_cache, type, 1);
    expect(dying_cache, 1, 2, 0, 0, 1, 1);
    /* also where the record of the type is there already */
    during_read = die;
    use(dying_cache, type, 2);
    during_read = NULL;
    expect(dying_cache, 1, 3, 0, 1, 2, 0);
    opal_iov_cache_destroy(dying_cache);
    MPI_Type_free(&type);
}

/* A convertor that fails, goes round without end, or ends early, makes an error. */
static void failing_walk(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(16 * MIB, &owner);
    MPI_Datatype type = deep();
    opal_iov_cache_layout_t *layout = NULL;
    const int32_t results[] = {-1, 1, 2};
    int i;

    (void) state;
    for (i = 0; i < 3; ++i) {
        walk_result = results[i];
        assert_int_not_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(type), 1, &layout));
        walk_result = 0;
        assert_null(layout);
        assert_true(opal_iov_cache_check(cache));
        expect(cache, 0, 0, 0, 0, 0, 0);
    }
    use(cache, type, 1);
    expect(cache, 0, 1, 0, 0, 0, 1);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&type);
}

static void errors_pass(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    opal_iov_cache_layout_t *layout = (opal_iov_cache_layout_t *) &owner;
    MPI_Datatype type;

    (void) state;
    MPI_Type_vector(2, 1, 3, MPI_INT, &type); /* not committed */
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_get(cache, opal_type(type), 1, &layout));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_get(cache, opal_type(MPI_DOUBLE), SIZE_MAX, &layout));
    assert_ptr_equal((opal_iov_cache_layout_t *) &owner, layout);
    assert_int_equal(0, owner.calls);
    expect(cache, 0, 0, 0, 0, 0, 0);
    assert_true(opal_iov_cache_check(cache));
    MPI_Type_free(&type);
    opal_iov_cache_destroy(cache);
    opal_iov_cache_destroy(NULL);
}

/* The least recently used leave, as few as needed, and the bound holds. */
static void least_recently_used(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype types[40], large;
    opal_iov_cache_stats_t stats;
    uint64_t one;
    int i;

    (void) state;
    /* all of the same size: learn it, and begin again with room for ten and a half */
    types[0] = scattered(100, 1);
    use(cache, types[0], 1);
    opal_iov_cache_stats(cache, &stats);
    one = stats.bytes;
    assert_true(100 * 16 <= one && one < 100 * 16 + 1024);
    opal_iov_cache_destroy(cache);
    cache = make_cache((size_t) (10 * one + one / 2), &owner);

    for (i = 0; i < 40; ++i) {
        types[i] = 0 == i ? types[0] : scattered(100, 1 + i);
    }
    for (i = 0; i < 10; ++i) {
        use(cache, types[i], 1);
    }
    expect(cache, 0, 10, 0, 0, 0, 10);
    use(cache, types[0], 1); /* now 1 is the oldest */
    use(cache, types[10], 1);
    expect(cache, 1, 11, 1, 0, 0, 10);
    use(cache, types[0], 1);
    expect(cache, 2, 11, 1, 0, 0, 10);
    use(cache, types[1], 1); /* was gone; 2 leaves for it */
    expect(cache, 2, 12, 2, 0, 0, 10);
    use(cache, types[3], 1);
    expect(cache, 3, 12, 2, 0, 0, 10);
    /* one that needs the room of three: 4, 5 and 6 */
    large = scattered(300, 1);
    use(cache, large, 1);
    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(2 + 3, stats.evictions);
    assert_true(stats.bytes <= 10 * one + one / 2);
    use(cache, types[7], 1);
    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(4, stats.hits);
    for (i = 0; i < 400; ++i) {
        use(cache, types[(i * 7) % 40], 1 + (size_t) i % 3);
        opal_iov_cache_stats(cache, &stats);
        assert_true(stats.bytes <= 10 * one + one / 2);
    }
    assert_true(100 < stats.evictions);
    free_type(cache, large);
    for (i = 0; i < 40; ++i) {
        free_type(cache, types[i]);
    }
    opal_iov_cache_stats(cache, &stats);
    assert_no_layouts(&stats, 12);
    opal_iov_cache_destroy(cache);
}

/* A layout larger than the bound is made, and evicts no other. */
static void too_big(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(4096, &owner);
    MPI_Datatype small = vector(10, 2), big = scattered(1000, 1);
    opal_iov_cache_layout_t *layout;

    (void) state;
    use(cache, small, 1);
    layout = get(cache, big, 1);
    assert_int_equal(1000, layout->iov_count);
    OBJ_RELEASE(layout);
    expect(cache, 0, 2, 0, 0, 1, 1);
    assert_int_equal(1, owner.calls); /* nothing to watch the big one for */
    use(cache, small, 1);
    expect(cache, 1, 2, 0, 0, 1, 1);
    opal_iov_cache_destroy(cache);

    cache = make_cache(0, &owner);
    use(cache, small, 1);
    use(cache, small, 1);
    expect(cache, 0, 2, 0, 0, 2, 0);
    use(cache, MPI_INT, 1);
    expect(cache, 0, 3, 0, 0, 3, 0);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&small);
    MPI_Type_free(&big);
}

/* Layouts live on without their entry, their type and their cache. */
static void outliving(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(10, 3);
    opal_iov_cache_layout_t *layout = get(cache, type, 1), *kept;

    (void) state;
    free_type(cache, type);
    assert_int_equal(10, layout->iov_count);
    assert_int_equal(9 * 12, opal_iov_cache_layout_iov(layout, 9).offset);
    OBJ_RELEASE(layout);

    kept = get(cache, MPI_DOUBLE, 4);
    opal_iov_cache_destroy(cache);
    assert_int_equal(32, kept->size);
    OBJ_RELEASE(kept);
}

/* The allocator gives a freed type's address to the next type: it must never get the old layout. */
static void reused_address(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    const opal_datatype_t *address = NULL;
    int i, reused = 0, rounds = 200;

    (void) state;
    for (i = 0; i < rounds; ++i) {
        int blocks = 10 + i;
        MPI_Datatype type = vector(blocks, 3);
        opal_iov_cache_layout_t *layout;

        reused += address == opal_type(type);
        address = opal_type(type);
        layout = get(cache, type, 1);
        assert_int_equal(blocks, layout->iov_count);
        OBJ_RELEASE(layout);
        layout = get(cache, type, 1);
        assert_int_equal(blocks, layout->iov_count);
        OBJ_RELEASE(layout);
        free_type(cache, type);
    }
    if (0 == reused) {
        /* then this test has not tried what it is for; say so rather than pass */
        printf("no address was reused in %d rounds\n", rounds);
        skip();
    }
    expect(cache, (uint64_t) rounds, (uint64_t) rounds, 0, (uint64_t) rounds, 0, 0);
    assert_int_equal(rounds, owner.calls); /* each life is watched anew */
    opal_iov_cache_destroy(cache);
}

static void refused_watch(void **state)
{
    owner_t owner = {OPAL_ERR_NOT_SUPPORTED, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(10, 3);
    opal_iov_cache_layout_t *first, *second;

    (void) state;
    first = get(cache, type, 1);
    second = get(cache, type, 1);
    assert_ptr_not_equal(first, second);
    expect(cache, 0, 2, 0, 0, 2, 0);
    OBJ_RELEASE(first);
    OBJ_RELEASE(second);
    /* it changed its mind */
    owner.answer = OPAL_SUCCESS;
    use(cache, type, 1);
    use(cache, type, 1);
    expect(cache, 1, 3, 0, 0, 2, 1);
    opal_iov_cache_destroy(cache);

    /* without an owner, only what never dies is kept */
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_create(MIB, NULL, NULL, &cache));
    use(cache, type, 1);
    use(cache, type, 1);
    expect(cache, 0, 2, 0, 0, 2, 0);
    use(cache, MPI_DOUBLE, 3);
    use(cache, MPI_DOUBLE, 3);
    expect(cache, 1, 3, 0, 0, 2, 1);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&type);
}

static void predefined(void **state)
{
    owner_t owner = {OPAL_ERROR, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);

    (void) state;
    use(cache, MPI_INT, 10);
    use(cache, MPI_INT, 10);
    use(cache, MPI_DOUBLE, 10);
    use(cache, MPI_DOUBLE, 10);
    expect(cache, 2, 2, 0, 0, 0, 2);
    assert_int_equal(0, owner.calls);
    opal_iov_cache_destroy(cache);
}

static void forget_unknown(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(10, 3), other = vector(11, 3);

    (void) state;
    use(cache, type, 1);
    opal_iov_cache_forget(cache, opal_type(other));
    opal_iov_cache_forget(cache, NULL);
    use(cache, type, 1);
    expect(cache, 1, 1, 0, 0, 0, 1);
    /* twice is once */
    opal_iov_cache_forget(cache, opal_type(type));
    opal_iov_cache_forget(cache, opal_type(type));
    expect(cache, 1, 1, 0, 1, 0, 0);
    assert_true(opal_iov_cache_check(cache));
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&type);
    MPI_Type_free(&other);
}

/* Evicted with all its entries, a type is still watched: its owner must not be asked again. */
static void watched_once(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(4096, &owner);
    MPI_Datatype a = scattered(150, 1), b = scattered(150, 2);
    int i;

    (void) state;
    for (i = 0; i < 10; ++i) {
        use(cache, a, 1);
        use(cache, b, 1);
    }
    expect(cache, 0, 20, 19, 0, 0, 1);
    assert_int_equal(2, owner.calls);
    free_type(cache, a);
    free_type(cache, b);
    opal_iov_cache_destroy(cache);
}

/* No lock is held while the owner is asked: it may use the cache. */
static void use_within(opal_iov_cache_t *cache, const opal_datatype_t *type)
{
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_stats_t stats;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(MPI_INT), 2, &layout));
    OBJ_RELEASE(layout);
    /* the same type: not asked again within the question, and not kept */
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, type, 1, &layout));
    OBJ_RELEASE(layout);
    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(1, stats.uncached);
}

static void forget_within(opal_iov_cache_t *cache, const opal_datatype_t *type)
{
    opal_iov_cache_forget(cache, type);
}

static void watch_without_lock(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, use_within};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(10, 3);

    (void) state;
    use(cache, type, 1);
    assert_int_equal(1, owner.calls);
    expect(cache, 0, 3, 0, 0, 1, 2);
    opal_iov_cache_destroy(cache);

    /* it dies while its owner is asked: the layout is for the caller alone */
    owner = (owner_t){OPAL_SUCCESS, 0, NULL, forget_within};
    cache = make_cache(MIB, &owner);
    use(cache, type, 1);
    assert_int_equal(1, owner.calls);
    expect(cache, 0, 1, 0, 0, 1, 0);
    owner.meanwhile = NULL;
    use(cache, type, 1);
    use(cache, type, 1);
    assert_int_equal(2, owner.calls); /* a new life */
    expect(cache, 1, 2, 0, 0, 1, 1);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&type);
}

/* For any description and count: one layout, valid as long as one of them. */
static void sharing(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype one, types[4];
    opal_iov_cache_layout_t *layouts[4], *other;
    opal_iov_cache_stats_t stats;
    uint64_t bytes;
    int places[60], i;

    (void) state;
    MPI_Type_vector(60, 2, 5, MPI_INT, &types[0]);
    MPI_Type_create_hvector(60, 8, 20, MPI_BYTE, &types[1]);
    for (i = 0; i < 60; ++i) {
        places[i] = 5 * i;
    }
    MPI_Type_create_indexed_block(60, 2, places, MPI_FLOAT, &types[2]);
    MPI_Type_contiguous(2, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, 20, &types[3]); /* sixty of it */
    MPI_Type_free(&one);
    for (i = 0; i < 4; ++i) {
        MPI_Type_commit(&types[i]);
        layouts[i] = get(cache, types[i], 3 == i ? 60 : 1);
        assert_ptr_equal(layouts[0], layouts[i]);
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(i, stats.shared);
        bytes = 0 == i ? stats.bytes : bytes;
    }
    expect(cache, 0, 4, 0, 0, 0, 4);
    assert_true(1024 > bytes);
    assert_true(stats.bytes < bytes + 3 * 256); /* no layout but the first: it has more than that */
    assert_true(256 < sizeof(*other) + opal_iov_cache_form_bytes(layouts[0]->form));
    other = get(cache, types[3], 59);
    assert_ptr_not_equal(layouts[0], other);
    OBJ_RELEASE(other);
    for (i = 0; i < 4; ++i) {
        OBJ_RELEASE(layouts[i]);
        free_type(cache, types[i]);
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(3 == i ? 0 : 4 - i, stats.entries);
    }
    assert_no_layouts(&stats, 5);
    opal_iov_cache_destroy(cache);

    /* the room for an entry may be made by throwing out the others that share its layout */
    types[0] = scattered(100, 7);
    MPI_Type_dup(types[0], &types[1]);
    cache = make_cache((size_t) 100 * 16 + 700, &owner);
    layouts[0] = get(cache, types[0], 1);
    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(1, stats.entries);
    opal_iov_cache_destroy(cache);
    cache = make_cache((size_t) stats.bytes + 100, &owner); /* and that its owner was asked */
    OBJ_RELEASE(layouts[0]);
    layouts[0] = get(cache, types[0], 1);
    layouts[1] = get(cache, types[1], 1);
    assert_ptr_equal(layouts[0], layouts[1]);
    expect(cache, 0, 2, 1, 0, 0, 1);
    OBJ_RELEASE(layouts[0]);
    OBJ_RELEASE(layouts[1]);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
}

/* ---------------------------------------------------------------------------------------------
 * Entries, without the threads: what several of them do one after the other
 * ------------------------------------------------------------------------------------------- */

/* More references than an entry has at once, all held: every hit counts, and all of them keep. */
static void refills(void **state)
{
    const int rounds = 3 * OPAL_IOV_CACHE_STOCK + 5;
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    MPI_Datatype type = vector(10, 3);
    opal_iov_cache_layout_t **held = malloc((size_t) rounds * sizeof(held[0]));
    opal_iov_cache_stats_t stats;
    int i;

    (void) state;
    reads = 0;
    frees = 0;
    for (i = 0; i < rounds; ++i) {
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(type), 1, &held[i]));
        assert_ptr_equal(held[0], held[i]);
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(i, stats.hits);
    }
    expect(cache, (uint64_t) rounds - 1, 1, 0, 0, 0, 1);
    free_type(cache, type);
    expect(cache, (uint64_t) rounds - 1, 1, 0, 1, 0, 0);
    opal_iov_cache_destroy(cache);
    assert_int_equal(1, reads);
    for (i = 0; i < rounds; ++i) {
        assert_int_equal(0, frees);
        assert_int_equal(10, held[i]->iov_count);
        OBJ_RELEASE(held[i]);
    }
    assert_int_equal(1, frees);
    free(held);
}

static opal_iov_cache_layout_t *one_layout(size_t count)
{
    opal_iov_cache_layout_t *layout = NULL;

    assert_int_equal(OPAL_SUCCESS,
                     opal_iov_cache_layout_create(opal_type(MPI_INT), count, &layout));
    return layout;
}

/* Take so many references, from a state on. @return the state before the last */
static uint64_t take(opal_iov_cache_entry_t *entry, uint64_t type,
                     const opal_iov_cache_layout_t *layout, int number)
{
    uint64_t before = 0;

    while (0 < number--) {
        opal_iov_cache_layout_t *taken = opal_iov_cache_entry_take(entry, type, 1, true, &before);

        assert_ptr_equal(layout, taken);
        OBJ_RELEASE(taken);
    }
    return before;
}

/* Whoever comes late, with the state of a life that has ended, changes nothing. */
static void lives(void **state)
{
    opal_iov_cache_entry_t *entry = opal_iov_cache_entry_alloc();
    opal_iov_cache_layout_t *first = one_layout(1), *second = one_layout(2), *held;
    const int half = OPAL_IOV_CACHE_STOCK / 2;
    uint64_t late, now;

    (void) state;
    frees = 0;
    assert_non_null(entry);
    assert_null(opal_iov_cache_entry_take(entry, 0, 0, true, &now)); /* not alive yet */
    opal_iov_cache_entry_begin(entry, 16, 1, first);
    assert_null(opal_iov_cache_entry_take(entry, 16, 2, true, &now));
    assert_null(opal_iov_cache_entry_take(entry, 32, 1, true, &now));
    late = take(entry, 16, first, half);
    held = opal_iov_cache_entry_take(entry, 16, 1, true, &now);
    assert_ptr_equal(first, held);
    assert_int_equal(half + 1, opal_iov_cache_entry_end(entry));
    assert_null(opal_iov_cache_entry_take(entry, 16, 1, true, &now));
    assert_int_equal(2, first->super.super.obj_reference_count); /* ours, and the held one */

    /* it fills up what is another's now, of whom enough was taken that it might */
    opal_iov_cache_entry_begin(entry, 16, 1, second);
    take(entry, 16, second, half + 3);
    assert_int_equal(0, opal_iov_cache_entry_refill(entry, late, first));
    assert_int_equal(2, first->super.super.obj_reference_count);
    assert_int_equal(half + 3, opal_iov_cache_state_taken(entry->state));

    /* this one is in time, and a second one finds nothing to do */
    now = entry->state;
    held = opal_iov_cache_entry_take(entry, 16, 1, true, &late);
    assert_int_equal(half, opal_iov_cache_entry_refill(entry, now, second));
    assert_int_equal(0, opal_iov_cache_entry_refill(entry, now, second));
    assert_int_equal(4, opal_iov_cache_state_taken(entry->state));
    OBJ_RELEASE(held);

    /* and without any, the stock ends */
    take(entry, 16, second, OPAL_IOV_CACHE_STOCK - 4);
    assert_null(opal_iov_cache_entry_take(entry, 16, 1, true, &now));
    assert_int_equal(OPAL_IOV_CACHE_STOCK, opal_iov_cache_entry_end(entry));
    assert_int_equal(1, second->super.super.obj_reference_count);
    assert_int_equal(0, frees);
    OBJ_RELEASE(second);
    OBJ_RELEASE(first);
    OBJ_RELEASE(first);
    assert_int_equal(2, frees);
    free(entry);
}

/* The tables grow, and everything is found again. */
static void growth(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(16 * MIB, &owner);
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_stats_t stats;
    size_t i;

    (void) state;
    reads = 0;
    for (i = 1; i <= 5000; ++i) {
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(MPI_INT), i, &layout));
        OBJ_RELEASE(layout);
    }
    assert_true(opal_iov_cache_check(cache));
    assert_int_equal(5000, reads);
    for (i = 1; i <= 5000; ++i) {
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(MPI_INT), i, &layout));
        assert_int_equal(4 * i, layout->size);
        OBJ_RELEASE(layout);
    }
    expect(cache, 5000, 5000, 0, 0, 0, 5000);
    assert_int_equal(5000, reads);
    opal_iov_cache_stats(cache, &stats);
    assert_true(5000 * sizeof(opal_iov_cache_entry_t) < stats.bytes && stats.bytes <= 16 * MIB);
    opal_iov_cache_destroy(cache);
}

/* Entries keep their memory; at least half of the bound stays for layouts. */
static void room_after_entries(void **state)
{
    const size_t bound = 64 * 1024;
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(bound, &owner);
    MPI_Datatype empty, large = scattered(1700, 1);
    opal_iov_cache_stats_t stats;
    size_t i;

    (void) state;
    /* of one layout, so that nothing but entries takes memory */
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (i = 1; i <= 1000; ++i) {
        use(cache, empty, i);
        opal_iov_cache_stats(cache, &stats);
        assert_true(stats.bytes <= bound);
    }
    assert_true(0 < stats.evictions && 100 < stats.entries);
    free_type(cache, empty);
    opal_iov_cache_stats(cache, &stats);
    assert_true(0 == stats.entries && bound / 4 < stats.bytes && stats.bytes < bound / 2 + 8192);
    use(cache, large, 1);
    use(cache, large, 1);
    opal_iov_cache_stats(cache, &stats);
    assert_true(1 == stats.hits && 1 == stats.entries && stats.bytes <= bound);
    free_type(cache, large);
    opal_iov_cache_destroy(cache);
}

/* So many entries of one layout that its references would no longer be counted. */
static void too_many_users(void **state)
{
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(256 * MIB, &owner);
    opal_iov_cache_layout_t *layout = NULL, *first = NULL;
    MPI_Datatype empty;
    size_t i;

    (void) state;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (i = 1; i <= OPAL_IOV_CACHE_MAX_USERS + 10; ++i) {
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(empty), i, &layout));
        first = NULL == first ? layout : first;
        assert_ptr_equal(first, layout);
        assert_true(0 < layout->super.super.obj_reference_count);
        OBJ_RELEASE(layout);
    }
    expect(cache, 0, OPAL_IOV_CACHE_MAX_USERS + 10, 0, 0, 10, OPAL_IOV_CACHE_MAX_USERS);
    opal_iov_cache_forget(cache, opal_type(empty));
    expect(cache, 0, OPAL_IOV_CACHE_MAX_USERS + 10, 0, OPAL_IOV_CACHE_MAX_USERS, 10, 0);
    opal_iov_cache_destroy(cache);
    MPI_Type_free(&empty);
}

/* In one thread the order of use is exact: each lookup is a hit if and only if a list says so. */
static void exact_order(void **state)
{
    enum {
        ROOM = 100,
        KEYS = 160,
        LOOKUPS = 20000
    };
    owner_t owner = {OPAL_SUCCESS, 0, NULL, NULL};
    opal_iov_cache_t *cache = make_cache(MIB, &owner);
    size_t model[ROOM], size = 0, key, place, bound;
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_stats_t stats;
    uint64_t seed = 1, hits = 0;
    int i;

    (void) state;
    opal_set_using_threads(false);
    for (key = 1; key <= ROOM; ++key) {
        use(cache, MPI_INT, key);
    }
    opal_iov_cache_stats(cache, &stats);
    bound = stats.bytes + 100; /* less than another layout needs */
    opal_iov_cache_destroy(cache);
    cache = make_cache(bound, &owner);
    for (i = 0; i < LOOKUPS; ++i) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        key = 1 + (size_t) (seed >> 33) % (0 == i % 3 ? KEYS : KEYS / 2);
        for (place = 0; place < size && key != model[place]; ++place) {
        }
        if (place < size) {
            ++hits;
        } else if (size < ROOM) {
            ++size;
        } else {
            --place; /* the last one leaves */
        }
        memmove(&model[1], &model[0], place * sizeof(model[0]));
        model[0] = key;
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_get(cache, opal_type(MPI_INT), key, &layout));
        OBJ_RELEASE(layout);
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(hits, stats.hits);
    }
    assert_true(opal_iov_cache_check(cache));
    assert_true(ROOM == stats.entries && 100 < stats.evictions);
    opal_iov_cache_destroy(cache);
    opal_set_using_threads(true);
}

/* ---------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------- */

#define THREADS      4
#define SHARED_TYPES 12
#define ROUNDS       4000

typedef struct {
    opal_iov_cache_t *cache;
    MPI_Datatype *shared; /* not freed while the threads run */
    uint64_t seed;
    pthread_mutex_t *mpi; /* types are made and freed one at a time */
    const char *failure;
    uint64_t gets;
} worker_t;

static int watched_in_threads(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    __atomic_add_fetch((int *) context, 1, __ATOMIC_RELAXED);
    usleep(20); /* long enough for others to miss the same type */
    return OPAL_SUCCESS;
}

/* The right layout of `blocks` ints, whoever made it? */
static const char *check_layout(opal_iov_cache_layout_t *layout, size_t blocks, size_t count)
{
    /* copies of these vectors touch: the last int of one and the first of the next are one IOV */
    if (layout->iov_count != count * blocks - (count - 1)) {
        return "the layout of another type";
    }
    if (layout->size != 4 * count * blocks) {
        return "wrong size";
    }
    return NULL;
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    int i;

    for (i = 0; i < ROUNDS && NULL == worker->failure; ++i) {
        opal_iov_cache_layout_t *layout;
        MPI_Datatype type;
        size_t which, count, blocks;
        bool own;

        worker->seed = worker->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        which = (size_t) (worker->seed >> 33) % SHARED_TYPES;
        count = 1 + (size_t) (worker->seed >> 50) % 3;
        own = 0 == (worker->seed >> 40) % 4;
        blocks = own ? 50 + (size_t) i % 40 : 10 + which;
        if (own) {
            pthread_mutex_lock(worker->mpi);
            type = vector((int) blocks, 3);
            pthread_mutex_unlock(worker->mpi);
        } else {
            type = worker->shared[which];
        }
        if (OPAL_SUCCESS != opal_iov_cache_get(worker->cache, opal_type(type), count, &layout)) {
            worker->failure = "a lookup failed";
            break;
        }
        ++worker->gets;
        worker->failure = check_layout(layout, blocks, count);
        OBJ_RELEASE(layout);
        if (own) {
            pthread_mutex_lock(worker->mpi);
            opal_iov_cache_forget(worker->cache, opal_type(type));
            MPI_Type_free(&type);
            pthread_mutex_unlock(worker->mpi);
        } else if (0 == (worker->seed >> 44) % 16) {
            /* the owner may call it at any time */
            opal_iov_cache_forget(worker->cache, opal_type(type));
        }
        if (0 == i % 64 && !opal_iov_cache_check(worker->cache)) {
            worker->failure = "the invariants do not hold";
        }
    }
    return NULL;
}

static void threads(void **state)
{
    pthread_mutex_t mpi = PTHREAD_MUTEX_INITIALIZER;
    opal_iov_cache_t *cache;
    opal_iov_cache_stats_t stats;
    MPI_Datatype shared[SHARED_TYPES];
    worker_t workers[THREADS];
    pthread_t ids[THREADS];
    uint64_t gets = 0;
    int i, calls = 0;

    (void) state;
    assert_int_equal(OPAL_SUCCESS,
                     opal_iov_cache_create(24000, watched_in_threads, &calls, &cache));
    for (i = 0; i < SHARED_TYPES; ++i) {
        shared[i] = vector(10 + i, 3);
    }
    for (i = 0; i < THREADS; ++i) {
        workers[i] = (worker_t){cache, shared, (uint64_t) i + 1, &mpi, NULL, 0};
        assert_int_equal(0, pthread_create(&ids[i], NULL, work, &workers[i]));
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(ids[i], NULL);
        gets += workers[i].gets;
    }
    for (i = 0; i < THREADS; ++i) {
        if (NULL != workers[i].failure) {
            fail_msg("thread %d: %s", i, workers[i].failure);
        }
    }
    assert_true(opal_iov_cache_check(cache));
    opal_iov_cache_stats(cache, &stats);
    assert_int_equal(gets, stats.hits + stats.misses);
    assert_true(0 < stats.hits && 0 < stats.forgotten);
    for (i = 0; i < SHARED_TYPES; ++i) {
        free_type(cache, shared[i]);
    }
    opal_iov_cache_stats(cache, &stats);
    assert_no_layouts(&stats, 24000 / sizeof(opal_iov_cache_entry_t) / 2);
    opal_iov_cache_destroy(cache);
}

/* Threads that miss the same type at once: asked once, kept once. */
static void *miss(void *argument)
{
    worker_t *worker = argument;
    opal_iov_cache_layout_t *layout;

    if (OPAL_SUCCESS
        != opal_iov_cache_get(worker->cache, opal_type(worker->shared[0]), 1, &layout)) {
        worker->failure = "a lookup failed";
        return NULL;
    }
    worker->failure = check_layout(layout, 2000, 1);
    OBJ_RELEASE(layout);
    return NULL;
}

static void racing_misses(void **state)
{
    int round, i;

    (void) state;
    for (round = 0; round < 200; ++round) {
        opal_iov_cache_t *cache;
        opal_iov_cache_stats_t stats;
        MPI_Datatype type = vector(2000, 3);
        worker_t workers[THREADS];
        pthread_t ids[THREADS];
        int calls = 0;

        assert_int_equal(OPAL_SUCCESS,
                         opal_iov_cache_create(MIB, watched_in_threads, &calls, &cache));
        for (i = 0; i < THREADS; ++i) {
            workers[i] = (worker_t){cache, &type, 0, NULL, NULL, 0};
            assert_int_equal(0, pthread_create(&ids[i], NULL, miss, &workers[i]));
        }
        for (i = 0; i < THREADS; ++i) {
            pthread_join(ids[i], NULL);
        }
        for (i = 0; i < THREADS; ++i) {
            assert_null(workers[i].failure);
        }
        assert_true(opal_iov_cache_check(cache));
        assert_int_equal(1, calls);
        opal_iov_cache_stats(cache, &stats);
        assert_int_equal(1, stats.entries);
        assert_int_equal(THREADS, stats.hits + stats.misses);
        opal_iov_cache_destroy(cache);
        MPI_Type_free(&type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_and_misses),
        cmocka_unit_test(hits_do_not_read),
        cmocka_unit_test(forgotten_while_read),
        cmocka_unit_test(failing_walk),
        cmocka_unit_test(errors_pass),
        cmocka_unit_test(least_recently_used),
        cmocka_unit_test(too_big),
        cmocka_unit_test(outliving),
        cmocka_unit_test(reused_address),
        cmocka_unit_test(refused_watch),
        cmocka_unit_test(predefined),
        cmocka_unit_test(forget_unknown),
        cmocka_unit_test(watched_once),
        cmocka_unit_test(watch_without_lock),
        cmocka_unit_test(sharing),
        cmocka_unit_test(refills),
        cmocka_unit_test(lives),
        cmocka_unit_test(growth),
        cmocka_unit_test(room_after_entries),
        cmocka_unit_test(too_many_users),
        cmocka_unit_test(exact_order),
        cmocka_unit_test(threads),
        cmocka_unit_test(racing_misses),
    };
    int failed;

    singleton_init(MPI_THREAD_MULTIPLE);
    failed = cmocka_run_group_tests_name("cache", tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
