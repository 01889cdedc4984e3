/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The model of stress_random compared with an enumeration: for small lanes, all orders in which
 * messages can arrive and receives can be posted, step by step. There are two enumerations: one
 * with messages of a source that arrive in the order of sending, as they do, and one with messages
 * that arrive in any order that MPI allows. The model must accept the outcomes of the first; it
 * must refuse those that are not outcomes of the second.
 */

#include "stress_model.h"

#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCES   2
#define OFFERS    4
#define EVENTS    6
#define CANCELLED OFFERS       /* in an outcome: instead of the number of an offer */
#define CHOICES   (OFFERS + 1) /* of each event */
#define OUTCOMES  (CHOICES * CHOICES * CHOICES * CHOICES * CHOICES * CHOICES)

/* A lane, and the state of one path of the enumeration. */
typedef struct lane_t {
    int offer_count, event_count;
    stress_offer_t offers[OFFERS]; /* of each source in the order of sending */
    stress_event_t events[EVENTS];
    bool probe[EVENTS], cancel[EVENTS];
} lane_t;

typedef struct state_t {
    int posted;
    bool arrived[OFFERS], matched[OFFERS];
    int got[EVENTS]; /* an offer, CANCELLED, or -1 */
} state_t;

static lane_t lane;
static bool in_order;
static bool possible[2][OUTCOMES]; /* in any order; in order */

static int number_of(const int *got)
{
    int number = 0, i;

    for (i = lane.event_count - 1; 0 <= i; --i) {
        number = number * CHOICES + got[i];
    }
    return number;
}

static bool fits(int event, int offer)
{
    return stress_accepts(lane.events[event].source, lane.events[event].tag,
                          lane.offers[offer].source, lane.offers[offer].tag);
}

static void explore(const state_t *state);

/*
 * The message of a source that an event may match now, or -1: of the unmatched ones that fit, the
 * first that was sent, and only once it has arrived. Messages that no receive distinguishes by
 * order may arrive in any.
 */
static int candidate(const state_t *state, int event, int source)
{
    int i;

    for (i = 0; i < lane.offer_count; ++i) {
        if (source == lane.offers[i].source && !state->matched[i] && fits(event, i)) {
            return state->arrived[i] ? i : -1;
        }
    }
    return -1;
}

/* A message arrives: the first posted receive that fits matches it. */
static void arrive(const state_t *state, int offer)
{
    state_t next = *state;
    int i, found;

    next.arrived[offer] = true;
    for (i = 0; i < next.posted; ++i) {
        if (lane.probe[i] || 0 <= next.got[i]) {
            continue;
        }
        found = candidate(&next, i, lane.offers[offer].source);
        if (0 <= found) {
            next.got[i] = found;
            next.matched[found] = true;
        }
    }
    explore(&next);
}

/* A receive is posted, and matches an arrived message of any source; or a probe finds one. */
static void post(const state_t *state)
{
    int event = state->posted, source, found = -1, chosen;
    state_t next;

    for (source = 0; source < SOURCES; ++source) {
        chosen = candidate(state, event, source);
        if (0 <= chosen) {
            found = chosen;
            next = *state;
            ++next.posted;
            next.got[event] = chosen;
            next.matched[chosen] = !lane.probe[event];
            explore(&next);
        }
    }
    if (0 > found && !lane.probe[event]) {
        next = *state;
        ++next.posted;
        explore(&next);
    }
}

static void explore(const state_t *state)
{
    bool waiting[SOURCES] = {false}, over = state->posted == lane.event_count;
    int i;

    for (i = 0; i < lane.offer_count; ++i) {
        int source = lane.offers[i].source;

        if (!state->arrived[i] && !(in_order && waiting[source])) {
            arrive(state, i);
        }
        waiting[source] = waiting[source] || !state->arrived[i];
        over = over && state->arrived[i] && state->matched[i];
    }
    if (state->posted < lane.event_count) {
        post(state);
    }
    for (i = 0; i < state->posted; ++i) {
        if (0 > state->got[i] && lane.cancel[i]) {
            state_t next = *state;

            next.got[i] = CANCELLED;
            explore(&next);
        }
        over = over && 0 <= state->got[i];
    }
    if (over) {
        possible[in_order][number_of(state->got)] = true;
    }
}

