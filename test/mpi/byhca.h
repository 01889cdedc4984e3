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
 * Messages between two processes, and whether they used the HCA, for the programs that test rebuilt
 * queue pairs (rebuilt, rebuild_concurrent).
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

/** Two processes, and their messages. */
typedef struct byhca_t {
    MPI_Comm comm;
    int peer; /**< its rank in the communicator */
    int side; /**< 0, and 1 in the peer */
    mpitest_message_t *end;
} byhca_t;

/** This side's end of messages. Its layout differs from that of the other side. */
mpitest_message_t *byhca_end(int side);

/** Fill a buffer to send, or clear a buffer to receive into. */
void byhca_fill(mpitest_message_t *end, bool send, uint64_t key);

/**
 * Send one message from side @p from, and check it. Both processes must call it, and no other
 * message may be sent meanwhile.
 *
 * @return true, on both sides: only the HCA carried it
 */
bool byhca_message(const byhca_t *pair, int from, uint64_t key);

/** Send messages back and forth until both use the HCA. @return messages that did not, at most @p
 * most */
long byhca_until(const byhca_t *pair, uint64_t key, long most);

#endif /* MPITEST_BYHCA_H */
