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
 * Memory of a device for packed bytes on their way: a pool, so that no message allocates (which may
 * wait for the whole device).
 *
 * Buffers come in sizes of powers of 2 from 4 KiB on, belong to an engine's context and are kept
 * for its next taker. A process never has more than a bound of it. Callable from any thread.
 */

#ifndef OPAL_UMRDDT_GPU_SCRATCH_H
#define OPAL_UMRDDT_GPU_SCRATCH_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** Set the bound in bytes, of all devices together. What is beyond it is freed when it comes back.
 */
void opal_umrddt_gpu_scratch_bound(size_t bytes);

/**
 * A buffer in the memory of the engine's device.
 *
 * @param[in]  size     bytes, at least 1
 * @param[out] address  of the device; the caller's until opal_umrddt_gpu_scratch_put
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  that would be beyond the bound, or the driver refuses
 */
int opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size, uint64_t *address);

/** Give it back; nothing on the device uses it any more. */
void opal_umrddt_gpu_scratch_put(uint64_t address);

/** Counters; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_scratch_stats_t {
    uint64_t gets;
    uint64_t allocated; /**< buffers asked of the driver */
    uint64_t bytes_now;
    uint64_t used_now; /**< of these, in buffers that are taken */
} opal_umrddt_gpu_scratch_stats_t;
void opal_umrddt_gpu_scratch_stats(opal_umrddt_gpu_scratch_stats_t *stats);

/** Free everything, before opal_umrddt_gpu_engines_close. Tolerates contexts that are gone, and a
 * driver that is. Buffers still taken are forgotten. */
void opal_umrddt_gpu_scratch_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_SCRATCH_H */
