/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_lane.h"

#include "stress_corpus.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of receives without a message. */
#define DEAD 2

bool stress_action_blocks(stress_action_t action)
{
    return STRESS_RECV <= action;
}

const char *stress_action_name(stress_action_t action)
{
    static const char *const names[STRESS_ACTIONS] = {
        "Irecv",      "Recv_init",   "Iprobe+Irecv", "Improbe/Irecv", "Recv",
        "Probe+Recv", "Probe+Irecv", "Iprobe+Recv",  "Mprobe",        "Improbe"};

    return names[action];
}

static void *get_array(size_t n, size_t size)
{
    void *memory = calloc(0 == n ? 1 : n, size);

    CHECK(NULL != memory);
    return memory;
}

int stress_lane_event(stress_lane_t *lane, stress_posting_t *posting)
{
    stress_event_t *event;

    if (lane->event_count == lane->event_room) {
        lane->event_room = 2 * lane->event_room + 16;
        lane->events = realloc(lane->events, sizeof(*lane->events) * (size_t) lane->event_room);
        lane->takers = realloc(lane->takers, sizeof(*lane->takers) * (size_t) lane->event_room);
        CHECK(NULL != lane->events && NULL != lane->takers);
    }
    event = &lane->events[lane->event_count];
    memset(event, 0, sizeof(*event));
    event->source = posting->source;
    event->tag = posting->tag;
    event->outcome = STRESS_PENDING;
    event->got_source = STRESS_UNKNOWN;
    event->got_tag = STRESS_UNKNOWN;
    event->got_bytes = STRESS_UNKNOWN;
    event->offer = -1;
    lane->takers[lane->event_count] = posting;
    return lane->event_count++;
}

long stress_lane_least(const stress_lane_t *lane, int source, int tag)
{
    long least = 0;
    int i;

    for (i = 0; i < lane->offer_count; ++i) {
        const stress_message_t *message = lane->messages[i];

        if (stress_accepts(source, tag, message->source, message->tag)
            && (message->from == message->to
                || (STRESS_FLAT_LIMIT < message->bytes && stress_entry(message->entry)->flat))
            && least < message->bytes) {
            least = message->bytes;
        }
    }
    return least;
}

long stress_lane_longest(const stress_lane_t *lane, int source, int tag)
{
    long bytes = 0;
    int i;

    for (i = 0; i < lane->offer_count; ++i) {
        if (stress_accepts(source, tag, lane->offers[i].source, lane->offers[i].tag)
            && bytes < lane->offers[i].bytes) {
            bytes = lane->offers[i].bytes;
        }
    }
    return bytes;
}

static void draw_room(stress_posting_t *posting, uint64_t *state)
{
    const stress_lane_t *lane = posting->lane;
    long all =
        lane->pooled ? lane->longest : stress_lane_longest(lane, posting->source, posting->tag);
    long least;

    posting->entry = stress_draw_room(state, lane->family, all);
    if (STRESS_PAIRS > lane->family && !lane->pooled && !posting->freed
        && 0 == mpitest_random(state) % 6) {
        least = stress_lane_least(lane, posting->source, posting->tag);
        posting->entry = stress_draw_short(state, lane->family, least, all);
    }
}

/* True if a receive is matched whatever the earlier ones matched. */
static bool is_safe(const stress_lane_t *lane, stress_posting_t *const *before, int count,
                    int source, int tag)
{
    int fitting = 0, rivals = 0, i;

    for (i = 0; i < lane->offer_count; ++i) {
        fitting += stress_accepts(source, tag, lane->offers[i].source, lane->offers[i].tag) ? 1 : 0;
    }
    for (i = 0; i < count; ++i) {
        bool sources =
            STRESS_ANY == source || STRESS_ANY == before[i]->source || source == before[i]->source;
        bool tags = STRESS_ANY == tag || STRESS_ANY == before[i]->tag || tag == before[i]->tag;

        rivals += sources && tags ? 1 : 0;
    }
    return rivals < fitting;
}

/* The pattern that is always safe: all messages of its lane, or of its tag. */
static void widest(stress_posting_t *posting, int tag)
{
    posting->source = STRESS_ANY;
    posting->tag = stress_comm_wild(posting->comm) ? STRESS_ANY : tag;
}

static void draw_pattern(stress_posting_t *posting, stress_posting_t *const *before, int count,
                         const stress_offer_t *offer, uint64_t *state, int wildness)
{
    bool wild = stress_comm_wild(posting->comm);

    if (posting->lane->pooled) {
        /* Threads post in no defined order, so all receives of a source are alike. */
        posting->source = posting->lane->sourced ? offer->source : STRESS_ANY;
        posting->tag = STRESS_ANY;
        return;
    }
    posting->source = mpitest_between(state, 0, 9) < wildness ? STRESS_ANY : offer->source;
    posting->tag = wild && mpitest_between(state, 0, 9) < wildness ? STRESS_ANY : offer->tag;
    if (!is_safe(posting->lane, before, count, posting->source, posting->tag)) {
        widest(posting, offer->tag);
    }
}

