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
 * Of bench_kernels: how long one operation takes until the host sees its end, and how fast large
 * ones are from GPU to GPU.
 */

#include "bench_kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench_util.h"

static void rows(bench_t *on, void *what, unsigned turn)
{
    (void) turn;
    REAL_OK(&on->gpu[on->worker], cuMemcpy2DAsync_v2(what, on->stream));
}

/* ---------------------------------------------------------------------------------------------
 * What it costs to say that a copy is over
 * ------------------------------------------------------------------------------------------- */

static void nothing(bench_t *on, void *what, unsigned turn)
{
    (void) on;
    (void) what;
    (void) turn;
}

static void kernel(bench_t *on, void *what, unsigned turn)
{
    (void) turn;
    real_launch(&on->gpu[on->worker], what, on->stream);
}

static void flat_copy(bench_t *on, void *what, unsigned turn)
{
    (void) turn;
    REAL_OK(&on->gpu[on->worker],
            cuMemcpyDtoDAsync_v2(on->target, on->source, *(const uint64_t *) what, on->stream));
}

static void graph(bench_t *on, void *what, unsigned turn)
{
    (void) turn;
    REAL_OK(&on->gpu[on->worker], cuGraphLaunch(what, on->stream));
}

/* The kernel, then something that the host waits for. */
static double wait_otherwise(const opal_umrddt_gpu_plan_t *plan, int how)
{
    const real_gpu_t *gpu = &bench_state.gpu[bench_state.worker];
    const CUevent event = bench_state.events[bench_state.worker][0];
    double times[200], start;
    int i, k;

    for (i = -20; i < 200; ++i) {
        start = bench_now();
        real_launch(gpu, plan, bench_state.stream);
        if (0 == how) {
            REAL_OK(gpu, cuStreamSynchronize(bench_state.stream));
        } else {
            REAL_OK(gpu, cuEventRecord(event, bench_state.stream));
            while (CUDA_SUCCESS != gpu->driver->cuEventQuery(event)) {
            }
        }
        if (0 <= i) {
            times[i] = (bench_now() - start) * 1e6;
        }
    }
    for (i = 0; i < 200; ++i) {
        for (k = i; k > 0 && times[k] < times[k - 1]; --k) {
            const double swapped = times[k];

            times[k] = times[k - 1];
            times[k - 1] = swapped;
        }
    }
    return times[100];
}

static void graph_latency(const char *what, opal_umrddt_gpu_plan_t *plan, uint64_t size)
{
    const real_gpu_t *gpu = &bench_state.gpu[bench_state.worker];
    void *params[] = {&plan->args};
    CUDA_KERNEL_NODE_PARAMS node_params;
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph made;

    memset(&node_params, 0, sizeof(node_params));
    node_params.func = gpu->kernels[plan->kernel];
    node_params.gridDimX = plan->grid[0];
    node_params.gridDimY = plan->grid[1];
    node_params.gridDimZ = plan->grid[2];
    node_params.blockDimX = plan->block[0];
    node_params.blockDimY = plan->block[1];
    node_params.blockDimZ = plan->block[2];
    node_params.kernelParams = params;
    REAL_OK(gpu, cuGraphCreate(&made, 0));
    REAL_OK(gpu, cuGraphAddKernelNode_v2(&node, made, NULL, 0, &node_params));
    REAL_OK(gpu, cuGraphInstantiateWithFlags(&exec, made, 0));
    bench_line("latency", what, "graph, write flag", bench_latency(&bench_state, graph, exec), size,
               0, NULL);
    REAL_OK(gpu, cuGraphExecDestroy(exec));
    REAL_OK(gpu, cuGraphDestroy(made));
}

/* The same rows as a node of a graph. */
static void rows_graph_latency(const char *what, const CUDA_MEMCPY2D *copy, uint64_t size)
{
    const real_gpu_t *gpu = &bench_state.gpu[bench_state.worker];
    CUDA_MEMCPY3D params;
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph made;

    memset(&params, 0, sizeof(params));
    params.srcMemoryType = copy->srcMemoryType;
    params.srcDevice = copy->srcDevice;
    params.srcPitch = copy->srcPitch;
    params.dstMemoryType = copy->dstMemoryType;
    params.dstDevice = copy->dstDevice;
    params.dstPitch = copy->dstPitch;
    params.WidthInBytes = copy->WidthInBytes;
    params.Height = copy->Height;
    params.Depth = 1;
    REAL_OK(gpu, cuGraphCreate(&made, 0));
    if (CUDA_SUCCESS == gpu->driver->cuGraphAddMemcpyNode(&node, made, NULL, 0, &params, gpu->ctx)
        && CUDA_SUCCESS == gpu->driver->cuGraphInstantiateWithFlags(&exec, made, 0)) {
        bench_line("latency", what, "graph of cuMemcpy2D, write flag",
                   bench_latency(&bench_state, graph, exec), size, 0, NULL);
        REAL_OK(gpu, cuGraphExecDestroy(exec));
    }
    REAL_OK(gpu, cuGraphDestroy(made));
}

