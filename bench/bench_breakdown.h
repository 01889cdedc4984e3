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
 * --breakdown: the share of packing in a packed message. Its copies are repeated, each by itself,
 * by umrddt's own engine, without MPI and in one piece. A message of several chunks overlaps them
 * with each other and with the transfer, so their sum may exceed the time of the message.
 */

#ifndef BENCH_BREAKDOWN_H
#define BENCH_BREAKDOWN_H

#include <stdbool.h>

#include "layouts.h"

/** Medians until the CPU sees the end, in microseconds; 0: this scheme does not do it. */
typedef struct bench_breakdown_t {
    double pack;   /**< out of the layout into one piece: on the GPU; pack-host: in pinned memory */
    double out;    /**< pack-staged: that piece to pinned memory */
    double in;     /**< pack-staged: and back to a GPU */
    double unpack; /**< into the layout */
} bench_breakdown_t;

/**
 * Measure them, on this process's GPU (bench_gpu_open).
 *
 * @param[in]  scheme  pack-gdr, pack-staged or pack-host
 * @param[out] breakdown  unchanged on failure
 *
 * @return NULL, or the reason why there are none
 */
const char *bench_breakdown_measure(const bench_layout_t *layout, const char *scheme,
                                    bench_breakdown_t *breakdown);

#endif /* BENCH_BREAKDOWN_H */
