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
 * Unpacking with an operation, on random datatypes, elements, operations and ranges, against
 * MPI_Reduce_local on the packed bytes: every byte of memory is compared, gaps and guards included.
 * Datatypes are nests of the element, nests of all sorts of basic types, and nests of bytes, whose
 * blocks split elements. What MPI leaves open (not-a-numbers, the sign of zeros, any byte as a
 * bool) is tried against what the header says.
 *
 *     random_ops [count [seed]]      case i has seed + i, so "random_ops 1 S" replays one
 */

#include <complex.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache_op.h"
#include "test/common/typegen.h"

#if !defined(DEFAULT_COUNT)
#define DEFAULT_COUNT 2500 /* 7500 with "test/run --all" */
#endif
#define DEFAULT_SEED 20261121
#define MAX_FAILURES 10
#define GUARD        64

static int failures;
static uint64_t current_seed;
static char current_case[700];
static typegen_rng_t dice;

#define CHECK(CONDITION, ...)                                                         \
    do {                                                                              \
        if (!(CONDITION)) {                                                           \
            fprintf(stderr, "FAILED: random_ops 1 %" PRIu64 ": %s\n    case: %s\n  ", \
                    current_seed, #CONDITION, current_case);                          \
            fprintf(stderr, "  " __VA_ARGS__);                                        \
            fprintf(stderr, "\n");                                                    \
            ++failures;                                                               \
            return false;                                                             \
        }                                                                             \
    } while (0)

static const struct {
    const char *name;
    MPI_Op op;
} ops[OPAL_IOV_CACHE_OP_COUNT] = {
    [OPAL_IOV_CACHE_REPLACE] = {"replace", MPI_REPLACE},
    [OPAL_IOV_CACHE_SUM] = {"sum", MPI_SUM},
    [OPAL_IOV_CACHE_PROD] = {"prod", MPI_PROD},
    [OPAL_IOV_CACHE_MIN] = {"min", MPI_MIN},
    [OPAL_IOV_CACHE_MAX] = {"max", MPI_MAX},
    [OPAL_IOV_CACHE_LAND] = {"land", MPI_LAND},
    [OPAL_IOV_CACHE_LOR] = {"lor", MPI_LOR},
    [OPAL_IOV_CACHE_LXOR] = {"lxor", MPI_LXOR},
    [OPAL_IOV_CACHE_BAND] = {"band", MPI_BAND},
    [OPAL_IOV_CACHE_BOR] = {"bor", MPI_BOR},
    [OPAL_IOV_CACHE_BXOR] = {"bxor", MPI_BXOR},
};

static const struct {
    const char *name;
    MPI_Datatype type;
} elements[OPAL_IOV_CACHE_ELEMENT_COUNT] = {
    [OPAL_IOV_CACHE_BYTE] = {"byte", MPI_BYTE},
    [OPAL_IOV_CACHE_BOOL] = {"bool", MPI_C_BOOL},
    [OPAL_IOV_CACHE_INT8] = {"int8", MPI_INT8_T},
    [OPAL_IOV_CACHE_UINT8] = {"uint8", MPI_UINT8_T},
    [OPAL_IOV_CACHE_INT16] = {"int16", MPI_INT16_T},
    [OPAL_IOV_CACHE_UINT16] = {"uint16", MPI_UINT16_T},
    [OPAL_IOV_CACHE_INT32] = {"int32", MPI_INT32_T},
    [OPAL_IOV_CACHE_UINT32] = {"uint32", MPI_UINT32_T},
    [OPAL_IOV_CACHE_INT64] = {"int64", MPI_INT64_T},
    [OPAL_IOV_CACHE_UINT64] = {"uint64", MPI_UINT64_T},
    [OPAL_IOV_CACHE_FLOAT] = {"float", MPI_FLOAT},
    [OPAL_IOV_CACHE_DOUBLE] = {"double", MPI_DOUBLE},
    [OPAL_IOV_CACHE_LONG_DOUBLE] = {"long double", MPI_LONG_DOUBLE},
    [OPAL_IOV_CACHE_FLOAT_COMPLEX] = {"float complex", MPI_C_FLOAT_COMPLEX},
    [OPAL_IOV_CACHE_DOUBLE_COMPLEX] = {"double complex", MPI_C_DOUBLE_COMPLEX},
    [OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX] = {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX},
};

/* ---------------------------------------------------------------------------------------------
 * Values
 * ------------------------------------------------------------------------------------------- */

/* Sums and products of these are rounded once, and no zero has a sign. */
static double draw_real(void)
{
    double value = (double) typegen_below(&dice, 1000000) - 500000;

    return ldexp(value, (int) typegen_below(&dice, 21) - 10);
}

/* For complex numbers: all that a product computes is exact, in float as well. */
static double draw_small(void)
{
    double value = 1 + (double) typegen_below(&dice, 50);

    return typegen_once_in(&dice, 2) ? value : -value;
}

static void draw_element(opal_iov_cache_element_t element, void *to)
{
    uint64_t bits = typegen_next(&dice);

    switch (element) {
    case OPAL_IOV_CACHE_BOOL:
        *(bool *) to = 0 == bits % 2;
        break;
    case OPAL_IOV_CACHE_FLOAT:
        *(float *) to = (float) draw_real();
        break;
    case OPAL_IOV_CACHE_DOUBLE:
        *(double *) to = draw_real();
        break;
    case OPAL_IOV_CACHE_LONG_DOUBLE:
        *(long double *) to = draw_real();
        break;
    case OPAL_IOV_CACHE_FLOAT_COMPLEX:
        *(float complex *) to = (float) draw_small() + (float) draw_small() * I;
        break;
    case OPAL_IOV_CACHE_DOUBLE_COMPLEX:
        *(double complex *) to = draw_small() + draw_small() * I;
        break;
    case OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX:
        *(long double complex *) to = draw_small() + draw_small() * I;
        break;
    default: /* integers of all sizes: anything, and what is small */
        if (typegen_once_in(&dice, 3)) {
            bits = bits % 4 - 1;
        }
        memcpy(to, &bits, opal_iov_cache_element_size(element));
        break;
    }
}

/* @p bytes of elements, and of anything behind the last whole one */
static char *draw_stream(opal_iov_cache_element_t element, uint64_t bytes)
{
    uint64_t size = opal_iov_cache_element_size(element), i;
    char *stream = calloc(1, bytes + size);

    for (i = 0; i < bytes; i += size) {
        draw_element(element, stream + i);
    }
    return stream;
}

/* ---------------------------------------------------------------------------------------------
 * Types
 * ------------------------------------------------------------------------------------------- */

/* One constructor above @p inner; no byte twice, but gaps that leave nothing aligned. */
static MPI_Datatype draw_constructor(MPI_Datatype inner, int most, char *text, size_t room)
{
    int n = 1 + (int) typegen_below(&dice, (uint64_t) most), i, length;
    int blocks = 1 + (int) typegen_below(&dice, 3), lengths[8], places[8];
    int sizes[3], part[3], starts[3];
    MPI_Aint lb, extent, stride;
    MPI_Datatype type;

    MPI_Type_get_extent(inner, &lb, &extent);
    switch (typegen_below(&dice, 6)) {
    case 0:
        MPI_Type_contiguous(n, inner, &type);
        snprintf(text, room, "contiguous(%d) ", n);
        break;
    case 1:
        length = blocks + (int) typegen_below(&dice, 4);
        MPI_Type_vector(n, blocks, typegen_once_in(&dice, 3) ? -length : length, inner, &type);
        snprintf(text, room, "vector(%d, %d, +-%d) ", n, blocks, length);
        break;
    case 2:
        stride = blocks * extent + (MPI_Aint) typegen_below(&dice, 2) * 5;
        MPI_Type_create_hvector(n, blocks, stride, inner, &type);
        snprintf(text, room, "hvector(%d, %d, %ld) ", n, blocks, (long) stride);
        break;
    case 3:
        n = n < 8 ? n : 8;
        for (i = 0, length = 0; i < n; ++i) {
            lengths[i] = (int) typegen_below(&dice, 4);
            places[i] = length + (int) typegen_below(&dice, 4);
            length = places[i] + lengths[i];
        }
        MPI_Type_indexed(n, lengths, places, inner, &type);
        snprintf(text, room, "indexed(%d) ", n);
        break;
    case 4:
        for (i = 0; i < 3; ++i) {
            part[i] = 1 + (int) typegen_below(&dice, 4);
            starts[i] = (int) typegen_below(&dice, 3);
            sizes[i] = starts[i] + part[i] + (int) typegen_below(&dice, 3);
        }
        MPI_Type_create_subarray(3, sizes, part, starts, MPI_ORDER_C, inner, &type);
        snprintf(text, room, "subarray(%dx%dx%d) ", part[0], part[1], part[2]);
        break;
    default:
        stride = 1 + (MPI_Aint) typegen_below(&dice, 20);
        MPI_Type_create_resized(inner, lb, extent + stride, &type);
        snprintf(text, room, "resized(+%ld) ", (long) stride);
        break;
    }
    return type;
}

/* The element itself; of a complex one its real part, which comes twice. */
static opal_iov_cache_element_t part_of(opal_iov_cache_element_t element)
{
    return OPAL_IOV_CACHE_FLOAT_COMPLEX > element
               ? element
               : element - OPAL_IOV_CACHE_FLOAT_COMPLEX + OPAL_IOV_CACHE_FLOAT;
}

/* A nest of one element, sometimes with long blocks; some hundred thousand bytes at most. */
static MPI_Datatype draw_nest(opal_iov_cache_element_t element, char *text, size_t room)
{
    int levels = (int) typegen_below(&dice, 5), size;
    int most = typegen_once_in(&dice, 8) ? 400 : 9;
    MPI_Datatype type, outer;

    /* Open MPI 5.0.7 packs complex numbers wrongly, at strides of so many and a half of them */
    MPI_Type_contiguous(part_of(element) == element ? 1 : 2, elements[part_of(element)].type,
                        &type);
    MPI_Type_size(type, &size);
    text[0] = '\0';
    for (; 0 < levels && 4000 > size; --levels) {
        size_t at = strlen(text);

        outer = draw_constructor(type, most, text + at, room - at);
        MPI_Type_free(&type);
        type = outer;
        most = 9;
        MPI_Type_size(type, &size);
    }
    MPI_Type_commit(&type);
    return type;
}

/* ---------------------------------------------------------------------------------------------
 * One case
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    MPI_Datatype type;
    int count;
    opal_iov_cache_form_t *form;
    opal_iov_cache_element_t element;
    opal_iov_cache_op_t op;
    uint64_t size; /* of an element */
    char *memory;  /* as it is before, with the guards */
    size_t bytes;
    char *stream; /* what memory holds, packed */
} case_t;

