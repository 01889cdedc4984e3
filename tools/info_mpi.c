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
 * Properties of Open MPI in a job: a separate process queries them and prints lines NAME=VALUE,
 * which the program reads.
 */

#include "ompi_config.h"

#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"

/** The queried properties. */
static const struct {
    const char *cvar;
    const char *name;
} parameters[] = {
    {"pml_umrddt_memory", "memory"},
    {"pml_umrddt_scheme", "scheme"},
    {"pml_umrddt_min_size", "min_size"},
    {"pml_umrddt_base_gpu", "base_gpu"},
};

/* Print the name of a value of an enumeration: the first one, others are synonyms. */
static void print_enum(const char *name, MPI_T_enum values, int value)
{
    int count = 0, length, item;
    char text[128];

    if (MPI_SUCCESS != MPI_T_enum_get_info(values, &count, NULL, NULL)) {
        return;
    }
    for (int i = 0; i < count; ++i) {
        length = sizeof(text);
        if (MPI_SUCCESS == MPI_T_enum_get_item(values, i, &item, text, &length) && item == value) {
            printf("%s=%s\n", name, text);
            return;
        }
    }
}

/* @return false: there is no such parameter */
static bool print_parameter(const char *cvar, const char *name)
{
    int index, verbosity, bind, scope, count = 0, length = 0, described = 0;
    MPI_T_cvar_handle handle;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    MPI_Datatype type;
    union {
        int number;
        size_t size;
        char room[64]; /* no queried value is longer */
    } value = {.size = 0};

    if (MPI_SUCCESS != MPI_T_cvar_get_index(cvar, &index)
        || MPI_SUCCESS
               != MPI_T_cvar_get_info(index, NULL, &length, &verbosity, &type, &values, NULL,
                                      &described, &bind, &scope)
        || MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        return false;
    }
    if (1 == count && MPI_SUCCESS == MPI_T_cvar_read(handle, &value)) {
        if (MPI_T_ENUM_NULL != values) {
            print_enum(name, values, value.number);
        } else {
            printf("%s=%zu\n", name, value.size);
        }
    }
    MPI_T_cvar_handle_free(&handle);
    return true;
}

int info_mpi(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, provided;
    bool found = true;

    if (MPI_SUCCESS != MPI_Init(NULL, NULL)
        || MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)) {
        return INFO_BROKEN;
    }
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    printf("library=%s\n", library);
    printf("pml=%s\n", mca_pml_base_selected_component.pmlm_version.mca_component_name);
    printf("cuda=%d\n", mca_pml_umrddt_base_gpu_aware(
                            mca_pml_base_selected_component.pmlm_version.mca_component_name));
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); ++i) {
        found = print_parameter(parameters[i].cvar, parameters[i].name) && found;
    }
    printf("umrddt=%d\n", found);
    fflush(stdout);
    MPI_T_finalize();
    MPI_Finalize();
    return INFO_USABLE;
}
