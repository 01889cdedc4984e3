/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Lifetimes of requests: freed while active, cancelled in time and too late, restarted, outliving
 * their datatype and their communicator. Ranks 2k and 2k + 1 work as a pair.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm comm;
static int peer;

/* The peer confirms that it has all messages. */
static void acknowledge(bool give)
{
    if (give) {
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, 999, comm));
    } else {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, 999, comm, MPI_STATUS_IGNORE));
    }
}

static void check_count(const MPI_Status *status, int bytes)
{
    int count = -1;

    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_INT(count, bytes);
}

/* Send requests freed immediately: the messages still arrive. */
static void free_sends(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[4];
    uint64_t key = mpitest_random(state);
    MPI_Request request;
    MPI_Status status;
    int i;

    for (i = 0; i < 4; ++i) {
        int bytes = mpitest_draw_bytes(state);
        mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);

        messages[i] = mpitest_message(sender ? from : to, bytes, key);
    }
    for (i = 0; i < 4; ++i) {
        mpitest_message_t *message = messages[i];

        if (sender) {
            mpitest_fill(message->buffer, key + (uint64_t) i);
            switch (i) {
            case 0:
                MPI_OK(MPI_Isend(message->addr, 1, message->type, peer, 1, comm, &request));
                break;
            case 1:
                MPI_OK(MPI_Issend(message->addr, 1, message->type, peer, 1, comm, &request));
                break;
            default:
                MPI_OK(MPI_Send_init(message->addr, 1, message->type, peer, 1, comm, &request));
                MPI_OK(MPI_Start(&request));
                break;
            }
            MPI_OK(MPI_Request_free(&request));
            CHECK(MPI_REQUEST_NULL == request);
        } else {
            MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, 1, comm, &status));
            check_count(&status, message->bytes);
            VERIFY(message->buffer, key + (uint64_t) i, message->bytes);
        }
    }
    acknowledge(!sender);
    for (i = 0; i < 4; ++i) {
        mpitest_message_free(messages[i]);
    }
}

/* Receive requests freed immediately: the data still arrives, in the order of posting. */
static void free_receives(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[3];
    uint64_t key = mpitest_random(state);
    MPI_Request request;
    int i, flag;

    for (i = 0; i < 3; ++i) {
        int bytes = mpitest_draw_bytes(state);
        mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);

        messages[i] = mpitest_message(sender ? from : to, bytes, key);
        if (sender) {
            mpitest_fill(messages[i]->buffer, key + (uint64_t) i);
        } else if (2 == i) {
            MPI_OK(MPI_Recv_init(messages[i]->addr, 1, messages[i]->type, peer, 2, comm, &request));
            MPI_OK(MPI_Start(&request));
            MPI_OK(MPI_Request_free(&request));
        } else {
            MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, peer, 2, comm, &request));
            MPI_OK(MPI_Request_free(&request));
        }
    }
    acknowledge(!sender);
    for (i = 0; i < 3; ++i) {
        if (sender) {
            MPI_OK(MPI_Send(messages[i]->addr, 1, messages[i]->type, peer, 2, comm));
        } else {
            /* No request is left to wait for: drive MPI progress until the data is there; the
             * deadline limits it. */
            while (!mpitest_arrived(messages[i]->buffer, key + (uint64_t) i, messages[i]->bytes)) {
                MPI_OK(MPI_Iprobe(peer, 998, comm, &flag, MPI_STATUS_IGNORE));
            }
            VERIFY(messages[i]->buffer, key + (uint64_t) i, messages[i]->bytes);
        }
    }
    acknowledge(!sender);
    for (i = 0; i < 3; ++i) {
        (sender ? mpitest_message_free : mpitest_message_leave)(messages[i]);
    }
}

