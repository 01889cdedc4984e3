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
 * The key cache: keysets stay mapped for the next message with the same layout, buffer and range
 * (the mkey cache of "Network Assisted Non-Contiguous Transfers for GPU-Aware MPI Libraries").
 *
 * A cached keyset is in a hash table by name and in an LRU list. A keyset in use is never found a
 * second time and never evicted. A message of the same name at the same time (one buffer sent to
 * several peers) maps a keyset of its own, which is cached beside the others.
 *
 * Safety. A cached keyset holds no reference in Open MPI's registration cache, since that cache
 * aborts a job that unmaps referenced memory. Instead it stores the unique ids of its
 * registrations, and holds a reference to their MRs, so its keys never refer to a destroyed MR.
 *
 *  - A lookup with memory (keyset_map) has registered it now; only a keyset over the same ids
 *    matches.
 *  - A lookup without memory (keyset_lookup) matches only if the cache still has all registrations
 *    of the keyset and the memory hooks have marked none of them as invalid. The hooks do so before
 *    the memory is gone, so a lookup in the cache would find the same registrations. Such a lookup
 *    also updates their LRU position. New registrations cause evictions, so after each of them a
 *    keyset needs one lookup with memory before it is found again.
 *  - The end of a registration evicts the unused keysets over it. Keysets in use are not cached
 *    again when they are released; their reference keeps the MR alive until then.
 *
 * REMOTE keys are invalidated whenever a keyset leaves the cache.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_keycache.h"
#include "opal/mca/btl/umr/btl_umr_post.h"

/** (Chunks and numbers of keys rarely differ alone.) */
static inline mca_btl_umr_keyset_object_t **bucket_of(mca_btl_umr_hca_t *hca,
                                                      const mca_btl_umr_keyset_name_t *name)
{
    uint64_t mixed = ((uintptr_t) name->buffer + name->role) ^ (name->layout_id << 40)
                     ^ (name->start << 20) ^ name->end;

    /* Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4), by the golden ratio:
     * the upper bits depend on all of the lower ones. */
    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return &hca->keycache.buckets[mixed >> (64 - MCA_BTL_UMR_KEYCACHE_BITS)];
}

static inline bool same_name(const mca_btl_umr_keyset_name_t *a, const mca_btl_umr_keyset_name_t *b)
{
    return a->role == b->role && a->buffer == b->buffer && a->layout_id == b->layout_id
           && a->chunk == b->chunk && a->start == b->start && a->end == b->end
           && a->max_keys == b->max_keys;
}

/** The most recent entry that is not in use; NULL: none. */
static inline mca_btl_umr_keyset_object_t *find(mca_btl_umr_hca_t *hca,
                                                const mca_btl_umr_keyset_name_t *name)
{
    mca_btl_umr_keyset_object_t *keyset = *bucket_of(hca, name);

    while (NULL != keyset && (!same_name(&keyset->name, name) || keyset->used)) {
        keyset = keyset->same_bucket;
    }
    return keyset;
}

/** True if it is mapped over the current registrations of the memory. */
static bool same_regs(const mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_memory_t *memory)
{
    if (keyset->base_count != memory->count) {
        return false;
    }
    for (size_t i = 0; i < memory->count; ++i) {
        if (keyset->bases[i].id != memory->parts[i].reg->id) {
            return false;
        }
    }
    return true;
}

/** True if the cache has and would find its registrations; false for GPU memory. */
static inline bool still_registered(const mca_btl_umr_keyset_object_t *keyset)
{
    for (size_t i = 0; i < keyset->base_count; ++i) {
        if (NULL == keyset->bases[i].mr || !mca_btl_umr_mr_is_valid(keyset->bases[i].mr)) {
            return false;
        }
    }
    return true;
}

/** True if the cache has dropped one of its registrations. */
static inline bool lost_one(const mca_btl_umr_keyset_object_t *keyset)
{
    for (size_t i = 0; i < keyset->base_count; ++i) {
        if (NULL != keyset->bases[i].mr && NULL == keyset->bases[i].mr->reg) {
            return true;
        }
    }
    return false;
}

