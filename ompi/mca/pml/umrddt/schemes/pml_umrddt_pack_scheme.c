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
 * The packed schemes, from the offer to the last chunk; read pml_umrddt_pack.h first.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/**
 * Name the HCA in the envelope if it can be the wire of one of these schemes. Beside CUDA IPC only
 * if the envelope names it anyway, to avoid a needless queue pair.
 *
 * @return true if GPU memory may be registered with it
 */
static bool offer_hca(mca_pml_umrddt_send_t *send, uint16_t schemes)
{
    const bool gdr =
        0 != (MCA_PML_UMRDDT_BIT_PACK_GDR & schemes) && mca_pml_umrddt_gdr_by_hca(send->peer);
    const bool named = NULL != send->endpoint;
    opal_umrddt_gpu_memory_t memory = send->where.memory;

    if ((0 != (MCA_PML_UMRDDT_BIT_IPC & send->rts.schemes) && NULL == send->endpoint)
        || (!gdr
            && (0 == (schemes & ~MCA_PML_UMRDDT_BIT_PACK_GDR) || !mca_pml_umrddt.params.pack_hca))
        || (NULL == send->endpoint
            && (!mca_pml_umrddt_rdma_reaches(send->peer)
                || !mca_pml_umrddt_rdma_offer_endpoint(send)))) {
        return false;
    }
    if (!gdr || OPAL_UMRDDT_GPU_DEVICE != memory.kind || NULL == memory.ctx
        || NULL != memory.pool) {
        return gdr; /* staging memory is of another kind: found out when it is registered */
    }
    /* no real buffer: earlier refusals for the user's buffer do not apply */
    memory.buffer_id = UINT64_MAX;
    if (mca_pml_umrddt.hca->gpu_reachable(send->endpoint, &memory)) {
        return true;
    }
    if (!named && !mca_pml_umrddt.params.pack_hca) {
        /* the receiver would select the HCA, although the base PML may carry GPU memory */
        send->endpoint = NULL;
        memset(&send->rts.address, 0, sizeof(send->rts.address));
    }
    return false;
}

static bool reaches(const mca_pml_umrddt_peer_t *peer)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes) && !peer->self;
}

static mca_pml_umrddt_can_send_t can_send(const mca_pml_umrddt_comm_t *comm,
                                          const mca_pml_umrddt_peer_t *peer,
                                          const opal_umrddt_gpu_where_t *where, size_t size)
{
    if (mca_pml_umrddt_pack_takes(comm, where, size)) {
        return MCA_PML_UMRDDT_CAN_SEND;
    }
    return !opal_umrddt_gpu_on_gpu(where) && !where->mixed
                   && mca_pml_umrddt_pack_takes_to_gpu(comm, peer, size)
               ? MCA_PML_UMRDDT_CAN_SEND_TO_GPU
               : MCA_PML_UMRDDT_CAN_SEND_NOT;
}

/** Add the packed schemes to the envelope, and the HCA as the wire (send->endpoint). */
static void offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;
    uint16_t schemes;
    bool on_gpu = opal_umrddt_gpu_on_gpu(&send->where);
    bool if_gpu = !on_gpu && !mca_pml_umrddt_pack_forced(send->comm);

    if (if_gpu) {
        /* an HCA may also fail to reach the receiver's memory */
        if (send->where.mixed || !send->peer->has_gpu
            || (0 == rts->schemes
                && !mca_pml_umrddt_pack_takes_to_gpu(send->comm, send->peer, send->layout->size))) {
            return;
        }
    } else if (!mca_pml_umrddt_pack_takes(send->comm, &send->where, send->layout->size)) {
        return;
    }
    if (0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes)
        && __atomic_load_n(&send->peer->rings, __ATOMIC_ACQUIRE)
        && !mca_pml_umrddt_select_beats_copy(send->comm, send->peer, send->layout,
                                             MCA_PML_UMRDDT_BITS_PACK)) {
        return; /* the base PML is known to work, and packing is not faster */
    }
    schemes = MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes & send->comm->schemes;
    if (!offer_hca(send, schemes)
        && (NULL != send->endpoint || !mca_pml_umrddt_base_given_chunks(send->comm, send->peer))) {
        schemes &= (uint16_t) ~MCA_PML_UMRDDT_BIT_PACK_GDR;
    }
    rts->schemes |= schemes;
    if (0 != schemes) {
        rts->schemes |= on_gpu ? MCA_PML_UMRDDT_ON_GPU : if_gpu ? MCA_PML_UMRDDT_IF_GPU : 0;
    }
}

