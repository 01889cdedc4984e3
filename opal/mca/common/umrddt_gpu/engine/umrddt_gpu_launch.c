/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Launches: from two places to a kernel and its argument. A launch is cached with all its
 * arguments, since applications repeat the same copies; then only this cache is searched. A shape
 * that is evicted removes its launches, which contain the address of its list.
 */

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_reach.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"

/* ---------------------------------------------------------------------------------------------
 * First launch
 * ------------------------------------------------------------------------------------------- */

/* PTX: the driver compiles this kernel now, or takes it from its cache. */
static CUresult load_single(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_kernel_id_t kernel,
                            CUfunction *function)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    const char *name = opal_umrddt_gpu_kernel_name(kernel);
    CUmodule *module = &engine->single[kernel];
    CUresult rc = CUDA_SUCCESS;
    CUstreamCaptureMode mode;
    size_t bytes;
    char *text;

    pthread_mutex_lock(&lock);
    if (NULL == *module) {
        text = opal_umrddt_gpu_ptx_of(opal_umrddt_gpu_fatbin(&bytes), name);
        opal_umrddt_gpu_relax(driver, &mode);
        rc = NULL == text ? CUDA_ERROR_NOT_FOUND : driver->cuModuleLoadData(module, text);
        opal_umrddt_gpu_restore(driver, &mode);
        free(text);
        if (CUDA_SUCCESS != rc) {
            *module = NULL;
        }
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuModuleGetFunction(function, *module, name);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

CUresult opal_umrddt_gpu_function(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_kernel_id_t kernel,
                                  CUfunction *function)
{
    CUresult rc = CUDA_SUCCESS;

    /* Concurrent threads get the same result. */
    *function = __atomic_load_n(&engine->function[kernel], __ATOMIC_RELAXED);
    if (OPAL_UNLIKELY(NULL == *function)) {
        rc = NULL == engine->module
                 ? load_single(engine, kernel, function)
                 : engine->driver->cuModuleGetFunction(function, engine->module,
                                                       opal_umrddt_gpu_kernel_name(kernel));
        if (CUDA_SUCCESS == rc) {
            __atomic_store_n(&engine->function[kernel], *function, __ATOMIC_RELAXED);
        } else {
            opal_umrddt_gpu_lose_kernels(engine, rc);
        }
    }
    return rc;
}

int opal_umrddt_gpu_launch_ends(opal_umrddt_gpu_copy_t *copy,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], bool may_travel,
                                opal_umrddt_gpu_end_t ends[2])
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    int i, rc = OPAL_SUCCESS;

    for (i = 0; OPAL_SUCCESS == rc && i < 2; ++i) {
        const opal_umrddt_gpu_copy_end_t *other = &copy_ends[1 - i];
        CUdeviceptr list = 0;

        memset(&ends[i], 0, sizeof(ends[i]));
        rc = opal_umrddt_gpu_translate(engine, &copy_ends[i], &ends[i].address);
        if (OPAL_SUCCESS != rc || NULL == copy_ends[i].layout) {
            continue;
        }
        if (NULL == copy->shape[i]) {
            rc = opal_umrddt_gpu_shape_get(engine, copy_ends[i].layout, &copy->shape[i]);
        }
        if (OPAL_SUCCESS == rc) {
            rc = opal_umrddt_gpu_shape_list(
                engine, copy->shape[i], copy->stream,
                may_travel
                    && (NULL == other->layout
                        || opal_iov_cache_layout_is_contiguous(other->layout)),
                &list);
        }
        if (OPAL_SUCCESS == rc) {
            copy->listed[i] = 0 != list;
            ends[i].list = list;
            ends[i].map = copy->shape[i]->map;
        }
    }
    return rc;
}

/* The first of the slots of a launch. */
static inline opal_umrddt_gpu_launch_t *slots_of(opal_umrddt_gpu_engine_t *engine,
                                                 const opal_umrddt_gpu_copy_end_t copy_ends[2],
                                                 uint64_t start, uint64_t end)
{
    uint64_t mix = copy_ends[0].address * UINT64_C(0x9e3779b97f4a7c15)
                   ^ copy_ends[1].address * UINT64_C(0xc2b2ae3d27d4eb4f) ^ start << 7 ^ end;
    int i;

    for (i = 0; i < 2; ++i) {
        mix += NULL == copy_ends[i].layout ? 0 : copy_ends[i].layout->id << (4 * i);
    }
    mix ^= mix >> 32;
    mix ^= mix >> 16;
    return &engine->launch[(mix ^ mix >> 8) % (LAUNCHES / WAYS) * WAYS];
}

