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
 * The sender's side of a taken message.
 *
 *     start ----> REPLY --KEYS--> KEYS -> MAPPING -> PUT --(more)--> REPLY
 *                   |  \                              |
 *                   |   +--DIRECT------------------> PUT --(all)--> DRAIN -> complete
 *                   |   +--ASK---> (TELL) --> REPLY
 *                   |   +--PACK--> PACK (pml_umrddt_pack_send.c) ---> DRAIN
 *                   |   +--HOST--> HOST ---------------------------> DRAIN
 *                   |   +--DONE-----------------------------------> DRAIN
 *                 FAILED <-- KEYS, MAPPING, PUT when the card refuses or fails; the receiver,
 *                            which knows whether the FIN arrived, then answers HOST or DONE
 *
 * test/model/message.pml is a model of it, which is checked.
 *
 * Keys of the LOCAL role are held only between a CTS and the completion of the writes it asked for,
 * which needs nothing from anybody else; so they always come back.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_owner.h"
#include "pml_umrddt_pack.h"
#include "pml_umrddt_pairs.h"
#include "pml_umrddt_send_rndv.h"
#include "pml_umrddt_sets.h"
#include "pml_umrddt_stripe.h"

static void reply_event(void *owner);
static bool map_keys(void *owner);

/* ---------------------------------------------------------------------------------------------
 * The end
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_send_slot_release(mca_pml_umrddt_send_t *send)
{
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    mca_pml_umrddt_slot_give(&mca_pml_umrddt.slots, send->slot);
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
}

void mca_pml_umrddt_send_unlisten(mca_pml_umrddt_send_t *send)
{
    send->listen->req_complete_cb = NULL;
    mca_pml_umrddt_request_clear(send->listen);
    (void) ompi_request_cancel(send->listen);
    ompi_request_free(&send->listen);
    send->listen = NULL;
}

static void complete(mca_pml_umrddt_send_t *send)
{
    send->state = MCA_PML_UMRDDT_SEND_IDLE;
    mca_pml_umrddt_active(-1);
    ompi_request_complete(&send->super, true);
    if (OPAL_UNLIKELY(mca_pml_umrddt_release(&send->release, MCA_PML_UMRDDT_COMPLETED))) {
        (void) __atomic_fetch_sub(&mca_pml_umrddt.freed, 1, __ATOMIC_RELAXED);
        mca_pml_umrddt_send_return(send);
    }
}

/** The host PML still reads the envelope from send->rts until its request is complete. */
static bool drained(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    ompi_request_t *envelope = __atomic_load_n(&send->envelope, __ATOMIC_ACQUIRE);

    if (NULL != envelope) {
        /* MPI_REQUEST_NULL: the thread that sends it is not back from the host yet */
        if (MPI_REQUEST_NULL == envelope || !REQUEST_COMPLETE(envelope)) {
            return false;
        }
        ompi_request_free(&send->envelope);
        send->envelope = NULL;
    }
    complete(send);
    return true;
}

/** Give back what a message without mkeys needed of the receiver's layout. */
static inline void direct_release(mca_pml_umrddt_send_t *send)
{
    if (OPAL_UNLIKELY(NULL != send->parts)) {
        free(send->parts);
        send->parts = NULL;
    }
    if (OPAL_UNLIKELY(NULL != send->to)) {
        OBJ_RELEASE(send->to);
        send->to = NULL;
    }
}

void mca_pml_umrddt_send_finish(mca_pml_umrddt_send_t *send, int error)
{
    mca_pml_umrddt_wait_cancel(&send->wait); /* to listen, if the host has refused that */
    direct_release(send);
    if (OPAL_UNLIKELY(send->told)
        && 0 != __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED)) {
        /* what a TELL that is still here names is the user's again, and the next message of this
         * slot may ask */
        mca_pml_umrddt_control_withdraw(send->comm, send->dst,
                                        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_TELL, send->slot),
                                        send->rts.seq);
    }
    if (OPAL_UNLIKELY(NULL != send->stage.bytes)) {
        mca_pml_umrddt_stage_put(&send->stage);
    }
    if (NULL != send->memory) {
        mca_pml_umrddt.card->memory_release(send->memory);
        __atomic_store_n(&send->memory, NULL, __ATOMIC_RELAXED); /* see send_let_go */
    }
    if (OPAL_UNLIKELY(NULL != send->stripes) && mca_pml_umrddt_stripe_sent(send, error)) {
        return;
    }
    if (OPAL_UNLIKELY(0 != send->offer) && send->offered && !send->tries) {
        mca_pml_umrddt_offer_learn(send->offer, send->left);
    }
    if (NULL != send->listen) {
        mca_pml_umrddt_send_unlisten(send);
    }
    mca_pml_umrddt_send_slot_release(send);
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