static stress_action_t draw_action(uint64_t *state, bool may_block)
{
    static const int weights[STRESS_ACTIONS] = {26, 12, 8, 8, 18, 8, 6, 6, 10, 8};
    int count = may_block ? STRESS_ACTIONS : STRESS_RECV, total = 0, i;
    long drawn;

    for (i = 0; i < count; ++i) {
        total += weights[i];
    }
    drawn = mpitest_between(state, 0, total - 1);
    for (i = 0; i < count; ++i) {
        drawn -= weights[i];
        if (0 > drawn) {
            break;
        }
    }
    return (stress_action_t) i;
}

static void draw_posting(stress_posting_t *posting, uint64_t *state)
{
    bool request = (STRESS_IRECV == posting->action || STRESS_RECV_INIT == posting->action)
                   && !posting->lane->pooled;

    posting->freed = request && STRESS_ANY != posting->source && 0 == mpitest_random(state) % 12;
    posting->cancel = request && !posting->freed && 0 == mpitest_random(state) % 8;
    posting->quiet = STRESS_RECV == posting->action && STRESS_ANY != posting->source
                     && STRESS_ANY != posting->tag && 0 == mpitest_random(state) % 4;
    posting->own_type = STRESS_RECV > posting->action && STRESS_RECV_INIT != posting->action
                        && 0 == mpitest_random(state) % 10;
    posting->kept = request && STRESS_RECV_INIT == posting->action && !posting->freed;
    draw_room(posting, state);
    posting->draws = mpitest_random(state);
    posting->slot = -1;
    posting->handle = MPI_MESSAGE_NULL;
    posting->count = STRESS_UNKNOWN;
    posting->elements = STRESS_UNKNOWN;
}

/* Draw the receives of a lane, in order, into 'into'. */
static void plan_lane(stress_lane_t *lane, stress_posting_t *postings, stress_posting_t **into,
                      uint64_t *state, bool may_block)
{
    static const int degrees[] = {0, 0, 2, 5, 10};
    int wildness = degrees[mpitest_between(state, 0, 4)], i, *births;

    /* Each receive is drawn for one of the messages, in an order that may differ from theirs. */
    births = get_array((size_t) lane->offer_count, sizeof(*births));
    for (i = 0; i < lane->offer_count; ++i) {
        births[i] = i;
    }
    if (0 == mpitest_random(state) % 2) {
        mpitest_shuffle(state, births, lane->offer_count);
    }
    for (i = 0; i < lane->offer_count; ++i) {
        stress_posting_t *posting = &postings[i];

        posting->lane = lane;
        posting->comm = lane->comm;
        posting->action = draw_action(state, may_block);
        draw_pattern(posting, into, i, &lane->offers[births[i]], state, wildness);
        draw_posting(posting, state);
        into[i] = posting;
    }
    free(births);
}

/* Receives without a message; they stay posted among the others until they are cancelled. */
static int plan_dead(stress_posting_t *postings, uint64_t *state)
{
    int count = 0 == mpitest_random(state) % 3 ? (int) mpitest_between(state, 1, DEAD) : 0, i;

    for (i = 0; i < count; ++i) {
        stress_posting_t *posting = &postings[i];

        posting->comm = (int) mpitest_between(state, 0, STRESS_COMM_REVERSED);
        posting->source = 0 == mpitest_random(state) % 2 ? STRESS_ANY : 0;
        posting->tag = STRESS_DEAD_TAG;
        posting->action = 0 == mpitest_random(state) % 3 ? STRESS_RECV_INIT : STRESS_IRECV;
        posting->entry = stress_draw_sender(state, STRESS_BYTES, 20000);
        posting->cancel = true;
        posting->slot = -1;
        posting->handle = MPI_MESSAGE_NULL;
    }
    return count;
}

