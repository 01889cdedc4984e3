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
 * The list of HCAs of this process, and the table of functions.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_check.h"
#include "opal/mca/btl/umr/btl_umr_gpu_flush.h"
#include "opal/mca/btl/umr/btl_umr_loose.h"
#include "opal/mca/btl/umr/btl_umr_map.h"
#include "opal/mca/btl/umr/btl_umr_order.h"
#include "opal/mca/btl/umr/btl_umr_progress.h"
#include "opal/mca/btl/umr/btl_umr_put.h"
#include "opal/mca/btl/umr/btl_umr_put_sgl.h"
#include "opal/mca/btl/umr/btl_umr_rebuild.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"
#include "umrddt_help.h"

/* Always exists: holds the counters of a process without an HCA. */
static mca_btl_umr_hca_t first_hca;

void mca_btl_umr_construct(void)
{
    memset(&mca_btl_umr, 0, sizeof(mca_btl_umr));
    OBJ_CONSTRUCT(&mca_btl_umr.lock, opal_mutex_t);
    mca_btl_umr_hca_construct(&first_hca, 0);
    mca_btl_umr.hcas[0] = &first_hca;
    mca_btl_umr_refuse("not initialized");
}

/** Puts and keysets that are still in use are dropped without callbacks. */
static void stop_all(void)
{
    while (0 < mca_btl_umr.hca_count) {
        mca_btl_umr_hca_stop(mca_btl_umr.hcas[--mca_btl_umr.hca_count]);
    }
    mca_btl_umr.used_count = 0;
    mca_btl_umr_peers_stop();
    memset(mca_btl_umr.page_nodes, 0, sizeof(mca_btl_umr.page_nodes));
    memset(&mca_btl_umr.common, 0, sizeof(mca_btl_umr.common));
    mca_btl_umr.fin_handler = NULL;
    mca_btl_umr_refuse("closed");
}

void mca_btl_umr_destruct(void)
{
    if (0 < mca_btl_umr.users) {
        /* A user did not call fini: release the device's resources. */
        mca_btl_umr.users = 0;
        mca_btl_umr_check_stop();
        stop_all();
    }
    for (int i = 0; i < MCA_BTL_UMR_MAX_HCAS && NULL != mca_btl_umr.hcas[i]; ++i) {
        mca_btl_umr_hca_t *hca = mca_btl_umr.hcas[i];

        mca_btl_umr.hcas[i] = NULL;
        mca_btl_umr_hca_destruct(hca);
        if (&first_hca != hca) {
            free(hca);
        }
    }
    OBJ_DESTRUCT(&mca_btl_umr.lock);
}

/** The entry for one more HCA. @return NULL: out of memory */
static mca_btl_umr_hca_t *next_hca(void)
{
    uint32_t index = mca_btl_umr.hca_count;

    if (NULL == mca_btl_umr.hcas[index]) {
        mca_btl_umr_hca_t *hca = malloc(sizeof(*hca));

        if (NULL == hca) {
            return NULL;
        }
        mca_btl_umr_hca_construct(hca, index);
        mca_btl_umr.hcas[index] = hca;
    }
    return mca_btl_umr.hcas[index];
}

/** Note why a candidate is not used. (Without memory for the text there is none.) */
static void refused(mca_btl_umr_candidate_t *candidate)
{
    free(candidate->why);
    candidate->why = strdup(mca_btl_umr.why);
}

/** The HCA is open, but not used, since others have UMR. */
static void without_umr(mca_btl_umr_candidate_t *candidate, const mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_refuse("%s: the ports that are used have UMR: %s", hca->device.name,
                       hca->caps.umr.why);
    refused(candidate);
}

/** The HCAs started so far, and the candidate of each. */
typedef struct started_t {
    mca_btl_umr_candidate_t *of[MCA_BTL_UMR_MAX_HCAS];
    uint32_t wanted; /**< how many */
} started_t;

/**
 * Start one more HCA, if there is an entry for it.
 *
 * Messages may use any HCA, so the capabilities are those common to all: with one HCA without mkeys
 * all messages would go without mkeys. So the first one with UMR replaces those without it.
 *
 * @return OPAL_SUCCESS; OPAL_ERR_RESOURCE_BUSY: there are enough, and this one has no UMR either;
 *         else OPAL_ERR_NOT_AVAILABLE with why set
 */
