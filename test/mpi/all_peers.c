/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Each rank exchanges a message of strided blocks with each other rank, some rounds. Rank 0 prints
 * the time of each round, and the memory of a process. For large jobs (bench/results/scale.md).
 */

#include "mpitest.h"

#include <stdio.h>

enum {
    BLOCKS = 256,
    WORDS = 32, /* of a block; as many are between two blocks */
    ROOM = BLOCKS * 2 * WORDS
};

static MPI_Datatype type;
static uint64_t out[ROOM], in[ROOM];

static uint64_t word(int from, int to, long round, int i)
{
    return ((uint64_t) from << 48 | (uint64_t) to << 32 | (uint64_t) round << 24) + (uint64_t) i;
}

static bool in_block(int i)
{
    return i % (2 * WORDS) < WORDS;
}

static void exchange(long round, int distance)
{
    int to = (mpitest.rank + distance) % mpitest.size;
    int from = (mpitest.rank - distance + mpitest.size) % mpitest.size;
    int wrong = 0;

    for (int i = 0; i < ROOM; ++i) {
        out[i] = word(mpitest.rank, to, round, i);
        in[i] = UINT64_MAX;
    }
    MPI_OK(
        MPI_Sendrecv(out, 1, type, to, 1, in, 1, type, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < ROOM; ++i) {
        wrong += in[i] != (in_block(i) ? word(from, mpitest.rank, round, i) : UINT64_MAX);
    }
    CHECK_INT(wrong, 0);
}

/** KiB of this process: what only it has, and its share of what others have too. */
static void memory(double kib[2])
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double value;

    kib[0] = kib[1] = 0;
    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        kib[0] += 1 == sscanf(line, "Private_Clean: %lf", &value)
                          || 1 == sscanf(line, "Private_Dirty: %lf", &value)
                      ? value
                      : 0;
        kib[1] += 1 == sscanf(line, "Pss: %lf", &value) ? value : 0;
    }
    if (NULL != file) {
        (void) fclose(file);
    }
}

static void report(const char *when, double seconds)
{
    double mine[2], sum[2], most[2];

    memory(mine);
    MPI_OK(MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("%d ranks, %s: %.1f s; a process has %.0f KiB of its own (at most %.0f), %.0f KiB "
               "with its share of others'\n",
               mpitest.size, when, seconds, sum[0] / mpitest.size, most[0], sum[1] / mpitest.size);
        (void) fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "all_peers", 2, MPI_THREAD_SINGLE);
    MPI_OK(MPI_Type_vector(BLOCKS, WORDS, 2 * WORDS, MPI_UINT64_T, &type));
    MPI_OK(MPI_Type_commit(&type));
    report("begin", 0);
    for (long round = 0; round < mpitest.ops; ++round) {
        double start = MPI_Wtime();
        char when[32];

        mpitest.step = round;
        for (int distance = 1; distance < mpitest.size; ++distance) {
            exchange(round, distance);
            mpitest_alive();
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        (void) snprintf(when, sizeof(when), "round %ld", round + 1);
        report(when, MPI_Wtime() - start);
    }
    MPI_OK(MPI_Type_free(&type));
    return mpitest_finish();
}
