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
 * Sender's half of the scheme direct (scatter/gather lists): RDMA writes into the receiver's
 * layout, without mkeys. See pml_umrddt_rdma.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static void direct_done(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;

    if (OPAL_SUCCESS != status) {
        mca_pml_umrddt_send_fail(send, true);
        return;
    }
    mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
}

/** A field of a CTS without mkeys is invalid. The receiver waits: send a NACK, so that it falls
 * back to the base PML. */
static void direct_malformed(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(0,
                "umrddt: the reply of rank %d for a message of %llu bytes is invalid; the base PML "
                "carries it",
                send->dst, (unsigned long long) send->layout->size);
    mca_pml_umrddt_send_fail(send, false);
}

/** A LAYOUT_FRAG has arrived: wait for the next reply. */
static void part_came(mca_pml_umrddt_send_t *send, size_t length)
{
    int rc = 0 < send->position
                 ? OMPI_ERR_BAD_PARAM
                 : mca_pml_umrddt_direct_part((mca_pml_umrddt_layout_frag_t *) send->reply, length,
                                              MCA_PML_UMRDDT_MAX_FLAT, &send->parts);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OMPI_ERR_BAD_PARAM == rc) {
        direct_malformed(send);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    } else {
        mca_pml_umrddt_send_await(send);
    }
}

/** Write the message into the receiver's layout. */
static void cts(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_cts_sgl_t *requested = (const mca_pml_umrddt_cts_sgl_t *) send->reply;
    mca_btl_umr_direct_t direct;
    int rc = OMPI_ERR_BAD_PARAM;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == send->position && 0 != (MCA_PML_UMRDDT_BIT_DIRECT & send->rts.schemes)) {
        rc = mca_pml_umrddt_direct_read(send->peer, requested, length, send->layout->size,
                                        send->parts, send->remote, &send->to);
    }
    if (OMPI_ERR_BAD_PARAM == rc) {
        direct_malformed(send);
        return;
    }
    mca_pml_umrddt_send_landed(send, 0 != (MCA_PML_UMRDDT_IN_GPU & requested->what));
    send->total = requested->total;
    if (OMPI_SUCCESS != rc || !mca_pml_umrddt_send_ready(send, &requested->address)) {
        /* the NACK clears the receiver's record of a layout that is not cached here */
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    direct = (mca_btl_umr_direct_t){.buffer = (void *) send->buf,
                                    .layout = send->layout,
                                    .memory = send->memory,
                                    .to = send->to->form,
                                    .to_buffer = requested->buffer,
                                    .regions = send->remote,
                                    .region_count = requested->region_count,
                                    .start = 0,
                                    .end = requested->total};
    send->state = MCA_PML_UMRDDT_SEND_PUT;
    rc =
        mca_pml_umrddt.hca->put_direct(send->endpoint, &direct, &requested->fin, direct_done, send);
    if (OPAL_ERR_BAD_PARAM == rc) {
        direct_malformed(send);
    } else if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    } else {
        MCA_PML_UMRDDT_COUNT(sends_direct);
    }
}

/** Release the received parts of the receiver's layout. */
void mca_pml_umrddt_direct_send_release(mca_pml_umrddt_send_t *send)
{
    free(send->parts);
    send->parts = NULL;
    if (NULL != send->to) {
        OBJ_RELEASE(send->to);
        send->to = NULL;
    }
}

void mca_pml_umrddt_direct_reply(mca_pml_umrddt_send_t *send, size_t length)
{
    if (MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG) == send->reply->magic) {
        part_came(send, length);
    } else if (sizeof(mca_pml_umrddt_cts_sgl_t) <= length) {
        cts(send, length);
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}
