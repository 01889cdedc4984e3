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
 * Non-inline UMR lists: mkeys with more entries than fit in a work request ("long" mkeys).
 *
 * Such a list is in memory, and the work request has its address. libmlx5 has no call for it, so
 * this file builds the work request byte by byte and posts it by mlx5dv_wr_raw_wqe:
 *
 *       0  control            opcode UMR, size 9 x 16 bytes, the mkey
 *      16  UMR control        no inline flag; the list's length in 16 bytes; changed fields
 *      64  mkey context       rights, tag, bytes
 *     128  data segment       length, key and address (a multiple of 2 KiB) of the list
 *
 * The lists are in one registered ring. The queue pair works in order, so lists are released in the
 * order of allocation, when the work request that reads them has completed. Every such work request
 * is signalled; otherwise a full ring would wait for ever.
 *
 * Long mkeys are created when first needed, in a few sizes, since each entry takes device memory.
 * They exist until the HCA is closed; at the limit, a free one of another size is retired: it is
 * destroyed when its invalidation is complete. Retired mkeys do not count, so no message waits for
 * them; there are at most as many as the queue pair has work requests. A role gets at most half of
 * the limit. A message that finds none uses several mkeys of the pool instead.
 */

#include "opal_config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_klm.h"

/* Alignment that the device requires for a list in memory. */
#define MCA_BTL_UMR_LIST_ALIGN 2048

/* Entries of the smallest long mkey; each size has four times as many as the previous one. */
#define MCA_BTL_UMR_CLASS_FIRST 256
#define MCA_BTL_UMR_CLASS_STEP  4

/* The length field of a list has 16 bits, and lists are padded to multiples of 4. */
#define MCA_BTL_UMR_LONG_MAX 65532

/* The work request. */
typedef struct long_wqe_t {
    struct mlx5_wqe_ctrl_seg ctrl;
    struct mlx5_wqe_umr_ctrl_seg umr;
    struct mlx5_wqe_mkey_context_seg mkey;
    struct mlx5_wqe_data_seg list;
} long_wqe_t;

_Static_assert(16 == sizeof(struct mlx5_wqe_ctrl_seg), "control segment");
_Static_assert(48 == sizeof(struct mlx5_wqe_umr_ctrl_seg), "UMR control segment");
_Static_assert(64 == sizeof(struct mlx5_wqe_mkey_context_seg), "mkey context segment");
_Static_assert(16 == sizeof(struct mlx5_wqe_data_seg), "data segment, and entry of a list");
_Static_assert(144 == sizeof(long_wqe_t), "no holes");

void mca_btl_umr_klm_construct(mca_btl_umr_hca_t *hca)
{
    for (size_t i = 0; i < MCA_BTL_UMR_CLASSES; ++i) {
        OBJ_CONSTRUCT(&hca->klm.classes[i].idle, opal_list_t);
    }
    OBJ_CONSTRUCT(&hca->klm.retired, opal_list_t);
}

void mca_btl_umr_klm_destruct(mca_btl_umr_hca_t *hca)
{
    for (size_t i = 0; i < MCA_BTL_UMR_CLASSES; ++i) {
        OBJ_DESTRUCT(&hca->klm.classes[i].idle);
    }
    OBJ_DESTRUCT(&hca->klm.retired);
}

/** Record why non-inline lists are disabled. */
static void refuse(mca_btl_umr_hca_t *hca, const char *what, const char *why)
{
    mca_btl_umr_tier_t *tier = &hca->caps.tiers[MCA_BTL_UMR_LONG];

    tier->usable = false;
    snprintf(tier->why, sizeof(tier->why), "%s%s%s", what, '\0' == why[0] ? "" : ": ", why);
}

/* ------------------------------------------------------------------------------------------- *
 * The ring of lists
 * ------------------------------------------------------------------------------------------- */

static int ring_start(mca_btl_umr_hca_t *hca, size_t size)
{
    void *memory = NULL;
    int err = posix_memalign(&memory, 4096, size);

    if (0 != err) {
        return err;
    }
    memset(memory, 0, size);
    errno = 0;
    hca->klm.mr = ibv_reg_mr(hca->device.pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (NULL == hca->klm.mr) {
        err = 0 != errno ? errno : EIO;
        free(memory);
        return err;
    }
    hca->klm.memory = memory;
    hca->klm.size = size;
    mca_btl_umr_klm_reset(hca);
    return 0;
}

static void ring_stop(mca_btl_umr_hca_t *hca)
{
    if (NULL != hca->klm.mr) {
        int err = ibv_dereg_mr(hca->klm.mr);

        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "the memory for lists cannot be deregistered: %s", strerror(err));
        }
        hca->klm.mr = NULL;
    }
    free(hca->klm.memory);
    hca->klm.memory = NULL;
}

void mca_btl_umr_klm_reset(mca_btl_umr_hca_t *hca)
{
    hca->klm.head = hca->klm.tail = 0;
    hca->klm.first = hca->klm.list_count = 0;
}

