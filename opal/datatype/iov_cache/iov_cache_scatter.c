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
 * Long irregular descriptions (particle lists, unstructured meshes): their detection, and the
 * reader that turns one into a list of blocks. Nothing can be folded in such a description, and the
 * search for that costs many times one pass over the blocks. The first message of the type waits
 * for this, so the reader avoids branches whose outcome depends on irregular data.
 */

#include "opal_config.h"

#include <stddef.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "iov_cache_list.h"
#include "iov_cache_sums.h"

/* Length of the blocks of an element in bytes; 0 if it has none or is no block of a basic type. */
static inline uint64_t length_of(const ddt_elem_desc_t *element)
{
    return 0 != (element->common.flags & OPAL_DATATYPE_FLAG_DATA)
                   && OPAL_DATATYPE_MAX_PREDEFINED > element->common.type
                   && NULL != opal_datatype_basicDatatypes[element->common.type]
               ? element->blocklen * opal_datatype_basicDatatypes[element->common.type]->size
               : 0;
}

/* ---------------------------------------------------------------------------------------------
 * Detection: three samples decide. If an irregular description is part of a larger one, or there is
 * none, the same samples of a list of items avoid a useless search.
 * ------------------------------------------------------------------------------------------- */

/*
 * Shorter descriptions use the general reader; so do lists of items with streams that do not become
 * blocks (iov_cache_lay.c).
 */
#define LONG_LIST 1024
#define SHORT     4

/*
 * Items (or elements) in each sample, and the steps from each to the next one, which may repeat;
 * and limits of the search for runs: steps searched, and items per repetition.
 */
#define SAMPLE     192
#define STEPS      (SAMPLE - 1)
#define SEARCHED   64
#define MAX_PERIOD 8

/* A property of a whole sample must hold for one part in this many of the description. */
#define LONG_PART 4

/* A smaller saving of memory is not worth terms: a list is faster for all users. */
#define SHORTER 4

/* A description or a list of items. */
typedef struct {
    const dt_elem_desc_t *desc;         /* or NULL */
    const opal_iov_cache_item_t *items; /* or NULL */
    size_t n;
} view_t;

/* Item @p i. Its size is 0 if it cannot be part of a list of blocks. */
static inline opal_iov_cache_item_t item_at(const view_t *view, size_t i)
{
    opal_iov_cache_item_t item;

    if (NULL != view->desc) {
        const ddt_elem_desc_t *element = &view->desc[i].elem;

        return (opal_iov_cache_item_t){.offset = element->disp,
                                       .count = element->count,
                                       .stride = element->extent,
                                       .size = length_of(element)};
    }
    item = view->items[i];
    item.size = SHORT >= item.count ? item.size : 0;
    return item;
}

