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
 * Striped messages: the cuts, the sender and the receiver. Read pml_umrddt_stripe.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

/* ---------------------------------------------------------------------------------------------
 * The offer, and the cuts
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_stripes_valid(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    bool more = 0 != (MCA_PML_UMRDDT_BIT_UMR & rts->schemes);

    for (int i = 0; i < MCA_PML_UMRDDT_LANES; ++i) {
        if (0 == rts->lanes[i].qpn) {
            more = false; /* lanes must have no gaps */
        }
        if (!more && 0 != (rts->lanes[i].qpn | rts->lanes[i].psn)) {
            return false;
        }
    }
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (0 != b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

uint64_t mca_pml_umrddt_stripe_alignment(const mca_pml_umrddt_rts_t *rts,
                                         const opal_iov_cache_form_t *form, uint64_t chunk,
                                         uint64_t part)
{
    uint64_t most = part / 2, mine = 1 < form->segments ? form->uniform : 1, theirs = 1, rest;

    if (0 < chunk && chunk <= most) {
        return chunk;
    }
    if (1 < rts->pieces && UINT32_MAX > rts->pieces && 0 == rts->length % rts->pieces) {
        theirs = rts->length / rts->pieces;
    }
    mine = 0 == mine || most < mine ? 1 : mine;
    theirs = 0 == theirs || most < theirs ? 1 : theirs;
    rest = mine / common_divisor(mine, theirs);
    return rest <= most / theirs ? rest * theirs : mine;
}

uint64_t mca_pml_umrddt_stripe_end(uint64_t total, uint32_t count, uint64_t alignment, uint32_t i)
{
    uint64_t cut;

    if (i + 1 == count) {
        return total;
    }
    cut = total / count * (i + 1) + total % count * (i + 1) / count;
    return cut / alignment * alignment;
}

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

static int stripe_listen(mca_pml_umrddt_send_t *stripe);
static bool stripe_replied(mca_pml_umrddt_send_t *send, size_t length);
static bool stripe_ended(mca_pml_umrddt_send_t *send, int error);

/** Shared by the records of a striped message. */
typedef struct mca_pml_umrddt_stripes_t {
    mca_pml_umrddt_send_split_t super;
    uint32_t count; /**< number of stripes */
    bool begun;     /**< the receiver has accepted the stripes */
    uint32_t left;  /**< stripes that have not ended, plus calls in progress */
    int error;      /**< for the user */
    bool held;     /**< the parent's reply buffer holds a reply to a stripe that is still writing */
    size_t length; /**< bytes of that reply */
    mca_btl_umr_endpoint_t *endpoints[MCA_PML_UMRDDT_STRIPES];
    mca_pml_umrddt_send_t *stripe[MCA_PML_UMRDDT_STRIPES]; /**< NULL: it has ended */
} mca_pml_umrddt_stripes_t;

static inline mca_pml_umrddt_stripes_t *stripes_of(const mca_pml_umrddt_send_t *send)
{
    return (mca_pml_umrddt_stripes_t *) send->split;
}

static void let_go(mca_pml_umrddt_send_split_t *split)
{
    mca_pml_umrddt_stripes_t *stripes = (mca_pml_umrddt_stripes_t *) split;

    for (uint32_t i = 0; i < stripes->count; ++i) {
        mca_pml_umrddt_send_t *stripe = __atomic_load_n(&stripes->stripe[i], __ATOMIC_ACQUIRE);

        if (NULL != stripe) {
            mca_pml_umrddt.hca->memory_let_go(__atomic_load_n(&stripe->memory, __ATOMIC_SEQ_CST));
        }
    }
}

static void stripe_return(mca_pml_umrddt_send_t *stripe)
{
    stripe->split = NULL;
    opal_free_list_return(&mca_pml_umrddt.sends, &stripe->super.super);
}

/** Create the record of stripe @p i. It holds no references: the parent outlives it. */
static mca_pml_umrddt_send_t *stripe_new(mca_pml_umrddt_stripes_t *stripes, uint32_t i)
{
    mca_pml_umrddt_send_t *parent = stripes->super.parent;
    mca_pml_umrddt_send_t *stripe = mca_pml_umrddt_send_get();

    if (NULL == stripe) {
        return NULL;
    }
    /* all from plain to rts as in the parent, except: */
    memcpy(&stripe->plain, &parent->plain,
           offsetof(mca_pml_umrddt_send_t, envelope) - offsetof(mca_pml_umrddt_send_t, plain));
    stripe->state = MCA_PML_UMRDDT_SEND_REPLY;
    /* one stripe suffices to learn the receive-memory hint */
    stripe->probes_memory = 0 == i && parent->probes_memory;
    stripe->offer = stripe->probes_memory ? parent->offer : 0;
    stripe->declinable = stripe->chosen = stripe->left = false;
    stripe->endpoint = stripes->endpoints[i];
    stripe->memory = NULL;
    stripe->total = 0; /* the first CTS sets its range */
    stripe->position = 0;
    stripe->rts.seq += 1 + i;
    stripe->rts.schemes = MCA_PML_UMRDDT_BIT_UMR;
    stripe->envelope = NULL;
    stripe->listen = NULL;
    stripe->host = NULL;
    stripe->ops = NULL;
    memset(stripe->held, 0, sizeof(stripe->held));
    stripe->reported = true;
    stripe->split = &stripes->super;
    return stripe;
}

static void drop(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_stripes_t *stripes = stripes_of(send);

    for (uint32_t i = 0; i < stripes->count; ++i) {
        if (NULL != stripes->stripe[i]) {
            stripe_return(stripes->stripe[i]);
            stripes->stripe[i] = NULL;
        }
    }
    __atomic_store_n(&send->split, NULL, __ATOMIC_RELEASE);
}

void mca_pml_umrddt_stripes_offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;
    mca_pml_umrddt_stripes_t *stripes = (mca_pml_umrddt_stripes_t *) send->split_cached;
    size_t most = rts->length / MCA_PML_UMRDDT_LEAST_STRIPE;
    uint32_t count;

    if (0 == (MCA_PML_UMRDDT_BIT_UMR & rts->schemes) || 0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes)
        || 2 > most) {
        return;
    }
    if (NULL == stripes) {
        stripes = malloc(sizeof(*stripes));
        if (NULL == stripes) {
            return;
        }
        send->split_cached = &stripes->super;
    }
    most = most < MCA_PML_UMRDDT_STRIPES ? most : MCA_PML_UMRDDT_STRIPES;
    count =
        (uint32_t) mca_pml_umrddt.hca->endpoints_beside(send->endpoint, stripes->endpoints, most);
    if (2 > count) {
        return;
    }
    /* the sequence numbers after the parent's are for the stripes */
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    rts->seq = mca_pml_umrddt.seq + 1;
    mca_pml_umrddt.seq += 1 + count;
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    stripes->super = (mca_pml_umrddt_send_split_t){.parent = send,
                                                   .drop = drop,
                                                   .let_go = let_go,
                                                   .listen = stripe_listen,
                                                   .replied = stripe_replied,
                                                   .ended = stripe_ended};
    stripes->count = count;
    stripes->begun = false;
    stripes->left = count;
    stripes->error = MPI_SUCCESS;
    stripes->held = false;
    memset(stripes->stripe, 0, sizeof(stripes->stripe));
    send->split = &stripes->super;
    for (uint32_t i = 0; i < count; ++i) {
        stripes->stripe[i] = stripe_new(stripes, i);
        if (NULL == stripes->stripe[i]) {
            drop(send);
            memset(rts->lanes, 0, sizeof(rts->lanes));
            return;
        }
        if (0 < i) {
            mca_pml_umrddt.hca->endpoint_address(stripes->endpoints[i], &rts->lanes[i - 1]);
        }
    }
}

