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
 * A hash table of links that lie within what they lead to. Nothing is allocated to put one in, so
 * that cannot fail; growing can, and then the chains are longer.
 *
 * Changes are for one thread at a time (the holder of the cache's lock). A chain may be walked by
 * others meanwhile: what they see is some of the links that are or were there, perhaps of another
 * chain, and never memory that is not a link, as long as links stay links until the table is gone.
 * A walk may thus miss a link, but for the holder of the lock, and may come by what it did not
 * look for. Arrays that were outgrown are kept for such walks.
 */

#ifndef OPAL_IOV_CACHE_TABLE_H
#define OPAL_IOV_CACHE_TABLE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_compat.h"

/* Between two steps that other threads may come between; where a test lets them. */
#if !defined(OPAL_IOV_CACHE_MEET)
#define OPAL_IOV_CACHE_MEET() ((void) 0)
#endif

typedef struct opal_iov_cache_link_t {
    struct opal_iov_cache_link_t *next; /* in the chain; read without the lock */
    uint64_t hash;
} opal_iov_cache_link_t;

typedef struct opal_iov_cache_buckets_t {
    struct opal_iov_cache_buckets_t *outgrown; /* half as large */
    uint64_t mask;                             /* number of chains, a power of two, less 1 */
    opal_iov_cache_link_t *chains[];
} opal_iov_cache_buckets_t;

typedef struct {
    opal_iov_cache_buckets_t *buckets; /* read without the lock */
    uint64_t size;                     /* links in it */
} opal_iov_cache_table_t;

/* @return OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE */
int opal_iov_cache_table_init(opal_iov_cache_table_t *table);

/* The links are the caller's. Also for a table of zeros. */
void opal_iov_cache_table_fini(opal_iov_cache_table_t *table);

/* Bytes that the table would like to grow by, now; 0: it is large enough. */
size_t opal_iov_cache_table_wants(const opal_iov_cache_table_t *table);

/* Grow by that. @return false without memory, and nothing has changed */
bool opal_iov_cache_table_grow(opal_iov_cache_table_t *table);

/* Put in a link, by link->hash. */
void opal_iov_cache_table_add(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* Take out a link that is in. Who stands on it finds the rest of its chain. */
void opal_iov_cache_table_remove(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* The chain of a hash; every link of the hash is in it. */
static inline opal_iov_cache_link_t *opal_iov_cache_table_chain(const opal_iov_cache_table_t *table,
                                                                uint64_t hash)
{
    const opal_iov_cache_buckets_t *buckets = __atomic_load_n(&table->buckets, __ATOMIC_ACQUIRE);

    OPAL_IOV_CACHE_MEET();
    return __atomic_load_n(&buckets->chains[hash & buckets->mask], __ATOMIC_ACQUIRE);
}

/* @return NULL at the end of a chain */
static inline opal_iov_cache_link_t *opal_iov_cache_table_next(const opal_iov_cache_link_t *link)
{
    return __atomic_load_n(&link->next, __ATOMIC_ACQUIRE);
}

/* Two numbers, of which every bit tells in the low bits of the result. */
static inline uint64_t opal_iov_cache_table_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * UINT64_C(0xc2b2ae3d27d4eb4f))) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

#endif /* OPAL_IOV_CACHE_TABLE_H */
