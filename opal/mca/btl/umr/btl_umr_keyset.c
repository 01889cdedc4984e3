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
 * Keysets: keys for the windows of a layout.
 *
 * A keyset that needs mkeys passes through three queues: waiting (no room yet for all its mappings
 * in the queue pair), posted, and done (its user must be notified). The queue pair works in order,
 * so the first two are FIFOs.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_keyset.h"
#include "opal/mca/btl/umr/btl_umr_map.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

static void keyset_construct(mca_btl_umr_keyset_object_t *keyset)
{
    memset((char *) keyset + sizeof(opal_list_item_t), 0,
           sizeof(*keyset) - sizeof(opal_list_item_t));
}

static void keyset_destruct(mca_btl_umr_keyset_object_t *keyset)
{
    free(keyset->pub.keys);
    free(keyset->mappings);
    free(keyset->inners);
    free(keyset->bases);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_keyset_object_t, opal_list_item_t, keyset_construct,
                   keyset_destruct);

static void queue_append(mca_btl_umr_keyset_queue_t *queue, mca_btl_umr_keyset_object_t *keyset)
{
    keyset->next = NULL;
    if (NULL == queue->tail) {
        queue->head = keyset;
    } else {
        queue->tail->next = keyset;
    }
    queue->tail = keyset;
}

static mca_btl_umr_keyset_object_t *queue_pop(mca_btl_umr_keyset_queue_t *queue)
{
    mca_btl_umr_keyset_object_t *keyset = queue->head;

    if (NULL != keyset) {
        queue->head = keyset->next;
        if (NULL == queue->head) {
            queue->tail = NULL;
        }
        keyset->next = NULL;
    }
    return keyset;
}

static mca_btl_umr_keyset_object_t *keyset_take(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_keyset_object_t *keyset =
        (mca_btl_umr_keyset_object_t *) opal_list_remove_first(&hca->keysets_idle);

    if (NULL == keyset) {
        keyset = OBJ_NEW(mca_btl_umr_keyset_object_t);
        if (NULL == keyset) {
            return NULL;
        }
    }
    keyset->hca = hca;
    opal_list_append(&hca->keysets, &keyset->pub.super);
    return keyset;
}

static void give_mkeys(mca_btl_umr_mapping_t *mappings, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (NULL != mappings[i].mkey) {
            mca_btl_umr_mkey_give(mappings[i].mkey);
            mappings[i].mkey = NULL;
        }
    }
}

void mca_btl_umr_keyset_recycle(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    if (keyset->cached) {
        mca_btl_umr_keycache_remove(keyset);
    }
    /* The indirect key first, also for the order of the invalidations. */
    give_mkeys(keyset->mappings, keyset->pub.count);
    give_mkeys(keyset->inners, keyset->inner_count);
    if (0 < keyset->base_count) {
        mca_btl_umr_keycache_leave(keyset);
    }
    keyset->inner_count = 0;
    keyset->unnested = false;
    if (NULL != keyset->layout) {
        OBJ_RELEASE(keyset->layout);
        keyset->layout = NULL;
    }
    keyset->pub.count = 0;
    opal_list_remove_item(&hca->keysets, &keyset->pub.super);
    if (MCA_BTL_UMR_IDLE_KEYS < keyset->capacity + keyset->inner_capacity
        || MCA_BTL_UMR_IDLE_MAX <= opal_list_get_size(&hca->keysets_idle)) {
        OBJ_RELEASE(keyset);
    } else {
        opal_list_prepend(&hca->keysets_idle, &keyset->pub.super);
    }
}

/** Room for one more key. */
static bool keyset_reserve(mca_btl_umr_keyset_object_t *keyset)
{
    size_t capacity = 0 == keyset->capacity ? 16 : 2 * keyset->capacity;
    void *keys, *mappings;

    if (keyset->pub.count < keyset->capacity) {
        return true;
    }
    keys = realloc(keyset->pub.keys, capacity * sizeof(*keyset->pub.keys));
    if (NULL == keys) {
        return false;
    }
    keyset->pub.keys = keys;
    mappings = realloc(keyset->mappings, capacity * sizeof(*keyset->mappings));
    if (NULL == mappings) {
        return false;
    }
    keyset->mappings = mappings;
    keyset->capacity = capacity;
    return true;
}

