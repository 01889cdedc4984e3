/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies without a kernel: by the driver's copies of 1, 2 and 3 dimensions (boxes), by one a block,
 * or by the CPU. All of them walk both layouts at once; what boxes a range has is remembered.
 */

#include "umrddt_gpu_engine_private.h"

#include <string.h>

/* Parts of two layouts that are looked at to find boxes. */
#define PAIRS 4096
/* What a box's pitch can be. */
#define MAX_PITCH INT32_MAX
/* Where a box is preferred to a kernel. Between two H200 a box of few rows took 2 to 5 us less than
 * a kernel, and each row of 8 bytes about a quarter of a nanosecond more; long rows are as fast up
 * to 4 MiB. Beyond, kernels are better, but for very long rows (6 MiB in rows of 12 KiB: 45 us
 * against 68; on one device kernels would be better there as well).
 * bench/results/h200-2026-11-22.md */
#define SHORT_ROW 256
#define LONG_ROW  4096
#define FEW_ROWS  4096
#define LARGE_BOX (UINT64_C(4) << 20)

const opal_iov_cache_form_t *opal_umrddt_gpu_form_of(const opal_umrddt_gpu_place_t *place,
                                                     uint64_t start, uint64_t end,
                                                     opal_umrddt_gpu_flat_t *flat)
{
    if (NULL != place->layout) {
        return place->layout->form;
    }
    /* One piece, of which position `start` is at the place's address. */
    memset(flat, 0, sizeof(*flat));
    flat->term.offset = 0 - (int64_t) start;
    flat->term.count = 1;
    flat->term.size = end;
    flat->term.segments = 1;
    flat->term.kind = OPAL_IOV_CACHE_DENSE;
    flat->form.size = end;
    flat->form.lb = flat->term.offset;
    flat->form.ub = (int64_t) (end - start);
    flat->form.segments = 1;
    flat->form.uniform = end;
    flat->form.depth = 1;
    flat->form.term_count = 1;
    flat->form.terms = &flat->term;
    return &flat->form;
}

static void pairs_begin(opal_iov_cache_pairs_t *pairs, const opal_umrddt_gpu_place_t places[2],
                        uint64_t start, uint64_t end, opal_umrddt_gpu_flat_t flat[2])
{
    opal_iov_cache_pairs_init(pairs, opal_umrddt_gpu_form_of(&places[0], start, end, &flat[0]),
                              opal_umrddt_gpu_form_of(&places[1], start, end, &flat[1]), start,
                              end);
}

/* ---------------------------------------------------------------------------------------------
 * Finding boxes
 * ------------------------------------------------------------------------------------------- */

static bool is_pitch(int64_t distance, uint64_t width)
{
    return 0 < distance && MAX_PITCH >= distance && width <= (uint64_t) distance;
}

/* A part as a box. @return false if the driver cannot do it in one */
static bool box_of(const opal_iov_cache_pair_t *pair, opal_umrddt_gpu_box_t *box)
{
    int i;

    memset(box, 0, sizeof(*box));
    box->width = pair->length;
    box->height = pair->count;
    box->depth = 1;
    for (i = 0; i < 2; ++i) {
        box->offset[i] = pair->offset[i];
        if (1 < pair->count) {
            if (!is_pitch(pair->stride[i], pair->length)) {
                return false;
            }
            box->pitch[i] = (uint64_t) pair->stride[i];
        }
    }
    return true;
}

/* Take another box into one as its next row or plane. @return false if it is none */
static bool box_add(opal_umrddt_gpu_box_t *box, const opal_umrddt_gpu_box_t *next)
{
    int64_t step[2];
    int i;

    if (next->width != box->width || 1 != next->depth) {
        return false;
    }
    for (i = 0; i < 2; ++i) {
        step[i] = next->offset[i] - box->offset[i];
    }
    if (1 == next->height && 1 == box->depth) {
        for (i = 0; i < 2; ++i) {
            if (1 == box->height ? !is_pitch(step[i], box->width)
                                 : step[i] != (int64_t) (box->height * box->pitch[i])) {
                return false;
            }
        }
        for (i = 0; 1 == box->height && i < 2; ++i) {
            box->pitch[i] = (uint64_t) step[i];
        }
        ++box->height;
        return true;
    }
    if (next->height != box->height) {
        return false;
    }
    for (i = 0; i < 2; ++i) {
        /* Planes are whole rows apart. */
        if (next->pitch[i] != box->pitch[i] || 0 >= step[i]
            || (1 == box->depth ? 0 != (uint64_t) step[i] % box->pitch[i]
                                      || (uint64_t) step[i] < box->height * box->pitch[i]
                                : step[i] != (int64_t) (box->depth * box->slice[i]))) {
            return false;
        }
    }
    for (i = 0; 1 == box->depth && i < 2; ++i) {
        box->slice[i] = (uint64_t) step[i];
    }
    ++box->depth;
    return true;
}

