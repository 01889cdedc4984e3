/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Every form of Wait and Test over one array of all kinds of requests: receives and sends, handled
 * and passed through, active and inactive persistent ones, generalized ones, and null requests.
 * Each status must be the right one, or may be ignored; a test that returns false must not change
 * anything.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 5

/* Kinds of entries of the array. */
typedef enum slot_t {
    SLOT_RECEIVE,
    SLOT_RECEIVE_PERSISTENT,
    SLOT_SEND,
    SLOT_SEND_PERSISTENT,
    SLOT_GENERALISED,
    SLOT_INACTIVE,
    SLOT_NULL
} slot_t;

#define SLOTS (2 * MESSAGES + 4)

typedef enum form_t {
    FORM_WAIT,
    FORM_TEST,
    FORM_WAITALL,
    FORM_TESTALL,
    FORM_WAITANY,
    FORM_TESTANY,
    FORM_WAITSOME,
    FORM_TESTSOME,
    FORM_MAX
} form_t;

static const char *const form_names[FORM_MAX] = {"Wait",    "Test",    "Waitall",  "Testall",
                                                 "Waitany", "Testany", "Waitsome", "Testsome"};

typedef struct array_t {
    slot_t slots[SLOTS];
    int which[SLOTS]; /* the message, of sends and receives */
    MPI_Request requests[SLOTS];
    MPI_Status statuses[SLOTS];
    bool done[SLOTS];
    mpitest_message_t *out[MESSAGES], *in[MESSAGES];
    int bytes[MESSAGES];
    uint64_t key;
    mpitest_message_t *idle; /* of the inactive request */
} array_t;

/* Generalized requests: how often MPI called their functions. */
static int queries, frees;

static int query(void *extra, MPI_Status *status)
{
    ++queries;
    MPI_OK(MPI_Status_set_elements(status, MPI_BYTE, *(int *) extra));
    MPI_OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = 7;
    status->MPI_TAG = 70;
    return MPI_SUCCESS;
}

static int freed(void *extra)
{
    (void) extra;
    ++frees;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void) extra;
    (void) complete;
    return MPI_SUCCESS;
}

static bool is_active(slot_t slot)
{
    return SLOT_INACTIVE != slot && SLOT_NULL != slot;
}

static bool is_persistent(slot_t slot)
{
    return SLOT_RECEIVE_PERSISTENT == slot || SLOT_SEND_PERSISTENT == slot || SLOT_INACTIVE == slot;
}

static int generalised_bytes = 4711;

/* Build the array, in an order of its own, with all active requests started. */
static void make(array_t *array, uint64_t *state)
{
    int order[SLOTS], i;

    memset(array, 0, sizeof(*array));
    array->key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 3);
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};

        array->bytes[i] = mpitest_draw_bytes(state);
        array->out[i] = mpitest_message(kinds[0], array->bytes[i], 1);
        array->in[i] = mpitest_message(kinds[1], array->bytes[i], 1);
        mpitest_fill(array->out[i]->buffer, array->key + (uint64_t) (mpitest.rank * MESSAGES + i));
    }
    array->idle = mpitest_message(MPITEST_FINE, 4000, 1);
    for (i = 0; i < SLOTS; ++i) {
        order[i] = i;
    }
    mpitest_shuffle(state, order, SLOTS);
    for (i = 0; i < SLOTS; ++i) {
        int at = order[i];

        array->slots[at] = i < MESSAGES ? (0 == i % 2 ? SLOT_RECEIVE : SLOT_RECEIVE_PERSISTENT)
                           : i < 2 * MESSAGES     ? (0 == i % 2 ? SLOT_SEND : SLOT_SEND_PERSISTENT)
                           : i < 2 * MESSAGES + 1 ? SLOT_GENERALISED
                           : i < 2 * MESSAGES + 2 ? SLOT_INACTIVE
                                                  : SLOT_NULL;
        array->which[at] = i % MESSAGES;
        array->requests[at] = MPI_REQUEST_NULL;
    }
}

