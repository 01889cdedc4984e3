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
 * Services of the receiver's engine for schemes (pml_umrddt_scheme.h). All of it is of progress
 * only: one thread at a time.
 *
 * A scheme that has a message ends it by exactly one of: recv_done, recv_over, recv_lost; or gives
 * it up by recv_next or recv_by_host. After any of these the request may be gone.
 */

#ifndef MCA_PML_UMRDDT_ENGINE_H
#define MCA_PML_UMRDDT_ENGINE_H

#include "pml_umrddt_recv.h"

BEGIN_C_DECLS

/* pml_umrddt_recv_rndv.c: how a matched receive goes on, and ends */

/** The message is whole: give everything back and complete, with an error if it was truncated. */
void mca_pml_umrddt_recv_done(mca_pml_umrddt_recv_t *recv);

/** The same, with @p error for the user. */
void mca_pml_umrddt_recv_over(mca_pml_umrddt_recv_t *recv, int error);

/** The message cannot be brought: give everything back and complete with an error. */
void mca_pml_umrddt_recv_lost(mca_pml_umrddt_recv_t *recv);

/** Give back what the scheme holds for this receive, and its layout. Withdraws replies that the
 * base PML has not taken yet, but for the last one. */
void mca_pml_umrddt_recv_release(mca_pml_umrddt_recv_t *recv);

/* pml_umrddt_recv_match.c */

/**
 * Start the next candidate. The scheme that has the message, if any, gives it up: no write of the
 * sender may land any more, and the sender waits for a reply. Waits of recv are cancelled before.
 */
void mca_pml_umrddt_recv_next(mca_pml_umrddt_recv_t *recv);

/** The same, with the base PML as the only candidate. @p reason: the counter of why */
void mca_pml_umrddt_recv_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** A record that was matched, or is a stripe's, holds nothing yet. */
void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv);

/** Look up recv->layout, unless it is there. @return false: no memory, and it is NULL */
static inline bool mca_pml_umrddt_recv_has_layout(mca_pml_umrddt_recv_t *recv)
{
    if (NULL == recv->layout
        && OPAL_UNLIKELY(OMPI_SUCCESS
                         != mca_pml_umrddt_layout(recv->datatype, recv->count, &recv->layout))) {
        recv->layout = NULL;
    }
    return NULL != recv->layout;
}

/** Begin a reply to an envelope, with nothing but zeros behind the verdict; and send it. */
void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts, mca_pml_umrddt_verdict_t verdict,
                               mca_pml_umrddt_reply_t *reply);
int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply);

/** A reply comes by the base PML: say so at the completion flag, if the sender waits there. Twice
 * is once. (pml_umrddt_ipc_recv.c, which has the flags.) */
void mca_pml_umrddt_recv_announce(mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_ENGINE_H */
