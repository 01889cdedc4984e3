/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_plan.h"

#include "stress_corpus.h"

#include <string.h>

/* Maximum number of bytes in buffered sends of one thread in an epoch. */
#define BUFFERED_BYTES 300000

/* Messages that a thread sends repeatedly, by persistent requests. */
#define TEMPLATES 4

bool stress_way_blocks(stress_way_t way)
{
    return STRESS_SEND == way || STRESS_SSEND == way || STRESS_RSEND == way;
}

bool stress_way_ready(stress_way_t way)
{
    return STRESS_RSEND <= way;
}

bool stress_way_persistent(stress_way_t way)
{
    return STRESS_SEND_INIT == way || STRESS_SSEND_INIT == way || STRESS_BSEND_INIT == way
           || STRESS_RSEND_INIT == way;
}

const char *stress_way_name(stress_way_t way)
{
    static const char *const names[STRESS_WAYS] = {
        "Isend",      "Issend", "Ibsend", "Bsend", "Send_init", "Ssend_init",
        "Bsend_init", "Send",   "Ssend",  "Rsend", "Irsend",    "Rsend_init"};

    return names[way];
}

int stress_plan_family(long epoch, int comm, int to, int to_thread)
{
    uint64_t state =
        mpitest_mix(mpitest.seed ^ 0x5f3a, (uint64_t) (epoch / STRESS_ERA),
                    (uint64_t) ((comm * STRESS_RANKS + to) * STRESS_THREADS + to_thread));

    if (stress_comm_pooled(comm)) {
        return STRESS_BYTES;
    }
    switch (mpitest_between(&state, 0, 9)) {
    case 0:
        return STRESS_INTS;
    case 1:
        return (int) mpitest_between(&state, STRESS_PAIRS, STRESS_FAMILIES - 1);
    default:
        return STRESS_BYTES;
    }
}

/* The receiver, and its address. */
static void draw_address(stress_message_t *message, uint64_t *state, int threads)
{
    do {
        message->comm = (int) mpitest_between(state, 0, stress_comm_count() - 1);
        message->to = (int) mpitest_between(state, 0, mpitest.size - 1);
        /* Few messages to the own rank. */
    } while (!stress_comm_reaches(message->comm, message->from, message->to)
             || (message->from == message->to && 0 != mpitest_random(state) % 3)
             || (0 <= stress_comm_owner(message->comm)
                 && message->from_thread != stress_comm_owner(message->comm)));
    message->to_thread = 0 <= stress_comm_owner(message->comm)
                             ? message->from_thread
                             : (int) mpitest_between(state, 0, threads - 1);
}

/* The rest of the envelope, which follows from the address. */
static void complete_address(stress_message_t *message, uint64_t *state, int threads)
{
    static const int tags[] = {0, 1, 5, 32767};

    message->dest = stress_comm_rank(message->comm, message->to);
    message->source = stress_comm_rank(message->comm, message->from);
    if (stress_comm_wild(message->comm)) {
        message->tag = tags[mpitest_between(state, 0, 3)];
    } else {
        /* Tags distinguish threads of one process: each stream has one sender. */
        message->tag = 100 + 2 * (message->to_thread * threads + message->from_thread)
                       + (int) mpitest_between(state, 0, 1);
    }
}

static stress_way_t draw_way(uint64_t *state, bool to_poster, bool ready)
{
    static const int weights[STRESS_WAYS] = {30, 12, 4, 5, 8, 4, 2, 24, 12, 10, 8, 4};
    int total = 0,
        ways = ready && to_poster ? STRESS_WAYS
               : to_poster        ? STRESS_RSEND
                                  : STRESS_SEND,
        i;
    long drawn;

    for (i = 0; i < ways; ++i) {
        total += weights[i];
    }
    drawn = mpitest_between(state, 0, total - 1);
    for (i = 0; i < ways; ++i) {
        drawn -= weights[i];
        if (0 > drawn) {
            break;
        }
    }
    return (stress_way_t) i;
}

static bool is_buffered(stress_way_t way)
{
    return STRESS_IBSEND == way || STRESS_BSEND == way || STRESS_BSEND_INIT == way;
}

