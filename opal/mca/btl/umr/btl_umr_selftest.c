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
 * The self-test: tries features for which the device has no query, before the HCA is used.
 *
 *  1. Map two mkeys: one of full length over pieces of a source that is registered for reading
 * only; one with an entry less (lists are padded to multiples of four) over pieces of a target, in
 * the opposite order and with another distance.
 *  2. Send one RDMA write with immediate data from one to the other, over the queue pair for
 * mappings, which is connected to itself.
 *  3. Compare every byte of the target, including those between the pieces.
 *  4. Invalidate the target's mkey and repeat the write, which must be refused.
 *  5. Map the target's mkey again with another tag and repeat the write with the old key, which
 * must be refused.
 *
 * An HCA that fails is not used. Then steps 1 to 3 for each capability tier (btl_umr_hca.h); a tier
 * that fails is disabled. Indirect mkeys come last, over each of the tiers that passed, with steps
 * 4 and 5 for an mkey below another.
 *
 * A refusal breaks the queue pair, so it is replaced afterwards.
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_selftest.h"

#define FILLER       0xa5
#define FIN          0x554d5231u
#define WAIT_SECONDS 10
#define RECEIVE_ID   MCA_BTL_UMR_WR_RECEIVE

/** The pieces that one mkey maps; the last one has the remaining bytes. */
typedef struct pieces_t {
    size_t room;    /**< of the buffer */
    size_t first;   /**< offset of the first piece */
    ptrdiff_t step; /**< from piece to piece */
    uint32_t bytes; /**< of each but the last */
    uint32_t count;
    bool strided; /**< one repeated entry */
} pieces_t;

/** Mkeys below an indirect one: a list, a strided one, a non-inline list. */
#define INNERS 3

/** One transfer. */
typedef struct selftest_t {
    uint32_t bytes; /**< total */
    uint32_t skip;  /**< of those, not written */
    bool nested;    /**< indirect mkeys */
    pieces_t from, to;
    unsigned char *source, *target;
    struct ibv_mr *source_mr, *target_mr;
    mca_btl_umr_mkey_t *source_mkey, *target_mkey;
    mca_btl_umr_mkey_t *inners[MCA_BTL_UMR_ROLE_MAX][INNERS]; /**< NULL: this kind is not tested */
    char why[160];                                            /**< the reason of a failure */
} selftest_t;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static int fail(selftest_t *test, const char *what, const char *why)
{
    snprintf(test->why, sizeof(test->why), "%s: %s", what, why);
    return OPAL_ERR_NOT_AVAILABLE;
}

/** Wait for one completion of the send queue and, if @p receive is given, for one of a receive. */
static int wait_for(mca_btl_umr_hca_t *hca, selftest_t *test, const char *what, struct ibv_wc *send,
                    struct ibv_wc *receive)
{
    double end = now() + WAIT_SECONDS;
    bool sent = false, received = NULL == receive;

    while (!sent || !received) {
        struct ibv_wc wc;
        int count = ibv_poll_cq(hca->mkeys.cq, 1, &wc);

        if (0 > count) {
            return fail(test, what, "the completion queue cannot be polled");
        }
        if (0 == count) {
            if (now() > end) {
                return fail(test, what, "no completion within 10 seconds");
            }
            sched_yield();
        } else if (RECEIVE_ID == wc.wr_id) {
            if (NULL != receive) {
                *receive = wc;
            }
            received = true;
        } else {
            mca_btl_umr_sq_complete(&hca->mkeys.sq, MCA_BTL_UMR_WR_SEQ(wc.wr_id));
            *send = wc;
            sent = true;
        }
    }
    return OPAL_SUCCESS;
}

static unsigned char pattern(uint32_t i)
{
    return (unsigned char) (i * 7 + 3 + i / 251);
}

/** Offset of stream position @p i. */
static size_t position(const pieces_t *pieces, uint32_t i)
{
    uint32_t k = i / pieces->bytes < pieces->count - 1 ? i / pieces->bytes : pieces->count - 1;

    return (size_t) ((ptrdiff_t) pieces->first + (ptrdiff_t) k * pieces->step)
           + (i - k * pieces->bytes);
}

/** Bytes of piece @p k. */
static uint32_t piece_length(const selftest_t *test, const pieces_t *pieces, uint32_t k)
{
    return k + 1 < pieces->count ? pieces->bytes : test->bytes - k * pieces->bytes;
}

