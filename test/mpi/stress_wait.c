/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of requests of one call. */
#define BATCH 12

/* Some of the pending requests, and the results of a call for them. */
typedef struct batch_t {
    const char *form;
    int count;
    int which[BATCH]; /* in thread->active; ascending */
    MPI_Request requests[BATCH];
    MPI_Status statuses[BATCH];
    bool done[BATCH];
    int errors[BATCH];
} batch_t;

void stress_active_add(stress_thread_t *thread, MPI_Request request, stress_posting_t *posting,
                       stress_outgoing_t *outgoing)
{
    stress_active_t *active;

    CHECK(MPI_REQUEST_NULL != request);
    if (thread->active_count == thread->active_room) {
        thread->active_room = 2 * thread->active_room + 32;
        thread->active =
            realloc(thread->active, sizeof(*thread->active) * (size_t) thread->active_room);
        CHECK(NULL != thread->active);
    }
    active = &thread->active[thread->active_count++];
    memset(active, 0, sizeof(*active));
    active->request = request;
    active->posting = posting;
    active->outgoing = outgoing;
}

static bool is_persistent(const stress_active_t *active)
{
    return NULL != active->posting ? STRESS_RECV_INIT == active->posting->action
                                   : stress_way_persistent(active->outgoing->message->way);
}

/* True if a call may block until this one is done. */
static bool is_certain(const stress_active_t *active, bool sends_too)
{
    if (NULL == active->posting) {
        return sends_too;
    }
    return NULL != active->posting->lane || active->posting->cancel_called;
}

/* True for a receive that might truncate. */
static bool is_delicate(const stress_active_t *active)
{
    return NULL != active->posting && NULL != active->posting->lane
           && stress_entry(active->posting->entry)->bytes < stress_lane_longest(
                  active->posting->lane, active->posting->source, active->posting->tag);
}

/*
 * A form of MPI_Wait or MPI_Test for a batch: 0 for that of one request.
 *
 * Open MPI 4.1.4 loses the error of a persistent request in Testany, Testall and Waitall. If one
 * request of an array ends with an error, it frees all those of the array in which it finds an
 * error: completed ones that it did not report, and pending sends (with pml/ucx receives too),
 * whose status is not written yet. So a batch has at most one receive that might truncate, without
 * sends (with pml/ucx without any other request), and it is alone if it is persistent. With several
 * threads a Waitall with a request that has failed before never returns, so there such a receive is
 * not in one.
 */
static int draw_form(stress_thread_t *thread, batch_t *batch)
{
    int i, count = 0, delicate = -1;

    for (i = 0; i < batch->count && 0 > delicate; ++i) {
        delicate = is_delicate(&thread->active[batch->which[i]]) ? batch->which[i] : -1;
    }
    for (i = 0; i < batch->count && 0 <= delicate; ++i) {
        const stress_active_t *active = &thread->active[batch->which[i]];

        if (delicate == batch->which[i]
            || (NULL != active->posting && !is_delicate(active) && !stress_on_ucx()
                && !is_persistent(&thread->active[delicate]))) {
            batch->which[count] = batch->which[i];
            batch->requests[count++] = batch->requests[i];
        }
    }
    if (0 > delicate) {
        return (int) mpitest_between(&thread->chance, 0, 3);
    }
    batch->count = count;
    if (is_persistent(&thread->active[delicate])) {
        return 0;
    }
    return (int) mpitest_between(&thread->chance, 0, 1 < thread->threads ? 2 : 3);
}

static void draw_batch(stress_thread_t *thread, batch_t *batch, bool certain_only, bool sends_too)
{
    int wanted = 0 == mpitest_random(&thread->chance) % 3
                     ? BATCH
                     : (int) mpitest_between(&thread->chance, 1, 4);
    int i, start;

    batch->count = 0;
    if (0 == thread->active_count) {
        return;
    }
    start = (int) mpitest_between(&thread->chance, 0, thread->active_count - 1);
    start = wanted < thread->active_count ? start : 0;
    for (i = start; i < thread->active_count && batch->count < wanted; ++i) {
        if (!certain_only || is_certain(&thread->active[i], sends_too)) {
            batch->which[batch->count] = i;
            batch->requests[batch->count] = thread->active[i].request;
            batch->done[batch->count] = false;
            batch->errors[batch->count++] = MPI_SUCCESS;
        }
    }
}

/* The result of MPI_Request_get_status must still hold. */
static void compare_reported(const stress_active_t *active, const MPI_Status *status)
{
    int counts[2] = {-1, -1}, cancelled[2] = {-1, -1};

    MPI_OK(MPI_Test_cancelled(&active->status, &cancelled[0]));
    MPI_OK(MPI_Test_cancelled(status, &cancelled[1]));
    CHECK_INT(cancelled[1], cancelled[0]);
    if (NULL == active->posting || cancelled[0]) {
        return;
    }
    CHECK_INT(status->MPI_SOURCE, active->status.MPI_SOURCE);
    CHECK_INT(status->MPI_TAG, active->status.MPI_TAG);
    MPI_OK(MPI_Get_count(&active->status, MPI_BYTE, &counts[0]));
    MPI_OK(MPI_Get_count(status, MPI_BYTE, &counts[1]));
    CHECK_INT(counts[1], counts[0]);
}

