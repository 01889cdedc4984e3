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
 * The macro of functions that check invariants (pml_umrddt_check.h).
 */

#ifndef MCA_PML_UMRDDT_HOLDS_H
#define MCA_PML_UMRDDT_HOLDS_H

#include "opal/prefetch.h"

/** Return the name of the invariant, for the user, if it does not hold. */
#define MCA_PML_UMRDDT_HOLDS(CONDITION, NAME) \
    do {                                      \
        if (OPAL_UNLIKELY(!(CONDITION)))      \
            return (NAME);                    \
    } while (0)

#endif /* MCA_PML_UMRDDT_HOLDS_H */
