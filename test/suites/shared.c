/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * For run_races: four threads on each of two ranks that share what test/mpi's "threads" gives each
 * its own of: datatypes (so layouts), one communicator, all of the process's caches and pools. Each
 * thread also makes and frees communicators and types, keeps persistent requests, cancels receives,
 * and frees requests that are under way.
 */

#include "layouts.h"
#include "mpitest.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define TYPES   4
#define BYTES   6000

typedef struct worker_t {
    int number;
    int peer;
    MPI_Comm own; /* of the two threads of this number */
    uint64_t state;
    mpitest_buffer_t *out;
    mpitest_buffer_t *in;
} worker_t;

static MPI_Datatype types[TYPES];
static mpitest_map_t *maps[TYPES];

/* The key of a message: both ends know it. */
static uint64_t key(const worker_t *worker, int rank, long op)
{
    return mpitest_mix((uint64_t) (rank * THREADS + worker->number), (uint64_t) op, 7);
}

static int tag(const worker_t *worker)
{
    return 10 + worker->number;
}

static void check_received(const worker_t *worker, const MPI_Status *status, long op)
{
    int count;

    CHECK_INT(status->MPI_SOURCE, worker->peer);
    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_INT(count, BYTES);
    VERIFY(worker->in, key(worker, worker->peer, op), BYTES);
    mpitest_clear(worker->in);
}

/* Both directions at once, received in one of several ways. */
static void exchange(worker_t *worker, MPI_Datatype out, MPI_Datatype in, MPI_Comm comm, long op)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Message message;
    int done = 0, index, flag;

    mpitest_fill(worker->out, key(worker, mpitest.rank, op));
    MPI_OK(MPI_Isend(worker->out->addr, 1, out, worker->peer, tag(worker), comm, &requests[0]));
    switch (mpitest_between(&worker->state, 0, 4)) {
    case 0:
        MPI_OK(MPI_Irecv(worker->in->addr, 1, in, MPI_ANY_SOURCE, tag(worker), comm, &requests[1]));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        break;
    case 1:
        MPI_OK(MPI_Irecv(worker->in->addr, 1, in, worker->peer, tag(worker), comm, &requests[1]));
        while (2 > done) {
            MPI_OK(MPI_Testany(2, requests, &index, &flag, &statuses[0]));
            if (flag) {
                ++done;
                if (1 == index) {
                    statuses[1] = statuses[0];
                }
            }
        }
        break;
    case 2:
        MPI_OK(MPI_Mprobe(MPI_ANY_SOURCE, tag(worker), comm, &message, &statuses[1]));
        MPI_OK(MPI_Imrecv(worker->in->addr, 1, in, &message, &requests[1]));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        break;
    case 3:
        MPI_OK(MPI_Probe(worker->peer, tag(worker), comm, &statuses[1]));
        MPI_OK(MPI_Recv(worker->in->addr, 1, in, worker->peer, tag(worker), comm, &statuses[1]));
        MPI_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        break;
    default:
        MPI_OK(MPI_Recv(worker->in->addr, 1, in, worker->peer, tag(worker), comm, &statuses[1]));
        MPI_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        break;
    }
    check_received(worker, &statuses[1], op);
}

static void persistent(worker_t *worker, MPI_Datatype out, MPI_Datatype in, long op)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int i;

    MPI_OK(MPI_Recv_init(worker->in->addr, 1, in, worker->peer, tag(worker), MPI_COMM_WORLD,
                         &requests[1]));
    MPI_OK(MPI_Send_init(worker->out->addr, 1, out, worker->peer, tag(worker), MPI_COMM_WORLD,
                         &requests[0]));
    for (i = 0; i < 3; ++i) {
        mpitest_fill(worker->out, key(worker, mpitest.rank, op + i));
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        check_received(worker, &statuses[1], op + i);
    }
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
}

