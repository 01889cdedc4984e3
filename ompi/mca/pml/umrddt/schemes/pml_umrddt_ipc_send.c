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
 * Messages from GPU memory of the same node: the sender, which offers its buffer and answers an
 * INFO_REQ. Read pml_umrddt_ipc.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

/** Maximum size of a flattened block, of a term, and of the header, bytes. */
#define MOST_OF_BLOCK 20
#define MOST_OF_TERM  128
#define MOST_OF_HEAD  64

static void done_flag_event(void *owner);

/** Returns true if a flattened layout certainly fits an INFO message and its parts. */
static bool can_be_reported(const opal_iov_cache_layout_t *layout)
{
    return opal_iov_cache_layout_is_contiguous(layout)
           || layout->form->block_count * MOST_OF_BLOCK + layout->form->term_count * MOST_OF_TERM
                      + MOST_OF_HEAD
                  <= MCA_PML_UMRDDT_MAX_INFO_FLAT;
}

/** Failures in a row after which a sender uses the HCA. A receiver sends no INFO_REQ to a peer
 * after as many. */
#define MISSES 4

bool mca_pml_umrddt_ipc_wanted(const mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                               const opal_umrddt_gpu_where_t *where)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & comm->schemes) && mca_pml_umrddt_ipc_reaches(peer)
           && mca_pml_umrddt_ipc_takes(where)
           && MISSES > __atomic_load_n(&peer->states[MCA_PML_UMRDDT_SCHEME_IPC].fails,
                                       __ATOMIC_RELAXED);
}

/** Record that the scheme carried a message (@p well) or failed. */
static void result(mca_pml_umrddt_peer_t *peer, bool well)
{
    uint32_t *fails = &peer->states[MCA_PML_UMRDDT_SCHEME_IPC].fails;
    uint32_t missed = __atomic_load_n(fails, __ATOMIC_RELAXED);

    if (well && 0 < missed) {
        __atomic_store_n(fails, 0, __ATOMIC_RELAXED);
    } else if (!well && MISSES > missed) {
        __atomic_store_n(fails, missed + 1, __ATOMIC_RELAXED);
    }
}

/** Returns true if the completion flag may signal the end of a message. False if the last message
 * of its layout got a reply anyway, which the completion flag only delays. */
static bool may_flag(const mca_pml_umrddt_send_t *send)
{
    return 0 == __atomic_load_n(&send->layout->memo[MCA_PML_UMRDDT_MEMO_SILENT], __ATOMIC_RELAXED);
}

/** Learn from a message that got a reply. If @p silent, the completion flag would not have avoided
 * that reply. */
static void may_flag_learn(const mca_pml_umrddt_send_t *send, bool silent)
{
    if (silent == may_flag(send)) {
        __atomic_store_n(&send->layout->memo[MCA_PML_UMRDDT_MEMO_SILENT], silent ? 1 : 0,
                         __ATOMIC_RELAXED);
    }
}

mca_pml_umrddt_can_send_t mca_pml_umrddt_ipc_can_send(const mca_pml_umrddt_comm_t *comm,
                                                      const mca_pml_umrddt_peer_t *peer,
                                                      const opal_umrddt_gpu_where_t *where,
                                                      size_t size)
{
    (void) comm;
    (void) peer;
    (void) size;
    return mca_pml_umrddt_ipc_takes(where) ? MCA_PML_UMRDDT_CAN_SEND : MCA_PML_UMRDDT_CAN_SEND_NOT;
}

void mca_pml_umrddt_ipc_offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;

    if (!mca_pml_umrddt_ipc_takes(&send->where) || !can_be_reported(send->layout)
        || (0 != (MCA_PML_UMRDDT_BITS_HCA & rts->schemes)
            && !mca_pml_umrddt_ipc_wanted(send->comm, send->peer, &send->where))) {
        return;
    }
    rts->schemes |= MCA_PML_UMRDDT_BIT_IPC;
    rts->buffer_id = send->where.memory.buffer_id;
    rts->buffer = (uintptr_t) send->buf;
    rts->layout = send->layout->id;
    rts->lb = send->layout->lb;
    if (OPAL_UMRDDT_DONE_FLAGS > send->request_id
        && __atomic_load_n(&send->peer->rings, __ATOMIC_ACQUIRE) && may_flag(send)) {
        rts->schemes |= MCA_PML_UMRDDT_DONE_FLAG;
        send->await = done_flag_event;
    }
}

static int emit(void *context, const void *bytes, size_t length)
{
    mca_pml_umrddt_send_t *send = context;

    return mca_pml_umrddt_control(send->comm, send->dst,
                                  mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, send->request_id),
                                  bytes, length, false);
}

