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
 * Counters of a port that grow when its network or its peers have trouble.
 */

#ifndef INFO_COUNTERS_H
#define INFO_COUNTERS_H

/** The counters that are read. */
#define INFO_COUNTERS 32

/** Their values; -1: not available. */
typedef struct info_counters_t {
    long long values[INFO_COUNTERS];
} info_counters_t;

/** The name of a counter, and what its growth means; NULL: there is no such index. */
const char *info_counters_name(int index);
const char *info_counters_meaning(int index);

/**
 * Read the counters below a directory of sysfs (/sys/class/infiniband/mlx5_0/ports/1).
 *
 * @return the number of those that are available
 */
int info_counters_read(const char *directory, info_counters_t *counters);

/** The same of a port by its name, such as "mlx5_0:1". */
int info_counters_of(const char *port, info_counters_t *counters);

/** The growth of a counter; 0: none, or not available. */
long long info_counters_growth(const info_counters_t *before, const info_counters_t *after,
                               int index);

#endif /* INFO_COUNTERS_H */
