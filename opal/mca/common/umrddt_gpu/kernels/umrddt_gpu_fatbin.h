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

#include <stdbool.h>
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

/**
 * PTX with one kernel of others. The driver compiles all kernels of a module before the first one
 * can run, which takes half a minute for those of copies.
 *
 * @return text with a terminating zero, which the caller frees; NULL if the image is not PTX, or
 *         has no such kernel, or without memory
 */
char *opal_umrddt_gpu_ptx_of(const void *image, const char *kernel);

/** True if an image is PTX, not a fat binary. */
bool opal_umrddt_gpu_is_ptx(const void *image);

END_C_DECLS

#endif /* UMRDDT_GPU_FATBIN_H */
