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
 * Progress: events, waits and the loop that handles them. Functions of pml_umrddt_progress.c.
 *
 * Most of the component's state has no lock, because only the thread that runs progress accesses
 * it. A function with this contract begins with MCA_PML_UMRDDT_ASSERT_PROGRESS: a build with
 * --enable-debug aborts when another thread calls it.
 */

#ifndef MCA_PML_UMRDDT_PROGRESS_H
#define MCA_PML_UMRDDT_PROGRESS_H

#include "ompi_config.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/class/opal_list.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/** Work for progress; embedded in its owner, at most once in the queue. */
struct mca_pml_umrddt_event_t {
    opal_object_t super;
    struct mca_pml_umrddt_event_t *next; /**< in the queue */
    void (*handler)(void *owner);
    void *owner;
    bool queued;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_event_t);

/** Entry of a waiting list of progress. */
struct mca_pml_umrddt_wait_t {
    opal_list_item_t super;
    opal_list_t *list;          /**< the list; NULL: not waiting */
    bool (*retry)(void *owner); /**< true: over; the entry may be in use again or freed */
    void *owner;
    bool stays; /**< retry is called while the entry waits (mca_pml_umrddt_watch) */
    const volatile uint32_t *flag; /**< of mca_pml_umrddt_watch, with its other arguments */
    uint32_t base, range;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_wait_t);

int mca_pml_umrddt_progress(void);

/** Queue @p event for progress; from any thread. */
void mca_pml_umrddt_event(mca_pml_umrddt_event_t *event, void (*handler)(void *), void *owner);

/** Wait in @p list until retry returns true. Only from progress. */
void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner);

/** Call @p retry now, and if it returns false in each pass until it returns true. */
void mca_pml_umrddt_poll(mca_pml_umrddt_wait_t *wait, bool (*retry)(void *), void *owner);

/**
 * As mca_pml_umrddt_wait, for a flag in memory. The entry stays in the list while @p retry is
 * called, and a retry that returns true has cancelled the wait. Only from progress.
 *
 * @param[in] flag   retry is called when flag - base < range, and now and then (run_polled). NULL:
 *                   in each pass. A retry may set it later (wait->flag, wait->base)
 */
void mca_pml_umrddt_watch(mca_pml_umrddt_wait_t *wait, const volatile uint32_t *flag, uint32_t base,
                          uint32_t range, bool (*retry)(void *), void *owner);

/** Wait for a receive for a FIN of @p peer. Only from progress. */
void mca_pml_umrddt_wait_credit(mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_wait_t *wait,
                                bool (*retry)(void *), void *owner);

/** Remove @p wait from its waiting list. Only from progress if it is in one. */
void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait);

/** Returns true if there are events. The value may be stale; the next call sees missed events. */
static inline bool mca_pml_umrddt_has_events(void)
{
    return NULL != __atomic_load_n(&mca_pml_umrddt.events, __ATOMIC_RELAXED);
}

/** Calls of progress between two looks for NACKs and hints. They are rare, and each is a probe. */
#define MCA_PML_UMRDDT_NOTICE_PERIOD 1024

/** The next call of progress looks for NACKs and hints. Any thread. */
static inline void mca_pml_umrddt_notice_soon(void)
{
    __atomic_store_n(&mca_pml_umrddt.ticks, MCA_PML_UMRDDT_NOTICE_PERIOD - 1, __ATOMIC_RELAXED);
}

/** Change the number of active messages. Progress does nothing while it is 0. */
static inline void mca_pml_umrddt_active(int change)
{
    if (opal_using_threads()) {
        (void) __atomic_add_fetch(&mca_pml_umrddt.active, change, __ATOMIC_RELAXED);
    } else {
        mca_pml_umrddt.active += change;
    }
}

#if UMRDDT_ENABLE_DEBUG
/** Abort unless this thread runs progress. Nothing is asserted while progress is not registered,
 * when there is one thread. */
static inline void mca_pml_umrddt_assert_progress(const char *function)
{
    if (mca_pml_umrddt.polling
        && !pthread_equal(pthread_self(),
                          __atomic_load_n(&mca_pml_umrddt.owner, __ATOMIC_RELAXED))) {
        opal_output(0, "pml:umrddt: %s was called outside progress", function);
        abort();
    }
}
#define MCA_PML_UMRDDT_ASSERT_PROGRESS() mca_pml_umrddt_assert_progress(__func__)
#else
#define MCA_PML_UMRDDT_ASSERT_PROGRESS() ((void) 0)
#endif

/** In a function that checks invariants (pml_umrddt_check.c): return the name of the invariant, for
 * the user, if it does not hold. */
#define MCA_PML_UMRDDT_HOLDS(CONDITION, NAME) \
    do {                                      \
        if (OPAL_UNLIKELY(!(CONDITION)))      \
            return (NAME);                    \
    } while (0)

/** Become the thread that runs progress. @return false: some thread runs it already */
static inline bool mca_pml_umrddt_progress_enter(void)
{
    if (0
        != (opal_using_threads() ? __atomic_exchange_n(&mca_pml_umrddt.busy, 1, __ATOMIC_ACQUIRE)
                                 : mca_pml_umrddt.busy)) {
        return false;
    }
    __atomic_store_n(&mca_pml_umrddt.busy, 1, __ATOMIC_RELAXED); /* without threads */
#if UMRDDT_ENABLE_DEBUG
    __atomic_store_n(&mca_pml_umrddt.owner, pthread_self(), __ATOMIC_RELAXED);
#endif
    return true;
}

static inline void mca_pml_umrddt_progress_leave(void)
{
#if UMRDDT_ENABLE_DEBUG
    __atomic_store_n(&mca_pml_umrddt.owner, (pthread_t) 0, __ATOMIC_RELAXED);
#endif
    __atomic_store_n(&mca_pml_umrddt.busy, 0, __ATOMIC_RELEASE);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PROGRESS_H */
