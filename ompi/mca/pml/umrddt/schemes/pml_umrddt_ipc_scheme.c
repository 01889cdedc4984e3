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
 * INFO_REQ, and the receiver. Read pml_umrddt_ipc.h first.
 *
 *      MATCHED -> LOOK --(complete)-----------------------> COPY -> ACK
 *                  |  \                               /    |
 *                  |   +--(INFO_REQ)--> INFO_REQ -------+     |
 *                  |                     |                 |
 *                  +---------------------+-----------------+--> FALLBACK
 *
 * test/model/ipc.pml is a verified model of it. Two kinds of messages wait in LOOK: those that lack
 * an item while an INFO_REQ to the sender is in progress, and those for which the engine has no
 * resources while it copies for others.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_flush.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/** No other thread changes those of this scheme. */
static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** Record that the scheme carried a message (@p well) or failed. */
static void result(mca_pml_umrddt_peer_t *peer, bool well)
{
    uint32_t *fails = &peer->states[MCA_PML_UMRDDT_SCHEME_IPC].fails;
    uint32_t missed = __atomic_load_n(fails, __ATOMIC_RELAXED);

    if (well ? 0 < missed : MCA_PML_UMRDDT_COPY_MISSES > missed) {
        __atomic_store_n(fails, well ? 0 : missed + 1, __ATOMIC_RELAXED);
        if (!well && MCA_PML_UMRDDT_COPY_MISSES == missed + 1) {
            MCA_PML_UMRDDT_VERBOSE(SELECTION,
                                   "rank %u: CUDA IPC failed %u times in a row; not offered",
                                   mca_pml_umrddt_peer_rank(peer), missed + 1);
        }
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

/** Retry function of a wait: test the completion flag. */
static bool flag_state(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    switch (opal_umrddt_done_flag_test(send->request_id, send->rts.seq)) {
    case OPAL_UMRDDT_DONE_FLAG_DONE:
        ++counters->sends_ipc;
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
        return true;
    case OPAL_UMRDDT_DONE_FLAG_REPLY:
        mca_pml_umrddt_wait_cancel(&send->wait);
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
        mca_pml_umrddt_watch(&send->wait, opal_umrddt_done_flag_half(send->request_id),
                             (uint32_t) (send->rts.seq << 2), OPAL_UMRDDT_DONE_FLAG_STATES,
                             flag_state, send);
    }
}

static mca_pml_umrddt_can_send_t can_send(const mca_pml_umrddt_comm_t *comm,
                                          const mca_pml_umrddt_peer_t *peer,
                                          const opal_umrddt_gpu_where_t *where, size_t size)
{
    (void) comm;
    (void) size;
    return mca_pml_umrddt_copy_takes(peer, where) ? MCA_PML_UMRDDT_CAN_SEND
                                                  : MCA_PML_UMRDDT_CAN_SEND_NOT;
}

static void offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;

    if (!mca_pml_umrddt_copy_takes(send->peer, &send->where)
        || (!opal_iov_cache_layout_is_contiguous(send->layout)
            && MCA_PML_UMRDDT_MAX_INFO_FLAT < opal_iov_cache_form_flatten_most(send->layout->form)
            && !send->peer->self)
        || (0 != (MCA_PML_UMRDDT_BITS_HCA & rts->schemes)
            && !mca_pml_umrddt_ipc_wanted(send->comm, send->peer, &send->where))) {
        return;
    }
    rts->schemes |= MCA_PML_UMRDDT_BIT_IPC;
    /* to itself: the receiver finds memory and layout in the request, which waits for it */
    rts->buffer_id =
        OPAL_UNLIKELY(send->peer->self) ? (uintptr_t) send : send->where.memory.buffer_id;
    rts->buffer = (uintptr_t) send->buf;
    rts->layout = send->layout->id;
    rts->lb = send->layout->lb;
    if (OPAL_UMRDDT_DONE_FLAGS > send->request_id
        && __atomic_load_n(&send->peer->rings, __ATOMIC_ACQUIRE) && may_flag(send)) {
        rts->schemes |= MCA_PML_UMRDDT_DONE_FLAG;
        send->await = done_flag_event;
    }
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
    mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = send->rts.seq,
        .request_id = send->request_id,
        .layout = send->rts.layout,
    };
    size_t bytes;

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
        if (MCA_PML_UMRDDT_MAX_INFO_FLAT >= bytes) {
            info.flat_bytes = part.flat_bytes = (uint32_t) bytes;
            info.what |= MCA_PML_UMRDDT_INFO_LAYOUT;
        }
    }
    return mca_pml_umrddt_flat_send(
        send->comm, send->dst, mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, send->request_id), &info,
        sizeof(info), &part, send->layout->form, MCA_PML_UMRDDT_INFO_ROOM);
}