/** Callback of the host: a reply is in send->reply. */
static int reply_arrived(ompi_request_t *request)
{
    mca_pml_umrddt_send_t *send = __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);

    mca_pml_umrddt_event(&send->event, reply_event, send);
    return 0;
}

/** mca_pml_umrddt_send_listen in one thread: nobody else can see the request before its callback is
 * set. */
static int listen_alone(mca_pml_umrddt_send_t *send)
{
    int rc = mca_pml_umrddt.host.pml_irecv(
        send->reply, mca_pml_umrddt_reply_room(), &ompi_mpi_byte.dt, send->dst,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, send->slot), send->comm->comm, &send->listen);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        send->listen = NULL;
    } else if (OPAL_UNLIKELY(REQUEST_COMPLETE(send->listen))) {
        /* a round's reply was here first */
        mca_pml_umrddt_event(&send->event, reply_event, send);
    } else {
        send->listen->req_complete_cb = reply_arrived;
        send->listen->req_complete_cb_data = send;
    }
    return rc;
}

/**
 * Post a receive for the next reply. Its callback is set before it is started, so that no reply can
 * slip through in between, whatever other threads do.
 */
int mca_pml_umrddt_send_listen(mca_pml_umrddt_send_t *send)
{
    ompi_request_t *request;
    int rc;

    if (OPAL_UNLIKELY(NULL != send->stripes) && mca_pml_umrddt_is_stripe(send)) {
        return mca_pml_umrddt_stripe_listen(send);
    }
    if (!opal_using_threads()) {
        return listen_alone(send);
    }

    rc = mca_pml_umrddt.host.pml_irecv_init(
        send->reply, mca_pml_umrddt_reply_room(), &ompi_mpi_byte.dt, send->dst,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, send->slot), send->comm->comm, &request);
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

/** As the retry function of a wait: the host has refused the receive, and is asked again. */
static bool listen_again(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    int rc = mca_pml_umrddt_send_listen(send);

    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        return true;
    }
    MCA_PML_UMRDDT_COUNT(control_refused);
    if (mca_pml_umrddt_hopeless(rc, &send->refused)) {
        mca_pml_umrddt_cannot_tell(send->comm, send->dst, rc);
    }
    return false;
}

void mca_pml_umrddt_send_await(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(NULL != send->wait.list)) {
        return; /* the host is asked already */
    }
    send->refused = 0;
    if (OPAL_UNLIKELY(!listen_again(send))) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, listen_again, send);
    }
}

void mca_pml_umrddt_send_fail(mca_pml_umrddt_send_t *send, bool in_flight)
{
    mca_pml_umrddt_fail_t notice = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FAIL),
        .seq = send->rts.seq,
        .slot = send->slot,
        .in_flight = in_flight,
        .written = send->written,
    };

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    MCA_PML_UMRDDT_COUNT(failures);
    direct_release(send);
    send->state = MCA_PML_UMRDDT_SEND_FAILED;
    if (NULL == send->listen) {
        mca_pml_umrddt_send_await(send);
    }
    if (OMPI_SUCCESS
        != mca_pml_umrddt_control(send->comm, send->dst,
                                  mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_FAIL, 0), &notice,
                                  sizeof(notice), true)) {
        mca_pml_umrddt_send_finish(send, MPI_ERR_OTHER);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Keys and writes
 * ------------------------------------------------------------------------------------------- */

static void put_done(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    uint64_t end = send->keyset->end;

    if (OPAL_SUCCESS != status) {
        mca_pml_umrddt.card->keyset_release(send->keyset);
        send->keyset = NULL;
        mca_pml_umrddt_send_fail(send, true);
        return;
    }
    mca_pml_umrddt_keyset_done(send->keyset);
    send->keyset = NULL;
    send->position = end;
    if (end < send->reply->end) {
        send->state = MCA_PML_UMRDDT_SEND_KEYS;
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_keys,
                            send);
    } else if (end < send->total) {
        /* send->reply is free for the next CTS only now: its range was needed until here */
        send->state = MCA_PML_UMRDDT_SEND_REPLY;
        mca_pml_umrddt_send_await(send);
    } else {
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
    }
}