/** Some of their mappings may have been executed. */
static void forget_contents(mca_btl_umr_mapping_t *mappings, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (NULL != mappings[i].mkey) {
            mappings[i].mkey->unknown = true;
        }
    }
}

/** The queue pair for mappings failed: end all keysets that wait for it with an error. */
static void keysets_fail(mca_btl_umr_hca_t *hca)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    mca_btl_umr_keyset_object_t *keyset;

    hca->failed = true;
    /* Posted mappings must not be executed later. (The queue pair may be in ERR already.) */
    (void) ibv_modify_qp(hca->mkeys.sq.qp, &attr, IBV_QP_STATE);
    if (mca_btl_umr_rebuild_failed(&hca->mkeys.rebuild, hca->mkeys.sq.done)) {
        MCA_BTL_UMR_LOG(hca, "mapping has failed %u times in a row: no more mkeys from this HCA",
                        hca->mkeys.rebuild.tries);
    }
    /* No completion is expected any more. */
    hca->mkeys.sq.done = hca->mkeys.sq.posted;
    while (NULL != (keyset = queue_pop(&hca->keysets_posted))
           || NULL != (keyset = queue_pop(&hca->keysets_waiting))) {
        forget_contents(keyset->mappings, keyset->pub.count);
        forget_contents(keyset->inners, keyset->inner_count);
        keyset->status = OPAL_ERROR;
        queue_append(&hca->keysets_done, keyset);
    }
    /*
     * Keys that wait for an invalidation, lost it, or were cached must not stay usable for a peer.
     */
    mca_btl_umr_keycache_empty(hca);
    mca_btl_umr_mkeys_destroy_idle(hca);
    if (1 < mca_btl_umr.hca_count) {
        mca_btl_umr_endpoints_fail(hca); /* other HCAs can map keys */
    }
}

bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca)
{
    int err;

    if (!hca->failed) {
        return true;
    }
    if (!mca_btl_umr_rebuild_due(&hca->mkeys.rebuild)) {
        return false;
    }
    /*
     * Destroying the old queue pair drops its pending requests and completions. Half-executed
     * mappings belong to keysets that end with an error and are destroyed with them; free mkeys
     * were destroyed at the failure.
     */
    err = mca_btl_umr_mkeys_qp_anew(hca);
    if (0 != err) {
        if (mca_btl_umr_rebuild_failed(&hca->mkeys.rebuild, 0)) {
            MCA_BTL_UMR_LOG(hca, "no other queue pair that maps mkeys: %s", strerror(err));
        }
        return false;
    }
    ++hca->stats.maps_rebuilt;
    hca->failed = false;
    return true;
}

/** Pieces of memory in a window, up to @p max from @p position on. @return number of pieces */
static size_t pieces(const mca_btl_umr_keyset_object_t *keyset,
                     const opal_iov_cache_window_t *window, uint64_t *position,
                     struct ibv_sge *sges, size_t max)
{
    opal_iov_cache_iov_t room[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    const opal_iov_cache_iov_t *iovs;
    size_t count;

    iovs = opal_iov_cache_form_view(keyset->layout->form, *position, window->start + window->length,
                                    room, max, &count, position);

    for (size_t k = 0; k < count; ++k) {
        sges[k].addr = (uintptr_t) keyset->name.buffer + (uint64_t) iovs[k].offset;
        sges[k].length = (uint32_t) iovs[k].length;
        sges[k].lkey = mca_btl_umr_memory_find(keyset->memory, (uintptr_t) sges[k].addr)->lkey;
    }
    return count;
}

/** The entries of a mapping's list, up to MCA_BTL_UMR_ENTRIES_AT_ONCE from @p position on. */
static size_t entries_at(const mca_btl_umr_keyset_object_t *keyset,
                         const mca_btl_umr_mapping_t *mapping, uint64_t *position,
                         struct ibv_sge *sges)
{
    const mca_btl_umr_mapping_t *inner = keyset->inners + mapping->inner_first;
    size_t count = 0;

