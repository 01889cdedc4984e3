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
 * Conversion of a list of items to a form: arrays instead of pointers, and in every term the sums
 * that allow lookups of positions and segments without a walk.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "iov_cache_list.h"
#include "iov_cache_sums.h"

/*
 * A term takes five times as much memory as a block. So at least this many successive blocks, in
 * streams of at most STREAM_MIN - 1 of them, become a list of blocks.
 */
#define STRETCH_MIN 8
#define STREAM_MIN  5

/* Lists of this many blocks are aligned to a cache line: they are written several at a time. */
#define MANY 256
#define LINE 64

/* The next part of a list: one item, or a stretch of items that become blocks. */
typedef struct {
    size_t items;
    uint64_t blocks; /* 0: the item is a term */
} part_t;

typedef struct {
    opal_iov_cache_form_t *form;
    size_t terms; /* used so far */
    size_t blocks;
} maker_t;

static bool is_blocks(const opal_iov_cache_item_t *item)
{
    return NULL == item->body && item->count < STREAM_MIN;
}

/*
 * The part that begins at item @p i. @p plain counts the items of a stretch that is too short, so
 * that it is not measured again from each of its items.
 */
static part_t next_part(const opal_iov_cache_list_t *list, size_t i, size_t *plain)
{
    part_t part = {1, 0};
    uint64_t blocks = 0;
    size_t n;

    if (0 < *plain) {
        --*plain;
        return part;
    }
    for (n = 0; i + n < list->count && is_blocks(&list->items[i + n]); ++n) {
        blocks += list->items[i + n].count;
    }
    if (STRETCH_MIN <= blocks && 1 < n) {
        part.items = n;
        part.blocks = blocks;
    } else if (1 < n) {
        *plain = n - 1;
    }
    return part;
}

/* True if the whole list is one stretch: its blocks need no term of their own. */
static bool is_one_stretch(const opal_iov_cache_list_t *list, part_t *part)
{
    size_t plain = 0;

    *part = next_part(list, 0, &plain);
    return 0 < part->blocks && part->items == list->count;
}

/* The size that a list needs. @return nesting of terms */
static uint32_t measure(const opal_iov_cache_list_t *list, size_t *terms, size_t *blocks)
{
    size_t i = 0, plain = 0;
    uint32_t depth = 0;

    while (i < list->count) {
        const opal_iov_cache_item_t *item = &list->items[i];
        part_t part = next_part(list, i, &plain), inner;
        uint32_t below = 1;

        ++*terms;
        *blocks += part.blocks;
        if (0 == part.blocks && NULL != item->body) {
            if (is_one_stretch(item->body, &inner)) {
                *blocks += inner.blocks;
            } else {
                below += measure(item->body, terms, blocks);
            }
        }
        depth = below > depth ? below : depth;
        i += part.items;
    }
    return depth;
}

/* Write a block whose length is final. */
static bool lay_block(maker_t *maker, int64_t offset, uint64_t size, opal_iov_cache_sums_t *sums)
{
    opal_iov_cache_block_t *block = &maker->form->blocks[maker->blocks];
    opal_iov_cache_sums_t one;

    if (!opal_iov_cache_sums_block(offset, size, &one)) {
        return false;
    }
    block->offset = offset;
    block->length = size;
    ++maker->blocks;
    (void) opal_iov_cache_sums_add(sums, &one); /* never joined: the caller has handled that */
    return sums->size <= INT64_MAX;
}

/*
 * The blocks of items i .. i + n - 1 as the body of a term with a known offset. The last block of a
 * stream and the following one may be adjacent, so the last block is always written late.
 */
