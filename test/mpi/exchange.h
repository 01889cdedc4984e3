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
 * A message between ranks 0 and 1 while planned faults occur: it is complete, or has an error at
 * both ends, and its scheme is reported.
 *
 * The plan (sim/connectx/README.md) covers the software HCA, the software GPUs, and allocations
 * and posts of umrddt (failing.c) in this process.
 */

#ifndef MPITEST_EXCHANGE_H
#define MPITEST_EXCHANGE_H

#include "layouts.h"
#include "mpitest.h"

/** The communicator of the two ranks, which are 0 and 1 in it; by default MPI_COMM_WORLD. */
extern MPI_Comm exchange_comm;

/** Outcome of a message. */
typedef struct exchange_t {
    bool error[2]; /**< errors of rank 0's call, and rank 1's */
    char way[64];  /**< pvars_way; with ">host" if the base PML carried it in the end; after '!' the
                      calls with errors: (s)ender, (r)eceiver */
} exchange_t;

/**
 * Start to count a plan (NULL: continue), or suspend faults: the program's own driver calls must
 * not fail.
 *
 * @return faults of this plan in this process so far; -1: no component that injects faults is
 * present
 */
int exchange_plan(const char *plan, int on);

/** A function of this process, or of a library that may be loaded; or NULL. */
void *exchange_function(const char *library, const char *name);

/** This rank's end of messages of this size, each in a layout of its own. */
mpitest_message_t *exchange_end(int bytes, gpu_kind_t kind);

/**
 * One message, with the plan active for this rank's call. Ranks 0 and 1 must call it. Checks the
 * received data. The caller checks errors, but if the sender has one, the receiver must have one.
 *
 * @return true if neither end had an error
 */
bool exchange(mpitest_message_t *end, int from, uint64_t key, exchange_t *seen);

#endif /* MPITEST_EXCHANGE_H */
