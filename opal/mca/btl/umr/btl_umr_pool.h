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
 */

#ifndef MCA_BTL_UMR_POOL_H
#define MCA_BTL_UMR_POOL_H

#include "opal/mca/btl/umr/btl_umr_mkey.h"
#include "opal/mca/btl/umr/btl_umr_backoff.h"

BEGIN_C_DECLS

/** The mkeys and the queue pair for their mappings. */
typedef struct mca_btl_umr_mkeys_t {
    struct ibv_cq *cq;
    mca_btl_umr_sq_t sq;
    uint32_t entries;      /**< entries of every mkey */
    uint32_t inline_bytes; /**< inline bytes for the entries in a slot */
    bool raw;              /**< the queue pair accepts raw work requests */
    int self_error;        /**< errno of the connection to the port itself; 0: it is connected */
    opal_list_t taken;     /**< held by a role */
    opal_list_t idle;      /**< free */
    opal_list_t invalid;   /**< released, invalidation not posted yet */
    size_t count;          /**< existing mkeys */
    mca_btl_umr_bound_t bound;
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    mca_btl_umr_rebuild_t rebuild; /**< of the queue pair */
} mca_btl_umr_mkeys_t;

/**
 * Create the queue pair and the first mkeys. Lock held.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  the device has no UMR; the reason is in why_not
 * @retval OPAL_ERR_NOT_AVAILABLE  the device has no memory for it; why_not is set
 */
int mca_btl_umr_mkeys_start(mca_btl_umr_hca_t *hca);

/** Destroy all mkeys and the queue pair. Lock held. */
void mca_btl_umr_mkeys_stop(mca_btl_umr_hca_t *hca);

/** Create a queue pair for mappings, connected to itself. 0 or errno. */
int mca_btl_umr_mkeys_qp_start(mca_btl_umr_hca_t *hca);

/** The same in place of a failed one, with the same slots. 0 or errno. */
int mca_btl_umr_mkeys_qp_anew(mca_btl_umr_hca_t *hca);

/**
 * Take an mkey for a role. The pool grows if the role's half is not used up. Changes the tag of the
 * mkey.
 *
 * @param[in] entries  minimum: up to mkeys.entries from the pool, more from the long mkeys
 *
 * @return NULL: none available now
 */
mca_btl_umr_mkey_t *mca_btl_umr_mkey_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries);

/**
 * Release an mkey. A REMOTE mkey first waits until its invalidation is posted
 * (mca_btl_umr_keysets_post). On a failed HCA no invalidation can be posted, so the mkey is
 * destroyed; so is an mkey whose mapping failed.
 */
void mca_btl_umr_mkey_give(mca_btl_umr_mkey_t *mkey);

/** Destroy all free mkeys. Lock held. The queue pair for mappings is in ERR or destroyed. */
void mca_btl_umr_mkeys_destroy_idle(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_POOL_H */
