/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A table of page numbers, each at one place. The hook may come in the middle of malloc or free, in
 * any thread: it takes no lock and no memory.
 */

#include "umrddt_gpu_plain.h"
#include "umrddt_unmaps.h"

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"

uint64_t opal_umrddt_gpu_plain_pages[OPAL_UMRDDT_GPU_PLAIN_PAGES];

/* Unmappings, of whatever memory. */
static uint64_t unmapped;
static bool is_open;

static uint64_t page_of(uintptr_t address)
{
    return (uint64_t) address >> OPAL_UMRDDT_GPU_PLAIN_BITS;
}

/* It is empty unless another page has it by now. */
static void forget(uint64_t page)
{
    uint64_t *slot = opal_umrddt_gpu_plain_slot(page);

    if (page == __atomic_load_n(slot, __ATOMIC_RELAXED)) {
        (void) __atomic_compare_exchange_n(slot, &page, 0, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED);
    }
}

/* Before memory is unmapped. */
static void unmapping(void *address, size_t length, void *context, bool from_alloc)
{
    const uint64_t first = page_of((uintptr_t) address);
    const uint64_t last = page_of((uintptr_t) address + length - 1);
    uint64_t page;
    unsigned i;

    (void) context;
    (void) from_alloc;
    if (0 == length) {
        return;
    }
    /* First this, then the table; who learns does it the other way around. */
    (void) __atomic_add_fetch(&unmapped, 1, __ATOMIC_SEQ_CST);
    if (OPAL_UMRDDT_GPU_PLAIN_PAGES > last - first) {
        for (page = first; page <= last; ++page) {
            forget(page);
        }
        return;
    }
    for (i = 0; i < OPAL_UMRDDT_GPU_PLAIN_PAGES; ++i) {
        page = __atomic_load_n(&opal_umrddt_gpu_plain_pages[i], __ATOMIC_RELAXED);
        if (first <= page && page <= last) {
            forget(page);
        }
    }
}

int opal_umrddt_gpu_plain_open(void)
{
    const int hooks = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    /* Which turns the hooks on; the registration caches of network cards do the same. */
    if (OPAL_SUCCESS != mca_base_framework_open(&opal_memory_base_framework, 0)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (hooks != (hooks & opal_mem_hooks_support_level())
        || OPAL_SUCCESS != opal_mem_hooks_register_release(unmapping, NULL)) {
        (void) mca_base_framework_close(&opal_memory_base_framework);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    opal_umrddt_unmaps_open();
    __atomic_store_n(&is_open, true, __ATOMIC_SEQ_CST);
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_plain_close(void)
{
    unsigned i;

    if (!is_open) {
        return;
    }
    __atomic_store_n(&is_open, false, __ATOMIC_SEQ_CST);
    opal_umrddt_unmaps_close();
    (void) opal_mem_hooks_unregister_release(unmapping);
    (void) mca_base_framework_close(&opal_memory_base_framework);
    for (i = 0; i < OPAL_UMRDDT_GPU_PLAIN_PAGES; ++i) {
        __atomic_store_n(&opal_umrddt_gpu_plain_pages[i], 0, __ATOMIC_RELAXED);
    }
}

uint64_t opal_umrddt_gpu_plain_before(void)
{
    return __atomic_load_n(&unmapped, __ATOMIC_SEQ_CST);
}

void opal_umrddt_gpu_plain_learn(uintptr_t address, bool plain, uint64_t before)
{
    const uint64_t page = page_of(address);

    if (!plain || 0 == page || !__atomic_load_n(&is_open, __ATOMIC_RELAXED)) {
        forget(page);
        return;
    }
    __atomic_store_n(opal_umrddt_gpu_plain_slot(page), page, __ATOMIC_SEQ_CST);
    if (before != __atomic_load_n(&unmapped, __ATOMIC_SEQ_CST)) {
        forget(page);
    }
}
