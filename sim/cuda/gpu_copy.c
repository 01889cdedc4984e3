/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies and memsets of all shapes. Which of them wait is as with the driver, and stricter where
 * the driver is free to: work that need not wait does not.
 */

#include "gpu_copy.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    struct gpu_work head;
    struct gpu_box box;
    char *staged; /* pageable memory as it was when the call was made; packed */
};

struct set {
    struct gpu_work head;
    struct gpu_set set;
};

/* The bytes from the first to behind the last. */
static size_t extent(const struct gpu_box *box, const struct gpu_side *side)
{
    return (box->depth - 1) * side->slice + (box->height - 1) * side->pitch + box->width;
}

static void copy_rows(const struct gpu_box *box, char *to, const char *from, bool packed)
{
    size_t y;
    size_t z;

    for (z = 0; z < box->depth; z++) {
        for (y = 0; y < box->height; y++) {
            char *t = to + z * box->to.slice + y * box->to.pitch;

            memmove(t,
                    packed ? from + (z * box->height + y) * box->width
                           : from + z * box->from.slice + y * box->from.pitch,
                    box->width);
        }
    }
}

/* The memory may have changed since the call: freed memory is an illegal address. */
static CUresult run_copy(struct gpu_work *work, CUcontext ctx)
{
    struct copy *copy = (struct copy *) work;
    const struct gpu_box *box = &copy->box;
    struct gpu_place from;
    struct gpu_place to;
    CUresult rc;

    (void) ctx;
    pthread_mutex_lock(&gpu_lock);
    gpu_count.copies++;
    gpu_count.copies_2d += 1 < box->height || 1 < box->depth;
    gpu_count.copy_bytes += box->width * box->height * box->depth;
    rc = gpu_count_call(GPU_FN_copy);
    if (CUDA_SUCCESS == rc
        && (CUDA_SUCCESS != gpu_place_find(box->to.address, extent(box, &box->to), &to)
            || CUDA_SUCCESS != gpu_place_find(box->from.address, extent(box, &box->from), &from)
            || (box->to.known && !to.known) || (box->from.known && !from.known))) {
        rc = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    pthread_mutex_unlock(&gpu_lock);
    if (CUDA_SUCCESS == rc) {
        copy_rows(box, to.view, NULL == copy->staged ? from.view : copy->staged,
                  NULL != copy->staged);
    }
    return rc;
}

static void drop_copy(struct gpu_work *work)
{
    free(((struct copy *) work)->staged);
}

/* Copies find memory of other devices by themselves, except memory with rights of its own: that of
 * a pool, or mapped. There only those that name both contexts do. */
static bool may_copy(CUcontext ctx, const struct gpu_box *box, const struct gpu_place *place,
                     bool write)
{
    return box->peer || !place->known || (GPU_POOL != place->kind && GPU_VMM != place->kind)
           || gpu_may_touch(ctx, place->range, write);
}

/* The properties of a side. @return it has SYNC_MEMOPS; with which copies of a pool's memory do not
 * wait */
static bool describe(struct gpu_side *side, const struct gpu_place *place)
{
    side->known = place->known;
    side->on_device = place->on_device;
    side->pinned = place->known && (GPU_HOST == place->kind || GPU_REGISTERED == place->kind);
    side->id = place->known ? place->range->id : 0;
    return place->sync && GPU_POOL != place->kind;
}

CUresult gpu_box_check(CUcontext ctx, struct gpu_box *box)
{
    struct gpu_place place;

    if (0 == box->width || 0 == box->height || 0 == box->depth) {
        return CUDA_SUCCESS;
    }
    /* Impossible values are not computed with. */
    if (box->width > GPU_COPY_MAX || box->height > GPU_COPY_MAX || box->depth > GPU_COPY_MAX
        || (1 < box->height && (box->to.pitch < box->width || box->from.pitch < box->width))
        || (1 < box->depth
            && (box->to.slice < box->to.pitch * (box->height - 1)
                || box->from.slice < box->from.pitch * (box->height - 1)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (CUDA_SUCCESS != gpu_place_find(box->to.address, extent(box, &box->to), &place)
        || place.freed || (box->to.device && !place.known) || !may_copy(ctx, box, &place, true)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    box->sync = describe(&box->to, &place);
    if (CUDA_SUCCESS != gpu_place_find(box->from.address, extent(box, &box->from), &place)
        || place.freed || (box->from.device && !place.known)
        || !may_copy(ctx, box, &place, false)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    box->sync = describe(&box->from, &place) || box->sync;
    /* A device address in place of a host address. */
    return (box->to.host && box->to.on_device) || (box->from.host && box->from.on_device)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

struct gpu_work *gpu_copy_new(const struct gpu_box *box)
{
    struct copy *copy = gpu_work_new(sizeof(*copy), CU_GRAPH_NODE_TYPE_MEMCPY, run_copy, drop_copy);

    if (NULL != copy) {
        copy->box = *box;
    }
    return NULL == copy ? NULL : &copy->head;
}

/* Copies from pageable memory: it can change as soon as the call returns. */
static CUresult stage(struct copy *copy)
{
    struct gpu_box packed = copy->box;

    copy->staged = malloc(packed.width * packed.height * packed.depth);
    if (NULL == copy->staged) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    packed.to.pitch = packed.width;
    packed.to.slice = packed.width * packed.height;
    copy_rows(&packed, copy->staged, (const char *) packed.from.address, false);
    return CUDA_SUCCESS;
}

CUresult gpu_copy(CUcontext ctx, struct gpu_box *box, CUstream handle, bool async)
{
    struct copy *copy;
    CUstream stream;
    bool wait;
    CUresult rc = gpu_stream_get(ctx, handle, &stream);

    if (CUDA_SUCCESS == rc) {
        rc = gpu_box_check(ctx, box);
    }
    if (CUDA_SUCCESS != rc || 0 == box->width || 0 == box->height || 0 == box->depth) {
        return rc;
    }
    copy = (struct copy *) gpu_copy_new(box);
    if (NULL == copy) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (NULL != stream->capture) {
        return gpu_submit(stream, &copy->head, false);
    }
    if (!box->from.known && box->to.known) {
        /* A call without 'async' waits for earlier work, not for the device. */
        if (!async) {
            rc = gpu_stream_wait(stream, stream->submitted);
        }
        rc = CUDA_SUCCESS == rc ? stage(copy) : rc;
        if (CUDA_SUCCESS != rc) {
            gpu_work_drop(&copy->head);
            return rc;
        }
        wait = !async && (box->sync || box->to.pinned);
    } else if (!box->to.known) {
        wait = true;
    } else {
        wait = !async && (!box->to.on_device || !box->from.on_device || box->sync);
    }
    copy->head.late = !async && !wait;
    copy->head.touches[0] = box->to.id;
    copy->head.touches[1] = box->from.id;
    return gpu_submit(stream, &copy->head, wait);
}

/* ---- the API: one dimension ---- */

static void flat(struct gpu_box *box, uintptr_t to, uintptr_t from, size_t size)
{
    memset(box, 0, sizeof(*box));
    box->to.address = to;
    box->from.address = from;
    box->width = size;
    box->height = 1;
    box->depth = 1;
}

enum {
    ANY,
    HOST,
    DEVICE
};

static CUresult copy_flat(CUcontext ctx, uintptr_t to, int to_kind, uintptr_t from, int from_kind,
                          size_t size, CUstream stream, bool async)
{
    struct gpu_box box;

    flat(&box, to, from, size);
    box.to.host = HOST == to_kind;
    box.to.device = DEVICE == to_kind;
    box.from.host = HOST == from_kind;
    box.from.device = DEVICE == from_kind;
    return gpu_copy(ctx, &box, stream, async);
}

/* All flat copies are alike. */
#define FLAT(name, arguments, to, to_kind, from, from_kind, stream, async)                      \
    GPU_EXPORT CUresult name arguments                                                          \
    {                                                                                           \
        CUcontext ctx;                                                                          \
                                                                                                \
        GPU_BEGIN_STREAM(name, stream, &ctx);                                                   \
        return gpu_end(copy_flat(ctx, (uintptr_t) (to), to_kind, (uintptr_t) (from), from_kind, \
                                 size, stream, async));                                         \
    }

FLAT(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), to, ANY, from, ANY, NULL, false)
FLAT(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, ANY, from,
     ANY, stream, true)
FLAT(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size), to, DEVICE, from, HOST, NULL,
     false)
FLAT(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size, CUstream stream), to,
     DEVICE, from, HOST, stream, true)
FLAT(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), to, HOST, from, DEVICE, NULL,
     false)
FLAT(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream), to, HOST,
     from, DEVICE, stream, true)
FLAT(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), to, DEVICE, from, DEVICE,
     NULL, false)
FLAT(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to,
     DEVICE, from, DEVICE, stream, true)

static CUresult copy_peer(CUcontext ctx, CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
                          CUcontext from_ctx, size_t size, CUstream stream, bool async)
{
    struct gpu_box box;

    if (!gpu_ctx_exists(to_ctx) || !gpu_ctx_exists(from_ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    flat(&box, to, from, size);
    box.to.device = true;
    box.from.device = true;
    box.peer = true;
    return gpu_copy(ctx, &box, stream, async);
}

GPU_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
                                 CUcontext from_ctx, size_t size)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuMemcpyPeer, &ctx);
    return gpu_end(copy_peer(ctx, to, to_ctx, from, from_ctx, size, NULL, false));
}

