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
 * Structures of a layout cache, shared by iov_cache_cache.c (lookups, and the entries that they may
 * meet without the lock), iov_cache_keep.c (insertion and eviction) and iov_cache_check.c.
 *
 * There are three tables: entries by (type, count) for lookups, types for their removal, and
 * layouts by the key of their form, each shared by all its entries. A type has a record from the
 * call of its watch function until it is forgotten, also without entries, because the function is
 * called only once.
 */

#ifndef OPAL_IOV_CACHE_CACHE_H
#define OPAL_IOV_CACHE_CACHE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_compat.h"

#include "iov_cache.h"

/* ---------------------------------------------------------------------------------------------
 * Tables
 * ------------------------------------------------------------------------------------------- */

/*
 * A hash table with links embedded in its elements. Insertion allocates nothing and cannot fail. If
 * growth fails, the chains are longer.
 *
 * One thread at a time may change it (with the cache's lock). Other threads may walk a chain at the
 * same time. They see some of the present or former links, possibly of another chain, but never
 * other memory, as long as links stay links until the table is freed. So a walk without the lock
 * may miss a link and may find unrelated ones. Outgrown arrays are kept for such walks.
 */

/* Test hook between two steps that other threads may interrupt. */
#if !defined(OPAL_IOV_CACHE_MEET)
#define OPAL_IOV_CACHE_MEET() ((void) 0)
#endif

typedef struct opal_iov_cache_link_t {
    struct opal_iov_cache_link_t *next; /* in the chain; read without the lock */
    uint64_t hash;
} opal_iov_cache_link_t;

typedef struct opal_iov_cache_buckets_t {
    struct opal_iov_cache_buckets_t *outgrown; /* half as large */
    uint64_t mask;                             /* number of chains, a power of two, less 1 */
    opal_iov_cache_link_t *chains[];
} opal_iov_cache_buckets_t;

typedef struct {
    opal_iov_cache_buckets_t *buckets; /* read without the lock */
    uint64_t size;                     /* links in it */
} opal_iov_cache_table_t;

/* Bytes by which the table should grow now; 0: it is large enough. */
size_t opal_iov_cache_table_wants(const opal_iov_cache_table_t *table);

/* Grow by that amount. @return false if out of memory; nothing has changed */
bool opal_iov_cache_table_grow(opal_iov_cache_table_t *table);

/* Insert a link, by link->hash. */
void opal_iov_cache_table_add(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* Remove a link. A concurrent walk at that link still finds the rest of its chain. */
void opal_iov_cache_table_remove(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* The chain of a hash; it contains all links of that hash. */
static inline opal_iov_cache_link_t *opal_iov_cache_table_chain(const opal_iov_cache_table_t *table,
                                                                uint64_t hash)
{
    const opal_iov_cache_buckets_t *buckets = __atomic_load_n(&table->buckets, __ATOMIC_ACQUIRE);

    OPAL_IOV_CACHE_MEET();
    return __atomic_load_n(&buckets->chains[hash & buckets->mask], __ATOMIC_ACQUIRE);
}

/* @return NULL at the end of a chain */
static inline opal_iov_cache_link_t *opal_iov_cache_table_next(const opal_iov_cache_link_t *link)
{
    return __atomic_load_n(&link->next, __ATOMIC_ACQUIRE);
}

/* Hash of two numbers: every input bit affects the low bits of the result. */
static inline uint64_t opal_iov_cache_table_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * UINT64_C(0xc2b2ae3d27d4eb4f))) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

/* ---------------------------------------------------------------------------------------------
 * Entries
 * ------------------------------------------------------------------------------------------- */

/*
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

/* Bytes that an entry occupies. */
#define OPAL_IOV_CACHE_ENTRY_BYTES                                                    \
    ((sizeof(opal_iov_cache_entry_t) + OPAL_IOV_CACHE_LINE - 1) / OPAL_IOV_CACHE_LINE \
     * OPAL_IOV_CACHE_LINE)

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

/* ---------------------------------------------------------------------------------------------
 * The cache
 * ------------------------------------------------------------------------------------------- */

