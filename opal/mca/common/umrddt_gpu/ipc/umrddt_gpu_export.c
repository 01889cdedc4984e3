/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Cache of exports by BUFFER_ID, least recently used last. Each use checks that the memory still
 * has the BUFFER_ID: an export is sent once per importer, not once per message.
 */

#include "umrddt_gpu_ipc_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#define BUCKETS       128
#define DEFAULT_BOUND 256

typedef struct entry_t {
    opal_umrddt_gpu_export_t what;
    struct entry_t *chain;
    struct entry_t *newer;
    struct entry_t *older;
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *table[BUCKETS];
static entry_t *newest;
static entry_t *oldest;
static unsigned entries;
static unsigned bound = DEFAULT_BOUND;

/* ---- with the lock ---- */

static void link_first(entry_t *entry)
{
    entry->newer = NULL;
    entry->older = newest;
    *(NULL == newest ? &oldest : &newest->newer) = entry;
    newest = entry;
}

static void unlink_entry(entry_t *entry)
{
    *(NULL == entry->newer ? &newest : &entry->newer->older) = entry->older;
    *(NULL == entry->older ? &oldest : &entry->older->newer) = entry->newer;
}

static entry_t *lookup(uint64_t id)
{
    entry_t *entry;

    for (entry = table[id % BUCKETS]; NULL != entry && id != entry->what.buffer_id;
         entry = entry->chain) {
    }
    return entry;
}

static void drop(entry_t *entry)
{
    entry_t **at = &table[entry->what.buffer_id % BUCKETS];

    while (entry != *at) {
        at = &(*at)->chain;
    }
    *at = entry->chain;
    unlink_entry(entry);
    entries--;
    free(entry);
}

static void trim(unsigned most)
{
    while (entries > most) {
        drop(oldest);
    }
}

/* ---- without ---- */

static bool lookup_cached(const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *out)
{
    entry_t *entry;

    pthread_mutex_lock(&lock);
    entry = lookup(memory->buffer_id);
    if (NULL != entry && (entry->what.base != memory->base || entry->what.size != memory->size)) {
        drop(entry);
        entry = NULL;
    }
    if (NULL != entry) {
        unlink_entry(entry);
        link_first(entry);
        *out = entry->what;
    }
    pthread_mutex_unlock(&lock);
    return NULL != entry;
}

static void remember(const opal_umrddt_gpu_export_t *what)
{
    entry_t *entry = malloc(sizeof(*entry));

    if (NULL == entry) {
        return;
    }
    entry->what = *what;
    pthread_mutex_lock(&lock);
    if (0 == bound || NULL != lookup(what->buffer_id)) {
        pthread_mutex_unlock(&lock);
        free(entry);
        return;
    }
    trim(bound - 1);
    entry->chain = table[what->buffer_id % BUCKETS];
    table[what->buffer_id % BUCKETS] = entry;
    link_first(entry);
    entries++;
    pthread_mutex_unlock(&lock);
}

static void forget(uint64_t id)
{
    entry_t *entry;

    pthread_mutex_lock(&lock);
    entry = lookup(id);
    if (NULL != entry) {
        drop(entry);
    }
    pthread_mutex_unlock(&lock);
}

/* The driver creates handles only with a context; the thread may have none. */
static CUresult describe(const opal_umrddt_gpu_driver_t *driver,
                         const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *what)
{
    CUipcMemHandle handle;
    CUcontext before;
    CUresult rc;

    memset(what, 0, sizeof(*what));
    what->buffer_id = memory->buffer_id;
    what->base = memory->base;
    what->size = memory->size;
    what->kind = OPAL_UMRDDT_GPU_EXPORT_MEM_HANDLE;
    if (!opal_umrddt_gpu_device_uuid(memory->device, what->uuid)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    rc = driver->cuCtxPushCurrent_v2(memory->ctx);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    /* Drivers need not write all of it; the rest must not contain old stack data. */
    memset(&handle, 0, sizeof(handle));
    rc = driver->cuIpcGetMemHandle(&handle, memory->base);
    (void) driver->cuCtxPopCurrent_v2(&before);
    if (CUDA_SUCCESS == rc) {
        memcpy(what->handle, &handle, sizeof(what->handle));
        what->check = opal_umrddt_gpu_export_check(what);
    }
    return rc;
}

/*
 * Results for memory that this driver does not export, or for missing functions. Others mean that
 * the driver failed.
 */
static int refused(CUresult rc)
{
    opal_umrddt_gpu_ipc_count(&opal_umrddt_gpu_ipc_counts.refused, 1);
    switch (rc) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_MAP_FAILED:
    case CUDA_ERROR_OUT_OF_MEMORY:
        return OPAL_ERR_NOT_SUPPORTED;
    default:
        return OPAL_ERROR;
    }
}

int opal_umrddt_gpu_export(const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *out)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_export_t what;
    uint64_t id = 0;
    CUresult rc;
    bool known;

    if (OPAL_UMRDDT_GPU_DEVICE != memory->kind || !memory->legacy_ipc || NULL == memory->ctx
        || 0 == memory->buffer_id || 0 == memory->size
        || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    known = lookup_cached(memory, &what);
    if (!known) {
        rc = describe(driver, memory, &what);
        if (CUDA_SUCCESS != rc) {
            return refused(rc);
        }
        opal_umrddt_gpu_ipc_count(&opal_umrddt_gpu_ipc_counts.exported, 1);
    }
    rc = driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory->base);
    if (CUDA_SUCCESS != rc || id != memory->buffer_id) {
        /* It was freed; the handle may be that of new memory at the same address. */
        forget(memory->buffer_id);
        return refused(CUDA_SUCCESS == rc ? CUDA_ERROR_INVALID_VALUE : rc);
    }
    if (!known) {
        remember(&what);
    }
    *out = what;
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_exports_bound(unsigned most)
{
    pthread_mutex_lock(&lock);
    bound = most;
    trim(bound);
    pthread_mutex_unlock(&lock);
}

void opal_umrddt_gpu_exports_close(void)
{
    pthread_mutex_lock(&lock);
    trim(0);
    pthread_mutex_unlock(&lock);
}
