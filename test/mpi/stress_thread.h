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
 * One thread of stress_random: its pending operations, and its functions.
 */

#ifndef STRESS_THREAD_H
#define STRESS_THREAD_H

#include "stress_corpus.h"
#include "stress_lane.h"

/** Maximum number of persistent requests of each kind that a thread keeps for later epochs. */
#define STRESS_SLOTS 8

/** A message that this thread sends. */
typedef struct stress_outgoing_t {
    const stress_message_t *message;
    mpitest_buffer_t *buffer;
    int slot; /**< of a kept persistent request, which owns the buffer; or -1 */
    bool done;
} stress_outgoing_t;

/** A pending request: of a receive or of a send. */
typedef struct stress_active_t {
    MPI_Request request;
    stress_posting_t *posting;
    stress_outgoing_t *outgoing;
    bool reported; /**< MPI_Request_get_status has reported completion, with this status */
    MPI_Status status;
} stress_active_t;

/** A persistent request that lives for some epochs. */
typedef struct stress_slot_t {
    MPI_Request request; /**< MPI_REQUEST_NULL: the entry is free */
    bool busy;           /**< in use in this epoch */
    int comm, peer, tag, entry, way;
    mpitest_buffer_t *buffer;
} stress_slot_t;

/** Operations done; see the names in stress_random.c. */
typedef enum stress_counter_t {
    STRESS_COUNT_SENDS,
    STRESS_COUNT_RECEIVES,
    STRESS_COUNT_PROBES,
    STRESS_COUNT_CANCELS,
    STRESS_COUNT_CANCELLED,
    STRESS_COUNT_FREED,
    STRESS_COUNT_TRUNCATED,
    STRESS_COUNT_RESTARTED,
    STRESS_COUNT_WAITS,
    STRESS_COUNT_TESTS,
    STRESS_COUNT_BYTES,
    STRESS_COUNTERS
} stress_counter_t;

/** A thread. */
typedef struct stress_thread_t {
    int number;
    int threads;
    uint64_t chance; /**< for choices that change nothing in the plan */
    const stress_plan_t *plan;
    stress_lanes_t lanes;
    int outgoing_count, outgoing_next;
    stress_outgoing_t outgoing[STRESS_BURST];
    int active_count, active_room;
    stress_active_t *active;
    int held_count, held_room;
    stress_posting_t **held; /**< matched, and not received yet */
    int posted;              /**< of lanes.order */
    int replaced;
    stress_slot_t sends[STRESS_SLOTS], receives[STRESS_SLOTS];
    int cached_count, cached_room;
    mpitest_buffer_t **kept; /**< of freed receives, to the end of the process */
    long counters[STRESS_COUNTERS];
    const char *phase; /**< for messages, as the next two */
    long step;
    const stress_lane_t *checked; /**< while it is */
} stress_thread_t;

/** The current thread. */
extern __thread stress_thread_t *stress_self;

/* stress_send.c */

/** Start the next message; waits for it if its call blocks. */
void stress_send_next(stress_thread_t *thread);

/** The next message, or NULL if all were started. */
const stress_message_t *stress_send_peek(const stress_thread_t *thread);

/** After the epoch: check that the send buffers were not written. Frees the buffers. */
void stress_send_verify(stress_thread_t *thread);

/* stress_receive.c */

/** Post a receive, with the call that was drawn for it. */
void stress_receive_post(stress_thread_t *thread, stress_posting_t *posting);

/** Receive the message of a matched probe. */
void stress_receive_held(stress_thread_t *thread, int number);

/**
 * A receive is complete.
 *
 * @param[in] status  NULL if it was ignored
 * @param[in] error   the error of the call, or of the status
 */
void stress_receive_done(stress_thread_t *thread, stress_posting_t *posting,
                         const MPI_Status *status, int error);

/** Receives and probes of MPI_PROC_NULL, which complete immediately. */
void stress_receive_null(stress_thread_t *thread);

/* stress_wait.c */

/** Add a request to the list of pending ones. */
void stress_active_add(stress_thread_t *thread, MPI_Request request, stress_posting_t *posting,
                       stress_outgoing_t *outgoing);

/** Do something that does not block: test some, cancel one, receive a matched message. */
void stress_poll(stress_thread_t *thread);

/** Block in one of the forms of MPI_Wait. @return false if there is no request */
bool stress_wait(stress_thread_t *thread, bool sends_too);

/** Cancel the receives that are to be cancelled, and wait for them. */
void stress_cancel_all(stress_thread_t *thread);

/* stress_slots.c */

/** Find a kept request, or a free entry; -1 if there is neither. */
int stress_slot_find(stress_slot_t *slots, int comm, int peer, int tag, int entry, int way,
                     bool *found);

/** Find a kept receive for a posting; -1 if there is none. */
int stress_slot_receive(stress_slot_t *slots, const stress_posting_t *posting);

/** Free all kept requests. */
void stress_slots_free(stress_thread_t *thread);

/* stress_verify.c */

/** Check all lanes of a finished epoch, and the contents of the buffers. Frees them. */
void stress_check_all(stress_thread_t *thread);

/** Check the bytes of a receive, and its counts. @p message: NULL if it got none */
void stress_check_posting(stress_posting_t *posting, const stress_message_t *message);

/** Print all information about a lane to the standard error. */
void stress_print_lane(const stress_thread_t *thread, const stress_lane_t *lane);

/* stress_pool.c */

/** Check the pool's messages to the threads of this process, when all are done. */
void stress_check_pool(stress_thread_t *threads, int count, const stress_plan_t *plan);

/* stress_break.c */

/** Read the error to make ("" for none); fails for an unknown word. */
void stress_break_read(const char *what);

/** Make the error in the records or the buffers of a lane, once, if the lane allows it. */
void stress_break_lane(stress_thread_t *thread, stress_lane_t *lane);

/** The same for a thread's messages from the pool. */
void stress_break_pool(const stress_thread_t *thread, stress_lane_t *lane);

/** The same for a send buffer. */
void stress_break_send(const stress_thread_t *thread, stress_outgoing_t *outgoing);

/** True if the thread must wait, once, for a message that never arrives. */
bool stress_break_hang(const stress_thread_t *thread);

/** At the end: fails if an error was requested, since it should have been detected before. */
void stress_break_check(void);

#endif /* STRESS_THREAD_H */
