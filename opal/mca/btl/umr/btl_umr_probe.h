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

/**
 * Seconds that the answer to a probe may take, at least; see mca_btl_umr_probes_look. The device
 * must be able to repeat it some times, as a network loses packets: the answer may take as many
 * timeouts of the queue pair.
 */
#define MCA_BTL_UMR_PROBE_SECONDS  1.0
#define MCA_BTL_UMR_PROBE_TIMEOUTS 6

/**
 * Seconds that messages wait for that answer at most; the second value, if another lane to the peer
 * works. A healthy lane answers within microseconds, unless a packet is lost or the peer's process
 * does not run. The messages then end with OPAL_ERR_TIMEOUT, and none waits for this probe any
 * more.
 */
#define MCA_BTL_UMR_PROBE_WAIT        0.25
#define MCA_BTL_UMR_PROBE_WAIT_BESIDE 0.1

/** The limit with the timeout of btl_umr_timeout; seconds. */
static inline double mca_btl_umr_probe_limit(unsigned int timeout)
{
    double limit = MCA_BTL_UMR_PROBE_TIMEOUTS * 4.096e-6 * (double) (1ul << timeout);

    return limit > MCA_BTL_UMR_PROBE_SECONDS ? limit : MCA_BTL_UMR_PROBE_SECONDS;
}

/** True if a write went through the lane, in either direction. Lock held. */
bool mca_btl_umr_lane_works(mca_btl_umr_lane_t *lane);

/**
 * For an endpoint of a lane that has not worked yet: post a probe, a write without bytes, unless
 * one is under way. Writes wait for its completion. No probe is needed if the peer has written, or
 * if there is no other lane, since the only one is not given up. Lock held.
 *
 * @return true: the lane works, write now
 */
bool mca_btl_umr_probe(mca_btl_umr_endpoint_t *endpoint);

/** Tests whether an endpoint takes puts. Lock held. @return the result of a put that it does not */
static inline int mca_btl_umr_endpoint_takes(const mca_btl_umr_endpoint_t *endpoint)
{
    if (OPAL_LIKELY(endpoint->connected && !endpoint->broken && !endpoint->late)) {
        return OPAL_SUCCESS;
    }
    return endpoint->late ? OPAL_ERR_TIMEOUT : OPAL_ERR_UNREACH;
}

/** The probe of an endpoint is complete. Lock held. */
void mca_btl_umr_probe_done(mca_btl_umr_endpoint_t *endpoint);

/** An endpoint with a probe under way breaks. Lock held. */
void mca_btl_umr_probe_end(mca_btl_umr_endpoint_t *endpoint);

/**
 * The endpoint of a lane fails before the lane has worked. After MCA_BTL_UMR_LANE_DEAD of these the
 * lane is given up. Without effect if the lane has worked, or is the only one. Lock held.
 *
 * @param[in] again  false: give it up at once; only the peer may try again
 */
void mca_btl_umr_probe_fail(mca_btl_umr_endpoint_t *endpoint, bool again, const char *why);

/**
 * End the puts that have waited for an answer for too long, and break the endpoints whose probe has
 * had none for even longer. While there are probes, each pass of progress must call it. A pass
 * counts as a millisecond at most, so that a process that is stopped or computes does not miss
 * answers. Lock held.
 */
void mca_btl_umr_probes_look(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_PROBE_H */
