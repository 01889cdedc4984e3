/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Checks that are counted; the first that does not hold ends the program. */

#ifndef TEST_COMMON_CHECK_H
#define TEST_COMMON_CHECK_H

#include <stdio.h>
#include <stdlib.h>

static unsigned long checks;

#define CHECK(condition)                                                          \
    do {                                                                          \
        ++checks;                                                                 \
        if (!(condition)) {                                                       \
            printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

#endif /* TEST_COMMON_CHECK_H */
