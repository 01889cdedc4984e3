/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Special cases of point-to-point: PROC_NULL, self, empty messages, buffered and ready sends,
 * Sendrecv_replace, intercommunicators, communicators that are created and freed, addresses from
 * MPI_BOTTOM, messages that end within an element, ranks that differ in two communicators.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

/* A send to PROC_NULL completes, a receive from PROC_NULL returns an empty status. */
static void proc_null(uint64_t *state)
{
    mpitest_message_t *message =
        mpitest_message(mpitest_draw_kind(state), mpitest_draw_bytes(state), 1);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int i;

    MPI_OK(MPI_Send(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Ssend(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MPI_OK(
        MPI_Recv(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &statuses[0]));
    CHECK_STATUS(&statuses[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_OK(MPI_Irecv(message->addr, 1, message->type, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD,
                     &requests[0]));
    MPI_OK(
        MPI_Isend(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
    MPI_OK(MPI_Waitall(2, requests, statuses));
    CHECK_STATUS(&statuses[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_OK(MPI_Recv_init(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                         &requests[0]));
    MPI_OK(MPI_Send_init(message->addr, 1, message->type, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                         &requests[1]));
    for (i = 0; i < 2; ++i) {
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
    VERIFY(message->buffer, 0, 0);
    mpitest_message_free(message);
}

/* A process to itself, with every combination that cannot deadlock. */
static void oneself(uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state), way;

    for (way = 0; way < 5; ++way) {
        mpitest_message_t *out = mpitest_message(mpitest_draw_kind(state), bytes, 5);
        mpitest_message_t *in = mpitest_message(mpitest_draw_kind(state), bytes + 16, 6);
        MPI_Comm comm = 0 == way % 2 ? MPI_COMM_SELF : MPI_COMM_WORLD;
        int me = 0 == way % 2 ? 0 : mpitest.rank;
        uint64_t key = mpitest_random(state);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Message handle;

        mpitest_fill(out->buffer, key);
        switch (way) {
        case 0:
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, me, 1, comm, &requests[0]));
            MPI_OK(MPI_Send(out->addr, 1, out->type, me, 1, comm));
            MPI_OK(MPI_Wait(&requests[0], &statuses[0]));
            break;
        case 1:
            MPI_OK(MPI_Isend(out->addr, 1, out->type, me, 1, comm, &requests[1]));
            MPI_OK(
                MPI_Recv(in->addr, 1, in->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &statuses[0]));
            MPI_OK(MPI_Wait(&requests[1], &statuses[1]));
            break;
        case 2:
            MPI_OK(MPI_Sendrecv(out->addr, 1, out->type, me, 1, in->addr, 1, in->type, me, 1, comm,
                                &statuses[0]));
            break;
        case 3:
            MPI_OK(MPI_Isend(out->addr, 1, out->type, me, 1, comm, &requests[1]));
            MPI_OK(MPI_Probe(me, MPI_ANY_TAG, comm, &statuses[0]));
            CHECK_STATUS(&statuses[0], me, 1, bytes);
            MPI_OK(MPI_Mprobe(me, 1, comm, &handle, &statuses[0]));
            MPI_OK(MPI_Mrecv(in->addr, 1, in->type, &handle, &statuses[0]));
            MPI_OK(MPI_Wait(&requests[1], &statuses[1]));
            break;
        default:
            MPI_OK(MPI_Recv_init(in->addr, 1, in->type, me, 1, comm, &requests[0]));
            MPI_OK(MPI_Ssend_init(out->addr, 1, out->type, me, 1, comm, &requests[1]));
            MPI_OK(MPI_Startall(2, requests));
            MPI_OK(MPI_Waitall(2, requests, statuses));
            MPI_OK(MPI_Request_free(&requests[0]));
            MPI_OK(MPI_Request_free(&requests[1]));
            break;
        }
        CHECK_STATUS(&statuses[0], me, 1, bytes);
        VERIFY(in->buffer, key, bytes);
        VERIFY(out->buffer, key, bytes);
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
}

/* No data at all, in types that have gaps, blocks of length 0, or a count of 0. */
static void nothing(uint64_t *state)
{
    mpitest_message_t *large = mpitest_message(mpitest_draw_kind(state), 20000, 1);
    int lengths[3] = {0, 0, 0}, turn;
    MPI_Aint at[3] = {0, 40, -8};
    MPI_Datatype empty;
    MPI_Request request;
    MPI_Status status;

    MPI_OK(MPI_Type_create_hindexed(3, lengths, at, MPI_DOUBLE, &empty));
    MPI_OK(MPI_Type_commit(&empty));
    for (turn = 0; turn < 3; ++turn) {
        /* Empty into empty, empty into a large receive; with a large type, or with an empty one. */
        MPI_OK(MPI_Irecv(0 == turn ? NULL : large->addr, 0 == turn ? 0 : 1, large->type,
                         mpitest_left(), turn, MPI_COMM_WORLD, &request));
        if (1 == turn) {
            MPI_OK(MPI_Send(NULL, 7, empty, mpitest_right(), turn, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Ssend(NULL, 0, large->type, mpitest_right(), turn, MPI_COMM_WORLD));
        }
        MPI_OK(MPI_Wait(&request, &status));
        CHECK_STATUS(&status, mpitest_left(), turn, 0);
    }
    MPI_OK(MPI_Irecv(NULL, 3, empty, mpitest_left(), 9, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(NULL, 0, large->type, mpitest_right(), 9, MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, mpitest_left(), 9, 0);
    VERIFY(large->buffer, 0, 0);
    MPI_OK(MPI_Type_free(&empty));
    mpitest_message_free(large);
}

/* Buffered: the buffer may be overwritten at once. Ready: the receive is known to be there. */
static void buffered_and_ready(uint64_t *state)
{
    uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 1);
    int bytes = mpitest_draw_bytes(state), size = 4 * (100000 + MPI_BSEND_OVERHEAD), detached = 0,
        i;
    mpitest_kind_t kinds[4][2];
    mpitest_message_t *out[4], *in[4];
    MPI_Request requests[4], send;
    MPI_Status statuses[4];
    void *space = malloc((size_t) size), *gone;

    CHECK(NULL != space);
    MPI_OK(MPI_Buffer_attach(space, size));
    for (i = 0; i < 4; ++i) {
        kinds[i][0] = mpitest_draw_kind(state);
        kinds[i][1] = mpitest_draw_kind(state);
        out[i] = mpitest_message(kinds[i][0], bytes, key);
        in[i] = mpitest_message(kinds[i][1], bytes, key);
        mpitest_fill(out[i]->buffer, key + (uint64_t) i);
        if (2 <= i) {
            MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, mpitest_left(), 20 + i, MPI_COMM_WORLD,
                             &requests[i]));
        }
    }
    MPI_OK(MPI_Bsend(out[0]->addr, 1, out[0]->type, mpitest_right(), 20, MPI_COMM_WORLD));
    mpitest_clear(out[0]->buffer);
    MPI_OK(
        MPI_Bsend_init(out[1]->addr, 1, out[1]->type, mpitest_right(), 21, MPI_COMM_WORLD, &send));
    MPI_OK(MPI_Start(&send));
    MPI_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    mpitest_clear(out[1]->buffer);
    MPI_OK(MPI_Request_free(&send));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(MPI_Rsend(out[2]->addr, 1, out[2]->type, mpitest_right(), 22, MPI_COMM_WORLD));
    MPI_OK(MPI_Irsend(out[3]->addr, 1, out[3]->type, mpitest_right(), 23, MPI_COMM_WORLD, &send));
    for (i = 0; i < 2; ++i) {
        MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, mpitest_left(), 20 + i, MPI_COMM_WORLD,
                         &requests[i]));
    }
    MPI_OK(MPI_Waitall(4, requests, statuses));
    MPI_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    for (i = 0; i < 4; ++i) {
        CHECK_STATUS(&statuses[i], mpitest_left(), 20 + i, bytes);
        VERIFY(in[i]->buffer, key + (uint64_t) i, bytes);
        mpitest_message_free(in[i]);
        mpitest_message_free(out[i]);
    }
    MPI_OK(MPI_Buffer_detach(&gone, &detached));
    free(space);
}

/* Sendrecv_replace: the received data replaces the sent data, in the same layout. */
static void replace(uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state);
    mpitest_message_t *message = mpitest_message(mpitest_draw_kind(state), bytes, 3);
    MPI_Status status;

    mpitest_fill(message->buffer, (uint64_t) mpitest.rank + 50);
    MPI_OK(MPI_Sendrecv_replace(message->addr, 1, message->type, mpitest_right(), 2, mpitest_left(),
                                2, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, mpitest_left(), 2, bytes);
    VERIFY(message->buffer, (uint64_t) mpitest_left() + 50, bytes);
    mpitest_message_free(message);
}

/* Communicators that are created and freed with messages in them, with reversed ranks. */
static void communicators(uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state), turn, new_rank, size;
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};

    for (turn = 0; turn < 3; ++turn) {
        mpitest_message_t *out = mpitest_message(kinds[0], bytes, 3);
        mpitest_message_t *in = mpitest_message(kinds[1], bytes, 4);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Comm comm;
        int to, from;

        if (1 == turn) {
            MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -mpitest.rank, &comm));
        } else {
            MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        }
        MPI_OK(MPI_Comm_rank(comm, &new_rank));
        MPI_OK(MPI_Comm_size(comm, &size));
        to = (new_rank + 1) % size;
        from = (new_rank + size - 1) % size;
        mpitest_fill(out->buffer, (uint64_t) new_rank);
        /* The same tag in another communicator must not be found. */
        MPI_OK(MPI_Isend(out->addr, 1, out->type, to, 8, comm, &requests[0]));
        MPI_OK(MPI_Irecv(in->addr, 1, in->type, 2 == turn ? MPI_ANY_SOURCE : from,
                         2 == turn ? MPI_ANY_TAG : 8, comm, &requests[1]));
        MPI_OK(MPI_Comm_free(&comm));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[1], from, 8, bytes);
        VERIFY(in->buffer, (uint64_t) from, bytes);
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
}

/* Between two groups: ranks are those of the other group. */
static void between_groups(uint64_t *state)
{
    int color = mpitest.rank % 2, bytes = mpitest_draw_bytes(state), remote = 0, mine, other, i,
        n = 2;
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    mpitest_message_t *out[2], *in[2];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Comm local, inter;

    if (2 > mpitest.size) {
        return;
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, color, 0, &local));
    MPI_OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - color, 77, &inter));
    MPI_OK(MPI_Comm_remote_size(inter, &remote));
    MPI_OK(MPI_Comm_rank(inter, &mine));
    if (mine < remote) {
        other = 2 * mine + (1 - color);
        for (i = 0; i < n; ++i) {
            out[i] = mpitest_message(kinds[i], bytes, 9);
            in[i] = mpitest_message(kinds[1 - i], bytes + 5, 9);
            mpitest_fill(out[i]->buffer, (uint64_t) (mpitest.rank * 10 + i));
            MPI_OK(MPI_Isend(out[i]->addr, 1, out[i]->type, mine, 4, inter, &requests[i]));
        }
        MPI_OK(MPI_Irecv(in[0]->addr, 1, in[0]->type, mine, 4, inter, &requests[2]));
        MPI_OK(MPI_Irecv(in[1]->addr, 1, in[1]->type, MPI_ANY_SOURCE, MPI_ANY_TAG, inter,
                         &requests[3]));
        MPI_OK(MPI_Waitall(4, requests, statuses));
        for (i = 0; i < n; ++i) {
            CHECK_STATUS(&statuses[2 + i], mine, 4, bytes);
            VERIFY(in[i]->buffer, (uint64_t) (other * 10 + i), bytes);
            mpitest_message_free(in[i]);
            mpitest_message_free(out[i]);
        }
    }
    MPI_OK(MPI_Comm_free(&inter));
    MPI_OK(MPI_Comm_free(&local));
}

