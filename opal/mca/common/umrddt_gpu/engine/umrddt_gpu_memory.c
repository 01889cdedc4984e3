/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The memory kind of buffers; see umrddt_gpu_memory.h.
 */

#include "umrddt_gpu_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opal/constants.h"

#include "umrddt_gpu_engine.h"

/**
 * Smallest unit of one memory kind, bytes: a page of system memory. Pages of devices are larger.
 */
#define PAGE UINT64_C(4096)

void opal_umrddt_gpu_look_at(uint64_t address, opal_umrddt_gpu_memory_t *memory)
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
        opal_umrddt_gpu_sync_default(address, memory);
    } else {
        opal_umrddt_gpu_presume((void *) (uintptr_t) address, memory);
    }
}

bool opal_umrddt_gpu_is_system(uint64_t address)
{
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_CONTEXT,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    const uint64_t before = opal_umrddt_gpu_plain_before();
    const opal_umrddt_gpu_driver_t *driver;
    CUcontext ctx = NULL;
    uint64_t type = 0, managed = 0; /* wider than the driver's values */
    void *data[] = {&type, &ctx, &managed};
    CUresult rc;

    if (opal_umrddt_gpu_plain((uintptr_t) address)) {
        return true;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return false;
    }
    rc = driver->cuPointerGetAttributes(3, attributes, data, address);
    if (CUDA_ERROR_INVALID_VALUE == rc || (CUDA_SUCCESS == rc && 0 == (uint32_t) type)) {
        opal_umrddt_gpu_plain_learn((uintptr_t) address, true, before);
        return true;
    }
    /* Mapped system memory, and that of a pool, has no context, but access rights. */
    return CUDA_SUCCESS == rc && CU_MEMORYTYPE_HOST == (int) type && 0 == (uint32_t) managed
           && NULL != ctx;
}

/** Begin of the heap below the break; UINTPTR_MAX: unknown, treated as empty. */
static uintptr_t heap = UINTPTR_MAX;

/**
 * Buffers from here on are not on the heap. It is the lowest buffer that was found beyond the break
 * by more than FAR, such as one in GPU memory. The break cannot pass memory that is mapped. If the
 * memory is unmapped and the break passes it, the driver is asked about the part beyond.
 */
static uintptr_t beyond_heap = UINTPTR_MAX;
#define FAR ((uintptr_t) 1 << 30)

void opal_umrddt_gpu_memory_open(void)
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

/**
 * The program break. Not by sbrk(0): UCX replaces sbrk, and its sbrk(0) sets the break to the value
 * that it has just read. That undoes what malloc in another thread does in between, and two blocks
 * get the same memory. The system call with address 0 only reads.
 */
static uintptr_t program_break(void)
{
    return (uintptr_t) syscall(SYS_brk, 0);
}