static bool lay_blocks(maker_t *maker, const opal_iov_cache_list_t *list, size_t i, part_t part,
                       int64_t origin, opal_iov_cache_term_t *term, opal_iov_cache_sums_t *sums)
{
    int64_t kept = 0;
    uint64_t cached_size = 0, k;
    size_t last = i + part.items;

    memset(sums, 0, sizeof(*sums));
    term->kind = OPAL_IOV_CACHE_BLOCKS;
    term->first = maker->blocks;
    for (; i < last; ++i) {
        const opal_iov_cache_item_t *item = &list->items[i];

        for (k = 0; k < item->count; ++k) {
            int64_t offset, end;

            if (__builtin_mul_overflow((int64_t) k, item->stride, &offset)
                || __builtin_add_overflow(offset, item->offset, &offset)
                || __builtin_sub_overflow(offset, origin, &offset)
                || __builtin_add_overflow(kept, (int64_t) cached_size, &end)) {
                return false;
            }
            if (0 < cached_size && end == offset) {
                cached_size += item->size;
                continue;
            }
            if (0 < cached_size && !lay_block(maker, kept, cached_size, sums)) {
                return false;
            }
            kept = offset;
            cached_size = item->size;
        }
    }
    if (!lay_block(maker, kept, cached_size, sums)) {
        return false;
    }
    term->n = maker->blocks - term->first;
    return true;
}

static bool lay_list(maker_t *maker, const opal_iov_cache_list_t *list, size_t place,
                     opal_iov_cache_sums_t *sums);

static size_t count_parts(const opal_iov_cache_list_t *list)
{
    size_t i = 0, plain = 0, parts = 0;

    for (; i < list->count; ++parts) {
        i += next_part(list, i, &plain).items;
    }
    return parts;
}

/* The body of an item: dense, blocks or terms. */
static bool lay_body(maker_t *maker, const opal_iov_cache_item_t *item, opal_iov_cache_term_t *term,
                     opal_iov_cache_sums_t *sums)
{
    part_t part;

    if (NULL == item->body) {
        return opal_iov_cache_sums_block(0, item->size, sums);
    }
    if (is_one_stretch(item->body, &part)) {
        /* the body of a stream begins at 0, and so do its blocks */
        return lay_blocks(maker, item->body, 0, part, 0, term, sums);
    }
    term->kind = OPAL_IOV_CACHE_TERMS;
    term->first = maker->terms;
    term->n = count_parts(item->body);
    maker->terms += term->n;
    return lay_list(maker, item->body, term->first, sums);
}

/* The terms of a list, from terms[place] on, which has room for all of them. */
static bool lay_list(maker_t *maker, const opal_iov_cache_list_t *list, size_t place,
                     opal_iov_cache_sums_t *sums)
{
    size_t i = 0, plain = 0;

    memset(sums, 0, sizeof(*sums));
    while (i < list->count) {
        opal_iov_cache_term_t *term = &maker->form->terms[place++];
        const opal_iov_cache_item_t *item = &list->items[i];
        part_t part = next_part(list, i, &plain);
        opal_iov_cache_sums_t body, whole;

        /* blocks of the root have absolute offsets, so that they are a list of IOVs */
        term->offset = 0 < part.blocks && 1 == place ? 0 : item->offset;
        term->count = 0 < part.blocks ? 1 : item->count;
        term->stride = 0 < part.blocks ? 0 : item->stride;
        if (!(0 < part.blocks ? lay_blocks(maker, list, i, part, term->offset, term, &body)
                              : lay_body(maker, item, term, &body))
            || !opal_iov_cache_sums_repeat(term, &body, &whole)) {
            return false;
        }
        term->start = sums->size;
        term->begins = sums->segments;
        if (opal_iov_cache_sums_add(sums, &whole)) {
            term->flags |= OPAL_IOV_CACHE_JOINED;
        }
        if (sums->size > INT64_MAX) {
            return false;
        }
        i += part.items;
    }
    return true;
}

/* A list of several terms is the body of a term that repeats it once. */
static bool lay_root(maker_t *maker, const opal_iov_cache_list_t *list, size_t parts,
                     opal_iov_cache_sums_t *sums)
{
    opal_iov_cache_term_t *root = &maker->form->terms[0];

    if (1 == parts) {
        maker->terms = 1;
        return lay_list(maker, list, 0, sums);
    }
    root->kind = OPAL_IOV_CACHE_TERMS;
    root->count = 1;
    root->first = 1;
    root->n = parts;
    maker->terms = 1 + parts;
    if (!lay_list(maker, list, 1, sums)) {
        return false;
    }
    root->size = sums->size;
    root->segments = sums->segments;
    return true;
}

