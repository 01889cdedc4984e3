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
 * Scheme ipc: messages from GPU memory of the same node. The receiver reads the sender's memory
 * with one copy from layout to layout.
 *
 * The envelope has the BUFFER_ID of the sender's allocation, the address of the buffer, and the id
 * of the sender's layout. The driver never reuses a BUFFER_ID in a process, and the layout cache
 * never reuses an id. So the receiver caches by (peer, BUFFER_ID) and by (peer, layout id). It
 * reads only the memory that the current envelope names, within the bounds of the imported
 * allocation.
 *
 * The receiver requests missing information with an INFO_REQ. The sender answers with an INFO
 * message: the export of the allocation (opal_umrddt_gpu_export_t) and the flattened layout, in
 * parts before the INFO message if it is long. A contiguous layout is not sent, because the
 * envelope has its offset. A receiver sends one INFO_REQ per message, and no two messages of a
 * sender request the same item at the same time.
 *
 * The application must not change the send buffer until the send request completes, which the
 * receiver's ACK or completion flag causes. All functions run only in progress.
 */

#ifndef MCA_PML_UMRDDT_IPC_H
#define MCA_PML_UMRDDT_IPC_H

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_peer.h"

#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"

BEGIN_C_DECLS

typedef struct mca_pml_umrddt_asked_t mca_pml_umrddt_asked_t;

/* ---------------------------------------------------------------------------------------------
 * Wire format (pml_umrddt_ipc.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the fields for BIT_IPC in an envelope are consistent with its schemes. */
bool mca_pml_umrddt_ipc_rts_valid(const mca_pml_umrddt_rts_t *rts);

/** Returns true if an envelope offers neither BIT_IPC nor stripes and has valid fields. */
static inline bool mca_pml_umrddt_ipc_rts_is_plain(const mca_pml_umrddt_rts_t *rts)
{
    return 0 == ((MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_DONE_FLAG) & rts->schemes)
           && 0 == (rts->buffer_id | rts->buffer | rts->layout | (uint64_t) rts->lb);
}

/**
 * Send an INFO message, preceded by as many parts of the flattened layout as needed.
 *
 * @param[in] tell     flat_bytes 0: without a layout
 * @param[in] flat     flattened layout, tell->flat_bytes
 * @param[in] scratch  buffer of MCA_PML_UMRDDT_TELL_ROOM bytes
 *
 * @return OMPI_SUCCESS, or the error of @p emit
 */
int mca_pml_umrddt_tell_emit(const mca_pml_umrddt_tell_t *tell, const void *flat, void *scratch,
                             mca_pml_umrddt_emit_fn_t emit, void *context);

/**
 * Validate an INFO message against the envelope, and get the layout.
 *
 * @param[in]  length  size of the message, bytes
 * @param[in]  rts     the envelope, validated
 * @param[in]  asked   MCA_PML_UMRDDT_TELL_* that the INFO_REQ requested
 * @param[in]  parts   parts that arrived before, or NULL
 * @param[out] from    the sender's layout, the caller owns a reference; NULL if there is none
 *
 * @retval OMPI_SUCCESS tell->what has the items; of the export only buffer_id is validated
 * @retval OMPI_ERR_BAD_PARAM a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_tell_read(const mca_pml_umrddt_tell_t *tell, size_t length,
                             const mca_pml_umrddt_rts_t *rts, uint32_t asked,
                             const mca_pml_umrddt_parts_t *parts, opal_iov_cache_layout_t **from);

/* ---------------------------------------------------------------------------------------------
 * Caches of the receiver (pml_umrddt_ipc.c)
 *
 * umrddt_gpu_peer.h: pml_umrddt_direct_layouts layouts of each peer, pml_umrddt_layout_cache_size
 * bytes of layouts of all peers together. peer->ipc is NULL while nothing is cached.
 * ------------------------------------------------------------------------------------------- */

/** Get the layout of an envelope. The caller owns a reference. @return NULL: not in the cache */
static inline opal_iov_cache_layout_t *mca_pml_umrddt_ipc_layout(mca_pml_umrddt_peer_t *peer,
                                                                 const mca_pml_umrddt_rts_t *rts)
{
    return NULL == peer->ipc ? NULL
                             : opal_umrddt_gpu_peer_layout(peer->ipc, rts->layout, rts->length,
                                                           rts->lb, rts->pieces);
}

/** Cache a layout if the limits allow. */
void mca_pml_umrddt_ipc_keep(mca_pml_umrddt_peer_t *peer, uint64_t id,
                             opal_iov_cache_layout_t *layout);

/** Get the peer's completion flags; NULL if they are not mapped. */
static inline opal_umrddt_done_flags_t *
mca_pml_umrddt_ipc_done_flags(const mca_pml_umrddt_peer_t *peer)
{
    return NULL == peer->ipc ? NULL : peer->ipc->done_flags;
}

/** Map the peer's completion flags unless they are mapped. Ignores failures. */
void mca_pml_umrddt_ipc_map_done_flags(mca_pml_umrddt_peer_t *peer, uint32_t pid, uint32_t fd);

static inline opal_umrddt_gpu_engine_t *mca_pml_umrddt_ipc_home(const mca_pml_umrddt_peer_t *peer,
                                                                uint64_t buffer_id)
{
    return NULL == peer->ipc ? NULL : opal_umrddt_gpu_peer_home(peer->ipc, buffer_id);
}

