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
 * The sends of an epoch. Every process draws the plan of all of them from the seed.
 *
 * The plan cannot deadlock. Each thread is, for the epoch, a *poster* or not. A poster starts all
 * its receives before its first call that can block; then it sends. The other threads send all
 * their messages first, and may then receive by calls that block. Sends that block, or that are
 * ready, go to posters only. So all sends are started, and every receive is posted. A posted
 * receive is matched, since its pattern accepts at least one message more than the earlier receives
 * could match (storm_lane.h).
 */

#ifndef STORM_PLAN_H
#define STORM_PLAN_H

#include "storm_comms.h"

/** Maximum number of messages that one thread sends in an epoch. */
#define STORM_BURST 80

/** The minimum bytes of a message to a pool. */
#define STORM_POOL_LEAST 16

/** Number of epochs for which types, communicators and persistent requests live. */
#define STORM_ERA 40

/** Send calls. */
typedef enum storm_way_t {
    STORM_ISEND,
    STORM_ISSEND,
    STORM_IBSEND,
    STORM_BSEND,
    STORM_SEND_INIT,
    STORM_SSEND_INIT,
    STORM_BSEND_INIT,
    STORM_SEND, /**< from here on: to posters only */
    STORM_SSEND,
    STORM_RSEND, /**< from here on: in ready epochs only, after the synchronisation */
    STORM_IRSEND,
    STORM_RSEND_INIT,
    STORM_WAYS
} storm_way_t;

/** A message. Processes by their rank in MPI_COMM_WORLD. */
typedef struct storm_message_t {
    int from, from_thread;
    int to, to_thread;
    int comm;
    int dest;   /**< of the sender's call */
    int source; /**< in the receiver's status */
    int tag;
    int entry; /**< layout at the sender */
    long bytes;
    storm_way_t way;
    bool freed;    /**< the request is freed while active */
    bool own_type; /**< the type is a copy, freed while in use */
    bool kept;     /**< persistent, and kept for later epochs of the era */
    uint64_t key;  /**< of its bytes */
} storm_message_t;

/** A plan. The messages are grouped by sending thread, and in each group in order of sending. */
typedef struct storm_plan_t {
    long epoch;
    int threads; /**< of a process */
    bool ready;  /**< all posters have posted before any ready send starts */
    bool poster[STORM_RANKS][STORM_THREADS];
    int count;
    storm_message_t messages[STORM_RANKS * STORM_THREADS * STORM_BURST];
} storm_plan_t;

/** Draw the plan of an epoch. */
void storm_plan(storm_plan_t *plan, long epoch, int threads);

/** The family of layouts of a lane, fixed for an era. */
int storm_plan_family(long epoch, int comm, int to, int to_thread);

/** True for the calls that block until the receiver acts. */
bool storm_way_blocks(storm_way_t way);

/** True for ready sends. */
bool storm_way_ready(storm_way_t way);

/** True for calls with a persistent request. */
bool storm_way_persistent(storm_way_t way);

/** The name of a send call, for messages. */
const char *storm_way_name(storm_way_t way);

#endif /* STORM_PLAN_H */
