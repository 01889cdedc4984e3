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
 * Messages of direct collectives. See coll_umrddt_messages.h first.
 */

/*
 * Each part is one message of the PML with the user's datatype. pml/umrddt moves it as it moves the
 * application's messages. The tag is UMRDDT_COLLECTIVES_TAG for all blocking and nonblocking
 * collectives: all processes make the calls of a communicator in the same order, and a nonblocking
 * call posts all its messages at once, so messages match in order. Persistent requests may be
 * started in any order, so each has its own tag. Parts without data are not sent; sender and
 * receiver have the same number of bytes. Receives are posted before sends.
 *
 * A part for this process itself is one copy by the device. If the device cannot copy it at once,
 * it is a message, too. The CPU copies it in a process that does not use CUDA, unless it has more
 * than INT32_MAX elements.
 *
 * Many messages of a blocking call are done in groups, so that their number in progress is bounded.
 * In an all-to-all their bytes are, too: if processes read from several others at once, two of them
 * may read from the same one, at half the rate. Then all wait for the slowest. On four GPUs, parts
 * of 32 MiB take 0.6 times as long one after the other (bench/results/h200-2026-11-27.md).
 * A process begins with the processes at small distances from its rank. So the messages of the
 * smallest distance that are not complete are in progress at both ends, also if groups have
 * different sizes.
 *
 * In collectives in steps (coll_umrddt_steps.c), some messages are posted when others have ended,
 * so those of two calls may be posted in any order. Each nonblocking call has the next one of TURNS
 * tags. A call begins when the one that had its tag before has ended in this process. So messages
 * with one tag match in order.
 *
 * After an error of one message or copy, all others are done as if there was none. Other processes
 * wait for them, and a message that is left would match one of the next collective. If a process
 * cannot get data that it sends, that message has no data, which is an error at its receiver.
 */

#include "coll_umrddt_messages.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/base/base.h"

#include "coll_umrddt_layout.h"
#include "umrddt_collectives.h"

typedef mca_coll_umrddt_direct_t direct_t;
typedef mca_coll_umrddt_own_t own_t;

/* ---------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------- */

/** Free the arrays. */
static void clear(direct_t *direct)
{
    free(direct->sends);
    free(direct->recvs);
    free(direct->requests);
    free(direct->own);
    *direct = (direct_t){.sends = NULL};
}

void mca_coll_umrddt_messages_free(direct_t *direct)
{
    if (NULL != direct) {
        clear(direct);
        free(direct);
    }
}

/** Allocate the arrays for @p n messages in each direction. @return false: no memory */
static bool make_room(direct_t *direct, int n)
{
    if (OPAL_UNLIKELY(direct->room < n)) {
        const size_t room = (size_t) n;

        clear(direct);
        direct->sends = malloc(room * sizeof(direct->sends[0]));
        direct->recvs = malloc(room * sizeof(direct->recvs[0]));
        direct->requests = malloc(2 * room * sizeof(direct->requests[0]));
        direct->own = malloc(room * sizeof(direct->own[0]));
        if (NULL == direct->sends || NULL == direct->recvs || NULL == direct->requests
            || NULL == direct->own) {
            clear(direct);
            return false;
        }
        direct->room = n;
    }
    return true;
}

int mca_coll_umrddt_messages_neighbours(ompi_communicator_t *comm)
{
    int sources, destinations;

    if (!OMPI_COMM_IS_TOPO(comm)
        || OMPI_SUCCESS != mca_topo_base_neighbor_count(comm, &sources, &destinations)) {
        return 0;
    }
    return sources < destinations ? destinations : sources;
}

bool mca_coll_umrddt_messages_room(direct_t **direct, ompi_communicator_t *comm)
{
    const int n = mca_coll_umrddt_messages_neighbours(comm), others = mca_coll_umrddt_others(comm);

    if (OPAL_UNLIKELY(NULL == *direct)) {
        *direct = calloc(1, sizeof(**direct));
    }
    return NULL != *direct && make_room(*direct, n < others ? others : n);
}

