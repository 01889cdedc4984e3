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
 * Shared code of all MPI test programs of this directory: start and end, the seed, checks, the
 * deadline.
 *
 * The programs use only the public MPI API, so they are valid with any PML, with umrddt and without
 * it. The first failed check ends the whole job: after it the ranks are out of step, and later
 * output would be misleading.
 */

#ifndef MPITEST_H
#define MPITEST_H

#include "gpu_memory.h"

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Deprecated from MPI 4.1 on; the others are new in 4.0. */
#if 4 <= MPI_VERSION
#define MPI_Get_elements_x        MPI_Get_elements_c
#define MPI_Status_set_elements_x MPI_Status_set_elements_c
#endif

/** Exit status of a test that could not be run; the reason was printed. */
#define MPITEST_SKIP 77

/** State of the run of a program. */
typedef struct mpitest_t {
    const char *name; /**< the program's */
    uint64_t seed;    /**< the same on every rank; --seed */
    long ops;         /**< amount of work; --ops */
    int rank;         /**< in MPI_COMM_WORLD */
    int size;         /**< of MPI_COMM_WORLD */
    bool verbose;     /**< --verbose */
    const char *mode; /**< --mode, interpreted by the program; "" by default */
    long step;        /**< shown with a failure and at the deadline: the current position */
    long checks;      /**< checks that passed on this rank */
    void (*explain)(bool hang); /**< more output at a failure, or (in a handler) a hang; or NULL */
} mpitest_t;

extern mpitest_t mpitest;

/** The rank in MPI_COMM_WORLD, from the environment of mpirun. */
int mpitest_rank_before_init(void);

/**
 * Start MPI, read the options (--seed N, --ops N, --mode WORD, --verbose), print the seed, set the
 * deadline.
 *
 * Every rank gets rank 0's seed. Without --seed a test always has the same one; --seed 0 uses the
 * clock. At the deadline a rank prints its position and ends the job as failed. The deadline is
 * four minutes, or UMRDDT_TEST_DEADLINE seconds; eight times that with UMRDDT_TEST_LONG=1, and
 * multiplied by UMRDDT_TEST_LIMIT_SCALE, since machines may be slow and busy.
 *
 * @param[in,out] argc, argv  of main
 * @param[in] name      of the program
 * @param[in] ops       default of --ops; eight times as many with UMRDDT_TEST_LONG=1
 * @param[in] threads   the required thread level; the program ends as skipped without it
 */
void mpitest_init(int *argc, char ***argv, const char *name, long ops, int threads);

/**
 * End as a test. Collective over all ranks. Prints a summary.
 *
 * @return the return value of main
 */
int mpitest_finish(void);

/** The program makes progress: restart the deadline. */
void mpitest_alive(void);

/** The program makes no progress, and this is known: set the deadline to so many seconds from now.
 */
void mpitest_stuck(unsigned seconds);

/** End as skipped, on all ranks, with a reason. Collective over all ranks. Does not return. */
void mpitest_skip(const char *reason);

/** Report a failure (with seed, rank and step) and end the job. Does not return. */
void mpitest_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/** Check a condition. It is evaluated once, also with NDEBUG. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            mpitest_fail(__FILE__, __LINE__, "does not hold: %s", #condition); \
        }                                                                      \
        ++mpitest.checks;                                                      \
    } while (0)

/** Check that two integers are equal; a failure prints both. */
#define CHECK_INT(got, wanted)                                                                 \
    do {                                                                                       \
        long long got_ = (long long) (got), wanted_ = (long long) (wanted);                    \
        if (got_ != wanted_) {                                                                 \
            mpitest_fail(__FILE__, __LINE__, "%s is %lld, not %lld (%s)", #got, got_, wanted_, \
                         #wanted);                                                             \
        }                                                                                      \
        ++mpitest.checks;                                                                      \
    } while (0)

/** Check that an MPI call returns MPI_SUCCESS. */
#define MPI_OK(call)                                                                      \
    do {                                                                                  \
        int rc_ = (call);                                                                 \
        if (MPI_SUCCESS != rc_) {                                                         \
            mpitest_fail(__FILE__, __LINE__, "%s: %s", #call, mpitest_error_string(rc_)); \
        }                                                                                 \
        ++mpitest.checks;                                                                 \
    } while (0)

/** One part of a program; all ranks get the same state. */
typedef struct mpitest_part_t {
    const char *name;
    void (*run)(uint64_t *state);
} mpitest_part_t;

/**
 * Run all parts, --ops times, with a barrier after each, so that no wildcard matches a message of
 * the next. --mode NAME,NAME runs only the parts with these names; --verbose prints the names.
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

/** True if UMRDDT_TEST_HOST, the base PML of this run, is @p name. */
bool mpitest_base_is(const char *name);

/** Check a status for a message of @p bytes bytes with this source and tag. */
void mpitest_status_at(const char *file, int line, const MPI_Status *status, int source, int tag,
                       int bytes);
#define CHECK_STATUS(status, source, tag, bytes) \
    mpitest_status_at(__FILE__, __LINE__, status, source, tag, bytes)

/** Check that a status is MPI's empty one. */
#define CHECK_EMPTY(status) CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0)

/** The text of an MPI error code, in a static buffer. */
const char *mpitest_error_string(int code);

/** The class of an MPI error code. */
int mpitest_error_class(int code);

/** A sequence of pseudo-random numbers (splitmix64): the same everywhere for the same state. */
uint64_t mpitest_random(uint64_t *state);

/** A number in [low, high]. */
long mpitest_between(uint64_t *state, long low, long high);

/** Combine numbers to one, for seeds and for keys of patterns. */
uint64_t mpitest_mix(uint64_t a, uint64_t b, uint64_t c);

/** Sleep some microseconds (avoids that two ranks on two cores run in step by accident). */
void mpitest_sleep(long microseconds);

/** Shuffle n indices. */
void mpitest_shuffle(uint64_t *state, int *indices, int n);

#endif /* MPITEST_H */
