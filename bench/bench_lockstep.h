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
 * A process of a job that bench/metrics counts: repeated messages of one scheme from rank 0 to rank
 * 1. The two processes take turns, so no process polls while it waits for the other one.
 */

#ifndef BENCH_LOCKSTEP_H
#define BENCH_LOCKSTEP_H

/** First argument of such a process; then LAYOUT SCHEME gpu|host MESSAGES FILE (shared by both). */
#define BENCH_LOCKSTEP_JOB "--lockstep-job"

/** Run one process of such a job, MPI_Init and MPI_Finalize included. @return as main */
int bench_lockstep_job_main(int argc, char **argv);

#endif /* BENCH_LOCKSTEP_H */