/** Release the lists that the device has read. */
static void ring_collect(mca_btl_umr_hca_t *hca)
{
    while (0 < hca->klm.list_count
           && mca_btl_umr_sq_is_done(&hca->mkeys.sq, hca->klm.lists[hca->klm.first].seq)) {
        hca->klm.tail = hca->klm.lists[hca->klm.first].end;
        hca->klm.first = (hca->klm.first + 1) % MCA_BTL_UMR_MKEYS_SQ_DEPTH;
        --hca->klm.list_count;
    }
    if (0 == hca->klm.list_count) {
        hca->klm.head = hca->klm.tail = 0;
    }
}

static size_t list_bytes(uint32_t count)
{
    return ((size_t) count * sizeof(struct mlx5_wqe_data_seg) + MCA_BTL_UMR_LIST_ALIGN - 1)
           & ~(size_t) (MCA_BTL_UMR_LIST_ALIGN - 1);
}

struct mlx5_wqe_data_seg *mca_btl_umr_klm_list(mca_btl_umr_hca_t *hca, uint32_t count)
{
    size_t bytes = list_bytes(count);

    ring_collect(hca);
    if (0 < hca->klm.list_count && hca->klm.head <= hca->klm.tail) {
        /* The used part wraps around; if the ends are equal the whole ring is used. */
        if (hca->klm.tail - hca->klm.head < bytes) {
            return NULL;
        }
    } else if (hca->klm.size - hca->klm.head < bytes) {
        if (0 == hca->klm.list_count || hca->klm.tail < bytes) {
            return NULL;
        }
        hca->klm.head = 0;
    }
    return (struct mlx5_wqe_data_seg *) (void *) (hca->klm.memory + hca->klm.head);
}

/** Work request @p seq reads the list that was allocated last. */
static void ring_commit(mca_btl_umr_hca_t *hca, uint32_t count, uint32_t seq)
{
    size_t position = (hca->klm.first + hca->klm.list_count) % MCA_BTL_UMR_MKEYS_SQ_DEPTH;

    hca->klm.head += list_bytes(count);
    hca->klm.lists[position].seq = seq;
    hca->klm.lists[position].end = hca->klm.head;
    ++hca->klm.list_count;
}

/* ------------------------------------------------------------------------------------------- *
 * The mkeys
 * ------------------------------------------------------------------------------------------- */

void mca_btl_umr_klm_start(mca_btl_umr_hca_t *hca)
{
    uint32_t wanted = mca_btl_umr_params.long_entries, limit = MCA_BTL_UMR_LONG_MAX;
    uint32_t lists = (uint32_t) (mca_btl_umr_params.list_bytes / sizeof(struct mlx5_wqe_data_seg));
    int err;

    hca->klm.entries = 0;
    hca->klm.class_count = 0;
    hca->klm.count = 0;
    mca_btl_umr_bound_start(&hca->klm.bound, mca_btl_umr_share(mca_btl_umr_params.long_mkeys, 2));
    memset(hca->klm.used, 0, sizeof(hca->klm.used));
    hca->caps.tiers[MCA_BTL_UMR_LONG].usable = false;

    limit = hca->device.max_list < limit ? hca->device.max_list : limit;
    limit = lists < limit ? lists : limit;
    wanted = (wanted < limit ? wanted : limit) & ~3u;
    if (0 == mca_btl_umr_params.long_entries) {
        refuse(hca, "btl_umr_long_entries is 0", "");
    } else if (!mca_btl_umr_params.selftest) {
        refuse(hca, "not tested, since btl_umr_selftest is 0", "");
    } else if (0 != hca->device.caps_error) {
        refuse(hca, "the device does not report its limits (QUERY_HCA_CAP)",
               strerror(hca->device.caps_error));
    } else if (!hca->mkeys.raw) {
        refuse(hca, "no queue pair accepts raw work requests (RAW_WQE)", "");
    } else if (wanted <= hca->mkeys.entries) {
        refuse(hca, "non-inline lists are not longer than inline ones", "");
    } else if (0 != (err = ring_start(hca, mca_btl_umr_params.list_bytes))) {
        refuse(hca, "no registered memory for lists (btl_umr_list_bytes)", strerror(err));
    } else {
        hca->klm.entries = wanted;
        for (uint32_t entries = MCA_BTL_UMR_CLASS_FIRST; entries < wanted;
             entries *= MCA_BTL_UMR_CLASS_STEP) {
            hca->klm.classes[hca->klm.class_count++].entries = entries;
        }
        hca->klm.classes[hca->klm.class_count++].entries = wanted;
        hca->caps.tiers[MCA_BTL_UMR_LONG].usable = true;
        hca->caps.tiers[MCA_BTL_UMR_LONG].why[0] = '\0';
    }
}

void mca_btl_umr_klm_stop(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_klm_destroy_idle(hca);
    hca->klm.entries = 0;
    ring_stop(hca);
}

