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
 * How the receiver's side of a taken message begins: the envelope is checked, and the way chosen.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/util/output.h"

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_pack.h"
#include "pml_umrddt_pairs.h"
#include "pml_umrddt_recv.h"
#include "pml_umrddt_stripe.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/** It only looked like an envelope: a plain message, which is in the buffer (or the bounce)
 * already. */
static void plain(mca_pml_umrddt_recv_t *recv)
{
    size_t capacity = recv->count * recv->datatype->super.size;
    size_t length = sizeof(recv->rts);
    int error = MPI_SUCCESS;

    if (mca_pml_umrddt_on_device(&recv->where)) {
        memcpy(recv->bounce, &recv->rts, sizeof(recv->bounce));
        mca_pml_umrddt_stage_fill_bounce(recv);
        return;
    }
    if (capacity < length) {
        length = capacity;
        error = MPI_ERR_TRUNCATE;
    }
    (void) mca_pml_umrddt_unpack(recv->buf, recv->count, recv->datatype, &recv->rts, length);
    mca_pml_umrddt_recv_finish(recv, error, sizeof(recv->rts));
}

/** The chunk for this message; as last time if the same pair of layouts repeats. Of progress only.
 */
static uint64_t agreement(mca_pml_umrddt_recv_t *recv)
{
    uint64_t *memo = recv->layout->memo;

    if (memo[MCA_PML_UMRDDT_MEMO_AGREED_SIZE] != recv->total
        || memo[MCA_PML_UMRDDT_MEMO_AGREED_TO] != recv->rts.chunk) {
        opal_iov_cache_limits_t limits;

        mca_pml_umrddt.card->key_limits(recv->layout, &limits);
        memo[MCA_PML_UMRDDT_MEMO_AGREED] = opal_iov_cache_agree(
            recv->layout, &limits, recv->total, recv->rts.chunk, mca_pml_umrddt.params.chunk_floor);
        memo[MCA_PML_UMRDDT_MEMO_AGREED_SIZE] = recv->total;
        memo[MCA_PML_UMRDDT_MEMO_AGREED_TO] = recv->rts.chunk;
    }
    return memo[MCA_PML_UMRDDT_MEMO_AGREED];
}

/**
 * Decide how the message goes, and get what it needs of the card that way: the memory, or the keys
 * that were kept for it.
 *
 * @return NULL, or the counter of what is missing
 */
static uint64_t *choose(mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    unsigned scheme = OPAL_LIKELY(NULL == recv->pair)
                          ? mca_pml_umrddt_choose(rts, recv->layout, recv->buf, recv->total)
                          : mca_pml_umrddt_pairs_card(recv);
    bool umr = 0 != (MCA_PML_UMRDDT_BIT_UMR & mca_pml_umrddt.schemes & rts->schemes);

    if (umr && MCA_PML_UMRDDT_BIT_DIRECT != scheme) {
        recv->chunk = agreement(recv);
        recv->scheme = MCA_PML_UMRDDT_SCHEME_UMR;
        if (OPAL_LIKELY(0 == rts->rails[0].qpn) && mca_pml_umrddt_recv_recall(recv)) {
            return NULL;
        }
    }
    if (OPAL_SUCCESS
        != mca_pml_umrddt_register(recv->endpoint, MCA_BTL_UMR_REMOTE, &recv->where, recv->buf,
                                   recv->layout, recv->total, &recv->memory)) {
        return &counters->fallback_registration;
    }
    recv->direct = MCA_PML_UMRDDT_BIT_DIRECT == scheme && mca_pml_umrddt_recv_direct_possible(recv);
    /* (where it is not possible and there are no mkeys, that is what failed) */
    recv->scheme = recv->direct || !umr ? MCA_PML_UMRDDT_SCHEME_DIRECT : MCA_PML_UMRDDT_SCHEME_UMR;
    if (recv->direct) {
        return NULL;
    }
    if (!umr) {
        return &counters->fallback_scheme;
    }
    if (MCA_PML_UMRDDT_BIT_DIRECT == scheme) {
        recv->chunk = agreement(recv); /* it is not possible, after all */
    }
    return NULL;
}

/** Everything a round needs. @return NULL, or the counter of what is missing */
static uint64_t *prepare(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_peer_t *peer)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    if (0 == (MCA_PML_UMRDDT_BITS_HCA & rts->schemes)
        || (mca_pml_umrddt_on_gpu(&recv->where)
            && !mca_pml_umrddt_card_takes(peer, &recv->where))) {
        return &counters->fallback_scheme;
    }
    if (NULL == mca_pml_umrddt.card || !peer->has_card
        || OPAL_SUCCESS != mca_pml_umrddt_endpoint(peer, &recv->endpoint)) {
        return &counters->fallback_endpoint;
    }
    /* the sender has chosen the card */
    recv->endpoint = mca_pml_umrddt.card->endpoint_at(recv->endpoint, &rts->address);
    if (OPAL_SUCCESS != mca_pml_umrddt.card->endpoint_connect(recv->endpoint, &rts->address)) {
        return &counters->fallback_endpoint;
    }
    if (OPAL_LIKELY(NULL == recv->layout)
        && OMPI_SUCCESS != mca_pml_umrddt_layout(recv->datatype, recv->count, &recv->layout)) {
        return &counters->fallback_other;
    }
    return choose(recv);
}