    if (0 == mapping->inner_count) {
        return pieces(keyset, &mapping->window, position, sges, MCA_BTL_UMR_ENTRIES_AT_ONCE);
    }
    for (size_t k = 0; k < mapping->inner_count && MCA_BTL_UMR_ENTRIES_AT_ONCE > count; ++k) {
        if (inner[k].window.start < *position) {
            continue;
        }
        if (NULL == inner[k].mkey) {
            count += pieces(keyset, &inner[k].window, position, &sges[count], 1);
        } else {
            /* Zero-based, as a peer would use it. */
            sges[count].addr = 0;
            sges[count].length = (uint32_t) inner[k].window.length;
            sges[count].lkey = inner[k].mkey->dv->lkey;
            ++count;
            *position = inner[k].window.start + inner[k].window.length;
        }
    }
    return count;
}

/** As keyset_build, with a non-inline list. */
static bool build_long(mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_mapping_t *mapping)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const opal_iov_cache_window_t *window = &mapping->window;
    struct ibv_sge sges[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint64_t position = window->start;
    uint32_t entries = 0;
    struct mlx5_wqe_data_seg *list = mca_btl_umr_long_list(hca, (uint32_t) window->iov_count);

    if (NULL == list) {
        return false;
    }
    while (position < window->start + window->length) {
        size_t count = entries_at(keyset, mapping, &position, sges);

        for (size_t k = 0; k < count; ++k) {
            mca_btl_umr_long_set(&list[entries++], sges[k].addr, sges[k].length, sges[k].lkey);
        }
    }
    keyset->last_seq =
        mca_btl_umr_long_build_map(mapping->mkey, keyset->name.role, entries, window->length, list);
    hca->stats.key_entries += entries;
    return true;
}

/** Build one mapping. @return false: retry later, no memory for its list */
static bool build(mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_mapping_t *mapping,
                  bool last)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    struct ibv_sge sges[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint64_t position = mapping->window.start;
    size_t count;

    if (0 < mapping->stride) {
        uintptr_t addr = (uintptr_t) keyset->name.buffer
                         + (uintptr_t) opal_iov_cache_form_offset(keyset->layout->form, position);

        keyset->last_seq = mca_btl_umr_mkey_build_strided(
            mapping->mkey, keyset->name.role, addr,
            mca_btl_umr_memory_find(keyset->memory, addr)->lkey, mapping->block, mapping->stride,
            (uint32_t) (mapping->window.length / mapping->block), last);
        ++hca->stats.key_entries;
    } else if (hca->mkeys.entries < mapping->window.iov_count) {
        if (!build_long(keyset, mapping)) {
            return false;
        }
    } else {
        count = entries_at(keyset, mapping, &position, sges);
        keyset->last_seq = mca_btl_umr_mkey_build_map(mapping->mkey, keyset->name.role,
                                                      (uint16_t) count, sges, last);
        hca->stats.key_entries += count;
    }
    ++hca->stats.keys_mapped;
    hca->stats.keys_nested += 0 < mapping->inner_count ? 1 : 0;
    return true;
}

/** The first key from @p i on that is not plain; count if there is none. */
static size_t keyset_next_mapped(const mca_btl_umr_keyset_object_t *keyset, size_t i)
{
    while (i < keyset->pub.count && NULL == keyset->mappings[i].mkey) {
        ++i;
    }
    return i;
}

/** The first window below a key from @p i on that is not plain. */
static size_t next_inner(const mca_btl_umr_keyset_object_t *keyset, size_t key, size_t i)
{
    const mca_btl_umr_mapping_t *mapping = &keyset->mappings[key];

    while (i < mapping->inner_count && NULL == keyset->inners[mapping->inner_first + i].mkey) {
        ++i;
    }
    return i;
}

/** Advance to the next key that is not plain, and to the first window below it. */
static void keyset_go_to(mca_btl_umr_keyset_object_t *keyset, size_t key)
{
    keyset->next_post = keyset_next_mapped(keyset, key);
    keyset->next_inner =
        keyset->next_post < keyset->pub.count ? next_inner(keyset, keyset->next_post, 0) : 0;
}

/**
 * Build the next mapping of a keyset: the windows below a key, then the key.
 *
 * @return false: retry later, no memory for its list
 */
static bool keyset_build(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const mca_btl_umr_mapping_t *mapping = &keyset->mappings[keyset->next_post];
    /* The next mapping may wait for memory and be cancelled: this one needs a completion then. */
    bool wanted = 0 < hca->longs.list_count;

    if (keyset->next_inner < mapping->inner_count) {
        if (!build(keyset, &keyset->inners[mapping->inner_first + keyset->next_inner], wanted)) {
            return false;
        }
        keyset->next_inner = next_inner(keyset, keyset->next_post, keyset->next_inner + 1);
        return true;
    }
    wanted = wanted || keyset_next_mapped(keyset, keyset->next_post + 1) == keyset->pub.count;
    if (!build(keyset, mapping, wanted)) {
        return false;
    }
    keyset_go_to(keyset, keyset->next_post + 1);
    return true;
}

void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_mkeys_t *mkeys = &hca->mkeys;
    mca_btl_umr_sq_t *sq = &mkeys->sq;
    mca_btl_umr_keyset_object_t *keyset;
    int err;

