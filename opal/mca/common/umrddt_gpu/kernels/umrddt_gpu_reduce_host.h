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
 * The reduction kernels for the host's processor, as umrddt_gpu_host.h has the others. Only for
 * tests and the software driver.
 */

#ifndef UMRDDT_GPU_REDUCE_HOST_H
#define UMRDDT_GPU_REDUCE_HOST_H

#include "umrddt_gpu_host.h"
#include "umrddt_gpu_reduce_args.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** All of them, by umrddt_gpu_reduce_kernel_id_t. */
extern const umrddt_gpu_host_kernel_t
    umrddt_gpu_reduce_host_kernels[UMRDDT_GPU_REDUCE_KERNEL_COUNT];

#if defined(__cplusplus)
}
#endif

#endif /* UMRDDT_GPU_REDUCE_HOST_H */
