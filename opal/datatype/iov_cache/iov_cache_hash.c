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
 * The hash of a form: sums over all bytes of their offsets and of the products of offset and stream
 * position. So it depends on the layout and not on the tree. The sums of a moved or repeated part
 * follow from its own in closed form, so the cost of a term does not depend on its count. Sums are
 * weaker than common hash functions. Two layouts with equal sums (and equal size, bounds and
 * segments) cost only one comparison.
 *
 * A list of blocks must be read for it, so it is computed on demand. Most layouts are found by
 * their key, which uses the offsets of a few bytes.
 */

#include "opal_config.h"

#include "iov_cache_list.h"

/* Any two odd numbers do; arithmetic is modulo 2^64. */
#define FACTOR_OFFSETS  UINT64_C(0x9e3779b97f4a7c15)
#define FACTOR_PRODUCTS UINT64_C(0xd6e8feb86659fd93)
#define ONE_THIRD       UINT64_C(0xaaaaaaaaaaaaaaab)

/* Number of positions of a form that its key uses. */
#define PLACES 8

/* n bytes at positions p(0) .. p(n-1) and offsets o(0) .. o(n-1). */
typedef struct {
    uint64_t n;
    uint64_t positions; /* sum of p(i) */
    uint64_t offsets;   /* sum of o(i) */
    uint64_t products;  /* sum of p(i) * o(i) */
} part_t;

/* 0 + 1 + .. + (n - 1) */
static inline uint64_t sum(uint64_t n)
{
    return 0 == n % 2 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
}

/* 0 + 1 + 4 + .. + (n - 1) * (n - 1); three times that is sum(n) * (2 * n - 1) */
static inline uint64_t sum_of_squares(uint64_t n)
{
    return sum(n) * (2 * n - 1) * ONE_THIRD;
}

/* Add a part that is moved. */
static inline void add(part_t *all, const part_t *part, uint64_t position, uint64_t offset)
{
    all->n += part->n;
    all->positions += part->positions + part->n * position;
    all->offsets += part->offsets + part->n * offset;
    all->products +=
        part->products + offset * part->positions + position * (part->offsets + part->n * offset);
}

/* count repetitions, stride apart in memory and size in the stream */
static inline part_t repeat(const part_t *body, uint64_t count, uint64_t stride)
{
    uint64_t ones = sum(count), size = body->n;
    part_t all = {.n = count * size,
                  .positions = count * body->positions + size * size * ones,
                  .offsets = count * body->offsets + size * stride * ones,
                  .products = count * body->products
                              + ones * (stride * body->positions + size * body->offsets)
                              + size * size * stride * sum_of_squares(count)};

    return all;
}

static inline part_t dense(uint64_t size)
{
    part_t block = {
        .n = size, .positions = sum(size), .offsets = sum(size), .products = sum_of_squares(size)};

    return block;
}

/*
 * count blocks of one length, given the sums of the offsets of their first bytes, of their
 * positions, and of the products of both
 */
static inline void add_blocks(part_t *all, uint64_t length, uint64_t count, uint64_t offsets,
                              uint64_t positions, uint64_t products)
{
    uint64_t ones = sum(length);

    all->n += count * length;
    all->positions += length * positions + count * ones;
    all->offsets += length * offsets + count * ones;
    all->products +=
        length * products + ones * (offsets + positions) + count * sum_of_squares(length);
}

static part_t hash_list(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *term)
{
    const opal_iov_cache_block_t *blocks = &form->blocks[term->first];
    uint64_t offsets = 0, positions = 0, products = 0, i, first = 0, length = 0, start = 0;
    part_t all = {0};

    for (i = 0; i < term->n; ++i) {
        const uint64_t now = blocks[i].length;

        if (now != length) {
            add_blocks(&all, length, i - first, offsets, positions, products);
            length = now;
            first = i;
            offsets = positions = products = 0;
        }
        offsets += (uint64_t) blocks[i].offset;
        positions += start;
        products += (uint64_t) blocks[i].offset * start;
        start += now;
    }
    add_blocks(&all, length, i - first, offsets, positions, products);
    return all;
}

static part_t hash_term(const opal_iov_cache_form_t *form, const opal_iov_cache_term_t *term)
{
    part_t body = {0};
    uint64_t i;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        body = dense(term->size);
    } else if (OPAL_IOV_CACHE_TERMS == term->kind) {
        for (i = 0; i < term->n; ++i) {
            const opal_iov_cache_term_t *child = &form->terms[term->first + i];
            part_t part = hash_term(form, child);

            add(&body, &part, child->start, (uint64_t) child->offset);
        }
    } else {
        body = hash_list(form, term);
    }
    return repeat(&body, term->count, (uint64_t) term->stride);
}

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

uint64_t opal_iov_cache_form_hash_now(const opal_iov_cache_form_t *form)
{
    part_t all = {0}, root;
    uint64_t hash;

    if (0 == form->size) {
        return 1;
    }
    root = hash_term(form, &form->terms[0]);
    add(&all, &root, 0, (uint64_t) form->terms[0].offset);
    hash = mix(mix(form->size ^ form->segments * FACTOR_OFFSETS) + all.offsets * FACTOR_OFFSETS
               + all.products * FACTOR_PRODUCTS);
    return 0 == hash ? 1 : hash; /* 0: not computed */
}

uint64_t opal_iov_cache_form_hash(const opal_iov_cache_form_t *form)
{
    uint64_t *place = (uint64_t *) &form->hash, hash = __atomic_load_n(place, __ATOMIC_RELAXED);

    /* concurrent computations give the same value */
    if (0 == hash) {
        hash = opal_iov_cache_form_hash_now(form);
        __atomic_store_n(place, hash, __ATOMIC_RELAXED);
    }
    return hash;
}

uint64_t opal_iov_cache_form_key(const opal_iov_cache_form_t *form)
{
    uint64_t key = mix(form->size ^ form->segments * FACTOR_OFFSETS) + (uint64_t) form->lb, i;

    key = mix(key * FACTOR_PRODUCTS + (uint64_t) form->ub);
    for (i = 0; 0 < form->size && i < PLACES; ++i) {
        uint64_t at = form->size / PLACES * i + form->size % PLACES * i / PLACES;

        key = mix(key * FACTOR_PRODUCTS + (uint64_t) opal_iov_cache_form_offset(form, at));
    }
    return key;
}
