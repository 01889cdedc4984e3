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
 * Forms of single types: what the tree looks like, and layouts too large to be tried byte by byte.
 */

#include "test_form.h"

static void trees(void **state)
{
    const int sizes[3] = {10, 20, 30}, subsizes[3] = {4, 5, 6}, starts[3] = {1, 2, 3};
    const int lengths[3] = {1, 1, 1};
    const MPI_Aint places[3] = {0, 8, 24};
    const MPI_Datatype fields[3] = {MPI_INT, MPI_DOUBLE, MPI_INT};
    opal_iov_cache_form_t *form;
    MPI_Datatype type;

    (void) state;
    /* dense folding: any stream of neighbours is a block */
    MPI_Type_vector(16, 4, 4, MPI_INT, &type);
    form = make(type, 3);
    assert_int_equal(1, form->term_count);
    expect_term(form, 0, 0, 1, 0, 3 * 256, OPAL_IOV_CACHE_DENSE);
    opal_iov_cache_form_free(form);

    /* stream flattening: the count goes on where the vector ends */
    form = make(resized(hvector(MPI_DOUBLE, 5, 16), 0, 80), 7);
    assert_int_equal(1, form->term_count);
    expect_term(form, 0, 0, 35, 16, 8, OPAL_IOV_CACHE_DENSE);
    assert_int_equal(8, form->uniform);
    opal_iov_cache_form_free(form);

    /* three dimensions: two streams */
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    form = make(type, 1);
    assert_int_equal(2, form->term_count);
    expect_term(form, 0, 8 * (600 + 60 + 3), 4, 8 * 600, 8 * 30, OPAL_IOV_CACHE_TERMS);
    expect_term(form, 1, 0, 5, 8 * 30, 8 * 6, OPAL_IOV_CACHE_DENSE);
    assert_int_equal(2, form->depth);
    opal_iov_cache_form_free(form);

    /* an array of structs whose last field and first one touch */
    MPI_Type_create_struct(3, lengths, places, fields, &type);
    form = make(resized(type, 0, 28), 1000);
    assert_int_equal(4, form->term_count);
    expect_term(form, 0, 0, 1000, 28, 16, OPAL_IOV_CACHE_TERMS);
    assert_int_equal(OPAL_IOV_CACHE_ADJACENT, form->terms[0].flags);
    assert_int_equal(3, form->terms[0].segments);
    assert_int_equal(2001, form->segments);
    assert_int_equal(0, form->uniform);
    expect_iov(form, 12, 24, 8);
    assert_int_equal(2, opal_iov_cache_form_segment_at(form, 17));
    assert_int_equal(12, opal_iov_cache_form_segment_start(form, 2));
    assert_int_equal(20, opal_iov_cache_form_segment_start(form, 3));
    opal_iov_cache_form_free(form);
}

/* 2^40 blocks, 2^43 bytes; too many to count one by one. */
static void huge(void **state)
{
    opal_iov_cache_form_t *form;
    uint64_t blocks = UINT64_C(1) << 40, next;
    opal_iov_cache_iov_t iovs[3];

    (void) state;
    form = make(hvector(hvector(MPI_DOUBLE, 1 << 20, 24), 1 << 20, 64 * KIB * KIB), 1);
    assert_true(1024 > opal_iov_cache_form_bytes(form));
    assert_int_equal(blocks, form->segments);
    assert_int_equal(8 * blocks, form->size);
    assert_int_equal(8, opal_iov_cache_form_density(form));
    assert_int_equal(8 * (blocks - 1), opal_iov_cache_form_segment_start(form, blocks - 1));
    assert_int_equal(blocks - 1, opal_iov_cache_form_segment_at(form, 8 * blocks - 1));
    assert_int_equal(3, opal_iov_cache_form_iovs(form, (UINT64_C(8) << 20) * 1000 - 4, form->size,
                                                 iovs, 3, &next));
    assert_int_equal(999 * 64 * KIB * KIB + 24 * ((1 << 20) - 1) + 4, iovs[0].offset);
    assert_int_equal(4, iovs[0].length);
    assert_int_equal(1000 * 64 * KIB * KIB, iovs[1].offset);
    assert_int_equal(1000 * 64 * KIB * KIB + 24, iovs[2].offset);
    opal_iov_cache_form_free(form);

    form = make(resized(hvector(MPI_INT, 3, -8), -16, 64), (size_t) 1 << 40);
    assert_int_equal(3 * blocks, form->segments);
    assert_int_equal(-16, form->lb);
    assert_int_equal(64 * TIB - 64 + 4, form->ub);
    opal_iov_cache_form_free(form);
}

