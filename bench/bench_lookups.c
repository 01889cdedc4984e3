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
 * Lookups that find their layout in the cache: their time, and their instructions for test_lookups.
 * One process:
 *
 *     bench_lookups [single|multiple [THREADS [LOOKUPS]]]
 *
 * with that MPI thread level. Each thread looks up 16 types of its own in turn; then one that all
 * threads share. It prints the nanoseconds of a lookup and of the release of its reference, in
 * processor time, which other load affects less: the median of 11 rounds, of the slowest thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "opal_config.h"
#include "ompi/datatype/ompi_datatype.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "bench_util.h"

#define MAX_THREADS 64
#define TYPES       16 /* of each thread */
#define ROUNDS      11

typedef struct {
    MPI_Datatype types[TYPES];
    uint64_t lookups;
    double seconds;
} worker_t;

static opal_iov_cache_t *cache;
static pthread_barrier_t barrier;

static int promise(opal_iov_cache_t *of, const opal_datatype_t *type, void *context)
{
    (void) of;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

/* A function of its own: test_lookups counts it by name. */
__attribute__((noinline)) void lookups_counted(const worker_t *worker);

void lookups_counted(const worker_t *worker)
{
    opal_iov_cache_layout_t *layout;
    uint64_t i;

    for (i = 0; i < worker->lookups; ++i) {
        opal_iov_cache_get(cache, &worker->types[i % TYPES]->super, 1, &layout);
        OBJ_RELEASE(layout);
    }
}

static void *look_up(void *argument)
{
    worker_t *worker = argument;
    struct timespec begin, end;

    pthread_barrier_wait(&barrier);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    lookups_counted(worker);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    worker->seconds =
        (double) (end.tv_sec - begin.tv_sec) + 1e-9 * (double) (end.tv_nsec - begin.tv_nsec);
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* @return nanoseconds */
static double measure(worker_t *workers, int threads)
{
    double rounds[ROUNDS];
    pthread_t ids[MAX_THREADS];
    int round, i;

    for (round = 0; round < ROUNDS; ++round) {
        pthread_barrier_init(&barrier, NULL, (unsigned) threads);
        for (i = 1; i < threads; ++i) {
            if (0 != pthread_create(&ids[i], NULL, look_up, &workers[i])) {
                perror("pthread_create");
                exit(1);
            }
        }
        look_up(&workers[0]);
        rounds[round] = workers[0].seconds;
        for (i = 1; i < threads; ++i) {
            pthread_join(ids[i], NULL);
            rounds[round] = rounds[round] > workers[i].seconds ? rounds[round] : workers[i].seconds;
        }
        pthread_barrier_destroy(&barrier);
    }
    qsort(rounds, ROUNDS, sizeof(rounds[0]), ascending);
    return 1e9 * rounds[ROUNDS / 2] / (double) workers[0].lookups;
}

int main(int argc, char **argv)
{
    bool multiple = 1 < argc && 0 == strcmp(argv[1], "multiple");
    int threads = 2 < argc ? atoi(argv[2]) : 1, provided, i, j;
    uint64_t lookups = 3 < argc ? strtoull(argv[3], NULL, 10) : 1000000;
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_stats_t stats;
    worker_t *workers;
    double own, shared;

    if (1 > threads || MAX_THREADS < threads || (1 < threads && !multiple)
        || (1 < argc && !multiple && 0 != strcmp(argv[1], "single"))) {
        fprintf(stderr, "usage: bench_lookups [single|multiple [THREADS [LOOKUPS]]]\n");
        return 1;
    }
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init_thread(NULL, NULL, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (multiple && MPI_THREAD_MULTIPLE != provided) {
        fprintf(stderr, "this Open MPI has no MPI_THREAD_MULTIPLE\n");
        return 77;
    }
    workers = bench_alloc((size_t) threads * sizeof(*workers));
    opal_iov_cache_create((size_t) 1 << 24, promise, NULL, &cache);
    for (i = 0; i < threads; ++i) {
        workers[i].lookups = lookups;
        for (j = 0; j < TYPES; ++j) {
            MPI_Type_vector(10 + i * TYPES + j, 1, 3, MPI_INT, &workers[i].types[j]);
            MPI_Type_commit(&workers[i].types[j]);
            opal_iov_cache_get(cache, &workers[i].types[j]->super, 1, &layout);
            OBJ_RELEASE(layout);
        }
    }
    own = measure(workers, threads);
    for (i = 0; i < threads; ++i) {
        for (j = 0; j < TYPES; ++j) {
            workers[i].types[j] = workers[0].types[0];
        }
    }
    shared = measure(workers, threads);
    opal_iov_cache_stats(cache, &stats);
    if (stats.hits != 2 * ROUNDS * lookups * (uint64_t) threads) {
        fprintf(stderr, "these were no hits\n");
        return 1;
    }
    printf("%s %d threads, ns: own types %.1f, one type %.1f\n", multiple ? "multiple" : "single",
           threads, own, shared);
#if !defined(__OPTIMIZE__)
    printf("compiled without optimisation\n");
#endif
    opal_iov_cache_destroy(cache);
    MPI_Finalize();
    return 0;
}
