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
 * The LRU order of entries. A hit only writes the time stamp of its entry. The search for the
 * oldest entry first moves entries whose stamp has changed since they were placed. So eviction pays
 * for the hits: O(log entries) for each used entry.
 *
 * Requires the cache's lock, except for the stamps.
 */

#ifndef OPAL_IOV_CACHE_ORDER_H
#define OPAL_IOV_CACHE_ORDER_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>

#include "iov_cache_entry.h"

/* Initial capacity of an order. */
#define OPAL_IOV_CACHE_FIRST_ROOM 64

/* A heap: the entry at i was ordered no later than those at 2i + 1 and 2i + 2. */
typedef struct {
    opal_iov_cache_entry_t **entries;
    size_t size;
    size_t room;
} opal_iov_cache_order_t;

/* @return OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE */
int opal_iov_cache_order_init(opal_iov_cache_order_t *order);

/* The caller owns the entries. Also allowed for an all-zero order. */
void opal_iov_cache_order_fini(opal_iov_cache_order_t *order);

/* Bytes by which it must grow before another entry is added; 0: there is room. */
size_t opal_iov_cache_order_wants(const opal_iov_cache_order_t *order);

/* Grow by that amount. @return false if out of memory; nothing has changed */
bool opal_iov_cache_order_grow(opal_iov_cache_order_t *order);

/* Add an entry by its stamp; there must be room. */
void opal_iov_cache_order_add(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry);

void opal_iov_cache_order_remove(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry);

/* @return the entry with the oldest stamp, which is not removed; NULL if there is none */
opal_iov_cache_entry_t *opal_iov_cache_order_oldest(opal_iov_cache_order_t *order);

#endif /* OPAL_IOV_CACHE_ORDER_H */
