/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Each size has a list of unused buffers, the last released first. A record of a buffer is found by
 * its address in a hash table. The lock is held shortly. Buffers that are being pinned or freed,
 * without the lock, are in no list, but their bytes count until the driver is done.
 */

#include "umrddt_gpu_staging.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

#define PAGE          ((size_t) 4096)
#define PAGE_SHIFT    12
#define SIZES         48 /* 4 KiB << 47 exceeds the memory of any machine */
#define BUCKETS       256
#define DEFAULT_BOUND ((size_t) 64 << 20)

typedef struct buffer_t {
    char *address;
    void *pinned; /* address returned by the driver: that of the buffer, or before it */
    size_t bytes; /* allocated by the driver */
    CUcontext ctx;
    uint64_t buffer_id;
    unsigned size; /* usable bytes: PAGE << size */
    bool taken;
    bool lost;              /* its context was destroyed, and the memory with it */
    uint64_t stamp;         /* time of its release */
    struct buffer_t *chain; /* in the hash table */
    struct buffer_t *newer; /* in the list of unused buffers of its size */
    struct buffer_t *older;
} buffer_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static buffer_t *table[BUCKETS];
static buffer_t *newest[SIZES];
static buffer_t *oldest[SIZES];
static size_t bound = DEFAULT_BOUND;
static uint64_t clock_now;
static bool closed;
static opal_umrddt_gpu_staging_stats_t counts;

static buffer_t **bucket(const void *address)
{
    uint64_t page = (uintptr_t) address >> PAGE_SHIFT;

    return &table[(page ^ page >> 8 ^ page >> 16) % BUCKETS];
}

/* ---- with the lock ---- */

static void keep(buffer_t *buffer)
{
    buffer->taken = false;
    buffer->stamp = ++clock_now;
    buffer->newer = NULL;
    buffer->older = newest[buffer->size];
    *(NULL == buffer->older ? &oldest[buffer->size] : &buffer->older->newer) = buffer;
    newest[buffer->size] = buffer;
}

static void unkeep(buffer_t *buffer)
{
    *(NULL == buffer->newer ? &newest[buffer->size] : &buffer->newer->older) = buffer->older;
    *(NULL == buffer->older ? &oldest[buffer->size] : &buffer->older->newer) = buffer->newer;
}

static void forget(buffer_t *buffer)
{
    buffer_t **at = bucket(buffer->address);

    while (buffer != *at) {
        at = &(*at)->chain;
    }
    *at = buffer->chain;
}

/* The memory is gone: the record is freed as soon as the buffer is released. */
static void lose(buffer_t *buffer)
{
    buffer->lost = true;
    if (!buffer->taken) {
        unkeep(buffer);
        forget(buffer);
        counts.bytes_now -= buffer->bytes;
        free(buffer);
    }
}

/*
 * The used buffer that is being released. If a buffer was lost and another one got its address, the
 * lost one: the other is not returned to a user before all have been released.
 */
static buffer_t *find_taken(const void *address)
{
    buffer_t *found = NULL;
    buffer_t *buffer;

    for (buffer = *bucket(address); NULL != buffer; buffer = buffer->chain) {
        if (address == buffer->address && buffer->taken && (NULL == found || buffer->lost)) {
            found = buffer;
        }
    }
    return found;
}

/* Remove the least recently used buffers from all lists, until @p bytes can be freed; chained. */
static size_t evict(size_t bytes, buffer_t **victims)
{
    size_t found = 0;

    while (found < bytes) {
        buffer_t *victim = NULL;
        unsigned i;

        for (i = 0; i < SIZES; i++) {
            if (NULL != oldest[i] && (NULL == victim || oldest[i]->stamp < victim->stamp)) {
                victim = oldest[i];
            }
        }
        if (NULL == victim) {
            break;
        }
        unkeep(victim);
        forget(victim);
        victim->chain = *victims;
        *victims = victim;
        found += victim->bytes;
    }
    return found;
}

/* ---- without ---- */

/* 0: unknown to the driver. */
static uint64_t buffer_id(const opal_umrddt_gpu_driver_t *driver, const void *address)
{
    uint64_t id = 0;

    return CUDA_SUCCESS
                   == driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                    (uintptr_t) address)
               ? id
               : 0;
}

