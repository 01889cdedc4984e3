/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_model.h"

#include <stdio.h>

bool stress_accepts(int pattern_source, int pattern_tag, int source, int tag)
{
    return (STRESS_ANY == pattern_source || pattern_source == source)
           && (STRESS_ANY == pattern_tag || pattern_tag == tag);
}

static bool accepts(const stress_event_t *event, const stress_offer_t *offer)
{
    return stress_accepts(event->source, event->tag, offer->source, offer->tag);
}

/* The receive that must have matched an offer, if all earlier ones of its source have been matched.
 */
static stress_event_t *taker(const stress_offer_t *offer, stress_event_t *events, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (STRESS_TOOK == events[i].outcome && events[i].got_source == offer->source
            && 0 > events[i].offer && accepts(&events[i], offer)) {
            return &events[i];
        }
    }
    return NULL;
}

/* Check the status of an event against its message. */
static bool agrees(const stress_event_t *event, int number, const stress_offer_t *offer, char *why,
                   size_t size)
{
    const char *what = STRESS_SAW == event->outcome ? "probe" : "receive";

    if (STRESS_UNKNOWN != event->got_tag && event->got_tag != offer->tag) {
        snprintf(why, size,
                 "%s %d says source %d tag %d, and what it must have found has tag %d (message %d)",
                 what, number, event->got_source, event->got_tag, offer->tag, event->offer);
        return false;
    }
    if (STRESS_TOOK == event->outcome && event->truncated != (event->capacity < offer->bytes)) {
        snprintf(why, size, "receive %d of %ld bytes took message %d of %ld bytes: %s", number,
                 event->capacity, event->offer, offer->bytes,
                 event->truncated ? "and says truncated" : "and does not say truncated");
        return false;
    }
    if (!event->truncated && STRESS_UNKNOWN != event->got_bytes
        && event->got_bytes != offer->bytes) {
        snprintf(why, size, "%s %d says %ld bytes, message %d has %ld", what, number,
                 event->got_bytes, event->offer, offer->bytes);
        return false;
    }
    return true;
}

/* The offer that a probe must have found: the first that no earlier event matches. */
static int visible(const stress_offer_t *offers, int offer_count, const stress_event_t *events,
                   int probe)
{
    int i, j;

    for (i = 0; i < offer_count; ++i) {
        if (offers[i].source != events[probe].got_source || !accepts(&events[probe], &offers[i])) {
            continue;
        }
        for (j = 0; j < probe; ++j) {
            if (STRESS_TOOK == events[j].outcome && i == events[j].offer) {
                break;
            }
        }
        if (j == probe) {
            return i;
        }
    }
    return -1;
}

/*
 * A receive that was cancelled in time, although an earlier probe had found a message for it: it
 * had to match that one when it was posted, unless another receive had done so.
 */
static bool was_owed(const stress_event_t *events, int cancelled, char *why, size_t size)
{
    int i, j;

    for (i = 0; i < cancelled; ++i) {
        if (STRESS_SAW != events[i].outcome
            || !stress_accepts(events[cancelled].source, events[cancelled].tag,
                               events[i].got_source, events[i].got_tag)) {
            continue;
        }
        for (j = i + 1; j < cancelled; ++j) {
            if (STRESS_TOOK == events[j].outcome && events[i].offer == events[j].offer) {
                break;
            }
        }
        if (j == cancelled) {
            snprintf(why, size,
                     "receive %d was cancelled, and message %d was there for it: probe %d found it",
                     cancelled, events[i].offer, i);
            return true;
        }
    }
    return false;
}

bool stress_verify(const stress_offer_t *offers, int offer_count, stress_event_t *events,
                   int event_count, char *why, size_t size)
{
    int i;

    for (i = 0; i < event_count; ++i) {
        events[i].offer = -1;
        if (STRESS_PENDING == events[i].outcome) {
            snprintf(why, size, "event %d was never finished", i);
            return false;
        }
        if (STRESS_CANCELLED != events[i].outcome && STRESS_ANY != events[i].source
            && events[i].source != events[i].got_source) {
            snprintf(why, size, "event %d asked for source %d and says %d", i, events[i].source,
                     events[i].got_source);
            return false;
        }
    }
    for (i = 0; i < offer_count; ++i) {
        stress_event_t *event = taker(&offers[i], events, event_count);

        if (NULL == event) {
            snprintf(why, size, "message %d (source %d, tag %d, %ld bytes) was not received", i,
                     offers[i].source, offers[i].tag, offers[i].bytes);
            return false;
        }
        event->offer = i;
    }
    for (i = 0; i < event_count; ++i) {
        if (STRESS_CANCELLED == events[i].outcome) {
            continue;
        }
        if (STRESS_SAW == events[i].outcome) {
            events[i].offer = visible(offers, offer_count, events, i);
        }
        if (0 > events[i].offer) {
            snprintf(why, size, "event %d found source %d tag %d, and there is no such message", i,
                     events[i].got_source, events[i].got_tag);
            return false;
        }
        if (!agrees(&events[i], i, &offers[events[i].offer], why, size)) {
            return false;
        }
    }
    for (i = 0; i < event_count; ++i) {
        if (STRESS_CANCELLED == events[i].outcome && was_owed(events, i, why, size)) {
            return false;
        }
    }
    return true;
}
