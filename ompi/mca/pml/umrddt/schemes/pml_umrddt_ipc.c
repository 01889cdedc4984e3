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
 * Messages from GPU memory of the same node: wire format and the receiver's caches. Read
 * pml_umrddt_ipc.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/engine/pml_umrddt_check.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

/* ---------------------------------------------------------------------------------------------
 * Wire format
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_ipc_rts_valid(const mca_pml_umrddt_rts_t *rts)
{
    if (0 == (MCA_PML_UMRDDT_BIT_IPC & rts->schemes)) {
        return mca_pml_umrddt_stripes_valid(rts) && 0 == (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes);
    }
    if (0 != (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes) && MCA_PML_UMRDDT_DONE_FLAGS <= rts->slot) {
        return false;
    }
    return 0 != rts->buffer_id && 0 != rts->layout && 0 != rts->pieces;
}

int mca_pml_umrddt_tell_emit(const mca_pml_umrddt_tell_t *tell, const void *flat, void *scratch,
                             mca_pml_umrddt_emit_fn_t emit, void *context)
{
    mca_pml_umrddt_flat_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FLAT),
        .seq = tell->seq,
        .slot = tell->slot,
        .flat_bytes = tell->flat_bytes,
        .layout = tell->layout,
    };
    mca_pml_umrddt_tell_t *last = scratch;
    uint32_t sent;
    int rc = mca_pml_umrddt_flat_emit(&part, flat, MCA_PML_UMRDDT_TELL_ROOM - sizeof(*last),
                                      MCA_PML_UMRDDT_TELL_ROOM, scratch, emit, context, &sent);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    *last = *tell;
    if (sent < tell->flat_bytes) {
        memcpy(last->bytes, (const unsigned char *) flat + sent, tell->flat_bytes - sent);
    }
    return emit(context, last, sizeof(*last) + (tell->flat_bytes - sent));
}

/** Returns true if the export matches the envelope, or there is none. common/umrddt_gpu validates
 * the rest. */
static bool export_valid(const mca_pml_umrddt_tell_t *tell, const mca_pml_umrddt_rts_t *rts)
{
    static const opal_umrddt_gpu_export_t none;

    if (0 == (MCA_PML_UMRDDT_TELL_EXPORT & tell->what)) {
        return 0 == memcmp(&tell->export, &none, sizeof(none));
    }
    return rts->buffer_id == tell->export.buffer_id;
}

/** Returns true if the layout matches the envelope. */
static bool layout_agrees(const opal_iov_cache_layout_t *layout, const mca_pml_umrddt_rts_t *rts)
{
    uint32_t pieces = UINT32_MAX < layout->iov_count ? UINT32_MAX : (uint32_t) layout->iov_count;

    return rts->length == layout->size && rts->lb == layout->lb && rts->pieces == pieces;
}

int mca_pml_umrddt_tell_read(const mca_pml_umrddt_tell_t *tell, size_t length,
                             const mca_pml_umrddt_rts_t *rts, uint32_t asked,
                             const mca_pml_umrddt_parts_t *parts, opal_iov_cache_layout_t **from)
{
    opal_iov_cache_layout_t *layout = NULL;
    bool flat;
    size_t have = NULL == parts ? 0 : parts->have;
    int rc;

    if (sizeof(*tell) > length || MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_TELL) != tell->magic
        || rts->seq != tell->seq || rts->slot != tell->slot || rts->layout != tell->layout
        || 0 != (~asked & tell->what) || 0 != tell->reserved
        || MCA_PML_UMRDDT_MAX_TELL_FLAT < tell->flat_bytes || !export_valid(tell, rts)) {
        return OMPI_ERR_BAD_PARAM;
    }
    flat = 0 != (MCA_PML_UMRDDT_TELL_LAYOUT & tell->what);
    if (flat != (0 < tell->flat_bytes)
        || (NULL != parts
            && (parts->layout != tell->layout || parts->flat_bytes != tell->flat_bytes))
        || sizeof(*tell) + (tell->flat_bytes - have) != length) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (flat) {
        rc = mca_pml_umrddt_flat_layout(tell->flat_bytes, tell->bytes, tell->flat_bytes - have,
                                        parts, &layout);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        if (!layout_agrees(layout, rts)) {
            OBJ_RELEASE(layout);
            return OMPI_ERR_BAD_PARAM;
        }
    }
    *from = layout;
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Caches of the receiver
 * ------------------------------------------------------------------------------------------- */

/** Number of entries per peer for allocations. The BUFFER_ID selects the entry. */
#define HOMES 64

