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
 * The pool of mkeys, and the work requests that map and invalidate them.
 *
 * Mkeys are made in advance (each costs a system call), all with the same number of entries: some
 * at start-up, more by a helper thread before these run out (btl_umr_refill.c), and by a message
 * that finds none all the same. What may exist is split in two halves, one a role, so that messages
 * that wait for their peers (REMOTE) can never take the keys from the writes that these peers wait
 * for (LOCAL).
 *
 * The queue pair that maps them is connected to itself and does nothing else: its slots are as wide
 * as the longest list.
 *
 * How an old key stops working. libmlx5 puts the low byte of mlx5dv_mkey::lkey, its tag, into every
 * mapping, so changing that byte before a mapping makes the keys of the one before wrong. But that
 * comes only with the next mapping. So a REMOTE mkey that is released is invalidated at once: an
 * invalidation is posted to the queue that also carries the next mapping, behind which it can not
 * fall back. Nobody waits for it. Where the kernel can not update tags, the tag stays 0: an
 * invalidated key is still refused, but once it is mapped again the old key is the new one.
 */

#include "opal_config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"

/* One list needs 16 bytes an entry, less the 4 of the header that inline data would have. */
#define MCA_BTL_UMR_INLINE_OF(entries)  ((entries) *16 - 4)
#define MCA_BTL_UMR_ENTRIES_OF(inlined) (((inlined) + 4) / 16)

#define MCA_BTL_UMR_MAX_ENTRIES 52

OBJ_CLASS_INSTANCE(mca_btl_umr_mkey_t, opal_list_item_t, NULL, NULL);

int mca_btl_umr_mkey_make(mca_btl_umr_card_t *card, uint32_t entries, bool update_tag,
                          mca_btl_umr_mkey_t **result)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = card->device.pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
        .max_entries = (uint16_t) entries,
    };
    mca_btl_umr_mkey_t *mkey = OBJ_NEW(mca_btl_umr_mkey_t);

    if (NULL == mkey) {
        return ENOMEM;
    }
    mkey->card = card;
    mkey->class = NULL;
    mkey->exposed = false;
    mkey->unknown = false;
    if (update_tag) {
        attr.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;
    }
    mkey->dv = mlx5dv_create_mkey(&attr);
    if (NULL == mkey->dv) {
        int err = errno;

        OBJ_RELEASE(mkey);
        return 0 != err ? err : EIO;
    }
    *result = mkey;
    return 0;
}

int mca_btl_umr_mkey_create(mca_btl_umr_card_t *card, uint32_t entries, mca_btl_umr_mkey_t **result)
{
    int err = mca_btl_umr_mkey_make(card, entries, card->device.update_tag, result);

    if (EOPNOTSUPP == err && card->device.update_tag) {
        card->device.update_tag = false;
        err = mca_btl_umr_mkey_make(card, entries, false, result);
    }
    if (0 == err) {
        ++card->stats.mkeys_created;
        ++card->stats.mkeys_now;
        card->stats.mkeys_by_messages += 0 < mca_btl_umr.users ? 1 : 0;
    }
    return err;
}

void mca_btl_umr_mkey_destroy(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    int err = mlx5dv_destroy_mkey(mkey->dv);

    if (0 != err) {
        MCA_BTL_UMR_LOG(card, "an mkey cannot be destroyed: %s", strerror(err));
    }
    if (NULL == mkey->class) {
        --card->mkeys.count;
    } else {
        --card->longs.count;
        card->stats.mkeys_long_now = card->longs.count;
    }
    OBJ_RELEASE(mkey);
    --card->stats.mkeys_now;
}

void mca_btl_umr_mkey_idle(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    opal_list_append(NULL == mkey->class ? &card->mkeys.idle : &mkey->class->idle, &mkey->super);
}

/** Where a role counts the mkeys that it has taken. */
static size_t *mkey_used(const mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    return NULL == mkey->class ? &card->mkeys.used[mkey->role] : &card->longs.used[mkey->role];
}

void mca_btl_umr_bound_start(mca_btl_umr_bound_t *bound, size_t most)
{
    bound->max = bound->most = most;
    bound->lacked = bound->patience = 0;
}

void mca_btl_umr_bound_refused(mca_btl_umr_bound_t *bound, size_t count)
{
    if (0 == bound->patience) {
        bound->patience = MCA_BTL_UMR_PATIENCE;
    } else if (UINT_MAX / 2 >= bound->patience) {
        bound->patience *= 2;
    }
    bound->lacked = 0;
    bound->max = count;
}

bool mca_btl_umr_bound_again(mca_btl_umr_bound_t *bound)
{
    if (bound->max >= bound->most || ++bound->lacked < bound->patience) {
        return false;
    }
    bound->max = bound->most;
    return true;
}

