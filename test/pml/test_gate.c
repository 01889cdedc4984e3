/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A gate. Threads enter and leave; other threads close it, make a claim, remove
 * it and open it. No thread may be inside while a claim exists or is being made. A thread that
 * closes the gate from inside does not deadlock on itself, and a thread that waits for threads
 * inside does not block them on the lock.
 */

#include "opal_config.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "umrddt_gate.h"

#define POSTERS  3
#define CLAIMERS 2
#define ROUNDS   5000 /* 20000 with "test/run --all" */

static umrddt_gate_t gate;
static int claimed; /* a claim is there: by the claimers' own word */
static int posting = POSTERS;
static int rounds = ROUNDS;
static long wrong, inside, refused, closed;

static void count(long *what)
{
    (void) __atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void *post(void *argument)
{
    (void) argument;
    for (int round = 0; round < rounds; ++round) {
        if (umrddt_gate_enter(&gate)) {
            for (int i = 0; i < 20; ++i) {
                if (0 != __atomic_load_n(&claimed, __ATOMIC_SEQ_CST)) {
                    count(&wrong);
                }
                if (10 == i && 0 == round % 16) {
                    sched_yield();
                }
            }
            count(&inside);
            umrddt_gate_leave(&gate);
        } else {
            OPAL_THREAD_LOCK(&gate.lock);
            if (0 != __atomic_load_n(&claimed, __ATOMIC_SEQ_CST)
                && opal_list_is_empty(&gate.claims)) {
                count(&wrong);
            }
            umrddt_gate_open(&gate);
            OPAL_THREAD_UNLOCK(&gate.lock);
            count(&refused);
            sched_yield();
        }
    }
    __atomic_sub_fetch(&posting, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Each claimer leaves its claim for a while, during which the lock is free. */
static void *claim(void *argument)
{
    opal_list_item_t *item = argument;

    while (0 < __atomic_load_n(&posting, __ATOMIC_SEQ_CST)) {
        OPAL_THREAD_LOCK(&gate.lock);
        if (umrddt_gate_close(&gate)) {
            ++gate.claiming;
            __atomic_add_fetch(&claimed, 1, __ATOMIC_SEQ_CST);
            umrddt_gate_open(&gate); /* too early: must not open */
            opal_list_append(&gate.claims, item);
            --gate.claiming;
            umrddt_gate_open(&gate); /* likewise */
            OPAL_THREAD_UNLOCK(&gate.lock);
            sched_yield();
            OPAL_THREAD_LOCK(&gate.lock);
            opal_list_remove_item(&gate.claims, item);
            __atomic_sub_fetch(&claimed, 1, __ATOMIC_SEQ_CST);
            umrddt_gate_open(&gate);
            count(&closed);
        } else {
            count(&wrong);
        }
        OPAL_THREAD_UNLOCK(&gate.lock);
        usleep(50);
    }
    return NULL;
}

/* Inside, a function that progress calls may need the lock, while a probe closes the gate. */
static void *need_lock(void *argument)
{
    pthread_barrier_t *entered = argument;

    if (!umrddt_gate_enter(&gate)) {
        count(&wrong);
    }
    (void) pthread_barrier_wait(entered);
    while (0 == (UMRDDT_GATE_CLOSED & __atomic_load_n(&gate.word, __ATOMIC_SEQ_CST))) {
        sched_yield();
    }
    OPAL_THREAD_LOCK(&gate.lock);
    OPAL_THREAD_UNLOCK(&gate.lock);
    umrddt_gate_leave(&gate);
    return NULL;
}

/* A thread that closes the gate must not hold the lock while it waits: the thread inside needs the
 * lock to leave. */
static void close_beside_lock(void)
{
    pthread_barrier_t entered;
    pthread_t thread;

    (void) pthread_barrier_init(&entered, NULL, 2);
    pthread_create(&thread, NULL, need_lock, &entered);
    (void) pthread_barrier_wait(&entered);
    OPAL_THREAD_LOCK(&gate.lock);
    if (!umrddt_gate_close(&gate)) {
        printf("test_gate: not closed, since a thread inside waited for the lock\n");
        count(&wrong);
    }
    umrddt_gate_open(&gate);
    OPAL_THREAD_UNLOCK(&gate.lock);
    pthread_join(thread, NULL);
    (void) pthread_barrier_destroy(&entered);
}

/* Threads that keep bytes take the lock, whether or not there are claims. */
static void keep(void)
{
    bool right = umrddt_gate_enter(&gate) && !umrddt_gate_keeps(&gate);

    umrddt_gate_keep(&gate);
    right = right && umrddt_gate_keeps(&gate) && !umrddt_gate_is_empty(&gate);
    umrddt_gate_leave(&gate);
    right = right && umrddt_gate_is_empty(&gate) && !umrddt_gate_alone(&gate)
            && !umrddt_gate_enter(&gate) && umrddt_gate_is_empty(&gate);
    OPAL_THREAD_LOCK(&gate.lock);
    right = right && umrddt_gate_close(&gate);
    umrddt_gate_open(&gate);
    OPAL_THREAD_UNLOCK(&gate.lock);
    right = right && UMRDDT_GATE_KEEPS == gate.word && !umrddt_gate_enter(&gate);
    if (!right) {
        printf("test_gate: a thread entered a gate that keeps bytes\n");
        count(&wrong);
    }
    gate.word = 0;
}

int main(void)
{
    pthread_t threads[POSTERS + CLAIMERS];
    opal_list_item_t items[CLAIMERS];
    int failed = 0;

    if (NULL != getenv("UMRDDT_TEST_ALL")) {
        rounds = 4 * ROUNDS;
    }
    umrddt_gate_init(&gate);
    gate.word = 0;
    opal_set_using_threads(true);

    /* from the inside, as a function of the user's would that progress calls there */
    OPAL_THREAD_LOCK(&gate.lock);
    if (!umrddt_gate_enter(&gate) || umrddt_gate_close(&gate) || !umrddt_gate_enter(&gate)) {
        printf("test_gate: closed from the inside\n");
        failed = 1;
    }
    OPAL_THREAD_UNLOCK(&gate.lock);
    umrddt_gate_leave(&gate);
    umrddt_gate_leave(&gate);
    if (0 != gate.word) {
        printf("test_gate: the gate is %u without a user\n", gate.word);
        failed = 1;
    }

    for (int i = 0; i < 20; ++i) {
        close_beside_lock();
    }

    keep();
    for (int i = 0; i < CLAIMERS; ++i) {
        OBJ_CONSTRUCT(&items[i], opal_list_item_t);
        pthread_create(&threads[POSTERS + i], NULL, claim, &items[i]);
    }
    for (int i = 0; i < POSTERS; ++i) {
        pthread_create(&threads[i], NULL, post, NULL);
    }
    for (int i = 0; i < POSTERS + CLAIMERS; ++i) {
        pthread_join(threads[i], NULL);
    }
    printf("test_gate: %ld times inside, %ld refused, %ld claims, %ld wrong, gate %u\n", inside,
           refused, closed, wrong, gate.word);
    if (0 != wrong || 0 != gate.word || 0 == inside || 0 == refused || 0 == closed) {
        failed = 1;
    }
    OBJ_DESTRUCT(&gate.claims);
    OBJ_DESTRUCT(&gate.lock);
    return failed;
}