/* What MPI calls are given for @p memory. */
static void *address(const case_t *with, char *memory)
{
    return (void *) ((uintptr_t) memory + GUARD - (uintptr_t) with->form->lb);
}

static void unpack(const case_t *with, const char *stream, char *memory)
{
    int position = 0;

    MPI_Unpack(stream, (int) with->form->size, &position, address(with, memory), with->count,
               with->type, MPI_COMM_SELF);
}

/* The padding of a long double has no meaning: copy it. MPI may not even move it. */
static void forgive_padding(const case_t *with, char *memory, const char *expected)
{
    const uint64_t size = sizeof(long double), value = 64 == LDBL_MANT_DIG ? 10 : size;
    uint64_t position;

    if (OPAL_IOV_CACHE_LONG_DOUBLE != with->element
        && OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX != with->element) {
        return;
    }
    for (position = 0; position < with->form->size; ++position) {
        if (value <= position % size) {
            int64_t at = opal_iov_cache_form_offset(with->form, position) - with->form->lb + GUARD;

            memory[at] = expected[at];
        }
    }
}

/* @p memory after a range was combined: by us, in parts, against MPI. */
static bool check_range(const case_t *with, uint64_t start, uint64_t length)
{
    unsigned shift = (unsigned) typegen_below(&dice, 16), stream_shift;
    char *memory = malloc(with->bytes + shift), *expected = malloc(with->bytes);
    char *in = draw_stream(with->element, length), *stream, *packed;
    uint64_t done, part;
    int rc;

    packed = malloc(with->form->size);
    memcpy(packed, with->stream, with->form->size);
    if (OPAL_IOV_CACHE_REPLACE == with->op) {
        memcpy(packed + start, in, length);
    } else {
        CHECK(MPI_SUCCESS
                  == MPI_Reduce_local(in, packed + start, (int) (length / with->size),
                                      elements[with->element].type, ops[with->op].op),
              "MPI_Reduce_local");
    }
    memcpy(expected, with->memory, with->bytes);
    unpack(with, packed, expected);

    memcpy(memory + shift, with->memory, with->bytes);
    for (done = 0; done < length; done += part) {
        /* all at once, or a few elements, or many */
        part = (length - done) / with->size;
        if (!typegen_once_in(&dice, 3)) {
            part = 1 + typegen_below(&dice, typegen_once_in(&dice, 2) && 5 < part ? 5 : part);
        }
        part *= with->size;
        stream_shift = (unsigned) typegen_below(&dice, 16);
        stream = malloc(part + stream_shift);
        memcpy(stream + stream_shift, in + done, part);
        rc = opal_iov_cache_form_unpack_op(with->form, address(with, memory + shift), start + done,
                                           part, stream + stream_shift, with->op, with->element);
        free(stream);
        CHECK(OPAL_SUCCESS == rc, "[%" PRIu64 ", + %" PRIu64 ") gave %d", start + done, part, rc);
    }
    forgive_padding(with, memory + shift, expected);
    for (part = 0; part < with->bytes; ++part) {
        CHECK(memory[shift + part] == expected[part],
              "[%" PRIu64 ", + %" PRIu64 "): offset %" PRId64 " is %#x, not %#x", start, length,
              with->form->lb + (int64_t) part - GUARD, memory[shift + part] & 0xff,
              expected[part] & 0xff);
    }
    free(memory);
    free(expected);
    free(in);
    free(packed);
    return true;
}

