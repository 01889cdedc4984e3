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
 * Services of the sender's engine for schemes (pml_umrddt_scheme.h), and between its own files:
 * pml_umrddt_send_start.c begins a message, pml_umrddt_send_rndv.c takes its replies,
 * pml_umrddt_send_base.c sends by the base PML. Of progress only, but for starts.
 */

#ifndef MCA_PML_UMRDDT_SEND_RNDV_H
#define MCA_PML_UMRDDT_SEND_RNDV_H

#include "pml_umrddt.h"
#include "pml_umrddt_offer_cache.h"

BEGIN_C_DECLS

/** The first answer to a message says where it is received: in memory of a GPU, or not. */
static inline void mca_pml_umrddt_send_landed(const mca_pml_umrddt_send_t *send, bool gpu)
{
    if (OPAL_UNLIKELY(send->tries) && MCA_PML_UMRDDT_SEND_REPLY == send->state
        && 0 == send->position) {
        mca_pml_umrddt_offer_learn(send->offer, !gpu || send->left);
    }
}

/** True if a message may be told of by the completion flag: not where the last one of its layout
 * got a reply all the same, which the completion flag only delays. */
static inline bool mca_pml_umrddt_send_done_flag(const mca_pml_umrddt_send_t *send)
{
    return 0 == __atomic_load_n(&send->layout->memo[MCA_PML_UMRDDT_MEMO_SILENT], __ATOMIC_RELAXED);
}

/** A message that CUDA IPC was offered for got a reply that the completion flag would not have
 * spared (@p silent), or one that it would have. */
static inline void mca_pml_umrddt_send_done_flag_learn(const mca_pml_umrddt_send_t *send,
                                                       bool silent)
{
    if (silent == mca_pml_umrddt_send_done_flag(send)) {
        __atomic_store_n(&send->layout->memo[MCA_PML_UMRDDT_MEMO_SILENT], silent ? 1 : 0,
                         __ATOMIC_RELAXED);
    }
}

/* pml_umrddt_send_rndv.c */

/** The message is through, with @p error for the user: give everything back. Also of a start, of a
 * message that waits for nothing and that no other thread knows. */
void mca_pml_umrddt_send_finish(mca_pml_umrddt_send_t *send, int error);

/**
 * This side cannot write what the CTS asked for: ask the receiver what became of it.
 *
 * @param[in] in_flight  writes of this round were posted
 */
void mca_pml_umrddt_send_fail(mca_pml_umrddt_send_t *send, bool in_flight);

/** Post a receive for the next reply, send->listen. @return the host's verdict; then there is none
 */
int mca_pml_umrddt_send_listen(mca_pml_umrddt_send_t *send);

/**
 * Wait for the next reply, in state REPLY or FAILED. While the host refuses to receive it, it is
 * asked again: the receiver waits for what this side says to the reply. One that comes meanwhile is
 * not lost, the host keeps it.
 */
void mca_pml_umrddt_send_await(mca_pml_umrddt_send_t *send);

/**
 * A reply was received into send->reply, or handed on to it, and nothing listens any more.
 *
 * @param[in] valid  false: the host reported an error
 */
void mca_pml_umrddt_send_replied(mca_pml_umrddt_send_t *send, size_t length, bool valid);

/** Nothing that the receiver says of a message can be relied on: it fails. */
void mca_pml_umrddt_send_malformed(mca_pml_umrddt_send_t *send);

/** Take back a receive for a reply that will not come. Also of starts. */
void mca_pml_umrddt_send_unlisten(mca_pml_umrddt_send_t *send);

/** Give the slot back. */
void mca_pml_umrddt_send_slot_release(mca_pml_umrddt_send_t *send);

/** Find the endpoint to the receiver that is nearest to the buffer, send->endpoint, if there is an
 * HCA, and one that is not broken. Also of starts. @return false: there is none, and it is NULL */
bool mca_pml_umrddt_send_endpoint(mca_pml_umrddt_send_t *send);

/** Event of a message that is answered through its completion flag: wait for that. @p owner: the
 * send */
void mca_pml_umrddt_send_done_flag_event(void *owner);

/* pml_umrddt_send_base.c */

/** The receiver waits for the data by the base PML: send it, from a stage if it must be. */
void mca_pml_umrddt_send_by_base(mca_pml_umrddt_send_t *send);

/**
 * Start a message that is not taken, or a persistent request's that cannot be this time: the host
 * sends it as it is, or its packed copy. The caller counts why. API.
 *
 * @return OMPI_SUCCESS, or an error and nothing held
 */
int mca_pml_umrddt_send_start_plain(mca_pml_umrddt_send_t *send);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SEND_RNDV_H */