static void latency_of(const opal_iov_cache_form_t *form, uint64_t block, const char *where)
{
    opal_umrddt_gpu_plan_t plan;
    CUDA_MEMCPY2D copy;
    uint64_t size = form->size;
    char what[80];

    snprintf(what, sizeof(what), "vector %" PRIu64 " x %" PRIu64 " %s", block, size / block, where);
    if (0 > bench_one_copy(form, OPAL_UMRDDT_GPU_AUTO, form, OPAL_UMRDDT_GPU_AUTO, 1, &plan)) {
        return;
    }
    bench_line("latency", what, "kernel, write flag", bench_latency(&bench_state, kernel, &plan),
               size, 0, &plan);
    bench_line("latency", what, "kernel, event query", wait_otherwise(&plan, 1), size, 0, NULL);
    bench_line("latency", what, "kernel, stream synchronize", wait_otherwise(&plan, 0), size, 0,
               NULL);
    graph_latency(what, &plan, size);
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = bench_state.source;
    copy.dstDevice = bench_state.target;
    copy.srcPitch = 2 * block;
    copy.dstPitch = 2 * block;
    copy.WidthInBytes = block;
    copy.Height = size / block;
    bench_line("latency", what, "cuMemcpy2D, write flag", bench_latency(&bench_state, rows, &copy),
               size, 0, NULL);
    rows_graph_latency(what, &copy, size);
    bench_line("latency", what, "cuMemcpy, write flag",
               bench_latency(&bench_state, flat_copy, &size), size, 0, NULL);
}

void bench_part_latency(void)
{
    static const uint64_t cases[][2] = {{8, 1},        {1024, 16},    {1024, 128},  {4096, 16},
                                        {4096, 128},   {4096, 512},   {4096, 4096}, {8, 16384},
                                        {8, 262144},   {65536, 16},   {65536, 64},  {65536, 256},
                                        {1 << 20, 16}, {4096, 1},     {65536, 1},   {1 << 20, 1},
                                        {4 << 20, 1},  {16 << 20, 1}, {64 << 20, 1}};
    /* Of two GPUs: the first alone, the second that reads of the first, the first that writes to
     * the second. */
    static const struct {
        const char *where;
        int worker;
        int target;
    } turns[] = {{"one GPU", 0, 0}, {"peer, read", 1, 1}, {"peer, written", 0, 1}};
    const int worker = bench_state.worker;
    size_t i, k;

    for (k = 0; k < sizeof(turns) / sizeof(turns[0]); ++k) {
        if (turns[k].target >= bench_state.gpus) {
            continue;
        }
        bench_worker(&bench_state, turns[k].worker);
        bench_state.target = bench_state.targets[turns[k].target];
        bench_line("latency", "nothing", "write flag", bench_latency(&bench_state, nothing, NULL),
                   0, 0, NULL);
        for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
            opal_iov_cache_form_t *form = bench_vector(cases[i][0], 2 * cases[i][0], cases[i][1]);

            latency_of(form, cases[i][0], turns[k].where);
            opal_iov_cache_form_free(form);
        }
    }
    bench_worker(&bench_state, worker);
}

/* Of rows, with the driver's copy; both ends have the same pitch. */
static void large_rows(const char *where, const char *what, uint64_t block, double bare)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = bench_state.source;
    copy.dstDevice = bench_state.target;
    copy.srcPitch = 2 * block;
    copy.dstPitch = 2 * block;
    copy.WidthInBytes = block;
    copy.Height = bench_message / block;
    bench_line("large", where, what, bench_rounds(&bench_state, rows, &copy), bench_message, bare,
               NULL);
}

/* From GPU to GPU, against the driver's copy of as many bytes: by the one that reads, and by the
 * one that writes. */
void bench_part_large(void)
{
    static const uint64_t some[] = {512, 1024, 4096, 65536};
    const int worker = bench_state.worker;
    int reads, kind;
    double bare;
    size_t i;

    if (2 > bench_state.gpus) {
        return;
    }
    bench_worker(&bench_state, 1);
    bare = bench_driver_copy(&bench_state, bench_message);
    bench_line("large", "peer", "driver copy", bare, bench_message, bare, NULL);
    for (reads = 1; 0 <= reads; --reads) {
        const char *where = reads ? "peer, read" : "peer, written";

        bench_worker(&bench_state, reads);
        bench_state.target = bench_state.targets[1];
        for (i = 0; i < sizeof(some) / sizeof(some[0]); ++i) {
            const uint64_t block = some[i];

            for (kind = 0; kind < 2; ++kind) {
                opal_iov_cache_form_t *form =
                    0 == kind ? bench_vector(block, 2 * block, bench_message / block)
                              : bench_scattered(block, bench_message / block, true);
                opal_umrddt_gpu_plan_t plan;
                char what[80];

                snprintf(what, sizeof(what), "%s %" PRIu64, 0 == kind ? "vector" : "indexed_block",
                         block);
                bench_line("large", where, what,
                           bench_one_copy(form, OPAL_UMRDDT_GPU_AUTO, form, OPAL_UMRDDT_GPU_AUTO, 2,
                                          &plan),
                           bench_message, bare, &plan);
                opal_iov_cache_form_free(form);
            }
            if (4096 <= block) {
                large_rows(where, "cuMemcpy2D", block, bare);
            }
        }
    }
    bench_worker(&bench_state, worker);
}
