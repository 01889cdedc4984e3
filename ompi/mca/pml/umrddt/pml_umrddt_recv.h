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
 * Requests of receives, shared by what posts them (pml_umrddt_recv_post.c) and what ends them
 * (pml_umrddt_recv.c).
 */

#ifndef MCA_PML_UMRDDT_RECV_H
#define MCA_PML_UMRDDT_RECV_H

#include "pml_umrddt.h"
#include "pml_umrddt_stage.h"

BEGIN_C_DECLS

/** What a CTS says of the memory that a message is received in: MCA_PML_UMRDDT_IN_GPU or 0. */
static inline uint32_t mca_pml_umrddt_recv_memory(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_on_gpu(&recv->where) ? MCA_PML_UMRDDT_IN_GPU : 0;
}

/** Said where a callback lets the host complete a request: what was written until here is for who
 * finds it complete. The host's own atomics see to that; this is for a race detector, which does
 * not see them, and nothing otherwise. */
#if !defined(MCA_PML_UMRDDT_PASS_ON)
#define MCA_PML_UMRDDT_PASS_ON(request) ((void) (request))
#endif

/** Said where the host calls back with a request: what was written before it was posted, in another
 * thread perhaps, comes before. The host's lock of what is posted sees to that; this, too, is for a
 * race detector, which does not see it. */
#if !defined(MCA_PML_UMRDDT_CALLED_BACK)
#define MCA_PML_UMRDDT_CALLED_BACK(request) ((void) (request))
#endif

/** A record of a receive that the host may still match, with no request behind it yet; it holds
 * nothing. NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_record_alloc(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   mca_pml_umrddt_comm_t *comm);

/** Give up a record together with the request of the host's that belongs to it. */
void mca_pml_umrddt_recv_return(mca_pml_umrddt_recv_t *recv);

/** Make the host's request behind a record, not started. @return the host's verdict */
int mca_pml_umrddt_host_init(mca_pml_umrddt_recv_t *recv);

/**
 * Callback of a request of the host's whose req_complete_cb_data is a record: it is about to
 * complete. @return 0 to let it, 1 to keep it pending
 */
int mca_pml_umrddt_host_received(ompi_request_t *request);

/** The free function of such a request, if it is what the user holds. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/** What pml_umrddt_recv_small.c keeps for itself: made, and given back. */
void mca_pml_umrddt_recv_small_init(void);
void mca_pml_umrddt_recv_small_fini(void);

/* pml_umrddt_recv_rndv.c: rounds, and how a matched receive ends, for the schemes. Of progress
 * only.
 */

/** The message is whole: give everything back and complete. */
void mca_pml_umrddt_recv_done(mca_pml_umrddt_recv_t *recv);

/** The same, with @p error for the user. */
void mca_pml_umrddt_recv_over(mca_pml_umrddt_recv_t *recv, int error);

/** A record that was matched, or is a stripe's, holds nothing yet. */
void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv);

/** The message cannot be brought: give everything back and complete with an error. */
void mca_pml_umrddt_recv_lost(mca_pml_umrddt_recv_t *recv);

/** Give back what the card or the scheme holds for this receive. */
void mca_pml_umrddt_recv_release(mca_pml_umrddt_recv_t *recv);

/**
 * Look for keys that were kept, from recv->position to recv->total, by recv->endpoint, of the CPU's
 * memory.
 *
 * @return true: they are recv->keyset, and the round needs no recv->memory
 */
bool mca_pml_umrddt_recv_recall(mca_pml_umrddt_recv_t *recv);

/**
 * Begin a round, of a stripe too: name keys to the sender, from recv->position to recv->total, by
 * recv->endpoint: recv->keyset, or others, over recv->memory if that is there already.
 */
void mca_pml_umrddt_recv_next_round(mca_pml_umrddt_recv_t *recv);

/** Keys are mapped, or none are needed: tell the sender to write as soon as its FIN would find a
 * receive. */
void mca_pml_umrddt_recv_ask_credit(mca_pml_umrddt_recv_t *recv);

/** Begin a reply to an envelope, with nothing but zeros behind the verdict; and send it. */
void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts, mca_pml_umrddt_verdict_t verdict,
                               mca_pml_umrddt_reply_t *reply);
int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply);

/* pml_umrddt_recv_host.c */

/**
 * Give everything back, and let the host PML bring the message; the receive that it will find is
 * posted first. @p reason: the counter of why
 */
void mca_pml_umrddt_recv_by_host(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** The host PML carries a message that was judged, as that takes less: the sender is told so. */
void mca_pml_umrddt_recv_leave(mca_pml_umrddt_recv_t *recv);

/* pml_umrddt_recv_direct.c */

/**
 * Whether the message can go without mkeys, as chosen: what there is to write to has to fit a CTS,
 * and so has the layout.
 */
bool mca_pml_umrddt_recv_direct_possible(const mca_pml_umrddt_recv_t *recv);

/** Send the CTS without mkeys: what there is to write to, and the layout unless the sender has it.
 */
int mca_pml_umrddt_recv_direct_cts(mca_pml_umrddt_recv_t *recv);

/** Mark a bounce as empty: some hosts deliver nothing of a message that is too long. */
static inline void mca_pml_umrddt_bounce_in(unsigned char *bounce)
{
    memcpy(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/** Look where the buffer is, unless that is known: once a request. */
static inline void mca_pml_umrddt_recv_look(mca_pml_umrddt_recv_t *recv)
{
    if (!recv->looked) {
        (void) mca_pml_umrddt_memory_of(recv->comm, recv->buf, recv->count, recv->datatype,
                                        MCA_PML_UMRDDT_RECEIVER, &recv->where);
        recv->looked = true;
    }
}

/** True if nothing came since mca_pml_umrddt_bounce_in. */
static inline bool mca_pml_umrddt_bounce_empty(const unsigned char *bounce)
{
    return 0 == memcmp(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/**
 * A plain message came into the bounce: hand it on.
 *
 * @param[in] error   the host's verdict
 * @param[in] length  of the message
 *
 * @return the error for the user
 */
static inline int mca_pml_umrddt_bounce_out(void *buf, size_t count, ompi_datatype_t *datatype,
                                            const unsigned char *bounce, int error, size_t length)
{
    size_t capacity = count * datatype->super.size;

    if (OPAL_UNLIKELY(MPI_SUCCESS != error) && mca_pml_umrddt_bounce_empty(bounce)) {
        return error;
    }
    if (capacity < length) {
        error = MPI_ERR_TRUNCATE;
        length = capacity;
    }
    mca_pml_umrddt_unpack(buf, count, datatype, bounce, length);
    return error;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_H */
