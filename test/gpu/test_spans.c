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
 * A few pieces at odd places, or of odd lengths, in a layout of long ones: one launch, in which all
 * other bytes go in wide accesses. Counted by the width of the stores.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "opal_config.h"

#include "opal/constants.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_host.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

#define MAX_PIECES 4096
#define MAX_LIST   ((size_t) 1 << 20)

/* A layout in memory of its own. */
typedef struct {
    opal_iov_cache_form_t *form;
    opal_umrddt_gpu_map_t *map; /* NULL: a packed stream */
    unsigned char *memory;
    unsigned char *buffer; /* in it */
    size_t bytes;          /* of memory */
} side_t;

static opal_iov_cache_iov_t pieces[MAX_PIECES];
static size_t n_pieces;
static int64_t next_piece;

static void no_pieces(int64_t at)
{
    n_pieces = 0;
    next_piece = at;
}

/* One more piece, and a gap behind it. */
static void add(uint64_t length, int64_t gap)
{
    assert_true(MAX_PIECES > n_pieces);
    pieces[n_pieces].offset = next_piece;
    pieces[n_pieces++].length = length;
    next_piece += (int64_t) length + gap;
}

/* @param[in] align  bytes from an aligned address to the buffer */
static void make_side(side_t *side, size_t align, size_t max_list)
{
    size_t i;

    assert_int_equal(opal_iov_cache_form_of_pieces(pieces, n_pieces, &side->form), OPAL_SUCCESS);
    assert_int_equal(
        opal_umrddt_gpu_map_create(side->form, OPAL_UMRDDT_GPU_AUTO, max_list, &side->map),
        OPAL_SUCCESS);
    side->bytes = (size_t) next_piece + 64;
    assert_int_equal(posix_memalign((void **) &side->memory, 64, side->bytes), 0);
    side->buffer = side->memory + align;
    for (i = 0; i < side->bytes; ++i) {
        side->memory[i] = (unsigned char) (i * 11 + i / 251);
    }
}

static void make_stream(side_t *side, uint64_t size, size_t align)
{
    memset(side, 0, sizeof(*side));
    side->bytes = size + 64;
    assert_int_equal(posix_memalign((void **) &side->memory, 64, side->bytes), 0);
    side->buffer = side->memory + align;
    memset(side->memory, 0x5a, side->bytes);
}

static void free_side(side_t *side)
{
    opal_iov_cache_form_free(side->form);
    opal_umrddt_gpu_map_free(side->map);
    free(side->memory);
}

static opal_umrddt_gpu_end_t end_of(const side_t *side, bool travels)
{
    opal_umrddt_gpu_end_t end = {.map = side->map, .address = (uint64_t) (uintptr_t) side->buffer};

    if (NULL != side->map && 0 != side->map->n && !travels) {
        end.list = (uint64_t) (uintptr_t) side->map->list;
    }
    return end;
}

/* Copy a range from one side to the other, whatever either is, and compare all of the target's
 * memory. @return bytes that went in accesses of less than 4 */
static uint64_t copy(const side_t *from, const side_t *to, uint64_t start, uint64_t end,
                     bool travels, const opal_umrddt_gpu_fit_t *fit)
{
    const opal_umrddt_gpu_end_t source = end_of(from, travels), target = end_of(to, travels);
    unsigned char *expected = malloc(to->bytes), *stream = malloc(end - start);
    umrddt_gpu_counts_t counts = {{0}, 0};
    opal_umrddt_gpu_plan_t plan;
    uint64_t bytes = 0, i;

    memcpy(expected, to->memory, to->bytes);
    if (NULL == from->form) {
        memcpy(stream, from->buffer, end - start);
    } else {
        opal_iov_cache_form_pack(from->form, from->buffer, start, end - start, stream);
    }
    if (NULL == to->form) {
        memcpy(expected + (to->buffer - to->memory), stream, end - start);
    } else {
        opal_iov_cache_form_unpack(to->form, expected + (to->buffer - to->memory), start,
                                   end - start, stream);
    }
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, start, end, fit, &plan), OPAL_SUCCESS);
    umrddt_gpu_host_launch(&umrddt_gpu_host_kernels[plan.kernel], plan.grid, plan.block, &plan.args,
                           &counts);
    assert_memory_equal(to->memory, expected, to->bytes);
    assert_int_equal(counts.misaligned, 0);
    for (i = 0; i < 5; ++i) {
        bytes += counts.accesses[i] << i;
    }
    assert_int_equal(bytes, end - start);
    free(expected);
    free(stream);
    return counts.accesses[0] + 2 * counts.accesses[1];
}

/* All that can be done with two layouts of one size: all of it and a part, with buffers at several
 * places, with lists on the device and in the argument, and where there is no room for lists. At
 * most one byte in 16 may go in a narrow access. */
