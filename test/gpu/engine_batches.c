/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Pending copies: one launch for all, the data of each, and failures of one or of all.
 */

#include "engine_parts.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_flush.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define COPIES  26
#define ROUNDS  8
#define THREADS 4
/* More than a batch may be: such a copy goes at once. */
#define LARGE ((uint64_t) 1 << 20)

typedef struct pending_t {
    test_end_t ends[2];
    uint64_t start;
    uint64_t stop;
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *copy;
} pending_t;

static void make_of(pending_t *pending, opal_iov_cache_layout_t *from, opal_iov_cache_layout_t *to)
{
    memset(pending, 0, sizeof(*pending));
    test_end_make(ON_DEVICE, from, &pending->ends[0]);
    test_end_make(ON_DEVICE, to, &pending->ends[1]);
    pending->ends[0].place.reached = true;
    pending->ends[1].place.reached = true;
    pending->stop = from->size;
    pending->engine = test_engine_for(&pending->ends[0], &pending->ends[1]);
}

/* Of some bytes, so that no range is empty. */
static void make_random(pending_t *pending)
{
    opal_iov_cache_layout_t *layouts[2];

    for (;;) {
        test_layouts(layouts);
        if (0 < layouts[0]->size) {
            break;
        }
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
    }
    make_of(pending, layouts[0], layouts[1]);
    pending->start = typegen_below(&test_dice, pending->stop);
    pending->stop -= typegen_below(&test_dice, pending->stop - pending->start);
}

/* As the neighbours of a cube: vectors, blocks in a list, and one piece. */
static void make_plain(pending_t *pending, int i)
{
    const uint64_t n = 20 + (uint64_t) i;

    make_of(pending, test_blocks(n, 64, 128, 0 == i % 3),
            0 == i % 4 ? test_blocks(1, n * 64, n * 64, false) : test_blocks(n * 2, 32, 48, false));
}

static void drop(pending_t *all, int n)
{
    int i;

    for (i = 0; i < n; ++i) {
        test_end_free(&all[i].ends[0]);
        test_end_free(&all[i].ends[1]);
    }
}

static void begin(pending_t *pending)
{
    test_end_fill(&pending->ends[0]);
    test_end_fill(&pending->ends[1]);
    CHECK(OPAL_SUCCESS
          == opal_umrddt_gpu_copy_later(pending->engine, &pending->ends[0].place,
                                        &pending->ends[1].place, pending->start, pending->stop,
                                        &pending->copy));
}

/* @return the result of the copy, whose data is right if it is OPAL_SUCCESS */
static int end(pending_t *pending)
{
    int rc;

    if (typegen_once_in(&test_dice, 2)) {
        rc = opal_umrddt_gpu_copy_wait(pending->copy);
    } else {
        while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(pending->copy))) {
            opal_umrddt_gpu_flush();
            usleep(10);
        }
    }
    if (OPAL_SUCCESS == rc) {
        test_expect(&pending->ends[0], &pending->ends[1], pending->start, pending->stop);
        CHECK(test_end_good(&pending->ends[0]) && test_end_good(&pending->ends[1]));
    }
    return rc;
}

static void params(unsigned batch)
{
    opal_umrddt_gpu_engine_params_t wanted = test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);

    wanted.batch = batch;
    opal_umrddt_gpu_engine_params(&wanted);
}

/* One round: all are pending, then flushed. @return launches and driver copies */
static uint64_t round_of(pending_t *all, int n)
{
    const opal_umrddt_gpu_engine_stats_t before = test_stats();
    opal_umrddt_gpu_engine_stats_t after;
    int i;

    for (i = 0; i < n; ++i) {
        begin(&all[i]);
    }
    opal_umrddt_gpu_flush();
    for (i = 0; i < n; ++i) {
        CHECK(OPAL_SUCCESS == end(&all[i]));
    }
    after = test_stats();
    CHECK(before.copies + (uint64_t) n == after.copies);
    return after.launches - before.launches + after.driver_copies - before.driver_copies;
}

/* The copies of an exchange take one launch each time; later ones prepare nothing. */
void test_batches(void)
{
    opal_umrddt_gpu_engine_stats_t before, after;
    pending_t all[COPIES];
    int i, round;

    params(0);
    for (i = 0; i < COPIES; ++i) {
        make_plain(&all[i], i);
    }
    (void) round_of(all, COPIES);
    (void) round_of(all, COPIES);
    before = test_stats();
    for (round = 0; round < ROUNDS; ++round) {
        CHECK(2 >= round_of(all, COPIES));
    }
    after = test_stats();
    CHECK(before.batched + ROUNDS * COPIES == after.batched);
    CHECK(before.shapes_made == after.shapes_made && before.routes_made == after.routes_made
          && before.lists_uploaded == after.lists_uploaded);
    /* One pending copy is no batch. */
    before = after;
    CHECK(1 == round_of(all, 1) && before.batches == test_stats().batches);
    drop(all, COPIES);
}

