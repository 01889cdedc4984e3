/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Plots of the measurements: a page of SVG. Both axes of each are
 * logarithmic. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tune.h"

/* Position of a plot on the page, and of the axes in the plot; in pixels. */
#define WIDTH   580
#define HEIGHT  350
#define LEFT    76
#define TOP     34
#define ACROSS  300
#define DOWN    258
#define LEGEND  (LEFT + ACROSS + 16)
#define COLUMNS 2
#define HEAD    64

/* Of a line. */
#define STEPS 48

typedef enum group_t {
    SIZE,
    BLOCK,
    COUNT,
    PIECES,
    FIRST
} group_t;

typedef struct picture_t {
    group_t group; /* whose curves are in it */
    bool rate;     /* bytes over time, of curves that are times by bytes */
    bool bytes;    /* the axis across: ticks at powers of 8 */
    const char *title, *across, *up;
} picture_t;

static const picture_t pictures[] = {
    {SIZE, false, true, "Messages and copies: time", "bytes", "&#181;s"},
    {SIZE, true, true, "Messages and copies: bandwidth", "bytes", "MB/s"},
    {BLOCK, false, true, "Packing: bandwidth by block length", "bytes of a block", "MB/s"},
    {COUNT, false, false, "GPU operations: time by number of blocks", "blocks of 64 bytes",
     "&#181;s"},
    {PIECES, false, false, "HCA messages: time by number of pieces",
     "pieces of 64 bytes at each side", "&#181;s"},
    {FIRST, false, false, "Additional time of a first message", "pieces of 16 bytes at each side",
     "&#181;s"},
};
#define PICTURES (int) (sizeof(pictures) / sizeof(pictures[0]))

#define CURVE(name, group, label) {group, label},
static const struct {
    group_t group;
    const char *label;
} curves[TUNE_CURVE_COUNT] = {TUNE_CURVES(CURVE)};

/* Colours for readers with colour blindness, and different marks. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#777777"};
#define LOOKS (int) (sizeof(colours) / sizeof(colours[0]))

/* ---------------------------------------------------------------------------------------------
 * Values by the tuning parameters
 * ------------------------------------------------------------------------------------------- */

/* A message with cached keys and registration, or its additional time without them. */
static double message(const tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, uint64_t bytes,
                      uint64_t pieces, bool gpu, bool first)
{
    opal_umrddt_select_side_t side = {.pieces = pieces, .gpu = gpu};
    opal_umrddt_select_case_t what = {.bytes = bytes,
                                      .from = side,
                                      .to = side,
                                      .near = tune->near,
                                      .known = ~0u,
                                      .uses = 1,
                                      .write_pieces = UINT32_MAX,
                                      .chunk = bytes,
                                      .eager = OPAL_UMRDDT_SELECT_EAGER,
                                      .depth = 1};
    double time = opal_umrddt_select_time(&tune->tuning, &what, scheme_id);

    if (first) {
        what.known = 0;
        time = opal_umrddt_select_time(&tune->tuning, &what, scheme_id) - time;
    }
    return time;
}

static double packing(const tune_t *tune, const double *curve, double count)
{
    return tune->tuning.gpu_launch
           + count * TUNE_BLOCK / opal_umrddt_tuning_curve_at(curve, TUNE_BLOCK);
}

