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
    uint64_t id;    /**< id of the item in it; 0: empty or unknown */
    uint64_t stamp; /**< time of its last use */
    uint32_t users; /**< messages in progress that use it */
    bool there;     /**< the sender is known to have it */
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

/** Allocate the table at first use. @return false: no memory, or the sender has no slots */
static __opal_attribute_noinline__ bool slots_make(mca_pml_umrddt_slots_t *slots, uint32_t count)
{
    slots->slots = 0 < count ? calloc(count, sizeof(*slots->slots)) : NULL;
    slots->count = NULL == slots->slots ? 0 : count;
    mca_pml_umrddt_peer_bytes((int64_t) (slots->count * sizeof(*slots->slots)));
    return NULL != slots->slots;
}

static inline mca_pml_umrddt_naming_t slot_name(mca_pml_umrddt_slots_t *slots, uint32_t count,
                                                uint64_t id, bool shared, uint32_t *slot)
{
    mca_pml_umrddt_slot_t *oldest = NULL;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(NULL == slots->slots) && !slots_make(slots, count)) {
        return MCA_PML_UMRDDT_NAME_SEND;
    }
    for (uint32_t i = 0; i < slots->count && i < count; ++i) {
        mca_pml_umrddt_slot_t *entry = &slots->slots[i];

        if (id == entry->id) {
            if (!entry->there || (!shared && 0 < entry->users)) {
                return MCA_PML_UMRDDT_NAME_SEND;
            }
            ++entry->users;
            entry->stamp = ++slots->clock;
            *slot = i;
            return MCA_PML_UMRDDT_NAME_SLOT;
        }
        if (0 == entry->users && (NULL == oldest || entry->stamp < oldest->stamp)) {
            oldest = entry;
        }
    }
    if (NULL == oldest) {
        return MCA_PML_UMRDDT_NAME_SEND;
    }
    oldest->id = id;
    oldest->stamp = ++slots->clock;
    oldest->users = 1;
    oldest->there = false;
    *slot = (uint32_t) (oldest - slots->slots);
    return MCA_PML_UMRDDT_NAME_STORE;
}

mca_pml_umrddt_naming_t mca_pml_umrddt_slot_name(mca_pml_umrddt_slots_t *slots, uint32_t count,
                                                 uint64_t id, bool shared, uint32_t *slot)
{
    return slot_name(slots, count, id, shared, slot);
}

bool mca_pml_umrddt_slot_there(const mca_pml_umrddt_slots_t *slots, uint32_t count, uint64_t id)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    for (uint32_t i = 0; i < slots->count && i < count; ++i) {
        if (id == slots->slots[i].id) {
            return slots->slots[i].there;
        }
    }
    return false;
}

void mca_pml_umrddt_slot_end(mca_pml_umrddt_slots_t *slots, uint32_t slot, bool well)
{
    mca_pml_umrddt_slot_t *entry = &slots->slots[slot];

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    --entry->users;
    if (!well) {
        /* other messages that use it may still succeed, but no further ones will */
        entry->id = 0;
        entry->stamp = 0;
    }
    entry->there = 0 != entry->id;
}

void mca_pml_umrddt_slots_free(mca_pml_umrddt_slots_t *slots)
{
    mca_pml_umrddt_peer_bytes(-(int64_t) (slots->count * sizeof(*slots->slots)));
    free(slots->slots);
    slots->slots = NULL;
    slots->count = 0;
}

bool mca_pml_umrddt_slots_valid(const mca_pml_umrddt_slots_t *slots)
{
    for (uint32_t i = 0; i < slots->count; ++i) {
        if (slots->slots[i].stamp > slots->clock) {
            return false;
        }
    }
    return true;
}

mca_pml_umrddt_naming_t mca_pml_umrddt_set_name(mca_pml_umrddt_peer_t *peer, uint32_t count,
                                                const mca_btl_umr_keyset_t *keyset, uint32_t *slot)
{
    mca_pml_umrddt_naming_t naming = MCA_PML_UMRDDT_NAME_SEND;

    if (OPAL_LIKELY(0 != keyset->id && MCA_PML_UMRDDT_SET_KEYS >= keyset->count)) {
        naming = slot_name(&peer->sets_there, count, keyset->id, false, slot);
    }
    if (OPAL_LIKELY(MCA_PML_UMRDDT_NAME_SLOT == naming)) {
        MCA_PML_UMRDDT_COUNT(rkey_sets_cached);
    }
    return naming;
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
    free(peer->sets);
    peer->sets = NULL;
    mca_pml_umrddt_slots_free(&peer->sets_there);
}

const char *mca_pml_umrddt_sets_check(const mca_pml_umrddt_peer_t *peer)
{
    if (!mca_pml_umrddt_slots_valid(&peer->sets_there)) {
        return "sets: a place was used when it was last used";
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
