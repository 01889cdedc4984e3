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
 * Concurrent activity while queue pairs fail and are rebuilt. All messages arrive complete.
 *
 * --mode threads: threads of both ranks send each other messages while faults occur
 * (UMRDDT_TEST_FAULTS, sim/connectx/README.md); --ops messages in each direction and thread. At
 * the end there is a queue pair again.
 *
 * --mode finalize, disconnect: side 0 has pending sends with freed requests when it enters
 * MPI_Finalize, or MPI_Comm_disconnect of a communicator between two groups of the job. The table
 * below has the state of the queue pair at that time. In a job that ends, each pair of ranks uses
 * its own row. After a disconnect the processes connect again, and messages use the HCA as before.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byhca.h"
#include "exchange.h"
#include "pvars.h"

enum {
    THREADS = 4,
    DEPTH = 2, /* pending messages of a thread in each direction */
    SENDS = 8, /* whose requests are freed: twice as many as wait for a new queue pair */
    MOST = 400 /* messages by the base PML before it is there */
};

/* Faults on either side: in earlier messages, and in the pending ones. */
typedef struct phase_t {
    const char *name;
    const char *before[2];
    const char *in_flight[2];
    bool anew; /* a new one exists, if this is the first failure */
} phase_t;

static const phase_t phases[] = {
    /* it failed, and a new one exists and is connected */
    {"connects", {"", "deaf:1"}, {"", ""}, true},
    /* it fails, and the peer is notified */
    {"breaks", {"", ""}, {"write:1", ""}, false},
    /* the receiver's end fails, after the first message */
    {"drains", {"", ""}, {"", "deaf:1"}, false},
    /* it failed, and the next one fails, too */
    {"breaks again", {"write:1", ""}, {"write:2", ""}, true},
};

#define PHASES ((long) (sizeof(phases) / sizeof(phases[0])))

static uint64_t counter(pvars_index_t index)
{
    pvars_t values;

    pvars_read(&values);
    return values.value[index];
}

/* ---- threads ---- */

typedef struct worker_t {
    int number;
    MPI_Comm comm;
    pthread_t thread;
} worker_t;

static void *work(void *argument)
{
    worker_t *worker = argument;
    mpitest_message_t *in[DEPTH], *out[DEPTH];
    MPI_Request requests[2 * DEPTH];
    int peer = 1 - mpitest.rank;

    for (int i = 0; i < DEPTH; ++i) {
        in[i] = byhca_end(mpitest.rank);
        out[i] = byhca_end(mpitest.rank);
    }
    for (long op = 0; op < mpitest.ops; op += DEPTH) {
        uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) worker->number, (uint64_t) op);

        for (int i = 0; i < DEPTH; ++i) {
            byhca_fill(in[i], false, 0);
            MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, peer, worker->number, worker->comm,
                             &requests[i]));
        }
        for (int i = 0; i < DEPTH; ++i) {
            byhca_fill(out[i], true, key + (uint64_t) (2 * i + mpitest.rank));
            MPI_OK((0 == op % 3 ? MPI_Issend : MPI_Isend)(out[i]->addr, 1, out[i]->type, peer,
                                                          worker->number, worker->comm,
                                                          &requests[DEPTH + i]));
        }
        MPI_OK(MPI_Waitall(2 * DEPTH, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < DEPTH; ++i) {
            VERIFY(in[i]->buffer, key + (uint64_t) (2 * i + peer), BYHCA_BYTES);
        }
    }
    for (int i = 0; i < DEPTH; ++i) {
        mpitest_message_free(in[i]);
        mpitest_message_free(out[i]);
    }
    return NULL;
}

static void threads(byhca_t *pair)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS");
    worker_t workers[THREADS];
    MPI_Comm own[2];
    uint64_t rebuilt;
    long lost;

    CHECK(NULL != plan);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[0]));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[1]));
    CHECK_INT(byhca_until(pair, 1, 0), 0);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) exchange_plan(plan, 1);
    for (int i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].comm = 2 > i ? MPI_COMM_WORLD : own[i - 2];
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_join(workers[i].thread, NULL), 0);
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) exchange_plan("", 0);
    rebuilt = counter(PVARS_ENDPOINTS_REBUILT) + counter(PVARS_MAPS_REBUILT);
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &rebuilt, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    lost = byhca_until(pair, 1000, 10L * MOST);
    if (0 == mpitest.rank) {
        printf(
            "rebuild_concurrent: %s: made anew %llu times, both sides together, and after %ld messages "
            "more for good\n",
            plan, (unsigned long long) rebuilt, lost);
    }
    CHECK(0 < rebuilt && 10L * MOST >= lost);
    MPI_OK(MPI_Comm_free(&own[0]));
    MPI_OK(MPI_Comm_free(&own[1]));
}

/* ---- the end of a connection ---- */

/* Side 0's ends of pending messages. */
static mpitest_message_t *sent[SENDS];

/* Side 0 starts, and is about to leave. */
static void send_freed(const byhca_t *pair, const phase_t *phase)
{
    MPI_Request request;

    for (int i = 0; i < SENDS; ++i) {
        sent[i] = byhca_end(0);
        mpitest_fill(sent[i]->buffer, 100 + (uint64_t) i);
    }
    (void) exchange_plan(phase->in_flight[0], '\0' != *phase->in_flight[0]);
    for (int i = 0; i < SENDS; ++i) {
        MPI_OK(MPI_Isend(sent[i]->addr, 1, sent[i]->type, pair->peer, 3, pair->comm, &request));
        MPI_OK(MPI_Request_free(&request));
    }
}

