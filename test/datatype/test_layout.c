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
 * Layouts of single types whose pieces are written down here by hand.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#define KIB ((int64_t) 1024)
#define GIB (KIB * KIB * KIB)

typedef struct {
    int64_t offset;
    uint64_t length;
} piece_t;

static opal_iov_cache_layout_t *make(MPI_Datatype type, size_t count)
{
    opal_iov_cache_layout_t *layout = NULL;

    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_layout_create(opal_type(type), count, &layout));
    assert_non_null(layout);
    return layout;
}

/* Compare with pieces written by hand; the rest of the fields follows from those. */
static void expect_layout(opal_iov_cache_layout_t *layout, const piece_t *pieces, size_t count)
{
    uint64_t position = 0;
    size_t i;

    assert_int_equal(count, layout->iov_count);
    for (i = 0; i < count; ++i) {
        assert_int_equal(pieces[i].offset, opal_iov_cache_layout_iov(layout, i).offset);
        assert_int_equal(pieces[i].length, opal_iov_cache_layout_iov(layout, i).length);
        assert_int_equal(position, opal_iov_cache_layout_start(layout, i));
        position += pieces[i].length;
    }
    assert_int_equal(position, layout->size);
    OBJ_RELEASE(layout);
}

/* The pieces of a type that is consumed. */
#define EXPECT(TYPE, COUNT, ...)                                                          \
    do {                                                                                  \
        const piece_t pieces_[] = {__VA_ARGS__};                                          \
        MPI_Datatype type_ = (TYPE);                                                      \
        MPI_Type_commit(&type_);                                                          \
        expect_layout(make(type_, COUNT), pieces_, sizeof(pieces_) / sizeof(pieces_[0])); \
        MPI_Type_free(&type_);                                                            \
    } while (0)

static void empty(void **state)
{
    opal_iov_cache_layout_t *layout;
    MPI_Datatype type;
    int length = 0, displacement = 7;

    (void) state;
    layout = make(MPI_DOUBLE, 0);
    assert_int_equal(0, layout->iov_count);
    assert_int_equal(0, layout->size);
    assert_int_equal(0, layout->lb);
    assert_int_equal(0, layout->ub);
    assert_true(opal_iov_cache_layout_is_contiguous(layout));
    assert_int_equal(0, opal_iov_cache_layout_find(layout, 0));
    OBJ_RELEASE(layout);

    MPI_Type_indexed(1, &length, &displacement, MPI_INT, &type);
    MPI_Type_commit(&type);
    layout = make(type, 1000);
    assert_int_equal(0, layout->iov_count);
    assert_int_equal(0, layout->size);
    OBJ_RELEASE(layout);
    /* no bytes, so no number of them is too many */
    layout = make(type, SIZE_MAX);
    assert_int_equal(0, layout->size);
    OBJ_RELEASE(layout);
    MPI_Type_free(&type);
}

static void contiguous(void **state)
{
    MPI_Datatype type, inner;
    opal_iov_cache_layout_t *layout;

    (void) state;
    layout = make(MPI_DOUBLE, 5);
    assert_true(opal_iov_cache_layout_is_contiguous(layout));
    expect_layout(layout, &(piece_t){0, 40}, 1);
    MPI_Type_contiguous(10, MPI_INT, &type);
    EXPECT(type, 3, {0, 120});
    /* blocks that touch */
    MPI_Type_vector(10, 4, 4, MPI_INT, &type);
    EXPECT(type, 2, {0, 320});
    /* contiguous, but not at the address */
    MPI_Type_create_hindexed_block(1, 16, &(MPI_Aint){-48}, MPI_BYTE, &type);
    EXPECT(type, 1, {-48, 16});
    /* contiguous with gaps between the copies */
    MPI_Type_contiguous(3, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 16, &type);
    MPI_Type_free(&inner);
    EXPECT(type, 3, {0, 12}, {16, 12}, {32, 12});
}

