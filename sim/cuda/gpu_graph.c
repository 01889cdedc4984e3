/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Graphs: made node by node or by capturing a stream. Nodes without a dependency run in an order
 * that changes with the seed.
 */

#include "gpu.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_copy.h"
#include "gpu_kernel.h"
#include "gpu_memop.h"

/* Graphs with more nodes are done in the order in which these were made. */
#define SHUFFLE_MAX 256

struct CUgraphNode_st {
    CUgraph graph;
    size_t index;
    struct gpu_work *work;
    size_t before_count;
    size_t *before; /* by index */
};

struct CUgraph_st {
    size_t count;
    CUgraphNode *nodes;
    struct CUgraph_st *next;
};

/* A node as it was when the graph was instantiated. */
struct ready_node {
    CUgraphNode origin;
    struct gpu_work *work;
    size_t before_count;
    size_t *before;
};

struct CUgraphExec_st {
    size_t count;
    struct ready_node *nodes;
    CUstream last; /* where it was launched last, and */
    uint64_t number;
    struct CUgraphExec_st *next;
};

struct graph_work {
    struct gpu_work head;
    size_t count;
    struct ready_node *nodes;
};

static CUgraph graphs;
static CUgraphExec execs;

static bool is_graph(CUgraph graph)
{
    CUgraph g;

    for (g = graphs; NULL != g && g != graph; g = g->next) {
    }
    return NULL != g;
}

static bool is_exec(CUgraphExec exec)
{
    CUgraphExec e;

    for (e = execs; NULL != e && e != exec; e = e->next) {
    }
    return NULL != e;
}

static bool is_node(CUgraph graph, CUgraphNode node)
{
    size_t i;

    for (i = 0; i < graph->count && graph->nodes[i] != node; i++) {
    }
    return i < graph->count;
}

static CUgraph new_graph(void)
{
    CUgraph graph = calloc(1, sizeof(*graph));

    if (NULL != graph) {
        graph->next = graphs;
        graphs = graph;
    }
    return graph;
}

static void free_graph(CUgraph graph)
{
    CUgraph *p;
    size_t i;

    for (p = &graphs; *p != graph; p = &(*p)->next) {
    }
    *p = graph->next;
    for (i = 0; i < graph->count; i++) {
        gpu_work_drop(graph->nodes[i]->work);
        free(graph->nodes[i]->before);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph);
}