void mca_btl_umr_mkeys_limit(mca_btl_umr_card_t *card, int err)
{
    /* What was asked for counts as well, and may tell the same. */
    mca_btl_umr_refill_halt(card);
    if (card->mkeys.count < card->mkeys.bound.max) {
        /* Live with what there is, still half and half. */
        MCA_BTL_UMR_LOG(card, "%zu mkeys is all the device gives: %s", card->mkeys.count,
                        strerror(err));
        mca_btl_umr_bound_refused(&card->mkeys.bound, card->mkeys.count);
    }
}

/** Make up to @p count more. @return errno of the one that failed, if all did */
static int mkeys_grow(mca_btl_umr_card_t *card, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && card->mkeys.count < card->mkeys.bound.max; ++i) {
        mca_btl_umr_mkey_t *mkey;

        err = mca_btl_umr_mkey_create(card, card->mkeys.entries, &mkey);
        if (0 == err) {
            ++card->mkeys.count;
            mca_btl_umr_mkey_idle(mkey);
        } else {
            if (0 < card->mkeys.count) {
                mca_btl_umr_mkeys_limit(card, err);
            }
            return 0 < i ? 0 : err;
        }
    }
    return 0;
}

int mca_btl_umr_mkeys_qp_start(mca_btl_umr_card_t *card)
{
    mca_btl_umr_device_t *device = &card->device;
    mca_btl_umr_route_t route;
    uint32_t inline_bytes = card->mkeys.inline_bytes;
    int err;

    err = mca_btl_umr_qp_create(card, MCA_BTL_UMR_QP_UMR, card->mkeys.cq,
                                MCA_BTL_UMR_MKEYS_SQ_DEPTH, 1, &inline_bytes, &card->mkeys.sq);
    if (0 != err) {
        return err;
    }
    mca_btl_umr_qp_route_self(device, &route);
    err =
        mca_btl_umr_qp_connect(device, card->mkeys.sq.qp, &route, card->mkeys.sq.qp->qp_num, 0, 0);
    if (0 != err) {
        mca_btl_umr_qp_destroy(card, &card->mkeys.sq);
        return err;
    }
    /* What the slots take in the end decides, not what was asked for. */
    if (MCA_BTL_UMR_ENTRIES_OF(inline_bytes) < card->mkeys.entries) {
        card->mkeys.entries = MCA_BTL_UMR_ENTRIES_OF(inline_bytes);
    }
    mca_btl_umr_long_reset(card);
    return 0;
}

int mca_btl_umr_mkeys_qp_anew(mca_btl_umr_card_t *card)
{
    uint32_t entries = card->mkeys.entries;
    int err;

    mca_btl_umr_qp_destroy(card, &card->mkeys.sq);
    err = mca_btl_umr_mkeys_qp_start(card);
    if (0 == err && card->mkeys.entries < entries) {
        /* What a key holds was told to others. */
        mca_btl_umr_qp_destroy(card, &card->mkeys.sq);
        card->mkeys.entries = entries;
        err = ENOMEM;
    }
    return err;
}

/**
 * The queue pair with the longest slots that the device takes: mlx5dv has no query that tells how
 * long a descriptor may be, so ask for the longest and come down. 0 or errno.
 */
static int mkeys_qp_find(mca_btl_umr_card_t *card)
{
    uint32_t wanted = mca_btl_umr_params.max_entries;
    int err = EINVAL;

    wanted = 0 == wanted || MCA_BTL_UMR_MAX_ENTRIES < wanted ? MCA_BTL_UMR_MAX_ENTRIES : wanted;
    if (4 <= card->device.max_list && wanted > card->device.max_list) {
        wanted = card->device.max_list;
    }
    for (uint32_t entries = (wanted + 3) & ~3u; 4 <= entries && EINVAL == err; entries -= 4) {
        card->mkeys.entries = entries < wanted ? entries : wanted;
        card->mkeys.inline_bytes = MCA_BTL_UMR_INLINE_OF(entries);
        err = mca_btl_umr_mkeys_qp_start(card);
    }
    return err;
}

