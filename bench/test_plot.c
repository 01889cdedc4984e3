/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The pictures of umrddt_tune by themselves: none without a point, all of them with one of each
 * curve, only those of which there is one, nothing beside the page whatever the figures are, and a
 * file that takes no more is an error.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/common/check.h"
#include "tune.h"

static tune_t tune;

/* @return what is drawn; to be freed */
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

int main(void)
{
    static const char *const labels[] = {
#define LABEL(name, picture, label) label,
        TUNE_CURVES(LABEL)};
    char *text;
    FILE *full;

    mca_pml_umrddt_figures_default(&tune.figures);
    free(draw(1));

    /* one point of one curve */
    point(TUNE_CURVE_PIECES_UMR, 1000, 10);
    text = draw(0);
    CHECK(1 == count(text, "class=\"frame\""));
    CHECK(NULL != strstr(text, "A message by the card"));
    CHECK(NULL != strstr(text, "a &lt;machine&gt; &amp; \"co\"</text>"));
    CHECK(0 == strncmp(text, "<svg ", strlen("<svg ")));
    CHECK(NULL != strstr(text, "processes of two hosts"));
    free(text);

    /* of all; what the figures make of it is far from it */
    tune.near = true;
    for (int curve = 0; curve < TUNE_CURVE_COUNT; ++curve) {
        tune.points[curve].count = 0;
        for (int i = 0; i < TUNE_POINTS; ++i) {
            point((tune_curve_t) curve, 8 * pow(4, i), 1e-3 * pow(3, i));
        }
    }
    text = draw(0);
    CHECK(6 == count(text, "class=\"frame\""));
    CHECK(NULL != strstr(text, "two processes of one host"));
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
