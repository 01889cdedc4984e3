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
 * Messages between two processes, and whether they went by the card: what the programs about queue
 * pairs that are made anew (rebuilt, underway) ask of each.
 */

#ifndef MPITEST_BYCARD_H
#define MPITEST_BYCARD_H

#include "layouts.h"
#include "mpitest.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BYCARD_BYTES = 60000, /**< of a message */
    BYCARD_PATIENCE = 4   /**< messages before the first attempt (btl_umr_rebuilds) */
};

/** Two processes, and what they send each other. */
typedef struct bycard_t {
    MPI_Comm comm;
    int peer; /**< its rank in the communicator */
    int side; /**< 0, and 1 in the peer */
    mpitest_message_t *end;
} bycard_t;

/** This side's end of messages: of another layout than the other side's. */
mpitest_message_t *bycard_end(int side);

/** Fill one that is to be sent, clear one that is to be received into. */
void bycard_fill(mpitest_message_t *end, bool send, uint64_t key);

/**
 * One message from side @p from. What arrives is checked. Both processes must call it, and nothing
 * else may be sent meanwhile.
 *
 * @return true, on both sides: it went by the card alone
 */
bool bycard_message(const bycard_t *pair, int from, uint64_t key);

/** There and back until both go by the card. @return messages that did not, at most @p most */
long bycard_until(const bycard_t *pair, uint64_t key, long most);

#endif /* MPITEST_BYCARD_H */