/** Retry function of a wait: chunks are in progress. */
static bool sending(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, send);
    bool by_hca = mca_pml_umrddt_pack_by_hca(held->pack);
    mca_pml_umrddt_pack_end_t end;

    if (!mca_pml_umrddt_pack_step(held->pack)) {
        return false;
    }
    send->written = held->pack->sent;
    end = mca_pml_umrddt_pack_end(held->pack);
    held->pack = NULL;
    switch (end) {
    case MCA_PML_UMRDDT_PACK_WELL:
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
        break;
    case MCA_PML_UMRDDT_PACK_STOPPED:
        /* the reply that stopped it is still in send->reply: FALLBACK or ACK */
        if (MCA_PML_UMRDDT_REPLY_FALLBACK == send->reply->reply_kind) {
            mca_pml_umrddt_send_by_base(send);
        } else {
            mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
        }
        break;
    case MCA_PML_UMRDDT_PACK_BROKEN:
        mca_pml_umrddt_send_fail(send, true);
        break;
    case MCA_PML_UMRDDT_PACK_NOT_PACKED:
        if (by_hca) {
            mca_pml_umrddt_send_fail(send, false);
            break;
        }
        /* the receiver has got the empty message, and answers FALLBACK */
        MCA_PML_UMRDDT_COUNT(failures);
        send->state = MCA_PML_UMRDDT_SEND_FAILED;
        mca_pml_umrddt_send_await(send);
        break;
    default:
        mca_pml_umrddt_send_finish(send, MPI_ERR_OTHER);
        break;
    }
    return true;
}

/** Set up the HCA as the wire. @return as the caller */
static int connect_hca(mca_pml_umrddt_send_t *send, mca_pml_umrddt_pack_job_t *job)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    job->granted = (uint32_t) reply->start;
    if (0 == reply->key_count) {
        if (0 != reply->address.qpn && NULL != send->endpoint) {
            mca_pml_umrddt.hca->endpoint_refused(send->endpoint, &reply->address);
        }
        return OMPI_SUCCESS;
    }
    job->endpoint = send->endpoint;
    job->fin = reply->fin;
    job->slots = reply->key_count;
    job->slot = reply->keys;
    return OPAL_SUCCESS == mca_pml_umrddt.hca->endpoint_connect(send->endpoint, &reply->address)
               ? OMPI_SUCCESS
               : OMPI_ERR_UNREACH;
}

static void count(uint32_t scheme)
{
    if (MCA_PML_UMRDDT_BIT_PACK_GDR == scheme) {
        MCA_PML_UMRDDT_COUNT(sends_pack_gdr);
    } else if (MCA_PML_UMRDDT_BIT_PACK_STAGED == scheme) {
        MCA_PML_UMRDDT_COUNT(sends_pack_staged);
    } else {
        MCA_PML_UMRDDT_COUNT(sends_pack_host);
    }
}

/**
 * The receiver has selected a packed scheme: send the whole message.
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM  a field of send->reply is invalid
 * @retval other               the scheme cannot begin; nothing was sent
 */