static int add_hca(started_t *started, mca_btl_umr_candidate_t *candidate)
{
    mca_btl_umr_hca_t *hca = next_hca();
    int rc;

    if (NULL == hca) {
        mca_btl_umr_refuse("no memory for one more HCA");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    rc = mca_btl_umr_hca_start(hca, candidate);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (0 < mca_btl_umr.hca_count && hca->caps.umr.usable
        && !mca_btl_umr_first()->caps.umr.usable) {
        mca_btl_umr_hca_stop(hca);
        while (0 < mca_btl_umr.hca_count) {
            hca = mca_btl_umr.hcas[--mca_btl_umr.hca_count];
            without_umr(started->of[mca_btl_umr.hca_count], hca);
            mca_btl_umr_hca_stop(hca);
        }
        return add_hca(started, candidate);
    }
    if (0 < mca_btl_umr.hca_count && !hca->caps.umr.usable
        && mca_btl_umr_first()->caps.umr.usable) {
        without_umr(candidate, hca);
        mca_btl_umr_hca_stop(hca);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (started->wanted <= mca_btl_umr.hca_count) {
        mca_btl_umr_hca_stop(hca);
        return OPAL_ERR_RESOURCE_BUSY;
    }
    started->of[mca_btl_umr.hca_count++] = candidate;
    return OPAL_SUCCESS;
}

/** Log the ports in the order in which they are tried. */
static void log_candidates(const mca_btl_umr_candidate_t *candidates, int count)
{
    for (int i = 0; i < count; ++i) {
        MCA_BTL_UMR_VERBOSE(SETUP, "%s:%u: found, distance %u%s",
                            ibv_get_device_name(candidates[i].device), candidates[i].port,
                            candidates[i].distance,
                            candidates[i].down    ? "; down"
                            : candidates[i].spare ? "; only if no other one works"
                            : i < (int) mca_btl_umr_params.max_hcas
                                ? ""
                                : "; tried only if another one fails (btl_umr_max_hcas)");
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** Compute the capabilities common to all HCAs. */
static void common_fill(void)
{
    mca_btl_umr_caps_t *common = &mca_btl_umr.common;

    *common = mca_btl_umr_first()->caps;
    for (uint32_t i = 1; i < mca_btl_umr.hca_count; ++i) {
        const mca_btl_umr_caps_t *caps = &mca_btl_umr.hcas[i]->caps;

        common->key_limits.max_iovs =
            smaller(common->key_limits.max_iovs, caps->key_limits.max_iovs);
        common->key_limits.max_bytes =
            smaller(common->key_limits.max_bytes, caps->key_limits.max_bytes);
        common->list_entries = smaller(common->list_entries, caps->list_entries);
        common->max_keys = smaller(common->max_keys, caps->max_keys);
        common->write_pieces = smaller(common->write_pieces, caps->write_pieces);
        for (int kind = 0; kind < MCA_BTL_UMR_TIER_MAX; ++kind) {
            if (common->tiers[kind].usable) {
                common->tiers[kind] = caps->tiers[kind];
            }
        }
    }
}

/** Start HCAs of these candidates, until there are as many as configured. */
static void start_some(mca_btl_umr_candidate_t *candidates, int count)
{
    started_t started = {.wanted = mca_btl_umr_params.max_hcas};
    uint32_t up = 0;

    started.wanted = (uint32_t) count < started.wanted ? (uint32_t) count : started.wanted;
    /* Ports that are down come last. They are tried, but they get no share. */
    while (up < started.wanted && !candidates[up].down) {
        ++up;
    }
    mca_btl_umr.shares = 0 < up ? up : started.wanted;
    for (int i = 0; i < count; ++i) {
        /* As long as none has UMR, the others may have it. */
        if (started.wanted <= mca_btl_umr.hca_count
            && (MCA_BTL_UMR_MAX_HCAS <= mca_btl_umr.hca_count
                || mca_btl_umr_first()->caps.umr.usable)) {
            break;
        }
        if (OPAL_ERR_NOT_AVAILABLE == add_hca(&started, &candidates[i])) {
            refused(&candidates[i]);
        }
    }
}

/** Log the ports that are used, and the reason of each one that was tried and is not. */
static void log_started(const mca_btl_umr_candidate_t *candidates, int count)
{
    for (uint32_t i = 0; i < mca_btl_umr.hca_count; ++i) {
        const mca_btl_umr_hca_t *hca = mca_btl_umr.hcas[i];

        MCA_BTL_UMR_VERBOSE(SETUP, "%s: used, %s, NUMA node %d%s, UMR: %s", hca->device.name,
                            hca->caps.port, hca->device.numa,
                            hca->device.at_gpu ? ", beside a GPU" : "",
                            hca->caps.umr.usable ? "yes" : hca->caps.umr.why);
        if (hca->umr_failed) {
            umrddt_show_help("help-btl-umr.txt", "umr-failed", true, opal_process_info.nodename,
                             hca->caps.umr.why);
        }
    }
    for (int i = 0; i < count; ++i) {
        if (NULL != candidates[i].why && mca_btl_umr_device_named()) {
            opal_output(0, "btl:umr: not used: %s", candidates[i].why);
        } else if (NULL != candidates[i].why) {
            MCA_BTL_UMR_VERBOSE(SETUP, "not used: %s", candidates[i].why);
        }
    }
}

/** Start as many as configured and usable. @return OPAL_SUCCESS or OPAL_ERR_NOT_AVAILABLE */
static int start_all(mca_btl_umr_candidate_t *candidates, int count)
{
    int good = 0;

    while (good < count && !candidates[good].spare) {
        ++good;
    }
    start_some(candidates, good);
    if (0 == mca_btl_umr.hca_count && good < count) {
        start_some(candidates + good, count - good);
    }
    if (0 < mca_btl_umr.hca_count) {
        mca_btl_umr_peers_start();
        common_fill();
        if (OPAL_SUCCESS == mca_btl_umr_peers_publish()) {
            log_started(candidates, count);
            return OPAL_SUCCESS;
        }
        refused(&candidates[0]);
        stop_all();
    }
    /* The message has the reason of the first candidate, which is the preferred one. */
    if (NULL != candidates[0].why) {
        mca_btl_umr_refuse("%s", candidates[0].why);
    }
    log_started(candidates + 1, count - 1);
    return OPAL_ERR_NOT_AVAILABLE;
}

static int mca_btl_umr_init(void)
{
    mca_btl_umr_candidate_t *candidates = NULL;
    struct ibv_device **list = NULL;
    int count, rc = OPAL_ERR_NOT_AVAILABLE;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (0 < mca_btl_umr.users) {
        ++mca_btl_umr.users;
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_SUCCESS;
    }
    if (mca_btl_umr.refused) {
        /* A repeated init: same result, no second message. */
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_NOT_AVAILABLE;
    }

    mca_btl_umr_params_check();
    count = mca_btl_umr_device_candidates(&list, &candidates);
    mca_btl_umr_order(candidates, count, mca_btl_umr_device_named());
    log_candidates(candidates, count);
    if (0 < count) {
        rc = mca_btl_umr_device_fork();
        if (OPAL_SUCCESS == rc) {
            rc = start_all(candidates, count);
        }
        if (OPAL_SUCCESS != rc) {
            opal_show_help("help-btl-umr.txt", "hca unusable", true, opal_process_info.nodename,
                           mca_btl_umr.why);
        }
    }
    if (OPAL_SUCCESS == rc) {
        mca_btl_umr.users = 1;
        mca_btl_umr.why[0] = '\0';
        mca_btl_umr_check_start();
    } else {
        mca_btl_umr.refused = true;
        MCA_BTL_UMR_VERBOSE(SETUP, "no HCA: %s", mca_btl_umr.why);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);

    for (int i = 0; i < count; ++i) {
        free(candidates[i].why);
    }
    free(candidates);
    if (NULL != list) {
        ibv_free_device_list(list);
    }
    return rc;
}

static void mca_btl_umr_fini(void)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (0 < mca_btl_umr.users && 0 == --mca_btl_umr.users) {
        /* After each look again from the first one: the lock was released. */
        for (uint32_t i = 0; i < mca_btl_umr.hca_count;) {
            if (0 < mca_btl_umr.hcas[i]->commands) {
                mca_btl_umr_commands_look(mca_btl_umr.hcas[i]);
                i = 0;
            } else {
                ++i;
            }
        }
        if (0 < mca_btl_umr_params.check) {
            mca_btl_umr_check_stop();
            mca_btl_umr_check();
        }
        stop_all();
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

static const char *mca_btl_umr_why_not(void)
{
    return mca_btl_umr.why;
}

static const mca_btl_umr_caps_t *mca_btl_umr_caps(void)
{
    return &mca_btl_umr.common;
}

static bool mca_btl_umr_hca(unsigned int index, const mca_btl_umr_caps_t **caps,
                            const mca_btl_umr_stats_t **stats)
{
    if (index >= mca_btl_umr.hca_count) {
        return false;
    }
    if (NULL != caps) {
        *caps = &mca_btl_umr.hcas[index]->caps;
    }
    if (NULL != stats) {
        *stats = &mca_btl_umr.hcas[index]->stats;
    }
    return true;
}

static uint32_t mca_btl_umr_gpu_distance(unsigned int index, int gpu)
{
    uint32_t distance = MCA_BTL_UMR_GPU_FAR;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (index < mca_btl_umr.hca_count) {
        distance = mca_btl_umr_topology_gpu(&mca_btl_umr.hcas[index]->device, gpu);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return distance;
}

static const mca_btl_umr_stats_t *mca_btl_umr_stats(void)
{
    enum {
        COUNTERS = sizeof(mca_btl_umr_stats_t) / sizeof(uint64_t)
    };
    uint64_t sum[COUNTERS] = {0};

    if (NULL == mca_btl_umr.hcas[1]) {
        return &mca_btl_umr_first()->stats;
    }
    /* Include closed HCAs, since counters only grow. */
    for (int i = 0; i < MCA_BTL_UMR_MAX_HCAS && NULL != mca_btl_umr.hcas[i]; ++i) {
        uint64_t one[COUNTERS];

        memcpy(one, &mca_btl_umr.hcas[i]->stats, sizeof(one));
        for (int k = 0; k < COUNTERS; ++k) {
            sum[k] += one[k];
        }
    }
    memcpy(&mca_btl_umr.sum, sum, sizeof(sum));
    return &mca_btl_umr.sum;
}

static void mca_btl_umr_set_fin_handler(mca_btl_umr_fin_fn_t handler, void *context)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    mca_btl_umr.fin_handler = handler;
    mca_btl_umr.fin_context = context;
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

const mca_btl_umr_hca_ops_t mca_btl_umr_hca_ops = {
    .init = mca_btl_umr_init,
    .fini = mca_btl_umr_fini,
    .why_not = mca_btl_umr_why_not,
    .caps = mca_btl_umr_caps,
    .hca = mca_btl_umr_hca,
    .gpu_distance = mca_btl_umr_gpu_distance,
    .key_limits = mca_btl_umr_key_limits,
    .stats = mca_btl_umr_stats,
    .set_fin_handler = mca_btl_umr_set_fin_handler,
    .endpoint_get = mca_btl_umr_endpoint_get,
    .endpoint_near = mca_btl_umr_endpoint_near,
    .endpoint_at = mca_btl_umr_endpoint_at,
    .endpoints_beside = mca_btl_umr_endpoints_beside,
    .endpoint_address = mca_btl_umr_endpoint_address,
    .endpoint_connect = mca_btl_umr_endpoint_connect,
    .endpoint_broken = mca_btl_umr_endpoint_broken,
    .endpoint_refuses = mca_btl_umr_endpoint_refuses,
    .endpoint_refused = mca_btl_umr_endpoint_refused,
    .endpoint_break = mca_btl_umr_endpoint_break,
    .fin_reserve = mca_btl_umr_fin_reserve,
    .fin_cancel = mca_btl_umr_fin_cancel,
    .memory_register = mca_btl_umr_memory_register,
    .memory_register_at = mca_btl_umr_memory_register_at,
    .gpu_reachable = mca_btl_umr_gpu_reachable,
    .memory_register_gpu = mca_btl_umr_gpu_register,
    .memory_flush = mca_btl_umr_gpu_flush,
    .memory_release = mca_btl_umr_memory_release,
    .memory_let_go = mca_btl_umr_memory_let_go,
    .keyset_lookup = mca_btl_umr_keyset_lookup,
    .keyset_map = mca_btl_umr_keyset_map,
    .keyset_release = mca_btl_umr_keyset_release,
    .keyset_keep = mca_btl_umr_keyset_keep,
    .put = mca_btl_umr_put,
    .memory_regions = mca_btl_umr_memory_regions,
    .put_direct = mca_btl_umr_put_direct,
    .progress = mca_btl_umr_progress,
};