/** The pieces of the mkeys below another; the pieces after them are entries of their own. */
static void inner_pieces(mca_btl_umr_hca_t *hca, uint32_t counts[INNERS])
{
    counts[0] = hca->mkeys.entries;
    counts[1] = hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable ? 8 : 0;
    counts[2] = hca->caps.tiers[MCA_BTL_UMR_LONG].usable ? hca->mkeys.entries + 3 : 0;
}

/** Entries that the mkey of a side must have. */
static uint32_t entries(mca_btl_umr_hca_t *hca, const selftest_t *test, const pieces_t *pieces)
{
    uint32_t count = pieces->count, counts[INNERS];

    if (test->nested) {
        inner_pieces(hca, counts);
        for (size_t i = 0; i < INNERS; ++i) {
            count -= 0 == counts[i] ? 0 : counts[i] - 1;
        }
    }
    return pieces->strided ? MCA_BTL_UMR_STRIDED_ENTRIES : count;
}

/** Take the mkeys below those of both sides. */
static int prepare_inners(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    uint32_t counts[INNERS];

    inner_pieces(hca, counts);
    for (int role = 0; test->nested && MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; i < INNERS; ++i) {
            if (0 == counts[i]) {
                continue;
            }
            test->inners[role][i] = mca_btl_umr_mkey_take(
                hca, (mca_btl_umr_role_t) role, 1 == i ? MCA_BTL_UMR_STRIDED_ENTRIES : counts[i]);
            if (NULL == test->inners[role][i]) {
                return fail(test, "making mkeys", "none to be had");
            }
        }
    }
    return OPAL_SUCCESS;
}

static int prepare(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    const int writable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    void *source = NULL, *target = NULL;

    if (0 == posix_memalign(&source, 4096, test->from.room)) {
        test->source = source;
    }
    if (0 == posix_memalign(&target, 4096, test->to.room)) {
        test->target = target;
    }
    if (NULL == test->source || NULL == test->target) {
        return fail(test, "memory", strerror(ENOMEM));
    }
    memset(test->source, 0, test->from.room);
    memset(test->target, FILLER, test->to.room);
    for (uint32_t i = 0; i < test->bytes; ++i) {
        test->source[position(&test->from, i)] = pattern(i);
    }

    test->source_mr = ibv_reg_mr(hca->device.pd, test->source, test->from.room, 0);
    test->target_mr = ibv_reg_mr(hca->device.pd, test->target, test->to.room, writable);
    if (NULL == test->source_mr || NULL == test->target_mr) {
        return fail(test, "registering memory", strerror(errno));
    }
    if (OPAL_SUCCESS != prepare_inners(hca, test)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    test->source_mkey =
        mca_btl_umr_mkey_take(hca, MCA_BTL_UMR_LOCAL, entries(hca, test, &test->from));
    test->target_mkey =
        mca_btl_umr_mkey_take(hca, MCA_BTL_UMR_REMOTE, entries(hca, test, &test->to));
    if (NULL == test->source_mkey || NULL == test->target_mkey) {
        return fail(test, "making mkeys", "none to be had");
    }
    return OPAL_SUCCESS;
}

/** Wait for a posted mapping. @p err: result of posting */
static int mapped(mca_btl_umr_hca_t *hca, selftest_t *test, int err)
{
    static const char what[] = "mapping an mkey (UMR)";
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    int rc;

    if (0 != err) {
        return fail(test, what, strerror(err));
    }
    rc = wait_for(hca, test, what, &wc, NULL);
    if (OPAL_SUCCESS == rc && IBV_WC_SUCCESS != wc.status) {
        rc = fail(test, what, ibv_wc_status_str(wc.status));
    }
    return rc;
}

/** Map a list, inline or in memory. */
static int map_list(selftest_t *test, mca_btl_umr_role_t role, mca_btl_umr_mkey_t *mkey,
                    struct ibv_sge *sges, uint32_t count)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    uint64_t bytes = 0;

    if (count <= hca->mkeys.entries) {
        ibv_wr_start(hca->mkeys.sq.qpx);
        (void) mca_btl_umr_mkey_build_map(mkey, role, (uint16_t) count, sges, true);
    } else {
        struct mlx5_wqe_data_seg *list = mca_btl_umr_long_list(hca, count);

        if (NULL == list) {
            return fail(test, "mapping an mkey (UMR)", "no memory for its list");
        }
        for (uint32_t k = 0; k < count; ++k) {
            mca_btl_umr_long_set(&list[k], sges[k].addr, sges[k].length, sges[k].lkey);
            bytes += sges[k].length;
        }
        ibv_wr_start(hca->mkeys.sq.qpx);
        (void) mca_btl_umr_long_build_map(mkey, role, count, bytes, list);
    }
    return mapped(hca, test, ibv_wr_complete(hca->mkeys.sq.qpx));
}

