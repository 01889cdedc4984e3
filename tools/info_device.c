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

#include "info.h"

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "opal/mca/base/base.h"
#include "opal/mca/btl/base/base.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

/** Names of the capability tiers in the output. */
static const char *const tier_names[MCA_BTL_UMR_TIER_MAX] = {
    [MCA_BTL_UMR_LONG] = "non-inline UMR lists",
    [MCA_BTL_UMR_STRIDED] = "strided entries (equal blocks at equal distances)",
    [MCA_BTL_UMR_NESTED] = "indirect mkeys of mkeys",
};

/* The btl framework with one component, which no "--mca btl" hides. */
static mca_base_framework_t framework;

/** A GPU, and how far it is from an HCA. */
typedef struct info_near_t {
    int gpu;
    uint32_t distance;
} info_near_t;

static const mca_btl_umr_hca_ops_t *open_component(void)
{
    mca_base_component_list_item_t *item;

    framework = opal_btl_base_framework;
    framework.framework_selection = (char *) "umr";
    OBJ_CONSTRUCT(&framework.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&framework.framework_failed_components, opal_list_t);
    if (OPAL_SUCCESS == mca_base_framework_components_register(&framework, 0)
        && OPAL_SUCCESS == mca_base_framework_components_open(&framework, 0)) {
        OPAL_LIST_FOREACH (item, &framework.framework_components, mca_base_component_list_item_t) {
            const mca_btl_umr_component_t *component =
                (const mca_btl_umr_component_t *) item->cli_component;

            if (0 == strcmp("umr", item->cli_component->mca_component_name)
                && MCA_BTL_UMR_HCA_API == component->api) {
                return component->ops;
            }
        }
    }
    return NULL;
}

static void close_component(void)
{
    (void) mca_base_framework_components_close(&framework, NULL);
    OBJ_DESTRUCT(&framework.framework_components);
    OBJ_DESTRUCT(&framework.framework_failed_components);
}

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

static int nearer(const void *a, const void *b)
{
    const info_near_t *x = (const info_near_t *) a, *y = (const info_near_t *) b;

    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : x->gpu - y->gpu;
}

/** Find the GPUs with a known distance. @return their number */
static int near_gpus(const mca_btl_umr_hca_ops_t *hca, unsigned int index, info_near_t *gpus)
{
    const umrddt_cuda_all_t *driver;
    int count = 0, known = 0;

    if (OPAL_SUCCESS != umrddt_cuda_all_load(&driver) || CUDA_SUCCESS != driver->cuInit(0)
        || CUDA_SUCCESS != driver->cuDeviceGetCount(&count)) {
        return 0;
    }
    for (int gpu = 0; gpu < count && OPAL_UMRDDT_GPU_RDMA_DEVICES > gpu; ++gpu) {
        gpus[known].gpu = gpu;
        gpus[known].distance = hca->gpu_distance(index, gpu);
        known += UINT32_MAX != gpus[known].distance ? 1 : 0;
    }
    qsort(gpus, (size_t) known, sizeof(gpus[0]), nearer);
    return known;
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
    info_json_close('}');
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

int info_device(const char *name)
{
    const mca_btl_umr_hca_ops_t *hca;
    int status = INFO_BROKEN;

    if (MPI_SUCCESS != MPI_Init(NULL, NULL)) {
        return INFO_BROKEN;
    }
    hca = open_component();
    if (NULL == hca) {
        fprintf(
            stderr,
            "umrddt_info: this Open MPI finds no btl/umr of this version of umrddt; check \"ompi_info "
            "--param btl\numr\". See the last lines of \"make install\".\n");
    } else if (OPAL_SUCCESS != hca->init()) {
        unusable(name, hca->why_not());
        status = INFO_UNUSABLE;
    } else {
        const mca_btl_umr_caps_t *caps;

        status = INFO_WITHOUT;
        /* one for each active port */
        for (unsigned int i = 0; hca->hca(i, &caps, NULL); ++i) {
            info_near_t gpus[OPAL_UMRDDT_GPU_RDMA_DEVICES];
            int count = near_gpus(hca, i, gpus);

            if (caps->umr.usable) {
                status = INFO_USABLE;
            }
            if (info_json) {
                json_caps(caps, gpus, count);
            } else if (caps->umr.usable) {
                print_caps(caps, gpus, count);
            } else {
                print_without(caps, gpus, count);
            }
        }
        hca->fini();
    }
    close_component();
    fflush(stdout);
    MPI_Finalize();
    return status;
}
