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
 * envelope has its offset. A receiver sends one INFO_REQ per message, and one at a time to each
 * sender: other messages that lack something wait, and find most of it in the caches afterwards.
 *
 * The application must not change the send buffer until the send request completes, which the
 * receiver's ACK or completion flag causes. All functions run only in progress.
 */

#ifndef MCA_PML_UMRDDT_IPC_H
#define MCA_PML_UMRDDT_IPC_H

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_peer.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

BEGIN_C_DECLS

_Static_assert(OPAL_UMRDDT_DONE_FLAG_COOKIE == MCA_PML_UMRDDT_COOKIE_LEN, "the same number");

typedef struct mca_pml_umrddt_info_req_t mca_pml_umrddt_info_req_t;

/** Data of a receive by this scheme. */
typedef struct mca_pml_umrddt_ipc_recv_t {
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_import_t *import;
    opal_iov_cache_layout_t *from;        /**< the sender's layout; NULL: one piece */
    opal_umrddt_gpu_copy_t *copy;         /**< in progress */
    mca_pml_umrddt_info_req_t *requested; /**< in state INFO_REQ */
} mca_pml_umrddt_ipc_recv_t;

/* ---------------------------------------------------------------------------------------------
 * Wire format (pml_umrddt_ipc.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the fields for BIT_IPC in an envelope are consistent with its schemes. The
 * fields may have another meaning without BIT_IPC. */
static inline bool mca_pml_umrddt_ipc_rts_valid(const mca_pml_umrddt_rts_t *rts)
{
    if (0 == (MCA_PML_UMRDDT_BIT_IPC & rts->schemes)) {
        return 0 == (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes);
    }
    if (0 != (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes)
        && OPAL_UMRDDT_DONE_FLAGS <= rts->request_id) {
        return false;
    }
    return 0 != rts->buffer_id && 0 != rts->layout && 0 != rts->pieces;
}

/**
 * Validate an INFO message against the envelope, and get the layout.
 *
 * @param[in]  length  size of the message, bytes
 * @param[in]  rts     the envelope, validated
 * @param[in]  requested   MCA_PML_UMRDDT_INFO_* that the INFO_REQ requested
 * @param[in]  parts   parts that arrived before, or NULL
 * @param[out] from    the sender's layout, the caller owns a reference; NULL if there is none
 *
 * @retval OMPI_SUCCESS info->what has the items; of the export only buffer_id is validated
 * @retval OMPI_ERR_BAD_PARAM a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_info_read(const mca_pml_umrddt_info_t *info, size_t length,
                             const mca_pml_umrddt_rts_t *rts, uint32_t requested,
                             const mca_pml_umrddt_parts_t *parts, opal_iov_cache_layout_t **from);

/* ---------------------------------------------------------------------------------------------
 * Caches of the receiver (pml_umrddt_ipc.c)
 *
 * umrddt_gpu_peer.h, for at most pml_umrddt_direct_layouts layouts of each peer, and
 * pml_umrddt_layout_cache_size bytes of layouts of all peers together. peer->gpu is NULL before
 * there is something to cache.
 * ------------------------------------------------------------------------------------------- */

/** Create peer->gpu unless it exists. @return false: no memory */
bool mca_pml_umrddt_ipc_remember(mca_pml_umrddt_peer_t *peer);

/** Get the peer's completion flags; NULL if they are not mapped. */
static inline opal_umrddt_done_flags_t *
mca_pml_umrddt_ipc_done_flags(const mca_pml_umrddt_peer_t *peer)
{
    return NULL == peer->gpu ? NULL : peer->gpu->done_flags;
}

/** Check the caches of a peer: member of the scheme. */
const char *mca_pml_umrddt_ipc_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes);

void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer);

/* ---------------------------------------------------------------------------------------------
 * The sender (pml_umrddt_ipc_scheme.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the scheme can carry messages from this memory and has not failed with the
 * peer. Any thread. */
static inline bool mca_pml_umrddt_ipc_wanted(const mca_pml_umrddt_comm_t *comm,
                                             const mca_pml_umrddt_peer_t *peer,
                                             const opal_umrddt_gpu_where_t *where)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & comm->schemes) && mca_pml_umrddt_copy_reaches(peer)
           && mca_pml_umrddt_copy_takes(peer, where) && mca_pml_umrddt_copy_works(peer);
}

/* ---------------------------------------------------------------------------------------------
 * The receiver (pml_umrddt_ipc_scheme.c, pml_umrddt_ipc.c)
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the rules permit the scheme. The driver cannot open handles of a remote node,
 * whatever the envelope offers. */
static inline bool mca_pml_umrddt_ipc_can_recv(mca_pml_umrddt_recv_t *recv)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & recv->rts.schemes & mca_pml_umrddt.schemes)
           && recv->peer->same_host;
}

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

/** Continue with the copy, an INFO_REQ, or a wait. All requested information is here. */
void mca_pml_umrddt_ipc_go_on(mca_pml_umrddt_recv_t *recv);

/** Send an INFO_REQ for @p what (MCA_PML_UMRDDT_INFO_*), and continue when the answer arrives. No
 * other one may be in progress with the peer (peer->info_req). */
void mca_pml_umrddt_ipc_info_req(mca_pml_umrddt_recv_t *recv, uint32_t what);

/** Cancel an INFO_REQ. */
void mca_pml_umrddt_ipc_info_req_drop(mca_pml_umrddt_info_req_t *requested);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_IPC_H */
