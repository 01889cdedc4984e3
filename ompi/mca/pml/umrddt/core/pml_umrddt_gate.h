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
 * The gate of a communicator. It makes "there are no claims" and "post at the base PML" one atomic
 * step without a lock.
 *
 * A claim (pml_umrddt_probe.c) is older than all messages of its source in the base PML. So
 * receives and probes must search the claims first, and no claim may be made between that search
 * and the call of the base PML. Claims are rare: only a probe that finds a message of the
 * envelope's size makes them.
 *
 * So the search is a test of the flag CLOSED. It is set before the first claim is made and cleared
 * when there are none. Threads that find it clear are counted until they have posted. A thread that
 * makes claims holds comm->match, sets the flag, and waits without comm->match until no thread is
 * inside. A thread that finds the flag set works under comm->match instead.
 *
 * A thread inside waits neither for a message nor for a lock of umrddt. But the base PML may run
 * progress, and progress may call a function of the application that probes. Such a probe would
 * wait for itself. So the wait is bounded, and a probe that gives up reports no message this time.
 */

#ifndef MCA_PML_UMRDDT_GATE_H
#define MCA_PML_UMRDDT_GATE_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

BEGIN_C_DECLS

#define MCA_PML_UMRDDT_GATE_CLOSED  1u /**< there are claims, or a thread makes some */
#define MCA_PML_UMRDDT_GATE_GUARDED 2u /**< there are threads, or no receive yet: test the gate */
#define MCA_PML_UMRDDT_GATE_INSIDE  4u /**< multiplied by the number of threads inside */

/** Returns true if there is only this thread and no claim, so that the gate is not needed. One test
 * is sufficient, because threads guard every communicator. */
static inline bool mca_pml_umrddt_gate_alone(const mca_pml_umrddt_comm_t *comm)
{
    return 0 == __atomic_load_n(&comm->gate, __ATOMIC_RELAXED);
}

/** Called after a receive was posted. From now on mca_pml_umrddt_gate_alone may be true, if there
 * is only this thread. */
static inline void mca_pml_umrddt_gate_unguard(mca_pml_umrddt_comm_t *comm)
{
    if (!opal_using_threads()) {
        comm->gate &= ~MCA_PML_UMRDDT_GATE_GUARDED;
    }
}

/**
 * Enter the gate if there are no claims. None is made before mca_pml_umrddt_gate_leave. @return
 * false: there are claims, and the caller must take comm->match
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
 * Close the gate in order to make claims. The caller holds comm->match. The lock is released and
 * taken again while this waits for threads inside, so the caller must search the claims again. The
 * lock is recursive: an outer caller keeps it, which is safe because the wait is bounded.
 *
 * @return false: a thread stays inside; the gate is open unless there are claims
 */
bool mca_pml_umrddt_gate_close(mca_pml_umrddt_comm_t *comm);

/**
 * Close the gate without waiting for the threads inside. The caller holds comm->match. Used when a
 * failed call puts a claim back: the threads inside run concurrently with that call, so MPI defines
 * no order between them, and no later call enters.
 */
void mca_pml_umrddt_gate_shut(mca_pml_umrddt_comm_t *comm);

/** Open the gate unless there are claims or a thread makes some. The caller holds comm->match. */
void mca_pml_umrddt_gate_open(mca_pml_umrddt_comm_t *comm);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GATE_H */
