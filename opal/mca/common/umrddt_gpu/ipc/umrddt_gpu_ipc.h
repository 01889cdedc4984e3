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
 * Device memory of another process, mapped by CUDA IPC.
 *
 * The owner *exports* the allocation of a buffer. The description is plain bytes in a message and
 * has a checksum: real drivers can crash on an invalid handle, so damaged ones must not reach them.
 * The other process *imports* it: opens it, or finds it open. Both sides cache their results,
 * limited by opal_umrddt_gpu_ipc_params. No lookup uses an address alone: exports are found by
 * BUFFER_ID, which the driver never reuses in a process, imports by (peer, BUFFER_ID). So freed
 * memory and new memory at the same address are not confused.
 *
 * An open import keeps the owner's memory allocated after it was freed there. So unused imports are
 * closed, least recently used first, beyond the limits; on opal_umrddt_gpu_ipc_forget; and at once
 * if the limits are 0.
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

/** An allocation, in the form for other processes of this node. Sent as it is; no padding. */
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
 * The correct checksum of @p export: detects every change of one byte, and all but one in 2^32 of
 * the others. It protects against damage, not against forgery.
 */
uint32_t opal_umrddt_gpu_export_check(const opal_umrddt_gpu_export_t *export);

/**
 * Identify the processes that can open each other's CUDA IPC handles: same kernel and boot, same
 * namespaces of process ids and System V IPC. Containers of one node may differ.
 *
 * @return the same number in all of them; 0: unknown
 */
uint64_t opal_umrddt_gpu_ipc_domain(void);

/** An import in use. */
typedef struct opal_umrddt_gpu_import_t opal_umrddt_gpu_import_t;

typedef struct opal_umrddt_gpu_ipc_params_t {
    unsigned imports;    /**< maximum unused open imports; 0: closed as soon as they are unused */
    size_t import_bytes; /**< maximum bytes in those */
    unsigned exports;    /**< maximum cached exports */
} opal_umrddt_gpu_ipc_params_t;

/** Counters; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_ipc_stats_t {
    uint64_t exported; /**< handles created by the driver */
    uint64_t opened;   /**< imports opened */
    uint64_t hits;     /**< imports found in the cache */
    uint64_t closed;   /**< imports closed */
    uint64_t refused;  /**< exports and imports refused by the driver */
    uint64_t open_now;
    uint64_t bytes_now; /**< in open imports */
} opal_umrddt_gpu_ipc_stats_t;

/** Set the limits; excess entries are closed at the next check. */
void opal_umrddt_gpu_ipc_params(const opal_umrddt_gpu_ipc_params_t *params);

/**
 * Describe an allocation for other processes.
 *
 * @param[in]  memory  result of opal_umrddt_gpu_classify for this message
 * @param[out] out
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  not possible for this memory (managed, from a pool, pinned,
 *                                 mapped)
 * @retval OPAL_ERROR              the driver fails
 */
int opal_umrddt_gpu_export(const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *out);

/**
 * Find an open import.
 *
 * @param[in]  engine     its user
 * @param[in]  peer       number of the owning process, chosen by the caller, unique among live ones
 * @param[in]  buffer_id  in the owner
 * @param[out] import     the caller's until opal_umrddt_gpu_import_release
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_FOUND  opal_umrddt_gpu_import is needed
 */
int opal_umrddt_gpu_import_find(opal_umrddt_gpu_engine_t *engine, uint64_t peer, uint64_t buffer_id,
                                opal_umrddt_gpu_import_t **import);

/**
 * Open an allocation of another process, or find it in the cache.
 *
 * @param[in]  from    checked: kind, check, sizes, a device that is visible here
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        @p from is invalid
 * @retval OPAL_ERR_NOT_SUPPORTED    the engine's device cannot reach it, or IPC is refused
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                           const opal_umrddt_gpu_export_t *from, opal_umrddt_gpu_import_t **import);

/**
 * Translate an address of the owner to this process.
 *
 * @param[in]  lowest, end  the owner's addresses that will be used, lowest .. end - 1
 * @param[out] on_device    it is memory of the device of the engine that it was opened for; or NULL
 *
 * @return 0 if they are not within the allocation
 */
uint64_t opal_umrddt_gpu_import_address(const opal_umrddt_gpu_import_t *import, uint64_t lowest,
                                        uint64_t end, bool *on_device);

/** End the use of an import. It stays open within the limits. */
void opal_umrddt_gpu_import_release(opal_umrddt_gpu_import_t *import);

/** Close the unused imports of a peer; of all peers: OPAL_UMRDDT_GPU_ALL_PEERS. */
#define OPAL_UMRDDT_GPU_ALL_PEERS UINT64_MAX
void opal_umrddt_gpu_ipc_forget(uint64_t peer);

/**
 * Close everything, before the engines are closed. Tolerates destroyed contexts and a driver that
 * is shut down.
 */
void opal_umrddt_gpu_ipc_close(void);

/**
 * The first invariant of the imports that does not hold; NULL: all hold. No release may be in
 * progress.
 */
const char *opal_umrddt_gpu_ipc_check(void);

/** Copy the counters. */
void opal_umrddt_gpu_ipc_stats(opal_umrddt_gpu_ipc_stats_t *stats);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_IPC_H */