/** Handle an INFO_REQ: the receiver is going to read the buffer. */
static void reply_came(mca_pml_umrddt_send_t *send, size_t length)
{
    int rc;

    (void) length;
    mca_pml_umrddt_send_await(send);
    rc = report_what(send, send->reply->what);
    if (OMPI_ERR_BAD_PARAM == rc) {
        mca_pml_umrddt_send_report_invalid(send);
    }
    if (OMPI_SUCCESS != rc) {
        /* the receiver waits for the INFO message: the NACK makes it fall back */
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
            && !mca_pml_umrddt_select_beats_copy(send->comm, send->peer, send->layout,
                                                 MCA_PML_UMRDDT_BITS_PACK))) {
        result(send->peer, MCA_PML_UMRDDT_REPLY_ACK == reply_kind);
    }
}

static void answered(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    learn(send);
    if (MCA_PML_UMRDDT_REPLY_ACK == reply->reply_kind && 0 < reply->total) {
        ++counters->sends_ipc;
        may_flag_learn(send, false);
        if (0 != (MCA_PML_UMRDDT_CAN_SET_FLAG & reply->what)
            && NULL != opal_umrddt_own_done_flags) {
            __atomic_store_n(&send->peer->rings, true, __ATOMIC_RELEASE);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** Number of active copies of all messages. */
static unsigned copies;

static bool look(void *owner);

void mca_pml_umrddt_ipc_refuse(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&recv->wait);
    /* The sender offers the HCA here as an alternative for the model, not as a fallback. */
    recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_HCA;
    recv->reason = &counters->fallback_ipc;
    mca_pml_umrddt_recv_next(recv);
}

/* ---------------------------------------------------------------------------------------------
 * The copy
 * ------------------------------------------------------------------------------------------- */

static void announce(const mca_pml_umrddt_recv_t *recv)
{
    opal_umrddt_done_flag_set(mca_pml_umrddt_ipc_done_flags(recv->peer), recv->rts.request_id,
                              recv->rts.seq, OPAL_UMRDDT_DONE_FLAG_REPLY);
}

/** The data is here: set the completion flag or send the ACK, and complete. */
static void finish(mca_pml_umrddt_recv_t *recv)
{
    opal_umrddt_done_flags_t *done_flags = mca_pml_umrddt_ipc_done_flags(recv->peer);
    mca_pml_umrddt_reply_t reply;

    if (mca_pml_umrddt_recv_is_flagged(recv)) {
        opal_umrddt_done_flag_set(done_flags, recv->rts.request_id, recv->rts.seq,
                                  OPAL_UMRDDT_DONE_FLAG_DONE);
        ++counters->ipc_done_flags;
    } else {
        mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_ACK, &reply);
        reply.total = recv->total;
        reply.what = NULL == done_flags ? 0 : MCA_PML_UMRDDT_CAN_SET_FLAG;
        (void) mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply);
    }
    ++counters->recvs_ipc;
    counters->ipc_bytes += recv->total;
    if (OPAL_UNLIKELY(recv->rts.length < mca_pml_umrddt.params.min_size)
        && 0 <= recv->status.MPI_TAG) {
        opal_umrddt_hint_used(&recv->peer->hint_pace);
    }
    mca_pml_umrddt_recv_end(recv, MPI_SUCCESS);
}

