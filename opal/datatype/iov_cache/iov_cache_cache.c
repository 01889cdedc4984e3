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
 * The cache of layouts: lookups, and the tables and lives of entries that they may meet without the
 * lock.
 *
 * A hit takes no lock: iov_cache_cache.h has the proof. All other operations take the lock. A
 * lookup that fails without the lock is repeated with it, so a disturbed walk only costs a lock.
 *
 * A miss releases the lock for the walk of the datatype and for the watch callback. Afterwards it
 * checks for concurrent changes: if another thread has cached the same layout, ours is dropped. If
 * types were forgotten, ours is returned but not cached, since its address can already belong to
 * another datatype.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "iov_cache_cache.h"

/* A longer walk without the lock is likely to follow changing links. */
#define LONGEST_WALK 64

/* ---------------------------------------------------------------------------------------------
 * Tables
 * ------------------------------------------------------------------------------------------- */

/* Initial number of chains. */
#define FIRST_CHAINS 64

static size_t buckets_bytes(uint64_t chains)
{
    return sizeof(opal_iov_cache_buckets_t) + chains * sizeof(opal_iov_cache_link_t *);
}

static opal_iov_cache_buckets_t *make_buckets(uint64_t chains)
{
    opal_iov_cache_buckets_t *buckets = calloc(1, buckets_bytes(chains));

    if (NULL != buckets) {
        buckets->mask = chains - 1;
    }
    return buckets;
}

static void push(opal_iov_cache_buckets_t *buckets, opal_iov_cache_link_t *link)
{
    opal_iov_cache_link_t **chain = &buckets->chains[link->hash & buckets->mask];

    __atomic_store_n(&link->next, *chain, __ATOMIC_RELEASE);
    __atomic_store_n(chain, link, __ATOMIC_RELEASE);
}