static double predicted(const tune_t *tune, tune_curve_t curve, double x)
{
    const opal_umrddt_tuning_t *tuning = &tune->tuning;
    const uint64_t n = (uint64_t) llround(x);

    switch (curve) {
    case TUNE_CURVE_HOST:
        return message(tune, MCA_PML_UMRDDT_SCHEME_BASE, n, 1, false, false);
    case TUNE_CURVE_DIRECT:
        return message(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, n, TUNE_PIECES, false, false);
    case TUNE_CURVE_UMR:
        return message(tune, MCA_PML_UMRDDT_SCHEME_UMR, n, TUNE_PIECES, false, false);
    case TUNE_CURVE_GPU_UMR:
        return message(tune, MCA_PML_UMRDDT_SCHEME_UMR, n, TUNE_PIECES, true, false);
    case TUNE_CURVE_GPU_IPC:
        return message(tune, MCA_PML_UMRDDT_SCHEME_IPC, n, TUNE_PIECES, true, false);
    case TUNE_CURVE_GPU_OUT:
        return tuning->gpu_out_latency + x / tuning->gpu_out_rate;
    case TUNE_CURVE_GPU_IN:
        return tuning->gpu_in_latency + x / tuning->gpu_in_rate;
    case TUNE_CURVE_CPU_COPY:
        return opal_umrddt_tuning_curve_at(tuning->cpu_copy, x);
    case TUNE_CURVE_CPU_PACK:
        return opal_umrddt_tuning_curve_at(tuning->cpu_pack, x);
    case TUNE_CURVE_GPU_PACK:
        return opal_umrddt_tuning_curve_at(tuning->gpu_pack, x);
    case TUNE_CURVE_GPU_UNPACK:
        return opal_umrddt_tuning_curve_at(tuning->gpu_unpack, x);
    case TUNE_CURVE_GPU_PACK_HOST:
        return opal_umrddt_tuning_curve_at(tuning->gpu_pack_host, x);
    case TUNE_CURVE_GPU_UNPACK_HOST:
        return opal_umrddt_tuning_curve_at(tuning->gpu_unpack_host, x);
    case TUNE_CURVE_IPC_COPY:
        return opal_umrddt_tuning_curve_at(tuning->ipc_copy, x);
    case TUNE_CURVE_GPU_LIST:
        return opal_umrddt_tuning_curve_at(tuning->gpu_list, x);
    case TUNE_CURVE_COUNT_PACK:
        return packing(tune, tuning->gpu_pack, x);
    case TUNE_CURVE_COUNT_UNPACK:
        return packing(tune, tuning->gpu_unpack, x);
    case TUNE_CURVE_COUNT_PACK_HOST:
        return packing(tune, tuning->gpu_pack_host, x);
    case TUNE_CURVE_COUNT_UNPACK_HOST:
        return packing(tune, tuning->gpu_unpack_host, x);
    case TUNE_CURVE_PIECES_DIRECT:
        return message(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, n * TUNE_BLOCK, n, false, false);
    case TUNE_CURVE_PIECES_UMR:
        return message(tune, MCA_PML_UMRDDT_SCHEME_UMR, n * TUNE_BLOCK, n, false, false);
    case TUNE_CURVE_FIRST_DIRECT:
        return message(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, n * TUNE_FIRST_BLOCK, n, false, true);
    case TUNE_CURVE_FIRST_UMR:
        return message(tune, MCA_PML_UMRDDT_SCHEME_UMR, n * TUNE_FIRST_BLOCK, n, false, true);
    case TUNE_CURVE_COUNT:
        break;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------
 * Axes
 * ------------------------------------------------------------------------------------------- */

/* The current plot: its corner on the page, and the ranges of its axes. */
typedef struct axes_t {
    FILE *file;
    const picture_t *picture;
    double x, y;
    double from, to, least, most;
} axes_t;

static double across(const axes_t *axes, double x)
{
    return axes->x + LEFT + ACROSS * log(x / axes->from) / log(axes->to / axes->from);
}

static double up(const axes_t *axes, double y)
{
    double at = log(y / axes->least) / log(axes->most / axes->least);

    /* the value by the tuning parameters may differ much from the measured one */
    return axes->y + TOP + DOWN * (1 - (at < 0 ? 0 : at > 1 ? 1 : at));
}

/* Y of a point, or of a line. */
static double value(const picture_t *picture, double x, double y)
{
    return picture->rate ? x / y : y;
}

/* Print text that may contain user input. */
static void print_text(FILE *file, const char *text)
{
    for (; '\0' != *text; ++text) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            if (' ' <= (unsigned char) *text) {
                fputc(*text, file);
            }
        }
    }
}

/* Set the ranges of the axes: the measured values, rounded to decades. @return false: there are
 * none */
static bool reach(axes_t *axes, const tune_t *tune)
{
    axes->from = axes->least = INFINITY;
    axes->to = axes->most = 0;
    for (int curve = 0; curve < TUNE_CURVE_COUNT; ++curve) {
        const tune_points_t *points = &tune->points[curve];

        for (int i = 0; axes->picture->group == curves[curve].group && i < points->count; ++i) {
            double y = value(axes->picture, points->x[i], points->y[i]);

            axes->from = fmin(axes->from, points->x[i]);
            axes->to = fmax(axes->to, points->x[i]);
            axes->least = fmin(axes->least, y);
            axes->most = fmax(axes->most, y);
        }
    }
    if (!(0 < axes->to)) {
        return false;
    }
    axes->from /= 1.5;
    axes->to *= 1.5;
    axes->least = pow(10, floor(log10(axes->least) + 1e-9));
    axes->most = pow(10, ceil(log10(axes->most) - 1e-9));
    if (axes->most < 9.9 * axes->least) {
        axes->most = 10 * axes->least;
    }
    return true;
}

static void print_tick(FILE *file, const picture_t *picture, double x)
{
    if (picture->bytes && x >= 1048576) {
        fprintf(file, "%.0f MiB", x / 1048576);
    } else if (picture->bytes && x >= 1024) {
        fprintf(file, "%.0f KiB", x / 1024);
    } else {
        fprintf(file, "%.0f", x);
    }
}

