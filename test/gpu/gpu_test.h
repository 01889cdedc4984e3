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
 * For tests of common/umrddt_gpu that have parts, each a process of its own with options of the
 * software driver (it reads them when it is loaded).
 */

#ifndef GPU_TEST_H
#define GPU_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/** A condition that has to hold; NDEBUG does not take it away. */
#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: [%d] not true: %s\n", __FILE__, __LINE__, getpid(), \
                    #condition);                                                        \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

/** A function and the result that it has to have. */
#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        int got_ = (int) (call);                                                                   \
        if ((int) (expected) != got_) {                                                            \
            fprintf(stderr, "%s:%d: [%d] %s is %d, not %s\n", __FILE__, __LINE__, getpid(), #call, \
                    got_, #expected);                                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct gpu_test_part_t {
    const char *name;
    void (*run)(void);
    const char *options; /**< of the software driver; NULL: without it */
} gpu_test_part_t;

/** The exit status of a part that needs more devices than there are. */
#define GPU_TEST_LEFT_OUT 77

/** True if the machine's own driver runs this: see gpu_test_again. */
static inline bool gpu_test_real(void)
{
    return NULL != getenv("UMRDDT_TEST_REAL");
}

/** The device that is not the default one, of @p count; that one if there is no other. */
static inline int gpu_test_far(int count)
{
    return 1 < count ? 1 : 0;
}

/** End a part that needs two devices, where there are @p count: it is left out, not failed. */
static inline void gpu_test_needs_two(int count)
{
    if (2 > count) {
        exit(GPU_TEST_LEFT_OUT);
    }
}

/**
 * Have what this process starts run on the software driver with these options. With
 * UMRDDT_TEST_DEVICES=N in the environment there are N devices, unless the options say otherwise.
 */
static inline void gpu_test_options(const char *options)
{
    const char *devices = getenv("UMRDDT_TEST_DEVICES");
    char text[4096];

    CHECK((int) sizeof(text)
          > snprintf(text, sizeof(text), "%s%s%s%s",
                     NULL == devices ? "" : "devices=", NULL == devices ? "" : devices,
                     NULL == devices || '\0' == options[0] ? "" : ",", options));
    setenv("UMRDDT_GPU", text, 1);
}

/**
 * Run one part in a new process. With UMRDDT_TEST_REAL=1 in the environment, on the machine's own
 * driver, without the parts that need faults or fewer abilities of the software one.
 *
 * @return 0 if it ended well, or was left out
 */
static inline int gpu_test_again(char **argv, const gpu_test_part_t *part)
{
    bool real = gpu_test_real();
    const char *build = getenv("UMRDDT_BUILDDIR");
    char *args[] = {argv[0], (char *) part->name, NULL};
    const char *result = "FAILED: ", *why = "";
    char path[4096];
    int status;
    pid_t pid;

    CHECK(NULL != build || real);
    if (real
        && (NULL == part->options || NULL != strstr(part->options, "fail=")
            || NULL != strstr(part->options, "=0"))) {
        printf("left out: %s\n", part->name);
        return 0;
    }
    fflush(NULL);
    pid = fork();
    CHECK(-1 != pid);
    if (0 == pid) {
        snprintf(path, sizeof(path), "%s/sim/cuda/.libs%s%s", real ? "" : build,
                 NULL == getenv("LD_LIBRARY_PATH") ? "" : ":",
                 NULL == getenv("LD_LIBRARY_PATH") ? "" : getenv("LD_LIBRARY_PATH"));
        if (NULL != part->options && !real) {
            setenv("LD_LIBRARY_PATH", path, 1);
            gpu_test_options(part->options);
        }
        unsetenv("CUDA_VISIBLE_DEVICES");
        execv("/proc/self/exe", args);
        _exit(99);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    if (0 == status) {
        result = "ok: ";
    } else if (WIFEXITED(status) && GPU_TEST_LEFT_OUT == WEXITSTATUS(status)) {
        status = 0;
        result = "left out: ";
        why = ", which needs two devices";
    }
    printf("%s%s%s\n", result, part->name, why);
    return 0 != status;
}

/** All parts, or the one that is named. @return the exit status */
static inline int gpu_test_main(int argc, char **argv, const gpu_test_part_t *parts, size_t count)
{
    int failed = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        if (1 == argc) {
            failed |= gpu_test_again(argv, &parts[i]);
        } else if (0 == strcmp(argv[1], parts[i].name)) {
            parts[i].run();
        }
    }
    return failed;
}

#endif /* GPU_TEST_H */
