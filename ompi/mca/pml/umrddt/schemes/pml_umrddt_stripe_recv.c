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
 * Striped messages at the receiver; read pml_umrddt_stripe.h first.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_split.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

/** Shared by the records of a striped message. */
typedef struct mca_pml_umrddt_recv_stripes_t {
    mca_pml_umrddt_recv_split_t super;
    uint32_t left; /**< stripes that have not ended, plus calls in progress */
    bool by_host;  /**< one stripe has sent FALLBACK */
    int error;     /**< for the user */
} mca_pml_umrddt_recv_stripes_t;

/* ---------------------------------------------------------------------------------------------
 * Stripes
 * ------------------------------------------------------------------------------------------- */

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
static mca_pml_umrddt_recv_t *stripe_new(mca_pml_umrddt_recv_stripes_t *stripes,
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
    mca_pml_umrddt_umr_stripe(recv, MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, parent)->chunk);
    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    return recv;
}

static void leave(mca_pml_umrddt_recv_stripes_t *stripes)
{
    if (0 == --stripes->left) {
        mca_pml_umrddt_recv_over(stripes->super.parent, stripes->error);
    }
}

static bool stripe_ended(mca_pml_umrddt_recv_t *recv, int error)
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
    leave(stripes);
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

bool mca_pml_umrddt_stripes_receive(mca_pml_umrddt_recv_t *recv)
{
    mca_btl_umr_endpoint_t *endpoints[MCA_PML_UMRDDT_STRIPES];
    mca_pml_umrddt_recv_stripes_t *stripes = (mca_pml_umrddt_recv_stripes_t *) recv->split_cached;
    mca_pml_umrddt_recv_t *stripe[MCA_PML_UMRDDT_STRIPES] = {NULL};
    bool use[MCA_PML_UMRDDT_STRIPES];
    uint32_t offered, count = 0, at = 0;
    uint64_t alignment, start = 0;
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

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
        .super = {.parent = recv, .by_base = stripe_by_base, .ended = stripe_ended},
        .left = 1,
        .error = MPI_SUCCESS};
    alignment = mca_pml_umrddt_stripe_alignment(&recv->rts, recv->layout->form, rdma->chunk,
                                                recv->total / count);
    for (uint32_t i = 0; i < offered; ++i) {
        mca_pml_umrddt_rts_t rts = rts_of(recv, i);

        if (use[i]) {
            uint64_t end = mca_pml_umrddt_stripe_end(recv->total, count, alignment, at++);

            stripe[i] = stripe_new(stripes, &rts, endpoints[i], start, end);
            if (NULL == stripe[i]) {
                /* no reply was sent for the others yet */
                while (0 < i--) {
                    if (NULL != stripe[i]) {
                        mca_pml_umrddt_recv_done(stripe[i]);
                    }
                }
                return false;
            }
            ++stripes->left;
            start = end;
        }
    }
    recv->split = &stripes->super;
    recv->state = MCA_PML_UMRDDT_RECV_SPLIT;
    /* The registration covers the whole message. The first lane is always used.
     * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, stripe[0])->memory = rdma->memory;
    rdma->memory = NULL;
    for (uint32_t i = 0; i < offered; ++i) {
        mca_pml_umrddt_rts_t rts = rts_of(recv, i);

        if (!use[i]) {
            report_done(recv, &rts, endpoints[i]);
        } else {
            mca_pml_umrddt_recv_next_round(stripe[i]);
        }
    }
    leave(stripes);
    return true;
}
