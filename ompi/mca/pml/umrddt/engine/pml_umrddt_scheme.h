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
 * The contract between the engine and the schemes: one table of functions for each scheme. The
 * engine matches envelopes, selects a scheme, and hands it the message. Schemes call the services
 * of pml_umrddt_engine.h, and pml_umrddt_schemes.c lists them.
 */

/*
 * Threads: only the progress thread calls these functions, one at a time.
 */

#ifndef MCA_PML_UMRDDT_SCHEME_H
#define MCA_PML_UMRDDT_SCHEME_H

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

BEGIN_C_DECLS

/** How the receiver reacts when the sender reports that it cannot perform a write (NACK). */
typedef enum mca_pml_umrddt_nack_t {
    MCA_PML_UMRDDT_NACK_KEEPS, /**< the message continues or has ended; nothing to do */
    MCA_PML_UMRDDT_NACK_ACK,   /**< the data has arrived or arrives another way: answer ACK */
    MCA_PML_UMRDDT_NACK_BASE   /**< no write can arrive any more: fall back to the base PML */
} mca_pml_umrddt_nack_t;

/** One scheme. Constant; the state of a message is in its request. */
typedef struct mca_pml_umrddt_scheme_t {
    mca_pml_umrddt_scheme_id_t id;
    uint16_t bit; /**< MCA_PML_UMRDDT_BIT(id) */

    /** The sender may wait for the end of the message on its completion flag
     * (umrddt_done_flag.h). For others the receiver first signals that a reply follows. */
    bool flag;

    /** Receiver: returns true if the rules select this scheme next. The engine calls it in the
     * order of the table for each scheme in recv->candidates, which both sides support. A scheme
     * that returns false stays a candidate, because the rule may change when others fail. May look
     * up recv->layout; sends nothing and holds nothing else. NULL: always true. */
    bool (*can_recv)(mca_pml_umrddt_recv_t *recv);

    /**
     * Receiver: begin. recv->rts is valid; recv->peer, ->where, ->total and ->scheme are set;
     * recv->u is zero.
     *
     * @retval OMPI_SUCCESS            the scheme owns the message until a function of the engine
     *                                 ends it (which may already have happened)
     * @retval OMPI_ERR_NOT_AVAILABLE  nothing was sent; recv_release frees what is held. The scheme
     *                                 may set recv->reason to the counter of the cause, and may
     *                                 remove schemes that would fail for the same cause from
     *                                 recv->candidates. The last scheme never returns it
     */
    int (*start)(mca_pml_umrddt_recv_t *recv);

    /** Receiver: the HCA has completed a write with the number of the message (recv->fin) through
     * recv->endpoint. NULL: none expected. Unexpected ones are counted as protocol_errors. */
    void (*fin)(mca_pml_umrddt_recv_t *recv);

    /** Receiver: the sender reports that it cannot write. After NACK_BASE no write may arrive. */
    mca_pml_umrddt_nack_t (*nack)(mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_fail_t *fail);

    /** Receiver: release everything in recv->u, in any state in which no GPU and no HCA uses it.
     * May be called twice. NULL: nothing is held. */
    void (*recv_release)(mca_pml_umrddt_recv_t *recv);

    /** Sender: send->reply holds a reply of one of the scheme's kinds
     * (mca_pml_umrddt_reply_schemes), of @p length bytes. Its header is valid and matches the
     * message, which is in state REPLY. The scheme validates the rest: that it was offered,
     * lengths, and each field. From here on the scheme owns the message. It writes and ends it
     * (send_finish), waits for the next reply (send_await), or gives up (send_fail, which notifies
     * the receiver; send_malformed). */
    void (*reply)(mca_pml_umrddt_send_t *send, size_t length);

    /** Sender, while send->ops is this scheme and it receives replies during its work: a reply has
     * arrived. If not @p valid, it does not belong to this message or is malformed. */
    void (*replied)(mca_pml_umrddt_send_t *send, bool valid);

    /** Sender, while send->ops is this scheme: a reply to an older message was dropped. Post the
     * receive for replies again. */
    void (*listen)(mca_pml_umrddt_send_t *send);

    /** Receiver: returns the name of the invariant that a message in progress violates, or NULL. */
    const char *(*check)(const mca_pml_umrddt_recv_t *recv);
} mca_pml_umrddt_scheme_t;

/** Schemes in the order of the rules. The last one is the base PML, which always starts. */
extern const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES];

/** Each is defined in its own file. */
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_umr;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_direct;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_ipc;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_gdr;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_staged;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_host;
extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_base;

/** Kinds of replies, as the sender's engine distinguishes them: first the types of headers of kind
 * REPLY, then the kinds of other headers. */
#define MCA_PML_UMRDDT_REPLY_KINDS    8u
#define MCA_PML_UMRDDT_REPLY_OF(kind) (MCA_PML_UMRDDT_REPLY_KINDS + (kind))

/** The scheme that handles each kind of reply; NULL: none. */
extern const mca_pml_umrddt_scheme_t
    *const mca_pml_umrddt_reply_schemes[2 * MCA_PML_UMRDDT_REPLY_KINDS];

/** Sender: send->reply holds a reply of kind REPLY. Updates the state of all schemes that were
 * offered, whichever was selected. Progress thread only. */
void mca_pml_umrddt_schemes_answered(mca_pml_umrddt_send_t *send);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SCHEME_H */
