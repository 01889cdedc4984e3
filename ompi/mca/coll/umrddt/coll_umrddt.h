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
 * Collectives on GPU buffers that this Open MPI cannot handle itself, or handles slowly. README.md
 * lists the files.
 */

/*
 * A module saves the functions of its communicator and replaces them. A call whose buffers the CPU
 * can access is passed to the saved function at once. For a buffer in device memory a *stage* is
 * created: system memory with the same offsets as the buffer, so that counts, displacements and
 * datatypes stay unchanged. The device fills it before the saved function runs, and reads it back
 * afterwards. The messages between processes therefore do not depend on the memory kind of the
 * buffers, and each process decides for itself.
 */

#ifndef MCA_COLL_UMRDDT_H
#define MCA_COLL_UMRDDT_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "umrddt_compat.h"

/* Debian's and Ubuntu's packages lack a header that Open MPI's op.h includes. Only the name of the
 * type is needed here. */
#if !defined(OMPI_OP_H)
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;
#endif

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/coll.h"

#include "coll_umrddt_params.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Parameters and counters
 * ------------------------------------------------------------------------------------------- */

/** All counters: name, help text. They only grow, and are registered as performance variables. */
#define MCA_COLL_UMRDDT_COUNTERS(X)                                                     \
    X(passed, "Collectives passed through: no buffer is in GPU memory")                 \
    X(passed_gpu, "Collectives on GPU memory passed through to an Open MPI with CUDA")  \
    X(staged, "Collectives done on copies in system memory")                            \
    X(staged_nonblocking, "Of these, nonblocking ones, and starts of persistent ones")  \
    X(direct, "Collectives by messages between their buffers, from GPU to GPU")         \
    X(reductions, "Reductions by kernels of GPUs: of a segment, or MPI_Reduce_local")   \
    X(agreements, "Agreements of all processes whether a collective can do that")       \
    X(modes_read, "Processes looked up in the modex for agreements")                    \
    X(bytes_in, "Bytes copied from GPUs for staged collectives")                        \
    X(bytes_out, "Bytes copied to GPUs for staged collectives")                         \
    X(memory_queries, "Addresses looked up to determine their kind of memory")          \
    X(layouts_read, "Datatypes read because their layout was not in the cache")         \
    X(stages_pinned, "Staging buffers in the component's pinned memory")                \
    X(stages_pageable, "Staging buffers in other memory")                               \
    X(sides_packed, "Send or receive buffers that GPUs packed into these, or unpacked") \
    X(failures, "Collectives that failed for lack of memory, or because of the CUDA "   \
                "driver")

#define MCA_COLL_UMRDDT_COUNTER_FIELD(name, help) uint64_t name;
typedef struct mca_coll_umrddt_counters_t {
    MCA_COLL_UMRDDT_COUNTERS(MCA_COLL_UMRDDT_COUNTER_FIELD)
} mca_coll_umrddt_counters_t;

/** GPU memory that the other components may access directly. Set before the first call. */
typedef enum mca_coll_umrddt_base_t {
    MCA_COLL_UMRDDT_BASE_NONE,    /**< this Open MPI has no CUDA support */
    MCA_COLL_UMRDDT_BASE_NOTHING, /**< CUDA support, but not in its PML; or disabled by the user */
    MCA_COLL_UMRDDT_BASE_SAFE     /**< contiguous memory that it handles correctly */
} mca_coll_umrddt_base_t;

extern mca_coll_umrddt_base_t mca_coll_umrddt_base;
extern mca_coll_umrddt_params_t mca_coll_umrddt_params;
extern mca_coll_umrddt_counters_t mca_coll_umrddt_counters;
UMRDDT_COMPONENT extern mca_coll_base_component_t mca_coll_umrddt_component;

#define MCA_COLL_UMRDDT_COUNT_ADD(name, n) \
    ((void) __atomic_add_fetch(&mca_coll_umrddt_counters.name, (n), __ATOMIC_RELAXED))
#define MCA_COLL_UMRDDT_COUNT(name) MCA_COLL_UMRDDT_COUNT_ADD(name, 1)

/* ---------------------------------------------------------------------------------------------
 * Collectives
 * ------------------------------------------------------------------------------------------- */

/** The collectives with buffer arguments. Each also has a nonblocking and a persistent form. */
#define MCA_COLL_UMRDDT_CALLS(X) \
    X(allgather)                 \
    X(allgatherv)                \
    X(allreduce)                 \
    X(alltoall)                  \
    X(alltoallv)                 \
    X(alltoallw)                 \
    X(bcast)                     \
    X(exscan)                    \
    X(gather)                    \
    X(gatherv)                   \
    X(reduce)                    \
    X(reduce_scatter)            \
    X(reduce_scatter_block)      \
    X(scan)                      \
    X(scatter)                   \
    X(scatterv)                  \
    X(neighbor_allgather)        \
    X(neighbor_allgatherv)       \
    X(neighbor_alltoall)         \
    X(neighbor_alltoallv)        \
    X(neighbor_alltoallw)

/** The kinds of blocking collectives. */
#define MCA_COLL_UMRDDT_KIND(name) MCA_COLL_UMRDDT_KIND_##name,
typedef enum mca_coll_umrddt_kind_t {
    MCA_COLL_UMRDDT_CALLS(MCA_COLL_UMRDDT_KIND) MCA_COLL_UMRDDT_KINDS
} mca_coll_umrddt_kind_t;

/** Number of processes that this one exchanges data with: of the remote group, or all. */
static inline int mca_coll_umrddt_others(const ompi_communicator_t *comm)
{
    return OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size((ompi_communicator_t *) comm)
                                    : ompi_comm_size((ompi_communicator_t *) comm);
}

/**
 * Report an error to the user. @param[in] bytes of the memory that could not be allocated
 *
 * @return MPI's error code, valid both as a return value and in a status
 */
int mca_coll_umrddt_fail(int rc, size_t bytes);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_H */
