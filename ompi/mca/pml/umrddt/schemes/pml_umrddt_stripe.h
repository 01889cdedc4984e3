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
 * Striped messages: one message over several pairs of HCAs (lanes) at once.
 */

/*
 * A striped message is cut into ranges of its stream, one for each lane. Each range is a *stripe*.
 * Its record is of the same kind as the message's, and runs the same state machine from the keys to
 * the last FIN. It has its own endpoint, memory, keys and FINs. The *parent message* (`whole` in
 * the code) is the record of the user's request; it ends when all its stripes have ended. The state
 * machines therefore do not depend on lanes, and an unstriped message costs one comparison.
 *
 *     parent:   RTS, with the addresses of all lanes ----->  parent: stripes, or one lane
 *     stripe 0 <------ CTS, seq + 1 ------------------------ stripe 0: [0, a)
 *     stripe 1 <------ CTS, seq + 2 ------------------------ stripe 1: [a, b)    ...
 *
 * - The sender offers the lanes that are not broken. The receiver decides, and cuts the message. It
 *   answers either each stripe or the message as a whole. The sequence number of a reply shows
 *   which: that of the RTS for the parent, and the following ones for the stripes.
 * - All replies use the request id of the parent, which receives and distributes them.
 * - A stripe whose lane the receiver cannot use gets an ACK and no range. If an endpoint broke, the
 *   ACK carries its address, so that the sender breaks its end.
 * - The first stripe that fails makes the base PML carry the whole message, as messages with one
 *   lane do. Others that fail then get an ACK. Stripes that do not fail continue. They write the
 *   same bytes to the same addresses, and the message ends when all have ended.
 *
 * Only messages of the scheme umr are striped, and only if the receive buffer holds the whole
 * message. Progress thread only, except offer, and drop and let_go of the split.
 */

#ifndef MCA_PML_UMRDDT_STRIPE_H
#define MCA_PML_UMRDDT_STRIPE_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/** Maximum number of lanes of a message. */
#define MCA_PML_UMRDDT_STRIPES (MCA_PML_UMRDDT_LANES + 1)

/** Minimum number of bytes of a stripe. */
#define MCA_PML_UMRDDT_LEAST_STRIPE 4096

/** Sender: offer stripes in a complete envelope if there is more than one lane. On return
 * send->split is NULL, or is released by its function drop or at the end of the message. Any
 * thread. */
void mca_pml_umrddt_stripes_offer(mca_pml_umrddt_send_t *send);

/** Returns true if the lanes in an envelope, for system memory, are valid: member of the scheme. */
bool mca_pml_umrddt_stripes_valid(const mca_pml_umrddt_recv_t *recv);

/**
 * Alignment of the cuts of a message. If chunks are small, cuts are at chunks, so that each side's
 * keys are those of an unstriped message. Else they are between blocks of both sides, or of the
 * receiver's, which keeps regular layouts regular. Else they are anywhere.
 *
 * @param[in] form   of the receiver's layout
 * @param[in] chunk  that was agreed
 * @param[in] part   approximate bytes of a stripe, at least 2
 *
 * @return each cut is a multiple of this number of bytes: 1 .. part / 2
 */
uint64_t mca_pml_umrddt_stripe_alignment(const mca_pml_umrddt_rts_t *rts,
                                         const opal_iov_cache_form_t *form, uint64_t chunk,
                                         uint64_t part);

/** End of stripe @p i of @p count, if a stripe has at least twice as many bytes as the alignment.
 * Ascending with @p i; @p total for the last. */
uint64_t mca_pml_umrddt_stripe_end(uint64_t total, uint32_t count, uint64_t alignment, uint32_t i);

/**
 * Receiver: the scheme umr is about to start for a message that was offered in stripes. Begin them.
 *
 * @param[in] chunk  that was agreed
 * @param[in] init   turns a record into a stripe of the message, before its first round; the first
 *                   stripe gets the registration, which covers the whole message
 * @param[in] begin  begins the first round of a stripe, bytes position to total of the message
 *
 * @return false: it is received as a whole
 */
bool mca_pml_umrddt_stripes_receive(mca_pml_umrddt_recv_t *recv, uint64_t chunk,
                                    void (*init)(mca_pml_umrddt_recv_t *parent,
                                                 mca_pml_umrddt_recv_t *stripe),
                                    void (*begin)(mca_pml_umrddt_recv_t *stripe));

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STRIPE_H */
