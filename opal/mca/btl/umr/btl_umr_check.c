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
 * Checks of the invariants of an HCA; see btl_umr_check.h.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_check.h"

/** The name of the invariant is part of the error message. */
#define HOLDS(CONDITION, NAME)           \
    do {                                 \
        if (OPAL_UNLIKELY(!(CONDITION))) \
            return (NAME);               \
    } while (0)

/* ------------------------------------------------------------------------------------------- *
 * Queues
 * ------------------------------------------------------------------------------------------- */

static inline uint32_t out(const mca_btl_umr_sq_t *sq)
{
    return sq->posted - sq->done;
}

static const char *check_sq(const mca_btl_umr_sq_t *sq)
{
    HOLDS(sq->depth >= out(sq), "send queue: no more is posted than there is room for");
    HOLDS(0 <= (int32_t) (sq->posted - sq->signalled),
          "send queue: signalled requests were posted");
    HOLDS(0 == sq->depth || sq->depth > out(sq) || sq->posted == sq->signalled,
          "send queue: the one that fills it gives a completion");
    return NULL;
}

static const char *check_endpoints(const mca_btl_umr_hca_t *hca)
{
    opal_pointer_array_t *endpoints = (opal_pointer_array_t *) &hca->endpoints;
    uint32_t writes = 0, fins = 0;
    bool broken = false;

    for (int i = 0; i < opal_pointer_array_get_size(endpoints); ++i) {
        const mca_btl_umr_endpoint_t *endpoint = opal_pointer_array_get_item(endpoints, i);
        const char *wrong;

        if (NULL == endpoint) {
            continue;
        }
        HOLDS(hca == endpoint->hca && (uint32_t) i == endpoint->index,
              "endpoint: it is where its index says");
        wrong = check_sq(&endpoint->sq);
        if (NULL != wrong) {
            return wrong;
        }
        HOLDS(endpoint->fins_max >= endpoint->fins_expected,
              "endpoint: no more FINs are expected than it may have");
        fins += endpoint->fins_expected;
        /* after a break, the completions may be behind */
        broken = broken || endpoint->broken;
        writes += endpoint->broken ? 0 : out(&endpoint->sq);
    }
    HOLDS(fins == hca->receives.expected, "credit: expected FINs are those of the endpoints");
    HOLDS(writes <= hca->writes_out && (broken || writes == hca->writes_out),
          "credit: writes under way are those of the endpoints");
    HOLDS(hca->receives.missing <= hca->receives.depth,
          "shared receives: no more are missing than there are");
    return NULL;
}

