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
 * Probes, and claims: messages that were received early for a probe.
 */

/*
 * The base PML reports the envelope's size, but the user must get the message's size. If a probe
 * finds a message of the envelope's size, drain() takes that message and the earlier ones of its
 * source from the base PML, in order. It appends them to the communicator's list of claims:
 * messages of the envelope's size are read, the others are kept as handles. Claims are always the
 * oldest messages of their source. Matching order therefore holds if every receive and probe
 * searches the claims before the base PML. With threads these two steps are atomic: by the gate if
 * there are no claims, else by comm->gate.lock.
 */

#include "ompi_config.h"

#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"

OBJ_CLASS_INSTANCE(mca_pml_umrddt_claim_t, ompi_message_t, NULL, NULL);

/** Fill in the status of a probe. */
static void status_set(ompi_status_public_t *status, int src, int tag, size_t length)
{
    if (MPI_STATUS_IGNORE != status) {
        status->MPI_SOURCE = src;
        status->MPI_TAG = tag;
        status->_ucount = length;
        status->_cancelled = 0;
    }
}

static mca_pml_umrddt_claim_t *claim_find(mca_pml_umrddt_comm_t *comm, int src, int tag)
{
    mca_pml_umrddt_claim_t *claim;

    OPAL_LIST_FOREACH (claim, &comm->gate.claims, mca_pml_umrddt_claim_t) {
        if ((OMPI_ANY_SOURCE == src || claim->super.peer == src)
            && (OMPI_ANY_TAG == tag || claim->tag == tag)) {
            return claim;
        }
    }
    return NULL;
}

mca_pml_umrddt_claim_t *mca_pml_umrddt_claim_take(mca_pml_umrddt_comm_t *comm, int src, int tag)
{
    mca_pml_umrddt_claim_t *claim = claim_find(comm, src, tag);

    if (NULL != claim) {
        opal_list_remove_item(&comm->gate.claims, &claim->super.super.super);
    }
    return claim;
}

/** Returns true if the message is an envelope from a peer that sends envelopes. */
static bool from_peer(mca_pml_umrddt_comm_t *comm, int src, const mca_pml_umrddt_rts_t *rts)
{
    mca_pml_umrddt_peer_t *peer;
    time_t refused = 0;

    if (!mca_pml_umrddt_is_envelope(rts)) {
        return false;
    }
    while (OPAL_UNLIKELY(NULL == (peer = mca_pml_umrddt_peer(comm, src)))) {
        /* No memory for the lookup: the envelope must not be delivered as user data. The lock of
         * the gate may keep others from freeing some, so this does not last. */
        if (mca_pml_umrddt_given_up(OMPI_ERROR, &refused)) {
            mca_pml_umrddt_control_fatal(comm, src, OMPI_ERR_OUT_OF_RESOURCE);
        }
        opal_progress();
    }
    return peer->capable && 0 == memcmp(rts->cookie, peer->cookie, sizeof(rts->cookie));
}

/** Order of a message among the claims. Call it before a later message can be claimed: inside the
 * gate, or with comm->gate.lock held. */
static uint64_t next_order(mca_pml_umrddt_comm_t *comm)
{
    return __atomic_fetch_add(&comm->claim_order, 1, __ATOMIC_RELAXED);
}

/** Get an unused claim. It is allocated before a message is matched: the base PML cannot take a
 * matched message back. @return NULL: no memory */
static inline mca_pml_umrddt_claim_t *claim_get(void)
{
    return (mca_pml_umrddt_claim_t *) opal_free_list_get(&mca_pml_umrddt.claims);
}

static inline void claim_put(mca_pml_umrddt_claim_t *claim)
{
    opal_free_list_return(&mca_pml_umrddt.claims, &claim->super.super);
}

/** Fill a claim with a message that the base PML matched, and read it if it has the envelope's
 * size. Consumes the handle. */