/* Number of starts for this many blocks. */
static size_t starts_of(size_t blocks)
{
    return (blocks + OPAL_IOV_CACHE_START_STEP - 1) / OPAL_IOV_CACHE_START_STEP;
}

opal_iov_cache_form_t *opal_iov_cache_form_new(size_t terms, size_t blocks)
{
    opal_iov_cache_form_t *form;
    size_t bytes;

    if (terms > SIZE_MAX / 4 / sizeof(*form->terms)
        || blocks > SIZE_MAX / 4 / sizeof(*form->blocks)) {
        return NULL;
    }
    bytes = sizeof(*form) + terms * sizeof(*form->terms) + blocks * sizeof(*form->blocks)
            + starts_of(blocks) * sizeof(*form->starts) + (MANY <= blocks ? LINE : 0);
    form = malloc(bytes);
    if (NULL == form) {
        return NULL;
    }
    memset(form, 0, sizeof(*form) + terms * sizeof(*form->terms));
    form->terms = (opal_iov_cache_term_t *) (form + 1);
    form->blocks = (opal_iov_cache_block_t *) (form->terms + terms);
    if (MANY <= blocks) {
        form->blocks =
            (opal_iov_cache_block_t *) (((uintptr_t) form->blocks + LINE - 1) / LINE * LINE);
    }
    form->starts = (uint64_t *) (form->blocks + blocks);
    form->term_count = terms;
    form->block_count = blocks;
    form->bytes = bytes;
    return form;
}

/* Sum of the lengths of some blocks. */
static uint64_t lengths(const opal_iov_cache_block_t *blocks, uint64_t n)
{
    uint64_t even = 0, odd = 0, i;

    for (i = 0; i + 1 < n; i += 2) {
        even += blocks[i].length;
        odd += blocks[i + 1].length;
    }
    return even + odd + (i < n ? blocks[i].length : 0);
}

void opal_iov_cache_form_index(opal_iov_cache_form_t *form)
{
    const uint64_t step = OPAL_IOV_CACHE_START_STEP;
    size_t i;

    for (i = 0; i < form->term_count && 0 == form->uniform; ++i) {
        const opal_iov_cache_term_t *term = &form->terms[i];
        uint64_t k = (term->first + step - 1) / step, at, block = term->first;

        if (OPAL_IOV_CACHE_BLOCKS != term->kind) {
            continue;
        }
        for (at = 0; k * step < term->first + term->n; ++k, block = k * step - step) {
            at += lengths(form->blocks + block, k * step - block);
            form->starts[k] = at;
        }
    }
}

int opal_iov_cache_list_form(const opal_iov_cache_list_t *list, opal_iov_cache_form_t **form)
{
    size_t parts = count_parts(list), terms = 1 < parts ? 1 : 0, blocks = 0;
    uint32_t depth = (1 < parts ? 1 : 0) + measure(list, &terms, &blocks);
    maker_t maker = {0};
    opal_iov_cache_sums_t sums;

    if (OPAL_IOV_CACHE_MAX_DEPTH < depth) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    maker.form = opal_iov_cache_form_new(terms, blocks);
    if (NULL == maker.form) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (0 < parts) {
        if (!lay_root(&maker, list, parts, &sums)) {
            opal_iov_cache_form_free(maker.form);
            return OPAL_ERR_BAD_PARAM;
        }
        maker.form->block_count = maker.blocks; /* at most as many as measured */
        maker.form->size = sums.size;
        maker.form->segments = sums.segments;
        maker.form->uniform = sums.uniform;
        maker.form->lb = sums.lb;
        maker.form->ub = sums.ub;
        maker.form->depth = depth;
    }
    opal_iov_cache_form_index(maker.form);
    *form = maker.form;
    return OPAL_SUCCESS;
}

void opal_iov_cache_form_free(opal_iov_cache_form_t *form)
{
    free(form); /* the arrays follow it */
}

size_t opal_iov_cache_form_bytes(const opal_iov_cache_form_t *form)
{
    return form->bytes;
}
