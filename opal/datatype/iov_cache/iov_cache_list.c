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
 * Conversion of lists of items to canonical form. The transformations are those of TEMPI (Pearson
 * et al., HPDC 2021): dense folding, stream elision, stream flattening. In addition HAND's (Shi et
 * al., HiPC 2014), irregular types as runs of vectors, repeated until nothing changes.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "iov_cache_list.h"

#define FIRST_CAPACITY 8

/* Number of periods that are tried on a list before the search for runs. */
#define PERIOD_TRIES 8

/*
 * Maximum items of one repetition of a run, and limit of positions searched without success:
 * irregular lists should not cost much more than one pass over the items.
 */
#define MAX_PERIOD 8
#define MAX_MISSES 4096

opal_iov_cache_list_t *opal_iov_cache_list_new(void)
{
    opal_iov_cache_list_t *list = malloc(sizeof(*list)); /* glibc's calloc is much slower */

    if (NULL != list) {
        memset(list, 0, sizeof(*list));
    }
    return list;
}

void opal_iov_cache_list_clear(opal_iov_cache_list_t *list)
{
    size_t i;

    for (i = 0; i < list->count; ++i) {
        opal_iov_cache_list_free(list->items[i].body);
    }
    free(list->items);
    memset(list, 0, sizeof(*list));
}

void opal_iov_cache_list_free(opal_iov_cache_list_t *list)
{
    if (NULL != list) {
        opal_iov_cache_list_clear(list);
        free(list);
    }
}

/* Free the list but not the bodies of its items, which have been moved. */
static void free_shell(opal_iov_cache_list_t *list)
{
    free(list->items);
    free(list);
}

/* ---------------------------------------------------------------------------------------------
 * Comparing
 * ------------------------------------------------------------------------------------------- */

static bool same_lists(const opal_iov_cache_list_t *a, const opal_iov_cache_list_t *b);

/* True if both repeat the same body. */
static bool same_bodies(const opal_iov_cache_item_t *a, const opal_iov_cache_item_t *b)
{
    return a->size == b->size && (NULL == a->body) == (NULL == b->body)
           && (NULL == a->body || same_lists(a->body, b->body));
}

/* True if both are equal except for the offset. */
static bool same_shapes(const opal_iov_cache_item_t *a, const opal_iov_cache_item_t *b)
{
    return a->count == b->count && a->stride == b->stride && same_bodies(a, b);
}

static bool same_lists(const opal_iov_cache_list_t *a, const opal_iov_cache_list_t *b)
{
    size_t i;

    if (a->count != b->count) {
        return false;
    }
    for (i = 0; i < a->count; ++i) {
        if (a->items[i].offset != b->items[i].offset || !same_shapes(&a->items[i], &b->items[i])) {
            return false;
        }
    }
    return true;
}

/* True if b - a is exactly the distance, without wrapping. */
static bool is_apart(int64_t a, int64_t b, int64_t distance)
{
    int64_t difference;

    return !__builtin_sub_overflow(b, a, &difference) && difference == distance;
}

/* ---------------------------------------------------------------------------------------------
 * Items one by one
 * ------------------------------------------------------------------------------------------- */

/* True if the item is merged into the last one. */
static bool join_last(opal_iov_cache_item_t *last, opal_iov_cache_item_t *item)
{
    int64_t reach;

    if (NULL == last->body && NULL == item->body && 1 == last->count && 1 == item->count
        && last->size <= INT64_MAX && is_apart(last->offset, item->offset, (int64_t) last->size)) {
        last->size += item->size;
        return true;
    }
    if (1 == last->count && 1 == item->count) {
        return false; /* two equal items: opal_iov_cache_list_finish may find more */
    }
    if (1 == last->count) {
        /* one repetition before a stream */
        if (!is_apart(last->offset, item->offset, item->stride) || !same_bodies(last, item)) {
            return false;
        }
        last->stride = item->stride;
    } else {
        if ((1 < item->count && item->stride != last->stride)
            || __builtin_mul_overflow((int64_t) last->count, last->stride, &reach)
            || !is_apart(last->offset, item->offset, reach) || !same_bodies(last, item)) {
            return false;
        }
    }
    last->count += item->count;
    opal_iov_cache_list_free(item->body);
    return true;
}