/** The peer's keys for the bytes of the keyset, which may begin and end within keys of the CTS. */
static size_t remote_keys(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t at = reply->start;
    size_t count = 0;

    if (OPAL_LIKELY(send->keyset->start == at && send->keyset->end == reply->end)) {
        for (; count < reply->key_count; ++count) {
            send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[count]);
        }
        return count;
    }
    for (uint32_t i = 0; i < reply->key_count && at < send->keyset->end; ++i) {
        uint64_t begin = at;
        uint64_t end = at + reply->keys[i].length;

        at = end;
        if (end <= send->keyset->start) {
            continue;
        }
        if (begin < send->keyset->start) {
            begin = send->keyset->start;
        }
        if (end > send->keyset->end) {
            end = send->keyset->end;
        }
        send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[i]);
        send->remote[count].addr += begin - (at - reply->keys[i].length);
        send->remote[count].length = end - begin;
        ++count;
    }
    return count;
}

static void keys_ready(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    bool last = send->keyset->end == send->reply->end;
    size_t count;

    if (OPAL_SUCCESS == status) {
        send->state = MCA_PML_UMRDDT_SEND_PUT;
        count = remote_keys(send);
        status = mca_pml_umrddt.card->put(send->endpoint, send->keyset, send->remote, count,
                                          last ? &send->reply->fin : NULL, put_done, send);
    }
    if (OPAL_SUCCESS != status) {
        bool in_flight = send->position > send->reply->start;

        mca_pml_umrddt.card->keyset_release(send->keyset);
        send->keyset = NULL;
        mca_pml_umrddt_send_fail(send, in_flight);
    }
}

/** True if the user has freed the request of the message that a record is of. */
static inline bool is_freed(const mca_pml_umrddt_send_t *send)
{
    if (OPAL_UNLIKELY(NULL != send->stripes)) {
        send = mca_pml_umrddt_stripe_whole(send);
    }
    return __atomic_load_n(&send->freed, __ATOMIC_SEQ_CST);
}

/** What keys are mapped over. @return false: not to be had */
static bool has_memory(mca_pml_umrddt_send_t *send)
{
    mca_btl_umr_memory_t *memory;

    if (NULL != send->memory) {
        return true;
    }
    if (OPAL_SUCCESS
        != mca_pml_umrddt_register(send->endpoint, MCA_BTL_UMR_LOCAL, &send->where,
                                   (void *) send->buf, send->layout, send->total, &memory)) {
        return false;
    }
    /* first this, then the look at whether it is freed; who frees it does it the other way around
     */
    __atomic_store_n(&send->memory, memory, __ATOMIC_SEQ_CST);
    if (OPAL_UNLIKELY(is_freed(send))) {
        mca_pml_umrddt.card->memory_let_go(memory);
    }
    return true;
}

/** In state KEYS: map local keys for what the CTS asked for, as far as keys are to be had. */
static bool map_keys(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    uint64_t chunk = opal_iov_cache_layout_is_contiguous(send->layout) ? 0 : send->reply->chunk;
    int rc;

    if (NULL == send->memory && OPAL_LIKELY(!mca_pml_umrddt_on_device(&send->where))) {
        send->keyset = mca_pml_umrddt.card->keyset_recall(
            send->endpoint, MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout, chunk,
            send->position, send->reply->end, mca_pml_umrddt.params.max_keys);
        if (OPAL_LIKELY(NULL != send->keyset)) {
            keys_ready(send, OPAL_SUCCESS);
            return true;
        }
    }
    if (!has_memory(send)) {
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
        return true;
    }
    rc = mca_pml_umrddt.card->keyset_map(
        MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout, send->memory, chunk, send->position,
        send->reply->end, mca_pml_umrddt.params.max_keys, keys_ready, send, &send->keyset);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
        return true;
    }
    send->state = MCA_PML_UMRDDT_SEND_MAPPING;
    if (send->keyset->ready) {
        keys_ready(send, OPAL_SUCCESS);
    }
    return true;
}

