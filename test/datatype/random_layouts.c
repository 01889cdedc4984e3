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
 * Layouts of random nested datatypes against two oracles: the model that comes with the random type
 * (worked out from the MPI standard), and MPI_Pack.
 *
 *     random_layouts [count [seed]]      type i has seed + i, so "random_layouts 1 S" replays one
 *     random_layouts --measure           prints the times of a walk and a hit here; checks nothing
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "test/common/typegen.h"

#define DEFAULT_COUNT 1000 /* 6000 with "test/run --all" */
#define DEFAULT_SEED  20261120
#define MAX_FAILURES  10

static int failures;
static uint64_t current_seed;
static const char *current_type = "";

#define CHECK(CONDITION, ...)                                                               \
    do {                                                                                    \
        if (!(CONDITION)) {                                                                 \
            fprintf(stderr, "FAILED: random_layouts 1 %" PRIu64 ": %s\n    type: %s\n    ", \
                    current_seed, #CONDITION, current_type);                                \
            fprintf(stderr, __VA_ARGS__);                                                   \
            fprintf(stderr, "\n");                                                          \
            ++failures;                                                                     \
            return false;                                                                   \
        }                                                                                   \
    } while (0)

/* What every layout promises, whatever the type. */
static bool check_shape(const opal_iov_cache_layout_t *layout)
{
    uint64_t position = 0;
    int64_t lowest = 0, highest = 0, before = 0;
    size_t i;

    CHECK(0 != layout->id, "an id of 0");
    for (i = 0; i < layout->iov_count; ++i) {
        opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(layout, i);
        int64_t end = iov.offset + (int64_t) iov.length;

        CHECK(0 < iov.length, "IOV %zu is empty", i);
        CHECK(0 == i || before != iov.offset, "IOV %zu continues the one before", i);
        before = end;
        CHECK(opal_iov_cache_layout_start(layout, i) == position,
              "IOV %zu starts at %" PRIu64 ", not %" PRIu64, i,
              opal_iov_cache_layout_start(layout, i), position);
        CHECK(i == opal_iov_cache_layout_find(layout, position), "first byte of IOV %zu", i);
        position += iov.length;
        CHECK(i == opal_iov_cache_layout_find(layout, position - 1), "last byte of IOV %zu", i);
        lowest = 0 == i || iov.offset < lowest ? iov.offset : lowest;
        highest = 0 == i || end > highest ? end : highest;
    }
    CHECK(layout->size == position, "%" PRIu64 " against %" PRIu64, layout->size, position);
    CHECK(layout->iov_count == opal_iov_cache_layout_find(layout, position), "behind the end");
    CHECK(layout->lb == lowest && layout->ub == highest,
          "bounds %" PRId64 " %" PRId64 ", not %" PRId64 " %" PRId64, layout->lb, layout->ub,
          lowest, highest);
    CHECK(opal_iov_cache_layout_is_contiguous(layout) == (1 >= layout->iov_count), "contiguity");
    return true;
}

/* The model, merged, must be the IOVs: same pieces, same order. */
static bool check_model(const opal_iov_cache_layout_t *layout, const typegen_side_t *side)
{
    size_t e = 0, i;

    CHECK(layout->size == side->size, "%" PRIu64 " against %" PRIu64, layout->size, side->size);
    for (i = 0; i < layout->iov_count; ++i) {
        int64_t offset = opal_iov_cache_layout_iov(layout, i).offset;
        uint64_t left = opal_iov_cache_layout_iov(layout, i).length;

        while (0 < left) {
            CHECK(e < side->element_count, "more IOVs than elements");
            CHECK(side->elements[e].offset == offset && side->elements[e].length <= left,
                  "element %zu is %" PRId64 "+%" PRIu32 ", IOV %zu has %" PRId64 "+%" PRIu64, e,
                  side->elements[e].offset, side->elements[e].length, i, offset, left);
            offset += side->elements[e].length;
            left -= side->elements[e].length;
            ++e;
        }
    }
    CHECK(e == side->element_count, "%zu of %zu elements", e, side->element_count);
    CHECK(layout->lb == side->low && layout->ub == side->high, "bounds");
    return true;
}

/* Bounds that (type, count) has by what the library says of one of the type. */
static void true_bounds(MPI_Datatype type, int count, int64_t *low, int64_t *high)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    int64_t reach;

    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    reach = (int64_t) extent * (count - 1);
    *low = true_lb + (reach < 0 ? reach : 0);
    *high = true_lb + true_extent + (reach > 0 ? reach : 0);
}

