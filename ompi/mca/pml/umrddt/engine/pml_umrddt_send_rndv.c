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
 * The sender's engine: sends the envelope, receives replies, validates their headers, and hands
 * each to its scheme (pml_umrddt_scheme.h). It handles FALLBACK and ACK itself.
 *
 *     start ----> REPLY --(CTS, INFO_REQ, ...)--> scheme --(more)--> REPLY
 *                   |                               |  \
 *                   |                               |   +--(all)--> DRAIN -> complete
 *                   +--FALLBACK--> base PML --------|-------------> DRAIN
 *                   +--ACK--------------------------|-------------> DRAIN
 *                 FAILED <--------------------------+ when the scheme cannot continue; the receiver
 *                            then answers FALLBACK or ACK, depending on the data that arrived
 *
 * test/model/message.pml is a model of this protocol, which is checked.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_groups.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/* ---------------------------------------------------------------------------------------------
 * Start: the envelope
 * ------------------------------------------------------------------------------------------- */

/** Prepare the envelope. On error nothing is held. */
static int prepare(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;
    bool has_id;

    send->written = 0;
    send->ops = NULL;
    send->await = NULL;
    send->reported = false;
    memset(send->held, 0, sizeof(send->held));
    send->endpoint = NULL;
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    has_id = umrddt_id_take(&mca_pml_umrddt.request_ids, MCA_PML_UMRDDT_MAX_REQUEST_IDS,
                            &send->request_id);
    rts->seq = ++mca_pml_umrddt.seq;
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    if (OPAL_UNLIKELY(!has_id)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    send->total = send->layout->size;
    send->position = 0;

    rts->magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS);
    memcpy(rts->cookie, mca_pml_umrddt.self.cookie, sizeof(rts->cookie));
    rts->length = send->layout->size;
    rts->pieces =
        UINT32_MAX < send->layout->iov_count ? UINT32_MAX : (uint32_t) send->layout->iov_count;
    rts->request_id = send->request_id;
    rts->slots = (uint16_t) mca_pml_umrddt.params.key_sets;
    rts->flats = (uint16_t) mca_pml_umrddt.params.direct_layouts;
    rts->chunk = 0;
    rts->write_pieces = 1;
    memset(&rts->address, 0, sizeof(*rts) - offsetof(mca_pml_umrddt_rts_t, address));
    rts->schemes = 0;
    mca_pml_umrddt_schemes_offer(send);
    if (OPAL_UNLIKELY(0 == rts->schemes)) {
        mca_pml_umrddt_send_request_id_release(send);
        return OMPI_ERR_UNREACH;
    }
    if (OPAL_UNLIKELY(send->declinable)) {
        rts->schemes |= MCA_PML_UMRDDT_MAY_DECLINE;
    }
    return OMPI_SUCCESS;
}

/** Cancel the receive for a reply, which will not arrive. */
static void unlisten(mca_pml_umrddt_send_t *send)
{
    send->listen->req_complete_cb = NULL;
    mca_pml_umrddt_request_clear(send->listen);
    (void) ompi_request_cancel(send->listen);
    ompi_request_free(&send->listen);
    send->listen = NULL;
}

/** Undo prepare, and cancel the receive for the reply. */
static void unprepare(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_range_end(&send->range);
    if (NULL != send->listen) {
        unlisten(send);
    }
    if (OPAL_UNLIKELY(NULL != send->split)) {
        send->split->drop(send);
    }
    mca_pml_umrddt_send_request_id_release(send);
    mca_pml_umrddt_send_unhold(send);
}

/** Returns true if this start of a persistent request is passed through. Uses the same tests and
 * counters as pml_umrddt_send.c for other sends. */
static bool deferred(mca_pml_umrddt_send_t *send)
{
    if (OPAL_LIKELY(0 == send->offer
                    || !opal_umrddt_offer_pauses(&mca_pml_umrddt.offers, send->offer))) {
        return false;
    }
    if (send->probes_memory && (NULL == mca_pml_umrddt.hca || !send->peer->has_hca)) {
        /* handling helps only if the receive buffer is in GPU memory */
        MCA_PML_UMRDDT_COUNT(passed_memory);
    } else {
        MCA_PML_UMRDDT_COUNT(passed_model);
    }
    return true;
}