static int append(opal_iov_cache_list_t *list, opal_iov_cache_item_t *item)
{
    if (0 < list->count && join_last(&list->items[list->count - 1], item)) {
        return OPAL_SUCCESS;
    }
    if (list->count == list->capacity) {
        size_t more = 0 == list->capacity ? FIRST_CAPACITY : 2 * list->capacity;
        opal_iov_cache_item_t *items = NULL;

        if (more <= SIZE_MAX / sizeof(*items)) {
            items = realloc(list->items, more * sizeof(*items));
        }
        if (NULL == items) {
            opal_iov_cache_list_free(item->body);
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        list->items = items;
        list->capacity = more;
    }
    list->items[list->count++] = *item;
    return OPAL_SUCCESS;
}

/* Move the body to offset 0 and its previous start to the item. False on overflow. */
static bool pull_offset(opal_iov_cache_item_t *item)
{
    opal_iov_cache_list_t *body = item->body;
    int64_t first = body->items[0].offset;
    size_t i;

    if (0 == first) {
        return true;
    }
    for (i = 0; i < body->count; ++i) {
        if (__builtin_sub_overflow(body->items[i].offset, first, &body->items[i].offset)) {
            return false;
        }
    }
    return !__builtin_add_overflow(item->offset, first, &item->offset);
}

/* A stream of one repetition is its body (stream elision). */
static int add_body(opal_iov_cache_list_t *list, opal_iov_cache_item_t *item)
{
    opal_iov_cache_list_t *body = item->body;
    int rc = OPAL_SUCCESS;
    size_t i;

    for (i = 0; i < body->count; ++i) {
        if (OPAL_SUCCESS == rc
            && __builtin_add_overflow(body->items[i].offset, item->offset,
                                      &body->items[i].offset)) {
            rc = OPAL_ERR_BAD_PARAM;
        }
        if (OPAL_SUCCESS == rc) {
            rc = append(list, &body->items[i]);
        } else {
            opal_iov_cache_list_free(body->items[i].body);
        }
    }
    free_shell(body);
    return rc;
}

/*
 * A stream of a single item may be one stream: of the item's block, or, if the strides match across
 * repetitions, of the item's body (stream flattening).
 */
static int flatten(opal_iov_cache_item_t *item)
{
    opal_iov_cache_item_t inner = item->body->items[0];
    int64_t reach;

    if (1 == inner.count && NULL == inner.body) {
        item->size = inner.size;
        opal_iov_cache_list_free(item->body);
        item->body = NULL;
    } else if (!__builtin_mul_overflow((int64_t) inner.count, inner.stride, &reach)
               && reach == item->stride) {
        inner.offset = item->offset;
        if (__builtin_mul_overflow(inner.count, item->count, &inner.count)) {
            return OPAL_ERR_BAD_PARAM;
        }
        free_shell(item->body);
        *item = inner;
    }
    return OPAL_SUCCESS;
}

int opal_iov_cache_list_add(opal_iov_cache_list_t *list, opal_iov_cache_item_t item)
{
    if (0 == item.count || (NULL == item.body ? 0 == item.size : 0 == item.body->count)) {
        opal_iov_cache_list_free(item.body);
        return OPAL_SUCCESS;
    }
    if (NULL != item.body) {
        int rc;

        item.size = 0;
        if (1 == item.count) {
            return add_body(list, &item);
        }
        rc = pull_offset(&item) ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
        if (OPAL_SUCCESS == rc && 1 == item.body->count) {
            rc = flatten(&item);
        }
        if (OPAL_SUCCESS != rc) {
            opal_iov_cache_list_free(item.body);
            return rc;
        }
    }
    if (NULL == item.body && 1 < item.count && item.stride > 0
        && (uint64_t) item.stride == item.size) {
        /* adjacent blocks (dense folding) */
        if (__builtin_mul_overflow(item.size, item.count, &item.size) || item.size > INT64_MAX) {
            return OPAL_ERR_BAD_PARAM;
        }
        item.count = 1;
    }
    if (1 == item.count) {
        item.stride = 0;
    }
    return append(list, &item);
}

/* ---------------------------------------------------------------------------------------------
 * Runs
 * ------------------------------------------------------------------------------------------- */

/* Number of items from @p i on with one shape and equal distances. */
static size_t run_length(const opal_iov_cache_list_t *list, size_t i)
{
    const opal_iov_cache_item_t *items = list->items;
    int64_t distance;
    size_t n;

    if (i + 1 >= list->count
        || __builtin_sub_overflow(items[i + 1].offset, items[i].offset, &distance)
        || !same_shapes(&items[i], &items[i + 1])) {
        return 1;
    }
    for (n = 2;
         i + n < list->count && is_apart(items[i + n - 1].offset, items[i + n].offset, distance)
         && same_shapes(&items[i], &items[i + n]);
         ++n) {
    }
    return n;
}

/* True if items i and j are of one shape, and the steps to their next ones are the same. */
static bool same_steps(const opal_iov_cache_list_t *list, size_t i, size_t j)
{
    const opal_iov_cache_item_t *items = list->items;
    int64_t step;

    return !__builtin_sub_overflow(items[i + 1].offset, items[i].offset, &step)
           && is_apart(items[j].offset, items[j + 1].offset, step)
           && same_shapes(&items[i], &items[j]);
}

/* Number of consecutive repetitions of the items i .. i + period - 1. */
static size_t repetitions(const opal_iov_cache_list_t *list, size_t i, size_t period)
{
    int64_t stride;
    size_t k = 0;

    if (i + period >= list->count
        || __builtin_sub_overflow(list->items[i + period].offset, list->items[i].offset, &stride)) {
        return 1;
    }
    while (i + period + k + 1 < list->count && same_steps(list, i + k, i + period + k)) {
        ++k;
    }
    if (same_shapes(&list->items[i + k], &list->items[i + period + k])) {
        ++k;
    }
    return 1 + k / period;
}

/* Move items from one list to the end of another. */
static int move_items(opal_iov_cache_list_t *from, size_t first, size_t n,
                      opal_iov_cache_list_t *to)
{
    int rc = OPAL_SUCCESS;
    size_t i;

    for (i = first; i < first + n && OPAL_SUCCESS == rc; ++i) {
        opal_iov_cache_item_t item = from->items[i];

        from->items[i].body = NULL;
        rc = append(to, &item);
    }
    return rc;
}

/* Append items i .. i + period * n - 1, n repetitions, to another list as one stream. */
static int fold(opal_iov_cache_list_t *list, size_t i, size_t period, size_t n,
                opal_iov_cache_list_t *out)
{
    opal_iov_cache_item_t stream = {
        .count = n, .stride = list->items[i + period].offset - list->items[i].offset};
    int rc;

    stream.body = opal_iov_cache_list_new();
    if (NULL == stream.body) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = move_items(list, i, period, stream.body);
    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_finish(stream.body);
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_free(stream.body);
        return rc;
    }
    return opal_iov_cache_list_add(out, stream);
}

