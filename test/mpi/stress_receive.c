/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_thread.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int to_mpi_source(int source)
{
    return STRESS_ANY == source ? MPI_ANY_SOURCE : source;
}

static int to_mpi_tag(int tag)
{
    return STRESS_ANY == tag ? MPI_ANY_TAG : tag;
}

static stress_event_t *event_of(const stress_posting_t *posting)
{
    return &posting->lane->events[posting->event];
}

/* Add the event of a receive, and its buffer. */
static void begin(stress_posting_t *posting)
{
    const stress_entry_t *entry = stress_entry(posting->entry);

    if (NULL != posting->lane) {
        posting->event = stress_lane_event(posting->lane, posting);
        event_of(posting)->capacity = entry->bytes;
    }
    if (NULL == posting->buffer) {
        posting->buffer = mpitest_buffer(entry->map);
    }
    posting->state = STRESS_STATE_ACTIVE;
}

void stress_receive_done(stress_thread_t *thread, stress_posting_t *posting,
                         const MPI_Status *status, int error)
{
    const stress_entry_t *entry = stress_entry(posting->entry);
    stress_event_t *event = NULL;
    int cancelled = 0, count = -1, probed_source;

    posting->state = STRESS_STATE_DONE;
    if (NULL != status) {
        MPI_OK(MPI_Test_cancelled(status, &cancelled));
    }
    if (cancelled && !posting->cancel_called) {
        mpitest_fail(__FILE__, __LINE__, "a receive reports that it was cancelled, and it was not");
    }
    thread->counters[STRESS_COUNT_CANCELLED] += cancelled ? 1 : 0;
    if (NULL == posting->lane) {
        if (!cancelled) {
            mpitest_fail(__FILE__, __LINE__,
                         "a receive of a tag without a send was not "
                         "cancelled, but took something from %d, tag %d",
                         NULL == status ? -1 : status->MPI_SOURCE,
                         NULL == status ? -1 : status->MPI_TAG);
        }
        return;
    }
    event = event_of(posting);
    event->outcome = cancelled ? STRESS_CANCELLED : STRESS_TOOK;
    if (cancelled) {
        return;
    }
    posting->error = error;
    if (MPI_SUCCESS != error) {
        event->truncated = MPI_ERR_TRUNCATE == mpitest_error_class(error);
        CHECK(event->truncated);
        ++thread->counters[STRESS_COUNT_TRUNCATED];
    }
    probed_source = event->got_source;
    event->got_source = event->source;
    if (NULL == status) {
        return;
    }
    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    if (STRESS_UNKNOWN != event->got_tag) {
        /* The status of a matched probe is known already. */
        CHECK_INT(status->MPI_SOURCE, probed_source);
        CHECK_INT(status->MPI_TAG, event->got_tag);
        CHECK(event->truncated || event->got_bytes == count);
    }
    event->got_source = status->MPI_SOURCE;
    event->got_tag = status->MPI_TAG;
    event->got_bytes = count;
    MPI_OK(MPI_Get_count(status, entry->type, &posting->count));
    MPI_OK(MPI_Get_elements(status, entry->type, &count));
    posting->elements = count;
}

/* With a request that was kept from an earlier epoch, if one fits. */
static bool post_cached(stress_thread_t *thread, stress_posting_t *posting, MPI_Request *request)
{
    stress_slot_t *slot;

    if (NULL == posting->lane || !posting->kept) {
        return false;
    }
    posting->slot = stress_slot_receive(thread->receives, posting);
    if (0 > posting->slot) {
        return false;
    }
    ++thread->counters[STRESS_COUNT_RESTARTED];
    slot = &thread->receives[posting->slot];
    slot->busy = true;
    posting->entry = slot->entry;
    posting->buffer = slot->buffer;
    mpitest_clear(slot->buffer);
    begin(posting);
    *request = slot->request;
    return true;
}

/* Store a new persistent request for later epochs, if there is room. */
static void keep(stress_thread_t *thread, stress_posting_t *posting, MPI_Request request)
{
    int i;

    for (i = 0; i < STRESS_SLOTS && posting->kept; ++i) {
        stress_slot_t *slot = &thread->receives[i];

        if (MPI_REQUEST_NULL == slot->request) {
            slot->request = request;
            slot->busy = true;
            slot->comm = posting->comm;
            slot->peer = posting->source;
            slot->tag = posting->tag;
            slot->entry = posting->entry;
            slot->buffer = posting->buffer;
            posting->slot = i;
            return;
        }
    }
}

/* A receive is posted: its request is freed immediately, or completed later with the others. */
static void leave(stress_thread_t *thread, stress_posting_t *posting, MPI_Request request)
{
    if (posting->freed) {
        MPI_OK(MPI_Request_free(&request));
        posting->state = STRESS_STATE_FREED;
        ++thread->counters[STRESS_COUNT_FREED];
        return;
    }
    stress_active_add(thread, request, posting, NULL);
}