static void start(array_t *array)
{
    int i;

    for (i = 0; i < SLOTS; ++i) {
        int which = array->which[i];
        mpitest_message_t *out = array->out[which], *in = array->in[which];
        MPI_Request *request = &array->requests[i];

        switch (array->slots[i]) {
        case SLOT_RECEIVE:
            MPI_OK(
                MPI_Irecv(in->addr, 1, in->type, mpitest_left(), which, MPI_COMM_WORLD, request));
            break;
        case SLOT_RECEIVE_PERSISTENT:
            MPI_OK(MPI_Recv_init(in->addr, 1, in->type, MPI_ANY_SOURCE, which, MPI_COMM_WORLD,
                                 request));
            MPI_OK(MPI_Start(request));
            break;
        case SLOT_SEND:
            MPI_OK((0 == which % 2 ? MPI_Isend : MPI_Issend)(
                out->addr, 1, out->type, mpitest_right(), which, MPI_COMM_WORLD, request));
            break;
        case SLOT_SEND_PERSISTENT:
            MPI_OK(MPI_Send_init(out->addr, 1, out->type, mpitest_right(), which, MPI_COMM_WORLD,
                                 request));
            MPI_OK(MPI_Start(request));
            break;
        case SLOT_GENERALISED:
            MPI_OK(MPI_Grequest_start(query, freed, cancel, &generalised_bytes, request));
            break;
        case SLOT_INACTIVE:
            /* With PROC_NULL, and completed once: pml/ucx of Open MPI 4.1.4 hangs in a wait for one
             * that was never started. */
            MPI_OK(MPI_Recv_init(array->idle->addr, 1, array->idle->type, MPI_PROC_NULL, 0,
                                 MPI_COMM_WORLD, request));
            MPI_OK(MPI_Start(request));
            MPI_OK(MPI_Wait(request, MPI_STATUS_IGNORE));
            break;
        default:
            break;
        }
    }
}

/* The status of a completed request, if there is one, and the request's expected new state. */
static void check_result(array_t *array, int i, const MPI_Status *status)
{
    int which = array->which[i];

    CHECK(!array->done[i]);
    array->done[i] = true;
    CHECK((MPI_REQUEST_NULL == array->requests[i]) == !is_persistent(array->slots[i]));
    if (NULL == status) {
        return;
    }
    switch (array->slots[i]) {
    case SLOT_RECEIVE:
    case SLOT_RECEIVE_PERSISTENT:
        CHECK_STATUS(status, mpitest_left(), which, array->bytes[which]);
        break;
    case SLOT_GENERALISED:
        CHECK_STATUS(status, 7, 70, generalised_bytes);
        break;
    case SLOT_INACTIVE:
    case SLOT_NULL:
        CHECK_EMPTY(status);
        break;
    default: {
        int cancelled = -1;

        MPI_OK(MPI_Test_cancelled(status, &cancelled));
        CHECK_INT(cancelled, 0);
        break;
    }
    }
}

static void complete_generalised(array_t *array)
{
    int i;

    for (i = 0; i < SLOTS; ++i) {
        if (SLOT_GENERALISED == array->slots[i] && MPI_REQUEST_NULL != array->requests[i]) {
            MPI_OK(MPI_Grequest_complete(array->requests[i]));
        }
    }
}

static void one_by_one(array_t *array, form_t form, bool ignore)
{
    int i, flag;

    for (i = 0; i < SLOTS; ++i) {
        MPI_Status *status = ignore ? MPI_STATUS_IGNORE : &array->statuses[i];

        if (FORM_WAIT == form) {
            MPI_OK(MPI_Wait(&array->requests[i], status));
        } else {
            for (flag = 0; !flag;) {
                MPI_Request before = array->requests[i];

                MPI_OK(MPI_Test(&array->requests[i], &flag, status));
                CHECK(flag || before == array->requests[i]);
            }
        }
        check_result(array, i, ignore ? NULL : &array->statuses[i]);
    }
}