void mca_coll_umrddt_messages_begin(direct_t *direct, ompi_communicator_t *comm,
                                    const mca_coll_umrddt_side_t *send,
                                    const mca_coll_umrddt_side_t *recv)
{
    direct->comm = comm;
    direct->tag = UMRDDT_COLLECTIVES_TAG;
    direct->self = OMPI_COMM_IS_INTER(comm) ? -1 : ompi_comm_rank(comm);
    direct->send = send;
    direct->recv = recv;
    direct->send_count = direct->recv_count = 0;
    direct->request_count = direct->receives = direct->own_count = 0;
    direct->step = NULL;
    direct->close = NULL;
    direct->served = NULL;
    direct->waits = false;
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

int mca_coll_umrddt_post_send(direct_t *direct, ompi_communicator_t *comm,
                              const mca_coll_umrddt_part_t *part, int peer, bool failed)
{
    int rc;

    if (0 == part->bytes) {
        return OMPI_SUCCESS;
    }
    rc = MCA_PML_CALL(isend(part->address, failed ? 0 : part->count, part->type, peer, direct->tag,
                            MCA_PML_BASE_SEND_STANDARD, comm,
                            &direct->requests[direct->request_count]));
    direct->request_count += OMPI_SUCCESS == rc ? 1 : 0;
    return rc;
}

int mca_coll_umrddt_post_recv(direct_t *direct, ompi_communicator_t *comm,
                              const mca_coll_umrddt_part_t *part, int peer)
{
    int rc;

    if (0 == part->bytes) {
        return OMPI_SUCCESS;
    }
    rc = MCA_PML_CALL(irecv(part->address, part->count, part->type, peer, direct->tag, comm,
                            &direct->requests[direct->request_count]));
    direct->request_count += OMPI_SUCCESS == rc ? 1 : 0;
    return rc;
}

void mca_coll_umrddt_piece_of(const mca_coll_umrddt_part_t *whole, int i, int n,
                              mca_coll_umrddt_part_t *piece)
{
    const size_t most = whole->bytes / (size_t) n;
    const size_t first = most * (size_t) i;

    piece->address = (char *) whole->address + whole->type->super.true_lb + first;
    piece->bytes = piece->count = i < n - 1 ? most : whole->bytes - first;
    piece->type = &ompi_mpi_byte.dt;
}

static int wait_for(direct_t *direct, int i)
{
    return mca_coll_umrddt_wait_one(&direct->requests[i], i < direct->receives);
}

int mca_coll_umrddt_wait_all(direct_t *direct, int rc)
{
    for (int i = 0; i < direct->request_count; ++i) {
        mca_coll_umrddt_note(&rc, wait_for(direct, i));
    }
    direct->request_count = direct->receives = 0;
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
    }
    own_release(own);
    return false;
}

/** Note the result of a copy that has ended. */
static void own_ended(own_t *own, int one, int *rc)
{
    own_release(own);
    if (OPAL_SUCCESS != one) {
        mca_coll_umrddt_note(rc, mca_coll_umrddt_fail(one, 0));
    }
}

/** Wait for the copies in progress. @param[in] rc the error so far @return rc, or the first error
 */
static int wait_own(direct_t *direct, int rc)
{
    for (int i = 0; i < direct->own_count; ++i) {
        own_ended(&direct->own[i], opal_umrddt_gpu_copy_wait(direct->own[i].copy), &rc);
    }
    direct->own_count = 0;
    return rc;
}

/** A part as a message of this process to itself. */
static int post_own(direct_t *direct, const mca_coll_umrddt_part_t *from,
                    const mca_coll_umrddt_part_t *to)
{
    int rc = mca_coll_umrddt_post_recv(direct, direct->comm, to, direct->self);

    if (OMPI_SUCCESS == rc) {
        rc = mca_coll_umrddt_post_send(direct, direct->comm, from, direct->self, false);
        if (OMPI_SUCCESS != rc) {
            (void) ompi_request_cancel(direct->requests[direct->request_count - 1]);
        }
    }
    return rc;
}