/* Receives that never match are cancelled; other receives are not affected. */
static void cancel_unmatched(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[5];
    uint64_t key = mpitest_random(state);
    MPI_Request requests[5];
    MPI_Status status;
    int i, bytes[5], cancelled = -1;
    mpitest_kind_t kinds[5][2];

    for (i = 0; i < 5; ++i) {
        bytes[i] = mpitest_draw_bytes(state);
        kinds[i][0] = mpitest_draw_kind(state);
        kinds[i][1] = mpitest_draw_kind(state);
    }
    for (i = 0; i < 5; ++i) {
        messages[i] = mpitest_message(kinds[i][sender ? 0 : 1], bytes[i], key);
    }
    if (sender) {
        acknowledge(false);
        for (i = 0; i < 5; i += 2) {
            mpitest_fill(messages[i]->buffer, key + (uint64_t) i);
            MPI_OK(MPI_Send(messages[i]->addr, 1, messages[i]->type, peer, 3, comm));
        }
    } else {
        for (i = 0; i < 5; ++i) {
            int tag = 0 == i % 2 ? 3 : 4;

            if (3 == i) {
                MPI_OK(MPI_Recv_init(messages[i]->addr, 1, messages[i]->type, peer, tag, comm,
                                     &requests[i]));
                MPI_OK(MPI_Start(&requests[i]));
            } else {
                MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type,
                                 2 == i ? MPI_ANY_SOURCE : peer, tag, comm, &requests[i]));
            }
        }
        for (i = 1; i < 5; i += 2) {
            MPI_OK(MPI_Cancel(&requests[i]));
            MPI_OK(MPI_Wait(&requests[i], &status));
            MPI_OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK_INT(cancelled, 1);
            VERIFY(messages[i]->buffer, 0, 0);
        }
        /* A cancelled persistent request can be started, and cancelled, again. */
        MPI_OK(MPI_Start(&requests[3]));
        MPI_OK(MPI_Cancel(&requests[3]));
        MPI_OK(MPI_Wait(&requests[3], &status));
        MPI_OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK_INT(cancelled, 1);
        MPI_OK(MPI_Request_free(&requests[3]));
        acknowledge(true);
        for (i = 0; i < 5; i += 2) {
            MPI_OK(MPI_Wait(&requests[i], &status));
            MPI_OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK_INT(cancelled, 0);
            check_count(&status, bytes[i]);
            VERIFY(messages[i]->buffer, key + (uint64_t) i, bytes[i]);
        }
    }
    for (i = 0; i < 5; ++i) {
        mpitest_message_free(messages[i]);
    }
}

/* A cancel that races with its message: the receive is cancelled and the message is still there, or
 * neither. */
static void cancel_raced(bool sender, uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state), cancelled = -1;
    mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);
    mpitest_message_t *message = mpitest_message(sender ? from : to, bytes, 0);
    uint64_t key = mpitest_random(state);
    long wait[2];
    bool persistent;
    MPI_Request request;
    MPI_Status status;

    wait[0] = mpitest_between(state, 0, 400);
    wait[1] = mpitest_between(state, 0, 400);
    persistent = 0 == mpitest_random(state) % 3;
    acknowledge(sender);
    mpitest_sleep(wait[sender ? 0 : 1]);
    if (sender) {
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Isend(message->addr, 1, message->type, peer, 5, comm, &request));
        MPI_OK(MPI_Wait(&request, &status));
    } else {
        if (persistent) {
            MPI_OK(MPI_Recv_init(message->addr, 1, message->type, peer, 5, comm, &request));
            MPI_OK(MPI_Start(&request));
        } else {
            MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, 5, comm, &request));
        }
        MPI_OK(MPI_Cancel(&request));
        MPI_OK(MPI_Wait(&request, &status));
        MPI_OK(MPI_Test_cancelled(&status, &cancelled));
        if (persistent) {
            MPI_OK(MPI_Request_free(&request));
        }
        if (cancelled) {
            VERIFY(message->buffer, 0, 0);
            MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, 5, comm, &status));
        }
        check_count(&status, bytes);
        VERIFY(message->buffer, key, bytes);
    }
    mpitest_message_free(message);
}

