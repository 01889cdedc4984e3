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

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

struct mca_btl_umr_walk_t;

/** A put in progress. */
typedef struct mca_btl_umr_put_t {
    opal_list_item_t super;
    bool direct;                     /**< direct put: walk instead of keyset and indices */
    struct mca_btl_umr_walk_t *walk; /**< created by the first put that needs it, and reused */
    const mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;            /**< a copy; the regions of a direct put */
    size_t capacity;                      /**< of remote */
    size_t local_index, remote_index;     /**< keys of the next write */
    uint64_t local_offset, remote_offset; /**< offsets in them */
    uint64_t left;                        /**< bytes not posted yet */
    bool started;                         /**< at least one write was posted */
    uint32_t last_seq;                    /**< number of the last write posted */
    bool has_fin;
    uint32_t fin;
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
} mca_btl_umr_put_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_put_t);

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

/** Move the finished puts to hca.puts_done. Lock held. */
void mca_btl_umr_puts_sweep(mca_btl_umr_endpoint_t *endpoint);

/** As mca_btl_umr_keysets_next_done, for puts. Lock held. */
bool mca_btl_umr_puts_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done, void **context,
                                int *status);

END_C_DECLS

#endif /* MCA_BTL_UMR_PUT_H */
