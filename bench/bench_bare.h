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
 * --bare: the bare cost of the GPU operation of a message. The receiver opens the sender's memory
 * by CUDA IPC. A word of shared memory signals that the data is there. The receiver then does the
 * single copy of pml/umrddt, from layout to layout. There is no MPI, no matching, no protocol, so a
 * message by this scheme cannot take less time.
 */

#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <mpi.h>

#include "bench_verify.h"
#include "layouts.h"

typedef struct bench_bare_t bench_bare_t;

/**
 * Prepare a layout. Both processes of a pair call it.
 *
 * @param[in]  send, recv  this process's buffers; they must outlive the handle
 * @param[in]  control     communicator to the peer
 * @param[out] why         the reason, if NULL is returned
 *
 * @return NULL on both processes if one of them fails
 */
bench_bare_t *bench_bare_open(const bench_buffer_t *send, const bench_buffer_t *recv, int peer,
                              MPI_Comm control, const char **why);

/** Collective for the pair. Afterwards the peer no longer reads the memory of this process. */
void bench_bare_close(bench_bare_t *bare);

/** Signal to the peer that the data of the next message is ready. */
void bench_bare_send(bench_bare_t *bare);

/** Wait for the next message of the peer, and copy it. */
void bench_bare_receive(bench_bare_t *bare);

#endif /* BENCH_BARE_H */
