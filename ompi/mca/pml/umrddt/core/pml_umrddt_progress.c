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

/** The entry after the one that run_polled retries; NULL: it retries none. */
static opal_list_item_t *next_polled;

/* ---------------------------------------------------------------------------------------------
 * Events, and entries of waiting lists
 * ------------------------------------------------------------------------------------------- */

static void event_construct(mca_pml_umrddt_event_t *event)
{
    event->queued = false;
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_event_t, opal_object_t, event_construct, NULL);

static void wait_construct(mca_pml_umrddt_wait_t *wait)
{
    wait->list = NULL;
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

/** Begin a wait, which ends when @p retry returns true. */
static inline void begin(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    wait->list = list;
    wait->retry = retry;
    wait->owner = owner;
    wait->stays = false;
    wait->flag = NULL;
    opal_list_append(list, &wait->super);
    ++mca_pml_umrddt.waits;
}

void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner)
{
    begin(list, wait, retry, owner);
}

void mca_pml_umrddt_poll(mca_pml_umrddt_wait_t *wait, bool (*retry)(void *), void *owner)
{
    if (!retry(owner)) {
        begin(&mca_pml_umrddt.polled, wait, retry, owner);
    }
}

void mca_pml_umrddt_watch(mca_pml_umrddt_wait_t *wait, const volatile uint32_t *flag, uint32_t base,
                          uint32_t range, bool (*retry)(void *), void *owner)
{
    begin(&mca_pml_umrddt.polled, wait, retry, owner);
    wait->stays = true;
    wait->flag = flag;
    wait->base = base;
    wait->range = range;
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
        if (next_polled == &wait->super) {
            next_polled = opal_list_get_next(next_polled);
        }
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

/** Retry the waits of a queue in order, up to the first that must continue to wait. */
static int run_queue(opal_list_t *list)
{
    int done = 0;

    while (OPAL_UNLIKELY(!opal_list_is_empty(list))) {
        mca_pml_umrddt_wait_t *wait = (mca_pml_umrddt_wait_t *) opal_list_remove_first(list);

        wait->list = NULL;
        --mca_pml_umrddt.waits;
        if (!wait->retry(wait->owner)) {
            wait->list = list;
            ++mca_pml_umrddt.waits;
            opal_list_prepend(list, &wait->super);
            break;
        }
        ++done;
    }
    return done;
}

/** Retry each polled wait once, in order. A retry may end any of them, and begin others. Left out
 * are those whose flag is as it was, but not in each pass (mca_pml_umrddt_watch). */
static int run_polled(void)
{
    const uint32_t pass =
        __atomic_load_n(&mca_pml_umrddt.ticks, __ATOMIC_RELAXED) % MCA_PML_UMRDDT_NOTICE_PERIOD;
    opal_list_t *list = &mca_pml_umrddt.polled;
    opal_list_item_t *item = opal_list_get_first(list), *next;
    int done = 0;

    for (size_t left = opal_list_get_size(list); 0 < left && opal_list_get_end(list) != item;
         --left, item = next) {
        mca_pml_umrddt_wait_t *wait = (mca_pml_umrddt_wait_t *) item;

        next = (opal_list_item_t *) item->opal_list_next;
        if (OPAL_LIKELY(NULL != wait->flag && 0 != pass)
            && OPAL_LIKELY(__atomic_load_n(wait->flag, __ATOMIC_RELAXED) - wait->base
                           >= wait->range)) {
            continue;
        }
        next_polled = next;
        if (wait->stays) {
            done += wait->retry(wait->owner);
        } else {
            mca_pml_umrddt_wait_cancel(wait);
            if (wait->retry(wait->owner)) {
                ++done;
            } else {
                wait->list = list;
                ++mca_pml_umrddt.waits;
                opal_list_insert_pos(list, next_polled, item);
            }
        }
        next = next_polled;
        next_polled = NULL;
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
        int got = run_queue(&peer->credit);

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
        if (OPAL_UNLIKELY(!opal_list_is_empty(&mca_pml_umrddt.waiting[role]))) {
            done += run_queue(&mca_pml_umrddt.waiting[role]);
        }
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&mca_pml_umrddt.credit))) {
        done += run_credit();
    }
    return done + run_polled();
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
