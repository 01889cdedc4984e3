/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Queue pairs that fail and are rebuilt: when, how often, by which side, and that later operations
 * are right. This program sends the envelopes of messages itself. */

#include "harness.h"

#include <arpa/inet.h>

#define FILLER 0x11

enum {
    PIECES = 64,
    LENGTH = 64,
    ROOM = PIECES * LENGTH * 2,
    FIRST = 4 /* messages that do without, the first time (btl_umr_rebuilds) */
};

static uint32_t generation_of(const mca_btl_umr_address_t *address)
{
    return ntohl(address->psn) >> 24;
}

/** A message from rank @p from to the other one. */
static void one_message(int from, unsigned salt)
{
    bool send = from == harness.rank;
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    unsigned char *area = malloc(ROOM);
    struct side side = {area, layout, 0, 4};

    memset(area, FILLER, ROOM);
    if (send) {
        layout_fill(area, layout, salt);
    }
    message(send, &side, layout->size, salt);
    if (!send) {
        layout_check(area, ROOM, area, layout, layout->size, salt, FILLER);
    }
    harness_barrier();
    OBJ_RELEASE(layout);
    free(area);
}

static void both_ways(unsigned salt)
{
    one_message(0, salt);
    one_message(1, salt + 1);
}

/* ------------------------------------------------------------------------------------------- *
 * The queue pair of mappings
 * ------------------------------------------------------------------------------------------- */

/** A keyset of one mkey, or NULL: the HCA has none now. Its mapping may fail. */
static mca_btl_umr_keyset_t *map_one(void *area, const opal_iov_cache_layout_t *layout,
                                     mca_btl_umr_memory_t *memory, struct done *done)
{
    mca_btl_umr_keyset_t *keyset = NULL;
    int rc;

    done->calls = done->status = 0;
    rc = harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, area, layout, memory, 0, 0, layout->size, 4,
                                 harness_done, done, &keyset);
    CHECK(OPAL_SUCCESS == rc || OPAL_ERROR == rc, "keyset_map returned %d", rc);
    return OPAL_SUCCESS == rc ? keyset : NULL;
}

/**
 * It fails, as often as allowed (btl_umr_rebuilds=2) and once more. Keys with a pending mapping at
 * that time are never mapped again, even if they are released later.
 */
static void maps_rebuilt(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(4, 64, 256);
    unsigned char *area = malloc(4096);
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    struct done done;

    both_ways(1);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    for (unsigned round = 0; round < 3; ++round) {
        mca_btl_umr_keyset_t *lost;
        struct done lost_done;
        uint32_t lost_key;
        uint64_t mkeys;
        unsigned lacked = 0;

        failure_break_mappings();
        lost = map_one(area, layout, memory, &lost_done);
        CHECK(NULL != lost, "it is known to have failed before anything was seen");
        lost_key = lost->keys[0].lkey;
        WAIT_UNTIL(0 < lost_done.calls);
        CHECK(OPAL_ERROR == lost_done.status && !lost->ready, "status %d", lost_done.status);
        while (NULL == (keyset = map_one(area, layout, memory, &done)) && lacked < 100) {
            ++lacked;
            harness_progress();
        }
        if (2 == round) {
            CHECK(NULL == keyset, "once more than was allowed");
            harness.hca->keyset_release(lost);
            break;
        }
        CHECK(NULL != keyset, "it is not made anew");
        CHECK((unsigned) FIRST << round == lacked + 1, "after %u messages", lacked);
        CHECK(round + 1 == stats->maps_rebuilt, "%llu", (unsigned long long) stats->maps_rebuilt);
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status && keyset->ready, "status %d", done.status);
        CHECK(keyset->keys[0].lkey >> 8 != lost_key >> 8, "a mapping that failed is in use");
        mkeys = stats->mkeys_now;
        harness.hca->keyset_release(lost);
        CHECK(mkeys == stats->mkeys_now + 1, "an mkey with an unknown mapping is kept");
        for (size_t i = 0; i < 16; ++i) {
            mca_btl_umr_keyset_t *other = map_one(area, layout, memory, &done);

            CHECK(NULL != other, "no key");
            WAIT_UNTIL(0 < done.calls);
            CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
            CHECK(other->keys[0].lkey >> 8 != lost_key >> 8, "a mapping that failed is in use");
            harness.hca->keyset_release(other);
        }
        harness.hca->keyset_release(keyset);
        harness_barrier();
        both_ways(10 + 2 * round); /* bytes through keys that are as new */
    }
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
    harness_disconnect();
    harness_connect();
    both_ways(30);
}