static void claim_fill(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_comm_t *comm, uint64_t order,
                       ompi_message_t *handle, const ompi_status_public_t *status)
{
    ompi_request_t *request;
    time_t refused = 0;
    int rc;

    MCA_PML_UMRDDT_COUNT(probe_claims);
    claim->kind = MCA_PML_UMRDDT_CLAIM_HANDLE;
    claim->comm = comm;
    claim->order = order;
    claim->super.comm = comm->comm;
    claim->super.peer = status->MPI_SOURCE;
    claim->super.count = status->_ucount;
    claim->tag = status->MPI_TAG;
    claim->error = MPI_SUCCESS;
    claim->handle = handle;
    if (sizeof(claim->bytes) != claim->super.count) {
        return;
    }
    while (OMPI_SUCCESS
           != (rc = mca_pml_umrddt.host.pml_imrecv(&claim->bytes, sizeof(claim->bytes),
                                                   &ompi_mpi_byte.dt, &claim->handle, &request))) {
        /* an envelope must not be delivered as user data, so its size must be read */
        if (mca_pml_umrddt_given_up(rc, &refused)) {
            mca_pml_umrddt_control_fatal(comm, claim->super.peer, rc);
        }
        opal_progress(); /* other messages release what the base PML lacks */
    }
    ompi_request_wait_completion(request);
    claim->error = request->req_status.MPI_ERROR;
    claim->super.count = request->req_status._ucount;
    ompi_request_free(&request);
    claim->handle = NULL;
    claim->kind = MCA_PML_UMRDDT_CLAIM_DATA;
    if (MPI_SUCCESS == claim->error && from_peer(comm, claim->super.peer, &claim->bytes.rts)) {
        claim->kind = MCA_PML_UMRDDT_CLAIM_ENVELOPE;
        claim->super.count = claim->bytes.rts.length;
    }
}

/** Take the messages of @p src from the base PML, in order, up to the first with @p tag, which has
 * the envelope's size. Requires comm->gate.lock held and the gate closed. */
static int drain(mca_pml_umrddt_comm_t *comm, int src, int tag)
{
    ompi_status_public_t status;
    ompi_message_t *handle;
    mca_pml_umrddt_claim_t *claim;
    int matched;
    int rc;

    /* the base PML may run progress, which may call a probe that opens the gate */
    ++comm->gate.claiming;
    do {
        claim = claim_get();
        if (NULL == claim) {
            rc = OMPI_ERR_OUT_OF_RESOURCE;
            break;
        }
        rc = mca_pml_umrddt.host.pml_improbe(src, OMPI_ANY_TAG, comm->comm, &matched, &handle,
                                             &status);
        if (OMPI_SUCCESS != rc || !matched) {
            claim_put(claim);
            break;
        }
        claim_fill(claim, comm, next_order(comm), handle, &status);
        opal_list_append(&comm->gate.claims, &claim->super.super.super);
    } while (tag != status.MPI_TAG);
    --comm->gate.claiming;
    return rc;
}

/** Return a claim that could not be delivered to the list, before later matched ones. */
static void put_back(mca_pml_umrddt_claim_t *claim)
{
    mca_pml_umrddt_comm_t *comm = claim->comm;
    mca_pml_umrddt_claim_t *later;

    OPAL_THREAD_LOCK(&comm->gate.lock);
    umrddt_gate_shut(&comm->gate);
    OPAL_LIST_FOREACH (later, &comm->gate.claims, mca_pml_umrddt_claim_t) {
        if (later->order > claim->order) {
            break;
        }
    }
    opal_list_insert_pos(&comm->gate.claims, &later->super.super.super, &claim->super.super.super);
    OPAL_THREAD_UNLOCK(&comm->gate.lock);
}

