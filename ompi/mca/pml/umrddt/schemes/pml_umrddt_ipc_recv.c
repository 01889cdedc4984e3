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
 * Messages from GPU memory of the same node: the receiver. Read pml_umrddt_ipc.h first.
 *
 *      MATCHED -> LOOK --(complete)-----------------------> COPY -> ACK
 *                  |  \                               /    |
 *                  |   +--(INFO_REQ)--> INFO_REQ -------+     |
 *                  |                     |                 |
 *                  +---------------------+-----------------+--> FALLBACK
 *
 * test/model/ipc.pml is a verified model of it. Two kinds of messages wait in LOOK: those that need
 * an item which another message has requested, and those for which the engine has no resources
 * while it copies for others.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_check_schemes.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/** Number of active copies of all messages. */
static unsigned copies;

static bool copied(void *owner);

void mca_pml_umrddt_ipc_refuse(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&recv->wait);
    /* The sender offers the HCA here as an alternative for the model, not as a fallback. */
    recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_HCA;
    recv->reason = &counters->fallback_ipc;
    mca_pml_umrddt_recv_next(recv);
}

static void wait_for(mca_pml_umrddt_recv_t *recv, bool (*retry)(void *))
{
    mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, retry, recv);
}

bool mca_pml_umrddt_ipc_engine_for(const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine)
{
    opal_umrddt_gpu_memory_t memory;

    return (opal_umrddt_gpu_device_find(uuid, &memory)
            || opal_umrddt_gpu_device_find(NULL, &memory))
           && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, engine);
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
        MCA_PML_UMRDDT_COUNT(ipc_done_flags);
    } else {
        mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_ACK, &reply);
        reply.total = recv->total;
        reply.what = NULL == done_flags ? 0 : MCA_PML_UMRDDT_CAN_SET_FLAG;
        (void) mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply);
    }
    MCA_PML_UMRDDT_COUNT(recvs_ipc);
    MCA_PML_UMRDDT_COUNT_ADD(ipc_bytes, recv->total);
    mca_pml_umrddt_recv_done(recv);
}

/** Retry function in state COPY. */
static bool copied(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    int rc = opal_umrddt_gpu_copy_test(ipc->copy);

    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    ipc->copy = NULL;
    --copies;
    if (OPAL_SUCCESS == rc) {
        finish(recv);
    } else {
        mca_pml_umrddt_ipc_refuse(recv);
    }
    return true;
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

    wrong = __builtin_add_overflow(rts->buffer, rts->lb, &lowest);
    wrong = (NULL == ipc->from ? __builtin_add_overflow(lowest, rts->length, &end)
                               : __builtin_add_overflow(rts->buffer, ipc->from->ub, &end))
            || wrong;
    if (wrong) {
        return false;
    }
    here = opal_umrddt_gpu_import_address(ipc->import, lowest, end);
    from->layout = ipc->from;
    from->address = NULL == ipc->from ? here : here - (uint64_t) rts->lb;
    from->kind = OPAL_UMRDDT_GPU_DEVICE;
    from->reached = true;
    from->on_device = opal_umrddt_gpu_import_on_device(ipc->import);
    return 0 != here;
}

