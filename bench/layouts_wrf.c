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
 * WRF, after DDTBench's timing_wrf (see layouts.c): weather; the halo of a patch in many arrays of
 * floats at once: 4 of two dimensions (i, j), 3 of three (i, k, j), 2 of four (i, k, j, scalar),
 * i contiguous. Of the four-dimensional ones only the scalars from the second on are sent (here:
 * one of two). DDTBench describes them once by vectors and once by subarrays, in a struct; both
 * are here. The case is em_b_wave on 2 x 2, 4 x 4 and 8 x 8 processes. Received in the same shape.
 */

#include "bench_util.h"
#include "layouts.h"

#define WRF_ARRAYS_2D 4
#define WRF_ARRAYS_3D 3
#define WRF_ARRAYS_4D 2
#define WRF_ARRAYS    (WRF_ARRAYS_2D + WRF_ARRAYS_3D + WRF_ARRAYS_4D)

/* Scalars of a four-dimensional array, and the first of them that is sent (counted from 0). */
#define WRF_SCALARS      2
#define WRF_FIRST_SCALAR 1

/* Between two arrays; not a multiple of a cache line, so alignments differ. */
#define ARRAY_GAP 136

/* A range of indices, both ends included, as the application counts. */
typedef struct wrf_range_t {
    int first;
    int last;
} wrf_range_t;

/* The patch in memory (with its halo) and the part that is sent, in the order i, k, j. */
typedef struct wrf_case_t {
    int direction; /* 0 is x, 1 is y */
    int processes; /* along a side of the domain */
    wrf_range_t memory[3];
    wrf_range_t part[3];
} wrf_case_t;

static const wrf_case_t wrf_cases[] = {
    {0, 2, {{-4, 27}, {1, 65}, {34, 85}}, {{18, 20}, {1, 65}, {38, 81}}},
    {0, 4, {{4, 27}, {1, 65}, {14, 47}}, {{18, 20}, {1, 65}, {18, 43}}},
    {0, 8, {{4, 22}, {1, 65}, {4, 27}}, {{13, 15}, {1, 65}, {8, 23}}},
    {1, 2, {{-4, 27}, {1, 65}, {34, 85}}, {{1, 23}, {1, 65}, {41, 43}}},
    {1, 4, {{4, 27}, {1, 65}, {14, 47}}, {{8, 23}, {1, 65}, {21, 23}}},
    {1, 8, {{4, 22}, {1, 65}, {4, 27}}, {{8, 18}, {1, 65}, {11, 13}}},
};

/* An array of the application: dimensions, slowest first, of the whole and of the part sent. */
typedef struct wrf_array_t {
    int dimensions;
    int sizes[4];
    int subsizes[4];
    int starts[4];
} wrf_array_t;

static const wrf_case_t *find_case(int direction, int processes)
{
    size_t i;

    for (i = 0; i < sizeof(wrf_cases) / sizeof(wrf_cases[0]); ++i) {
        if (wrf_cases[i].direction == direction && wrf_cases[i].processes == processes) {
            return &wrf_cases[i];
        }
    }
    bench_fatal("WRF: there is no case of direction %d on %d x %d processes", direction, processes,
                processes);
    return NULL;
}

/* The dimensions that an array of 2, 3 or 4 has: (j, i), (j, k, i), (scalar, j, k, i). */
static void set_dimensions(const wrf_case_t *wrf, int dimensions, wrf_array_t *array)
{
    static const int order[3][4] = {{2, 0}, {2, 1, 0}, {-1, 2, 1, 0}};
    int d;

    array->dimensions = dimensions;
    for (d = 0; d < dimensions; ++d) {
        int which = order[dimensions - 2][d];

        if (0 > which) {
            array->sizes[d] = WRF_SCALARS;
            array->subsizes[d] = WRF_SCALARS - WRF_FIRST_SCALAR;
            array->starts[d] = WRF_FIRST_SCALAR;
        } else {
            const wrf_range_t *memory = &wrf->memory[which], *part = &wrf->part[which];

            array->sizes[d] = memory->last - memory->first + 1;
            array->subsizes[d] = part->last - part->first + 1;
            array->starts[d] = part->first - memory->first;
        }
    }
}

