/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Stores measured values: tuning parameters, and points of plots. */

#include <math.h>
#include <string.h>

#include "bench_util.h"
#include "tune.h"

int tune_index(const char *name)
{
    int index = 0;

#define FIND(field, ...)             \
    if (0 == strcmp(name, #field)) { \
        return index;                \
    }                                \
    ++index;
    OPAL_UMRDDT_TUNING_VALUES(FIND)
    OPAL_UMRDDT_TUNING_CURVES(FIND)
    bench_fatal("unknown parameter %s", name);
}

void tune_enter(tune_t *tune, double *figure, int index, double value)
{
    /* noise can make a difference of two times useless: keep the default */
    if (!(1e-6 < value && value < 1e12)) {
        return;
    }
    *figure = value;
    tune->measured.figure[index] = true;
    ++tune->entered[index];
}

void tune_point(tune_t *tune, tune_curve_t curve, double x, double y)
{
    tune_points_t *points = &tune->points[curve];

    if (0 < x && 0 < y && isfinite(y) && points->count < TUNE_POINTS) {
        points->x[points->count] = x;
        points->y[points->count++] = y;
    }
}

void tune_complete(tune_t *tune)
{
    opal_umrddt_tuning_t defaults;
    int index = OPAL_UMRDDT_TUNING_VALUE_COUNT;

    opal_umrddt_tuning_default(&defaults);
#define COMPLETE(name, help)                                                 \
    if (tune->entered[index] < OPAL_UMRDDT_TUNING_CURVE_POINTS) {            \
        memcpy(tune->tuning.name, defaults.name, sizeof(tune->tuning.name)); \
        tune->measured.figure[index] = false;                                \
    }                                                                        \
    ++index;
    OPAL_UMRDDT_TUNING_CURVES(COMPLETE)
}
