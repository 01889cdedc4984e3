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
 * --floor: what the GPU's part of a message costs, bare. The receiver opens the sender's memory by
 * CUDA IPC, is told through a word of shared memory that the data is there, and does the one copy
 * that pml/umrddt would do, from layout to layout. No MPI, no matching, no protocol: less than this
 * a message between two processes cannot cost that way.
 */

#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <mpi.h>

#include "bench_verify.h"
#include "layouts.h"

typedef struct bench_floor_t bench_floor_t;

/**
 * Get ready for a layout. Both processes of a pair call it.
 *
 * @param[in]  send, recv  this process's buffers; they live as long as the floor
 * @param[in]  control     to tell the peer
 * @param[out] why         why there is no floor, if there is none
 *
 * @return NULL on both processes if one of them cannot
 */
bench_floor_t *bench_floor_open(const bench_buffer_t *send, const bench_buffer_t *recv, int peer,
                                MPI_Comm control, const char **why);

/** The peer no longer reads this process's memory when both are through. */
void bench_floor_close(bench_floor_t *floor);

/** Tell the peer that the data of the next message is there. */
void bench_floor_send(bench_floor_t *floor);

/** Wait for the peer's next message, and fetch it. */
void bench_floor_receive(bench_floor_t *floor);

#endif /* BENCH_FLOOR_H */
