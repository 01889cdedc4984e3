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
 * What a scheme is to the engine: the contract of each way that a message can travel.
 *
 * The engine matches envelopes, selects a scheme, and hands it the message; it names no scheme.
 * A scheme calls the services of pml_umrddt_engine.h. pml_umrddt_schemes.c is the table.
 *
 * Threads: all functions here are of progress only, that is, one thread at a time.
 */

#ifndef MCA_PML_UMRDDT_SCHEME_H
#define MCA_PML_UMRDDT_SCHEME_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/** What a scheme does when the sender reports that it cannot write what it was asked for. */
typedef enum mca_pml_umrddt_nack_t {
    MCA_PML_UMRDDT_NACK_KEEPS, /**< the message goes on, or is over; nothing to do */
    MCA_PML_UMRDDT_NACK_ACK,   /**< its bytes are here or come otherwise: tell the sender so */
    MCA_PML_UMRDDT_NACK_BASE   /**< no write can land any more: the base PML brings the message */
} mca_pml_umrddt_nack_t;

/** One scheme. Constant: what belongs to a message is in its request. */
typedef struct mca_pml_umrddt_scheme_t {
    mca_pml_umrddt_scheme_id_t id;
    uint16_t bit; /**< MCA_PML_UMRDDT_BIT(id) */

    /** The sender may wait for the end of the message at its completion flag
     * (pml_umrddt_done_flag.h). Of any other scheme it is told first that a reply comes. */
    bool flag;

    /**
     * Receiver: whether this scheme is the next to be tried, by the rules. Called in the order of
     * the table for each scheme that is still in recv->candidates: both sides can use it. False
     * leaves it among the candidates: the rule may be another one when others have failed. May look
     * up recv->layout; sends nothing and holds nothing else. NULL: always.
     */
    bool (*can_recv)(mca_pml_umrddt_recv_t *recv);

    /**
     * Receiver: begin. recv->rts is valid, recv->peer, ->where, ->total and ->scheme are set, and
     * recv->u is zero.
     *
     * @retval OMPI_SUCCESS            the scheme has the message, from here to its end: a function
     *                                 of the engine ends it (which may have happened already)
     * @retval OMPI_ERR_NOT_AVAILABLE  nothing was sent; what is held recv_release gives back.
     *                                 recv->reason may name the counter of why, and schemes that
     *                                 would fail for the same reason may be taken out of
     *                                 recv->candidates. Not of the last scheme
     */
    int (*start)(mca_pml_umrddt_recv_t *recv);

    /**
     * Receiver: the HCA has completed a write with the message's number (recv->fin), through
     * recv->endpoint. NULL: the scheme waits for none. The scheme counts one that it does not
     * expect in this state (protocol_errors).
     */
    void (*fin)(mca_pml_umrddt_recv_t *recv);

    /** Receiver: the sender reports that it cannot write. After BASE no write may land. */
    mca_pml_umrddt_nack_t (*nack)(mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_fail_t *fail);

    /** Receiver: give back everything in recv->u, in any state in which no GPU and no HCA uses it.
     * Twice is once. NULL: nothing is held. */
    void (*recv_release)(mca_pml_umrddt_recv_t *recv);

    /**
     * Sender: a reply of one of the scheme's kinds (mca_pml_umrddt_reply_schemes) is in
     * send->reply, of @p length bytes. Its head is valid and of this message, and no scheme has the
     * message under way (state REPLY). The scheme validates everything else: whether it was
     * offered, lengths, and each field. From here on it has the message: it writes and then ends it
     * (send_finish), listens for the next reply (send_await), or gives up (send_fail, of which the
     * receiver is told; send_malformed).
     */
    void (*reply)(mca_pml_umrddt_send_t *send, size_t length);

    /** Sender, while send->ops is this scheme, which listens for replies while it works: one has
     * come. Not @p valid: it is none to this message, or none at all. */
    void (*replied)(mca_pml_umrddt_send_t *send, bool valid);

    /** Sender, while send->ops is this scheme: a reply to an older message was dropped; listen
     * again. */
    void (*listen)(mca_pml_umrddt_send_t *send);

    /** Receiver: the invariant of a message under way that does not hold, by its name; or NULL. */
    const char *(*check)(const mca_pml_umrddt_recv_t *recv);
} mca_pml_umrddt_scheme_t;

/** Schemes in the order in which the rules try them. The last one is the base PML: it starts
 * always. */
extern const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES];

/** Each in its own file. */
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_umr;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_direct;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_ipc;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_gdr;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_staged;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_host;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_base;

/** Kinds of replies, as the sender's engine tells them apart: verdicts of headers of kind REPLY,
 * and behind them the kinds of other headers. */
#define MCA_PML_UMRDDT_REPLY_KINDS    8u
#define MCA_PML_UMRDDT_REPLY_OF(kind) (MCA_PML_UMRDDT_REPLY_KINDS + (kind))

/** Whose function takes which reply; NULL: no scheme's. */
extern const mca_pml_umrddt_scheme_t
    *const mca_pml_umrddt_reply_schemes[2 * MCA_PML_UMRDDT_REPLY_KINDS];

/** Sender: a reply to a message, of kind REPLY, is in send->reply: what schemes that were offered
 * learn of it, whichever was selected. Of progress only. */
void mca_pml_umrddt_schemes_answered(mca_pml_umrddt_send_t *send);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SCHEME_H */
