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
 * Finds the CUDA driver and the memory kind of buffers. Read pml_umrddt_gpu.h first.
 */

#include "ompi_config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu_stats.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

/**
 * Smallest unit of one memory kind, bytes: a page of system memory. Pages of devices are larger.
 */
#define PAGE UINT64_C(4096)

void mca_pml_umrddt_look_at(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    uint64_t before = opal_umrddt_gpu_plain_before();

    if (opal_umrddt_gpu_plain((uintptr_t) address)) {
        memset(memory, 0, sizeof(*memory));
        return;
    }
    if (OPAL_LIKELY(OPAL_SUCCESS
                    == opal_umrddt_gpu_classify((void *) (uintptr_t) address, memory))) {
        opal_umrddt_gpu_plain_learn((uintptr_t) address, OPAL_UMRDDT_GPU_HOST == memory->kind,
                                    before);
        opal_umrddt_gpu_settle(address, memory);
    } else {
        opal_umrddt_gpu_presume((void *) (uintptr_t) address, memory);
    }
}

/** Begin of the heap below the break; UINTPTR_MAX: unknown, treated as empty. */
static uintptr_t heap = UINTPTR_MAX;

static void find_heap(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned long begin;

    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        if (NULL != strstr(line, "[heap]") && 1 == sscanf(line, "%lx", &begin)) {
            heap = begin;
        }
    }
    if (NULL != maps) {
        fclose(maps);
    }
}

/** The calling thread's stack, as created by the system; empty if unknown. */
static __thread struct {
    bool known;
    uintptr_t low, high;
} stack;

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;

    stack.known = true;
    if (0 == pthread_getattr_np(pthread_self(), &attributes)) {
        if (0 == pthread_attr_getstack(&attributes, &low, &size)) {
            stack.low = (uintptr_t) low;
            stack.high = (uintptr_t) low + size;
        }
        pthread_attr_destroy(&attributes);
    }
}

/** Returns true if [@p first, @p last] is on the heap or the stack. Remembers such a run. */
static bool on_heap_or_stack(uintptr_t first, uintptr_t last)
{
    const uint64_t before = opal_umrddt_gpu_plain_before();
    uintptr_t frame = (uintptr_t) __builtin_frame_address(0);

    if (heap <= first && last < (uintptr_t) sbrk(0)) {
        opal_umrddt_gpu_plain_run_learn(heap, (uintptr_t) sbrk(0) - 1, before);
        return true;
    }
    if (OPAL_UNLIKELY(!stack.known)) {
        find_stack();
    }
    /* A user-level thread may run on another stack. Then the frame is not in this one. */
    if (stack.low <= frame && frame <= first && last < stack.high) {
        opal_umrddt_gpu_plain_run_learn(frame, stack.high - 1, before);
        return true;
    }
    return false;
}

/** Get the lowest and the highest byte of a non-empty buffer. */
static void span(const void *buf, size_t count, const ompi_datatype_t *datatype, uintptr_t *first,
                 uintptr_t *last)
{
    const opal_datatype_t *type = &datatype->super;
    const ptrdiff_t more = (ptrdiff_t) (count - 1) * (type->ub - type->lb);

    *first = (uintptr_t) buf + (uintptr_t) (type->true_lb + (0 > more ? more : 0));
    *last = (uintptr_t) buf + (uintptr_t) (type->true_ub + (0 < more ? more : 0)) - 1;
}

bool mca_pml_umrddt_known_run_pieces(const void *buf, size_t count, const ompi_datatype_t *datatype)
{
    uintptr_t first, last;

    span(buf, count, datatype, &first, &last);
    return opal_umrddt_gpu_plain_run(first, last);
}

bool mca_pml_umrddt_surely_system_new(const void *buf, size_t count,
                                      const ompi_datatype_t *datatype)
{
    const uint64_t before = opal_umrddt_gpu_plain_before();
    const uintptr_t address = (uintptr_t) buf + (uintptr_t) datatype->super.true_lb;
    uintptr_t first = address, last = address;
    bool surely;

    if (!mca_pml_umrddt_is_contiguous(datatype, count)) {
        span(buf, count, datatype, &first, &last);
    }
    surely = on_heap_or_stack(first, last);
    if (surely) {
        opal_umrddt_gpu_plain_learn(address, true, before);
    }
    return surely;
}

/** Returns true if [@p first, @p last], which is not in a known run, is in an unknown one. If both
 * ends are in different known runs, the answer is false without a lookup for each message. */
static bool in_new_run(uintptr_t first, uintptr_t last)
{
    return on_heap_or_stack(first, last)
           || (!(opal_umrddt_gpu_plain_run(first, first) && opal_umrddt_gpu_plain_run(last, last))
               && opal_umrddt_gpu_plain_run_find(first, last));
}

/** Returns true for device memory mapped with cuMemMap: it has neither a context nor a pool. */
static bool is_mapped(const opal_umrddt_gpu_memory_t *memory)
{
    return OPAL_UMRDDT_GPU_DEVICE == memory->kind && NULL == memory->ctx && NULL == memory->pool
           && 0 != memory->size;
}