/* Sort the messages for a thread into lanes. */
static void find_lanes(stress_lanes_t *lanes, const stress_plan_t *plan, int thread)
{
    int number[STRESS_COMMS], i;
    long longest = 0;

    memset(number, -1, sizeof(number));
    for (i = 0; i < plan->count; ++i) {
        const stress_message_t *message = &plan->messages[i];
        stress_lane_t *lane;

        if (message->to != mpitest.rank) {
            continue;
        }
        if (stress_comm_pooled(message->comm) && longest < message->bytes) {
            longest = message->bytes;
        }
        if (message->to_thread != thread) {
            continue;
        }
        if (0 > number[message->comm]) {
            number[message->comm] = lanes->count;
            lane = &lanes->lanes[lanes->count++];
            lane->comm = message->comm;
            lane->pooled = stress_comm_pooled(message->comm);
            lane->sourced = lane->pooled && 0 == plan->epoch % 3;
            lane->family = stress_plan_family(plan->epoch, message->comm, mpitest.rank, thread);
            lane->messages = get_array((size_t) plan->count, sizeof(*lane->messages));
            lane->offers = get_array((size_t) plan->count, sizeof(*lane->offers));
        }
        lane = &lanes->lanes[number[message->comm]];
        lane->messages[lane->offer_count] = message;
        lane->offers[lane->offer_count].source = message->source;
        lane->offers[lane->offer_count].tag = message->tag;
        lane->offers[lane->offer_count].bytes = message->bytes;
        ++lane->offer_count;
    }
    for (i = 0; i < lanes->count; ++i) {
        lanes->lanes[i].longest = longest;
    }
}

/* Merge the lanes' receives and the dead ones, each in its order, to one order. */
static void merge(stress_lanes_t *lanes, stress_posting_t **sorted, const int *starts, int groups,
                  uint64_t *state)
{
    int next[STRESS_COMMS + 1], i;

    memcpy(next, starts, sizeof(int) * (size_t) groups);
    for (i = 0; i < lanes->posting_count;) {
        int group = (int) mpitest_between(state, 0, groups - 1);

        if (next[group] < starts[group + 1]) {
            lanes->order[i++] = sorted[next[group]++];
        }
    }
}

void stress_lanes_plan(stress_lanes_t *lanes, const stress_plan_t *plan, int thread)
{
    uint64_t state = mpitest_mix(mpitest.seed ^ 0x1a4e, (uint64_t) plan->epoch,
                                 (uint64_t) (mpitest.rank * STRESS_THREADS + thread));
    bool may_block = !plan->poster[mpitest.rank][thread];
    int starts[STRESS_COMMS + 2], total = DEAD, at = 0, i;
    stress_posting_t **sorted;

    memset(lanes, 0, sizeof(*lanes));
    find_lanes(lanes, plan, thread);
    for (i = 0; i < lanes->count; ++i) {
        total += lanes->lanes[i].offer_count;
    }
    lanes->posting_room = 2 * total;
    lanes->postings = get_array((size_t) lanes->posting_room, sizeof(*lanes->postings));
    lanes->order = get_array((size_t) total, sizeof(*lanes->order));
    sorted = get_array((size_t) total, sizeof(*sorted));
    for (i = 0; i < lanes->count; ++i) {
        starts[i] = at;
        plan_lane(&lanes->lanes[i], &lanes->postings[at], &sorted[at], &state, may_block);
        at += lanes->lanes[i].offer_count;
    }
    starts[lanes->count] = at;
    for (i = 0; 1 < plan->threads && i < at; ++i) {
        /* pml/ob1, 4.1 and 5.0, records a match only after it has released the lock, so a cancel in
         * another thread may remove the request from its list a second time; and a free of an
         * active request and its completion may both return it. */
        lanes->postings[i].cancel = false;
        lanes->postings[i].freed = false;
    }
    for (total = at + plan_dead(&lanes->postings[at], &state); at < total; ++at) {
        sorted[at] = &lanes->postings[at];
    }
    starts[lanes->count + 1] = at;
    lanes->posting_count = at;
    merge(lanes, sorted, starts, lanes->count + 1, &state);
    free(sorted);
}

stress_posting_t *stress_lanes_replace(stress_lanes_t *lanes, const stress_posting_t *cancelled,
                                       int number)
{
    stress_posting_t *posting = &lanes->postings[lanes->posting_count + number];
    uint64_t state = cancelled->draws;

    CHECK(lanes->posting_count + number < lanes->posting_room);
    memset(posting, 0, sizeof(*posting));
    posting->lane = cancelled->lane;
    posting->comm = cancelled->comm;
    posting->action = STRESS_IRECV;
    widest(posting, cancelled->tag);
    draw_posting(posting, &state);
    posting->cancel = false;
    return posting;
}

void stress_lanes_free(stress_lanes_t *lanes)
{
    int i;

    for (i = 0; i < lanes->count; ++i) {
        free(lanes->lanes[i].messages);
        free(lanes->lanes[i].offers);
        free(lanes->lanes[i].events);
        free(lanes->lanes[i].takers);
    }
    free(lanes->postings);
    free(lanes->order);
}
