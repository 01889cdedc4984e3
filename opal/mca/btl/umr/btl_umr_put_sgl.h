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
 * Puts without mkeys: writes with scatter/gather lists.
 */

#ifndef MCA_BTL_UMR_PUT_SGL_H
#define MCA_BTL_UMR_PUT_SGL_H

#include "opal/mca/btl/umr/btl_umr_put.h"

BEGIN_C_DECLS

size_t mca_btl_umr_memory_regions(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                                  size_t max);
int mca_btl_umr_put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                           const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context);

END_C_DECLS

#endif /* MCA_BTL_UMR_PUT_SGL_H */
