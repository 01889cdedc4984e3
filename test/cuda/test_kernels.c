/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Kernels, values that streams write, and graphs. Needs the software driver: its kernels are those
 * of host_kernels.c, for any image.
 */

#include "test_cuda.h"

#include <limits.h>

#define COUNT 1000u

static const char image[] = "//\n.version 8.0\n.target sm_90\n";
static CUcontext ctx;
static CUmodule module;
static CUfunction gather;
static CUfunction touch;

static void begin(void)
{
    ctx = test_begin(0);
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&gather, module, "gather"));
    OK(cuModuleGetFunction(&touch, module, "touch"));
}

static CUdeviceptr numbers(unsigned count)
{
    CUdeviceptr ptr;
    unsigned i;

    OK(cuMemAlloc_v2(&ptr, 4ull * count));
    for (i = 0; i < count; i++) {
        OK(cuMemcpyHtoD_v2(ptr + 4ull * i, &i, 4));
    }
    /* These copies need not have ended, and not all streams wait for them. */
    OK(cuCtxSynchronize());
    return ptr;
}

static CUresult launch(CUdeviceptr to, CUdeviceptr from, unsigned stride, unsigned count)
{
    void *params[] = {&to, &from, &stride, &count};

    return cuLaunchKernel(gather, (count + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}

static void kernels(void)
{
    CUdeviceptr from;
    CUdeviceptr to;
    unsigned host[COUNT];
    unsigned i;
    CUfunction none;
    CUmodule bad;
    void *pinned;

    begin();
    from = numbers(3 * COUNT);
    OK(cuMemAlloc_v2(&to, sizeof(host)));
    OK(launch(to, from, 3, COUNT));
    OK(cuMemcpyDtoH_v2(host, to, sizeof(host)));
    for (i = 0; i < COUNT; i++) {
        CHECK(3 * i == host[i]);
    }
    /* From layout to pinned system memory. */
    OK(cuMemHostAlloc(&pinned, sizeof(host), 0));
    OK(launch((uintptr_t) pinned, from, 2, COUNT));
    OK(cuStreamSynchronize(NULL));
    CHECK(2 * (COUNT - 1) == ((unsigned *) pinned)[COUNT - 1]);

    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&none, module, "nothing"));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&bad, "some text that is no code"));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(gather, 0, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(gather, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL));
    OK(cuModuleUnload(module));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, launch(to, from, 3, COUNT));
}

/* Every block once, in any order. */
static void all_blocks(void)
{
    unsigned char host[7 * 5 * 3 + 1];
    CUdeviceptr ptr;
    size_t i;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &ptr, CU_LAUNCH_PARAM_BUFFER_SIZE, &i,
                     CU_LAUNCH_PARAM_END};

    begin();
    OK(cuMemAlloc_v2(&ptr, sizeof(host)));
    OK(cuMemsetD8_v2(ptr, 0, sizeof(host)));
    i = sizeof(ptr);
    OK(cuLaunchKernel(touch, 7, 5, 3, 4, 2, 2, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH_v2(host, ptr, sizeof(host)));
    for (i = 0; i < 7 * 5 * 3; i++) {
        CHECK(1 == host[i]);
    }
    CHECK(0 == host[7 * 5 * 3]);
}

/* A kernel that oversteps ends, and so does the use of the context. */
static void overstep(void)
{
    CUdeviceptr from;
    CUdeviceptr to;

    begin();
    from = numbers(10);
    OK(cuMemAlloc_v2(&to, 40));
    OK(launch(to, from, 1, 11));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&to, 40));
    /* Another device goes on. */
    OK(cuDevicePrimaryCtxRetain(&ctx, 1));
    OK(cuCtxSetCurrent(ctx));
    OK(cuMemAlloc_v2(&to, 40));
}

static void misaligned(void)
{
    CUdeviceptr from;

    begin();
    from = numbers(10);
    OK(launch(from + 2, from, 1, 1));
    EXPECT(CUDA_ERROR_MISALIGNED_ADDRESS, cuCtxSynchronize());
}

