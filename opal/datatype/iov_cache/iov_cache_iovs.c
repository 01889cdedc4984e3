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
 * IOVs of a form from any position, with a limit (the service that Yaksa calls iov). Repetitions of
 * other bodies than vectors are computed once and then copied with the stride added.
 */

#include "opal_config.h"

#include <string.h>

#include "iov_cache_find.h"
#include "iov_cache_form.h"

/* A list of IOVs that is being written. */
typedef struct {
    const opal_iov_cache_form_t *form;
    opal_iov_cache_iov_t *iovs;
    size_t n;
    size_t max;
    uint64_t position; /* stream position after the last one */
    bool full;
} emit_t;

/* Two words that are stored at once; unsigned, since unused values may exceed 63 bits. */
typedef uint64_t pair_t __attribute__((vector_size(16)));

static inline void emit_block(emit_t *emit, int64_t offset, uint64_t length)
{
    opal_iov_cache_iov_t *last = emit->iovs + emit->n - 1;

    if (0 < emit->n && last->offset + (int64_t) last->length == offset) {
        last->length += length;
    } else if (emit->n == emit->max) {
        emit->full = true;
        return;
    } else {
        ++last;
        last->offset = offset;
        last->length = length;
        ++emit->n;
    }
    emit->position += length;
}

/*
 * @p count blocks; the first may continue the previous IOV. The others do not, since they would be
 * one block.
 */
static void emit_vector(emit_t *emit, int64_t offset, uint64_t length, uint64_t count,
                        int64_t stride)
{
    const pair_t step = {(uint64_t) stride, 0};
    opal_iov_cache_iov_t *iovs;
    pair_t value;
    uint64_t now, i;

    emit_block(emit, offset, length);
    if (emit->full || 1 == count) {
        return;
    }
    --count;
    now = count < emit->max - emit->n ? count : emit->max - emit->n;
    value = (pair_t){(uint64_t) opal_iov_cache_moved(offset, 1, stride), length};
    iovs = emit->iovs + emit->n; /* the stores below do not change it */
#pragma GCC unroll 8
    for (i = 0; i < now; ++i) {
        memcpy(&iovs[i], &value, sizeof(value));
        value += step;
    }
    emit->n += now;
    emit->position += now * length;
    emit->full = now < count;
}

/* A list of blocks; again only the first may continue the previous IOV. */
static void emit_list(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base)
{
    const opal_iov_cache_block_t *blocks = &emit->form->blocks[term->first];
    const pair_t origin = {(uint64_t) base, 0};
    opal_iov_cache_iov_t *iovs;
    uint64_t now, i;
    pair_t block;

    emit_block(emit, base + blocks[0].offset, blocks[0].length);
    if (emit->full) {
        return;
    }
    now = term->n - 1 < emit->max - emit->n ? term->n - 1 : emit->max - emit->n;
    iovs = emit->iovs + emit->n - 1; /* of block 0 */
#pragma GCC unroll 4
    for (i = 1; i <= now; ++i) {
        memcpy(&block, &blocks[i], sizeof(block));
        block += origin;
        memcpy(&iovs[i], &block, sizeof(block));
    }
    emit->n += now;
    emit->full = now < term->n - 1;
    emit->position += opal_iov_cache_block_start(emit->form, term, now + 1) - blocks[0].length;
}

static void emit_whole(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base,
                       uint64_t count);

/* All of one repetition of a list or of terms. */
static void emit_body(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base)
{
    uint64_t i;

    if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        emit_list(emit, term, base);
    } else {
        const opal_iov_cache_term_t *terms = &emit->form->terms[term->first];

        for (i = 0; i < term->n && !emit->full; ++i) {
            emit_whole(emit, &terms[i], base + terms[i].offset, terms[i].count);
        }
    }
}

/*
 * Repetitions like the last one, which has added @p added IOVs, as far as there is room. The last
 * IOV of a repetition grows by @p grown bytes of the first block of the next one.
 *
 * @return number of repetitions
 */
static uint64_t emit_copies(emit_t *emit, const opal_iov_cache_term_t *term, size_t added,
                            uint64_t grown, uint64_t count)
{
    opal_iov_cache_iov_t *iovs = emit->iovs + emit->n;
    uint64_t alone = iovs[-1].length, i;

    if (count > (emit->max - emit->n) / added) {
        count = (emit->max - emit->n) / added;
    }
    for (i = 0; i < count * added; ++i) {
        iovs[i].offset = opal_iov_cache_moved((iovs + i - added)->offset, 1, term->stride);
        iovs[i].length = (iovs + i - added)->length;
    }
    if (0 < grown && 0 < count) {
        for (i = 0; i < count; ++i) {
            (iovs + i * added - 1)->length = alone + grown;
        }
        (iovs + count * added - 1)->length = alone;
    }
    emit->n += count * added;
    emit->position += count * term->size;
    return count;
}

