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
 * The kernel of batches: the work of one thread. A block finds its part by its index; the method of
 * a part is the same for all its threads. No part waits for another.
 */

#ifndef UMRDDT_GPU_PARTS_H
#define UMRDDT_GPU_PARTS_H

#include "umrddt_gpu_shapes.h"

/* ---------------------------------------------------------------------------------------------
 * REGULAR: STREAM and STRIDED at both ends
 * ------------------------------------------------------------------------------------------- */

UMRDDT_GPU_FN uint64_t umrddt_gpu_part_locate(const umrddt_gpu_part_side_t *side, uint32_t levels,
                                              const uint8_t *shift, uint32_t step, uint32_t width)
{
    uint64_t address = side->base;
    uint32_t i;

    for (i = 0; i < levels; ++i) {
        const umrddt_gpu_part_level_t *level = &side->level[i];
        const uint32_t at = (umrddt_gpu_mulhi(step, level->magic) + step) >> shift[i];

        step -= at * level->size;
        address += at * (uint64_t) level->stride;
    }
    return address + (uint64_t) step * width;
}

/* The whole accesses, whose width is a constant here. */
UMRDDT_GPU_FN void umrddt_gpu_part_of(const umrddt_gpu_thread_t *thread,
                                      const umrddt_gpu_regular_t *part,
                                      const umrddt_gpu_part_side_t *from,
                                      const umrddt_gpu_part_side_t *to, uint32_t first,
                                      uint32_t last, uint32_t step, uint32_t width)
{
    uint32_t at;

    for (at = first; at < last; at += UMRDDT_GPU_BATCH * step) {
        umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
        uint32_t k;

        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < last) {
                words[k] =
                    umrddt_gpu_load(thread,
                                    umrddt_gpu_part_locate(from, part->levels[0], part->shift[0],
                                                           at + k * step, width),
                                    width);
            }
        }
        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < last) {
                umrddt_gpu_store(thread,
                                 umrddt_gpu_part_locate(to, part->levels[1], part->shift[1],
                                                        at + k * step, width),
                                 width, words[k]);
            }
        }
    }
}

/* The bytes before the first whole access and after the last: at most 15 each. */
UMRDDT_GPU_FN void umrddt_gpu_part_edges(const umrddt_gpu_thread_t *thread,
                                         const umrddt_gpu_regular_t *part,
                                         const umrddt_gpu_part_side_t *from,
                                         const umrddt_gpu_part_side_t *to, uint32_t first,
                                         uint32_t last, uint32_t index)
{
    const uint64_t head = umrddt_gpu_least(part->end, (uint64_t) first * part->width);
    const uint64_t tail = last < first ? part->end : (uint64_t) last * part->width;
    const uint64_t position = index < 16 ? part->start + index : tail + index - 16;

    if (index < 32 && position < (index < 16 ? head : part->end)) {
        const uint32_t within = (uint32_t) position & (part->width - 1);
        const uint32_t whole = (uint32_t) ((position - within) / part->width);

        umrddt_gpu_copy(
            thread,
            umrddt_gpu_part_locate(from, part->levels[0], part->shift[0], whole, part->width)
                + within,
            umrddt_gpu_part_locate(to, part->levels[1], part->shift[1], whole, part->width)
                + within,
            1);
    }
}

UMRDDT_GPU_FN void umrddt_gpu_part_regular(const umrddt_gpu_thread_t *thread, const uint64_t *words)
{
    const umrddt_gpu_regular_t *part = (const umrddt_gpu_regular_t *) words;
    const uint64_t *sides = words + sizeof(*part) / sizeof(uint64_t);
    const umrddt_gpu_part_side_t *from = (const umrddt_gpu_part_side_t *) sides;
    const umrddt_gpu_part_side_t *to =
        (const umrddt_gpu_part_side_t *) (sides + 1 + 2 * part->levels[0]);
    const uint32_t width = part->width;
    const uint32_t first = (uint32_t) ((part->start + width - 1) / width);
    const uint32_t last = (uint32_t) (part->end / width);
    const uint32_t step = thread->all_x * thread->dim_x;
    const uint32_t index = thread->bid_x * thread->dim_x + thread->tid_x;

#define PART(WIDTH) umrddt_gpu_part_of(thread, part, from, to, first + index, last, step, WIDTH)
    UMRDDT_GPU_BY_WIDTH(width, PART);
#undef PART
    umrddt_gpu_part_edges(thread, part, from, to, first, last, index);
}

/* ---------------------------------------------------------------------------------------------
 * ANY: all kinds, each access looked up at both ends
 * ------------------------------------------------------------------------------------------- */

UMRDDT_GPU_FN void umrddt_gpu_part_any(const umrddt_gpu_thread_t *thread,
                                       const umrddt_gpu_args_t *args, const void *source,
                                       const void *target)
{
    const uint64_t step = (uint64_t) thread->all_x * thread->dim_x;
    const uint64_t index = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;
    const int from = (int) args->side[0].kind, to = (int) args->side[1].kind;
    uint64_t at;

    for (at = args->first + index; at < args->last; at += step) {
        umrddt_gpu_copy(thread, umrddt_gpu_locate(&args->side[0], source, at, args->scale, from, 0),
                        umrddt_gpu_locate(&args->side[1], target, at, args->scale, to, 0),
                        args->width);
    }
    umrddt_gpu_edges(thread, args, source, target, index, step, from, to, 0);
}

/* ---------------------------------------------------------------------------------------------
 * Dispatch
 * ------------------------------------------------------------------------------------------- */

/**
 * One thread of a batch.
 *
 * @param[in,out] thread  its indices become those within its part
 * @param[in]     any     0: all parts are REGULAR. A constant: that kernel needs fewer registers
 */
UMRDDT_GPU_FN void umrddt_gpu_batch(umrddt_gpu_thread_t *thread, const umrddt_gpu_batch_t *batch,
                                    int any)
{
    uint32_t low = 0, high = batch->n;
    const umrddt_gpu_args_t *args;
    const uint64_t *words;
    uint64_t word;

    while (1 < high - low) {
        const uint32_t middle = low + (high - low) / 2;

        if (UMRDDT_GPU_PART_FIRST(batch->word[middle]) <= thread->bid_x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    word = batch->word[low];
    words = &batch->word[UMRDDT_GPU_PART_AT(word)];
    if (low + 1 < batch->n) {
        thread->all_x = UMRDDT_GPU_PART_FIRST(batch->word[low + 1]);
    }
    thread->all_x -= UMRDDT_GPU_PART_FIRST(word);
    thread->bid_x -= UMRDDT_GPU_PART_FIRST(word);
    if (!any || UMRDDT_GPU_PART_REGULAR == UMRDDT_GPU_PART_MODE(word)) {
        umrddt_gpu_part_regular(thread, words);
        return;
    }
    args = (const umrddt_gpu_args_t *) words;
    if (UMRDDT_GPU_PART_SPANS == UMRDDT_GPU_PART_MODE(word)) {
        umrddt_gpu_spans(thread, args, UMRDDT_GPU_LIST(args->side[0].list),
                         UMRDDT_GPU_LIST(args->side[1].list));
    } else {
        umrddt_gpu_part_any(thread, args, UMRDDT_GPU_LIST(args->side[0].list),
                            UMRDDT_GPU_LIST(args->side[1].list));
    }
}

#endif /* UMRDDT_GPU_PARTS_H */
