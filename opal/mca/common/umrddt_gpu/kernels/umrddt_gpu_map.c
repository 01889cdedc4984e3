/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "umrddt_gpu_map.h"

/*
 * Each thread searches a run. Above this number of runs AUTO prefers the tree, which is shorter.
 * Not measured.
 */
#define AUTO_RUNS 1024
/*
 * AUTO copies IOVs one by one if their mean length is above this. Measured on an H200: 0.8 of the
 * time of the other method at 1 KiB, 1.9 at 64 bytes.
 */
#define AUTO_TEAMS 512
/*
 * Maximum mean number of pieces of one length per block. Up to this the list is no longer than a
 * list of blocks with lengths, and needs no search. In SPECFEM3D_cm_1957_245 1 of 2201 blocks is
 * twice as long as the others. On an H200 it took 7.9 us, but similar larger layouts with equal
 * blocks took 3.7 us (bench/results/h200-2026-11-24.md).
 */
#define MOST_PIECES 2

/* ---------------------------------------------------------------------------------------------
 * Divisors
 * ------------------------------------------------------------------------------------------- */

umrddt_gpu_div_t opal_umrddt_gpu_div(uint64_t by, uint64_t bound)
{
    umrddt_gpu_div_t result = {by, 0, UMRDDT_GPU_NO_MAGIC};
    const uint64_t limit = UINT64_C(1) << 31;

    if (bound > limit) {
        return result;
    }
    if (by >= limit) {
        result.shift = 31; /* 0 for all dividends below 2^31 */
        return result;
    }
    for (result.shift = 0; UINT64_C(1) << result.shift < by;) {
        ++result.shift;
    }
    /* Granlund and Montgomery, PLDI 1994, with one bit to spare */
    result.magic = (uint32_t) ((((UINT64_C(1) << result.shift) - by) << 32) / by + 1);
    return result;
}

/* The divisor for positions below `size`, which are the remainders of the level above. */
static umrddt_gpu_div_t divisor(uint64_t by, uint64_t size)
{
    return opal_umrddt_gpu_div(by, size);
}

/* ---------------------------------------------------------------------------------------------
 * Shapes of forms
 * ------------------------------------------------------------------------------------------- */

/* The largest of 1, 2, 4, 8, 16 that divides all numbers combined by or in `bits`. */
static uint32_t align_of(uint64_t bits)
{
    bits |= 16;
    return (uint32_t) (bits & (0 - bits));
}

/*
 * Levels from the root down, while each body has one term. Returns the term with the remaining
 * body; NULL if there are too many levels.
 */
static const opal_iov_cache_term_t *descend(const opal_iov_cache_form_t *form,
                                            opal_umrddt_gpu_map_t *map)
{
    const opal_iov_cache_term_t *term = form->terms;

    for (;;) {
        map->offset += term->offset;
        if (1 < term->count) {
            if (UMRDDT_GPU_LEVELS == map->levels) {
                return NULL;
            }
            map->level[map->levels].count = term->count;
            map->level[map->levels].stride = term->stride;
            map->level[map->levels].size = term->size;
            ++map->levels;
        }
        if (OPAL_IOV_CACHE_TERMS != term->kind || 1 != term->n) {
            return term;
        }
        term = &form->terms[term->first];
    }
}

/*
 * The greatest common divisor of the block lengths of a term. Lists of equal blocks can contain
 * adjacent ones, which are one longer block here.
 *
 * @param[out] pieces  of that length, in all blocks
 */
static uint64_t common_length(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *term,
                              uint64_t *pieces)
{
    const opal_iov_cache_block_t *blocks = &form->blocks[term->first];
    uint64_t length = blocks[0].length, sum = 0, i, rest, other;

    for (i = 0; i < term->n; ++i) {
        sum += blocks[i].length;
        for (other = blocks[i].length; 0 != (rest = other % length); length = rest) {
            other = length;
        }
    }
    *pieces = sum / length;
    return length;
}

