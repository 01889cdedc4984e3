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
 * The scheme umr: RDMA writes between mkeys of both sides, in rounds. See pml_umrddt_rdma.h first.
 */

/*
 *     sender    REPLY --CTS--> KEYS -> MAPPING -> PUT --(more)--> REPLY
 *     receiver  start -> KEYS -> MAPPING -> CREDIT --CTS--> FIN --(more)--> KEYS
 *
 * Keys of the LOCAL role are held only from a CTS until its writes complete. These depend on no
 * other process, so that the keys are always released. pml_umrddt_rdma.c has the receiver's states
 * from CREDIT on. A large message can be cut into stripes (pml_umrddt_stripe.h), whose records use
 * the same states.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** Data of a send by this scheme. */
typedef struct held_t {
    mca_btl_umr_keyset_t *keyset;
} held_t;

static bool map_local(void *owner);

static void put_done(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    uint64_t end = held->keyset->end;

    if (OPAL_SUCCESS != status) {
        mca_pml_umrddt.hca->keyset_release(held->keyset);
        held->keyset = NULL;
        mca_pml_umrddt_send_fail(send, OPAL_ERR_TIMEOUT != status);
        return;
    }
    mca_pml_umrddt_keyset_done(held->keyset);
    held->keyset = NULL;
    send->position = end;
    if (end < send->reply->end) {
        send->state = MCA_PML_UMRDDT_SEND_KEYS;
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_local,
                            send);
    } else if (end < send->total) {
        /* until here send->reply was needed for the range of the CTS */
        send->state = MCA_PML_UMRDDT_SEND_REPLY;
        mca_pml_umrddt_send_await(send);
    } else {
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
    }
}

/** The peer's keys for the bytes of the keyset, which may begin and end within keys of the CTS. */
static size_t remote_keys(mca_pml_umrddt_send_t *send)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t at = reply->start;
    size_t count = 0;

    if (OPAL_LIKELY(held->keyset->start == at && held->keyset->end == reply->end)) {
        for (; count < reply->key_count; ++count) {
            send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[count]);
        }
        return count;
    }
    for (uint32_t i = 0; i < reply->key_count && at < held->keyset->end; ++i) {
        uint64_t begin = at;
        uint64_t end = at + reply->keys[i].length;

        at = end;
        if (end <= held->keyset->start) {
            continue;
        }
        if (begin < held->keyset->start) {
            begin = held->keyset->start;
        }
        if (end > held->keyset->end) {
            end = held->keyset->end;
        }
        send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[i]);
        send->remote[count].addr += begin - (at - reply->keys[i].length);
        send->remote[count].length = end - begin;
        ++count;
    }
    return count;
}

/** The local keys are mapped, or (@p status) could not be: write. */
static inline void write_mapped(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    bool last = held->keyset->end == send->reply->end;

    if (OPAL_LIKELY(OPAL_SUCCESS == status)) {
        const size_t count = remote_keys(send);

        send->state = MCA_PML_UMRDDT_SEND_PUT;
        status = mca_pml_umrddt.hca->put(send->endpoint, held->keyset, send->remote, count,
                                         last ? &send->reply->fin : NULL, put_done, send);
    }
    if (OPAL_UNLIKELY(OPAL_SUCCESS != status)) {
        mca_pml_umrddt.hca->keyset_release(held->keyset);
        held->keyset = NULL;
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
    }
}

/** Chunk at whose multiples local keys end; 0: contiguous layout. */
static inline uint64_t local_chunk(const mca_pml_umrddt_send_t *send)
{
    return opal_iov_cache_layout_is_contiguous(send->layout) ? 0 : send->reply->chunk;
}

/** Write by cached local keys, in system memory. @return false: there are none */
static inline bool write_from_cache(mca_pml_umrddt_send_t *send)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);

    if (NULL != send->memory || OPAL_UNLIKELY(opal_umrddt_gpu_on_device(&send->where))) {
        return false;
    }
    held->keyset = mca_pml_umrddt.hca->keyset_lookup(
        send->endpoint, MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout, local_chunk(send),
        send->position, send->reply->end, mca_pml_umrddt.params.max_keys);
    if (OPAL_UNLIKELY(NULL == held->keyset)) {
        return false;
    }
    write_mapped(send, OPAL_SUCCESS);
    return true;
}

