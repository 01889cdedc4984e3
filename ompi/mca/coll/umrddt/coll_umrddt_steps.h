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
 * Direct collectives in steps: some messages are posted when others have ended. See
 * coll_umrddt_direct.h first.
 */

#ifndef MCA_COLL_UMRDDT_STEPS_H
#define MCA_COLL_UMRDDT_STEPS_H

#include "coll_umrddt_messages.h"
#include "coll_umrddt_sides.h"

BEGIN_C_DECLS

/** Number of entries that the lists of a bcast need. */
int mca_coll_umrddt_steps_window(void);

/** Fill the lists of an all-to-all in place, and set its steps. */
void mca_coll_umrddt_steps_alltoall(mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                                    const mca_coll_umrddt_sides_t *sides);

/** The same for a bcast by other processes, of one with data, in an intracommunicator. */
void mca_coll_umrddt_steps_bcast(mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, int root);

/** Do all steps. @return OMPI_SUCCESS, or the first error; all messages and copies have ended */
int mca_coll_umrddt_steps_run(mca_coll_umrddt_direct_t *direct);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_STEPS_H */