/* A receive that nothing comes for, plain or persistent, and that a cancel must end. */
static void cancel(worker_t *worker, MPI_Datatype in)
{
    bool again = mpitest_random(&worker->state) % 2;
    MPI_Request request;
    MPI_Status status;
    int flag;

    if (again) {
        MPI_OK(
            MPI_Recv_init(worker->in->addr, 1, in, worker->peer, 1000, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Start(&request));
    } else {
        MPI_OK(MPI_Irecv(worker->in->addr, 1, in, worker->peer, 1000, MPI_COMM_WORLD, &request));
    }
    MPI_OK(MPI_Cancel(&request));
    MPI_OK(MPI_Wait(&request, &status));
    MPI_OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    if (again) {
        MPI_OK(MPI_Request_free(&request));
    }
}

/* A cancel that may come too late: then the message is there, else it must be received still. */
static void cancel_late(worker_t *worker, MPI_Datatype out, MPI_Datatype in, long op)
{
    bool again = mpitest_random(&worker->state) % 2;
    MPI_Request send, receive;
    MPI_Status status;
    int flag;

    mpitest_fill(worker->out, key(worker, mpitest.rank, op));
    if (again) {
        MPI_OK(MPI_Recv_init(worker->in->addr, 1, in, worker->peer, tag(worker), MPI_COMM_WORLD,
                             &receive));
        MPI_OK(MPI_Start(&receive));
    } else {
        MPI_OK(MPI_Irecv(worker->in->addr, 1, in, worker->peer, tag(worker), MPI_COMM_WORLD,
                         &receive));
    }
    MPI_OK(MPI_Isend(worker->out->addr, 1, out, worker->peer, tag(worker), MPI_COMM_WORLD, &send));
    mpitest_sleep(mpitest_between(&worker->state, 0, 300));
    MPI_OK(MPI_Cancel(&receive));
    MPI_OK(MPI_Wait(&receive, &status));
    MPI_OK(MPI_Test_cancelled(&status, &flag));
    if (flag) {
        MPI_OK(
            MPI_Recv(worker->in->addr, 1, in, worker->peer, tag(worker), MPI_COMM_WORLD, &status));
    }
    if (again) {
        MPI_OK(MPI_Request_free(&receive));
    }
    MPI_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    check_received(worker, &status, op);
}

/* Requests freed while under way; an answer reports their result. */
static void let_go(worker_t *worker, MPI_Datatype out, MPI_Datatype in, long op)
{
    MPI_Request request;
    MPI_Status status;

    mpitest_fill(worker->out, key(worker, mpitest.rank, op));
    MPI_OK(
        MPI_Isend(worker->out->addr, 1, out, worker->peer, tag(worker), MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Request_free(&request));
    MPI_OK(MPI_Recv(worker->in->addr, 1, in, worker->peer, tag(worker), MPI_COMM_WORLD, &status));
    check_received(worker, &status, op);
    MPI_OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, worker->peer, tag(worker) + 100, NULL, 0, MPI_BYTE,
                        worker->peer, tag(worker) + 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* With a type and a communicator that live no longer than this. */
static void transient(worker_t *worker, MPI_Datatype out, MPI_Datatype in, long op)
{
    MPI_Datatype type;
    MPI_Comm comm;

    MPI_OK(MPI_Type_dup(out, &type));
    MPI_OK(MPI_Comm_dup(worker->own, &comm));
    exchange(worker, type, in, comm, op);
    MPI_OK(MPI_Type_free(&type));
    MPI_OK(MPI_Comm_free(&comm));
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    long op;

    worker->state = mpitest_mix(mpitest.seed, (uint64_t) worker->number, 1);
    for (op = 0; op < mpitest.ops; ++op) {
        /* the same on both ranks, but for the way of receiving */
        uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) op, (uint64_t) worker->number);
        long what = mpitest_between(&state, 0, 7);
        int out = (int) mpitest_between(&state, 0, TYPES - 1);
        int in = (int) mpitest_between(&state, 0, TYPES - 1);
        long number = 4 * op;

        worker->state += (uint64_t) mpitest.rank;
        worker->out = mpitest_buffer(maps[out]);
        worker->in = mpitest_buffer(maps[in]);
        mpitest_clear(worker->in);
        switch (what) {
        case 0:
            persistent(worker, types[out], types[in], number);
            break;
        case 1:
            cancel(worker, types[in]);
            break;
        case 2:
            cancel_late(worker, types[out], types[in], number);
            break;
        case 3:
            let_go(worker, types[out], types[in], number);
            break;
        case 4:
            transient(worker, types[out], types[in], number);
            break;
        default:
            exchange(worker, types[out], types[in], MPI_COMM_WORLD, number);
            break;
        }
        mpitest_buffer_free(worker->out);
        mpitest_buffer_free(worker->in);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const mpitest_kind_t kinds[TYPES] = {MPITEST_FINE, MPITEST_COARSE, MPITEST_NESTED,
                                                MPITEST_CONTIGUOUS};
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    int i;

    mpitest_init(&argc, &argv, "shared", 40, MPI_THREAD_MULTIPLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    for (i = 0; i < TYPES; ++i) {
        types[i] = mpitest_type(kinds[i], BYTES, 1);
        maps[i] = mpitest_map(types[i], 1);
    }
    for (i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].peer = 1 - mpitest.rank;
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].own));
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        MPI_OK(MPI_Comm_free(&workers[i].own));
    }
    for (i = 0; i < TYPES; ++i) {
        mpitest_map_free(maps[i]);
        MPI_OK(MPI_Type_free(&types[i]));
    }
    return mpitest_finish();
}