    if (hca->failed || 0 == mca_btl_umr_sq_room(sq)
        || (opal_list_is_empty(&mkeys->invalid) && NULL == hca->keysets_waiting.head)) {
        return;
    }

    ibv_wr_start(sq->qpx);
    while (0 < mca_btl_umr_sq_room(sq) && !opal_list_is_empty(&mkeys->invalid)) {
        mca_btl_umr_mkey_t *mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&mkeys->invalid);

        /* Before a long mkey can be destroyed, this work request must be complete. */
        mkey->last_seq = mca_btl_umr_mkey_build_invalidate(mkey, NULL != mkey->class);
        mca_btl_umr_mkey_idle(mkey);
    }
    while (0 < mca_btl_umr_sq_room(sq) && NULL != (keyset = hca->keysets_waiting.head)) {
        if (!keyset_build(keyset)) {
            break; /* a completion releases memory */
        }
        if (keyset->next_post == keyset->pub.count) {
            queue_append(&hca->keysets_posted, queue_pop(&hca->keysets_waiting));
        }
    }
    err = ibv_wr_complete(sq->qpx);
    if (0 != err) {
        /* None of the batch was posted, but the counters include it: the queue pair is lost. */
        ++hca->stats.errors;
        MCA_BTL_UMR_LOG(hca, "mkeys cannot be mapped (UMR): %s", strerror(err));
        keysets_fail(hca);
    }
}

int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca)
{
    struct ibv_wc wc[16];
    int count, events = 0;

    if (NULL == hca->mkeys.cq || hca->mkeys.sq.posted == hca->mkeys.sq.done) {
        return 0;
    }
    count = ibv_poll_cq(hca->mkeys.cq, 16, wc);
    for (int i = 0; i < count && !hca->failed; ++i) {
        if (IBV_WC_SUCCESS == wc[i].status) {
            mca_btl_umr_sq_complete(&hca->mkeys.sq, MCA_BTL_UMR_WR_SEQ(wc[i].wr_id));
            mca_btl_umr_long_destroy_retired(hca);
        } else {
            ++hca->stats.errors;
            MCA_BTL_UMR_LOG(hca, "mapping an mkey (UMR) failed: %s (vendor error 0x%x)",
                            ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
            keysets_fail(hca);
        }
    }
    if (!hca->failed) {
        mca_btl_umr_keyset_object_t *keyset;

        while (NULL != (keyset = hca->keysets_posted.head)
               && mca_btl_umr_sq_is_done(&hca->mkeys.sq, keyset->last_seq)) {
            keyset->status = OPAL_SUCCESS;
            queue_append(&hca->keysets_done, queue_pop(&hca->keysets_posted));
            ++events;
        }
    }
    return events + (0 < count ? count : 0);
}

bool mca_btl_umr_keysets_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done,
                                   void **context, int *status)
{
    mca_btl_umr_keyset_object_t *keyset;

    while (NULL != (keyset = queue_pop(&hca->keysets_done))) {
        if (keyset->abandoned) {
            mca_btl_umr_keyset_recycle(keyset);
            continue;
        }
        if (NULL != keyset->layout) {
            OBJ_RELEASE(keyset->layout);
            keyset->layout = NULL;
        }
        /* Only here: from now on the user may release it. */
        keyset->pub.ready = OPAL_SUCCESS == keyset->status;
        keyset->last_seq = 0;
        *done = keyset->done;
        *context = keyset->context;
        *status = keyset->status;
        keyset->done = NULL;
        return true;
    }
    return false;
}

