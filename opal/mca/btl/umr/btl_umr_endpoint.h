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
 * Endpoints: one queue pair for each peer and pair of HCAs.
 */

#ifndef MCA_BTL_UMR_ENDPOINT_H
#define MCA_BTL_UMR_ENDPOINT_H

#include "opal/mca/btl/umr/btl_umr_peer.h"

BEGIN_C_DECLS

/** A completion queue that several endpoints share. */
typedef struct mca_btl_umr_cq_t {
    opal_list_item_t super;
    struct ibv_cq *cq;
    uint32_t size; /**< capacity in completions */
    uint32_t room; /**< completions not assigned to an endpoint */
} mca_btl_umr_cq_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_cq_t);

struct mca_btl_umr_endpoint_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< local HCA */
    mca_btl_umr_peer_t *peer;
    mca_btl_umr_lane_t *lane;
    uint32_t index;      /**< index in hca.endpoints */
    uint32_t generation; /**< 0: the first of the lane; see btl_umr_rebuild.c */
    bool replaces;       /**< created in place of a broken one that was not closed */
    bool closed;         /**< broken, without a queue pair, and no failure: see btl_umr_room.c */
    uint32_t seen;       /**< its writes and FINs at the last look of btl_umr_room.c */
    bool connecting;     /**< a thread connects it, without the lock */
    bool connected;
    bool proven;                   /**< as of the lane, seen by this endpoint */
    bool probing;                  /**< a probe is under way: in hca.probing */
    bool late;                     /**< no message waits for the probe any more */
    double probe_time;             /**< seconds that the probe has waited */
    bool broken;                   /**< written with the lock held, also read without it */
    mca_btl_umr_address_t address; /**< local address */
    mca_btl_umr_address_t theirs;  /**< remote address, once connected */
    mca_btl_umr_sq_t sq;
    uint32_t fins_expected;      /**< FINs with a reserved receive */
    uint32_t fins_max;           /**< maximum of those */
    uint32_t fins_came;          /**< FINs received in total */
    uint32_t receives;           /**< own receives posted now */
    bool draining;               /**< broken, and may have taken shared receives not polled yet */
    bool last_receive;           /**< the device reported that it takes no more shared receives */
    double drain_end;            /**< time at which waiting for that report ends */
    struct mca_btl_umr_cq_t *cq; /**< of its send queue */
    uint32_t cq_need;            /**< completions of that reserved for it */
    uint64_t bytes;              /**< bytes of memory counted for it */
    opal_list_t puts; /**< in the order of the calls; the first ones posted, the last ones not */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_endpoint_t);

void mca_btl_umr_endpoints_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_endpoints_stop(mca_btl_umr_hca_t *hca);

/** The initial packet sequence number of a connection. */
uint32_t mca_btl_umr_first_psn(const struct ibv_qp *qp);

/**
 * Let another thread finish a command for a queue pair of the HCA, which is not closed meanwhile.
 * Lock held, but not meanwhile.
 */
void mca_btl_umr_commands_look(mca_btl_umr_hca_t *hca);

/**
 * Create the first queue pair of a lane, or wait for another thread that does. Lock held, but not
 * meanwhile.
 *
 * @return OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE
 */
int mca_btl_umr_endpoint_make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/**
 * Create a queue pair for a lane, not yet installed in it. Lock held, but not meanwhile:
 * lane.making is set.
 *
 * @return NULL: none available
 */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_new(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                                 uint32_t generation);

/**
 * Destroy the queue pair of a broken endpoint from which no more events can come. The endpoint
 * stays, since callers may hold a pointer to it. No effect if it has none. Lock held.
 */
void mca_btl_umr_endpoint_retire(mca_btl_umr_endpoint_t *endpoint);

/** True if it is broken, and nothing is under way. Lock held. */
bool mca_btl_umr_endpoint_drained(const mca_btl_umr_endpoint_t *endpoint);

/** True if it is drained, and its queue pair can cause no more events. Lock held. */
bool mca_btl_umr_endpoint_spent(const mca_btl_umr_endpoint_t *endpoint);

/** Break every endpoint of a failed HCA while other HCAs go on. Lock held. */
void mca_btl_umr_endpoints_fail(mca_btl_umr_hca_t *hca);

/* The index of the HCA is in the unused upper byte of the queue pair number. */
#define MCA_BTL_UMR_ADDRESS_HCA(qpn) ((qpn) >> 24)
#define MCA_BTL_UMR_ADDRESS_QPN(qpn) ((qpn) &0xffffff)

/*
 * The generation is in the unused upper byte of the packet sequence number, which is never 0
 * itself.
 */
#define MCA_BTL_UMR_ADDRESS_GENERATION(psn) ((psn) >> 24)
#define MCA_BTL_UMR_ADDRESS_PSN(psn)        ((psn) &0xffffff)
#define MCA_BTL_UMR_GENERATION_MAX          255u

void mca_btl_umr_endpoint_address(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address);
int mca_btl_umr_endpoint_connect(mca_btl_umr_endpoint_t *endpoint,
                                 const mca_btl_umr_address_t *address);
bool mca_btl_umr_endpoint_broken(const mca_btl_umr_endpoint_t *endpoint);

void mca_btl_umr_endpoint_break(mca_btl_umr_endpoint_t *endpoint);

/** Break an endpoint: queue pair to ERR; complete the puts that can end. Lock held. */
void mca_btl_umr_endpoint_fail(mca_btl_umr_endpoint_t *endpoint);

/**
 * The same, for a reason that may be the end of the peer's queue pair, closed to make room: it does
 * not count as a failure. Lock held.
 */
void mca_btl_umr_endpoint_abandon(mca_btl_umr_endpoint_t *endpoint);

/** The endpoint with this queue pair number, or NULL. Lock held. */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_of_qp(mca_btl_umr_hca_t *hca, uint32_t qpn);

END_C_DECLS

#endif /* MCA_BTL_UMR_ENDPOINT_H */
