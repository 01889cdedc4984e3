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
 * The performance model: predicts the time of a message by each scheme from both sides' layouts and
 * memory and from the tuning parameters of a machine. Stateless arithmetic. docs/tuning.rst has the
 * formulas in words; umrddt_select_file.h reads and writes the parameters.
 */

/*
 * Times are in microseconds, rates in bytes per microsecond (MB/s).
 */

#ifndef OPAL_UMRDDT_SELECT_MODEL_H
#define OPAL_UMRDDT_SELECT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_select/umrddt_select_scheme.h"

/** Version of the tuning file; other versions are rejected. */
#define OPAL_UMRDDT_TUNING_VERSION 2

/**
 * Scalar parameters: name, default, description. The defaults of gpu_launch, ipc_latency, gpu_pack,
 * gpu_unpack and ipc_copy were measured on two H200 (bench/results/h200-2026-11-22.md), and those
 * of gpu_list on one (h200-2026-11-24.md). The others are typical values of such machines.
 */
#define OPAL_UMRDDT_TUNING_VALUES(X)                                                       \
    X(near_latency, 0.7, "a small message by the base PML to a process of the same host")  \
    X(near_rate, 8000, "bytes/us of a large one")                                          \
    X(far_latency, 2.0, "a small message by the base PML to another host")                 \
    X(far_rate, 11000, "bytes/us of a large one")                                          \
    X(gpu_base_latency, 20, "a small message by the base PML between GPUs of two hosts")   \
    X(gpu_base_rate, 5000, "bytes/us of a large one")                                      \
    X(hca_latency, 2.5, "a small write by the HCA until the receiver sees it")             \
    X(hca_rate, 24000, "bytes/us of large writes, memory of the CPU")                      \
    X(hca_gpu_rate, 20000, "the same where a side is in memory of a GPU")                  \
    X(hca_write, 0.2, "each further write of a message without mkeys")                     \
    X(hca_entry, 0.01, "each piece that a mkey gathers or scatters, memory of the CPU")    \
    X(hca_gpu_gather, 0.01, "each piece that a mkey gathers from memory of a GPU")         \
    X(hca_gpu_scatter, 0.01, "each piece that a mkey scatters into memory of a GPU")       \
    X(key_map, 3.0, "mapping a mkey and seeing it complete")                               \
    X(key_entry, 0.004, "each entry of it")                                                \
    X(register_base, 50, "registering memory with the HCA")                                \
    X(register_mib, 5, "each MiB of it")                                                   \
    X(gpu_launch, 11, "the smallest operation of a GPU until the CPU sees its end")        \
    X(gpu_out_latency, 8, "a small copy from a GPU until the CPU sees its end")            \
    X(gpu_out_rate, 25000, "bytes/us of a large one, to pinned memory")                    \
    X(gpu_in_latency, 8, "a small copy to a GPU until the CPU sees its end")               \
    X(gpu_in_rate, 25000, "bytes/us of a large one, from pinned memory")                   \
    X(gpu_flush, 3, "until an HCA's writes are visible to a GPU")                          \
    X(gpu_turn, 0.001, "until a GPU switches from another process's kernel to this one's") \
    X(ipc_latency, 10, "the smallest copy out of a peer's GPU memory until the CPU sees its end")

/** Rates in bytes/us by block length; the gaps between blocks are as long as the blocks. */
#define OPAL_UMRDDT_TUNING_CURVES(X)                              \
    X(cpu_copy, "the CPU packs, or unpacks, by Open MPI")         \
    X(cpu_pack, "the same by umrddt")                             \
    X(gpu_pack, "a GPU packs in its memory")                      \
    X(gpu_unpack, "a GPU unpacks in its memory")                  \
    X(gpu_pack_host, "a GPU packs into pinned system memory")     \
    X(gpu_unpack_host, "a GPU unpacks from pinned system memory") \
    X(ipc_copy, "a GPU copies from a peer's memory into its own") \
    X(gpu_list, "a GPU packs in its memory by a list of blocks")

/** Block lengths of the points of a curve: 8, 64, 512 ... */
#define OPAL_UMRDDT_TUNING_CURVE_POINTS 6
#define OPAL_UMRDDT_TUNING_CURVE_LEAST  8u
#define OPAL_UMRDDT_TUNING_CURVE_STEP   8u

