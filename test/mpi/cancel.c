/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_Cancel and MPI_Request_free: of receives without a message, of matched receives, of sends, of
 * persistent requests and of matched messages; and frees after a cancel. A cancelled receive gets
 * no message, one that was not cancelled gets its message, and no message is lost or duplicated.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_DATA 1
#define TAG_WORD 2
#define SEVERAL  6

static MPI_Comm comm;
static int peer;

static void word(bool give)
{
    if (give) {
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_WORD, comm));
    } else {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_WORD, comm, MPI_STATUS_IGNORE));
    }
}

/* Drawn equally on both sides. Each side builds its own part. */
static void draw(mpitest_message_t **messages, int n, bool sending, uint64_t *state)
{
    int i;

    for (i = 0; i < n; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        int bytes = mpitest_draw_bytes(state);

        messages[i] = mpitest_message(kinds[sending ? 0 : 1], bytes, 1);
        if (sending) {
            mpitest_fill(messages[i]->buffer, (uint64_t) (mpitest.step * 100 + i));
        }
    }
}

static void drop(mpitest_message_t **messages, int n)
{
    int i;

    for (i = 0; i < n; ++i) {
        mpitest_message_free(messages[i]);
    }
}

static uint64_t key_of(int i)
{
    return (uint64_t) (mpitest.step * 100 + i);
}

static void check_cancelled(const MPI_Status *status)
{
    int cancelled = -1;

    MPI_OK(MPI_Test_cancelled(status, &cancelled));
    CHECK_INT(cancelled, 1);
}

static void send_all(mpitest_message_t **messages, int n)
{
    int i;

    for (i = 0; i < n; ++i) {
        MPI_OK((0 == i % 2 ? MPI_Send : MPI_Ssend)(messages[i]->addr, 1, messages[i]->type, peer,
                                                   TAG_DATA, comm));
    }
}

static void receive_all(mpitest_message_t **messages, int n)
{
    MPI_Status status;
    int i;

    for (i = 0; i < n; ++i) {
        MPI_OK(MPI_Recv(messages[i]->addr, 1, messages[i]->type, peer, TAG_DATA, comm, &status));
        CHECK_STATUS(&status, peer, TAG_DATA, messages[i]->bytes);
        VERIFY(messages[i]->buffer, key_of(i), messages[i]->bytes);
    }
}

/* No message was sent yet: every cancel succeeds, with any completion call. */
static void in_time(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[SEVERAL], *idle[SEVERAL];
    MPI_Request requests[SEVERAL];
    MPI_Status statuses[SEVERAL];
    int i, index = -1, flag, order[SEVERAL];

    draw(messages, SEVERAL, sending, state);
    for (i = 0; i < SEVERAL; ++i) {
        order[i] = i;
    }
    mpitest_shuffle(state, order, SEVERAL);
    if (!sending) {
        for (i = 0; i < SEVERAL; ++i) {
            /* Room for less than an envelope, and for more. */
            idle[i] = mpitest_message(messages[i]->bytes % 3 ? MPITEST_FINE : MPITEST_NESTED,
                                      0 == i % 2 ? 40 : 30000, 1);
            if (4 > i) {
                MPI_OK(MPI_Irecv(idle[i]->addr, 1, idle[i]->type, 1 == i ? MPI_ANY_SOURCE : peer,
                                 3 == i ? MPI_ANY_TAG : TAG_DATA, comm, &requests[i]));
            } else {
                MPI_OK(MPI_Recv_init(idle[i]->addr, 1, idle[i]->type, peer, TAG_DATA, comm,
                                     &requests[i]));
                MPI_OK(MPI_Start(&requests[i]));
            }
        }
        for (i = 0; i < SEVERAL; ++i) {
            MPI_OK(MPI_Cancel(&requests[order[i]]));
        }
        MPI_OK(MPI_Wait(&requests[0], &statuses[0]));
        for (flag = 0; !flag;) {
            MPI_OK(MPI_Test(&requests[1], &flag, &statuses[1]));
        }
        MPI_OK(MPI_Waitany(1, &requests[2], &index, &statuses[2]));
        CHECK_INT(index, 0);
        MPI_OK(MPI_Waitall(SEVERAL - 3, &requests[3], &statuses[3]));
        for (i = 0; i < SEVERAL; ++i) {
            check_cancelled(&statuses[i]);
            VERIFY(idle[i]->buffer, 0, 0);
            CHECK((MPI_REQUEST_NULL == requests[i]) == (4 > i));
        }
        for (i = 4; i < SEVERAL; ++i) {
            MPI_OK(MPI_Request_free(&requests[i]));
        }
    }
    word(!sending);
    /* Later messages match receives that were posted after the cancel. */
    if (sending) {
        send_all(messages, SEVERAL);
    } else {
        receive_all(messages, SEVERAL);
        drop(idle, SEVERAL);
    }
    drop(messages, SEVERAL);
}

