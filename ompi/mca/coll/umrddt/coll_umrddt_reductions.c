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
 * Reductions: the buffers of each, and the parts that a process reads and writes. Predefined
 * operations run on the GPU if all processes agree (coll_umrddt_reduce.c). Otherwise the operation,
 * maybe user-defined, runs on the CPU in system memory. An Open MPI with CUDA does the same with
 * slower copies, so reductions on GPU memory are never passed through.
 */

#include "coll_umrddt_forms.h"
#include "coll_umrddt_reduce.h"

/** What a call is, for reductions in GPU memory. */
#define DESCRIBE(name, ...)                                                                       \
    sides->reduction = (mca_coll_umrddt_reduction_t)                                              \
    {                                                                                             \
        .kind = MCA_COLL_UMRDDT_KIND_##name, .sbuf = sbuf, .rbuf = rbuf, .type = dtype, .op = op, \
        __VA_ARGS__                                                                               \
    }

/** Both buffers of a reduction of @p count elements; @p gets: this process receives a result. */
static void both_sides(mca_coll_umrddt_sides_t *sides, const void *sbuf, void *rbuf,
                       umrddt_count_t count, ompi_datatype_t *dtype, bool gets)
{
    unsigned flow = gets ? MCA_COLL_UMRDDT_OUT : 0;

    sides->handled = true;
    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
        flow |= MCA_COLL_UMRDDT_IN;
    } else {
        mca_coll_umrddt_side_block(&sides->send, sbuf, 1, (size_t) count, dtype,
                                   MCA_COLL_UMRDDT_IN);
    }
    mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, (size_t) count, dtype, flow);
}

static void allreduce_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                            const void *sbuf, void *rbuf, umrddt_count_t count,
                            ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    (void) comm;
    DESCRIBE(allreduce, .count = (size_t) count);
    both_sides(sides, sbuf, rbuf, count, dtype, true);
}

static void scan_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm, const void *sbuf,
                       void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype,
                       struct ompi_op_t *op)
{
    (void) comm;
    DESCRIBE(scan, .count = (size_t) count);
    both_sides(sides, sbuf, rbuf, count, dtype, true);
}

static void exscan_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                         const void *sbuf, void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype,
                         struct ompi_op_t *op)
{
    DESCRIBE(exscan, .count = (size_t) count);
    /* the first process receives nothing, and its buffer stays unchanged */
    both_sides(sides, sbuf, rbuf, count, dtype, 0 != ompi_comm_rank(comm));
}

static void reduce_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                         const void *sbuf, void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype,
                         struct ompi_op_t *op, int root)
{
    const bool inter = OMPI_COMM_IS_INTER(comm);
    const bool gives = inter ? 0 <= root : MPI_IN_PLACE != sbuf;
    const bool gets = inter ? MPI_ROOT == root : ompi_comm_rank(comm) == root;

    DESCRIBE(reduce, .count = (size_t) count, .root = root);
    sides->handled = true;
    mca_coll_umrddt_side_none(&sides->send, sbuf);
    mca_coll_umrddt_side_none(&sides->recv, rbuf);
    if (gives) {
        mca_coll_umrddt_side_block(&sides->send, sbuf, 1, (size_t) count, dtype,
                                   MCA_COLL_UMRDDT_IN);
    }
    if (gets) {
        mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, (size_t) count, dtype,
                                   MCA_COLL_UMRDDT_OUT | (inter || gives ? 0 : MCA_COLL_UMRDDT_IN));
    }
}

