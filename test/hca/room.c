/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Queue pairs that are closed to make room for those of another peer, and opened again, with
 * btl_umr_max_peers=1. This program sends the envelopes of messages itself. */

#include "harness.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 120, /* fewer than those in which a lane is closed */
    PIECES = 16,
    LENGTH = 64,
    ROOM = PIECES * LENGTH * 2,
    STAYS = 2048,   /* bytes of closed endpoints: ours, and the other one's */
    MOST_TRIES = 6, /* messages that do without */
    FIRST = 4,      /* the same after a failure, the first time (btl_umr_rebuilds) */
    IN_USE = 10,    /* more often than a queue pair is rebuilt by default */
    MANY = 100,     /* far fewer than after so many failures */
    CLOSES = 127    /* of a lane */
};

static double later;
static mca_btl_umr_endpoint_t *other;
static opal_proc_t *other_name;

void room_later(double seconds)
{
    later += seconds;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int (*next)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int rc = next(clock, time);

    if (0 == rc) {
        time->tv_sec += (time_t) later;
    }
    return rc;
}

static uint32_t generation_of(const mca_btl_umr_address_t *address)
{
    return ntohl(address->psn) >> 24;
}

static void one_message(int from, unsigned salt)
{
    bool send = from == harness.rank;
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    unsigned char area[ROOM];
    struct side side = {area, layout, 0, 4};

    memset(area, 0, ROOM);
    if (send) {
        layout_fill(area, layout, salt);
    }
    message(send, &side, layout->size, salt);
    if (!send) {
        layout_check(area, ROOM, area, layout, layout->size, salt, 0);
    }
    harness_barrier();
    OBJ_RELEASE(layout);
}

/** Open the other peer, which closes the queue pair to the rank's. */
static void close_for_other(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    int tries = 0;

    while (
        OPAL_SUCCESS != harness.hca->endpoint_get(other_name, &other)
        || harness.hca->endpoint_broken(other = harness.hca->endpoint_near(other, &harness, -1))) {
        CHECK(3 > tries++, "there is no room for another one");
        room_later(2);
    }
    CHECK(harness.hca->endpoint_broken(harness.endpoint), "it is open too");
    CHECK(1 == stats->endpoints_now, "%llu queue pairs", (unsigned long long) stats->endpoints_now);
}

/** What the receiver of an envelope answers. */
struct answer {
    bool connected, refuses;
    mca_btl_umr_address_t address;
};

/** A message whose sender and receiver do as pml/umrddt does. @return true: they are connected */
static bool envelope(int from)
{
    mca_btl_umr_address_t address = {0, 0};
    struct answer answer;

    memset(&answer, 0, sizeof(answer));
    if (from == harness.rank) {
        mca_btl_umr_endpoint_t *endpoint =
            harness.hca->endpoint_near(harness.endpoint, &harness, -1);

        harness.endpoint = endpoint;
        if (!harness.hca->endpoint_broken(endpoint)) {
            harness.hca->endpoint_address(endpoint, &address);
        }
        MPI_Send(&address, sizeof(address), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD);
        MPI_Recv(&answer, sizeof(answer), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (answer.connected) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(endpoint, &answer.address));
        } else if (answer.refuses) {
            harness.hca->endpoint_refused(endpoint, &answer.address);
        }
    } else {
        MPI_Recv(&address, sizeof(address), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (0 != address.qpn) {
            harness.endpoint = harness.hca->endpoint_at(harness.endpoint, &address);
            answer.connected =
                OPAL_SUCCESS == harness.hca->endpoint_connect(harness.endpoint, &address);
            if (answer.connected) {
                harness.hca->endpoint_address(harness.endpoint, &answer.address);
                CHECK(generation_of(&answer.address) == generation_of(&address), "generations");
            } else {
                answer.refuses =
                    harness.hca->endpoint_refuses(harness.endpoint, &address, &answer.address);
                /* pml/umrddt looks at the address only */
                CHECK(answer.refuses || 0 == answer.address.qpn, "an address, and no refusal");
            }
        }
        MPI_Send(&answer, sizeof(answer), MPI_BYTE, harness.peer, 1, MPI_COMM_WORLD);
    }
    return answer.connected;
}

/** One side, or both, closes; one sends the next message. Each is open again after few messages. It
 * is no failure. */
