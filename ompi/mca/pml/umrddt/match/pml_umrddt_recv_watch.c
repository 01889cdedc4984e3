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
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_record.h"
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
 * at once, writes a mark of its action. The second of them reads the mark. A receive smaller than
 * an envelope has a bounce buffer, which both of them find by the request's buffer.
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

/**
 * Bounce buffer of a bare request, and the arguments of its receive. The record of a watched
 * request has its own, rts; this one costs less.
 */
typedef struct bounce_t {
    opal_free_list_item_t super;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char bytes[MCA_PML_UMRDDT_ENVELOPE]; /**< the buffer of the request */
    };
    void *to;    /**< address of the user's first byte */
    size_t fits; /**< size of a contiguous buffer, in bytes; else 0 */
    void *buf;
    size_t count;
    ompi_datatype_t *datatype; /**< referenced while the request is pending */
} bounce_t;

/** Free list of unused bounce buffers. */
static opal_free_list_t bounces;

void mca_pml_umrddt_bounces_init(void)
{
    OBJ_CONSTRUCT(&bounces, opal_free_list_t);
    opal_free_list_init(&bounces, sizeof(bounce_t), opal_cache_line_size,
                        OBJ_CLASS(opal_free_list_item_t), 0, opal_cache_line_size, 0, -1, 64, NULL,
                        0, NULL, NULL, NULL);
}

void mca_pml_umrddt_bounces_fini(void)
{
    OBJ_DESTRUCT(&bounces);
}

/**
 * Callback: the message may be an envelope, or the user has freed the request. Watch it with a
 * record from here on.
 *
 * @param[in] bounce  that the base PML has received into; NULL: into the user's buffer
 */
static __opal_attribute_noinline__ int bare_keep(ompi_request_t *request, bounce_t *bounce)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);

    if (NULL == recv) {
        mca_pml_umrddt_bare_unwatch(request);
        request->req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        if (NULL != bounce) {
            OMPI_DATATYPE_RELEASE(bounce->datatype);
            opal_free_list_return(&bounces, &bounce->super);
        }
        return 0;
    }
    if (NULL != bounce) {
        recv->rts = bounce->rts;
        recv->buf = bounce->buf;
        recv->count = bounce->count;
        recv->datatype = bounce->datatype;
        opal_free_list_return(&bounces, &bounce->super);
    } else {
        recv->buf = base->req_addr;
        recv->count = base->req_count;
        recv->datatype = base->req_datatype;
        OMPI_DATATYPE_RETAIN(recv->datatype);
    }
    (void) __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);
    recv->bounced = NULL != bounce;
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

int mca_pml_umrddt_bare_received(ompi_request_t *request)
{
    MCA_PML_UMRDDT_CALLED_BACK(request);
    if (OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != request->req_status._ucount
                    && bare_mark(request, &bare_plain))) {
        mca_pml_umrddt_bare_unwatch(request);
        MCA_PML_UMRDDT_PASS_ON(request);
        return 0;
    }
    return bare_keep(request, NULL);
}

/* No mark is needed, because the free function is restored at once. */
int mca_pml_umrddt_bare_received_alone(ompi_request_t *request)
{
    if (OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != request->req_status._ucount
                    && NULL == request->req_complete_cb_data)) {
        mca_pml_umrddt_bare_unwatch(request);
        return 0;
    }
    return bare_keep(request, NULL);
}

/* ---------------------------------------------------------------------------------------------
 * Bare watching with a bounce buffer
 * ------------------------------------------------------------------------------------------- */

/** The bounce buffer of a request. */
static inline bounce_t *bounce_of(const ompi_request_t *request)
{
    char *bytes = ((const mca_pml_base_request_t *) request)->req_addr;

    return (bounce_t *) (bytes - offsetof(bounce_t, bytes));
}

