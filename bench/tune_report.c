/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Output of the tuning parameters: the table, the file, which earlier runs may have started, and
 * the figures. At the first process. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tune.h"

/* now: tuning parameters that this run measured, not the file. */
static void print_table(const tune_t *tune, const bool *now, FILE *file)
{
    const bool *all = tune->measured.figure;

    fprintf(
        file,
        "# us, or bytes per us (MB/s); *: measured now, +: by an earlier run (file), else default\n");
#define PRINT_FIGURE(name, value, help)      \
    fprintf(file, "%c %-16s %12.3f  %s\n",   \
            *now++ ? '*'                     \
            : *all ? '+'                     \
                   : ' ',                    \
            #name, tune->tuning.name, help); \
    ++all;
    OPAL_UMRDDT_TUNING_VALUES(PRINT_FIGURE)
    fprintf(file, "# block bytes %13s %8s %8s %8s %8s %8s\n", "8", "64", "512", "4096", "32768",
            "262144");
#define PRINT_CURVE(name, help)                                        \
    fprintf(file, "%c %-16s", *now++ ? '*' : *all ? '+' : ' ', #name); \
    ++all;                                                             \
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {        \
        fprintf(file, " %8.0f", tune->tuning.name[i]);                 \
    }                                                                  \
    fprintf(file, "  %s\n", help);
    OPAL_UMRDDT_TUNING_CURVES(PRINT_CURVE)
    fflush(file);
}

static void print_string(FILE *file, const char *text)
{
    putc('"', file);
    for (; '\0' != *text; ++text) {
        if ('"' == *text || '\\' == *text) {
            putc('\\', file);
        }
        putc((unsigned char) *text < ' ' ? ' ' : *text, file);
    }
    putc('"', file);
}

/* The same table. */
static void print_json(const tune_t *tune, const bool *now, const char *hardware, const char *when,
                       FILE *file)
{
    const bool *all = tune->measured.figure;
    const char *between = "";

    fprintf(file, "{\n  \"umrddt_tune\": \"%s\",\n  \"when\": \"%s\",\n  \"hosts\": %d,\n",
            UMRDDT_VERSION, when, tune->near ? 1 : 2);
    fprintf(file, "  \"hardware\": ");
    print_string(file, hardware);
#define STATE (*now ? "now" : *all ? "before" : "default")
#define JSON_FIGURE(name, value, help)                                                            \
    fprintf(file, "%s\n    {\"name\": \"%s\", \"value\": %.9g, \"measured\": \"%s\", \"what\": ", \
            between, #name, tune->tuning.name, STATE);                                            \
    print_string(file, help);                                                                     \
    fprintf(file, "}");                                                                           \
    between = ",";                                                                                \
    ++now;                                                                                        \
    ++all;
    fprintf(file, ",\n  \"tuning\": [");
    OPAL_UMRDDT_TUNING_VALUES(JSON_FIGURE)
    fprintf(file, "\n  ],\n  \"blocks\": [");
    for (int i = 0, block = OPAL_UMRDDT_TUNING_CURVE_LEAST; i < OPAL_UMRDDT_TUNING_CURVE_POINTS;
         ++i) {
        fprintf(file, "%s%d", 0 == i ? "" : ", ", block);
        block *= OPAL_UMRDDT_TUNING_CURVE_STEP;
    }
    between = "";
#define JSON_CURVE(name, help)                                                 \
    fprintf(file, "%s\n    {\"name\": \"%s\", \"values\": [", between, #name); \
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {                \
        fprintf(file, "%s%.9g", 0 == i ? "" : ", ", tune->tuning.name[i]);     \
    }                                                                          \
    fprintf(file, "], \"measured\": \"%s\", \"what\": ", STATE);               \
    print_string(file, help);                                                  \
    fprintf(file, "}");                                                        \
    between = ",";                                                             \
    ++now;                                                                     \
    ++all;
    fprintf(file, "],\n  \"curves\": [");
    OPAL_UMRDDT_TUNING_CURVES(JSON_CURVE)
    fprintf(file, "\n  ]\n}\n");
}

/* The path of the file. @return false: there is no such place; prints an error */
static bool file_name(const tune_options_t *options, tune_report_t *report)
{
    if (NULL == options->output
        && !opal_umrddt_tuning_path(report->hardware, options->system, report->path,
                                    sizeof(report->path))) {
        fprintf(stderr, "umrddt_tune: neither XDG_CONFIG_HOME nor HOME is a directory: --output\n");
        return false;
    }
    if (NULL != options->output) {
        (void) snprintf(report->path, sizeof(report->path), "%s", options->output);
    }
    return true;
}

static bool to_stdout(const tune_options_t *options)
{
    return NULL != options->json && 0 == strcmp("-", options->json);
}

bool tune_report_open(const tune_options_t *options, tune_report_t *report)
{
    opal_umrddt_tuning_hardware(report->hardware);
    return (options->dry || (file_name(options, report) && tune_file_can_write(report->path)))
           && (NULL == options->plot || tune_file_can_write(options->plot))
           && (NULL == options->json || to_stdout(options) || tune_file_can_write(options->json));
}

/* Add the results of an earlier run from the file: for example those of two nodes to those of one.
 */
static void add_file(tune_t *tune, const tune_options_t *options, const tune_report_t *report)
{
    char wrong[OPAL_UMRDDT_TUNING_TEXT];
    opal_umrddt_tuning_measured_t measured;
    opal_umrddt_tuning_t tuning;
    opal_umrddt_tuning_file_t result =
        opal_umrddt_tuning_read(report->path, report->hardware, &tuning, &measured, wrong);

    if (OPAL_UMRDDT_TUNING_FILE_GOOD == result && measured.any && !options->any) {
        result = OPAL_UMRDDT_TUNING_FILE_FOREIGN;
        (void) snprintf(wrong, sizeof(wrong), "it is for any hardware (--any)");
    }
    if (OPAL_UMRDDT_TUNING_FILE_GOOD == result) {
        opal_umrddt_tuning_add(&tune->tuning, &tune->measured, &tuning, &measured);
    } else if (OPAL_UMRDDT_TUNING_FILE_ABSENT != result) {
        fprintf(stderr, "umrddt_tune: %s is replaced: %s\n", report->path, wrong);
    }
}

static int write_tuning(const tune_t *tune, const char *path, const char *hardware)
{
    tune_file_t file;

    return !tune_file_open(&file, path)
               ? 1
               : tune_file_close(&file,
                                 0
                                     == opal_umrddt_tuning_write(file.file, hardware, &tune->tuning,
                                                                 &tune->measured));
}

static int write_plot(const tune_t *tune, const char *path, const char *hardware, const char *when)
{
    char heading[OPAL_UMRDDT_TUNING_TEXT + OPAL_UMRDDT_TUNING_NOTE + 8];
    tune_file_t file;
    int result;

    if (!tune_file_open(&file, path)) {
        return 1;
    }
    (void) snprintf(heading, sizeof(heading), "%s (%s)", hardware, when);
    result = tune_plot(file.file, tune, heading);
    if (1 == result) {
        fprintf(stderr, "umrddt_tune: nothing was measured; no plot is written\n");
        tune_file_drop(&file);
        return 1;
    }
    return tune_file_close(&file, 0 == result);
}

static int write_json(const tune_t *tune, const bool *now, const char *path, const char *hardware,
                      const char *when)
{
    tune_file_t file;

    if (!tune_file_open(&file, path)) {
        return 1;
    }
    print_json(tune, now, hardware, when, file.file);
    return tune_file_close(&file, 0 == ferror(file.file));
}

int tune_report(tune_t *tune, const tune_options_t *options, const tune_report_t *report)
{
    const opal_umrddt_tuning_measured_t measured = tune->measured;
    const opal_umrddt_tuning_t tuning = tune->tuning;
    char when[64], *note = tune->near ? tune->measured.near : tune->measured.far;
    bool now[OPAL_UMRDDT_TUNING_VALUE_COUNT + OPAL_UMRDDT_TUNING_CURVE_COUNT];
    time_t seconds = time(NULL);
    struct tm utc;
    int i = 0, status = 0;

    (void) strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&seconds, &utc));
    (void) snprintf(note, OPAL_UMRDDT_TUNING_NOTE, "umrddt_tune " UMRDDT_VERSION ", %s", when);
    if (NULL != options->plot) {
        /* by the tuning parameters of this run, whatever others the file has */
        status = write_plot(tune, options->plot, report->hardware, note);
    }
    if (!options->dry && !options->fresh && !tune_file_is_special(report->path)) {
        add_file(tune, options, report);
    }
#define IS_NOW(name, ...)                                                                         \
    now[i] =                                                                                      \
        measured.figure[i] && 0 == memcmp(&tuning.name, &tune->tuning.name, sizeof(tuning.name)); \
    ++i;
    OPAL_UMRDDT_TUNING_VALUES(IS_NOW)
    OPAL_UMRDDT_TUNING_CURVES(IS_NOW)
    print_table(tune, now, to_stdout(options) ? stderr : stdout);
    if (to_stdout(options)) {
        print_json(tune, now, report->hardware, when, stdout);
        status = 0 == fflush(stdout) ? status : 1;
    } else if (NULL != options->json
               && 0 != write_json(tune, now, options->json, report->hardware, when)) {
        status = 1;
    }
    if (!options->dry
        && 0 != write_tuning(tune, report->path, options->any ? "any" : report->hardware)) {
        status = 1;
    }
    return status;
}
