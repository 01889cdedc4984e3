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
 * Keysets for the users of the HCA: map, look up, release.
 */

#ifndef MCA_BTL_UMR_MAP_H
#define MCA_BTL_UMR_MAP_H

#include "opal/mca/btl/umr/btl_umr_keyset.h"

BEGIN_C_DECLS

int mca_btl_umr_keyset_map(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t *memory,
                           uint64_t chunk, uint64_t start, uint64_t end, size_t max_keys,
                           mca_btl_umr_done_fn_t done, void *context,
                           mca_btl_umr_keyset_t **keyset);
mca_btl_umr_keyset_t *mca_btl_umr_keyset_lookup(mca_btl_umr_endpoint_t *endpoint,
                                                mca_btl_umr_role_t role, void *buffer,
                                                const opal_iov_cache_layout_t *layout,
                                                uint64_t chunk, uint64_t start, uint64_t end,
                                                size_t max_keys);
void mca_btl_umr_keyset_release(mca_btl_umr_keyset_t *keyset);

/**
 * Take the next keyset whose user must be notified. If its status is good it becomes ready here.
 * Lock held.
 *
 * @return false: none
 */
bool mca_btl_umr_keysets_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done,
                                   void **context, int *status);

/** Free every keyset, used or not. Lock held. */
void mca_btl_umr_keysets_stop(mca_btl_umr_hca_t *hca);

/** See the table's keyset_keep. */
void mca_btl_umr_keyset_keep(mca_btl_umr_keyset_t *keyset);

END_C_DECLS

#endif /* MCA_BTL_UMR_MAP_H */
