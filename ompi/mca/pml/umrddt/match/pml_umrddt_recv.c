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
 * Requests of receives: records, completion by the base PML, persistent and staged receives.
 * pml_umrddt_recv_watch.c explains how other receives are posted and watched; read it first.
 */

#include "ompi_config.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_flush.h"
#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"

/* ---------------------------------------------------------------------------------------------
 * Records
 * ------------------------------------------------------------------------------------------- */

/** Wait until another thread, which has completed the user's request, has completed the base PML's,
 * if that was started. */
static inline void base_await(const ompi_request_t *host)
{
    while (OPAL_UNLIKELY(!REQUEST_COMPLETE(host)) && OMPI_REQUEST_INACTIVE != host->req_state) {
        ;
    }
}

/** Free function of the user's request, whether it is ours or the base PML's. */
static void recv_let_go(mca_pml_umrddt_recv_t *recv)
{
    if (mca_pml_umrddt_release(&recv->release, MCA_PML_UMRDDT_FREED)) {
        if (NULL != recv->host) {
            base_await(recv->host); /* the next user of a request would find it complete */
        }
        mca_pml_umrddt_recv_return(recv);
    }
}

static int own_free(ompi_request_t **request)
{
    recv_let_go((mca_pml_umrddt_recv_t *) *request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_watched_free(ompi_request_t **request)
{
    /* threads exchange this word, also in the next use of the request: always access it atomically
     */
    recv_let_go(__atomic_load_n(&(*request)->req_complete_cb_data, __ATOMIC_ACQUIRE));
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int own_cancel(ompi_request_t *request, int flag)
{
    mca_pml_umrddt_recv_t *recv = (mca_pml_umrddt_recv_t *) request;

    /* Too late if it is matched. The base PML decides, and completes its request if it was in time.
     */
    if (NULL != recv->host && __atomic_load_n(&recv->posted, __ATOMIC_RELAXED)
        && NULL != recv->host->req_cancel) {
        return recv->host->req_cancel(recv->host, flag);
    }
    return OMPI_SUCCESS;
}

static void recv_construct(mca_pml_umrddt_recv_t *recv)
{
    recv->super.req_type = OMPI_REQUEST_PML;
    recv->super.req_start = mca_pml_umrddt_start;
    recv->super.req_free = own_free;
    recv->super.req_cancel = own_cancel;
    OBJ_CONSTRUCT(&recv->event, mca_pml_umrddt_event_t);
    OBJ_CONSTRUCT(&recv->wait, mca_pml_umrddt_wait_t);
    OBJ_CONSTRUCT(&recv->active, opal_list_item_t);
    /* as in every unused record */
    memset(&recv->stage, 0, sizeof(recv->stage));
    memset(&recv->overflow, 0, sizeof(recv->overflow));
    recv->looked = false;
    recv->hold = 0;
    recv->range = 0;
    recv->pair = NULL;
    recv->split = NULL;
    recv->split_cached = NULL;
}

static void recv_destruct(mca_pml_umrddt_recv_t *recv)
{
    free(recv->split_cached);
    OBJ_DESTRUCT(&recv->active);
    OBJ_DESTRUCT(&recv->wait);
    OBJ_DESTRUCT(&recv->event);
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_recv_t, ompi_request_t, recv_construct, recv_destruct);

/* ---------------------------------------------------------------------------------------------
 * Completion by the base PML
 * ------------------------------------------------------------------------------------------- */

ompi_request_t *mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                                           ompi_datatype_t *datatype,
                                           const mca_pml_umrddt_rts_t *rts,
                                           const ompi_status_public_t *matched)
{
    mca_pml_umrddt_recv_t *recv;
    time_t refused = 0;

    while (NULL
           == (recv = mca_pml_umrddt_recv_alloc(buf, count, datatype, matched->MPI_SOURCE,
                                                matched->MPI_TAG, comm))) {
        if (mca_pml_umrddt_given_up(OMPI_ERROR, &refused)) {
            mca_pml_umrddt_control_fatal(comm, matched->MPI_SOURCE, OMPI_ERR_OUT_OF_RESOURCE);
        }
        opal_progress(); /* other receives return their records */
    }
    recv->rts = *rts;
    recv->status = *matched;
    recv->status.MPI_ERROR = MPI_SUCCESS;
    recv->super.req_status = recv->status;
    mca_pml_umrddt_recv_matched(recv);
    return &recv->super;
}

bool mca_pml_umrddt_read_envelope(const void *bounce, const void *buf, size_t count,
                                  ompi_datatype_t *datatype, mca_pml_umrddt_rts_t *rts)
{
    if (NULL != bounce) {
        memmove(rts, bounce, sizeof(*rts));
    } else if (sizeof(*rts) != mca_pml_umrddt_pack(buf, count, datatype, rts, sizeof(*rts))) {
        return false;
    }
    return mca_pml_umrddt_is_envelope(rts);
}

/** Read as many bytes as an envelope has. A buffer in system memory that has kept its bytes gets
 * back what an envelope overwrites of them. */
static bool has_envelope(mca_pml_umrddt_recv_t *recv)
{
    const void *bounce = recv->bounced ? mca_pml_umrddt_recv_bounce(recv) : NULL;
    mca_pml_umrddt_rts_t kept;

    if (NULL != bounce || OPAL_LIKELY(!recv->kept)) {
        return mca_pml_umrddt_read_envelope(bounce, recv->buf, recv->count, recv->datatype,
                                            &recv->rts);
    }
    kept = recv->rts;
    if (!mca_pml_umrddt_read_envelope(NULL, recv->buf, recv->count, recv->datatype, &recv->rts)) {
        return false;
    }
    opal_umrddt_gpu_stream_unpack(recv->buf, recv->count, &recv->datatype->super, &kept,
                                  sizeof(kept));
    return true;
}

/** Returns true if a request of the base PML received as many bytes as an envelope has. */
static inline bool has_envelope_size(const ompi_status_public_t *status)
{
    return OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == status->_ucount)
           && MPI_SUCCESS == status->MPI_ERROR && !status->_cancelled
           && !mca_pml_umrddt_is_internal(status->MPI_TAG);
}

/** Add @p change to the number of posted receives in GPU memory, for which copies may start soon.
 */
static inline void expect(const mca_pml_umrddt_recv_t *recv, int change)
{
    if (0 != recv->hold) {
        opal_umrddt_gpu_expect(change);
    }
}

static void recv_free_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;

    if (REQUEST_COMPLETE(recv->host)) {
        mca_pml_umrddt_recv_return(recv);
    } else {
        mca_pml_umrddt_event(&recv->event, recv_free_event, recv);
    }
}

