/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_rdma.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "opal/constants.h"

/* Size of a thread's cache of answers for memory of pools, and mapped memory. */
#define ANSWERS 8

/* CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST */
#define FLUSH_BY_HOST 1

static struct {
    bool known; /* the other fields are constant */
    opal_umrddt_gpu_rdma_caps_t caps;
} devices[OPAL_UMRDDT_GPU_RDMA_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int attribute(const opal_umrddt_gpu_driver_t *driver, CUdevice device,
                     CUdevice_attribute number)
{
    int value = 0;

    /* An unknown attribute means that the driver lacks the property. */
    return CUDA_SUCCESS == driver->cuDeviceGetAttribute(&value, number, device) ? value : 0;
}

static bool query_device(int device)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_rdma_caps_t *caps = &devices[device].caps;
    CUdevice handle;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuDeviceGet(&handle, device)) {
        return false;
    }
    caps->rdma = 0 != attribute(driver, handle, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
    caps->dmabuf = 0 != attribute(driver, handle, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    caps->vmm =
        0 != attribute(driver, handle, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    caps->flush =
        0
        != (FLUSH_BY_HOST
            & attribute(driver, handle, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
    caps->ordering = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
    return true;
}

const opal_umrddt_gpu_rdma_caps_t *opal_umrddt_gpu_rdma_caps(int device)
{
    if (0 > device || OPAL_UMRDDT_GPU_RDMA_DEVICES <= device) {
        return NULL;
    }
    if (!__atomic_load_n(&devices[device].known, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&lock);
        if (!devices[device].known && query_device(device)) {
            __atomic_store_n(&devices[device].known, true, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    return __atomic_load_n(&devices[device].known, __ATOMIC_ACQUIRE) ? &devices[device].caps : NULL;
}

int opal_umrddt_gpu_rdma_bus_id(int device, char *bus_id)
{
    const opal_umrddt_gpu_driver_t *driver;
    char id[OPAL_UMRDDT_GPU_RDMA_BUS_ID] = "";
    unsigned int domain, bus, slot, function = 0;
    CUdevice handle;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuDeviceGet(&handle, device)
        || CUDA_SUCCESS != driver->cuDeviceGetPCIBusId(id, (int) sizeof(id), handle)
        || 3 > sscanf(id, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    snprintf(bus_id, OPAL_UMRDDT_GPU_RDMA_BUS_ID, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    return OPAL_SUCCESS;
}

/* The driver's answer for this allocation. */
static bool capable(const opal_umrddt_gpu_memory_t *memory)
{
    static __thread struct {
        uint64_t id;
        bool capable;
    } answers[ANSWERS];
    const opal_umrddt_gpu_driver_t *driver;
    uint64_t id = memory->buffer_id;
    unsigned answer = 0;

    if (id == answers[id % ANSWERS].id) {
        return answers[id % ANSWERS].capable;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS
               != driver->cuPointerGetAttribute(
                   &answer, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, memory->base)) {
        return false;
    }
    answers[id % ANSWERS].id = id;
    answers[id % ANSWERS].capable = 0 != answer;
    return 0 != answer;
}

bool opal_umrddt_gpu_rdma_takes(const opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_rdma_caps_t *caps;

    if (OPAL_UMRDDT_GPU_DEVICE != memory->kind || 0 == memory->buffer_id || 0 == memory->size) {
        return false;
    }
    caps = opal_umrddt_gpu_rdma_caps(memory->device);
    if (NULL == caps || !caps->rdma) {
        return false;
    }
    if (NULL != memory->pool) {
        return capable(memory);
    }
    /* No context: mapped. */
    return NULL != memory->ctx || (caps->vmm && capable(memory));
}

/**
 * Make a context of the memory's device current.
 *
 * @param[out] retained  the device's primary one was retained for it
 */
static CUresult enter(const opal_umrddt_gpu_driver_t *driver,
                      const opal_umrddt_gpu_memory_t *memory, bool *retained)
{
    CUcontext ctx = memory->ctx;
    CUdevice device;
    CUresult rc = CUDA_SUCCESS;

    *retained = false;
    if (NULL == ctx) {
        rc = driver->cuDeviceGet(&device, memory->device);
        if (CUDA_SUCCESS == rc) {
            rc = driver->cuDevicePrimaryCtxRetain(&ctx, device);
        }
        *retained = CUDA_SUCCESS == rc;
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuCtxPushCurrent_v2(ctx);
    }
    if (CUDA_SUCCESS != rc && *retained) {
        (void) driver->cuDevicePrimaryCtxRelease_v2(memory->device);
    }
    return rc;
}

static void leave(const opal_umrddt_gpu_driver_t *driver, const opal_umrddt_gpu_memory_t *memory,
                  bool retained)
{
    CUcontext before;

    (void) driver->cuCtxPopCurrent_v2(&before);
    if (retained) {
        (void) driver->cuDevicePrimaryCtxRelease_v2(memory->device);
    }
}

CUresult opal_umrddt_gpu_rdma_dmabuf(const opal_umrddt_gpu_memory_t *memory, uint64_t first,
                                     uint64_t length, int *fd)
{
    const opal_umrddt_gpu_driver_t *driver;
    bool retained;
    int made = -1;
    CUresult rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    rc = enter(driver, memory, &retained);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    rc = driver->cuMemGetHandleForAddressRange(&made, first, length,
                                               CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    leave(driver, memory, retained);
    if (CUDA_SUCCESS == rc) {
        *fd = made;
    }
    return rc;
}

bool opal_umrddt_gpu_rdma_alive(uint64_t address, uint64_t buffer_id)
{
    const opal_umrddt_gpu_driver_t *driver;
    uint64_t id = 0;

    return OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
           && CUDA_SUCCESS
                  == driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address)
           && id == buffer_id;
}

/* The required scope: with several devices, others may read it too. */
static int scope(void)
{
    static int wanted;
    const opal_umrddt_gpu_driver_t *driver;
    int count = 0, known = __atomic_load_n(&wanted, __ATOMIC_RELAXED);

    if (0 == known && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
        && CUDA_SUCCESS == driver->cuDeviceGetCount(&count)) {
        known = 1 < count ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
                          : CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER;
        __atomic_store_n(&wanted, known, __ATOMIC_RELAXED);
    }
    return 0 == known ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES : known;
}

opal_umrddt_gpu_flush_t opal_umrddt_gpu_rdma_flush_how(int device)
{
    const opal_umrddt_gpu_rdma_caps_t *caps = opal_umrddt_gpu_rdma_caps(device);

    if (NULL == caps) {
        return OPAL_UMRDDT_GPU_FLUSH_READ;
    }
    if (caps->ordering >= scope()) {
        return OPAL_UMRDDT_GPU_FLUSH_NONE;
    }
    return caps->flush ? OPAL_UMRDDT_GPU_FLUSH_CALL : OPAL_UMRDDT_GPU_FLUSH_READ;
}

int opal_umrddt_gpu_rdma_flush(const opal_umrddt_gpu_memory_t *memory)
{
    const opal_umrddt_gpu_driver_t *driver;
    bool retained;
    CUresult rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != enter(driver, memory, &retained)) {
        return OPAL_ERROR;
    }
    rc = driver->cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                            (CUflushGPUDirectRDMAWritesScope) scope());
    leave(driver, memory, retained);
    return CUDA_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERROR;
}
