/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages of less than pml_umrddt_min_size bytes between GPUs of a node. They are staged until the
 * receiver has sent a hint for their tag, and then read by its GPU as larger ones. Rank 0 sends,
 * rank 1 receives. Parts:
 *
 * - steady: one operation for each message, at the receiver only, and no staging; with nonblocking
 *   and persistent requests
 * - system: receives in system memory, longer than the message, of every kind: an envelope leaves
 *   no trace behind the message
 * - earlier: a receive in system memory that is older than the first hint
 * - match: wildcards, probes, tags out of order
 * - truncated: the receive is shorter than the message
 * - blocking: both ranks send before they receive
 * - order: every send call and empty messages with one tag, before the hint arrives and after it
 * - cancel: receives that no message matches
 * - tags: more tags than the tables of hints have entries
 * - freed: communicators that are freed while hints are on their way
 * - sends: only if named, with pml_umrddt_min_size=1; MPI_Send waits for the receiver
 * - starts, unused, refused, off: only if named
 *   - starts: all messages are of persistent requests
 *   - unused: messages from system memory into GPU memory, with many tags and communicators, cause
 *     few hints; and the next messages from GPU memory get one
 *   - refused: no CUDA IPC handle can be opened; hints do not cause further attempts
 *   - off: with pml_umrddt_small_hints=0 all messages are staged
 * - collective: parts of collectives need no hint
 * - threads: only if named; several threads at once
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TIMES 8

/* This rank's side of a message. */
typedef struct side_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
    int bytes; /* of the message */
} side_t;

static const int sizes[] = {1, 4, 8, 103, 104, 105, 512, 1023};

static bool is_sender(void)
{
    return 0 == mpitest.rank;
}

/* The sender's buffer is in GPU memory; the receiver's in @p to, with room for @p room bytes. */
static side_t side_new(gpu_kind_t to, mpitest_kind_t send, mpitest_kind_t recv, int bytes, int room)
{
    side_t side = {.bytes = bytes};

    side.type = mpitest_type(is_sender() ? send : recv, is_sender() ? bytes : room, mpitest.seed);
    side.map = mpitest_map(side.type, 1);
    side.buffer = mpitest_buffer_of(side.map, is_sender() ? GPU_DEVICE : to);
    return side;
}

static void side_free(side_t *side)
{
    mpitest_buffer_free(side->buffer);
    mpitest_map_free(side->map);
    MPI_OK(MPI_Type_free(&side->type));
}

static void prepare(side_t *side, uint64_t key)
{
    if (is_sender()) {
        mpitest_fill(side->buffer, key);
    } else {
        mpitest_clear(side->buffer);
    }
}

static void check(const side_t *side, uint64_t key, int tag, const MPI_Status *status)
{
    if (!is_sender()) {
        CHECK_STATUS(status, 0, tag, side->bytes);
        VERIFY(side->buffer, key, side->bytes);
    }
}

/* Start this rank's side. */
static void post(const side_t *side, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is_sender()) {
        MPI_OK(MPI_Isend(side->buffer->addr, 1, side->type, 1, tag, comm, request));
    } else {
        MPI_OK(MPI_Irecv(side->buffer->addr, 1, side->type, 0, tag, comm, request));
    }
}

static void transfer(side_t *side, int tag, MPI_Comm comm, int times)
{
    MPI_Request request;
    MPI_Status status;

    for (int i = 0; i < times; ++i) {
        const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) i, (uint64_t) tag);

        prepare(side, key);
        post(side, tag, comm, &request);
        MPI_OK(MPI_Wait(&request, &status));
        check(side, key, tag, &status);
    }
}

/* Counters of the sender that are added up on both ranks. */
static pvars_t seen_by_all(const pvars_t *before)
{
    pvars_t now, mine, all;

    pvars_read(&now);
    pvars_subtract(&now, before, &mine);
    pvars_sum(&mine, &all);
    return all;
}

