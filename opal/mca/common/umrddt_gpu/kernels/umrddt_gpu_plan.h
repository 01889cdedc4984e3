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
 * Plans: kernel, argument, grid and block for a copy of a range of a stream. Always one launch, for
 * any number of pieces. Creating a plan allocates nothing and walks no layout. Plain C; no driver
 * call.
 */

#ifndef UMRDDT_GPU_PLAN_H
#define UMRDDT_GPU_PLAN_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_args.h"
#include "umrddt_gpu_map.h"

BEGIN_C_DECLS

/** One end of a copy. */
typedef struct opal_umrddt_gpu_end_t {
    /** The layout; NULL: the range is packed. */
    const opal_umrddt_gpu_map_t *map;
    /** Device address of the buffer of MPI calls; without a map, of the range's first byte. */
    uint64_t address;
    /** Device address of map->list, 8-byte aligned; 0 if not uploaded. */
    uint64_t list;
} opal_umrddt_gpu_end_t;

/** Parameters of launches. The default of packed was measured (bench/results), others not. */
typedef struct opal_umrddt_gpu_fit_t {
    uint32_t processors;   /**< multiprocessors to use; at least 1 */
    uint32_t threads;      /**< of a block: a power of 2, 32 .. UMRDDT_GPU_MAX_THREADS */
    uint32_t blocks;       /**< maximum per multiprocessor; at least 1 */
    uint32_t packed;       /**< multiple of that where a vector is packed or unpacked; at least 1 */
    uint32_t ragged_width; /**< if accesses would be narrower than this, rows of ... */
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
    uint32_t grid[3];    /**< blocks; grid[0] is 0 if there is nothing to copy */
    uint32_t block[3];   /**< threads */
    uint32_t args_bytes; /**< bytes of args; the rest is not set */
    umrddt_gpu_args_inline_t args;
} opal_umrddt_gpu_plan_t;

/**
 * Plan a copy of stream positions @p start .. @p end - 1: pack if @p target has no map, unpack if
 * @p source has none, else from layout to layout. Lists of up to about 3.6 KiB are part of the
 * argument if they are not on the device and the other end has none; all others must be on the
 * device.
 *
 * If the scheme has no kernel for this pair of ends (whose schemes may differ), another kernel for
 * the same lists is used.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM      a range that is not in the layouts, a list that is not aligned,
 *                                 or invalid values in opal_umrddt_gpu_fit_t
 * @retval OPAL_ERR_NOT_AVAILABLE  a required list is not on the device
 */
int opal_umrddt_gpu_plan(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                         uint64_t start, uint64_t end, const opal_umrddt_gpu_fit_t *fit,
                         opal_umrddt_gpu_plan_t *plan);

/** Bytes of the widest access that is aligned at both ends of a copy from stream position @p start:
 * at most 16. */
static inline uint32_t opal_umrddt_gpu_plan_width(const opal_umrddt_gpu_end_t *const ends[2],
                                                  uint64_t start)
{
    uint64_t bits = 16;

    for (int i = 0; i < 2; ++i) {
        bits |= NULL == ends[i]->map ? ends[i]->address - start
                                     : ends[i]->address | ends[i]->map->align;
    }
    return (uint32_t) (bits & (0 - bits));
}

/** True if 32 bits count the steps of an argument. Kernels look up one step more. */
static inline bool opal_umrddt_gpu_plan_is_narrow(const umrddt_gpu_args_t *args)
{
    return args->last < (UINT64_C(1) << 31) - 1;
}

/**
 * One side of an argument whose range and scale are set.
 *
 * @param[in] bound  positions, counted in steps, are below it
 */
void opal_umrddt_gpu_plan_side(const opal_umrddt_gpu_end_t *end, const umrddt_gpu_args_t *args,
                               uint64_t bound, umrddt_gpu_side_t *side);

/** The kernel's name in the fat binary; NULL if there is no such kernel. */
const char *opal_umrddt_gpu_kernel_name(umrddt_gpu_kernel_id_t kernel);

END_C_DECLS

#endif /* UMRDDT_GPU_PLAN_H */
