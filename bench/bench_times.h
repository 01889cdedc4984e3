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
 * The summary of many times in three numbers, and the times of two functions that alternate.
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

/** The median of @p count (at least 1) values, which are sorted afterwards. */
double bench_times_median(double *values, int count);

/** One of the functions. */
typedef void (*bench_variant_t)(void *context);

/**
 * Time two functions in turns, round by round, after one untimed call of each.
 *
 * @param[out] first_us, second_us  microseconds of one of each: the median of 51 rounds of the
 * processor time of this thread (other load on the machine affects wall time, and caches)
 */
void bench_alternate(bench_variant_t first, bench_variant_t second, void *context, double *first_us,
                     double *second_us);

#endif /* BENCH_TIMES_H */