/* Datatype and communicator are freed while both ends are pending. */
static void outlive(bool sender, uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state);
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    mpitest_kind_t kind = kinds[sender ? 0 : 1];
    uint64_t key = mpitest_random(state);
    MPI_Datatype type = mpitest_type(kind, bytes, key), other[8];
    mpitest_message_t *message = mpitest_message(kind, bytes, key);
    MPI_Request request;
    MPI_Status status;
    MPI_Comm own;
    int i;

    MPI_OK(MPI_Comm_dup(comm, &own));
    if (sender) {
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Issend(message->addr, 1, type, peer, 6, own, &request));
    } else {
        mpitest_sleep(mpitest_between(state, 0, 300));
        MPI_OK(MPI_Irecv(message->addr, 1, type, peer, 6, own, &request));
    }
    MPI_OK(MPI_Type_free(&type));
    /* Most likely these get the memory of the freed one. */
    for (i = 0; i < 8; ++i) {
        other[i] = mpitest_type(MPITEST_COARSE, 3000 + i, key);
    }
    MPI_OK(MPI_Comm_free(&own));
    MPI_OK(MPI_Wait(&request, &status));
    if (!sender) {
        check_count(&status, bytes);
    }
    VERIFY(message->buffer, key, bytes);
    for (i = 0; i < 8; ++i) {
        MPI_OK(MPI_Type_free(&other[i]));
    }
    mpitest_message_free(message);
}

/* Several persistent requests of one pair, started in changing order, with new data each time. */
static void persistent_sets(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[5];
    MPI_Request requests[5];
    MPI_Status statuses[5];
    int i, turn, order[5], cancelled = -1;
    const char *host = getenv("UMRDDT_TEST_HOST");
    uint64_t key = mpitest_random(state);

    for (i = 0; i < 5; ++i) {
        int bytes = mpitest_draw_bytes(state);
        mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);

        messages[i] = mpitest_message(sender ? from : to, bytes, key);
        order[i] = i;
        if (sender) {
            MPI_OK((0 == i % 2 ? MPI_Send_init : MPI_Ssend_init)(
                messages[i]->addr, 1, messages[i]->type, peer, 10 + i, comm, &requests[i]));
        } else {
            MPI_OK(MPI_Recv_init(messages[i]->addr, 1, messages[i]->type, peer, 10 + i, comm,
                                 &requests[i]));
        }
    }
    for (turn = 0; turn < 4; ++turn) {
        /*
         * Not started yet, or complete: a wait returns an empty status immediately. (With pml/ucx
         * of Open MPI 4.1.4 alone, a wait for a request that was never started hangs.)
         */
        if (0 < turn || NULL == host || 0 != strcmp(host, "ucx")) {
            MPI_OK(MPI_Wait(&requests[0], &statuses[0]));
            CHECK_INT(statuses[0].MPI_SOURCE, MPI_ANY_SOURCE);
            check_count(&statuses[0], 0);
            MPI_OK(MPI_Test_cancelled(&statuses[0], &cancelled));
            CHECK_INT(cancelled, 0);
        }
        for (i = 0; i < 5; ++i) {
            if (sender) {
                mpitest_fill(messages[i]->buffer, key + (uint64_t) (8 * turn + i));
            } else {
                mpitest_clear(messages[i]->buffer);
            }
        }
        mpitest_shuffle(state, order, 5);
        for (i = 0; i < 5; ++i) {
            MPI_OK(MPI_Start(&requests[order[i]]));
        }
        MPI_OK(MPI_Waitall(5, requests, statuses));
        for (i = 0; i < 5; ++i) {
            if (!sender) {
                CHECK_INT(statuses[i].MPI_TAG, 10 + i);
                check_count(&statuses[i], messages[i]->bytes);
            }
            VERIFY(messages[i]->buffer, key + (uint64_t) (8 * turn + i), messages[i]->bytes);
        }
    }
    for (i = 0; i < 5; ++i) {
        MPI_OK(MPI_Request_free(&requests[i]));
        mpitest_message_free(messages[i]);
    }
}