static void closed_in_turn(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t rebuilt = stats->endpoints_rebuilt, closed = stats->peers_closed, bytes = 0;

    other_name = scale_name(0);
    for (int round = 0; round < ROUNDS; ++round) {
        mca_btl_umr_endpoint_t *old = harness.endpoint;
        mca_btl_umr_address_t before, after;
        int tries = 0;

        one_message(round % 2, 1 + (unsigned) round);
        harness.hca->endpoint_address(harness.endpoint, &before);
        if (0 == round % 5 || round % 2 == harness.rank) {
            close_for_other();
        }
        harness_barrier();
        while (!envelope(round / 2 % 2)) {
            CHECK(MOST_TRIES > tries++, "round %d: not open again", round);
            room_later(2);
        }
        harness.hca->endpoint_address(harness.endpoint, &after);
        CHECK(before.psn != after.psn && 1 == stats->endpoints_now, "round %d: %llu queue pairs",
              round, (unsigned long long) stats->endpoints_now);
        /* an answer to a message with the old queue pair comes late */
        harness.hca->endpoint_refused(old, &after);
        CHECK(!harness.hca->endpoint_broken(harness.endpoint), "an old answer broke it");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(old));
        bytes = 10 == round ? stats->peer_bytes_now : bytes;
    }
    one_message(0, 1000);
    CHECK(rebuilt == stats->endpoints_rebuilt && 0 == stats->errors, "%llu rebuilt, %llu errors",
          (unsigned long long) stats->endpoints_rebuilt, (unsigned long long) stats->errors);
    CHECK(closed + ROUNDS <= stats->peers_closed, "%llu closed",
          (unsigned long long) stats->peers_closed);
    CHECK(bytes + ROUNDS * STAYS >= stats->peer_bytes_now, "%llu bytes, %llu before",
          (unsigned long long) stats->peer_bytes_now, (unsigned long long) bytes);
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** Nothing is closed while a FIN is expected, however long. */
static void open_while_used(void)
{
    other_name = scale_name(0);
    one_message(0, 1);
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    for (int i = 0; i < 5; ++i) {
        room_later(2);
        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->endpoint_get(other_name, &other));
    }
    harness.hca->fin_cancel(harness.endpoint);
    one_message(1, 2);
    /* used again, and then not for a second */
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->endpoint_get(other_name, &other));
    room_later(2);
    CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_get(other_name, &other));
    CHECK(harness.hca->endpoint_broken(harness.endpoint), "both are open");
    CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(harness.endpoint));
    harness_barrier();
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** The peer's queue pair is two generations ahead when it answers an envelope of the first: no
 * failure, so the next message opens a queue pair. */
static void old_answer(void)
{
    mca_btl_umr_endpoint_t *old = harness.endpoint;
    mca_btl_umr_address_t later_one, theirs;
    int tries = 0;

    other_name = scale_name(0);
    one_message(0, 1);
    close_for_other();
    harness_barrier();
    /* The sender has room, and the receiver has none: nothing is refused. */
    if (0 == harness.rank) {
        room_later(2);
    }
    CHECK(!envelope(0), "the receiver has room");
    while (!envelope(0)) {
        CHECK(MOST_TRIES > tries++, "not open again");
        room_later(2);
    }
    one_message(1, 2);
    harness.hca->endpoint_address(harness.endpoint, &theirs);
    later_one = theirs;
    later_one.psn = htonl(ntohl(theirs.psn) + (2u << 24));
    harness.hca->endpoint_refused(old, &later_one);
    CHECK(harness.hca->endpoint_broken(harness.endpoint), "it is of an older generation");
    harness.endpoint = harness.hca->endpoint_near(harness.endpoint, &harness, -1);
    CHECK(!harness.hca->endpoint_broken(harness.endpoint), "it counts as a failure");
    harness.hca->endpoint_address(harness.endpoint, &theirs);
    CHECK(generation_of(&theirs) == generation_of(&later_one), "generation %u",
          generation_of(&theirs));
    harness_barrier();
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** All queue pairs of an HCA are closed when it fails to map keys. It is used again, beside another
 * one. (Run with two devices.) */
static void closed_hca_fails(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    mca_btl_umr_endpoint_t *endpoints[2];
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    struct done done = {0, 0};
    unsigned char area[ROOM];

    other_name = scale_name(0);
    CHECK(2 == harness.hca->endpoints_beside(harness.endpoint, endpoints, 2), "one device");
    while (OPAL_SUCCESS != harness.hca->endpoint_get(other_name, &other)) {
        room_later(2);
    }
    CHECK(harness.hca->endpoint_broken(endpoints[1]), "it is open");
    failure_break_mappings(); /* of the HCA that came up last */
    CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register_at(endpoints[1], MCA_BTL_UMR_LOCAL, area,
                                                           layout, layout->size, &memory));
    CHECK_RC(OPAL_SUCCESS, harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, area, layout, memory, 0, 0,
                                                   layout->size, 1, harness_done, &done, &keyset));
    WAIT_UNTIL(0 < done.calls);
    CHECK(OPAL_ERROR == done.status, "status %d", done.status);
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    for (int tries = 0; 0 == harness.hca->stats()->maps_rebuilt; ++tries) {
        CHECK(MOST_TRIES + 2 > tries, "it maps no keys");
        room_later(2);
        (void) harness.hca->endpoint_near(harness.endpoint, area, -1);
    }
    CHECK(2 == harness.hca->stats()->endpoints_now, "%llu queue pairs",
          (unsigned long long) harness.hca->stats()->endpoints_now);
    OBJ_RELEASE(layout);
    harness_barrier();
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** Open the endpoint's next one, for which the other peer makes room. */
static bool opens(mca_btl_umr_endpoint_t **endpoint)
{
    for (int tries = 0; 3 > tries; ++tries) {
        room_later(2);
        *endpoint = harness.hca->endpoint_near(*endpoint, &harness, -1);
        if (!harness.hca->endpoint_broken(*endpoint)) {
            return true;
        }
    }
    return false;
}

