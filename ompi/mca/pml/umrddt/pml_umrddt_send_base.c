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
 * Sends that the base PML carries: the data of a message that was taken and went wrong, and what is
 * not taken but must be packed first.
 */

#include "ompi_config.h"

#include "opal/util/output.h"

#include "pml_umrddt_base_gpu.h"
#include "pml_umrddt_owner.h"
#include "pml_umrddt_send_rndv.h"

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

/** True if the base PML must not be given the buffer itself, whoever progresses the message. */
static inline bool wants_stage(const mca_pml_umrddt_send_t *send)
{
    return !mca_pml_umrddt_base_touches(&send->where);
}

/** The host does not take the data, and hardly ever will: what the receiver waits for comes empty,
 * which needs less; and if that is not taken either, it cannot be told. */
static void data_refused(mca_pml_umrddt_send_t *send, int rc)
{
    if (send->pack_error) {
        mca_pml_umrddt_cannot_tell(send->comm, send->dst, rc);
    }
    opal_output(0, "umrddt: the base PML refuses the data of a message (%d); it fails", rc);
    send->pack_error = true;
    send->refused = 0;
}

/**
 * Post at the host what the receiver waits for: the stage's bytes, or else the buffer's; or nothing
 * if that is an error. As the retry function of a wait.
 *
 * @return false: the host has not taken it, and is to be asked again
 */
static bool data_posted(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, send->slot);
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
        if (mca_pml_umrddt_hopeless(rc, &send->refused)) {
            data_refused(send, rc);
        }
        return false;
    }
    if (!host_sent(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, host_sent, send);
    }
    return true;
}

static void post_data(mca_pml_umrddt_send_t *send)
{
    send->refused = 0;
    if (!data_posted(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, data_posted, send);
    }
}

/** The buffer could not be packed: what the receiver waits for comes empty, so it fails, too. */
static void post_nothing(mca_pml_umrddt_send_t *send, int rc)
{
    opal_output(0, "umrddt: the GPU could not pack a message (%d); it fails", rc);
    send->pack_error = true;
    post_data(send);
}

/** The data is being packed. */
static bool packed(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int rc = mca_pml_umrddt_transit_test(&send->transit);

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

void mca_pml_umrddt_send_by_base(mca_pml_umrddt_send_t *send)
{
    int rc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(send->chosen)) {
        MCA_PML_UMRDDT_COUNT(declined_sends);
    } else {
        MCA_PML_UMRDDT_COUNT(fallback_sends);
    }
    send->state = MCA_PML_UMRDDT_SEND_BASE;
    if (!wants_stage(send)) {
        post_data(send);
        return;
    }
    rc = mca_pml_umrddt_stage_get(&send->where, send->layout->size, MCA_PML_UMRDDT_STAGE_DATA,
                                  &send->stage);
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_transit(&send->transit, send->buf, send->count, send->datatype,
                                    &send->where, send->stage.bytes, send->stage.kind,
                                    send->layout->size, false);
    }
    if (OMPI_SUCCESS != rc) {
        post_nothing(send, rc);
    } else if (!packed(send)) {
        /* nothing can overtake it: its tag is its own */
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, packed, send);
    }
}

static void plain_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    if (!host_sent(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, host_sent, send);
    }
}

int mca_pml_umrddt_send_start_plain(mca_pml_umrddt_send_t *send)
{
    bool staged =
        wants_stage(send)
        && (MCA_PML_BASE_SEND_BUFFERED == send->mode
            || !mca_pml_umrddt_base_given(send->comm, &send->where, send->buf, send->count,
                                          send->datatype, send->dst, send->tag));
    ompi_datatype_t *type;
    size_t count;
    bool slot;
    int rc = OMPI_SUCCESS;

    if (staged) {
        rc = mca_pml_umrddt_stage_pack(send->buf, send->count, send->datatype, &send->where,
                                       &send->stage);
    }
    if (OMPI_SUCCESS != rc) {
        send->release = MCA_PML_UMRDDT_COMPLETED;
        return rc;
    }
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    /* finish gives it back */
    slot = mca_pml_umrddt_slot_take(&mca_pml_umrddt.slots, MCA_PML_UMRDDT_MAX_SLOTS, &send->slot);
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    if (!slot) {
        mca_pml_umrddt_stage_put(&send->stage);
        send->release = MCA_PML_UMRDDT_COMPLETED;
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
        mca_pml_umrddt_stage_put(&send->stage);
        mca_pml_umrddt_send_slot_release(send);
        send->release = MCA_PML_UMRDDT_COMPLETED;
        return rc;
    }
    send->state = MCA_PML_UMRDDT_SEND_BASE;
    mca_pml_umrddt_active(1);
    if (REQUEST_COMPLETE(send->host)) {
        (void) host_sent(send); /* nobody else knows the request yet, or may touch it */
    } else {
        mca_pml_umrddt_event(&send->event, plain_event, send);
    }
    return OMPI_SUCCESS;
}