static void draw_axes(const axes_t *axes)
{
    const picture_t *picture = axes->picture;
    const double step = picture->bytes ? 8 : 10, bottom = axes->y + TOP + DOWN;
    FILE *file = axes->file;

    fprintf(file, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">", axes->x + LEFT, axes->y + 18);
    print_text(file, picture->title);
    fprintf(file, "</text>\n");
    for (double x = 1; x <= axes->to; x *= step) {
        if (x < axes->from) {
            continue;
        }
        fprintf(file,
                "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                across(axes, x), axes->y + TOP, bottom, across(axes, x), bottom + 16);
        print_tick(file, picture, x);
        fprintf(file, "</text>\n");
    }
    for (double y = axes->least; y <= 1.1 * axes->most; y *= 10) {
        fprintf(file,
                "<path class=\"grid\" d=\"M%.1f %.1fh%d\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>\n",
                axes->x + LEFT, up(axes, y), ACROSS, axes->x + LEFT - 6, up(axes, y) + 4,
                y < 0.9 ? (int) lround(-log10(y)) : 0, y);
    }
    fprintf(
        file,
        "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n"
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n"
        "<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
        axes->x + LEFT, axes->y + TOP, ACROSS, DOWN, axes->x + LEFT + ACROSS / 2.0, bottom + 36,
        picture->across, axes->x + 14, axes->y + TOP + DOWN / 2.0, picture->up);
}

/* ---------------------------------------------------------------------------------------------
 * Curves
 * ------------------------------------------------------------------------------------------- */

static void draw_mark(FILE *file, int look, double x, double y)
{
    static const char *const shapes[LOOKS] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                                              "m-3.5 -3.5h7v7h-7z",
                                              "m0 -4.5l4 7.5h-8z",
                                              "m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
                                              "m0 4.5l4 -7.5h-8z",
                                              "m-4 -1.5h8v3h-8z",
                                              "m-1.5 -4h3v8h-3z"};

    fprintf(file, "<path fill=\"%s\" d=\"M%.1f %.1f%s\"/>\n", colours[look], x, y, shapes[look]);
}

/* Its points, the line by the tuning parameters, and its line of the legend. */
static void draw_curve(const axes_t *axes, const tune_t *tune, tune_curve_t curve, int look,
                       int row)
{
    const tune_points_t *points = &tune->points[curve];
    const double at = axes->y + TOP + 10 + 20 * row;
    double from = points->x[0], to = points->x[0];
    FILE *file = axes->file;

    for (int i = 1; i < points->count; ++i) {
        from = fmin(from, points->x[i]);
        to = fmax(to, points->x[i]);
    }
    fprintf(file, "<path class=\"line\" stroke=\"%s\" d=\"", colours[look]);
    for (int i = 0; i <= STEPS; ++i) {
        double x = from * pow(to / from, i / (double) STEPS);

        fprintf(file, "%c%.1f %.1f", 0 == i ? 'M' : 'L', across(axes, x),
                up(axes, value(axes->picture, x, predicted(tune, curve, x))));
    }
    fprintf(file, "\"/>\n");
    for (int i = 0; i < points->count; ++i) {
        draw_mark(file, look, across(axes, points->x[i]),
                  up(axes, value(axes->picture, points->x[i], points->y[i])));
    }
    draw_mark(file, look, axes->x + LEGEND, at);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", axes->x + LEGEND + 12, at + 4,
            curves[curve].label);
}

static void draw_picture(const axes_t *axes, const tune_t *tune)
{
    int look = 0, row = 0;

    draw_axes(axes);
    for (int curve = 0; curve < TUNE_CURVE_COUNT; ++curve) {
        if (axes->picture->group != curves[curve].group) {
            continue;
        }
        if (0 < tune->points[curve].count) {
            draw_curve(axes, tune, (tune_curve_t) curve, look % LOOKS, row++);
        }
        ++look; /* the same colour in each run */
    }
}

int tune_plot(FILE *file, const tune_t *tune, const char *heading)
{
    axes_t axes[PICTURES];
    int count = 0, rows;

    for (int i = 0; i < PICTURES; ++i) {
        axes[count] = (axes_t){.file = file, .picture = &pictures[i]};
        axes[count].x = count % COLUMNS * WIDTH;
        axes[count].y = HEAD + count / COLUMNS * HEIGHT;
        count += reach(&axes[count], tune) ? 1 : 0;
    }
    if (0 == count) {
        return 1;
    }
    rows = (count + COLUMNS - 1) / COLUMNS;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>.title{font-weight:bold;font-size:13px}.grid{stroke:#e5e5e5}"
            ".frame{fill:none;stroke:#666}.line{fill:none;stroke-width:1.3}</style>\n"
            "<title>Measurements of umrddt_tune</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"24\" font-size=\"14\">",
            COLUMNS * WIDTH, HEAD + rows * HEIGHT, LEFT);
    print_text(file, heading);
    fprintf(
        file,
        "</text>\n<text x=\"%d\" y=\"44\">Marks: measured, %s. Lines: predicted with the parameters "
        "of this run, as for the selection of a scheme.</text>\n",
        LEFT, tune->near ? "two processes of one node" : "processes of two nodes");
    for (int i = 0; i < count; ++i) {
        draw_picture(&axes[i], tune);
    }
    fprintf(file, "</svg>\n");
    return 0 == fflush(file) && !ferror(file) ? 0 : -1;
}
