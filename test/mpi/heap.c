/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Buffers in memory that the heap returns to the system (brk) and obtains again at the same
 * address. The pages differ, so a registration of the old ones must not be reused. An HCA that pins
 * pages would access the old pages. The software HCA does not pin pages, so the test counts
 * registrations. The row lets UCX watch memory as it does by default (bistro): its sbrk keeps Open
 * MPI's hook of brk from being called.
 */

#include "mpitest.h"
#include "pvars.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 1024,
    COUNT = 128,
    ROOM = 2 * BLOCK * COUNT,
    PAGE = 4096,
    TIMES = 3
};

static MPI_Datatype type;

/* One message from rank 0's region to rank 1's. */
static void transfer(unsigned char *region, int number)
{
    for (int i = 0; i < COUNT; ++i) {
        memset(region + 2 * BLOCK * i, 0 == mpitest.rank ? 1 + (i + number) % 200 : 0, BLOCK);
    }
    if (0 == mpitest.rank) {
        MPI_OK(MPI_Send(region, 1, type, 1, 0, MPI_COMM_WORLD));
        return;
    }
    MPI_OK(MPI_Recv(region, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; ++i) {
        CHECK_INT(region[2 * BLOCK * i], 1 + (i + number) % 200);
        CHECK_INT(region[2 * BLOCK * i + BLOCK - 1], 1 + (i + number) % 200);
    }
}

/* Number of registrations that these messages made here. */
static uint64_t registrations(unsigned char *region, int number)
{
    pvars_t before, after, difference;

    pvars_read(&before);
    for (int i = 0; i < TIMES; ++i) {
        transfer(region, number + i);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &difference);
    return difference.value[PVARS_REG_MISSES];
}

/* Reserve heap memory, so that other code needs none for a while. */
static void spare(void)
{
    void *memory[64];

    CHECK_INT(mallopt(M_TRIM_THRESHOLD, 1 << 30), 1);
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); ++i) {
        memory[i] = malloc(16 * PAGE);
    }
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); ++i) {
        free(memory[i]);
    }
}

/* ROOM bytes at the end of the heap, at a page. */
static unsigned char *grow(void)
{
    uintptr_t end = (uintptr_t) sbrk(0), begin = (end + PAGE - 1) / PAGE * PAGE;

    return (void *) -1 == sbrk((intptr_t) (begin + ROOM - end)) ? NULL : (unsigned char *) begin;
}

static void given_back(uint64_t *state)
{
    unsigned char *region, *again = NULL;
    int same, all_same;

    (void) state;
    spare();
    region = grow();
    CHECK(NULL != region);
    (void) registrations(region, 0);
    CHECK_INT(registrations(region, 10), 0);
    /* The same again with memory that was not returned. */
    if (region + ROOM == (unsigned char *) sbrk(0) && (void *) -1 != sbrk(-(intptr_t) ROOM)) {
        again = grow();
    }
    same = region == again;
    MPI_OK(MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (!all_same) {
        mpitest_skip("another user of the heap ran meanwhile");
    }
    CHECK(0 < registrations(again, 20));
    CHECK_INT(registrations(again, 30), 0);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {{"given-back", given_back}, {NULL, NULL}};

    mpitest_init(&argc, &argv, "heap", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("checks umrddt's own counters");
    }
    MPI_OK(MPI_Type_vector(COUNT, BLOCK, 2 * BLOCK, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    mpitest_run(parts);
    MPI_OK(MPI_Type_free(&type));
    pvars_close();
    return mpitest_finish();
}
