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
 * Shared by the files that receive: pml_umrddt_recv.c, _recv_post.c,
 * _recv_watch.c and _probe.c.
 */

#ifndef MCA_PML_UMRDDT_RECEIVES_H
#define MCA_PML_UMRDDT_RECEIVES_H

#include "ompi_config.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/message/message.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv.c: receives that have a record. The base PML may hold a request of the record,
 * and the application another one.
 * ------------------------------------------------------------------------------------------- */

/** Used where a callback lets the base PML complete a request: earlier writes are visible to the
 * thread that finds it complete. The base PML's own atomics ensure that. The macro is empty except
 * for a race detector, which does not see them. */
#if !defined(MCA_PML_UMRDDT_PASS_ON)
#define MCA_PML_UMRDDT_PASS_ON(request) ((void) (request))
#endif

/** Used where the base PML calls back: writes before the request was posted, maybe by another
 * thread, are visible. The base PML's lock of posted receives ensures that. The macro is empty
 * except for a race detector, which does not see it. */
#if !defined(MCA_PML_UMRDDT_CALLED_BACK)
#define MCA_PML_UMRDDT_CALLED_BACK(request) ((void) (request))
#endif

/**
 * A receive of the base PML got as many bytes as an envelope has: read them.
 *
 * @param[in]  bounce  the memory that it received into; NULL: the user's buffer
 * @param[out] rts     may be @p bounce
 *
 * @return true if they are one
 */
bool mca_pml_umrddt_read_envelope(const void *bounce, const void *buf, size_t count,
                                  ompi_datatype_t *datatype, mca_pml_umrddt_rts_t *rts);

/** Completion callback of a base PML request whose req_complete_cb_data is a record. @return 0: let
 * it complete; 1: keep it pending */
int mca_pml_umrddt_base_received(ompi_request_t *request);

/** Free function of such a request if it is the user's request. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/**
 * A receive of the base PML has completed with an envelope: continue with a request of our own. Its
 * sender waits for a reply, so this waits for memory. Called from the MPI API.
 *
 * @param[in] matched  the status of the receive
 *
 * @return the user's request
 */
ompi_request_t *mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                                           ompi_datatype_t *datatype,
                                           const mca_pml_umrddt_rts_t *rts,
                                           const ompi_status_public_t *matched);

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv.c: receives into memory that the base PML must not access, and of datatypes that
 * it cannot receive
 * ------------------------------------------------------------------------------------------- */

/**
 * Returns true if a receive needs a staging buffer. One reason is that the base PML must not access
 * the buffer (but see mca_pml_umrddt_base_given_recv), or cannot receive the datatype. Another is
 * that an envelope may arrive that does not fit the buffer or that the CPU cannot read there.
 *
 * @param[in]  plain  the message is no envelope
 * @param[out] where  memory kind of the buffer, if true
 */
bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 ompi_communicator_t *comm, bool plain,
                                 opal_umrddt_gpu_where_t *where);

/** As pml_irecv, for a buffer that needs a staging buffer. @param[in] where  NULL: it needs none */
int mca_pml_umrddt_stage_irecv(MCA_PML_UMRDDT_RECV_PARAMETERS, const opal_umrddt_gpu_where_t *where,
                               ompi_request_t **request);

/** As pml_imrecv, for a message of the base PML. */
int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                ompi_message_t **message, const opal_umrddt_gpu_where_t *where,
                                ompi_request_t **request);

/** Receive a base PML message into a staging buffer, recv->overflow. @return its error code */
int mca_pml_umrddt_stage_imrecv_into(mca_pml_umrddt_recv_t *recv, ompi_message_t **message);

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_probe.c: claims, messages that a probe has taken from the base PML before their
 * receive is posted
 * ------------------------------------------------------------------------------------------- */

/** Kind of a claim: a message taken from the base PML before its receive is posted. */
typedef enum mca_pml_umrddt_claim_kind_t {
    MCA_PML_UMRDDT_CLAIM_ENVELOPE, /**< bytes holds an RTS */
    MCA_PML_UMRDDT_CLAIM_DATA,     /**< bytes holds a plain message of the envelope's size */
    MCA_PML_UMRDDT_CLAIM_HANDLE    /**< any other plain message: handle is the base PML's */
} mca_pml_umrddt_claim_kind_t;

/** A claim is also the handle that the user of a matched probe gets. Its members comm, peer (the
 * source) and count (the length that a probe reports) are set. */
struct mca_pml_umrddt_claim_t {
    ompi_message_t super;
    mca_pml_umrddt_claim_kind_t kind;
    mca_pml_umrddt_comm_t *comm;
    uint64_t order; /**< order of matching among the claims of a communicator */
    int tag;
    int error; /**< of the base PML's receive of bytes, for the application */
    ompi_message_t *handle;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char data[MCA_PML_UMRDDT_ENVELOPE];
    } bytes;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_claim_t);

/** Remove the first claim that matches (src, tag). @return NULL: none. comm->gate.lock is held. */
mca_pml_umrddt_claim_t *mca_pml_umrddt_claim_take(mca_pml_umrddt_comm_t *comm, int src, int tag);

/** Give a claimed message to a new receive, *request. Consumes the claim. */
int mca_pml_umrddt_claim_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                                 ompi_datatype_t *datatype, ompi_request_t **request);

/** Give a claimed message to a started receive of our own. Consumes the claim. */
int mca_pml_umrddt_claim_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECEIVES_H */
