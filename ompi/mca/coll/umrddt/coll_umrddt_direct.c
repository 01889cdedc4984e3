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
 * Direct collectives: which messages each one has. See coll_umrddt_direct.h first;
 * coll_umrddt_messages.c does them.
 */

#include "coll_umrddt_direct.h"

#include <limits.h>

#include "ompi/mca/topo/base/base.h"

#include "coll_umrddt_messages.h"
#include "coll_umrddt_reduce.h"
#include "coll_umrddt_request.h"
#include "coll_umrddt_steps.h"

/* A bcast of at least MCA_COLL_UMRDDT_PIECE bytes for each process to at most so many processes
 * goes in pieces. */
#define PIECED 32

/* The root of a bcast to few processes sends to each of them, up to so many bytes in all. For a
 * message of few bytes, latency counts, and a tree has it twice or more. */
#define FLAT       8
#define FLAT_BYTES ((size_t) 12 << 20)

/* Parts of an all-to-all with so many bytes are done one after the other. */
#define GROUP_BYTES ((size_t) 4 << 20)

typedef mca_coll_umrddt_direct_t direct_t;

/** Maximum number of messages of a request in one direction, which are in progress at once. */
static int most_messages(ompi_communicator_t *comm, mca_coll_umrddt_shape_t shape,
                         const mca_coll_umrddt_sides_t *sides)
{
    switch (shape) {
    case MCA_COLL_UMRDDT_GATHER:
    case MCA_COLL_UMRDDT_SCATTER:
        return sides->send.parts < sides->recv.parts ? sides->recv.parts : sides->send.parts;
    case MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER:
    case MCA_COLL_UMRDDT_NEIGHBOR_ALLTOALL:
        return mca_coll_umrddt_messages_neighbours(comm);
    case MCA_COLL_UMRDDT_BCAST_STEPS:
        return mca_coll_umrddt_steps_window();
    case MCA_COLL_UMRDDT_REDUCTION:
        return 1; /* it has lists of its own */
    default:
        return mca_coll_umrddt_others(comm);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Lists of messages
 * ------------------------------------------------------------------------------------------- */

/** Allgather(v) and alltoall(v,w): data from each process to each, or from and to the other group.
 */
static void list_all(direct_t *direct, ompi_communicator_t *comm,
                     const mca_coll_umrddt_sides_t *sides, bool same)
{
    const bool in_place = 0 == sides->send.parts;
    const int size = mca_coll_umrddt_others(comm), rank = ompi_comm_rank(comm) % size;

    mca_coll_umrddt_messages_begin(direct, comm, in_place ? &sides->recv : &sides->send,
                                   &sides->recv);
    for (int distance = in_place ? 1 : 0; distance < size; ++distance) {
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;

        mca_coll_umrddt_add_recv(direct, from, from);
        mca_coll_umrddt_add_send(direct, to, !same ? to : in_place ? rank : 0);
    }
}

static void list_gather(direct_t *direct, ompi_communicator_t *comm,
                        const mca_coll_umrddt_sides_t *sides, int root)
{
    mca_coll_umrddt_messages_begin(direct, comm, &sides->send, &sides->recv);
    if (0 < sides->send.parts) {
        mca_coll_umrddt_add_send(direct, root, 0);
    }
    for (int i = 0; i < sides->recv.parts; ++i) {
        if (i != root || 0 < sides->send.parts) {
            mca_coll_umrddt_add_recv(direct, i, i);
        }
    }
}

static void list_scatter(direct_t *direct, ompi_communicator_t *comm,
                         const mca_coll_umrddt_sides_t *sides, int root)
{
    mca_coll_umrddt_messages_begin(direct, comm, &sides->send, &sides->recv);
    if (0 < sides->recv.parts) {
        mca_coll_umrddt_add_recv(direct, root, 0);
    }
    for (int i = 0; i < sides->send.parts; ++i) {
        if (i != root || 0 < sides->recv.parts) {
            mca_coll_umrddt_add_send(direct, i, i);
        }
    }
}

/** The root sends all of a bcast to each process. */
static void list_bcast(direct_t *direct, ompi_communicator_t *comm,
                       const mca_coll_umrddt_sides_t *sides, int root)
{
    const bool inter = OMPI_COMM_IS_INTER(comm);

    mca_coll_umrddt_messages_begin(direct, comm, &sides->recv, &sides->recv);
    if (inter ? MPI_ROOT != root : ompi_comm_rank(comm) != root) {
        if (0 < sides->recv.parts) {
            mca_coll_umrddt_add_recv(direct, root, 0);
        }
        return;
    }
    for (int i = 0; i < mca_coll_umrddt_others(comm); ++i) {
        if (inter || i != root) {
            mca_coll_umrddt_add_send(direct, i, 0);
        }
    }
}

/**
 * The neighbors in a Cartesian topology: two in each dimension, or MPI_PROC_NULL. If both are one
 * process, data for the one comes from the other: sends are in the reverse order of receives.
 */
static void cart_neighbours(direct_t *direct, ompi_communicator_t *comm, bool same)
{
    const mca_topo_base_comm_cart_2_2_0_t *cart = comm->c_topo->mtc.cart;

    for (int i = 0; i < cart->ndims; ++i) {
        int low = MPI_PROC_NULL, high = MPI_PROC_NULL;

        if (1 < cart->dims[i]) {
            (void) mca_topo_base_cart_shift(comm, i, 1, &low, &high);
        } else if (cart->periods[i]) {
            low = high = ompi_comm_rank(comm);
        }
        mca_coll_umrddt_add_recv(direct, low, 2 * i);
        mca_coll_umrddt_add_recv(direct, high, 2 * i + 1);
        mca_coll_umrddt_add_send(direct, high, same ? 0 : 2 * i + 1);
        mca_coll_umrddt_add_send(direct, low, same ? 0 : 2 * i);
    }
}

/** As cart_neighbours, in any topology. */
static int list_neighbours(direct_t *direct, ompi_communicator_t *comm,
                           const mca_coll_umrddt_sides_t *sides, bool same)
{
    const int *from, *to;
    int sources, destinations;
    int rc = mca_topo_base_neighbor_count(comm, &sources, &destinations);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    mca_coll_umrddt_messages_begin(direct, comm, &sides->send, &sides->recv);
    if (OMPI_COMM_IS_CART(comm)) {
        cart_neighbours(direct, comm, same);
        return OMPI_SUCCESS;
    }
    if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_2_2_0_t *graph = comm->c_topo->mtc.graph;
        const int rank = ompi_comm_rank(comm);

        from = to = graph->edges + (0 < rank ? graph->index[rank - 1] : 0);
    } else {
        from = comm->c_topo->mtc.dist_graph->in;
        to = comm->c_topo->mtc.dist_graph->out;
    }
    for (int i = 0; i < sources; ++i) {
        mca_coll_umrddt_add_recv(direct, from[i], i);
    }
    for (int i = 0; i < destinations; ++i) {
        mca_coll_umrddt_add_send(direct, to[i], same ? 0 : i);
    }
    return OMPI_SUCCESS;
}

static int list(direct_t *direct, ompi_communicator_t *comm, mca_coll_umrddt_shape_t shape,
                const mca_coll_umrddt_sides_t *sides, int root)
{
    switch (shape) {
    case MCA_COLL_UMRDDT_ALLGATHER:
    case MCA_COLL_UMRDDT_ALLTOALL:
        list_all(direct, comm, sides, MCA_COLL_UMRDDT_ALLGATHER == shape);
        return OMPI_SUCCESS;
    case MCA_COLL_UMRDDT_GATHER:
        list_gather(direct, comm, sides, root);
        return OMPI_SUCCESS;
    case MCA_COLL_UMRDDT_SCATTER:
        list_scatter(direct, comm, sides, root);
        return OMPI_SUCCESS;
    case MCA_COLL_UMRDDT_BCAST:
        list_bcast(direct, comm, sides, root);
        return OMPI_SUCCESS;
    case MCA_COLL_UMRDDT_ALLTOALL_IN_PLACE:
        mca_coll_umrddt_steps_alltoall(direct, comm, sides);
        return OMPI_SUCCESS;
    case MCA_COLL_UMRDDT_BCAST_STEPS:
        mca_coll_umrddt_steps_bcast(direct, comm, sides, root);
        return OMPI_SUCCESS;
    default:
        return list_neighbours(direct, comm, sides, MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER == shape);
    }
}

static bool is_in_steps(mca_coll_umrddt_shape_t shape)
{
    return MCA_COLL_UMRDDT_ALLTOALL_IN_PLACE == shape || MCA_COLL_UMRDDT_BCAST_STEPS == shape
           || MCA_COLL_UMRDDT_REDUCTION == shape;
}

int mca_coll_umrddt_direct_move(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                mca_coll_umrddt_shape_t shape, const mca_coll_umrddt_sides_t *sides,
                                int root)
{
    /* groups need one order of distances, which neighbors do not have */
    const bool groups = MCA_COLL_UMRDDT_NEIGHBOR_ALLGATHER > shape && !OMPI_COMM_IS_INTER(comm);
    const bool all = MCA_COLL_UMRDDT_ALLGATHER == shape || MCA_COLL_UMRDDT_ALLTOALL == shape;
    int rc = list(module->direct, comm, shape, sides, root);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL != module->direct->step) {
        return mca_coll_umrddt_steps_run(module->direct);
    }
    MCA_COLL_UMRDDT_COUNT(direct);
    return mca_coll_umrddt_exchange(module->direct,
                                    groups ? (int) mca_coll_umrddt_params.direct_messages : INT_MAX,
                                    groups && all ? GROUP_BYTES : SIZE_MAX);
}

