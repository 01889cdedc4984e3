/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_reduce_plan.h"

#include <stdbool.h>

#include "opal/constants.h"

/* Blocks of a multiprocessor, at most: as for copies. */
#define BLOCKS 8
/* Bytes of a thread before one more block is used. */
#define THREAD_BYTES 16

/* The kernel for elements of `type`, plus 1; 0: none. */
#define KERNEL_OF(OP, TYPE) \
    [UMRDDT_GPU_REDUCE_##OP][UMRDDT_GPU_REDUCE_##TYPE] = UMRDDT_GPU_REDUCE_KERNEL_##OP##_##TYPE + 1,
static const uint8_t kernels[UMRDDT_GPU_REDUCE_OPS][UMRDDT_GPU_REDUCE_TYPES] = {
    UMRDDT_GPU_REDUCE_KERNELS(KERNEL_OF)};

#define NAME(OP, TYPE) "umrddt_gpu_reduce_" #OP "_" #TYPE,
static const char *const names[UMRDDT_GPU_REDUCE_KERNEL_COUNT] = {UMRDDT_GPU_REDUCE_KERNELS(NAME)};

/* Bytes of an element, and the alignment that C gives it. */
static const struct {
    uint8_t extent;
    uint8_t aligned;
} sizes[UMRDDT_GPU_REDUCE_TYPES] = {
    [UMRDDT_GPU_REDUCE_I8] = {1, 1},  [UMRDDT_GPU_REDUCE_U8] = {1, 1},
    [UMRDDT_GPU_REDUCE_I16] = {2, 2}, [UMRDDT_GPU_REDUCE_U16] = {2, 2},
    [UMRDDT_GPU_REDUCE_I32] = {4, 4}, [UMRDDT_GPU_REDUCE_U32] = {4, 4},
    [UMRDDT_GPU_REDUCE_I64] = {8, 8}, [UMRDDT_GPU_REDUCE_U64] = {8, 8},
    [UMRDDT_GPU_REDUCE_F32] = {4, 4}, [UMRDDT_GPU_REDUCE_F64] = {8, 8},
    [UMRDDT_GPU_REDUCE_C32] = {8, 8}, [UMRDDT_GPU_REDUCE_C64] = {16, 8},
    [UMRDDT_GPU_REDUCE_FI] = {8, 4},  [UMRDDT_GPU_REDUCE_DI] = {16, 8},
    [UMRDDT_GPU_REDUCE_LI] = {16, 8}, [UMRDDT_GPU_REDUCE_II] = {8, 4},
    [UMRDDT_GPU_REDUCE_SI] = {8, 4},
};

int opal_umrddt_gpu_reduce_kernel(umrddt_gpu_reduce_op_t op, umrddt_gpu_reduce_type_t type)
{
    static const uint8_t without_sign[] = {
        [UMRDDT_GPU_REDUCE_I8] = UMRDDT_GPU_REDUCE_U8,
        [UMRDDT_GPU_REDUCE_I16] = UMRDDT_GPU_REDUCE_U16,
        [UMRDDT_GPU_REDUCE_I32] = UMRDDT_GPU_REDUCE_U32,
        [UMRDDT_GPU_REDUCE_I64] = UMRDDT_GPU_REDUCE_U64,
    };

    if (UMRDDT_GPU_REDUCE_OPS <= (unsigned) op || UMRDDT_GPU_REDUCE_TYPES <= (unsigned) type) {
        return -1;
    }
    if (0 == kernels[op][type] && type < sizeof(without_sign) / sizeof(without_sign[0])
        && 0 != without_sign[type]) {
        type = (umrddt_gpu_reduce_type_t) without_sign[type];
    }
    return (int) kernels[op][type] - 1;
}

const char *opal_umrddt_gpu_reduce_kernel_name(umrddt_gpu_reduce_kernel_id_t kernel)
{
    return names[kernel];
}

size_t opal_umrddt_gpu_reduce_extent(umrddt_gpu_reduce_type_t type)
{
    return sizes[type].extent;
}

int opal_umrddt_gpu_reduce_plan(umrddt_gpu_reduce_op_t op, umrddt_gpu_reduce_type_t type,
                                const uint64_t *source, unsigned n, uint64_t target, uint64_t count,
                                uint32_t processors, opal_umrddt_gpu_reduce_plan_t *plan)
{
    const int kernel = opal_umrddt_gpu_reduce_kernel(op, type);
    umrddt_gpu_reduce_args_t *args = &plan->args;
    const uint64_t most = (uint64_t) processors * BLOCKS;
    uint64_t all = target, apart = 0, blocks;
    uint32_t extent;

    if (0 > kernel) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (0 == n || UMRDDT_GPU_REDUCE_SOURCES < n) {
        return OPAL_ERR_BAD_PARAM;
    }
    extent = sizes[type].extent;
    *args = (umrddt_gpu_reduce_args_t){.target = target, .count = count, .n = n};
    for (unsigned k = 0; k < n; ++k) {
        args->source[k] = source[k];
        all |= source[k];
        apart |= source[k] ^ target;
    }
    /* the lowest bit of all addresses and of the type's alignment */
    all |= sizes[type].aligned;
    args->width = (uint32_t) (all & (~all + 1));
    if (UMRDDT_GPU_REDUCE_FI > type && 0 == apart % 16 && 0 == target % extent) {
        const uint64_t before = (16 - target % 16) % 16 / extent;

        args->width = 16;
        args->head = (uint32_t) (before < count ? before : count);
    }
    plan->kernel = (umrddt_gpu_reduce_kernel_id_t) kernel;
    blocks = (count * extent + (uint64_t) UMRDDT_GPU_REDUCE_THREADS * THREAD_BYTES - 1)
             / ((uint64_t) UMRDDT_GPU_REDUCE_THREADS * THREAD_BYTES);
    plan->grid = (uint32_t) (blocks < most ? blocks : most);
    return OPAL_SUCCESS;
}
