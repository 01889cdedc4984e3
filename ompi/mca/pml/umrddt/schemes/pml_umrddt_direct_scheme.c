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
 * The scheme direct (scatter/gather lists): RDMA writes into the receiver's layout, without mkeys.
 * One CTS covers the whole message. See pml_umrddt_rdma.h first; pml_umrddt_direct.h has the
 * messages and caches.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** Data of a send by this scheme. */
typedef struct held_t {
    mca_pml_umrddt_parts_t *parts; /**< received parts of the receiver's layout */
    opal_iov_cache_layout_t *to;   /**< the receiver's layout during the writes */
} held_t;

static void write_done(void *context, int status)
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
static void malformed(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(
        0,
        "pml:umrddt: the reply of rank %d for a message of %llu bytes is invalid; the base PML "
        "carries it",
        send->dst, (unsigned long long) send->layout->size);
    mca_pml_umrddt_send_fail(send, false);
}

/** A LAYOUT_FRAG has arrived: wait for the next reply. */
static void part_came(mca_pml_umrddt_send_t *send, size_t length)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    int rc = 0 < send->position
                 ? OMPI_ERR_BAD_PARAM
                 : mca_pml_umrddt_direct_part((mca_pml_umrddt_layout_frag_t *) send->reply, length,
                                              MCA_PML_UMRDDT_MAX_FLAT, &held->parts);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OMPI_ERR_BAD_PARAM == rc) {
        malformed(send);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    } else {
        mca_pml_umrddt_send_await(send);
    }
}

/** Write the message into the receiver's layout. */
static void write_message(mca_pml_umrddt_send_t *send, size_t length)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    const mca_pml_umrddt_cts_sgl_t *requested = (const mca_pml_umrddt_cts_sgl_t *) send->reply;
    mca_btl_umr_direct_t direct;
    int rc = OMPI_ERR_BAD_PARAM;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == send->position && 0 != (MCA_PML_UMRDDT_BIT_DIRECT & send->rts.schemes)) {
        rc = mca_pml_umrddt_direct_read(send->peer, requested, length, send->layout->size,
                                        held->parts, send->remote, &held->to);
    }
    if (OMPI_ERR_BAD_PARAM == rc) {
        malformed(send);
        return;
    }
    mca_pml_umrddt_send_landed(send, 0 != (MCA_PML_UMRDDT_IN_GPU & requested->what));
    send->total = requested->total;
    if (OMPI_SUCCESS != rc
        || OPAL_SUCCESS != mca_pml_umrddt.hca->endpoint_connect(send->endpoint, &requested->address)
        || !mca_pml_umrddt_rdma_has_memory(send)) {
        /* the NACK clears the receiver's record of a layout that is not cached here */
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    direct = (mca_btl_umr_direct_t){.buffer = (void *) send->buf,
                                    .layout = send->layout,
                                    .memory = send->memory,
                                    .to = held->to->form,
                                    .to_buffer = requested->buffer,
                                    .regions = send->remote,
                                    .region_count = requested->region_count,
                                    .start = 0,
                                    .end = requested->total};
    send->state = MCA_PML_UMRDDT_SEND_PUT;
    rc = mca_pml_umrddt.hca->put_direct(send->endpoint, &direct, &requested->fin, write_done, send);
    if (OPAL_ERR_BAD_PARAM == rc) {
        malformed(send);
    } else if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    } else {
        MCA_PML_UMRDDT_COUNT(sends_direct);
    }
}

/** Release the received parts of the receiver's layout. */
static void send_release(mca_pml_umrddt_send_t *send)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);

    free(held->parts);
    held->parts = NULL;
    if (NULL != held->to) {
        OBJ_RELEASE(held->to);
        held->to = NULL;
    }
}

static void reply_came(mca_pml_umrddt_send_t *send, size_t length)
{
    if (MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG) == send->reply->magic) {
        part_came(send, length);
    } else if (sizeof(mca_pml_umrddt_cts_sgl_t) <= length) {
        write_message(send, length);
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

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

static void recv_release(mca_pml_umrddt_recv_t *recv)
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
    .recv_release = recv_release,
    .reply = reply_came,
    .send_release = send_release,
    .check = mca_pml_umrddt_check_direct,
};
