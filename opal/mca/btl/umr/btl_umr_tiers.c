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
 * Capability tiers: capacity of one key, and the tier of each window of a layout.
 *
 * Strided keys: a part of a layout with equal blocks at equal distances is one entry, with any
 * number of blocks. The device has 16 bits for the block and for the distance, and libmlx5
 * truncates larger values silently. So such values are not passed to it.
 *
 * Indirect keys: several keys, each a list or strided, are combined by one key over them: a list of
 * mkeys with address 0. It costs one mkey and one mapping more, and saves all writes but one at
 * each use. The mkeys count for the role, and all are taken before the first mapping is posted. If
 * not all are available, the window is as short as one mkey allows, so no keyset waits while it
 * holds mkeys.
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

void mca_btl_umr_strided_start(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_tier_t *tier = &hca->caps.tiers[MCA_BTL_UMR_STRIDED];
    const char *why = !mca_btl_umr_params.strided    ? "btl_umr_strided is 0"
                      : !mca_btl_umr_params.selftest ? "not tested, since btl_umr_selftest is 0"
                      : MCA_BTL_UMR_STRIDED_ENTRIES > hca->mkeys.entries
                          ? "mkeys have too few entries"
                          : "";

    tier->usable = '\0' == why[0];
    snprintf(tier->why, sizeof(tier->why), "%s", why);
}

/** True if one entry can hold blocks of @p length bytes, @p stride bytes apart. */
static bool fits(uint64_t length, int64_t stride, uint64_t count)
{
    return 1 < count && UINT32_MAX >= count && MCA_BTL_UMR_STRIDE_MAX >= stride && 0 < stride
           && (uint64_t) stride > length;
}

/**
 * The window from @p start on that one strided mapping holds.
 *
 * @param[in]  memory   NULL: any registration
 * @param[out] mapping  window, block and stride, if there is one
 *
 * @return false: the layout is not strided there
 */
static bool strided_window(mca_btl_umr_hca_t *hca, const opal_iov_cache_layout_t *layout,
                           const void *buffer, const mca_btl_umr_memory_t *memory, uint64_t chunk,
                           uint64_t start, uint64_t end, mca_btl_umr_mapping_t *mapping)
{
    uint64_t most = hca->window.max_bytes;
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;

    if (!hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable) {
        return false;
    }
    if (0 < chunk && chunk - start % chunk < most) {
        most = chunk - start % chunk;
    }
    end = end - start > most ? start + most : end;
    opal_iov_cache_cursor_init(&cursor, layout->form, start, end);
    if (!opal_iov_cache_cursor_next(&cursor, &run) || !fits(run.length, run.stride, run.count)) {
        return false;
    }
    if (NULL != memory) {
        /* One entry refers to one key. */
        uintptr_t first = (uintptr_t) buffer + (uintptr_t) run.offset;

        if (mca_btl_umr_memory_find(memory, first)
            != mca_btl_umr_memory_find(
                memory, first + (uintptr_t) run.stride * (uintptr_t) (run.count - 1))) {
            return false;
        }
    }
    memset(mapping, 0, sizeof(*mapping));
    mapping->window.start = start;
    mapping->window.length = run.length * run.count;
    mapping->window.iov_count = run.count;
    mapping->block = (uint32_t) run.length;
    mapping->stride = (uint32_t) run.stride;
    return true;
}

/* A list of few pieces is no longer than a repeated entry. */
#define FEW_PIECES 4

/**
 * The longest window that one mkey holds, over memory only.
 *
 * @param[in]  max_iovs  maximum pieces of a list
 * @param[out] entries   entries that the mkey needs
 *
 * @return OPAL_SUCCESS or OPAL_ERR_BAD_PARAM
 */
