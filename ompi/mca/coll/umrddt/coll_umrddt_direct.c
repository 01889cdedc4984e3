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
 * Direct collectives. See coll_umrddt_direct.h first.
 */

/*
 * Each part is one message of the PML with the user's datatype. pml/umrddt moves it as it moves the
 * application's messages. The tag is UMRDDT_COLLECTIVES_TAG for all collectives: all processes make
 * the calls of a communicator in the same order, so messages match in order. Parts without data are
 * not sent; sender and receiver have the same number of bytes. Receives are posted before sends.
 *
 * A part for this process itself is one copy by the device. If the device cannot copy it at once,
 * it is a message, too.
 *
 * Many messages are done in groups, so that their number in progress is bounded. A process begins
 * with the processes at small distances from its rank. So the messages of the smallest distance
 * that are not complete are in progress at both ends, also if groups have different sizes.
 *
 * After an error of one message or copy, all others are done as if there was none. Other processes
 * wait for them, and a message that is left would match one of the next collective.
 */

#include "coll_umrddt_direct.h"

#include <limits.h>
#include <stdlib.h>

#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/base/base.h"

#include "umrddt_collectives.h"

/* A bcast of at least PIECE bytes for each process to at most PIECED processes goes in pieces. */
#define PIECE  ((size_t) 128 << 10)
#define PIECED 32

/** One message: a part of a side, to or from a rank. */
typedef struct message_t {
    int peer;
    int part;
} message_t;

/** A copy of a part to another one of this process. */
typedef struct own_t {
    opal_umrddt_gpu_copy_t *copy; /**< NULL: complete */
    opal_iov_cache_layout_t *layouts[2];
} own_t;

/** What a module keeps for its direct collectives. All 0: unused. */
struct mca_coll_umrddt_direct_t {
    message_t *sends; /**< in the order in which they match at the receiver */
    message_t *recvs; /**< in the order in which they match */
    ompi_request_t **requests;
    own_t *own;
    int send_count;
    int recv_count;
    int room;          /**< allocated entries of sends, recvs and own, and half of requests */
    int request_count; /**< of requests in progress */
    int own_count;     /**< of copies in progress */
};
typedef struct mca_coll_umrddt_direct_t direct_t;

/* ---------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------- */

static void arrays_free(direct_t *direct)
{
    free(direct->sends);
    free(direct->recvs);
    free(direct->requests);
    free(direct->own);
    *direct = (direct_t){.sends = NULL};
}

void mca_coll_umrddt_direct_free(struct mca_coll_umrddt_direct_t *direct)
{
    if (NULL != direct) {
        arrays_free(direct);
        free(direct);
    }
}

bool mca_coll_umrddt_direct_room(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm)
{
    direct_t *direct = module->direct;
    int n = ompi_comm_size(comm), sources, destinations;

    if (OPAL_UNLIKELY(NULL == direct)) {
        direct = module->direct = calloc(1, sizeof(*direct));
        if (NULL == direct) {
            return false;
        }
    }
    if (OMPI_COMM_IS_TOPO(comm)
        && OMPI_SUCCESS == mca_topo_base_neighbor_count(comm, &sources, &destinations)) {
        n = n < sources ? sources : n;
        n = n < destinations ? destinations : n;
    }
    if (OPAL_UNLIKELY(direct->room < n)) {
        const size_t room = (size_t) n;

        arrays_free(direct);
        direct->sends = malloc(room * sizeof(direct->sends[0]));
        direct->recvs = malloc(room * sizeof(direct->recvs[0]));
        direct->requests = malloc(2 * room * sizeof(direct->requests[0]));
        direct->own = malloc(room * sizeof(direct->own[0]));
        if (NULL == direct->sends || NULL == direct->recvs || NULL == direct->requests
            || NULL == direct->own) {
            arrays_free(direct);
            return false;
        }
        direct->room = n;
    }
    return true;
}

/** Get the module's lists of messages, empty, with the space that the agreement required. */
static direct_t *begin(mca_coll_umrddt_module_t *module)
{
    direct_t *direct = module->direct;

    MCA_COLL_UMRDDT_COUNT(direct);
    direct->send_count = direct->recv_count = 0;
    direct->request_count = direct->own_count = 0;
    return direct;
}

static void add_send(direct_t *direct, int peer, int part)
{
    direct->sends[direct->send_count++] = (message_t){.peer = peer, .part = part};
}

