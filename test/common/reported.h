/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The name of a violated invariant, for the tests of invariants. */

#ifndef TEST_COMMON_REPORTED_H
#define TEST_COMMON_REPORTED_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Whether what is said to be wrong (NULL: nothing) begins with these words. What came instead is
 * printed. */
static inline bool is_named(const char *wrong, const char *words)
{
    if (NULL != wrong && 0 == strncmp(wrong, words, strlen(words))) {
        return true;
    }
    printf("instead of \"%s\": %s\n", words, NULL == wrong ? "nothing" : wrong);
    return false;
}

/* With what follows the words done to a thing, what FOUND says is wrong with it begins with the
 * words; before, nothing is. */
#define BROKEN(FOUND, WORDS, ...)              \
    do {                                       \
        const char *wrong_ = (FOUND);          \
                                               \
        if (NULL != wrong_) {                  \
            printf("too early: %s\n", wrong_); \
        }                                      \
        CHECK(NULL == wrong_);                 \
        __VA_ARGS__;                           \
        wrong_ = (FOUND);                      \
        CHECK(is_named(wrong_, WORDS));        \
    } while (0)

/* This ends a process by SIGABRT; the caller checks its output. */
static inline void reported_by_abort(void (*run)(void), char *said, size_t size)
{
    size_t have = 0;
    ssize_t got;
    int words[2], status;
    pid_t child;

    CHECK(0 == pipe(words));
    fflush(stdout);
    child = fork();
    CHECK(0 <= child);
    if (0 == child) {
        (void) dup2(words[1], 2);
        signal(SIGABRT, SIG_DFL);
        run();
        _exit(7);
    }
    close(words[1]);
    while (have + 1 < size && 0 < (got = read(words[0], said + have, size - 1 - have))) {
        have += (size_t) got;
    }
    close(words[0]);
    said[have] = '\0';
    CHECK(child == waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
}

#endif /* TEST_COMMON_REPORTED_H */
