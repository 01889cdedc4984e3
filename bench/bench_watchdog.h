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
 * A time limit for hangs: a lost message must end the job with a message.
 */

#ifndef BENCH_WATCHDOG_H
#define BENCH_WATCHDOG_H

/** The exit status of a process that gave up waiting. */
#define BENCH_EXIT_HANG 3

/**
 * Set the time limit of the process to @p seconds from now; then it prints @p format on stderr and
 * exits, which makes mpirun end the job. Replaces the previous limit.
 *
 * @param[in] seconds  0: no limit
 */
void bench_watchdog_set(unsigned seconds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** It was in time. */
void bench_watchdog_clear(void);

#endif /* BENCH_WATCHDOG_H */
