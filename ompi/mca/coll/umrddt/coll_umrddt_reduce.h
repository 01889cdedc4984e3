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
 * Reductions of predefined operations in GPU memory: the data goes from GPU to GPU, and kernels
 * combine it. coll_umrddt_reduce.c has the algorithm.
 */

#ifndef MCA_COLL_UMRDDT_REDUCE_H
#define MCA_COLL_UMRDDT_REDUCE_H

#include "coll_umrddt_agree.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_args.h"

BEGIN_C_DECLS

/** Maximum number of processes of a communicator. */
#define MCA_COLL_UMRDDT_REDUCE_PROCESSES 1024

/**
 * The kernels' names of an operation and a type.
 *
 * @return false: a user-defined operation or type, or one that kernels do not have
 */
bool mca_coll_umrddt_reduce_op(const ompi_op_t *op, umrddt_gpu_reduce_op_t *which);
bool mca_coll_umrddt_reduce_type(const ompi_datatype_t *type, umrddt_gpu_reduce_type_t *which);

/**
 * Returns true if a reduction of @p count elements counts for agreements. The same in all
 * processes. Each sends a message to each other one, so many processes need more data.
 */
static inline bool mca_coll_umrddt_reduce_counts(ompi_communicator_t *comm, size_t count,
                                                 const ompi_datatype_t *type, const ompi_op_t *op)
{
    umrddt_gpu_reduce_op_t which;

    return mca_coll_umrddt_counts(comm, count, type)
           && count * type->super.size
                  >= mca_coll_umrddt_params.direct_min * (size_t) ompi_comm_size(comm) / 2
           && mca_coll_umrddt_reduce_op(op, &which);
}

/**
 * What this process states about a call that counts: MCA_COLL_UMRDDT_REDUCES if it can do it in GPU
 * memory, else 0. Queries the buffers. In the former case, call->work has all that the call needs
 * until mca_coll_umrddt_reduce_direct or mca_coll_umrddt_reduce_release.
 */
unsigned mca_coll_umrddt_reduce_states(ompi_communicator_t *comm,
                                       mca_coll_umrddt_reduction_t *call);

/** Release call->work, if any: the agreement has another result. */
void mca_coll_umrddt_reduce_release(mca_coll_umrddt_reduction_t *call);

/**
 * Do a call that all processes have agreed to do in GPU memory. Releases call->work.
 *
 * @return OMPI_SUCCESS, or the first error. After an error of a message or a kernel, all others
 *         have ended
 */
int mca_coll_umrddt_reduce_direct(const mca_coll_umrddt_reduction_t *call);

/**
 * MPI_Reduce_local by a kernel.
 *
 * @return false: not possible, and nothing was done
 */
bool mca_coll_umrddt_reduce_local_direct(const void *inbuf, void *inoutbuf, size_t count,
                                         ompi_datatype_t *type, ompi_op_t *op, int *rc);

/** As mca_coll_umrddt_reduce_counts, for a nonblocking or persistent call that is done by messages,
 * with any memory. */
static inline bool mca_coll_umrddt_reduce_is_request(ompi_communicator_t *comm, size_t count,
                                                     const ompi_datatype_t *type,
                                                     const ompi_op_t *op)
{
    umrddt_gpu_reduce_type_t which;

    return mca_coll_umrddt_reduce_counts(comm, count, type, op)
           && MCA_COLL_UMRDDT_REDUCE_PROCESSES >= ompi_comm_size(comm)
           && mca_coll_umrddt_reduce_type(type, &which);
}

/**
 * Set the steps of such a call. Reads the arrays of the call.
 *
 * @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_coll_umrddt_reduce_request(mca_coll_umrddt_module_t *module,
                                   struct mca_coll_umrddt_direct_t *direct,
                                   ompi_communicator_t *comm, const mca_coll_umrddt_sides_t *sides);

/** Free the lists of messages; no call is in progress. */
void mca_coll_umrddt_reductions_close(void);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_REDUCE_H */
