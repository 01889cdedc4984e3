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
 * An end for what would never end: a message that is lost must not hang the job without a word.
 */

#ifndef BENCH_WATCHDOG_H
#define BENCH_WATCHDOG_H

/** The exit status of a process that gave up waiting. */
#define BENCH_EXIT_HANG 3

/**
 * From now on the process has @p seconds; then it says @p format on stderr and exits, which makes
 * mpirun end the job. Replaces what was set before.
 *
 * @param[in] seconds  0: nothing happens
 */
void bench_watchdog_set(unsigned seconds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** It was in time. */
void bench_watchdog_clear(void);

#endif /* BENCH_WATCHDOG_H */
