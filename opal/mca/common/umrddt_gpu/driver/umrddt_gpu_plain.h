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

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_PLAIN_H */
