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
 * umrddt_bench --exchange: exchanges and collectives, timed beside contiguous messages of the same
 * sizes, one message of all bytes, and the same data by MPI_Isend and MPI_Irecv.
 */

#ifndef BENCH_EXCHANGES_H
#define BENCH_EXCHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_options.h"
#include "bench_output.h"
#include "bench_run.h"

/**
 * Check the names of --exchange.
 *
 * @param[out] unknown  the first unknown name
 *
 * @return whether all names are known
 */
bool bench_exchanges_known(const char *list, char *unknown, size_t room);

/** Run the exchanges of options->exchange. Rank 0 prints. @return at rank 0 whether all data was
 * right */
bool bench_exchanges_run(bench_job_t *job, const bench_options_t *options, bench_output_t *output);

#endif /* BENCH_EXCHANGES_H */
