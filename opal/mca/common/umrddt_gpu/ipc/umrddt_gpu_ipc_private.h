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
 * Shared by exports and imports. Read umrddt_gpu_ipc.h first.
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

/** An open mapping of another process's memory, shared by its imports. */
typedef struct opal_umrddt_gpu_mapping_t {
    opal_umrddt_gpu_engine_t *engine;
    CUcontext ctx;
    uint8_t uuid[16];
    uint8_t handle[64];
    CUdeviceptr address; /**< 0: closed */
    uint64_t size;
    bool on_device; /**< it is memory of the engine's device */
    unsigned imports;
    struct opal_umrddt_gpu_mapping_t *next;
} opal_umrddt_gpu_mapping_t;

/**
 * The mapping of an export, opened if necessary, for one more import. The caller serializes calls
 * of these three functions.
 *
 * @param[out] crowded  on failure: closing others may help
 *
 * @return as opal_umrddt_gpu_import
 */
int opal_umrddt_gpu_mapping_get(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_export_t *from,
                                opal_umrddt_gpu_mapping_t **mapping, bool *crowded);

/** Remove one import; the last one closes the mapping. */
void opal_umrddt_gpu_mapping_put(opal_umrddt_gpu_mapping_t *mapping);

/** Close all; imports keep their mappings, which have no address then. */
void opal_umrddt_gpu_mappings_close(void);

/** Maximum number of cached exports; excess ones are dropped now. */
void opal_umrddt_gpu_exports_bound(unsigned bound);

/** Drop all exports. */
void opal_umrddt_gpu_exports_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_IPC_PRIVATE_H */