/** Retry function in state COPY. */
static bool copied(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    int rc = opal_umrddt_gpu_copy_test(ipc->copy);

    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        (void) opal_umrddt_gpu_copy_flag(ipc->copy, &recv->wait.flag, &recv->wait.base);
        return false;
    }
    mca_pml_umrddt_wait_cancel(&recv->wait);
    ipc->copy = NULL;
    --copies;
    if (OPAL_SUCCESS == rc) {
        finish(recv);
    } else if (OPAL_ERR_OUT_OF_RESOURCE == rc && 0 < copies) {
        recv->state = MCA_PML_UMRDDT_RECV_LOOK; /* as in copy: later */
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, look, recv);
    } else {
        mca_pml_umrddt_ipc_refuse(recv);
    }
    return true;
}

/** The data of a message to oneself is used where it is. */
static __opal_attribute_noinline__ void own_end(const mca_pml_umrddt_recv_t *recv,
                                                opal_umrddt_gpu_copy_end_t *from)
{
    const mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    const mca_pml_umrddt_send_t *send = (const void *) (uintptr_t) recv->rts.buffer_id;

    from->layout = ipc->from;
    from->address = (uintptr_t) send->buf;
    from->kind = send->where.memory.kind;
    from->on_device = mca_pml_umrddt_on_engine_device(&send->where, ipc->engine);
    /* A kernel does not reach another context of its device: then the driver is queried. */
    from->reached =
        from->on_device && opal_umrddt_gpu_engine_shares(ipc->engine, send->where.memory.ctx);
}

/**
 * Get the sender's data as imported here. @param[out] from arguments for the engine @return false:
 * it is not completely inside the allocation of the envelope
 */
static bool copy_end(const mca_pml_umrddt_recv_t *recv, opal_umrddt_gpu_copy_end_t *from)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    uint64_t lowest, end, here;
    bool wrong;

    if (OPAL_UNLIKELY(NULL == ipc->import)) {
        own_end(recv, from);
        return true;
    }
    wrong = __builtin_add_overflow(rts->buffer, rts->lb, &lowest);
    wrong = (NULL == ipc->from ? __builtin_add_overflow(lowest, rts->length, &end)
                               : __builtin_add_overflow(rts->buffer, ipc->from->ub, &end))
            || wrong;
    if (wrong) {
        return false;
    }
    here = opal_umrddt_gpu_import_address(ipc->import, lowest, end, &from->on_device);
    from->layout = ipc->from;
    from->address = NULL == ipc->from ? here : here - (uint64_t) rts->lb;
    from->kind = OPAL_UMRDDT_GPU_DEVICE;
    from->reached = true;
    return 0 != here;
}

/** Start the copy; in state LOOK, with all information. */
static bool copy(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    /* device memory of the receiver is on the device of its engine */
    opal_umrddt_gpu_copy_end_t from, to = {.layout = recv->layout,
                                           .address = (uintptr_t) recv->buf,
                                           .kind = recv->where.memory.kind,
                                           .reached = opal_umrddt_gpu_on_gpu(&recv->where),
                                           .on_device = opal_umrddt_gpu_on_device(&recv->where)};
    int rc = OPAL_ERROR;

    if (copy_end(recv, &from)) {
        /* Together with the copies of messages that matched at the same time. */
        rc = (0 < copies || mca_pml_umrddt_has_events() || opal_umrddt_gpu_expects()
                      || OPAL_UMRDDT_GPU_BATCH_LATE == mca_pml_umrddt.params.gpu_batch
                  ? opal_umrddt_gpu_copy_later
                  : opal_umrddt_gpu_copy)(ipc->engine, &from, &to, 0, recv->total, &ipc->copy);
    }
    if (OPAL_ERR_OUT_OF_RESOURCE == rc && 0 < copies) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_ipc_refuse(recv);
        return true;
    }
    ++copies;
    recv->state = MCA_PML_UMRDDT_RECV_COPY;
    mca_pml_umrddt_watch(&recv->wait, NULL, 0, OPAL_UMRDDT_GPU_COPY_ENDS, copied, recv);
    (void) opal_umrddt_gpu_copy_flag(ipc->copy, &recv->wait.flag, &recv->wait.base);
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Cached and missing information
 * ------------------------------------------------------------------------------------------- */

/** The engine that imported the sender's memory for a receiver in system memory; NULL: unknown, or
 * the application has destroyed its context since. */
