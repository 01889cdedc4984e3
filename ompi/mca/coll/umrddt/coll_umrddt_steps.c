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
 * Direct collectives in steps. See coll_umrddt_steps.h first.
 */

/*
 * All-to-all in place: two processes exchange a part, which each one copies before it receives the
 * other one's. Parts go in the order of distances, to both sides, so that groups of different sizes
 * are complete in the end (coll_umrddt_messages.c). The copies are packed, in scratch memory of the
 * GPU or, if there is none, in system memory.
 *
 * Bcast: little data follows a binomial tree, in one message with the user's datatype. More data
 * goes in pieces from each process to the next one, as in coll/libnbc. Their number depends only on
 * the number of processes and the magnitude of the data. A process whose buffer is not contiguous
 * has a packed copy of it. So processes may have different datatypes and counts.
 */

#include "coll_umrddt_steps.h"

#include <stdlib.h>

#include "ompi/mca/pml/pml.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/runtime/opal_progress.h"

#define GROUP     ((size_t) 8 << 20)          /* bytes of copies at once, or one distance */
#define ALIGNMENT 256                         /* of a copy */
#define TREE      (4 * MCA_COLL_UMRDDT_PIECE) /* bytes of a bcast that goes in pieces, at least */
#define LARGEST   ((size_t) 4 << 20)          /* bytes of a piece, about */
#define WINDOW    64 /* most pieces in progress in one direction; over 32 children */

typedef mca_coll_umrddt_direct_t direct_t;
typedef mca_coll_umrddt_part_t part_t;

/* ---------------------------------------------------------------------------------------------
 * Memory for copies
 * ------------------------------------------------------------------------------------------- */

/** Get memory for packed data: on the GPU if the part is there. Without memory, the call fails, but
 * has all its messages, without data. */
static void temp_get(direct_t *direct, const part_t *part, size_t bytes)
{
    opal_umrddt_gpu_memory_t memory;
    opal_umrddt_gpu_engine_t *engine;
    uint64_t address;

    direct->now.on_device = false;
    if (opal_umrddt_gpu_in_use()) {
        mca_coll_umrddt_memory(
            (uint64_t) (uintptr_t) part->address + (uint64_t) part->type->super.true_lb, &memory);
        if (OPAL_UMRDDT_GPU_DEVICE == memory.kind
            && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, &engine)
            && OPAL_SUCCESS == opal_umrddt_gpu_scratch_get(engine, bytes, &address)) {
            direct->now.temp = (char *) (uintptr_t) address;
            direct->now.on_device = true;
            return;
        }
    }
    direct->now.temp = malloc(bytes);
    if (OPAL_UNLIKELY(NULL == direct->now.temp)) {
        mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_fail(OMPI_ERR_OUT_OF_RESOURCE, bytes));
    }
}

/** Release it. NULL is allowed. */
static void temp_put(direct_t *direct)
{
    if (direct->now.on_device) {
        opal_umrddt_gpu_scratch_put((uint64_t) (uintptr_t) direct->now.temp);
    } else {
        free(direct->now.temp);
    }
    direct->now.temp = NULL;
    direct->now.on_device = false;
}

/** Packed data in this memory. */
static part_t packed(const direct_t *direct, size_t offset, size_t bytes)
{
    return (part_t){.address = direct->now.temp + offset,
                    .count = bytes,
                    .type = &ompi_mpi_byte.dt,
                    .bytes = bytes};
}

/* ---------------------------------------------------------------------------------------------
 * All-to-all in place
 * ------------------------------------------------------------------------------------------- */

/** Bytes of the copy of a part. */
static size_t room_of(const part_t *part)
{
    return (part->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** Set the end of the group that begins at now.first. @return bytes of its copies */
static size_t set_group(direct_t *direct)
{
    mca_coll_umrddt_progress_t *now = &direct->now;
    size_t bytes = 0;

    now->last = now->first;
    do {
        const int next = now->last + 2 < direct->send_count ? now->last + 2 : direct->send_count;
        size_t more = 0;

        /* both processes of a distance */
        for (int i = now->last; i < next; ++i) {
            more += room_of(&direct->sends[i].part);
        }
        if (now->first < now->last
            && (GROUP < bytes + more
                || mca_coll_umrddt_params.direct_messages < (unsigned) (next - now->first))) {
            break;
        }
        bytes += more;
        now->last = next;
    } while (now->last < direct->send_count);
    return bytes;
}

/** Copy what a group sends. */
static void copy_group(direct_t *direct)
{
    const size_t bytes = set_group(direct);
    const mca_coll_umrddt_progress_t *now = &direct->now;
    size_t offset = 0;

    for (int i = now->first; 0 < bytes && i < now->last; ++i) {
        const part_t *part = &direct->sends[i].part;

        if (NULL == now->temp && 0 < part->bytes) {
            temp_get(direct, part, bytes);
            if (NULL == now->temp) {
                return;
            }
        }
        if (0 < part->bytes) {
            const part_t copy = packed(direct, offset, part->bytes);

            mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_copy_part(direct, part, &copy));
        }
        offset += room_of(part);
    }
}

/** Post the messages of a group. */
static void post_group(direct_t *direct, bool failed)
{
    const mca_coll_umrddt_progress_t *now = &direct->now;
    size_t offset = 0;

    for (int i = now->first; i < now->last; ++i) {
        mca_coll_umrddt_note(&direct->rc,
                             mca_coll_umrddt_post_recv(direct, direct->comm, &direct->sends[i].part,
                                                       direct->sends[i].peer));
    }
    direct->receives = direct->request_count;
    for (int i = now->first; i < now->last; ++i) {
        const part_t *part = &direct->sends[i].part;
        const part_t copy = NULL != now->temp ? packed(direct, offset, part->bytes) : *part;

        mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_post_send(direct, direct->comm, &copy,
                                                                    direct->sends[i].peer, failed));
        offset += room_of(part);
    }
}