/** Number of failed imports after which nothing is requested from a peer, if none has succeeded. */
#define TRIES 4

typedef struct kept_t {
    uint64_t id;
    uint64_t stamp;                  /**< time of the last use */
    opal_iov_cache_layout_t *layout; /**< the layout; or NULL */
} kept_t;

struct mca_pml_umrddt_ipc_peer_t {
    struct {
        uint64_t buffer_id;
        const opal_umrddt_gpu_engine_t *refused_for; /**< engine of the failed import, if refused */
        opal_umrddt_gpu_engine_t *engine;            /**< engine of the import; or NULL */
        bool refused;
    } homes[HOMES];
    mca_pml_umrddt_done_flags_t *done_flags; /**< mapped completion flags; or NULL */
    bool mapped;                             /**< an import has succeeded */
    unsigned refused;                        /**< number of failed imports */
    uint64_t clock;
    unsigned last;  /**< index of the layout that was used last */
    unsigned count; /**< number of entries in kept */
    kept_t kept[];
};

static size_t ipc_bytes(unsigned count)
{
    return sizeof(struct mca_pml_umrddt_ipc_peer_t) + count * sizeof(kept_t);
}

static struct mca_pml_umrddt_ipc_peer_t *remember(mca_pml_umrddt_peer_t *peer)
{
    unsigned count = mca_pml_umrddt.params.direct_layouts;

    if (NULL == peer->ipc) {
        peer->ipc = calloc(1, ipc_bytes(count));
        if (NULL != peer->ipc) {
            mca_pml_umrddt_peer_bytes((int64_t) ipc_bytes(count));
            peer->ipc->count = count;
        }
    }
    return peer->ipc;
}

static uint64_t layout_bytes(const opal_iov_cache_layout_t *layout)
{
    return sizeof(*layout) + opal_iov_cache_form_bytes(layout->form);
}

static void drop(kept_t *kept)
{
    if (NULL != kept->layout) {
        mca_pml_umrddt.counters.ipc_layout_bytes_now -= layout_bytes(kept->layout);
        OBJ_RELEASE(kept->layout);
        kept->layout = NULL;
        kept->id = 0;
        kept->stamp = 0;
    }
}

/** Find the entry of a layout. @return count if there is none */
static unsigned find(const struct mca_pml_umrddt_ipc_peer_t *ipc, uint64_t id)
{
    unsigned i;

    if (ipc->last < ipc->count && id == ipc->kept[ipc->last].id) {
        return ipc->last;
    }
    for (i = 0; i < ipc->count && id != ipc->kept[i].id; ++i) {
        ;
    }
    return i;
}

opal_iov_cache_layout_t *mca_pml_umrddt_ipc_layout(mca_pml_umrddt_peer_t *peer,
                                                   const mca_pml_umrddt_rts_t *rts)
{
    struct mca_pml_umrddt_ipc_peer_t *ipc = peer->ipc;
    unsigned i;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == ipc || (i = find(ipc, rts->layout)) == ipc->count
        || !layout_agrees(ipc->kept[i].layout, rts)) {
        return NULL;
    }
    ipc->last = i;
    ipc->kept[i].stamp = ++ipc->clock;
    OBJ_RETAIN(ipc->kept[i].layout);
    return ipc->kept[i].layout;
}

/** Find an empty entry, or else the least recently used one. */
static kept_t *oldest(struct mca_pml_umrddt_ipc_peer_t *ipc)
{
    kept_t *found = &ipc->kept[0];

    for (unsigned i = 1; i < ipc->count; ++i) {
        if (ipc->kept[i].stamp < found->stamp) {
            found = &ipc->kept[i];
        }
    }
    return found;
}

void mca_pml_umrddt_ipc_keep(mca_pml_umrddt_peer_t *peer, uint64_t id,
                             opal_iov_cache_layout_t *layout)
{
    struct mca_pml_umrddt_ipc_peer_t *ipc = remember(peer);
    uint64_t bytes = layout_bytes(layout), most = mca_pml_umrddt.params.layout_cache_size;
    kept_t *kept;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == ipc || 0 == ipc->count || bytes > most || find(ipc, id) < ipc->count) {
        return;
    }
    kept = oldest(ipc);
    drop(kept);
    /* never evict layouts of other peers */
    while (mca_pml_umrddt.counters.ipc_layout_bytes_now > most - bytes) {
        kept_t *other = NULL;

        for (unsigned i = 0; i < ipc->count; ++i) {
            if (NULL != ipc->kept[i].layout
                && (NULL == other || ipc->kept[i].stamp < other->stamp)) {
                other = &ipc->kept[i];
            }
        }
        if (NULL == other) {
            return;
        }
        drop(other);
    }
    OBJ_RETAIN(layout);
    kept->layout = layout;
    kept->id = id;
    kept->stamp = ++ipc->clock;
    ipc->last = (unsigned) (kept - ipc->kept);
    mca_pml_umrddt.counters.ipc_layout_bytes_now += bytes;
}

