/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */
/**
 * @file
 *
 * A gate: it makes "there are no claims" and an action of a thread one atomic step without a lock.
 * pml/umrddt has one for each communicator.
 *
 * A claim of pml/umrddt is a message that a probe took from the base PML, so it is older than all
 * messages of its source there. Receives and probes must search the claims first, and no claim may
 * be made between that search and the call of the base PML. Claims are rare.
 *
 * So the search is a test of the flag CLOSED. It is set before the first claim is made and cleared
 * when there are none. Threads that find it clear are counted until they have acted. A thread that
 * makes claims holds the lock, sets the flag, and waits without the lock until no thread is inside.
 * A thread that finds the flag set works under the lock instead.
 *
 * A thread inside waits neither for a message nor for a lock of umrddt. But the base PML may run
 * progress, and progress may call a function of the application that probes. Such a probe would
 * wait for itself. So the wait is bounded, and a probe that gives up reports no message this time.
 */

#ifndef UMRDDT_GATE_H
#define UMRDDT_GATE_H

#include "opal_config.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "opal/class/opal_list.h"
#include "opal/prefetch.h"

#include "umrddt_compat.h"

BEGIN_C_DECLS

#define UMRDDT_GATE_CLOSED  1u /**< there are claims, or a thread makes some */
#define UMRDDT_GATE_GUARDED 2u /**< there are threads, or no action yet: test the gate */
#define UMRDDT_GATE_KEEPS   4u /**< threads take the lock although there is no claim */
#define UMRDDT_GATE_INSIDE  8u /**< multiplied by the number of threads inside */

typedef struct umrddt_gate_t {
    uint32_t word;               /**< of the flags and the count above; atomic */
    int claiming;                /**< nesting depth of calls that create claims */
    int closing;                 /**< threads that wait until the gate is empty */
    opal_recursive_mutex_t lock; /**< of the other members, and for closing and opening */
    opal_list_t claims;          /**< the gate stays closed while there are any */
} umrddt_gate_t;

static inline void umrddt_gate_init(umrddt_gate_t *gate)
{
    gate->word = UMRDDT_GATE_GUARDED;
    gate->claiming = 0;
    gate->closing = 0;
    OBJ_CONSTRUCT(&gate->lock, opal_recursive_mutex_t);
    OBJ_CONSTRUCT(&gate->claims, opal_list_t);
}

static inline void umrddt_gate_fini(umrddt_gate_t *gate)
{
    OBJ_DESTRUCT(&gate->claims);
    OBJ_DESTRUCT(&gate->lock);
}

/** Returns true if there is only this thread and no claim, so that the gate is not needed. One test
 * is sufficient, because threads guard every gate. */
static inline bool umrddt_gate_alone(const umrddt_gate_t *gate)
{
    return 0 == __atomic_load_n(&gate->word, __ATOMIC_RELAXED);
}

/** From now on umrddt_gate_alone is false: there may be several threads. */
static inline void umrddt_gate_guard(umrddt_gate_t *gate)
{
    (void) __atomic_fetch_or(&gate->word, UMRDDT_GATE_GUARDED, __ATOMIC_RELAXED);
}

/** Called after the action of a thread. From now on umrddt_gate_alone may be true, if there is only
 * this thread. */
static inline void umrddt_gate_unguard(umrddt_gate_t *gate)
{
    if (!opal_using_threads()) {
        gate->word &= ~UMRDDT_GATE_GUARDED;
    }
}

/** From now on receives are posted under the lock, where umrddt_gate_keeps is true. Earlier ones
 * are posted once umrddt_gate_is_empty. */
static inline void umrddt_gate_keep(umrddt_gate_t *gate)
{
    (void) __atomic_fetch_or(&gate->word, UMRDDT_GATE_KEEPS, __ATOMIC_ACQ_REL);
}

static inline bool umrddt_gate_keeps(const umrddt_gate_t *gate)
{
    return 0 != (UMRDDT_GATE_KEEPS & __atomic_load_n(&gate->word, __ATOMIC_RELAXED));
}

