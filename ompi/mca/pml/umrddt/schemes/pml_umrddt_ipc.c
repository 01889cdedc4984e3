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
 * Messages from GPU memory of the same node: wire format, the receiver's caches, and its INFO_REQ
 * (state INFO_REQ of pml_umrddt_ipc_scheme.c). Read pml_umrddt_ipc.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

/** An active INFO_REQ. */
struct mca_pml_umrddt_info_req_t {
    mca_pml_umrddt_wait_t wait; /**< until the cancelled request completes */
    ompi_request_t *request; /**< the base PML's, for the next part or INFO message; NULL: none */
    uint32_t what;           /**< MCA_PML_UMRDDT_INFO_* */
    mca_pml_umrddt_peer_t *peer;
    mca_pml_umrddt_parts_t *parts;
    union {
        mca_pml_umrddt_layout_frag_t flat;
        mca_pml_umrddt_info_t info;
        unsigned char bytes[MCA_PML_UMRDDT_INFO_ROOM];
    } got;
};

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

static bool reported(void *owner);

/* ---------------------------------------------------------------------------------------------
 * Wire format
 * ------------------------------------------------------------------------------------------- */

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
    int rc;

    if (sizeof(*info) > length || MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO) != info->magic
        || rts->seq != info->seq || rts->request_id != info->request_id
        || rts->layout != info->layout || 0 != (~requested & info->what) || 0 != info->reserved
        || MCA_PML_UMRDDT_MAX_INFO_FLAT < info->flat_bytes || !export_valid(info, rts)) {
        return OMPI_ERR_BAD_PARAM;
    }
    flat = 0 != (MCA_PML_UMRDDT_INFO_LAYOUT & info->what);
    if (flat != (0 < info->flat_bytes) || (!flat && (NULL != parts || sizeof(*info) != length))) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (flat) {
        rc = mca_pml_umrddt_flat_layout(info->layout, info->flat_bytes, info->bytes,
                                        length - sizeof(*info), parts, &layout);
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

bool mca_pml_umrddt_ipc_remember(mca_pml_umrddt_peer_t *peer)
{
    const unsigned count = mca_pml_umrddt.params.direct_layouts;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == peer->gpu) {
        peer->gpu = opal_umrddt_gpu_peer_new(count);
        if (NULL != peer->gpu) {
            mca_pml_umrddt_peer_bytes((int64_t) opal_umrddt_gpu_peer_bytes(count));
        }
    }
    return NULL != peer->gpu;
}

void mca_pml_umrddt_ipc_free(mca_pml_umrddt_peer_t *peer)
{
    if (NULL != peer->gpu) {
        mca_pml_umrddt_peer_bytes(-(int64_t) opal_umrddt_gpu_peer_bytes(peer->gpu->count));
        opal_umrddt_gpu_peer_free(peer->gpu, &counters->ipc_layout_bytes_now);
        peer->gpu = NULL;
    }
}

const char *mca_pml_umrddt_ipc_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    MCA_PML_UMRDDT_HOLDS(counters->ipc_layout_bytes_now <= mca_pml_umrddt.params.layout_cache_size,
                         "layouts of senders: no more bytes than may be");
    return NULL == peer->gpu ? NULL : opal_umrddt_gpu_peer_check(peer->gpu, bytes);
}

/* ---------------------------------------------------------------------------------------------
 * INFO_REQ and its answer
 * ------------------------------------------------------------------------------------------- */

/** Give the message up and record that this allocation cannot be imported. */
static void refuse_memory(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);

    opal_umrddt_gpu_peer_refused(recv->peer->gpu, recv->rts.buffer_id,
                                 opal_umrddt_gpu_on_gpu(&recv->where) ? ipc->engine : NULL);
    mca_pml_umrddt_ipc_refuse(recv);
}

static void malformed(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(
        0,
        "pml:umrddt: the memory information of rank %d is invalid; the base PML carries a message "
        "of %llu bytes",
        recv->status.MPI_SOURCE, (unsigned long long) recv->rts.length);
    mca_pml_umrddt_ipc_refuse(recv);
}

static void requested_free(mca_pml_umrddt_info_req_t *requested)
{
    OBJ_DESTRUCT(&requested->wait);
    free(requested->parts);
    free(requested);
}

/** Retry function of a wait: free a cancelled INFO_REQ when its receive has completed. */
static bool let_go(void *owner)
{
    mca_pml_umrddt_info_req_t *requested = owner;

    if (!REQUEST_COMPLETE(requested->request)) {
        return false;
    }
    ompi_request_free(&requested->request);
    requested_free(requested);
    mca_pml_umrddt_active(-1);
    return true;
}

void mca_pml_umrddt_ipc_info_req_drop(mca_pml_umrddt_info_req_t *requested)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    requested->peer->info_req = NULL;
    if (NULL == requested->request) {
        requested_free(requested);
        return;
    }
    (void) ompi_request_cancel(requested->request);
    mca_pml_umrddt_active(1);
    mca_pml_umrddt_poll(&requested->wait, let_go, requested);
}

