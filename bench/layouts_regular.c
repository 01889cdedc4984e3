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
 * Layouts that need no application: contiguous, vector, indexed, faces of a cube.
 */

#include <stdlib.h>

#include "bench_util.h"
#include "layouts.h"

/* Fixed for ever, so that results of different days can be compared. */
#define SEED_INDEXED_SEND 0x756d7264u
#define SEED_INDEXED_RECV 0x64745f72u

/* The reference: params[0] bytes in one piece. */
void bench_make_contiguous(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    int i;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype type;

        MPI_Type_contiguous(params[0], MPI_BYTE, &type);
        bench_side_set_type(sides[i], type, 1, 0, (uint64_t) params[0]);
        bench_side_add(sides[i], 0, (uint64_t) params[0]);
    }
}

/*
 * params[1] blocks of params[0] bytes, as far from each other as they are long: the vectors of
 * "Network Assisted Non-Contiguous Transfers for GPU-Aware MPI Libraries",
 * there 1, 2 and 4 KiB by 16 to 128.
 */
void bench_make_vector(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    int block = params[0], count = params[1];
    int i, k;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype type;

        MPI_Type_vector(count, block / 8, 2 * (block / 8), MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, 2 * (uint64_t) block * (uint64_t) count);
        for (k = 0; k < count; ++k) {
            bench_side_add(sides[i], 2 * (int64_t) block * k, (uint64_t) block);
        }
    }
}

/*
 * params[1] blocks of params[0] bytes at random places of an array four times as large, in random
 * order, other places on the receiving side: the unstructured exchange at its worst.
 */
void bench_make_indexed(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const uint64_t seeds[2] = {SEED_INDEXED_SEND, SEED_INDEXED_RECV};
    int block = params[0], count = params[1];
    int i, k;

    for (i = 0; i < 2; ++i) {
        int *slots = bench_random_distinct(count, 4 * count, seeds[i]);
        MPI_Datatype type;

        for (k = 0; k < count; ++k) {
            bench_side_add(sides[i], (int64_t) slots[k] * block, (uint64_t) block);
            slots[k] *= block / 8;
        }
        MPI_Type_create_indexed_block(count, block / 8, slots, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, 4 * (uint64_t) block * (uint64_t) count);
        free(slots);
    }
}

/*
 * A halo of width r = params[1] of a cube of n = params[0] doubles a side, across direction
 * params[2]: the r layers next to the upper ghost layers are sent, the lower ghost layers are
 * received. x is the direction that is contiguous in memory, so an x face has n * n blocks of r
 * doubles, a y face n blocks of r * n doubles, a z face one block. (The 3-D stencils of the paper
 * above, 8 B / 1 KiB / 128 KiB blocks at n = 128.)
 */
void bench_make_face(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int n = params[0], radius = params[1], direction = params[2];
    int i;

    for (i = 0; i < 2; ++i) {
        /* C order: the last of the three is contiguous, so direction 0 is index 2 */
        int sizes[3] = {n, n, n}, subsizes[3] = {n, n, n}, starts[3] = {0, 0, 0};
        MPI_Datatype type;
        int y, z;

        subsizes[2 - direction] = radius;
        starts[2 - direction] = 0 == i ? n - 2 * radius : 0;
        MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, 8 * (uint64_t) n * (uint64_t) n * (uint64_t) n);
        for (z = starts[0]; z < starts[0] + subsizes[0]; ++z) {
            for (y = starts[1]; y < starts[1] + subsizes[1]; ++y) {
                bench_side_add(sides[i], 8 * (((int64_t) z * n + y) * n + starts[2]),
                               8 * (uint64_t) subsizes[2]);
            }
        }
    }
}

/*
 * The kinds of datatypes of HAND ("HAND: A Hybrid Approach to Accelerate Non-contiguous Data
 * Movement using MPI Datatypes on GPU Clusters", ICPP 2014), each with params[0] KiB of data and in
 * the same shape at both sides. How long the blocks are is chosen here. Blocks of 256 bytes, 1000
 * from one to the next: no vector of doubles could say that it is no multiple of a block.
 */
void bench_make_hand_hvector(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int count = 1024 / 256 * params[0];
    int i, k;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype type;

        MPI_Type_create_hvector(count, 32, 1000, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, 1000 * (uint64_t) count);
        for (k = 0; k < count; ++k) {
            bench_side_add(sides[i], 1000 * (int64_t) k, 256);
        }
    }
}

/* A contiguous type of vectors: 8 blocks of 64 bytes, 128 from one to the next, and 1088 bytes from
 * one vector to the next one, so that two do not make one. */
void bench_make_hand_contiguous(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int count = 2 * params[0];
    int i, k, block;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype vector, resized, type;

        MPI_Type_vector(8, 8, 16, MPI_DOUBLE, &vector);
        MPI_Type_create_resized(vector, 0, 1088, &resized);
        MPI_Type_contiguous(count, resized, &type);
        MPI_Type_free(&vector);
        MPI_Type_free(&resized);
        bench_side_set_type(sides[i], type, 1, 0, 1088 * (uint64_t) count);
        for (k = 0; k < count; ++k) {
            for (block = 0; block < 8; ++block) {
                bench_side_add(sides[i], 1088 * (int64_t) k + 128 * block, 64);
            }
        }
    }
}

/* An array of particles of 64 bytes: 3 doubles at 0 and one at 40 of each are sent. */
void bench_make_hand_struct(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int lengths[2] = {3, 1}, count = 1024 / 32 * params[0];
    const MPI_Aint places[2] = {0, 40};
    const MPI_Datatype fields[2] = {MPI_DOUBLE, MPI_DOUBLE};
    int i, k;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype some, type;

        MPI_Type_create_struct(2, lengths, places, fields, &some);
        MPI_Type_create_resized(some, 0, 64, &type);
        MPI_Type_free(&some);
        bench_side_set_type(sides[i], type, count, 0, 64 * (uint64_t) count);
        for (k = 0; k < count; ++k) {
            bench_side_add(sides[i], 64 * (int64_t) k, 24);
            bench_side_add(sides[i], 64 * (int64_t) k + 40, 8);
        }
    }
}