/** Reference the registrations. @return false: out of memory, or the cache has dropped one */
static bool hold_regs(mca_btl_umr_keyset_object_t *keyset)
{
    const mca_btl_umr_memory_t *memory = keyset->memory;

    if (keyset->base_capacity < memory->count) {
        void *bases = realloc(keyset->bases, memory->count * sizeof(*keyset->bases));

        if (NULL == bases) {
            return false;
        }
        keyset->bases = bases;
        keyset->base_capacity = memory->count;
    }
    for (size_t i = 0; i < memory->count; ++i) {
        const mca_btl_umr_mr_t *mr = memory->parts[i].reg->held;

        if (OPAL_UNLIKELY(NULL != mr && NULL == mr->reg)) {
            return false; /* dropped by the cache, waiting for its last use to end */
        }
    }
    for (size_t i = 0; i < memory->count; ++i) {
        mca_btl_umr_reg_t *reg = memory->parts[i].reg;

        keyset->bases[i].id = reg->id;
        keyset->bases[i].mr = reg->held;
        if (NULL != reg->held) {
            OBJ_RETAIN(reg->held);
        }
        reg->mapped = true;
    }
    keyset->base_count = memory->count;
    return true;
}

/** Release the registrations below it, after its mkeys. */
static void release_regs(mca_btl_umr_keyset_object_t *keyset)
{
    if (lost_one(keyset)) {
        mca_btl_umr_keysets_post(keyset->hca); /* the invalidations first */
    }
    for (size_t i = 0; i < keyset->base_count; ++i) {
        if (NULL != keyset->bases[i].mr) {
            OBJ_RELEASE(keyset->bases[i].mr);
        }
    }
    keyset->base_count = 0;
}

/** Remove a keyset from the table; it is in hca.keysets again. */
static void remove_from_table(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    mca_btl_umr_keyset_object_t **link = bucket_of(hca, &keyset->name);

    while (keyset != *link) {
        link = &(*link)->same_bucket;
    }
    *link = keyset->same_bucket;
    keyset->same_bucket = NULL;
    opal_list_remove_item(&hca->keycache.cached, &keyset->pub.super);
    opal_list_append(&hca->keysets, &keyset->pub.super);
    hca->keycache.unused -= keyset->used ? 0 : 1;
    keyset->cached = false;
    keyset->used = false;
    --hca->stats.keysets_cached_now;
}

void mca_btl_umr_keycache_recycle(mca_btl_umr_keyset_object_t *keyset)
{
    if (keyset->cached) {
        remove_from_table(keyset);
    }
    mca_btl_umr_keyset_give_mkeys(keyset);
    if (0 < keyset->base_count) {
        release_regs(keyset);
    }
    mca_btl_umr_keyset_put(keyset);
}

/** Mark it as in use. */
static inline mca_btl_umr_keyset_object_t *hand_out(mca_btl_umr_hca_t *hca,
                                                    mca_btl_umr_keyset_object_t *keyset)
{
    keyset->used = true;
    --hca->keycache.unused;
    ++hca->stats.keyset_hits;
    hca->stats.keys_used += keyset->mapped;
    return keyset;
}

mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_take(const mca_btl_umr_keyset_name_t *name,
                                                       mca_btl_umr_memory_t *memory)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    mca_btl_umr_keyset_object_t *keyset = find(hca, name);

    if (NULL == keyset) {
        return NULL;
    }
    if (OPAL_UNLIKELY(!same_regs(keyset, memory))) {
        ++hca->stats.keysets_stale;
        mca_btl_umr_keycache_recycle(keyset);
        return NULL;
    }
    keyset->memory = memory;
    keyset->misses = hca->stats.reg_misses;
    return hand_out(hca, keyset);
}

mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_lookup(mca_btl_umr_hca_t *hca,
                                                         const mca_btl_umr_keyset_name_t *name)
{
    mca_btl_umr_keyset_object_t *keyset = find(hca, name);

    /* (a failed HCA has no cached keysets) */
    if (NULL == keyset || keyset->misses != hca->stats.reg_misses || !still_registered(keyset)) {
        return NULL;
    }
    hca->stats.reg_hits += keyset->base_count;
    return hand_out(hca, keyset);
}

