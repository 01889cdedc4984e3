/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* A library to preload into the program of another project. When the program ends MPI, each process
 * writes the performance variables of umrddt that are not 0 to the file $UMRDDT_TEST_COUNTERS.RANK,
 * one "NAME VALUE" a line. Without umrddt the file is empty. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 512

static MPI_T_pvar_session session;
static struct {
    char name[128];
    MPI_T_pvar_handle handle;
} variables[MOST];
static int found;

/* POSIX's conversion of an object pointer to a function pointer. */
static void next(const char *name, void *slot)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (NULL == function) {
        fprintf(stderr, "program_counters: there is no %s\n", name);
        abort();
    }
    memcpy(slot, &function, sizeof(function));
}

/* A handle counts from the moment that it is made, so all are made when MPI begins. */
static void begin(void)
{
    int n = 0, i, provided;

    if (0 < found || MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)
        || MPI_SUCCESS != MPI_T_pvar_session_create(&session)) {
        return;
    }
    (void) MPI_T_pvar_get_num(&n);
    for (i = 0; i < n && found < MOST; ++i) {
        char name[128] = "", text[1024];
        int name_length = sizeof(name), text_length = sizeof(text), verbosity, class, bind,
            readonly, continuous, atomic, count;
        MPI_Datatype type;
        MPI_T_enum values;

        if (MPI_SUCCESS
                != MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &values,
                                       text, &text_length, &bind, &readonly, &continuous, &atomic)
            || (0 != strncmp(name, "pml_umrddt_", 11) && 0 != strncmp(name, "coll_umrddt_", 12))
            || MPI_UNSIGNED_LONG_LONG != type || MPI_T_BIND_NO_OBJECT != bind || 0 == continuous
            || MPI_SUCCESS
                   != MPI_T_pvar_handle_alloc(session, i, NULL, &variables[found].handle, &count)
            || 1 != count) {
            continue;
        }
        memcpy(variables[found].name, name, sizeof(name));
        ++found;
    }
}

static void end(void)
{
    const char *prefix = getenv("UMRDDT_TEST_COUNTERS");
    char path[4096];
    FILE *file;
    int rank, i;

    if (NULL == prefix || MPI_SUCCESS != PMPI_Comm_rank(MPI_COMM_WORLD, &rank)) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%d", prefix, rank);
    file = fopen(path, "w");
    if (NULL == file) {
        perror(path);
        return;
    }
    for (i = 0; i < found; ++i) {
        unsigned long long value = 0;

        if (MPI_SUCCESS == MPI_T_pvar_read(session, variables[i].handle, &value) && 0 < value) {
            fprintf(file, "%s %llu\n", variables[i].name, value);
        }
    }
    fclose(file);
}

/* Fortran's calls arrive at the names with P. The ones without call those of Open MPI's library,
 * where the two are the same function. */
#define INIT(NAME)                    \
    int NAME(int *argc, char ***argv) \
    {                                 \
        int (*real)(int *, char ***); \
        int rc;                       \
                                      \
        next(#NAME, &real);           \
        rc = real(argc, argv);        \
        begin();                      \
        return rc;                    \
    }
#define INIT_THREAD(NAME)                                          \
    int NAME(int *argc, char ***argv, int required, int *provided) \
    {                                                              \
        int (*real)(int *, char ***, int, int *);                  \
        int rc;                                                    \
                                                                   \
        next(#NAME, &real);                                        \
        rc = real(argc, argv, required, provided);                 \
        begin();                                                   \
        return rc;                                                 \
    }
#define FINALIZE(NAME)      \
    int NAME(void)          \
    {                       \
        int (*real)(void);  \
                            \
        end();              \
        next(#NAME, &real); \
        return real();      \
    }

INIT(MPI_Init)
INIT(PMPI_Init)
INIT_THREAD(MPI_Init_thread)
INIT_THREAD(PMPI_Init_thread)
FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)
