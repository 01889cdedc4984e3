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
 * Services shared by the RDMA schemes, which write between the buffers of both sides. Read
 * pml_umrddt_scheme.h first. Progress thread only, except functions for the envelope.
 */

#ifndef MCA_PML_UMRDDT_RDMA_H
#define MCA_PML_UMRDDT_RDMA_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

BEGIN_C_DECLS

/** Data of a receive by an RDMA scheme. */
typedef struct mca_pml_umrddt_rdma_recv_t {
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    int (*cts)(mca_pml_umrddt_recv_t *recv); /**< sends the CTS of the scheme */
    uint64_t chunk;
    uint32_t slot;
    bool placed; /**< a cache slot of the sender is in use for this round: of its rkey sets if there
                    is a keyset, else of its layouts */
} mca_pml_umrddt_rdma_recv_t;

/** Give up all RDMA schemes for a common reason. @return OMPI_ERR_NOT_AVAILABLE */
int mca_pml_umrddt_rdma_refuse(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** Returns true if the HCA may write to the receive buffer, as far as known without a registration.
 */
static inline bool mca_pml_umrddt_rdma_can_recv(mca_pml_umrddt_recv_t *recv)
{
    return OPAL_LIKELY(!opal_umrddt_gpu_on_gpu(&recv->where))
           || mca_pml_umrddt_hca_takes(recv->peer, &recv->where);
}

/** Returns true if a message for which umr and direct are possible uses direct. Reads recv->layout,
 * which must be set. At most once for each message. */
static inline bool mca_pml_umrddt_rule_direct(const mca_pml_umrddt_recv_t *recv)
{
    const opal_umrddt_rule_message_t message = {.layout = recv->layout->id,
                                                .buffer = (uintptr_t) recv->buf,
                                                .total = recv->total,
                                                .from_pieces = recv->rts.pieces,
                                                .to_pieces = recv->layout->iov_count,
                                                .write_pieces = recv->rts.write_pieces,
                                                .writes = mca_pml_umrddt.params.direct_writes,
                                                .run = mca_pml_umrddt.params.direct_run};

    /* Without the mkey cache every message maps mkeys, so the first one gives no information. */
    return mca_pml_umrddt.params.mkey_cache
           && opal_umrddt_rule_direct(mca_pml_umrddt.received, &message);
}

/** Rule of umr: use mkeys, unless the first message of a layout and buffer is cheaper without them.
 */
static inline bool mca_pml_umrddt_umr_can_recv(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_rdma_can_recv(recv)
           && (0 == (MCA_PML_UMRDDT_BIT_DIRECT & recv->candidates)
               || !mca_pml_umrddt_recv_has_layout(recv) || !mca_pml_umrddt_rule_direct(recv));
}

/**
 * Begin: connect the endpoint and look up the layout.
 *
 * @param[in] cts  sends the scheme's CTS when a credit is available; returns OMPI_SUCCESS or an
 *                 error
 *
 * @return OMPI_SUCCESS, or as mca_pml_umrddt_rdma_refuse
 */
static inline int mca_pml_umrddt_rdma_begin(mca_pml_umrddt_recv_t *recv,
                                            int (*cts)(mca_pml_umrddt_recv_t *))
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    if (NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(recv->peer, &recv->endpoint)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    }
    /* the sender has selected its HCA */
    recv->endpoint = mca_pml_umrddt.hca->endpoint_at(recv->endpoint, &rts->address);
    if (OPAL_SUCCESS != mca_pml_umrddt.hca->endpoint_connect(recv->endpoint, &rts->address)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    }
    if (!mca_pml_umrddt_recv_has_layout(recv)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_other);
    }
    rdma->cts = cts;
    return OMPI_SUCCESS;
}

/** Register the buffer unless it is registered. @return false: not possible */
bool mca_pml_umrddt_rdma_register(mca_pml_umrddt_recv_t *recv);

/** The CTS is ready: send it as soon as a receive for its FIN is available. */
void mca_pml_umrddt_recv_request_credit(mca_pml_umrddt_recv_t *recv);

/** Keys, or credits, for which receives wait while others have them. */
typedef struct mca_pml_umrddt_shortage_t {
    uint64_t looked; /**< time of the last look, nanoseconds */
    uint64_t
        lasted; /**< progress since one was given out, nanoseconds; who gives one sets it to 0 */
} mca_pml_umrddt_shortage_t;

