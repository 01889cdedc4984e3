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
 * Selection of driver copies of 1, 2 or 3 dimensions for a copy between two places, in one call or
 * a few: finds rows, planes and boxes in the layouts. Makes no driver call.
 */

#include "opal_config.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"

#include "umrddt_gpu_route.h"

#include <string.h>

/* Maximum parts of two layouts that are read to find boxes. */
#define PAIRS 4096
/* Maximum pitch of a box. */
#define MAX_PITCH INT32_MAX
/*
 * Thresholds above which a kernel is preferred to a box. Measured on H200:
 * - Between two devices a box of few rows took 2 to 5 us less than a kernel, and about 0.25 ns more
 *   for each row of 8 bytes. Long rows are as fast up to 4 MiB. Beyond, kernels are faster except
 *   for very long rows (6 MiB in rows of 12 KiB: 45 us against 68;
 *   bench/results/h200-2026-11-22.md).
 * - Within a device a graph of a kernel took 2 us less than any box of rows, and less than half of
 *   the time for 16 MiB. One piece took the box 1 to 2 us less up to 4 MiB, and the same time
 *   beyond (bench/results/h200-2026-11-24.md).
 */
#define SHORT_ROW 256
#define LONG_ROW  4096
#define FEW_ROWS  4096
#define LARGE_BOX (UINT64_C(4) << 20)

const opal_iov_cache_form_t *opal_umrddt_gpu_form_of(const opal_umrddt_gpu_copy_end_t *copy_end,
                                                     uint64_t start, uint64_t end,
                                                     opal_umrddt_gpu_flat_t *flat)
{
    if (NULL != copy_end->layout) {
        return copy_end->layout->form;
    }
    /* One piece; position `start` is at the place's address. */
    memset(flat, 0, sizeof(*flat));
    flat->term.offset = 0 - (int64_t) start;
    flat->term.count = 1;
    flat->term.size = end;
    flat->term.segments = 1;
    flat->term.kind = OPAL_IOV_CACHE_DENSE;
    flat->form.size = end;
    flat->form.lb = flat->term.offset;
    flat->form.ub = (int64_t) (end - start);
    flat->form.segments = 1;
    flat->form.uniform = end;
    flat->form.depth = 1;
    flat->form.term_count = 1;
    flat->form.terms = &flat->term;
    return &flat->form;
}

void opal_umrddt_gpu_pairs_begin(opal_iov_cache_pairs_t *pairs,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_flat_t flat[2])
{
    opal_iov_cache_pairs_init(pairs, opal_umrddt_gpu_form_of(&copy_ends[0], start, end, &flat[0]),
                              opal_umrddt_gpu_form_of(&copy_ends[1], start, end, &flat[1]), start,
                              end);
}

/* ---------------------------------------------------------------------------------------------
 * Finding boxes
 * ------------------------------------------------------------------------------------------- */

static bool is_pitch(int64_t distance, uint64_t width)
{
    return 0 < distance && MAX_PITCH >= distance && width <= (uint64_t) distance;
}

bool opal_umrddt_gpu_box_of(const opal_iov_cache_pair_t *pair, opal_umrddt_gpu_box_t *box)
{
    int i;

    memset(box, 0, sizeof(*box));
    box->width = pair->length;
    box->height = pair->count;
    box->depth = 1;
    for (i = 0; i < 2; ++i) {
        box->offset[i] = pair->offset[i];
        if (1 < pair->count) {
            if (!is_pitch(pair->stride[i], pair->length)) {
                return false;
            }
            box->pitch[i] = (uint64_t) pair->stride[i];
        }
    }
    return true;
}

/* Merge another box as the next row or plane. @return false if it does not fit */
static bool box_add(opal_umrddt_gpu_box_t *box, const opal_umrddt_gpu_box_t *next)
{
    int64_t step[2];
    int i;

    if (next->width != box->width || 1 != next->depth) {
        return false;
    }
    for (i = 0; i < 2; ++i) {
        step[i] = next->offset[i] - box->offset[i];
    }
    if (1 == next->height && 1 == box->depth) {
        for (i = 0; i < 2; ++i) {
            if (1 == box->height ? !is_pitch(step[i], box->width)
                                 : step[i] != (int64_t) (box->height * box->pitch[i])) {
                return false;
            }
        }
        for (i = 0; 1 == box->height && i < 2; ++i) {
            box->pitch[i] = (uint64_t) step[i];
        }
        ++box->height;
        return true;
    }
    if (next->height != box->height) {
        return false;
    }
    for (i = 0; i < 2; ++i) {
        /* Planes are whole rows apart. */
        if (next->pitch[i] != box->pitch[i] || 0 >= step[i]
            || (1 == box->depth ? 0 != (uint64_t) step[i] % box->pitch[i]
                                      || (uint64_t) step[i] < box->height * box->pitch[i]
                                : step[i] != (int64_t) (box->depth * box->slice[i]))) {
            return false;
        }
    }
    for (i = 0; 1 == box->depth && i < 2; ++i) {
        box->slice[i] = (uint64_t) step[i];
    }
    ++box->depth;
    return true;
}

unsigned opal_umrddt_gpu_boxes_find(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                    uint64_t end, unsigned most, opal_umrddt_gpu_box_t *boxes)
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    opal_umrddt_gpu_box_t box;
    unsigned n = 0, seen = 0;

    opal_umrddt_gpu_pairs_begin(&pairs, copy_ends, start, end, flat);
    while (opal_iov_cache_pairs_next(&pairs, &pair)) {
        if (PAIRS < ++seen || !opal_umrddt_gpu_box_of(&pair, &box)) {
            return 0;
        }
        if (0 == n || !box_add(&boxes[n - 1], &box)) {
            if (most == n) {
                return 0;
            }
            boxes[n++] = box;
        }
    }
    return n;
}

bool opal_umrddt_gpu_box_is_better(const opal_umrddt_gpu_box_t *box, bool on_device, bool graphs)
{
    const uint64_t rows = box->height * box->depth;

    if (on_device) {
        return 1 == rows && (LARGE_BOX <= box->width || !graphs);
    }
    return 1 == rows || LONG_ROW <= box->width
           || (LARGE_BOX >= box->width * rows && (SHORT_ROW <= box->width || FEW_ROWS >= rows));
}

bool opal_umrddt_gpu_boxed(opal_iov_cache_layout_t *layout, uint64_t start, uint64_t end)
{
    const opal_umrddt_gpu_copy_end_t copy_ends[2] = {{.layout = layout}, {.layout = NULL}};
    opal_umrddt_gpu_box_t box;

    return 1 == opal_umrddt_gpu_boxes_find(copy_ends, start, end, 1, &box)
           && opal_umrddt_gpu_box_is_better(&box, false, true);
}

bool opal_umrddt_gpu_listed(const opal_iov_cache_layout_t *layout)
{
    return opal_umrddt_gpu_map_listed(layout->form);
}
