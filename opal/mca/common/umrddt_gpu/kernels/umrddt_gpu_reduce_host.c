/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_reduce_host.h"

#include "umrddt_gpu_reduce_work.h"

#define RUN(OP, TYPE)                                                                          \
    static void reduce_##OP##_##TYPE(const umrddt_gpu_thread_t *thread, const void *args)      \
    {                                                                                          \
        umrddt_gpu_reduce_run(thread, args, UMRDDT_GPU_REDUCE_##OP, UMRDDT_GPU_REDUCE_##TYPE); \
    }
UMRDDT_GPU_REDUCE_KERNELS(RUN)

#define REDUCE_ENTRY(OP, TYPE) \
    {"umrddt_gpu_reduce_" #OP "_" #TYPE, sizeof(umrddt_gpu_reduce_args_t), reduce_##OP##_##TYPE},

const umrddt_gpu_host_kernel_t umrddt_gpu_reduce_host_kernels[UMRDDT_GPU_REDUCE_KERNEL_COUNT] = {
    UMRDDT_GPU_REDUCE_KERNELS(REDUCE_ENTRY)};