/* Levels whose sizes and strides must be multiples of a kernel's access width. */
static uint64_t levels_bits(const opal_umrddt_gpu_map_t *map)
{
    uint64_t bits = (uint64_t) map->offset;
    uint32_t i;

    for (i = 0; i < map->levels; ++i) {
        bits |= (uint64_t) map->level[i].stride | map->level[i].size;
    }
    return bits;
}

static int allocate(opal_umrddt_gpu_map_t *map, uint64_t n, uint64_t bytes, size_t max_list)
{
    if (bytes > max_list) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    map->list = malloc(bytes);
    if (NULL == map->list) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    map->n = n;
    map->list_bytes = bytes;
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * One function per kind
 * ------------------------------------------------------------------------------------------- */

/* Levels over blocks of one length, or over blocks that consist of such pieces. */
static int map_regular(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *body,
                       size_t max_list, opal_umrddt_gpu_map_t *map)
{
    uint64_t bits = levels_bits(map), i, at, pieces;
    int64_t *offsets;
    int rc;

    if (NULL == body || OPAL_IOV_CACHE_TERMS == body->kind) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (OPAL_IOV_CACHE_DENSE == body->kind) {
        map->kind = 0 == map->levels ? UMRDDT_GPU_STREAM : UMRDDT_GPU_STRIDED;
        map->block = 0 == map->levels ? 0 : body->size;
        map->align = align_of(bits | map->block);
        return OPAL_SUCCESS;
    }
    map->block = common_length(form, body, &pieces);
    if (MOST_PIECES * body->n < pieces || pieces > SIZE_MAX / sizeof(*offsets)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    rc = allocate(map, pieces, pieces * sizeof(*offsets), max_list);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    map->kind = UMRDDT_GPU_INDEXED;
    offsets = map->list;
    for (i = 0; i < body->n; ++i) {
        const opal_iov_cache_block_t *block = &form->blocks[body->first + i];

        for (at = 0; at < block->length; at += map->block) {
            *offsets = block->offset + (int64_t) at;
            bits |= (uint64_t) *offsets++;
        }
    }
    map->align = align_of(bits | map->block);
    return OPAL_SUCCESS;
}

/* Levels over runs of vectors. */
static int map_runs(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *body,
                    size_t max_list, opal_umrddt_gpu_map_t *map)
{
    uint64_t bits, n = 0, size = form->size;
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    umrddt_gpu_run_t *runs;
    int rc;

    if (NULL == body) {
        map->levels = 0;
    } else if (0 < map->levels && OPAL_IOV_CACHE_DENSE == body->kind) {
        --map->levels; /* a stride and its blocks are a run */
    }
    if (0 < map->levels) {
        size = map->level[map->levels - 1].size;
    }
    map->offset = 0; /* of runs it is in theirs */
    opal_iov_cache_cursor_init(&cursor, form, 0, size);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        if (++n > max_list / sizeof(*runs)) {
            return OPAL_ERR_NOT_SUPPORTED;
        }
    }
    rc = allocate(map, n, n * sizeof(*runs), max_list);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    map->kind = UMRDDT_GPU_RUNS;
    bits = levels_bits(map);
    runs = map->list;
    opal_iov_cache_cursor_init(&cursor, form, 0, size);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        runs->start = run.position;
        runs->offset = run.offset;
        runs->stride = run.stride;
        runs->length = divisor(run.length, run.count * run.length);
        bits |= run.position | (uint64_t) run.offset | (uint64_t) run.stride | run.length;
        ++runs;
    }
    map->align = align_of(bits);
    return OPAL_SUCCESS;
}

