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

#include <string.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

/* ---------------------------------------------------------------------------------------------
 * Wire format
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_ipc_rts_valid(const mca_pml_umrddt_rts_t *rts)
{
    if (0 == (MCA_PML_UMRDDT_BIT_IPC & rts->schemes)) {
        return 0 == (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes);
    }
    if (0 != (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes)
        && OPAL_UMRDDT_DONE_FLAGS <= rts->request_id) {
        return false;
    }
    return 0 != rts->buffer_id && 0 != rts->layout && 0 != rts->pieces;
}

int mca_pml_umrddt_info_emit(const mca_pml_umrddt_info_t *info, const void *flat, void *scratch,
                             mca_pml_umrddt_emit_fn_t emit, void *context)
{
    mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = info->seq,
        .request_id = info->request_id,
        .flat_bytes = info->flat_bytes,
        .layout = info->layout,
    };
    mca_pml_umrddt_info_t *last = scratch;
    uint32_t sent;
    int rc = mca_pml_umrddt_flat_emit(&part, flat, MCA_PML_UMRDDT_INFO_ROOM - sizeof(*last),
                                      MCA_PML_UMRDDT_INFO_ROOM, scratch, emit, context, &sent);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    *last = *info;
    if (sent < info->flat_bytes) {
        memcpy(last->bytes, (const unsigned char *) flat + sent, info->flat_bytes - sent);
    }
    return emit(context, last, sizeof(*last) + (info->flat_bytes - sent));
}

/** Returns true if the export matches the envelope, or there is none. common/umrddt_gpu validates
 * the rest. */
static bool export_valid(const mca_pml_umrddt_info_t *info, const mca_pml_umrddt_rts_t *rts)
{
    static const opal_umrddt_gpu_export_t none;

    if (0 == (MCA_PML_UMRDDT_INFO_EXPORT & info->what)) {
        return 0 == memcmp(&info->export, &none, sizeof(none));
    }
    return rts->buffer_id == info->export.buffer_id;
}

int mca_pml_umrddt_info_read(const mca_pml_umrddt_info_t *info, size_t length,
                             const mca_pml_umrddt_rts_t *rts, uint32_t requested,
                             const mca_pml_umrddt_parts_t *parts, opal_iov_cache_layout_t **from)
{
    opal_iov_cache_layout_t *layout = NULL;
    bool flat;
    size_t have = NULL == parts ? 0 : parts->have;
    int rc;

    if (sizeof(*info) > length || MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO) != info->magic
        || rts->seq != info->seq || rts->request_id != info->request_id
        || rts->layout != info->layout || 0 != (~requested & info->what) || 0 != info->reserved
        || MCA_PML_UMRDDT_MAX_INFO_FLAT < info->flat_bytes || !export_valid(info, rts)) {
        return OMPI_ERR_BAD_PARAM;
    }
    flat = 0 != (MCA_PML_UMRDDT_INFO_LAYOUT & info->what);
    if (flat != (0 < info->flat_bytes)
        || (NULL != parts
            && (parts->layout != info->layout || parts->flat_bytes != info->flat_bytes))
        || sizeof(*info) + (info->flat_bytes - have) != length) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (flat) {
        rc = mca_pml_umrddt_flat_layout(info->flat_bytes, info->bytes, info->flat_bytes - have,
                                        parts, &layout);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        if (!opal_umrddt_gpu_peer_agrees(layout, rts->length, rts->lb, rts->pieces)) {
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

/** Get the peer's caches, created if necessary. NULL: no memory */
static opal_umrddt_gpu_peer_t *remember(mca_pml_umrddt_peer_t *peer)
{
    const unsigned count = mca_pml_umrddt.params.direct_layouts;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == peer->ipc) {
        peer->ipc = opal_umrddt_gpu_peer_new(count);
        if (NULL != peer->ipc) {
            mca_pml_umrddt_peer_bytes((int64_t) opal_umrddt_gpu_peer_bytes(count));
        }
    }
    return peer->ipc;
}

void mca_pml_umrddt_ipc_keep(mca_pml_umrddt_peer_t *peer, uint64_t id,
                             opal_iov_cache_layout_t *layout)
{
    if (NULL != remember(peer)) {
        opal_umrddt_gpu_peer_keep(peer->ipc, id, layout,
                                  &mca_pml_umrddt.counters.ipc_layout_bytes_now,
                                  mca_pml_umrddt.params.layout_cache_size);
    }
}

void mca_pml_umrddt_ipc_map_done_flags(mca_pml_umrddt_peer_t *peer, uint32_t pid, uint32_t fd)
{
    if (NULL != remember(peer) && NULL == peer->ipc->done_flags
        && mca_pml_umrddt.params.ipc_done_flags) {
        peer->ipc->done_flags = opal_umrddt_done_flags_map(pid, fd, peer->cookie);
    }
}

void mca_pml_umrddt_ipc_mapped(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                               opal_umrddt_gpu_engine_t *engine)
{
    if (NULL != remember(peer)) {
        opal_umrddt_gpu_peer_mapped(peer->ipc, buffer_id, engine);
    }
}

void mca_pml_umrddt_ipc_refused(mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
                                const opal_umrddt_gpu_engine_t *engine)
{
    if (NULL != remember(peer)) {
        opal_umrddt_gpu_peer_refused(peer->ipc, buffer_id, engine);
    }
}

void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer)
{
    if (NULL != peer->ipc) {
        mca_pml_umrddt_peer_bytes(-(int64_t) opal_umrddt_gpu_peer_bytes(peer->ipc->count));
        opal_umrddt_gpu_peer_free(peer->ipc, &mca_pml_umrddt.counters.ipc_layout_bytes_now);
        peer->ipc = NULL;
    }
}

const char *mca_pml_umrddt_ipc_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    MCA_PML_UMRDDT_HOLDS(mca_pml_umrddt.counters.ipc_layout_bytes_now
                             <= mca_pml_umrddt.params.layout_cache_size,
                         "layouts of senders: no more bytes than may be");
    return NULL == peer->ipc ? NULL : opal_umrddt_gpu_peer_check(peer->ipc, bytes);
}
