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
 * One transfer of the self-test: two mkeys over pieces of two buffers, a write from one to the
 * other, and the comparison of every byte. The queue pair for mappings, which is connected to
 * itself, does all of it.
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_transfer.h"

#define FILLER       0xa5
#define FIN          0x554d5231u
#define WAIT_SECONDS 10
#define RECEIVE_ID   MCA_BTL_UMR_WR_RECEIVE

static int fail(mca_btl_umr_transfer_t *test, const char *what, const char *why)
{
    snprintf(test->why, sizeof(test->why), "%s: %s", what, why);
    return OPAL_ERR_NOT_AVAILABLE;
}

/** Wait for one completion of the send queue and, if @p receive is given, for one of a receive. */
static int wait_for(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, const char *what,
                    struct ibv_wc *send, struct ibv_wc *receive)
{
    double end = mca_btl_umr_now() + WAIT_SECONDS;
    bool sent = false, received = NULL == receive;

    while (!sent || !received) {
        struct ibv_wc wc;
        int count = ibv_poll_cq(hca->mkeys.cq, 1, &wc);

        if (0 > count) {
            return fail(test, what, "the completion queue cannot be polled");
        }
        if (0 == count) {
            if (mca_btl_umr_now() > end) {
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
static size_t position(const mca_btl_umr_pieces_t *pieces, uint32_t i)
{
    uint32_t k = i / pieces->bytes < pieces->count - 1 ? i / pieces->bytes : pieces->count - 1;

    return (size_t) ((ptrdiff_t) pieces->first + (ptrdiff_t) k * pieces->step)
           + (i - k * pieces->bytes);
}

/** Bytes of piece @p k. */
static uint32_t piece_length(const mca_btl_umr_transfer_t *test, const mca_btl_umr_pieces_t *pieces,
                             uint32_t k)
{
    return k + 1 < pieces->count ? pieces->bytes : test->bytes - k * pieces->bytes;
}

void mca_btl_umr_transfer_inner_pieces(mca_btl_umr_hca_t *hca,
                                       uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS])
{
    counts[0] = hca->mkeys.entries;
    counts[1] = hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable ? 8 : 0;
    counts[2] = hca->caps.tiers[MCA_BTL_UMR_LONG].usable ? hca->mkeys.entries + 3 : 0;
}

/** Entries that the mkey of a side must have. */
static uint32_t entries(mca_btl_umr_hca_t *hca, const mca_btl_umr_transfer_t *test,
                        const mca_btl_umr_pieces_t *pieces)
{
    uint32_t count = pieces->count, counts[MCA_BTL_UMR_TRANSFER_INNERS];

    if (test->nested) {
        mca_btl_umr_transfer_inner_pieces(hca, counts);
        for (size_t i = 0; i < MCA_BTL_UMR_TRANSFER_INNERS; ++i) {
            count -= 0 == counts[i] ? 0 : counts[i] - 1;
        }
    }
    return pieces->strided ? MCA_BTL_UMR_STRIDED_ENTRIES : count;
}

/** Take the mkeys below those of both sides. */
static int prepare_inners(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
{
    uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS];

    mca_btl_umr_transfer_inner_pieces(hca, counts);
    for (int role = 0; test->nested && MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; i < MCA_BTL_UMR_TRANSFER_INNERS; ++i) {
            if (0 == counts[i]) {
                continue;
            }
            test->inners[role][i] = mca_btl_umr_mkey_take(
                hca, (mca_btl_umr_role_t) role, 1 == i ? MCA_BTL_UMR_STRIDED_ENTRIES : counts[i]);
            if (NULL == test->inners[role][i]) {
                return fail(test, "taking mkeys", "none is available");
            }
        }
    }
    return OPAL_SUCCESS;
}

/** Allocate, fill and register the buffers. */
static int prepare_memory(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
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
    return OPAL_SUCCESS;
}

static int prepare(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
{
    if (OPAL_SUCCESS != prepare_memory(hca, test) || OPAL_SUCCESS != prepare_inners(hca, test)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    test->source_mkey =
        mca_btl_umr_mkey_take(hca, MCA_BTL_UMR_LOCAL, entries(hca, test, &test->from));
    test->target_mkey =
        mca_btl_umr_mkey_take(hca, MCA_BTL_UMR_REMOTE, entries(hca, test, &test->to));
    if (NULL == test->source_mkey || NULL == test->target_mkey) {
        return fail(test, "taking mkeys", "none is available");
    }
    return OPAL_SUCCESS;
}

/** Wait for a posted mapping. @p err: result of posting */
static int mapped(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, int err)
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
static int map_list(mca_btl_umr_transfer_t *test, mca_btl_umr_role_t role, mca_btl_umr_mkey_t *mkey,
                    struct ibv_sge *sges, uint32_t count)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    uint64_t bytes = 0;

    if (count <= hca->mkeys.entries) {
        ibv_wr_start(hca->mkeys.sq.qpx);
        (void) mca_btl_umr_mkey_build_map(mkey, role, (uint16_t) count, sges, true);
    } else {
        struct mlx5_wqe_data_seg *list = mca_btl_umr_klm_list(hca, count);

        if (NULL == list) {
            return fail(test, "mapping an mkey (UMR)", "no memory for its list");
        }
        for (uint32_t k = 0; k < count; ++k) {
            mca_btl_umr_klm_set(&list[k], sges[k].addr, sges[k].length, sges[k].lkey);
            bytes += sges[k].length;
        }
        ibv_wr_start(hca->mkeys.sq.qpx);
        (void) mca_btl_umr_klm_build_map(mkey, role, count, bytes, list);
    }
    return mapped(hca, test, ibv_wr_complete(hca->mkeys.sq.qpx));
}

/** Piece @p k of a side, as an entry of a list. */
static struct ibv_sge piece(const mca_btl_umr_transfer_t *test, mca_btl_umr_role_t role, uint32_t k)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const mca_btl_umr_pieces_t *pieces = source ? &test->from : &test->to;
    struct ibv_sge sge = {
        (uintptr_t) (source ? test->source : test->target) + position(pieces, k * pieces->bytes),
        piece_length(test, pieces, k), source ? test->source_mr->lkey : test->target_mr->lkey};

    return sge;
}

/** Map the pieces from @p first on to an mkey, as a list or as a repeated entry. */
static int map_pieces(mca_btl_umr_transfer_t *test, mca_btl_umr_role_t role,
                      mca_btl_umr_mkey_t *mkey, uint32_t first, uint32_t count, bool strided)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    const mca_btl_umr_pieces_t *pieces = MCA_BTL_UMR_LOCAL == role ? &test->from : &test->to;
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
static int map_nested(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, mca_btl_umr_role_t role)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const mca_btl_umr_pieces_t *pieces = source ? &test->from : &test->to;
    struct ibv_sge sges[MCA_BTL_UMR_TRANSFER_INNERS + MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS], first = 0, entries_used = 0;

    mca_btl_umr_transfer_inner_pieces(hca, counts);
    for (size_t i = 0; i < MCA_BTL_UMR_TRANSFER_INNERS; ++i) {
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
static int map_one(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, mca_btl_umr_role_t role)
{
    bool source = MCA_BTL_UMR_LOCAL == role;
    const mca_btl_umr_pieces_t *pieces = source ? &test->from : &test->to;

    return test->nested ? map_nested(hca, test, role)
                        : map_pieces(test, role, source ? test->source_mkey : test->target_mkey, 0,
                                     pieces->count, pieces->strided);
}

/** One write of all bytes but the skipped ones; @p receive NULL: it must be refused. */
static int write_across(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, const char *what,
                        uint32_t lkey, uint64_t from, uint32_t rkey, uint64_t to,
                        struct ibv_wc *send, struct ibv_wc *receive)
{
    mca_btl_umr_sq_t *sq = &hca->mkeys.sq;
    uint32_t seq;
    int err;

    ibv_wr_start(sq->qpx);
    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, true, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(0, seq);
    if (NULL != receive) {
        ibv_wr_rdma_write_imm(sq->qpx, rkey, to + test->skip, htonl(FIN));
    } else {
        ibv_wr_rdma_write(sq->qpx, rkey, to + test->skip);
    }
    ibv_wr_set_sge(sq->qpx, lkey, from + test->skip, test->bytes - test->skip);
    err = ibv_wr_complete(sq->qpx);
    if (0 != err) {
        return fail(test, what, strerror(err));
    }
    return wait_for(hca, test, what, send, receive);
}

/**
 * Write the source to the target, with immediate data, and look at both completions.
 *
 * @param[in] lkey, from  of the source
 * @param[in] rkey, to    of the target
 */
static int transfer(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, const char *what,
                    uint32_t lkey, uint64_t from, uint32_t rkey, uint64_t to)
{
    struct ibv_wc send = {.status = IBV_WC_SUCCESS}, receive = {.status = IBV_WC_SUCCESS};
    int err, rc;

    err = mca_btl_umr_qp_post_receives(hca->mkeys.sq.qp, RECEIVE_ID, 1);
    if (0 != err) {
        return fail(test, "posting a receive", strerror(err));
    }
    rc = write_across(hca, test, what, lkey, from, rkey, to, &send, &receive);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (IBV_WC_SUCCESS != send.status || IBV_WC_SUCCESS != receive.status) {
        return fail(
            test, what,
            ibv_wc_status_str(IBV_WC_SUCCESS != send.status ? send.status : receive.status));
    }
    if (0 == (receive.wc_flags & IBV_WC_WITH_IMM) || FIN != ntohl(receive.imm_data)) {
        return fail(test, what, "the immediate data differs from the data sent");
    }
    return OPAL_SUCCESS;
}

static int look(mca_btl_umr_transfer_t *test, const char *what)
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
        (void) fail(test, what,
                    FILLER == expected[i] ? "bytes between the pieces were written"
                                          : "wrong bytes arrived");
    }
    free(expected);
    return i < test->to.room ? OPAL_ERR_NOT_AVAILABLE : OPAL_SUCCESS;
}

/** Write through a key that must not be usable any more. Replaces the queue pair. */
static int refuse(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, uint32_t rkey,
                  const char *what)
{
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    int err, rc;

    memset(test->target, FILLER, test->to.room);
    rc = write_across(hca, test, what, test->source_mkey->dv->lkey, 0, rkey, 0, &wc, NULL);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (IBV_WC_SUCCESS == wc.status) {
        return fail(test, what, "the write succeeded");
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

int mca_btl_umr_transfer_refuse_invalidated(mca_btl_umr_transfer_t *test, mca_btl_umr_mkey_t *mkey,
                                            const char *refusing)
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

int mca_btl_umr_transfer_refuse_old_tag(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
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

int mca_btl_umr_transfer_refuse_old_tag_below(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
{
    mca_btl_umr_mkey_t *mkey = test->inners[MCA_BTL_UMR_REMOTE][0];
    uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS];
    int rc;

    if (!hca->device.update_tag) {
        return OPAL_SUCCESS;
    }
    mca_btl_umr_transfer_inner_pieces(hca, counts);
    mca_btl_umr_mkey_retag(mkey);
    rc = map_pieces(test, MCA_BTL_UMR_REMOTE, mkey, 0, counts[0], false);
    return OPAL_SUCCESS == rc ? refuse(hca, test, test->target_mkey->dv->rkey,
                                       "refusing an old tag within an mkey")
                              : rc;
}

static void clean_up(mca_btl_umr_transfer_t *test)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; i < MCA_BTL_UMR_TRANSFER_INNERS; ++i) {
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

int mca_btl_umr_transfer_run(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
{
    static const char what[] = "writing from mkey to mkey";
    int rc = prepare(hca, test);

    if (OPAL_SUCCESS == rc) {
        rc = map_one(hca, test, MCA_BTL_UMR_LOCAL);
    }
    if (OPAL_SUCCESS == rc) {
        rc = map_one(hca, test, MCA_BTL_UMR_REMOTE);
    }
    if (OPAL_SUCCESS == rc) {
        rc = transfer(hca, test, what, test->source_mkey->dv->lkey, 0, test->target_mkey->dv->rkey,
                      0);
    }
    return OPAL_SUCCESS == rc ? look(test, what) : rc;
}

int mca_btl_umr_transfer_plain(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test)
{
    static const char what[] = "writing to itself";
    int err, rc = OPAL_SUCCESS;

    hca->mkeys.cq = ibv_create_cq(hca->device.context, 8, NULL, NULL, 0);
    if (NULL == hca->mkeys.cq) {
        return fail(test, "a completion queue", strerror(errno));
    }
    err =
        mca_btl_umr_qp_create(hca, MCA_BTL_UMR_QP_DATA, hca->mkeys.cq, 2, 1, NULL, &hca->mkeys.sq);
    if (0 == err) {
        err = mca_btl_umr_qp_connect_self(&hca->device, hca->mkeys.sq.qp);
    }
    rc = 0 == err ? prepare_memory(hca, test) : fail(test, "connecting to itself", strerror(err));
    if (OPAL_SUCCESS == rc) {
        rc = transfer(hca, test, what, test->source_mr->lkey, (uintptr_t) test->source,
                      test->target_mr->rkey, (uintptr_t) test->target);
    }
    if (OPAL_SUCCESS == rc) {
        rc = look(test, what);
    }
    mca_btl_umr_qp_destroy(hca, &hca->mkeys.sq);
    (void) ibv_destroy_cq(hca->mkeys.cq);
    hca->mkeys.cq = NULL;
    clean_up(test);
    return rc;
}

int mca_btl_umr_transfer_end(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, int rc)
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