/* What must be refused, and must change nothing. */
static bool check_refused(const case_t *with)
{
    const opal_iov_cache_form_t *form = with->form;
    uint64_t size = with->size, whole = form->size - form->size % size;
    char *memory = malloc(with->bytes), *stream = calloc(1, whole + 2 * size);
    opal_iov_cache_element_t element;
    int op;

    memcpy(memory, with->memory, with->bytes);
#define REFUSED(CODE, START, LENGTH, OP, ELEMENT)                                                  \
    CHECK((CODE)                                                                                   \
              == opal_iov_cache_form_unpack_op(form, address(with, memory), START, LENGTH, stream, \
                                               OP, ELEMENT),                                       \
          "not refused")
    REFUSED(OPAL_ERR_BAD_PARAM, 0, whole + size, with->op, with->element);
    REFUSED(OPAL_ERR_BAD_PARAM, whole + size, 0, with->op, with->element);
    REFUSED(OPAL_ERR_BAD_PARAM, size, UINT64_MAX - size + 1, with->op, with->element);
    if (1 < size) {
        REFUSED(OPAL_ERR_BAD_PARAM, 0, whole - 1, with->op, with->element);
        REFUSED(OPAL_ERR_BAD_PARAM, 1, size, with->op, with->element);
        REFUSED(OPAL_ERR_BAD_PARAM, size / 2, size / 2, with->op, with->element);
    }
    for (element = 0; element < OPAL_IOV_CACHE_ELEMENT_COUNT; ++element) {
        for (op = 0; op < OPAL_IOV_CACHE_OP_COUNT; ++op) {
            if (!opal_iov_cache_op_is_legal(op, element)) {
                REFUSED(OPAL_ERR_NOT_SUPPORTED, 0, 0, op, element);
                REFUSED(OPAL_ERR_NOT_SUPPORTED, 0, whole, op, element);
            }
        }
    }
    CHECK(0 == memcmp(memory, with->memory, with->bytes), "refused, and written to");
    CHECK(OPAL_SUCCESS
              == opal_iov_cache_form_unpack_op(form, NULL, whole, 0, NULL, with->op, with->element),
          "nothing");
    free(memory);
    free(stream);
    return true;
}

