/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Open mappings of other processes' memory: a list, youngest first. A handle is opened once per
 * engine. The caller serializes all calls.
 */

#include "umrddt_gpu_ipc_private.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

static opal_umrddt_gpu_mapping_t *mappings;

static void count(uint64_t *counter)
{
    opal_umrddt_gpu_ipc_count(counter, 1);
}

/* The device with this UUID, as numbered in this process; -1: not visible. */
static int find_device(const opal_umrddt_gpu_driver_t *driver, const uint8_t uuid[16])
{
    uint8_t of_device[16];
    int devices = 0;
    int i;

    if (CUDA_SUCCESS != driver->cuDeviceGetCount(&devices)) {
        return -1;
    }
    for (i = 0; i < devices; i++) {
        if (opal_umrddt_gpu_device_uuid(i, of_device)
            && 0 == memcmp(of_device, uuid, sizeof(of_device))) {
            return i;
        }
    }
    return -1;
}

static bool reaches(const opal_umrddt_gpu_driver_t *driver, int device, int other)
{
    int can = 0;

    return device == other
           || (CUDA_SUCCESS == driver->cuDeviceCanAccessPeer(&can, device, other) && 0 != can);
}

/*
 * True if the allocation is as large as the owner states. Assumed if the driver does not report it.
 */
static bool large_enough(const opal_umrddt_gpu_driver_t *driver, CUdeviceptr address, uint64_t size)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;

    return CUDA_SUCCESS != driver->cuMemGetAddressRange_v2(&base, &bytes, address)
           || (address - base < bytes && size <= bytes - (address - base));
}

/* With the engine's context. @return 0 in address: it differs from the owner's description */
static CUresult open_handle(const opal_umrddt_gpu_driver_t *driver,
                            const opal_umrddt_gpu_export_t *from, CUdeviceptr *address)
{
    CUipcMemHandle handle;
    CUresult rc;

    memcpy(&handle, from->handle, sizeof(handle));
    rc = driver->cuIpcOpenMemHandle_v2(address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (CUDA_SUCCESS == rc && !large_enough(driver, *address, from->size)) {
        (void) driver->cuIpcCloseMemHandle(*address);
        *address = 0;
    }
    return rc;
}

static CUresult try_open(const opal_umrddt_gpu_driver_t *driver, opal_umrddt_gpu_engine_t *engine,
                         const opal_umrddt_gpu_export_t *from, CUdeviceptr *address)
{
    CUresult rc;

    /* Drivers crash on a destroyed context. */
    if (!opal_umrddt_gpu_engine_is_there(engine)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_enter(engine)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    rc = open_handle(driver, from, address);
    opal_umrddt_gpu_engine_leave(engine);
    return rc;
}

static int open_mapping(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_export_t *from,
                        CUdeviceptr *address, bool *on_device, bool *crowded)
{
    const int here = opal_umrddt_gpu_engine_device(engine);
    const opal_umrddt_gpu_driver_t *driver;
    int device;
    CUresult rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    device = find_device(driver, from->uuid);
    if (0 > device || !reaches(driver, here, device)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    *on_device = here == device;
    rc = try_open(driver, engine, from, address);
    *crowded = CUDA_ERROR_OUT_OF_MEMORY == rc || CUDA_ERROR_ALREADY_MAPPED == rc
               || CUDA_ERROR_MAP_FAILED == rc;
    switch (rc) {
    case CUDA_SUCCESS:
        return 0 == *address ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return OPAL_ERR_OUT_OF_RESOURCE;
    default:
        return OPAL_ERR_NOT_SUPPORTED;
    }
}

int opal_umrddt_gpu_mapping_get(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_export_t *from,
                                opal_umrddt_gpu_mapping_t **out, bool *crowded)
{
    CUcontext ctx = opal_umrddt_gpu_engine_context(engine);
    opal_umrddt_gpu_mapping_t *mapping;
    int rc;

    *crowded = false;
    for (mapping = mappings; NULL != mapping; mapping = mapping->next) {
        if (engine == mapping->engine && ctx == mapping->ctx
            && 0 == memcmp(mapping->handle, from->handle, sizeof(mapping->handle))) {
            if (from->size > mapping->size
                || 0 != memcmp(mapping->uuid, from->uuid, sizeof(mapping->uuid))) {
                return OPAL_ERR_BAD_PARAM;
            }
            mapping->imports++;
            *out = mapping;
            return OPAL_SUCCESS;
        }
    }
    mapping = calloc(1, sizeof(*mapping));
    if (NULL == mapping) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = open_mapping(engine, from, &mapping->address, &mapping->on_device, crowded);
    if (OPAL_SUCCESS != rc) {
        free(mapping);
        return rc;
    }
    mapping->engine = engine;
    mapping->ctx = ctx;
    memcpy(mapping->uuid, from->uuid, sizeof(mapping->uuid));
    memcpy(mapping->handle, from->handle, sizeof(mapping->handle));
    mapping->size = from->size;
    mapping->imports = 1;
    mapping->next = mappings;
    mappings = mapping;
    count(&opal_umrddt_gpu_ipc_counts.opened);
    count(&opal_umrddt_gpu_ipc_counts.open_now);
    opal_umrddt_gpu_ipc_count(&opal_umrddt_gpu_ipc_counts.bytes_now, (int64_t) mapping->size);
    *out = mapping;
    return OPAL_SUCCESS;
}

static void close_mapping(opal_umrddt_gpu_mapping_t *mapping)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_mapping_t **at = &mappings;
    bool ours = true;

    while (mapping != *at) {
        ours = ours && (*at)->address != mapping->address;
        at = &(*at)->next;
    }
    *at = mapping->next;
    /*
     * If the context or the driver is gone, so is the mapping; a younger mapping (earlier in the
     * list) may have the address by then.
     */
    if (ours && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
        && opal_umrddt_gpu_engine_is_there(mapping->engine)
        && OPAL_SUCCESS == opal_umrddt_gpu_engine_enter(mapping->engine)) {
        (void) driver->cuIpcCloseMemHandle(mapping->address);
        opal_umrddt_gpu_engine_leave(mapping->engine);
    }
    mapping->address = 0;
    count(&opal_umrddt_gpu_ipc_counts.closed);
    opal_umrddt_gpu_ipc_count(&opal_umrddt_gpu_ipc_counts.open_now, -1);
    opal_umrddt_gpu_ipc_count(&opal_umrddt_gpu_ipc_counts.bytes_now, -(int64_t) mapping->size);
}

void opal_umrddt_gpu_mapping_put(opal_umrddt_gpu_mapping_t *mapping)
{
    if (0 == --mapping->imports) {
        if (0 != mapping->address) {
            close_mapping(mapping);
        }
        free(mapping);
    }
}

void opal_umrddt_gpu_mappings_close(void)
{
    while (NULL != mappings) {
        close_mapping(mappings);
    }
}
