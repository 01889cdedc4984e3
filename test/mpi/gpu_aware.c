/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * What an application does that relies on a GPU-aware MPI: it asks, and then gives GPU memory to
 * calls of all kinds. On an Open MPI of a distribution, with umrddt, libumrddt_mpi and (for files
 * and windows) accelerator/cuda. Variables of umrddt prove that it did the calls that are its own.
 * Parts:
 *
 * - query: MPIX_Query_cuda_support
 * - pack: MPI_Pack and MPI_Unpack
 * - replace: MPI_Sendrecv_replace
 * - alltoallw: MPI_Alltoallw of a matrix that is transposed
 * - put: MPI_Put and MPI_Get, from and to GPU memory, in a window of MPI_Win_allocate
 * - file: MPI_File_write and MPI_File_read. Not with Open MPI 6.0.0rc2, which marks each file as
 *   one without GPU memory (OMPI_FILE_ASSERT_NO_ACCEL_BUF), whatever is asserted
 *   or requested (mpi_memory_alloc_kinds).
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROWS = 96,
    COLUMNS = 64, /* a multiple of the number of ranks */
    BYTES = ROWS * COLUMNS * (int) sizeof(int)
};

/* A column block of a matrix in GPU memory, and system memory as large as the matrix. */
static gpu_memory_t *matrix;
static int *plain;
static MPI_Datatype column;
static pvars_t before;

static int element(int rank, int i)
{
    return 1000003 * (rank + 1) + 7 * i;
}

/* With UMRDDT_TEST_BREAK in the environment the first element of rank 0 is wrong, so that each part
 * that sends it must fail (aware_broken). */
static void fill(int rank)
{
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        plain[i] = element(rank, i);
    }
    if (0 == mpitest.rank && NULL != getenv("UMRDDT_TEST_BREAK")) {
        ++plain[0];
    }
    gpu_write(matrix, 0, plain, BYTES);
}

/* Elements of column 0 are of the rank @p of, all others of this one. */
static void check_column(int of)
{
    gpu_read(matrix, 0, plain, BYTES);
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK_INT(plain[i], element(0 == i % COLUMNS ? of : mpitest.rank, i));
    }
}

/* What was counted since the last call. */
static uint64_t counted(pvars_index_t which)
{
    pvars_t now, seen;

    pvars_read(&now);
    pvars_subtract(&now, &before, &seen);
    before = now;
    return seen.value[which];
}

static void query(uint64_t *state)
{
    int (*function)(void) = NULL;

    (void) state;
    *(void **) &function = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    CHECK(NULL != function);
    CHECK_INT(function(), 1);
}

static void pack(uint64_t *state)
{
    gpu_memory_t *packed = gpu_memory(GPU_DEVICE, ROWS * sizeof(int));
    int host[ROWS], position = 0;

    (void) state;
    fill(mpitest.rank);
    MPI_OK(MPI_Pack(matrix->addr, 1, column, packed->addr, (int) packed->bytes, &position,
                    MPI_COMM_WORLD));
    gpu_read(packed, 0, host, sizeof(host));
    for (int i = 0; i < ROWS; ++i) {
        CHECK_INT(host[i], element(mpitest.rank, i * COLUMNS));
        host[i] = element(9, i * COLUMNS);
    }
    gpu_write(packed, 0, host, sizeof(host));
    position = 0;
    MPI_OK(MPI_Unpack(packed->addr, (int) packed->bytes, &position, matrix->addr, 1, column,
                      MPI_COMM_WORLD));
    check_column(9);
    CHECK_INT(counted(PVARS_LIBRARY_CALLS), 2);
    gpu_memory_free(packed);
}