static int table_init(opal_iov_cache_table_t *table)
{
    table->size = 0;
    table->buckets = make_buckets(FIRST_CHAINS);
    return NULL == table->buckets ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static void table_fini(opal_iov_cache_table_t *table)
{
    opal_iov_cache_buckets_t *buckets = table->buckets, *outgrown;

    for (; NULL != buckets; buckets = outgrown) {
        outgrown = buckets->outgrown;
        free(buckets);
    }
    table->buckets = NULL;
}

size_t opal_iov_cache_table_wants(const opal_iov_cache_table_t *table)
{
    uint64_t chains = table->buckets->mask + 1;

    return table->size < chains ? 0 : buckets_bytes(2 * chains);
}

bool opal_iov_cache_table_grow(opal_iov_cache_table_t *table)
{
    opal_iov_cache_buckets_t *old = table->buckets, *buckets = make_buckets(2 * (old->mask + 1));
    opal_iov_cache_link_t *link, *next;
    uint64_t i;

    if (NULL == buckets) {
        return false;
    }
    buckets->outgrown = old;
    /* A concurrent walk continues in the new chains, or ends early. */
    for (i = 0; i <= old->mask; ++i) {
        for (link = old->chains[i]; NULL != link; link = next) {
            next = link->next;
            OPAL_IOV_CACHE_MEET();
            push(buckets, link);
        }
    }
    __atomic_store_n(&table->buckets, buckets, __ATOMIC_RELEASE);
    return true;
}

void opal_iov_cache_table_add(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link)
{
    push(table->buckets, link);
    ++table->size;
}

void opal_iov_cache_table_remove(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link)
{
    opal_iov_cache_link_t **at = &table->buckets->chains[link->hash & table->buckets->mask];

    while (link != *at) {
        at = &(*at)->next;
    }
    OPAL_IOV_CACHE_MEET();
    __atomic_store_n(at, link->next, __ATOMIC_RELEASE);
    --table->size;
}

/* ---------------------------------------------------------------------------------------------
 * Lives of entries
 * ------------------------------------------------------------------------------------------- */

/* A refill adds half of the stock. */
#define REFILL (OPAL_IOV_CACHE_STOCK / 2)

/* Add or remove several references at once; never the last one. */
static void count_references(opal_iov_cache_layout_t *layout, int number)
{
    (void) opal_obj_update((opal_object_t *) layout, number);
}

opal_iov_cache_entry_t *opal_iov_cache_entry_alloc(void)
{
    opal_iov_cache_entry_t *entry = aligned_alloc(OPAL_IOV_CACHE_LINE, OPAL_IOV_CACHE_ENTRY_BYTES);

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

/* ---------------------------------------------------------------------------------------------
 * Lookups
 * ------------------------------------------------------------------------------------------- */

static void __opal_attribute_noinline__ refill(opal_iov_cache_t *cache,
                                               opal_iov_cache_entry_t *entry, uint64_t state,
                                               opal_iov_cache_layout_t *layout)
{
    uint64_t hits = opal_iov_cache_entry_refill(entry, state, layout);

    /* release: a thread that sees these hits here no longer sees them in the entry */
    __atomic_add_fetch(&cache->hits, hits, __ATOMIC_RELEASE);
}

/* Lookup without the lock. @return a reference; NULL: repeat with the lock */
static inline opal_iov_cache_layout_t *find(opal_iov_cache_t *cache, uint64_t type, uint64_t count)
{
    opal_iov_cache_link_t *link =
        opal_iov_cache_table_chain(&cache->entries, opal_iov_cache_table_hash(type, count));
    const bool threads = opal_using_threads();
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_entry_t *entry;
    uint64_t state, now;
    int steps;

    for (steps = 0; NULL != link && LONGEST_WALK > steps; ++steps) {
        entry = container_of(link, opal_iov_cache_entry_t, link);
        layout = opal_iov_cache_entry_take(entry, type, count, threads, &state);
        if (OPAL_UNLIKELY(NULL == layout)) {
            link = opal_iov_cache_table_next(link);
            continue;
        }
        /* With one thread hits update the order; several threads would contend for the clock. */
        now = __atomic_load_n(&cache->clock, __ATOMIC_RELAXED);
        if (!threads) {
            __atomic_store_n(&cache->clock, ++now, __ATOMIC_RELAXED);
        }
        if (now != __atomic_load_n(&entry->used, __ATOMIC_RELAXED)) {
            __atomic_store_n(&entry->used, now, __ATOMIC_RELAXED);
        }
        if (OPAL_UNLIKELY(OPAL_IOV_CACHE_STOCK / 2 <= opal_iov_cache_state_taken(state) + 1)) {
            refill(cache, entry, state, layout);
        }
        return layout;
    }
    return NULL;
}

static __opal_attribute_noinline__ int find_or_make(opal_iov_cache_t *cache,
                                                    const opal_datatype_t *type, size_t count,
                                                    opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_layout_t *made;
    opal_iov_cache_entry_t *entry;
    uint64_t forgets;
    int rc;

    OPAL_THREAD_LOCK(&cache->lock);
    entry = opal_iov_cache_find_entry(cache, (uint64_t) (uintptr_t) type, count);
    if (NULL != entry) {
        opal_iov_cache_touch(cache, entry);
        __atomic_add_fetch(&cache->hits, 1, __ATOMIC_RELAXED);
        *layout = entry->layout;
        OBJ_RETAIN(entry->layout);
        OPAL_THREAD_UNLOCK(&cache->lock);
        return OPAL_SUCCESS;
    }
    forgets = cache->forgets;
    OPAL_THREAD_UNLOCK(&cache->lock);

    rc = opal_iov_cache_layout_create(type, count, &made);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    OPAL_THREAD_LOCK(&cache->lock);
    *layout = opal_iov_cache_keep(cache, type, count, made, forgets);
    ++cache->stats.misses; /* here, since the lock was released in between: see iov_cache_check.c */
    OPAL_THREAD_UNLOCK(&cache->lock);
    return OPAL_SUCCESS;
}

int opal_iov_cache_get(opal_iov_cache_t *cache, const opal_datatype_t *type, size_t count,
                       opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_layout_t *found = find(cache, (uint64_t) (uintptr_t) type, count);

    if (OPAL_LIKELY(NULL != found)) {
        *layout = found;
        return OPAL_SUCCESS;
    }
    return find_or_make(cache, type, count, layout);
}

int opal_iov_cache_create(size_t max_bytes, opal_iov_cache_watch_fn_t watch, void *context,
                          opal_iov_cache_t **cache)
{
    opal_iov_cache_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    OBJ_CONSTRUCT(&made->lock, opal_mutex_t);
    made->max_bytes = max_bytes;
    made->watch = watch;
    made->context = context;
    made->order.room = OPAL_IOV_CACHE_FIRST_ROOM;
    if (OPAL_SUCCESS != table_init(&made->entries) || OPAL_SUCCESS != table_init(&made->types)
        || OPAL_SUCCESS != table_init(&made->layouts)
        || NULL == (made->order.entries = malloc(made->order.room * sizeof(void *)))) {
        opal_iov_cache_destroy(made);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *cache = made;
    return OPAL_SUCCESS;
}

void opal_iov_cache_destroy(opal_iov_cache_t *cache)
{
    opal_iov_cache_entry_t *entry;
    uint64_t i;

    if (NULL == cache) {
        return;
    }
    for (i = 0; NULL != cache->types.buckets && i <= cache->types.buckets->mask; ++i) {
        while (NULL != cache->types.buckets->chains[i]) {
            opal_iov_cache_drop_type(
                cache, container_of(cache->types.buckets->chains[i], opal_iov_cache_type_t, link));
        }
    }
    while (NULL != (entry = cache->spare)) {
        cache->spare = entry->next;
        free(entry);
    }
    free(cache->order.entries);
    table_fini(&cache->layouts);
    table_fini(&cache->types);
    table_fini(&cache->entries);
    OBJ_DESTRUCT(&cache->lock);
    free(cache);
}

void opal_iov_cache_forget(opal_iov_cache_t *cache, const opal_datatype_t *datatype)
{
    opal_iov_cache_type_t *type;

    OPAL_THREAD_LOCK(&cache->lock);
    ++cache->forgets;
    type = opal_iov_cache_find_type(cache, (uint64_t) (uintptr_t) datatype);
    if (NULL != type) {
        cache->stats.forgotten += opal_iov_cache_drop_type(cache, type);
    }
    OPAL_THREAD_UNLOCK(&cache->lock);
}

void opal_iov_cache_stats(opal_iov_cache_t *cache, opal_iov_cache_stats_t *stats)
{
    uint64_t hits;
    size_t i;

    OPAL_THREAD_LOCK(&cache->lock);
    /*
     * In this order hits that move from an entry to the sum may be missing, but not counted twice.
     */
    hits = __atomic_load_n(&cache->hits, __ATOMIC_ACQUIRE);
    for (i = 0; i < cache->order.size; ++i) {
        hits += opal_iov_cache_state_taken(
            __atomic_load_n(&cache->order.entries[i]->state, __ATOMIC_RELAXED));
    }
    if (cache->stats.hits < hits) {
        cache->stats.hits = hits;
    }
    *stats = cache->stats;
    OPAL_THREAD_UNLOCK(&cache->lock);
}
