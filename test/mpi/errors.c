/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Error handlers: a receive that is too short calls the handler of its communicator, once, with the
 * right communicator and code, for every kind of receive and wait call. Other requests of the same
 * array, the sender, and later messages are not affected. truncate.c tests MPI_ERRORS_RETURN.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_LONG   1
#define TAG_GOOD   2
#define TAG_BEHIND 3
#define GOOD       3000

typedef enum way_t {
    WAY_RECV,
    WAY_SENDRECV,
    WAY_WAIT,
    WAY_TEST,
    WAY_WAITANY,
    WAY_TESTANY,
    WAY_WAITSOME,
    WAY_TESTSOME,
    WAY_WAITALL,
    WAY_TESTALL,
    WAY_PERSISTENT,
    WAY_MRECV,
    WAY_IMRECV,
    WAY_PROBE_RECV,
    WAY_PROBE_IRECV,
    WAY_MAX
} way_t;

static const char *const way_names[WAY_MAX] = {
    "Recv",    "Sendrecv", "Wait",     "Test",           "Waitany",
    "Testany", "Waitsome", "Testsome", "Waitall",        "Testall",
    "Start",   "Mrecv",    "Imrecv",   "Probe and Recv", "Probe and Irecv"};

/* Arguments of the handler's calls. */
static struct {
    int calls;
    MPI_Comm comm;
    int code;
} seen;

static MPI_Comm comm;
static MPI_Comm other; /* with a handler that must not be called */

static void handler(MPI_Comm *which, int *code, ...)
{
    ++seen.calls;
    seen.comm = *which;
    seen.code = *code;
}

/* For communicators that are not involved. */
static void wrong_handler(MPI_Comm *which, int *code, ...)
{
    (void) which;
    mpitest_fail(__FILE__, __LINE__, "the handler of another communicator was called: %s",
                 mpitest_error_string(*code));
}

/* Receives of another communicator: a request that is reused must not keep its old communicator. */
static void use_requests(void)
{
    MPI_Request requests[8];
    int i;

    for (i = 0; i < 4; ++i) {
        MPI_OK(MPI_Irecv(NULL, 0, MPI_BYTE, mpitest_left(), i, other, &requests[i]));
    }
    for (i = 0; i < 4; ++i) {
        MPI_OK(MPI_Issend(NULL, 0, MPI_BYTE, mpitest_right(), i, other, &requests[4 + i]));
    }
    MPI_OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
}

/* With several requests, a good one completes beside the long one; its status is 'good'. */
static int complete_both(way_t way, MPI_Request requests[2], MPI_Status statuses[2])
{
    int rc = MPI_SUCCESS, one = MPI_SUCCESS, left = 2, indices[2], count, flag, i;
    MPI_Status some[2];

    switch (way) {
    case WAY_WAITALL:
        return MPI_Waitall(2, requests, statuses);
    case WAY_TESTALL:
        for (flag = 0; !flag && MPI_SUCCESS == rc;) {
            rc = MPI_Testall(2, requests, &flag, statuses);
        }
        return rc;
    default:
        break;
    }
    while (0 < left) {
        count = 1;
        if (WAY_WAITANY == way) {
            one = MPI_Waitany(2, requests, indices, some);
        } else if (WAY_TESTANY == way) {
            one = MPI_Testany(2, requests, indices, &flag, some);
            count = flag ? 1 : 0;
        } else if (WAY_WAITSOME == way) {
            one = MPI_Waitsome(2, requests, &count, indices, some);
        } else {
            one = MPI_Testsome(2, requests, &count, indices, some);
        }
        CHECK(0 <= count && count <= left);
        for (i = 0; i < count; ++i) {
            statuses[indices[i]] = some[i];
            /* Forms for one request do not set the error in the status. */
            if (WAY_WAITANY == way || WAY_TESTANY == way) {
                statuses[indices[i]].MPI_ERROR = one;
            } else if (MPI_SUCCESS == one) {
                statuses[indices[i]].MPI_ERROR = MPI_SUCCESS;
            }
        }
        rc = MPI_SUCCESS == one ? rc : one;
        left -= count;
    }
    return rc;
}

