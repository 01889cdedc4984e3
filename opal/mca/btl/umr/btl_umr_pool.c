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
 * The pool of mkeys, and the queue pair for their mappings.
 *
 * Mkeys are created in advance (each costs a system call), all with the same number of entries:
 * some at start-up, more by a helper thread before the pool is empty (btl_umr_refill.c), and by a
 * message that finds none. Each role gets half of them, so that messages that wait for their peers
 * (REMOTE) cannot take the keys from the writes that these peers wait for (LOCAL).
 *
 * The queue pair for mappings is connected to itself and has no other use. Its slots hold the
 * longest list.
 */

#include "opal_config.h"

#include <errno.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_pool.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

/* A list needs 16 bytes per entry, less the 4-byte header of inline data. */
#define MCA_BTL_UMR_INLINE_OF(entries)  ((entries) *16 - 4)
#define MCA_BTL_UMR_ENTRIES_OF(inlined) (((inlined) + 4) / 16)

#define MCA_BTL_UMR_MAX_ENTRIES 52

/** Counter of taken mkeys for its role. */
static size_t *mkey_used(const mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    return NULL == mkey->class ? &hca->mkeys.used[mkey->role] : &hca->klm.used[mkey->role];
}

/** Create up to @p count more. @return errno of the failed creation, if all failed */
static int mkeys_grow(mca_btl_umr_hca_t *hca, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && hca->mkeys.count < hca->mkeys.bound.max; ++i) {
        mca_btl_umr_mkey_t *mkey;

        err = mca_btl_umr_mkey_create(hca, hca->mkeys.entries, &mkey);
        if (0 == err) {
            ++hca->mkeys.count;
            mca_btl_umr_mkey_idle(mkey);
        } else {
            if (0 < hca->mkeys.count) {
                mca_btl_umr_mkeys_limit(hca, err);
            }
            return 0 < i ? 0 : err;
        }
    }
    return 0;
}

int mca_btl_umr_mkeys_qp_start(mca_btl_umr_hca_t *hca)
{
    uint32_t inline_bytes = hca->mkeys.inline_bytes;
    int err;

    err = mca_btl_umr_qp_create(hca, MCA_BTL_UMR_QP_UMR, hca->mkeys.cq, MCA_BTL_UMR_MKEYS_SQ_DEPTH,
                                1, &inline_bytes, &hca->mkeys.sq);
    if (0 != err) {
        return err;
    }
    err = mca_btl_umr_qp_connect_self(&hca->device, hca->mkeys.sq.qp);
    if (0 != err) {
        mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
        hca->mkeys.self_error = err;
        return ENOTCONN; /* whatever the error, not one of a device without UMR */
    }
    /* The obtained slot size decides, not the requested one. */
    if (MCA_BTL_UMR_ENTRIES_OF(inline_bytes) < hca->mkeys.entries) {
        hca->mkeys.entries = MCA_BTL_UMR_ENTRIES_OF(inline_bytes);
    }
    mca_btl_umr_klm_reset(hca);
    return 0;
}

int mca_btl_umr_mkeys_qp_anew(mca_btl_umr_hca_t *hca)
{
    uint32_t entries = hca->mkeys.entries;
    int err;

    mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
    err = mca_btl_umr_mkeys_qp_start(hca);
    if (0 == err && hca->mkeys.entries < entries) {
        /* The previous capacity of a key has been published to the caller. */
        mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
        hca->mkeys.entries = entries;
        err = ENOMEM;
    }
    return err;
}

/**
 * Create the queue pair with the longest slots that the device supports. mlx5dv has no query for
 * the maximum, so try in descending order. 0 or errno.
 */
