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
 * The cache of layouts.
 *
 * A hit takes no lock: see iov_cache_entry.h for the acquisition of a layout, and iov_cache_table.h
 * for walks without the lock. All other operations take the lock. A lookup that fails without the
 * lock is repeated with it, so a disturbed walk only costs a lock.
 *
 * A miss releases the lock for the walk of the datatype and for the watch callback. Afterwards it
 * checks for concurrent changes: if another thread has cached the same layout, ours is dropped. If
 * types were forgotten, ours is returned but not cached, since its address can already belong to
 * another datatype.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/constants.h"

#include "iov_cache_cache.h"

/* A longer walk without the lock is likely to follow changing links. */
#define LONGEST_WALK 64

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
    ++cache->stats.misses; /* here, since the lock was released in between: see iov_cache_audit.c */
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
    if (OPAL_SUCCESS != opal_iov_cache_table_init(&made->entries)
        || OPAL_SUCCESS != opal_iov_cache_table_init(&made->types)
        || OPAL_SUCCESS != opal_iov_cache_table_init(&made->layouts)
        || OPAL_SUCCESS != opal_iov_cache_order_init(&made->order)) {
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
    opal_iov_cache_order_fini(&cache->order);
    opal_iov_cache_table_fini(&cache->layouts);
    opal_iov_cache_table_fini(&cache->types);
    opal_iov_cache_table_fini(&cache->entries);
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