/** Probe if there are claims, or if claims must be made to find the message size. */
static __opal_attribute_noinline__ int iprobe_claims(int src, int tag, mca_pml_umrddt_comm_t *comm,
                                                     int *matched, ompi_status_public_t *status)
{
    mca_pml_umrddt_claim_t *claim;
    ompi_status_public_t found;
    int rc = OMPI_SUCCESS;

    found.MPI_ERROR = MPI_SUCCESS;
    OPAL_THREAD_LOCK(&comm->gate.lock);
    claim = claim_find(comm, src, tag);
    if (NULL == claim && 0 < comm->gate.claiming) {
        *matched = 0; /* called recursively from drain: the list of claims is incomplete */
    } else if (NULL == claim) {
        rc = mca_pml_umrddt.host.pml_iprobe(src, tag, comm->comm, matched, &found);
        if (OMPI_SUCCESS == rc && *matched && MCA_PML_UMRDDT_ENVELOPE == found._ucount) {
            if (umrddt_gate_close(&comm->gate)) {
                /* another thread may have claimed it meanwhile */
                claim = claim_find(comm, src, tag);
                if (NULL == claim) {
                    rc = drain(comm, found.MPI_SOURCE, found.MPI_TAG);
                    claim = claim_find(comm, found.MPI_SOURCE, found.MPI_TAG);
                }
            }
            *matched = 0; /* the message must not be reported before it is claimed */
        }
    }
    if (NULL != claim) {
        *matched = 1;
        status_set(status, claim->super.peer, claim->tag, claim->super.count);
    } else if (OMPI_SUCCESS == rc && *matched) {
        status_set(status, found.MPI_SOURCE, found.MPI_TAG, found._ucount);
    }
    umrddt_gate_open(&comm->gate);
    OPAL_THREAD_UNLOCK(&comm->gate.lock);
    return rc;
}

int mca_pml_umrddt_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                          ompi_status_public_t *status)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);
    ompi_status_public_t found;
    int rc;

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_iprobe(src, tag, comm, matched, status);
    }
    if (!umrddt_gate_enter(&data->gate)) {
        return iprobe_claims(src, tag, data, matched, status);
    }
    found.MPI_ERROR = MPI_SUCCESS;
    rc = mca_pml_umrddt.host.pml_iprobe(src, tag, comm, matched, &found);
    umrddt_gate_leave(&data->gate);
    if (OMPI_SUCCESS == rc && *matched) {
        if (MCA_PML_UMRDDT_ENVELOPE == found._ucount) {
            return iprobe_claims(src, tag, data, matched, status);
        }
        status_set(status, found.MPI_SOURCE, found.MPI_TAG, found._ucount);
    }
    return rc;
}

int mca_pml_umrddt_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    int matched = 0;
    int rc;

    if (NULL == mca_pml_umrddt_watched(comm, tag)) {
        return mca_pml_umrddt.host.pml_probe(src, tag, comm, status);
    }
    for (;;) {
        rc = mca_pml_umrddt_iprobe(src, tag, comm, &matched, status);
        if (OMPI_SUCCESS != rc || matched) {
            return rc;
        }
        opal_progress();
    }
}

/* ---------------------------------------------------------------------------------------------
 * Matched probes
 * ------------------------------------------------------------------------------------------- */

/** Get the claim that is a message handle of the user; NULL: a handle of the base PML. */
static inline mca_pml_umrddt_claim_t *message_claim(ompi_message_t *message)
{
    return OBJ_CLASS(mca_pml_umrddt_claim_t) == ((opal_object_t *) message)->obj_class
               ? (mca_pml_umrddt_claim_t *) message
               : NULL;
}

/** Hand a claim, already removed from the list, to the user of a matched probe. */
static void hand_out(mca_pml_umrddt_claim_t *claim, ompi_message_t **message,
                     ompi_status_public_t *status)
{
    status_set(status, claim->super.peer, claim->tag, claim->super.count);
    if (MCA_PML_UMRDDT_CLAIM_HANDLE == claim->kind) {
        *message = claim->handle;
        claim_put(claim);
    } else {
        *message = &claim->super;
        OBJ_RETAIN(claim->super.comm); /* the user may free the communicator before the message */
    }
}

