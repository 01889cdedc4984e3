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
 * Windows, chunks and agreement, as properties on random layouts. The layouts are made here,
 * without a datatype, and small enough that a loop over their bytes can say what is right.
 *
 *     test_window [count [seed]]     layout i has seed + i
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "opal_config.h"
#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "test/common/typegen.h"

#define MAX_IOVS   60
#define MAX_LENGTH 40

static uint64_t count = 20000;
static uint64_t first_seed = 20261120;

/* Printed with every failure: "test_window 1 SEED" replays it. */
static uint64_t current_seed;

#define CHECK(CONDITION)                                                               \
    do {                                                                               \
        if (!(CONDITION)) {                                                            \
            fprintf(stderr, "replay with: test_window 1 %" PRIu64 "\n", current_seed); \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, #CONDITION);                     \
        }                                                                              \
    } while (0)

/* A layout with the IOV of each stream position beside it. */
typedef struct {
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_iov_t *iovs; /* as drawn */
    uint64_t *starts;
    size_t *iov_of;
} sample_t;

static opal_iov_cache_layout_t *new_layout(const opal_iov_cache_iov_t *iovs, size_t iov_count)
{
    opal_iov_cache_layout_t *layout = NULL;
    opal_iov_cache_form_t *form = NULL;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(iovs, iov_count, &form));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_layout_of_form(form, &layout));
    assert_int_equal(iov_count, layout->iov_count);
    return layout;
}

static uint64_t draw_length(typegen_rng_t *rng, uint64_t kind, size_t i)
{
    static const uint64_t fields[] = {4, 8, 12};

    switch (kind) {
    case 0:
        return 8;
    case 1:
        return fields[i % 3];
    case 2:
        return 1;
    case 3: /* one long one now and then */
        return typegen_once_in(rng, 8) ? 10 * MAX_LENGTH : 1 + typegen_below(rng, 4);
    default:
        return 1 + typegen_below(rng, MAX_LENGTH);
    }
}

static void sample_make(typegen_rng_t *rng, sample_t *sample)
{
    size_t iov_count = 1 + typegen_below(rng, MAX_IOVS), i;
    uint64_t kind = typegen_below(rng, 6), gaps = typegen_below(rng, 3), size = 0, b;
    int64_t offset = (int64_t) typegen_below(rng, 100) - 50;

    sample->iovs = malloc(iov_count * sizeof(*sample->iovs));
    sample->starts = malloc((iov_count + 1) * sizeof(*sample->starts));
    for (i = 0; i < iov_count; ++i) {
        uint64_t length = draw_length(rng, kind, i);

        sample->iovs[i].offset = offset;
        sample->iovs[i].length = length;
        sample->starts[i] = size;
        size += length;
        /* none of it regular, or lines of eight, or all of it where the lengths are */
        offset += (int64_t) length + 1;
        offset += (int64_t) (0 == gaps ? typegen_below(rng, 9) : 1 == gaps && 7 == i % 8 ? 50 : 0);
    }
    sample->starts[iov_count] = size;
    sample->layout = new_layout(sample->iovs, iov_count);
    sample->iov_of = malloc(size * sizeof(*sample->iov_of));
    for (i = 0; i < iov_count; ++i) {
        for (b = 0; b < sample->iovs[i].length; ++b) {
            sample->iov_of[sample->starts[i] + b] = i;
        }
    }
}

static void sample_free(sample_t *sample)
{
    OBJ_RELEASE(sample->layout);
    free(sample->iovs);
    free(sample->starts);
    free(sample->iov_of);
}

static void draw_limits(typegen_rng_t *rng, const sample_t *sample, opal_iov_cache_limits_t *limits)
{
    limits->max_iovs = typegen_once_in(rng, 8) ? SIZE_MAX : 1 + typegen_below(rng, 20);
    limits->max_bytes =
        typegen_once_in(rng, 2) ? UINT64_MAX : 1 + typegen_below(rng, sample->layout->size + 9);
}

static uint64_t draw_chunk(typegen_rng_t *rng, const sample_t *sample)
{
    switch (typegen_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - typegen_below(rng, 3);
    case 2:
        return 1;
    case 3:
        return 8 * (1 + typegen_below(rng, 20));
    default:
        return 1 + typegen_below(rng, sample->layout->size + 9);
    }
}

/* IOVs that the bytes [start, start + length) touch */
static size_t touched(const sample_t *sample, uint64_t start, uint64_t length)
{
    return sample->iov_of[start + length - 1] - sample->iov_of[start] + 1;
}

