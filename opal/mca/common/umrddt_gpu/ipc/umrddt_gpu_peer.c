/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Cached data of another process of the node; see umrddt_gpu_peer.h.
 */

#include "umrddt_gpu_peer.h"

#include <stdlib.h>

#include "opal/constants.h"

/* Number of failed imports after which a peer is not tried, if none has succeeded. */
#define TRIES 4

typedef opal_umrddt_gpu_peer_layout_t cached_t;

opal_umrddt_gpu_peer_t *opal_umrddt_gpu_peer_new(unsigned layouts)
{
    opal_umrddt_gpu_peer_t *peer = calloc(1, opal_umrddt_gpu_peer_bytes(layouts));

    if (NULL != peer) {
        peer->count = layouts;
    }
    return peer;
}

static uint64_t layout_bytes(const opal_iov_cache_layout_t *layout)
{
    return sizeof(*layout) + opal_iov_cache_form_bytes(layout->form);
}

static void drop(cached_t *cached, uint64_t *bytes)
{
    if (NULL != cached->layout) {
        *bytes -= layout_bytes(cached->layout);
        OBJ_RELEASE(cached->layout);
        cached->layout = NULL;
        cached->id = 0;
        cached->stamp = 0;
    }
}

void opal_umrddt_gpu_peer_free(opal_umrddt_gpu_peer_t *peer, uint64_t *bytes)
{
    for (unsigned i = 0; i < peer->count; ++i) {
        drop(&peer->layouts[i], bytes);
    }
    if (NULL != peer->done_flags) {
        opal_umrddt_done_flags_unmap(peer->done_flags);
    }
    free(peer);
}

/* Find the entry of a layout. @return count if there is none */
static unsigned find(const opal_umrddt_gpu_peer_t *peer, uint64_t id)
{
    unsigned i;

    if (peer->last < peer->count && id == peer->layouts[peer->last].id) {
        return peer->last;
    }
    for (i = 0; i < peer->count && id != peer->layouts[i].id; ++i) {
        ;
    }
    return i;
}

opal_iov_cache_layout_t *opal_umrddt_gpu_peer_layout(opal_umrddt_gpu_peer_t *peer, uint64_t id,
                                                     uint64_t size, int64_t lb, uint32_t pieces)
{
    const unsigned i = NULL == peer ? 0 : find(peer, id);

    if (NULL == peer || i == peer->count
        || !opal_umrddt_gpu_peer_agrees(peer->layouts[i].layout, size, lb, pieces)) {
        return NULL;
    }
    peer->last = i;
    peer->layouts[i].stamp = ++peer->clock;
    OBJ_RETAIN(peer->layouts[i].layout);
    return peer->layouts[i].layout;
}

/* Find an empty entry, or else the least recently used one. */
static cached_t *oldest(opal_umrddt_gpu_peer_t *peer)
{
    cached_t *found = &peer->layouts[0];

    for (unsigned i = 1; i < peer->count; ++i) {
        if (peer->layouts[i].stamp < found->stamp) {
            found = &peer->layouts[i];
        }
    }
    return found;
}

/* Find the least recently used layout. @return NULL: there is none */
static cached_t *oldest_layout(opal_umrddt_gpu_peer_t *peer)
{
    cached_t *found = NULL;

    for (unsigned i = 0; i < peer->count; ++i) {
        if (NULL != peer->layouts[i].layout
            && (NULL == found || peer->layouts[i].stamp < found->stamp)) {
            found = &peer->layouts[i];
        }
    }
    return found;
}

void opal_umrddt_gpu_peer_keep(opal_umrddt_gpu_peer_t *peer, uint64_t id,
                               opal_iov_cache_layout_t *layout, uint64_t *bytes, uint64_t most)
{
    const uint64_t more = layout_bytes(layout);
    cached_t *cached;

    if (0 == peer->count || more > most || find(peer, id) < peer->count) {
        return;
    }
    cached = oldest(peer);
    drop(cached, bytes);
    while (*bytes > most - more) {
        cached_t *other = oldest_layout(peer);

        if (NULL == other) {
            return;
        }
        drop(other, bytes);
    }
    OBJ_RETAIN(layout);
    cached->layout = layout;
    cached->id = id;
    cached->stamp = ++peer->clock;
    peer->last = (unsigned) (cached - peer->layouts);
    *bytes += more;
}

void opal_umrddt_gpu_peer_mapped(opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                 opal_umrddt_gpu_engine_t *engine)
{
    const size_t i = buffer_id % OPAL_UMRDDT_GPU_PEER_HOMES;

    peer->mapped = true;
    if (NULL != engine) {
        peer->homes[i].buffer_id = buffer_id;
        peer->homes[i].engine = engine;
        peer->homes[i].refused = false;
    }
}

void opal_umrddt_gpu_peer_refused(opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                  const opal_umrddt_gpu_engine_t *engine)
{
    const size_t i = buffer_id % OPAL_UMRDDT_GPU_PEER_HOMES;

    ++peer->refused;
    peer->homes[i].buffer_id = buffer_id;
    peer->homes[i].engine = NULL;
    peer->homes[i].refused = true;
    peer->homes[i].refused_for = engine;
}

bool opal_umrddt_gpu_peer_is_refused(const opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                     const opal_umrddt_gpu_engine_t *engine)
{
    const size_t i = buffer_id % OPAL_UMRDDT_GPU_PEER_HOMES;

    return NULL != peer
           && ((!peer->mapped && TRIES <= peer->refused)
               || (peer->homes[i].refused && buffer_id == peer->homes[i].buffer_id
                   && engine == peer->homes[i].refused_for));
}

bool opal_umrddt_gpu_peer_engine_for(const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine)
{
    opal_umrddt_gpu_memory_t memory;

    return (opal_umrddt_gpu_device_find(uuid, &memory)
            || opal_umrddt_gpu_device_find(NULL, &memory))
           && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, engine);
}

const char *opal_umrddt_gpu_peer_check(const opal_umrddt_gpu_peer_t *peer, uint64_t *bytes)
{
    for (unsigned i = 0; i < peer->count; ++i) {
        const cached_t *cached = &peer->layouts[i];

        if ((NULL != cached->layout) != (0 != cached->id) || cached->stamp > peer->clock) {
            return "layouts of senders: an entry has a layout and an id, or neither";
        }
        *bytes += NULL == cached->layout ? 0 : layout_bytes(cached->layout);
    }
    for (unsigned i = 0; i < OPAL_UMRDDT_GPU_PEER_HOMES; ++i) {
        if (peer->homes[i].refused && NULL != peer->homes[i].engine) {
            return "homes: an allocation that cannot be imported has no engine";
        }
    }
    return NULL;
}
