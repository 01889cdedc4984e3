/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "gpu_shapes.h"

#include "../../bench/layouts.h"
#include "../common/typegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpu_shape_t *begin(const char *name)
{
    gpu_shape_t *shape = calloc(1, sizeof(*shape));

    CHECK(NULL != shape);
    snprintf(shape->name, sizeof(shape->name), "%s", name);
    return shape;
}

static gpu_shape_t *end(gpu_shape_t *shape)
{
    shape->send.map = mpitest_map(shape->send.type, shape->send.count);
    shape->recv.map = mpitest_map(shape->recv.type, shape->recv.count);
    shape->bytes = shape->send.map->size;
    return shape;
}

static void set(gpu_end_t *at, MPI_Datatype type, int count)
{
    MPI_OK(MPI_Type_commit(&type));
    at->type = type;
    at->count = count;
}

void gpu_shape_free(gpu_shape_t *shape)
{
    mpitest_map_free(shape->send.map);
    mpitest_map_free(shape->recv.map);
    MPI_OK(MPI_Type_free(&shape->send.type));
    MPI_OK(MPI_Type_free(&shape->recv.type));
    free(shape);
}

/* --- by hand; each makes one end of the stream named in the table ----------------------------- */

/* 24 * 64 doubles */
#define DOUBLES 1536

static void contiguous(gpu_end_t *at)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_contiguous(DOUBLES, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void basic(gpu_end_t *at)
{
    MPI_OK(MPI_Type_dup(MPI_DOUBLE, &at->type));
    at->count = DOUBLES;
}

static void vector(gpu_end_t *at)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_vector(24, 64, 100, MPI_DOUBLE, &type));
    set(at, type, 1);
}

/* Single doubles, a stride of 24 bytes. */
static void fine(gpu_end_t *at)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_vector(DOUBLES, 1, 3, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void backwards(gpu_end_t *at)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_vector(48, 32, -40, MPI_DOUBLE, &type));
    set(at, type, 1);
}

