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
 * Location of the help texts of the components. Include it after opal_config.h (or ompi_config.h).
 */

#ifndef UMRDDT_HELP_H
#define UMRDDT_HELP_H

#include <stdlib.h>

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

#endif /* UMRDDT_HELP_H */
