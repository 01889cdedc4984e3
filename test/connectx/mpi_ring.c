/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* A small MPI program: point to point, a collective, one-sided. */

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 20)

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "mpi_ring: %s is wrong\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    unsigned char *buffer = malloc(BYTES);
    MPI_Win win;
    int *memory;
    int left;
    int rank;
    int size;
    int sum;
    int i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(NULL != buffer, "malloc");
    left = (rank + size - 1) % size;
    for (i = 0; i < 10; i++) {
        memset(buffer, rank + 10 * i, BYTES);
        MPI_Sendrecv_replace(buffer, BYTES, MPI_BYTE, (rank + 1) % size, i, left, i, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        check(left + 10 * i == buffer[0] && left + 10 * i == buffer[BYTES - 1], "the message");
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(size * (size - 1) / 2 == sum, "the sum");
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    check(left == *memory, "the put");
    MPI_Win_free(&win);
    if (0 == rank) {
        printf("%d ranks\n", size);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
