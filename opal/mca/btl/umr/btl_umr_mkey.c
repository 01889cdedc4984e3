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
 * One mkey: creation, destruction, and the work requests that map and invalidate it.
 *
 * Invalidation of old keys. libmlx5 puts the low byte of mlx5dv_mkey::lkey, the tag, into every
 * mapping, so a new tag makes the previous key invalid, but only when the next mapping executes. So
 * the release of a REMOTE mkey posts an invalidation at once. It is on the same queue as the next
 * mapping, which cannot overtake it, and no function waits for it. If the kernel cannot update tags
 * the tag stays 0: an invalidated key is refused, but after the next mapping the old key equals the
 * new one.
 */

#include "opal_config.h"

#include <errno.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_mkey.h"

OBJ_CLASS_INSTANCE(mca_btl_umr_mkey_t, opal_list_item_t, NULL, NULL);

int mca_btl_umr_mkey_make(mca_btl_umr_hca_t *hca, uint32_t entries, bool update_tag,
                          mca_btl_umr_mkey_t **result)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = hca->device.pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
        .max_entries = (uint16_t) entries,
    };
    mca_btl_umr_mkey_t *mkey;

    if (update_tag) {
#if UMRDDT_NO_UPDATE_TAG
        return EOPNOTSUPP; /* the headers of rdma-core are older than 43 */
#else
        attr.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;
#endif
    }
    mkey = OBJ_NEW(mca_btl_umr_mkey_t);
    if (NULL == mkey) {
        return ENOMEM;
    }
    mkey->hca = hca;
    mkey->class = NULL;
    mkey->exposed = false;
    mkey->unknown = false;
    mkey->dv = mlx5dv_create_mkey(&attr);
    if (NULL == mkey->dv) {
        int err = errno;

        OBJ_RELEASE(mkey);
        return 0 != err ? err : EIO;
    }
    *result = mkey;
    return 0;
}

int mca_btl_umr_mkey_create(mca_btl_umr_hca_t *hca, uint32_t entries, mca_btl_umr_mkey_t **result)
{
    int err = mca_btl_umr_mkey_make(hca, entries, hca->device.update_tag, result);

    if (EOPNOTSUPP == err && hca->device.update_tag) {
        hca->device.update_tag = false;
        err = mca_btl_umr_mkey_make(hca, entries, false, result);
    }
    if (0 == err) {
        ++hca->stats.mkeys_created;
        ++hca->stats.mkeys_now;
        hca->stats.mkeys_by_messages += 0 < mca_btl_umr.users ? 1 : 0;
    }
    return err;
}

void mca_btl_umr_mkey_destroy(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    int err = mlx5dv_destroy_mkey(mkey->dv);

    if (0 != err) {
        MCA_BTL_UMR_LOG(hca, "an mkey cannot be destroyed: %s", strerror(err));
    }
    if (NULL == mkey->class) {
        --hca->mkeys.count;
    } else {
        --hca->klm.count;
        hca->stats.mkeys_long_now = hca->klm.count;
    }
    OBJ_RELEASE(mkey);
    --hca->stats.mkeys_now;
}

void mca_btl_umr_mkey_idle(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    opal_list_append(NULL == mkey->class ? &hca->mkeys.idle : &mkey->class->idle, &mkey->super);
}

void mca_btl_umr_mkey_retag(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    uint32_t tag = mkey->dv->lkey & 0xff;

    if (hca->device.update_tag) {
        /* Never 0: that is the tag of an invalidated mkey. */
        tag = 0xff == tag ? 1 : tag + 1;
        mkey->dv->lkey = (mkey->dv->lkey & ~0xffu) | tag;
        mkey->dv->rkey = mkey->dv->lkey;
    }
}

/** The common start of a mapping by libmlx5; the layout follows. @return its number */
static uint32_t build_begin(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role, bool wanted)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    struct mlx5dv_mkey_conf_attr attr = {.conf_flags = 0};
    mca_btl_umr_sq_t *sq = &hca->mkeys.sq;
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
    mca_btl_umr_hca_t *hca = mkey->hca;
    uint32_t seq = build_begin(mkey, role, wanted);

    mlx5dv_wr_set_mkey_layout_list(hca->mkeys.sq.mqpx, count, sges);
    hca->mkeys.sq.qpx->wr_flags = 0;
    return seq;
}

uint32_t mca_btl_umr_mkey_build_strided(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                        uint64_t addr, uint32_t lkey, uint32_t block,
                                        uint32_t stride, uint32_t count, bool wanted)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    struct mlx5dv_mr_interleaved repeated = {
        .addr = addr, .bytes_count = block, .bytes_skip = stride - block, .lkey = lkey};
    uint32_t seq = build_begin(mkey, role, wanted);

    mlx5dv_wr_set_mkey_layout_interleaved(hca->mkeys.sq.mqpx, count, 1, &repeated);
    hca->mkeys.sq.qpx->wr_flags = 0;
    ++hca->stats.keys_strided;
    return seq;
}

uint32_t mca_btl_umr_mkey_build_invalidate(mca_btl_umr_mkey_t *mkey, bool wanted)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    mca_btl_umr_sq_t *sq = &hca->mkeys.sq;
    uint32_t seq;

    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, wanted, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    ibv_wr_local_inv(sq->qpx, mkey->dv->rkey);
    mkey->exposed = false;
    sq->qpx->wr_flags = 0;
    return seq;
}