/* Rows that begin at odd addresses. */
static void odd(gpu_end_t *at)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_hvector(96, 16, 16 * 8 + 5, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void cube(gpu_end_t *at, int order)
{
    int sizes[3] = {14, 12, 20}, parts[3] = {8, 12, 16}, starts[3] = {3, 0, 2};
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_subarray(3, sizes, parts, starts, order, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void cube_c(gpu_end_t *at)
{
    cube(at, MPI_ORDER_C);
}

static void cube_fortran(gpu_end_t *at)
{
    cube(at, MPI_ORDER_FORTRAN);
}

static void four_dimensions(gpu_end_t *at)
{
    int sizes[4] = {5, 6, 9, 14}, parts[4] = {4, 4, 8, 12}, starts[4] = {1, 1, 0, 2};
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_subarray(4, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void blocks_listed(gpu_end_t *at)
{
    uint64_t state = 5;
    int where[192], i;
    MPI_Datatype type;

    for (i = 0; i < 192; ++i) {
        where[i] = 11 * i;
    }
    mpitest_shuffle(&state, where, 192);
    MPI_OK(MPI_Type_create_indexed_block(192, 8, where, MPI_DOUBLE, &type));
    set(at, type, 1);
}

static void indexed(gpu_end_t *at)
{
    int lengths[128], where[128], i, next = 0, left = DOUBLES;
    uint64_t state = 6;
    MPI_Datatype type;

    for (i = 0; i < 128; ++i) {
        lengths[i] = 127 == i ? left : (int) mpitest_between(&state, 0, 2 * left / (128 - i));
        where[i] = next + (int) mpitest_between(&state, 0, 5);
        next = where[i] + lengths[i];
        left -= lengths[i];
    }
    MPI_OK(MPI_Type_indexed(128, lengths, where, MPI_DOUBLE, &type));
    set(at, type, 1);
}

/* Every other of 768 pairs, of an extent that makes them interlock. */
static void interlocked(gpu_end_t *at)
{
    MPI_Datatype pair, type;

    MPI_OK(MPI_Type_create_hvector(2, 1, 16, MPI_DOUBLE, &pair));
    MPI_OK(MPI_Type_create_resized(pair, 0, 8, &type));
    MPI_OK(MPI_Type_free(&pair));
    /* Two of them fill 32 bytes; as a count they would touch bytes twice, so in steps. */
    MPI_OK(MPI_Type_create_hvector(2, 1, 8, type, &pair));
    MPI_OK(MPI_Type_free(&type));
    MPI_OK(MPI_Type_create_resized(pair, 0, 40, &type));
    MPI_OK(MPI_Type_free(&pair));
    set(at, type, DOUBLES / 4);
}

/* A column of a row-major matrix, as many times as it has columns. */
static void columns(gpu_end_t *at)
{
    MPI_Datatype column, type;

    MPI_OK(MPI_Type_vector(48, 1, 33, MPI_DOUBLE, &column));
    MPI_OK(MPI_Type_create_resized(column, 0, sizeof(double), &type));
    MPI_OK(MPI_Type_free(&column));
    set(at, type, 32);
}

/* Counted down: a negative extent. */
static void descending(gpu_end_t *at)
{
    MPI_Datatype row, type;

    MPI_OK(MPI_Type_contiguous(16, MPI_DOUBLE, &row));
    MPI_OK(MPI_Type_create_resized(row, 0, -(16 * 8 + 24), &type));
    MPI_OK(MPI_Type_free(&row));
    set(at, type, 96);
}

/* Two arrays of different shape in one type. */
static void two_arrays(gpu_end_t *at)
{
    int lengths[2] = {1, 512};
    MPI_Aint where[2] = {40, 20000};
    MPI_Datatype types[2], type;

    MPI_OK(MPI_Type_vector(64, 16, 20, MPI_DOUBLE, &types[0]));
    types[1] = MPI_DOUBLE;
    MPI_OK(MPI_Type_create_struct(2, lengths, where, types, &type));
    MPI_OK(MPI_Type_free(&types[0]));
    set(at, type, 1);
}

/* The signature (int, double, 3 floats) 500 times: as structs in memory, */
static void records(gpu_end_t *at)
{
    int lengths[3] = {1, 1, 3};
    MPI_Aint where[3] = {0, 8, 16};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, record, type;

    MPI_OK(MPI_Type_create_struct(3, lengths, where, types, &record));
    MPI_OK(MPI_Type_create_resized(record, 0, 32, &type));
    MPI_OK(MPI_Type_free(&record));
    set(at, type, 500);
}

/* as three arrays: record i has its parts at 4 i, 2048 + 8 i and 6400 + 12 i, */
static void arrays(gpu_end_t *at)
{
    MPI_Datatype basics[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, types[1500], type;
    int lengths[1500], i;
    MPI_Aint where[1500];

    for (i = 0; i < 1500; ++i) {
        int record = i / 3, part = i % 3;

        types[i] = basics[part];
        lengths[i] = 2 == part ? 3 : 1;
        where[i] = 0 == part ? 4 * record : 1 == part ? 2048 + 8 * record : 6400 + 12 * record;
    }
    MPI_OK(MPI_Type_create_struct(1500, lengths, where, types, &type));
    set(at, type, 1);
}

/* and packed. */
static void packed(gpu_end_t *at)
{
    int lengths[3] = {1, 1, 3};
    MPI_Aint where[3] = {0, 4, 12};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, type;

    MPI_OK(MPI_Type_create_struct(3, lengths, where, types, &type));
    set(at, type, 500);
}

typedef void (*make_fn_t)(gpu_end_t *at);

static const struct {
    const char *name;
    make_fn_t send, recv;
} by_hand[] = {
    {"contiguous to vector", contiguous, vector},
    {"vector to contiguous", vector, contiguous},
    {"contiguous to contiguous", basic, contiguous},
    {"vector to vector", vector, vector},
    {"vector to fine", vector, fine},
    {"fine to indexed", fine, indexed},
    {"indexed to fine", indexed, fine},
    {"backwards to basic", backwards, basic},
    {"basic to backwards", basic, backwards},
    {"backwards to cube", backwards, cube_c},
    {"odd to vector", odd, vector},
    {"basic to odd", basic, odd},
    {"cube to fortran's cube", cube_c, cube_fortran},
    {"fortran's cube to contiguous", cube_fortran, contiguous},
    {"four dimensions to cube", four_dimensions, cube_c},
    {"basic to four dimensions", basic, four_dimensions},
    {"listed blocks to vector", blocks_listed, vector},
    {"vector to listed blocks", vector, blocks_listed},
    {"indexed to listed blocks", indexed, blocks_listed},
    {"interlocked to columns", interlocked, columns},
    {"columns to interlocked", columns, interlocked},
    {"columns to basic", columns, basic},
    {"descending to cube", descending, cube_c},
    {"vector to descending", vector, descending},
    {"two arrays to four dimensions", two_arrays, four_dimensions},
    {"basic to two arrays", basic, two_arrays},
    {"records to records", records, records},
    {"records to arrays", records, arrays},
    {"arrays to records", arrays, records},
    {"packed to arrays", packed, arrays},
    {"records to packed", records, packed},
};

#define BY_HAND ((int) (sizeof(by_hand) / sizeof(by_hand[0])))

/* --- those of umrddt_bench, small ------------------------------------------------------------- */

static const bench_layout_entry_t small[] = {
    {"contiguous", bench_make_contiguous, {4096}},
    {"contiguous, large", bench_make_contiguous, {1 << 20}},
    {"vector", bench_make_vector, {1024, 16}},
    {"vector, small blocks", bench_make_vector, {8, 700}},
    {"vector, large", bench_make_vector, {4096, 300}},
    {"MILC_su3_zd", bench_make_milc_su3_zd, {4, 8, 8, 8}},
    {"NAS_MG_x", bench_make_nas_mg, {0, 18, 18, 18}},
    {"NAS_MG_y", bench_make_nas_mg, {1, 66, 18, 18}},
    {"NAS_MG_z", bench_make_nas_mg, {2, 66, 18, 18}},
    {"NAS_LU_x", bench_make_nas_lu_x, {102, 30}},
    {"NAS_LU_y", bench_make_nas_lu_y, {30, 102}},
    {"SPECFEM3D_oc", bench_make_specfem3d_oc, {3697, 493}},
    {"SPECFEM3D_mt", bench_make_specfem3d_mt, {128, 2, 32}},
    {"SPECFEM3D_cm", bench_make_specfem3d_cm, {3993, 122, 196, 24}},
    {"WRF_x_vec", bench_make_wrf, {0, 0, 8}},
    {"WRF_y_sa", bench_make_wrf, {1, 1, 8}},
    {"FFT2", bench_make_fft2, {64}},
    {"LAMMPS_full", bench_make_lammps, {397, 243, 5}},
    {"LAMMPS_atomic", bench_make_lammps, {1217, 114, 3}},
    {"face_x", bench_make_face, {24, 1, 0}},
    {"face_y", bench_make_face, {24, 3, 1}},
    {"face_z", bench_make_face, {24, 2, 2}},
    {"indexed, small blocks", bench_make_indexed, {8, 1024}},
    {"indexed", bench_make_indexed, {512, 64}},
};

#define SMALL ((int) (sizeof(small) / sizeof(small[0])))

static void take(gpu_end_t *at, const bench_side_t *side)
{
    at->count = side->count;
    MPI_OK(MPI_Type_dup(side->type, &at->type));
}

static gpu_shape_t *from_bench(const bench_layout_entry_t *entry)
{
    gpu_shape_t *shape = begin(entry->name);
    bench_layout_t layout;

    bench_layout_create(entry, &layout);
    take(&shape->send, &layout.send);
    take(&shape->recv, &layout.recv);
    bench_layout_destroy(&layout);
    return end(shape);
}

int gpu_shape_fixed_count(void)
{
    return BY_HAND + SMALL;
}

gpu_shape_t *gpu_shape_fixed(int which)
{
    gpu_shape_t *shape;

    if (BY_HAND <= which) {
        return from_bench(&small[which - BY_HAND]);
    }
    shape = begin(by_hand[which].name);
    by_hand[which].send(&shape->send);
    by_hand[which].recv(&shape->recv);
    return end(shape);
}

/* --- drawn ------------------------------------------------------------------------------------ */

gpu_shape_t *gpu_shape_bytes(uint64_t *state, long most)
{
    static const long sizes[] = {0,    1,    2,     7,     8,     63,     64,     200,     1000,
                                 1023, 1024, 4095,  4096,  4097,  12289,  16384,  65535,   65537,
                                 8192, 9999, 32768, 50001, 98765, 131072, 262145, 1048576, 1300001};
    mpitest_kind_t from = mpitest_draw_kind(state), to = mpitest_draw_kind(state);
    long bytes = sizes[mpitest_between(state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
    bool fine_one = MPITEST_FINE == from || MPITEST_NEGATIVE == from || MPITEST_IRREGULAR == from
                    || MPITEST_FINE == to || MPITEST_NEGATIVE == to || MPITEST_IRREGULAR == to;
    uint64_t seed = mpitest_random(state);
    gpu_shape_t *shape = begin("");

    if (bytes > most) {
        bytes = most;
    }
    if (fine_one && 65537 < bytes) {
        bytes = 65537;
    }
    snprintf(shape->name, sizeof(shape->name), "%ld bytes %s to %s", bytes, mpitest_kind_name(from),
             mpitest_kind_name(to));
    shape->send.type = mpitest_type(from, (int) bytes, seed);
    shape->send.count = 1;
    shape->recv.type = mpitest_type(to, (int) bytes, seed + 1);
    shape->recv.count = 1;
    return end(shape);
}

gpu_shape_t *gpu_shape_nested(uint64_t *state)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_side_t send, recv;
    gpu_shape_t *shape = begin("");
    typegen_rng_t rng;

    options.max_span = 1 << 18;
    options.min_elements = 1u << mpitest_between(state, 0, 9);
    options.max_elements = options.min_elements * 8;
    typegen_seed(&rng, mpitest_random(state));
    typegen_pair(&rng, &options, &send, &recv);
    /* Where a side is the CPU's the base PML may carry it, and Open MPI 5.0.7 alone puts bytes of
     * some nested types into wrong places when it packs them in several pieces (see pairs.c). */
    while (5 <= OMPI_MAJOR_VERSION && 4000 < send.size) {
        typegen_side_free(&send);
        typegen_side_free(&recv);
        options.min_elements = 1 + options.min_elements / 2;
        options.max_elements = options.min_elements * 8;
        typegen_pair(&rng, &options, &send, &recv);
    }
    snprintf(shape->name, sizeof(shape->name), "%.45s to %.45s", send.description,
             recv.description);
    MPI_OK(MPI_Type_dup(send.type, &shape->send.type));
    MPI_OK(MPI_Type_dup(recv.type, &shape->recv.type));
    shape->send.count = send.count;
    shape->recv.count = recv.count;
    typegen_side_free(&send);
    typegen_side_free(&recv);
    return end(shape);
}
