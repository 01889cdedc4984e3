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
 * Checks of the invariants of forms and of the cache. Those of forms also validate forms from
 * untrusted sources, so no index or sum is used before it has been compared with its expected
 * value.
 */

#include "opal_config.h"

#include <stdio.h>

#include "iov_cache_cache.h"
#include "iov_cache_list.h"
#include "iov_cache_sums.h"

/* ---------------------------------------------------------------------------------------------
 * Forms
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    const opal_iov_cache_form_t *form;
    size_t terms; /* their position in the arrays is known */
    size_t blocks;
    uint32_t depth;
} checker_t;

#define MUST(CONDITION, TEXT) \
    do {                      \
        if (!(CONDITION)) {   \
            return TEXT;      \
        }                     \
    } while (0)

/* Range of the start offsets of a body's repetitions. */
typedef struct {
    int64_t low;
    int64_t high;
} places_t;

/*
 * The range for a term's body. False if an offset exceeds 63 bits. (Offsets of bytes need not fit:
 * they may begin far from there.) The tree walk adds the ranges up.
 */
static bool places_of(const places_t *around, const opal_iov_cache_term_t *term, places_t *places)
{
    int64_t reach;

    return !__builtin_mul_overflow((int64_t) term->count - 1, term->stride, &reach)
           && !__builtin_add_overflow(around->low, term->offset, &places->low)
           && !__builtin_add_overflow(around->high, term->offset, &places->high)
           && !__builtin_add_overflow(places->low, reach < 0 ? reach : 0, &places->low)
           && !__builtin_add_overflow(places->high, reach > 0 ? reach : 0, &places->high);
}

static const char *check_terms(checker_t *checker, uint64_t first, uint64_t n, uint32_t level,
                               const places_t *around, opal_iov_cache_sums_t *sums);

static const char *check_blocks(checker_t *checker, const opal_iov_cache_term_t *term,
                                opal_iov_cache_sums_t *sums)
{
    const opal_iov_cache_block_t *blocks;
    uint64_t i;

    MUST(term->first == checker->blocks, "blocks are not behind those of the term before");
    MUST(term->n <= checker->form->block_count - checker->blocks, "more blocks than there are");
    checker->blocks += term->n;
    blocks = &checker->form->blocks[term->first];
    for (i = 0; i < term->n; ++i) {
        opal_iov_cache_sums_t one;

        MUST(0 < checker->form->uniform || 0 != (term->first + i) % OPAL_IOV_CACHE_START_STEP
                 || checker->form->starts[(term->first + i) / OPAL_IOV_CACHE_START_STEP]
                        == sums->size,
             "where a block begins");
        MUST(0 < blocks[i].length, "a block is empty");
        MUST(opal_iov_cache_sums_block(blocks[i].offset, blocks[i].length, &one),
             "63 bits (block)");
        MUST(!opal_iov_cache_sums_add(sums, &one), "a block continues the one before");
        MUST(INT64_MAX >= sums->size, "63 bits (blocks)");
    }
    return NULL;
}

