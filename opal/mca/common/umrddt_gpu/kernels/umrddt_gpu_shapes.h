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
 * The kernels: the work of one thread of a launch, for each shape. KINDs and BITS are constants at
 * each call. Loads of several accesses are issued before the first of their stores, so that a
 * thread has several in flight.
 */

#ifndef UMRDDT_GPU_SHAPES_H
#define UMRDDT_GPU_SHAPES_H

#include "umrddt_gpu_locate.h"

/** Accesses of a thread in flight. */
#if !defined(UMRDDT_GPU_BATCH)
#define UMRDDT_GPU_BATCH 4
#endif

/** Threads of a warp; WALK's lines have as many. */
#define UMRDDT_GPU_LINE 32

UMRDDT_GPU_FN uint64_t umrddt_gpu_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

UMRDDT_GPU_FN void umrddt_gpu_copy(const umrddt_gpu_thread_t *thread, uint64_t from, uint64_t to,
                                   uint32_t width)
{
    umrddt_gpu_store(thread, to, width, umrddt_gpu_load(thread, from, width));
}

/* ---------------------------------------------------------------------------------------------
 * FLAT (Yaksa: one thread per element, its position by division) and WALK
 * ------------------------------------------------------------------------------------------- */

/* The bytes before the first whole access and after the last: at most 15 each. */
UMRDDT_GPU_FN void umrddt_gpu_edges(const umrddt_gpu_thread_t *thread,
                                    const umrddt_gpu_args_t *args, const void *source,
                                    const void *target, uint64_t index, uint64_t step, int from,
                                    int to, int bits)
{
    const uint64_t head = umrddt_gpu_least(args->end, args->first * args->width);
    const uint64_t tail = args->last < args->first ? args->end : args->last * args->width;

    for (; index < 32; index += step) {
        const uint64_t position = index < 16 ? args->start + index : tail + index - 16;

        if (position < (index < 16 ? head : args->end)) {
            const uint64_t within = position & (args->width - 1);
            const uint64_t whole = (position - within) / args->width;

            umrddt_gpu_copy(
                thread,
                umrddt_gpu_locate(&args->side[0], source, whole, args->scale, from, bits) + within,
                umrddt_gpu_locate(&args->side[1], target, whole, args->scale, to, bits) + within,
                1);
        }
    }
}

/* The whole accesses, whose width is a constant here. */
UMRDDT_GPU_FN void umrddt_gpu_flat_of(const umrddt_gpu_thread_t *thread,
                                      const umrddt_gpu_args_t *args, const void *source,
                                      const void *target, uint64_t index, uint64_t step,
                                      uint32_t width, int from, int to, int bits)
{
    /* A search uses enough registers and memory bandwidth by itself. */
    const uint32_t batch =
        UMRDDT_GPU_INDEXED < from || UMRDDT_GPU_INDEXED < to ? 1 : UMRDDT_GPU_BATCH;
    uint64_t at;

    for (at = args->first + index; at < args->last; at += batch * step) {
        umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
        uint32_t k;

        UMRDDT_GPU_UNROLL
        for (k = 0; k < batch; ++k) {
            if (at + k * step < args->last) {
                words[k] = umrddt_gpu_load(
                    thread,
                    umrddt_gpu_locate(&args->side[0], source, at + k * step, width, from, bits),
                    width);
            }
        }
        UMRDDT_GPU_UNROLL
        for (k = 0; k < batch; ++k) {
            if (at + k * step < args->last) {
                umrddt_gpu_store(
                    thread,
                    umrddt_gpu_locate(&args->side[1], target, at + k * step, width, to, bits),
                    width, words[k]);
            }
        }
    }
}

/* A step's address; for IOVS from a piece at or before it, which is updated to the step's own. */
UMRDDT_GPU_FN uint64_t umrddt_gpu_locate_near(const umrddt_gpu_side_t *side, const void *list,
                                              uint64_t step, uint64_t scale, int kind, int bits,
                                              uint64_t *piece)
{
    const uint64_t *starts = (const uint64_t *) list, *offsets = starts + side->n + 1;
    const uint64_t position = step * scale;

    if (UMRDDT_GPU_IOVS != kind) {
        return umrddt_gpu_locate(side, list, step, scale, kind, bits);
    }
    *piece = umrddt_gpu_find_near(starts, side->n, *piece, position);
    return side->base + offsets[*piece] + (position - starts[*piece]);
}

