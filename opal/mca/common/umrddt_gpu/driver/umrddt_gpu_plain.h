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
 * Cache of plain memory: pages that are unknown to the driver.
 *
 * A pointer query takes longest for memory that is not the driver's, half a microsecond (field
 * reports, and "MPI Sessions for GPU applications" on the cost of such queries). The answer for a
 * page of system memory holds as long as the page stays mapped. So up to 1024 pages are cached
 * until Open MPI's memory hooks report that they are unmapped. (Caches of GPU memory fail if they
 * miss an allocation; this one would fail if it missed an unmapping.)
 *
 * A page that is registered with the driver later (cuMemHostRegister) still counts as plain: it is
 * system memory in any case. Unmappings by the dynamic loader itself (dlclose) are not reported.
 *
 * Callable from any thread, without a lock.
 */

#ifndef OPAL_UMRDDT_GPU_PLAIN_H
#define OPAL_UMRDDT_GPU_PLAIN_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * Enable the cache.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  unmappings are not reported here: no page is ever plain
 */
int opal_umrddt_gpu_plain_open(void);

/** Clear and disable the cache. Later calls have no effect. */
void opal_umrddt_gpu_plain_close(void);

/**
 * Only for opal_umrddt_gpu_plain: page numbers, each with one possible slot; 0: empty (page 0 is
 * never mapped).
 */
#define OPAL_UMRDDT_GPU_PLAIN_PAGES 1024u
extern uint64_t opal_umrddt_gpu_plain_pages[OPAL_UMRDDT_GPU_PLAIN_PAGES];

/**
 * Memory of two kinds never shares a block of this size: pages of the CPU; those of a device are
 * larger.
 */
#define OPAL_UMRDDT_GPU_PLAIN_BITS 12

/** The slot of a page. */
static inline uint64_t *opal_umrddt_gpu_plain_slot(uint64_t page)
{
    _Static_assert(OPAL_UMRDDT_GPU_PLAIN_PAGES == UINT64_C(1) << (64 - 54), "the highest bits");
    return &opal_umrddt_gpu_plain_pages[page * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/** True if the page of this address is known to be plain. Inline, since each message calls it. */
static inline bool opal_umrddt_gpu_plain(uintptr_t address)
{
    const uint64_t page = (uint64_t) address >> OPAL_UMRDDT_GPU_PLAIN_BITS;

    return page == __atomic_load_n(opal_umrddt_gpu_plain_slot(page), __ATOMIC_RELAXED) && 0 != page;
}

/** Call before the driver query. @return argument for opal_umrddt_gpu_plain_learn */
uint64_t opal_umrddt_gpu_plain_before(void);

/**
 * Store the result of a driver query for an address.
 *
 * @param[in] plain   unknown to the driver
 * @param[in] before  result of opal_umrddt_gpu_plain_before before the query: an unmapping since
 *                    then may concern this page
 */
void opal_umrddt_gpu_plain_learn(uintptr_t address, bool plain, uint64_t before);

/* ---------------------------------------------------------------------------------------------
 * Runs
 *
 * A buffer in pieces may be larger than a page, and its pieces may lie in several allocations. A
 * *run* is a range of addresses without holes that the CPU reads: the heap, a stack, or mappings of
 * the process that follow each other. No memory of a device is within one, so a buffer that begins
 * and ends in the same run is plain throughout. Runs are remembered as pages are.
 * ------------------------------------------------------------------------------------------- */

/**
 * Only for the functions below: each word is a run, its first page in the low RUN_SHIFT bits and
 * the number of pages above; 0: empty.
 */
#define OPAL_UMRDDT_GPU_PLAIN_RUNS      16u
#define OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT 35
extern uint64_t opal_umrddt_gpu_plain_runs[OPAL_UMRDDT_GPU_PLAIN_RUNS];

/** True if a cached run contains all from @p first to @p last, both included. */
static inline bool opal_umrddt_gpu_plain_run(uintptr_t first, uintptr_t last)
{
    const uint64_t page = (uint64_t) first >> OPAL_UMRDDT_GPU_PLAIN_BITS;
    const uint64_t end = (uint64_t) last >> OPAL_UMRDDT_GPU_PLAIN_BITS;

    for (unsigned i = 0; i < OPAL_UMRDDT_GPU_PLAIN_RUNS; ++i) {
        const uint64_t run = __atomic_load_n(&opal_umrddt_gpu_plain_runs[i], __ATOMIC_RELAXED);
        const uint64_t low = run & ((UINT64_C(1) << OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT) - 1);
        const uint64_t pages = run >> OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT;

        if (page - low < pages && end - low < pages) {
            return true;
        }
    }
    return false;
}

/**
 * Store a run. Arguments as for opal_umrddt_gpu_plain_run, and @p before as for
 * opal_umrddt_gpu_plain_learn.
 */
void opal_umrddt_gpu_plain_run_learn(uintptr_t first, uintptr_t last, uint64_t before);

/**
 * Read the kernel's list of mappings to find out whether one run contains both addresses. Takes
 * some hundred microseconds; the runs of both are cached.
 *
 * @return false also if the list cannot be read
 */
bool opal_umrddt_gpu_plain_run_find(uintptr_t first, uintptr_t last);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_PLAIN_H */
