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
 * Communicators. bringup/pml_umrddt_comms.c adds and removes them.
 */

#ifndef MCA_PML_UMRDDT_COMM_H
#define MCA_PML_UMRDDT_COMM_H

#include "ompi_config.h"

#include <time.h>

#include "opal/class/opal_list.h"

#include "opal/mca/common/umrddt_select/umrddt_select_hints.h"

#include "ompi/communicator/communicator.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "umrddt_collectives.h"
#include "umrddt_gate.h"

BEGIN_C_DECLS

/** One communicator. */
struct mca_pml_umrddt_comm_t {
    opal_list_item_t super;
    ompi_communicator_t *comm;
    bool bypass;      /**< info key: no message is handled */
    int scheme;       /**< mca_pml_umrddt_scheme_id_t of the info key or the parameter */
    uint16_t schemes; /**< MCA_PML_UMRDDT_BIT_*: allowed schemes */
    int pattern;      /**< mca_pml_umrddt_pattern_t, atomic */
    bool listening;   /**< envelopes arrived: poll for NACKs */
    mca_pml_umrddt_peer_t **peers; /**< by rank (of the remote group), filled on demand */
    int peer_count;
    umrddt_gate_t gate;         /**< with the messages claimed by probes, ordered for each source */
    uint64_t claim_order;       /**< of the next claim; atomic */
    uint64_t added;             /**< mca_pml_umrddt_time, after all processes agreed on the id */
    opal_umrddt_hints_t *hints; /**< about small messages; or NULL; atomic */
    bool keeps;                 /**< all receives without umrddt_gate_keeps are posted; atomic */
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_comm_t);

/** Size of the table of communicators by index. Unused pages of it use no memory. */
#define MCA_PML_UMRDDT_COMMS (1u << 18)

/** By index; empty unless mca_pml_umrddt.usable. Static, to save an indirection per message. */
extern mca_pml_umrddt_comm_t *mca_pml_umrddt_comms[MCA_PML_UMRDDT_COMMS];

/** Slow path of mca_pml_umrddt_peer, in pml_umrddt_peer.c. */
mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank);

/** Get the peer at @p rank (of the remote group). @return NULL on failure */
static inline mca_pml_umrddt_peer_t *mca_pml_umrddt_peer(mca_pml_umrddt_comm_t *comm, int rank)
{
    /* Without the lock: the acquire load makes the peer's fields visible. */
    mca_pml_umrddt_peer_t **peers = __atomic_load_n(&comm->peers, __ATOMIC_ACQUIRE);
    mca_pml_umrddt_peer_t *peer = NULL;

    if (OPAL_LIKELY(NULL != peers && (unsigned) rank < (unsigned) comm->peer_count)) {
        peer = __atomic_load_n(&peers[rank], __ATOMIC_ACQUIRE);
    }
    return OPAL_LIKELY(NULL != peer) ? peer : mca_pml_umrddt_peer_find(comm, rank);
}

/** Get our record of a communicator. @return NULL: all its messages are passed through */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_comm_find(const ompi_communicator_t *comm)
{
    uint32_t index = UMRDDT_COMM_INDEX(comm);

    return OPAL_UNLIKELY(index >= MCA_PML_UMRDDT_COMMS) ? NULL : mca_pml_umrddt_comms[index];
}

/** Nanoseconds of a clock that all processes of a node have. */
static inline uint64_t mca_pml_umrddt_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/** Get our record of MPI_COMM_WORLD, for messages that belong to no communicator. NULL: none */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_world(void)
{
    mca_pml_umrddt_comm_t *world = mca_pml_umrddt_comm_find(&ompi_mpi_comm_world.comm);

    /* without MPI_Init its index may be that of another one */
    return NULL != world && &ompi_mpi_comm_world.comm == world->comm ? world : NULL;
}

/** Returns true if no message with this tag is handled: it is one of Open MPI's internal tags. */
static inline bool mca_pml_umrddt_is_internal(int tag)
{
    return OMPI_ANY_TAG > tag && !UMRDDT_IS_COLLECTIVES_TAG(tag);
}

/** As mca_pml_umrddt_comm_find; NULL if no message with this tag can be an envelope. */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_watched(const ompi_communicator_t *comm,
                                                            int tag)
{
    return mca_pml_umrddt_is_internal(tag) ? NULL : mca_pml_umrddt_comm_find(comm);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_COMM_H */