static void replace(uint64_t *state)
{
    (void) state;
    fill(mpitest.rank);
    MPI_OK(MPI_Sendrecv_replace(matrix->addr, 1, column, mpitest_right(), 1, mpitest_left(), 1,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    check_column(mpitest_left());
    CHECK_INT(counted(PVARS_LIBRARY_CALLS), 1);
}

/* The columns of each rank go to the rows of the others. */
static void alltoallw(uint64_t *state)
{
    const int n = mpitest.size, wide = COLUMNS / n;
    gpu_memory_t *to = gpu_memory(GPU_DEVICE, BYTES);
    MPI_Datatype *send = calloc((size_t) n, sizeof(MPI_Datatype)),
                 *recv = calloc((size_t) n, sizeof(MPI_Datatype));
    int *ones = calloc((size_t) n, sizeof(int)), *places = calloc((size_t) n, sizeof(int));
    int *out = calloc((size_t) n, sizeof(int));

    (void) state;
    fill(mpitest.rank);
    for (int i = 0; i < n; ++i) {
        ones[i] = 1;
        out[i] = i * wide * (int) sizeof(int);
        places[i] = i * ROWS * wide * (int) sizeof(int);
        MPI_OK(MPI_Type_vector(ROWS, wide, COLUMNS, MPI_INT, &send[i]));
        MPI_OK(MPI_Type_contiguous(ROWS * wide, MPI_INT, &recv[i]));
        MPI_OK(MPI_Type_commit(&send[i]));
        MPI_OK(MPI_Type_commit(&recv[i]));
    }
    (void) counted(PVARS_HANDLED_SENDS);
    MPI_OK(
        MPI_Alltoallw(matrix->addr, ones, out, send, to->addr, ones, places, recv, MPI_COMM_WORLD));
    CHECK_INT(counted(PVARS_HANDLED_SENDS), n - 1); /* its own part is a copy */
    gpu_read(to, 0, plain, BYTES);
    for (int from = 0, at = 0; from < n; ++from) {
        for (int row = 0; row < ROWS; ++row) {
            for (int i = 0; i < wide; ++i, ++at) {
                CHECK_INT(plain[at], element(from, row * COLUMNS + mpitest.rank * wide + i));
            }
        }
    }
    for (int i = 0; i < n; ++i) {
        MPI_OK(MPI_Type_free(&send[i]));
        MPI_OK(MPI_Type_free(&recv[i]));
    }
    free(send);
    free(recv);
    free(ones);
    free(places);
    free(out);
    gpu_memory_free(to);
}

static void put(uint64_t *state)
{
    int *window;
    MPI_Win win;

    (void) state;
    fill(mpitest.rank);
    MPI_OK(MPI_Win_allocate(BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    memset(window, 0, BYTES);
    MPI_OK(MPI_Win_fence(0, win));
    MPI_OK(MPI_Put(matrix->addr, ROWS * COLUMNS, MPI_INT, mpitest_right(), 0, ROWS * COLUMNS,
                   MPI_INT, win));
    MPI_OK(MPI_Win_fence(0, win));
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK_INT(window[i], element(mpitest_left(), i));
    }
    /* the column of the rank itself, from its right neighbour */
    MPI_OK(MPI_Win_fence(0, win));
    MPI_OK(MPI_Get(matrix->addr, 1, column, mpitest_left(), 0, 1, column, win));
    MPI_OK(MPI_Win_fence(0, win));
    check_column((mpitest.rank + 2 * mpitest.size - 2) % mpitest.size);
    MPI_OK(MPI_Win_free(&win));
}

#if 6 > OMPI_MAJOR_VERSION

static void file(uint64_t *state)
{
    static char path[512];
    const char *directory = getenv("TMPDIR");
    MPI_Status status;
    MPI_File handle;
    int count = 0;

    (void) state;
    if (0 == mpitest.rank) {
        (void) snprintf(path, sizeof(path), "%s/umrddt_gpu_aware.%ld",
                        NULL == directory ? "/tmp" : directory, (long) getpid());
    }
    MPI_OK(MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD));
    fill(mpitest.rank);
    MPI_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                         &handle));
    MPI_OK(MPI_File_seek(handle, (MPI_Offset) mpitest.rank * BYTES, MPI_SEEK_SET));
    MPI_OK(MPI_File_write(handle, matrix->addr, ROWS * COLUMNS, MPI_INT, &status));
    MPI_OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, ROWS * COLUMNS);
    MPI_OK(MPI_File_sync(handle));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(MPI_File_sync(handle));
    MPI_OK(MPI_File_read_at(handle, (MPI_Offset) mpitest_left() * BYTES, plain, ROWS * COLUMNS,
                            MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK_INT(plain[i], element(mpitest_left(), i));
    }
    fill(mpitest.size);
    MPI_OK(MPI_File_read_at(handle, (MPI_Offset) mpitest_left() * BYTES, matrix->addr,
                            ROWS * COLUMNS, MPI_INT, MPI_STATUS_IGNORE));
    gpu_read(matrix, 0, plain, BYTES);
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK_INT(plain[i], element(mpitest_left(), i));
    }
    MPI_OK(MPI_File_close(&handle));
    if (0 == mpitest.rank) {
        CHECK_INT(unlink(path), 0);
    }
}

#endif

static const mpitest_part_t parts[] = {
    {"query", query}, {"pack", pack}, {"replace", replace}, {"alltoallw", alltoallw}, {"put", put},
#if 6 > OMPI_MAJOR_VERSION
    {"file", file},
#endif
    {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "gpu_aware", 1, MPI_THREAD_SINGLE);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("needs umrddt");
    }
    gpu_begin_all();
    CHECK_INT(COLUMNS % mpitest.size, 0);
    matrix = gpu_memory(GPU_DEVICE, BYTES);
    plain = malloc(BYTES);
    MPI_OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column));
    MPI_OK(MPI_Type_commit(&column));
    pvars_read(&before);
    mpitest_run(parts);
    MPI_OK(MPI_Type_free(&column));
    free(plain);
    gpu_memory_free(matrix);
    pvars_close();
    return mpitest_finish();
}
