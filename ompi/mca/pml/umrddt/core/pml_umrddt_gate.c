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
 * Closing and opening the gate of a communicator, which only probes do. Read pml_umrddt_gate.h
 * first.
 */

#include "ompi_config.h"

#include <sched.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gate.h"

/** Number of tests whether the last thread has left. Each test yields the processor. Posting takes
 * less than a microsecond. The limit leaves ample time for a thread that was preempted inside. */
#define PATIENCE 100000

/** Returns true if no thread is inside. Threads that find the gate closed count for an instant. */
static bool is_empty(mca_pml_umrddt_comm_t *comm)
{
    return MCA_PML_UMRDDT_GATE_INSIDE > __atomic_load_n(&comm->gate, __ATOMIC_ACQUIRE);
}

void mca_pml_umrddt_gate_shut(mca_pml_umrddt_comm_t *comm)
{
    (void) __atomic_fetch_or(&comm->gate, MCA_PML_UMRDDT_GATE_CLOSED, __ATOMIC_ACQ_REL);
}

bool mca_pml_umrddt_gate_close(mca_pml_umrddt_comm_t *comm)
{
    bool closed;

    mca_pml_umrddt_gate_shut(comm);
    if (OPAL_LIKELY(is_empty(comm))) {
        return true;
    }
    /* A thread inside may run progress, and a function there may need comm->match. The gate stays
     * closed meanwhile, because gate_open tests comm->closing. */
    ++comm->closing;
    OPAL_THREAD_UNLOCK(&comm->match);
    /* After one test that finds the closed gate empty, it stays empty: later threads find it
     * closed. So this test decides. Another one under the lock could count such a thread. */
    for (int i = 0; !(closed = is_empty(comm)) && i < PATIENCE; ++i) {
        sched_yield();
    }
    OPAL_THREAD_LOCK(&comm->match);
    --comm->closing;
    if (!closed) {
        mca_pml_umrddt_gate_open(comm);
    }
    return closed;
}

void mca_pml_umrddt_gate_open(mca_pml_umrddt_comm_t *comm)
{
    if (opal_list_is_empty(&comm->claims) && 0 == comm->claiming && 0 == comm->closing) {
        (void) __atomic_fetch_and(&comm->gate, ~MCA_PML_UMRDDT_GATE_CLOSED, __ATOMIC_RELEASE);
    }
}
