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
 * The part of the CUDA driver's binary interface that umrddt uses, so that it builds where the CUDA
 * Toolkit is not installed. Names, values, layouts and prototypes are those of the driver (64 bit
 * Linux); test/cuda/test_abi.c compares all of them with the Toolkit's header where it is
 * installed. With UMRDDT_CUDA_H defined that header is included instead of the declarations.
 *
 * Functions have the names under which the library exports them (cuMemAlloc_v2), not those that the
 * Toolkit's header maps to them.
 *
 * The lists are X macros, so that the software driver, the loader and the tests use the same lines.
 */

#ifndef UMRDDT_CUDA_H_INCLUDED
#define UMRDDT_CUDA_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

/** The errors of the driver: name and value. */
/* clang-format off */
#define UMRDDT_CUDA_RESULTS(X) \
    X(CUDA_SUCCESS, 0) X(CUDA_ERROR_INVALID_VALUE, 1) X(CUDA_ERROR_OUT_OF_MEMORY, 2) \
    X(CUDA_ERROR_NOT_INITIALIZED, 3) X(CUDA_ERROR_DEINITIALIZED, 4) \
    X(CUDA_ERROR_STUB_LIBRARY, 34) X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46) \
    X(CUDA_ERROR_NO_DEVICE, 100) X(CUDA_ERROR_INVALID_DEVICE, 101) \
    X(CUDA_ERROR_INVALID_IMAGE, 200) X(CUDA_ERROR_INVALID_CONTEXT, 201) \
    X(CUDA_ERROR_MAP_FAILED, 205) X(CUDA_ERROR_UNMAP_FAILED, 206) \
    X(CUDA_ERROR_ALREADY_MAPPED, 208) X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
    X(CUDA_ERROR_NOT_MAPPED, 211) X(CUDA_ERROR_ECC_UNCORRECTABLE, 214) \
    X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215) X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
    X(CUDA_ERROR_INVALID_PTX, 218) X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
    X(CUDA_ERROR_INVALID_SOURCE, 300) X(CUDA_ERROR_FILE_NOT_FOUND, 301) \
    X(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302) \
    X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303) X(CUDA_ERROR_OPERATING_SYSTEM, 304) \
    X(CUDA_ERROR_INVALID_HANDLE, 400) X(CUDA_ERROR_ILLEGAL_STATE, 401) \
    X(CUDA_ERROR_NOT_FOUND, 500) X(CUDA_ERROR_NOT_READY, 600) X(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) X(CUDA_ERROR_LAUNCH_TIMEOUT, 702) \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705) \
    X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708) X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) \
    X(CUDA_ERROR_ASSERT, 710) X(CUDA_ERROR_TOO_MANY_PEERS, 711) \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713) X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715) \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716) X(CUDA_ERROR_LAUNCH_FAILED, 719) \
    X(CUDA_ERROR_NOT_PERMITTED, 800) X(CUDA_ERROR_NOT_SUPPORTED, 801) \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802) X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803) \
    X(CUDA_ERROR_MPS_CONNECTION_FAILED, 805) X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902) \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903) X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904) \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905) X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
    X(CUDA_ERROR_CAPTURED_EVENT, 907) X(CUDA_ERROR_TIMEOUT, 909) X(CUDA_ERROR_UNKNOWN, 999)
/* clang-format on */

/* clang-format off */
#define UMRDDT_CUDA_POINTER_ATTRIBUTES(X) \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1) X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3) X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4) \
    X(CU_POINTER_ATTRIBUTE_P2P_TOKENS, 5) X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6) \
    X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7) X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8) \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9) \
    X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10) \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11) X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12) \
    X(CU_POINTER_ATTRIBUTE_MAPPED, 13) X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14) \
    X(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 15) \
    X(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16) X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17) \
    X(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 18) X(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 19) \
    X(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 20)
/* clang-format on */

/** Attributes of a device: name, value, and the value of a software device (see gpu_device.c). */
/* clang-format off */
#define UMRDDT_CUDA_DEVICE_ATTRIBUTES(X) \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1, 1024) \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2, 1024) \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3, 1024) \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4, 64) \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5, 2147483647) \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6, 65535) \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7, 65535) \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8, 49152) \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10, 32) X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11, 2147483647) \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12, 65536) \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13, 1000000) X(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 15, 1) \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16, 4) X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18, 0) \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19, 1) X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20, 0) \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31, 1) X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33, 0) \
    X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34, 0) \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36, 1000000) \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37, 64) \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38, 1048576) \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39, 2048) \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40, 3) \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41, 1) X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50, 0) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75, 9) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76, 0) \
    X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78, 1) \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83, 1) \
    X(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 86, 0) \
    X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88, 0) \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89, 1) \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91, 1) \
    X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95, 0) \
    X(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 98, 0) \
    X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99, 1) \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102, 1) \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103, 1) \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110, 1) \
    X(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 113, 0) \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115, 1) \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116, 1) \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117, 1) \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 118, 0) \
    X(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 119, 0) \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122, 1) \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 123, 1) \
    X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124, 1) \
    X(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 125, 0) \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 128, 0) \
    X(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 132, 0) \
    X(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 133, 0)