static inline mca_btl_umr_keyset_name_t name_of(mca_btl_umr_role_t role, void *buffer,
                                                const opal_iov_cache_layout_t *layout,
                                                uint64_t chunk, uint64_t start, uint64_t end,
                                                size_t max_keys)
{
    return (mca_btl_umr_keyset_name_t){.role = role,
                                       .buffer = buffer,
                                       .layout_id = layout->id,
                                       .chunk = chunk,
                                       .start = start,
                                       .end = end,
                                       .max_keys = max_keys};
}

mca_btl_umr_keyset_t *mca_btl_umr_keyset_lookup(mca_btl_umr_endpoint_t *endpoint,
                                                mca_btl_umr_role_t role, void *buffer,
                                                const opal_iov_cache_layout_t *layout,
                                                uint64_t chunk, uint64_t start, uint64_t end,
                                                size_t max_keys)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_keyset_name_t name = name_of(role, buffer, layout, chunk, start, end, max_keys);
    mca_btl_umr_keyset_object_t *keyset;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    keyset = mca_btl_umr_keycache_lookup(hca, &name);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return NULL == keyset ? NULL : &keyset->pub;
}

int mca_btl_umr_keyset_map(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t *memory,
                           uint64_t chunk, uint64_t start, uint64_t end, size_t max_keys,
                           mca_btl_umr_done_fn_t done, void *context, mca_btl_umr_keyset_t **result)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    mca_btl_umr_keyset_name_t name;
    mca_btl_umr_keyset_object_t *keyset;
    opal_iov_cache_window_t window;
    size_t mapped = 0;
    int rc = OPAL_SUCCESS;

    if (MCA_BTL_UMR_ROLE_MAX <= role || NULL == layout || NULL == memory || NULL == result
        || start >= end || end > layout->size || 0 == max_keys || buffer != memory->buffer
        || layout->id != memory->layout_id || end > memory->size
        || (MCA_BTL_UMR_REMOTE == role && MCA_BTL_UMR_REMOTE != memory->role)) {
        return OPAL_ERR_BAD_PARAM;
    }

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (OPAL_UNLIKELY(hca->failed) && !mca_btl_umr_keysets_recover(hca)) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERROR;
    }
    name = name_of(role, buffer, layout, chunk, start, end, max_keys);
    keyset = mca_btl_umr_keycache_take(&name, memory);
    if (NULL != keyset) {
        *result = &keyset->pub;
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_SUCCESS;
    }
    mca_btl_umr_hca_use(hca);
    keyset = keyset_take(hca);
    if (NULL == keyset) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }

    keyset->name = name;
    for (uint64_t position = start; position < end && keyset->pub.count < max_keys;
         position += window.length) {
        mca_btl_umr_mapping_t *mapping;
        mca_btl_umr_key_t *key;

        if (!keyset_reserve(keyset)) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
            break;
        }
        mapping = &keyset->mappings[keyset->pub.count];
        key = &keyset->pub.keys[keyset->pub.count];
        rc = mca_btl_umr_tiers_lower(keyset, layout, memory, position, mapping);
        if (OPAL_SUCCESS != rc) {
            break;
        }
        window = mapping->window;
        key->length = window.length;
        if (NULL == mapping->mkey) {
            const struct ibv_mr *mr;

            key->addr =
                (uintptr_t) buffer + (uint64_t) opal_iov_cache_form_offset(layout->form, position);
            mr = mca_btl_umr_memory_find(memory, (uintptr_t) key->addr);
            key->lkey = mr->lkey;
            key->rkey = mr->rkey;
            ++hca->stats.keys_plain;
        } else {
            key->addr = 0;
            key->lkey = mapping->mkey->dv->lkey;
            key->rkey = mapping->mkey->dv->rkey;
            ++mapped;
            for (size_t k = 0; k < mapping->inner_count; ++k) {
                mapped += NULL != keyset->inners[mapping->inner_first + k].mkey ? 1 : 0;
            }
        }
        ++keyset->pub.count;
    }
    if (hca->failed) {
        /*
         * Posting invalidations to get free mkeys may have failed the HCA. This keyset is in no
         * queue, so only the return value reports it.
         */
        rc = OPAL_ERROR;
    }
    if (0 == keyset->pub.count || hca->failed) {
        mca_btl_umr_keyset_recycle(keyset);
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_SUCCESS == rc ? OPAL_ERROR : rc;
    }

    keyset->pub.start = start;
    keyset->pub.end = keyset->mappings[keyset->pub.count - 1].window.start
                      + keyset->mappings[keyset->pub.count - 1].window.length;
    keyset->pub.ready = 0 == mapped;
    keyset->mapped = mapped;
    hca->stats.keys_used += mapped;
    keyset->pub.id = 0 < mapped ? ++mca_btl_umr.keyset_ids : 0;
    keyset->memory = memory;
    keyset->abandoned = false;
    keyset->status = OPAL_SUCCESS;
    keyset->last_seq = 0;
    keyset_go_to(keyset, 0);
    keyset->done = NULL;
    keyset->context = context;
    if (0 < mapped) {
        keyset->done = done;
        keyset->layout = (opal_iov_cache_layout_t *) layout;
        OBJ_RETAIN(keyset->layout);
        queue_append(&hca->keysets_waiting, keyset);
        mca_btl_umr_keysets_post(hca);
    }
    *result = &keyset->pub;
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return OPAL_SUCCESS;
}

