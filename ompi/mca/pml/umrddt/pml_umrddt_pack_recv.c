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
 * Messages that travel packed, in chunks: the receiver; see pml_umrddt_pack.h.
 */

#include "ompi_config.h"

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_pack.h"
#include "pml_umrddt_pairs.h"
#include "pml_umrddt_recv.h"

/** As the retry function of a wait: chunks are under way. */
static bool receiving(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_pack_end_t end;

    if (!mca_pml_umrddt_pack_step(recv->pack)) {
        return false;
    }
    end = mca_pml_umrddt_pack_end(recv->pack);
    recv->pack = NULL;
    if (MCA_PML_UMRDDT_PACK_WELL == end) {
        MCA_PML_UMRDDT_COUNT(recvs_pack);
        mca_pml_umrddt_recv_done(recv);
    } else if (MCA_PML_UMRDDT_PACK_NOT_PACKED == end) {
        mca_pml_umrddt_recv_by_host(recv, &mca_pml_umrddt.counters.fallback_sender);
    } else if (MCA_PML_UMRDDT_PACK_BROKEN == end) {
        mca_pml_umrddt_recv_by_host(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    } else {
        mca_pml_umrddt_recv_lost(recv);
    }
    return true;
}

/** The endpoint that the sender has named for the card as the wire. @return NULL: not so */
static mca_btl_umr_endpoint_t *wire(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_btl_umr_endpoint_t *endpoint;

    if (0 == recv->rts.address.qpn || NULL == mca_pml_umrddt.card || !recv->peer->has_card
        || (MCA_PML_UMRDDT_BIT_PACK_GDR != scheme && !mca_pml_umrddt.params.pack_card)
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(recv->peer, &endpoint)) {
        return NULL;
    }
    endpoint = mca_pml_umrddt.card->endpoint_at(endpoint, &recv->rts.address);
    recv->endpoint = endpoint; /* also if it refuses: the sender is to be told */
    if (OPAL_SUCCESS != mca_pml_umrddt.card->endpoint_connect(endpoint, &recv->rts.address)) {
        return NULL;
    }
    if (0 == recv->fin) {
        recv->fin = mca_pml_umrddt_fin_new(&mca_pml_umrddt.fins, recv);
    }
    return 0 == recv->fin ? NULL : endpoint;
}

/** The bytes of a message's chunks, on both sides. */
static uint64_t chunk_of(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_pack_chunk_of(recv->layout, recv->rts.pieces, recv->total);
}

/** Take buffers for a scheme. @return false: that is not possible */
static bool begin(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
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
        .tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, recv->rts.slot),
        .endpoint = wire(recv, scheme),
        .rts = &recv->rts,
    };

    if (NULL != job.endpoint && OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &recv->pack)) {
        return true;
    }
    job.endpoint = NULL;
    if (MCA_PML_UMRDDT_BIT_PACK_GDR != scheme
        && OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &recv->pack)) {
        return true;
    }
    recv->pack = NULL;
    return false;
}

/** Tell the sender. @return OMPI_SUCCESS, or the host PML's error */
static int tell(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_pml_umrddt_reply_t *reply = mca_pml_umrddt.scratch;

    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_PACK, reply);
    reply->total = recv->total;
    reply->chunk = chunk_of(recv);
    reply->what = scheme;
    reply->key_count = (uint32_t) mca_pml_umrddt_pack_places(recv->pack, reply->keys);
    reply->start = mca_pml_umrddt_pack_told(recv->pack);
    if (0 < reply->key_count) {
        reply->fin = recv->fin;
        mca_pml_umrddt.card->endpoint_address(recv->endpoint, &reply->address);
    } else if (NULL != recv->endpoint) {
        (void) mca_pml_umrddt.card->endpoint_refuses(recv->endpoint, &recv->rts.address,
                                                     &reply->address);
    }
    return mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, reply);
}

/** By the rules, or as the model says. @return 0: none */
static unsigned chosen(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_rts_t *rts)
{
    unsigned rule = mca_pml_umrddt_pack_chosen(rts, &recv->where, recv->total);

    return NULL == recv->pair ? rule : mca_pml_umrddt_pairs_pack(recv, rts, rule);
}

bool mca_pml_umrddt_pack_receive(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rts_t rts = recv->rts; /* with what is still to be tried */
    unsigned scheme;

    while (0 != (scheme = chosen(recv, &rts))) {
        if (NULL == recv->layout
            && OMPI_SUCCESS != mca_pml_umrddt_layout(recv->datatype, recv->count, &recv->layout)) {
            return false;
        }
        if (begin(recv, scheme)) {
            break;
        }
        rts.schemes &= (uint16_t) ~scheme;
    }
    if (0 == scheme) {
        return false;
    }
    recv->state = MCA_PML_UMRDDT_RECV_PACK;
    recv->scheme = (int) mca_pml_umrddt_scheme_of(scheme);
    /* the first receives are posted before the sender is told: its chunks find them */
    (void) mca_pml_umrddt_pack_step(recv->pack);
    if (OMPI_SUCCESS != tell(recv, scheme)) {
        mca_pml_umrddt_pack_release(recv);
        return false;
    }
    mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, receiving, recv);
    return true;
}
