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
 * What holds of an HCA whenever nobody is at work on it: its books agree with its lists. Looked at
 * if btl_umr_check is set, as it is in the tests, and then a process in which one does not hold
 * ends at once, with its name. Costs nothing otherwise: it is a progress function of its own.
 */

#ifndef MCA_BTL_UMR_CHECK_H
#define MCA_BTL_UMR_CHECK_H

#include "opal/mca/btl/umr/btl_umr.h"

BEGIN_C_DECLS

/** The first invariant of an HCA that does not hold; NULL: all do. Lock held. */
const char *mca_btl_umr_hca_check(const mca_btl_umr_hca_t *hca);

/** Look at all HCAs that are open, and end the process if one is not as it must be. Lock held. */
void mca_btl_umr_check(void);

/** Look from now on, in each so many passes of progress; or not any more. Nothing if it is not
 * wanted. */
void mca_btl_umr_check_start(void);
void mca_btl_umr_check_stop(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_CHECK_H */
