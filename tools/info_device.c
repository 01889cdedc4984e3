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
 * One device, as btl/umr detects it.
 */

#include "info_hca.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "ompi/proc/proc.h"

/** Names of the capability tiers in the output. */
static const char *const tier_names[MCA_BTL_UMR_TIER_MAX] = {
    [MCA_BTL_UMR_LONG] = "non-inline UMR lists",
    [MCA_BTL_UMR_STRIDED] = "strided entries (equal blocks at equal distances)",
    [MCA_BTL_UMR_NESTED] = "indirect mkeys of mkeys",
};

/** Print one line; "and" joins GPUs at equal distance. */
static void print_gpus(const info_near_t *gpus, int count)
{
    for (int i = 0; i < count; ++i) {
        const char *between = "  GPUs, nearest first: ";

        if (0 < i) {
            between = gpus[i].distance == gpus[i - 1].distance ? " and " : ", then ";
        }
        printf("%s%d", between, gpus[i].gpu);
    }
    if (0 < count) {
        printf("\n");
    }
}

/* The same as JSON: lists of GPUs at equal distance. */
static void json_gpus(const info_near_t *gpus, int count)
{
    info_json_open("gpus_nearest_first", '[');
    for (int i = 0; i < count; ++i) {
        if (0 == i || gpus[i].distance != gpus[i - 1].distance) {
            info_json_open(NULL, '[');
        }
        info_json_number(NULL, gpus[i].gpu);
        if (count == i + 1 || gpus[i].distance != gpus[i + 1].distance) {
            info_json_close(']');
        }
    }
    info_json_close(']');
}

static void print_caps(const mca_btl_umr_caps_t *caps, const info_near_t *gpus, int count)
{
    int kind;

    printf("%s: usable, the self-test passed\n", caps->device);
    printf("  port: %s\n", caps->port);
    if (0 <= caps->numa) {
        printf("  NUMA node %d\n", caps->numa);
    }
    print_gpus(gpus, count);
    printf("  proven: gather and scatter between mkeys, without access to other bytes\n");
    printf("  proven: invalidated mkeys are refused, and so are old tags if tags can change\n");
    printf(
        "  inline list in a work request: %lu pieces in one mkey (52 on current HCAs, at least 4)\n",
        (unsigned long) caps->list_entries);
    printf("  one mkey of any layout: %lu pieces, %lu bytes; %lu mkeys in each direction\n",
           (unsigned long) caps->key_limits.max_iovs, (unsigned long) caps->key_limits.max_bytes,
           (unsigned long) caps->max_keys);
    for (kind = 0; kind < MCA_BTL_UMR_TIER_MAX; ++kind) {
        const mca_btl_umr_tier_t *tier = &caps->tiers[kind];

        printf("  %s: ", NULL == tier_names[kind] ? "another tier" : tier_names[kind]);
        if (tier->usable) {
            printf("proven\n");
        } else {
            printf("not used: %s\n", tier->why);
        }
    }
    printf("  without mkeys: an RDMA write gathers %lu pieces (not proven)\n",
           (unsigned long) caps->write_pieces);
    printf("  not proven: transfers between two machines (use umrddt_bench), and performance\n");
}

/* The same as print_caps and print_without, as JSON. */
static void json_caps(const mca_btl_umr_caps_t *caps, const info_near_t *gpus, int count)
{
    static const char *const names[MCA_BTL_UMR_TIER_MAX] = {
        [MCA_BTL_UMR_LONG] = "non_inline_lists",
        [MCA_BTL_UMR_STRIDED] = "strided_entries",
        [MCA_BTL_UMR_NESTED] = "indirect_mkeys",
    };

    info_json_open(NULL, '{');
    info_json_text("name", caps->device);
    info_json_bool("usable", true);
    info_json_bool("umr", caps->umr.usable);
    info_json_text("why_not", caps->umr.usable ? NULL : caps->umr.why);
    info_json_text("advice", caps->umr.usable ? NULL : info_advice(caps->umr.why));
    info_json_text("port", caps->port);
    info_json_number("numa_node", caps->numa);
    json_gpus(gpus, count);
    info_json_number("list_entries", (long long) caps->list_entries);
    info_json_number("key_pieces", (long long) caps->key_limits.max_iovs);
    info_json_number("key_bytes", (long long) caps->key_limits.max_bytes);
    info_json_number("keys", (long long) caps->max_keys);
    info_json_number("write_pieces", (long long) caps->write_pieces);
    for (int kind = 0; kind < MCA_BTL_UMR_TIER_MAX; ++kind) {
        if (NULL != names[kind]) {
            info_json_open(names[kind], '{');
            info_json_bool("proven", caps->tiers[kind].usable);
            info_json_text("why_not", caps->tiers[kind].usable ? NULL : caps->tiers[kind].why);
            info_json_close('}');
        }
    }
}

