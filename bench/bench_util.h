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
 * Utilities of umrddt_bench: fatal errors, memory, time, random numbers that are the same
 * everywhere.
 */

#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** Print the reason on stderr and end the whole job. For errors that are not results: no memory, a
 * bug. */
void bench_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** malloc that does not return without memory. */
void *bench_alloc(size_t bytes);

/** realloc that does not return without memory. */
void *bench_realloc(void *memory, size_t bytes);

/** Seconds of a clock that only goes forward. */
double bench_now(void);

/**
 * Begin to count instructions, if callgrind runs this process with --instr-atstart=no: all before
 * it, such as MPI_Init, runs several times faster uncounted. Has no effect otherwise, or where
 * valgrind's header was not found at build time.
 */
void bench_count_begin(void);

/** The next number of the sequence that begins with a seed (splitmix64). */
uint64_t bench_random(uint64_t *state);

#endif /* BENCH_UTIL_H */
