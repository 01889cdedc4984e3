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
 * Modules, which replace the functions of one communicator and call the saved ones.
 */

#ifndef MCA_COLL_UMRDDT_MODULE_H
#define MCA_COLL_UMRDDT_MODULE_H

#include "coll_umrddt.h"

BEGIN_C_DECLS

/** Schedule of agreements for one kind: coll_umrddt_agree.c. The same in all processes, but used.
 */
typedef struct mca_coll_umrddt_schedule_t {
    uint32_t left;   /**< calls up to the one with the next agreement */
    uint32_t period; /**< calls from the next agreement to the one after it */
    bool used;       /**< this process had a buffer in GPU memory since the last agreement */
} mca_coll_umrddt_schedule_t;

/**
 * Largest communicators, of processes of one node, in which parts of any size go from GPU to GPU:
 * of a broadcast, and of an allgather or all-to-all. Measured with 2 and 4 processes.
 */
#define MCA_COLL_UMRDDT_NEAR_BCAST    4
#define MCA_COLL_UMRDDT_NEAR_EXCHANGE 2

/** Tags of nonblocking collectives in steps: the last UMRDDT_COLLECTIVES_TAGS. */
#define MCA_COLL_UMRDDT_TURNS 64

/** The module that replaces the functions of one communicator. */
typedef struct mca_coll_umrddt_module_t {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t saved; /**< the original functions; modules in use are retained */
    bool enabled;                    /**< saved is set */
    /** Number of processes, if at most MCA_COLL_UMRDDT_NEAR_BCAST, all on this node; else INT_MAX.
     */
    int near;
    int queries; /**< 1: query the buffers; 0: the user asserts that they are in system memory; -1:
                 info key not read yet; atomic */
    enum {
        MCA_COLL_UMRDDT_UNKNOWN,
        MCA_COLL_UMRDDT_AGREES,
        MCA_COLL_UMRDDT_DISAGREES
    } agrees; /**< whether there are agreements on this communicator */
    mca_coll_umrddt_schedule_t schedules[MCA_COLL_UMRDDT_KINDS];
    uint64_t sequence; /**< number of nonblocking collectives in steps */
    uint32_t
        served[MCA_COLL_UMRDDT_TURNS]; /**< of each of their tags: calls that have ended here */
    int persistent; /**< number of persistent direct collectives so far, the same in all processes
                     */
    struct mca_coll_umrddt_direct_t *direct; /**< lists of messages, or NULL */
} mca_coll_umrddt_module_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_module_t);

/** Create the module of a communicator that pml/umrddt serves; NULL: no memory. */
mca_coll_base_module_t *mca_coll_umrddt_module_new(void);

/** Read the info key mpi_communication_pattern, once. */
bool mca_coll_umrddt_module_read(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm);

/** Returns false if all buffers on this communicator are known to be in system memory. */
static inline bool mca_coll_umrddt_requests(mca_coll_umrddt_module_t *module,
                                            ompi_communicator_t *comm)
{
    int queries = __atomic_load_n(&module->queries, __ATOMIC_RELAXED);

    return 0 <= queries ? 0 != queries : mca_coll_umrddt_module_read(module, comm);
}

/** Type of a module's function. */
#define MCA_COLL_UMRDDT_TYPE(name) __typeof__(*((mca_coll_base_module_t *) NULL)->coll_##name)

#define MCA_COLL_UMRDDT_DECLARE(name)                             \
    extern MCA_COLL_UMRDDT_TYPE(name) mca_coll_umrddt_##name;     \
    extern MCA_COLL_UMRDDT_TYPE(i##name) mca_coll_umrddt_i##name; \
    extern MCA_COLL_UMRDDT_TYPE(name##_init) mca_coll_umrddt_##name##_init;
MCA_COLL_UMRDDT_CALLS(MCA_COLL_UMRDDT_DECLARE)
extern MCA_COLL_UMRDDT_TYPE(reduce_local) mca_coll_umrddt_reduce_local;

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_MODULE_H */
