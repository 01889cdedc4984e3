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
 * --require-steady: a repeated message may cost an envelope, a CTS and the writes, and nothing
 * else.
 */

#ifndef BENCH_STEADY_H
#define BENCH_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_run.h"
#include "layouts.h"

/** Control bytes that a repeated message may cost, both directions together. */
#define BENCH_STEADY_CONTROL_BYTES 256

/** The limits of one key of the HCA. */
typedef struct bench_key_caps_t {
    uint64_t entries; /**< pieces in a list */
    uint64_t stride;  /**< largest distance of equal blocks that are one entry; 0: there is no such
                         entry */
} bench_key_caps_t;

/**
 * The writes that a message of this layout needs, if all its windows are as long as keys allow: the
 * keys of the side that needs more of them.
 */
uint64_t bench_steady_writes(const bench_layout_t *layout, const bench_key_caps_t *caps);

/**
 * Check the counters of a layout that used UMR.
 *
 * @param[in]  writes  from bench_steady_writes
 * @param[out] text    the counters above their limits, if any
 *
 * @return whether it was steady
 */
bool bench_steady_check(const bench_result_t *result, uint64_t writes, char *text, size_t room);

#endif /* BENCH_STEADY_H */
