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
 * Services for the RDMA schemes (pml_umrddt_rdma.h): endpoint and registered memory; at the
 * receiver also the credit for the FIN, and the flush of GPU memory.
 */

/*
 * Receiver:
 *
 *     start --(scheme: prepare the CTS)--> CREDIT --CTS--> FIN --(scheme: next round)--> ...
 *                                                           |
 *                                                           +--(all)--> (FLUSH) --> DONE
 *
 * A write can arrive only between the CTS that carries its key and the end of that round. A round
 * ends with the FIN, with a NACK that reports no posted write, or when the endpoint is broken and
 * accepts no further writes. GPU memory is flushed after the last round, and before a fallback
 * after any round: no write may come after the base PML's data.
 *
 * Keys and credits for FINs are limited, and a sender that does not call MPI holds them. MPI
 * requires that messages of others complete nevertheless. So a receive does not wait for ever.
 */

#include "ompi_config.h"

#include <stdio.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

/* Nanoseconds of progress without a key or a credit for anybody, and those that a pass counts at
 * most: a process that does not run does not wait. */
#define STARVED      UINT64_C(1000000000)
#define STARVED_PASS UINT64_C(1000000)

#define RECV_OF(item) container_of(item, mca_pml_umrddt_recv_t, active)

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** Schemes that the HCA supports and that are enabled. Closes the HCA if it does not support the
 * only scheme that is enabled. */
uint16_t mca_pml_umrddt_rdma_open(void)
{
    static char why_not[256]; /* a copy, because the component that has the text is unloaded */

    const int scheme = mca_pml_umrddt.params.scheme;
    uint16_t schemes = MCA_PML_UMRDDT_BITS_HCA;

    if (NULL == mca_pml_umrddt.hca) {
        return 0;
    }
    if (0 == mca_pml_umrddt.caps->max_keys) {
        schemes &= (uint16_t) ~MCA_PML_UMRDDT_BIT_UMR;
        if (MCA_PML_UMRDDT_SCHEME_UMR == scheme) {
            snprintf(why_not, sizeof(why_not), "pml_umrddt_scheme is umr, and %s",
                     mca_pml_umrddt.caps->umr.why);
            mca_pml_umrddt.hca_why_not = why_not;
            mca_pml_umrddt_hca_close();
            return 0;
        }
    }
    mca_pml_umrddt.stripe_from =
        0 < mca_pml_umrddt.params.stripe && mca_pml_umrddt.hca->hca(1, NULL, NULL)
            ? mca_pml_umrddt.params.stripe
            : SIZE_MAX;
    return MCA_PML_UMRDDT_SCHEME_AUTO == scheme ? schemes : schemes & MCA_PML_UMRDDT_BIT(scheme);
}

bool mca_pml_umrddt_rdma_reaches(const mca_pml_umrddt_peer_t *peer)
{
    return NULL != mca_pml_umrddt.hca && peer->has_hca;
}

mca_pml_umrddt_can_send_t mca_pml_umrddt_rdma_can_send(const mca_pml_umrddt_comm_t *comm,
                                                       const mca_pml_umrddt_peer_t *peer,
                                                       const opal_umrddt_gpu_where_t *where,
                                                       size_t size)
{
    (void) comm;
    (void) size;
    return !opal_umrddt_gpu_on_gpu(where) || mca_pml_umrddt_hca_takes(peer, where)
               ? MCA_PML_UMRDDT_CAN_SEND
               : MCA_PML_UMRDDT_CAN_SEND_NOT;
}

/** Returns true if the HCA is to carry a message from GPU memory: CUDA IPC cannot, or is predicted
 * to be slower for this layout. If no other scheme is enabled, can_send has tested the memory. */
