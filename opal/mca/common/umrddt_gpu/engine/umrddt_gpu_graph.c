/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Graphs of one kernel: a repeated launch is cheaper as a CUDA graph. A cached launch has at most
 * one graph, created after a few repetitions. Graphs are never updated: if a launch is removed or
 * changed, its graph is freed.
 *
 * A graph is launched without the lock, by one thread at a time; others launch the kernel in the
 * meantime. Its state determines which thread frees it if the launch is removed concurrently.
 */

#include "umrddt_gpu_engine_private.h"

#include <string.h>

/* Number of equal launches before a graph is created. */
#define AFTER 4
/*
 * A graph is replaced by another only if it was unused during this many launches. Otherwise
 * launches that exceed the limit of graphs would evict each other constantly.
 */
#define IDLE 4096

static int state_of(const opal_umrddt_gpu_graph_t *graph)
{
    return __atomic_load_n(&graph->state, __ATOMIC_ACQUIRE);
}

/* With the lock. @param[in] alive  the context exists */
static void destroy(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_graph_t *graph, bool alive)
{
    if (alive) {
        (void) engine->driver->cuGraphExecDestroy(graph->exec);
    }
    graph->exec = NULL;
    graph->again = 0;
    --engine->graphs;
    COUNT(graphs_now, UINT64_MAX);
    __atomic_store_n(&graph->state, GRAPH_NONE, __ATOMIC_RELEASE);
}

static opal_umrddt_gpu_graph_t *graph_of(opal_umrddt_gpu_engine_t *engine,
                                         const opal_umrddt_gpu_launch_t *launch)
{
    return &engine->graph[launch - engine->launch];
}

/* Create the driver's graph. */
static CUresult instantiate(opal_umrddt_gpu_engine_t *engine,
                            const opal_umrddt_gpu_launch_t *launch, CUgraphExec *exec)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    void *params[] = {(void *) &launch->args};
    CUDA_KERNEL_NODE_PARAMS node;
    CUgraphNode kernel;
    CUgraph graph;
    CUresult rc;

    memset(&node, 0, sizeof(node));
    node.func = launch->function;
    node.gridDimX = launch->grid[0];
    node.gridDimY = launch->grid[1];
    node.gridDimZ = launch->grid[2];
    node.blockDimX = launch->block[0];
    node.blockDimY = launch->block[1];
    node.blockDimZ = launch->block[2];
    node.kernelParams = params;
    rc = driver->cuGraphCreate(&graph, 0);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    rc = driver->cuGraphAddKernelNode_v2(&kernel, graph, NULL, 0, &node);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuGraphInstantiateWithFlags(exec, graph, 0);
    }
    (void) driver->cuGraphDestroy(graph);
    return rc;
}

/* True if there is room for one more graph; evicts one that was unused for long. */
static bool have_room(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_graph_t *oldest = NULL;
    int i;

    if (opal_umrddt_gpu_engine_set.graphs > engine->graphs) {
        return true;
    }
    for (i = 0; i < LAUNCHES; ++i) {
        opal_umrddt_gpu_graph_t *graph = &engine->graph[i];

        if (GRAPH_READY == state_of(graph) && (NULL == oldest || oldest->used > graph->used)) {
            oldest = graph;
        }
    }
    if (NULL == oldest || engine->launched < oldest->used + IDLE) {
        return false;
    }
    destroy(engine, oldest, true);
    return opal_umrddt_gpu_engine_set.graphs > engine->graphs;
}

/* Count a repetition of a launch without a graph, and create one when due. */
static void consider(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_launch_t *launch,
                     opal_umrddt_gpu_graph_t *graph)
{
    if (0 == opal_umrddt_gpu_engine_set.graphs || engine->no_graphs || AFTER > ++graph->again) {
        return;
    }
    graph->again = 0;
    if (!have_room(engine)) {
        return;
    }
    if (CUDA_SUCCESS != instantiate(engine, launch, &graph->exec)) {
        graph->exec = NULL;
        engine->no_graphs = true;
        return;
    }
    ++engine->graphs;
    COUNT(graphs_made, 1);
    COUNT(graphs_now, 1);
    __atomic_store_n(&graph->state, GRAPH_READY, __ATOMIC_RELEASE);
}

opal_umrddt_gpu_graph_t *opal_umrddt_gpu_graph_take(opal_umrddt_gpu_engine_t *engine,
                                                    const opal_umrddt_gpu_launch_t *launch)
{
    opal_umrddt_gpu_graph_t *graph = graph_of(engine, launch);

    ++engine->launched;
    if (OPAL_UNLIKELY(GRAPH_NONE == state_of(graph))) {
        consider(engine, launch, graph);
    }
    if (GRAPH_READY != state_of(graph)) {
        return NULL;
    }
    graph->used = engine->launched;
    __atomic_store_n(&graph->state, GRAPH_BUSY, __ATOMIC_RELEASE);
    return graph;
}

CUresult opal_umrddt_gpu_graph_go(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_graph_t *graph,
                                  CUstream stream)
{
    const CUresult rc = engine->driver->cuGraphLaunch(graph->exec, stream);
    int busy = GRAPH_BUSY;

    if (OPAL_LIKELY(CUDA_SUCCESS == rc)) {
        COUNT(graph_launches, 1);
        if (OPAL_LIKELY(__atomic_compare_exchange_n(&graph->state, &busy, GRAPH_READY, false,
                                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))) {
            return rc;
        }
    }
    OPAL_THREAD_LOCK(&engine->lock);
    if (CUDA_SUCCESS != rc) {
        /* A driver that cannot do this will refuse the next one too. */
        engine->no_graphs = true;
    }
    destroy(engine, graph, true);
    OPAL_THREAD_UNLOCK(&engine->lock);
    return rc;
}

void opal_umrddt_gpu_graph_forget(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_launch_t *launch)
{
    opal_umrddt_gpu_graph_t *graph = graph_of(engine, launch);
    int busy = GRAPH_BUSY;

    graph->again = 0;
    if (__atomic_compare_exchange_n(&graph->state, &busy, GRAPH_DOOMED, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return;
    }
    if (GRAPH_READY == busy) {
        destroy(engine, graph, true);
    }
}

void opal_umrddt_gpu_graphs_free(opal_umrddt_gpu_engine_t *engine, bool alive)
{
    int i;

    for (i = 0; i < LAUNCHES; ++i) {
        if (GRAPH_NONE != state_of(&engine->graph[i])) {
            destroy(engine, &engine->graph[i], alive);
        }
    }
}