/* Receive the long message into the short buffer. @return the result of the MPI call */
static int receive_long(way_t way, mpitest_message_t *room, mpitest_message_t *good, int from)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[2];
    MPI_Message message;
    int rc, flag;

    switch (way) {
    case WAY_RECV:
        return MPI_Recv(room->addr, 1, room->type, from, TAG_LONG, comm, &status);
    case WAY_SENDRECV:
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, room->addr, 1, room->type, from,
                            TAG_LONG, comm, MPI_STATUS_IGNORE);
    case WAY_MRECV:
        MPI_OK(MPI_Mprobe(from, TAG_LONG, comm, &message, &status));
        return MPI_Mrecv(room->addr, 1, room->type, &message, &status);
    case WAY_IMRECV:
        MPI_OK(MPI_Mprobe(from, TAG_LONG, comm, &message, &status));
        MPI_OK(MPI_Imrecv(room->addr, 1, room->type, &message, &requests[0]));
        return MPI_Wait(&requests[0], &status);
    case WAY_PROBE_RECV:
        /* The later message first, so that umrddt already holds the long one if it must look. */
        MPI_OK(MPI_Probe(from, TAG_GOOD, comm, &status));
        return MPI_Recv(room->addr, 1, room->type, from, TAG_LONG, comm, &status);
    case WAY_PROBE_IRECV:
        MPI_OK(MPI_Probe(from, TAG_GOOD, comm, &status));
        MPI_OK(MPI_Irecv(room->addr, 1, room->type, MPI_ANY_SOURCE, TAG_LONG, comm, &requests[0]));
        return MPI_Wait(&requests[0], &status);
    case WAY_PERSISTENT:
        MPI_OK(MPI_Recv_init(room->addr, 1, room->type, from, TAG_LONG, comm, &requests[0]));
        MPI_OK(MPI_Start(&requests[0]));
        rc = MPI_Wait(&requests[0], &status);
        /* Open MPI frees every request with an error, persistent ones too. */
        if (MPI_REQUEST_NULL != requests[0]) {
            MPI_OK(MPI_Request_free(&requests[0]));
        }
        return rc;
    default:
        break;
    }
    MPI_OK(MPI_Irecv(room->addr, 1, room->type, from, TAG_LONG, comm, &requests[0]));
    if (WAY_WAIT == way) {
        return MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    if (WAY_TEST == way) {
        for (flag = 0, rc = MPI_SUCCESS; !flag && MPI_SUCCESS == rc;) {
            rc = MPI_Test(&requests[0], &flag, &status);
        }
        return rc;
    }
    MPI_OK(MPI_Irecv(good->addr, 1, good->type, from, TAG_GOOD, comm, &requests[1]));
    if (mpitest_base_is("ucx")) {
        /* pml/ucx of Open MPI 4.1.4 alone keeps an old error in a reused request, and Open MPI
         * frees requests with an error, complete or not. Therefore complete it first. */
        for (flag = 0; !flag;) {
            MPI_OK(MPI_Request_get_status(requests[1], &flag, &status));
        }
    }
    memset(statuses, 0, sizeof(statuses));
    rc = complete_both(way, requests, statuses);
    CHECK(MPI_REQUEST_NULL == requests[0]);
    if (MPI_REQUEST_NULL != requests[1]) {
        /* Neither failed nor completed, which Waitall may report for the others. */
        CHECK(WAY_WAITALL == way || WAY_TESTALL == way);
        CHECK_INT(statuses[1].MPI_ERROR, MPI_ERR_PENDING);
        MPI_OK(MPI_Wait(&requests[1], &statuses[1]));
        statuses[1].MPI_ERROR = MPI_SUCCESS;
    }
    CHECK_INT(statuses[1].MPI_ERROR, MPI_SUCCESS);
    CHECK_STATUS(&statuses[1], from, TAG_GOOD, GOOD);
    if (WAY_WAITANY != way && WAY_TESTANY != way) {
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_IN_STATUS);
    }
    return statuses[0].MPI_ERROR;
}

static bool uses_both(way_t way)
{
    return WAY_WAITANY <= way && way <= WAY_TESTALL;
}

