/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Several copies under way, from one thread and from several, and the same ones again and again.
 */

#include "engine_parts.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#define FLIGHT  24
#define ROUNDS  6
#define THREADS 4

static unsigned long allocations;

/* ---------------------------------------------------------------------------------------------
 * Allocations by this program, in which the engine's room is; not by the driver's library
 * ------------------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern char __executable_start[], etext[];
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

static void note(const void *caller)
{
    if ((const char *) caller >= __executable_start && (const char *) caller < etext) {
        (void) __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    }
}

void *malloc(size_t size)
{
    note(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_calloc(n, size);
}
#endif

/* ------------------------------------------------------------------------------------------- */

typedef struct flight_t {
    test_end_t ends[2];
    uint64_t start;
    uint64_t stop;
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *copy;
} flight_t;

static void make_of(flight_t *flight, opal_iov_cache_layout_t *layouts[2])
{
    int i;

    test_range(layouts[0]->size, &flight->start, &flight->stop);
    for (i = 0; i < 2; ++i) {
        test_end_make(KINDS, layouts[i], &flight->ends[i]);
    }
    flight->engine = test_engine_for(&flight->ends[0], &flight->ends[1]);
}

static void make(flight_t *flight)
{
    opal_iov_cache_layout_t *layouts[2];

    test_layouts(layouts);
    make_of(flight, layouts);
}

/* All of the same layouts, which no device knows yet. */
static void make_alike(flight_t *flights, int n)
{
    opal_iov_cache_layout_t *layouts[2];
    int i;

    layouts[0] = test_blocks(2000, 8, 40, true);
    layouts[1] = test_blocks(1000, 16, 40, true);
    for (i = 0; i < n; ++i) {
        OBJ_RETAIN(layouts[0]);
        OBJ_RETAIN(layouts[1]);
        make_of(&flights[i], layouts);
    }
    OBJ_RELEASE(layouts[0]);
    OBJ_RELEASE(layouts[1]);
}

static void begin(flight_t *flight)
{
    CHECK(OPAL_SUCCESS
          == opal_umrddt_gpu_copy(flight->engine, &flight->ends[0].place, &flight->ends[1].place,
                                  flight->start, flight->stop, &flight->copy));
}

/* A step of one that is under way. @return false if none is */
static bool step(flight_t *flights, int n)
{
    int at = (int) typegen_below(&test_dice, (uint64_t) n), i, rc;

    for (i = 0; i < n && NULL == flights[at].copy; ++i) {
        at = (at + 1) % n;
    }
    if (i == n) {
        return false;
    }
    rc = opal_umrddt_gpu_copy_test(flights[at].copy);
    CHECK(OPAL_SUCCESS == rc || OPAL_ERR_RESOURCE_BUSY == rc);
    if (OPAL_SUCCESS == rc) {
        flights[at].copy = NULL;
    }
    return true;
}

static void check(flight_t *flight)
{
    test_expect(&flight->ends[0], &flight->ends[1], flight->start, flight->stop);
    CHECK(test_end_good(&flight->ends[0]));
    CHECK(test_end_good(&flight->ends[1]));
}

static void fly(flight_t *flights, int n)
{
    int i;

    for (i = 0; i < n; ++i) {
        begin(&flights[i]);
    }
    while (step(flights, n)) {
        usleep((useconds_t) typegen_below(&test_dice, 30));
    }
}

void test_flight(void)
{
    static flight_t flights[FLIGHT];
    int i, round;

    for (round = 0; round < ROUNDS; ++round) {
        (void) test_params(round % 2 ? OPAL_UMRDDT_GPU_HOW_KERNEL : OPAL_UMRDDT_GPU_HOW_AUTO, 0);
        memset(flights, 0, sizeof(flights));
        for (i = 0; i < FLIGHT && 2 <= round; ++i) {
            make(&flights[i]);
        }
        if (2 > round) {
            make_alike(flights, FLIGHT);
        }
        fly(flights, FLIGHT);
        for (i = 0; i < FLIGHT; ++i) {
            check(&flights[i]);
            test_end_free(&flights[i].ends[0]);
            test_end_free(&flights[i].ends[1]);
        }
        opal_umrddt_gpu_engines_close();
    }
}

