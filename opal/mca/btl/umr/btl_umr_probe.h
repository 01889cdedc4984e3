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
 * The first use of a lane: a probe, which decides whether the lane is used at all.
 */

#ifndef MCA_BTL_UMR_PROBE_H
#define MCA_BTL_UMR_PROBE_H

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

/** Seconds that the answer to a probe may take; see mca_btl_umr_probes_look. */
#define MCA_BTL_UMR_PROBE_SECONDS 1.0

/**
 * For an endpoint of a lane that has not worked yet: post a probe, a write without bytes, unless
 * one is under way. Writes wait for its completion. No probe is needed if the peer has written.
 * Lock held.
 *
 * @return true: the lane works, write now
 */
bool mca_btl_umr_probe(mca_btl_umr_endpoint_t *endpoint);

/** The probe of an endpoint is complete. Lock held. */
void mca_btl_umr_probe_done(mca_btl_umr_endpoint_t *endpoint);

/** An endpoint with a probe under way breaks. Lock held. */
void mca_btl_umr_probe_end(mca_btl_umr_endpoint_t *endpoint);

/**
 * Give up the lane of an endpoint, unless it has worked: it is not tried again. Lock held.
 *
 * @param[in] times  of MCA_BTL_UMR_LANE_DEAD
 */
void mca_btl_umr_probe_give_up(mca_btl_umr_endpoint_t *endpoint, uint8_t times, const char *why);

/**
 * Break the endpoints whose probe has had no answer for too long. While there are probes, each pass
 * of progress must call it. A pass counts as a millisecond at most, so that a process that is
 * stopped or computes does not miss answers. Lock held.
 */
void mca_btl_umr_probes_look(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_PROBE_H */
