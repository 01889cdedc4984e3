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
 * The record, on this machine, of self-tests that a device has passed.
 */

#ifndef MCA_BTL_UMR_STAMP_H
#define MCA_BTL_UMR_STAMP_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/** Name of a file; empty: there can be none. */
typedef struct mca_btl_umr_stamp_t {
    char path[256];
} mca_btl_umr_stamp_t;

/**
 * True if a process of this user has set the stamp since the machine was booted: for this device,
 * with this firmware, and for the same tiers.
 */
bool mca_btl_umr_stamp_find(const mca_btl_umr_hca_t *hca, mca_btl_umr_stamp_t *stamp);

/**
 * Set the stamp that was not found, unless a tier has been disabled since: its tests are to run
 * again. A failure has no effect but that all run again.
 */
void mca_btl_umr_stamp_set(const mca_btl_umr_hca_t *hca, const mca_btl_umr_stamp_t *stamp);

END_C_DECLS

#endif /* MCA_BTL_UMR_STAMP_H */
