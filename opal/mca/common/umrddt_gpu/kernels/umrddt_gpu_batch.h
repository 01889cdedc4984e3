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
 * Parts of batches: a batch is a launch that does several copies. Plain C; no
 * driver call, no allocation.
 */

#ifndef UMRDDT_GPU_BATCH_H
#define UMRDDT_GPU_BATCH_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "umrddt_gpu_args.h"
#include "umrddt_gpu_plan.h"

BEGIN_C_DECLS

/** Maximum words of the content of a part. */
#define OPAL_UMRDDT_GPU_PART_WORDS (sizeof(umrddt_gpu_args_t) / sizeof(uint64_t))

/** A copy, as a part of any batch. */
typedef struct opal_umrddt_gpu_part_t {
    uint32_t blocks; /**< at least 1 */
    uint16_t mode;   /**< umrddt_gpu_part_mode_t */
    uint16_t words;  /**< of the content */
    uint64_t word[OPAL_UMRDDT_GPU_PART_WORDS];
} opal_umrddt_gpu_part_t;

/** A batch under construction. */
typedef struct opal_umrddt_gpu_batch_t {
    umrddt_gpu_kernel_id_t kernel;
    uint32_t blocks; /**< of the grid */
    uint32_t back;   /**< the words before it are free, from args.n on */
    umrddt_gpu_batch_t args;
} opal_umrddt_gpu_batch_t;

/**
 * Plan a part, as opal_umrddt_gpu_plan plans a launch; but lists must be on the device.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM      an empty range, or one that is not in the layouts
 * @retval OPAL_ERR_NOT_AVAILABLE  a required list is not on the device
 */
int opal_umrddt_gpu_part_plan(const opal_umrddt_gpu_end_t *source,
                              const opal_umrddt_gpu_end_t *target, uint64_t start, uint64_t end,
                              const opal_umrddt_gpu_fit_t *fit, opal_umrddt_gpu_part_t *part);

/** Begin a batch without parts. */
static inline void opal_umrddt_gpu_batch_begin(opal_umrddt_gpu_batch_t *batch)
{
    batch->kernel = UMRDDT_GPU_KERNEL_BATCH_REGULAR;
    batch->blocks = 0;
    batch->back = UMRDDT_GPU_BATCH_WORDS;
    batch->args.n = 0;
    batch->args.reserved = 0;
}

/** Add a part. @return false if it does not fit; a batch without parts has room for any */
bool opal_umrddt_gpu_batch_add(opal_umrddt_gpu_batch_t *batch, const opal_umrddt_gpu_part_t *part);

END_C_DECLS

#endif /* UMRDDT_GPU_BATCH_H */
