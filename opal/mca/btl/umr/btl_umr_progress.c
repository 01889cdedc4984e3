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
 * Progress: polls completions with the lock held, and calls users without it.
 */

#include "opal_config.h"

#include <arpa/inet.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_event.h"
#include "opal/mca/btl/umr/btl_umr_gpu_flush.h"
#include "opal/mca/btl/umr/btl_umr_map.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_progress.h"
#include "opal/mca/btl/umr/btl_umr_put.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

/* Completions of one poll of one queue. */
#define MCA_BTL_UMR_POLL 32

/*
 * Passes between polls of a completion queue without expected completions: only unsolicited FINs
 * and errors of peers can arrive there.
 */
#define MCA_BTL_UMR_UNDUE_PERIOD 16

/** A FIN that was polled and not reported to its user yet. */
typedef struct fin_t {
    mca_btl_umr_endpoint_t *endpoint;
    uint32_t value;
} fin_t;

/**
 * Log the first error of an endpoint. A flush counts too unless the endpoint was broken locally:
 * the device stops a queue pair, for example, when a peer uses an invalid key.
 */
static void log_error(const mca_btl_umr_endpoint_t *endpoint, const struct ibv_wc *wc,
                      const char *doing)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    if (!endpoint->broken) {
        ++hca->stats.errors;
        MCA_BTL_UMR_LOG(hca, "%s %s failed: %s (vendor error 0x%x)", doing,
                        OPAL_NAME_PRINT(endpoint->peer->name), ibv_wc_status_str(wc->status),
                        wc->vendor_err);
    }
}

/** A receive of the endpoint itself completed, with or without success. */
static void own_receive_taken(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;

    if (!endpoint->broken) {
        int err = mca_btl_umr_qp_post_receives(endpoint->sq.qp, MCA_BTL_UMR_WR_RECEIVE, 1);

        /* First the receive, then the expectation: a FIN always finds a posted receive. */
        if (0 != err) {
            --endpoint->receives;
            ++hca->stats.errors;
            MCA_BTL_UMR_LOG(hca, "no receive for %s: error %d",
                            OPAL_NAME_PRINT(endpoint->peer->name), err);
            mca_btl_umr_endpoint_fail(endpoint);
        }
    } else {
        --endpoint->receives;
    }
    mca_btl_umr_fin_came(endpoint);
}

static inline void receive_taken(mca_btl_umr_endpoint_t *endpoint)
{
    if (NULL == endpoint->hca->receives.srq) {
        own_receive_taken(endpoint);
    } else {
        mca_btl_umr_receives_taken(endpoint);
    }
}

/** A receive completed. @return true if it was a FIN */
static bool handle_receive(mca_btl_umr_endpoint_t *endpoint, const struct ibv_wc *wc)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    if (IBV_WC_SUCCESS != wc->status) {
        log_error(endpoint, wc, "receiving from");
        mca_btl_umr_endpoint_fail(endpoint);
        receive_taken(endpoint);
        return false;
    }
    receive_taken(endpoint);
    if (0 == (wc->wc_flags & IBV_WC_WITH_IMM)) {
        return false;
    }
    ++endpoint->fins_came;
    ++hca->stats.fins_received;
    return true;
}

/** A write completed, and so all writes before it. */
static void handle_write(mca_btl_umr_endpoint_t *endpoint, const struct ibv_wc *wc)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    uint32_t seq = MCA_BTL_UMR_WR_SEQ(wc->wr_id);
    uint32_t done = endpoint->sq.done;

    if (IBV_WC_SUCCESS == wc->status) {
        mca_btl_umr_sq_complete(&endpoint->sq, seq);
        hca->writes_out -= endpoint->sq.done - done;
        if (OPAL_UNLIKELY(endpoint->probing)) {
            mca_btl_umr_probe_done(endpoint);
        }
        return;
    }
    if (OPAL_UNLIKELY(endpoint->probing) && IBV_WC_RETRY_EXC_ERR == wc->status) {
        mca_btl_umr_probe_fail(endpoint, false, ibv_wc_status_str(wc->status));
    }
    /* All earlier requests are complete too: an RC queue pair works in order. */
    mca_btl_umr_sq_complete(&endpoint->sq, seq - 1);
    if (!endpoint->broken) {
        mca_btl_umr_puts_sweep(endpoint);
        log_error(endpoint, wc, "writing to");
    }
    mca_btl_umr_sq_complete(&endpoint->sq, seq);
    hca->writes_out -= endpoint->sq.done - done;
    mca_btl_umr_endpoint_fail(endpoint);
}

/** Poll one queue of endpoints. @return number of completions */
static int poll_endpoints(mca_btl_umr_hca_t *hca, struct ibv_cq *cq, fin_t *fins, int *fin_count)
{
    struct ibv_wc wc[MCA_BTL_UMR_POLL];
    int count = ibv_poll_cq(cq, MCA_BTL_UMR_POLL, wc);

    *fin_count = 0;
    for (int i = 0; i < count; ++i) {
        bool receive = 0 != (wc[i].wr_id & MCA_BTL_UMR_WR_RECEIVE);
        /* Shared receives belong to no endpoint. */
        mca_btl_umr_endpoint_t *endpoint =
            receive ? mca_btl_umr_endpoint_of_qp(hca, wc[i].qp_num)
                    : opal_pointer_array_get_item(&hca->endpoints,
                                                  (int) MCA_BTL_UMR_WR_INDEX(wc[i].wr_id));

        if (NULL == endpoint) {
            continue;
        }
        if (receive) {
            if (handle_receive(endpoint, &wc[i])) {
                fins[*fin_count].endpoint = endpoint;
                fins[*fin_count].value = ntohl(wc[i].imm_data);
                ++*fin_count;
            }
        } else {
            handle_write(endpoint, &wc[i]);
            mca_btl_umr_puts_sweep(endpoint);
            if (OPAL_UNLIKELY(!opal_list_is_empty(&endpoint->puts))) {
                mca_btl_umr_puts_post(endpoint);
            }
        }
    }
    return 0 < count ? count : 0;
}

