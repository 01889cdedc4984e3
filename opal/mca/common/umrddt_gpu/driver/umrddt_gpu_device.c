/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The devices of this process, and the application's contexts on them.
 */

#include "umrddt_gpu_driver.h"

#include <string.h>

#include "opal/constants.h"

bool opal_umrddt_gpu_used;

bool opal_umrddt_gpu_in_use_unknown(void)
{
    const opal_umrddt_gpu_driver_t *driver;
    int devices;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_ERROR_NOT_INITIALIZED == driver->cuDeviceGetCount(&devices)) {
        return false;
    }
    __atomic_store_n(&opal_umrddt_gpu_used, true, __ATOMIC_RELAXED);
    return true;
}

bool opal_umrddt_gpu_exists(void)
{
    const opal_umrddt_gpu_driver_t *driver;
    int devices = 0;

    return OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver) && CUDA_SUCCESS == driver->cuInit(0)
           && CUDA_SUCCESS == driver->cuDeviceGetCount(&devices) && 0 < devices;
}

bool opal_umrddt_gpu_has_context(void)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUcontext now = NULL;

    return OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
           && CUDA_SUCCESS == driver->cuCtxGetCurrent(&now) && NULL != now;
}

bool opal_umrddt_gpu_device_uuid(int device, uint8_t uuid[16])
{
    const opal_umrddt_gpu_driver_t *driver;
    CUuuid answer;

    /* The second version distinguishes the parts of a divided device. */
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || (CUDA_SUCCESS != driver->cuDeviceGetUuid_v2(&answer, device)
            && CUDA_SUCCESS != driver->cuDeviceGetUuid(&answer, device))) {
        return false;
    }
    memcpy(uuid, answer.bytes, sizeof(answer.bytes));
    return true;
}

/* Returns true if the application has a context on a device, and sets memory. */
static bool has_context_on(const opal_umrddt_gpu_driver_t *driver, int ordinal,
                           opal_umrddt_gpu_memory_t *memory)
{
    CUdevice device, current;
    unsigned int flags;
    int active = 0;
    CUcontext ctx;

    *memory = (opal_umrddt_gpu_memory_t){.kind = OPAL_UMRDDT_GPU_DEVICE, .device = ordinal};
    if (CUDA_SUCCESS != driver->cuDeviceGet(&device, ordinal)) {
        return false;
    }
    if (CUDA_SUCCESS == driver->cuDevicePrimaryCtxGetState(device, &flags, &active)
        && 0 != active) {
        return true;
    }
    if (CUDA_SUCCESS == driver->cuCtxGetCurrent(&ctx) && NULL != ctx
        && CUDA_SUCCESS == driver->cuCtxGetDevice(&current) && device == current) {
        memory->ctx = ctx;
        return true;
    }
    return false;
}

bool opal_umrddt_gpu_device_find(const uint8_t *uuid, opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_memory_t found;
    uint8_t here[16];
    int count = 0;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuDeviceGetCount(&count)) {
        return false; /* no driver, or cuInit was not called */
    }
    for (int i = 0; i < count; ++i) {
        if ((NULL == uuid
             || (opal_umrddt_gpu_device_uuid(i, here) && 0 == memcmp(here, uuid, sizeof(here))))
            && has_context_on(driver, i, &found)) {
            *memory = found;
            return true;
        }
    }
    return false;
}
