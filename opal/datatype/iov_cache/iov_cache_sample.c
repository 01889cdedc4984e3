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
 * Detection of long irregular descriptions (particle lists, unstructured meshes). Nothing can be
 * folded in them, and the search for that costs many times one pass over the blocks. Three samples
 * decide. If such a description is part of a larger one, or there is none, the same samples of a
 * list of items avoid a useless search.
 */

#include "opal_config.h"

#include <stddef.h>
#include <string.h>

#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "iov_cache_list.h"
#include "iov_cache_scatter.h"

/*
 * Shorter descriptions use the general reader; so do lists of items with streams that do not become
 * blocks (iov_cache_lay.c).
 */
#define MANY  1024
#define SHORT 4

/*
 * Elements (or items) in each sample, which may be repetitions; and limits of the search for runs:
 * elements searched, and elements per repetition.
 */
#define SAMPLE     192
#define STEPS      (SAMPLE - 1)
#define SEARCHED   64
#define MAX_PERIOD 8

/* Elements that are compared between tests of the result. */
#define AT_ONCE 8

/* A property of a whole sample must hold for one part in this many of the description. */
#define LONG_PART 4

/* A smaller saving of memory is not worth terms: a list is faster for all users. */
#define SHORTER 4

/* Inlined copy for the tests of each element of a sample. */
static inline bool is_data(const struct ddt_elem_desc *element)
{
    return 0 != (element->common.flags & OPAL_DATATYPE_FLAG_DATA)
           && OPAL_DATATYPE_MAX_PREDEFINED > element->common.type
           && NULL != opal_datatype_basicDatatypes[element->common.type];
}

bool opal_iov_cache_is_data(const struct ddt_elem_desc *element)
{
    return is_data(element);
}

/* A description or a list of items. */
typedef struct {
    const dt_elem_desc_t *desc;         /* or NULL */
    const opal_iov_cache_item_t *items; /* or NULL */
    size_t n;
} view_t;

/* Number of blocks of element @p i; 0 if it cannot be part of a list of blocks. */
static inline uint64_t blocks_of(const view_t *view, size_t i)
{
    if (NULL != view->desc) {
        return is_data(&view->desc[i].elem) ? view->desc[i].elem.count : 0;
    }
    return NULL == view->items[i].body && SHORT >= view->items[i].count ? view->items[i].count : 0;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);

    return ((a * factor + b) * factor + c) * factor + d;
}

/* Shape of an element and distance to the next one, in one number. */
static uint64_t step_of(const view_t *view, size_t i)
{
    if (NULL != view->desc) {
        const ddt_elem_desc_t *element = &view->desc[i].elem, *next = &view->desc[i + 1].elem;

        return mix((uint64_t) next->disp - (uint64_t) element->disp, element->blocklen,
                   (uint64_t) element->extent,
                   element->count + ((uint64_t) element->common.type << 32));
    }
    return mix((uint64_t) view->items[i + 1].offset - (uint64_t) view->items[i].offset,
               view->items[i].size, (uint64_t) view->items[i].stride, view->items[i].count);
}

static int64_t place_of(const view_t *view, size_t i)
{
    return NULL != view->desc ? (int64_t) view->desc[i].elem.disp : view->items[i].offset;
}

/* True if element @p k equals element @p i, at this distance. */
static inline bool is_same_thing(const view_t *view, size_t i, size_t k, uint64_t distance)
{
    if (NULL != view->desc) {
        const ddt_elem_desc_t *a = &view->desc[i].elem, *b = &view->desc[k].elem;

        return (uint64_t) b->disp - (uint64_t) a->disp == distance && a->extent == b->extent
               && a->count == b->count && a->blocklen == b->blocklen;
    }
    return (uint64_t) view->items[k].offset - (uint64_t) view->items[i].offset == distance
           && view->items[i].size == view->items[k].size
           && view->items[i].stride == view->items[k].stride
           && view->items[i].count == view->items[k].count;
}

/* True if each of so many elements repeats one period later, at the same distance. */
static inline __attribute__((always_inline)) bool come_again(const dt_elem_desc_t *desc,
                                                             size_t period, uint64_t distance)
{
    const opal_iov_cache_words_t apart = {0, 0, 0, distance};
    opal_iov_cache_words_t differ = {0, 0, 0, 0}, now, then;
    size_t i;

#pragma GCC unroll 8
    for (i = 0; i < AT_ONCE; ++i) {
        memcpy(&now, &desc[i], sizeof(now));
        memcpy(&then, &desc[i + period], sizeof(then));
        differ |= (then - now) ^ apart;
    }
    return 0 == (differ[0] | differ[1] | differ[2] | differ[3]);
}

/* A part of a description, extended while its elements repeat one period later, up to a limit. */
typedef struct {
    size_t low;
    size_t high; /* after the last one */
} part_t;

