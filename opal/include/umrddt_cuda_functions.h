/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * The functions of the CUDA driver: F(name, base, version, arguments). name is the exported symbol.
 * base and version are the arguments of cuGetProcAddress, which returns the function with the
 * highest version not above the requested one. Included by umrddt_cuda.h.
 */

#ifndef UMRDDT_CUDA_FUNCTIONS_H
#define UMRDDT_CUDA_FUNCTIONS_H

/* clang-format off */
/* Those that the components call (test/tools/test_driver_table compares). */
#define UMRDDT_CUDA_FUNCTIONS_USED(F) \
    F(cuInit, "cuInit", 2000, (unsigned int flags)) \
    F(cuGetErrorString, "cuGetErrorString", 6000, (CUresult error, const char **text)) \
    F(cuDeviceGet, "cuDeviceGet", 2000, (CUdevice *device, int ordinal)) \
    F(cuDeviceGetCount, "cuDeviceGetCount", 2000, (int *count)) \
    F(cuDeviceGetUuid, "cuDeviceGetUuid", 9020, (CUuuid *uuid, CUdevice device)) \
    F(cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040, (CUuuid *uuid, CUdevice device)) \
    F(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, (int *value, CUdevice_attribute attribute, CUdevice device)) \
    F(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, (char *id, int length, CUdevice device)) \
    F(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, (int *can, CUdevice device, CUdevice peer)) \
    F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, (CUcontext *ctx, CUdevice device)) \
    F(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, (CUdevice device)) \
    F(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, (CUdevice device, unsigned int *flags, int *active)) \
    F(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000, (CUcontext ctx)) \
    F(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000, (CUcontext *ctx)) \
    F(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, (CUcontext *ctx)) \
    F(cuCtxGetDevice, "cuCtxGetDevice", 2000, (CUdevice *device)) \
    F(cuCtxGetId, "cuCtxGetId", 12000, (CUcontext ctx, unsigned long long *id)) \
    F(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, (int *least, int *greatest)) \
    F(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, (CUcontext peer, unsigned int flags)) \
    F(cuMemAlloc_v2, "cuMemAlloc", 3020, (CUdeviceptr *ptr, size_t size)) \
    F(cuMemFree_v2, "cuMemFree", 3020, (CUdeviceptr ptr)) \
    F(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, (CUdeviceptr *base, size_t *size, CUdeviceptr ptr)) \
    F(cuMemHostAlloc, "cuMemHostAlloc", 2020, (void **ptr, size_t size, unsigned int flags)) \
    F(cuMemFreeHost, "cuMemFreeHost", 2000, (void *ptr)) \
    F(cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", 3020, (CUdeviceptr *device, void *ptr, unsigned int flags)) \
    F(cuMemHostRegister_v2, "cuMemHostRegister", 6050, (void *ptr, size_t size, unsigned int flags)) \
    F(cuMemHostUnregister, "cuMemHostUnregister", 4000, (void *ptr)) \
    F(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr)) \
    F(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, (unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)) \
    F(cuPointerSetAttribute, "cuPointerSetAttribute", 6000, (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)) \
    F(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, (CUipcMemHandle *handle, CUdeviceptr ptr)) \
    F(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)) \
    F(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, (CUdeviceptr ptr)) \
    F(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", 11070, (void *handle, CUdeviceptr ptr, size_t size, CUmemRangeHandleType type, unsigned long long flags)) \
    F(cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites", 11030, (CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)) \
    F(cuStreamCreate, "cuStreamCreate", 2000, (CUstream *stream, unsigned int flags)) \
    F(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, (CUstream *stream, unsigned int flags, int priority)) \
    F(cuStreamDestroy_v2, "cuStreamDestroy", 4000, (CUstream stream)) \
    F(cuStreamQuery, "cuStreamQuery", 2000, (CUstream stream)) \
    F(cuStreamSynchronize, "cuStreamSynchronize", 2000, (CUstream stream)) \
    F(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, (CUstream stream, CUevent event, unsigned int flags)) \
    F(cuEventCreate, "cuEventCreate", 2000, (CUevent *event, unsigned int flags)) \
    F(cuEventRecord, "cuEventRecord", 2000, (CUevent event, CUstream stream)) \
    F(cuEventQuery, "cuEventQuery", 2000, (CUevent event)) \
    F(cuEventSynchronize, "cuEventSynchronize", 2000, (CUevent event)) \
    F(cuEventDestroy_v2, "cuEventDestroy", 4000, (CUevent event)) \
    F(cuMemcpyAsync, "cuMemcpyAsync", 4000, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t size, CUstream stream)) \
    F(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, (CUdeviceptr to, const void *from, size_t size, CUstream stream)) \
    F(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, (const CUDA_MEMCPY2D *copy, CUstream stream)) \
    F(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", 3020, (const CUDA_MEMCPY3D *copy, CUstream stream)) \
    F(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream)) \
    F(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)) \
    F(cuMemPoolGetAccess, "cuMemPoolGetAccess", 11020, (CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)) \
    F(cuMemGetAccess, "cuMemGetAccess", 10020, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)) \
    F(cuStreamWriteValue32_v2, "cuStreamWriteValue32", 11070, (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags)) \
    F(cuModuleLoadData, "cuModuleLoadData", 2000, (CUmodule *module, const void *image)) \
    F(cuModuleUnload, "cuModuleUnload", 2000, (CUmodule module)) \
    F(cuModuleGetFunction, "cuModuleGetFunction", 2000, (CUfunction *function, CUmodule module, const char *name)) \
    F(cuLaunchKernel, "cuLaunchKernel", 4000, (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **params, void **extra)) \
    F(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, (CUstream stream, CUstreamCaptureStatus *status)) \
    F(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, (CUstreamCaptureMode *mode)) \
    F(cuGraphCreate, "cuGraphCreate", 10000, (CUgraph *graph, unsigned int flags)) \
    F(cuGraphDestroy, "cuGraphDestroy", 10000, (CUgraph graph)) \
    F(cuGraphAddKernelNode_v2, "cuGraphAddKernelNode", 12000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, const CUDA_KERNEL_NODE_PARAMS *params)) \
    F(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
    F(cuGraphLaunch, "cuGraphLaunch", 10000, (CUgraphExec exec, CUstream stream)) \
    F(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, (CUgraphExec exec))

/* Those that only tools, benchmarks, tests and applications call. */
#define UMRDDT_CUDA_FUNCTIONS_OTHER(F) \
    F(cuDriverGetVersion, "cuDriverGetVersion", 2020, (int *version)) \
    F(cuGetErrorName, "cuGetErrorName", 6000, (CUresult error, const char **text)) \
    F(cuGetProcAddress, "cuGetProcAddress", 11030, (const char *symbol, void **function, int version, cuuint64_t flags)) \
    F(cuGetProcAddress_v2, "cuGetProcAddress", 12000, (const char *symbol, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)) \
    F(cuDeviceGetName, "cuDeviceGetName", 2000, (char *name, int length, CUdevice device)) \
    F(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, (size_t *bytes, CUdevice device)) \
    F(cuDeviceComputeCapability, "cuDeviceComputeCapability", 2000, (int *major, int *minor, CUdevice device)) \
    F(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", 4010, (CUdevice *device, const char *id)) \
    F(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", 8000, (int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination)) \
    F(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, (CUdevice device)) \
    F(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags", 11000, (CUdevice device, unsigned int flags)) \
    F(cuCtxCreate_v2, "cuCtxCreate", 3020, (CUcontext *ctx, unsigned int flags, CUdevice device)) \
    F(cuCtxDestroy_v2, "cuCtxDestroy", 4000, (CUcontext ctx)) \
    F(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, (CUcontext ctx)) \
    F(cuCtxGetFlags, "cuCtxGetFlags", 7000, (unsigned int *flags)) \
    F(cuCtxGetApiVersion, "cuCtxGetApiVersion", 3020, (CUcontext ctx, unsigned int *version)) \
    F(cuCtxSynchronize, "cuCtxSynchronize", 2000, (void)) \
    F(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000, (CUcontext peer)) \
    F(cuMemGetInfo_v2, "cuMemGetInfo", 3020, (size_t *left, size_t *total)) \
    F(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, (CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int element)) \
    F(cuMemAllocHost_v2, "cuMemAllocHost", 3020, (void **ptr, size_t size)) \
    F(cuMemHostGetFlags, "cuMemHostGetFlags", 2030, (unsigned int *flags, void *ptr)) \
    F(cuMemAllocManaged, "cuMemAllocManaged", 6000, (CUdeviceptr *ptr, size_t size, unsigned int flags)) \
    F(cuMemRangeGetAttribute, "cuMemRangeGetAttribute", 8000, (void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr ptr, size_t count)) \
    F(cuIpcGetEventHandle, "cuIpcGetEventHandle", 4010, (CUipcEventHandle *handle, CUevent event)) \
    F(cuIpcOpenEventHandle, "cuIpcOpenEventHandle", 4010, (CUevent *event, CUipcEventHandle handle)) \
    F(cuStreamGetFlags, "cuStreamGetFlags", 5050, (CUstream stream, unsigned int *flags)) \
    F(cuStreamGetPriority, "cuStreamGetPriority", 5050, (CUstream stream, int *priority)) \
    F(cuStreamGetCtx, "cuStreamGetCtx", 9020, (CUstream stream, CUcontext *ctx)) \
    F(cuStreamGetId, "cuStreamGetId", 12000, (CUstream stream, unsigned long long *id)) \
    F(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, (CUstream stream, CUhostFn function, void *data)) \
    F(cuStreamAddCallback, "cuStreamAddCallback", 5000, (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)) \
    F(cuEventElapsedTime, "cuEventElapsedTime", 2000, (float *milliseconds, CUevent start, CUevent end)) \
    F(cuEventElapsedTime_v2, "cuEventElapsedTime", 12080, (float *milliseconds, CUevent start, CUevent end)) \
    F(cuMemcpy, "cuMemcpy", 4000, (CUdeviceptr to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyPeer, "cuMemcpyPeer", 4000, (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t size)) \
    F(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, (CUdeviceptr to, const void *from, size_t size)) \
    F(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, (void *to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020, (CUdeviceptr to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, (void *to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpy2D_v2, "cuMemcpy2D", 3020, (const CUDA_MEMCPY2D *copy)) \
    F(cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", 3020, (const CUDA_MEMCPY2D *copy)) \
    F(cuMemcpy3D_v2, "cuMemcpy3D", 3020, (const CUDA_MEMCPY3D *copy)) \
    F(cuMemcpy3DPeer, "cuMemcpy3DPeer", 4000, (const CUDA_MEMCPY3D_PEER *copy)) \
    F(cuMemsetD8_v2, "cuMemsetD8", 3020, (CUdeviceptr ptr, unsigned char value, size_t count)) \
    F(cuMemsetD16_v2, "cuMemsetD16", 3020, (CUdeviceptr ptr, unsigned short value, size_t count)) \
    F(cuMemsetD32_v2, "cuMemsetD32", 3020, (CUdeviceptr ptr, unsigned int value, size_t count)) \
    F(cuMemsetD2D8_v2, "cuMemsetD2D8", 3020, (CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height)) \
    F(cuMemsetD8Async, "cuMemsetD8Async", 3020, (CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)) \
    F(cuMemsetD16Async, "cuMemsetD16Async", 3020, (CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream)) \
    F(cuMemsetD32Async, "cuMemsetD32Async", 3020, (CUdeviceptr ptr, unsigned int value, size_t count, CUstream stream)) \
    F(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, (CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream)) \
    F(cuDeviceGetDevResource, "cuDeviceGetDevResource", 12040, (CUdevice device, CUdevResource *resource, CUdevResourceType type)) \
    F(cuDevSmResourceSplitByCount, "cuDevSmResourceSplitByCount", 12040, (CUdevResource *groups, unsigned int *count, const CUdevResource *all, CUdevResource *rest, unsigned int flags, unsigned int least)) \
    F(cuDevResourceGenerateDesc, "cuDevResourceGenerateDesc", 12040, (CUdevResourceDesc *desc, CUdevResource *resources, unsigned int count)) \
    F(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, (CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned int flags)) \
    F(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, (CUgreenCtx green)) \
    F(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, (CUcontext *ctx, CUgreenCtx green)) \
    F(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, (CUmemoryPool *pool, CUdevice device)) \
    F(cuDeviceGetMemPool, "cuDeviceGetMemPool", 11020, (CUmemoryPool *pool, CUdevice device)) \
    F(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, (CUdevice device, CUmemoryPool pool)) \
    F(cuMemAllocAsync, "cuMemAllocAsync", 11020, (CUdeviceptr *ptr, size_t size, CUstream stream)) \
    F(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, (CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)) \
    F(cuMemFreeAsync, "cuMemFreeAsync", 11020, (CUdeviceptr ptr, CUstream stream)) \
    F(cuMemPoolCreate, "cuMemPoolCreate", 11020, (CUmemoryPool *pool, const CUmemPoolProps *props)) \
    F(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, (CUmemoryPool pool)) \
    F(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, (CUmemoryPool pool, size_t keep)) \
    F(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) \
    F(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) \
    F(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, (size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)) \
    F(cuMemAddressReserve, "cuMemAddressReserve", 10020, (CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags)) \
    F(cuMemAddressFree, "cuMemAddressFree", 10020, (CUdeviceptr ptr, size_t size)) \
    F(cuMemCreate, "cuMemCreate", 10020, (CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)) \
    F(cuMemRelease, "cuMemRelease", 10020, (CUmemGenericAllocationHandle handle)) \
    F(cuMemMap, "cuMemMap", 10020, (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)) \
    F(cuMemUnmap, "cuMemUnmap", 10020, (CUdeviceptr ptr, size_t size)) \
    F(cuMemSetAccess, "cuMemSetAccess", 10020, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)) \
    F(cuMemExportToShareableHandle, "cuMemExportToShareableHandle", 10020, (void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)) \
    F(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, (CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type)) \
    F(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, (CUmemGenericAllocationHandle *handle, void *address)) \
    F(cuMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle", 10020, (CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)) \
    F(cuStreamWriteValue64_v2, "cuStreamWriteValue64", 11070, (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags)) \
    F(cuStreamWaitValue32_v2, "cuStreamWaitValue32", 11070, (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags)) \
    F(cuStreamWaitValue64_v2, "cuStreamWaitValue64", 11070, (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags)) \
    F(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)) \
    F(cuModuleLoad, "cuModuleLoad", 2000, (CUmodule *module, const char *name)) \
    F(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, (CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values)) \
    F(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, (CUmodule *module, const void *image)) \
    F(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, (int *value, CUfunction_attribute attribute, CUfunction function)) \
    F(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, (CUfunction function, CUfunction_attribute attribute, int value)) \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, (int *blocks, CUfunction function, int threads, size_t shared)) \
    F(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, (CUstream stream, CUstreamCaptureMode mode)) \
    F(cuStreamEndCapture, "cuStreamEndCapture", 10000, (CUstream stream, CUgraph *graph)) \
    F(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, const CUDA_MEMCPY3D *copy, CUcontext ctx)) \
    F(cuGraphAddMemsetNode, "cuGraphAddMemsetNode", 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, const CUDA_MEMSET_NODE_PARAMS *set, CUcontext ctx)) \
    F(cuGraphAddEmptyNode, "cuGraphAddEmptyNode", 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count)) \
    F(cuGraphAddBatchMemOpNode, "cuGraphAddBatchMemOpNode", 11070, (CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)) \
    F(cuGraphGetNodes, "cuGraphGetNodes", 10000, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
    F(cuGraphNodeGetType, "cuGraphNodeGetType", 10000, (CUgraphNode node, CUgraphNodeType *type)) \
    F(cuGraphUpload, "cuGraphUpload", 11010, (CUgraphExec exec, CUstream stream)) \
    F(cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams", 12000, (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)) \
    F(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx))

#define UMRDDT_CUDA_FUNCTIONS(F) UMRDDT_CUDA_FUNCTIONS_USED(F) UMRDDT_CUDA_FUNCTIONS_OTHER(F)
/* clang-format on */

#define UMRDDT_CUDA_PROTOTYPE(name, base, version, arguments) CUresult name arguments;
UMRDDT_CUDA_FUNCTIONS(UMRDDT_CUDA_PROTOTYPE)

#endif /* UMRDDT_CUDA_FUNCTIONS_H */
