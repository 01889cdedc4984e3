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
 * Receives into memory that the base PML must not access, and of datatypes that it cannot receive.
 * The user's request is ours, and the base PML receives into a staging buffer. As in
 * pml_umrddt_recv.c, except that a plain message also keeps the request pending until it is copied.
 */

#include "ompi_config.h"

#include <stddef.h>
#include <string.h>

#include "ompi/message/message.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stream.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_recv.h"

bool mca_pml_umrddt_stage_wide(void *buf, size_t count, ompi_datatype_t *datatype,
                               ompi_communicator_t *comm, mca_pml_umrddt_where_t *where)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_comm_find(comm);

    if (NULL == data) {
        return false;
    }
    (void) mca_pml_umrddt_memory_of(data, buf, count, datatype, MCA_PML_UMRDDT_RECEIVER, where);
    return true;
}

bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 ompi_communicator_t *comm, mca_pml_umrddt_where_t *where)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_comm_find(comm);

    if (NULL == data
        || (!mca_pml_umrddt_checks_pattern()
            && (mca_pml_umrddt_surely_system(buf, count, datatype)
                || mca_pml_umrddt_asserted_system(data, MCA_PML_UMRDDT_RECEIVER)))) {
        return false;
    }
    (void) mca_pml_umrddt_memory_of(data, buf, count, datatype, MCA_PML_UMRDDT_RECEIVER, where);
    return mca_pml_umrddt_on_device(where) || !mca_pml_umrddt_base_touches(where);
}

/* ---------------------------------------------------------------------------------------------
 * From the staging buffer into the user's buffer
 * ------------------------------------------------------------------------------------------- */

/** Retry function of a wait: the copy to the user's buffer is in progress. */
static bool filled(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    int rc = mca_pml_umrddt_transit_test(&recv->transit);

    if (OMPI_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, recv->fill_ucount, true, rc);
        recv->fill_error = MPI_ERR_OTHER;
    }
    mca_pml_umrddt_stage_put(&recv->overflow);
    mca_pml_umrddt_recv_finish(recv, recv->fill_error, recv->fill_ucount);
    return true;
}

void mca_pml_umrddt_stage_fill(mca_pml_umrddt_recv_t *recv, void *bytes,
                               opal_umrddt_gpu_kind_t kind, size_t length, int error, size_t ucount)
{
    int rc, tries = 2; /* the data would be lost: retry once */

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_FILL;
    recv->fill_error = error;
    recv->fill_ucount = ucount;
    mca_pml_umrddt_recv_look(recv);
    if (!mca_pml_umrddt_on_device(&recv->where)) {
        mca_pml_umrddt_unpack(recv->buf, recv->count, recv->datatype, bytes, length);
        mca_pml_umrddt_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, error, ucount);
        return;
    }
    do {
        rc = mca_pml_umrddt_transit(&recv->transit, recv->buf, recv->count, recv->datatype,
                                    &recv->where, bytes, kind, length, true);
    } while (OMPI_SUCCESS != rc && 0 < --tries);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, ucount, true, rc);
        mca_pml_umrddt_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, ucount);
        return;
    }
    MCA_PML_UMRDDT_COUNT(staged_recvs);
    MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, length);
    if (!filled(recv)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, filled, recv);
    }
}

/** A plain message is in the staging buffer. */
static void received_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    size_t capacity = recv->count * recv->datatype->super.size;
    size_t length = recv->status._ucount;
    int error = recv->status.MPI_ERROR;

    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    /* Of a message that is too long, only pml/ob1 delivers all bytes that fit. With other base PMLs
     * the rest of the buffer may hold bytes of earlier messages. */
    if (MPI_SUCCESS != error
        && (!mca_pml_umrddt.host_keeps || mca_pml_umrddt_bounce_empty(recv->stage.bytes))) {
        length = 0;
    } else if (capacity < length) {
        error = MPI_SUCCESS == error ? MPI_ERR_TRUNCATE : error;
        length = capacity;
    }
    mca_pml_umrddt_stage_fill(recv, recv->stage.bytes, recv->stage.kind, length, error,
                              recv->status._ucount);
}

