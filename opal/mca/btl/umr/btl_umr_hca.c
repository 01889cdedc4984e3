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
 * Start and stop of one HCA.
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_event.h"
#include "opal/mca/btl/umr/btl_umr_map.h"
#include "opal/mca/btl/umr/btl_umr_selftest.h"
#include "opal/mca/btl/umr/btl_umr_tiers.h"

/**
 * Keys that wait for an invalidation, lost it, or were cached must not stay usable for a peer.
 */
static void maps_failed(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_keycache_empty(hca);
    mca_btl_umr_mkeys_destroy_idle(hca);
    if (1 < mca_btl_umr.hca_count) {
        mca_btl_umr_endpoints_fail(hca); /* other HCAs can map keys */
    }
}

static const mca_btl_umr_hca_events_t events = {
    .reg_ends = mca_btl_umr_keycache_forget_reg,
    .maps_failed = maps_failed,
};

void mca_btl_umr_hca_construct(mca_btl_umr_hca_t *hca, uint32_t index)
{
    memset(hca, 0, sizeof(*hca));
    hca->index = index;
    hca->events = &events;
    OBJ_CONSTRUCT(&hca->memories, opal_list_t);
    OBJ_CONSTRUCT(&hca->memories_idle, opal_list_t);
    OBJ_CONSTRUCT(&hca->keysets, opal_list_t);
    OBJ_CONSTRUCT(&hca->keysets_idle, opal_list_t);
    OBJ_CONSTRUCT(&hca->keycache.cached, opal_list_t);
    OBJ_CONSTRUCT(&hca->cqs, opal_list_t);
    OBJ_CONSTRUCT(&hca->probing, opal_list_t);
    OBJ_CONSTRUCT(&hca->receives.draining, opal_list_t);
    OBJ_CONSTRUCT(&hca->puts_done, opal_list_t);
    OBJ_CONSTRUCT(&hca->puts_idle, opal_list_t);
    OBJ_CONSTRUCT(&hca->mkeys.taken, opal_list_t);
    OBJ_CONSTRUCT(&hca->mkeys.idle, opal_list_t);
    OBJ_CONSTRUCT(&hca->mkeys.invalid, opal_list_t);
    mca_btl_umr_gpu_construct(hca);
    mca_btl_umr_klm_construct(hca);
    mca_btl_umr_refill_construct(hca);
}

void mca_btl_umr_hca_destruct(mca_btl_umr_hca_t *hca)
{
    OBJ_DESTRUCT(&hca->memories);
    OPAL_LIST_DESTRUCT(&hca->memories_idle);
    OBJ_DESTRUCT(&hca->keysets);
    OPAL_LIST_DESTRUCT(&hca->keysets_idle);
    OBJ_DESTRUCT(&hca->keycache.cached);
    OBJ_DESTRUCT(&hca->cqs);
    OBJ_DESTRUCT(&hca->probing);
    OBJ_DESTRUCT(&hca->receives.draining);
    OBJ_DESTRUCT(&hca->puts_done);
    OPAL_LIST_DESTRUCT(&hca->puts_idle);
    OBJ_DESTRUCT(&hca->mkeys.taken);
    OBJ_DESTRUCT(&hca->mkeys.idle);
    OBJ_DESTRUCT(&hca->mkeys.invalid);
    mca_btl_umr_gpu_destruct(hca);
    mca_btl_umr_klm_destruct(hca);
    mca_btl_umr_refill_destruct(hca);
}

/** Describe the port: "RoCE v2, 100 Gb/s, GID 3 (::ffff:10.1.2.3), pkey 0xffff, ..." */
static void describe_port(const mca_btl_umr_device_t *device, char *text, size_t size)
{
    bool ethernet = IBV_LINK_LAYER_ETHERNET == device->port_attr.link_layer;
    char gid[INET6_ADDRSTRLEN] = "", rate[32] = "";
    int used;

    (void) inet_ntop(AF_INET6, device->gid.raw, gid, sizeof(gid));
    if (0 < device->rate) {
        snprintf(rate, sizeof(rate), ", %u Gb/s", device->rate / 10);
    }
    used = snprintf(text, size, "%s%s, GID %u (%s), pkey 0x%04x, service level %u",
                    !ethernet         ? "InfiniBand"
                    : device->roce_v1 ? "RoCE v1"
                                      : "RoCE v2",
                    rate, device->gid_index, gid, device->pkey, device->service_level);
    if (ethernet && 0 < used && size > (size_t) used) {
        snprintf(text + used, size - (size_t) used, ", traffic class %u", device->traffic_class);
    }
}

