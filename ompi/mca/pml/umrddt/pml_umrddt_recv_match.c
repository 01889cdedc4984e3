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
 * How the receiver's side of a handled message begins: the envelope is validated, and handed to the
 * schemes (pml_umrddt_recv_rndv.c).
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/util/output.h"

#include "pml_umrddt_engine.h"
#include "pml_umrddt_scheme.h"

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

/** The fields that all schemes share; pml_umrddt_schemes.c has the others. */
static bool rts_valid(const mca_pml_umrddt_rts_t *rts, const mca_pml_umrddt_peer_t *peer)
{
    return MCA_PML_UMRDDT_MAX_SLOTS > rts->slot && sizeof(*rts) <= rts->length
           && rts->chunk <= rts->length && MCA_PML_UMRDDT_MAX_PLACES >= rts->places
           && MCA_PML_UMRDDT_MAX_PLACES >= rts->flats && 0 != rts->write_pieces
           && mca_pml_umrddt_schemes_rts_valid(rts, peer);
}

static void matched_event(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    const mca_pml_umrddt_rts_t *rts = &recv->rts;
    mca_pml_umrddt_peer_t *peer = mca_pml_umrddt_peer(recv->comm, recv->status.MPI_SOURCE);
    uint64_t capacity = (uint64_t) recv->count * recv->datatype->super.size;

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
    if (!rts_valid(rts, peer)) {
        /* the cookie is right, so this is a defect of ours or a hostile peer: nobody to answer to
         */
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        opal_output(0, "umrddt: a malformed envelope from rank %d; its message fails",
                    recv->status.MPI_SOURCE);
        mca_pml_umrddt_recv_finish(recv, MPI_ERR_INTERN, 0);
        return;
    }
    if (OPAL_UNLIKELY(sizeof(*rts) > capacity)) {
        mca_pml_umrddt_recv_by_host(recv, &counters->fallback_small);
        return;
    }
    mca_pml_umrddt_candidates(recv);
    mca_pml_umrddt_recv_next(recv);
}

void mca_pml_umrddt_recv_reset(mca_pml_umrddt_recv_t *recv)
{
    recv->fin = 0;
    recv->layout = NULL;
    recv->endpoint = NULL;
    recv->announced = false;
    recv->ops = NULL;
    memset(recv->held, 0, sizeof(recv->held));
    recv->data = NULL;
}

void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_recv_reset(recv);
    mca_pml_umrddt_recv_begin(recv, MCA_PML_UMRDDT_RECV_MATCHED, matched_event);
}
