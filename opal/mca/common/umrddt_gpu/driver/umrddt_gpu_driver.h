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
 * The CUDA driver at run time, and what a pointer is.
 *
 * libcuda.so.1 is loaded when it is first asked for, and never linked: everything here works, and
 * says no, on a machine without it. The driver is never initialized from here, and no context is
 * made or changed: as long as the application has not called cuInit, the driver itself says so, and
 * all memory is system memory.
 *
 * Rules that hold for every function: return values are OPAL_SUCCESS or one of the OPAL_ERR_* named
 * with the function; outputs are written only on success; callable from any thread, with or without
 * a current context.
 */

#ifndef OPAL_UMRDDT_GPU_DRIVER_H
#define OPAL_UMRDDT_GPU_DRIVER_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_cuda.h"

BEGIN_C_DECLS

/**
 * The driver's functions, under the names that the library exports. Every slot is filled: a
 * function that this driver does not have returns CUDA_ERROR_NOT_SUPPORTED.
 */
typedef struct opal_umrddt_gpu_driver_t {
#define OPAL_UMRDDT_GPU_SLOT(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS(OPAL_UMRDDT_GPU_SLOT)
} opal_umrddt_gpu_driver_t;

/**
 * Load the driver, once for the process.
 *
 * @param[out] driver  valid to the end of the process
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE  there is none, or it lacks what is needed: see
 *                                 opal_umrddt_gpu_driver_why_not
 */
int opal_umrddt_gpu_driver_load(const opal_umrddt_gpu_driver_t **driver);

/** Why the driver could not be loaded, in a few words; "" if it was, or was never asked for. */
const char *opal_umrddt_gpu_driver_why_not(void);

/** Who can touch memory. */
typedef enum opal_umrddt_gpu_kind_t {
    OPAL_UMRDDT_GPU_HOST,   /**< the driver does not know it: pageable memory of the CPU */
    OPAL_UMRDDT_GPU_PINNED, /**< of the CPU; devices reach it (allocated or registered) */
    OPAL_UMRDDT_GPU_DEVICE, /**< of a device; the CPU must not touch it */
    OPAL_UMRDDT_GPU_MANAGED /**< both */
} opal_umrddt_gpu_kind_t;

/** What is known about one allocation; only kind if that is OPAL_UMRDDT_GPU_HOST, the rest is 0. */
typedef struct opal_umrddt_gpu_memory_t {
    opal_umrddt_gpu_kind_t kind;
    int device;         /**< where it was allocated or registered */
    uint64_t buffer_id; /**< never given to another allocation of this process */
    uint64_t base;      /**< first address of the allocation */
    uint64_t size;      /**< bytes of it; 0 if this driver does not tell */
    CUcontext ctx;      /**< NULL: of no context (from a pool, or mapped) */
    CUmemoryPool pool;  /**< if it came from one, else NULL */
    bool legacy_ipc;    /**< cuIpcGetMemHandle takes it */
    bool sync_memops;   /**< copies that do not say async are synchronous; false without a context,
                             where the attribute changes nothing */
    uint32_t handles;   /**< how it can be exported, by CU_MEM_HANDLE_TYPE_* */
} opal_umrddt_gpu_memory_t;

/** Counters of the process; they only grow. */
typedef struct opal_umrddt_gpu_driver_stats_t {
    uint64_t queries; /**< calls of the driver that ask about a pointer */
    uint64_t hits;    /**< classifications that a range of the thread's cache answered */
    uint64_t stale;   /**< ranges of it that were another allocation by then */
    uint64_t syncs;   /**< allocations on which SYNC_MEMOPS was set */
} opal_umrddt_gpu_driver_stats_t;

/**
 * Say what the memory at an address is. One call of the driver: for its BUFFER_ID alone if the
 * thread has seen the allocation lately, else for everything; two if another allocation has taken
 * the place of one that was seen. None if there is no driver.
 *
 * @param[in]  address  any byte of it
 * @param[out] memory
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERROR  the driver fails (a device broke, for example): nothing is known
 */
int opal_umrddt_gpu_classify(const void *address, opal_umrddt_gpu_memory_t *memory);

/**
 * See that copies and memsets of this memory that do not say async are finished when they are back,
 * from now on; what they have left unfinished is waited for, and nothing else. One call of the
 * driver, unless it is so already.
 *
 * @param[in]     address  any byte of it
 * @param[in,out] memory   as opal_umrddt_gpu_classify said
 *
 * @return false: the driver refuses, or the memory has no context (it is of a pool, or mapped),
 *         where driver 580 takes the attribute for a pool's and copies do not wait all the same
 */
bool opal_umrddt_gpu_sync_memops(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * Around calls that a stream capture forbids although they have nothing to do with it: without this
 * they fail, and invalidate the application's capture.
 *
 * @param[out] mode  for opal_umrddt_gpu_restore
 */
static inline void opal_umrddt_gpu_relax(const opal_umrddt_gpu_driver_t *driver,
                                         CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void) driver->cuThreadExchangeStreamCaptureMode(mode);
}

static inline void opal_umrddt_gpu_restore(const opal_umrddt_gpu_driver_t *driver,
                                           CUstreamCaptureMode *mode)
{
    (void) driver->cuThreadExchangeStreamCaptureMode(mode);
}

/**
 * What to take memory for where opal_umrddt_gpu_classify fails, which it then does for good: HOST
 * if the CPU can read it, so that its messages go on as if there were no driver, else DEVICE of
 * which nothing is known, so that they end in an error as soon as the device has to do something.
 * One system call.
 *
 * @param[in]  address  any byte of it
 * @param[out] memory
 */
void opal_umrddt_gpu_presume(const void *address, opal_umrddt_gpu_memory_t *memory);

/**
 * True if an Open MPI with CUDA may be given this memory as it is: cudaMalloc's (neither of a pool
 * nor mapped nor another process's) whose context is the calling thread's current one. Open MPI
 * works in the current context, makes the memory's current where there is none, and does not know
 * memory without a context. One call of the driver, which does not ask about a pointer; none for
 * other memory.
 *
 * @param[in] memory  of opal_umrddt_gpu_classify
 */
bool opal_umrddt_gpu_base_takes(const opal_umrddt_gpu_memory_t *memory);

/**
 * True if UCX takes GPU memory: its module for CUDA is loaded, which it is once UCX is initialized,
 * and UCX_TLS leaves it in use. CUDA support of Open MPI does not imply it: pml/ucx passes any
 * pointer to UCX.
 */
bool opal_umrddt_gpu_ucx_aware(void);

/**
 * True if a value of UCX_TLS leaves cuda_copy in use, without which UCX takes no GPU memory.
 *
 * @param[in] tls  NULL: not set
 */
bool opal_umrddt_gpu_ucx_tls(const char *tls);

/** Copy the counters. */
void opal_umrddt_gpu_driver_stats(opal_umrddt_gpu_driver_stats_t *stats);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_DRIVER_H */
