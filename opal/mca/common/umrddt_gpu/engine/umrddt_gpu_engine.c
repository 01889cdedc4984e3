/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Engines: creation, lookup and destruction. Their list only grows until all are freed, so it is
 * read without a lock. The handle of a destroyed context can be reused, but not its number
 * (cuCtxGetId), which detects this.
 */

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_flush.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"
#include "opal/util/output.h"

const char opal_umrddt_gpu_no_kernels[] = ".version 6.0\n.target sm_70\n.address_size 64\n";

opal_umrddt_gpu_engine_params_t opal_umrddt_gpu_engine_set = {
    .how = OPAL_UMRDDT_GPU_HOW_AUTO,
    .scheme = OPAL_UMRDDT_GPU_AUTO,
    .shape_cache = (size_t) 64 << 20,
    .staging = (size_t) 64 << 20,
    .staging_chunk = (size_t) 512 << 10,
    .graphs = 64,
};
opal_umrddt_gpu_engine_stats_t opal_umrddt_gpu_engine_counts;

static pthread_mutex_t engines_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_umrddt_gpu_engine_t *engines;

void opal_umrddt_gpu_engine_params(const opal_umrddt_gpu_engine_params_t *params)
{
    pthread_mutex_lock(&engines_lock);
    if (NULL == engines) {
        opal_umrddt_gpu_engine_set = *params;
        opal_umrddt_gpu_staging_bound(params->staging);
    }
    pthread_mutex_unlock(&engines_lock);
}

/* ---------------------------------------------------------------------------------------------
 * The current context
 * ------------------------------------------------------------------------------------------- */

bool opal_umrddt_gpu_engine_is_there(const opal_umrddt_gpu_engine_t *engine)
{
    uint64_t id = 0;

    if (__atomic_load_n(&engine->gone, __ATOMIC_RELAXED)) {
        return false;
    }
    if (0 == engine->witness) {
        return engine->primary; /* it is retained, so the context exists */
    }
    return CUDA_SUCCESS
               == engine->driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                        engine->witness)
           && id == engine->witness_id;
}

int opal_umrddt_gpu_engine_enter(opal_umrddt_gpu_engine_t *engine)
{
    return opal_umrddt_gpu_engine_error(engine->driver->cuCtxPushCurrent_v2(engine->ctx));
}

void opal_umrddt_gpu_engine_leave(opal_umrddt_gpu_engine_t *engine)
{
    CUcontext popped;

    (void) engine->driver->cuCtxPopCurrent_v2(&popped);
}

int opal_umrddt_gpu_engine_swap_in(opal_umrddt_gpu_engine_t *engine, bool *pushed)
{
    CUcontext now = NULL;

    *pushed = false;
    if (CUDA_SUCCESS == engine->driver->cuCtxGetCurrent(&now) && engine->ctx == now) {
        return OPAL_SUCCESS;
    }
    *pushed = true;
    return opal_umrddt_gpu_engine_enter(engine);
}

/* ---------------------------------------------------------------------------------------------
 * Creation
 * ------------------------------------------------------------------------------------------- */

static int attribute(const opal_umrddt_gpu_engine_t *engine, CUdevice_attribute which,
                     int otherwise)
{
    int value = otherwise;

    return CUDA_SUCCESS == engine->driver->cuDeviceGetAttribute(&value, which, engine->device)
               ? value
               : otherwise;
}

/* Without kernels everything works, but slowly: one copy per block. */
static void report_no_kernels(const opal_umrddt_gpu_engine_t *engine, CUresult rc, bool built)
{
    const char *why = "this umrddt was built without them";

    if (NULL == opal_umrddt_gpu_engine_set.no_kernels) {
        return;
    }
    if (built && (CUDA_SUCCESS != engine->driver->cuGetErrorString(rc, &why) || NULL == why)) {
        why = "an unknown error";
    }
    opal_umrddt_gpu_engine_set.no_kernels(engine->device, why);
}

