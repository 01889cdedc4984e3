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
 * What the files share that post receives and watch them: pml_umrddt_recv_post.c, which says how
 * watching works, pml_umrddt_recv_watch.c and pml_umrddt_recv_small.c.
 */

#ifndef MCA_PML_UMRDDT_RECV_WATCH_H
#define MCA_PML_UMRDDT_RECV_WATCH_H

#include "ompi_config.h"

#include "ompi/mca/pml/base/pml_base_request.h"

#include "pml_umrddt_recv.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv_watch.c
 * ------------------------------------------------------------------------------------------- */

/** Watch a pending request of the host with a record whose buffer is set. */
void mca_pml_umrddt_watch_record(mca_pml_umrddt_recv_t *recv, ompi_request_t *request);

/** The host's own free function of all its receives, put back at the end of a bare watch; atomic.
 */
extern ompi_request_free_fn_t mca_pml_umrddt_bare_free;

/** The free function of a bare request. */
int mca_pml_umrddt_bare_let_go(ompi_request_t **request);

/* Callbacks of bare requests: the host's request is about to complete. They return 0 to let it, 1
 * to keep it pending. */

/** With threads. */
int mca_pml_umrddt_bare_received(ompi_request_t *request);

/** In one thread: the request need not be marked, as its free function is the host's again. */
int mca_pml_umrddt_bare_received_alone(ompi_request_t *request);

/** The host has received into the bounce of a record. */
int mca_pml_umrddt_bare_bounced_received(ompi_request_t *request);

/**
 * What came may be an envelope, or the user has freed the request: from here on it is watched with
 * a record, whose buffer is set. @return as a callback
 */
int mca_pml_umrddt_bare_keep(mca_pml_umrddt_recv_t *recv, ompi_request_t *request);

/** Note what the end of a bare watch will need, of any request of the host's; before the first one.
 */
static inline void mca_pml_umrddt_bare_learn(const ompi_request_t *request)
{
    if (OPAL_UNLIKELY(NULL == __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED))) {
        __atomic_store_n(&mca_pml_umrddt_bare_free, request->req_free, __ATOMIC_RELAXED);
    }
}

/** Watch a request that was just made by the host, and is pending or not started. */
static inline void mca_pml_umrddt_bare_watch(ompi_request_t *request,
                                             ompi_request_complete_fn_t received)
{
    request->req_free = mca_pml_umrddt_bare_let_go;
    request->req_complete_cb = received;
    /* as it is already; but the callback may run in another thread, which begins by reading it */
    __atomic_store_n(&request->req_complete_cb_data, NULL, __ATOMIC_RELEASE);
}

/** Make it the host's own again. */
static inline void mca_pml_umrddt_bare_unwatch(ompi_request_t *request)
{
    request->req_free = __atomic_load_n(&mca_pml_umrddt_bare_free, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv_small.c, and what it leaves to pml_umrddt_recv_post.c
 * ------------------------------------------------------------------------------------------- */

/** Post a receive of less than an envelope, in one thread. Arguments and result are pml_irecv's. */
int mca_pml_umrddt_post_small(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request);

/** The callback of such a request. */
int mca_pml_umrddt_small_received(ompi_request_t *request);

/** As mca_pml_umrddt_post_small, into a record: for any host and any type. */
int mca_pml_umrddt_post_bounced(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_request_t **request);

/**
 * A message has come into the bounce before the receive could be watched: hand it on, or go on with
 * a request of our own if it is an envelope.
 *
 * @param[in]     recv     with the buffer and what came; consumed
 * @param[in,out] request  the host's, complete; what the user gets
 *
 * @return OMPI_SUCCESS, or an error and no request
 */
int mca_pml_umrddt_bounced_already(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_comm_t *comm,
                                   ompi_request_t **request);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_WATCH_H */