static void leave(mca_pml_umrddt_stripes_t *stripes)
{
    if (0 == --stripes->left) {
        mca_pml_umrddt_send_finish(stripes->super.parent, stripes->error);
    }
}

/** Index of the stripe that the reply in the parent's buffer is for; count or more: none. */
static uint64_t index_of(const mca_pml_umrddt_stripes_t *stripes)
{
    return stripes->super.parent->reply->seq - stripes->super.parent->rts.seq - 1;
}

static bool waits(const mca_pml_umrddt_send_t *stripe)
{
    return NULL != stripe
           && (MCA_PML_UMRDDT_SEND_REPLY == stripe->state
               || MCA_PML_UMRDDT_SEND_FAILED == stripe->state);
}

/** Returns true if a stripe is in the middle of a round: its next reply may arrive already. */
static bool writes(const mca_pml_umrddt_send_t *stripe)
{
    return NULL != stripe
           && (MCA_PML_UMRDDT_SEND_KEYS == stripe->state
               || MCA_PML_UMRDDT_SEND_MAPPING == stripe->state
               || MCA_PML_UMRDDT_SEND_PUT == stripe->state);
}

/** The stripe of the held reply is ready for it. */
static void held_event(void *owner)
{
    mca_pml_umrddt_send_t *parent = owner;
    mca_pml_umrddt_stripes_t *stripes = stripes_of(parent);

    stripes->held = false;
    (void) stripe_replied(parent, stripes->length);
    leave(stripes);
}