mca_pml_umrddt_done_flags_t *mca_pml_umrddt_ipc_done_flags(const mca_pml_umrddt_peer_t *peer)
{
    return NULL == peer->ipc ? NULL : peer->ipc->done_flags;
}

void mca_pml_umrddt_ipc_map_done_flags(mca_pml_umrddt_peer_t *peer, uint32_t pid, uint32_t fd)
{
    struct mca_pml_umrddt_ipc_peer_t *ipc = remember(peer);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL != ipc && NULL == ipc->done_flags && mca_pml_umrddt.params.ipc_done_flags) {
        ipc->done_flags = mca_pml_umrddt_done_flags_map(pid, fd, peer->cookie);
    }
}

opal_umrddt_gpu_engine_t *mca_pml_umrddt_ipc_home(const mca_pml_umrddt_peer_t *peer,
                                                  uint64_t buffer_id)
{
    const struct mca_pml_umrddt_ipc_peer_t *ipc = peer->ipc;

    return NULL != ipc && buffer_id == ipc->homes[buffer_id % HOMES].buffer_id
               ? ipc->homes[buffer_id % HOMES].engine
               : NULL;
}

void mca_pml_umrddt_ipc_mapped(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                               opal_umrddt_gpu_engine_t *engine)
{
    struct mca_pml_umrddt_ipc_peer_t *ipc = remember(peer);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == ipc) {
        return;
    }
    ipc->mapped = true;
    if (NULL != engine) {
        ipc->homes[buffer_id % HOMES].buffer_id = buffer_id;
        ipc->homes[buffer_id % HOMES].engine = engine;
        ipc->homes[buffer_id % HOMES].refused = false;
    }
}

void mca_pml_umrddt_ipc_refused(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                const opal_umrddt_gpu_engine_t *engine)
{
    struct mca_pml_umrddt_ipc_peer_t *ipc = remember(peer);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == ipc) {
        return;
    }
    ++ipc->refused;
    ipc->homes[buffer_id % HOMES].buffer_id = buffer_id;
    ipc->homes[buffer_id % HOMES].engine = NULL;
    ipc->homes[buffer_id % HOMES].refused = true;
    ipc->homes[buffer_id % HOMES].refused_for = engine;
}

bool mca_pml_umrddt_ipc_is_refused(const mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                   const opal_umrddt_gpu_engine_t *engine)
{
    const struct mca_pml_umrddt_ipc_peer_t *ipc = peer->ipc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == ipc) {
        return false;
    }
    return (!ipc->mapped && TRIES <= ipc->refused)
           || (ipc->homes[buffer_id % HOMES].refused
               && buffer_id == ipc->homes[buffer_id % HOMES].buffer_id
               && engine == ipc->homes[buffer_id % HOMES].refused_for);
}

void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer)
{
    if (NULL != peer->ipc) {
        for (unsigned i = 0; i < peer->ipc->count; ++i) {
            drop(&peer->ipc->kept[i]);
        }
        if (NULL != peer->ipc->done_flags) {
            mca_pml_umrddt_done_flags_unmap(peer->ipc->done_flags);
        }
        mca_pml_umrddt_peer_bytes(-(int64_t) ipc_bytes(peer->ipc->count));
        free(peer->ipc);
        peer->ipc = NULL;
    }
}

const char *mca_pml_umrddt_ipc_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    const struct mca_pml_umrddt_ipc_peer_t *ipc = peer->ipc;

    if (NULL == ipc) {
        return NULL;
    }
    for (unsigned i = 0; i < ipc->count; ++i) {
        if ((NULL != ipc->kept[i].layout) != (0 != ipc->kept[i].id)
            || ipc->kept[i].stamp > ipc->clock) {
            return "layouts of senders: one that is remembered has a name, and no other has";
        }
        *bytes += NULL == ipc->kept[i].layout ? 0 : layout_bytes(ipc->kept[i].layout);
    }
    for (unsigned i = 0; i < HOMES; ++i) {
        if (ipc->homes[i].refused && NULL != ipc->homes[i].engine) {
            return "homes: what cannot be mapped is mapped by nobody";
        }
    }
    return NULL;
}