/** State KEYS: map as many local keys as are available for the range of the CTS. */
static bool map_local(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    int rc = OPAL_ERROR;

    if (write_from_cache(send)) {
        return true;
    }
    if (mca_pml_umrddt_rdma_has_memory(send)) {
        rc = mca_pml_umrddt.hca->keyset_map(MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout,
                                            send->memory, local_chunk(send), send->position,
                                            send->reply->end, mca_pml_umrddt.params.max_keys,
                                            write_mapped, send, &held->keyset);
    }
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
        return true;
    }
    send->state = MCA_PML_UMRDDT_SEND_MAPPING;
    if (held->keyset->ready) {
        write_mapped(send, OPAL_SUCCESS);
    }
    return true;
}

/** Check that the range of a CTS continues this message. The first CTS of a stripe sets its
 * start. */
static inline bool range_valid(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    if (OPAL_UNLIKELY(0 == send->total)) {
        send->position = reply->start;
    }
    return reply->start == send->position && reply->end > reply->start && reply->end <= reply->total
           && reply->total <= send->layout->size;
}

/** Validate a CTS field by field. A message that did not offer this scheme may have no endpoint. */
static bool keys_valid(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t sum = 0;

    if (0 == (MCA_PML_UMRDDT_BIT_UMR & send->rts.schemes) || 1 > reply->key_count
        || mca_pml_umrddt.params.max_keys < reply->key_count
        || sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) != length
        || !range_valid(send)) {
        return false;
    }
    for (uint32_t i = 0; i < reply->key_count; ++i) {
        if (0 == reply->keys[i].length) {
            return false;
        }
        sum += reply->keys[i].length;
    }
    return reply->end - reply->start == sum;
}

/** Execute a valid CTS. */
static void write_range(mca_pml_umrddt_send_t *send)
{
    if (0 == send->position) {
        MCA_PML_UMRDDT_COUNT(sends_umr);
    }
    send->total = send->reply->total;
    if (OPAL_SUCCESS
        != mca_pml_umrddt.hca->endpoint_connect(send->endpoint, &send->reply->address)) {
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    if (OPAL_LIKELY(opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL]))
        && OPAL_LIKELY(write_from_cache(send))) {
        return;
    }
    send->state = MCA_PML_UMRDDT_SEND_KEYS;
    if (!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL]) || !map_local(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_local,
                            send);
    }
}

/** Execute a CTS_CACHED: restore the CTS that it refers to. */
static void write_cached(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_cts_cached_t *requested =
        (const mca_pml_umrddt_cts_cached_t *) send->reply;
    const bool in_gpu = 0 != (MCA_PML_UMRDDT_IN_GPU & requested->what);

    if (OPAL_UNLIKELY(0 == (MCA_PML_UMRDDT_BIT_UMR & send->rts.schemes)
                      || !mca_pml_umrddt_set_lookup(send->peer, requested, send->reply))) {
        /* the NACK makes the receiver discard its record of the cache slot */
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    mca_pml_umrddt_send_landed(send, in_gpu);
    if (OPAL_LIKELY(range_valid(send))) {
        write_range(send); /* the keys were validated when they were stored */
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}

static void reply_came(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    if (OPAL_LIKELY(MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_CACHED) == reply->magic)) {
        if (OPAL_LIKELY(sizeof(mca_pml_umrddt_cts_cached_t) == length)) {
            write_cached(send);
        } else {
            mca_pml_umrddt_send_malformed(send);
        }
    } else if (keys_valid(send, length)) {
        mca_pml_umrddt_send_landed(send, 0 != (MCA_PML_UMRDDT_IN_GPU & reply->what));
        mca_pml_umrddt_set_store(send->peer, send->reply);
        write_range(send);
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** Send the CTS_CACHED of this round: the sender has the keys. */
static int send_cts_cached(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    mca_pml_umrddt_cts_cached_t cached_cts = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_CACHED),
        .seq = recv->rts.seq,
        .request_id = recv->rts.request_id,
        .fin = recv->fin,
        .set = rdma->keyset->id,
        .total = recv->total,
        .chunk = rdma->chunk,
        .slot = rdma->slot,
        .what = mca_pml_umrddt_recv_memory(recv),
    };

    return mca_pml_umrddt_control(
        recv->comm, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, cached_cts.request_id), &cached_cts,
        sizeof(cached_cts), false);
}