/** Returns true if this start of a persistent request, staged at first, is handled. */
static bool starts_small(const mca_pml_umrddt_send_t *send)
{
    return send->super.req_persistent && NULL != send->peer
           && MCA_PML_BASE_SEND_BUFFERED != send->mode
           && send->layout->size < mca_pml_umrddt.params.min_size
           && mca_pml_umrddt_small_wanted(send->comm, send->peer, &send->where, send->dst,
                                          send->tag);
}

/** A message could not be offered: pass this start of a persistent request through. */
static int not_offered(mca_pml_umrddt_send_t *send, int rc)
{
    if (!send->super.req_persistent) {
        return rc;
    }
    MCA_PML_UMRDDT_COUNT(passed_other);
    return mca_pml_umrddt_send_start_plain(send);
}

/** Count a message whose envelope was sent. One test of the threads for all counters. */
static inline void count(const mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_counters_t *counters = &mca_pml_umrddt.counters;

    if (OPAL_UNLIKELY(send->probes_memory)) {
        MCA_PML_UMRDDT_COUNT(probe_sends);
    }
    if (opal_using_threads()) {
        MCA_PML_UMRDDT_COUNT(handled_sends);
        MCA_PML_UMRDDT_COUNT_ADD(handled_bytes, send->layout->size);
        MCA_PML_UMRDDT_COUNT(control_messages);
        MCA_PML_UMRDDT_COUNT_ADD(control_bytes, sizeof(send->rts));
    } else {
        ++counters->handled_sends;
        counters->handled_bytes += send->layout->size;
        ++counters->control_messages;
        counters->control_bytes += sizeof(send->rts);
    }
}

int mca_pml_umrddt_send_start(mca_pml_umrddt_send_t *send)
{
    /* the reply shows that the message was matched, as a synchronous send requires */
    mca_pml_base_send_mode_t mode = MCA_PML_BASE_SEND_READY == send->mode
                                        ? MCA_PML_BASE_SEND_READY
                                        : MCA_PML_BASE_SEND_STANDARD;
    ompi_request_t *envelope = NULL;
    void (*await)(void *);
    int rc;

    mca_pml_umrddt_release_reset(&send->release);
    send->super.req_state = OMPI_REQUEST_ACTIVE;
    send->super.req_complete = REQUEST_PENDING;
    send->super.req_status.MPI_ERROR = MPI_SUCCESS;
    send->super.req_status._cancelled = 0;
    send->pack_error = false;
    send->offered = send->chosen = send->left = false;
    if (send->super.req_persistent && NULL != mca_pml_umrddt.gpu) {
        /* the same address may be other memory by now */
        (void) mca_pml_umrddt_memory_of(send->comm, send->buf, send->count, send->datatype,
                                        MCA_PML_UMRDDT_SENDER, &send->where);
    }
    if (send->plain ? !starts_small(send) : send->super.req_persistent && deferred(send)) {
        return mca_pml_umrddt_send_start_plain(send);
    }

    rc = prepare(send);
    if (OMPI_SUCCESS != rc) {
        return not_offered(send, rc);
    }
    /* complete the state first: the reply may arrive before isend returns */
    send->state = MCA_PML_UMRDDT_SEND_REPLY;
    send->offered = true;
    send->hold = opal_umrddt_gpu_memory_hold(&send->where.memory, opal_using_threads());
    mca_pml_umrddt_active(1);
    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.ranges)) {
        send->range = mca_pml_umrddt_range(0, "send", send->total);
    }
    send->envelope = MPI_REQUEST_NULL;
    await = send->await;
    rc = NULL != await ? OMPI_SUCCESS : mca_pml_umrddt_send_listen(send);
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt.host.pml_isend(&send->rts, sizeof(send->rts), &ompi_mpi_byte.dt,
                                           send->dst, send->tag, mode, send->comm->comm, &envelope);
    }
    if (OMPI_SUCCESS != rc) {
        send->envelope = NULL;
        unprepare(send);
        mca_pml_umrddt_active(-1);
        send->state = MCA_PML_UMRDDT_SEND_IDLE;
        send->offered = false;
        return not_offered(send, rc);
    }
    __atomic_store_n(&send->envelope, envelope, __ATOMIC_RELEASE);
    if (NULL != await) {
        /* only this event ends the message, so it is still in progress */
        mca_pml_umrddt_event(&send->event, await, send);
    }
    count(send);
    return OMPI_SUCCESS;
}

