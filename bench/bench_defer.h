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
 * --defer: the overhead of umrddt for messages that it passes through. bench_defer.c starts jobs
 * with and without umrddt in turns and compares them; bench_defer_job.c is the program of each job.
 */

#ifndef BENCH_DEFER_H
#define BENCH_DEFER_H

#include <stdbool.h>

/** First argument of a process of such a job. */
#define BENCH_DEFER_JOB "--defer-job"

/** Most batches that a job times. */
#define BENCH_DEFER_MAX_BATCHES 1000

/** How a job's results are said, a line each: FORM, BYTES, microseconds a message (median, and what
 * a tenth of the batches is below). */
#define BENCH_DEFER_LINE "defer %15s %d %lf %lf"
/** State of umrddt in this job: whether it is loaded and active, its queries of memory, and the
 * messages that it handled. */
#define BENCH_DEFER_STATE "defer-state %d %d %llu %llu"

/** True if the command line selects this mode. Called before MPI_Init. */
bool bench_defer_wanted(int argc, char **argv);

/**
 * Do it; MPI is not initialised, and not by this.
 *
 * @return the exit status
 */
int bench_defer_main(int argc, char **argv);

/** Be a process of such a job; MPI is not initialised, and finalised in the end. @return as main */
int bench_defer_job_main(int argc, char **argv);

#endif /* BENCH_DEFER_H */