static void all_at_once(array_t *array, form_t form, bool ignore)
{
    MPI_Status *statuses = ignore ? MPI_STATUSES_IGNORE : array->statuses;
    MPI_Request before[SLOTS];
    int i, flag;

    if (FORM_WAITALL == form) {
        MPI_OK(MPI_Waitall(SLOTS, array->requests, statuses));
    } else {
        for (flag = 0; !flag;) {
            memcpy(before, array->requests, sizeof(before));
            MPI_OK(MPI_Testall(SLOTS, array->requests, &flag, statuses));
            CHECK(flag || 0 == memcmp(before, array->requests, sizeof(before)));
        }
    }
    for (i = 0; i < SLOTS; ++i) {
        check_result(array, i, ignore ? NULL : &array->statuses[i]);
    }
}

static void any_or_some(array_t *array, form_t form, bool ignore)
{
    int active = 0, indices[SLOTS], count, flag, i;
    MPI_Status some[SLOTS];

    for (i = 0; i < SLOTS; ++i) {
        active += is_active(array->slots[i]) ? 1 : 0;
    }
    while (0 < active) {
        count = 1;
        switch (form) {
        case FORM_WAITANY:
            MPI_OK(MPI_Waitany(SLOTS, array->requests, indices, ignore ? MPI_STATUS_IGNORE : some));
            break;
        case FORM_TESTANY:
            MPI_OK(MPI_Testany(SLOTS, array->requests, indices, &flag,
                               ignore ? MPI_STATUS_IGNORE : some));
            CHECK(flag || MPI_UNDEFINED == indices[0]);
            count = flag ? 1 : 0;
            break;
        case FORM_WAITSOME:
            MPI_OK(MPI_Waitsome(SLOTS, array->requests, &count, indices,
                                ignore ? MPI_STATUSES_IGNORE : some));
            CHECK(0 < count);
            break;
        default:
            MPI_OK(MPI_Testsome(SLOTS, array->requests, &count, indices,
                                ignore ? MPI_STATUSES_IGNORE : some));
            CHECK(0 <= count);
            break;
        }
        for (i = 0; i < count; ++i) {
            CHECK(0 <= indices[i] && indices[i] < SLOTS);
            CHECK(is_active(array->slots[indices[i]]));
            check_result(array, indices[i], ignore ? NULL : &some[i]);
        }
        active -= count;
    }
}

/* With no active request, each form must return that immediately. */
static void nothing_left(int n, MPI_Request *requests)
{
    int index = 0, count = 0, flag = 0, indices[SLOTS], i;
    MPI_Status status, statuses[SLOTS];

    MPI_OK(MPI_Waitany(n, requests, &index, &status));
    CHECK_INT(index, MPI_UNDEFINED);
    CHECK_EMPTY(&status);
    MPI_OK(MPI_Testany(n, requests, &index, &flag, &status));
    CHECK(flag);
    CHECK_INT(index, MPI_UNDEFINED);
    CHECK_EMPTY(&status);
    MPI_OK(MPI_Waitsome(n, requests, &count, indices, statuses));
    CHECK_INT(count, MPI_UNDEFINED);
    MPI_OK(MPI_Testsome(n, requests, &count, indices, MPI_STATUSES_IGNORE));
    CHECK_INT(count, MPI_UNDEFINED);
    MPI_OK(MPI_Waitall(n, requests, statuses));
    for (i = 0; i < n; ++i) {
        CHECK_EMPTY(&statuses[i]);
    }
    flag = 0;
    MPI_OK(MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    for (i = 0; i < n; ++i) {
        flag = 0;
        MPI_OK(MPI_Request_get_status(requests[i], &flag, &status));
        CHECK(flag);
        CHECK_EMPTY(&status);
        MPI_OK(MPI_Test(&requests[i], &flag, &status));
        CHECK(flag);
        CHECK_EMPTY(&status);
    }
}

static void one(form_t form, bool ignore, uint64_t *state)
{
    int i, queries_before = queries, frees_before = frees;
    array_t array;

    make(&array, state);
    start(&array);
    /* The generalized request has no progress of its own: it must complete before any wait. */
    complete_generalised(&array);
    switch (form) {
    case FORM_WAIT:
    case FORM_TEST:
        one_by_one(&array, form, ignore);
        break;
    case FORM_WAITALL:
    case FORM_TESTALL:
        all_at_once(&array, form, ignore);
        break;
    default:
        any_or_some(&array, form, ignore);
        break;
    }
    /* Called for the status even if it is ignored; and freed once. */
    CHECK(queries_before < queries);
    CHECK_INT(frees, frees_before + 1);
    for (i = 0; i < MESSAGES; ++i) {
        VERIFY(array.in[i]->buffer, array.key + (uint64_t) (mpitest_left() * MESSAGES + i),
               array.bytes[i]);
        VERIFY(array.out[i]->buffer, array.key + (uint64_t) (mpitest.rank * MESSAGES + i),
               array.bytes[i]);
    }
    nothing_left(SLOTS, array.requests);
    for (i = 0; i < SLOTS; ++i) {
        if (MPI_REQUEST_NULL != array.requests[i]) {
            CHECK(is_persistent(array.slots[i]));
            MPI_OK(MPI_Request_free(&array.requests[i]));
        }
    }
    nothing_left(SLOTS, array.requests);
    nothing_left(0, NULL);
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_message_free(array.in[i]);
        mpitest_message_free(array.out[i]);
    }
    mpitest_message_free(array.idle);
}