static opal_umrddt_gpu_engine_t *home(const mca_pml_umrddt_recv_t *recv)
{
    opal_umrddt_gpu_engine_t *engine =
        opal_umrddt_gpu_peer_home(recv->peer->gpu, recv->rts.buffer_id);

    return NULL != engine && opal_umrddt_gpu_engine_is_there(engine) ? engine : NULL;
}

/** Retry function in state LOOK: copy if nothing is missing. Otherwise send an INFO_REQ, after that
 * of another message. */
static bool look(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    uint32_t lacks = 0;

    if (NULL == ipc->engine) {
        ipc->engine = home(recv);
    }
    if (!recv->peer->self && NULL == ipc->import
        && (NULL == ipc->engine
            || OPAL_SUCCESS
                   != opal_umrddt_gpu_import_find(ipc->engine,
                                                  mca_pml_umrddt_ipc_number(recv->peer),
                                                  recv->rts.buffer_id, &ipc->import))) {
        lacks |= MCA_PML_UMRDDT_INFO_EXPORT;
    }
    if (1 < recv->rts.pieces && NULL == ipc->from) {
        ipc->from = opal_umrddt_gpu_peer_layout(recv->peer->gpu, recv->rts.layout, recv->rts.length,
                                                recv->rts.lb, recv->rts.pieces);
        lacks |= NULL == ipc->from ? MCA_PML_UMRDDT_INFO_LAYOUT : 0;
    }
    if (OPAL_LIKELY(0 == lacks)) {
        return copy(recv);
    }
    if (opal_umrddt_gpu_peer_is_refused(recv->peer->gpu, recv->rts.buffer_id,
                                        opal_umrddt_gpu_on_gpu(&recv->where) ? ipc->engine
                                                                             : NULL)) {
        mca_pml_umrddt_ipc_refuse(recv);
        return true;
    }
    if (NULL != recv->peer->info_req) {
        return false;
    }
    mca_pml_umrddt_ipc_info_req(recv, lacks);
    return true;
}

void mca_pml_umrddt_ipc_go_on(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_LOOK;
    if (OPAL_UNLIKELY(!look(recv))) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, look, recv);
    }
}

/* ---------------------------------------------------------------------------------------------
 * From the match to the end
 * ------------------------------------------------------------------------------------------- */

/** Returns true if a GPU can copy into the buffer: sets the engine, or the engine of another
 * device is selected later. */
static bool has_engine(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    opal_umrddt_gpu_memory_t memory;

    if (opal_umrddt_gpu_on_gpu(&recv->where)) {
        return OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&recv->where.memory, &ipc->engine);
    }
    ipc->engine = home(recv);
    return NULL != ipc->engine || opal_umrddt_gpu_device_find(NULL, &memory);
}

/** The same for a message to oneself: nothing is missing but completion flags for the next one. */
static __opal_attribute_noinline__ bool has_own(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    const mca_pml_umrddt_send_t *send = (const void *) (uintptr_t) recv->rts.buffer_id;
    uint32_t pid, fd;

    if (mca_pml_umrddt.params.ipc_done_flags && NULL == recv->peer->gpu
        && mca_pml_umrddt_ipc_remember(recv->peer)) {
        opal_umrddt_done_flags_report(mca_pml_umrddt.self.cookie, &pid, &fd);
        recv->peer->gpu->done_flags = opal_umrddt_done_flags_map(pid, fd, recv->peer->cookie);
    }
    ipc->from = send->layout;
    OBJ_RETAIN(ipc->from);
    return OPAL_SUCCESS
           == opal_umrddt_gpu_engine_get(opal_umrddt_gpu_on_gpu(&recv->where) ? &recv->where.memory
                                                                              : &send->where.memory,
                                         &ipc->engine);
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    recv->scheme = MCA_PML_UMRDDT_SCHEME_IPC;
    if (!mca_pml_umrddt_recv_has_layout(recv)) {
        recv->candidates = 0;
        recv->reason = &counters->fallback_other;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (recv->where.mixed || !(recv->peer->self ? has_own(recv) : has_engine(recv))) {
        recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_HCA;
        recv->reason = &counters->fallback_ipc;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    mca_pml_umrddt_ipc_go_on(recv);
    return OMPI_SUCCESS;
}

static mca_pml_umrddt_nack_t nack(mca_pml_umrddt_recv_t *recv,
                                  const mca_pml_umrddt_nack_header_t *fail)
{
    (void) fail;
    if (MCA_PML_UMRDDT_RECV_COPY == recv->state) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        return MCA_PML_UMRDDT_NACK_KEEPS; /* the NACK is invalid here; the sender gets the ACK */
    }
    return MCA_PML_UMRDDT_NACK_BASE;
}

static void release(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);

    if (NULL != ipc->requested) {
        mca_pml_umrddt_ipc_info_req_drop(ipc->requested);
        ipc->requested = NULL;
    }
    if (NULL != ipc->import) {
        opal_umrddt_gpu_import_release(ipc->import);
        ipc->import = NULL;
    }
    if (NULL != ipc->from) {
        OBJ_RELEASE(ipc->from);
        ipc->from = NULL;
    }
}