/* A type of absolute addresses: two arrays as one message, from MPI_BOTTOM. */
static void from_bottom(uint64_t *state)
{
    int n = (int) mpitest_between(state, 200, 4000), i, lengths[3];
    double *first = malloc(sizeof(double) * (size_t) n);
    int *second = malloc(sizeof(int) * 3 * (size_t) n);
    double *both[2] = {malloc(sizeof(double) * (size_t) n), malloc(sizeof(double) * (size_t) n)};
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_DATATYPE_NULL, MPI_DOUBLE}, send, receive;
    MPI_Aint at[3];
    MPI_Request request;
    MPI_Status status;
    int *into = malloc(sizeof(int) * 3 * (size_t) n), count = -1;

    CHECK(NULL != first && NULL != second && NULL != both[0] && NULL != both[1] && NULL != into);
    for (i = 0; i < n; ++i) {
        first[i] = mpitest.rank * 1e6 + i;
        both[0][i] = both[1][i] = -1.;
    }
    for (i = 0; i < 3 * n; ++i) {
        second[i] = mpitest.rank * 1000000 + i;
        into[i] = -1;
    }
    MPI_OK(MPI_Type_vector(n, 1, 3, MPI_INT, &types[1]));
    lengths[0] = n;
    lengths[1] = 1;
    MPI_OK(MPI_Get_address(first, &at[0]));
    MPI_OK(MPI_Get_address(second, &at[1]));
    MPI_OK(MPI_Type_create_struct(2, lengths, at, types, &send));
    MPI_OK(MPI_Type_commit(&send));
    MPI_OK(MPI_Get_address(both[1], &at[0]));
    MPI_OK(MPI_Get_address(into, &at[1]));
    MPI_OK(MPI_Type_create_struct(2, lengths, at, types, &receive));
    MPI_OK(MPI_Type_commit(&receive));
    MPI_OK(MPI_Irecv(MPI_BOTTOM, 1, receive, mpitest_left(), 3, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(MPI_BOTTOM, 1, send, mpitest_right(), 3, MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    MPI_OK(MPI_Get_elements(&status, receive, &count));
    CHECK_INT(count, 2 * n);
    for (i = 0; i < n; ++i) {
        CHECK(both[1][i] == mpitest_left() * 1e6 + i);
        CHECK(both[0][i] == -1.);
    }
    for (i = 0; i < 3 * n; ++i) {
        CHECK_INT(into[i], 0 == i % 3 ? mpitest_left() * 1000000 + i : -1);
    }
    MPI_OK(MPI_Type_free(&send));
    MPI_OK(MPI_Type_free(&receive));
    MPI_OK(MPI_Type_free(&types[1]));
    free(first);
    free(second);
    free(both[0]);
    free(both[1]);
    free(into);
}

/* Messages that end within an element of the receiver's type: Get_elements counts basic elements.
 */
static void partial_elements(uint64_t *state)
{
    int n = (int) mpitest_between(state, 300, 3000), lengths[3] = {2, 1, 3}, more, count = -1;
    MPI_Aint at[3] = {0, 24, 40};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, record, wide;
    mpitest_map_t *out_map, *in_map;
    mpitest_buffer_t *out, *in;
    MPI_Request request;
    MPI_Status status;

    MPI_OK(MPI_Type_create_struct(3, lengths, at, types, &record));
    MPI_OK(MPI_Type_create_resized(record, 0, 56, &wide));
    MPI_OK(MPI_Type_commit(&wide));
    /* The sender has one record as its type; the receiver two in one, and room for more of them. */
    MPI_OK(MPI_Type_free(&record));
    MPI_OK(MPI_Type_contiguous(2, wide, &record));
    MPI_OK(MPI_Type_commit(&record));
    more = (int) mpitest_between(state, 1, 40);
    out_map = mpitest_map(wide, n);
    in_map = mpitest_map(record, n / 2 + more);
    out = mpitest_buffer(out_map);
    in = mpitest_buffer(in_map);
    mpitest_fill(out, (uint64_t) mpitest.rank + 7);
    MPI_OK(MPI_Irecv(in->addr, in_map->count, record, mpitest_left(), 5, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(out->addr, n, wide, mpitest_right(), 5, MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    MPI_OK(MPI_Get_elements(&status, record, &count));
    CHECK_INT(count, 6 * n);
    MPI_OK(MPI_Get_count(&status, record, &count));
    CHECK_INT(count, 0 == n % 2 ? n / 2 : MPI_UNDEFINED);
    MPI_OK(MPI_Get_count(&status, wide, &count));
    CHECK_INT(count, n);
    VERIFY(in, (uint64_t) mpitest_left() + 7, out_map->size);
    mpitest_buffer_free(out);
    mpitest_buffer_free(in);
    mpitest_map_free(out_map);
    mpitest_map_free(in_map);
    MPI_OK(MPI_Type_free(&wide));
    MPI_OK(MPI_Type_free(&record));
}

/* A communicator that requests the scheme host: umrddt handles nothing there, and all messages are
 * right. */
static void requested_for_host(uint64_t *state)
{
    int bytes = mpitest_draw_bytes(state);
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    mpitest_message_t *out = mpitest_message(kinds[0], bytes, 3);
    mpitest_message_t *in = mpitest_message(kinds[1], bytes, 4);
    MPI_Request request;
    MPI_Status status;
    MPI_Info info;
    MPI_Comm comm;

    MPI_OK(MPI_Info_create(&info));
    MPI_OK(MPI_Info_set(info, "pml_umrddt_scheme", "host"));
    MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_OK(MPI_Info_free(&info));
    mpitest_fill(out->buffer, (uint64_t) mpitest.rank);
    MPI_OK(MPI_Irecv(in->addr, 1, in->type, MPI_ANY_SOURCE, 1, comm, &request));
    MPI_OK(MPI_Send(out->addr, 1, out->type, mpitest_right(), 1, comm));
    MPI_OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, mpitest_left(), 1, bytes);
    VERIFY(in->buffer, (uint64_t) mpitest_left(), bytes);
    MPI_OK(MPI_Comm_free(&comm));
    mpitest_message_free(out);
    mpitest_message_free(in);
}

/* Many communicators at once, freed in an order of their own, each with pending messages. */
static void many_communicators(uint64_t *state)
{
    enum {
        MANY = 24
    };
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    int bytes = mpitest_draw_bytes(state), order[MANY], i;
    mpitest_message_t *out[MANY], *in[MANY];
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY];
    MPI_Comm comms[MANY];

    for (i = 0; i < MANY; ++i) {
        MPI_OK(MPI_Comm_dup(0 == i ? MPI_COMM_WORLD : comms[i - 1], &comms[i]));
        order[i] = i;
    }
    for (i = 0; i < MANY; ++i) {
        out[i] = mpitest_message(kinds[i % 2], bytes, 1);
        in[i] = mpitest_message(kinds[1 - i % 2], bytes, 1);
        mpitest_fill(out[i]->buffer, (uint64_t) (1000 * mpitest.rank + i));
        MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i],
                         &requests[i]));
    }
    /* The same on all ranks: freeing is collective. */
    mpitest_shuffle(state, order, MANY);
    for (i = 0; i < MANY; ++i) {
        int which = order[i];

        MPI_OK(MPI_Isend(out[which]->addr, 1, out[which]->type, mpitest_right(), 5, comms[which],
                         &requests[MANY + which]));
        MPI_OK(MPI_Comm_free(&comms[which]));
    }
    MPI_OK(MPI_Waitall(2 * MANY, requests, statuses));
    for (i = 0; i < MANY; ++i) {
        CHECK_STATUS(&statuses[i], mpitest_left(), 5, bytes);
        VERIFY(in[i]->buffer, (uint64_t) (1000 * mpitest_left() + i), bytes);
        mpitest_message_free(in[i]);
        mpitest_message_free(out[i]);
    }
}

