/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The curves and figures of umrddt_tune alone: an incomplete curve is dropped; no figure without a
 * point, all of them with one of each curve, only those with a point, nothing outside of the page
 * for any tuning parameters, and a full file is an error.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/common/check.h"
#include "tune.h"

static tune_t tune;

/* @return the drawing; to be freed */
static char *draw(int result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);

    CHECK(NULL != file);
    CHECK(result == tune_plot(file, &tune, "a <machine> & \"co\"\n"));
    CHECK(0 == fclose(file));
    CHECK((0 == result) == (0 < length));
    return text;
}

static int count(const char *text, const char *what)
{
    int found = 0;

    for (; NULL != (text = strstr(text, what)); text += strlen(what)) {
        ++found;
    }
    return found;
}

static void point(tune_curve_t curve, double x, double y)
{
    tune_points_t *points = &tune.points[curve];

    points->x[points->count] = x;
    points->y[points->count++] = y;
}

/* All that is moved to is on the page. */
static void within(const char *text, double width, double height)
{
    double x, y;

    for (; NULL != (text = strpbrk(text, "ML")); ++text) {
        if (2 == sscanf(text + 1, "%lf %lf", &x, &y)) {
            CHECK(0 <= x && x <= width && 0 <= y && y <= height);
        }
    }
}

void bench_fatal(const char *format, ...)
{
    printf("%s\n", format);
    abort();
}

/* Figures by their names; what chance has made less than nothing is none, nor is half a curve. */
static void entered(void)
{
    double *half = tune.tuning.gpu_pack, *whole = tune.tuning.ipc_copy;
    const int gpu_pack = tune_index("gpu_pack"), ipc_copy = tune_index("ipc_copy");
    opal_umrddt_tuning_t defaults;

    opal_umrddt_tuning_default(&defaults);
    TUNE_FIGURE(&tune, hca_rate, 12);
    TUNE_FIGURE(&tune, key_map, -3);
    TUNE_FIGURE(&tune, key_entry, 1.0 / 0.0);
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
        tune_enter(&tune, &half[i], gpu_pack, 3 == i ? -1 : 7);
        tune_enter(&tune, &whole[i], ipc_copy, 7);
    }
    tune_complete(&tune);
    CHECK(12 <= tune.tuning.hca_rate && 12 >= tune.tuning.hca_rate);
    CHECK(0 == memcmp(&defaults.key_map, &tune.tuning.key_map, sizeof(double)));
    CHECK(tune.measured.figure[tune_index("hca_rate")]);
    CHECK(!tune.measured.figure[tune_index("key_map")]);
    CHECK(!tune.measured.figure[tune_index("key_entry")]);
    CHECK(!tune.measured.figure[gpu_pack] && tune.measured.figure[ipc_copy]);
    CHECK(0 == memcmp(defaults.gpu_pack, tune.tuning.gpu_pack, sizeof(defaults.gpu_pack)));
    CHECK(6.9 < whole[0] && whole[OPAL_UMRDDT_TUNING_CURVE_POINTS - 1] < 7.1);
    tune_point(&tune, TUNE_CURVE_HOST, 8, -1);
    CHECK(0 == tune.points[TUNE_CURVE_HOST].count);
}

int main(void)
{
    static const char *const labels[] = {
#define LABEL(name, picture, label) label,
        TUNE_CURVES(LABEL)};
    char *text;
    FILE *full;

    opal_umrddt_tuning_default(&tune.tuning);
    entered();
    free(draw(1));

    /* one point of one curve */
    point(TUNE_CURVE_PIECES_UMR, 1000, 10);
    text = draw(0);
    CHECK(1 == count(text, "class=\"frame\""));
    CHECK(NULL != strstr(text, "HCA messages"));
    CHECK(NULL != strstr(text, "a &lt;machine&gt; &amp; \"co\"</text>"));
    CHECK(0 == strncmp(text, "<svg ", strlen("<svg ")));
    CHECK(NULL != strstr(text, "processes of two nodes"));
    free(text);

    /* of all; the prediction of the tuning parameters is far from it */
    tune.near = true;
    for (int curve = 0; curve < TUNE_CURVE_COUNT; ++curve) {
        tune.points[curve].count = 0;
        for (int i = 0; i < TUNE_POINTS; ++i) {
            point((tune_curve_t) curve, 8 * pow(4, i), 1e-3 * pow(3, i));
        }
    }
    text = draw(0);
    CHECK(6 == count(text, "class=\"frame\""));
    CHECK(NULL != strstr(text, "two processes of one node"));
    CHECK(NULL == strstr(text, "nan") && NULL == strstr(text, "inf"));
    for (int curve = 0; curve < TUNE_CURVE_COUNT; ++curve) {
        CHECK(NULL != strstr(text, labels[curve]));
    }
    /* a mark for each point and one in each legend; curves by size are drawn twice */
    CHECK((TUNE_CURVE_COUNT + TUNE_CURVE_GPU_IN + 1) * (TUNE_POINTS + 1)
          == count(text, "<path fill="));
    CHECK(TUNE_CURVE_COUNT + TUNE_CURVE_GPU_IN + 1 == count(text, "class=\"line\""));
    within(text, 1160, 64 + 3 * 350);
    free(text);

    full = fopen("/dev/full", "w");
    if (NULL != full) {
        CHECK(-1 == tune_plot(full, &tune, "a machine"));
        (void) fclose(full);
    }
    printf("test_plot: %lu checks\n", checks);
    return 0;
}