void mca_pml_umrddt_stage_received(mca_pml_umrddt_recv_t *recv)
{
    recv->status = recv->host->req_status;
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_FILL, received_event);
}

/** A plain message of the envelope's size is in recv->bounce. */
static void bounced_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;

    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_stage_fill_bounce(recv);
}

void mca_pml_umrddt_stage_bounced(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_FILL, bounced_event);
}

void mca_pml_umrddt_stage_fill_bounce(mca_pml_umrddt_recv_t *recv)
{
    size_t capacity = recv->count * recv->datatype->super.size;
    bool cut = capacity < sizeof(recv->bounce);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_stage_fill(recv, recv->bounce, OPAL_UMRDDT_GPU_HOST,
                              cut ? capacity : sizeof(recv->bounce),
                              cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS, sizeof(recv->bounce));
}

/* ---------------------------------------------------------------------------------------------
 * MPI functions
 * ------------------------------------------------------------------------------------------- */

/** Create our request, not started, with a base PML request that receives into a staging buffer. */
static int own(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
               ompi_communicator_t *comm, const mca_pml_umrddt_where_t *where,
               mca_pml_umrddt_recv_t **out)
{
    size_t room = count * datatype->super.size;
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_recv_alloc(buf, count, datatype, src, tag, mca_pml_umrddt_comm_find(comm));
    int rc;

    if (NULL == recv) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->super.req_state = OMPI_REQUEST_INACTIVE;
    recv->super.req_complete = REQUEST_COMPLETED;
    recv->release = MCA_PML_UMRDDT_COMPLETED;
    recv->state = MCA_PML_UMRDDT_RECV_DONE;
    recv->where = *where;
    recv->looked = true;
    rc = mca_pml_umrddt_stage_get(where,
                                  MCA_PML_UMRDDT_ENVELOPE > room ? MCA_PML_UMRDDT_ENVELOPE : room,
                                  MCA_PML_UMRDDT_STAGE_ROOM, &recv->stage);
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_base_init(recv);
    }
    if (OMPI_SUCCESS != rc) {
        recv->host = NULL;
        mca_pml_umrddt_recv_return(recv);
        return rc;
    }
    *out = recv;
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_stage_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                    int tag, ompi_communicator_t *comm,
                                    const mca_pml_umrddt_where_t *where, ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv;
    int rc = own(buf, count, datatype, src, tag, comm, where, &recv);

    if (OMPI_SUCCESS == rc) {
        recv->super.req_persistent = true;
        *request = &recv->super;
    }
    return rc;
}

int mca_pml_umrddt_stage_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                               ompi_communicator_t *comm, const mca_pml_umrddt_where_t *where,
                               ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv;
    int rc = own(buf, count, datatype, src, tag, comm, where, &recv);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    /* set first: another thread may see it complete before the start returns */
    *request = &recv->super;
    rc = mca_pml_umrddt_recv_start(recv);
    if (OMPI_SUCCESS != rc) {
        *request = NULL;
        mca_pml_umrddt_recv_return(recv);
    }
    return rc;
}

int mca_pml_umrddt_stage_imrecv_into(mca_pml_umrddt_recv_t *recv, ompi_message_t **message)
{
    size_t capacity = recv->count * recv->datatype->super.size;
    int rc = mca_pml_umrddt_stage_get(&recv->where, capacity, MCA_PML_UMRDDT_STAGE_ROOM,
                                      &recv->overflow);

    return OMPI_SUCCESS != rc
               ? rc
               : mca_pml_umrddt.host.pml_imrecv(recv->overflow.bytes, capacity, &ompi_mpi_byte.dt,
                                                message, &recv->data);
}

int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                ompi_message_t **message, const mca_pml_umrddt_where_t *where,
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
