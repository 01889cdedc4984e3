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
 * The ping-pong of one layout: send, receive, time, check, count.
 */

#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "bench_options.h"
#include "bench_breakdown.h"
#include "bench_pvars.h"
#include "bench_times.h"
#include "bench_verify.h"
#include "layouts.h"

/**
 * Variants of a message: with the settings of the job; by the base PML alone (--compare); with
 * --bare the bare GPU operation, and a contiguous message of the same size by the base PML.
 */
enum {
    BENCH_VARIANT_MAIN,
    BENCH_VARIANT_BASE,
    BENCH_VARIANT_BARE,
    BENCH_VARIANT_CONTIGUOUS,
    BENCH_VARIANTS
};

typedef enum bench_plant_kind_t {
    BENCH_PLANT_NOTHING,
    BENCH_PLANT_INVERTED, /**< a byte of the received message is inverted */
    BENCH_PLANT_STALE,    /**< a byte of it is that of the message before */
    BENCH_PLANT_HANG      /**< no answer is sent */
} bench_plant_kind_t;

/** An error put in on purpose, to test that it is noticed; see bench_job_open. */
typedef struct bench_plant_t {
    bench_plant_kind_t kind;
    int64_t offset; /**< from the array */
    int iteration;  /**< timed iteration, from 1 */
} bench_plant_t;

/** Suffixes that name them; the main one has none. */
extern const char *const bench_variant_names[BENCH_VARIANTS];

/** The state of this process for all layouts. */
typedef struct bench_job_t {
    MPI_Comm main_comm; /**< as Open MPI is set up */
    MPI_Comm base_comm; /**< the base PML alone */
    MPI_Comm control;   /**< for all that is not measured; umrddt never handles its messages */
    int rank;
    int size;
    int peer;
    bool leader; /**< the one of the pair that sends first and measures the time */
    bench_pvars_t pvars;
    bench_plant_t plant;
} bench_job_t;

typedef enum bench_failure_kind_t {
    BENCH_FAILURE_NONE,
    BENCH_FAILURE_DATA,     /**< a byte of a received piece */
    BENCH_FAILURE_GAP,      /**< a byte of a receiving buffer beside the pieces */
    BENCH_FAILURE_SEND_GAP, /**< a byte of a sending buffer beside the pieces */
    BENCH_FAILURE_COUNT     /**< the count of a receive's status */
} bench_failure_kind_t;

/** The first thing that was wrong. */
typedef struct bench_failure_t {
    bench_failure_kind_t kind;
    int rank;
    int iteration; /**< from 1; 0 or less in the warm-ups; INT_MAX after the last message */
    int variant;
    int64_t offset; /**< from the array, bytes */
    int64_t expected;
    int64_t got;
    int64_t times; /**< wrong messages of this rank in all */
} bench_failure_t;

/** The result of a layout; complete on rank 0, elsewhere only `failed`. */
typedef struct bench_result_t {
    const char *name;
    const char *requested; /**< of --schemes, the one that was to be used; or NULL */
    uint64_t bytes;
    uint64_t send_blocks;
    uint64_t recv_blocks;
    bool noncontiguous;
    int iterations; /**< timed ones, of the pair that did the fewest */
    bool ran[BENCH_VARIANTS];
    bench_times_t times[BENCH_VARIANTS];  /**< one way */
    const char *scheme;                   /**< one of bench_output.c */
    bool has[BENCH_PVAR_COUNT];           /**< whether the counter exists */
    double per_message[BENCH_PVAR_COUNT]; /**< by all processes, per message in one direction */
    bool has_breakdown;                   /**< --breakdown */
    bench_breakdown_t breakdown;
    bool failed;
    bench_failure_t failure;
} bench_result_t;

/** The buffers of a layout on this process. */
typedef struct bench_buffers_t {
    bench_buffer_t send;
    bench_buffer_t recv;
} bench_buffers_t;

/** Called now and then between two iterations, on rank 0. */
typedef void (*bench_progress_fn_t)(const char *name, int done, int of, void *context);

/**
 * Make communicators, find the performance variables. Collective.
 *
 * Test hook: the environment variable UMRDDT_BENCH_PLANT, "[stale:|hang:]OFFSET[@ITERATION]", makes
 * rank 1 change the byte at OFFSET (from the array) after it received the message of that timed
 * iteration (default 1), before it is checked: inverted, or, with "stale:", to its value in the
 * message before; with "hang:" it sends no answer instead. Tests use it to see that the check can
 * fail.
 *
 * @param[in] pattern  the measured communicator's mpi_communication_pattern, or NULL for none
 */
void bench_job_open(bench_job_t *job, const char *pattern);

void bench_job_close(bench_job_t *job);

/**
 * Make the buffers of a layout, in GPU memory if the options say so. The layout must live
 * as long.
 */
void bench_buffers_create(bench_buffers_t *buffers, const bench_options_t *options,
                          const bench_layout_t *layout);

void bench_buffers_destroy(bench_buffers_t *buffers);

/**
 * Run a layout. Collective.
 *
 * @param[in] buffers  of the layout; good for another run, unless this one found wrong bytes
 */
void bench_run(bench_job_t *job, const bench_options_t *options, const char *name,
               const bench_layout_t *layout, bench_buffers_t *buffers, bench_progress_fn_t progress,
               void *context, bench_result_t *result);

#endif /* BENCH_RUN_H */
