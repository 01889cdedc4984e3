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
 * Memory of another process's device, mapped here by CUDA IPC.
 *
 * The owner *exports* the allocation that a buffer is in; the description travels in messages (it
 * is plain bytes, to be checked on receipt: real drivers can be brought to crash by a handle that
 * is not one, so what was damaged on its way does not reach them). The other process *imports* it:
 * opens it, or finds it open. Both sides keep what they did, bounded by opal_umrddt_gpu_ipc_params,
 * and nothing is found by an address alone: exports are known by BUFFER_ID, which the driver never
 * gives twice in a process, imports by (peer, BUFFER_ID). So freed memory, and other memory at the
 * same address, is never taken for what was there before.
 *
 * An open import holds the owner's memory after it was freed there. Therefore imports that nobody
 * uses are closed, the least recently used first, beyond the bounds; on opal_umrddt_gpu_ipc_forget;
 * and at once where the bounds are 0.
 *
 * Rules as in ../driver: outputs only on success; any thread.
 */

#ifndef OPAL_UMRDDT_GPU_IPC_H
#define OPAL_UMRDDT_GPU_IPC_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** An allocation, as another process of this host can open it. Travels; no padding. */
typedef struct opal_umrddt_gpu_export_t {
    uint64_t buffer_id; /**< not 0 */
    uint64_t base;      /**< its first address, in the owner */
    uint64_t size;      /**< bytes; not 0 */
    uint32_t kind;      /**< 1: cuIpcGetMemHandle's */
    uint32_t check;     /**< opal_umrddt_gpu_export_check of all else */
    uint8_t uuid[16];   /**< of the device */
    uint8_t handle[64]; /**< CUipcMemHandle */
} opal_umrddt_gpu_export_t;
_Static_assert(112 == sizeof(opal_umrddt_gpu_export_t), "an export has no padding");

/**
 * What @p export's check has to be: every change of one byte of it changes this, and all but one in
 * 2^32 of the others. It is there against what was damaged; who wants to deceive can compute it.
 */
uint32_t opal_umrddt_gpu_export_check(const opal_umrddt_gpu_export_t *export);

/** An import that somebody uses. */
typedef struct opal_umrddt_gpu_import_t opal_umrddt_gpu_import_t;

typedef struct opal_umrddt_gpu_ipc_params_t {
    unsigned imports;    /**< open at most and unused; 0: closed as soon as nobody uses them */
    size_t import_bytes; /**< in those, at most */
    unsigned exports;    /**< remembered at most */
} opal_umrddt_gpu_ipc_params_t;

/** Counters; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_ipc_stats_t {
    uint64_t exported; /**< handles asked of the driver */
    uint64_t opened;   /**< imports opened */
    uint64_t hits;     /**< imports found open */
    uint64_t closed;   /**< imports closed */
    uint64_t refused;  /**< exports and imports that the driver refused */
    uint64_t open_now;
    uint64_t bytes_now; /**< in open imports */
} opal_umrddt_gpu_ipc_stats_t;

/** Set the bounds; what is beyond them is closed when it is next looked at. */
void opal_umrddt_gpu_ipc_params(const opal_umrddt_gpu_ipc_params_t *params);

/**
 * Describe an allocation for other processes.
 *
 * @param[in]  memory  as opal_umrddt_gpu_classify just said
 * @param[out] out
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  this memory cannot be (managed, from a pool, pinned, mapped)
 * @retval OPAL_ERROR              the driver fails
 */
int opal_umrddt_gpu_export(const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *out);

/**
 * An import that is open already.
 *
 * @param[in]  engine     that is going to use it
 * @param[in]  peer       number of the owning process, as the caller likes, unique among live ones
 * @param[in]  buffer_id  in the owner
 * @param[out] import     the caller's until opal_umrddt_gpu_import_release
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_FOUND  opal_umrddt_gpu_import is needed
 */
int opal_umrddt_gpu_import_find(opal_umrddt_gpu_engine_t *engine, uint64_t peer, uint64_t buffer_id,
                                opal_umrddt_gpu_import_t **import);

/**
 * Open an allocation of another process, or find it open.
 *
 * @param[in]  from    checked: kind, check, sizes, a device that is visible here
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        @p from makes no sense
 * @retval OPAL_ERR_NOT_SUPPORTED    the engine's device cannot reach it, or IPC is refused
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                           const opal_umrddt_gpu_export_t *from, opal_umrddt_gpu_import_t **import);

/**
 * Where an address of the owner is here.
 *
 * @param[in] lowest, end  the owner's addresses that will be used, lowest .. end - 1
 *
 * @return 0 if they are not within the allocation
 */
uint64_t opal_umrddt_gpu_import_address(const opal_umrddt_gpu_import_t *import, uint64_t lowest,
                                        uint64_t end);

/** True if it is memory of the device of the engine that it was opened for. */
bool opal_umrddt_gpu_import_is_home(const opal_umrddt_gpu_import_t *import);

/** The caller does not use it any more. It stays open within the bounds. */
void opal_umrddt_gpu_import_release(opal_umrddt_gpu_import_t *import);

/** Close the unused imports of a peer; of all peers: OPAL_UMRDDT_GPU_ALL_PEERS. */
#define OPAL_UMRDDT_GPU_ALL_PEERS UINT64_MAX
void opal_umrddt_gpu_ipc_forget(uint64_t peer);

/** Close everything. Tolerates contexts and a driver that are gone. Before the engines are closed.
 */
void opal_umrddt_gpu_ipc_close(void);

/**
 * The first invariant of the imports that does not hold; NULL: all do. None is being released.
 */
const char *opal_umrddt_gpu_ipc_check(void);

/** Copy the counters. */
void opal_umrddt_gpu_ipc_stats(opal_umrddt_gpu_ipc_stats_t *stats);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_IPC_H */
