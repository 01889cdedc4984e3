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
 * The receives of one thread in an epoch: its lanes, one per communicator, and its receives in the
 * order of posting. All of it is drawn from the seed before the epoch begins.
 *
 * A lane has as many receives as messages. The patterns are drawn so that any matching that MPI
 * allows completes: a receive other than one that matches anything is drawn only if more messages
 * fit it than earlier receives could match. So each receive is matched, whatever the others
 * matched.
 *
 * A receive that is cancelled in time is replaced, after all others of its lane, by one that
 * matches anything (of its tag, if threads share the communicator).
 */

#ifndef STRESS_LANE_H
#define STRESS_LANE_H

#include "layouts.h"
#include "stress_model.h"
#include "stress_plan.h"

/** A tag that no message has. */
#define STRESS_DEAD_TAG 31000

/** Receive calls. */
typedef enum stress_action_t {
    STRESS_IRECV,
    STRESS_RECV_INIT,
    STRESS_LOOK_IRECV,    /**< one Iprobe, then Irecv */
    STRESS_IMPROBE_IRECV, /**< one Improbe, and Irecv if it found nothing */
    STRESS_RECV,          /**< from here on: these block */
    STRESS_PROBE_RECV,
    STRESS_PROBE_IRECV,
    STRESS_IPROBE_RECV, /**< Iprobe until it finds one */
    STRESS_MPROBE,
    STRESS_IMPROBE, /**< Improbe until it finds one */
    STRESS_ACTIONS
} stress_action_t;

/** State of a receive. */
typedef enum stress_state_t {
    STRESS_STATE_PLANNED,
    STRESS_STATE_ACTIVE, /**< the request is pending */
    STRESS_STATE_HELD,   /**< a matched probe matched the message, which was not received yet */
    STRESS_STATE_FREED,  /**< the request was freed: only the buffer shows the arrival */
    STRESS_STATE_DONE
} stress_state_t;

struct stress_lane_t;

/** A receive. */
typedef struct stress_posting_t {
    struct stress_lane_t *lane; /**< NULL: there is no message, and it will be cancelled */
    int comm;
    int source; /**< rank in the communicator, or STRESS_ANY */
    int tag;    /**< or STRESS_ANY */
    stress_action_t action;
    int entry;      /**< layout */
    bool freed;     /**< the request is freed while active */
    bool cancel;    /**< cancelled some time after posting, in time or not */
    bool quiet;     /**< the status is ignored */
    bool own_type;  /**< the type is a copy, freed while in use */
    bool kept;      /**< persistent: kept for later epochs if possible */
    uint64_t draws; /**< for values that are drawn once a probe has found a message */

    /* its result */
    stress_state_t state;
    int event; /**< in the lane, once posted */
    bool cancel_called;
    mpitest_buffer_t *buffer;
    int slot;           /**< of a kept persistent request, or -1 */
    MPI_Message handle; /**< of a matched probe */
    long probed_bytes;  /**< status of that probe */
    int error;          /**< MPI_SUCCESS or the error of the receive */
    int count;          /**< MPI_Get_count with its own type, or STRESS_UNKNOWN */
    long elements;      /**< MPI_Get_elements with its own type, or STRESS_UNKNOWN */
} stress_posting_t;

/** The messages to one thread on one communicator. */
typedef struct stress_lane_t {
    int comm;
    int family;
    bool pooled;  /**< other threads of the process may match its messages, and it theirs */
    bool sourced; /**< pooled, and each receive names a source */
    long longest; /**< pooled: the longest message that might come */
    int offer_count;
    const stress_message_t **messages; /**< by number of the offer */
    stress_offer_t *offers;
    int event_count, event_room;
    stress_event_t *events;
    stress_posting_t **takers; /**< of each event: its receive */
} stress_lane_t;

/** All that a thread receives in an epoch. */
typedef struct stress_lanes_t {
    int count;
    stress_lane_t lanes[STRESS_COMMS];
    int posting_count; /**< the planned ones; replacements follow them in the array */
    int posting_room;
    stress_posting_t *postings;
    stress_posting_t **order; /**< the planned ones in the order of posting */
} stress_lanes_t;

/** Draw what a thread receives. */
void stress_lanes_plan(stress_lanes_t *lanes, const stress_plan_t *plan, int thread);

/** Free it. */
void stress_lanes_free(stress_lanes_t *lanes);

/** Make a receive that replaces one that was cancelled in time. */
stress_posting_t *stress_lanes_replace(stress_lanes_t *lanes, const stress_posting_t *cancelled,
                                       int number);

/** Add an event to a lane. @return its number */
int stress_lane_event(stress_lane_t *lane, stress_posting_t *posting);

/**
 * The minimum room of a receive that may truncate: the longest message that must not be truncated.
 * See STRESS_FLAT_LIMIT; and for messages to the own rank, pml/ob1 of Open MPI 4.1.4 loses the
 * error.
 */
long stress_lane_least(const stress_lane_t *lane, int source, int tag);

/** The longest message that a pattern accepts. */
long stress_lane_longest(const stress_lane_t *lane, int source, int tag);

/** True for receive calls that block until a message arrives. */
bool stress_action_blocks(stress_action_t action);

/** The name of a receive call, for messages. */
const char *stress_action_name(stress_action_t action);

#endif /* STRESS_LANE_H */