/** As bounce_out, for a message that is too long or a buffer that is not contiguous. */
static __opal_attribute_noinline__ void bounce_out_parts(const bounce_t *bounce,
                                                         ompi_status_public_t *status)
{
    status->MPI_ERROR =
        mca_pml_umrddt_bounce_out(bounce->buf, bounce->count, bounce->datatype, bounce->bytes,
                                  status->MPI_ERROR, status->_ucount);
}

/** A plain message, or a part of one, is in the bounce buffer: copy it to the user. A cancelled
 * message has no bytes. */
static inline void bounce_out(const bounce_t *bounce, ompi_status_public_t *status)
{
    size_t length = status->_ucount;

    if (OPAL_LIKELY(sizeof(uint64_t) == length && length == bounce->fits)) {
        memcpy(bounce->to, bounce->bytes, sizeof(uint64_t));
        return;
    }
    if (OPAL_UNLIKELY(bounce->fits < length)) {
        bounce_out_parts(bounce, status);
        return;
    }
    memcpy(bounce->to, bounce->bytes, length);
}

static int bounced_received(ompi_request_t *request)
{
    bounce_t *bounce = bounce_of(request);

    MCA_PML_UMRDDT_CALLED_BACK(request);
    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == request->req_status._ucount
                      || !bare_mark(request, &bare_plain))) {
        return bare_keep(request, bounce);
    }
    bounce_out(bounce, &request->req_status);
    mca_pml_umrddt_bare_unwatch(request);
    OMPI_DATATYPE_RELEASE(bounce->datatype);
    opal_free_list_return_mt(&bounces, &bounce->super);
    MCA_PML_UMRDDT_PASS_ON(request);
    return 0;
}

static int bounced_received_alone(ompi_request_t *request)
{
    bounce_t *bounce = bounce_of(request);

    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == request->req_status._ucount
                      || NULL != request->req_complete_cb_data)) {
        return bare_keep(request, bounce);
    }
    bounce_out(bounce, &request->req_status);
    mca_pml_umrddt_bare_unwatch(request);
    OMPI_DATATYPE_RELEASE(bounce->datatype);
    opal_free_list_return_st(&bounces, &bounce->super);
    return 0;
}

/** Store the arguments of a receive. */
static inline void bounce_set(bounce_t *bounce, void *buf, size_t count, ompi_datatype_t *datatype)
{
    bounce->to = (char *) buf + datatype->super.true_lb;
    bounce->fits = count * datatype->super.size;
    if (OPAL_UNLIKELY(!mca_pml_umrddt_is_contiguous(datatype, count))) {
        bounce->fits = 0;
    }
    bounce->buf = buf;
    bounce->count = count;
    bounce->datatype = datatype;
}

/** The message was there when the receive was posted, with the size of an envelope. */
static __opal_attribute_noinline__ int bounced_already(bounce_t *bounce, ompi_request_t **request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) *request;
    ompi_status_public_t *status = &(*request)->req_status;
    int rc = OMPI_SUCCESS;

    if (MPI_SUCCESS == status->MPI_ERROR && 0 <= status->MPI_TAG
        && mca_pml_umrddt_is_envelope(&bounce->rts)) {
        rc = mca_pml_umrddt_envelope_in_request(mca_pml_umrddt_comm_find(base->req_comm),
                                                bounce->buf, bounce->count, bounce->datatype,
                                                &bounce->rts, request);
    } else {
        bounce_out(bounce, status);
    }
    opal_free_list_return_st(&bounces, &bounce->super);
    return rc;
}

/** As mca_pml_umrddt_post_bounced, for base PMLs whose requests do not have the arguments: received
 * into a record. */
