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
 * Requests of sends and receives: from their free lists to completion and back. The functions that
 * MPI calls by them are in pml_umrddt_send.c and pml_umrddt_recv.c.
 */

#include "ompi_config.h"

#if UMRDDT_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

mca_pml_umrddt_send_t *mca_pml_umrddt_send_get(void)
{
    mca_pml_umrddt_send_t *send =
        (mca_pml_umrddt_send_t *) opal_free_list_get(&mca_pml_umrddt.sends);

    if (OPAL_UNLIKELY(NULL != send && (NULL == send->reply || NULL == send->remote))) {
        opal_free_list_return(&mca_pml_umrddt.sends, &send->super.super);
        return NULL;
    }
    return send;
}

void mca_pml_umrddt_send_return(mca_pml_umrddt_send_t *send)
{
    ompi_communicator_t *comm = send->comm->comm;

    OMPI_REQUEST_FINI(&send->super);
    OBJ_RELEASE(send->layout);
    OMPI_DATATYPE_RELEASE(send->datatype);
    opal_free_list_return(&mca_pml_umrddt.sends, &send->super.super);
    OBJ_RELEASE(comm);
}

mca_pml_umrddt_recv_t *mca_pml_umrddt_recv_alloc(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, mca_pml_umrddt_comm_t *comm)
{
    mca_pml_umrddt_recv_t *recv = mca_pml_umrddt_record_alloc(buf, count, datatype, src, tag, comm);

    if (NULL != recv) {
        OMPI_REQUEST_INIT(&recv->super, false);
        recv->super.req_mpi_object.comm = comm->comm;
        recv->super.req_state = OMPI_REQUEST_ACTIVE;
        recv->super.req_status.MPI_ERROR = MPI_SUCCESS;
        recv->super.req_status._cancelled = 0;
        recv->req = &recv->super;
        recv->release = 0;
        OBJ_RETAIN(comm->comm);
        OMPI_DATATYPE_RETAIN(datatype);
    }
    return recv;
}

void mca_pml_umrddt_recv_return(mca_pml_umrddt_recv_t *recv)
{
    ompi_communicator_t *comm = recv->comm->comm;
    ompi_datatype_t *datatype = recv->datatype;
    ompi_request_t *host = recv->host;
    opal_umrddt_gpu_stage_t stage = recv->stage;

    if (OPAL_UNLIKELY(NULL != recv->overflow.bytes)) {
        opal_umrddt_gpu_stage_put(&recv->overflow);
    }
    recv->stage.bytes = NULL; /* return it after the base PML's request, which refers to it */
    recv->looked = false;
    if (&recv->super == recv->req) {
        OMPI_REQUEST_FINI(&recv->super);
        if (NULL != host) {
            mca_pml_umrddt_request_clear(host);
        }
    } else {
        /* these fields were changed to watch it */
        host->req_free = recv->host_free;
        host->req_persistent = recv->host_persistent;
        mca_pml_umrddt_request_clear(host);
        host->req_complete_cb = NULL;
    }
    opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
    OMPI_DATATYPE_RELEASE(datatype);
    OBJ_RELEASE(comm);
    if (NULL != host) {
        ompi_request_free(&host);
    }
    if (OPAL_UNLIKELY(NULL != stage.bytes)) {
        opal_umrddt_gpu_stage_put(&stage);
    }
}

int mca_pml_umrddt_wait_and_free(ompi_request_t *request, ompi_status_public_t *status)
{
    int rc;

    ompi_request_wait_completion(request);
    rc = request->req_status.MPI_ERROR;
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, request->req_status, false);
    }
    ompi_request_free(&request);
    return rc;
}

uint64_t mca_pml_umrddt_range(uint64_t begun, const char *name, uint64_t bytes)
{
#if UMRDDT_HAVE_NVTX
    const nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                         .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                         .payload.ullValue = bytes,
                                         .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                         .message.ascii = name};

    if (NULL == mca_pml_umrddt.ranges) { /* loads the library of the profiler, if there is one */
        mca_pml_umrddt.ranges = nvtxDomainCreateA("umrddt");
    }
    if (0 != begun) {
        nvtxDomainRangeEnd(mca_pml_umrddt.ranges, begun);
    }
    return NULL == name ? 0 : nvtxDomainRangeStartEx(mca_pml_umrddt.ranges, &event);
#else
    (void) begun, (void) name, (void) bytes;
    return 0;
#endif
}

/** Complete the application's request with req->req_status. */
static void complete(mca_pml_umrddt_recv_t *recv)
{
    recv->state = MCA_PML_UMRDDT_RECV_DONE;
    mca_pml_umrddt_recv_unhold(recv);
    if (NULL != recv->host && recv->host != recv->req) {
        /* the callback kept the base PML's request pending */
        (void) ompi_request_complete(recv->host, false);
    }
    (void) ompi_request_complete(recv->req, true);
    if (mca_pml_umrddt_release(&recv->release, MCA_PML_UMRDDT_COMPLETED)) {
        mca_pml_umrddt_recv_return(recv);
    }
}

void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_range_end(&recv->range);
    if (OPAL_UNLIKELY(NULL != recv->split) && recv->split->ended(recv, error)) {
        return;
    }
    if (OPAL_UNLIKELY(NULL != recv->pair)) {
        mca_pml_umrddt_select_ended(recv, error);
    }
    recv->req->req_status.MPI_SOURCE = recv->status.MPI_SOURCE;
    recv->req->req_status.MPI_TAG = recv->status.MPI_TAG;
    recv->req->req_status.MPI_ERROR = error;
    recv->req->req_status._ucount = length;
    recv->req->req_status._cancelled = 0;
    opal_list_remove_item(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_active(-1);
    complete(recv);
}
