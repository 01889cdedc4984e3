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
 * Capability tier and mkeys of each window of a layout; capacity of one key.
 */

#ifndef MCA_BTL_UMR_TIERS_H
#define MCA_BTL_UMR_TIERS_H

#include "opal/mca/btl/umr/btl_umr_keyset.h"

BEGIN_C_DECLS

/**
 * Enable strided mappings as far as possible before the self-test; otherwise caps have the reason.
 */
void mca_btl_umr_strided_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_nested_start(mca_btl_umr_hca_t *hca);

/** Compute the capacity of one key for any layout. After the self-test. */
void mca_btl_umr_limits_start(mca_btl_umr_hca_t *hca);

/** Maximum of keys below an indirect key; also at most half of the keys of its role. */
#define MCA_BTL_UMR_NEST_MAX 64

/**
 * Requirements of its self-test: entries of an mkey, and mkeys created at start-up (the self-test
 * must not create more, since that could leave too few for other uses).
 */
#define MCA_BTL_UMR_NEST_LEAST 4
#define MCA_BTL_UMR_NEST_MKEYS 8

/** key_limits of the table. */
void mca_btl_umr_key_limits(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits);

/**
 * Build the next window of a keyset and take its mkeys: the longest window for which mkeys are
 * available. A plain key needs none. Lock held.
 *
 * @param[in]  keyset   its name is set
 * @param[in]  start    begin of the window
 * @param[out] mapping  for mappings; windows below it are added to keyset.inners
 *
 * @return OPAL_SUCCESS, or the errors of mca_btl_umr_keyset_map
 */
int mca_btl_umr_tiers_lower(mca_btl_umr_keyset_object_t *keyset,
                            const opal_iov_cache_layout_t *layout,
                            const mca_btl_umr_memory_t *memory, uint64_t start,
                            mca_btl_umr_mapping_t *mapping);

END_C_DECLS

#endif /* MCA_BTL_UMR_TIERS_H */
