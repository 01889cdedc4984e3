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
 * --floor: the bare cost of the GPU's part of a message. The receiver opens the sender's memory by
 * CUDA IPC. A word of shared memory signals that the data is there. The receiver then does the
 * single copy of pml/umrddt, from layout to layout. There is no MPI, no matching, no protocol, so a
 * message by this scheme cannot take less time.
 */

#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <mpi.h>

#include "bench_verify.h"
#include "layouts.h"

typedef struct bench_floor_t bench_floor_t;

/**
 * Prepare a layout. Both processes of a pair call it.
 *
 * @param[in]  send, recv  this process's buffers; they must outlive the floor
 * @param[in]  control     communicator to the peer
 * @param[out] why         the reason, if there is no floor
 *
 * @return NULL on both processes if one of them fails
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
