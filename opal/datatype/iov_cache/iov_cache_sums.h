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
 * The sums in each term, computed from those of its body: used for creation and check of forms.
 */

#ifndef OPAL_IOV_CACHE_SUMS_H
#define OPAL_IOV_CACHE_SUMS_H

#include "opal_config.h"

#include <stdint.h>

#include "iov_cache_form.h"

/* Sums of a term, a block or a list. */
typedef struct {
    uint64_t size;
    uint64_t segments;
    uint64_t uniform; /* length of the segments if all are equal, else 0 */
    int64_t first;    /* offset of the first byte of the stream */
    int64_t end;      /* one past the last byte of the stream */
    int64_t lb;
    int64_t ub;
} opal_iov_cache_sums_t;

/* The sums of one block. False if its end exceeds 63 bits; the sums are undefined then. */
static inline bool opal_iov_cache_sums_block(int64_t offset, uint64_t size,
                                             opal_iov_cache_sums_t *sums)
{
    if (INT64_MAX < size || __builtin_add_overflow(offset, (int64_t) size, &sums->end)) {
        return false;
    }
    sums->size = size;
    sums->segments = 1;
    sums->uniform = size;
    sums->first = offset;
    sums->lb = offset;
    sums->ub = sums->end;
    return true;
}

/* The sums of a term, from those of its body. False if an offset exceeds 63 bits. */
static inline bool opal_iov_cache_sums_repeat(opal_iov_cache_term_t *term,
                                              const opal_iov_cache_sums_t *body,
                                              opal_iov_cache_sums_t *sums)
{
    int64_t reach, next;
    uint64_t adjacent = 0;

    term->size = body->size;
    term->segments = body->segments;
    *sums = *body;
    if (1 < term->count) {
        if (!__builtin_add_overflow(body->first, term->stride, &next) && next == body->end) {
            term->flags |= OPAL_IOV_CACHE_ADJACENT;
            adjacent = 1;
            sums->uniform = 0;
        }
        if (term->count > INT64_MAX
            || __builtin_mul_overflow((int64_t) term->count - 1, term->stride, &reach)
            || __builtin_mul_overflow(term->count, body->size, &sums->size)
            || __builtin_add_overflow(body->end, reach, &sums->end)
            || __builtin_add_overflow(reach < 0 ? reach : 0, body->lb, &sums->lb)
            || __builtin_add_overflow(reach > 0 ? reach : 0, body->ub, &sums->ub)) {
            return false;
        }
        sums->segments = term->count * body->segments - (term->count - 1) * adjacent;
    }
    return sums->size <= INT64_MAX
           && !__builtin_add_overflow(sums->first, term->offset, &sums->first)
           && !__builtin_add_overflow(sums->end, term->offset, &sums->end)
           && !__builtin_add_overflow(sums->lb, term->offset, &sums->lb)
           && !__builtin_add_overflow(sums->ub, term->offset, &sums->ub);
}

/* Append the next element of a list. @return true if it continues the previous one */
static inline bool opal_iov_cache_sums_add(opal_iov_cache_sums_t *sums,
                                           const opal_iov_cache_sums_t *next)
{
    bool joined = 0 < sums->size && sums->end == next->first;

    if (0 == sums->size) {
        *sums = *next;
        return false;
    }
    sums->size += next->size; /* two numbers of 63 bits; the caller checks the sum */
    sums->segments += next->segments - (joined ? 1 : 0);
    sums->uniform = joined || sums->uniform != next->uniform ? 0 : sums->uniform;
    sums->end = next->end;
    sums->lb = next->lb < sums->lb ? next->lb : sums->lb;
    sums->ub = next->ub > sums->ub ? next->ub : sums->ub;
    return joined;
}

#endif /* OPAL_IOV_CACHE_SUMS_H */