/* The same type repeatedly, then freed and another one created, most likely at the same address. */
static void reused_types(uint64_t *state)
{
    int turn, again;

    for (turn = 0; turn < 6; ++turn) {
        int bytes = 5000 + 8 * (int) mpitest_between(state, 0, 500);
        mpitest_kind_t kind = mpitest_draw_kind(state);
        mpitest_message_t *out = mpitest_message(kind, bytes, (uint64_t) turn);
        mpitest_message_t *in = mpitest_message(kind, bytes, (uint64_t) turn);
        MPI_Status status;

        for (again = 0; again < 3; ++again) {
            mpitest_fill(out->buffer, (uint64_t) (mpitest.rank * 10 + again));
            mpitest_clear(in->buffer);
            MPI_OK(MPI_Sendrecv(out->addr, 1, out->type, mpitest_right(), 6, in->addr, 1, in->type,
                                mpitest_left(), 6, MPI_COMM_WORLD, &status));
            VERIFY(in->buffer, (uint64_t) (mpitest_left() * 10 + again), bytes);
        }
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
}

/* The smallest and the largest tags, by name and by wildcard; control messages have other tags. */
static void extreme_tags(uint64_t *state)
{
    int tags[4] = {0, 1, 0, 0}, flag = 0, bytes = mpitest_draw_bytes(state), i, *upper = NULL;
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    mpitest_message_t *out = mpitest_message(kinds[0], bytes, 1);
    mpitest_message_t *in = mpitest_message(kinds[1], bytes, 1);
    MPI_Request request;
    MPI_Status status;

    MPI_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    CHECK(flag && 32767 <= *upper);
    tags[2] = *upper - 1;
    tags[3] = *upper;
    for (i = 0; i < 8; ++i) {
        int tag = tags[i / 2];

        mpitest_fill(out->buffer, (uint64_t) (mpitest.rank * 8 + i));
        mpitest_clear(in->buffer);
        MPI_OK(MPI_Isend(out->addr, 1, out->type, mpitest_right(), tag, MPI_COMM_WORLD, &request));
        if (0 == i % 2) {
            MPI_OK(MPI_Probe(mpitest_left(), tag, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, mpitest_left(), tag, bytes);
        }
        MPI_OK(MPI_Recv(in->addr, 1, in->type, mpitest_left(), 0 == i % 2 ? tag : MPI_ANY_TAG,
                        MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, mpitest_left(), tag, bytes);
        VERIFY(in->buffer, (uint64_t) (mpitest_left() * 8 + i), bytes);
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    mpitest_message_free(out);
    mpitest_message_free(in);
}

/* Completion or probe of one message does not change MPI_ERROR of its status. */
static void error_field(uint64_t *state)
{
    enum {
        WAYS = 9
    };
    int bytes = mpitest_draw_bytes(state), way, flag, index;
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    mpitest_message_t *out = mpitest_message(kinds[0], bytes, 1);
    mpitest_message_t *in = mpitest_message(kinds[1], bytes, 1);
    MPI_Request send, request;
    MPI_Message message;
    MPI_Status status;

    for (way = 0; way < WAYS; ++way) {
        mpitest_fill(out->buffer, (uint64_t) (mpitest.rank * WAYS + way));
        mpitest_clear(in->buffer);
        status.MPI_ERROR = 4711;
        if (3 > way) {
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, mpitest_left(), way, MPI_COMM_WORLD, &request));
        }
        MPI_OK(MPI_Isend(out->addr, 1, out->type, mpitest_right(), way, MPI_COMM_WORLD, &send));
        switch (way) {
        case 0:
            MPI_OK(MPI_Wait(&request, &status));
            break;
        case 1:
            for (flag = 0; !flag;) {
                MPI_OK(MPI_Test(&request, &flag, &status));
            }
            break;
        case 2:
            MPI_OK(MPI_Waitany(1, &request, &index, &status));
            break;
        case 3:
            for (flag = 0; !flag;) {
                MPI_OK(MPI_Iprobe(mpitest_left(), way, MPI_COMM_WORLD, &flag, &status));
            }
            CHECK_INT(status.MPI_ERROR, 4711);
            MPI_OK(MPI_Recv(in->addr, 1, in->type, mpitest_left(), way, MPI_COMM_WORLD, &status));
            break;
        case 4:
            MPI_OK(MPI_Probe(mpitest_left(), way, MPI_COMM_WORLD, &status));
            CHECK_INT(status.MPI_ERROR, 4711);
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, mpitest_left(), way, MPI_COMM_WORLD, &request));
            MPI_OK(MPI_Wait(&request, &status));
            break;
        case 5:
        case 6:
            MPI_OK(MPI_Mprobe(mpitest_left(), way, MPI_COMM_WORLD, &message, &status));
            CHECK_INT(status.MPI_ERROR, 4711);
            if (5 == way) {
                MPI_OK(MPI_Mrecv(in->addr, 1, in->type, &message, &status));
            } else {
                MPI_OK(MPI_Imrecv(in->addr, 1, in->type, &message, &request));
                MPI_OK(MPI_Wait(&request, &status));
            }
            break;
        case 7:
            MPI_OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, in->addr, 1, in->type,
                                mpitest_left(), way, MPI_COMM_WORLD, &status));
            break;
        default:
            MPI_OK(MPI_Recv(in->addr, 1, in->type, mpitest_left(), way, MPI_COMM_WORLD, &status));
            break;
        }
        CHECK_INT(status.MPI_ERROR, 4711);
        CHECK_STATUS(&status, mpitest_left(), way, bytes);
        VERIFY(in->buffer, (uint64_t) (mpitest_left() * WAYS + way), bytes);
        MPI_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    mpitest_message_free(out);
    mpitest_message_free(in);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"proc_null", proc_null},
        {"oneself", oneself},
        {"nothing", nothing},
        {"buffered_and_ready", buffered_and_ready},
        {"replace", replace},
        {"communicators", communicators},
        {"between_groups", between_groups},
        {"from_bottom", from_bottom},
        {"partial_elements", partial_elements},
        {"requested_for_host", requested_for_host},
        {"many_communicators", many_communicators},
        {"reused_types", reused_types},
        {"extreme_tags", extreme_tags},
        {"error_field", error_field},
        {NULL, NULL},
    };

    mpitest_init(&argc, &argv, "special_cases", 8, MPI_THREAD_SINGLE);
    mpitest_run(parts);
    return mpitest_finish();
}