/*
 * Lines of threads take tiles of the stream. All threads of a line do the same search for the
 * tile's first piece, then each continues from there. The width is a constant here.
 */
UMRDDT_GPU_FN void umrddt_gpu_tiles(const umrddt_gpu_thread_t *thread,
                                    const umrddt_gpu_args_t *args, const void *source,
                                    const void *target, uint64_t line, uint64_t lines,
                                    uint32_t width, int from, int to, int bits)
{
    const uint32_t lane = thread->tid_x % UMRDDT_GPU_LINE;
    uint64_t tile;

    for (tile = args->first + line * args->inner; tile < args->last; tile += lines * args->inner) {
        const uint64_t stop = umrddt_gpu_least(tile + args->inner, args->last);
        uint64_t near[2] = {0, 0}, at;

        if (UMRDDT_GPU_IOVS == from) {
            near[0] = umrddt_gpu_find((const uint64_t *) source, 1, args->side[0].n, tile * width);
        }
        if (UMRDDT_GPU_IOVS == to) {
            near[1] = umrddt_gpu_find((const uint64_t *) target, 1, args->side[1].n, tile * width);
        }
        for (at = tile + lane; at < stop; at += UMRDDT_GPU_BATCH * UMRDDT_GPU_LINE) {
            umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
            uint32_t k;

            UMRDDT_GPU_UNROLL
            for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
                if (at + k * UMRDDT_GPU_LINE < stop) {
                    words[k] = umrddt_gpu_load(thread,
                                               umrddt_gpu_locate_near(&args->side[0], source,
                                                                      at + k * UMRDDT_GPU_LINE,
                                                                      width, from, bits, &near[0]),
                                               width);
                }
            }
            UMRDDT_GPU_UNROLL
            for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
                if (at + k * UMRDDT_GPU_LINE < stop) {
                    umrddt_gpu_store(thread,
                                     umrddt_gpu_locate_near(&args->side[1], target,
                                                            at + k * UMRDDT_GPU_LINE, width, to,
                                                            bits, &near[1]),
                                     width, words[k]);
                }
            }
        }
    }
}

UMRDDT_GPU_FN void umrddt_gpu_flat(const umrddt_gpu_thread_t *thread, const umrddt_gpu_args_t *args,
                                   const void *source, const void *target, int from, int to,
                                   int bits)
{
    const uint64_t step = (uint64_t) thread->all_x * thread->dim_x;
    const uint64_t index = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;

#define TILES(WIDTH)                                                        \
    umrddt_gpu_tiles(thread, args, source, target, index / UMRDDT_GPU_LINE, \
                     step / UMRDDT_GPU_LINE, WIDTH, from, to, bits)
#define FLAT(WIDTH) \
    umrddt_gpu_flat_of(thread, args, source, target, index, step, WIDTH, from, to, bits)
    if (UMRDDT_GPU_IOVS == from || UMRDDT_GPU_IOVS == to) {
        UMRDDT_GPU_BY_WIDTH(args->width, TILES);
    } else {
        UMRDDT_GPU_BY_WIDTH(args->width, FLAT);
    }
#undef FLAT
#undef TILES
    umrddt_gpu_edges(thread, args, source, target, index, step, from, to, bits);
}

/*
 * A line of threads takes a tile of the stream. All threads do the same search for the tile's first
 * piece, then each continues from piece to piece. One side is a stream.
 */
