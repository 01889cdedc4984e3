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
 * Insertion and eviction, and the LRU order of entries, with the lock of the cache held.
 *
 * Entries and outgrown tables are not freed before the cache (iov_cache_cache.h). They count as
 * used memory. Entries get at most half of it, so that layouts always have room.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/constants.h"

#include "iov_cache_cache.h"

/* ---------------------------------------------------------------------------------------------
 * The LRU order
 * ------------------------------------------------------------------------------------------- */

static void put(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    order->entries[place] = entry;
    entry->place = place;
}

/* Move an entry up from an empty position, until all above are not younger. */
static void rise(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    while (0 < place && order->entries[(place - 1) / 2]->ordered > entry->ordered) {
        put(order, place, order->entries[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(order, place, entry);
}

/* Move an entry down from an empty position, until all below are not older. */
static void sink(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    size_t below;

    while ((below = 2 * place + 1) < order->size) {
        if (below + 1 < order->size
            && order->entries[below + 1]->ordered < order->entries[below]->ordered) {
            ++below;
        }
        if (entry->ordered <= order->entries[below]->ordered) {
            break;
        }
        put(order, place, order->entries[below]);
        place = below;
    }
    put(order, place, entry);
}

/* Bytes by which it must grow before another entry is added; 0: there is room. */
static size_t order_wants(const opal_iov_cache_order_t *order)
{
    return order->size < order->room ? 0 : order->room * sizeof(order->entries[0]);
}

/* Grow by that amount. @return false if out of memory; nothing has changed */
static bool order_grow(opal_iov_cache_order_t *order)
{
    void *larger = realloc(order->entries, 2 * order->room * sizeof(order->entries[0]));

    if (NULL == larger) {
        return false;
    }
    order->entries = larger;
    order->room *= 2;
    return true;
}

/* Add an entry by its stamp; there must be room. */
static void order_add(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry)
{
    entry->ordered = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
    rise(order, order->size++, entry);
}

static void order_remove(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry)
{
    opal_iov_cache_entry_t *last = order->entries[--order->size];

    if (last == entry) {
        return;
    }
    if (last->ordered < entry->ordered) {
        rise(order, entry->place, last);
    } else {
        sink(order, entry->place, last);
    }
}

/* @return the entry with the oldest stamp, which is not removed; NULL if there is none */
static opal_iov_cache_entry_t *order_oldest(opal_iov_cache_order_t *order)
{
    opal_iov_cache_entry_t *entry;
    uint64_t used;

    if (0 == order->size) {
        return NULL;
    }
    for (;;) {
        entry = order->entries[0];
        used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
        if (used <= entry->ordered) {
            return entry;
        }
        entry->ordered = used;
        sink(order, 0, entry);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Insertion and eviction
 * ------------------------------------------------------------------------------------------- */

opal_iov_cache_entry_t *opal_iov_cache_find_entry(opal_iov_cache_t *cache, uint64_t type,
                                                  uint64_t count)
{
    opal_iov_cache_link_t *link =
        opal_iov_cache_table_chain(&cache->entries, opal_iov_cache_table_hash(type, count));

    for (; NULL != link; link = link->next) {
        opal_iov_cache_entry_t *entry = container_of(link, opal_iov_cache_entry_t, link);

        if (type == entry->type && count == entry->count) {
            return entry;
        }
    }
    return NULL;
}

opal_iov_cache_type_t *opal_iov_cache_find_type(opal_iov_cache_t *cache, uint64_t key)
{
    opal_iov_cache_link_t *link =
        opal_iov_cache_table_chain(&cache->types, opal_iov_cache_table_hash(key, 0));

    for (; NULL != link; link = link->next) {
        opal_iov_cache_type_t *type = container_of(link, opal_iov_cache_type_t, link);

        if (key == type->key) {
            return type;
        }
    }
    return NULL;
}

opal_iov_cache_shared_t *opal_iov_cache_find_shared(opal_iov_cache_t *cache,
                                                    const opal_iov_cache_layout_t *layout)
{
    const uint64_t key = opal_iov_cache_form_key(layout->form);
    opal_iov_cache_link_t *link = opal_iov_cache_table_chain(&cache->layouts, key);

    for (; NULL != link; link = link->next) {
        opal_iov_cache_shared_t *shared = container_of(link, opal_iov_cache_shared_t, link);

        if (link->hash == key && opal_iov_cache_form_equal(shared->layout->form, layout->form)) {
            return shared;
        }
    }
    return NULL;
}

static bool fits(const opal_iov_cache_t *cache, uint64_t bytes)
{
    return cache->stats.bytes + bytes <= cache->max_bytes;
}

/* A table that could not grow goes on with longer chains. */
static void grow(opal_iov_cache_t *cache, opal_iov_cache_table_t *table)
{
    size_t bytes = opal_iov_cache_table_wants(table);

    if (0 < bytes && fits(cache, bytes) && opal_iov_cache_table_grow(table)) {
        cache->stats.bytes += bytes;
    }
}

void opal_iov_cache_touch(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry)
{
    uint64_t now = cache->clock + 1;

    __atomic_store_n(&cache->clock, now, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->used, now, __ATOMIC_RELAXED);
}

/* Remove one user; the last one drops the layout. */
static void leave_shared(opal_iov_cache_t *cache, opal_iov_cache_shared_t *shared)
{
    if (0 < --shared->users) {
        return;
    }
    opal_iov_cache_table_remove(&cache->layouts, &shared->link);
    cache->stats.bytes -= shared->bytes;
    cache->layout_bytes -= shared->bytes;
    OBJ_RELEASE(shared->layout);
    free(shared);
}

/* Add a layout that differs from all others, with one user. @return NULL if out of memory */
static opal_iov_cache_shared_t *add_shared(opal_iov_cache_t *cache, opal_iov_cache_layout_t *layout)
{
    opal_iov_cache_shared_t *shared = malloc(sizeof(*shared));

    if (NULL == shared) {
        return NULL;
    }
    OBJ_RETAIN(layout);
    shared->link.hash = opal_iov_cache_form_key(layout->form);
    shared->layout = layout;
    shared->users = 1;
    shared->bytes = opal_iov_cache_shared_bytes(layout);
    cache->stats.bytes += shared->bytes;
    cache->layout_bytes += shared->bytes;
    grow(cache, &cache->layouts);
    opal_iov_cache_table_add(&cache->layouts, &shared->link);
    return shared;
}

static void put_aside(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry)
{
    entry->next = cache->spare;
    cache->spare = entry;
}

static void drop_entry(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry)
{
    opal_iov_cache_table_remove(&cache->entries, &entry->link);
    __atomic_add_fetch(&cache->hits, opal_iov_cache_entry_end(entry), __ATOMIC_RELAXED);
    order_remove(&cache->order, entry);
    if (NULL != entry->next) {
        entry->next->previous = entry->previous;
    }
    if (NULL != entry->previous) {
        entry->previous->next = entry->next;
    } else {
        entry->of->entries = entry->next;
    }
    leave_shared(cache, entry->shared);
    --cache->stats.entries;
    put_aside(cache, entry);
}

/* @return false if the cache is empty */
static bool evict(opal_iov_cache_t *cache)
{
    opal_iov_cache_entry_t *entry = order_oldest(&cache->order);

    if (NULL == entry) {
        return false;
    }
    drop_entry(cache, entry);
    ++cache->stats.evictions;
    return true;
}

static bool make_room(opal_iov_cache_t *cache, uint64_t bytes)
{
    while (!fits(cache, bytes)) {
        if (!evict(cache)) {
            return false;
        }
    }
    return true;
}

/* Get an unused entry. @return NULL if out of memory */
static opal_iov_cache_entry_t *new_entry(opal_iov_cache_t *cache)
{
    const size_t one = OPAL_IOV_CACHE_ENTRY_BYTES;
    opal_iov_cache_entry_t *entry;

    while (NULL == cache->spare) {
        /* all existing entries are in the order */
        size_t more = order_wants(&cache->order);

        if ((0 == cache->allocated || (cache->allocated + 1) * one <= cache->max_bytes / 2)
            && fits(cache, one + more)) {
            if (0 < more && !order_grow(&cache->order)) {
                return NULL;
            }
            cache->stats.bytes += more;
            entry = opal_iov_cache_entry_alloc();
            if (NULL != entry) {
                cache->stats.bytes += one;
                ++cache->allocated;
            }
            return entry;
        }
        if (!evict(cache)) {
            return NULL;
        }
    }
    entry = cache->spare;
    cache->spare = entry->next;
    return entry;
}

/* Add the entry; it takes over the user count that the shared layout has for it. */
static void add_entry(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry,
                      opal_iov_cache_type_t *type, uint64_t count, opal_iov_cache_shared_t *shared)
{
    entry->link.hash = opal_iov_cache_table_hash(type->key, count);
    entry->shared = shared;
    entry->of = type;
    entry->previous = NULL;
    entry->next = type->entries;
    if (NULL != entry->next) {
        entry->next->previous = entry;
    }
    type->entries = entry;
    opal_iov_cache_touch(cache, entry);
    order_add(&cache->order, entry);
    opal_iov_cache_entry_begin(entry, type->key, count, shared->layout);
    grow(cache, &cache->entries);
    opal_iov_cache_table_add(&cache->entries, &entry->link);
    ++cache->stats.entries;
}

static void free_type(opal_iov_cache_t *cache, opal_iov_cache_type_t *type)
{
    cache->stats.bytes -= sizeof(*type);
    free(type);
}

uint64_t opal_iov_cache_drop_type(opal_iov_cache_t *cache, opal_iov_cache_type_t *type)
{
    uint64_t dropped = 0;

    for (; NULL != type->entries; ++dropped) {
        drop_entry(cache, type->entries);
    }
    opal_iov_cache_table_remove(&cache->types, &type->link);
    if (type->asking) {
        type->forgotten = true;
    } else {
        free_type(cache, type);
    }
    return dropped;
}

static opal_iov_cache_type_t *add_type(opal_iov_cache_t *cache, uint64_t key)
{
    opal_iov_cache_type_t *type;

    if (!make_room(cache, sizeof(*type)) || NULL == (type = calloc(1, sizeof(*type)))) {
        return NULL;
    }
    type->link.hash = opal_iov_cache_table_hash(key, 0);
    type->key = key;
    cache->stats.bytes += sizeof(*type);
    grow(cache, &cache->types);
    opal_iov_cache_table_add(&cache->types, &type->link);
    return type;
}

/*
 * The record of a type that may be cached. The first call runs the watch callback with the lock
 * released. @return NULL if the type may not be cached (now)
 */
static opal_iov_cache_type_t *watched_type(opal_iov_cache_t *cache, const opal_datatype_t *datatype)
{
    uint64_t key = (uint64_t) (uintptr_t) datatype;
    opal_iov_cache_type_t *type = opal_iov_cache_find_type(cache, key);
    int rc;

    if (NULL != type) {
        return type->watched ? type : NULL; /* NULL: another thread runs the callback */
    }
    if (!opal_datatype_is_predefined(datatype) && NULL == cache->watch) {
        return NULL;
    }
    type = add_type(cache, key);
    if (NULL == type) {
        return NULL;
    }
    if (!opal_datatype_is_predefined(datatype)) {
        type->asking = true; /* the type may be forgotten while the lock is released */
        OPAL_THREAD_UNLOCK(&cache->lock);
        rc = cache->watch(cache, datatype, cache->context);
        OPAL_THREAD_LOCK(&cache->lock);
        type->asking = false;
        if (type->forgotten) {
            free_type(cache, type);
            return NULL;
        }
        if (OPAL_SUCCESS != rc) {
            opal_iov_cache_drop_type(cache, type);
            return NULL;
        }
    }
    type->watched = true;
    return type;
}

/* True if a layout of a datatype has room, at most after the eviction of all others. */
static bool could_fit(opal_iov_cache_t *cache, const opal_datatype_t *datatype,
                      const opal_iov_cache_layout_t *layout)
{
    uint64_t bytes = opal_iov_cache_shared_bytes(layout);

    if (0 == cache->allocated) {
        bytes += OPAL_IOV_CACHE_ENTRY_BYTES;
    }
    if (NULL == opal_iov_cache_find_type(cache, (uint64_t) (uintptr_t) datatype)) {
        bytes += sizeof(opal_iov_cache_type_t);
    }
    return cache->stats.bytes - cache->layout_bytes + bytes <= cache->max_bytes;
}

/* Return the cached layout for a caller that has created the same one. */
static opal_iov_cache_layout_t *instead(opal_iov_cache_layout_t *layout,
                                        opal_iov_cache_layout_t *made)
{
    OBJ_RELEASE(made);
    OBJ_RETAIN(layout);
    return layout;
}

opal_iov_cache_layout_t *opal_iov_cache_keep(opal_iov_cache_t *cache,
                                             const opal_datatype_t *datatype, uint64_t count,
                                             opal_iov_cache_layout_t *layout, uint64_t forgets)
{
    opal_iov_cache_shared_t *shared;
    opal_iov_cache_entry_t *entry;
    opal_iov_cache_type_t *type;

    if (forgets != cache->forgets || !could_fit(cache, datatype, layout)
        || NULL == (type = watched_type(cache, datatype))) {
        ++cache->stats.uncached;
        return layout;
    }
    entry = opal_iov_cache_find_entry(cache, type->key, count);
    if (NULL != entry) {
        ++cache->stats.uncached;
        opal_iov_cache_touch(cache, entry);
        return instead(entry->layout, layout);
    }
    shared = opal_iov_cache_find_shared(cache, layout);
    if (NULL != shared) {
        ++cache->stats.shared;
        layout = instead(shared->layout, layout);
        if (OPAL_IOV_CACHE_MAX_USERS <= shared->users) {
            ++cache->stats.uncached;
            return layout;
        }
        ++shared->users; /* before the eviction, which might remove it */
    }
    entry = new_entry(cache);
    if (NULL == shared && NULL != entry && make_room(cache, opal_iov_cache_shared_bytes(layout))) {
        shared = add_shared(cache, layout);
    }
    if (NULL != entry && NULL != shared) {
        add_entry(cache, entry, type, count, shared);
        return layout;
    }
    ++cache->stats.uncached;
    if (NULL != entry) {
        put_aside(cache, entry);
    }
    if (NULL != shared) {
        leave_shared(cache, shared);
    }
    return layout;
}
