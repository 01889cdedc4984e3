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
 * Receiver's half of the last scheme: the base PML carries a handled message. Also receives plain
 * messages into overflow buffers. See pml_umrddt_scheme.h first.
 */

#include "ompi_config.h"

#include <stddef.h>
#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/** Retry function of a wait: the copy to the user's buffer is in progress. */
static bool unstaged(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    int rc = opal_umrddt_gpu_stream_copy_test(&recv->transit);

    if (OMPI_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, recv->status._ucount, true, rc);
        recv->status.MPI_ERROR = MPI_ERR_OTHER;
    }
    opal_umrddt_gpu_stage_put(&recv->overflow);
    mca_pml_umrddt_recv_finish(recv, recv->status.MPI_ERROR, recv->status._ucount);
    return true;
}

/** Copy packed bytes to the user's buffer, then end the receive with recv->status. The bytes are
 * valid until then. */
static void unstage(mca_pml_umrddt_recv_t *recv, void *bytes, opal_umrddt_gpu_kind_t kind,
                    size_t length)
{
    int rc, tries = 2; /* the data would be lost: retry once */

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_UNSTAGE;
    mca_pml_umrddt_recv_look(recv);
    if (!opal_umrddt_gpu_on_device(&recv->where)) {
        opal_umrddt_gpu_stream_unpack(recv->buf, recv->count, &recv->datatype->super, bytes,
                                      length);
        opal_umrddt_gpu_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, recv->status.MPI_ERROR, recv->status._ucount);
        return;
    }
    do {
        rc = mca_pml_umrddt_transit(&recv->transit, recv->buf, recv->count, recv->datatype,
                                    &recv->where, bytes, kind, length, true);
    } while (OMPI_SUCCESS != rc && 0 < --tries);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(&recv->where, recv->status._ucount, true, rc);
        opal_umrddt_gpu_stage_put(&recv->overflow);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, recv->status._ucount);
        return;
    }
    MCA_PML_UMRDDT_COUNT(staged_recvs);
    MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, length);
    mca_pml_umrddt_poll(&recv->wait, unstaged, recv);
}

/** A small message was staged into GPU memory: pml_umrddt_recv_post.c has the rule of hints. */
static void hint(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_comm_t *comm = recv->comm, *world = mca_pml_umrddt_world();
    const int src = recv->status.MPI_SOURCE;
    mca_pml_umrddt_hint_header_t notice = {.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_HINT),
                                           .comm = UMRDDT_COMM_ID(comm->comm),
                                           .rank = (uint32_t) ompi_comm_rank(comm->comm),
                                           .tag = recv->status.MPI_TAG};
    mca_pml_umrddt_peer_t *peer;

    if (0 > notice.tag || comm->bypass || !mca_pml_umrddt.params.small_hints
        || 0 == (MCA_PML_UMRDDT_BITS_COPY & comm->schemes)
        || MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
        || MCA_PML_UMRDDT_CONTIGUOUS_DEFER == mca_pml_umrddt.params.contiguous
        || (mca_pml_umrddt.host_keeps && OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(comm->comm))
        || NULL == (peer = mca_pml_umrddt_peer(comm, src)) || !mca_pml_umrddt_copy_reaches(peer)
        || NULL == world
        || peer != mca_pml_umrddt_peer(world, (int) mca_pml_umrddt_peer_rank(peer))) {
        return;
    }
    if (!comm->keeps) {
        umrddt_gate_keep(&comm->gate);
        /* No receive that has not tested this flag is being posted, with the lock or without. Do
         * not wait for the lock here: the next message tries again. */
        if (0 == OPAL_THREAD_TRYLOCK(&comm->gate.lock)) {
            __atomic_store_n(&comm->keeps, umrddt_gate_is_empty(&comm->gate), __ATOMIC_RELAXED);
            OPAL_THREAD_UNLOCK(&comm->gate.lock);
        }
    } else if (recv->kept && mca_pml_umrddt_hints(comm)
               && opal_umrddt_hint_due(comm->hints, &peer->hint_pace, src, notice.tag)) {
        notice.time = mca_pml_umrddt_time();
        (void) mca_pml_umrddt_control(world, (int) mca_pml_umrddt_peer_rank(peer),
                                      mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_NACK, 0), &notice,
                                      sizeof(notice), false);
    }
}