static int send_begin(mca_pml_umrddt_send_t *send, size_t length)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, send);
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint32_t scheme = reply->what;
    mca_pml_umrddt_pack_job_t job = {
        .buf = (void *) send->buf,
        .layout = send->layout,
        .where = &send->where,
        .in = false,
        .scheme = reply->what,
        .total = reply->total,
        .chunk = reply->chunk,
        .comm = send->comm,
        .peer = send->dst,
        .tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, send->request_id),
        .device = mca_pml_umrddt_base_given_chunks(send->comm, send->peer),
    };
    int rc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_pack_reply_valid(reply, length, send->rts.schemes, send->layout->size,
                                         NULL != send->endpoint)) {
        return OMPI_ERR_BAD_PARAM;
    }
    rc = connect_hca(send, &job);
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_pack_begin(&job, &held->pack);
    }
    if (OMPI_SUCCESS != rc) {
        held->pack = NULL;
        return OMPI_ERR_BAD_PARAM == rc ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    }
    send->state = MCA_PML_UMRDDT_SEND_BUSY;
    if (!mca_pml_umrddt_pack_all_granted(held->pack)) {
        rc = mca_pml_umrddt_send_listen(send);
        if (OMPI_SUCCESS != rc) {
            (void) mca_pml_umrddt_pack_end(held->pack);
            held->pack = NULL;
            return rc;
        }
    }
    count(scheme);
    mca_pml_umrddt_poll(&send->wait, sending, send);
    return OMPI_SUCCESS;
}

/** A CTS_PACK has arrived, or a CREDIT, which is invalid in this state. */
static void reply_came(mca_pml_umrddt_send_t *send, size_t length)
{
    int rc;

    if (MCA_PML_UMRDDT_REPLY_CTS_PACK != send->reply->reply_kind || 0 < send->position) {
        mca_pml_umrddt_send_malformed(send);
        return;
    }
    mca_pml_umrddt_send_landed(send, true);
    rc = send_begin(send, length);
    if (OMPI_ERR_BAD_PARAM == rc) {
        mca_pml_umrddt_send_report_invalid(send);
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    }
}

/** State BUSY, after a reply: post a receive for the next one while chunks lack credit. The wait
 * object of the message serves its chunks. If the receive is refused, the message is given up. */
static void listen_on(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, send);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_pack_all_granted(held->pack)
        && OMPI_SUCCESS != mca_pml_umrddt_send_listen(send)) {
        held->pack->not_packed = true; /* writes that were posted still arrive */
    }
}

/** State BUSY: a reply has arrived. If not @p valid, it is not a reply to this message. */
static void replied(mca_pml_umrddt_send_t *send, bool valid)
{
    mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, send);
    const mca_pml_umrddt_reply_t *reply = send->reply;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (valid && MCA_PML_UMRDDT_REPLY_CREDIT == reply->reply_kind
        && mca_pml_umrddt_pack_grant(held->pack, reply->start)) {
        listen_on(send);
        return;
    }
    if (valid
        && (MCA_PML_UMRDDT_REPLY_FALLBACK == reply->reply_kind
            || MCA_PML_UMRDDT_REPLY_ACK == reply->reply_kind)) {
        held->pack->hca.stopped = true;
        return;
    }
    mca_pml_umrddt_send_report_invalid(send);
    held->pack->not_packed = true; /* writes that were posted still arrive */
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

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
        mca_pml_umrddt_recv_end(recv, MPI_SUCCESS);
    } else if (MCA_PML_UMRDDT_PACK_NOT_PACKED == end) {
        mca_pml_umrddt_recv_by_base(recv, &mca_pml_umrddt.counters.fallback_sender);
    } else if (MCA_PML_UMRDDT_PACK_BROKEN == end) {
        mca_pml_umrddt_recv_by_base(recv, &mca_pml_umrddt.counters.fallback_endpoint);
    } else {
        mca_pml_umrddt_recv_end(recv, MPI_ERR_OTHER);
    }
    return true;
}

/** The endpoint for the HCA as the wire, if the sender offered it; NULL: use the base PML */
static mca_btl_umr_endpoint_t *wire(mca_pml_umrddt_recv_t *recv, unsigned scheme)
{
    mca_btl_umr_endpoint_t *endpoint;

    if (0 == recv->rts.address.qpn || NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || !(MCA_PML_UMRDDT_BIT_PACK_GDR == scheme ? mca_pml_umrddt.params.gpu_hca
                                                   : mca_pml_umrddt.params.pack_hca)
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(recv->peer, &endpoint)) {
        return NULL;
    }
    endpoint = mca_pml_umrddt.hca->endpoint_at(endpoint, &recv->rts.address);
    recv->endpoint = endpoint; /* also if it refuses: the reply to the sender reports that */
    if (OPAL_SUCCESS != mca_pml_umrddt.hca->endpoint_connect(endpoint, &recv->rts.address)) {
        return NULL;
    }
    if (0 == recv->fin) {
        recv->fin = umrddt_number_new(&mca_pml_umrddt.fins, recv);
    }
    return 0 == recv->fin ? NULL : endpoint;
}

