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
 * A message of more than 2^31 bytes, by types nested in types: its bytes, its count and its count
 * of elements. The sender sends one block of memory many times; the receiver needs memory for all
 * of them.
 */

#include "mpitest.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BLOCK = 1 << 20,
    GAP = 4096,
    INNER = 26,
    OUTER = 79
};
#define BLOCKS  (INNER * OUTER)
#define MESSAGE ((long long) BLOCKS * BLOCK) /* 2054 MiB */
#define SPAN    ((size_t) BLOCKS * (BLOCK + GAP))

static void *memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(MAP_FAILED != at);
    return at;
}

/* OUTER times INNER blocks, a stride apart. */
static MPI_Datatype blocks(MPI_Aint stride)
{
    MPI_Datatype inner, resized, outer;

    MPI_OK(MPI_Type_create_hvector(INNER, BLOCK, stride, MPI_BYTE, &inner));
    MPI_OK(MPI_Type_create_resized(inner, 0, INNER * stride, &resized));
    MPI_OK(MPI_Type_contiguous(OUTER, resized, &outer));
    MPI_OK(MPI_Type_commit(&outer));
    MPI_OK(MPI_Type_free(&inner));
    MPI_OK(MPI_Type_free(&resized));
    return outer;
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char) ((i * 0x9e3779b97f4a7c15u) >> 40);
}

static void send_it(void)
{
    unsigned char *block = memory(BLOCK);
    MPI_Datatype type = blocks(0);
    MPI_Request request;

    for (size_t i = 0; i < BLOCK; ++i) {
        block[i] = byte_at(i);
    }
    MPI_OK(MPI_Isend(block, 1, type, 1, 3, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_OK(MPI_Type_free(&type));
    CHECK(0 == munmap(block, BLOCK));
}

static void receive_it(void)
{
    unsigned char *all = memory(SPAN), *block = memory(BLOCK);
    MPI_Datatype type = blocks(BLOCK + GAP);
    MPI_Status status;
    MPI_Count count;
    int n;

    for (size_t i = 0; i < BLOCK; ++i) {
        block[i] = byte_at(i);
    }
    MPI_OK(MPI_Recv(all, 1, type, 0, 3, MPI_COMM_WORLD, &status));
    CHECK_INT(status.MPI_SOURCE, 0);
    CHECK_INT(status.MPI_TAG, 3);
    MPI_OK(MPI_Get_count(&status, type, &n));
    CHECK_INT(n, 1);
    MPI_OK(MPI_Get_elements_x(&status, type, &count));
    CHECK_INT(count, MESSAGE);
    /* More than an int can count. */
    MPI_OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK_INT(n, MPI_UNDEFINED);
    for (size_t i = 0; i < BLOCKS; ++i) {
        const unsigned char *at = all + i * (BLOCK + GAP);

        mpitest.step = (long) i;
        CHECK(0 == memcmp(at, block, BLOCK));
        for (size_t k = 0; k < GAP; ++k) {
            if (0 != at[BLOCK + k]) {
                mpitest_fail(__FILE__, __LINE__, "gap %zu was written, byte %zu", i, k);
            }
        }
    }
    MPI_OK(MPI_Type_free(&type));
    CHECK(0 == munmap(all, SPAN));
    CHECK(0 == munmap(block, BLOCK));
}

/* Available memory of this machine in MiB, or -1. */
static long available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = -1;

    while (NULL != file && -1 == kib && NULL != fgets(line, sizeof(line), file)) {
        if (1 != sscanf(line, "MemAvailable: %ld kB", &kib)) {
            kib = -1;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return -1 == kib ? -1 : kib / 1024;
}

int main(int argc, char **argv)
{
    long mib;

    mpitest_init(&argc, &argv, "large", 1, MPI_THREAD_SINGLE);
    mib = available();
    MPI_OK(MPI_Bcast(&mib, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    if (-1 != mib && 4096 > mib) {
        mpitest_skip("less than 4 GiB of memory are available");
    }
    if (0 == mpitest.rank) {
        send_it();
    } else if (1 == mpitest.rank) {
        receive_it();
    }
    return mpitest_finish();
}