static int mkeys_qp_find(mca_btl_umr_hca_t *hca)
{
    uint32_t wanted = mca_btl_umr_params.max_entries;
    int err = EINVAL;

    wanted = 0 == wanted || MCA_BTL_UMR_MAX_ENTRIES < wanted ? MCA_BTL_UMR_MAX_ENTRIES : wanted;
    if (4 <= hca->device.max_list && wanted > hca->device.max_list) {
        wanted = hca->device.max_list;
    }
    for (uint32_t entries = (wanted + 3) & ~3u; 4 <= entries && EINVAL == err; entries -= 4) {
        hca->mkeys.entries = entries < wanted ? entries : wanted;
        hca->mkeys.inline_bytes = MCA_BTL_UMR_INLINE_OF(entries);
        err = mca_btl_umr_mkeys_qp_start(hca);
    }
    return err;
}

int mca_btl_umr_mkeys_start(mca_btl_umr_hca_t *hca)
{
    int err = 0;

    if (!hca->device.mlx5) {
        mca_btl_umr_refuse("%s is not an mlx5 device", hca->device.name);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (hca->device.no_devx) {
        mca_btl_umr_refuse("%s cannot be opened with DEVX", hca->device.name);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    mca_btl_umr_bound_start(&hca->mkeys.bound, mca_btl_umr_share(mca_btl_umr_params.mkeys_max, 2));
    memset(&hca->mkeys.rebuild, 0, sizeof(hca->mkeys.rebuild));
    hca->mkeys.count = 0;
    memset(hca->mkeys.used, 0, sizeof(hca->mkeys.used));
    hca->device.update_tag = true;
    hca->mkeys.self_error = 0;

    /*
     * Completions of the whole send queue, of the one receive of the self-test, and spare entries
     * to detect unexpected ones.
     */
    hca->mkeys.cq =
        ibv_create_cq(hca->device.context, MCA_BTL_UMR_MKEYS_SQ_DEPTH + 8, NULL, NULL, 0);
    if (NULL == hca->mkeys.cq) {
        mca_btl_umr_refuse("%s: no completion queue: %s", hca->device.name, strerror(errno));
        return OPAL_ERR_NOT_AVAILABLE;
    }

    hca->mkeys.raw = true;
    err = mkeys_qp_find(hca);
    if (EINVAL == err || EOPNOTSUPP == err) {
        hca->mkeys.raw = false;
        err = mkeys_qp_find(hca);
    }
    if (0 != hca->mkeys.self_error) {
        mca_btl_umr_refuse("%s cannot connect to itself: %s", hca->device.name,
                           strerror(hca->mkeys.self_error));
        mca_btl_umr_mkeys_stop(hca);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (0 != err) {
        mca_btl_umr_refuse("%s has no queue pair that maps mkeys (UMR): %s", hca->device.name,
                           strerror(err));
        goto fail;
    }

    err = mkeys_grow(hca, mca_btl_umr_share(mca_btl_umr_params.mkeys, MCA_BTL_UMR_NEST_MKEYS));
    if (0 != err || 2 > hca->mkeys.count) {
        mca_btl_umr_refuse("%s creates no indirect mkeys (DEVX CREATE_MKEY): %s", hca->device.name,
                           0 != err ? strerror(err) : "fewer than two");
        goto fail;
    }
    mca_btl_umr_klm_start(hca);
    return OPAL_SUCCESS;

fail:
    mca_btl_umr_mkeys_stop(hca);
    return 0 == err || ENOMEM == err ? OPAL_ERR_NOT_AVAILABLE : OPAL_ERR_NOT_SUPPORTED;
}

void mca_btl_umr_mkeys_stop(mca_btl_umr_hca_t *hca)
{
    int err;

    mca_btl_umr_refill_stop(hca);
    mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
    opal_list_join(&hca->mkeys.idle, opal_list_get_end(&hca->mkeys.idle), &hca->mkeys.taken);
    mca_btl_umr_mkeys_destroy_idle(hca);
    mca_btl_umr_klm_stop(hca);
    memset(hca->mkeys.used, 0, sizeof(hca->mkeys.used));
    hca->stats.mkeys_used_now = 0;

    if (NULL != hca->mkeys.cq) {
        err = ibv_destroy_cq(hca->mkeys.cq);
        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "the mkeys' completion queue cannot be destroyed: %s",
                            strerror(err));
        }
        hca->mkeys.cq = NULL;
    }
}

/** Create mkeys, up to the limit. @return false: none created */
static bool pool_grow_now(mca_btl_umr_hca_t *hca)
{
    const mca_btl_umr_refill_t *refill = &hca->refill;
    size_t before = hca->mkeys.count;

    if (0 < refill->pending) {
        mca_btl_umr_refill(hca);
    }
    if (before == hca->mkeys.count && hca->mkeys.count + refill->pending >= hca->mkeys.bound.max) {
        mca_btl_umr_refill_halt(hca); /* the limit is reached by pending requests */
    }
    if (before == hca->mkeys.count) {
        /*
         * The helper is late. Create only the mkeys needed now, one beside those pending at the
         * helper.
         */
        (void) mkeys_grow(hca, 0 < refill->low ? 1 : mca_btl_umr_params.mkeys_step);
    }
    return before < hca->mkeys.count;
}

/** A role has used up its half. @return false: no growth possible */
static bool pool_grow(mca_btl_umr_hca_t *hca)
{
    if (pool_grow_now(hca)) {
        return true;
    }
    if (!mca_btl_umr_bound_again(&hca->mkeys.bound) || !pool_grow_now(hca)) {
        return false;
    }
    mca_btl_umr_bound_given(&hca->mkeys.bound);
    return true;
}

/** Take one of the pool, or NULL. */
static mca_btl_umr_mkey_t *pool_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role)
{
    /*
     * Half of the existing mkeys, not of the limit: the device may create fewer. (No mkey is idle,
     * or about to be, if the other role had all remaining ones when the queue pair for mappings
     * failed.)
     */
    while (hca->mkeys.used[role] >= hca->mkeys.count / 2
           || (opal_list_is_empty(&hca->mkeys.idle) && opal_list_is_empty(&hca->mkeys.invalid))) {
        if (!pool_grow(hca)) {
            return NULL;
        }
    }
    return (mca_btl_umr_mkey_t *) opal_list_remove_first(&hca->mkeys.idle);
}