/* @return 0 if there are none, or too many */
static unsigned find_boxes(const opal_umrddt_gpu_place_t places[2], uint64_t start, uint64_t end,
                           unsigned most, opal_umrddt_gpu_box_t *boxes)
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    opal_umrddt_gpu_box_t box;
    unsigned n = 0, seen = 0;

    pairs_begin(&pairs, places, start, end, flat);
    while (opal_iov_cache_pairs_next(&pairs, &pair)) {
        if (PAIRS < ++seen || !box_of(&pair, &box)) {
            return 0;
        }
        if (0 == n || !box_add(&boxes[n - 1], &box)) {
            if (most == n) {
                return 0;
            }
            boxes[n++] = box;
        }
    }
    return n;
}

static bool is_better(const opal_umrddt_gpu_box_t *box)
{
    const uint64_t rows = box->height * box->depth;

    return 1 == rows || LONG_ROW <= box->width
           || (LARGE_BOX >= box->width * rows && (SHORT_ROW <= box->width || FEW_ROWS >= rows));
}

/* The first of the slots where it may be. */
static opal_umrddt_gpu_route_t *slots_of(opal_umrddt_gpu_engine_t *engine,
                                         const opal_umrddt_gpu_route_t *key)
{
    uint64_t mix = key->id[0] * UINT64_C(0x9e3779b97f4a7c15) ^ key->id[1] << 1
                   ^ key->start * UINT64_C(0xc2b2ae3d27d4eb4f) ^ key->end;

    mix ^= mix >> 32;
    mix ^= mix >> 16;
    return &engine->route[(mix ^ mix >> 8) % (ROUTES / WAYS) * WAYS];
}

/* With the lock. */
static opal_umrddt_gpu_route_t *find(opal_umrddt_gpu_engine_t *engine,
                                     const opal_umrddt_gpu_route_t *key)
{
    opal_umrddt_gpu_route_t *slots = slots_of(engine, key);
    int i;

    for (i = 0; i < WAYS; ++i) {
        if (slots[i].end == key->end && slots[i].start == key->start && slots[i].id[0] == key->id[0]
            && slots[i].id[1] == key->id[1]) {
            return &slots[i];
        }
    }
    return NULL;
}

void opal_umrddt_gpu_route_find(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_route_t *route)
{
    const bool forced = OPAL_UMRDDT_GPU_HOW_DRIVER == opal_umrddt_gpu_engine_set.how;
    const opal_umrddt_gpu_route_t *found;
    opal_umrddt_gpu_route_t *slots;
    int i;

    for (i = 0; i < 2; ++i) {
        route->id[i] = NULL == places[i].layout ? 0 : places[i].layout->id;
    }
    route->start = start;
    route->end = end;
    pthread_mutex_lock(&engine->lock);
    found = find(engine, route);
    if (OPAL_LIKELY(NULL != found)) {
        *route = *found;
    }
    pthread_mutex_unlock(&engine->lock);
    if (OPAL_LIKELY(NULL != found)) {
        return;
    }
    COUNT(routes_made, 1);
    route->n = find_boxes(places, start, end, forced ? BOXES : 1, route->box);
    if (1 == route->n && !forced && !is_better(&route->box[0])) {
        route->n = 0;
    }
    if (!keep) {
        return;
    }
    pthread_mutex_lock(&engine->lock);
    if (NULL == find(engine, route)) {
        slots = slots_of(engine, route);
        for (i = 0; i < WAYS && 0 != slots[i].end; ++i) {
        }
        slots[WAYS > i ? (unsigned) i : engine->next_way++ % WAYS] = *route;
    }
    pthread_mutex_unlock(&engine->lock);
}

/* ---------------------------------------------------------------------------------------------
 * Doing them
 * ------------------------------------------------------------------------------------------- */