static void constructors(void **state)
{
    MPI_Datatype type, inner;
    int sizes[2] = {4, 6}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
    int lengths[4] = {2, 0, 1, 3}, displacements[4] = {10, 3, 0, 4};
    MPI_Aint places[3] = {40, -8, 16};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_SHORT};

    (void) state;
    MPI_Type_vector(3, 2, 5, MPI_INT, &type);
    EXPECT(type, 1, {0, 8}, {20, 8}, {40, 8});
    MPI_Type_vector(3, 1, -2, MPI_DOUBLE, &type);
    EXPECT(type, 1, {0, 8}, {-16, 8}, {-32, 8});
    MPI_Type_indexed(4, lengths, displacements, MPI_INT, &type);
    EXPECT(type, 1, {40, 8}, {0, 4}, {16, 12});
    MPI_Type_create_struct(3, (int[]){1, 2, 1}, places, types, &type);
    EXPECT(type, 1, {40, 4}, {-8, 16}, {16, 2});
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
    EXPECT(type, 1, {32, 12}, {56, 12});
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
    EXPECT(type, 1, {36, 8}, {52, 8}, {68, 8});
    /* columns of a 4 x 3 matrix of int, which is its transpose: each copy one int further */
    MPI_Type_vector(4, 1, 3, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 4, &type);
    MPI_Type_free(&inner);
    EXPECT(type, 2, {0, 4}, {12, 4}, {24, 4}, {36, 4}, {4, 4}, {16, 4}, {28, 4}, {40, 4});
    /* in stream order, although memory would allow a merge the other way round */
    MPI_Type_create_indexed_block(2, 1, (int[]){1, 0}, MPI_INT, &type);
    EXPECT(type, 1, {4, 4}, {0, 4});
}

/* The last piece of a copy and the first of the next are one, also where a batch ends between. */
static void merging(void **state)
{
    const size_t counts[] = {1, 2, 127, 128, 129, 254, 255, 256, 257, 511, 512, 513, 5000};
    MPI_Datatype type;
    size_t c, i;

    (void) state;
    MPI_Type_create_hindexed(2, (int[]){8, 8}, (MPI_Aint[]){0, 24}, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c) {
        opal_iov_cache_layout_t *layout = make(type, counts[c]);

        assert_int_equal(counts[c] + 1, layout->iov_count);
        assert_int_equal(16 * counts[c], layout->size);
        assert_int_equal(0, opal_iov_cache_layout_iov(layout, 0).offset);
        assert_int_equal(8, opal_iov_cache_layout_iov(layout, 0).length);
        for (i = 1; i < counts[c]; ++i) {
            assert_int_equal(32 * i - 8, opal_iov_cache_layout_iov(layout, i).offset);
            assert_int_equal(16, opal_iov_cache_layout_iov(layout, i).length);
        }
        assert_int_equal(8, opal_iov_cache_layout_iov(layout, counts[c]).length);
        OBJ_RELEASE(layout);
    }
    MPI_Type_free(&type);
}

/* Numbers of IOVs around the size of a batch, and deep loops interrupted in the middle. */
static void batches(void **state)
{
    int count, i;

    (void) state;
    for (count = 250; count < 520; ++count) {
        MPI_Datatype vector, type;
        opal_iov_cache_layout_t *layout;

        MPI_Type_vector(count, 1, 2, MPI_INT, &vector);
        MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8 * count},
                               (MPI_Datatype[]){vector, MPI_DOUBLE}, &type);
        MPI_Type_commit(&type);
        layout = make(type, 3);
        assert_int_equal(3 * (4 * count + 8), layout->size);
        /* the double of a copy touches the first int of the next */
        assert_int_equal(3 * count + 3 - 2, layout->iov_count);
        for (i = 0; i < count; ++i) {
            assert_int_equal(8 * i, opal_iov_cache_layout_iov(layout, i).offset);
        }
        assert_int_equal(12, opal_iov_cache_layout_iov(layout, count).length);
        OBJ_RELEASE(layout);
        MPI_Type_free(&type);
        MPI_Type_free(&vector);
    }
}

/* Arithmetic only: no such memory exists. */
static void large(void **state)
{
    MPI_Datatype gib, type;
    opal_iov_cache_layout_t *layout;
    const size_t many = (size_t) 3 << 40;
    size_t i;

    (void) state;
    /* a piece of 6 GiB, and as many copies as a size_t has */
    MPI_Type_contiguous(1 << 28, MPI_INT, &gib);
    MPI_Type_commit(&gib);
    expect_layout(make(gib, 6), &(piece_t){0, 6 * GIB}, 1);
    expect_layout(make(MPI_BYTE, many), &(piece_t){0, many}, 1);
    expect_layout(make(MPI_BYTE, INT64_MAX), &(piece_t){0, INT64_MAX}, 1);

    /* pieces of 1 GiB, 3 GiB apart, also downwards */
    MPI_Type_create_hvector(4, 1, 3 * GIB, gib, &type);
    EXPECT(type, 1, {0, GIB}, {3 * GIB, GIB}, {6 * GIB, GIB}, {9 * GIB, GIB});
    MPI_Type_create_hvector(4, 1, -3 * GIB, gib, &type);
    EXPECT(type, 1, {0, GIB}, {-3 * GIB, GIB}, {-6 * GIB, GIB}, {-9 * GIB, GIB});
    /* pieces longer than 4 GiB */
    MPI_Type_create_hvector(2, 5, 7 * GIB, gib, &type);
    EXPECT(type, 1, {0, 5 * GIB}, {7 * GIB, 5 * GIB});
    /* far away on both sides */
    MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){-5000 * GIB, 7000 * GIB}, MPI_INT, &type);
    EXPECT(type, 1, {-5000 * GIB, 4}, {7000 * GIB, 4});

    /* copies far apart: offsets of 2^50 and more */
    MPI_Type_create_resized(MPI_DOUBLE, 0, 4096 * GIB, &type);
    MPI_Type_commit(&type);
    layout = make(type, 1000);
    assert_int_equal(1000, layout->iov_count);
    for (i = 0; i < 1000; ++i) {
        assert_int_equal((int64_t) i * 4096 * GIB, opal_iov_cache_layout_iov(layout, i).offset);
    }
    assert_int_equal(999 * 4096 * GIB + 8, layout->ub);
    OBJ_RELEASE(layout);
    MPI_Type_free(&type);
    MPI_Type_free(&gib);
}

