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
 * Plain memory: pages of which the driver has said that it does not know them.
 *
 * A driver takes longest for memory that is not its own, half a microsecond (field reports, and
 * "MPI Sessions for GPU applications" on what such questions cost). What it said of a page of the
 * CPU holds as long as the page stays mapped: nobody makes memory of a device where other memory
 * is. So pages are remembered, 1024 of them at most, until Open MPI's memory hooks tell that they
 * are unmapped. (Caches of GPU memory go wrong where an allocation is missed; here an unmapping
 * would have to be.)
 *
 * A page that is registered with the driver later (cuMemHostRegister) goes on being called plain:
 * it is the CPU's all the same. What the loader of libraries unmaps by itself (dlclose) nobody
 * tells.
 *
 * Any thread may call these, without a lock.
 */

#ifndef OPAL_UMRDDT_GPU_PLAIN_H
#define OPAL_UMRDDT_GPU_PLAIN_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * Begin to remember.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  nobody tells here what is unmapped: nothing is ever plain
 */
int opal_umrddt_gpu_plain_open(void);

/** Forget everything. What is asked or told afterwards has no effect. */
void opal_umrddt_gpu_plain_close(void);

/** Only for opal_umrddt_gpu_plain: page numbers, each at one place; 0: none (nobody has a page
 * there).
 */
#define OPAL_UMRDDT_GPU_PLAIN_PAGES 1024u
extern uint64_t opal_umrddt_gpu_plain_pages[OPAL_UMRDDT_GPU_PLAIN_PAGES];

/** No two kinds of memory share so many bytes: the CPU's pages, and a device's are larger. */
#define OPAL_UMRDDT_GPU_PLAIN_BITS 12

/** The place of a page. */
static inline uint64_t *opal_umrddt_gpu_plain_slot(uint64_t page)
{
    _Static_assert(OPAL_UMRDDT_GPU_PLAIN_PAGES == UINT64_C(1) << (64 - 54), "the highest bits");
    return &opal_umrddt_gpu_plain_pages[page * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/** True if the page of this address is known to be plain. In line, as each message asks. */
static inline bool opal_umrddt_gpu_plain(uintptr_t address)
{
    const uint64_t page = (uint64_t) address >> OPAL_UMRDDT_GPU_PLAIN_BITS;

    return page == __atomic_load_n(opal_umrddt_gpu_plain_slot(page), __ATOMIC_RELAXED) && 0 != page;
}

/** Before the driver is asked. @return what opal_umrddt_gpu_plain_learn wants to know */
uint64_t opal_umrddt_gpu_plain_before(void);

/**
 * The driver was asked about an address.
 *
 * @param[in] plain   it does not know it
 * @param[in] before  opal_umrddt_gpu_plain_before, before it was asked: what was unmapped since
 *                    may have been this page
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

/** Only for the functions below: each word is a run, its first page in the low RUN_SHIFT bits and
 * its pages above; 0: none. */
#define OPAL_UMRDDT_GPU_PLAIN_RUNS      16u
#define OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT 35
extern uint64_t opal_umrddt_gpu_plain_runs[OPAL_UMRDDT_GPU_PLAIN_RUNS];

/** True if a known run holds all from @p first to @p last, both included. */
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
 * Remember a run. Arguments as of opal_umrddt_gpu_plain_run, and @p before as of
 * opal_umrddt_gpu_plain_learn.
 */
void opal_umrddt_gpu_plain_run_learn(uintptr_t first, uintptr_t last, uint64_t before);

/**
 * Read in the kernel's list of mappings whether one run holds two addresses. Takes some hundred
 * microseconds; the runs of both are remembered.
 *
 * @return false also where the list cannot be read
 */
bool opal_umrddt_gpu_plain_run_find(uintptr_t first, uintptr_t last);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_PLAIN_H */
