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
 * Services of the sender's engine for schemes (pml_umrddt_scheme.h) and between its own files.
 * pml_umrddt_send_start.c begins a message, pml_umrddt_send_rndv.c handles its replies, and
 * pml_umrddt_send_base.c sends by the base PML. Progress thread only, except for starts.
 */

#ifndef MCA_PML_UMRDDT_SEND_RNDV_H
#define MCA_PML_UMRDDT_SEND_RNDV_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/** Record from the first answer to a message whether the receive buffer is in GPU memory. */
static inline void mca_pml_umrddt_send_landed(const mca_pml_umrddt_send_t *send, bool gpu)
{
    if (OPAL_UNLIKELY(send->probes_memory) && MCA_PML_UMRDDT_SEND_REPLY == send->state
        && 0 == send->position) {
        opal_umrddt_offer_learn(&mca_pml_umrddt.offers, send->offer, !gpu || send->left);
    }
}

/* pml_umrddt_send_start.c */

/** Send the envelope of a prepared request. */
int mca_pml_umrddt_send_start(mca_pml_umrddt_send_t *send);

/* pml_umrddt_send_rndv.c */

/** End the message, with @p error for the user, and release everything. A start may call it for a
 * message that waits for nothing and that no other thread can access. */
void mca_pml_umrddt_send_finish(mca_pml_umrddt_send_t *send, int error);

/**
 * Send a NACK: this side cannot perform the write that the CTS requested. The receiver answers with
 * the state of the message.
 *
 * @param[in] in_flight  writes of this round were posted
 */
void mca_pml_umrddt_send_fail(mca_pml_umrddt_send_t *send, bool in_flight);

/** Post a receive for the next reply, send->listen. @return the base PML's error code; on failure
 * no receive is posted */
int mca_pml_umrddt_send_listen(mca_pml_umrddt_send_t *send);

/** Wait for the next reply, in state REPLY or FAILED. If the base PML refuses to post the receive,
 * it is tried again, since the receiver waits for this side. A reply that arrives meanwhile is not
 * lost: the base PML keeps it as unexpected. */
void mca_pml_umrddt_send_await(mca_pml_umrddt_send_t *send);

/**
 * A reply was received into send->reply or passed on to it, and no receive is posted any more.
 *
 * @param[in] valid  false: the base PML reported an error
 */
void mca_pml_umrddt_send_replied(mca_pml_umrddt_send_t *send, size_t length, bool valid);

/** The reply is malformed: end the message with an error. */
void mca_pml_umrddt_send_malformed(mca_pml_umrddt_send_t *send);

/** Cancel a receive for a reply that will not arrive. A start may call it too. */
void mca_pml_umrddt_send_unlisten(mca_pml_umrddt_send_t *send);

/** Release the request id. */
void mca_pml_umrddt_send_request_id_release(mca_pml_umrddt_send_t *send);

/* pml_umrddt_send_base.c */

/** The receiver waits for the data by the base PML: send it, from a staging buffer if necessary. */
void mca_pml_umrddt_send_by_base(mca_pml_umrddt_send_t *send);

/**
 * Start a message that umrddt does not handle, or a persistent request that it cannot handle this
 * time. The base PML sends the buffer directly, or a packed copy. The caller counts the reason.
 * Called from the MPI API.
 *
 * @return OMPI_SUCCESS, or an error, with nothing held
 */
int mca_pml_umrddt_send_start_plain(mca_pml_umrddt_send_t *send);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SEND_RNDV_H */
