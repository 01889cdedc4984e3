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
 * The table of named layouts. Sizes are those of the papers and of DDTBench (T. Schneider,
 * R. Gerstenberger, T. Hoefler: "Micro-Applications for Communication Data Access Patterns and MPI
 * Datatypes", EuroMPI 2012); each maker describes its family.
 */

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bench_util.h"
#include "layouts.h"

#define KIB 1024

const bench_layout_entry_t bench_layout_table[] = {
    {"contiguous_4KiB", bench_make_contiguous, {4 * KIB}},
    {"contiguous_64KiB", bench_make_contiguous, {64 * KIB}},
    {"contiguous_1MiB", bench_make_contiguous, {1024 * KIB}},
    {"contiguous_8MiB", bench_make_contiguous, {8192 * KIB}},

    /* block size in bytes, number of blocks */
    {"vector_1KiB_x16", bench_make_vector, {1 * KIB, 16}},
    {"vector_1KiB_x32", bench_make_vector, {1 * KIB, 32}},
    {"vector_1KiB_x64", bench_make_vector, {1 * KIB, 64}},
    {"vector_1KiB_x128", bench_make_vector, {1 * KIB, 128}},
    {"vector_1KiB_x256", bench_make_vector, {1 * KIB, 256}},
    {"vector_1KiB_x512", bench_make_vector, {1 * KIB, 512}},
    {"vector_1KiB_x1024", bench_make_vector, {1 * KIB, 1024}},
    {"vector_1KiB_x2048", bench_make_vector, {1 * KIB, 2048}},
    {"vector_1KiB_x4096", bench_make_vector, {1 * KIB, 4096}},
    {"vector_2KiB_x16", bench_make_vector, {2 * KIB, 16}},
    {"vector_2KiB_x32", bench_make_vector, {2 * KIB, 32}},
    {"vector_2KiB_x64", bench_make_vector, {2 * KIB, 64}},
    {"vector_2KiB_x128", bench_make_vector, {2 * KIB, 128}},
    {"vector_4KiB_x16", bench_make_vector, {4 * KIB, 16}},
    {"vector_4KiB_x32", bench_make_vector, {4 * KIB, 32}},
    {"vector_4KiB_x64", bench_make_vector, {4 * KIB, 64}},
    {"vector_4KiB_x128", bench_make_vector, {4 * KIB, 128}},

    /* local lattice: x, y, z, t */
    {"MILC_su3_zd_8x8x16x32", bench_make_milc_su3_zd, {8, 8, 16, 32}},
    {"MILC_su3_zd_8x16x16x32", bench_make_milc_su3_zd, {8, 16, 16, 32}},
    {"MILC_su3_zd_16x16x32x32", bench_make_milc_su3_zd, {16, 16, 32, 32}},
    {"MILC_su3_zd_16x32x32x32", bench_make_milc_su3_zd, {16, 32, 32, 32}},

    /* direction, local grid with its ghost cells */
    {"NAS_MG_x_34x18x18", bench_make_nas_mg, {0, 34, 18, 18}},
    {"NAS_MG_x_130x66x66", bench_make_nas_mg, {0, 130, 66, 66}},
    {"NAS_MG_x_258x130x130", bench_make_nas_mg, {0, 258, 130, 130}},
    {"NAS_MG_y_512x66x66", bench_make_nas_mg, {1, 512, 66, 66}},
    {"NAS_MG_y_1024x66x66", bench_make_nas_mg, {1, 1024, 66, 66}},
    {"NAS_MG_y_2048x66x120", bench_make_nas_mg, {1, 2048, 66, 120}},
    {"NAS_MG_z_130x66x66", bench_make_nas_mg, {2, 130, 66, 66}},
    {"NAS_MG_z_512x66x66", bench_make_nas_mg, {2, 512, 66, 66}},
    {"NAS_MG_z_1024x66x66", bench_make_nas_mg, {2, 1024, 66, 66}},

    /* local grid without its ghost cells */
    {"NAS_LU_x_102x102", bench_make_nas_lu_x, {102, 102}},
    {"NAS_LU_x_408x408", bench_make_nas_lu_x, {408, 408}},
    {"NAS_LU_x_1020x1020", bench_make_nas_lu_x, {1020, 1020}},
    {"NAS_LU_y_102x102", bench_make_nas_lu_y, {102, 102}},
    {"NAS_LU_y_408x408", bench_make_nas_lu_y, {408, 408}},
    {"NAS_LU_y_1020x1020", bench_make_nas_lu_y, {1020, 1020}},

    /* points of the local mesh, points on the border */
    {"SPECFEM3D_oc_493", bench_make_specfem3d_oc, {3697, 493}},
    {"SPECFEM3D_oc_877", bench_make_specfem3d_oc, {12857, 877}},
    {"SPECFEM3D_oc_1897", bench_make_specfem3d_oc, {38585, 1897}},
    {"SPECFEM3D_oc_3225", bench_make_specfem3d_oc, {88881, 3225}},

    /* floats of a block, of how many blocks one is sent, blocks sent */
    {"SPECFEM3D_mt_1024x2x32", bench_make_specfem3d_mt, {1024, 2, 32}},
    {"SPECFEM3D_mt_1024x2x64", bench_make_specfem3d_mt, {1024, 2, 64}},
    {"SPECFEM3D_mt_1024x2x128", bench_make_specfem3d_mt, {1024, 2, 128}},

    /* points of crust and mantle, of the inner core; border points of the one, of the other */
    {"SPECFEM3D_cm_1957_245", bench_make_specfem3d_cm, {39929, 1225, 1957, 245}},
    {"SPECFEM3D_cm_3801_801", bench_make_specfem3d_cm, {152001, 7209, 3801, 801}},
    {"SPECFEM3D_cm_7125_1729", bench_make_specfem3d_cm, {396849, 22477, 7125, 1729}},
    {"SPECFEM3D_cm_11797_3009", bench_make_specfem3d_cm, {834917, 51153, 11797, 3009}},

    /* direction, 0 for vectors and 1 for subarrays, processes along a side of the domain */
    {"WRF_x_vec_2x2", bench_make_wrf, {0, 0, 2}},
    {"WRF_x_vec_4x4", bench_make_wrf, {0, 0, 4}},
    {"WRF_x_vec_8x8", bench_make_wrf, {0, 0, 8}},
    {"WRF_y_vec_2x2", bench_make_wrf, {1, 0, 2}},
    {"WRF_y_vec_4x4", bench_make_wrf, {1, 0, 4}},
    {"WRF_y_vec_8x8", bench_make_wrf, {1, 0, 8}},
    {"WRF_x_sa_2x2", bench_make_wrf, {0, 1, 2}},
    {"WRF_x_sa_4x4", bench_make_wrf, {0, 1, 4}},
    {"WRF_x_sa_8x8", bench_make_wrf, {0, 1, 8}},
    {"WRF_y_sa_2x2", bench_make_wrf, {1, 1, 2}},
    {"WRF_y_sa_4x4", bench_make_wrf, {1, 1, 4}},
    {"WRF_y_sa_8x8", bench_make_wrf, {1, 1, 8}},

    /* side of the matrix */
    {"FFT2_256", bench_make_fft2, {256}},
    {"FFT2_512", bench_make_fft2, {512}},
    {"FFT2_1024", bench_make_fft2, {1024}},

    /* atoms owned, atoms sent, scalar properties of an atom besides its place */
    {"LAMMPS_full_1662", bench_make_lammps, {1907, 1662, 5}},
    {"LAMMPS_full_2243", bench_make_lammps, {2597, 2243, 5}},
    {"LAMMPS_full_3062", bench_make_lammps, {3534, 3062, 5}},
    {"LAMMPS_atomic_114", bench_make_lammps, {1217, 114, 3}},
    {"LAMMPS_atomic_145", bench_make_lammps, {2157, 145, 3}},
    {"LAMMPS_atomic_243", bench_make_lammps, {4084, 243, 3}},

    /* side of the cube, radius, direction */
    {"face_128_r1_x", bench_make_face, {128, 1, 0}},
    {"face_128_r1_y", bench_make_face, {128, 1, 1}},
    {"face_128_r1_z", bench_make_face, {128, 1, 2}},
    {"face_128_r3_x", bench_make_face, {128, 3, 0}},
    {"face_128_r3_y", bench_make_face, {128, 3, 1}},
    {"face_128_r3_z", bench_make_face, {128, 3, 2}},
    {"face_512_r1_x", bench_make_face, {512, 1, 0}},
    {"face_512_r1_y", bench_make_face, {512, 1, 1}},
    {"face_512_r1_z", bench_make_face, {512, 1, 2}},
    {"face_512_r3_x", bench_make_face, {512, 3, 0}},
    {"face_512_r3_y", bench_make_face, {512, 3, 1}},
    {"face_512_r3_z", bench_make_face, {512, 3, 2}},

    /* block size in bytes, number of blocks */
    {"indexed_8B_x1024", bench_make_indexed, {8, 1024}},
    {"indexed_8B_x16384", bench_make_indexed, {8, 16384}},
    {"indexed_8B_x65536", bench_make_indexed, {8, 65536}},
    {"indexed_512B_x64", bench_make_indexed, {512, 64}},
    {"indexed_512B_x512", bench_make_indexed, {512, 512}},
    {"indexed_512B_x4096", bench_make_indexed, {512, 4096}},

    /* The kinds of datatypes of HAND's experiments: KiB of a message; of subarrays directions, and
     * 1 for Fortran's order. By names that begin with HAND only: see bench_layout_is_meant. */
    {"HAND_hvector_16KiB", bench_make_hand_hvector, {16}},
    {"HAND_hvector_64KiB", bench_make_hand_hvector, {64}},
    {"HAND_hvector_256KiB", bench_make_hand_hvector, {256}},
    {"HAND_hvector_1MiB", bench_make_hand_hvector, {1024}},
    {"HAND_subarray1_16KiB", bench_make_hand_subarray, {16, 1, 0}},
    {"HAND_subarray1_64KiB", bench_make_hand_subarray, {64, 1, 0}},
    {"HAND_subarray1_256KiB", bench_make_hand_subarray, {256, 1, 0}},
    {"HAND_subarray1_1MiB", bench_make_hand_subarray, {1024, 1, 0}},
    {"HAND_subarray2_16KiB", bench_make_hand_subarray, {16, 2, 0}},
    {"HAND_subarray2_64KiB", bench_make_hand_subarray, {64, 2, 0}},
    {"HAND_subarray2_256KiB", bench_make_hand_subarray, {256, 2, 0}},
    {"HAND_subarray2_1MiB", bench_make_hand_subarray, {1024, 2, 0}},
    {"HAND_subarray3_16KiB", bench_make_hand_subarray, {16, 3, 0}},
    {"HAND_subarray3_64KiB", bench_make_hand_subarray, {64, 3, 0}},
    {"HAND_subarray3_256KiB", bench_make_hand_subarray, {256, 3, 0}},
    {"HAND_subarray3_1MiB", bench_make_hand_subarray, {1024, 3, 0}},
    {"HAND_subarray4_16KiB", bench_make_hand_subarray, {16, 4, 0}},
    {"HAND_subarray4_64KiB", bench_make_hand_subarray, {64, 4, 0}},
    {"HAND_subarray4_256KiB", bench_make_hand_subarray, {256, 4, 0}},
    {"HAND_subarray4_1MiB", bench_make_hand_subarray, {1024, 4, 0}},
    {"HAND_subarray3_fortran_16KiB", bench_make_hand_subarray, {16, 3, 1}},
    {"HAND_subarray3_fortran_64KiB", bench_make_hand_subarray, {64, 3, 1}},
    {"HAND_subarray3_fortran_256KiB", bench_make_hand_subarray, {256, 3, 1}},
    {"HAND_subarray3_fortran_1MiB", bench_make_hand_subarray, {1024, 3, 1}},
    {"HAND_indexed_block_16KiB", bench_make_hand_indexed_block, {16}},
    {"HAND_indexed_block_64KiB", bench_make_hand_indexed_block, {64}},
    {"HAND_indexed_block_256KiB", bench_make_hand_indexed_block, {256}},
    {"HAND_indexed_block_1MiB", bench_make_hand_indexed_block, {1024}},
    {"HAND_struct_16KiB", bench_make_hand_struct, {16}},
    {"HAND_struct_64KiB", bench_make_hand_struct, {64}},
    {"HAND_struct_256KiB", bench_make_hand_struct, {256}},
    {"HAND_struct_1MiB", bench_make_hand_struct, {1024}},
    {"HAND_contiguous_16KiB", bench_make_hand_contiguous, {16}},
    {"HAND_contiguous_64KiB", bench_make_hand_contiguous, {64}},
    {"HAND_contiguous_256KiB", bench_make_hand_contiguous, {256}},
    {"HAND_contiguous_1MiB", bench_make_hand_contiguous, {1024}},

    /* From here on for bandwidths, by their names alone: see LARGE. */
    {"contiguous_64MiB", bench_make_contiguous, {65536 * KIB}},
    {"vector_64B_x1048576", bench_make_vector, {64, 1024 * KIB}},
    {"vector_1KiB_x65536", bench_make_vector, {1 * KIB, 64 * KIB}},
    {"vector_64KiB_x1024", bench_make_vector, {64 * KIB, 1 * KIB}},
    {"contiguous_256MiB", bench_make_contiguous, {262144 * KIB}},
    {"vector_512B_x524288", bench_make_vector, {512, 512 * KIB}},
    {"vector_4KiB_x65536", bench_make_vector, {4 * KIB, 64 * KIB}},
    {"vector_64KiB_x4096", bench_make_vector, {64 * KIB, 4 * KIB}},
};

/* How many at the end are only meant by their full names, and how many of HAND are before them. */
#define LARGE 8
#define HAND  36

const size_t bench_layout_all = sizeof(bench_layout_table) / sizeof(bench_layout_table[0]);
const size_t bench_layout_count =
    sizeof(bench_layout_table) / sizeof(bench_layout_table[0]) - LARGE - HAND;

/* fnmatch can ignore letter case only as an extension; so both texts are made lower case first. */
static void lower_case(const char *from, char *to, size_t room)
{
    size_t i;

    for (i = 0; i + 1 < room && '\0' != from[i]; ++i) {
        to[i] = (char) tolower((unsigned char) from[i]);
    }
    to[i] = '\0';
}

size_t bench_layout_find(const char *name)
{
    size_t row = 0;

    while (row < bench_layout_count && 0 != strcmp(name, bench_layout_table[row].name)) {
        ++row;
    }
    return row;
}

bool bench_layout_matches(const char *name, const char *pattern)
{
    char low_name[128], low_pattern[128];
    size_t length;

    if (sizeof(low_pattern) <= strlen(pattern)) {
        return false;
    }
    lower_case(name, low_name, sizeof(low_name));
    lower_case(pattern, low_pattern, sizeof(low_pattern));
    if (0 == fnmatch(low_pattern, low_name, 0)) {
        return true;
    }
    length = strlen(low_pattern);
    return 0 == strncmp(low_name, low_pattern, length) && '_' == low_name[length];
}

bool bench_layout_is_meant(size_t row, const char *pattern)
{
    const char *name = bench_layout_table[row].name;

    if (row >= bench_layout_count + HAND) {
        return 0 == strcasecmp(name, pattern);
    }
    return bench_layout_matches(name, pattern)
           && (row < bench_layout_count || 0 == strncasecmp(pattern, "HAND", 4));
}

/* The two descriptions of a side, by type and by pieces, must agree at least in their outlines. */
static void check_side(const char *name, const char *which, const bench_side_t *side)
{
    MPI_Count size, lb, extent;
    int64_t low = INT64_MAX, high = INT64_MIN;
    size_t i;

    /* the first ones are deprecated from MPI 4.1 on, the others are new in 4.0 */
#if 4 > MPI_VERSION
    MPI_Type_size_x(side->type, &size);
    MPI_Type_get_true_extent_x(side->type, &lb, &extent);
#else
    MPI_Type_size_c(side->type, &size);
    MPI_Type_get_true_extent_c(side->type, &lb, &extent);
#endif
    for (i = 0; i < side->piece_count; ++i) {
        const bench_piece_t *piece = &side->pieces[i];
        int64_t end = piece->offset + (int64_t) piece->length;

        low = piece->offset < low ? piece->offset : low;
        high = end > high ? end : high;
    }
    if ((uint64_t) size * (uint64_t) side->count != side->bytes || 0 > low
        || high > (int64_t) side->array_bytes
        || (1 == side->count && (side->origin + lb != low || side->origin + lb + extent != high))) {
        bench_fatal("layout %s, %s side: its datatype (%lld bytes, [%lld, %lld)) is not what its "
                    "pieces are (%llu bytes, [%lld, %lld), array of %llu bytes)",
                    name, which, (long long) size * side->count, (long long) (side->origin + lb),
                    (long long) (side->origin + lb + extent), (unsigned long long) side->bytes,
                    (long long) low, (long long) high, (unsigned long long) side->array_bytes);
    }
}

void bench_layout_check(const char *name, const bench_layout_t *layout)
{
    check_side(name, "sending", &layout->send);
    check_side(name, "receiving", &layout->recv);
    if (layout->send.bytes != layout->recv.bytes) {
        bench_fatal("layout %s sends %llu bytes and receives %llu", name,
                    (unsigned long long) layout->send.bytes,
                    (unsigned long long) layout->recv.bytes);
    }
}

void bench_layout_create(const bench_layout_entry_t *entry, bench_layout_t *layout)
{
    memset(layout, 0, sizeof(*layout));
    entry->make(entry->params, layout);
    bench_layout_check(entry->name, layout);
}

void bench_layout_destroy(bench_layout_t *layout)
{
    MPI_Type_free(&layout->send.type);
    MPI_Type_free(&layout->recv.type);
    free(layout->send.pieces);
    free(layout->recv.pieces);
    memset(layout, 0, sizeof(*layout));
}

void bench_layout_pack_receiver(bench_layout_t *layout)
{
    bench_side_t *side = &layout->recv;
    const uint64_t bytes = side->bytes;
    MPI_Datatype type;

    MPI_Type_free(&side->type);
    free(side->pieces);
    memset(side, 0, sizeof(*side));
    bench_side_add(side, 0, bytes);
    MPI_Type_dup(MPI_PACKED, &type);
    bench_side_set_type(side, type, (int) bytes, 0, bytes);
}

bool bench_layout_is_noncontiguous(const bench_layout_t *layout)
{
    return 1 < layout->send.piece_count || 1 < layout->recv.piece_count;
}

void bench_side_add(bench_side_t *side, int64_t offset, uint64_t length)
{
    bench_piece_t *last = 0 < side->piece_count ? &side->pieces[side->piece_count - 1] : NULL;

    side->bytes += length;
    if (NULL != last && last->offset + (int64_t) last->length == offset) {
        last->length += length;
        return;
    }
    if (side->piece_count == side->piece_room) {
        side->piece_room = 0 == side->piece_room ? 64 : 2 * side->piece_room;
        side->pieces = bench_realloc(side->pieces, side->piece_room * sizeof(bench_piece_t));
    }
    side->pieces[side->piece_count].offset = offset;
    side->pieces[side->piece_count].length = length;
    ++side->piece_count;
}

void bench_side_set_type(bench_side_t *side, MPI_Datatype type, int count, int64_t origin,
                         uint64_t array_bytes)
{
    MPI_Type_commit(&type);
    side->type = type;
    side->count = count;
    side->origin = origin;
    side->array_bytes = array_bytes;
}

int *bench_random_distinct(int count, int range, uint64_t seed)
{
    int *all = bench_alloc((size_t) range * sizeof(int));
    int i;

    for (i = 0; i < range; ++i) {
        all[i] = i;
    }
    for (i = 0; i < count && i < range; ++i) {
        int other = i + (int) (bench_random(&seed) % (uint64_t) (range - i));
        int number = all[i];

        all[i] = all[other];
        all[other] = number;
    }
    return all;
}
