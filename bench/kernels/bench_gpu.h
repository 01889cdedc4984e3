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
 * What bench_kernels measures with: memory of one or two GPUs, ends of copies in it, and the time
 * of a launch. Whatever is timed is checked first: the bytes that arrived.
 */

#ifndef TEST_GPU_BENCH_GPU_H
#define TEST_GPU_BENCH_GPU_H

#include "real.h"

#include "opal/datatype/iov_cache/iov_cache_form.h"

/** Where the list of a layout is, if its kernel reads one. */
typedef enum bench_list_t {
    BENCH_LIST_CACHED, /**< in the GPU's memory, since before */
    BENCH_LIST_COPIED, /**< there as well, copied from pinned memory before each launch */
    BENCH_LIST_PINNED  /**< in pinned memory, where the kernel reads it */
} bench_list_t;

/** One end of a copy: a layout at several places of a GPU's memory, one after the other. */
typedef struct bench_end_t {
    const opal_iov_cache_form_t *form; /**< NULL: packed */
    opal_umrddt_gpu_map_t *map;        /**< NULL: packed */
    CUdeviceptr list;                  /**< as kernels are given it; 0: no list */
    void *pinned;                      /**< where it comes from, unless it is kept; or NULL */
    bool copied;                       /**< before each launch */
    CUdeviceptr first;                 /**< the address of the first place, as MPI is given it */
    uint64_t apart;                    /**< bytes from one place to the next */
    unsigned places;
    CUdeviceptr low; /**< first byte of the first place's span */
    uint64_t span;
} bench_end_t;

/** Memory for sources and for targets; sources hold noise, each target is poisoned before use. */
typedef struct bench_t {
    real_gpu_t gpu[2];
    int gpus;   /**< 2 if the second can reach the first */
    int worker; /**< whose kernels run */
    CUstream stream;
    CUdeviceptr source; /**< on gpu[0] */
    CUdeviceptr target; /**< on gpu[worker] */
    CUdeviceptr targets[2];
    uint64_t bytes; /**< of each */
    opal_umrddt_gpu_fit_t fit;
    bench_list_t lists;      /**< of ends that are made from now on */
    bool once;               /**< copies are launched once and checked, and not timed */
    volatile uint32_t *flag; /**< pinned */
    CUdeviceptr flag_there;
    CUevent events[2][2];
    CUstream streams[2];
    int failures;
} bench_t;

/** Take the GPUs and @p bytes of memory for sources and as much for targets. */
void bench_begin(uint64_t bytes, bench_t *bench);

/** Let the kernels of GPU @p worker do it, into its own memory. */
void bench_worker(bench_t *bench, int worker);

/**
 * Put an end into memory.
 *
 * @param[in] form    NULL: packed, @p size bytes
 * @param[in] scheme  of the kernel
 *
 * @return false if the scheme cannot do the layout, or memory is too small
 */
bool bench_end(bench_t *bench, bool is_target, const opal_iov_cache_form_t *form, uint64_t size,
               opal_umrddt_gpu_scheme_t scheme, unsigned places, bench_end_t *end);
void bench_end_free(bench_t *bench, bench_end_t *end);

/**
 * Check a copy of the first place, then time it.
 *
 * @param[out] plan  of the first place
 *
 * @return microseconds a launch when launches follow each other, all places in turn: the median of
 *         several rounds (0: not timed, as bench->once says); negative if it cannot be planned or
 * is wrong
 */
double bench_copy(bench_t *bench, const bench_end_t *from, const bench_end_t *to, uint64_t size,
                  opal_umrddt_gpu_plan_t *plan);

/** The same for anything that puts work into the stream. */
typedef void (*bench_work_fn_t)(bench_t *bench, void *what, unsigned turn);
double bench_rounds(bench_t *bench, bench_work_fn_t work, void *what);

/** Microseconds from the call to the flag in pinned memory, one at a time: the median. */
double bench_latency(bench_t *bench, bench_work_fn_t work, void *what);

/** Microseconds of cuMemcpyDtoDAsync (from the first GPU, if the worker is the second). */
double bench_driver_copy(bench_t *bench, uint64_t size);

#endif /* TEST_GPU_BENCH_GPU_H */
