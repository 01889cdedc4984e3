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
 * The component btl/umr, opened by this program.
 */

#include "info_hca.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/btl/base/base.h"

#include "umrddt_cuda_all.h"

/* The btl framework with one component, which no "--mca btl" hides. */
static mca_base_framework_t framework;

const mca_btl_umr_hca_ops_t *info_hca_open(void)
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
    fprintf(
        stderr,
        "umrddt_info: this Open MPI finds no btl/umr of this version of umrddt; check \"ompi_info "
        "--param btl\numr\". See the last lines of \"make install\".\n");
    return NULL;
}

void info_hca_close(void)
{
    (void) mca_base_framework_components_close(&framework, NULL);
    OBJ_DESTRUCT(&framework.framework_components);
    OBJ_DESTRUCT(&framework.framework_failed_components);
}

static int nearer(const void *a, const void *b)
{
    const info_near_t *x = (const info_near_t *) a, *y = (const info_near_t *) b;

    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : x->gpu - y->gpu;
}

int info_hca_gpus(const mca_btl_umr_hca_ops_t *hca, unsigned int index,
                  info_near_t gpus[OPAL_UMRDDT_GPU_RDMA_DEVICES])
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
