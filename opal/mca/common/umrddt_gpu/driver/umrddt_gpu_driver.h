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
 * The CUDA driver at run time, and classification of pointers.
 *
 * libcuda.so.1 is loaded at the first use and never linked: without it all functions work and
 * report that no driver exists. This component initializes the driver only for an application that
 * asks for GPUs (opal_umrddt_gpu_exists), and never creates or changes a context. Until the
 * application has called cuInit, all memory counts as system memory.
 *
 * Rules for every function: return values are OPAL_SUCCESS or one of the OPAL_ERR_* listed with the
 * function. Outputs are written only on success. Callable from any thread, with or without a
 * current context.
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
 * The driver's functions, under their exported names. Every entry is set: a function that this
 * driver does not have returns CUDA_ERROR_NOT_SUPPORTED.
 */
typedef struct opal_umrddt_gpu_driver_t {
#define OPAL_UMRDDT_GPU_SLOT(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS_USED(OPAL_UMRDDT_GPU_SLOT)
} opal_umrddt_gpu_driver_t;

/**
 * Load the driver, once for the process.
 *
 * @param[out] driver  valid to the end of the process
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE  no driver, or one without required functions: see
 *                                 opal_umrddt_gpu_driver_why_not
 */
int opal_umrddt_gpu_driver_load(const opal_umrddt_gpu_driver_t **driver);

/** The reason why the driver could not be loaded; "" if it was loaded or not needed yet. */
const char *opal_umrddt_gpu_driver_why_not(void);

/** Only for opal_umrddt_gpu_in_use: the result is known to be true. */
extern bool opal_umrddt_gpu_used;
bool opal_umrddt_gpu_in_use_unknown(void);

/**
 * True if the application has initialized CUDA, so that there may be device memory. Until then each
 * call costs one driver call, afterwards none.
 */
static inline bool opal_umrddt_gpu_in_use(void)
{
    return __builtin_expect(__atomic_load_n(&opal_umrddt_gpu_used, __ATOMIC_RELAXED), 1)
           || opal_umrddt_gpu_in_use_unknown();
}

/**
 * True if this process has a device. Initializes CUDA, and makes no context: only for an
 * application that asks whether it may use GPUs.
 */
bool opal_umrddt_gpu_exists(void);

/** True if the calling thread has a current context. One driver call. */
bool opal_umrddt_gpu_has_context(void);

/** The UUID of a device, equal in all processes. @return false: not reported by the driver */
bool opal_umrddt_gpu_device_uuid(int device, uint8_t uuid[16]);

/** Accessibility of memory. */
typedef enum opal_umrddt_gpu_kind_t {
    OPAL_UMRDDT_GPU_HOST,   /**< unknown to the driver: pageable system memory */
    OPAL_UMRDDT_GPU_PINNED, /**< system memory that devices can access (allocated or registered) */
    OPAL_UMRDDT_GPU_DEVICE, /**< device memory; the CPU must not access it */
    OPAL_UMRDDT_GPU_MANAGED /**< both */
} opal_umrddt_gpu_kind_t;

/** Properties of one allocation; if kind is OPAL_UMRDDT_GPU_HOST the rest is 0. */
typedef struct opal_umrddt_gpu_memory_t {
    opal_umrddt_gpu_kind_t kind;
    int device;         /**< device of the allocation or registration */
    uint64_t buffer_id; /**< unique among all allocations of this process */
    uint64_t base;      /**< first address of the allocation */
    uint64_t size;      /**< its length in bytes; 0 if this driver does not report it */
    CUcontext ctx;      /**< NULL: no context (from a pool, or mapped) */
    CUmemoryPool pool;  /**< its pool, or NULL */
    bool legacy_ipc;    /**< cuIpcGetMemHandle supports it */
    bool sync_memops; /**< copies without async are synchronous; false without a context, where the
                         attribute has no effect */
    uint32_t handles; /**< export types, CU_MEM_HANDLE_TYPE_* */
} opal_umrddt_gpu_memory_t;

/** Counters of the process; they only grow. */
typedef struct opal_umrddt_gpu_driver_stats_t {
    uint64_t queries; /**< driver calls that query a pointer */
    uint64_t hits;    /**< classifications found in the thread's cache */
    uint64_t stale;   /**< cached ranges that had become another allocation */
    uint64_t syncs;   /**< allocations on which SYNC_MEMOPS was set */
} opal_umrddt_gpu_driver_stats_t;

