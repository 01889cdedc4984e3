/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Green contexts. Real drivers pass this as well, or have none. */

#include "test_cuda.h"

#define SIZE 10000

static CUdevResource processors(unsigned least)
{
    CUdevResource all, one, rest;
    unsigned int count = 0;

    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(CU_DEV_RESOURCE_TYPE_SM == all.type && 0 < all.sm.smCount);
    OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, least));
    CHECK(1 <= count);
    count = 1;
    OK(cuDevSmResourceSplitByCount(&one, &count, &all, &rest, 0, least));
    CHECK(1 == count && least <= one.sm.smCount);
    CHECK(all.sm.smCount
          >= one.sm.smCount + (CU_DEV_RESOURCE_TYPE_SM == rest.type ? rest.sm.smCount : 0));
    return one;
}

static CUgreenCtx make(void)
{
    CUdevResource some = processors(2);
    CUdevResourceDesc desc;
    CUgreenCtx green;

    OK(cuDevResourceGenerateDesc(&desc, &some, 1));
    CHECK(CUDA_SUCCESS != cuGreenCtxCreate(&green, desc, 0, 0));
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
}

static CUcontext current(void)
{
    CUcontext ctx = NULL;

    OK(cuCtxGetCurrent(&ctx));
    return ctx;
}

/* It is current as itself, and has the memory of the primary one, which sees it as its own. */
static void one_device_two_names(CUcontext primary)
{
    CUgreenCtx greens[2] = {make(), make()};
    CUcontext ctx[2], of = NULL, popped;
    CUdeviceptr ptr, before;
    CUstream stream;
    CUevent event;
    char host[SIZE];
    CUdevice device = -1;
    int i;

    OK(cuMemAlloc_v2(&before, SIZE));
    OK(cuMemsetD8_v2(before, 3, SIZE));
    OK(cuCtxSynchronize());
    for (i = 0; i < 2; i++) {
        OK(cuCtxFromGreenCtx(&ctx[i], greens[i]));
        CHECK(primary == current());
    }
    CHECK(ctx[0] != ctx[1] && ctx[0] != primary);
    OK(cuCtxPushCurrent_v2(ctx[0]));
    CHECK(ctx[0] == current());
    OK(cuCtxGetDevice(&device));
    CHECK(0 == device);
    OK(cuMemAlloc_v2(&ptr, SIZE));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
    CHECK(primary == of || ctx[0] == of);
    printf("memory that a green context makes is of %s\n",
           primary == of ? "the primary one" : "that green one");
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemcpyDtoDAsync_v2(ptr, before, SIZE, stream));
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent_v2(&popped));
    CHECK(ctx[0] == popped && primary == current());
    OK(cuMemcpyDtoH_v2(host, ptr, SIZE));
    CHECK(3 == host[0] && 3 == host[SIZE - 1]);
    OK(cuMemFree_v2(ptr));
    OK(cuMemFree_v2(before));
    OK(cuGreenCtxDestroy(greens[0]));
    OK(cuGreenCtxDestroy(greens[1]));
}

/* A green context keeps the primary one; both end. (Not what real drivers were seen to do.) */
static void ends(void)
{
    CUgreenCtx green;
    CUdeviceptr ptr;
    CUcontext ctx;
    unsigned int flags;
    int active = 0;

    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(0 == active);
    green = make();
    OK(cuCtxFromGreenCtx(&ctx, green));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(0 != active);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(ctx));
    OK(cuCtxSetCurrent(ctx));
    OK(cuMemAlloc_v2(&ptr, SIZE));
    OK(cuGreenCtxDestroy(green));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(0 == active);
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&ptr, SIZE));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(green));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxFromGreenCtx(&ctx, green));
}

int main(void)
{
    CUcontext ctx = test_begin(0), none;

    one_device_two_names(ctx);
    OK(cuCtxPopCurrent_v2(&none));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    ends();
    return 0;
}
