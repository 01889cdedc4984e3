/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Reductions. Their kernels are a module of their own, which the first reduction loads: most
 * processes have none.
 */

#include "umrddt_gpu_reduce.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_engine_private.h"

/* With the lock, and the context current. After a transient error the next reduction tries again.
 */
static void load(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    CUmodule module = NULL;
    CUstreamCaptureMode mode;
    const void *image;
    size_t bytes;
    CUresult rc;

    image = opal_umrddt_gpu_reduce_fatbin(&bytes);
    opal_umrddt_gpu_relax(driver, &mode);
    rc = driver->cuModuleLoadData(&module, 0 < bytes ? image : opal_umrddt_gpu_no_kernels);
    if (CUDA_SUCCESS != rc) {
        module = NULL;
    }
    for (int i = 0; CUDA_SUCCESS == rc && i < UMRDDT_GPU_REDUCE_KERNEL_COUNT; ++i) {
        rc = driver->cuModuleGetFunction(
            &engine->reduce_function[i], module,
            opal_umrddt_gpu_reduce_kernel_name((umrddt_gpu_reduce_kernel_id_t) i));
    }
    if (opal_umrddt_gpu_is_transient(rc) && NULL != module) {
        (void) driver->cuModuleUnload(module);
        module = NULL;
    }
    opal_umrddt_gpu_restore(driver, &mode);
    engine->reduce_module = module;
    __atomic_store_n(&engine->reduces,
                     CUDA_SUCCESS == rc                 ? REDUCE_READY
                     : opal_umrddt_gpu_is_transient(rc) ? REDUCE_UNKNOWN
                                                        : REDUCE_NONE,
                     __ATOMIC_RELEASE);
}

bool opal_umrddt_gpu_reduces(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_reduce_op_t op,
                             umrddt_gpu_reduce_type_t type)
{
    int state = __atomic_load_n(&engine->reduces, __ATOMIC_ACQUIRE);
    bool pushed;

    if (0 > opal_umrddt_gpu_reduce_kernel(op, type)) {
        return false;
    }
    if (OPAL_UNLIKELY(REDUCE_UNKNOWN == state)
        && OPAL_SUCCESS == opal_umrddt_gpu_engine_swap_in(engine, &pushed)) {
        OPAL_THREAD_LOCK(&engine->lock);
        if (REDUCE_UNKNOWN == engine->reduces) {
            load(engine);
        }
        state = engine->reduces;
        OPAL_THREAD_UNLOCK(&engine->lock);
        opal_umrddt_gpu_engine_swap_out(engine, pushed);
    }
    return REDUCE_READY == state;
}

static CUresult launch(opal_umrddt_gpu_copy_t *copy, const opal_umrddt_gpu_reduce_plan_t *plan)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    void *params[] = {(void *) &plan->args};

    return engine->driver->cuLaunchKernel(engine->reduce_function[plan->kernel], plan->grid, 1, 1,
                                          UMRDDT_GPU_REDUCE_THREADS, 1, 1, 0, copy->stream, params,
                                          NULL);
}

/* One launch after the other: the result so far is the first source of the next one. */
static int submit(opal_umrddt_gpu_copy_t *copy, umrddt_gpu_reduce_op_t op,
                  umrddt_gpu_reduce_type_t type, const uint64_t *source, unsigned n,
                  uint64_t target, uint64_t spare, uint64_t count)
{
    opal_umrddt_gpu_reduce_plan_t plan;
    uint64_t from[UMRDDT_GPU_REDUCE_SOURCES];
    unsigned next = 0;
    int rc = OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc && next < n) {
        unsigned k = 0;

        if (0 < next) {
            from[k++] = spare;
        }
        while (k < UMRDDT_GPU_REDUCE_SOURCES && next < n) {
            from[k++] = source[next++];
        }
        rc = opal_umrddt_gpu_reduce_plan(op, type, from, k, next < n ? spare : target, count,
                                         copy->engine->fit.processors, &plan);
        if (OPAL_SUCCESS == rc) {
            rc = opal_umrddt_gpu_engine_error(launch(copy, &plan));
        }
    }
    return rc;
}

int opal_umrddt_gpu_reduce(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_reduce_op_t op,
                           umrddt_gpu_reduce_type_t type, const uint64_t *source, unsigned n,
                           uint64_t target, uint64_t spare, uint64_t count,
                           opal_umrddt_gpu_copy_t **result)
{
    opal_umrddt_gpu_copy_t *copy;
    bool pushed;
    int rc;

    if (!opal_umrddt_gpu_reduces(engine, op, type)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    rc = opal_umrddt_gpu_engine_swap_in(engine, &pushed);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = opal_umrddt_gpu_copy_take(engine, &copy);
    if (OPAL_SUCCESS == rc) {
        copy->kind = COPY_DIRECT;
        rc = submit(copy, op, type, source, n, target, spare, count);
        if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
            (void) engine->driver->cuStreamSynchronize(copy->stream);
        } else if (OPAL_UNLIKELY(OPAL_SUCCESS != opal_umrddt_gpu_copy_signal(copy))) {
            copy->kind = COPY_OVER;
            rc = opal_umrddt_gpu_engine_error(engine->driver->cuStreamSynchronize(copy->stream));
        }
        if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
            opal_umrddt_gpu_copy_drop(copy);
        }
    } else if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        rc = OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    }
    opal_umrddt_gpu_engine_swap_out(engine, pushed);
    if (OPAL_SUCCESS == rc) {
        COUNT(reductions, 1);
        *result = copy;
    }
    return rc;
}
