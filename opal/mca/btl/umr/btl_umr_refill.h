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
 * The helper thread that creates mkeys before the pool is empty. All with the lock held.
 */

#ifndef MCA_BTL_UMR_REFILL_H
#define MCA_BTL_UMR_REFILL_H

#include "opal/mca/btl/umr/btl_umr_mkey.h"

BEGIN_C_DECLS

/** State shared by the helper thread and the users of the HCA. */
typedef struct mca_btl_umr_refill_shared_t {
    pthread_mutex_t lock; /**< protects all but made and error */
    pthread_cond_t requested;
    pthread_cond_t quiet;     /**< signalled when busy becomes false */
    bool stop;                /**< the thread must end */
    bool busy;                /**< an mkey is being created */
    size_t todo;              /**< further mkeys to create */
    uint32_t entries;         /**< of each mkey */
    bool update_tag;          /**< of each mkey */
    mca_btl_umr_mkey_t *made; /**< not fetched yet; the helper pushes one, users take all */
    int error;                /**< errno of a failed creation; set after all that succeeded */
} mca_btl_umr_refill_shared_t;

/** One helper per HCA. */
typedef struct mca_btl_umr_refill_t {
    size_t low;     /**< free mkeys of a role below which more are requested; 0: never */
    size_t pending; /**< requested and not fetched: count + pending never exceeds max */
    bool running;
    pthread_t thread;
    mca_btl_umr_refill_shared_t shared;
} mca_btl_umr_refill_t;

/** Called for the memory of each HCA. */
void mca_btl_umr_refill_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_refill_destruct(mca_btl_umr_hca_t *hca);

/** Enable requests after the HCA is up. The first request starts the thread. */
void mca_btl_umr_refill_start(mca_btl_umr_hca_t *hca);

/** Fetch the created mkeys, and request more if too few are free. */
void mca_btl_umr_refill(mca_btl_umr_hca_t *hca);

/**
 * Cancel requests that are not begun, wait for the mkey that is being created, and fetch all.
 * Nothing is pending afterwards.
 */
void mca_btl_umr_refill_halt(mca_btl_umr_hca_t *hca);

/** The device refused another mkey of the pool (@p err is its errno): set the limit. */
void mca_btl_umr_mkeys_limit(mca_btl_umr_hca_t *hca, int err);

/** As mca_btl_umr_refill_halt, and the thread ends. */
void mca_btl_umr_refill_stop(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_REFILL_H */