/**
 * Answer an INFO_REQ. Items that are not available are left out, and the receiver falls back.
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM the INFO_REQ is invalid
 * @retval other no memory, or the base PML refused
 */
static int report_what(mca_pml_umrddt_send_t *send, uint32_t what)
{
    mca_pml_umrddt_info_t info = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO),
        .seq = send->rts.seq,
        .request_id = send->request_id,
        .layout = send->rts.layout,
    };
    void *scratch, *flat = NULL;
    size_t bytes;
    int rc;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 == (MCA_PML_UMRDDT_BIT_IPC & send->rts.schemes) || send->reported || 0 == what
        || 0 != (~(uint32_t) MCA_PML_UMRDDT_INFO_ALL & what)) {
        return OMPI_ERR_BAD_PARAM;
    }
    send->reported = true;
    if (mca_pml_umrddt.params.ipc_done_flags) {
        opal_umrddt_done_flags_report(mca_pml_umrddt.self.cookie, &info.done_flag_pid,
                                      &info.done_flag_fd);
    }
    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & what)) {
        opal_umrddt_gpu_export_t export;

        /* The BUFFER_ID differs if the application freed the buffer of an active message. */
        if (OPAL_SUCCESS == opal_umrddt_gpu_export(&send->where.memory, &export)
            && send->rts.buffer_id == export.buffer_id) {
            info.export = export;
            info.what |= MCA_PML_UMRDDT_INFO_EXPORT;
        }
    }
    if (0 != (MCA_PML_UMRDDT_INFO_LAYOUT & what)) {
        bytes = opal_iov_cache_form_flatten(send->layout->form, NULL, 0);
        flat = MCA_PML_UMRDDT_MAX_INFO_FLAT < bytes ? NULL : malloc(bytes);
        if (NULL != flat) {
            (void) opal_iov_cache_form_flatten(send->layout->form, flat, bytes);
            info.flat_bytes = (uint32_t) bytes;
            info.what |= MCA_PML_UMRDDT_INFO_LAYOUT;
        }
    }
    scratch = malloc(MCA_PML_UMRDDT_INFO_ROOM);
    rc = NULL == scratch ? OMPI_ERR_OUT_OF_RESOURCE
                         : mca_pml_umrddt_info_emit(&info, flat, scratch, emit, send);
    free(scratch);
    free(flat);
    return rc;
}

/** Handle an INFO_REQ: the receiver is going to read the buffer. */
void mca_pml_umrddt_ipc_reply(mca_pml_umrddt_send_t *send, size_t length)
{
    int rc;

    (void) length;
    mca_pml_umrddt_send_await(send);
    rc = report_what(send, send->reply->what);
    if (OMPI_ERR_BAD_PARAM == rc) {
        mca_pml_umrddt_send_malformed(send);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    }
}

/** Record success or failure of CUDA IPC from a reply. A CTS is the receiver's choice, and so is a
 * CTS_PACK if packing is predicted to be faster. */
static void learn(mca_pml_umrddt_send_t *send)
{
    const uint32_t reply_kind = send->reply->reply_kind;

    if (OPAL_UNLIKELY(send->chosen)) {
        return;
    }
    if (MCA_PML_UMRDDT_REPLY_ACK == reply_kind || MCA_PML_UMRDDT_REPLY_FALLBACK == reply_kind
        || (MCA_PML_UMRDDT_REPLY_CTS_PACK == reply_kind
            && !mca_pml_umrddt_select_pack_beats_ipc(send->comm, send->peer, send->layout))) {
        result(send->peer, MCA_PML_UMRDDT_REPLY_ACK == reply_kind);
    }
}

void mca_pml_umrddt_ipc_answered(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    learn(send);
    if (MCA_PML_UMRDDT_REPLY_ACK == reply->reply_kind && 0 < reply->total) {
        MCA_PML_UMRDDT_COUNT(sends_ipc);
        may_flag_learn(send, false);
        if (0 != (MCA_PML_UMRDDT_CAN_SET_FLAG & reply->what)
            && NULL != opal_umrddt_own_done_flags) {
            __atomic_store_n(&send->peer->rings, true, __ATOMIC_RELEASE);
        }
    }
}

/** Retry function of a wait: test the completion flag. */
static bool flag_state(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    switch (opal_umrddt_done_flag_test(send->request_id, send->rts.seq)) {
    case OPAL_UMRDDT_DONE_FLAG_DONE:
        MCA_PML_UMRDDT_COUNT(sends_ipc);
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
        return true;
    case OPAL_UMRDDT_DONE_FLAG_REPLY:
        may_flag_learn(send, true);
        mca_pml_umrddt_send_await(send);
        return true;
    default:
        return false;
    }
}

/** Event of a message whose completion flag signals its end: wait for the flag. */
static void done_flag_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    if (!flag_state(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, flag_state, send);
    }
}
