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
 * The order of the ports: GPUs, CPUs, rates. All of it comes from files of the kernel, so no device
 * is opened and the CUDA driver is not loaded.
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_order.h"

/** Read the rate ("100 Gb/sec (4X EDR)") and the link layer. */
static void read_link(mca_btl_umr_candidate_t *candidate)
{
    unsigned int port = 0 == candidate->port ? 1 : candidate->port;
    char name[64], line[64];

    snprintf(name, sizeof(name), "ports/%u/rate", port);
    if (mca_btl_umr_topology_read(candidate->device->ibdev_path, name, line, sizeof(line))) {
        candidate->rate = (uint32_t) (10 * strtod(line, NULL));
    }
    snprintf(name, sizeof(name), "ports/%u/link_layer", port);
    if (mca_btl_umr_topology_read(candidate->device->ibdev_path, name, line, sizeof(line))) {
        candidate->ethernet = 0 == strcmp(line, "Ethernet");
    }
}

/**
 * The GPU that this process is expected to use, of those of the node in the order of their
 * addresses: the only one of CUDA_VISIBLE_DEVICES, else the one with the number of the process on
 * its node. If the process is bound to CPUs far from that one, the GPUs near to it take turns.
 *
 * @return -1: unknown
 */
static int own_gpu(const mca_btl_umr_gpus_t *gpus)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int visible[MCA_BTL_UMR_GPUS], near[MCA_BTL_UMR_GPUS];
    unsigned int count = 0, near_count = 0, turn = (unsigned int) opal_process_info.my_local_rank;

    for (int i = 0; NULL == text && i < gpus->count; ++i) {
        visible[count++] = i;
    }
    while (NULL != text && MCA_BTL_UMR_GPUS > count) {
        char *end;
        long number = strtol(text, &end, 10);

        if (end == text || 0 > number || gpus->count <= number || ('\0' != *end && ',' != *end)) {
            break; /* names of other kinds need the driver */
        }
        visible[count++] = (int) number;
        text = ',' == *end ? end + 1 : NULL;
    }
    if (0 == count) {
        return -1;
    }
    if (1 == count || !gpus->far[visible[turn % count]]) {
        return visible[turn % count];
    }
    for (unsigned int i = 0; i < count; ++i) {
        if (!gpus->far[visible[i]]) {
            near[near_count++] = visible[i];
        }
    }
    return 0 == near_count ? visible[turn % count] : near[turn % near_count];
}

/** Set the distance to this process's GPU, and mark the ports that are the nearest of some GPU. */
static void look_at_gpus(mca_btl_umr_candidate_t *candidates, int count)
{
    mca_btl_umr_gpus_t gpus;
    uint32_t *distances;
    int own;

    mca_btl_umr_topology_gpus(candidates[0].device, &gpus);
    own = own_gpu(&gpus);
    distances = malloc((size_t) count * sizeof(*distances));
    for (int gpu = 0; NULL != distances && gpu < gpus.count; ++gpu) {
        uint32_t least = MCA_BTL_UMR_GPU_FAR, most = 0;

        for (int i = 0; i < count; ++i) {
            distances[i] = mca_btl_umr_topology_bus(candidates[i].device, gpus.bus_id[gpu]);
            least = distances[i] < least ? distances[i] : least;
            most = distances[i] > most ? distances[i] : most;
        }
        for (int i = 0; i < count; ++i) {
            if (least < most && distances[i] == least) {
                candidates[i].at_gpu = true;
            }
            if (gpu == own) {
                candidates[i].gpu_distance = distances[i];
            }
        }
    }
    free(distances);
}

/** @return < 0: a is better; 0: equal */
static int64_t compare(const mca_btl_umr_candidate_t *a, const mca_btl_umr_candidate_t *b)
{
    return a->down != b->down                   ? (int64_t) a->down - b->down
           : a->spare != b->spare               ? (int64_t) a->spare - b->spare
           : a->gpu_distance != b->gpu_distance ? (int64_t) a->gpu_distance - b->gpu_distance
           : a->at_gpu != b->at_gpu             ? (int64_t) b->at_gpu - a->at_gpu
           : a->distance != b->distance         ? (int64_t) a->distance - b->distance
                                                : (int64_t) b->rate - a->rate;
}

/** Equal ones keep their order. */
static void sort(mca_btl_umr_candidate_t *candidates, int count)
{
    for (int i = 1; i < count; ++i) {
        mca_btl_umr_candidate_t moved = candidates[i];
        int at = i;

        for (; 0 < at && 0 < compare(&candidates[at - 1], &moved); --at) {
            candidates[at] = candidates[at - 1];
        }
        candidates[at] = moved;
    }
}

/** Rotate the best ones over the processes of the node. */
static void take_turns(mca_btl_umr_candidate_t *candidates, int count)
{
    unsigned int best = 0, turn;

    while ((int) best < count && 0 == compare(&candidates[0], &candidates[best])) {
        ++best;
    }
    turn = 0 < best ? (unsigned int) opal_process_info.my_local_rank % best : 0;
    for (unsigned int i = 0; i < turn; ++i) {
        mca_btl_umr_candidate_t head = candidates[0];

        memmove(candidates, candidates + 1, (best - 1) * sizeof(head));
        candidates[best - 1] = head;
    }
}

/** Mark the ports of the slower link layer, and those much slower than the best. */
static void mark_slow(mca_btl_umr_candidate_t *candidates, int count)
{
    uint32_t best[2] = {0, 0};
    int at_gpus[2] = {0, 0};
    bool ethernet;

    for (int i = 0; i < count; ++i) {
        uint32_t *of = &best[candidates[i].ethernet ? 1 : 0];

        *of = candidates[i].rate > *of ? candidates[i].rate : *of;
        at_gpus[candidates[i].ethernet ? 1 : 0] += candidates[i].at_gpu ? 1 : 0;
    }
    ethernet = best[1] > best[0] || (best[1] == best[0] && at_gpus[1] > at_gpus[0]);
    for (int i = 0; i < count; ++i) {
        mca_btl_umr_candidate_t *one = &candidates[i];
        uint32_t most = best[ethernet ? 1 : 0];

        if (0 == one->rate || (one->ethernet == ethernet && one->rate >= most - most / 2)) {
            continue;
        }
        one->spare = true;
        MCA_BTL_UMR_VERBOSE(
            SETUP,
            "%s:%u: %s of %u Gb/s beside %s of %u Gb/s: used only if no other port works, or if it "
            "is in btl_umr_device",
            ibv_get_device_name(one->device), one->port, one->ethernet ? "Ethernet" : "InfiniBand",
            one->rate / 10, ethernet ? "Ethernet" : "InfiniBand", most / 10);
    }
}

void mca_btl_umr_order(mca_btl_umr_candidate_t *candidates, int count, bool named)
{
    int up = 0;

    for (int i = 0; i < count; ++i) {
        candidates[i].distance = mca_btl_umr_topology_process(candidates[i].device);
        up += candidates[i].down ? 0 : 1;
    }
    /* A port that is down is no port of a GPU, and its rate is not the one that it will have. */
    sort(candidates, count);
    for (int i = 0; i < up; ++i) {
        read_link(&candidates[i]);
    }
    if (2 > up) {
        return;
    }
    look_at_gpus(candidates, up);
    if (!named) {
        mark_slow(candidates, up);
    }
    sort(candidates, up);
    take_turns(candidates, up);
}
