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
 * The LRU order: see iov_cache_order.h.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/constants.h"

#include "iov_cache_order.h"

static void put(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    order->entries[place] = entry;
    entry->place = place;
}

/* Move an entry up from an empty position, until all above are not younger. */
static void rise(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    while (0 < place && order->entries[(place - 1) / 2]->ordered > entry->ordered) {
        put(order, place, order->entries[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(order, place, entry);
}

/* Move an entry down from an empty position, until all below are not older. */
static void sink(opal_iov_cache_order_t *order, size_t place, opal_iov_cache_entry_t *entry)
{
    size_t below;

    while ((below = 2 * place + 1) < order->size) {
        if (below + 1 < order->size
            && order->entries[below + 1]->ordered < order->entries[below]->ordered) {
            ++below;
        }
        if (entry->ordered <= order->entries[below]->ordered) {
            break;
        }
        put(order, place, order->entries[below]);
        place = below;
    }
    put(order, place, entry);
}

int opal_iov_cache_order_init(opal_iov_cache_order_t *order)
{
    order->size = 0;
    order->room = OPAL_IOV_CACHE_FIRST_ROOM;
    order->entries = malloc(OPAL_IOV_CACHE_FIRST_ROOM * sizeof(order->entries[0]));
    return NULL == order->entries ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

void opal_iov_cache_order_fini(opal_iov_cache_order_t *order)
{
    free(order->entries);
    order->entries = NULL;
}

size_t opal_iov_cache_order_wants(const opal_iov_cache_order_t *order)
{
    return order->size < order->room ? 0 : order->room * sizeof(order->entries[0]);
}

bool opal_iov_cache_order_grow(opal_iov_cache_order_t *order)
{
    void *larger = realloc(order->entries, 2 * order->room * sizeof(order->entries[0]));

    if (NULL == larger) {
        return false;
    }
    order->entries = larger;
    order->room *= 2;
    return true;
}

void opal_iov_cache_order_add(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry)
{
    entry->ordered = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
    rise(order, order->size++, entry);
}

void opal_iov_cache_order_remove(opal_iov_cache_order_t *order, opal_iov_cache_entry_t *entry)
{
    opal_iov_cache_entry_t *last = order->entries[--order->size];

    if (last == entry) {
        return;
    }
    if (last->ordered < entry->ordered) {
        rise(order, entry->place, last);
    } else {
        sink(order, entry->place, last);
    }
}

opal_iov_cache_entry_t *opal_iov_cache_order_oldest(opal_iov_cache_order_t *order)
{
    opal_iov_cache_entry_t *entry;
    uint64_t used;

    if (0 == order->size) {
        return NULL;
    }
    for (;;) {
        entry = order->entries[0];
        used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
        if (used <= entry->ordered) {
            return entry;
        }
        entry->ordered = used;
        sink(order, 0, entry);
    }
}