void mca_pml_umrddt_recv_plain_active(mca_pml_umrddt_recv_t *recv)
{
    unsigned char *bytes = mca_pml_umrddt_recv_bounce(recv);
    size_t capacity = recv->count * recv->datatype->super.size;
    size_t length = recv->status._ucount;

    /* Of a message that is too long, only pml/ob1 delivers all bytes that fit. With other base PMLs
     * the rest of the buffer may hold bytes of earlier messages. */
    if (MPI_SUCCESS != recv->status.MPI_ERROR
        && (!mca_pml_umrddt.host_keeps || mca_pml_umrddt_bounce_empty(bytes))) {
        length = 0;
    } else if (capacity < length) {
        length = capacity;
        if (MPI_SUCCESS == recv->status.MPI_ERROR) {
            recv->status.MPI_ERROR = MPI_ERR_TRUNCATE;
        }
    }
    if (length < mca_pml_umrddt.params.min_size && 0 < length && NULL != recv->stage.bytes
        && opal_umrddt_gpu_on_device(&recv->where)) {
        hint(recv);
    }
    unstage(recv, bytes, NULL == recv->stage.bytes ? OPAL_UMRDDT_GPU_HOST : recv->stage.kind,
            length);
}

static void plain_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;

    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_recv_plain_active(recv);
}

void mca_pml_umrddt_recv_plain(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_UNSTAGE, plain_event);
}

/** The base PML received into the overflow buffer: copy the bytes that fit to the user. */
static void overflow_out(mca_pml_umrddt_recv_t *recv)
{
    ompi_status_public_t *status = &recv->status;
    size_t length = status->_ucount < recv->total ? status->_ucount : recv->total;

    if (MPI_SUCCESS != status->MPI_ERROR) {
        length = 0;
    } else if (status->_ucount > recv->total) {
        status->MPI_ERROR = MPI_ERR_TRUNCATE;
    }
    unstage(recv, recv->overflow.bytes, recv->overflow.kind, length);
}

static bool host_received(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    ompi_status_public_t status;

    if (!REQUEST_COMPLETE(recv->data)) {
        return false;
    }
    status = recv->data->req_status;
    ompi_request_free(&recv->data);
    recv->data = NULL;
    if (!recv->named) {
        status.MPI_SOURCE = recv->status.MPI_SOURCE;
        status.MPI_TAG = recv->status.MPI_TAG;
        if (MPI_SUCCESS == status.MPI_ERROR && status._ucount != recv->rts.length) {
            status.MPI_ERROR = MPI_ERR_OTHER; /* the sender could not read its buffer */
        }
    }
    recv->status = status;
    if (NULL != recv->overflow.bytes) {
        overflow_out(recv);
    } else {
        mca_pml_umrddt_recv_finish(recv, status.MPI_ERROR, status._ucount);
    }
    return true;
}

static void await_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;

    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_poll(&recv->wait, host_received, recv);
}

void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv)
{
    recv->named = true;
    recv->total = (uint64_t) recv->count * recv->datatype->super.size;
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_BASE, await_event);
}

/**
 * Allocate an overflow buffer if one is needed. A message that is too long needs one: the envelope
 * may be in the user's buffer, and would stay visible there, since some base PMLs deliver nothing
 * of a truncated message. Memory or datatypes that the base PML cannot receive need one too.
 *
 * @return OMPI_SUCCESS, with recv->overflow if it is needed and available; or the error of the
 *     message
 */
static int get_overflow(mca_pml_umrddt_recv_t *recv)
{
    bool must =
        !mca_pml_umrddt_base_touches(&recv->where)
        || opal_umrddt_gpu_is_cut(&mca_pml_umrddt.cuts, &recv->datatype->super, recv->count);
    int rc = OMPI_SUCCESS;

    if (must || recv->total < recv->rts.length) {
        rc = opal_umrddt_gpu_stage_get(&recv->where.memory, recv->rts.length, &recv->overflow);
    }
    return must ? rc : OMPI_SUCCESS;
}

/** Send FALLBACK; or, with an error, an ACK that ends the message. */
static void notify_sender(mca_pml_umrddt_recv_t *recv, int rc)
{
    mca_pml_umrddt_reply_t reply;

    if (OMPI_SUCCESS != rc) {
        opal_umrddt_gpu_stage_put(&recv->overflow);
        opal_output(0, "pml:umrddt: the base PML refused a receive (%d)", rc);
        mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_ACK, &reply);
    } else {
        mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_FALLBACK, &reply);
        if (NULL != recv->pair) {
            reply.what = MCA_PML_UMRDDT_CHOSEN | (recv->converged ? MCA_PML_UMRDDT_DECLINED : 0u)
                         | mca_pml_umrddt_recv_memory(recv);
        }
        if (NULL != recv->endpoint) {
            /* the sender would otherwise offer the endpoint again with its next message */
            (void) mca_pml_umrddt.hca->endpoint_refuses(recv->endpoint, &recv->rts.address,
                                                        &reply.address);
        }
    }
    (void) mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, 0);
    } else {
        mca_pml_umrddt_poll(&recv->wait, host_received, recv);
    }
}

/**
 * Post the receive of the whole message at the base PML. Retry function of a wait.
 *
 * @return false: the base PML refused; retry later
 */