/** Keys that were ready at the failure stay valid, and are used and released after the rebuild. */
static void maps_outlived(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(4, 64, 256), *big;
    unsigned char *area = malloc(ROOM);
    mca_btl_umr_memory_t *memory, *other;
    uint64_t before = stats->maps_rebuilt;
    mca_btl_umr_keyset_t *keyset, *lost;
    bool send = 0 == harness.rank;
    mca_btl_umr_key_t *remote = NULL;
    struct done done = {0, 0};
    struct side side;
    size_t count = 0;

    big = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    memset(area, FILLER, ROOM);
    side = (struct side){area, big, 0, 4};
    if (send) {
        layout_fill(area, big, 7);
    }
    keyset = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, big->size, &memory);
    if (send) {
        remote = keys_receive(&count);
    } else {
        keys_send(keyset);
    }
    failure_break_mappings();
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &other));
    lost = map_one(area, layout, other, &done);
    WAIT_UNTIL(0 < done.calls);
    harness.hca->keyset_release(lost);
    while (before == stats->maps_rebuilt) {
        lost = map_one(area, layout, other, &done);
    }
    CHECK(NULL != lost, "it is made anew, and no key is to be had");
    WAIT_UNTIL(0 < done.calls);
    CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
    harness.hca->keyset_release(lost);
    harness.hca->memory_release(other);
    harness_barrier();
    if (send) {
        done = (struct done){0, 0};
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        free(remote);
    }
    harness_barrier();
    if (!send) {
        layout_check(area, ROOM, area, big, big->size, 7, FILLER);
    }
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    harness_barrier();
    both_ways(40);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(big);
    free(area);
}

/* ------------------------------------------------------------------------------------------- *
 * Queue pairs to peers
 * ------------------------------------------------------------------------------------------- */

/** As the sender of a message: the endpoint that it would use. */
static mca_btl_umr_endpoint_t *near(void)
{
    return harness.hca->endpoint_near(harness.endpoint, &harness, -1);
}

/** Messages are sent until there is a queue pair again. @return how many had to do without */
static unsigned revive(void)
{
    mca_btl_umr_endpoint_t *endpoint;
    unsigned lacked = 0;

    while (harness.hca->endpoint_broken(endpoint = near())) {
        ++lacked;
        CHECK(10000 > lacked, "it is not made anew");
        harness_progress_for(0.01);
    }
    CHECK(endpoint != harness.endpoint, "the broken one is as new");
    harness.endpoint = endpoint;
    return lacked;
}

/** The two halves of an envelope and its answer, from rank @p from; both are connected then. */
static void shake_hands(int from)
{
    mca_btl_umr_address_t mine, theirs;

    if (from == harness.rank) {
        harness.hca->endpoint_address(harness.endpoint, &mine);
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD);
        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(harness.endpoint, &theirs));
    } else {
        mca_btl_umr_endpoint_t *old = harness.endpoint;

        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        WAIT_UNTIL(OPAL_SUCCESS
                   == harness.hca->endpoint_connect(
                       harness.endpoint = harness.hca->endpoint_at(old, &theirs), &theirs));
        CHECK(!harness.hca->endpoint_refuses(harness.endpoint, &theirs, &mine), "it refuses");
        CHECK(old == harness.endpoint || harness.hca->endpoint_broken(old), "two that are good");
        harness.hca->endpoint_address(harness.endpoint, &mine);
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD);
    }
    CHECK(generation_of(&mine) == generation_of(&theirs), "of two generations");
    harness_barrier();
}