static void unusable(const char *name, const char *why)
{
    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("name", name);
        info_json_bool("usable", false);
        info_json_text("why_not", why);
        info_json_text("advice", info_advice(why));
        info_json_close('}');
        return;
    }
    printf("%s: not usable: %s\n", name, why);
    info_advise(why);
}

/** A device without UMR. */
static void print_without(const mca_btl_umr_caps_t *caps, const info_near_t *gpus, int count)
{
    printf("%s: usable without UMR: %s\n", caps->device, caps->umr.why);
    printf("  port: %s\n", caps->port);
    print_gpus(gpus, count);
    printf("  messages need one RDMA write for each contiguous range of the receive buffer\n");
    printf("  an RDMA write gathers %lu pieces\n", (unsigned long) caps->write_pieces);
    printf("  not proven: everything; without mkeys there is no self-test (use umrddt_bench)\n");
    info_advise(caps->umr.why);
}

/**
 * Have an HCA write to itself, in the memory of the GPU.
 *
 * @param[out] traffic  what was measured, or the reason
 */
static bool test_gpu(const mca_btl_umr_hca_ops_t *hca, unsigned int index, info_traffic_t *traffic)
{
    struct opal_proc_t *self = (struct opal_proc_t *) ompi_proc_local();
    info_link_t link = {.hca = hca, .first = true, .alone = true};
    mca_btl_umr_address_t at = {htonl(index << 24), 0};

    memset(traffic, 0, sizeof(*traffic));
    if (OPAL_SUCCESS != hca->endpoint_get(self, &link.endpoint)) {
        snprintf(traffic->why, sizeof(traffic->why), "the device does not connect to itself");
        return false;
    }
    link.endpoint = hca->endpoint_at(link.endpoint, &at);
    hca->endpoint_address(link.endpoint, &link.address);
    return info_link_test(&link, traffic);
}

/** Test with the memory of the GPU and print the result. */
static bool report_gpu(const mca_btl_umr_hca_ops_t *hca, unsigned int index, int gpu)
{
    info_traffic_t traffic;
    bool works = test_gpu(hca, index, &traffic);

    if (info_json) {
        info_json_open("gpu_memory", '{');
        info_json_number("gpu", gpu);
        info_json_bool("works", works);
        info_json_text("why_not", works ? NULL : traffic.why);
        info_json_real("bandwidth_gb_per_s", 1e-9 * traffic.bandwidth);
        info_json_number("messages_right", traffic.messages);
        info_json_number("mkeys_mapped", traffic.mkeys);
        info_json_close('}');
    } else if (works) {
        printf(
            "  proven: gather and scatter in the memory of GPU %d by writes to itself: %lld messages "
            "of\n  odd layouts, %lld mkeys mapped; %.2f GB/s\n",
            gpu, traffic.messages, traffic.mkeys, 1e-9 * traffic.bandwidth);
    } else {
        printf("  FAILED with the memory of GPU %d: %s\n", gpu, traffic.why);
    }
    return works;
}

int info_device(const char *name, int gpu)
{
    const mca_btl_umr_hca_ops_t *hca;
    char why[192] = "";
    int status = INFO_BROKEN;

    if (MPI_SUCCESS != MPI_Init(NULL, NULL)) {
        return INFO_BROKEN;
    }
    hca = info_hca_open();
    if (NULL == hca) {
        /* printed */
    } else if (0 <= gpu && !info_buffer_gpu(gpu, why)) {
        unusable(name, why);
        status = INFO_UNUSABLE;
    } else if (OPAL_SUCCESS != hca->init()) {
        unusable(name, hca->why_not());
        status = INFO_UNUSABLE;
    } else {
        const mca_btl_umr_caps_t *caps;
        bool works = true;

        status = INFO_WITHOUT;
        /* one for each active port */
        for (unsigned int i = 0; hca->hca(i, &caps, NULL); ++i) {
            info_near_t gpus[OPAL_UMRDDT_GPU_RDMA_DEVICES];
            int count = info_hca_gpus(hca, i, gpus);

            if (caps->umr.usable) {
                status = INFO_USABLE;
            }
            if (info_json) {
                /* not closed */
                json_caps(caps, gpus, count);
            } else if (caps->umr.usable) {
                print_caps(caps, gpus, count);
            } else {
                print_without(caps, gpus, count);
            }
            works = 0 > gpu || (report_gpu(hca, i, gpu) && works);
            if (info_json) {
                info_json_close('}');
            }
        }
        status = works ? status : INFO_UNUSABLE;
        hca->fini();
    }
    info_hca_close();
    fflush(stdout);
    MPI_Finalize();
    return status;
}