/* Let the receiver of control messages find them. */
static void progress(MPI_Comm comm)
{
    MPI_Request request;
    int flag;

    MPI_OK(MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request));
    for (int i = 0; i < 30; ++i) {
        MPI_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    }
    MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_OK(MPI_Barrier(comm));
}

/* Send messages in GPU memory until they are not staged any more. False: they still are. */
static bool warmed(int tag, MPI_Comm comm)
{
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    pvars_t before, seen;
    int i;

    for (i = 0; i < 30; ++i) {
        pvars_read(&before);
        transfer(&side, tag, comm, 1);
        progress(comm);
        seen = seen_by_all(&before);
        if (mpitest.verbose && is_sender()) {
            pvars_print("warm", &seen);
        }
        if (1 == seen.value[PVARS_SENDS_IPC] && 0 == seen.value[PVARS_IPC_INFO_REQS]) {
            break;
        }
    }
    side_free(&side);
    return i < 30;
}

static void warm(int tag, MPI_Comm comm)
{
    CHECK(warmed(tag, comm));
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static void check_steady(const pvars_t *before)
{
    const pvars_t seen = seen_by_all(before);
    const uint64_t *value = seen.value;

    CHECK_INT(value[PVARS_SENDS_IPC], TIMES);
    CHECK_INT(value[PVARS_RECVS_IPC], TIMES);
    CHECK_INT(value[PVARS_IPC_DONE_FLAGS], TIMES);
    CHECK_INT(value[PVARS_CONTROL_MESSAGES], TIMES);
    CHECK_INT(value[PVARS_GPU_COPIES], TIMES);
    CHECK_INT(value[PVARS_GPU_LAUNCHES] + value[PVARS_GPU_DRIVER_COPIES], TIMES);
    CHECK_INT(value[PVARS_STAGED_BYTES] + value[PVARS_IPC_INFO_REQS] + value[PVARS_LAYOUT_MISSES],
              0);
}

static void persistent(side_t *side, int tag, int times)
{
    MPI_Request request;
    MPI_Status status;

    if (is_sender()) {
        MPI_OK(MPI_Send_init(side->buffer->addr, 1, side->type, 1, tag, MPI_COMM_WORLD, &request));
    } else {
        MPI_OK(MPI_Recv_init(side->buffer->addr, 1, side->type, 0, tag, MPI_COMM_WORLD, &request));
    }
    for (int i = 0; i < times; ++i) {
        const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) i, 99);

        prepare(side, key);
        MPI_OK(MPI_Start(&request));
        MPI_OK(MPI_Wait(&request, &status));
        check(side, key, tag, &status);
    }
    MPI_OK(MPI_Request_free(&request));
}

static void steady(uint64_t *state)
{
    pvars_t before;

    (void) state;
    warm(1, MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (int layout = 0; layout < 2; ++layout) {
            const mpitest_kind_t from = 0 == layout ? MPITEST_CONTIGUOUS : MPITEST_FINE;
            side_t side = side_new(GPU_DEVICE, from, MPITEST_CONTIGUOUS, sizes[i], sizes[i]);

            transfer(&side, 1, MPI_COMM_WORLD, 3);
            pvars_read(&before);
            transfer(&side, 1, MPI_COMM_WORLD, TIMES);
            check_steady(&before);
            pvars_read(&before);
            persistent(&side, 1, TIMES);
            check_steady(&before);
            side_free(&side);
            ++mpitest.step;
        }
    }
}

