/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Sets of keys that senders remember: a receiver and a sender that exchange messages in random
 * order, on few places, where any message may fail and the sender may be out of memory. Whatever a
 * reference brings back must be the keys that the receiver meant.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/check.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"

/* The allocations of calloc and malloc, while they are counted. */
static bool counting;
static size_t given;

/* The next malloc of the component under test fails. */
static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    if (no_memory) {
        no_memory = false;
        return NULL;
    }
    given += counting ? size : 0;
    return __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    given += counting ? count * size : 0;
    return __real_calloc(count, size);
}

enum {
    KEYSETS = 12,
    KEYS = MCA_PML_UMRDDT_SET_KEYS + 1,
    FLIGHTS = 4
};

/* A pending message: what the receiver sent for it. */
typedef struct flight_t {
    int keyset; /* -1: none */
    bool placed;
    uint32_t slot;
} flight_t;

static mca_btl_umr_keyset_t keysets[KEYSETS];
static mca_btl_umr_key_t keys[KEYSETS][KEYS];
static uint64_t ids;
static mca_pml_umrddt_peer_t receiver, sender;

static void keyset_map(int i, unsigned *seed)
{
    keysets[i].id = ++ids;
    keysets[i].count = 1 + (size_t) rand_r(seed) % (size_t) KEYS;
    keysets[i].start = 0;
    keysets[i].end = 100 * keysets[i].count;
    keysets[i].keys = keys[i];
    for (size_t k = 0; k < keysets[i].count; ++k) {
        keys[i][k].rkey = (uint32_t) (ids * 1000 + k);
        keys[i][k].length = 100;
    }
}

static void reply_of(const mca_btl_umr_keyset_t *keyset, uint64_t seq,
                     mca_pml_umrddt_reply_t *reply)
{
    memset(reply, 0, sizeof(*reply));
    reply->magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY);
    reply->seq = seq;
    reply->request_id = (uint32_t) seq;
    reply->fin = (uint32_t) seq + 1;
    reply->reply_kind = MCA_PML_UMRDDT_REPLY_CTS;
    reply->total = keyset->end + seq % 7;
    reply->chunk = seq;
    reply->end = keyset->end;
    reply->key_count = (uint32_t) keyset->count;
    for (size_t k = 0; k < keyset->count; ++k) {
        reply->keys[k].length = (uint32_t) keyset->keys[k].length;
        reply->keys[k].rkey = keyset->keys[k].rkey;
    }
}

static size_t bytes_of(const mca_pml_umrddt_reply_t *reply)
{
    return sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]);
}

/* The receiver names a keyset and the sender makes of it what it can. @return false: it can not */
static bool exchange(flight_t *flight, int i, uint64_t seq, bool starve)
{
    static mca_pml_umrddt_reply_t *wanted, *got;
    uint32_t slots = mca_pml_umrddt.params.key_sets;
    mca_pml_umrddt_naming_t naming;

    if (NULL == wanted) {
        wanted = calloc(1, sizeof(*wanted) + KEYS * sizeof(wanted->keys[0]));
        got = calloc(1, sizeof(*got) + KEYS * sizeof(got->keys[0]));
    }
    flight->keyset = i;
    naming = mca_pml_umrddt_set_name(&receiver, slots, &keysets[i], &flight->slot);
    flight->placed = MCA_PML_UMRDDT_NAME_SEND != naming;
    CHECK(!flight->placed || flight->slot < slots);
    reply_of(&keysets[i], seq, wanted);
    if (MCA_PML_UMRDDT_NAME_SLOT == naming) {
        mca_pml_umrddt_cts_cached_t cached_cts = {.seq = seq,
                                                  .request_id = (uint32_t) seq,
                                                  .fin = (uint32_t) seq + 1,
                                                  .set = keysets[i].id,
                                                  .total = wanted->total,
                                                  .chunk = seq,
                                                  .slot = flight->slot};

        if (!mca_pml_umrddt_set_lookup(&sender, &cached_cts, got)) {
            return false;
        }
        got->set = 0;
        got->slot = 0;
        CHECK(bytes_of(wanted) == bytes_of(got) && 0 == memcmp(wanted, got, bytes_of(wanted)));
        return true;
    }
    CHECK(MCA_PML_UMRDDT_NAME_SEND == naming || MCA_PML_UMRDDT_SET_KEYS >= keysets[i].count);
    if (MCA_PML_UMRDDT_NAME_STORE == naming) {
        wanted->set = keysets[i].id;
        wanted->slot = flight->slot;
    }
    no_memory = starve;
    mca_pml_umrddt_set_store(&sender, wanted);
    no_memory = false;
    return true;
}

