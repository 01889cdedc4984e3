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
 * Collectives that move data from GPU to GPU, by messages of the PML between the user's buffers.
 * All processes have agreed on that (coll_umrddt_agree.h). All functions block. An error is that of
 * one message or copy; all others have ended.
 */

#ifndef MCA_COLL_UMRDDT_DIRECT_H
#define MCA_COLL_UMRDDT_DIRECT_H

#include "coll_umrddt.h"

BEGIN_C_DECLS

/** Free what a module keeps for its direct collectives. NULL is allowed. */
void mca_coll_umrddt_direct_free(struct mca_coll_umrddt_direct_t *direct);

/**
 * Allocate the lists for any collective on the communicator, before an agreement. @return false: no
 * memory, so this process must not state MCA_COLL_UMRDDT_ALL_GPU
 */
bool mca_coll_umrddt_direct_room(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm);

/**
 * Allgather(v) and alltoall(v,w): data from each process to each.
 *
 * @param[in] same  all get the same data: the only part of the send side, or with MPI_IN_PLACE this
 *                  process's part of the receive side
 */
int mca_coll_umrddt_direct_all(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                               const mca_coll_umrddt_sides_t *sides, bool same);

int mca_coll_umrddt_direct_gather(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                  const mca_coll_umrddt_sides_t *sides, int root);
int mca_coll_umrddt_direct_scatter(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                   const mca_coll_umrddt_sides_t *sides, int root);

/** @param[in] bytes  the buffers of all processes are contiguous */
int mca_coll_umrddt_direct_bcast(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, bool bytes, int root);

/** @param[in] same  all neighbors get the only part of the send side */
int mca_coll_umrddt_direct_neighbours(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                      const mca_coll_umrddt_sides_t *sides, bool same);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_DIRECT_H */
