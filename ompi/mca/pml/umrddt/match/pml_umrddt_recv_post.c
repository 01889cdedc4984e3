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
 * Receives as MPI calls them: how they are posted and watched. An envelope may match any of them.
 */

/*
 * A nonblocking receive is the base PML's own request with a completion callback. For a plain
 * message the callback lets the request complete normally. For an envelope it keeps the request
 * pending until progress has received the data. The request's free function is replaced while it is
 * watched, since only that call shows that the user has freed the request. It is restored before
 * the request returns to the base PML's pool. There are two ways of watching:
 *
 * - bare: for base PMLs that store the arguments of the receive in the request (ob1). A record is
 *   allocated when an envelope arrives.
 * - with a record from the start: other base PMLs, and persistent receives.
 *
 * A single-threaded process posts a receive and then tests it: a completed one needs no watching.
 * With threads the receive might complete in between. It is therefore created by irecv_init,
 * watched, and then started. The gate (pml_umrddt_gate.h) makes claim check and posting atomic.
 *
 * A receive smaller than an envelope uses a bounce buffer, so that the base PML never truncates an
 * envelope: without its end the receiver could not answer it. The bounce buffer is in the record,
 * or, if bare, in a smaller structure (pml_umrddt_recv_watch.c).
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_bounce.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_claim.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_record.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_stage_recv.h"

/* ---------------------------------------------------------------------------------------------
 * Posting at the base PML
 * ------------------------------------------------------------------------------------------- */

/** A receive completed with the size of an envelope: check whether it is one. */
static __opal_attribute_noinline__ int look_into(mca_pml_umrddt_comm_t *comm, void *buf,
                                                 size_t count, ompi_datatype_t *datatype,
                                                 ompi_request_t **request)
{
    const ompi_status_public_t *status = &(*request)->req_status;
    mca_pml_umrddt_rts_t rts;

    if (MPI_SUCCESS != status->MPI_ERROR || 0 > status->MPI_TAG) {
        return OMPI_SUCCESS;
    }
    if (sizeof(rts) != mca_pml_umrddt_pack(buf, count, datatype, &rts, sizeof(rts))
        || !mca_pml_umrddt_is_envelope(&rts)) {
        return OMPI_SUCCESS;
    }
    return mca_pml_umrddt_envelope_in_request(comm, buf, count, datatype, &rts, request);
}

/** As look_into, with the arguments from the base PML's request. */
static __opal_attribute_noinline__ int bare_look_into(ompi_request_t **request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) *request;

    return look_into(mca_pml_umrddt_comm_find(base->req_comm), base->req_addr, base->req_count,
                     base->req_datatype, request);
}

/** Single-threaded, bare watching, buffer large enough for an envelope. */
static inline int post_bare(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                            ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_request_t *host;
    int rc = mca_pml_umrddt.host.pml_irecv(buf, count, datatype, src, tag, comm, request);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    host = *request;
    if (REQUEST_COMPLETE(host)) {
        return OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != host->req_status._ucount)
                   ? OMPI_SUCCESS
                   : bare_look_into(request);
    }
    mca_pml_umrddt_bare_watch(host, mca_pml_umrddt_bare_received_alone);
    return OMPI_SUCCESS;
}

/** Single-threaded, watching with a record, buffer large enough for an envelope. */
static __opal_attribute_noinline__ int post_recorded(void *buf, size_t count,
                                                     ompi_datatype_t *datatype, int src, int tag,
                                                     ompi_communicator_t *ompi_comm,
                                                     ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    mca_pml_umrddt_recv_t *recv;
    int rc;

    rc = mca_pml_umrddt.host.pml_irecv(buf, count, datatype, src, tag, comm->comm, request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    if (REQUEST_COMPLETE(*request)) {
        return OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != (*request)->req_status._ucount)
                   ? OMPI_SUCCESS
                   : look_into(comm, buf, count, datatype, request);
    }
    recv = mca_pml_umrddt_record_alloc(buf, count, datatype, src, tag, comm);
    if (OPAL_UNLIKELY(NULL == recv)) {
        ompi_request_cancel(*request);
        ompi_request_free(request);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    mca_pml_umrddt_watch_record(recv, *request);
    return OMPI_SUCCESS;
}

/** Single-threaded: post at the base PML, then test the request. */
static inline int post_alone(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                             ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_ENVELOPE > count * datatype->super.size)) {
        return mca_pml_umrddt_post_bounced(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return post_recorded(buf, count, datatype, src, tag, comm, request);
    }
    return post_bare(buf, count, datatype, src, tag, comm, request);
}

/** With threads, bare watching. */
static int post_bare_threads(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                             ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc = mca_pml_umrddt.host.pml_irecv_init(buf, count, datatype, src, tag, comm, request);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    (*request)->req_persistent = false;
    mca_pml_umrddt_bare_learn(*request);
    mca_pml_umrddt_bare_watch(*request, mca_pml_umrddt_bare_received);
    return mca_pml_umrddt_start_once(request);
}

