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

#include "coll_umrddt_reduce_plan.h"

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
        note(work, mca_coll_umrddt_wait_one(&requests[i]));
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
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);

    wait_for(work, slot->sends, &slot->send_count);
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
 * The second step: results of a segment go to all, or to the root. After an error, a message with
 * one element too many goes instead of a result, so that the others get MPI_ERR_TRUNCATE.
 */
static void post_results(work_t *work, size_t segment)
{
    const bool to_root = MCA_COLL_UMRDDT_KIND_reduce == work->call->kind;
    const uint64_t all = (uint64_t) (uintptr_t) work->call->rbuf;
    slot_t *slot = &work->slots[segment % DEPTH];
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);
    const bool failed = OMPI_SUCCESS != work->rc;
    /* an element more than a segment fits into the surplus of the stride */
    const uint64_t result =
        failed ? place_of(work, 0 == work->rank ? 1 : 0, segment) : result_of(work, segment);

    for (int i = 1; (!to_root || work->call->root == work->rank) && i < work->size; ++i) {
        const int from = at_distance(work, work->size - i);
        const size_t part = mca_coll_umrddt_reduce_part(work, from, segment);

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
    const size_t count = mca_coll_umrddt_reduce_part(work, work->rank, segment);
    const int spare = 0 == work->rank ? 1 : 0;
    opal_umrddt_gpu_copy_t *copy;
    unsigned n = 0;
    int rc;

    wait_for(work, slot->recvs, &slot->recv_count);
    for (int from = 0; from < work->size; ++from) {
        if (mca_coll_umrddt_reduce_gives(work, from, work->rank)) {
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
    const size_t bytes = mca_coll_umrddt_reduce_output(work) * work->extent;

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
    if (mca_coll_umrddt_reduce_moves_result(work)) {
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
    mca_coll_umrddt_reduce_put(work);
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
