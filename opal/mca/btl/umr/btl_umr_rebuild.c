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
 * Queue pairs that fail, and are made anew.
 *
 * An endpoint that broke stays broken, and who goes through it hears so for ever: nothing of a
 * message that was begun with one queue pair can be finished by another one. What comes after it is
 * another endpoint, of the next *generation*, for the same pair of HCAs. Messages that begin later
 * take the last one of the lane, and their envelopes carry its address, which has the generation:
 * both sides agree on a new pair of queue pairs as they did on the first, and nothing else travels.
 *
 *     here, at g, broken                       there, at g, broken or not
 *       messages by the base PML; after some
 *       of them (revive): g + 1
 *       RTS, address of g + 1        ----->    it is later than g (follow): g is broken here, too,
 *                                              and g + 1 made, if nothing of g is left; connected
 *       connected                    <-----    CTS, address of g + 1
 *
 * An endpoint connects to an address of its own generation only. A receiver that is told another
 * one says which it has (refuses), and the sender draws level, or gives its own up (refused):
 *
 *     the sender's is | since, there,                            | and here
 *     the same        | it is broken                             | is broken, too
 *     later           | g is not drained, or there is no other   | given up if it is not connected;
 *                     | queue pair to be had                     | the next one is later still
 *     earlier         | the envelope is an old one, or both were | broken; the next one is of that
 *                     | made anew                                | generation
 *
 * So generations only grow, on either side, and of the envelopes that the MPI matches in whatever
 * order those that are too old go by the base PML. No write of an old queue pair meets a new
 * receive: a receiver names keys to a sender by a connected endpoint only; what it named through
 * one that is broken now no write can reach through that any more (ERR), and no other one writes
 * through it, since a put goes through the endpoint that its own CTS was for. The queue pair is
 * destroyed when all of it was flushed and polled (drained), after the new one was made, so that
 * its number is another one; until then it stays, however long.
 *
 * The queue pair of mappings has no other side: it is destroyed and made again, see
 * mca_btl_umr_keysets_recover.
 */

#include "opal_config.h"

#include <arpa/inet.h>

#include "opal/mca/btl/umr/btl_umr.h"

bool mca_btl_umr_rebuild_failed(mca_btl_umr_rebuild_t *rebuild, uint32_t done)
{
    if (MCA_BTL_UMR_REBUILD_PROVEN <= done) {
        rebuild->tries = 0;
    }
    rebuild->lacked = 0;
    if (mca_btl_umr_params.rebuilds < rebuild->tries) {
        return false; /* that was said */
    }
    ++rebuild->tries;
    return 0 < mca_btl_umr_params.rebuilds && mca_btl_umr_params.rebuilds < rebuild->tries;
}

bool mca_btl_umr_rebuild_due(mca_btl_umr_rebuild_t *rebuild)
{
    unsigned int patience;

    if (0 == rebuild->tries || mca_btl_umr_params.rebuilds < rebuild->tries) {
        return false;
    }
    patience = MCA_BTL_UMR_REBUILD_PATIENCE << (rebuild->tries - 1);
    if (patience > rebuild->lacked) {
        ++rebuild->lacked;
    }
    return patience <= rebuild->lacked;
}

bool mca_btl_umr_endpoint_drained(mca_btl_umr_endpoint_t *endpoint)
{
    return endpoint->broken
           && (!endpoint->connected
               || (endpoint->sq.posted == endpoint->sq.done && opal_list_is_empty(&endpoint->puts)
                   && !endpoint->draining && 0 == endpoint->receives));
}

/** Put one of this generation in the place of the lane's, which is broken. @return false: not now
 */
static bool replace(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane, uint32_t generation)
{
    mca_btl_umr_hca_t *hca = lane->hca;
    mca_btl_umr_endpoint_t *old = lane->endpoint, *endpoint;

    if (!mca_btl_umr_endpoint_drained(old) || MCA_BTL_UMR_GENERATION_MAX < generation
        || 0 == mca_btl_umr_params.rebuilds) {
        return false;
    }
    if (hca->failed && 1 < mca_btl_umr.hca_count && !mca_btl_umr_keysets_recover(hca)) {
        return false; /* other HCAs can map keys */
    }
    endpoint = mca_btl_umr_endpoint_new(peer, lane, generation);
    if (NULL == endpoint) {
        (void) mca_btl_umr_rebuild_failed(&lane->rebuild, 0);
        return false;
    }
    __atomic_store_n(&lane->endpoint, endpoint, __ATOMIC_RELEASE);
    if (NULL == hca->receives.srq || !old->connected || old->last_receive) {
        mca_btl_umr_endpoint_retire(old);
    }
    return true;
}

void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    uint32_t generation = lane->endpoint->generation + 1;

    if (mca_btl_umr_rebuild_due(&lane->rebuild)) {
        (void) replace(peer, lane, generation < lane->wanted ? lane->wanted : generation);
    }
}

void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation)
{
    if (0 < mca_btl_umr_params.rebuilds) {
        mca_btl_umr_endpoint_fail(lane->endpoint);
        if (!replace(peer, lane, generation) && lane->wanted <= generation) {
            lane->wanted = generation + 1; /* the peer is going to give that one up */
        }
    }
}

bool mca_btl_umr_endpoint_refuses(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs,
                                  mca_btl_umr_address_t *address)
{
    if (!mca_btl_umr_endpoint_broken(endpoint)
        && endpoint->generation == MCA_BTL_UMR_ADDRESS_GENERATION(ntohl(theirs->psn))) {
        return false;
    }
    *address = endpoint->address;
    return true;
}

void mca_btl_umr_endpoint_refused(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs)
{
    uint32_t generation = MCA_BTL_UMR_ADDRESS_GENERATION(ntohl(theirs->psn));
    mca_btl_umr_lane_t *lane = endpoint->lane;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (lane->peer_index != MCA_BTL_UMR_ADDRESS_HCA(ntohl(theirs->qpn))) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return;
    }
    if (generation >= endpoint->generation || !endpoint->connected) {
        mca_btl_umr_endpoint_fail(endpoint);
    }
    if (generation > lane->wanted) {
        lane->wanted = generation;
    }
    if (generation > lane->endpoint->generation) {
        mca_btl_umr_endpoint_fail(lane->endpoint);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}
