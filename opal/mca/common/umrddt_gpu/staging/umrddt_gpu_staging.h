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
 * Staging buffers: a pool of pinned system memory, so that no message pins memory.
 *
 * Buffer sizes are powers of 2 from 4 KiB on, and buffers are reused. The pool has a size limit per
 * process. Pinned for all devices and contexts (CU_MEMHOSTALLOC_PORTABLE). Callable from any thread
 * with a current context.
 */

#ifndef OPAL_UMRDDT_GPU_STAGING_H
#define OPAL_UMRDDT_GPU_STAGING_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

BEGIN_C_DECLS

/** Set the limit in bytes; excess buffers are freed when they are released. */
void opal_umrddt_gpu_staging_bound(size_t bytes);

/**
 * A buffer.
 *
 * @param[in]  size    bytes, at least 1
 * @param[out] buffer  page aligned; the caller's until opal_umrddt_gpu_staging_put
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  limit reached, or the driver refuses
 * @retval OPAL_ERR_NOT_AVAILABLE    no driver, or no context
 */
int opal_umrddt_gpu_staging_get(size_t size, void **buffer);

/** Release it. */
void opal_umrddt_gpu_staging_put(void *buffer);

/**
 * Drop the buffers whose context the application has destroyed: their memory was freed with it.
 * Must be called when a context is seen for the first time, since it may replace another one.
 * Queries the driver for each buffer.
 */
void opal_umrddt_gpu_staging_check(void);

/** Counters; they only grow, but for those that say now and the limit. */
typedef struct opal_umrddt_gpu_staging_stats_t {
    uint64_t gets;
    uint64_t pinned; /**< buffers allocated by the driver */
    uint64_t bytes_now;
    uint64_t used_now; /**< of these, in buffers in use */
    uint64_t bound;    /**< the limit (opal_umrddt_gpu_staging_bound) */
} opal_umrddt_gpu_staging_stats_t;
void opal_umrddt_gpu_staging_stats(opal_umrddt_gpu_staging_stats_t *stats);

/** Free everything except buffers in use. Tolerates a driver that is shut down. */
void opal_umrddt_gpu_staging_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_STAGING_H */
