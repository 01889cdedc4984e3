/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <string.h>

#include "opal/constants.h"

#include "umrddt_gpu_plan.h"

/* A row of a copy between two contiguous ends. */
#define CONTIGUOUS_ROW 16384
/* Maximum accesses of a thread in one tile of the stream. */
#define TILE_ACCESSES 8
/* Threads of a warp. */
#define WARP 32
/* Accesses of a thread in flight: UMRDDT_GPU_BATCH. */
#define AT_ONCE 4
/* Minimum accesses of a row for several per thread. */
#define LONG_ROW (WARP * AT_ONCE)
/* Limit of a grid in y and z, and of a block in z. */
#define MAX_GRID_YZ 65535
#define MAX_BLOCK_Z 64

/* Kernel number plus one; 0 if there is no kernel. [1]: list in the argument */
static const uint8_t kernels[UMRDDT_GPU_SHAPES][UMRDDT_GPU_KINDS][UMRDDT_GPU_KINDS][2][2] = {
#define ID(SHAPE, SOURCE, TARGET, BITS)                                            \
    [UMRDDT_GPU_##SHAPE][UMRDDT_GPU_##SOURCE][UMRDDT_GPU_##TARGET][BITS / 64][0] = \
        1 + UMRDDT_GPU_KERNEL_##SHAPE##_##SOURCE##_##TARGET##_##BITS,
#define ID_INLINE(SHAPE, SOURCE, TARGET, BITS)                                     \
    [UMRDDT_GPU_##SHAPE][UMRDDT_GPU_##SOURCE][UMRDDT_GPU_##TARGET][BITS / 64][1] = \
        1 + UMRDDT_GPU_KERNEL_##SHAPE##_##SOURCE##_##TARGET##_##BITS##_INLINE,
    UMRDDT_GPU_KERNELS(ID) UMRDDT_GPU_KERNELS_INLINE(ID_INLINE)
#undef ID
#undef ID_INLINE
};

static const char *const names[UMRDDT_GPU_KERNEL_COUNT] = {
#define NAME(SHAPE, SOURCE, TARGET, BITS) "umrddt_gpu_" #SHAPE "_" #SOURCE "_" #TARGET "_" #BITS,
#define NAME_INLINE(SHAPE, SOURCE, TARGET, BITS) \
    "umrddt_gpu_" #SHAPE "_" #SOURCE "_" #TARGET "_" #BITS "_INLINE",
    UMRDDT_GPU_KERNELS(NAME) UMRDDT_GPU_KERNELS_INLINE(NAME_INLINE) "umrddt_gpu_BATCH_REGULAR",
    "umrddt_gpu_BATCH_ANY",
#undef NAME
#undef NAME_INLINE
};

/* State of a plan under construction. */
typedef struct {
    const opal_umrddt_gpu_end_t *ends[2];
    const opal_umrddt_gpu_fit_t *fit;
    umrddt_gpu_kind_t kinds[2];
    umrddt_gpu_shape_t shape;
    uint32_t width; /* of the widest possible access */
    uint64_t work;  /* approximate number of accesses */
} planning_t;

/* ---------------------------------------------------------------------------------------------
 * Numbers
 * ------------------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t ceiling(uint64_t a, uint64_t b)
{
    return a / b + (0 != a % b);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (0 != b) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The smallest power of 2 that is at least n, at most limit, which is a power of 2. */
static uint32_t power_of_2(uint64_t n, uint32_t limit)
{
    uint32_t power = 1;

    while (power < limit && power < n) {
        power *= 2;
    }
    return power;
}

/* ---------------------------------------------------------------------------------------------
 * Selection of the kernel
 * ------------------------------------------------------------------------------------------- */

static bool is_regular(umrddt_gpu_kind_t kind)
{
    return UMRDDT_GPU_INDEXED >= kind;
}

static bool has_scheme(const planning_t *planning, opal_umrddt_gpu_scheme_t scheme)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (NULL != planning->ends[i]->map && scheme == planning->ends[i]->map->scheme
            && UMRDDT_GPU_STREAM != planning->kinds[i]) {
            return true;
        }
    }
    return false;
}

/* The length of a row that is in one piece at both ends; 0 if both are contiguous. */
static uint64_t row_of(const planning_t *planning)
{
    uint64_t length = 0;
    int i;

    for (i = 0; i < 2; ++i) {
        if (NULL != planning->ends[i]->map) {
            length = common_divisor(length, planning->ends[i]->map->block);
        }
    }
    return length;
}