void opal_umrddt_gpu_lose_kernels(opal_umrddt_gpu_engine_t *engine, CUresult rc)
{
    if (!opal_umrddt_gpu_is_transient(rc)
        && __atomic_exchange_n(&engine->kernels, false, __ATOMIC_RELAXED)) {
        report_no_kernels(engine, rc, true);
    }
}

/* An engine whose device has no code in the image has no kernels. */
static void load_kernels(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    const void *image;
    CUresult rc = CUDA_SUCCESS;
    CUfunction any;
    size_t bytes;

    image = opal_umrddt_gpu_fatbin(&bytes);
    image = 0 < bytes ? image : opal_umrddt_gpu_no_kernels;
    if (0 == bytes || !opal_umrddt_gpu_is_ptx(image)) {
        rc = driver->cuModuleLoadData(&engine->module, image);
        if (CUDA_SUCCESS != rc) {
            engine->module = NULL;
        }
    }
    if (CUDA_SUCCESS == rc) {
        rc = opal_umrddt_gpu_function(engine, 0, &any);
    }
    engine->kernels = CUDA_SUCCESS == rc;
    if (!engine->kernels) {
        report_no_kernels(engine, rc, 0 < bytes);
    }
}

static CUresult make_streams(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    int least = 0, greatest = 0, i;
    CUresult rc = CUDA_SUCCESS;

    if (CUDA_SUCCESS != driver->cuCtxGetStreamPriorityRange(&least, &greatest)) {
        greatest = 0;
    }
    for (i = 0; CUDA_SUCCESS == rc && i < STREAMS; ++i) {
        rc = driver->cuStreamCreateWithPriority(&engine->stream[i], CU_STREAM_NON_BLOCKING,
                                                greatest);
        if (CUDA_ERROR_NOT_SUPPORTED == rc || CUDA_ERROR_INVALID_VALUE == rc) {
            rc = driver->cuStreamCreate(&engine->stream[i], CU_STREAM_NON_BLOCKING);
        }
        if (CUDA_SUCCESS != rc) {
            engine->stream[i] = NULL;
        }
    }
    return rc;
}

/* A destroyed context cannot be queried; memory of it can. */
static void make_witness(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;

    if (CUDA_SUCCESS != driver->cuMemAlloc_v2(&engine->witness, sizeof(uint64_t))) {
        engine->witness = 0;
    } else if (CUDA_SUCCESS
               != driver->cuPointerGetAttribute(&engine->witness_id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                engine->witness)) {
        (void) driver->cuMemFree_v2(engine->witness);
        engine->witness = 0;
    }
}

/* Free all driver objects. @param[in] alive  the context exists, and is current */
static void empty(opal_umrddt_gpu_engine_t *engine, bool alive)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    int i;

    opal_umrddt_gpu_change(&opal_umrddt_gpu_pending_copies, -(int) engine->pending.n);
    opal_umrddt_gpu_copies_free(engine, alive);
    opal_umrddt_gpu_graphs_free(engine, alive);
    opal_umrddt_gpu_shapes_free(engine, alive);
    for (i = 0; alive && i < STREAMS; ++i) {
        if (NULL != engine->stream[i]) {
            (void) driver->cuStreamDestroy_v2(engine->stream[i]);
        }
    }
    if (alive && engine->orders) {
        (void) driver->cuEventDestroy_v2(engine->order_event);
    }
    if (alive && NULL != engine->order_stream) {
        (void) driver->cuStreamDestroy_v2(engine->order_stream);
    }
    if (alive && NULL != engine->module) {
        (void) driver->cuModuleUnload(engine->module);
    }
    for (i = 0; alive && i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        if (NULL != engine->single[i]) {
            (void) driver->cuModuleUnload(engine->single[i]);
        }
    }
    if (alive && NULL != engine->reduce_module) {
        (void) driver->cuModuleUnload(engine->reduce_module);
    }
    if (alive && 0 != engine->witness) {
        (void) driver->cuMemFree_v2(engine->witness);
    }
}

