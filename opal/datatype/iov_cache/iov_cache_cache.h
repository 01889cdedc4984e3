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
 * What a cache of layouts is made of; for iov_cache_cache.c, where lookups are, iov_cache_keep.c,
 * which changes it, and iov_cache_audit.c, which looks whether it is right.
 *
 * Three tables: the entries by (type, count) for the lookups; the types for their death; and the
 * layouts by the key of their form, one for all the entries that have it. A type has a record from
 * the moment that its owner is asked to watch it until it is forgotten, also while it has no
 * entries, because the owner is to be asked only once.
 */

#ifndef OPAL_IOV_CACHE_CACHE_H
#define OPAL_IOV_CACHE_CACHE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_compat.h"

#include "iov_cache.h"
#include "iov_cache_entry.h"
#include "iov_cache_order.h"
#include "iov_cache_table.h"

typedef struct opal_iov_cache_type_t {
    opal_iov_cache_link_t link;
    uint64_t key; /* the datatype's address */
    bool watched;
    bool asking;    /* the owner is being asked, without the lock; who does so still needs this */
    bool forgotten; /* meanwhile: out of the table, for who asks to free */
    opal_iov_cache_entry_t *entries;
} opal_iov_cache_type_t;

/* A layout, and how many entries have it. */
typedef struct opal_iov_cache_shared_t {
    opal_iov_cache_link_t link;
    opal_iov_cache_layout_t *layout;
    uint64_t users;
    uint64_t bytes;
} opal_iov_cache_shared_t;

struct opal_iov_cache_t {
    /* what a hit reads: written only where something is added or a stock refilled */
    opal_iov_cache_table_t entries; /* opal_iov_cache_entry_t by (type, count) */
    uint64_t clock;                 /* stamps of use */
    uint64_t hits;                  /* those that are not counted in an entry */
    size_t max_bytes;
    opal_iov_cache_watch_fn_t watch;
    void *context;
    /* with the lock only */
    opal_mutex_t lock;
    opal_iov_cache_table_t types;   /* opal_iov_cache_type_t by address */
    opal_iov_cache_table_t layouts; /* opal_iov_cache_shared_t by the key of the form */
    opal_iov_cache_order_t order;   /* the entries by use */
    opal_iov_cache_entry_t *spare;  /* entries that are not in use */
    uint64_t allocated;             /* entries, in use or not */
    uint64_t layout_bytes;          /* of stats.bytes: what can be evicted */
    uint64_t forgets;               /* calls of opal_iov_cache_forget */
    opal_iov_cache_stats_t stats;   /* hits: as last told */
};

/* The following are for the holder of the lock. */

opal_iov_cache_entry_t *opal_iov_cache_find_entry(opal_iov_cache_t *cache, uint64_t type,
                                                  uint64_t count);
opal_iov_cache_type_t *opal_iov_cache_find_type(opal_iov_cache_t *cache, uint64_t key);
opal_iov_cache_shared_t *opal_iov_cache_find_shared(opal_iov_cache_t *cache,
                                                    const opal_iov_cache_layout_t *layout);

/* Bytes of an entry, and of a layout that is shared by entries. */
size_t opal_iov_cache_entry_bytes(void);
uint64_t opal_iov_cache_shared_bytes(const opal_iov_cache_layout_t *layout);

/* The entry is used now. */
void opal_iov_cache_touch(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry);

/*
 * Keep a layout that was made without the lock, which is given up again if the owner of the type
 * has to be asked.
 *
 * @param[in]  layout   the caller's; the cache takes references of its own
 * @param[in]  forgets  cache->forgets before the layout was made
 *
 * @return the layout to hand out instead, with a reference for the caller in exchange for that of
 *         the one given: the same, or that of another thread that was quicker
 */
opal_iov_cache_layout_t *opal_iov_cache_keep(opal_iov_cache_t *cache,
                                             const opal_datatype_t *datatype, uint64_t count,
                                             opal_iov_cache_layout_t *layout, uint64_t forgets);

/* Drop the entries of a type and its record. @return how many entries there were */
uint64_t opal_iov_cache_drop_type(opal_iov_cache_t *cache, opal_iov_cache_type_t *type);

#endif /* OPAL_IOV_CACHE_CACHE_H */
