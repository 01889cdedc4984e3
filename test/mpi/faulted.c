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
 * Messages while faults occur in the software HCA or the software GPUs: each arrives complete, with
 * any scheme, or both ends have an error; no process hangs, no byte outside of the receive is
 * written, and later messages arrive.
 *
 * UMRDDT_TEST_FAULTS is the plan (sim/connectx/README.md). It counts from the first message of a
 * phase: --mode first, of all; --mode again, of a repeated one. --mode gpu: between GPU memory.
 * Without --mode error no message may fail. The scheme of each message is printed:
 *
 *     faulted: PLAN, again: 0>1 umr umr>host host ... 1>0 umr ...
 *     counted: faults=1 fallbacks=1 rebuilt=0 maps=0 seconds=0.01
 *
 * The counters are of both processes, the seconds (of a clock) of the slowest message.
 *
 * --mode soon: each message takes less than a second of a free processor, also while the plan makes
 * a device fail that reports no completion. --mode threads: another thread waits for a message
 * meanwhile. --mode late: the receiver writes its buffer again, and nothing of the message comes
 * later.
 *
 * ">host" means that the base PML carried it in the end. After '!' are the calls with errors:
 * sender's, receiver's.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"
#include "pvars.h"

#define BYTES 60000

static MPI_Comm waiting_comm;
static double longest, slowest; /* processor time and time of a message, at most */

/* Processor time of this process: a busy machine does not count. */
static double seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static void *wait_for_end(void *none)
{
    MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, mpitest.rank, 1, waiting_comm, MPI_STATUS_IGNORE));
    return none;
}

/* One message; appends its scheme to text. @return false: it failed */
static bool message(mpitest_message_t *end, int from, uint64_t key, bool may_fail, char *text,
                    size_t room)
{
    exchange_t seen;
    double start = seconds(), began = MPI_Wtime(), passed;
    bool arrived = exchange(end, from, key, &seen);

    passed = MPI_Wtime() - began;
    slowest = passed > slowest ? passed : slowest;
    passed = seconds() - start;
    longest = passed > longest ? passed : longest;
    if (mpitest_has("late") && NULL != strchr(seen.way, '>') && from != mpitest.rank) {
        mpitest_clear(end->buffer);
        usleep(1500000); /* more than gpu_late of the software HCA */
        VERIFY(end->buffer, key, 0);
    }
    snprintf(text + strlen(text), room - strlen(text), " %s", seen.way);
    if (!may_fail && !arrived) {
        mpitest_fail(__FILE__, __LINE__, "a message from rank %d failed:%s", from, text);
    }
    return arrived;
}

/* Back and forth, count times. The first message that may fail and does is the last one: its
 * context is unusable, and its memory with it. */
static void messages(mpitest_message_t *end, long count, uint64_t key, bool may_fail, char *text,
                     size_t room)
{
    for (int from = 0; from < 2; ++from) {
        snprintf(text + strlen(text), room - strlen(text), " %d>%d", from, 1 - from);
        for (long i = 0; i < count; ++i) {
            if (!message(end, from, key + (uint64_t) (100 * i + from), may_fail, text, room)) {
                return;
            }
        }
    }
}

/* What the faults caused at both ends. A message that failed made the context unusable, but not
 * messages in system memory. */
static void print_counters(const pvars_t *before, int faults)
{
    pvars_t now;
    double all[4], most;

    pvars_read(&now);
    for (int i = 0; i < PVARS_MAX; ++i) {
        now.value[i] -= before->value[i];
    }
    all[0] = 0 < faults ? faults : 0;
    all[1] = (double) now.value[PVARS_FALLBACK_RECVS];
    all[2] = (double) now.value[PVARS_ENDPOINTS_REBUILT];
    all[3] = (double) now.value[PVARS_MAPS_REBUILT];
    MPI_OK(MPI_Reduce(0 == mpitest.rank ? MPI_IN_PLACE : all, all, 4, MPI_DOUBLE, MPI_SUM, 0,
                      MPI_COMM_WORLD));
    MPI_OK(MPI_Reduce(&slowest, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("counted: faults=%.0f fallbacks=%.0f rebuilt=%.0f maps=%.0f seconds=%.2f\n", all[0],
               all[1], all[2], all[3], most);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS");
    char text[2048] = "", rest[2048] = "";
    mpitest_message_t *end;
    pvars_t before;
    pthread_t thread;
    bool threads = false;
    int faults;

    for (int i = 1; i < argc; ++i) {
        threads = threads || NULL != strstr(argv[i], "threads");
    }
    mpitest_init(&argc, &argv, "faulted", 5, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    CHECK(NULL != plan && 2 == mpitest.size);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (mpitest_has("gpu")) {
        gpu_begin_all();
    }
    if (0 > exchange_plan("", 0)) {
        mpitest_skip("only the software HCA and the software GPUs fail on demand");
    }
    end = exchange_end(BYTES, mpitest_has("gpu") ? GPU_DEVICE : GPU_HOST);
    if (mpitest_has("again")) {
        messages(end, 3, 7, false, rest, sizeof(rest));
    }
    if (threads) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &waiting_comm));
        CHECK(0 == pthread_create(&thread, NULL, wait_for_end, NULL));
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    longest = slowest = 0;
    pvars_read(&before);
    (void) exchange_plan(plan, 0);
    messages(end, mpitest.ops, mpitest.seed, mpitest_has("error"), text, sizeof(text));
    faults = exchange_plan(NULL, 0);
    (void) exchange_plan("", 0);
    if (mpitest_has("soon")) {
        printf("faulted: rank %d: at most %.3f s a message\n", mpitest.rank, longest);
        CHECK(longest < (threads ? 2.0 : 1.0)); /* (each thread takes a processor) */
    }
    if (threads) {
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, mpitest.rank, 1, waiting_comm));
        CHECK(0 == pthread_join(thread, NULL));
        MPI_OK(MPI_Comm_free(&waiting_comm));
    }
    if (0 == mpitest.rank) {
        printf("faulted: %s, %s:%s\n", plan, mpitest.mode, text);
        fflush(stdout);
    }
    print_counters(&before, faults);
    if (mpitest_has("error")) {
        end = exchange_end(BYTES, GPU_HOST); /* (the other one cannot even be freed) */
    }
    messages(end, 3, 3, false, rest, sizeof(rest));
    mpitest_message_free(end);
    pvars_close();
    return mpitest_finish();
}