static inline __attribute__((always_inline)) part_t
grow(const view_t *view, part_t part, size_t period, uint64_t distance, size_t wanted)
{
    const bool quick = NULL != view->desc && OPAL_IOV_CACHE_ELEMENT_IS_WORDS;

    while (0 < part.low && part.high - part.low < wanted) {
        if (quick && AT_ONCE <= part.low
            && come_again(&view->desc[part.low - AT_ONCE], period, distance)) {
            part.low -= AT_ONCE;
        } else if (is_same_thing(view, part.low - 1, part.low - 1 + period, distance)) {
            --part.low;
        } else {
            break;
        }
    }
    while (part.high + period < view->n && part.high - part.low < wanted) {
        if (quick && part.high + period + AT_ONCE <= view->n
            && come_again(&view->desc[part.high], period, distance)) {
            part.high += AT_ONCE;
        } else if (is_same_thing(view, part.high, part.high + period, distance)) {
            ++part.high;
        } else {
            break;
        }
    }
    return part;
}

#if OPAL_IOV_CACHE_AVX2
__attribute__((target("avx2"))) static __opal_attribute_noinline__ part_t
grow_with_avx2(const view_t *view, part_t part, size_t period, uint64_t distance, size_t wanted)
{
    return grow(view, part, period, distance, wanted);
}
#endif

static __opal_attribute_noinline__ part_t grow_any(const view_t *view, part_t part, size_t period,
                                                   uint64_t distance, size_t wanted)
{
#if OPAL_IOV_CACHE_AVX2
    if (__builtin_cpu_supports("avx2")) {
        return grow_with_avx2(view, part, period, distance, wanted);
    }
#endif
    return grow(view, part, period, distance, wanted);
}

/* Number of steps from @p i on that equal those one period later. */
static inline size_t matches(const uint64_t *steps, size_t i, size_t period)
{
    size_t k = 0;

    while (i + k + period < STEPS && steps[i + k] == steps[i + k + period]) {
        ++k;
    }
    return k;
}

/*
 * True if the whole sample, except possibly its first step, is periodic, and the following part
 * too: some irregular orders seem periodic for a while (multiples of one number modulo another).
 */
static bool is_periodic(const view_t *view, size_t first, const uint64_t *steps)
{
    const size_t wanted = view->n / LONG_PART;
    part_t part = {.low = first + 1};
    size_t period;
    uint64_t distance;

    for (period = 1; period <= STEPS / 2; ++period) {
        if (1 + period + matches(steps, 1, period) != STEPS) {
            continue;
        }
        distance =
            (uint64_t) place_of(view, part.low + period) - (uint64_t) place_of(view, part.low);
        part.high = first + STEPS - period;
        part = grow_any(view, part, period, distance, wanted);
        return part.high - part.low >= wanted;
    }
    return false;
}

/* Size of a part of a sample as blocks, and as terms. */
typedef struct {
    size_t things;
    uint64_t listed; /* bytes */
    uint64_t folded;
} fold_t;

/* A stream of many blocks is a term. */
static uint64_t least_bytes(uint64_t blocks)
{
    return blocks < sizeof(opal_iov_cache_term_t) ? blocks : sizeof(opal_iov_cache_term_t);
}

/* The run at @p i with the largest saving. */
static inline fold_t best_fold(const view_t *view, size_t first, const uint64_t *steps, size_t i)
{
    uint64_t one = blocks_of(view, first + i) * sizeof(opal_iov_cache_block_t);
    fold_t best = {1, one, least_bytes(one)};
    size_t period, k;

    for (period = 1; period <= MAX_PERIOD; ++period) {
        fold_t now;

        if (steps[i] != steps[i + period]) {
            continue; /* the common case of irregular data */
        }
        now = (fold_t){.things = period + matches(steps, i, period),
                       .folded = (1 + period) * sizeof(opal_iov_cache_term_t)};
        if (now.things < 3 * period) {
            continue;
        }
        for (k = 0; k < now.things; ++k) {
            now.listed += blocks_of(view, first + i + k) * sizeof(opal_iov_cache_block_t);
        }
        if (now.listed > now.folded && now.listed - now.folded > best.listed - best.folded) {
            best = now;
        }
    }
    return best;
}

/* True if runs hardly shorten the sample that begins at @p first. */
static bool is_sample_scattered(const view_t *view, size_t first)
{
    uint64_t steps[STEPS], listed = 0, folded = 0;
    fold_t fold;
    size_t i;

    for (i = 0; i < STEPS; ++i) {
        if (0 == blocks_of(view, first + i)) {
            return false;
        }
        steps[i] = step_of(view, first + i);
    }
    if (is_periodic(view, first, steps)) {
        return false;
    }
    for (i = 0; i < SEARCHED; i += fold.things) {
        fold = best_fold(view, first, steps, i);
        listed += fold.listed;
        folded += fold.folded;
    }
    return SHORTER * folded > listed;
}

static bool is_scattered(const view_t *view)
{
    return MANY <= view->n && is_sample_scattered(view, 0) && is_sample_scattered(view, view->n / 2)
           && is_sample_scattered(view, view->n - SAMPLE);
}

bool opal_iov_cache_is_scattered(const dt_type_desc_t *desc)
{
    const view_t view = {.desc = desc->desc, .n = desc->used};

    return is_scattered(&view);
}

bool opal_iov_cache_list_is_scattered(const opal_iov_cache_list_t *list)
{
    const view_t view = {.items = list->items, .n = list->count};

    return is_scattered(&view);
}
