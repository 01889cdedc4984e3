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
 * Persistent collectives: those of MPI 4, or of Open MPI 4.1 with another name, or none.
 */

#ifndef PERSISTENT_H
#define PERSISTENT_H

#include <mpi.h>

#if defined(OMPI_MAJOR_VERSION) && 5 > OMPI_MAJOR_VERSION
#include <mpi-ext.h>
#endif

#if 4 <= MPI_VERSION || (defined(OMPI_MAJOR_VERSION) && 5 <= OMPI_MAJOR_VERSION)
#define HAS_PERSISTENT   1
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HAS_PERSISTENT   1
#define PERSISTENT(name) MPIX_##name##_init
#else
#define HAS_PERSISTENT 0
#endif

#endif /* PERSISTENT_H */