static bool check_memory(case_t *with)
{
    uint64_t n = with->form->size / with->size, start, i;
    bool good;

    with->bytes = (size_t) (with->form->ub - with->form->lb) + 2 * GUARD;
    with->memory = malloc(with->bytes);
    for (i = 0; i < with->bytes; ++i) {
        with->memory[i] = (char) typegen_pattern(current_seed, (int64_t) i);
    }
    with->stream = draw_stream(with->element, with->form->size);
    unpack(with, with->stream, with->memory);
    good = check_range(with, 0, n * with->size);
    for (i = 0; i < 2; ++i) {
        start = typegen_below(&dice, n);
        good = good
               && check_range(with, start * with->size,
                              (1 + typegen_below(&dice, n - start)) * with->size);
    }
    good = good && (!typegen_once_in(&dice, 8) || check_refused(with));
    free(with->memory);
    free(with->stream);
    return good;
}

static bool check_case(uint64_t seed, uint64_t *combined)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_side_t side = {0};
    case_t with = {0};
    char text[512];
    bool good = true, nest;

    current_seed = seed;
    typegen_seed(&dice, seed);
    with.element = (opal_iov_cache_element_t) typegen_below(&dice, OPAL_IOV_CACHE_ELEMENT_COUNT);
    do {
        with.op = (opal_iov_cache_op_t) typegen_below(&dice, OPAL_IOV_CACHE_OP_COUNT);
    } while (!opal_iov_cache_op_is_legal(with.op, with.element));
    with.size = opal_iov_cache_element_size(with.element);

    nest = typegen_once_in(&dice, 2);
    if (nest) {
        with.type = draw_nest(with.element, text, sizeof(text));
        with.count = 1 + (int) typegen_below(&dice, 4);
    } else {
        options.max_depth = 1 + (int) typegen_below(&dice, 5);
        options.max_elements = typegen_once_in(&dice, 20) ? 6000 : 300;
        options.max_span = 64 * 1024;
        options.bytes_only = typegen_once_in(&dice, 2);
        typegen_random(&dice, &options, &side);
        with.type = side.type;
        with.count = side.count;
    }
    snprintf(current_case, sizeof(current_case), "%s of %s, %d of %s", ops[with.op].name,
             elements[with.element].name, with.count, nest ? text : side.description);
    CHECK(OPAL_SUCCESS
              == opal_iov_cache_form_create(opal_type(with.type), (size_t) with.count, &with.form),
          "form");
    if (nest && 0 < with.form->size) {
        opal_iov_cache_element_t element, expected = part_of(with.element);

        expected = OPAL_IOV_CACHE_BYTE == expected ? OPAL_IOV_CACHE_UINT8 : expected;
        CHECK(OPAL_SUCCESS == opal_iov_cache_element_of(opal_type(with.type), &element)
                  && element == expected,
              "element_of");
    }
    if (with.size <= with.form->size) {
        good = check_memory(&with);
        *combined += with.form->size;
    }
    opal_iov_cache_form_free(with.form);
    if (nest) {
        MPI_Type_free(&with.type);
    } else {
        typegen_side_free(&side);
    }
    return good;
}