/* Request_get_status must return true on every call, and leave the request for Wait. */
static void requested_twice(bool sender, uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state), flag = 0, i;
    mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);
    mpitest_message_t *message = mpitest_message(sender ? from : to, bytes, 1);
    uint64_t key = mpitest_random(state);
    MPI_Request request, null = MPI_REQUEST_NULL;
    MPI_Status status;

    if (sender) {
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Isend(message->addr, 1, message->type, peer, 7, comm, &request));
    } else {
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, MPI_ANY_SOURCE, 7, comm, &request));
    }
    while (!flag) {
        MPI_OK(MPI_Request_get_status(request, &flag, &status));
    }
    for (i = 0; i < 3; ++i) {
        MPI_OK(MPI_Request_get_status(request, &flag, &status));
        CHECK(flag && MPI_REQUEST_NULL != request);
        if (!sender) {
            CHECK_INT(status.MPI_SOURCE, peer);
            check_count(&status, bytes);
            VERIFY(message->buffer, key, bytes);
        }
    }
    MPI_OK(MPI_Wait(&request, &status));
    CHECK(MPI_REQUEST_NULL == request);
    if (!sender) {
        check_count(&status, bytes);
    }
    MPI_OK(MPI_Request_get_status(null, &flag, &status));
    CHECK(flag);
    mpitest_message_free(message);
}

/* A synchronous send must not complete before its receive is posted, with any scheme. */
static void synchronous(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[3];
    MPI_Request requests[3];
    uint64_t key = mpitest_random(state);
    int i, turn, flag = 0;
    MPI_Status status;

    for (i = 0; i < 3; ++i) {
        int bytes = mpitest_draw_bytes(state);
        mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);

        messages[i] = mpitest_message(sender ? from : to, bytes, key);
        if (sender) {
            mpitest_fill(messages[i]->buffer, key + (uint64_t) i);
            MPI_OK(MPI_Issend(messages[i]->addr, 1, messages[i]->type, peer, 50 + i, comm,
                              &requests[i]));
        }
    }
    if (sender) {
        for (turn = 0; turn < 20; ++turn) {
            for (i = 0; i < 3; ++i) {
                MPI_OK(MPI_Test(&requests[i], &flag, &status));
                CHECK(!flag);
            }
            mpitest_sleep(200);
        }
    } else {
        /* Let the messages come in, unexpected. */
        for (turn = 0; turn < 20; ++turn) {
            MPI_OK(MPI_Iprobe(peer, 997, comm, &flag, &status));
            CHECK(!flag);
            mpitest_sleep(100);
        }
    }
    acknowledge(sender);
    for (i = 2; 0 <= i; --i) {
        if (!sender) {
            MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, peer, 50 + i, comm,
                             &requests[i]));
        }
        MPI_OK(MPI_Wait(&requests[i], &status));
        if (!sender) {
            check_count(&status, messages[i]->bytes);
        }
        VERIFY(messages[i]->buffer, key + (uint64_t) i, messages[i]->bytes);
    }
    for (i = 0; i < 3; ++i) {
        mpitest_message_free(messages[i]);
    }
}

/* Receives pending at a dozen levels, completed from the last to the first. */
static void backwards(bool sender, uint64_t *state)
{
    mpitest_message_t *messages[12];
    MPI_Request requests[12];
    uint64_t key = mpitest_random(state);
    MPI_Status status;
    int i, flag = 0;

    for (i = 0; i < 12; ++i) {
        int bytes = mpitest_draw_bytes(state);
        mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);

        messages[i] = mpitest_message(sender ? from : to, bytes, key);
        if (sender) {
            mpitest_fill(messages[i]->buffer, key + (uint64_t) i);
            MPI_OK(MPI_Issend(messages[i]->addr, 1, messages[i]->type, peer, 30 + i, comm,
                              &requests[i]));
        }
    }
    for (i = 11; 0 <= i; --i) {
        if (!sender) {
            MPI_OK(MPI_Irecv(messages[i]->addr, 1, messages[i]->type, peer, 30 + i, comm,
                             &requests[i]));
        }
        for (flag = 0; !flag;) {
            MPI_OK(MPI_Test(&requests[i], &flag, &status));
        }
        if (!sender) {
            CHECK_INT(status.MPI_TAG, 30 + i);
            check_count(&status, messages[i]->bytes);
        }
        VERIFY(messages[i]->buffer, key + (uint64_t) i, messages[i]->bytes);
    }
    for (i = 0; i < 12; ++i) {
        mpitest_message_free(messages[i]);
    }
}