/* True if every process that may receive the message posts all its receives before it blocks. */
static bool to_posters(const stress_plan_t *plan, const stress_message_t *message, int threads)
{
    int thread;

    if (!stress_comm_pooled(message->comm)) {
        return plan->poster[message->to][message->to_thread];
    }
    for (thread = 0; thread < threads; ++thread) {
        if (!plan->poster[message->to][thread]) {
            return false;
        }
    }
    return true;
}

/* The layout of a message. In a pool the bytes of a message must identify it. */
static int draw_entry(uint64_t *state, const stress_plan_t *plan, const stress_message_t *message,
                      long limit)
{
    int family = stress_plan_family(plan->epoch, message->comm, message->to, message->to_thread);
    int entry;

    do {
        entry = stress_draw_sender(state, family, limit);
    } while (stress_comm_pooled(message->comm) && STRESS_POOL_LEAST > stress_entry(entry)->bytes);
    return entry;
}

/* A message that was or will be sent in this era by the same persistent request. */
static void draw_template(stress_message_t *message, const stress_plan_t *plan, int number,
                          int threads)
{
    uint64_t state = mpitest_mix(
        mpitest.seed ^ 0x7e39, (uint64_t) (plan->epoch / STRESS_ERA),
        (uint64_t) ((message->from * STRESS_THREADS + message->from_thread) * TEMPLATES + number));

    draw_address(message, &state, threads);
    complete_address(message, &state, threads);
    message->entry = draw_entry(&state, plan, message, 20000);
    message->way = 0 == mpitest_random(&state) % 3 ? STRESS_SSEND_INIT : STRESS_SEND_INIT;
    message->kept = true;
}

static void draw_message(stress_message_t *message, const stress_plan_t *plan, uint64_t *state,
                         int threads, long limit)
{
    draw_address(message, state, threads);
    complete_address(message, state, threads);
    message->entry = draw_entry(state, plan, message, limit);
    message->way = draw_way(state, to_posters(plan, message, threads), plan->ready);
    if (!stress_way_blocks(message->way) && STRESS_BSEND != message->way) {
        message->freed = 0 == mpitest_random(state) % 12 && 1 == threads; /* see stress_lane.c */
        message->own_type = 0 == mpitest_random(state) % 10;
    }
}

static void plan_thread(stress_plan_t *plan, uint64_t *state, int from, int thread, int threads)
{
    int count = (int) mpitest_between(state, 1, 12), i, number;
    long limit = 1L << 30, buffered = 0;
    bool used[TEMPLATES] = {false};

    if (0 == mpitest_random(state) % 8) {
        count = (int) mpitest_between(state, 13, STRESS_BURST);
        limit = 30 < count ? 5000 : 20000;
    }
    for (i = 0; i < count; ++i) {
        stress_message_t *message = &plan->messages[plan->count];

        memset(message, 0, sizeof(*message));
        message->from = from;
        message->from_thread = thread;
        number = (int) mpitest_between(state, 0, TEMPLATES * 5 - 1);
        if (TEMPLATES > number && !used[number]) {
            used[number] = true;
            draw_template(message, plan, number, threads);
        } else {
            draw_message(message, plan, state, threads, limit);
        }
        message->bytes = stress_entry(message->entry)->bytes;
        message->key = mpitest_random(state);
        if (is_buffered(message->way)) {
            buffered += message->bytes + 1024;
            if (BUFFERED_BYTES < buffered) {
                message->way = STRESS_ISEND;
            }
        }
        ++plan->count;
    }
}

void stress_plan(stress_plan_t *plan, long epoch, int threads)
{
    uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) epoch, 0x570);
    int from, thread;

    plan->epoch = epoch;
    plan->threads = threads;
    plan->count = 0;
    plan->ready = 0 == mpitest_random(&state) % 3;
    for (from = 0; from < mpitest.size; ++from) {
        for (thread = 0; thread < threads; ++thread) {
            plan->poster[from][thread] = 0 == mpitest_random(&state) % 2;
        }
    }
    for (from = 0; from < mpitest.size; ++from) {
        for (thread = 0; thread < threads; ++thread) {
            plan_thread(plan, &state, from, thread, threads);
        }
    }
}