/* The limit of a batch. */
void test_batch_limits(void)
{
    pending_t all[COPIES];
    uint64_t batched;
    int i;

    params(5);
    for (i = 0; i < COPIES; ++i) {
        make_plain(&all[i], i);
    }
    (void) round_of(all, COPIES);
    CHECK(6 == round_of(all, COPIES));
    opal_umrddt_gpu_engines_close();
    params(1);
    for (i = 0; i < COPIES; ++i) {
        all[i].engine = test_engine_for(&all[i].ends[0], &all[i].ends[1]);
    }
    batched = test_stats().batched;
    CHECK(COPIES == round_of(all, COPIES) && batched == test_stats().batched);
    drop(all, COPIES);
}

/* Any layouts and ranges, and large ones beside them. */
void test_batches_random(void)
{
    pending_t all[COPIES + 1];
    int i, round;

    params(0);
    for (round = 0; round < 3 * ROUNDS; ++round) {
        for (i = 0; i < COPIES; ++i) {
            make_random(&all[i]);
        }
        make_of(&all[COPIES], test_blocks(LARGE / 64, 64, 128, false),
                test_blocks(LARGE / 32, 32, 48, false));
        (void) round_of(all, COPIES + 1);
        CHECK(2 >= round_of(&all[COPIES], 1));
        (void) round_of(all, COPIES + 1);
        drop(all, COPIES + 1);
    }
}

/* Copies that are not flushed end as well. */
void test_batches_unflushed(void)
{
    pending_t all[COPIES];
    int i, rc;

    params(0);
    for (i = 0; i < COPIES; ++i) {
        make_plain(&all[i], i);
    }
    for (i = 0; i < COPIES; ++i) {
        begin(&all[i]);
    }
    while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(all[0].copy))) {
        usleep(10);
    }
    CHECK(OPAL_SUCCESS == rc);
    for (i = 1; i < COPIES; ++i) {
        CHECK(OPAL_SUCCESS == end(&all[i]));
    }
    begin(&all[0]);
    begin(&all[1]);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(all[1].copy));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(all[0].copy));
    drop(all, COPIES);
}

static void *thread_of(void *argument)
{
    pending_t *mine = argument;
    int i, round;

    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < 6; ++i) {
            CHECK(OPAL_SUCCESS
                  == opal_umrddt_gpu_copy_later(mine[i].engine, &mine[i].ends[0].place,
                                                &mine[i].ends[1].place, mine[i].start, mine[i].stop,
                                                &mine[i].copy));
            if (0 == (round + i) % 3) {
                opal_umrddt_gpu_flush();
            }
        }
        for (i = 0; i < 6; ++i) {
            CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(mine[i].copy));
        }
    }
    return NULL;
}

/* Threads whose copies are in the same batches. */
void test_batches_threads(void)
{
    pending_t all[THREADS][6];
    pthread_t threads[THREADS];
    int i, k;

    params(0);
    for (i = 0; i < THREADS; ++i) {
        for (k = 0; k < 6; ++k) {
            make_plain(&all[i][k], 6 * i + k);
        }
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK(0 == pthread_create(&threads[i], NULL, thread_of, all[i]));
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK(0 == pthread_join(threads[i], NULL));
        for (k = 0; k < 6; ++k) {
            test_expect(&all[i][k].ends[0], &all[i][k].ends[1], all[i][k].start, all[i][k].stop);
            CHECK(test_end_good(&all[i][k].ends[1]));
        }
        drop(all[i], 6);
    }
}

/* Copies of a round that failed; the next round is complete. */
static int failures(void)
{
    pending_t all[COPIES];
    int i, failed = 0;

    params(0);
    for (i = 0; i < COPIES; ++i) {
        make_plain(&all[i], 0 == i % 12 ? i + 1 : i); /* no list that is in an argument */
        begin(&all[i]);
    }
    opal_umrddt_gpu_flush();
    for (i = 0; i < COPIES; ++i) {
        failed += OPAL_SUCCESS != end(&all[i]);
    }
    (void) round_of(all, COPIES);
    drop(all, COPIES);
    return failed;
}

/* What fails for the batch works for each copy, or needs no batch. */
void test_batch_failed(void)
{
    CHECK(0 == failures());
}

/* What fails for one copy fails for no other. */
void test_batch_one_failed(void)
{
    CHECK(1 == failures());
}

