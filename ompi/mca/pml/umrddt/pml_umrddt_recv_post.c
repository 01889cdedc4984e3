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
 * Receives, as MPI calls them: how they are posted at the host, and watched. Any of them may be
 * matched by an envelope.
 *
 * A nonblocking receive stays the host's own request with a completion callback, which lets a plain
 * message complete as it would without us, and keeps the request pending for an envelope, whose
 * data progress then brings. The host's free function is replaced while the request is watched,
 * because it is the only sign that the user let go of it, and put back before the request returns
 * to the host's pool. There are two ways of watching:
 *
 *  - bare: a host that keeps in its request what the receive was posted with (ob1). A record is
 *    made when an envelope comes.
 *  - with a record from the start: other hosts, and persistent receives.
 *
 * In one thread a receive is posted and then looked at: one that is complete needs no watching.
 * With threads, one of which might complete it in between, it is made by irecv_init, watched, and
 * then started; and 'there are no claims' and 'posted' are one step by the gate
 * (pml_umrddt_gate.h).
 *
 * A receive that is smaller than an envelope gets room for one, so that the host never truncates
 * one: an envelope that was cut could not tell whom to answer. The room is in a record, or, in one
 * thread and bare, in less than that (pml_umrddt_recv_small.c).
 */

#include "ompi_config.h"

#include "pml_umrddt_base_gpu.h"
#include "pml_umrddt_gate.h"
#include "pml_umrddt_recv_watch.h"

/* ---------------------------------------------------------------------------------------------
 * Posting at the host
 * ------------------------------------------------------------------------------------------- */

/** An envelope came to a receive that is over for the host: go on with a request of our own. */
static int envelope_in(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                       ompi_datatype_t *datatype, const mca_pml_umrddt_rts_t *rts,
                       const ompi_status_public_t *matched, ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv = mca_pml_umrddt_recv_alloc(
        buf, count, datatype, matched->MPI_SOURCE, matched->MPI_TAG, comm);

    if (NULL == recv) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->rts = *rts;
    recv->status = *matched;
    recv->status.MPI_ERROR = MPI_SUCCESS;
    recv->super.req_status = recv->status;
    mca_pml_umrddt_recv_matched(recv);
    *request = &recv->super;
    return OMPI_SUCCESS;
}

/** As envelope_in, where the host's request is still there. */
static int envelope_in_request(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                               ompi_datatype_t *datatype, const mca_pml_umrddt_rts_t *rts,
                               ompi_request_t **request)
{
    ompi_request_t *host = *request;
    int rc = envelope_in(comm, buf, count, datatype, rts, &host->req_status, request);

    ompi_request_free(&host);
    if (OMPI_SUCCESS != rc) {
        *request = NULL;
    }
    return rc;
}

/** A receive with room for an envelope has completed with as many bytes. */
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
    return envelope_in_request(comm, buf, count, datatype, &rts, request);
}

/** As look_into; the host's request knows the rest. */
static __opal_attribute_noinline__ int bare_look_into(ompi_request_t **request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) *request;

    return look_into(mca_pml_umrddt_comm_find(base->req_comm), base->req_addr, base->req_count,
                     base->req_datatype, request);
}

/** One thread, a host whose requests can be watched bare, room for an envelope. */
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

/** One thread, any other host, room for an envelope. */
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

int mca_pml_umrddt_bounced_already(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_comm_t *comm,
                                   ompi_request_t **request)
{
    ompi_status_public_t *status = &(*request)->req_status;
    int rc = OMPI_SUCCESS;

    if (OPAL_UNLIKELY(sizeof(recv->rts) == status->_ucount) && MPI_SUCCESS == status->MPI_ERROR
        && 0 <= status->MPI_TAG) {
        memcpy(&recv->rts, recv->bounce, sizeof(recv->rts));
        if (mca_pml_umrddt_is_envelope(&recv->rts)) {
            rc = envelope_in_request(comm, recv->buf, recv->count, recv->datatype, &recv->rts,
                                     request);
            opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
            return rc;
        }
    }
    status->MPI_ERROR = mca_pml_umrddt_bounce_out(recv->buf, recv->count, recv->datatype,
                                                  recv->bounce, status->MPI_ERROR, status->_ucount);
    opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
    return rc;
}

