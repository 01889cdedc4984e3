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
 * Sender's services for the RDMA schemes (pml_umrddt_rdma.h): endpoint and registered memory.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

bool mca_pml_umrddt_send_endpoint(mca_pml_umrddt_send_t *send)
{
    if (NULL == mca_pml_umrddt.hca || !send->peer->has_hca
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(send->peer, &send->endpoint)) {
        send->endpoint = NULL;
        return false;
    }
    send->endpoint = mca_pml_umrddt.hca->endpoint_near(
        send->endpoint, (const char *) send->buf + send->layout->lb,
        mca_pml_umrddt_on_device(&send->where) ? send->where.memory.device : -1);
    if (mca_pml_umrddt.hca->endpoint_broken(send->endpoint)) {
        send->endpoint = NULL;
        return false;
    }
    return true;
}

/** Returns true if the user has freed the request of this record's message. */
static inline bool is_freed(const mca_pml_umrddt_send_t *send)
{
    if (OPAL_UNLIKELY(NULL != send->stripes)) {
        send = mca_pml_umrddt_stripe_whole(send);
    }
    return __atomic_load_n(&send->freed, __ATOMIC_SEQ_CST);
}

bool mca_pml_umrddt_rdma_has_memory(mca_pml_umrddt_send_t *send)
{
    mca_btl_umr_memory_t *memory;

    if (NULL != send->memory) {
        return true;
    }
    if (OPAL_SUCCESS
        != mca_pml_umrddt_register(send->endpoint, MCA_BTL_UMR_LOCAL, &send->where,
                                   (void *) send->buf, send->layout, send->total, &memory)) {
        return false;
    }
    /* first store the memory, then check the flag; the thread that frees does the reverse */
    __atomic_store_n(&send->memory, memory, __ATOMIC_SEQ_CST);
    if (OPAL_UNLIKELY(is_freed(send))) {
        mca_pml_umrddt.hca->memory_let_go(memory);
    }
    return true;
}

bool mca_pml_umrddt_send_ready(mca_pml_umrddt_send_t *send, const mca_btl_umr_address_t *address)
{
    return OPAL_SUCCESS == mca_pml_umrddt.hca->endpoint_connect(send->endpoint, address)
           && mca_pml_umrddt_rdma_has_memory(send);
}