static const char *check_cqs(const mca_btl_umr_hca_t *hca)
{
    const mca_btl_umr_cq_t *cq;

    OPAL_LIST_FOREACH (cq, &hca->cqs, mca_btl_umr_cq_t) {
        HOLDS(cq->room <= cq->size, "completion queue: no more room than it has");
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- *
 * Mkeys
 * ------------------------------------------------------------------------------------------- */

/** Number of mkeys in some lists: of the pool and long ones; by role where they are taken. */
typedef struct counted_t {
    size_t pool, longs;
    size_t pool_of[MCA_BTL_UMR_ROLE_MAX], longs_of[MCA_BTL_UMR_ROLE_MAX];
} counted_t;

static const char *count(const mca_btl_umr_hca_t *hca, const opal_list_t *list, bool taken,
                         counted_t *counted)
{
    const mca_btl_umr_mkey_t *mkey;

    OPAL_LIST_FOREACH (mkey, list, mca_btl_umr_mkey_t) {
        HOLDS(hca == mkey->hca, "mkeys: each is its HCA's");
        ++*(NULL == mkey->class ? &counted->pool : &counted->longs);
        if (taken) {
            HOLDS(MCA_BTL_UMR_ROLE_MAX > mkey->role, "mkeys: one that is taken has a role");
            ++(NULL == mkey->class ? counted->pool_of : counted->longs_of)[mkey->role];
        }
    }
    return NULL;
}

/** A free mkey: its key is useless to a peer. */
static const char *check_idle(const opal_list_t *list)
{
    const mca_btl_umr_mkey_t *mkey;

    OPAL_LIST_FOREACH (mkey, list, mca_btl_umr_mkey_t) {
        HOLDS(!mkey->exposed, "mkeys: none is free that a peer can still use");
    }
    return NULL;
}

static const char *check_mkeys(const mca_btl_umr_hca_t *hca)
{
    const mca_btl_umr_mkeys_t *mkeys = &hca->mkeys;
    const mca_btl_umr_klm_t *longs = &hca->klm;
    counted_t counted = {.pool = 0};
    size_t taken = 0;
    const char *wrong = check_sq(&mkeys->sq);

    if (NULL != wrong || NULL != (wrong = count(hca, &mkeys->taken, true, &counted))
        || NULL != (wrong = count(hca, &mkeys->idle, false, &counted))
        || NULL != (wrong = count(hca, &mkeys->invalid, false, &counted))
        || NULL != (wrong = check_idle(&mkeys->idle))
        || NULL != (wrong = count(hca, &longs->retired, false, &counted))
        || NULL != (wrong = check_idle(&longs->retired))) {
        return wrong;
    }
    for (size_t i = 0; i < longs->class_count; ++i) {
        if (NULL != (wrong = count(hca, &longs->classes[i].idle, false, &counted))
            || NULL != (wrong = check_idle(&longs->classes[i].idle))) {
            return wrong;
        }
    }
    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        HOLDS(mkeys->used[role] == counted.pool_of[role],
              "mkeys: those that a role uses are those that it took");
        HOLDS(longs->used[role] == counted.longs_of[role],
              "long mkeys: those that a role uses are those that it took");
        taken += mkeys->used[role] + longs->used[role];
    }
    HOLDS(mkeys->count == counted.pool, "mkeys: those that exist are taken, free or to be invalid");
    HOLDS(longs->count == counted.longs,
          "long mkeys: those that exist are taken, free, retired or to be invalid");
    HOLDS(mkeys->count + hca->refill.pending <= mkeys->bound.most,
          "mkeys: existing and requested ones are within the limit");
    HOLDS(hca->stats.mkeys_used_now == taken, "mkeys: those counted as used are the taken ones");
    return NULL;
}

/* ------------------------------------------------------------------------------------------- *
 * Keysets
 * ------------------------------------------------------------------------------------------- */

/** Number of mkeys of a keyset; SIZE_MAX: one of them has another role. */
static size_t mkeys_of(const mca_btl_umr_keyset_object_t *keyset)
{
    size_t found = 0;

    for (size_t i = 0; i < keyset->pub.count + keyset->inner_count; ++i) {
        const mca_btl_umr_mkey_t *mkey = i < keyset->pub.count
                                             ? keyset->mappings[i].mkey
                                             : keyset->inners[i - keyset->pub.count].mkey;

        if (NULL == mkey) {
            continue;
        }
        if (keyset->hca != mkey->hca || keyset->name.role != mkey->role) {
            return SIZE_MAX;
        }
        ++found;
    }
    return found;
}

static const char *check_keyset(const mca_btl_umr_hca_t *hca,
                                const mca_btl_umr_keyset_object_t *keyset, size_t *held)
{
    size_t found = mkeys_of(keyset);

    HOLDS(hca == keyset->hca, "keysets: each is its HCA's");
    HOLDS(SIZE_MAX != found, "keysets: their mkeys are of their role");
    HOLDS(keyset->mapped == found, "keysets: they hold as many mkeys as they say");
    *held += found;
    return NULL;
}

/** A keyset of the key cache. */
static const char *check_cached(const mca_btl_umr_keyset_object_t *keyset)
{
    HOLDS(keyset->cached, "key cache: its keysets are marked as cached");
    HOLDS(keyset->pub.ready && 0 < keyset->mapped, "key cache: its keysets are mapped");
    HOLDS(0 < keyset->base_count, "key cache: its keysets lie over registrations");
    HOLDS(keyset->used || NULL == keyset->memory, "key cache: unused keysets hold no memory");
    for (size_t i = 0; i < keyset->base_count; ++i) {
        HOLDS(0 != keyset->bases[i].id, "key cache: its keysets lie over registrations");
        HOLDS(NULL == keyset->bases[i].mr
                  || 0 < ((const opal_object_t *) keyset->bases[i].mr)->obj_reference_count,
              "key cache: a registration below kept keys is held");
    }
    return NULL;
}

static const char *check_keycache(const mca_btl_umr_hca_t *hca, size_t *held)
{
    const mca_btl_umr_keycache_t *cache = &hca->keycache;
    size_t listed = 0, unused = 0, chained = 0;
    const mca_btl_umr_keyset_object_t *keyset;
    const char *wrong;

    OPAL_LIST_FOREACH (keyset, &cache->cached, mca_btl_umr_keyset_object_t) {
        if (NULL != (wrong = check_keyset(hca, keyset, held))
            || NULL != (wrong = check_cached(keyset))) {
            return wrong;
        }
        ++listed;
        unused += keyset->used ? 0 : 1;
    }
    for (size_t i = 0; i < MCA_BTL_UMR_KEYCACHE_BUCKETS; ++i) {
        for (keyset = cache->buckets[i]; NULL != keyset; keyset = keyset->same_bucket) {
            HOLDS(keyset->cached && listed >= ++chained,
                  "key cache: the table and the list are equal");
        }
    }
    HOLDS(listed == chained, "key cache: the table and the list are equal");
    HOLDS(unused == cache->unused, "key cache: unused keysets are counted");
    HOLDS(listed == hca->stats.keysets_cached_now, "key cache: those that are kept are counted");
    HOLDS(listed <= mca_btl_umr_share(mca_btl_umr_params.key_cache, 1),
          "key cache: no more are kept than may be");
    return NULL;
}

static const char *check_queue(const mca_btl_umr_keyset_queue_t *queue, size_t most)
{
    const mca_btl_umr_keyset_object_t *keyset, *last = NULL;
    size_t found = 0;

    for (keyset = queue->head; NULL != keyset; keyset = keyset->next) {
        HOLDS(++found <= most, "keysets: a queue has an end");
        last = keyset;
    }
    HOLDS(last == queue->tail, "keysets: a queue ends with its last one");
    return NULL;
}

static const char *check_keysets(const mca_btl_umr_hca_t *hca)
{
    const mca_btl_umr_keyset_object_t *keyset;
    const char *wrong;
    size_t held = 0, in_use;

    OPAL_LIST_FOREACH (keyset, &hca->keysets, mca_btl_umr_keyset_object_t) {
        HOLDS(!keyset->cached, "keysets: one that is not in the key cache says so");
        wrong = check_keyset(hca, keyset, &held);
        if (NULL != wrong) {
            return wrong;
        }
    }
    in_use = opal_list_get_size((opal_list_t *) &hca->keysets);
    if (NULL != (wrong = check_keycache(hca, &held))
        || NULL != (wrong = check_queue(&hca->keysets_waiting, in_use))
        || NULL != (wrong = check_queue(&hca->keysets_posted, in_use))
        || NULL != (wrong = check_queue(&hca->keysets_done, in_use))) {
        return wrong;
    }
    HOLDS(held == hca->stats.mkeys_used_now, "mkeys: each that is taken is some keyset's");
    return NULL;
}

/* ------------------------------------------------------------------------------------------- *
 * Registrations
 * ------------------------------------------------------------------------------------------- */

static const char *check_part(const mca_btl_umr_memory_t *memory, const mca_btl_umr_part_t *part,
                              uintptr_t from)
{
    HOLDS(from <= part->start && part->start < part->end,
          "registrations: a buffer's parts ascend, and do not overlap");
    HOLDS(NULL != part->reg && NULL != part->reg->mr,
          "registrations: each part of a buffer has one");
    HOLDS(memory->gpu
              || ((uintptr_t) part->reg->super.base <= part->start
                  && (uintptr_t) part->reg->super.bound >= part->end - 1),
          "registrations: each covers its part of the buffer");
    return NULL;
}

static const char *check_memories(const mca_btl_umr_hca_t *hca)
{
    const mca_btl_umr_memory_t *memory;

    OPAL_LIST_FOREACH (memory, &hca->memories, mca_btl_umr_memory_t) {
        uintptr_t from = 0;

        HOLDS(hca == memory->hca && memory->count <= memory->capacity
                  && MCA_BTL_UMR_ROLE_MAX > memory->role,
              "registrations: a buffer's are its HCA's");
        for (size_t i = 0; i < memory->count; ++i) {
            const char *wrong = check_part(memory, &memory->parts[i], from);

            if (NULL != wrong) {
                return wrong;
            }
            from = memory->parts[i].end;
        }
    }
    HOLDS(hca->stats.reg_bytes_now <= hca->reg_bound, "registrations: no more bytes than may be");
    return NULL;
}

/* ------------------------------------------------------------------------------------------- *
 * The whole HCA
 * ------------------------------------------------------------------------------------------- */

const char *mca_btl_umr_hca_check(const mca_btl_umr_hca_t *hca)
{
    const char *wrong = check_endpoints(hca);

    wrong = NULL == wrong ? check_cqs(hca) : wrong;
    wrong = NULL == wrong ? check_memories(hca) : wrong;
    if (NULL == wrong && hca->caps.umr.usable && !hca->failed) {
        /*
         * (after a failure of the queue pair for mappings, keys are destroyed while keysets hold
         * them)
         */
        wrong = check_mkeys(hca);
        wrong = NULL == wrong ? check_keysets(hca) : wrong;
    }
    return wrong;
}

void mca_btl_umr_check(void)
{
    for (uint32_t i = 0; i < mca_btl_umr.hca_count; ++i) {
        const char *wrong = mca_btl_umr_hca_check(mca_btl_umr.hcas[i]);

        if (NULL != wrong) {
            MCA_BTL_UMR_LOG(mca_btl_umr.hcas[i], "an invariant does not hold: %s", wrong);
            abort();
        }
    }
}

/** Registered as a progress function: checks periodically. */
static int look(void)
{
    static uint32_t passes;

    if (0 == __atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED) % mca_btl_umr_params.check
        && 0 == OPAL_THREAD_TRYLOCK(&mca_btl_umr.lock)) {
        mca_btl_umr_check();
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    }
    return 0;
}

void mca_btl_umr_check_start(void)
{
    if (0 < mca_btl_umr_params.check) {
        opal_progress_register(look);
    }
}

void mca_btl_umr_check_stop(void)
{
    if (0 < mca_btl_umr_params.check) {
        opal_progress_unregister(look);
    }
}