/** As opal_umrddt_gpu_peer_mapped and _refused. */
void mca_pml_umrddt_ipc_mapped(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                               opal_umrddt_gpu_engine_t *engine);
void mca_pml_umrddt_ipc_refused(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                const opal_umrddt_gpu_engine_t *engine);

/** Returns true if an INFO_REQ for this allocation would be useless. */
static inline bool mca_pml_umrddt_ipc_is_refused(const mca_pml_umrddt_peer_t *peer,
                                                 uint64_t buffer_id,
                                                 const opal_umrddt_gpu_engine_t *engine)
{
    return NULL != peer->ipc && opal_umrddt_gpu_peer_is_refused(peer->ipc, buffer_id, engine);
}

void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer);

/* ---------------------------------------------------------------------------------------------
 * The sender (pml_umrddt_ipc_send.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the scheme can carry messages from GPU memory to a peer. */
static inline bool mca_pml_umrddt_ipc_reaches(const mca_pml_umrddt_peer_t *peer)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & mca_pml_umrddt.schemes) && peer->same_host
           && peer->has_gpu;
}

/** Returns true if the scheme can read this kind of memory. */
static inline bool mca_pml_umrddt_ipc_takes(const mca_pml_umrddt_where_t *where)
{
    return OPAL_UMRDDT_GPU_DEVICE == where->memory.kind && !where->mixed && where->memory.legacy_ipc
           && 0 != where->memory.buffer_id;
}

/** mca_pml_umrddt_ipc_offer for memory that the scheme can read. The fields must be those of
 * mca_pml_umrddt_ipc_offer_none. */
void mca_pml_umrddt_ipc_offer_device(mca_pml_umrddt_send_t *send);

/** Set the fields of this scheme in an envelope that does not offer it. */
static inline void mca_pml_umrddt_ipc_offer_none(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;

    send->told = false;
    rts->buffer_id = 0;
    rts->buffer = 0;
    rts->layout = 0;
    rts->lb = 0;
}

/** Offer the scheme in the envelope if the buffer and the peer allow it, and set its fields. */
static inline void mca_pml_umrddt_ipc_offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_ipc_offer_none(send);
    if (OPAL_UNLIKELY(mca_pml_umrddt_ipc_takes(&send->where))) {
        mca_pml_umrddt_ipc_offer_device(send);
    }
}

/** Member function of the scheme. */
void mca_pml_umrddt_ipc_reply(mca_pml_umrddt_send_t *send, size_t length);

/** A message that offered this scheme got a reply (KIND_REPLY): record success or failure. */
void mca_pml_umrddt_ipc_answered(mca_pml_umrddt_send_t *send);

/* ---------------------------------------------------------------------------------------------
 * The receiver (pml_umrddt_ipc_recv.c, _ask.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the rules permit the scheme. The driver cannot open handles of a remote node,
 * whatever the envelope offers. */
static inline bool mca_pml_umrddt_ipc_chosen(const mca_pml_umrddt_rts_t *rts,
                                             const mca_pml_umrddt_peer_t *peer)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes & mca_pml_umrddt.schemes) && peer->same_host;
}

/**
 * Unmap the memory of a process that shares no communicator any more, so that its owner can free
 * it. Imports in use are released after their messages. The other caches stay. Any thread.
 */
void mca_pml_umrddt_ipc_forget(const mca_pml_umrddt_peer_t *peer);

/** Set the limits of the import and export caches from the parameters. */
void mca_pml_umrddt_ipc_open(void);

/** Release imports and completion flags. No message may be active. */
void mca_pml_umrddt_ipc_close(void);

/* ---------------------------------------------------------------------------------------------
 * Between the receiver's two files
 * ------------------------------------------------------------------------------------------- */

/** Identify the sender's process for common/umrddt_gpu. */
static inline uint64_t mca_pml_umrddt_ipc_number(const mca_pml_umrddt_peer_t *peer)
{
    return (uint64_t) peer->proc->proc_name.jobid << 32 | peer->proc->proc_name.vpid;
}

/** Give the message up; the engine tries the next candidate. */
void mca_pml_umrddt_ipc_refuse(mca_pml_umrddt_recv_t *recv);

/**
 * Select an engine for a receiver in system memory: the one of the sender's device if the
 * application uses that device here, else the first device that it uses. The import shows whether
 * that engine reaches the memory. Creates no context. @return false: there is none
 */
bool mca_pml_umrddt_ipc_engine_for(const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine);

/** Continue with the copy, an INFO_REQ, or a wait. All requested information is here. */
void mca_pml_umrddt_ipc_go_on(mca_pml_umrddt_recv_t *recv);

/** Send an INFO_REQ for @p what (MCA_PML_UMRDDT_TELL_*), and continue when the answer arrives. */
void mca_pml_umrddt_ipc_ask(mca_pml_umrddt_recv_t *recv, uint32_t what);

/** Returns true if another message has requested some of this. */
bool mca_pml_umrddt_ipc_is_asked(const mca_pml_umrddt_recv_t *recv, uint32_t what);

/** Cancel an INFO_REQ. */
void mca_pml_umrddt_ipc_ask_drop(mca_pml_umrddt_asked_t *asked);

/** Free the table of requested items. No INFO_REQ may be active. */
void mca_pml_umrddt_ipc_ask_close(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_IPC_H */