/* Side 1 receives all of it. */
static void take_freed(const byhca_t *pair, const phase_t *phase)
{
    (void) exchange_plan(phase->in_flight[1], '\0' != *phase->in_flight[1]);
    for (int i = 0; i < SENDS; ++i) {
        mpitest_clear(pair->end->buffer);
        MPI_OK(MPI_Recv(pair->end->addr, 1, pair->end->type, pair->peer, 3, pair->comm,
                        MPI_STATUS_IGNORE));
        VERIFY(pair->end->buffer, 100 + (uint64_t) i, BYHCA_BYTES);
    }
}

/* Events of the device about a failed queue pair are handled in progress. */
static void progress(void)
{
    double end = MPI_Wtime() + 0.05;

    for (int passes = 0; passes < 1000 || MPI_Wtime() < end; ++passes) {
        int flag;

        MPI_OK(MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
}

/* The earlier faults; then all but one of the messages that a rebuild needs are sent. */
static void begin(const byhca_t *pair, const phase_t *phase)
{
    const char *plan = phase->before[pair->side];
    int lost = 0;

    (void) exchange_plan(plan, '\0' != *plan);
    if ('\0' != *phase->before[0] || '\0' != *phase->before[1]) {
        for (uint64_t i = 0; i < BYHCA_PATIENCE; ++i) {
            lost += byhca_message(pair, 0, 10 + i) ? 0 : 1;
        }
        CHECK(0 < lost);
    }
    (void) exchange_plan("", 0);
    progress();
}

static byhca_t leaving = {.comm = MPI_COMM_WORLD};

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first: it has started. */
static int entered(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void) comm;
    (void) keyval;
    (void) value;
    (void) extra;
    MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, leaving.peer, 4, MPI_COMM_WORLD));
    return MPI_SUCCESS;
}

static int leave(void)
{
    const phase_t *phase = &phases[mpitest.rank / 2 % PHASES];
    int keyval = MPI_KEYVAL_INVALID;

    leaving.peer = mpitest.rank ^ 1;
    leaving.side = mpitest.rank % 2;
    leaving.end = byhca_end(leaving.side);
    CHECK_INT(byhca_until(&leaving, 1, 0), 0);
    begin(&leaving, phase);
    if (0 == leaving.side) {
        MPI_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, entered, &keyval, NULL));
        MPI_OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
        send_freed(&leaving, phase);
    } else {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, leaving.peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        take_freed(&leaving, phase);
        printf(
            "rebuild_concurrent: %s: %llu by the base PML, connected anew %llu times, %ld checks\n",
            phase->name, (unsigned long long) counter(PVARS_FALLBACK_RECVS),
            (unsigned long long) counter(PVARS_ENDPOINTS_REBUILT), mpitest.checks);
        fflush(stdout);
        CHECK(phase->anew == (0 < counter(PVARS_ENDPOINTS_REBUILT)));
    }
    pvars_close();
    MPI_Finalize();
    return 0;
}

/* Side 0 disconnects, with pending messages that the other side receives slowly. */
static void part(byhca_t *pair, const phase_t *phase)
{
    long lost = byhca_until(pair, 1, MOST);
    uint64_t rebuilt = counter(PVARS_ENDPOINTS_REBUILT);

    CHECK(MOST >= lost);
    begin(pair, phase);
    if (0 == pair->side) {
        send_freed(pair, phase);
    } else {
        progress(); /* until side 0 has left */
        take_freed(pair, phase);
        rebuilt = counter(PVARS_ENDPOINTS_REBUILT) - rebuilt;
        printf("rebuild_concurrent: %s: %ld messages before, connected anew %llu times\n",
               phase->name, lost, (unsigned long long) rebuilt);
        CHECK(phase != phases || 1 == rebuilt);
    }
    MPI_OK(MPI_Comm_disconnect(&pair->comm));
    CHECK(MPI_COMM_NULL == pair->comm);
    (void) exchange_plan("", 0);
    for (int i = 0; i < SENDS && 0 == pair->side; ++i) {
        mpitest_message_free(sent[i]);
    }
    mpitest_message_free(pair->end);
}

static void disconnect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";

    for (long i = 0; i < PHASES; ++i) {
        int accepts = (int) (i % 2);
        byhca_t pair = {.peer = 0, .side = (mpitest.rank + (int) (i / 2)) % 2};

        mpitest.step = i;
        if (accepts == mpitest.rank) {
            MPI_OK(MPI_Open_port(MPI_INFO_NULL, port));
            MPI_OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1 - accepts, 9, MPI_COMM_WORLD));
            MPI_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &pair.comm));
            MPI_OK(MPI_Close_port(port));
        } else {
            MPI_OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, accepts, 9, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
            MPI_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &pair.comm));
        }
        pair.end = byhca_end(pair.side);
        part(&pair, &phases[i]);
        mpitest_alive();
    }
}

static bool asks(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; ++i) {
        if (NULL != strstr(argv[i], word)) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "rebuild_concurrent", 200,
                 asks(argc, argv, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    if (NULL == exchange_function(NULL, "umrddt_sim_faults")) {
        mpitest_skip("only the software HCA fails on demand");
    }
    if (mpitest_has("finalize")) {
        CHECK_INT(mpitest.size % 2, 0);
        return leave();
    }
    CHECK_INT(mpitest.size, 2);
    if (mpitest_has("disconnect")) {
        disconnect();
    } else {
        byhca_t pair = {.comm = MPI_COMM_WORLD, .peer = 1 - mpitest.rank, .side = mpitest.rank};

        pair.end = byhca_end(pair.side);
        threads(&pair);
        mpitest_message_free(pair.end);
    }
    pvars_close();
    return mpitest_finish();
}