/** Fill in the capabilities after all parts are started. */
static void caps_fill(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_caps_t *caps = &hca->caps;

    _Static_assert(sizeof(caps->device) == sizeof(hca->device.name), "both name the device");
    memcpy(caps->device, hca->device.name, sizeof(caps->device));
    caps->numa = hca->device.numa;
    describe_port(&hca->device, caps->port, sizeof(caps->port));
    mca_btl_umr_limits_start(hca);
    caps->write_pieces = mca_btl_umr_write_pieces(&hca->device);
    if (caps->umr.usable) {
        caps->list_entries = hca->mkeys.entries;
        caps->max_keys = hca->mkeys.bound.max / 2;
        return;
    }
    caps->list_entries = 1;
    for (int kind = 0; kind < MCA_BTL_UMR_TIER_MAX; ++kind) {
        snprintf(caps->tiers[kind].why, sizeof(caps->tiers[kind].why), "the device has no UMR");
    }
}

/** Use the device without mkeys, for the reason in why_not. Its last capability is tested here. */
static int plain_start(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_tier_t *umr = &hca->caps.umr;

    memset(&hca->caps, 0, sizeof(hca->caps));
    snprintf(umr->why, sizeof(umr->why), "%.*s", (int) sizeof(umr->why) - 1, mca_btl_umr.why);
    hca->mkeys.bound.max = 0;
    return mca_btl_umr_params.selftest ? mca_btl_umr_selftest_plain(hca) : OPAL_SUCCESS;
}

/**
 * Start the mkeys and run the self-test. A device without mkeys, or whose mkeys fail the test, is
 * used without them, unless btl_umr_plain_keys is 0.
 */
static int umr_start(mca_btl_umr_hca_t *hca)
{
    int rc;

    memset(&hca->caps, 0, sizeof(hca->caps));
    hca->umr_failed = false;
    rc = mca_btl_umr_mkeys_start(hca);
    if (OPAL_SUCCESS == rc) {
        mca_btl_umr_strided_start(hca);
        mca_btl_umr_nested_start(hca);
        hca->caps.umr.usable = true;
        if (!mca_btl_umr_params.selftest || OPAL_SUCCESS == mca_btl_umr_selftest(hca)) {
            return OPAL_SUCCESS;
        }
        mca_btl_umr_mkeys_stop(hca);
        rc = OPAL_ERR_NOT_SUPPORTED;
        hca->umr_failed = true;
    }
    return OPAL_ERR_NOT_SUPPORTED == rc && mca_btl_umr_params.plain_keys ? plain_start(hca) : rc;
}

int mca_btl_umr_hca_start(mca_btl_umr_hca_t *hca, const mca_btl_umr_candidate_t *candidate)
{
    int rc;

    hca->failed = hca->lost = hca->ended = false;
    hca->events_noted = 0;
    rc = mca_btl_umr_device_open(candidate, &hca->device);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = mca_btl_umr_events_start(hca);
    if (OPAL_SUCCESS == rc) {
        rc = umr_start(hca);
    }
    if (OPAL_SUCCESS != rc) {
        goto close_device;
    }
    rc = mca_btl_umr_memory_start(hca);
    if (OPAL_SUCCESS != rc) {
        goto stop_mkeys;
    }
    mca_btl_umr_endpoints_start(hca);
    caps_fill(hca);
    mca_btl_umr_refill_start(hca);
    return OPAL_SUCCESS;

stop_mkeys:
    mca_btl_umr_mkeys_stop(hca);
close_device:
    mca_btl_umr_device_close(&hca->device);
    return OPAL_ERR_NOT_AVAILABLE;
}

/*
 * Users first, then the resources that they use: the device does not allow destroying a resource
 * that another one refers to.
 */
void mca_btl_umr_hca_stop(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_endpoints_stop(hca);
    mca_btl_umr_keysets_stop(hca);
    mca_btl_umr_mkeys_stop(hca);
    mca_btl_umr_memory_stop(hca);
    mca_btl_umr_device_close(&hca->device);
    memset(&hca->caps, 0, sizeof(hca->caps));
    hca->used = false;
}
