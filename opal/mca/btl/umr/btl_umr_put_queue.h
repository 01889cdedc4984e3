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
 * The puts of an endpoint, in the order of the calls, and the finished ones.
 */

#ifndef MCA_BTL_UMR_PUT_QUEUE_H
#define MCA_BTL_UMR_PUT_QUEUE_H

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

struct mca_btl_umr_walk_t;

typedef struct mca_btl_umr_put_t mca_btl_umr_put_t;

/** Build the next write of a put; the send queue has room. @return its bytes */
typedef uint64_t (*mca_btl_umr_put_build_fn_t)(mca_btl_umr_endpoint_t *endpoint,
                                               mca_btl_umr_put_t *put);

/** A put in progress. */
struct mca_btl_umr_put_t {
    opal_list_item_t super;
    mca_btl_umr_put_build_fn_t build; /**< NULL: from the keys of a keyset */
    struct mca_btl_umr_walk_t *walk;  /**< of a put without mkeys; kept for the next one */
    const mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;            /**< a copy; the regions of a direct put */
    size_t capacity;                      /**< of remote */
    size_t local_index, remote_index;     /**< keys of the next write */
    uint64_t local_offset, remote_offset; /**< offsets in them */
    uint64_t left;                        /**< bytes not posted yet; 1: only its FIN, if apart */
    bool started;                         /**< at least one write was posted */
    uint32_t last_seq;                    /**< number of the last write posted */
    bool has_fin;
    uint32_t fin;
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
};
OBJ_CLASS_DECLARATION(mca_btl_umr_put_t);

/** Move the finished puts to hca.puts_done. Lock held. */
void mca_btl_umr_puts_sweep(mca_btl_umr_endpoint_t *endpoint);

/** End all puts of an endpoint that has posted none, with OPAL_ERR_TIMEOUT. Lock held. */
void mca_btl_umr_puts_late(mca_btl_umr_endpoint_t *endpoint);

/** As mca_btl_umr_keysets_next_done, for puts. Lock held. */
bool mca_btl_umr_puts_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done, void **context,
                                int *status);

END_C_DECLS

#endif /* MCA_BTL_UMR_PUT_QUEUE_H */
