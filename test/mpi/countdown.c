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
 * command to the kernel driver of the software HCA, a call of the software CUDA driver. Each
 * message is complete, or both ends have an error; no process hangs; later messages arrive.
 *
 * --mode init: UMRDDT_FAULTS, counted from the start of the process to the end of MPI_Init; then
 * messages in system memory, because GPU memory needs umrddt. --mode first: UMRDDT_TEST_FAULTS,
 * counted from the first message; with --mode warm, after some good messages. With more than two
 * ranks, each pair by itself, the p-th one with the number of the plan plus p. --mode again:
 * UMRDDT_TEST_FAULTS without the number ("0@malloc"), which is incremented from --ops in one job,
 * each time with new datatypes and buffers, until a round has no fault or umrddt does not carry
 * messages any more; it waits for the rebuild of a failed queue pair. --mode end:
 * UMRDDT_TEST_FAULTS, in MPI_Finalize. --mode gpu: between GPU memory.
 *
 * --mode unexpected, pending: one message, whose envelope arrives before its receive, or after it;
 * UMRDDT_TEST_FAULTS, counted at the receiver (rank 1) from then on.
 *
 * --mode collective: collectives of one process, with UMRDDT_TEST_FAULTS; each returns an error.
 *
 * With --mode whole no message may end with an error; with --mode hit at least one call must have
 * failed; with --mode each (and again) each n must have failed, up to one for which umrddt carried
 * the messages and no call was left to fail.
 *
 * The result is printed (run_countdown reads it):
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
    /* of one job; later ones need a new job */
    ROUNDS = 40,
    /* pairs of messages after which a failed queue pair is rebuilt, or never will be */
    PATIENCE = 600
};

/* Of rank 0 and 1. */
static int sum(int one)
{
    int all = 0;

    MPI_OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, exchange_comm));
    return all;
}

/* The failed call, of either rank: its caller, or the function of the driver. */
static void whose(char *text, size_t room)
{
    void *found[2] = {exchange_function(NULL, "umrddt_failing_last"),
                      exchange_function("libcuda.so.1", "umrddt_gpu_faults_last")};
    char all[2][128] = {"", ""};
    void (*ask)(char *, size_t);
    const char *(*query_gpus)(void);

    memcpy(&ask, &found[0], sizeof(ask)); /* (a function is no object) */
    memcpy(&query_gpus, &found[1], sizeof(query_gpus));
    if (NULL != ask) {
        ask(all[mpitest.rank], sizeof(all[0]));
    }
    if (NULL != query_gpus && '\0' == all[mpitest.rank][0]) {
        snprintf(all[mpitest.rank], sizeof(all[0]), "%s", query_gpus());
    }
    MPI_OK(MPI_Bcast(all[0], sizeof(all[0]), MPI_CHAR, 0, exchange_comm));
    MPI_OK(MPI_Bcast(all[1], sizeof(all[1]), MPI_CHAR, 1, exchange_comm));
    snprintf(text, room, "(%s%s%s)", all[0], '\0' != all[0][0] && '\0' != all[1][0] ? ", " : "",
             all[1]);
}

/* This rank's end of messages with a layout that no other message had. */
static mpitest_message_t *end_new(long n)
{
    return exchange_end(BYTES + 16 * (int) n,
                        mpitest_has("gpu") && !mpitest_has("init") ? GPU_DEVICE : GPU_HOST);
}

/* One message, with the plan active; appends its scheme to text. Without counters of umrddt the
 * scheme is not known. @return umrddt handled it */
static bool message(mpitest_message_t *end, int from, uint64_t key, bool may_fail, char *text,
                    size_t room)
{
    exchange_t seen;
    bool arrived = exchange(end, from, key, &seen);

    snprintf(text + strlen(text), room - strlen(text), " %d>%d %s", from, 1 - from, seen.way);
    if (!arrived && (!may_fail || mpitest_has("whole"))) {
        mpitest_fail(__FILE__, __LINE__, "a message failed:%s", text);
    }
    return arrived && NULL == strstr(seen.way, "host");
}