UMRDDT_GPU_FN void umrddt_gpu_walk(const umrddt_gpu_thread_t *thread, const umrddt_gpu_args_t *args,
                                   const void *source, const void *target, int from, int to,
                                   int bits)
{
    const umrddt_gpu_side_t *pieces = &args->side[UMRDDT_GPU_IOVS == from ? 0 : 1];
    const umrddt_gpu_side_t *stream = &args->side[UMRDDT_GPU_IOVS == from ? 1 : 0];
    const uint64_t *starts = (const uint64_t *) (UMRDDT_GPU_IOVS == from ? source : target);
    const uint64_t *offsets = starts + pieces->n + 1;
    const uint64_t lines = (uint64_t) thread->all_x * thread->dim_y;
    const uint64_t line = (uint64_t) thread->bid_x * thread->dim_y + thread->tid_y;
    const uint32_t width = args->width;
    uint64_t tile;

    for (tile = args->first + line * args->inner; tile < args->last; tile += lines * args->inner) {
        const uint64_t stop = umrddt_gpu_least(tile + args->inner, args->last);
        uint64_t piece = umrddt_gpu_find(starts, 1, pieces->n, tile * width), at;

        for (at = tile + thread->tid_x; at < stop; at += thread->dim_x) {
            const uint64_t position = at * width;
            uint64_t location;

            while (starts[piece + 1] <= position) {
                ++piece;
            }
            location = pieces->base + offsets[piece] + (position - starts[piece]);
            umrddt_gpu_copy(thread, UMRDDT_GPU_IOVS == from ? location : stream->base + position,
                            UMRDDT_GPU_IOVS == from ? stream->base + position : location, width);
        }
    }
    umrddt_gpu_edges(thread, args, source, target, line * thread->dim_x + thread->tid_x,
                     lines * thread->dim_x, from, to, bits);
}

/* ---------------------------------------------------------------------------------------------
 * ROWS (HAND: two-dimensional thread blocks, as wide as a row), CUBE (TEMPI) and TEAMS
 * ------------------------------------------------------------------------------------------- */

UMRDDT_GPU_FN void umrddt_gpu_span_of(const umrddt_gpu_thread_t *thread, uint64_t from, uint64_t to,
                                      uint64_t n, uint64_t x, uint64_t step, uint32_t width)
{
    uint64_t at;

    for (at = x; at < n; at += UMRDDT_GPU_BATCH * step) {
        umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
        uint32_t k;

        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < n) {
                words[k] = umrddt_gpu_load(thread, from + (at + k * step) * width, width);
            }
        }
        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < n) {
                umrddt_gpu_store(thread, to + (at + k * step) * width, width, words[k]);
            }
        }
    }
}

/*
 * The addresses have different alignments: stores of 8 bytes, each composed of the two words that
 * contain its bytes. Nothing outside the piece is read.
 */
UMRDDT_GPU_FN void umrddt_gpu_span_shifted(const umrddt_gpu_thread_t *thread, uint64_t from,
                                           uint64_t to, uint64_t length, uint64_t x, uint64_t step)
{
    const uint64_t behind = (from - to) & 7; /* of a word, where a store begins; never 0 */
    const uint32_t right = (uint32_t) behind * 8, left = 64 - right;
    uint64_t head = (0 - to) & 7, n = 0, first, at;

    head += head < behind ? 8 : 0;
    first = from + head - behind;
    if (length >= head + 16) {
        n = (length - (head - behind)) / 8 - 1;
    } else {
        head = length;
    }
    for (at = x; at < n; at += UMRDDT_GPU_BATCH * step) {
        umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
        uint32_t k;

        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < n) {
                words[k].low = umrddt_gpu_load(thread, first + (at + k * step) * 8, 8).low;
                words[k].high = umrddt_gpu_load(thread, first + (at + k * step) * 8 + 8, 8).low;
            }
        }
        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (at + k * step < n) {
                words[k].low = words[k].low >> right | words[k].high << left;
                umrddt_gpu_store(thread, to + head + (at + k * step) * 8, 8, words[k]);
            }
        }
    }
    for (at = x; at < head; at += step) {
        umrddt_gpu_copy(thread, from + at, to + at, 1);
    }
    for (at = head + n * 8 + x; at < length; at += step) {
        umrddt_gpu_copy(thread, from + at, to + at, 1);
    }
}

/**
 * Copy one piece, by `step` threads of which this one is the `x`th.
 *
 * @param[in] width  bytes of an access, for which both addresses are at the same distance from an
 *                   aligned one; or 0: the largest for which they are, or words that are shifted
 */
