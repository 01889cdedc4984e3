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
 * Searches in a form. Private to iov_cache.
 */

#ifndef OPAL_IOV_CACHE_FIND_H
#define OPAL_IOV_CACHE_FIND_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "iov_cache_form.h"

/**
 * Binary search in @p n elements: the last one whose key is at most @p position.
 *
 * @param[in] keys  key of the first element, at most @p position; keys ascend
 * @param[in] step  bytes from one key to the next: the size of an element
 * @param[in] n     at least 1
 */
static inline uint64_t opal_iov_cache_find(const uint64_t *keys, size_t step, uint64_t n,
                                           uint64_t position)
{
    uint64_t low = 0, high = n;

    while (1 < high - low) {
        uint64_t middle = low + (high - low) / 2;

        if (*(const uint64_t *) ((const char *) keys + middle * step) <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/**
 * The block of a list that contains a position of its body (below term->size).
 *
 * @param[out] start  position of the start of that block
 */
static inline uint64_t opal_iov_cache_find_block(const opal_iov_cache_form_t *form,
                                                 const opal_iov_cache_term_t *term,
                                                 uint64_t position, uint64_t *start)
{
    /* starts of this list */
    const uint64_t step = OPAL_IOV_CACHE_START_STEP, low = (term->first + step - 1) / step,
                   high = (term->first + term->n - 1) / step;
    uint64_t block = term->first, at = 0;

    if (0 < form->uniform) { /* so all blocks of all lists have this length */
        block = position / form->uniform;
        *start = block * form->uniform;
        return block;
    }
    if (low <= high && form->starts[low] <= position) {
        block = low
                + opal_iov_cache_find(&form->starts[low], sizeof(*form->starts), high - low + 1,
                                      position);
        at = form->starts[block];
        block *= step;
    }
    while (form->blocks[block].length <= position - at) {
        at += form->blocks[block].length;
        ++block;
    }
    *start = at;
    return block - term->first;
}

/** The start of block @p i of a list in its body; term->size for term->n. */
static inline uint64_t opal_iov_cache_block_start(const opal_iov_cache_form_t *form,
                                                  const opal_iov_cache_term_t *term, uint64_t i)
{
    const uint64_t behind = term->first + i, known = behind / OPAL_IOV_CACHE_START_STEP;
    uint64_t block = term->first, at = 0;

    if (i == term->n) {
        return term->size;
    }
    if (0 < form->uniform) {
        return i * form->uniform;
    }
    if (known * OPAL_IOV_CACHE_START_STEP > term->first) {
        block = known * OPAL_IOV_CACHE_START_STEP;
        at = form->starts[known];
    }
    for (; block < behind; ++block) {
        at += form->blocks[block].length;
    }
    return at;
}

/**
 * An offset plus a number of strides. Positions that are never visited may exceed 63 bits: one step
 * past the last.
 */
static inline int64_t opal_iov_cache_moved(int64_t offset, uint64_t times, int64_t stride)
{
    return (int64_t) ((uint64_t) offset + times * (uint64_t) stride);
}

#endif /* OPAL_IOV_CACHE_FIND_H */