static void post_persistent(stress_thread_t *thread, stress_posting_t *posting)
{
    const stress_entry_t *entry;
    MPI_Request request;

    if (!post_cached(thread, posting, &request)) {
        begin(posting);
        entry = stress_entry(posting->entry);
        MPI_OK(MPI_Recv_init(posting->buffer->addr, entry->count, entry->type,
                             to_mpi_source(posting->source), to_mpi_tag(posting->tag),
                             stress_comm(posting->comm), &request));
        keep(thread, posting, request);
    }
    MPI_OK(MPI_Start(&request));
    leave(thread, posting, request);
}

static void post_nonblocking(stress_thread_t *thread, stress_posting_t *posting, int source,
                             int tag)
{
    const stress_entry_t *entry = stress_entry(posting->entry);
    MPI_Datatype type = entry->type;
    MPI_Request request;

    begin(posting);
    if (NULL != posting->lane) {
        event_of(posting)->source = source;
        event_of(posting)->tag = tag;
    }
    if (posting->own_type) {
        MPI_OK(MPI_Type_dup(entry->type, &type));
    }
    MPI_OK(MPI_Irecv(posting->buffer->addr, entry->count, type, to_mpi_source(source),
                     to_mpi_tag(tag), stress_comm(posting->comm), &request));
    if (posting->own_type) {
        MPI_OK(MPI_Type_free(&type));
    }
    leave(thread, posting, request);
}

static void post_blocking(stress_thread_t *thread, stress_posting_t *posting, int source, int tag)
{
    const stress_entry_t *entry = stress_entry(posting->entry);
    MPI_Status status;
    int rc;

    begin(posting);
    event_of(posting)->source = source;
    event_of(posting)->tag = tag;
    rc = MPI_Recv(posting->buffer->addr, entry->count, entry->type, to_mpi_source(source),
                  to_mpi_tag(tag), stress_comm(posting->comm),
                  posting->quiet ? MPI_STATUS_IGNORE : &status);
    stress_receive_done(thread, posting, posting->quiet ? NULL : &status, rc);
}

/* Record the result of a probe. */
static void saw(stress_thread_t *thread, stress_posting_t *posting, const MPI_Status *status,
                stress_outcome_t outcome)
{
    stress_event_t *event;
    int count = -1;

    ++thread->counters[STRESS_COUNT_PROBES];
    posting->event = stress_lane_event(posting->lane, posting);
    event = event_of(posting);
    event->outcome = outcome;
    event->got_source = status->MPI_SOURCE;
    event->got_tag = status->MPI_TAG;
    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    event->got_bytes = count;
    posting->probed_bytes = count;
}

/* A buffer for the message of a probe; sometimes the one that was drawn without knowledge of it. */
static void fit(stress_posting_t *posting, bool may_truncate)
{
    long found = posting->probed_bytes;
    uint64_t state = posting->draws;

    if (0 == mpitest_random(&state) % 4
        && (may_truncate || stress_entry(posting->entry)->bytes >= found)) {
        return;
    }
    if (STRESS_PAIRS > posting->lane->family) {
        posting->entry = stress_draw_room(&state, posting->lane->family, found);
    }
}

/* One or more probes. @return false if there is no message */
static bool look(stress_thread_t *thread, stress_posting_t *posting, bool wait, MPI_Status *status)
{
    int flag = 0;

    do {
        MPI_OK(MPI_Iprobe(to_mpi_source(posting->source), to_mpi_tag(posting->tag),
                          stress_comm(posting->comm), &flag, status));
        if (wait && !flag) {
            stress_poll(thread);
            sched_yield();
        }
    } while (wait && !flag);
    if (flag) {
        saw(thread, posting, status, STRESS_SAW);
    }
    return flag;
}

/* Probe, probe again, and receive: the found message, or any that the pattern matches. */
static void post_probed(stress_thread_t *thread, stress_posting_t *posting)
{
    int source = posting->source, tag = posting->tag;
    uint64_t state = posting->draws + 1;
    MPI_Status status;
    bool found = true;

    switch (posting->action) {
    case STRESS_LOOK_IRECV:
        found = look(thread, posting, false, &status);
        break;
    case STRESS_IPROBE_RECV:
        look(thread, posting, true, &status);
        break;
    default:
        MPI_OK(
            MPI_Probe(to_mpi_source(source), to_mpi_tag(tag), stress_comm(posting->comm), &status));
        saw(thread, posting, &status, STRESS_SAW);
        break;
    }
    if (found && !posting->lane->pooled && 0 != mpitest_random(&state) % 4) {
        source = status.MPI_SOURCE;
        tag = status.MPI_TAG;
        CHECK(stress_accepts(posting->source, posting->tag, source, tag));
        fit(posting, true);
        if (0 == mpitest_random(&state) % 4) {
            MPI_OK(MPI_Probe(source, tag, stress_comm(posting->comm), &status));
            saw(thread, posting, &status, STRESS_SAW);
            event_of(posting)->source = source;
            event_of(posting)->tag = tag;
        }
    }
    if (STRESS_LOOK_IRECV == posting->action || STRESS_PROBE_IRECV == posting->action) {
        post_nonblocking(thread, posting, source, tag);
    } else {
        post_blocking(thread, posting, source, tag);
    }
}

