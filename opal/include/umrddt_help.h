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
 * Messages to the user, and the location of their texts. Include it, and not Open MPI's
 * opal/util/show_help.h, after opal_config.h (or ompi_config.h).
 */

#ifndef UMRDDT_HELP_H
#define UMRDDT_HELP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/show_help.h"

#include "umrddt_compat.h"

/**
 * As opal_show_help: the same arguments, and a text of this tree, which is compiled into the
 * library that the components share. For Open MPI 6.0 and later, whose opal_show_help knows only
 * the texts that were compiled in. Not aggregated: each process prints its messages.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_NOT_FOUND, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_show_help(const char *file, const char *topic, int frame, ...);

#if defined(UMRDDT_HELPDIR) && UMRDDT_OPAL_RELEASE >= 600
#define opal_show_help opal_umrddt_show_help
#endif

/**
 * Let opal_show_help search the installation directory of the texts, or the directory
 * UMRDDT_HELPDIR of the environment, for a tree that is not installed or was moved. No effect
 * within Open MPI's own tree, where the texts are installed with its own, and from Open MPI 6.0
 * on. Each component calls it before its first message, from one thread. Needs no cleanup. If out
 * of memory, messages report that their text was not found.
 */
static inline void umrddt_help_find(void)
{
#if defined(UMRDDT_HELPDIR) && UMRDDT_OPAL_RELEASE < 600
    const char *directory = getenv("UMRDDT_HELPDIR");

    (void) opal_show_help_add_dir(NULL == directory ? UMRDDT_HELPDIR : directory);
#endif
}

/** True in the first process of each program of the job (mpirun ./a : ./b), whose settings may
 * differ, and in a process of no job. */
static inline bool umrddt_help_is_first(void)
{
    const char *counts = getenv("OMPI_APP_CTX_NUM_PROCS"); /* of all programs, in order of ranks */
    const char *rank = getenv("PMIX_RANK");
    long mine, first = 0, count;
    char *rest;

    if (NULL == rank) {
        rank = getenv("PMI_RANK"); /* srun --mpi=pmi2 */
    }
    mine = NULL == rank ? 0 : strtol(rank, NULL, 10);
    while (mine > first && NULL != counts && (count = strtol(counts, &rest, 10), rest != counts)) {
        first += count;
        counts = rest;
    }
    return mine == first;
}

/** True in the processes that report wrong values: those, and the first process of each node, where
 * parameter files may differ. */
static inline bool umrddt_help_shows(void)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    return umrddt_help_is_first() || (NULL != local && 0 == strcmp(local, "0"));
}

/**
 * As opal_show_help, for wrong values, which most processes share. The processes of
 * umrddt_help_shows show each text; opal_show_help shows a topic once and drops the same topic
 * about another parameter.
 */
#if defined(UMRDDT_HELPDIR) && UMRDDT_OPAL_RELEASE >= 600
#define umrddt_show_help(...)                                                   \
    do {                                                                        \
        if (umrddt_help_shows()) {                                              \
            (void) opal_umrddt_show_help(__VA_ARGS__); /* shows each of them */ \
        }                                                                       \
    } while (0)
#else
#define umrddt_show_help(file, topic, want_error_header, ...)                        \
    do {                                                                             \
        char *umrddt_text =                                                          \
            umrddt_help_shows()                                                      \
                ? opal_show_help_string(file, topic, want_error_header, __VA_ARGS__) \
                : NULL;                                                              \
                                                                                     \
        if (NULL != umrddt_text) {                                                   \
            (void) fputs(umrddt_text, stderr);                                       \
            free(umrddt_text);                                                       \
        }                                                                            \
    } while (0)
#endif

#endif /* UMRDDT_HELP_H */