/** A receive finds none. @return true: none was given out for long */
bool mca_pml_umrddt_rdma_shortage(mca_pml_umrddt_shortage_t *shortage);

/**
 * A receive finds none, and waits in its present state. If none was given out for long, receives in
 * this state fall back to the base PML, unless their senders have others under way: the holders may
 * be processes that do not call MPI.
 *
 * @return true: this receive has fallen back, too
 */
bool mca_pml_umrddt_rdma_starves(mca_pml_umrddt_shortage_t *shortage,
                                 const mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** End the use of the cache slot at the sender. @p well: the FIN of the round has arrived */
static inline void mca_pml_umrddt_rdma_slot_end(mca_pml_umrddt_recv_t *recv, bool well)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (rdma->placed) {
        rdma->placed = false;
        mca_pml_umrddt_slot_end(NULL != rdma->keyset ? &recv->peer->sets_there
                                                     : &recv->peer->flats_there,
                                rdma->slot, well);
    }
}

/** The FIN of a round has arrived: release its number, and the cache slot at the sender. @return
 * false: a protocol error */
static inline bool mca_pml_umrddt_rdma_fin(mca_pml_umrddt_recv_t *recv)
{
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_RECV_FIN != recv->state)) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        return false;
    }
    umrddt_number_give(&mca_pml_umrddt.fins, recv->fin);
    recv->fin = 0;
    mca_pml_umrddt_rdma_slot_end(recv, true);
    return true;
}

/** Fall back to the base PML: flush GPU memory first if a round may have written it. @p reason: the
 * counter of the reason */
void mca_pml_umrddt_rdma_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** Flush the writes to a buffer in GPU memory; then complete, or fall back for @p reason if it is
 * not NULL. */
void mca_pml_umrddt_rdma_flush(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** The last FIN has arrived. Writes to GPU memory must be flushed before the GPU sees them. */
static inline void mca_pml_umrddt_rdma_landed(mca_pml_umrddt_recv_t *recv)
{
    if (OPAL_LIKELY(!opal_umrddt_gpu_on_device(&recv->where))) {
        mca_pml_umrddt_recv_end(recv, MPI_SUCCESS);
    } else {
        mca_pml_umrddt_rdma_flush(recv, NULL);
    }
}

/** Member of the scheme. */
mca_pml_umrddt_nack_t mca_pml_umrddt_rdma_nack(mca_pml_umrddt_recv_t *recv,
                                               const mca_pml_umrddt_nack_header_t *fail);

/** Release the FIN number, the cache slot at the sender, the keys and the registered memory: member
 * of the schemes. */
void mca_pml_umrddt_rdma_release(mca_pml_umrddt_recv_t *recv);

/* The sender */

/** Offer an endpoint: set send->endpoint to the working endpoint to the receiver that is nearest to
 * the buffer, and send->rts.address to its address. Both processes have an HCA. Any thread. @return
 * false: there is none, and send->endpoint is NULL */
bool mca_pml_umrddt_rdma_offer_endpoint(mca_pml_umrddt_send_t *send);

/* The functions of the group, members of the scheme umr. */
uint16_t mca_pml_umrddt_rdma_open(void);
bool mca_pml_umrddt_rdma_reaches(const mca_pml_umrddt_peer_t *peer);
mca_pml_umrddt_can_send_t mca_pml_umrddt_rdma_can_send(const mca_pml_umrddt_comm_t *comm,
                                                       const mca_pml_umrddt_peer_t *peer,
                                                       const opal_umrddt_gpu_where_t *where,
                                                       size_t size);
void mca_pml_umrddt_rdma_offer(mca_pml_umrddt_send_t *send);

/** Register the memory of the keys, unless send->memory is set. @return false: not possible */
bool mca_pml_umrddt_rdma_has_memory(mca_pml_umrddt_send_t *send);

/** Check that a receive has what RDMA writes need, before and after its CTS. @p named: it holds the
 * memory or rkeys that its CTS names. @return as the member check of the schemes */
const char *mca_pml_umrddt_rdma_check(const mca_pml_umrddt_recv_t *recv, bool named);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RDMA_H */