static bool is_at(const opal_umrddt_gpu_launch_t *launch,
                  const opal_umrddt_gpu_copy_end_t copy_ends[2], int i)
{
    return launch->address[i] == copy_ends[i].address
           && launch->id[i] == (NULL == copy_ends[i].layout ? 0 : copy_ends[i].layout->id);
}

opal_umrddt_gpu_launch_t *opal_umrddt_gpu_launch_find(opal_umrddt_gpu_engine_t *engine,
                                                      const opal_umrddt_gpu_copy_end_t copy_ends[2],
                                                      uint64_t start, uint64_t end)
{
    opal_umrddt_gpu_launch_t *slots = slots_of(engine, copy_ends, start, end);
    int i;

    for (i = 0; i < WAYS; ++i) {
        if (slots[i].end == end && slots[i].start == start && is_at(&slots[i], copy_ends, 0)
            && is_at(&slots[i], copy_ends, 1)) {
            return &slots[i];
        }
    }
    return NULL;
}

/* True if a launch can be reused: its lists are on the device, none is in the argument. */
static bool is_lasting(const opal_umrddt_gpu_copy_t *copy, int which)
{
    const opal_umrddt_gpu_shape_t *shape = copy->shape[which];

    return NULL == shape || (shape->cached && (0 == shape->map->n || shape->ready));
}

void opal_umrddt_gpu_launch_forget(opal_umrddt_gpu_engine_t *engine,
                                   opal_umrddt_gpu_launch_t *launch)
{
    opal_umrddt_gpu_graph_forget(engine, launch);
    memset(launch, 0, sizeof(*launch));
    engine->part[launch - engine->launch].blocks = 0;
}

/* The cached launch of a copy, found or new; NULL if it cannot be cached. With the lock. */
static opal_umrddt_gpu_launch_t *cached(opal_umrddt_gpu_copy_t *copy,
                                        const opal_umrddt_gpu_copy_end_t copy_ends[2],
                                        uint64_t start, uint64_t end)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    opal_umrddt_gpu_launch_t *launch;
    int i;

    if (!is_lasting(copy, 0) || !is_lasting(copy, 1)) {
        return NULL;
    }
    launch = opal_umrddt_gpu_launch_find(engine, copy_ends, start, end);
    if (NULL == launch) {
        launch = slots_of(engine, copy_ends, start, end);
        for (i = 0; i < WAYS && 0 != launch[i].end; ++i) {
        }
        launch += WAYS > i ? (unsigned) i : engine->next_way++ % WAYS;
        opal_umrddt_gpu_launch_forget(engine, launch);
        for (i = 0; i < 2; ++i) {
            launch->id[i] = NULL == copy_ends[i].layout ? 0 : copy_ends[i].layout->id;
            launch->address[i] = copy_ends[i].address;
            launch->shape[i] = copy->shape[i];
        }
        launch->start = start;
        launch->end = end;
    }
    return launch;
}

void opal_umrddt_gpu_launch_keep(opal_umrddt_gpu_copy_t *copy,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, const opal_umrddt_gpu_part_t *part)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    opal_umrddt_gpu_launch_t *launch;

    OPAL_THREAD_LOCK(&engine->lock);
    launch = cached(copy, copy_ends, start, end);
    if (NULL != launch) {
        engine->part[launch - engine->launch] = *part;
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
}