/** Forget the mappings of an abandoned keyset that are not posted. @return true if none was posted
 */
static bool keyset_unpost(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    mca_btl_umr_keyset_object_t *other, *before = NULL;
    mca_btl_umr_keyset_queue_t *queue = &hca->keysets_waiting;

    for (other = queue->head; NULL != other && other != keyset; other = other->next) {
        before = other;
    }
    if (NULL == other) {
        return false;
    }
    if (NULL == before) {
        queue->head = keyset->next;
    } else {
        before->next = keyset->next;
    }
    if (queue->tail == keyset) {
        queue->tail = before;
    }
    keyset->next = NULL;
    if (keyset->next_post == keyset_next_mapped(keyset, 0)
        && keyset->next_inner == next_inner(keyset, keyset->next_post, 0)) {
        return true;
    }
    queue_append(&hca->keysets_posted, keyset);
    return false;
}

/** Release a keyset. Lock held. */
static void keyset_end(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;

    /* A keyset in a queue is recycled when it leaves the queue, without a call of its done. */
    if (!keyset->pub.ready && NULL != keyset->layout && !keyset_unpost(keyset)) {
        keyset->abandoned = true;
    } else {
        mca_btl_umr_keyset_recycle(keyset);
        mca_btl_umr_keysets_post(hca);
    }
}

void mca_btl_umr_keyset_release(mca_btl_umr_keyset_t *pub)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    keyset_end((mca_btl_umr_keyset_object_t *) pub);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

void mca_btl_umr_keyset_keep(mca_btl_umr_keyset_t *pub)
{
    mca_btl_umr_keyset_object_t *keyset = (mca_btl_umr_keyset_object_t *) pub;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    /* A keyset cut short by a lack of keys must not be found for the whole range. */
    if (0 == keyset->mapped || !pub->ready
        || (pub->end != keyset->name.end && pub->count != keyset->name.max_keys)
        || !mca_btl_umr_keycache_put(keyset)) {
        keyset_end(keyset);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

void mca_btl_umr_keysets_stop(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item;

    mca_btl_umr_keycache_empty(hca);
    while (!opal_list_is_empty(&hca->keycache.cached)) {
        mca_btl_umr_keyset_recycle(
            (mca_btl_umr_keyset_object_t *) opal_list_get_first(&hca->keycache.cached));
    }
    memset(&hca->keysets_waiting, 0, sizeof(hca->keysets_waiting));
    memset(&hca->keysets_posted, 0, sizeof(hca->keysets_posted));
    memset(&hca->keysets_done, 0, sizeof(hca->keysets_done));
    while (NULL != (item = opal_list_get_first(&hca->keysets))
           && item != opal_list_get_end(&hca->keysets)) {
        mca_btl_umr_keyset_recycle((mca_btl_umr_keyset_object_t *) item);
    }
    while (NULL != (item = opal_list_remove_first(&hca->keysets_idle))) {
        OBJ_RELEASE(item);
    }
}
