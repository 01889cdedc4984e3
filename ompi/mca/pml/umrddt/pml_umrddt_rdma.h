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
 * What the schemes with RDMA writes between the buffers of both sides share, at the receiver
 * (pml_umrddt_rdma_recv.c) and at the sender (pml_umrddt_rdma_send.c). Of progress only, but for
 * what an envelope needs.
 */

#ifndef MCA_PML_UMRDDT_RDMA_H
#define MCA_PML_UMRDDT_RDMA_H

#include "pml_umrddt_engine.h"
#include "pml_umrddt_scheme.h"

BEGIN_C_DECLS

/** These schemes cannot start, for a reason that they share. @return OMPI_ERR_NOT_AVAILABLE */
int mca_pml_umrddt_rdma_refuse(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** True if the HCA may write to the receive buffer, as far as is known without trying. */
static inline bool mca_pml_umrddt_rdma_can_recv(mca_pml_umrddt_recv_t *recv)
{
    return OPAL_LIKELY(!mca_pml_umrddt_on_gpu(&recv->where))
           || mca_pml_umrddt_hca_takes(recv->peer, &recv->where);
}

/**
 * Begin: the endpoint is connected, and the layout is looked up.
 *
 * @param[in] cts  sends the CTS of the scheme when there is a credit; OMPI_SUCCESS or an error
 *
 * @return OMPI_SUCCESS, or as mca_pml_umrddt_rdma_refuse
 */
static inline int mca_pml_umrddt_rdma_begin(mca_pml_umrddt_recv_t *recv,
                                            int (*cts)(mca_pml_umrddt_recv_t *))
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    if (NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(recv->peer, &recv->endpoint)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    }
    /* the sender has chosen the HCA */
    recv->endpoint = mca_pml_umrddt.hca->endpoint_at(recv->endpoint, &rts->address);
    if (OPAL_SUCCESS != mca_pml_umrddt.hca->endpoint_connect(recv->endpoint, &rts->address)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    }
    if (!mca_pml_umrddt_recv_has_layout(recv)) {
        return mca_pml_umrddt_rdma_refuse(recv, &mca_pml_umrddt.counters.fallback_other);
    }
    recv->cts = cts;
    return OMPI_SUCCESS;
}

/** Register the buffer, recv->memory, unless it is. @return false: not possible */
bool mca_pml_umrddt_rdma_register(mca_pml_umrddt_recv_t *recv);

/** What the CTS names is there: tell the sender to write as soon as its FIN would find a receive.
 */
void mca_pml_umrddt_recv_ask_credit(mca_pml_umrddt_recv_t *recv);

/** The FIN of a round has come: its number is free. @return false: none was expected, which is
 * counted */
static inline bool mca_pml_umrddt_rdma_fin(mca_pml_umrddt_recv_t *recv)
{
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_RECV_FIN != recv->state)) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        return false;
    }
    mca_pml_umrddt_fin_give(&mca_pml_umrddt.fins, recv->fin);
    recv->fin = 0;
    return true;
}

/** The last FIN has come, to memory of a device: the GPU has to be told. */
void mca_pml_umrddt_rdma_flush(mca_pml_umrddt_recv_t *recv);

/** The last FIN has come. A GPU may have to be told before it sees what the HCA wrote. */
static inline void mca_pml_umrddt_rdma_landed(mca_pml_umrddt_recv_t *recv)
{
    if (OPAL_LIKELY(!mca_pml_umrddt_on_device(&recv->where))) {
        mca_pml_umrddt_recv_done(recv);
    } else {
        mca_pml_umrddt_rdma_flush(recv);
    }
}

/** As the member of a scheme. */
mca_pml_umrddt_nack_t mca_pml_umrddt_rdma_nack(mca_pml_umrddt_recv_t *recv,
                                               const mca_pml_umrddt_fail_t *fail);

/** Give back the number, the keys and the memory; the place at the sender is the scheme's. */
static inline void mca_pml_umrddt_rdma_release(mca_pml_umrddt_recv_t *recv)
{
    if (0 != recv->fin) {
        mca_pml_umrddt_fin_give(&mca_pml_umrddt.fins, recv->fin);
        recv->fin = 0;
    }
    if (NULL != recv->keyset) {
        mca_pml_umrddt.hca->keyset_release(recv->keyset);
        recv->keyset = NULL;
    }
    if (NULL != recv->memory) {
        mca_pml_umrddt.hca->memory_release(recv->memory);
        recv->memory = NULL;
    }
}

/* pml_umrddt_umr_recv.c */

/**
 * Begin a round, of a stripe too: name keys to the sender, from recv->position to recv->total, by
 * recv->endpoint: recv->keyset, or others, over recv->memory if that is there already.
 */
void mca_pml_umrddt_recv_next_round(mca_pml_umrddt_recv_t *recv);

/** Make a record the stripe of a message: as if it had started. */
void mca_pml_umrddt_umr_stripe(mca_pml_umrddt_recv_t *stripe, uint64_t chunk);

/* pml_umrddt_rdma_send.c */

/** Register what the keys are mapped over, send->memory, unless it is. @return false: not possible
 */
bool mca_pml_umrddt_rdma_has_memory(mca_pml_umrddt_send_t *send);

/** What a CTS without mkeys needs: send->endpoint connected, send->memory. @return false: this
 * side has it not */
bool mca_pml_umrddt_send_ready(mca_pml_umrddt_send_t *send, const mca_btl_umr_address_t *address);

/* pml_umrddt_umr_send.c, pml_umrddt_send_direct.c: as the member of a scheme */
void mca_pml_umrddt_umr_reply(mca_pml_umrddt_send_t *send, size_t length);
void mca_pml_umrddt_direct_reply(mca_pml_umrddt_send_t *send, size_t length);

/** As mca_pml_umrddt_umr_proposal, the first time. */
uint64_t mca_pml_umrddt_umr_propose(opal_iov_cache_layout_t *layout);

/** The sender's proposal of a chunk for its layout; worked out once a layout. Any thread. */
static inline uint64_t mca_pml_umrddt_umr_proposal(opal_iov_cache_layout_t *layout)
{
    /* threads find the same */
    uint64_t value = __atomic_load_n(&layout->memo[MCA_PML_UMRDDT_MEMO_PROPOSAL], __ATOMIC_RELAXED);

    return OPAL_LIKELY(0 != value) ? value : mca_pml_umrddt_umr_propose(layout);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RDMA_H */
