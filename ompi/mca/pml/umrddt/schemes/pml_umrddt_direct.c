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
 * Messages without mkeys: wire format and layout caches. Read pml_umrddt_direct.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/** A slot in the sender's layout cache. */
typedef struct mca_pml_umrddt_flat_cached_t {
    uint64_t layout;             /**< the receiver's id */
    opal_iov_cache_layout_t *to; /**< the layout; or NULL */
} mca_pml_umrddt_flat_cached_t;

/* ---------------------------------------------------------------------------------------------
 * Layouts: the receiver
 * ------------------------------------------------------------------------------------------- */

int mca_pml_umrddt_flat_send(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *last,
                             size_t length, const mca_pml_umrddt_layout_frag_t *head,
                             const opal_iov_cache_form_t *form, size_t room)
{
    mca_pml_umrddt_layout_frag_t *part;
    unsigned char *flat;
    uint32_t more, sent = 0;
    int rc = OMPI_SUCCESS;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == head->flat_bytes) {
        return mca_pml_umrddt_control(comm, peer, tag, last, length, false);
    }
    part = malloc(room + head->flat_bytes);
    if (NULL == part) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    flat = (unsigned char *) part + room;
    (void) opal_iov_cache_form_flatten(form, flat, head->flat_bytes);
    for (; OMPI_SUCCESS == rc && room - length < head->flat_bytes - sent; sent += more) {
        more = (uint32_t) (room - sizeof(*part));
        more = more < head->flat_bytes - sent ? more : head->flat_bytes - sent;
        *part = *head;
        part->offset = sent;
        memcpy(part->bytes, flat + sent, more);
        rc = mca_pml_umrddt_control(comm, peer, tag, part, sizeof(*part) + more, false);
    }
    if (OMPI_SUCCESS == rc) {
        memcpy(part, last, length);
        memcpy((unsigned char *) part + length, flat + sent, head->flat_bytes - sent);
        rc = mca_pml_umrddt_control(comm, peer, tag, part, length + head->flat_bytes - sent, false);
    }
    free(part);
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Layouts: the sender
 * ------------------------------------------------------------------------------------------- */

int mca_pml_umrddt_direct_part(const mca_pml_umrddt_layout_frag_t *flat, size_t length, size_t most,
                               mca_pml_umrddt_parts_t **parts)
{
    mca_pml_umrddt_parts_t *mine = *parts;
    uint32_t have = NULL == mine ? 0 : mine->have;

    if (sizeof(*flat) >= length || 0 != flat->reserved || 0 == flat->layout || have != flat->offset
        || 0 == flat->flat_bytes || most < flat->flat_bytes
        || flat->flat_bytes - have < length - sizeof(*flat)
        || (NULL != mine
            && (mine->layout != flat->layout || mine->flat_bytes != flat->flat_bytes))) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (NULL == mine) {
        mine = malloc(sizeof(*mine) + flat->flat_bytes);
        if (NULL == mine) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        mine->layout = flat->layout;
        mine->flat_bytes = flat->flat_bytes;
        mine->have = 0;
        *parts = mine;
    }
    memcpy(mine->bytes + mine->have, flat->bytes, length - sizeof(*flat));
    mine->have += (uint32_t) (length - sizeof(*flat));
    return OMPI_SUCCESS;
}

/** Size of a cached layout, bytes. */
static size_t cached_bytes(const mca_pml_umrddt_flat_cached_t *cached)
{
    return sizeof(*cached->to) + opal_iov_cache_form_bytes(cached->to->form);
}

static void cached_drop(mca_pml_umrddt_flat_cached_t *cached)
{
    if (NULL != cached->to) {
        mca_pml_umrddt.counters.direct_bytes_now -= cached_bytes(cached);
        OBJ_RELEASE(cached->to);
        cached->to = NULL;
    }
}

/** Store a layout in its slot. Without memory the slot stays empty. */
static void keep(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_cts_sgl_t *cts,
                 opal_iov_cache_layout_t *to)
{
    mca_pml_umrddt_flat_cached_t *cached;

    if (NULL == peer->flats) {
        peer->flats = calloc(mca_pml_umrddt.params.direct_layouts, sizeof(*peer->flats));
        if (NULL == peer->flats) {
            return;
        }
        mca_pml_umrddt_peer_bytes(
            (int64_t) (mca_pml_umrddt.params.direct_layouts * sizeof(*peer->flats)));
    }
    cached = &peer->flats[cts->slot];
    cached_drop(cached);
    OBJ_RETAIN(to);
    cached->to = to;
    cached->layout = cts->layout;
    mca_pml_umrddt.counters.direct_bytes_now += cached_bytes(cached);
}

