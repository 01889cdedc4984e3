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
 * Layouts by name: the memory layouts of messages of well-known applications.
 *
 * A layout has a sending and a receiving *side*, which may differ (LAMMPS gathers from a list and
 * appends to the end; FFT2 transposes). A side has its MPI datatype and, independently of it, the
 * list of its pieces, computed by plain loops from the definition: the datatype is tested, and the
 * pieces are the reference.
 *
 * All offsets are bytes from the *array*: the start of the application's memory in the definition.
 * No byte of a side is outside of [0, array_bytes).
 *
 * Errors: a maker that finds no memory, or an inconsistency, ends the job with a message.
 */

#ifndef BENCH_LAYOUTS_H
#define BENCH_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "layout_words.h"

/** Parameters of a maker, which defines their meaning. */
#define BENCH_LAYOUT_PARAMS 4

/** Bytes that follow each other in the data stream and in memory. */
typedef struct bench_piece_t {
    int64_t offset;  /**< bytes from the array */
    uint64_t length; /**< bytes; never 0 */
} bench_piece_t;

/** One side of a layout. */
typedef struct bench_side_t {
    MPI_Datatype type;     /**< committed */
    int count;             /**< how many of it */
    int64_t origin;        /**< offset of the address that MPI is given */
    uint64_t array_bytes;  /**< size of the array */
    bench_piece_t *pieces; /**< in stream order, merged where adjacent */
    size_t piece_count;
    size_t piece_room; /**< how many pieces there is memory for */
    uint64_t bytes;    /**< sum of the pieces */
} bench_side_t;

/** A layout, ready to be sent and received. */
typedef struct bench_layout_t {
    bench_side_t send;
    bench_side_t recv;
} bench_layout_t;

/** Fills both sides; types are committed, pieces complete. */
typedef void (*bench_layout_make_fn_t)(const int *params, bench_layout_t *layout);

/** A row of the table of named layouts. */
typedef struct bench_layout_entry_t {
    const char *name;
    bench_layout_make_fn_t make;
    int params[BENCH_LAYOUT_PARAMS];
} bench_layout_entry_t;

/** The table, in the order of the output. */
extern const bench_layout_entry_t bench_layout_table[];
/** How many there are without those behind them that are not meant by any glob. */
extern const size_t bench_layout_count;
/** How many there are in all. */
extern const size_t bench_layout_all;

/** Find a layout by its name. @return its row; bench_layout_count: there is none */
size_t bench_layout_find(const char *name);

/**
 * Does @p pattern, a glob, mean the layout @p name? Letter case does not matter, and the name of a
 * family (all before an underscore) means all its members.
 */
bool bench_layout_matches(const char *name, const char *pattern);

/**
 * The same of a row of the table. Behind bench_layout_count the family HAND is only meant by what
 * begins with its name, and the large ones by their full names.
 */
bool bench_layout_is_meant(size_t row, const char *pattern);

/** Make the layout of @p entry and check it: type and pieces have the same size, and stay inside.
 */
void bench_layout_create(const bench_layout_entry_t *entry, bench_layout_t *layout);

/** The check of it, of a layout that was made otherwise. */
void bench_layout_check(const char *name, const bench_layout_t *layout);

/** A layout that a user has named. */
typedef struct bench_chosen_t {
    const char *name;
    const bench_layout_entry_t *entry; /**< of the table; NULL: said in words */
    layout_words_t words;
} bench_chosen_t;

/** Those of a list. */
typedef struct bench_chosen_list_t {
    bench_chosen_t *all;
    size_t count;
} bench_chosen_list_t;

/**
 * Read a list of layouts, with commas between them: globs, names of families
 * (bench_layout_matches), names, and layouts in words (layout_words.h). Those of the table come
 * first, in its order and each once, the others behind them as they were said. It needs no MPI.
 *
 * @param[out] list   give it to bench_chosen_free, also after an error
 * @param[out] error  the error
 *
 * @return false: something is
 */
bool bench_chosen_read(const char *text, bench_chosen_list_t *list, char error[LAYOUT_ERROR]);

/** As bench_layout_create. */
void bench_chosen_create(const bench_chosen_t *chosen, bench_layout_t *layout);

/** Take one out of a list; what stands behind it moves up. */
void bench_chosen_drop(bench_chosen_list_t *list, size_t which);

/** Free a list. */
void bench_chosen_free(bench_chosen_list_t *list);

/** Free the types and the pieces. */
void bench_layout_destroy(bench_layout_t *layout);

/**
 * Make the receiving side one piece of MPI_PACKED, which MPI lets receive what was sent with any
 * datatype.
 */
void bench_layout_pack_receiver(bench_layout_t *layout);

/** True if one side at least has more than one piece: something to gather or to scatter. */
bool bench_layout_is_noncontiguous(const bench_layout_t *layout);

/* -------------------------------------------------------------------------------------------------
 * For the makers
 * ---------------------------------------------------------------------------------------------- */

/** Append a piece of the stream; merged with the one before if adjacent. */
void bench_side_add(bench_side_t *side, int64_t offset, uint64_t length);

/** Commit @p type and give it to the side, which owns it from then on. */
void bench_side_set_type(bench_side_t *side, MPI_Datatype type, int count, int64_t origin,
                         uint64_t array_bytes);

/**
 * @p count distinct numbers out of [0, range), in random order, the same on every machine and in
 * every run for the same @p seed. The caller frees them.
 */
int *bench_random_distinct(int count, int range, uint64_t seed);

/* The families; see the definitions there. */
void bench_make_contiguous(const int *params, bench_layout_t *layout);
void bench_make_vector(const int *params, bench_layout_t *layout);
void bench_make_indexed(const int *params, bench_layout_t *layout);
void bench_make_face(const int *params, bench_layout_t *layout);
void bench_make_hand_hvector(const int *params, bench_layout_t *layout);
void bench_make_hand_subarray(const int *params, bench_layout_t *layout);
void bench_make_hand_indexed_block(const int *params, bench_layout_t *layout);
void bench_make_hand_struct(const int *params, bench_layout_t *layout);
void bench_make_hand_contiguous(const int *params, bench_layout_t *layout);
void bench_make_milc_su3_zd(const int *params, bench_layout_t *layout);
void bench_make_nas_mg(const int *params, bench_layout_t *layout);
void bench_make_nas_lu_x(const int *params, bench_layout_t *layout);
void bench_make_nas_lu_y(const int *params, bench_layout_t *layout);
void bench_make_fft2(const int *params, bench_layout_t *layout);
void bench_make_specfem3d_oc(const int *params, bench_layout_t *layout);
void bench_make_specfem3d_mt(const int *params, bench_layout_t *layout);
void bench_make_specfem3d_cm(const int *params, bench_layout_t *layout);
void bench_make_lammps(const int *params, bench_layout_t *layout);
void bench_make_wrf(const int *params, bench_layout_t *layout);

#endif /* BENCH_LAYOUTS_H */