static CUdeviceptr at(const opal_umrddt_gpu_place_t *place, int64_t offset)
{
    return (CUdeviceptr) (place->address + (uint64_t) offset);
}

static CUresult copy_2d(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                        const opal_umrddt_gpu_place_t places[2], const opal_umrddt_gpu_box_t *box)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = at(&places[0], box->offset[0]);
    copy.srcPitch = box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = at(&places[1], box->offset[1]);
    copy.dstPitch = box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    return engine->driver->cuMemcpy2DAsync_v2(&copy, stream);
}

static CUresult copy_3d(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                        const opal_umrddt_gpu_place_t places[2], const opal_umrddt_gpu_box_t *box)
{
    CUDA_MEMCPY3D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = at(&places[0], box->offset[0]);
    copy.srcPitch = box->pitch[0];
    copy.srcHeight = box->slice[0] / box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = at(&places[1], box->offset[1]);
    copy.dstPitch = box->pitch[1];
    copy.dstHeight = box->slice[1] / box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    copy.Depth = box->depth;
    return engine->driver->cuMemcpy3DAsync_v2(&copy, stream);
}

/* From device to device, which do not reach each other. Rows of one plane only. */
static CUresult copy_peer(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                          const opal_umrddt_gpu_place_t places[2], const opal_umrddt_gpu_box_t *box,
                          const CUcontext homes[2])
{
    CUDA_MEMCPY3D_PEER copy;

    if (1 == box->height) {
        return engine->driver->cuMemcpyPeerAsync(at(&places[1], box->offset[1]), homes[1],
                                                 at(&places[0], box->offset[0]), homes[0],
                                                 box->width, stream);
    }
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = at(&places[0], box->offset[0]);
    copy.srcContext = homes[0];
    copy.srcPitch = box->pitch[0];
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = at(&places[1], box->offset[1]);
    copy.dstContext = homes[1];
    copy.dstPitch = box->pitch[1];
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    copy.Depth = 1;
    return engine->driver->cuMemcpy3DPeerAsync(&copy, stream);
}

static CUresult copy_box(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                         const opal_umrddt_gpu_place_t places[2], const opal_umrddt_gpu_box_t *box,
                         const CUcontext homes[2])
{
    COUNT(driver_copies, 1);
    if (OPAL_UNLIKELY(NULL != homes)) {
        return copy_peer(engine, stream, places, box, homes);
    }
    return 1 < box->depth ? copy_3d(engine, stream, places, box)
           : 1 < box->height
               ? copy_2d(engine, stream, places, box)
               : engine->driver->cuMemcpyAsync(at(&places[1], box->offset[1]),
                                               at(&places[0], box->offset[0]), box->width, stream);
}

CUresult opal_umrddt_gpu_route_go(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                  const opal_umrddt_gpu_route_t *route,
                                  const opal_umrddt_gpu_place_t places[2])
{
    CUresult rc = CUDA_SUCCESS;
    unsigned i;

    for (i = 0; CUDA_SUCCESS == rc && i < route->n; ++i) {
        rc = copy_box(engine, stream, places, &route->box[i], NULL);
    }
    return rc;
}

CUresult opal_umrddt_gpu_route_blocks(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                      const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                      uint64_t end, bool single, const CUcontext homes[2])
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    CUresult rc = CUDA_SUCCESS;

    pairs_begin(&pairs, places, start, end, flat);
    while (CUDA_SUCCESS == rc && opal_iov_cache_pairs_next(&pairs, &pair)) {
        opal_umrddt_gpu_box_t box;
        uint64_t i;
        int k;

        if (!single && box_of(&pair, &box)) {
            rc = copy_box(engine, stream, places, &box, homes);
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
            rc = copy_box(engine, stream, places, &box, homes);
        }
    }
    return rc;
}

void opal_umrddt_gpu_route_host(const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                uint64_t end)
{
    opal_umrddt_gpu_flat_t flat[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    uint64_t i;

    pairs_begin(&pairs, places, start, end, flat);
    while (opal_iov_cache_pairs_next(&pairs, &pair)) {
        for (i = 0; i < pair.count; ++i) {
            /* The two may be the same memory, though not of one message. */
            memmove(
                (void *) (uintptr_t) at(&places[1], pair.offset[1] + (int64_t) i * pair.stride[1]),
                (void *) (uintptr_t) at(&places[0], pair.offset[0] + (int64_t) i * pair.stride[0]),
                pair.length);
        }
    }
}
