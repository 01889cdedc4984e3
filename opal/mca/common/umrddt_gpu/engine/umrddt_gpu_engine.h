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
 * Copies between layouts by a device: one operation a copy, whatever the number of pieces.
 *
 * An *engine* is what this process keeps of one context of a device: the kernels, streams of its
 * own that wait for no other stream, and flags in pinned memory that say what is done. It is made
 * at the first copy that needs it and lives until opal_umrddt_gpu_engines_close. An engine makes no
 * context but retains the primary one of a device whose memory has none (from a pool, or mapped);
 * each function makes the engine's context current for its calls, and puts back what was current.
 *
 * A copy goes from one *place* to another. What does it is chosen by what the places look like: the
 * driver's copies of 1, 2 or 3 dimensions where both are regular and their pieces are long, a
 * kernel (../kernels) else. Memory that the device cannot reach (pageable) is copied through pinned
 * buffers, in pieces; that takes several operations, and opal_umrddt_gpu_copy_test does the next
 * when one is over.
 *
 * The application has done what it must before it calls MPI: what a copy reads is there, and what
 * it writes is not used by anybody else. Calls that CUDA names synchronous count as done when they
 * are back, also where the device is not: opal_umrddt_gpu_settle sees to that.
 *
 * Rules: outputs are written only on success; callable from any thread, also without a context. No
 * function waits for the device, but for opal_umrddt_gpu_copy_wait, _settle and _engines_close; and
 * opal_umrddt_gpu_copy where it needs a pinned buffer and none is left: then it does it all at
 * once.
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

/** A copy under way. */
typedef struct opal_umrddt_gpu_copy_t opal_umrddt_gpu_copy_t;

/** How a copy is done: what pml_umrddt_gpu_scheme names. */
typedef enum opal_umrddt_gpu_how_t {
    OPAL_UMRDDT_GPU_HOW_AUTO = 0,
    OPAL_UMRDDT_GPU_HOW_BLOCKS = 1, /**< a copy per block (HAND: direct transfer) */
    OPAL_UMRDDT_GPU_HOW_DRIVER = 2, /**< the driver's copies of 1, 2, 3 dimensions where they can */
    OPAL_UMRDDT_GPU_HOW_KERNEL = 3  /**< always a kernel */
} opal_umrddt_gpu_how_t;

/** What all engines of the process do alike; set before the first. */
typedef struct opal_umrddt_gpu_engine_params_t {
    int how;              /**< opal_umrddt_gpu_how_t */
    int scheme;           /**< opal_umrddt_gpu_scheme_t of kernels (../kernels); 0: each its own */
    size_t shape_cache;   /**< bytes of lists kept on a device, at most */
    size_t staging;       /**< bytes of pinned memory for all, at most (../staging) */
    size_t staging_chunk; /**< bytes of a piece of pageable memory */
    unsigned graphs;      /**< graphs of repeated launches in an engine, at most; 0: none */
} opal_umrddt_gpu_engine_params_t;

/** Counters of the process; they only grow, but for those that say now. */
typedef struct opal_umrddt_gpu_engine_stats_t {
    uint64_t copies;          /**< opal_umrddt_gpu_copy that began */
    uint64_t launches;        /**< kernels launched */
    uint64_t driver_copies;   /**< copies of the driver's: 1, 2 and 3 dimensions, and per block */
    uint64_t launches_again;  /**< of the launches, those that were known from before */
    uint64_t graph_launches;  /**< of these, those by a graph */
    uint64_t graphs_made;     /**< of launches that are repeated */
    uint64_t graphs_now;      /**< that exist */
    uint64_t routes_made;     /**< walks of two layouts to see what copies them best */
    uint64_t shapes_made;     /**< layouts translated for kernels */
    uint64_t lists_uploaded;  /**< lists copied to a device */
    uint64_t staged_bytes;    /**< through pinned buffers */
    uint64_t shape_bytes_now; /**< of lists on devices */
    uint64_t orders;          /**< waits for default streams (opal_umrddt_gpu_settle) */
} opal_umrddt_gpu_engine_stats_t;

/** One end of a copy. */
typedef struct opal_umrddt_gpu_place_t {
    /** What is there; NULL: the range alone, packed. Kept by the engine if it is worth it (by id).
     */
    opal_iov_cache_layout_t *layout;
    /** What MPI calls are given, as this process sees it; without a layout, the range's first byte.
     */
    uint64_t address;
    /** Whose it is: HOST (pageable), PINNED, DEVICE (also a peer's, or another process's, once it
     * is mapped here), MANAGED. */
    opal_umrddt_gpu_kind_t kind;
    /** The engine's device reaches it for sure: the engine was got for this memory, or it was
     * imported for this engine. Else (false) the driver is asked.
     */
    bool reached;
    /** It is memory of the engine's own device. Between two such places kernels do more than
     * between devices; nothing goes wrong where it is not said. */
    bool home;
} opal_umrddt_gpu_place_t;