int mca_coll_umrddt_copy_part(direct_t *direct, const mca_coll_umrddt_part_t *from,
                              const mca_coll_umrddt_part_t *to)
{
    if (from->bytes > to->bytes) {
        return MPI_ERR_TRUNCATE;
    }
    if (0 == from->bytes) {
        return OMPI_SUCCESS;
    }
    if (!opal_umrddt_gpu_in_use()) {
        /* Open MPI 5.0 has counts of 32 bits here, and its messages have larger ones */
        if (INT32_MAX < from->count || INT32_MAX < to->count) {
            return post_own(direct, from, to);
        }
        return ompi_datatype_sndrcv(from->address, from->count, from->type, to->address, to->count,
                                    to->type);
    }
    if (start_copy(&direct->own[direct->own_count], from, to)) {
        ++direct->own_count;
        return OMPI_SUCCESS;
    }
    return post_own(direct, from, to);
}

/** Start the parts that this process sends to itself: the n-th send matches the n-th receive. */
static int start_own(direct_t *direct)
{
    int r = 0, rc = OMPI_SUCCESS;

    for (int s = 0; s < direct->send_count; ++s) {
        const mca_coll_umrddt_part_t *to;

        if (direct->self != direct->sends[s].peer) {
            continue;
        }
        while (r < direct->recv_count && direct->self != direct->recvs[r].peer) {
            ++r;
        }
        if (r == direct->recv_count) {
            mca_coll_umrddt_note(&rc, MPI_ERR_TOPOLOGY);
            break;
        }
        to = &direct->recvs[r++].part;
        mca_coll_umrddt_note(&rc, mca_coll_umrddt_copy_part(direct, &direct->sends[s].part, to));
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * All messages of a collective
 * ------------------------------------------------------------------------------------------- */

/** Post the messages first to last - 1 of both lists. */
static int post_group(direct_t *direct, int first, int last)
{
    int rc = OMPI_SUCCESS;

    for (int i = first; i < last && i < direct->recv_count; ++i) {
        const mca_coll_umrddt_message_t *message = &direct->recvs[i];

        if (direct->self != message->peer) {
            mca_coll_umrddt_note(&rc, mca_coll_umrddt_post_recv(direct, direct->comm,
                                                                &message->part, message->peer));
        }
    }
    for (int i = first; i < last && i < direct->send_count; ++i) {
        const mca_coll_umrddt_message_t *message = &direct->sends[i];

        if (direct->self != message->peer) {
            mca_coll_umrddt_note(&rc,
                                 mca_coll_umrddt_post_send(direct, direct->comm, &message->part,
                                                           message->peer, false));
        }
    }
    if (0 == first) {
        /* with the first group, after its messages, which take longer */
        mca_coll_umrddt_note(&rc, start_own(direct));
    }
    return rc;
}

/** Returns the first message after the group that begins with message @p first. */
static int group_end(const direct_t *direct, int first, int most, size_t most_bytes)
{
    size_t bytes = 0;
    int last = first;

    while (last < direct->room && last - first < most && bytes < most_bytes) {
        if (last < direct->recv_count && direct->self != direct->recvs[last].peer) {
            bytes += direct->recvs[last].part.bytes;
        }
        ++last;
    }
    return last;
}

int mca_coll_umrddt_exchange(direct_t *direct, int most, size_t most_bytes)
{
    int rc = OMPI_SUCCESS, first = 0;

    do {
        const int last = group_end(direct, first, most, most_bytes);

        mca_coll_umrddt_note(&rc, post_group(direct, first, last));
        rc = mca_coll_umrddt_wait_all(direct, rc);
        first = last;
    } while (first < direct->send_count || first < direct->recv_count);
    return wait_own(direct, rc);
}

/* ---------------------------------------------------------------------------------------------
 * Of requests
 * ------------------------------------------------------------------------------------------- */

/* Lists that no request uses: as many as requests were in progress at once, at most this many. */
#define UNUSED_CACHED 64

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static direct_t *unused;
static int unused_count;

direct_t *mca_coll_umrddt_messages_get(int n)
{
    direct_t *direct;

    opal_mutex_lock(&lock);
    direct = unused;
    if (NULL != direct) {
        unused = direct->next;
        --unused_count;
    }
    opal_mutex_unlock(&lock);
    if (NULL == direct) {
        direct = calloc(1, sizeof(*direct));
    }
    if (NULL != direct && !make_room(direct, n)) {
        free(direct);
        direct = NULL;
    }
    return direct;
}

/** Retain or release the datatypes of a list. */
static void hold(const mca_coll_umrddt_message_t *messages, int n, bool retain)
{
    for (int i = 0; i < n; ++i) {
        ompi_datatype_t *type = messages[i].part.type;

        if (ompi_datatype_is_predefined(type)) {
            continue;
        }
        if (retain) {
            OBJ_RETAIN(type);
        } else {
            OBJ_RELEASE(type);
        }
    }
}

static void hold_all(direct_t *direct, bool retain)
{
    hold(direct->sends, direct->send_count, retain);
    hold(direct->recvs, direct->recv_count, retain);
    direct->retains = retain;
}

void mca_coll_umrddt_messages_retain(direct_t *direct)
{
    hold_all(direct, true);
}

void mca_coll_umrddt_messages_put(direct_t *direct)
{
    if (NULL == direct) {
        return;
    }
    if (direct->retains) {
        hold_all(direct, false);
    }
    if (NULL != direct->close) {
        direct->close(direct);
        direct->close = NULL;
    }
    opal_mutex_lock(&lock);
    if (UNUSED_CACHED > unused_count) {
        direct->next = unused;
        unused = direct;
        ++unused_count;
        direct = NULL;
    }
    opal_mutex_unlock(&lock);
    mca_coll_umrddt_messages_free(direct);
}

void mca_coll_umrddt_messages_close(void)
{
    while (NULL != unused) {
        direct_t *direct = unused;

        unused = direct->next;
        mca_coll_umrddt_messages_free(direct);
    }
    unused_count = 0;
}

/** Returns true if a call in steps may begin: all earlier ones with its tag have ended here. */
static bool has_turn(const direct_t *direct)
{
    return NULL == direct->served
           || direct->turn == __atomic_load_n(direct->served, __ATOMIC_ACQUIRE);
}

void mca_coll_umrddt_messages_start(direct_t *direct)
{
    MCA_COLL_UMRDDT_COUNT(direct);
    direct->rc = OMPI_SUCCESS;
    if (NULL == direct->step) {
        direct->rc = post_group(direct, 0, INT_MAX);
        return;
    }
    direct->now = (mca_coll_umrddt_progress_t){.temp = NULL};
    direct->waits = !has_turn(direct);
    if (!direct->waits) {
        (void) direct->step(direct);
    }
}

/** Test the messages and copies in progress. @return true: all have ended */
static bool have_ended(direct_t *direct)
{
    while (0 < direct->own_count) {
        mca_coll_umrddt_own_t *own = &direct->own[direct->own_count - 1];
        int one = opal_umrddt_gpu_copy_test(own->copy);

        if (OPAL_ERR_RESOURCE_BUSY == one) {
            return false;
        }
        own_ended(own, one, &direct->rc);
        --direct->own_count;
    }
    while (0 < direct->request_count) {
        if (!REQUEST_COMPLETE(direct->requests[direct->request_count - 1])) {
            return false;
        }
        --direct->request_count;
        mca_coll_umrddt_note(&direct->rc, wait_for(direct, direct->request_count));
    }
    direct->receives = 0;
    return true;
}

int mca_coll_umrddt_messages_test(direct_t *direct)
{
    if (NULL == direct->step) {
        return have_ended(direct) ? direct->rc : OMPI_ERR_RESOURCE_BUSY;
    }
    direct->waits = direct->waits && !has_turn(direct);
    if (direct->waits || !have_ended(direct) || direct->step(direct)) {
        return OMPI_ERR_RESOURCE_BUSY;
    }
    if (NULL != direct->served) {
        __atomic_store_n(direct->served, direct->turn + 1, __ATOMIC_RELEASE);
    }
    return direct->rc;
}