static void refused(void **state)
{
    opal_iov_cache_layout_t *layout = (opal_iov_cache_layout_t *) &large;
    MPI_Datatype type, down;

    (void) state;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_layout_create(opal_type(type), 1, &layout));
    MPI_Type_free(&type);
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_layout_create(NULL, 1, &layout));

    /* too many bytes */
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_layout_create(
                                             opal_type(MPI_BYTE), (size_t) INT64_MAX + 1, &layout));
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_layout_create(opal_type(MPI_DOUBLE),
                                                                      (size_t) 1 << 60, &layout));
    /* too many bytes, within a small extent: the copies overlap */
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &down);
    MPI_Type_create_resized(down, 0, 1, &type);
    MPI_Type_free(&down);
    MPI_Type_commit(&type);
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_layout_create(opal_type(type), (size_t) 1 << 44, &layout));
    MPI_Type_free(&type);
    /* few bytes, but too far apart */
    MPI_Type_create_resized(MPI_BYTE, 0, (MPI_Aint) 1 << 61, &type);
    MPI_Type_commit(&type);
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_layout_create(opal_type(type), 5, &layout));
    /* downwards */
    MPI_Type_create_hindexed_block(1, 1, &(MPI_Aint){-((MPI_Aint) 1 << 62)}, type, &down);
    MPI_Type_commit(&down);
    /* outputs are written only on success */
    assert_ptr_equal(layout, (opal_iov_cache_layout_t *) &large);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_layout_create(opal_type(down), 1, &layout));
    OBJ_RELEASE(layout);
    MPI_Type_free(&down);
    MPI_Type_free(&type);
}

/* Absolute addresses of memory that cannot be read: any look at it would be the end of this test.
 */
static void absolute(void **state)
{
    const size_t bytes = 1 << 20;
    unsigned char *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Datatype vector, type;
    MPI_Aint address;
    opal_iov_cache_layout_t *layout;
    size_t i;

    (void) state;
    assert_ptr_not_equal(MAP_FAILED, memory);
    MPI_Get_address(memory, &address);
    MPI_Type_vector(256, 16, 64, MPI_BYTE, &vector);
    MPI_Type_create_hindexed_block(1, 1, &address, vector, &type);
    MPI_Type_commit(&type);
    layout = make(type, 1);
    assert_int_equal(256, layout->iov_count);
    for (i = 0; i < 256; ++i) {
        assert_int_equal((int64_t) (intptr_t) memory + 64 * (int64_t) i,
                         opal_iov_cache_layout_iov(layout, i).offset);
        assert_int_equal(16, opal_iov_cache_layout_iov(layout, i).length);
    }
    OBJ_RELEASE(layout);
    MPI_Type_free(&type);
    MPI_Type_free(&vector);

    /* one piece: the short way through the convertor */
    MPI_Type_create_hindexed(1, &(int){4096}, &address, MPI_BYTE, &type);
    EXPECT(type, 1, {(int64_t) (intptr_t) memory, 4096});
    munmap(memory, bytes);
}

static void identity(void **state)
{
    opal_iov_cache_layout_t *first = make(MPI_INT, 1), *second = make(MPI_INT, 1);
    uint64_t id = second->id;

    (void) state;
    assert_int_not_equal(0, first->id);
    assert_int_not_equal(first->id, second->id);
    OBJ_RELEASE(second);
    second = make(MPI_INT, 1);
    assert_int_not_equal(id, second->id);
    OBJ_RELEASE(second);
    OBJ_RELEASE(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty),   cmocka_unit_test(contiguous), cmocka_unit_test(constructors),
        cmocka_unit_test(merging), cmocka_unit_test(batches),    cmocka_unit_test(large),
        cmocka_unit_test(refused), cmocka_unit_test(absolute),   cmocka_unit_test(identity),
    };
    int failed;

    singleton_init(MPI_THREAD_SINGLE);
    failed = cmocka_run_group_tests_name("layouts", tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
