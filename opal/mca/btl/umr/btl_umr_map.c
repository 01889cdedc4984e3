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
 * Keysets for the users of the HCA: found in the key cache, or mapped (btl_umr_post.c); released,
 * or kept for the next message.
 */

#include "opal_config.h"

#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_map.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

bool mca_btl_umr_keysets_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done,
                                   void **context, int *status)
{
    mca_btl_umr_keyset_object_t *keyset;

    while (NULL != (keyset = mca_btl_umr_keyset_queue_pop(&hca->keysets_done))) {
        if (keyset->abandoned) {
            mca_btl_umr_keycache_recycle(keyset);
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

/**
 * The key of one window, plain or of an mkey.
 *
 * @return number of mkeys that need a mapping
 */
static size_t key_of(const mca_btl_umr_keyset_object_t *keyset,
                     const opal_iov_cache_layout_t *layout, const mca_btl_umr_memory_t *memory,
                     const mca_btl_umr_mapping_t *mapping, mca_btl_umr_key_t *key)
{
    size_t mapped = 1;

    key->length = mapping->window.length;
    if (NULL == mapping->mkey) {
        const struct ibv_mr *mr;

        key->addr = (uintptr_t) keyset->name.buffer
                    + (uint64_t) opal_iov_cache_form_offset(layout->form, mapping->window.start);
        mr = mca_btl_umr_memory_find(memory, (uintptr_t) key->addr);
        key->lkey = mr->lkey;
        key->rkey = mr->rkey;
        ++keyset->hca->stats.keys_plain;
        return 0;
    }
    key->addr = 0;
    key->lkey = mapping->mkey->dv->lkey;
    key->rkey = mapping->mkey->dv->rkey;
    for (size_t k = 0; k < mapping->inner_count; ++k) {
        mapped += NULL != keyset->inners[mapping->inner_first + k].mkey ? 1 : 0;
    }
    return mapped;
}

/**
 * Take the mkeys of a keyset and fill in its keys, as many as its name allows and are available.
 *
 * @param[in,out] mapped  number of mkeys that need a mapping
 *
 * @return OPAL_SUCCESS, or the reason for which it has no further key
 */
static int make_keys(mca_btl_umr_keyset_object_t *keyset, const opal_iov_cache_layout_t *layout,
                     const mca_btl_umr_memory_t *memory, size_t *mapped)
{
    uint64_t position = keyset->name.start;

    while (position < keyset->name.end && keyset->pub.count < keyset->name.max_keys) {
        mca_btl_umr_mapping_t *mapping;
        int rc;

        if (!mca_btl_umr_keyset_reserve(keyset)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        mapping = &keyset->mappings[keyset->pub.count];
        rc = mca_btl_umr_tiers_lower(keyset, layout, memory, position, mapping);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        *mapped += key_of(keyset, layout, memory, mapping, &keyset->pub.keys[keyset->pub.count]);
        position += mapping->window.length;
        ++keyset->pub.count;
    }
    return OPAL_SUCCESS;
}

/** A new keyset has its keys: publish it to its user, and post its mappings. Lock held. */
static void keyset_begin(mca_btl_umr_keyset_object_t *keyset, const opal_iov_cache_layout_t *layout,
                         mca_btl_umr_memory_t *memory, size_t mapped, mca_btl_umr_done_fn_t done,
                         void *context)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const opal_iov_cache_window_t *last = &keyset->mappings[keyset->pub.count - 1].window;

    keyset->pub.start = keyset->name.start;
    keyset->pub.end = last->start + last->length;
    keyset->pub.ready = 0 == mapped;
    keyset->mapped = mapped;
    hca->stats.keys_used += mapped;
    keyset->pub.id = 0 < mapped ? ++mca_btl_umr.keyset_ids : 0;
    keyset->memory = memory;
    keyset->abandoned = false;
    keyset->status = OPAL_SUCCESS;
    keyset->last_seq = 0;
    mca_btl_umr_keyset_prepare(keyset);
    keyset->done = NULL;
    keyset->context = context;
    if (0 < mapped) {
        keyset->done = done;
        keyset->layout = (opal_iov_cache_layout_t *) layout;
        OBJ_RETAIN(keyset->layout);
        mca_btl_umr_keyset_post(keyset);
    }
}

int mca_btl_umr_keyset_map(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t *memory,
                           uint64_t chunk, uint64_t start, uint64_t end, size_t max_keys,
                           mca_btl_umr_done_fn_t done, void *context, mca_btl_umr_keyset_t **result)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    mca_btl_umr_keyset_name_t name;
    mca_btl_umr_keyset_object_t *keyset;
    size_t mapped = 0;
    int rc;

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
    keyset = mca_btl_umr_keyset_take(hca);
    if (NULL == keyset) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }

    keyset->name = name;
    rc = make_keys(keyset, layout, memory, &mapped);
    if (hca->failed) {
        /*
         * Posting invalidations to get free mkeys may have failed the HCA. This keyset is in no
         * queue, so only the return value reports it.
         */
        rc = OPAL_ERROR;
    }
    if (0 == keyset->pub.count || hca->failed) {
        mca_btl_umr_keycache_recycle(keyset);
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_SUCCESS == rc ? OPAL_ERROR : rc;
    }

    keyset_begin(keyset, layout, memory, mapped, done, context);
    *result = &keyset->pub;
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return OPAL_SUCCESS;
}

/** Release a keyset. Lock held. */
static void keyset_end(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;

    /* A keyset in a queue is recycled when it leaves the queue, without a call of its done. */
    if (!keyset->pub.ready && NULL != keyset->layout && !mca_btl_umr_keyset_withdraw(keyset)) {
        keyset->abandoned = true;
    } else {
        mca_btl_umr_keycache_recycle(keyset);
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
        mca_btl_umr_keycache_recycle(
            (mca_btl_umr_keyset_object_t *) opal_list_get_first(&hca->keycache.cached));
    }
    memset(&hca->keysets_waiting, 0, sizeof(hca->keysets_waiting));
    memset(&hca->keysets_posted, 0, sizeof(hca->keysets_posted));
    memset(&hca->keysets_done, 0, sizeof(hca->keysets_done));
    while (NULL != (item = opal_list_get_first(&hca->keysets))
           && item != opal_list_get_end(&hca->keysets)) {
        mca_btl_umr_keycache_recycle((mca_btl_umr_keyset_object_t *) item);
    }
    while (NULL != (item = opal_list_remove_first(&hca->keysets_idle))) {
        OBJ_RELEASE(item);
    }
}
