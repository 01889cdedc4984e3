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
 * One card as a whole: brought up, taken down.
 */

#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"

void mca_btl_umr_card_construct(mca_btl_umr_card_t *card, uint32_t index)
{
    memset(card, 0, sizeof(*card));
    card->index = index;
    OBJ_CONSTRUCT(&card->memories, opal_list_t);
    OBJ_CONSTRUCT(&card->memories_idle, opal_list_t);
    OBJ_CONSTRUCT(&card->keysets, opal_list_t);
    OBJ_CONSTRUCT(&card->keysets_idle, opal_list_t);
    OBJ_CONSTRUCT(&card->keycache.kept, opal_list_t);
    OBJ_CONSTRUCT(&card->cqs, opal_list_t);
    OBJ_CONSTRUCT(&card->receives.draining, opal_list_t);
    OBJ_CONSTRUCT(&card->puts_done, opal_list_t);
    OBJ_CONSTRUCT(&card->puts_idle, opal_list_t);
    OBJ_CONSTRUCT(&card->mkeys.taken, opal_list_t);
    OBJ_CONSTRUCT(&card->mkeys.idle, opal_list_t);
    OBJ_CONSTRUCT(&card->mkeys.invalid, opal_list_t);
    mca_btl_umr_gpu_construct(card);
    mca_btl_umr_long_construct(card);
    mca_btl_umr_refill_construct(card);
}

void mca_btl_umr_card_destruct(mca_btl_umr_card_t *card)
{
    OBJ_DESTRUCT(&card->memories);
    OPAL_LIST_DESTRUCT(&card->memories_idle);
    OBJ_DESTRUCT(&card->keysets);
    OPAL_LIST_DESTRUCT(&card->keysets_idle);
    OBJ_DESTRUCT(&card->keycache.kept);
    OBJ_DESTRUCT(&card->cqs);
    OBJ_DESTRUCT(&card->receives.draining);
    OBJ_DESTRUCT(&card->puts_done);
    OPAL_LIST_DESTRUCT(&card->puts_idle);
    OBJ_DESTRUCT(&card->mkeys.taken);
    OBJ_DESTRUCT(&card->mkeys.idle);
    OBJ_DESTRUCT(&card->mkeys.invalid);
    mca_btl_umr_gpu_destruct(card);
    mca_btl_umr_long_destruct(card);
    mca_btl_umr_refill_destruct(card);
}

/** What the device can, once all of it is up. */
static void caps_fill(mca_btl_umr_card_t *card)
{
    mca_btl_umr_caps_t *caps = &card->caps;

    _Static_assert(sizeof(caps->device) == sizeof(card->device.name), "both name the device");
    memcpy(caps->device, card->device.name, sizeof(caps->device));
    caps->numa = card->device.numa;
    mca_btl_umr_limits_start(card);
    caps->write_pieces = mca_btl_umr_write_pieces(&card->device);
    if (caps->umr.usable) {
        caps->list_entries = card->mkeys.entries;
        caps->max_keys = card->mkeys.bound.max / 2;
        return;
    }
    caps->list_entries = 1;
    for (int kind = 0; kind < MCA_BTL_UMR_RUNG_MAX; ++kind) {
        snprintf(caps->rungs[kind].why, sizeof(caps->rungs[kind].why), "the device has no UMR");
    }
}

/**
 * The mkeys, seen to work. A device that has none is used without, unless peers are to have nothing
 * but mkeys.
 */
static int umr_start(mca_btl_umr_card_t *card)
{
    mca_btl_umr_rung_t *umr = &card->caps.umr;
    int rc;

    memset(&card->caps, 0, sizeof(card->caps));
    rc = mca_btl_umr_mkeys_start(card);
    if (OPAL_ERR_NOT_SUPPORTED == rc && mca_btl_umr_params.plain_keys) {
        snprintf(umr->why, sizeof(umr->why), "%.*s", (int) sizeof(umr->why) - 1, mca_btl_umr.why);
        card->mkeys.bound.max = 0;
        return OPAL_SUCCESS;
    }
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    umr->usable = true;
    if (mca_btl_umr_params.selftest) {
        rc = mca_btl_umr_selftest(card);
        if (OPAL_SUCCESS != rc) {
            mca_btl_umr_mkeys_stop(card);
        }
    }
    return rc;
}

int mca_btl_umr_card_start(mca_btl_umr_card_t *card, const mca_btl_umr_candidate_t *candidate)
{
    int rc;

    card->failed = false;
    rc = mca_btl_umr_device_open(candidate, &card->device);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = umr_start(card);
    if (OPAL_SUCCESS != rc) {
        goto close_device;
    }
    rc = mca_btl_umr_memory_start(card);
    if (OPAL_SUCCESS != rc) {
        goto stop_mkeys;
    }
    mca_btl_umr_endpoints_start(card);
    caps_fill(card);
    mca_btl_umr_refill_start(card);
    return OPAL_SUCCESS;

stop_mkeys:
    mca_btl_umr_mkeys_stop(card);
close_device:
    mca_btl_umr_device_close(&card->device);
    return OPAL_ERR_NOT_AVAILABLE;
}

/* Users first, then what they use: nothing of the device may be destroyed that something else of it
 * refers to. */
void mca_btl_umr_card_stop(mca_btl_umr_card_t *card)
{
    mca_btl_umr_endpoints_stop(card);
    mca_btl_umr_keysets_stop(card);
    mca_btl_umr_mkeys_stop(card);
    mca_btl_umr_memory_stop(card);
    mca_btl_umr_device_close(&card->device);
    memset(&card->caps, 0, sizeof(card->caps));
    card->used = false;
}
