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
 * MPI calls on GPU memory that reach no component: libumrddt_mpi (ompi/libumrddt_mpi) replaces them
 * and calls these functions, which core/pml_umrddt_calls.c implements.
 *
 * The library defines the function MCA_PML_UMRDDT_CALLS_ATTACH, with a pointer to the table as its
 * only argument. pml/umrddt looks it up when it is enabled, and passes NULL before it is finalized.
 * The name has a version: change it with the table.
 */

#ifndef MCA_PML_UMRDDT_CALLS_H
#define MCA_PML_UMRDDT_CALLS_H

#include <mpi.h>

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MCA_PML_UMRDDT_CALLS_ATTACH  "umrddt_mpi_attach_2"
#define MCA_PML_UMRDDT_CALLS_LIBRARY "libumrddt_mpi.so"

/** This Open MPI has MPI_Isendrecv_replace. */
#define MCA_PML_UMRDDT_CALLS_MPI4 (5 <= OMPI_MAJOR_VERSION)

/** Result of a function: nothing was done, and Open MPI must do the call. No MPI error is negative.
 */
#define MCA_PML_UMRDDT_CALLS_PASS (-1)

/**
 * All functions have the arguments of the MPI call, and any values are allowed: Open MPI reports
 * those that are wrong. They return PASS or the result of the call, after the error handler. Only
 * counts and sizes are not negative, and pointers to positions not NULL. Callable from any thread.
 */
typedef struct mca_pml_umrddt_calls_t {
    int (*pack)(const void *inbuf, size_t incount, MPI_Datatype datatype, void *outbuf,
                size_t outsize, size_t *position, MPI_Comm comm);
    int (*unpack)(const void *inbuf, size_t insize, size_t *position, void *outbuf, size_t outcount,
                  MPI_Datatype datatype, MPI_Comm comm);
    int (*pack_external)(const char *datarep, const void *inbuf, size_t incount,
                         MPI_Datatype datatype, void *outbuf, size_t outsize, size_t *position);
    int (*unpack_external)(const char *datarep, const void *inbuf, size_t insize, size_t *position,
                           void *outbuf, size_t outcount, MPI_Datatype datatype);
    int (*sendrecv_replace)(void *buf, size_t count, MPI_Datatype datatype, int dest, int sendtag,
                            int source, int recvtag, MPI_Comm comm, MPI_Status *status);
#if MCA_PML_UMRDDT_CALLS_MPI4
    int (*isendrecv_replace)(void *buf, size_t count, MPI_Datatype datatype, int dest, int sendtag,
                             int source, int recvtag, MPI_Comm comm, MPI_Request *request);
#endif
    bool (*has_gpu)(void); /**< initializes CUDA: only for a program that asks */
} mca_pml_umrddt_calls_t;

/** A library of the process. */
typedef struct mca_pml_umrddt_calls_library_t {
    const char *name; /**< the file name begins with it */
    char path[4096];
} mca_pml_umrddt_calls_library_t;

/** For dl_iterate_phdr, which holds a lock of the loader: dlopen here could deadlock. */
static inline int mca_pml_umrddt_calls_compare(struct dl_phdr_info *info, size_t size, void *data)
{
    mca_pml_umrddt_calls_library_t *library = data;
    const char *name = strrchr(info->dlpi_name, '/');
    const size_t length = strlen(info->dlpi_name);

    (void) size;
    if (NULL == name || 0 != strncmp(name + 1, library->name, strlen(library->name))
        || sizeof(library->path) <= length) {
        return 0;
    }
    memcpy(library->path, info->dlpi_name, length + 1);
    return 1;
}

/** Find a loaded library that may be in a scope of its own, as those of Python's modules. @return a
 * handle to be closed, or NULL */
static inline void *mca_pml_umrddt_calls_library(const char *name)
{
    mca_pml_umrddt_calls_library_t library;

    library.name = name;
    return 0 == dl_iterate_phdr(mca_pml_umrddt_calls_compare, &library)
               ? NULL
               : dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD);
}

#endif /* MCA_PML_UMRDDT_CALLS_H */