/** A reduction of @p all elements of which this process receives @p mine. */
static void scattered_sides(mca_coll_umrddt_sides_t *sides, const void *sbuf, void *rbuf,
                            size_t all, size_t mine, ompi_datatype_t *dtype)
{
    sides->handled = true;
    if (MPI_IN_PLACE != sbuf) {
        mca_coll_umrddt_side_block(&sides->send, sbuf, 1, all, dtype, MCA_COLL_UMRDDT_IN);
        mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, mine, dtype, MCA_COLL_UMRDDT_OUT);
        return;
    }
    mca_coll_umrddt_side_none(&sides->send, sbuf);
    mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, all, dtype, MCA_COLL_UMRDDT_IN);
    if (0 < mine) {
        /* all of it is input, and the result is at its beginning */
        sides->recv.extra = 0;
        sides->recv.extra_only = mine;
        sides->recv.extra_flow = MCA_COLL_UMRDDT_OUT;
    }
}

/** Elements of all processes. */
static size_t sum(ompi_communicator_t *comm, umrddt_counts_t rcounts)
{
    size_t all = 0;

    for (int i = 0; i < ompi_comm_size(comm); ++i) {
        all += UMRDDT_COUNTS_GET(rcounts, i);
    }
    return all;
}

static void reduce_scatter_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                 const void *sbuf, void *rbuf, umrddt_counts_t rcounts,
                                 ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    DESCRIBE(reduce_scatter, .rcounts = rcounts);
    scattered_sides(sides, sbuf, rbuf, sum(comm, rcounts),
                    UMRDDT_COUNTS_GET(rcounts, ompi_comm_rank(comm)), dtype);
}

static void reduce_scatter_block_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                       const void *sbuf, void *rbuf, umrddt_count_t rcount,
                                       ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    DESCRIBE(reduce_scatter_block, .count = (size_t) rcount);
    scattered_sides(sides, sbuf, rbuf, (size_t) rcount * (size_t) ompi_comm_size(comm),
                    (size_t) rcount, dtype);
}

/* ---------------------------------------------------------------------------------------------
 * In GPU memory (coll_umrddt_reduce.h)
 * ------------------------------------------------------------------------------------------- */

#define allreduce_counts(comm, sbuf, rbuf, count, dtype, op) \
    mca_coll_umrddt_reduce_counts(comm, (size_t) (count), dtype, op)
#define scan_counts   allreduce_counts
#define exscan_counts allreduce_counts
#define reduce_counts(comm, sbuf, rbuf, count, dtype, op, root) \
    mca_coll_umrddt_reduce_counts(comm, (size_t) (count), dtype, op)
#define reduce_scatter_counts(comm, sbuf, rbuf, rcounts, dtype, op) \
    (!OMPI_COMM_IS_INTER(comm)                                      \
     && mca_coll_umrddt_reduce_counts(comm, sum(comm, rcounts), dtype, op))
#define reduce_scatter_block_counts(comm, sbuf, rbuf, rcount, dtype, op)                          \
    mca_coll_umrddt_reduce_counts(comm, (size_t) (rcount) * (size_t) ompi_comm_size(comm), dtype, \
                                  op)

#define allreduce_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_reduce_direct(&(sides)->reduction)
#define reduce_direct               allreduce_direct
#define reduce_scatter_direct       allreduce_direct
#define reduce_scatter_block_direct allreduce_direct
#define scan_direct                 allreduce_direct
#define exscan_direct               allreduce_direct

/* Nonblocking and persistent forms, with any memory. */
#define REQUEST_SHAPE(comm, count, dtype, op)                             \
    (mca_coll_umrddt_reduce_is_request(comm, (size_t) (count), dtype, op) \
         ? MCA_COLL_UMRDDT_REDUCTION                                      \
         : MCA_COLL_UMRDDT_NO_SHAPE)
#define allreduce_shape(comm, sbuf, rbuf, count, dtype, op)    REQUEST_SHAPE(comm, count, dtype, op)
#define scan_shape                                             allreduce_shape
#define exscan_shape                                           allreduce_shape
#define reduce_shape(comm, sbuf, rbuf, count, dtype, op, root) REQUEST_SHAPE(comm, count, dtype, op)
#define reduce_scatter_shape(comm, sbuf, rbuf, rcounts, dtype, op) \
    (OMPI_COMM_IS_INTER(comm) ? MCA_COLL_UMRDDT_NO_SHAPE           \
                              : REQUEST_SHAPE(comm, sum(comm, rcounts), dtype, op))
