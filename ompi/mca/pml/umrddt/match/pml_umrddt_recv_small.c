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
 * Small receives: single-threaded, contiguous, smaller than an envelope, and watched bare. The base
 * PML receives into a bounce buffer that costs less than a record; see pml_umrddt_recv_post.c.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"

/** Bounce buffer that the base PML receives into, and the arguments of the receive. */
typedef struct small_t {
    opal_free_list_item_t super;
    unsigned char bytes[MCA_PML_UMRDDT_ENVELOPE]; /**< the buffer of the request */
    void *to;                                     /**< address of the user's first byte */
    size_t capacity;
    void *buf;
    size_t count;
    ompi_datatype_t *datatype; /**< referenced while the request is pending */
} small_t;

/** Free list of unused entries. */
static opal_free_list_t smalls;

void mca_pml_umrddt_recv_small_init(void)
{
    OBJ_CONSTRUCT(&smalls, opal_free_list_t);
    opal_free_list_init(&smalls, sizeof(small_t), opal_cache_line_size,
                        OBJ_CLASS(opal_free_list_item_t), 0, opal_cache_line_size, 0, -1, 64, NULL,
                        0, NULL, NULL, NULL);
}

void mca_pml_umrddt_recv_small_fini(void)
{
    OBJ_DESTRUCT(&smalls);
}

static inline void small_put(small_t *small)
{
    opal_free_list_return_st(&smalls, &small->super);
}

/** The entry of a pending request. */
static inline small_t *small_of(const ompi_request_t *request)
{
    char *bytes = ((const mca_pml_base_request_t *) request)->req_addr;

    return (small_t *) (bytes - offsetof(small_t, bytes));
}

/** A plain message, or a part of one, is in the bounce buffer: copy it to the user. */
static inline void small_out(const small_t *small, ompi_status_public_t *status)
{
    size_t length = status->_ucount;

    if (OPAL_LIKELY(sizeof(uint64_t) == length && length == small->capacity)) {
        memcpy(small->to, small->bytes, sizeof(uint64_t));
        return;
    }
    if (OPAL_UNLIKELY(small->capacity < length)) {
        length = small->capacity;
        status->MPI_ERROR = MPI_ERR_TRUNCATE;
    }
    memcpy(small->to, small->bytes, length);
}

/** Replace the entry by a record, with the received bytes. @return NULL: no memory */
static mca_pml_umrddt_recv_t *small_record(small_t *small)
{
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);

    if (NULL != recv) {
        memcpy(recv->bounce, small->bytes, sizeof(recv->bounce));
        recv->bounced = true;
        recv->buf = small->buf;
        recv->count = small->count;
        recv->datatype = small->datatype;
    }
    small_put(small);
    return recv;
}

/** The message may be an envelope, or the user has freed the request. @return as a callback */
static __opal_attribute_noinline__ int small_keep(small_t *small, ompi_request_t *request)
{
    ompi_datatype_t *datatype = small->datatype;
    mca_pml_umrddt_recv_t *recv = small_record(small);

    if (NULL == recv) {
        OMPI_DATATYPE_RELEASE(datatype);
        mca_pml_umrddt_bare_unwatch(request);
        request->req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        return 0;
    }
    return mca_pml_umrddt_bare_keep(recv, request);
}

/* A cancelled message has no bytes. */
int mca_pml_umrddt_small_received(ompi_request_t *request)
{
    small_t *small = small_of(request);
    ompi_status_public_t *status = &request->req_status;

    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == status->_ucount
                      || NULL != request->req_complete_cb_data)) {
        return small_keep(small, request);
    }
    small_out(small, status);
    mca_pml_umrddt_bare_unwatch(request);
    OMPI_DATATYPE_RELEASE(small->datatype);
    small_put(small);
    return 0;
}

/** A small receive completed at once with the size of an envelope. */
static __opal_attribute_noinline__ int small_already(small_t *small, ompi_request_t **request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) *request;
    mca_pml_umrddt_recv_t *recv = small_record(small);

    if (NULL == recv) {
        (*request)->req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        return OMPI_SUCCESS;
    }
    return mca_pml_umrddt_bounced_already(recv, mca_pml_umrddt_comm_find(base->req_comm), request);
}

int mca_pml_umrddt_post_small(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_request_t *host;
    small_t *small;
    int rc;

    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps
                      || !mca_pml_umrddt_is_contiguous(datatype, count))) {
        return mca_pml_umrddt_post_bounced(buf, count, datatype, src, tag, comm, request);
    }
    small = (small_t *) opal_free_list_get_st(&smalls);
    if (OPAL_UNLIKELY(NULL == small)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    small->to = (char *) buf + datatype->super.true_lb;
    small->capacity = count * datatype->super.size;
    small->buf = buf;
    small->count = count;
    small->datatype = datatype;
    rc = mca_pml_umrddt.host.pml_irecv(small->bytes, MCA_PML_UMRDDT_ENVELOPE, &ompi_mpi_byte.dt,
                                       src, tag, comm, request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        small_put(small);
        return rc;
    }
    host = *request;
    if (!REQUEST_COMPLETE(host)) {
        OMPI_DATATYPE_RETAIN(small->datatype);
        mca_pml_umrddt_bare_watch(host, mca_pml_umrddt_small_received);
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == host->req_status._ucount)) {
        return small_already(small, request);
    }
    small_out(small, &host->req_status);
    small_put(small);
    return OMPI_SUCCESS;
}
