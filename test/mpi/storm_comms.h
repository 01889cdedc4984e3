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
 * The communicators of a storm, known by number, and who reaches whom by which rank.
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
    STORM_COMM_POOL,     /**< what comes to a process, any of its threads may receive */
    STORM_COMM_SHARED
};
#define STORM_COMMS (STORM_COMM_SHARED + STORM_THREADS)

/** True if the base PML is ucx, some of whose defects have to be kept clear of. */
bool storm_on_ucx(void);

/** Make them. Collective over MPI_COMM_WORLD. */
void storm_comms_make(int threads);

/** Free them. Collective. */
void storm_comms_free(void);

/** How many there are. */
int storm_comm_count(void);

/** The communicator by its number, as this process has it. */
MPI_Comm storm_comm(int number);

/** For synchronisation; no other messages travel on it. */
MPI_Comm storm_comm_control(void);

/** The thread that has it for itself, or -1. */
int storm_comm_owner(int number);

/** True if threads take from it what comes first (storm_pool.c). */
bool storm_comm_pooled(int number);

/** True if receives of any tag are allowed: not where threads share a communicator. */
bool storm_comm_wild(int number);

/** True if a process can send to another by it. Processes by their rank in MPI_COMM_WORLD. */
bool storm_comm_reaches(int number, int from, int to);

/** The rank in it by which its peers know a process. */
int storm_comm_rank(int number, int process);

/** Its name, for messages. */
const char *storm_comm_name(int number);

#endif /* STORM_COMMS_H */
