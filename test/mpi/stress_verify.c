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

void stress_print_lane(const stress_thread_t *thread, const stress_lane_t *lane)
{
    static const char *const outcomes[] = {"pending", "took", "saw", "cancelled"};
    int i;

    fprintf(stderr, "lane of rank %d thread %d on communicator %d (%s), epoch %ld\n", mpitest.rank,
            thread->number, lane->comm, stress_comm_name(lane->comm), thread->plan->epoch);
    for (i = 0; i < lane->offer_count; ++i) {
        const stress_message_t *message = lane->messages[i];

        fprintf(stderr, "  message %d: source %d (rank %d thread %d) tag %d, %ld bytes, %s, %s\n",
                i, message->source, message->from, message->from_thread, message->tag,
                message->bytes, stress_way_name(message->way), stress_entry(message->entry)->name);
    }
    for (i = 0; i < lane->event_count; ++i) {
        const stress_event_t *event = &lane->events[i];
        const stress_posting_t *posting = lane->takers[i];

        fprintf(stderr,
                "  event %d: source %d tag %d room %ld (%s, %s): %s source %d tag %d bytes %ld%s, "
                "message %d\n",
                i, event->source, event->tag, event->capacity, stress_action_name(posting->action),
                stress_entry(posting->entry)->name, outcomes[event->outcome], event->got_source,
                event->got_tag, event->got_bytes, event->truncated ? ", truncated" : "",
                event->offer);
    }
}

/* Freed requests return no status: the patterns identify their messages, the buffer shows their
 * arrival. */
static void assume_freed(stress_lane_t *lane)
{
    int i;

    for (i = 0; i < lane->event_count; ++i) {
        if (STRESS_STATE_FREED == lane->takers[i]->state && i == lane->takers[i]->event) {
            lane->events[i].outcome = STRESS_TOOK;
            lane->events[i].got_source = lane->events[i].source;
        }
    }
}

static void check_counts(const stress_posting_t *posting, const stress_message_t *message)
{
    const stress_entry_t *entry = stress_entry(posting->entry);
    int size = 0;

    if (STRESS_UNKNOWN == posting->count || MPI_SUCCESS != posting->error) {
        return;
    }
    MPI_OK(MPI_Type_size(entry->type, &size));
    if (0 == size) {
        CHECK_INT(posting->count, 0);
    } else if (0 != message->bytes % size) {
        CHECK_INT(posting->count, MPI_UNDEFINED);
    } else {
        CHECK_INT(posting->count, message->bytes / size);
    }
    if (0 != entry->unit) {
        CHECK_INT(posting->elements, message->bytes / entry->unit);
    }
}

void stress_check_posting(stress_posting_t *posting, const stress_message_t *message)
{
    int flag;

    if (NULL == message) {
        VERIFY(posting->buffer, 0, 0);
        return;
    }
    while (STRESS_STATE_FREED == posting->state) {
        if (mpitest_arrived(posting->buffer, message->key, message->bytes)) {
            posting->state = STRESS_STATE_DONE;
        } else {
            MPI_OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, stress_comm_control(), &flag, MPI_STATUS_IGNORE));
        }
    }
    if (MPI_SUCCESS != posting->error) {
        VERIFY_TRUNCATED(posting->buffer, message->key, stress_entry(posting->entry)->bytes);
        return;
    }
    VERIFY(posting->buffer, message->key, message->bytes);
    check_counts(posting, message);
}

static void check_lane(stress_thread_t *thread, stress_lane_t *lane)
{
    char why[512];
    int i;

    thread->checked = lane;
    assume_freed(lane);
    stress_break_lane(thread, lane);
    if (!stress_verify(lane->offers, lane->offer_count, lane->events, lane->event_count, why,
                       sizeof(why))) {
        mpitest_fail(__FILE__, __LINE__, "%s", why);
    }
    ++mpitest.checks;
    for (i = 0; i < lane->event_count; ++i) {
        const stress_event_t *event = &lane->events[i];

        if (STRESS_SAW == event->outcome) {
            continue;
        }
        stress_check_posting(lane->takers[i],
                             STRESS_TOOK == event->outcome ? lane->messages[event->offer] : NULL);
    }
    thread->checked = NULL;
}

/*
 * No event reports that a freed receive is complete, not even the arrival of its bytes (MPI 4.1,
 * 3.7.3): MPI owns its memory to the end of the process.
 */
static void keep(stress_thread_t *thread, mpitest_buffer_t *buffer)
{
    if (thread->cached_count == thread->cached_room) {
        thread->cached_room += 64;
        thread->kept = realloc(thread->kept, sizeof(*thread->kept) * (size_t) thread->cached_room);
        CHECK(NULL != thread->kept);
    }
    thread->kept[thread->cached_count++] = buffer;
}

void stress_check_all(stress_thread_t *thread)
{
    stress_lanes_t *lanes = &thread->lanes;
    int i;

    for (i = 0; i < lanes->count; ++i) {
        if (!lanes->lanes[i].pooled) {
            check_lane(thread, &lanes->lanes[i]);
        }
    }
    for (i = 0; i < lanes->posting_count + thread->replaced; ++i) {
        stress_posting_t *posting = &lanes->postings[i];

        CHECK(STRESS_STATE_DONE == posting->state);
        if (NULL == posting->lane) {
            VERIFY(posting->buffer, 0, 0);
        }
        if (0 <= posting->slot) {
            thread->receives[posting->slot].busy = false;
        } else if (posting->freed) {
            keep(thread, posting->buffer);
        } else {
            mpitest_buffer_free(posting->buffer);
        }
    }
}