int mca_coll_umrddt_direct_request(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                   mca_coll_umrddt_shape_t shape,
                                   const mca_coll_umrddt_sides_t *sides, int root, bool persistent,
                                   ompi_request_t **request)
{
    direct_t *direct = mca_coll_umrddt_messages_get(most_messages(comm, shape, sides));
    const int tag =
        persistent ? UMRDDT_COLLECTIVES_TAG + ++module->persistent : UMRDDT_COLLECTIVES_TAG;
    const bool in_turn = !persistent && is_in_steps(shape);
    const uint64_t turn = in_turn ? module->sequence++ : 0;
    int rc = NULL == direct ? OMPI_ERR_OUT_OF_RESOURCE
             : MCA_COLL_UMRDDT_REDUCTION == shape
                 ? mca_coll_umrddt_reduce_request(module, direct, comm, sides)
                 : list(direct, comm, shape, sides, root);

    if (OMPI_SUCCESS == rc) {
        direct->tag = tag;
        if (in_turn) {
            const int which = (int) (turn % MCA_COLL_UMRDDT_TURNS);

            direct->tag = UMRDDT_COLLECTIVES_TAG + UMRDDT_COLLECTIVES_TAGS - 1 - which;
            direct->served = &module->served[which];
            direct->turn = (uint32_t) (turn / MCA_COLL_UMRDDT_TURNS);
        }
        return mca_coll_umrddt_request_messages(comm, direct, persistent, request);
    }
    mca_coll_umrddt_messages_put(direct);
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Blocking broadcasts
 * ------------------------------------------------------------------------------------------- */

/** Binomial tree: the whole buffer in one message. */
static int bcast_tree(direct_t *direct, ompi_communicator_t *comm,
                      const mca_coll_umrddt_part_t *whole, int root)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const int mine = (rank - root + size) % size;
    int bit = 1, rc = OMPI_SUCCESS;
    bool failed = false;

    while (bit < size && 0 == (mine & bit)) {
        bit <<= 1;
    }
    if (0 != mine) {
        rc = mca_coll_umrddt_post_recv(direct, comm, whole, (mine - bit + root) % size);
        direct->receives = direct->request_count;
        rc = mca_coll_umrddt_wait_all(direct, rc);
        failed = OMPI_SUCCESS != rc;
    }
    for (bit >>= 1; 0 < bit; bit >>= 1) {
        if (mine + bit < size) {
            mca_coll_umrddt_note(&rc, mca_coll_umrddt_post_send(
                                          direct, comm, whole, (mine + bit + root) % size, failed));
        }
    }
    return mca_coll_umrddt_wait_all(direct, rc);
}

