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
 * A helper thread makes mkeys before the pool has none left, so that no message waits for the
 * system calls that this takes.
 *
 * It is started when it is wanted for the first time. Users of the card ask it for a number of
 * mkeys (one step, never more than may exist), and go on. It makes them one by one and hangs each
 * into a list, from which the users fetch them when they next need some, or in progress.
 *
 * The card's lock is none in a process that promised MPI to have one thread, so the helper takes no
 * part in it: what is asked for has a mutex of its own, what was made is a list without any. It
 * does nothing but call the device and reports what went wrong by a number. So messages and books
 * stay with the users, and only they ever wait: where all that may still exist was asked for, for
 * the one that is being made (mca_btl_umr_refill_halt).
 *
 * A fork waits for the one that is being made, too, lest a lock of libmlx5 stay locked in the child
 * for ever. The child has no helper.
 */

#include "opal_config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"

#define MCA_BTL_UMR_REFILL_NAME "umr-mkeys"

void mca_btl_umr_refill_construct(mca_btl_umr_card_t *card)
{
    mca_btl_umr_refill_shared_t *shared = &card->refill.shared;

    (void) pthread_mutex_init(&shared->lock, NULL);
    (void) pthread_cond_init(&shared->asked, NULL);
    (void) pthread_cond_init(&shared->quiet, NULL);
}

void mca_btl_umr_refill_destruct(mca_btl_umr_card_t *card)
{
    mca_btl_umr_refill_shared_t *shared = &card->refill.shared;

    (void) pthread_mutex_destroy(&shared->lock);
    (void) pthread_cond_destroy(&shared->asked);
    (void) pthread_cond_destroy(&shared->quiet);
}

/* ------------------------------------------------------------------------------------------- *
 * The helper
 * ------------------------------------------------------------------------------------------- */

static void hand_over(mca_btl_umr_mkey_t *mkey)
{
    mca_btl_umr_card_t *card = mkey->card;
    mca_btl_umr_mkey_t *others = __atomic_load_n(&card->refill.shared.made, __ATOMIC_RELAXED);

    do {
        mkey->made_before = others;
    } while (!__atomic_compare_exchange_n(&card->refill.shared.made, &others, mkey, true,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void *help(void *arg)
{
    mca_btl_umr_card_t *card = arg;
    (void) pthread_setname_np(pthread_self(), MCA_BTL_UMR_REFILL_NAME);

    pthread_mutex_lock(&card->refill.shared.lock);
    while (!card->refill.shared.stop) {
        uint32_t entries = card->refill.shared.entries;
        bool update_tag = card->refill.shared.update_tag;
        mca_btl_umr_mkey_t *mkey;
        int err;

        if (0 == card->refill.shared.todo) {
            pthread_cond_wait(&card->refill.shared.asked, &card->refill.shared.lock);
            continue;
        }
        --card->refill.shared.todo;
        card->refill.shared.busy = true;
        pthread_mutex_unlock(&card->refill.shared.lock);

        err = mca_btl_umr_mkey_make(card, entries, update_tag, &mkey);
        if (0 == err) {
            hand_over(mkey);
        } else {
            __atomic_store_n(&card->refill.shared.error, err, __ATOMIC_RELEASE);
        }

        pthread_mutex_lock(&card->refill.shared.lock);
        if (0 != err) {
            card->refill.shared.todo = 0; /* the next one would fail as well */
        }
        card->refill.shared.busy = false;
        pthread_cond_broadcast(&card->refill.shared.quiet);
    }
    pthread_mutex_unlock(&card->refill.shared.lock);
    return NULL;
}

/* The locks are held through the fork, so no helper begins anything. Every card that was ever made
 * has one, in use or not; none is made in between, since that happens in init only. */
static void before_fork(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_CARDS && NULL != mca_btl_umr.cards[i]; ++i) {
        mca_btl_umr_refill_shared_t *shared = &mca_btl_umr.cards[i]->refill.shared;

        pthread_mutex_lock(&shared->lock);
        while (shared->busy) {
            pthread_cond_wait(&shared->quiet, &shared->lock);
        }
    }
}

static void after_fork_parent(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_CARDS && NULL != mca_btl_umr.cards[i]; ++i) {
        pthread_mutex_unlock(&mca_btl_umr.cards[i]->refill.shared.lock);
    }
}

static void after_fork_child(void)
{
    for (int i = 0; i < MCA_BTL_UMR_MAX_CARDS && NULL != mca_btl_umr.cards[i]; ++i) {
        mca_btl_umr_refill_t *refill = &mca_btl_umr.cards[i]->refill;

        refill->running = false;
        refill->low = 0;
        refill->shared.todo = 0;
        /* The helper waits at the old ones. */
        (void) pthread_cond_init(&refill->shared.asked, NULL);
        (void) pthread_cond_init(&refill->shared.quiet, NULL);
        pthread_mutex_unlock(&refill->shared.lock);
    }
}

/** @return 0, or errno */
static int helper_start(mca_btl_umr_card_t *card)
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
    card->refill.shared.stop = false;
    /* Signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&card->refill.thread, NULL, help, card);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    card->refill.running = 0 == err;
    return err;
}

/* ------------------------------------------------------------------------------------------- *
 * Its users
 * ------------------------------------------------------------------------------------------- */

/** Take what was made. @return how many */
static size_t fetch(mca_btl_umr_card_t *card)
{
    /* In this order: the error is the last that is heard of what was asked for. */
    int err = __atomic_load_n(&card->refill.shared.error, __ATOMIC_ACQUIRE);
    mca_btl_umr_mkey_t *mkey = __atomic_load_n(&card->refill.shared.made, __ATOMIC_RELAXED);
    size_t count = 0;

    if (NULL != mkey) {
        mkey = __atomic_exchange_n(&card->refill.shared.made, NULL, __ATOMIC_ACQUIRE);
    }
    while (NULL != mkey) {
        mca_btl_umr_mkey_t *next = mkey->made_before;

        mca_btl_umr_mkey_idle(mkey);
        mkey = next;
        ++count;
    }
    card->mkeys.count += count;
    card->refill.pending -= count;
    card->stats.mkeys_created += count;
    card->stats.mkeys_by_helper += count;
    card->stats.mkeys_now += count;
    if (0 != err) {
        __atomic_store_n(&card->refill.shared.error, 0, __ATOMIC_RELAXED);
        card->refill.pending = 0;
        mca_btl_umr_mkeys_limit(card, err);
    }
    return count;
}

/** Fewer than wanted are free for some role. */
static bool is_low(mca_btl_umr_card_t *card)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        if (card->mkeys.used[role] + card->refill.low > card->mkeys.count / 2) {
            return true;
        }
    }
    return false;
}