/* All segments, one by one. */
static int map_iovs(const opal_iov_cache_form_t *form, size_t max_list, opal_umrddt_gpu_map_t *map)
{
    const uint64_t n = form->segments;
    uint64_t bits = 0, i = 0, k, got, next = 0;
    opal_iov_cache_iov_t iovs[64];
    uint64_t *starts;
    int64_t *offsets;
    int rc;

    if (n > (SIZE_MAX - sizeof(*starts)) / (sizeof(*starts) + sizeof(*offsets))) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    rc = allocate(map, n, (n + 1) * sizeof(*starts) + n * sizeof(*offsets), max_list);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    map->kind = UMRDDT_GPU_IOVS;
    map->levels = 0;
    map->offset = 0;
    starts = map->list;
    offsets = (int64_t *) (starts + n + 1);
    starts[0] = 0;
    do {
        got = opal_iov_cache_form_iovs(form, next, form->size, iovs, 64, &next);
        for (k = 0; k < got; ++k, ++i) {
            offsets[i] = iovs[k].offset;
            starts[i + 1] = starts[i] + iovs[k].length;
            bits |= starts[i] | (uint64_t) offsets[i];
        }
    } while (next < form->size);
    map->align = align_of(bits);
    return OPAL_SUCCESS;
}

/* The unchanged form. */
static int map_tree(const opal_iov_cache_form_t *form, opal_umrddt_gpu_map_t *map)
{
    umrddt_gpu_term_t *terms;
    umrddt_gpu_block_t *blocks;
    uint64_t bits = 0, start, k;
    size_t i;
    int rc;

    rc =
        allocate(map, form->term_count,
                 form->term_count * sizeof(*terms) + form->block_count * sizeof(*blocks), SIZE_MAX);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    map->kind = UMRDDT_GPU_TREE;
    map->levels = 0;
    map->offset = 0;
    terms = map->list;
    blocks = (umrddt_gpu_block_t *) (terms + form->term_count);
    for (i = 0; i < form->term_count; ++i) {
        const opal_iov_cache_term_t *term = &form->terms[i];

        terms[i].offset = term->offset;
        terms[i].start = term->start;
        terms[i].stride = term->stride;
        terms[i].size = divisor(term->size, term->count * term->size);
        terms[i].first = term->first;
        terms[i].n = term->n;
        terms[i].kind = term->kind;
        bits |= (uint64_t) term->offset | term->start | (uint64_t) term->stride;
        if (1 < term->count || 0 < i) {
            bits |= term->size;
        }
        if (OPAL_IOV_CACHE_BLOCKS != term->kind) {
            continue;
        }
        start = 0;
        for (k = term->first; k < term->first + term->n; ++k) {
            blocks[k].offset = form->blocks[k].offset;
            blocks[k].start = start;
            bits |= (uint64_t) blocks[k].offset | start;
            start += form->blocks[k].length;
        }
    }
    map->align = align_of(bits);
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Selection
 * ------------------------------------------------------------------------------------------- */

/* Create the map of one scheme in an empty structure. */
static int map_scheme(const opal_iov_cache_form_t *form, opal_umrddt_gpu_scheme_t scheme,
                      size_t max_list, opal_umrddt_gpu_map_t *map)
{
    const opal_iov_cache_term_t *body;

    memset(map, 0, sizeof(*map));
    map->size = form->size;
    map->scheme = (uint32_t) scheme;
    map->align = 16;
    if (0 == form->size) {
        map->kind = UMRDDT_GPU_STREAM;
        return OPAL_SUCCESS;
    }
    map->piece = opal_iov_cache_form_density(form);
    body = descend(form, map);
    switch (scheme) {
    case OPAL_UMRDDT_GPU_TEMPI:
        if (NULL == body || OPAL_IOV_CACHE_DENSE != body->kind || 2 < map->levels) {
            return OPAL_ERR_NOT_SUPPORTED;
        }
        return map_regular(form, body, max_list, map);
    case OPAL_UMRDDT_GPU_TARGETED:
    case OPAL_UMRDDT_GPU_YAKSA:
        return map_regular(form, body, max_list, map);
    case OPAL_UMRDDT_GPU_TRANSFORM:
        return map_runs(form, body, max_list, map);
    case OPAL_UMRDDT_GPU_SEQUENTIAL:
    case OPAL_UMRDDT_GPU_PARALLEL:
    case OPAL_UMRDDT_GPU_TEAMS:
        return map_iovs(form, max_list, map);
    case OPAL_UMRDDT_GPU_TREE:
        return map_tree(form, map);
    default:
        return OPAL_ERR_BAD_PARAM;
    }
}

/* By the shape of the form: regular ones first, then the one with the shorter list. */
static int map_auto(const opal_iov_cache_form_t *form, size_t max_list, opal_umrddt_gpu_map_t *map)
{
    size_t runs = AUTO_RUNS * sizeof(umrddt_gpu_run_t);
    int rc = map_scheme(form, OPAL_UMRDDT_GPU_TARGETED, max_list, map);

    if (OPAL_ERR_NOT_SUPPORTED != rc) {
        return rc;
    }
    if (1 == form->term_count && 1 == form->terms[0].count) {
        /* one list of blocks of different lengths */
        rc =
            map_scheme(form,
                       AUTO_TEAMS <= opal_iov_cache_form_density(form) ? OPAL_UMRDDT_GPU_TEAMS
                                                                       : OPAL_UMRDDT_GPU_SEQUENTIAL,
                       max_list, map);
    } else {
        rc = map_scheme(form, OPAL_UMRDDT_GPU_TRANSFORM, runs < max_list ? runs : max_list, map);
    }
    return OPAL_ERR_NOT_SUPPORTED != rc ? rc
                                        : map_scheme(form, OPAL_UMRDDT_GPU_TREE, max_list, map);
}

bool opal_umrddt_gpu_map_listed(const opal_iov_cache_form_t *form)
{
    opal_umrddt_gpu_map_t map = {.levels = 0};
    const opal_iov_cache_term_t *body;

    if (0 == form->size) {
        return false;
    }
    body = descend(form, &map);
    return NULL == body || OPAL_IOV_CACHE_DENSE != body->kind;
}

int opal_umrddt_gpu_map_create(const opal_iov_cache_form_t *form, opal_umrddt_gpu_scheme_t scheme,
                               size_t max_list, opal_umrddt_gpu_map_t **map)
{
    opal_umrddt_gpu_map_t *made = malloc(sizeof(*made));
    int rc;

    if (NULL == made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = OPAL_UMRDDT_GPU_AUTO == scheme ? map_auto(form, max_list, made)
                                        : map_scheme(form, scheme, max_list, made);
    if (OPAL_SUCCESS != rc) {
        opal_umrddt_gpu_map_free(made);
        return rc;
    }
    made->chosen = OPAL_UMRDDT_GPU_AUTO == scheme;
    *map = made;
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_map_free(opal_umrddt_gpu_map_t *map)
{
    if (NULL != map) {
        free(map->list);
        free(map);
    }
}

const char *opal_umrddt_gpu_scheme_name(opal_umrddt_gpu_scheme_t scheme)
{
    static const char *const names[OPAL_UMRDDT_GPU_SCHEMES] = {
        [OPAL_UMRDDT_GPU_AUTO] = "auto",           [OPAL_UMRDDT_GPU_TARGETED] = "targeted",
        [OPAL_UMRDDT_GPU_TRANSFORM] = "transform", [OPAL_UMRDDT_GPU_SEQUENTIAL] = "sequential",
        [OPAL_UMRDDT_GPU_PARALLEL] = "parallel",   [OPAL_UMRDDT_GPU_TEAMS] = "teams",
        [OPAL_UMRDDT_GPU_TEMPI] = "tempi",         [OPAL_UMRDDT_GPU_YAKSA] = "yaksa",
        [OPAL_UMRDDT_GPU_TREE] = "tree",
    };

    return (unsigned) scheme < OPAL_UMRDDT_GPU_SCHEMES ? names[scheme] : NULL;
}
