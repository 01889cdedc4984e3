/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The gate of a communicator. Threads enter and leave; other threads close it, make a claim, remove
 * it and open it. No thread may be inside while a claim exists or is being made. A thread that
 * closes the gate from inside does not deadlock on itself, and a thread that waits for threads
 * inside does not block them on comm->match.
 */

#include "ompi_config.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gate.h"

#define POSTERS  3
#define CLAIMERS 2
#define ROUNDS   20000

static mca_pml_umrddt_comm_t comm;
static int claimed; /* a claim is there: by the claimers' own word */
static int posting = POSTERS;
static long wrong, inside, refused, closed;

static void count(long *what)
{
    (void) __atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void *post(void *argument)
{
    (void) argument;
    for (int round = 0; round < ROUNDS; ++round) {
        if (mca_pml_umrddt_gate_enter(&comm)) {
            for (int i = 0; i < 20; ++i) {
                if (0 != __atomic_load_n(&claimed, __ATOMIC_SEQ_CST)) {
                    count(&wrong);
                }
                if (10 == i && 0 == round % 16) {
                    sched_yield();
                }
            }
            count(&inside);
            mca_pml_umrddt_gate_leave(&comm);
        } else {
            OPAL_THREAD_LOCK(&comm.match);
            if (0 != __atomic_load_n(&claimed, __ATOMIC_SEQ_CST)
                && opal_list_is_empty(&comm.claims)) {
                count(&wrong);
            }
            mca_pml_umrddt_gate_open(&comm);
            OPAL_THREAD_UNLOCK(&comm.match);
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
        OPAL_THREAD_LOCK(&comm.match);
        if (mca_pml_umrddt_gate_close(&comm)) {
            ++comm.claiming;
            __atomic_add_fetch(&claimed, 1, __ATOMIC_SEQ_CST);
            mca_pml_umrddt_gate_open(&comm); /* too early: must not open */
            opal_list_append(&comm.claims, item);
            --comm.claiming;
            mca_pml_umrddt_gate_open(&comm); /* likewise */
            OPAL_THREAD_UNLOCK(&comm.match);
            sched_yield();
            OPAL_THREAD_LOCK(&comm.match);
            opal_list_remove_item(&comm.claims, item);
            __atomic_sub_fetch(&claimed, 1, __ATOMIC_SEQ_CST);
            mca_pml_umrddt_gate_open(&comm);
            count(&closed);
        } else {
            count(&wrong);
        }
        OPAL_THREAD_UNLOCK(&comm.match);
        usleep(50);
    }
    return NULL;
}

/* Inside, a function that progress calls may need comm->match, while a probe closes the gate. */
static void *need_lock(void *argument)
{
    pthread_barrier_t *entered = argument;

    if (!mca_pml_umrddt_gate_enter(&comm)) {
        count(&wrong);
    }
    (void) pthread_barrier_wait(entered);
    while (0 == (MCA_PML_UMRDDT_GATE_CLOSED & __atomic_load_n(&comm.gate, __ATOMIC_SEQ_CST))) {
        sched_yield();
    }
    OPAL_THREAD_LOCK(&comm.match);
    OPAL_THREAD_UNLOCK(&comm.match);
    mca_pml_umrddt_gate_leave(&comm);
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
    OPAL_THREAD_LOCK(&comm.match);
    if (!mca_pml_umrddt_gate_close(&comm)) {
        printf("test_gate: not closed, since a thread inside waited for the lock\n");
        count(&wrong);
    }
    mca_pml_umrddt_gate_open(&comm);
    OPAL_THREAD_UNLOCK(&comm.match);
    pthread_join(thread, NULL);
    (void) pthread_barrier_destroy(&entered);
}

int main(void)
{
    pthread_t threads[POSTERS + CLAIMERS];
    opal_list_item_t items[CLAIMERS];
    int failed = 0;

    OBJ_CONSTRUCT(&comm.match, opal_recursive_mutex_t);
    OBJ_CONSTRUCT(&comm.claims, opal_list_t);
    opal_set_using_threads(true);

    /* from the inside, as a function of the user's would that progress calls there */
    OPAL_THREAD_LOCK(&comm.match);
    if (!mca_pml_umrddt_gate_enter(&comm) || mca_pml_umrddt_gate_close(&comm)
        || !mca_pml_umrddt_gate_enter(&comm)) {
        printf("test_gate: closed from the inside\n");
        failed = 1;
    }
    OPAL_THREAD_UNLOCK(&comm.match);
    mca_pml_umrddt_gate_leave(&comm);
    mca_pml_umrddt_gate_leave(&comm);
    if (0 != comm.gate) {
        printf("test_gate: the gate is %u with nobody there\n", comm.gate);
        failed = 1;
    }

    for (int i = 0; i < 20; ++i) {
        close_beside_lock();
    }

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
           refused, closed, wrong, comm.gate);
    if (0 != wrong || 0 != comm.gate || 0 == inside || 0 == refused || 0 == closed) {
        failed = 1;
    }
    OBJ_DESTRUCT(&comm.claims);
    OBJ_DESTRUCT(&comm.match);
    return failed;
}
