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
 * Receives that have a record: functions of pml_umrddt_recv.c. The base PML may hold a request of
 * the record, and the application another one.
 */

#ifndef MCA_PML_UMRDDT_RECV_RECORD_H
#define MCA_PML_UMRDDT_RECV_RECORD_H

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

/** Create the base PML's request of a record, not started. @return the base PML's error code */
int mca_pml_umrddt_base_init(mca_pml_umrddt_recv_t *recv);

/** Completion callback of a base PML request whose req_complete_cb_data is a record. @return 0: let
 * it complete; 1: keep it pending */
int mca_pml_umrddt_base_received(ompi_request_t *request);

/** Free function of such a request if it is the user's request. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/** Start a receive request of our own. */
int mca_pml_umrddt_recv_start(mca_pml_umrddt_recv_t *recv);

/**
 * A receive of the base PML has completed with an envelope: continue with our own request, and free
 * the base PML's.
 *
 * @param[in,out] request  in: the base PML's request; out: the user's
 *
 * @return OMPI_SUCCESS, or an error and no request
 */
int mca_pml_umrddt_envelope_in_request(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                                       ompi_datatype_t *datatype, const mca_pml_umrddt_rts_t *rts,
                                       ompi_request_t **request);

/** As mca_pml_umrddt_envelope_in_request, without a request of the base PML. @param[in] matched the
 * status of its receive */
int mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_t *comm, void *buf, size_t count,
                               ompi_datatype_t *datatype, const mca_pml_umrddt_rts_t *rts,
                               const ompi_status_public_t *matched, ompi_request_t **request);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_RECORD_H */