static bool alltoall_step(direct_t *direct)
{
    mca_coll_umrddt_progress_t *now = &direct->now;

    if (1 == now->phase) {
        const bool failed = OMPI_SUCCESS != direct->rc;

        direct->rc = OMPI_SUCCESS != now->rc ? now->rc : direct->rc;
        post_group(direct, failed);
        now->phase = 2;
        return true;
    }
    temp_put(direct);
    now->first = now->last;
    if (now->first == direct->send_count) {
        return false;
    }
    /* up to the next step, only the error of a copy */
    now->rc = direct->rc;
    direct->rc = OMPI_SUCCESS;
    copy_group(direct);
    now->phase = 1;
    return true;
}

void mca_coll_umrddt_steps_alltoall(direct_t *direct, ompi_communicator_t *comm,
                                    const mca_coll_umrddt_sides_t *sides)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);

    mca_coll_umrddt_messages_begin(direct, comm, &sides->recv, &sides->recv);
    for (int distance = 1; distance <= size - distance; ++distance) {
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;

        mca_coll_umrddt_add_send(direct, to, to);
        if (from != to) {
            mca_coll_umrddt_add_send(direct, from, from);
        }
    }
    direct->step = alltoall_step;
}

/* ---------------------------------------------------------------------------------------------
 * Bcast
 * ------------------------------------------------------------------------------------------- */

static bool tree_step(direct_t *direct)
{
    const int phase = direct->now.phase++;

    if (0 == phase && 0 < direct->recv_count) {
        mca_coll_umrddt_note(&direct->rc,
                             mca_coll_umrddt_post_recv(direct, direct->comm, &direct->recvs[0].part,
                                                       direct->recvs[0].peer));
        direct->receives = direct->request_count;
        return true;
    }
    if (direct->recv_count == phase) {
        const bool failed = OMPI_SUCCESS != direct->rc;

        for (int i = 0; i < direct->send_count; ++i) {
            mca_coll_umrddt_note(
                &direct->rc, mca_coll_umrddt_post_send(direct, direct->comm, &direct->sends[i].part,
                                                       direct->sends[i].peer, failed));
        }
        return true;
    }
    return false;
}

/** Fill the lists of a binomial tree. */
static void list_tree(direct_t *direct, ompi_communicator_t *comm, int root)
{
    const int size = ompi_comm_size(comm);
    const int mine = (ompi_comm_rank(comm) - root + size) % size;
    int bit = 1;

    while (bit < size && 0 == (mine & bit)) {
        bit <<= 1;
    }
    if (0 != mine) {
        mca_coll_umrddt_add_recv(direct, (mine - bit + root) % size, 0);
    }
    for (bit >>= 1; 0 < bit; bit >>= 1) {
        if (mine + bit < size) {
            mca_coll_umrddt_add_send(direct, (mine + bit + root) % size, 0);
        }
    }
    direct->step = tree_step;
}

/** Number of pieces. Few more for each process, so that all of them are busy most of the time. */
static int count_pieces(ompi_communicator_t *comm, size_t bytes)
{
    size_t most = 1, least = 1, n = 4 * (size_t) ompi_comm_size(comm);

    while (2 * most * MCA_COLL_UMRDDT_PIECE <= bytes) {
        most *= 2;
    }
    while (2 * least * LARGEST <= bytes) {
        least *= 2;
    }
    n = n < most ? n : most;
    return (int) (n < least ? least : n);
}

/**
 * A piece. Without memory for packed data, each one is received into the begin of the buffer, whose
 * content is undefined after the error: ob1 may write all of a message that is longer than its
 * receive (RGET).
 */
static part_t piece_of(const direct_t *direct, int i)
{
    const part_t *whole = &direct->recvs[0].part;
    const part_t copy = packed(direct, 0, whole->bytes);
    part_t piece = *whole;

    if (!direct->packs || NULL != direct->now.temp) {
        mca_coll_umrddt_piece_of(direct->packs ? &copy : whole, i, direct->pieces, &piece);
    }
    return piece;
}

/** Note that a message cannot be posted. */
static void note_post(direct_t *direct, int rc, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        mca_coll_umrddt_note(&direct->rc, rc);
        *request = MPI_REQUEST_NULL;
    }
}