/* Back and forth. @return the number of faults in both; *own: umrddt carried both */
static int round_trip(long n, const char *plan, char *text, size_t room, bool *own)
{
    mpitest_message_t *end = end_new(n);
    int hits;

    MPI_OK(MPI_Barrier(exchange_comm));
    (void) exchange_plan(plan, 0);
    *own = true;
    for (int from = 0; from < 2; ++from) {
        *own &= message(end, from, mpitest.seed + (uint64_t) (2 * n + from), true, text, room);
    }
    hits = sum(exchange_plan(NULL, 0));
    mpitest_message_free(end);
    return hits;
}

/* Later messages, with the same types and with others: two in each direction, and up to so many
 * pairs, until umrddt carries both of one. @return true: it does */
static bool behind(long n, int pairs)
{
    mpitest_message_t *end = end_new(n);
    bool own = false;

    for (int i = 0; i < 2 || (!own && i < pairs); ++i) {
        own = true;
        for (int from = 0; from < 2; ++from) {
            char text[512] = "";

            own &= message(end, from, mpitest.seed + 77 + (uint64_t) (2 * i + from), false, text,
                           sizeof(text));
        }
    }
    mpitest_message_free(end);
    return own;
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
    bool own = behind(0, PATIENCE);
    int hits = 1;

    for (; 0 < hits && own && n < last; ++n) {
        char text[512] = "", plan[128];

        snprintf(plan, sizeof(plan), "%s:%ld", what, n);
        hits = round_trip(2 * n, plan, text, sizeof(text), &own);
        say(plan, hits, 0 < hits ? n + 1 : 0, text);
        /* A round by the base PML does not show the effect of the n-th call: it would be mistaken
         * for the end. */
        CHECK(0 < hits || own || !mpitest_has("each"));
        (void) exchange_plan("", 0);
        own = behind(2 * n + 1, PATIENCE);
    }
    CHECK(0 == hits || !mpitest_has("each"));
}

/* One message from rank 0 to 1, whose envelope arrives before or after its receive. */
static int ordered(const char *plan, bool pending)
{
    mpitest_message_t *end = exchange_end(BYTES, GPU_HOST);
    MPI_Request request = MPI_REQUEST_NULL;

    if (0 == mpitest.rank) {
        mpitest_fill(end->buffer, 1);
        if (pending) {
            MPI_OK(MPI_Recv(NULL, 0, MPI_INT, 1, 2, exchange_comm, MPI_STATUS_IGNORE));
        }
        MPI_OK(MPI_Isend(end->addr, 1, end->type, 1, 1, exchange_comm, &request));
        if (!pending) {
            MPI_OK(MPI_Send(NULL, 0, MPI_INT, 1, 2, exchange_comm));
        }
    } else {
        mpitest_clear(end->buffer);
        if (pending) {
            MPI_OK(MPI_Irecv(end->addr, 1, end->type, 0, 1, exchange_comm, &request));
            (void) exchange_plan(plan, 1);
            MPI_OK(MPI_Send(NULL, 0, MPI_INT, 0, 2, exchange_comm));
        } else {
            MPI_OK(MPI_Recv(NULL, 0, MPI_INT, 0, 2, exchange_comm, MPI_STATUS_IGNORE));
            (void) exchange_plan(plan, 1);
            MPI_OK(MPI_Irecv(end->addr, 1, end->type, 0, 1, exchange_comm, &request));
        }
    }
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (1 == mpitest.rank) {
        (void) exchange_plan(NULL, 0);
        VERIFY(end->buffer, 1, end->bytes);
    }
    mpitest_message_free(end);
    return sum(exchange_plan(NULL, 0));
}

/* Collectives without memory for a stage, then for a request: they return an error, and wait for
 * nothing. Without faults they work again. */
