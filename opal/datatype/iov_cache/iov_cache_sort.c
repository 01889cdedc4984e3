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
 * The sorted form: TEMPI's last transformation (Pearson et al., HPDC 2021). It changes the stream
 * order, so it creates a separate form.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/constants.h"

#include "iov_cache_list.h"

typedef struct {
    uint64_t count;
    int64_t stride; /* positive */
} loop_t;

static int sort_terms(const opal_iov_cache_form_t *form, uint64_t first, uint64_t n, int64_t offset,
                      opal_iov_cache_list_t *list);

static int by_offset(const void *left, const void *right)
{
    const opal_iov_cache_item_t *a = left, *b = right;

    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return a->size < b->size ? -1 : a->size > b->size;
}

/* Sort a list's items and merge new neighbours. */
static int sort_list(opal_iov_cache_list_t *list)
{
    opal_iov_cache_list_t sorted = {0};
    int rc = OPAL_SUCCESS;
    size_t i;

    qsort(list->items, list->count, sizeof(*list->items), by_offset);
    for (i = 0; i < list->count && OPAL_SUCCESS == rc; ++i) {
        opal_iov_cache_item_t item = list->items[i];

        list->items[i].body = NULL;
        rc = opal_iov_cache_list_add(&sorted, item);
    }
    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_finish(&sorted);
    }
    opal_iov_cache_list_clear(list);
    *list = sorted;
    return rc;
}

static void sort_loops(loop_t *loops, unsigned n)
{
    unsigned i, k;

    for (i = 1; i < n; ++i) {
        loop_t loop = loops[i];

        for (k = i; 0 < k && loops[k - 1].stride < loop.stride; --k) {
            loops[k] = loops[k - 1];
        }
        loops[k] = loop;
    }
}

/* The body of a term after removal of all loops. */
static int sort_body(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *term,
                     opal_iov_cache_list_t *list)
{
    int rc = OPAL_SUCCESS;
    uint64_t i;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        return opal_iov_cache_list_add_block(list, 0, term->size);
    }
    if (OPAL_IOV_CACHE_TERMS == term->kind) {
        return sort_terms(form, term->first, term->n, 0, list);
    }
    for (i = 0; i < term->n && OPAL_SUCCESS == rc; ++i) {
        const opal_iov_cache_block_t *block = &form->blocks[term->first + i];

        rc = opal_iov_cache_list_add_block(list, block->offset, block->length);
    }
    return OPAL_SUCCESS == rc ? sort_list(list) : rc;
}

/* A term: its loops and those of nested single terms can be exchanged. */
static int sort_term(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *term,
                     int64_t offset, opal_iov_cache_list_t *list)
{
    loop_t loops[OPAL_IOV_CACHE_MAX_DEPTH];
    opal_iov_cache_item_t item;
    unsigned n = 0;
    int rc;

    for (;;) {
        offset += term->offset;
        if (1 < term->count) {
            loops[n].count = term->count;
            loops[n].stride = term->stride;
            if (0 > term->stride) {
                offset += (int64_t) (term->count - 1) * term->stride;
                loops[n].stride = -term->stride;
            }
            ++n;
        }
        if (OPAL_IOV_CACHE_TERMS != term->kind || 1 != term->n) {
            break;
        }
        term = &form->terms[term->first];
    }
    sort_loops(loops, n);
    item.body = opal_iov_cache_list_new();
    if (NULL == item.body) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = sort_body(form, term, item.body);
    while (OPAL_SUCCESS == rc && 0 < n) {
        opal_iov_cache_list_t *outer = opal_iov_cache_list_new();

        --n;
        item.offset = 0;
        item.size = 0;
        item.count = loops[n].count;
        item.stride = loops[n].stride;
        if (NULL == outer) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
            break;
        }
        rc = opal_iov_cache_list_add(outer, item);
        item.body = outer;
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_free(item.body);
        return rc;
    }
    item.offset = offset;
    item.size = 0;
    item.count = 1;
    item.stride = 0;
    return opal_iov_cache_list_add(list, item);
}

static int sort_terms(const opal_iov_cache_form_t *form, uint64_t first, uint64_t n, int64_t offset,
                      opal_iov_cache_list_t *list)
{
    int rc = OPAL_SUCCESS;
    uint64_t i;

    for (i = 0; i < n && OPAL_SUCCESS == rc; ++i) {
        rc = sort_term(form, &form->terms[first + i], offset, list);
    }
    return OPAL_SUCCESS == rc ? sort_list(list) : rc;
}

int opal_iov_cache_form_sorted(const opal_iov_cache_form_t *form, opal_iov_cache_form_t **sorted)
{
    opal_iov_cache_list_t list = {0};
    int rc = OPAL_SUCCESS;

    if (0 < form->size) {
        rc = sort_terms(form, 0, 1, 0, &list);
    }
    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_form(&list, sorted);
    }
    opal_iov_cache_list_clear(&list);
    return rc;
}