/* The longest window by definition: one byte more each time. */
static uint64_t brute_window(const sample_t *sample, const opal_iov_cache_limits_t *limits,
                             uint64_t chunk, uint64_t start, uint64_t end)
{
    uint64_t length = 1;

    while (start + length < end && length < limits->max_bytes
           && (0 == chunk || (start + length) / chunk == start / chunk)
           && touched(sample, start, length + 1) <= limits->max_iovs) {
        ++length;
    }
    return length;
}

static bool brute_fits(const sample_t *sample, const opal_iov_cache_limits_t *limits, uint64_t size,
                       uint64_t chunk)
{
    uint64_t start, length;

    for (start = 0; start < size; start += length) {
        length = 0 == chunk || chunk > size - start ? size - start : chunk;
        if (length > limits->max_bytes || touched(sample, start, length) > limits->max_iovs) {
            return false;
        }
    }
    return true;
}

/* The definition of opal_iov_cache_chunk, word by word. */
static uint64_t brute_chunk(const sample_t *sample, const opal_iov_cache_limits_t *limits,
                            uint64_t size)
{
    const opal_iov_cache_layout_t *layout = sample->layout;
    uint64_t fewest = UINT64_MAX, length, start;
    size_t i;

    if (brute_fits(sample, limits, size, size)) {
        return size;
    }
    /* successive IOVs all of which have a byte among the first size */
    for (i = 0; i < layout->iov_count; ++i) {
        if (limits->max_iovs <= layout->iov_count - i
            && sample->starts[i + limits->max_iovs - 1] < size) {
            uint64_t end = sample->starts[i + limits->max_iovs];

            fewest = end - sample->starts[i] < fewest ? end - sample->starts[i] : fewest;
        }
    }
    /* for one key's worth of IOVs or less, only the bytes bound */
    if (touched(sample, 0, size) > limits->max_iovs && brute_fits(sample, limits, size, fewest)) {
        return fewest;
    }
    for (length = size < limits->max_bytes ? size : limits->max_bytes; 1 < length; --length) {
        bool good = true;

        for (start = 0; start + length <= size && good; ++start) {
            good = touched(sample, start, length) <= limits->max_iovs;
        }
        if (good) {
            break;
        }
    }
    return length;
}

static void windows_of(typegen_rng_t *rng, const sample_t *sample)
{
    const opal_iov_cache_layout_t *layout = sample->layout;
    opal_iov_cache_iov_t pieces[MAX_IOVS];
    opal_iov_cache_window_t window;
    opal_iov_cache_limits_t limits;
    uint64_t chunk = draw_chunk(rng, sample), start = 0, end = layout->size, position;
    size_t windows = 0, counted, i;

    draw_limits(rng, sample, &limits);
    if (typegen_once_in(rng, 2)) {
        start = typegen_below(rng, layout->size);
        end = start + 1 + typegen_below(rng, layout->size - start);
    }
    CHECK(OPAL_SUCCESS
          == opal_iov_cache_window_count(layout, &limits, chunk, start, end, &counted));
    for (position = start; position < end; position += window.length) {
        uint64_t stream = position;

        CHECK(OPAL_SUCCESS
              == opal_iov_cache_window(layout, &limits, chunk, position, end, &window));
        CHECK(window.start == position);
        CHECK(window.length == brute_window(sample, &limits, chunk, position, end));
        CHECK(window.iov_count == touched(sample, position, window.length));
        CHECK(window.iov_count == opal_iov_cache_window_iovs(layout, &window, pieces, MAX_IOVS));
        for (i = 0; i < window.iov_count; ++i) {
            uint64_t b;

            CHECK(0 < pieces[i].length);
            for (b = 0; b < pieces[i].length; ++b, ++stream) {
                size_t iov = sample->iov_of[stream];

                CHECK(iov == sample->iov_of[position] + i);
                CHECK(pieces[i].offset + (int64_t) b
                      == sample->iovs[iov].offset + (int64_t) (stream - sample->starts[iov]));
            }
        }
        CHECK(stream == window.start + window.length);
        ++windows;
    }
    CHECK(position == end);
    CHECK(windows == counted);
}