/* With the context current. */
static CUresult fill(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(1);
    int processors;
    CUresult rc;

    rc = driver->cuCtxGetDevice(&engine->device);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    if (CUDA_SUCCESS != driver->cuCtxGetId(engine->ctx, &engine->ctx_id)) {
        engine->ctx_id = 0;
    }
    engine->translates =
        0 == attribute(engine, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1);
    processors = attribute(engine, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
    engine->fit = fit;
    engine->fit.processors = 0 < processors ? (uint32_t) processors : 1;
    engine->writes_values = true;
    rc = make_streams(engine);
    if (CUDA_SUCCESS == rc) {
        make_witness(engine);
        load_kernels(engine);
    }
    return rc;
}

static int make(const opal_umrddt_gpu_driver_t *driver, CUcontext ctx,
                opal_umrddt_gpu_engine_t **made)
{
    opal_umrddt_gpu_engine_t *engine = calloc(1, sizeof(*engine));
    CUresult rc;

    if (NULL == engine) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    engine->driver = driver;
    engine->ctx = ctx;
    OBJ_CONSTRUCT(&engine->lock, opal_mutex_t);
    pthread_mutex_init(&engine->reserve_lock, NULL);
    rc = driver->cuCtxPushCurrent_v2(ctx);
    if (CUDA_SUCCESS == rc) {
        rc = fill(engine);
        if (CUDA_SUCCESS != rc) {
            empty(engine, true);
        }
        opal_umrddt_gpu_engine_leave(engine);
    }
    if (CUDA_SUCCESS != rc) {
        OBJ_DESTRUCT(&engine->lock);
        pthread_mutex_destroy(&engine->reserve_lock);
        free(engine);
        return opal_umrddt_gpu_engine_error(rc);
    }
    *made = engine;
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Lookup
 * ------------------------------------------------------------------------------------------- */

static bool is_of(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_memory_t *memory)
{
    unsigned long long id = 0;

    if (__atomic_load_n(&engine->gone, __ATOMIC_RELAXED)
        || (NULL == memory->ctx ? !__atomic_load_n(&engine->primary, __ATOMIC_RELAXED)
                                      || memory->device != engine->device
                                : memory->ctx != engine->ctx)) {
        return false;
    }
    /* Also if a copy is in progress: one into system memory does not keep the context alive. */
    if (0 == engine->ctx_id
        || (CUDA_SUCCESS == engine->driver->cuCtxGetId(engine->ctx, &id) && id == engine->ctx_id)) {
        return true;
    }
    __atomic_store_n(&engine->gone, true, __ATOMIC_RELAXED);
    return false;
}

static inline opal_umrddt_gpu_engine_t *find(const opal_umrddt_gpu_memory_t *memory)
{
    opal_umrddt_gpu_engine_t *engine = __atomic_load_n(&engines, __ATOMIC_ACQUIRE);

    while (NULL != engine && !is_of(engine, memory)) {
        engine = engine->next;
    }
    return engine;
}

/* Find or create an engine; with the lock. */
static int find_or_make(const opal_umrddt_gpu_driver_t *driver,
                        const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_engine_t **result)
{
    opal_umrddt_gpu_engine_t *engine = find(memory);
    opal_umrddt_gpu_memory_t in_context = *memory;
    CUdevice device = 0;
    CUresult rc = CUDA_SUCCESS;
    int made = OPAL_SUCCESS;

    if (NULL != engine) {
        *result = engine;
        return OPAL_SUCCESS;
    }
    if (NULL == memory->ctx) {
        rc = driver->cuDeviceGet(&device, memory->device);
        if (CUDA_SUCCESS == rc) {
            rc = driver->cuDevicePrimaryCtxRetain(&in_context.ctx, device);
        }
        if (CUDA_SUCCESS != rc) {
            return opal_umrddt_gpu_engine_error(rc);
        }
        /* Memory of that context may already have an engine. */
        engine = find(&in_context);
    }
    if (NULL == engine) {
        made = make(driver, in_context.ctx, &engine);
        if (OPAL_SUCCESS != made) {
            if (NULL == memory->ctx) {
                (void) driver->cuDevicePrimaryCtxRelease_v2(device);
            }
            return made;
        }
        /* This context may replace a destroyed one, whose pinned memory is gone. */
        opal_umrddt_gpu_staging_check();
        engine->next = engines;
        __atomic_store_n(&engines, engine, __ATOMIC_RELEASE);
    }
    if (NULL == memory->ctx) {
        __atomic_store_n(&engine->primary, true, __ATOMIC_RELAXED);
    }
    *result = engine;
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                               opal_umrddt_gpu_engine_t **engine)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_engine_t *found;
    int rc;

    if (OPAL_UMRDDT_GPU_HOST == memory->kind) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    found = find(memory);
    if (OPAL_LIKELY(NULL != found)) {
        *engine = found;
        return OPAL_SUCCESS;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    pthread_mutex_lock(&engines_lock);
    rc = find_or_make(driver, memory, engine);
    pthread_mutex_unlock(&engines_lock);
    return rc;
}

int opal_umrddt_gpu_engine_device(const opal_umrddt_gpu_engine_t *engine)
{
    return engine->device;
}

CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine)
{
    return engine->ctx;
}

/* ---------------------------------------------------------------------------------------------
 * Destruction
 * ------------------------------------------------------------------------------------------- */

/* Make its context current, if it still exists. */
static bool revive(opal_umrddt_gpu_engine_t *engine)
{
    return opal_umrddt_gpu_engine_is_there(engine)
           && CUDA_SUCCESS == engine->driver->cuCtxPushCurrent_v2(engine->ctx);
}

void opal_umrddt_gpu_engines_close(void)
{
    opal_umrddt_gpu_engine_t *engine, *next;

    pthread_mutex_lock(&engines_lock);
    engine = engines;
    __atomic_store_n(&engines, NULL, __ATOMIC_RELEASE);
    for (; NULL != engine; engine = next) {
        const bool alive = revive(engine);

        next = engine->next;
        empty(engine, alive);
        if (alive) {
            opal_umrddt_gpu_engine_leave(engine);
        }
        if (engine->primary) {
            (void) engine->driver->cuDevicePrimaryCtxRelease_v2(engine->device);
        }
        OBJ_DESTRUCT(&engine->lock);
        pthread_mutex_destroy(&engine->reserve_lock);
        free(engine);
    }
    pthread_mutex_unlock(&engines_lock);
}

void opal_umrddt_gpu_engines_each(void (*call)(opal_umrddt_gpu_engine_t *engine))
{
    opal_umrddt_gpu_engine_t *engine = __atomic_load_n(&engines, __ATOMIC_ACQUIRE);

    for (; NULL != engine; engine = engine->next) {
        call(engine);
    }
}

void opal_umrddt_gpu_engine_stats(opal_umrddt_gpu_engine_stats_t *stats)
{
#define LOOK(counter) \
    stats->counter = __atomic_load_n(&opal_umrddt_gpu_engine_counts.counter, __ATOMIC_RELAXED)
    LOOK(copies);
    LOOK(launches);
    LOOK(batches);
    LOOK(batched);
    LOOK(driver_copies);
    LOOK(launches_again);
    LOOK(graph_launches);
    LOOK(graphs_made);
    LOOK(graphs_now);
    LOOK(routes_made);
    LOOK(shapes_made);
    LOOK(lists_uploaded);
    LOOK(staged_bytes);
    LOOK(shape_bytes_now);
    LOOK(orders);
    LOOK(reductions);
#undef LOOK
}
