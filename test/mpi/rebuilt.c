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
 * A queue pair fails, and after some messages by the base PML it is rebuilt: messages use the HCA
 * again, in both directions. UMRDDT_TEST_FAULTS is the plan (sim/connectx/README.md); its count
 * restarts in each of --ops rounds. All messages arrive complete, and no other byte is written.
 *
 * --mode maps: the queue pair for mappings fails. --mode flight: many messages at once, in both
 * directions, and from two communicators, while faults occur (a random plan); there are none at the
 * end. --mode lasting: the plan never ends; after a last attempt umrddt uses the base PML
 * immediately. --mode never: btl_umr_rebuilds is 0.
 */

#include <stdio.h>
#include <stdlib.h>

#include "byhca.h"
#include "exchange.h"
#include "pvars.h"

enum {
    FLIGHT = 8
};

/* On both sides: rebuilt queue pairs to each other; those for mappings; or of both kinds. */
static uint64_t rebuilt(void)
{
    uint64_t mine, all;
    pvars_t values;

    pvars_read(&values);
    mine = values.value[mpitest_has("maps") ? PVARS_MAPS_REBUILT : PVARS_ENDPOINTS_REBUILT]
           + (mpitest_has("flight") ? values.value[PVARS_MAPS_REBUILT] : 0);
    MPI_OK(MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

/* The fault of each round occurs once. Each attempt needs twice as many messages as the previous
 * one. Two attempts may be abandoned in each round, because the other side has not polled all of
 * its flushed completions: a base PML that seldom calls progress leaves them there for some
 * messages. */
static void rounds(const char *plan, const byhca_t *pair)
{
    for (long round = 0; round < mpitest.ops; ++round) {
        uint64_t before = rebuilt();
        long most = 3 * (BYHCA_PATIENCE << (3 * round + 2)) + 4, lost;

        mpitest.step = round;
        CHECK_INT(byhca_until(pair, 10, 0), 0);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        (void) exchange_plan(plan, 1);
        /* Some faults are detected by the message that they affect, some by the next one. */
        lost = (byhca_message(pair, 0, 20) ? 0 : 1) + (byhca_message(pair, 1, 21) ? 0 : 1)
               + (byhca_message(pair, 0, 22) ? 0 : 1) + (byhca_message(pair, 1, 23) ? 0 : 1);
        CHECK(0 < lost);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        (void) exchange_plan("", 0);
        lost += byhca_until(pair, 1000, most);
        CHECK(lost <= most);
        CHECK(before < rebuilt());
        if (0 == mpitest.rank) {
            printf("rebuilt: %s: after %ld messages by the base PML\n", plan, lost);
        }
    }
    /* The new queue pair works like the first one. */
    for (uint64_t i = 0; i < 20; ++i) {
        CHECK(byhca_message(pair, 0, 3000 + i));
        CHECK(byhca_message(pair, 1, 4000 + i));
    }
}

/* Many at once, in both directions, while faults occur. */
static void flight(const char *plan)
{
    mpitest_message_t *ends[2][FLIGHT];
    MPI_Request requests[2 * FLIGHT];
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    int rank = mpitest.rank;
    uint64_t count;

    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (int i = 0; i < 2 * FLIGHT; ++i) {
        ends[i % 2][i / 2] = byhca_end(rank);
    }
    for (long round = 0; round < mpitest.ops; ++round) {
        uint64_t key = 100 * (uint64_t) round;

        mpitest.step = round;
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == round) {
            (void) exchange_plan(plan, 1);
        }
        for (int i = 0; i < FLIGHT; ++i) {
            byhca_fill(ends[0][i], false, 0);
            byhca_fill(ends[1][i], true, key + (uint64_t) (10 * rank + i));
            MPI_OK(MPI_Irecv(ends[0][i]->addr, 1, ends[0][i]->type, 1 - rank, i % 3, comms[i % 2],
                             &requests[i]));
        }
        for (int i = 0; i < FLIGHT; ++i) {
            MPI_OK(MPI_Isend(ends[1][i]->addr, 1, ends[1][i]->type, 1 - rank, i % 3, comms[i % 2],
                             &requests[FLIGHT + i]));
        }
        MPI_OK(MPI_Waitall(2 * FLIGHT, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < FLIGHT; ++i) {
            VERIFY(ends[0][i]->buffer, key + (uint64_t) (10 * (1 - rank) + i), BYHCA_BYTES);
        }
        mpitest_alive();
    }
    (void) exchange_plan("", 0);
    CHECK(0 < rebuilt());
    count = rebuilt();
    if (0 == rank) {
        printf("rebuilt: %s: connected anew %llu times, both sides together\n", plan,
               (unsigned long long) count);
    }
    for (int i = 0; i < 2 * FLIGHT; ++i) {
        mpitest_message_free(ends[i % 2][i / 2]);
    }
    MPI_OK(MPI_Comm_free(&comms[1]));
}

/* The plan never ends: two attempts (btl_umr_rebuilds=2), or none. */
static void lasting(const char *plan, const byhca_t *pair)
{
    pvars_t before, after;
    uint64_t times;

    CHECK_INT(byhca_until(pair, 10, 0), 0);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) exchange_plan(plan, 1);
    for (uint64_t i = 0; i < 30; ++i) {
        (void) byhca_message(pair, 0, 20 + i);
        (void) byhca_message(pair, 1, 60 + i);
    }
    times = rebuilt();
    pvars_read(&before);
    for (uint64_t i = 0; i < 30; ++i) {
        CHECK(!byhca_message(pair, 0, 120 + i));
        CHECK(!byhca_message(pair, 1, 160 + i));
    }
    pvars_read(&after);
    CHECK_INT(rebuilt(), times);
    CHECK(mpitest_has("never") ? 0 == times : 0 < times && 2 * 2 * 2 >= times);
    if (!mpitest_has("maps")) {
        CHECK_INT(after.value[PVARS_HANDLED_SENDS], before.value[PVARS_HANDLED_SENDS]);
    }
    (void) exchange_plan("", 0);
}

int main(int argc, char **argv)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS");
    byhca_t pair = {.comm = MPI_COMM_WORLD};

    mpitest_init(&argc, &argv, "rebuilt", 3, MPI_THREAD_SINGLE);
    CHECK(NULL != plan && 2 == mpitest.size);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    if (NULL == exchange_function(NULL, "umrddt_sim_faults")) {
        mpitest_skip("only the software HCA fails on demand");
    }
    pair.peer = 1 - mpitest.rank;
    pair.side = mpitest.rank;
    pair.end = byhca_end(pair.side);
    if (mpitest_has("flight")) {
        flight(plan);
    } else if (mpitest_has("lasting") || mpitest_has("never")) {
        lasting(plan, &pair);
    } else {
        rounds(plan, &pair);
    }
    mpitest_message_free(pair.end);
    pvars_close();
    return mpitest_finish();
}