static void reply_event(void *owner);

/* ---------------------------------------------------------------------------------------------
 * End of a message
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_send_request_id_release(mca_pml_umrddt_send_t *send)
{
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    umrddt_id_give(&mca_pml_umrddt.request_ids, send->request_id);
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
}

static void complete(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_range_end(&send->range);
    send->state = MCA_PML_UMRDDT_SEND_IDLE;
    mca_pml_umrddt_active(-1);
    mca_pml_umrddt_send_unhold(send);
    ompi_request_complete(&send->super, true);
    if (OPAL_UNLIKELY(mca_pml_umrddt_release(&send->release, MCA_PML_UMRDDT_COMPLETED))) {
        (void) __atomic_fetch_sub(&mca_pml_umrddt.freed, 1, __ATOMIC_RELAXED);
        mca_pml_umrddt_send_return(send);
    }
}

/** The base PML reads the envelope from send->rts until its request is complete. */
static bool drained(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    ompi_request_t *envelope = __atomic_load_n(&send->envelope, __ATOMIC_ACQUIRE);

    if (NULL != envelope) {
        /* MPI_REQUEST_NULL: the sending thread has not yet returned from the base PML */
        if (MPI_REQUEST_NULL == envelope || !REQUEST_COMPLETE(envelope)) {
            return false;
        }
        ompi_request_free(&send->envelope);
        send->envelope = NULL;
    }
    complete(send);
    return true;
}

/** Release what the scheme holds. */
static inline void scheme_release(mca_pml_umrddt_send_t *send)
{
    if (OPAL_LIKELY(NULL != send->ops) && NULL != send->ops->send_release) {
        send->ops->send_release(send);
    }
}

void mca_pml_umrddt_send_finish(mca_pml_umrddt_send_t *send, int error)
{
    /* the base PML may have refused the receive for replies */
    mca_pml_umrddt_wait_cancel(&send->wait);
    scheme_release(send);
    if (OPAL_UNLIKELY(send->reported)
        && 0 != __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED)) {
        /* a queued INFO names memory that belongs to the user again, and the next message with this
         * request id may receive an INFO_REQ */
        mca_pml_umrddt_control_withdraw(
            send->comm, send->dst, mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, send->request_id),
            send->rts.seq);
    }
    if (OPAL_UNLIKELY(NULL != send->stage.bytes)) {
        opal_umrddt_gpu_stage_put(&send->stage);
    }
    if (NULL != send->memory) {
        mca_pml_umrddt.hca->memory_release(send->memory);
        __atomic_store_n(&send->memory, NULL, __ATOMIC_RELAXED); /* see send_let_go */
    }
    if (OPAL_UNLIKELY(NULL != send->split) && send->split->ended(send, error)) {
        return;
    }
    if (OPAL_UNLIKELY(0 != send->offer) && send->offered && !send->probes_memory) {
        opal_umrddt_offer_learn(&mca_pml_umrddt.offers, send->offer, send->left);
    }
    if (NULL != send->listen) {
        unlisten(send);
    }
    mca_pml_umrddt_send_request_id_release(send);
    send->super.req_status.MPI_ERROR = error;
    send->super.req_status._ucount = send->layout->size;
    send->state = MCA_PML_UMRDDT_SEND_DRAIN;
    if (!drained(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, drained, send);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Replies
 * ------------------------------------------------------------------------------------------- */

/** Callback of the base PML: a reply is in send->reply. */
static int reply_arrived(ompi_request_t *request)
{
    mca_pml_umrddt_send_t *send = __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);

    mca_pml_umrddt_event(&send->event, reply_event, send);
    return 0;
}

