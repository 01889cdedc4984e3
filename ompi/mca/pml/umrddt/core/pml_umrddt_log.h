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
 * Log lines. docs/messages.rst has what each level shows. The level is looked at only where
 * something new is decided: the first message of a pair of layouts, a failure, start and end.
 */

#ifndef MCA_PML_UMRDDT_LOG_H
#define MCA_PML_UMRDDT_LOG_H

#include "ompi_config.h"

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

/** Levels of pml_umrddt_verbose. */
#define MCA_PML_UMRDDT_LOG_SETUP     1u
#define MCA_PML_UMRDDT_LOG_SELECTION 10u
#define MCA_PML_UMRDDT_LOG_MESSAGE   50u

/** Print a line, whatever the level. The first argument is a literal format. */
#define MCA_PML_UMRDDT_LOG(...) opal_output(0, "pml:umrddt: " __VA_ARGS__)

/** True if pml_umrddt_verbose is @p level (MCA_PML_UMRDDT_LOG_*) or above. */
static inline bool mca_pml_umrddt_logs(unsigned level)
{
    return OPAL_UNLIKELY(level <= mca_pml_umrddt.params.verbose);
}

/** Print a line from a level on. */
#define MCA_PML_UMRDDT_VERBOSE(level, ...)                     \
    do {                                                       \
        if (mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_##level)) { \
            MCA_PML_UMRDDT_LOG(__VA_ARGS__);                   \
        }                                                      \
    } while (0)

#endif /* MCA_PML_UMRDDT_LOG_H */
