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
 * Reports of errors. See coll_umrddt.h first.
 */

#include "coll_umrddt.h"

#include "opal/constants.h"

#include "umrddt_help.h"

int mca_coll_umrddt_fail(int rc, size_t bytes)
{
    MCA_COLL_UMRDDT_COUNT(failures);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        opal_show_help("help-mca-coll-umrddt.txt", "no-memory", true, bytes);
        return MPI_ERR_NO_MEM;
    }
    if (OPAL_ERR_BAD_PARAM == rc) {
        opal_show_help("help-mca-coll-umrddt.txt", "too-large", true);
        return MPI_ERR_COUNT;
    }
    opal_show_help("help-mca-coll-umrddt.txt", "driver", true, rc);
    return MPI_ERR_OTHER;
}