#define reduce_scatter_block_shape(comm, sbuf, rbuf, rcount, dtype, op) \
    REQUEST_SHAPE(comm, (size_t) (rcount) * (size_t) ompi_comm_size(comm), dtype, op)
#define allreduce_root(...)              0
#define scan_root(...)                   0
#define exscan_root(...)                 0
#define reduce_root(...)                 0
#define reduce_scatter_root(...)         0
#define reduce_scatter_block_root(...)   0
#define allreduce_always(...)            false
#define scan_always(...)                 false
#define exscan_always(...)               false
#define reduce_always(...)               false
#define reduce_scatter_always(...)       false
#define reduce_scatter_block_always(...) false

/* clang-format off */
#define REDUCTION                                                                              \
    (const void *sbuf, void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype, struct ompi_op_t *op),   \
    (sbuf, rbuf, count, dtype, op),                                                            \
    (sstage, rstage, count, dtype, op)
#define DEFINE(name, ...) MCA_COLL_UMRDDT_DEFINE(name, __VA_ARGS__)

DEFINE(allreduce, REDUCTION)
DEFINE(scan, REDUCTION)
DEFINE(exscan, REDUCTION)

MCA_COLL_UMRDDT_DEFINE(reduce,
    (const void *sbuf, void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype, struct ompi_op_t *op,
     int root),
    (sbuf, rbuf, count, dtype, op, root),
    (sstage, rstage, count, dtype, op, root))

MCA_COLL_UMRDDT_DEFINE(reduce_scatter,
    (const void *sbuf, void *rbuf, umrddt_counts_t rcounts, ompi_datatype_t *dtype,
     struct ompi_op_t *op),
    (sbuf, rbuf, rcounts, dtype, op),
    (sstage, rstage, rcounts, dtype, op))

MCA_COLL_UMRDDT_DEFINE(reduce_scatter_block,
    (const void *sbuf, void *rbuf, umrddt_count_t rcount, ompi_datatype_t *dtype, struct ompi_op_t *op),
    (sbuf, rbuf, rcount, dtype, op),
    (sstage, rstage, rcount, dtype, op))
/* clang-format on */

int mca_coll_umrddt_reduce_local(const void *inbuf, void *inoutbuf, umrddt_count_t count,
                                 ompi_datatype_t *dtype, struct ompi_op_t *op,
                                 mca_coll_base_module_t *base)
{
    mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;
    mca_coll_umrddt_stage_t *stage = NULL;
    mca_coll_umrddt_sides_t sides;
    int rc;

    if (mca_coll_umrddt_reduce_local_direct(inbuf, inoutbuf, (size_t) count, dtype, op, &rc)) {
        return rc;
    }
    sides.handled = true;
    mca_coll_umrddt_side_block(&sides.send, inbuf, 1, (size_t) count, dtype, MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_block(&sides.recv, inoutbuf, 1, (size_t) count, dtype,
                               MCA_COLL_UMRDDT_IN | MCA_COLL_UMRDDT_OUT);
    rc = mca_coll_umrddt_stage_new(&sides, &stage);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == stage) {
        return module->saved.coll_reduce_local(inbuf, inoutbuf, count, dtype, op,
                                               module->saved.coll_reduce_local_module);
    }
    rc = mca_coll_umrddt_stage_in(stage);
    if (OMPI_SUCCESS == rc) {
        rc = module->saved.coll_reduce_local(mca_coll_umrddt_stage_send(stage),
                                             mca_coll_umrddt_stage_recv(stage), count, dtype, op,
                                             module->saved.coll_reduce_local_module);
    }
    return mca_coll_umrddt_stage_end(stage, rc);
}