/**
 * Check what a CTS asks for: the next bytes of this message. The first CTS of a stripe, which has
 * no end yet, says where it begins.
 */
static inline bool range_valid(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    if (OPAL_UNLIKELY(0 == send->total)) {
        send->position = reply->start;
    }
    return reply->start == send->position && reply->end > reply->start && reply->end <= reply->total
           && reply->total <= send->layout->size;
}

/** True if a CTS with keys can be an answer: a message that did not offer it may have no endpoint,
 * nor its process a card. */
static inline bool keys_offered(const mca_pml_umrddt_send_t *send)
{
    return 0 != (MCA_PML_UMRDDT_BIT_UMR & send->rts.schemes);
}

/** Check a CTS field by field. */
static bool keys_valid(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t sum = 0;

    if (!keys_offered(send) || 1 > reply->key_count
        || mca_pml_umrddt.params.max_keys < reply->key_count
        || sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) != length
        || !range_valid(send)) {
        return false;
    }
    for (uint32_t i = 0; i < reply->key_count; ++i) {
        if (0 == reply->keys[i].length) {
            return false;
        }
        sum += reply->keys[i].length;
    }
    return reply->end - reply->start == sum;
}

bool mca_pml_umrddt_send_ready(mca_pml_umrddt_send_t *send, const mca_btl_umr_address_t *address)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    return OPAL_SUCCESS == mca_pml_umrddt.card->endpoint_connect(send->endpoint, address)
           && has_memory(send);
}

/** A CTS that is right: write what it asks for. */
static void cts(mca_pml_umrddt_send_t *send)
{
    if (0 == send->position) {
        MCA_PML_UMRDDT_COUNT(sends_umr);
    }
    send->total = send->reply->total;
    if (OPAL_SUCCESS
        != mca_pml_umrddt.card->endpoint_connect(send->endpoint, &send->reply->address)) {
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    send->state = MCA_PML_UMRDDT_SEND_KEYS;
    if (!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL]) || !map_keys(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_keys,
                            send);
    }
}

/**
 * True if what was received is a part or a CTS without mkeys, for this message.
 *
 * @param[in] length  of what is in send->reply
 */
static bool is_direct(const mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_direct_t *asked = (const mca_pml_umrddt_direct_t *) send->reply;
    const mca_pml_umrddt_flat_t *flat = (const mca_pml_umrddt_flat_t *) send->reply;

    _Static_assert(offsetof(mca_pml_umrddt_direct_t, seq) == offsetof(mca_pml_umrddt_flat_t, seq)
                       && offsetof(mca_pml_umrddt_direct_t, slot)
                              == offsetof(mca_pml_umrddt_flat_t, slot),
                   "both begin alike");
    return sizeof(*flat) <= length && send->rts.seq == flat->seq && send->slot == flat->slot
           && (MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FLAT) == flat->magic
               || (MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_DIRECT) == asked->magic
                   && sizeof(*asked) <= length));
}

static void reply_malformed(mca_pml_umrddt_send_t *send)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(0, "umrddt: a malformed reply to a message of %llu bytes; the message fails",
                (unsigned long long) send->layout->size);
    mca_pml_umrddt_send_finish(send, MPI_ERR_INTERN);
}

/** The receiver is going to read the buffer, and asks for what it lacks. */
static void tell(mca_pml_umrddt_send_t *send, uint32_t what)
{
    int rc;

    mca_pml_umrddt_send_await(send);
    rc = mca_pml_umrddt_ipc_tell(send, what);
    if (OMPI_ERR_BAD_PARAM == rc) {
        reply_malformed(send);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    }
}

/** The receiver wants the host PML; with an address, since it refuses that endpoint. */
static void receiver_refused(mca_pml_umrddt_send_t *send, const mca_btl_umr_address_t *address)
{
    if (0 != address->qpn && NULL != send->endpoint) {
        mca_pml_umrddt.card->endpoint_refused(send->endpoint, address);
    }
}

/** The receiver waits for chunks. */
static void pack(mca_pml_umrddt_send_t *send, size_t length)
{
    int rc = mca_pml_umrddt_pack_send(send, length);

    if (OMPI_ERR_BAD_PARAM == rc) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        opal_output(0,
                    "umrddt: rank %d wants a message of %llu bytes in chunks that make no sense; "
                    "it goes by the host PML",
                    send->dst, (unsigned long long) send->layout->size);
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, false);
    }
}