static inline bool wanted(const mca_pml_umrddt_send_t *send)
{
    if (0
        == (MCA_PML_UMRDDT_BITS_ALL & ~MCA_PML_UMRDDT_BITS_HCA & mca_pml_umrddt.schemes
            & send->comm->schemes)) {
        return true;
    }
    return (!mca_pml_umrddt_ipc_wanted(send->comm, send->peer, &send->where)
            || mca_pml_umrddt_select_beats_copy(send->comm, send->peer, send->layout,
                                                MCA_PML_UMRDDT_BITS_HCA))
           && mca_pml_umrddt_hca_takes(send->peer, &send->where);
}

static uint64_t propose(opal_iov_cache_layout_t *layout)
{
    opal_iov_cache_limits_t limits;
    uint64_t value;

    mca_pml_umrddt.hca->key_limits(layout, &limits);
    value = opal_iov_cache_chunk(layout, &limits, layout->size);
    __atomic_store_n(&layout->memo[MCA_PML_UMRDDT_MEMO_PROPOSAL], value, __ATOMIC_RELAXED);
    return value;
}

/** The sender's proposed chunk size for a layout, cached in the layout. Any thread. */
static inline uint64_t proposal(opal_iov_cache_layout_t *layout)
{
    /* concurrent threads compute the same value */
    uint64_t value = __atomic_load_n(&layout->memo[MCA_PML_UMRDDT_MEMO_PROPOSAL], __ATOMIC_RELAXED);

    return OPAL_LIKELY(0 != value) ? value : propose(layout);
}

static inline bool offer_endpoint(mca_pml_umrddt_send_t *send)
{
    if (OPAL_SUCCESS != mca_pml_umrddt_endpoint(send->peer, &send->endpoint)) {
        send->endpoint = NULL;
        return false;
    }
    send->endpoint = mca_pml_umrddt.hca->endpoint_near(
        send->endpoint, (const char *) send->buf + send->layout->lb,
        opal_umrddt_gpu_on_device(&send->where) ? send->where.memory.device : -1);
    if (mca_pml_umrddt.hca->endpoint_broken(send->endpoint)) {
        send->endpoint = NULL;
        return false;
    }
    mca_pml_umrddt.hca->endpoint_address(send->endpoint, &send->rts.address);
    return true;
}

bool mca_pml_umrddt_rdma_offer_endpoint(mca_pml_umrddt_send_t *send)
{
    return offer_endpoint(send);
}

void mca_pml_umrddt_rdma_offer(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_rts_t *rts = &send->rts;

    if ((opal_umrddt_gpu_on_device(&send->where) && !wanted(send))
        || OPAL_UMRDDT_GPU_MANAGED == send->where.memory.kind || !offer_endpoint(send)) {
        return;
    }
    rts->schemes |= MCA_PML_UMRDDT_BITS_HCA & mca_pml_umrddt.schemes & send->comm->schemes;
    rts->write_pieces = (uint16_t) mca_pml_umrddt.caps->write_pieces;
    if (0 != (MCA_PML_UMRDDT_BIT_UMR & rts->schemes)) {
        rts->chunk = proposal(send->layout);
        if (OPAL_UNLIKELY(mca_pml_umrddt.stripe_from <= rts->length)
            && !opal_umrddt_gpu_on_device(&send->where)) {
            mca_pml_umrddt_stripes_offer(send);
        }
    }
}

/** Returns true if the user has freed the request of this record's message. */
static inline bool is_freed(const mca_pml_umrddt_send_t *send)
{
    if (OPAL_UNLIKELY(NULL != send->split)) {
        send = send->split->parent;
    }
    return __atomic_load_n(&send->freed, __ATOMIC_SEQ_CST);
}

