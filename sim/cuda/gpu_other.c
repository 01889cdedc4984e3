/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Other versions of functions that are here, for programs that link to them by name: the Toolkit's
 * header maps most names to the newest version, and the library has the older ones under the plain
 * name. They are counted, and fail on demand, as the ones that they call.
 *
 * The names are given to the assembler, since cuda.h has macros of the same names.
 */

#include "gpu.h"

#include <string.h>

#define OTHER(name, arguments)                                 \
    GPU_EXPORT CUresult other_##name arguments __asm__(#name); \
    CUresult other_##name arguments

/* ---- the same arguments; the version selects their meaning in the driver ---- */

OTHER(cuCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice device))
{
    return cuCtxCreate_v2(ctx, flags, device);
}

OTHER(cuCtxDestroy, (CUcontext ctx))
{
    return cuCtxDestroy_v2(ctx);
}

OTHER(cuCtxPopCurrent, (CUcontext * ctx))
{
    return cuCtxPopCurrent_v2(ctx);
}

OTHER(cuCtxPushCurrent, (CUcontext ctx))
{
    return cuCtxPushCurrent_v2(ctx);
}

OTHER(cuDevicePrimaryCtxRelease, (CUdevice device))
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

OTHER(cuDevicePrimaryCtxReset, (CUdevice device))
{
    return cuDevicePrimaryCtxReset_v2(device);
}

OTHER(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags))
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

OTHER(cuEventDestroy, (CUevent event))
{
    return cuEventDestroy_v2(event);
}

OTHER(cuIpcOpenMemHandle, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned int flags))
{
    return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

OTHER(cuMemHostRegister, (void *ptr, size_t size, unsigned int flags))
{
    return cuMemHostRegister_v2(ptr, size, flags);
}

OTHER(cuStreamDestroy, (CUstream stream))
{
    return cuStreamDestroy_v2(stream);
}

OTHER(cuStreamBeginCapture, (CUstream stream))
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

OTHER(cuStreamBatchMemOp,
      (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags))
{
    return cuStreamBatchMemOp_v2(stream, count, params, flags);
}

OTHER(cuStreamWaitValue32, (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags))
{
    return cuStreamWaitValue32_v2(stream, ptr, value, flags);
}

OTHER(cuStreamWaitValue64, (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags))
{
    return cuStreamWaitValue64_v2(stream, ptr, value, flags);
}

OTHER(cuStreamWriteValue32,
      (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags))
{
    return cuStreamWriteValue32_v2(stream, ptr, value, flags);
}

OTHER(cuStreamWriteValue64,
      (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags))
{
    return cuStreamWriteValue64_v2(stream, ptr, value, flags);
}

/* ---- fewer or more arguments ---- */

/* The parameters of a kernel without its last two members. */
static CUDA_KERNEL_NODE_PARAMS widened(const void *params)
{
    CUDA_KERNEL_NODE_PARAMS wide;

    memset(&wide, 0, sizeof(wide));
    memcpy(&wide, params, offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
    return wide;
}

OTHER(cuGraphAddKernelNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *before,
                             size_t count, const void *params))
{
    CUDA_KERNEL_NODE_PARAMS wide;

    if (NULL == params) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wide = widened(params);
    return cuGraphAddKernelNode_v2(node, graph, before, count, &wide);
}

OTHER(cuGraphExecKernelNodeSetParams, (CUgraphExec exec, CUgraphNode node, const void *params))
{
    CUDA_KERNEL_NODE_PARAMS wide;

    if (NULL == params) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wide = widened(params);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

/* Affinities are not here. */
OTHER(cuCtxCreate_v3,
      (CUcontext * ctx, void *affinities, int count, unsigned int flags, CUdevice device))
{
    return NULL != affinities || 0 != count ? CUDA_ERROR_NOT_SUPPORTED
                                            : cuCtxCreate_v2(ctx, flags, device);
}

OTHER(cuCtxCreate_v4, (CUcontext * ctx, void *params, unsigned int flags, CUdevice device))
{
    return NULL != params ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ctx, flags, device);
}

/* NULL: the current one. */
OTHER(cuCtxSynchronize_v2, (CUcontext ctx))
{
    CUcontext before;
    CUresult rc = NULL == ctx ? CUDA_SUCCESS : cuCtxPushCurrent_v2(ctx);

    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    rc = cuCtxSynchronize();
    if (NULL != ctx) {
        (void) cuCtxPopCurrent_v2(&before);
    }
    return rc;
}

OTHER(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx))
{
    CUcontext before;
    CUresult rc = NULL == ctx ? CUDA_SUCCESS : cuCtxPushCurrent_v2(ctx);

    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    rc = cuCtxGetDevice(device);
    if (NULL != ctx) {
        (void) cuCtxPopCurrent_v2(&before);
    }
    return rc;
}

/* Streams of green contexts are made with the context's own name. */
OTHER(cuStreamGetCtx_v2, (CUstream stream, CUcontext *ctx, CUgreenCtx *green))
{
    CUresult rc = NULL == green ? CUDA_ERROR_INVALID_VALUE : cuStreamGetCtx(stream, ctx);

    if (CUDA_SUCCESS == rc) {
        *green = NULL;
    }
    return rc;
}

/* ---- before CUDA 3.2: addresses and sizes of 32 bits. Real drivers refuse them in contexts that
 * newer functions made (H100, driver 580). ---- */

#define NARROW(name)                                       \
    GPU_EXPORT CUresult other_##name(void) __asm__(#name); \
    CUresult other_##name(void)                            \
    {                                                      \
        return CUDA_ERROR_INVALID_CONTEXT;                 \
    }
/* clang-format off */
NARROW(cuDeviceTotalMem) NARROW(cuMemAlloc) NARROW(cuMemAllocHost) NARROW(cuMemAllocPitch)
NARROW(cuMemFree) NARROW(cuMemGetAddressRange) NARROW(cuMemGetInfo)
NARROW(cuMemHostGetDevicePointer) NARROW(cuMemcpy2D) NARROW(cuMemcpy2DAsync)
NARROW(cuMemcpy2DUnaligned) NARROW(cuMemcpy3D) NARROW(cuMemcpy3DAsync) NARROW(cuMemcpyDtoD)
NARROW(cuMemcpyDtoDAsync) NARROW(cuMemcpyDtoH) NARROW(cuMemcpyDtoHAsync) NARROW(cuMemcpyHtoD)
NARROW(cuMemcpyHtoDAsync) NARROW(cuMemsetD16) NARROW(cuMemsetD2D8) NARROW(cuMemsetD32)
NARROW(cuMemsetD8)
