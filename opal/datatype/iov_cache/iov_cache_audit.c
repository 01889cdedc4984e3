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
 * Checks of the invariants of the cache.
 */

#include "opal_config.h"

#include <stdio.h>

#include "iov_cache_cache.h"

#define HOLDS(CONDITION)                                                                   \
    do {                                                                                   \
        if (!(CONDITION)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #CONDITION); \
            return false;                                                                  \
        }                                                                                  \
    } while (0)

static uint64_t state_of(const opal_iov_cache_entry_t *entry)
{
    return __atomic_load_n(&entry->state, __ATOMIC_RELAXED);
}

/* Every link is in the chain of its hash. */
static bool check_table(const opal_iov_cache_table_t *table)
{
    const opal_iov_cache_buckets_t *buckets = table->buckets;
    const opal_iov_cache_link_t *link;
    uint64_t links = 0, i;

    HOLDS(0 == (buckets->mask & (buckets->mask + 1)));
    for (i = 0; i <= buckets->mask; ++i) {
        for (link = buckets->chains[i]; NULL != link; link = link->next) {
            HOLDS(i == (link->hash & buckets->mask));
            HOLDS(++links <= table->size);
        }
    }
    HOLDS(links == table->size);
    return true;
}

static bool check_layout(const opal_iov_cache_layout_t *layout)
{
    const char *wrong = opal_iov_cache_form_check(layout->form);

    if (NULL != wrong) {
        fprintf(stderr, "%s:%d: form: %s\n", __FILE__, __LINE__, wrong);
        return false;
    }
    HOLDS(0 != layout->id);
    HOLDS(layout->size == layout->form->size && layout->iov_count == layout->form->segments);
    HOLDS(layout->lb == layout->form->lb && layout->ub == layout->form->ub);
    return true;
}

/* Every shared layout: no two are equal, and their user counts equal the number of entries. */
static bool check_shared(opal_iov_cache_t *cache)
{
    uint64_t bytes = 0, users = 0, i;
    opal_iov_cache_link_t *link;

    for (i = 0; i <= cache->layouts.buckets->mask; ++i) {
        for (link = cache->layouts.buckets->chains[i]; NULL != link; link = link->next) {
            opal_iov_cache_shared_t *shared = container_of(link, opal_iov_cache_shared_t, link);

            HOLDS(link->hash == opal_iov_cache_form_key(shared->layout->form));
            HOLDS(shared == opal_iov_cache_find_shared(cache, shared->layout));
            HOLDS(0 < shared->users && OPAL_IOV_CACHE_MAX_USERS >= shared->users);
            HOLDS(shared->bytes == opal_iov_cache_shared_bytes(shared->layout));
            HOLDS(check_layout(shared->layout));
            users += shared->users;
            bytes += shared->bytes;
        }
    }
    HOLDS(users == cache->stats.entries);
    HOLDS(bytes == cache->layout_bytes);
    return true;
}

/* Every entry, used or unused: state, position in the order, and found by its key. */
static bool check_entries(opal_iov_cache_t *cache)
{
    const opal_iov_cache_order_t *order = &cache->order;
    const opal_iov_cache_entry_t *entry;
    uint64_t spare = 0;
    size_t i;

    for (i = 0; i < order->size; ++i) {
        entry = order->entries[i];
        HOLDS(i == entry->place);
        HOLDS(0 == i || order->entries[(i - 1) / 2]->ordered <= entry->ordered);
        HOLDS(entry->ordered <= cache->clock);
        HOLDS(__atomic_load_n(&entry->used, __ATOMIC_RELAXED) <= cache->clock);
        HOLDS(opal_iov_cache_state_lives(state_of(entry)));
        HOLDS(opal_iov_cache_state_taken(state_of(entry)) <= OPAL_IOV_CACHE_STOCK);
        HOLDS(entry->link.hash == opal_iov_cache_table_hash(entry->type, entry->count));
        HOLDS(entry == opal_iov_cache_find_entry(cache, entry->type, entry->count));
        HOLDS(NULL != entry->of && entry->of == opal_iov_cache_find_type(cache, entry->type));
        HOLDS(entry->of->watched);
        HOLDS(entry->layout == entry->shared->layout);
        HOLDS(entry->shared == opal_iov_cache_find_shared(cache, entry->layout));
    }
    for (entry = cache->spare; NULL != entry; entry = entry->next) {
        HOLDS(!opal_iov_cache_state_lives(state_of(entry)));
        HOLDS(0 == opal_iov_cache_state_taken(state_of(entry)));
        HOLDS(++spare <= cache->allocated);
    }
    HOLDS(order->size <= order->room);
    HOLDS(order->size == cache->stats.entries && order->size == cache->entries.size);
    HOLDS(order->size + spare == cache->allocated);
    return true;
}