static int stripe_listen(mca_pml_umrddt_send_t *stripe)
{
    mca_pml_umrddt_stripes_t *stripes = stripes_of(stripe);
    mca_pml_umrddt_send_t *parent = stripes->super.parent;

    if (stripes->held) {
        if (stripe == stripes->stripe[index_of(stripes)] && !parent->event.queued) {
            ++stripes->left;
            mca_pml_umrddt_event(&parent->event, held_event, parent);
        }
        return OMPI_SUCCESS;
    }
    return NULL != parent->listen ? OMPI_SUCCESS : mca_pml_umrddt_send_listen(parent);
}

/** Post the receive for replies again if any stripe waits for one. */
static void listen_on(mca_pml_umrddt_stripes_t *stripes)
{
    for (uint32_t i = 0; i < stripes->count; ++i) {
        if (waits(stripes->stripe[i])) {
            mca_pml_umrddt_send_await(stripes->stripe[i]);
        }
    }
}

static bool stripe_ended(mca_pml_umrddt_send_t *send, int error)
{
    mca_pml_umrddt_stripes_t *stripes = stripes_of(send);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (send == stripes->super.parent) {
        drop(send); /* the stripes that never began */
        return false;
    }
    stripes->stripe[send->rts.seq - stripes->super.parent->rts.seq - 1] = NULL;
    stripes->error = MPI_SUCCESS == stripes->error ? error : stripes->error;
    stripe_return(send);
    if (stripes->held && !stripes->super.parent->event.queued
        && NULL == stripes->stripe[index_of(stripes)]) {
        /* the stripe ended without waiting for this reply */
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        stripes->held = false;
        listen_on(stripes);
    }
    leave(stripes);
    return true;
}

/** A reply may arrive early. The receiver sees the FIN of a round and sends the next CTS. The
 * sender's write may not have completed yet, but the parent has a receive posted. */
static bool stripe_replied(mca_pml_umrddt_send_t *send, size_t length)
{
    mca_pml_umrddt_stripes_t *stripes = stripes_of(send);
    uint64_t index = index_of(stripes);
    bool one = offsetof(mca_pml_umrddt_reply_t, reply_kind) <= length && index < stripes->count
               && send->request_id == send->reply->request_id;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!stripes->begun
        && (!one || MCA_PML_UMRDDT_SEND_REPLY != send->state || 0 < send->position)) {
        return false; /* for the parent; or the receiver has accepted the message as a whole */
    }
    if (!stripes->begun) {
        stripes->begun = true;
        MCA_PML_UMRDDT_COUNT(sends_striped);
    }
    if (one && writes(stripes->stripe[index])) {
        stripes->held = true;
        stripes->length = length;
        return true;
    }
    ++stripes->left;
    if (one && waits(stripes->stripe[index])) {
        memcpy(stripes->stripe[index]->reply, send->reply, length);
        mca_pml_umrddt_send_replied(stripes->stripe[index], length, true);
    } else if (one || send->rts.seq > send->reply->seq) {
        /* the answer to a NACK that crossed the end of its stripe */
        MCA_PML_UMRDDT_COUNT(stale_replies);
    } else {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
    }
    listen_on(stripes);
    leave(stripes);
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** Shared by the records of a striped message. */
typedef struct mca_pml_umrddt_recv_stripes_t {
    mca_pml_umrddt_recv_split_t super;
    uint32_t left; /**< stripes that have not ended, plus calls in progress */
    bool by_host;  /**< one stripe has sent FALLBACK */
    int error;     /**< for the user */
} mca_pml_umrddt_recv_stripes_t;

