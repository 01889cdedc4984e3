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
 * What the files of bench_kernels share.
 */

#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "bench_gpu.h"

/** The GPUs, and the bytes of a message where a part does not say otherwise. */
extern bench_t bench_state;
extern uint64_t bench_message;

/** A layout of @p n blocks, @p apart bytes from one to the next. */
opal_iov_cache_form_t *bench_vector(uint64_t block, uint64_t apart, uint64_t n);

/**
 * Blocks in random order, half of the array gaps: of one length, or else of one half to one and a
 * half of it, in multiples of 4.
 */
opal_iov_cache_form_t *bench_scattered(uint64_t block, uint64_t n, bool one_length);

/** Print a line of results; @p plan may be NULL, a negative time is one that there is not. */
void bench_line(const char *part, const char *what, const char *how, double us, uint64_t size,
                double bare, const opal_umrddt_gpu_plan_t *plan);

/** Time one copy, checked; either form may be NULL. @return microseconds, negative: none */
double bench_one_copy(const opal_iov_cache_form_t *from, opal_umrddt_gpu_scheme_t from_scheme,
                      const opal_iov_cache_form_t *to, opal_umrddt_gpu_scheme_t to_scheme,
                      unsigned places, opal_umrddt_gpu_plan_t *plan);

void bench_part_latency(void);
void bench_part_large(void);
void bench_part_bypass(void);

#endif /* BENCH_KERNELS_H */
