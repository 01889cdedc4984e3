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
 * Many times in three numbers.
 */

#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

/** Microseconds. */
typedef struct bench_times_t {
    double median; /**< of an even number, the mean of the two in the middle */
    double min;
    double p95; /**< the smallest that 95 % are not above */
} bench_times_t;

/**
 * @param[in,out] samples  seconds, @p count (at least 1) of them; sorted afterwards
 */
void bench_times_summarise(double *samples, int count, bench_times_t *times);

#endif /* BENCH_TIMES_H */
