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
 * With --mode whole no message may end with an error.
 *
 * What was seen is printed (run_countdown goes by it):
 *
 *     countdown: PLAN, MODE: hit COUNT, next N: 0>1 umr>host 1>0 umr (mca_pml_umrddt.so+0x1234)
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

enum {
    BYTES = 60000,
    /* a message may be taken in vain this often before the countdown begins anew in another job */
    ROUNDS = 400
};

static bool has(const char *word)
{
    return NULL != strstr(mpitest.mode, word);
}

/* A function of what may be loaded, or NULL. */
static void *function(const char *library, const char *name)
{
    void *gpus = NULL == library ? NULL : dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = NULL == library ? dlsym(RTLD_DEFAULT, name)
                  : NULL == gpus  ? NULL
                                  : dlsym(gpus, name);

    if (NULL != gpus) {
        (void) dlclose(gpus);
    }
    return found;
}

/* Have all count the plan from here (NULL: go on), or let things be well for now. What this program
 * asks of the driver itself is not to fail. @return how often something has failed in this process,
 * of this plan; -1: none of those that fail is there */
static int set_plan(const char *plan, int on)
{
    void *found[3] = {function(NULL, "umrddt_sim_faults"), function(NULL, "umrddt_failing_faults"),
                      function("libcuda.so.1", "umrddt_gpu_faults")};
    int came = -1;

    for (int i = 0; i < 3; ++i) {
        int (*set)(const char *, int);

        memcpy(&set, &found[i], sizeof(set)); /* (a function is no object) */
        if (NULL != set) {
            int one = set(plan, on);

            CHECK(0 <= one);
            came = (0 > came ? 0 : came) + one;
        }
    }
    return came;
}

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
    void *found[2] = {function(NULL, "umrddt_failing_last"),
                      function("libcuda.so.1", "umrddt_gpu_faults_last")};
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
    mpitest_message_t *message = calloc(1, sizeof(*message));

    CHECK(NULL != message);
    message->bytes = BYTES + 16 * (int) n;
    message->type =
        mpitest_type(0 == mpitest.rank ? MPITEST_COARSE : MPITEST_FINE, message->bytes, 1);
    message->map = mpitest_map(message->type, 1);
    message->buffer =
        mpitest_buffer_of(message->map, has("gpu") && !has("init") ? GPU_DEVICE : GPU_HOST);
    message->addr = message->buffer->addr;
    return message;
}

/* One message, while what the plan says fails; adds how it came to text. Without counters of umrddt
 * nothing is known of that. @return 'h': by the host PML alone; 't': taken; 'e': both ends had an
 * error */
static char message(mpitest_message_t *end, int from, uint64_t key, bool failing, char *text,
                    size_t room)
{
    pvars_t before, after, sent;
    int rc, errors[2];
    char how[64];

    if (from == mpitest.rank) {
        mpitest_fill(end->buffer, key);
    } else {
        mpitest_clear(end->buffer);
    }
    pvars_read(&before);
    if (failing) {
        (void) set_plan(NULL, 1);
    }
    if (from == mpitest.rank) {
        rc = MPI_Send(end->addr, 1, end->type, 1 - from, 1, MPI_COMM_WORLD);
    } else {
        rc = MPI_Recv(end->addr, 1, end->type, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    (void) set_plan(NULL, 0);
    pvars_read(&after);
    pvars_subtract(&after, &before, &sent);
    if (from != mpitest.rank && MPI_SUCCESS == rc) {
        VERIFY(end->buffer, key, end->bytes);
    }
    errors[mpitest.rank] = MPI_SUCCESS != rc;
    MPI_OK(MPI_Bcast(&errors[0], 1, MPI_INT, 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Bcast(&errors[1], 1, MPI_INT, 1, MPI_COMM_WORLD));
    snprintf(how, sizeof(how), " %d>%d %s%s%s%s%s", from, 1 - from, pvars_way(&sent),
             0 < sent.value[PVARS_FALLBACK_SENDS] ? ">host" : "", errors[0] || errors[1] ? "!" : "",
             errors[from] ? "s" : "", errors[1 - from] ? "r" : "");
    MPI_OK(MPI_Bcast(how, sizeof(how), MPI_CHAR, from, MPI_COMM_WORLD));
    snprintf(text + strlen(text), room - strlen(text), "%s", how);
    if (!failing || has("whole")) {
        CHECK(!errors[0] && !errors[1]);
    }
    CHECK(!errors[from] || errors[1 - from]);
    mpitest_alive();
    return errors[0] || errors[1] ? 'e' : NULL != strstr(how, " host") ? 'h' : 't';
}

/* There and back. @return how often something failed, in both */
static int round_trip(long n, const char *plan, char *text, size_t room)
{
    mpitest_message_t *end = end_new(n);
    int hits;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) set_plan(plan, 0);
    for (int from = 0; from < 2; ++from) {
        (void) message(end, from, mpitest.seed + (uint64_t) (2 * n + from), NULL != plan, text,
                       room);
    }
    hits = sum(set_plan(NULL, 0));
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
        taken |=
            't' == message(end, i % 2, mpitest.seed + 77 + (uint64_t) i, false, text, sizeof(text));
    }
    mpitest_message_free(end);
    return taken;
}

static void say(const char *plan, int hits, long next, const char *text)
{
    char site[264];

    whose(site, sizeof(site));
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
        (void) set_plan("", 0);
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
    hits = sum(set_plan(NULL, 0));
    if (0 > hits) {
        mpitest_skip("nothing that fails on demand is there");
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (has("gpu")) {
        gpu_begin_all();
        hits = has("init") ? sum(set_plan(NULL, 0)) : hits;
    }
    (void) pvars_open(); /* (none, if umrddt gave up) */
    if (has("init")) {
        (void) set_plan("", 0);
        say(NULL == begin ? "" : begin, hits, 0, text);
    } else if (has("first")) {
        CHECK(NULL != plan);
        if (has("warm")) {
            (void) behind(3);
        }
        hits = round_trip(0, plan, text, sizeof(text));
        say(plan, hits, 0, text);
        (void) set_plan("", 0);
    } else if (has("again")) {
        CHECK(NULL != plan);
        again(plan);
    }
    (void) behind(1);
    (void) behind(1000);
    if (has("end")) {
        CHECK(NULL != plan);
        pvars_close();
        pvars_close(); /* what mpitest_init has opened keeps the components, too */
        CHECK(0 <= set_plan(plan, 1));
        MPI_OK(MPI_Finalize());
        printf("countdown: %s, %s: hit %d, next 0: ok\n", plan, mpitest.mode, set_plan(NULL, 0));
        return 0;
    }
    pvars_close();
    return mpitest_finish();
}
