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
 * Reductions in GPU memory. See coll_umrddt_reduce.h first.
 */

/*
 * Each process has a *range* of elements whose result it computes. It receives the range of all
 * other processes into scratch memory of its GPU, and one kernel combines them, in the order of
 * ranks. So all results are equal on all processes, also those of floating point numbers:
 *
 *                         range                       then
 *   allreduce, little     all elements                -
 *   allreduce             one part of them            its result goes to all
 *   reduce, little        all elements, of the root   -
 *   reduce                one part of them            its result goes to the root
 *   reduce_scatter        its part                    -
 *   scan, exscan          all elements, of the ranks  -
 *                         up to (before) this one
 *
 * Ranges are done in segments, a few of which are in progress. The scratch memory is limited, and
 * transfers continue while a kernel runs. All messages have one tag, so a process posts them to
 * each other one in an order that both follow: the segments of the ranges, and after each, the
 * result of the segment DEPTH - 1 before.
 *
 * In place, a range that this process also sends is overwritten only after it was sent. Results
 * that arrive in the place of data that this process has sent follow from that data.
 */

#include "coll_umrddt_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/pml.h"
#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_reduce.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/runtime/opal_progress.h"

#include "umrddt_collectives.h"

#define DEPTH     4                   /* segments in progress */
#define SCRATCH   ((size_t) 24 << 20) /* bytes for segments; the same in all processes */
#define RESULT    ((size_t) 8 << 20)  /* bytes for the result of a reduce_scatter in place */
#define SURPLUS   4                   /* 1/4 of a segment takes as long as one more step */
#define GRAIN     256                 /* ranges and segments begin at multiples of so many bytes */
#define RETRIES   1000                /* to start a kernel without memory for it */
#define PROCESSES 1024                /* maximum of a communicator */

typedef struct lists_t lists_t;

/** Requests of a segment, in this order. */
typedef struct slot_t {
    ompi_request_t **recvs;
    ompi_request_t **sends;
    ompi_request_t **results; /**< of the second step */
    int recv_count;
    int send_count;
    int result_count;
} slot_t;

typedef struct mca_coll_umrddt_reduce_work_t {
    const mca_coll_umrddt_reduction_t *call;
    ompi_communicator_t *comm;
    int size;
    int rank;
    umrddt_gpu_reduce_op_t op;
    umrddt_gpu_reduce_type_t type;
    opal_umrddt_gpu_engine_t *engine;
    lists_t *lists;
    size_t extent;
    bool two_steps;  /**< a process has one part of the elements */
    bool in_place;   /**< the kernel writes to what this process sends */
    size_t segment;  /**< elements */
    size_t segments; /**< the same in all processes */
    uint64_t mine;   /**< this process's data */
    uint64_t result; /**< its result: of its range in the order of segments */
    bool recycled;   /**< the result is scratch memory for DEPTH segments */
    uint64_t scratch;
    size_t stride; /**< bytes of a received segment */
    size_t scratch_bytes;
    opal_umrddt_gpu_memory_t memory[2]; /**< of this process's data, and of its receive buffer */
    slot_t slots[DEPTH];
    int rc; /**< the first error */
} work_t;

/** A call, and lists for it. They are kept for later calls. */
struct lists_t {
    struct lists_t *next;
    work_t work;
    int room;      /**< processes */
    size_t *first; /**< of each process: its range */
    size_t *count;
    uint64_t *source;                 /**< device addresses for a kernel */
    ompi_request_t **requests[DEPTH]; /**< 4 for each process, by the segment modulo DEPTH */
};

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

/** Returns true if the data of rank @p from goes into the result of rank @p to. */
static bool gives(const work_t *work, int from, int to)
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
static size_t part_of(const work_t *work, int rank, size_t segment)
{
    const size_t begin = segment * work->segment, count = work->lists->count[rank];

    return begin >= count ? 0 : count - begin < work->segment ? count - begin : work->segment;
}

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

