/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Files with views of derived types, from memory with gaps. The collective buffering below moves
 * data between processes by messages with tags of its own, which umrddt may handle, while the
 * program sends messages of its own. The content of the file is also read without MPI.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GAP    -1
#define BORDER 2

/* A matrix of ints, distributed in blocks over a grid of ranks. Each rank has a border around its
 * block. */
typedef struct matrix_t {
    int sizes[2];  /* of the whole */
    int parts[2];  /* of a block */
    int starts[2]; /* of mine */
    int local[2];  /* of the memory of mine, with borders */
    int *memory;
    MPI_Datatype file_type, memory_type;
} matrix_t;

static char path[512];

static int element(int row, int column, int salt)
{
    return salt * 100000000 + row * 10000 + column;
}

static void matrix_make(matrix_t *matrix, int rows, int columns, bool by_rows)
{
    int dims[2] = {0, 0}, at[2], borders[2] = {BORDER, BORDER}, i;

    if (by_rows) {
        dims[1] = 1;
    }
    MPI_OK(MPI_Dims_create(mpitest.size, 2, dims));
    at[0] = mpitest.rank / dims[1];
    at[1] = mpitest.rank % dims[1];
    matrix->parts[0] = rows;
    matrix->parts[1] = columns;
    for (i = 0; i < 2; ++i) {
        matrix->sizes[i] = matrix->parts[i] * dims[i];
        matrix->starts[i] = matrix->parts[i] * at[i];
        matrix->local[i] = matrix->parts[i] + 2 * BORDER;
    }
    matrix->memory = malloc(sizeof(int) * (size_t) matrix->local[0] * (size_t) matrix->local[1]);
    CHECK(NULL != matrix->memory);
    MPI_OK(MPI_Type_create_subarray(2, matrix->sizes, matrix->parts, matrix->starts, MPI_ORDER_C,
                                    MPI_INT, &matrix->file_type));
    MPI_OK(MPI_Type_create_subarray(2, matrix->local, matrix->parts, borders, MPI_ORDER_C, MPI_INT,
                                    &matrix->memory_type));
    MPI_OK(MPI_Type_commit(&matrix->file_type));
    MPI_OK(MPI_Type_commit(&matrix->memory_type));
}

static void matrix_free(matrix_t *matrix)
{
    MPI_OK(MPI_Type_free(&matrix->file_type));
    MPI_OK(MPI_Type_free(&matrix->memory_type));
    free(matrix->memory);
}

/* The expected value at a position of the local memory: of the matrix inside, a gap in the border.
 */
static int value_at(const matrix_t *matrix, int row, int column, int salt)
{
    row -= BORDER;
    column -= BORDER;
    if (0 > row || row >= matrix->parts[0] || 0 > column || column >= matrix->parts[1]) {
        return GAP;
    }
    return element(matrix->starts[0] + row, matrix->starts[1] + column, salt);
}

static void matrix_fill(matrix_t *matrix, bool empty, int salt)
{
    int i, j;

    for (i = 0; i < matrix->local[0]; ++i) {
        for (j = 0; j < matrix->local[1]; ++j) {
            matrix->memory[i * matrix->local[1] + j] = empty ? GAP : value_at(matrix, i, j, salt);
        }
    }
}

static void matrix_check(const matrix_t *matrix, int salt)
{
    int i, j;

    for (i = 0; i < matrix->local[0]; ++i) {
        for (j = 0; j < matrix->local[1]; ++j) {
            CHECK_INT(matrix->memory[i * matrix->local[1] + j], value_at(matrix, i, j, salt));
        }
    }
}