static int window(mca_btl_umr_hca_t *hca, const opal_iov_cache_layout_t *layout, const void *buffer,
                  const mca_btl_umr_memory_t *memory, uint64_t chunk, uint64_t start, uint64_t end,
                  size_t max_iovs, mca_btl_umr_mapping_t *mapping, uint32_t *entries)
{
    opal_iov_cache_limits_t limits = {max_iovs, hca->window.max_bytes};
    mca_btl_umr_mapping_t strided;
    int rc;

    memset(mapping, 0, sizeof(*mapping));
    rc = opal_iov_cache_window(layout, &limits, chunk, start, end, &mapping->window);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    *entries = (uint32_t) mapping->window.iov_count;
    if (1 < *entries && strided_window(hca, layout, buffer, memory, chunk, start, end, &strided)
        && strided.window.length >= mapping->window.length + (FEW_PIECES < *entries ? 0 : 1)) {
        *mapping = strided;
        *entries = MCA_BTL_UMR_STRIDED_ENTRIES;
    }
    return OPAL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- *
 * Capacity of one key
 * ------------------------------------------------------------------------------------------- */

void mca_btl_umr_nested_start(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_tier_t *tier = &hca->caps.tiers[MCA_BTL_UMR_NESTED];
    const char *why = !mca_btl_umr_params.nested     ? "btl_umr_nested is 0"
                      : !mca_btl_umr_params.selftest ? "not tested, since btl_umr_selftest is 0"
                      : 0 != hca->device.caps_error
                          ? "the device does not report its limits (QUERY_HCA_CAP)"
                      : 2 > hca->device.max_depth ? "the device does not report two levels of mkeys"
                      : MCA_BTL_UMR_NEST_LEAST > hca->mkeys.entries ? "mkeys have too few entries"
                      : MCA_BTL_UMR_NEST_MKEYS > hca->mkeys.count
                          ? "too few mkeys (btl_umr_mkeys, btl_umr_mkeys_max)"
                          : "";

    tier->usable = '\0' == why[0];
    snprintf(tier->why, sizeof(tier->why), "%s", why);
}

void mca_btl_umr_limits_start(mca_btl_umr_hca_t *hca)
{
    opal_iov_cache_limits_t *limits = &hca->caps.key_limits;
    size_t nest = MCA_BTL_UMR_NEST_MAX, by_lists, by_long;

    hca->window.max_iovs = !hca->caps.umr.usable  ? 1
                           : 0 < hca->klm.entries ? hca->klm.entries
                                                  : hca->mkeys.entries;
    hca->window.max_bytes = mca_btl_umr_params.max_key_bytes;
    *limits = hca->window;
    hca->nest = 0;
    if (!hca->caps.tiers[MCA_BTL_UMR_NESTED].usable) {
        return;
    }
    /* Half of the mkeys of a role, so that two fit at a time. */
    nest = hca->mkeys.bound.max / 4 < nest ? hca->mkeys.bound.max / 4 : nest;
    nest = hca->window.max_iovs < nest ? hca->window.max_iovs : nest;
    hca->nest = (uint32_t) nest;
    by_lists = nest * hca->mkeys.entries;
    by_long = (hca->klm.bound.max / 2 < nest ? hca->klm.bound.max / 2 : nest) * hca->klm.entries;
    limits->max_iovs = by_lists > limits->max_iovs ? by_lists : limits->max_iovs;
    limits->max_iovs = by_long > limits->max_iovs ? by_long : limits->max_iovs;
}

/** True if one indirect key holds the whole layout, over strided keys within the limit. */
static bool nest_holds(mca_btl_umr_hca_t *hca, const opal_iov_cache_layout_t *layout)
{
    mca_btl_umr_mapping_t mapping;
    uint64_t position = 0;
    uint32_t entries;

    if (!hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable) {
        return false; /* lists are in caps.key_limits */
    }
    for (uint32_t i = 0; i < hca->nest && position < layout->size; ++i) {
        if (OPAL_SUCCESS
            != window(hca, layout, NULL, NULL, 0, position, layout->size, hca->window.max_iovs,
                      &mapping, &entries)) {
            return false;
        }
        position += mapping.window.length;
    }
    return position == layout->size;
}

/** As the op, for one HCA. */
static void limits_of(mca_btl_umr_hca_t *hca, const opal_iov_cache_layout_t *layout,
                      opal_iov_cache_limits_t *limits)
{
    const opal_iov_cache_form_t *form = layout->form;

    *limits = hca->caps.key_limits;
    if (hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable && 1 == form->term_count
        && OPAL_IOV_CACHE_DENSE == form->terms[0].kind
        && fits(form->terms[0].size, form->terms[0].stride, form->terms[0].count)) {
        limits->max_iovs = SIZE_MAX;
        /* Whole blocks, so that the next chunk starts with one. */
        limits->max_bytes -= limits->max_bytes % form->terms[0].size;
    } else if (layout->iov_count > limits->max_iovs && layout->size <= limits->max_bytes
               && nest_holds(hca, layout)) {
        limits->max_iovs = SIZE_MAX;
    }
}

void mca_btl_umr_key_limits(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits)
{
    limits_of(mca_btl_umr_first(), layout, limits);
    for (uint32_t i = 1; i < mca_btl_umr.hca_count; ++i) {
        opal_iov_cache_limits_t other;

        limits_of(mca_btl_umr.hcas[i], layout, &other);
        limits->max_iovs = other.max_iovs < limits->max_iovs ? other.max_iovs : limits->max_iovs;
        limits->max_bytes =
            other.max_bytes < limits->max_bytes ? other.max_bytes : limits->max_bytes;
    }
}

/* ------------------------------------------------------------------------------------------- *
 * Windows and mkeys
 * ------------------------------------------------------------------------------------------- */

/**
 * Take an mkey for a role; evicts cached keysets if necessary.
 *
 * @return NULL: none available
 */
static mca_btl_umr_mkey_t *mkey_for(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                    uint32_t entries)
{
    mca_btl_umr_mkey_t *mkey = mca_btl_umr_mkey_take(hca, role, entries);

    while (NULL == mkey && mca_btl_umr_keycache_evict(hca, role, entries)) {
        mca_btl_umr_keysets_post(hca); /* invalidations, or a REMOTE mkey is not idle */
        mkey = mca_btl_umr_mkey_take(hca, role, entries);
    }
    return mkey;
}

/** As mca_btl_umr_tiers_lower, over memory only and up to @p end at most. */
static int take_one(const mca_btl_umr_keyset_object_t *keyset,
                    const opal_iov_cache_layout_t *layout, const mca_btl_umr_memory_t *memory,
                    uint64_t start, uint64_t end, mca_btl_umr_mapping_t *mapping)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const mca_btl_umr_keyset_name_t *name = &keyset->name;
    size_t max_iovs = hca->window.max_iovs;
    uint32_t entries;

    do {
        int rc = window(hca, layout, name->buffer, memory, name->chunk, start, end, max_iovs,
                        mapping, &entries);

        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        if (1 == mapping->window.iov_count
            && (MCA_BTL_UMR_LOCAL == name->role || mca_btl_umr_params.plain_keys)) {
            return OPAL_SUCCESS;
        }
        mapping->mkey = mkey_for(hca, name->role, entries);
        if (NULL != mapping->mkey) {
            return OPAL_SUCCESS;
        }
        /* None with so many entries: take one of the pool, for a part of the window. */
        max_iovs = hca->mkeys.entries;
    } while (hca->mkeys.entries < entries);
    return 0 == hca->mkeys.used[name->role] && opal_list_is_empty(&hca->mkeys.invalid)
               ? OPAL_ERROR
               : OPAL_ERR_OUT_OF_RESOURCE;
}

