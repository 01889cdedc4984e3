/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies without a kernel: by driver copies of 1, 2 and 3 dimensions (boxes), by one copy per
 * block, or by the CPU. All of them walk both layouts side by side; the boxes of a range are
 * cached.
 */

#include "umrddt_gpu_engine_private.h"

#include <string.h>

/* The first of the slots of a route. */
static inline opal_umrddt_gpu_route_t *slots_of(opal_umrddt_gpu_engine_t *engine,
                                                const opal_umrddt_gpu_route_t *key)
{
    uint64_t mix = key->id[0] * UINT64_C(0x9e3779b97f4a7c15) ^ key->id[1] << 1
                   ^ key->start * UINT64_C(0xc2b2ae3d27d4eb4f) ^ key->end
                   ^ (uint64_t) key->on_device << 20;

    mix ^= mix >> 32;
    mix ^= mix >> 16;
    return &engine->route[(mix ^ mix >> 8) % (ROUTES / WAYS) * WAYS];
}

/* With the lock. */
static inline opal_umrddt_gpu_route_t *find(opal_umrddt_gpu_engine_t *engine,
                                            const opal_umrddt_gpu_route_t *key)
{
    opal_umrddt_gpu_route_t *slots = slots_of(engine, key);
    int i;

    for (i = 0; i < WAYS; ++i) {
        if (slots[i].end == key->end && slots[i].start == key->start && slots[i].id[0] == key->id[0]
            && slots[i].id[1] == key->id[1] && slots[i].on_device == key->on_device) {
            return &slots[i];
        }
    }
    return NULL;
}

