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
 * Where the texts of the components' messages are. Include it after opal_config.h (or
 * ompi_config.h).
 */

#ifndef UMRDDT_HELP_H
#define UMRDDT_HELP_H

#include <stdlib.h>

#include "opal/util/show_help.h"

/**
 * Have opal_show_help look for texts where the build installs them, or in the directory that the
 * environment names (UMRDDT_HELPDIR), which is for a tree that is not installed, or was moved.
 * Within Open MPI's own tree the texts are installed beside its own, and there is nothing to do. To
 * be called by each component before its first message; by one thread. Nothing is to be undone, and
 * if there is no memory for it, messages say that their text was not found.
 */
static inline void umrddt_help_find(void)
{
#if defined(UMRDDT_HELPDIR)
    const char *directory = getenv("UMRDDT_HELPDIR");

    (void) opal_show_help_add_dir(NULL == directory ? UMRDDT_HELPDIR : directory);
#endif
}

#endif /* UMRDDT_HELP_H */
