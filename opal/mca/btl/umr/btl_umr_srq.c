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
 * Receives for FINs. They have no buffer: a FIN is immediate data.
 *
 * All endpoints share one queue of receives (an SRQ), unless the device has none or
 * btl_umr_srq_depth is 0; then each endpoint posts btl_umr_rq_depth of its own. In either case a
 * FIN is allowed only when a receive is reserved for it:
 *
 *     depth:  | expected by some endpoint |   free   | taken by FINs that were polled |
 *             |<-------------- posted -------------->|<----------- missing ---------->|
 *
 * Each completion makes one receive missing and ends one expectation. So the posted receives are
 * never fewer than the expected FINs, and missing ones can be posted in batches.
 *
 * A broken endpoint expects no FIN. But its queue pair may have taken receives that are not polled
 * yet, and receives of a shared queue are not flushed. So its expectations are released only after
 * the device has reported QP_LAST_WQE_REACHED (btl_umr_event.c) and its completions were polled
 * after that.
 */

#include "opal_config.h"

#include <errno.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_srq.h"

/* Maximum of receives posted at a time. */
#define MCA_BTL_UMR_REFILL 32

/* Seconds that a broken endpoint waits for QP_LAST_WQE_REACHED. */
#define MCA_BTL_UMR_DRAIN_SECONDS 1

/* ------------------------------------------------------------------------------------------- *
 * The shared queue
 * ------------------------------------------------------------------------------------------- */

/** Post the missing receives. */
static void refill(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_receives_t *receives = &hca->receives;

    while (0 < receives->missing) {
        struct ibv_recv_wr wrs[MCA_BTL_UMR_REFILL], *bad;
        uint32_t count =
            receives->missing < MCA_BTL_UMR_REFILL ? receives->missing : MCA_BTL_UMR_REFILL;
        int err;

        memset(wrs, 0, count * sizeof(wrs[0]));
        for (uint32_t i = 0; i < count; ++i) {
            wrs[i].wr_id = MCA_BTL_UMR_WR_RECEIVE;
            wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
        }
        err = ibv_post_srq_recv(receives->srq, wrs, &bad);
        if (0 != err) {
            /* Those before the bad one are posted. */
            receives->missing -= (uint32_t) (bad - wrs);
            if (!receives->refused) {
                receives->refused = true;
                ++hca->stats.errors;
                MCA_BTL_UMR_LOG(hca, "receives cannot be posted: %s", strerror(err));
            }
            return;
        }
        receives->missing -= count;
    }
}

static bool shared_start(mca_btl_umr_hca_t *hca, uint32_t depth)
{
    mca_btl_umr_receives_t *receives = &hca->receives;
    struct ibv_srq_init_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.attr.max_wr = depth;
    attr.attr.max_sge = 1;
    receives->srq = ibv_create_srq(hca->device.pd, &attr);
    if (NULL == receives->srq) {
        return false;
    }
    receives->cq = ibv_create_cq(hca->device.context, (int) depth, NULL, NULL, 0);
    if (NULL == receives->cq) {
        int err = errno;

        (void) ibv_destroy_srq(receives->srq);
        receives->srq = NULL;
        errno = err;
        return false;
    }
    receives->depth = receives->missing = depth;
    receives->batch = 1 + depth / 8 < MCA_BTL_UMR_REFILL ? 1 + depth / 8 : MCA_BTL_UMR_REFILL;
    refill(hca);
    /* Doubled: libmlx5 allocates as many again for receives that wait for pages. */
    hca->stats.shared_bytes_now =
        mca_btl_umr_round_up(2 * (uint64_t) depth + 1) * (32 + sizeof(uint64_t))
        + mca_btl_umr_cq_bytes(receives->cq);
    return true;
}

void mca_btl_umr_receives_start(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_receives_t *receives = &hca->receives;
    uint32_t depth = mca_btl_umr_params.srq_depth;

    if (receives->started) {
        return;
    }
    receives->started = true;
    if (0 == depth || 0 >= hca->device.attr.max_srq || 0 >= hca->device.attr.max_srq_wr) {
        return;
    }
    if ((uint32_t) hca->device.attr.max_srq_wr < depth) {
        depth = (uint32_t) hca->device.attr.max_srq_wr;
    }
    if (0 < hca->device.attr.max_cqe && (uint32_t) hca->device.attr.max_cqe < depth) {
        depth = (uint32_t) hca->device.attr.max_cqe;
    }
    if (!shared_start(hca, depth)) {
        MCA_BTL_UMR_LOG(hca, "no shared receives, each peer gets its own: %s", strerror(errno));
    }
}

