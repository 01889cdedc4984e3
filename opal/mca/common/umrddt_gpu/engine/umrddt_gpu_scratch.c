/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A short list, searched from its end: a process has as many buffers as a few messages have chunks
 * in progress, and reuses the last one released. The lock is not held while the driver allocates or
 * frees; the buffer is in the list as used meanwhile.
 */

#include "umrddt_gpu_scratch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "umrddt_gpu_engine_private.h"

#define LEAST         ((size_t) 4096)
#define DEFAULT_BOUND ((size_t) 64 << 20)

typedef struct buffer_t {
    opal_umrddt_gpu_engine_t *engine;
    CUdeviceptr address; /* 0: not allocated yet */
    size_t bytes;
    bool taken;
} buffer_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static buffer_t *buffers; /* in the order of their release, used ones anywhere */
static size_t count, room;
static size_t bound = DEFAULT_BOUND;
static opal_umrddt_gpu_scratch_stats_t counts;

static size_t round_up(size_t size)
{
    size_t bytes = LEAST;

    while (bytes < size && bytes <= SIZE_MAX / 2) {
        bytes *= 2;
    }
    return bytes;
}

/*
 * Free it by the driver, without the lock. If the context is destroyed, the memory was freed with
 * it.
 */
static void drop(const buffer_t *buffer)
{
    if (0 != buffer->address && opal_umrddt_gpu_engine_is_there(buffer->engine)
        && OPAL_SUCCESS == opal_umrddt_gpu_engine_enter(buffer->engine)) {
        (void) buffer->engine->driver->cuMemFree_v2(buffer->address);
        opal_umrddt_gpu_engine_leave(buffer->engine);
    }
}

/* ---- with the lock ---- */

static buffer_t take_out(size_t i)
{
    buffer_t out = buffers[i];

    memmove(&buffers[i], &buffers[i + 1], (count - i - 1) * sizeof(buffers[0]));
    --count;
    counts.bytes_now -= out.bytes;
    return out;
}

/* Remove the oldest unused buffer if `bytes` more would exceed the limit. */
static bool make_room(size_t bytes, buffer_t *victim)
{
    size_t i;

    for (i = 0; counts.bytes_now + bytes > bound && i < count; ++i) {
        if (!buffers[i].taken) {
            *victim = take_out(i);
            return true;
        }
    }
    return false;
}

/* Add an entry for a new buffer. @return false: limit reached, or out of memory */
static bool reserve(opal_umrddt_gpu_engine_t *engine, size_t bytes)
{
    if (counts.bytes_now + bytes > bound) {
        return false;
    }
    if (count == room) {
        size_t more = 0 == room ? 16 : 2 * room;
        buffer_t *grown = realloc(buffers, more * sizeof(*grown));

        if (NULL == grown) {
            return false;
        }
        buffers = grown;
        room = more;
    }
    buffers[count++] = (buffer_t){.engine = engine, .address = 0, .bytes = bytes, .taken = true};
    counts.bytes_now += bytes;
    return true;
}

/* Find an unused buffer. @return 0: none */
static CUdeviceptr find(const opal_umrddt_gpu_engine_t *engine, size_t bytes)
{
    size_t i;

    for (i = count; 0 < i; --i) {
        buffer_t *buffer = &buffers[i - 1];

        if (!buffer->taken && engine == buffer->engine && bytes == buffer->bytes) {
            buffer->taken = true;
            return buffer->address;
        }
    }
    return 0;
}

/* ---- without ---- */

/* Allocate the reserved buffer. */
static int fill(opal_umrddt_gpu_engine_t *engine, size_t bytes, uint64_t *address)
{
    CUdeviceptr made = 0;
    size_t i;
    int rc = opal_umrddt_gpu_engine_enter(engine);

    if (OPAL_SUCCESS == rc) {
        rc = CUDA_SUCCESS == engine->driver->cuMemAlloc_v2(&made, bytes) ? OPAL_SUCCESS
                                                                         : OPAL_ERR_OUT_OF_RESOURCE;
        opal_umrddt_gpu_engine_leave(engine);
    }
    pthread_mutex_lock(&lock);
    for (i = 0; i < count; ++i) {
        if (engine == buffers[i].engine && 0 == buffers[i].address && bytes == buffers[i].bytes) {
            break; /* another thread's buffer is equivalent */
        }
    }
    if (OPAL_SUCCESS == rc) {
        buffers[i].address = made;
        ++counts.allocated;
        counts.used_now += bytes;
        *address = made;
    } else {
        (void) take_out(i);
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void opal_umrddt_gpu_scratch_bound(size_t bytes)
{
    pthread_mutex_lock(&lock);
    bound = bytes;
    pthread_mutex_unlock(&lock);
}

int opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size, uint64_t *address)
{
    size_t bytes = round_up(size);
    CUdeviceptr found;
    buffer_t victim;
    bool evicted, reserved = false;

    do {
        evicted = false;
        pthread_mutex_lock(&lock);
        found = find(engine, bytes);
        if (0 != found) {
            counts.used_now += bytes;
        } else if (bytes <= bound) {
            evicted = make_room(bytes, &victim);
            reserved = !evicted && reserve(engine, bytes);
        }
        counts.gets += evicted ? 0 : 1;
        pthread_mutex_unlock(&lock);
        if (evicted) {
            drop(&victim);
        }
    } while (evicted);
    if (0 != found) {
        *address = found;
        return OPAL_SUCCESS;
    }
    return reserved ? fill(engine, bytes, address) : OPAL_ERR_OUT_OF_RESOURCE;
}

void opal_umrddt_gpu_scratch_put(uint64_t address)
{
    buffer_t back = {.address = 0};
    bool keep = true;
    size_t i;

    pthread_mutex_lock(&lock);
    for (i = count; 0 < i; --i) {
        if (buffers[i - 1].taken && address == buffers[i - 1].address) {
            back = take_out(i - 1);
            break;
        }
    }
    if (0 != back.address) {
        counts.used_now -= back.bytes;
        keep = counts.bytes_now + back.bytes <= bound;
    }
    if (0 != back.address && keep) {
        back.taken = false;
        buffers[count++] = back; /* the last one released is reused first */
        counts.bytes_now += back.bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!keep) {
        drop(&back);
    }
}

void opal_umrddt_gpu_scratch_stats(opal_umrddt_gpu_scratch_stats_t *stats)
{
    pthread_mutex_lock(&lock);
    *stats = counts;
    pthread_mutex_unlock(&lock);
}

void opal_umrddt_gpu_scratch_close(void)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (!buffers[i].taken) {
            drop(&buffers[i]);
        }
    }
    free(buffers);
    buffers = NULL;
    count = 0;
    room = 0;
    memset(&counts, 0, sizeof(counts));
}