/** Returns true if [@p first, @p last] is mapped memory of one device, in any number of parts. MPI
 * treats that as one allocation. The synchronization for @p memory (opal_umrddt_gpu_settle) covers
 * the whole device, so the other parts need none. */
static bool in_mapped(const opal_umrddt_gpu_memory_t *memory, uintptr_t first, uintptr_t last)
{
    opal_umrddt_gpu_memory_t part = *memory;
    uint64_t address = first;

    while (is_mapped(&part) && part.device == memory->device && address <= last) {
        if (OPAL_SUCCESS != opal_umrddt_gpu_classify((void *) (uintptr_t) address, &part)) {
            return false;
        }
        address = part.base + part.size;
    }
    return is_mapped(&part) && part.device == memory->device;
}

/** Returns true if [@p first, @p last], of which one byte is in @p memory, is completely in it. */
static bool in_one(const opal_umrddt_gpu_memory_t *memory, uintptr_t first, uintptr_t last)
{
    opal_umrddt_gpu_memory_t low, high;

    if (OPAL_UMRDDT_GPU_HOST != memory->kind && 0 != memory->size) {
        return (first - memory->base < memory->size && last - memory->base < memory->size)
               || (is_mapped(memory) && in_mapped(memory, first, last));
    }
    if (OPAL_UMRDDT_GPU_HOST == memory->kind && opal_umrddt_gpu_plain_run(first, last)) {
        return true;
    }
    mca_pml_umrddt_look_at(first, &low);
    mca_pml_umrddt_look_at(last, &high);
    if (low.kind != memory->kind || high.kind != memory->kind) {
        return false;
    }
    /* A driver that reports no bounds reports the allocation, which then must contain both ends. */
    return OPAL_UMRDDT_GPU_HOST == memory->kind
               ? in_new_run(first, last)
               : low.buffer_id == memory->buffer_id && high.buffer_id == memory->buffer_id;
}

uint64_t mca_pml_umrddt_look_along(uint64_t address, uint64_t end, opal_umrddt_gpu_memory_t *memory)
{
    opal_umrddt_gpu_memory_t there;
    uint64_t next;

    mca_pml_umrddt_look_at(address, memory);
    if (OPAL_UMRDDT_GPU_HOST != memory->kind) {
        next = memory->base + memory->size;
        return 0 == memory->size || end < next ? end : next;
    }
    next = (address / PAGE + 1) * PAGE;
    if (end <= next || opal_umrddt_gpu_plain_run(address, end - 1)) {
        return end;
    }
    mca_pml_umrddt_look_at(end - 1, &there);
    return OPAL_UMRDDT_GPU_HOST == there.kind ? end : next;
}

/** Add an allocation to the result of a lookup. */
static void note(const opal_umrddt_gpu_memory_t *memory, bool *first, bool *others,
                 mca_pml_umrddt_where_t *where)
{
    if (*first) {
        where->memory = *memory;
        *first = false;
    } else if (memory->kind != where->memory.kind || memory->buffer_id != where->memory.buffer_id) {
        *others = true;
        if (OPAL_UMRDDT_GPU_DEVICE == memory->kind && !mca_pml_umrddt_on_device(where)) {
            where->memory = *memory;
        }
    }
}

/** Look up all pieces of a buffer; offsets count from @p buf. */
static void look_at_pieces(uint64_t buf, const opal_iov_cache_layout_t *layout,
                           mca_pml_umrddt_where_t *where)
{
    opal_umrddt_gpu_memory_t memory = {.size = 0};
    opal_iov_cache_iov_t iovs[32];
    uint64_t position = 0, begin = 0, known = 0; /* memory describes [begin, known) */
    bool first = true, others = false;

    while (position < layout->size) {
        size_t count = opal_iov_cache_form_iovs(layout->form, position, layout->size, iovs,
                                                sizeof(iovs) / sizeof(iovs[0]), &position);

        for (size_t i = 0; i < count; ++i) {
            uint64_t address = buf + (uint64_t) iovs[i].offset;
            const uint64_t end = address + iovs[i].length;

            while (address < end) {
                if (address - begin < known - begin) {
                    address = known;
                    continue;
                }
                known = mca_pml_umrddt_look_along(address, end, &memory);
                begin = address;
                address = known;
                note(&memory, &first, &others, where);
                if (OPAL_UMRDDT_GPU_HOST != memory.kind && 0 != memory.size) {
                    begin = memory.base;
                    known = memory.base + memory.size;
                } else if (OPAL_UMRDDT_GPU_HOST == memory.kind) {
                    begin = begin / PAGE * PAGE;
                    known = (known + PAGE - 1) / PAGE * PAGE;
                }
            }
        }
    }
    where->mixed = others && mca_pml_umrddt_on_device(where);
    if (others && !where->mixed) {
        /* The CPU may access all of it. Its owner is irrelevant. */
        memset(&where->memory, 0, sizeof(where->memory));
    }
}

