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
 * Shapes of a message at its two ends: types of one signature in many shapes. The layouts of
 * umrddt_bench at small sizes, each constructor of MPI by hand, bytes in every layout of layouts.h,
 * and random nested types.
 */

#ifndef MPITEST_GPU_SHAPES_H
#define MPITEST_GPU_SHAPES_H

#include "layouts.h"

/** One end: (type, count), and where its bytes lie. */
typedef struct gpu_end_t {
    MPI_Datatype type;
    int count;
    mpitest_map_t *map;
} gpu_end_t;

/** A message. Its stream has the same bytes at both ends. */
typedef struct gpu_shape_t {
    char name[96];
    gpu_end_t send;
    gpu_end_t recv;
    MPI_Aint bytes;
} gpu_shape_t;

/** Shapes made by hand and those of umrddt_bench; the same on every rank, whatever the seed. */
int gpu_shape_fixed_count(void);

/** Make one of them. */
gpu_shape_t *gpu_shape_fixed(int which);

/** Bytes in two layouts of layouts.h, drawn; 0 to somewhat more than @p most bytes. */
gpu_shape_t *gpu_shape_bytes(uint64_t *state, long most);

/** A random pair of nested types. */
gpu_shape_t *gpu_shape_nested(uint64_t *state);

void gpu_shape_free(gpu_shape_t *shape);

#endif /* MPITEST_GPU_SHAPES_H */