/** With threads, watching with a record: create the request, watch it, and only then start it. */
static int post_recorded_threads(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                 int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_record_alloc(buf, count, datatype, src, tag, mca_pml_umrddt_comm_find(comm));
    int rc;

    if (OPAL_UNLIKELY(NULL == recv)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = mca_pml_umrddt_base_init(recv);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
        return rc;
    }
    *request = recv->host;
    if (recv->bounced) {
        mca_pml_umrddt_bounce_in(mca_pml_umrddt_recv_bounce(recv));
    }
    mca_pml_umrddt_watch_record(recv, *request);
    return mca_pml_umrddt_start_once(request);
}

/** Post a watched receive at the base PML. Call inside the gate, or with comm->gate.lock held. */
static int post(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                ompi_communicator_t *comm, ompi_request_t **request)
{
    if (!opal_using_threads()) {
        return post_alone(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return post_recorded_threads(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_LIKELY(MCA_PML_UMRDDT_ENVELOPE <= count * datatype->super.size)) {
        return post_bare_threads(buf, count, datatype, src, tag, comm, request);
    }
    return mca_pml_umrddt_post_bounced_threads(buf, count, datatype, src, tag, comm, request);
}

/* ---------------------------------------------------------------------------------------------
 * MPI functions
 * ------------------------------------------------------------------------------------------- */

/** With claims: search them, then post at the base PML, with the lock held. */
static __opal_attribute_noinline__ int irecv_claims(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *ompi_comm,
                                                    ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    mca_pml_umrddt_claim_t *claim;
    int rc;

    OPAL_THREAD_LOCK(&comm->gate.lock);
    claim = mca_pml_umrddt_claim_take(comm, src, tag);
    if (NULL == claim) {
        rc = post(buf, count, datatype, src, tag, ompi_comm, request);
    } else {
        rc = mca_pml_umrddt_claim_deliver(claim, buf, count, datatype, request);
    }
    umrddt_gate_open(&comm->gate);
    OPAL_THREAD_UNLOCK(&comm->gate.lock);
    return rc;
}

/** With threads, or with claims. */
static __opal_attribute_noinline__ int irecv_gate(void *buf, size_t count,
                                                  ompi_datatype_t *datatype, int src, int tag,
                                                  ompi_communicator_t *ompi_comm,
                                                  ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    int rc;

    if (OPAL_UNLIKELY(!umrddt_gate_enter(&comm->gate))) {
        return irecv_claims(buf, count, datatype, src, tag, ompi_comm, request);
    }
    if (OPAL_UNLIKELY(NULL == __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED))
        && mca_pml_umrddt.host_keeps) {
        ompi_request_t *first;

        rc = mca_pml_umrddt.host.pml_irecv_init(buf, count, datatype, src, tag, ompi_comm, &first);
        if (OMPI_SUCCESS == rc) {
            mca_pml_umrddt_bare_learn(first);
            ompi_request_free(&first);
        }
    }
    rc = post(buf, count, datatype, src, tag, ompi_comm, request);
    umrddt_gate_leave(&comm->gate);
    umrddt_gate_unguard(&comm->gate);
    return rc;
}

/** Returns true if further checks are needed: there may be GPU memory, or the base PML may be
 * unable to receive the datatype in fragments. */
static inline bool may_want_stage(const ompi_datatype_t *datatype)
{
    return NULL != mca_pml_umrddt.gpu
           || opal_umrddt_gpu_may_cut(&mca_pml_umrddt.cuts, &datatype->super);
}

/** Fast check: known system memory, and a datatype that can be received in fragments. */
static inline bool needs_no_stage(const void *buf, size_t count, const ompi_datatype_t *datatype)
{
    return mca_pml_umrddt_known_system(buf, count, datatype)
           && !opal_umrddt_gpu_may_cut(&mca_pml_umrddt.cuts, &datatype->super);
}

/** A receive whose buffer the base PML may access. */
static inline int irecv_unstaged(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                 int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_irecv(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_UNLIKELY(!umrddt_gate_alone(&data->gate))) {
        return irecv_gate(buf, count, datatype, src, tag, comm, request);
    }
    return post_alone(buf, count, datatype, src, tag, comm, request);
}

/** irecv that may need a staging buffer. A separate function, so that irecv itself needs no stack.
 */
static __opal_attribute_noinline__ int irecv_requested(void *buf, size_t count,
                                                       ompi_datatype_t *datatype, int src, int tag,
                                                       ompi_communicator_t *comm,
                                                       ompi_request_t **request)
{
    opal_umrddt_gpu_where_t where;

    if (MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, &where)
        && !mca_pml_umrddt_base_given_recv(comm, &where, buf, count, datatype, src, tag)) {
        return mca_pml_umrddt_stage_irecv(buf, count, datatype, src, tag, comm, &where, request);
    }
    return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
}

/** irecv in a process with the CUDA driver, or with a wide datatype. Separate for the same reason.
 */
static __opal_attribute_noinline__ int irecv_looked(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *comm,
                                                    ompi_request_t **request)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
    }
    return irecv_requested(buf, count, datatype, src, tag, comm, request);
}

