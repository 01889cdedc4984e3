/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages of a process to itself in GPU memory: one operation of a GPU from layout to layout,
 * without CUDA IPC and without staging. Parts:
 *
 * - steady: repeated messages; the counters show one operation for each, and nothing else
 * - kinds: all pairs of kinds of memory, on MPI_COMM_WORLD and MPI_COMM_SELF, in both orders of
 *   send and receive, with nonblocking, synchronous and persistent requests
 * - devices: from one device of this process to another
 * - contexts: to and from another context of the same device
 * - match: any source and any tag, probes, matched probes, messages out of order
 * - truncated: the receive is shorter than the message
 * - cancel: a receive is cancelled, and the message goes to the next one
 * - threads: only if named; several threads at once
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <pthread.h>
#include <string.h>

#define TAG   7
#define BYTES 65536

/* A message, with a type and a buffer of its own at each side. */
typedef struct pair_t {
    MPI_Datatype type[2];
    mpitest_map_t *map[2];
    mpitest_buffer_t *buffer[2];
    uint64_t key;
} pair_t;

static uint64_t keys;

/* Index of a side. */
enum {
    FROM,
    TO
};

static pair_t pair_new(gpu_kind_t from, gpu_kind_t to, mpitest_kind_t send, mpitest_kind_t recv,
                       int bytes, int room)
{
    pair_t pair = {.key = __atomic_add_fetch(&keys, 1, __ATOMIC_RELAXED)};

    pair.type[FROM] = mpitest_type(send, bytes, mpitest.seed);
    pair.type[TO] = mpitest_type(recv, room, mpitest.seed + 1);
    for (int i = 0; i < 2; ++i) {
        pair.map[i] = mpitest_map(pair.type[i], 1);
        pair.buffer[i] = mpitest_buffer_of(pair.map[i], FROM == i ? from : to);
    }
    return pair;
}

static void pair_free(pair_t *pair)
{
    for (int i = 0; i < 2; ++i) {
        mpitest_buffer_free(pair->buffer[i]);
        mpitest_map_free(pair->map[i]);
        MPI_OK(MPI_Type_free(&pair->type[i]));
    }
}

static void pair_fill(pair_t *pair)
{
    pair->key = __atomic_add_fetch(&keys, 1, __ATOMIC_RELAXED);
    mpitest_fill(pair->buffer[FROM], pair->key);
    mpitest_clear(pair->buffer[TO]);
}

static int rank_in(MPI_Comm comm)
{
    int rank;

    MPI_OK(MPI_Comm_rank(comm, &rank));
    return rank;
}

static void post(const pair_t *pair, int side, MPI_Comm comm, int tag, MPI_Request *request)
{
    if (FROM == side) {
        MPI_OK(MPI_Isend(pair->buffer[FROM]->addr, 1, pair->type[FROM], rank_in(comm), tag, comm,
                         request));
    } else {
        MPI_OK(MPI_Irecv(pair->buffer[TO]->addr, 1, pair->type[TO], rank_in(comm), tag, comm,
                         request));
    }
}

static void check(const pair_t *pair, const MPI_Status *status, MPI_Comm comm, int tag)
{
    const int bytes = (int) pair->map[FROM]->size;

    CHECK_STATUS(status, rank_in(comm), tag, bytes);
    VERIFY(pair->buffer[TO], pair->key, bytes);
}

