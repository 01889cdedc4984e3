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
 * Mappings of keysets: their work requests and completions.
 */

#ifndef MCA_BTL_UMR_POST_H
#define MCA_BTL_UMR_POST_H

#include "opal/mca/btl/umr/btl_umr_keyset.h"

BEGIN_C_DECLS

/** Post waiting mappings and invalidations, as far as there is room. Lock held. */
void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca);

/** Poll the completions of mappings. @return number of events. Lock held. */
int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca);

/**
 * A message needs keys on an HCA whose queue pair for mappings may have failed: rebuild it if due.
 * Lock held.
 *
 * @return false: no key now
 */
bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_POST_H */
