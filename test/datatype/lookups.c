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
 * Lookups in several threads while types are forgotten and live again at the same address, entries
 * are evicted and come back, the tables grow, and layouts are held beyond the cache. Usage:
 *
 *     lookups [ROUNDS [SEED]]
 *
 * The cache knows a type by its address only, and asks opal what it looks like through
 * opal_iov_cache_form_create, which the linker leads here (--wrap). So the types of this test are
 * addresses, and what is there is a number that one thread, their owner, changes at any time: it
 * becomes another type, as after MPI_Type_free and the next constructor. Of each type there is a
 * version, odd while it dies. A lookup that saw the same even version before and after must have
 * got the layout of that version. Other lookups break MPI's rules, but not this program, and end
 * as one or the other layout.
 *
 * Every layout has pieces of its own length, and its holders look at them for as long as they hold
 * it: freed too early, it is freed memory that is read (and said to be a race where this is
 * compiled with -fsanitize=thread), or another layout's. Forms are counted when they are made and
 * freed, so one that is freed twice, or never, is found, too; so are hits and misses.
 */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#if !defined(DEFAULT_ROUNDS)
#define DEFAULT_ROUNDS 60
#endif

#define READERS    3
#define TYPES      24
#define COUNTS     40 /* of each type: 960 entries where there is room for all */
#define SHAPES     8  /* that a type may have */
#define HELD       16 /* layouts that a reader keeps */
#define LOOKUPS    6000
#define REFRESHES  300
#define ROOMY      ((size_t) 4 << 20)
#define NARROW     ((size_t) 24 << 10)
#define FIRST_SIZE 8 /* bytes of a piece of shape 0 */

/* What stands at an address. */
typedef struct {
    opal_datatype_t type; /* never looked into but for its flags, which say that it may die */
    uint64_t version;
    uint64_t shape;
} address_t;

typedef struct {
    opal_iov_cache_t *cache;
    uint64_t seed;
    uint64_t gets;
    const char *failure;
} worker_t;

typedef struct {
    opal_iov_cache_layout_t *layout;
    uint64_t count;
} held_t;

static address_t addresses[TYPES];
static MPI_Datatype shapes[SHAPES];
static uint64_t made, freed; /* forms */
static int reading;          /* readers that have not ended */

int __real_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form);
int __wrap_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form);
void __real_opal_iov_cache_form_free(opal_iov_cache_form_t *form);
void __wrap_opal_iov_cache_form_free(opal_iov_cache_form_t *form);

int __wrap_opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                                      opal_iov_cache_form_t **form)
{
    const address_t *address = (const address_t *) type;
    uint64_t shape = __atomic_load_n(&address->shape, __ATOMIC_ACQUIRE);
    int rc = __real_opal_iov_cache_form_create(opal_type(shapes[shape]), count, form);

    if (OPAL_SUCCESS == rc) {
        __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    }
    return rc;
}

void __wrap_opal_iov_cache_form_free(opal_iov_cache_form_t *form)
{
    if (NULL != form) {
        __atomic_add_fetch(&freed, 1, __ATOMIC_RELAXED);
        /* for who still looks at it */
        form->size = 0;
        form->segments = 0;
    }
    __real_opal_iov_cache_form_free(form);
}

