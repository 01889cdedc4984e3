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
 * Sends that the base PML carries: handled messages after a FALLBACK, and messages that only need
 * to be packed. See pml_umrddt_engine.h first.
 */

#include "ompi_config.h"

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"

static bool host_sent(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int error;

    if (!REQUEST_COMPLETE(send->host)) {
        return false;
    }
    error = send->pack_error ? MPI_ERR_OTHER : send->host->req_status.MPI_ERROR;
    send->super.req_status._cancelled = send->host->req_status._cancelled;
    ompi_request_free(&send->host);
    send->host = NULL;
    mca_pml_umrddt_send_finish(send, error);
    return true;
}

/** The base PML finally refuses the data. Send an empty message instead, which needs fewer
 * resources, so that the receiver fails too. If that is refused too, the job ends. */
static void data_refused(mca_pml_umrddt_send_t *send, int rc)
{
    if (send->pack_error) {
        mca_pml_umrddt_control_fatal(send->comm, send->dst, rc);
    }
    opal_output(0, "pml:umrddt: the base PML refuses the data of a message (%d); it fails", rc);
    send->pack_error = true;
    send->refused = 0;
}

/**
 * Post the send that the receiver waits for: from the staging buffer or the user's buffer, or an
 * empty message after an error. Retry function of a wait.
 *
 * @return false: the base PML refused; retry later
 */
static bool data_posted(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, send->request_id);
    bool bytes = send->pack_error || NULL != send->stage.bytes;
    size_t length = send->pack_error ? 0 : send->layout->size;
    int rc;

    rc = mca_pml_umrddt.host.pml_isend(bytes ? send->stage.bytes : send->buf,
                                       bytes ? length : send->count,
                                       bytes ? &ompi_mpi_byte.dt : send->datatype, send->dst, tag,
                                       MCA_PML_BASE_SEND_STANDARD, send->comm->comm, &send->host);
    if (OMPI_SUCCESS != rc) {
        send->host = NULL;
        MCA_PML_UMRDDT_COUNT(control_refused);
        if (mca_pml_umrddt_given_up(rc, &send->refused)) {
            data_refused(send, rc);
        }
        return false;
    }
    mca_pml_umrddt_poll(&send->wait, host_sent, send);
    return true;
}

static void post_data(mca_pml_umrddt_send_t *send)
{
    send->refused = 0;
    mca_pml_umrddt_poll(&send->wait, data_posted, send);
}

/** The buffer could not be packed: send an empty message, so that the receiver fails too. */
static void post_nothing(mca_pml_umrddt_send_t *send, int rc)
{
    opal_output(0, "pml:umrddt: the GPU could not pack a message (%d); it fails", rc);
    send->pack_error = true;
    post_data(send);
}

/** Retry function of a wait: the data is being packed. */
static bool packed(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int rc = opal_umrddt_gpu_stream_copy_test(&send->transit);

    if (OMPI_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    if (OMPI_SUCCESS == rc) {
        MCA_PML_UMRDDT_COUNT(staged_sends);
        MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, send->layout->size);
        post_data(send);
    } else {
        post_nothing(send, rc);
    }
    return true;
}

/** Log that the base PML carries a message; the back-off if the receiver declines the next ones. */
static __opal_attribute_noinline__ void log_base(const mca_pml_umrddt_send_t *send)
{
    if (send->left) {
        MCA_PML_UMRDDT_VERBOSE(SELECTION,
                               "%zu bytes to rank %u: declined; the next such messages are passed "
                               "through",
                               send->layout->size, mca_pml_umrddt_peer_rank(send->peer));
    } else {
        MCA_PML_UMRDDT_VERBOSE(MESSAGE, "%zu bytes to rank %u: %s", send->layout->size,
                               mca_pml_umrddt_peer_rank(send->peer),
                               send->chosen ? "declined" : "fallback to the base PML");
    }
}

void mca_pml_umrddt_send_by_base(mca_pml_umrddt_send_t *send)
{
    int rc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    log_base(send);
    if (OPAL_UNLIKELY(send->chosen)) {
        MCA_PML_UMRDDT_COUNT(declined_sends);
    } else {
        MCA_PML_UMRDDT_COUNT(fallback_sends);
    }
    send->state = MCA_PML_UMRDDT_SEND_BASE;
    if (mca_pml_umrddt_base_touches(&send->where)) {
        post_data(send);
        return;
    }
    rc = opal_umrddt_gpu_stage_get(&send->where.memory, send->layout->size, &send->stage);
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_transit(&send->transit, send->buf, send->count, send->datatype,
                                    &send->where, send->stage.bytes, send->stage.kind,
                                    send->layout->size, false);
    }
    if (OMPI_SUCCESS != rc) {
        post_nothing(send, rc);
    } else {
        /* the message has its own tag, so later messages cannot overtake it */
        mca_pml_umrddt_poll(&send->wait, packed, send);
    }
}

static void plain_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    mca_pml_umrddt_poll(&send->wait, host_sent, send);
}

int mca_pml_umrddt_send_start_plain(mca_pml_umrddt_send_t *send)
{
    bool staged =
        !mca_pml_umrddt_base_touches(&send->where)
        && (MCA_PML_BASE_SEND_BUFFERED == send->mode
            || !mca_pml_umrddt_base_given(send->comm, &send->where, send->buf, send->count,
                                          send->datatype, send->dst, send->tag));
    ompi_datatype_t *type;
    size_t count;
    bool has_id;
    int rc = OMPI_SUCCESS;

    if (staged) {
        rc = mca_pml_umrddt_stage_pack(send->buf, send->count, send->datatype, &send->where,
                                       &send->stage);
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_request_inactive(&send->super, &send->release);
        return rc;
    }
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    /* mca_pml_umrddt_send_finish releases it */
    has_id = umrddt_id_take(&mca_pml_umrddt.request_ids, MCA_PML_UMRDDT_MAX_REQUEST_IDS,
                            &send->request_id);
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    if (!has_id) {
        opal_umrddt_gpu_stage_put(&send->stage);
        mca_pml_umrddt_request_inactive(&send->super, &send->release);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (staged) {
        mca_pml_umrddt_stage_as(send->layout->size,
                                !opal_iov_cache_layout_is_contiguous(send->layout), &count, &type);
        rc = mca_pml_umrddt.host.pml_isend(send->stage.bytes, count, type, send->dst, send->tag,
                                           send->mode, send->comm->comm, &send->host);
        mca_pml_umrddt_stage_as_end(type);
    } else {
        rc = mca_pml_umrddt.host.pml_isend(send->buf, send->count, send->datatype, send->dst,
                                           send->tag, send->mode, send->comm->comm, &send->host);
    }
    if (OMPI_SUCCESS != rc) {
        send->host = NULL;
        opal_umrddt_gpu_stage_put(&send->stage);
        mca_pml_umrddt_send_request_id_release(send);
        mca_pml_umrddt_request_inactive(&send->super, &send->release);
        return rc;
    }
    send->state = MCA_PML_UMRDDT_SEND_BASE;
    mca_pml_umrddt_active(1);
    if (REQUEST_COMPLETE(send->host)) {
        (void) host_sent(send); /* no other thread can access the request yet */
    } else {
        mca_pml_umrddt_event(&send->event, plain_event, send);
    }
    return OMPI_SUCCESS;
}