/** Post the receive for the next part or the INFO message. */
static int listen_for_report(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_info_req_t *requested = ipc->requested;
    int rc = mca_pml_umrddt.host.pml_irecv(
        &requested->got, sizeof(requested->got), &ompi_mpi_byte.dt, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, recv->rts.request_id), recv->comm->comm,
        &requested->request);

    if (OMPI_SUCCESS != rc) {
        requested->request = NULL;
    }
    return rc;
}

void mca_pml_umrddt_ipc_info_req(mca_pml_umrddt_recv_t *recv, uint32_t what)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_info_req_t *requested;
    mca_pml_umrddt_reply_t reply;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_INFO_REQ;
    requested = mca_pml_umrddt_ipc_remember(recv->peer) ? malloc(sizeof(*requested)) : NULL;
    ipc->requested = requested;
    if (NULL == requested) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
        return;
    }
    OBJ_CONSTRUCT(&requested->wait, mca_pml_umrddt_wait_t);
    requested->request = NULL;
    requested->what = what;
    requested->peer = recv->peer;
    requested->parts = NULL;
    recv->peer->info_req = requested;
    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_INFO_REQ, &reply);
    reply.what = what;
    if (OMPI_SUCCESS != listen_for_report(recv)
        || OMPI_SUCCESS != mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply)) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
        return;
    }
    mca_pml_umrddt_recv_announce(recv);
    MCA_PML_UMRDDT_COUNT(ipc_info_reqs);
    mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, reported, recv);
}

/** Process an INFO message. @p from is the layout, or NULL. */
static void take(mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_info_t *info,
                 opal_iov_cache_layout_t *from)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    opal_umrddt_gpu_peer_t *peer = recv->peer->gpu;
    uint32_t lacks = ipc->requested->what & ~info->what;
    int rc = OPAL_SUCCESS;

    if (NULL == peer->done_flags && mca_pml_umrddt.params.ipc_done_flags) {
        peer->done_flags =
            opal_umrddt_done_flags_map(info->done_flag_pid, info->done_flag_fd, recv->peer->cookie);
    }
    if (NULL != from) {
        ipc->from = from;
        opal_umrddt_gpu_peer_keep(peer, recv->rts.layout, from, &counters->ipc_layout_bytes_now,
                                  mca_pml_umrddt.params.layout_cache_size);
    }
    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & info->what)) {
        if (NULL == ipc->engine
            && !opal_umrddt_gpu_peer_engine_for(info->export.uuid, &ipc->engine)) {
            refuse_memory(recv);
            return;
        }
        rc = opal_umrddt_gpu_import(ipc->engine, mca_pml_umrddt_ipc_number(recv->peer),
                                    &info->export, &ipc->import);
        if (OPAL_SUCCESS == rc) {
            opal_umrddt_gpu_peer_mapped(peer, recv->rts.buffer_id,
                                        opal_umrddt_gpu_on_gpu(&recv->where) ? NULL : ipc->engine);
        }
    }
    if (OPAL_ERR_BAD_PARAM == rc) {
        malformed(recv);
    } else if (OPAL_SUCCESS != rc || 0 != lacks) {
        refuse_memory(recv);
    } else {
        mca_pml_umrddt_ipc_info_req_drop(ipc->requested);
        ipc->requested = NULL;
        mca_pml_umrddt_ipc_go_on(recv);
    }
}

/** Retry function in state INFO_REQ: test for a part or the INFO message. */
static bool reported(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_info_req_t *requested = ipc->requested;
    const mca_pml_umrddt_layout_frag_t *flat = &requested->got.flat;
    opal_iov_cache_layout_t *from = NULL;
    bool again = false;
    size_t length;
    int rc;

    _Static_assert(offsetof(mca_pml_umrddt_info_t, seq)
                       == offsetof(mca_pml_umrddt_layout_frag_t, seq),
                   "both begin alike");
    if (!REQUEST_COMPLETE(requested->request)) {
        return false;
    }
    length = requested->request->req_status._ucount;
    rc = MPI_SUCCESS == requested->request->req_status.MPI_ERROR && sizeof(*flat) <= length
             ? OMPI_SUCCESS
             : OMPI_ERR_BAD_PARAM;
    ompi_request_free(&requested->request);
    requested->request = NULL;

    if (OMPI_SUCCESS == rc && recv->rts.seq != flat->seq) {
        again = true; /* answer to a message that was given up */
    } else if (OMPI_SUCCESS == rc
               && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG) == flat->magic) {
        again = true;
        rc = recv->rts.request_id != flat->request_id || recv->rts.layout != flat->layout
                     || 0 == (MCA_PML_UMRDDT_INFO_LAYOUT & requested->what)
                 ? OMPI_ERR_BAD_PARAM
                 : mca_pml_umrddt_direct_part(flat, length, MCA_PML_UMRDDT_MAX_INFO_FLAT,
                                              &requested->parts);
    } else if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_info_read(&requested->got.info, length, &recv->rts, requested->what,
                                      requested->parts, &from);
    }
    if (OMPI_SUCCESS == rc && again) {
        rc = listen_for_report(recv);
    }
    if (OMPI_ERR_BAD_PARAM == rc) {
        malformed(recv);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
    } else if (again) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, reported, recv);
    } else {
        take(recv, &requested->got.info, from);
    }
    return true;
}
