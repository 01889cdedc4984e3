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
 * Collectives that move data: the buffers of each, and the parts that a process reads and writes.
 * Arguments that are not significant on a process are passed on without a query. See
 * coll_umrddt_forms.h first.
 */

#include "coll_umrddt_forms.h"

/** A send buffer, unless it is MPI_IN_PLACE. */
static void send_block(mca_coll_umrddt_sides_t *sides, const void *sbuf, int parts,
                       umrddt_count_t count, ompi_datatype_t *type)
{
    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
    } else {
        mca_coll_umrddt_side_block(&sides->send, sbuf, parts, (size_t) count, type,
                                   MCA_COLL_UMRDDT_IN);
    }
}

static void allgather_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                            const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                            void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype)
{
    send_block(sides, sbuf, 1, scount, sdtype);
    mca_coll_umrddt_side_block(&sides->recv, rbuf, mca_coll_umrddt_others(comm), (size_t) rcount,
                               rdtype, MCA_COLL_UMRDDT_OUT);
    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_own(&sides->recv, ompi_comm_rank(comm));
    }
}

static void allgatherv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                             const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                             void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t displs,
                             ompi_datatype_t *rdtype)
{
    send_block(sides, sbuf, 1, scount, sdtype);
    mca_coll_umrddt_side_vector(&sides->recv, rbuf, mca_coll_umrddt_others(comm), rcounts, displs,
                                rdtype, MCA_COLL_UMRDDT_OUT);
    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_own(&sides->recv, ompi_comm_rank(comm));
    }
}

static void alltoall_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                           const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                           void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype)
{
    const int parts = mca_coll_umrddt_others(comm);

    send_block(sides, sbuf, parts, scount, sdtype);
    mca_coll_umrddt_side_block(&sides->recv, rbuf, parts, (size_t) rcount, rdtype,
                               MCA_COLL_UMRDDT_OUT
                                   | (MPI_IN_PLACE == sbuf ? MCA_COLL_UMRDDT_IN : 0));
}

static void alltoallv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                            const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t sdispls,
                            ompi_datatype_t *sdtype, void *rbuf, umrddt_counts_t rcounts,
                            umrddt_displs_t rdispls, ompi_datatype_t *rdtype)
{
    const int parts = mca_coll_umrddt_others(comm);
    unsigned flow = MCA_COLL_UMRDDT_OUT;

    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
        flow |= MCA_COLL_UMRDDT_IN;
    } else {
        mca_coll_umrddt_side_vector(&sides->send, sbuf, parts, scounts, sdispls, sdtype,
                                    MCA_COLL_UMRDDT_IN);
    }
    mca_coll_umrddt_side_vector(&sides->recv, rbuf, parts, rcounts, rdispls, rdtype, flow);
}

static void alltoallw_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                            const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t sdispls,
                            ompi_datatype_t *const *sdtypes, void *rbuf, umrddt_counts_t rcounts,
                            umrddt_displs_t rdispls, ompi_datatype_t *const *rdtypes)
{
    const int parts = mca_coll_umrddt_others(comm);
    unsigned flow = MCA_COLL_UMRDDT_OUT;

    if (MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
        flow |= MCA_COLL_UMRDDT_IN;
    } else {
        mca_coll_umrddt_side_types(&sides->send, sbuf, parts, scounts, sdispls, UMRDDT_NO_ARRAY,
                                   sdtypes, MCA_COLL_UMRDDT_IN);
    }
    mca_coll_umrddt_side_types(&sides->recv, rbuf, parts, rcounts, rdispls, UMRDDT_NO_ARRAY,
                               rdtypes, flow);
}

static void bcast_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm, void *rbuf,
                        umrddt_count_t count, ompi_datatype_t *dtype, int root)
{
    const bool reads = OMPI_COMM_IS_INTER(comm) ? MPI_ROOT == root : ompi_comm_rank(comm) == root;

    mca_coll_umrddt_side_none(&sides->send, NULL);
    if (MPI_PROC_NULL == root) {
        mca_coll_umrddt_side_none(&sides->recv, rbuf);
    } else {
        mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, (size_t) count, dtype,
                                   reads ? MCA_COLL_UMRDDT_IN : MCA_COLL_UMRDDT_OUT);
    }
}