static void at_random(unsigned slots, bool starve)
{
    flight_t flights[FLIGHTS];
    unsigned long from_cache = 0, lost = 0;
    unsigned seed = slots;

    mca_pml_umrddt.params.key_sets = slots;
    memset(&mca_pml_umrddt.counters, 0, sizeof(mca_pml_umrddt.counters));
    for (int i = 0; i < KEYSETS; ++i) {
        keyset_map(i, &seed);
    }
    for (int f = 0; f < FLIGHTS; ++f) {
        flights[f].keyset = -1;
    }
    for (uint64_t seq = 1; seq < 20000; ++seq) {
        flight_t *flight = &flights[rand_r(&seed) % FLIGHTS];
        int i = rand_r(&seed) % KEYSETS;

        if (0 <= flight->keyset) {
            /* it is complete; one in sixteen fails, and its keys are mapped again */
            bool well = 0 != rand_r(&seed) % 16;

            if (flight->placed) {
                mca_pml_umrddt_slot_end(&receiver.sets_there, flight->slot, well);
            }
            if (!well) {
                keyset_map(flight->keyset, &seed);
            }
            flight->keyset = -1;
        }
        for (int f = 0; f < FLIGHTS; ++f) {
            i = flights[f].keyset == i ? -1 : i; /* one message at a time has a keyset */
        }
        if (0 > i) {
            continue;
        }
        if (!exchange(flight, i, seq, starve && 0 == rand_r(&seed) % 4)) {
            CHECK(starve && flight->placed);
            mca_pml_umrddt_slot_end(&receiver.sets_there, flight->slot, false);
            flight->keyset = -1;
            ++lost;
        }
    }
    from_cache = (unsigned long) mca_pml_umrddt.counters.rkey_sets_cached;
    printf("%u places: %lu found, %lu of them lost\n", slots, from_cache, lost);
    CHECK((0 < from_cache) == (0 < slots));
    CHECK((0 < lost) == (starve && 0 < slots));
    mca_pml_umrddt_sets_free(&receiver);
    mca_pml_umrddt_sets_free(&sender);
    memset(&receiver, 0, sizeof(receiver));
    memset(&sender, 0, sizeof(sender));
}