/* True if rows select their own width. */
static bool is_ragged(const planning_t *planning, uint64_t row)
{
    return planning->width < planning->fit->ragged_width && planning->fit->ragged_length <= row;
}

/*
 * True if some piece is misaligned, which would limit all accesses: spans select their own width.
 * Only for long pieces: short ones are copied by bytes there. Only with AUTO.
 */
static bool is_mixed(const planning_t *planning)
{
    uint64_t piece = UINT64_MAX;
    int i;

    for (i = 0; i < 2; ++i) {
        if (NULL != planning->ends[i]->map && UMRDDT_GPU_STREAM != planning->kinds[i]) {
            if (!planning->ends[i]->map->chosen) {
                return false;
            }
            piece = least(piece, planning->ends[i]->map->piece);
        }
    }
    return planning->width < planning->fit->ragged_width && planning->fit->ragged_length <= piece;
}

/*
 * True with AUTO and two regular ends. Accesses independent of rows then use all threads (on an
 * H200: 67 percent of the driver's copy at 8 bytes per row and 89 at 64; by rows 64 and 86), unless
 * rows select their own width.
 */
static bool is_free(const planning_t *planning)
{
    const uint64_t row = row_of(planning);
    int i;

    for (i = 0; i < 2; ++i) {
        if (NULL != planning->ends[i]->map && !planning->ends[i]->map->chosen
            && UMRDDT_GPU_STREAM != planning->kinds[i]) {
            return false;
        }
    }
    return 0 < row && !is_ragged(planning, row);
}

static umrddt_gpu_shape_t choose_shape(const planning_t *planning)
{
    const bool packed =
        UMRDDT_GPU_STREAM == planning->kinds[0] || UMRDDT_GPU_STREAM == planning->kinds[1];

    if (is_regular(planning->kinds[0]) && is_regular(planning->kinds[1])) {
        return is_free(planning) && is_mixed(planning)                            ? UMRDDT_GPU_SPANS
               : is_free(planning) || has_scheme(planning, OPAL_UMRDDT_GPU_YAKSA) ? UMRDDT_GPU_FLAT
               : packed && has_scheme(planning, OPAL_UMRDDT_GPU_TEMPI)            ? UMRDDT_GPU_CUBE
                                                                                  : UMRDDT_GPU_ROWS;
    }
    if (packed && has_scheme(planning, OPAL_UMRDDT_GPU_SEQUENTIAL)) {
        return UMRDDT_GPU_WALK;
    }
    if (packed && has_scheme(planning, OPAL_UMRDDT_GPU_TEAMS)) {
        return UMRDDT_GPU_TEAMS;
    }
    return is_mixed(planning) ? UMRDDT_GPU_SPANS : UMRDDT_GPU_FLAT;
}

/* Kernel number plus one; 0 if there is none. */
static uint8_t kernel_of(const planning_t *planning, bool narrow, bool in_argument)
{
    const bool any = UMRDDT_GPU_SPANS == planning->shape;

    return kernels[planning->shape][any ? UMRDDT_GPU_ANY : planning->kinds[0]]
                  [any ? UMRDDT_GPU_ANY : planning->kinds[1]][!narrow][in_argument];
}

/* The end that is not a stream, if there is one. */
static const opal_umrddt_gpu_map_t *layout_of(const planning_t *planning)
{
    return planning->ends[UMRDDT_GPU_STREAM == planning->kinds[0] ? 1 : 0]->map;
}

/* ---------------------------------------------------------------------------------------------
 * The argument
 * ------------------------------------------------------------------------------------------- */

void opal_umrddt_gpu_plan_side(const opal_umrddt_gpu_end_t *end, const umrddt_gpu_args_t *args,
                               uint64_t bound, umrddt_gpu_side_t *side)
{
    const opal_umrddt_gpu_map_t *map = end->map;
    uint32_t i;

    memset(side, 0, sizeof(*side));
    side->kind = NULL == map ? UMRDDT_GPU_STREAM : map->kind;
    if (NULL == map) {
        side->base = end->address - args->start;
        return;
    }
    side->base = end->address + (uint64_t) map->offset;
    side->list = end->list;
    side->n = map->n;
    side->levels = map->levels;
    for (i = 0; i < map->levels; ++i) {
        side->level[i].stride = map->level[i].stride;
        side->level[i].size = opal_umrddt_gpu_div(map->level[i].size / args->scale, bound);
    }
    side->block = opal_umrddt_gpu_div(0 == map->block ? 1 : map->block / args->scale, bound);
}

