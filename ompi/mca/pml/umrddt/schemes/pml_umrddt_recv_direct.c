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
 * Receiver's half of the scheme direct (scatter/gather lists): RDMA writes without mkeys. One CTS
 * covers the whole message. See pml_umrddt_rdma.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_check_schemes.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/** Bytes of the flattened layout to send with the CTS; 0 if the sender has cached it. */
static size_t flat_bytes(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_flat_there(recv->peer, recv->rts.flats, recv->layout->id)
               ? 0
               : opal_iov_cache_form_flatten(recv->layout->form, NULL, 0);
}

static int emit(void *context, const void *bytes, size_t length)
{
    mca_pml_umrddt_recv_t *recv = context;

    return mca_pml_umrddt_control(
        recv->comm, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, recv->rts.request_id), bytes, length, false);
}

/** Send the CTS: the memory regions, and the layout unless the sender has cached it. */
static int cts(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS];
    size_t count =
        mca_pml_umrddt.hca->memory_regions(rdma->memory, regions, MCA_PML_UMRDDT_MAX_REGIONS);
    mca_pml_umrddt_cts_sgl_t requested = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_SGL),
        .seq = recv->rts.seq,
        .request_id = recv->rts.request_id,
        .fin = recv->fin,
        .total = recv->total,
        .buffer = (uintptr_t) recv->buf,
        .layout = recv->layout->id,
        .slot = MCA_PML_UMRDDT_NO_SLOT,
        .region_count = (uint32_t) count,
        .what = mca_pml_umrddt_recv_memory(recv),
    };
    bool once = MCA_PML_UMRDDT_BITS_HCA
                    == (MCA_PML_UMRDDT_BITS_HCA & recv->rts.schemes & mca_pml_umrddt.schemes)
                && !mca_pml_umrddt.declines; /* the model may select this scheme again */
    size_t most = once ? MCA_PML_UMRDDT_CACHED_ONCE : MCA_PML_UMRDDT_CACHED_FLAT;
    mca_pml_umrddt_flat_naming_t naming;
    size_t bytes = flat_bytes(recv);
    void *flat = NULL;
    int rc;

    if (MCA_PML_UMRDDT_MAX_FLAT < bytes) {
        /* the sender had the layout cached when this scheme was selected */
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    naming = mca_pml_umrddt_flat_name(recv->peer, recv->rts.flats, recv->layout->id, most >= bytes,
                                      &requested.slot);
    rdma->slot = requested.slot;
    rdma->placed = MCA_PML_UMRDDT_FLAT_SEND != naming;
    if (MCA_PML_UMRDDT_FLAT_SLOT == naming) {
        MCA_PML_UMRDDT_COUNT(layouts_cached);
    } else {
        MCA_PML_UMRDDT_COUNT(layouts_sent);
        requested.flat_bytes = (uint32_t) bytes;
        flat = malloc(bytes);
        if (NULL == flat) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        (void) opal_iov_cache_form_flatten(recv->layout->form, flat, bytes);
    }
    mca_pml_umrddt.hca->endpoint_address(recv->endpoint, &requested.address);
    rc = mca_pml_umrddt_direct_emit(&requested, regions, flat, mca_pml_umrddt.scratch, emit, recv);
    free(flat);
    return rc;
}

/** Returns true if the regions and the layout fit a CTS. */
static bool fits(const mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    size_t regions = mca_pml_umrddt.hca->memory_regions(rdma->memory, NULL, 0);

    return 0 < regions && MCA_PML_UMRDDT_MAX_REGIONS >= regions
           && MCA_PML_UMRDDT_MAX_FLAT >= flat_bytes(recv);
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    recv->scheme = MCA_PML_UMRDDT_SCHEME_DIRECT;
    if (OMPI_SUCCESS != mca_pml_umrddt_rdma_begin(recv, cts)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (!mca_pml_umrddt_rdma_register(recv)) {
        return mca_pml_umrddt_rdma_refuse(recv, &counters->fallback_registration);
    }
    if (!fits(recv)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    mca_pml_umrddt_recv_request_credit(recv);
    return OMPI_SUCCESS;
}

static void fin(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (!mca_pml_umrddt_rdma_fin(recv)) {
        return;
    }
    if (rdma->placed) {
        rdma->placed = false;
        mca_pml_umrddt_flat_leave(recv->peer, rdma->slot, true);
    }
    mca_pml_umrddt_rdma_landed(recv);
}

static void release(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (rdma->placed) {
        rdma->placed = false;
        mca_pml_umrddt_flat_leave(recv->peer, rdma->slot, false);
    }
    mca_pml_umrddt_rdma_release(recv);
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_direct = {
    .id = MCA_PML_UMRDDT_SCHEME_DIRECT,
    .bit = MCA_PML_UMRDDT_BIT_DIRECT,
    .can_recv = mca_pml_umrddt_rdma_can_recv,
    .start = start,
    .fin = fin,
    .nack = mca_pml_umrddt_rdma_nack,
    .recv_release = release,
    .reply = mca_pml_umrddt_direct_reply,
    .send_release = mca_pml_umrddt_direct_send_release,
    .check = mca_pml_umrddt_check_direct,
};
