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
 * Control messages between processes that run umrddt, and NACKs. Functions of pml_umrddt_control.c.
 * They run only in progress, except init, fini, drop, listen and unlisten.
 */

#ifndef MCA_PML_UMRDDT_CONTROL_H
#define MCA_PML_UMRDDT_CONTROL_H

#include "ompi_config.h"

#include <stdbool.h>
#include <time.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

BEGIN_C_DECLS

/** Maximum size of a reply, bytes. */
static inline size_t mca_pml_umrddt_reply_room(void)
{
    size_t room = sizeof(mca_pml_umrddt_reply_t)
                  + mca_pml_umrddt.params.max_keys * sizeof(mca_pml_umrddt_wire_key_t);

    return room < MCA_PML_UMRDDT_REPLY_ROOM ? MCA_PML_UMRDDT_REPLY_ROOM : room;
}

/** Handler of NACKs: a sender failed after our CTS. @p fail has a valid head. */
typedef void mca_pml_umrddt_nack_handler_t(mca_pml_umrddt_comm_t *comm, int src,
                                           const mca_pml_umrddt_nack_header_t *fail);

/** Allocate memory for control messages. A part of it is reserved for critical ones. */
int mca_pml_umrddt_control_init(mca_pml_umrddt_nack_handler_t *handler);
void mca_pml_umrddt_control_fini(void);

/**
 * Send a control message by the base PML. If the base PML refuses it, it is sent later. Control
 * messages to one process of a communicator keep their order. The bytes are copied.
 *
 * @param[in] must  critical: the peer would wait forever without it, so the job is aborted if there
 *                  is no memory. At most the size of a reply without rkeys
 *
 * @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE and nothing is sent
 */
int mca_pml_umrddt_control(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *bytes,
                           size_t length, bool must);

/**
 * Drop replies of a message that the base PML has not accepted yet, except a critical one. Called
 * before the objects that they name are released. The caller's message retains the communicator.
 */
void mca_pml_umrddt_control_withdraw(mca_pml_umrddt_comm_t *comm, int peer, int tag, uint64_t seq);

/** Drop control messages that the base PML has not accepted yet, on one communicator or (NULL) on
 * all. */
void mca_pml_umrddt_control_drop(mca_pml_umrddt_comm_t *comm);

/**
 * Called when the base PML refuses a message that the peer waits for. The caller tries again while
 * this returns false.
 *
 * @param[in,out] since  time of the first refusal that is not a shortage of resources; initially 0
 *
 * @return true if such refusals last longer than pml_umrddt_refusal_timeout
 */
bool mca_pml_umrddt_given_up(int rc, time_t *since);

/** A critical control message cannot be sent: print an error and abort the job. */
void mca_pml_umrddt_control_fatal(mca_pml_umrddt_comm_t *comm, int peer, int rc);

/** Create comm->hints unless they exist. @return false: no memory */
bool mca_pml_umrddt_hints(mca_pml_umrddt_comm_t *comm);

/** Start or stop polling for NACKs on this communicator. */
void mca_pml_umrddt_listen(mca_pml_umrddt_comm_t *comm);
void mca_pml_umrddt_unlisten(mca_pml_umrddt_comm_t *comm);

/** Poll one communicator, round robin, and receive one NACK if there is one. */
void mca_pml_umrddt_notice_look(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_CONTROL_H */
