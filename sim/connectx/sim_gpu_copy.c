/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_gpu_copy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "umrddt_cuda.h"

/* Contexts that memory may be of. */
#define PLACES 32

/* Pinned memory between the HCA and a context, so that copies are queued and not done one by one:
 * a frame, or the longest list of an mkey. */
#define BOUNCE_BYTES (256u << 10)

/* From so many pieces on, of one length and as far apart, one copy in two dimensions. */
#define RUN_MIN   4
#define PITCH_MAX (1ull << 30)

#define COPY_FUNCTIONS(X)       \
    X(cuPointerGetAttributes)   \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxPushCurrent_v2)      \
    X(cuCtxPopCurrent_v2)       \
    X(cuStreamCreate)           \
    X(cuStreamSynchronize)      \
    X(cuMemHostAlloc)           \
    X(cuMemcpyAsync)            \
    X(cuMemcpy2DAsync_v2)

/* A context that copies have used; never removed, as its end is not reported. */
struct place {
    CUcontext ctx;
    CUstream stream;
    uint8_t *bounce;
};

static struct {
#define SLOT(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS(SLOT)
} cuda;

static atomic_bool found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for additions to the places */
static struct place places[PLACES];
static atomic_uint place_count;

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    /* POSIX's way from an object's address to a function's */
    memcpy(slot, &function, sizeof(function));
    return NULL != function;
}

void sim_gpu_copy_find(void *library)
{
    bool all = true;

    if (atomic_load(&found)) {
        return;
    }
    pthread_mutex_lock(&lock);
#define FIND(name) all = find(library, #name, &cuda.name) && all;
    COPY_FUNCTIONS(FIND)
    atomic_store(&found, all);
    pthread_mutex_unlock(&lock);
}

static struct place *place_of(CUcontext ctx)
{
    unsigned count = atomic_load(&place_count);

    for (unsigned i = 0; i < count; i++) {
        if (ctx == places[i].ctx) {
            return &places[i];
        }
    }
    return NULL;
}

/* What copies in a context need, made now: they themselves run within the HCA. */
static bool place_add(CUcontext ctx)
{
    struct place place = {.ctx = ctx};
    unsigned count;
    CUcontext before;
    void *bounce = NULL;
    bool made = NULL != place_of(ctx);

    if (made) {
        return true;
    }
    pthread_mutex_lock(&lock);
    count = atomic_load(&place_count);
    made = NULL != place_of(ctx);
    if (!made && PLACES > count && CUDA_SUCCESS == cuda.cuCtxPushCurrent_v2(ctx)) {
        made =
            CUDA_SUCCESS == cuda.cuStreamCreate(&place.stream, CU_STREAM_NON_BLOCKING)
            && CUDA_SUCCESS == cuda.cuMemHostAlloc(&bounce, BOUNCE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
        (void) cuda.cuCtxPopCurrent_v2(&before);
        if (made) {
            place.bounce = bounce;
            places[count] = place;
            atomic_store(&place_count, count + 1);
        }
    }
    pthread_mutex_unlock(&lock);
    return made;
}

int sim_gpu_copy_look(uint64_t address, uint64_t length, void **ctx)
{
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned int type = 0, managed = 0;
    CUcontext of = NULL;
    int device = -1;
    CUdeviceptr start = 0;
    size_t size = 0;
    void *values[] = {&type, &managed, &of, &device, &start, &size};

    if (!atomic_load(&found)
        || CUDA_SUCCESS
               != cuda.cuPointerGetAttributes(sizeof(names) / sizeof(names[0]), names, values,
                                              address)
        || CU_MEMORYTYPE_DEVICE != type) {
        return 0;
    }
    if (0 != managed || address < start || address - start > size
        || length > size - (address - start)) {
        return -1;
    }
    /* Memory of pools, and mapped memory, has no context. */
    if (NULL == of && CUDA_SUCCESS != cuda.cuDevicePrimaryCtxRetain(&of, device)) {
        return -1;
    }
    if (!place_add(of)) {
        return -1;
    }
    *ctx = of;
    return 1;
}

/* How many of the pieces, from the first on, have one length and one distance. */
static size_t run_of(const struct iovec *pieces, size_t count)
{
    size_t length = pieces[0].iov_len, n = 2;
    uintptr_t pitch;

    if (RUN_MIN > count) {
        return 1;
    }
    pitch = (uintptr_t) pieces[1].iov_base - (uintptr_t) pieces[0].iov_base;
    if (0 == length || pitch < length || pitch > PITCH_MAX || length != pieces[1].iov_len) {
        return 1;
    }
    while (n < count && length == pieces[n].iov_len
           && pitch == (uintptr_t) pieces[n].iov_base - (uintptr_t) pieces[n - 1].iov_base) {
        n++;
    }
    return RUN_MIN <= n ? n : 1;
}

/* Queue the copy of a run of pieces from or to memory in one piece. */
static CUresult move(const struct place *place, const struct iovec *pieces, size_t run,
                     uint8_t *flat, bool gather)
{
    CUdeviceptr there = (CUdeviceptr) (uintptr_t) pieces[0].iov_base;
    CUdeviceptr here = (CUdeviceptr) (uintptr_t) flat;
    size_t length = pieces[0].iov_len, pitch;
    CUDA_MEMCPY2D copy;

    if (1 == run) {
        return 0 == length ? CUDA_SUCCESS
                           : cuda.cuMemcpyAsync(gather ? here : there, gather ? there : here,
                                                length, place->stream);
    }
    pitch = (size_t) ((uintptr_t) pieces[1].iov_base - (uintptr_t) pieces[0].iov_base);
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = gather ? there : here;
    copy.dstDevice = gather ? here : there;
    copy.srcPitch = gather ? pitch : length;
    copy.dstPitch = gather ? length : pitch;
    copy.WidthInBytes = length;
    copy.Height = run;
    return cuda.cuMemcpy2DAsync_v2(&copy, place->stream);
}

int sim_gpu_copy(void *ctx, const struct iovec *pieces, size_t count, void *flat, bool gather)
{
    const struct place *place = place_of(ctx);
    CUresult rc = CUDA_SUCCESS, synchronized;
    size_t bytes = 0, at = 0, run, i;
    CUcontext before;

    for (i = 0; i < count; i++) {
        bytes += pieces[i].iov_len;
    }
    if (NULL == place || BOUNCE_BYTES < bytes || CUDA_SUCCESS != cuda.cuCtxPushCurrent_v2(ctx)) {
        return -1;
    }
    if (!gather) {
        memcpy(place->bounce, flat, bytes);
    }
    for (i = 0; CUDA_SUCCESS == rc && i < count; i += run) {
        run = run_of(&pieces[i], count - i);
        rc = move(place, &pieces[i], run, place->bounce + at, gather);
        at += run * pieces[i].iov_len;
    }
    synchronized = cuda.cuStreamSynchronize(place->stream);
    (void) cuda.cuCtxPopCurrent_v2(&before);
    if (CUDA_SUCCESS != rc || CUDA_SUCCESS != synchronized) {
        return -1;
    }
    if (gather) {
        memcpy(flat, place->bounce, bytes);
    }
    return 0;
}