static void transfer(pair_t *pair, MPI_Comm comm, int first)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];

    pair_fill(pair);
    post(pair, first, comm, TAG, &requests[first]);
    post(pair, 1 - first, comm, TAG, &requests[1 - first]);
    MPI_OK(MPI_Waitall(2, requests, statuses));
    check(pair, &statuses[TO], comm, TAG);
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static void steady_one(mpitest_kind_t send, mpitest_kind_t recv, MPI_Comm comm)
{
    pair_t pair = pair_new(GPU_DEVICE, GPU_DEVICE, send, recv, BYTES, BYTES);
    const uint64_t times = 8;
    pvars_t before, after, seen;
    const uint64_t *value = seen.value;

    for (int i = 0; i < 4; ++i) {
        transfer(&pair, comm, i % 2);
    }
    pvars_read(&before);
    for (uint64_t i = 0; i < times; ++i) {
        transfer(&pair, comm, i % 2);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    if (mpitest.verbose) {
        pvars_print("steady", &seen);
    }
    CHECK_INT(value[PVARS_SENDS_IPC], times);
    CHECK_INT(value[PVARS_RECVS_IPC], times);
    CHECK_INT(value[PVARS_GPU_COPIES], times);
    CHECK_INT(value[PVARS_GPU_LAUNCHES] + value[PVARS_GPU_DRIVER_COPIES], times);
    CHECK_INT(value[PVARS_IPC_DONE_FLAGS], times);
    CHECK_INT(value[PVARS_CONTROL_MESSAGES], times); /* the envelopes */
    CHECK_INT(value[PVARS_STAGED_BYTES] + value[PVARS_FALLBACK_SENDS], 0);
    CHECK_INT(value[PVARS_IPC_EXPORTED] + value[PVARS_IPC_OPENED] + value[PVARS_IPC_INFO_REQS], 0);
    CHECK_INT(value[PVARS_LAYOUT_MISSES] + value[PVARS_GPU_SHAPES_MADE], 0);
    pair_free(&pair);
}

static void steady(uint64_t *state)
{
    (void) state;
    steady_one(MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, MPI_COMM_WORLD);
    steady_one(MPITEST_FINE, MPITEST_COARSE, MPI_COMM_SELF);
    steady_one(MPITEST_CONTIGUOUS, MPITEST_IRREGULAR, MPI_COMM_WORLD);
    steady_one(MPITEST_NEGATIVE, MPITEST_CONTIGUOUS, MPI_COMM_SELF);
}

/* With persistent requests, twice; the send is synchronous. */
static void persistent(pair_t *pair, MPI_Comm comm)
{
    const int rank = rank_in(comm);
    MPI_Request requests[2];
    MPI_Status statuses[2];

    MPI_OK(MPI_Ssend_init(pair->buffer[FROM]->addr, 1, pair->type[FROM], rank, TAG, comm,
                          &requests[FROM]));
    MPI_OK(
        MPI_Recv_init(pair->buffer[TO]->addr, 1, pair->type[TO], rank, TAG, comm, &requests[TO]));
    for (int i = 0; i < 2; ++i) {
        pair_fill(pair);
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        check(pair, &statuses[TO], comm, TAG);
    }
    MPI_OK(MPI_Request_free(&requests[FROM]));
    MPI_OK(MPI_Request_free(&requests[TO]));
}

static void kinds(uint64_t *state)
{
    for (int i = 0; i < GPU_KINDS * GPU_KINDS; ++i) {
        const gpu_kind_t from = (gpu_kind_t) (i / GPU_KINDS), to = (gpu_kind_t) (i % GPU_KINDS);
        const MPI_Comm comm = 0 == mpitest_between(state, 0, 1) ? MPI_COMM_SELF : MPI_COMM_WORLD;
        const int bytes = mpitest_draw_bytes(state);
        pair_t pair =
            pair_new(from, to, mpitest_draw_kind(state), mpitest_draw_kind(state), bytes, bytes);

        transfer(&pair, comm, FROM);
        transfer(&pair, comm, TO);
        persistent(&pair, comm);
        pair_free(&pair);
        ++mpitest.step;
    }
}

static void devices(uint64_t *state)
{
    const int own = gpu_device();
    pair_t pair = pair_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, BYTES, BYTES);

    (void) state;
    mpitest_buffer_free(pair.buffer[TO]);
    gpu_device_set((own + 1) % gpu_device_count());
    pair.buffer[TO] = mpitest_buffer_of(pair.map[TO], GPU_DEVICE);
    gpu_device_set(own);
    for (int i = 0; i < 4; ++i) {
        transfer(&pair, MPI_COMM_WORLD, i % 2);
    }
    pair_free(&pair);
}

