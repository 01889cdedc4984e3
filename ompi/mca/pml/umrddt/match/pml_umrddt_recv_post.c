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
 * Receives as MPI calls them. pml_umrddt_recv_watch.c explains how they are posted and watched.
 */

/*
 * An envelope that replaces a shorter message would overwrite more bytes of a receive in system
 * memory than MPI permits. So small messages are staged until the receiver sends a hint:
 *
 * - The first one in GPU memory makes the communicator keep bytes: later receives in system memory
 *   save what an envelope would overwrite, and restore it if one arrives.
 * - A later one that matches a receive of this state causes the hint for its sender and tag. By the
 *   order of MPI no older receive can match their next messages.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"

/** With claims: search them, then post at the base PML, with the lock held. @param[in] system  in
 * system memory, which keeps the bytes that an envelope overwrites */
static __opal_attribute_noinline__ int irecv_locked(void *buf, size_t count,
                                                    ompi_datatype_t *datatype, int src, int tag,
                                                    ompi_communicator_t *ompi_comm, bool system,
                                                    ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    mca_pml_umrddt_claim_t *claim = NULL;
    int rc;

    OPAL_THREAD_LOCK(&comm->gate.lock);
    if (system && umrddt_gate_keeps(&comm->gate) && !mca_pml_umrddt_is_small(count, datatype)) {
        rc = mca_pml_umrddt_stage_irecv(buf, count, datatype, src, tag, ompi_comm, NULL, request);
    } else if (NULL == (claim = mca_pml_umrddt_claim_take(comm, src, tag))) {
        rc = mca_pml_umrddt_post(buf, count, datatype, src, tag, ompi_comm, request);
    } else {
        rc = mca_pml_umrddt_claim_deliver(claim, buf, count, datatype, request);
    }
    umrddt_gate_open(&comm->gate);
    OPAL_THREAD_UNLOCK(&comm->gate.lock);
    return rc;
}

/** With threads, or with claims. */
static __opal_attribute_noinline__ int irecv_gate(void *buf, size_t count,
                                                  ompi_datatype_t *datatype, int src, int tag,
                                                  ompi_communicator_t *ompi_comm,
                                                  ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    int rc;

    if (OPAL_UNLIKELY(!umrddt_gate_enter(&comm->gate))) {
        return irecv_locked(buf, count, datatype, src, tag, ompi_comm, true, request);
    }
    rc = mca_pml_umrddt_post(buf, count, datatype, src, tag, ompi_comm, request);
    umrddt_gate_leave(&comm->gate);
    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) { /* see mca_pml_umrddt_post_alone */
        umrddt_gate_unguard(&comm->gate);
    }
    return rc;
}

/** Returns true if further checks are needed: there may be GPU memory, or the base PML may be
 * unable to receive the datatype in fragments. */
static inline bool may_want_stage(const ompi_datatype_t *datatype)
{
    return NULL != mca_pml_umrddt.gpu
           || opal_umrddt_gpu_may_cut(&mca_pml_umrddt.cuts, &datatype->super);
}

/** Fast check: known system memory, and a datatype that can be received in fragments. */
static inline bool needs_no_stage(const void *buf, size_t count, const ompi_datatype_t *datatype)
{
    return mca_pml_umrddt_known_system(buf, count, datatype)
           && !opal_umrddt_gpu_may_cut(&mca_pml_umrddt.cuts, &datatype->super);
}