static __opal_attribute_noinline__ int post_recorded_small(void *buf, size_t count,
                                                           ompi_datatype_t *datatype, int src,
                                                           int tag, ompi_communicator_t *comm,
                                                           ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_record_alloc(buf, count, datatype, src, tag, mca_pml_umrddt_comm_find(comm));
    unsigned char *bounce;
    ompi_status_public_t *status;
    int rc;

    if (OPAL_UNLIKELY(NULL == recv)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->bounced = true;
    bounce = mca_pml_umrddt_recv_bounce(recv);
    mca_pml_umrddt_bounce_in(bounce);
    rc = mca_pml_umrddt.host.pml_irecv(bounce, sizeof(recv->rts), &ompi_mpi_byte.dt, src, tag, comm,
                                       request);
    if (OMPI_SUCCESS == rc && !REQUEST_COMPLETE(*request)) {
        mca_pml_umrddt_watch_record(recv, *request);
        return OMPI_SUCCESS;
    }
    if (OMPI_SUCCESS == rc) {
        status = &(*request)->req_status;
        if (OPAL_UNLIKELY(sizeof(recv->rts) == status->_ucount) && MPI_SUCCESS == status->MPI_ERROR
            && 0 <= status->MPI_TAG && mca_pml_umrddt_is_envelope(&recv->rts)) {
            rc = mca_pml_umrddt_envelope_in_request(recv->comm, buf, count, datatype, &recv->rts,
                                                    request);
        } else {
            status->MPI_ERROR = mca_pml_umrddt_bounce_out(buf, count, datatype, bounce,
                                                          status->MPI_ERROR, status->_ucount);
        }
    }
    opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
    return rc;
}

int mca_pml_umrddt_post_bounced(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_request_t *host;
    bounce_t *bounce;
    int rc;

    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return post_recorded_small(buf, count, datatype, src, tag, comm, request);
    }
    bounce = (bounce_t *) opal_free_list_get_st(&bounces);
    if (OPAL_UNLIKELY(NULL == bounce)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bounce_set(bounce, buf, count, datatype);
    rc = mca_pml_umrddt.host.pml_irecv(bounce->bytes, MCA_PML_UMRDDT_ENVELOPE, &ompi_mpi_byte.dt,
                                       src, tag, comm, request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        opal_free_list_return_st(&bounces, &bounce->super);
        return rc;
    }
    host = *request;
    if (!REQUEST_COMPLETE(host)) {
        OMPI_DATATYPE_RETAIN(bounce->datatype);
        mca_pml_umrddt_bare_watch(host, bounced_received_alone);
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == host->req_status._ucount)) {
        return bounced_already(bounce, request);
    }
    bounce_out(bounce, &host->req_status);
    opal_free_list_return_st(&bounces, &bounce->super);
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_post_bounced_threads(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                        int tag, ompi_communicator_t *comm,
                                        ompi_request_t **request)
{
    bounce_t *bounce = (bounce_t *) opal_free_list_get_mt(&bounces);
    int rc;

    if (OPAL_UNLIKELY(NULL == bounce)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bounce_set(bounce, buf, count, datatype);
    OMPI_DATATYPE_RETAIN(datatype);
    rc = mca_pml_umrddt.host.pml_irecv_init(bounce->bytes, MCA_PML_UMRDDT_ENVELOPE,
                                            &ompi_mpi_byte.dt, src, tag, comm, request);
    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        (*request)->req_persistent = false;
        mca_pml_umrddt_bare_learn(*request);
        mca_pml_umrddt_bare_watch(*request, bounced_received);
        rc = mca_pml_umrddt_start_once(request);
    }
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        OMPI_DATATYPE_RELEASE(datatype);
        opal_free_list_return_mt(&bounces, &bounce->super);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Start and free
 * ------------------------------------------------------------------------------------------- */

int mca_pml_umrddt_start_once(ompi_request_t **request)
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

int mca_pml_umrddt_bare_let_go(ompi_request_t **request_p)
{
    ompi_request_t *request = *request_p;
    ompi_request_complete_fn_t received = request->req_complete_cb;

    if ((NULL == received && REQUEST_COMPLETE(request))
        || (NULL != received && mca_pml_umrddt_bare_received != received
            && mca_pml_umrddt_bare_received_alone != received && bounced_received != received
            && bounced_received_alone != received)) {
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
