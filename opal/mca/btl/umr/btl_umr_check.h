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
 * Invariants of an HCA that hold whenever its lock is free: counters agree with lists. The tests
 * enable the checks by btl_umr_check. A violation aborts the process and prints its name. No cost
 * when disabled, since the checks run in a separate progress function.
 */

#ifndef MCA_BTL_UMR_CHECK_H
#define MCA_BTL_UMR_CHECK_H

#include "opal/mca/btl/umr/btl_umr.h"

BEGIN_C_DECLS

/** The first invariant of an HCA that does not hold; NULL: all hold. Lock held. */
const char *mca_btl_umr_hca_check(const mca_btl_umr_hca_t *hca);

/** Check all open HCAs, and abort the process on a violation. Lock held. */
void mca_btl_umr_check(void);

/**
 * Enable checks at the interval that the parameter sets, in passes of progress. No effect if the
 * parameter is 0.
 */
void mca_btl_umr_check_start(void);
void mca_btl_umr_check_stop(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_CHECK_H */
