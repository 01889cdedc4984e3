/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_thread.h"

#include <string.h>

/* Errors that MPI or umrddt might make, made by this program: the test must detect each of them. */
static const char *const words[] = {
    "order",    /* two messages of one source change places */
    "alike",    /* the same, of two of the same tag and size */
    "lost",     /* a message is not received */
    "twice",    /* a message is received twice, another not */
    "data",     /* a byte of a message is wrong */
    "gap",      /* a byte between the pieces is written */
    "guard",    /* a byte before the buffer is written */
    "behind",   /* a byte behind the end of a message is written */
    "size",     /* a status has one byte more */
    "count",    /* MPI_Get_count is wrong */
    "elements", /* MPI_Get_elements is wrong */
    "tag",      /* a status has another tag */
    "probe",    /* a probe has one byte more */
    "mute",     /* a truncated receive reports no error */
    "false",    /* a receive that is not truncated reports truncation */
    "cancel",   /* a cancelled receive has written */
    "pool",     /* two messages of one sender, received by one thread of several, change places */
    "send",     /* a send buffer is written */
    "hang",     /* an operation never ends */
};
#define WORDS ((int) (sizeof(words) / sizeof(words[0])))

static const char *wanted = "";
static bool broken;

void stress_break_read(const char *what)
{
    int i;

    for (i = 0; i < WORDS && 0 != strcmp(what, words[i]); ++i) {
        continue;
    }
    if (WORDS == i) {
        mpitest_fail(__FILE__, __LINE__, "--mode break=%s: there is no such word", what);
    }
    wanted = words[i];
}

/* On one thread of one rank, once, and not in the first epoch. */
static bool is_due(const stress_thread_t *thread, const char *word)
{
    return !broken && 0 == strcmp(wanted, word) && mpitest.rank == mpitest.size - 1
           && thread->number == thread->threads - 1 && 1 < thread->plan->epoch;
}

static bool is_plain(const stress_lane_t *lane, int i)
{
    return STRESS_TOOK == lane->events[i].outcome && !lane->events[i].truncated
           && STRESS_UNKNOWN != lane->events[i].got_bytes
           && STRESS_STATE_DONE == lane->takers[i]->state && 0 > lane->takers[i]->slot;
}

static void swap_messages(stress_lane_t *lane, int i, int j)
{
    stress_event_t *a = &lane->events[i], *b = &lane->events[j], keep = *a;
    stress_posting_t *p = lane->takers[i], *q = lane->takers[j], kept = *p;

    a->got_tag = b->got_tag;
    a->got_bytes = b->got_bytes;
    a->capacity = b->capacity;
    b->got_tag = keep.got_tag;
    b->got_bytes = keep.got_bytes;
    b->capacity = keep.capacity;
    p->buffer = q->buffer;
    p->entry = q->entry;
    p->count = q->count;
    p->elements = q->elements;
    q->buffer = kept.buffer;
    q->entry = kept.entry;
    q->count = kept.count;
    q->elements = kept.elements;
}

static bool break_order(stress_lane_t *lane, bool alike)
{
    int i, j;

    for (i = 0; i < lane->event_count; ++i) {
        for (j = i + 1; j < lane->event_count; ++j) {
            const stress_event_t *a = &lane->events[i], *b = &lane->events[j];

            if (is_plain(lane, i) && is_plain(lane, j) && a->got_source == b->got_source
                && 0 < a->got_bytes && 0 < b->got_bytes
                && stress_accepts(a->source, a->tag, b->got_source, b->got_tag)
                && stress_accepts(b->source, b->tag, a->got_source, a->got_tag)
                && (a->got_tag == b->got_tag && a->got_bytes == b->got_bytes) == alike) {
                swap_messages(lane, i, j);
                return true;
            }
        }
    }
    return false;
}

static bool break_twice(stress_lane_t *lane)
{
    int i, j;

    for (i = 0; i < lane->event_count; ++i) {
        for (j = 0; j < lane->event_count; ++j) {
            if (is_plain(lane, i) && is_plain(lane, j)
                && lane->events[i].got_source != lane->events[j].got_source
                && STRESS_ANY == lane->events[j].source) {
                lane->events[j].got_source = lane->events[i].got_source;
                lane->events[j].got_tag = lane->events[i].got_tag;
                return true;
            }
        }
    }
    return false;
}