/* Gathering a buffer by the IOVs must give what MPI_Pack gives. */
static bool check_pack(const opal_iov_cache_layout_t *layout, MPI_Datatype type, int count)
{
    unsigned char *memory, *packed;
    int64_t low, high, offset;
    uint64_t b;
    int size, position = 0;
    size_t i;

    if (0 == layout->size) {
        MPI_Type_size(type, &size);
        CHECK(0 == size * count, "empty layout of %d bytes", size * count);
        return true;
    }
    true_bounds(type, count, &low, &high);
    CHECK(layout->lb == low && layout->ub == high,
          "%" PRId64 " .. %" PRId64 " and true extent %" PRId64 " .. %" PRId64, layout->lb,
          layout->ub, low, high);
    memory = malloc((size_t) (high - low));
    for (offset = low; offset < high; ++offset) {
        memory[offset - low] = typegen_pattern(current_seed, offset);
    }
    MPI_Pack_size(count, type, MPI_COMM_SELF, &size);
    packed = malloc((size_t) size + 1);
    MPI_Pack((void *) ((uintptr_t) memory - (uintptr_t) low), count, type, packed, size, &position,
             MPI_COMM_SELF);
    CHECK((uint64_t) position == layout->size, "MPI_Pack gives %d bytes, layout %" PRIu64, position,
          layout->size);
    for (i = 0; i < layout->iov_count; ++i) {
        for (b = 0; b < opal_iov_cache_layout_iov(layout, i).length; ++b) {
            uint64_t at = opal_iov_cache_layout_start(layout, i) + b;

            CHECK(memory[opal_iov_cache_layout_iov(layout, i).offset + (int64_t) b - low]
                      == packed[at],
                  "stream position %" PRIu64 " in IOV %zu", at, i);
        }
    }
    free(packed);
    free(memory);
    return true;
}

/* Windows and chunks do not depend on the description: the layout of the pieces has the same. */
static bool check_reported(const opal_iov_cache_layout_t *layout)
{
    opal_iov_cache_iov_t *iovs = malloc((layout->iov_count + 1) * sizeof(*iovs));
    opal_iov_cache_layout_t *other;
    opal_iov_cache_form_t *form;
    uint64_t next;
    typegen_rng_t rng;
    int i;

    typegen_seed(&rng, current_seed + 77);
    opal_iov_cache_form_iovs(layout->form, 0, layout->size, iovs, layout->iov_count, &next);
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(iovs, layout->iov_count, &form)
              && OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &other),
          "no layout of its pieces");
    for (i = 0; i < 6 && 0 < layout->size; ++i) {
        opal_iov_cache_limits_t limits = {1 + typegen_below(&rng, 0 == i % 2 ? 8 : 60), UINT64_MAX};
        uint64_t size = 0 == i ? layout->size : 1 + typegen_below(&rng, layout->size);
        uint64_t chunk = opal_iov_cache_chunk(layout, &limits, size);
        uint64_t start = typegen_below(&rng, size);
        opal_iov_cache_window_t window, another;

        CHECK(chunk == opal_iov_cache_chunk(other, &limits, size),
              "chunk of %" PRIu64 " bytes with %zu IOVs: %" PRIu64 " and %" PRIu64, size,
              limits.max_iovs, chunk, opal_iov_cache_chunk(other, &limits, size));
        CHECK(opal_iov_cache_chunk_fits(layout, &limits, size, chunk), "its own chunk");
        chunk = 1 + typegen_below(&rng, size);
        CHECK(opal_iov_cache_chunk_fits(layout, &limits, size, chunk)
                  == opal_iov_cache_chunk_fits(other, &limits, size, chunk),
              "chunks of %" PRIu64 " of %" PRIu64 " bytes, %zu IOVs", chunk, size, limits.max_iovs);
        CHECK(OPAL_SUCCESS == opal_iov_cache_window(layout, &limits, chunk, start, size, &window)
                  && OPAL_SUCCESS
                         == opal_iov_cache_window(other, &limits, chunk, start, size, &another),
              "no window");
        CHECK(window.length == another.length && window.iov_count == another.iov_count,
              "windows at %" PRIu64, start);
    }
    OBJ_RELEASE(other);
    free(iovs);
    return true;
}

static bool check_count(MPI_Datatype type, int count, const typegen_side_t *model)
{
    opal_iov_cache_layout_t *layout;
    bool good;
    int rc = opal_iov_cache_layout_create(opal_type(type), (size_t) count, &layout);

    CHECK(OPAL_SUCCESS == rc, "count %d gave %d", count, rc);
    good = check_shape(layout) && (NULL == model || check_model(layout, model))
           && check_pack(layout, type, count) && check_reported(layout);
    OBJ_RELEASE(layout);
    return good;
}