static int collective(const char *plan)
{
    mpitest_message_t *out = exchange_end(BYTES, GPU_DEVICE), *in = exchange_end(BYTES, GPU_DEVICE);
    MPI_Request request = MPI_REQUEST_NULL;
    int hits;

    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    mpitest_fill(out->buffer, 1);
    mpitest_clear(in->buffer);
    (void) exchange_plan(plan, 1);
    CHECK(MPI_SUCCESS
          != MPI_Allgather(out->addr, 1, out->type, in->addr, 1, in->type, MPI_COMM_SELF));
    hits = exchange_plan(NULL, 0);
    MPI_OK(MPI_Allgather(out->addr, 1, out->type, in->addr, 1, in->type, MPI_COMM_SELF));
    VERIFY(in->buffer, 1, in->bytes);
    (void) exchange_plan(plan, 1);
    CHECK(
        MPI_SUCCESS
        != MPI_Iallgather(out->addr, 1, out->type, in->addr, 1, in->type, MPI_COMM_SELF, &request));
    hits = hits < exchange_plan(NULL, 0) ? hits : exchange_plan(NULL, 0);
    mpitest_clear(in->buffer);
    MPI_OK(MPI_Iallgather(out->addr, 1, out->type, in->addr, 1, in->type, MPI_COMM_SELF, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    VERIFY(in->buffer, 1, in->bytes);
    mpitest_message_free(out);
    mpitest_message_free(in);
    return hits;
}

/* In a job of several pairs of ranks, each by itself: the plan of this pair has the number of the
 * plan plus p. @return its name; *own: the plan for the process */
static const char *pair(const char *plan, char *own, char *name, size_t room)
{
    int pair = mpitest.rank / 2;
    char kind[32];
    long rank, n;

    CHECK(0 == mpitest.size % 2 && mpitest_has("first"));
    CHECK(3 == sscanf(plan, "%ld@%31[a-zA-Z0-9]:%ld", &rank, kind, &n));
    snprintf(own, room, "%ld@%s:%ld", rank + 2 * pair, kind, n + pair);
    snprintf(name, room, "%ld@%s:%ld", rank, kind, n + pair);
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, pair, 0, &exchange_comm));
    MPI_OK(MPI_Comm_rank(exchange_comm, &mpitest.rank));
    return own;
}

int main(int argc, char **argv)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS"), *name = plan;
    const char *begin = getenv("UMRDDT_FAULTS");
    char text[512] = "", texts[2][96];
    bool own;
    int hits;

    mpitest_init(&argc, &argv, "countdown", 1, MPI_THREAD_SINGLE);
    hits = sum(exchange_plan(NULL, 0));
    if (0 > hits) {
        mpitest_skip("nothing that fails on demand is there");
    }
    if (2 < mpitest.size) {
        CHECK(NULL != plan);
        plan = pair(plan, texts[0], texts[1], sizeof(texts[0]));
        name = texts[1];
    }
    MPI_OK(MPI_Comm_set_errhandler(exchange_comm, MPI_ERRORS_RETURN));
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
            (void) behind(3, 0);
        }
        hits = round_trip(0, plan, text, sizeof(text), &own);
        say(name, hits, 0, text);
        (void) exchange_plan("", 0);
    } else if (mpitest_has("again")) {
        CHECK(NULL != plan);
        again(plan);
    } else if (mpitest_has("collective")) {
        CHECK(NULL != plan);
        hits = collective(plan);
        say(name, hits, 0, text);
        (void) exchange_plan("", 0);
    } else if (mpitest_has("unexpected") || mpitest_has("pending")) {
        CHECK(NULL != plan);
        hits = ordered(plan, mpitest_has("pending"));
        say(name, hits, 0, text);
        (void) exchange_plan("", 0);
    }
    CHECK(0 < all_hits || !mpitest_has("hit"));
    (void) behind(1, 0);
    (void) behind(1000, 0);
    if (mpitest_has("end")) {
        CHECK(NULL != plan);
        pvars_close();
        pvars_close(); /* the frameworks that mpitest_init opened keep the components open, too */
        CHECK(0 <= exchange_plan(plan, 1));
        MPI_OK(MPI_Finalize());
        printf("countdown: %s, %s: hit %d, next 0: ok\n", plan, mpitest.mode,
               exchange_plan(NULL, 0));
        return 0;
    }
    pvars_close();
    return mpitest_finish();
}
