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
 * A message between ranks 0 and 1 while something goes wrong by plan: it is whole, or has an error
 * at both ends, and how it came is told.
 *
 * What goes wrong is a plan (test/connectx/README.md) for all that fails on demand in this process:
 * the software HCA, the software GPUs, and umrddt's own allocations and posts (failing.c).
 */

#ifndef MPITEST_EXCHANGE_H
#define MPITEST_EXCHANGE_H

#include "layouts.h"
#include "mpitest.h"

/** Of the two ranks, which are 0 and 1 in it; else MPI_COMM_WORLD. */
extern MPI_Comm exchange_comm;

/** How a message came. */
typedef struct exchange_t {
    bool error[2]; /**< rank 0's call, and rank 1's, returned one */
    char way[64];  /**< pvars_way; ">host" behind it: the base PML brought it after all; behind '!'
                        whose calls had errors: (s)ender's, (r)eceiver's */
} exchange_t;

/**
 * Have all count a plan from here (NULL: go on counting), or let things be well for now: what a
 * program asks of the driver itself is not to fail.
 *
 * @return how often something has failed in this process, of this plan; -1: none of those that fail
 *         on demand is there
 */
int exchange_plan(const char *plan, int on);

/** A function of this process, or of a library that may be loaded; or NULL. */
void *exchange_function(const char *library, const char *name);

/** This rank's end of messages of so many bytes, each in a layout of its own. */
mpitest_message_t *exchange_end(int bytes, gpu_kind_t kind);

/**
 * One message, with the plan on for this rank's call. Ranks 0 and 1 must call it. What arrived is
 * checked; an error is the caller's to judge, but where the sender has one, the receiver must.
 *
 * @return true if neither end had an error
 */
bool exchange(mpitest_message_t *end, int from, uint64_t key, exchange_t *seen);

#endif /* MPITEST_EXCHANGE_H */