/** Bits with which no thread enters. */
#define UMRDDT_GATE_LOCKS (UMRDDT_GATE_CLOSED | UMRDDT_GATE_KEEPS)

/**
 * Enter the gate if there are no claims. None is made before umrddt_gate_leave. @return false:
 * there are claims (or umrddt_gate_keeps), and the caller must take the lock
 */
static inline bool umrddt_gate_enter(umrddt_gate_t *gate)
{
    if (!opal_using_threads()) {
        return 0 == (UMRDDT_GATE_LOCKS & gate->word);
    }
    if (OPAL_LIKELY(0
                    == (UMRDDT_GATE_LOCKS
                        & __atomic_fetch_add(&gate->word, UMRDDT_GATE_INSIDE, __ATOMIC_ACQUIRE)))) {
        return true;
    }
    (void) __atomic_fetch_sub(&gate->word, UMRDDT_GATE_INSIDE, __ATOMIC_RELAXED);
    return false;
}

/** Leave after a successful umrddt_gate_enter. */
static inline void umrddt_gate_leave(umrddt_gate_t *gate)
{
    if (opal_using_threads()) {
        (void) __atomic_fetch_sub(&gate->word, UMRDDT_GATE_INSIDE, __ATOMIC_RELEASE);
    }
}

/** Open the gate unless there are claims or a thread makes some. The caller holds the lock. */
static inline void umrddt_gate_open(umrddt_gate_t *gate)
{
    if (opal_list_is_empty(&gate->claims) && 0 == gate->claiming && 0 == gate->closing) {
        (void) __atomic_fetch_and(&gate->word, ~UMRDDT_GATE_CLOSED, __ATOMIC_RELEASE);
    }
}

/**
 * Close the gate without waiting for the threads inside. The caller holds the lock. Used when a
 * failed call puts a claim back: the threads inside run concurrently with that call, so MPI defines
 * no order between them, and no later call enters.
 */
static inline void umrddt_gate_shut(umrddt_gate_t *gate)
{
    (void) __atomic_fetch_or(&gate->word, UMRDDT_GATE_CLOSED, __ATOMIC_ACQ_REL);
}

/** Returns true if no thread is inside. Threads that find the gate closed count for an instant. */
static inline bool umrddt_gate_is_empty(umrddt_gate_t *gate)
{
    return UMRDDT_GATE_INSIDE > __atomic_load_n(&gate->word, __ATOMIC_ACQUIRE);
}

/** Seconds to wait for the last thread. Posting takes less than a microsecond. The limit leaves
 * ample time for a thread that was preempted inside. */
#define UMRDDT_GATE_PATIENCE 0.1

static inline double umrddt_gate_seconds(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/**
 * Close the gate in order to make claims. The caller holds the lock. The lock is released and taken
 * again while this waits for threads inside, so the caller must search the claims again. The lock
 * is recursive: an outer caller keeps it, which is safe because the wait is bounded.
 *
 * @return false: a thread stays inside; the gate is open unless there are claims
 */
static inline bool umrddt_gate_close(umrddt_gate_t *gate)
{
    bool closed;
    double end;

    umrddt_gate_shut(gate);
    if (OPAL_LIKELY(umrddt_gate_is_empty(gate))) {
        return true;
    }
    /* A thread inside may run progress, and a function there may need the lock. The gate stays
     * closed meanwhile, because umrddt_gate_open tests gate->closing. */
    ++gate->closing;
    OPAL_THREAD_UNLOCK(&gate->lock);
    /* After one test that finds the closed gate empty, it stays empty: later threads find it
     * closed. So this test decides. Another one under the lock could count such a thread. */
    end = umrddt_gate_seconds() + UMRDDT_GATE_PATIENCE;
    while (!(closed = umrddt_gate_is_empty(gate)) && umrddt_gate_seconds() < end) {
        sched_yield();
    }
    OPAL_THREAD_LOCK(&gate->lock);
    --gate->closing;
    if (!closed) {
        umrddt_gate_open(gate);
    }
    return closed;
}

END_C_DECLS

#endif /* UMRDDT_GATE_H */
