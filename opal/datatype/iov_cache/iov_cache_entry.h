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
 * An entry of the cache, and the lock-free acquisition of its layout.
 *
 * The memory of an entry stays an entry until the cache is destroyed, so any thread may read it; it
 * is reused. Each use is a *life*. The fields of a life are written before it begins and do not
 * change before it has ended. The state word has the number of the life (odd while it lasts;
 * numbers only grow, and 51 bits do not wrap), and the number of references *taken* during it.
 *
 * A life begins with OPAL_IOV_CACHE_STOCK references to the layout. A hit takes one of them by a
 * compare-and-swap of the state. The swap succeeds only if the life is still the one whose layout
 * was read. Apart from the time of use it is the only write of a hit. The end of a life does not
 * wait: it exchanges the state and releases the references that were not taken.
 *
 * No hit gets the layout of another life: the loads of type, count and layout are acquire loads,
 * and their stores are release stores after the exchange that ended the previous life. A thread
 * that reads one of them from a later life also sees that exchange, and its compare-and-swap fails.
 * No hit gets a freed layout: while the state has an available reference, the layout counts it.
 *
 * The number of taken references is also the hit count.
 */

#ifndef OPAL_IOV_CACHE_ENTRY_H
#define OPAL_IOV_CACHE_ENTRY_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iov_cache.h"
#include "iov_cache_table.h"

struct opal_iov_cache_type_t;
struct opal_iov_cache_shared_t;

/* Alignment of the hot part of an entry: it shares its cache line with no other data. */
#define OPAL_IOV_CACHE_LINE 64

typedef struct opal_iov_cache_entry_t {
    /* read by hits */
    opal_iov_cache_link_t link;
    uint64_t state;
    uint64_t type; /* the address of the datatype */
    uint64_t count;
    opal_iov_cache_layout_t *layout;
    uint64_t used; /* time stamp of the last use, or of a recent one */
    /* protected by the lock */
    uint64_t ordered; /* time stamp of its position in the order, never later than used */
    size_t place;     /* index in the LRU order */
    struct opal_iov_cache_type_t *of;
    struct opal_iov_cache_shared_t *shared;
    struct opal_iov_cache_entry_t *next; /* of the same type; or in the list of unused entries */
    struct opal_iov_cache_entry_t *previous;
} opal_iov_cache_entry_t;

#define OPAL_IOV_CACHE_TAKEN_BITS 13
#define OPAL_IOV_CACHE_LIFE       (UINT64_C(1) << OPAL_IOV_CACHE_TAKEN_BITS)

/* References at the begin of a life; fewer than 1 << OPAL_IOV_CACHE_TAKEN_BITS. */
#if !defined(OPAL_IOV_CACHE_STOCK)
#define OPAL_IOV_CACHE_STOCK 4096
#endif

/* Limit of entries of one layout, so that its reference count does not overflow. */
#define OPAL_IOV_CACHE_MAX_USERS (1u << 18)

static inline bool opal_iov_cache_state_lives(uint64_t state)
{
    return 0 != (state & OPAL_IOV_CACHE_LIFE);
}

static inline uint64_t opal_iov_cache_state_taken(uint64_t state)
{
    return state & (OPAL_IOV_CACHE_LIFE - 1);
}

/* @return NULL if out of memory */
opal_iov_cache_entry_t *opal_iov_cache_entry_alloc(void);

/*
 * Begin a life of the entry with this layout, which stays the caller's. The entry must not be
 * alive.
 */
void opal_iov_cache_entry_begin(opal_iov_cache_entry_t *entry, uint64_t type, uint64_t count,
                                opal_iov_cache_layout_t *layout);

/* @return number of references taken since the life began or was last refilled */
uint64_t opal_iov_cache_entry_end(opal_iov_cache_entry_t *entry);

/*
 * Refill the references. For a caller that has taken one and found fewer than half of the stock.
 *
 * @param[in]  life  the state that it saw
 *
 * @return number of hits that the entry does not count any more, and the caller must count
 */
uint64_t opal_iov_cache_entry_refill(opal_iov_cache_entry_t *entry, uint64_t life,
                                     opal_iov_cache_layout_t *layout);

/*
 * Take the layout of (type, count), if the entry has it.
 *
 * @param[in]  threads  opal_using_threads()
 * @param[out] state    the state at that time
 *
 * @return a reference for the caller; NULL if the entry has another key or no reference left
 */
static inline opal_iov_cache_layout_t *opal_iov_cache_entry_take(opal_iov_cache_entry_t *entry,
                                                                 uint64_t type, uint64_t count,
                                                                 bool threads, uint64_t *state)
{
    opal_iov_cache_layout_t *layout;

    *state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
    do {
        OPAL_IOV_CACHE_MEET();
        if (type != __atomic_load_n(&entry->type, __ATOMIC_ACQUIRE)
            || count != __atomic_load_n(&entry->count, __ATOMIC_ACQUIRE)
            || OPAL_UNLIKELY(!opal_iov_cache_state_lives(*state)
                             || OPAL_IOV_CACHE_STOCK <= opal_iov_cache_state_taken(*state))) {
            return NULL;
        }
        layout = __atomic_load_n(&entry->layout, __ATOMIC_ACQUIRE);
        OPAL_IOV_CACHE_MEET();
        if (!threads) {
            __atomic_store_n(&entry->state, *state + 1, __ATOMIC_RELAXED);
            return layout;
        }
    } while (OPAL_UNLIKELY(!__atomic_compare_exchange_n(&entry->state, state, *state + 1, true,
                                                        __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)));
    return layout;
}

#endif /* OPAL_IOV_CACHE_ENTRY_H */
