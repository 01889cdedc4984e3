/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The kernels of common/umrddt_gpu for the software CUDA driver: those for the host, as a shared
 * object that the driver loads. Loads and stores are checked by the driver; of a list only that its
 * first byte may be read.
 */

#include <stdlib.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_host.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_host.h"
#include "sim/cuda/gpu_host_kernel.h"

static const struct gpu_host_services *services;

static void *memory_at(uint64_t address, uint32_t width, int write)
{
    return services->at(address, width, write, 0);
}

static const void *list_at(uint64_t address)
{
    /* Each thread of a kernel asks for both lists, and most have none. */
    size_t bytes = 0 == address ? 0 : services->rest(address);

    return 0 == bytes ? NULL : services->at(address, bytes, 0, 1);
}

#define KERNELS (UMRDDT_GPU_KERNEL_COUNT + UMRDDT_GPU_REDUCE_KERNEL_COUNT)

static void run(const struct gpu_host_kernel *kernel, const struct gpu_host_thread *where,
                void **params)
{
    const umrddt_gpu_host_kernel_t *ours = kernel->data;
    umrddt_gpu_counts_t counts = {{0}, 0};
    umrddt_gpu_thread_t thread = {.tid_x = where->thread[0],
                                  .tid_y = where->thread[1],
                                  .tid_z = where->thread[2],
                                  .bid_x = where->block[0],
                                  .bid_y = where->block[1],
                                  .bid_z = where->block[2],
                                  .dim_x = where->threads[0],
                                  .dim_y = where->threads[1],
                                  .dim_z = where->threads[2],
                                  .all_x = where->blocks[0],
                                  .all_y = where->blocks[1],
                                  .all_z = where->blocks[2],
                                  .counts = &counts};

    ours->thread(&thread, params[0]);
}

const struct gpu_host_kernels *gpu_host_module(const struct gpu_host_services *of_driver)
{
    static struct gpu_host_kernel list[KERNELS];
    static const struct gpu_host_kernels kernels = {GPU_HOST_ABI, KERNELS, list};
    int i;

    services = of_driver;
    umrddt_gpu_host_memory.at = memory_at;
    umrddt_gpu_host_memory.list = list_at;
    for (i = 0; i < KERNELS; i++) {
        const umrddt_gpu_host_kernel_t *kernel =
            UMRDDT_GPU_KERNEL_COUNT > i
                ? &umrddt_gpu_host_kernels[i]
                : &umrddt_gpu_reduce_host_kernels[i - UMRDDT_GPU_KERNEL_COUNT];

        list[i].name = kernel->name;
        list[i].params = 1;
        list[i].sizes = &kernel->args_bytes;
        list[i].run = run;
        list[i].data = kernel;
    }
    return GPU_HOST_ABI == of_driver->abi ? &kernels : NULL;
}
