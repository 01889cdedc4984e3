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
 * Layouts of applications on regular grids: MILC, NAS MG and LU, FFT2. The definitions are those of
 * DDTBench (see layouts.c), read there and written anew here.
 */

#include "bench_util.h"
#include "layouts.h"

/*
 * MILC su3_zd, after DDTBench's timing_milc: lattice quantum chromodynamics, the border in -z of a
 * lattice of params = (x, y, z, t) sites with an su3 vector (3 complex floats, 24 bytes) each, even
 * and odd sites in one half of the array each. A block holds x * y / 2 sites; there are t of them
 * in either half. Sent and received in the same shape.
 */
void bench_make_milc_su3_zd(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int x = params[0], y = params[1], z = params[2], t = params[3];
    const int64_t site = 6 * sizeof(float);
    const int64_t half = site * x * y * z * t / 2;
    int i, parity, k;

    for (i = 0; i < 2; ++i) {
        MPI_Datatype vector, times, type;

        MPI_Type_contiguous(6, MPI_FLOAT, &vector);
        MPI_Type_vector(t, x * y / 2, x * y * z / 2, vector, &times);
        MPI_Type_create_hvector(2, 1, (MPI_Aint) half, times, &type);
        MPI_Type_free(&vector);
        MPI_Type_free(&times);
        bench_side_set_type(sides[i], type, 1, 0, (uint64_t) (2 * half));
        for (parity = 0; parity < 2; ++parity) {
            for (k = 0; k < t; ++k) {
                bench_side_add(sides[i], parity * half + site * x * y * z / 2 * k,
                               (uint64_t) (site * x * y / 2));
            }
        }
    }
}

/*
 * NAS MG, after DDTBench's timing_nas: multigrid, a face across direction params[0] of a local grid
 * of (params[1], params[2], params[3]) doubles, ghost cells included (x contiguous, Fortran order).
 * A face leaves out the ghost cells of its own two directions. x and y send the last inner layer
 * and receive into the upper ghost layer; z sends the first inner layer and receives into the lower
 * ghost layer.
 */
void bench_make_nas_mg(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int direction = params[0];
    const int dims[3] = {params[1], params[2], params[3]};
    const int64_t row = (int64_t) sizeof(double) * dims[0], plane = row * dims[1];
    int i, y, z;

    for (i = 0; i < 2; ++i) {
        int start[3] = {1, 1, 1}, length[3] = {dims[0] - 2, dims[1] - 2, dims[2] - 2};
        MPI_Datatype line, type;
        int64_t origin;

        length[direction] = 1;
        if (2 == direction) {
            start[2] = 0 == i ? 1 : 0;
        } else {
            start[direction] = 0 == i ? dims[direction] - 2 : dims[direction] - 1;
        }
        origin = (int64_t) sizeof(double) * start[0] + row * start[1] + plane * start[2];

        if (0 == direction) {
            MPI_Type_vector(length[1], 1, dims[0], MPI_DOUBLE, &line);
            MPI_Type_create_hvector(length[2], 1, (MPI_Aint) plane, line, &type);
            MPI_Type_free(&line);
        } else if (1 == direction) {
            MPI_Type_vector(length[2], length[0], dims[0] * dims[1], MPI_DOUBLE, &type);
        } else {
            MPI_Type_vector(length[1], length[0], dims[0], MPI_DOUBLE, &type);
        }
        bench_side_set_type(sides[i], type, 1, origin, (uint64_t) (plane * dims[2]));

        for (z = start[2]; z < start[2] + length[2]; ++z) {
            for (y = start[1]; y < start[1] + length[1]; ++y) {
                bench_side_add(sides[i], plane * z + row * y + (int64_t) sizeof(double) * start[0],
                               sizeof(double) * (uint64_t) length[0]);
            }
        }
    }
}

/*
 * NAS LU, after DDTBench's timing_nas: lower-upper solver, 5 doubles a cell, a local grid of
 * (params[0], params[1]) cells with one ghost cell on every side. In x the row of the last inner
 * cells is one piece; it goes to the lower ghost row.
 */
void bench_make_nas_lu_x(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int nx = params[0], ny = params[1];
    const int64_t cell = 5 * sizeof(double), row = cell * (nx + 2);
    int i;

    for (i = 0; i < 2; ++i) {
        int64_t origin = cell + row * (0 == i ? ny : 0);
        MPI_Datatype type;

        MPI_Type_contiguous(5 * nx, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, origin, (uint64_t) (row * (ny + 2)));
        bench_side_add(sides[i], origin, (uint64_t) (cell * nx));
    }
}

