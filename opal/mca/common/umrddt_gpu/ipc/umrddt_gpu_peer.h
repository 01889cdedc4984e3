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
 * What a process knows of another one of its node, from whose GPU memory it reads
 * (umrddt_gpu_ipc.h):
 * - Its last layouts, by their ids, which it never reuses.
 * - The engine that imported an allocation, for receivers in system memory, which have no engine.
 * - Allocations that cannot be imported.
 * - Its completion flags (umrddt_done_flag.h).
 *
 * The imports themselves are cached by umrddt_gpu_ipc.h. One thread at a time.
 */

#ifndef OPAL_UMRDDT_GPU_PEER_H
#define OPAL_UMRDDT_GPU_PEER_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

BEGIN_C_DECLS

/** Number of entries for allocations. The BUFFER_ID selects the entry. */
#define OPAL_UMRDDT_GPU_PEER_HOMES 64

/** A cached layout. */
typedef struct opal_umrddt_gpu_peer_layout_t {
    uint64_t id;
    uint64_t stamp;                  /**< time of the last use */
    opal_iov_cache_layout_t *layout; /**< the layout; or NULL */
} opal_umrddt_gpu_peer_layout_t;

typedef struct opal_umrddt_gpu_peer_t {
    struct {
        uint64_t buffer_id;
        const opal_umrddt_gpu_engine_t *refused_for; /**< engine of the failed import, if refused */
        opal_umrddt_gpu_engine_t *engine;            /**< engine of the import; or NULL */
        bool refused;
    } homes[OPAL_UMRDDT_GPU_PEER_HOMES];
    opal_umrddt_done_flags_t *done_flags; /**< mapped completion flags; or NULL */
    bool mapped;                          /**< an import has succeeded */
    unsigned refused;                     /**< number of failed imports */
    uint64_t clock;
    unsigned last;  /**< index of the layout that was used last */
    unsigned count; /**< number of entries in layouts */
    opal_umrddt_gpu_peer_layout_t layouts[];
} opal_umrddt_gpu_peer_t;

/** Bytes of the structure for a peer with @p layouts entries. */
static inline size_t opal_umrddt_gpu_peer_bytes(unsigned layouts)
{
    return sizeof(opal_umrddt_gpu_peer_t) + layouts * sizeof(opal_umrddt_gpu_peer_layout_t);
}

/** Create it, with @p layouts entries. NULL: no memory */
opal_umrddt_gpu_peer_t *opal_umrddt_gpu_peer_new(unsigned layouts);

/** Free it. @param[in,out] bytes  of cached layouts of all peers */
void opal_umrddt_gpu_peer_free(opal_umrddt_gpu_peer_t *peer, uint64_t *bytes);

/** Returns true if a layout has these properties. UINT32_MAX @p pieces: as many or more */
static inline bool opal_umrddt_gpu_peer_agrees(const opal_iov_cache_layout_t *layout, uint64_t size,
                                               int64_t lb, uint32_t pieces)
{
    return size == layout->size && lb == layout->lb
           && pieces
                  == (UINT32_MAX < layout->iov_count ? UINT32_MAX : (uint32_t) layout->iov_count);
}

/** Get a layout with these properties. The caller owns a reference. @return NULL: not cached */
opal_iov_cache_layout_t *opal_umrddt_gpu_peer_layout(opal_umrddt_gpu_peer_t *peer, uint64_t id,
                                                     uint64_t size, int64_t lb, uint32_t pieces);

/**
 * Cache a layout. Evicts the least recently used ones of this peer, never those of others.
 *
 * @param[in,out] bytes  of cached layouts of all peers
 * @param[in]     most   limit of @p bytes; if it does not permit the layout, that is not cached
 */
void opal_umrddt_gpu_peer_keep(opal_umrddt_gpu_peer_t *peer, uint64_t id,
                               opal_iov_cache_layout_t *layout, uint64_t *bytes, uint64_t most);

/** Get the engine that imported an allocation for a receiver in system memory; NULL: unknown. In
 * this and the other queries @p peer may be NULL: nothing is known. */
static inline opal_umrddt_gpu_engine_t *
opal_umrddt_gpu_peer_home(const opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id)
{
    const size_t i = buffer_id % OPAL_UMRDDT_GPU_PEER_HOMES;

    return NULL != peer && buffer_id == peer->homes[i].buffer_id ? peer->homes[i].engine : NULL;
}

/**
 * Select an engine for a receiver in system memory: the one of the sender's device if the
 * application uses that device here, else the first device that it uses. The import shows whether
 * that engine reaches the memory. Creates no context. @return false: there is none
 */
bool opal_umrddt_gpu_peer_engine_for(const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine);

/** Record an import. @p engine: the engine to use for receivers in system memory; NULL: the receive
 * buffer had its own engine */
void opal_umrddt_gpu_peer_mapped(opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                 opal_umrddt_gpu_engine_t *engine);

/**
 * Record a failed import with this engine (NULL: with any, for a receiver in system memory). The
 * allocation counts as refused while the record exists. If no import of a peer ever succeeds, all
 * of its allocations count as refused after some failures.
 */
void opal_umrddt_gpu_peer_refused(opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                  const opal_umrddt_gpu_engine_t *engine);
bool opal_umrddt_gpu_peer_is_refused(const opal_umrddt_gpu_peer_t *peer, uint64_t buffer_id,
                                     const opal_umrddt_gpu_engine_t *engine);

/** The first invariant that does not hold; NULL: all hold. @param[in,out] bytes  adds those of the
 * peer's cached layouts */
const char *opal_umrddt_gpu_peer_check(const opal_umrddt_gpu_peer_t *peer, uint64_t *bytes);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_PEER_H */
