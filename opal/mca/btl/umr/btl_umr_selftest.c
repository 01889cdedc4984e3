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
 * An HCA that fails is used without mkeys, if it can write to itself (btl_umr_hca.c). Then steps 1
 * to 3 for each capability tier (btl_umr_hca.h); a tier that fails is disabled. Indirect mkeys come
 * last, over each of the tiers that passed, with steps 4 and 5 for an mkey below another.
 *
 * A refusal breaks the queue pair, so it is replaced afterwards. Steps 4 and 5 run once a boot
 * (btl_umr_stamp.c), or always with btl_umr_selftest=2.
 */

#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_selftest.h"
#include "opal/mca/btl/umr/btl_umr_stamp.h"
#include "opal/mca/btl/umr/btl_umr_transfer.h"

/**
 * Both sides: pieces of the source in order, those of the target in the opposite order.
 *
 * @param[in] count, piece      pieces of the source and the bytes of each
 * @param[in] distance          from one to the next
 * @param[in] to_piece, nearer  the same of the target, whose last piece is up to twice as long
 */
static void lists(mca_btl_umr_transfer_t *test, uint32_t count, uint32_t piece, uint32_t distance,
                  uint32_t to_count, uint32_t to_piece, uint32_t nearer)
{
    memset(test, 0, sizeof(*test));
    test->bytes = count * piece;
    test->from = (mca_btl_umr_pieces_t){
        (size_t) count * distance, 0, (ptrdiff_t) distance, piece, count, false};
    test->to = (mca_btl_umr_pieces_t){(size_t) to_count * nearer + 2 * to_piece,
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
    mca_btl_umr_transfer_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_LONG].usable) {
        return OPAL_SUCCESS;
    }
    /* Pieces of another length on the other side: entries in a wrong order do not cancel out. */
    lists(&test, hca->klm.entries, 16, 48, hca->klm.entries * 16 / 24, 24, 56);
    rc = mca_btl_umr_transfer_end(hca, &test, mca_btl_umr_transfer_run(hca, &test));
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_LONG, test.why);
        mca_btl_umr_klm_stop(hca);
        return OPAL_SUCCESS;
    }
    /* The largest ones: not kept for a message that may never come. */
    mca_btl_umr_klm_destroy_idle(hca);
    return rc;
}

/** Both sides: @p piece bytes every @p step bytes, repeated for all bytes. */
static void strides(mca_btl_umr_transfer_t *test, uint32_t bytes, uint32_t piece, uint32_t step,
                    uint32_t to_piece, uint32_t to_step)
{
    uint32_t count = bytes / piece, to_count = bytes / to_piece;

    memset(test, 0, sizeof(*test));
    test->bytes = bytes;
    test->from = (mca_btl_umr_pieces_t){(size_t) count * step, 0, step, piece, count, true};
    test->to = (mca_btl_umr_pieces_t){
        (size_t) to_count * to_step + 64, 64, to_step, to_piece, to_count, true};
}

/** As prove_long. */
static int prove_strided(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_transfer_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_STRIDED].usable) {
        return OPAL_SUCCESS;
    }
    /* Beyond 15 bits, up to the maximum of 16 bits. */
    strides(&test, 99000, 33000, 65535, 49500, 65000);
    rc = mca_btl_umr_transfer_end(hca, &test, mca_btl_umr_transfer_run(hca, &test));
    if (OPAL_SUCCESS == rc) {
        /* More repetitions than 16 bits hold; only the last ones are written. */
        strides(&test, 140004, 2, 3, 3, 5);
        test.skip = test.bytes - 2400;
        rc = mca_btl_umr_transfer_end(hca, &test, mca_btl_umr_transfer_run(hca, &test));
    }
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_STRIDED, test.why);
        rc = OPAL_SUCCESS;
    }
    return rc;
}

/** As prove_long. */
static int prove_nested(mca_btl_umr_hca_t *hca, bool refusals)
{
    uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS], below = 0, kinds = 0, behind;
    mca_btl_umr_transfer_t test;
    int rc;

    if (!hca->caps.tiers[MCA_BTL_UMR_NESTED].usable) {
        return OPAL_SUCCESS;
    }
    mca_btl_umr_transfer_inner_pieces(hca, counts);
    for (size_t i = 0; i < MCA_BTL_UMR_TRANSFER_INNERS; ++i) {
        below += counts[i];
        kinds += 0 < counts[i] ? 1 : 0;
    }
    /* With non-inline lists the target's upper mkey has one. */
    behind = 1 + (0 < counts[2] && 3 < hca->klm.bound.max ? hca->mkeys.entries - kinds : 0);
    memset(&test, 0, sizeof(test));
    test.nested = true;
    test.bytes = (below + 1) * 48;
    test.from = (mca_btl_umr_pieces_t){(size_t) (below + 1) * 112, 0, 112, 48, below + 1, false};
    test.to.count = below + behind;
    test.to.bytes = test.bytes / test.to.count;
    test.to.step = 104;
    test.to.first = 64;
    test.to.room = 64 + (size_t) test.to.count * 104 + test.to.bytes + test.to.count;

    rc = mca_btl_umr_transfer_run(hca, &test);
    /* Only one packet into the first of the keys below: no byte may arrive. */
    test.bytes = 2 * test.to.bytes;
    if (OPAL_SUCCESS == rc && refusals) {
        rc = mca_btl_umr_transfer_refuse_invalidated(&test, test.inners[MCA_BTL_UMR_REMOTE][0],
                                                     "refusing an invalidated mkey within another");
    }
    if (OPAL_SUCCESS == rc && refusals) {
        rc = mca_btl_umr_transfer_refuse_old_tag_below(hca, &test);
    }
    rc = mca_btl_umr_transfer_end(hca, &test, rc);
    mca_btl_umr_klm_destroy_idle(hca);
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        drop(hca, MCA_BTL_UMR_NESTED, test.why);
        rc = OPAL_SUCCESS;
    }
    return rc;
}

int mca_btl_umr_selftest(mca_btl_umr_hca_t *hca)
{
    bool always = MCA_BTL_UMR_SELFTEST_ALL == mca_btl_umr_params.selftest;
    mca_btl_umr_stamp_t stamp;
    bool refusals = always || !mca_btl_umr_stamp_find(hca, &stamp);
    mca_btl_umr_transfer_t test;
    int rc;

    lists(&test, hca->mkeys.entries, 48, 112, hca->mkeys.entries - 1, 48, 104);
    rc = mca_btl_umr_transfer_run(hca, &test);
    if (OPAL_SUCCESS == rc && refusals) {
        rc = mca_btl_umr_transfer_refuse_invalidated(&test, test.target_mkey,
                                                     "refusing an invalidated mkey");
    }
    if (OPAL_SUCCESS == rc && refusals) {
        rc = mca_btl_umr_transfer_refuse_old_tag(hca, &test);
    }
    rc = mca_btl_umr_transfer_end(hca, &test, rc);
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
        rc = prove_nested(hca, refusals);
    }
    if (OPAL_SUCCESS != rc) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (refusals && !always) {
        mca_btl_umr_stamp_set(hca, &stamp);
    }
    return OPAL_SUCCESS;
}

int mca_btl_umr_selftest_plain(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_transfer_t test;

    memset(&test, 0, sizeof(test));
    test.bytes = 4096;
    test.from = test.to = (mca_btl_umr_pieces_t){test.bytes, 0, 0, test.bytes, 1, false};
    if (OPAL_SUCCESS != mca_btl_umr_transfer_plain(hca, &test)) {
        mca_btl_umr_refuse("%s failed the self-test: %s", hca->device.name, test.why);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}
