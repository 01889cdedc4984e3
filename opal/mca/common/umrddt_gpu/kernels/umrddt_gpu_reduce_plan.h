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
 * Plans of reductions: kernel, argument and grid. Plain C; no driver call, no allocation.
 */

#ifndef UMRDDT_GPU_REDUCE_PLAN_H
#define UMRDDT_GPU_REDUCE_PLAN_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_reduce_args.h"

BEGIN_C_DECLS

/** A launch, of blocks of UMRDDT_GPU_REDUCE_THREADS threads. */
typedef struct opal_umrddt_gpu_reduce_plan_t {
    umrddt_gpu_reduce_kernel_id_t kernel;
    uint32_t grid; /**< blocks; 0 if there is nothing to do */
    umrddt_gpu_reduce_args_t args;
} opal_umrddt_gpu_reduce_plan_t;

/** The kernel of an operation for a type; -1 if there is none. */
int opal_umrddt_gpu_reduce_kernel(umrddt_gpu_reduce_op_t op, umrddt_gpu_reduce_type_t type);

/** Its name in the fat binary. */
const char *opal_umrddt_gpu_reduce_kernel_name(umrddt_gpu_reduce_kernel_id_t kernel);

/** Bytes from one element of a type to the next one. */
size_t opal_umrddt_gpu_reduce_extent(umrddt_gpu_reduce_type_t type);

/**
 * Plan target[i] = source[0][i] op source[1][i] op ..., from the first to the last.
 *
 * @param[in] source      device addresses
 * @param[in] n           1 .. UMRDDT_GPU_REDUCE_SOURCES
 * @param[in] target      not overlapping a source, or equal to it
 * @param[in] processors  multiprocessors to use, at least 1
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  there is no kernel
 * @retval OPAL_ERR_BAD_PARAM      wrong number of sources
 */
int opal_umrddt_gpu_reduce_plan(umrddt_gpu_reduce_op_t op, umrddt_gpu_reduce_type_t type,
                                const uint64_t *source, unsigned n, uint64_t target, uint64_t count,
                                uint32_t processors, opal_umrddt_gpu_reduce_plan_t *plan);

END_C_DECLS

#endif /* UMRDDT_GPU_REDUCE_PLAN_H */