/* Takes over the reference of the work, which may be NULL: there was no memory. */
static CUresult add(CUgraph graph, struct gpu_work *work, const CUgraphNode *before, size_t count,
                    CUgraphNode *node)
{
    CUgraphNode *nodes;
    CUgraphNode n;
    size_t i;

    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n = calloc(1, sizeof(*n));
    nodes = realloc(graph->nodes, (graph->count + 1) * sizeof(graph->nodes[0]));
    if (NULL != nodes) {
        graph->nodes = nodes;
    }
    if (NULL != n) {
        n->before = calloc(count + 1, sizeof(n->before[0]));
    }
    if (NULL == n || NULL == nodes || NULL == n->before) {
        free(n);
        gpu_work_drop(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n->graph = graph;
    n->index = graph->count;
    n->work = work;
    n->before_count = count;
    for (i = 0; i < count; i++) {
        n->before[i] = before[i]->index;
    }
    graph->nodes[graph->count++] = n;
    *node = n;
    return CUDA_SUCCESS;
}

static CUresult check(CUgraph graph, const CUgraphNode *before, size_t count, CUgraphNode *node)
{
    size_t i;

    if (!is_graph(graph) || NULL == node || (0 < count && NULL == before)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count; i++) {
        if (!is_node(graph, before[i])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

/* ---- capture ---- */

CUresult gpu_capture_add(CUstream stream, struct gpu_work *work)
{
    return add(stream->capture, work, &stream->captured, NULL == stream->captured ? 0 : 1,
               &stream->captured);
}

void gpu_capture_end(CUstream stream)
{
    if (NULL != stream->capture) {
        free_graph(stream->capture);
        stream->capture = NULL;
    }
}

static bool is_me(pthread_t thread)
{
    return 0 != pthread_equal(thread, pthread_self());
}

/* The calls that this thread may make while streams capture. */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool forbids(CUstream stream)
{
    if (NULL == stream->capture || CU_STREAM_CAPTURE_MODE_RELAXED == thread_mode) {
        return false;
    }
    if (is_me(stream->capturer)) {
        return CU_STREAM_CAPTURE_MODE_RELAXED != stream->capture_mode;
    }
    return CU_STREAM_CAPTURE_MODE_GLOBAL == thread_mode
           && CU_STREAM_CAPTURE_MODE_GLOBAL == stream->capture_mode;
}

CUresult gpu_capture_unsafe(void)
{
    CUresult rc = CUDA_SUCCESS;
    CUcontext c;
    CUstream s;

    for (c = gpu_ctx_next(NULL); NULL != c; c = gpu_ctx_next(c)) {
        for (s = c->streams; NULL != s; s = s->next) {
            if (forbids(s)) {
                s->capture_broken = true;
                rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
        }
    }
    return rc;
}

CUresult gpu_capture_implicit(CUcontext ctx, bool breaks)
{
    CUresult rc = CUDA_SUCCESS;
    CUstream s;

    for (s = ctx->streams; NULL != s; s = s->next) {
        if (NULL != s->capture && 0 == (s->flags & CU_STREAM_NON_BLOCKING)) {
            s->capture_broken = s->capture_broken || breaks;
            rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return rc;
}

GPU_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before;

    GPU_BEGIN(cuThreadExchangeStreamCaptureMode);
    if (NULL == mode || 2 < (int) *mode) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuStreamBeginCapture_v2, &ctx);
    rc = 2 < (int) mode ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    if (stream == stream->ctx->legacy) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (NULL != stream->capture) {
        return gpu_end(CUDA_ERROR_ILLEGAL_STATE);
    }
    stream->capture = new_graph();
    stream->captured = NULL;
    stream->capture_broken = false;
    stream->capture_mode = mode;
    stream->capturer = pthread_self();
    return gpu_end(NULL == stream->capture ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuStreamEndCapture, &ctx);
    rc = NULL == graph ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    if (NULL == stream->capture) {
        return gpu_end(CUDA_ERROR_ILLEGAL_STATE);
    }
    if (stream->capture_broken) {
        gpu_capture_end(stream);
        *graph = NULL;
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    *graph = stream->capture;
    stream->capture = NULL;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuStreamIsCapturing, &ctx);
    rc = NULL == status ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc && stream == stream->ctx->legacy) {
        rc = gpu_capture_implicit(stream->ctx, false);
    }
    if (CUDA_SUCCESS == rc) {
        *status = NULL == stream->capture  ? CU_STREAM_CAPTURE_STATUS_NONE
                  : stream->capture_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    }
    return gpu_end(rc);
}

/* ---- graphs and nodes ---- */

GPU_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    GPU_BEGIN(cuGraphCreate);
    if (NULL == graph || 0 != flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *graph = new_graph();
    return gpu_end(NULL == *graph ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    GPU_BEGIN(cuGraphDestroy);
    if (!is_graph(graph)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    free_graph(graph);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
                                            const CUgraphNode *before, size_t count,
                                            const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct gpu_work *work;
    CUresult rc;

    GPU_BEGIN(cuGraphAddKernelNode_v2);
    rc = check(graph, before, count, node);
    if (CUDA_SUCCESS == rc) {
        rc = NULL == params ? CUDA_ERROR_INVALID_VALUE : gpu_launch_new(params, &work);
    }
    return gpu_end(CUDA_SUCCESS == rc ? add(graph, work, before, count, node) : rc);
}

static CUresult copy_work(const CUDA_MEMCPY3D *copy, CUcontext ctx, struct gpu_work **work)
{
    struct gpu_box box;
    CUresult rc = gpu_ctx_exists(ctx) ? gpu_box_3d(copy, &box) : CUDA_ERROR_INVALID_CONTEXT;

    if (CUDA_SUCCESS == rc && (0 == box.width || 0 == box.height || 0 == box.depth)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (CUDA_SUCCESS == rc) {
        rc = gpu_box_check(ctx, &box);
    }
    if (CUDA_SUCCESS == rc) {
        *work = gpu_copy_new(&box);
    }
    return rc;
}

GPU_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
                                         const CUgraphNode *before, size_t count,
                                         const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
    struct gpu_work *work;
    CUresult rc;

    GPU_BEGIN(cuGraphAddMemcpyNode);
    rc = check(graph, before, count, node);
    if (CUDA_SUCCESS == rc) {
        rc = copy_work(copy, ctx, &work);
    }
    return gpu_end(CUDA_SUCCESS == rc ? add(graph, work, before, count, node) : rc);
}

GPU_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
                                         const CUgraphNode *before, size_t count,
                                         const CUDA_MEMSET_NODE_PARAMS *set, CUcontext ctx)
{
    struct gpu_place place;
    struct gpu_set s;
    CUresult rc;

    GPU_BEGIN(cuGraphAddMemsetNode);
    rc = check(graph, before, count, node);
    if (CUDA_SUCCESS == rc && !gpu_ctx_exists(ctx)) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (CUDA_SUCCESS == rc
        && (NULL == set || 0 == set->width || 0 == set->height
            || (1 != set->elementSize && 2 != set->elementSize && 4 != set->elementSize))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    s = (struct gpu_set){set->dst,         set->pitch, set->value,
                         set->elementSize, set->width, set->height};
    rc = gpu_set_check(&s, &place);
    return gpu_end(CUDA_SUCCESS == rc ? add(graph, gpu_set_new(&s), before, count, node) : rc);
}

GPU_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                        size_t count)
{
    CUresult rc;

    GPU_BEGIN(cuGraphAddEmptyNode);
    rc = check(graph, before, count, node);
    return gpu_end(CUDA_SUCCESS == rc ? add(graph, gpu_work_nothing(), before, count, node) : rc);
}

GPU_EXPORT CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph,
                                             const CUgraphNode *before, size_t count,
                                             const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    struct gpu_work *work;
    CUresult rc;

    GPU_BEGIN(cuGraphAddBatchMemOpNode);
    rc = check(graph, before, count, node);
    if (CUDA_SUCCESS == rc) {
        rc = NULL == params ? CUDA_ERROR_INVALID_VALUE
                            : gpu_mem_ops_new(params->count, params->paramArray, &work);
    }
    return gpu_end(CUDA_SUCCESS == rc ? add(graph, work, before, count, node) : rc);
}

GPU_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    size_t i;

    GPU_BEGIN(cuGraphGetNodes);
    if (!is_graph(graph) || NULL == count) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (i = 0; NULL != nodes && i < *count; i++) {
        nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
    }
    if (NULL == nodes || *count > graph->count) {
        *count = graph->count;
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    CUgraph g;

    GPU_BEGIN(cuGraphNodeGetType);
    for (g = graphs; NULL != g && !is_node(g, node); g = g->next) {
    }
    if (NULL == g || NULL == type) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *type = node->work->type;
    return gpu_end(CUDA_SUCCESS);
}

/* ---- graphs that can be launched ---- */

static void drop_nodes(struct ready_node *nodes, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        gpu_work_drop(nodes[i].work);
        free(nodes[i].before);
    }
    free(nodes);
}

static bool copy_node(struct ready_node *to, CUgraphNode origin, struct gpu_work *work,
                      const size_t *before, size_t count)
{
    to->before = calloc(count + 1, sizeof(to->before[0]));
    if (NULL == to->before) {
        return false;
    }
    memcpy(to->before, before, count * sizeof(to->before[0]));
    to->before_count = count;
    to->origin = origin;
    to->work = work;
    work->refs++;
    return true;
}

GPU_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                                unsigned long long flags)
{
    CUgraphExec e;

    GPU_BEGIN(cuGraphInstantiateWithFlags);
    if (NULL == exec || !is_graph(graph) || 15 < flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    e = calloc(1, sizeof(*e));
    if (NULL == e) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    e->nodes = calloc(graph->count + 1, sizeof(e->nodes[0]));
    while (NULL != e->nodes && e->count < graph->count) {
        CUgraphNode n = graph->nodes[e->count];

        if (!copy_node(&e->nodes[e->count], n, n->work, n->before, n->before_count)) {
            break;
        }
        e->count++;
    }
    if (NULL == e->nodes || e->count < graph->count) {
        drop_nodes(e->nodes, e->count);
        free(e);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    e->next = execs;
    execs = e;
    *exec = e;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUgraphExec *p;

    GPU_BEGIN(cuGraphExecDestroy);
    if (!is_exec(exec)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (p = &execs; *p != exec; p = &(*p)->next) {
    }
    *p = exec->next;
    if (NULL != exec->last) {
        gpu_stream_drop(exec->last);
    }
    drop_nodes(exec->nodes, exec->count);
    free(exec);
    return gpu_end(CUDA_SUCCESS);
}

static bool may_run(const struct graph_work *graph, size_t i, const bool *done)
{
    size_t b;

    for (b = 0; b < graph->nodes[i].before_count; b++) {
        if (!done[graph->nodes[i].before[b]]) {
            return false;
        }
    }
    return !done[i];
}

/* Whichever may run, beginning anywhere. */
static CUresult run_shuffled(const struct graph_work *graph, CUcontext ctx)
{
    bool done[SHUFFLE_MAX] = {false};
    CUresult rc = CUDA_SUCCESS;
    size_t left;

    for (left = graph->count; 0 < left && CUDA_SUCCESS == rc; left--) {
        size_t i = gpu_random(graph->count);

        while (!may_run(graph, i, done)) {
            i = (i + 1) % graph->count;
        }
        rc = graph->nodes[i].work->run(graph->nodes[i].work, ctx);
        done[i] = true;
    }
    return rc;
}

static CUresult run(struct gpu_work *work, CUcontext ctx)
{
    struct graph_work *graph = (struct graph_work *) work;
    CUresult rc = CUDA_SUCCESS;
    size_t i;

    if (SHUFFLE_MAX >= graph->count) {
        return run_shuffled(graph, ctx);
    }
    for (i = 0; i < graph->count && CUDA_SUCCESS == rc; i++) {
        rc = graph->nodes[i].work->run(graph->nodes[i].work, ctx);
    }
    return rc;
}

static void drop(struct gpu_work *work)
{
    struct graph_work *graph = (struct graph_work *) work;

    drop_nodes(graph->nodes, graph->count);
}

GPU_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    CUstream stream;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuGraphUpload, &ctx);
    return gpu_end(!is_exec(exec) ? CUDA_ERROR_INVALID_VALUE
                                  : gpu_stream_get(ctx, handle, &stream));
}

GPU_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    struct graph_work *work;
    CUstream stream;
    CUcontext ctx;
    CUresult rc;
    size_t i;

    GPU_BEGIN_CTX(cuGraphLaunch, &ctx);
    rc = is_exec(exec) ? gpu_stream_get(ctx, handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    if (NULL != stream->capture) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    work = gpu_work_new(sizeof(*work), CU_GRAPH_NODE_TYPE_EMPTY, run, drop);
    if (NULL == work) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    /* As it is now: parameters that are set later are for later launches. */
    work->nodes = calloc(exec->count + 1, sizeof(work->nodes[0]));
    for (i = 0; NULL != work->nodes && i < exec->count; i++) {
        const struct ready_node *n = &exec->nodes[i];

        if (!copy_node(&work->nodes[i], n->origin, n->work, n->before, n->before_count)) {
            break;
        }
        work->count++;
    }
    if (NULL == work->nodes || work->count < exec->count) {
        gpu_work_drop(&work->head);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    gpu_count.graphs++;
    /* Two launches of one graph do not overlap, in any streams. */
    rc = gpu_submit_after(stream, &work->head, exec->last, exec->number);
    if (CUDA_SUCCESS == rc) {
        if (NULL != exec->last) {
            gpu_stream_drop(exec->last);
        }
        exec->last = stream;
        stream->refs++;
        exec->number = stream->submitted;
    }
    return gpu_end(rc);
}

static CUresult replace(CUgraphExec exec, CUgraphNode node, struct gpu_work *work)
{
    size_t i;

    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (i = 0; i < exec->count; i++) {
        if (exec->nodes[i].origin == node && exec->nodes[i].work->type == work->type) {
            gpu_work_drop(exec->nodes[i].work);
            exec->nodes[i].work = work;
            return CUDA_SUCCESS;
        }
    }
    gpu_work_drop(work);
    return CUDA_ERROR_INVALID_VALUE;
}

GPU_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct gpu_work *work;
    CUresult rc;

    GPU_BEGIN(cuGraphExecKernelNodeSetParams_v2);
    rc =
        !is_exec(exec) || NULL == params ? CUDA_ERROR_INVALID_VALUE : gpu_launch_new(params, &work);
    return gpu_end(CUDA_SUCCESS == rc ? replace(exec, node, work) : rc);
}

GPU_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
    struct gpu_work *work;
    CUresult rc;

    GPU_BEGIN(cuGraphExecMemcpyNodeSetParams);
    rc = is_exec(exec) ? copy_work(copy, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
    return gpu_end(CUDA_SUCCESS == rc ? replace(exec, node, work) : rc);
}
