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
 * A process that computes, and does not call MPI, delays its own messages only.
 *
 * Rank 1 starts more sends to rank 0 than may be pending at a time. It does not call MPI until rank
 * 0 has the messages of all other ranks, which are sent only after rank 0 has seen those of rank 1.
 * Mode "several": all ranks but 0 and the last one do as rank 1.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdlib.h>

#define MESSAGES 12
#define BYTES    40000

/* Seconds within which rank 0 must have the messages of the others. */
#define PATIENCE 60

/* Shared memory for synchronisation of the ranks without MPI. */
enum {
    SENDS_BEGUN, /* by slow ranks, in all rounds */
    GO,          /* the others may send */
    ALL_HERE,    /* rank 0 has their messages */
    FLAGS
};

static int *flags;
static int slow_ranks = 1; /* from rank 1 on */

static void set(int flag, int value)
{
    __atomic_store_n(&flags[flag], value, __ATOMIC_RELEASE);
}

static bool is(int flag, int value)
{
    return value == __atomic_load_n(&flags[flag], __ATOMIC_ACQUIRE);
}

/** Wait for a flag, outside of MPI. */
static void await(int flag, int value)
{
    for (long turns = 0; !is(flag, value); ++turns) {
        if (PATIENCE * 1000 < turns) {
            mpitest_fail(__FILE__, __LINE__, "rank 0 is held up by ranks 1 to %d, which compute",
                         slow_ranks);
        }
        mpitest_sleep(1000);
    }
}

static uint64_t key_of(uint64_t key, int source, int i)
{
    return mpitest_mix(key, (uint64_t) source, (uint64_t) i);
}

static void send_slowly(uint64_t key, int round)
{
    mpitest_message_t *messages[MESSAGES];
    MPI_Request requests[MESSAGES];

    for (int i = 0; i < MESSAGES; ++i) {
        messages[i] = mpitest_message(MPITEST_COARSE, BYTES, (uint64_t) i);
        mpitest_fill(messages[i]->buffer, key_of(key, mpitest.rank, i));
        MPI_OK(
            MPI_Isend(messages[i]->addr, 1, messages[i]->type, 0, i, MPI_COMM_WORLD, &requests[i]));
    }
    (void) __atomic_fetch_add(&flags[SENDS_BEGUN], 1, __ATOMIC_ACQ_REL);
    await(ALL_HERE, round);
    MPI_OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; ++i) {
        mpitest_message_free(messages[i]);
    }
}

static void send_after(uint64_t key, int round)
{
    mpitest_message_t *message = mpitest_message(MPITEST_FINE, BYTES, 99);

    mpitest_fill(message->buffer, key_of(key, mpitest.rank, 0));
    await(GO, round);
    MPI_OK(MPI_Send(message->addr, 1, message->type, 0, MESSAGES, MPI_COMM_WORLD));
    mpitest_message_free(message);
}

static void receive_all(uint64_t key, int round)
{
    int early = MESSAGES * slow_ranks, all = early + mpitest.size - 1 - slow_ranks, flag = 0;
    mpitest_message_t **messages = malloc((size_t) all * sizeof(*messages));
    MPI_Request *requests = malloc((size_t) all * sizeof(*requests));
    int *sources = malloc((size_t) all * sizeof(*sources));

    for (int i = 0; i < all; ++i) {
        sources[i] = i < early ? 1 + i / MESSAGES : 1 + slow_ranks + i - early;
        messages[i] = mpitest_message(MPITEST_IRREGULAR, BYTES, (uint64_t) i);
        MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, sources[i],
                         i < early ? i % MESSAGES : MESSAGES, MPI_COMM_WORLD, &requests[i]));
    }
    /* Probe the messages that slow ranks have started; no event reports that all were seen. */
    for (int i = 0; i < 100 || !is(SENDS_BEGUN, round * slow_ranks); ++i) {
        MPI_OK(MPI_Testall(early, requests, &flag, MPI_STATUSES_IGNORE));
        mpitest_sleep(1000);
    }
    set(GO, round);
    MPI_OK(MPI_Waitall(all - early, requests + early, MPI_STATUSES_IGNORE));
    set(ALL_HERE, round);
    MPI_OK(MPI_Waitall(early, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < all; ++i) {
        VERIFY(messages[i]->buffer, key_of(key, sources[i], i < early ? i % MESSAGES : 0), BYTES);
        mpitest_message_free(messages[i]);
    }
    free(messages);
    free(requests);
    free(sources);
}

static void slow(uint64_t *state)
{
    static int round;
    uint64_t key = mpitest_random(state);

    ++round;
    if (0 == mpitest.rank) {
        receive_all(key, round);
    } else if (slow_ranks >= mpitest.rank) {
        send_slowly(key, round);
    } else {
        send_after(key, round);
    }
}

static const mpitest_part_t parts[] = {{"slow", slow}, {NULL, NULL}};

int main(int argc, char **argv)
{
    MPI_Win window;
    MPI_Aint bytes = FLAGS * (MPI_Aint) sizeof(int);
    int unit;

    mpitest_init(&argc, &argv, "slow", 4, MPI_THREAD_SINGLE);
    if (3 > mpitest.size) {
        mpitest_skip("needs three ranks");
    }
    slow_ranks = mpitest_has("several") ? mpitest.size - 2 : 1;
    MPI_OK(MPI_Win_allocate_shared(0 == mpitest.rank ? bytes : 0, sizeof(int), MPI_INFO_NULL,
                                   MPI_COMM_WORLD, &flags, &window));
    MPI_OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &flags));
    if (0 == mpitest.rank) {
        for (int i = 0; i < FLAGS; ++i) {
            set(i, 0);
        }
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    mpitest_run(parts);
    MPI_OK(MPI_Win_free(&window));
    return mpitest_finish();
}
