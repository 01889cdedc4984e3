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
 * engine offers schemes in envelopes, matches envelopes, selects a scheme, and hands it the
 * message. Schemes call the services of pml_umrddt_engine.h, and
 * pml_umrddt_schemes.c lists them.
 */

/*
 * Schemes that share a state form a group, for example those that write by RDMA. One scheme of a
 * group has the functions of the group, and `group` is not 0.
 *
 * Threads: only the progress thread calls these functions, one at a time, except where noted.
 */

#ifndef MCA_PML_UMRDDT_SCHEME_H
#define MCA_PML_UMRDDT_SCHEME_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/** How the receiver reacts when the sender reports that it cannot perform a write (NACK). */
typedef enum mca_pml_umrddt_nack_t {
    MCA_PML_UMRDDT_NACK_KEEPS, /**< the message continues or has ended; nothing to do */
    MCA_PML_UMRDDT_NACK_ACK,   /**< the data has arrived or arrives another way: answer ACK */
    MCA_PML_UMRDDT_NACK_BASE   /**< no write can arrive any more: fall back to the base PML */
} mca_pml_umrddt_nack_t;

/** Whether a group of schemes can send from a buffer to a peer. */
typedef enum mca_pml_umrddt_can_send_t {
    MCA_PML_UMRDDT_CAN_SEND_NOT = 0,
    MCA_PML_UMRDDT_CAN_SEND_TO_GPU = 1, /**< only if the receive buffer is in GPU memory */
    MCA_PML_UMRDDT_CAN_SEND = 2
} mca_pml_umrddt_can_send_t;

