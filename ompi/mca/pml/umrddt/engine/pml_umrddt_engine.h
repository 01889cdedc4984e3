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
 * The engine: services for schemes (pml_umrddt_scheme.h) and for the other layers, of the receiver
 * (recv_*) and of the sender (send_*). They run only in progress, except where noted.
 *
 * A scheme ends a received message by recv_end, or gives it up by recv_next or recv_by_base. After
 * any of these calls the request may be freed.
 */

#ifndef MCA_PML_UMRDDT_ENGINE_H
#define MCA_PML_UMRDDT_ENGINE_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Split messages
 *
 * A scheme may carry a message by several records. Each part has a record of its own, which runs
 * the state machine of a message; the record of the user's request is the *parent*. The engine
 * knows only these functions; pml_umrddt_stripe.h has the only scheme that splits.
 * ------------------------------------------------------------------------------------------- */

/** Sender: the records of a split message share this. First member of the scheme's structure. */
typedef struct mca_pml_umrddt_send_split_t {
    mca_pml_umrddt_send_t *parent;

    /** The envelope was not sent: parent->split is to become NULL. Any thread. */
    void (*drop)(mca_pml_umrddt_send_t *parent);

    /** The user may free the buffer before the parts complete locally: let go of their
     * registrations (memory_let_go). From any thread that owns the request. */
    void (*let_go)(struct mca_pml_umrddt_send_split_t *split);

    /** A part waits for a reply. @return as mca_pml_umrddt_send_listen */
    int (*listen)(mca_pml_umrddt_send_t *part);

    /** A reply of @p length bytes is in parent->reply, and no receive is posted. Pass it to the
     * part that it is for. @return false: it is for the parent */
    bool (*replied)(mca_pml_umrddt_send_t *parent, size_t length);

    /** A record has ended, and holds nothing. @return false: it is the parent, which the caller
     * completes */
    bool (*ended)(mca_pml_umrddt_send_t *send, int error);
} mca_pml_umrddt_send_split_t;

/** Receiver: likewise. */
typedef struct mca_pml_umrddt_recv_split_t {
    mca_pml_umrddt_recv_t *parent;

    /** A part needs the base PML. @return false: the caller sends FALLBACK; true: another part did,
     * and this one has ended */
    bool (*by_base)(mca_pml_umrddt_recv_t *part);

    /** As for the sender. */
    bool (*ended)(mca_pml_umrddt_recv_t *recv, int error);
} mca_pml_umrddt_recv_split_t;

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** The message has ended: release resources and complete. @param[in] error  MPI_SUCCESS: all data
 * has arrived. Then the error is that of a truncated message, if it was */
void mca_pml_umrddt_recv_end(mca_pml_umrddt_recv_t *recv, int error);

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
        umrddt_number_give(&mca_pml_umrddt.fins, recv->fin);
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

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** Record from the first answer to a message whether the receive buffer is in GPU memory. */
static inline void mca_pml_umrddt_send_landed(const mca_pml_umrddt_send_t *send, bool gpu)
{
    if (OPAL_UNLIKELY(send->probes_memory) && MCA_PML_UMRDDT_SEND_REPLY == send->state
        && 0 == send->position) {
        opal_umrddt_offer_learn(&mca_pml_umrddt.offers, send->offer, !gpu || send->left);
    }
}

/** Send the envelope of a prepared request. */
int mca_pml_umrddt_send_start(mca_pml_umrddt_send_t *send);

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

/** A field of the reply is invalid, and the base PML is going to carry the message: count and
 * report it. */
void mca_pml_umrddt_send_report_invalid(const mca_pml_umrddt_send_t *send);

/** Release the request id. */
void mca_pml_umrddt_send_request_id_release(mca_pml_umrddt_send_t *send);

/** The receiver waits for the data by the base PML: send it, from a staging buffer if necessary. */
void mca_pml_umrddt_send_by_base(mca_pml_umrddt_send_t *send);

/**
 * Start a message that umrddt does not handle, or a persistent request that it cannot handle this
 * time. The base PML sends the buffer directly, or a packed copy. The caller counts the reason.
 * Called from the MPI API.
 *
 * @return OMPI_SUCCESS, or an error, with nothing held and the request inactive
 */
int mca_pml_umrddt_send_start_plain(mca_pml_umrddt_send_t *send);

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_check.c: invariants that hold between two calls of progress. A message has the
 * resources that its state needs, and lists agree with counters. With pml_umrddt_check, as in the
 * tests, a separate progress function checks them. A violation prints the name of the invariant and
 * aborts the process.
 * ------------------------------------------------------------------------------------------- */

/** Check all invariants. @return the first one that is violated; NULL: none. Only from progress. */
const char *mca_pml_umrddt_state_check(void);

/** Start periodic checks. Does nothing if pml_umrddt_check is 0. */
void mca_pml_umrddt_check_start(void);

/** Stop periodic checks and check a last time. Progress must not run. */
void mca_pml_umrddt_check_stop(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_ENGINE_H */