/** A receive whose buffer the base PML may access. */
static inline __opal_attribute_always_inline__ int irecv_unstaged(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                                  ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_irecv(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    if (OPAL_UNLIKELY(!umrddt_gate_alone(&data->gate))) {
        return irecv_gate(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    return mca_pml_umrddt_post_alone(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}

/** Arguments of a blocking receive that are needed after the base PML's call. */
typedef struct blocking_t {
    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    ompi_communicator_t *comm;
} blocking_t;

/** A blocking receive got an envelope. */
static __opal_attribute_noinline__ int
recv_envelope(const blocking_t *call, const mca_pml_umrddt_rts_t *rts, ompi_status_public_t *status)
{
    return mca_pml_umrddt_wait_and_free(
        mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_find(call->comm), call->buf, call->count,
                                   call->datatype, rts, status),
        status);
}

/** A blocking receive that is smaller than an envelope. */
static __opal_attribute_noinline__ int recv_bounced(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                    ompi_status_public_t *status)
{
    blocking_t call = {.buf = buf, .count = count, .datatype = datatype, .comm = comm};
    ompi_status_public_t matched;
    int rc;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char bytes[MCA_PML_UMRDDT_ENVELOPE];
    } bounce;

    if (MPI_STATUS_IGNORE == status) {
        status = &matched;
    }
    if (!mca_pml_umrddt.host_keeps) {
        mca_pml_umrddt_bounce_in(bounce.bytes);
    }
    rc = mca_pml_umrddt.host.pml_recv(bounce.bytes, sizeof(bounce), &ompi_mpi_byte.dt, src, tag,
                                      comm, status);
    if (OPAL_UNLIKELY(sizeof(bounce) == status->_ucount) && MPI_SUCCESS == rc
        && mca_pml_umrddt_is_envelope(&bounce.rts)) {
        return recv_envelope(&call, &bounce.rts, status);
    }
    return mca_pml_umrddt_bounce_out(call.buf, call.count, call.datatype, bounce.bytes, rc,
                                     status->_ucount);
}

/** A blocking receive got a message of the envelope's size. */
static __opal_attribute_noinline__ int recv_look_into(const blocking_t *call,
                                                      ompi_status_public_t *status)
{
    mca_pml_umrddt_rts_t rts;

    return mca_pml_umrddt_read_envelope(NULL, call->buf, call->count, call->datatype, &rts)
               ? recv_envelope(call, &rts, status)
               : MPI_SUCCESS;
}

/** With threads, or with claims: the atomic step must not block, so post first, then wait. */
static __opal_attribute_noinline__ int recv_gate(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                 ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = irecv_gate(MCA_PML_UMRDDT_RECV_ARGUMENTS, &request);

    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, status) : rc;
}

/** A blocking receive whose buffer the base PML may access. */
static inline __opal_attribute_always_inline__ int recv_unstaged(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                                 ompi_status_public_t *status)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);
    ompi_status_public_t matched;
    blocking_t call;
    int rc;

    if (NULL == data) {
        return mca_pml_umrddt.host.pml_recv(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    if (OPAL_UNLIKELY(!umrddt_gate_alone(&data->gate))) {
        return recv_gate(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt_is_small(count, datatype))) {
        return recv_bounced(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    if (MPI_STATUS_IGNORE == status) {
        status = &matched;
    }
    call.buf = buf;
    call.count = count;
    call.datatype = datatype;
    call.comm = comm;
    rc = mca_pml_umrddt.host.pml_recv(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    if (OPAL_LIKELY(MPI_SUCCESS != rc || MCA_PML_UMRDDT_ENVELOPE != status->_ucount)) {
        return rc;
    }
    return recv_look_into(&call, status);
}

/** Returns true if receives in system memory of a communicator keep bytes. */
static inline bool keeps(ompi_communicator_t *comm, int tag)
{
    const mca_pml_umrddt_comm_t *data = mca_pml_umrddt_watched(comm, tag);

    return NULL != data && umrddt_gate_keeps(&data->gate);
}

/** A receive that may need a staging buffer. A separate function, so that irecv and recv need no
 * stack.
 * @param[out] request  NULL: wait for the receive, and return its @p status */
static __opal_attribute_noinline__ int receive_checked(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                       ompi_request_t **request,
                                                       ompi_status_public_t *status)
{
    opal_umrddt_gpu_where_t where;
    ompi_request_t *own, **to = NULL != request ? request : &own;
    bool given = false;
    int rc;

    if (!mca_pml_umrddt_stage_wanted(buf, count, datatype, comm, false, &where)
        || ((given = mca_pml_umrddt_base_given_recv(comm, &where, buf, count, datatype, src, tag))
            && !keeps(comm, tag))) {
        return NULL != request ? irecv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, request)
                               : recv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    /* GPU memory keeps no bytes: no envelope replaces a small message of a remote rank */
    rc = given ? irecv_locked(MCA_PML_UMRDDT_RECV_ARGUMENTS, false, to)
               : mca_pml_umrddt_stage_irecv(MCA_PML_UMRDDT_RECV_ARGUMENTS, &where, to);
    return NULL == request && OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(own, status) : rc;
}

/** irecv in a process with the CUDA driver, or with a wide datatype. Separate for the same reason.
 */
static __opal_attribute_noinline__ int irecv_looked(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                    ompi_request_t **request)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return irecv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    return receive_checked(MCA_PML_UMRDDT_RECV_ARGUMENTS, request, NULL);
}

int mca_pml_umrddt_irecv(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return irecv_looked(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    return irecv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}

/** recv in such a process. */
static __opal_attribute_noinline__ int recv_looked(MCA_PML_UMRDDT_RECV_PARAMETERS,
                                                   ompi_status_public_t *status)
{
    if (OPAL_LIKELY(needs_no_stage(buf, count, datatype))) {
        return recv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    return receive_checked(MCA_PML_UMRDDT_RECV_ARGUMENTS, NULL, status);
}

int mca_pml_umrddt_recv(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_status_public_t *status)
{
    if (OPAL_UNLIKELY(may_want_stage(datatype))) {
        return recv_looked(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
    }
    return recv_unstaged(MCA_PML_UMRDDT_RECV_ARGUMENTS, status);
}
