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
 * Structures of a layout cache, shared by iov_cache_cache.c (lookups), iov_cache_keep.c (changes)
 * and iov_cache_audit.c (checks).
 *
 * There are three tables: entries by (type, count) for lookups, types for their removal, and
 * layouts by the key of their form, each shared by all its entries. A type has a record from the
 * call of its watch function until it is forgotten, also without entries, because the function is
 * called only once.
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
    uint64_t key; /* address of the datatype */
    bool watched;
    bool asking; /* the watch function is running without the lock, and its caller still needs this
                    record */
    bool forgotten; /* forgotten meanwhile: not in the table, the caller of the watch function frees
                       it */
    opal_iov_cache_entry_t *entries;
} opal_iov_cache_type_t;

/* A layout and the number of its entries. */
typedef struct opal_iov_cache_shared_t {
    opal_iov_cache_link_t link;
    opal_iov_cache_layout_t *layout;
    uint64_t users;
    uint64_t bytes;
} opal_iov_cache_shared_t;

struct opal_iov_cache_t {
    /* read by hits; written only by insertions and refills */
    opal_iov_cache_table_t entries; /* opal_iov_cache_entry_t by (type, count) */
    uint64_t clock;                 /* time stamps of uses */
    uint64_t hits;                  /* hits not counted in an entry */
    size_t max_bytes;
    opal_iov_cache_watch_fn_t watch;
    void *context;
    /* protected by the lock */
    opal_mutex_t lock;
    opal_iov_cache_table_t types;   /* opal_iov_cache_type_t by address */
    opal_iov_cache_table_t layouts; /* opal_iov_cache_shared_t by the key of the form */
    opal_iov_cache_order_t order;   /* the entries in LRU order */
    opal_iov_cache_entry_t *spare;  /* unused entries */
    uint64_t allocated;             /* entries, used and unused */
    uint64_t layout_bytes;          /* part of stats.bytes that can be evicted */
    uint64_t forgets;               /* calls of opal_iov_cache_forget */
    opal_iov_cache_stats_t stats;   /* hits: as last reported */
};

/* The following functions require the lock. */

opal_iov_cache_entry_t *opal_iov_cache_find_entry(opal_iov_cache_t *cache, uint64_t type,
                                                  uint64_t count);
opal_iov_cache_type_t *opal_iov_cache_find_type(opal_iov_cache_t *cache, uint64_t key);
opal_iov_cache_shared_t *opal_iov_cache_find_shared(opal_iov_cache_t *cache,
                                                    const opal_iov_cache_layout_t *layout);

/* Bytes of an entry, and of a layout with its entries. */
size_t opal_iov_cache_entry_bytes(void);
uint64_t opal_iov_cache_shared_bytes(const opal_iov_cache_layout_t *layout);

/* Mark the entry as used now. */
void opal_iov_cache_touch(opal_iov_cache_t *cache, opal_iov_cache_entry_t *entry);

/*
 * Cache a layout that was created without the lock. Releases the lock while the watch function of
 * the type runs.
 *
 * @param[in]  layout   the caller's; the cache takes references of its own
 * @param[in]  forgets  cache->forgets before the layout was created
 *
 * @return the layout to return to the user, with the caller's reference moved to it: the same, or
 *         that of another thread that was faster
 */
opal_iov_cache_layout_t *opal_iov_cache_keep(opal_iov_cache_t *cache,
                                             const opal_datatype_t *datatype, uint64_t count,
                                             opal_iov_cache_layout_t *layout, uint64_t forgets);

/* Remove the entries of a type and its record. @return number of entries */
uint64_t opal_iov_cache_drop_type(opal_iov_cache_t *cache, opal_iov_cache_type_t *type);

#endif /* OPAL_IOV_CACHE_CACHE_H */
