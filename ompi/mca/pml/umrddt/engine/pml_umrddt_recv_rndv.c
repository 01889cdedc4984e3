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
 * The receiver's engine: tries schemes for a matched message until one starts, and ends the
 * message. pml_umrddt_scheme.h has the contract of schemes.
 */

/*
 * The receiver decides how many bytes it accepts and which scheme carries them. Every message can
 * fall back to the last scheme, the base PML:
 *
 *     MATCHED --select--> scheme --(refused)--> next scheme --> ... --> base PML --> DONE
 *                           |                                              ^
 *                           +--(failed)------------------------------------+
 *                           +--(all bytes have arrived)--> DONE
 *
 * test/model/message.pml is a model of this protocol, which is checked.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/* ---------------------------------------------------------------------------------------------
 * Order of the schemes
 *
 * First the one that the model prefers (pml_umrddt_select.h), then the others by the rules
 * (umrddt_select_rules.h; can_recv of each scheme).
 * ------------------------------------------------------------------------------------------- */

/** Query the model for a message, if the model selects schemes. */
static __opal_attribute_noinline__ void prefer(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_select_recv(recv);
    if (NULL == recv->pair || !mca_pml_umrddt.declines) {
        return;
    }
    recv->preferred = (uint16_t) MCA_PML_UMRDDT_BIT(recv->scheme);
    if (mca_pml_umrddt_select_declines(recv)) {
        recv->reason = NULL;
        recv->candidates = 0;
    }
}

/** A message was matched: the candidates are the offered schemes that this side supports. */
static inline void candidates(mca_pml_umrddt_recv_t *recv)
{
    recv->preferred = 0;
    recv->reason = &mca_pml_umrddt.counters.fallback_scheme;
    recv->candidates = recv->rts.schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_ALL;
    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.selections)) {
        prefer(recv);
        recv->candidates &= recv->rts.schemes; /* without schemes that the model excludes */
    }
}

static inline bool permits(void *recv, mca_pml_umrddt_scheme_id_t scheme)
{
    return mca_pml_umrddt_schemes[scheme]->can_recv(recv);
}

/** Remove and return the next scheme to try; the last one is the base PML. */
static inline const mca_pml_umrddt_scheme_t *select_next(mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_schemes[opal_umrddt_select_next(&recv->candidates, recv->preferred,
                                                          permits, recv)];
}

/* ---------------------------------------------------------------------------------------------
 * Transition between schemes
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_recv_announce(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_recv_is_flagged(recv)) {
        return;
    }
    recv->announced = true;
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_groups[i];

        /* The model may have removed the scheme from recv->rts.schemes. */
        if (NULL != scheme->announce) {
            scheme->announce(recv);
        }
    }
}

/** The current scheme has failed: release what it holds. */
static void give_up(mca_pml_umrddt_recv_t *recv)
{
    if (NULL != recv->ops->recv_release) {
        recv->ops->recv_release(recv);
    }
    memset(recv->held, 0, sizeof(recv->held));
}

void mca_pml_umrddt_recv_next(mca_pml_umrddt_recv_t *recv)
{
    do {
        if (OPAL_UNLIKELY(NULL != recv->ops)) {
            give_up(recv);
        }
        recv->ops = select_next(recv);
        if (0 != (MCA_PML_UMRDDT_DONE_FLAG & recv->rts.schemes) && !recv->ops->flag) {
            mca_pml_umrddt_recv_announce(recv);
        }
        if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.ranges)) {
            recv->range = mca_pml_umrddt_range(
                recv->range, mca_pml_umrddt_scheme_names[recv->ops->id], recv->total);
        }
    } while (OPAL_UNLIKELY(OMPI_SUCCESS != recv->ops->start(recv)));
}

void mca_pml_umrddt_recv_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    mca_pml_umrddt_wait_cancel(&recv->wait);
    recv->candidates = 0;
    recv->reason = reason;
    mca_pml_umrddt_recv_next(recv);
}

/* ---------------------------------------------------------------------------------------------
 * The envelope
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the fields that belong to a scheme are valid, and its group is offered. */
static inline bool fields_valid(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_scheme_t *scheme =
        mca_pml_umrddt_schemes[mca_pml_umrddt_rts_fields_of(&recv->rts)];

    return 0 != (scheme->group & recv->rts.schemes) && scheme->rts_valid(recv);
}

/** Returns true if every field of recv->rts has a valid value. recv->peer is its sender. */
static inline bool rts_valid(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    return MCA_PML_UMRDDT_MAX_REQUEST_IDS > rts->request_id && 0 != rts->length
           && rts->chunk <= rts->length && MCA_PML_UMRDDT_MAX_SLOTS >= rts->slots
           && MCA_PML_UMRDDT_MAX_SLOTS >= rts->flats && 0 != rts->write_pieces
           && mca_pml_umrddt_rts_bits_valid(rts)
           && (OPAL_LIKELY(mca_pml_umrddt_rts_is_plain(rts)) || fields_valid(recv));
}