/*
 * The driver may need a context for it. If the context of the pinning was destroyed, the memory is
 * gone too. Drivers crash on such a context, so its memory is queried instead.
 */
static void unpin(const opal_umrddt_gpu_driver_t *driver, const buffer_t *buffer)
{
    CUcontext before;

    if (CUDA_ERROR_INVALID_CONTEXT != driver->cuMemFreeHost(buffer->pinned) || NULL == buffer->ctx
        || 0 == buffer->buffer_id || buffer_id(driver, buffer->address) != buffer->buffer_id
        || CUDA_SUCCESS != driver->cuCtxPushCurrent_v2(buffer->ctx)) {
        return;
    }
    (void) driver->cuMemFreeHost(buffer->pinned);
    (void) driver->cuCtxPopCurrent_v2(&before);
}

static void drop(buffer_t *victims)
{
    const opal_umrddt_gpu_driver_t *driver;

    if (NULL == victims || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return;
    }
    while (NULL != victims) {
        buffer_t *victim = victims;

        victims = victim->chain;
        unpin(driver, victim);
        free(victim);
    }
}

static void uncount(size_t bytes)
{
    if (0 < bytes) {
        pthread_mutex_lock(&lock);
        counts.bytes_now -= bytes;
        pthread_mutex_unlock(&lock);
    }
}

/* Reserve @p bytes of the limit; evicts unused buffers. */
static bool reserve(size_t bytes)
{
    buffer_t *victims = NULL;
    size_t evicted = 0;
    size_t free_bytes;

    pthread_mutex_lock(&lock);
    free_bytes = counts.bytes_now < bound ? bound - counts.bytes_now : 0;
    /* No eviction if it cannot succeed. */
    if (bytes > bound || counts.used_now > bound - bytes) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    if (bytes > free_bytes) {
        size_t over = counts.bytes_now > bound ? counts.bytes_now - bound : 0;

        evicted = evict(bytes - free_bytes + over, &victims);
        if (evicted < bytes - free_bytes + over) {
            /* Another thread is pinning or freeing the missing bytes. */
            pthread_mutex_unlock(&lock);
            drop(victims);
            uncount(evicted);
            return false;
        }
    }
    counts.bytes_now += bytes;
    if (0 < evicted) {
        /* Until they are freed, these bytes and the victims' are the same. */
        size_t both = bytes < evicted ? bytes : evicted;

        counts.bytes_now -= both;
        evicted -= both;
    }
    pthread_mutex_unlock(&lock);
    drop(victims);
    uncount(evicted);
    return true;
}

static int refused(CUresult rc)
{
    switch (rc) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return OPAL_ERR_NOT_AVAILABLE;
    default:
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
}