/** Set the ranges of all processes, and whether there is a second step. */
static void set_ranges(work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const size_t n = (size_t) work->size;
    size_t first = 0;

    /* bytes that the process with the most data receives in one step, and would not in two */
    work->two_steps =
        (MCA_COLL_UMRDDT_KIND_allreduce == call->kind || MCA_COLL_UMRDDT_KIND_reduce == call->kind)
        && 2 < n
        && mca_coll_umrddt_params.segment / SURPLUS
               < call->count * work->extent / n * (n - 1) * (n - 2);
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

/**
 * Get the engine of a buffer.
 *
 * @param[in,out] engine  NULL, or that of another buffer, which must be the same
 * @param[out]    memory  of the buffer
 *
 * @return false: not all of it is in the memory of that engine's device
 */
static bool engine_of(uint64_t address, size_t bytes, opal_umrddt_gpu_engine_t **engine,
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

/** Elements of this process's result that go to its receive buffer. */
static size_t output_count(const work_t *work)
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

/** Returns true if the result is at the begin of the receive buffer, over the input of others. */
static bool moves_result(const work_t *work)
{
    return MPI_IN_PLACE == work->call->sbuf
           && (MCA_COLL_UMRDDT_KIND_reduce_scatter == work->call->kind
               || MCA_COLL_UMRDDT_KIND_reduce_scatter_block == work->call->kind);
}

/** Find the engine, and the size of the scratch memory. @return false: not possible here */
static bool set_memory(work_t *work)
{
    const mca_coll_umrddt_reduction_t *call = work->call;
    const bool in_place = MPI_IN_PLACE == call->sbuf;
    const size_t depth = work->segments < DEPTH ? work->segments : DEPTH;
    const size_t input = input_count(work) * work->extent;
    const size_t output = output_count(work) * work->extent;
    size_t own = 0;

    work->mine = (uint64_t) (uintptr_t) (in_place ? call->rbuf : call->sbuf);
    work->result = (uint64_t) (uintptr_t) call->rbuf;
    if (!engine_of(work->mine, input, &work->engine, &work->memory[0])
        || (!in_place && 0 < output
            && !engine_of(work->result, output, &work->engine, &work->memory[1]))) {
        return false;
    }
    work->recycled =
        work->two_steps && MCA_COLL_UMRDDT_KIND_reduce == call->kind && call->root != work->rank;
    work->in_place = in_place && !work->two_steps && !moves_result(work);
    if (work->recycled) {
        own = depth * work->stride;
    } else if (moves_result(work)) {
        own = output + GRAIN;
        if (RESULT < own) {
            return false;
        }
    } else if (work->two_steps) {
        work->result += work->lists->first[work->rank] * work->extent;
    }
    work->scratch_bytes = depth * (size_t) (work->size - 1) * work->stride + own;
    return opal_umrddt_gpu_reduces(work->engine, work->op, work->type);
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
    if (OPAL_SUCCESS
        != opal_umrddt_gpu_scratch_get(work->engine, work->scratch_bytes, &work->scratch)) {
        return false;
    }
    if (work->recycled || moves_result(work)) {
        work->result = work->scratch + depth * (size_t) (work->size - 1) * work->stride
                       + (work->mine + work->lists->first[work->rank] * work->extent) % 16;
    }
    return true;
}

/** Get all that a call needs. @return false: this process cannot do it in GPU memory */
static bool prepare(work_t *work)
{
    if (!mca_coll_umrddt_reduce_type(work->call->type, &work->type)) {
        return false;
    }
    work->extent = opal_umrddt_gpu_reduce_extent(work->type);
    set_ranges(work);
    set_segments(work);
    return set_memory(work) && get_scratch(work);
}

/** Release a call, with its lists and scratch memory. */
static void release(work_t *work)
{
    if (0 != work->scratch) {
        opal_umrddt_gpu_scratch_put(work->scratch);
    }
    lists_put(work->lists);
}

unsigned mca_coll_umrddt_reduce_states(ompi_communicator_t *comm, mca_coll_umrddt_reduction_t *call)
{
    umrddt_gpu_reduce_op_t op;
    lists_t *lists;
    work_t *work;

    call->work = NULL;
    if (PROCESSES < ompi_comm_size(comm) || !mca_coll_umrddt_reduce_op(call->op, &op)) {
        return 0;
    }
    lists = lists_get(ompi_comm_size(comm));
    if (NULL == lists) {
        return 0;
    }
    work = &lists->work;
    memset(work, 0, sizeof(*work));
    work->call = call;
    work->comm = comm;
    work->size = ompi_comm_size(comm);
    work->rank = ompi_comm_rank(comm);
    work->op = op;
    work->lists = lists;
    if (!prepare(work)) {
        release(work);
        return 0;
    }
    call->work = work;
    return MCA_COLL_UMRDDT_REDUCES;
}

void mca_coll_umrddt_reduce_release(mca_coll_umrddt_reduction_t *call)
{
    if (NULL != call->work) {
        release(call->work);
        call->work = NULL;
    }
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

static void note(work_t *work, int rc)
{
    work->rc = OMPI_SUCCESS == work->rc ? rc : work->rc;
}

static void post_recv(work_t *work, uint64_t address, size_t count, int peer,
                      ompi_request_t **requests, int *n)
{
    const int rc = MCA_PML_CALL(irecv((void *) (uintptr_t) address, count, work->call->type, peer,
                                      UMRDDT_COLLECTIVES_TAG, work->comm, &requests[*n]));

    *n += OMPI_SUCCESS == rc ? 1 : 0;
    note(work, rc);
}

static void post_send(work_t *work, uint64_t address, size_t count, int peer,
                      ompi_request_t **requests, int *n)
{
    const int rc = MCA_PML_CALL(isend((const void *) (uintptr_t) address, count, work->call->type,
                                      peer, UMRDDT_COLLECTIVES_TAG, MCA_PML_BASE_SEND_STANDARD,
                                      work->comm, &requests[*n]));

    *n += OMPI_SUCCESS == rc ? 1 : 0;
    note(work, rc);
}

/** Wait for all, also after an error. */
static void wait_for(work_t *work, ompi_request_t **requests, int *n)
{
    for (int i = 0; i < *n; ++i) {
        note(work, ompi_request_wait(&requests[i], MPI_STATUS_IGNORE));
    }
    *n = 0;
}

/** Wait for a kernel or a copy. @param[in] rc  result of its start */
static void wait_copy(work_t *work, int rc, opal_umrddt_gpu_copy_t *const *copy)
{
    if (OPAL_SUCCESS == rc) {
        while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(*copy))) {
            opal_progress();
        }
    }
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        note(work, mca_coll_umrddt_fail(rc, 0));
    }
}

