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
 * Counters of common/umrddt_gpu in one structure.
 */

#ifndef MCA_PML_UMRDDT_GPU_STATS_H
#define MCA_PML_UMRDDT_GPU_STATS_H

#include "ompi_config.h"

#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

BEGIN_C_DECLS

typedef struct mca_pml_umrddt_gpu_stats_t {
    opal_umrddt_gpu_driver_stats_t driver;
    opal_umrddt_gpu_engine_stats_t engine;
    opal_umrddt_gpu_staging_stats_t staging;
    opal_umrddt_gpu_scratch_stats_t scratch;
    opal_umrddt_gpu_ipc_stats_t ipc;
    uint64_t base_lookups; /**< opal_umrddt_gpu_base_lookups */
    uint64_t cached;       /**< unused staging buffers in unpinned memory, bytes */
} mca_pml_umrddt_gpu_stats_t;

/** Copy all counters of common/umrddt_gpu and of the staging buffers. */
void mca_pml_umrddt_gpu_stats(mca_pml_umrddt_gpu_stats_t *stats);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GPU_STATS_H */