static void remember(opal_umrddt_gpu_copy_t *copy, const opal_umrddt_gpu_copy_end_t copy_ends[2],
                     const opal_umrddt_gpu_plan_t *plan, CUfunction function)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    const umrddt_gpu_args_t *args = &plan->args.args;
    opal_umrddt_gpu_launch_t *launch;
    opal_umrddt_gpu_launch_t mine;

    if (sizeof(*args) != plan->args_bytes) {
        return;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    launch = cached(copy, copy_ends, args->start, args->end);
    if (NULL != launch) {
        mine = *launch;
        mine.function = function;
        memcpy(mine.grid, plan->grid, sizeof(mine.grid));
        memcpy(mine.block, plan->block, sizeof(mine.block));
        memcpy(&mine.args, args, sizeof(mine.args));
        if (0 != memcmp(launch, &mine, sizeof(mine))) {
            opal_umrddt_gpu_graph_forget(engine, launch);
            *launch = mine;
        }
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
}

int opal_umrddt_gpu_launch(opal_umrddt_gpu_copy_t *copy,
                           const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                           uint64_t end, bool keep)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    opal_umrddt_gpu_end_t ends[2];
    opal_umrddt_gpu_plan_t plan;
    void *params[] = {&plan.args};
    CUfunction function;
    CUresult result;
    int rc;

    rc = opal_umrddt_gpu_launch_ends(copy, copy_ends, true, ends);
    if (OPAL_SUCCESS == rc) {
        rc = opal_umrddt_gpu_plan(&ends[0], &ends[1], start, end, &engine->fit, &plan);
    }
    if (OPAL_ERR_NOT_AVAILABLE == rc) {
        /* Kernels of this kind cannot have their list in the argument. */
        rc = opal_umrddt_gpu_launch_ends(copy, copy_ends, false, ends);
        if (OPAL_SUCCESS == rc) {
            rc = opal_umrddt_gpu_plan(&ends[0], &ends[1], start, end, &engine->fit, &plan);
        }
    }
    if (OPAL_SUCCESS != rc) {
        return OPAL_ERR_OUT_OF_RESOURCE == rc || OPAL_ERR_BAD_PARAM == rc ? rc : OPAL_ERROR;
    }
    if (CUDA_SUCCESS != opal_umrddt_gpu_function(engine, plan.kernel, &function)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    result = engine->driver->cuLaunchKernel(function, plan.grid[0], plan.grid[1], plan.grid[2],
                                            plan.block[0], plan.block[1], plan.block[2], 0,
                                            copy->stream, params, NULL);
    if (CUDA_SUCCESS == result) {
        COUNT(launches, 1);
        if (keep) {
            remember(copy, copy_ends, &plan, function);
        }
    }
    return opal_umrddt_gpu_engine_error(result);
}

/* ---------------------------------------------------------------------------------------------
 * Repeated launches
 * ------------------------------------------------------------------------------------------- */

bool opal_umrddt_gpu_launch_again(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                  uint64_t end, opal_umrddt_gpu_copy_t **result, CUresult *rc)
{
    opal_umrddt_gpu_copy_t *copy = *result;
    opal_umrddt_gpu_graph_t *graph;
    opal_umrddt_gpu_launch_t *launch;
    opal_umrddt_gpu_launch_t mine;
    void *params[] = {&mine.args};
    int i;

    if (!opal_umrddt_gpu_is_reached(engine, &copy_ends[0])
        || !opal_umrddt_gpu_is_reached(engine, &copy_ends[1])) {
        return false;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    launch = opal_umrddt_gpu_launch_find(engine, copy_ends, start, end);
    if (NULL == launch || NULL == launch->function
        || (NULL == copy && NULL == (copy = opal_umrddt_gpu_copy_pop(engine)))) {
        OPAL_THREAD_UNLOCK(&engine->lock);
        return false;
    }
    for (i = 0; i < 2; ++i) {
        copy->shape[i] = launch->shape[i];
        if (NULL != launch->shape[i]) {
            opal_umrddt_gpu_shape_use(engine, launch->shape[i]);
        }
    }
    mine = *launch;
    graph = opal_umrddt_gpu_graph_take(engine, launch);
    OPAL_THREAD_UNLOCK(&engine->lock);
    if (NULL == graph
        || CUDA_SUCCESS != (*rc = opal_umrddt_gpu_graph_go(engine, graph, copy->stream))) {
        *rc = engine->driver->cuLaunchKernel(mine.function, mine.grid[0], mine.grid[1],
                                             mine.grid[2], mine.block[0], mine.block[1],
                                             mine.block[2], 0, copy->stream, params, NULL);
    }
    if (CUDA_SUCCESS == *rc) {
        COUNT(launches, 1);
        COUNT(launches_again, 1);
    }
    *result = copy;
    return true;
}
