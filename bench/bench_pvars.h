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
 * The performance variables of pml/umrddt, through MPI_T. Without pml/umrddt they do not exist, and
 * the functions report that instead of an error.
 */

#ifndef BENCH_PVARS_H
#define BENCH_PVARS_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

/** The counters that are read. */
enum {
    BENCH_PVAR_HANDLED_SENDS,
    BENCH_PVAR_FALLBACK_SENDS,
    BENCH_PVAR_FALLBACK_RECVS,
    BENCH_PVAR_KEYS_USED,
    BENCH_PVAR_KEYS_MAPPED,
    BENCH_PVAR_WRITES_POSTED,
    BENCH_PVAR_CONTROL_BYTES,
    BENCH_PVAR_MEMORY_QUERIES,
    BENCH_PVAR_MKEYS_CREATED,
    BENCH_PVAR_KEY_ENTRIES,
    BENCH_PVAR_REG_MISSES,
    BENCH_PVAR_LAYOUT_MISSES,
    BENCH_PVAR_ROUNDS,
    BENCH_PVAR_SENDS_DIRECT,
    BENCH_PVAR_SENDS_IPC,
    BENCH_PVAR_STAGED_SENDS,
    BENCH_PVAR_STAGED_RECVS,
    BENCH_PVAR_SENDS_PACK_GDR,
    BENCH_PVAR_SENDS_PACK_STAGED,
    BENCH_PVAR_SENDS_PACK_HOST,
    BENCH_PVAR_GPU_LAUNCHES,
    BENCH_PVAR_GPU_DRIVER_COPIES,
    BENCH_PVAR_DECLINED_SENDS,
    BENCH_PVAR_COUNT
};

typedef struct bench_pvars_t {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[BENCH_PVAR_COUNT];
    MPI_Datatype types[BENCH_PVAR_COUNT];
    bool found[BENCH_PVAR_COUNT];
    bool open;
} bench_pvars_t;

/** Find the variables; after MPI_Init. A missing variable reads as 0, and its found[] is false. */
void bench_pvars_open(bench_pvars_t *pvars);

/** Before MPI_Finalize. */
void bench_pvars_close(bench_pvars_t *pvars);

/** The present values of all counters of this process. */
void bench_pvars_read(bench_pvars_t *pvars, uint64_t values[BENCH_PVAR_COUNT]);

/**
 * The value of an integer control variable (an MCA parameter). Only between bench_pvars_open and
 * bench_pvars_close.
 *
 * @return false if there is none of that name or it is no integer
 */
bool bench_cvar_read(const char *name, uint64_t *value);

/**
 * Whether a control variable that is an enumeration can have a value. Only between bench_pvars_open
 * and bench_pvars_close.
 *
 * @return false if there is such a variable and it cannot; true if nothing is known
 */
bool bench_cvar_can_be(const char *name, const char *value);

#endif /* BENCH_PVARS_H */