static void pageable(void)
{
    unsigned host[10];
    CUdeviceptr from;

    begin();
    from = numbers(10);
    OK(launch((uintptr_t) host, from, 1, 10));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

/* Memory of another device: not before it is allowed. */
static void peer(int allowed)
{
    CUcontext other;
    CUdeviceptr from;
    CUdeviceptr there;

    begin();
    from = numbers(10);
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent_v2(other));
    OK(cuMemAlloc_v2(&there, 40));
    OK(cuCtxPopCurrent_v2(NULL));
    if (allowed) {
        OK(cuCtxEnablePeerAccess(other, 0));
    }
    OK(launch(there, from, 1, 10));
    EXPECT(allowed ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

static void peer_allowed(void)
{
    peer(1);
}

static void peer_refused(void)
{
    peer(0);
}

/* A flag that a stream writes and another waits for, in system memory. */
static void values(void)
{
    CUstream first;
    CUstream second;
    unsigned *flag;
    void *memory;
    unsigned char host[8];
    CUdeviceptr ptr;

    begin();
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(&memory, 64, 0));
    flag = memory;
    memset(memory, 0, 64);
    OK(cuMemAlloc_v2(&ptr, 8));
    OK(cuMemsetD8_v2(ptr, 1, 8));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32_v2(second, (uintptr_t) &flag[1], 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuMemsetD8Async(ptr, 2, 8, second));
    OK(cuStreamWriteValue64_v2(second, (uintptr_t) &flag[2], 0x100000002ull, 0));
    OK(cuStreamWaitValue32_v2(first, (uintptr_t) &flag[0], 7, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32_v2(first, (uintptr_t) &flag[1], 6, 0));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(first));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
    __atomic_store_n(&flag[0], 7, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(second));
    CHECK(6 == flag[1] && 2 == flag[2] && 1 == flag[3]);
    OK(cuMemcpyDtoH_v2(host, ptr, 8));
    CHECK(2 == host[7]);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(first, (uintptr_t) host, 1, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64_v2(first, (uintptr_t) &flag[1], 1, 0));
}

/* By hand: copy, then kernel, then a flag; launched often, with other parameters. */
static void graphs(void)
{
    CUDA_MEMCPY3D copy;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops;
    CUstreamBatchMemOpParams op;
    CUgraphNode nodes[3];
    CUgraphNode all[3];
    CUgraphExec exec;
    CUgraph graph;
    CUgraphNodeType type;
    CUdeviceptr from;
    CUdeviceptr middle;
    CUdeviceptr to;
    CUstream stream;
    unsigned stride = 2;
    unsigned count = 10;
    void *params[] = {&to, &middle, &stride, &count};
    unsigned host[10];
    unsigned *flag;
    void *memory;
    size_t n = 3;
    unsigned i;

    begin();
    from = numbers(40);
    OK(cuMemAlloc_v2(&middle, 160));
    OK(cuMemAlloc_v2(&to, 40));
    OK(cuMemHostAlloc(&memory, 64, 0));
    flag = memory;
    *flag = 0;
    OK(cuGraphCreate(&graph, 0));
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = middle;
    copy.WidthInBytes = 160;
    copy.Height = 1;
    copy.Depth = 1;
    OK(cuGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &copy, ctx));
    memset(&kernel, 0, sizeof(kernel));
    kernel.func = gather;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = 32;
    kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    OK(cuGraphAddKernelNode_v2(&nodes[1], graph, &nodes[0], 1, &kernel));
    memset(&op, 0, sizeof(op));
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = (uintptr_t) flag;
    op.writeValue.value = 77;
    memset(&ops, 0, sizeof(ops));
    ops.ctx = ctx;
    ops.count = 1;
    ops.paramArray = &op;
    OK(cuGraphAddBatchMemOpNode(&nodes[2], graph, &nodes[1], 1, &ops));
    OK(cuGraphGetNodes(graph, all, &n));
    CHECK(3 == n && all[1] == nodes[1]);
    OK(cuGraphNodeGetType(nodes[1], &type));
    CHECK(CU_GRAPH_NODE_TYPE_KERNEL == (int) type);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (stride = 1; stride < 4; stride++) {
        *flag = 0;
        OK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &kernel));
        OK(cuGraphLaunch(exec, stream));
        while (77 != __atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
            usleep(100);
        }
        OK(cuMemcpyDtoH_v2(host, to, 40));
        for (i = 0; i < 10; i++) {
            CHECK(stride * i == host[i]);
        }
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &kernel));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
}

static void capture(void)
{
    CUstreamCaptureStatus status;
    CUgraphExec exec;
    CUgraph graph;
    CUstream stream;
    CUdeviceptr ptr;
    CUdeviceptr other;
    unsigned char host[100];
    size_t n = 0;

    begin();
    OK(cuMemAlloc_v2(&ptr, 100));
    OK(cuMemAlloc_v2(&other, 100));
    OK(cuMemsetD8_v2(ptr, 1, 100));
    OK(cuMemsetD8_v2(other, 1, 100));
    OK(cuCtxSynchronize());
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(ptr, 5, 100, stream));
    OK(cuMemcpyDtoDAsync_v2(other, ptr, 100, stream));
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(CU_STREAM_CAPTURE_STATUS_ACTIVE == (int) status);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, NULL, &n));
    CHECK(2 == n);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(host, other, 100));
    CHECK(1 == host[99]);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(host, other, 100));
    CHECK(5 == host[99]);
    /* Waiting for captured work invalidates the capture. */
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuStreamSynchronize(stream));
}