void mca_btl_umr_refill(mca_btl_umr_card_t *card)
{
    size_t count = mca_btl_umr_params.mkeys_step;

    if (0 < card->refill.pending) {
        (void) fetch(card);
    }
    if (0 == card->refill.low || 0 < card->refill.pending
        || card->mkeys.count >= card->mkeys.bound.max || !is_low(card)) {
        return;
    }
    if (!card->refill.running) {
        int err = helper_start(card);

        if (0 != err) {
            MCA_BTL_UMR_LOG(card, "no thread that makes mkeys: %s", strerror(err));
            card->refill.low = 0;
            return;
        }
    }
    count = card->mkeys.bound.max - card->mkeys.count < count
                ? card->mkeys.bound.max - card->mkeys.count
                : count;
    card->refill.pending = count;

    pthread_mutex_lock(&card->refill.shared.lock);
    card->refill.shared.todo = count;
    card->refill.shared.entries = card->mkeys.entries;
    card->refill.shared.update_tag = card->device.update_tag;
    pthread_mutex_unlock(&card->refill.shared.lock);
    pthread_cond_signal(&card->refill.shared.asked);
}

void mca_btl_umr_refill_halt(mca_btl_umr_card_t *card)
{
    if (0 == card->refill.pending) {
        return;
    }
    if (card->refill.running) {
        pthread_mutex_lock(&card->refill.shared.lock);
        card->refill.shared.todo = 0;
        while (card->refill.shared.busy) {
            pthread_cond_wait(&card->refill.shared.quiet, &card->refill.shared.lock);
        }
        pthread_mutex_unlock(&card->refill.shared.lock);
    }
    (void) fetch(card);
    card->refill.pending = 0;
}

void mca_btl_umr_refill_start(mca_btl_umr_card_t *card)
{
    size_t made = mca_btl_umr_share(mca_btl_umr_params.mkeys, MCA_BTL_UMR_NEST_MKEYS), low;

    made = made < card->mkeys.bound.max ? made : card->mkeys.bound.max;
    low = made * mca_btl_umr_params.mkeys_low / 100 / MCA_BTL_UMR_ROLE_MAX;
    low = 0 == low && 0 < mca_btl_umr_params.mkeys_low ? 1 : low;
    card->refill.low = 0 < card->mkeys.count ? low : 0; /* not where the device has none at all */
    card->refill.pending = 0;
}

void mca_btl_umr_refill_stop(mca_btl_umr_card_t *card)
{
    mca_btl_umr_refill_halt(card);
    card->refill.low = 0;
    if (card->refill.running) {
        int err;

        pthread_mutex_lock(&card->refill.shared.lock);
        card->refill.shared.stop = true;
        pthread_cond_signal(&card->refill.shared.asked);
        pthread_mutex_unlock(&card->refill.shared.lock);
        err = pthread_join(card->refill.thread, NULL);
        if (0 != err) {
            MCA_BTL_UMR_LOG(card, "the thread that makes mkeys does not end: %s", strerror(err));
        }
        card->refill.running = false;
    }
}
