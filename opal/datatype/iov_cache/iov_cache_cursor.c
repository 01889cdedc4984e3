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
 * Walking forms: runs, and two forms side by side, so that their intersection is never
 * materialised.
 */

#include "opal_config.h"

#include "iov_cache_find.h"
#include "iov_cache_form.h"

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void push(opal_iov_cache_cursor_t *cursor, const opal_iov_cache_term_t *term, int64_t base)
{
    ++cursor->level;
    cursor->frames[cursor->level].term = term;
    cursor->frames[cursor->level].base = base;
    cursor->frames[cursor->level].repeat = 0;
    cursor->frames[cursor->level].child = 0;
}

/* Descend from a term of terms to the first one with blocks. */
static void descend(opal_iov_cache_cursor_t *cursor)
{
    for (;;) {
        const opal_iov_cache_term_t *term = cursor->frames[cursor->level].term, *child;

        if (OPAL_IOV_CACHE_TERMS != term->kind) {
            return;
        }
        child = &cursor->form->terms[term->first + cursor->frames[cursor->level].child];
        push(cursor, child, cursor->frames[cursor->level].base + child->offset);
    }
}

/* The term at the lowest level is done: advance to the next one. */
static void ascend(opal_iov_cache_cursor_t *cursor)
{
    while (0 < cursor->level
           && cursor->frames[cursor->level].repeat == cursor->frames[cursor->level].term->count) {
        const opal_iov_cache_term_t *term;

        --cursor->level;
        term = cursor->frames[cursor->level].term;
        if (++cursor->frames[cursor->level].child == term->n) {
            cursor->frames[cursor->level].child = 0;
            ++cursor->frames[cursor->level].repeat;
            cursor->frames[cursor->level].base =
                opal_iov_cache_moved(cursor->frames[cursor->level].base, 1, term->stride);
        }
    }
    if (cursor->frames[cursor->level].repeat < cursor->frames[cursor->level].term->count) {
        descend(cursor);
    }
}

void opal_iov_cache_cursor_init(opal_iov_cache_cursor_t *cursor, const opal_iov_cache_form_t *form,
                                uint64_t start, uint64_t end)
{
    const opal_iov_cache_term_t *term = form->terms;
    int64_t base = 0;
    uint64_t left = start, repeat;

    cursor->form = form;
    cursor->end = least(end, form->size);
    cursor->position = start;
    cursor->level = 0;
    cursor->skip = 0;
    if (start >= cursor->end) {
        cursor->position = cursor->end;
        return;
    }
    for (--cursor->level;;) { /* push begins at level 0 */
        repeat = left / term->size;
        left -= repeat * term->size;
        base = opal_iov_cache_moved(base + term->offset, repeat, term->stride);
        push(cursor, term, base);
        cursor->frames[cursor->level].repeat = repeat;
        if (OPAL_IOV_CACHE_DENSE == term->kind) {
            break;
        }
        if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
            uint64_t begins;

            cursor->frames[cursor->level].child =
                opal_iov_cache_find_block(form, term, left, &begins);
            left -= begins;
            break;
        }
        cursor->frames[cursor->level].child =
            opal_iov_cache_find(&form->terms[term->first].start, sizeof(*term), term->n, left);
        term = &form->terms[term->first + cursor->frames[cursor->level].child];
        left -= term->start;
    }
    cursor->skip = left;
}

