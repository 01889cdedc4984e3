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

/** Make progress the owner of the receive until mca_pml_umrddt_recv_finish. From any thread. */
void mca_pml_umrddt_recv_begin(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_recv_state_t state,
                               void (*event)(void *));

/** Set the status and complete. Only from progress, which must own the receive. */
void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length);

/** A NACK arrived: the sender failed after our CTS. */
void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_fail_t *fail);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_H */
