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
 * Queries of a form: each descends from the root to one block and uses the sums in the terms.
 */

#include "opal_config.h"

#include <string.h>

#include "opal/constants.h"

#include "iov_cache_find.h"
#include "iov_cache_list.h"

/* The term of a body at position @p position. */
static const opal_iov_cache_term_t *term_at(const opal_iov_cache_form_t *form,
                                            const opal_iov_cache_term_t *term, uint64_t position)
{
    const opal_iov_cache_term_t *terms = &form->terms[term->first];

    return &terms[opal_iov_cache_find(&terms->start, sizeof(*terms), term->n, position)];
}

/* The term of a body in which segment @p segment of the body begins. */
static const opal_iov_cache_term_t *term_of_segment(const opal_iov_cache_form_t *form,
                                                    const opal_iov_cache_term_t *term,
                                                    uint64_t segment)
{
    const opal_iov_cache_term_t *terms = &form->terms[term->first];

    return &terms[opal_iov_cache_find(&terms->begins, sizeof(*terms), term->n, segment)];
}

int64_t opal_iov_cache_form_offset(const opal_iov_cache_form_t *form, uint64_t position)
{
    const opal_iov_cache_term_t *term = &form->terms[0];
    int64_t offset = 0;

    for (;;) {
        uint64_t repeat = position / term->size;

        position -= repeat * term->size;
        offset = opal_iov_cache_moved(offset + term->offset, repeat, term->stride);
        if (OPAL_IOV_CACHE_DENSE == term->kind) {
            return offset + (int64_t) position;
        }
        if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
            uint64_t start, block = opal_iov_cache_find_block(form, term, position, &start);

            return offset + form->blocks[term->first + block].offset + (int64_t) (position - start);
        }
        term = term_at(form, term, position);
        position -= term->start;
    }
}

uint64_t opal_iov_cache_form_segment_start(const opal_iov_cache_form_t *form, uint64_t segment)
{
    const opal_iov_cache_term_t *term = form->terms;
    uint64_t position = 0;

    if (segment >= form->segments) {
        return form->size;
    }
    if (0 < form->uniform) {
        return segment * form->uniform;
    }
    for (;;) {
        /* The first segment of an adjacent repetition begins in the previous one. */
        uint64_t adjacent = term->flags & OPAL_IOV_CACHE_ADJACENT ? 1 : 0;

        if (segment >= term->segments) {
            uint64_t repeat = 1 + (segment - term->segments) / (term->segments - adjacent);

            segment = (segment - term->segments) % (term->segments - adjacent) + adjacent;
            position += repeat * term->size;
        }
        if (OPAL_IOV_CACHE_DENSE == term->kind) {
            return position;
        }
        if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
            return position + opal_iov_cache_block_start(form, term, segment);
        }
        term = term_of_segment(form, term, segment);
        segment -= term->begins;
        segment += term->flags & OPAL_IOV_CACHE_JOINED ? 1 : 0;
        position += term->start;
    }
}

uint64_t opal_iov_cache_form_segment_at(const opal_iov_cache_form_t *form, uint64_t position)
{
    const opal_iov_cache_term_t *term = form->terms;
    uint64_t segment = 0;

    if (0 < form->uniform) {
        return position / form->uniform;
    }
    for (;;) {
        uint64_t repeat = position / term->size;

        position -= repeat * term->size;
        segment += repeat * (term->segments - (term->flags & OPAL_IOV_CACHE_ADJACENT ? 1 : 0));
        if (OPAL_IOV_CACHE_DENSE == term->kind) {
            return segment;
        }
        if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
            uint64_t start;

            return segment + opal_iov_cache_find_block(form, term, position, &start);
        }
        term = term_at(form, term, position);
        position -= term->start;
        segment += term->begins;
        segment -= term->flags & OPAL_IOV_CACHE_JOINED ? 1 : 0;
    }
}

/* The walk for different trees: the blocks of both must be in the same places. */
static bool same_bytes(const opal_iov_cache_form_t *a, const opal_iov_cache_form_t *b)
{
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;

    opal_iov_cache_pairs_init(&pairs, a, b, 0, a->size);
    while (opal_iov_cache_pairs_next(&pairs, &pair)) {
        if (pair.offset[0] != pair.offset[1] || pair.stride[0] != pair.stride[1]) {
            return false;
        }
    }
    return true;
}

bool opal_iov_cache_form_equal(const opal_iov_cache_form_t *a, const opal_iov_cache_form_t *b)
{
    if (a == b) {
        return true;
    }
    if (a->size != b->size || a->lb != b->lb || a->ub != b->ub || a->segments != b->segments) {
        return false;
    }
    if (a->term_count == b->term_count && a->block_count == b->block_count
        && 0 == memcmp(a->terms, b->terms, a->term_count * sizeof(*a->terms))
        && 0 == memcmp(a->blocks, b->blocks, a->block_count * sizeof(*a->blocks))) {
        return true;
    }
    return opal_iov_cache_form_hash(a) == opal_iov_cache_form_hash(b) && same_bytes(a, b);
}