#define OPAL_UMRDDT_TUNING_VALUE_FIELD(name, value, help) double name;
#define OPAL_UMRDDT_TUNING_CURVE_FIELD(name, help)        double name[OPAL_UMRDDT_TUNING_CURVE_POINTS];
typedef struct opal_umrddt_tuning_t {
    OPAL_UMRDDT_TUNING_VALUES(OPAL_UMRDDT_TUNING_VALUE_FIELD)
    OPAL_UMRDDT_TUNING_CURVES(OPAL_UMRDDT_TUNING_CURVE_FIELD)
} opal_umrddt_tuning_t;

/** Number of parameters and curves. */
#define OPAL_UMRDDT_TUNING_ONE(...) +1
enum {
    OPAL_UMRDDT_TUNING_VALUE_COUNT = 0 OPAL_UMRDDT_TUNING_VALUES(OPAL_UMRDDT_TUNING_ONE),
    OPAL_UMRDDT_TUNING_CURVE_COUNT = 0 OPAL_UMRDDT_TUNING_CURVES(OPAL_UMRDDT_TUNING_ONE)
};

/** One side of a message. */
typedef struct opal_umrddt_select_side_t {
    uint64_t pieces; /**< blocks of its layout; 1: contiguous */
    uint64_t span;   /**< bytes from the first to the last; 0: unknown, as many as the message */
    bool gpu;        /**< in GPU memory */
    bool boxed;      /**< the driver copies it to or from a contiguous buffer in one call, without a
                        kernel */
    bool chunk_boxed; /**< the same for each chunk of it */
    bool listed;      /**< kernels look up its blocks in a list */
} opal_umrddt_select_side_t;

/** A message, and its state of setup. */
typedef struct opal_umrddt_select_case_t {
    uint64_t bytes; /**< not 0 */
    opal_umrddt_select_side_t from, to;
    bool near;      /**< both processes are on one node */
    unsigned known; /**< bit 1 << scheme: its keys are mapped, layouts sent, memory registered */
    double uses;    /**< number of messages that share the cost of the setup; >= 1 */
    uint32_t write_pieces; /**< blocks that a write of the sender's HCA gathers; >= 1 */
    uint64_t chunk;        /**< bytes of a chunk of a packed message; not 0 */
    uint32_t depth;        /**< chunks in progress at once; >= 1 */
    bool pack_by_hca;      /**< the HCA is the wire of pack-staged and pack-host */
    bool gdr_by_base;      /**< the base PML is the wire of pack-gdr */
    bool base_takes_gpu;   /**< the base PML accesses GPU memory, whatever the layout */
    uint64_t eager;        /**< eager limit of the base PML to this peer, in bytes */
} opal_umrddt_select_case_t;

/** Eager limit assumed if the base PML does not report one: that of btl/vader. */
#define OPAL_UMRDDT_SELECT_EAGER 4096

/** Set the defaults for a machine without measurements. */
void opal_umrddt_tuning_default(opal_umrddt_tuning_t *tuning);

/**
 * Rate of a curve for blocks of @p block bytes: logarithmic interpolation between its points,
 * constant beyond them.
 */
double opal_umrddt_tuning_curve_at(const double *curve, double block);

/**
 * Chunk size of a packed message: the message has about 2 * @p depth chunks of whole pages, within
 * the limits.
 *
 * @param[in] block  block length of the layout, if all are equal; else 0. Larger chunks are rounded
 *                   to whole blocks, because the driver cannot copy a chunk that begins within a
 *                   block in one call
 *
 * @return chunk size in bytes; not 0 unless @p total is
 */
uint64_t opal_umrddt_select_chunk(uint64_t total, uint32_t depth, uint64_t least, uint64_t most,
                                  uint64_t block);

/** Time of a small message of the base PML to such a peer. */
double opal_umrddt_select_small(const opal_umrddt_tuning_t *tuning, bool near);

/**
 * Time of a message from the sender's call to the receiver's completion, if both are ready.
 *
 * @return us, greater than 0. Does not check that the scheme is possible
 */
double opal_umrddt_select_time(const opal_umrddt_tuning_t *tuning,
                               const opal_umrddt_select_case_t *message,
                               mca_pml_umrddt_scheme_id_t scheme_id);

/**
 * The fastest of some schemes.
 *
 * @param[in]  possible  bit 1 << scheme for each scheme to select from; not 0
 * @param[out] times     of all schemes, also of those not in @p possible
 */
mca_pml_umrddt_scheme_id_t opal_umrddt_select_best(const opal_umrddt_tuning_t *tuning,
                                                   const opal_umrddt_select_case_t *message,
                                                   unsigned possible, double *times);

#endif /* OPAL_UMRDDT_SELECT_MODEL_H */
