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
 * Memory that its owner may free before the HCA reports completion.
 */

#ifndef MCA_BTL_UMR_LOOSE_H
#define MCA_BTL_UMR_LOOSE_H

#include "opal/mca/btl/umr/btl_umr_mr.h"

BEGIN_C_DECLS

void mca_btl_umr_memory_let_go(mca_btl_umr_memory_t *memory);

/** End of a use that the cache does not count. Lock held. */
void mca_btl_umr_loose_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg);

END_C_DECLS

#endif /* MCA_BTL_UMR_LOOSE_H */