bool opal_iov_cache_cursor_next(opal_iov_cache_cursor_t *cursor, opal_iov_cache_run_t *run)
{
    const opal_iov_cache_term_t *term;
    uint64_t left = cursor->end - cursor->position, blocks = 1, size, repeat;
    int64_t offset = 0;

    if (0 == left) {
        return false;
    }
    term = cursor->frames[cursor->level].term;
    size = term->size;
    repeat = cursor->frames[cursor->level].repeat;
    if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        uint64_t child = cursor->frames[cursor->level].child;
        const opal_iov_cache_block_t *block = &cursor->form->blocks[term->first + child];

        size = block->length;
        offset = block->offset;
    } else if (0 == cursor->skip) {
        blocks = left < 2 * size ? 1 : least(term->count - repeat, left / size);
    }
    run->position = cursor->position;
    run->offset = cursor->frames[cursor->level].base + offset + (int64_t) cursor->skip;
    run->length = least(size - cursor->skip, left);
    run->count = blocks;
    run->stride = 1 < blocks ? term->stride : 0;
    cursor->position += blocks * run->length;
    cursor->skip += run->length;
    if (cursor->skip < size) {
        return true; /* the end of the range */
    }
    cursor->skip = 0;
    if (OPAL_IOV_CACHE_BLOCKS == term->kind && ++cursor->frames[cursor->level].child < term->n) {
        return true;
    }
    cursor->frames[cursor->level].child = 0;
    cursor->frames[cursor->level].repeat = repeat + blocks;
    if (repeat + blocks < term->count) {
        cursor->frames[cursor->level].base =
            opal_iov_cache_moved(cursor->frames[cursor->level].base, blocks, term->stride);
    } else {
        ascend(cursor);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Two forms
 * ------------------------------------------------------------------------------------------- */

void opal_iov_cache_pairs_init(opal_iov_cache_pairs_t *pairs, const opal_iov_cache_form_t *a,
                               const opal_iov_cache_form_t *b, uint64_t start, uint64_t end)
{
    end = least(end, least(a->size, b->size));
    opal_iov_cache_cursor_init(&pairs->cursor[0], a, start, end);
    opal_iov_cache_cursor_init(&pairs->cursor[1], b, start, end);
    pairs->run[0].count = 0;
    pairs->run[1].count = 0;
    pairs->skip[0] = 0;
    pairs->skip[1] = 0;
}

/* Consume @p count times @p length bytes of the rest of one side. */
static void take(opal_iov_cache_pairs_t *pairs, int side, uint64_t length, uint64_t count)
{
    opal_iov_cache_run_t *run = &pairs->run[side];

    run->position += length * count;
    pairs->skip[side] += length * count;
    if (pairs->skip[side] >= run->length) {
        uint64_t blocks = pairs->skip[side] / run->length;

        /* whole blocks: a partial block is always the last part of a step */
        run->count -= blocks;
        run->offset = opal_iov_cache_moved(run->offset, blocks, run->stride);
        pairs->skip[side] = 0;
    }
}

bool opal_iov_cache_pairs_next(opal_iov_cache_pairs_t *pairs, opal_iov_cache_pair_t *pair)
{
    uint64_t left[2];
    int side;

    for (side = 0; side < 2; ++side) {
        if (0 == pairs->run[side].count
            && !opal_iov_cache_cursor_next(&pairs->cursor[side], &pairs->run[side])) {
            return false;
        }
        left[side] = pairs->run[side].length - pairs->skip[side];
    }
    side = left[0] < left[1] ? 0 : 1; /* the one with the smaller blocks */
    pair->position = pairs->run[0].position;
    pair->length = left[side];
    pair->count = 1;
    if (0 == pairs->skip[side]) {
        /* Of the larger block as many smaller ones as fit completely; of equal blocks all. */
        if (left[0] == left[1] && 0 == pairs->skip[1 - side]) {
            pair->count = least(pairs->run[0].count, pairs->run[1].count);
        } else {
            pair->count = least(pairs->run[side].count, left[1 - side] / left[side]);
        }
    }
    for (side = 0; side < 2; ++side) {
        const opal_iov_cache_run_t *run = &pairs->run[side];

        pair->offset[side] = run->offset + (int64_t) pairs->skip[side];
        pair->stride[side] = 1 == pair->count ? 0
                             : 0 == pairs->skip[side] && run->length == pair->length
                                 ? run->stride
                                 : (int64_t) pair->length;
    }
    take(pairs, 0, pair->length, pair->count);
    take(pairs, 1, pair->length, pair->count);
    return true;
}
