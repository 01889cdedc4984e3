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
 * The communicators of stress_random, by number, and their ranks for each process.
 */

#ifndef STRESS_COMMS_H
#define STRESS_COMMS_H

#include "mpitest.h"

/** Ranks and threads, at most. */
#define STRESS_RANKS   8
#define STRESS_THREADS 8

/** Communicators that all threads share; behind them one for each thread. */
enum {
    STRESS_COMM_DUP,      /**< a copy of MPI_COMM_WORLD */
    STRESS_COMM_REVERSED, /**< its ranks in the opposite order */
    STRESS_COMM_HALVES,   /**< one for the lower half of the ranks, one for the upper */
    STRESS_COMM_BETWEEN,  /**< an intercommunicator of ranks of even and of odd number */
    STRESS_COMM_POOL,     /**< any thread of a process may receive its messages */
    STRESS_COMM_SHARED
};
#define STRESS_COMMS (STRESS_COMM_SHARED + STRESS_THREADS)

/** True if the base PML is ucx, some of whose defects must be avoided. */
bool stress_on_ucx(void);

/** Make them. Collective over MPI_COMM_WORLD. */
void stress_comms_make(int threads);

/** Free them. Collective. */
void stress_comms_free(void);

/** How many there are. */
int stress_comm_count(void);

/** This process's handle of a communicator, by its number. */
MPI_Comm stress_comm(int number);

/** For synchronisation; carries no other messages. */
MPI_Comm stress_comm_control(void);

/** The only thread that uses it, or -1. */
int stress_comm_owner(int number);

/** True if each thread receives the first message that arrives (stress_pool.c). */
bool stress_comm_pooled(int number);

/** True if receives of any tag are allowed: not if threads share a communicator. */
bool stress_comm_wild(int number);

/** True if a process can send to another on it. Processes by their rank in MPI_COMM_WORLD. */
bool stress_comm_reaches(int number, int from, int to);

/** The rank of a process in it, for its peers. */
int stress_comm_rank(int number, int process);

/** Its name, for messages. */
const char *stress_comm_name(int number);

#endif /* STRESS_COMMS_H */
