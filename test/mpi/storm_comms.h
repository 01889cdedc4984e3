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
 * The communicators of storm, by number, and their ranks for each process.
 */

#ifndef STORM_COMMS_H
#define STORM_COMMS_H

#include "mpitest.h"

/** Ranks and threads, at most. */
#define STORM_RANKS   8
#define STORM_THREADS 8

/** Communicators that all threads share; behind them one for each thread. */
enum {
    STORM_COMM_DUP,      /**< a copy of MPI_COMM_WORLD */
    STORM_COMM_REVERSED, /**< its ranks in the opposite order */
    STORM_COMM_HALVES,   /**< one for the lower half of the ranks, one for the upper */
    STORM_COMM_BETWEEN,  /**< an intercommunicator of ranks of even and of odd number */
    STORM_COMM_POOL,     /**< any thread of a process may receive its messages */
    STORM_COMM_SHARED
};
#define STORM_COMMS (STORM_COMM_SHARED + STORM_THREADS)

/** True if the base PML is ucx, some of whose defects must be avoided. */
bool storm_on_ucx(void);

/** Make them. Collective over MPI_COMM_WORLD. */
void storm_comms_make(int threads);

/** Free them. Collective. */
void storm_comms_free(void);

/** How many there are. */
int storm_comm_count(void);

/** This process's handle of a communicator, by its number. */
MPI_Comm storm_comm(int number);

/** For synchronisation; carries no other messages. */
MPI_Comm storm_comm_control(void);

/** The only thread that uses it, or -1. */
int storm_comm_owner(int number);

/** True if each thread receives the first message that arrives (storm_pool.c). */
bool storm_comm_pooled(int number);

/** True if receives of any tag are allowed: not if threads share a communicator. */
bool storm_comm_wild(int number);

/** True if a process can send to another on it. Processes by their rank in MPI_COMM_WORLD. */
bool storm_comm_reaches(int number, int from, int to);

/** The rank of a process in it, for its peers. */
int storm_comm_rank(int number, int process);

/** Its name, for messages. */
const char *storm_comm_name(int number);

#endif /* STORM_COMMS_H */
