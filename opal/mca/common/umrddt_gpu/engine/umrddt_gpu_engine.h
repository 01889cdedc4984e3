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
 * Copies between layouts by a device: one operation per copy, for any number of pieces.
 *
 * An *engine* is the state of this process for one context of a device: the kernels, nonblocking
 * streams, and flags in pinned memory that signal completion. It is created by the first copy that
 * needs it and lives until opal_umrddt_gpu_engines_close. An engine creates no context, but retains
 * the primary context of a device whose memory has none (from a pool, or mapped). Each function
 * makes the engine's context current for its calls, and restores the previous one.
 *
 * A copy has a source and a target *place*. The shapes of the places select the method: the
 * driver's copies of 1, 2 or 3 dimensions if both are regular with long pieces, otherwise a kernel
 * (../kernels). Memory that the device cannot access (pageable) is copied through staging buffers,
 * in pieces. This takes several operations; opal_umrddt_gpu_copy_test starts the next one when one
 * is complete.
 *
 * The application has synchronized before it calls MPI: the source is complete and the target is
 * unused. CUDA calls that are documented as synchronous count as complete when they return, even if
 * the device is not done: opal_umrddt_gpu_sync_default waits for them.
 *
 * Rules: outputs are written only on success. Callable from any thread, also without a context.
 * Only opal_umrddt_gpu_copy_wait, _warmup and _engines_close wait for the device.
 * opal_umrddt_gpu_copy waits if it needs a staging buffer and none is free: it then does the whole
 * copy.
 */

#ifndef OPAL_UMRDDT_GPU_ENGINE_H
#define OPAL_UMRDDT_GPU_ENGINE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

BEGIN_C_DECLS

typedef struct opal_umrddt_gpu_engine_t opal_umrddt_gpu_engine_t;

/** A copy in progress. */
typedef struct opal_umrddt_gpu_copy_t opal_umrddt_gpu_copy_t;

/** Method of a copy: values of pml_umrddt_gpu_scheme. */
typedef enum opal_umrddt_gpu_how_t {
    OPAL_UMRDDT_GPU_HOW_AUTO = 0,
    OPAL_UMRDDT_GPU_HOW_BLOCKS = 1, /**< a copy per block (HAND: direct transfer) */
    OPAL_UMRDDT_GPU_HOW_DRIVER = 2, /**< the driver's copies of 1, 2, 3 dimensions where possible */
    OPAL_UMRDDT_GPU_HOW_KERNEL = 3  /**< always a kernel */
} opal_umrddt_gpu_how_t;

/** Most copies of a batch. */
#define OPAL_UMRDDT_GPU_BATCH_MOST 64
/** For tests, as the maximum: a flush does nothing. */
#define OPAL_UMRDDT_GPU_BATCH_LATE 1000000

/** Settings of all engines of the process; set before the first engine. */
typedef struct opal_umrddt_gpu_engine_params_t {
    int how;            /**< opal_umrddt_gpu_how_t */
    int scheme;         /**< opal_umrddt_gpu_scheme_t of kernels (../kernels); 0: automatic */
    size_t shape_cache; /**< maximum bytes of lists cached on a device */
    size_t staging;     /**< maximum bytes of staging buffers, all engines together (../staging) */
    size_t staging_chunk; /**< bytes of a piece of pageable memory */
    unsigned graphs;      /**< maximum graphs of repeated launches per engine; 0: none */
    unsigned batch;       /**< maximum copies of a batch; 0: as many as fit; 1: no batches; or
                             OPAL_UMRDDT_GPU_BATCH_LATE */
    /** Report to the user that a GPU has no kernels, from any thread; or NULL. */
    void (*no_kernels)(int device, const char *why);
} opal_umrddt_gpu_engine_params_t;

