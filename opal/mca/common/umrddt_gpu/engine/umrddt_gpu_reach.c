/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Memory that the kernels of a context can access, and its device addresses. Driver copies need
 * this only for memory with access rights of its own: of a pool, or mapped.
 */

#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_reach.h"

#include <string.h>

/* The offset of the lowest byte of a place: its address may be outside of its memory. */
static int64_t lowest(const opal_umrddt_gpu_copy_end_t *copy_end)
{
    return NULL == copy_end->layout ? 0 : copy_end->layout->lb;
}

/* Memory of no context: a pool's, or mapped. */
static bool reach_shared(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_memory_t *memory,
                         CUdeviceptr address)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    CUmemLocation here;
    CUmemAccess_flags of_pool = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    unsigned long long flags = 0;
    CUmemAccessDesc access;

    memset(&here, 0, sizeof(here));
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.id = engine->device;
    if (NULL == memory->pool) {
        return CUDA_SUCCESS == driver->cuMemGetAccess(&flags, &here, address)
               && CU_MEM_ACCESS_FLAGS_PROT_READWRITE == flags;
    }
    if (CUDA_SUCCESS == driver->cuMemPoolGetAccess(&of_pool, memory->pool, &here)
        && CU_MEM_ACCESS_FLAGS_PROT_READWRITE == of_pool) {
        return true;
    }
    memset(&access, 0, sizeof(access));
    access.location = here;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS == driver->cuMemPoolSetAccess(memory->pool, &access, 1);
}

opal_umrddt_gpu_reach_t opal_umrddt_gpu_reach(opal_umrddt_gpu_engine_t *engine,
                                              const opal_umrddt_gpu_copy_end_t *copy_end,
                                              bool kernels)
{
    const CUdeviceptr address = (CUdeviceptr) copy_end->address + (CUdeviceptr) lowest(copy_end);
    opal_umrddt_gpu_memory_t memory;
    CUresult rc;

    if (opal_umrddt_gpu_is_near(copy_end)) {
        return REACH_KERNELS;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify((const void *) (uintptr_t) address, &memory)) {
        return REACH_COPIES;
    }
    if (OPAL_UMRDDT_GPU_DEVICE != memory.kind || engine->ctx == memory.ctx) {
        return REACH_KERNELS;
    }
    if (NULL == memory.ctx) {
        /* Such memory has access rights of its own, which driver copies need too. */
        return engine->device == memory.device || reach_shared(engine, &memory, address)
                   ? REACH_KERNELS
                   : REACH_PEERS;
    }
    if (engine->device == memory.device || !kernels) {
        /* Another context of this device has its own memory. */
        return REACH_COPIES;
    }
    /* Not cached: a context can be destroyed and its handle reused. */
    rc = engine->driver->cuCtxEnablePeerAccess(memory.ctx, 0);
    return CUDA_SUCCESS == rc || CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED == rc ? REACH_KERNELS
                                                                              : REACH_COPIES;
}

int opal_umrddt_gpu_homes(opal_umrddt_gpu_engine_t *engine,
                          const opal_umrddt_gpu_copy_end_t copy_ends[2], CUcontext homes[2],
                          bool *apart)
{
    int i, rc;

    *apart = false;
    for (i = 0; i < 2; ++i) {
        opal_umrddt_gpu_memory_t memory;
        opal_umrddt_gpu_engine_t *on_device = engine;

        if (REACH_PEERS == opal_umrddt_gpu_reach(engine, &copy_ends[i], false)) {
            rc = opal_umrddt_gpu_classify(
                (const void *) (uintptr_t) (copy_ends[i].address
                                            + (uint64_t) lowest(&copy_ends[i])),
                &memory);
            if (OPAL_SUCCESS == rc) {
                /* This retains the primary context of that device. */
                rc = opal_umrddt_gpu_engine_get(&memory, &on_device);
            }
            if (OPAL_SUCCESS != rc) {
                return rc;
            }
            *apart = true;
        }
        homes[i] = on_device->ctx;
    }
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_translate(opal_umrddt_gpu_engine_t *engine,
                              const opal_umrddt_gpu_copy_end_t *copy_end, uint64_t *address)
{
    const int64_t low = lowest(copy_end);
    CUdeviceptr there;
    CUresult rc;

    *address = copy_end->address;
    if (!engine->translates || OPAL_UMRDDT_GPU_PINNED != copy_end->kind) {
        return OPAL_SUCCESS;
    }
    rc = engine->driver->cuMemHostGetDevicePointer_v2(
        &there, (void *) (uintptr_t) (copy_end->address + (uint64_t) low), 0);
    if (CUDA_SUCCESS == rc) {
        *address = (uint64_t) there - (uint64_t) low;
    }
    return opal_umrddt_gpu_engine_error(rc);
}
