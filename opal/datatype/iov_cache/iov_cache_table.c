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
 * The hash table of the cache: see iov_cache_table.h.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/constants.h"

#include "iov_cache_table.h"

/* Initial number of chains. */
#define FIRST_CHAINS 64

static size_t buckets_bytes(uint64_t chains)
{
    return sizeof(opal_iov_cache_buckets_t) + chains * sizeof(opal_iov_cache_link_t *);
}

static opal_iov_cache_buckets_t *make_buckets(uint64_t chains)
{
    opal_iov_cache_buckets_t *buckets = calloc(1, buckets_bytes(chains));

    if (NULL != buckets) {
        buckets->mask = chains - 1;
    }
    return buckets;
}

static void push(opal_iov_cache_buckets_t *buckets, opal_iov_cache_link_t *link)
{
    opal_iov_cache_link_t **chain = &buckets->chains[link->hash & buckets->mask];

    __atomic_store_n(&link->next, *chain, __ATOMIC_RELEASE);
    __atomic_store_n(chain, link, __ATOMIC_RELEASE);
}

int opal_iov_cache_table_init(opal_iov_cache_table_t *table)
{
    table->size = 0;
    table->buckets = make_buckets(FIRST_CHAINS);
    return NULL == table->buckets ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

void opal_iov_cache_table_fini(opal_iov_cache_table_t *table)
{
    opal_iov_cache_buckets_t *buckets = table->buckets, *outgrown;

    for (; NULL != buckets; buckets = outgrown) {
        outgrown = buckets->outgrown;
        free(buckets);
    }
    table->buckets = NULL;
}

size_t opal_iov_cache_table_wants(const opal_iov_cache_table_t *table)
{
    uint64_t chains = table->buckets->mask + 1;

    return table->size < chains ? 0 : buckets_bytes(2 * chains);
}

bool opal_iov_cache_table_grow(opal_iov_cache_table_t *table)
{
    opal_iov_cache_buckets_t *old = table->buckets, *buckets = make_buckets(2 * (old->mask + 1));
    opal_iov_cache_link_t *link, *next;
    uint64_t i;

    if (NULL == buckets) {
        return false;
    }
    buckets->outgrown = old;
    /* A concurrent walk continues in the new chains, or ends early. */
    for (i = 0; i <= old->mask; ++i) {
        for (link = old->chains[i]; NULL != link; link = next) {
            next = link->next;
            OPAL_IOV_CACHE_MEET();
            push(buckets, link);
        }
    }
    __atomic_store_n(&table->buckets, buckets, __ATOMIC_RELEASE);
    return true;
}

void opal_iov_cache_table_add(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link)
{
    push(table->buckets, link);
    ++table->size;
}

void opal_iov_cache_table_remove(opal_iov_cache_table_t *table, opal_iov_cache_link_t *link)
{
    opal_iov_cache_link_t **at = &table->buckets->chains[link->hash & table->buckets->mask];

    while (link != *at) {
        at = &(*at)->next;
    }
    OPAL_IOV_CACHE_MEET();
    __atomic_store_n(at, link->next, __ATOMIC_RELEASE);
    --table->size;
}