/* ---------------------------------------------------------------------------------------------
 * What is not random
 * ------------------------------------------------------------------------------------------- */

/*
 * Pairs are legal where MPI_Reduce_local takes them, but for MPI_BYTE, of which it takes
 * everything, and the standard only what is bitwise. Replacing is always legal.
 */
static bool check_legal(void)
{
    opal_iov_cache_element_t element, found = OPAL_IOV_CACHE_ELEMENT_COUNT;
    const int ones[2] = {1, 1};
    const MPI_Aint places[2] = {0, 8};
    const MPI_Datatype members[2] = {MPI_INT, MPI_FLOAT};
    MPI_Datatype mixed;
    int op;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (element = 0; element < OPAL_IOV_CACHE_ELEMENT_COUNT; ++element) {
        int size;

        MPI_Type_size(elements[element].type, &size);
        CHECK((size_t) size == opal_iov_cache_element_size(element), "%s", elements[element].name);
        CHECK(OPAL_SUCCESS == opal_iov_cache_element_of(opal_type(elements[element].type), &found)
                  && found == (OPAL_IOV_CACHE_BYTE == element ? OPAL_IOV_CACHE_UINT8 : element),
              "%s is %d", elements[element].name, found);
        CHECK(opal_iov_cache_op_is_legal(OPAL_IOV_CACHE_REPLACE, element), "replace");
        CHECK(!opal_iov_cache_op_is_legal(OPAL_IOV_CACHE_OP_COUNT, element), "no such operation");
        for (op = OPAL_IOV_CACHE_REPLACE + 1; op < OPAL_IOV_CACHE_OP_COUNT; ++op) {
            long double in[2] = {0, 0}, inout[2] = {0, 0};
            int rc = MPI_Reduce_local(in, inout, 1, elements[element].type, ops[op].op);
            bool legal =
                OPAL_IOV_CACHE_BYTE == element ? OPAL_IOV_CACHE_BAND <= op : MPI_SUCCESS == rc;

            CHECK(legal == opal_iov_cache_op_is_legal(op, element), "%s of %s: MPI says %d",
                  ops[op].name, elements[element].name, rc);
        }
    }
    CHECK(!opal_iov_cache_op_is_legal(OPAL_IOV_CACHE_SUM, OPAL_IOV_CACHE_ELEMENT_COUNT)
              && !opal_iov_cache_op_is_legal((opal_iov_cache_op_t) -1, OPAL_IOV_CACHE_INT32)
              && !opal_iov_cache_op_is_legal(OPAL_IOV_CACHE_SUM, (opal_iov_cache_element_t) -1)
              && 0 == opal_iov_cache_element_size(OPAL_IOV_CACHE_ELEMENT_COUNT),
          "neither element nor operation");

    MPI_Type_create_struct(2, ones, places, members, &mixed);
    CHECK(OPAL_ERR_NOT_SUPPORTED == opal_iov_cache_element_of(opal_type(mixed), &found), "mixed");
    MPI_Type_free(&mixed);
    MPI_Type_contiguous(0, MPI_INT, &mixed);
    CHECK(OPAL_ERR_NOT_SUPPORTED == opal_iov_cache_element_of(opal_type(mixed), &found), "empty");
    MPI_Type_free(&mixed);
    CHECK(OPAL_ERR_NOT_SUPPORTED == opal_iov_cache_element_of(opal_type(MPI_WCHAR), &found),
          "MPI_WCHAR");
    CHECK(OPAL_SUCCESS == opal_iov_cache_element_of(opal_type(MPI_LONG), &found)
              && OPAL_IOV_CACHE_INT64 == found,
          "MPI_LONG");
    CHECK(OPAL_SUCCESS == opal_iov_cache_element_of(opal_type(MPI_UNSIGNED_LONG), &found)
              && OPAL_IOV_CACHE_UINT64 == found,
          "MPI_UNSIGNED_LONG");
    return true;
}