/* @p count repetitions, the first of them at @p base */
static void emit_whole(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base,
                       uint64_t count)
{
    uint64_t done = 0;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        emit_vector(emit, base, term->size, count, term->stride);
        return;
    }
    while (done < count && !emit->full) {
        size_t before = emit->n;
        uint64_t last = 0 < before ? emit->iovs[before - 1].length : 0;

        emit_body(emit, term, opal_iov_cache_moved(base, done, term->stride));
        ++done;
        /* The first repetition may have continued an IOV; the second one is like the others. */
        if (2 == done && !emit->full && done < count) {
            done += emit_copies(emit, term, emit->n - before, emit->iovs[before - 1].length - last,
                                count - done);
        }
    }
}

static void emit_term(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base, uint64_t low,
                      uint64_t high);

/* Bytes low .. high - 1 of one repetition. */
static void emit_part(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base, uint64_t low,
                      uint64_t high)
{
    uint64_t i, start;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        emit_block(emit, base + (int64_t) low, high - low);
    } else if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        const opal_iov_cache_block_t *blocks = &emit->form->blocks[term->first];

        i = opal_iov_cache_find_block(emit->form, term, low, &start);
        for (; low < high && !emit->full; ++i) {
            uint64_t next = start + blocks[i].length, end = next < high ? next : high;

            emit_block(emit, base + blocks[i].offset + (int64_t) (low - start), end - low);
            low = end;
            start = next;
        }
    } else {
        const opal_iov_cache_term_t *terms = &emit->form->terms[term->first];

        i = opal_iov_cache_find(&terms->start, sizeof(*terms), term->n, low);
        for (; low < high && !emit->full; ++i) {
            uint64_t end = i + 1 < term->n ? terms[i + 1].start : term->size;

            end = end < high ? end : high;
            emit_term(emit, &terms[i], base + terms[i].offset, low - terms[i].start,
                      end - terms[i].start);
            low = end;
        }
    }
}

/* Bytes low .. high - 1 of a term whose first repetition is at @p base. */
static void emit_term(emit_t *emit, const opal_iov_cache_term_t *term, int64_t base, uint64_t low,
                      uint64_t high)
{
    uint64_t repeat = low / term->size, skip = low % term->size, whole;

    if (0 < skip) {
        uint64_t end = high - (low - skip) < term->size ? high - (low - skip) : term->size;

        emit_part(emit, term, opal_iov_cache_moved(base, repeat, term->stride), skip, end);
        low += end - skip;
        ++repeat;
    }
    whole = (high - low) / term->size;
    if (0 < whole && !emit->full) {
        emit_whole(emit, term, opal_iov_cache_moved(base, repeat, term->stride), whole);
        low += whole * term->size;
        repeat += whole;
    }
    if (low < high && !emit->full) {
        emit_part(emit, term, opal_iov_cache_moved(base, repeat, term->stride), 0, high - low);
    }
}

size_t opal_iov_cache_form_iovs(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end,
                                opal_iov_cache_iov_t *iovs, size_t max, uint64_t *next)
{
    emit_t emit = {.form = form, .iovs = iovs, .max = max, .position = start};

    end = end < form->size ? end : form->size;
    if (start < end) {
        emit_term(&emit, &form->terms[0], form->terms[0].offset, start, end);
    } else {
        emit.position = end;
    }
    *next = emit.position;
    return emit.n;
}

const opal_iov_cache_iov_t *opal_iov_cache_form_view(const opal_iov_cache_form_t *form,
                                                     uint64_t start, uint64_t end,
                                                     opal_iov_cache_iov_t *iovs, size_t max,
                                                     size_t *count, uint64_t *next)
{
    const opal_iov_cache_term_t *root = form->terms;
    uint64_t first, behind, begins, n;

    end = end < form->size ? end : form->size;
    if (start < end && OPAL_IOV_CACHE_BLOCKS == root->kind && 1 == root->count
        && 0 == root->offset) {
        first = opal_iov_cache_find_block(form, root, start, &begins);
        if (begins == start) {
            behind = root->n;
            if (end < form->size) {
                behind = opal_iov_cache_find_block(form, root, end, &begins);
            } else {
                begins = end;
            }
            /* unless a part of a block is missing */
            n = behind - first < max ? behind - first : max;
            if (n == max || begins == end) {
                *count = n;
                *next = opal_iov_cache_block_start(form, root, first + n);
                return &form->blocks[root->first + first];
            }
        }
    }
    *count = opal_iov_cache_form_iovs(form, start, end, iovs, max, next);
    return iovs;
}