/** Send the CTS of this round. */
static int cts(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    mca_pml_umrddt_naming_t naming;
    const mca_btl_umr_keyset_t *keyset = rdma->keyset;
    size_t room =
        sizeof(mca_pml_umrddt_reply_t) + keyset->count * sizeof(mca_pml_umrddt_wire_key_t);
    mca_pml_umrddt_reply_t *reply = (mca_pml_umrddt_reply_t *) mca_pml_umrddt.scratch;

    if (keyset->count > mca_pml_umrddt.params.max_keys || mca_pml_umrddt.scratch_size < room) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    naming = mca_pml_umrddt_set_name(recv->peer, recv->rts.slots, keyset, &rdma->slot);
    rdma->placed = MCA_PML_UMRDDT_NAME_SEND != naming;
    if (MCA_PML_UMRDDT_NAME_SLOT == naming) {
        return send_cts_cached(recv);
    }
    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_CTS, reply);
    if (rdma->placed) {
        reply->set = keyset->id;
        reply->slot = rdma->slot;
    }
    reply->what = mca_pml_umrddt_recv_memory(recv);
    reply->total = recv->total;
    reply->start = keyset->start;
    reply->end = keyset->end;
    reply->chunk = rdma->chunk;
    reply->fin = recv->fin;
    reply->key_count = (uint32_t) keyset->count;
    mca_pml_umrddt.hca->endpoint_address(recv->endpoint, &reply->address);
    for (size_t i = 0; i < keyset->count; ++i) {
        reply->keys[i].addr = keyset->keys[i].addr;
        reply->keys[i].length = (uint32_t) keyset->keys[i].length;
        reply->keys[i].rkey = keyset->keys[i].rkey;
    }
    return mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, reply);
}

/** In another state than MAPPING, a NACK came before, and GPU memory is flushed for a fallback. */
static void keys_ready(void *context, int status)
{
    mca_pml_umrddt_recv_t *recv = context;

    if (MCA_PML_UMRDDT_RECV_MAPPING == recv->state && OPAL_SUCCESS == status) {
        mca_pml_umrddt_recv_request_credit(recv);
    } else if (MCA_PML_UMRDDT_RECV_MAPPING == recv->state) {
        mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_keys);
    }
}

/** Chunk at whose multiples rounds end; 0: contiguous layout, the sender may cut it anywhere. */
static inline uint64_t chunk_of(const mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    return opal_iov_cache_layout_is_contiguous(recv->layout) ? 0 : rdma->chunk;
}

/**
 * Look up cached keys for bytes recv->position to recv->total, in system memory.
 *
 * @return true: the rkey set is set, and the round needs no registration
 */
static inline bool from_cache(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (OPAL_UNLIKELY(opal_umrddt_gpu_on_device(&recv->where))
        || OPAL_UNLIKELY(!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE]))) {
        return false;
    }
    rdma->keyset = mca_pml_umrddt.hca->keyset_lookup(recv->endpoint, MCA_BTL_UMR_REMOTE, recv->buf,
                                                     recv->layout, chunk_of(recv), recv->position,
                                                     recv->total, mca_pml_umrddt.params.max_keys);
    return NULL != rdma->keyset;
}

/** State KEYS: map as many keys as are available for the next part of the buffer. */
static bool map_keys(void *owner)
{
    static mca_pml_umrddt_shortage_t shortage;
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    int rc;

    if (!mca_pml_umrddt_rdma_register(recv)) {
        mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_registration);
        return true;
    }
    rc = mca_pml_umrddt.hca->keyset_map(
        MCA_BTL_UMR_REMOTE, recv->buf, recv->layout, rdma->memory, chunk_of(recv), recv->position,
        recv->total, mca_pml_umrddt.params.max_keys, keys_ready, recv, &rdma->keyset);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return mca_pml_umrddt_rdma_starves(&shortage, recv, &counters->fallback_keys);
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_keys);
        return true;
    }
    shortage.lasted = 0;
    recv->state = MCA_PML_UMRDDT_RECV_MAPPING;
    if (rdma->keyset->ready) {
        keys_ready(recv, OPAL_SUCCESS);
    }
    return true;
}

/** Begin a round, also for a stripe: prepare keys for bytes recv->position to recv->total on
 * recv->endpoint. Uses the rkey set that it has or another one, and the registration if there is
 * one. */
