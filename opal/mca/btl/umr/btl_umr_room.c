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
 * The peers that have queue pairs, at most btl_umr_max_peers.
 *
 * If another peer needs one, those of a peer that was not used lately are closed, without asking
 * it. Nothing may be under way at this side: no put, no FIN that the peer may still send. So the
 * peer has no key of this process for a write through them. A message of which only the envelope
 * was sent goes by the base PML, as after a failure. The endpoint is replaced by one of the next
 * generation for the next message that needs it (btl_umr_rebuild.c):
 *
 *     local, closed at g                       remote, at g, connected
 *       a message: g + 1
 *       RTS, address of g + 1        ----->    later than g (follow): close g here too, and create
 *                                              g + 1; connected
 *
 *       refuses: g + 1, PSN 0        <-----    RTS, address of g
 *                                    ----->    close g here too (refused); the next message: g + 1
 *
 * It is no failure: no back-off begins. If the remote side has a message under way, its end breaks,
 * and both wait for some messages (btl_umr_rebuild.c). A broken endpoint makes room, too, as soon
 * as its queue pair can cause no more events. It keeps its back-off. A lane is closed for half of
 * the generations; then its queue pair stays, and the other half is for failures. So the memory of
 * closed endpoints is bounded, too: they stay, since callers may hold a pointer.
 *
 * A peer makes room if no message used it for a second. So more partners than permitted, in turn,
 * do not close the queue pairs of each other. The list of peers is in the order of the last looks.
 * A look compares the writes and FINs of a peer with those of its last look, so nothing is recorded
 * for a message.
 */

#include "opal_config.h"

#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_room.h"

/* Seconds without a message, and peers that a message which lacks a queue pair looks at. */
#define MCA_BTL_UMR_ROOM_SECONDS 1.0
#define MCA_BTL_UMR_ROOM_LOOKS   16

/* Generations of a lane from which on it is not closed. */
#define MCA_BTL_UMR_ROOM_GENERATIONS 127

static bool idle(const mca_btl_umr_endpoint_t *endpoint)
{
    return !endpoint->broken && !endpoint->connecting && !endpoint->probing
           && endpoint->sq.posted == endpoint->sq.done
           && opal_list_is_empty((opal_list_t *) &endpoint->puts) && 0 == endpoint->fins_expected
           && MCA_BTL_UMR_ROOM_GENERATIONS > endpoint->generation;
}

static void close_idle(mca_btl_umr_endpoint_t *endpoint)
{
    (void) mca_btl_umr_lane_works(endpoint->lane);
    MCA_BTL_UMR_VERBOSE(QP, "rank %u: %s: queue pair %u closed", endpoint->peer->name.vpid,
                        endpoint->hca->device.name, endpoint->sq.qp->qp_num);
    __atomic_store_n(&endpoint->broken, true, __ATOMIC_RELAXED);
    mca_btl_umr_endpoint_retire(endpoint);
    endpoint->closed = true;
    endpoint->receives = 0;
}

bool mca_btl_umr_endpoint_close(mca_btl_umr_endpoint_t *endpoint)
{
    if (!endpoint->closed && idle(endpoint)) {
        close_idle(endpoint);
    }
    return endpoint->closed;
}

bool mca_btl_umr_room_closes(mca_btl_umr_endpoint_t *endpoint)
{
    return endpoint->closed
           || (0 < mca_btl_umr_params.max_peers && mca_btl_umr_endpoint_close(endpoint));
}

/** True if a message used the peer since the last look. */
static bool used(const mca_btl_umr_peer_t *peer)
{
    bool result = false;

    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        mca_btl_umr_endpoint_t *endpoint = peer->lanes[i].endpoint;

        if (NULL != endpoint && NULL != endpoint->sq.qp) {
            uint32_t now = endpoint->sq.posted + endpoint->fins_came;

            result = result || now != endpoint->seen;
            endpoint->seen = now;
        }
    }
    return result;
}

/** True if the queue pair of an endpoint can be destroyed now, or it has none. */
static bool may_go(const mca_btl_umr_endpoint_t *endpoint)
{
    return NULL == endpoint || NULL == endpoint->sq.qp || idle(endpoint)
           || mca_btl_umr_endpoint_spent(endpoint);
}

/** Destroy all queue pairs of a peer. @return false: not now, and none is destroyed */
static bool close_peer(mca_btl_umr_peer_t *peer)
{
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        if (peer->lanes[i].making || !may_go(peer->lanes[i].endpoint)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        mca_btl_umr_endpoint_t *endpoint = peer->lanes[i].endpoint;

        if (NULL == endpoint) {
            continue;
        }
        if (endpoint->broken) {
            mca_btl_umr_endpoint_retire(endpoint);
        } else {
            close_idle(endpoint);
        }
    }
    mca_btl_umr_room_leave(peer);
    ++mca_btl_umr_first()->stats.peers_closed;
    return true;
}

/** Append a peer, which is in use. */
static void append(mca_btl_umr_peer_t *peer, double now)
{
    peer->looked = now;
    opal_list_append(&mca_btl_umr.peers_open, &peer->super);
}

static bool make_room(double now)
{
    size_t left = opal_list_get_size(&mca_btl_umr.peers_open);

    left = left < MCA_BTL_UMR_ROOM_LOOKS ? left : MCA_BTL_UMR_ROOM_LOOKS;
    for (; 0 < left; --left) {
        mca_btl_umr_peer_t *peer =
            (mca_btl_umr_peer_t *) opal_list_get_first(&mca_btl_umr.peers_open);

        if (!used(peer)) {
            if (now - peer->looked < MCA_BTL_UMR_ROOM_SECONDS) {
                return false; /* the others were looked at later */
            }
            if (close_peer(peer)) {
                return true;
            }
        }
        opal_list_remove_item(&mca_btl_umr.peers_open, &peer->super);
        append(peer, now);
    }
    return false;
}

bool mca_btl_umr_room_enter(mca_btl_umr_peer_t *peer)
{
    double now;

    if (peer->open) {
        return true;
    }
    now = mca_btl_umr_now();
    if (0 < mca_btl_umr_params.max_peers
        && mca_btl_umr_params.max_peers <= opal_list_get_size(&mca_btl_umr.peers_open)
        && !make_room(now)) {
        if (!peer->refused) {
            peer->refused = true;
            ++mca_btl_umr_first()->stats.peers_refused;
            MCA_BTL_UMR_VERBOSE(LANE,
                                "rank %u: no lane now: %u other peers have queue pairs "
                                "(btl_umr_max_peers)",
                                peer->name.vpid,
                                (unsigned) opal_list_get_size(&mca_btl_umr.peers_open));
        }
        return false;
    }
    peer->open = true;
    append(peer, now);
    return true;
}

void mca_btl_umr_room_leave(mca_btl_umr_peer_t *peer)
{
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        const mca_btl_umr_lane_t *lane = &peer->lanes[i];

        if (lane->making || (NULL != lane->endpoint && NULL != lane->endpoint->sq.qp)) {
            return;
        }
    }
    if (peer->open) {
        peer->open = false;
        opal_list_remove_item(&mca_btl_umr.peers_open, &peer->super);
    }
}