static const char *check_term(checker_t *checker, const opal_iov_cache_term_t *term, uint32_t level,
                              const places_t *around, opal_iov_cache_sums_t *whole)
{
    opal_iov_cache_term_t expected = *term;
    opal_iov_cache_sums_t body = {0};
    places_t places;
    const char *wrong = NULL;

    MUST(level <= OPAL_IOV_CACHE_MAX_DEPTH, "too deep");
    checker->depth = level > checker->depth ? level : checker->depth;
    MUST(0 < term->count && term->count <= INT64_MAX, "no repetition, or too many");
    MUST(1 < term->count || 0 == term->stride, "a stride without repetitions");
    MUST(INT64_MIN < term->stride, "63 bits (stride)");
    MUST(places_of(around, term, &places), "63 bits (place)");
    MUST(0 < term->size && term->size <= INT64_MAX, "an empty term, or too large a one");
    switch (term->kind) {
    case OPAL_IOV_CACHE_DENSE:
        MUST(0 == term->first && 0 == term->n, "a dense term with a body");
        MUST(1 == term->count || 0 > term->stride || (uint64_t) term->stride != term->size,
             "repetitions that are one block");
        (void) opal_iov_cache_sums_block(0, term->size, &body);
        break;
    case OPAL_IOV_CACHE_TERMS:
        MUST(0 < term->n, "a body without terms");
        wrong = check_terms(checker, term->first, term->n, level + 1, &places, &body);
        break;
    case OPAL_IOV_CACHE_BLOCKS:
        MUST(1 < term->n, "a list without blocks, or of one");
        wrong = check_blocks(checker, term, &body);
        break;
    default:
        return "a term of no kind";
    }
    if (NULL != wrong) {
        return wrong;
    }
    expected.flags &= ~(uint32_t) OPAL_IOV_CACHE_ADJACENT;
    MUST(opal_iov_cache_sums_repeat(&expected, &body, whole), "63 bits (term)");
    MUST(expected.size == term->size, "the size of a repetition");
    MUST(expected.segments == term->segments, "the segments of a repetition");
    MUST(expected.flags == term->flags, "whether repetitions are adjacent");
    /* otherwise an adjacent repetition would begin no segment, and lookups could not find it */
    MUST(0 == (term->flags & OPAL_IOV_CACHE_ADJACENT) || 1 < term->segments,
         "repetitions that are one segment");
    return NULL;
}

static const char *check_terms(checker_t *checker, uint64_t first, uint64_t n, uint32_t level,
                               const places_t *around, opal_iov_cache_sums_t *sums)
{
    uint64_t i;

    MUST(first == checker->terms, "terms are not behind those of the term before");
    MUST(n <= checker->form->term_count - checker->terms, "more terms than there are");
    checker->terms += n;
    for (i = 0; i < n; ++i) {
        const opal_iov_cache_term_t *term = &checker->form->terms[first + i];
        opal_iov_cache_sums_t whole;
        const char *wrong;
        bool joined;

        MUST(0 == (term->flags & ~(uint32_t) (OPAL_IOV_CACHE_JOINED | OPAL_IOV_CACHE_ADJACENT)),
             "flags that do not exist");
        wrong = check_term(checker, term, level, around, &whole);
        if (NULL != wrong) {
            return wrong;
        }
        MUST(term->start == sums->size, "the start of a term");
        MUST(term->begins == sums->segments, "the segments before a term");
        joined = opal_iov_cache_sums_add(sums, &whole);
        MUST(joined == (0 != (term->flags & OPAL_IOV_CACHE_JOINED)), "whether terms are joined");
        MUST(sums->size <= INT64_MAX, "63 bits (terms)");
    }
    return NULL;
}

const char *opal_iov_cache_form_check(const opal_iov_cache_form_t *form)
{
    const places_t root = {0, 0};
    checker_t checker = {.form = form};
    opal_iov_cache_sums_t sums = {0};
    const char *wrong;

    if (0 == form->size) {
        MUST(0 == form->term_count && 0 == form->block_count && 0 == form->segments && 0 == form->lb
                 && 0 == form->ub && 0 == form->uniform && 0 == form->depth,
             "an empty form that has something");
    } else {
        MUST(0 < form->term_count, "no root");
        wrong = check_terms(&checker, 0, 1, 1, &root, &sums);
        if (NULL != wrong) {
            return wrong;
        }
        MUST(checker.terms == form->term_count, "terms that nothing leads to");
        MUST(checker.blocks == form->block_count, "blocks that nothing leads to");
        MUST(checker.depth == form->depth, "the depth");
        MUST(sums.size == form->size && sums.segments == form->segments
                 && sums.uniform == form->uniform && sums.lb == form->lb && sums.ub == form->ub,
             "the sums of the form");
    }
    MUST(0 == form->hash || opal_iov_cache_form_hash_now(form) == form->hash, "the hash");
    return NULL;
}

/* ---------------------------------------------------------------------------------------------
 * The cache
 * ------------------------------------------------------------------------------------------- */

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
    uint64_t bytes = cache->layout_bytes + cache->allocated * OPAL_IOV_CACHE_ENTRY_BYTES
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
