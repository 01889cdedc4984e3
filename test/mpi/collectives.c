/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Collectives over derived types, and one-sided communication with them. Collectives reach the PML
 * as point-to-point messages with their own tags. Their results must not depend on umrddt. Every
 * element's value identifies its origin, and all elements are checked.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP -1

static int *numbers(int n, int value)
{
    int *memory = malloc(sizeof(int) * (size_t) n), i;

    CHECK(NULL != memory);
    for (i = 0; i < n; ++i) {
        memory[i] = value;
    }
    return memory;
}

/* The value of row, column of a matrix that all ranks know. */
static int element(int row, int column, int salt)
{
    return salt * 50000000 + row * 5000 + column;
}

/*
 * Rank r has the rows r * b .. of an n x n matrix and gets its columns r * b ..: alltoallw with a
 * subarray for each partner, blocking and nonblocking.
 */
static void redistribute(uint64_t *state)
{
    int p = mpitest.size, b = (int) mpitest_between(state, 8, 40), n = b * p, i, j, nonblocking;
    int *rows = numbers(b * n, GAP), *columns = numbers(n * b, GAP);
    int *counts = numbers(p, 1), *at = numbers(p, 0);
    MPI_Datatype *send = malloc(sizeof(*send) * (size_t) p),
                 *receive = malloc(sizeof(*receive) * (size_t) p);
    MPI_Request request;

    CHECK(NULL != send && NULL != receive);
    for (i = 0; i < p; ++i) {
        int send_sizes[2] = {b, n}, send_part[2] = {b, b}, send_start[2] = {0, i * b};
        int receive_sizes[2] = {n, b}, receive_part[2] = {b, b}, receive_start[2] = {i * b, 0};

        MPI_OK(MPI_Type_create_subarray(2, send_sizes, send_part, send_start, MPI_ORDER_C, MPI_INT,
                                        &send[i]));
        MPI_OK(MPI_Type_create_subarray(2, receive_sizes, receive_part, receive_start, MPI_ORDER_C,
                                        MPI_INT, &receive[i]));
        MPI_OK(MPI_Type_commit(&send[i]));
        MPI_OK(MPI_Type_commit(&receive[i]));
    }
    for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
        for (i = 0; i < b; ++i) {
            for (j = 0; j < n; ++j) {
                rows[i * n + j] = element(mpitest.rank * b + i, j, nonblocking);
            }
        }
        if (nonblocking) {
            MPI_OK(MPI_Ialltoallw(rows, counts, at, send, columns, counts, at, receive,
                                  MPI_COMM_WORLD, &request));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPI_OK(MPI_Alltoallw(rows, counts, at, send, columns, counts, at, receive,
                                 MPI_COMM_WORLD));
        }
        for (i = 0; i < n; ++i) {
            for (j = 0; j < b; ++j) {
                CHECK_INT(columns[i * b + j], element(i, mpitest.rank * b + j, nonblocking));
            }
        }
    }
    for (i = 0; i < p; ++i) {
        MPI_OK(MPI_Type_free(&send[i]));
        MPI_OK(MPI_Type_free(&receive[i]));
    }
    free(rows);
    free(columns);
    free(counts);
    free(at);
    free(send);
    free(receive);
}

/* Sends the border cells of a 2-D array to the four neighbours of a periodic grid, by
 * neighbor_alltoallw. */