/** Room for the windows below one more key. */
static bool reserve_inners(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    size_t capacity = keyset->inner_count + hca->nest;
    mca_btl_umr_mapping_t *inners;

    if (capacity <= keyset->inner_capacity) {
        return true;
    }
    inners = realloc(keyset->inners, capacity * sizeof(*inners));
    if (NULL == inners) {
        return false;
    }
    keyset->inners = inners;
    keyset->inner_capacity = capacity;
    return true;
}

/**
 * After a window that ends early: add the following windows, and a key over all of them.
 *
 * @param[in,out] mapping  the first one; then the one over all. Unchanged if there are too few keys
 */
static void nest(mca_btl_umr_keyset_object_t *keyset, const opal_iov_cache_layout_t *layout,
                 const mca_btl_umr_memory_t *memory, mca_btl_umr_mapping_t *mapping)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    uint64_t start = mapping->window.start, position = start + mapping->window.length;
    uint64_t chunk = keyset->name.chunk, end = keyset->name.end, most = hca->window.max_bytes;
    mca_btl_umr_mapping_t *inner;
    mca_btl_umr_mkey_t *mkey = NULL;
    uint32_t count = 1;

    most = 0 < chunk && chunk - start % chunk < most ? chunk - start % chunk : most;
    end = end - start > most ? start + most : end;
    if (position == end || 2 > hca->nest || keyset->unnested || !reserve_inners(keyset)) {
        return;
    }
    inner = keyset->inners + keyset->inner_count;
    inner[0] = *mapping;
    while (position < end && count < hca->nest
           && OPAL_SUCCESS == take_one(keyset, layout, memory, position, end, &inner[count])) {
        position += inner[count++].window.length;
    }
    if (position == end || count == hca->nest) {
        mkey = mkey_for(hca, keyset->name.role, count);
    }
    if (NULL == mkey) {
        while (1 < count--) {
            if (NULL != inner[count].mkey) {
                mca_btl_umr_mkey_give(inner[count].mkey);
            }
        }
        keyset->unnested = true; /* once is enough: it may have evicted cached keysets */
        return;
    }
    memset(mapping, 0, sizeof(*mapping));
    mapping->mkey = mkey;
    mapping->window = (opal_iov_cache_window_t){start, position - start, count};
    mapping->inner_first = keyset->inner_count;
    mapping->inner_count = count;
    keyset->inner_count += count;
}

int mca_btl_umr_tiers_lower(mca_btl_umr_keyset_object_t *keyset,
                            const opal_iov_cache_layout_t *layout,
                            const mca_btl_umr_memory_t *memory, uint64_t start,
                            mca_btl_umr_mapping_t *mapping)
{
    int rc = take_one(keyset, layout, memory, start, keyset->name.end, mapping);

    if (OPAL_SUCCESS == rc) {
        nest(keyset, layout, memory, mapping);
    }
    return rc;
}
