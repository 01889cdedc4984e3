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
 * Invariants that hold between two calls of progress: a message has the resources that its state
 * needs, and lists agree with counters. They are checked if pml_umrddt_check is set, as in the
 * tests. A violation prints the name of the invariant and aborts the process.
 *
 * Without the parameter there is no overhead: the check is a separate progress function.
 */

#ifndef MCA_PML_UMRDDT_CHECK_H
#define MCA_PML_UMRDDT_CHECK_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** Check all invariants. @return the first one that is violated; NULL: none. Only from progress. */
const char *mca_pml_umrddt_state_check(void);

/** Start periodic checks. Does nothing if pml_umrddt_check is 0. */
void mca_pml_umrddt_check_start(void);

/** Stop periodic checks and check a last time. Progress must not run. */
void mca_pml_umrddt_check_stop(void);

/** Invariant of a message that the base PML carries: no scheme holds anything for it. */
static inline const char *mca_pml_umrddt_check_base(const mca_pml_umrddt_recv_t *recv)
{
    static const unsigned char nothing[MCA_PML_UMRDDT_RECV_HELD];

    MCA_PML_UMRDDT_HOLDS(0 == recv->fin && 0 == memcmp(recv->held, nothing, sizeof(nothing)),
                         "receives: no scheme holds anything of what the base PML brings");
    return NULL;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_CHECK_H */
