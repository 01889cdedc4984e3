/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A kernel of common/umrddt_gpu, planned, found by its name and launched through the driver: on the
 * software one, or with UMRDDT_TEST_GPU=real the machine's own, in memory that the CPU cannot
 * touch. What each kernel does is random_kernels' business.
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

#include "gpu_test.h"
#include "real.h"

#define BLOCKS 1000
#define BLOCK  16
#define BYTES  (BLOCKS * BLOCK)

#define OK(call) CHECK(CUDA_SUCCESS == driver->call)

static const umrddt_cuda_all_t *driver;
static CUmodule module;

/* Blocks in reverse order, each with a gap behind it. */
static int64_t offset_of(int i)
{
    return 2 * BLOCK * (int64_t) (BLOCKS - 1 - i);
}

static CUdeviceptr device(size_t size, const void *content)
{
    CUdeviceptr ptr;

    OK(cuMemAlloc_v2(&ptr, size));
    if (NULL != content) {
        OK(cuMemcpyHtoD_v2(ptr, content, size));
    }
    return ptr;
}

static void launch(const opal_umrddt_gpu_plan_t *plan)
{
    void *params[] = {(void *) &plan->args};
    CUfunction function;

    OK(cuModuleGetFunction(&function, module, opal_umrddt_gpu_kernel_name(plan->kernel)));
    OK(cuLaunchKernel(function, plan->grid[0], plan->grid[1], plan->grid[2], plan->block[0],
                      plan->block[1], plan->block[2], 0, NULL, params, NULL));
}

static void again_on_software(char **argv)
{
    const char *build = getenv("UMRDDT_BUILDDIR");
    char text[4096];

    CHECK(NULL != build);
    snprintf(text, sizeof(text), "%s/sim/cuda/.libs", build);
    setenv("LD_LIBRARY_PATH", text, 1);
    /* It finds the kernels by itself. */
    unsetenv("UMRDDT_GPU");
    setenv("UMRDDT_TEST_AGAIN", "1", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    execv("/proc/self/exe", argv);
    exit(99);
}

int main(int argc, char **argv)
{
    static const char image[] =
        "//\n.version 8.0\n.target sm_90\n"; /* whose code is not looked at */
    static unsigned char layout[2 * BYTES];
    static unsigned char packed[BYTES];
    static int64_t offsets[BLOCKS];
    opal_umrddt_gpu_map_t map;
    opal_umrddt_gpu_end_t source;
    opal_umrddt_gpu_end_t target;
    opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(4);
    opal_umrddt_gpu_plan_t plan;
    CUdeviceptr stream;
    CUcontext ctx;
    int i;

    (void) argc;
    if (real_wanted()) {
        static real_gpu_t gpu;

        real_begin(0, &gpu);
        driver = gpu.driver;
        module = gpu.module;
    } else {
        if (NULL == getenv("UMRDDT_TEST_AGAIN")) {
            again_on_software(argv);
        }
        CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&driver));
        OK(cuInit(0));
        OK(cuDevicePrimaryCtxRetain(&ctx, 0));
        OK(cuCtxSetCurrent(ctx));
        OK(cuModuleLoadData(&module, image));
    }
    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; i++) {
        CUfunction function;

        OK(cuModuleGetFunction(&function, module,
                               opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i)));
    }
    for (i = 0; i < BLOCKS; i++) {
        offsets[i] = offset_of(i);
    }
    for (i = 0; i < 2 * BYTES; i++) {
        layout[i] = (unsigned char) (i * 7 + i / 251);
    }
    memset(&map, 0, sizeof(map));
    map.scheme = OPAL_UMRDDT_GPU_TARGETED;
    map.kind = UMRDDT_GPU_INDEXED;
    map.align = 16;
    map.size = BYTES;
    map.block = BLOCK;
    map.n = BLOCKS;
    map.list = offsets;
    map.list_bytes = sizeof(offsets);
    stream = device(BYTES, NULL);
    memset(&target, 0, sizeof(target));
    target.address = stream;
    source.map = &map;
    source.address = device(sizeof(layout), layout);
    source.list = device(sizeof(offsets), offsets);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_plan(&source, &target, 0, BYTES, &fit, &plan));
    launch(&plan);
    OK(cuMemcpyDtoH_v2(packed, stream, BYTES));
    for (i = 0; i < BYTES; i++) {
        CHECK(layout[offset_of(i / BLOCK) + i % BLOCK] == packed[i]);
    }
    /* One block that is in no memory: the device says so. */
    offsets[5] = INT64_C(1) << 46;
    OK(cuMemcpyHtoD_v2(source.list, offsets, sizeof(offsets)));
    OK(cuCtxSynchronize());
    launch(&plan);
    CHECK(CUDA_ERROR_ILLEGAL_ADDRESS == driver->cuCtxSynchronize());
    return 0;
}
