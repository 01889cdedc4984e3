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
 * Predefined operations and types, by their handles: the header of Open MPI's operations is not
 * installed everywhere. See coll_umrddt_reduce.h first.
 */

#include "coll_umrddt_reduce.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_plan.h"

typedef enum class_t {
    SIGNED,
    UNSIGNED, /**< also logical types */
    REAL,
    COMPLEX,
    NONE
} class_t;

bool mca_coll_umrddt_reduce_op(const ompi_op_t *op, umrddt_gpu_reduce_op_t *which)
{
    static const struct {
        MPI_Op op;
        umrddt_gpu_reduce_op_t which;
    } ops[] = {
        {MPI_SUM, UMRDDT_GPU_REDUCE_SUM},       {MPI_MAX, UMRDDT_GPU_REDUCE_MAX},
        {MPI_MIN, UMRDDT_GPU_REDUCE_MIN},       {MPI_PROD, UMRDDT_GPU_REDUCE_PROD},
        {MPI_LAND, UMRDDT_GPU_REDUCE_LAND},     {MPI_LOR, UMRDDT_GPU_REDUCE_LOR},
        {MPI_LXOR, UMRDDT_GPU_REDUCE_LXOR},     {MPI_BAND, UMRDDT_GPU_REDUCE_BAND},
        {MPI_BOR, UMRDDT_GPU_REDUCE_BOR},       {MPI_BXOR, UMRDDT_GPU_REDUCE_BXOR},
        {MPI_MAXLOC, UMRDDT_GPU_REDUCE_MAXLOC}, {MPI_MINLOC, UMRDDT_GPU_REDUCE_MINLOC},
    };

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
        if (ops[i].op == op) {
            *which = ops[i].which;
            return true;
        }
    }
    return false;
}

static class_t class_of(const ompi_datatype_t *type)
{
    static const struct {
        MPI_Datatype type;
        class_t is;
    } types[] = {
        {MPI_DOUBLE, REAL},
        {MPI_FLOAT, REAL},
        {MPI_INT, SIGNED},
        {MPI_LONG, SIGNED},
        {MPI_LONG_LONG, SIGNED},
        {MPI_SHORT, SIGNED},
        {MPI_SIGNED_CHAR, SIGNED},
        {MPI_INT8_T, SIGNED},
        {MPI_INT16_T, SIGNED},
        {MPI_INT32_T, SIGNED},
        {MPI_INT64_T, SIGNED},
        {MPI_AINT, SIGNED},
        {MPI_COUNT, SIGNED},
        {MPI_UNSIGNED_CHAR, UNSIGNED},
        {MPI_UNSIGNED_SHORT, UNSIGNED},
        {MPI_UNSIGNED, UNSIGNED},
        {MPI_UNSIGNED_LONG, UNSIGNED},
        {MPI_UNSIGNED_LONG_LONG, UNSIGNED},
        {MPI_UINT8_T, UNSIGNED},
        {MPI_UINT16_T, UNSIGNED},
        {MPI_UINT32_T, UNSIGNED},
        {MPI_UINT64_T, UNSIGNED},
        {MPI_OFFSET, UNSIGNED}, /* as in Open MPI */
        {MPI_BYTE, UNSIGNED},
        {MPI_C_BOOL, UNSIGNED},
        {MPI_C_FLOAT_COMPLEX, COMPLEX},
        {MPI_C_DOUBLE_COMPLEX, COMPLEX},
        /* mpi.h lacks the names of those that its Fortran compiler has not. */
        {MPI_INTEGER, SIGNED},
        {&ompi_mpi_integer1.dt, SIGNED},
        {&ompi_mpi_integer2.dt, SIGNED},
        {&ompi_mpi_integer4.dt, SIGNED},
        {&ompi_mpi_integer8.dt, SIGNED},
        {MPI_LOGICAL, UNSIGNED},
        {MPI_REAL, REAL},
        {&ompi_mpi_real4.dt, REAL},
        {&ompi_mpi_real8.dt, REAL},
        {MPI_DOUBLE_PRECISION, REAL},
        {MPI_COMPLEX, COMPLEX},
        {&ompi_mpi_complex8.dt, COMPLEX},
        {&ompi_mpi_complex16.dt, COMPLEX},
        {MPI_DOUBLE_COMPLEX, COMPLEX},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        if (types[i].type == type) {
            return types[i].is;
        }
    }
    return NONE;
}

/** Get the type of kernels for a class and a size. @return false: there is none */
static bool type_of(class_t is, size_t size, umrddt_gpu_reduce_type_t *which)
{
    static const struct {
        class_t is;
        size_t size;
        umrddt_gpu_reduce_type_t which;
    } types[] = {
        {REAL, 8, UMRDDT_GPU_REDUCE_F64},     {REAL, 4, UMRDDT_GPU_REDUCE_F32},
        {SIGNED, 4, UMRDDT_GPU_REDUCE_I32},   {SIGNED, 8, UMRDDT_GPU_REDUCE_I64},
        {SIGNED, 2, UMRDDT_GPU_REDUCE_I16},   {SIGNED, 1, UMRDDT_GPU_REDUCE_I8},
        {UNSIGNED, 4, UMRDDT_GPU_REDUCE_U32}, {UNSIGNED, 8, UMRDDT_GPU_REDUCE_U64},
        {UNSIGNED, 2, UMRDDT_GPU_REDUCE_U16}, {UNSIGNED, 1, UMRDDT_GPU_REDUCE_U8},
        {COMPLEX, 8, UMRDDT_GPU_REDUCE_C32},  {COMPLEX, 16, UMRDDT_GPU_REDUCE_C64},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        if (types[i].is == is && types[i].size == size) {
            *which = types[i].which;
            return true;
        }
    }
    return false;
}

static bool find(const ompi_datatype_t *type, umrddt_gpu_reduce_type_t *which)
{
    static const struct {
        MPI_Datatype type;
        umrddt_gpu_reduce_type_t which;
    } pairs[] = {
        {MPI_FLOAT_INT, UMRDDT_GPU_REDUCE_FI}, {MPI_DOUBLE_INT, UMRDDT_GPU_REDUCE_DI},
        {MPI_LONG_INT, UMRDDT_GPU_REDUCE_LI},  {MPI_2INT, UMRDDT_GPU_REDUCE_II},
        {MPI_SHORT_INT, UMRDDT_GPU_REDUCE_SI},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); ++i) {
        if (pairs[i].type == type) {
            *which = pairs[i].which;
            return true;
        }
    }
    return type_of(class_of(type), type->super.size, which);
}

bool mca_coll_umrddt_reduce_type(const ompi_datatype_t *type, umrddt_gpu_reduce_type_t *which)
{
    return find(type, which) && 0 == type->super.lb
           && (ptrdiff_t) opal_umrddt_gpu_reduce_extent(*which) == type->super.ub;
}
