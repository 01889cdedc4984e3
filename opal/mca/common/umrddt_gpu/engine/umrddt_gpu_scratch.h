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
 * A pool of device memory for packed data, so that no message allocates (an allocation may wait for
 * the whole device).
 *
 * Buffer sizes are powers of 2 from 4 KiB on. Buffers belong to an engine's context and are reused.
 * The pool has a size limit per process. Callable from any thread.
 */

#ifndef OPAL_UMRDDT_GPU_SCRATCH_H
#define OPAL_UMRDDT_GPU_SCRATCH_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_engine.h"

BEGIN_C_DECLS

/**
 * Set the limit in bytes, for all devices together. Excess buffers are freed when they are
 * released.
 */
void opal_umrddt_gpu_scratch_bound(size_t bytes);

/**
 * A buffer in the memory of the engine's device.
 *
 * @param[in]  size     bytes, at least 1
 * @param[out] address  of the device; the caller's until opal_umrddt_gpu_scratch_put
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  limit reached, or the driver refuses
 */
int opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size, uint64_t *address);

/** Release it; it must not be in use on the device. */
void opal_umrddt_gpu_scratch_put(uint64_t address);

/** Counters; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_scratch_stats_t {
    uint64_t gets;
    uint64_t allocated; /**< buffers allocated by the driver */
    uint64_t bytes_now;
    uint64_t used_now; /**< of these, in buffers in use */
} opal_umrddt_gpu_scratch_stats_t;
void opal_umrddt_gpu_scratch_stats(opal_umrddt_gpu_scratch_stats_t *stats);

/**
 * Free everything, before opal_umrddt_gpu_engines_close. Tolerates destroyed contexts and a driver
 * that is shut down. Buffers still in use are dropped.
 */
void opal_umrddt_gpu_scratch_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_SCRATCH_H */
