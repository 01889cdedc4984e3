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
 * Copies what the base PML received into memory of ours to the user's buffer, and ends the receive.
 * See pml_umrddt_bounce.h.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stream.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_bounce.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_recv.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"

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
