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
 * Nonblocking and persistent calls are done so with any memory, because their processes cannot
 * agree. A process whose data is in system memory, or that has no kernel or scratch memory for it,
 * combines with the CPU. A stage has the data then, if it is in GPU memory. An allreduce has two
 * steps, so that one process computes each result, except a sum of little data, whose bits are the
 * same everywhere.
 *
 * A process that has no memory for a nonblocking call, but for one segment, takes part without
 * data, so that no other one waits for it. All that need its data, or its result, fail.
 *
 * In place, a range that this process also sends is overwritten only after it was sent. Results
 * that arrive in the place of data that this process has sent follow from that data.
 */

#include "coll_umrddt_reduce_plan.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/pml.h"
#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_reduce.h"
#include "opal/runtime/opal_progress.h"

#include "coll_umrddt_messages.h"
#include "umrddt_collectives.h"

#define DEPTH   MCA_COLL_UMRDDT_REDUCE_DEPTH
#define RETRIES 1000 /* to start a kernel without memory for it */

typedef mca_coll_umrddt_reduce_work_t work_t;
typedef mca_coll_umrddt_reduce_slot_t slot_t;

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
                                      work->tag, work->comm, &requests[*n]));

    *n += OMPI_SUCCESS == rc ? 1 : 0;
    note(work, rc);
}

static void post_send(work_t *work, uint64_t address, size_t count, int peer,
                      ompi_request_t **requests, int *n)
{
    const int rc = MCA_PML_CALL(isend((const void *) (uintptr_t) address, work->absent ? 0 : count,
                                      work->call->type, peer, work->tag, MCA_PML_BASE_SEND_STANDARD,
                                      work->comm, &requests[*n]));

    *n += OMPI_SUCCESS == rc ? 1 : 0;
    note(work, rc);
}

/**
 * Test messages, of which the first @p receives ones receive data. @return true: all have ended,
 * maybe with an error
 */
static bool have_ended(work_t *work, ompi_request_t **requests, int receives, int *n)
{
    while (0 < *n) {
        if (!REQUEST_COMPLETE(requests[*n - 1])) {
            return false;
        }
        --*n;
        note(work, mca_coll_umrddt_wait_one(&requests[*n], *n < receives));
    }
    return true;
}

static bool data_ended(work_t *work, slot_t *slot)
{
    return have_ended(work, slot->recvs, slot->recv_count, &slot->recv_count);
}

static bool sends_ended(work_t *work, slot_t *slot)
{
    return have_ended(work, slot->sends, 0, &slot->send_count);
}

static bool results_ended(work_t *work, slot_t *slot)
{
    return have_ended(work, slot->results, slot->result_receives, &slot->result_count);
}

/** A kernel or copy was started, or not. */
static void started(work_t *work, int rc)
{
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        work->copy = NULL;
        note(work, mca_coll_umrddt_fail(rc, 0));
    }
}

/** Test it. @return true: it has ended, or there is none */
static bool has_copied(work_t *work)
{
    const int rc = NULL != work->copy ? opal_umrddt_gpu_copy_test(work->copy) : OPAL_SUCCESS;

    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    started(work, rc);
    work->copy = NULL;
    return true;
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

    if (OPAL_UNLIKELY(work->absent)) {
        return work->scratch;
    }
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

/** Exchange the data of a segment of all ranges. The slot has no messages. */
static void post_data(work_t *work, size_t segment)
{
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);

    for (int i = 1; 0 < count && i < work->size; ++i) {
        const int from = at_distance(work, work->size - i);

        if (mca_coll_umrddt_reduce_gives(work, from, work->rank)) {
            post_recv(work, place_of(work, from, segment), count, from, slot->recvs,
                      &slot->recv_count);
        }
    }
    for (int i = 1; i < work->size; ++i) {
        const int to = at_distance(work, i);
        const size_t part = mca_coll_umrddt_reduce_part(work, to, segment);

        if (0 < part && mca_coll_umrddt_reduce_gives(work, work->rank, to)) {
            post_send(work, data_of(work, to, segment), part, to, slot->sends, &slot->send_count);
        }
    }
}

