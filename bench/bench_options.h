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
 * The command line of umrddt_bench.
 */

#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "layouts.h"

/** Maximum number of schemes in a list. */
#define BENCH_SCHEMES_MOST 8

/** Maximum number of --sizes, and of bytes of one. */
#define BENCH_SIZES_MOST 16
#define BENCH_SIZE_MOST  ((uint64_t) 1 << 30)

/** Maximum of --rounds. */
#define BENCH_ROUNDS_MOST 9

/** The list of --schemes. */
typedef struct bench_schemes_t {
    const char *name[BENCH_SCHEMES_MOST];
    int count; /**< 0: no --schemes */
} bench_schemes_t;

/** --auto-warmup: its time limit, as a multiple of that of a layout, and its round trips without a
 * pause. */
#define BENCH_WARMUP_SECONDS 10
#define BENCH_WARMUP_BURST   8

/** Timed iterations that are done without regard to the time limit. */
#define BENCH_MIN_ITERATIONS 3

typedef enum bench_progress_t {
    BENCH_PROGRESS_AUTO, /**< if stderr is a terminal */
    BENCH_PROGRESS_ALWAYS,
    BENCH_PROGRESS_NEVER
} bench_progress_t;

typedef struct bench_options_t {
    bool help;
    bool list;
    bool version;
    bool compare;
    bool bare;
    bool breakdown; /**< of the time of packed messages */
    bench_chosen_list_t layouts;
    uint64_t min_bytes; /**< of a message */
    uint64_t max_bytes;
    int warmup;
    int iterations;
    int burst;                        /**< round trips per iteration, or exchanges */
    int rounds;                       /**< with schemes: repetitions of all */
    int auto_warmup;                  /**< with schemes: round trips with auto before them */
    double max_seconds;               /**< for a layout; 0 is no limit */
    int hang_seconds;                 /**< per iteration, then the job aborts; 0 is no limit */
    const char *exchange;             /**< list of --exchange, or NULL */
    uint64_t sizes[BENCH_SIZES_MOST]; /**< with exchange: bytes of a block of a collective */
    int size_count;
    const char *csv;            /**< file, "-" for stdout, or NULL */
    const char *json;           /**< file, "-" for stdout, or NULL */
    const char *require_scheme; /**< or NULL */
    bench_schemes_t schemes;    /**< of --schemes */
    bool require_steady;
    uint64_t key_entries; /**< with require_steady: see bench_key_caps_t */
    uint64_t key_stride;
    const char *memory; /**< value of --memory */
    bool send_on_gpu;   /**< the sending buffers, of both processes */
    bool recv_on_gpu;
    bool contiguous_receiver; /**< received as one piece */
    const char *pattern;      /**< mpi_communication_pattern of the communicator, or NULL */
    bool has_require_min_bytes;
    uint64_t require_min_bytes;
    bench_progress_t progress;
} bench_options_t;

/**
 * Read the command line. Prints nothing.
 *
 * @param[out] options  texts in it point into argv
 * @param[out] error    the error of the command line, if any
 *
 * @return whether the command line is right
 */
bool bench_options_parse(int argc, char **argv, bench_options_t *options, char *error,
                         size_t error_room);

/** Free the memory of the options. */
void bench_options_destroy(bench_options_t *options);

/** Print the text of --help. */
void bench_options_help(FILE *file);

/** Print a one-line usage message. */
void bench_options_usage(FILE *file);

#endif /* BENCH_OPTIONS_H */
