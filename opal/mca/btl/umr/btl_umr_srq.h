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
 * Receives for FINs: shared by all endpoints, or of each endpoint.
 */

#ifndef MCA_BTL_UMR_SRQ_H
#define MCA_BTL_UMR_SRQ_H

#include "opal/mca/btl/umr/btl_umr_endpoint.h"

BEGIN_C_DECLS

/** The receives that all endpoints share; see btl_umr_srq.c. */
typedef struct mca_btl_umr_receives_t {
    bool started;         /**< receives_start has run */
    bool refused;         /**< the first failure to post one was logged */
    bool failed;          /**< the queue is in error */
    struct ibv_srq *srq;  /**< NULL: each endpoint has its own receives */
    struct ibv_cq *cq;    /**< completion queue of the receives */
    uint32_t depth;       /**< number of receives */
    uint32_t missing;     /**< receives not posted now */
    uint32_t batch;       /**< receives posted at a time */
    uint32_t expected;    /**< FINs expected on all endpoints */
    uint32_t idle;        /**< passes of progress without an event */
    opal_list_t draining; /**< broken endpoints that may have taken receives */
} mca_btl_umr_receives_t;

int mca_btl_umr_fin_reserve(mca_btl_umr_endpoint_t *endpoint);
void mca_btl_umr_fin_cancel(mca_btl_umr_endpoint_t *endpoint);

/** Create the shared receives if configured and available; no effect the second time. Lock held. */
void mca_btl_umr_receives_start(mca_btl_umr_hca_t *hca);

/** Destroy the shared receives after their queue pairs. Lock held. */
void mca_btl_umr_receives_stop(mca_btl_umr_hca_t *hca);

/**
 * Release the expected FINs of an endpoint that is broken now, its queue pair in ERR. Lock held.
 */
void mca_btl_umr_receives_leave(mca_btl_umr_endpoint_t *endpoint);

/** An expected FIN has come. Lock held. */
void mca_btl_umr_fin_came(mca_btl_umr_endpoint_t *endpoint);

/** A shared receive completed on this endpoint, with or without success. Lock held. */
void mca_btl_umr_receives_taken(mca_btl_umr_endpoint_t *endpoint);

/**
 * The receives' completion queue was polled empty after the last check for events, with the lock
 * held throughout. Lock held.
 */
void mca_btl_umr_receives_drained(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_SRQ_H */