/* True if the item one period after item @p i equals it, at this distance. */
static inline bool comes_again(const view_t *view, size_t i, size_t period, uint64_t distance)
{
    if (NULL != view->desc) {
        const ddt_elem_desc_t *a = &view->desc[i].elem, *b = &view->desc[i + period].elem;

        return (uint64_t) b->disp - (uint64_t) a->disp == distance && a->extent == b->extent
               && a->count == b->count && a->blocklen == b->blocklen
               && a->common.type == b->common.type;
    }
    const opal_iov_cache_item_t *a = &view->items[i], *b = &view->items[i + period];

    return (uint64_t) b->offset - (uint64_t) a->offset == distance && a->stride == b->stride
           && a->count == b->count && a->size == b->size;
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
 * True if the whole sample, except possibly its first step, is periodic, and the part around it
 * too: some irregular orders seem periodic for a while (multiples of one number modulo another).
 */
static bool is_periodic(const view_t *view, size_t first, const uint64_t *steps)
{
    const size_t wanted = view->n / LONG_PART;
    size_t period = 1, low = first + 1, high;
    uint64_t distance;

    while (period <= STEPS / 2 && 1 + period + matches(steps, 1, period) != STEPS) {
        ++period;
    }
    if (period > STEPS / 2) {
        return false;
    }
    high = first + STEPS - period;
    distance = (uint64_t) item_at(view, low + period).offset - (uint64_t) item_at(view, low).offset;
    while (0 < low && high - low < wanted && comes_again(view, low - 1, period, distance)) {
        --low;
    }
    while (high + period < view->n && high - low < wanted
           && comes_again(view, high, period, distance)) {
        ++high;
    }
    return high - low >= wanted;
}

/* Size of a part of a sample as blocks, and as terms. */
typedef struct {
    size_t items;
    uint64_t listed; /* bytes */
    uint64_t folded;
} fold_t;

/* The run at step @p i with the largest saving. @p listed has the bytes of each item's blocks. */
static fold_t best_fold(const uint64_t *steps, const uint64_t *listed, size_t i)
{
    /* a stream of many blocks is a term */
    fold_t best = {1, listed[i],
                   listed[i] < sizeof(opal_iov_cache_term_t) ? listed[i]
                                                             : sizeof(opal_iov_cache_term_t)};
    size_t period, k;

    for (period = 1; period <= MAX_PERIOD; ++period) {
        fold_t now;

        if (steps[i] != steps[i + period]) {
            continue; /* the common case of irregular data */
        }
        now = (fold_t){.items = period + matches(steps, i, period),
                       .folded = (1 + period) * sizeof(opal_iov_cache_term_t)};
        if (now.items < 3 * period) {
            continue;
        }
        for (k = 0; k < now.items; ++k) {
            now.listed += listed[i + k];
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
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t steps[STEPS], blocks[STEPS], listed = 0, folded = 0;
    opal_iov_cache_item_t item = item_at(view, first), next;
    fold_t fold;
    size_t i;

    for (i = 0; i < STEPS; ++i, item = next) {
        if (0 == item.size) {
            return false;
        }
        next = item_at(view, first + i + 1);
        /* shape and distance to the next one in one number */
        steps[i] = (((uint64_t) next.offset - (uint64_t) item.offset) * factor + item.size) * factor
                   + (uint64_t) item.stride;
        steps[i] = steps[i] * factor + item.count;
        blocks[i] = item.count * sizeof(opal_iov_cache_block_t);
    }
    if (is_periodic(view, first, steps)) {
        return false;
    }
    for (i = 0; i < SEARCHED; i += fold.items) {
        fold = best_fold(steps, blocks, i);
        listed += fold.listed;
        folded += fold.folded;
    }
    return SHORTER * folded > listed;
}

static bool is_scattered(const view_t *view)
{
    return LONG_LIST <= view->n && is_sample_scattered(view, 0)
           && is_sample_scattered(view, view->n / 2) && is_sample_scattered(view, view->n - SAMPLE);
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

/* ---------------------------------------------------------------------------------------------
 * The reader: one pass over the elements for the number of blocks, one that writes the blocks
 * ------------------------------------------------------------------------------------------- */

/*
 * Blocks that are always written for each element. The number of its blocks is not predictable, so
 * only the position of the next blocks depends on it. MANY is for elements with more than FEW
 * blocks on average. PAIR is for elements of exactly two, which is the usual result of opal.
 */
#define PAIR 2
#define FEW  3
#define MANY 12

/*
 * Limits of this reader. The general one handles longer blocks and larger offsets, with checks. It
 * also handles elements of many blocks, which the samples can miss: a term for each instead of a
 * list of their blocks.
 */
#define LENGTH_BITS 30
#define FAR         (INT64_C(1) << 60)
#define CROWD       64 /* blocks for each element, on average */

typedef struct {
    size_t blocks;
    uint64_t uniform; /* length of the blocks if all are equal, else 0 */
    bool touching;    /* some may continue the previous one */
} facts_t;

static size_t count_blocks(const dt_type_desc_t *desc)
{
    size_t blocks = 0, i;

#pragma GCC unroll 8
    for (i = 0; i < desc->used; ++i) {
        blocks += desc->desc[i].elem.count;
    }
    return blocks;
}

/*
 * Write the blocks of all elements. There must be room for @p width more.
 *
 * @return false if there are other elements than blocks, or longer ones
 */
static inline __attribute__((always_inline)) bool write_blocks(const dt_type_desc_t *desc,
                                                               unsigned width,
                                                               opal_iov_cache_block_t *block,
                                                               facts_t *facts)
{
    const ddt_elem_desc_t *element = &desc->desc[0].elem, *behind = element + desc->used;
    uint64_t sizes[UINT8_MAX + 1] = {0}; /* of the basic types; 0 for loops and their ends */
    uint64_t some = 0, all = UINT64_MAX, end = (uint64_t) element->disp + 1;
    bool touching = false;
    uint32_t others = 0, i;

    for (i = 0; i < OPAL_DATATYPE_MAX_PREDEFINED; ++i) {
        if (NULL != opal_datatype_basicDatatypes[i]) {
            sizes[i] = opal_datatype_basicDatatypes[i]->size;
        }
    }
    for (; element < behind; ++element) {
        const uint64_t length = sizes[(uint8_t) element->common.type] * element->blocklen,
                       extent = (uint64_t) element->extent;
        const uint32_t count = PAIR == width ? PAIR : element->count;
        uint64_t offset = (uint64_t) element->disp;

        others |= count ^ element->count;
        some |= length - 1; /* all bits, if the length is 0 */
        all &= length - 1;
        /* or its own blocks touch: this also counts an element without blocks, and distant ones */
        if (OPAL_UNLIKELY(end == offset)
            || OPAL_UNLIKELY((extent - length) << 32 < (uint64_t) count - 1)) {
            touching = true;
        }
#pragma GCC unroll 12
        for (i = 0; i < width; ++i, offset += extent) {
            block[i] = (opal_iov_cache_block_t){(int64_t) offset, length};
        }
        for (; OPAL_UNLIKELY(i < count); ++i, offset += extent) {
            block[i] = (opal_iov_cache_block_t){(int64_t) offset, length};
        }
        block += count;
        end = (uint64_t) block[-1].offset + length;
    }
    facts->uniform = some == all ? some + 1 : 0;
    facts->touching = touching;
    return 0 == others && 0 == some >> LENGTH_BITS;
}

/* Join blocks that continue the previous one. */
static void join_blocks(opal_iov_cache_block_t *blocks, facts_t *facts)
{
    size_t last = 0, i;
    uint64_t differ = 0;

    for (i = 1; i < facts->blocks; ++i) {
        if (blocks[last].offset + (int64_t) blocks[last].length == blocks[i].offset) {
            blocks[last].length += blocks[i].length;
        } else {
            blocks[++last] = blocks[i];
        }
    }
    facts->blocks = last + 1;
    for (i = 1; i <= last; ++i) {
        differ |= blocks[i].length ^ blocks[0].length;
    }
    facts->uniform = 0 == differ ? blocks[0].length : 0;
}

static uint64_t size_of(const opal_iov_cache_block_t *blocks, const facts_t *facts)
{
    uint64_t size = 0;
    size_t i;

    if (0 != facts->uniform) {
        return facts->blocks * facts->uniform;
    }
#pragma GCC unroll 8
    for (i = 0; i < facts->blocks; ++i) {
        size += blocks[i].length;
    }
    return size;
}

/* The blocks of one instance of the type. */
static int read_blocks(const opal_datatype_t *type, const dt_type_desc_t *desc, facts_t *facts,
                       opal_iov_cache_form_t **form)
{
    bool good;

    facts->blocks = count_blocks(desc);
    if (-FAR >= type->true_lb || FAR <= type->true_ub || 2 > facts->blocks
        || CROWD * desc->used < facts->blocks) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    *form = opal_iov_cache_form_new(1, facts->blocks + MANY);
    if (NULL == *form) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    good = PAIR * desc->used == facts->blocks && write_blocks(desc, PAIR, (*form)->blocks, facts);
    if (!good) {
        good = FEW * desc->used >= facts->blocks ? write_blocks(desc, FEW, (*form)->blocks, facts)
                                                 : write_blocks(desc, MANY, (*form)->blocks, facts);
    }
    if (good && facts->touching) {
        join_blocks((*form)->blocks, facts);
    }
    if (!good || 2 > facts->blocks || type->size != size_of((*form)->blocks, facts)) {
        opal_iov_cache_form_free(*form);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    (*form)->block_count = facts->blocks;
    return OPAL_SUCCESS;
}

int opal_iov_cache_form_scattered(const opal_datatype_t *type, const dt_type_desc_t *desc,
                                  size_t count, opal_iov_cache_form_t **form)
{
    /*
     * as in iov_cache_lay.c: offsets of a form's blocks are absolute, those of a body are relative
     * to its first block
     */
    const uint64_t origin = 1 < count ? (uint64_t) desc->desc[0].elem.disp : 0;
    opal_iov_cache_block_t *blocks;
    opal_iov_cache_sums_t sums, whole;
    opal_iov_cache_form_t *made;
    opal_iov_cache_term_t *term;
    facts_t facts;
    size_t i;
    int rc = read_blocks(type, desc, &facts, &made);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    blocks = made->blocks;
    for (i = 0; i < facts.blocks && 0 != origin; ++i) {
        blocks[i].offset = (int64_t) ((uint64_t) blocks[i].offset - origin);
    }
    sums.size = type->size;
    sums.segments = facts.blocks;
    sums.uniform = facts.uniform;
    sums.first = blocks[0].offset;
    sums.end = blocks[facts.blocks - 1].offset + (int64_t) blocks[facts.blocks - 1].length;
    sums.lb = (int64_t) ((uint64_t) type->true_lb - origin);
    sums.ub = (int64_t) ((uint64_t) type->true_ub - origin);
    term = &made->terms[0];
    term->kind = OPAL_IOV_CACHE_BLOCKS;
    term->offset = (int64_t) origin;
    term->count = count;
    term->stride = 1 < count ? type->ub - type->lb : 0;
    term->n = facts.blocks;
    if (!opal_iov_cache_sums_repeat(term, &sums, &whole)) {
        opal_iov_cache_form_free(made);
        return OPAL_ERR_BAD_PARAM;
    }
    made->size = whole.size;
    made->segments = whole.segments;
    made->uniform = whole.uniform;
    made->lb = whole.lb;
    made->ub = whole.ub;
    made->depth = 1;
    opal_iov_cache_form_index(made);
    *form = made;
    return OPAL_SUCCESS;
}