int mca_pml_umrddt_base_received(ompi_request_t *request)
{
    mca_pml_umrddt_recv_t *recv = __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);

    __atomic_store_n(&recv->posted, false, __ATOMIC_RELAXED);
    expect(recv, -1);
    if (has_envelope_size(&request->req_status) && has_envelope(recv)) {
        recv->status = request->req_status;
        mca_pml_umrddt_recv_matched(recv);
        return 1;
    }
    if (NULL != recv->stage.bytes && !request->req_status._cancelled) {
        recv->status = request->req_status;
        mca_pml_umrddt_recv_plain(recv);
        return 1;
    }
    if (recv->bounced && !request->req_status._cancelled) {
        ompi_status_public_t *status = &request->req_status;

        status->MPI_ERROR = mca_pml_umrddt_bounce_out(recv->buf, recv->count, recv->datatype,
                                                      mca_pml_umrddt_recv_bounce(recv),
                                                      status->MPI_ERROR, status->_ucount);
    }
    mca_pml_umrddt_recv_unhold(recv);
    MCA_PML_UMRDDT_PASS_ON(request);
    recv->state = MCA_PML_UMRDDT_RECV_DONE;
    if (request != recv->req) {
        recv->super.req_status = request->req_status;
        (void) ompi_request_complete(&recv->super, true);
    }
    if (mca_pml_umrddt_release(&recv->release, MCA_PML_UMRDDT_COMPLETED)) {
        /* the user has freed the request already, but the base PML is still completing it */
        mca_pml_umrddt_event(&recv->event, recv_free_event, recv);
    }
    return 0;
}

/** Create the base PML's request of a record, not started. @return the base PML's error code */
static int base_init(mca_pml_umrddt_recv_t *recv)
{
    size_t room = recv->count * recv->datatype->super.size;

    recv->bounced = room < sizeof(recv->rts) || NULL != recv->stage.bytes;
    if (recv->bounced) {
        room = room < sizeof(recv->rts) ? sizeof(recv->rts) : room;
        return mca_pml_umrddt.host.pml_irecv_init(mca_pml_umrddt_recv_bounce(recv), room,
                                                  &ompi_mpi_byte.dt, recv->src, recv->tag,
                                                  recv->comm->comm, &recv->host);
    }
    return mca_pml_umrddt.host.pml_irecv_init(recv->buf, recv->count, recv->datatype, recv->src,
                                              recv->tag, recv->comm->comm, &recv->host);
}

