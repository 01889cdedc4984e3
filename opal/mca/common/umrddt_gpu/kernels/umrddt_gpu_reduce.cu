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
 * The reduction kernels for the device. Compiled by nvcc, if available, into a fat binary of their
 * own, which is loaded by the first reduction.
 */

#include "umrddt_gpu_reduce_work.h"

#define KERNEL(OP, TYPE)                                                                         \
    extern "C" __global__ void __launch_bounds__(UMRDDT_GPU_REDUCE_THREADS)                      \
        umrddt_gpu_reduce_##OP##_##TYPE(const __grid_constant__ umrddt_gpu_reduce_args_t args)   \
    {                                                                                            \
        umrddt_gpu_thread_t thread = {};                                                         \
                                                                                                 \
        thread.tid_x = threadIdx.x;                                                              \
        thread.bid_x = blockIdx.x;                                                               \
        thread.dim_x = blockDim.x;                                                               \
        thread.all_x = gridDim.x;                                                                \
        umrddt_gpu_reduce_run(&thread, &args, UMRDDT_GPU_REDUCE_##OP, UMRDDT_GPU_REDUCE_##TYPE); \
    }
UMRDDT_GPU_REDUCE_KERNELS(KERNEL)
