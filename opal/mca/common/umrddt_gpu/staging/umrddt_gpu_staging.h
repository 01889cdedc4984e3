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
 * System memory that devices reach: a pool of pinned buffers, so that no message pins memory.
 *
 * Buffers come in sizes of powers of 2 from 4 KiB on and are kept for the next taker. A process
 * never has more than a bound pinned here. Pinned for all devices and contexts
 * (CU_MEMHOSTALLOC_PORTABLE). Callable from any thread that has a current context.
 */

#ifndef OPAL_UMRDDT_GPU_STAGING_H
#define OPAL_UMRDDT_GPU_STAGING_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

BEGIN_C_DECLS

/** Set the bound in bytes; what is kept beyond it is freed when it comes back. */
void opal_umrddt_gpu_staging_bound(size_t bytes);

/**
 * A buffer.
 *
 * @param[in]  size    bytes, at least 1
 * @param[out] buffer  page aligned; the caller's until opal_umrddt_gpu_staging_put
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  that would be beyond the bound, or the driver refuses
 * @retval OPAL_ERR_NOT_AVAILABLE    no driver, or no context
 */
int opal_umrddt_gpu_staging_get(size_t size, void **buffer);

/** Give it back. */
void opal_umrddt_gpu_staging_put(void *buffer);

/**
 * Forget the buffers whose context the application has destroyed: their memory went with it. To be
 * called when a context is seen for the first time, as that may come instead of another. Asks the
 * driver about each buffer.
 */
void opal_umrddt_gpu_staging_check(void);

/** Counters; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_staging_stats_t {
    uint64_t gets;
    uint64_t pinned; /**< buffers asked of the driver */
    uint64_t bytes_now;
    uint64_t used_now; /**< of these, in buffers that are taken */
} opal_umrddt_gpu_staging_stats_t;
void opal_umrddt_gpu_staging_stats(opal_umrddt_gpu_staging_stats_t *stats);

/** Free everything; buffers still taken are left. Tolerates a driver that is gone. */
void opal_umrddt_gpu_staging_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_STAGING_H */
