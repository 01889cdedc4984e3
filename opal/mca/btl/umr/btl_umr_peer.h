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
 * Peers, and the pairs of HCAs that reach each other (lanes).
 */

#ifndef MCA_BTL_UMR_PEER_H
#define MCA_BTL_UMR_PEER_H

#include "opal/mca/btl/umr/btl_umr_qp.h"
#include "opal/mca/btl/umr/btl_umr_backoff.h"

BEGIN_C_DECLS

/**
 * A pair of a local and a remote HCA that reach each other. Both processes compute the same pairs
 * in the same order from the modex data. No HCA is in two pairs, so a peer never needs more queue
 * pairs than there are HCAs.
 */
struct mca_btl_umr_lane_t {
    mca_btl_umr_hca_t *hca;
    uint8_t peer_index; /**< index of the remote HCA in the peer's list */
    mca_btl_umr_route_t route;
    /** The endpoint of the highest generation. Created when first needed; read without the lock. */
    mca_btl_umr_endpoint_t *endpoint;
    bool making; /**< a thread creates its next endpoint, without the lock */
    mca_btl_umr_rebuild_t rebuild;
    bool proven;      /**< known to have worked; see mca_btl_umr_lane_works */
    uint8_t failures; /**< before that; see MCA_BTL_UMR_LANE_DEAD */
    uint32_t wanted;  /**< generation announced by the peer; 0: none */
};

/**
 * Failures after which one of several lanes, if it has never worked, is given up for good. A search
 * for a route that failed may succeed later, so connecting is tried again, as often as this and
 * with the back-off of btl_umr_backoff.h. After a probe without an answer only the peer, whose
 * queue pair may have broken, tries again.
 */
#define MCA_BTL_UMR_LANE_DEAD 3

/** Another process. Created at its first use, and kept. */
struct mca_btl_umr_peer_t {
    opal_list_item_t super; /**< item of mca_btl_umr.peers_open */
    opal_process_name_t name;
    bool open;           /**< it has queue pairs or gets one, and counts for btl_umr_max_peers */
    bool refused;        /**< it got none because of that, at some time */
    double looked;       /**< while open: time of the last look of btl_umr_room.c */
    bool has_choice;     /**< the lanes differ in their distance to system memory */
    uint32_t lane_count; /**< 0: no remote HCA is reachable */
    mca_btl_umr_lane_t *lanes;
};
OBJ_CLASS_DECLARATION(mca_btl_umr_peer_t);

/** Publish the HCAs of this process (modex). OPAL_SUCCESS, or OPAL_ERROR with why_not set */
int mca_btl_umr_peers_publish(void);

void mca_btl_umr_peers_start(void);
void mca_btl_umr_peers_stop(void);

/**
 * The route from the first HCA to the first HCA of a process. False: it published no HCA, or none
 * that this HCA can reach.
 */
bool mca_btl_umr_route_look_up(const opal_process_name_t *name, mca_btl_umr_route_t *route);

int mca_btl_umr_endpoint_get(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_near(mca_btl_umr_endpoint_t *endpoint,
                                                  const void *address, int gpu);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_at(mca_btl_umr_endpoint_t *endpoint,
                                                const mca_btl_umr_address_t *address);

size_t mca_btl_umr_endpoints_beside(mca_btl_umr_endpoint_t *endpoint,
                                    mca_btl_umr_endpoint_t **endpoints, size_t max);

END_C_DECLS

#endif /* MCA_BTL_UMR_PEER_H */