/** mca_pml_umrddt_send_listen in a single-threaded process: no other thread can complete the
 * request before its callback is set. */
static int listen_alone(mca_pml_umrddt_send_t *send)
{
    int rc = mca_pml_umrddt.host.pml_irecv(
        send->reply, mca_pml_umrddt_reply_room(), &ompi_mpi_byte.dt, send->dst,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, send->request_id), send->comm->comm,
        &send->listen);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        send->listen = NULL;
    } else if (OPAL_UNLIKELY(REQUEST_COMPLETE(send->listen))) {
        /* the reply was received immediately */
        mca_pml_umrddt_event(&send->event, reply_event, send);
    } else {
        send->listen->req_complete_cb = reply_arrived;
        send->listen->req_complete_cb_data = send;
    }
    return rc;
}

/** Post a receive for the next reply. The callback is set before the request is started, so that no
 * reply is missed in between, whatever other threads do. */
int mca_pml_umrddt_send_listen(mca_pml_umrddt_send_t *send)
{
    ompi_request_t *request;
    int rc;

    if (OPAL_UNLIKELY(NULL != send->split) && send != send->split->parent) {
        return send->split->listen(send);
    }
    if (!opal_using_threads()) {
        return listen_alone(send);
    }

    rc = mca_pml_umrddt.host.pml_irecv_init(
        send->reply, mca_pml_umrddt_reply_room(), &ompi_mpi_byte.dt, send->dst,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, send->request_id), send->comm->comm, &request);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    request->req_complete_cb = reply_arrived;
    send->listen = request;
    /* the callback may run in another thread */
    __atomic_store_n(&request->req_complete_cb_data, (void *) send, __ATOMIC_RELEASE);
    rc = mca_pml_umrddt.host.pml_start(1, &request);
    if (OMPI_SUCCESS != rc) {
        request->req_complete_cb = NULL;
        mca_pml_umrddt_request_clear(request);
        send->listen = NULL;
        ompi_request_free(&request);
    }
    return rc;
}

/** Retry function of a wait: the base PML refused the receive; try again. */
static bool listen_again(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int rc = mca_pml_umrddt_send_listen(send);

    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        return true;
    }
    MCA_PML_UMRDDT_COUNT(control_refused);
    if (mca_pml_umrddt_given_up(rc, &send->refused)) {
        mca_pml_umrddt_control_fatal(send->comm, send->dst, rc);
    }
    return false;
}

void mca_pml_umrddt_send_await(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(NULL != send->wait.list)) {
        return; /* the retry is already scheduled */
    }
    send->refused = 0;
    mca_pml_umrddt_poll(&send->wait, listen_again, send);
}

void mca_pml_umrddt_send_fail(mca_pml_umrddt_send_t *send, bool in_flight)
{
    mca_pml_umrddt_nack_header_t notice = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_NACK),
        .seq = send->rts.seq,
        .request_id = send->request_id,
        .in_flight = in_flight,
        .written = send->written,
    };

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    MCA_PML_UMRDDT_COUNT(failures);
    scheme_release(send);
    send->state = MCA_PML_UMRDDT_SEND_FAILED;
    if (NULL == send->listen) {
        mca_pml_umrddt_send_await(send);
    }
    if (OMPI_SUCCESS
        != mca_pml_umrddt_control(send->comm, send->dst,
                                  mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_NACK, 0), &notice,
                                  sizeof(notice), true)) {
        mca_pml_umrddt_send_finish(send, MPI_ERR_OTHER);
    }
}

/** The reply is malformed: end the message with an error. */
void mca_pml_umrddt_send_malformed(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(0, "pml:umrddt: a malformed reply to a message of %llu bytes; the message fails",
                (unsigned long long) send->layout->size);
    mca_pml_umrddt_send_finish(send, MPI_ERR_INTERN);
}