/*
 * The LRU order of entries. A hit only writes the time stamp of its entry. The search for the
 * oldest entry first moves entries whose stamp has changed since they were placed. So eviction pays
 * for the hits: O(log entries) for each used entry.
 *
 * Requires the cache's lock, except for the stamps.
 */

/* Initial capacity of an order. */
#define OPAL_IOV_CACHE_FIRST_ROOM 64

/* A heap: the entry at i was ordered no later than those at 2i + 1 and 2i + 2. */
typedef struct {
    opal_iov_cache_entry_t **entries;
    size_t size;
    size_t room;
} opal_iov_cache_order_t;

typedef struct opal_iov_cache_type_t {
    opal_iov_cache_link_t link;
    uint64_t key; /* address of the datatype */
    bool watched;
    bool asking; /* the watch function is running without the lock, and its caller still needs this
                    record */
    bool forgotten; /* forgotten meanwhile: not in the table, the caller of the watch function frees
                       it */
    opal_iov_cache_entry_t *entries;
} opal_iov_cache_type_t;

/* A layout and the number of its entries. */
typedef struct opal_iov_cache_shared_t {
    opal_iov_cache_link_t link;
    opal_iov_cache_layout_t *layout;
    uint64_t users;
    uint64_t bytes;
} opal_iov_cache_shared_t;

struct opal_iov_cache_t {
    /* read by hits; written only by insertions and refills */
    opal_iov_cache_table_t entries; /* opal_iov_cache_entry_t by (type, count) */
    uint64_t clock;                 /* time stamps of uses */
    uint64_t hits;                  /* hits not counted in an entry */
    size_t max_bytes;
    opal_iov_cache_watch_fn_t watch;
    void *context;
    /* protected by the lock */
    opal_mutex_t lock;
    opal_iov_cache_table_t types;   /* opal_iov_cache_type_t by address */
    opal_iov_cache_table_t layouts; /* opal_iov_cache_shared_t by the key of the form */
    opal_iov_cache_order_t order;   /* the entries in LRU order */
    opal_iov_cache_entry_t *spare;  /* unused entries */
    uint64_t allocated;             /* entries, used and unused */
    uint64_t layout_bytes;          /* part of stats.bytes that can be evicted */
    uint64_t forgets;               /* calls of opal_iov_cache_forget */
    opal_iov_cache_stats_t stats;   /* hits: as last reported */
};

/* Bytes of a layout with its record. */
static inline uint64_t opal_iov_cache_shared_bytes(const opal_iov_cache_layout_t *layout)
{
    return sizeof(opal_iov_cache_shared_t) + sizeof(*layout)
           + opal_iov_cache_form_bytes(layout->form);
}

/* The following functions require the lock. */

opal_iov_cache_entry_t *opal_iov_cache_find_entry(opal_iov_cache_t *cache, uint64_t type,
                                                  uint64_t count);
opal_iov_cache_type_t *opal_iov_cache_find_type(opal_iov_cache_t *cache, uint64_t key);
opal_iov_cache_shared_t *opal_iov_cache_find_shared(opal_iov_cache_t *cache,
                                                    const opal_iov_cache_layout_t *layout);

/* Mark the entry as used now. */
void opal_iov_cache_touch(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry);

/*
 * Cache a layout that was created without the lock. Releases the lock while the watch function of
 * the type runs.
 *
 * @param[in]  layout   the caller's; the cache takes references of its own
 * @param[in]  forgets  cache->forgets before the layout was created
 *
 * @return the layout to return to the user, with the caller's reference moved to it: the same, or
 *         that of another thread that was faster
 */
opal_iov_cache_layout_t *opal_iov_cache_keep(opal_iov_cache_t *cache,
                                             const opal_datatype_t *datatype, uint64_t count,
                                             opal_iov_cache_layout_t *layout, uint64_t forgets);

/* Remove the entries of a type and its record. @return number of entries */
uint64_t opal_iov_cache_drop_type(opal_iov_cache_t *cache, opal_iov_cache_type_t *type);

#endif /* OPAL_IOV_CACHE_CACHE_H */
