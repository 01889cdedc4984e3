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
 * What holds of this room between two passes of progress: each message has what its state needs,
 * lists and counters agree. Looked at if pml_umrddt_check is set, as it is in the tests, and then a
 * process in which one does not hold ends at once, with its name. Costs nothing otherwise: it is a
 * progress function of its own.
 */

#ifndef MCA_PML_UMRDDT_CHECK_H
#define MCA_PML_UMRDDT_CHECK_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/** The first invariant that does not hold; NULL: all do. Of progress only. */
const char *mca_pml_umrddt_state_check(void);

/** Those of what is remembered of one peer (pml_umrddt_sets.c, _direct.c, _ipc.c); @p bytes grows
 * by those of its layouts. */
const char *mca_pml_umrddt_sets_check(const mca_pml_umrddt_peer_t *peer);
const char *mca_pml_umrddt_flats_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes);
const char *mca_pml_umrddt_ipc_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes);

/** Look from now on, in each so many passes of progress. Nothing if it is not wanted. */
void mca_pml_umrddt_check_start(void);

/** Not any more, but for a last time: progress is called by nobody. */
void mca_pml_umrddt_check_stop(void);

/** Each has a name, which is what the user is told. */
#define MCA_PML_UMRDDT_HOLDS(CONDITION, NAME) \
    do {                                      \
        if (OPAL_UNLIKELY(!(CONDITION)))      \
            return (NAME);                    \
    } while (0)

/* pml_umrddt_check_schemes.c: check of each scheme */
const char *mca_pml_umrddt_check_umr(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_direct(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_ipc(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_pack(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_base(const mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_CHECK_H */