GPU_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
                                      CUcontext from_ctx, size_t size, CUstream stream)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuMemcpyPeerAsync, stream, &ctx);
    return gpu_end(copy_peer(ctx, to, to_ctx, from, from_ctx, size, stream, true));
}

/* ---- two and three dimensions ---- */

static CUresult side(struct gpu_side *side, CUmemorytype type, const void *host, CUdeviceptr device,
                     size_t x, size_t y, size_t z, size_t pitch, size_t height,
                     const struct gpu_box *box)
{
    side->host = CU_MEMORYTYPE_HOST == (int) type;
    side->device = CU_MEMORYTYPE_DEVICE == (int) type;
    if (!side->host && !side->device && CU_MEMORYTYPE_UNIFIED != (int) type) {
        return CU_MEMORYTYPE_ARRAY == (int) type ? CUDA_ERROR_NOT_SUPPORTED
                                                 : CUDA_ERROR_INVALID_VALUE;
    }
    side->pitch = 0 == pitch ? box->width : pitch;
    side->slice = side->pitch * (0 == height ? box->height : height);
    if ((0 != pitch && pitch < x + box->width && 1 < box->height)
        || (0 != height && height < y + box->height && 1 < box->depth)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    side->address = (side->host ? (uintptr_t) host : (uintptr_t) device) + x + y * side->pitch
                    + z * side->slice;
    return CUDA_SUCCESS;
}

static CUresult box_2d(const CUDA_MEMCPY2D *c, struct gpu_box *box)
{
    CUresult rc;

    memset(box, 0, sizeof(*box));
    if (NULL == c) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    box->width = c->WidthInBytes;
    box->height = c->Height;
    box->depth = 1;
    rc = side(&box->from, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, 0,
              c->srcPitch, 0, box);
    return CUDA_SUCCESS != rc ? rc
                              : side(&box->to, c->dstMemoryType, c->dstHost, c->dstDevice,
                                     c->dstXInBytes, c->dstY, 0, c->dstPitch, 0, box);
}

/* Both three-dimensional structures have these members. */
#define BOX_3D(c, box, rc)                                                                         \
    do {                                                                                           \
        memset(box, 0, sizeof(*(box)));                                                            \
        (box)->width = (c)->WidthInBytes;                                                          \
        (box)->height = (c)->Height;                                                               \
        (box)->depth = (c)->Depth;                                                                 \
        rc = side(&(box)->from, (c)->srcMemoryType, (c)->srcHost, (c)->srcDevice,                  \
                  (c)->srcXInBytes, (c)->srcY, (c)->srcZ, (c)->srcPitch, (c)->srcHeight, box);     \
        if (CUDA_SUCCESS == rc) {                                                                  \
            rc = side(&(box)->to, (c)->dstMemoryType, (c)->dstHost, (c)->dstDevice,                \
                      (c)->dstXInBytes, (c)->dstY, (c)->dstZ, (c)->dstPitch, (c)->dstHeight, box); \
        }                                                                                          \
    } while (0)

CUresult gpu_box_3d(const CUDA_MEMCPY3D *copy, struct gpu_box *box)
{
    CUresult rc;

    if (NULL == copy || 0 != copy->srcLOD || 0 != copy->dstLOD) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    BOX_3D(copy, box, rc);
    return rc;
}

static CUresult box_peer(const CUDA_MEMCPY3D_PEER *copy, struct gpu_box *box)
{
    CUresult rc;

    if (NULL == copy) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((CU_MEMORYTYPE_DEVICE == (int) copy->srcMemoryType && !gpu_ctx_exists(copy->srcContext))
        || (CU_MEMORYTYPE_DEVICE == (int) copy->dstMemoryType
            && !gpu_ctx_exists(copy->dstContext))) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    BOX_3D(copy, box, rc);
    box->peer = true;
    return rc;
}

#define BOX(name, arguments, fill, stream, async)                                     \
    GPU_EXPORT CUresult name arguments                                                \
    {                                                                                 \
        struct gpu_box box;                                                           \
        CUcontext ctx;                                                                \
        CUresult rc;                                                                  \
                                                                                      \
        GPU_BEGIN_STREAM(name, stream, &ctx);                                         \
        rc = fill(copy, &box);                                                        \
        return gpu_end(CUDA_SUCCESS == rc ? gpu_copy(ctx, &box, stream, async) : rc); \
    }

BOX(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), box_2d, NULL, false)
BOX(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy), box_2d, NULL, false)
BOX(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream), box_2d, stream, true)
BOX(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), gpu_box_3d, NULL, false)
BOX(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy, CUstream stream), gpu_box_3d, stream, true)
BOX(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy), box_peer, NULL, false)
BOX(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream), box_peer, stream, true)

