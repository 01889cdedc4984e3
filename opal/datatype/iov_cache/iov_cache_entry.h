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
 * An entry of the cache, and how a layout is taken from it without a lock.
 *
 * The memory of an entry is an entry's until its cache is destroyed, so it may be looked at whoever
 * changes it; it is used again and again. Each use is a *life*. What the entry leads to is
 * written before a life begins and not changed before it has ended. One word, the state,
 * holds the number of the life (odd while it lasts; numbers only grow, and 51 bits do not come
 * round), and how many references of the layout were *taken* during it.
 *
 * These references are there beforehand: a life begins with OPAL_IOV_CACHE_STOCK of them, which are
 * taken one by one. To take one is a compare-and-swap of the state, which counts it if the life is
 * still the one whose layout was read, and which is all that a hit writes but for the time of
 * use. Nothing has to be waited for at the end of a life: the state is exchanged, and what had not
 * been taken by then is given back.
 *
 * Why nobody gets the layout of another life: the loads of type, count and layout are acquiring,
 * and their stores releasing and later than the exchange that ended the life before. So who has
 * read any of them from a later life also sees that exchange, and its compare-and-swap fails. Why
 * nobody gets a dead layout: as long as the state says that a reference is there to be taken, it is
 * counted in the layout.
 *
 * The taken references are also the count of hits.
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

/* Where the hot part of an entry begins: nothing else shares its cache line. */
#define OPAL_IOV_CACHE_LINE 64

typedef struct opal_iov_cache_entry_t {
    /* what a hit looks at */
    opal_iov_cache_link_t link;
    uint64_t state;
    uint64_t type; /* the address of the datatype */
    uint64_t count;
    opal_iov_cache_layout_t *layout;
    uint64_t used; /* stamp of the last use, or of one of the last few */
    /* with the lock only */
    uint64_t ordered; /* stamp by which it is in its place, never later than used */
    size_t place;     /* in the order of use */
    struct opal_iov_cache_type_t *of;
    struct opal_iov_cache_shared_t *shared;
    struct opal_iov_cache_entry_t *next; /* of the same type; or of those that are not in use */
    struct opal_iov_cache_entry_t *previous;
} opal_iov_cache_entry_t;

#define OPAL_IOV_CACHE_TAKEN_BITS 13
#define OPAL_IOV_CACHE_LIFE       (UINT64_C(1) << OPAL_IOV_CACHE_TAKEN_BITS)

/* References that a life begins with; fewer than 1 << OPAL_IOV_CACHE_TAKEN_BITS. */
#if !defined(OPAL_IOV_CACHE_STOCK)
#define OPAL_IOV_CACHE_STOCK 4096
#endif

/* Layouts with more entries than that would run out of numbers for their references. */
#define OPAL_IOV_CACHE_MAX_USERS (1u << 18)

static inline bool opal_iov_cache_state_lives(uint64_t state)
{
    return 0 != (state & OPAL_IOV_CACHE_LIFE);
}

static inline uint64_t opal_iov_cache_state_taken(uint64_t state)
{
    return state & (OPAL_IOV_CACHE_LIFE - 1);
}

/* @return NULL without memory */
opal_iov_cache_entry_t *opal_iov_cache_entry_alloc(void);

/* The layout, which stays the caller's, becomes that of the entry; for one that is not alive. */
void opal_iov_cache_entry_begin(opal_iov_cache_entry_t *entry, uint64_t type, uint64_t count,
                                opal_iov_cache_layout_t *layout);

/* @return how many references were taken since the life began or was last refilled */
uint64_t opal_iov_cache_entry_end(opal_iov_cache_entry_t *entry);

/*
 * For who has just taken a reference and found fewer than half of the stock: fills it up again.
 *
 * @param[in]  life  the state that it saw
 *
 * @return how many hits are thereby no longer counted in the entry, and are now to be counted by
 *         the caller
 */
uint64_t opal_iov_cache_entry_refill(opal_iov_cache_entry_t *entry, uint64_t life,
                                     opal_iov_cache_layout_t *layout);

/*
 * Take the layout of (type, count), if that is what the entry leads to.
 *
 * @param[in]  threads  opal_using_threads()
 * @param[out] state    what the state was when it was taken
 *
 * @return a reference for the caller; NULL if the entry is another's or out of stock
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