/** Returns true if [@p first, @p last] is on the heap or the stack. Remembers such a run. */
static bool on_heap_or_stack(uintptr_t first, uintptr_t last)
{
    const uint64_t before = opal_umrddt_gpu_plain_before();
    uintptr_t frame = (uintptr_t) __builtin_frame_address(0);

    if (heap <= first && first < __atomic_load_n(&beyond_heap, __ATOMIC_RELAXED)) {
        const uintptr_t end = program_break();

        if (last < end) {
            opal_umrddt_gpu_plain_run_learn(heap, end - 1, before);
            return true;
        }
        if (first > end && first - end > FAR) {
            __atomic_store_n(&beyond_heap, first, __ATOMIC_RELAXED);
        }
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
static void span(const void *buf, size_t count, const opal_datatype_t *type, uintptr_t *first,
                 uintptr_t *last)
{
    const ptrdiff_t more = (ptrdiff_t) (count - 1) * (type->ub - type->lb);

    *first = (uintptr_t) buf + (uintptr_t) (type->true_lb + (0 > more ? more : 0));
    *last = (uintptr_t) buf + (uintptr_t) (type->true_ub + (0 < more ? more : 0)) - 1;
}

bool opal_umrddt_gpu_known_run_pieces(const void *buf, size_t count, const opal_datatype_t *type)
{
    uintptr_t first, last;

    span(buf, count, type, &first, &last);
    return opal_umrddt_gpu_plain_run(first, last);
}

bool opal_umrddt_gpu_surely_system_new(const void *buf, size_t count, const opal_datatype_t *type)
{
    const uint64_t before = opal_umrddt_gpu_plain_before();
    const uintptr_t address = (uintptr_t) buf + (uintptr_t) type->true_lb;
    uintptr_t first = address, last = address;
    bool surely;

    if (!opal_umrddt_gpu_is_contiguous(type, count)) {
        span(buf, count, type, &first, &last);
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
 * treats that as one allocation. The synchronization for @p memory (opal_umrddt_gpu_sync_default)
 * covers the whole device, so the other parts need none. */
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
    opal_umrddt_gpu_look_at(first, &low);
    opal_umrddt_gpu_look_at(last, &high);
    if (low.kind != memory->kind || high.kind != memory->kind) {
        return false;
    }
    /* A driver that reports no bounds reports the allocation, which then must contain both ends. */
    return OPAL_UMRDDT_GPU_HOST == memory->kind
               ? in_new_run(first, last)
               : low.buffer_id == memory->buffer_id && high.buffer_id == memory->buffer_id;
}

uint64_t opal_umrddt_gpu_look_along(uint64_t address, uint64_t end,
                                    opal_umrddt_gpu_memory_t *memory)
{
    opal_umrddt_gpu_memory_t there;
    uint64_t next;

    opal_umrddt_gpu_look_at(address, memory);
    if (OPAL_UMRDDT_GPU_HOST != memory->kind) {
        next = memory->base + memory->size;
        return 0 == memory->size || end < next ? end : next;
    }
    next = (address / PAGE + 1) * PAGE;
    if (end <= next || opal_umrddt_gpu_plain_run(address, end - 1)) {
        return end;
    }
    opal_umrddt_gpu_look_at(end - 1, &there);
    return OPAL_UMRDDT_GPU_HOST == there.kind ? end : next;
}

/** Add an allocation to the result of a lookup. */
static void note(const opal_umrddt_gpu_memory_t *memory, bool *first, bool *others,
                 opal_umrddt_gpu_where_t *where)
{
    if (*first) {
        where->memory = *memory;
        *first = false;
    } else if (memory->kind != where->memory.kind || memory->buffer_id != where->memory.buffer_id) {
        *others = true;
        if (OPAL_UMRDDT_GPU_DEVICE == memory->kind && !opal_umrddt_gpu_on_device(where)) {
            where->memory = *memory;
        }
    }
}

void opal_umrddt_gpu_look_pieces(const void *buffer, const opal_iov_cache_layout_t *layout,
                                 opal_umrddt_gpu_where_t *where)
{
    const uint64_t buf = (uint64_t) (uintptr_t) buffer;
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
                known = opal_umrddt_gpu_look_along(address, end, &memory);
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
    where->mixed = others && opal_umrddt_gpu_on_device(where);
    if (others && !where->mixed) {
        /* The CPU may access all of it. Its owner is irrelevant. */
        memset(&where->memory, 0, sizeof(where->memory));
    }
}

bool opal_umrddt_gpu_look_again(const void *buf, size_t count, const opal_datatype_t *type,
                                opal_umrddt_gpu_where_t *where)
{
    uintptr_t first, last;

    if (0 == count * type->size) {
        return false;
    }
    span(buf, count, type, &first, &last);
    where->mixed = false;
    if (!opal_umrddt_gpu_classify_again(first, last, &where->memory)) {
        return false;
    }
    opal_umrddt_gpu_sync_default(first, &where->memory);
    return true;
}

bool opal_umrddt_gpu_look(const void *buf, size_t count, const opal_datatype_t *type,
                          opal_umrddt_gpu_where_t *where)
{
    const uint64_t address = (uint64_t) (uintptr_t) buf + (uint64_t) type->true_lb;
    const uint64_t before = opal_umrddt_gpu_plain_before();
    uintptr_t first, last;

    where->memory.kind = OPAL_UMRDDT_GPU_HOST;
    where->mixed = false;
    if (0 == count * type->size) {
        memset(&where->memory, 0, sizeof(where->memory));
        return true;
    }
    span(buf, count, type, &first, &last);
    if (!opal_umrddt_gpu_in_use()) {
        memset(&where->memory, 0, sizeof(where->memory));
        opal_umrddt_gpu_plain_learn((uintptr_t) address, true, before);
        if (!opal_umrddt_gpu_known_run(buf, count, type)) {
            (void) in_new_run(first, last);
        }
        return true;
    }
    opal_umrddt_gpu_look_at(address, &where->memory);
    return OPAL_LIKELY(opal_umrddt_gpu_is_contiguous(type, count)
                       || in_one(&where->memory, first, last));
}
