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
 * The kernels for the device. Compiled by nvcc, if available, into a fat binary. The CUDA
 * runtime is not used.
 */

#include "umrddt_gpu_parts.h"

/* Minimum blocks per multiprocessor; limits the registers that the compiler uses. */
#if !defined(UMRDDT_GPU_HELD)
#define UMRDDT_GPU_HELD 1
#endif

static_assert(sizeof(umrddt_gpu_args_inline_t) <= UMRDDT_GPU_ARGS_MAX, "too much for an argument");
static_assert(sizeof(umrddt_gpu_batch_t) <= UMRDDT_GPU_ARGS_MAX, "too much for an argument");

static __device__ __forceinline__ umrddt_gpu_thread_t umrddt_gpu_here(void)
{
    umrddt_gpu_thread_t thread;

    thread.tid_x = threadIdx.x;
    thread.tid_y = threadIdx.y;
    thread.tid_z = threadIdx.z;
    thread.bid_x = blockIdx.x;
    thread.bid_y = blockIdx.y;
    thread.bid_z = blockIdx.z;
    thread.dim_x = blockDim.x;
    thread.dim_y = blockDim.y;
    thread.dim_z = blockDim.z;
    thread.all_x = gridDim.x;
    thread.all_y = gridDim.y;
    thread.all_z = gridDim.z;
    thread.counts = 0;
    return thread;
}

#define KERNEL(SHAPE, SOURCE, TARGET, BITS)                                                       \
    extern "C" __global__ void __launch_bounds__(UMRDDT_GPU_MAX_THREADS, UMRDDT_GPU_HELD)         \
        umrddt_gpu_##SHAPE##_##SOURCE##_##TARGET##_##BITS(                                        \
            const __grid_constant__ umrddt_gpu_args_t args)                                       \
    {                                                                                             \
        const umrddt_gpu_thread_t thread = umrddt_gpu_here();                                     \
                                                                                                  \
        umrddt_gpu_run(&thread, &args, (const void *) args.side[0].list,                          \
                       (const void *) args.side[1].list, UMRDDT_GPU_##SHAPE, UMRDDT_GPU_##SOURCE, \
                       UMRDDT_GPU_##TARGET, BITS);                                                \
    }
/* One side is a stream; the list is the other's. */
#define KERNEL_INLINE(SHAPE, SOURCE, TARGET, BITS)                                        \
    extern "C" __global__ void __launch_bounds__(UMRDDT_GPU_MAX_THREADS, UMRDDT_GPU_HELD) \
        umrddt_gpu_##SHAPE##_##SOURCE##_##TARGET##_##BITS##_INLINE(                       \
            const __grid_constant__ umrddt_gpu_args_inline_t args)                        \
    {                                                                                     \
        const umrddt_gpu_thread_t thread = umrddt_gpu_here();                             \
                                                                                          \
        umrddt_gpu_run(&thread, &args.args, args.data, args.data, UMRDDT_GPU_##SHAPE,     \
                       UMRDDT_GPU_##SOURCE, UMRDDT_GPU_##TARGET, BITS);                   \
    }
UMRDDT_GPU_KERNELS(KERNEL)
UMRDDT_GPU_KERNELS_INLINE(KERNEL_INLINE)

#define BATCH(NAME, ANY, HELD)                                                 \
    extern "C" __global__ void __launch_bounds__(UMRDDT_GPU_MAX_THREADS, HELD) \
        umrddt_gpu_##NAME(const __grid_constant__ umrddt_gpu_batch_t batch)    \
    {                                                                          \
        umrddt_gpu_thread_t thread = umrddt_gpu_here();                        \
                                                                               \
        umrddt_gpu_batch(&thread, &batch, ANY);                                \
    }
BATCH(BATCH_REGULAR, 0, 4)
BATCH(BATCH_ANY, 1, UMRDDT_GPU_HELD)