static void one(way_t way, uint64_t *state)
{
    static const int rooms[] = {0, 8, 63, 72, 103, 104, 105, 512, 4096};
    static const int sizes[] = {105, 200, 5000, 20000, 100000};
    mpitest_kind_t kinds[3] = {mpitest_draw_kind(state), mpitest_draw_kind(state),
                               mpitest_draw_kind(state)};
    int from = (int) mpitest_between(state, 0, mpitest.size - 1);
    int bytes = sizes[mpitest_between(state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
    int room = rooms[mpitest_between(state, 0, sizeof(rooms) / sizeof(rooms[0]) - 1)];
    int to = (from + 1) % mpitest.size, rc;
    uint64_t key = mpitest_random(state);
    mpitest_message_t *message, *good, *behind;
    MPI_Status status;

    if (MPITEST_CONTIGUOUS == kinds[0] && 2000 < bytes) {
        bytes = 200; /* pml/ob1 of Open MPI 4.1.4 alone writes beyond the buffer if the message is
                        longer */
    }
    room = room < bytes ? room : bytes - 1;
    if (WAY_IMRECV == way && mpitest_base_is("ucx")
        && (MPITEST_CONTIGUOUS == kinds[0] || 4096 > bytes || !mpitest_has("taken"))) {
        way = WAY_MRECV; /* pml/ucx of Open MPI 4.1.4 alone crashes in the handler of an Imrecv */
    }
    if (mpitest.verbose && mpitest.rank == to) {
        printf("step %ld: %s, %d bytes %s into %d %s\n", mpitest.step, way_names[way], bytes,
               mpitest_kind_name(kinds[0]), room, mpitest_kind_name(kinds[1]));
        fflush(stdout);
    }
    use_requests();
    memset(&seen, 0, sizeof(seen));
    good = mpitest_message(kinds[2], GOOD, key);
    behind = mpitest_message(kinds[0], bytes, key);
    if (mpitest.rank == from) {
        MPI_Request requests[3];

        message = mpitest_message(kinds[0], bytes, key);
        mpitest_fill(message->buffer, key);
        mpitest_fill(good->buffer, key + 1);
        mpitest_fill(behind->buffer, key + 2);
        MPI_OK(MPI_Isend(message->addr, 1, message->type, to, TAG_LONG, comm, &requests[0]));
        MPI_OK(MPI_Isend(good->addr, 1, good->type, to, TAG_GOOD, comm, &requests[1]));
        MPI_OK(MPI_Issend(behind->addr, 1, behind->type, to, TAG_BEHIND, comm, &requests[2]));
        MPI_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        CHECK_INT(seen.calls, 0);
        mpitest_message_free(message);
    } else if (mpitest.rank == to) {
        message = mpitest_message(kinds[1], room, key);
        rc = receive_long(way, message, good, from);
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
        CHECK_INT(seen.calls, 1);
        CHECK(seen.comm == comm);
        CHECK_INT(mpitest_error_class(seen.code), MPI_ERR_TRUNCATE);
        (void) VERIFY_TRUNCATED(message->buffer, key, room);
        if (!uses_both(way)) {
            MPI_OK(MPI_Recv(good->addr, 1, good->type, from, TAG_GOOD, comm, &status));
            CHECK_STATUS(&status, from, TAG_GOOD, GOOD);
        }
        VERIFY(good->buffer, key + 1, GOOD);
        MPI_OK(MPI_Recv(behind->addr, 1, behind->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        CHECK_STATUS(&status, from, TAG_BEHIND, bytes);
        VERIFY(behind->buffer, key + 2, bytes);
        CHECK_INT(seen.calls, 1);
        mpitest_message_free(message);
    }
    mpitest_message_free(good);
    mpitest_message_free(behind);
    MPI_OK(MPI_Barrier(comm));
}

int main(int argc, char **argv)
{
    MPI_Errhandler mine, wrong;
    long op;
    int way;

    mpitest_init(&argc, &argv, "errors", 3, MPI_THREAD_SINGLE);
    if (2 > mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    MPI_OK(MPI_Comm_create_errhandler(handler, &mine));
    MPI_OK(MPI_Comm_create_errhandler(wrong_handler, &wrong));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    MPI_OK(MPI_Comm_set_errhandler(other, mine));
    /* A duplicate inherits the handler, and keeps it when its parent gets another one. */
    MPI_OK(MPI_Comm_dup(other, &comm));
    MPI_OK(MPI_Comm_set_errhandler(other, wrong));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, wrong));
    MPI_OK(MPI_Errhandler_free(&mine));
    MPI_OK(MPI_Errhandler_free(&wrong));
    for (op = 0; op < mpitest.ops; ++op) {
        for (way = 0; way < WAY_MAX; ++way) {
            uint64_t state;

            mpitest.step = op * 100 + way;
            state = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 31);
            one((way_t) way, &state);
        }
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_free(&comm));
    MPI_OK(MPI_Comm_free(&other));
    return mpitest_finish();
}
