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
 * Staging buffers of one message; see umrddt_gpu_stage.h.
 */

/*
 * Large messages are mostly envelopes of a protocol, and untouched plain memory costs only address
 * space. Freed plain buffers are cached for the next messages.
 *
 * A guard page follows each plain buffer. If a contiguous message is too long, pml/ob1 of Open MPI
 * 4.1 reads all of it. With the guard page the kernel refuses that read, and pml/ob1 recovers.
 */

#include "umrddt_gpu_stage.h"

#include <string.h>
#include <sys/mman.h>

#include "opal/constants.h"

#include "umrddt_compat.h"

#include "umrddt_gpu_staging.h"

#define PAGE    ((size_t) 4096)
#define LOWEST  12 /* of a page */
#define CLASSES 36 /* up to more than any machine has */

static opal_umrddt_gpu_stage_limits_t limits;

void opal_umrddt_gpu_stage_limits(const opal_umrddt_gpu_stage_limits_t *new_limits)
{
    limits = *new_limits;
}

/* ---------------------------------------------------------------------------------------------
 * Plain memory
 * ------------------------------------------------------------------------------------------- */

/** Free buffers by the binary logarithm of their size; each begins with a pointer to the next. */
static struct {
    opal_mutex_t lock;
    void *first[CLASSES];
    size_t bytes;
} cached = {.lock = OPAL_MUTEX_STATIC_INIT};

/** The smallest class with buffers of this size; CLASSES: none. */
static inline unsigned class_of(size_t size)
{
    const unsigned bits = 1 < size ? 64 - (unsigned) __builtin_clzll(size - 1) : 0;

    return LOWEST + CLASSES <= bits ? CLASSES : LOWEST < bits ? bits - LOWEST : 0;
}

/** Map memory with a guard page behind it. NULL: no memory */
static void *plain_map(size_t size)
{
    void *bytes = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == bytes) {
        return NULL;
    }
    if (0 != mprotect((char *) bytes + size, PAGE, PROT_NONE)) {
        (void) munmap(bytes, size + PAGE);
        return NULL;
    }
    return bytes;
}

static void plain_unmap(void *bytes, size_t size)
{
    (void) munmap(bytes, size + PAGE);
}

int opal_umrddt_gpu_stage_plain(size_t size, opal_umrddt_gpu_stage_t *stage)
{
    unsigned class;
    void *bytes = NULL;

    if (PTRDIFF_MAX - 2 * PAGE < size) {
        return OPAL_ERR_OUT_OF_RESOURCE; /* size from a broken peer */
    }
    class = class_of(size);
    if (CLASSES > class) {
        size = (size_t) 1 << (LOWEST + class);
        OPAL_THREAD_LOCK(&cached.lock);
        bytes = cached.first[class];
        if (NULL != bytes) {
            memcpy(&cached.first[class], bytes, sizeof(cached.first[class]));
            cached.bytes -= size;
        }
        OPAL_THREAD_UNLOCK(&cached.lock);
    }
    if (NULL == bytes) {
        size = (size + PAGE - 1) / PAGE * PAGE;
        bytes = plain_map(size);
    }
    if (NULL == bytes) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    stage->bytes = bytes;
    stage->room = size;
    stage->kind = OPAL_UMRDDT_GPU_HOST;
    return OPAL_SUCCESS;
}

static void plain_put(opal_umrddt_gpu_stage_t *stage)
{
    unsigned class = class_of(stage->room);
    bool keep = false;

    if (CLASSES > class) {
        OPAL_THREAD_LOCK(&cached.lock);
        keep = stage->room <= limits.cached && cached.bytes <= limits.cached - stage->room;
        if (keep) {
            memcpy(stage->bytes, &cached.first[class], sizeof(cached.first[class]));
            cached.first[class] = stage->bytes;
            cached.bytes += stage->room;
        }
        OPAL_THREAD_UNLOCK(&cached.lock);
    }
    if (!keep) {
        plain_unmap(stage->bytes, stage->room);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Staging buffers
 * ------------------------------------------------------------------------------------------- */

int opal_umrddt_gpu_stage_pinned(opal_umrddt_gpu_engine_t *engine, size_t size,
                                 opal_umrddt_gpu_stage_t *stage)
{
    void *bytes;
    int rc = opal_umrddt_gpu_engine_enter(engine);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = opal_umrddt_gpu_staging_get(size, &bytes);
    opal_umrddt_gpu_engine_leave(engine);
    if (OPAL_SUCCESS == rc) {
        stage->bytes = bytes;
        stage->room = size;
        stage->kind = OPAL_UMRDDT_GPU_PINNED;
    }
    return rc;
}

int opal_umrddt_gpu_stage_get(const opal_umrddt_gpu_memory_t *memory, size_t size,
                              opal_umrddt_gpu_stage_t *stage)
{
    opal_umrddt_gpu_engine_t *engine;

    size += 0 == size;
    if (OPAL_UMRDDT_GPU_DEVICE == memory->kind && size <= limits.pinned
        && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(memory, &engine)
        && OPAL_SUCCESS == opal_umrddt_gpu_stage_pinned(engine, size, stage)) {
        return OPAL_SUCCESS;
    }
    return opal_umrddt_gpu_stage_plain(size, stage);
}

void opal_umrddt_gpu_stage_put(opal_umrddt_gpu_stage_t *stage)
{
    if (NULL == stage->bytes) {
        return;
    }
    if (OPAL_UMRDDT_GPU_PINNED == stage->kind) {
        opal_umrddt_gpu_staging_put(stage->bytes);
    } else {
        plain_put(stage);
    }
    memset(stage, 0, sizeof(*stage));
}

size_t opal_umrddt_gpu_stage_cached(void)
{
    return __atomic_load_n(&cached.bytes, __ATOMIC_RELAXED);
}

void opal_umrddt_gpu_stage_close(void)
{
    for (unsigned class = 0; class < CLASSES; ++class) {
        while (NULL != cached.first[class]) {
            void *bytes = cached.first[class];

            memcpy(&cached.first[class], bytes, sizeof(cached.first[class]));
            plain_unmap(bytes, (size_t) 1 << (LOWEST + class));
        }
    }
    cached.bytes = 0;
}
