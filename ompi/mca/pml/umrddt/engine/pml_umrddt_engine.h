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
 * The receiver's engine: services for schemes (pml_umrddt_scheme.h), which run only in progress,
 * and functions for the other layers.
 *
 * A scheme ends a message by exactly one of recv_done, recv_over and recv_lost, or gives it up by
 * recv_next or recv_by_base. After any of these calls the request may be freed.
 */

#ifndef MCA_PML_UMRDDT_ENGINE_H
#define MCA_PML_UMRDDT_ENGINE_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/* pml_umrddt_recv_rndv.c: from the match to completion */

/** All data has arrived: release resources and complete, with an error if it was truncated. */
void mca_pml_umrddt_recv_done(mca_pml_umrddt_recv_t *recv);

/** End like recv_done, but with @p error for the application. */
void mca_pml_umrddt_recv_over(mca_pml_umrddt_recv_t *recv, int error);

/** The data cannot be received: release resources and complete with an error. */
void mca_pml_umrddt_recv_lost(mca_pml_umrddt_recv_t *recv);

/** Release the layout and what the scheme holds for this receive. Withdraws replies that the base
 * PML has not accepted yet, except critical ones. */
void mca_pml_umrddt_recv_release(mca_pml_umrddt_recv_t *recv);

/**
 * Start the next candidate. If a scheme carries the message, it gives up: no write of the sender
 * can arrive any more, and the sender waits for a reply. The waits of recv are cancelled first.
 */
void mca_pml_umrddt_recv_next(mca_pml_umrddt_recv_t *recv);

/** Fall back to the base PML. @p reason: the counter of the reason */
void mca_pml_umrddt_recv_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** Reset the fields of a new message: of a record that was matched, or of a part. */
void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv);

/** Release the number of an expected FIN, if there is one. */
static inline void mca_pml_umrddt_recv_forget_fin(mca_pml_umrddt_recv_t *recv)
{
    if (0 != recv->fin) {
        mca_pml_umrddt_fin_give(&mca_pml_umrddt.fins, recv->fin);
        recv->fin = 0;
    }
}

/** Initialize a reply to an envelope; fields after the reply kind are 0. And send it. */
void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts,
                               mca_pml_umrddt_reply_kind_t reply_kind,
                               mca_pml_umrddt_reply_t *reply);
int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply);

/** Returns true if the sender tests its completion flag and no reply was announced. */
static inline bool mca_pml_umrddt_recv_is_flagged(const mca_pml_umrddt_recv_t *recv)
{
    return 0 != (MCA_PML_UMRDDT_DONE_FLAG & recv->rts.schemes) && !recv->announced;
}

/** Announce a reply by the base PML with the completion flag, if the sender tests it. Idempotent.
 */
void mca_pml_umrddt_recv_announce(mca_pml_umrddt_recv_t *recv);

/* For the other layers */

/** Hand a receive to progress. Its envelope is in recv->rts, source and tag in recv->status. */
void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv);

/** FIN handler of the HCA. */
void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/**
 * Wait for recv->data and complete the receive with its status. The base PML's request recv->data
 * receives into the user's buffer or into recv->overflow. From any thread.
 */
void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv);

/** A NACK arrived: the sender failed after our CTS. */
void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_nack_header_t *fail);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_ENGINE_H */
