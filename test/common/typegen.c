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

#include "typegen.h"

#define MAX_BLOCKS    24 /* blocks drawn one by one (indexed, struct); vectors may have more */
#define MAX_UNIT      4  /* basic types in the repeating part of a signature */
#define MAX_DEPTH     8
#define NODE_ATTEMPTS 6 /* draws of one constructor before the one that always works */
#define TEXT          512

/* Types whose bytes are contiguous; MPI_DOUBLE_INT has a larger extent than size all the same. */
enum {
    BASIC_BYTE,
    BASIC_CHAR,
    BASIC_SHORT,
    BASIC_INT,
    BASIC_FLOAT,
    BASIC_DOUBLE,
    BASIC_LONG_LONG,
    BASIC_2INT,
    BASIC_DOUBLE_INT,
    BASIC_COUNT
};

/* The repeating part of a signature. */
typedef struct {
    int count;
    uint32_t basics[MAX_UNIT];
} unit_t;

/* A type under construction and its model. */
typedef struct {
    MPI_Datatype type;
    bool owned; /* not predefined: to be freed */
    int64_t extent;
    int64_t low; /* of the model; both 0 if it is empty */
    int64_t high;
    size_t element_count;
    size_t capacity;
    typegen_element_t *elements;
    char text[TEXT];
} node_t;

typedef struct {
    typegen_rng_t *rng;
    const typegen_options_t *options;
    const unit_t *unit;
    bool receivable;
} context_t;

#define MPI(CALL)                                                                 \
    do {                                                                          \
        int mpi_rc_ = (CALL);                                                     \
        if (MPI_SUCCESS != mpi_rc_) {                                             \
            fprintf(stderr, "typegen: %s failed with code %d\n", #CALL, mpi_rc_); \
            abort();                                                              \
        }                                                                         \
    } while (0)

static void *must_alloc(size_t bytes)
{
    void *memory = malloc(0 == bytes ? 1 : bytes);

    if (NULL == memory) {
        fprintf(stderr, "typegen: no memory for %zu bytes\n", bytes);
        abort();
    }
    return memory;
}

/* ---------------------------------------------------------------------------------------------
 * Random numbers
 * ------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void typegen_seed(typegen_rng_t *rng, uint64_t seed)
{
    /* Mixed, or the sequences of successive seeds would be one sequence shifted. */
    rng->state = mix(seed + UINT64_C(0x5851f42d4c957f2d));
}

uint64_t typegen_next(typegen_rng_t *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(rng->state);
}

uint64_t typegen_below(typegen_rng_t *rng, uint64_t bound)
{
    return 0 == bound ? 0 : typegen_next(rng) % bound;
}

bool typegen_once_in(typegen_rng_t *rng, uint64_t n)
{
    return 0 == typegen_below(rng, n);
}

/* lowest .. highest, both possible */
static int64_t between(typegen_rng_t *rng, int64_t lowest, int64_t highest)
{
    return lowest >= highest
               ? lowest
               : lowest + (int64_t) typegen_below(rng, (uint64_t) (highest - lowest) + 1);
}

