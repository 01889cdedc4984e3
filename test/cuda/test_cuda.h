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
 * For the tests of the software CUDA driver. They use nothing but the driver's interface, so that
 * they can be run on a real one as well: .libs/test_NAME without the wrapper finds the system's
 * libcuda.so.1 (a test that needs options of the software driver says so and is skipped there).
 */

#ifndef TEST_CUDA_H
#define TEST_CUDA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "umrddt_cuda.h"

/** A condition that has to hold; NDEBUG does not take it away. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/** A call and the result that it has to have. */
#define EXPECT(expected, call)                                                                  \
    do {                                                                                        \
        CUresult got_ = (call);                                                                 \
        if ((CUresult) (expected) != got_) {                                                    \
            fprintf(stderr, "%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call, (int) got_, \
                    #expected);                                                                 \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#define OK(call) EXPECT(CUDA_SUCCESS, call)

/** Initialize, and make the primary context of a device current. */
static inline CUcontext test_begin(int device)
{
    CUcontext ctx;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&ctx, device));
    OK(cuCtxSetCurrent(ctx));
    return ctx;
}

/** Run a function in a process of its own, and say whether it ended well. */
static inline void test_part(const char *name, void (*part)(void))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(-1 != pid);
    if (0 == pid) {
        part();
        exit(0);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    printf("%s: %s\n", 0 == status ? "ok" : "FAILED", name);
    if (0 != status) {
        exit(1);
    }
}

/** The same, with options of the software driver: only where nothing was loaded yet they count. */
static inline void test_again(char **argv, const char *part, const char *options)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(-1 != pid);
    if (0 == pid) {
        char *again[] = {argv[0], (char *) part, NULL};

        setenv("UMRDDT_GPU", options, 1);
        execv("/proc/self/exe", again);
        _exit(99);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    printf("%s: %s (%s)\n", 0 == status ? "ok" : "FAILED", part, options);
    if (0 != status) {
        exit(1);
    }
}

#endif /* TEST_CUDA_H */