/** The envelope of stripe @p i, as if it were a separate message. */
static mca_pml_umrddt_rts_t rts_of(const mca_pml_umrddt_recv_t *parent, uint32_t i)
{
    mca_pml_umrddt_rts_t rts = parent->rts;

    rts.seq += 1 + i;
    if (0 < i) {
        rts.address = rts.lanes[i - 1];
    }
    return rts;
}

/** Send an ACK for a stripe without data, with the address of its lane if that is broken here. */
static void report_done(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_rts_t *rts,
                        mca_btl_umr_endpoint_t *endpoint)
{
    mca_pml_umrddt_reply_t reply;

    mca_pml_umrddt_reply_init(rts, MCA_PML_UMRDDT_REPLY_ACK, &reply);
    (void) mca_pml_umrddt.hca->endpoint_refuses(endpoint, &rts->address, &reply.address);
    (void) mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply);
}

/** Get this side's endpoints of the offered lanes; @p use is set for those that work. */
static uint32_t look(const mca_pml_umrddt_recv_t *parent, mca_btl_umr_endpoint_t **endpoints,
                     bool *use)
{
    uint32_t count = 1;

    endpoints[0] = parent->endpoint;
    use[0] = true;
    while (MCA_PML_UMRDDT_STRIPES > count && 0 != parent->rts.lanes[count - 1].qpn) {
        const mca_btl_umr_address_t *address = &parent->rts.lanes[count - 1];

        endpoints[count] = mca_pml_umrddt.hca->endpoint_at(parent->endpoint, address);
        use[count] =
            OPAL_SUCCESS == mca_pml_umrddt.hca->endpoint_connect(endpoints[count], address);
        ++count;
    }
    return count;
}

/** Create the record of a stripe, for bytes [start, end). */
static mca_pml_umrddt_recv_t *recv_stripe_new(mca_pml_umrddt_recv_stripes_t *stripes,
                                              const mca_pml_umrddt_rts_t *rts,
                                              mca_btl_umr_endpoint_t *endpoint, uint64_t start,
                                              uint64_t end)
{
    mca_pml_umrddt_recv_t *parent = stripes->super.parent;
    mca_pml_umrddt_recv_t *recv = mca_pml_umrddt_record_alloc(
        parent->buf, parent->count, parent->datatype, parent->src, parent->tag, parent->comm);

    if (NULL == recv) {
        return NULL;
    }
    mca_pml_umrddt_recv_reset(recv);
    recv->req = NULL;
    recv->rts = *rts;
    recv->status = parent->status;
    recv->total = end;
    recv->position = start;
    recv->where = parent->where;
    recv->looked = true;
    recv->layout = parent->layout;
    OBJ_RETAIN(recv->layout);
    recv->endpoint = endpoint;
    recv->peer = parent->peer;
    recv->split = &stripes->super;
    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    return recv;
}

static void recv_leave(mca_pml_umrddt_recv_stripes_t *stripes)
{
    if (0 == --stripes->left) {
        mca_pml_umrddt_recv_end(stripes->super.parent, stripes->error);
    }
}