/**
 * The second step: results of a segment go to all, or to the root. After an error, a message
 * without data goes instead.
 */
static void post_results(work_t *work, size_t segment)
{
    const bool to_root = MCA_COLL_UMRDDT_KIND_reduce == work->call->kind;
    const uint64_t all = (uint64_t) (uintptr_t) work->call->rbuf;
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);
    const bool failed = OMPI_SUCCESS != work->rc;

    for (int i = 1; (!to_root || work->call->root == work->rank) && i < work->size; ++i) {
        const int from = at_distance(work, work->size - i);
        const size_t part = mca_coll_umrddt_reduce_part(work, from, segment);

        if (0 < part) {
            post_recv(work,
                      all + (work->lists->first[from] + segment * work->segment) * work->extent,
                      part, from, slot->results, &slot->result_count);
        }
    }
    slot->result_receives = slot->result_count;
    for (int i = 1; 0 < count && i < work->size; ++i) {
        const int to = at_distance(work, i);

        if (!to_root || work->call->root == to) {
            post_send(work, result_of(work, segment), failed ? 0 : count, to, slot->results,
                      &slot->result_count);
        }
    }
}

/** Combine @p n inputs with the CPU: the saved function computes "inout = in op inout". */
static int combine_on_cpu(work_t *work, unsigned n, uint64_t result, size_t count)
{
    const mca_coll_umrddt_module_t *module = work->module;
    const uint64_t *source = work->lists->source;
    /* the received data of the lowest rank, which is no longer needed */
    const unsigned place = 0 == work->rank && 1 < n ? 1 : 0;
    /* Others compute the same result, some on a GPU: neither the application's rounding nor the
     * flushing of denormal numbers, which -ffast-math turns on, may change it. */
    const bool alike = MCA_COLL_UMRDDT_KIND_allreduce == work->call->kind && !work->two_steps;
    int rc = OMPI_SUCCESS;
    fenv_t env;

    if (alike) {
        (void) fegetenv(&env);
        (void) fesetenv(FE_DFL_ENV);
    }

    for (unsigned i = 0; i < n && OMPI_SUCCESS == rc; ++i) {
        if (i != place) {
            rc = module->saved.coll_reduce_local(
                (const void *) (uintptr_t) source[i], (void *) (uintptr_t) source[place],
                (umrddt_count_t) count, work->call->type, work->call->op,
                module->saved.coll_reduce_local_module);
        }
    }
    if (alike) {
        (void) fesetenv(&env);
    }
    memmove((void *) (uintptr_t) result, (const void *) (uintptr_t) source[place],
            count * work->extent);
    return rc;
}

/** Start to combine a segment of this process's range. @return false: try again */
static bool combine(work_t *work)
{
    const size_t segment = work->now;
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);
    const int spare = 0 == work->rank ? 1 : 0;
    unsigned n = 0;
    int rc;

    for (int from = 0; from < work->size; ++from) {
        if (mca_coll_umrddt_reduce_gives(work, from, work->rank)) {
            work->lists->source[n++] =
                from == work->rank ? data_of(work, from, segment) : place_of(work, from, segment);
        }
    }
    if (0 == n || 0 == count || work->absent) {
        return true;
    }
    if (work->on_cpu) {
        note(work, combine_on_cpu(work, n, result_of(work, segment), count));
        return true;
    }
    rc = opal_umrddt_gpu_reduce(work->engine, work->op, work->type, work->lists->source, n,
                                result_of(work, segment), place_of(work, spare, segment), count,
                                &work->copy);
    if (OPAL_UNLIKELY(OPAL_ERR_TEMP_OUT_OF_RESOURCE == rc)) {
        if (RETRIES > work->retries++) {
            work->copy = NULL;
            return false;
        }
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    work->retries = 0;
    started(work, rc);
    MCA_COLL_UMRDDT_COUNT(reductions);
    return true;
}

