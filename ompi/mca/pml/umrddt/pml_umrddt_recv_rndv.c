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
 * The receiver's side of a taken message.
 *
 *     MATCHED -> KEYS -> MAPPING -> CREDIT --CTS--> FIN --(more)--> KEYS
 *        |        |         |         |              |  \
 *        +--------+---------+---------+--> HOST <----+   +--(all)--> (FLUSH) --> DONE
 *
 * pml_umrddt_recv_match.c chooses at MATCHED, pml_umrddt_recv_host.c is all of HOST. Without mkeys
 * (pml_umrddt_recv_direct.c) MATCHED goes to CREDIT at once, and the one CTS is for all of the
 * message. From GPU memory of this host the receiver reads it: pml_umrddt_ipc_recv.c, from MATCHED
 * on.
 * A message that travels packed is in pml_umrddt_pack_recv.c from MATCHED on, or from where another
 * way was refused.
 *
 * The receiver decides everything: how much it takes, in which chunk, by which keys, or that the
 * host PML shall carry the message after all. A write can land only between the CTS that names its
 * key and the end of that round: the FIN; the sender's word that none was posted; or the breaking
 * of the endpoint, after which the card accepts no more of them.
 *
 * test/model/message.pml is a model of it, which is checked.
 */

#include "ompi_config.h"

#include <string.h>

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_owner.h"
#include "pml_umrddt_pack.h"
#include "pml_umrddt_pairs.h"
#include "pml_umrddt_recv.h"
#include "pml_umrddt_sets.h"
#include "pml_umrddt_stripe.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

static bool map_keys(void *owner);

/* ---------------------------------------------------------------------------------------------
 * The end
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_recv_begin(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_recv_state_t state,
                               void (*event)(void *))
{
    recv->state = state;
    mca_pml_umrddt_active(1);
    mca_pml_umrddt_event(&recv->event, event, recv);
}

void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(NULL != recv->stripes) && mca_pml_umrddt_stripe_received(recv, error)) {
        return;
    }
    if (OPAL_UNLIKELY(NULL != recv->pair)) {
        mca_pml_umrddt_pairs_over(recv, error);
    }
    recv->req->req_status.MPI_SOURCE = recv->status.MPI_SOURCE;
    recv->req->req_status.MPI_TAG = recv->status.MPI_TAG;
    recv->req->req_status.MPI_ERROR = error;
    recv->req->req_status._ucount = length;
    recv->req->req_status._cancelled = 0;
    opal_list_remove_item(&mca_pml_umrddt.receives, &recv->active);
    mca_pml_umrddt_active(-1);
    mca_pml_umrddt_recv_complete(recv);
}

static void fin_forget(mca_pml_umrddt_recv_t *recv)
{
    if (0 != recv->fin) {
        mca_pml_umrddt_fin_give(&mca_pml_umrddt.fins, recv->fin);
        recv->fin = 0;
    }
}

/** The round is over; @p well if its FIN has come. */
static void place_leave(mca_pml_umrddt_recv_t *recv, bool well)
{
    if (!recv->placed) {
        return;
    }
    recv->placed = false;
    if (OPAL_UNLIKELY(recv->direct)) {
        mca_pml_umrddt_flat_leave(recv->peer, recv->place, well);
    } else {
        mca_pml_umrddt_set_end(recv->peer, recv->place, well);
    }
}

/** Give back what the card holds for this receive. */
void mca_pml_umrddt_recv_release(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_wait_cancel(&recv->wait);
    if (OPAL_UNLIKELY(0 != __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED))) {
        /* a CTS that is still here names keys that the sender must not hear of any more */
        mca_pml_umrddt_control_withdraw(
            recv->comm, recv->status.MPI_SOURCE,
            mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, recv->rts.slot), recv->rts.seq);
    }
    fin_forget(recv);
    place_leave(recv, false);
    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.gpu)) {
        mca_pml_umrddt_ipc_release(recv);
    }
    mca_pml_umrddt_pack_release(recv);
    if (NULL != recv->keyset) {
        mca_pml_umrddt.card->keyset_release(recv->keyset);
        recv->keyset = NULL;
    }
    if (NULL != recv->memory) {
        mca_pml_umrddt.card->memory_release(recv->memory);
        recv->memory = NULL;
    }
    if (NULL != recv->layout) {
        OBJ_RELEASE(recv->layout);
        recv->layout = NULL;
    }
}