void mca_pml_umrddt_look(const void *buf, size_t count, ompi_datatype_t *datatype,
                         mca_pml_umrddt_where_t *where)
{
    const uint64_t address = (uint64_t) (uintptr_t) buf + (uint64_t) datatype->super.true_lb;
    const uint64_t before = opal_umrddt_gpu_plain_before();
    opal_iov_cache_layout_t *layout;
    uintptr_t first, last;

    where->memory.kind = OPAL_UMRDDT_GPU_HOST;
    where->mixed = false;
    if (NULL == mca_pml_umrddt.gpu || 0 == count * datatype->super.size) {
        memset(&where->memory, 0, sizeof(where->memory));
        return;
    }
    span(buf, count, datatype, &first, &last);
    if (!opal_umrddt_gpu_in_use()) {
        memset(&where->memory, 0, sizeof(where->memory));
        opal_umrddt_gpu_plain_learn((uintptr_t) address, true, before);
        if (!mca_pml_umrddt_known_run(buf, count, datatype)) {
            (void) in_new_run(first, last);
        }
        return;
    }
    mca_pml_umrddt_look_at(address, &where->memory);
    if (OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count)
                    || in_one(&where->memory, first, last))
        || OMPI_SUCCESS != mca_pml_umrddt_layout(datatype, count, &layout)) {
        return;
    }
    look_at_pieces((uint64_t) (uintptr_t) buf, layout, where);
    OBJ_RELEASE(layout);
}

/** Pass the parameters to the GPU engines. */
static void set_params(void)
{
    const mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    opal_umrddt_gpu_engine_params_t engine = {
        .how = params->gpu_scheme,
        .scheme = params->gpu_kernel,
        .shape_cache = params->gpu_list_cache,
        .staging = params->gpu_pinned,
        .staging_chunk = params->gpu_chunk,
        .graphs = params->gpu_graphs,
    };

    opal_umrddt_gpu_engine_params(&engine);
}

void mca_pml_umrddt_gpu_stats(mca_pml_umrddt_gpu_stats_t *stats)
{
    opal_umrddt_gpu_driver_stats(&stats->driver);
    opal_umrddt_gpu_engine_stats(&stats->engine);
    opal_umrddt_gpu_staging_stats(&stats->staging);
    opal_umrddt_gpu_scratch_stats(&stats->scratch);
    opal_umrddt_gpu_ipc_stats(&stats->ipc);
    stats->kept = mca_pml_umrddt_stage_kept();
}

/** Packed schemes that are enabled. */
static uint16_t pack_schemes(void)
{
    bool by_hca = NULL != mca_pml_umrddt.hca && mca_pml_umrddt.params.gpu_hca;

    switch (mca_pml_umrddt.params.scheme) {
    case MCA_PML_UMRDDT_SCHEME_AUTO:
        return (uint16_t) (MCA_PML_UMRDDT_BITS_PACK & ~(by_hca ? 0 : MCA_PML_UMRDDT_BIT_PACK_GDR));
    case MCA_PML_UMRDDT_SCHEME_PACK_GDR:
        return by_hca ? MCA_PML_UMRDDT_BIT_PACK_GDR : 0;
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
        return MCA_PML_UMRDDT_BIT_PACK_STAGED;
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return MCA_PML_UMRDDT_BIT_PACK_HOST;
    default:
        return 0;
    }
}

void mca_pml_umrddt_gpu_open(void)
{
    if (0 == (MCA_PML_UMRDDT_MEMORY_GPU & mca_pml_umrddt.params.memory)) {
        mca_pml_umrddt.gpu_why_not = "pml_umrddt_memory is host";
        return;
    }
    /* Loads the library but calls no function of it. The application decides whether CUDA is used.
     */
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&mca_pml_umrddt.gpu)) {
        mca_pml_umrddt.gpu = NULL;
        mca_pml_umrddt.gpu_why_not = opal_umrddt_gpu_driver_why_not();
        return;
    }
    set_params();
    find_heap();
    if (mca_pml_umrddt.params.system_memory_cache) {
        (void) opal_umrddt_gpu_plain_open(); /* on failure every message queries the driver */
    }
    if (MCA_PML_UMRDDT_SCHEME_AUTO == mca_pml_umrddt.params.scheme
        || MCA_PML_UMRDDT_SCHEME_IPC == mca_pml_umrddt.params.scheme) {
        mca_pml_umrddt.schemes |= MCA_PML_UMRDDT_BIT_IPC;
        mca_pml_umrddt_ipc_open();
    }
    mca_pml_umrddt.schemes |= pack_schemes();
    opal_umrddt_gpu_scratch_bound(mca_pml_umrddt.params.pack_scratch);
    mca_pml_umrddt_base_gpu_open();
}

void mca_pml_umrddt_gpu_close(void)
{
    mca_pml_umrddt_stage_fini(); /* wide elements are staged without a GPU, too */
    if (NULL == mca_pml_umrddt.gpu) {
        return;
    }
    /* Imports belong to engines, and the buffers of the pool to their contexts. */
    mca_pml_umrddt_ipc_close();
    mca_pml_umrddt_pack_close();
    opal_umrddt_gpu_staging_close();
    opal_umrddt_gpu_engines_close();
    opal_umrddt_gpu_plain_close();
    mca_pml_umrddt_base_gpu_close();
    mca_pml_umrddt.gpu = NULL;
}