/** Copy the result to the begin of the receive buffer. All sends from there have ended. */
static void move_result(work_t *work)
{
    const opal_umrddt_gpu_copy_end_t from = {.address = work->result,
                                             .kind = OPAL_UMRDDT_GPU_DEVICE,
                                             .reached = true,
                                             .on_device = true};
    opal_umrddt_gpu_copy_end_t to = from;
    const size_t bytes = mca_coll_umrddt_reduce_output(work) * work->extent;

    to.address = (uint64_t) (uintptr_t) work->call->rbuf;
    if (work->on_cpu) {
        memcpy(work->call->rbuf, (const void *) (uintptr_t) work->result, bytes);
    } else if (0 < bytes) {
        started(work, opal_umrddt_gpu_copy(work->engine, &from, &to, 0, bytes, &work->copy));
    }
}

/** Returns true if all sends and results of all slots have ended. */
static bool all_ended(work_t *work)
{
    for (int i = 0; i < DEPTH; ++i) {
        slot_t *slot = &work->slots[i];

        if (!sends_ended(work, slot) || !results_ended(work, slot)) {
            return false;
        }
    }
    return true;
}

/** What a call waits for. */
enum {
    BEGIN,
    DATA,   /**< results of the segment that had the slot before, and data of this one */
    KERNEL, /**< this process's result */
    SENDS,  /**< of the slot, for the next segment */
    LAST,   /**< all messages */
    MOVE,   /**< the result at the begin of the receive buffer */
    DONE
};

/** One step of a segment. @return false: it has to wait */
static bool advance(work_t *work)
{
    slot_t *slot = &work->slots[work->now % DEPTH];

    switch (work->phase) {
    case BEGIN:
        for (size_t s = 0; s < work->segments && s < DEPTH; ++s) {
            post_data(work, s);
        }
        work->phase = 0 < work->segments ? DATA : LAST;
        return true;
    case DATA:
        if (!results_ended(work, slot) || !data_ended(work, slot)
            || (work->in_place && !sends_ended(work, slot)) || !combine(work)) {
            return false;
        }
        work->phase = KERNEL;
        return true;
    case KERNEL:
        if (!has_copied(work)) {
            return false;
        }
        if (work->two_steps) {
            post_results(work, work->now);
        }
        work->phase = SENDS;
        return true;
    case SENDS:
        if (work->now + DEPTH < work->segments) {
            if (!sends_ended(work, slot)) {
                return false;
            }
            post_data(work, work->now + DEPTH);
        }
        work->phase = ++work->now < work->segments ? DATA : LAST;
        return true;
    case LAST:
        if (!all_ended(work)) {
            return false;
        }
        if (mca_coll_umrddt_reduce_moves_result(work) && !work->absent) {
            move_result(work);
        }
        work->phase = MOVE;
        return true;
    default:
        if (!has_copied(work)) {
            return false;
        }
        work->phase = DONE;
        return false;
    }
}

/** Begin with the first segment. The memory is known. */
static void begin(work_t *work, int tag)
{
    work->tag = tag;
    work->rc = OMPI_SUCCESS;
    work->phase = BEGIN;
    work->now = 0;
    work->copy = NULL;
    work->retries = 0;
    for (int i = 0; i < DEPTH; ++i) {
        ompi_request_t **requests = work->lists->requests[i];

        work->slots[i] = (slot_t){.recvs = requests,
                                  .sends = requests + work->size,
                                  .results = requests + 2 * work->size};
    }
    if (work->on_cpu) {
        return;
    }
    opal_umrddt_gpu_sync_default(work->mine, &work->memory[0]);
    if (OPAL_UMRDDT_GPU_DEVICE == work->memory[1].kind) {
        opal_umrddt_gpu_sync_default((uint64_t) (uintptr_t) work->call->rbuf, &work->memory[1]);
    }
}

/** Do what can be done now. @return true: the call has ended */
static bool has_reduced(work_t *work)
{
    while (advance(work)) {
    }
    return DONE == work->phase;
}

/* ---------------------------------------------------------------------------------------------
 * Calls
 * ------------------------------------------------------------------------------------------- */

int mca_coll_umrddt_reduce_direct(const mca_coll_umrddt_reduction_t *call)
{
    work_t *work = call->work;
    int rc;

    MCA_COLL_UMRDDT_COUNT(direct);
    begin(work, UMRDDT_COLLECTIVES_TAG);
    while (!has_reduced(work)) {
        opal_progress();
    }
    rc = work->rc;
    mca_coll_umrddt_reduce_put(work);
    return rc;
}