static bool check_type(uint64_t seed, size_t *iovs)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    opal_iov_cache_layout_t *layout;
    typegen_side_t side;
    typegen_rng_t rng;
    bool good;

    current_seed = seed;
    typegen_seed(&rng, seed);
    options.empty = true;
    options.receivable = !typegen_once_in(&rng, 3);
    options.max_depth = 1 + (int) typegen_below(&rng, 6);
    options.max_elements = typegen_once_in(&rng, 20) ? 20000 : 600;
    typegen_random(&rng, &options, &side);
    current_type = side.description;

    good = check_count(side.type, side.count, &side) && check_count(side.type, 0, NULL)
           && check_count(side.type, 1, NULL) && check_count(side.type, 2, NULL)
           && check_count(side.type, 3 + (int) typegen_below(&rng, 30), NULL);
    if (good
        && OPAL_SUCCESS
               == opal_iov_cache_layout_create(opal_type(side.type), (size_t) side.count,
                                               &layout)) {
        *iovs += layout->iov_count;
        OBJ_RELEASE(layout);
    }
    typegen_side_free(&side);
    return good;
}

/* ---------------------------------------------------------------------------------------------
 * Measuring
 * ------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static int promise(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

static void measure_type(const char *name, MPI_Datatype type)
{
    const int walks = 50, hits = 1000000;
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_limits_t limits = {52, 1u << 30};
    opal_iov_cache_t *cache;
    double start, walk, hit, chunk;
    size_t iovs = 0;
    int i;

    MPI_Type_commit(&type);
    start = seconds();
    for (i = 0; i < walks; ++i) {
        opal_iov_cache_layout_create(opal_type(type), 1, &layout);
        iovs = layout->iov_count;
        OBJ_RELEASE(layout);
    }
    walk = (seconds() - start) / walks;

    opal_iov_cache_create(1u << 30, promise, NULL, &cache);
    opal_iov_cache_get(cache, opal_type(type), 1, &layout);
    start = seconds();
    for (i = 0; i < walks; ++i) {
        opal_iov_cache_agree(layout, &limits, layout->size,
                             opal_iov_cache_chunk(layout, &limits, layout->size), 1024);
    }
    chunk = (seconds() - start) / walks;
    OBJ_RELEASE(layout);
    start = seconds();
    for (i = 0; i < hits; ++i) {
        opal_iov_cache_get(cache, opal_type(type), 1, &layout);
        OBJ_RELEASE(layout);
    }
    hit = (seconds() - start) / hits;
    opal_iov_cache_destroy(cache);
    printf(
        "%-24s %8zu IOVs: walk %8.1f us (%.2f ns an IOV), hit %.1f ns, propose and agree %.1f us\n",
        name, iovs, 1e6 * walk, 1e9 * walk / (double) iovs, 1e9 * hit, 1e6 * chunk);
    MPI_Type_free(&type);
}

static void measure(void)
{
    int lengths[3] = {1, 1, 1};
    MPI_Aint displacements[3] = {0, 8, 24};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_INT}, one, type;
    int *indices = malloc(65536 * sizeof(*indices)), i;

    MPI_Type_vector(64, 1024, 2048, MPI_BYTE, &type);
    measure_type("vector of 64", type);
    MPI_Type_vector(65536, 8, 16, MPI_BYTE, &type);
    measure_type("vector of 65536", type);
    MPI_Type_create_struct(3, lengths, displacements, types, &one);
    MPI_Type_contiguous(21845, one, &type);
    measure_type("array of 3-field struct", type);
    MPI_Type_free(&one);
    for (i = 0; i < 65536; ++i) {
        indices[i] = 3 * (int) (((unsigned) i * 40503u) & 65535u);
    }
    MPI_Type_create_indexed_block(65536, 2, indices, MPI_INT, &type);
    measure_type("indexed_block, no order", type);
    free(indices);
}

int main(int argc, char **argv)
{
    const uint64_t usual = NULL != getenv("UMRDDT_TEST_ALL") ? 6 * DEFAULT_COUNT : DEFAULT_COUNT;
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 0) : usual;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED, i;
    size_t iovs = 0;

    singleton_init(MPI_THREAD_SINGLE);
    if (1 < argc && 0 == strcmp(argv[1], "--measure")) {
        measure();
        MPI_Finalize();
        return 0;
    }
    printf("random_layouts: %" PRIu64 " types from seed %" PRIu64 "\n", count, seed);
    for (i = 0; i < count && failures < MAX_FAILURES; ++i) {
        check_type(seed + i, &iovs);
    }
    printf("random_layouts: %" PRIu64 " types, %zu IOVs, %d failures\n", i, iovs, failures);
    MPI_Finalize();
    return 0 == failures && 0 < count ? 0 : 1;
}
