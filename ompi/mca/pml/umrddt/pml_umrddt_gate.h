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
 * The gate of a communicator: how 'there are no claims' and 'posted at the base PML' become one
 * step without a lock.
 *
 * A claim (see pml_umrddt_probe.c) is older than everything that its source has at the host, so who
 * receives or probes must look at the claims first, and none may be made between that look and what
 * follows it at the host. Claims are rare: only a probe that finds a message of the envelope's size
 * makes them. So the look is a flag, CLOSED, which is set before the first claim is made and stays
 * until there is none, and threads that found it clear are counted until they have posted. Whoever
 * makes claims holds comm->match, sets the flag, and waits, without comm->match, until nobody is
 * inside; who finds the flag set works under comm->match instead.
 *
 * Nobody inside waits for anything: not for a message, not for a lock of ours. Yet the host may run
 * progress in there, and progress a function of the user's that probes. That one would wait for
 * itself; so the wait is bounded, and a probe that gives up has found nothing this time.
 */

#ifndef MCA_PML_UMRDDT_GATE_H
#define MCA_PML_UMRDDT_GATE_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

#define MCA_PML_UMRDDT_GATE_CLOSED  1u /**< there are claims, or there will be */
#define MCA_PML_UMRDDT_GATE_GUARDED 2u /**< there are threads, or this is new: look twice */
#define MCA_PML_UMRDDT_GATE_INSIDE  4u /**< times the threads that are inside */

/** True if the calling thread is the only one and there are no claims: nothing needs to be entered.
 * One test for both, since threads guard every communicator. */
static inline bool mca_pml_umrddt_gate_alone(const mca_pml_umrddt_comm_t *comm)
{
    return 0 == __atomic_load_n(&comm->gate, __ATOMIC_RELAXED);
}

/** A receive was posted: from now on mca_pml_umrddt_gate_alone may hold, if this is the only
 * thread. */
static inline void mca_pml_umrddt_gate_unguard(mca_pml_umrddt_comm_t *comm)
{
    if (!opal_using_threads()) {
        comm->gate &= ~MCA_PML_UMRDDT_GATE_GUARDED;
    }
}

/**
 * Enter if there are no claims: none is made before mca_pml_umrddt_gate_leave.
 *
 * @return false: there are, the caller has to take comm->match
 */
static inline bool mca_pml_umrddt_gate_enter(mca_pml_umrddt_comm_t *comm)
{
    if (!opal_using_threads()) {
        return 0 == (MCA_PML_UMRDDT_GATE_CLOSED & comm->gate);
    }
    if (OPAL_LIKELY(
            0
            == (MCA_PML_UMRDDT_GATE_CLOSED
                & __atomic_fetch_add(&comm->gate, MCA_PML_UMRDDT_GATE_INSIDE, __ATOMIC_ACQUIRE)))) {
        return true;
    }
    (void) __atomic_fetch_sub(&comm->gate, MCA_PML_UMRDDT_GATE_INSIDE, __ATOMIC_RELAXED);
    return false;
}

/** Leave after a successful mca_pml_umrddt_gate_enter. */
static inline void mca_pml_umrddt_gate_leave(mca_pml_umrddt_comm_t *comm)
{
    if (opal_using_threads()) {
        (void) __atomic_fetch_sub(&comm->gate, MCA_PML_UMRDDT_GATE_INSIDE, __ATOMIC_RELEASE);
    }
}

/**
 * Close the gate in order to make claims. comm->match is held. It is given up and taken again while
 * this waits for threads inside: the caller must look at the claims again. (A caller further up
 * that holds it too keeps it: the wait is bounded.)
 *
 * @return false: a thread stays inside; the gate is open unless there are claims
 */
bool mca_pml_umrddt_gate_close(mca_pml_umrddt_comm_t *comm);

/**
 * Close the gate without a wait for the threads inside. comm->match is held. For a claim that a
 * failed call puts back: calls of threads inside run at the same time as the failed call, so MPI
 * gives them no order, and no later call enters.
 */
void mca_pml_umrddt_gate_shut(mca_pml_umrddt_comm_t *comm);

/** Open the gate if there are no claims and no thread makes any. comm->match is held. */
void mca_pml_umrddt_gate_open(mca_pml_umrddt_comm_t *comm);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GATE_H */