/** A CTS by reference was received: do as the one says that it stands for. */
static void recall(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_recall_t *asked = (const mca_pml_umrddt_recall_t *) send->reply;
    const bool in_gpu = 0 != (MCA_PML_UMRDDT_IN_GPU & asked->what);
    bool here = send->rts.seq == asked->seq && send->slot == asked->slot && keys_offered(send)
                && mca_pml_umrddt_set_recall(send->peer, asked, send->reply);

    if (OPAL_LIKELY(here)) {
        mca_pml_umrddt_send_landed(send, in_gpu);
    }
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_SEND_FAILED == send->state)) {
        mca_pml_umrddt_send_await(send); /* it crossed our notice of failure */
    } else if (OPAL_UNLIKELY(MCA_PML_UMRDDT_SEND_PACK == send->state)) {
        mca_pml_umrddt_pack_replied(send, false);
    } else if (OPAL_UNLIKELY(!here)) {
        mca_pml_umrddt_send_fail(send, false); /* the receiver forgets what it thought to be here */
    } else if (OPAL_LIKELY(range_valid(send))) {
        cts(send); /* the keys were checked when they were stored */
    } else {
        reply_malformed(send);
    }
}

/**
 * True for a reply to an older message of this slot. There is one if both sides gave a round up at
 * the same time: the receiver asked for the host, which ended the message, and then answered our
 * notice, too (test/model/message.pml).
 */
static bool is_stale(const mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    return MCA_PML_UMRDDT_DONE == reply->verdict && send->slot == reply->slot
           && send->rts.seq > reply->seq;
}

/** The receiver may have left the message to the host PML, and the next ones as well. */
static void chosen(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    send->chosen = MCA_PML_UMRDDT_HOST == reply->verdict
                   && 0 != (MCA_PML_UMRDDT_CHOSEN & reply->what)
                   && 0 != (MCA_PML_UMRDDT_MAY_LEAVE & send->rts.schemes)
                   && MCA_PML_UMRDDT_SEND_REPLY == send->state && 0 == send->position;
    send->left = send->chosen && 0 != (MCA_PML_UMRDDT_LEFT & reply->what);
}

/** What a reply says of CUDA IPC, which was offered: keys, or chunks that are predicted to be
 * quicker, are the receiver's choice, and no failure. */
static void ipc_result(mca_pml_umrddt_send_t *send)
{
    const uint32_t verdict = send->reply->verdict;

    if (OPAL_UNLIKELY(send->chosen)) {
        return;
    }
    if (MCA_PML_UMRDDT_DONE == verdict || MCA_PML_UMRDDT_HOST == verdict
        || (MCA_PML_UMRDDT_PACK == verdict
            && !mca_pml_umrddt_pairs_may_pack(send->comm, send->peer, send->layout))) {
        mca_pml_umrddt_ipc_result(send->peer, MCA_PML_UMRDDT_DONE == verdict);
    }
}

