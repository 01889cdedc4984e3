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

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"

/* No two kinds of memory share so many bytes: the CPU's pages, and a device's are larger. */
#define PAGE_BITS 12
/* A power of two. */
#define PAGES 1024u
/* Questions of a thread, of which one goes to the driver whatever is known. */
#define TRUSTED 4096u

/* Page numbers; 0: none (nobody has a page there). */
static uint64_t table[PAGES];
/* Unmappings, of whatever memory. */
static uint64_t unmapped;
static bool is_open;

static __thread unsigned questions;

static uint64_t *slot_of(uint64_t page)
{
    return &table[page * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* It is empty unless another page has it by now. */
static void forget(uint64_t page)
{
    uint64_t *slot = slot_of(page);

    if (page == __atomic_load_n(slot, __ATOMIC_RELAXED)) {
        (void) __atomic_compare_exchange_n(slot, &page, 0, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED);
    }
}

/* Before memory is unmapped. */
static void unmapping(void *address, size_t length, void *context, bool from_alloc)
{
    const uint64_t first = (uint64_t) (uintptr_t) address >> PAGE_BITS;
    const uint64_t last = ((uint64_t) (uintptr_t) address + length - 1) >> PAGE_BITS;
    uint64_t page;
    unsigned i;

    (void) context;
    (void) from_alloc;
    if (0 == length) {
        return;
    }
    /* First this, then the table; who learns does it the other way around. */
    (void) __atomic_add_fetch(&unmapped, 1, __ATOMIC_SEQ_CST);
    if (PAGES > last - first) {
        for (page = first; page <= last; ++page) {
            forget(page);
        }
        return;
    }
    for (i = 0; i < PAGES; ++i) {
        page = __atomic_load_n(&table[i], __ATOMIC_RELAXED);
        if (first <= page && page <= last) {
            forget(page);
        }
    }
}

int opal_umrddt_gpu_plain_open(void)
{
    const int hooks = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    _Static_assert(PAGES == UINT64_C(1) << (64 - 54), "the highest bits of the hash");
    /* Which turns the hooks on; the registration caches of network cards do the same. */
    if (OPAL_SUCCESS != mca_base_framework_open(&opal_memory_base_framework, 0)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (hooks != (hooks & opal_mem_hooks_support_level())
        || OPAL_SUCCESS != opal_mem_hooks_register_release(unmapping, NULL)) {
        (void) mca_base_framework_close(&opal_memory_base_framework);
        return OPAL_ERR_NOT_SUPPORTED;
    }
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
    (void) opal_mem_hooks_unregister_release(unmapping);
    (void) mca_base_framework_close(&opal_memory_base_framework);
    for (i = 0; i < PAGES; ++i) {
        __atomic_store_n(&table[i], 0, __ATOMIC_RELAXED);
    }
}

bool opal_umrddt_gpu_plain(uintptr_t address)
{
    const uint64_t page = (uint64_t) address >> PAGE_BITS;

    return page == __atomic_load_n(slot_of(page), __ATOMIC_RELAXED) && 0 != page
           && 0 != ++questions % TRUSTED;
}

uint64_t opal_umrddt_gpu_plain_before(void)
{
    return __atomic_load_n(&unmapped, __ATOMIC_SEQ_CST);
}

void opal_umrddt_gpu_plain_learn(uintptr_t address, bool plain, uint64_t before)
{
    const uint64_t page = (uint64_t) address >> PAGE_BITS;

    if (!plain || 0 == page || !__atomic_load_n(&is_open, __ATOMIC_RELAXED)) {
        forget(page);
        return;
    }
    __atomic_store_n(slot_of(page), page, __ATOMIC_SEQ_CST);
    if (before != __atomic_load_n(&unmapped, __ATOMIC_SEQ_CST)) {
        forget(page);
    }
}
