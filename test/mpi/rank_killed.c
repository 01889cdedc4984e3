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
 * Ranks 0 and 1 exchange messages, and one of them is killed during it (SIGKILL). The other one
 * continues its calls until mpirun ends it, or it has an error. It neither crashes nor ends by
 * itself, and no byte outside of its receive is written. run_rank_killed checks the rest: the job
 * ends, and nothing is left over.
 *
 * --mode VICTIM,WHEN[,again][,gpu][,others]:
 *
 *     first, second   the victim is rank 0, or rank 1
 *     early           it dies when its send has started, before it receives; the other one receives
 *                     when it is dead
 *     silent          the same without a send: the other one's send never gets an answer
 *     plan            UMRDDT_TEST_FAULTS, "kill:N", selects the work request, kernel or copy
 *     again           in a repeated message
 *     gpu             between GPU memory
 *     others          mpirun lets jobs continue (--enable-recovery): then a third rank and the
 *                     survivor send each other messages as before
 *
 * The last line is one of
 *
 *     killed: rank N: its peer is dead, untouched: send pending, receive pending
 *     rank_killed: no rank was killed
 */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"
#include "pvars.h"

enum {
    BYTES = 60000,
    LOOK = 1000, /* interval of checks for a peer, in microseconds */
    /* Time limits in milliseconds for the survivor's calls after the peer died: the time that they
     * continue, and the time that is too long. By the clock, because mpirun does not wait for long,
     * and calls that yield take time. */
    BEHIND = 300,
    PATIENCE = 40000
};

static volatile sig_atomic_t asked; /* mpirun requests the end of this process */
static int victim, survivor;

static void on_term(int signal_number)
{
    asked = signal_number;
}

/* Write to a file if there is one (UMRDDT_TEST_KILLED_LOG): while mpirun ends a job, it does not
 * forward output. */
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    const char *path = getenv("UMRDDT_TEST_KILLED_LOG");
    FILE *file = NULL == path ? stdout : fopen(path, "ae");
    va_list arguments;

    CHECK(NULL != file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    if (stdout == file) {
        fflush(file);
    } else {
        fclose(file);
    }
}

static long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool dead(pid_t pid)
{
    return 0 != kill(pid, 0) && ESRCH == errno;
}

/* A regular end: mpirun has requested it meanwhile, or will. */
static void end_by_mpirun(void)
{
    long begin = now();

    while (0 == asked) {
        int flag;

        if (PATIENCE < now() - begin) {
            mpitest_fail(__FILE__, __LINE__, "a rank died, and mpirun lets the others be");
        }
        (void) MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        mpitest_sleep(LOOK);
    }
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}

/* Messages between the two living ranks of a communicator, back and forth. */
static void between(MPI_Comm comm, mpitest_message_t *end, uint64_t key)
{
    int rank;

    MPI_OK(MPI_Comm_rank(comm, &rank));
    for (int i = 0; i < 4; ++i) {
        if (rank == i % 2) {
            mpitest_fill(end->buffer, key + (uint64_t) i);
            MPI_OK(MPI_Send(end->addr, 1, end->type, 1 - rank, 3, comm));
        } else {
            mpitest_clear(end->buffer);
            MPI_OK(MPI_Recv(end->addr, 1, end->type, 1 - rank, 3, comm, MPI_STATUS_IGNORE));
            VERIFY(end->buffer, key + (uint64_t) i, end->bytes);
        }
    }
}

/* The survivor's part. @return true: the peer died */
static bool survive(pid_t peer, mpitest_message_t *out, mpitest_message_t *in, uint64_t key)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const char *what[3] = {"pending", "pending", "pending"};
    bool late = mpitest_has("early"), gone = false;
    char lives = 0;
    long begin = now(), death = 0;
    int open = 0;

    MPI_OK(MPI_Irecv(&lives, 1, MPI_CHAR, victim, 2, MPI_COMM_WORLD, &requests[2]));
    (void) MPI_Isend(out->addr, 1, out->type, victim, 1, MPI_COMM_WORLD, &requests[0]);
    while ((!gone || now() - death < BEHIND) && !(0 == open && 1 == lives)) {
        if (!gone && dead(peer)) {
            gone = true;
            death = now();
        }
        if (PATIENCE < now() - begin) {
            mpitest_fail(__FILE__, __LINE__, "the peer lives, and its messages do not come");
        }
        if (MPI_REQUEST_NULL == requests[1] && 0 == strcmp("pending", what[1]) && (!late || gone)
            && MPI_SUCCESS
                   != MPI_Irecv(in->addr, 1, in->type, victim, 1, MPI_COMM_WORLD, &requests[1])) {
            what[1] = "refused";
        }
        open = 0;
        for (int i = 0; i < 3; ++i) {
            int flag = 0;

            if (MPI_REQUEST_NULL != requests[i]) {
                int rc = MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);

                if (MPI_SUCCESS != rc) {
                    requests[i] = MPI_REQUEST_NULL;
                }
                what[i] = MPI_SUCCESS != rc ? "error" : flag ? "done" : "pending";
            }
            open += MPI_REQUEST_NULL != requests[i];
        }
        mpitest_sleep(LOOK);
    }
    if (0 == strcmp("done", what[1])) {
        VERIFY(in->buffer, key + (uint64_t) victim, in->bytes);
    } else {
        VERIFY_BESIDE(in->buffer);
    }
    VERIFY(out->buffer, key + (uint64_t) survivor, out->bytes);
    if (gone) {
        say("killed: rank %d: its peer is dead, untouched: send %s, receive %s\n", mpitest.rank,
            what[0], what[1]);
    }
    return gone;
}

