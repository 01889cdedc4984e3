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
 * Long lists: mkeys with more entries than a work request has room for.
 *
 * Such a list lies in memory, and the work request says where. libmlx5 has no call that makes one,
 * so it is made here, byte by byte, and handed over as it is (mlx5dv_wr_raw_wqe):
 *
 *       0  control            opcode UMR, size 9 x 16 bytes, the mkey
 *      16  UMR control        no inline flag; the list's length in 16 bytes; what changes
 *      64  mkey context       rights, tag, bytes
 *     128  data segment       length, key and address (a multiple of 2 KiB) of the list
 *
 * The memory of the lists is one registered ring: the queue pair works in order, so lists are given
 * back in the order in which they were taken, when the work request that reads them is seen
 * complete. Every such work request is signalled, or a full ring would wait for ever.
 *
 * Long mkeys are made when they are first needed, in a few sizes, since the device has memory for
 * each entry. They are kept until the end; where all that may exist do, one of another size that
 * nobody uses makes room. A role gets at most half of what may exist; a message that finds none is
 * mapped by several mkeys of the pool instead, so nobody ever waits for a long one.
 */

#include "opal_config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"

/* What the device asks of a list in memory. */
#define MCA_BTL_UMR_LIST_ALIGN 2048

/* Entries of the smallest long mkey; each size has four times as many as the one before. */
#define MCA_BTL_UMR_CLASS_FIRST 256
#define MCA_BTL_UMR_CLASS_STEP  4

/* The field that tells the length of a list has 16 bits, and lists are padded to multiples of 4. */
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

void mca_btl_umr_long_construct(mca_btl_umr_card_t *card)
{
    for (size_t i = 0; i < MCA_BTL_UMR_CLASSES; ++i) {
        OBJ_CONSTRUCT(&card->longs.classes[i].idle, opal_list_t);
    }
}

void mca_btl_umr_long_destruct(mca_btl_umr_card_t *card)
{
    for (size_t i = 0; i < MCA_BTL_UMR_CLASSES; ++i) {
        OBJ_DESTRUCT(&card->longs.classes[i].idle);
    }
}

/** Why there are no long lists. */
static void refuse(mca_btl_umr_card_t *card, const char *what, const char *why)
{
    mca_btl_umr_rung_t *rung = &card->caps.rungs[MCA_BTL_UMR_LONG];

    rung->usable = false;
    snprintf(rung->why, sizeof(rung->why), "%s%s%s", what, '\0' == why[0] ? "" : ": ", why);
}

/* ------------------------------------------------------------------------------------------- *
 * The ring of lists
 * ------------------------------------------------------------------------------------------- */

