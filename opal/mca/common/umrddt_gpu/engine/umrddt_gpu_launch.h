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
 * Private to this directory: copies by a kernel, their cache, and CUDA graphs of repeated ones.
 */

#ifndef OPAL_UMRDDT_GPU_LAUNCH_H
#define OPAL_UMRDDT_GPU_LAUNCH_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_args.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_batch.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

#include "umrddt_gpu_engine.h"
#include "umrddt_gpu_shape.h"

/* A cached launch for these layouts, addresses and range: as a kernel, as a part of a batch, or
 * both.
 */
typedef struct opal_umrddt_gpu_launch_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t address[2];
    uint64_t start;
    uint64_t end;                      /* 0: empty */
    opal_umrddt_gpu_shape_t *shape[2]; /* in the cache, with their lists there; else it is empty */
    CUfunction function;               /* NULL: not planned as a kernel */
    uint32_t grid[3];
    uint32_t block[3];
    umrddt_gpu_args_t args;
} opal_umrddt_gpu_launch_t;

/* State of a graph; changed with the lock, except from BUSY to READY. */
enum {
    GRAPH_NONE,
    GRAPH_READY,
    GRAPH_BUSY,  /* a thread launches it */
    GRAPH_DOOMED /* the launching thread frees it, since its launch was removed */
};

/* The same launch as a CUDA graph, if one exists. */
typedef struct opal_umrddt_gpu_graph_t {
    CUgraphExec exec;
    int state;
    unsigned again; /* launches without the graph */
    uint64_t used;  /* launch count of the engine at its last use */
} opal_umrddt_gpu_graph_t;

/*
 * Copy by one kernel. The copy takes the shapes.
 *
 * @param[in] keep  cache the launch
 *
 * @return OPAL_ERR_NOT_AVAILABLE: the driver refuses the kernel
 */
int opal_umrddt_gpu_launch(opal_umrddt_gpu_copy_t *copy,
                           const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                           uint64_t end, bool keep);

/*
 * Prepare both ends for a plan, including their lists. The copy takes the shapes.
 *
 * @param[in] may_travel  a short list may be part of the argument
 */
int opal_umrddt_gpu_launch_ends(opal_umrddt_gpu_copy_t *copy,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], bool may_travel,
                                opal_umrddt_gpu_end_t ends[2]);

/* The cached launch of a copy; NULL if there is none. With the lock. */
opal_umrddt_gpu_launch_t *opal_umrddt_gpu_launch_find(opal_umrddt_gpu_engine_t *engine,
                                                      const opal_umrddt_gpu_copy_end_t copy_ends[2],
                                                      uint64_t start, uint64_t end);

/* Cache a copy's part of a batch. */
void opal_umrddt_gpu_launch_keep(opal_umrddt_gpu_copy_t *copy,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, const opal_umrddt_gpu_part_t *part);

/* Remove a launch. With the lock. */
void opal_umrddt_gpu_launch_forget(opal_umrddt_gpu_engine_t *engine,
                                   opal_umrddt_gpu_launch_t *launch);

/* The function of a kernel. */
CUresult opal_umrddt_gpu_function(opal_umrddt_gpu_engine_t *engine, umrddt_gpu_kernel_id_t kernel,
                                  CUfunction *function);

/*
 * Repeat a cached launch.
 *
 * @param[in,out] copy  the copy to use; NULL: a free one. Unchanged if the launch is not cached
 * @param[out]    rc    result of the driver
 *
 * @return false if it is not cached
 */
bool opal_umrddt_gpu_launch_again(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                  uint64_t end, opal_umrddt_gpu_copy_t **copy, CUresult *rc);

/*
 * The graph of a launch that is about to be repeated; with the lock. Created when due.
 *
 * @return NULL: none, or another thread is launching it; else it is this thread's until
 *         opal_umrddt_gpu_graph_go
 */
opal_umrddt_gpu_graph_t *opal_umrddt_gpu_graph_take(opal_umrddt_gpu_engine_t *engine,
                                                    const opal_umrddt_gpu_launch_t *launch);

/* Launch a graph; without the lock. @return result of the driver: on failure the graph is freed */
CUresult opal_umrddt_gpu_graph_go(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_graph_t *graph,
                                  CUstream stream);

/* A launch is removed or changed: free its graph. With the lock. */
void opal_umrddt_gpu_graph_forget(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_launch_t *launch);

/* Free all graphs. @param[in] alive  the context exists, and is current */
void opal_umrddt_gpu_graphs_free(opal_umrddt_gpu_engine_t *engine, bool alive);

#endif /* OPAL_UMRDDT_GPU_LAUNCH_H */