/**
 * Classify the memory at an address. One driver call: only for the BUFFER_ID if the thread's cache
 * has the allocation, otherwise for all attributes; two if another allocation has replaced a cached
 * one. None without a driver, or if the thread's cache has the allocation and it is held.
 *
 * @param[in]  address  any byte of it
 * @param[out] memory
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERROR  the driver fails (for example after a device error): unknown
 */
int opal_umrddt_gpu_classify(const void *address, opal_umrddt_gpu_memory_t *memory);

/**
 * As opal_umrddt_gpu_classify, for memory from @p first to @p last in one allocation of device or
 * managed memory that the calling thread has classified before.
 *
 * @return false: it is no such memory, and @p memory is unchanged
 */
bool opal_umrddt_gpu_classify_again(uintptr_t first, uintptr_t last,
                                    opal_umrddt_gpu_memory_t *memory);

/**
 * Hold the allocation of a message in progress: until it is released, classifications of addresses
 * in it query nothing. MPI forbids the application to free it before the message is complete, or
 * before it has freed the request of a send.
 *
 * @param[in] memory   result of opal_umrddt_gpu_classify
 * @param[in] threads  other threads may call this or the release at the same time
 *
 * @return for opal_umrddt_gpu_memory_release; 0: not held, as no device memory, or too many are
 */
uint64_t opal_umrddt_gpu_memory_hold(const opal_umrddt_gpu_memory_t *memory, bool threads);

/** Release an allocation, before the application can learn that the message is complete. */
void opal_umrddt_gpu_memory_release(uint64_t hold, bool threads);

/**
 * Find the first device on which the application has a context: the device's primary context is
 * active, or the calling thread's current context is one of it. Some driver calls.
 *
 * @param[in]  uuid    of the device; NULL: any
 * @param[out] memory  describes memory of the device as opal_umrddt_gpu_classify does, without an
 *                     address
 *
 * @return false: there is none
 */
bool opal_umrddt_gpu_device_find(const uint8_t *uuid, opal_umrddt_gpu_memory_t *memory);

/**
 * Make copies and memsets of this memory without async synchronous from now on. Waits for their
 * pending work, and for nothing else. One driver call, unless the attribute is set already.
 *
 * @param[in]     address  any byte of it
 * @param[in,out] memory   result of opal_umrddt_gpu_classify
 *
 * @return false: the driver refuses, or the memory has no context (of a pool, or mapped). Driver
 *         580 accepts the attribute for memory of a pool, but copies still do not wait
 */
bool opal_umrddt_gpu_sync_memops(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * Enclose driver calls that a stream capture forbids although they are unrelated to it. Otherwise
 * they fail and invalidate the application's capture.
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
 * Assumption about memory after a permanent failure of opal_umrddt_gpu_classify. HOST if the CPU
 * can read it, so that its messages continue as without a driver. Otherwise DEVICE without
 * attributes, so that messages fail at the first device operation. One system call.
 *
 * @param[in]  address  any byte of it
 * @param[out] memory
 */
void opal_umrddt_gpu_presume(const void *address, opal_umrddt_gpu_memory_t *memory);

/**
 * True if an Open MPI with CUDA support can handle this memory: cudaMalloc's (not of a pool, mapped
 * or imported) whose context is the calling thread's current one. Open MPI works in the current
 * context, makes the memory's context current if there is none, and does not support memory without
 * a context. One driver call that is no pointer query; none for other memory.
 *
 * @param[in] memory  result of opal_umrddt_gpu_classify
 */
bool opal_umrddt_gpu_base_takes(const opal_umrddt_gpu_memory_t *memory);

/**
 * True if UCX supports GPU memory: its CUDA module is loaded (after UCX is initialized) and UCX_TLS
 * does not disable it. CUDA support of Open MPI does not imply it: pml/ucx passes any pointer to
 * UCX.
 */
bool opal_umrddt_gpu_ucx_aware(void);

/**
 * True if a value of UCX_TLS enables cuda_copy, which UCX needs for GPU memory.
 *
 * @param[in] tls  NULL: not set
 */
bool opal_umrddt_gpu_ucx_tls(const char *tls);

/** Copy the counters. */
void opal_umrddt_gpu_driver_stats(opal_umrddt_gpu_driver_stats_t *stats);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_DRIVER_H */
