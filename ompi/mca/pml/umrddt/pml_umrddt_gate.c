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

bool mca_pml_umrddt_gate_close(mca_pml_umrddt_comm_t *comm)
{
    uint32_t gate;

    gate = __atomic_fetch_or(&comm->gate, MCA_PML_UMRDDT_GATE_CLOSED, __ATOMIC_ACQ_REL);
    if (0 != (MCA_PML_UMRDDT_GATE_CLOSED & gate)) {
        return true; /* since there are claims, or by a caller further up */
    }
    for (int i = 0; i < PATIENCE; ++i) {
        /* those who came since are counted too, for the instant until they see that it is closed */
        if (MCA_PML_UMRDDT_GATE_INSIDE > __atomic_load_n(&comm->gate, __ATOMIC_ACQUIRE)) {
            return true;
        }
        sched_yield();
    }
    (void) __atomic_fetch_and(&comm->gate, ~MCA_PML_UMRDDT_GATE_CLOSED, __ATOMIC_RELEASE);
    return false;
}

void mca_pml_umrddt_gate_open(mca_pml_umrddt_comm_t *comm)
{
    if (opal_list_is_empty(&comm->claims) && 0 == comm->claiming) {
        (void) __atomic_fetch_and(&comm->gate, ~MCA_PML_UMRDDT_GATE_CLOSED, __ATOMIC_RELEASE);
    }
}
