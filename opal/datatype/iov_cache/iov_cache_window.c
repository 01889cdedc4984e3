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
 * Chunk windows: division of a layout's stream into parts that keys can hold, and agreement on the
 * chunk size with the peer. Arithmetic only; no allocation and no locks.
 */

#include "opal_config.h"

#include "opal/constants.h"

#include "iov_cache.h"

/* The agreement tries the proposal divided by 1 .. MAX_DIVISOR. */
#define MAX_DIVISOR 16

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline bool limits_are_usable(const opal_iov_cache_limits_t *limits)
{
    return 0 < limits->max_iovs && 0 < limits->max_bytes;
}

/* True if at least @p count IOVs follow IOV @p i (which is one of the layout's). */
static inline bool has_after(const opal_iov_cache_layout_t *layout, uint64_t i, uint64_t count)
{
    return count < layout->iov_count - i;
}

/* ---------------------------------------------------------------------------------------------
 * Starts of IOVs, one after the other
 * ------------------------------------------------------------------------------------------- */

#define WALK_BATCH 32

/* Iterates over the starts of IOVs without a search for each. */
typedef struct {
    const opal_iov_cache_layout_t *layout;
    opal_iov_cache_iov_t iovs[WALK_BATCH];
    size_t count;   /* of iovs */
    size_t i;       /* index of the current one */
    uint64_t start; /* of the current one; size after the last */
} walker_t;

static void walker_fill(walker_t *walker)
{
    uint64_t next;

    walker->i = 0;
    walker->count = opal_iov_cache_form_iovs(walker->layout->form, walker->start,
                                             walker->layout->size, walker->iovs, WALK_BATCH, &next);
}

static void walker_init(walker_t *walker, const opal_iov_cache_layout_t *layout, uint64_t i)
{
    walker->layout = layout;
    walker->start = opal_iov_cache_layout_start(layout, i);
    walker_fill(walker);
}

