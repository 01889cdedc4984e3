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
 * Ranges, segments and memory of reductions. See coll_umrddt_reduce_plan.h first.
 */

#include "coll_umrddt_reduce_plan.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_reduce.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

#define DEPTH   MCA_COLL_UMRDDT_REDUCE_DEPTH
#define SCRATCH ((size_t) 24 << 20) /* bytes for segments; the same in all processes */
#define RESULT  ((size_t) 8 << 20)  /* bytes for the result of a reduce_scatter in place */
#define SURPLUS 4                   /* 1/4 of a segment takes as long as one more step */
#define GRAIN   256                 /* ranges and segments begin at multiples of so many bytes */

typedef mca_coll_umrddt_reduce_work_t work_t;
typedef mca_coll_umrddt_reduce_lists_t lists_t;

static opal_mutex_t lists_lock = OPAL_MUTEX_STATIC_INIT;
static lists_t *lists_free;

/* ---------------------------------------------------------------------------------------------
 * Lists
 * ------------------------------------------------------------------------------------------- */

static void lists_delete(lists_t *lists)
{
    free(lists->first);
    free(lists->requests[0]);
    free(lists);
}

static lists_t *lists_new(int room)
{
    const size_t n = (size_t) room;
    lists_t *lists = calloc(1, sizeof(*lists));

    if (NULL == lists) {
        return NULL;
    }
    lists->room = room;
    lists->first = malloc(n * (2 * sizeof(size_t) + sizeof(uint64_t)));
    lists->requests[0] = malloc(DEPTH * 4 * n * sizeof(ompi_request_t *));
    if (NULL == lists->first || NULL == lists->requests[0]) {
        lists_delete(lists);
        return NULL;
    }
    lists->count = lists->first + n;
    lists->source = (uint64_t *) (lists->count + n);
    for (int s = 1; s < DEPTH; ++s) {
        lists->requests[s] = lists->requests[0] + (size_t) s * 4 * n;
    }
    return lists;
}

/** Lists for @p room processes: kept ones if possible. */
static lists_t *lists_get(int room)
{
    lists_t *lists;

    opal_mutex_lock(&lists_lock);
    lists = lists_free;
    if (NULL != lists) {
        lists_free = lists->next;
    }
    opal_mutex_unlock(&lists_lock);
    if (NULL != lists && lists->room < room) {
        lists_delete(lists);
        lists = NULL;
    }
    return NULL != lists ? lists : lists_new(room);
}

static void lists_put(lists_t *lists)
{
    opal_mutex_lock(&lists_lock);
    lists->next = lists_free;
    lists_free = lists;
    opal_mutex_unlock(&lists_lock);
}

