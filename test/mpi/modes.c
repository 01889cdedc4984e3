/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The four send modes, each blocking, nonblocking and persistent, to receives that were posted
 * before and after. Besides the data, the semantics of the mode are checked. A synchronous send
 * does not complete before its receive is posted; a buffered send completes without it, and its
 * buffer is free; a ready send finds its receive. The sender reports the completion of its send by
 * an empty message after it.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_DATA 1
#define TAG_OVER 2
#define TAG_GO   3
#define LARGEST  100000
#define ROUNDS   2

typedef enum send_mode_t {
    MODE_STANDARD,
    MODE_SYNCHRONOUS,
    MODE_READY,
    MODE_BUFFERED,
    MODE_MAX
} send_mode_t;

typedef enum form_t {
    FORM_BLOCKING,
    FORM_NONBLOCKING,
    FORM_PERSISTENT,
    FORM_MAX
} form_t;

typedef int (*send_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*isend_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static MPI_Comm comm;
static int peer;

static void go(bool give)
{
    if (give) {
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_GO, comm));
    } else {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_GO, comm, MPI_STATUS_IGNORE));
    }
}

/* One send that is complete at the return. */
static void send_one(const mpitest_message_t *message, send_mode_t mode, form_t form,
                     MPI_Request *persistent)
{
    static const send_fn_t blocking[MODE_MAX] = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
    static const isend_fn_t nonblocking[MODE_MAX] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
    static const isend_fn_t init[MODE_MAX] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init,
                                              MPI_Bsend_init};
    MPI_Request request;

    switch (form) {
    case FORM_BLOCKING:
        MPI_OK(blocking[mode](message->addr, 1, message->type, peer, TAG_DATA, comm));
        break;
    case FORM_NONBLOCKING:
        MPI_OK(nonblocking[mode](message->addr, 1, message->type, peer, TAG_DATA, comm, &request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(MPI_REQUEST_NULL == request);
        break;
    default:
        if (MPI_REQUEST_NULL == *persistent) {
            MPI_OK(init[mode](message->addr, 1, message->type, peer, TAG_DATA, comm, persistent));
        }
        MPI_OK(MPI_Start(persistent));
        MPI_OK(MPI_Wait(persistent, MPI_STATUS_IGNORE));
        CHECK(MPI_REQUEST_NULL != *persistent);
        break;
    }
}

static void sender(send_mode_t mode, form_t form, bool early, mpitest_message_t *message,
                   uint64_t key)
{
    MPI_Request persistent = MPI_REQUEST_NULL;
    int round;

    for (round = 0; round < ROUNDS; ++round) {
        mpitest_fill(message->buffer, key + (uint64_t) round);
        if (early) {
            go(false);
        }
        send_one(message, mode, form, &persistent);
        if (MODE_BUFFERED == mode && FORM_PERSISTENT == form && mpitest_base_is("ob1")) {
            /* pml/ob1 of Open MPI 4.1.4 alone sends wrong data when it is started again. */
            MPI_OK(MPI_Request_free(&persistent));
        }
        VERIFY(message->buffer, key + (uint64_t) round, message->bytes);
        mpitest_clear(message->buffer); /* may be reused, whatever the state of the message */
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_OVER, comm));
        go(false);
    }
    if (MPI_REQUEST_NULL != persistent) {
        MPI_OK(MPI_Request_free(&persistent));
    }
}