/**
 * Get the memory of a request, and begin. Without it, this process sends all its messages without
 * data, and receives the data of others into memory for one segment. (It does not receive less than
 * was sent: ob1 may write all of a message that is longer than its receive, RGET.)
 *
 * @return OMPI_SUCCESS, or an error: nothing was posted
 */
static int begin_request(work_t *work, int tag)
{
    const bool looks = mca_coll_umrddt_looks(work->module, work->comm);
    int rc = OMPI_SUCCESS;

    work->changed = work->sides.reduction;
    work->on_cpu = work->absent = false;
    if (!looks || !mca_coll_umrddt_reduce_memory(work)) {
        work->on_cpu = true;
        if (looks) {
            rc = mca_coll_umrddt_stage_new(&work->sides, &work->stage);
        }
        if (OMPI_SUCCESS == rc && NULL != work->stage) {
            work->changed.sbuf = mca_coll_umrddt_stage_send(work->stage);
            work->changed.rbuf = mca_coll_umrddt_stage_recv(work->stage);
            rc = mca_coll_umrddt_stage_in(work->stage);
        }
        if (OMPI_SUCCESS == rc && !mca_coll_umrddt_reduce_memory(work)) {
            rc = mca_coll_umrddt_fail(OMPI_ERR_OUT_OF_RESOURCE, work->scratch_bytes);
        }
    }
    work->absent = OMPI_SUCCESS != rc;
    if (OPAL_UNLIKELY(work->absent)) {
        work->scratch = (uint64_t) (uintptr_t) malloc(work->stride);
        if (0 == work->scratch) {
            return rc;
        }
    }
    begin(work, tag);
    work->rc = rc;
    return OMPI_SUCCESS;
}

/** The steps of a request: it begins; its messages and kernels; its result. */
static bool reduce_step(mca_coll_umrddt_direct_t *direct)
{
    work_t *work = direct->reduction;
    int *phase = &direct->now.phase;
    int rc = OMPI_SUCCESS;

    if (0 == *phase) {
        rc = begin_request(work, direct->tag);
        *phase = OMPI_SUCCESS == rc ? 1 : 3;
    }
    if (1 == *phase) {
        if (!has_reduced(work)) {
            return true;
        }
        rc = work->rc;
        *phase = 3;
        if (OMPI_SUCCESS == rc && NULL != work->stage) {
            rc = mca_coll_umrddt_stage_out(work->stage);
            *phase = OMPI_SUCCESS == rc ? 2 : 3;
        }
    }
    if (2 == *phase) {
        rc = mca_coll_umrddt_stage_test(work->stage);
        if (OMPI_ERR_RESOURCE_BUSY == rc) {
            return true;
        }
        *phase = 3;
    }
    mca_coll_umrddt_note(&direct->rc, rc);
    mca_coll_umrddt_reduce_memory_put(work);
    mca_coll_umrddt_stage_free(work->stage);
    work->stage = NULL;
    return false;
}

static void reduce_close(mca_coll_umrddt_direct_t *direct)
{
    mca_coll_umrddt_reduce_put(direct->reduction);
    direct->reduction = NULL;
}

int mca_coll_umrddt_reduce_request(mca_coll_umrddt_module_t *module,
                                   mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                                   const mca_coll_umrddt_sides_t *sides)
{
    work_t *work = mca_coll_umrddt_reduce_get(comm, &sides->reduction, true);

    if (NULL == work) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    work->module = module;
    work->sides = *sides;
    work->call = &work->changed;
    mca_coll_umrddt_messages_begin(direct, comm, &sides->send, &sides->recv);
    direct->reduction = work;
    direct->step = reduce_step;
    direct->close = reduce_close;
    return OMPI_SUCCESS;
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
    if (!mca_coll_umrddt_reduce_engine(source[0], bytes, &engine, &memory[0])
        || !mca_coll_umrddt_reduce_engine(source[1], bytes, &engine, &memory[1])) {
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
