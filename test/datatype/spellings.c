/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spellings.h"

#define MAX_LOOPS  3
#define MAX_PIECES 40

typedef struct {
    int count;
    MPI_Aint stride;
} loop_t;

typedef struct {
    MPI_Aint offset;
    int length;
} piece_t;

/* Loops, the outermost first, over a list of pieces. */
typedef struct {
    const char *name;
    int loop_count;
    loop_t loops[MAX_LOOPS];
    int piece_count;
    piece_t pieces[MAX_PIECES];
} layout_t;

/* No piece continues the one before, and no loop the one within it: nothing here is said twice. */
static const layout_t layouts[SPELLINGS_LAYOUTS] = {
    {"contiguous", 0, {{0}}, 1, {{0, 4096}}},
    {"contiguous at an offset", 0, {{0}}, 1, {{72, 960}}},
    {"vector of doubles", 1, {{1000, 16}}, 1, {{0, 8}}},
    {"vector of KiB", 1, {{64, 2048}}, 1, {{0, 1024}}},
    {"vector of KiB, wider", 1, {{64, 2056}}, 1, {{0, 1024}}},
    {"vector of KiB, one fewer", 1, {{63, 2048}}, 1, {{0, 1024}}},
    {"vector at an offset", 1, {{64, 2048}}, 1, {{8, 1024}}},
    {"vector backwards", 1, {{48, -64}}, 1, {{4096, 24}}},
    {"vector over itself", 1, {{40, 16}}, 1, {{0, 32}}},
    {"the same block again", 1, {{12, 0}}, 1, {{0, 24}}},
    {"face of a cube", 2, {{30, 8192}, {30, 256}}, 1, {{0, 8}}},
    {"face of a cube, other order", 2, {{30, 256}, {30, 8192}}, 1, {{0, 8}}},
    {"block of a cube", 2, {{20, 32768}, {24, 512}}, 1, {{1040, 240}}},
    {"four dimensions", 3, {{6, 65536}, {5, 4096}, {4, 128}}, 1, {{0, 48}}},
    {"array of structs", 1, {{500, 48}}, 3, {{0, 4}, {8, 16}, {32, 8}}},
    {"array of structs that touch", 1, {{500, 48}}, 2, {{0, 12}, {40, 8}}},
    {"plane of structs", 2, {{16, 4096}, {20, 64}}, 3, {{0, 8}, {16, 12}, {48, 8}}},
    {"pieces", 0, {{0}}, 5, {{0, 8}, {24, 16}, {96, 4}, {104, 40}, {-64, 12}}},
    {"pieces of one length",
     0,
     {{0}},
     12,
     {{0, 8},
      {40, 8},
      {56, 8},
      {200, 8},
      {320, 8},
      {104, 8},
      {800, 8},
      {760, 8},
      {1000, 8},
      {1032, 8},
      {2000, 8},
      {16, 8}}},
    {"lines of pieces",
     1,
     {{25, 4096}},
     10,
     {{0, 16},
      {40, 8},
      {56, 24},
      {200, 8},
      {320, 4},
      {1104, 8},
      {800, 32},
      {760, 8},
      {1000, 8},
      {2000, 8}}},
};

typedef struct {
    typegen_rng_t *rng;
    spelling_t *spelling;
} speller_t;