static void receiver(send_mode_t mode, bool early, mpitest_message_t *message, int bytes,
                     uint64_t key)
{
    MPI_Request request;
    MPI_Status status;
    int round, turn, flag = 0;

    for (round = 0; round < ROUNDS; ++round) {
        mpitest_clear(message->buffer);
        if (early) {
            MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, TAG_DATA, comm, &request));
            go(true);
        } else if (MODE_BUFFERED == mode) {
            /* Completes without the receiver: this message arrives although the earlier one has no
             * receive. */
            MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_OVER, comm, MPI_STATUS_IGNORE));
        } else {
            for (turn = 0; turn < 12; ++turn) {
                MPI_OK(MPI_Iprobe(peer, TAG_OVER, comm, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag || MODE_SYNCHRONOUS != mode);
                mpitest_sleep(100);
            }
        }
        if (!early) {
            MPI_OK(MPI_Irecv(message->addr, 1, message->type, MPI_ANY_SOURCE, TAG_DATA, comm,
                             &request));
        }
        MPI_OK(MPI_Wait(&request, &status));
        CHECK_STATUS(&status, peer, TAG_DATA, bytes);
        VERIFY(message->buffer, key + (uint64_t) round, bytes);
        if (early || MODE_BUFFERED != mode) {
            MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_OVER, comm, MPI_STATUS_IGNORE));
        }
        go(true);
    }
}

static void one(send_mode_t mode, form_t form, bool early, bool sending, uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state), more = 0 == mpitest_random(state) % 3 ? 100 : 0;
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    uint64_t key = mpitest_random(state);
    mpitest_message_t *message =
        mpitest_message(kinds[sending ? 0 : 1], sending ? bytes : bytes + more, key);

    if (sending) {
        sender(mode, form, early, message, key);
    } else {
        receiver(mode, early, message, bytes, key);
    }
    mpitest_message_free(message);
}

/* Detaching the buffer waits for its messages, and returns it. */
static void detach(bool sending, uint64_t *state)
{
    int size = 2 * (LARGEST + MPI_BSEND_OVERHEAD), detached = 0;
    mpitest_kind_t kinds[2] = {MPITEST_COARSE, mpitest_draw_kind(state)};
    mpitest_message_t *message = mpitest_message(kinds[sending ? 0 : 1], LARGEST, 0);
    uint64_t key = mpitest_random(state);
    void *space = malloc((size_t) size), *gone = NULL;
    MPI_Status status;

    CHECK(NULL != space);
    if (sending) {
        MPI_OK(MPI_Buffer_attach(space, size));
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Bsend(message->addr, 1, message->type, peer, TAG_DATA, comm));
        MPI_OK(MPI_Buffer_detach(&gone, &detached));
        CHECK(gone == space && detached == size);
        memset(space, 0xee, (size_t) size);
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_OVER, comm));
    } else {
        mpitest_sleep(2000);
        MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, TAG_DATA, comm, &status));
        CHECK_STATUS(&status, peer, TAG_DATA, LARGEST);
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_OVER, comm, MPI_STATUS_IGNORE));
        VERIFY(message->buffer, key, LARGEST);
    }
    free(space);
    mpitest_message_free(message);
}

int main(int argc, char **argv)
{
    int size = 4 * (LARGEST + MPI_BSEND_OVERHEAD), detached = 0, mode, form, early;
    void *space, *gone;
    uint64_t state;
    long op;

    mpitest_init(&argc, &argv, "modes", 3, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank / 2, 0, &comm));
    peer = 1 - mpitest.rank % 2;
    space = malloc((size_t) size);
    CHECK(NULL != space);
    for (op = 0; op < mpitest.ops; ++op) {
        state = mpitest_mix(mpitest.seed, (uint64_t) op, (uint64_t) mpitest.rank / 2);
        MPI_OK(MPI_Buffer_attach(space, size));
        for (mode = 0; mode < MODE_MAX; ++mode) {
            for (form = 0; form < FORM_MAX; ++form) {
                for (early = MODE_READY == mode ? 1 : 0; early < 2; ++early) {
                    bool sending = (0 == mpitest.rank % 2) == (0 == mpitest_random(&state) % 2);

                    mpitest.step = op * 100 + mode * 10 + form * 2 + early;
                    one((send_mode_t) mode, (form_t) form, 0 != early, sending, &state);
                }
            }
        }
        mpitest.step = op * 100 + 99;
        MPI_OK(MPI_Buffer_detach(&gone, &detached));
        detach((0 == mpitest.rank % 2) == (0 == op % 2), &state);
    }
    free(space);
    MPI_OK(MPI_Comm_free(&comm));
    return mpitest_finish();
}
