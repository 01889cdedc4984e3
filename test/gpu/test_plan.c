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
 * Which kernel a layout gets, with what accesses and in how many threads; and what only few layouts
 * come to: stream positions beyond 31 bits, divisors at the borders, bad input.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "opal_config.h"

#include "opal/constants.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_host.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

#define MAX_LIST ((size_t) 1 << 20)

/* A dense block in a term each for up to three strides; a form that no type is needed for. */
typedef struct {
    opal_iov_cache_form_t form;
    opal_iov_cache_term_t terms[6];
} nest_t;

/* Levels {count, stride}, the outermost first, over a block. */
static void make_nest(nest_t *nest, uint32_t levels, const int64_t level[][2], uint64_t block)
{
    uint32_t i;

    memset(nest, 0, sizeof(*nest));
    nest->form.size = block;
    nest->form.ub = (int64_t) block;
    nest->form.segments = 1;
    for (i = levels; 0 < i; --i) {
        opal_iov_cache_term_t *term = &nest->terms[i - 1];

        term->count = (uint64_t) level[i - 1][0];
        term->stride = level[i - 1][1];
        term->size = nest->form.size;
        term->kind = i == levels ? OPAL_IOV_CACHE_DENSE : OPAL_IOV_CACHE_TERMS;
        term->first = i == levels ? 0 : i;
        term->n = i == levels ? 0 : 1;
        term->segments = nest->form.segments;
        nest->form.size *= term->count;
        nest->form.segments *= term->count;
        nest->form.ub += (int64_t) (term->count - 1) * term->stride;
    }
    nest->form.uniform = block;
    nest->form.depth = levels;
    nest->form.term_count = levels;
    nest->form.terms = nest->terms;
}

static opal_umrddt_gpu_map_t *map_of(const opal_iov_cache_form_t *form,
                                     opal_umrddt_gpu_scheme_t scheme)
{
    opal_umrddt_gpu_map_t *map = NULL;

    assert_int_equal(opal_umrddt_gpu_map_create(form, scheme, MAX_LIST, &map), OPAL_SUCCESS);
    assert_non_null(map);
    return map;
}

/* Pack all of a form in system memory from a buffer at `at` bytes from an aligned address to a
 * stream at `to`. Returns the accesses by width. */
static umrddt_gpu_counts_t pack(const opal_iov_cache_form_t *form, opal_umrddt_gpu_scheme_t scheme,
                                size_t at, size_t to, const opal_umrddt_gpu_fit_t *fit,
                                opal_umrddt_gpu_plan_t *plan)
{
    opal_umrddt_gpu_map_t *map = map_of(form, scheme);
    umrddt_gpu_counts_t counts = {{0}, 0};
    unsigned char *memory = NULL, *stream = NULL, *expected;
    opal_umrddt_gpu_end_t source = {.map = map}, target = {.map = NULL};
    int64_t i;

    assert_int_equal(posix_memalign((void **) &memory, 64, (size_t) form->ub + at), 0);
    assert_int_equal(posix_memalign((void **) &stream, 64, form->size + to), 0);
    expected = malloc(form->size);
    for (i = 0; i < form->ub + (int64_t) at; ++i) {
        memory[i] = (unsigned char) (i * 11 + i / 256);
    }
    memset(stream, 0, form->size + to);
    source.address = (uint64_t) (uintptr_t) (memory + at);
    source.list = (uint64_t) (uintptr_t) map->list;
    target.address = (uint64_t) (uintptr_t) (stream + to);
    opal_iov_cache_form_pack(form, memory + at, 0, form->size, expected);
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 0, form->size, fit, plan),
                     OPAL_SUCCESS);
    umrddt_gpu_host_launch(&umrddt_gpu_host_kernels[plan->kernel], plan->grid, plan->block,
                           &plan->args, &counts);
    assert_memory_equal(stream + to, expected, form->size);
    assert_int_equal(counts.misaligned, 0);
    free(expected);
    free(stream);
    free(memory);
    opal_umrddt_gpu_map_free(map);
    return counts;
}