/** The rank at a distance. Each process begins with another one. */
static int at_distance(const work_t *work, int distance)
{
    return (work->rank + distance) % work->size;
}

/**
 * Scratch memory for a segment of rank @p from. It has the alignment of this process's own data, so
 * that kernels use wide accesses.
 */
static uint64_t place_of(const work_t *work, int from, size_t segment)
{
    const size_t others = (size_t) (work->size - 1);
    const size_t place = segment % DEPTH * others + (size_t) (from < work->rank ? from : from - 1);

    return work->scratch + place * work->stride
           + (work->mine + work->lists->first[work->rank] * work->extent) % 16;
}

/** This process's data in a segment of a range. */
static uint64_t data_of(const work_t *work, int rank, size_t segment)
{
    return work->mine + (work->lists->first[rank] + segment * work->segment) * work->extent;
}

/** Where a segment of this process's result is. */
static uint64_t result_of(const work_t *work, size_t segment)
{
    return work->recycled ? work->result + segment % DEPTH * work->stride
                          : work->result + segment * work->segment * work->extent;
}

/** Exchange the data of a segment of all ranges. */
static void post_data(work_t *work, size_t segment)
{
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = part_of(work, work->rank, segment);

    wait_for(work, slot->sends, &slot->send_count);
    for (int i = 1; 0 < count && i < work->size; ++i) {
        const int from = at_distance(work, work->size - i);

        if (gives(work, from, work->rank)) {
            post_recv(work, place_of(work, from, segment), count, from, slot->recvs,
                      &slot->recv_count);
        }
    }
    for (int i = 1; i < work->size; ++i) {
        const int to = at_distance(work, i);
        const size_t part = part_of(work, to, segment);

        if (0 < part && gives(work, work->rank, to)) {
            post_send(work, data_of(work, to, segment), part, to, slot->sends, &slot->send_count);
        }
    }
}