/* clang-format on */

/** Constants of the other enumerations and macros, for comparison: name and value. */
/* clang-format off */
#define UMRDDT_CUDA_CONSTANTS(X) \
    X(CU_MEMORYTYPE_HOST, 1) X(CU_MEMORYTYPE_DEVICE, 2) X(CU_MEMORYTYPE_ARRAY, 3) \
    X(CU_MEMORYTYPE_UNIFIED, 4) X(CU_IPC_HANDLE_SIZE, 64) \
    X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1) X(CU_MEM_ATTACH_GLOBAL, 1) X(CU_MEM_ATTACH_HOST, 2) \
    X(CU_CTX_SCHED_AUTO, 0) X(CU_CTX_SCHED_BLOCKING_SYNC, 4) X(CU_CTX_MAP_HOST, 8) \
    X(CU_CTX_FLAGS_MASK, 255) X(CU_EVENT_DEFAULT, 0) X(CU_EVENT_BLOCKING_SYNC, 1) \
    X(CU_EVENT_DISABLE_TIMING, 2) X(CU_EVENT_INTERPROCESS, 4) X(CU_STREAM_DEFAULT, 0) \
    X(CU_STREAM_NON_BLOCKING, 1) X(CU_STREAM_WAIT_VALUE_GEQ, 0) X(CU_STREAM_WAIT_VALUE_EQ, 1) \
    X(CU_STREAM_WAIT_VALUE_AND, 2) X(CU_STREAM_WAIT_VALUE_NOR, 3) \
    X(CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30) X(CU_STREAM_WRITE_VALUE_DEFAULT, 0) \
    X(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, 1) X(CU_STREAM_MEM_OP_WAIT_VALUE_32, 1) \
    X(CU_STREAM_MEM_OP_WRITE_VALUE_32, 2) X(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, 3) \
    X(CU_STREAM_MEM_OP_WAIT_VALUE_64, 4) X(CU_STREAM_MEM_OP_WRITE_VALUE_64, 5) \
    X(CU_STREAM_MEM_OP_BARRIER, 6) X(CU_MEM_HANDLE_TYPE_NONE, 0) \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1) X(CU_MEM_HANDLE_TYPE_FABRIC, 8) \
    X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0) X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1) \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3) X(CU_MEM_LOCATION_TYPE_INVALID, 0) \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1) X(CU_MEM_LOCATION_TYPE_HOST, 2) \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1) X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0) \
    X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1) X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1) \
    X(CU_DEV_RESOURCE_TYPE_INVALID, 0) X(CU_DEV_RESOURCE_TYPE_SM, 1) \
    X(CU_GREEN_CTX_DEFAULT_STREAM, 1) X(CU_GET_PROC_ADDRESS_DEFAULT, 0) X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1) \
    X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2) X(CU_GET_PROC_ADDRESS_SUCCESS, 0) \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1) X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2) \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0) X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2) X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0) \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) X(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
    X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1) \
    X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2) \
    X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3) \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4) X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5) \
    X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7) X(CU_GRAPH_NODE_TYPE_KERNEL, 0) \
    X(CU_GRAPH_NODE_TYPE_MEMCPY, 1) X(CU_GRAPH_NODE_TYPE_MEMSET, 2) \
    X(CU_GRAPH_NODE_TYPE_HOST, 3) X(CU_GRAPH_NODE_TYPE_EMPTY, 5) \
    X(CU_GRAPH_NODE_TYPE_WAIT_EVENT, 6) X(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7) \
    X(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, 12) X(CU_MEMHOSTALLOC_PORTABLE, 1) \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2) X(CU_MEMHOSTALLOC_WRITECOMBINED, 4) \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1) X(CU_MEMHOSTREGISTER_DEVICEMAP, 2) \
    X(CU_MEMHOSTREGISTER_IOMEMORY, 4) X(CU_MEMHOSTREGISTER_READ_ONLY, 8) \
    X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER, 100) \
    X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES, 200) \
    X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, 0) \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6) X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    X(CU_LAUNCH_PARAM_END_AS_INT, 0) X(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, 1) \
    X(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, 2) X(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1) \
    X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 2) X(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, 3) \
    X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 4)
/* clang-format on */

#if defined(UMRDDT_CUDA_H)

#include <cuda.h>
/* Use the exported functions of these names, not their newer versions. */
#undef cuGetProcAddress
#undef cuDeviceGetUuid
#undef cuEventElapsedTime

#else

