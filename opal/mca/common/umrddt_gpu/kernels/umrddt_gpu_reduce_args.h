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
 * Interface of host and device of the reduction kernels: their list, and their one argument. Plain
 * C, compiled by the host's compiler and by nvcc; includes nothing of Open MPI.
 *
 * A kernel combines up to UMRDDT_GPU_REDUCE_SOURCES arrays of one type, element by element, from
 * the first source to the last one. Its name is umrddt_gpu_reduce_OPERATION_TYPE.
 */

#ifndef UMRDDT_GPU_REDUCE_ARGS_H
#define UMRDDT_GPU_REDUCE_ARGS_H

#include <stdint.h>

/** MPI's operations. */
typedef enum {
    UMRDDT_GPU_REDUCE_SUM = 0,
    UMRDDT_GPU_REDUCE_PROD,
    UMRDDT_GPU_REDUCE_MAX,
    UMRDDT_GPU_REDUCE_MIN,
    UMRDDT_GPU_REDUCE_LAND,
    UMRDDT_GPU_REDUCE_LOR,
    UMRDDT_GPU_REDUCE_LXOR,
    UMRDDT_GPU_REDUCE_BAND,
    UMRDDT_GPU_REDUCE_BOR,
    UMRDDT_GPU_REDUCE_BXOR,
    UMRDDT_GPU_REDUCE_MAXLOC,
    UMRDDT_GPU_REDUCE_MINLOC,
    UMRDDT_GPU_REDUCE_OPS
} umrddt_gpu_reduce_op_t;

/** Types of elements, as C has them. */
typedef enum {
    UMRDDT_GPU_REDUCE_I8 = 0,
    UMRDDT_GPU_REDUCE_U8, /**< also bool */
    UMRDDT_GPU_REDUCE_I16,
    UMRDDT_GPU_REDUCE_U16,
    UMRDDT_GPU_REDUCE_I32,
    UMRDDT_GPU_REDUCE_U32,
    UMRDDT_GPU_REDUCE_I64,
    UMRDDT_GPU_REDUCE_U64,
    UMRDDT_GPU_REDUCE_F32,
    UMRDDT_GPU_REDUCE_F64,
    UMRDDT_GPU_REDUCE_C32, /**< complex: two float */
    UMRDDT_GPU_REDUCE_C64, /**< complex: two double */
    UMRDDT_GPU_REDUCE_FI,  /**< struct { float value; int32_t index; } */
    UMRDDT_GPU_REDUCE_DI,  /**< struct { double value; int32_t index; } */
    UMRDDT_GPU_REDUCE_LI,  /**< struct { int64_t value; int32_t index; } */
    UMRDDT_GPU_REDUCE_II,  /**< struct { int32_t value; int32_t index; } */
    UMRDDT_GPU_REDUCE_SI,  /**< struct { int16_t value; int32_t index; } */
    UMRDDT_GPU_REDUCE_TYPES
} umrddt_gpu_reduce_type_t;

/** Maximum number of sources of a launch. */
#define UMRDDT_GPU_REDUCE_SOURCES 16

/** Threads of a block. */
#define UMRDDT_GPU_REDUCE_THREADS 256

/** The argument of a kernel. All addresses are the device's. */
typedef struct umrddt_gpu_reduce_args_t {
    uint64_t target; /**< may be equal to a source */
    uint64_t count;  /**< elements */
    uint32_t n;      /**< sources, at least 1 */
    /**
     * Bytes of an access: 16 if all addresses are equal modulo 16 and each element is aligned. Else
     * the largest power of 2 that divides all addresses, at most the alignment of the type.
     */
    uint32_t width;
    uint32_t head; /**< width 16: elements before the first aligned 16 bytes */
    uint32_t reserved;
    uint64_t source[UMRDDT_GPU_REDUCE_SOURCES];
} umrddt_gpu_reduce_args_t;

/* X(OPERATION, TYPE). The result of signed integers has the bits of that of unsigned ones, except
 * for MAX and MIN. */
#define UMRDDT_GPU_REDUCE_BITS(X, OP) X(OP, U8) X(OP, U16) X(OP, U32) X(OP, U64)
#define UMRDDT_GPU_REDUCE_ARITHMETIC(X, OP) \
    UMRDDT_GPU_REDUCE_BITS(X, OP) X(OP, F32) X(OP, F64) X(OP, C32) X(OP, C64)
#define UMRDDT_GPU_REDUCE_ORDERED(X, OP) \
    UMRDDT_GPU_REDUCE_BITS(X, OP)        \
    X(OP, I8) X(OP, I16) X(OP, I32) X(OP, I64) X(OP, F32) X(OP, F64)
#define UMRDDT_GPU_REDUCE_PAIRS(X, OP) X(OP, FI) X(OP, DI) X(OP, LI) X(OP, II) X(OP, SI)

/** All kernels. */
#define UMRDDT_GPU_REDUCE_KERNELS(X)      \
    UMRDDT_GPU_REDUCE_ARITHMETIC(X, SUM)  \
    UMRDDT_GPU_REDUCE_ARITHMETIC(X, PROD) \
    UMRDDT_GPU_REDUCE_ORDERED(X, MAX)     \
    UMRDDT_GPU_REDUCE_ORDERED(X, MIN)     \
    UMRDDT_GPU_REDUCE_BITS(X, LAND)       \
    UMRDDT_GPU_REDUCE_BITS(X, LOR)        \
    UMRDDT_GPU_REDUCE_BITS(X, LXOR)       \
    UMRDDT_GPU_REDUCE_BITS(X, BAND)       \
    UMRDDT_GPU_REDUCE_BITS(X, BOR)        \
    UMRDDT_GPU_REDUCE_BITS(X, BXOR)       \
    UMRDDT_GPU_REDUCE_PAIRS(X, MAXLOC)    \
    UMRDDT_GPU_REDUCE_PAIRS(X, MINLOC)

/** Kernels by number. */
typedef enum {
#define UMRDDT_GPU_REDUCE_ID(OP, TYPE) UMRDDT_GPU_REDUCE_KERNEL_##OP##_##TYPE,
    UMRDDT_GPU_REDUCE_KERNELS(UMRDDT_GPU_REDUCE_ID)
#undef UMRDDT_GPU_REDUCE_ID
    UMRDDT_GPU_REDUCE_KERNEL_COUNT
} umrddt_gpu_reduce_kernel_id_t;

#endif /* UMRDDT_GPU_REDUCE_ARGS_H */
