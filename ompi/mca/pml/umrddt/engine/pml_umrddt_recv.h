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
 * The receiver's engine: functions of pml_umrddt_recv_match.c, _recv_rndv.c and _recv_base.c.
 */

#ifndef MCA_PML_UMRDDT_RECV_H
#define MCA_PML_UMRDDT_RECV_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** Hand a receive to progress. Its envelope is in recv->rts, source and tag in recv->status. */
void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv);

/** FIN handler of the HCA. */
void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/**
 * Wait for recv->data and complete the receive with its status. The base PML's request recv->data
 * receives into the user's buffer or into recv->overflow. From any thread.
 */
void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv);

/** A NACK arrived: the sender failed after our CTS. */
void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_nack_header_t *fail);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_H */