bool mca_pml_umrddt_rdma_has_memory(mca_pml_umrddt_send_t *send)
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
    /* first store the memory, then check the flag; the thread that frees does the reverse */
    __atomic_store_n(&send->memory, memory, __ATOMIC_SEQ_CST);
    if (OPAL_UNLIKELY(is_freed(send))) {
        mca_pml_umrddt.hca->memory_let_go(memory);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

int mca_pml_umrddt_rdma_refuse(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    recv->candidates &= (uint16_t) ~MCA_PML_UMRDDT_BITS_HCA;
    recv->reason = reason;
    return OMPI_ERR_NOT_AVAILABLE;
}

bool mca_pml_umrddt_rdma_register(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    return NULL != rdma->memory
           || OPAL_SUCCESS
                  == mca_pml_umrddt_register(recv->endpoint, MCA_BTL_UMR_REMOTE, &recv->where,
                                             recv->buf, recv->layout, recv->total, &rdma->memory);
}

/** Receives in this state fall back to the base PML, unless a message of their sender waits for its
 * FIN: they can wait for that, too. */
static void all_by_base(mca_pml_umrddt_recv_state_t state, uint64_t *reason)
{
    opal_list_t *list = &mca_pml_umrddt.receives;
    opal_list_item_t *item, *next;

    OPAL_LIST_FOREACH (item, list, opal_list_item_t) {
        if (state == RECV_OF(item)->state) {
            RECV_OF(item)->peer->fed = false;
        }
    }
    OPAL_LIST_FOREACH (item, list, opal_list_item_t) {
        if (0 != RECV_OF(item)->fin) {
            RECV_OF(item)->peer->fed = true;
        }
    }
    OPAL_LIST_FOREACH_SAFE (item, next, list, opal_list_item_t) {
        if (state == RECV_OF(item)->state && !RECV_OF(item)->peer->fed) {
            mca_pml_umrddt_rdma_by_base(RECV_OF(item), reason);
        }
    }
}

bool mca_pml_umrddt_rdma_shortage(mca_pml_umrddt_shortage_t *shortage)
{
    const uint64_t now = mca_pml_umrddt_time(), passed = now - shortage->looked;

    shortage->looked = now;
    shortage->lasted += passed < STARVED_PASS ? passed : STARVED_PASS;
    return STARVED <= shortage->lasted;
}

bool mca_pml_umrddt_rdma_starves(mca_pml_umrddt_shortage_t *shortage,
                                 const mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    const mca_pml_umrddt_recv_state_t state = recv->state;

    if (!mca_pml_umrddt_rdma_shortage(shortage)) {
        return false;
    }
    shortage->lasted -= STARVED / 16; /* not in each pass */
    all_by_base(state, reason);
    return state != recv->state;
}

/** State CREDIT: reserve a receive for the FIN, and send the CTS. */
static bool take_credit(void *owner)
{
    static mca_pml_umrddt_shortage_t shortage;
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    int rc = mca_pml_umrddt.hca->fin_reserve(recv->endpoint);

    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return mca_pml_umrddt_rdma_starves(&shortage, recv, &counters->fallback_other);
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_endpoint);
        return true;
    }
    recv->state = MCA_PML_UMRDDT_RECV_FIN;
    recv->fin = umrddt_number_new(&mca_pml_umrddt.fins, recv);
    if (0 == recv->fin || OMPI_SUCCESS != rdma->cts(recv)) {
        mca_pml_umrddt.hca->fin_cancel(recv->endpoint);
        mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_other);
        return true;
    }
    shortage.lasted = 0;
    MCA_PML_UMRDDT_COUNT(rounds);
    return true;
}

void mca_pml_umrddt_recv_request_credit(mca_pml_umrddt_recv_t *recv)
{
    recv->state = MCA_PML_UMRDDT_RECV_CREDIT;
    if (!opal_list_is_empty(&recv->peer->credit) || !take_credit(recv)) {
        mca_pml_umrddt_wait_credit(recv->peer, &recv->wait, take_credit, recv);
    }
}