/* References that no honest peer sends: never anything but a refusal. */
static void hostile(void)
{
    static mca_pml_umrddt_cts_cached_t cached_cts;
    mca_pml_umrddt_reply_t *reply = calloc(1, sizeof(*reply) + KEYS * sizeof(reply->keys[0]));
    flight_t flight;
    unsigned seed = 1;

    mca_pml_umrddt.params.key_sets = 4;
    cached_cts.set = 1;
    CHECK(!mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply)); /* nothing was ever stored */
    do {
        keyset_map(0, &seed);
    } while (MCA_PML_UMRDDT_SET_KEYS < keysets[0].count);
    CHECK(exchange(&flight, 0, 1, false) && flight.placed);
    cached_cts.set = keysets[0].id;
    cached_cts.slot = flight.slot;
    CHECK(mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    cached_cts.set = keysets[0].id + 1;
    CHECK(!mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    cached_cts.set = 0;
    CHECK(!mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    cached_cts.set = keysets[0].id;
    for (cached_cts.slot = 0; cached_cts.slot < 6; ++cached_cts.slot) {
        CHECK((cached_cts.slot == flight.slot)
              == mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    }
    cached_cts.slot = UINT32_MAX;
    CHECK(!mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    /* a CTS that wants to be stored beyond the places, or with more keys than places have */
    reply_of(&keysets[0], 2, reply);
    reply->set = 77;
    reply->slot = 4;
    mca_pml_umrddt_set_store(&sender, reply);
    reply->slot = 1;
    reply->key_count = KEYS;
    mca_pml_umrddt_set_store(&sender, reply);
    cached_cts.set = 77;
    for (cached_cts.slot = 0; cached_cts.slot < 6; ++cached_cts.slot) {
        CHECK(!mca_pml_umrddt_set_lookup(&sender, &cached_cts, reply));
    }
    mca_pml_umrddt_sets_free(&receiver);
    mca_pml_umrddt_sets_free(&sender);
    free(reply);
}

/*
 * Memory per peer, in both directions and with full caches: the bytes requested from malloc. It is
 * the same for each of any number of peers, and with 31 KiB of the HCA at most 64 KiB.
 */
static void cost(unsigned count)
{
    mca_pml_umrddt_peer_t *peers = calloc(count, sizeof(*peers));
    mca_pml_umrddt_reply_t *reply = calloc(1, sizeof(*reply) + KEYS * sizeof(reply->keys[0]));
    uint64_t *bytes = &mca_pml_umrddt.counters.peer_bytes_now, before;

    mca_pml_umrddt.params.key_sets = 32; /* the default */
    CHECK(0 == *bytes);
    given = 0;
    counting = true;
    for (unsigned i = 0; i < count; ++i) {
        for (uint32_t slot = 0; slot < mca_pml_umrddt.params.key_sets; ++slot) {
            mca_btl_umr_keyset_t keyset = {.id = ++ids, .count = MCA_PML_UMRDDT_SET_KEYS};
            uint32_t named;

            reply->set = ++ids;
            reply->slot = slot;
            reply->key_count = MCA_PML_UMRDDT_SET_KEYS;
            mca_pml_umrddt_set_store(&peers[i], reply);
            CHECK(MCA_PML_UMRDDT_NAME_STORE
                  == mca_pml_umrddt_set_name(&peers[i], mca_pml_umrddt.params.key_sets, &keyset,
                                             &named));
            mca_pml_umrddt_slot_end(&peers[i].sets_there, named, true);
        }
        CHECK(given == *bytes);
    }
    counting = false;
    CHECK((64 - 31) * 1024 >= sizeof(*peers) + *bytes / count);
    printf("%u peers: %llu bytes each in sets\n", count, (unsigned long long) (*bytes / count));
    for (unsigned i = 0; i < count; ++i) {
        mca_pml_umrddt_sets_free(&peers[i]);
    }
    CHECK(0 == *bytes);

    /* few keys, and more in the same place, which need other memory */
    reply->slot = 0;
    reply->key_count = 4;
    mca_pml_umrddt_set_store(&peers[0], reply);
    before = *bytes;
    reply->key_count = 8;
    mca_pml_umrddt_set_store(&peers[0], reply);
    CHECK(before + 4 * sizeof(reply->keys[0]) == *bytes);
    mca_pml_umrddt_sets_free(&peers[0]);
    CHECK(0 == *bytes);
    free(reply);
    free(peers);
}

/* A violated invariant of a peer is reported by its name. */
static void invariants(void)
{
    mca_pml_umrddt_peer_t peer;
    unsigned seed = 5;
    uint32_t slot;
    uint64_t clock;

    memset(&peer, 0, sizeof(peer));
    mca_pml_umrddt.params.key_sets = 4;
    keyset_map(0, &seed);
    keysets[0].count = 1;
    CHECK(NULL == mca_pml_umrddt_sets_check(&peer));
    CHECK(MCA_PML_UMRDDT_NAME_STORE == mca_pml_umrddt_set_name(&peer, 4, &keysets[0], &slot));
    CHECK(NULL == mca_pml_umrddt_sets_check(&peer));
    clock = peer.sets_there.clock;
    peer.sets_there.clock = 0;
    CHECK(NULL != mca_pml_umrddt_sets_check(&peer)
          && 0 == strncmp("sets: a place", mca_pml_umrddt_sets_check(&peer), 13));
    peer.sets_there.clock = clock;
    mca_pml_umrddt_slot_end(&peer.sets_there, slot, true);
    CHECK(NULL == mca_pml_umrddt_sets_check(&peer));
    mca_pml_umrddt_sets_free(&peer);
}

int main(void)
{
    invariants();
    cost(2);
    cost(64);
    cost(1024);
    hostile();
    at_random(0, false);
    at_random(1, false);
    at_random(3, false);
    at_random(8, true);
    at_random(64, false);
    printf("%lu checks passed\n", checks);
    return 0;
}