/* Description of the run that begins at @p i. */
typedef struct {
    size_t period;
    size_t n; /* repetitions; 1: no run */
} run_t;

static run_t find_run(const opal_iov_cache_list_t *list, size_t i, size_t *misses)
{
    run_t run = {1, run_length(list, i)};
    size_t period, n;

    if (2 >= run.n && *misses < MAX_MISSES) {
        for (period = 2; period <= MAX_PERIOD; ++period) {
            n = repetitions(list, i, period);
            if (3 <= n) {
                run.period = period;
                run.n = n;
                return run;
            }
        }
        ++*misses;
    }
    /* Any two equal items are a run, which is useful only if it repeats. */
    if (2 == run.n
        && !((i + 3 < list->count && same_steps(list, i, i + 2))
             || (2 <= i && same_steps(list, i - 2, i)))) {
        run.n = 1;
    }
    return run;
}

/* Find runs anywhere in the list. The list is valid afterwards, also on failure. */
static int group(opal_iov_cache_list_t *list, bool *grouped)
{
    opal_iov_cache_list_t out = {0};
    int rc = OPAL_SUCCESS;
    size_t i = 0, misses = 0;
    run_t run = {1, 1};

    *grouped = false;
    while (i < list->count && 1 == (run = find_run(list, i, &misses)).n) {
        ++i;
    }
    if (i == list->count) {
        return OPAL_SUCCESS; /* most long lists: avoids a copy */
    }
    *grouped = true;
    rc = move_items(list, 0, i, &out);
    while (i < list->count && OPAL_SUCCESS == rc) {
        rc = 1 == run.n ? move_items(list, i, 1, &out) : fold(list, i, run.period, run.n, &out);
        i += run.period * run.n;
        if (i < list->count) {
            run = find_run(list, i, &misses);
        }
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_clear(&out);
        return rc;
    }
    opal_iov_cache_list_clear(list);
    *list = out;
    return OPAL_SUCCESS;
}

