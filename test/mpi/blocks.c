/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "blocks.h"

#include <stdlib.h>

#define NOTHING -1

mpitest_blocks_t *mpitest_blocks(int elements, int count, bool gaps)
{
    mpitest_blocks_t *blocks = malloc(sizeof(*blocks));
    MPI_Datatype vector;

    CHECK(NULL != blocks);
    blocks->elements = elements;
    blocks->count = count;
    blocks->stride = gaps ? 2 : 1;
    blocks->memory =
        malloc(sizeof(int) * ((size_t) elements * (size_t) blocks->stride * (size_t) count + 1));
    CHECK(NULL != blocks->memory);
    MPI_OK(MPI_Type_vector(elements, 1, blocks->stride, MPI_INT, &vector));
    MPI_OK(MPI_Type_create_resized(vector, 0, (MPI_Aint) sizeof(int) * elements * blocks->stride,
                                   &blocks->type));
    MPI_OK(MPI_Type_commit(&blocks->type));
    MPI_OK(MPI_Type_free(&vector));
    mpitest_blocks_clear(blocks);
    return blocks;
}

void mpitest_blocks_free(mpitest_blocks_t *blocks)
{
    MPI_OK(MPI_Type_free(&blocks->type));
    free(blocks->memory);
    free(blocks);
}

void mpitest_blocks_clear(mpitest_blocks_t *blocks)
{
    int i;

    for (i = 0; i < blocks->elements * blocks->stride * blocks->count; ++i) {
        blocks->memory[i] = NOTHING;
    }
}

int *mpitest_block(const mpitest_blocks_t *blocks, int at)
{
    return blocks->memory + (size_t) at * (size_t) (blocks->elements * blocks->stride);
}

static int element(int from, int to, int salt, int i)
{
    return (int) (mpitest_mix((uint64_t) (from + 1), (uint64_t) (to * 64 + salt), (uint64_t) i)
                  & 0x7fffffff);
}

void mpitest_block_set(mpitest_blocks_t *blocks, int at, int from, int to, int salt)
{
    int *block = mpitest_block(blocks, at), i;

    for (i = 0; i < blocks->elements; ++i) {
        block[i * blocks->stride] = element(from, to, salt, i);
    }
}

void mpitest_block_check(const char *file, int line, const mpitest_blocks_t *blocks, int at,
                         int from, int to, int salt)
{
    const int *block = mpitest_block(blocks, at);
    int i;

    for (i = 0; i < blocks->elements * blocks->stride; ++i) {
        bool gap = 0 != i % blocks->stride;
        int wanted = gap ? NOTHING : element(from, to, salt, i / blocks->stride);

        if (block[i] != wanted) {
            mpitest_fail(file, line, "block %d, %s %d of %d: %d, not %d (from %d to %d, salt %d)",
                         at, gap ? "gap" : "element", i / blocks->stride, blocks->elements,
                         block[i], wanted, from, to, salt);
        }
    }
    ++mpitest.checks;
}

void mpitest_block_empty(const char *file, int line, const mpitest_blocks_t *blocks, int at)
{
    const int *block = mpitest_block(blocks, at);
    int i;

    for (i = 0; i < blocks->elements * blocks->stride; ++i) {
        if (NOTHING != block[i]) {
            mpitest_fail(file, line, "block %d, element %d: %d in a block that must not be written",
                         at, i / blocks->stride, block[i]);
        }
    }
    ++mpitest.checks;
}