/* Write one byte of a buffer: the first of the requested kind. */
static bool spoil(stress_posting_t *posting, long bytes)
{
    const mpitest_map_t *map = posting->buffer->map;
    unsigned char *memory = posting->buffer->memory;
    MPI_Aint i;

    if (0 == strcmp(wanted, "guard")) {
        memory[MPITEST_GUARD - 1] ^= 1;
        return true;
    }
    for (i = 0; i < map->span; ++i) {
        bool gap = 0 > mpitest_map_at(map, i), behind = mpitest_map_at(map, i) >= bytes;

        if (0 == strcmp(wanted, gap ? "gap" : behind ? "behind" : "data")) {
            memory[MPITEST_GUARD + i] ^= 1;
            return true;
        }
    }
    return false;
}

static bool break_event(stress_lane_t *lane, int i)
{
    stress_event_t *event = &lane->events[i];
    stress_posting_t *posting = lane->takers[i];

    if (STRESS_SAW == event->outcome && 0 == strcmp(wanted, "probe")) {
        ++event->got_bytes;
        return true;
    }
    if (STRESS_CANCELLED == event->outcome && 0 == strcmp(wanted, "cancel")) {
        posting->buffer->memory[0] ^= 1;
        return true;
    }
    if (event->truncated && 0 == strcmp(wanted, "mute")) {
        event->truncated = false;
        posting->error = MPI_SUCCESS;
        return true;
    }
    if (!is_plain(lane, i)) {
        return false;
    }
    if (0 == strcmp(wanted, "lost")) {
        event->outcome = STRESS_CANCELLED;
    } else if (0 == strcmp(wanted, "size")) {
        ++event->got_bytes;
    } else if (0 == strcmp(wanted, "count")) {
        ++posting->count;
    } else if (0 == strcmp(wanted, "elements") && 0 != stress_entry(posting->entry)->unit) {
        ++posting->elements;
    } else if (0 == strcmp(wanted, "tag")) {
        ++event->got_tag;
    } else if (0 == strcmp(wanted, "false")) {
        event->truncated = true;
    } else {
        return spoil(posting, event->got_bytes);
    }
    return true;
}

void stress_break_lane(stress_thread_t *thread, stress_lane_t *lane)
{
    int i;

    if ('\0' == *wanted || !is_due(thread, wanted)) {
        return;
    }
    if (0 == strcmp(wanted, "order")) {
        broken = break_order(lane, false);
        return;
    }
    if (0 == strcmp(wanted, "alike")) {
        broken = break_order(lane, true);
        return;
    }
    if (0 == strcmp(wanted, "twice")) {
        broken = break_twice(lane);
        return;
    }
    for (i = 0; i < lane->event_count && !broken; ++i) {
        broken = break_event(lane, i);
    }
}

void stress_break_pool(const stress_thread_t *thread, stress_lane_t *lane)
{
    const stress_message_t *messages = thread->plan->messages;
    int i, j;

    for (i = 0; is_due(thread, "pool") && i < lane->event_count; ++i) {
        for (j = i + 1; j < lane->event_count && !broken; ++j) {
            stress_event_t *a = &lane->events[i], *b = &lane->events[j];

            if (STRESS_TOOK == a->outcome && STRESS_TOOK == b->outcome
                && messages[a->offer].from == messages[b->offer].from
                && messages[a->offer].from_thread == messages[b->offer].from_thread) {
                int offer = a->offer;

                a->offer = b->offer;
                b->offer = offer;
                broken = true;
            }
        }
    }
}

void stress_break_send(const stress_thread_t *thread, stress_outgoing_t *outgoing)
{
    if (is_due(thread, "send")) {
        outgoing->buffer->memory[MPITEST_GUARD + outgoing->buffer->map->span] ^= 1;
        broken = true;
    }
}

bool stress_break_hang(const stress_thread_t *thread)
{
    if (is_due(thread, "hang")) {
        broken = true;
        return true;
    }
    return false;
}

void stress_break_check(void)
{
    if ('\0' != *wanted && mpitest.rank == mpitest.size - 1) {
        mpitest_fail(__FILE__, __LINE__, "break=%s: %s", wanted,
                     broken ? "and it was not detected" : "no place for it was found");
    }
}
