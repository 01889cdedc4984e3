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
 * Messages from GPU memory of the same host: the receiver reads the sender's memory itself, by one
 * copy from layout to layout.
 *
 * The envelope names the sender's allocation by its BUFFER_ID, the buffer in it, and the sender's
 * layout by an id. The driver never gives a BUFFER_ID twice in a process, nor does the layout cache
 * an id. So what a receiver has kept under a (peer, BUFFER_ID) or (peer, layout id) is what a
 * message that names it means; and a receiver reads only what this message's envelope names, within
 * the bounds of the allocation that was imported under that BUFFER_ID.
 *
 * What the receiver lacks it asks for: a reply ASK. The sender TELLs: the export of the allocation
 * (opal_umrddt_gpu_export_t), and the flattened layout, in parts before the TELL if it is long. A
 * layout of one piece needs none: the envelope tells where the piece is. A receiver asks once a
 * message, and no two messages of a sender ask for the same thing at the same time.
 *
 * The sender's memory stays as it is until its request completes, which the receiver's DONE does.
 * All of it is of progress only.
 */

#ifndef MCA_PML_UMRDDT_IPC_H
#define MCA_PML_UMRDDT_IPC_H

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "pml_umrddt_done_flag.h"
#include "pml_umrddt_direct.h"

BEGIN_C_DECLS

typedef struct mca_pml_umrddt_asked_t mca_pml_umrddt_asked_t;

/* ---------------------------------------------------------------------------------------------
 * What travels (pml_umrddt_ipc.c)
 * ------------------------------------------------------------------------------------------- */

/** True if the fields of BIT_IPC in an envelope agree with its schemes. */
bool mca_pml_umrddt_ipc_rts_valid(const mca_pml_umrddt_rts_t *rts);

/** True if an envelope offers neither BIT_IPC nor stripes, and its fields of both are right. */
static inline bool mca_pml_umrddt_ipc_rts_is_plain(const mca_pml_umrddt_rts_t *rts)
{
    return 0 == ((MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_DONE_FLAG) & rts->schemes)
           && 0 == (rts->buffer_id | rts->buffer | rts->layout | (uint64_t) rts->lb);
}

/**
 * Send a TELL and, before it, as many parts of the flattened layout as it takes.
 *
 * @param[in] tell     flat_bytes 0: without a layout
 * @param[in] flat     tell->flat_bytes of it
 * @param[in] scratch  MCA_PML_UMRDDT_TELL_ROOM bytes
 *
 * @return OMPI_SUCCESS, or what @p emit returned
 */
int mca_pml_umrddt_tell_emit(const mca_pml_umrddt_tell_t *tell, const void *flat, void *scratch,
                             mca_pml_umrddt_emit_fn_t emit, void *context);

/**
 * A TELL has come: check it field by field against the envelope, and read the layout.
 *
 * @param[in]  length  bytes of it
 * @param[in]  rts     the envelope of the message, checked
 * @param[in]  asked   MCA_PML_UMRDDT_TELL_* that were asked for
 * @param[in]  parts   that came before, or NULL
 * @param[out] from    the sender's layout, the caller owns a reference; NULL if it is not told
 *
 * @retval OMPI_SUCCESS              tell->what says what is there; of the export, buffer_id is
 * right
 * @retval OMPI_ERR_BAD_PARAM        a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_tell_read(const mca_pml_umrddt_tell_t *tell, size_t length,
                             const mca_pml_umrddt_rts_t *rts, uint32_t asked,
                             const mca_pml_umrddt_parts_t *parts, opal_iov_cache_layout_t **from);

/* ---------------------------------------------------------------------------------------------
 * What a receiver remembers of a sender (pml_umrddt_ipc.c)
 *
 * The last pml_umrddt_direct_layouts layouts of each peer, in pml_umrddt_layout_cache_size bytes
 * for all peers together; and which engine has mapped an allocation, for receivers in system
 * memory, which have none of their own; and which ones cannot be mapped. Imports are the GPU
 * room's.
 * ------------------------------------------------------------------------------------------- */

/** The layout that an envelope names. The caller owns a reference; NULL: not here */
opal_iov_cache_layout_t *mca_pml_umrddt_ipc_layout(mca_pml_umrddt_peer_t *peer,
                                                   const mca_pml_umrddt_rts_t *rts);

/** Remember one, as far as the bounds allow. */
void mca_pml_umrddt_ipc_keep(mca_pml_umrddt_peer_t *peer, uint64_t id,
                             opal_iov_cache_layout_t *layout);

/** The peer's completion flags; NULL if they are not mapped. */
mca_pml_umrddt_done_flags_t *mca_pml_umrddt_ipc_done_flags(const mca_pml_umrddt_peer_t *peer);

/** Map them, if they are not and can be. */
void mca_pml_umrddt_ipc_map_done_flags(mca_pml_umrddt_peer_t *peer, uint32_t pid, uint32_t fd);

/** The engine that mapped an allocation for a receiver in system memory; NULL: not known. */
opal_umrddt_gpu_engine_t *mca_pml_umrddt_ipc_home(const mca_pml_umrddt_peer_t *peer,
                                                  uint64_t buffer_id);

/** An allocation was mapped. @p engine is its home; NULL: for a receiver with an engine of its own
 */
