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
 * Checks the invariants of pml/umrddt; read pml_umrddt_engine.h first. There is no list of sends,
 * so only sends in a waiting list are checked.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

/** The layout cache is checked in every 256th check, because that walks all layouts. */
#define LAYOUTS_PERIOD 256

/* ---------------------------------------------------------------------------------------------
 * Waiting lists and events
 * ------------------------------------------------------------------------------------------- */

static const char *check_list(const opal_list_t *list, uint32_t *waits)
{
    const mca_pml_umrddt_wait_t *wait;

    OPAL_LIST_FOREACH (wait, list, mca_pml_umrddt_wait_t) {
        MCA_PML_UMRDDT_HOLDS(list == wait->list && NULL != wait->retry,
                             "waits: each knows where it waits");
        ++*waits;
    }
    return NULL;
}

static const char *check_waits(void)
{
    opal_list_t *credit = &mca_pml_umrddt.credit;
    opal_list_item_t *item;
    uint32_t waits = 0;
    const char *wrong = check_list(&mca_pml_umrddt.polled, &waits);

    for (int role = 0; NULL == wrong && role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        wrong = check_list(&mca_pml_umrddt.waiting[role], &waits);
    }
    for (item = opal_list_get_first(credit); NULL == wrong && item != opal_list_get_end(credit);
         item = opal_list_get_next(item)) {
        const mca_pml_umrddt_peer_t *peer = container_of(item, mca_pml_umrddt_peer_t, in_credit);

        MCA_PML_UMRDDT_HOLDS(peer->waits_for_credit,
                             "waits: a peer among those that wait for FINs says so");
        wrong = check_list(&peer->credit, &waits);
    }
    if (NULL == wrong) {
        MCA_PML_UMRDDT_HOLDS(waits == mca_pml_umrddt.waits, "waits: all that wait are counted");
    }
    return wrong;
}

/** Called under the lock. */
static const char *check_events(void)
{
    const mca_pml_umrddt_event_t *event, *last = NULL;

    for (event = mca_pml_umrddt.events; NULL != event; event = event->next) {
        MCA_PML_UMRDDT_HOLDS(event->queued && NULL != event->handler,
                             "events: each knows that it is queued");
        last = event;
    }
    MCA_PML_UMRDDT_HOLDS(NULL == last || last == mca_pml_umrddt.last_event,
                         "events: the queue ends with its last one");
    return NULL;
}

