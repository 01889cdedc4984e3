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
 * One job of --defer: ping-pong of messages that umrddt passes through, timed in short batches.
 * mpirun selects the PML and umrddt; the job only reports them.
 *
 * With "self" as its second argument it is one process instead, which sends to itself, in functions
 * that an instruction counter can distinguish by their names.
 */

#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include "bench_defer.h"
#include "bench_util.h"

#define MAX_BYTES (64 << 10)
#define WINDOW    64
#define TAG       7

/* Batches are short, so that most of them are not interrupted, and many. */
#define WARM_UP 5

typedef struct place_t {
    MPI_Comm comm;
    int rank;
    int peer;
    char *out;
    char *in;
    int pairs; /* of messages to itself */
} place_t;

static void blocking(const place_t *place, int count, MPI_Datatype type, int rounds)
{
    int i;

    for (i = 0; i < rounds; ++i) {
        if (0 == place->rank) {
            MPI_Send(place->out, count, type, place->peer, TAG, place->comm);
            MPI_Recv(place->in, count, type, place->peer, TAG, place->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(place->in, count, type, place->peer, TAG, place->comm, MPI_STATUS_IGNORE);
            MPI_Send(place->out, count, type, place->peer, TAG, place->comm);
        }
    }
}

static void nonblocking(const place_t *place, int count, MPI_Datatype type, int rounds)
{
    MPI_Request requests[2];
    int i;

    for (i = 0; i < rounds; ++i) {
        MPI_Irecv(place->in, count, type, place->peer, TAG, place->comm, &requests[0]);
        if (0 != place->rank) {
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        MPI_Isend(place->out, count, type, place->peer, TAG, place->comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

/* A window of messages in one direction, and an answer. */
static void window(const place_t *place, int count, MPI_Datatype type, int rounds)
{
    MPI_Request requests[WINDOW];
    int i, k;

    for (i = 0; i < rounds; ++i) {
        for (k = 0; k < WINDOW; ++k) {
            if (0 == place->rank) {
                MPI_Isend(place->out, count, type, place->peer, TAG, place->comm, &requests[k]);
            } else {
                MPI_Irecv(place->in, count, type, place->peer, TAG, place->comm, &requests[k]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (0 == place->rank) {
            MPI_Recv(place->in, 0, MPI_BYTE, place->peer, TAG, place->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(place->out, 0, MPI_BYTE, place->peer, TAG, place->comm);
        }
    }
}

typedef struct form_t {
    const char *name;
    void (*run)(const place_t *place, int count, MPI_Datatype type, int rounds);
    bool pieces;  /* blocks of 8 bytes every 16, too few for umrddt */
    int messages; /* of a round, one after the other */
} form_t;

static const form_t forms[] = {{"blocking", blocking, false, 2},
                               {"nonblocking", nonblocking, false, 2},
                               {"window", window, false, WINDOW},
                               {"pieces", blocking, true, 2}};

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return left < right ? -1 : left > right;
}

static void measure(const place_t *place, const form_t *form, int bytes, int batches)
{
    const int rounds = WINDOW == form->messages ? 1 : 4096 < bytes ? 8 : 40;
    const int warm_up = WARM_UP < batches ? WARM_UP : batches;
    double times[BENCH_DEFER_MAX_BATCHES];
    MPI_Datatype type = MPI_BYTE;
    int count = bytes, batch;

    if (form->pieces) {
        MPI_Type_vector(bytes / 8, 8, 16, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        count = 1;
    }
    for (batch = -warm_up; batch < batches; ++batch) {
        const double begin = bench_now();

        form->run(place, count, type, rounds);
        if (0 <= batch) {
            times[batch] = 1e6 * (bench_now() - begin) / rounds / form->messages;
        }
    }
    if (form->pieces) {
        MPI_Type_free(&type);
    }
    if (0 == place->rank) {
        qsort(times, (size_t) batches, sizeof(times[0]), ascending);
        printf("defer %s %d %.4f %.4f\n", form->name, bytes, times[batches / 2],
               times[batches / 10]);
    }
}

/* One of umrddt's performance variables: opened before the first message, as it counts from there.
 */
typedef struct counter_t {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    bool there;
} counter_t;

static void counter_open(counter_t *counter, const char *name)
{
    int index, count;

    counter->there =
        MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)
        && MPI_SUCCESS == MPI_T_pvar_session_create(&counter->session)
        && MPI_SUCCESS
               == MPI_T_pvar_handle_alloc(counter->session, index, NULL, &counter->handle, &count);
}

static unsigned long long counter_read(const counter_t *counter)
{
    unsigned long long value = 0;

    if (counter->there) {
        MPI_T_pvar_read(counter->session, counter->handle, &value);
    }
    return value;
}

/* passed: also messages that umrddt could handle; the model must pass them through. */
static void run_pair(place_t *place, int batches, bool passed)
{
    static const int sizes[] = {0, 1, 4, 16, 64, 256, 1024, 4096, 16384, MAX_BYTES};
    counter_t contiguous, queries, handled, probes;
    size_t i, k;

    counter_open(&contiguous, "pml_umrddt_passed_contiguous");
    counter_open(&queries, "pml_umrddt_memory_queries");
    counter_open(&handled, "pml_umrddt_handled_sends");
    counter_open(&probes, "pml_umrddt_probe_sends");
    place->peer = 1 - place->rank;
    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
            if (!forms[i].pieces || (16 <= sizes[k] && (passed || 1024 > sizes[k]))) {
                measure(place, &forms[i], sizes[k], batches);
            }
        }
    }
    if (0 == place->rank) {
        /* With GPUs, umrddt handles a few probe messages to learn the receive memory: they are a
         * part of the overhead for the others. */
        printf("defer-state %d %d %llu %llu\n", contiguous.there, 0 < counter_read(&contiguous),
               counter_read(&queries), counter_read(&handled) - counter_read(&probes));
    }
}

/* The receive is posted first; the message is there first and the receive blocks; and does not
 * block.
 */
#define SELF(BYTES)                                                                              \
    __attribute__((noinline, noclone)) void defer_self_irecv_send_##BYTES(const place_t *place)  \
    {                                                                                            \
        MPI_Request request;                                                                     \
        int i;                                                                                   \
                                                                                                 \
        for (i = 0; i < place->pairs; ++i) {                                                     \
            MPI_Irecv(place->in, BYTES, MPI_BYTE, 0, TAG, place->comm, &request);                \
            MPI_Send(place->out, BYTES, MPI_BYTE, 0, TAG, place->comm);                          \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                               \
        }                                                                                        \
    }                                                                                            \
    __attribute__((noinline, noclone)) void defer_self_isend_recv_##BYTES(const place_t *place)  \
    {                                                                                            \
        MPI_Request request;                                                                     \
        int i;                                                                                   \
                                                                                                 \
        for (i = 0; i < place->pairs; ++i) {                                                     \
            MPI_Isend(place->out, BYTES, MPI_BYTE, 0, TAG, place->comm, &request);               \
            MPI_Recv(place->in, BYTES, MPI_BYTE, 0, TAG, place->comm, MPI_STATUS_IGNORE);        \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                               \
        }                                                                                        \
    }                                                                                            \
    __attribute__((noinline, noclone)) void defer_self_isend_irecv_##BYTES(const place_t *place) \
    {                                                                                            \
        MPI_Request requests[2];                                                                 \
        int i;                                                                                   \
                                                                                                 \
        for (i = 0; i < place->pairs; ++i) {                                                     \
            MPI_Isend(place->out, BYTES, MPI_BYTE, 0, TAG, place->comm, &requests[0]);           \
            MPI_Irecv(place->in, BYTES, MPI_BYTE, 0, TAG, place->comm, &requests[1]);            \
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);                                       \
        }                                                                                        \
    }
#define SELF_DECLARE(BYTES)                                   \
    void defer_self_irecv_send_##BYTES(const place_t *place); \
    void defer_self_isend_recv_##BYTES(const place_t *place); \
    void defer_self_isend_irecv_##BYTES(const place_t *place);
#define SELF_RUN(BYTES)                   \
    defer_self_irecv_send_##BYTES(place); \
    defer_self_isend_recv_##BYTES(place); \
    defer_self_isend_irecv_##BYTES(place);
#define SELF_ALL(DO) DO(0) DO(8) DO(64) DO(128) DO(4096) DO(65536)

SELF_ALL(SELF_DECLARE)
SELF_ALL(SELF)

static void run_self(const place_t *place)
{
    bench_count_begin();
    SELF_ALL(SELF_RUN)
    printf("defer-self %d\n", place->pairs);
}

/* --defer-job self single|multiple PAIRS; --defer-job pair single|multiple PATTERN|- BATCHES
 * [passed] */
int bench_defer_job_main(int argc, char **argv)
{
    const bool self = 2 < argc && 0 == strcmp(argv[2], "self");
    const bool multiple = 3 < argc && 0 == strcmp(argv[3], "multiple");
    int wanted = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level, size;
    int batches = 5 < argc ? (int) strtol(argv[5], NULL, 10) : 1;
    MPI_Info info = MPI_INFO_NULL;
    place_t place;

    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_T_init_thread(wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((self ? 1 : 2) != size) {
        bench_fatal("%s is for jobs that --defer starts; this one has %d processes",
                    BENCH_DEFER_JOB, size);
    }
    if (!self && 4 < argc && 0 != strcmp("-", argv[4])) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_communication_pattern", argv[4]);
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &place.comm);
    if (MPI_INFO_NULL != info) {
        MPI_Info_free(&info);
    }
    place.out = bench_alloc(2 * MAX_BYTES);
    place.in = bench_alloc(2 * MAX_BYTES);
    memset(place.out, 1, 2 * MAX_BYTES);
    memset(place.in, 2, 2 * MAX_BYTES);
    if (self) {
        place.pairs = 4 < argc ? (int) strtol(argv[4], NULL, 10) : 1;
        run_self(&place);
    } else {
        run_pair(&place, batches, 6 < argc);
    }
    free(place.in);
    free(place.out);
    MPI_Comm_free(&place.comm);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
