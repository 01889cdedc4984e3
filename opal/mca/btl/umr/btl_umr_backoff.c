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
 * Back-off after failures of queue pairs, and after refusals of the device.
 */

#include "opal_config.h"

#include <limits.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_backoff.h"

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

bool mca_btl_umr_rebuild_failed(mca_btl_umr_rebuild_t *rebuild, uint32_t done)
{
    if (MCA_BTL_UMR_REBUILD_PROVEN <= done) {
        rebuild->tries = 0;
    }
    rebuild->lacked = 0;
    if (mca_btl_umr_params.rebuilds < rebuild->tries) {
        return false; /* reported before */
    }
    ++rebuild->tries;
    return 0 < mca_btl_umr_params.rebuilds && mca_btl_umr_params.rebuilds < rebuild->tries;
}

void mca_btl_umr_rebuild_later(mca_btl_umr_rebuild_t *rebuild)
{
    rebuild->tries = 0 < rebuild->tries ? rebuild->tries : 1;
    rebuild->lacked = 0;
}

bool mca_btl_umr_rebuild_due(mca_btl_umr_rebuild_t *rebuild)
{
    unsigned int patience;

    if (0 == rebuild->tries || mca_btl_umr_params.rebuilds < rebuild->tries) {
        return false;
    }
    patience = MCA_BTL_UMR_REBUILD_PATIENCE << (rebuild->tries - 1);
    if (patience > rebuild->lacked) {
        ++rebuild->lacked;
    }
    return patience <= rebuild->lacked;
}
