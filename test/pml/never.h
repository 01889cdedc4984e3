/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Functions that the file under test names, and that a test does not call: they end the process. */

#ifndef TEST_PML_NEVER_H
#define TEST_PML_NEVER_H

#include <stdlib.h>

#define NEVER(type, name, ...)                                                                   \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"") type \
    name(__VA_ARGS__)                                                                            \
    {                                                                                            \
        abort();                                                                                 \
    }                                                                                            \
    _Pragma("GCC diagnostic pop")

#endif /* TEST_PML_NEVER_H */
