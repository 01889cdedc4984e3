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

/**
 * Start one more HCA, if there is an entry for it.
 *
 * Messages may use any HCA, so the capabilities are those common to all: with one HCA without mkeys
 * all messages would go without mkeys.
 *
 * @param[in] without  one without UMR is wanted, too; false: it is noted in the candidate
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why set
 */
static int add_hca(mca_btl_umr_candidate_t *candidate, bool without)
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
    if (!without && !hca->caps.umr.usable) {
        candidate->no_umr = true;
        mca_btl_umr_refuse("%s", hca->caps.umr.why);
        mca_btl_umr_hca_stop(hca);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (hca->caps.umr.usable != mca_btl_umr_first()->caps.umr.usable) {
        mca_btl_umr_refuse("%s: only one of it and %s has UMR", hca->device.name,
                           mca_btl_umr_first()->device.name);
        mca_btl_umr_hca_stop(hca);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    ++mca_btl_umr.hca_count;
    MCA_BTL_UMR_VERBOSE(SETUP, "%s: used, %s, NUMA node %d%s, UMR: %s", hca->device.name,
                        hca->caps.port, hca->device.numa,
                        hca->device.at_gpu ? ", beside a GPU" : "",
                        hca->caps.umr.usable ? "yes" : hca->caps.umr.why);
    return OPAL_SUCCESS;
}

/** Log the ports in the order in which they are tried. */
static void log_candidates(const mca_btl_umr_candidate_t *candidates, int count)
{
    for (int i = 0; i < count; ++i) {
        MCA_BTL_UMR_VERBOSE(SETUP, "%s:%u: found, distance %u%s",
                            ibv_get_device_name(candidates[i].device), candidates[i].port,
                            candidates[i].distance,
                            candidates[i].spare ? "; only if no other one works"
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

static bool is_named(void)
{
    return NULL != mca_btl_umr_params.device && '\0' != mca_btl_umr_params.device[0];
}

/**
 * Start HCAs of these candidates, until there are as many as configured. Those with UMR first: one
 * without it in front must not exclude the others.
 *
 * @param[out] first_why  why the first one is not used, of @p size bytes
 */
static void start_some(mca_btl_umr_candidate_t *candidates, int count, char *first_why, size_t size)
{
    uint32_t wanted = mca_btl_umr_params.max_hcas;

    wanted = (uint32_t) count < wanted ? (uint32_t) count : wanted;
    mca_btl_umr.shares = wanted;
    for (int pass = 1 == count ? 1 : 0; pass < 2 && 0 == mca_btl_umr.hca_count; ++pass) {
        for (int i = 0; i < count && mca_btl_umr.hca_count < wanted; ++i) {
            if ((1 == pass && 1 < count && !candidates[i].no_umr)
                || OPAL_SUCCESS == add_hca(&candidates[i], 1 == pass)) {
                continue;
            }
            if (0 == i) {
                memcpy(first_why, mca_btl_umr.why, size);
            } else if (is_named() && !candidates[i].no_umr) {
                opal_output(0, "btl:umr: not used: %s", mca_btl_umr.why);
            } else {
                MCA_BTL_UMR_VERBOSE(SETUP, "not used: %s", mca_btl_umr.why);
            }
        }
    }
}

/** Start as many as configured and usable. @return OPAL_SUCCESS or OPAL_ERR_NOT_AVAILABLE */
static int start_all(mca_btl_umr_candidate_t *candidates, int count)
{
    char first_why[sizeof(mca_btl_umr.why)] = "", spare_why[sizeof(first_why)];
    int good = 0, rc;

    while (good < count && !candidates[good].spare) {
        ++good;
    }
    start_some(candidates, good, first_why, sizeof(first_why));
    if (0 == mca_btl_umr.hca_count && good < count) {
        start_some(candidates + good, count - good, spare_why, sizeof(spare_why));
    }
    if (0 < mca_btl_umr.hca_count) {
        mca_btl_umr_peers_start();
        common_fill();
        rc = mca_btl_umr_peers_publish();
        if (OPAL_SUCCESS == rc) {
            if (is_named() && !candidates[0].no_umr && '\0' != first_why[0]) {
                opal_output(0, "btl:umr: not used: %s", first_why);
            } else if ('\0' != first_why[0]) {
                MCA_BTL_UMR_VERBOSE(SETUP, "not used: %s", first_why);
            }
            return OPAL_SUCCESS;
        }
        memcpy(first_why, mca_btl_umr.why, sizeof(first_why));
        stop_all();
    }
    /* Report the reason of the first candidate, which is the preferred one. */
    memcpy(mca_btl_umr.why, first_why, sizeof(first_why));
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
    mca_btl_umr_order(candidates, count, is_named());
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