int mca_btl_umr_mkeys_start(mca_btl_umr_card_t *card)
{
    int err = 0;

    if (!card->device.mlx5) {
        mca_btl_umr_refuse("%s is not an mlx5 device", card->device.name);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    mca_btl_umr_bound_start(&card->mkeys.bound, mca_btl_umr_share(mca_btl_umr_params.mkeys_max, 2));
    memset(&card->mkeys.rebuild, 0, sizeof(card->mkeys.rebuild));
    card->mkeys.count = 0;
    memset(card->mkeys.used, 0, sizeof(card->mkeys.used));
    card->device.update_tag = true;

    /* Completions: of everything in the send queue, the one receive of the self-test, and room to
     * see that no more come. */
    card->mkeys.cq =
        ibv_create_cq(card->device.context, MCA_BTL_UMR_MKEYS_SQ_DEPTH + 8, NULL, NULL, 0);
    if (NULL == card->mkeys.cq) {
        mca_btl_umr_refuse("%s: no completion queue: %s", card->device.name, strerror(errno));
        return OPAL_ERR_NOT_AVAILABLE;
    }

    card->mkeys.raw = true;
    err = mkeys_qp_find(card);
    if (EINVAL == err || EOPNOTSUPP == err) {
        card->mkeys.raw = false;
        err = mkeys_qp_find(card);
    }
    if (0 != err) {
        mca_btl_umr_refuse("%s has no queue pair that maps mkeys (UMR): %s", card->device.name,
                           strerror(err));
        goto fail;
    }

    err = mkeys_grow(card, mca_btl_umr_share(mca_btl_umr_params.mkeys, MCA_BTL_UMR_NEST_MKEYS));
    if (0 != err || 2 > card->mkeys.count) {
        mca_btl_umr_refuse("%s makes no indirect mkeys (DEVX CREATE_MKEY): %s", card->device.name,
                           0 != err ? strerror(err) : "fewer than two");
        goto fail;
    }
    mca_btl_umr_long_start(card);
    mca_btl_umr_strided_start(card);
    mca_btl_umr_nested_start(card);
    return OPAL_SUCCESS;

fail:
    mca_btl_umr_mkeys_stop(card);
    return 0 == err || ENOMEM == err ? OPAL_ERR_NOT_AVAILABLE : OPAL_ERR_NOT_SUPPORTED;
}

void mca_btl_umr_mkeys_stop(mca_btl_umr_card_t *card)
{
    int err;

    mca_btl_umr_refill_stop(card);
    mca_btl_umr_qp_destroy(card, &card->mkeys.sq);
    opal_list_join(&card->mkeys.idle, opal_list_get_end(&card->mkeys.idle), &card->mkeys.taken);
    mca_btl_umr_mkeys_destroy_idle(card);
    mca_btl_umr_long_stop(card);
    memset(card->mkeys.used, 0, sizeof(card->mkeys.used));
    card->stats.mkeys_used_now = 0;

    if (NULL != card->mkeys.cq) {
        err = ibv_destroy_cq(card->mkeys.cq);
        if (0 != err) {
            MCA_BTL_UMR_LOG(card, "the mkeys' completion queue cannot be destroyed: %s",
                            strerror(err));
        }
        card->mkeys.cq = NULL;
    }
}

void mca_btl_umr_mkey_retag(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    uint32_t tag = mkey->dv->lkey & 0xff;

    if (card->device.update_tag) {
        /* Never 0: that is the tag of an invalidated mkey. */
        tag = 0xff == tag ? 1 : tag + 1;
        mkey->dv->lkey = (mkey->dv->lkey & ~0xffu) | tag;
        mkey->dv->rkey = mkey->dv->lkey;
    }
}

/** More mkeys, up to the bound. @return false: none came */
static bool pool_grow_now(mca_btl_umr_card_t *card)
{
    const mca_btl_umr_refill_t *refill = &card->refill;
    size_t before = card->mkeys.count;

    if (0 < refill->pending) {
        mca_btl_umr_refill(card);
    }
    if (before == card->mkeys.count
        && card->mkeys.count + refill->pending >= card->mkeys.bound.max) {
        mca_btl_umr_refill_halt(card); /* all that may exist was asked for */
    }
    if (before == card->mkeys.count) {
        /* The helper is late. Only what is needed now: the rest comes from there, and one more
         * goes beside what was asked for there. */
        (void) mkeys_grow(card, 0 < refill->low ? 1 : mca_btl_umr_params.mkeys_step);
    }
    return before < card->mkeys.count;
}

/** A role's half is used up. @return false: there is no more to be had */
static bool pool_grow(mca_btl_umr_card_t *card)
{
    if (pool_grow_now(card)) {
        return true;
    }
    if (!mca_btl_umr_bound_again(&card->mkeys.bound) || !pool_grow_now(card)) {
        return false;
    }
    mca_btl_umr_bound_given(&card->mkeys.bound);
    return true;
}

/** One of the pool, or NULL. */
static mca_btl_umr_mkey_t *pool_take(mca_btl_umr_card_t *card, mca_btl_umr_role_t role)
{
    /* Half of what there is, not of what there may be: the device may give less than that. (None is
     * idle, or on its way to be, where the other role's were all that was left when the queue pair
     * of mappings failed.) */
    while (card->mkeys.used[role] >= card->mkeys.count / 2
           || (opal_list_is_empty(&card->mkeys.idle) && opal_list_is_empty(&card->mkeys.invalid))) {
        if (!pool_grow(card)) {
            return NULL;
        }
    }
    return (mca_btl_umr_mkey_t *) opal_list_remove_first(&card->mkeys.idle);
}

mca_btl_umr_mkey_t *mca_btl_umr_mkey_take(mca_btl_umr_card_t *card, mca_btl_umr_role_t role,
                                          uint32_t entries)
{
    mca_btl_umr_mkey_t *mkey = entries <= card->mkeys.entries
                                   ? pool_take(card, role)
                                   : mca_btl_umr_long_take(card, role, entries);

    if (NULL == mkey) {
        return NULL;
    }
    opal_list_append(&card->mkeys.taken, &mkey->super);
    mkey->role = role;
    mkey->exposed = false;
    ++*mkey_used(mkey);
    ++card->stats.mkeys_used_now;
    mca_btl_umr_mkey_retag(mkey);
    if (card->mkeys.used[role] + card->refill.low > card->mkeys.count / 2) {
        mca_btl_umr_refill(card);
    }
    return mkey;
}

void mca_btl_umr_mkey_give(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    opal_list_remove_item(&card->mkeys.taken, &mkey->super);
    --*mkey_used(mkey);
    --card->stats.mkeys_used_now;
    if (card->failed || mkey->unknown) {
        mca_btl_umr_mkey_destroy(mkey);
    } else if (mkey->exposed) {
        opal_list_append(&card->mkeys.invalid, &mkey->super);
    } else {
        mca_btl_umr_mkey_idle(mkey);
    }
}

void mca_btl_umr_mkeys_destroy_idle(mca_btl_umr_card_t *card)
{
    opal_list_item_t *item;

    mca_btl_umr_refill_halt(card);
    while (NULL != (item = opal_list_remove_first(&card->mkeys.invalid))
           || NULL != (item = opal_list_remove_first(&card->mkeys.idle))) {
        mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
    }
    mca_btl_umr_long_destroy_idle(card);
}

/** What a mapping by libmlx5 begins with; the layout follows. @return its number */
static uint32_t build_begin(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role, bool wanted)
{
    mca_btl_umr_card_t *card = mkey->card;
    struct mlx5dv_mkey_conf_attr attr = {.conf_flags = 0};
    mca_btl_umr_sq_t *sq = &card->mkeys.sq;
    uint32_t seq;

    sq->qpx->wr_flags = IBV_SEND_INLINE | mca_btl_umr_sq_next(sq, wanted, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    mlx5dv_wr_mkey_configure(sq->mqpx, mkey->dv, 2, &attr);
    mlx5dv_wr_set_mkey_access_flags(sq->mqpx, mca_btl_umr_mkey_rights(role));
    mkey->exposed = MCA_BTL_UMR_REMOTE == role;
    return seq;
}

uint32_t mca_btl_umr_mkey_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint16_t count, struct ibv_sge *sges, bool wanted)
{
    mca_btl_umr_card_t *card = mkey->card;
    uint32_t seq = build_begin(mkey, role, wanted);

    mlx5dv_wr_set_mkey_layout_list(card->mkeys.sq.mqpx, count, sges);
    card->mkeys.sq.qpx->wr_flags = 0;
    return seq;
}

uint32_t mca_btl_umr_mkey_build_strided(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                        uint64_t addr, uint32_t lkey, uint32_t block,
                                        uint32_t stride, uint32_t count, bool wanted)
{
    mca_btl_umr_card_t *card = mkey->card;
    struct mlx5dv_mr_interleaved repeated = {
        .addr = addr, .bytes_count = block, .bytes_skip = stride - block, .lkey = lkey};
    uint32_t seq = build_begin(mkey, role, wanted);

    mlx5dv_wr_set_mkey_layout_interleaved(card->mkeys.sq.mqpx, count, 1, &repeated);
    card->mkeys.sq.qpx->wr_flags = 0;
    ++card->stats.keys_strided;
    return seq;
}

uint32_t mca_btl_umr_mkey_build_invalidate(mca_btl_umr_mkey_t *mkey, bool wanted)
{
    mca_btl_umr_card_t *card = mkey->card;
    mca_btl_umr_sq_t *sq = &card->mkeys.sq;
    uint32_t seq;

    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, wanted, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    ibv_wr_local_inv(sq->qpx, mkey->dv->rkey);
    mkey->exposed = false;
    sq->qpx->wr_flags = 0;
    return seq;
}
