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
 * Plans: which kernel copies a range of a stream from one place to another, with what argument, in
 * how many blocks of how many threads. Always one launch, whatever the number of pieces. Making a
 * plan allocates nothing and walks no layout. Plain C; no driver call.
 */

#ifndef UMRDDT_GPU_PLAN_H
#define UMRDDT_GPU_PLAN_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_args.h"
#include "umrddt_gpu_map.h"

BEGIN_C_DECLS

/** One end of a copy. */
typedef struct opal_umrddt_gpu_end_t {
    /** The layout there; NULL if there is nothing but the range, packed. */
    const opal_umrddt_gpu_map_t *map;
    /** Where the device sees it: what MPI calls are given; without a map, the range's first byte.
     */
    uint64_t address;
    /** Where the device sees map->list, 8-byte aligned; 0 if it is nowhere yet. */
    uint64_t list;
} opal_umrddt_gpu_end_t;

/** What launches are fitted to. The default of packed was measured (bench/results), others not. */
typedef struct opal_umrddt_gpu_fit_t {
    uint32_t processors;    /**< multiprocessors to use; at least 1 */
    uint32_t threads;       /**< of a block: a power of 2, 32 .. UMRDDT_GPU_MAX_THREADS */
    uint32_t blocks;        /**< a multiprocessor's, at most; at least 1 */
    uint32_t packed;        /**< times as many, where a vector is packed or unpacked; at least 1 */
    uint32_t ragged_width;  /**< if accesses would be narrower than this, rows of ... */
    uint32_t ragged_length; /**< ... at least so many bytes choose their own, each by its place */
    bool wide;              /**< arithmetic of 64 bits even where 32 would do; for tests */
} opal_umrddt_gpu_fit_t;

#define OPAL_UMRDDT_GPU_FIT_DEFAULT(PROCESSORS)                                                  \
    {                                                                                            \
        .processors = (PROCESSORS), .threads = UMRDDT_GPU_MAX_THREADS, .blocks = 8, .packed = 8, \
        .ragged_width = 4, .ragged_length = 64,                                                  \
    }

/** A launch. */
typedef struct opal_umrddt_gpu_plan_t {
    umrddt_gpu_kernel_id_t kernel;
    uint32_t grid[3];    /**< blocks; grid[0] is 0 if there is nothing to copy and to launch */
    uint32_t block[3];   /**< threads */
    uint32_t args_bytes; /**< of args, of which the rest is not set */
    umrddt_gpu_args_inline_t args;
} opal_umrddt_gpu_plan_t;

/**
 * Plan a copy of stream positions @p start .. @p end - 1: pack if @p target has no map, unpack if
 * @p source has none, else from layout to layout. Lists of up to about 3.6 KiB travel in the
 * argument if the device has not got them and the other end has none; all others have to be there.
 *
 * A scheme that has no kernel for this pair of ends (the two ends of a copy from layout to layout
 * may have different ones) is served by the kernel of the same lists that has.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM      a range that is not in the layouts, a list that is not aligned,
 * or what does not fit the comments of opal_umrddt_gpu_fit_t
 * @retval OPAL_ERR_NOT_AVAILABLE  a list has to be on the device, and is not
 */
int opal_umrddt_gpu_plan(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                         uint64_t start, uint64_t end, const opal_umrddt_gpu_fit_t *fit,
                         opal_umrddt_gpu_plan_t *plan);

/** The kernel's name in the fat binary; NULL if there is no such kernel. */
const char *opal_umrddt_gpu_kernel_name(umrddt_gpu_kernel_id_t kernel);

END_C_DECLS

#endif /* UMRDDT_GPU_PLAN_H */