void mca_btl_umr_receives_stop(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_receives_t *receives = &hca->receives;

    if (NULL != receives->srq) {
        int err = ibv_destroy_srq(receives->srq);
        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "the shared receives cannot be destroyed: %s", strerror(err));
        }
        err = ibv_destroy_cq(receives->cq);
        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "a completion queue cannot be destroyed: %s", strerror(err));
        }
    }
    receives->srq = NULL;
    receives->cq = NULL;
    receives->started = receives->refused = receives->failed = false;
    receives->depth = receives->missing = receives->expected = 0;
    receives->idle = 0;
    hca->stats.shared_bytes_now = 0;
}

/* ------------------------------------------------------------------------------------------- *
 * Counters
 * ------------------------------------------------------------------------------------------- */

/**
 * True if this endpoint may expect one more FIN. Half of the receives are for endpoints that expect
 * none: peers that do not answer can hold the other half, and all others continue.
 */
static bool shared_may_expect(const mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_receives_t *receives = &hca->receives;
    uint32_t keep = 0 < endpoint->fins_expected ? receives->depth / 2 : 0;

    if (receives->depth - receives->missing <= receives->expected + keep) {
        refill(hca);
    }
    return receives->depth - receives->missing > receives->expected + keep;
}

int mca_btl_umr_fin_reserve(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    int rc = OPAL_SUCCESS;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (endpoint->broken) {
        rc = OPAL_ERR_UNREACH;
    } else if (endpoint->fins_expected == endpoint->fins_max
               || (NULL != hca->receives.srq && !shared_may_expect(endpoint))) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else {
        ++endpoint->fins_expected;
        ++hca->receives.expected;
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

/** One expected FIN less. */
static void expect_less(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    if (0 < endpoint->fins_expected) {
        --endpoint->fins_expected;
        --hca->receives.expected;
    }
}

void mca_btl_umr_fin_cancel(mca_btl_umr_endpoint_t *endpoint)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    expect_less(endpoint);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

void mca_btl_umr_fin_came(mca_btl_umr_endpoint_t *endpoint)
{
    expect_less(endpoint);
}

void mca_btl_umr_receives_taken(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_receives_t *receives = &hca->receives;

    ++receives->missing;
    expect_less(endpoint);
    /* The second condition can only be false because of unsolicited FINs. */
    if (receives->missing >= receives->batch
        || receives->depth - receives->missing < receives->expected) {
        refill(hca);
    }
}

/* ------------------------------------------------------------------------------------------- *
 * Endpoints that break
 * ------------------------------------------------------------------------------------------- */

static void give_back(mca_btl_umr_endpoint_t *endpoint)
{
    while (0 < endpoint->fins_expected) {
        expect_less(endpoint);
    }
}

void mca_btl_umr_receives_leave(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    if (NULL == hca->receives.srq || !endpoint->connected) {
        /* Its own receives are flushed, or it has taken none. */
        give_back(endpoint);
    } else {
        endpoint->draining = true;
        endpoint->drain_end = mca_btl_umr_now() + MCA_BTL_UMR_DRAIN_SECONDS;
        opal_list_append(&hca->receives.draining, &endpoint->super);
    }
}

void mca_btl_umr_receives_drained(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_endpoint_t *endpoint, *next;

    OPAL_LIST_FOREACH_SAFE (endpoint, next, &hca->receives.draining, mca_btl_umr_endpoint_t) {
        /*
         * Limits the wait for a device that never reports; a receive that it took nevertheless is
         * replaced when it is polled.
         */
        if (endpoint->last_receive || mca_btl_umr_now() > endpoint->drain_end) {
            endpoint->draining = false;
            opal_list_remove_item(&hca->receives.draining, &endpoint->super);
            give_back(endpoint);
        }
    }
}
