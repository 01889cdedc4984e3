/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Classification of pointers. Each thread caches the last few allocations, so no lock is needed. A
 * cached range is used only if the driver still returns its BUFFER_ID for the address.
 */

#include "umrddt_gpu_driver.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "opal/constants.h"

#define RANGES 8

/* Allocations that are held, by BUFFER_ID: the id, then the number of holders. The bits of an id
 * without holders have no meaning. */
#define HOLDS      64
#define HOLD_SHIFT 16
#define HOLD_COUNT ((UINT64_C(1) << HOLD_SHIFT) - 1)
static uint64_t held_ids[HOLDS];

static __thread opal_umrddt_gpu_memory_t ranges[RANGES];
static __thread unsigned next_range;

static opal_umrddt_gpu_driver_stats_t counts;

static void count(uint64_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/*
 * Queried attributes. An old driver may not support those after BASIC, and then rejects all of
 * them.
 */
enum {
    BASIC = 6,
    ALL = 11
};
static CUpointer_attribute attributes[ALL] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                              CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                              CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                              CU_POINTER_ATTRIBUTE_CONTEXT,
                                              CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                              CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                              CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                              CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                                              CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
static int known = ALL;

/* Output of the driver. Wider than some of its values, so all fields must be 0 before. */
typedef struct answers_t {
    uint32_t type;
    uint64_t buffer_id;
    uint32_t managed;
    int32_t device;
    CUcontext ctx;
    uint32_t sync_memops;
    CUdeviceptr base;
    size_t size;
    uint32_t legacy_ipc;
    uint64_t handles;
    CUmemoryPool pool;
} answers_t;

static CUresult query(const opal_umrddt_gpu_driver_t *driver, uintptr_t address, answers_t *answers)
{
    void *data[ALL] = {&answers->type,    &answers->buffer_id, &answers->managed,
                       &answers->device,  &answers->ctx,       &answers->sync_memops,
                       &answers->base,    &answers->size,      &answers->legacy_ipc,
                       &answers->handles, &answers->pool};
    int n = __atomic_load_n(&known, __ATOMIC_RELAXED);
    CUresult rc;

    memset(answers, 0, sizeof(*answers));
    count(&counts.queries);
    rc = driver->cuPointerGetAttributes((unsigned) n, attributes, data, address);
    if (CUDA_ERROR_INVALID_VALUE == rc && ALL == n) {
        memset(answers, 0, sizeof(*answers));
        count(&counts.queries);
        rc = driver->cuPointerGetAttributes(BASIC, attributes, data, address);
        if (CUDA_SUCCESS == rc) {
            __atomic_store_n(&known, BASIC, __ATOMIC_RELAXED);
        }
    }
    return rc;
}

/* Results that mean that no device memory exists, or that the driver is shut down. */
static bool is_unknown(CUresult rc)
{
    return CUDA_ERROR_NOT_INITIALIZED == rc || CUDA_ERROR_DEINITIALIZED == rc
           || CUDA_ERROR_NO_DEVICE == rc || CUDA_ERROR_INVALID_VALUE == rc;
}

static bool holds(const opal_umrddt_gpu_memory_t *range, uintptr_t address)
{
    return address - range->base < range->size;
}

uint64_t opal_umrddt_gpu_memory_hold(const opal_umrddt_gpu_memory_t *memory, bool threads)
{
    uint64_t *slot, id, held, next;

    if (OPAL_UMRDDT_GPU_DEVICE != memory->kind) {
        return 0; /* that of system memory may have no id */
    }
    id = memory->buffer_id;
    if (0 == id || id << HOLD_SHIFT >> HOLD_SHIFT != id) {
        return 0;
    }
    slot = &held_ids[id % HOLDS];
    held = __atomic_load_n(slot, __ATOMIC_RELAXED);
    do {
        if (HOLD_COUNT == (held & HOLD_COUNT)
            || (0 != (held & HOLD_COUNT) && id != held >> HOLD_SHIFT)) {
            return 0; /* no room */
        }
        next = (id << HOLD_SHIFT | (held & HOLD_COUNT)) + 1;
        if (!threads) {
            *slot = next;
            break;
        }
    } while (
        !__atomic_compare_exchange_n(slot, &held, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return id;
}

void opal_umrddt_gpu_memory_release(uint64_t id, bool threads)
{
    if (threads) {
        (void) __atomic_sub_fetch(&held_ids[id % HOLDS], 1, __ATOMIC_RELEASE);
    } else {
        --held_ids[id % HOLDS];
    }
}

static bool is_held(uint64_t id)
{
    const uint64_t held = __atomic_load_n(&held_ids[id % HOLDS], __ATOMIC_ACQUIRE);

    return 0 != (held & HOLD_COUNT) && id == held >> HOLD_SHIFT;
}

/* The cached range that contains an address; NULL: none. It may be another allocation by now. */
static inline opal_umrddt_gpu_memory_t *find_cached(uintptr_t address)
{
    opal_umrddt_gpu_memory_t *range = ranges, *const end = range + RANGES;

    for (; end > range; ++range) {
        if (holds(range, address)) {
            return range;
        }
    }
    return NULL;
}

/* True if a cached range is still the same allocation; else it is removed. */
static inline bool is_current(opal_umrddt_gpu_memory_t *range, uintptr_t address)
{
    const opal_umrddt_gpu_driver_t *driver;
    uint64_t id = 0;

    if (is_held(range->buffer_id)) {
        return true;
    }
    count(&counts.queries);
    if (OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
        && CUDA_SUCCESS
               == driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address)
        && id == range->buffer_id) {
        count(&counts.hits);
        return true;
    }
    count(&counts.stale);
    memset(range, 0, sizeof(*range));
    return false;
}

bool opal_umrddt_gpu_classify_again(uintptr_t first, uintptr_t last,
                                    opal_umrddt_gpu_memory_t *memory)
{
    opal_umrddt_gpu_memory_t *range = find_cached(first);

    if (NULL == range || !holds(range, last) || OPAL_UMRDDT_GPU_PINNED == range->kind
        || !is_current(range, first)) {
        return false;
    }
    *memory = *range;
    return true;
}

int opal_umrddt_gpu_classify(const void *address, opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_memory_t *range = find_cached((uintptr_t) address);
    answers_t answers;
    CUresult rc;

    if (NULL != range && is_current(range, (uintptr_t) address)) {
        *memory = *range;
        return OPAL_SUCCESS;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        memset(memory, 0, sizeof(*memory));
        return OPAL_SUCCESS;
    }
    rc = query(driver, (uintptr_t) address, &answers);
    if (CUDA_SUCCESS != rc && !is_unknown(rc)) {
        /* Retry: without any attributes a buffer is not usable. */
        rc = query(driver, (uintptr_t) address, &answers);
    }
    if (CUDA_SUCCESS != rc && !is_unknown(rc)) {
        return OPAL_ERROR;
    }
    memset(memory, 0, sizeof(*memory));
    if (CUDA_SUCCESS != rc || 0 == answers.type) {
        return OPAL_SUCCESS;
    }
    memory->kind = 0 != answers.managed                       ? OPAL_UMRDDT_GPU_MANAGED
                   : CU_MEMORYTYPE_HOST == (int) answers.type ? OPAL_UMRDDT_GPU_PINNED
                                                              : OPAL_UMRDDT_GPU_DEVICE;
    memory->device = answers.device;
    memory->buffer_id = answers.buffer_id;
    memory->base = answers.base;
    memory->size = answers.size;
    memory->ctx = answers.ctx;
    memory->pool = answers.pool;
    memory->legacy_ipc = 0 != answers.legacy_ipc;
    memory->sync_memops = 0 != answers.sync_memops && NULL != answers.ctx;
    memory->handles = (uint32_t) answers.handles;
    ranges[next_range] = *memory;
    next_range = (next_range + 1) % RANGES;
    return OPAL_SUCCESS;
}

bool opal_umrddt_gpu_sync_memops(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUstreamCaptureMode mode;
    const unsigned on = 1;
    CUresult rc;
    int i;

    if (memory->sync_memops) {
        return true;
    }
    if (NULL == memory->ctx || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return false;
    }
    opal_umrddt_gpu_relax(driver, &mode);
    rc = driver->cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
    opal_umrddt_gpu_restore(driver, &mode);
    if (CUDA_SUCCESS != rc) {
        return false;
    }
    count(&counts.syncs);
    memory->sync_memops = true;
    for (i = 0; i < RANGES; ++i) {
        if (memory->buffer_id == ranges[i].buffer_id) {
            ranges[i].sync_memops = true;
        }
    }
    return true;
}

void opal_umrddt_gpu_presume(const void *address, opal_umrddt_gpu_memory_t *memory)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *) (uintptr_t) address, 1};

    memset(memory, 0, sizeof(*memory));
    /* by a system call, which returns an error instead of raising a signal */
    if (1 != process_vm_readv(getpid(), &to, 1, &from, 1, 0) && EFAULT == errno) {
        memory->kind = OPAL_UMRDDT_GPU_DEVICE;
    }
}

bool opal_umrddt_gpu_base_takes(const opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUcontext now = NULL;

    /* memory that cannot be exported is not cudaMalloc's, even if the driver reports a context */
    return OPAL_UMRDDT_GPU_DEVICE == memory->kind && NULL != memory->ctx && NULL == memory->pool
           && memory->legacy_ipc && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
           && CUDA_SUCCESS == driver->cuCtxGetCurrent(&now) && now == memory->ctx;
}

void opal_umrddt_gpu_driver_stats(opal_umrddt_gpu_driver_stats_t *stats)
{
    stats->queries = __atomic_load_n(&counts.queries, __ATOMIC_RELAXED);
    stats->hits = __atomic_load_n(&counts.hits, __ATOMIC_RELAXED);
    stats->stale = __atomic_load_n(&counts.stale, __ATOMIC_RELAXED);
    stats->syncs = __atomic_load_n(&counts.syncs, __ATOMIC_RELAXED);
}
