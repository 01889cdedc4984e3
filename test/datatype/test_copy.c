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
 * Pack and unpack of blocks of every length that is copied in a way of its own, from and to every
 * alignment: each byte arrives, and none is written that is not of the layout.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "opal_config.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache_form.h"

#define BLOCKS    9
#define LONGEST   9000
#define GAP       37
#define MARGIN    256
#define PAGE      4096
#define ROOM      (PLACES * (LONGEST + GAP) + 2 * PAGE)
#define UNTOUCHED 0xa5

/* Where blocks without order are, in blocks; below PLACES. */
static const int places[BLOCKS] = {0, 1, 7, 9, 6, 12, 3, 10, 5};
#define PLACES 13

static unsigned char *memory, *stream, *expected;

static unsigned char value(size_t i)
{
    return (unsigned char) (i * 2654435761u >> 11);
}

static void fill(unsigned char *bytes)
{
    size_t i;

    for (i = 0; i < ROOM; ++i) {
        bytes[i] = value(i);
    }
}

/* Blocks of @p pieces, the buffer @p shift bytes into a page, the stream @p behind that. */
static void expect_copies(const opal_iov_cache_iov_t *pieces, size_t n, size_t shift, size_t behind)
{
    unsigned char *buffer = memory + MARGIN + shift;
    unsigned char *packed = stream + MARGIN + shift + behind;
    opal_iov_cache_form_t *form;
    uint64_t size = 0;
    size_t i;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(pieces, n, &form));
    fill(memory);
    memset(stream, UNTOUCHED, ROOM);
    memset(expected, UNTOUCHED, ROOM);
    for (i = 0; i < n; ++i) {
        memcpy(expected + (packed - stream) + size, buffer + pieces[i].offset, pieces[i].length);
        size += pieces[i].length;
    }
    assert_int_equal(size, form->size);
    assert_int_equal(size, opal_iov_cache_form_pack(form, buffer, 0, size, packed));
    assert_memory_equal(expected, stream, ROOM);

    fill(stream);
    memset(memory, UNTOUCHED, ROOM);
    memset(expected, UNTOUCHED, ROOM);
    for (i = 0, size = 0; i < n; ++i) {
        memcpy(expected + (buffer - memory) + pieces[i].offset, packed + size, pieces[i].length);
        size += pieces[i].length;
    }
    assert_int_equal(size, opal_iov_cache_form_unpack(form, buffer, 0, size, packed));
    assert_memory_equal(expected, memory, ROOM);
    opal_iov_cache_form_free(form);
}

/* A vector, and the same blocks without order. */
static void expect_length(size_t length, size_t shift, size_t behind)
{
    opal_iov_cache_iov_t pieces[BLOCKS];
    size_t i;

    for (i = 0; i < BLOCKS; ++i) {
        pieces[i].offset = (int64_t) (i * (length + GAP));
        pieces[i].length = length;
    }
    expect_copies(pieces, BLOCKS, shift, behind);
    for (i = 0; i < BLOCKS; ++i) {
        pieces[i].offset = (int64_t) ((size_t) places[i] * (length + GAP));
    }
    expect_copies(pieces, BLOCKS, shift, behind);
}

static void short_blocks(void **state)
{
    size_t length, shift;

    (void) state;
    for (length = 1; length <= 300; ++length) {
        for (shift = 0; shift < 16; shift += 5) {
            expect_length(length, shift, 3 * shift % 16);
        }
    }
}

/* The destination a little behind the source within a page, for both ways. */
static void long_blocks(void **state)
{
    const size_t lengths[] = {2047, 2048, 2049, 2050, 2111, 2112, 2113, 3000, 4096, 4097, LONGEST};
    size_t i, shift, behind;

    (void) state;
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        for (behind = 0; behind <= 70; ++behind) {
            shift = behind * 7 % 16;
            expect_length(lengths[i], shift, behind);
            expect_length(lengths[i], 80 + shift, (size_t) 0 - behind);
        }
    }
}

/* Lists with stretches of one length, as long as are looked at together and a little off that. */
static void stretches(void **state)
{
    const size_t counts[] = {1, 255, 3, 256, 257, 2, 1, 513, 511, 512, 4, 1};
    const size_t lengths[] = {8, 24, 7, 4, 12, 40, 8, 16, 8, 32, 24, 9};
    opal_iov_cache_iov_t *pieces = malloc(2400 * sizeof(*pieces));
    size_t kinds = sizeof(counts) / sizeof(counts[0]), first, i, k, n;

    (void) state;
    assert_non_null(pieces);
    for (first = 0; first < kinds; ++first) {
        for (i = first, n = 0; i < kinds; ++i) {
            for (k = 0; k < counts[i]; ++k, ++n) {
                pieces[n].offset = (int64_t) (n * 997 % 2399 * 42 + n % 2);
                pieces[n].length = lengths[i];
            }
        }
        expect_copies(pieces, n, first, 3 * first);
    }
    free(pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_blocks),
        cmocka_unit_test(long_blocks),
        cmocka_unit_test(stretches),
    };
    int rc;

    memory = aligned_alloc(PAGE, (ROOM / PAGE + 1) * PAGE);
    stream = aligned_alloc(PAGE, (ROOM / PAGE + 1) * PAGE);
    expected = malloc(ROOM);
    if (NULL == memory || NULL == stream || NULL == expected) {
        return 1;
    }
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(memory);
    free(stream);
    free(expected);
    return rc;
}