/** Counters of the process; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_engine_stats_t {
    uint64_t copies;          /**< copies started */
    uint64_t launches;        /**< kernels launched */
    uint64_t batches;         /**< of these, with several copies */
    uint64_t batched;         /**< copies in batches */
    uint64_t driver_copies;   /**< copies of the driver's: 1, 2 and 3 dimensions, and per block */
    uint64_t launches_again;  /**< launches found in the launch cache */
    uint64_t graph_launches;  /**< of these, by a graph */
    uint64_t graphs_made;     /**< graphs created for repeated launches */
    uint64_t graphs_now;      /**< existing graphs */
    uint64_t routes_made;     /**< walks of two layouts to select a method */
    uint64_t shapes_made;     /**< layouts converted for kernels */
    uint64_t lists_uploaded;  /**< lists copied to a device */
    uint64_t staged_bytes;    /**< bytes through staging buffers */
    uint64_t shape_bytes_now; /**< of lists on devices */
    uint64_t orders;          /**< waits for default streams (opal_umrddt_gpu_sync_default) */
    uint64_t reductions;      /**< reductions started (umrddt_gpu_reduce.h) */
} opal_umrddt_gpu_engine_stats_t;

/** One end of a copy. */
typedef struct opal_umrddt_gpu_copy_end_t {
    /** The layout; NULL: the range is packed. The engine caches its shape if useful (by id). */
    opal_iov_cache_layout_t *layout;
    /**
     * The buffer address of MPI calls in this process; without a layout, the first byte of the
     * range.
     */
    uint64_t address;
    /**
     * HOST (pageable), PINNED, DEVICE (also a peer's, or imported from another process), MANAGED.
     */
    opal_umrddt_gpu_kind_t kind;
    /**
     * The engine's device is known to reach it: the engine was selected for this memory, or it was
     * imported for this engine. Otherwise (false) the driver is queried.
     */
    bool reached;
    /**
     * It is memory of the engine's own device. Two such places allow faster methods; false is
     * always correct.
     */
    bool on_device;
} opal_umrddt_gpu_copy_end_t;

/**
 * True if one driver copy is possible for a range of a layout, to or from one piece on another
 * device, and preferred to a kernel. Reads at most 4096 pieces; needs no driver.
 *
 * @param[in] start, end  of the packed bytes
 */
bool opal_umrddt_gpu_boxed(opal_iov_cache_layout_t *layout, uint64_t start, uint64_t end);

/** True if kernels find the blocks of a layout in a list (opal_umrddt_gpu_map_listed). */
bool opal_umrddt_gpu_listed(const opal_iov_cache_layout_t *layout);

/** Configure the engines. Before the first engine; later calls are ignored. */
void opal_umrddt_gpu_engine_params(const opal_umrddt_gpu_engine_params_t *params);

/**
 * The engine for memory of a device.
 *
 * @param[in]  memory  result of opal_umrddt_gpu_classify: DEVICE, MANAGED or PINNED
 * @param[out] engine  valid until opal_umrddt_gpu_engines_close
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE    no driver, or system memory
 * @retval OPAL_ERR_OUT_OF_RESOURCE  out of system or device memory
 * @retval OPAL_ERROR                the driver fails
 */
int opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                               opal_umrddt_gpu_engine_t **engine);

/** As opal_umrddt_gpu_sync_default, if the fast path does not apply. */
void opal_umrddt_gpu_sync_default_unknown(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * Wait for synchronous CUDA copies and memsets of this memory that the device has not finished: the
 * engine's streams do not wait for them. Must be called for each message, after the application has
 * called MPI, and before the memory is read or written.
 *
 * Memory of cuMemAlloc, and managed memory, gets SYNC_MEMOPS at its first use; from then on CUDA's
 * calls wait, and this call costs nothing. Memory without that attribute (of pools, mapped) costs a
 * wait for the default streams each time: the legacy one and the calling thread's, in the memory's
 * context and in the current one. System memory needs neither. A stream capture of the application
 * stays valid; default streams are not waited for if that would invalidate one.
 *
 * @param[in]     address  any byte of it
 * @param[in,out] memory   result of opal_umrddt_gpu_classify for this message
 */
static inline void opal_umrddt_gpu_sync_default(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    if (OPAL_UMRDDT_GPU_HOST != memory->kind && OPAL_UMRDDT_GPU_PINNED != memory->kind
        && !memory->sync_memops) {
        opal_umrddt_gpu_sync_default_unknown(address, memory);
    }
}

/** The engine's device (ordinal), and its context. */
int opal_umrddt_gpu_engine_device(const opal_umrddt_gpu_engine_t *engine);
CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine);