void mca_pml_umrddt_send_report_invalid(const mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(
        0,
        "pml:umrddt: the reply of rank %d for a message of %llu bytes is invalid; the base PML "
        "carries it",
        send->dst, (unsigned long long) send->layout->size);
}

/** The receiver falls back to the base PML. With an address, it refuses that endpoint. */
static void receiver_refused(mca_pml_umrddt_send_t *send, const mca_btl_umr_address_t *address)
{
    if (0 != address->qpn && NULL != send->endpoint) {
        mca_pml_umrddt.hca->endpoint_refused(send->endpoint, address);
    }
}

/**
 * Kind of the reply in send->reply: MCA_PML_UMRDDT_REPLY_OF. All headers begin alike.
 *
 * @return 0 if the header is of no known kind or version
 */
static inline unsigned kind_of(const mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    const uint64_t kind = reply->magic - MCA_PML_UMRDDT_MAGIC(0);

    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_layout_frag_t) > length
                      || MCA_PML_UMRDDT_REPLY_KINDS <= kind)) {
        return 0;
    }
    if (OPAL_LIKELY(MCA_PML_UMRDDT_KIND_REPLY != kind)) {
        return MCA_PML_UMRDDT_REPLY_OF((unsigned) kind);
    }
    return sizeof(*reply) <= length && MCA_PML_UMRDDT_REPLY_KINDS > reply->reply_kind
               ? reply->reply_kind
               : 0;
}

/** Returns true for a reply to an older message with this request id. It arises if both sides give
 * up a round at the same time: the receiver sends FALLBACK, which ends the message, and then also
 * answers the NACK of the sender (test/model/message.pml). */
static bool is_stale(const mca_pml_umrddt_send_t *send, unsigned kind)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    return MCA_PML_UMRDDT_REPLY_ACK == kind && send->request_id == reply->request_id
           && send->rts.seq > reply->seq;
}

/** Record whether the receiver declined the message, and whether it declines the following ones. */
static void chosen(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    send->chosen = MCA_PML_UMRDDT_REPLY_FALLBACK == reply->reply_kind
                   && 0 != (MCA_PML_UMRDDT_CHOSEN & reply->what)
                   && 0 != (MCA_PML_UMRDDT_MAY_DECLINE & send->rts.schemes)
                   && MCA_PML_UMRDDT_SEND_REPLY == send->state && 0 == send->position;
    send->left = send->chosen && 0 != (MCA_PML_UMRDDT_DECLINED & reply->what);
}

/** The receiver ended the message with FALLBACK or ACK. */
static void ended(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    receiver_refused(send, &reply->address);
    if (MCA_PML_UMRDDT_REPLY_FALLBACK == reply->reply_kind) {
        mca_pml_umrddt_send_by_base(send);
    } else {
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
    }
}

/** A reply arrived while a scheme has the message in progress. */
static void replied_in_flight(mca_pml_umrddt_send_t *send, bool ended, bool valid)
{
    if (ended && MCA_PML_UMRDDT_REPLY_FALLBACK == send->reply->reply_kind) {
        receiver_refused(send, &send->reply->address);
    }
    send->ops->replied(send, valid);
}

/** Hand a reply to its scheme, in state REPLY. */
static inline void hand(mca_pml_umrddt_send_t *send, const mca_pml_umrddt_scheme_t *scheme,
                        size_t length)
{
    if (scheme != send->ops) {
        if (OPAL_UNLIKELY(NULL != send->ops)) {
            scheme_release(send);
            memset(send->held, 0, sizeof(send->held));
        }
        send->ops = scheme;
    }
    scheme->reply(send, length);
}

/** A reply of kind REPLY: the schemes that were offered learn from it. */
static void answered(mca_pml_umrddt_send_t *send)
{
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_groups[i];

        if (NULL != scheme->answered && 0 != (scheme->bit & send->rts.schemes)) {
            scheme->answered(send);
        }
    }
}