void opal_umrddt_gpu_route_find(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_route_t *route)
{
    const bool forced = OPAL_UMRDDT_GPU_HOW_DRIVER == opal_umrddt_gpu_engine_set.how;
    const opal_umrddt_gpu_route_t *found;
    opal_umrddt_gpu_route_t *slots;
    int i;

    for (i = 0; i < 2; ++i) {
        route->id[i] = NULL == copy_ends[i].layout ? 0 : copy_ends[i].layout->id;
    }
    route->start = start;
    route->end = end;
    route->on_device = copy_ends[0].on_device && copy_ends[1].on_device;
    OPAL_THREAD_LOCK(&engine->lock);
    found = find(engine, route);
    if (OPAL_LIKELY(NULL != found)) {
        route->n = found->n;
        memcpy(route->box, found->box, found->n * sizeof(found->box[0]));
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    if (OPAL_LIKELY(NULL != found)) {
        return;
    }
    COUNT(routes_made, 1);
    route->n = opal_umrddt_gpu_boxes_find(copy_ends, start, end, forced ? BOXES : 1, route->box);
    if (1 == route->n && !forced
        && !opal_umrddt_gpu_box_is_better(&route->box[0], route->on_device,
                                          0 < opal_umrddt_gpu_engine_set.graphs)) {
        route->n = 0;
    }
    if (!keep) {
        return;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    if (NULL == find(engine, route)) {
        slots = slots_of(engine, route);
        for (i = 0; i < WAYS && 0 != slots[i].end; ++i) {
        }
        slots[WAYS > i ? (unsigned) i : engine->next_way++ % WAYS] = *route;
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
}

/* ---------------------------------------------------------------------------------------------
 * Execution
 * ------------------------------------------------------------------------------------------- */

static CUdeviceptr at(const opal_umrddt_gpu_copy_end_t *copy_end, int64_t offset)
{
    return (CUdeviceptr) copy_end->address + (CUdeviceptr) offset;
}

static CUresult copy_2d(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                        const opal_umrddt_gpu_copy_end_t copy_ends[2],
                        const opal_umrddt_gpu_box_t *box)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = at(&copy_ends[0], box->offset[0]);
    copy.srcPitch = box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = at(&copy_ends[1], box->offset[1]);
    copy.dstPitch = box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    return engine->driver->cuMemcpy2DAsync_v2(&copy, stream);
}

static CUresult copy_3d(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                        const opal_umrddt_gpu_copy_end_t copy_ends[2],
                        const opal_umrddt_gpu_box_t *box)
{
    CUDA_MEMCPY3D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = at(&copy_ends[0], box->offset[0]);
    copy.srcPitch = box->pitch[0];
    copy.srcHeight = box->slice[0] / box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = at(&copy_ends[1], box->offset[1]);
    copy.dstPitch = box->pitch[1];
    copy.dstHeight = box->slice[1] / box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    copy.Depth = box->depth;
    return engine->driver->cuMemcpy3DAsync_v2(&copy, stream);
}

/* Between devices without peer access. Rows of one plane only. */
static CUresult copy_peer(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                          const opal_umrddt_gpu_copy_end_t copy_ends[2],
                          const opal_umrddt_gpu_box_t *box, const CUcontext homes[2])
{
    CUDA_MEMCPY3D_PEER copy;

    if (1 == box->height) {
        return engine->driver->cuMemcpyPeerAsync(at(&copy_ends[1], box->offset[1]), homes[1],
                                                 at(&copy_ends[0], box->offset[0]), homes[0],
                                                 box->width, stream);
    }
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = at(&copy_ends[0], box->offset[0]);
    copy.srcContext = homes[0];
    copy.srcPitch = box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = at(&copy_ends[1], box->offset[1]);
    copy.dstContext = homes[1];
    copy.dstPitch = box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    copy.Depth = 1;
    return engine->driver->cuMemcpy3DPeerAsync(&copy, stream);
}

static CUresult copy_box(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                         const opal_umrddt_gpu_copy_end_t copy_ends[2],
                         const opal_umrddt_gpu_box_t *box, const CUcontext homes[2])
{
    COUNT(driver_copies, 1);
    if (OPAL_UNLIKELY(NULL != homes)) {
        return copy_peer(engine, stream, copy_ends, box, homes);
    }
    return 1 < box->depth    ? copy_3d(engine, stream, copy_ends, box)
           : 1 < box->height ? copy_2d(engine, stream, copy_ends, box)
                             : engine->driver->cuMemcpyAsync(at(&copy_ends[1], box->offset[1]),
                                                             at(&copy_ends[0], box->offset[0]),
                                                             box->width, stream);
}

CUresult opal_umrddt_gpu_route_go(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                  const opal_umrddt_gpu_route_t *route,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2])
{
    CUresult rc = CUDA_SUCCESS;
    unsigned i;

    for (i = 0; CUDA_SUCCESS == rc && i < route->n; ++i) {
        rc = copy_box(engine, stream, copy_ends, &route->box[i], NULL);
    }
    return rc;
}

CUresult opal_umrddt_gpu_route_blocks(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                      const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                      uint64_t end, bool single, const CUcontext homes[2])
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    CUresult rc = CUDA_SUCCESS;

    opal_umrddt_gpu_pairs_begin(&pairs, copy_ends, start, end, flat);
    while (CUDA_SUCCESS == rc && opal_iov_cache_pairs_next(&pairs, &pair)) {
        opal_umrddt_gpu_box_t box;
        uint64_t i;
        int k;

        if (!single && opal_umrddt_gpu_box_of(&pair, &box)) {
            rc = copy_box(engine, stream, copy_ends, &box, homes);
            continue;
        }
        memset(&box, 0, sizeof(box));
        box.width = pair.length;
        box.height = 1;
        box.depth = 1;
        for (i = 0; CUDA_SUCCESS == rc && i < pair.count; ++i) {
            for (k = 0; k < 2; ++k) {
                box.offset[k] = pair.offset[k] + (int64_t) i * pair.stride[k];
            }
            rc = copy_box(engine, stream, copy_ends, &box, homes);
        }
    }
    return rc;
}

void opal_umrddt_gpu_route_host(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end)
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    uint64_t i;

    opal_umrddt_gpu_pairs_begin(&pairs, copy_ends, start, end, flat);
    while (opal_iov_cache_pairs_next(&pairs, &pair)) {
        for (i = 0; i < pair.count; ++i) {
            /* Both may be the same memory, though not in one message. */
            memmove((void *) (uintptr_t) at(&copy_ends[1],
                                            pair.offset[1] + (int64_t) i * pair.stride[1]),
                    (void *) (uintptr_t) at(&copy_ends[0],
                                            pair.offset[0] + (int64_t) i * pair.stride[0]),
                    pair.length);
        }
    }
}