void mca_pml_umrddt_recv_over(mca_pml_umrddt_recv_t *recv, int error)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(recv, error, recv->rts.length);
}

/** The message is whole. */
void mca_pml_umrddt_recv_done(mca_pml_umrddt_recv_t *recv)
{
    bool truncated = recv->total < recv->rts.length;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* (what is a stripe's is not looked at: its total is where it ends) */
    mca_pml_umrddt_recv_over(recv,
                             truncated && NULL == recv->stripes ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

void mca_pml_umrddt_recv_lost(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, 0);
}

/* ---------------------------------------------------------------------------------------------
 * Replies
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts, mca_pml_umrddt_verdict_t verdict,
                               mca_pml_umrddt_reply_t *reply)
{
    memset(reply, 0, sizeof(*reply));
    reply->magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY);
    reply->seq = rts->seq;
    reply->slot = rts->slot;
    reply->verdict = (uint32_t) verdict;
}

int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* the last ones: there is nothing to fall back to */
    bool must = MCA_PML_UMRDDT_HOST == reply->verdict || MCA_PML_UMRDDT_DONE == reply->verdict;

    return mca_pml_umrddt_control(comm, peer,
                                  mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, reply->slot), reply,
                                  sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]), must);
}

/* ---------------------------------------------------------------------------------------------
 * Rounds
 * ------------------------------------------------------------------------------------------- */

/** The CTS of this round, where the sender has the keys. */
static int cts_recall(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recall_t recall = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RECALL),
        .seq = recv->rts.seq,
        .slot = recv->rts.slot,
        .fin = recv->fin,
        .set = recv->keyset->id,
        .total = recv->total,
        .chunk = recv->chunk,
        .place = recv->place,
        .what = mca_pml_umrddt_recv_memory(recv),
    };

    return mca_pml_umrddt_control(recv->comm, recv->status.MPI_SOURCE,
                                  mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, recall.slot),
                                  &recall, sizeof(recall), false);
}

/** The CTS of this round. */
static int cts(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_naming_t naming;
    const mca_btl_umr_keyset_t *keyset = recv->keyset;
    size_t room =
        sizeof(mca_pml_umrddt_reply_t) + keyset->count * sizeof(mca_pml_umrddt_wire_key_t);
    mca_pml_umrddt_reply_t *reply = (mca_pml_umrddt_reply_t *) mca_pml_umrddt.scratch;

    if (keyset->count > mca_pml_umrddt.params.max_keys || mca_pml_umrddt.scratch_size < room) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    naming = mca_pml_umrddt_set_name(recv->peer, recv->rts.places, keyset, &recv->place);
    recv->placed = MCA_PML_UMRDDT_NAME_KEYS != naming;
    if (MCA_PML_UMRDDT_NAME_PLACE == naming) {
        return cts_recall(recv);
    }
    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_KEYS, reply);
    if (recv->placed) {
        reply->set = keyset->id;
        reply->place = recv->place;
    }
    reply->what = mca_pml_umrddt_recv_memory(recv);
    reply->total = recv->total;
    reply->start = keyset->start;
    reply->end = keyset->end;
    reply->chunk = recv->chunk;
    reply->fin = recv->fin;
    reply->key_count = (uint32_t) keyset->count;
    mca_pml_umrddt.card->endpoint_address(recv->endpoint, &reply->address);
    for (size_t i = 0; i < keyset->count; ++i) {
        reply->keys[i].addr = keyset->keys[i].addr;
        reply->keys[i].length = (uint32_t) keyset->keys[i].length;
        reply->keys[i].rkey = keyset->keys[i].rkey;
    }
    return mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, reply);
}

