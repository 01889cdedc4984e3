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
 * The output of umrddt_bench, on rank 0: the table, CSV, JSON, the progress line, the closing line.
 */

#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench_options.h"
#include "bench_run.h"

/** Number of values of the column "scheme"; bench_output.c has their names. */
#define BENCH_SCHEMES 10

typedef struct bench_output_t {
    FILE *table;
    FILE *csv;  /**< or NULL */
    FILE *json; /**< or NULL */
    bool compare;
    bool bare;
    bool breakdown;
    bool progress;
    bool progress_shown;
    int layouts; /**< to be run */
    int run;     /**< done so far */
    int failed;
    int schemes[BENCH_SCHEMES]; /**< number of layouts per scheme */
    /** --compare: layouts that are passed through, and handled ones; those slower than the base PML
     * alone by more than the limit (BENCH_OUTPUT_PASSED, nothing); and the slowest. */
    struct {
        int count, slower;
        double worst;
        const char *name;
    } against[2];
} bench_output_t;

/** Maximum ratio to the time of the base PML alone for a message that is passed through. */
#define BENCH_OUTPUT_PASSED 1.02

/** Write the begin of the JSON file, up to the list @p list. */
void bench_output_json_head(const bench_output_t *output, const bench_options_t *options, int ranks,
                            const char *list);

/** Remove the progress line, if there is one. */
void bench_output_clear_progress(bench_output_t *output);

/**
 * Open the files.
 *
 * @param[out] error  why it failed
 *
 * @return whether all could be opened
 */
bool bench_output_open(bench_output_t *output, const bench_options_t *options, int layouts,
                       char *error, size_t error_room);

/** Print the heads of the table and of the files. */
void bench_output_begin(bench_output_t *output, const bench_options_t *options, int ranks);

/** Print a row, and the first error of the layout if there is one. */
void bench_output_row(bench_output_t *output, const bench_result_t *result);

/** Print the summary. @p seconds is the total time. */
void bench_output_end(bench_output_t *output, double seconds);

/** @return whether everything that was written arrived in its file */
bool bench_output_close(bench_output_t *output);

/** A bench_progress_fn_t; context is the output. */
void bench_output_progress(const char *name, int done, int of, void *context);

/** --list: the name and the sizes of one layout. */
void bench_output_list_head(void);
void bench_output_list(const char *name, const bench_layout_t *layout);

#endif /* BENCH_OUTPUT_H */
