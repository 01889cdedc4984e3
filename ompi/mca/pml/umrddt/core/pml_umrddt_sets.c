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
 * The remote key cache; see pml_umrddt_sets.h.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"

/** The receiver's record of a cache slot at a sender. */
typedef struct mca_pml_umrddt_slot_t {
    uint64_t id;    /**< id of the keyset in it; 0: empty */
    uint64_t stamp; /**< time of its last use */
    bool there;     /**< the sender is known to have it */
    bool taken;     /**< a message in progress uses it */
} mca_pml_umrddt_slot_t;

/** Content of a cache slot at the sender: the part of a CTS that does not depend on the message. */
typedef struct mca_pml_umrddt_set_t {
    mca_pml_umrddt_reply_t *reply; /**< with its keys, or NULL */
    size_t room;                   /**< capacity in keys */
} mca_pml_umrddt_set_t;

/* 32 is the default of pml_umrddt_key_sets. */
_Static_assert(24 << 10 >= 32
                               * (sizeof(mca_pml_umrddt_slot_t) + sizeof(mca_pml_umrddt_set_t)
                                  + sizeof(mca_pml_umrddt_reply_t)
                                  + MCA_PML_UMRDDT_SET_KEYS * sizeof(mca_pml_umrddt_wire_key_t)),
               "what a peer costs, both ways");

static size_t reply_bytes(uint32_t keys)
{
    return sizeof(mca_pml_umrddt_reply_t) + keys * sizeof(mca_pml_umrddt_wire_key_t);
}

/** Allocate the table at first use. @return false: no memory */
static bool slots_make(mca_pml_umrddt_peer_t *peer, uint32_t count)
{
    if (NULL == peer->slots) {
        peer->slots = calloc(count, sizeof(*peer->slots));
        peer->slot_count = NULL == peer->slots ? 0 : count;
        mca_pml_umrddt_peer_bytes((int64_t) (peer->slot_count * sizeof(*peer->slots)));
    }
    return NULL != peer->slots;
}

mca_pml_umrddt_naming_t mca_pml_umrddt_set_name(mca_pml_umrddt_peer_t *peer, uint32_t slots,
                                                const mca_btl_umr_keyset_t *keyset, uint32_t *slot)
{
    mca_pml_umrddt_slot_t *oldest = NULL;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == keyset->id || 0 == slots || MCA_PML_UMRDDT_SET_KEYS < keyset->count
        || !slots_make(peer, slots)) {
        return MCA_PML_UMRDDT_NAME_KEYS;
    }
    for (uint32_t i = 0; i < peer->slot_count && i < slots; ++i) {
        mca_pml_umrddt_slot_t *entry = &peer->slots[i];

        if (keyset->id == entry->id) {
            if (entry->taken || !entry->there) {
                return MCA_PML_UMRDDT_NAME_KEYS;
            }
            oldest = entry;
            break;
        }
        if (!entry->taken && (NULL == oldest || entry->stamp < oldest->stamp)) {
            oldest = entry;
        }
    }
    if (NULL == oldest) {
        return MCA_PML_UMRDDT_NAME_KEYS;
    }
    *slot = (uint32_t) (oldest - peer->slots);
    oldest->stamp = ++peer->slot_clock;
    oldest->taken = true;
    if (keyset->id == oldest->id) {
        MCA_PML_UMRDDT_COUNT(rkey_sets_cached);
        return MCA_PML_UMRDDT_NAME_SLOT;
    }
    oldest->id = keyset->id;
    oldest->there = false;
    return MCA_PML_UMRDDT_NAME_STORE;
}

void mca_pml_umrddt_set_end(mca_pml_umrddt_peer_t *peer, uint32_t slot, bool well)
{
    mca_pml_umrddt_slot_t *entry = &peer->slots[slot];

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    entry->taken = false;
    entry->there = well;
    if (!well) {
        entry->id = 0;
        entry->stamp = 0;
    }
}

/** Empty a cache slot. */
static void set_empty(mca_pml_umrddt_set_t *set)
{
    if (NULL != set->reply) {
        mca_pml_umrddt_peer_bytes(-(int64_t) reply_bytes((uint32_t) set->room));
        free(set->reply);
        set->reply = NULL;
        set->room = 0;
    }
}

