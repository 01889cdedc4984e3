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
 * Receiver's services for the RDMA schemes (pml_umrddt_rdma.h): the endpoint, registered memory,
 * the credit for the FIN, and the flush of GPU memory.
 */

/*
 *     start --(scheme: prepare the CTS)--> CREDIT --CTS--> FIN --(scheme: next round)--> ...
 *                                                           |
 *                                                           +--(all)--> (FLUSH) --> DONE
 *
 * A write can arrive only between the CTS that carries its key and the end of that round. A round
 * ends with the FIN, with a NACK that reports no posted write, or when the endpoint is broken and
 * accepts no further writes.
 */

#include "ompi_config.h"

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

int mca_pml_umrddt_rdma_refuse(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_HCA;
    recv->reason = reason;
    return OMPI_ERR_NOT_AVAILABLE;
}

bool mca_pml_umrddt_rdma_register(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    return NULL != rdma->memory
           || OPAL_SUCCESS
                  == mca_pml_umrddt_register(recv->endpoint, MCA_BTL_UMR_REMOTE, &recv->where,
                                             recv->buf, recv->layout, recv->total, &rdma->memory);
}

/** State CREDIT: reserve a receive for the FIN, and send the CTS. */
static bool take_credit(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    int rc = mca_pml_umrddt.hca->fin_reserve(recv->endpoint);

    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_endpoint);
        return true;
    }
    recv->state = MCA_PML_UMRDDT_RECV_FIN;
    recv->fin = mca_pml_umrddt_fin_new(&mca_pml_umrddt.fins, recv);
    if (0 == recv->fin || OMPI_SUCCESS != rdma->cts(recv)) {
        mca_pml_umrddt.hca->fin_cancel(recv->endpoint);
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
        return true;
    }
    MCA_PML_UMRDDT_COUNT(rounds);
    return true;
}

void mca_pml_umrddt_recv_request_credit(mca_pml_umrddt_recv_t *recv)
{
    recv->state = MCA_PML_UMRDDT_RECV_CREDIT;
    if (!opal_list_is_empty(&recv->peer->credit) || !take_credit(recv)) {
        mca_pml_umrddt_wait_credit(recv->peer, &recv->wait, take_credit, recv);
    }
}

/** The flush has completed: the GPU sees all data, or (error) may never see it. */
static void flushed(void *context, int status)
{
    mca_pml_umrddt_recv_t *recv = context;

    if (OPAL_SUCCESS == status) {
        mca_pml_umrddt_recv_done(recv);
        return;
    }
    /* the sender has completed the message, so it cannot be sent again */
    opal_output(0, "umrddt: a message came to a GPU that cannot be made to see it; it fails");
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, 0);
}

void mca_pml_umrddt_rdma_flush(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    int rc;

    recv->state = MCA_PML_UMRDDT_RECV_FLUSH;
    rc = mca_pml_umrddt.hca->memory_flush(rdma->memory, flushed, recv);
    if (OPAL_ERR_WOULD_BLOCK != rc) {
        flushed(recv, rc);
    }
}

mca_pml_umrddt_nack_t mca_pml_umrddt_rdma_nack(mca_pml_umrddt_recv_t *recv,
                                               const mca_pml_umrddt_nack_header_t *fail)
{
    if (MCA_PML_UMRDDT_RECV_FLUSH == recv->state) {
        return MCA_PML_UMRDDT_NACK_ACK;
    }
    if (MCA_PML_UMRDDT_RECV_SPLIT == recv->state) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        /* NACKs refer to its stripes, not to the parent message */
        return MCA_PML_UMRDDT_NACK_KEEPS;
    }
    if (MCA_PML_UMRDDT_RECV_FIN == recv->state) {
        if (fail->in_flight) {
            mca_pml_umrddt.hca->endpoint_break(recv->endpoint);
        } else {
            mca_pml_umrddt.hca->fin_cancel(recv->endpoint);
        }
    }
    return MCA_PML_UMRDDT_NACK_BASE;
}
