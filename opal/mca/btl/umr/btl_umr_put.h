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
 * Puts: RDMA writes of one message.
 */

#ifndef MCA_BTL_UMR_PUT_H
#define MCA_BTL_UMR_PUT_H

#include "opal/mca/btl/umr/btl_umr_put_queue.h"

BEGIN_C_DECLS

int mca_btl_umr_put(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
                    const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
                    mca_btl_umr_done_fn_t done, void *context);

/** A put with a copy of the keys, or NULL if out of memory. Lock held. */
mca_btl_umr_put_t *mca_btl_umr_put_new(mca_btl_umr_hca_t *hca, const mca_btl_umr_key_t *remote,
                                       size_t remote_count);

/**
 * Append a put of so many bytes to the endpoint's list, and post as far as there is room. Lock
 * held.
 */
void mca_btl_umr_put_begin(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                           uint64_t length, const uint32_t *fin, mca_btl_umr_done_fn_t done,
                           void *context);

/** Post pending writes of an endpoint, as far as there is room. Lock held. */
void mca_btl_umr_puts_post(mca_btl_umr_endpoint_t *endpoint);

END_C_DECLS

#endif /* MCA_BTL_UMR_PUT_H */
