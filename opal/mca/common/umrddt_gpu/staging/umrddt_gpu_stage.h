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
 * Staging buffers of one message: system memory in place of GPU memory, for a library that cannot
 * access it. Pinned memory from the pool (umrddt_gpu_staging.h), or plain memory. Callable from any
 * thread.
 */

#ifndef OPAL_UMRDDT_GPU_STAGE_H
#define OPAL_UMRDDT_GPU_STAGE_H

#include "opal_config.h"

#include <stddef.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** A staging buffer. All 0: none. */
typedef struct opal_umrddt_gpu_stage_t {
    unsigned char *bytes;
    size_t room;
    opal_umrddt_gpu_kind_t kind; /**< PINNED: from the GPU staging pool; HOST: plain memory */
} opal_umrddt_gpu_stage_t;

/** Limits; all 0 until set. */
typedef struct opal_umrddt_gpu_stage_limits_t {
    size_t pinned; /**< bytes of the largest pinned buffer that opal_umrddt_gpu_stage_get selects */
    size_t cached; /**< maximum bytes of free plain buffers that are cached */
} opal_umrddt_gpu_stage_limits_t;
void opal_umrddt_gpu_stage_limits(const opal_umrddt_gpu_stage_limits_t *new_limits);

/**
 * Get a staging buffer for data that fill it. It is pinned if its size and the pool permit; else
 * plain. A receive, for which less or more data may arrive, uses opal_umrddt_gpu_stage_plain.
 *
 * @param[in]  memory  of the user's buffer
 * @param[in]  size    in bytes; 0 counts as 1
 * @param[out] stage   owned by the caller until opal_umrddt_gpu_stage_put
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_stage_get(const opal_umrddt_gpu_memory_t *memory, size_t size,
                              opal_umrddt_gpu_stage_t *stage);

/** Get a pinned staging buffer. @return OPAL_SUCCESS; else as opal_umrddt_gpu_staging_get and
 * opal_umrddt_gpu_engine_enter */
int opal_umrddt_gpu_stage_pinned(opal_umrddt_gpu_engine_t *engine, size_t size,
                                 opal_umrddt_gpu_stage_t *stage);

/** Get a plain staging buffer of zeros or old data: a mapping without reservation, so that only
 * pages that are used take memory. @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE */
int opal_umrddt_gpu_stage_plain(size_t size, opal_umrddt_gpu_stage_t *stage);

/** Release a staging buffer and set it to all 0. No effect if it is all 0. */
void opal_umrddt_gpu_stage_put(opal_umrddt_gpu_stage_t *stage);

/** Bytes in cached plain buffers. */
size_t opal_umrddt_gpu_stage_cached(void);

/** Free the cached plain buffers. */
void opal_umrddt_gpu_stage_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_STAGE_H */
