/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"

#include "bench_gpu.h"
#include "bench_util.h"

static const umrddt_cuda_all_t *driver;
static CUdevice device;
static char name[128];

static void check(CUresult rc, const char *what)
{
    const char *text = NULL;

    if (CUDA_SUCCESS != rc) {
        (void) driver->cuGetErrorName(rc, &text);
        bench_fatal("%s failed: %s (%d)", what, NULL == text ? "?" : text, (int) rc);
    }
}

const char *bench_gpu_open(int turn)
{
    CUcontext ctx;
    CUresult rc;
    int count = 0;

    if (NULL != driver) {
        return NULL;
    }
    if (OPAL_SUCCESS != umrddt_cuda_all_load(&driver)) {
        return opal_umrddt_gpu_driver_why_not();
    }
    rc = driver->cuInit(0);
    if (CUDA_ERROR_NO_DEVICE == rc
        || (CUDA_SUCCESS == rc && CUDA_SUCCESS == driver->cuDeviceGetCount(&count) && 0 == count)) {
        driver = NULL;
        return "the CUDA driver finds no device";
    }
    check(rc, "cuInit");
    check(driver->cuDeviceGet(&device, turn % count), "cuDeviceGet");
    check(driver->cuDeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
    check(driver->cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
    check(driver->cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
    return NULL;
}

const char *bench_gpu_name(void)
{
    return name;
}

int bench_gpu_device(void)
{
    return (int) device;
}

/* Drivers cut what is smaller from blocks of this size, which another process can open only once
 * for a context: not for --bare, which runs beside MPI. */
#define BLOCK ((size_t) 2 << 20)

void *bench_gpu_alloc(size_t bytes)
{
    CUdeviceptr memory;

    bytes = (bytes + BLOCK - 1) / BLOCK * BLOCK;

    check(driver->cuMemAlloc_v2(&memory, bytes), "cuMemAlloc");
    check(driver->cuMemsetD8_v2(memory, 0, bytes), "cuMemsetD8");
    check(driver->cuCtxSynchronize(), "cuCtxSynchronize");
    return (void *) (uintptr_t) memory;
}

void bench_gpu_free(void *memory)
{
    check(driver->cuMemFree_v2((uintptr_t) memory), "cuMemFree");
}

void bench_gpu_write(void *to, const void *from, size_t bytes)
{
    check(driver->cuMemcpyHtoD_v2((uintptr_t) to, from, bytes), "cuMemcpyHtoD");
    /* A copy from pageable memory may return before its end. */
    check(driver->cuCtxSynchronize(), "cuCtxSynchronize");
}

void bench_gpu_read(void *to, const void *from, size_t bytes)
{
    check(driver->cuMemcpyDtoH_v2(to, (uintptr_t) from, bytes), "cuMemcpyDtoH");
}

/* Copies of bench_gpu_copy; not ordered with the work of others on the default stream. */
static CUstream copies;

void bench_gpu_copy(void *to, const void *from, size_t bytes)
{
    if (NULL == copies) {
        check(driver->cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    check(driver->cuMemcpyDtoDAsync_v2((uintptr_t) to, (uintptr_t) from, bytes, copies),
          "cuMemcpyDtoDAsync");
}

void bench_gpu_copy_end(void)
{
    if (NULL != copies) {
        check(driver->cuStreamSynchronize(copies), "cuStreamSynchronize");
    }
}