static void suffer(mpitest_message_t *out, mpitest_message_t *in, uint64_t key)
{
    MPI_Request requests[2];
    char lives = 1;

    if (mpitest_has("plan")) {
        (void) exchange_plan(getenv("UMRDDT_TEST_FAULTS"), 1);
        MPI_OK(MPI_Irecv(in->addr, 1, in->type, survivor, 1, MPI_COMM_WORLD, &requests[0]));
    }
    if (!mpitest_has("silent")) {
        MPI_OK(MPI_Isend(out->addr, 1, out->type, survivor, 1, MPI_COMM_WORLD, &requests[1]));
    }
    if (!mpitest_has("plan")) {
        /* (check sent data only: no peer answers) */
        raise(SIGKILL);
    }
    MPI_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    (void) exchange_plan("", 0);
    VERIFY(in->buffer, key + (uint64_t) survivor, in->bytes);
    MPI_OK(MPI_Send(&lives, 1, MPI_CHAR, survivor, 2, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    gpu_kind_t kind = GPU_HOST;
    long pid = (long) getpid(), pids[3];
    mpitest_message_t *out, *in, *kept;
    MPI_Comm healthy, pair;
    uint64_t key;

    mpitest_init(&argc, &argv, "killed", 1, MPI_THREAD_SINGLE);
    CHECK(2 == mpitest.size || 3 == mpitest.size);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    if (mpitest_has("gpu")) {
        gpu_begin_all();
        kind = GPU_DEVICE;
    }
    if (mpitest_has("plan") && 0 > exchange_plan("", 0)) {
        mpitest_skip("only the software HCA and the software GPUs fail on demand");
    }
    signal(SIGTERM, on_term);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    victim = mpitest_has("second");
    survivor = 1 - victim;
    key = mpitest.seed;
    out = exchange_end(BYTES, kind);
    in = exchange_end(BYTES, kind);
    kept = exchange_end(BYTES, kind);
    MPI_OK(MPI_Allgather(&pid, 1, MPI_LONG, pids, 1, MPI_LONG, MPI_COMM_WORLD));
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank == victim, mpitest.rank, &healthy));
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, 2 == mpitest.rank, mpitest.rank, &pair));
    if (mpitest_has("again") && 2 > mpitest.rank) {
        between(pair, kept, key + 50);
    }
    if (mpitest_has("again") && mpitest_has("others") && victim != mpitest.rank) {
        between(healthy, kept, key + 60);
    }
    mpitest_fill(kept->buffer, key + 70);
    mpitest_fill(out->buffer, key + (uint64_t) mpitest.rank);
    mpitest_clear(in->buffer);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (mpitest.rank == victim) {
        suffer(out, in, key);
    } else if (2 == mpitest.rank || survive((pid_t) pids[victim], out, in, key)) {
        for (long begin = now(); 2 == mpitest.rank && !dead((pid_t) pids[victim]);) {
            CHECK(PATIENCE > now() - begin);
            mpitest_sleep(LOOK);
        }
        VERIFY(kept->buffer, key + 70, kept->bytes);
        if (mpitest_has("others")) {
            pvars_t before, after, sent;

            pvars_read(&before);
            between(healthy, kept, key + 80);
            pvars_read(&after);
            pvars_subtract(&after, &before, &sent);
            /* as before, and not by the base PML, which may deliver the message to the dead rank
             * meanwhile */
            CHECK_INT(sent.value[PVARS_HANDLED_SENDS], 2);
            CHECK(sent.value[PVARS_FALLBACK_SENDS] <= (survivor == mpitest.rank));
            say("killed: rank %d: went on with a healthy peer\n", mpitest.rank);
            _exit(0); /* (MPI_Finalize waits for the dead rank, with umrddt and without) */
        }
        end_by_mpirun();
    }
    if (0 == mpitest.rank) {
        say("rank_killed: no rank was killed\n");
    }
    mpitest_message_free(out);
    mpitest_message_free(in);
    mpitest_message_free(kept);
    MPI_OK(MPI_Comm_free(&healthy));
    MPI_OK(MPI_Comm_free(&pair));
    pvars_close();
    return mpitest_finish();
}