static void neighbours(uint64_t *state)
{
    int dims[2] = {0, 0}, periods[2] = {1, 1}, n = (int) mpitest_between(state, 20, 300);
    int sizes[2] = {n + 2, n + 2}, i, d, counts[4] = {1, 1, 1, 1}, from[4];
    int *cells = numbers((n + 2) * (n + 2), GAP);
    MPI_Aint at[4] = {0, 0, 0, 0};
    MPI_Datatype send[4], receive[4];
    MPI_Comm grid;

    MPI_OK(MPI_Dims_create(mpitest.size, 2, dims));
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
    for (d = 0; d < 2; ++d) {
        MPI_OK(MPI_Cart_shift(grid, d, 1, &from[2 * d], &from[2 * d + 1]));
        for (i = 0; i < 2; ++i) {
            int part[2], out[2], in[2];

            part[d] = 1;
            part[1 - d] = n;
            out[d] = 0 == i ? 1 : n;
            out[1 - d] = 1;
            in[d] = 0 == i ? 0 : n + 1;
            in[1 - d] = 1;
            MPI_OK(MPI_Type_create_subarray(2, sizes, part, out, MPI_ORDER_C, MPI_INT,
                                            &send[2 * d + i]));
            MPI_OK(MPI_Type_create_subarray(2, sizes, part, in, MPI_ORDER_C, MPI_INT,
                                            &receive[2 * d + i]));
            MPI_OK(MPI_Type_commit(&send[2 * d + i]));
            MPI_OK(MPI_Type_commit(&receive[2 * d + i]));
        }
    }
    for (i = 0; i < n * n; ++i) {
        cells[(i / n + 1) * (n + 2) + i % n + 1] = mpitest.rank * 1000000 + i;
    }
    MPI_OK(MPI_Neighbor_alltoallw(cells, counts, at, send, cells, counts, at, receive, grid));
    if (2 < dims[0] && 2 < dims[1]) {
        /* With two ranks or fewer in a row both neighbours are the same rank, and the standard does
         * not define which of its messages goes where. The inner cells below are always checked. */
        for (i = 0; i < n; ++i) {
            CHECK_INT(cells[0 * (n + 2) + i + 1], from[0] * 1000000 + (n - 1) * n + i);
            CHECK_INT(cells[(n + 1) * (n + 2) + i + 1], from[1] * 1000000 + i);
            CHECK_INT(cells[(i + 1) * (n + 2)], from[2] * 1000000 + i * n + n - 1);
            CHECK_INT(cells[(i + 1) * (n + 2) + n + 1], from[3] * 1000000 + i * n);
        }
    } else {
        for (i = 0; i < n; ++i) {
            CHECK_INT(cells[i + 1] / 1000000, from[0]);
            CHECK_INT(cells[(n + 1) * (n + 2) + i + 1] / 1000000, from[1]);
            CHECK_INT(cells[(i + 1) * (n + 2)] / 1000000, from[2]);
            CHECK_INT(cells[(i + 1) * (n + 2) + n + 1] / 1000000, from[3]);
        }
    }
    for (i = 0; i < n * n; ++i) {
        CHECK_INT(cells[(i / n + 1) * (n + 2) + i % n + 1], mpitest.rank * 1000000 + i);
    }
    for (i = 0; i < 4; ++i) {
        CHECK_INT(cells[(i / 2) * (n + 1) * (n + 2) + (i % 2) * (n + 1)], GAP);
        MPI_OK(MPI_Type_free(&send[i]));
        MPI_OK(MPI_Type_free(&receive[i]));
    }
    MPI_OK(MPI_Comm_free(&grid));
    free(cells);
}

/* Columns of a matrix, resized so that they follow each other: the type of gather, scatter and
 * allgatherv. */
static MPI_Datatype column_type(int rows, int columns)
{
    MPI_Datatype vector, type;

    MPI_OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &vector));
    MPI_OK(MPI_Type_create_resized(vector, 0, sizeof(int), &type));
    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Type_free(&vector));
    return type;
}