static int ring_start(mca_btl_umr_card_t *card, size_t size)
{
    void *memory = NULL;
    int err = posix_memalign(&memory, 4096, size);

    if (0 != err) {
        return err;
    }
    memset(memory, 0, size);
    errno = 0;
    card->longs.mr = ibv_reg_mr(card->device.pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (NULL == card->longs.mr) {
        err = 0 != errno ? errno : EIO;
        free(memory);
        return err;
    }
    card->longs.memory = memory;
    card->longs.size = size;
    mca_btl_umr_long_reset(card);
    return 0;
}

static void ring_stop(mca_btl_umr_card_t *card)
{
    if (NULL != card->longs.mr) {
        int err = ibv_dereg_mr(card->longs.mr);

        if (0 != err) {
            MCA_BTL_UMR_LOG(card, "the memory for lists cannot be deregistered: %s", strerror(err));
        }
        card->longs.mr = NULL;
    }
    free(card->longs.memory);
    card->longs.memory = NULL;
}

void mca_btl_umr_long_reset(mca_btl_umr_card_t *card)
{
    card->longs.head = card->longs.tail = 0;
    card->longs.first = card->longs.list_count = 0;
}

/** Give back the lists that the device has read. */
static void ring_collect(mca_btl_umr_card_t *card)
{
    while (0 < card->longs.list_count
           && mca_btl_umr_sq_is_done(&card->mkeys.sq, card->longs.lists[card->longs.first].seq)) {
        card->longs.tail = card->longs.lists[card->longs.first].end;
        card->longs.first = (card->longs.first + 1) % MCA_BTL_UMR_MKEYS_SQ_DEPTH;
        --card->longs.list_count;
    }
    if (0 == card->longs.list_count) {
        card->longs.head = card->longs.tail = 0;
    }
}

static size_t list_bytes(uint32_t count)
{
    return ((size_t) count * sizeof(struct mlx5_wqe_data_seg) + MCA_BTL_UMR_LIST_ALIGN - 1)
           & ~(size_t) (MCA_BTL_UMR_LIST_ALIGN - 1);
}

struct mlx5_wqe_data_seg *mca_btl_umr_long_list(mca_btl_umr_card_t *card, uint32_t count)
{
    size_t bytes = list_bytes(count);

    ring_collect(card);
    if (0 < card->longs.list_count && card->longs.head <= card->longs.tail) {
        /* What is in use goes round the end; with equal ends it is all of the ring. */
        if (card->longs.tail - card->longs.head < bytes) {
            return NULL;
        }
    } else if (card->longs.size - card->longs.head < bytes) {
        if (0 == card->longs.list_count || card->longs.tail < bytes) {
            return NULL;
        }
        card->longs.head = 0;
    }
    return (struct mlx5_wqe_data_seg *) (void *) (card->longs.memory + card->longs.head);
}

/** The list that was asked for last is read by work request @p seq. */
static void ring_commit(mca_btl_umr_card_t *card, uint32_t count, uint32_t seq)
{
    size_t place = (card->longs.first + card->longs.list_count) % MCA_BTL_UMR_MKEYS_SQ_DEPTH;

    card->longs.head += list_bytes(count);
    card->longs.lists[place].seq = seq;
    card->longs.lists[place].end = card->longs.head;
    ++card->longs.list_count;
}

/* ------------------------------------------------------------------------------------------- *
 * The mkeys
 * ------------------------------------------------------------------------------------------- */

void mca_btl_umr_long_start(mca_btl_umr_card_t *card)
{
    uint32_t wanted = mca_btl_umr_params.long_entries, limit = MCA_BTL_UMR_LONG_MAX;
    uint32_t lists = (uint32_t) (mca_btl_umr_params.list_bytes / sizeof(struct mlx5_wqe_data_seg));
    int err;

    card->longs.entries = 0;
    card->longs.class_count = 0;
    card->longs.count = 0;
    mca_btl_umr_bound_start(&card->longs.bound,
                            mca_btl_umr_share(mca_btl_umr_params.long_mkeys, 2));
    memset(card->longs.used, 0, sizeof(card->longs.used));
    card->caps.rungs[MCA_BTL_UMR_LONG].usable = false;

    limit = card->device.max_list < limit ? card->device.max_list : limit;
    limit = lists < limit ? lists : limit;
    wanted = (wanted < limit ? wanted : limit) & ~3u;
    if (0 == mca_btl_umr_params.long_entries) {
        refuse(card, "btl_umr_long_entries is 0", "");
    } else if (!mca_btl_umr_params.selftest) {
        refuse(card, "not proven, since btl_umr_selftest is 0", "");
    } else if (0 != card->device.caps_error) {
        refuse(card, "the device does not tell its limits (QUERY_HCA_CAP)",
               strerror(card->device.caps_error));
    } else if (!card->mkeys.raw) {
        refuse(card, "no queue pair takes work requests made by hand (RAW_WQE)", "");
    } else if (wanted <= card->mkeys.entries) {
        refuse(card, "lists in memory may not be longer than those in work requests", "");
    } else if (0 != (err = ring_start(card, mca_btl_umr_params.list_bytes))) {
        refuse(card, "no registered memory for lists (btl_umr_list_bytes)", strerror(err));
    } else {
        card->longs.entries = wanted;
        for (uint32_t entries = MCA_BTL_UMR_CLASS_FIRST; entries < wanted;
             entries *= MCA_BTL_UMR_CLASS_STEP) {
            card->longs.classes[card->longs.class_count++].entries = entries;
        }
        card->longs.classes[card->longs.class_count++].entries = wanted;
        card->caps.rungs[MCA_BTL_UMR_LONG].usable = true;
        card->caps.rungs[MCA_BTL_UMR_LONG].why[0] = '\0';
    }
}

void mca_btl_umr_long_stop(mca_btl_umr_card_t *card)
{
    mca_btl_umr_long_destroy_idle(card);
    card->longs.entries = 0;
    ring_stop(card);
}

void mca_btl_umr_long_destroy_idle(mca_btl_umr_card_t *card)
{
    for (size_t i = 0; i < card->longs.class_count; ++i) {
        opal_list_item_t *item;

        while (NULL != (item = opal_list_remove_first(&card->longs.classes[i].idle))) {
            mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
        }
    }
}

/** Destroy one that nobody has taken. @return false: there is none */
static bool long_make_room(mca_btl_umr_card_t *card)
{
    for (size_t i = 0; i < card->longs.class_count; ++i) {
        opal_list_item_t *item = opal_list_remove_first(&card->longs.classes[i].idle);

        if (NULL != item) {
            mca_btl_umr_mkey_destroy((mca_btl_umr_mkey_t *) item);
            return true;
        }
    }
    return false;
}

static mca_btl_umr_mkey_t *long_create(mca_btl_umr_card_t *card, mca_btl_umr_class_t *class)
{
    mca_btl_umr_mkey_t *mkey = NULL;
    int err;

    if (card->longs.count >= card->longs.bound.max && !long_make_room(card)
        && !mca_btl_umr_bound_again(&card->longs.bound)) {
        return NULL;
    }
    err = mca_btl_umr_mkey_create(card, class->entries, &mkey);
    if (0 != err) {
        /* Not asked for again soon: each time would be a system call in vain. */
        MCA_BTL_UMR_LOG(card, "%zu mkeys for long lists is all the device gives: %s",
                        card->longs.count, strerror(err));
        mca_btl_umr_bound_refused(&card->longs.bound, card->longs.count);
        return NULL;
    }
    mca_btl_umr_bound_given(&card->longs.bound);
    mkey->class = class;
    ++card->longs.count;
    card->stats.mkeys_long_now = card->longs.count;
    return mkey;
}

mca_btl_umr_mkey_t *mca_btl_umr_long_take(mca_btl_umr_card_t *card, mca_btl_umr_role_t role,
                                          uint32_t entries)
{
    mca_btl_umr_class_t *class = card->longs.classes;
    mca_btl_umr_mkey_t *mkey;

    if (entries > card->longs.entries
        || (card->longs.used[role] >= card->longs.bound.max / 2
            && !mca_btl_umr_bound_again(&card->longs.bound))) {
        return NULL;
    }
    while (class->entries < entries) {
        ++class;
    }
    mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&class->idle);
    if (NULL == mkey) {
        mkey = long_create(card, class);
    }
    for (++class; NULL == mkey && class < card->longs.classes + card->longs.class_count; ++class) {
        mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&class->idle);
    }
    return mkey;
}

uint32_t mca_btl_umr_long_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint32_t count, uint64_t bytes, struct mlx5_wqe_data_seg *list)
{
    mca_btl_umr_card_t *card = mkey->card;
    static const uint64_t changed =
        MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE
        | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
    uint32_t padded = (count + 3) & ~3u, seq;
    unsigned int rights = mca_btl_umr_mkey_rights(role);
    mca_btl_umr_sq_t *sq = &card->mkeys.sq;
    long_wqe_t wqe;

    memset(list + count, 0, (padded - count) * sizeof(*list));
    /* Always signalled: the ring lives by the completions. */
    (void) mca_btl_umr_sq_next(sq, true, &seq);

    memset(&wqe, 0, sizeof(wqe));
    /* The fence is what libmlx5 gives to whatever follows a UMR of its own. */
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
    mlx5dv_set_data_seg(&wqe.list, padded * (uint32_t) sizeof(*list), card->longs.mr->lkey,
                        (uintptr_t) list);

    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    mlx5dv_wr_raw_wqe(sq->mqpx, &wqe);
    mkey->exposed = MCA_BTL_UMR_REMOTE == role;
    ring_commit(card, count, seq);
    ++card->stats.keys_long;
    return seq;
}