/* Cancelled and freed without a wait: the receive is gone, and gets no message. */
static void free_behind_cancel(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[3], *idle[3];
    MPI_Request request;
    int i;

    draw(messages, 3, sending, state);
    for (i = 0; i < 3; ++i) {
        idle[i] = mpitest_message(MPITEST_COARSE, 1 == i ? 16 : 200000, 1);
    }
    if (!sending) {
        for (i = 0; i < 3; ++i) {
            if (2 > i) {
                MPI_OK(MPI_Irecv(idle[i]->addr, 1, idle[i]->type, MPI_ANY_SOURCE, TAG_DATA, comm,
                                 &request));
            } else {
                MPI_OK(
                    MPI_Recv_init(idle[i]->addr, 1, idle[i]->type, peer, TAG_DATA, comm, &request));
                MPI_OK(MPI_Start(&request));
            }
            MPI_OK(MPI_Cancel(&request));
            MPI_OK(MPI_Request_free(&request));
            CHECK(MPI_REQUEST_NULL == request);
        }
    }
    word(!sending);
    if (sending) {
        send_all(messages, 3);
    } else {
        receive_all(messages, 3);
        for (i = 0; i < 3; ++i) {
            VERIFY(idle[i]->buffer, 0, 0);
        }
    }
    drop(messages, 3);
    drop(idle, 3);
}

/* A later message of the same sender has arrived, so this receive was matched: too late. */
static void too_late(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[SEVERAL];
    MPI_Request requests[SEVERAL];
    MPI_Status status;
    int i;

    draw(messages, SEVERAL, sending, state);
    if (sending) {
        word(false);
        for (i = 0; i < SEVERAL; ++i) {
            MPI_OK(MPI_Isend(messages[i]->addr, 1, messages[i]->type, peer, TAG_DATA, comm,
                             &requests[i]));
        }
        word(true);
        MPI_OK(MPI_Waitall(SEVERAL, requests, MPI_STATUSES_IGNORE));
    } else {
        for (i = 0; i < SEVERAL; ++i) {
            if (0 == i % 3) {
                MPI_OK(MPI_Recv_init(messages[i]->addr, 1, messages[i]->type, peer, TAG_DATA, comm,
                                     &requests[i]));
                MPI_OK(MPI_Start(&requests[i]));
            } else {
                MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, peer, TAG_DATA, comm,
                                 &requests[i]));
            }
        }
        word(true);
        word(false);
        for (i = 0; i < SEVERAL; ++i) {
            MPI_OK(MPI_Cancel(&requests[i]));
        }
        for (i = SEVERAL - 1; 0 <= i; --i) {
            MPI_OK(MPI_Wait(&requests[i], &status));
            CHECK_STATUS(&status, peer, TAG_DATA, messages[i]->bytes);
            VERIFY(messages[i]->buffer, key_of(i), messages[i]->bytes);
            if (0 == i % 3) {
                MPI_OK(MPI_Request_free(&requests[i]));
            }
        }
    }
    drop(messages, SEVERAL);
}

/* A message that Mprobe matched cannot be cancelled any more, and its receive may be freed. */
static void matched(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[3];
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int i;

    draw(messages, 3, sending, state);
    if (sending) {
        MPI_Request sends[3];

        for (i = 0; i < 3; ++i) {
            MPI_OK(MPI_Isend(messages[i]->addr, 1, messages[i]->type, peer, TAG_DATA, comm,
                             &sends[i]));
        }
        MPI_OK(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE));
        word(true);
    } else {
        for (i = 0; i < 3; ++i) {
            MPI_OK(MPI_Mprobe(peer, TAG_DATA, comm, &message, &status));
            CHECK_STATUS(&status, peer, TAG_DATA, messages[i]->bytes);
            MPI_OK(MPI_Imrecv(messages[i]->addr, 1, messages[i]->type, &message, &request));
            MPI_OK(MPI_Cancel(&request));
            MPI_OK(MPI_Wait(&request, &status));
            CHECK_STATUS(&status, peer, TAG_DATA, messages[i]->bytes);
            VERIFY(messages[i]->buffer, key_of(i), messages[i]->bytes);
        }
        word(false);
    }
    drop(messages, 3);
}

/*
 * Sends: whether cancelled or not, both sides agree. The standard requires that a wait for a
 * cancelled send ends without the receiver. Open MPI does not do that for long messages, so there
 * is a receive.
 */