/* Chunks of 2^40 structs are those of some thousands; not all are tried. */
static void huge_chunks(void **state)
{
    const opal_iov_cache_limits_t limits = {52, UINT64_MAX};
    const int lengths[3] = {1, 1, 1};
    const MPI_Aint places[3] = {0, 8, 24};
    const MPI_Datatype fields[3] = {MPI_INT, MPI_DOUBLE, MPI_INT};
    const size_t counts[2] = {3000, (size_t) 1 << 40};
    opal_iov_cache_layout_t *layouts[2];
    opal_iov_cache_window_t window;
    uint64_t chunk, extent;
    MPI_Datatype type;
    int i;

    (void) state;
    for (extent = 28; extent <= 32; extent += 4) { /* of 28: a struct touches the next */
        MPI_Type_create_struct(3, lengths, places, fields, &type);
        type = resized(type, 0, (int64_t) extent);
        MPI_Type_commit(&type);
        for (i = 0; i < 2; ++i) {
            assert_int_equal(OPAL_SUCCESS,
                             opal_iov_cache_layout_create(opal_type(type), counts[i], &layouts[i]));
        }
        chunk = opal_iov_cache_chunk(layouts[0], &limits, layouts[0]->size);
        assert_true(8 * 52 / 2 <= chunk && 16 * 52 >= chunk);
        assert_int_equal(chunk, opal_iov_cache_chunk(layouts[1], &limits, layouts[1]->size));
        for (chunk = 1; chunk < 700; ++chunk) {
            assert_int_equal(
                opal_iov_cache_chunk_fits(layouts[0], &limits, layouts[0]->size, chunk),
                opal_iov_cache_chunk_fits(layouts[1], &limits, layouts[1]->size, chunk));
        }
        assert_int_equal(OPAL_SUCCESS,
                         opal_iov_cache_window(layouts[1], &limits, 0, layouts[1]->size - 16 * 100,
                                               layouts[1]->size, &window));
        assert_int_equal(52, window.iov_count);
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
        MPI_Type_free(&type);
    }
}

static void refused(void **state)
{
    const opal_iov_cache_iov_t far[2] = {{0, 8}, {INT64_MAX - 4, 8}};
    const opal_iov_cache_iov_t large[2] = {{INT64_MIN, UINT64_C(1) << 62}, {0, UINT64_C(1) << 62}};
    opal_iov_cache_form_t *form = NULL;
    MPI_Datatype type;

    (void) state;
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_form_create(NULL, 1, &form));
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_form_create(opal_type(type), 1, &form));
    MPI_Type_commit(&type);
    assert_int_equal(OPAL_ERR_BAD_PARAM,
                     opal_iov_cache_form_create(opal_type(type), (size_t) 1 << 62, &form));
    MPI_Type_free(&type);
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_form_of_pieces(far, 2, &form));
    assert_int_equal(OPAL_ERR_BAD_PARAM, opal_iov_cache_form_of_pieces(large, 2, &form));
    assert_null(form);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(far, 1, &form));
    opal_iov_cache_form_free(form);
}

/* More levels than a form has: blocks, the same ones. */
static void deep(void **state)
{
    opal_iov_cache_form_t *form;
    MPI_Datatype type = MPI_DOUBLE;
    int64_t stride = 24, levels = 18, i;
    uint64_t block, bit;

    (void) state;
    for (i = 0; i < levels; ++i, stride *= 3) {
        type = hvector(type, 2, stride);
    }
    form = make(type, 1);
    assert_int_equal(UINT64_C(1) << levels, form->segments);
    assert_int_equal(form->segments, form->block_count);
    for (block = 0; block < form->segments; block += 1 + block / 7) {
        int64_t offset = 0;

        for (bit = 0, stride = 24; bit < (uint64_t) levels; ++bit, stride *= 3) {
            offset += block >> bit & 1 ? stride : 0;
        }
        expect_iov(form, 8 * block, offset, 8);
    }
    opal_iov_cache_form_free(form);
}