/* ---- memsets ---- */

static CUresult run_set(struct gpu_work *work, CUcontext ctx)
{
    const struct gpu_set *set = &((struct set *) work)->set;
    struct gpu_place place;
    CUresult rc;
    size_t x;
    size_t y;

    (void) ctx;
    pthread_mutex_lock(&gpu_lock);
    gpu_count.memsets++;
    rc = gpu_place_find(set->address, (set->height - 1) * set->pitch + set->width * set->element,
                        &place);
    if (CUDA_SUCCESS != rc || !place.known) {
        return gpu_end(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    pthread_mutex_unlock(&gpu_lock);
    for (y = 0; y < set->height; y++) {
        unsigned char *row = (unsigned char *) place.view + y * set->pitch;

        /* arrays of gigabytes are cleared by bytes */
        if (1 == set->element) {
            memset(row, (int) (set->value & 0xff), set->width);
            continue;
        }
        for (x = 0; x < set->width; x++) {
            memcpy(row + x * set->element, &set->value, set->element);
        }
    }
    return CUDA_SUCCESS;
}

CUresult gpu_set_check(const struct gpu_set *set, struct gpu_place *place)
{
    if (set->width > GPU_COPY_MAX || set->height > GPU_COPY_MAX
        || (1 < set->height && set->pitch < set->width * set->element)
        || 0 != set->address % set->element) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (0 == set->width || 0 == set->height) {
        return CUDA_SUCCESS;
    }
    if (CUDA_SUCCESS
            != gpu_place_find(set->address,
                              (set->height - 1) * set->pitch + set->width * set->element, place)
        || !place->known || place->freed) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

struct gpu_work *gpu_set_new(const struct gpu_set *set)
{
    struct set *work = gpu_work_new(sizeof(*work), CU_GRAPH_NODE_TYPE_MEMSET, run_set, NULL);

    if (NULL != work) {
        work->set = *set;
    }
    return NULL == work ? NULL : &work->head;
}

static CUresult memset_any(CUcontext ctx, CUdeviceptr ptr, size_t pitch, unsigned value,
                           unsigned element, size_t width, size_t height, CUstream handle,
                           bool async)
{
    struct gpu_set set = {ptr, pitch, value, element, width, height};
    struct gpu_place place;
    struct gpu_work *work;
    CUstream stream;
    bool wait;
    CUresult rc = gpu_stream_get(ctx, handle, &stream);

    if (CUDA_SUCCESS == rc) {
        rc = gpu_set_check(&set, &place);
    }
    if (CUDA_SUCCESS != rc || 0 == width || 0 == height) {
        return rc;
    }
    wait = !async && (!place.on_device || place.sync);
    work = gpu_set_new(&set);
    if (NULL != work) {
        work->late = !async && !wait;
        work->touches[0] = place.range->id;
    }
    return gpu_submit(stream, work, wait);
}

#define SET(name, arguments, pitch, element, width, height, stream, async)                         \
    GPU_EXPORT CUresult name arguments                                                             \
    {                                                                                              \
        CUcontext ctx;                                                                             \
                                                                                                   \
        GPU_BEGIN_STREAM(name, stream, &ctx);                                                      \
        return gpu_end(memset_any(ctx, ptr, pitch, value, element, width, height, stream, async)); \
    }

SET(cuMemsetD8_v2, (CUdeviceptr ptr, unsigned char value, size_t count), 0, 1, count, 1, NULL,
    false)
SET(cuMemsetD16_v2, (CUdeviceptr ptr, unsigned short value, size_t count), 0, 2, count, 1, NULL,
    false)
SET(cuMemsetD32_v2, (CUdeviceptr ptr, unsigned int value, size_t count), 0, 4, count, 1, NULL,
    false)
SET(cuMemsetD2D8_v2,
    (CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height), pitch, 1,
    width, height, NULL, false)
SET(cuMemsetD8Async, (CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream), 0, 1,
    count, 1, stream, true)
SET(cuMemsetD16Async, (CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream), 0, 2,
    count, 1, stream, true)
SET(cuMemsetD32Async, (CUdeviceptr ptr, unsigned int value, size_t count, CUstream stream), 0, 4,
    count, 1, stream, true)
SET(cuMemsetD2D8Async,
    (CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height,
     CUstream stream),
    pitch, 1, width, height, stream, true)
