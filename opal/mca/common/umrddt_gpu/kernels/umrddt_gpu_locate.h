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
 * From a stream position to an address, for each kind of side. KIND and BITS are constants at each
 * call, so that a kernel contains the code of one kind only.
 */

#ifndef UMRDDT_GPU_LOCATE_H
#define UMRDDT_GPU_LOCATE_H

#include "umrddt_gpu_port.h"

/* The quotient, for dividends below 2^31. */
UMRDDT_GPU_FN uint32_t umrddt_gpu_div_32(uint32_t n, const umrddt_gpu_div_t *by)
{
    return (umrddt_gpu_mulhi(n, by->magic) + n) >> by->shift;
}

/* The quotient; the divisor has the bound of its dividends. */
UMRDDT_GPU_FN uint64_t umrddt_gpu_div_any(uint64_t n, const umrddt_gpu_div_t *by)
{
    return UMRDDT_GPU_NO_MAGIC != by->shift ? (uint64_t) umrddt_gpu_div_32((uint32_t) n, by)
                                            : n / by->by;
}

/* @param[in] bits  of the arithmetic: 32, 64, or 0: as the divisor allows */
UMRDDT_GPU_FN uint64_t umrddt_gpu_div(uint64_t n, const umrddt_gpu_div_t *by, int bits)
{
    return 32 == bits   ? (uint64_t) umrddt_gpu_div_32((uint32_t) n, by)
           : 64 == bits ? n / by->by
                        : umrddt_gpu_div_any(n, by);
}

/*
 * Binary search in n elements: the last one whose key is not above a position. The keys begin at
 * `keys`, the first one is at most `position`.
 */
UMRDDT_GPU_FN uint64_t umrddt_gpu_find(const uint64_t *keys, uint64_t words, uint64_t n,
                                       uint64_t position)
{
    uint64_t low = 0, high = n;

    while (1 < high - low) {
        const uint64_t middle = low + (high - low) / 2;

        if (keys[middle * words] <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_locate_run(const umrddt_gpu_side_t *side, const void *list,
                                             uint64_t base, uint64_t position, uint64_t *rest)
{
    const umrddt_gpu_run_t *runs = (const umrddt_gpu_run_t *) list;
    const umrddt_gpu_run_t *run =
        &runs[umrddt_gpu_find(&runs->start, sizeof(*runs) / sizeof(uint64_t), side->n, position)];
    uint64_t left = position - run->start;
    const uint64_t block = umrddt_gpu_div_any(left, &run->length);

    left -= block * run->length.by;
    if (0 != rest) {
        *rest = run->length.by - left;
    }
    return base + (uint64_t) run->offset + block * (uint64_t) run->stride + left;
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_locate_iov(const umrddt_gpu_side_t *side, const void *list,
                                             uint64_t position, uint64_t *rest)
{
    const uint64_t *starts = (const uint64_t *) list, *offsets = starts + side->n + 1;
    const uint64_t piece = umrddt_gpu_find(starts, 1, side->n, position);

    if (0 != rest) {
        *rest = starts[piece + 1] - position;
    }
    return side->base + offsets[piece] + (position - starts[piece]);
}

/*
 * The piece that contains a position, searched from a near one at or before it: steps that double.
 */
UMRDDT_GPU_FN uint64_t umrddt_gpu_find_near(const uint64_t *starts, uint64_t n, uint64_t piece,
                                            uint64_t position)
{
    uint64_t step = 1, end;

    for (;;) {
        end = n - piece < step ? n : piece + step;
        if (starts[end] > position) {
            break;
        }
        piece = end;
        step *= 2;
    }
    return piece + umrddt_gpu_find(starts + piece, 1, end - piece, position);
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_locate_tree(const umrddt_gpu_side_t *side, const void *list,
                                              uint64_t position, uint64_t *rest)
{
    const umrddt_gpu_term_t *terms = (const umrddt_gpu_term_t *) list, *term = terms;
    const umrddt_gpu_block_t *blocks = (const umrddt_gpu_block_t *) (terms + side->n);
    uint64_t address = side->base, left = position, at;

    for (;;) {
        at = umrddt_gpu_div_any(left, &term->size);
        left -= at * term->size.by;
        address += (uint64_t) term->offset + at * (uint64_t) term->stride;
        if (1 != term->kind) {
            break;
        }
        at = umrddt_gpu_find(&terms[term->first].start, sizeof(*terms) / sizeof(uint64_t), term->n,
                             left);
        term = &terms[term->first + at];
        left -= term->start;
    }
    if (0 != rest) {
        *rest = term->size.by - left;
    }
    if (0 != term->kind) {
        const umrddt_gpu_block_t *block = &blocks[term->first];

        at = umrddt_gpu_find(&block->start, sizeof(*block) / sizeof(uint64_t), term->n, left);
        block += at;
        if (0 != rest && at + 1 < term->n) {
            *rest = block[1].start - left;
        }
        address += (uint64_t) block->offset;
        left -= block->start;
    }
    return address + left;
}

/**
 * The address of step @p step, all of which is in one piece.
 *
 * @param[in]  list   the side's list, if its kind has one
 * @param[in]  scale  bytes of a step
 * @param[out] rest   bytes from there to the end of the piece; of a STREAM, to the end of memory.
 *                    NULL: not needed
 */
UMRDDT_GPU_FN uint64_t umrddt_gpu_locate_piece(const umrddt_gpu_side_t *side, const void *list,
                                               uint64_t step, uint64_t scale, int kind, int bits,
                                               uint64_t *rest)
{
    uint64_t address = side->base, at;
    uint32_t i;

    if (UMRDDT_GPU_IOVS == kind) {
        return umrddt_gpu_locate_iov(side, list, step * scale, rest);
    }
    if (UMRDDT_GPU_TREE == kind) {
        return umrddt_gpu_locate_tree(side, list, step * scale, rest);
    }
    if (UMRDDT_GPU_STREAM != kind) {
        UMRDDT_GPU_UNROLL
        for (i = 0; i < UMRDDT_GPU_LEVELS; ++i) {
            if (i >= side->levels) {
                break;
            }
            at = umrddt_gpu_div(step, &side->level[i].size, bits);
            step -= at * side->level[i].size.by;
            address += at * (uint64_t) side->level[i].stride;
        }
    }
    if (UMRDDT_GPU_RUNS == kind) {
        return umrddt_gpu_locate_run(side, list, address, step * scale, rest);
    }
    if (UMRDDT_GPU_INDEXED == kind) {
        at = umrddt_gpu_div(step, &side->block, bits);
        step -= at * side->block.by;
        address += ((const uint64_t *) list)[at];
    }
    if (0 != rest) {
        *rest = UMRDDT_GPU_STREAM == kind ? 0 - (address + step * scale)
                                          : (side->block.by - step) * scale;
    }
    return address + step * scale;
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_locate(const umrddt_gpu_side_t *side, const void *list,
                                         uint64_t step, uint64_t scale, int kind, int bits)
{
    return umrddt_gpu_locate_piece(side, list, step, scale, kind, bits, 0);
}

#endif /* UMRDDT_GPU_LOCATE_H */