/* Receive with each call in turn. */
static void receive(side_t *side, int how, int tag, uint64_t key)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    void *addr = side->buffer->addr;

    switch (how) {
    case 0:
        MPI_OK(MPI_Recv(addr, 1, side->type, 0, tag, MPI_COMM_WORLD, &status));
        break;
    case 1:
        MPI_OK(MPI_Recv(addr, 1, side->type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        break;
    case 2:
        MPI_OK(MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, &status));
        CHECK_STATUS(&status, 0, tag, side->bytes);
        MPI_OK(MPI_Mrecv(addr, 1, side->type, &message, &status));
        break;
    case 3:
        MPI_OK(MPI_Recv_init(addr, 1, side->type, 0, tag, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Start(&request));
        MPI_OK(MPI_Wait(&request, &status));
        MPI_OK(MPI_Request_free(&request));
        break;
    case 4:
        MPI_OK(MPI_Probe(0, tag, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, 0, tag, side->bytes);
        /* fall through */
    default:
        MPI_OK(MPI_Irecv(addr, 1, side->type, 0, tag, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Wait(&request, &status));
        break;
    }
    check(side, key, tag, &status);
}

static void system_memory(uint64_t *state)
{
    static const gpu_kind_t to[] = {GPU_HOST, GPU_PINNED, GPU_MANAGED, GPU_DEVICE};
    pvars_t before, seen;

    warm(2, MPI_COMM_WORLD);
    pvars_read(&before);
    for (int i = 0; i < 6 * 4 * 2; ++i) {
        const int bytes = sizes[mpitest_between(state, 0, 7)];
        const mpitest_kind_t layout = 0 == i / 24 ? MPITEST_CONTIGUOUS : MPITEST_FINE;
        const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) i, 5);
        side_t side =
            side_new(to[i / 6 % 4], MPITEST_CONTIGUOUS, layout, bytes, bytes + 8 * (i % 5) * 40);

        prepare(&side, key);
        if (0 == mpitest_between(state, 0, 1)) {
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        if (is_sender()) {
            MPI_Request request;

            post(&side, 2, MPI_COMM_WORLD, &request);
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            receive(&side, i % 6, 2, key);
        }
        side_free(&side);
        ++mpitest.step;
    }
    seen = seen_by_all(&before);
    CHECK_INT(seen.value[PVARS_SENDS_IPC] + seen.value[PVARS_FALLBACK_SENDS], 6 * 4 * 2);
}

static void earlier(uint64_t *state)
{
    side_t exact = side_new(GPU_HOST, MPITEST_CONTIGUOUS, MPITEST_FINE, 8, 400);
    side_t any = side_new(GPU_HOST, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 400);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Comm comm;

    (void) state;
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); /* without hints */
    prepare(&exact, 1);
    prepare(&any, 2);
    if (!is_sender()) {
        post(&exact, 3, comm, &requests[0]);
    }
    /* Open MPI 4.1 leaves the assertions of a new communicator undefined. With pml/ob1 there are no
     * hints if one of them permits that messages overtake each other. */
    if (!warmed(4, comm)) {
        CHECK(5 > OMPI_MAJOR_VERSION && mpitest_base_is("ob1"));
    }
    if (is_sender()) {
        post(&exact, 3, comm, &requests[0]);
    }
    MPI_OK(MPI_Wait(&requests[0], &statuses[0]));
    check(&exact, 1, 3, &statuses[0]);
    /* a wildcard that is older than a hint for another tag */
    if (!is_sender()) {
        MPI_OK(MPI_Irecv(any.buffer->addr, 1, any.type, 0, MPI_ANY_TAG, comm, &requests[1]));
    } else {
        post(&any, 4, comm, &requests[1]);
    }
    MPI_OK(MPI_Wait(&requests[1], &statuses[1]));
    check(&any, 2, 4, &statuses[1]);
    side_free(&exact);
    side_free(&any);
    MPI_OK(MPI_Comm_free(&comm));
}

static void match(uint64_t *state)
{
    enum {
        COUNT = 6
    };
    side_t sides[COUNT];
    MPI_Request requests[COUNT];
    int order[COUNT] = {0, 1, 2, 3, 4, 5};

    for (int i = 0; i < COUNT; ++i) {
        warm(10 + i, MPI_COMM_WORLD);
        sides[i] = side_new(GPU_DEVICE, MPITEST_FINE, MPITEST_CONTIGUOUS, 8 + i, 200);
        prepare(&sides[i], (uint64_t) i);
    }
    if (is_sender()) {
        for (int i = 0; i < COUNT; ++i) {
            post(&sides[i], 10 + i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    } else {
        receive(&sides[0], 1, 10, 0); /* a wildcard gets the oldest */
        mpitest_shuffle(state, order + 1, COUNT - 1);
        for (int i = 1; i < COUNT; ++i) {
            receive(&sides[order[i]], 1 == order[i] ? 0 : order[i], 10 + order[i],
                    (uint64_t) order[i]);
        }
    }
    for (int i = 0; i < COUNT; ++i) {
        side_free(&sides[i]);
    }
}

static void truncated(uint64_t *state)
{
    static const gpu_kind_t to[] = {GPU_HOST, GPU_DEVICE};

    (void) state;
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    warm(5, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) {
        side_t side = side_new(to[i % 2], MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS,
                               0 == i / 2 ? 90 : 900, 0 == i / 2 ? 40 : 300);
        MPI_Request request;

        prepare(&side, 7);
        post(&side, 5, MPI_COMM_WORLD, &request);
        if (is_sender()) {
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            CHECK_INT(mpitest_error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
            (void) VERIFY_TRUNCATED(side.buffer, 7, (int) side.map->size);
        }
        side_free(&side);
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* A blocking send of few bytes does not wait for the receiver. */
static void blocking(uint64_t *state)
{
    const int other = 1 - mpitest.rank;
    side_t out = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    side_t in = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);

    (void) state;
    for (int i = 0; i < 40; ++i) {
        const uint64_t key = (uint64_t) i;

        mpitest_fill(out.buffer, key + (uint64_t) mpitest.rank);
        mpitest_clear(in.buffer);
        MPI_OK(MPI_Send(out.buffer->addr, 1, out.type, other, 6, MPI_COMM_WORLD));
        MPI_OK(MPI_Recv(in.buffer->addr, 1, in.type, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        VERIFY(in.buffer, key + (uint64_t) other, 8);
        if (0 == i % 10) {
            progress(MPI_COMM_WORLD);
        }
    }
    side_free(&out);
    side_free(&in);
}

/* ---------------------------------------------------------------------------------------------
 * Order
 * ------------------------------------------------------------------------------------------- */

enum {
    WINDOW = 8 /* messages in progress */
};

/* Send message @p i of a window. Returns true if it is handled once there is a hint. */
static bool send_as(int i, const side_t *side, int tag, bool posted, MPI_Request *request)
{
    void *addr = side->buffer->addr;

    *request = MPI_REQUEST_NULL;
    switch (i) {
    case 1:
        MPI_OK(MPI_Send(addr, 1, side->type, 1, tag, MPI_COMM_WORLD));
        return false;
    case 2:
        MPI_OK(MPI_Issend(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        return true;
    case 3:
        MPI_OK(MPI_Ibsend(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        return false;
    case 4:
        if (posted) {
            MPI_OK(MPI_Irsend(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        } else {
            MPI_OK(MPI_Isend(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        }
        return true;
    case 5:
        MPI_OK(MPI_Isend(addr, 0, side->type, 1, tag, MPI_COMM_WORLD, request));
        return false;
    case 6:
        MPI_OK(MPI_Send_init(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        MPI_OK(MPI_Start(request));
        return true;
    default:
        MPI_OK(MPI_Isend(addr, 1, side->type, 1, tag, MPI_COMM_WORLD, request));
        return true;
    }
}

/* Messages with one tag arrive in their order. Returns how many are handled once there is a hint.
 */
static int window(uint64_t *state, int tag, bool posted)
{
    side_t sides[WINDOW];
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    int handled = 0;

    for (int i = 0; i < WINDOW; ++i) {
        const gpu_kind_t to = 0 == mpitest_between(state, 0, 3) ? GPU_HOST : GPU_DEVICE;
        const int bytes = sizes[mpitest_between(state, 0, 7)];

        sides[i] = side_new(to, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, bytes,
                            bytes + 8 * mpitest_between(state, 0, 30));
        sides[i].bytes = 5 == i ? 0 : bytes;
        prepare(&sides[i], (uint64_t) i);
        if (posted && !is_sender()) {
            post(&sides[i], tag, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WINDOW; ++i) {
        if (is_sender()) {
            handled += send_as(i, &sides[i], tag, posted, &requests[i]) ? 1 : 0;
        } else if (!posted) {
            post(&sides[i], tag, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_OK(MPI_Waitall(WINDOW, requests, statuses));
    for (int i = 0; i < WINDOW; ++i) {
        check(&sides[i], (uint64_t) i, tag, &statuses[i]);
        if (MPI_REQUEST_NULL != requests[i]) {
            MPI_OK(MPI_Request_free(&requests[i]));
        }
        side_free(&sides[i]);
    }
    return handled;
}

static void order(uint64_t *state)
{
    enum {
        WINDOWS = 10
    };
    static char room[WINDOW * (1024 + MPI_BSEND_OVERHEAD)];
    pvars_t before, seen;
    int handled = 0, size;
    void *attached;

    MPI_OK(MPI_Buffer_attach(room, sizeof(room)));
    for (int i = 0; i < WINDOWS; ++i) {
        (void) window(state, 7, 0 == i % 2); /* hints arrive meanwhile */
    }
    warm(7, MPI_COMM_WORLD);
    pvars_read(&before);
    for (int i = 0; i < WINDOWS; ++i) {
        handled += window(state, 7, 0 == i % 2);
    }
    seen = seen_by_all(&before);
    if (is_sender()) {
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS], handled);
    }
    MPI_OK(MPI_Buffer_detach(&attached, &size));
}

static void sends(uint64_t *state)
{
    pvars_t before;

    (void) state;
    if (!mpitest_has("sends")) {
        return;
    }
    warm(9, MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, sizes[i], 1023);

        for (int j = 0; j < 3 + TIMES; ++j) {
            if (3 == j) {
                pvars_read(&before);
            }
            prepare(&side, (uint64_t) j);
            if (is_sender()) {
                MPI_OK(MPI_Send(side.buffer->addr, 1, side.type, 1, 9, MPI_COMM_WORLD));
            } else {
                receive(&side, 5, 9, (uint64_t) j);
            }
        }
        check_steady(&before);
        side_free(&side);
    }
}

static void cancel(uint64_t *state)
{
    static const gpu_kind_t to[] = {GPU_HOST, GPU_DEVICE};
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    MPI_Request request;
    MPI_Status status;
    int cancelled;

    (void) state;
    warm(8, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) {
        side_t never =
            side_new(to[i % 2], MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 0 == i / 2 ? 8 : 400);

        if (!is_sender()) {
            prepare(&never, 0);
            post(&never, 8, MPI_COMM_WORLD, &request);
            MPI_OK(MPI_Cancel(&request));
            MPI_OK(MPI_Wait(&request, &status));
            MPI_OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK(cancelled);
            VERIFY(never.buffer, 0, 0);
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        transfer(&side, 8, MPI_COMM_WORLD, 2);
        side_free(&never);
    }
    side_free(&side);
}

static void tags(uint64_t *state)
{
    enum {
        AT_ONCE = 20,
        TAGS = 280,
        COUNT = 2 * TAGS
    };
    side_t sides[AT_ONCE];
    MPI_Request requests[AT_ONCE];
    MPI_Status statuses[AT_ONCE];
    pvars_t before, second, seen;

    (void) state;
    for (int i = 0; i < AT_ONCE; ++i) {
        sides[i] = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    }
    pvars_read(&before);
    for (int i = 0; i < COUNT; i += AT_ONCE) {
        if (TAGS == i) {
            progress(MPI_COMM_WORLD);
            pvars_read(&second);
        }
        for (int j = 0; j < AT_ONCE; ++j) {
            prepare(&sides[j], (uint64_t) i);
            post(&sides[j], 100 + (i + j) % TAGS, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_OK(MPI_Waitall(AT_ONCE, requests, statuses));
        for (int j = 0; j < AT_ONCE; ++j) {
            check(&sides[j], (uint64_t) i, 100 + (i + j) % TAGS, &statuses[j]);
        }
    }
    seen = seen_by_all(&before);
    CHECK_INT(seen.value[PVARS_SENDS_IPC] + seen.value[PVARS_STAGED_SENDS], COUNT);
    CHECK(0 < seen_by_all(&second).value[PVARS_SENDS_IPC]);
    for (int i = 0; i < AT_ONCE; ++i) {
        side_free(&sides[i]);
    }
}

static void freed(uint64_t *state)
{
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    side_t system = side_new(GPU_HOST, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 400);
    MPI_Comm comm;

    (void) state;
    for (int i = 0; i < 12; ++i) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        /* a hint of the previous communicator would let an envelope overwrite this buffer */
        transfer(&system, 1, comm, 1);
        transfer(&side, 1, comm, 2 + i % 4);
        MPI_OK(MPI_Comm_free(&comm));
    }
    side_free(&side);
    side_free(&system);
}

static void starts(uint64_t *state)
{
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    pvars_t before;

    (void) state;
    if (!mpitest_has("starts")) {
        return;
    }
    pvars_read(&before);
    for (int i = 0; i < 10; ++i) {
        persistent(&side, 1, 4);
        progress(MPI_COMM_WORLD);
    }
    CHECK(0 < seen_by_all(&before).value[PVARS_SENDS_IPC]);
    side_free(&side);
}

static void unused(uint64_t *state)
{
    enum {
        ROUNDS = 40,
        TAGS = 20
    };
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    pvars_t before, seen;
    char bytes[8] = {0};

    (void) state;
    if (!mpitest_has("unused")) {
        return;
    }
    pvars_read(&before);
    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Comm comm;

        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        for (int tag = 0; tag < TAGS; ++tag) {
            if (is_sender()) {
                MPI_OK(MPI_Send(bytes, 8, MPI_BYTE, 1, tag, comm));
            } else {
                MPI_OK(MPI_Recv(side.buffer->addr, 1, side.type, 0, tag, comm, MPI_STATUS_IGNORE));
            }
        }
        MPI_OK(MPI_Comm_free(&comm));
    }
    seen = seen_by_all(&before);
    CHECK(16 + 10 >= seen.value[PVARS_CONTROL_MESSAGES]);
    /* hints have become rare, but the first one that is used changes that */
    transfer(&side, 1, MPI_COMM_WORLD, ROUNDS * TAGS);
    warm(1, MPI_COMM_WORLD);
    side_free(&side);
}

static void refused(uint64_t *state)
{
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    pvars_t before, seen;

    (void) state;
    if (!mpitest_has("refused")) {
        return;
    }
    pvars_read(&before);
    for (int i = 0; i < 40; ++i) {
        transfer(&side, 1, MPI_COMM_WORLD, 5);
        progress(MPI_COMM_WORLD);
    }
    seen = seen_by_all(&before);
    CHECK(0 < seen.value[PVARS_FALLBACK_SENDS]);
    CHECK(4 + 4 >= seen.value[PVARS_FALLBACK_SENDS]);
    side_free(&side);
}

static void off(uint64_t *state)
{
    side_t side = side_new(GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS, 8, 8);
    pvars_t before, seen;

    (void) state;
    if (!mpitest_has("off")) {
        return;
    }
    pvars_read(&before);
    transfer(&side, 1, MPI_COMM_WORLD, 40);
    seen = seen_by_all(&before);
    CHECK_INT(seen.value[PVARS_STAGED_SENDS], 40);
    CHECK_INT(seen.value[PVARS_CONTROL_MESSAGES], 0);
    side_free(&side);
}

/* The parts of a collective are as long as its receives, so the first one is not staged. */
static void collective(uint64_t *state)
{
    enum {
        BYTES = 96,
        CALLS = 3
    };
    const int counts[2] = {BYTES, BYTES}, at[2] = {0, BYTES};
    const char *base = getenv("UMRDDT_TEST_BASE");
    gpu_memory_t *out, *in;
    unsigned char bytes[2 * BYTES];
    pvars_t before, seen;
    MPI_Comm comm;

    (void) state;
    if (0 == pvars_parameter("coll_umrddt_direct", 0)
        || (NULL != base && NULL != strstr(base, "cuda"))) {
        return;
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); /* without hints */
    out = gpu_memory(GPU_DEVICE, sizeof(bytes));
    in = gpu_memory(GPU_DEVICE, sizeof(bytes));
    pvars_read(&before);
    for (int i = 0; i < CALLS; ++i) {
        memset(bytes, 16 * i + mpitest.rank, sizeof(bytes));
        gpu_write(out, 0, bytes, sizeof(bytes));
        MPI_OK(
            MPI_Alltoallv(out->addr, counts, at, MPI_BYTE, in->addr, counts, at, MPI_BYTE, comm));
        gpu_read(in, 0, bytes, sizeof(bytes));
        for (int j = 0; j < 2 * BYTES; ++j) {
            CHECK_INT(bytes[j], 16 * i + j / BYTES);
        }
    }
    seen = seen_by_all(&before);
    CHECK_INT(seen.value[PVARS_STAGED_SENDS], 0);
    CHECK(2 * CALLS <= seen.value[PVARS_SENDS_IPC]);
    gpu_memory_free(in);
    gpu_memory_free(out);
    MPI_OK(MPI_Comm_free(&comm));
}

static void *thread(void *argument)
{
    const int tag = 20 + *(int *) argument;

    for (int i = 0; i < 24; ++i) {
        const bool to_host = 2 == i % 3;
        const int bytes = sizes[i % 8];
        side_t side = side_new(to_host ? GPU_HOST : GPU_DEVICE, MPITEST_CONTIGUOUS, MPITEST_FINE,
                               bytes, bytes + (to_host ? 160 : 0));

        transfer(&side, tag, MPI_COMM_WORLD, 10);
        side_free(&side);
    }
    return NULL;
}

static void threads(void)
{
    enum {
        COUNT = 4
    };
    pthread_t ids[COUNT];
    int numbers[COUNT];
    pvars_t before;

    for (int i = 0; i < COUNT; ++i) {
        warm(20 + i, MPI_COMM_WORLD);
    }
    pvars_read(&before);
    for (int i = 0; i < COUNT; ++i) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&ids[i], NULL, thread, &numbers[i]), 0);
    }
    for (int i = 0; i < COUNT; ++i) {
        CHECK_INT(pthread_join(ids[i], NULL), 0);
    }
    CHECK(0 < seen_by_all(&before).value[PVARS_SENDS_IPC]);
}

static const mpitest_part_t parts[] = {
    {"steady", steady},
    {"system", system_memory},
    {"earlier", earlier},
    {"match", match},
    {"truncated", truncated},
    {"blocking", blocking},
    {"order", order},
    {"cancel", cancel},
    {"tags", tags},
    {"freed", freed},
    {"sends", sends},
    {"collective", collective},
    {"starts", starts},
    {"unused", unused},
    {"refused", refused},
    {"off", off},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    bool several = false;

    for (int i = 1; i < argc; ++i) {
        several = several || 0 == strcmp(argv[i], "threads");
    }
    mpitest_init(&argc, &argv, "gpu_small", 1, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    gpu_begin_all();
    if (PVARS_MAX != pvars_open()) {
        mpitest_fail(__FILE__, __LINE__, "not all performance variables of pml/umrddt exist");
    }
    if (several) {
        threads();
    } else {
        mpitest_run(parts);
    }
    pvars_close();
    return mpitest_finish();
}
