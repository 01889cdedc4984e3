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
 * Layouts of applications that keep lists or many arrays: SPECFEM3D_GLOBE, LAMMPS, WRF. The
 * definitions are those of DDTBench (see layouts.c), read there and written anew here. DDTBench
 * gives several arrays to MPI by absolute addresses and MPI_BOTTOM; here they lie behind each other
 * in one array, a gap between them, so that one type serves every buffer.
 */

#include <stdlib.h>

#include "bench_util.h"
#include "layouts.h"

/* Between two arrays of the application; not a multiple of a cache line, so alignments differ. */
#define ARRAY_GAP 136

/* Fixed for ever, so that results of different days can be compared. */
#define SEED_SPECFEM3D 0x5bec3d01u
#define SEED_LAMMPS    0x1a3395a1u

/*
 * SPECFEM3D_oc, after DDTBench's timing_specfem3d: seismic waves, outer core; params[1] single
 * floats out of a mesh of params[0], listed by index in no order. Received in the same shape.
 */
void bench_make_specfem3d_oc(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    int i, k;

    for (i = 0; i < 2; ++i) {
        int *list = bench_random_distinct(params[1], params[0], SEED_SPECFEM3D);
        MPI_Datatype type;

        MPI_Type_create_indexed_block(params[1], 1, list, MPI_FLOAT, &type);
        bench_side_set_type(sides[i], type, 1, 0, sizeof(float) * (uint64_t) params[0]);
        for (k = 0; k < params[1]; ++k) {
            bench_side_add(sides[i], (int64_t) sizeof(float) * list[k], sizeof(float));
        }
        free(list);
    }
}

/*
 * SPECFEM3D_mt, after DDTBench's timing_specfem3d: one of every params[1] blocks of params[0]
 * floats is sent, params[2] in all; they arrive in one piece.
 */
void bench_make_specfem3d_mt(const int *params, bench_layout_t *layout)
{
    const int64_t block = (int64_t) sizeof(float) * params[0];
    MPI_Datatype floats, type;
    int k;

    MPI_Type_contiguous(params[0], MPI_FLOAT, &floats);
    MPI_Type_vector(params[2], 1, params[1], floats, &type);
    MPI_Type_free(&floats);
    bench_side_set_type(&layout->send, type, 1, 0, (uint64_t) (block * params[1] * params[2]));
    for (k = 0; k < params[2]; ++k) {
        bench_side_add(&layout->send, block * params[1] * k, (uint64_t) block);
    }

    MPI_Type_contiguous(params[0] * params[2], MPI_FLOAT, &type);
    bench_side_set_type(&layout->recv, type, 1, 0, (uint64_t) (block * params[2]));
    bench_side_add(&layout->recv, 0, (uint64_t) (block * params[2]));
}

/* params[2] out of params[0] points of one array and params[3] out of params[1] of the other. */
static void make_specfem3d_cm_side(const int *params, bench_side_t *side)
{
    const int64_t point = 3 * sizeof(float);
    const MPI_Aint arrays[2] = {0, (MPI_Aint) (point * params[0] + ARRAY_GAP)};
    const int ones[2] = {1, 1};
    MPI_Datatype types[2], type;
    int part, k;

    for (part = 0; part < 2; ++part) {
        int count = params[2 + part];
        int *list =
            bench_random_distinct(count, params[part], SEED_SPECFEM3D + 1 + (uint64_t) part);

        for (k = 0; k < count; ++k) {
            bench_side_add(side, arrays[part] + point * list[k], (uint64_t) point);
            list[k] *= 3;
        }
        MPI_Type_create_indexed_block(count, 3, list, MPI_FLOAT, &types[part]);
        free(list);
    }
    MPI_Type_create_struct(2, ones, arrays, types, &type);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
    bench_side_set_type(side, type, 1, 0, (uint64_t) (arrays[1] + point * params[1]));
}

/*
 * SPECFEM3D_cm, after DDTBench's timing_specfem3d: crust, mantle and inner core in one message, two
 * lists of points of 3 floats in two arrays. Received in the same shape.
 */