/** Role of a process in a rooted collective. */
typedef enum role_t {
    ROLE_ROOT,  /**< the root, which has data of its own */
    ROLE_LEAF,  /**< sends data to the root, or receives it */
    ROLE_APART, /**< the root of an intercommunicator, without data of its own */
    ROLE_NONE   /**< in the root's group, not involved */
} role_t;

static role_t role_of(ompi_communicator_t *comm, int root)
{
    if (OMPI_COMM_IS_INTER(comm)) {
        return MPI_ROOT == root ? ROLE_APART : MPI_PROC_NULL == root ? ROLE_NONE : ROLE_LEAF;
    }
    return ompi_comm_rank(comm) == root ? ROLE_ROOT : ROLE_LEAF;
}

/** The send side of a gather. */
static void gather_send(mca_coll_umrddt_sides_t *sides, role_t role, const void *sbuf,
                        umrddt_count_t scount, ompi_datatype_t *sdtype)
{
    if (ROLE_ROOT == role || ROLE_LEAF == role) {
        send_block(sides, sbuf, 1, scount, sdtype);
    } else {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
    }
}

static void gather_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                         const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                         void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype, int root)
{
    const role_t role = role_of(comm, root);

    gather_send(sides, role, sbuf, scount, sdtype);
    if (ROLE_ROOT != role && ROLE_APART != role) {
        mca_coll_umrddt_side_none(&sides->recv, rbuf);
        return;
    }
    mca_coll_umrddt_side_block(&sides->recv, rbuf, mca_coll_umrddt_others(comm), (size_t) rcount,
                               rdtype, MCA_COLL_UMRDDT_OUT);
    if (ROLE_ROOT == role && MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_own(&sides->recv, root);
    }
}

static void gatherv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                          const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                          void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t displs,
                          ompi_datatype_t *rdtype, int root)
{
    const role_t role = role_of(comm, root);

    gather_send(sides, role, sbuf, scount, sdtype);
    if (ROLE_ROOT != role && ROLE_APART != role) {
        mca_coll_umrddt_side_none(&sides->recv, rbuf);
        return;
    }
    mca_coll_umrddt_side_vector(&sides->recv, rbuf, mca_coll_umrddt_others(comm), rcounts, displs,
                                rdtype, MCA_COLL_UMRDDT_OUT);
    if (ROLE_ROOT == role && MPI_IN_PLACE == sbuf) {
        mca_coll_umrddt_side_own(&sides->recv, root);
    }
}

/** The receive side of a scatter. */
static void scatter_recv(mca_coll_umrddt_sides_t *sides, role_t role, void *rbuf,
                         umrddt_count_t rcount, ompi_datatype_t *rdtype)
{
    if (MPI_IN_PLACE != rbuf && (ROLE_ROOT == role || ROLE_LEAF == role)) {
        mca_coll_umrddt_side_block(&sides->recv, rbuf, 1, (size_t) rcount, rdtype,
                                   MCA_COLL_UMRDDT_OUT);
    } else {
        mca_coll_umrddt_side_none(&sides->recv, rbuf);
    }
}

static void scatter_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                          const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
                          void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype, int root)
{
    const role_t role = role_of(comm, root);

    scatter_recv(sides, role, rbuf, rcount, rdtype);
    if (ROLE_ROOT == role || ROLE_APART == role) {
        mca_coll_umrddt_side_block(&sides->send, sbuf, mca_coll_umrddt_others(comm),
                                   (size_t) scount, sdtype, MCA_COLL_UMRDDT_IN);
    } else {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
    }
}