static void chunks_of(typegen_rng_t *rng, const sample_t *sample)
{
    opal_iov_cache_limits_t limits;
    uint64_t size = sample->layout->size, chunk;
    int i;

    draw_limits(rng, sample, &limits);
    if (typegen_once_in(rng, 3)) {
        size = 1 + typegen_below(rng, size);
    }
    for (i = 0; i < 20; ++i) {
        chunk = draw_chunk(rng, sample);
        if (size == sample->layout->size) {
            /* more than there is is all there is */
            CHECK(brute_fits(sample, &limits, size, chunk)
                  == opal_iov_cache_chunk_fits(sample->layout, &limits,
                                               size + typegen_below(rng, 1000), chunk));
        }
        CHECK(brute_fits(sample, &limits, size, chunk)
              == opal_iov_cache_chunk_fits(sample->layout, &limits, size, chunk));
    }
    chunk = opal_iov_cache_chunk(sample->layout, &limits, size);
    CHECK(1 <= chunk && chunk <= size);
    CHECK(brute_fits(sample, &limits, size, chunk));
    CHECK(brute_chunk(sample, &limits, size) == chunk);
}

static void agreement_of(typegen_rng_t *rng, const sample_t *send, const sample_t *recv)
{
    opal_iov_cache_limits_t limits;
    uint64_t size =
        send->layout->size < recv->layout->size ? send->layout->size : recv->layout->size;
    uint64_t proposal, agreed, expected, divisor, floor = typegen_below(rng, 40);

    draw_limits(rng, send, &limits);
    proposal = typegen_once_in(rng, 4) ? draw_chunk(rng, send)
                                       : opal_iov_cache_chunk(send->layout, &limits, size);
    draw_limits(rng, recv, &limits);
    agreed = opal_iov_cache_agree(recv->layout, &limits, size, proposal, floor);
    proposal = 0 == proposal ? size : proposal;

    CHECK(1 <= agreed && 0 == proposal % agreed);
    CHECK(agreed >= floor || agreed == proposal);
    CHECK(agreed == proposal || brute_fits(recv, &limits, size, agreed));
    /* the largest of those that are allowed */
    expected = proposal;
    for (divisor = 16; 1 <= divisor; --divisor) {
        if (0 == proposal % divisor && proposal / divisor >= floor
            && brute_fits(recv, &limits, size, proposal / divisor)) {
            expected = proposal / divisor;
        }
    }
    CHECK(expected == agreed);
}

static void random_layouts(void **state)
{
    uint64_t i;

    (void) state;
    for (i = 0; i < count; ++i) {
        sample_t one, two;
        typegen_rng_t rng;
        int k;

        current_seed = first_seed + i;
        typegen_seed(&rng, current_seed);
        sample_make(&rng, &one);
        sample_make(&rng, &two);
        for (k = 0; k < 8; ++k) {
            windows_of(&rng, &one);
            chunks_of(&rng, &one);
            agreement_of(&rng, &one, &two);
        }
        sample_free(&one);
        sample_free(&two);
    }
}

/* n blocks of the same length, a byte apart, at the far end of what 63 bits hold where asked for */
static opal_iov_cache_layout_t *uniform(size_t blocks, uint64_t length, int64_t offset)
{
    opal_iov_cache_iov_t *iovs = malloc(blocks * sizeof(*iovs));
    opal_iov_cache_layout_t *layout;
    size_t i;

    for (i = 0; i < blocks; ++i) {
        iovs[i].offset = offset + (int64_t) i * (int64_t) (length + 1);
        iovs[i].length = length;
    }
    layout = new_layout(iovs, blocks);
    free(iovs);
    return layout;
}

static void uniform_blocks(void **state)
{
    size_t max_iovs, blocks;

    (void) state;
    for (blocks = 1; blocks < 300; blocks += 1 + blocks / 10) {
        opal_iov_cache_layout_t *layout = uniform(blocks, 1024, 0);

        for (max_iovs = 1; max_iovs < 64; ++max_iovs) {
            opal_iov_cache_limits_t limits = {max_iovs, UINT64_MAX};
            uint64_t expected = 1024 * (max_iovs < blocks ? max_iovs : blocks);

            assert_int_equal(expected, opal_iov_cache_chunk(layout, &limits, layout->size));
            /* a receive that ends within a block is no reason for another chunk */
            if (max_iovs + 2 < blocks) {
                assert_int_equal(expected,
                                 opal_iov_cache_chunk(layout, &limits, layout->size - 1000));
            }
        }
        OBJ_RELEASE(layout);
    }
}