/* ---------------------------------------------------------------------------------------------
 * The process and its peers
 * ------------------------------------------------------------------------------------------- */

/** Set the limits of the import and export caches from the parameters. */
static uint16_t scheme_open(void)
{
    opal_umrddt_gpu_ipc_params_t bounds = {.imports = mca_pml_umrddt.params.ipc_imports,
                                           .import_bytes = mca_pml_umrddt.params.ipc_import_bytes,
                                           .exports = mca_pml_umrddt.params.ipc_exports};

    if (NULL == mca_pml_umrddt.gpu
        || (MCA_PML_UMRDDT_SCHEME_AUTO != mca_pml_umrddt.params.scheme
            && MCA_PML_UMRDDT_SCHEME_IPC != mca_pml_umrddt.params.scheme)) {
        return 0;
    }
    opal_umrddt_gpu_ipc_params(&bounds);
    return MCA_PML_UMRDDT_BIT_IPC;
}

/** Release imports, which belong to engines, and completion flags. */
static void scheme_close(void)
{
    if (NULL != mca_pml_umrddt.gpu) {
        opal_umrddt_gpu_ipc_close();
        opal_umrddt_done_flags_close();
    }
}

/** Unmap the memory of a process that shares no communicator any more, so that its owner can free
 * it. Imports in use are released after their messages. The other caches stay. */
static void forget(const mca_pml_umrddt_peer_t *peer)
{
    if (NULL != mca_pml_umrddt.gpu) {
        opal_umrddt_gpu_ipc_forget(mca_pml_umrddt_ipc_number(peer));
    }
}

static bool rts_valid(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_ipc_rts_valid(&recv->rts)
           && (0 == (MCA_PML_UMRDDT_DONE_FLAG & recv->rts.schemes)
               || NULL != mca_pml_umrddt_ipc_done_flags(recv->peer));
}

static const char *check(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);

    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_INFO_REQ != recv->state || NULL != ipc->requested,
                         "receives: one that has asked notes what");
    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_COPY != recv->state
                             || (NULL != ipc->copy && (NULL != ipc->import || recv->peer->self)),
                         "receives: memory that is copied from is mapped");
    return NULL;
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_ipc = {
    .id = MCA_PML_UMRDDT_SCHEME_IPC,
    .bit = MCA_PML_UMRDDT_BIT_IPC,
    .group = MCA_PML_UMRDDT_BIT_IPC,
    .flag = true,
    .open = scheme_open,
    .close = scheme_close,
    .reaches = mca_pml_umrddt_copy_reaches,
    .can_send = can_send,
    .offer = offer,
    .rts_valid = rts_valid,
    .announce = announce,
    .answered = answered,
    .peer_forget = forget,
    .peer_free = mca_pml_umrddt_ipc_free,
    .peer_check = mca_pml_umrddt_ipc_check,
    .cached = &mca_pml_umrddt.counters.ipc_layout_bytes_now,
    .process_check = opal_umrddt_gpu_ipc_check,
    .can_recv = mca_pml_umrddt_ipc_can_recv,
    .start = start,
    .nack = nack,
    .recv_release = release,
    .reply = reply_came,
    .check = check,
};
