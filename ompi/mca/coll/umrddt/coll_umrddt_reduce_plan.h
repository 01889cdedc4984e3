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
 * A reduction in GPU memory: its ranges, segments, and scratch memory (coll_umrddt_reduce_plan.c),
 * with which coll_umrddt_reduce.c does it.
 */

#ifndef MCA_COLL_UMRDDT_REDUCE_PLAN_H
#define MCA_COLL_UMRDDT_REDUCE_PLAN_H

#include "coll_umrddt_reduce.h"
#include "coll_umrddt_stage.h"

#include "ompi/request/request.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** Segments in progress. */
#define MCA_COLL_UMRDDT_REDUCE_DEPTH 3

/** Requests of a segment, in this order. */
typedef struct mca_coll_umrddt_reduce_slot_t {
    ompi_request_t **recvs;
    ompi_request_t **sends;
    ompi_request_t **results; /**< of the second step */
    int recv_count;
    int send_count;
    int result_count;
    int result_receives; /**< the first of these results so many are received */
} mca_coll_umrddt_reduce_slot_t;

typedef struct mca_coll_umrddt_reduce_work_t {
    const mca_coll_umrddt_reduction_t *call;
    ompi_communicator_t *comm;
    int size;
    int rank;
    umrddt_gpu_reduce_op_t op;
    umrddt_gpu_reduce_type_t type;
    opal_umrddt_gpu_engine_t *engine;
    struct mca_coll_umrddt_reduce_lists_t *lists;
    size_t extent;
    bool two_steps;  /**< a process has one part of the elements */
    bool in_place;   /**< the kernel writes to what this process sends */
    size_t segment;  /**< elements */
    size_t segments; /**< the same in all processes */
    uint64_t mine;   /**< this process's data */
    uint64_t result; /**< its result: of its range in the order of segments */
    bool recycled;   /**< the result is scratch memory for MCA_COLL_UMRDDT_REDUCE_DEPTH segments */
    uint64_t scratch;
    size_t stride; /**< bytes of a received segment */
    size_t scratch_bytes;
    opal_umrddt_gpu_memory_t memory[2]; /**< of this process's data, and of its receive buffer */
    mca_coll_umrddt_reduce_slot_t slots[MCA_COLL_UMRDDT_REDUCE_DEPTH];
    int rc; /**< the first error */
    int tag;
    int phase;                    /**< coll_umrddt_reduce.c: what this segment waits for */
    size_t now;                   /**< this segment */
    opal_umrddt_gpu_copy_t *copy; /**< a kernel or copy in progress, or NULL */
    int retries;                  /**< to start it */
    bool on_cpu; /**< the CPU combines data in system memory. All that follows is of requests */
    bool absent; /**< no memory: this process sends no data */
    mca_coll_umrddt_module_t *module;
    mca_coll_umrddt_sides_t sides;       /**< as given */
    mca_coll_umrddt_reduction_t changed; /**< the call, with the addresses of a stage */
    mca_coll_umrddt_stage_t *stage;
} mca_coll_umrddt_reduce_work_t;

/** A call, and lists for it. They are kept for later calls. */
typedef struct mca_coll_umrddt_reduce_lists_t {
    struct mca_coll_umrddt_reduce_lists_t *next;
    mca_coll_umrddt_reduce_work_t work;
    int room;      /**< processes */
    size_t *first; /**< of each process: its range */
    size_t *count;
    uint64_t *source; /**< device addresses for a kernel */
    ompi_request_t *
        *requests[MCA_COLL_UMRDDT_REDUCE_DEPTH]; /**< 4 for each process, by the segment modulo
                                                    MCA_COLL_UMRDDT_REDUCE_DEPTH */
} mca_coll_umrddt_reduce_lists_t;

/** Returns true if the data of rank @p from goes into the result of rank @p to. */
static inline bool mca_coll_umrddt_reduce_gives(const mca_coll_umrddt_reduce_work_t *work, int from,
                                                int to)
{
    switch (work->call->kind) {
    case MCA_COLL_UMRDDT_KIND_scan:
        return from <= to;
    case MCA_COLL_UMRDDT_KIND_exscan:
        return from < to;
    default:
        return true;
    }
}

/** Elements of a segment of a process's range. */
static inline size_t mca_coll_umrddt_reduce_part(const mca_coll_umrddt_reduce_work_t *work,
                                                 int rank, size_t segment)
{
    const size_t begin = segment * work->segment, count = work->lists->count[rank];

    return begin >= count ? 0 : count - begin < work->segment ? count - begin : work->segment;
}

/** Elements of this process's result that go to its receive buffer. */
size_t mca_coll_umrddt_reduce_output(const mca_coll_umrddt_reduce_work_t *work);

/** Returns true if the result is at the begin of the receive buffer, over the input of others. */
bool mca_coll_umrddt_reduce_moves_result(const mca_coll_umrddt_reduce_work_t *work);

/**
 * Get the engine of a buffer.
 *
 * @param[in,out] engine  NULL, or that of another buffer, which must be the same
 * @param[out]    memory  of the buffer
 *
 * @return false: not all of it is in the memory of that engine's device
 */
bool mca_coll_umrddt_reduce_engine(uint64_t address, size_t bytes,
                                   opal_umrddt_gpu_engine_t **engine,
                                   opal_umrddt_gpu_memory_t *memory);

/**
 * Begin a call: lists, ranges and segments.
 *
 * @param[in] request  a nonblocking or persistent call: some processes may combine with the CPU
 *
 * @return NULL: there are no kernels for it, or no memory
 */
mca_coll_umrddt_reduce_work_t *mca_coll_umrddt_reduce_get(ompi_communicator_t *comm,
                                                          const mca_coll_umrddt_reduction_t *call,
                                                          bool request);

/**
 * Get what work->call needs: work->on_cpu, system memory; else an engine and scratch memory. Waits
 * for no other call.
 *
 * @return false: not available
 */
bool mca_coll_umrddt_reduce_memory(mca_coll_umrddt_reduce_work_t *work);

/** Release the scratch memory, which is not in use. */
void mca_coll_umrddt_reduce_memory_put(mca_coll_umrddt_reduce_work_t *work);

/** Release a call, with its lists and scratch memory. */
void mca_coll_umrddt_reduce_put(mca_coll_umrddt_reduce_work_t *work);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_REDUCE_PLAN_H */
