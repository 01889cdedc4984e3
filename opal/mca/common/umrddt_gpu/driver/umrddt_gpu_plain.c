/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A table of page numbers, each with one possible slot. The hook may run inside malloc or free, in
 * any thread: it takes no lock and allocates nothing.
 */

#include "umrddt_gpu_plain.h"
#include "umrddt_unmaps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"

uint64_t opal_umrddt_gpu_plain_pages[OPAL_UMRDDT_GPU_PLAIN_PAGES];
uint64_t opal_umrddt_gpu_plain_runs[OPAL_UMRDDT_GPU_PLAIN_RUNS];
static unsigned next_run;

/* Number of unmappings of any memory. */
static uint64_t unmapped;
static bool is_open;

static uint64_t page_of(uintptr_t address)
{
    return (uint64_t) address >> OPAL_UMRDDT_GPU_PLAIN_BITS;
}

/* Clear the slot unless it has another page by now. */
static void forget(uint64_t page)
{
    uint64_t *slot = opal_umrddt_gpu_plain_slot(page);

    if (page == __atomic_load_n(slot, __ATOMIC_RELAXED)) {
        (void) __atomic_compare_exchange_n(slot, &page, 0, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED);
    }
}

/* Clear the runs that contain one of these pages. */
static void forget_runs(uint64_t first, uint64_t last)
{
    const uint64_t mask = (UINT64_C(1) << OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT) - 1;
    unsigned i;

    for (i = 0; i < OPAL_UMRDDT_GPU_PLAIN_RUNS; ++i) {
        uint64_t run = __atomic_load_n(&opal_umrddt_gpu_plain_runs[i], __ATOMIC_RELAXED);
        const uint64_t low = run & mask, pages = run >> OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT;

        if (0 != run && first < low + pages && low <= last) {
            (void) __atomic_compare_exchange_n(&opal_umrddt_gpu_plain_runs[i], &run, 0, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        }
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
    /* First the counter, then the table; opal_umrddt_gpu_plain_learn uses the reverse order. */
    (void) __atomic_add_fetch(&unmapped, 1, __ATOMIC_SEQ_CST);
    forget_runs(first, last);
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

    /* This enables the hooks, as the registration caches of HCAs do. */
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
    forget_runs(0, UINT64_MAX);
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

/* ---------------------------------------------------------------------------------------------
 * Runs
 * ------------------------------------------------------------------------------------------- */

void opal_umrddt_gpu_plain_run_learn(uintptr_t first, uintptr_t last, uint64_t before)
{
    const uint64_t low = page_of(first), pages = page_of(last) - low + 1;
    const uint64_t mask = (UINT64_C(1) << OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT) - 1;
    uint64_t *slot = NULL;
    unsigned i;

    if (low > mask || 0 != pages >> (64 - OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT)
        || !__atomic_load_n(&is_open, __ATOMIC_RELAXED)) {
        return;
    }
    /* A longer run replaces its shorter version. */
    for (i = 0; i < OPAL_UMRDDT_GPU_PLAIN_RUNS && NULL == slot; ++i) {
        if (low == (__atomic_load_n(&opal_umrddt_gpu_plain_runs[i], __ATOMIC_RELAXED) & mask)) {
            slot = &opal_umrddt_gpu_plain_runs[i];
        }
    }
    if (NULL == slot) {
        slot = &opal_umrddt_gpu_plain_runs[__atomic_fetch_add(&next_run, 1, __ATOMIC_RELAXED)
                                           % OPAL_UMRDDT_GPU_PLAIN_RUNS];
    }
    __atomic_store_n(slot, low | pages << OPAL_UMRDDT_GPU_PLAIN_RUN_SHIFT, __ATOMIC_SEQ_CST);
    if (before != __atomic_load_n(&unmapped, __ATOMIC_SEQ_CST)) {
        forget_runs(low, low + pages - 1);
    }
}

/* One line of the kernel's list. */
typedef struct mapping_t {
    uint64_t begin, end;
    bool plain; /* readable by the CPU, and not the driver's */
} mapping_t;

static bool mapping_of(const char *line, mapping_t *mapping)
{
    unsigned long long begin, end;
    char readable;

    if (3 != sscanf(line, "%llx-%llx %c", &begin, &end, &readable)) {
        return false;
    }
    mapping->begin = begin;
    mapping->end = end;
    mapping->plain = 'r' == readable && NULL == strstr(line, "/dev/nvidia");
    return true;
}

/* The current run, and the addresses that are searched. */
typedef struct search_t {
    uint64_t begin, end;
    uint64_t first, last, before;
    bool both;
} search_t;

/* End of the run. */
static void run_over(search_t *search)
{
    const bool first = search->first - search->begin < search->end - search->begin;
    const bool last = search->last - search->begin < search->end - search->begin;

    if (first || last) {
        opal_umrddt_gpu_plain_run_learn(search->begin, search->end - 1, search->before);
    }
    search->both = search->both || (first && last);
}

static void add_mapping(search_t *search, const mapping_t *mapping)
{
    if (mapping->plain && mapping->begin == search->end) {
        search->end = mapping->end;
        return;
    }
    run_over(search);
    search->begin = mapping->plain ? mapping->begin : 0;
    search->end = mapping->plain ? mapping->end : 0;
}

bool opal_umrddt_gpu_plain_run_find(uintptr_t first, uintptr_t last)
{
    search_t search = {.first = first, .last = last, .before = opal_umrddt_gpu_plain_before()};
    FILE *maps = fopen("/proc/self/maps", "re");
    mapping_t mapping;
    bool whole = true; /* the next characters begin a line */
    char line[512];

    if (NULL == maps) {
        return false;
    }
    while (NULL != fgets(line, sizeof(line), maps)) {
        if (whole && mapping_of(line, &mapping)) {
            add_mapping(&search, &mapping);
        }
        whole = NULL != strchr(line, '\n');
    }
    run_over(&search);
    (void) fclose(maps);
    return search.both;
}