int mca_pml_umrddt_post_bounced(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);
    int rc;

    if (OPAL_UNLIKELY(NULL == recv)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->buf = buf;
    recv->count = count;
    recv->datatype = datatype;
    recv->bounced = true;
    mca_pml_umrddt_bounce_in(recv->bounce);
    rc = mca_pml_umrddt.host.pml_irecv(recv->bounce, sizeof(recv->bounce), &ompi_mpi_byte.dt, src,
                                       tag, comm, request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
        return rc;
    }
    if (REQUEST_COMPLETE(*request)) {
        return mca_pml_umrddt_bounced_already(recv, mca_pml_umrddt_comm_find(comm), request);
    }
    if (mca_pml_umrddt.host_keeps) {
        OMPI_DATATYPE_RETAIN(datatype);
        mca_pml_umrddt_bare_watch(*request, mca_pml_umrddt_bare_bounced_received);
        return OMPI_SUCCESS;
    }
    recv->src = src;
    recv->tag = tag;
    recv->comm = mca_pml_umrddt_comm_find(comm);
    mca_pml_umrddt_watch_record(recv, *request);
    return OMPI_SUCCESS;
}

/** In one thread: post at the host, then look at what came of it. */
static inline int post_alone(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                             ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_ENVELOPE > count * datatype->super.size)) {
        return mca_pml_umrddt_post_small(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return post_recorded(buf, count, datatype, src, tag, comm, request);
    }
    return post_bare(buf, count, datatype, src, tag, comm, request);
}

/** Start a request that is watched, for once. If the host refuses it, it is gone. */
static int start_once(ompi_request_t **request)
{
    ompi_request_t *host = *request;
    int rc = mca_pml_umrddt.host.pml_start(1, &host);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        host = *request;
        *request = NULL;
        if (mca_pml_umrddt_watched_free == host->req_free) {
            mca_pml_umrddt_recv_return(host->req_complete_cb_data);
        } else {
            mca_pml_umrddt_bare_unwatch(host);
            host->req_complete_cb = NULL;
            ompi_request_free(&host);
        }
    }
    return rc;
}

/** Threads, a host whose requests can be watched bare. */
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
    return start_once(request);
}

/** Threads, any host: make the request, watch it, and only then let it match. */
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
        mca_pml_umrddt_bounce_in(recv->bounce);
    }
    if (recv->bounced && mca_pml_umrddt.host_keeps) {
        (*request)->req_persistent = false;
        OMPI_DATATYPE_RETAIN(datatype);
        mca_pml_umrddt_bare_learn(*request);
        mca_pml_umrddt_bare_watch(*request, mca_pml_umrddt_bare_bounced_received);
    } else {
        mca_pml_umrddt_watch_record(recv, *request);
    }
    return start_once(request);
}

/** Post a receive at the host, watched. Inside of the gate, or under comm->match. */
static int post(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                ompi_communicator_t *comm, ompi_request_t **request)
{
    if (!opal_using_threads()) {
        return post_alone(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_LIKELY(mca_pml_umrddt.host_keeps
                    && MCA_PML_UMRDDT_ENVELOPE <= count * datatype->super.size)) {
        return post_bare_threads(buf, count, datatype, src, tag, comm, request);
    }
    return post_recorded_threads(buf, count, datatype, src, tag, comm, request);
}

/* ---------------------------------------------------------------------------------------------
 * The API
 * ------------------------------------------------------------------------------------------- */

/** With claims: 'search them, then post at the host' under the lock. */
static __opal_attribute_noinline__ int irecv_claims(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *ompi_comm,
                                                    ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    mca_pml_umrddt_claim_t *claim;
    int rc;

    OPAL_THREAD_LOCK(&comm->match);
    claim = mca_pml_umrddt_claim_take(comm, src, tag);
    if (NULL == claim) {
        rc = post(buf, count, datatype, src, tag, ompi_comm, request);
    } else {
        rc = mca_pml_umrddt_claim_deliver(claim, buf, count, datatype, request);
    }
    mca_pml_umrddt_gate_open(comm);
    OPAL_THREAD_UNLOCK(&comm->match);
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

    if (OPAL_UNLIKELY(!mca_pml_umrddt_gate_enter(comm))) {
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
    mca_pml_umrddt_gate_leave(comm);
    mca_pml_umrddt_gate_unguard(comm);
    return rc;
}

/** Whether to look further: there may be GPU memory, or the datatype may not be received in parts.
 */
static inline bool may_want_stage(const ompi_datatype_t *datatype)
{
    return NULL != mca_pml_umrddt.gpu || mca_pml_umrddt_may_cut(datatype);
}

/** The usual answer, without asking: known system memory, and a datatype that comes in parts. */
static inline bool needs_no_stage(const void *buf, size_t count, const ompi_datatype_t *datatype)
{
    return mca_pml_umrddt_known_system(buf, count, datatype) && !mca_pml_umrddt_may_cut(datatype);
}

/** A receive that the base PML may be posted with its buffer. */
static inline int irecv_unstaged(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                 int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_irecv(buf, count, datatype, src, tag, comm, request);
    }
    if (OPAL_UNLIKELY(!mca_pml_umrddt_gate_alone(data))) {
        return irecv_gate(buf, count, datatype, src, tag, comm, request);
    }
    return post_alone(buf, count, datatype, src, tag, comm, request);
}

/** irecv where a stage may be wanted. Apart, so that irecv itself needs no stack. */
static __opal_attribute_noinline__ int irecv_asked(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   ompi_communicator_t *comm,
                                                   ompi_request_t **request)
{
    mca_pml_umrddt_where_t where;

    if (MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, &where)
        && !mca_pml_umrddt_base_given_recv(comm, &where, buf, count, datatype, src, tag)) {
        return mca_pml_umrddt_stage_irecv(buf, count, datatype, src, tag, comm, &where, request);
    }
    return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
}