/* Store or free a persistent request. */
static void retire(stress_thread_t *thread, stress_active_t *active, MPI_Request request)
{
    bool sending = NULL == active->posting;
    int slot = sending ? active->outgoing->slot : active->posting->slot;
    stress_slot_t *owner = 0 > slot ? NULL : &(sending ? thread->sends : thread->receives)[slot];

    if (NULL == owner) {
        if (MPI_REQUEST_NULL != request) {
            MPI_OK(MPI_Request_free(&request));
        }
        return;
    }
    if (MPI_REQUEST_NULL == request) {
        /* Open MPI frees every request with an error, persistent ones too. */
        CHECK(!sending && MPI_SUCCESS != active->posting->error);
        owner->request = MPI_REQUEST_NULL;
        owner->buffer = NULL;
        owner->busy = false;
        active->posting->slot = -1;
    }
}

/* A call returned a result that is not allowed for a request. */
static void refuse(const batch_t *batch, int i, const stress_active_t *active, const char *why)
{
    char about[160], errors[8 * BATCH] = "";
    int j, done = 0;

    for (j = 0; j < batch->count; ++j) {
        if (batch->done[j]) {
            ++done;
            snprintf(errors + strlen(errors), sizeof(errors) - strlen(errors), " %d:%d", j,
                     mpitest_error_class(batch->errors[j]));
        }
    }
    if (NULL != active->posting) {
        snprintf(about, sizeof(about), "%s from %d tag %d on %s, room %ld",
                 stress_action_name(active->posting->action), active->posting->source,
                 active->posting->tag, stress_comm_name(active->posting->comm),
                 stress_entry(active->posting->entry)->bytes);
    } else {
        snprintf(about, sizeof(about), "%s to %d tag %d on %s, %ld bytes",
                 stress_way_name(active->outgoing->message->way), active->outgoing->message->dest,
                 active->outgoing->message->tag, stress_comm_name(active->outgoing->message->comm),
                 active->outgoing->message->bytes);
    }
    mpitest_fail(__FILE__, __LINE__,
                 "%s of %d, %d of them done (error classes%s); number %d: %s: %s", batch->form,
                 batch->count, done, errors, i, about, why);
}

/* Handle the requests that a call has completed. */
static void complete(stress_thread_t *thread, batch_t *batch)
{
    int i;

    for (i = batch->count - 1; 0 <= i; --i) {
        stress_active_t active = thread->active[batch->which[i]];

        if (!batch->done[i]) {
            if (batch->requests[i] != active.request) {
                refuse(batch, i, &active, "it is not done, and its request was changed");
            }
            continue;
        }
        if (!is_persistent(&active) && MPI_REQUEST_NULL != batch->requests[i]) {
            refuse(batch, i, &active, "it is done, and its request is not null");
        }
        if (active.reported) {
            compare_reported(&active, &batch->statuses[i]);
        }
        if (NULL != active.posting) {
            stress_receive_done(thread, active.posting, &batch->statuses[i], batch->errors[i]);
        } else {
            CHECK_INT(batch->errors[i], MPI_SUCCESS);
            active.outgoing->done = true;
        }
        if (is_persistent(&active)) {
            retire(thread, &active, batch->requests[i]);
        }
        memmove(&thread->active[batch->which[i]], &thread->active[batch->which[i] + 1],
                sizeof(*thread->active) * (size_t) (thread->active_count - batch->which[i] - 1));
        --thread->active_count;
    }
}

/* Handle the result of a call on a batch; the status marks those that are still pending. */
static void all_done(batch_t *batch, int rc)
{
    int i;

    if (MPI_SUCCESS != rc) {
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_IN_STATUS);
    }
    for (i = 0; i < batch->count; ++i) {
        int error = MPI_SUCCESS == rc ? MPI_SUCCESS : batch->statuses[i].MPI_ERROR;

        batch->done[i] = MPI_ERR_PENDING != error;
        batch->errors[i] = error;
    }
}

static void one_done(batch_t *batch, int index, int rc)
{
    CHECK(0 <= index && index < batch->count);
    batch->done[index] = true;
    batch->errors[index] = rc;
    if (0 != index) {
        batch->statuses[index] = batch->statuses[0];
    }
}

static void some_done(batch_t *batch, int count, const int *indices, const MPI_Status *statuses,
                      int rc)
{
    int i;

    CHECK(0 <= count && count <= batch->count);
    if (MPI_SUCCESS != rc) {
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_IN_STATUS);
    }
    for (i = 0; i < count; ++i) {
        CHECK(0 <= indices[i] && indices[i] < batch->count && !batch->done[indices[i]]);
        batch->done[indices[i]] = true;
        batch->statuses[indices[i]] = statuses[i];
        batch->errors[indices[i]] = MPI_SUCCESS == rc ? MPI_SUCCESS : statuses[i].MPI_ERROR;
    }
}