/* MPI_Start of an active request is an error, which changes nothing. (Only by name: pml/ob1 of Open
 * MPI 4.1.4 starts its own requests again.) */
static void started_twice(bool sender, uint64_t *state)
{
    mpitest_message_t *message = mpitest_message(MPITEST_COARSE, 60000, 1);
    uint64_t key = mpitest_random(state);
    MPI_Request request;

    if (!mpitest_has("started_twice")) {
        mpitest_message_free(message);
        return;
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    if (sender) {
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Send_init(message->addr, 1, message->type, peer, 7, comm, &request));
    } else {
        mpitest_clear(message->buffer);
        MPI_OK(MPI_Recv_init(message->addr, 1, message->type, peer, 7, comm, &request));
    }
    for (int round = 0; round < 2; ++round) {
        if (sender) {
            /* the receive is not started, so the send stays active */
            MPI_OK(MPI_Start(&request));
            CHECK_INT(mpitest_error_class(MPI_Start(&request)), MPI_ERR_REQUEST);
            MPI_OK(MPI_Send(NULL, 0, MPI_INT, peer, 8, comm));
            MPI_OK(MPI_Recv(NULL, 0, MPI_INT, peer, 8, comm, MPI_STATUS_IGNORE));
        } else {
            MPI_OK(MPI_Recv(NULL, 0, MPI_INT, peer, 8, comm, MPI_STATUS_IGNORE));
            MPI_OK(MPI_Start(&request));
            CHECK_INT(mpitest_error_class(MPI_Start(&request)), MPI_ERR_REQUEST);
            MPI_OK(MPI_Send(NULL, 0, MPI_INT, peer, 8, comm));
        }
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (!sender) {
            VERIFY(message->buffer, key, message->bytes);
        }
    }
    MPI_OK(MPI_Request_free(&request));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    mpitest_message_free(message);
}

int main(int argc, char **argv)
{
    typedef void (*part_fn_t)(bool sender, uint64_t *state);
    static const struct {
        const char *name;
        part_fn_t run;
    } parts[] = {
        {"free_sends", free_sends},
        {"free_receives", free_receives},
        {"cancel_unmatched", cancel_unmatched},
        {"cancel_raced", cancel_raced},
        {"outlive", outlive},
        {"persistent_sets", persistent_sets},
        {"requested_twice", requested_twice},
        {"backwards", backwards},
        {"synchronous", synchronous},
        {"started_twice", started_twice},
    };
    int count = sizeof(parts) / sizeof(parts[0]), i;
    MPI_Comm pair;
    long op;

    mpitest_init(&argc, &argv, "requests", 8, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank / 2, 0, &pair));
    comm = pair;
    peer = 1 - mpitest.rank % 2;
    for (op = 0; op < mpitest.ops; ++op) {
        for (i = 0; i < count; ++i) {
            uint64_t state =
                mpitest_mix(mpitest.seed, (uint64_t) (op * count + i), (uint64_t) mpitest.rank / 2);
            bool sender = (0 == mpitest.rank % 2) == (0 == mpitest_random(&state) % 2);

            mpitest.step = op * count + i;
            if ('\0' != *mpitest.mode && !mpitest_has(parts[i].name)) {
                continue;
            }
            if (mpitest.verbose) {
                printf("step %ld: %s, rank %d %s\n", mpitest.step, parts[i].name, mpitest.rank,
                       sender ? "sends" : "receives");
                fflush(stdout);
            }
            parts[i].run(sender, &state);
        }
    }
    MPI_OK(MPI_Comm_free(&pair));
    return mpitest_finish();
}