/** Report FINs, one at a time, each with the lock released. */
static void report_fins(const fin_t *fins, int count)
{
    for (int i = 0; i < count; ++i) {
        mca_btl_umr_fin_fn_t handler = mca_btl_umr.fin_handler;
        void *context = mca_btl_umr.fin_context;

        if (NULL != handler) {
            OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
            handler(context, fins[i].endpoint, fins[i].value);
            OPAL_THREAD_LOCK(&mca_btl_umr.lock);
        }
    }
}

/** Poll the shared receives. @return number of completions */
static int poll_receives(mca_btl_umr_hca_t *hca)
{
    bool draining = !opal_list_is_empty(&hca->receives.draining);
    fin_t fins[MCA_BTL_UMR_POLL];
    int events, count;

    if (OPAL_UNLIKELY(draining)) {
        mca_btl_umr_events_read(hca);
    }
    events = poll_endpoints(hca, hca->receives.cq, fins, &count);
    if (OPAL_UNLIKELY(draining) && MCA_BTL_UMR_POLL > events) {
        mca_btl_umr_receives_drained(hca);
    }
    report_fins(fins, count);
    return events;
}

/** Report completions, one at a time, each with the lock released. */
static int report_done(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_done_fn_t done;
    int status, events = 0;
    void *context;

    while ((NULL != hca->keysets_done.head
            && mca_btl_umr_keysets_next_done(hca, &done, &context, &status))
           || (!opal_list_is_empty(&hca->puts_done)
               && mca_btl_umr_puts_next_done(hca, &done, &context, &status))) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        if (NULL != done) {
            done(context, status);
        }
        ++events;
        OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    }
    return events;
}

/** Poll the queues of endpoints. @return number of completions */
static int poll_queues(mca_btl_umr_hca_t *hca)
{
    fin_t fins[MCA_BTL_UMR_POLL];
    mca_btl_umr_cq_t *cq;
    int events = 0, count;

    /* While the lock is released the list only grows, at its end. */
    OPAL_LIST_FOREACH (cq, &hca->cqs, mca_btl_umr_cq_t) {
        events += poll_endpoints(hca, cq->cq, fins, &count);
        report_fins(fins, count);
    }
    return events;
}

/**
 * The same of an HCA that failed. First all completions of before the failure: a message that has
 * arrived with its FIN is complete. Then everything ends, and after that only users are called.
 */
static __opal_attribute_noinline__ int progress_lost(mca_btl_umr_hca_t *hca)
{
    int events = 0, more;

    if (!hca->ended) {
        events += mca_btl_umr_keysets_poll(hca);
        do {
            more = NULL != hca->receives.srq ? poll_receives(hca) : 0;
            more += poll_queues(hca);
            events += more;
        } while (MCA_BTL_UMR_POLL <= more && !hca->ended);
        if (!hca->ended) {
            mca_btl_umr_hca_end(hca);
        }
    }
    events += NULL != hca->gpu.flusher ? mca_btl_umr_gpu_flush_poll(hca) : 0;
    return events + report_done(hca);
}

/** Progress of one HCA. Lock held, released for callbacks. @return events */
static inline int progress_hca(mca_btl_umr_hca_t *hca)
{
    bool undue, shared;
    int events = 0;

    if (OPAL_UNLIKELY(hca->lost)) {
        return progress_lost(hca);
    }
    if (0 < hca->refill.pending) {
        mca_btl_umr_refill(hca);
    }
    if (hca->mkeys.sq.posted != hca->mkeys.sq.done) {
        events += mca_btl_umr_keysets_poll(hca);
    }
    if (NULL != hca->keysets_waiting.head || !opal_list_is_empty(&hca->mkeys.invalid)) {
        mca_btl_umr_keysets_post(hca);
    }

    shared = NULL != hca->receives.srq;
    undue = 0 == ++hca->passes % MCA_BTL_UMR_UNDUE_PERIOD;
    if (shared && (0 < hca->receives.expected || undue)) {
        events += poll_receives(hca);
    }
    if (0 < hca->writes_out || (!shared && 0 < hca->receives.expected) || undue) {
        events += poll_queues(hca);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&hca->probing))) {
        mca_btl_umr_probes_look(hca);
    }
    if (OPAL_UNLIKELY(NULL != hca->gpu.flusher)) {
        events += mca_btl_umr_gpu_flush_poll(hca);
    }
    if (NULL != hca->keysets_done.head || !opal_list_is_empty(&hca->puts_done)) {
        events += report_done(hca);
    }
    if (0 == events && 0 == ++hca->receives.idle % MCA_BTL_UMR_LOOK_PERIOD) {
        mca_btl_umr_events_read(hca);
    }
    return events;
}

int mca_btl_umr_progress(void)
{
    int events = 0;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    for (uint32_t i = 0; i < mca_btl_umr.used_count; ++i) {
        events += progress_hca(mca_btl_umr.used[i]);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return events;
}