/* While a stream captures, some calls are forbidden, and void the capture: to threads that have not
 * said that they know, and the default stream to all. (All as a driver 580 does;
 * of cuMemRetainAllocationHandle that is concluded from failures of Open MPI's lookups there.) */
static void capture_modes(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUmemGenericAllocationHandle handle;
    CUstreamCaptureStatus status;
    CUstream stream, other;
    CUdeviceptr ptr;
    unsigned on = 1;
    CUevent event;
    CUgraph graph;

    begin();
    OK(cuMemAlloc_v2(&ptr, 100));
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           cuMemRetainAllocationHandle(&handle, (void *) (uintptr_t) ptr));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(CU_STREAM_CAPTURE_MODE_GLOBAL == (int) mode);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemRetainAllocationHandle(&handle, (void *) (uintptr_t) ptr));
    OK(cuEventRecord(event, other));
    OK(cuEventSynchronize(event));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CU_STREAM_LEGACY, &status));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8_v2(ptr, 1, 100));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
}

static void fault_in_time(void)
{
    CUdeviceptr from;

    begin();
    from = numbers(10);
    OK(launch(from, from, 1, 1));
    OK(cuCtxSynchronize());
    OK(launch(from, from, 1, 1));
    EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
}

static int parts(void)
{
    test_part("kernels", kernels);
    test_part("all blocks", all_blocks);
    test_part("overstep", overstep);
    test_part("misaligned", misaligned);
    test_part("pageable", pageable);
    test_part("peer allowed", peer_allowed);
    test_part("peer refused", peer_refused);
    test_part("values", values);
    test_part("graphs", graphs);
    test_part("capture", capture);
    test_part("capture modes", capture_modes);
    return 0;
}

/* Work whose counts test_counters.sh expects. */
static int counted(void)
{
    CUDA_MEMCPY2D copy;
    CUdeviceptr from;
    CUdeviceptr to;
    unsigned type;

    begin();
    OK(cuMemAlloc_v2(&from, 4000));
    OK(cuMemAlloc_v2(&to, 4000));
    OK(cuMemsetD8_v2(from, 1, 4000));
    OK(launch(to, from, 1, COUNT));
    OK(launch(to, from, 1, COUNT));
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.srcPitch = 100;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.dstPitch = 50;
    copy.WidthInBytes = 8;
    copy.Height = 40;
    OK(cuMemcpy2DAsync_v2(&copy, NULL));
    OK(cuMemcpyDtoDAsync_v2(to, from, 4000, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, to));
    OK(cuMemFree_v2(from));
    return 0;
}

/* Of PTX the driver has the entries, and its devices are what an option makes them: 7.5. */
static int ptx(void)
{
    static const char text[] = "// a comment with .version\n \n.version 6.3\n.target sm_75\n"
                               ".visible .entry\tgather(\n.param .u64 a)\n{\n}\n"
                               ".visible .entry gatherer(.param .u64 a) { }\n";
    static const char later[] = ".version 7.0\n.target sm_80\n.visible .entry touch() { }\n";
    CUfunction function;
    CUmodule other;
    int major, minor;

    (void) test_begin(0);
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, "gather"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "touch"));
    /* An entry that is not among the kernels for the host, and a part of a name. */
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "gatherer"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "gat"));
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&other, later));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&other, "// .version 6.3\n.target sm_75\n"));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&other, "text\n.version 6.3\n"));
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    CHECK(7 == major && 5 == minor);
    OK(cuModuleUnload(module));
    return 0;
}

static int no_kernels(void)
{
    (void) test_begin(0);
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, image));
    return 0;
}

int main(int argc, char **argv)
{
    const char *build = getenv("TEST_CUDA_KERNELS");
    char options[PATH_MAX + 64];

    build = NULL == build ? ".libs/host_kernels.so" : build;
    if (1 < argc) {
        if (0 == strcmp(argv[1], "fault")) {
            fault_in_time();
            return 0;
        }
        if (0 == strcmp(argv[1], "counted")) {
            return counted();
        }
        if (0 == strcmp(argv[1], "ptx")) {
            return ptx();
        }
        return 0 == strcmp(argv[1], "none") ? no_kernels() : parts();
    }
    snprintf(options, sizeof(options), "kernels=%s", build);
    test_again(argv, "parts", options);
    snprintf(options, sizeof(options), "kernels=%s,delay=1000,seed=9", build);
    test_again(argv, "parts", options);
    snprintf(options, sizeof(options), "kernels=%s,fail=kernel:2:719", build);
    test_again(argv, "fault", options);
    snprintf(options, sizeof(options), "kernels=%s,capability=75", build);
    test_again(argv, "ptx", options);
    test_again(argv, "none", "kernels=/nonexistent.so");
    return 0;
}