int mca_pml_umrddt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                           ompi_message_t **message, ompi_status_public_t *status)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);
    mca_pml_umrddt_claim_t *claim = NULL, *spare;
    ompi_status_public_t found;
    uint64_t order = 0;
    int rc = OMPI_SUCCESS;

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_improbe(src, tag, comm, matched, message, status);
    }
    found.MPI_ERROR = MPI_SUCCESS;
    spare = claim_get();
    if (NULL == spare) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (umrddt_gate_enter(&data->gate)) {
        rc = mca_pml_umrddt.host.pml_improbe(src, tag, comm, matched, message, &found);
        if (OMPI_SUCCESS == rc && *matched && MCA_PML_UMRDDT_ENVELOPE == found._ucount) {
            order = next_order(data);
        }
        umrddt_gate_leave(&data->gate);
    } else {
        OPAL_THREAD_LOCK(&data->gate.lock);
        claim = mca_pml_umrddt_claim_take(data, src, tag);
        *matched = 0;
        if (NULL == claim && 0 == data->gate.claiming) { /* see iprobe_claims */
            rc = mca_pml_umrddt.host.pml_improbe(src, tag, comm, matched, message, &found);
            order = next_order(data);
        }
        umrddt_gate_open(&data->gate);
        OPAL_THREAD_UNLOCK(&data->gate.lock);
    }
    if (NULL == claim && OMPI_SUCCESS == rc && *matched) {
        if (MCA_PML_UMRDDT_ENVELOPE == found._ucount) {
            /* the user owns the message already, so earlier messages need not be claimed */
            claim = spare;
            spare = NULL;
            claim_fill(claim, data, order, *message, &found);
        } else {
            status_set(status, found.MPI_SOURCE, found.MPI_TAG, found._ucount);
        }
    }
    if (NULL != spare) {
        claim_put(spare);
    }
    if (NULL != claim) {
        *matched = 1;
        hand_out(claim, message, status);
    }
    return rc;
}

int mca_pml_umrddt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status)
{
    int matched = 0;
    int rc;

    if (NULL == mca_pml_umrddt_watched(comm, tag)) {
        return mca_pml_umrddt.host.pml_mprobe(src, tag, comm, message, status);
    }
    for (;;) {
        rc = mca_pml_umrddt_improbe(src, tag, comm, &matched, message, status);
        if (OMPI_SUCCESS != rc || matched) {
            return rc;
        }
        opal_progress();
    }
}

/* ---------------------------------------------------------------------------------------------
 * Receiving claims
 * ------------------------------------------------------------------------------------------- */

/** Receive any other plain message: the base PML still holds its data. */
static int handle_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv)
{
    int rc;

    if (NULL != recv->stage.bytes) {
        rc = mca_pml_umrddt_stage_imrecv_into(recv, &claim->handle);
    } else {
        rc = mca_pml_umrddt.host.pml_imrecv(recv->buf, recv->count, recv->datatype, &claim->handle,
                                            &recv->data);
    }
    if (OMPI_SUCCESS == rc) {
        mca_pml_umrddt_recv_await_base(recv);
    }
    return rc;
}

int mca_pml_umrddt_claim_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv)
{
    int rc = OMPI_SUCCESS;

    recv->status = recv->super.req_status;
    recv->status.MPI_SOURCE = claim->super.peer;
    recv->status.MPI_TAG = claim->tag;
    recv->status.MPI_ERROR = claim->error;
    recv->status._ucount = claim->super.count;
    switch (claim->kind) {
    case MCA_PML_UMRDDT_CLAIM_DATA:
        memcpy(mca_pml_umrddt_recv_bounce(recv), claim->bytes.data, sizeof(claim->bytes));
        mca_pml_umrddt_recv_plain(recv);
        break;
    case MCA_PML_UMRDDT_CLAIM_ENVELOPE:
        recv->rts = claim->bytes.rts;
        mca_pml_umrddt_recv_matched(recv);
        break;
    case MCA_PML_UMRDDT_CLAIM_HANDLE:
        rc = handle_into(claim, recv);
        break;
    }
    if (OMPI_SUCCESS == rc) {
        claim_put(claim);
    } else {
        put_back(claim);
    }
    return rc;
}

