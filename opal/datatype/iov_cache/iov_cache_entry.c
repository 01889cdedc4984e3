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
 * The lives of an entry: see iov_cache_entry.h.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "iov_cache_entry.h"

/* A refill adds half of the stock. */
#define REFILL (OPAL_IOV_CACHE_STOCK / 2)

/* Add or remove several references at once; never the last one. */
static void count_references(opal_iov_cache_layout_t *layout, int number)
{
    (void) opal_obj_update((opal_object_t *) layout, number);
}

opal_iov_cache_entry_t *opal_iov_cache_entry_alloc(void)
{
    size_t bytes = (sizeof(opal_iov_cache_entry_t) + OPAL_IOV_CACHE_LINE - 1) / OPAL_IOV_CACHE_LINE
                   * OPAL_IOV_CACHE_LINE;
    opal_iov_cache_entry_t *entry = aligned_alloc(OPAL_IOV_CACHE_LINE, bytes);

    if (NULL != entry) {
        memset(entry, 0, sizeof(*entry));
    }
    return entry;
}

void opal_iov_cache_entry_begin(opal_iov_cache_entry_t *entry, uint64_t type, uint64_t count,
                                opal_iov_cache_layout_t *layout)
{
    uint64_t state = __atomic_load_n(&entry->state, __ATOMIC_RELAXED);

    count_references(layout, OPAL_IOV_CACHE_STOCK);
    /* release: a thread that reads one of these also sees the end of the previous life */
    __atomic_store_n(&entry->type, type, __ATOMIC_RELEASE);
    OPAL_IOV_CACHE_MEET();
    __atomic_store_n(&entry->count, count, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->layout, layout, __ATOMIC_RELEASE);
    OPAL_IOV_CACHE_MEET();
    __atomic_store_n(&entry->state, state + OPAL_IOV_CACHE_LIFE, __ATOMIC_RELEASE);
}

uint64_t opal_iov_cache_entry_end(opal_iov_cache_entry_t *entry)
{
    uint64_t state = __atomic_load_n(&entry->state, __ATOMIC_RELAXED), next;

    do {
        next = state - opal_iov_cache_state_taken(state) + OPAL_IOV_CACHE_LIFE;
        OPAL_IOV_CACHE_MEET();
        /* acquire: refilled references are in the layout's count before the rest is released */
    } while (!__atomic_compare_exchange_n(&entry->state, &state, next, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    count_references(entry->layout,
                     -(int) (OPAL_IOV_CACHE_STOCK - opal_iov_cache_state_taken(state)));
    return opal_iov_cache_state_taken(state);
}

uint64_t opal_iov_cache_entry_refill(opal_iov_cache_entry_t *entry, uint64_t life,
                                     opal_iov_cache_layout_t *layout)
{
    uint64_t state = __atomic_load_n(&entry->state, __ATOMIC_RELAXED);

    count_references(layout, REFILL);
    do {
        OPAL_IOV_CACHE_MEET();
        /* The life has ended, or another thread refilled first. */
        if (state / OPAL_IOV_CACHE_LIFE != life / OPAL_IOV_CACHE_LIFE
            || REFILL > opal_iov_cache_state_taken(state)) {
            count_references(layout, -REFILL);
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&entry->state, &state, state - REFILL, true,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return REFILL;
}