/** Any other reply was received, of @p length bytes; not @p valid: the host could not. */
static void other_reply(mca_pml_umrddt_send_t *send, size_t length, bool valid)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    bool direct = valid && is_direct(send, length);

    valid = valid && sizeof(*reply) <= length
            && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY) == reply->magic;
    if (OPAL_UNLIKELY(valid && is_stale(send))) {
        MCA_PML_UMRDDT_COUNT(stale_replies);
        if (MCA_PML_UMRDDT_SEND_PACK == send->state) {
            mca_pml_umrddt_pack_listen(send);
        } else {
            mca_pml_umrddt_send_await(send);
        }
        return;
    }
    valid = valid && send->rts.seq == reply->seq && send->slot == reply->slot;
    if (valid) {
        chosen(send);
        mca_pml_umrddt_send_landed(send,
                                   MCA_PML_UMRDDT_PACK == reply->verdict
                                       || ((send->chosen || MCA_PML_UMRDDT_KEYS == reply->verdict)
                                           && 0 != (MCA_PML_UMRDDT_IN_GPU & reply->what)));
    }
    if (OPAL_UNLIKELY(MCA_PML_UMRDDT_SEND_PACK == send->state)) {
        if (valid && MCA_PML_UMRDDT_HOST == reply->verdict) {
            receiver_refused(send, &reply->address);
        }
        mca_pml_umrddt_pack_replied(send, valid);
        return;
    }
    if (valid && 0 != (MCA_PML_UMRDDT_BIT_IPC & send->rts.schemes)) {
        ipc_result(send);
    }
    if (valid && MCA_PML_UMRDDT_HOST == reply->verdict) {
        receiver_refused(send, &reply->address);
        mca_pml_umrddt_send_by_host(send);
    } else if (valid && MCA_PML_UMRDDT_DONE == reply->verdict) {
        if (0 < reply->total) {
            MCA_PML_UMRDDT_COUNT(sends_ipc);
            mca_pml_umrddt_send_bell_learn(send, false);
            if (0 != (MCA_PML_UMRDDT_CAN_RING & reply->what) && NULL != mca_pml_umrddt_own_bells) {
                __atomic_store_n(&send->peer->rings, true, __ATOMIC_RELEASE);
            }
        }
        receiver_refused(send, &reply->address);
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
    } else if (valid && MCA_PML_UMRDDT_ASK == reply->verdict
               && MCA_PML_UMRDDT_SEND_REPLY == send->state) {
        tell(send, reply->what);
    } else if (valid && MCA_PML_UMRDDT_PACK == reply->verdict
               && MCA_PML_UMRDDT_SEND_REPLY == send->state && 0 == send->position) {
        pack(send, length);
    } else if ((direct
                || (valid
                    && (MCA_PML_UMRDDT_KEYS == reply->verdict
                        || MCA_PML_UMRDDT_PACK == reply->verdict
                        || MCA_PML_UMRDDT_GRANT == reply->verdict)))
               && MCA_PML_UMRDDT_SEND_FAILED == send->state) {
        mca_pml_umrddt_send_await(send); /* it crossed our notice of failure */
    } else if (direct && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FLAT) == reply->magic) {
        mca_pml_umrddt_send_direct_part(send, length);
    } else if (direct) {
        mca_pml_umrddt_send_direct_cts(send, length);
    } else if (valid && MCA_PML_UMRDDT_KEYS == reply->verdict && keys_valid(send, length)) {
        mca_pml_umrddt_set_store(send->peer, send->reply);
        cts(send);
    } else {
        reply_malformed(send);
    }
}

/** A reply of any kind is in send->reply. */
static inline void replied(mca_pml_umrddt_send_t *send, size_t length, bool valid)
{
    if (OPAL_LIKELY(sizeof(mca_pml_umrddt_recall_t) == length) && valid
        && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RECALL) == send->reply->magic) {
        recall(send);
    } else {
        other_reply(send, length, valid);
    }
}

void mca_pml_umrddt_send_replied(mca_pml_umrddt_send_t *send, size_t length, bool valid)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&send->wait); /* another stripe has listened for this one */
    replied(send, length, valid);
}

/** A reply was received. */
static void reply_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    size_t length;
    bool valid;

    if (!REQUEST_COMPLETE(send->listen)) {
        /* the callback runs an instant before the host marks its request */
        mca_pml_umrddt_event(&send->event, reply_event, send);
        return;
    }
    length = send->listen->req_status._ucount;
    valid = MPI_SUCCESS == send->listen->req_status.MPI_ERROR;
    mca_pml_umrddt_request_clear(send->listen);
    ompi_request_free(&send->listen);
    send->listen = NULL;
    if (OPAL_LIKELY(NULL == send->stripes)
        || !mca_pml_umrddt_stripe_replied(send, valid ? length : 0)) {
        replied(send, length, valid);
    }
}

/** At the bell: the message may be over, or a reply on its way. */
static bool rung(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    switch (mca_pml_umrddt_rung(send->slot, send->rts.seq)) {
    case MCA_PML_UMRDDT_RUNG_DONE:
        MCA_PML_UMRDDT_COUNT(sends_ipc);
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
        return true;
    case MCA_PML_UMRDDT_RUNG_REPLY:
        mca_pml_umrddt_send_bell_learn(send, true);
        mca_pml_umrddt_send_await(send);
        return true;
    default:
        return false;
    }
}

void mca_pml_umrddt_send_bell_event(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!rung(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &send->wait, rung, send);
    }
}
