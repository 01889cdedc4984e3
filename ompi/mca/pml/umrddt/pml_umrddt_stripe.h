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
 * Messages over several pairs of HCAs at once.
 *
 * A *striped* message is cut into ranges of its stream, one a pair. Each range is a *stripe*: a
 * record of its own, of the same kind as the message's, that runs the same state machine from KEYS
 * to the last FIN, on its own endpoint, with its own memory, keys and FINs. The *whole* is the
 * record that the user's request belongs to; it is over when its stripes are. So nothing in the
 * state machines counts pairs, and a message that is not striped costs a comparison of its length.
 *
 *     whole:   RTS, with the addresses of all pairs  ----->  whole: takes it so, or by one pair
 *     stripe 0 <------ CTS, seq + 1 ------------------------ stripe 0: [0, a)
 *     stripe 1 <------ CTS, seq + 2 ------------------------ stripe 1: [a, b)    ...
 *
 *  - The sender offers: it knows which pairs of its are not broken. The receiver decides, and cuts:
 *    it answers each stripe, or the message as a whole, never both. The number that a reply
 *    carries tells which: seq of the RTS for the whole, and the following ones for the stripes.
 *  - All replies come on the slot of the whole, which receives them and hands them on.
 *  - A stripe whose pair is of no use to the receiver is answered with DONE, and is not cut. With
 *    the address that broke, if one did, so that the sender breaks its end.
 *  - The first stripe that fails brings the message by the base PML, all of it, as messages of one
 *    pair do; others that fail are DONE: their bytes come with it. Those that do not fail go on.
 *    They write the same bytes to the same places, and the message is over when all are.
 *
 * Only messages with mkeys on both sides are striped, and none that the receive has no room for.
 *
 * All of it is of progress only, but for offer, drop and let_go.
 */

#ifndef MCA_PML_UMRDDT_STRIPE_H
#define MCA_PML_UMRDDT_STRIPE_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/** Pairs of HCAs that one message goes over, at most. */
#define MCA_PML_UMRDDT_STRIPES (MCA_PML_UMRDDT_LANES + 1)

/** Bytes of a stripe, at least. */
#define MCA_PML_UMRDDT_LEAST_STRIPE 4096

/**
 * The sender: offer the receiver of an envelope, which is complete, to take the message in stripes,
 * if there is more than one pair of HCAs. On return send->stripes is NULL, or what
 * mca_pml_umrddt_stripes_drop or the message's end gives back. From any thread.
 */
void mca_pml_umrddt_stripes_offer(mca_pml_umrddt_send_t *send);

/** The sender: the envelope did not leave. send->stripes may be NULL. From any thread. */
void mca_pml_umrddt_stripes_drop(mca_pml_umrddt_send_t *send);

/** True if a record is a stripe's. */
bool mca_pml_umrddt_is_stripe(const mca_pml_umrddt_send_t *send);

/** The record of the message that @p send, which has stripes or is one, is of. */
const mca_pml_umrddt_send_t *mca_pml_umrddt_stripe_whole(const mca_pml_umrddt_send_t *send);

/**
 * The sender: the user may free the buffer before all is complete here, so let go of what stripes
 * have registered (memory_let_go). From any thread that has the request.
 */
void mca_pml_umrddt_stripes_let_go(mca_pml_umrddt_send_t *send);

/**
 * The sender: a reply of @p length bytes is in send->reply, and nothing listens any more; hand it
 * to the stripe that it is for.
 *
 * @return false: it is for the whole
 */
bool mca_pml_umrddt_stripe_replied(mca_pml_umrddt_send_t *send, size_t length);

/** The sender: a stripe waits for a reply. @return as mca_pml_umrddt_send_listen */
int mca_pml_umrddt_stripe_listen(mca_pml_umrddt_send_t *stripe);

/**
 * The sender: something of a striped message is over, and has given back all but its record.
 *
 * @return false: it is the whole, which its owner completes
 */
bool mca_pml_umrddt_stripe_sent(mca_pml_umrddt_send_t *send, int error);

/** Free what a record keeps for striped messages. */
void mca_pml_umrddt_stripes_free(mca_pml_umrddt_send_t *send);

/** True if the addresses of pairs in an envelope, which is not for GPU memory, make sense. */
bool mca_pml_umrddt_stripes_valid(const mca_pml_umrddt_rts_t *rts);

/**
 * Where the receiver may cut a message: at chunks if they are small, so that each side's keys are
 * those of a message that is not striped; else between blocks, of both sides or its own, which
 * keeps what is regular regular; else anywhere.
 *
 * @param[in] form   of its layout
 * @param[in] chunk  that was agreed
 * @param[in] part   bytes of a stripe, about; 2 at least
 *
 * @return bytes of which each cut is a multiple: 1 .. part / 2
 */
uint64_t mca_pml_umrddt_stripe_grain(const mca_pml_umrddt_rts_t *rts,
                                     const opal_iov_cache_form_t *form, uint64_t chunk,
                                     uint64_t part);

/** Where stripe @p i of @p count ends, if a stripe has at least twice as many bytes as the grain:
 * ascending with @p i, @p total for the last. */
uint64_t mca_pml_umrddt_stripe_end(uint64_t total, uint32_t count, uint64_t grain, uint32_t i);

/**
 * The receiver: a message that is about to go by mkeys was offered in stripes; begin them.
 *
 * @return false: it goes as a whole
 */
bool mca_pml_umrddt_stripes_receive(mca_pml_umrddt_recv_t *recv);

/**
 * The receiver: a stripe needs the base PML.
 *
 * @return false: it is to ask for it; true: another one has, and this one is over
 */
bool mca_pml_umrddt_stripe_by_base(mca_pml_umrddt_recv_t *recv);

/**
 * The receiver: something of a striped message is over, and has given back all but its record.
 *
 * @return false: it is the whole, which its owner completes
 */
bool mca_pml_umrddt_stripe_received(mca_pml_umrddt_recv_t *recv, int error);

/** Free what a record keeps for striped messages. */
void mca_pml_umrddt_recv_stripes_free(mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STRIPE_H */