/* Steps of the range: bytes. */
static void steps_of_bytes(umrddt_gpu_args_t *args)
{
    args->width = 0;
    args->scale = 1;
    args->first = args->start;
    args->last = args->end;
}

/* Steps of the range: whole accesses. */
static void steps_of_accesses(const planning_t *planning, umrddt_gpu_args_t *args)
{
    args->width = planning->width;
    args->scale = planning->width;
    args->first = ceiling(args->start, args->scale);
    args->last = args->end / args->scale;
}

/* Steps of the range: rows of a length that is in one piece at both ends. */
static void steps_of_rows(const planning_t *planning, umrddt_gpu_args_t *args)
{
    const uint64_t length = row_of(planning);

    args->scale = 0 == length ? CONTIGUOUS_ROW : length;
    args->width = is_ragged(planning, args->scale) ? 0 : planning->width;
    args->first = args->start / args->scale;
    args->last = (args->end - 1) / args->scale + 1;
}

/* Steps of the range: pieces of a list. */
static void steps_of_pieces(const planning_t *planning, umrddt_gpu_args_t *args)
{
    const opal_umrddt_gpu_map_t *map = layout_of(planning);
    const uint64_t *starts = map->list;
    uint64_t low[2] = {0, 0}, high;
    int i;

    for (i = 0; i < 2; ++i) {
        const uint64_t position = 0 == i ? args->start : args->end - 1;

        for (high = map->n; 1 < high - low[i];) {
            const uint64_t middle = low[i] + (high - low[i]) / 2;

            if (starts[middle] <= position) {
                low[i] = middle;
            } else {
                high = middle;
            }
        }
    }
    args->scale = 1;
    args->width = planning->width < planning->fit->ragged_width ? 0 : planning->width;
    args->first = low[0];
    args->last = low[1] + 1;
}

/* ---------------------------------------------------------------------------------------------
 * Grid and block
 * ------------------------------------------------------------------------------------------- */

/* True if more threads with less work each use the memory better. */
static bool is_vector_and_stream(const planning_t *planning)
{
    return (UMRDDT_GPU_STRIDED == planning->kinds[0] && UMRDDT_GPU_STREAM == planning->kinds[1])
           || (UMRDDT_GPU_STREAM == planning->kinds[0] && UMRDDT_GPU_STRIDED == planning->kinds[1]);
}

/* A one-dimensional grid. */
static void fit_accesses(const planning_t *planning, opal_umrddt_gpu_plan_t *plan)
{
    const opal_umrddt_gpu_fit_t *fit = planning->fit;
    uint64_t blocks = ceiling(planning->work, fit->threads);
    uint64_t grid = (uint64_t) fit->processors * fit->blocks;

    plan->block[0] = fit->threads;
    if (UMRDDT_GPU_FLAT == planning->shape && is_vector_and_stream(planning)) {
        grid *= fit->packed;
    }
    if (UMRDDT_GPU_IOVS == planning->kinds[0] || UMRDDT_GPU_IOVS == planning->kinds[1]) {
        /* tiles: of one access per thread, unless there are more than threads */
        const uint64_t most = (uint64_t) fit->processors * fit->blocks * fit->threads;
        const uint64_t each = least(ceiling(planning->work, most), TILE_ACCESSES);

        plan->args.args.inner = WARP * each;
        blocks = ceiling(planning->work, fit->threads * each);
    }
    if (UMRDDT_GPU_WALK == planning->shape) {
        plan->block[0] = WARP;
        plan->block[1] = fit->threads / WARP;
    }
    plan->grid[0] = (uint32_t) least(blocks, grid);
}

/* A one-dimensional grid, whose warps take tiles of the stream. */
static void fit_spans(const planning_t *planning, opal_umrddt_gpu_plan_t *plan)
{
    const opal_umrddt_gpu_fit_t *fit = planning->fit;
    umrddt_gpu_args_t *args = &plan->args.args;
    const uint64_t grid = (uint64_t) fit->processors * fit->blocks;
    const uint64_t work = ceiling(args->end - args->start, 16);

    args->inner = 16 * WARP * least(ceiling(work, grid * fit->threads), TILE_ACCESSES);
    plan->block[0] = fit->threads;
    plan->grid[0] = (uint32_t) least(
        ceiling(ceiling(args->end - args->start, args->inner), fit->threads / WARP), grid);
}