static void shuffle(typegen_rng_t *rng, int *order, int count)
{
    int i;

    for (i = count - 1; i > 0; --i) {
        int other = (int) typegen_below(rng, (uint64_t) i + 1);
        int kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
}

/* Mostly none or aligned, sometimes odd. */
static int64_t draw_gap(typegen_rng_t *rng)
{
    switch (typegen_below(rng, 4)) {
    case 0:
        return 0;
    case 1:
        return between(rng, 1, 40);
    default:
        return 8 * between(rng, 0, 8);
    }
}

/* A divisor of n, any with a fair chance. */
static size_t draw_divisor(typegen_rng_t *rng, size_t n)
{
    size_t divisors[256];
    size_t count = 0, d;

    for (d = 1; d * d <= n && count + 2 <= 256; ++d) {
        if (0 == n % d) {
            divisors[count++] = d;
            if (d * d != n) {
                divisors[count++] = n / d;
            }
        }
    }
    return divisors[typegen_below(rng, count)];
}

/* ---------------------------------------------------------------------------------------------
 * The model
 * ------------------------------------------------------------------------------------------- */

static MPI_Datatype basic_type(uint32_t basic)
{
    switch (basic) {
    case BASIC_BYTE:
        return MPI_BYTE;
    case BASIC_CHAR:
        return MPI_CHAR;
    case BASIC_SHORT:
        return MPI_SHORT;
    case BASIC_INT:
        return MPI_INT;
    case BASIC_FLOAT:
        return MPI_FLOAT;
    case BASIC_DOUBLE:
        return MPI_DOUBLE;
    case BASIC_LONG_LONG:
        return MPI_LONG_LONG;
    case BASIC_2INT:
        return MPI_2INT;
    default:
        return MPI_DOUBLE_INT;
    }
}

static const char *basic_name(uint32_t basic)
{
    static const char *const names[BASIC_COUNT] = {
        "BYTE", "CHAR", "SHORT", "INT", "FLOAT", "DOUBLE", "LONG_LONG", "2INT", "DOUBLE_INT"};

    return names[basic];
}

static uint32_t basic_size(uint32_t basic)
{
    static const uint32_t sizes[BASIC_COUNT] = {1,
                                                sizeof(char),
                                                sizeof(short),
                                                sizeof(int),
                                                sizeof(float),
                                                sizeof(double),
                                                sizeof(long long),
                                                2 * sizeof(int),
                                                sizeof(double) + sizeof(int)};

    return sizes[basic];
}

static void say(node_t *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(node_t *node, const char *format, ...)
{
    size_t used = strlen(node->text);
    va_list arguments;

    va_start(arguments, format);
    if (used + 1 < TEXT
        && vsnprintf(node->text + used, TEXT - used, format, arguments) >= (int) (TEXT - used)) {
        memcpy(node->text + TEXT - 4, "...", 4);
    }
    va_end(arguments);
}

static void node_init(node_t *node)
{
    memset(node, 0, sizeof(*node));
    node->type = MPI_DATATYPE_NULL;
}

static void node_free(node_t *node)
{
    if (node->owned) {
        MPI(MPI_Type_free(&node->type));
    }
    free(node->elements);
    node_init(node);
}

static void model_add(node_t *node, int64_t offset, uint32_t length, uint32_t basic)
{
    if (node->element_count == node->capacity) {
        node->capacity = 0 == node->capacity ? 16 : 2 * node->capacity;
        node->elements = realloc(node->elements, node->capacity * sizeof(*node->elements));
        if (NULL == node->elements) {
            fprintf(stderr, "typegen: no memory for %zu elements\n", node->capacity);
            abort();
        }
    }
    if (0 == node->element_count || offset < node->low) {
        node->low = offset;
    }
    if (0 == node->element_count || offset + length > node->high) {
        node->high = offset + length;
    }
    node->elements[node->element_count].offset = offset;
    node->elements[node->element_count].length = length;
    node->elements[node->element_count].basic = basic;
    ++node->element_count;
}

/* block_length copies of inner, one extent apart, the first at displacement. */
static void model_block(node_t *node, const node_t *inner, int64_t displacement,
                        int64_t block_length)
{
    int64_t i;
    size_t e;

    for (i = 0; i < block_length; ++i) {
        for (e = 0; e < inner->element_count; ++e) {
            model_add(node, displacement + i * inner->extent + inner->elements[e].offset,
                      inner->elements[e].length, inner->elements[e].basic);
        }
    }
}

static int compare_elements(const void *a, const void *b)
{
    const typegen_element_t *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool model_overlaps(const typegen_element_t *elements, size_t count)
{
    typegen_element_t *sorted = must_alloc(count * sizeof(*sorted));
    bool overlaps = false;
    size_t i;

    if (0 < count) {
        memcpy(sorted, elements, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_elements);
    }
    for (i = 1; i < count && !overlaps; ++i) {
        overlaps = sorted[i - 1].offset + sorted[i - 1].length > sorted[i].offset;
    }
    free(sorted);
    return overlaps;
}

static void node_made(node_t *node)
{
    MPI_Aint lb, extent;

    /* The extent is asked of the library: the padding of structs is its own choice. */
    MPI(MPI_Type_get_extent(node->type, &lb, &extent));
    node->extent = (int64_t) extent;
    node->owned = true;
}

/* ---------------------------------------------------------------------------------------------
 * Constructors: each lays `blocks` copies of inner somewhere
 * ------------------------------------------------------------------------------------------- */

static int64_t footprint(const node_t *inner, int64_t block_length)
{
    if (0 >= block_length) {
        return 0;
    }
    return inner->high - inner->low + (block_length - 1) * llabs(inner->extent);
}

/*
 * Displacements in bytes for `count` blocks of the given lengths, in some order of memory, disjoint
 * if the extent of inner is not smaller than its own footprint. With step > 0, multiples of step.
 */
static void draw_places(const context_t *context, const node_t *inner, const int *lengths,
                        int count, int64_t step, int64_t *places)
{
    typegen_rng_t *rng = context->rng;
    int order[MAX_BLOCKS], i;
    int64_t cursor = typegen_once_in(rng, 3) ? between(rng, -300, 300) : inner->low;
    uint64_t way = typegen_below(rng, 4);
    int64_t even_gap = draw_gap(rng);
    bool even = typegen_once_in(rng, 2);

    for (i = 0; i < count; ++i) {
        order[i] = 1 == way ? count - 1 - i : i;
    }
    if (2 == way) {
        shuffle(rng, order, count);
    }
    for (i = 0; i < count; ++i) {
        int block = order[i];
        int64_t place = cursor - inner->low;

        if (0 < step) {
            /* round up */
            place = place >= 0 ? (place + step - 1) / step * step : -(-place / step) * step;
        }
        places[block] = place;
        if (0 < lengths[block]) {
            cursor = place + inner->low + footprint(inner, lengths[block])
                     + (even ? even_gap : draw_gap(rng));
        }
    }
    if (!context->receivable && 0 < count && typegen_once_in(rng, 4)) {
        places[typegen_below(rng, (uint64_t) count)] = places[0];
    }
}

/* blocks = sum of the lengths; some of them 0 */
static int draw_lengths(const context_t *context, size_t blocks, int *lengths)
{
    typegen_rng_t *rng = context->rng;
    int count = (int) between(rng, 1, MAX_BLOCKS), i;

    for (i = 0; i < count; ++i) {
        size_t part = 0;

        if (i == count - 1) {
            part = blocks;
        } else if (!typegen_once_in(rng, 5)) {
            part = (size_t) typegen_below(rng, 2 * blocks / (size_t) (count - i) + 2);
        }
        lengths[i] = (int) (part < blocks ? part : blocks);
        blocks -= (size_t) lengths[i];
    }
    return count;
}

static void make_contiguous(node_t *node, const node_t *inner, size_t blocks)
{
    MPI(MPI_Type_contiguous((int) blocks, inner->type, &node->type));
    model_block(node, inner, 0, (int64_t) blocks);
    say(node, "contiguous(%zu, %s)", blocks, inner->text);
}

static void make_vector(const context_t *context, node_t *node, const node_t *inner, size_t blocks,
                        bool bytes)
{
    typegen_rng_t *rng = context->rng;
    int64_t length = (int64_t) draw_divisor(rng, blocks), count = (int64_t) blocks / length, i;
    int64_t step = bytes ? 1 : llabs(inner->extent), stride;

    stride = footprint(inner, length) + draw_gap(rng);
    stride = 0 < step ? (stride + step - 1) / step : between(rng, 0, 9);
    if (typegen_once_in(rng, 8)) {
        stride = between(rng, 0, stride); /* interleaved, if it is allowed */
    }
    if (typegen_once_in(rng, 4)) {
        stride = -stride;
    }
    if (-1 == stride * (bytes ? 1 : inner->extent)) {
        stride = 1; /* Open MPI (4.1.4 and 5.0.7) takes a stride of -1 byte for 'none given' */
    }
    if (bytes) {
        MPI(MPI_Type_create_hvector((int) count, (int) length, (MPI_Aint) stride, inner->type,
                                    &node->type));
    } else {
        MPI(MPI_Type_vector((int) count, (int) length, (int) stride, inner->type, &node->type));
    }
    for (i = 0; i < count; ++i) {
        model_block(node, inner, i * stride * (bytes ? 1 : inner->extent), length);
    }
    say(node, "%s(%d, %d, %lld, %s)", bytes ? "hvector" : "vector", (int) count, (int) length,
        (long long) stride, inner->text);
}

static void make_indexed(const context_t *context, node_t *node, const node_t *inner, size_t blocks,
                         bool bytes, bool equal)
{
    typegen_rng_t *rng = context->rng;
    int lengths[MAX_BLOCKS], indices[MAX_BLOCKS], count, i;
    int64_t places[MAX_BLOCKS], step = bytes ? 0 : llabs(inner->extent);
    MPI_Aint displacements[MAX_BLOCKS];

    if (equal) {
        size_t length = draw_divisor(rng, blocks);

        if (blocks / length > MAX_BLOCKS) {
            length = blocks; /* one block */
        }
        count = (int) (blocks / length);
        for (i = 0; i < count; ++i) {
            lengths[i] = (int) length;
        }
    } else {
        count = draw_lengths(context, blocks, lengths);
    }
    draw_places(context, inner, lengths, count, step, places);
    for (i = 0; i < count; ++i) {
        displacements[i] = (MPI_Aint) places[i];
        indices[i] = bytes || 0 == inner->extent ? 0 : (int) (places[i] / inner->extent);
        model_block(node, inner, bytes ? places[i] : indices[i] * inner->extent, lengths[i]);
    }
    if (equal && bytes) {
        MPI(MPI_Type_create_hindexed_block(count, lengths[0], displacements, inner->type,
                                           &node->type));
    } else if (equal) {
        MPI(MPI_Type_create_indexed_block(count, lengths[0], indices, inner->type, &node->type));
    } else if (bytes) {
        MPI(MPI_Type_create_hindexed(count, lengths, displacements, inner->type, &node->type));
    } else {
        MPI(MPI_Type_indexed(count, lengths, indices, inner->type, &node->type));
    }
    say(node, "%sindexed%s(", bytes ? "h" : "", equal ? "_block" : "");
    for (i = 0; i < count; ++i) {
        say(node, "%d@%lld ", lengths[i], (long long) (bytes ? places[i] : indices[i]));
    }
    say(node, ", %s)", inner->text);
}

static void make_subarray(const context_t *context, node_t *node, const node_t *inner,
                          size_t blocks)
{
    typegen_rng_t *rng = context->rng;
    bool fortran = typegen_once_in(rng, 2);
    int dimensions = (int) between(rng, 1, 3), d;
    int sizes[3], subsizes[3], starts[3];
    size_t left = blocks, i;

    for (d = 0; d < dimensions; ++d) {
        subsizes[d] = (int) (d == dimensions - 1 ? left : draw_divisor(rng, left));
        left /= (size_t) subsizes[d];
        starts[d] = (int) between(rng, 0, 3);
        sizes[d] = starts[d] + subsizes[d] + (int) between(rng, 0, 3);
        if (typegen_once_in(rng, 3)) {
            starts[d] = 0; /* full rows: they merge */
            sizes[d] = subsizes[d];
        }
    }
    MPI(MPI_Type_create_subarray(dimensions, sizes, subsizes, starts,
                                 fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, inner->type,
                                 &node->type));
    for (i = 0; i < blocks; ++i) {
        size_t rest = i;
        int64_t place = 0, scale = 1;
        int k;

        /* from the dimension that runs fastest to the slowest */
        for (k = 0; k < dimensions; ++k) {
            d = fortran ? k : dimensions - 1 - k;
            place += scale * (starts[d] + (int64_t) (rest % (size_t) subsizes[d]));
            rest /= (size_t) subsizes[d];
            scale *= sizes[d];
        }
        model_block(node, inner, place * inner->extent, 1);
    }
    say(node, "subarray_%s(", fortran ? "F" : "C");
    for (d = 0; d < dimensions; ++d) {
        say(node, "%d+%d/%d ", starts[d], subsizes[d], sizes[d]);
    }
    say(node, ", %s)", inner->text);
}

/* Always works: single copies, as far apart as inner is long. */
static void make_safe(node_t *node, const node_t *inner, size_t blocks)
{
    int64_t stride = inner->high - inner->low, i;

    MPI(MPI_Type_create_hvector((int) blocks, 1, (MPI_Aint) stride, inner->type, &node->type));
    for (i = 0; i < (int64_t) blocks; ++i) {
        model_block(node, inner, i * stride, 1);
    }
    say(node, "hvector(%zu, 1, %lld, %s)", blocks, (long long) stride, inner->text);
}

/* ---------------------------------------------------------------------------------------------
 * Nesting
 * ------------------------------------------------------------------------------------------- */

static bool acceptable(const context_t *context, const node_t *node)
{
    if (node->high - node->low > context->options->max_span
        || llabs(node->extent) > 4 * context->options->max_span) {
        return false;
    }
    return !context->receivable || !model_overlaps(node->elements, node->element_count);
}

/* A copy of the type with other bounds, or a plain copy. The model stays as it is. */
static void wrap(const context_t *context, node_t *node)
{
    typegen_rng_t *rng = context->rng;
    MPI_Datatype wrapped;

    if (typegen_once_in(rng, 5)) {
        int64_t span = node->high - node->low, lb, extent;
        char text[TEXT];

        lb = typegen_once_in(rng, 2) ? between(rng, -64, 64) : node->low;
        switch (typegen_below(rng, 4)) {
        case 0:
            extent = span;
            break;
        case 1:
            extent = between(rng, 1, 16); /* copies lie within each other */
            break;
        case 2:
            extent = 8 * between(rng, 1, 32);
            break;
        default:
            extent = span + draw_gap(rng);
            break;
        }
        MPI(MPI_Type_create_resized(node->type, (MPI_Aint) lb, (MPI_Aint) extent, &wrapped));
        memcpy(text, node->text, TEXT);
        node->text[0] = '\0';
        say(node, "resized(%lld, %lld, %s)", (long long) lb, (long long) extent, text);
    } else if (typegen_once_in(rng, 8)) {
        char text[TEXT];

        MPI(MPI_Type_dup(node->type, &wrapped));
        memcpy(text, node->text, TEXT);
        node->text[0] = '\0';
        say(node, "dup(%s)", text);
    } else {
        return;
    }
    if (node->owned) {
        MPI(MPI_Type_free(&node->type));
    }
    node->type = wrapped;
    node_made(node);
}

static void build_basic(node_t *node, uint32_t basic)
{
    MPI_Aint lb, extent;

    node_init(node);
    node->type = basic_type(basic);
    MPI(MPI_Type_get_extent(node->type, &lb, &extent));
    node->extent = (int64_t) extent;
    model_add(node, 0, basic_size(basic), basic);
    say(node, "%s", basic_name(basic));
}

static void build_empty(const context_t *context, node_t *node)
{
    typegen_rng_t *rng = context->rng;
    int zeros[2] = {0, 0}, places[2] = {3, -2};

    node_init(node);
    switch (typegen_below(rng, 4)) {
    case 0:
        MPI(MPI_Type_contiguous(0, MPI_INT, &node->type));
        say(node, "contiguous(0, INT)");
        break;
    case 1:
        MPI(MPI_Type_vector(0, 3, 5, MPI_INT, &node->type));
        say(node, "vector(0, 3, 5, INT)");
        break;
    case 2:
        MPI(MPI_Type_vector(4, 0, 5, MPI_INT, &node->type));
        say(node, "vector(4, 0, 5, INT)");
        break;
    default:
        MPI(MPI_Type_indexed(2, zeros, places, MPI_INT, &node->type));
        say(node, "indexed(0@3 0@-2, INT)");
        break;
    }
    node_made(node);
}

/* One unit of the signature: a basic type, or a struct of several. */
static void build_unit(const context_t *context, node_t *node)
{
    const unit_t *unit = context->unit;
    int lengths[MAX_UNIT], order[MAX_UNIT], i;
    MPI_Aint displacements[MAX_UNIT];
    MPI_Datatype types[MAX_UNIT];
    int64_t cursor = between(context->rng, -16, 16);

    if (1 == unit->count) {
        build_basic(node, unit->basics[0]);
        return;
    }
    node_init(node);
    for (i = 0; i < unit->count; ++i) {
        order[i] = i;
    }
    if (typegen_once_in(context->rng, 3)) {
        shuffle(context->rng, order, unit->count);
    }
    for (i = 0; i < unit->count; ++i) {
        lengths[order[i]] = 1;
        types[order[i]] = basic_type(unit->basics[order[i]]);
        displacements[order[i]] = (MPI_Aint) cursor;
        cursor += basic_size(unit->basics[order[i]]) + draw_gap(context->rng);
    }
    MPI(MPI_Type_create_struct(unit->count, lengths, displacements, types, &node->type));
    say(node, "struct(");
    for (i = 0; i < unit->count; ++i) {
        model_add(node, (int64_t) displacements[i], basic_size(unit->basics[i]), unit->basics[i]);
        say(node, "%s@%lld ", basic_name(unit->basics[i]), (long long) displacements[i]);
    }
    say(node, ")");
    node_made(node);
}

static void build(const context_t *context, int depth, size_t units, node_t *node);

/* Parts of different types, each with its share of the units; some parts are empty. */
static void make_struct(const context_t *context, int depth, size_t units, node_t *node)
{
    typegen_rng_t *rng = context->rng;
    node_t parts[4];
    int lengths[4], order[4], count = (int) between(rng, 1, 4), i;
    MPI_Aint displacements[4];
    MPI_Aint within = 0;
    MPI_Datatype types[4];
    int64_t cursor = typegen_once_in(rng, 2) ? between(rng, -200, 200) : 0;

    for (i = 0; i < count; ++i) {
        size_t share = i == count - 1 ? units : (size_t) typegen_below(rng, units + 1);

        order[i] = i;
        units -= share;
        lengths[i] = (int) (0 == share ? typegen_below(rng, 3) : draw_divisor(rng, share));
        if (0 == share && typegen_once_in(rng, 2)) {
            build_unit(context, &parts[i]);
            lengths[i] = 0;
        } else if (0 == share) {
            build_empty(context, &parts[i]);
        } else {
            build(context, depth - 1, share / (size_t) lengths[i], &parts[i]);
        }
        types[i] = parts[i].type;
    }
    if (typegen_once_in(rng, 3)) {
        shuffle(rng, order, count);
    }
    for (i = 0; i < count; ++i) {
        node_t *part = &parts[order[i]];

        displacements[order[i]] = (MPI_Aint) (cursor - part->low);
        if (0 < part->element_count && 0 < lengths[order[i]]) {
            cursor += footprint(part, lengths[order[i]]) + draw_gap(rng);
            within = displacements[order[i]] + (MPI_Aint) part->low;
        }
    }
    /* Open MPI (4.1.4 and 5.0.7) lets an empty type widen the extent of a struct and goes on to
     * treat the copies of the struct as adjacent: MPI_Pack is wrong there. Keep such members
     * inside. */
    for (i = 0; i < count; ++i) {
        if (0 == parts[i].element_count) {
            displacements[i] = within;
        }
    }
    MPI(MPI_Type_create_struct(count, lengths, displacements, types, &node->type));
    say(node, "struct(");
    for (i = 0; i < count; ++i) {
        model_block(node, &parts[i], (int64_t) displacements[i], lengths[i]);
        say(node, "%d@%lld %s%s", lengths[i], (long long) displacements[i], parts[i].text,
            i == count - 1 ? ")" : ", ");
        node_free(&parts[i]);
    }
}

/* One draw of a constructor over `units` units. */
static void construct(const context_t *context, int depth, size_t units, node_t *node)
{
    typegen_rng_t *rng = context->rng;
    uint64_t choice = typegen_below(rng, 10);
    size_t blocks = draw_divisor(rng, units);
    node_t inner;

    node_init(node);
    if (9 == choice) {
        make_struct(context, depth, units, node);
        node_made(node);
        return;
    }
    build(context, depth - 1, units / blocks, &inner);
    switch (choice) {
    case 0:
        make_contiguous(node, &inner, blocks);
        break;
    case 1:
    case 2:
        make_vector(context, node, &inner, blocks, 1 == choice);
        break;
    case 3:
    case 4:
        make_indexed(context, node, &inner, blocks, 3 == choice, false);
        break;
    case 5:
    case 6:
        make_indexed(context, node, &inner, blocks, 5 == choice, true);
        break;
    default:
        make_subarray(context, node, &inner, blocks);
        break;
    }
    node_made(node);
    node_free(&inner);
}

/* A type of `units` times the unit. */
static void build(const context_t *context, int depth, size_t units, node_t *node)
{
    node_t inner;
    int attempt;

    if (0 >= depth && 1 == units) {
        build_unit(context, node);
        return;
    }
    for (attempt = 0; 0 < depth && attempt < NODE_ATTEMPTS; ++attempt) {
        construct(context, depth, units, node);
        wrap(context, node);
        if (acceptable(context, node)) {
            return;
        }
        node_free(node);
    }
    build_unit(context, &inner);
    node_init(node);
    if (typegen_once_in(context->rng, 2)) {
        make_contiguous(node, &inner, units);
    } else {
        make_safe(node, &inner, units);
    }
    node_made(node);
    node_free(&inner);
}

/* ---------------------------------------------------------------------------------------------
 * Types with counts
 * ------------------------------------------------------------------------------------------- */

static void draw_unit(const context_t *context, unit_t *unit)
{
    typegen_rng_t *rng = context->rng;
    int i;

    unit->count = 1;
    if (context->options->bytes_only) {
        unit->basics[0] = BASIC_BYTE;
        return;
    }
    if (typegen_once_in(rng, 4)) {
        unit->count = (int) between(rng, 2, MAX_UNIT);
    }
    for (i = 0; i < unit->count; ++i) {
        unit->basics[i] = (uint32_t) typegen_below(rng, BASIC_COUNT);
    }
}

/* A number with many divisors, mostly, so that it can be cut in many ways. */
static size_t draw_units(const context_t *context, const unit_t *unit)
{
    static const size_t primes[] = {2, 2, 2, 2, 3, 3, 5, 7};
    typegen_rng_t *rng = context->rng;
    size_t most = context->options->max_elements / (size_t) unit->count;
    size_t least = context->options->min_elements / (size_t) unit->count;
    size_t units = 1, target;

    if (0 == most) {
        return 1;
    }
    least = 0 == least ? 1 : least > most ? most : least;
    /* sizes of all orders of magnitude */
    target = most;
    while (target / 2 >= least && typegen_once_in(rng, 2)) {
        target /= 2;
    }
    if (typegen_once_in(rng, 5)) {
        return (size_t) between(rng, (int64_t) least, (int64_t) target);
    }
    while (units < least || !typegen_once_in(rng, 12)) {
        size_t prime = primes[typegen_below(rng, sizeof(primes) / sizeof(primes[0]))];

        if (units * prime > target) {
            break;
        }
        units *= prime;
    }
    return units < least ? least : units;
}

static void finish_side(typegen_side_t *side, node_t *node, int count)
{
    node_t whole;
    size_t i;

    node_init(&whole);
    model_block(&whole, node, 0, count);
    memset(side, 0, sizeof(*side));
    MPI(MPI_Type_dup(node->type, &side->type));
    MPI(MPI_Type_commit(&side->type));
    side->count = count;
    side->low = whole.low;
    side->high = whole.high;
    side->element_count = whole.element_count;
    side->elements = whole.elements;
    for (i = 0; i < whole.element_count; ++i) {
        side->size += whole.elements[i].length;
    }
    side->overlapping = model_overlaps(side->elements, side->element_count);
    snprintf(side->description, sizeof(side->description), "%d x %.*s", count,
             (int) sizeof(side->description) - 16, node->text);
}

/* `units` units as some type times some count. */
static void draw_side(const context_t *context, size_t units, bool contiguous, typegen_side_t *side)
{
    typegen_rng_t *rng = context->rng;
    int attempt, depth = context->options->max_depth;
    size_t count = 1;
    node_t node, inner;

    depth = depth < 0 ? 0 : depth > MAX_DEPTH ? MAX_DEPTH : depth;
    if (contiguous) {
        depth = 0;
    } else if (0 < depth && !typegen_once_in(rng, 3)) {
        depth = (int) between(rng, 1, depth);
    }
    for (attempt = 0; attempt < 20; ++attempt) {
        count = draw_divisor(rng, units);
        if (count > (size_t) context->options->max_count) {
            count = 1;
        }
        build(context, depth, units / count, &node);
        finish_side(side, &node, (int) count);
        node_free(&node);
        if (side->high - side->low <= context->options->max_span
            && !(side->overlapping && context->receivable)) {
            return;
        }
        typegen_side_free(side);
    }
    build_unit(context, &inner);
    node_init(&node);
    make_safe(&node, &inner, units);
    node_made(&node);
    finish_side(side, &node, 1);
    node_free(&node);
    node_free(&inner);
}

void typegen_random(typegen_rng_t *rng, const typegen_options_t *options, typegen_side_t *side)
{
    unit_t unit;
    context_t context = {rng, options, &unit, options->receivable};

    draw_unit(&context, &unit);
    if (options->empty && typegen_once_in(rng, 40)) {
        node_t node;

        build_empty(&context, &node);
        finish_side(side, &node, (int) between(rng, 1, options->max_count));
        node_free(&node);
        return;
    }
    draw_side(&context, draw_units(&context, &unit), false, side);
}

void typegen_pair(typegen_rng_t *rng, const typegen_options_t *options, typegen_side_t *send,
                  typegen_side_t *recv)
{
    unit_t unit;
    context_t context = {rng, options, &unit, options->receivable};
    uint64_t contiguous = options->contiguous ? typegen_below(rng, 8) : 8;
    size_t units;

    draw_unit(&context, &unit);
    units = draw_units(&context, &unit);
    draw_side(&context, units, 0 == contiguous, send);
    context.receivable = true;
    draw_side(&context, units, 1 == contiguous, recv);
}

void typegen_side_free(typegen_side_t *side)
{
    if (MPI_DATATYPE_NULL != side->type) {
        MPI(MPI_Type_free(&side->type));
    }
    free(side->elements);
    memset(side, 0, sizeof(*side));
    side->type = MPI_DATATYPE_NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------------------------- */

void typegen_buffer_alloc(const typegen_side_t *side, typegen_buffer_t *buffer)
{
    buffer->bytes = (size_t) (side->high - side->low) + 2 * TYPEGEN_GUARD;
    buffer->low = side->low - TYPEGEN_GUARD;
    buffer->memory = must_alloc(buffer->bytes);
    buffer->address = (void *) ((uintptr_t) buffer->memory - (uintptr_t) buffer->low);
}

void typegen_buffer_free(typegen_buffer_t *buffer)
{
    free(buffer->memory);
    memset(buffer, 0, sizeof(*buffer));
}

unsigned char typegen_pattern(uint64_t seed, int64_t offset)
{
    return (unsigned char) mix(mix(seed + 1) + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t) offset);
}

void typegen_fill(typegen_buffer_t *buffer, uint64_t seed)
{
    size_t i;

    for (i = 0; i < buffer->bytes; ++i) {
        buffer->memory[i] = typegen_pattern(seed, buffer->low + (int64_t) i);
    }
}

unsigned char *typegen_expected(const typegen_side_t *side, uint64_t seed)
{
    unsigned char *stream = must_alloc((size_t) side->size);
    uint64_t position = 0;
    uint32_t b;
    size_t i;

    for (i = 0; i < side->element_count; ++i) {
        for (b = 0; b < side->elements[i].length; ++b) {
            stream[position++] = typegen_pattern(seed, side->elements[i].offset + b);
        }
    }
    return stream;
}

bool typegen_verify(const typegen_side_t *side, const typegen_buffer_t *buffer, uint64_t seed,
                    const unsigned char *stream, uint64_t bytes, char *why, size_t why_size)
{
    unsigned char *wanted = must_alloc(buffer->bytes);
    uint64_t *positions = must_alloc(buffer->bytes * sizeof(*positions)); /* 1 + stream position */
    uint64_t position = 0;
    bool good = true;
    uint32_t b;
    size_t i;

    why[0] = '\0';
    memset(positions, 0, buffer->bytes * sizeof(*positions));
    for (i = 0; i < buffer->bytes; ++i) {
        wanted[i] = typegen_pattern(seed, buffer->low + (int64_t) i);
    }
    for (i = 0; i < side->element_count; ++i) {
        for (b = 0; b < side->elements[i].length; ++b, ++position) {
            size_t at = (size_t) (side->elements[i].offset + b - buffer->low);

            positions[at] = position + 1;
            if (position < bytes) {
                wanted[at] = stream[position];
            }
        }
    }
    if (bytes > side->size) {
        snprintf(why, why_size, "%llu bytes cannot be in a side of %llu",
                 (unsigned long long) bytes, (unsigned long long) side->size);
        good = false;
    }
    for (i = 0; i < buffer->bytes && good; ++i) {
        if (wanted[i] != buffer->memory[i]) {
            const char *what = 0 == positions[i]          ? "a gap was written"
                               : positions[i] - 1 < bytes ? "wrong data"
                                                          : "written beyond the data";

            snprintf(why, why_size,
                     "offset %lld (stream position %lld of %llu): %s, expected %02x, found %02x",
                     (long long) (buffer->low + (int64_t) i), (long long) positions[i] - 1,
                     (unsigned long long) bytes, what, wanted[i], buffer->memory[i]);
            good = false;
        }
    }
    free(positions);
    free(wanted);
    return good;
}
