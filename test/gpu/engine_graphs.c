/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Launches that are repeated, as graphs of the driver's.
 */

#include "engine_parts.h"

#include <pthread.h>
#include <string.h>

/* Pairs of buffers; and graphs that an engine may have, when that is tested. */
#define PAIRS   6
#define BOUND   3
#define THREADS 4
/* So often that there is a graph, and that it was launched. */
#define OFTEN 12
/* So often that what was not used meanwhile makes room. */
#define LONG 4300

typedef struct pair_t {
    test_end_t ends[2];
    opal_umrddt_gpu_engine_t *engine;
} pair_t;

static void make(pair_t *pair, uint64_t blocks)
{
    int i;

    for (i = 0; i < 2; ++i) {
        test_end_make(ON_DEVICE, test_blocks(blocks, 16, 40, true), &pair->ends[i]);
        pair->ends[i].place.reached = true;
    }
    pair->engine = test_engine_for(&pair->ends[0], &pair->ends[1]);
}

static void drop(pair_t *pair)
{
    test_end_free(&pair->ends[0]);
    test_end_free(&pair->ends[1]);
}

static void begin(pair_t *pair, opal_umrddt_gpu_copy_t **copy)
{
    CHECK(OPAL_SUCCESS
          == opal_umrddt_gpu_copy(pair->engine, &pair->ends[0].place, &pair->ends[1].place, 0,
                                  pair->ends[0].place.layout->size, copy));
}

/* Copies of the same, and what has come of the last one, which has bytes of its own. */
static void repeat(pair_t *pair, int times)
{
    opal_umrddt_gpu_copy_t *copy;
    int i;

    for (i = 0; i < times; ++i) {
        if (i == times - 1) {
            test_end_fill(&pair->ends[0]);
            test_end_fill(&pair->ends[1]);
        }
        begin(pair, &copy);
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copy));
    }
    test_expect(&pair->ends[0], &pair->ends[1], 0, pair->ends[0].place.layout->size);
    CHECK(test_end_good(&pair->ends[0]) && test_end_good(&pair->ends[1]));
}

static void params(unsigned graphs, size_t shape_cache)
{
    opal_umrddt_gpu_engine_params_t wanted = test_params(OPAL_UMRDDT_GPU_HOW_KERNEL, 0);

    wanted.graphs = graphs;
    wanted.shape_cache = shape_cache;
    opal_umrddt_gpu_engine_params(&wanted);
}

/* One launch: first by itself, then by the graph, which is made once. */
static void one(void)
{
    opal_umrddt_gpu_engine_stats_t before, after;
    opal_umrddt_gpu_copy_t *copies[8];
    pair_t pair;
    int i;

    params(64, (size_t) 16 << 20);
    make(&pair, 500);
    repeat(&pair, OFTEN);
    before = test_stats();
    CHECK(1 == before.graphs_made && 1 == before.graphs_now && 0 < before.graph_launches);
    CHECK(OFTEN == before.launches && before.graph_launches < before.launches_again);
    repeat(&pair, OFTEN);
    after = test_stats();
    CHECK(before.graph_launches + OFTEN == after.graph_launches && 1 == after.graphs_made);
    CHECK(before.launches + OFTEN == after.launches);
    /* Several at once, in streams of their own. */
    for (i = 0; i < 8; ++i) {
        begin(&pair, &copies[i]);
    }
    for (i = 0; i < 8; ++i) {
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copies[i]));
    }
    CHECK(after.graph_launches + 8 == test_stats().graph_launches);
    drop(&pair);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().graphs_now);
}

/* No more than allowed; those that are used stay, and what is not used for long makes room. */
static void bound(void)
{
    const uint64_t made = test_stats().graphs_made;
    pair_t pairs[PAIRS];
    int i, round;

    params(BOUND, (size_t) 16 << 20);
    for (i = 0; i < PAIRS; ++i) {
        make(&pairs[i], 50);
    }
    for (round = 0; round < 4; ++round) {
        for (i = 0; i < PAIRS; ++i) {
            repeat(&pairs[i], OFTEN);
            CHECK(BOUND >= test_stats().graphs_now);
        }
    }
    CHECK(BOUND == test_stats().graphs_now && made + BOUND == test_stats().graphs_made);
    repeat(&pairs[PAIRS - 1], LONG);
    CHECK(BOUND == test_stats().graphs_now && made + BOUND + 1 == test_stats().graphs_made);
    for (i = 0; i < PAIRS; ++i) {
        repeat(&pairs[i], 2);
        drop(&pairs[i]);
    }
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().graphs_now);
}

/* A list that leaves the device takes the graph along that has its address. */
static void lists(void)
{
    const uint64_t made = test_stats().graphs_made;
    pair_t pairs[2];
    int i, round;

    params(64, 20000);
    for (i = 0; i < 2; ++i) {
        make(&pairs[i], 1000);
    }
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < 2; ++i) {
            repeat(&pairs[i], OFTEN);
            CHECK(1 == test_stats().graphs_now);
        }
    }
    CHECK(made + 6 == test_stats().graphs_made);
    drop(&pairs[0]);
    drop(&pairs[1]);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().graphs_now);
}

static void *launch_often(void *argument)
{
    opal_umrddt_gpu_copy_t *copy;
    int i;

    for (i = 0; i < 300; ++i) {
        begin(argument, &copy);
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copy));
    }
    return NULL;
}

/* The same launch by several threads, while others displace it. */
static void threads(void)
{
    const uint64_t before = test_stats().copies;
    pthread_t others[THREADS];
    pair_t pairs[2];
    int i;

    params(64, 20000);
    make(&pairs[0], 1000);
    make(&pairs[1], 1000);
    for (i = 0; i < THREADS; ++i) {
        CHECK(0 == pthread_create(&others[i], NULL, launch_often, &pairs[i / (THREADS - 1)]));
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK(0 == pthread_join(others[i], NULL));
    }
    for (i = 0; i < 2; ++i) {
        test_expect(&pairs[i].ends[0], &pairs[i].ends[1], 0, pairs[i].ends[0].place.layout->size);
        CHECK(test_end_good(&pairs[i].ends[1]));
        drop(&pairs[i]);
    }
    CHECK(before + THREADS * 300 == test_stats().copies);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().graphs_now);
}

void test_graphs(void)
{
    one();
    bound();
    lists();
    threads();
}

void test_no_graphs(void)
{
    const char *options = getenv("UMRDDT_GPU");
    pair_t pair;

    /* Not allowed, unless the driver refuses. */
    params(NULL != options && NULL != strstr(options, "fail=") ? 64 : 0, (size_t) 16 << 20);
    make(&pair, 500);
    repeat(&pair, OFTEN);
    repeat(&pair, OFTEN);
    CHECK(2 * OFTEN == test_stats().launches && 2 * OFTEN == test_stats().copies);
    CHECK(0 == test_stats().graph_launches && 0 == test_stats().graphs_now);
    CHECK(1 >= test_stats().graphs_made);
    drop(&pair);
    opal_umrddt_gpu_engines_close();
}