static void scatterv_sides(mca_coll_umrddt_sides_t *sides, ompi_communicator_t *comm,
                           const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t displs,
                           ompi_datatype_t *sdtype, void *rbuf, umrddt_count_t rcount,
                           ompi_datatype_t *rdtype, int root)
{
    const role_t role = role_of(comm, root);

    scatter_recv(sides, role, rbuf, rcount, rdtype);
    if (ROLE_ROOT == role || ROLE_APART == role) {
        mca_coll_umrddt_side_vector(&sides->send, sbuf, mca_coll_umrddt_others(comm), scounts,
                                    displs, sdtype, MCA_COLL_UMRDDT_IN);
    } else {
        mca_coll_umrddt_side_none(&sides->send, sbuf);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Calls by messages. All processes must get the same result. In an all-to-all, all processes give
 * MPI_IN_PLACE or none does. The v and w forms are always direct, as processes do not know each
 * other's counts. In an intercommunicator, the two groups may send different sizes, and some
 * processes do not know those of a collective with a root.
 *
 * The shapes of nonblocking calls are those that coll/libnbc has for this many bytes in any memory,
 * or as fast. So nothing has to be agreed.
 * ------------------------------------------------------------------------------------------- */

/** Most processes of a nonblocking bcast to all of which the root sends. */
#define BCAST_FLAT 4

#define SHAPE(is, shape) ((is) ? MCA_COLL_UMRDDT_##shape : MCA_COLL_UMRDDT_NO_SHAPE)

/** Returns true if the parts of an allgather or alltoall have enough bytes, in one of the groups.
 */
static inline bool both_are_large(const ompi_communicator_t *comm, umrddt_count_t scount,
                                  const ompi_datatype_t *sdtype, umrddt_count_t rcount,
                                  const ompi_datatype_t *rdtype)
{
    return mca_coll_umrddt_is_large((size_t) rcount, rdtype)
           || (OMPI_COMM_IS_INTER(comm) && mca_coll_umrddt_is_large((size_t) scount, sdtype));
}

#define allgather_shape(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype) \
    SHAPE(both_are_large(comm, scount, sdtype, rcount, rdtype), ALLGATHER)
#define allgatherv_shape(comm, ...) MCA_COLL_UMRDDT_ALLGATHER
#define ALLTOALL_SHAPE(comm, sbuf)                     \
    (MPI_IN_PLACE != (sbuf) ? MCA_COLL_UMRDDT_ALLTOALL \
                            : SHAPE(!OMPI_COMM_IS_INTER(comm), ALLTOALL_IN_PLACE))
#define alltoall_shape(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype)               \
    (both_are_large(comm, scount, sdtype, rcount, rdtype) ? ALLTOALL_SHAPE(comm, sbuf) \
                                                          : MCA_COLL_UMRDDT_NO_SHAPE)
#define alltoallv_shape(comm, sbuf, ...) ALLTOALL_SHAPE(comm, sbuf)
#define alltoallw_shape                  alltoallv_shape
#define bcast_shape(comm, rbuf, count, dtype, root)                                      \
    (OMPI_COMM_IS_INTER(comm)                                 ? MCA_COLL_UMRDDT_BCAST    \
     : !mca_coll_umrddt_counts(comm, (size_t) (count), dtype) ? MCA_COLL_UMRDDT_NO_SHAPE \
     : BCAST_FLAT >= ompi_comm_size(comm)                     ? MCA_COLL_UMRDDT_BCAST    \
                                                              : MCA_COLL_UMRDDT_BCAST_STEPS)
#define gather_shape(comm, ...) \
    SHAPE(OMPI_COMM_IS_INTER(comm) || gather_counts(comm, __VA_ARGS__), GATHER)
#define gatherv_shape(comm, ...) MCA_COLL_UMRDDT_GATHER
#define scatter_shape(comm, ...) \
    SHAPE(OMPI_COMM_IS_INTER(comm) || scatter_counts(comm, __VA_ARGS__), SCATTER)
#define scatterv_shape(comm, ...) MCA_COLL_UMRDDT_SCATTER

#define allgather_root(...)                                                      0
#define allgatherv_root(...)                                                     0
#define alltoall_root(...)                                                       0
#define alltoallv_root(...)                                                      0
#define alltoallw_root(...)                                                      0
#define bcast_root(rbuf, count, dtype, root)                                     (root)
#define gather_root(sbuf, scount, sdtype, rbuf, rcount, rdtype, root)            (root)
#define gatherv_root(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root)  (root)
#define scatter_root(sbuf, scount, sdtype, rbuf, rcount, rdtype, root)           (root)
#define scatterv_root(sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root) (root)

/* Blocking calls without an agreement: those that coll/inter does not have, or has like this, or in
 * which it collects the data of a group in one process first. In an intercommunicator, MPI returns
 * early from a collective with a root in some processes of the root's group, so these cannot agree.
 * They have no messages, and the root and the other group know the bytes of a part. */
#define allgather_always(...)      false
#define allgatherv_always(...)     false
#define alltoall_always(comm, ...) OMPI_COMM_IS_INTER(comm)
#define alltoallv_always           alltoall_always
#define alltoallw_always           alltoall_always
#define bcast_always               alltoall_always
#define gatherv_always             alltoall_always
#define scatterv_always            alltoall_always
#define gather_always(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype, root)     \
    (OMPI_COMM_IS_INTER(comm)                                                     \
     && (MPI_ROOT == (root) ? mca_coll_umrddt_is_large((size_t) (rcount), rdtype) \
                            : 0 <= (root) && mca_coll_umrddt_is_large((size_t) (scount), sdtype)))
#define scatter_always(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype, root)    \
    (OMPI_COMM_IS_INTER(comm)                                                     \
     && (MPI_ROOT == (root) ? mca_coll_umrddt_is_large((size_t) (scount), sdtype) \
                            : 0 <= (root) && mca_coll_umrddt_is_large((size_t) (rcount), rdtype)))

/* Counted calls. MPI_Allgatherv returns early, in all processes, if there is no data and the counts
 * show it. The groups of an intercommunicator may have types of different sizes. */
#define EXCHANGE_COUNTS(comm, count, dtype)                                                    \
    mca_coll_umrddt_counts_near(module, comm, MCA_COLL_UMRDDT_NEAR_EXCHANGE, (size_t) (count), \
                                dtype)
#define allgather_counts(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype)           \
    (OMPI_COMM_IS_INTER(comm) ? both_are_large(comm, scount, sdtype, rcount, rdtype) \
                              : EXCHANGE_COUNTS(comm, rcount, rdtype))
#define allgatherv_counts(comm, sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype) \
    (OMPI_COMM_IS_INTER(comm) || 0 < (rdtype)->super.size)
#define alltoall_counts(comm, sbuf, scount, sdtype, rbuf, rcount, rdtype) \
    EXCHANGE_COUNTS(comm, rcount, rdtype)
#define alltoallv_counts(comm, ...) (!OMPI_COMM_IS_INTER(comm))
#define alltoallw_counts            alltoallv_counts
#define bcast_counts(comm, rbuf, count, dtype, root) \
    mca_coll_umrddt_counts_near(module, comm, MCA_COLL_UMRDDT_NEAR_BCAST, (size_t) (count), dtype)
#define gatherv_counts  alltoallv_counts
#define scatterv_counts alltoallv_counts

static inline bool gather_counts(ompi_communicator_t *comm, const void *sbuf, umrddt_count_t scount,
                                 ompi_datatype_t *sdtype, void *rbuf, umrddt_count_t rcount,
                                 ompi_datatype_t *rdtype, int root)
{
    (void) sbuf;
    (void) rbuf;
    /* the significant arguments of this process */
    return ompi_comm_rank(comm) == root ? mca_coll_umrddt_counts(comm, (size_t) rcount, rdtype)
                                        : mca_coll_umrddt_counts(comm, (size_t) scount, sdtype);
}

static inline bool scatter_counts(ompi_communicator_t *comm, const void *sbuf,
                                  umrddt_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                                  umrddt_count_t rcount, ompi_datatype_t *rdtype, int root)
{
    (void) sbuf;
    (void) rbuf;
    return ompi_comm_rank(comm) == root ? mca_coll_umrddt_counts(comm, (size_t) scount, sdtype)
                                        : mca_coll_umrddt_counts(comm, (size_t) rcount, rdtype);
}

#define DIRECT(name, module, comm, sides, ...)                                        \
    mca_coll_umrddt_direct_move(module, comm, name##_shape(comm, __VA_ARGS__), sides, \
                                name##_root(__VA_ARGS__))
/* The agreement has decided: the messages are those of the v forms, with parts of any size. */
#define allgatherv_direct(module, comm, sides, all, ...) \
    DIRECT(allgatherv, module, comm, sides, __VA_ARGS__)
#define allgather_direct allgatherv_direct
#define alltoallv_direct(module, comm, sides, all, ...) \
    DIRECT(alltoallv, module, comm, sides, __VA_ARGS__)
#define alltoall_direct alltoallv_direct
#define alltoallw_direct(module, comm, sides, all, ...) \
    DIRECT(alltoallw, module, comm, sides, __VA_ARGS__)
#define gather_direct(module, comm, sides, all, ...) \
    DIRECT(gather, module, comm, sides, __VA_ARGS__)
#define gatherv_direct(module, comm, sides, all, ...) \
    DIRECT(gatherv, module, comm, sides, __VA_ARGS__)
#define scatter_direct(module, comm, sides, all, ...) \
    DIRECT(scatter, module, comm, sides, __VA_ARGS__)
#define scatterv_direct(module, comm, sides, all, ...) \
    DIRECT(scatterv, module, comm, sides, __VA_ARGS__)
#define bcast_direct(module, comm, sides, all, rbuf, count, dtype, root)                           \
    (OMPI_COMM_IS_INTER(comm)                                                                      \
         ? mca_coll_umrddt_direct_bcast_inter(module, comm, sides, root)                           \
         : mca_coll_umrddt_direct_bcast(module, comm, sides, 0 != (MCA_COLL_UMRDDT_BYTES & (all)), \
                                        root))

/* clang-format off */
MCA_COLL_UMRDDT_DEFINE(allgather,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype),
    (sstage, scount, sdtype, rstage, rcount, rdtype))

MCA_COLL_UMRDDT_DEFINE(allgatherv,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t displs, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype),
    (sstage, scount, sdtype, rstage, rcounts, displs, rdtype))

MCA_COLL_UMRDDT_DEFINE(alltoall,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype),
    (sstage, scount, sdtype, rstage, rcount, rdtype))