/* The widest access that everything allows, and no other. */
static void test_width(void **state)
{
    static const struct {
        int64_t block, stride;
        size_t at, to;
        int width; /* as a power of 2 */
    } cases[] = {
        {1024, 2048, 0, 0, 4}, {1024, 2048, 16, 32, 4}, {1024, 2048, 8, 0, 3},
        {1024, 2048, 0, 8, 3}, {1024, 2052, 0, 0, 2},   {1024, 2048, 4, 0, 2},
        {1000, 2048, 0, 0, 3}, {1004, 2048, 0, 0, 2},   {8, 4096, 0, 0, 3},
        {16, 64, 0, 0, 4},     {12, 64, 0, 0, 2},       {6, 64, 0, 0, 1},
        {6, 64, 0, 2, 1},      {6, 64, 0, 1, 0},        {7, 64, 0, 0, 0},
        {1, 3, 5, 7, 0},
    };
    static const opal_umrddt_gpu_scheme_t schemes[] = {
        OPAL_UMRDDT_GPU_TARGETED,   OPAL_UMRDDT_GPU_TRANSFORM, OPAL_UMRDDT_GPU_TEMPI,
        OPAL_UMRDDT_GPU_YAKSA,      OPAL_UMRDDT_GPU_TREE,      OPAL_UMRDDT_GPU_PARALLEL,
        OPAL_UMRDDT_GPU_SEQUENTIAL, OPAL_UMRDDT_GPU_TEAMS,
    };
    size_t i, s;
    int k;

    (void) state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const int64_t level[1][2] = {{37, cases[i].stride}};
        nest_t nest;

        make_nest(&nest, 1, level, (uint64_t) cases[i].block);
        for (s = 0; s < sizeof(schemes) / sizeof(schemes[0]); ++s) {
            opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
            umrddt_gpu_counts_t counts;
            opal_umrddt_gpu_plan_t plan;

            fit.ragged_width = 1; /* no row of its own width */
            counts = pack(&nest.form, schemes[s], cases[i].at, cases[i].to, &fit, &plan);
            for (k = 0; k < 5; ++k) {
                assert_int_equal(counts.accesses[k],
                                 k == cases[i].width ? (37 * cases[i].block) >> k : 0);
            }
        }
    }
}

/* Rows of an odd length: each takes 16 bytes at a time where its addresses are equally far from an
 * aligned one, which is so for one row in 16 here; 8 or 4 where they are so for that, and 8 that
 * are shifted elsewhere. */
