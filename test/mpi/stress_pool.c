/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The pool: a communicator on which all threads of a process receive with any source and any tag,
 * or, in some epochs, with one tag. There are as many receives as messages, so each is matched. Any
 * thread may get any message; but the messages of one sending thread to one receiving thread are in
 * order. The bytes identify a message.
 */

#include "stress_thread.h"

#include <stdlib.h>

/* The message of a receive, by its status and bytes, of those that are unassigned; or -1. */
static int identify(const stress_event_t *event, const stress_posting_t *posting,
                    const stress_plan_t *plan, const bool *taken)
{
    int i;

    for (i = 0; i < plan->count; ++i) {
        const stress_message_t *message = &plan->messages[i];

        if (mpitest.rank == message->to && stress_comm_pooled(message->comm) && !taken[i]
            && event->got_source == message->source && event->got_tag == message->tag
            && event->got_bytes == message->bytes
            && mpitest_arrived(posting->buffer, message->key, message->bytes)) {
            return i;
        }
    }
    return -1;
}

/* Find the messages of the receives of a lane. */
static void identify_all(stress_thread_t *thread, stress_lane_t *lane, const stress_plan_t *plan,
                         bool *taken)
{
    int i;

    for (i = 0; i < lane->event_count; ++i) {
        stress_event_t *event = &lane->events[i];

        if (STRESS_SAW == event->outcome) {
            continue;
        }
        CHECK(STRESS_TOOK == event->outcome && !event->truncated);
        CHECK(stress_accepts(event->source, event->tag, event->got_source, event->got_tag));
        event->offer = identify(event, lane->takers[i], plan, taken);
        if (0 > event->offer) {
            mpitest_fail(__FILE__, __LINE__,
                         "thread %d, event %d: what it took from the pool is no message that is "
                         "left: source %d tag %d, %ld bytes",
                         thread->number, i, event->got_source, event->got_tag, event->got_bytes);
        }
        taken[event->offer] = true;
        stress_check_posting(lane->takers[i], &plan->messages[event->offer]);
    }
}

/* Messages of one sender must arrive in the order of sending: plan->messages is in it. */
static void check_order(const stress_thread_t *thread, const stress_lane_t *lane,
                        const stress_plan_t *plan)
{
    int last[STRESS_RANKS][STRESS_THREADS], i, j;

    for (i = 0; i < STRESS_RANKS; ++i) {
        for (j = 0; j < STRESS_THREADS; ++j) {
            last[i][j] = -1;
        }
    }
    for (i = 0; i < lane->event_count; ++i) {
        int offer = lane->events[i].offer, *before;

        if (STRESS_SAW == lane->events[i].outcome) {
            continue;
        }
        before = &last[plan->messages[offer].from][plan->messages[offer].from_thread];
        if (offer < *before) {
            mpitest_fail(__FILE__, __LINE__,
                         "thread %d, event %d: took message %d of rank %d thread %d from the pool, "
                         "and message %d before",
                         thread->number, i, offer, plan->messages[offer].from,
                         plan->messages[offer].from_thread, *before);
        }
        *before = offer;
    }
}

void stress_check_pool(stress_thread_t *threads, int count, const stress_plan_t *plan)
{
    bool *taken = calloc((size_t) plan->count + 1, sizeof(*taken));
    int i, j;

    CHECK(NULL != taken);
    for (i = 0; i < count; ++i) {
        for (j = 0; j < threads[i].lanes.count; ++j) {
            stress_lane_t *lane = &threads[i].lanes.lanes[j];

            if (lane->pooled) {
                threads[0].checked = lane;
                identify_all(&threads[i], lane, plan, taken);
                stress_break_pool(&threads[i], lane);
                check_order(&threads[i], lane, plan);
                threads[0].checked = NULL;
            }
        }
    }
    for (i = 0; i < plan->count; ++i) {
        if (mpitest.rank == plan->messages[i].to && stress_comm_pooled(plan->messages[i].comm)
            && !taken[i]) {
            mpitest_fail(__FILE__, __LINE__, "message %d was not received from the pool", i);
        }
    }
    free(taken);
}