/* A message, one side of which is bytes in memory of its own. */
static void transfer_bytes(const pair_t *pair, int side, CUdeviceptr bytes)
{
    MPI_Request requests[2];

    post(pair, side, MPI_COMM_WORLD, TAG, &requests[0]);
    if (FROM == side) {
        MPI_OK(MPI_Irecv((void *) (uintptr_t) bytes, (int) pair->map[FROM]->size, MPI_BYTE,
                         mpitest.rank, TAG, MPI_COMM_WORLD, &requests[1]));
    } else {
        MPI_OK(MPI_Isend((void *) (uintptr_t) bytes, (int) pair->map[FROM]->size, MPI_BYTE,
                         mpitest.rank, TAG, MPI_COMM_WORLD, &requests[1]));
    }
    MPI_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void contexts(uint64_t *state)
{
    pair_t pair =
        pair_new(GPU_DEVICE, GPU_DEVICE, MPITEST_IRREGULAR, MPITEST_IRREGULAR, BYTES, BYTES);
    CUdeviceptr bytes;
    CUcontext own;
    CUdevice device;

    (void) state;
    GPU_OK(gpu.cuDeviceGet(&device, gpu_device()));
    GPU_OK(gpu.cuCtxCreate_v2(&own, 0, device));
    GPU_OK(gpu.cuMemAlloc_v2(&bytes, pair.map[FROM]->size));
    GPU_OK(gpu.cuCtxPopCurrent_v2(&own));
    for (int i = 0; i < 4; ++i) {
        pair_fill(&pair);
        transfer_bytes(&pair, FROM, bytes);
        transfer_bytes(&pair, TO, bytes);
        VERIFY(pair.buffer[TO], pair.key, (int) pair.map[FROM]->size);
    }
    GPU_OK(gpu.cuCtxPushCurrent_v2(own));
    GPU_OK(gpu.cuMemFree_v2(bytes));
    GPU_OK(gpu.cuCtxPopCurrent_v2(&own));
    GPU_OK(gpu.cuCtxDestroy_v2(own));
    pair_free(&pair);
}

/* Receive a message with each call in turn. */
static void receive(pair_t *pair, int how, int tag)
{
    const int rank = mpitest.rank;
    MPI_Message message;
    MPI_Status status;
    void *addr = pair->buffer[TO]->addr;

    if (1 == how) {
        MPI_OK(MPI_Probe(rank, tag, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, rank, tag, (int) pair->map[FROM]->size);
    }
    if (2 == how) {
        MPI_OK(MPI_Mprobe(rank, tag, MPI_COMM_WORLD, &message, &status));
        CHECK_STATUS(&status, rank, tag, (int) pair->map[FROM]->size);
        MPI_OK(MPI_Mrecv(addr, 1, pair->type[TO], &message, &status));
    } else {
        MPI_OK(MPI_Recv(addr, 1, pair->type[TO], 3 == how ? MPI_ANY_SOURCE : rank,
                        4 == how ? MPI_ANY_TAG : tag, MPI_COMM_WORLD, &status));
    }
    check(pair, &status, MPI_COMM_WORLD, tag);
}

static void match(uint64_t *state)
{
    enum {
        COUNT = 5
    };
    pair_t pairs[COUNT];
    MPI_Request requests[COUNT];
    int order[COUNT] = {0, 1, 2, 3, 4};

    for (int i = 0; i < COUNT; ++i) {
        pairs[i] = pair_new(GPU_DEVICE, 0 == i ? GPU_HOST : GPU_DEVICE, MPITEST_FINE,
                            MPITEST_CONTIGUOUS, BYTES, BYTES);
        pair_fill(&pairs[i]);
        post(&pairs[i], FROM, MPI_COMM_WORLD, TAG + i, &requests[i]);
    }
    mpitest_shuffle(state, order, COUNT - 1); /* any tag comes last */
    for (int i = 0; i < COUNT; ++i) {
        receive(&pairs[order[i]], order[i], TAG + order[i]);
    }
    MPI_OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; ++i) {
        pair_free(&pairs[i]);
    }
}

static void truncated(uint64_t *state)
{
    (void) state;
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int room = 40; room < BYTES; room *= 11) {
        pair_t pair = pair_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, BYTES, room);
        MPI_Request requests[2];
        int rc;

        pair_fill(&pair);
        post(&pair, FROM, MPI_COMM_WORLD, TAG, &requests[FROM]);
        rc = MPI_Recv(pair.buffer[TO]->addr, 1, pair.type[TO], mpitest.rank, TAG, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
        MPI_OK(MPI_Wait(&requests[FROM], MPI_STATUS_IGNORE));
        (void) VERIFY_TRUNCATED(pair.buffer[TO], pair.key, room);
        pair_free(&pair);
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

static void cancel(uint64_t *state)
{
    pair_t pair = pair_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, BYTES, BYTES);
    MPI_Request request;
    MPI_Status status;
    int cancelled;

    (void) state;
    post(&pair, TO, MPI_COMM_WORLD, TAG, &request);
    MPI_OK(MPI_Cancel(&request));
    MPI_OK(MPI_Wait(&request, &status));
    MPI_OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(0 != cancelled);
    transfer(&pair, MPI_COMM_WORLD, FROM);
    pair_free(&pair);
}

static void *thread(void *argument)
{
    pair_t *pair = argument;
    MPI_Comm comm;

    MPI_OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int i = 0; i < 40; ++i) {
        transfer(pair, comm, i % 2);
    }
    MPI_OK(MPI_Comm_free(&comm));
    return NULL;
}

static void threads(void)
{
    enum {
        COUNT = 4
    };
    pair_t pairs[COUNT];
    pthread_t ids[COUNT];

    for (int i = 0; i < COUNT; ++i) {
        pairs[i] =
            pair_new(GPU_DEVICE, GPU_DEVICE, MPITEST_IRREGULAR, MPITEST_COARSE, BYTES, BYTES);
        CHECK_INT(pthread_create(&ids[i], NULL, thread, &pairs[i]), 0);
    }
    for (int i = 0; i < COUNT; ++i) {
        CHECK_INT(pthread_join(ids[i], NULL), 0);
        pair_free(&pairs[i]);
    }
}

static const mpitest_part_t parts[] = {
    {"steady", steady}, {"kinds", kinds},         {"devices", devices}, {"contexts", contexts},
    {"match", match},   {"truncated", truncated}, {"cancel", cancel},   {NULL, NULL},
};

int main(int argc, char **argv)
{
    bool several = false;

    for (int i = 1; i < argc; ++i) {
        several = several || 0 == strcmp(argv[i], "threads");
    }
    mpitest_init(&argc, &argv, "gpu_self", 1, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    gpu_begin_all();
    if (PVARS_MAX != pvars_open()) {
        mpitest_fail(__FILE__, __LINE__, "not all performance variables of pml/umrddt exist");
    }
    keys = mpitest_mix(mpitest.seed, (uint64_t) mpitest.rank, 5);
    if (several) {
        threads();
    } else {
        mpitest_run(parts);
    }
    pvars_close();
    return mpitest_finish();
}