/**
 * One side breaks, and the other one learns it by the next envelope only. Puts of the old one end
 * with an error. A late envelope of the old one is refused, and its sender can see from the answer
 * that it is too old.
 */
static void followed(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t rebuilt = stats->endpoints_rebuilt, bytes = 0, endpoints;
    mca_btl_umr_address_t old_address, address;

    both_ways(1);
    endpoints = stats->endpoints_now;
    for (int round = 0; round < 4; ++round) {
        int from = round % 2;
        mca_btl_umr_endpoint_t *old = harness.endpoint;

        if (from == harness.rank) {
            unsigned lacked;

            harness.hca->endpoint_break(harness.endpoint);
            CHECK(harness.hca->endpoint_refuses(old, &old_address, &address), "it does not");
            lacked = revive();
            CHECK((FIRST << round) - 1 <= (int) lacked, "after %u messages", lacked);
        }
        harness_barrier();
        shake_hands(from);
        CHECK(rebuilt + (uint64_t) round + 1 == stats->endpoints_rebuilt, "%llu",
              (unsigned long long) stats->endpoints_rebuilt);
        CHECK(harness.hca->endpoint_broken(old), "the old one is good");
        CHECK(endpoints == stats->endpoints_now, "%llu queue pairs",
              (unsigned long long) stats->endpoints_now);
        harness.hca->endpoint_address(old, &old_address);
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(old));
        /* An envelope that was passed by others: our own old address will do for the peer's. */
        CHECK(harness.endpoint == harness.hca->endpoint_at(harness.endpoint, &old_address),
              "an old address leads elsewhere");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(harness.endpoint, &old_address));
        CHECK(harness.hca->endpoint_refuses(harness.endpoint, &old_address, &address),
              "an old address is taken");
        CHECK(generation_of(&old_address) + 1 == generation_of(&address), "of what generation");
        /* And the answer, where the message was of the old one. */
        harness.hca->endpoint_refused(old, &address);
        CHECK(!harness.hca->endpoint_broken(harness.endpoint), "the new one broke");
        both_ways(10 + 2 * (unsigned) round);
        /* The first time two queue pairs may need one more completion queue for a while. */
        CHECK(0 == round || bytes + 4096 > stats->peer_bytes_now, "%llu bytes, %llu before",
              (unsigned long long) stats->peer_bytes_now, (unsigned long long) bytes);
        bytes = stats->peer_bytes_now;
    }
}

/** Both break, and both make one: their envelopes cross. */
static void crossed(void)
{
    mca_btl_umr_address_t mine, theirs;

    both_ways(1);
    for (int round = 0; round < 2; ++round) {
        harness_barrier();
        harness.hca->endpoint_break(harness.endpoint);
        (void) revive();
        harness.hca->endpoint_address(harness.endpoint, &mine);
        MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 1, &theirs, sizeof(theirs),
                     MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(harness.endpoint == harness.hca->endpoint_at(harness.endpoint, &theirs),
              "another one");
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(harness.endpoint, &theirs));
        harness_barrier();
        both_ways(10 + 2 * (unsigned) round);
    }
}

/** One side's breaks twice, the other's once: the one behind draws level, at the other's word. */
static void drawn_level(void)
{
    mca_btl_umr_address_t mine, theirs;

    both_ways(1);
    for (int times = 0; times < 2 - harness.rank; ++times) {
        harness.hca->endpoint_break(harness.endpoint);
        (void) revive();
    }
    harness.hca->endpoint_address(harness.endpoint, &mine);
    if (1 == harness.rank) {
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        harness.hca->endpoint_refused(harness.endpoint, &theirs);
        CHECK(harness.hca->endpoint_broken(harness.endpoint), "it goes on, too old");
        (void) revive();
    } else {
        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(harness.endpoint == harness.hca->endpoint_at(harness.endpoint, &theirs), "another");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(harness.endpoint, &theirs));
        CHECK(harness.hca->endpoint_refuses(harness.endpoint, &theirs, &mine), "it does not");
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    }
    harness_barrier();
    shake_hands(1);
    both_ways(10);
}