static void order(void **state)
{
    opal_iov_cache_form_t *rows, *columns, *back, *sorted[3];

    (void) state;
    rows = make(hvector(hvector(MPI_DOUBLE, 30, 256), 30, 8192), 1);
    columns = make(hvector(hvector(MPI_DOUBLE, 30, 8192), 30, 256), 1);
    back = make(hvector(hvector(MPI_DOUBLE, 30, -8192), 30, 256), 1);
    assert_false(opal_iov_cache_form_equal(rows, columns));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_sorted(rows, &sorted[0]));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_sorted(columns, &sorted[1]));
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_sorted(back, &sorted[2]));
    assert_true(opal_iov_cache_form_equal(rows, sorted[0]));
    assert_true(opal_iov_cache_form_equal(rows, sorted[1]));
    assert_false(opal_iov_cache_form_equal(rows, sorted[2]));
    expect_term(sorted[2], 0, -29 * 8192, 30, 8192, 240, OPAL_IOV_CACHE_TERMS);
    opal_iov_cache_form_free(rows);
    opal_iov_cache_form_free(columns);
    opal_iov_cache_form_free(back);
    opal_iov_cache_form_free(sorted[0]);
    opal_iov_cache_form_free(sorted[1]);
    opal_iov_cache_form_free(sorted[2]);

    /* columns of a dense matrix, in order: no longer streams at all */
    columns = make(hvector(hvector(MPI_DOUBLE, 100, 800), 100, 8), 1);
    assert_int_equal(10000, columns->segments);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_sorted(columns, &sorted[0]));
    assert_int_equal(1, sorted[0]->segments);
    opal_iov_cache_form_free(columns);
    opal_iov_cache_form_free(sorted[0]);
}

/* Vectors against a contiguous buffer are one pair, whatever their count. */
static void pairs(void **state)
{
    opal_iov_cache_form_t *vector = make(hvector(MPI_DOUBLE, 1000, 32), 1), *dense, *wide;
    opal_iov_cache_pairs_t walk;
    opal_iov_cache_pair_t pair;
    MPI_Datatype type;

    (void) state;
    MPI_Type_contiguous(1000, MPI_DOUBLE, &type);
    dense = make(type, 1);
    opal_iov_cache_pairs_init(&walk, vector, dense, 4, 8000);
    assert_true(opal_iov_cache_pairs_next(&walk, &pair));
    assert_int_equal(4, pair.length);
    assert_int_equal(1, pair.count);
    assert_true(opal_iov_cache_pairs_next(&walk, &pair));
    assert_int_equal(8, pair.position);
    assert_int_equal(8, pair.length);
    assert_int_equal(999, pair.count);
    assert_int_equal(32, pair.offset[0]);
    assert_int_equal(8, pair.offset[1]);
    assert_int_equal(32, pair.stride[0]);
    assert_int_equal(8, pair.stride[1]);
    assert_false(opal_iov_cache_pairs_next(&walk, &pair));

    wide = make(hvector(MPI_DOUBLE, 2000, -64), 1);
    opal_iov_cache_pairs_init(&walk, wide, vector, 0, UINT64_MAX);
    assert_true(opal_iov_cache_pairs_next(&walk, &pair));
    assert_int_equal(1000, pair.count);
    assert_int_equal(-64, pair.stride[0]);
    assert_int_equal(32, pair.stride[1]);
    assert_false(opal_iov_cache_pairs_next(&walk, &pair));
    opal_iov_cache_form_free(vector);
    opal_iov_cache_form_free(dense);
    opal_iov_cache_form_free(wide);
}

/* The first 63 bits of a number. */
#define ONES  "\377\377\377\377\377\377\377\377\377"
#define ZEROS "\200\200\200\200\200\200\200\200\200"