/* Keep a message of a matched probe. */
static void hold(stress_thread_t *thread, stress_posting_t *posting, const MPI_Status *status)
{
    CHECK(MPI_MESSAGE_NULL != posting->handle && MPI_MESSAGE_NO_PROC != posting->handle);
    saw(thread, posting, status, STRESS_TOOK);
    posting->state = STRESS_STATE_HELD;
    if (thread->held_count == thread->held_room) {
        thread->held_room = 2 * thread->held_room + 16;
        thread->held = realloc(thread->held, sizeof(*thread->held) * (size_t) thread->held_room);
        CHECK(NULL != thread->held);
    }
    thread->held[thread->held_count++] = posting;
}

static void post_matched(stress_thread_t *thread, stress_posting_t *posting)
{
    int source = to_mpi_source(posting->source), tag = to_mpi_tag(posting->tag), flag = 0;
    MPI_Comm comm = stress_comm(posting->comm);
    MPI_Status status;

    if (STRESS_MPROBE == posting->action) {
        MPI_OK(MPI_Mprobe(source, tag, comm, &posting->handle, &status));
        hold(thread, posting, &status);
        return;
    }
    do {
        MPI_OK(MPI_Improbe(source, tag, comm, &flag, &posting->handle, &status));
        if (!flag && STRESS_IMPROBE == posting->action) {
            stress_poll(thread);
            sched_yield();
        }
    } while (!flag && STRESS_IMPROBE == posting->action);
    if (flag) {
        hold(thread, posting, &status);
    } else {
        post_nonblocking(thread, posting, posting->source, posting->tag);
    }
}

void stress_receive_held(stress_thread_t *thread, int number)
{
    stress_posting_t *posting = thread->held[number];
    const stress_entry_t *entry;
    MPI_Request request;
    MPI_Status status;
    bool block = 0 == (posting->draws >> 32) % 2;
    int rc;

    thread->held[number] = thread->held[--thread->held_count];
    /* pml/ucx of Open MPI 4.1.4 crashes in the error handler of an Imrecv. */
    fit(posting, block || !stress_on_ucx());
    entry = stress_entry(posting->entry);
    posting->buffer = mpitest_buffer(entry->map);
    posting->state = STRESS_STATE_ACTIVE;
    event_of(posting)->capacity = entry->bytes;
    if (block) {
        rc = MPI_Mrecv(posting->buffer->addr, entry->count, entry->type, &posting->handle, &status);
        CHECK(MPI_MESSAGE_NULL == posting->handle);
        stress_receive_done(thread, posting, &status, rc);
        return;
    }
    MPI_OK(
        MPI_Imrecv(posting->buffer->addr, entry->count, entry->type, &posting->handle, &request));
    CHECK(MPI_MESSAGE_NULL == posting->handle);
    stress_active_add(thread, request, posting, NULL);
}

void stress_receive_post(stress_thread_t *thread, stress_posting_t *posting)
{
    ++thread->step;
    ++thread->counters[STRESS_COUNT_RECEIVES];
    switch (posting->action) {
    case STRESS_IRECV:
        post_nonblocking(thread, posting, posting->source, posting->tag);
        break;
    case STRESS_RECV_INIT:
        post_persistent(thread, posting);
        break;
    case STRESS_RECV:
        post_blocking(thread, posting, posting->source, posting->tag);
        break;
    case STRESS_IMPROBE_IRECV:
    case STRESS_MPROBE:
    case STRESS_IMPROBE:
        post_matched(thread, posting);
        break;
    default:
        post_probed(thread, posting);
        break;
    }
}

void stress_receive_null(stress_thread_t *thread)
{
    MPI_Comm comm = stress_comm(0);
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0, count = -1;

    switch (mpitest_between(&thread->chance, 0, 2)) {
    case 0:
        MPI_OK(MPI_Iprobe(MPI_PROC_NULL, 3, comm, &flag, &status));
        CHECK(flag);
        break;
    case 1:
        MPI_OK(MPI_Mprobe(MPI_PROC_NULL, 3, comm, &handle, &status));
        CHECK(MPI_MESSAGE_NO_PROC == handle);
        MPI_OK(MPI_Mrecv(NULL, 0, MPI_BYTE, &handle, &status));
        break;
    default:
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 3, comm, &status));
        break;
    }
    CHECK_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_INT(status.MPI_TAG, MPI_ANY_TAG);
    MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_INT(count, 0);
}