/* More copies through the host than there are pinned buffers for: all come to an end, in whatever
 * order they are asked for. */
void test_crowd(void)
{
    /* Other users' pinned memory leaves four buffers, or none. */
    static const size_t bounds[] = {16384, 1};
    opal_umrddt_gpu_engine_params_t params = test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    static flight_t flights[FLIGHT];
    opal_iov_cache_layout_t *layouts[2];
    size_t b;
    int i;

    for (b = 0; b < sizeof(bounds) / sizeof(bounds[0]); ++b) {
        params.staging = bounds[b];
        opal_umrddt_gpu_engine_params(&params);
        memset(flights, 0, sizeof(flights));
        layouts[0] = test_blocks(3000, 24, 40, true);
        layouts[1] = test_blocks(9000, 8, 16, false);
        for (i = 0; i < FLIGHT; ++i) {
            const bool to_host = typegen_once_in(&test_dice, 2);

            OBJ_RETAIN(layouts[0]);
            OBJ_RETAIN(layouts[1]);
            test_end_make(to_host ? ON_DEVICE : ON_HOST, layouts[0], &flights[i].ends[0]);
            test_end_make(to_host ? ON_HOST : ON_DEVICE, layouts[1], &flights[i].ends[1]);
            flights[i].stop = layouts[0]->size;
            flights[i].engine = test_engine_for(&flights[i].ends[0], &flights[i].ends[1]);
        }
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
        for (i = 0; i < FLIGHT; ++i) {
            begin(&flights[i]);
        }
        /* The last first, while the others are not tested. */
        for (i = FLIGHT - 1; 0 <= i; --i) {
            CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(flights[i].copy));
        }
        for (i = 0; i < FLIGHT; ++i) {
            check(&flights[i]);
            test_end_free(&flights[i].ends[0]);
            test_end_free(&flights[i].ends[1]);
        }
        opal_umrddt_gpu_engines_close();
    }
}

/* ---------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------- */

typedef struct work_t {
    flight_t *flights; /* this thread's own, with layouts that all share */
    int n;
} work_t;

static void *work(void *argument)
{
    work_t *mine = argument;
    CUcontext now = NULL;
    int i, round;

    for (round = 0; round < 8; ++round) {
        for (i = 0; i < mine->n; ++i) {
            begin(&mine->flights[i]);
        }
        for (i = 0; i < mine->n; ++i) {
            CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(mine->flights[i].copy));
        }
        OK(cuCtxGetCurrent(&now));
        CHECK(NULL == now);
    }
    return NULL;
}