UMRDDT_GPU_FN void umrddt_gpu_span(const umrddt_gpu_thread_t *thread, uint64_t from, uint64_t to,
                                   uint64_t length, uint64_t x, uint64_t step, uint32_t width)
{
    uint64_t head, n, at;

    if (0 == width) {
        const uint32_t apart = (uint32_t) (from ^ to) | 16;

        width = apart & (~apart + 1);
        if (4 > width) {
            umrddt_gpu_span_shifted(thread, from, to, length, x, step);
            return;
        }
    }
    head = umrddt_gpu_least((0 - from) & (width - 1), length);
    n = (length - head) / width;
#define SPAN(WIDTH) umrddt_gpu_span_of(thread, from + head, to + head, n, x, step, WIDTH)
    UMRDDT_GPU_BY_WIDTH(width, SPAN);
#undef SPAN
    for (at = x; at < head; at += step) {
        umrddt_gpu_copy(thread, from + at, to + at, 1);
    }
    for (at = head + n * width + x; at < length; at += step) {
        umrddt_gpu_copy(thread, from + at, to + at, 1);
    }
}

/* The part of [at, at + length) in the range; false if empty. */
UMRDDT_GPU_FN int umrddt_gpu_cut(const umrddt_gpu_args_t *args, uint64_t at, uint64_t length,
                                 uint64_t *low, uint64_t *high)
{
    *low = at < args->start ? args->start - at : 0;
    *high = at + length > args->end ? (at < args->end ? args->end - at : 0) : length;
    return *low < *high;
}

/*
 * Whole rows with at most one access per thread of a line: each thread has one in each of several
 * rows. The width is a constant here.
 */
UMRDDT_GPU_FN void umrddt_gpu_short_rows(const umrddt_gpu_thread_t *thread,
                                         const umrddt_gpu_args_t *args, const void *source,
                                         const void *target, uint64_t row, uint64_t last,
                                         uint64_t step, uint64_t x, uint32_t width, int from,
                                         int to, int bits)
{
    const uint64_t within = x * width;

    for (; row < last; row += UMRDDT_GPU_BATCH * step) {
        umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
        uint32_t k;

        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (row + k * step < last) {
                words[k] = umrddt_gpu_load(thread,
                                           umrddt_gpu_locate(&args->side[0], source, row + k * step,
                                                             args->scale, from, bits)
                                               + within,
                                           width);
            }
        }
        UMRDDT_GPU_UNROLL
        for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
            if (row + k * step < last) {
                umrddt_gpu_store(
                    thread,
                    umrddt_gpu_locate(&args->side[1], target, row + k * step, args->scale, to, bits)
                        + within,
                    width, words[k]);
            }
        }
    }
}

UMRDDT_GPU_FN void umrddt_gpu_rows(const umrddt_gpu_thread_t *thread, const umrddt_gpu_args_t *args,
                                   const void *source, const void *target, int from, int to,
                                   int bits)
{
    const uint64_t step = (uint64_t) thread->all_x * thread->dim_y;
    const uint64_t lines = (uint64_t) thread->all_y * thread->dim_x;
    const uint64_t x = (uint64_t) thread->bid_y * thread->dim_x + thread->tid_x;
    const uint64_t begin = (uint64_t) thread->bid_x * thread->dim_y + thread->tid_y;
    const uint32_t width = args->width;
    uint64_t row = args->first + begin, apart = step, low, high;

    if (0 != width && args->scale <= lines * width) {
        /* all but the first and the last, which may be cut */
        const uint64_t first = args->first + 1, last = args->last - 1;

        if (x * width < args->scale && first < last) {
#define SHORT(WIDTH)                                                                               \
    umrddt_gpu_short_rows(thread, args, source, target, first + begin, last, step, x, WIDTH, from, \
                          to, bits)
            UMRDDT_GPU_BY_WIDTH(width, SHORT);
#undef SHORT
        }
        if (0 < begin) {
            return;
        }
        apart = first < args->last ? args->last - first : 1;
    }
    for (; row < args->last; row += apart) {
        if (umrddt_gpu_cut(args, row * args->scale, args->scale, &low, &high)) {
            umrddt_gpu_span(
                thread,
                umrddt_gpu_locate(&args->side[0], source, row, args->scale, from, bits) + low,
                umrddt_gpu_locate(&args->side[1], target, row, args->scale, to, bits) + low,
                high - low, x, lines, width);
        }
    }
}

