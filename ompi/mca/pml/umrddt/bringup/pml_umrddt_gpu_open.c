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
 * Finds the CUDA driver, configures common/umrddt_gpu, and ends its use. Read pml_umrddt_gpu.h
 * first.
 */

#include "ompi_config.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_base_lookup.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu_stats.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

/** Pass the parameters to the GPU engines. */
static void set_params(void)
{
    const mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    opal_umrddt_gpu_engine_params_t engine = {
        .how = params->gpu_scheme,
        .scheme = params->gpu_kernel,
        .shape_cache = params->gpu_list_cache,
        .staging = params->gpu_pinned,
        .staging_chunk = params->gpu_chunk,
        .graphs = params->gpu_graphs,
    };

    opal_umrddt_gpu_engine_params(&engine);
}

void mca_pml_umrddt_gpu_stats(mca_pml_umrddt_gpu_stats_t *stats)
{
    opal_umrddt_gpu_driver_stats(&stats->driver);
    opal_umrddt_gpu_engine_stats(&stats->engine);
    opal_umrddt_gpu_staging_stats(&stats->staging);
    opal_umrddt_gpu_scratch_stats(&stats->scratch);
    opal_umrddt_gpu_ipc_stats(&stats->ipc);
    stats->base_lookups = opal_umrddt_gpu_base_lookups();
    stats->cached = opal_umrddt_gpu_stage_cached();
}

void mca_pml_umrddt_gpu_open(void)
{
    const opal_umrddt_gpu_stage_limits_t limits = {.pinned = mca_pml_umrddt.params.gpu_stage_pinned,
                                                   .cached = mca_pml_umrddt.params.gpu_stage_kept};

    opal_umrddt_gpu_stage_limits(&limits); /* wide elements are staged without a GPU, too */
    if (0 == (MCA_PML_UMRDDT_MEMORY_GPU & mca_pml_umrddt.params.memory)) {
        mca_pml_umrddt.gpu_why_not = "pml_umrddt_memory is host";
        return;
    }
    /* Loads the library but calls no function of it. The application decides whether CUDA is used.
     */
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&mca_pml_umrddt.gpu)) {
        mca_pml_umrddt.gpu = NULL;
        mca_pml_umrddt.gpu_why_not = opal_umrddt_gpu_driver_why_not();
        return;
    }
    set_params();
    opal_umrddt_gpu_memory_open();
    if (mca_pml_umrddt.params.system_memory_cache) {
        (void) opal_umrddt_gpu_plain_open(); /* on failure every message queries the driver */
    }
    opal_umrddt_gpu_base_lookup_open(mca_pml_umrddt.params.system_memory_cache);
    mca_pml_umrddt_base_gpu_open();
}

void mca_pml_umrddt_gpu_close(void)
{
    mca_pml_umrddt_stage_fini();
    if (NULL == mca_pml_umrddt.gpu) {
        return;
    }
    /* The buffers of both pools belong to contexts of engines. The HCA, which may have registered
     * them, is closed. */
    opal_umrddt_gpu_scratch_close();
    opal_umrddt_gpu_staging_close();
    opal_umrddt_gpu_engines_close();
    opal_umrddt_gpu_base_lookup_close();
    opal_umrddt_gpu_plain_close();
    mca_pml_umrddt_base_gpu_close();
    mca_pml_umrddt.gpu = NULL;
}