/**
 * The second step: results of a segment go to all, or to the root. After an error, a message with
 * one element too many goes instead of a result, so that the others get MPI_ERR_TRUNCATE.
 */
static void post_results(work_t *work, size_t segment)
{
    const bool to_root = MCA_COLL_UMRDDT_KIND_reduce == work->call->kind;
    const uint64_t all = (uint64_t) (uintptr_t) work->call->rbuf;
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = part_of(work, work->rank, segment);
    const bool failed = OMPI_SUCCESS != work->rc;
    /* an element more than a segment fits into the surplus of the stride */
    const uint64_t result =
        failed ? place_of(work, 0 == work->rank ? 1 : 0, segment) : result_of(work, segment);

    for (int i = 1; (!to_root || work->call->root == work->rank) && i < work->size; ++i) {
        const int from = at_distance(work, work->size - i);
        const size_t part = part_of(work, from, segment);

        if (0 < part) {
            post_recv(work,
                      all + (work->lists->first[from] + segment * work->segment) * work->extent,
                      part, from, slot->results, &slot->result_count);
        }
    }
    for (int i = 1; 0 < count && i < work->size; ++i) {
        const int to = at_distance(work, i);

        if (!to_root || work->call->root == to) {
            post_send(work, result, failed ? count + 1 : count, to, slot->results,
                      &slot->result_count);
        }
    }
}

/** Combine a segment of this process's range. */
static void combine(work_t *work, size_t segment)
{
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = part_of(work, work->rank, segment);
    const int spare = 0 == work->rank ? 1 : 0;
    opal_umrddt_gpu_copy_t *copy;
    unsigned n = 0;
    int rc;

    wait_for(work, slot->recvs, &slot->recv_count);
    for (int from = 0; from < work->size; ++from) {
        if (gives(work, from, work->rank)) {
            work->lists->source[n++] =
                from == work->rank ? data_of(work, from, segment) : place_of(work, from, segment);
        }
    }
    if (0 == n || 0 == count) {
        return;
    }
    if (work->in_place) {
        wait_for(work, slot->sends, &slot->send_count);
    }
    for (int i = 0;; ++i) {
        rc = opal_umrddt_gpu_reduce(work->engine, work->op, work->type, work->lists->source, n,
                                    result_of(work, segment), place_of(work, spare, segment), count,
                                    &copy);
        if (OPAL_LIKELY(OPAL_ERR_TEMP_OUT_OF_RESOURCE != rc) || RETRIES == i) {
            break;
        }
        opal_progress();
    }
    wait_copy(work, OPAL_ERR_TEMP_OUT_OF_RESOURCE == rc ? OPAL_ERR_OUT_OF_RESOURCE : rc, &copy);
    MCA_COLL_UMRDDT_COUNT(reductions);
}