/** Half of the generations are for failures: then the queue pair stays. */
static void closed_often(void)
{
    mca_btl_umr_address_t address;

    other_name = scale_name(0);
    close_for_other();
    for (uint32_t generation = 1;; ++generation) {
        CHECK(opens(&harness.endpoint), "generation %u: there is no room", generation);
        harness.hca->endpoint_address(harness.endpoint, &address);
        CHECK(generation == generation_of(&address), "generation %u", generation_of(&address));
        if (!opens(&other)) {
            CHECK(CLOSES == generation, "closed %u times", generation);
            break;
        }
    }
    CHECK(!harness.hca->endpoint_broken(harness.endpoint), "it is closed");
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    harness.hca->fin_cancel(harness.endpoint);
    harness_barrier();
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** One side closes its queue pair, and the other one's expects a FIN: it breaks, and is replaced
 * after few messages. This is no failure, however often it happens. */
static void followed_in_use(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();

    other_name = scale_name(0);
    for (int round = 0; round < IN_USE; ++round) {
        mca_btl_umr_endpoint_t *old = harness.endpoint;
        int from = round % 2, tries = 0;

        one_message(from, 1 + (unsigned) round);
        if (from == harness.rank) {
            close_for_other();
        } else {
            CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(old));
        }
        harness_barrier();
        while (!envelope(from)) {
            CHECK(MANY > tries++, "round %d: not open again", round);
            room_later(2);
            harness_progress_for(0.02); /* the broken one's last completions and events */
        }
        CHECK(from == harness.rank || harness.hca->endpoint_broken(old),
              "round %d: it was not in use", round);
        CHECK(1 == stats->endpoints_now, "round %d: %llu queue pairs", round,
              (unsigned long long) stats->endpoints_now);
    }
    one_message(0, 1000);
    CHECK(0 == stats->errors, "%llu errors", (unsigned long long) stats->errors);
    harness_disconnect();
    free(other_name);
    harness_connect();
}

/** A broken queue pair makes room, too. It is replaced when its back-off has passed, and not
 * earlier. */
static void broken_makes_room(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t closed = stats->peers_closed;
    mca_btl_umr_endpoint_t *old = harness.endpoint;
    int lacked = 0, passes = 0;

    other_name = scale_name(0);
    one_message(0, 1);
    harness.hca->endpoint_break(old);
    while (OPAL_SUCCESS != harness.hca->endpoint_get(other_name, &other)) {
        CHECK(10000 > ++passes, "there is no room for another one");
        if (0 == passes % 100) {
            room_later(2);
        }
        harness_progress(); /* its last completions and events */
    }
    CHECK(1 == stats->endpoints_now, "%llu queue pairs", (unsigned long long) stats->endpoints_now);
    CHECK(closed + 1 == stats->peers_closed, "%llu closed",
          (unsigned long long) stats->peers_closed);
    harness_barrier();
    while (!envelope(0)) {
        CHECK(MANY > lacked++, "not replaced");
        room_later(2);
        harness_progress_for(0.01);
    }
    CHECK(FIRST - 1 <= lacked, "replaced after %d messages", lacked);
    CHECK(old != harness.endpoint && harness.hca->endpoint_broken(old), "it is not broken");
    CHECK(1 == stats->endpoints_now, "%llu queue pairs", (unsigned long long) stats->endpoints_now);
    CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(old));
    one_message(1, 2);
    one_message(0, 3);
    harness_disconnect();
    free(other_name);
    harness_connect();
}

const struct test room_tests[] = {
    {"closed_in_turn", closed_in_turn},
    {"open_while_used", open_while_used},
    {"old_answer", old_answer},
    {"closed_often", closed_often},
    {"followed_in_use", followed_in_use},
    {"broken_makes_room", broken_makes_room},
    {"closed_hca_fails", closed_hca_fails},
    {NULL, NULL},
};