/* Pieces of the part of an array that begins at @p base, by plain counting through the indices. */
static void add_pieces(const wrf_array_t *array, int64_t base, bench_side_t *side)
{
    const int last = array->dimensions - 1;
    int index[4] = {0, 0, 0, 0};
    int d;

    for (;;) {
        int64_t element = 0;

        for (d = 0; d <= last; ++d) {
            element = element * array->sizes[d] + array->starts[d] + index[d];
        }
        bench_side_add(side, base + (int64_t) sizeof(float) * element,
                       sizeof(float) * (uint64_t) array->subsizes[last]);
        for (d = last - 1; 0 <= d && ++index[d] == array->subsizes[d]; --d) {
            index[d] = 0;
        }
        if (0 > d) {
            return;
        }
    }
}

static int64_t array_elements(const wrf_array_t *array)
{
    int64_t elements = 1;
    int d;

    for (d = 0; d < array->dimensions; ++d) {
        elements *= array->sizes[d];
    }
    return elements;
}

/*
 * The type of the part of an array by vectors of vectors, and the displacement (bytes) of its first
 * element, since a vector has no start.
 */
static MPI_Datatype type_by_vectors(const wrf_array_t *array, int64_t *displacement)
{
    const int last = array->dimensions - 1;
    int64_t stride = (int64_t) sizeof(float) * array->sizes[last];
    int64_t weight = (int64_t) sizeof(float) * array->sizes[last];
    MPI_Datatype type, inner;
    int d;

    *displacement = (int64_t) sizeof(float) * array->starts[last];
    for (d = last - 1; 0 <= d; --d) {
        *displacement += weight * array->starts[d];
        weight *= array->sizes[d];
    }
    MPI_Type_vector(array->subsizes[last - 1], array->subsizes[last], array->sizes[last], MPI_FLOAT,
                    &type);
    for (d = last - 2; 0 <= d; --d) {
        stride *= array->sizes[d + 1];
        inner = type;
        MPI_Type_create_hvector(array->subsizes[d], 1, (MPI_Aint) stride, inner, &type);
        MPI_Type_free(&inner);
    }
    return type;
}

static void make_side(const wrf_case_t *wrf, bool by_subarrays, bench_side_t *side)
{
    MPI_Datatype types[WRF_ARRAYS], type;
    MPI_Aint displacements[WRF_ARRAYS];
    int ones[WRF_ARRAYS];
    int64_t base = 0;
    int a;

    for (a = 0; a < WRF_ARRAYS; ++a) {
        int dimensions = a < WRF_ARRAYS_2D ? 2 : a < WRF_ARRAYS_2D + WRF_ARRAYS_3D ? 3 : 4;
        wrf_array_t array;
        int64_t displacement = 0;

        set_dimensions(wrf, dimensions, &array);
        add_pieces(&array, base, side);
        if (by_subarrays) {
            MPI_Type_create_subarray(dimensions, array.sizes, array.subsizes, array.starts,
                                     MPI_ORDER_C, MPI_FLOAT, &types[a]);
        } else {
            types[a] = type_by_vectors(&array, &displacement);
        }
        ones[a] = 1;
        displacements[a] = (MPI_Aint) (base + displacement);
        base += (int64_t) sizeof(float) * array_elements(&array) + ARRAY_GAP;
    }
    MPI_Type_create_struct(WRF_ARRAYS, ones, displacements, types, &type);
    for (a = 0; a < WRF_ARRAYS; ++a) {
        MPI_Type_free(&types[a]);
    }
    bench_side_set_type(side, type, 1, 0, (uint64_t) (base - ARRAY_GAP));
}

/* params: direction, whether by subarrays, processes along a side of the domain. */
void bench_make_wrf(const int *params, bench_layout_t *layout)
{
    const wrf_case_t *wrf = find_case(params[0], params[2]);

    make_side(wrf, 0 != params[1], &layout->send);
    make_side(wrf, 0 != params[1], &layout->recv);
}
