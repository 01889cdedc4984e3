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
 * GPU memory for --memory. The CUDA driver is loaded on request; each process has one device and
 * its primary context, as with the CUDA runtime. A failing call ends the job.
 */

#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <stddef.h>

/**
 * Load the driver and select a device: @p turn modulo their number.
 *
 * @return NULL, or the reason why there is none
 */
const char *bench_gpu_open(int turn);

/** The device's name and number; only after bench_gpu_open. */
const char *bench_gpu_name(void);
int bench_gpu_device(void);

/** Memory of the device, all zeros, at the begin of an allocation of its own. */
void *bench_gpu_alloc(size_t bytes);
void bench_gpu_free(void *memory);

/** Copy into or out of memory of the device; done when they return. */
void bench_gpu_write(void *to, const void *from, size_t bytes);
void bench_gpu_read(void *to, const void *from, size_t bytes);

/** Begin a copy within the memory of the device; and wait for the end of all that were begun. */
void bench_gpu_copy(void *to, const void *from, size_t bytes);
void bench_gpu_copy_end(void);

#endif /* BENCH_GPU_H */