static void walker_step(walker_t *walker)
{
    if (walker->i < walker->count) {
        walker->start += walker->iovs[walker->i].length;
        if (++walker->i == walker->count) {
            walker_fill(walker);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Windows
 * ------------------------------------------------------------------------------------------- */

int opal_iov_cache_window(const opal_iov_cache_layout_t *layout,
                          const opal_iov_cache_limits_t *limits, uint64_t chunk, uint64_t start,
                          uint64_t end, opal_iov_cache_window_t *window)
{
    uint64_t stop, length, first;

    if (start >= end || end > layout->size || !limits_are_usable(limits)) {
        return OPAL_ERR_BAD_PARAM;
    }
    length = least(end - start, limits->max_bytes);
    if (0 < chunk) {
        length = least(length, chunk - start % chunk);
    }
    first = opal_iov_cache_form_segment_at(layout->form, start);
    stop = start + length;
    if (has_after(layout, first, limits->max_iovs)) {
        stop = least(stop, opal_iov_cache_layout_start(layout, first + limits->max_iovs));
    }
    window->start = start;
    window->length = stop - start;
    window->iov_count = opal_iov_cache_form_segment_at(layout->form, stop - 1) - first + 1;
    return OPAL_SUCCESS;
}

int opal_iov_cache_window_count(const opal_iov_cache_layout_t *layout,
                                const opal_iov_cache_limits_t *limits, uint64_t chunk,
                                uint64_t start, uint64_t end, size_t *count)
{
    opal_iov_cache_window_t window;
    size_t windows = 0;

    if (start >= end) {
        return OPAL_ERR_BAD_PARAM;
    }
    while (start < end) {
        int rc = opal_iov_cache_window(layout, limits, chunk, start, end, &window);

        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        start += window.length;
        ++windows;
    }
    *count = windows;
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Chunks
 * ------------------------------------------------------------------------------------------- */

/* The greatest common divisor of two numbers, neither of them 0. */
static uint64_t divisor_of(uint64_t a, uint64_t b)
{
    while (0 < b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/*
 * Length of the stream that must be checked: if the root is a stream, the alignment of chunks and
 * repetitions repeats after their least common multiple.
 */
static uint64_t until_repeated(const opal_iov_cache_layout_t *layout, uint64_t size, uint64_t chunk)
{
    uint64_t period = layout->form->terms[0].size, multiple;

    if (__builtin_mul_overflow(chunk / divisor_of(chunk, period), period, &multiple)) {
        return size;
    }
    return least(size, multiple);
}

/* One test per chunk: the first excess IOV must begin after the chunk. */
static bool chunks_hold(const opal_iov_cache_layout_t *layout, uint64_t max_iovs, uint64_t size,
                        uint64_t chunk)
{
    uint64_t start = 0;

    while (start < size) {
        uint64_t length = least(chunk, size - start);
        uint64_t first = opal_iov_cache_form_segment_at(layout->form, start);

        if (!has_after(layout, first, max_iovs)) {
            return true; /* the rest has few enough IOVs */
        }
        if (opal_iov_cache_layout_start(layout, first + max_iovs) < start + length) {
            return false;
        }
        start += length;
    }
    return true;
}

/*
 * One test per IOV: a chunk has too many if it contains the last byte of an IOV and the first byte
 * of the IOV max_iovs later.
 */
static bool iovs_hold(const opal_iov_cache_layout_t *layout, uint64_t max_iovs, uint64_t size,
                      uint64_t chunk)
{
    walker_t next, beyond;

    walker_init(&next, layout, 1);
    for (walker_init(&beyond, layout, max_iovs); beyond.start < size; walker_step(&beyond)) {
        uint64_t last = next.start - 1;

        /*
         * If the distance is at least a chunk, they are in different chunks: avoids the divisions.
         */
        if (beyond.start - last < chunk && last / chunk == beyond.start / chunk) {
            return false;
        }
        walker_step(&next);
    }
    return true;
}

/* As above if all IOVs have one length: all or part of it is decided without tests. */
static bool uniform_holds(const opal_iov_cache_layout_t *layout, uint64_t max_iovs, uint64_t size,
                          uint64_t chunk)
{
    uint64_t length = layout->form->uniform, common = divisor_of(length, chunk), most, start;

    /*
     * Within IOVs, chunks begin at all multiples of the common divisor; the one that begins last in
     * its IOV has the most IOVs.
     */
    most = (chunk - common) / length + (0 < (chunk - common) % length ? 1 : 0) + 1;
    if (most <= max_iovs) {
        return true;
    }
    if (size / chunk >= length / common) {
        return false; /* chunks begin at all of them */
    }
    for (start = 0; start < size; start += least(chunk, size - start)) {
        uint64_t last = start + least(chunk, size - start) - 1;

        if (last / length - start / length >= max_iovs) {
            return false;
        }
    }
    return true;
}

/*
 * Costs one step per chunk or one per IOV, whichever is less. Ends where the alignment of chunks
 * and repetitions of the root repeats, or at the first chunk that does not fit; for regular layouts
 * both are near. O(1) if a chunk is a number of IOVs of one length.
 */
bool opal_iov_cache_chunk_fits(const opal_iov_cache_layout_t *layout,
                               const opal_iov_cache_limits_t *limits, uint64_t size, uint64_t chunk)
{
    size = least(size, layout->size);
    if (!limits_are_usable(limits)) {
        return false;
    }
    if (0 == size) {
        return true;
    }
    chunk = 0 == chunk ? size : least(chunk, size);
    if (chunk > limits->max_bytes) {
        return false;
    }
    if (layout->iov_count <= limits->max_iovs) {
        return true;
    }
    if (0 < layout->form->uniform) {
        return uniform_holds(layout, limits->max_iovs, size, chunk);
    }
    size = until_repeated(layout, size, chunk);
    if (size / chunk < layout->iov_count) {
        return chunks_hold(layout, limits->max_iovs, size, chunk);
    }
    return iovs_hold(layout, limits->max_iovs, size, chunk);
}

/*
 * The minimum bytes of max_iovs successive IOVs, and of the max_iovs - 1 within them that are
 * followed by one more IOV that begins before @p size. All IOVs of the layout count, but they
 * repeat with the repetitions of the root.
 */
static void find_fewest(const opal_iov_cache_layout_t *layout, uint64_t max_iovs, uint64_t size,
                        uint64_t *fewest, uint64_t *inner)
{
    const opal_iov_cache_term_t *root = &layout->form->terms[0];
    walker_t first, next, beyond;
    uint64_t i;

    walker_init(&first, layout, 0);
    walker_init(&next, layout, 1);
    walker_init(&beyond, layout, max_iovs);
    /* the first IOV of the first repetition may be shorter than in the others */
    for (i = 0; i <= root->segments && beyond.start < size; ++i) {
        *fewest = least(*fewest, beyond.start - first.start);
        *inner = least(*inner, beyond.start - next.start);
        walker_step(&first);
        walker_step(&next);
        walker_step(&beyond);
    }
}

uint64_t opal_iov_cache_chunk(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size)
{
    uint64_t fewest = UINT64_MAX; /* bytes of max_iovs successive IOVs */
    uint64_t inner = UINT64_MAX; /* bytes of max_iovs - 1 successive IOVs with IOVs on both sides */
    uint64_t i;

    size = least(size, layout->size);
    if (0 == size) {
        return 0;
    }
    if (!limits_are_usable(limits)) {
        return 1;
    }
    if (!has_after(layout, 0, limits->max_iovs)
        || opal_iov_cache_layout_start(layout, limits->max_iovs) >= size) {
        return least(size, limits->max_bytes); /* never too many IOVs for any chunk */
    }
    if (0 < layout->form->uniform) {
        fewest = limits->max_iovs * layout->form->uniform;
        inner = fewest - layout->form->uniform;
    } else {
        find_fewest(layout, limits->max_iovs, size, &fewest, &inner);
    }
    /*
     * The successive IOVs at the end of the data count with their full length; otherwise a receive
     * that ends within an IOV would get a different chunk than the layout allows.
     */
    i = opal_iov_cache_form_segment_at(layout->form, size - 1) + 1 - limits->max_iovs;
    fewest = least(fewest, opal_iov_cache_layout_start(layout, i + limits->max_iovs)
                               - opal_iov_cache_layout_start(layout, i));
    if (fewest <= limits->max_bytes && opal_iov_cache_chunk_fits(layout, limits, size, fewest)) {
        return fewest;
    }
    /* A chunk with one excess IOV contains max_iovs - 1 whole ones and a byte on either side. */
    return least(inner + 1, limits->max_bytes);
}

/*
 * At most MAX_DIVISOR times opal_iov_cache_chunk_fits. A failing division ends at its first bad
 * chunk. Only a successful one, or a failure near the end, costs the full price.
 */
uint64_t opal_iov_cache_agree(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size,
                              uint64_t proposal, uint64_t floor)
{
    uint64_t divisor;

    if (0 == size) {
        return 0;
    }
    if (0 == proposal) {
        proposal = size;
    }
    for (divisor = 1; divisor <= MAX_DIVISOR && divisor <= proposal; ++divisor) {
        if (proposal / divisor < floor) {
            break;
        }
        if (0 == proposal % divisor
            && opal_iov_cache_chunk_fits(layout, limits, size, proposal / divisor)) {
            return proposal / divisor;
        }
    }
    return proposal;
}
