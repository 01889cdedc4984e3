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
 * Watching the base PML's requests of receives. See pml_umrddt_recv_post.c first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_bounce.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"

/* ---------------------------------------------------------------------------------------------
 * Watching with a record
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_watch_record(mca_pml_umrddt_recv_t *recv, ompi_request_t *request)
{
    recv->state = MCA_PML_UMRDDT_RECV_POSTED;
    recv->req = request;
    recv->host = request;
    recv->release = 0;
    recv->host_free = request->req_free;
    recv->host_persistent = request->req_persistent;
    /* the user may free both now; the base PML references only the bounce buffer's type, and
     * pml/ucx no communicator */
    OMPI_DATATYPE_RETAIN(recv->datatype);
    OBJ_RETAIN(recv->comm->comm);
    request->req_free = mca_pml_umrddt_watched_free;
    request->req_persistent = false;
    request->req_complete_cb = mca_pml_umrddt_base_received;
    /* the callback may run in another thread, which must see the current record */
    __atomic_store_n(&request->req_complete_cb_data, (void *) recv, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------------------------------------
 * Bare watching
 *
 * The request has a callback and a free function of ours. Both are removed when a plain message
 * arrives. req_complete_cb_data is NULL until the callback or the user's free, maybe in two threads
 * at once, writes a mark of its action. The second of them reads the mark.
 * ------------------------------------------------------------------------------------------- */

ompi_request_free_fn_t mca_pml_umrddt_bare_free;

static char bare_plain; /**< mark of the callback: plain message, the base PML owns the request */
static char bare_freed; /**< mark of the user's free: the callback must free the request */

/** Write a mark into the request. @return false: it has one already */
static inline bool bare_mark(ompi_request_t *request, void *mark)
{
    void *none = NULL;

    if (opal_using_threads()) {
        return __atomic_compare_exchange_n(&request->req_complete_cb_data, &none, mark, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    if (OPAL_UNLIKELY(NULL != request->req_complete_cb_data)) {
        return false;
    }
    request->req_complete_cb_data = mark;
    return true;
}

int mca_pml_umrddt_bare_keep(mca_pml_umrddt_recv_t *recv, ompi_request_t *request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;

    (void) __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);
    recv->src = base->req_peer;
    recv->tag = base->req_tag;
    recv->comm = mca_pml_umrddt_comm_find(base->req_comm);
    recv->state = MCA_PML_UMRDDT_RECV_POSTED;
    recv->req = request;
    recv->host = request;
    recv->release = 0;
    recv->host_free = __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED);
    recv->host_persistent = false;
    OBJ_RETAIN(recv->comm->comm);
    request->req_free = mca_pml_umrddt_watched_free;
    if (!bare_mark(request, recv)) {
        __atomic_store_n(&request->req_complete_cb_data, (void *) recv, __ATOMIC_RELEASE);
        recv->release = MCA_PML_UMRDDT_FREED;
    }
    return mca_pml_umrddt_base_received(request);
}

/** As mca_pml_umrddt_bare_keep, for a request without a record. */
static __opal_attribute_noinline__ int bare_keep_new(ompi_request_t *request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);

    if (NULL == recv) {
        mca_pml_umrddt_bare_unwatch(request);
        request->req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        return 0;
    }
    recv->buf = base->req_addr;
    recv->count = base->req_count;
    recv->datatype = base->req_datatype;
    recv->bounced = false;
    OMPI_DATATYPE_RETAIN(recv->datatype);
    return mca_pml_umrddt_bare_keep(recv, request);
}

int mca_pml_umrddt_bare_received(ompi_request_t *request)
{
    MCA_PML_UMRDDT_CALLED_BACK(request);
    if (OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != request->req_status._ucount
                    && bare_mark(request, &bare_plain))) {
        mca_pml_umrddt_bare_unwatch(request);
        MCA_PML_UMRDDT_PASS_ON(request);
        return 0;
    }
    return bare_keep_new(request);
}

int mca_pml_umrddt_bare_received_alone(ompi_request_t *request)
{
    if (OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != request->req_status._ucount
                    && NULL == request->req_complete_cb_data)) {
        mca_pml_umrddt_bare_unwatch(request);
        return 0;
    }
    return bare_keep_new(request);
}

/** The record of a request that receives into the record's bounce buffer. */
static inline mca_pml_umrddt_recv_t *bare_bounce(const ompi_request_t *request)
{
    char *bounce = ((const mca_pml_base_request_t *) request)->req_addr;

    return (mca_pml_umrddt_recv_t *) (bounce - offsetof(mca_pml_umrddt_recv_t, bounce));
}

int mca_pml_umrddt_bare_bounced_received(ompi_request_t *request)
{
    mca_pml_umrddt_recv_t *recv = bare_bounce(request);
    ompi_status_public_t *status = &request->req_status;

    MCA_PML_UMRDDT_CALLED_BACK(request);
    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == status->_ucount
                      || !bare_mark(request, &bare_plain))) {
        return mca_pml_umrddt_bare_keep(recv, request);
    }
    mca_pml_umrddt_bare_unwatch(request);
    if (OPAL_LIKELY(!status->_cancelled)) {
        status->MPI_ERROR =
            mca_pml_umrddt_bounce_out(recv->buf, recv->count, recv->datatype, recv->bounce,
                                      status->MPI_ERROR, status->_ucount);
    }
    OMPI_DATATYPE_RELEASE(recv->datatype);
    opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
    MCA_PML_UMRDDT_PASS_ON(request);
    return 0;
}

int mca_pml_umrddt_bare_let_go(ompi_request_t **request_p)
{
    ompi_request_t *request = *request_p;
    ompi_request_complete_fn_t received = request->req_complete_cb;

    if ((NULL == received && REQUEST_COMPLETE(request))
        || (NULL != received && mca_pml_umrddt_bare_received != received
            && mca_pml_umrddt_bare_received_alone != received
            && mca_pml_umrddt_bare_bounced_received != received
            && mca_pml_umrddt_small_received != received)) {
        /* the user of an internal communicator has set its own callback */
        mca_pml_umrddt_bare_unwatch(request);
        return request->req_free(request_p);
    }
    if (bare_mark(request, &bare_freed)) {
        *request_p = MPI_REQUEST_NULL;
        return OMPI_SUCCESS;
    }
    if (&bare_plain != __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE)) {
        return mca_pml_umrddt_watched_free(request_p);
    }
    while (!REQUEST_COMPLETE(request)) {
        ; /* another thread is still completing it */
    }
    mca_pml_umrddt_bare_unwatch(request);
    return request->req_free(request_p);
}