/* Equal vectors with equal keys agree on the proposal; other keys on a part of it. */
static void agreed_blocks(void **state)
{
    opal_iov_cache_layout_t *layout = uniform(1000, 1024, 0);
    opal_iov_cache_limits_t wide = {52, UINT64_MAX}, narrow = {4, UINT64_MAX};
    uint64_t proposal = opal_iov_cache_chunk(layout, &wide, layout->size);

    (void) state;
    assert_int_equal(52 * 1024, proposal);
    assert_int_equal(proposal, opal_iov_cache_agree(layout, &wide, layout->size, proposal, 1024));
    assert_int_equal(4 * 1024, opal_iov_cache_agree(layout, &narrow, layout->size, proposal, 1024));
    /* the part would be too small to be worth a write */
    assert_int_equal(proposal, opal_iov_cache_agree(layout, &narrow, layout->size, proposal, 8192));
    OBJ_RELEASE(layout);
}

static void wrong_arguments(void **state)
{
    opal_iov_cache_layout_t *layout = uniform(10, 8, 0), *empty = new_layout(NULL, 0);
    opal_iov_cache_limits_t good = {4, 100}, no_iovs = {0, 100}, no_bytes = {4, 0};
    opal_iov_cache_window_t window = {1, 2, 3};
    size_t windows = 77;

    (void) state;
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_window(layout, &good, 0, 5, 5, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_window(layout, &good, 0, 6, 5, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_window(layout, &good, 0, 0, 81, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_window(layout, &no_iovs, 0, 0, 80, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_window(layout, &no_bytes, 0, 0, 80, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_window(empty, &good, 0, 0, 0, &window));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_window_count(layout, &good, 0, 5, 5, &windows));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_window_count(layout, &good, 0, 0, 81, &windows));
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_window_count(layout, &no_iovs, 0, 0, 80, &windows));
    /* outputs are written only on success */
    assert_int_equal(77, windows);
    assert_int_equal(1, window.start);
    assert_int_equal(3, window.iov_count);

    assert_int_equal(0, opal_iov_cache_chunk(empty, &good, 0));
    assert_int_equal(0, opal_iov_cache_chunk(layout, &good, 0));
    assert_int_equal(0, opal_iov_cache_agree(layout, &good, 0, 64, 8));
    assert_true(opal_iov_cache_chunk_fits(empty, &good, 0, 8));
    assert_false(opal_iov_cache_chunk_fits(layout, &no_iovs, 80, 8));
    assert_false(opal_iov_cache_chunk_fits(layout, &no_bytes, 80, 8));
    OBJ_RELEASE(layout);
    OBJ_RELEASE(empty);
}

/* Streams of nearly 2^63 bytes, and chunks whose next border is beyond 2^64. */
static void huge(void **state)
{
    const uint64_t length = UINT64_C(1) << 57;
    opal_iov_cache_layout_t *layout = uniform(60, length, INT64_MIN);
    opal_iov_cache_limits_t limits = {52, UINT64_MAX}, bytes = {52, (UINT64_C(1) << 31) - 1};
    opal_iov_cache_window_t window;
    size_t windows;

    (void) state;
    assert_int_equal(52 * length, opal_iov_cache_chunk(layout, &limits, layout->size));
    assert_int_equal((UINT64_C(1) << 31) - 1, opal_iov_cache_chunk(layout, &bytes, layout->size));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_window(layout, &limits, UINT64_MAX - 1,
                                                         layout->size - 1, layout->size, &window));
    assert_int_equal(1, window.length);
    assert_int_equal(1, window.iov_count);
    assert_int_equal(59, opal_iov_cache_layout_find(layout, window.start));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_window_count(layout, &limits, UINT64_MAX, 0,
                                                               layout->size, &windows));
    assert_int_equal(2, windows);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_window_count(layout, &limits, length, 0,
                                                               layout->size, &windows));
    assert_int_equal(60, windows);
    /* as many chunks as there are bytes: must be decided by the IOVs, not chunk by chunk */
    assert_true(opal_iov_cache_chunk_fits(layout, &limits, layout->size, 1));
    limits.max_iovs = 1;
    assert_true(opal_iov_cache_chunk_fits(layout, &limits, layout->size, 1));
    assert_true(opal_iov_cache_chunk_fits(layout, &limits, layout->size, 2));
    assert_false(opal_iov_cache_chunk_fits(layout, &limits, layout->size, 3));
    assert_int_equal(length, opal_iov_cache_agree(layout, &limits, layout->size, 2 * length, 1));
    OBJ_RELEASE(layout);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts), cmocka_unit_test(uniform_blocks),
        cmocka_unit_test(agreed_blocks),  cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(huge),
    };

    if (1 < argc) {
        count = strtoull(argv[1], NULL, 0);
    }
    if (2 < argc) {
        first_seed = strtoull(argv[2], NULL, 0);
    }
    printf("test_window: %" PRIu64 " layouts from seed %" PRIu64 "\n", count, first_seed);
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