/** Piece @p k of a side, as an entry of a list. */
static struct ibv_sge piece(const selftest_t *test, mca_btl_umr_role_t role, uint32_t k)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const pieces_t *pieces = source ? &test->from : &test->to;
    struct ibv_sge sge = {
        (uintptr_t) (source ? test->source : test->target) + position(pieces, k * pieces->bytes),
        piece_length(test, pieces, k), source ? test->source_mr->lkey : test->target_mr->lkey};

    return sge;
}

/** Map the pieces from @p first on to an mkey, as a list or as a repeated entry. */
static int map_pieces(selftest_t *test, mca_btl_umr_role_t role, mca_btl_umr_mkey_t *mkey,
                      uint32_t first, uint32_t count, bool strided)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    const pieces_t *pieces = MCA_BTL_UMR_LOCAL == role ? &test->from : &test->to;
    struct ibv_sge *sges;
    int rc;

    if (strided) {
        struct ibv_sge sge = piece(test, role, first);

        ibv_wr_start(hca->mkeys.sq.qpx);
        (void) mca_btl_umr_mkey_build_strided(mkey, role, sge.addr, sge.lkey, pieces->bytes,
                                              (uint32_t) pieces->step, count, true);
        return mapped(hca, test, ibv_wr_complete(hca->mkeys.sq.qpx));
    }
    sges = malloc(count * sizeof(*sges));
    if (NULL == sges) {
        return fail(test, "memory", strerror(ENOMEM));
    }
    for (uint32_t k = 0; k < count; ++k) {
        sges[k] = piece(test, role, first + k);
    }
    rc = map_list(test, role, mkey, sges, count);
    free(sges);
    return rc;
}

/** Map one side: an indirect mkey over one mkey of each kind, followed by pieces of memory. */
static int map_nested(mca_btl_umr_hca_t *hca, selftest_t *test, mca_btl_umr_role_t role)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const pieces_t *pieces = source ? &test->from : &test->to;
    struct ibv_sge sges[INNERS + MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint32_t counts[INNERS], first = 0, entries_used = 0;

    inner_pieces(hca, counts);
    for (size_t i = 0; i < INNERS; ++i) {
        mca_btl_umr_mkey_t *mkey = test->inners[role][i];
        int rc;

        if (NULL == mkey) {
            continue;
        }
        rc = map_pieces(test, role, mkey, first, counts[i], 1 == i);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        sges[entries_used].addr = 0;
        sges[entries_used].length = counts[i] * pieces->bytes;
        sges[entries_used++].lkey = mkey->dv->lkey;
        first += counts[i];
    }
    while (first < pieces->count) {
        sges[entries_used++] = piece(test, role, first++);
    }
    return map_list(test, role, source ? test->source_mkey : test->target_mkey, sges, entries_used);
}

/** Map one side and wait for its completion. */
static int map_one(mca_btl_umr_hca_t *hca, selftest_t *test, mca_btl_umr_role_t role)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const pieces_t *pieces = source ? &test->from : &test->to;

    return test->nested ? map_nested(hca, test, role)
                        : map_pieces(test, role, source ? test->source_mkey : test->target_mkey, 0,
                                     pieces->count, pieces->strided);
}

/** One write over the whole of both mkeys; @p receive NULL: it must be refused. */
static int write_across(mca_btl_umr_hca_t *hca, selftest_t *test, uint32_t rkey, const char *what,
                        struct ibv_wc *send, struct ibv_wc *receive)
{
    mca_btl_umr_sq_t *sq = &hca->mkeys.sq;
    uint32_t seq;
    int err;

    ibv_wr_start(sq->qpx);
    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, true, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    if (NULL != receive) {
        ibv_wr_rdma_write_imm(sq->qpx, rkey, test->skip, htonl(FIN));
    } else {
        ibv_wr_rdma_write(sq->qpx, rkey, test->skip);
    }
    ibv_wr_set_sge(sq->qpx, test->source_mkey->dv->lkey, test->skip, test->bytes - test->skip);
    err = ibv_wr_complete(sq->qpx);
    if (0 != err) {
        return fail(test, what, strerror(err));
    }
    return wait_for(hca, test, what, send, receive);
}

