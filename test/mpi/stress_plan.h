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
 * could match (stress_lane.h).
 */

#ifndef STRESS_PLAN_H
#define STRESS_PLAN_H

#include "stress_comms.h"

/** Maximum number of messages that one thread sends in an epoch. */
#define STRESS_BURST 80

/** The minimum bytes of a message to a pool. */
#define STRESS_POOL_LEAST 16

/** Number of epochs for which types, communicators and persistent requests live. */
#define STRESS_ERA 40

/** Send calls. */
typedef enum stress_way_t {
    STRESS_ISEND,
    STRESS_ISSEND,
    STRESS_IBSEND,
    STRESS_BSEND,
    STRESS_SEND_INIT,
    STRESS_SSEND_INIT,
    STRESS_BSEND_INIT,
    STRESS_SEND, /**< from here on: to posters only */
    STRESS_SSEND,
    STRESS_RSEND, /**< from here on: in ready epochs only, after the synchronisation */
    STRESS_IRSEND,
    STRESS_RSEND_INIT,
    STRESS_WAYS
} stress_way_t;

/** A message. Processes by their rank in MPI_COMM_WORLD. */
typedef struct stress_message_t {
    int from, from_thread;
    int to, to_thread;
    int comm;
    int dest;   /**< of the sender's call */
    int source; /**< in the receiver's status */
    int tag;
    int entry; /**< layout at the sender */
    long bytes;
    stress_way_t way;
    bool freed;    /**< the request is freed while active */
    bool own_type; /**< the type is a copy, freed while in use */
    bool kept;     /**< persistent, and kept for later epochs of the era */
    uint64_t key;  /**< of its bytes */
} stress_message_t;

/** A plan. The messages are grouped by sending thread, and in each group in order of sending. */
typedef struct stress_plan_t {
    long epoch;
    int threads; /**< of a process */
    bool ready;  /**< all posters have posted before any ready send starts */
    bool poster[STRESS_RANKS][STRESS_THREADS];
    int count;
    stress_message_t messages[STRESS_RANKS * STRESS_THREADS * STRESS_BURST];
} stress_plan_t;

/** Draw the plan of an epoch. */
void stress_plan(stress_plan_t *plan, long epoch, int threads);

/** The family of layouts of a lane, fixed for an era. */
int stress_plan_family(long epoch, int comm, int to, int to_thread);

/** True for the calls that block until the receiver acts. */
bool stress_way_blocks(stress_way_t way);

/** True for ready sends. */
bool stress_way_ready(stress_way_t way);

/** True for calls with a persistent request. */
bool stress_way_persistent(stress_way_t way);

/** The name of a send call, for messages. */
const char *stress_way_name(stress_way_t way);

#endif /* STRESS_PLAN_H */