static void draw_lane(uint64_t *random)
{
    int shift = (int) mpitest_between(random, 0, OFFERS - 1), i;

    memset(&lane, 0, sizeof(lane));
    memset(possible, 0, sizeof(possible));
    lane.offer_count = (int) mpitest_between(random, 1, OFFERS);
    for (i = 0; i < lane.offer_count; ++i) {
        lane.offers[i].source = (int) mpitest_between(random, 0, SOURCES - 1);
        lane.offers[i].tag = (int) mpitest_between(random, 0, 1);
        lane.offers[i].bytes = 100 + i; /* identifies the message */
    }
    lane.event_count = (int) mpitest_between(random, lane.offer_count, EVENTS);
    for (i = 0; i < lane.event_count; ++i) {
        /* Made for one of the messages, or for more. */
        const stress_offer_t *offer = &lane.offers[(i + shift) % lane.offer_count];

        lane.events[i].source = 0 == mpitest_random(random) % 2 ? STRESS_ANY : offer->source;
        lane.events[i].tag = 0 == mpitest_random(random) % 2 ? STRESS_ANY : offer->tag;
        lane.events[i].capacity = mpitest_between(random, 100, 115);
        lane.probe[i] = 0 == mpitest_random(random) % 4;
        lane.cancel[i] = !lane.probe[i] && 0 == mpitest_random(random) % 3;
    }
}

/* The model's result for an outcome, as the statuses would report it. */
static bool accepted(const int *got, char *why, size_t size)
{
    stress_event_t events[EVENTS];
    int i;

    memcpy(events, lane.events, sizeof(events));
    for (i = 0; i < lane.event_count; ++i) {
        events[i].outcome = CANCELLED == got[i] ? STRESS_CANCELLED
                            : lane.probe[i]     ? STRESS_SAW
                                                : STRESS_TOOK;
        if (CANCELLED != got[i]) {
            events[i].got_source = lane.offers[got[i]].source;
            events[i].got_tag = lane.offers[got[i]].tag;
            events[i].got_bytes = lane.offers[got[i]].bytes;
            events[i].truncated = !lane.probe[i] && events[i].capacity < events[i].got_bytes;
        }
    }
    return stress_verify(lane.offers, lane.offer_count, events, lane.event_count, why, size);
}

/*
 * All outcomes that could be reported. The status of a truncated receive does not have the size of
 * its message: the model may match it with any possible message, so those are only checked in one
 * direction.
 */
static bool check_all(uint64_t seed, long *yes, long *no)
{
    int got[EVENTS] = {0}, number, rest, i;
    int total = 1;
    char why[512];

    for (i = 0; i < lane.event_count; ++i) {
        total *= CHOICES;
    }
    for (number = 0; number < total; ++number) {
        bool claim = true, blind = false, allowed;

        for (rest = number, i = 0; i < lane.event_count; ++i, rest /= CHOICES) {
            got[i] = rest % CHOICES;
            claim = claim && (CANCELLED == got[i] ? lane.cancel[i] : got[i] < lane.offer_count);
            blind = blind
                    || (claim && CANCELLED != got[i] && !lane.probe[i]
                        && lane.events[i].capacity < lane.offers[got[i]].bytes);
        }
        if (!claim) {
            continue;
        }
        why[0] = '\0';
        allowed = accepted(got, why, sizeof(why));
        if ((allowed && !possible[0][number] && !blind) || (!allowed && possible[1][number])) {
            fprintf(
                stderr,
                "stress_check: FAILED: seed %llu, outcome %d: MPI %s it, the model says %s %s\n",
                (unsigned long long) seed, number, allowed ? "forbids" : "allows",
                allowed ? "yes" : "no", why);
            for (i = 0; i < lane.offer_count; ++i) {
                fprintf(stderr, "  message %d: source %d tag %d\n", i, lane.offers[i].source,
                        lane.offers[i].tag);
            }
            for (i = 0; i < lane.event_count; ++i) {
                fprintf(stderr, "  %s %d: source %d tag %d: %d\n",
                        lane.probe[i] ? "probe" : "receive", i, lane.events[i].source,
                        lane.events[i].tag, got[i]);
            }
            return false;
        }
        ++*(allowed ? yes : no);
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t first = 1 < argc ? strtoull(argv[1], NULL, 0) : 1, seed;
    long yes = 0, no = 0;

    for (seed = first; seed < first + 2000; ++seed) {
        uint64_t random = mpitest_mix(seed, 0x5c, 0);
        state_t state;
        int i;

        memset(&state, 0, sizeof(state));
        for (i = 0; i < EVENTS; ++i) {
            state.got[i] = -1;
        }
        draw_lane(&random);
        in_order = false;
        explore(&state);
        in_order = true;
        explore(&state);
        if (!check_all(seed, &yes, &no)) {
            return 1;
        }
    }
    printf("stress_check: ok, seeds %llu to %llu: %ld outcomes accepted, %ld refused\n",
           (unsigned long long) first, (unsigned long long) first + 1999, yes, no);
    return 0 < yes && 0 < no ? 0 : 1;
}