static int transfer(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    static const char what[] = "writing from mkey to mkey";
    struct ibv_wc send = {.status = IBV_WC_SUCCESS}, receive = {.status = IBV_WC_SUCCESS};
    int err, rc;

    err = mca_btl_umr_qp_post_receives(hca->mkeys.sq.qp, RECEIVE_ID, 1);
    if (0 != err) {
        return fail(test, "posting a receive", strerror(err));
    }
    rc = write_across(hca, test, test->target_mkey->dv->rkey, what, &send, &receive);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (IBV_WC_SUCCESS != send.status || IBV_WC_SUCCESS != receive.status) {
        return fail(
            test, what,
            ibv_wc_status_str(IBV_WC_SUCCESS != send.status ? send.status : receive.status));
    }
    if (0 == (receive.wc_flags & IBV_WC_WITH_IMM) || FIN != ntohl(receive.imm_data)) {
        return fail(test, what, "the immediate data is not what was sent");
    }
    return OPAL_SUCCESS;
}

static int look(selftest_t *test)
{
    unsigned char *expected = malloc(test->to.room);
    size_t i = 0;

    if (NULL == expected) {
        return fail(test, "memory", strerror(ENOMEM));
    }
    memset(expected, FILLER, test->to.room);
    for (uint32_t k = test->skip; k < test->bytes; ++k) {
        expected[position(&test->to, k)] = pattern(k);
    }
    while (i < test->to.room && expected[i] == test->target[i]) {
        ++i;
    }
    if (i < test->to.room) {
        (void) fail(test, "writing from mkey to mkey",
                    FILLER == expected[i] ? "bytes between the pieces were written"
                                          : "wrong bytes arrived");
    }
    free(expected);
    return i < test->to.room ? OPAL_ERR_NOT_AVAILABLE : OPAL_SUCCESS;
}

/** Write through a key that must not be usable any more. Replaces the queue pair. */
static int refuse(mca_btl_umr_hca_t *hca, selftest_t *test, uint32_t rkey, const char *what)
{
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    int err, rc;

    memset(test->target, FILLER, test->to.room);
    rc = write_across(hca, test, rkey, what, &wc, NULL);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (IBV_WC_SUCCESS == wc.status) {
        return fail(test, what, "it was written through");
    }
    for (size_t i = 0; i < test->to.room; ++i) {
        if (FILLER != test->target[i]) {
            return fail(test, what, "the write was refused, but left bytes behind");
        }
    }
    mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
    err = mca_btl_umr_mkeys_qp_start(hca);
    return 0 == err ? OPAL_SUCCESS : fail(test, "a new queue pair", strerror(err));
}

/** Invalidate an mkey, and verify that the target's key is refused. */
static int refuse_invalidated(selftest_t *test, mca_btl_umr_mkey_t *mkey, const char *refusing)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    static const char what[] = "invalidating an mkey";
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    int err, rc;

    ibv_wr_start(hca->mkeys.sq.qpx);
    (void) mca_btl_umr_mkey_build_invalidate(mkey, true);
    err = ibv_wr_complete(hca->mkeys.sq.qpx);
    if (0 != err) {
        return fail(test, what, strerror(err));
    }
    rc = wait_for(hca, test, what, &wc, NULL);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (IBV_WC_SUCCESS != wc.status) {
        return fail(test, what, ibv_wc_status_str(wc.status));
    }
    return refuse(hca, test, test->target_mkey->dv->rkey, refusing);
}

static int refuse_old_tag(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    uint32_t old = test->target_mkey->dv->rkey;
    int rc;

    if (!hca->device.update_tag) {
        return OPAL_SUCCESS;
    }
    mca_btl_umr_mkey_retag(test->target_mkey);
    rc = map_one(hca, test, MCA_BTL_UMR_REMOTE);
    return OPAL_SUCCESS == rc ? refuse(hca, test, old, "refusing an old tag") : rc;
}

