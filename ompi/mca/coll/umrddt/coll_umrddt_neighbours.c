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
 * Neighborhood collectives. If a neighbor is MPI_PROC_NULL, its part of the receive buffer is not
 * written. Receive buffers are therefore copied in as well, so that such parts keep their content.
 */

#include "ompi_config.h"

#include "ompi/mca/topo/base/base.h"

#include "coll_umrddt_forms.h"

#define BOTH (MCA_COLL_UMRDDT_IN | MCA_COLL_UMRDDT_OUT)

/** Numbers of neighbors that send to this process and receive from it; 0 without a topology. */
static void neighbours(ompi_communicator_t *comm, int *sources, int *destinations)
{
    if (OMPI_SUCCESS != mca_topo_base_neighbor_count(comm, sources, destinations)) {
        *sources = 0;
        *destinations = 0;
    }
}

static void neighbor_allgather_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                     const void *sbuf, umrddt_count_t scount,
                                     ompi_datatype_t *sdtype, void *rbuf, umrddt_count_t rcount,
                                     ompi_datatype_t *rdtype)
{
    int sources, destinations;

    neighbours(comm, &sources, &destinations);
    mca_coll_umrddt_side_block(&sides->send, sbuf, 0 < destinations ? 1 : 0, (size_t) scount,
                               sdtype, MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_block(&sides->recv, rbuf, sources, (size_t) rcount, rdtype, BOTH);
}

static void neighbor_allgatherv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                      const void *sbuf, umrddt_count_t scount,
                                      ompi_datatype_t *sdtype, void *rbuf, umrddt_counts_t rcounts,
                                      umrddt_displs_t displs, ompi_datatype_t *rdtype)
{
    int sources, destinations;

    neighbours(comm, &sources, &destinations);
    mca_coll_umrddt_side_block(&sides->send, sbuf, 0 < destinations ? 1 : 0, (size_t) scount,
                               sdtype, MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_vector(&sides->recv, rbuf, sources, rcounts, displs, rdtype, BOTH);
}

static void neighbor_alltoall_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                    const void *sbuf, umrddt_count_t scount,
                                    ompi_datatype_t *sdtype, void *rbuf, umrddt_count_t rcount,
                                    ompi_datatype_t *rdtype)
{
    int sources, destinations;

    neighbours(comm, &sources, &destinations);
    mca_coll_umrddt_side_block(&sides->send, sbuf, destinations, (size_t) scount, sdtype,
                               MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_block(&sides->recv, rbuf, sources, (size_t) rcount, rdtype, BOTH);
}

static void neighbor_alltoallv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                     const void *sbuf, umrddt_counts_t scounts,
                                     umrddt_displs_t sdispls, ompi_datatype_t *sdtype, void *rbuf,
                                     umrddt_counts_t rcounts, umrddt_displs_t rdispls,
                                     ompi_datatype_t *rdtype)
{
    int sources, destinations;

    neighbours(comm, &sources, &destinations);
    mca_coll_umrddt_side_vector(&sides->send, sbuf, destinations, scounts, sdispls, sdtype,
                                MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_vector(&sides->recv, rbuf, sources, rcounts, rdispls, rdtype, BOTH);
}

static void neighbor_alltoallw_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                                     const void *sbuf, umrddt_counts_t scounts,
                                     umrddt_far_t sdispls, ompi_datatype_t *const *sdtypes,
                                     void *rbuf, umrddt_counts_t rcounts, umrddt_far_t rdispls,
                                     ompi_datatype_t *const *rdtypes)
{
    int sources, destinations;

    neighbours(comm, &sources, &destinations);
    mca_coll_umrddt_side_types(&sides->send, sbuf, destinations, scounts, UMRDDT_NO_ARRAY, sdispls,
                               sdtypes, MCA_COLL_UMRDDT_IN);
    mca_coll_umrddt_side_types(&sides->recv, rbuf, sources, rcounts, UMRDDT_NO_ARRAY, rdispls,
                               rdtypes, BOTH);
}

