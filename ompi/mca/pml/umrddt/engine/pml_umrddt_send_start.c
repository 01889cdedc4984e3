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
 * Start of a handled message: the envelope. pml_umrddt_send_rndv.c continues with the replies.
 */

#include "ompi_config.h"

#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_groups.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_split.h"

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
    has_id = mca_pml_umrddt_request_id_take(&mca_pml_umrddt.request_ids,
                                            MCA_PML_UMRDDT_MAX_REQUEST_IDS, &send->request_id);
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

/** Undo prepare, and cancel the receive for the reply. */
static void unprepare(mca_pml_umrddt_send_t *send)
{
    if (NULL != send->listen) {
        mca_pml_umrddt_send_unlisten(send);
    }
    if (OPAL_UNLIKELY(NULL != send->split)) {
        send->split->drop(send);
    }
    mca_pml_umrddt_send_request_id_release(send);
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
    if (send->plain || (send->super.req_persistent && deferred(send))) {
        return mca_pml_umrddt_send_start_plain(send);
    }

    rc = prepare(send);
    if (OMPI_SUCCESS != rc) {
        return not_offered(send, rc);
    }
    /* complete the state first: the reply may arrive before isend returns */
    send->state = MCA_PML_UMRDDT_SEND_REPLY;
    send->offered = true;
    mca_pml_umrddt_active(1);
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