#define PLACES 100

/* Some blocks of one element and a long one, so that each loop has its turn. */
static opal_iov_cache_form_t *form_of_places(uint64_t size)
{
    opal_iov_cache_iov_t pieces[PLACES / 2 + 1];
    opal_iov_cache_form_t *form = NULL;
    size_t i;

    for (i = 0; i < PLACES / 2; ++i) {
        pieces[i].offset = (int64_t) (2 * i * size);
        pieces[i].length = size;
    }
    pieces[i].offset = (int64_t) (PLACES * size);
    pieces[i].length = PLACES / 2 * size;
    opal_iov_cache_form_of_pieces(pieces, i + 1, &form);
    return form;
}

/* Where is the place of element @p i in memory? */
static size_t place(size_t i)
{
    return i < PLACES / 2 ? 2 * i : PLACES / 2 + i;
}

/* NaNs, infinities and zeros of either sign, each with each. */
#define CHECK_SPECIAL(TYPE, ELEMENT)                                                            \
    do {                                                                                        \
        const TYPE special[5] = {(TYPE) NAN, (TYPE) INFINITY, (TYPE) -INFINITY, (TYPE) 0.0,     \
                                 (TYPE) -0.0};                                                  \
        opal_iov_cache_form_t *form = form_of_places(sizeof(TYPE));                             \
        TYPE memory[2 * PLACES], stream[PLACES];                                                \
        opal_iov_cache_op_t op;                                                                 \
        size_t i;                                                                               \
                                                                                                \
        for (op = OPAL_IOV_CACHE_MIN; op <= OPAL_IOV_CACHE_MAX; ++op) {                         \
            for (i = 0; i < PLACES; ++i) {                                                      \
                memory[place(i)] = special[i % 5];                                              \
                stream[i] = special[i / 5 % 5];                                                 \
            }                                                                                   \
            CHECK(OPAL_SUCCESS                                                                  \
                      == opal_iov_cache_form_unpack_op(form, memory, 0, sizeof(stream), stream, \
                                                       op, ELEMENT),                            \
                  #TYPE);                                                                       \
            for (i = 0; i < PLACES; ++i) {                                                      \
                TYPE m = special[i % 5], s = special[i / 5 % 5], got = memory[place(i)];        \
                                                                                                \
                m = (OPAL_IOV_CACHE_MIN == op ? s < m : s > m) ? s : m;                         \
                CHECK(isnan(m) ? isnan(got) : m == got && signbit(m) == signbit(got),           \
                      #TYPE " %s, pair %zu: %g", ops[op].name, i, (double) got);                \
            }                                                                                   \
        }                                                                                       \
        opal_iov_cache_form_free(form);                                                         \
    } while (0)

static bool check_specials(void)
{
    CHECK_SPECIAL(float, OPAL_IOV_CACHE_FLOAT);
    CHECK_SPECIAL(double, OPAL_IOV_CACHE_DOUBLE);
    CHECK_SPECIAL(long double, OPAL_IOV_CACHE_LONG_DOUBLE);
    return true;
}

/* Anything but 0 is true: of a bool as of an integer whose only bit is the highest. */
static bool check_truths(void)
{
    const unsigned char special[5] = {0, 1, 2, 0x80, 0xff};
    opal_iov_cache_form_t *form = form_of_places(1);
    unsigned char memory[2 * PLACES], stream[PLACES];
    opal_iov_cache_op_t op;
    size_t i;

    for (op = OPAL_IOV_CACHE_LAND; op <= OPAL_IOV_CACHE_LXOR; ++op) {
        for (i = 0; i < PLACES; ++i) {
            memory[place(i)] = special[i % 5];
            stream[i] = special[i / 5 % 5];
        }
        CHECK(OPAL_SUCCESS
                  == opal_iov_cache_form_unpack_op(form, memory, 0, PLACES, stream, op,
                                                   OPAL_IOV_CACHE_BOOL),
              "bool");
        for (i = 0; i < PLACES; ++i) {
            bool m = 0 != special[i % 5], s = 0 != special[i / 5 % 5];

            m = OPAL_IOV_CACHE_LAND == op ? m && s : OPAL_IOV_CACHE_LOR == op ? m || s : m != s;
            CHECK(m == memory[place(i)], "%s, pair %zu: %d", ops[op].name, i, memory[place(i)]);
        }
    }
    opal_iov_cache_form_free(form);
    return true;
}

int main(int argc, char **argv)
{
    const uint64_t usual = NULL != getenv("UMRDDT_TEST_ALL") ? 3 * DEFAULT_COUNT : DEFAULT_COUNT;
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 0) : usual;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED, combined = 0, i;

    /* op/avx of Open MPI 4.1 saturates sums of short integers */
    setenv("OMPI_MCA_op", "^avx", 1);
    singleton_init(MPI_THREAD_SINGLE);
    printf("random_ops: %" PRIu64 " cases from seed %" PRIu64 "\n", count, seed);
    check_legal();
    check_specials();
    check_truths();
    for (i = 0; i < count && failures < MAX_FAILURES; ++i) {
        check_case(seed + i, &combined);
    }
    if (singleton_leaks()) {
        ++failures;
    }
    printf("random_ops: %" PRIu64 " cases, %" PRIu64 " bytes of data, %d failures\n", i, combined,
           failures);
    MPI_Finalize();
    return 0 == failures && 0 < combined ? 0 : 1;
}
