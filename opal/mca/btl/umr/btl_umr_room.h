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
 */

#ifndef MCA_BTL_UMR_ROOM_H
#define MCA_BTL_UMR_ROOM_H

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

/**
 * A peer gets a queue pair. If as many peers as permitted have some, those of a peer that was not
 * used lately are closed. No effect for a peer that has some. Lock held.
 *
 * @return false: there is no room
 */
bool mca_btl_umr_room_enter(mca_btl_umr_peer_t *peer);

/** The peer does not count any more if it has no queue pair, and no thread creates one. Lock held.
 */
void mca_btl_umr_room_leave(mca_btl_umr_peer_t *peer);

/**
 * Destroy the queue pair of an endpoint, if nothing is under way. The endpoint is broken then. Lock
 * held.
 *
 * @return false: something is under way, it is broken, or it was closed too often
 */
bool mca_btl_umr_endpoint_close(mca_btl_umr_endpoint_t *endpoint);

/** As mca_btl_umr_endpoint_close, but nothing is closed if the number of peers has no limit. */
bool mca_btl_umr_room_closes(mca_btl_umr_endpoint_t *endpoint);

END_C_DECLS

#endif /* MCA_BTL_UMR_ROOM_H */