/** A reply of @p kind to this message. */
static void ours(mca_pml_umrddt_send_t *send, size_t length, unsigned kind)
{
    const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_reply_schemes[kind];
    const bool ends = MCA_PML_UMRDDT_REPLY_FALLBACK == kind || MCA_PML_UMRDDT_REPLY_ACK == kind;

    if (ends) {
        chosen(send);
        mca_pml_umrddt_send_landed(send, send->chosen
                                             && 0 != (MCA_PML_UMRDDT_IN_GPU & send->reply->what));
    }
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_SEND_BUSY == send->state)) {
        replied_in_flight(send, ends, true);
        return;
    }
    if (MCA_PML_UMRDDT_REPLY_OF(0) > kind) {
        answered(send);
    }
    if (ends) {
        ended(send);
    } else if (NULL == scheme) {
        mca_pml_umrddt_send_malformed(send);
    } else if (MCA_PML_UMRDDT_SEND_FAILED == send->state) {
        mca_pml_umrddt_send_await(send); /* the reply crossed the NACK */
    } else {
        hand(send, scheme, length);
    }
}

/** The received data is not a reply to this message. */
static void not_ours(mca_pml_umrddt_send_t *send, unsigned kind)
{
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_SEND_BUSY == send->state)) {
        replied_in_flight(send, false, false);
    } else if (MCA_PML_UMRDDT_REPLY_OF(0) > kind) {
        mca_pml_umrddt_send_malformed(send);
    } else if (MCA_PML_UMRDDT_SEND_FAILED == send->state) {
        mca_pml_umrddt_send_await(send);
    } else {
        mca_pml_umrddt_send_fail(send, false);
    }
}

/** Any reply that the sender does not expect. */
static __opal_attribute_noinline__ void other_reply(mca_pml_umrddt_send_t *send, size_t length,
                                                    unsigned kind, bool is_ours)
{
    if (0 != kind && is_stale(send, kind)) {
        MCA_PML_UMRDDT_COUNT(stale_replies);
        if (MCA_PML_UMRDDT_SEND_BUSY == send->state) {
            send->ops->listen(send);
        } else {
            mca_pml_umrddt_send_await(send);
        }
    } else if (0 != kind && is_ours) {
        ours(send, length, kind);
    } else {
        not_ours(send, kind);
    }
}

/** A reply of any kind is in send->reply. If not @p valid, the base PML reported an error. */
static inline void replied(mca_pml_umrddt_send_t *send, size_t length, bool valid)
{
    const unsigned kind = OPAL_LIKELY(valid) ? kind_of(send, length) : 0;
    const bool is_ours =
        send->rts.seq == send->reply->seq && send->request_id == send->reply->request_id;
    const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_reply_schemes[kind];

    if (OPAL_LIKELY(MCA_PML_UMRDDT_REPLY_OF(0) < kind && is_ours && NULL != scheme
                    && MCA_PML_UMRDDT_SEND_REPLY == send->state)) {
        hand(send, scheme, length); /* a CTS: it carries no information for other schemes */
    } else {
        other_reply(send, length, kind, is_ours);
    }
}

void mca_pml_umrddt_send_replied(mca_pml_umrddt_send_t *send, size_t length, bool valid)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&send->wait); /* another part has received this reply */
    replied(send, length, valid);
}

/** A reply was received. */
static void reply_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    size_t length;
    bool valid;

    if (!REQUEST_COMPLETE(send->listen)) {
        /* the callback runs shortly before the base PML marks its request complete */
        mca_pml_umrddt_event(&send->event, reply_event, send);
        return;
    }
    length = send->listen->req_status._ucount;
    valid = MPI_SUCCESS == send->listen->req_status.MPI_ERROR;
    mca_pml_umrddt_request_clear(send->listen);
    ompi_request_free(&send->listen);
    send->listen = NULL;
    if (OPAL_LIKELY(NULL == send->split) || !send->split->replied(send, valid ? length : 0)) {
        replied(send, length, valid);
    }
}
