/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Functions under the names that programs link to which were built for other versions. */

#include "test_cuda.h"

#define OTHER(name, arguments) CUresult other_##name arguments __asm__(#name);
OTHER(cuCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice device))
OTHER(cuCtxCreate_v4, (CUcontext * ctx, void *params, unsigned int flags, CUdevice device))
OTHER(cuCtxDestroy, (CUcontext ctx))
OTHER(cuCtxPopCurrent, (CUcontext * ctx))
OTHER(cuCtxPushCurrent, (CUcontext ctx))
OTHER(cuCtxSynchronize_v2, (CUcontext ctx))
OTHER(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx))
OTHER(cuStreamDestroy, (CUstream stream))
OTHER(cuStreamWriteValue32,
      (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags))
OTHER(cuEventDestroy, (CUevent event))
OTHER(cuMemFree, (unsigned int ptr))

int main(void)
{
    CUcontext one = NULL, two = NULL, popped = NULL;
    CUdeviceptr memory;
    uint32_t value = 0;
    CUstream stream;
    CUevent event;
    CUdevice device = 9;

    OK(cuInit(0));
    OK(other_cuCtxCreate(&one, 0, 0));
    OK(other_cuCtxCreate_v4(&two, NULL, 0, 0));
    OK(other_cuCtxPopCurrent(&popped));
    CHECK(two == popped);
    OK(other_cuCtxPopCurrent(&popped));
    CHECK(one == popped);
    OK(other_cuCtxGetDevice_v2(&device, two));
    CHECK(0 == device);
    CHECK(CUDA_SUCCESS != other_cuCtxSynchronize_v2(NULL));
    OK(other_cuCtxPushCurrent(one));
    OK(cuMemAlloc_v2(&memory, sizeof(value)));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(other_cuStreamWriteValue32(stream, memory, 42, 0));
    OK(other_cuCtxSynchronize_v2(one));
    OK(cuMemcpyDtoH_v2(&value, memory, sizeof(value)));
    CHECK(42 == value);
    /* Half of the address: it is unknown, and nothing is freed. */
    CHECK(CUDA_SUCCESS != other_cuMemFree((unsigned int) memory));
    OK(cuMemFree_v2(memory));
    OK(other_cuEventDestroy(event));
    OK(other_cuStreamDestroy(stream));
    OK(other_cuCtxDestroy(two));
    OK(other_cuCtxDestroy(one));
    return 0;
}
