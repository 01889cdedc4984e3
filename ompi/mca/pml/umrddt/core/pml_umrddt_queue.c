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
 * Work for progress: events, and entries of waiting lists.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"

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
    (void) __atomic_add_fetch(&mca_pml_umrddt.active, change, __ATOMIC_RELAXED);
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
