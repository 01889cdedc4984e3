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
 * Collectives that move data by messages of the PML between the user's buffers. Either all
 * processes have agreed that these are in GPU memory (coll_umrddt_agree.h), or the collective is
 * done so with any memory, and all processes know that from the call.
 */

#ifndef MCA_COLL_UMRDDT_DIRECT_H
#define MCA_COLL_UMRDDT_DIRECT_H

#include "coll_umrddt_agree.h"

#include "umrddt_collectives.h"

BEGIN_C_DECLS

/** Who sends to whom. */
typedef enum mca_coll_umrddt_shape_t {
    MCA_COLL_UMRDDT_NO_SHAPE,  /**< the saved function does the call */
    MCA_COLL_UMRDDT_ALLGATHER, /**< to all the same: the only part of the send side, or with
                                    MPI_IN_PLACE this process's part of the receive side */
    MCA_COLL_UMRDDT_ALLTOALL,
    MCA_COLL_UMRDDT_ALLTOALL_IN_PLACE, /**< in steps */
    MCA_COLL_UMRDDT_GATHER,
    MCA_COLL_UMRDDT_SCATTER,
    MCA_COLL_UMRDDT_BCAST,       /**< from the root to each process */
    MCA_COLL_UMRDDT_BCAST_STEPS, /**< by other processes, in steps */
    MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER,
    MCA_COLL_UMRDDT_NEIGHBOR_ALLTOALL,
    MCA_COLL_UMRDDT_REDUCTION /**< coll_umrddt_reduce.h, in steps */
} mca_coll_umrddt_shape_t;

/**
 * Do a blocking collective, after mca_coll_umrddt_messages_room.
 *
 * @param[in] root  of those that have one
 *
 * @return OMPI_SUCCESS, or the first error of a message or copy; all others have ended
 */
int mca_coll_umrddt_direct_move(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                mca_coll_umrddt_shape_t shape, const mca_coll_umrddt_sides_t *sides,
                                int root);

/**
 * A blocking bcast.
 *
 * @param[in] bytes  the buffers of all processes are contiguous
 *
 * @return as mca_coll_umrddt_direct_move
 */
int mca_coll_umrddt_direct_bcast(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, bool bytes, int root);

/** In an intercommunicator, in place of the saved function: the root sends to the first process of
 * the other group, and that to the rest of its group. With any memory. */
int mca_coll_umrddt_direct_bcast_inter(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                       const mca_coll_umrddt_sides_t *sides, int root);

/**
 * Start a nonblocking collective, or initialize a persistent one. The arrays of the call are read
 * before the return.
 *
 * @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE. Errors of messages and copies are those of the
 *         request, after all others have ended
 */
int mca_coll_umrddt_direct_request(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                   mca_coll_umrddt_shape_t shape,
                                   const mca_coll_umrddt_sides_t *sides, int root, bool persistent,
                                   ompi_request_t **request);

/**
 * Returns true if a nonblocking or persistent call that has a shape is done by messages, with any
 * memory. The same result in all processes.
 */
static inline bool mca_coll_umrddt_is_request(mca_coll_umrddt_module_t *module,
                                              ompi_communicator_t *comm, bool persistent)
{
    return mca_coll_umrddt_agrees(module, comm)
           && (!persistent
               || UMRDDT_COLLECTIVES_TAGS - MCA_COLL_UMRDDT_TURNS - 1 > module->persistent);
}

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_DIRECT_H */
