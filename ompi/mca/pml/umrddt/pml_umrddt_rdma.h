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
 * What the schemes with RDMA writes between the buffers of both sides share, at the receiver
 * (pml_umrddt_rdma_recv.c). Of progress only.
 */

#ifndef MCA_PML_UMRDDT_RDMA_H
#define MCA_PML_UMRDDT_RDMA_H

#include "pml_umrddt_engine.h"
#include "pml_umrddt_scheme.h"

BEGIN_C_DECLS

/** These schemes cannot start, for a reason that they share. @return OMPI_ERR_NOT_AVAILABLE */
int mca_pml_umrddt_rdma_refuse(mca_pml_umrddt_recv_t *recv, uint64_t *reason);

/** True if the HCA may write to the receive buffer, as far as is known without trying. */
bool mca_pml_umrddt_rdma_can_recv(const mca_pml_umrddt_recv_t *recv);

/**
 * Begin: the endpoint is connected, and the layout is looked up.
 *
 * @param[in] cts  sends the CTS of the scheme when there is a credit; OMPI_SUCCESS or an error
 *
 * @return OMPI_SUCCESS, or as mca_pml_umrddt_rdma_refuse
 */
int mca_pml_umrddt_rdma_begin(mca_pml_umrddt_recv_t *recv, int (*cts)(mca_pml_umrddt_recv_t *));

/** Register the buffer, recv->memory, unless it is. @return false: not possible */
bool mca_pml_umrddt_rdma_register(mca_pml_umrddt_recv_t *recv);

/** What the CTS names is there: tell the sender to write as soon as its FIN would find a receive.
 */
void mca_pml_umrddt_recv_ask_credit(mca_pml_umrddt_recv_t *recv);

/** The FIN of a round has come: its number is free. @return false: not in this state */
bool mca_pml_umrddt_rdma_fin(mca_pml_umrddt_recv_t *recv);

/** The last FIN has come. A GPU may have to be told before it sees what the HCA wrote. */
void mca_pml_umrddt_rdma_landed(mca_pml_umrddt_recv_t *recv);

/** As the member of a scheme. */
mca_pml_umrddt_nack_t mca_pml_umrddt_rdma_nack(mca_pml_umrddt_recv_t *recv,
                                               const mca_pml_umrddt_fail_t *fail);

/** Give back the number, the keys and the memory; the place at the sender is the scheme's. */
void mca_pml_umrddt_rdma_release(mca_pml_umrddt_recv_t *recv);

/* pml_umrddt_umr_recv.c */

/**
 * Begin a round, of a stripe too: name keys to the sender, from recv->position to recv->total, by
 * recv->endpoint: recv->keyset, or others, over recv->memory if that is there already.
 */
void mca_pml_umrddt_recv_next_round(mca_pml_umrddt_recv_t *recv);

/** Make a record the stripe of a message: as if it had started. */
void mca_pml_umrddt_umr_stripe(mca_pml_umrddt_recv_t *stripe, uint64_t chunk);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RDMA_H */