/** In state CREDIT: the FIN will find a receive posted; tell the sender to go. */
static bool take_credit(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    int rc = mca_pml_umrddt.card->fin_reserve(recv->endpoint);

    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_recv_by_host(recv, &counters->fallback_endpoint);
        return true;
    }
    recv->state = MCA_PML_UMRDDT_RECV_FIN;
    recv->fin = mca_pml_umrddt_fin_new(&mca_pml_umrddt.fins, recv);
    if (0 == recv->fin
        || OMPI_SUCCESS != (recv->direct ? mca_pml_umrddt_recv_direct_cts(recv) : cts(recv))) {
        mca_pml_umrddt.card->fin_cancel(recv->endpoint);
        mca_pml_umrddt_recv_by_host(recv, &counters->fallback_other);
        return true;
    }
    MCA_PML_UMRDDT_COUNT(rounds);
    return true;
}

void mca_pml_umrddt_recv_ask_credit(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_CREDIT;
    if (!opal_list_is_empty(&recv->peer->credit) || !take_credit(recv)) {
        mca_pml_umrddt_wait_credit(recv->peer, &recv->wait, take_credit, recv);
    }
}

static void keys_ready(void *context, int status)
{
    mca_pml_umrddt_recv_t *recv = context;

    if (OPAL_SUCCESS != status) {
        mca_pml_umrddt_recv_by_host(recv, &counters->fallback_keys);
        return;
    }
    mca_pml_umrddt_recv_ask_credit(recv);
}

/** The chunk that windows end at. One piece needs none: the sender may cut it as it likes. */
static inline uint64_t chunk_of(const mca_pml_umrddt_recv_t *recv)
{
    return opal_iov_cache_layout_is_contiguous(recv->layout) ? 0 : recv->chunk;
}

bool mca_pml_umrddt_recv_recall(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(mca_pml_umrddt_on_device(&recv->where))
        || OPAL_UNLIKELY(!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE]))) {
        return false;
    }
    recv->keyset = mca_pml_umrddt.card->keyset_recall(recv->endpoint, MCA_BTL_UMR_REMOTE, recv->buf,
                                                      recv->layout, chunk_of(recv), recv->position,
                                                      recv->total, mca_pml_umrddt.params.max_keys);
    return NULL != recv->keyset;
}

/** What keys are mapped over. @return false: not to be had, and the host PML is asked for */
static bool has_memory(mca_pml_umrddt_recv_t *recv)
{
    if (NULL != recv->memory
        || OPAL_SUCCESS
               == mca_pml_umrddt_register(recv->endpoint, MCA_BTL_UMR_REMOTE, &recv->where,
                                          recv->buf, recv->layout, recv->total, &recv->memory)) {
        return true;
    }
    mca_pml_umrddt_recv_by_host(recv, &counters->fallback_registration);
    return false;
}

/** In state KEYS: map keys for the next part of the buffer, as far as keys are to be had. */
static bool map_keys(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    int rc;

    if (!has_memory(recv)) {
        return true;
    }
    rc = mca_pml_umrddt.card->keyset_map(
        MCA_BTL_UMR_REMOTE, recv->buf, recv->layout, recv->memory, chunk_of(recv), recv->position,
        recv->total, mca_pml_umrddt.params.max_keys, keys_ready, recv, &recv->keyset);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_recv_by_host(recv, &counters->fallback_keys);
        return true;
    }
    recv->state = MCA_PML_UMRDDT_RECV_MAPPING;
    if (recv->keyset->ready) {
        keys_ready(recv, OPAL_SUCCESS);
    }
    return true;
}

void mca_pml_umrddt_recv_next_round(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_LIKELY(NULL != recv->keyset)
        || (NULL == recv->memory && mca_pml_umrddt_recv_recall(recv))) {
        recv->state = MCA_PML_UMRDDT_RECV_MAPPING;
        mca_pml_umrddt_recv_ask_credit(recv);
        return;
    }
    recv->state = MCA_PML_UMRDDT_RECV_KEYS;
    if (!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE]) || !map_keys(recv)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE], &recv->wait, map_keys,
                            recv);
    }
}