static void test_ragged(void **state)
{
    const int64_t level[1][2] = {{32, 1024}};
    opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_plan_t plan;
    umrddt_gpu_counts_t counts;
    nest_t nest;

    (void) state;
    make_nest(&nest, 1, level, 513);
    counts = pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    assert_int_equal(plan.args.args.width, 0);
    assert_int_equal(counts.accesses[4], 2 * (513 / 16));
    assert_true(24 * (513 / 8 - 2) <= counts.accesses[3]);
    assert_true(0 < counts.accesses[2]);
    assert_true(32 * 23 > counts.accesses[0] + counts.accesses[1]);

    fit.ragged_length = 514; /* these are too short */
    counts = pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    assert_int_equal(counts.accesses[0], nest.form.size);

    fit.ragged_length = 513;
    fit.ragged_width = 1; /* and nothing is too narrow */
    counts = pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    assert_int_equal(counts.accesses[0], nest.form.size);

    /* without a wish, rows only where they are to choose */
    (void) pack(&nest.form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
    assert_string_equal(opal_umrddt_gpu_kernel_name(plan.kernel),
                        "umrddt_gpu_FLAT_STRIDED_STREAM_32");
    fit.ragged_width = 4;
    (void) pack(&nest.form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
    assert_string_equal(opal_umrddt_gpu_kernel_name(plan.kernel),
                        "umrddt_gpu_ROWS_STRIDED_STREAM_32");
}

/* Each scheme has the kernel that README.md says. */
static void test_kernels(void **state)
{
    static const struct {
        opal_umrddt_gpu_scheme_t scheme;
        const char *kernel;
    } cases[] = {
        {OPAL_UMRDDT_GPU_AUTO, "umrddt_gpu_FLAT_STRIDED_STREAM_32"},
        {OPAL_UMRDDT_GPU_TARGETED, "umrddt_gpu_ROWS_STRIDED_STREAM_32"},
        {OPAL_UMRDDT_GPU_TRANSFORM, "umrddt_gpu_FLAT_RUNS_STREAM_64"},
        {OPAL_UMRDDT_GPU_SEQUENTIAL, "umrddt_gpu_WALK_IOVS_STREAM_64"},
        {OPAL_UMRDDT_GPU_PARALLEL, "umrddt_gpu_FLAT_IOVS_STREAM_64"},
        {OPAL_UMRDDT_GPU_TEAMS, "umrddt_gpu_TEAMS_IOVS_STREAM_64"},
        {OPAL_UMRDDT_GPU_TEMPI, "umrddt_gpu_CUBE_STRIDED_STREAM_64"},
        {OPAL_UMRDDT_GPU_YAKSA, "umrddt_gpu_FLAT_STRIDED_STREAM_32"},
        {OPAL_UMRDDT_GPU_TREE, "umrddt_gpu_FLAT_TREE_STREAM_64"},
    };
    const int64_t level[2][2] = {{5, 1 << 14}, {17, 128}};
    opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_plan_t plan;
    nest_t nest;
    size_t i;

    (void) state;
    make_nest(&nest, 2, level, 40);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        pack(&nest.form, cases[i].scheme, 0, 0, &fit, &plan);
        assert_string_equal(opal_umrddt_gpu_kernel_name(plan.kernel), cases[i].kernel);
        assert_string_equal(umrddt_gpu_host_kernels[plan.kernel].name, cases[i].kernel);
        assert_ptr_equal(umrddt_gpu_host_kernel(cases[i].kernel),
                         &umrddt_gpu_host_kernels[plan.kernel]);
    }
    assert_null(umrddt_gpu_host_kernel("umrddt_gpu_ROWS"));
    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        assert_string_equal(opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i),
                            umrddt_gpu_host_kernels[i].name);
    }
    assert_null(opal_umrddt_gpu_kernel_name(UMRDDT_GPU_KERNEL_COUNT));
    for (i = 0; OPAL_UMRDDT_GPU_SCHEMES > i; ++i) {
        assert_non_null(opal_umrddt_gpu_scheme_name((opal_umrddt_gpu_scheme_t) i));
    }
    assert_null(opal_umrddt_gpu_scheme_name(OPAL_UMRDDT_GPU_SCHEMES));
}

/* Four strides are the most that regular kernels take, two the most of TEMPI's; the tree takes all.
 */