static void next_round(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (OPAL_LIKELY(NULL != rdma->keyset) || (NULL == rdma->memory && from_cache(recv))) {
        recv->state = MCA_PML_UMRDDT_RECV_MAPPING;
        mca_pml_umrddt_recv_request_credit(recv);
        return;
    }
    recv->state = MCA_PML_UMRDDT_RECV_KEYS;
    if (!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE]) || !map_keys(recv)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE], &recv->wait, map_keys,
                            recv);
    }
}

/** Agree on the chunk size for this message; cached in the layout for the last pair of layouts.
 * Progress thread only. */
static uint64_t agreement(mca_pml_umrddt_recv_t *recv)
{
    uint64_t *memo = recv->layout->memo;

    if (memo[MCA_PML_UMRDDT_MEMO_AGREED_SIZE] != recv->total
        || memo[MCA_PML_UMRDDT_MEMO_AGREED_TO] != recv->rts.chunk) {
        opal_iov_cache_limits_t limits;

        mca_pml_umrddt.hca->key_limits(recv->layout, &limits);
        memo[MCA_PML_UMRDDT_MEMO_AGREED] = opal_iov_cache_agree(
            recv->layout, &limits, recv->total, recv->rts.chunk, mca_pml_umrddt.params.chunk_floor);
        memo[MCA_PML_UMRDDT_MEMO_AGREED_SIZE] = recv->total;
        memo[MCA_PML_UMRDDT_MEMO_AGREED_TO] = recv->rts.chunk;
    }
    return memo[MCA_PML_UMRDDT_MEMO_AGREED];
}

/** As mca_pml_umrddt_stripes_receive requires. */
static void stripe_init(mca_pml_umrddt_recv_t *parent, mca_pml_umrddt_recv_t *stripe)
{
    mca_pml_umrddt_rdma_recv_t *from = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, parent);
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, stripe);

    stripe->ops = &mca_pml_umrddt_scheme_umr;
    rdma->cts = cts;
    rdma->chunk = from->chunk;
    rdma->memory = from->memory;
    from->memory = NULL;
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    const bool whole = OPAL_LIKELY(0 == recv->rts.lanes[0].qpn);

    recv->scheme = MCA_PML_UMRDDT_SCHEME_UMR;
    if (OMPI_SUCCESS != mca_pml_umrddt_rdma_begin(recv, cts)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    rdma->chunk = agreement(recv);
    if (whole && OPAL_LIKELY(from_cache(recv))) {
        mca_pml_umrddt_recv_request_credit(recv);
        return OMPI_SUCCESS;
    }
    if (!mca_pml_umrddt_rdma_register(recv)) {
        return mca_pml_umrddt_rdma_refuse(recv, &counters->fallback_registration);
    }
    if (whole || opal_umrddt_gpu_on_device(&recv->where)
        || !mca_pml_umrddt_stripes_receive(recv, rdma->chunk, stripe_init, next_round)) {
        next_round(recv);
    }
    return OMPI_SUCCESS;
}

static void fin(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    if (!mca_pml_umrddt_rdma_fin(recv)) {
        return;
    }
    recv->position = rdma->keyset->end;
    mca_pml_umrddt_keyset_done(rdma->keyset);
    rdma->keyset = NULL;
    if (recv->position < recv->total) {
        next_round(recv);
    } else {
        mca_pml_umrddt_rdma_landed(recv);
    }
}

static const char *check(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_MAPPING != recv->state || NULL != rdma->keyset,
                         "receives: one whose keys are mapped has them");
    return mca_pml_umrddt_rdma_check(recv, NULL != rdma->keyset);
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_umr = {
    .id = MCA_PML_UMRDDT_SCHEME_UMR,
    .bit = MCA_PML_UMRDDT_BIT_UMR,
    .group = MCA_PML_UMRDDT_BITS_HCA,
    .open = mca_pml_umrddt_rdma_open,
    .any_system = true,
    .reaches = mca_pml_umrddt_rdma_reaches,
    .can_send = mca_pml_umrddt_rdma_can_send,
    .offer = mca_pml_umrddt_rdma_offer,
    .rts_valid = mca_pml_umrddt_stripes_valid,
    .peer_free = mca_pml_umrddt_flats_free,
    .peer_check = mca_pml_umrddt_flats_check,
    .cached = &mca_pml_umrddt.counters.direct_bytes_now,
    .can_recv = mca_pml_umrddt_umr_can_recv,
    .start = start,
    .fin = fin,
    .nack = mca_pml_umrddt_rdma_nack,
    .recv_release = mca_pml_umrddt_rdma_release,
    .reply = reply_came,
    .check = check,
};
