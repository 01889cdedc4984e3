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
 */

#ifndef MCA_BTL_UMR_REBUILD_H
#define MCA_BTL_UMR_REBUILD_H

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

/** A message needs a lane whose endpoint is broken: create another endpoint if due. Lock held. */
void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/**
 * The peer has created its queue pair of this generation, which is higher than the local one. Lock
 * held.
 */
void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation);

bool mca_btl_umr_endpoint_refuses(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs,
                                  mca_btl_umr_address_t *address);
void mca_btl_umr_endpoint_refused(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs);

END_C_DECLS

#endif /* MCA_BTL_UMR_REBUILD_H */