mca_btl_umr_mkey_t *mca_btl_umr_mkey_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries)
{
    mca_btl_umr_mkey_t *mkey = entries <= hca->mkeys.entries
                                   ? pool_take(hca, role)
                                   : mca_btl_umr_klm_take(hca, role, entries);

    if (NULL == mkey) {
        return NULL;
    }
    opal_list_append(&hca->mkeys.taken, &mkey->super);
    mkey->role = role;
    mkey->exposed = false;
    ++*mkey_used(mkey);
    ++hca->stats.mkeys_used_now;
    mca_btl_umr_mkey_retag(mkey);
    if (hca->mkeys.used[role] + hca->refill.low > hca->mkeys.count / 2) {
        mca_btl_umr_refill(hca);
    }
    return mkey;
}

void mca_btl_umr_mkey_give(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    opal_list_remove_item(&hca->mkeys.taken, &mkey->super);
    --*mkey_used(mkey);
    --hca->stats.mkeys_used_now;
    if (hca->failed || mkey->unknown) {
        mca_btl_umr_mkey_destroy(mkey);
    } else if (mkey->exposed) {
        opal_list_append(&hca->mkeys.invalid, &mkey->super);
    } else {
        mkey->last_seq = hca->mkeys.sq.done; /* never posted, or complete */
        mca_btl_umr_mkey_idle(mkey);
    }
}

void mca_btl_umr_mkeys_destroy_idle(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item;

    mca_btl_umr_refill_halt(hca);
    while (NULL != (item = opal_list_remove_first(&hca->mkeys.invalid))
           || NULL != (item = opal_list_remove_first(&hca->mkeys.idle))) {
        mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
    }
    mca_btl_umr_klm_destroy_idle(hca);
}