/**
 * Operations that are pending at the failure end with an error, each once, however soon a new queue
 * pair is made; the new one does not affect them.
 */
static void in_flight(void)
{
    enum {
        PUTS = 40
    };
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    unsigned char *area = malloc(ROOM);
    struct side side = {area, layout, LENGTH, SIZE_MAX};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    bool send = 0 == harness.rank;
    struct done done[PUTS];

    memset(done, 0, sizeof(done));
    memset(area, FILLER, ROOM);
    keyset = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
    if (send) {
        mca_btl_umr_endpoint_t *old = harness.endpoint;
        mca_btl_umr_key_t *remote;
        int failed = 0;
        size_t count;

        remote = keys_receive(&count);
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->put(old, keyset, remote, count, NULL, harness_done, &done[i]));
        }
        harness.hca->endpoint_break(old);
        for (int i = 0; i < 10 * FIRST; ++i) {
            CHECK(old == near(), "another one before the flush of this one was seen");
        }
        (void) revive();
        for (size_t i = 0; i < PUTS; ++i) {
            /* They end before the new one is made: then nothing of the old one is left. */
            CHECK(1 == done[i].calls, "put %zu: called %d times", i, done[i].calls);
            failed += OPAL_SUCCESS != done[i].status;
        }
        CHECK(OPAL_ERR_UNREACH == done[PUTS - 1].status, "status %d", done[PUTS - 1].status);
        CHECK(0 < failed, "all went well");
        CHECK_RC(OPAL_ERR_UNREACH,
                 harness.hca->put(old, keyset, remote, count, NULL, harness_done, &done[0]));
        free(remote);
    } else {
        keys_send(keyset);
    }
    harness_barrier();
    shake_hands(0);
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    both_ways(50);
    OBJ_RELEASE(layout);
    free(area);
}

/** A peer that does not follow: each attempt is given up, and in the end there is no other. (Run
 * with btl_umr_rebuilds=2.) */
static void not_followed(void)
{
    mca_btl_umr_address_t old_address;

    both_ways(1);
    if (0 == harness.rank) {
        harness.hca->endpoint_address(harness.endpoint, &old_address);
        harness.hca->endpoint_break(harness.endpoint);
        for (int times = 0; times < 2; ++times) {
            (void) revive();
            harness.hca->endpoint_refused(harness.endpoint, &old_address);
            CHECK(harness.hca->endpoint_broken(harness.endpoint), "it waits for ever");
        }
        for (int i = 0; i < 1000; ++i) {
            CHECK(harness.hca->endpoint_broken(near()), "once more than was allowed");
        }
    }
    harness_barrier();
    harness_disconnect();
    harness_connect();
}

/** None is wanted (btl_umr_rebuilds=0): not here, and not for a peer that comes with one. */
static void never_rebuilt(void)
{
    mca_btl_umr_address_t address;

    both_ways(1);
    harness.hca->endpoint_address(harness.endpoint, &address);
    if (0 == harness.rank) {
        mca_btl_umr_endpoint_t *endpoint = harness.endpoint;

        address.psn = htonl(ntohl(address.psn) + (1u << 24));
        CHECK(endpoint == harness.hca->endpoint_at(endpoint, &address), "another one");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(endpoint, &address));
        CHECK(!harness.hca->endpoint_broken(endpoint), "it broke");
        CHECK(harness.hca->endpoint_refuses(endpoint, &address, &address), "it does not say so");
        harness.hca->endpoint_break(endpoint);
        for (int i = 0; i < 1000; ++i) {
            CHECK(harness.hca->endpoint_broken(near()), "another one");
        }
    }
    harness_barrier();
    harness_disconnect();
    harness_connect();
}

const struct test rebuild_tests[] = {
    {"maps_rebuilt", maps_rebuilt}, {"maps_outlived", maps_outlived}, {"followed", followed},
    {"crossed", crossed},           {"drawn_level", drawn_level},     {"under_way", in_flight},
    {"not_followed", not_followed}, {"never_rebuilt", never_rebuilt}, {NULL, NULL},
};
