/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_THREAD_MULTIPLE, probes and concurrent receives. On each of two ranks one thread sends, five
 * receive, each the messages of one tag with a different call, and one probes for any message at
 * any time and receives none, all on one communicator. A probe that finds a message of umrddt has
 * to remove messages from the base PML while other threads receive. No message may be lost or
 * overtake another, and no probe may report a length that was never sent.
 */

#include "layouts.h"
#include "mpitest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVERS 5
#define WINDOW    16
#define AHEAD     4

enum {
    WAY_RECV,
    WAY_TEST,
    WAY_PERSISTENT,
    WAY_AHEAD, /* some are posted before */
    WAY_FREED  /* the request is freed while it is active; checked at the end */
};

typedef struct receiver_t {
    int tag;
    mpitest_message_t **freed;
} receiver_t;

static MPI_Comm comm;
static int receiving = RECEIVERS;
static long probed, strange;

/* The lengths. umrddt handles the last two if they are not contiguous. The length of an envelope is
 * sent with odd tags only, so that it is detected with the others. */
static const int lengths[] = {0, 8, 64, 104, 136, 1200, 6000};
#define LENGTHS ((int) (sizeof(lengths) / sizeof(lengths[0])))

static uint64_t draw(int sender, int tag, long number)
{
    return mpitest_mix(mpitest.seed, (uint64_t) (tag * 2 + sender), (uint64_t) number);
}

static int length_of(int sender, int tag, long number)
{
    int length = lengths[draw(sender, tag, number) % LENGTHS];

    return 104 == length && 0 == tag % 2 ? 136 : length;
}

static mpitest_message_t *message_of(int sender, int tag, long number, int shift)
{
    int bytes = length_of(sender, tag, number);
    bool pieces = 1000 < bytes && 0 != (draw(sender, tag, number) >> shift) % 4;

    return mpitest_message(pieces ? MPITEST_FINE : MPITEST_CONTIGUOUS, bytes, 1);
}

static void check_result(mpitest_message_t *message, int tag, long number, const MPI_Status *status)
{
    int peer = 1 - mpitest.rank, count;

    if (NULL != status) {
        CHECK_INT(status->MPI_SOURCE, peer);
        CHECK_INT(status->MPI_TAG, tag);
        MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
        CHECK_INT(count, message->bytes);
    }
    VERIFY(message->buffer, draw(peer, tag, number), message->bytes);
    mpitest_message_free(message);
}

static void sent(MPI_Request *requests, mpitest_message_t **messages, int *used)
{
    while (0 < *used) {
        --*used;
        MPI_OK(MPI_Wait(&requests[*used], MPI_STATUS_IGNORE));
        mpitest_message_free(messages[*used]);
    }
}

static void *send_all(void *argument)
{
    mpitest_message_t *messages[WINDOW];
    MPI_Request requests[WINDOW];
    uint64_t state = mpitest_mix(mpitest.seed, 99, (uint64_t) mpitest.rank);
    int me = mpitest.rank, order[RECEIVERS] = {0, 1, 2, 3, 4}, used = 0, i;
    long number;

    (void) argument;
    for (number = 0; number < mpitest.ops; ++number) {
        mpitest_shuffle(&state, order, RECEIVERS);
        for (i = 0; i < RECEIVERS; ++i) {
            mpitest_message_t *message = message_of(me, order[i], number, 8);

            mpitest_fill(message->buffer, draw(me, order[i], number));
            messages[used] = message;
            if (WAY_FREED == order[i]) {
                MPI_OK(MPI_Issend(message->addr, 1, message->type, 1 - me, order[i], comm,
                                  &requests[used]));
            } else {
                MPI_OK(MPI_Isend(message->addr, 1, message->type, 1 - me, order[i], comm,
                                 &requests[used]));
            }
            if (WINDOW == ++used) {
                sent(requests, messages, &used);
            }
        }
    }
    sent(requests, messages, &used);
    return NULL;
}

static void receive_ahead(int tag)
{
    mpitest_message_t *messages[AHEAD];
    MPI_Request requests[AHEAD];
    int peer = 1 - mpitest.rank, i;
    MPI_Status status;
    long number;

    for (number = 0; number < mpitest.ops + AHEAD; ++number) {
        i = (int) (number % AHEAD);
        if (AHEAD <= number) {
            MPI_OK(MPI_Wait(&requests[i], &status));
            check_result(messages[i], tag, number - AHEAD, &status);
        }
        if (number < mpitest.ops) {
            messages[i] = message_of(peer, tag, number, 16);
            MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, MPI_ANY_SOURCE, tag, comm,
                             &requests[i]));
        }
    }
}