/* Headers that lie; random_forms changes what is behind them. */
static void portable(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int rc;
    } cases[] = {
        {"", 0, OPAL_ERR_BAD_PARAM},
        {"UDL", 3, OPAL_ERR_BAD_PARAM},
        {"UDLF", 4, OPAL_ERR_BAD_PARAM},
        {"UDLG\1\0\0", 7, OPAL_ERR_BAD_PARAM},
        {"UDLF\2\0\0", 7, OPAL_ERR_NOT_SUPPORTED},
        {"UDLF\1\0", 6, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\0\0\0", 8, OPAL_ERR_BAD_PARAM},
        /* terms and blocks for which there is no memory, and which these bytes cannot hold */
        {"UDLF\1\377\377\377\377\17\0", 11, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\0\377\377\377\377\17", 11, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\377\377\377\377\377\377\377\377\377\2\0", 16, OPAL_ERR_BAD_PARAM},
        /* a number that is longer than it need be */
        {"UDLF\1\200\0\0", 8, OPAL_ERR_BAD_PARAM},
        /* one block of 8 bytes; of 0; of no kind; a body that is its own */
        {"UDLF\1\1\0\0\0\1\10", 11, OPAL_SUCCESS},
        {"UDLF\1\1\0\0\0\1\0", 11, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\1\0\3\0\1\10", 11, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\1\0\1\0\1\1", 11, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\0\0", 7, OPAL_SUCCESS},
        /* a body in a body that begins 2^63 before where it is looked for, and its bytes 2^62
         * behind that; all of it two bytes lower: that leaves 63 bits on the way; so far apart */
        {"UDLF\1\3\0\1\4\1\1\1" ONES "\1\1\1\0" ZEROS "\1\1\10", 37, OPAL_SUCCESS},
        {"UDLF\1\3\0\1\3\1\1\1" ONES "\1\1\1\0" ZEROS "\1\1\10", 37, OPAL_ERR_BAD_PARAM},
        {"UDLF\1\1\0\0\0\2" ONES "\1\10", 21, OPAL_ERR_BAD_PARAM},
    };
    size_t i;

    (void) state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        opal_iov_cache_form_t *form = NULL;

        assert_int_equal(cases[i].rc,
                         opal_iov_cache_form_unflatten(cases[i].bytes, cases[i].n, &form));
        assert_int_equal(OPAL_SUCCESS == cases[i].rc, NULL != form);
        opal_iov_cache_form_free(form);
    }
}

/* 126 repetitions, a byte apart, of 17 times one byte. No canonical form has it. From the
 * middle of a repetition on, the first of the next one's segments goes on where the last one ended,
 * and the others do not, though each of them is all of a repetition's IOVs. */
static void one_segment_each(void **state)
{
    static const char flat[] = "UDLF\1\3\0\1\0~\2\1\1\0\21\0\1\0\1\1\1";
    opal_iov_cache_iov_t iovs[16];
    opal_iov_cache_form_t *form;
    uint64_t start, next, bytes;
    size_t count, i;

    (void) state;
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_unflatten(flat, sizeof(flat) - 1, &form));
    assert_int_equal(126 * 17, form->size);
    for (start = 0; start < form->size; start = next) {
        for (uint64_t at = start; at < start + 17 && at < form->size; ++at) {
            count = opal_iov_cache_form_iovs(form, at, form->size, iovs, 16, &next);
            for (bytes = 0, i = 0; i < count; ++i) {
                assert_int_equal(opal_iov_cache_form_offset(form, at + bytes), iovs[i].offset);
                bytes += iovs[i].length;
            }
            assert_int_equal(at + bytes, next);
        }
        (void) opal_iov_cache_form_iovs(form, start, form->size, iovs, 16, &next);
    }
    opal_iov_cache_form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),   cmocka_unit_test(huge),     cmocka_unit_test(huge_chunks),
        cmocka_unit_test(refused), cmocka_unit_test(deep),     cmocka_unit_test(order),
        cmocka_unit_test(pairs),   cmocka_unit_test(portable), cmocka_unit_test(one_segment_each),
    };
    int failed;

    singleton_init(MPI_THREAD_SINGLE);
    failed = cmocka_run_group_tests_name("form", tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
