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

#include <arpa/inet.h>

#include "opal/mca/btl/umr/btl_umr_params.h"
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

/** Build the write without bytes that carries the FIN of a put. @return 0 */
uint64_t mca_btl_umr_put_notify(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put);

/**
 * Begin the next write of a put; the caller appends the list of memory, of @p length bytes.
 *
 * The last write carries the FIN as immediate data if it is shorter than btl_umr_notify_size. HCAs
 * keep the packets of such a write in order. A longer one is a plain write, whose packets a fabric
 * with adaptive routing spreads over its paths, and the FIN follows in a write of its own
 * (mca_btl_umr_put_notify): in the same batch, or when the send queue has room. A queue pair works
 * in order, so the FIN arrives after all bytes, and not at all if a write fails.
 */
static inline void mca_btl_umr_put_write(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                                         uint32_t rkey, uint64_t addr, uint64_t length)
{
    mca_btl_umr_sq_t *sq = &endpoint->sq;
    bool last = length == put->left, fin = last && put->has_fin;

    put->started = true;
    put->left -= length;
    /* shorter than notify_size; 0 - 1 is longer than every write */
    if (OPAL_LIKELY(fin && length <= mca_btl_umr_params.notify_size - 1)) {
        sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, true, &put->last_seq);
        sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(endpoint->index, put->last_seq);
        ibv_wr_rdma_write_imm(sq->qpx, rkey, addr, htonl(put->fin));
        return;
    }
    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, last && !fin, &put->last_seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(endpoint->index, put->last_seq);
    ibv_wr_rdma_write(sq->qpx, rkey, addr);
    if (fin) {
        put->build = mca_btl_umr_put_notify;
        put->left = 1;
    }
}

/** Post pending writes of an endpoint, as far as there is room. Lock held. */
void mca_btl_umr_puts_post(mca_btl_umr_endpoint_t *endpoint);

END_C_DECLS

#endif /* MCA_BTL_UMR_PUT_H */
