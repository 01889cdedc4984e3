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

/** Set the first mapping of a keyset to be posted. */
void mca_btl_umr_keyset_prepare(mca_btl_umr_keyset_object_t *keyset);

/** Append a prepared keyset to the waiting ones, and post as far as there is room. Lock held. */
void mca_btl_umr_keyset_post(mca_btl_umr_keyset_object_t *keyset);

/**
 * Forget the mappings of an abandoned keyset that are not posted. Lock held.
 *
 * @return true if none was posted: the keyset is in no queue
 */
bool mca_btl_umr_keyset_withdraw(mca_btl_umr_keyset_object_t *keyset);

/** Post waiting mappings and invalidations, as far as there is room. Lock held. */
void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca);

/** Poll the completions of mappings. @return number of events. Lock held. */
int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca);

/** The queue pair for mappings failed: end all keysets that wait for it with an error. Lock held.
 */
void mca_btl_umr_keysets_fail(mca_btl_umr_hca_t *hca);

/**
 * A message needs keys on an HCA whose queue pair for mappings may have failed: rebuild it if due.
 * Lock held.
 *
 * @return false: no key now
 */
bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_POST_H */