/** The GPU sees all of it, or never will. */
static void flushed(void *context, int status)
{
    mca_pml_umrddt_recv_t *recv = context;

    if (OPAL_SUCCESS == status) {
        mca_pml_umrddt_recv_done(recv);
        return;
    }
    /* the sender is through with it, so nobody can send it again */
    opal_output(0, "umrddt: a message came to a GPU that cannot be made to see it; it fails");
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(recv, MPI_ERR_OTHER, 0);
}

/** The last FIN has come. A GPU may have to be told before it sees what the card wrote. */
static void landed(mca_pml_umrddt_recv_t *recv)
{
    int rc;

    if (OPAL_LIKELY(!mca_pml_umrddt_on_device(&recv->where))) {
        mca_pml_umrddt_recv_done(recv);
        return;
    }
    recv->state = MCA_PML_UMRDDT_RECV_FLUSH;
    rc = mca_pml_umrddt.card->memory_flush(recv->memory, flushed, recv);
    if (OPAL_ERR_WOULD_BLOCK != rc) {
        flushed(recv, rc);
    }
}

void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    mca_pml_umrddt_recv_t *recv = mca_pml_umrddt_fin_find(&mca_pml_umrddt.fins, fin);

    (void) context;
    if (NULL == recv || recv->endpoint != endpoint || MCA_PML_UMRDDT_RECV_FIN != recv->state) {
        if (NULL == recv || recv->endpoint != endpoint || MCA_PML_UMRDDT_RECV_PACK != recv->state
            || !mca_pml_umrddt_pack_fin(recv->pack)) {
            MCA_PML_UMRDDT_COUNT(protocol_errors);
        }
        return;
    }
    fin_forget(recv);
    place_leave(recv, true);
    if (OPAL_UNLIKELY(recv->direct)) {
        landed(recv);
        return;
    }
    recv->position = recv->keyset->end;
    mca_pml_umrddt_keyset_done(recv->keyset);
    recv->keyset = NULL;
    if (recv->position < recv->total) {
        mca_pml_umrddt_recv_next_round(recv);
    } else {
        landed(recv);
    }
}

void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_fail_t *fail)
{
    mca_pml_umrddt_recv_t *recv = NULL;
    mca_pml_umrddt_reply_t reply;
    opal_list_item_t *item;

    for (item = opal_list_get_first(&mca_pml_umrddt.receives);
         item != opal_list_get_end(&mca_pml_umrddt.receives); item = opal_list_get_next(item)) {
        mca_pml_umrddt_recv_t *other = container_of(item, mca_pml_umrddt_recv_t, active);

        if (other->comm == comm && other->status.MPI_SOURCE == src && other->rts.seq == fail->seq
            && other->rts.slot == fail->slot && MCA_PML_UMRDDT_RECV_HOST != other->state
            && MCA_PML_UMRDDT_RECV_FILL != other->state
            && MCA_PML_UMRDDT_RECV_FLUSH != other->state) {
            recv = other;
            break;
        }
    }
    if (NULL == recv) {
        /* we told it to write, and it is not here any more: its FIN arrived */
        mca_pml_umrddt_rts_t rts = {.seq = fail->seq, .slot = fail->slot};

        mca_pml_umrddt_reply_init(&rts, MCA_PML_UMRDDT_DONE, &reply);
        (void) mca_pml_umrddt_reply_send(comm, src, &reply);
        return;
    }
    if (MCA_PML_UMRDDT_RECV_COPY == recv->state || MCA_PML_UMRDDT_RECV_STRIPED == recv->state) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        return; /* it has nothing to do with this, and will be told the end */
    }
    if (MCA_PML_UMRDDT_RECV_PACK == recv->state
        && mca_pml_umrddt_pack_sender_failed(recv->pack, fail)) {
        return; /* until what it has written is here */
    }
    if (MCA_PML_UMRDDT_RECV_FIN == recv->state) {
        if (fail->in_flight) {
            mca_pml_umrddt.card->endpoint_break(recv->endpoint);
        } else {
            mca_pml_umrddt.card->fin_cancel(recv->endpoint);
        }
    }
    mca_pml_umrddt_recv_by_host(recv, &counters->fallback_sender);
}
