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
 * and pml_umrddt_recv.c. pml_umrddt_recv_post.c explains watching; read it first.
 */

#ifndef MCA_PML_UMRDDT_RECV_WATCH_H
#define MCA_PML_UMRDDT_RECV_WATCH_H

#include "ompi_config.h"

#include "ompi/mca/pml/base/pml_base_request.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * pml_umrddt_recv_watch.c
 * ------------------------------------------------------------------------------------------- */

/** Watch a pending request of the base PML with a record whose buffer is set. */
void mca_pml_umrddt_watch_record(mca_pml_umrddt_recv_t *recv, ompi_request_t *request);

/** The base PML's free function for receives, restored after a bare watch. Access atomically. */
extern ompi_request_free_fn_t mca_pml_umrddt_bare_free;

/** Callbacks of bare requests with threads, and single-threaded. They are called before the base
 * PML completes the request. @return 0: let it complete; 1: keep it pending */
int mca_pml_umrddt_bare_received(ompi_request_t *request);
int mca_pml_umrddt_bare_received_alone(ompi_request_t *request);

/** Free function of a bare request. */
int mca_pml_umrddt_bare_let_go(ompi_request_t **request);

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

/** Start a watched request that is not persistent. If the base PML refuses, the request is freed,
 * and the record that watches it, if there is one. */
int mca_pml_umrddt_start_once(ompi_request_t **request);

/** Post a receive smaller than an envelope. Arguments and result as in pml_irecv. */
int mca_pml_umrddt_post_bounced(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                int tag, ompi_communicator_t *comm, ompi_request_t **request);

/** As mca_pml_umrddt_post_bounced, with threads; only if mca_pml_umrddt.host_keeps. */
int mca_pml_umrddt_post_bounced_threads(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                        int tag, ompi_communicator_t *comm,
                                        ompi_request_t **request);

/** Create and free the free list of bounce buffers. */
void mca_pml_umrddt_bounces_init(void);
void mca_pml_umrddt_bounces_fini(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_WATCH_H */
