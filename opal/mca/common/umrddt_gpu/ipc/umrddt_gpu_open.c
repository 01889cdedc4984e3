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
 * Start, end and counters of common/umrddt_gpu; see umrddt_gpu_open.h.
 */

#include "umrddt_gpu_open.h"

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_plain.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_base_lookup.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_users.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stage.h"

const opal_umrddt_gpu_driver_t *opal_umrddt_gpu_open(bool cache_system)
{
    const opal_umrddt_gpu_driver_t *driver;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return NULL;
    }
    opal_umrddt_gpu_users_add();
    opal_umrddt_gpu_memory_open();
    if (cache_system) {
        (void) opal_umrddt_gpu_plain_open(); /* on failure every message queries the driver */
    }
    opal_umrddt_gpu_base_lookup_open(cache_system);
    return driver;
}

void opal_umrddt_gpu_close(void)
{
    opal_umrddt_gpu_users_remove();
    opal_umrddt_gpu_base_lookup_close();
    opal_umrddt_gpu_plain_close();
}

void opal_umrddt_gpu_stats(opal_umrddt_gpu_stats_t *stats)
{
    opal_umrddt_gpu_driver_stats(&stats->driver);
    opal_umrddt_gpu_engine_stats(&stats->engine);
    opal_umrddt_gpu_staging_stats(&stats->staging);
    opal_umrddt_gpu_scratch_stats(&stats->scratch);
    opal_umrddt_gpu_ipc_stats(&stats->ipc);
    stats->base_lookups = opal_umrddt_gpu_base_lookups();
    stats->cached = opal_umrddt_gpu_stage_cached();
}
