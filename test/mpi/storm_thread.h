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
 * One thread of storm: its pending operations, and its functions.
 */

#ifndef STORM_THREAD_H
#define STORM_THREAD_H

#include "storm_corpus.h"
#include "storm_lane.h"

/** Maximum number of persistent requests of each kind that a thread keeps for later epochs. */
#define STORM_SLOTS 8

/** A message that this thread sends. */
typedef struct storm_outgoing_t {
    const storm_message_t *message;
    mpitest_buffer_t *buffer;
    int slot; /**< of a kept persistent request, which owns the buffer; or -1 */
    bool done;
} storm_outgoing_t;

/** A pending request: of a receive or of a send. */
typedef struct storm_active_t {
    MPI_Request request;
    storm_posting_t *posting;
    storm_outgoing_t *outgoing;
    bool told; /**< MPI_Request_get_status has reported completion, with this status */
    MPI_Status status;
} storm_active_t;

/** A persistent request that lives for some epochs. */
typedef struct storm_slot_t {
    MPI_Request request; /**< MPI_REQUEST_NULL: the entry is free */
    bool busy;           /**< in use in this epoch */
    int comm, peer, tag, entry, way;
    mpitest_buffer_t *buffer;
} storm_slot_t;

/** Operations done; see the names in storm.c. */
typedef enum storm_counter_t {
    STORM_COUNT_SENDS,
    STORM_COUNT_RECEIVES,
    STORM_COUNT_PROBES,
    STORM_COUNT_CANCELS,
    STORM_COUNT_CANCELLED,
    STORM_COUNT_FREED,
    STORM_COUNT_TRUNCATED,
    STORM_COUNT_RESTARTED,
    STORM_COUNT_WAITS,
    STORM_COUNT_TESTS,
    STORM_COUNT_BYTES,
    STORM_COUNTERS
} storm_counter_t;

/** A thread. */
typedef struct storm_thread_t {
    int number;
    int threads;
    uint64_t chance; /**< for choices that change nothing in the plan */
    const storm_plan_t *plan;
    storm_lanes_t lanes;
    int outgoing_count, outgoing_next;
    storm_outgoing_t outgoing[STORM_BURST];
    int active_count, active_room;
    storm_active_t *active;
    int held_count, held_room;
    storm_posting_t **held; /**< matched, and not received yet */
    int posted;             /**< of lanes.order */
    int replaced;
    storm_slot_t sends[STORM_SLOTS], receives[STORM_SLOTS];
    int kept_count, kept_room;
    mpitest_buffer_t **kept; /**< of freed receives, to the end of the process */
    long counters[STORM_COUNTERS];
    const char *phase; /**< for messages, as the next two */
    long step;
    const storm_lane_t *judged; /**< while it is */
} storm_thread_t;

/** The current thread. */
extern __thread storm_thread_t *storm_self;

/* storm_send.c */

/** Start the next message; waits for it if its call blocks. */
void storm_send_next(storm_thread_t *thread);

/** The next message, or NULL if all were started. */
const storm_message_t *storm_send_peek(const storm_thread_t *thread);

/** After the epoch: check that the send buffers were not written. Frees the buffers. */
void storm_send_verify(storm_thread_t *thread);

/* storm_receive.c */

/** Post a receive, with the call that was drawn for it. */
void storm_receive_post(storm_thread_t *thread, storm_posting_t *posting);

/** Receive the message of a matched probe. */
void storm_receive_held(storm_thread_t *thread, int number);

/**
 * A receive is complete.
 *
 * @param[in] status  NULL if it was ignored
 * @param[in] error   the error of the call, or of the status
 */
void storm_receive_done(storm_thread_t *thread, storm_posting_t *posting, const MPI_Status *status,
                        int error);

/** Receives and probes of MPI_PROC_NULL, which complete immediately. */
void storm_receive_null(storm_thread_t *thread);

/* storm_wait.c */

/** Add a request to the list of pending ones. */
void storm_active_add(storm_thread_t *thread, MPI_Request request, storm_posting_t *posting,
                      storm_outgoing_t *outgoing);

/** Do something that does not block: test some, cancel one, receive a matched message. */
void storm_poll(storm_thread_t *thread);

/** Block in one of the forms of MPI_Wait. @return false if there is no request */
bool storm_wait(storm_thread_t *thread, bool sends_too);

/** Cancel the receives that are to be cancelled, and wait for them. */
void storm_cancel_all(storm_thread_t *thread);

/* storm_slots.c */

/** Find a kept request, or a free entry; -1 if there is neither. */
int storm_slot_find(storm_slot_t *slots, int comm, int peer, int tag, int entry, int way,
                    bool *found);

/** Find a kept receive for a posting; -1 if there is none. */
int storm_slot_receive(storm_slot_t *slots, const storm_posting_t *posting);

/** Free all kept requests. */
void storm_slots_free(storm_thread_t *thread);

/* storm_judge.c */

/** Check all lanes of a finished epoch, and the contents of the buffers. Frees them. */
void storm_judge_all(storm_thread_t *thread);

/** Check the bytes of a receive, and its counts. @p message: NULL if it got none */
void storm_judge_posting(storm_posting_t *posting, const storm_message_t *message);

/** Print all information about a lane to the standard error. */
void storm_print_lane(const storm_thread_t *thread, const storm_lane_t *lane);

/* storm_pool.c */

/** Check the pool's messages to the threads of this process, when all are done. */
void storm_judge_pool(storm_thread_t *threads, int count, const storm_plan_t *plan);

/* storm_break.c */

/** Read the error to make ("" for none); fails for an unknown word. */
void storm_break_read(const char *what);

/** Make the error in the records or the buffers of a lane, once, if the lane allows it. */
void storm_break_lane(storm_thread_t *thread, storm_lane_t *lane);

/** The same for a thread's messages from the pool. */
void storm_break_pool(const storm_thread_t *thread, storm_lane_t *lane);

/** The same for a send buffer. */
void storm_break_send(const storm_thread_t *thread, storm_outgoing_t *outgoing);

/** True if the thread must wait, once, for a message that never arrives. */
bool storm_break_hang(const storm_thread_t *thread);

/** At the end: fails if an error was requested, since it should have been detected before. */
void storm_break_check(void);

#endif /* STORM_THREAD_H */