/* Every record of a type; the sum of their entries is the number of entries. */
static bool check_types(opal_iov_cache_t *cache)
{
    const opal_iov_cache_entry_t *entry, *previous;
    uint64_t entries = 0, i;
    opal_iov_cache_link_t *link;

    for (i = 0; i <= cache->types.buckets->mask; ++i) {
        for (link = cache->types.buckets->chains[i]; NULL != link; link = link->next) {
            opal_iov_cache_type_t *type = container_of(link, opal_iov_cache_type_t, link);

            HOLDS(type == opal_iov_cache_find_type(cache, type->key));
            HOLDS(!type->forgotten && type->watched == !type->asking);
            HOLDS(type->watched || NULL == type->entries);
            for (entry = type->entries, previous = NULL; NULL != entry; entry = entry->next) {
                HOLDS(type == entry->of && type->key == entry->type);
                HOLDS(previous == entry->previous);
                HOLDS(++entries <= cache->stats.entries);
                previous = entry;
            }
        }
    }
    HOLDS(entries == cache->stats.entries);
    return true;
}

/* Growth of the tables and the order. */
static uint64_t grown(const opal_iov_cache_t *cache)
{
    const opal_iov_cache_table_t *tables[3] = {&cache->entries, &cache->types, &cache->layouts};
    const opal_iov_cache_buckets_t *buckets;
    uint64_t bytes = (cache->order.room - OPAL_IOV_CACHE_FIRST_ROOM) * sizeof(void *);
    int i;

    for (i = 0; i < 3; ++i) {
        for (buckets = tables[i]->buckets; NULL != buckets->outgrown; buckets = buckets->outgrown) {
            bytes += sizeof(*buckets) + (buckets->mask + 1) * sizeof(void *);
        }
    }
    return bytes;
}

/* Types that were forgotten during their watch callback are in no table, but count here. */
static bool check_bytes(const opal_iov_cache_t *cache)
{
    uint64_t bytes = cache->layout_bytes + cache->allocated * opal_iov_cache_entry_bytes()
                     + cache->types.size * sizeof(opal_iov_cache_type_t) + grown(cache);

    HOLDS(bytes <= cache->stats.bytes);
    HOLDS(0 == (cache->stats.bytes - bytes) % sizeof(opal_iov_cache_type_t));
    HOLDS(bytes == cache->stats.bytes || 0 < cache->forgets);
    HOLDS(cache->stats.bytes <= cache->max_bytes);
    return true;
}

static bool check_all(opal_iov_cache_t *cache)
{
    const opal_iov_cache_stats_t *stats = &cache->stats;

    HOLDS(stats->misses == stats->entries + stats->evictions + stats->forgotten + stats->uncached);
    HOLDS(stats->shared <= stats->misses);
    return check_table(&cache->entries) && check_table(&cache->types)
           && check_table(&cache->layouts) && check_entries(cache) && check_shared(cache)
           && check_types(cache) && check_bytes(cache);
}

bool opal_iov_cache_check(opal_iov_cache_t *cache)
{
    bool holds;

    OPAL_THREAD_LOCK(&cache->lock);
    holds = check_all(cache);
    OPAL_THREAD_UNLOCK(&cache->lock);
    return holds;
}
