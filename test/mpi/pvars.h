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
 * Reads performance variables and parameters of umrddt by MPI_T, so that a test can check the
 * scheme of its messages. Without umrddt the variables do not exist, and the functions report that.
 */

#ifndef MPITEST_PVARS_H
#define MPITEST_PVARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The variables, in the order of pml/umrddt; the names are pml_umrddt_ and the one here in lower
 * case. */
typedef enum pvars_index_t {
    PVARS_HANDLED_SENDS,
    PVARS_HANDLED_RECVS,
    PVARS_HANDLED_BYTES,
    PVARS_PASSED_CONTIGUOUS,
    PVARS_PASSED_SMALL,
    PVARS_PASSED_MEMORY,
    PVARS_PASSED_PEER,
    PVARS_PASSED_OTHER,
    PVARS_PASSED_MODEL,
    PVARS_FALLBACK_SENDS,
    PVARS_FALLBACK_RECVS,
    PVARS_LAYOUT_HITS,
    PVARS_LAYOUT_MISSES,
    PVARS_LAYOUT_EVICTIONS,
    PVARS_LAYOUT_BYTES,
    PVARS_KEYS_MAPPED,
    PVARS_KEYS_PLAIN,
    PVARS_KEY_ENTRIES,
    PVARS_KEYSET_HITS,
    PVARS_KEYSETS_STALE,
    PVARS_MKEYS_CREATED,
    PVARS_WRITES_POSTED,
    PVARS_WRITE_BYTES,
    PVARS_CONTROL_MESSAGES,
    PVARS_CONTROL_BYTES,
    PVARS_ROUNDS,
    PVARS_RKEY_SETS_CACHED,
    PVARS_FINS_RECEIVED,
    PVARS_MEMORY_QUERIES,
    PVARS_SENDS_UMR,
    PVARS_SENDS_DIRECT,
    PVARS_LAYOUTS_SENT,
    PVARS_LAYOUTS_CACHED,
    PVARS_WRITES_DIRECT,
    PVARS_PIECES_DIRECT,
    PVARS_DIRECT_LAYOUT_BYTES,
    PVARS_REG_MISSES,
    PVARS_SENDS_IPC,
    PVARS_RECVS_IPC,
    PVARS_IPC_BYTES,
    PVARS_IPC_DONE_FLAGS,
    PVARS_IPC_INFO_REQS,
    PVARS_IPC_LAYOUT_BYTES,
    PVARS_IPC_EXPORTED,
    PVARS_IPC_OPENED,
    PVARS_IPC_OPEN,
    PVARS_FALLBACK_IPC,
    PVARS_GPU_COPIES,
    PVARS_GPU_LAUNCHES,
    PVARS_GPU_BATCHES,
    PVARS_GPU_BATCHED,
    PVARS_GPU_GRAPH_LAUNCHES,
    PVARS_GPU_GRAPHS,
    PVARS_GPU_DRIVER_COPIES,
    PVARS_GPU_SHAPES_MADE,
    PVARS_GPU_LISTS_UPLOADED,
    PVARS_STAGED_SENDS,
    PVARS_STAGED_RECVS,
    PVARS_STAGED_BYTES,
    PVARS_GPU_QUERIES,
    PVARS_GPU_PINNED_BUFFERS,
    PVARS_SENDS_PACK_GDR,
    PVARS_SENDS_PACK_STAGED,
    PVARS_SENDS_PACK_HOST,
    PVARS_RECVS_PACK,
    PVARS_PACK_BYTES,
    PVARS_PACK_CHUNKS,
    PVARS_PACK_MOST,
    PVARS_PACK_OVERLAPS,
    PVARS_PACK_BY_HCA,
    PVARS_PACK_REGISTERED,
    PVARS_PACK_NO_GDR,
    PVARS_GPU_SCRATCH_BUFFERS,
    PVARS_STALE_REPLIES,
    PVARS_CONTROL_REFUSED,
    PVARS_PROTOCOL_ERRORS,
    PVARS_SENDS_STRIPED,
    PVARS_GPU_REG_HITS,
    PVARS_GPU_REG_MISSES,
    PVARS_GPU_REG_REFUSED,
    PVARS_GPU_REG_STALE,
    PVARS_GPU_FLUSH_CALLS,
    PVARS_GPU_FLUSH_READS,
    PVARS_ENDPOINTS,
    PVARS_ENDPOINTS_REBUILT,
    PVARS_PEERS_CLOSED,
    PVARS_MAPS_REBUILT,
    PVARS_PROBE_SENDS,
    PVARS_DECLINED_SENDS,
    PVARS_DECLINED_RECVS,
    PVARS_GPU_SYNC_SET,
    PVARS_GPU_SYNC_WAITS,
    PVARS_ACCELERATOR_LOOKUPS,
    PVARS_LIBRARY_CALLS,
    PVARS_PACK_DEVICE,
    PVARS_MAX
} pvars_index_t;

/** One reading of all of them. */
typedef struct pvars_t {
    uint64_t value[PVARS_MAX];
} pvars_t;

/**
 * Open MPI_T and find the variables. Call it after MPI_Init; the counters of Open MPI start at this
 * call. May be called again; each call needs a pvars_close.
 *
 * @return the number of variables that exist: 0 without umrddt, PVARS_MAX with it
 */
int pvars_open(void);

/** Opposite of pvars_open; the last call, before MPI_Finalize, closes MPI_T. */
void pvars_close(void);

/** The MPI_T name of a variable. */
const char *pvars_name(pvars_index_t index);

/** Read them all; variables that do not exist read as 0. */
void pvars_read(pvars_t *values);

/** HCAs that a process may use. */
#define PVARS_HCAS 8

/** Bytes that each HCA of this process has written. @return false: the variable does not exist */
bool pvars_hcas(uint64_t *bytes);

/** after - before, variable by variable. */
void pvars_subtract(const pvars_t *after, const pvars_t *before, pvars_t *difference);

/** Sum over the ranks of MPI_COMM_WORLD, on every rank. A collective call. */
void pvars_sum(const pvars_t *mine, pvars_t *all);

/** Print those that are not 0, on one line, after @p title. */
void pvars_print(const char *title, const pvars_t *values);

/** The scheme of messages with this difference of their sender's counters: a scheme, "host" for the
 * base PML alone, or "" for a scheme of umrddt without a counter. */
const char *pvars_way(const pvars_t *sent);

/** The value of an integer parameter (MPI_T control variable), or @p otherwise if there is none. */
long pvars_parameter(const char *name, long otherwise);

/** The value of a string parameter; false if there is none. Integers with a name come as names. */
bool pvars_parameter_text(const char *name, char *text, size_t size);

#endif /* MPITEST_PVARS_H */