/** True if an envelope offers ways that there are. */
static bool schemes_valid(const mca_pml_umrddt_rts_t *rts)
{
    const unsigned of_pack = MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_IF_GPU;
    const unsigned of_any = MCA_PML_UMRDDT_BELL | MCA_PML_UMRDDT_MAY_LEAVE | of_pack;

    return 0 != (MCA_PML_UMRDDT_BITS_ALL & rts->schemes)
           && 0 == (rts->schemes & ~(MCA_PML_UMRDDT_BITS_ALL | of_any))
           && (0 == (of_pack & rts->schemes)
               || (0 != (MCA_PML_UMRDDT_BITS_PACK & rts->schemes)
                   && of_pack != (of_pack & rts->schemes)));
}

static void matched_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    mca_pml_umrddt_peer_t *peer = mca_pml_umrddt_peer(recv->comm, recv->status.MPI_SOURCE);
    uint64_t capacity = (uint64_t) recv->count * recv->datatype->super.size;
    uint64_t *missing;
    bool by_ipc;

    if (OPAL_UNLIKELY(NULL == peer)) {
        /* there is no memory to look it up: an envelope must not be taken for the user's data */
        mca_pml_umrddt_event(&recv->event, matched_event, recv);
        return;
    }
    mca_pml_umrddt_recv_look(recv);
    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    if (!peer->capable || 0 != memcmp(rts->cookie, peer->cookie, sizeof(rts->cookie))) {
        plain(recv);
        return;
    }
    MCA_PML_UMRDDT_COUNT(taken_recvs);
    mca_pml_umrddt_listen(recv->comm);
    recv->peer = peer;
    recv->total = rts->length < capacity ? rts->length : capacity;
    recv->position = 0;
    if (MCA_PML_UMRDDT_MAX_SLOTS <= rts->slot || sizeof(*rts) > rts->length
        || rts->chunk > rts->length || MCA_PML_UMRDDT_MAX_PLACES < rts->places
        || MCA_PML_UMRDDT_MAX_PLACES < rts->flats || !schemes_valid(rts) || 0 == rts->write_pieces
        || (OPAL_UNLIKELY(!mca_pml_umrddt_ipc_rts_is_plain(rts))
            && (!mca_pml_umrddt_ipc_rts_valid(rts)
                || (0 != (MCA_PML_UMRDDT_BELL & rts->schemes)
                    && NULL == mca_pml_umrddt_ipc_bells(peer))))) {
        /* the cookie is right, so this is a defect of ours or a hostile peer: nobody to answer to
         */
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        opal_output(0, "umrddt: a malformed envelope from rank %d; its message fails",
                    recv->status.MPI_SOURCE);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_INTERN, 0);
        return;
    }
    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.pairs) && sizeof(*rts) <= capacity) {
        mca_pml_umrddt_pairs_judge(recv);
    }
    by_ipc = sizeof(*rts) <= capacity && mca_pml_umrddt_ipc_chosen(rts, peer);
    if (OPAL_UNLIKELY(0 != (MCA_PML_UMRDDT_BELL & rts->schemes)) && !by_ipc) {
        mca_pml_umrddt_ipc_announce(recv);
    }
    if (OPAL_UNLIKELY(NULL != recv->pair) && mca_pml_umrddt_pairs_leaves(recv)) {
        mca_pml_umrddt_recv_leave(recv);
        return;
    }
    if (OPAL_UNLIKELY(NULL != recv->pair) && mca_pml_umrddt_pairs_packs(recv)) {
        if (mca_pml_umrddt_pack_receive(recv)) {
            return;
        }
        mca_pml_umrddt_recv_release(recv); /* what it has begun with */
    }
    if (by_ipc) {
        mca_pml_umrddt_ipc_receive(recv);
        return;
    }
    missing = sizeof(*rts) > capacity ? &counters->fallback_small : prepare(recv, peer);
    if (NULL == missing && OPAL_LIKELY(!recv->direct)) {
        if (OPAL_LIKELY(0 == rts->rails[0].qpn) || mca_pml_umrddt_on_device(&recv->where)
            || !mca_pml_umrddt_stripes_receive(recv)) {
            mca_pml_umrddt_recv_next_round(recv);
        }
    } else if (NULL == missing) {
        mca_pml_umrddt_recv_ask_credit(recv);
    } else if (sizeof(*rts) > capacity || !mca_pml_umrddt_pack_receive(recv)) {
        mca_pml_umrddt_recv_by_host(recv, missing);
    }
}

void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv)
{
    recv->fin = 0;
    recv->layout = NULL;
    recv->endpoint = NULL;
    recv->memory = NULL;
    recv->keyset = NULL;
    recv->placed = false;
    recv->direct = false;
    recv->pack = NULL;
    mca_pml_umrddt_ipc_reset(recv);
    recv->data = NULL;
}

void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_reset(recv);
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_MATCHED, matched_event);
}