#define MPI(CALL)                                                              \
    do {                                                                       \
        int mpi_rc_ = (CALL);                                                  \
        if (MPI_SUCCESS != mpi_rc_) {                                          \
            fprintf(stderr, "spellings: %s failed with %d\n", #CALL, mpi_rc_); \
            abort();                                                           \
        }                                                                      \
    } while (0)

static void say(speller_t *speller, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(speller_t *speller, const char *format, ...)
{
    size_t used = strlen(speller->spelling->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(speller->spelling->text + used, sizeof(speller->spelling->text) - used, format,
              arguments);
    va_end(arguments);
}

static int below(speller_t *speller, int bound)
{
    return (int) typegen_below(speller->rng, (uint64_t) bound);
}

static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lb, extent;

    MPI(MPI_Type_get_extent(type, &lb, &extent));
    return extent;
}

static void drop(MPI_Datatype type)
{
    int integers, addresses, types, combiner;

    MPI(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
    if (MPI_COMBINER_NAMED != combiner) {
        MPI(MPI_Type_free(&type));
    }
}

/* A divisor of n, or n itself. */
static int divisor(speller_t *speller, int n)
{
    int tries;

    for (tries = 0; tries < 20; ++tries) {
        int d = 1 + below(speller, n < 64 ? n : 64);

        if (0 == n % d) {
            return d;
        }
    }
    return n;
}

/* ---------------------------------------------------------------------------------------------
 * Blocks
 * ------------------------------------------------------------------------------------------- */

static MPI_Datatype unit(speller_t *speller, int length)
{
    switch (below(speller, 4)) {
    case 0:
        if (0 == length % 8) {
            say(speller, "double");
            return MPI_DOUBLE;
        }
        break;
    case 1:
        if (0 == length % 4) {
            say(speller, "int");
            return MPI_INT;
        }
        break;
    case 2:
        if (0 == length % 2) {
            say(speller, "short");
            return MPI_SHORT;
        }
        break;
    default:
        break;
    }
    say(speller, "byte");
    return MPI_BYTE;
}

/* length bytes from offset 0, with that extent */
static MPI_Datatype block(speller_t *speller, int length, int depth)
{
    MPI_Datatype inner, other, type;
    int size, n, d;

    switch (below(speller, 0 < depth ? 6 : 1)) {
    case 0:
        say(speller, "contiguous(%d ", length);
        inner = unit(speller, length);
        MPI(MPI_Type_size(inner, &size));
        MPI(MPI_Type_contiguous(length / size, inner, &type));
        say(speller, ")");
        return type;
    case 1:
        d = divisor(speller, length);
        say(speller, "contiguous(%d ", d);
        inner = block(speller, length / d, depth - 1);
        MPI(MPI_Type_contiguous(d, inner, &type));
        break;
    case 2:
        say(speller, "vector(");
        inner = unit(speller, length);
        MPI(MPI_Type_size(inner, &size));
        n = length / size;
        d = divisor(speller, n);
        say(speller, " %dx%d", n / d, d);
        MPI(MPI_Type_vector(n / d, d, d, inner, &type));
        break;
    case 3: {
        int lengths[3], displacements[3];

        lengths[0] = below(speller, length + 1);
        lengths[1] = below(speller, length - lengths[0] + 1);
        lengths[2] = length - lengths[0] - lengths[1];
        displacements[0] = 0;
        displacements[1] = lengths[0];
        displacements[2] = lengths[0] + lengths[1];
        say(speller, "indexed(%d %d %d", lengths[0], lengths[1], lengths[2]);
        inner = MPI_BYTE;
        MPI(MPI_Type_indexed(3, lengths, displacements, inner, &type));
        break;
    }
    case 4: {
        int lengths[2] = {1, 1};
        MPI_Aint displacements[2] = {0, 0};
        MPI_Datatype types[2];

        d = 1 + below(speller, length);
        if (d == length) {
            return block(speller, length, depth - 1);
        }
        displacements[1] = d;
        say(speller, "struct(");
        types[0] = block(speller, d, depth - 1);
        say(speller, " %d:", d);
        types[1] = block(speller, length - d, depth - 1);
        MPI(MPI_Type_create_struct(2, lengths, displacements, types, &other));
        MPI(MPI_Type_create_resized(other, 0, length, &type));
        drop(types[0]);
        drop(types[1]);
        inner = other;
        break;
    }
    default:
        say(speller, "dup(");
        inner = block(speller, length, depth - 1);
        MPI(MPI_Type_dup(inner, &type));
        break;
    }
    say(speller, ")");
    drop(inner);
    return type;
}

static int order(speller_t *speller)
{
    return 0 == below(speller, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
}

/* A type moved by an offset. */
static MPI_Datatype place(speller_t *speller, MPI_Datatype inner, MPI_Aint offset)
{
    MPI_Datatype type, other;
    const int ones[1] = {1}, distribution = MPI_DISTRIBUTE_BLOCK, start = (int) offset;
    int lengths[2] = {1, 0}, sizes[1];
    MPI_Aint displacements[2] = {offset, offset};

    if (0 == offset && 0 < below(speller, 4)) {
        return inner;
    }
    switch (below(speller, 0 < offset ? 5 : 3)) {
    case 0:
        say(speller, "@hindexed %ld", (long) offset);
        MPI(MPI_Type_create_hindexed(2, lengths, displacements, inner, &type));
        break;
    case 1:
        say(speller, "@struct %ld", (long) offset);
        MPI(MPI_Type_create_struct(1, lengths, displacements, &inner, &type));
        break;
    case 2:
        say(speller, "@hindexed_block %ld", (long) offset);
        MPI(MPI_Type_create_hindexed_block(1, 1, displacements, inner, &type));
        break;
    case 3:
        /* one element of an array of bytes, each with all of inner behind it */
        sizes[0] = start + 1 + below(speller, 100);
        say(speller, "@subarray %d/%d", start, sizes[0]);
        MPI(MPI_Type_create_resized(inner, 0, 1, &other));
        MPI(MPI_Type_create_subarray(1, sizes, ones, &start, order(speller), other, &type));
        drop(other);
        break;
    default:
        /* the same, as what process offset has of it */
        sizes[0] = start + 1 + below(speller, 100);
        say(speller, "@darray %d/%d", start, sizes[0]);
        MPI(MPI_Type_create_resized(inner, 0, 1, &other));
        MPI(MPI_Type_create_darray(sizes[0], start, 1, sizes, &distribution, ones, sizes,
                                   order(speller), other, &type));
        drop(other);
        break;
    }
    drop(inner);
    return type;
}

static MPI_Datatype pieces(speller_t *speller, const piece_t *list, int n)
{
    int lengths[MAX_PIECES], half, i;
    MPI_Aint displacements[MAX_PIECES];
    MPI_Datatype types[MAX_PIECES], type;

    if (1 == n) {
        return place(speller, block(speller, list[0].length, 3), list[0].offset);
    }
    for (i = 0; i < n; ++i) {
        displacements[i] = list[i].offset;
        lengths[i] = list[i].length;
    }
    switch (below(speller, 3)) {
    case 0:
        say(speller, "hindexed(%d)", n);
        MPI(MPI_Type_create_hindexed(n, lengths, displacements, MPI_BYTE, &type));
        break;
    case 1:
        say(speller, "struct(");
        for (i = 0; i < n; ++i) {
            say(speller, "%s%d:", 0 == i ? "" : " ", i);
            types[i] = block(speller, lengths[i], 1);
            lengths[i] = 1;
        }
        say(speller, ")");
        MPI(MPI_Type_create_struct(n, lengths, displacements, types, &type));
        for (i = 0; i < n; ++i) {
            drop(types[i]);
        }
        break;
    default:
        half = 1 + below(speller, n - 1);
        say(speller, "{");
        types[0] = pieces(speller, list, half);
        say(speller, "}+{");
        types[1] = pieces(speller, list + half, n - half);
        say(speller, "}");
        lengths[0] = 1;
        lengths[1] = 1;
        displacements[0] = 0;
        displacements[1] = 0;
        MPI(MPI_Type_create_struct(2, lengths, displacements, types, &type));
        drop(types[0]);
        drop(types[1]);
        break;
    }
    return type;
}

/* ---------------------------------------------------------------------------------------------
 * Loops
 * ------------------------------------------------------------------------------------------- */

/* The first column of a matrix: n elements, one in each row of stride bytes. Consumes other. */
static MPI_Datatype column(speller_t *speller, MPI_Datatype other, int n, int columns)
{
    const int distribution = MPI_DISTRIBUTE_CYCLIC, one = 1, rows = n + below(speller, 3);
    int sizes[3] = {rows, columns, 1}, subsizes[3] = {n, 1, 1}, starts[3] = {0, 0, 0}, cells, d, i;
    MPI_Datatype type;

    switch (below(speller, 4)) {
    case 0:
        say(speller, ",subarray_C(%d/%d 1/%d)", n, rows, columns);
        MPI(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, other, &type));
        break;
    case 1:
        say(speller, ",subarray_F(1/%d %d/%d)", columns, n, rows);
        for (i = 0; i < 2; ++i) {
            sizes[i] = 0 == i ? columns : rows;
            subsizes[i] = 0 == i ? 1 : n;
        }
        MPI(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, other, &type));
        break;
    case 2:
        d = divisor(speller, n);
        say(speller, ",subarray_C(%d/%d %d/%d 1/%d)", n / d, n / d, d, d, columns);
        sizes[0] = subsizes[0] = n / d;
        sizes[1] = subsizes[1] = d;
        sizes[2] = columns;
        MPI(MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, other, &type));
        break;
    default:
        /* what the first of so many processes has, if they take turns */
        cells = n * columns;
        say(speller, ",darray(%d over %d)", cells, columns);
        MPI(MPI_Type_create_darray(columns, 0, 1, &cells, &distribution, &one, &columns,
                                   order(speller), other, &type));
        break;
    }
    drop(other);
    return type;
}

/* Consumes inner. */
static MPI_Datatype stream(speller_t *speller, MPI_Datatype inner, int n, MPI_Aint stride,
                           int depth)
{
    MPI_Datatype type, other, types[2];
    MPI_Aint displacements[1024];
    int lengths[1024], indices[1024], d, i;

    if (1 == n) {
        return inner;
    }
    if (0 < stride && 0 == below(speller, 5)) {
        d = 0 == stride % 8 ? 8 : 1;
        say(speller, ",resized(%d)", d);
        MPI(MPI_Type_create_resized(inner, 0, d, &other));
        drop(inner);
        return column(speller, other, n, (int) (stride / d));
    }
    switch (below(speller, 0 < depth ? 8 : 6)) {
    case 0:
        say(speller, ",hvector(%d %ld)", n, (long) stride);
        MPI(MPI_Type_create_hvector(n, 1, stride, inner, &type));
        break;
    case 1:
        say(speller, ",hindexed_block(%d %ld)", n, (long) stride);
        for (i = 0; i < n; ++i) {
            displacements[i] = i * stride;
        }
        MPI(MPI_Type_create_hindexed_block(n, 1, displacements, inner, &type));
        break;
    case 2:
        say(speller, ",hindexed(%d %ld)", n, (long) stride);
        for (i = 0; i < n; ++i) {
            displacements[i] = i * stride;
            lengths[i] = 1;
        }
        MPI(MPI_Type_create_hindexed(n, lengths, displacements, inner, &type));
        break;
    case 3:
        /* every repetition its extent behind the one before */
        say(speller, ",resized(%ld),contiguous(%d)", (long) stride, n);
        MPI(MPI_Type_create_resized(inner, 0, stride, &other));
        MPI(MPI_Type_contiguous(n, other, &type));
        drop(other);
        break;
    case 4:
        /* steps of an extent that divides the stride */
        d = 0 == stride % 8 ? 8 : 1;
        say(speller, ",resized(%d),vector(%d %ld)", d, n, (long) stride / d);
        MPI(MPI_Type_create_resized(inner, 0, d, &other));
        MPI(MPI_Type_vector(n, 1, (int) (stride / d), other, &type));
        drop(other);
        break;
    case 5:
        d = 0 == stride % 4 ? 4 : 1;
        say(speller, ",resized(%d),indexed_block(%d %ld)", d, n, (long) stride / d);
        MPI(MPI_Type_create_resized(inner, 0, d, &other));
        for (i = 0; i < n; ++i) {
            indices[i] = i * (int) (stride / d);
        }
        MPI(MPI_Type_create_indexed_block(n, 1, indices, other, &type));
        drop(other);
        break;
    case 6:
        /* a stream of streams */
        d = divisor(speller, n);
        MPI(MPI_Type_dup(inner, &other));
        type = stream(speller, stream(speller, other, d, stride, depth - 1), n / d, d * stride,
                      depth - 1);
        break;
    default:
        /* one stream and then another */
        d = 1 + below(speller, n - 1);
        say(speller, ",[");
        MPI(MPI_Type_dup(inner, &other));
        types[0] = stream(speller, other, d, stride, depth - 1);
        say(speller, "]+[");
        MPI(MPI_Type_dup(inner, &other));
        types[1] = stream(speller, other, n - d, stride, depth - 1);
        say(speller, "]");
        lengths[0] = 1;
        lengths[1] = 1;
        displacements[0] = 0;
        displacements[1] = d * stride;
        MPI(MPI_Type_create_struct(2, lengths, displacements, types, &type));
        drop(types[0]);
        drop(types[1]);
        break;
    }
    drop(inner);
    return type;
}

const char *spellings_name(int layout)
{
    return layouts[layout].name;
}

void spellings_draw(typegen_rng_t *rng, int layout, spelling_t *spelling)
{
    const layout_t *layout_of = &layouts[layout];
    speller_t speller = {rng, spelling};
    MPI_Datatype type, other;
    int i, d;

    spelling->text[0] = '\0';
    spelling->count = 1;
    type = pieces(&speller, layout_of->pieces, layout_of->piece_count);
    for (i = layout_of->loop_count - 1; i >= 0; --i) {
        MPI_Aint stride = layout_of->loops[i].stride;
        int n = layout_of->loops[i].count;

        if (0 == i && 0 == below(&speller, 3)) {
            /* some of the outermost loop as the count */
            d = divisor(&speller, n);
            type = stream(&speller, type, d, stride, 1);
            spelling->count = n / d;
            say(&speller, ",resized(%ld) x %d", (long) (d * stride), spelling->count);
            MPI(MPI_Type_create_resized(type, 0, d * stride, &other));
            drop(type);
            type = other;
        } else {
            type = stream(&speller, type, n, stride, 2);
        }
    }
    if (1 == layout_of->piece_count && 0 == layout_of->loop_count
        && 0 == layout_of->pieces[0].offset && 0 == below(&speller, 3)) {
        d = divisor(&speller, layout_of->pieces[0].length);
        drop(type);
        spelling->text[0] = '\0';
        type = block(&speller, layout_of->pieces[0].length / d, 2);
        spelling->count = d;
        say(&speller, " x %d", d);
        if (extent_of(type) != layout_of->pieces[0].length / d) {
            fprintf(stderr, "spellings: a block with gaps: %s\n", spelling->text);
            abort();
        }
    }
    MPI(MPI_Type_commit(&type));
    spelling->type = type;
}