/** As refuse_old_tag, for an mkey below the target's. */
static int refuse_old_tag_below(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    mca_btl_umr_mkey_t *mkey = test->inners[MCA_BTL_UMR_REMOTE][0];
    uint32_t counts[INNERS];
    int rc;

    if (!hca->device.update_tag) {
        return OPAL_SUCCESS;
    }
    inner_pieces(hca, counts);
    mca_btl_umr_mkey_retag(mkey);
    rc = map_pieces(test, MCA_BTL_UMR_REMOTE, mkey, 0, counts[0], false);
    return OPAL_SUCCESS == rc ? refuse(hca, test, test->target_mkey->dv->rkey,
                                       "refusing an old tag within an mkey")
                              : rc;
}

static void clean_up(selftest_t *test)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; i < INNERS; ++i) {
            if (NULL != test->inners[role][i]) {
                test->inners[role][i]->exposed = false; /* as below */
                mca_btl_umr_mkey_give(test->inners[role][i]);
            }
        }
    }
    if (NULL != test->source_mkey) {
        mca_btl_umr_mkey_give(test->source_mkey);
    }
    if (NULL != test->target_mkey) {
        test->target_mkey->exposed = false; /* no other process has its key */
        mca_btl_umr_mkey_give(test->target_mkey);
    }
    if (NULL != test->source_mr) {
        (void) ibv_dereg_mr(test->source_mr);
    }
    if (NULL != test->target_mr) {
        (void) ibv_dereg_mr(test->target_mr);
    }
    free(test->source);
    free(test->target);
}

/** Map both sides, write, compare. */
static int gather_and_scatter(mca_btl_umr_hca_t *hca, selftest_t *test)
{
    int rc = prepare(hca, test);

    if (OPAL_SUCCESS == rc) {
        rc = map_one(hca, test, MCA_BTL_UMR_LOCAL);
    }
    if (OPAL_SUCCESS == rc) {
        rc = map_one(hca, test, MCA_BTL_UMR_REMOTE);
    }
    if (OPAL_SUCCESS == rc) {
        rc = transfer(hca, test);
    }
    return OPAL_SUCCESS == rc ? look(test) : rc;
}

/** The end of a test: leaves a usable queue pair and no memory in use. */
static int finish(mca_btl_umr_hca_t *hca, selftest_t *test, int rc)
{
    int err;

    if (OPAL_SUCCESS == rc) {
        clean_up(test);
        return rc;
    }
    /* The queue pair first: requests in flight must not access freed memory. */
    mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
    clean_up(test);
    err = mca_btl_umr_mkeys_qp_start(hca);
    if (0 != err) {
        mca_btl_umr_refuse("%s failed the UMR self-test: no new queue pair: %s", hca->device.name,
                           strerror(err));
        return OPAL_ERROR;
    }
    return rc;
}

/**
 * Both sides: pieces of the source in order, those of the target in the opposite order.
 *
 * @param[in] count, piece      pieces of the source and the bytes of each
 * @param[in] distance          from one to the next
 * @param[in] to_piece, nearer  the same of the target, whose last piece is up to twice as long
 */
static void lists(selftest_t *test, uint32_t count, uint32_t piece, uint32_t distance,
                  uint32_t to_count, uint32_t to_piece, uint32_t nearer)
{
    memset(test, 0, sizeof(*test));
    test->bytes = count * piece;
    test->from =
        (pieces_t){(size_t) count * distance, 0, (ptrdiff_t) distance, piece, count, false};
    test->to = (pieces_t){(size_t) to_count * nearer + 2 * to_piece,
                          (size_t) to_count * nearer,
                          -(ptrdiff_t) nearer,
                          to_piece,
                          to_count,
                          false};
}

/** Disable a tier; caps have the reason. */
static void drop(mca_btl_umr_hca_t *hca, mca_btl_umr_tier_kind_t kind, const char *why)
{
    mca_btl_umr_tier_t *tier = &hca->caps.tiers[kind];

    tier->usable = false;
    snprintf(tier->why, sizeof(tier->why), "failed the self-test: %s", why);
}

/** @return OPAL_SUCCESS also if it failed; OPAL_ERROR: the queue pair is lost, hca.why is set */
static int prove_long(mca_btl_umr_hca_t *hca)
{
    selftest_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_LONG].usable) {
        return OPAL_SUCCESS;
    }
    /* Pieces of another length on the other side: entries in a wrong order do not cancel out. */
    lists(&test, hca->longs.entries, 16, 48, hca->longs.entries * 16 / 24, 24, 56);
    rc = finish(hca, &test, gather_and_scatter(hca, &test));
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_LONG, test.why);
        mca_btl_umr_long_stop(hca);
        return OPAL_SUCCESS;
    }
    /* The largest ones: not kept for a message that may never come. */
    mca_btl_umr_long_destroy_idle(hca);
    return rc;
}