/** The flush has completed: the GPU sees all data, or (error) may never see it. */
static void flushed(void *context, int status)
{
    mca_pml_umrddt_recv_t *recv = context;

    if (NULL != recv->reason) {
        mca_pml_umrddt_recv_by_base(recv, recv->reason); /* nothing can be done about an error */
    } else if (OPAL_SUCCESS == status) {
        mca_pml_umrddt_recv_end(recv, MPI_SUCCESS);
    } else {
        /* the sender has completed the message, so it cannot be sent again */
        opal_output(0, "pml:umrddt: a message came to a GPU that cannot be made to see it; it "
                       "fails");
        mca_pml_umrddt_recv_end(recv, MPI_ERR_OTHER);
    }
}

void mca_pml_umrddt_rdma_flush(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);
    int rc;

    recv->reason = reason;
    recv->state = MCA_PML_UMRDDT_RECV_FLUSH;
    rc = mca_pml_umrddt.hca->memory_flush(rdma->memory, flushed, recv);
    if (OPAL_ERR_WOULD_BLOCK != rc) {
        flushed(recv, rc);
    }
}

void mca_pml_umrddt_rdma_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    if (!opal_umrddt_gpu_on_device(&recv->where)
        || (0 == recv->position && MCA_PML_UMRDDT_RECV_FIN != recv->state)) {
        mca_pml_umrddt_recv_by_base(recv, reason);
        return;
    }
    mca_pml_umrddt_wait_cancel(&recv->wait);
    mca_pml_umrddt_recv_forget_fin(recv);
    mca_pml_umrddt_rdma_flush(recv, reason);
}

mca_pml_umrddt_nack_t mca_pml_umrddt_rdma_nack(mca_pml_umrddt_recv_t *recv,
                                               const mca_pml_umrddt_nack_header_t *fail)
{
    if (MCA_PML_UMRDDT_RECV_FLUSH == recv->state) {
        return NULL == recv->reason ? MCA_PML_UMRDDT_NACK_ACK : MCA_PML_UMRDDT_NACK_KEEPS;
    }
    if (MCA_PML_UMRDDT_RECV_SPLIT == recv->state) {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
        /* NACKs refer to its stripes, not to the parent message */
        return MCA_PML_UMRDDT_NACK_KEEPS;
    }
    if (MCA_PML_UMRDDT_RECV_FIN == recv->state) {
        if (fail->in_flight) {
            mca_pml_umrddt.hca->endpoint_break(recv->endpoint);
        } else {
            mca_pml_umrddt.hca->fin_cancel(recv->endpoint);
        }
    }
    mca_pml_umrddt_rdma_by_base(recv, &counters->fallback_sender);
    return MCA_PML_UMRDDT_NACK_KEEPS;
}

void mca_pml_umrddt_rdma_release(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    mca_pml_umrddt_rdma_slot_end(recv, false);
    mca_pml_umrddt_recv_forget_fin(recv);
    if (NULL != rdma->keyset) {
        mca_pml_umrddt.hca->keyset_release(rdma->keyset);
        rdma->keyset = NULL;
    }
    if (NULL != rdma->memory) {
        mca_pml_umrddt.hca->memory_release(rdma->memory);
        rdma->memory = NULL;
    }
}

const char *mca_pml_umrddt_rdma_check(const mca_pml_umrddt_recv_t *recv, bool named)
{
    if (MCA_PML_UMRDDT_RECV_CREDIT == recv->state) {
        MCA_PML_UMRDDT_HOLDS(0 == recv->fin, "receives: no FIN can come before it is asked for");
    } else if (MCA_PML_UMRDDT_RECV_FIN == recv->state) {
        MCA_PML_UMRDDT_HOLDS(0 != recv->fin
                                 && recv == umrddt_number_find(&mca_pml_umrddt.fins, recv->fin),
                             "receives: one that waits for a FIN is found by it");
    } else {
        return NULL;
    }
    MCA_PML_UMRDDT_HOLDS(NULL != recv->endpoint,
                         "receives: one that keys are named for has an endpoint");
    MCA_PML_UMRDDT_HOLDS(recv->position < recv->total, "receives: a round has bytes to come");
    MCA_PML_UMRDDT_HOLDS(named, "receives: what is named to a sender is held");
    return NULL;
}
