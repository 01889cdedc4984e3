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
 * Starts common/umrddt_gpu as the parameters say, and ends its use.
 */

#include "ompi_config.h"

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_open.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "umrddt_help.h"

static void report_no_kernels(int device, const char *why)
{
    MCA_PML_UMRDDT_VERBOSE(SETUP, "GPU %d: no kernels, each block of a layout costs a copy: %s",
                           device, why);
    opal_show_help("help-mca-pml-umrddt.txt", "no-kernels", true, device, why);
}

void mca_pml_umrddt_gpu_open(void)
{
    const mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    const opal_umrddt_gpu_stage_limits_t limits = {.pinned = params->gpu_stage_pinned,
                                                   .cached = params->gpu_stage_kept};
    const opal_umrddt_gpu_engine_params_t engine = {
        .how = params->gpu_scheme,
        .scheme = params->gpu_kernel,
        .shape_cache = params->gpu_list_cache,
        .staging = params->gpu_pinned,
        .staging_chunk = params->gpu_chunk,
        .graphs = params->gpu_graphs,
        .batch = params->gpu_batch,
        .no_kernels = report_no_kernels,
    };

    opal_umrddt_gpu_stage_limits(&limits);  /* wide elements are staged without a GPU, too */
    opal_umrddt_gpu_engine_params(&engine); /* coll/umrddt uses the same engines and pools */
    if (0 == (MCA_PML_UMRDDT_MEMORY_GPU & params->memory)) {
        mca_pml_umrddt.gpu_why_not = "pml_umrddt_memory is host";
        return;
    }
    mca_pml_umrddt.gpu = opal_umrddt_gpu_open(params->system_memory_cache);
    if (NULL == mca_pml_umrddt.gpu) {
        mca_pml_umrddt.gpu_why_not = opal_umrddt_gpu_driver_why_not();
        return;
    }
    mca_pml_umrddt_base_gpu_open();
}

void mca_pml_umrddt_gpu_close(void)
{
    mca_pml_umrddt_stage_fini();
    if (NULL != mca_pml_umrddt.gpu) {
        opal_umrddt_gpu_close();
        mca_pml_umrddt_base_gpu_close();
        mca_pml_umrddt.gpu = NULL;
    }
}
