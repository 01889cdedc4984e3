/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Shapes: layouts in the form for kernels, and their lists on the device. Cached by the layout's
 * unique id; the least recently used are evicted. A shape in use leaves the cache at once, and the
 * device when its copies are complete.
 *
 * A list is uploaded in the stream of the first copy that needs it. Other streams wait for an
 * event, until some copy that used the list is complete.
 */

#include "umrddt_gpu_engine_private.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

/* Longer lists are uploaded from pageable memory, to save pinned memory. */
#define PINNED_LIST ((size_t) 1 << 20)

static unsigned bucket_of(uint64_t id)
{
    return (unsigned) (id ^ id >> 8) % BUCKETS;
}

/* ---------------------------------------------------------------------------------------------
 * With the lock
 * ------------------------------------------------------------------------------------------- */

static opal_umrddt_gpu_shape_t *find(opal_umrddt_gpu_engine_t *engine, uint64_t id)
{
    opal_umrddt_gpu_shape_t *shape = engine->bucket[bucket_of(id)];

    while (NULL != shape && id != shape->id) {
        shape = shape->chain;
    }
    return shape;
}

static void link_newest(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    shape->newer = NULL;
    shape->older = engine->newest;
    *(NULL == shape->older ? &engine->oldest : &shape->older->newer) = shape;
    engine->newest = shape;
}

static void unlink_use(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    *(NULL == shape->newer ? &engine->newest : &shape->newer->older) = shape->older;
    *(NULL == shape->older ? &engine->oldest : &shape->older->newer) = shape->newer;
}

static void insert(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    opal_umrddt_gpu_shape_t **bucket = &engine->bucket[bucket_of(shape->id)];

    shape->chain = *bucket;
    *bucket = shape;
    link_newest(engine, shape);
    shape->cached = true;
    ++shape->refs;
    ++engine->shapes;
}

/* Remove it and its launches from the cache. @return true if it is unused */
static bool leave(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    opal_umrddt_gpu_shape_t **at = &engine->bucket[bucket_of(shape->id)];
    int i;

    for (i = 0; i < LAUNCHES; ++i) {
        if (shape == engine->launch[i].shape[0] || shape == engine->launch[i].shape[1]) {
            opal_umrddt_gpu_launch_forget(engine, &engine->launch[i]);
        }
    }

    while (shape != *at) {
        at = &(*at)->chain;
    }
    *at = shape->chain;
    unlink_use(engine, shape);
    shape->cached = false;
    --engine->shapes;
    if (0 != shape->list) {
        engine->shape_bytes -= shape->map->list_bytes;
    }
    return 0 == --shape->refs;
}

/* Evict shapes for a new list and a new shape. @return those to free, chained */
static opal_umrddt_gpu_shape_t *evict(opal_umrddt_gpu_engine_t *engine, size_t bytes,
                                      const opal_umrddt_gpu_shape_t *but)
{
    opal_umrddt_gpu_shape_t *freed = NULL, *shape = engine->oldest;

    while (NULL != shape
           && (engine->shape_bytes + bytes > opal_umrddt_gpu_engine_set.shape_cache
               || SHAPES < engine->shapes)) {
        opal_umrddt_gpu_shape_t *newer = shape->newer;

        /* A shape without a list frees no device memory. */
        if (but != shape && (0 != shape->list || SHAPES < engine->shapes) && leave(engine, shape)) {
            shape->chain = freed;
            freed = shape;
        }
        shape = newer;
    }
    return freed;
}

void opal_umrddt_gpu_shape_use(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    ++shape->refs;
    if (shape->cached && engine->newest != shape) {
        unlink_use(engine, shape);
        link_newest(engine, shape);
    }
}

bool opal_umrddt_gpu_shape_unuse(opal_umrddt_gpu_shape_t *shape, bool used, void **pinned)
{
    if (used && NULL != shape->pinned) {
        *pinned = shape->pinned;
        shape->pinned = NULL;
    }
    shape->ready = shape->ready || used;
    return 0 == --shape->refs;
}

/* ---------------------------------------------------------------------------------------------
 * Without the lock
 * ------------------------------------------------------------------------------------------- */

/* @param[in] alive  the context exists, and is current */
static void destroy(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape, bool alive)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;

    if (0 != shape->list) {
        COUNT(shape_bytes_now, 0 - (uint64_t) shape->map->list_bytes);
        if (alive) {
            (void) driver->cuMemFree_v2(shape->list);
        }
    }
    if (NULL != shape->event && alive) {
        (void) driver->cuEventDestroy_v2(shape->event);
    }
    if (NULL != shape->pinned) {
        opal_umrddt_gpu_staging_put(shape->pinned);
    }
    opal_umrddt_gpu_map_free(shape->map);
    free(shape);
}

static void destroy_all(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    while (NULL != shape) {
        opal_umrddt_gpu_shape_t *next = shape->chain;

        destroy(engine, shape, true);
        shape = next;
    }
}