UMRDDT_GPU_FN void umrddt_gpu_cube(const umrddt_gpu_thread_t *thread, const umrddt_gpu_args_t *args,
                                   const void *source, const void *target, int from, int to,
                                   int bits)
{
    const umrddt_gpu_side_t *strided = &args->side[UMRDDT_GPU_STRIDED == from ? 0 : 1];
    const umrddt_gpu_side_t *stream = &args->side[UMRDDT_GPU_STRIDED == from ? 1 : 0];
    const uint64_t x = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;
    uint64_t outer, inner, low, high;

    (void) source;
    (void) target;
    (void) to;
    (void) bits;
    for (outer = args->outer_first + (uint64_t) thread->bid_z * thread->dim_z + thread->tid_z;
         outer < args->outer_last; outer += (uint64_t) thread->all_z * thread->dim_z) {
        const uint64_t row = outer * args->inner;
        const uint64_t first = row < args->first ? args->first - row : 0;
        const uint64_t last = umrddt_gpu_least(args->inner, args->last - row);

        for (inner = first + (uint64_t) thread->bid_y * thread->dim_y + thread->tid_y; inner < last;
             inner += (uint64_t) thread->all_y * thread->dim_y) {
            const uint64_t position = (row + inner) * args->scale;
            const uint64_t location = strided->base + outer * (uint64_t) strided->level[0].stride
                                      + inner * (uint64_t) strided->level[1].stride;

            if (umrddt_gpu_cut(args, position, args->scale, &low, &high)) {
                umrddt_gpu_span(
                    thread, (UMRDDT_GPU_STRIDED == from ? location : stream->base + position) + low,
                    (UMRDDT_GPU_STRIDED == from ? stream->base + position : location) + low,
                    high - low, x, (uint64_t) thread->all_x * thread->dim_x, args->width);
            }
        }
    }
}

