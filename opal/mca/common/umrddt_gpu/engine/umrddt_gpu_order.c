/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The order between the application's synchronous calls and the engine's streams; see
 * umrddt_gpu_engine.h for the rule. ../driver/umrddt_gpu_driver.h handles memory with SYNC_MEMOPS;
 * this file handles memory without it.
 *
 * An event in a blocking stream waits for the work of the legacy default stream, and for nothing
 * else. This wait is as short as possible: a kernel in one of the application's streams may itself
 * wait for a message. Synchronizing the legacy stream would wait for all blocking streams, and
 * cuCtxSetFlags(CU_CTX_SYNC_MEMOPS) for everything in the context (both seen with driver 580).
 * Using the legacy stream would also invalidate a capture of a blocking stream.
 */

#include "umrddt_gpu_engine_private.h"

/* Create the stream and the event at first use. @return false: the driver refuses */
static bool prepare(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    bool made;

    if (OPAL_LIKELY(__atomic_load_n(&engine->orders, __ATOMIC_ACQUIRE))) {
        return true;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    made = engine->orders;
    if (!made) {
        made =
            (NULL != engine->order_stream
             || CUDA_SUCCESS == driver->cuStreamCreate(&engine->order_stream, CU_STREAM_DEFAULT))
            && CUDA_SUCCESS == driver->cuEventCreate(&engine->order_event, CU_EVENT_DISABLE_TIMING);
        __atomic_store_n(&engine->orders, made, __ATOMIC_RELEASE);
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    return made;
}

/* Wait for a default stream, unless that would invalidate a capture. */
static void wait_for(const opal_umrddt_gpu_driver_t *driver, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult rc = driver->cuStreamIsCapturing(stream, &status);

    if (CUDA_ERROR_NOT_SUPPORTED == rc
        || (CUDA_SUCCESS == rc && CU_STREAM_CAPTURE_STATUS_NONE == (int) status)) {
        (void) driver->cuStreamSynchronize(stream);
    }
}

/* In the engine's context, which is current. Threads may share the event: the later record covers
 * the earlier one. */
static void wait_in_engine(opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;

    if (!prepare(engine)
        || CUDA_SUCCESS != driver->cuEventRecord(engine->order_event, engine->order_stream)
        || CUDA_SUCCESS != driver->cuEventSynchronize(engine->order_event)) {
        wait_for(driver, CU_STREAM_LEGACY);
    }
    /* In programs compiled for it, that is this thread's default stream. */
    wait_for(driver, CU_STREAM_PER_THREAD);
}

void opal_umrddt_gpu_sync_default_unknown(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    CUstreamCaptureMode mode;
    opal_umrddt_gpu_engine_t *engine;
    CUcontext now = NULL;
    bool pushed;

    if (opal_umrddt_gpu_sync_memops(address, memory)
        || (OPAL_UMRDDT_GPU_MANAGED == memory->kind && NULL != memory->ctx)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_get(memory, &engine)) {
        /* (Calls on managed memory wait without it.) If the driver fails, the copy reports it. */
        return;
    }
    COUNT(orders, 1);
    opal_umrddt_gpu_relax(engine->driver, &mode);
    if (CUDA_SUCCESS == engine->driver->cuCtxGetCurrent(&now) && NULL != now
        && engine->ctx != now) {
        /* The context is the application's, so no object is created in it. */
        wait_for(engine->driver, CU_STREAM_LEGACY);
        wait_for(engine->driver, CU_STREAM_PER_THREAD);
    }
    if (OPAL_SUCCESS == opal_umrddt_gpu_engine_swap_in(engine, &pushed)) {
        wait_in_engine(engine);
        opal_umrddt_gpu_engine_swap_out(engine, pushed);
    }
    opal_umrddt_gpu_restore(engine->driver, &mode);
}
