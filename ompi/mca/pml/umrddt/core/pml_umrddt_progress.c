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
 * Progress: the only place where state machines advance. opal_progress calls
 * mca_pml_umrddt_progress in any thread and at any depth, since the base PML's probes call
 * opal_progress themselves. Only one caller enters at a time; the others return at once.
 */

#include "ompi_config.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_flush.h"
#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"

/* ---------------------------------------------------------------------------------------------
 * Events, and entries of waiting lists
 * ------------------------------------------------------------------------------------------- */

static void event_construct(mca_pml_umrddt_event_t *event)
{
    event->handler = NULL;
    event->owner = NULL;
    event->queued = false;
    event->next = NULL;
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_event_t, opal_object_t, event_construct, NULL);

static void wait_construct(mca_pml_umrddt_wait_t *wait)
{
    wait->list = NULL;
    wait->retry = NULL;
    wait->owner = NULL;
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_wait_t, opal_list_item_t, wait_construct, NULL);

void mca_pml_umrddt_event(mca_pml_umrddt_event_t *event, void (*handler)(void *), void *owner)
{
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    event->handler = handler;
    event->owner = owner;
    if (!event->queued) {
        event->queued = true;
        event->next = NULL;
        if (NULL == mca_pml_umrddt.events) {
            __atomic_store_n(&mca_pml_umrddt.events, event, __ATOMIC_RELAXED);
        } else {
            mca_pml_umrddt.last_event->next = event;
        }
        mca_pml_umrddt.last_event = event;
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
}

void mca_pml_umrddt_active(int change)
{
    if (opal_using_threads()) {
        (void) __atomic_add_fetch(&mca_pml_umrddt.active, change, __ATOMIC_RELAXED);
    } else {
        mca_pml_umrddt.active += change;
    }
}

void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    wait->list = list;
    wait->retry = retry;
    wait->owner = owner;
    opal_list_append(list, &wait->super);
    ++mca_pml_umrddt.waits;
}

void mca_pml_umrddt_wait_credit(mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_wait_t *wait,
                                bool (*retry)(void *), void *owner)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!peer->waits_for_credit) {
        peer->waits_for_credit = true;
        opal_list_append(&mca_pml_umrddt.credit, &peer->in_credit);
    }
    mca_pml_umrddt_wait(&peer->credit, wait, retry, owner);
}

void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait)
{
    if (NULL != wait->list) {
        MCA_PML_UMRDDT_ASSERT_PROGRESS();
        opal_list_remove_item(wait->list, &wait->super);
        wait->list = NULL;
        --mca_pml_umrddt.waits;
    }
}

/* ---------------------------------------------------------------------------------------------
 * Progress
 * ------------------------------------------------------------------------------------------- */

static int run_events(void)
{
    mca_pml_umrddt_event_t *event, *last;
    int done = 0;

    /* only events queued by now: a handler that runs too early queues itself again */
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    last = mca_pml_umrddt.last_event;
    do {
        void (*handler)(void *);
        void *owner;

        event = mca_pml_umrddt.events;
        if (OPAL_UNLIKELY(NULL == event)) {
            break;
        }
        __atomic_store_n(&mca_pml_umrddt.events, event->next, __ATOMIC_RELAXED);
        event->queued = false;
        handler = event->handler;
        owner = event->owner;
        OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
        handler(owner); /* the handler may free the event */
        ++done;
        OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    } while (last != event);
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    return done;
}

/** Retry waits in order: of a queue up to the first that must continue to wait, else each one once.
 * @param[in] queue  a constant */
static inline __opal_attribute_always_inline__ int run_list(opal_list_t *list, bool queue)
{
    size_t left = queue ? SIZE_MAX : opal_list_get_size(list);
    int done = 0;

    for (; OPAL_UNLIKELY(!opal_list_is_empty(list)) && 0 < left; --left) {
        mca_pml_umrddt_wait_t *wait = (mca_pml_umrddt_wait_t *) opal_list_remove_first(list);

        wait->list = NULL;
        --mca_pml_umrddt.waits;
        if (wait->retry(wait->owner)) {
            ++done;
            continue;
        }
        wait->list = list;
        ++mca_pml_umrddt.waits;
        if (queue) {
            opal_list_prepend(list, &wait->super);
            break;
        }
        opal_list_append(list, &wait->super);
    }
    return done;
}

/** Run the queue of each peer. An unresponsive peer that has used up its receives thus delays only
 * its own messages. A peer that made progress moves to the end of the list. */
static __opal_attribute_noinline__ int run_credit(void)
{
    opal_list_t *list = &mca_pml_umrddt.credit;
    size_t left = opal_list_get_size(list);
    opal_list_item_t *item = opal_list_get_first(list);
    int done = 0;

    for (; 0 < left; --left) {
        mca_pml_umrddt_peer_t *peer = container_of(item, mca_pml_umrddt_peer_t, in_credit);
        int got = run_list(&peer->credit, true);

        item = opal_list_get_next(item);
        if (opal_list_is_empty(&peer->credit)) {
            peer->waits_for_credit = false;
            opal_list_remove_item(list, &peer->in_credit);
        } else if (0 < got) {
            opal_list_remove_item(list, &peer->in_credit);
            opal_list_append(list, &peer->in_credit);
        }
        done += got;
    }
    return done;
}

/** Retry all waits. */
static __opal_attribute_noinline__ int run_waits(void)
{
    int done = 0;

    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        done += run_list(&mca_pml_umrddt.waiting[role], true);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&mca_pml_umrddt.credit))) {
        done += run_credit();
    }
    done += run_list(&mca_pml_umrddt.polled, false);
    return done;
}

/** Count a call. Concurrent threads may lose counts, which only delays a check for NACKs. */
static uint32_t tick(void)
{
    uint32_t ticks = __atomic_load_n(&mca_pml_umrddt.ticks, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&mca_pml_umrddt.ticks, ticks, __ATOMIC_RELAXED);
    return ticks;
}

int mca_pml_umrddt_progress(void)
{
    int done = 0;

    if (0 == __atomic_load_n(&mca_pml_umrddt.active, __ATOMIC_RELAXED)
        && !mca_pml_umrddt_has_events()) {
        /* nothing is in progress, but a sender may have sent a NACK for its last write */
        if (OPAL_LIKELY(0 != tick() % MCA_PML_UMRDDT_NOTICE_PERIOD)
            || 0 == __atomic_load_n(&mca_pml_umrddt.listener_count, __ATOMIC_RELAXED)) {
            return 0;
        }
        mca_pml_umrddt_notice_soon();
    }
    if (!mca_pml_umrddt_progress_enter()) {
        return 0;
    }

    if (NULL != mca_pml_umrddt.hca) {
        done += mca_pml_umrddt.hca->progress();
    }
    if (mca_pml_umrddt_has_events()) {
        done += run_events();
    }
    if (0 != mca_pml_umrddt.waits) {
        done += run_waits();
    }
    if (0 == tick() % MCA_PML_UMRDDT_NOTICE_PERIOD) {
        mca_pml_umrddt_notice_look();
    }
    opal_umrddt_gpu_flush();

    mca_pml_umrddt_progress_leave();
    return done;
}
