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

#ifndef STORM_LANE_H
#define STORM_LANE_H

#include "layouts.h"
#include "storm_model.h"
#include "storm_plan.h"

/** A tag that no message has. */
#define STORM_DEAD_TAG 31000

/** Receive calls. */
typedef enum storm_action_t {
    STORM_IRECV,
    STORM_RECV_INIT,
    STORM_LOOK_IRECV,    /**< one Iprobe, then Irecv */
    STORM_IMPROBE_IRECV, /**< one Improbe, and Irecv if it found nothing */
    STORM_RECV,          /**< from here on: these block */
    STORM_PROBE_RECV,
    STORM_PROBE_IRECV,
    STORM_IPROBE_RECV, /**< Iprobe until it finds one */
    STORM_MPROBE,
    STORM_IMPROBE, /**< Improbe until it finds one */
    STORM_ACTIONS
} storm_action_t;

/** State of a receive. */
typedef enum storm_state_t {
    STORM_STATE_PLANNED,
    STORM_STATE_ACTIVE, /**< the request is pending */
    STORM_STATE_HELD,   /**< a matched probe matched the message, which was not received yet */
    STORM_STATE_FREED,  /**< the request was freed: only the buffer shows the arrival */
    STORM_STATE_DONE
} storm_state_t;

struct storm_lane_t;

/** A receive. */
typedef struct storm_posting_t {
    struct storm_lane_t *lane; /**< NULL: there is no message, and it will be cancelled */
    int comm;
    int source; /**< rank in the communicator, or STORM_ANY */
    int tag;    /**< or STORM_ANY */
    storm_action_t action;
    int entry;      /**< layout */
    bool freed;     /**< the request is freed while active */
    bool cancel;    /**< cancelled some time after posting, in time or not */
    bool quiet;     /**< the status is ignored */
    bool own_type;  /**< the type is a copy, freed while in use */
    bool kept;      /**< persistent: kept for later epochs if possible */
    uint64_t draws; /**< for values that are drawn once a probe has found a message */

    /* its result */
    storm_state_t state;
    int event; /**< in the lane, once posted */
    bool cancel_called;
    mpitest_buffer_t *buffer;
    int slot;           /**< of a kept persistent request, or -1 */
    MPI_Message handle; /**< of a matched probe */
    long probed_bytes;  /**< status of that probe */
    int error;          /**< MPI_SUCCESS or the error of the receive */
    int count;          /**< MPI_Get_count with its own type, or STORM_UNKNOWN */
    long elements;      /**< MPI_Get_elements with its own type, or STORM_UNKNOWN */
} storm_posting_t;

/** The messages to one thread on one communicator. */
typedef struct storm_lane_t {
    int comm;
    int family;
    bool pooled;  /**< other threads of the process may match its messages, and it theirs */
    bool sourced; /**< pooled, and each receive names a source */
    long longest; /**< pooled: the longest message that might come */
    int offer_count;
    const storm_message_t **messages; /**< by number of the offer */
    storm_offer_t *offers;
    int event_count, event_room;
    storm_event_t *events;
    storm_posting_t **takers; /**< of each event: its receive */
} storm_lane_t;

/** All that a thread receives in an epoch. */
typedef struct storm_lanes_t {
    int count;
    storm_lane_t lanes[STORM_COMMS];
    int posting_count; /**< the planned ones; replacements follow them in the array */
    int posting_room;
    storm_posting_t *postings;
    storm_posting_t **order; /**< the planned ones in the order of posting */
} storm_lanes_t;

/** Draw what a thread receives. */
void storm_lanes_plan(storm_lanes_t *lanes, const storm_plan_t *plan, int thread);

/** Free it. */
void storm_lanes_free(storm_lanes_t *lanes);

/** Make a receive that replaces one that was cancelled in time. */
storm_posting_t *storm_lanes_replace(storm_lanes_t *lanes, const storm_posting_t *cancelled,
                                     int number);

/** Add an event to a lane. @return its number */
int storm_lane_event(storm_lane_t *lane, storm_posting_t *posting);

/**
 * The minimum room of a receive that may truncate: the longest message that must not be truncated.
 * See STORM_FLAT_LIMIT; and for messages to the own rank, pml/ob1 of Open MPI 4.1.4 loses the
 * error.
 */
long storm_lane_least(const storm_lane_t *lane, int source, int tag);

/** The longest message that a pattern accepts. */
long storm_lane_longest(const storm_lane_t *lane, int source, int tag);

/** True for receive calls that block until a message arrives. */
bool storm_action_blocks(storm_action_t action);

/** The name of a receive call, for messages. */
const char *storm_action_name(storm_action_t action);

#endif /* STORM_LANE_H */