static void check(const char *what, void (*first)(void), void (*second)(void))
{
    static const size_t aligns[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 3, 8}, {5, 5, 5}, {8, 2, 7}};
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    size_t a, max_list;
    int part, way;

    for (a = 0; a < sizeof(aligns) / sizeof(aligns[0]); ++a) {
        for (max_list = MAX_LIST; 0 < max_list; max_list = MAX_LIST == max_list ? 64 : 0) {
            side_t sides[3];

            first();
            make_side(&sides[0], aligns[a][0], max_list);
            second();
            make_side(&sides[1], aligns[a][1], max_list);
            assert_int_equal(sides[0].form->size, sides[1].form->size);
            make_stream(&sides[2], sides[0].form->size, aligns[a][2]);
            for (part = 0; part < 2; ++part) {
                const uint64_t start = part * 4099, end = sides[0].form->size - part * 5001;
                const bool travels = 0 == part && sides[0].map->list_bytes <= 2048
                                     && sides[1].map->list_bytes <= 2048;

                for (way = 0; way < 4; ++way) {
                    static const int ways[][2] = {{0, 2}, {2, 1}, {0, 1}, {1, 0}};
                    const uint64_t narrow = copy(&sides[ways[way][0]], &sides[ways[way][1]], start,
                                                 end, travels && 2 > way, &fit);

                    if (narrow > (end - start) / 16) {
                        fail_msg("%s, aligned as in %zu, lists of %zu bytes, part %d, way %d: "
                                 "%llu of %llu bytes in narrow accesses",
                                 what, a, max_list, part, way, (unsigned long long) narrow,
                                 (unsigned long long) (end - start));
                    }
                }
            }
            for (way = 0; way < 3; ++way) {
                free_side(&sides[way]);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Layouts
 * ------------------------------------------------------------------------------------------- */

static void blocks(int count, uint64_t length, int64_t gap)
{
    for (; 0 < count; --count) {
        add(length, gap);
    }
}

static void tail(void)
{
    no_pieces(0);
    blocks(32, 16384, 4096);
    add(7, 0);
}

static void odd_place(void)
{
    no_pieces(0);
    blocks(32, 16384, 4096);
    ++next_piece;
    add(8, 0);
}

static void head(void)
{
    no_pieces(0);
    add(7, 9);
    blocks(32, 16384, 4096);
}

static void middle(void)
{
    no_pieces(0);
    blocks(16, 16384, 4096);
    add(7, 9);
    blocks(16, 16384, 4096);
}

/* Blocks at distances that do not repeat. */
static void irregular(void)
{
    int i;

    no_pieces(0);
    for (i = 0; i < 32; ++i) {
        add(16384, 64 * (1 + i * i % 7));
    }
    add(7, 0);
}

/* As many bytes, in other pieces. */
static void larger(void)
{
    no_pieces(3);
    add(8, 24);
    blocks(7, 65536, 128);
    add(65535, 0);
}

static void odd_rows(void)
{
    no_pieces(0);
    blocks(32, 16385, 4095);
}

static void other_odd_rows(void)
{
    no_pieces(0);
    blocks(5, 16385 * 6 + 1, 127);
    add(16385 * 2 - 5, 0);
}

static void columns(void)
{
    no_pieces(0);
    blocks(1024, 512, 32);
    add(8, 0);
}

static void test_tails(void **state)
{
    (void) state;
    check("a tail of 7 bytes", tail, tail);
    check("a tail at an odd place", odd_place, odd_place);
    check("a head of 7 bytes", head, head);
    check("an odd block in the middle", middle, middle);
    check("blocks at any distance", irregular, irregular);
}

/* Pieces of one side are cut by the ends of the other's. */
static void test_cut(void **state)
{
    (void) state;
    check("a tail and a head", tail, head);
    check("a tail and larger blocks", tail, larger);
    check("a head and blocks at any distance", head, irregular);
    check("rows of odd lengths", odd_rows, other_odd_rows);
    check("many rows and few", columns, odd_place);
}

/* Where nothing is odd, or most of it is short, kernels are what they were. */
static void test_others(void **state)
{
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_plan_t plan;
    opal_umrddt_gpu_end_t from, to;
    int i, kind;

    (void) state;
    for (kind = 0; kind < 3; ++kind) {
        side_t sides[2];

        no_pieces(0);
        blocks(32, 0 == kind ? 16384 : 32, 16);
        for (i = 0; 2 == kind && i < 32; ++i) {
            add(1 + (uint64_t) i, 1);
        }
        add(16, 0);
        make_side(&sides[0], 0, MAX_LIST);
        make_stream(&sides[1], sides[0].form->size, 0);
        from = end_of(&sides[0], false);
        to = end_of(&sides[1], false);
        assert_int_equal(opal_umrddt_gpu_plan(&from, &to, 0, sides[0].form->size, &fit, &plan),
                         OPAL_SUCCESS);
        assert_null(strstr(opal_umrddt_gpu_kernel_name(plan.kernel), "SPANS"));
        (void) copy(&sides[0], &sides[1], 0, sides[0].form->size, false, &fit);
        free_side(&sides[0]);
        free_side(&sides[1]);
    }
}

/* Thousands of pieces of a byte in front of a long one are not copied one after the other. */
static void test_short(void **state)
{
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    side_t sides[2];

    (void) state;
    no_pieces(0);
    blocks(4000, 1, 2);
    add(1 << 20, 0);
    make_side(&sides[0], 0, MAX_LIST);
    make_stream(&sides[1], sides[0].form->size, 0);
    assert_true(copy(&sides[0], &sides[1], 0, sides[0].form->size, false, &fit) < 1 << 16);
    assert_true(copy(&sides[1], &sides[0], 0, sides[0].form->size, false, &fit) < 1 << 16);
    free_side(&sides[0]);
    free_side(&sides[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