/*
 * A list that is periodic from its first or second item to nearly its end becomes one stream and a
 * rest. (From the second one, since opal joins the first block of a repetition with the last of the
 * previous one where possible.) The number of tried periods is limited.
 */
static int fold_all(opal_iov_cache_list_t *list, bool *folded)
{
    opal_iov_cache_list_t out = {0};
    size_t first, period, n = 0, tries;
    int rc;

    *folded = false;
    for (first = 0; first < 2; ++first) {
        for (period = 1, tries = 0; first + 2 * period <= list->count && tries < PERIOD_TRIES;
             ++period) {
            if (first + period + 1 < list->count && !same_steps(list, first, first + period)) {
                continue;
            }
            ++tries;
            n = repetitions(list, first, period);
            if (2 <= n && first + period * (n + 2) >= list->count) {
                *folded = true;
                break;
            }
        }
        if (*folded) {
            break;
        }
    }
    if (!*folded) {
        return OPAL_SUCCESS;
    }
    rc = move_items(list, 0, first, &out);
    if (OPAL_SUCCESS == rc) {
        rc = fold(list, first, period, n, &out);
    }
    if (OPAL_SUCCESS == rc) {
        first += period * n;
        rc = move_items(list, first, list->count - first, &out);
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_clear(&out);
        return rc;
    }
    opal_iov_cache_list_clear(list);
    *list = out;
    return OPAL_SUCCESS;
}

/* True if the items from @p i on are the body of a stream at @p offset. */
static bool is_body_at(const opal_iov_cache_list_t *list, size_t i,
                       const opal_iov_cache_item_t *stream, int64_t offset)
{
    const opal_iov_cache_list_t *body = stream->body;
    size_t k;

    if (body->count > list->count - i) {
        return false;
    }
    for (k = 0; k < body->count; ++k) {
        if (!is_apart(offset, list->items[i + k].offset, body->items[k].offset)
            || !same_shapes(&body->items[k], &list->items[i + k])) {
            return false;
        }
    }
    return true;
}

/* Streams absorb adjacent items that are one more repetition. */
static int absorb(opal_iov_cache_list_t *list, bool *changed)
{
    opal_iov_cache_list_t out = {0};
    int rc = OPAL_SUCCESS;
    size_t i, k, m;

    *changed = false;
    for (i = 0; i < list->count && NULL == list->items[i].body; ++i) {
    }
    if (i == list->count) {
        return OPAL_SUCCESS;
    }
    for (i = 0; i < list->count && OPAL_SUCCESS == rc;) {
        opal_iov_cache_item_t item = list->items[i];
        int64_t next;

        list->items[i++].body = NULL;
        if (NULL != item.body) {
            m = item.body->count;
            while (m <= out.count && !__builtin_sub_overflow(item.offset, item.stride, &next)
                   && is_body_at(&out, out.count - m, &item, next)) {
                for (k = 0; k < m; ++k) {
                    opal_iov_cache_list_free(out.items[--out.count].body);
                }
                item.offset = next;
                ++item.count;
                *changed = true;
            }
            while (!__builtin_mul_overflow((int64_t) item.count, item.stride, &next)
                   && !__builtin_add_overflow(item.offset, next, &next)
                   && is_body_at(list, i, &item, next)) {
                for (k = 0; k < m; ++k, ++i) {
                    opal_iov_cache_list_free(list->items[i].body);
                    list->items[i].body = NULL;
                }
                ++item.count;
                *changed = true;
            }
        }
        rc = append(&out, &item);
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_clear(&out);
        return rc;
    }
    opal_iov_cache_list_clear(list);
    *list = out;
    return OPAL_SUCCESS;
}

int opal_iov_cache_list_finish(opal_iov_cache_list_t *list)
{
    bool changed = false;
    int rc = OPAL_SUCCESS;

    if (opal_iov_cache_list_is_scattered(list)) {
        rc = fold_all(list, &changed);
        if (OPAL_SUCCESS != rc || !changed) {
            return rc;
        }
    }
    changed = true;
    while (changed && 1 < list->count && OPAL_SUCCESS == rc) {
        rc = absorb(list, &changed);
        if (OPAL_SUCCESS == rc && !changed) {
            rc = fold_all(list, &changed);
        }
        if (OPAL_SUCCESS == rc && !changed) {
            rc = group(list, &changed);
        }
    }
    return rc;
}