void mca_pml_umrddt_set_store(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_reply_t *reply)
{
    mca_pml_umrddt_set_t *set;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == reply->set || mca_pml_umrddt.params.key_sets <= reply->slot || 0 == reply->key_count
        || MCA_PML_UMRDDT_SET_KEYS < reply->key_count) {
        return;
    }
    if (NULL == peer->sets) {
        peer->sets = calloc(mca_pml_umrddt.params.key_sets, sizeof(*peer->sets));
        if (NULL == peer->sets) {
            return;
        }
        mca_pml_umrddt_peer_bytes((int64_t) (mca_pml_umrddt.params.key_sets * sizeof(*peer->sets)));
    }
    set = &peer->sets[reply->slot];
    if (set->room < reply->key_count) {
        set_empty(set);
        set->reply = malloc(reply_bytes(reply->key_count));
        if (NULL != set->reply) {
            set->room = reply->key_count;
            mca_pml_umrddt_peer_bytes((int64_t) reply_bytes(reply->key_count));
        }
    }
    if (NULL != set->reply) {
        memcpy(set->reply, reply, reply_bytes(reply->key_count));
    }
}

bool mca_pml_umrddt_set_lookup(const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_cts_cached_t *cached_cts,
                               mca_pml_umrddt_reply_t *reply)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* reply may be the same memory */
    const uint64_t seq = cached_cts->seq, total = cached_cts->total, chunk = cached_cts->chunk;
    const uint32_t request_id = cached_cts->request_id, fin = cached_cts->fin;
    const mca_pml_umrddt_reply_t *stored;

    if (0 == cached_cts->set || NULL == peer->sets
        || mca_pml_umrddt.params.key_sets <= cached_cts->slot) {
        return false;
    }
    stored = peer->sets[cached_cts->slot].reply;
    if (NULL == stored || cached_cts->set != stored->set) {
        return false;
    }
    *reply = *stored;
    reply->seq = seq;
    reply->request_id = request_id;
    reply->fin = fin;
    reply->total = total;
    reply->chunk = chunk;
    reply->keys[0] = stored->keys[0]; /* most sets have exactly one key */
    if (OPAL_UNLIKELY(1 < stored->key_count)) {
        memcpy(&reply->keys[1], &stored->keys[1], (stored->key_count - 1) * sizeof(reply->keys[0]));
    }
    return true;
}

void mca_pml_umrddt_sets_free(mca_pml_umrddt_peer_t *peer)
{
    if (NULL != peer->sets) {
        for (unsigned i = 0; i < mca_pml_umrddt.params.key_sets; ++i) {
            set_empty(&peer->sets[i]);
        }
        mca_pml_umrddt_peer_bytes(
            -(int64_t) (mca_pml_umrddt.params.key_sets * sizeof(*peer->sets)));
    }
    mca_pml_umrddt_peer_bytes(-(int64_t) (peer->slot_count * sizeof(*peer->slots)));
    free(peer->sets);
    free(peer->slots);
    peer->sets = NULL;
    peer->slots = NULL;
    peer->slot_count = 0;
}

const char *mca_pml_umrddt_sets_check(const mca_pml_umrddt_peer_t *peer)
{
    for (uint32_t i = 0; i < peer->slot_count; ++i) {
        const mca_pml_umrddt_slot_t *entry = &peer->slots[i];

        if (entry->stamp > peer->slot_clock || (entry->taken && 0 == entry->id)) {
            return "sets: a place that is taken, or used, is known to be so";
        }
    }
    for (uint32_t i = 0; NULL != peer->sets && i < mca_pml_umrddt.params.key_sets; ++i) {
        const mca_pml_umrddt_set_t *set = &peer->sets[i];

        if (NULL != set->reply
            && (MCA_PML_UMRDDT_SET_KEYS < set->room || set->room < set->reply->key_count
                || i != set->reply->slot || 0 == set->reply->set)) {
            return "sets: what is remembered of a CTS fits its place";
        }
    }
    return NULL;
}
