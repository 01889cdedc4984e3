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
 * Probes. Two ports that look as if they were on one network may not reach each other. The device
 * reports that after all its retries, which take 9 to 35 seconds with the default timeout, and the
 * timeout of a connected queue pair cannot change. So the process itself limits the time of the
 * first write. There are two limits: a short one for the messages that wait, and a long one for the
 * lane, since a network may lose a packet.
 */

#include "opal_config.h"

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

/* The time that one pass of progress counts, at most. */
#define MCA_BTL_UMR_PROBE_PASS 1e-3

/** The lane works; so do all later queue pairs of it. It may have been given up too early. */
static void lane_proven(mca_btl_umr_lane_t *lane)
{
    if (!lane->proven && mca_btl_umr_params.rebuilds < lane->rebuild.tries) {
        lane->rebuild.tries = 0;
    }
    lane->proven = true;
}

static void proven(mca_btl_umr_endpoint_t *endpoint)
{
    lane_proven(endpoint->lane);
    endpoint->proven = true;
}

bool mca_btl_umr_lane_works(mca_btl_umr_lane_t *lane)
{
    if (NULL != lane->endpoint && 0 < lane->endpoint->fins_came) {
        lane_proven(lane);
    }
    return lane->proven;
}

bool mca_btl_umr_probe(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    uint32_t posted = endpoint->sq.posted, signalled = endpoint->sq.signalled;
    int err;

    if (endpoint->probing) {
        return false;
    }
    if (mca_btl_umr_lane_works(endpoint->lane) || 1 == endpoint->peer->lane_count) {
        proven(endpoint);
        return true;
    }
    err = mca_btl_umr_qp_probe(&endpoint->sq, endpoint->index);
    if (0 != err) {
        /* The first write will tell. */
        endpoint->sq.posted = posted;
        endpoint->sq.signalled = signalled;
        proven(endpoint);
        return true;
    }
    ++hca->writes_out;
    if (opal_list_is_empty(&hca->probing)) {
        hca->probes_looked = mca_btl_umr_now();
    }
    endpoint->probing = true;
    endpoint->probe_time = 0;
    opal_list_append(&hca->probing, &endpoint->super);
    return false;
}

/** Messages wait no longer for the probe: count the time. */
static void waited(mca_btl_umr_endpoint_t *endpoint)
{
    if (!endpoint->late) {
        endpoint->hca->stats.probe_wait_us += (uint64_t) (1e6 * endpoint->probe_time);
    }
}

void mca_btl_umr_probe_end(mca_btl_umr_endpoint_t *endpoint)
{
    waited(endpoint);
    endpoint->probing = endpoint->late = false;
    opal_list_remove_item(&endpoint->hca->probing, &endpoint->super);
}

void mca_btl_umr_probe_done(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_probe_end(endpoint);
    proven(endpoint);
}

void mca_btl_umr_probe_fail(mca_btl_umr_endpoint_t *endpoint, bool again, const char *why)
{
    mca_btl_umr_lane_t *lane = endpoint->lane;

    if (mca_btl_umr_lane_works(lane) || 1 == endpoint->peer->lane_count
        || MCA_BTL_UMR_LANE_DEAD <= lane->failures) {
        return;
    }
    ++lane->failures;
    if (again && MCA_BTL_UMR_LANE_DEAD > lane->failures) {
        return;
    }
    if (mca_btl_umr_params.rebuilds >= lane->rebuild.tries) {
        MCA_BTL_UMR_LOG(endpoint->hca,
                        "HCA %u of %s does not answer (%s): this pair of ports is not used. They "
                        "may be on different networks",
                        lane->peer_index, OPAL_NAME_PRINT(endpoint->peer->name), why);
    }
    lane->rebuild.tries = mca_btl_umr_params.rebuilds + 1;
}

/** Seconds that messages may wait for the probe of an endpoint. */
static double wait_limit(const mca_btl_umr_peer_t *peer)
{
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        const mca_btl_umr_endpoint_t *endpoint = peer->lanes[i].endpoint;

        if (NULL != endpoint && !endpoint->broken && mca_btl_umr_lane_works(&peer->lanes[i])) {
            return MCA_BTL_UMR_PROBE_WAIT_BESIDE;
        }
    }
    return MCA_BTL_UMR_PROBE_WAIT;
}

void mca_btl_umr_probes_look(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_endpoint_t *endpoint, *next;
    double time = mca_btl_umr_now(), passed = time - hca->probes_looked;
    double limit = mca_btl_umr_probe_limit(mca_btl_umr_params.timeout);

    passed = passed < MCA_BTL_UMR_PROBE_PASS ? passed : MCA_BTL_UMR_PROBE_PASS;
    hca->probes_looked = time;
    OPAL_LIST_FOREACH_SAFE (endpoint, next, &hca->probing, mca_btl_umr_endpoint_t) {
        endpoint->probe_time += passed;
        /* If the peer writes, the lane works: only the device decides. */
        if (0 < endpoint->fins_came) {
            continue;
        }
        if (limit < endpoint->probe_time) {
            mca_btl_umr_probe_fail(endpoint, false, "no answer to a probe");
            mca_btl_umr_endpoint_fail(endpoint);
        } else if (!endpoint->late && wait_limit(endpoint->peer) < endpoint->probe_time) {
            waited(endpoint);
            endpoint->late = true;
            mca_btl_umr_puts_late(endpoint);
        }
    }
}