/* Startall of handled and passed-through sends and receives in one call, repeatedly. */
static void start_all(uint64_t *state)
{
    MPI_Request requests[2 * MESSAGES];
    MPI_Status statuses[2 * MESSAGES];
    int round, i, order[2 * MESSAGES];
    array_t array;

    make(&array, state);
    for (i = 0; i < 2 * MESSAGES; ++i) {
        order[i] = i;
    }
    mpitest_shuffle(state, order, 2 * MESSAGES);
    for (i = 0; i < 2 * MESSAGES; ++i) {
        int which = i / 2;

        if (0 == i % 2) {
            MPI_OK(MPI_Recv_init(array.in[which]->addr, 1, array.in[which]->type, mpitest_left(),
                                 which, MPI_COMM_WORLD, &requests[order[i]]));
        } else {
            MPI_OK((0 == which % 2 ? MPI_Send_init : MPI_Ssend_init)(
                array.out[which]->addr, 1, array.out[which]->type, mpitest_right(), which,
                MPI_COMM_WORLD, &requests[order[i]]));
        }
    }
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < MESSAGES; ++i) {
            mpitest_clear(array.in[i]->buffer);
            mpitest_fill(array.out[i]->buffer, (uint64_t) (mpitest.rank * 100 + round * 10 + i));
        }
        MPI_OK(MPI_Startall(2 * MESSAGES, requests));
        MPI_OK(MPI_Waitall(2 * MESSAGES, requests, statuses));
        for (i = 0; i < MESSAGES; ++i) {
            CHECK_STATUS(&statuses[order[2 * i]], mpitest_left(), i, array.bytes[i]);
            VERIFY(array.in[i]->buffer, (uint64_t) (mpitest_left() * 100 + round * 10 + i),
                   array.bytes[i]);
        }
    }
    for (i = 0; i < 2 * MESSAGES; ++i) {
        MPI_OK(MPI_Request_free(&requests[i]));
    }
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_message_free(array.in[i]);
        mpitest_message_free(array.out[i]);
    }
    mpitest_message_free(array.idle);
}

int main(int argc, char **argv)
{
    int form, ignore;
    long op;

    mpitest_init(&argc, &argv, "waits", 1, MPI_THREAD_SINGLE);
    for (op = 0; op < mpitest.ops; ++op) {
        for (form = 0; form < FORM_MAX; ++form) {
            for (ignore = 0; ignore < 2; ++ignore) {
                uint64_t state;

                mpitest.step = op * 100 + form * 2 + ignore;
                state = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 5);
                if (mpitest.verbose && 0 == mpitest.rank) {
                    printf("step %ld: %s%s\n", mpitest.step, form_names[form],
                           ignore ? ", statuses ignored" : "");
                    fflush(stdout);
                }
                one((form_t) form, 0 != ignore, &state);
                MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
            }
        }
        mpitest.step = op * 100 + 99;
        {
            uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 5);

            start_all(&state);
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    return mpitest_finish();
}