/* ---------------------------------------------------------------------------------------------
 * All forms are messages between neighbors, in any memory, as in coll/basic and coll/libnbc. No
 * agreement is possible for some: MPI returns early in a process with zero counts, which in a graph
 * may be one without neighbors.
 * ------------------------------------------------------------------------------------------- */

#define neighbor_allgather_shape(...)         MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER
#define neighbor_allgatherv_shape(...)        MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER
#define neighbor_alltoall_shape(...)          MCA_COLL_UMRDDT_NEIGHBOR_ALLTOALL
#define neighbor_alltoallv_shape(...)         MCA_COLL_UMRDDT_NEIGHBOR_ALLTOALL
#define neighbor_alltoallw_shape(...)         MCA_COLL_UMRDDT_NEIGHBOR_ALLTOALL
#define neighbor_allgather_root(...)          0
#define neighbor_allgatherv_root(...)         0
#define neighbor_alltoall_root(...)           0
#define neighbor_alltoallv_root(...)          0
#define neighbor_alltoallw_root(...)          0
#define neighbor_allgather_always(...)        true
#define neighbor_allgatherv_always(...)       true
#define neighbor_alltoall_always(...)         true
#define neighbor_alltoallv_always(...)        true
#define neighbor_alltoallw_always(...)        true
#define neighbor_allgather_counts(comm, ...)  false
#define neighbor_allgatherv_counts(comm, ...) false
#define neighbor_alltoall_counts(comm, ...)   false
#define neighbor_alltoallv_counts(comm, ...)  false
#define neighbor_alltoallw_counts(comm, ...)  false

#define neighbor_allgather_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_direct_move(module, comm, neighbor_allgather_shape(), sides, 0)
#define neighbor_allgatherv_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_direct_move(module, comm, neighbor_allgatherv_shape(), sides, 0)
#define neighbor_alltoall_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_direct_move(module, comm, neighbor_alltoall_shape(), sides, 0)
#define neighbor_alltoallv_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_direct_move(module, comm, neighbor_alltoallv_shape(), sides, 0)
#define neighbor_alltoallw_direct(module, comm, sides, all, ...) \
    mca_coll_umrddt_direct_move(module, comm, neighbor_alltoallw_shape(), sides, 0)

/* clang-format off */
MCA_COLL_UMRDDT_DEFINE(neighbor_allgather,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype),
    (sstage, scount, sdtype, rstage, rcount, rdtype))

MCA_COLL_UMRDDT_DEFINE(neighbor_allgatherv,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t displs, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype),
    (sstage, scount, sdtype, rstage, rcounts, displs, rdtype))

MCA_COLL_UMRDDT_DEFINE(neighbor_alltoall,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype),
    (sstage, scount, sdtype, rstage, rcount, rdtype))

MCA_COLL_UMRDDT_DEFINE(neighbor_alltoallv,
    (const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t sdispls, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t rdispls, ompi_datatype_t *rdtype),
    (sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype),
    (sstage, scounts, sdispls, sdtype, rstage, rcounts, rdispls, rdtype))

MCA_COLL_UMRDDT_DEFINE(neighbor_alltoallw,
    (const void *sbuf, umrddt_counts_t scounts, umrddt_far_t sdispls,
     ompi_datatype_t *const *sdtypes, void *rbuf, umrddt_counts_t rcounts, umrddt_far_t rdispls,
     ompi_datatype_t *const *rdtypes),
    (sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes),
    (sstage, MCA_COLL_UMRDDT_VECTOR(0, counts, scounts), MCA_COLL_UMRDDT_VECTOR(0, far, sdispls),
     MCA_COLL_UMRDDT_VECTOR(0, types, sdtypes), rstage, MCA_COLL_UMRDDT_VECTOR(1, counts, rcounts),
     MCA_COLL_UMRDDT_VECTOR(1, far, rdispls), MCA_COLL_UMRDDT_VECTOR(1, types, rdtypes)))
/* clang-format on */