/** Called under the lock. */
static const char *check_request_ids(void)
{
    const umrddt_ids_t *request_ids = &mca_pml_umrddt.request_ids;

    MCA_PML_UMRDDT_HOLDS(request_ids->first <= request_ids->words,
                         "request ids: where free ones are looked for is in the table");
    for (uint32_t i = 0; i < request_ids->first; ++i) {
        MCA_PML_UMRDDT_HOLDS(0 == request_ids->free[i],
                             "request ids: all free ones are in the searched range");
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Receives
 * ------------------------------------------------------------------------------------------- */

static const char *check_fins(void)
{
    const umrddt_numbers_t *fins = &mca_pml_umrddt.fins;
    uint32_t used = 0;

    for (uint32_t i = 0; i < fins->size; ++i) {
        const mca_pml_umrddt_recv_t *recv = fins->table[i].owner;

        if (NULL != recv) {
            MCA_PML_UMRDDT_HOLDS(recv->fin == fins->table[i].number
                                     && i == (recv->fin & (fins->size - 1)),
                                 "FINs: each number is its receive's");
            ++used;
        }
    }
    MCA_PML_UMRDDT_HOLDS(used == fins->used, "FINs: numbers that are taken are counted");
    return NULL;
}

static const char *check_receive(const mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_POSTED != recv->state
                             && MCA_PML_UMRDDT_RECV_DONE != recv->state,
                         "receives: those under way are not over, nor at the host");
    return NULL == recv->ops ? NULL : recv->ops->check(recv);
}

static const char *check_receives(void)
{
    opal_list_t *list = &mca_pml_umrddt.receives;
    opal_list_item_t *item;
    const char *wrong = NULL;

    for (item = opal_list_get_first(list); NULL == wrong && item != opal_list_get_end(list);
         item = opal_list_get_next(item)) {
        const mca_pml_umrddt_recv_t *recv = container_of(item, mca_pml_umrddt_recv_t, active);

        MCA_PML_UMRDDT_HOLDS(NULL != recv->comm, "receives: each has a communicator");
        wrong = check_receive(recv);
    }
    return wrong;
}

/** Without active messages no resources are held. */
static const char *check_idle(void)
{
    int active = __atomic_load_n(&mca_pml_umrddt.active, __ATOMIC_RELAXED);

    MCA_PML_UMRDDT_HOLDS(0 <= active, "messages: no more end than begin");
    MCA_PML_UMRDDT_HOLDS(0 < active || opal_list_is_empty(&mca_pml_umrddt.receives),
                         "messages: those under way are counted");
    MCA_PML_UMRDDT_HOLDS(0 < active || 0 == mca_pml_umrddt.fins.used,
                         "FINs: each has a receive that waits for it");
    return NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Peers
 * ------------------------------------------------------------------------------------------- */

/** Called under the lock. */
static const char *check_peers(void)
{
    uint64_t bytes[MCA_PML_UMRDDT_GROUPS] = {0}, peers = 0;
    mca_pml_umrddt_peer_t *peer;
    const char *wrong = NULL;
    size_t size;
    void *key, *node;
    int rc;

    for (rc = opal_hash_table_get_first_key_ptr(&mca_pml_umrddt.peers, &key, &size, (void **) &peer,
                                                &node);
         OPAL_SUCCESS == rc && NULL == wrong;
         rc = opal_hash_table_get_next_key_ptr(&mca_pml_umrddt.peers, &key, &size, (void **) &peer,
                                               node, &node)) {
        ++peers;
        wrong = mca_pml_umrddt_sets_check(peer);
        for (int i = 0; i < MCA_PML_UMRDDT_GROUPS && NULL == wrong; ++i) {
            if (NULL != mca_pml_umrddt_groups[i]->peer_check) {
                wrong = mca_pml_umrddt_groups[i]->peer_check(peer, &bytes[i]);
            }
        }
    }
    if (NULL == wrong) {
        for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
            MCA_PML_UMRDDT_HOLDS(NULL == mca_pml_umrddt_groups[i]->cached
                                     || bytes[i] == *mca_pml_umrddt_groups[i]->cached,
                                 "layouts of peers: their bytes are counted");
        }
        MCA_PML_UMRDDT_HOLDS(peers == mca_pml_umrddt.counters.peers_now,
                             "peers: all of them are counted");
    }
    return wrong;
}

/* ---------------------------------------------------------------------------------------------
 * All checks
 * ------------------------------------------------------------------------------------------- */

static const char *check_shared(void)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    wrong = check_events();
    wrong = NULL == wrong ? check_request_ids() : wrong;
    wrong = NULL == wrong ? check_peers() : wrong;
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    return wrong;
}

static const char *check_groups(void)
{
    const char *wrong = NULL;

    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS && NULL == wrong; ++i) {
        if (NULL != mca_pml_umrddt_groups[i]->process_check) {
            wrong = mca_pml_umrddt_groups[i]->process_check();
        }
    }
    return wrong;
}

const char *mca_pml_umrddt_state_check(void)
{
    const char *wrong = check_waits();

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    wrong = NULL == wrong ? check_fins() : wrong;
    wrong = NULL == wrong ? check_receives() : wrong;
    wrong = NULL == wrong ? check_idle() : wrong;
    wrong = NULL == wrong ? check_shared() : wrong;
    return NULL == wrong ? check_groups() : wrong;
}

static void check(bool layouts)
{
    const char *wrong = mca_pml_umrddt_state_check();

    if (NULL == wrong && layouts && NULL != mca_pml_umrddt.layouts
        && !opal_iov_cache_check(mca_pml_umrddt.layouts)) {
        wrong = "layouts: their cache is as it must be";
    }
    if (OPAL_UNLIKELY(NULL != wrong)) {
        opal_output(0, "pml:umrddt: an invariant does not hold: %s", wrong);
        abort();
    }
}

/** Progress function: check now and then, while no other thread runs progress. */
static int look(void)
{
    static uint32_t passes;
    uint32_t pass = __atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED);

    if (0 == pass % mca_pml_umrddt.params.check && mca_pml_umrddt_progress_enter()) {
        check(0 == pass / mca_pml_umrddt.params.check % LAYOUTS_PERIOD);
        mca_pml_umrddt_progress_leave();
    }
    return 0;
}

void mca_pml_umrddt_check_start(void)
{
    if (0 < mca_pml_umrddt.params.check) {
        opal_progress_register(look);
    }
}

void mca_pml_umrddt_check_stop(void)
{
    if (0 < mca_pml_umrddt.params.check) {
        opal_progress_unregister(look);
        check(true);
    }
}
