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
 * The receiver of packed messages; read pml_umrddt_pack.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_check_schemes.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

/** Retry function of a wait: chunks are in progress. */
static bool receiving(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);
    mca_pml_umrddt_pack_end_t end;

    if (!mca_pml_umrddt_pack_step(held->pack)) {
        return false;
    }
    end = mca_pml_umrddt_pack_end(held->pack);
    held->pack = NULL;
    if (MCA_PML_UMRDDT_PACK_WELL == end) {
        MCA_PML_UMRDDT_COUNT(recvs_pack);
        mca_pml_umrddt_recv_done(recv);
    } else if (MCA_PML_UMRDDT_PACK_NOT_PACKED == end) {
        mca_pml_umrddt_recv_by_base(recv, &mca_pml_umrddt.counters.fallback_sender);
    } else if (MCA_PML_UMRDDT_PACK_BROKEN == end) {
        mca_pml_umrddt_recv_by_base(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    } else {
        mca_pml_umrddt_recv_lost(recv);
    }
    return true;
}

/** The endpoint for the HCA as the wire, if the sender offered it; NULL: use the base PML */
static mca_btl_umr_endpoint_t *wire(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_btl_umr_endpoint_t *endpoint;

    if (0 == recv->rts.address.qpn || NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || (MCA_PML_UMRDDT_BIT_PACK_GDR != scheme && !mca_pml_umrddt.params.pack_hca)
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(recv->peer, &endpoint)) {
        return NULL;
    }
    endpoint = mca_pml_umrddt.hca->endpoint_at(endpoint, &recv->rts.address);
    recv->endpoint = endpoint; /* also if it refuses: the reply to the sender reports that */
    if (OPAL_SUCCESS != mca_pml_umrddt.hca->endpoint_connect(endpoint, &recv->rts.address)) {
        return NULL;
    }
    if (0 == recv->fin) {
        recv->fin = mca_pml_umrddt_fin_new(&mca_pml_umrddt.fins, recv);
    }
    return 0 == recv->fin ? NULL : endpoint;
}

/** Chunk size of a message, the same on both sides. */
static uint64_t chunk_of(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_pack_chunk_of(recv->layout, recv->rts.pieces, recv->total);
}

/** Allocate buffers for a scheme. @return false: not possible */
static bool begin(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);
    mca_pml_umrddt_pack_job_t job = {
        .buf = recv->buf,
        .layout = recv->layout,
        .where = &recv->where,
        .in = true,
        .scheme = scheme,
        .total = recv->total,
        .chunk = chunk_of(recv),
        .comm = recv->comm,
        .peer = recv->status.MPI_SOURCE,
        .tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, recv->rts.request_id),
        .endpoint = wire(recv, scheme),
        .rts = &recv->rts,
    };

    if (NULL != job.endpoint && OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &held->pack)) {
        return true;
    }
    job.endpoint = NULL;
    if (MCA_PML_UMRDDT_BIT_PACK_GDR != scheme
        && OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &held->pack)) {
        return true;
    }
    held->pack = NULL;
    return false;
}

/** Send the CTS_PACK. @return OMPI_SUCCESS, or the base PML's error */
static int send_cts_pack(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);
    mca_pml_umrddt_reply_t *reply = mca_pml_umrddt.scratch;

    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_CTS_PACK, reply);
    reply->total = recv->total;
    reply->chunk = chunk_of(recv);
    reply->what = scheme;
    reply->key_count = (uint32_t) mca_pml_umrddt_pack_slots(held->pack, reply->keys);
    reply->start = mca_pml_umrddt_pack_reported(held->pack);
    if (0 < reply->key_count) {
        reply->fin = recv->fin;
        mca_pml_umrddt.hca->endpoint_address(recv->endpoint, &reply->address);
    } else if (NULL != recv->endpoint) {
        (void) mca_pml_umrddt.hca->endpoint_refuses(recv->endpoint, &recv->rts.address,
                                                    &reply->address);
    }
    return mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, reply);
}