int mca_pml_umrddt_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return irecv_looked(buf, count, datatype, src, tag, comm, request);
    }
    return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
}

/** Arguments of a blocking receive that are needed after the base PML's call. */
typedef struct blocking_t {
    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    ompi_communicator_t *comm;
} blocking_t;

/** A blocking receive got an envelope. */
static __opal_attribute_noinline__ int
recv_envelope(const blocking_t *call, const mca_pml_umrddt_rts_t *rts, ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_find(call->comm), call->buf,
                                        call->count, call->datatype, rts, status, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** A blocking receive that is smaller than an envelope. */
static __opal_attribute_noinline__ int recv_bounced(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *comm,
                                                    ompi_status_public_t *status)
{
    blocking_t call = {.buf = buf, .count = count, .datatype = datatype, .comm = comm};
    ompi_status_public_t matched;
    int rc;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char bytes[MCA_PML_UMRDDT_ENVELOPE];
    } bounce;

    if (MPI_STATUS_IGNORE == status) {
        status = &matched;
    }
    if (!mca_pml_umrddt.host_keeps) {
        mca_pml_umrddt_bounce_in(bounce.bytes);
    }
    rc = mca_pml_umrddt.host.pml_recv(bounce.bytes, sizeof(bounce), &ompi_mpi_byte.dt, src, tag,
                                      comm, status);
    if (OPAL_UNLIKELY(sizeof(bounce) == status->_ucount) && MPI_SUCCESS == rc
        && mca_pml_umrddt_is_envelope(&bounce.rts)) {
        return recv_envelope(&call, &bounce.rts, status);
    }
    return mca_pml_umrddt_bounce_out(call.buf, call.count, call.datatype, bounce.bytes, rc,
                                     status->_ucount);
}

/** A blocking receive got a message of the envelope's size. */
static __opal_attribute_noinline__ int recv_look_into(const blocking_t *call,
                                                      ompi_status_public_t *status)
{
    mca_pml_umrddt_rts_t rts;

    if (sizeof(rts)
            != mca_pml_umrddt_pack(call->buf, call->count, call->datatype, &rts, sizeof(rts))
        || !mca_pml_umrddt_is_envelope(&rts)) {
        return MPI_SUCCESS;
    }
    return recv_envelope(call, &rts, status);
}

/** With threads, or with claims: the atomic step must not block, so post first, then wait. */
static __opal_attribute_noinline__ int recv_gate(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, ompi_communicator_t *comm,
                                                 ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = irecv_gate(buf, count, datatype, src, tag, comm, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** Receive into memory that the base PML must not access. */
static __opal_attribute_noinline__ int recv_staged(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   ompi_communicator_t *comm,
                                                   const opal_umrddt_gpu_where_t *where,
                                                   ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = mca_pml_umrddt_stage_irecv(buf, count, datatype, src, tag, comm, where, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** A blocking receive whose buffer the base PML may access. */
static inline int recv_unstaged(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);
    ompi_status_public_t matched;
    blocking_t call;
    int rc;

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_recv(buf, count, datatype, src, tag, comm, status);
    }
    if (OPAL_UNLIKELY(!umrddt_gate_alone(&data->gate))) {
        return recv_gate(buf, count, datatype, src, tag, comm, status);
    }
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_ENVELOPE > count * datatype->super.size)) {
        return recv_bounced(buf, count, datatype, src, tag, comm, status);
    }
    if (MPI_STATUS_IGNORE == status) {
        status = &matched;
    }
    call.buf = buf;
    call.count = count;
    call.datatype = datatype;
    call.comm = comm;
    rc = mca_pml_umrddt.host.pml_recv(buf, count, datatype, src, tag, comm, status);
    if (OPAL_LIKELY(MPI_SUCCESS != rc || MCA_PML_UMRDDT_ENVELOPE != status->_ucount)) {
        return rc;
    }
    return recv_look_into(&call, status);
}

/** recv that may need a staging buffer. */
static __opal_attribute_noinline__ int recv_requested(void *buf, size_t count,
                                                      ompi_datatype_t *datatype, int src, int tag,
                                                      ompi_communicator_t *comm,
                                                      ompi_status_public_t *status)
{
    opal_umrddt_gpu_where_t where;

    if (MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, &where)
        && !mca_pml_umrddt_base_given_recv(comm, &where, buf, count, datatype, src, tag)) {
        return recv_staged(buf, count, datatype, src, tag, comm, &where, status);
    }
    return recv_unstaged(buf, count, datatype, src, tag, comm, status);
}

/** recv in a process with the CUDA driver, or with a wide datatype. */
static __opal_attribute_noinline__ int recv_looked(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   ompi_communicator_t *comm,
                                                   ompi_status_public_t *status)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return recv_unstaged(buf, count, datatype, src, tag, comm, status);
    }
    return recv_requested(buf, count, datatype, src, tag, comm, status);
}

int mca_pml_umrddt_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return recv_looked(buf, count, datatype, src, tag, comm, status);
    }
    return recv_unstaged(buf, count, datatype, src, tag, comm, status);
}