static void test_levels(void **state)
{
    const int64_t level[5][2] = {{2, 1 << 16}, {3, 1 << 14}, {2, 1 << 12}, {3, 1 << 8}, {4, 32}};
    opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_map_t *map = NULL;
    opal_umrddt_gpu_plan_t plan;
    nest_t nest;
    uint32_t levels;

    (void) state;
    for (levels = 1; levels <= 5; ++levels) {
        int regular = 4 >= levels ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
        int tempi = 2 >= levels ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;

        make_nest(&nest, levels, level + 5 - levels, 24);
        assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, &map),
                         regular);
        opal_umrddt_gpu_map_free(OPAL_SUCCESS == regular ? map : NULL);
        assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_TEMPI, 0, &map),
                         tempi);
        opal_umrddt_gpu_map_free(OPAL_SUCCESS == tempi ? map : NULL);
        map = map_of(&nest.form, OPAL_UMRDDT_GPU_AUTO);
        assert_int_equal(map->kind, 4 >= levels ? UMRDDT_GPU_STRIDED : UMRDDT_GPU_RUNS);
        opal_umrddt_gpu_map_free(map);
        pack(&nest.form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
        pack(&nest.form, OPAL_UMRDDT_GPU_TREE, 0, 0, &fit, &plan);
    }
    assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_SCHEMES, 0, &map),
                     OPAL_ERR_BAD_PARAM);
    /* lists have a bound; AUTO has the tree behind it, which is as short as the form */
    assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_PARALLEL, 64, &map),
                     OPAL_ERR_NOT_SUPPORTED);
    assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_TRANSFORM, 64, &map),
                     OPAL_ERR_NOT_SUPPORTED);
    assert_int_equal(opal_umrddt_gpu_map_create(&nest.form, OPAL_UMRDDT_GPU_AUTO, 64, &map),
                     OPAL_SUCCESS);
    assert_int_equal(map->kind, UMRDDT_GPU_TREE);
    assert_int_equal(map->n, 5);
    opal_umrddt_gpu_map_free(map);
}

/* Magic numbers at the borders of 31 bits, where they would fail first. */
static void test_division(void **state)
{
    static const uint64_t limit = UINT64_C(1) << 31;
    uint64_t by, i, k;

    (void) state;
    for (i = 0; i < 20000; ++i) {
        umrddt_gpu_div_t div;

        /* 1, 2, 3, ..., then about powers of 2, then wild ones */
        by = i < 4096 ? i + 1 : i < 8192 ? (UINT64_C(1) << (i % 32)) + i % 7 : i * 429496 + i % 97;
        by = 0 == by ? 1 : by;
        div = opal_umrddt_gpu_div(by, limit);
        assert_int_not_equal(div.shift, UMRDDT_GPU_NO_MAGIC);
        for (k = 0; k < 64; ++k) {
            uint64_t n = k < 8    ? limit - 1 - k
                         : k < 32 ? (limit / by) * by - by * (k / 3 - 2) - k % 3
                                  : (k * UINT64_C(2654435761) + i * 40503) % limit;

            n = n < limit ? n : limit - 1;
            if (((uint32_t) ((uint64_t) (uint32_t) n * div.magic >> 32) + (uint32_t) n) >> div.shift
                != n / by) {
                fail_msg("%llu / %llu", (unsigned long long) n, (unsigned long long) by);
            }
        }
    }
    assert_int_equal(opal_umrddt_gpu_div(3, limit + 1).shift, UMRDDT_GPU_NO_MAGIC);
}

