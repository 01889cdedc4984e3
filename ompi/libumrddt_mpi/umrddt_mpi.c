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
 * libumrddt_mpi: a library to preload, for MPI calls on GPU memory that reach no component. It
 * gives them to pml/umrddt (ompi/mca/pml/umrddt/pml_umrddt_calls.h, read first), and calls on
 * system memory to Open MPI.
 *
 * It replaces MPI_* and PMPI_*: Fortran's and some tools' calls arrive as PMPI_*. It is linked with
 * no MPI library, so that it can be in any process. All other calls go to the next definition in
 * the order of the loader: Open MPI's, or a tool's.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_calls.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/** NULL: pml/umrddt is not active, or there is no CUDA driver. */
static const mca_pml_umrddt_calls_t *calls;

OMPI_DECLSPEC void umrddt_mpi_attach_2(const mca_pml_umrddt_calls_t *table);
OMPI_DECLSPEC int MPIX_Query_cuda_support(void);

void umrddt_mpi_attach_2(const mca_pml_umrddt_calls_t *table)
{
    __atomic_store_n(&calls, table, __ATOMIC_RELEASE);
}

static inline const mca_pml_umrddt_calls_t *attached(void)
{
    return __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
}

/* ---------------------------------------------------------------------------------------------
 * The next definitions
 * ------------------------------------------------------------------------------------------- */

/** The next definition of a function. A program that loads libmpi itself (as Python's modules) may
 * have it in a scope of its own. @return NULL: none */
static void *find(const char *name)
{
    static void *library; /* held from the first use on */
    void *function = dlsym(RTLD_NEXT, name), *mpi;

    if (NULL == function) {
        mpi = __atomic_load_n(&library, __ATOMIC_RELAXED);
        if (NULL == mpi && NULL != (mpi = mca_pml_umrddt_calls_library("libmpi.so"))) {
            __atomic_store_n(&library, mpi, __ATOMIC_RELAXED);
        }
        function = NULL == mpi ? NULL : dlsym(mpi, name);
    }
    return function;
}

/** As find, for a function that the program calls. Without it the process ends. */
static void *find_called(const char *name)
{
    void *function = find(name);

    if (NULL == function) {
        fprintf(stderr, "libumrddt_mpi: no MPI library in this process has %s\n", name);
        abort();
    }
    return function;
}

/* ---------------------------------------------------------------------------------------------
 * The calls. COUNT is int, or MPI_Count in the forms of MPI 4, SIZE is the type of positions.
 * ------------------------------------------------------------------------------------------- */

/**
 * Define NAME: a jump to the next NAME if nothing is attached and it was called before. Otherwise
 * @p attempt, statements that return if umrddt did the call, and then the next NAME.
 */