/** irecv in a process with the driver, or of a wide datatype. Apart, for the same reason. */
static __opal_attribute_noinline__ int irecv_looked(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *comm,
                                                    ompi_request_t **request)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
    }
    return irecv_asked(buf, count, datatype, src, tag, comm, request);
}

int mca_pml_umrddt_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return irecv_looked(buf, count, datatype, src, tag, comm, request);
    }
    return irecv_unstaged(buf, count, datatype, src, tag, comm, request);
}

/** What a blocking receive was called with, as far as it is needed behind the host's. */
typedef struct blocking_t {
    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    ompi_communicator_t *comm;
} blocking_t;

/** An envelope came to a blocking receive. */
static __opal_attribute_noinline__ int
recv_envelope(const blocking_t *call, const mca_pml_umrddt_rts_t *rts, ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = envelope_in(mca_pml_umrddt_comm_find(call->comm), call->buf, call->count,
                         call->datatype, rts, status, &request);

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

/** A blocking receive got as many bytes as an envelope has. */
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

/** With threads, or with claims: what is done in one step cannot block, so post, then wait. */
static __opal_attribute_noinline__ int recv_gate(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, ompi_communicator_t *comm,
                                                 ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = irecv_gate(buf, count, datatype, src, tag, comm, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** Into memory that the host must not touch. */
static __opal_attribute_noinline__ int recv_staged(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   ompi_communicator_t *comm,
                                                   const mca_pml_umrddt_where_t *where,
                                                   ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = mca_pml_umrddt_stage_irecv(buf, count, datatype, src, tag, comm, where, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** A blocking receive that the base PML may be given with its buffer. */
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
    if (OPAL_UNLIKELY(!mca_pml_umrddt_gate_alone(data))) {
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

/** recv where a stage may be wanted. */
static __opal_attribute_noinline__ int recv_asked(void *buf, size_t count,
                                                  ompi_datatype_t *datatype, int src, int tag,
                                                  ompi_communicator_t *comm,
                                                  ompi_status_public_t *status)
{
    mca_pml_umrddt_where_t where;

    if (MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, &where)
        && !mca_pml_umrddt_base_given_recv(comm, &where, buf, count, datatype, src, tag)) {
        return recv_staged(buf, count, datatype, src, tag, comm, &where, status);
    }
    return recv_unstaged(buf, count, datatype, src, tag, comm, status);
}

/** recv in a process with the driver, or of a wide datatype. */
static __opal_attribute_noinline__ int recv_looked(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   ompi_communicator_t *comm,
                                                   ompi_status_public_t *status)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return recv_unstaged(buf, count, datatype, src, tag, comm, status);
    }
    return recv_asked(buf, count, datatype, src, tag, comm, status);
}

int mca_pml_umrddt_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return recv_looked(buf, count, datatype, src, tag, comm, status);
    }
    return recv_unstaged(buf, count, datatype, src, tag, comm, status);
}