/** Chunk size of a message, the same on both sides. */
static uint64_t chunk_of(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_pack_chunk_of(recv->layout, recv->rts.pieces, recv->total);
}

/** Allocate buffers for a scheme. @return false: not possible */
static bool recv_begin(mca_pml_umrddt_recv_t *recv, unsigned scheme)
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
        .device = mca_pml_umrddt_base_given_chunks(recv->comm, recv->peer),
        .endpoint = wire(recv, scheme),
        .rts = &recv->rts,
    };

    if (NULL != job.endpoint && OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &held->pack)) {
        return true;
    }
    job.endpoint = NULL;
    if ((MCA_PML_UMRDDT_BIT_PACK_GDR != scheme || job.device)
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
    mca_pml_umrddt_pack_report(held->pack, reply);
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

    if (!mca_pml_umrddt_recv_has_layout(recv) || !recv_begin(recv, bit)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    recv->state = MCA_PML_UMRDDT_RECV_CHUNKS;
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
    if (!by_hca && MCA_PML_UMRDDT_BASE_GPU_NONE == mca_pml_umrddt.base_gpu) {
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

/** Check one side of a message that is sent in chunks. */
static const char *check_chunks(const mca_pml_umrddt_pack_t *pack)
{
    unsigned in_flight = 0, copying = 0;

    MCA_PML_UMRDDT_HOLDS(0 < pack->depth && MCA_PML_UMRDDT_PACK_DEPTH >= pack->depth,
                         "chunks: there is a place");
    MCA_PML_UMRDDT_HOLDS(pack->next <= pack->job.total && pack->begun <= pack->chunks,
                         "chunks: no more are begun than the message has");
    for (unsigned i = 0; i < pack->depth; ++i) {
        const mca_pml_umrddt_chunk_t *chunk = &pack->chunk[i];

        in_flight += MCA_PML_UMRDDT_PHASE_IDLE == chunk->phase ? 0 : 1;
        copying += NULL == chunk->copy ? 0 : 1;
        MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_PHASE_IDLE == chunk->phase
                                 || (chunk->start < chunk->end && chunk->end <= pack->job.total),
                             "chunks: each is a part of its message");
    }
    MCA_PML_UMRDDT_HOLDS(in_flight == pack->in_flight, "chunks: those under way are counted");
    MCA_PML_UMRDDT_HOLDS(copying == pack->copying, "chunks: those that a GPU copies are counted");
    if (mca_pml_umrddt_pack_by_hca(pack)) {
        MCA_PML_UMRDDT_HOLDS(pack->hca.done <= pack->hca.granted,
                             "chunks: no more are written than credits were given");
        MCA_PML_UMRDDT_HOLDS(!pack->job.in || !pack->hca.reported
                                 || pack->hca.granted <= pack->begun,
                             "chunks: none is granted that has no place");
    }
    return NULL;
}

static const char *check(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);

    if (MCA_PML_UMRDDT_RECV_CHUNKS != recv->state) {
        return NULL;
    }
    MCA_PML_UMRDDT_HOLDS(NULL != held->pack, "receives: one that comes in chunks has them");
    return check_chunks(held->pack);
}

#define SCHEME(ID, CAN_RECV)                                                                       \
    .id = (ID), .bit = MCA_PML_UMRDDT_BIT(ID), .can_recv = (CAN_RECV), .start = start, .fin = fin, \
    .nack = nack, .recv_release = release, .reply = reply_came, .replied = replied,                \
    .listen = listen_on, .check = check

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_gdr = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_GDR, can_recv_gdr),
    .group = MCA_PML_UMRDDT_BITS_PACK,
    .open = group_open,
    .close = group_close,
    .reaches = reaches,
    .can_send = can_send,
    .offer = offer,
};
const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_staged = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_STAGED, can_recv_staged)};
const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_pack_host = {
    SCHEME(MCA_PML_UMRDDT_SCHEME_PACK_HOST, can_recv_host)};