bool mca_btl_umr_keycache_put(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    opal_list_item_t *item = &keyset->pub.super;

    if (hca->failed) {
        return false; /* its keys must be destroyed */
    }
    if (keyset->cached) {
        if (OPAL_UNLIKELY(lost_one(keyset))) {
            ++hca->stats.keysets_stale;
            return false;
        }
        if (item != opal_list_get_first(&hca->keycache.cached)) {
            opal_list_remove_item(&hca->keycache.cached, item);
            opal_list_prepend(&hca->keycache.cached, item);
        }
    } else {
        mca_btl_umr_keyset_object_t **bucket;

        if (0 == mca_btl_umr_params.key_cache || (!hca->rcache_cacheable && !keyset->memory->gpu)) {
            return false;
        }
        while (hca->stats.keysets_cached_now
               >= mca_btl_umr_share(mca_btl_umr_params.key_cache, 1)) {
            if (!mca_btl_umr_keycache_evict(hca, MCA_BTL_UMR_ROLE_MAX, 0)) {
                return false; /* all are in use */
            }
        }
        if (!hold_regs(keyset)) {
            return false;
        }
        bucket = bucket_of(hca, &keyset->name);
        keyset->same_bucket = *bucket;
        *bucket = keyset;
        keyset->cached = true;
        keyset->misses = hca->stats.reg_misses;
        ++hca->stats.keysets_cached_now;
        opal_list_remove_item(&hca->keysets, item);
        opal_list_prepend(&hca->keycache.cached, item);
    }
    keyset->used = false;
    ++hca->keycache.unused;
    keyset->memory = NULL;
    return true;
}

/** True if a list has an mkey with so many entries. */
static bool among(mca_btl_umr_hca_t *hca, const mca_btl_umr_mapping_t *mappings, size_t count,
                  uint32_t entries)
{
    bool is_long = entries > hca->mkeys.entries;

    for (size_t i = 0; i < count; ++i) {
        const mca_btl_umr_mkey_t *mkey = mappings[i].mkey;

        if (NULL != mkey && is_long == (NULL != mkey->class)) {
            return true;
        }
    }
    return false;
}

/** True if the keyset has an mkey with so many entries. */
static bool holds(const mca_btl_umr_keyset_object_t *keyset, uint32_t entries)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    return among(hca, keyset->mappings, keyset->pub.count, entries)
           || among(hca, keyset->inners, keyset->inner_count, entries);
}

bool mca_btl_umr_keycache_evict(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role, uint32_t entries)
{
    mca_btl_umr_keyset_object_t *keyset;

    if (0 == hca->keycache.unused) {
        return false;
    }
    OPAL_LIST_FOREACH_REV (keyset, &hca->keycache.cached, mca_btl_umr_keyset_object_t) {
        if (!keyset->used
            && (MCA_BTL_UMR_ROLE_MAX == role
                || (keyset->name.role == role && holds(keyset, entries)))) {
            ++hca->stats.keyset_evictions;
            mca_btl_umr_keycache_recycle(keyset);
            return true;
        }
    }
    return false;
}

/** True if it is mapped over the registration. */
static bool is_over(const mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_reg_t *reg)
{
    for (size_t i = 0; i < keyset->base_count; ++i) {
        if (reg->id == keyset->bases[i].id) {
            return true;
        }
    }
    return false;
}

void mca_btl_umr_keycache_forget_reg(mca_btl_umr_hca_t *hca, const mca_btl_umr_reg_t *reg)
{
    mca_btl_umr_keyset_object_t *keyset, *next;

    if (!reg->mapped) {
        return;
    }
    /* Keysets in use hold it; for GPU memory, their users do. */
    OPAL_LIST_FOREACH_SAFE (keyset, next, &hca->keycache.cached, mca_btl_umr_keyset_object_t) {
        if (!keyset->used && is_over(keyset, reg)) {
            ++hca->stats.keysets_stale;
            mca_btl_umr_keycache_recycle(keyset);
        }
    }
    mca_btl_umr_keysets_post(hca); /* their invalidations */
}

void mca_btl_umr_keycache_empty(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_keyset_object_t *keyset, *next;

    OPAL_LIST_FOREACH_SAFE (keyset, next, &hca->keycache.cached, mca_btl_umr_keyset_object_t) {
        if (!keyset->used) {
            mca_btl_umr_keycache_recycle(keyset);
        }
    }
}
