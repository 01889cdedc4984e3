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
 * Compiled into the libraries (-include) by run_sanitized, and into nothing else.
 *
 * UMRDDT_PLANT=LIBRARY:DEFECT in the environment makes a copy of memory in that library commit the
 * defect once. UMRDDT_PLANT_HERE is the name of the library that is compiled.
 */

#ifndef UMRDDT_TEST_PLANT_H
#define UMRDDT_TEST_PLANT_H

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline, unused)) void umrddt_plant(void)
{
    static int done;
    const char *what = done ? NULL : getenv("UMRDDT_PLANT");
    const size_t name = strlen(UMRDDT_PLANT_HERE);
    volatile char *volatile heap;
    volatile int number = INT_MAX;

    done = 1;
    if (NULL == what || 0 != strncmp(what, UMRDDT_PLANT_HERE ":", name + 1)) {
        return;
    }
    what += name + 1;
    if (0 == strcmp(what, "undefined")) {
        ++number;
        return;
    }
    heap = malloc(8);
    if (NULL != heap && 0 == strcmp(what, "overflow")) {
        heap[8] = 1;
    }
    if (0 != strcmp(what, "leak")) {
        free((void *) heap);
    }
    heap = NULL;
}

#define memcpy(to, from, size) (umrddt_plant(), memcpy(to, from, size))

#endif /* UMRDDT_TEST_PLANT_H */