/** One scheme. Constant; the state of a message is in its request. */
typedef struct mca_pml_umrddt_scheme_t {
    mca_pml_umrddt_scheme_id_t id;
    uint16_t bit;   /**< MCA_PML_UMRDDT_BIT(id) */
    uint16_t group; /**< MCA_PML_UMRDDT_BIT_* of the group if this scheme has its functions, or 0 */

    /** The sender may wait for the end of the message on its completion flag
     * (umrddt_done_flag.h). For others the receiver first signals that a reply follows. */
    bool flag;

    /* Functions of the group. Each may be NULL, except open, can_send and offer. */

    /** Set up the group, after the HCA and the GPUs were opened (mca_pml_umrddt.hca, .gpu).
     * @return MCA_PML_UMRDDT_BIT_* of its schemes that are possible here and enabled */
    uint16_t (*open)(void);

    /** Release what the group holds for this process. The HCA and the GPUs are still open. No
     * message is active, and the calling thread is the only one. */
    void (*close)(void);

    /** The group can send from any system memory to each peer that it reaches; can_send need not be
     * called. */
    bool any_system;

    /** Any thread. Returns true if the group can send to a peer from some memory. */
    bool (*reaches)(const mca_pml_umrddt_peer_t *peer);

    /** Any thread. Whether the group can send @p size bytes from a buffer to a peer that it
     * reaches, as far as known without a registration. */
    mca_pml_umrddt_can_send_t (*can_send)(const mca_pml_umrddt_comm_t *comm,
                                          const mca_pml_umrddt_peer_t *peer,
                                          const opal_umrddt_gpu_where_t *where, size_t size);

    /** Any thread. Offer the schemes of the group in an envelope if they are possible: add their
     * bits to send->rts.schemes, and set their fields in the envelope. These fields are 0 (and
     * write_pieces is 1); the fields of all messages are set. May set send->endpoint, which is
     * NULL at first, and send->await. Called in the order of mca_pml_umrddt_groups, if one of the
     * schemes is enabled for the communicator and the group reaches the peer. */
    void (*offer)(mca_pml_umrddt_send_t *send);

    /** Receiver: returns true if the fields of the group in recv->rts, which offers one of its
     * schemes, are valid. recv->peer is set. Called for the scheme that
     * mca_pml_umrddt_rts_fields_of names, unless these fields are 0 and need not be set
     * (mca_pml_umrddt_rts_is_plain). NULL: the group has no fields. */
    bool (*rts_valid)(const mca_pml_umrddt_recv_t *recv);

    /** Receiver of an envelope with DONE_FLAG: tell the sender that a reply follows. */
    void (*announce)(const mca_pml_umrddt_recv_t *recv);

    /** Sender: send->reply holds a reply of kind REPLY to a message for which this scheme was
     * offered, whichever scheme was selected. */
    void (*answered)(mca_pml_umrddt_send_t *send);

    /** Any thread. Release what the owner of a process needs back, since no communicator with this
     * peer is left. Caches may stay. */
    void (*peer_forget)(const mca_pml_umrddt_peer_t *peer);

    /** Free what the group holds for a peer, which is about to be freed. */
    void (*peer_free)(mca_pml_umrddt_peer_t *peer);

    /** Returns the name of the invariant that the caches for a peer violate, or NULL. Adds the
     * bytes of layouts that are cached for it to @p bytes, whose sum is *cached. Under the lock. */
    const char *(*peer_check)(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes);
    const uint64_t *cached; /**< NULL if peer_check is NULL */

    /** Returns the name of the invariant that what the group holds for this process violates, or
     * NULL. */
    const char *(*process_check)(void);

    /* Functions of the scheme. */

    /** Receiver: returns true if the rules select this scheme next. The engine calls it in the
     * order of the rules (umrddt_select_rules.h) for each scheme in recv->candidates, which both
     * sides support. A scheme that returns false stays a candidate, because the rule may change
     * when others fail. May look up recv->layout; sends nothing and holds nothing else. NULL only
     * for the base PML. */
    bool (*can_recv)(mca_pml_umrddt_recv_t *recv);

    /**
     * Receiver: begin. recv->rts is valid; recv->peer, ->where, ->total and ->scheme are set;
     * recv->held is zero.
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
    mca_pml_umrddt_nack_t (*nack)(mca_pml_umrddt_recv_t *recv,
                                  const mca_pml_umrddt_nack_header_t *fail);

    /** Receiver: release everything in recv->held, in any state in which no GPU and no HCA uses it.
     * May be called twice. NULL: nothing is held. */
    void (*recv_release)(mca_pml_umrddt_recv_t *recv);

    /** Sender: send->reply holds a reply of one of the scheme's kinds
     * (mca_pml_umrddt_reply_schemes), of @p length bytes. Its header is valid and matches the
     * message, which is in state REPLY. send->ops is this scheme; send->held is its own, and 0 at
     * the first reply. The scheme validates the rest: that it was offered,
     * lengths, and each field. From here on the scheme owns the message. It writes and ends it
     * (send_finish), waits for the next reply (send_await), or gives up (send_fail, which notifies
     * the receiver; send_malformed). */
    void (*reply)(mca_pml_umrddt_send_t *send, size_t length);

    /** Sender, in state BUSY, which the scheme has set because it receives replies during its work:
     * a reply has arrived. If not @p valid, it does not belong to this message or is malformed. */
    void (*replied)(mca_pml_umrddt_send_t *send, bool valid);

    /** Sender, in state BUSY: a reply to an older message was dropped. Post the receive for replies
     * again. */
    void (*listen)(mca_pml_umrddt_send_t *send);

    /** Sender: release everything in send->held. The message has ended, failed, or another scheme
     * carries it. May be called twice. NULL: nothing is held then. */
    void (*send_release)(mca_pml_umrddt_send_t *send);

    /** Receiver: returns the name of the invariant that a message in progress violates, or NULL. */
    const char *(*check)(const mca_pml_umrddt_recv_t *recv);
} mca_pml_umrddt_scheme_t;

/** The schemes by id. mca_pml_umrddt_scheme_order has their order; the base PML is last and always
 * starts. */
extern const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES];

/** The schemes that have functions of a group, in the order of offers: whether a group offers
 * itself may depend on those before it. */
extern const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_groups[MCA_PML_UMRDDT_GROUPS];

/** mca_pml_umrddt_scheme_NAME: each is defined in its own file. */
#define MCA_PML_UMRDDT_SCHEME_DECLARE(NAME, name, ...) \
    extern const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_##name;
MCA_PML_UMRDDT_SCHEME_LIST(MCA_PML_UMRDDT_SCHEME_DECLARE)

/** Kinds of replies, as the sender's engine distinguishes them: first the types of headers of kind
 * REPLY, then the kinds of other headers. */
#define MCA_PML_UMRDDT_REPLY_KINDS    8u
#define MCA_PML_UMRDDT_REPLY_OF(kind) (MCA_PML_UMRDDT_REPLY_KINDS + (kind))

/** The scheme that handles each kind of reply; NULL: none. */
extern const mca_pml_umrddt_scheme_t
    *const mca_pml_umrddt_reply_schemes[2 * MCA_PML_UMRDDT_REPLY_KINDS];

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SCHEME_H */
