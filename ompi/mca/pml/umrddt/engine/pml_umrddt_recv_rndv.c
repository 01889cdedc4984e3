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
 * message. pml_umrddt_recv_match.c validates it first; pml_umrddt_scheme.h has the schemes.
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

#include "ompi/mca/pml/umrddt/engine/pml_umrddt_split.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

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

void mca_pml_umrddt_recv_over(mca_pml_umrddt_recv_t *recv, int error)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    mca_pml_umrddt_recv_release(recv);
    mca_pml_umrddt_recv_finish(recv, error, recv->rts.length);
}

/** The message is complete. */
void mca_pml_umrddt_recv_done(mca_pml_umrddt_recv_t *recv)
{
    bool truncated = recv->total < recv->rts.length;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* truncation does not apply to a part: its total is where it ends */
    mca_pml_umrddt_recv_over(recv,
                             truncated && NULL == recv->split ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
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
    mca_pml_umrddt_recv_t *recv = mca_pml_umrddt_fin_find(&mca_pml_umrddt.fins, fin);

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