static void receive_one(receiver_t *receiver, long number)
{
    int peer = 1 - mpitest.rank, tag = receiver->tag, flag = 0;
    mpitest_message_t *message = message_of(peer, tag, number, 16);
    MPI_Request request;
    MPI_Status status;

    switch (tag) {
    case WAY_RECV:
        MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, tag, comm, &status));
        break;
    case WAY_TEST:
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, tag, comm, &request));
        while (!flag) {
            MPI_OK(MPI_Test(&request, &flag, &status));
        }
        break;
    case WAY_PERSISTENT:
        MPI_OK(MPI_Recv_init(message->addr, 1, message->type, peer, tag, comm, &request));
        MPI_OK(MPI_Start(&request));
        MPI_OK(MPI_Wait(&request, &status));
        MPI_OK(MPI_Request_free(&request));
        break;
    default:
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, tag, comm, &request));
        MPI_OK(MPI_Request_free(&request));
        CHECK(MPI_REQUEST_NULL == request);
        receiver->freed[number] = message;
        return;
    }
    check_result(message, tag, number, &status);
}

static void *receive_all(void *argument)
{
    receiver_t *receiver = argument;
    long number;

    if (WAY_AHEAD == receiver->tag) {
        receive_ahead(receiver->tag);
    } else {
        for (number = 0; number < mpitest.ops; ++number) {
            receive_one(receiver, number);
            if (WAY_FREED == receiver->tag) {
                mpitest_sleep(100); /* not all ahead of the messages */
            }
        }
    }
    __atomic_sub_fetch(&receiving, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *probe_all(void *argument)
{
    uint64_t state = mpitest_mix(mpitest.seed, 7, (uint64_t) mpitest.rank);

    (void) argument;
    while (0 < __atomic_load_n(&receiving, __ATOMIC_ACQUIRE)) {
        int tag = (int) mpitest_between(&state, -1, RECEIVERS - 1), flag, count, i;
        MPI_Status status;

        MPI_OK(MPI_Iprobe(MPI_ANY_SOURCE, 0 > tag ? MPI_ANY_TAG : tag, comm, &flag, &status));
        if (flag) {
            MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
            for (i = 0; i < LENGTHS && count != lengths[i]; ++i) {
                ;
            }
            if (104 == count && 0 == status.MPI_TAG % 2) {
                mpitest_fail(__FILE__, __LINE__, "a probe saw %d bytes under tag %d", count,
                             status.MPI_TAG);
            }
            /* pml/ob1 reads the length of the message that it found without its lock: a receive of
             * another thread may have released the fragment before. */
            strange += LENGTHS == i ? 1 : 0;
            ++probed;
        }
        mpitest_sleep(mpitest_between(&state, 0, 40));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *host = getenv("UMRDDT_TEST_HOST");
    pthread_t threads[RECEIVERS + 2];
    receiver_t receivers[RECEIVERS];
    long number;
    int i;

    mpitest_init(&argc, &argv, "gate", 150, MPI_THREAD_MULTIPLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (NULL != host && 0 == strcmp(host, "ucx")) {
        mpitest_skip("pml/ucx with several threads: that of Open MPI 4.1.4 fails by itself, and "
                     "that of later releases is not tested");
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (i = 0; i < RECEIVERS; ++i) {
        receivers[i].tag = i;
        receivers[i].freed = calloc((size_t) mpitest.ops, sizeof(*receivers[i].freed));
        CHECK(NULL != receivers[i].freed);
        CHECK_INT(pthread_create(&threads[i], NULL, receive_all, &receivers[i]), 0);
    }
    CHECK_INT(pthread_create(&threads[RECEIVERS], NULL, probe_all, NULL), 0);
    CHECK_INT(pthread_create(&threads[RECEIVERS + 1], NULL, send_all, NULL), 0);
    for (i = 0; i < RECEIVERS + 2; ++i) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    /* both have sent all, synchronously if no thread waited for the receives */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    for (number = 0; number < mpitest.ops; ++number) {
        check_result(receivers[WAY_FREED].freed[number], WAY_FREED, number, NULL);
    }
    for (i = 0; i < RECEIVERS; ++i) {
        free(receivers[i].freed);
    }
    if (mpitest.verbose) {
        printf("rank %d: %ld probes found something, %ld of them a length that was not sent\n",
               mpitest.rank, probed, strange);
    }
    CHECK(strange <= 1 + probed / 100);
    MPI_OK(MPI_Comm_free(&comm));
    return mpitest_finish();
}
