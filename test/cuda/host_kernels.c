/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Kernels for test_kernels, as a shared object that the software driver loads. */

#include "gpu_host_kernel.h"

static const struct gpu_host_services *services;

/* One thread, one element: to[i] = from[i * stride] for i < count. */
static void gather(const struct gpu_host_kernel *kernel, const struct gpu_host_thread *thread,
                   void **params)
{
    uint64_t to = *(uint64_t *) params[0];
    uint64_t from = *(uint64_t *) params[1];
    unsigned stride = *(unsigned *) params[2];
    unsigned count = *(unsigned *) params[3];
    unsigned i = thread->block[0] * thread->threads[0] + thread->thread[0];

    (void) kernel;
    if (i < count) {
        *(uint32_t *) services->at(to + 4ull * i, 4, 1, 0) =
            *(uint32_t *) services->at(from + 4ull * i * stride, 4, 0, 0);
    }
}

/* Adds one, in the first thread of a block, to the byte that belongs to the block, of three
 * dimensions. */
static void touch(const struct gpu_host_kernel *kernel, const struct gpu_host_thread *thread,
                  void **params)
{
    uint64_t to = *(uint64_t *) params[0];
    unsigned block =
        thread->block[0]
        + thread->blocks[0] * (thread->block[1] + thread->blocks[1] * thread->block[2]);

    (void) kernel;
    if (0 == thread->thread[0] && 0 == thread->thread[1] && 0 == thread->thread[2]) {
        ++*(unsigned char *) services->at(to + block, 1, 1, 0);
    }
}

static const size_t gather_sizes[] = {8, 8, 4, 4};
static const size_t touch_sizes[] = {8};
static const struct gpu_host_kernel list[] = {
    {"gather", 4, gather_sizes, gather, 0},
    {"touch", 1, touch_sizes, touch, 0},
};
static const struct gpu_host_kernels kernels = {GPU_HOST_ABI, 2, list};

const struct gpu_host_kernels *gpu_host_module(const struct gpu_host_services *of_driver)
{
    services = of_driver;
    return GPU_HOST_ABI == of_driver->abi ? &kernels : 0;
}