/*
 * As many threads in x as a row has accesses, the others in y. With enough work for all threads of
 * the device, each thread gets several accesses of a long row, but a warp stays in one row; of
 * short rows, each thread gets several.
 */
static uint32_t fit_width(const planning_t *planning, uint64_t row)
{
    const opal_umrddt_gpu_fit_t *fit = planning->fit;

    if (planning->work > (uint64_t) fit->processors * fit->blocks * fit->threads
        && LONG_ROW <= row) {
        row /= AT_ONCE;
    }
    return power_of_2(row, fit->threads);
}

/* Rows by y, of about `row` accesses. */
static void fit_rows(const planning_t *planning, uint64_t rows, uint64_t row,
                     opal_umrddt_gpu_plan_t *plan)
{
    const opal_umrddt_gpu_fit_t *fit = planning->fit;
    const uint64_t most = (uint64_t) fit->processors * fit->blocks;

    plan->block[0] = fit_width(planning, row);
    plan->block[1] = fit->threads / plan->block[0];
    plan->grid[0] = (uint32_t) least(ceiling(rows, plan->block[1]), most);
    if (row > plan->block[0]) {
        plan->grid[1] = (uint32_t) least(least(ceiling(row, plan->block[0]), MAX_GRID_YZ),
                                         ceiling(most, plan->grid[0]));
    }
}

/* Outer rows by z, inner ones by y. */
static void fit_cube(const planning_t *planning, opal_umrddt_gpu_plan_t *plan)
{
    const opal_umrddt_gpu_map_t *map = layout_of(planning);
    const opal_umrddt_gpu_fit_t *fit = planning->fit;
    umrddt_gpu_args_t *args = &plan->args.args;
    umrddt_gpu_side_t *side = &args->side[planning->ends[0]->map == map ? 0 : 1];
    const uint64_t row = ceiling(args->scale, 0 == args->width ? 16 : args->width);
    const uint64_t most = (uint64_t) fit->processors * fit->blocks;
    uint64_t outer, inner;

    args->inner = map->level[map->levels - 1].count;
    side->level[1].stride = map->level[map->levels - 1].stride;
    side->level[0].stride = 2 == map->levels ? map->level[0].stride : 0;
    args->outer_first = args->first / args->inner;
    args->outer_last = (args->last - 1) / args->inner + 1;
    outer = args->outer_last - args->outer_first;
    inner = least(args->inner, args->last - args->first);

    plan->block[0] = fit_width(planning, row);
    plan->block[1] = power_of_2(inner, fit->threads / plan->block[0]);
    plan->block[2] = power_of_2(
        outer, (uint32_t) least(fit->threads / plan->block[0] / plan->block[1], MAX_BLOCK_Z));
    plan->grid[2] = (uint32_t) least(least(ceiling(outer, plan->block[2]), MAX_GRID_YZ), most);
    plan->grid[1] = (uint32_t) least(least(ceiling(inner, plan->block[1]), MAX_GRID_YZ),
                                     ceiling(most, plan->grid[2]));
    plan->grid[0] = (uint32_t) least(ceiling(row, plan->block[0]),
                                     ceiling(most, (uint64_t) plan->grid[1] * plan->grid[2]));
}

/* ---------------------------------------------------------------------------------------------
 * The whole plan
 * ------------------------------------------------------------------------------------------- */

static bool is_sane(const opal_umrddt_gpu_end_t *end, uint64_t start, uint64_t stop)
{
    return start <= stop && 0 == (end->list & 7) && (NULL == end->map || stop <= end->map->size);
}

static bool fits(const opal_umrddt_gpu_fit_t *fit)
{
    return 0 < fit->processors && 0 < fit->blocks && 0 < fit->packed && 64 >= fit->packed
           && WARP <= fit->threads && UMRDDT_GPU_MAX_THREADS >= fit->threads
           && 0 == (fit->threads & (fit->threads - 1))
           && (uint64_t) fit->processors * fit->blocks <= INT32_MAX / 64;
}