#define UMRDDT_CUDA_ENUMERATOR(name, value)         name = (value),
#define UMRDDT_CUDA_ENUMERATOR_3(name, value, says) name = (value),

typedef enum cudaError_enum {
    UMRDDT_CUDA_RESULTS(UMRDDT_CUDA_ENUMERATOR)
} CUresult;

typedef enum CUpointer_attribute_enum {
    UMRDDT_CUDA_POINTER_ATTRIBUTES(UMRDDT_CUDA_ENUMERATOR)
} CUpointer_attribute;

typedef enum CUdevice_attribute_enum {
    UMRDDT_CUDA_DEVICE_ATTRIBUTES(UMRDDT_CUDA_ENUMERATOR_3)
} CUdevice_attribute;

/* Constants of many enumerations; the enumerations are declared as integers. */
enum umrddt_cuda_constants {
    UMRDDT_CUDA_CONSTANTS(UMRDDT_CUDA_ENUMERATOR)
};

typedef unsigned int CUmemorytype;
typedef unsigned int CUmem_advise;
typedef unsigned int CUmem_range_attribute;
typedef unsigned int CUmemLocationType;
typedef unsigned int CUmemAllocationType;
typedef unsigned int CUmemAllocationHandleType;
typedef unsigned int CUmemAccess_flags;
typedef unsigned int CUmemAllocationGranularity_flags;
typedef unsigned int CUmemRangeHandleType;
typedef unsigned int CUmemPool_attribute;
typedef unsigned int CUdriverProcAddressQueryResult;
typedef unsigned int CUstreamBatchMemOpType;
typedef unsigned int CUstreamCaptureStatus;
typedef unsigned int CUstreamCaptureMode;
typedef unsigned int CUdevice_P2PAttribute;
typedef unsigned int CUgraphNodeType;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUlimit;
typedef unsigned int CUdevResourceType;
typedef unsigned int CUjit_option;
typedef unsigned int CUflushGPUDirectRDMAWritesTarget;
typedef unsigned int CUflushGPUDirectRDMAWritesScope;

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUkern_st *CUkernel;
typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream hStream, CUresult status, void *userData);

#define CU_STREAM_LEGACY               ((CUstream) 0x1)
#define CU_STREAM_PER_THREAD           ((CUstream) 0x2)
#define CU_LAUNCH_PARAM_END            ((void *) CU_LAUNCH_PARAM_END_AS_INT)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *) CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *) CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT)

typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

/** The part of a device for a green context. */
typedef struct CUdevSmResource_st {
    unsigned int smCount;
    unsigned int minSmPartitionSize;
    unsigned int smCoscheduledAlignment;
} CUdevSmResource;

typedef struct CUdevResource_st {
    CUdevResourceType type;
    unsigned char _internal_padding[92];
    union {
        CUdevSmResource sm;
        unsigned char _oversize[48];
    };
} CUdevResource;

