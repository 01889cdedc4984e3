/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdlib.h>

#include "bench_times.h"

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return left < right ? -1 : left > right;
}

void bench_times_summarise(double *samples, int count, bench_times_t *times)
{
    int p95 = (int) ((95LL * count + 99) / 100) - 1;

    qsort(samples, (size_t) count, sizeof(double), compare_doubles);
    times->min = 1e6 * samples[0];
    times->median = 1e6 * (samples[(count - 1) / 2] + samples[count / 2]) / 2.0;
    times->p95 = 1e6 * samples[p95];
}
