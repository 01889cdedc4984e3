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
 * Receives that are posted at the base PML and watched: functions of pml_umrddt_recv_watch.c.
 */

#ifndef MCA_PML_UMRDDT_RECV_WATCH_H
#define MCA_PML_UMRDDT_RECV_WATCH_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"

BEGIN_C_DECLS

/** Returns true if a receive is smaller than an envelope. */
static inline bool mca_pml_umrddt_is_small(size_t count, const ompi_datatype_t *datatype)
{
    return MCA_PML_UMRDDT_ENVELOPE > count * datatype->super.size;
}

/** Post a watched receive at the base PML. Arguments and result as in pml_irecv. Call inside the
 * gate, or with comm->gate.lock held. */
int mca_pml_umrddt_post(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);

/** Parts of mca_pml_umrddt_post_alone: for base PMLs whose requests do not have the arguments, with
 * and without a bounce buffer; for others, with a bounce buffer, or which completed with the size
 * of an envelope. */
int mca_pml_umrddt_post_kept_small(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_post_kept(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_post_bounced(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_bare_look_into(ompi_request_t **request);

/** Callback and free function of a request that is watched without a watch_t. */
int mca_pml_umrddt_received_bare_alone(ompi_request_t *request);
int mca_pml_umrddt_let_go(ompi_request_t **request);

/** As mca_pml_umrddt_post, single-threaded, after the first successful call of that. */
static inline __opal_attribute_always_inline__ int
mca_pml_umrddt_post_alone(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    ompi_request_t *host;
    int rc;

    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return mca_pml_umrddt_is_small(count, datatype)
                   ? mca_pml_umrddt_post_kept_small(MCA_PML_UMRDDT_RECV_ARGUMENTS, request)
                   : mca_pml_umrddt_post_kept(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt_is_small(count, datatype))) {
        return mca_pml_umrddt_post_bounced(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    rc = mca_pml_umrddt.host.pml_irecv(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    host = *request;
    if (REQUEST_COMPLETE(host)) {
        return OPAL_LIKELY(sizeof(mca_pml_umrddt_rts_t) != host->req_status._ucount)
                   ? OMPI_SUCCESS
                   : mca_pml_umrddt_bare_look_into(request);
    }
    host->req_free = mca_pml_umrddt_let_go;
    host->req_complete_cb = mca_pml_umrddt_received_bare_alone;
    host->req_complete_cb_data = NULL;
    return OMPI_SUCCESS;
}

/** Create and free the free list of watches. */
void mca_pml_umrddt_watches_init(void);
void mca_pml_umrddt_watches_fini(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_WATCH_H */