static void sends(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[SEVERAL];
    MPI_Request requests[SEVERAL];
    int i, cancelled[SEVERAL], over = 0;
    MPI_Status status;

    draw(messages, SEVERAL, sending, state);
    if (sending) {
        for (i = 0; i < SEVERAL; ++i) {
            mpitest_message_t *message = messages[i];

            if (0 == i % 3) {
                MPI_OK(
                    MPI_Isend(message->addr, 1, message->type, peer, 10 + i, comm, &requests[i]));
            } else if (1 == i % 3) {
                MPI_OK(
                    MPI_Issend(message->addr, 1, message->type, peer, 10 + i, comm, &requests[i]));
            } else {
                MPI_OK(MPI_Send_init(message->addr, 1, message->type, peer, 10 + i, comm,
                                     &requests[i]));
                MPI_OK(MPI_Start(&requests[i]));
            }
            MPI_OK(MPI_Cancel(&requests[i]));
        }
        word(true);
        word(false);
        for (i = 0; i < SEVERAL; ++i) {
            MPI_OK(MPI_Wait(&requests[i], &status));
            MPI_OK(MPI_Test_cancelled(&status, &cancelled[i]));
            VERIFY(messages[i]->buffer, key_of(i), messages[i]->bytes);
            if (2 == i % 3) {
                MPI_OK(MPI_Request_free(&requests[i]));
            }
        }
        MPI_OK(MPI_Send(cancelled, SEVERAL, MPI_INT, peer, TAG_WORD, comm));
    } else {
        word(false);
        for (i = 0; i < SEVERAL; ++i) {
            MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, peer, 10 + i, comm,
                             &requests[i]));
        }
        word(true);
        MPI_OK(MPI_Recv(cancelled, SEVERAL, MPI_INT, peer, TAG_WORD, comm, MPI_STATUS_IGNORE));
        for (i = 0; i < SEVERAL; ++i) {
            if (cancelled[i]) {
                MPI_OK(MPI_Cancel(&requests[i]));
            }
            MPI_OK(MPI_Wait(&requests[i], &status));
            MPI_OK(MPI_Test_cancelled(&status, &over));
            CHECK_INT(over, cancelled[i]);
            if (!cancelled[i]) {
                CHECK_STATUS(&status, peer, 10 + i, messages[i]->bytes);
            }
            VERIFY(messages[i]->buffer, key_of(i), cancelled[i] ? 0 : messages[i]->bytes);
        }
    }
    drop(messages, SEVERAL);
}

/* Active persistent receives, and receives of matched messages, are freed: their messages arrive.
 */
static void freed(bool sending, uint64_t *state)
{
    mpitest_message_t *messages[4];
    MPI_Request request, requests[4];
    MPI_Message message;
    MPI_Status status;
    int i, flag = 0;

    draw(messages, 4, sending, state);
    if (sending) {
        word(false);
        for (i = 0; i < 4; ++i) {
            MPI_OK(MPI_Issend(messages[i]->addr, 1, messages[i]->type, peer, 20 + i, comm,
                              &requests[i]));
        }
        MPI_OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        word(false);
    } else {
        for (i = 0; i < 2; ++i) {
            MPI_OK(MPI_Recv_init(messages[i]->addr, 1, messages[i]->type, peer, 20 + i, comm,
                                 &request));
            MPI_OK(MPI_Start(&request));
            MPI_OK(MPI_Request_free(&request));
            CHECK(MPI_REQUEST_NULL == request);
        }
        word(true);
        for (i = 2; i < 4; ++i) {
            MPI_OK(MPI_Mprobe(peer, 20 + i, comm, &message, &status));
            MPI_OK(MPI_Imrecv(messages[i]->addr, 1, messages[i]->type, &message, &request));
            MPI_OK(MPI_Request_free(&request));
        }
        for (i = 0; i < 4; ++i) {
            while (!mpitest_arrived(messages[i]->buffer, key_of(i), messages[i]->bytes)) {
                MPI_OK(MPI_Iprobe(peer, 998, comm, &flag, MPI_STATUS_IGNORE));
            }
            VERIFY(messages[i]->buffer, key_of(i), messages[i]->bytes);
        }
        word(true);
    }
    for (i = 0; i < 4; ++i) {
        (sending ? mpitest_message_free : mpitest_message_leave)(messages[i]);
    }
}

int main(int argc, char **argv)
{
    typedef void (*part_fn_t)(bool sending, uint64_t *state);
    static const part_fn_t parts[] = {in_time, free_behind_cancel, too_late, matched, sends, freed};
    int count = sizeof(parts) / sizeof(parts[0]), i;
    long op;

    mpitest_init(&argc, &argv, "cancel", 3, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank / 2, 0, &comm));
    peer = 1 - mpitest.rank % 2;
    for (op = 0; op < mpitest.ops; ++op) {
        for (i = 0; i < count; ++i) {
            uint64_t state;

            mpitest.step = op * count + i;
            state = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, (uint64_t) mpitest.rank / 2);
            parts[i]((0 == mpitest.rank % 2) == (0 == mpitest_random(&state) % 2), &state);
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
    return mpitest_finish();
}