void mca_coll_umrddt_reductions_close(void)
{
    while (NULL != lists_free) {
        lists_t *lists = lists_free;

        lists_free = lists->next;
        lists_delete(lists);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Ranges
 * ------------------------------------------------------------------------------------------- */

/** Round up to whole grains. @return elements */
static size_t grains(const work_t *work, size_t elements)
{
    const size_t grain = GRAIN / work->extent;

    return (elements + grain - 1) / grain * grain;
}

/** Ranges of equal length, except the last ones. */
static void split(work_t *work, size_t count)
{
    const size_t n = (size_t) work->size, each = grains(work, (count + n - 1) / n);

    for (size_t i = 0; i < n; ++i) {
        const size_t first = i * each < count ? i * each : count;

        work->lists->first[i] = first;
        work->lists->count[i] = count - first < each ? count - first : each;
    }
}

/**
 * Returns true if all processes compute the same bits (but of a NaN), although some have other
 * operands first, and some use the CPU: there, Open MPI's vector operations differ in some cases,
 * as sums of 1 and 2 bytes.
 */
static bool is_reproducible(umrddt_gpu_reduce_op_t op, umrddt_gpu_reduce_type_t type)
{
    switch (type) {
    case UMRDDT_GPU_REDUCE_F32:
    case UMRDDT_GPU_REDUCE_F64:
    case UMRDDT_GPU_REDUCE_I32:
    case UMRDDT_GPU_REDUCE_I64:
    case UMRDDT_GPU_REDUCE_U32:
    case UMRDDT_GPU_REDUCE_U64:
        return UMRDDT_GPU_REDUCE_SUM == op;
    default:
        return false;
    }
}

/** Set the ranges of all processes, and whether there is a second step. @param[in] request  a
 * nonblocking or persistent call */
static void set_ranges(work_t *work, bool request)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const size_t n = (size_t) work->size, little = mca_coll_umrddt_params.segment / SURPLUS;
    const size_t bytes = call->count * work->extent;
    size_t first = 0;

    if (2 == n && MCA_COLL_UMRDDT_KIND_allreduce == call->kind) {
        /* two steps transfer as much as one does, but each process combines only half */
        work->two_steps = mca_coll_umrddt_params.segment <= bytes;
    } else if (MCA_COLL_UMRDDT_KIND_allreduce == call->kind
               || MCA_COLL_UMRDDT_KIND_reduce == call->kind) {
        /* bytes that the process with the most data receives in one step, and would not in two */
        work->two_steps = 2 < n && little < bytes / n * (n - 1) * (n - 2);
    }
    if (request && MCA_COLL_UMRDDT_KIND_allreduce == call->kind && 1 < n) {
        /* Some may combine with the CPU, of which half of the data is less. */
        work->two_steps =
            work->two_steps || little < bytes * (n - 1) || !is_reproducible(work->op, work->type);
    }
    if (work->two_steps) {
        split(work, call->count);
        return;
    }
    for (int i = 0; i < work->size; ++i) {
        size_t count = call->count;

        if (MCA_COLL_UMRDDT_KIND_reduce == call->kind && call->root != i) {
            count = 0;
        } else if (MCA_COLL_UMRDDT_KIND_reduce_scatter == call->kind) {
            count = UMRDDT_COUNTS_GET(call->rcounts, i);
        }
        work->lists->first[i] = first;
        work->lists->count[i] = count;
        first += MCA_COLL_UMRDDT_KIND_reduce_scatter == call->kind
                         || MCA_COLL_UMRDDT_KIND_reduce_scatter_block == call->kind
                     ? count
                     : 0;
    }
}

/** Set the length of segments, from values that all processes know. */
static void set_segments(work_t *work)
{
    size_t most = SCRATCH / DEPTH / (size_t) work->size;
    size_t longest = 0;

    if (mca_coll_umrddt_params.segment < most) {
        most = mca_coll_umrddt_params.segment;
    }
    most = most / GRAIN * GRAIN;

    for (int i = 0; i < work->size; ++i) {
        longest = work->lists->count[i] > longest ? work->lists->count[i] : longest;
    }
    work->segment = most / work->extent;
    if (grains(work, longest) < work->segment) {
        work->segment = grains(work, longest);
    }
    work->segments = 0 == longest ? 0 : (longest + work->segment - 1) / work->segment;
    work->stride = work->segment * work->extent + GRAIN;
}

/* ---------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------- */

bool mca_coll_umrddt_reduce_engine(uint64_t address, size_t bytes,
                                   opal_umrddt_gpu_engine_t **engine,
                                   opal_umrddt_gpu_memory_t *memory)
{
    opal_umrddt_gpu_engine_t *found;

    if (OPAL_SUCCESS != opal_umrddt_gpu_classify((const void *) (uintptr_t) address, memory)
        || OPAL_UMRDDT_GPU_DEVICE != memory->kind
        || (0 < memory->size && memory->size - (address - memory->base) < bytes)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_get(memory, &found)
        || (NULL != *engine && found != *engine)) {
        return false;
    }
    *engine = found;
    return true;
}

/** Elements of this process's input. */
static size_t input_count(const work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const int last = work->size - 1;

    return MCA_COLL_UMRDDT_KIND_reduce_scatter == call->kind
                   || MCA_COLL_UMRDDT_KIND_reduce_scatter_block == call->kind
               ? work->lists->first[last] + work->lists->count[last]
               : call->count;
}

size_t mca_coll_umrddt_reduce_output(const work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;

    switch (call->kind) {
    case MCA_COLL_UMRDDT_KIND_reduce:
        return call->root == work->rank ? call->count : 0;
    case MCA_COLL_UMRDDT_KIND_reduce_scatter:
    case MCA_COLL_UMRDDT_KIND_reduce_scatter_block:
        return work->lists->count[work->rank];
    case MCA_COLL_UMRDDT_KIND_exscan:
        return 0 == work->rank ? 0 : call->count;
    default:
        return call->count;
    }
}

bool mca_coll_umrddt_reduce_moves_result(const work_t *work)
{
    return MPI_IN_PLACE == work->call->sbuf
           && (MCA_COLL_UMRDDT_KIND_reduce_scatter == work->call->kind
               || MCA_COLL_UMRDDT_KIND_reduce_scatter_block == work->call->kind);
}

/** Set the addresses of the data and the result, and the size of the scratch memory. */
static void set_addresses(work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const bool in_place = MPI_IN_PLACE == call->sbuf;
    const size_t depth = work->segments < DEPTH ? work->segments : DEPTH;
    size_t own = 0;

    work->mine = (uint64_t) (uintptr_t) (in_place ? call->rbuf : call->sbuf);
    work->result = (uint64_t) (uintptr_t) call->rbuf;
    work->recycled =
        work->two_steps && MCA_COLL_UMRDDT_KIND_reduce == call->kind && call->root != work->rank;
    work->in_place = in_place && !work->two_steps && !mca_coll_umrddt_reduce_moves_result(work);
    if (work->recycled) {
        own = depth * work->stride;
    } else if (mca_coll_umrddt_reduce_moves_result(work)) {
        own = mca_coll_umrddt_reduce_output(work) * work->extent + GRAIN;
    } else if (work->two_steps) {
        work->result += work->lists->first[work->rank] * work->extent;
    }
    work->scratch_bytes = depth * (size_t) (work->size - 1) * work->stride + own;
}

/** Find the engine. @return false: not possible here */
static bool find_engine(work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const size_t input = input_count(work) * work->extent;
    const size_t output = mca_coll_umrddt_reduce_output(work) * work->extent;

    work->engine = NULL;
    return mca_coll_umrddt_reduce_engine(work->mine, input, &work->engine, &work->memory[0])
           && (MPI_IN_PLACE == call->sbuf || 0 == output
               || mca_coll_umrddt_reduce_engine((uint64_t) (uintptr_t) call->rbuf, output,
                                                &work->engine, &work->memory[1]))
           && (!mca_coll_umrddt_reduce_moves_result(work) || RESULT >= output + GRAIN)
           && opal_umrddt_gpu_reduces(work->engine, work->op, work->type);
}

/**
 * Get the scratch memory. Another holder may wait for this process, so this one does not wait for
 * it. @return false: it is not available
 */
static bool get_scratch(work_t *work)
{
    const size_t depth = work->segments < DEPTH ? work->segments : DEPTH;

    if (0 == work->scratch_bytes) {
        return true;
    }
    if (work->on_cpu) {
        work->scratch = (uint64_t) (uintptr_t) malloc(work->scratch_bytes);
    } else if (OPAL_SUCCESS
               != opal_umrddt_gpu_scratch_get(work->engine, work->scratch_bytes, &work->scratch)) {
        work->scratch = 0;
    }
    if (0 == work->scratch) {
        return false;
    }
    if (work->recycled || mca_coll_umrddt_reduce_moves_result(work)) {
        work->result = work->scratch + depth * (size_t) (work->size - 1) * work->stride
                       + (work->mine + work->lists->first[work->rank] * work->extent) % 16;
    }
    return true;
}

bool mca_coll_umrddt_reduce_memory(work_t *work)
{
    set_addresses(work);
    return (work->on_cpu || find_engine(work)) && get_scratch(work);
}

void mca_coll_umrddt_reduce_memory_put(work_t *work)
{
    if (0 != work->scratch && work->on_cpu) {
        free((void *) (uintptr_t) work->scratch);
    } else if (0 != work->scratch) {
        opal_umrddt_gpu_scratch_put(work->scratch);
    }
    work->scratch = 0;
}

void mca_coll_umrddt_reduce_put(work_t *work)
{
    mca_coll_umrddt_reduce_memory_put(work);
    lists_put(work->lists);
}

work_t *mca_coll_umrddt_reduce_get(ompi_communicator_t *comm,
                                   const mca_coll_umrddt_reduction_t *call, bool request)
{
    umrddt_gpu_reduce_type_t type;
    umrddt_gpu_reduce_op_t op;
    lists_t *lists;
    work_t *work;

    if (MCA_COLL_UMRDDT_REDUCE_PROCESSES < ompi_comm_size(comm)
        || !mca_coll_umrddt_reduce_op(call->op, &op)
        || !mca_coll_umrddt_reduce_type(call->type, &type)) {
        return NULL;
    }
    lists = lists_get(ompi_comm_size(comm));
    if (NULL == lists) {
        return NULL;
    }
    work = &lists->work;
    memset(work, 0, sizeof(*work));
    work->call = call;
    work->comm = comm;
    work->size = ompi_comm_size(comm);
    work->rank = ompi_comm_rank(comm);
    work->op = op;
    work->type = type;
    work->lists = lists;
    work->extent = opal_umrddt_gpu_reduce_extent(type);
    set_ranges(work, request);
    set_segments(work);
    return work;
}

unsigned mca_coll_umrddt_reduce_states(ompi_communicator_t *comm, mca_coll_umrddt_reduction_t *call)
{
    call->work = mca_coll_umrddt_reduce_get(comm, call, false);
    if (NULL != call->work && !mca_coll_umrddt_reduce_memory(call->work)) {
        mca_coll_umrddt_reduce_release(call);
    }
    return NULL != call->work ? MCA_COLL_UMRDDT_REDUCES : 0;
}

void mca_coll_umrddt_reduce_release(mca_coll_umrddt_reduction_t *call)
{
    if (NULL != call->work) {
        mca_coll_umrddt_reduce_put(call->work);
        call->work = NULL;
    }
}