/* Stream positions beyond 2^32, in memory of which only a little is ever touched. */
static void test_far(void **state)
{
    const int64_t level[2][2] = {{3, INT64_C(3) << 32}, {INT64_C(1) << 31, 3}};
    static const opal_umrddt_gpu_scheme_t schemes[] = {
        OPAL_UMRDDT_GPU_TARGETED, OPAL_UMRDDT_GPU_TRANSFORM, OPAL_UMRDDT_GPU_TEMPI,
        OPAL_UMRDDT_GPU_YAKSA,    OPAL_UMRDDT_GPU_TREE,
    };
    static const uint64_t starts[] = {(UINT64_C(1) << 31) - 40, (UINT64_C(1) << 32) - 33,
                                      (UINT64_C(3) << 31) - 70};
    unsigned char stream[70], *memory;
    nest_t nest;
    size_t s, p, i;

    (void) state;
    make_nest(&nest, 2, level, 1);
    memory = mmap(NULL, (size_t) nest.form.ub, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (MAP_FAILED == memory) {
        skip();
    }
    for (p = 0; p < sizeof(starts) / sizeof(starts[0]); ++p) {
        for (i = 0; i < sizeof(stream); ++i) {
            memory[opal_iov_cache_form_offset(&nest.form, starts[p] + i)] =
                (unsigned char) (1 + p + i * 3);
        }
        for (s = 0; s < sizeof(schemes) / sizeof(schemes[0]); ++s) {
            const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(1);
            opal_umrddt_gpu_map_t *map = map_of(&nest.form, schemes[s]);
            opal_umrddt_gpu_end_t source = {.map = map,
                                            .address = (uint64_t) (uintptr_t) memory,
                                            .list = (uint64_t) (uintptr_t) map->list};
            opal_umrddt_gpu_end_t target = {.address = (uint64_t) (uintptr_t) stream};
            opal_umrddt_gpu_plan_t plan;

            memset(stream, 0, sizeof(stream));
            assert_int_equal(opal_umrddt_gpu_plan(&source, &target, starts[p],
                                                  starts[p] + sizeof(stream), &fit, &plan),
                             OPAL_SUCCESS);
            umrddt_gpu_host_launch(&umrddt_gpu_host_kernels[plan.kernel], plan.grid, plan.block,
                                   &plan.args, NULL);
            for (i = 0; i < sizeof(stream); ++i) {
                assert_int_equal(stream[i], (unsigned char) (1 + p + i * 3));
            }
            opal_umrddt_gpu_map_free(map);
        }
    }
    munmap(memory, (size_t) nest.form.ub);
}

/* A million blocks are one launch, that fits the device; a small message uses few blocks. */
static void test_grid(void **state)
{
    const int64_t million[1][2] = {{1 << 20, 24}}, few[1][2] = {{16, 2048}};
    const int64_t wide[1][2] = {{2, 1 << 24}};
    opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(132);
    opal_umrddt_gpu_plan_t plan;
    nest_t nest;
    uint64_t blocks;

    (void) state;
    make_nest(&nest, 1, million, 8);
    pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    assert_int_equal(plan.block[0], 1); /* a row is one access */
    assert_int_equal(plan.block[1], 256);
    assert_int_equal(plan.grid[0], 132 * 8);

    /* accesses one after the other: more blocks, of less work */
    pack(&nest.form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
    assert_int_equal(plan.block[0], 256);
    assert_int_equal(plan.grid[0], (1 << 20) / 256);
    fit.packed = 2;
    pack(&nest.form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
    assert_int_equal(plan.grid[0], 132 * 8 * 2);

    make_nest(&nest, 1, few, 1024);
    pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    assert_int_equal(plan.block[0], 64); /* a row is 64 accesses */
    assert_int_equal(plan.block[1], 4);
    assert_int_equal(plan.grid[0], 4);
    assert_int_equal(plan.grid[1], 1);

    /* two rows are shared by all of the device */
    make_nest(&nest, 1, wide, 1 << 23);
    pack(&nest.form, OPAL_UMRDDT_GPU_TARGETED, 0, 0, &fit, &plan);
    blocks = (uint64_t) plan.grid[0] * plan.grid[1];
    assert_true(132 * 8 <= blocks && 2 * 132 * 8 >= blocks);
}

/* Lists go in the argument while they are short and the other end has none. */
static void test_lists(void **state)
{
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_end_t ends[2], packed = {.address = 4096};
    opal_iov_cache_iov_t pieces[1000];
    opal_iov_cache_form_t *form;
    opal_umrddt_gpu_plan_t plan;
    int i, n;

    (void) state;
    for (n = 400; n <= 1000; n += 600) {
        int64_t at = 0;

        for (i = 0; i < n; ++i) {
            pieces[i].offset = at;
            pieces[i].length = 16;
            at += 32 + 16 * (i * i % 7);
        }
        assert_int_equal(opal_iov_cache_form_of_pieces(pieces, (size_t) n, &form), OPAL_SUCCESS);
        ends[0].map = map_of(form, OPAL_UMRDDT_GPU_AUTO);
        ends[0].address = 1 << 20;
        ends[0].list = 0;
        ends[1] = ends[0];
        assert_int_equal(opal_umrddt_gpu_plan(&ends[0], &packed, 0, form->size, &fit, &plan),
                         UMRDDT_GPU_INDEXED == ends[0].map->kind && 400 == n
                             ? OPAL_SUCCESS
                             : OPAL_ERR_NOT_AVAILABLE);
        assert_int_equal(opal_umrddt_gpu_plan(&ends[0], &ends[1], 0, form->size, &fit, &plan),
                         OPAL_ERR_NOT_AVAILABLE);
        ends[0].list = ends[1].list = 4096;
        assert_int_equal(opal_umrddt_gpu_plan(&ends[0], &ends[1], 0, form->size, &fit, &plan),
                         OPAL_SUCCESS);
        ends[0].list = 4100;
        assert_int_equal(opal_umrddt_gpu_plan(&ends[0], &ends[1], 0, form->size, &fit, &plan),
                         OPAL_ERR_BAD_PARAM);
        opal_umrddt_gpu_map_free((opal_umrddt_gpu_map_t *) ends[0].map);
        opal_iov_cache_form_free(form);
    }
}

/* Blocks that are next to each other are one in a form: a list of equal ones stays one, as long as
 * it is not longer than twice. */
static void test_pieces(void **state)
{
    static const struct {
        uint64_t lengths[3]; /* in turn */
        uint64_t piece;      /* 0: not taken apart */
        uint64_t pieces;     /* of 30 blocks */
    } cases[] = {
        {{12, 12, 12}, 12, 30}, {{12, 24, 12}, 12, 40}, {{8, 24, 16}, 8, 60},
        {{8, 24, 24}, 0, 0},    {{64, 96, 32}, 32, 60}, {{4096, 8192, 4096}, 4096, 40},
        {{4, 4096, 4}, 0, 0},   {{48, 16, 16}, 16, 50},
    };
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_iov_cache_iov_t pieces[30];
    opal_iov_cache_form_t *form;
    opal_umrddt_gpu_map_t *map;
    opal_umrddt_gpu_plan_t plan;
    size_t k;
    int i;

    (void) state;
    for (k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
        int64_t at = 0;

        for (i = 0; i < 30; ++i) {
            pieces[i].offset = at;
            pieces[i].length = cases[k].lengths[i % 3];
            at += (int64_t) pieces[i].length + 32 + 16 * (i * i * i % 101);
        }
        assert_int_equal(opal_iov_cache_form_of_pieces(pieces, 30, &form), OPAL_SUCCESS);
        map = map_of(form, OPAL_UMRDDT_GPU_AUTO);
        assert_int_equal(map->kind, 0 == cases[k].piece ? UMRDDT_GPU_IOVS : UMRDDT_GPU_INDEXED);
        assert_int_equal(map->block, cases[k].piece);
        if (0 != cases[k].piece) {
            assert_int_equal(map->n, cases[k].pieces);
        }
        opal_umrddt_gpu_map_free(map);
        pack(form, OPAL_UMRDDT_GPU_AUTO, 0, 0, &fit, &plan);
        pack(form, OPAL_UMRDDT_GPU_AUTO, 4, 8, &fit, &plan);
        opal_iov_cache_form_free(form);
    }
}

static void test_bad(void **state)
{
    const int64_t level[1][2] = {{16, 64}};
    const opal_umrddt_gpu_fit_t good = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_end_t source = {.address = 4096}, target = {.address = 8192};
    opal_umrddt_gpu_fit_t fit;
    opal_umrddt_gpu_plan_t plan;
    nest_t nest;

    (void) state;
    make_nest(&nest, 1, level, 32);
    source.map = map_of(&nest.form, OPAL_UMRDDT_GPU_AUTO);
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 0, 512, &good, &plan), OPAL_SUCCESS);
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 0, 513, &good, &plan),
                     OPAL_ERR_BAD_PARAM);
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 2, 1, &good, &plan),
                     OPAL_ERR_BAD_PARAM);
    assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 512, 512, &good, &plan), OPAL_SUCCESS);
    assert_int_equal(plan.grid[0], 0);
