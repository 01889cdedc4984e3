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
 * Replacement of failed queue pairs.
 *
 * A broken endpoint stays broken, and its users get errors for ever: a message begun with one queue
 * pair cannot be finished by another. Its replacement is another endpoint, of the next
 * *generation*, for the same pair of HCAs. Later messages use the last endpoint of the lane. Their
 * envelopes carry its address, which contains the generation, so both sides agree on a new pair of
 * queue pairs without further messages.
 *
 *     local, at g, broken                      remote, at g, broken or not
 *       messages by the base PML; after some
 *       of them (revive): g + 1
 *       RTS, address of g + 1        ----->    later than g (follow): break g here too, and
 *                                              create g + 1 if g is drained; connected
 *       connected                    <-----    CTS, address of g + 1
 *
 * An endpoint connects only to an address of its own generation. A receiver that gets another
 * generation answers with its own (refuses). The sender then follows, or gives its endpoint up
 * (refused):
 *
 *     sender's generation | because, remote                       | then, local
 *     the same            | it is broken                          | broken too
 *     later               | g is not drained, or no queue pair is | given up if not connected; the
 *                         | available                             | next one is later still
 *     earlier             | old envelope, or both sides have made | broken; the next one gets that
 *                         | a new endpoint                        | generation
 *
 * So generations only grow on both sides. MPI may match envelopes in any order; those of an old
 * generation go by the base PML. No write of an old queue pair uses a new receive. A receiver sends
 * keys only for a connected endpoint. Writes through an endpoint that is broken now (ERR) cannot
 * reach these keys any more. No other endpoint uses them, since a put uses the endpoint of its own
 * CTS. The old queue pair is destroyed when it is flushed and polled completely (drained), after
 * the new one is created, so that their numbers differ.
 *
 * An endpoint that was closed to make room (btl_umr_room.c) is replaced in the same way, but by the
 * next message. Where nothing is under way, the other side closes its end instead of breaking it.
 * Where something is, both sides wait for some messages, as after a failure, but neither counts
 * one.
 *
 * The queue pair for mappings has no remote side: it is destroyed and created again, see
 * mca_btl_umr_keysets_recover.
 */

#include "opal_config.h"

#include <arpa/inet.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_rebuild.h"
#include "opal/mca/btl/umr/btl_umr_room.h"

/** True if the HCA maps keys, or is the only one. One that failed may do so again after this. */
static bool maps(mca_btl_umr_hca_t *hca)
{
    return !hca->failed || 1 == mca_btl_umr.hca_count || mca_btl_umr_keysets_recover(hca);
}

/**
 * Replace the broken endpoint of a lane by one of this generation, if the peer may have queue
 * pairs.
 *
 * @return false: not now
 */
static bool replace(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane, uint32_t generation)
{
    mca_btl_umr_endpoint_t *old = lane->endpoint, *endpoint;

    if (lane->hca->lost || lane->making || !mca_btl_umr_endpoint_drained(old)
        || MCA_BTL_UMR_GENERATION_MAX < generation
        || (!old->closed && 0 == mca_btl_umr_params.rebuilds) || !maps(lane->hca)
        || !mca_btl_umr_room_enter(peer)) {
        return false;
    }
    endpoint = mca_btl_umr_endpoint_new(peer, lane, generation);
    if (NULL == endpoint) {
        if (!old->closed) {
            (void) mca_btl_umr_rebuild_failed(&lane->rebuild, 0);
        }
        mca_btl_umr_room_leave(peer);
        return false;
    }
    __atomic_store_n(&lane->endpoint, endpoint, __ATOMIC_RELEASE);
    if (mca_btl_umr_endpoint_spent(old)) {
        mca_btl_umr_endpoint_retire(old);
    }
    return true;
}

void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    uint32_t generation = lane->endpoint->generation + 1;

    if (lane->endpoint->closed || mca_btl_umr_rebuild_due(&lane->rebuild)) {
        (void) replace(peer, lane, generation < lane->wanted ? lane->wanted : generation);
    }
}

void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation)
{
    mca_btl_umr_endpoint_t *endpoint = lane->endpoint;
    bool dead;

    if (mca_btl_umr_room_closes(endpoint)) {
        (void) replace(peer, lane, generation);
        return;
    }
    if (0 == mca_btl_umr_params.rebuilds) {
        return;
    }
    dead = !mca_btl_umr_lane_works(lane) && MCA_BTL_UMR_LANE_DEAD <= lane->failures;
    if (0 < mca_btl_umr_params.max_peers) {
        mca_btl_umr_endpoint_abandon(endpoint);
    } else {
        mca_btl_umr_endpoint_fail(endpoint);
    }
    if ((dead || !replace(peer, lane, generation)) && lane->wanted <= generation) {
        lane->wanted = generation + 1; /* the peer is going to give its endpoint up */
    }
}

bool mca_btl_umr_endpoint_refuses(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs,
                                  mca_btl_umr_address_t *address)
{
    uint32_t generation = MCA_BTL_UMR_ADDRESS_GENERATION(ntohl(theirs->psn));
    bool closed;

    if (!mca_btl_umr_endpoint_broken(endpoint) && endpoint->generation == generation) {
        return false;
    }
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    closed = endpoint->closed;
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    if (closed && generation > endpoint->generation) {
        return false; /* it waits for room */
    }
    *address = endpoint->address;
    if (closed) {
        address->psn = htonl((endpoint->generation + 1) << 24);
    }
    return true;
}

/** The peer has a later one. */
static void give_up(mca_btl_umr_endpoint_t *endpoint)
{
    if (mca_btl_umr_room_closes(endpoint)) {
        mca_btl_umr_room_leave(endpoint->peer);
    } else {
        mca_btl_umr_endpoint_fail(endpoint);
    }
}

/** The peer has an earlier one. */
static void not_followed(mca_btl_umr_endpoint_t *endpoint)
{
    if (endpoint->replaces) {
        mca_btl_umr_endpoint_fail(endpoint);
    } else {
        mca_btl_umr_endpoint_abandon(endpoint); /* the peer's was in use when this one was closed */
    }
}

void mca_btl_umr_endpoint_refused(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs)
{
    uint32_t psn = ntohl(theirs->psn), generation = MCA_BTL_UMR_ADDRESS_GENERATION(psn);
    mca_btl_umr_lane_t *lane = endpoint->lane;
    bool later = generation > endpoint->generation;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (lane->peer_index != MCA_BTL_UMR_ADDRESS_HCA(ntohl(theirs->qpn))) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return;
    }
    if (0 == MCA_BTL_UMR_ADDRESS_PSN(psn)) {
        /* The peer has closed its end. If this one is in use, a later message closes it. */
        if (later && mca_btl_umr_endpoint_close(endpoint)) {
            mca_btl_umr_room_leave(endpoint->peer);
        }
    } else if (later) {
        give_up(endpoint);
    } else if (generation == endpoint->generation) {
        mca_btl_umr_endpoint_fail(endpoint);
    } else if (!endpoint->connected) {
        not_followed(endpoint);
    }
    if (generation > lane->wanted) {
        lane->wanted = generation;
    }
    if (generation > lane->endpoint->generation && 0 != MCA_BTL_UMR_ADDRESS_PSN(psn)) {
        give_up(lane->endpoint);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}
