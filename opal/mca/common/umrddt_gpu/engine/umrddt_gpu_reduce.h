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
 * Reductions by a device: arrays in its memory are combined element by element. A reduction in
 * progress is an opal_umrddt_gpu_copy_t, to be tested or waited for as a copy
 * (umrddt_gpu_engine.h).
 */

#ifndef OPAL_UMRDDT_GPU_REDUCE_H
#define OPAL_UMRDDT_GPU_REDUCE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_plan.h"

#include "umrddt_gpu_engine.h"

BEGIN_C_DECLS

/**
 * True if the engine has a kernel for an operation on a type. The first call loads the kernels of
 * reductions, which takes milliseconds. If that fails for lack of memory or in a stream capture,
 * the next call tries again.
 */
bool opal_umrddt_gpu_reduces(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_reduce_op_t op,
                             umrddt_gpu_reduce_type_t type);

/**
 * Start target[i] = source[0][i] op source[1][i] op ..., from the first source to the last. One
 * launch for up to UMRDDT_GPU_REDUCE_SOURCES sources. No allocation in the steady state.
 *
 * @param[in]  engine  has a kernel (opal_umrddt_gpu_reduces); its device reaches all addresses
 * @param[in]  source  device addresses
 * @param[in]  n       sources, at least 1
 * @param[in]  target  may be equal to a source; overlaps no other one
 * @param[in]  spare   if there are more sources than a launch takes: one of the first
 *                     UMRDDT_GPU_REDUCE_SOURCES, which is overwritten
 * @param[in]  count   elements, at least 1
 * @param[out] copy    the caller's until opal_umrddt_gpu_copy_test or _wait reports completion
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED         no kernel
 * @retval OPAL_ERR_TEMP_OUT_OF_RESOURCE  no memory to start; nothing was done
 * @retval OPAL_ERR_OUT_OF_RESOURCE       no memory for a launch; the spare source may be
 * overwritten
 * @retval OPAL_ERROR                     the driver fails
 */
int opal_umrddt_gpu_reduce(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_reduce_op_t op,
                           umrddt_gpu_reduce_type_t type, const uint64_t *source, unsigned n,
                           uint64_t target, uint64_t spare, uint64_t count,
                           opal_umrddt_gpu_copy_t **copy);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_REDUCE_H */
