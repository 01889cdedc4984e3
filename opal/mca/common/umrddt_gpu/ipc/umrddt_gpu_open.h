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
 * Start, end and counters of all of common/umrddt_gpu, for a component that uses all of it.
 */

#ifndef OPAL_UMRDDT_GPU_OPEN_H
#define OPAL_UMRDDT_GPU_OPEN_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

BEGIN_C_DECLS

/**
 * Load the CUDA driver and configure the engines. Calls no function of the driver: the application
 * decides whether CUDA is used.
 *
 * @param[in] cache_system  cache the pages that the driver reported as system memory, and answer
 *                          lookups of a CUDA-aware Open MPI for them (umrddt_gpu_base_lookup.h)
 *
 * @return the driver, or NULL: opal_umrddt_gpu_driver_why_not has the reason
 */
const opal_umrddt_gpu_driver_t *opal_umrddt_gpu_open(bool cache_system);

/** Close the pools of buffers, the engines and the cache. An HCA that may have registered the
 * buffers must be closed before. */
void opal_umrddt_gpu_close(void);

/** The counters of each part. */
typedef struct opal_umrddt_gpu_stats_t {
    opal_umrddt_gpu_driver_stats_t driver;
    opal_umrddt_gpu_engine_stats_t engine;
    opal_umrddt_gpu_staging_stats_t staging;
    opal_umrddt_gpu_scratch_stats_t scratch;
    opal_umrddt_gpu_ipc_stats_t ipc;
    uint64_t base_lookups; /**< opal_umrddt_gpu_base_lookups */
    uint64_t cached;       /**< unused staging buffers in unpinned memory, bytes */
} opal_umrddt_gpu_stats_t;

/** Copy the counters. */
void opal_umrddt_gpu_stats(opal_umrddt_gpu_stats_t *stats);

/* clang-format off */
/** The counters that users see: name, member of opal_umrddt_gpu_stats_t, whether it is a present
 * value, help. */
#define OPAL_UMRDDT_GPU_COUNTERS(X) \
    X(gpu_queries, driver.queries, false, "Pointer queries to the CUDA driver") \
    X(gpu_query_hits, driver.hits, false, "Of these, those of recently seen allocations") \
    X(accelerator_lookups, base_lookups, false, \
      "Memory lookups of a CUDA-aware Open MPI answered without the CUDA driver") \
    X(gpu_sync_set, driver.syncs, false, \
      "Allocations whose synchronous CUDA calls were made to wait") \
    X(gpu_sync_waits, engine.orders, false, \
      "Waits for the default streams, for memory of pools and mapped memory") \
    X(gpu_copies, engine.copies, false, "Copies started on GPUs") \
    X(gpu_launches, engine.launches, false, "Kernels launched for those") \
    X(gpu_batches, engine.batches, false, "Of these, those for several copies") \
    X(gpu_batched, engine.batched, false, "Copies in those") \
    X(gpu_launches_again, engine.launches_again, false, \
      "Of the launches, cached ones: nothing is planned") \
    X(gpu_graph_launches, engine.graph_launches, false, "Of these, those by a CUDA graph") \
    X(gpu_graphs_made, engine.graphs_made, false, "Graphs made of repeated launches") \
    X(gpu_graphs, engine.graphs_now, true, "Graphs that exist (present value)") \
    X(gpu_driver_copies, engine.driver_copies, false, "Copies by the driver for those") \
    X(gpu_shapes_made, engine.shapes_made, false, "Layouts translated for kernels") \
    X(gpu_lists_uploaded, engine.lists_uploaded, false, "Lists of blocks copied to GPUs") \
    X(gpu_list_bytes, engine.shape_bytes_now, true, "Memory of those on GPUs (present value)") \
    X(gpu_staged_bytes, engine.staged_bytes, false, "Bytes of those through pinned buffers") \
    X(gpu_pinned_buffers, staging.pinned, false, "Pinned buffers allocated from the CUDA driver") \
    X(gpu_pinned_bytes, staging.bytes_now, true, \
      "Memory of pinned buffers, in bytes (present value)") \
    X(gpu_scratch_buffers, scratch.allocated, false, \
      "Buffers in GPU memory for chunks that were allocated from the driver") \
    X(gpu_scratch_bytes, scratch.bytes_now, true, "Memory of those (present value)") \
    X(gpu_stage_bytes, cached, true, \
      "Pageable memory that is kept for staged messages, in bytes (present value)") \
    X(ipc_exported, ipc.exported, false, "Allocations exported for other processes") \
    X(ipc_opened, ipc.opened, false, "Allocations of other processes that were mapped") \
    X(ipc_hits, ipc.hits, false, "Messages that found theirs mapped") \
    X(ipc_closed, ipc.closed, false, "Mapped ones that were unmapped") \
    X(ipc_refused, ipc.refused, false, "Exports or mappings that the driver refused") \
    X(ipc_open, ipc.open_now, true, \
      "Allocations of other processes that are mapped (present value)") \
    X(ipc_open_bytes, ipc.bytes_now, true, "Bytes of those (present value)")
/* clang-format on */

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_OPEN_H */