static int host_start(mca_pml_umrddt_recv_t *recv)
{
    ompi_request_t *request = recv->host;
    int rc;

    if (recv->bounced) {
        mca_pml_umrddt_bounce_in(mca_pml_umrddt_recv_bounce(recv));
    }
    request->req_complete_cb = mca_pml_umrddt_base_received;
    __atomic_store_n(&recv->posted, true, __ATOMIC_RELAXED);
    expect(recv, 1);
    /* the callback may run in another thread, which must see the current record */
    __atomic_store_n(&request->req_complete_cb_data, (void *) recv, __ATOMIC_RELEASE);
    rc = mca_pml_umrddt.host.pml_start(1, &request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        expect(recv, -1);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Persistent receives, and others that use our request
 * ------------------------------------------------------------------------------------------- */

/**
 * Create our active request, with a request of the base PML that is not started.
 *
 * @param[in] where  of a buffer that needs a staging buffer; NULL: it needs none
 */
static int own(MCA_PML_UMRDDT_RECV_PARAMETERS, const opal_umrddt_gpu_where_t *where,
               mca_pml_umrddt_recv_t **out)
{
    const size_t room = count * datatype->super.size;
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_recv_alloc(buf, count, datatype, src, tag, mca_pml_umrddt_comm_find(comm));
    int rc = OMPI_SUCCESS;

    if (NULL == recv) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != where) {
        recv->where = *where;
        recv->looked = true;
        rc = opal_umrddt_gpu_stage_plain(
            MCA_PML_UMRDDT_ENVELOPE > room ? MCA_PML_UMRDDT_ENVELOPE : room, &recv->stage);
    }
    if (OMPI_SUCCESS == rc) {
        rc = base_init(recv);
    }
    if (OMPI_SUCCESS != rc) {
        recv->host = NULL;
        mca_pml_umrddt_recv_return(recv);
        return rc;
    }
    *out = recv;
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_irecv_init(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    opal_umrddt_gpu_where_t where;
    mca_pml_umrddt_recv_t *recv;
    const bool staged = mca_pml_umrddt_stage_wanted(buf, count, datatype, comm, false, &where);
    int rc;

    if (!staged && NULL == mca_pml_umrddt_watched(comm, tag)) {
        return mca_pml_umrddt.host.pml_irecv_init(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    rc = own(MCA_PML_UMRDDT_RECV_ARGUMENTS, staged ? &where : NULL, &recv);
    if (OMPI_SUCCESS == rc) {
        recv->super.req_persistent = true;
        recv->state = MCA_PML_UMRDDT_RECV_DONE;
        mca_pml_umrddt_request_inactive(&recv->super, &recv->release);
        *request = &recv->super;
    }
    return rc;
}

/** Start a receive while there are claims, or the communicator keeps bytes. */
static int start_claims(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_comm_t *comm = recv->comm; /* recv may complete and be freed meanwhile */
    mca_pml_umrddt_claim_t *claim;
    int rc;

    OPAL_THREAD_LOCK(&comm->gate.lock);
    claim = mca_pml_umrddt_claim_take(comm, recv->src, recv->tag);
    if (NULL == claim) {
        recv->kept =
            umrddt_gate_keeps(&comm->gate)
            && (recv->bounced ? __atomic_load_n(&comm->keeps, __ATOMIC_RELAXED)
                              : sizeof(recv->rts)
                                    == mca_pml_umrddt_pack(recv->buf, recv->count, recv->datatype,
                                                           &recv->rts, sizeof(recv->rts)));
    }
    rc = NULL == claim ? host_start(recv) : mca_pml_umrddt_claim_into(claim, recv);
    umrddt_gate_open(&comm->gate);
    OPAL_THREAD_UNLOCK(&comm->gate.lock);
    return rc;
}

/** Start an active request. On failure it is inactive. */
static inline int go(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_comm_t *comm = recv->comm; /* recv may complete and be freed meanwhile */
    int rc;

    if (recv->looked) {
        recv->hold = opal_umrddt_gpu_memory_hold(&recv->where.memory, opal_using_threads());
    }
    if (OPAL_LIKELY(umrddt_gate_enter(&comm->gate))) {
        rc = host_start(recv);
        umrddt_gate_leave(&comm->gate);
    } else {
        rc = start_claims(recv);
    }
    if (OMPI_SUCCESS != rc) {
        recv->host->req_state = OMPI_REQUEST_INACTIVE; /* pml/ucx leaves it active */
        mca_pml_umrddt_recv_unhold(recv);
        mca_pml_umrddt_request_inactive(&recv->super, &recv->release);
    }
    return rc;
}

/** Start a receive request of our own. */
static int recv_start(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_release_reset(&recv->release);
    base_await(recv->host);
    recv->super.req_state = OMPI_REQUEST_ACTIVE;
    recv->super.req_complete = REQUEST_PENDING;
    recv->super.req_status.MPI_SOURCE = OMPI_ANY_SOURCE;
    recv->super.req_status.MPI_TAG = OMPI_ANY_TAG;
    recv->super.req_status.MPI_ERROR = MPI_SUCCESS;
    recv->super.req_status._ucount = 0;
    recv->super.req_status._cancelled = 0;
    recv->state = MCA_PML_UMRDDT_RECV_POSTED;
    if (recv->super.req_persistent) {
        /* The same address may be other memory by now. GPU memory is queried here and not when a
         * message arrives, to avoid a wait for later work on the default streams. */
        const bool now = recv->looked && opal_umrddt_gpu_on_gpu(&recv->where);

        recv->looked = false;
        if (now) {
            mca_pml_umrddt_recv_look(recv);
        }
    }
    return go(recv);
}

int mca_pml_umrddt_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        int rc = OMPI_SUCCESS;

        if (NULL == requests[i] || OMPI_REQUEST_PML != requests[i]->req_type) {
            continue;
        }
        if (mca_pml_umrddt_start != requests[i]->req_start) {
            rc = requests[i]->req_start(1, &requests[i]);
        } else if (OPAL_UNLIKELY(OMPI_REQUEST_INACTIVE != requests[i]->req_state
                                 && !REQUEST_COMPLETE(requests[i]))) {
            /* of the user; Open MPI 4.1 does not test it. osc/pt2pt starts complete ones again */
            rc = MPI_ERR_REQUEST;
        } else if (OBJ_CLASS(mca_pml_umrddt_send_t) == ((opal_object_t *) requests[i])->obj_class) {
            rc = mca_pml_umrddt_send_start((mca_pml_umrddt_send_t *) requests[i]);
        } else {
            rc = recv_start((mca_pml_umrddt_recv_t *) requests[i]);
        }
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Receives into memory that the base PML must not access, and of datatypes that it cannot receive
 *
 * The user's request is ours, and the base PML receives into a staging buffer. A plain message
 * keeps the request pending until it is copied.
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 ompi_communicator_t *comm, bool plain,
                                 opal_umrddt_gpu_where_t *where)
{
    const bool wide = opal_umrddt_gpu_is_cut(&mca_pml_umrddt.cuts, &datatype->super, count);
    const size_t size = count * datatype->super.size;
    mca_pml_umrddt_comm_t *data;

    /* fast checks first; empty buffers need no staging buffer */
    if (!wide
        && (NULL == mca_pml_umrddt.gpu || 0 == size
            || mca_pml_umrddt_known_system(buf, count, datatype)
            || (MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
                && (plain
                    || (MCA_PML_UMRDDT_ENVELOPE <= size
                        && mca_pml_umrddt_is_contiguous(datatype, count)))))) {
        return false;
    }
    data = mca_pml_umrddt_comm_find(comm);
    if (NULL == data) {
        return false;
    }
    if (!mca_pml_umrddt_memory_again(data, buf, count, datatype, where)) {
        if (!wide && !mca_pml_umrddt_checks_pattern()
            && (opal_umrddt_gpu_surely_system(buf, count, &datatype->super)
                || mca_pml_umrddt_asserted_system(data, MCA_PML_UMRDDT_RECEIVER))) {
            return false;
        }
        (void) mca_pml_umrddt_memory_of(data, buf, count, datatype, MCA_PML_UMRDDT_RECEIVER, where);
    }
    return wide || opal_umrddt_gpu_on_device(where) || !mca_pml_umrddt_base_touches(where);
}

int mca_pml_umrddt_stage_irecv(MCA_PML_UMRDDT_RECV_PARAMETERS, const opal_umrddt_gpu_where_t *where,
                               ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv;
    int rc = own(MCA_PML_UMRDDT_RECV_ARGUMENTS, where, &recv);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    /* set first: another thread may see it complete before the start returns */
    *request = &recv->super;
    rc = go(recv);
    if (OMPI_SUCCESS != rc) {
        *request = NULL;
        mca_pml_umrddt_recv_return(recv);
    }
    return rc;
}

int mca_pml_umrddt_stage_imrecv_into(mca_pml_umrddt_recv_t *recv, ompi_message_t **message)
{
    size_t capacity = recv->count * recv->datatype->super.size;
    int rc = opal_umrddt_gpu_stage_plain(capacity, &recv->overflow);

    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt.host.pml_imrecv(recv->overflow.bytes, capacity, &ompi_mpi_byte.dt,
                                            message, &recv->data);
        if (OMPI_SUCCESS != rc) {
            opal_umrddt_gpu_stage_put(&recv->overflow);
        }
    }
    return rc;
}

int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                ompi_message_t **message, const opal_umrddt_gpu_where_t *where,
                                ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find((*message)->comm);
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_recv_alloc(buf, count, datatype, OMPI_ANY_SOURCE, OMPI_ANY_TAG, comm);
    int rc;

    if (NULL == recv) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->where = *where;
    recv->looked = true;
    rc = mca_pml_umrddt_stage_imrecv_into(recv, message);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_recv_return(recv);
        return rc;
    }
    *request = &recv->super;
    mca_pml_umrddt_recv_await_base(recv);
    return OMPI_SUCCESS;
}
