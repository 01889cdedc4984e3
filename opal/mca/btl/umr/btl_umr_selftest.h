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
 * The self-test of features for which the device has no query.
 */

#ifndef MCA_BTL_UMR_SELFTEST_H
#define MCA_BTL_UMR_SELFTEST_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/**
 * Gather and scatter some bytes through two mkeys of full length, compare every byte, and verify
 * that an invalidated key is refused. Then do the same with each capability tier, and disable tiers
 * that fail. Each wait is at most ten seconds.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set
 */
int mca_btl_umr_selftest(mca_btl_umr_hca_t *hca);

/**
 * The test of an HCA without mkeys: one write to itself.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set
 */
int mca_btl_umr_selftest_plain(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_SELFTEST_H */
