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
 * Rows of equal blocks, for collectives: the blocks that each rank sends to or receives from each
 * other rank. Every element of a block identifies the sender, the receiver, and the block type.
 * With gaps, each element is followed by a gap element, which must not be written.
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

/** Initialize empty. */
void mpitest_blocks_clear(mpitest_blocks_t *blocks);

/** Address of block @p at. */
int *mpitest_block(const mpitest_blocks_t *blocks, int at);

/** Write the block that goes from one rank to another; salt distinguishes several of them. */
void mpitest_block_set(mpitest_blocks_t *blocks, int at, int from, int to, int salt);

/** Check that block @p at is this one, with untouched gaps. */
void mpitest_block_check(const char *file, int line, const mpitest_blocks_t *blocks, int at,
                         int from, int to, int salt);
#define CHECK_BLOCK(blocks, at, from, to, salt) \
    mpitest_block_check(__FILE__, __LINE__, blocks, at, from, to, salt)

/** Check that block @p at is untouched. */
void mpitest_block_empty(const char *file, int line, const mpitest_blocks_t *blocks, int at);
#define CHECK_NO_BLOCK(blocks, at) mpitest_block_empty(__FILE__, __LINE__, blocks, at)

#endif /* MPITEST_BLOCKS_H */