void bench_make_specfem3d_cm(const int *params, bench_layout_t *layout)
{
    make_specfem3d_cm_side(params, &layout->send);
    make_specfem3d_cm_side(params, &layout->recv);
}

/* Arrays of an atom: its place (3 doubles), then up to five properties of one double. */
#define LAMMPS_MAX_ARRAYS 6

/*
 * LAMMPS, after DDTBench's timing_lammps: molecular dynamics; the places and params[2] properties
 * (full: tag, type, mask, charge, molecule; atomic: the first three) of params[1] listed atoms out
 * of the params[0] owned ones. They arrive behind the owned ones, contiguous in each array.
 */
void bench_make_lammps(const int *params, bench_layout_t *layout)
{
    const int owned = params[0], sent = params[1], arrays = 1 + params[2];
    const int ones[LAMMPS_MAX_ARRAYS] = {1, 1, 1, 1, 1, 1};
    int *list = bench_random_distinct(sent, owned, SEED_LAMMPS);
    int *list3 = bench_alloc(sizeof(int) * (size_t) sent);
    MPI_Datatype types[LAMMPS_MAX_ARRAYS], single, triple, type;
    MPI_Aint starts[LAMMPS_MAX_ARRAYS], places[LAMMPS_MAX_ARRAYS];
    int64_t end = 0;
    int a, k;

    for (a = 0; a < arrays; ++a) {
        int64_t width = (int64_t) sizeof(double) * (0 == a ? 3 : 1);

        starts[a] = (MPI_Aint) end;
        places[a] = (MPI_Aint) (end + width * owned);
        end += width * (owned + sent) + ARRAY_GAP;
        for (k = 0; k < sent; ++k) {
            bench_side_add(&layout->send, starts[a] + width * list[k], (uint64_t) width);
        }
        bench_side_add(&layout->recv, places[a], (uint64_t) (width * sent));
    }
    end -= ARRAY_GAP;

    for (k = 0; k < sent; ++k) {
        list3[k] = 3 * list[k];
    }
    MPI_Type_create_indexed_block(sent, 3, list3, MPI_DOUBLE, &triple);
    MPI_Type_create_indexed_block(sent, 1, list, MPI_DOUBLE, &single);
    for (a = 0; a < arrays; ++a) {
        types[a] = 0 == a ? triple : single;
    }
    MPI_Type_create_struct(arrays, ones, starts, types, &type);
    MPI_Type_free(&triple);
    MPI_Type_free(&single);
    bench_side_set_type(&layout->send, type, 1, 0, (uint64_t) end);

    MPI_Type_contiguous(3 * sent, MPI_DOUBLE, &triple);
    MPI_Type_contiguous(sent, MPI_DOUBLE, &single);
    for (a = 0; a < arrays; ++a) {
        types[a] = 0 == a ? triple : single;
    }
    MPI_Type_create_struct(arrays, ones, places, types, &type);
    MPI_Type_free(&triple);
    MPI_Type_free(&single);
    bench_side_set_type(&layout->recv, type, 1, 0, (uint64_t) end);
    free(list3);
    free(list);
}

/*
 * HAND's indexed_block (see bench_make_hand_hvector): params[0] KiB in blocks of 32 bytes, one to
 * four such blocks from the begin of one to the next, without order; other places at the receiver.
 */
void bench_make_hand_indexed_block(const int *params, bench_layout_t *layout)
{
    bench_side_t *sides[2] = {&layout->send, &layout->recv};
    const int count = 1024 / 32 * params[0];
    int *places = bench_alloc((size_t) count * sizeof(*places));
    int i, k;

    for (i = 0; i < 2; ++i) {
        uint64_t seed = 0x48414e44u + (uint64_t) i;
        MPI_Datatype type;
        int at = 0;

        for (k = 0; k < count; ++k) {
            places[k] = 4 * at;
            bench_side_add(sides[i], 32 * (int64_t) at, 32);
            at += 1 + (int) (bench_random(&seed) % 4);
        }
        MPI_Type_create_indexed_block(count, 4, places, MPI_DOUBLE, &type);
        bench_side_set_type(sides[i], type, 1, 0, 32 * (uint64_t) at);
    }
    free(places);
}
