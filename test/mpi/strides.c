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
 * Equal blocks at equal distances around 65535 bytes, the limit of one key entry: from each
 * distance to each, with a check of every byte of the receiver's memory. With mode "umr", and if
 * umrddt maps keys with such entries for each message, the counters show which distances used one
 * entry and which used lists.
 */

#include "mpitest.h"
#include "pvars.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EDGE = 65535, /* the largest distance of one entry */
    FIRST = EDGE - 1,
    LAST = EDGE + 2,
    BLOCKS = 6, /* more than the few that are a list in any case */
    SPAN = BLOCKS * LAST + 1,
    GUARD = 0xa5
};

/* Bytes of a block, of which the last ones are as long as the distance allows. */
static const int blocks[] = {1024, 32768, 65533, 65534};

static unsigned char *memory;
static bool umr;

static unsigned char byte_at(int key, size_t i)
{
    return (unsigned char) ((((uint64_t) key << 20 | i) * 0x9e3779b97f4a7c15u) >> 40);
}

static MPI_Datatype vector_of(int block, int stride)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_hvector(BLOCKS, block, stride, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    return type;
}

static bool in_block(size_t i, int block, int stride)
{
    return (size_t) BLOCKS * (size_t) stride > i && i % (size_t) stride < (size_t) block;
}

/* Each byte of the receiver's memory: data in the blocks, no change outside. */
static void check_result(int key, int block, int stride)
{
    for (size_t i = 0; i < SPAN; ++i) {
        size_t at = i / (size_t) stride * (size_t) block + i % (size_t) stride;
        unsigned char wanted = in_block(i, block, stride) ? byte_at(key, at) : GUARD;

        if (memory[i] != wanted) {
            mpitest_fail(__FILE__, __LINE__,
                         "blocks of %d every %d: byte %zu is 0x%02x, not 0x%02x", block, stride, i,
                         memory[i], wanted);
        }
    }
    ++mpitest.checks;
}

/* Entries of the key of one side: none if it is contiguous, which needs no such key. */
static int entries_of(int block, int stride)
{
    return block == stride ? 0 : EDGE >= stride ? 1 : BLOCKS;
}

/* One message from rank 0 to rank 1. */
static void one(int key, int block, int from, int to)
{
    MPI_Datatype type = vector_of(block, 0 == mpitest.rank ? from : to);
    pvars_t before, after, mine, all;
    MPI_Status status;

    memset(memory, GUARD, SPAN);
    for (size_t i = 0; 0 == mpitest.rank && i < SPAN; ++i) {
        if (in_block(i, block, from)) {
            memory[i] = byte_at(key, i / (size_t) from * (size_t) block + i % (size_t) from);
        }
    }
    pvars_read(&before);
    if (0 == mpitest.rank) {
        MPI_OK(MPI_Send(memory, 1, type, 1, key, MPI_COMM_WORLD));
    } else {
        MPI_OK(MPI_Recv(memory, 1, type, 0, key, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, 0, key, BLOCKS * block);
        check_result(key, block, to);
    }
    MPI_OK(MPI_Type_free(&type));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&after);
    pvars_subtract(&after, &before, &mine);
    pvars_sum(&mine, &all);
    if (umr) {
        /* umrddt passes a message through if it is contiguous at its sender. */
        CHECK_INT(all.value[PVARS_WRITES_POSTED], from == block ? 0 : 1);
        CHECK_INT(all.value[PVARS_KEY_ENTRIES],
                  from == block ? 0 : entries_of(block, from) + entries_of(block, to));
    }
}

static void every_pair(void)
{
    int key = 0;

    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); ++b) {
        for (int from = FIRST; from <= LAST; ++from) {
            for (int to = FIRST; to <= LAST; ++to) {
                mpitest.step = ++key;
                mpitest_alive();
                one(key, blocks[b], from, to);
            }
        }
    }
}

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "strides", 1, MPI_THREAD_SINGLE);
    CHECK_INT(mpitest.size, 2);
    umr = 0 == strcmp(mpitest.mode, "umr");
    memory = malloc(SPAN);
    CHECK(NULL != memory);
    CHECK(!umr || 0 < pvars_open());
    every_pair();
    if (umr) {
        pvars_close();
    }
    free(memory);
    return mpitest_finish();
}