/* All of the file, by one process and without MPI. */
static void file_check(const matrix_t *matrix, int offset, int salt)
{
    int rows = matrix->sizes[0], columns = matrix->sizes[1], i, j;
    int *line = malloc(sizeof(int) * (size_t) columns);
    FILE *file;

    if (0 == mpitest.rank) {
        CHECK(NULL != line);
        file = fopen(path, "rb");
        CHECK(NULL != file);
        CHECK(0 == fseek(file, offset, SEEK_SET));
        for (i = 0; i < rows; ++i) {
            CHECK_INT(fread(line, sizeof(int), (size_t) columns, file), columns);
            for (j = 0; j < columns; ++j) {
                CHECK_INT(line[j], element(i, j, salt));
            }
        }
        CHECK_INT(fgetc(file), EOF);
        fclose(file);
    }
    free(line);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Messages of the program, pending during a collective call. */
typedef struct beside_t {
    mpitest_message_t *out[2], *in[2];
    MPI_Request requests[4];
} beside_t;

static void beside_start(beside_t *beside, uint64_t *state)
{
    int i;

    for (i = 0; i < 2; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        int bytes = mpitest_draw_bytes(state);

        beside->out[i] = mpitest_message(kinds[0], bytes, 1);
        beside->in[i] = mpitest_message(kinds[1], bytes, 1);
        mpitest_fill(beside->out[i]->buffer, (uint64_t) (2 * mpitest.rank + i));
        MPI_OK(MPI_Irecv(beside->in[i]->addr, 1, beside->in[i]->type, MPI_ANY_SOURCE, MPI_ANY_TAG,
                         MPI_COMM_WORLD, &beside->requests[2 * i]));
        MPI_OK(MPI_Isend(beside->out[i]->addr, 1, beside->out[i]->type, mpitest_right(), 3,
                         MPI_COMM_WORLD, &beside->requests[2 * i + 1]));
    }
}

static void beside_finish(beside_t *beside)
{
    int i;

    MPI_OK(MPI_Waitall(4, beside->requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < 2; ++i) {
        VERIFY(beside->in[i]->buffer, (uint64_t) (2 * mpitest_left() + i), beside->in[i]->bytes);
        mpitest_message_free(beside->in[i]);
        mpitest_message_free(beside->out[i]);
    }
}

static void check_count(const matrix_t *matrix, const MPI_Status *status)
{
    int count = -1;

    MPI_OK(MPI_Get_elements(status, MPI_INT, &count));
    CHECK_INT(count, matrix->parts[0] * matrix->parts[1]);
}

/* Written in blocks, read in rows; collective, blocking and not. */
static void collective(uint64_t *state)
{
    int rows = 8 * (int) mpitest_between(state, 1, 24),
        columns = (int) mpitest_between(state, 8, 200);
    int nonblocking, offset = 64;
    matrix_t blocks, rest;
    MPI_Request request;
    MPI_Status status;
    beside_t beside;
    MPI_File file;
    char *native = "native";

    matrix_make(&blocks, rows, columns, false);
    /* The same matrix in another partition. */
    matrix_make(&rest, blocks.sizes[0] / mpitest.size, blocks.sizes[1], true);
    CHECK_INT(rest.sizes[0], blocks.sizes[0]);
    for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
        MPI_OK(MPI_File_open(MPI_COMM_WORLD, path,
                             MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                             MPI_INFO_NULL, &file));
        MPI_OK(MPI_File_set_size(file, 0));
        MPI_OK(MPI_File_set_view(file, offset, MPI_INT, blocks.file_type, native, MPI_INFO_NULL));
        matrix_fill(&blocks, false, nonblocking);
        beside_start(&beside, state);
        if (nonblocking) {
            MPI_OK(MPI_File_iwrite_all(file, blocks.memory, 1, blocks.memory_type, &request));
            MPI_OK(MPI_Wait(&request, &status));
        } else {
            MPI_OK(MPI_File_write_all(file, blocks.memory, 1, blocks.memory_type, &status));
        }
        beside_finish(&beside);
        check_count(&blocks, &status);
        matrix_check(&blocks, nonblocking);
        MPI_OK(MPI_File_sync(file));
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        file_check(&blocks, offset, nonblocking);
        MPI_OK(MPI_File_set_view(file, offset, MPI_INT, rest.file_type, native, MPI_INFO_NULL));
        matrix_fill(&rest, true, 0);
        beside_start(&beside, state);
        if (nonblocking) {
            MPI_OK(MPI_File_iread_at_all(file, 0, rest.memory, 1, rest.memory_type, &request));
            beside_finish(&beside);
            MPI_OK(MPI_Wait(&request, &status));
        } else {
            MPI_OK(MPI_File_read_at_all(file, 0, rest.memory, 1, rest.memory_type, &status));
            beside_finish(&beside);
        }
        check_count(&rest, &status);
        matrix_check(&rest, nonblocking);
        MPI_OK(MPI_File_close(&file));
    }
    matrix_free(&blocks);
    matrix_free(&rest);
}

/* Each rank by itself, at offsets within its view. */
static void independent(uint64_t *state)
{
    int rows = (int) mpitest_between(state, 2, 40), columns = (int) mpitest_between(state, 8, 200),
        i;
    MPI_Datatype half, both;
    MPI_Request request;
    MPI_Status status;
    beside_t beside;
    matrix_t matrix;
    MPI_File file;

    matrix_make(&matrix, rows, columns, false);
    MPI_OK(MPI_File_open(MPI_COMM_WORLD, path,
                         MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file));
    MPI_OK(MPI_File_set_size(file, 0));
    MPI_OK(MPI_File_set_view(file, 0, MPI_INT, matrix.file_type, "native", MPI_INFO_NULL));
    matrix_fill(&matrix, false, 3);
    beside_start(&beside, state);
    /* Row by row, backwards, then all of it again. */
    MPI_OK(MPI_Type_contiguous(columns, MPI_INT, &half));
    MPI_OK(MPI_Type_commit(&half));
    for (i = rows - 1; 0 <= i; --i) {
        int *row = matrix.memory + (i + BORDER) * matrix.local[1] + BORDER;

        if (0 == i % 2) {
            MPI_OK(MPI_File_write_at(file, (MPI_Offset) i * columns, row, 1, half, &status));
        } else {
            MPI_OK(MPI_File_iwrite_at(file, (MPI_Offset) i * columns, row, 1, half, &request));
            MPI_OK(MPI_Wait(&request, &status));
        }
    }
    beside_finish(&beside);
    MPI_OK(MPI_File_sync(file));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    file_check(&matrix, 0, 3);
    matrix_fill(&matrix, true, 0);
    MPI_OK(MPI_Type_dup(matrix.memory_type, &both));
    MPI_OK(MPI_File_iread(file, matrix.memory, 1, both, &request));
    MPI_OK(MPI_Type_free(&both));
    MPI_OK(MPI_Wait(&request, &status));
    check_count(&matrix, &status);
    matrix_check(&matrix, 3);
    MPI_OK(MPI_File_close(&file));
    MPI_OK(MPI_Type_free(&half));
    matrix_free(&matrix);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"collective", collective}, {"independent", independent}, {NULL, NULL}};
    const char *directory = getenv("TMPDIR");

    mpitest_init(&argc, &argv, "files", 3, MPI_THREAD_SINGLE);
    snprintf(path, sizeof(path), "%s/umrddt_files.%ld", NULL == directory ? "/tmp" : directory,
             (long) getpid());
    MPI_OK(MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD));
    mpitest_run(parts);
    return mpitest_finish();
}
