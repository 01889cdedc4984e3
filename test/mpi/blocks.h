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
 * Rows of equal blocks, for collectives: what each rank gives to or gets from each other one. Every
 * element of a block says from whom and to whom it goes, and in which block type; with gaps there
 * is one more element behind each, which nobody may write.
 */

#ifndef MPITEST_BLOCKS_H
#define MPITEST_BLOCKS_H

#include "mpitest.h"

typedef struct mpitest_blocks_t {
    int elements;      /**< of a block, ints */
    int count;         /**< blocks */
    int stride;        /**< ints from one element to the next: 2 with gaps, else 1 */
    MPI_Datatype type; /**< of one block; blocks follow each other by its extent */
    int *memory;
} mpitest_blocks_t;

/** Make @p count blocks of @p elements ints, cleared. */
mpitest_blocks_t *mpitest_blocks(int elements, int count, bool gaps);
void mpitest_blocks_free(mpitest_blocks_t *blocks);

/** Nothing in it. */
void mpitest_blocks_clear(mpitest_blocks_t *blocks);

/** Where block @p at begins. */
int *mpitest_block(const mpitest_blocks_t *blocks, int at);

/** Write the block that goes from one rank to another; salt tells several of them apart. */
void mpitest_block_set(mpitest_blocks_t *blocks, int at, int from, int to, int salt);

/** Block @p at must be this one, its gaps untouched. */
void mpitest_block_check(const char *file, int line, const mpitest_blocks_t *blocks, int at,
                         int from, int to, int salt);
#define CHECK_BLOCK(blocks, at, from, to, salt) \
    mpitest_block_check(__FILE__, __LINE__, blocks, at, from, to, salt)

/** Block @p at must be untouched. */
void mpitest_block_empty(const char *file, int line, const mpitest_blocks_t *blocks, int at);
#define CHECK_NO_BLOCK(blocks, at) mpitest_block_empty(__FILE__, __LINE__, blocks, at)

#endif /* MPITEST_BLOCKS_H */