void mca_btl_umr_klm_destroy_idle(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item;

    while (NULL != (item = opal_list_remove_first(&hca->klm.retired))) {
        mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
    }
    for (size_t i = 0; i < hca->klm.class_count; ++i) {
        while (NULL != (item = opal_list_remove_first(&hca->klm.classes[i].idle))) {
            mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
        }
    }
}

void mca_btl_umr_klm_destroy_retired(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_mkey_t *mkey, *next;

    OPAL_LIST_FOREACH_SAFE (mkey, next, &hca->klm.retired, mca_btl_umr_mkey_t) {
        if (mca_btl_umr_sq_is_done(&hca->mkeys.sq, mkey->last_seq)) {
            opal_list_remove_item(&hca->klm.retired, &mkey->super);
            mca_btl_umr_mkey_destroy(mkey);
        }
    }
}

/** Number of long mkeys that are not retired. */
static size_t long_count(mca_btl_umr_hca_t *hca)
{
    return hca->klm.count - opal_list_get_size(&hca->klm.retired);
}

/** Retire a free one. @return false: none */
static bool long_make_room(mca_btl_umr_hca_t *hca)
{
    for (size_t i = 0; i < hca->klm.class_count; ++i) {
        opal_list_item_t *item = opal_list_remove_first(&hca->klm.classes[i].idle);

        if (NULL != item) {
            opal_list_append(&hca->klm.retired, item);
            mca_btl_umr_klm_destroy_retired(hca);
            return true;
        }
    }
    return false;
}

static mca_btl_umr_mkey_t *long_create(mca_btl_umr_hca_t *hca, mca_btl_umr_class_t *class)
{
    mca_btl_umr_mkey_t *mkey = NULL;
    int err;

    if (long_count(hca) >= hca->klm.bound.max && !long_make_room(hca)
        && !mca_btl_umr_bound_again(&hca->klm.bound)) {
        return NULL;
    }
    err = mca_btl_umr_mkey_create(hca, class->entries, &mkey);
    if (0 != err) {
        /* Not retried soon: each attempt is a system call in vain. */
        MCA_BTL_UMR_LOG(hca, "the device creates no more than %zu mkeys for non-inline lists: %s",
                        long_count(hca), strerror(err));
        mca_btl_umr_bound_refused(&hca->klm.bound, long_count(hca));
        return NULL;
    }
    mca_btl_umr_bound_given(&hca->klm.bound);
    mkey->class = class;
    ++hca->klm.count;
    hca->stats.mkeys_long_now = hca->klm.count;
    return mkey;
}

mca_btl_umr_mkey_t *mca_btl_umr_klm_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                         uint32_t entries)
{
    mca_btl_umr_class_t *class = hca->klm.classes;
    mca_btl_umr_mkey_t *mkey;

    if (entries > hca->klm.entries
        || (hca->klm.used[role] >= hca->klm.bound.max / 2
            && !mca_btl_umr_bound_again(&hca->klm.bound))) {
        return NULL;
    }
    while (class->entries < entries) {
        ++class;
    }
    mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&class->idle);
    if (NULL == mkey) {
        mkey = long_create(hca, class);
    }
    for (++class; NULL == mkey && class < hca->klm.classes + hca->klm.class_count; ++class) {
        mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&class->idle);
    }
    return mkey;
}

uint32_t mca_btl_umr_klm_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                   uint32_t count, uint64_t bytes, struct mlx5_wqe_data_seg *list)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    static const uint64_t changed =
        MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
    uint32_t padded = (count + 3) & ~3u, seq;
    unsigned int rights = mca_btl_umr_mkey_rights(role);
    mca_btl_umr_sq_t *sq = &hca->mkeys.sq;
    long_wqe_t wqe;

    memset(list + count, 0, (padded - count) * sizeof(*list));
    /* Always signalled: completions release the ring. */
    (void) mca_btl_umr_sq_next(sq, true, &seq);

    memset(&wqe, 0, sizeof(wqe));
    /* libmlx5 sets the same fence on the request after its own UMRs. */
    mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_UMR, 0, sq->qp->qp_num,
                        MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE,
                        sizeof(wqe) / 16, 0, htobe32(mkey->dv->lkey));
    wqe.umr.klm_octowords = htobe16((uint16_t) padded);
    wqe.umr.mkey_mask = htobe64(changed);
    wqe.mkey.access_flags = (uint8_t) ((0 != (rights & IBV_ACCESS_LOCAL_WRITE)
                                            ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE
                                            : 0)
                                       | (0 != (rights & IBV_ACCESS_REMOTE_WRITE)
                                              ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE
                                              : 0));
    wqe.mkey.qpn_mkey = htobe32(0xffffff00u | (mkey->dv->lkey & 0xff));
    wqe.mkey.len = htobe64(bytes);
    mlx5dv_set_data_seg(&wqe.list, padded * (uint32_t) sizeof(*list), hca->klm.mr->lkey,
                        (uintptr_t) list);

    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    mlx5dv_wr_raw_wqe(sq->mqpx, &wqe);
    mkey->exposed = MCA_BTL_UMR_REMOTE == role;
    ring_commit(hca, count, seq);
    ++hca->stats.keys_long;
    return seq;
}