/**
 * Large buffers, contiguous in all processes: the root sends a piece to each process, and each
 * process sends its piece to all others. The first receive of a process is that of its own piece.
 */
static int bcast_pieces(direct_t *direct, ompi_communicator_t *comm,
                        const mca_coll_umrddt_part_t *whole, int root)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    mca_coll_umrddt_part_t piece;
    bool failed = false;
    int rc = OMPI_SUCCESS;

    if (rank != root) {
        mca_coll_umrddt_piece_of(whole, rank, size, &piece);
        rc = mca_coll_umrddt_post_recv(direct, comm, &piece, root);
        failed = OMPI_SUCCESS != rc;
        for (int i = 0; i < size; ++i) {
            if (i != rank) {
                mca_coll_umrddt_piece_of(whole, i, size, &piece);
                mca_coll_umrddt_note(&rc, mca_coll_umrddt_post_recv(direct, comm, &piece, i));
            }
        }
        if (OPAL_LIKELY(!failed)) {
            const int own = mca_coll_umrddt_wait_one(&direct->requests[0], true);

            failed = OMPI_SUCCESS != own;
            mca_coll_umrddt_note(&rc, own);
            direct->requests[0] = direct->requests[--direct->request_count];
        }
        direct->receives = direct->request_count;
    }
    for (int i = 1; rank == root && i < size; ++i) {
        mca_coll_umrddt_piece_of(whole, (root + i) % size, size, &piece);
        mca_coll_umrddt_note(
            &rc, mca_coll_umrddt_post_send(direct, comm, &piece, (root + i) % size, false));
    }
    mca_coll_umrddt_piece_of(whole, rank, size, &piece);
    for (int i = 1; i < size; ++i) {
        if ((rank + i) % size != root) {
            mca_coll_umrddt_note(
                &rc, mca_coll_umrddt_post_send(direct, comm, &piece, (rank + i) % size, failed));
        }
    }
    return mca_coll_umrddt_wait_all(direct, rc);
}