/* NAS LU in y: the last inner cell (5 doubles) of every row goes to the ghost cell at its begin. */
void bench_make_nas_lu_y(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int nx = params[0], ny = params[1];
    const int64_t cell = 5 * sizeof(double), row = cell * (nx + 2);
    int i, k;

    for (i = 0; i < 2; ++i) {
        int64_t origin = row + cell * (0 == i ? nx : 0);
        MPI_Datatype five, type;

        MPI_Type_contiguous(5, MPI_DOUBLE, &five);
        MPI_Type_vector(ny, 1, nx + 2, five, &type);
        MPI_Type_free(&five);
        bench_side_set_type(sides[i], type, 1, origin, (uint64_t) (row * (ny + 2)));
        for (k = 0; k < ny; ++k) {
            bench_side_add(sides[i], origin + row * k, (uint64_t) cell);
        }
    }
}

/*
 * FFT2, after DDTBench's timing_fft2d: the transposition between the two steps of a 2-D Fourier
 * transform of a matrix of n = params[0] complex doubles a side over two processes, n / 2 rows each
 * (DDTBench uses MPI_Alltoall; this is the message between the two). The sender gives a block of
 * its rows as rows; the receiver takes each arriving row as a column, element by element.
 */
void bench_make_fft2(const int *params, bench_layout_t *layout)
{
    const int n = params[0], rows = n / 2;
    const int64_t element = 2 * sizeof(double);
    MPI_Datatype complex_type, vector, column, type;
    int i, k;

    MPI_Type_contiguous(2, MPI_DOUBLE, &complex_type);

    /* sent: the right half of every row, which is the other process's part */
    MPI_Type_vector(rows, rows, n, complex_type, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint) (element * rows), &type);
    MPI_Type_free(&vector);
    bench_side_set_type(&layout->send, type, 1, element * rows, (uint64_t) (element * n * rows));
    for (i = 0; i < rows; ++i) {
        bench_side_add(&layout->send, element * ((int64_t) i * n + rows),
                       (uint64_t) (element * rows));
    }

    /* received: into the left half, the i-th arriving row becomes the i-th column */
    MPI_Type_vector(rows, 1, n, complex_type, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint) element, &column);
    MPI_Type_contiguous(rows, column, &type);
    MPI_Type_free(&vector);
    MPI_Type_free(&column);
    bench_side_set_type(&layout->recv, type, 1, 0, (uint64_t) (element * n * rows));
    for (i = 0; i < rows; ++i) {
        for (k = 0; k < rows; ++k) {
            bench_side_add(&layout->recv, element * ((int64_t) k * n + i), (uint64_t) element);
        }
    }
    MPI_Type_free(&complex_type);
}

/*
 * HAND's subarrays (see bench_make_hand_hvector): params[0] KiB of doubles out of the middle of an
 * array with 4 more on each border, in params[1] directions, as long in each as can be; with
 * params[2] in Fortran's order.
 */
void bench_make_hand_subarray(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int directions = params[1], fortran = params[2];
    int part[4] = {1, 1, 1, 1}, whole[4], starts[4], said[3][4];
    int i, d, doubled = 0;
    uint64_t room = 8;

    while (part[0] * part[1] * part[2] * part[3] < 128 * params[0]) {
        part[directions - 1 - doubled++ % directions] *= 2;
    }
    for (d = 0; d < directions; ++d) {
        const int place =
            fortran ? directions - 1 - d : d; /* the contiguous one is the first there */

        whole[d] = part[d] + 8;
        starts[d] = 4;
        room *= (uint64_t) whole[d];
        said[0][place] = whole[d];
        said[1][place] = part[d];
        said[2][place] = starts[d];
    }
    for (i = 0; i < 2; ++i) {
        int index[4] = {0, 0, 0, 0};
        MPI_Datatype type;

        MPI_Type_create_subarray(directions, said[0], said[1], said[2],
                                 fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, room);
        do {
            int64_t offset = 0;

            for (d = 0; d < directions; ++d) {
                offset = offset * whole[d] + starts[d] + index[d];
            }
            bench_side_add(sides[i], 8 * offset, 8 * (uint64_t) part[directions - 1]);
            for (d = directions - 2; 0 <= d && ++index[d] == part[d]; --d) {
                index[d] = 0;
            }
        } while (0 <= d);
    }
}