MCA_COLL_UMRDDT_DEFINE(alltoallv,
    (const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t sdispls, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t rdispls, ompi_datatype_t *rdtype),
    (sbuf, scounts, sdispls, sdtype, rbuf, rcounts, rdispls, rdtype),
    (sstage, scounts, sdispls, sdtype, rstage, rcounts, rdispls, rdtype))

MCA_COLL_UMRDDT_DEFINE(alltoallw,
    (const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t sdispls, ompi_datatype_t *const *sdtypes,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t rdispls, ompi_datatype_t *const *rdtypes),
    (sbuf, scounts, sdispls, sdtypes, rbuf, rcounts, rdispls, rdtypes),
    (sstage, MCA_COLL_UMRDDT_VECTOR(0, counts, scounts), MCA_COLL_UMRDDT_VECTOR(0, displs, sdispls),
     MCA_COLL_UMRDDT_VECTOR(0, types, sdtypes), rstage, MCA_COLL_UMRDDT_VECTOR(1, counts, rcounts),
     MCA_COLL_UMRDDT_VECTOR(1, displs, rdispls), MCA_COLL_UMRDDT_VECTOR(1, types, rdtypes)))

MCA_COLL_UMRDDT_DEFINE(bcast,
    (void *rbuf, umrddt_count_t count, ompi_datatype_t *dtype, int root),
    (rbuf, count, dtype, root),
    (rstage, count, dtype, root))

MCA_COLL_UMRDDT_DEFINE(gather,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype, int root),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype, root),
    (sstage, scount, sdtype, rstage, rcount, rdtype, root))

MCA_COLL_UMRDDT_DEFINE(gatherv,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_counts_t rcounts, umrddt_displs_t displs, ompi_datatype_t *rdtype, int root),
    (sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, root),
    (sstage, scount, sdtype, rstage, rcounts, displs, rdtype, root))

MCA_COLL_UMRDDT_DEFINE(scatter,
    (const void *sbuf, umrddt_count_t scount, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype, int root),
    (sbuf, scount, sdtype, rbuf, rcount, rdtype, root),
    (sstage, scount, sdtype, rstage, rcount, rdtype, root))

MCA_COLL_UMRDDT_DEFINE(scatterv,
    (const void *sbuf, umrddt_counts_t scounts, umrddt_displs_t displs, ompi_datatype_t *sdtype,
     void *rbuf, umrddt_count_t rcount, ompi_datatype_t *rdtype, int root),
    (sbuf, scounts, displs, sdtype, rbuf, rcount, rdtype, root),
    (sstage, scounts, displs, sdtype, rstage, rcount, rdtype, root))
/* clang-format on */