static int watch(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

/* The shape of a layout of so many of a type, SHAPES if it is none's: its pieces tell. */
static uint64_t shape_of(const opal_iov_cache_layout_t *layout, uint64_t count)
{
    uint64_t piece = opal_iov_cache_layout_iov(layout, 0).length;

    if (count != layout->iov_count || count != layout->form->segments
        || count * piece != layout->size || piece * count != layout->form->size
        || 0 != piece % FIRST_SIZE || FIRST_SIZE * SHAPES < piece || 0 == piece) {
        return SHAPES;
    }
    return piece / FIRST_SIZE - 1;
}

static void let_go(worker_t *worker, held_t *held)
{
    if (NULL != held->layout) {
        if (SHAPES == shape_of(held->layout, held->count)) {
            worker->failure = "a layout that was held has changed";
        }
        OBJ_RELEASE(held->layout);
        held->layout = NULL;
    }
}

static void *read_types(void *argument)
{
    worker_t *worker = argument;
    held_t held[HELD] = {{NULL, 0}};
    int i;

    for (i = 0; i < LOOKUPS && NULL == worker->failure; ++i) {
        /* few types are looked up often, and nearly always in one of two counts */
        uint64_t which = draw(&worker->seed, 1 + draw(&worker->seed, TYPES));
        uint64_t count = 1 + draw(&worker->seed, 0 == draw(&worker->seed, 8) ? COUNTS : 2);
        address_t *address = &addresses[which];
        held_t *keep = &held[draw(&worker->seed, HELD)];
        uint64_t version, shape, got;
        opal_iov_cache_layout_t *layout;

        version = __atomic_load_n(&address->version, __ATOMIC_ACQUIRE);
        shape = __atomic_load_n(&address->shape, __ATOMIC_ACQUIRE);
        if (OPAL_SUCCESS != opal_iov_cache_get(worker->cache, &address->type, count, &layout)) {
            worker->failure = "a lookup failed";
            break;
        }
        ++worker->gets;
        got = shape_of(layout, count);
        if (SHAPES == got) {
            worker->failure = "what was handed out is no layout of this count";
        } else if (got != shape && 0 == version % 2
                   && version == __atomic_load_n(&address->version, __ATOMIC_ACQUIRE)) {
            worker->failure = "the layout of a type that was here before";
        }
        let_go(worker, keep);
        *keep = (held_t){layout, count};
    }
    for (i = 0; i < HELD; ++i) {
        let_go(worker, &held[i]);
    }
    __atomic_sub_fetch(&reading, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The owner of the types: they die, and others are made where they were. */
static void *own_types(void *argument)
{
    worker_t *worker = argument;
    opal_iov_cache_stats_t stats, before = {0};
    int i;

    for (i = 0; 0 < __atomic_load_n(&reading, __ATOMIC_ACQUIRE) && NULL == worker->failure; ++i) {
        address_t *address = &addresses[draw(&worker->seed, TYPES)];

        /* in bursts; between them the readers find what they look for */
        if (0 == i % REFRESHES) {
            sched_yield();
            opal_iov_cache_stats(worker->cache, &stats);
            if (stats.hits < before.hits || stats.misses < before.misses) {
                worker->failure = "counters went back";
            }
            before = stats;
            if (!opal_iov_cache_check(worker->cache)) {
                worker->failure = "the invariants do not hold";
            }
        }
        __atomic_add_fetch(&address->version, 1, __ATOMIC_ACQ_REL);
        __atomic_store_n(&address->shape, draw(&worker->seed, SHAPES), __ATOMIC_RELEASE);
        opal_iov_cache_forget(worker->cache, &address->type);
        __atomic_add_fetch(&address->version, 1, __ATOMIC_ACQ_REL);
        if (0 == draw(&worker->seed, 2)) {
            usleep(200);
        }
    }
    return NULL;
}

/* One cache, from the first entry to the last. @return NULL if all is well */
static const char *try_cache(size_t bytes, uint64_t seed, opal_iov_cache_stats_t *sum)
{
    worker_t workers[READERS + 1];
    pthread_t ids[READERS + 1];
    opal_iov_cache_stats_t stats;
    const char *failure = NULL;
    opal_iov_cache_t *cache;
    uint64_t gets = 0;
    int i;

    if (OPAL_SUCCESS != opal_iov_cache_create(bytes, watch, NULL, &cache)) {
        return "no cache";
    }
    reading = READERS;
    for (i = 0; i <= READERS; ++i) {
        workers[i] = (worker_t){cache, seed + (uint64_t) i, 0, NULL};
        if (0 != pthread_create(&ids[i], NULL, i < READERS ? read_types : own_types, &workers[i])) {
            perror("pthread_create");
            exit(99);
        }
    }
    for (i = 0; i <= READERS; ++i) {
        pthread_join(ids[i], NULL);
        gets += workers[i].gets;
        failure = NULL == failure ? workers[i].failure : failure;
    }
    opal_iov_cache_stats(cache, &stats);
    if (NULL == failure && !opal_iov_cache_check(cache)) {
        failure = "the invariants do not hold at the end";
    }
    if (NULL == failure && stats.hits + stats.misses != gets) {
        failure = "hits and misses are not the lookups";
    }
    opal_iov_cache_destroy(cache);
    if (NULL == failure && made != freed) {
        failure = "not every form that was made was freed once";
    }
    sum->hits += stats.hits;
    sum->misses += stats.misses;
    sum->evictions += stats.evictions;
    sum->forgotten += stats.forgotten;
    return failure;
}

int main(int argc, char **argv)
{
    uint64_t rounds = 1 < argc ? strtoull(argv[1], NULL, 10) : DEFAULT_ROUNDS;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 10) : 1, round;
    opal_iov_cache_stats_t sum = {0};
    const char *failure = NULL;
    int i;

    singleton_init(MPI_THREAD_MULTIPLE);
    for (i = 0; i < SHAPES; ++i) {
        MPI_Datatype block;

        MPI_Type_contiguous(FIRST_SIZE * (i + 1), MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, 4096, &shapes[i]);
        MPI_Type_commit(&shapes[i]);
        MPI_Type_free(&block);
    }
    for (i = 0; i < TYPES; ++i) {
        addresses[i].shape = (uint64_t) i % SHAPES;
    }
    for (round = 0; round < rounds && NULL == failure; ++round) {
        failure = try_cache(0 == round % 2 ? NARROW : ROOMY, seed + 100 * round, &sum);
    }
    if (NULL != failure) {
        fprintf(stderr, "FAILED in round %llu of seed %llu: %s\n", (unsigned long long) round - 1,
                (unsigned long long) seed, failure);
    } else if (0 == sum.hits || 0 == sum.evictions || 0 == sum.forgotten) {
        failure = "FAILED: no hits, no evictions, or no type was forgotten";
        fprintf(stderr, "%s\n", failure);
    }
    printf("%llu rounds: %llu hits, %llu misses, %llu evicted, %llu forgotten\n",
           (unsigned long long) rounds, (unsigned long long) sum.hits,
           (unsigned long long) sum.misses, (unsigned long long) sum.evictions,
           (unsigned long long) sum.forgotten);
    for (i = 0; i < SHAPES; ++i) {
        MPI_Type_free(&shapes[i]);
    }
    MPI_Finalize();
    return NULL != failure;
}

#if LOOKUPS_RACES
/* Open MPI itself was not compiled with it. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1 halt_on_error=0";
}
#endif
