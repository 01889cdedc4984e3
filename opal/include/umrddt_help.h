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
 * Location of the help texts of the components, and texts about settings. Include it after
 * opal_config.h (or ompi_config.h).
 */

#ifndef UMRDDT_HELP_H
#define UMRDDT_HELP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/show_help.h"

/**
 * Let opal_show_help search the installation directory of the texts, or the directory
 * UMRDDT_HELPDIR of the environment, for a tree that is not installed or was moved. No effect
 * within Open MPI's own tree, where the texts are installed with its own. Each component calls it
 * before its first message, from one thread. Needs no cleanup. If out of memory, messages report
 * that their text was not found.
 */
static inline void umrddt_help_find(void)
{
#if defined(UMRDDT_HELPDIR)
    const char *directory = getenv("UMRDDT_HELPDIR");

    (void) opal_show_help_add_dir(NULL == directory ? UMRDDT_HELPDIR : directory);
#endif
}

/** True in the process that reports wrong settings of a job: rank 0, or a process of no job. */
static inline bool umrddt_help_is_first(void)
{
    const char *rank = getenv("PMIX_RANK");

    if (NULL == rank) {
        rank = getenv("PMI_RANK"); /* srun --mpi=pmi2 */
    }
    return NULL == rank || 0 == strcmp(rank, "0");
}

/**
 * As opal_show_help, for wrong settings, which are those of all processes. One process shows each
 * text; opal_show_help shows a topic once and drops the same topic about another parameter.
 */
#define umrddt_show_help(file, topic, want_error_header, ...)                        \
    do {                                                                             \
        char *umrddt_text =                                                          \
            umrddt_help_is_first()                                                   \
                ? opal_show_help_string(file, topic, want_error_header, __VA_ARGS__) \
                : NULL;                                                              \
                                                                                     \
        if (NULL != umrddt_text) {                                                   \
            (void) fputs(umrddt_text, stderr);                                       \
            free(umrddt_text);                                                       \
        }                                                                            \
    } while (0)

#endif /* UMRDDT_HELP_H */
