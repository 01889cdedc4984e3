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
 * The memory of one side of a layout, and the check of the received data.
 *
 * A buffer is the array of the side with a margin on both ends. All bytes that belong to no piece,
 * including the margins, are *gap*. Gaps hold a guard byte, which differs between send and receive
 * buffers, so transferred gaps are also detected.
 *
 * The buffer of an array of more than BENCH_SAMPLE_BYTES is *sampled*: its gaps hold the guard only
 * within BENCH_NEAR_BYTES of a piece, which is checked after every message. The rest is never
 * written, so pages without a piece need no memory, and must still be zero after the last message.
 *
 * The memory may be a GPU's. Then data is written and checked in an image of it in system memory;
 * bench_buffer_put and bench_buffer_get copy the possibly changed parts to and from the GPU.
 */

#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "layouts.h"

/** Above this size of an array the gaps of its buffer are sampled. */
#define BENCH_SAMPLE_BYTES (16u << 20)

/** Bytes beside a piece of a sampled buffer that are checked after every message. */
#define BENCH_NEAR_BYTES 64

/** Gap before and behind the array. A page, so that the array is as aligned as can be. */
#define BENCH_MARGIN_BYTES 4096

#define BENCH_GUARD_SEND 0x5a
#define BENCH_GUARD_RECV 0xc3

/** A wrong byte. */
typedef struct bench_wrong_t {
    int64_t offset; /**< from the array; negative in the margin before it */
    unsigned char expected;
    unsigned char got;
    bool in_gap;
} bench_wrong_t;

typedef struct bench_buffer_t {
    const bench_side_t *side;
    unsigned char *array; /**< in system memory: the memory itself, or its image */
    unsigned char *gpu;   /**< the array on the GPU, or NULL */
    unsigned char guard;
    bool sampled;
    bench_piece_t *near; /**< gaps that hold the guard */
    size_t near_count;
    size_t near_room;
    bench_piece_t *far; /**< gaps that were never written */
    size_t far_count;
    size_t far_room;
    bench_piece_t *moves; /**< what bench_buffer_put and _get carry */
    size_t move_count;
    size_t move_room;
} bench_buffer_t;

/**
 * Map the memory and set the guards. The side must live as long as the buffer.
 *
 * @param[in] on_gpu  of this process's GPU (bench_gpu_open)
 */
void bench_buffer_create(bench_buffer_t *buffer, const bench_side_t *side, unsigned char guard,
                         bool on_gpu);

void bench_buffer_destroy(bench_buffer_t *buffer);

/** The address that MPI calls are given. */
void *bench_buffer_address(const bench_buffer_t *buffer);

/** Copy the written data to the GPU; copy it back. No operation for system memory. */
void bench_buffer_put(bench_buffer_t *buffer);
void bench_buffer_get(bench_buffer_t *buffer);

/** Write the stream (side->bytes of it) into the pieces. */
void bench_buffer_set_data(bench_buffer_t *buffer, const unsigned char *stream);

/** Set the guards again, after something wrote there. */
void bench_buffer_set_guards(bench_buffer_t *buffer);

/** Check the pieces against the stream. If they differ, @p wrong is the first wrong byte of the
 * stream. */
bool bench_buffer_check_data(const bench_buffer_t *buffer, const unsigned char *stream,
                             bench_wrong_t *wrong);

/**
 * Are the gaps untouched? If not, @p wrong is the first byte that is not.
 *
 * @param[in] everything  also check the part of a sampled buffer that is not checked after every
 * message
 */
bool bench_buffer_check_gaps(const bench_buffer_t *buffer, bool everything, bench_wrong_t *wrong);

/** Is this offset (from the array) in the mapped memory? */
bool bench_buffer_contains(const bench_buffer_t *buffer, int64_t offset);

#endif /* BENCH_VERIFY_H */