static int make(const opal_iov_cache_layout_t *layout, opal_umrddt_gpu_shape_t **made)
{
    const opal_umrddt_gpu_scheme_t scheme =
        (opal_umrddt_gpu_scheme_t) opal_umrddt_gpu_engine_set.scheme;
    const size_t most = opal_umrddt_gpu_engine_set.shape_cache;
    opal_umrddt_gpu_shape_t *shape = calloc(1, sizeof(*shape));
    int rc;

    if (NULL == shape) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    shape->id = layout->id;
    rc = opal_umrddt_gpu_map_create(layout->form, scheme, most, &shape->map);
    if (OPAL_ERR_NOT_SUPPORTED == rc || OPAL_ERR_BAD_PARAM == rc) {
        /* Not every scheme can handle every layout. */
        rc = opal_umrddt_gpu_map_create(layout->form, OPAL_UMRDDT_GPU_AUTO, most, &shape->map);
    }
    if (OPAL_SUCCESS != rc) {
        free(shape);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    COUNT(shapes_made, 1);
    *made = shape;
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_shape_get(opal_umrddt_gpu_engine_t *engine,
                              const opal_iov_cache_layout_t *layout,
                              opal_umrddt_gpu_shape_t **result)
{
    opal_umrddt_gpu_shape_t *shape, *made = NULL, *freed = NULL;
    int rc;

    OPAL_THREAD_LOCK(&engine->lock);
    shape = find(engine, layout->id);
    if (NULL == shape) {
        /* It can take long: other threads need not wait, but may create the same one. */
        OPAL_THREAD_UNLOCK(&engine->lock);
        rc = make(layout, &made);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        OPAL_THREAD_LOCK(&engine->lock);
        shape = find(engine, layout->id);
        if (NULL == shape) {
            shape = made;
            made = NULL;
            if (shape->map->list_bytes <= opal_umrddt_gpu_engine_set.shape_cache) {
                insert(engine, shape);
                freed = evict(engine, 0, shape);
            }
        }
    }
    opal_umrddt_gpu_shape_use(engine, shape);
    ++shape->uses;
    OPAL_THREAD_UNLOCK(&engine->lock);
    if (OPAL_UNLIKELY(NULL != made)) {
        destroy(engine, made, true);
    }
    destroy_all(engine, freed);
    *result = shape;
    return OPAL_SUCCESS;
}

/* Upload the list in stream order; with the lock. */
static CUresult upload(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape,
                       CUstream stream)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    const opal_umrddt_gpu_map_t *map = shape->map;
    const void *from = map->list;
    CUdeviceptr list;
    CUresult rc;

    rc = driver->cuMemAlloc_v2(&list, map->list_bytes);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    if (PINNED_LIST >= map->list_bytes
        && OPAL_SUCCESS == opal_umrddt_gpu_staging_get(map->list_bytes, &shape->pinned)) {
        memcpy(shape->pinned, map->list, map->list_bytes);
        from = shape->pinned;
    }
    rc = driver->cuMemcpyHtoDAsync_v2(list, from, map->list_bytes, stream);
    if (CUDA_SUCCESS == rc) {
        if (NULL == shape->event
            && CUDA_SUCCESS != driver->cuEventCreate(&shape->event, CU_EVENT_DISABLE_TIMING)) {
            shape->event = NULL;
        }
        if (NULL == shape->event || CUDA_SUCCESS != driver->cuEventRecord(shape->event, stream)) {
            rc = driver->cuStreamSynchronize(stream);
            shape->ready = CUDA_SUCCESS == rc;
        }
    }
    if (CUDA_SUCCESS != rc) {
        /* The started upload must end before the memory is freed. */
        (void) driver->cuStreamSynchronize(stream);
        (void) driver->cuMemFree_v2(list);
        if (NULL != shape->pinned) {
            opal_umrddt_gpu_staging_put(shape->pinned);
            shape->pinned = NULL;
        }
        return rc;
    }
    shape->stream = stream;
    shape->list = list;
    if (shape->cached) {
        engine->shape_bytes += map->list_bytes;
    }
    COUNT(shape_bytes_now, map->list_bytes);
    COUNT(lists_uploaded, 1);
    return CUDA_SUCCESS;
}

int opal_umrddt_gpu_shape_list(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape,
                               CUstream stream, bool may_travel, CUdeviceptr *list)
{
    opal_umrddt_gpu_shape_t *freed = NULL;
    CUresult rc = CUDA_SUCCESS;

    if (0 == shape->map->n) {
        *list = 0;
        return OPAL_SUCCESS;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    if (0 == shape->list && may_travel && 1 == shape->uses
        && shape->map->list_bytes <= sizeof(((umrddt_gpu_args_inline_t *) 0)->data)) {
        OPAL_THREAD_UNLOCK(&engine->lock);
        *list = 0;
        return OPAL_SUCCESS;
    }
    if (0 == shape->list) {
        if (shape->cached) {
            freed = evict(engine, shape->map->list_bytes, shape);
        }
        rc = upload(engine, shape, stream);
    } else if (!shape->ready && shape->stream != stream) {
        rc = engine->driver->cuStreamWaitEvent(stream, shape->event, 0);
    }
    if (CUDA_SUCCESS == rc) {
        *list = shape->list;
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    destroy_all(engine, freed);
    return opal_umrddt_gpu_engine_error(rc);
}

void opal_umrddt_gpu_shape_free(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape)
{
    bool pushed = false;
    const bool alive = opal_umrddt_gpu_engine_is_there(engine)
                       && OPAL_SUCCESS == opal_umrddt_gpu_engine_swap_in(engine, &pushed);

    destroy(engine, shape, alive);
    opal_umrddt_gpu_engine_swap_out(engine, alive && pushed);
}

void opal_umrddt_gpu_shapes_free(opal_umrddt_gpu_engine_t *engine, bool alive)
{
    opal_umrddt_gpu_shape_t *shape;

    while (NULL != (shape = engine->newest)) {
        (void) leave(engine, shape);
        destroy(engine, shape, alive);
    }
}