/* Put the list into the argument if it is not on the device. */
static int place_lists(planning_t *planning, opal_umrddt_gpu_plan_t *plan, bool *in_argument)
{
    int i;

    *in_argument = false;
    plan->args_bytes = sizeof(plan->args.args);
    for (i = 0; i < 2; ++i) {
        const opal_umrddt_gpu_end_t *end = planning->ends[i], *other = planning->ends[1 - i];

        if (NULL == end->map || 0 == end->map->n || 0 != end->list) {
            continue;
        }
        if (sizeof(plan->args.data) < end->map->list_bytes || 0 == kernel_of(planning, false, true)
            || (NULL != other->map && 0 != other->map->n)) {
            return OPAL_ERR_NOT_AVAILABLE;
        }
        memcpy(plan->args.data, end->map->list, end->map->list_bytes);
        plan->args_bytes = sizeof(plan->args);
        *in_argument = true;
    }
    return OPAL_SUCCESS;
}

/* Grid and block, from the steps. */
static void fit_shape(const planning_t *planning, opal_umrddt_gpu_plan_t *plan)
{
    const umrddt_gpu_args_t *args = &plan->args.args;
    const uint64_t row = 0 == args->width ? 16 : args->width;

    switch (planning->shape) {
    case UMRDDT_GPU_ROWS:
        fit_rows(planning, args->last - args->first, ceiling(args->scale, row), plan);
        break;
    case UMRDDT_GPU_CUBE:
        fit_cube(planning, plan);
        break;
    case UMRDDT_GPU_TEAMS:
        fit_rows(planning, args->last - args->first,
                 ceiling(ceiling(args->end - args->start, args->last - args->first), row), plan);
        break;
    case UMRDDT_GPU_SPANS:
        fit_spans(planning, plan);
        break;
    default:
        fit_accesses(planning, plan);
        break;
    }
}

int opal_umrddt_gpu_plan(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                         uint64_t start, uint64_t end, const opal_umrddt_gpu_fit_t *fit,
                         opal_umrddt_gpu_plan_t *plan)
{
    planning_t planning = {.ends = {source, target}, .fit = fit};
    umrddt_gpu_args_t *args = &plan->args.args;
    bool in_argument;
    bool narrow;
    int i, rc;

    if (!is_sane(source, start, end) || !is_sane(target, start, end) || !fits(fit)) {
        return OPAL_ERR_BAD_PARAM;
    }
    for (i = 0; i < 3; ++i) {
        plan->grid[i] = 1;
        plan->block[i] = 1;
    }
    if (start == end) {
        plan->grid[0] = 0;
        return OPAL_SUCCESS;
    }
    for (i = 0; i < 2; ++i) {
        const opal_umrddt_gpu_end_t *one = planning.ends[i];

        planning.kinds[i] = NULL == one->map ? UMRDDT_GPU_STREAM : one->map->kind;
    }
    planning.width = opal_umrddt_gpu_plan_width(planning.ends, start);
    planning.work = ceiling(end - start, planning.width);
    planning.shape = choose_shape(&planning);
    rc = place_lists(&planning, plan, &in_argument);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }

    memset(args, 0, sizeof(*args));
    args->start = start;
    args->end = end;
    switch (planning.shape) {
    case UMRDDT_GPU_ROWS:
    case UMRDDT_GPU_CUBE:
        steps_of_rows(&planning, args);
        break;
    case UMRDDT_GPU_TEAMS:
        steps_of_pieces(&planning, args);
        break;
    case UMRDDT_GPU_SPANS:
        steps_of_bytes(args);
        break;
    default:
        steps_of_accesses(&planning, args);
        break;
    }
    narrow = !fit->wide && !in_argument && opal_umrddt_gpu_plan_is_narrow(args)
             && 0 != kernel_of(&planning, true, false);
    for (i = 0; i < 2; ++i) {
        opal_umrddt_gpu_plan_side(planning.ends[i], args, narrow ? args->last + 1 : UINT64_MAX,
                                  &args->side[i]);
    }
    fit_shape(&planning, plan);
    plan->kernel = (umrddt_gpu_kernel_id_t) (kernel_of(&planning, narrow, in_argument) - 1);
    return OPAL_SUCCESS;
}

const char *opal_umrddt_gpu_kernel_name(umrddt_gpu_kernel_id_t kernel)
{
    return UMRDDT_GPU_KERNEL_COUNT > (unsigned) kernel ? names[kernel] : NULL;
}
