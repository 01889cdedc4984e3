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
 * Shared by the files that post and watch receives: pml_umrddt_recv_post.c, pml_umrddt_recv_watch.c
 * and pml_umrddt_recv_small.c. pml_umrddt_recv_post.c explains watching; read it first.
 */

#ifndef MCA_PML_UMRDDT_RECV_WATCH_H
#define MCA_PML_UMRDDT_RECV_WATCH_H

#include "ompi_config.h"

#include "ompi/mca/pml/base/pml_base_request.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** Used where a callback lets the base PML complete a request: earlier writes are visible to the
 * thread that finds it complete. The base PML's own atomics ensure that. The macro is empty except
 * for a race detector, which does not see them. */
#if !defined(MCA_PML_UMRDDT_PASS_ON)
#define MCA_PML_UMRDDT_PASS_ON(request) ((void) (request))
#endif

/** Used where the base PML calls back: writes before the request was posted, maybe by another
 * thread, are visible. The base PML's lock of posted receives ensures that. The macro is empty
 * except for a race detector, which does not see it. */
#if !defined(MCA_PML_UMRDDT_CALLED_BACK)
#define MCA_PML_UMRDDT_CALLED_BACK(request) ((void) (request))
#endif

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv.c
 * ------------------------------------------------------------------------------------------- */

/** Create the base PML's request of a record, not started. @return the base PML's error code */
int mca_pml_umrddt_base_init(mca_pml_umrddt_recv_t *recv);

/** Completion callback of a base PML request whose req_complete_cb_data is a record. @return 0: let
 * it complete; 1: keep it pending */
int mca_pml_umrddt_base_received(ompi_request_t *request);

/** Free function of such a request if it is the user's request. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/** Start a receive request of our own. */
int mca_pml_umrddt_recv_start(mca_pml_umrddt_recv_t *recv);

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv_watch.c
 * ------------------------------------------------------------------------------------------- */

/** Watch a pending request of the base PML with a record whose buffer is set. */
void mca_pml_umrddt_watch_record(mca_pml_umrddt_recv_t *recv, ompi_request_t *request);

/** The base PML's free function for receives, restored after a bare watch. Access atomically. */
extern ompi_request_free_fn_t mca_pml_umrddt_bare_free;

/** Free function of a bare request. */
int mca_pml_umrddt_bare_let_go(ompi_request_t **request);

/* Callbacks of bare requests, called before the base PML completes the request. They return 0 to
 * let it complete, and 1 to keep it pending. */

/** With threads. */
int mca_pml_umrddt_bare_received(ompi_request_t *request);

/** Single-threaded: no mark is needed, because the free function is restored at once. */
int mca_pml_umrddt_bare_received_alone(ompi_request_t *request);

/** The base PML has received into the bounce buffer of a record. */
int mca_pml_umrddt_bare_bounced_received(ompi_request_t *request);

/** The message may be an envelope, or the user has freed the request: watch it with a record, whose
 * buffer is set, from here on. @return as a callback */
int mca_pml_umrddt_bare_keep(mca_pml_umrddt_recv_t *recv, ompi_request_t *request);

/** Store the base PML's free function, from any of its requests, before the first bare watch. */
static inline void mca_pml_umrddt_bare_learn(const ompi_request_t *request)
{
    if (OPAL_UNLIKELY(NULL == __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED))) {
        __atomic_store_n(&mca_pml_umrddt_bare_free, request->req_free, __ATOMIC_RELAXED);
    }
}

/** Watch a request just created by the base PML that is pending or not started. */
static inline void mca_pml_umrddt_bare_watch(ompi_request_t *request,
                                             ompi_request_complete_fn_t received)
{
    request->req_free = mca_pml_umrddt_bare_let_go;
    request->req_complete_cb = received;
    /* it is NULL already, but the callback may run in another thread, and acquires by reading it */
    __atomic_store_n(&request->req_complete_cb_data, NULL, __ATOMIC_RELEASE);
}

/** Restore the base PML's request. */
static inline void mca_pml_umrddt_bare_unwatch(ompi_request_t *request)
{
    request->req_free = __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv_small.c, and its services from pml_umrddt_recv_post.c
 * ------------------------------------------------------------------------------------------- */

/** Create and free the free list of pml_umrddt_recv_small.c. */
void mca_pml_umrddt_recv_small_init(void);
void mca_pml_umrddt_recv_small_fini(void);

/** Post a receive smaller than an envelope, single-threaded. Arguments and result as in pml_irecv.
 */
int mca_pml_umrddt_post_small(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request);

/** Callback of such a request. */
int mca_pml_umrddt_small_received(ompi_request_t *request);

/** As mca_pml_umrddt_post_small, into a record: for any base PML and any datatype. */
int mca_pml_umrddt_post_bounced(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_request_t **request);

/**
 * A message arrived in the bounce buffer before the receive was watched. Deliver it, or continue
 * with our own request if it is an envelope.
 *
 * @param[in]     recv     record with the buffer and the received bytes; consumed
 * @param[in,out] request  in: the completed request of the base PML; out: the user's request
 *
 * @return OMPI_SUCCESS, or an error and no request
 */
int mca_pml_umrddt_bounced_already(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_comm_t *comm,
                                   ompi_request_t **request);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_WATCH_H */
