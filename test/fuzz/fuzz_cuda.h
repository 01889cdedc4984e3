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
 * For targets that need the software CUDA driver.
 */

#ifndef TEST_FUZZ_FUZZ_CUDA_H
#define TEST_FUZZ_FUZZ_CUDA_H

#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"

/** Have it found under its name: it is, and reads its options, when a program begins. The first
 * thing that a target does; comes back in a program that was begun again. */
static inline void fuzz_cuda(char **argv)
{
    const char *cuda = getenv("UMRDDT_FUZZ_CUDA");

    if (NULL != getenv("UMRDDT_GPU")) {
        return;
    }
    FUZZ_CHECK(NULL != cuda);
    setenv("LD_LIBRARY_PATH", cuda, 1);
    setenv("UMRDDT_GPU", "devices=2", 1);
    execv("/proc/self/exe", argv);
    FUZZ_CHECK(!"a program that can begin again");
}

#endif /* TEST_FUZZ_FUZZ_CUDA_H */