#define BAD(FIELD, VALUE)                                                             \
    do {                                                                              \
        fit = good;                                                                   \
        fit.FIELD = (VALUE);                                                          \
        assert_int_equal(opal_umrddt_gpu_plan(&source, &target, 0, 512, &fit, &plan), \
                         OPAL_ERR_BAD_PARAM);                                         \
    } while (0)
    BAD(processors, 0);
    BAD(blocks, 0);
    BAD(packed, 0);
    BAD(packed, 65);
    BAD(threads, 16);
    BAD(threads, 96);
    BAD(threads, 512);
    BAD(processors, UINT32_MAX);
    opal_umrddt_gpu_map_free((opal_umrddt_gpu_map_t *) source.map);
}

/* They are there exactly if they were built, and then they are a fat binary, or PTX with every
 * kernel. */
static void test_fatbin(void **state)
{
    size_t bytes = 12345;
    const void *fatbin = opal_umrddt_gpu_fatbin(&bytes);

    (void) state;
    if (NULL == fatbin) {
        assert_int_equal(bytes, 0);
        skip();
    }
    assert_true(1024 < bytes);
    assert_int_equal((uintptr_t) fatbin & 7, 0);
    if (0xba55ed50 == *(const uint32_t *) fatbin) {
        return;
    }
    assert_int_equal(strlen(fatbin), bytes);
    assert_non_null(strstr(fatbin, "\n.version "));
    for (int i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        char *text =
            opal_umrddt_gpu_ptx_of(fatbin, opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i));

        assert_non_null(text);
        free(text);
    }
}

