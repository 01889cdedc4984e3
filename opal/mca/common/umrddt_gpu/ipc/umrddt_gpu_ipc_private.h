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
 * What exports and imports have in common.
 */

#ifndef OPAL_UMRDDT_GPU_IPC_PRIVATE_H
#define OPAL_UMRDDT_GPU_IPC_PRIVATE_H

#include "umrddt_gpu_ipc.h"

BEGIN_C_DECLS

#define OPAL_UMRDDT_GPU_EXPORT_MEM_HANDLE 1 /**< opal_umrddt_gpu_export_t.kind */

/** The counters; each is changed by opal_umrddt_gpu_ipc_count only. */
extern opal_umrddt_gpu_ipc_stats_t opal_umrddt_gpu_ipc_counts;

/** Add to a counter, from any thread. */
static inline void opal_umrddt_gpu_ipc_count(uint64_t *counter, int64_t change)
{
    __atomic_add_fetch(counter, (uint64_t) change, __ATOMIC_RELAXED);
}

/**
 * What a device is called, the same in every process.
 *
 * @retval false  the driver does not say
 */
bool opal_umrddt_gpu_ipc_uuid(const opal_umrddt_gpu_driver_t *driver, int device, uint8_t uuid[16]);

/** Memory of another process that is open, for all imports that mean it. */
typedef struct opal_umrddt_gpu_mapping_t {
    opal_umrddt_gpu_engine_t *engine;
    CUcontext ctx;
    uint8_t uuid[16];
    uint8_t handle[64];
    CUdeviceptr address; /**< 0: closed */
    uint64_t size;
    bool home; /**< it is memory of the engine's device */
    unsigned imports;
    struct opal_umrddt_gpu_mapping_t *next;
} opal_umrddt_gpu_mapping_t;

/**
 * The mapping of an export, opened if it is not open, for one more import. These three functions
 * are called by one thread at a time.
 *
 * @param[out] crowded  where it fails: it may help to close others
 *
 * @return as opal_umrddt_gpu_import
 */
int opal_umrddt_gpu_mapping_get(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_export_t *from,
                                opal_umrddt_gpu_mapping_t **mapping, bool *crowded);

/** One import less; the last one closes it. */
void opal_umrddt_gpu_mapping_put(opal_umrddt_gpu_mapping_t *mapping);

/** Close all; imports keep theirs, which have no address then. */
void opal_umrddt_gpu_mappings_close(void);

/** How many exports are remembered at most; those beyond it are forgotten now. */
void opal_umrddt_gpu_exports_bound(unsigned bound);

/** Forget all exports. */
void opal_umrddt_gpu_exports_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_IPC_PRIVATE_H */