static void test(stress_thread_t *thread)
{
    int flag = 0, index = -1, count = 0, indices[BATCH], rc;
    MPI_Status statuses[BATCH];
    batch_t batch;

    draw_batch(thread, &batch, false, true);
    if (0 == batch.count) {
        return;
    }
    ++thread->counters[STRESS_COUNT_TESTS];
    switch (draw_form(thread, &batch)) {
    case 0:
        batch.count = 1;
        batch.form = "Test";
        rc = MPI_Test(&batch.requests[0], &flag, &batch.statuses[0]);
        if (flag) {
            one_done(&batch, 0, rc);
        }
        break;
    case 1:
        batch.form = "Testany";
        rc = MPI_Testany(batch.count, batch.requests, &index, &flag, &batch.statuses[0]);
        if (flag) {
            one_done(&batch, index, rc);
        }
        break;
    case 2:
        batch.form = "Testsome";
        rc = MPI_Testsome(batch.count, batch.requests, &count, indices, statuses);
        some_done(&batch, count, indices, statuses, rc);
        break;
    default:
        batch.form = "Testall";
        rc = MPI_Testall(batch.count, batch.requests, &flag, batch.statuses);
        if (flag) {
            all_done(&batch, rc);
        }
        break;
    }
    complete(thread, &batch);
}

/* Query a status without completing the request. */
static void ask(stress_thread_t *thread)
{
    stress_active_t *active;
    int flag = 0;

    if (0 == thread->active_count) {
        return;
    }
    active = &thread->active[mpitest_between(&thread->chance, 0, thread->active_count - 1)];
    MPI_OK(MPI_Request_get_status(active->request, &flag, &active->status));
    CHECK(flag || !active->reported);
    active->reported = flag;
}

static void cancel(stress_active_t *active, stress_thread_t *thread)
{
    if (NULL != active->posting && active->posting->cancel && !active->posting->cancel_called) {
        ++thread->counters[STRESS_COUNT_CANCELS];
        active->posting->cancel_called = true;
        MPI_OK(MPI_Cancel(&active->request));
    }
}

void stress_poll(stress_thread_t *thread)
{
    long drawn = mpitest_between(&thread->chance, 0, 19);

    if (10 > drawn) {
        test(thread);
    } else if (13 > drawn) {
        ask(thread);
    } else if (15 > drawn) {
        if (0 < thread->active_count) {
            cancel(&thread->active[mpitest_between(&thread->chance, 0, thread->active_count - 1)],
                   thread);
        }
    } else if (19 > drawn) {
        if (0 < thread->held_count) {
            stress_receive_held(thread,
                                (int) mpitest_between(&thread->chance, 0, thread->held_count - 1));
        }
    } else {
        stress_receive_null(thread);
    }
}

bool stress_wait(stress_thread_t *thread, bool sends_too)
{
    int index = -1, count = 0, indices[BATCH], rc;
    MPI_Status statuses[BATCH];
    batch_t batch;
    int i, certain = 0;

    for (i = 0; i < thread->active_count; ++i) {
        certain += is_certain(&thread->active[i], sends_too) ? 1 : 0;
    }
    if (0 == certain) {
        return false;
    }
    do {
        draw_batch(thread, &batch, true, sends_too);
    } while (0 == batch.count);
    ++thread->counters[STRESS_COUNT_WAITS];
    switch (draw_form(thread, &batch)) {
    case 0:
        batch.count = 1;
        batch.form = "Wait";
        rc = MPI_Wait(&batch.requests[0], &batch.statuses[0]);
        one_done(&batch, 0, rc);
        break;
    case 1:
        batch.form = "Waitany";
        rc = MPI_Waitany(batch.count, batch.requests, &index, &batch.statuses[0]);
        one_done(&batch, index, rc);
        break;
    case 2:
        batch.form = "Waitsome";
        rc = MPI_Waitsome(batch.count, batch.requests, &count, indices, statuses);
        CHECK(0 < count);
        some_done(&batch, count, indices, statuses, rc);
        break;
    default:
        batch.form = "Waitall";
        rc = MPI_Waitall(batch.count, batch.requests, batch.statuses);
        all_done(&batch, rc);
        break;
    }
    complete(thread, &batch);
    return true;
}

/* The index of a cancelled receive among the pending ones, or -1. */
static int find_cancelled(const stress_thread_t *thread)
{
    int i;

    for (i = 0; i < thread->active_count; ++i) {
        if (NULL != thread->active[i].posting && thread->active[i].posting->cancel_called) {
            return i;
        }
    }
    return -1;
}

void stress_cancel_all(stress_thread_t *thread)
{
    batch_t batch;
    int i, rc;

    for (i = 0; i < thread->active_count; ++i) {
        cancel(&thread->active[i], thread);
    }
    while (0 <= (i = find_cancelled(thread))) {
        memset(&batch, 0, sizeof(batch));
        batch.count = 1;
        batch.which[0] = i;
        batch.requests[0] = thread->active[i].request;
        batch.form = "Wait";
        rc = MPI_Wait(&batch.requests[0], &batch.statuses[0]);
        one_done(&batch, 0, rc);
        complete(thread, &batch);
    }
}