/** Copy the result to the begin of the receive buffer. All sends from there have ended. */
static void move_result(work_t *work)
{
    const opal_umrddt_gpu_copy_end_t from = {.address = work->result,
                                             .kind = OPAL_UMRDDT_GPU_DEVICE,
                                             .reached = true,
                                             .on_device = true};
    opal_umrddt_gpu_copy_end_t to = from;
    opal_umrddt_gpu_copy_t *copy;
    const size_t bytes = output_count(work) * work->extent;

    to.address = (uint64_t) (uintptr_t) work->call->rbuf;
    if (0 < bytes) {
        wait_copy(work, opal_umrddt_gpu_copy(work->engine, &from, &to, 0, bytes, &copy), &copy);
    }
}

static void run(work_t *work)
{
    for (size_t s = 0; s < work->segments && s < DEPTH; ++s) {
        post_data(work, s);
    }
    for (size_t s = 0; s < work->segments; ++s) {
        slot_t *slot = &work->slots[s % DEPTH];

        wait_for(work, slot->results, &slot->result_count);
        combine(work, s);
        if (work->two_steps) {
            post_results(work, s);
        }
        if (s + DEPTH < work->segments) {
            post_data(work, s + DEPTH);
        }
    }
    for (int i = 0; i < DEPTH; ++i) {
        wait_for(work, work->slots[i].sends, &work->slots[i].send_count);
        wait_for(work, work->slots[i].results, &work->slots[i].result_count);
    }
    if (moves_result(work)) {
        move_result(work);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Calls
 * ------------------------------------------------------------------------------------------- */

int mca_coll_umrddt_reduce_direct(const mca_coll_umrddt_reduction_t *call)
{
    work_t *work = call->work;
    int rc;

    opal_umrddt_gpu_sync_default(work->mine, &work->memory[0]);
    if (OPAL_UMRDDT_GPU_DEVICE == work->memory[1].kind) {
        opal_umrddt_gpu_sync_default((uint64_t) (uintptr_t) call->rbuf, &work->memory[1]);
    }
    for (int i = 0; i < DEPTH; ++i) {
        ompi_request_t **requests = work->lists->requests[i];

        work->slots[i] = (slot_t){.recvs = requests,
                                  .sends = requests + work->size,
                                  .results = requests + 2 * work->size};
    }
    MCA_COLL_UMRDDT_COUNT(direct);
    run(work);
    rc = work->rc;
    release(work);
    return rc;
}

bool mca_coll_umrddt_reduce_local_direct(const void *inbuf, void *inoutbuf, size_t count,
                                         ompi_datatype_t *type, ompi_op_t *op, int *rc)
{
    const uint64_t source[2] = {(uint64_t) (uintptr_t) inbuf, (uint64_t) (uintptr_t) inoutbuf};
    opal_umrddt_gpu_engine_t *engine = NULL;
    umrddt_gpu_reduce_op_t which_op;
    umrddt_gpu_reduce_type_t which;
    opal_umrddt_gpu_memory_t memory[2];
    opal_umrddt_gpu_copy_t *copy;
    size_t bytes;

    if (0 == count || !opal_umrddt_gpu_in_use() || !mca_coll_umrddt_reduce_op(op, &which_op)
        || !mca_coll_umrddt_reduce_type(type, &which)) {
        return false;
    }
    bytes = count * opal_umrddt_gpu_reduce_extent(which);
    if (!engine_of(source[0], bytes, &engine, &memory[0])
        || !engine_of(source[1], bytes, &engine, &memory[1])) {
        return false;
    }
    opal_umrddt_gpu_sync_default(source[0], &memory[0]);
    opal_umrddt_gpu_sync_default(source[1], &memory[1]);
    if (OPAL_SUCCESS
        != opal_umrddt_gpu_reduce(engine, which_op, which, source, 2, source[1], 0, count, &copy)) {
        return false;
    }
    *rc = opal_umrddt_gpu_copy_wait(copy);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != *rc)) {
        *rc = mca_coll_umrddt_fail(*rc, 0);
    }
    MCA_COLL_UMRDDT_COUNT(reductions);
    return true;
}
