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
 * Messages between two processes, and whether they went by the HCA: what the programs about queue
 * pairs that are made anew (rebuilt, underway) ask of each.
 */

#ifndef MPITEST_BYHCA_H
#define MPITEST_BYHCA_H

#include "layouts.h"
#include "mpitest.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BYHCA_BYTES = 60000, /**< of a message */
    BYHCA_PATIENCE = 4   /**< messages before the first attempt (btl_umr_rebuilds) */
};

/** Two processes, and what they send each other. */
typedef struct byhca_t {
    MPI_Comm comm;
    int peer; /**< its rank in the communicator */
    int side; /**< 0, and 1 in the peer */
    mpitest_message_t *end;
} byhca_t;

/** This side's end of messages: of another layout than the other side's. */
mpitest_message_t *byhca_end(int side);

/** Fill one that is to be sent, clear one that is to be received into. */
void byhca_fill(mpitest_message_t *end, bool send, uint64_t key);

/**
 * One message from side @p from. What arrives is checked. Both processes must call it, and nothing
 * else may be sent meanwhile.
 *
 * @return true, on both sides: it went by the HCA alone
 */
bool byhca_message(const byhca_t *pair, int from, uint64_t key);

/** There and back until both go by the HCA. @return messages that did not, at most @p most */
long byhca_until(const byhca_t *pair, uint64_t key, long most);

#endif /* MPITEST_BYHCA_H */
