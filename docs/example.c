/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 * $HEADER$
 */

/* Two processes, each with a part of a matrix and a column of the other's beside it: the last
 * column that is mine goes into the first column of my neighbour, which is its halo. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS    1024
#define COLUMNS 512

int main(int argc, char **argv)
{
    double(*matrix)[COLUMNS];
    int rank, size, wrong = 0;
    MPI_Datatype column;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    matrix = malloc(ROWS * sizeof(*matrix));
    if (NULL == matrix) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < ROWS; ++i) {
        for (int j = 0; j < COLUMNS; ++j) {
            matrix[i][j] = rank * 1e6 + i;
        }
    }

    /* ROWS pieces of 8 bytes, COLUMNS * 8 bytes apart, and never packed. */
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int step = 0; step < 10; ++step) {
        MPI_Sendrecv(&matrix[0][COLUMNS - 1], 1, column, (rank + 1) % size, 0, &matrix[0][0], 1,
                     column, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&column);

    for (int i = 0; i < ROWS; ++i) {
        wrong +=
            matrix[i][0] != (rank + size - 1) % size * 1e6 + i || matrix[i][1] != rank * 1e6 + i;
    }
    printf("rank %d: %d of %d rows are wrong\n", rank, wrong, ROWS);
    free(matrix);
    MPI_Finalize();
    return 0 != wrong;
}