/** Returns true if the rules select this one among the packed schemes that have not failed. */
static bool can_recv_gdr(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_rule_packs(recv, MCA_PML_UMRDDT_SCHEME_PACK_GDR);
}

static bool can_recv_staged(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_rule_packs(recv, MCA_PML_UMRDDT_SCHEME_PACK_STAGED);
}

static bool can_recv_host(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_rule_packs(recv, MCA_PML_UMRDDT_SCHEME_PACK_HOST);
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);
    const mca_pml_umrddt_scheme_id_t id = recv->ops->id;
    const unsigned bit = MCA_PML_UMRDDT_BIT(id);

    if (!mca_pml_umrddt_recv_has_layout(recv) || !begin(recv, bit)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    recv->state = MCA_PML_UMRDDT_RECV_PACK;
    /* post the first receives before the CTS_PACK, so that the chunks are expected */
    (void) mca_pml_umrddt_pack_step(held->pack);
    if (OMPI_SUCCESS != send_cts_pack(recv, bit)) {
        recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_PACK;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    recv->scheme = (int) id;
    mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, receiving, recv);
    return OMPI_SUCCESS;
}

static void fin(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);

    if (NULL == held->pack || !mca_pml_umrddt_pack_fin(held->pack)) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
    }
}

static mca_pml_umrddt_nack_t nack(mca_pml_umrddt_recv_t *recv,
                                  const mca_pml_umrddt_nack_header_t *fail)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);

    /* wait for the chunks that the sender has written */
    return NULL != held->pack && mca_pml_umrddt_pack_sender_failed(held->pack, fail)
               ? MCA_PML_UMRDDT_NACK_KEEPS
               : MCA_PML_UMRDDT_NACK_BASE;
}

static void release(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);

    mca_pml_umrddt_recv_forget_fin(recv);
    if (OPAL_UNLIKELY(NULL != held->pack)) {
        mca_pml_umrddt_pack_drop(held->pack);
        held->pack = NULL;
    }
}

/** Packed schemes that are enabled. */
static uint16_t group_open(void)
{
    const bool by_hca = NULL != mca_pml_umrddt.hca && mca_pml_umrddt.params.gpu_hca;
    const int scheme = mca_pml_umrddt.params.scheme;
    uint16_t schemes = MCA_PML_UMRDDT_BITS_PACK;

    if (NULL == mca_pml_umrddt.gpu) {
        return 0;
    }
    opal_umrddt_gpu_scratch_bound(mca_pml_umrddt.params.pack_scratch);
    if (!by_hca) {
        schemes &= (uint16_t) ~MCA_PML_UMRDDT_BIT_PACK_GDR;
    }
    return MCA_PML_UMRDDT_SCHEME_AUTO == scheme ? schemes : schemes & MCA_PML_UMRDDT_BIT(scheme);
}

/** Free the buffers, some of them registered with the HCA, some on GPUs. */
static void group_close(void)
{
    if (NULL != mca_pml_umrddt.hca) {
        mca_pml_umrddt_pack_buffers_close();
    }
    if (NULL != mca_pml_umrddt.gpu) {
        mca_pml_umrddt_pack_close();
    }
}

#define SCHEME(ID, CAN_RECV)                                                                       \
    .id = (ID), .bit = MCA_PML_UMRDDT_BIT(ID), .can_recv = (CAN_RECV), .start = start, .fin = fin, \
    .nack = nack, .recv_release = release, .reply = mca_pml_umrddt_pack_reply,                     \
    .replied = mca_pml_umrddt_pack_replied, .listen = mca_pml_umrddt_pack_listen,                  \
    .check = mca_pml_umrddt_check_pack

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_gdr = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_GDR, can_recv_gdr),
    .group = MCA_PML_UMRDDT_BITS_PACK,
    .open = group_open,
    .close = group_close,
    .reaches = mca_pml_umrddt_pack_reaches,
    .can_send = mca_pml_umrddt_pack_can_send,
    .offer = mca_pml_umrddt_pack_offer,
};
const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_staged = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_STAGED, can_recv_staged)};
const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_host = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_HOST, can_recv_host)};