UMRDDT_GPU_FN void umrddt_gpu_teams(const umrddt_gpu_thread_t *thread,
                                    const umrddt_gpu_args_t *args, const void *source,
                                    const void *target, int from, int to, int bits)
{
    const umrddt_gpu_side_t *pieces = &args->side[UMRDDT_GPU_IOVS == from ? 0 : 1];
    const umrddt_gpu_side_t *stream = &args->side[UMRDDT_GPU_IOVS == from ? 1 : 0];
    const uint64_t *starts = (const uint64_t *) (UMRDDT_GPU_IOVS == from ? source : target);
    const uint64_t *offsets = starts + pieces->n + 1;
    const uint64_t step = (uint64_t) thread->all_x * thread->dim_y;
    const uint64_t x = (uint64_t) thread->bid_y * thread->dim_x + thread->tid_x;
    uint64_t piece, low, high;

    (void) to;
    (void) bits;
    for (piece = args->first + (uint64_t) thread->bid_x * thread->dim_y + thread->tid_y;
         piece < args->last; piece += step) {
        const uint64_t position = starts[piece], location = pieces->base + offsets[piece];

        if (umrddt_gpu_cut(args, position, starts[piece + 1] - position, &low, &high)) {
            umrddt_gpu_span(thread,
                            (UMRDDT_GPU_IOVS == from ? location : stream->base + position) + low,
                            (UMRDDT_GPU_IOVS == from ? stream->base + position : location) + low,
                            high - low, x, (uint64_t) thread->all_y * thread->dim_x, args->width);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * SPANS: layouts with some misaligned pieces, or pieces of odd lengths
 * ------------------------------------------------------------------------------------------- */

/* Minimum length of a span for a line of threads; shorter ones are copied by bytes. */
#define UMRDDT_GPU_SPAN 64

/* Bytes of the stream, each by itself. */
UMRDDT_GPU_FN void umrddt_gpu_bytes(const umrddt_gpu_thread_t *thread,
                                    const umrddt_gpu_args_t *args, const void *source,
                                    const void *target, uint64_t at, uint64_t stop)
{
    umrddt_gpu_word_t words[UMRDDT_GPU_BATCH];
    uint32_t k;

    UMRDDT_GPU_UNROLL
    for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
        if (at + k * UMRDDT_GPU_LINE < stop) {
            words[k] =
                umrddt_gpu_load(thread,
                                umrddt_gpu_locate(&args->side[0], source, at + k * UMRDDT_GPU_LINE,
                                                  1, (int) args->side[0].kind, 64),
                                1);
        }
    }
    UMRDDT_GPU_UNROLL
    for (k = 0; k < UMRDDT_GPU_BATCH; ++k) {
        if (at + k * UMRDDT_GPU_LINE < stop) {
            umrddt_gpu_store(thread,
                             umrddt_gpu_locate(&args->side[1], target, at + k * UMRDDT_GPU_LINE, 1,
                                               (int) args->side[1].kind, 64),
                             1, words[k]);
        }
    }
}

/*
 * A line of threads takes a tile of the stream and splits it where a piece of either side ends.
 * Each of these spans uses the widest access that its two addresses allow, independent of the
 * others. All threads of a line do the same lookups.
 */
UMRDDT_GPU_FN void umrddt_gpu_spans(const umrddt_gpu_thread_t *thread,
                                    const umrddt_gpu_args_t *args, const void *source,
                                    const void *target)
{
    const uint64_t lines = (uint64_t) thread->all_x * thread->dim_x / UMRDDT_GPU_LINE;
    const uint64_t index = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;
    const uint32_t lane = thread->tid_x % UMRDDT_GPU_LINE;
    uint64_t tile, at, n;

    for (tile = args->start + index / UMRDDT_GPU_LINE * args->inner; tile < args->end;
         tile += lines * args->inner) {
        const uint64_t stop = umrddt_gpu_least(tile + args->inner, args->end);

        for (at = tile; at < stop; at += n) {
            uint64_t rest[2];
            const uint64_t from = umrddt_gpu_locate_piece(&args->side[0], source, at, 1,
                                                          (int) args->side[0].kind, 64, &rest[0]);
            const uint64_t to = umrddt_gpu_locate_piece(&args->side[1], target, at, 1,
                                                        (int) args->side[1].kind, 64, &rest[1]);

            n = umrddt_gpu_least(umrddt_gpu_least(rest[0], rest[1]), stop - at);
            if (UMRDDT_GPU_SPAN <= n) {
                umrddt_gpu_span(thread, from, to, n, lane, UMRDDT_GPU_LINE, 0);
            } else {
                n = umrddt_gpu_least(UMRDDT_GPU_BATCH * UMRDDT_GPU_LINE, stop - at);
                umrddt_gpu_bytes(thread, args, source, target, at + lane, at + n);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Dispatch
 * ------------------------------------------------------------------------------------------- */

/** One thread of kernel (shape, from, to, bits). */
UMRDDT_GPU_FN void umrddt_gpu_run(const umrddt_gpu_thread_t *thread, const umrddt_gpu_args_t *args,
                                  const void *source, const void *target, int shape, int from,
                                  int to, int bits)
{
    switch (shape) {
    case UMRDDT_GPU_FLAT:
        umrddt_gpu_flat(thread, args, source, target, from, to, bits);
        break;
    case UMRDDT_GPU_ROWS:
        umrddt_gpu_rows(thread, args, source, target, from, to, bits);
        break;
    case UMRDDT_GPU_CUBE:
        umrddt_gpu_cube(thread, args, source, target, from, to, bits);
        break;
    case UMRDDT_GPU_WALK:
        umrddt_gpu_walk(thread, args, source, target, from, to, bits);
        break;
    case UMRDDT_GPU_SPANS:
        umrddt_gpu_spans(thread, args, source, target);
        break;
    default:
        umrddt_gpu_teams(thread, args, source, target, from, to, bits);
        break;
    }
}

#endif /* UMRDDT_GPU_SHAPES_H */