/** Both sides: @p piece bytes every @p step bytes, repeated for all bytes. */
static void strides(selftest_t *test, uint32_t bytes, uint32_t piece, uint32_t step,
                    uint32_t to_piece, uint32_t to_step)
{
    uint32_t count = bytes / piece, to_count = bytes / to_piece;

    memset(test, 0, sizeof(*test));
    test->bytes = bytes;
    test->from = (pieces_t){(size_t) count * step, 0, step, piece, count, true};
    test->to = (pieces_t){(size_t) to_count * to_step + 64, 64, to_step, to_piece, to_count, true};
}

/** As prove_long. */
static int prove_strided(mca_btl_umr_hca_t *hca)
{
    selftest_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable) {
        return OPAL_SUCCESS;
    }
    /* Beyond 15 bits, up to the maximum of 16 bits. */
    strides(&test, 99000, 33000, 65535, 49500, 65000);
    rc = finish(hca, &test, gather_and_scatter(hca, &test));
    if (OPAL_SUCCESS == rc) {
        /* More repetitions than 16 bits hold; only the last ones are written. */
        strides(&test, 140004, 2, 3, 3, 5);
        test.skip = test.bytes - 2400;
        rc = finish(hca, &test, gather_and_scatter(hca, &test));
    }
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_STRIDED, test.why);
        rc = OPAL_SUCCESS;
    }
    return rc;
}

/** As prove_long. */
static int prove_nested(mca_btl_umr_hca_t *hca)
{
    uint32_t counts[INNERS], below = 0, kinds = 0, behind;
    selftest_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_NESTED].usable) {
        return OPAL_SUCCESS;
    }
    inner_pieces(hca, counts);
    for (size_t i = 0; i < INNERS; ++i) {
        below += counts[i];
        kinds += 0 < counts[i] ? 1 : 0;
    }
    /* With non-inline lists the target's upper mkey has one. */
    behind = 1 + (0 < counts[2] && 3 < hca->longs.bound.max ? hca->mkeys.entries - kinds : 0);
    memset(&test, 0, sizeof(test));
    test.nested = true;
    test.bytes = (below + 1) * 48;
    test.from = (pieces_t){(size_t) (below + 1) * 112, 0, 112, 48, below + 1, false};
    test.to.count = below + behind;
    test.to.bytes = test.bytes / test.to.count;
    test.to.step = 104;
    test.to.first = 64;
    test.to.room = 64 + (size_t) test.to.count * 104 + test.to.bytes + test.to.count;

    rc = gather_and_scatter(hca, &test);
    /* Only one packet into the first of the keys below: no byte may arrive. */
    test.bytes = 2 * test.to.bytes;
    if (OPAL_SUCCESS == rc) {
        rc = refuse_invalidated(&test, test.inners[MCA_BTL_UMR_REMOTE][0],
                                "refusing an invalidated mkey within another");
    }
    if (OPAL_SUCCESS == rc) {
        rc = refuse_old_tag_below(hca, &test);
    }
    rc = finish(hca, &test, rc);
    mca_btl_umr_long_destroy_idle(hca);
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_NESTED, test.why);
        rc = OPAL_SUCCESS;
    }
    return rc;
}

int mca_btl_umr_selftest(mca_btl_umr_hca_t *hca)
{
    selftest_t test;
    int rc;

    lists(&test, hca->mkeys.entries, 48, 112, hca->mkeys.entries - 1, 48, 104);
    rc = gather_and_scatter(hca, &test);
    if (OPAL_SUCCESS == rc) {
        rc = refuse_invalidated(&test, test.target_mkey, "refusing an invalidated mkey");
    }
    if (OPAL_SUCCESS == rc) {
        rc = refuse_old_tag(hca, &test);
    }
    rc = finish(hca, &test, rc);
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        mca_btl_umr_refuse("%s failed the UMR self-test: %s", hca->device.name, test.why);
    }
    if (OPAL_SUCCESS == rc) {
        rc = prove_long(hca);
    }
    if (OPAL_SUCCESS == rc) {
        rc = prove_strided(hca);
    }
    if (OPAL_SUCCESS == rc) {
        rc = prove_nested(hca);
    }
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}