void test_threads(void)
{
    static flight_t flights[THREADS][FLIGHT / 4];
    opal_iov_cache_layout_t *layouts[2];
    work_t works[THREADS];
    pthread_t threads[THREADS];
    int i, k, t;

    /* So small a cache that lists leave while others use them. */
    opal_umrddt_gpu_engine_params_t params = {.how = OPAL_UMRDDT_GPU_HOW_KERNEL,
                                              .shape_cache = 8192,
                                              .staging = (size_t) 1 << 20,
                                              .staging_chunk = 4096};

    opal_umrddt_gpu_engine_params(&params);
    for (i = 0; i < FLIGHT / 4; ++i) {
        test_layouts(layouts);
        for (t = 0; t < THREADS; ++t) {
            flight_t *flight = &flights[t][i];

            test_range(layouts[0]->size, &flight->start, &flight->stop);
            for (k = 0; k < 2; ++k) {
                OBJ_RETAIN(layouts[k]);
                test_end_make(KINDS, layouts[k], &flight->ends[k]);
            }
            flight->engine = test_engine_for(&flight->ends[0], &flight->ends[1]);
        }
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
    }
    for (t = 0; t < THREADS; ++t) {
        works[t].flights = flights[t];
        works[t].n = FLIGHT / 4;
        CHECK(0 == pthread_create(&threads[t], NULL, work, &works[t]));
    }
    for (t = 0; t < THREADS; ++t) {
        CHECK(0 == pthread_join(threads[t], NULL));
        for (i = 0; i < FLIGHT / 4; ++i) {
            check(&flights[t][i]);
            test_end_free(&flights[t][i].ends[0]);
            test_end_free(&flights[t][i].ends[1]);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * The steady state
 * ------------------------------------------------------------------------------------------- */

/* A message in very many pieces takes nothing that the others need. */
static void many_pieces(void)
{
    flight_t flight;

    memset(&flight, 0, sizeof(flight));
    test_end_make(ON_DEVICE, test_blocks(70000, 32, 40, true), &flight.ends[0]);
    test_end_packed(ON_HOST, flight.ends[0].place.layout->size, &flight.ends[1]);
    flight.ends[0].place.reached = true;
    flight.stop = flight.ends[0].place.layout->size;
    flight.engine = test_engine_for(&flight.ends[0], &flight.ends[1]);
    begin(&flight);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(flight.copy));
    check(&flight);
    test_end_free(&flight.ends[0]);
    test_end_free(&flight.ends[1]);
}

void test_steady(void)
{
    opal_umrddt_gpu_staging_stats_t pinned[2] = {{0}, {0}};
    opal_umrddt_gpu_driver_stats_t queried[2] = {{0}, {0}};
    opal_umrddt_gpu_engine_stats_t stats[2] = {{0}, {0}};
    static flight_t flights[FLIGHT];
    unsigned long before = 0;
    int i, k, round;

    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    for (i = 0; i < FLIGHT; ++i) {
        do {
            make(&flights[i]);
        } while (ON_HOST == flights[i].ends[0].kind || ON_HOST == flights[i].ends[1].kind);
        /* All of it, in memory that the engine reaches. */
        flights[i].start = 0;
        flights[i].stop = flights[i].ends[0].place.layout->size;
        for (k = 0; k < 2; ++k) {
            test_end_t *end = &flights[i].ends[k];

            flights[i].engine = NULL;
            if (ON_DEVICE_1 == end->kind) {
                test_end_t here;

                test_end_make(ON_DEVICE, end->place.layout, &here);
                end->place.layout = NULL;
                test_end_free(end);
                *end = here;
            }
            end->place.reached = true;
        }
        flights[i].engine = test_engine_for(&flights[i].ends[0], &flights[i].ends[1]);
    }
    for (round = 0; round < 13; ++round) {
        if (3 == round) {
            many_pieces();
            /* By now all lists are there, and nothing is done for the first time. */
            stats[0] = test_stats();
            opal_umrddt_gpu_driver_stats(&queried[0]);
            opal_umrddt_gpu_staging_stats(&pinned[0]);
            before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
        }
        fly(flights, FLIGHT);
    }
    CHECK(before == __atomic_load_n(&allocations, __ATOMIC_RELAXED));
    stats[1] = test_stats();
    opal_umrddt_gpu_driver_stats(&queried[1]);
    opal_umrddt_gpu_staging_stats(&pinned[1]);
    CHECK(stats[0].copies + 10 * FLIGHT == stats[1].copies);
    /* One operation a copy. */
    CHECK(stats[0].launches + stats[0].driver_copies + 10 * FLIGHT
          == stats[1].launches + stats[1].driver_copies);
    CHECK(stats[0].launches < stats[1].launches);
    /* Nothing is planned or walked again. */
    CHECK(stats[0].routes_made == stats[1].routes_made);
    CHECK(stats[1].launches - stats[0].launches
          == stats[1].launches_again - stats[0].launches_again);
    CHECK(stats[0].shapes_made == stats[1].shapes_made);
    CHECK(stats[0].lists_uploaded == stats[1].lists_uploaded && 0 < stats[0].lists_uploaded);
    CHECK(stats[0].shape_bytes_now == stats[1].shape_bytes_now);
    CHECK(queried[0].queries == queried[1].queries);
    CHECK(pinned[0].gets == pinned[1].gets && pinned[0].pinned == pinned[1].pinned);
    CHECK(0 == pinned[1].used_now);
    /* Each layout once for each engine that met it, never twice. */
    CHECK(2 * FLIGHT >= stats[1].shapes_made);
    for (i = 0; i < FLIGHT; ++i) {
        check(&flights[i]);
        test_end_free(&flights[i].ends[0]);
        test_end_free(&flights[i].ends[1]);
    }
}