/* Allocate within the reserved bytes; pinned for all contexts, including later ones. */
static int pin(const opal_umrddt_gpu_driver_t *driver, buffer_t *buffer)
{
    CUresult rc = driver->cuMemHostAlloc(&buffer->pinned, buffer->bytes, CU_MEMHOSTALLOC_PORTABLE);

    if (CUDA_SUCCESS == rc && 0 != (uintptr_t) buffer->pinned % PAGE) {
        /* Drivers cut small buffers from larger ones, not always at a page. */
        (void) driver->cuMemFreeHost(buffer->pinned);
        if (!reserve(PAGE)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        buffer->bytes += PAGE;
        rc = driver->cuMemHostAlloc(&buffer->pinned, buffer->bytes, CU_MEMHOSTALLOC_PORTABLE);
    }
    if (CUDA_SUCCESS != rc) {
        return refused(rc);
    }
    buffer->address = (char *) (((uintptr_t) buffer->pinned + PAGE - 1) & ~(PAGE - 1));
    if (CUDA_SUCCESS != driver->cuCtxGetCurrent(&buffer->ctx)) {
        buffer->ctx = NULL;
    }
    buffer->buffer_id = buffer_id(driver, buffer->address);
    return OPAL_SUCCESS;
}

static int make(unsigned size, void **address)
{
    const opal_umrddt_gpu_driver_t *driver;
    buffer_t *buffer;
    buffer_t *older;
    buffer_t *next;
    int rc = opal_umrddt_gpu_driver_load(&driver);

    if (OPAL_SUCCESS != rc) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (!reserve(PAGE << size)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    buffer = calloc(1, sizeof(*buffer));
    if (NULL == buffer) {
        uncount(PAGE << size);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    buffer->size = size;
    buffer->bytes = PAGE << size;
    rc = pin(driver, buffer);
    if (OPAL_SUCCESS != rc) {
        uncount(buffer->bytes);
        free(buffer);
        return rc;
    }
    buffer->taken = true;
    pthread_mutex_lock(&lock);
    for (older = *bucket(buffer->address); NULL != older; older = next) {
        next = older->chain;
        if (older->address == buffer->address && !older->lost) {
            lose(older);
        }
    }
    buffer->chain = *bucket(buffer->address);
    *bucket(buffer->address) = buffer;
    closed = false;
    counts.gets++;
    counts.pinned++;
    counts.used_now += buffer->bytes;
    *address = buffer->address;
    pthread_mutex_unlock(&lock);
    return OPAL_SUCCESS;
}

/*
 * True if the memory of a used buffer exists. It does if its context is current; else the
 * application may have destroyed that context. Releases a buffer without memory.
 */
static bool is_there(buffer_t *buffer)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUcontext now = NULL;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || (CUDA_SUCCESS == driver->cuCtxGetCurrent(&now) && NULL != now && now == buffer->ctx)
        || buffer_id(driver, buffer->address) == buffer->buffer_id) {
        return true;
    }
    pthread_mutex_lock(&lock);
    lose(buffer);
    counts.gets--;
    pthread_mutex_unlock(&lock);
    opal_umrddt_gpu_staging_put(buffer->address);
    return false;
}

/* ---- the interface ---- */

void opal_umrddt_gpu_staging_bound(size_t bytes)
{
    pthread_mutex_lock(&lock);
    bound = bytes;
    pthread_mutex_unlock(&lock);
}

int opal_umrddt_gpu_staging_get(size_t size, void **address)
{
    unsigned index = 0;
    buffer_t *buffer;

    while (SIZES > index && (PAGE << index) < size) {
        index++;
    }
    if (SIZES == index) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    do {
        pthread_mutex_lock(&lock);
        buffer = newest[index];
        if (NULL != buffer) {
            unkeep(buffer);
            buffer->taken = true;
            counts.gets++;
            counts.used_now += buffer->bytes;
            *address = buffer->address;
        }
        pthread_mutex_unlock(&lock);
    } while (NULL != buffer && !is_there(buffer));
    return NULL != buffer ? OPAL_SUCCESS : make(index, address);
}

void opal_umrddt_gpu_staging_put(void *address)
{
    buffer_t *victims = NULL;
    size_t evicted = 0;
    buffer_t *buffer;

    pthread_mutex_lock(&lock);
    buffer = find_taken(address);
    if (NULL != buffer) {
        counts.used_now -= buffer->bytes;
        if (buffer->lost) {
            forget(buffer);
            counts.bytes_now -= buffer->bytes;
            free(buffer);
        } else {
            keep(buffer);
        }
        if (closed) {
            evicted = evict(SIZE_MAX, &victims);
        } else if (counts.bytes_now > bound) {
            evicted = evict(counts.bytes_now - bound, &victims);
        }
    }
    pthread_mutex_unlock(&lock);
    drop(victims);
    uncount(evicted);
}

void opal_umrddt_gpu_staging_check(void)
{
    const opal_umrddt_gpu_driver_t *driver;
    int i;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (i = 0; i < BUCKETS; i++) {
        buffer_t *buffer = table[i];

        while (NULL != buffer) {
            buffer_t *next = buffer->chain;

            if (!buffer->lost && buffer_id(driver, buffer->address) != buffer->buffer_id) {
                lose(buffer);
            }
            buffer = next;
        }
    }
    pthread_mutex_unlock(&lock);
}

void opal_umrddt_gpu_staging_stats(opal_umrddt_gpu_staging_stats_t *stats)
{
    pthread_mutex_lock(&lock);
    *stats = counts;
    stats->bound = bound;
    pthread_mutex_unlock(&lock);
}

void opal_umrddt_gpu_staging_close(void)
{
    buffer_t *victims = NULL;
    size_t evicted;

    pthread_mutex_lock(&lock);
    closed = true;
    evicted = evict(SIZE_MAX, &victims);
    pthread_mutex_unlock(&lock);
    drop(victims);
    uncount(evicted);
}