/** Start the copy; in state LOOK, with all information. */
static bool copy(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    opal_umrddt_gpu_copy_end_t from,
        to = {.layout = recv->layout,
              .address = (uintptr_t) recv->buf,
              .kind = recv->where.memory.kind,
              .reached = opal_umrddt_gpu_on_gpu(&recv->where),
              .on_device = mca_pml_umrddt_on_engine_device(&recv->where, ipc->engine)};
    int rc;

    if (!copy_end(recv, &from)) {
        mca_pml_umrddt_ipc_refuse(recv);
        return true;
    }
    rc = opal_umrddt_gpu_copy(ipc->engine, &from, &to, 0, recv->total, &ipc->copy);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc && 0 < copies) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        ipc->copy = NULL;
        mca_pml_umrddt_ipc_refuse(recv);
        return true;
    }
    ++copies;
    recv->state = MCA_PML_UMRDDT_RECV_COPY;
    if (!copied(recv)) {
        wait_for(recv, copied);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Cached and missing information
 * ------------------------------------------------------------------------------------------- */

/** Retry function in state LOOK: copy if nothing is missing. Otherwise send an INFO_REQ, or wait
 * for the one of another message. */
static bool look(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    uint32_t lacks = 0;

    if (NULL == ipc->engine) {
        ipc->engine = mca_pml_umrddt_ipc_import_engine(recv->peer, recv->rts.buffer_id);
    }
    if (NULL == ipc->import
        && (NULL == ipc->engine
            || OPAL_SUCCESS
                   != opal_umrddt_gpu_import_find(ipc->engine,
                                                  mca_pml_umrddt_ipc_number(recv->peer),
                                                  recv->rts.buffer_id, &ipc->import))) {
        ipc->import = NULL;
        lacks |= MCA_PML_UMRDDT_INFO_EXPORT;
    }
    if (1 < recv->rts.pieces && NULL == ipc->from) {
        ipc->from = mca_pml_umrddt_ipc_layout(recv->peer, &recv->rts);
        lacks |= NULL == ipc->from ? MCA_PML_UMRDDT_INFO_LAYOUT : 0;
    }
    if (OPAL_LIKELY(0 == lacks)) {
        return copy(recv);
    }
    if (mca_pml_umrddt_ipc_is_refused(recv->peer, recv->rts.buffer_id,
                                      opal_umrddt_gpu_on_gpu(&recv->where) ? ipc->engine : NULL)) {
        mca_pml_umrddt_ipc_refuse(recv);
        return true;
    }
    if (mca_pml_umrddt_ipc_has_info_req(recv, lacks)) {
        return false;
    }
    mca_pml_umrddt_ipc_info_req(recv, lacks);
    return true;
}

void mca_pml_umrddt_ipc_go_on(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_LOOK;
    if (!look(recv)) {
        wait_for(recv, look);
    }
}

/* ---------------------------------------------------------------------------------------------
 * From the match to the end
 * ------------------------------------------------------------------------------------------- */

static bool can_recv(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_ipc_chosen(&recv->rts, recv->peer);
}

/** Returns true if a GPU can copy into the buffer: sets the engine, or the engine of another
 * device is selected later. */
static bool has_engine(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    opal_umrddt_gpu_memory_t memory;

    if (opal_umrddt_gpu_on_gpu(&recv->where)) {
        if (OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&recv->where.memory, &ipc->engine)) {
            return true;
        }
        ipc->engine = NULL;
        return false;
    }
    return NULL != mca_pml_umrddt_ipc_import_engine(recv->peer, recv->rts.buffer_id)
           || opal_umrddt_gpu_device_find(NULL, &memory);
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    recv->scheme = MCA_PML_UMRDDT_SCHEME_IPC;
    if (!mca_pml_umrddt_recv_has_layout(recv)) {
        recv->candidates = 0;
        recv->reason = &counters->fallback_other;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (recv->where.mixed || !has_engine(recv)) {
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
        mca_pml_umrddt_ipc_info_req_close();
        opal_umrddt_gpu_ipc_close();
        opal_umrddt_done_flags_close();
    }
}

static const char *process_check(void)
{
    return NULL == mca_pml_umrddt.gpu ? NULL : opal_umrddt_gpu_ipc_check();
}

/** Unmap the memory of a process that shares no communicator any more, so that its owner can free
 * it. Imports in use are released after their messages. The other caches stay. */
static void forget(const mca_pml_umrddt_peer_t *peer)
{
    if (NULL != mca_pml_umrddt.gpu) {
        opal_umrddt_gpu_ipc_forget(mca_pml_umrddt_ipc_number(peer));
    }
}

static bool reaches(const mca_pml_umrddt_peer_t *peer)
{
    return mca_pml_umrddt_ipc_reaches(peer);
}

static bool rts_valid(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_ipc_rts_valid(&recv->rts)
           && (0 == (MCA_PML_UMRDDT_DONE_FLAG & recv->rts.schemes)
               || NULL != mca_pml_umrddt_ipc_done_flags(recv->peer));
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_ipc = {
    .id = MCA_PML_UMRDDT_SCHEME_IPC,
    .bit = MCA_PML_UMRDDT_BIT_IPC,
    .group = MCA_PML_UMRDDT_BIT_IPC,
    .flag = true,
    .open = scheme_open,
    .close = scheme_close,
    .reaches = reaches,
    .can_send = mca_pml_umrddt_ipc_can_send,
    .offer = mca_pml_umrddt_ipc_offer,
    .rts_valid = rts_valid,
    .announce = announce,
    .answered = mca_pml_umrddt_ipc_answered,
    .peer_forget = forget,
    .peer_free = mca_pml_umrddt_ipc_free,
    .peer_check = mca_pml_umrddt_ipc_check,
    .cached = &mca_pml_umrddt.counters.ipc_layout_bytes_now,
    .process_check = process_check,
    .can_recv = can_recv,
    .start = start,
    .nack = nack,
    .recv_release = release,
    .reply = mca_pml_umrddt_ipc_reply,
    .check = mca_pml_umrddt_check_ipc,
};
