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

#include "umrddt_gpu_batch.h"

/* Threads of a warp. */
#define WARP 32

static uint64_t ceiling(uint64_t a, uint64_t b)
{
    return a / b + (0 != a % b);
}

static bool is_valid(const opal_umrddt_gpu_end_t *end, uint64_t start, uint64_t stop)
{
    return start < stop && (NULL == end->map || stop <= end->map->size);
}

/* True if a side consists of levels only. */
static bool is_simple(const opal_umrddt_gpu_end_t *end)
{
    return NULL == end->map || UMRDDT_GPU_STRIDED >= end->map->kind;
}

/* True if accesses are narrow and pieces are long: then spans select their own width. */
static bool is_mixed(const opal_umrddt_gpu_end_t *ends[2], uint32_t width,
                     const opal_umrddt_gpu_fit_t *fit)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (NULL != ends[i]->map && UMRDDT_GPU_STREAM != ends[i]->map->kind
            && fit->ragged_length > ends[i]->map->piece) {
            return false;
        }
    }
    return width < fit->ragged_width;
}

/* One side of a REGULAR part. @return words */
static uint16_t put_side(const umrddt_gpu_side_t *side, umrddt_gpu_regular_t *head, int which,
                         uint64_t *words)
{
    umrddt_gpu_part_side_t mine;
    uint32_t i;

    mine.base = side->base;
    for (i = 0; i < side->levels; ++i) {
        mine.level[i].stride = side->level[i].stride;
        mine.level[i].size = (uint32_t) side->level[i].size.by;
        mine.level[i].magic = side->level[i].size.magic;
        head->shift[which][i] = (uint8_t) side->level[i].size.shift;
    }
    head->levels[which] = (uint8_t) side->levels;
    memcpy(words, &mine, sizeof(uint64_t) + side->levels * sizeof(mine.level[0]));
    return (uint16_t) (1 + 2 * side->levels);
}

static void fill_regular(const umrddt_gpu_args_t *args, opal_umrddt_gpu_part_t *part)
{
    umrddt_gpu_regular_t head;
    int i;

    memset(&head, 0, sizeof(head));
    head.start = args->start;
    head.end = args->end;
    head.width = args->width;
    part->mode = UMRDDT_GPU_PART_REGULAR;
    part->words = sizeof(head) / sizeof(uint64_t);
    for (i = 0; i < 2; ++i) {
        part->words =
            (uint16_t) (part->words + put_side(&args->side[i], &head, i, &part->word[part->words]));
    }
    memcpy(part->word, &head, sizeof(head));
}

int opal_umrddt_gpu_part_plan(const opal_umrddt_gpu_end_t *source,
                              const opal_umrddt_gpu_end_t *target, uint64_t start, uint64_t end,
                              const opal_umrddt_gpu_fit_t *fit, opal_umrddt_gpu_part_t *part)
{
    const opal_umrddt_gpu_end_t *ends[2] = {source, target};
    const uint64_t most = (uint64_t) fit->processors * fit->blocks;
    umrddt_gpu_args_t args;
    uint64_t work;
    bool narrow, mixed;
    int i;

    if (!is_valid(source, start, end) || !is_valid(target, start, end)) {
        return OPAL_ERR_BAD_PARAM;
    }
    for (i = 0; i < 2; ++i) {
        if (NULL != ends[i]->map && 0 < ends[i]->map->n && 0 == ends[i]->list) {
            return OPAL_ERR_NOT_AVAILABLE;
        }
    }
    memset(&args, 0, sizeof(args));
    args.width = opal_umrddt_gpu_plan_width(ends, start);
    mixed = is_mixed(ends, args.width, fit);
    args.width = mixed ? 0 : args.width;
    args.scale = mixed ? 1 : args.width;
    args.start = start;
    args.end = end;
    args.first = ceiling(start, args.scale);
    args.last = end / args.scale;
    narrow = opal_umrddt_gpu_plan_is_narrow(&args);
    for (i = 0; i < 2; ++i) {
        opal_umrddt_gpu_plan_side(ends[i], &args, narrow && !mixed ? args.last + 1 : UINT64_MAX,
                                  &args.side[i]);
    }
    if (mixed) {
        args.inner = (uint64_t) 16 * WARP;
        work = ceiling(end - start, 16);
    } else {
        work = args.last < args.first ? 1 : args.last - args.first;
    }
    work = ceiling(work, fit->threads);
    part->blocks = (uint32_t) (0 == work ? 1 : work < most ? work : most);
    if (narrow && !mixed && is_simple(source) && is_simple(target)) {
        fill_regular(&args, part);
        return OPAL_SUCCESS;
    }
    part->mode = mixed ? UMRDDT_GPU_PART_SPANS : UMRDDT_GPU_PART_ANY;
    part->words = OPAL_UMRDDT_GPU_PART_WORDS;
    memcpy(part->word, &args, sizeof(args));
    return OPAL_SUCCESS;
}

bool opal_umrddt_gpu_batch_add(opal_umrddt_gpu_batch_t *batch, const opal_umrddt_gpu_part_t *part)
{
    if (batch->args.n + 1 + part->words > batch->back) {
        return false;
    }
    batch->back -= part->words;
    memcpy(&batch->args.word[batch->back], part->word, part->words * sizeof(uint64_t));
    batch->args.word[batch->args.n++] = UMRDDT_GPU_PART(batch->blocks, batch->back, part->mode);
    batch->blocks += part->blocks;
    if (UMRDDT_GPU_PART_REGULAR != part->mode) {
        batch->kernel = UMRDDT_GPU_KERNEL_BATCH_ANY;
    }
    return true;
}
