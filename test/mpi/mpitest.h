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
 * What every MPI test program here shares: start and end, the seed, checks, the deadline.
 *
 * These programs use nothing but the public API of MPI, so that they are right or wrong with any
 * PML, with umrddt and without it. The first check that fails ends the whole job: after it the
 * ranks no longer agree on what comes next, and everything printed later would only mislead.
 */

#ifndef MPITEST_H
#define MPITEST_H

#include "gpu_memory.h"

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Exit status of a test that could not be run; a reason was printed. */
#define MPITEST_SKIP 77

/** What a program of this directory knows about its run. */
typedef struct mpitest_t {
    const char *name; /**< the program's */
    uint64_t seed;    /**< the same on every rank; --seed */
    long ops;         /**< how much to do; --ops */
    int rank;         /**< in MPI_COMM_WORLD */
    int size;         /**< of MPI_COMM_WORLD */
    bool verbose;     /**< --verbose */
    const char *mode; /**< --mode: what the program makes of it; "" by default */
    long step;        /**< shown with a failure and at the deadline: where the program was */
    long checks;      /**< checks that held on this rank */
    void (*explain)(bool hang); /**< prints more with a failure, or (from a signal handler) with a
                                   hang; or NULL */
} mpitest_t;

extern mpitest_t mpitest;

/**
 * Start MPI, read the options (--seed N, --ops N, --mode WORD, --verbose), print the seed, set the
 * deadline.
 *
 * Every rank gets rank 0's seed; without --seed a test has always the same, with --seed 0 it is
 * taken from the clock. At the deadline, four minutes unless UMRDDT_TEST_DEADLINE says another
 * number of seconds, a rank says where it is and ends the job as failed. (Eight times as many with
 * UMRDDT_TEST_LONG=1, and as many times as UMRDDT_TEST_LIMIT_SCALE says: programs take seconds, but
 * machines may be slow and busy.)
 *
 * @param[in,out] argc, argv  of main
 * @param[in] name      of the program
 * @param[in] ops       default of --ops; eight times as many with UMRDDT_TEST_LONG=1
 * @param[in] threads   the thread level wanted; the program ends as skipped if it is not provided
 */
void mpitest_init(int *argc, char ***argv, const char *name, long ops, int threads);

/**
 * End as a test: all ranks must come here. Prints what was done.
 *
 * @return what main returns
 */
int mpitest_finish(void);

/** The program gets on: the deadline counts from here. */
void mpitest_alive(void);

/** It does not, and that is known: so many seconds from here are enough. */
void mpitest_stuck(unsigned seconds);

/** End as skipped, on all ranks, with a reason. All ranks must call it. Does not return. */
void mpitest_skip(const char *reason);

/** Report a failure (with seed, rank and step) and end the job. Does not return. */
void mpitest_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/** The condition must hold. Evaluated once, with NDEBUG too. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            mpitest_fail(__FILE__, __LINE__, "does not hold: %s", #condition); \
        }                                                                      \
        ++mpitest.checks;                                                      \
    } while (0)

/** Two integers must be equal; both are shown. */
#define CHECK_INT(got, wanted)                                                                 \
    do {                                                                                       \
        long long got_ = (long long) (got), wanted_ = (long long) (wanted);                    \
        if (got_ != wanted_) {                                                                 \
            mpitest_fail(__FILE__, __LINE__, "%s is %lld, not %lld (%s)", #got, got_, wanted_, \
                         #wanted);                                                             \
        }                                                                                      \
        ++mpitest.checks;                                                                      \
    } while (0)

/** An MPI call must return MPI_SUCCESS. */
#define MPI_OK(call)                                                                      \
    do {                                                                                  \
        int rc_ = (call);                                                                 \
        if (MPI_SUCCESS != rc_) {                                                         \
            mpitest_fail(__FILE__, __LINE__, "%s: %s", #call, mpitest_error_string(rc_)); \
        }                                                                                 \
        ++mpitest.checks;                                                                 \
    } while (0)

/** One of the things that a program does; all its ranks get the same state. */
typedef struct mpitest_part_t {
    const char *name;
    void (*run)(uint64_t *state);
} mpitest_part_t;

/**
 * Run all parts, --ops times, with a barrier behind each, so that no wildcard finds a message of
 * the next. --mode NAME,NAME runs the parts of these names only; --verbose names them.
 *
 * @param[in] parts  the last one's name is NULL
 */
void mpitest_run(const mpitest_part_t *parts);

/** The ring of MPI_COMM_WORLD: the rank to send to, and the one to receive from. */
int mpitest_right(void);
int mpitest_left(void);

/** The kind of memory of the next buffer: of those in UMRDDT_TEST_MEMORY, or GPU_HOST. */
gpu_kind_t mpitest_memory(void);

/** All of these kinds. @param[out] kinds  room for GPU_KINDS. @return how many, at least one */
int mpitest_memory_kinds(gpu_kind_t *kinds);

/** True if @p word is part of --mode. */
bool mpitest_has(const char *word);

/** True if the base PML of this run, by UMRDDT_TEST_HOST, is @p name. */
bool mpitest_host_is(const char *name);

/** A status must be that of a message of @p bytes bytes with this source and tag. */
void mpitest_status_at(const char *file, int line, const MPI_Status *status, int source, int tag,
                       int bytes);
#define CHECK_STATUS(status, source, tag, bytes) \
    mpitest_status_at(__FILE__, __LINE__, status, source, tag, bytes)

/** A status must be MPI's empty one. */
#define CHECK_EMPTY(status) CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0)

/** The text of an MPI error code, in a static buffer. */
const char *mpitest_error_string(int code);

/** The class of an MPI error code. */
int mpitest_error_class(int code);

/** A sequence of pseudo-random numbers (splitmix64): the same everywhere for the same state. */
uint64_t mpitest_random(uint64_t *state);

/** A number in [low, high]. */
long mpitest_between(uint64_t *state, long low, long high);

/** Mix numbers to one; used as seeds and as keys of patterns. */
uint64_t mpitest_mix(uint64_t a, uint64_t b, uint64_t c);

/** Sleep some microseconds (keeps two ranks on two cores from being in step by accident). */
void mpitest_sleep(long microseconds);

/** Shuffle n indices. */
void mpitest_shuffle(uint64_t *state, int *indices, int n);

#endif /* MPITEST_H */
