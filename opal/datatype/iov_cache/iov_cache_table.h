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
 * A hash table with links embedded in its elements. Insertion allocates nothing and cannot fail. If
 * growth fails, the chains are longer.
 *
 * One thread at a time may change it (with the cache's lock). Other threads may walk a chain at the
 * same time. They see some of the present or former links, possibly of another chain, but never
 * other memory, as long as links stay links until the table is freed. So a walk without the lock
 * may miss a link and may find unrelated ones. Outgrown arrays are kept for such walks.
 */

#ifndef OPAL_IOV_CACHE_TABLE_H
#define OPAL_IOV_CACHE_TABLE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_compat.h"

/* Test hook between two steps that other threads may interrupt. */
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

/* The caller owns the links. Also allowed for an all-zero table. */
void opal_iov_cache_table_fini(opal_iov_cache_table_t *table);

/* Bytes by which the table should grow now; 0: it is large enough. */
size_t opal_iov_cache_table_wants(const opal_iov_cache_table_t *table);

/* Grow by that amount. @return false if out of memory; nothing has changed */
bool opal_iov_cache_table_grow(opal_iov_cache_table_t *table);

/* Insert a link, by link->hash. */
void opal_iov_cache_table_add(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* Remove a link. A concurrent walk at that link still finds the rest of its chain. */
void opal_iov_cache_table_remove(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link);

/* The chain of a hash; it contains all links of that hash. */
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

/* Hash of two numbers: every input bit affects the low bits of the result. */
static inline uint64_t opal_iov_cache_table_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * UINT64_C(0xc2b2ae3d27d4eb4f))) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

#endif /* OPAL_IOV_CACHE_TABLE_H */
