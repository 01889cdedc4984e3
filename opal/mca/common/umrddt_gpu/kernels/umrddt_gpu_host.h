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
 * The kernels for the host's processor: the same source, each kernel an ordinary function, its
 * threads executed one by one. Only for tests and the software driver.
 */

#ifndef UMRDDT_GPU_HOST_H
#define UMRDDT_GPU_HOST_H

#include <stddef.h>

#include "umrddt_gpu_port.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** A kernel. */
typedef struct umrddt_gpu_host_kernel_t {
    const char *name;  /**< as in the fat binary */
    size_t args_bytes; /**< of its only argument */
    void (*thread)(const umrddt_gpu_thread_t *thread, const void *args);
} umrddt_gpu_host_kernel_t;

/** All kernels, by umrddt_gpu_kernel_id_t. */
extern const umrddt_gpu_host_kernel_t umrddt_gpu_host_kernels[UMRDDT_GPU_KERNEL_COUNT];

/** The kernel of that name; NULL if there is none. */
const umrddt_gpu_host_kernel_t *umrddt_gpu_host_kernel(const char *name);

/**
 * Run a kernel to completion. The addresses in its argument are the host's.
 *
 * @param[in]     grid    in blocks: x, y, z
 * @param[in]     block   in threads
 * @param[in]     args    kernel->args_bytes of them
 * @param[in,out] counts  incremented; may be NULL
 */
void umrddt_gpu_host_launch(const umrddt_gpu_host_kernel_t *kernel, const uint32_t grid[3],
                            const uint32_t block[3], const void *args, umrddt_gpu_counts_t *counts);

#if defined(__cplusplus)
}
#endif

#endif /* UMRDDT_GPU_HOST_H */