/* One kernel of PTX, with what is before the first one. */
static void test_ptx(void **state)
{
#define HEAD "// PTX\n.version 6.3\n.target sm_75\n"
    static const char image[] = HEAD "\n.visible .entry long_(\n)\n{ }\n\t// .globl b\n"
                                     "\n.visible .entry b()\n{ b }\n"
                                     "\n.visible .entry long_b()\n{ last }\n";
    static const uint32_t fatbin[] = {0xba55ed50, 0};
    char *text;

    (void) state;
    text = opal_umrddt_gpu_ptx_of(image, "b");
    assert_string_equal(text, HEAD "\n.visible .entry b()\n{ b }\n");
    free(text);
    text = opal_umrddt_gpu_ptx_of(image, "long_");
    assert_string_equal(text, HEAD "\n.visible .entry long_(\n)\n{ }\n\t// .globl b\n");
    free(text);
    text = opal_umrddt_gpu_ptx_of(image, "long_b");
    assert_string_equal(text, HEAD "\n.visible .entry long_b()\n{ last }\n");
    free(text);
    assert_null(opal_umrddt_gpu_ptx_of(image, "long"));
    assert_null(opal_umrddt_gpu_ptx_of(image, "c"));
    assert_null(opal_umrddt_gpu_ptx_of(HEAD, "b"));
    assert_null(opal_umrddt_gpu_ptx_of(fatbin, "b"));
#undef HEAD
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_width),    cmocka_unit_test(test_ragged),
        cmocka_unit_test(test_kernels),  cmocka_unit_test(test_levels),
        cmocka_unit_test(test_division), cmocka_unit_test(test_far),
        cmocka_unit_test(test_grid),     cmocka_unit_test(test_lists),
        cmocka_unit_test(test_bad),      cmocka_unit_test(test_fatbin),
        cmocka_unit_test(test_pieces),   cmocka_unit_test(test_ptx),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
