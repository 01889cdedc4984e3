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
 * The kernels for devices, in the form that the driver loads: a fat binary by nvcc, or PTX as text.
 */

#ifndef UMRDDT_GPU_FATBIN_H
#define UMRDDT_GPU_FATBIN_H

#include "opal_config.h"

#include <stddef.h>

BEGIN_C_DECLS

/**
 * The fat binary, or the PTX with a terminating zero, with all kernels of copies, for
 * cuModuleLoadData.
 *
 * @param[out] bytes  its length, without that zero
 *
 * @return NULL if built without kernels; bytes is then 0
 */
const void *opal_umrddt_gpu_fatbin(size_t *bytes);

/** The same with the kernels of reductions. */
const void *opal_umrddt_gpu_reduce_fatbin(size_t *bytes);

END_C_DECLS

#endif /* UMRDDT_GPU_FATBIN_H */
