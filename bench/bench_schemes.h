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
 * --schemes: runs every layout with each of several schemes, one after the other, and prints a
 * table of them.
 */

#ifndef BENCH_SCHEMES_H
#define BENCH_SCHEMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mpi.h>

#include "bench_run.h"

/** Parse a list, "umr,pack-host". @return false: an unknown name, or a duplicate */
bool bench_schemes_parse(const char *list, bench_schemes_t *schemes);

/** The names that a list may contain. */
extern const char bench_schemes_names[];

/** The name of a scheme in the output: direct for sgl, host for base, and else the name itself. */
const char *bench_schemes_canonical(const char *name);

/** The same for the names that a list may contain, as a constant. @return NULL: none of them */
const char *bench_schemes_find(const char *name);

/** True if a scheme is among them. */
bool bench_schemes_has(const bench_schemes_t *schemes, const char *name);

/**
 * A communicator on which messages go by a scheme: umrddt reads it from its info key.
 *
 * @param[in] pattern  its mpi_communication_pattern, or NULL for none
 */
void bench_schemes_comm(const char *scheme, const char *pattern, MPI_Comm *comm);

/** The medians, layout by layout. */
typedef struct bench_schemes_table_t bench_schemes_table_t;
bench_schemes_table_t *bench_schemes_table_new(const bench_schemes_t *schemes);
void bench_schemes_table_free(bench_schemes_table_t *table);

/** What came of a layout by scheme number @p which in round @p round; they come in their order, all
 * schemes of a round before the next one. */
void bench_schemes_table_add(bench_schemes_table_t *table, int round, int which,
                             const bench_result_t *result);

/**
 * Print it: '-' where the messages of a layout did not go by the scheme.
 *
 * @return how many times that was so of layouts in pieces
 */
size_t bench_schemes_table_print(const bench_schemes_table_t *table, FILE *file);

#endif /* BENCH_SCHEMES_H */