/**
 * True if one of the driver's copies does a range of a layout, to or from one piece that is not
 * of the same device, and is preferred to a kernel. Looks at no more than 4096 pieces; needs no
 * driver.
 *
 * @param[in] start, end  of the packed bytes
 */
bool opal_umrddt_gpu_boxed(opal_iov_cache_layout_t *layout, uint64_t start, uint64_t end);

/** True if kernels find the blocks of a layout in a list (opal_umrddt_gpu_map_listed). */
bool opal_umrddt_gpu_listed(const opal_iov_cache_layout_t *layout);

/** Set what engines do. Before the first engine; later calls are ignored. */
void opal_umrddt_gpu_engine_params(const opal_umrddt_gpu_engine_params_t *params);

/**
 * The engine for memory of a device.
 *
 * @param[in]  memory  as opal_umrddt_gpu_classify said: DEVICE, MANAGED or PINNED
 * @param[out] engine  valid until opal_umrddt_gpu_engines_close
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE    no driver, or system memory
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory on the host or on the device
 * @retval OPAL_ERROR                the driver fails
 */
int opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                               opal_umrddt_gpu_engine_t **engine);

/** As opal_umrddt_gpu_settle, where it is not known that there is nothing to do. */
void opal_umrddt_gpu_settle_unknown(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * Wait for copies and memsets of this memory that CUDA names synchronous and that the device has
 * not finished: our streams do not wait for them. To be called for each message, after the
 * application has called MPI, and before anything reads or writes the memory.
 *
 * Memory of cuMemAlloc, and managed memory, gets SYNC_MEMOPS when it is first seen; from then on
 * CUDA's calls wait by themselves, and this costs nothing. Memory that has no such attribute
 * (of pools, mapped) costs a wait for the default streams each time: the legacy one and the calling
 * thread's, in the memory's context and in the current one. Memory of the CPU needs neither. A
 * stream capture of the application stays valid; what a default stream has is not waited for where
 * that would invalidate one.
 *
 * @param[in]     address  any byte of it
 * @param[in,out] memory   as opal_umrddt_gpu_classify just said
 */
static inline void opal_umrddt_gpu_settle(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    if (OPAL_UMRDDT_GPU_HOST != memory->kind && OPAL_UMRDDT_GPU_PINNED != memory->kind
        && !memory->sync_memops) {
        opal_umrddt_gpu_settle_unknown(address, memory);
    }
}

/** The engine's device (ordinal), and its context. */
int opal_umrddt_gpu_engine_device(const opal_umrddt_gpu_engine_t *engine);
CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine);

/**
 * False if the application has destroyed the engine's context: then no call may name it, not even
 * to ask, as drivers crash on such a context. Asks about a pointer. Where memory is known to be of
 * the context, the context is there, and nobody needs to ask.
 */
bool opal_umrddt_gpu_engine_is_there(const opal_umrddt_gpu_engine_t *engine);

/** Make the engine's context current, and put back what was. For the neighbours' driver calls. */
int opal_umrddt_gpu_engine_enter(opal_umrddt_gpu_engine_t *engine);
void opal_umrddt_gpu_engine_leave(opal_umrddt_gpu_engine_t *engine);

/**
 * Begin to copy stream positions @p start .. @p end - 1. The two streams have the same positions,
 * their layouts need have nothing else in common. The layouts must live until the copy is over.
 *
 * In the steady state (the layouts known, nothing pageable): no allocation, no walk of a layout.
 * Where no kernels for this device were built, the driver's copies do it, as many as it takes.
 *
 * @param[in]  engine  whose kernels and streams do it; its device must reach both places
 * @param[out] copy    the caller's until opal_umrddt_gpu_copy_test or _wait says that it is over
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        the range is not in the layouts
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 * @retval OPAL_ERROR                the driver fails
 */
int opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_place_t *from,
                         const opal_umrddt_gpu_place_t *to, uint64_t start, uint64_t end,
                         opal_umrddt_gpu_copy_t **copy);

/**
 * See whether a copy is over: looks at a word of memory, and only now and then asks the driver.
 *
 * @retval OPAL_SUCCESS            it is; @p copy is gone
 * @retval OPAL_ERR_RESOURCE_BUSY  not yet
 * @retval OPAL_ERROR              it failed (the device broke); @p copy is gone
 */
int opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy);

/** Wait for the end of a copy, without progress of anything else. @return as _test, never busy */
int opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy);

/** Copy the counters. */
void opal_umrddt_gpu_engine_stats(opal_umrddt_gpu_engine_stats_t *stats);

/**
 * Free all engines; no copy is under way. Tolerates that the application has destroyed its
 * contexts, or that the driver has been shut down (CUDA_ERROR_DEINITIALIZED).
 */
void opal_umrddt_gpu_engines_close(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_ENGINE_H */