static void matched_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    mca_pml_umrddt_peer_t *peer = mca_pml_umrddt_peer(recv->comm, recv->status.MPI_SOURCE);
    uint64_t capacity = (uint64_t) recv->count * recv->datatype->super.size;

    if (OPAL_UNLIKELY(NULL == peer)) {
        /* no memory for the lookup: the envelope must not be delivered as user data */
        mca_pml_umrddt_event(&recv->event, matched_event, recv);
        return;
    }
    mca_pml_umrddt_recv_look(recv);
    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    if (!peer->capable || 0 != memcmp(rts->cookie, peer->cookie, sizeof(rts->cookie))) {
        mca_pml_umrddt_recv_plain_active(recv); /* it only looked like an envelope */
        return;
    }
    ++counters->handled_recvs; /* progress thread only */
    if (OPAL_UNLIKELY(!recv->comm->listening)) {
        mca_pml_umrddt_listen(recv->comm);
    }
    recv->peer = peer;
    recv->total = rts->length < capacity ? rts->length : capacity;
    recv->position = 0;
    if (!rts_valid(recv)) {
        /* the cookie is valid, so this is a defect or a hostile peer: send no reply */
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        opal_output(0, "pml:umrddt: a malformed envelope from rank %d; its message fails",
                    recv->status.MPI_SOURCE);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_INTERN, 0);
        return;
    }
    if (OPAL_UNLIKELY(sizeof(*rts) > capacity) && capacity < rts->length) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_small);
        return;
    }
    candidates(recv);
    mca_pml_umrddt_recv_next(recv);
}

void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv)
{
    recv->fin = 0;
    recv->layout = NULL;
    recv->endpoint = NULL;
    recv->announced = false;
    memset(recv->held, 0, sizeof(recv->held));
    recv->data = NULL;
}

void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_reset(recv);
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_MATCHED, matched_event);
}

/* ---------------------------------------------------------------------------------------------
 * End of a message
 * ------------------------------------------------------------------------------------------- */

/** Release the layout and everything that the scheme holds for this receive. */
void mca_pml_umrddt_recv_release(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&recv->wait);
    if (OPAL_UNLIKELY(0 != __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED))) {
        /* the sender must not receive a queued CTS: its keys are no longer valid */
        mca_pml_umrddt_control_withdraw(
            recv->comm, recv->status.MPI_SOURCE,
            mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, recv->rts.request_id), recv->rts.seq);
    }
    if (OPAL_LIKELY(NULL != recv->ops) && NULL != recv->ops->recv_release) {
        recv->ops->recv_release(recv);
    }
    if (NULL != recv->layout) {
        OBJ_RELEASE(recv->layout);
        recv->layout = NULL;
    }
}

void mca_pml_umrddt_recv_end(mca_pml_umrddt_recv_t *recv, int error)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* truncation does not apply to a part: its total is where it ends */
    if (MPI_SUCCESS == error && recv->total < recv->rts.length && NULL == recv->split) {
        error = MPI_ERR_TRUNCATE;
    }
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(
        recv, error, MPI_SUCCESS == error || MPI_ERR_TRUNCATE == error ? recv->rts.length : 0);
}

/* ---------------------------------------------------------------------------------------------
 * Replies
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts,
                               mca_pml_umrddt_reply_kind_t reply_kind,
                               mca_pml_umrddt_reply_t *reply)
{
    memset(reply, 0, sizeof(*reply));
    reply->magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY);
    reply->seq = rts->seq;
    reply->request_id = rts->request_id;
    reply->reply_kind = (uint32_t) reply_kind;
}

int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* final replies: no fallback is left if they cannot be sent */
    bool must = MCA_PML_UMRDDT_REPLY_FALLBACK == reply->reply_kind
                || MCA_PML_UMRDDT_REPLY_ACK == reply->reply_kind;

    return mca_pml_umrddt_control(
        comm, peer, mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, reply->request_id), reply,
        sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]), must);
}

/* ---------------------------------------------------------------------------------------------
 * Reports of the HCA and of the sender
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    mca_pml_umrddt_recv_t *recv = umrddt_number_find(&mca_pml_umrddt.fins, fin);

    (void) context;
    if (OPAL_UNLIKELY(NULL == recv || recv->endpoint != endpoint || NULL == recv->ops->fin)) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        return;
    }
    recv->ops->fin(recv);
}

/** Find the message that a NACK refers to. NULL: it has ended, or no scheme owns it. */
static mca_pml_umrddt_recv_t *find(const mca_pml_umrddt_comm_t *comm, int src,
                                   const mca_pml_umrddt_nack_header_t *fail)
{
    opal_list_item_t *item;

    for (item = opal_list_get_first(&mca_pml_umrddt.receives);
         item != opal_list_get_end(&mca_pml_umrddt.receives); item = opal_list_get_next(item)) {
        mca_pml_umrddt_recv_t *recv = container_of(item, mca_pml_umrddt_recv_t, active);

        if (recv->comm == comm && recv->status.MPI_SOURCE == src && recv->rts.seq == fail->seq
            && recv->rts.request_id == fail->request_id && NULL != recv->ops) {
            return recv;
        }
    }
    return NULL;
}

void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_nack_header_t *fail)
{
    mca_pml_umrddt_recv_t *recv = find(comm, src, fail);
    /* a message that has ended is complete: its FIN has arrived */
    mca_pml_umrddt_nack_t what =
        NULL == recv ? MCA_PML_UMRDDT_NACK_ACK : recv->ops->nack(recv, fail);
    mca_pml_umrddt_rts_t rts = {.seq = fail->seq, .request_id = fail->request_id};
    mca_pml_umrddt_reply_t reply;

    switch (what) {
    case MCA_PML_UMRDDT_NACK_ACK:
        mca_pml_umrddt_reply_init(&rts, MCA_PML_UMRDDT_REPLY_ACK, &reply);
        (void) mca_pml_umrddt_reply_send(comm, src, &reply);
        break;
    case MCA_PML_UMRDDT_NACK_BASE:
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_sender);
        break;
    default:
        break;
    }
}
