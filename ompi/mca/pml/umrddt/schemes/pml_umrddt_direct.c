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

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"

/** The receiver's record of a slot in a sender's layout cache. */
typedef struct mca_pml_umrddt_flat_slot_t {
    uint64_t layout; /**< its id; 0: empty or unknown */
    uint64_t stamp;  /**< time of the last use */
    uint32_t users;  /**< active messages that named it */
    bool there;      /**< the sender is known to have it */
} mca_pml_umrddt_flat_slot_t;

/** A slot in the sender's layout cache. */
typedef struct mca_pml_umrddt_flat_cached_t {
    uint64_t layout;             /**< the receiver's id */
    opal_iov_cache_layout_t *to; /**< the layout; or NULL */
} mca_pml_umrddt_flat_cached_t;

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_flat_there(const mca_pml_umrddt_peer_t *peer, uint32_t slots, uint64_t layout)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    for (uint32_t i = 0; i < peer->flat_count && i < slots; ++i) {
        if (layout == peer->flat_slots[i].layout) {
            return peer->flat_slots[i].there;
        }
    }
    return false;
}

mca_pml_umrddt_flat_naming_t mca_pml_umrddt_flat_name(mca_pml_umrddt_peer_t *peer, uint32_t slots,
                                                      uint64_t layout, bool keep, uint32_t *slot)
{
    mca_pml_umrddt_flat_slot_t *oldest = NULL;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 < slots && NULL == peer->flat_slots) {
        peer->flat_slots = calloc(slots, sizeof(*peer->flat_slots));
        peer->flat_count = NULL == peer->flat_slots ? 0 : slots;
        mca_pml_umrddt_peer_bytes((int64_t) (peer->flat_count * sizeof(*peer->flat_slots)));
    }
    for (uint32_t i = 0; i < peer->flat_count && i < slots; ++i) {
        mca_pml_umrddt_flat_slot_t *entry = &peer->flat_slots[i];

        if (layout == entry->layout) {
            if (!entry->there) {
                return MCA_PML_UMRDDT_FLAT_SEND; /* another active message sends it */
            }
            *slot = i;
            ++entry->users;
            entry->stamp = ++peer->flat_clock;
            return MCA_PML_UMRDDT_FLAT_SLOT;
        }
        if (0 == entry->users && (NULL == oldest || entry->stamp < oldest->stamp)) {
            oldest = entry;
        }
    }
    if (NULL == oldest || !keep) {
        return MCA_PML_UMRDDT_FLAT_SEND;
    }
    *slot = (uint32_t) (oldest - peer->flat_slots);
    oldest->layout = layout;
    oldest->stamp = ++peer->flat_clock;
    oldest->users = 1;
    oldest->there = false;
    return MCA_PML_UMRDDT_FLAT_STORE;
}

void mca_pml_umrddt_flat_leave(mca_pml_umrddt_peer_t *peer, uint32_t slot, bool well)
{
    mca_pml_umrddt_flat_slot_t *entry = &peer->flat_slots[slot];

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    --entry->users;
    if (!well) {
        /* Other messages that named it may still succeed, but it is not named again. */
        entry->layout = 0;
        entry->stamp = 0;
    }
    entry->there = 0 != entry->layout;
}

int mca_pml_umrddt_flat_emit(const mca_pml_umrddt_layout_frag_t *head, const void *flat,
                             size_t rest, size_t room, void *scratch, mca_pml_umrddt_emit_fn_t emit,
                             void *context, uint32_t *sent)
{
    mca_pml_umrddt_layout_frag_t *part = scratch;
    uint32_t length;

    *sent = 0;
    while (rest < head->flat_bytes - *sent) {
        int rc;

        length = (uint32_t) (room - sizeof(*part));
        length = length < head->flat_bytes - *sent ? length : head->flat_bytes - *sent;
        *part = *head;
        part->offset = *sent;
        memcpy(part->bytes, (const unsigned char *) flat + *sent, length);
        rc = emit(context, part, sizeof(*part) + length);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        *sent += length;
    }
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_direct_emit(const mca_pml_umrddt_cts_sgl_t *cts,
                               const mca_btl_umr_key_t *regions, const void *flat, void *scratch,
                               mca_pml_umrddt_emit_fn_t emit, void *context)
{
    mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = cts->seq,
        .request_id = cts->request_id,
        .flat_bytes = cts->flat_bytes,
        .layout = cts->layout,
    };
    mca_pml_umrddt_cts_sgl_t *last = scratch;
    size_t head = sizeof(*cts) + cts->region_count * sizeof(cts->regions[0]);
    uint32_t sent;
    int rc = mca_pml_umrddt_flat_emit(&part, flat, MCA_PML_UMRDDT_REPLY_ROOM - head,
                                      MCA_PML_UMRDDT_REPLY_ROOM, scratch, emit, context, &sent);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    *last = *cts;
    for (uint32_t i = 0; i < cts->region_count; ++i) {
        last->regions[i].addr = regions[i].addr;
        last->regions[i].length = regions[i].length;
        last->regions[i].rkey = regions[i].rkey;
        last->regions[i].reserved = 0;
    }
    if (sent < cts->flat_bytes) {
        memcpy((unsigned char *) last + head, (const unsigned char *) flat + sent,
               cts->flat_bytes - sent);
    }
    return emit(context, last, head + (cts->flat_bytes - sent));
}

/* ---------------------------------------------------------------------------------------------
 * The sender
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

int mca_pml_umrddt_flat_layout(uint32_t bytes, const unsigned char *tail, size_t length,
                               const mca_pml_umrddt_parts_t *parts,
                               opal_iov_cache_layout_t **layout)
{
    const unsigned char *flat = tail;
    unsigned char *whole = NULL;
    opal_iov_cache_form_t *form;
    int rc;

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
    size_t head, tail;
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
    if (NULL != parts && (parts->layout != cts->layout || parts->flat_bytes != cts->flat_bytes)) {
        return OMPI_ERR_BAD_PARAM;
    }
    tail = cts->flat_bytes - (NULL == parts ? 0 : parts->have);
    if (head + tail != length) {
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

    rc = 0 == cts->flat_bytes
             ? layout_lookup(peer, cts, &layout)
             : mca_pml_umrddt_flat_layout(cts->flat_bytes, (const unsigned char *) cts + head, tail,
                                          parts, &layout);
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
    mca_pml_umrddt_peer_bytes(-(int64_t) (peer->flat_count * sizeof(*peer->flat_slots)));
    free(peer->flats);
    free(peer->flat_slots);
    peer->flats = NULL;
    peer->flat_slots = NULL;
    peer->flat_count = 0;
}

const char *mca_pml_umrddt_flats_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    for (uint32_t i = 0; i < peer->flat_count; ++i) {
        if (peer->flat_slots[i].stamp > peer->flat_clock) {
            return "layouts of receivers: a place was used when it was last used";
        }
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