/* Rank r sends r + 1 columns, contiguous. All ranks (or the root) receive the matrix. */
static void collect_columns(uint64_t *state)
{
    int p = mpitest.size, rows = (int) mpitest_between(state, 100, 3000), i, j, way;
    int columns = p * (p + 1) / 2, mine = mpitest.rank + 1, first = mpitest.rank * mine / 2;
    int root = (int) mpitest_between(state, 0, p - 1);
    int *out = numbers(rows * mine, GAP), *counts = numbers(p, 0), *at = numbers(p, 0);
    MPI_Datatype column = column_type(rows, columns + 1), own = column_type(rows, mine);

    for (i = 0; i < p; ++i) {
        counts[i] = i + 1;
        at[i] = i * (i + 1) / 2;
    }
    for (way = 0; way < 4; ++way) {
        /* One more column than is filled: the gap. */
        int *matrix = numbers(rows * (columns + 1), GAP);

        /* Forms 0 and 2 send whole columns, one after the other; the others send the columns of a
         * row-wise array. */
        for (i = 0; i < rows; ++i) {
            for (j = 0; j < mine; ++j) {
                out[0 == way % 2 ? j * rows + i : i * mine + j] = element(i, first + j, way);
            }
        }
        if (2 > way) {
            MPI_OK(MPI_Allgatherv(out, 0 == way % 2 ? rows * mine : mine,
                                  0 == way % 2 ? MPI_INT : own, matrix, counts, at, column,
                                  MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Gatherv(out, 0 == way % 2 ? rows * mine : mine, 0 == way % 2 ? MPI_INT : own,
                               matrix, counts, at, column, root, MPI_COMM_WORLD));
        }
        for (i = 0; i < rows; ++i) {
            for (j = 0; j <= columns; ++j) {
                CHECK_INT(matrix[i * (columns + 1) + j],
                          j < columns && (2 > way || root == mpitest.rank) ? element(i, j, way)
                                                                           : GAP);
            }
        }
        if (2 == way) {
            /* In the other direction: every rank gets its columns from the root's matrix. */
            memset(out, 0xff, sizeof(int) * (size_t) (rows * mine));
            MPI_OK(MPI_Scatterv(matrix, counts, at, column, out, mine, own, root, MPI_COMM_WORLD));
            for (i = 0; i < rows; ++i) {
                for (j = 0; j < mine; ++j) {
                    CHECK_INT(out[i * mine + j], element(i, first + j, way));
                }
            }
        }
        free(matrix);
    }
    MPI_OK(MPI_Type_free(&column));
    MPI_OK(MPI_Type_free(&own));
    free(out);
    free(counts);
    free(at);
}

/* Bcast of a type with gaps, blocking and not, with reductions of plain numbers in between. */
static void spread(uint64_t *state)
{
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);
    int bytes = (int) mpitest_between(state, 1, 60000), root, turn;
    uint64_t key = mpitest_random(state), seed = mpitest_random(state);
    mpitest_message_t *message;
    long mine, sum = 0;
    MPI_Request request;

    root = (int) mpitest_between(state, 0, mpitest.size - 1);
    message = mpitest_message(MPITEST_WIDE == kind ? MPITEST_COARSE : kind, bytes, seed);
    for (turn = 0; turn < 2; ++turn) {
        if (root == mpitest.rank) {
            mpitest_fill(message->buffer, key);
        } else {
            mpitest_clear(message->buffer);
        }
        if (0 == turn) {
            MPI_OK(MPI_Bcast(message->addr, 1, message->type, root, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Ibcast(message->addr, 1, message->type, root, MPI_COMM_WORLD, &request));
        }
        mine = mpitest.rank + turn;
        MPI_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        CHECK_INT(sum, (long) mpitest.size * (mpitest.size - 1) / 2 + turn * mpitest.size);
        if (1 == turn) {
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        VERIFY(message->buffer, key, bytes);
    }
    mpitest_message_free(message);
}

/* Alltoall and allgather where each block is a column, and a reduction of many numbers. */
static void transpose(uint64_t *state)
{
    int p = mpitest.size, rows = (int) mpitest_between(state, 100, 4000), i, j;
    int *out = numbers(rows * p, GAP), *in = numbers(rows * p, GAP), *sums = numbers(rows * p, 0);
    MPI_Datatype column = column_type(rows, p);

    for (i = 0; i < rows; ++i) {
        for (j = 0; j < p; ++j) {
            out[i * p + j] = mpitest.rank * 10000000 + j * 1000000 + i;
        }
    }
    MPI_OK(MPI_Alltoall(out, 1, column, in, 1, column, MPI_COMM_WORLD));
    MPI_OK(MPI_Allreduce(out, sums, rows * p, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (i = 0; i < rows; ++i) {
        for (j = 0; j < p; ++j) {
            CHECK_INT(in[i * p + j], j * 10000000 + mpitest.rank * 1000000 + i);
            CHECK_INT(sums[i * p + j], p * (p - 1) / 2 * 10000000 + p * (j * 1000000 + i));
        }
    }
    MPI_OK(MPI_Allgather(out, 1, column, in, 1, column, MPI_COMM_WORLD));
    for (i = 0; i < rows; ++i) {
        for (j = 0; j < p; ++j) {
            CHECK_INT(in[i * p + j], j * 10000000 + i);
        }
    }
    MPI_OK(MPI_Type_free(&column));
    free(out);
    free(in);
    free(sums);
}

/* Put and Get with types on both sides, by fences and by locks. */
static void windows(uint64_t *state)
{
    int bytes = (int) mpitest_between(state, 100, 40000), turn;
    int right = (mpitest.rank + 1) % mpitest.size;
    int left = (mpitest.rank + mpitest.size - 1) % mpitest.size;
    mpitest_kind_t kinds[2];
    mpitest_message_t *origin, *target;
    MPI_Win win;

    /* The target's type has no byte before the window. */
    kinds[0] = (mpitest_kind_t) mpitest_between(state, MPITEST_FINE, MPITEST_COARSE);
    kinds[1] = 0 == mpitest_random(state) % 2 ? MPITEST_NESTED : MPITEST_DESCENDING;
    origin = mpitest_message(kinds[0], bytes, 1);
    target = mpitest_message(kinds[1], bytes, 1);
    CHECK(0 <= target->map->lb);
    MPI_OK(MPI_Win_create(target->addr, target->map->lb + target->map->span, 1, MPI_INFO_NULL,
                          MPI_COMM_WORLD, &win));
    for (turn = 0; turn < 2; ++turn) {
        mpitest_fill(origin->buffer, (uint64_t) (mpitest.rank * 2 + turn));
        mpitest_clear(target->buffer);
        if (0 == turn) {
            MPI_OK(MPI_Win_fence(0, win));
            MPI_OK(MPI_Put(origin->addr, 1, origin->type, right, 0, 1, target->type, win));
            MPI_OK(MPI_Win_fence(0, win));
        } else {
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
            MPI_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
            MPI_OK(MPI_Put(origin->addr, 1, origin->type, right, 0, 1, target->type, win));
            MPI_OK(MPI_Win_unlock(right, win));
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
            MPI_OK(MPI_Win_lock(MPI_LOCK_SHARED, mpitest.rank, 0, win));
            MPI_OK(MPI_Win_unlock(mpitest.rank, win));
        }
        VERIFY(target->buffer, (uint64_t) (left * 2 + turn), bytes);
        /* Get the data that this rank has put to the right one. */
        mpitest_clear(origin->buffer);
        MPI_OK(MPI_Win_fence(0, win));
        MPI_OK(MPI_Get(origin->addr, 1, origin->type, right, 0, 1, target->type, win));
        MPI_OK(MPI_Win_fence(0, win));
        VERIFY(origin->buffer, (uint64_t) (mpitest.rank * 2 + turn), bytes);
    }
    MPI_OK(MPI_Win_free(&win));
    mpitest_message_free(origin);
    mpitest_message_free(target);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"redistribute", redistribute},
        {"neighbours", neighbours},
        {"collect_columns", collect_columns},
        {"spread", spread},
        {"transpose", transpose},
        {"windows", windows},
        {NULL, NULL},
    };

    mpitest_init(&argc, &argv, "collectives", 6, MPI_THREAD_SINGLE);
    if (2 > mpitest.size) {
        mpitest_skip("needs two ranks: Open MPI 4.1.4 makes no window on one");
    }
    mpitest_run(parts);
    return mpitest_finish();
}
