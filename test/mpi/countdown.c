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
 * The n-th call of a kind fails: an allocation or a post of umrddt's components (failing.c), a
 * command to the software card's kernel, a call of the software CUDA driver. Each message is whole,
 * or both ends have an error; nobody hangs; what comes behind arrives.
 *
 * --mode init: what UMRDDT_FAULTS says, counted from the start of the process to the end of
 * MPI_Init; then messages, between memory of the CPU: without umrddt nobody takes a GPU's. --mode
 * first: UMRDDT_TEST_FAULTS, counted from the first message; with
 * --mode warm behind it, of what follows some that went well.
 * --mode again: UMRDDT_TEST_FAULTS without the number ("0@malloc"), which is counted up from --ops
 * in one job, each time with datatypes and buffers that are new, until a round sees no fault or
 * messages are not taken any more. --mode end: UMRDDT_TEST_FAULTS, in MPI_Finalize. --mode gpu:
 * between memory of GPUs.
 *
 * With --mode whole no message may end with an error; with --mode hit something must have failed.
 *
 * What was seen is printed (run_countdown goes by it):
 *
 *     countdown: PLAN, MODE: hit COUNT, next N: 0>1 umr>host 1>0 umr (mca_pml_umrddt.so+0x1234)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "pvars.h"

enum {
    BYTES = 60000,
    /* a message may be taken in vain this often before the countdown begins anew in another job */
    ROUNDS = 400
};

/* Of rank 0 and 1. */
static int sum(int one)
{
    int all = 0;

    MPI_OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

/* What failed, of either rank: who made the call, or the function of the driver. */
static void whose(char *text, size_t room)
{
    void *found[2] = {exchange_function(NULL, "umrddt_failing_last"),
                      exchange_function("libcuda.so.1", "umrddt_gpu_faults_last")};
    char all[2][128] = {"", ""};
    void (*ask)(char *, size_t);
    const char *(*ask_gpus)(void);

    memcpy(&ask, &found[0], sizeof(ask)); /* (a function is no object) */
    memcpy(&ask_gpus, &found[1], sizeof(ask_gpus));
    if (NULL != ask) {
        ask(all[mpitest.rank], sizeof(all[0]));
    }
    if (NULL != ask_gpus && '\0' == all[mpitest.rank][0]) {
        snprintf(all[mpitest.rank], sizeof(all[0]), "%s", ask_gpus());
    }
    MPI_OK(MPI_Bcast(all[0], sizeof(all[0]), MPI_CHAR, 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Bcast(all[1], sizeof(all[1]), MPI_CHAR, 1, MPI_COMM_WORLD));
    snprintf(text, room, "(%s%s%s)", all[0], '\0' != all[0][0] && '\0' != all[1][0] ? ", " : "",
             all[1]);
}

/* This rank's end of messages that no other has been like. */
static mpitest_message_t *end_new(long n)
{
    return exchange_end(BYTES + 16 * (int) n,
                        mpitest_has("gpu") && !mpitest_has("init") ? GPU_DEVICE : GPU_HOST);
}

/* One message, while what the plan says fails; adds how it came to text. Without counters of umrddt
 * nothing is known of that. @return it was taken */
static bool message(mpitest_message_t *end, int from, uint64_t key, bool may_fail, char *text,
                    size_t room)
{
    exchange_t seen;
    bool arrived = exchange(end, from, key, &seen);

    snprintf(text + strlen(text), room - strlen(text), " %d>%d %s", from, 1 - from, seen.way);
    if (!arrived && (!may_fail || mpitest_has("whole"))) {
        mpitest_fail(__FILE__, __LINE__, "a message failed:%s", text);
    }
    return arrived && 0 != strcmp(seen.way, "host");
}

/* There and back. @return how often something failed, in both */
static int round_trip(long n, const char *plan, char *text, size_t room)
{
    mpitest_message_t *end = end_new(n);
    int hits;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) exchange_plan(plan, 0);
    for (int from = 0; from < 2; ++from) {
        (void) message(end, from, mpitest.seed + (uint64_t) (2 * n + from), true, text, room);
    }
    hits = sum(exchange_plan(NULL, 0));
    mpitest_message_free(end);
    return hits;
}

/* What comes behind, with the same types and with others. @return true: some was taken */
static bool behind(long n)
{
    mpitest_message_t *end = end_new(n);
    bool taken = false;
    char text[512] = "";

    for (int i = 0; i < 4; ++i) {
        taken |= message(end, i % 2, mpitest.seed + 77 + (uint64_t) i, false, text, sizeof(text));
    }
    mpitest_message_free(end);
    return taken;
}

static int all_hits;

static void say(const char *plan, int hits, long next, const char *text)
{
    char site[264];

    whose(site, sizeof(site));
    all_hits += hits;
    if (0 == mpitest.rank) {
        printf("countdown: %s, %s: hit %d, next %ld:%s %s\n", plan, mpitest.mode, hits, next, text,
               0 < hits ? site : "");
        fflush(stdout);
    }
}

static void again(const char *what)
{
    long n = mpitest.ops, last = n + ROUNDS;
    bool taken = behind(0);
    int hits = 1;

    for (; 0 < hits && taken && n < last; ++n) {
        char text[512] = "", plan[64];

        snprintf(plan, sizeof(plan), "%s:%ld", what, n);
        hits = round_trip(2 * n, plan, text, sizeof(text));
        say(plan, hits, 0 < hits ? n + 1 : 0, text);
        (void) exchange_plan("", 0);
        taken = behind(2 * n + 1);
    }
}

int main(int argc, char **argv)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS");
    const char *begin = getenv("UMRDDT_FAULTS");
    char text[512] = "";
    int hits;

    mpitest_init(&argc, &argv, "countdown", 1, MPI_THREAD_SINGLE);
    hits = sum(exchange_plan(NULL, 0));
    if (0 > hits) {
        mpitest_skip("nothing that fails on demand is there");
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (mpitest_has("gpu")) {
        gpu_begin_all();
        hits = mpitest_has("init") ? sum(exchange_plan(NULL, 0)) : hits;
    }
    (void) pvars_open(); /* (none, if umrddt gave up) */
    if (mpitest_has("init")) {
        (void) exchange_plan("", 0);
        say(NULL == begin ? "" : begin, hits, 0, text);
    } else if (mpitest_has("first")) {
        CHECK(NULL != plan);
        if (mpitest_has("warm")) {
            (void) behind(3);
        }
        hits = round_trip(0, plan, text, sizeof(text));
        say(plan, hits, 0, text);
        (void) exchange_plan("", 0);
    } else if (mpitest_has("again")) {
        CHECK(NULL != plan);
        again(plan);
    }
    CHECK(0 < all_hits || !mpitest_has("hit"));
    (void) behind(1);
    (void) behind(1000);
    if (mpitest_has("end")) {
        CHECK(NULL != plan);
        pvars_close();
        pvars_close(); /* what mpitest_init has opened keeps the components, too */
        CHECK(0 <= exchange_plan(plan, 1));
        MPI_OK(MPI_Finalize());
        printf("countdown: %s, %s: hit %d, next 0: ok\n", plan, mpitest.mode,
               exchange_plan(NULL, 0));
        return 0;
    }
    pvars_close();
    return mpitest_finish();
}