static bool recv_stripe_ended(mca_pml_umrddt_recv_t *recv, int error)
{
    mca_pml_umrddt_recv_stripes_t *stripes = (mca_pml_umrddt_recv_stripes_t *) recv->split;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->split = NULL;
    if (recv == stripes->super.parent) {
        return false;
    }
    stripes->error = MPI_SUCCESS == stripes->error ? error : stripes->error;
    opal_list_remove_item(&mca_pml_umrddt.receives, &recv->active);
    opal_umrddt_gpu_stage_put(&recv->overflow);
    recv->state = MCA_PML_UMRDDT_RECV_DONE;
    recv->looked = false;
    opal_free_list_return(&mca_pml_umrddt.recvs, &recv->super.super);
    recv_leave(stripes);
    return true;
}

static bool stripe_by_base(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_stripes_t *stripes = (mca_pml_umrddt_recv_stripes_t *) recv->split;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (stripes->by_host) {
        report_done(recv, &recv->rts, recv->endpoint);
        mca_pml_umrddt_recv_finish(recv, MPI_SUCCESS, 0);
        return true;
    }
    stripes->by_host = true;
    recv->total = recv->rts.length; /* the base PML carries the whole message */
    return false;
}

bool mca_pml_umrddt_stripes_receive(mca_pml_umrddt_recv_t *recv, uint64_t chunk,
                                    void (*init)(mca_pml_umrddt_recv_t *parent,
                                                 mca_pml_umrddt_recv_t *stripe),
                                    void (*begin)(mca_pml_umrddt_recv_t *stripe))
{
    mca_btl_umr_endpoint_t *endpoints[MCA_PML_UMRDDT_STRIPES];
    mca_pml_umrddt_recv_stripes_t *stripes = (mca_pml_umrddt_recv_stripes_t *) recv->split_cached;
    mca_pml_umrddt_recv_t *stripe[MCA_PML_UMRDDT_STRIPES] = {NULL};
    bool use[MCA_PML_UMRDDT_STRIPES];
    uint32_t offered, count = 0, at = 0;
    uint64_t alignment, start = 0;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (0 != (MCA_PML_UMRDDT_BIT_IPC & recv->rts.schemes) || recv->total < recv->rts.length) {
        return false;
    }
    if (NULL == stripes) {
        stripes = malloc(sizeof(*stripes));
        if (NULL == stripes) {
            return false;
        }
        recv->split_cached = &stripes->super;
    }
    offered = look(recv, endpoints, use);
    for (uint32_t i = 0; i < offered; ++i) {
        count += use[i] ? 1 : 0;
    }
    /* At least 1: the parent's own lane. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    if (recv->total / count < MCA_PML_UMRDDT_LEAST_STRIPE) {
        return false;
    }
    *stripes = (mca_pml_umrddt_recv_stripes_t){
        .super = {.parent = recv, .by_base = stripe_by_base, .ended = recv_stripe_ended},
        .left = 1,
        .error = MPI_SUCCESS};
    alignment =
        mca_pml_umrddt_stripe_alignment(&recv->rts, recv->layout->form, chunk, recv->total / count);
    for (uint32_t i = 0; i < offered; ++i) {
        mca_pml_umrddt_rts_t rts = rts_of(recv, i);

        if (use[i]) {
            uint64_t end = mca_pml_umrddt_stripe_end(recv->total, count, alignment, at++);

            stripe[i] = recv_stripe_new(stripes, &rts, endpoints[i], start, end);
            if (NULL == stripe[i]) {
                /* no reply was sent for the others yet */
                while (0 < i--) {
                    if (NULL != stripe[i]) {
                        mca_pml_umrddt_recv_end(stripe[i], MPI_SUCCESS);
                    }
                }
                return false;
            }
            init(recv, stripe[i]);
            ++stripes->left;
            start = end;
        }
    }
    recv->split = &stripes->super;
    recv->state = MCA_PML_UMRDDT_RECV_SPLIT;
    for (uint32_t i = 0; i < offered; ++i) {
        mca_pml_umrddt_rts_t rts = rts_of(recv, i);

        if (!use[i]) {
            report_done(recv, &rts, endpoints[i]);
        } else {
            begin(stripe[i]);
        }
    }
    recv_leave(stripes);
    return true;
}
