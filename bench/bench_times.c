/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdlib.h>
#include <time.h>

#include "bench_times.h"

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return left < right ? -1 : left > right;
}

double bench_times_median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof(double), compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2.0;
}

void bench_times_summarise(double *samples, int count, bench_times_t *times)
{
    int p95 = (int) ((95LL * count + 99) / 100) - 1;

    times->median = 1e6 * bench_times_median(samples, count);
    times->min = 1e6 * samples[0];
    times->p95 = 1e6 * samples[p95];
}

#define ROUNDS     51
#define ROUND_TIME 4e-4 /* minimum seconds of a round of one function */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/* Seconds of so many. */
static double repeat(bench_variant_t variant, void *context, int times)
{
    const double start = now();

    for (int i = 0; i < times; ++i) {
        variant(context);
    }
    return now() - start;
}

void bench_alternate(bench_variant_t first, bench_variant_t second, void *context, double *first_us,
                     double *second_us)
{
    const bench_variant_t variants[2] = {first, second};
    double samples[2][ROUNDS];
    int repeats[2] = {1, 1};
    bench_times_t times;

    for (int variant = 0; variant < 2; ++variant) {
        variants[variant](context); /* warm */
        while (ROUND_TIME > repeat(variants[variant], context, repeats[variant])) {
            repeats[variant] *= 2;
        }
    }
    for (int round = 0; round < ROUNDS; ++round) {
        for (int variant = 0; variant < 2; ++variant) {
            samples[variant][round] =
                repeat(variants[variant], context, repeats[variant]) / repeats[variant];
        }
    }
    bench_times_summarise(samples[0], ROUNDS, &times);
    *first_us = times.median;
    bench_times_summarise(samples[1], ROUNDS, &times);
    *second_us = times.median;
}
