/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <mpi.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif

#include "bench_util.h"

void bench_fatal(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    /* In one write: mpirun does not mix the lines of processes then. */
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "umrddt_bench: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    exit(EXIT_FAILURE);
}

void *bench_alloc(size_t bytes)
{
    return bench_realloc(NULL, bytes);
}

void *bench_realloc(void *memory, size_t bytes)
{
    void *result = realloc(memory, 0 == bytes ? 1 : bytes);

    if (NULL == result) {
        bench_fatal("no memory for %zu bytes", bytes);
    }
    return result;
}

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void bench_count_begin(void)
{
#if defined(CALLGRIND_START_INSTRUMENTATION)
    CALLGRIND_START_INSTRUMENTATION;
#endif
}