static bool posted(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    bool spilled = NULL != recv->overflow.bytes;
    int rc = mca_pml_umrddt.host.pml_irecv(
        spilled ? recv->overflow.bytes : recv->buf, spilled ? recv->rts.length : recv->count,
        spilled ? &ompi_mpi_byte.dt : recv->datatype, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_DATA, recv->rts.request_id), recv->comm->comm,
        &recv->data);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        recv->data = NULL;
        MCA_PML_UMRDDT_COUNT(control_refused);
        if (!mca_pml_umrddt_given_up(rc, &recv->refused)) {
            return false;
        }
    }
    notify_sender(recv, rc);
    return true;
}

/** Make the sender send by the base PML. */
static void by_host(mca_pml_umrddt_recv_t *recv)
{
    int rc;

    mca_pml_umrddt_recv_release(recv);
    recv->state = MCA_PML_UMRDDT_RECV_BASE;
    if (OPAL_UNLIKELY(NULL != recv->split) && recv->split->by_base(recv)) {
        return;
    }
    recv->named = false;
    recv->refused = 0;
    rc = get_overflow(recv);
    if (OMPI_SUCCESS != rc) {
        notify_sender(recv, rc);
    } else {
        mca_pml_umrddt_poll(&recv->wait, posted, recv);
    }
}

/** The text of a reason for a fallback: a counter's help. */
static const char *reason_of(const uint64_t *reason)
{
    static const char before[] = "Of these: ";
#define HELP(name, help) help,
    static const char *const helps[] = {MCA_PML_UMRDDT_COUNTERS(HELP)};
    const char *help = helps[reason - (const uint64_t *) &mca_pml_umrddt.counters];

    return 0 == strncmp(before, help, sizeof(before) - 1) ? help + sizeof(before) - 1 : help;
}

/** Bit of a reason in mca_pml_umrddt_peer_t.logged. */
static unsigned reason_bit(const uint64_t *reason)
{
    _Static_assert(offsetof(mca_pml_umrddt_counters_t, fallback_other)
                           - offsetof(mca_pml_umrddt_counters_t, fallback_small)
                       < 15 * sizeof(uint64_t),
                   "logged has a bit for each reason");
    return NULL == reason ? 0x8000u : 1u << (reason - &mca_pml_umrddt.counters.fallback_small);
}

/** Log a fallback or a declined message: the first one of a kind from a peer, or each. */
static __opal_attribute_noinline__ void log_base(mca_pml_umrddt_recv_t *recv)
{
    const unsigned bit = reason_bit(recv->reason);

    if (mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_MESSAGE)
        || (mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_SELECTION) && 0 == (bit & recv->peer->logged))) {
        MCA_PML_UMRDDT_LOG("%llu bytes from rank %u: %s: %s", (unsigned long long) recv->rts.length,
                           mca_pml_umrddt_peer_rank(recv->peer),
                           NULL == recv->reason ? "declined" : "fallback to the base PML",
                           NULL == recv->reason ? "the base PML is predicted to be faster"
                                                : reason_of(recv->reason));
    }
    recv->peer->logged |= (uint16_t) bit;
}

static int start(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    log_base(recv);
    if (NULL == recv->reason) {
        MCA_PML_UMRDDT_COUNT(declined_recvs);
    } else {
        MCA_PML_UMRDDT_COUNT(fallback_recvs);
        ++*recv->reason; /* progress thread only */
        if (OPAL_UNLIKELY(NULL != recv->pair)) {
            mca_pml_umrddt_select_failed(recv);
        }
    }
    by_host(recv);
    return OMPI_SUCCESS;
}

/** The NACK crossed the FALLBACK: the base PML carries the message. */
static mca_pml_umrddt_nack_t nack(mca_pml_umrddt_recv_t *recv,
                                  const mca_pml_umrddt_nack_header_t *fail)
{
    (void) recv;
    (void) fail;
    return MCA_PML_UMRDDT_NACK_ACK;
}

/** No scheme holds anything for a message that the base PML carries. */
static const char *check(const mca_pml_umrddt_recv_t *recv)
{
    static const unsigned char nothing[MCA_PML_UMRDDT_RECV_HELD];

    MCA_PML_UMRDDT_HOLDS(0 == recv->fin && 0 == memcmp(recv->held, nothing, sizeof(nothing)),
                         "receives: no scheme holds anything of what the base PML brings");
    return NULL;
}

const mca_pml_umrddt_scheme_t mca_pml_umrddt_scheme_base = {
    .id = MCA_PML_UMRDDT_SCHEME_BASE,
    .bit = MCA_PML_UMRDDT_BIT_BASE,
    .start = start,
    .nack = nack,
    .check = check,
};
