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
 * MPI for tests that need its datatypes but no second process, and no mpirun.
 */

#ifndef TEST_DATATYPE_SINGLETON_H
#define TEST_DATATYPE_SINGLETON_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "opal_config.h"
#include "ompi/datatype/ompi_datatype.h"

/** MPI_Init_thread, without a daemon and with the plainest of transports. */
static inline void singleton_init(int level)
{
    int provided;

    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init_thread(NULL, NULL, level, &provided);
    if (provided < level) {
        fprintf(stderr, "this Open MPI has no thread level %d\n", level);
        exit(77);
    }
}

/* There only in a program that was built with -fsanitize=address. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/**
 * Looks for memory that nothing leads to any more, where the program can. To be called before
 * MPI_Finalize, after which the libraries that hold their own have been unloaded.
 */
static inline bool singleton_leaks(void)
{
    return NULL != __lsan_do_recoverable_leak_check && 0 != __lsan_do_recoverable_leak_check();
}

/** The opal side of an MPI datatype. */
static inline const opal_datatype_t *opal_type(MPI_Datatype type)
{
    return &type->super;
}

#endif /* TEST_DATATYPE_SINGLETON_H */