/** Returns true if the root sends all to each process. The same in all of them. */
static bool bcast_is_flat(int size, size_t bytes)
{
    return FLAT >= size && (unsigned) size <= mca_coll_umrddt_params.direct_messages + 1
           && FLAT_BYTES >= bytes * ((size_t) size - 1);
}

int mca_coll_umrddt_direct_bcast(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, bool bytes, int root)
{
    const int size = ompi_comm_size(comm);
    direct_t *direct = module->direct;
    mca_coll_umrddt_part_t whole;

    MCA_COLL_UMRDDT_COUNT(direct);
    mca_coll_umrddt_side_part(&sides->recv, 0, &whole);
    if (bcast_is_flat(size, whole.bytes)) {
        list_bcast(direct, comm, sides, root);
        return mca_coll_umrddt_exchange(direct, INT_MAX, SIZE_MAX);
    }
    mca_coll_umrddt_messages_begin(direct, comm, &sides->recv, &sides->recv);
    return bytes && 2 < size && PIECED >= size
                   && MCA_COLL_UMRDDT_PIECE <= whole.bytes / (size_t) size
               ? bcast_pieces(direct, comm, &whole, root)
               : bcast_tree(direct, comm, &whole, root);
}

int mca_coll_umrddt_direct_bcast_inter(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                       const mca_coll_umrddt_sides_t *sides, int root)
{
    ompi_communicator_t *local = comm->c_local_comm;
    direct_t *direct = module->direct;
    mca_coll_umrddt_part_t whole;
    int rc = OMPI_SUCCESS;

    MCA_COLL_UMRDDT_COUNT(direct);
    if (0 == sides->recv.parts) {
        return OMPI_SUCCESS;
    }
    mca_coll_umrddt_messages_begin(direct, comm, &sides->recv, &sides->recv);
    mca_coll_umrddt_side_part(&sides->recv, 0, &whole);
    if (MPI_ROOT == root) {
        return mca_coll_umrddt_wait_all(direct,
                                        mca_coll_umrddt_post_send(direct, comm, &whole, 0, false));
    }
    if (0 == ompi_comm_rank(comm)) {
        rc =
            mca_coll_umrddt_wait_all(direct, mca_coll_umrddt_post_recv(direct, comm, &whole, root));
    }
    mca_coll_umrddt_note(&rc, local->c_coll->coll_bcast(whole.address, (umrddt_count_t) whole.count,
                                                        whole.type, 0, local,
                                                        local->c_coll->coll_bcast_module));
    return rc;
}