int mca_pml_umrddt_flat_layout(uint64_t id, uint32_t bytes, const unsigned char *tail,
                               size_t length, const mca_pml_umrddt_parts_t *parts,
                               opal_iov_cache_layout_t **layout)
{
    const unsigned char *flat = tail;
    unsigned char *whole = NULL;
    opal_iov_cache_form_t *form;
    int rc;

    if (bytes - (NULL == parts ? 0 : parts->have) != length
        || (NULL != parts && (parts->layout != id || parts->flat_bytes != bytes))) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (NULL != parts) {
        whole = malloc(bytes);
        if (NULL == whole) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        memcpy(whole, parts->bytes, parts->have);
        memcpy(whole + parts->have, tail, length);
        flat = whole;
    }
    rc = opal_iov_cache_form_unflatten(flat, bytes, &form);
    free(whole);
    if (OPAL_SUCCESS != rc) {
        return OPAL_ERR_OUT_OF_RESOURCE == rc ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERR_BAD_PARAM;
    }
    rc = opal_iov_cache_layout_of_form(form, layout);
    return OPAL_SUCCESS == rc ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/** Get the layout of a CTS from the cache slot that it names. */
static int layout_lookup(const mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_cts_sgl_t *cts,
                         opal_iov_cache_layout_t **to)
{
    const mca_pml_umrddt_flat_cached_t *cached;

    if (NULL == peer->flats) {
        return OMPI_ERR_NOT_FOUND;
    }
    cached = &peer->flats[cts->slot];
    if (NULL == cached->to || cached->layout != cts->layout) {
        return OMPI_ERR_NOT_FOUND;
    }
    OBJ_RETAIN(cached->to);
    *to = cached->to;
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_direct_read(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_cts_sgl_t *cts,
                               size_t length, uint64_t size, const mca_pml_umrddt_parts_t *parts,
                               mca_btl_umr_key_t *regions, opal_iov_cache_layout_t **to)
{
    const mca_pml_umrddt_region_t *region;
    opal_iov_cache_layout_t *layout;
    size_t head;
    int rc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (sizeof(*cts) >= length || 0 != (~MCA_PML_UMRDDT_IN_GPU & cts->what) || 0 == cts->layout
        || 0 == cts->total || size < cts->total || 1 > cts->region_count
        || MCA_PML_UMRDDT_MAX_REGIONS < cts->region_count
        || MCA_PML_UMRDDT_MAX_FLAT < cts->flat_bytes) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (MCA_PML_UMRDDT_NO_SLOT == cts->slot ? 0 == cts->flat_bytes
                                            : mca_pml_umrddt.params.direct_layouts <= cts->slot
                                                  || MCA_PML_UMRDDT_CACHED_FLAT < cts->flat_bytes) {
        return OMPI_ERR_BAD_PARAM;
    }
    head = sizeof(*cts) + cts->region_count * sizeof(cts->regions[0]);
    if (head > length || (0 == cts->flat_bytes && (head != length || NULL != parts))) {
        return OMPI_ERR_BAD_PARAM;
    }
    for (uint32_t i = 0; i < cts->region_count; ++i) {
        region = &cts->regions[i];
        if (0 != region->reserved || 0 == region->length) {
            return OMPI_ERR_BAD_PARAM;
        }
        regions[i] = (mca_btl_umr_key_t){
            .addr = region->addr, .length = region->length, .rkey = region->rkey};
    }

    rc = 0 == cts->flat_bytes ? layout_lookup(peer, cts, &layout)
                              : mca_pml_umrddt_flat_layout(cts->layout, cts->flat_bytes,
                                                           (const unsigned char *) cts + head,
                                                           length - head, parts, &layout);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (layout->size < cts->total) {
        OBJ_RELEASE(layout);
        return OMPI_ERR_BAD_PARAM;
    }
    if (0 < cts->flat_bytes && MCA_PML_UMRDDT_NO_SLOT != cts->slot) {
        keep(peer, cts, layout);
    }
    *to = layout;
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_flats_free(mca_pml_umrddt_peer_t *peer)
{
    if (NULL != peer->flats) {
        for (unsigned i = 0; i < mca_pml_umrddt.params.direct_layouts; ++i) {
            cached_drop(&peer->flats[i]);
        }
        mca_pml_umrddt_peer_bytes(
            -(int64_t) (mca_pml_umrddt.params.direct_layouts * sizeof(*peer->flats)));
    }
    free(peer->flats);
    peer->flats = NULL;
    mca_pml_umrddt_slots_free(&peer->flats_there);
}

const char *mca_pml_umrddt_flats_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    if (!mca_pml_umrddt_slots_valid(&peer->flats_there)) {
        return "layouts of receivers: a place was used when it was last used";
    }
    for (uint32_t i = 0; NULL != peer->flats && i < mca_pml_umrddt.params.direct_layouts; ++i) {
        if (NULL != peer->flats[i].to) {
            if (0 == peer->flats[i].layout) {
                return "layouts of receivers: one that is remembered has a name";
            }
            *bytes += cached_bytes(&peer->flats[i]);
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------
 * The scheme: the sender
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
        mca_pml_umrddt_send_fail(send, OPAL_ERR_TIMEOUT != status);
        return;
    }
    mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
}

/** A field of a CTS without mkeys is invalid. The receiver waits: send a NACK, so that it falls
 * back to the base PML. */
static void malformed(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_send_report_invalid(send);
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
 * The scheme: the receiver
 * ------------------------------------------------------------------------------------------- */

/** Bytes of the flattened layout to send with the CTS; 0 if the sender has cached it. */
static size_t flat_bytes(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_slot_there(&recv->peer->flats_there, recv->rts.flats, recv->layout->id)
               ? 0
               : opal_iov_cache_form_flatten(recv->layout->form, NULL, 0);
}

/** Send the CTS: the memory regions, and the layout unless the sender has cached it. */
static int cts(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS];
    size_t count =
        mca_pml_umrddt.hca->memory_regions(rdma->memory, regions, MCA_PML_UMRDDT_MAX_REGIONS);
    mca_pml_umrddt_cts_sgl_t *requested = mca_pml_umrddt.scratch;
    mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = recv->rts.seq,
        .request_id = recv->rts.request_id,
        .layout = recv->layout->id,
    };
    bool once = MCA_PML_UMRDDT_BITS_HCA
                    == (MCA_PML_UMRDDT_BITS_HCA & recv->rts.schemes & mca_pml_umrddt.schemes)
                && !mca_pml_umrddt.declines; /* the model may select this scheme again */
    size_t most = once ? MCA_PML_UMRDDT_CACHED_ONCE : MCA_PML_UMRDDT_CACHED_FLAT;
    mca_pml_umrddt_naming_t naming = MCA_PML_UMRDDT_NAME_SEND;
    size_t bytes = flat_bytes(recv);

    if (MCA_PML_UMRDDT_MAX_FLAT < bytes) {
        /* the sender had the layout cached when this scheme was selected */
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rdma->slot = MCA_PML_UMRDDT_NO_SLOT;
    if (most >= bytes) {
        naming = mca_pml_umrddt_slot_name(&recv->peer->flats_there, recv->rts.flats,
                                          recv->layout->id, true, &rdma->slot);
    }
    rdma->placed = MCA_PML_UMRDDT_NAME_SEND != naming;
    if (MCA_PML_UMRDDT_NAME_SLOT == naming) {
        MCA_PML_UMRDDT_COUNT(layouts_cached);
    } else {
        MCA_PML_UMRDDT_COUNT(layouts_sent);
        part.flat_bytes = (uint32_t) bytes;
    }
    *requested = (mca_pml_umrddt_cts_sgl_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_SGL),
        .seq = recv->rts.seq,
        .request_id = recv->rts.request_id,
        .fin = recv->fin,
        .total = recv->total,
        .buffer = (uintptr_t) recv->buf,
        .layout = recv->layout->id,
        .slot = rdma->slot,
        .flat_bytes = part.flat_bytes,
        .region_count = (uint32_t) count,
        .what = mca_pml_umrddt_recv_memory(recv),
    };
    for (size_t i = 0; i < count; ++i) {
        requested->regions[i] = (mca_pml_umrddt_region_t){
            .addr = regions[i].addr, .length = regions[i].length, .rkey = regions[i].rkey};
    }
    mca_pml_umrddt.hca->endpoint_address(recv->endpoint, &requested->address);
    return mca_pml_umrddt_flat_send(
        recv->comm, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, recv->rts.request_id), requested,
        sizeof(*requested) + count * sizeof(requested->regions[0]), &part, recv->layout->form,
        MCA_PML_UMRDDT_REPLY_ROOM);
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
    if (mca_pml_umrddt_rdma_fin(recv)) {
        mca_pml_umrddt_rdma_landed(recv);
    }
}

static const char *check(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    return mca_pml_umrddt_rdma_check(recv, NULL != rdma->memory);
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_direct = {
    .id = MCA_PML_UMRDDT_SCHEME_DIRECT,
    .bit = MCA_PML_UMRDDT_BIT_DIRECT,
    .can_recv = mca_pml_umrddt_rdma_can_recv,
    .start = start,
    .fin = fin,
    .nack = mca_pml_umrddt_rdma_nack,
    .recv_release = mca_pml_umrddt_rdma_release,
    .reply = reply_came,
    .send_release = send_release,
    .check = check,
};