/** Returns true if a message has ended. */
static bool has_ended(direct_t *direct, ompi_request_t **request, bool is_receive)
{
    if (!REQUEST_COMPLETE(*request)) {
        return false;
    }
    if (OPAL_LIKELY(MPI_REQUEST_NULL != *request)) {
        mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_wait_one(request, is_receive));
    }
    return true;
}

/** Receive pieces. @return true: some have arrived */
static bool receive_pieces(direct_t *direct, int window)
{
    mca_coll_umrddt_progress_t *now = &direct->now;
    const int before = now->arrived;

    if (0 > direct->peers[0]) {
        now->arrived = direct->pieces;
        return false;
    }
    while (now->posted < direct->pieces && now->posted < now->arrived + window) {
        const part_t piece = piece_of(direct, now->posted);
        ompi_request_t **request = &direct->requests[now->posted++ % window];

        note_post(direct,
                  MCA_PML_CALL(irecv(piece.address, piece.count, piece.type, direct->peers[0],
                                     direct->tag, direct->comm, request)),
                  request);
    }
    while (now->arrived < now->posted
           && has_ended(direct, &direct->requests[now->arrived % window], true)) {
        ++now->arrived;
    }
    return before < now->arrived;
}

/** Send pieces that have arrived, without data after an error. @return true: some have been sent */
static bool send_pieces(direct_t *direct, int window)
{
    mca_coll_umrddt_progress_t *now = &direct->now;
    ompi_request_t **requests = direct->requests + WINDOW;
    const int before = now->sent;

    if (0 > direct->peers[1]) {
        now->sent = now->arrived;
        return false;
    }
    while (now->sending < now->arrived && now->sending < now->sent + window) {
        const part_t piece = piece_of(direct, now->sending);
        const size_t count = OPAL_LIKELY(OMPI_SUCCESS == direct->rc) ? piece.count : 0;
        ompi_request_t **request = &requests[now->sending++ % window];

        note_post(
            direct,
            MCA_PML_CALL(isend(piece.address, count, piece.type, direct->peers[1], direct->tag,
                               MCA_PML_BASE_SEND_STANDARD, direct->comm, request)),
            request);
    }
    while (now->sent < now->sending && has_ended(direct, &requests[now->sent % window], false)) {
        ++now->sent;
    }
    return before < now->sent;
}

/** Returns true if pieces are in progress. */
static bool pass_pieces(direct_t *direct)
{
    const unsigned most = mca_coll_umrddt_params.direct_messages;
    const int window = WINDOW < most ? WINDOW : (int) most;
    bool more;

    do {
        more = receive_pieces(direct, window);
        more = send_pieces(direct, window) || more;
    } while (more);
    return direct->now.sent < direct->pieces;
}

static bool pieces_step(direct_t *direct)
{
    const part_t *whole = &direct->recvs[0].part;
    mca_coll_umrddt_progress_t *now = &direct->now;
    const bool is_root = 0 > direct->peers[0];

    if (0 == now->phase) {
        now->phase = 1;
        if (direct->packs) {
            temp_get(direct, whole, whole->bytes);
        }
        if (NULL != now->temp && is_root) {
            const part_t copy = packed(direct, 0, whole->bytes);

            mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_copy_part(direct, whole, &copy));
            return true;
        }
    }
    if (1 == now->phase) {
        if (pass_pieces(direct)) {
            return true;
        }
        now->phase = 2;
        if (NULL != now->temp && !is_root) {
            const part_t copy = packed(direct, 0, whole->bytes);

            mca_coll_umrddt_note(&direct->rc, mca_coll_umrddt_copy_part(direct, &copy, whole));
            return true;
        }
    }
    temp_put(direct);
    now->phase = 3;
    return false;
}

int mca_coll_umrddt_steps_window(void)
{
    return WINDOW;
}

void mca_coll_umrddt_steps_bcast(direct_t *direct, ompi_communicator_t *comm,
                                 const mca_coll_umrddt_sides_t *sides, int root)
{
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const int next = (rank + 1) % size;
    part_t whole;

    mca_coll_umrddt_messages_begin(direct, comm, &sides->recv, &sides->recv);
    mca_coll_umrddt_side_part(&sides->recv, 0, &whole);
    if (TREE > whole.bytes) {
        list_tree(direct, comm, root);
        return;
    }
    mca_coll_umrddt_add_recv(direct, 0, 0);
    direct->peers[0] = rank != root ? (rank - 1 + size) % size : -1;
    direct->peers[1] = next != root ? next : -1;
    direct->pieces = count_pieces(comm, whole.bytes);
    direct->packs = !mca_coll_umrddt_side_is_contiguous(&sides->recv);
    direct->step = pieces_step;
}

int mca_coll_umrddt_steps_run(direct_t *direct)
{
    int rc;

    mca_coll_umrddt_messages_start(direct);
    while (OMPI_ERR_RESOURCE_BUSY == (rc = mca_coll_umrddt_messages_test(direct))) {
        opal_progress();
    }
    return rc;
}
