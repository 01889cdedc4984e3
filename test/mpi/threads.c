/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_THREAD_MULTIPLE: four threads on each of two ranks. Each thread exchanges messages with the
 * thread of the same number, by tags on a common communicator or on a communicator of the thread.
 * umrddt handles some of the messages and passes others through. The calls are blocking,
 * nonblocking and probes.
 */

#include "layouts.h"
#include "mpitest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4

typedef struct worker_t {
    int number;
    MPI_Comm comm;
    long checks;
} worker_t;

static mpitest_kind_t draw_kind(uint64_t *state)
{
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);

    return MPITEST_WIDE == kind ? MPITEST_COARSE : kind;
}

static void receive(mpitest_message_t *message, int peer, int tag, MPI_Comm comm, int way,
                    MPI_Status *status)
{
    MPI_Request request;
    MPI_Message handle;
    int flag = 0;

    switch (way) {
    case 0:
        MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, tag, comm, status));
        break;
    case 1:
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, MPI_ANY_SOURCE, tag, comm, &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    case 2:
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, tag, comm, &request));
        while (!flag) {
            MPI_OK(MPI_Test(&request, &flag, status));
        }
        break;
    case 3:
        MPI_OK(MPI_Mprobe(peer, tag, comm, &handle, status));
        MPI_OK(MPI_Mrecv(message->addr, 1, message->type, &handle, status));
        break;
    default:
        MPI_OK(MPI_Probe(peer, tag, comm, status));
        MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, tag, comm, status));
        break;
    }
}

static void *work(void *argument)
{
    static const int sizes[] = {8, 64, 1000, 6000, 30000, 120000};
    worker_t *worker = argument;
    int peer = 1 - mpitest.rank, count;
    long op;

    for (op = 0; op < mpitest.ops; ++op) {
        uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) op, (uint64_t) worker->number);
        int bytes = sizes[mpitest_between(&state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
        mpitest_kind_t kinds[2] = {draw_kind(&state), draw_kind(&state)};
        int tag = worker->number * 100 + (int) (op % 50);
        int way = (int) mpitest_between(&state, 0, 4);
        mpitest_message_t *out = mpitest_message(kinds[0], bytes, 1);
        mpitest_message_t *in = mpitest_message(kinds[1], bytes + 24, 1);
        uint64_t key = mpitest_random(&state);
        MPI_Request request;
        MPI_Status status;

        mpitest_fill(out->buffer, key + (uint64_t) mpitest.rank);
        if (0 == mpitest_random(&state) % 3 && 0 == mpitest.rank) {
            MPI_OK(MPI_Issend(out->addr, 1, out->type, peer, tag, worker->comm, &request));
        } else {
            MPI_OK(MPI_Isend(out->addr, 1, out->type, peer, tag, worker->comm, &request));
        }
        receive(in, peer, tag, worker->comm, way, &status);
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_INT(status.MPI_SOURCE, peer);
        CHECK_INT(status.MPI_TAG, tag);
        MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_INT(count, bytes);
        VERIFY(in->buffer, key + (uint64_t) peer, bytes);
        VERIFY(out->buffer, key + (uint64_t) mpitest.rank, bytes);
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *host = getenv("UMRDDT_TEST_HOST"), *series = getenv("UMRDDT_OMPI_SERIES");
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    MPI_Comm own[2];
    int i;

    mpitest_init(&argc, &argv, "threads", 40, MPI_THREAD_MULTIPLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (NULL != host && 0 == strcmp(host, "ucx") && NULL != series && 0 == strcmp(series, "4.1")) {
        mpitest_skip("pml/ucx of Open MPI 4.1.4 does not stand several threads here, by itself");
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[0]));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[1]));
    for (i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].comm = 2 > i ? MPI_COMM_WORLD : own[i - 2];
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    MPI_OK(MPI_Comm_free(&own[0]));
    MPI_OK(MPI_Comm_free(&own[1]));
    return mpitest_finish();
}