/* A failed test of the copy whose flag a batch uses: the batch is complete then. */
void test_batch_first_failed(void)
{
    pending_t all[3];
    int i, rc;

    params(0);
    for (i = 0; i < 3; ++i) {
        make_of(&all[i], test_blocks(20, 64, 128, false), test_blocks(40, 32, 48, false));
        begin(&all[i]);
    }
    opal_umrddt_gpu_flush();
    while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(all[0].copy))) {
    }
    CHECK(OPAL_ERROR == rc);
    for (i = 1; i < 3; ++i) {
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_test(all[i].copy));
    }
    drop(all, 3);
}

/* The list of a type that is used once is in the argument of its launch, also if others wait. */
void test_batches_new(void)
{
    opal_umrddt_gpu_engine_stats_t before, after;
    pending_t all[COPIES];
    int i;

    params(0);
    for (i = 0; i < COPIES; ++i) {
        const uint64_t n = 20 + (uint64_t) i;

        make_of(&all[i], test_blocks(n, 64, 128, 0 == i % 3),
                test_blocks(1, n * 64, n * 64, false));
    }
    before = test_stats();
    (void) round_of(all, COPIES);
    after = test_stats();
    CHECK(before.lists_uploaded == after.lists_uploaded && before.batched < after.batched);
    (void) round_of(all, COPIES);
    CHECK(after.lists_uploaded < test_stats().lists_uploaded);
    drop(all, COPIES);
}

/* A number above the largest one is that one. */
void test_batch_maximum(void)
{
    pending_t all[2];
    int i;

    params(OPAL_UMRDDT_GPU_BATCH_MOST + 1);
    for (i = 0; i < 2; ++i) {
        make_plain(&all[i], i + 1);
        begin(&all[i]);
    }
    opal_umrddt_gpu_flush();
    CHECK(0 == opal_umrddt_gpu_pending_copies);
    for (i = 0; i < 2; ++i) {
        CHECK(OPAL_SUCCESS == end(&all[i]));
    }
    drop(all, 2);
}

/* The clock of the thread that sets it, ns; 0: the system's. */
static __thread uint64_t clock_now;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (0 == clock_now) {
        return (int) syscall(SYS_clock_gettime, clock, time);
    }
    time->tv_sec = (time_t) (clock_now / 1000000000);
    time->tv_nsec = (long) (clock_now % 1000000000);
    return 0;
}

/* Flush so many nanoseconds after the last flush. @return pending copies after it */
static unsigned flush_after(uint64_t time)
{
    clock_now = 0 == clock_now ? 1000000000 : clock_now + time;
    opal_umrddt_gpu_flush();
    return opal_umrddt_gpu_pending_copies;
}

/* While further copies are expected, a pending one waits for the next one, but not for long. If
 * none came, the next copy is launched at once. */
void test_batches_expected(void)
{
    pending_t all[4];
    int i;

    params(0);
    for (i = 0; i < 4; ++i) {
        make_of(&all[i], test_blocks(20, 64, 128, false), test_blocks(40, 32, 48, false));
    }
    opal_umrddt_gpu_expect(1);
    CHECK(opal_umrddt_gpu_expects());
    begin(&all[0]);
    CHECK(1 == flush_after(0) && 1 == flush_after(200));
    begin(&all[1]);
    CHECK(2 == flush_after(200) && 2 == flush_after(500) && 0 == flush_after(2000));
    begin(&all[2]);
    CHECK(1 == flush_after(200) && 0 == flush_after(2000));
    begin(&all[3]);
    CHECK(0 == flush_after(200)); /* the one before was held in vain */
    opal_umrddt_gpu_expect(-1);
    CHECK(!opal_umrddt_gpu_expects());
    clock_now = 0;
    for (i = 0; i < 4; ++i) {
        CHECK(OPAL_SUCCESS == end(&all[i]));
    }
    drop(all, 4);
}

/* After a flush that came late, a copy is launched at once, while another one is in progress. */
void test_batches_held(void)
{
    pending_t all[3];
    int i;

    params(0);
    for (i = 0; i < 3; ++i) {
        make_of(&all[i], test_blocks(20, 64, 128, false), test_blocks(40, 32, 48, false));
    }
    begin(&all[0]);
    opal_umrddt_gpu_flush();
    begin(&all[1]);
    opal_umrddt_gpu_flush();
    CHECK(1 == opal_umrddt_gpu_pending_copies);
    usleep(1000);
    opal_umrddt_gpu_flush();
    CHECK(0 == opal_umrddt_gpu_pending_copies);
    begin(&all[2]);
    opal_umrddt_gpu_flush();
    CHECK(0 == opal_umrddt_gpu_pending_copies);
    for (i = 0; i < 3; ++i) {
        CHECK(OPAL_SUCCESS == end(&all[i]));
    }
    drop(all, 3);
}

/* Engines that are closed have no pending copies. */
void test_pending_closed(void)
{
    pending_t pending;

    params(0);
    make_plain(&pending, 1);
    begin(&pending);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == opal_umrddt_gpu_pending_copies);
    drop(&pending, 1);
}
