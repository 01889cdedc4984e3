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
 * A helper thread creates mkeys before the pool is empty, so that no message waits for the system
 * calls.
 *
 * The first request starts it. Users of the HCA request a number of mkeys (one step, within the
 * limit) and continue. The thread creates them one by one and pushes each into a list. Users fetch
 * them when they need some, or in progress.
 *
 * The HCA's lock is a no-op in a single-threaded MPI process, so the helper does not use it:
 * requests have a mutex of their own, and the list of created mkeys is lock-free. The helper only
 * calls the device and reports a failure by a number. Log messages and counters stay with the
 * users. A user waits only at the limit, for the mkey that is being created
 * (mca_btl_umr_refill_halt).
 *
 * A fork also waits for the mkey that is being created; otherwise a lock of libmlx5 could stay
 * locked in the child. The child has no helper.
 */

#include "opal_config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_refill.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

#define MCA_BTL_UMR_REFILL_NAME "umr-mkeys"

void mca_btl_umr_refill_construct(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_refill_shared_t *shared = &hca->refill.shared;

    (void) pthread_mutex_init(&shared->lock, NULL);
    (void) pthread_cond_init(&shared->requested, NULL);
    (void) pthread_cond_init(&shared->quiet, NULL);
}

void mca_btl_umr_refill_destruct(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_refill_shared_t *shared = &hca->refill.shared;

    (void) pthread_mutex_destroy(&shared->lock);
    (void) pthread_cond_destroy(&shared->requested);
    (void) pthread_cond_destroy(&shared->quiet);
}

/* ------------------------------------------------------------------------------------------- *
 * The helper
 * ------------------------------------------------------------------------------------------- */

static void hand_over(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_hca_t *hca = mkey->hca;
    mca_btl_umr_mkey_t *others = __atomic_load_n(&hca->refill.shared.made, __ATOMIC_RELAXED);

    do {
        mkey->made_before = others;
    } while (!__atomic_compare_exchange_n(&hca->refill.shared.made, &others, mkey, true,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void *help(void *arg)
{
    mca_btl_umr_hca_t *hca = arg;
    (void) pthread_setname_np(pthread_self(), MCA_BTL_UMR_REFILL_NAME);

    pthread_mutex_lock(&hca->refill.shared.lock);
    while (!hca->refill.shared.stop) {
        uint32_t entries = hca->refill.shared.entries;
        bool update_tag = hca->refill.shared.update_tag;
        mca_btl_umr_mkey_t *mkey;
        int err;

        if (0 == hca->refill.shared.todo) {
            pthread_cond_wait(&hca->refill.shared.requested, &hca->refill.shared.lock);
            continue;
        }
        --hca->refill.shared.todo;
        hca->refill.shared.busy = true;
        pthread_mutex_unlock(&hca->refill.shared.lock);

        err = mca_btl_umr_mkey_make(hca, entries, update_tag, &mkey);
        if (0 == err) {
            hand_over(mkey);
        } else {
            __atomic_store_n(&hca->refill.shared.error, err, __ATOMIC_RELEASE);
        }

        pthread_mutex_lock(&hca->refill.shared.lock);
        if (0 != err) {
            hca->refill.shared.todo = 0; /* the next one would fail too */
        }
        hca->refill.shared.busy = false;
        pthread_cond_broadcast(&hca->refill.shared.quiet);
    }
    pthread_mutex_unlock(&hca->refill.shared.lock);
    return NULL;
}

/*
 * The locks are held through the fork, so no helper starts a creation. Every existing HCA has a
 * helper structure, in use or not; HCAs are created in init only.
 */
static void before_fork(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_HCAS && NULL != mca_btl_umr.hcas[i]; ++i) {
        mca_btl_umr_refill_shared_t *shared = &mca_btl_umr.hcas[i]->refill.shared;

        pthread_mutex_lock(&shared->lock);
        while (shared->busy) {
            pthread_cond_wait(&shared->quiet, &shared->lock);
        }
    }
}

static void after_fork_parent(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_HCAS && NULL != mca_btl_umr.hcas[i]; ++i) {
        pthread_mutex_unlock(&mca_btl_umr.hcas[i]->refill.shared.lock);
    }
}

static void after_fork_child(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_HCAS && NULL != mca_btl_umr.hcas[i]; ++i) {
        mca_btl_umr_refill_t *refill = &mca_btl_umr.hcas[i]->refill;

        refill->running = false;
        refill->low = 0;
        refill->shared.todo = 0;
        /* The helper still waits at the old ones. */
        (void) pthread_cond_init(&refill->shared.requested, NULL);
        (void) pthread_cond_init(&refill->shared.quiet, NULL);
        pthread_mutex_unlock(&refill->shared.lock);
    }
}