#define DEFINE(NAME, parameters, arguments, attempt)                                  \
    static __typeof__(&NAME) NAME##_next;                                             \
    static __attribute__((noinline)) int NAME##_found parameters                      \
    {                                                                                 \
        const mca_pml_umrddt_calls_t *table = attached();                             \
        __typeof__(&NAME) function;                                                   \
        if (NULL != table) {                                                          \
            attempt                                                                   \
        }                                                                             \
        function = __atomic_load_n(&NAME##_next, __ATOMIC_RELAXED);                   \
        if (NULL == function) {                                                       \
            *(void **) &function = find_called(#NAME);                                \
            __atomic_store_n(&NAME##_next, function, __ATOMIC_RELAXED);               \
        }                                                                             \
        return function arguments;                                                    \
    }                                                                                 \
    int NAME parameters                                                               \
    {                                                                                 \
        __typeof__(&NAME) function = __atomic_load_n(&NAME##_next, __ATOMIC_RELAXED); \
        if (LIKELY(NULL == attached() && NULL != function)) {                         \
            return function arguments;                                                \
        }                                                                             \
        return NAME##_found arguments;                                                \
    }

/** An attempt by a function that gets the position as size_t. Open MPI reports negative values. */
#define TRY(count, size, position, call)                                         \
    if (0 <= (count) && 0 <= (size) && NULL != (position) && 0 <= *(position)) { \
        size_t at = (size_t) * (position);                                       \
        const int rc = table->call;                                              \
        if (MCA_PML_UMRDDT_CALLS_PASS != rc) {                                   \
            *(position) = (__typeof__(*(position))) at;                          \
            return rc;                                                           \
        }                                                                        \
    }

#define PACK(NAME, COUNT)                                                                         \
    DEFINE(NAME,                                                                                  \
           (const void *inbuf, COUNT incount, MPI_Datatype datatype, void *outbuf, COUNT outsize, \
            COUNT *position, MPI_Comm comm),                                                      \
           (inbuf, incount, datatype, outbuf, outsize, position, comm),                           \
           TRY(incount, outsize, position,                                                        \
               pack(inbuf, (size_t) incount, datatype, outbuf, (size_t) outsize, &at, comm)))

#define UNPACK(NAME, COUNT)                                                                 \
    DEFINE(NAME,                                                                            \
           (const void *inbuf, COUNT insize, COUNT *position, void *outbuf, COUNT outcount, \
            MPI_Datatype datatype, MPI_Comm comm),                                          \
           (inbuf, insize, position, outbuf, outcount, datatype, comm),                     \
           TRY(outcount, insize, position,                                                  \
               unpack(inbuf, (size_t) insize, &at, outbuf, (size_t) outcount, datatype, comm)))

#define PACK_EXTERNAL(NAME, COUNT, SIZE)                                                           \
    DEFINE(NAME,                                                                                   \
           (const char datarep[], const void *inbuf, COUNT incount, MPI_Datatype datatype,         \
            void *outbuf, SIZE outsize, SIZE *position),                                           \
           (datarep, inbuf, incount, datatype, outbuf, outsize, position),                         \
           TRY(incount, outsize, position,                                                         \
               pack_external(datarep, inbuf, (size_t) incount, datatype, outbuf, (size_t) outsize, \
                             &at)))

#define UNPACK_EXTERNAL(NAME, COUNT, SIZE)                                                      \
    DEFINE(NAME,                                                                                \
           (const char datarep[], const void *inbuf, SIZE insize, SIZE *position, void *outbuf, \
            COUNT outcount, MPI_Datatype datatype),                                             \
           (datarep, inbuf, insize, position, outbuf, outcount, datatype),                      \
           TRY(outcount, insize, position,                                                      \
               unpack_external(datarep, inbuf, (size_t) insize, &at, outbuf, (size_t) outcount, \
                               datatype)))

/** FUNCTION: that of the table; RESULT: the last argument. */
#define REPLACE(NAME, COUNT, FUNCTION, RESULT)                                                   \
    DEFINE(                                                                                      \
        NAME,                                                                                    \
        (void *buf, COUNT count, MPI_Datatype datatype, int dest, int sendtag, int source,       \
         int recvtag, MPI_Comm comm, RESULT *result),                                            \
        (buf, count, datatype, dest, sendtag, source, recvtag, comm, result), if (0 <= count) {  \
            const int rc = table->FUNCTION(buf, (size_t) count, datatype, dest, sendtag, source, \
                                           recvtag, comm, result);                               \
            if (MCA_PML_UMRDDT_CALLS_PASS != rc) {                                               \
                return rc;                                                                       \
            }                                                                                    \
        })

#define SENDRECV_REPLACE(NAME, COUNT)  REPLACE(NAME, COUNT, sendrecv_replace, MPI_Status)
#define ISENDRECV_REPLACE(NAME, COUNT) REPLACE(NAME, COUNT, isendrecv_replace, MPI_Request)

PACK(MPI_Pack, int)
PACK(PMPI_Pack, int)
UNPACK(MPI_Unpack, int)
UNPACK(PMPI_Unpack, int)
PACK_EXTERNAL(MPI_Pack_external, int, MPI_Aint)
PACK_EXTERNAL(PMPI_Pack_external, int, MPI_Aint)
UNPACK_EXTERNAL(MPI_Unpack_external, int, MPI_Aint)
UNPACK_EXTERNAL(PMPI_Unpack_external, int, MPI_Aint)
SENDRECV_REPLACE(MPI_Sendrecv_replace, int)
SENDRECV_REPLACE(PMPI_Sendrecv_replace, int)

#if MCA_PML_UMRDDT_CALLS_MPI4
ISENDRECV_REPLACE(MPI_Isendrecv_replace, int)
ISENDRECV_REPLACE(PMPI_Isendrecv_replace, int)
#endif

#if UMRDDT_MPI_COUNT_FORMS
PACK(MPI_Pack_c, MPI_Count)
PACK(PMPI_Pack_c, MPI_Count)
UNPACK(MPI_Unpack_c, MPI_Count)
UNPACK(PMPI_Unpack_c, MPI_Count)
PACK_EXTERNAL(MPI_Pack_external_c, MPI_Count, MPI_Count)
PACK_EXTERNAL(PMPI_Pack_external_c, MPI_Count, MPI_Count)
UNPACK_EXTERNAL(MPI_Unpack_external_c, MPI_Count, MPI_Count)
UNPACK_EXTERNAL(PMPI_Unpack_external_c, MPI_Count, MPI_Count)
SENDRECV_REPLACE(MPI_Sendrecv_replace_c, MPI_Count)
SENDRECV_REPLACE(PMPI_Sendrecv_replace_c, MPI_Count)
ISENDRECV_REPLACE(MPI_Isendrecv_replace_c, MPI_Count)
ISENDRECV_REPLACE(PMPI_Isendrecv_replace_c, MPI_Count)
#endif

int MPIX_Query_cuda_support(void)
{
    const mca_pml_umrddt_calls_t *table = attached();
    static int (*next)(void);
    int (*other)(void);

    if (NULL != table && table->has_gpu()) {
        return 1;
    }
    other = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (NULL == other) {
        *(void **) &other = find("MPIX_Query_cuda_support");
        __atomic_store_n(&next, other, __ATOMIC_RELAXED);
    }
    return NULL == other ? 0 : other();
}