/** True for the engine's context, and for NULL: the owner of pools and mapped memory. */
static inline bool opal_umrddt_gpu_engine_shares(const opal_umrddt_gpu_engine_t *engine,
                                                 CUcontext ctx)
{
    return NULL == ctx || opal_umrddt_gpu_engine_context(engine) == ctx;
}

/**
 * False if the application has destroyed the engine's context. No driver call may use that context
 * then, since drivers crash on it. Makes a pointer query. Not needed if some memory is known to be
 * of the context.
 */
bool opal_umrddt_gpu_engine_is_there(const opal_umrddt_gpu_engine_t *engine);

/**
 * Make the engine's context current, and restore the previous one. For driver calls of other
 * directories.
 */
int opal_umrddt_gpu_engine_enter(opal_umrddt_gpu_engine_t *engine);
void opal_umrddt_gpu_engine_leave(opal_umrddt_gpu_engine_t *engine);

/**
 * Start a copy of stream positions @p start .. @p end - 1. The two streams have the same positions;
 * their layouts may differ. The layouts must live until the copy is complete.
 *
 * In the steady state (cached layouts, no pageable memory) there is no allocation and no walk of a
 * layout. Without kernels for this device the driver's copies are used, one per block if necessary.
 *
 * @param[in]  engine  executes the copy; its device must reach both places
 * @param[out] copy    the caller's until opal_umrddt_gpu_copy_test or _wait reports completion
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        the range is not in the layouts
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 * @retval OPAL_ERROR                the driver fails
 */
int opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_copy_end_t *from,
                         const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                         opal_umrddt_gpu_copy_t **copy);

/**
 * As opal_umrddt_gpu_copy, for one of several copies: a small one may stay pending until
 * opal_umrddt_gpu_flush. All pending copies of an engine are launched together. A launch that fails
 * for several of them is repeated for each; a failure of one is the result of its test.
 *
 * Without a flush, later tests of the copy launch it, and so does opal_umrddt_gpu_copy_wait.
 *
 * @retval  as opal_umrddt_gpu_copy
 */
int opal_umrddt_gpu_copy_later(opal_umrddt_gpu_engine_t *engine,
                               const opal_umrddt_gpu_copy_end_t *from,
                               const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                               opal_umrddt_gpu_copy_t **copy);

/**
 * Test a copy for completion: reads a flag in memory, and rarely calls the driver.
 *
 * @retval OPAL_SUCCESS            complete; @p copy is freed
 * @retval OPAL_ERR_RESOURCE_BUSY  not yet
 * @retval OPAL_ERROR              failed (device error); @p copy is freed
 */
int opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy);

/** A copy is complete when its flag minus @p until is below this number. */
#define OPAL_UMRDDT_GPU_COPY_ENDS (UINT32_C(1) << 31)

/**
 * Get the flag of a copy, for a caller that looks at it without a call. It then calls
 * opal_umrddt_gpu_copy_test when the flag has changed, and now and then before: that queries the
 * driver for errors.
 *
 * @return false: the copy has no flag, or none yet, and nothing is set
 */
bool opal_umrddt_gpu_copy_flag(opal_umrddt_gpu_copy_t *copy, const volatile uint32_t **flag,
                               uint32_t *until);

/** Wait for a copy, without other progress. @return as _test, never busy */
int opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy);

/** Copy the counters. */
void opal_umrddt_gpu_engine_stats(opal_umrddt_gpu_engine_stats_t *stats);

/**
 * Free all engines; no copy may be in progress. Tolerates that the application has destroyed its
 * contexts, or that the driver has been shut down (CUDA_ERROR_DEINITIALIZED).
 */
void opal_umrddt_gpu_engines_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_ENGINE_H */