typedef struct CUipcMemHandle_st {
    char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;
typedef struct CUipcEventHandle_st {
    char reserved[64];
} CUipcEventHandle;

typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_MEMCPY3D_PEER_st {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

typedef union CUstreamBatchMemOpParams_union {
    CUstreamBatchMemOpType operation;
    struct {
        CUstreamBatchMemOpType operation;
        CUdeviceptr address;
        union {
            cuuint32_t value;
            cuuint64_t value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } waitValue, writeValue;
    struct {
        CUstreamBatchMemOpType operation;
        unsigned int flags;
    } flushRemoteWrites, memoryBarrier;
    cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct CUmemLocation_st {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps_st {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width;
    size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS_st {
    CUcontext ctx;
    unsigned int count;
    CUstreamBatchMemOpParams *paramArray;
    unsigned int flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

#endif /* UMRDDT_CUDA_H */

/** The layouts, for comparison: S(type), M(type, member). */
/* clang-format off */
#define UMRDDT_CUDA_LAYOUTS(S, M) \
    S(CUdevResource) M(CUdevResource, type) M(CUdevResource, sm) \
    M(CUdevResource, sm.minSmPartitionSize) M(CUdevResource, sm.smCoscheduledAlignment) \
    S(CUresult) S(CUdevice) S(CUdeviceptr) S(CUuuid) S(CUmemGenericAllocationHandle) \
    S(CUpointer_attribute) S(CUmemorytype) S(CUstreamCaptureStatus) S(CUmemPool_attribute) \
    S(CUipcMemHandle) M(CUipcMemHandle, reserved) \
    S(CUipcEventHandle) M(CUipcEventHandle, reserved) S(CUDA_MEMCPY2D) M(CUDA_MEMCPY2D, srcY) \
    M(CUDA_MEMCPY2D, srcMemoryType) M(CUDA_MEMCPY2D, srcHost) M(CUDA_MEMCPY2D, srcDevice) \
    M(CUDA_MEMCPY2D, srcArray) M(CUDA_MEMCPY2D, srcPitch) M(CUDA_MEMCPY2D, dstXInBytes) \
    M(CUDA_MEMCPY2D, dstY) M(CUDA_MEMCPY2D, dstMemoryType) M(CUDA_MEMCPY2D, dstHost) \
    M(CUDA_MEMCPY2D, dstDevice) M(CUDA_MEMCPY2D, dstArray) M(CUDA_MEMCPY2D, dstPitch) \
    M(CUDA_MEMCPY2D, WidthInBytes) M(CUDA_MEMCPY2D, Height) S(CUDA_MEMCPY3D) \
    M(CUDA_MEMCPY3D, srcY) M(CUDA_MEMCPY3D, srcZ) M(CUDA_MEMCPY3D, srcLOD) \
    M(CUDA_MEMCPY3D, srcMemoryType) M(CUDA_MEMCPY3D, srcHost) M(CUDA_MEMCPY3D, srcDevice) \
    M(CUDA_MEMCPY3D, srcArray) M(CUDA_MEMCPY3D, srcPitch) M(CUDA_MEMCPY3D, srcHeight) \
    M(CUDA_MEMCPY3D, dstXInBytes) M(CUDA_MEMCPY3D, dstY) M(CUDA_MEMCPY3D, dstZ) \
    M(CUDA_MEMCPY3D, dstMemoryType) M(CUDA_MEMCPY3D, dstHost) M(CUDA_MEMCPY3D, dstDevice) \
    M(CUDA_MEMCPY3D, dstPitch) M(CUDA_MEMCPY3D, dstHeight) M(CUDA_MEMCPY3D, WidthInBytes) \
    M(CUDA_MEMCPY3D, Height) M(CUDA_MEMCPY3D, Depth) S(CUDA_MEMCPY3D_PEER) \
    M(CUDA_MEMCPY3D_PEER, srcContext) M(CUDA_MEMCPY3D_PEER, srcPitch) \
    M(CUDA_MEMCPY3D_PEER, dstContext) M(CUDA_MEMCPY3D_PEER, dstPitch) \
    M(CUDA_MEMCPY3D_PEER, Depth) S(CUstreamBatchMemOpParams) \
    M(CUstreamBatchMemOpParams, waitValue .address) M(CUstreamBatchMemOpParams, waitValue.value) \
    M(CUstreamBatchMemOpParams, waitValue.flags) M(CUstreamBatchMemOpParams, waitValue.alias) \
    M(CUstreamBatchMemOpParams, writeValue .address) \
    M(CUstreamBatchMemOpParams, writeValue .value64) \
    M(CUstreamBatchMemOpParams, writeValue .flags) \
    M(CUstreamBatchMemOpParams, flushRemoteWrites.flags) \
    M(CUstreamBatchMemOpParams, memoryBarrier .flags) S(CUmemLocation) M(CUmemLocation, id) \
    S(CUmemAllocationProp) M(CUmemAllocationProp, requestedHandleTypes) \
    M(CUmemAllocationProp, location) M(CUmemAllocationProp, win32HandleMetaData) \
    M(CUmemAllocationProp, allocFlags .gpuDirectRDMACapable) \
    M(CUmemAllocationProp, allocFlags.usage) S(CUmemAccessDesc) M(CUmemAccessDesc, flags) \
    S(CUmemPoolProps) M(CUmemPoolProps, handleTypes) M(CUmemPoolProps, location) \
    M(CUmemPoolProps, maxSize) S(CUDA_KERNEL_NODE_PARAMS) M(CUDA_KERNEL_NODE_PARAMS, gridDimX) \
    M(CUDA_KERNEL_NODE_PARAMS, blockDimZ) M(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes) \
    M(CUDA_KERNEL_NODE_PARAMS, kernelParams) M(CUDA_KERNEL_NODE_PARAMS, extra) \
    M(CUDA_KERNEL_NODE_PARAMS, ctx) S(CUDA_MEMSET_NODE_PARAMS) M(CUDA_MEMSET_NODE_PARAMS, pitch) \
    M(CUDA_MEMSET_NODE_PARAMS, value) M(CUDA_MEMSET_NODE_PARAMS, elementSize) \
    M(CUDA_MEMSET_NODE_PARAMS, width) M(CUDA_MEMSET_NODE_PARAMS, height) \
    S(CUDA_BATCH_MEM_OP_NODE_PARAMS) M(CUDA_BATCH_MEM_OP_NODE_PARAMS, count) \
    M(CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray) M(CUDA_BATCH_MEM_OP_NODE_PARAMS, flags)
/* clang-format on */

#include "umrddt_cuda_functions.h"

#endif /* UMRDDT_CUDA_H_INCLUDED */