void mca_pml_umrddt_ipc_mapped(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                               opal_umrddt_gpu_engine_t *engine);

/**
 * An allocation could not be mapped, for this engine (NULL: for any, and a receiver in system
 * memory). It is not asked for again, as long as this is remembered; nor is anything of a peer of
 * which nothing ever could.
 */
void mca_pml_umrddt_ipc_refused(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                const opal_umrddt_gpu_engine_t *engine);

/** True if there is no use in asking. */
bool mca_pml_umrddt_ipc_is_refused(const mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                   const opal_umrddt_gpu_engine_t *engine);

/** Free what is remembered of a peer. */
void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer);

/* ---------------------------------------------------------------------------------------------
 * The sender (pml_umrddt_ipc_send.c)
 * ------------------------------------------------------------------------------------------- */

/** True if messages in GPU memory may go this way to a peer. */
static inline bool mca_pml_umrddt_ipc_reaches(const mca_pml_umrddt_peer_t *peer)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & mca_pml_umrddt.schemes) && peer->same_host
           && peer->has_gpu;
}

/** True if a buffer's memory is of a kind that goes this way. */
static inline bool mca_pml_umrddt_ipc_takes(const mca_pml_umrddt_where_t *where)
{
    return OPAL_UMRDDT_GPU_DEVICE == where->memory.kind && !where->mixed && where->memory.legacy_ipc
           && 0 != where->memory.buffer_id;
}

/** As mca_pml_umrddt_ipc_offer, of a buffer that it takes; the fields are those of none. */
void mca_pml_umrddt_ipc_offer_device(mca_pml_umrddt_send_t *send);

/** The fields of this way, where it is not offered. */
static inline void mca_pml_umrddt_ipc_offer_none(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;

    send->told = false;
    rts->buffer_id = 0;
    rts->buffer = 0;
    rts->layout = 0;
    rts->lb = 0;
}

/** Offer the scheme in the envelope, if the buffer and the peer allow it, and fill its fields. */
static inline void mca_pml_umrddt_ipc_offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_ipc_offer_none(send);
    if (OPAL_UNLIKELY(mca_pml_umrddt_ipc_takes(&send->where))) {
        mca_pml_umrddt_ipc_offer_device(send);
    }
}

/** As the member of a scheme. */
void mca_pml_umrddt_ipc_reply(mca_pml_umrddt_send_t *send, size_t length);

/** A message that this was offered for got a reply, of kind REPLY: learn whether it works. */
void mca_pml_umrddt_ipc_answered(mca_pml_umrddt_send_t *send);

/* ---------------------------------------------------------------------------------------------
 * The receiver (pml_umrddt_ipc_recv.c, _ask.c)
 * ------------------------------------------------------------------------------------------- */

/** True if the message is to go this way: both sides can and may, and are of one host
 * (pml_umrddt_choice.c). */
bool mca_pml_umrddt_ipc_chosen(const mca_pml_umrddt_rts_t *rts, const mca_pml_umrddt_peer_t *peer);

/**
 * Nobody has a communicator any more on which this process was met: close what is mapped of its
 * memory, which else stays there for who frees it. What a message uses is closed behind the
 * message. Any thread. What else is remembered of it is ours, and stays.
 */
void mca_pml_umrddt_ipc_forget(const mca_pml_umrddt_peer_t *peer);

/** Set the bounds of what is kept mapped, by the parameters. */
void mca_pml_umrddt_ipc_open(void);

/** Forget imports, engines and what they keep; no message is under way. */
void mca_pml_umrddt_ipc_close(void);

/* ---------------------------------------------------------------------------------------------
 * Between the receiver's two files
 * ------------------------------------------------------------------------------------------- */

/** The sender's process, as the GPU room knows it. */
static inline uint64_t mca_pml_umrddt_ipc_number(const mca_pml_umrddt_peer_t *peer)
{
    return (uint64_t) peer->proc->proc_name.jobid << 32 | peer->proc->proc_name.vpid;
}

/** It does not go this way: the base PML brings it. */
void mca_pml_umrddt_ipc_refuse(mca_pml_umrddt_recv_t *recv);

/**
 * For a receiver in system memory: the engine of the sender's device, if the application uses it
 * here, too, else of the first one that it does use; whether that reaches the memory is seen when
 * it is mapped. No context is made for this.
 *
 * @return false: there is none
 */
bool mca_pml_umrddt_ipc_engine_for(const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine);

/** Copy, ask, or wait: nothing that was asked for is still missing. */
void mca_pml_umrddt_ipc_go_on(mca_pml_umrddt_recv_t *recv);

/** Ask the sender for what is missing (MCA_PML_UMRDDT_TELL_*), and go on when it has been told. */
void mca_pml_umrddt_ipc_ask(mca_pml_umrddt_recv_t *recv, uint32_t what);

/** True if another message has asked for some of this already. */
bool mca_pml_umrddt_ipc_is_asked(const mca_pml_umrddt_recv_t *recv, uint32_t what);

/** Give up what was asked for. */
void mca_pml_umrddt_ipc_ask_drop(mca_pml_umrddt_asked_t *asked);

/** Free the memory of the set of what is asked for: no message asks any more. */
void mca_pml_umrddt_ipc_ask_close(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_IPC_H */
