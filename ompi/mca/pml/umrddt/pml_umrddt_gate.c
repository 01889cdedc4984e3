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
 * Closing and opening the gate of a communicator: what only probes need.
 */

#include "ompi_config.h"

#include <sched.h>

#include "pml_umrddt_gate.h"

/** How often to look whether the last one is out, giving the processor away in between. Posting
 * takes less than a microsecond; a thousand times that is much more than it takes a thread that was
 * interrupted in there to be run again. */
#define PATIENCE 100000

/** True if no thread is inside. Threads that come to a closed gate count for an instant too. */
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
     * shut meanwhile, because gate_open counts those that close it. */
    ++comm->closing;
    OPAL_THREAD_UNLOCK(&comm->match);
    /* Once nobody was inside of the shut gate, nobody is: who counts later finds it shut. So this
     * one look decides, and not another one under the lock, which such a thread may disturb. */
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
