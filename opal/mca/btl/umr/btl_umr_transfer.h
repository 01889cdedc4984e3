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
 * One transfer of the self-test, through two mkeys.
 */

#ifndef MCA_BTL_UMR_TRANSFER_H
#define MCA_BTL_UMR_TRANSFER_H

#include "opal/mca/btl/umr/btl_umr_mkey.h"

BEGIN_C_DECLS

/** The pieces that one mkey maps; the last one has the remaining bytes. */
typedef struct mca_btl_umr_pieces_t {
    size_t room;    /**< of the buffer */
    size_t first;   /**< offset of the first piece */
    ptrdiff_t step; /**< from piece to piece */
    uint32_t bytes; /**< of each but the last */
    uint32_t count;
    bool strided; /**< one repeated entry */
} mca_btl_umr_pieces_t;

/** Mkeys below an indirect one: a list, a strided one, a non-inline list. */
#define MCA_BTL_UMR_TRANSFER_INNERS 3

/** One transfer. */
typedef struct mca_btl_umr_transfer_t {
    uint32_t bytes; /**< total */
    uint32_t skip;  /**< of those, not written */
    bool nested;    /**< indirect mkeys */
    mca_btl_umr_pieces_t from, to;
    unsigned char *source, *target;
    struct ibv_mr *source_mr, *target_mr;
    mca_btl_umr_mkey_t *source_mkey, *target_mkey;
    mca_btl_umr_mkey_t *inners[MCA_BTL_UMR_ROLE_MAX]
                              [MCA_BTL_UMR_TRANSFER_INNERS]; /**< NULL: this kind is not tested */
    char why[160];                                           /**< the reason of a failure */
} mca_btl_umr_transfer_t;

/** The pieces of the mkeys below another; the pieces after them are entries of their own. */
void mca_btl_umr_transfer_inner_pieces(mca_btl_umr_hca_t *hca,
                                       uint32_t counts[MCA_BTL_UMR_TRANSFER_INNERS]);

/*
 * These return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with the reason in test.why. Lock held.
 */

/** Map both sides, write, compare. */
int mca_btl_umr_transfer_run(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test);

/** Write all of one buffer to another, without mkeys. Creates and destroys a queue pair. */
int mca_btl_umr_transfer_plain(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test);

/** Invalidate an mkey, and verify that the target's key is refused. */
int mca_btl_umr_transfer_refuse_invalidated(mca_btl_umr_transfer_t *test, mca_btl_umr_mkey_t *mkey,
                                            const char *refusing);

/** Map the target's mkey with another tag, and verify that the old key is refused. */
int mca_btl_umr_transfer_refuse_old_tag(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test);

/** As refuse_old_tag, for an mkey below the target's. */
int mca_btl_umr_transfer_refuse_old_tag_below(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test);

/**
 * The end of a test: leaves a usable queue pair and no memory in use.
 *
 * @param[in] rc  result of the test
 *
 * @return rc; OPAL_ERROR with why_not set: there is no new queue pair
 */
int mca_btl_umr_transfer_end(mca_btl_umr_hca_t *hca, mca_btl_umr_transfer_t *test, int rc);

END_C_DECLS

#endif /* MCA_BTL_UMR_TRANSFER_H */