/** @return 0 or errno */
static int helper_start(mca_btl_umr_hca_t *hca)
{
    static bool fork_handled;
    sigset_t all, old;
    int err;

    if (!fork_handled) {
        err = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
        if (0 != err) {
            return err;
        }
        fork_handled = true;
    }
    hca->refill.shared.stop = false;
    /* Signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&hca->refill.thread, NULL, help, hca);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    hca->refill.running = 0 == err;
    return err;
}

/* ------------------------------------------------------------------------------------------- *
 * Users of the helper
 * ------------------------------------------------------------------------------------------- */

/** Fetch the created mkeys. @return number of them */
static size_t fetch(mca_btl_umr_hca_t *hca)
{
    /* In this order: the error is the last result of a request. */
    int err = __atomic_load_n(&hca->refill.shared.error, __ATOMIC_ACQUIRE);
    mca_btl_umr_mkey_t *mkey = __atomic_load_n(&hca->refill.shared.made, __ATOMIC_RELAXED);
    size_t count = 0;

    if (NULL != mkey) {
        mkey = __atomic_exchange_n(&hca->refill.shared.made, NULL, __ATOMIC_ACQUIRE);
    }
    while (NULL != mkey) {
        mca_btl_umr_mkey_t *next = mkey->made_before;

        mca_btl_umr_mkey_idle(mkey);
        mkey = next;
        ++count;
    }
    hca->mkeys.count += count;
    hca->refill.pending -= count;
    hca->stats.mkeys_created += count;
    hca->stats.mkeys_by_helper += count;
    hca->stats.mkeys_now += count;
    if (0 != err) {
        __atomic_store_n(&hca->refill.shared.error, 0, __ATOMIC_RELAXED);
        hca->refill.pending = 0;
        mca_btl_umr_mkeys_limit(hca, err);
    }
    return count;
}

/** True if too few mkeys are free for some role. */
static bool is_low(mca_btl_umr_hca_t *hca)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        if (hca->mkeys.used[role] + hca->refill.low > hca->mkeys.count / 2) {
            return true;
        }
    }
    return false;
}

void mca_btl_umr_refill(mca_btl_umr_hca_t *hca)
{
    size_t count = mca_btl_umr_params.mkeys_step;

    if (0 < hca->refill.pending) {
        (void) fetch(hca);
    }
    if (0 == hca->refill.low || 0 < hca->refill.pending || hca->mkeys.count >= hca->mkeys.bound.max
        || !is_low(hca)) {
        return;
    }
    if (!hca->refill.running) {
        int err = helper_start(hca);

        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "the helper thread for mkeys cannot be created: %s",
                            strerror(err));
            hca->refill.low = 0;
            return;
        }
    }
    count = hca->mkeys.bound.max - hca->mkeys.count < count
                ? hca->mkeys.bound.max - hca->mkeys.count
                : count;
    hca->refill.pending = count;

    pthread_mutex_lock(&hca->refill.shared.lock);
    hca->refill.shared.todo = count;
    hca->refill.shared.entries = hca->mkeys.entries;
    hca->refill.shared.update_tag = hca->device.update_tag;
    pthread_mutex_unlock(&hca->refill.shared.lock);
    pthread_cond_signal(&hca->refill.shared.requested);
}

void mca_btl_umr_refill_halt(mca_btl_umr_hca_t *hca)
{
    if (0 == hca->refill.pending) {
        return;
    }
    if (hca->refill.running) {
        pthread_mutex_lock(&hca->refill.shared.lock);
        hca->refill.shared.todo = 0;
        while (hca->refill.shared.busy) {
            pthread_cond_wait(&hca->refill.shared.quiet, &hca->refill.shared.lock);
        }
        pthread_mutex_unlock(&hca->refill.shared.lock);
    }
    (void) fetch(hca);
    hca->refill.pending = 0;
}

void mca_btl_umr_refill_start(mca_btl_umr_hca_t *hca)
{
    size_t made = mca_btl_umr_share(mca_btl_umr_params.mkeys, MCA_BTL_UMR_NEST_MKEYS), low;

    made = made < hca->mkeys.bound.max ? made : hca->mkeys.bound.max;
    low = made * mca_btl_umr_params.mkeys_low / 100 / MCA_BTL_UMR_ROLE_MAX;
    low = 0 == low && 0 < mca_btl_umr_params.mkeys_low ? 1 : low;
    hca->refill.low = 0 < hca->mkeys.count ? low : 0; /* 0 where the device has none at all */
    hca->refill.pending = 0;
}

void mca_btl_umr_refill_stop(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_refill_halt(hca);
    hca->refill.low = 0;
    if (hca->refill.running) {
        int err;

        pthread_mutex_lock(&hca->refill.shared.lock);
        hca->refill.shared.stop = true;
        pthread_cond_signal(&hca->refill.shared.requested);
        pthread_mutex_unlock(&hca->refill.shared.lock);
        err = pthread_join(hca->refill.thread, NULL);
        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "the helper thread for mkeys does not end: %s", strerror(err));
        }
        hca->refill.running = false;
    }
}

void mca_btl_umr_mkeys_limit(mca_btl_umr_hca_t *hca, int err)
{
    /* Pending requests count too, and may fail in the same way. */
    mca_btl_umr_refill_halt(hca);
    if (hca->mkeys.count < hca->mkeys.bound.max) {
        /* Continue with the existing mkeys, half for each role. */
        MCA_BTL_UMR_LOG(hca, "the device creates no more than %zu mkeys: %s", hca->mkeys.count,
                        strerror(err));
        mca_btl_umr_bound_refused(&hca->mkeys.bound, hca->mkeys.count);
    }
}
