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
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_bounce.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"

/** Retry function of a wait: the copy to the user's buffer is in progress. */
static bool unstaged(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    int rc = opal_umrddt_gpu_stream_copy_test(&recv->transit);

    if (OMPI_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, recv->status._ucount, true, rc);
        recv->status.MPI_ERROR = MPI_ERR_OTHER;
    }
    opal_umrddt_gpu_stage_put(&recv->overflow);
    mca_pml_umrddt_recv_finish(recv, recv->status.MPI_ERROR, recv->status._ucount);
    return true;
}

void mca_pml_umrddt_recv_unstage(mca_pml_umrddt_recv_t *recv, void *bytes,
                                 opal_umrddt_gpu_kind_t kind, size_t length)
{
    int rc, tries = 2; /* the data would be lost: retry once */

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_UNSTAGE;
    mca_pml_umrddt_recv_look(recv);
    if (!opal_umrddt_gpu_on_device(&recv->where)) {
        opal_umrddt_gpu_stream_unpack(recv->buf, recv->count, &recv->datatype->super, bytes,
                                      length);
        opal_umrddt_gpu_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, recv->status.MPI_ERROR, recv->status._ucount);
        return;
    }
    do {
        rc = mca_pml_umrddt_transit(&recv->transit, recv->buf, recv->count, recv->datatype,
                                    &recv->where, bytes, kind, length, true);
    } while (OMPI_SUCCESS != rc && 0 < --tries);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, recv->status._ucount, true, rc);
        opal_umrddt_gpu_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, recv->status._ucount);
        return;
    }
    MCA_PML_UMRDDT_COUNT(staged_recvs);
    MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, length);
    if (!unstaged(recv)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, unstaged, recv);
    }
}

void mca_pml_umrddt_recv_plain_active(mca_pml_umrddt_recv_t *recv)
{
    unsigned char *bytes = mca_pml_umrddt_recv_bounce(recv);
    size_t capacity = recv->count * recv->datatype->super.size;
    size_t length = recv->status._ucount;

    /* Of a message that is too long, only pml/ob1 delivers all bytes that fit. With other base PMLs
     * the rest of the buffer may hold bytes of earlier messages. */
    if (MPI_SUCCESS != recv->status.MPI_ERROR
        && (!mca_pml_umrddt.host_keeps || mca_pml_umrddt_bounce_empty(bytes))) {
        length = 0;
    } else if (capacity < length) {
        length = capacity;
        if (MPI_SUCCESS == recv->status.MPI_ERROR) {
            recv->status.MPI_ERROR = MPI_ERR_TRUNCATE;
        }
    }
    mca_pml_umrddt_recv_unstage(
        recv, bytes, NULL == recv->stage.bytes ? OPAL_UMRDDT_GPU_HOST : recv->stage.kind, length);
}

static void plain_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;

    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_recv_plain_active(recv);
}

void mca_pml_umrddt_recv_plain(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_UNSTAGE, plain_event);
}
