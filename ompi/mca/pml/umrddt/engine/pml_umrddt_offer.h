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
 * Builds the offer of an envelope: the schemes that the sender can use and their fields. Inline,
 * for its only caller. Any thread.
 */

#ifndef MCA_PML_UMRDDT_OFFER_H
#define MCA_PML_UMRDDT_OFFER_H

#include <string.h>

#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

BEGIN_C_DECLS

/**
 * Get the schemes that write to this peer by RDMA; 0: none, or the HCA cannot access the buffer.
 */
static inline uint16_t mca_pml_umrddt_offer_hca(mca_pml_umrddt_send_t *send)
{
    uint16_t schemes = MCA_PML_UMRDDT_BITS_HCA & mca_pml_umrddt.schemes & send->comm->schemes;

    send->endpoint = NULL;
    if (0 == schemes || NULL == mca_pml_umrddt.hca || !send->peer->has_hca
        || (mca_pml_umrddt_on_device(&send->where)
            && !mca_pml_umrddt_hca_wanted(send->comm, send->peer, &send->where, send->layout))
        || OPAL_UMRDDT_GPU_MANAGED == send->where.memory.kind
        || !mca_pml_umrddt_send_endpoint(send)) {
        return 0;
    }
    return schemes;
}

/**
 * Offer all schemes that are possible. Sets send->rts.schemes (0: none), the fields of the envelope
 * that do not depend on the request id, and send->endpoint.
 */
static inline void mca_pml_umrddt_offer(mca_pml_umrddt_send_t *send)
{
    const uint16_t by_hca = mca_pml_umrddt_offer_hca(send);

    send->rts.schemes = by_hca;
    if (0 == by_hca || !mca_pml_umrddt_on_device(&send->where)
        || mca_pml_umrddt_ipc_wanted(send->comm, send->peer, &send->where)) {
        mca_pml_umrddt_ipc_offer(send);
    } else {
        mca_pml_umrddt_ipc_offer_none(send);
    }
    mca_pml_umrddt_pack_offer(send);
}

/** Set the fields that depend on send->slot and send->rts.seq. */
static inline void mca_pml_umrddt_offer_rest(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;
    const bool by_hca = 0 != (MCA_PML_UMRDDT_BITS_HCA & rts->schemes);

    if (0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes) && OPAL_UMRDDT_DONE_FLAGS > send->slot
        && __atomic_load_n(&send->peer->rings, __ATOMIC_ACQUIRE)
        && mca_pml_umrddt_send_done_flag(send)) {
        rts->schemes |= MCA_PML_UMRDDT_DONE_FLAG;
    }
    rts->chunk = 0 != (MCA_PML_UMRDDT_BIT_UMR & rts->schemes)
                     ? mca_pml_umrddt_umr_proposal(send->layout)
                     : 0;
    rts->write_pieces = by_hca ? (uint16_t) mca_pml_umrddt.caps->write_pieces : 1;
    memset(&rts->address, 0, sizeof(rts->address));
    if (by_hca || NULL != send->endpoint) {
        mca_pml_umrddt.hca->endpoint_address(send->endpoint, &rts->address);
    }
    if (by_hca && OPAL_UNLIKELY(mca_pml_umrddt.stripe_from <= rts->length)
        && !mca_pml_umrddt_on_device(&send->where)) {
        mca_pml_umrddt_stripes_offer(send);
    }
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_OFFER_H */