static void add_recv(direct_t *direct, int peer, int part)
{
    direct->recvs[direct->recv_count++] = (message_t){.peer = peer, .part = part};
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

/** Keep the first error of a call. */
static void note(int *rc, int one)
{
    *rc = OMPI_SUCCESS == *rc ? one : *rc;
}

static int post_send(direct_t *direct, ompi_communicator_t *comm,
                     const mca_coll_umrddt_part_t *part, int peer)
{
    int rc;

    if (0 == part->bytes) {
        return OMPI_SUCCESS;
    }
    rc = MCA_PML_CALL(isend(part->address, part->count, part->type, peer, UMRDDT_COLLECTIVES_TAG,
                            MCA_PML_BASE_SEND_STANDARD, comm,
                            &direct->requests[direct->request_count]));
    direct->request_count += OMPI_SUCCESS == rc ? 1 : 0;
    return rc;
}

static int post_recv(direct_t *direct, ompi_communicator_t *comm,
                     const mca_coll_umrddt_part_t *part, int peer)
{
    int rc;

    if (0 == part->bytes) {
        return OMPI_SUCCESS;
    }
    rc = MCA_PML_CALL(irecv(part->address, part->count, part->type, peer, UMRDDT_COLLECTIVES_TAG,
                            comm, &direct->requests[direct->request_count]));
    direct->request_count += OMPI_SUCCESS == rc ? 1 : 0;
    return rc;
}

/**
 * Wait for all messages in progress, also after an error: the other processes send and receive
 * theirs.
 *
 * @param[in] rc  the error of the call so far
 *
 * @return rc, or the first error
 */
static int wait_all(direct_t *direct, int rc)
{
    for (int i = 0; i < direct->request_count; ++i) {
        note(&rc, ompi_request_wait(&direct->requests[i], MPI_STATUS_IGNORE));
    }
    direct->request_count = 0;
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Parts for this process itself
 * ------------------------------------------------------------------------------------------- */

static void own_release(own_t *own)
{
    for (int i = 0; i < 2; ++i) {
        if (NULL != own->layouts[i]) {
            OBJ_RELEASE(own->layouts[i]);
        }
    }
}

/** Fill one end of a copy. @return false: the device cannot copy it at once */
static bool copy_end(const mca_coll_umrddt_part_t *part, opal_iov_cache_layout_t *layout,
                     opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_copy_end_t *end)
{
    const bool contiguous = opal_iov_cache_layout_is_contiguous(layout);
    const mca_coll_umrddt_piece_t piece = {.layout = layout};
    const uint64_t user = (uint64_t) (uintptr_t) part->address;

    if (!mca_coll_umrddt_piece_is_whole(user, &piece, memory)) {
        return false;
    }
    opal_umrddt_gpu_sync_default(user + (uint64_t) layout->lb, memory);
    *end = (opal_umrddt_gpu_copy_end_t){.layout = contiguous ? NULL : layout,
                                        .address = user + (uint64_t) (contiguous ? layout->lb : 0),
                                        .kind = OPAL_UMRDDT_GPU_DEVICE};
    return true;
}

/** Start to copy a part. @return false: it is not possible */
static bool start_copy(own_t *own, const mca_coll_umrddt_part_t *from,
                       const mca_coll_umrddt_part_t *to)
{
    opal_umrddt_gpu_copy_end_t source, target;
    opal_umrddt_gpu_memory_t memory[2];
    opal_umrddt_gpu_engine_t *engine;

    own->copy = NULL;
    own->layouts[0] = own->layouts[1] = NULL;
    if (from->bytes == to->bytes
        && OPAL_SUCCESS == mca_coll_umrddt_layout(from->type, from->count, &own->layouts[0])
        && OPAL_SUCCESS == mca_coll_umrddt_layout(to->type, to->count, &own->layouts[1])
        && copy_end(from, own->layouts[0], &memory[0], &source)
        && copy_end(to, own->layouts[1], &memory[1], &target)
        && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory[1], &engine)) {
        target.reached = target.on_device = true;
        source.reached = source.on_device =
            memory[0].device == memory[1].device && memory[0].ctx == memory[1].ctx;
        if (OPAL_SUCCESS
            == opal_umrddt_gpu_copy(engine, &source, &target, 0, from->bytes, &own->copy)) {
            return true;
        }
        own->copy = NULL;
    }
    own_release(own);
    return false;
}

/** Wait for the copies in progress. @param[in] rc the error so far @return rc, or the first error
 */
static int wait_own(direct_t *direct, int rc)
{
    for (int i = 0; i < direct->own_count; ++i) {
        int one = opal_umrddt_gpu_copy_wait(direct->own[i].copy);

        own_release(&direct->own[i]);
        if (OPAL_SUCCESS != one) {
            note(&rc, mca_coll_umrddt_fail(one, 0));
        }
    }
    direct->own_count = 0;
    return rc;
}

/** A part as a message of this process to itself. */
static int post_own(direct_t *direct, ompi_communicator_t *comm, const mca_coll_umrddt_part_t *from,
                    const mca_coll_umrddt_part_t *to)
{
    const int rank = ompi_comm_rank(comm);
    int rc = post_recv(direct, comm, to, rank);

    if (OMPI_SUCCESS == rc) {
        rc = post_send(direct, comm, from, rank);
        if (OMPI_SUCCESS != rc) {
            (void) ompi_request_cancel(direct->requests[direct->request_count - 1]);
        }
    }
    return rc;
}

/** Start the parts that this process sends to itself: the n-th send matches the n-th receive. */
static int start_own(direct_t *direct, ompi_communicator_t *comm,
                     const mca_coll_umrddt_side_t *send, const mca_coll_umrddt_side_t *recv)
{
    const int rank = ompi_comm_rank(comm);
    int r = 0, rc = OMPI_SUCCESS;

    for (int s = 0; s < direct->send_count; ++s) {
        mca_coll_umrddt_part_t from, to;

        if (rank != direct->sends[s].peer) {
            continue;
        }
        while (r < direct->recv_count && rank != direct->recvs[r].peer) {
            ++r;
        }
        if (r == direct->recv_count) {
            note(&rc, MPI_ERR_TOPOLOGY);
            break;
        }
        mca_coll_umrddt_side_part(send, direct->sends[s].part, &from);
        mca_coll_umrddt_side_part(recv, direct->recvs[r].part, &to);
        ++r;
        if (from.bytes > to.bytes) {
            note(&rc, MPI_ERR_TRUNCATE);
        } else if (0 == from.bytes) {
            continue;
        } else if (start_copy(&direct->own[direct->own_count], &from, &to)) {
            ++direct->own_count;
        } else {
            note(&rc, post_own(direct, comm, &from, &to));
        }
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * All messages of a collective
 * ------------------------------------------------------------------------------------------- */

/** Post the messages first to last - 1 of both lists, and wait for them. */
static int exchange_group(direct_t *direct, ompi_communicator_t *comm,
                          const mca_coll_umrddt_side_t *send, const mca_coll_umrddt_side_t *recv,
                          int first, int last)
{
    const int rank = ompi_comm_rank(comm);
    mca_coll_umrddt_part_t part;
    int rc = OMPI_SUCCESS;

    for (int i = first; i < last && i < direct->recv_count; ++i) {
        if (rank != direct->recvs[i].peer) {
            mca_coll_umrddt_side_part(recv, direct->recvs[i].part, &part);
            note(&rc, post_recv(direct, comm, &part, direct->recvs[i].peer));
        }
    }
    for (int i = first; i < last && i < direct->send_count; ++i) {
        if (rank != direct->sends[i].peer) {
            mca_coll_umrddt_side_part(send, direct->sends[i].part, &part);
            note(&rc, post_send(direct, comm, &part, direct->sends[i].peer));
        }
    }
    if (0 == first) {
        /* with the first group, after its messages, which take longer */
        note(&rc, start_own(direct, comm, send, recv));
    }
    return wait_all(direct, rc);
}

/** Do all messages. @param[in] group  the number of a group */
static int exchange(direct_t *direct, ompi_communicator_t *comm, const mca_coll_umrddt_side_t *send,
                    const mca_coll_umrddt_side_t *recv, int group)
{
    int rc = OMPI_SUCCESS, first = 0;

    do {
        const int last = group < direct->room - first ? first + group : direct->room;

        note(&rc, exchange_group(direct, comm, send, recv, first, last));
        first = last;
    } while (first < direct->send_count || first < direct->recv_count);
    return wait_own(direct, rc);
}

/* ---------------------------------------------------------------------------------------------
 * The collectives
 * ------------------------------------------------------------------------------------------- */

int mca_coll_umrddt_direct_all(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                               const mca_coll_umrddt_sides_t *sides, bool same)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const bool in_place = 0 == sides->send.parts;
    direct_t *direct = begin(module);

    for (int distance = in_place ? 1 : 0; distance < size; ++distance) {
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;

        add_recv(direct, from, from);
        add_send(direct, to, !same ? to : in_place ? rank : 0);
    }
    return exchange(direct, comm, in_place ? &sides->recv : &sides->send, &sides->recv,
                    mca_coll_umrddt_params.direct_messages);
}

int mca_coll_umrddt_direct_gather(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                  const mca_coll_umrddt_sides_t *sides, int root)
{
    direct_t *direct = begin(module);

    if (0 < sides->send.parts) {
        add_send(direct, root, 0);
    }
    for (int i = 0; i < sides->recv.parts; ++i) {
        if (i != root || 0 < sides->send.parts) {
            add_recv(direct, i, i);
        }
    }
    return exchange(direct, comm, &sides->send, &sides->recv,
                    mca_coll_umrddt_params.direct_messages);
}

int mca_coll_umrddt_direct_scatter(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                   const mca_coll_umrddt_sides_t *sides, int root)
{
    direct_t *direct = begin(module);

    if (0 < sides->recv.parts) {
        add_recv(direct, root, 0);
    }
    for (int i = 0; i < sides->send.parts; ++i) {
        if (i != root || 0 < sides->recv.parts) {
            add_send(direct, i, i);
        }
    }
    return exchange(direct, comm, &sides->send, &sides->recv,
                    mca_coll_umrddt_params.direct_messages);
}

/** Binomial tree: the whole buffer in one message. */
static int bcast_tree(direct_t *direct, ompi_communicator_t *comm,
                      const mca_coll_umrddt_part_t *whole, int root)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const int mine = (rank - root + size) % size;
    int bit = 1, rc = OMPI_SUCCESS;

    while (bit < size && 0 == (mine & bit)) {
        bit <<= 1;
    }
    if (0 != mine) {
        rc = wait_all(direct, post_recv(direct, comm, whole, (mine - bit + root) % size));
    }
    for (bit >>= 1; 0 < bit; bit >>= 1) {
        if (mine + bit < size) {
            note(&rc, post_send(direct, comm, whole, (mine + bit + root) % size));
        }
    }
    return wait_all(direct, rc);
}

/** Piece @p i of n pieces of a contiguous buffer. */
static void piece_of(const mca_coll_umrddt_part_t *whole, int i, int n,
                     mca_coll_umrddt_part_t *piece)
{
    const size_t most = whole->bytes / (size_t) n;
    const size_t first = most * (size_t) i;

    piece->address = (char *) whole->address + whole->type->super.true_lb + first;
    piece->bytes = piece->count = i < n - 1 ? most : whole->bytes - first;
    piece->type = &ompi_mpi_byte.dt;
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
    bool posted;
    int rc = OMPI_SUCCESS;

    if (rank != root) {
        piece_of(whole, rank, size, &piece);
        rc = post_recv(direct, comm, &piece, root);
        posted = OMPI_SUCCESS == rc;
        for (int i = 0; i < size; ++i) {
            if (i != rank) {
                piece_of(whole, i, size, &piece);
                note(&rc, post_recv(direct, comm, &piece, i));
            }
        }
        if (OPAL_LIKELY(posted)) {
            note(&rc, ompi_request_wait(&direct->requests[0], MPI_STATUS_IGNORE));
            direct->requests[0] = direct->requests[--direct->request_count];
        }
    }
    for (int i = 1; rank == root && i < size; ++i) {
        piece_of(whole, (root + i) % size, size, &piece);
        note(&rc, post_send(direct, comm, &piece, (root + i) % size));
    }
    piece_of(whole, rank, size, &piece);
    for (int i = 1; i < size; ++i) {
        if ((rank + i) % size != root) {
            note(&rc, post_send(direct, comm, &piece, (rank + i) % size));
        }
    }
    return wait_all(direct, rc);
}

int mca_coll_umrddt_direct_bcast(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, bool bytes, int root)
{
    const int size = ompi_comm_size(comm);
    direct_t *direct = begin(module);
    mca_coll_umrddt_part_t whole;

    mca_coll_umrddt_side_part(&sides->recv, 0, &whole);
    return bytes && 2 < size && PIECED >= size && PIECE <= whole.bytes / (size_t) size
               ? bcast_pieces(direct, comm, &whole, root)
               : bcast_tree(direct, comm, &whole, root);
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
        if (MPI_PROC_NULL != low) {
            add_recv(direct, low, 2 * i);
        }
        if (MPI_PROC_NULL != high) {
            add_recv(direct, high, 2 * i + 1);
            add_send(direct, high, same ? 0 : 2 * i + 1);
        }
        if (MPI_PROC_NULL != low) {
            add_send(direct, low, same ? 0 : 2 * i);
        }
    }
}

int mca_coll_umrddt_direct_neighbours(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                      const mca_coll_umrddt_sides_t *sides, bool same)
{
    direct_t *direct = begin(module);
    const int *from, *to;
    int sources, destinations;
    int rc = mca_topo_base_neighbor_count(comm, &sources, &destinations);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (OMPI_COMM_IS_CART(comm)) {
        cart_neighbours(direct, comm, same);
        return exchange(direct, comm, &sides->send, &sides->recv, INT_MAX);
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
        add_recv(direct, from[i], i);
    }
    for (int i = 0; i < destinations; ++i) {
        add_send(direct, to[i], same ? 0 : i);
    }
    return exchange(direct, comm, &sides->send, &sides->recv, INT_MAX);
}
