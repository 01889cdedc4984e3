/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"

#include "real.h"
#include "umrddt_cuda_all.h"

bool real_wanted(void)
{
    const char *wish = getenv("UMRDDT_TEST_GPU");

    return NULL != wish && 0 == strcmp(wish, "real");
}

void real_check(const real_gpu_t *gpu, CUresult rc, const char *what)
{
    const char *text = NULL;

    if (CUDA_SUCCESS == rc) {
        return;
    }
    (void) gpu->driver->cuGetErrorString(rc, &text);
    fprintf(stderr, "%s: error %d: %s\n", what, (int) rc, NULL == text ? "?" : text);
    exit(1);
}

/* The bytes of a file; never freed. */
static const void *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long size = -1;

    if (NULL != file && 0 == fseek(file, 0, SEEK_END)) {
        size = ftell(file);
        rewind(file);
    }
    if (0 < size) {
        bytes = malloc((size_t) size + 1);
    }
    if (NULL == bytes || 1 != fread(bytes, (size_t) size, 1, file)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    bytes[size] = '\0';
    fclose(file);
    return bytes;
}

void real_begin(int ordinal, real_gpu_t *gpu)
{
    const char *path = getenv("UMRDDT_TEST_FATBIN");
    const void *image;
    size_t bytes;
    int i;

    memset(gpu, 0, sizeof(*gpu));
    if (OPAL_SUCCESS != umrddt_cuda_all_load(&gpu->driver)) {
        fprintf(stderr, "no driver: %s\n", opal_umrddt_gpu_driver_why_not());
        exit(1);
    }
    image = NULL != path ? read_file(path) : opal_umrddt_gpu_fatbin(&bytes);
    if (NULL == image) {
        fprintf(stderr, "no kernels: configure --with-cuda=DIR, or UMRDDT_TEST_FATBIN=FILE\n");
        exit(1);
    }
    REAL_OK(gpu, cuInit(0));
    REAL_OK(gpu, cuDeviceGet(&gpu->device, ordinal));
    REAL_OK(gpu, cuDeviceGetName(gpu->name, (int) sizeof(gpu->name), gpu->device));
    REAL_OK(gpu, cuDeviceGetAttribute(&gpu->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                      gpu->device));
    REAL_OK(gpu, cuDevicePrimaryCtxRetain(&gpu->ctx, gpu->device));
    REAL_OK(gpu, cuCtxSetCurrent(gpu->ctx));
    REAL_OK(gpu, cuModuleLoadData(&gpu->module, image));
    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        REAL_OK(gpu, cuModuleGetFunction(&gpu->kernels[i], gpu->module,
                                         opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i)));
    }
}

void real_launch(const real_gpu_t *gpu, const opal_umrddt_gpu_plan_t *plan, CUstream stream)
{
    void *params[] = {(void *) &plan->args};

    REAL_OK(gpu, cuLaunchKernel(gpu->kernels[plan->kernel], plan->grid[0], plan->grid[1],
                                plan->grid[2], plan->block[0], plan->block[1], plan->block[2], 0,
                                stream, params, NULL));
}

void real_mirror(const real_gpu_t *gpu, void *host, size_t bytes, real_mirror_t *mirror)
{
    mirror->host = host;
    mirror->bytes = bytes;
    REAL_OK(gpu, cuMemAlloc_v2(&mirror->device, 0 == bytes ? 1 : bytes));
}

void real_upload(const real_gpu_t *gpu, const real_mirror_t *mirror)
{
    if (0 < mirror->bytes) {
        REAL_OK(gpu, cuMemcpyHtoD_v2(mirror->device, mirror->host, mirror->bytes));
    }
}

void real_download(const real_gpu_t *gpu, const real_mirror_t *mirror)
{
    if (0 < mirror->bytes) {
        REAL_OK(gpu, cuMemcpyDtoH_v2(mirror->host, mirror->device, mirror->bytes));
    }
}

void real_unmirror(const real_gpu_t *gpu, real_mirror_t *mirror)
{
    if (0 != mirror->device) {
        REAL_OK(gpu, cuMemFree_v2(mirror->device));
    }
    memset(mirror, 0, sizeof(*mirror));
}
