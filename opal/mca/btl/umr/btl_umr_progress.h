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
 * Progress of all HCAs in use.
 */

#ifndef MCA_BTL_UMR_PROGRESS_H
#define MCA_BTL_UMR_PROGRESS_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

int mca_btl_umr_progress(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_PROGRESS_H */