/** Receive a message of the base PML. */
static int imrecv_plain(void *buf, size_t count, ompi_datatype_t *datatype,
                        ompi_message_t **message, ompi_request_t **request)
{
    opal_umrddt_gpu_where_t where;

    if ((MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu
         || opal_umrddt_gpu_is_cut(&mca_pml_umrddt.cuts, &datatype->super, count))
        && mca_pml_umrddt_stage_wanted(buf, count, datatype, (*message)->comm, true, &where)) {
        return mca_pml_umrddt_stage_imrecv(buf, count, datatype, message, &where, request);
    }
    return mca_pml_umrddt.host.pml_imrecv(buf, count, datatype, message, request);
}

int mca_pml_umrddt_claim_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                                 ompi_datatype_t *datatype, ompi_request_t **request)
{
    mca_pml_umrddt_recv_t *recv;
    int rc;

    if (MCA_PML_UMRDDT_CLAIM_HANDLE == claim->kind) {
        rc = imrecv_plain(buf, count, datatype, &claim->handle, request);
        if (OMPI_SUCCESS == rc) {
            /* for errors; pml/ucx does not set the communicator of a matched receive */
            (*request)->req_mpi_object.comm = claim->super.comm;
            claim_put(claim);
        } else {
            put_back(claim);
        }
        return rc;
    }
    recv =
        mca_pml_umrddt_recv_alloc(buf, count, datatype, claim->super.peer, claim->tag, claim->comm);
    if (NULL == recv) {
        put_back(claim);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &recv->super;
    return mca_pml_umrddt_claim_into(claim, recv);
}

/** Deliver the claim that is a message handle to a new receive. Consumes the handle, also on error.
 */
static int message_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                           ompi_datatype_t *datatype, ompi_message_t **message,
                           ompi_request_t **request)
{
    ompi_communicator_t *comm = claim->super.comm;
    int rc;

    if (MPI_UNDEFINED != claim->super.m_f_to_c_index) { /* as ompi_message_return */
        opal_pointer_array_set_item(&ompi_message_f_to_c_table, claim->super.m_f_to_c_index, NULL);
        claim->super.m_f_to_c_index = MPI_UNDEFINED;
    }
    *message = MPI_MESSAGE_NULL;
    rc = mca_pml_umrddt_claim_deliver(claim, buf, count, datatype, request);
    OBJ_RELEASE(comm);
    return rc;
}

int mca_pml_umrddt_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                          ompi_message_t **message, ompi_request_t **request)
{
    mca_pml_umrddt_claim_t *claim = message_claim(*message);

    if (NULL == claim) {
        return imrecv_plain(buf, count, datatype, message, request);
    }
    return message_deliver(claim, buf, count, datatype, message, request);
}

int mca_pml_umrddt_mrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                         ompi_message_t **message, ompi_status_public_t *status)
{
    mca_pml_umrddt_claim_t *claim = message_claim(*message);
    ompi_request_t *request;
    int rc;

    if (NULL == claim && MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
        && !opal_umrddt_gpu_is_cut(&mca_pml_umrddt.cuts, &datatype->super, count)) {
        return mca_pml_umrddt.host.pml_mrecv(buf, count, datatype, message, status);
    }
    rc = NULL == claim ? imrecv_plain(buf, count, datatype, message, &request)
                       : message_deliver(claim, buf, count, datatype, message, &request);
    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}
