/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Communicators: every constructor, with messages in flight while communicators are created and
 * freed. Messages that were sent, posted, probed or matched on a communicator stay valid when its
 * handle is freed, and no message of one is found in another. Attribute functions are called when
 * required.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH 4

/* Messages of this rank to its right and from its left in a communicator, one batch of them. */
typedef struct batch_t {
    mpitest_message_t *out[BATCH], *in[BATCH];
    MPI_Request requests[2 * BATCH];
    uint64_t key;
    int left, tag;
} batch_t;

static uint64_t key_of(const batch_t *batch, int rank, int i)
{
    return mpitest_mix(batch->key, (uint64_t) rank, (uint64_t) i);
}

/* Ranks of the remote group: the own one, or the other group of an intercommunicator. */
static void make(batch_t *batch, MPI_Comm comm, int tag, uint64_t *state)
{
    int i, mine, size, inter;

    batch->key = mpitest_random(state);
    batch->tag = tag;
    MPI_OK(MPI_Comm_rank(comm, &mine));
    MPI_OK(MPI_Comm_test_inter(comm, &inter));
    MPI_OK((inter ? MPI_Comm_remote_size : MPI_Comm_size)(comm, &size));
    batch->left = (mine + size - 1) % size;
    for (i = 0; i < BATCH; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        int bytes = mpitest_draw_bytes(state);

        batch->out[i] = mpitest_message(kinds[0], bytes, 1);
        batch->in[i] = mpitest_message(kinds[1], bytes, 1);
        /* The ranks of both groups have different keys, because only the rank within the group is
         * known here. */
        mpitest_fill(batch->out[i]->buffer, key_of(batch, mine, i));
        batch->requests[i] = batch->requests[BATCH + i] = MPI_REQUEST_NULL;
    }
}

static void send_batch(batch_t *batch, MPI_Comm comm)
{
    int i, mine, size, inter;

    MPI_OK(MPI_Comm_rank(comm, &mine));
    MPI_OK(MPI_Comm_test_inter(comm, &inter));
    MPI_OK((inter ? MPI_Comm_remote_size : MPI_Comm_size)(comm, &size));
    for (i = 0; i < BATCH; ++i) {
        MPI_OK((0 == i % 2 ? MPI_Isend : MPI_Issend)(batch->out[i]->addr, 1, batch->out[i]->type,
                                                     (mine + 1) % size, batch->tag, comm,
                                                     &batch->requests[i]));
    }
}

static void post_batch(batch_t *batch, MPI_Comm comm)
{
    int i;

    for (i = 0; i < BATCH; ++i) {
        MPI_OK(MPI_Irecv(batch->in[i]->addr, 1, batch->in[i]->type,
                         0 == i % 2 ? batch->left : MPI_ANY_SOURCE,
                         3 == i ? MPI_ANY_TAG : batch->tag, comm, &batch->requests[BATCH + i]));
    }
}

static void finish_batch(batch_t *batch)
{
    MPI_Status statuses[2 * BATCH];
    int i;

    MPI_OK(MPI_Waitall(2 * BATCH, batch->requests, statuses));
    for (i = 0; i < BATCH; ++i) {
        CHECK_STATUS(&statuses[BATCH + i], batch->left, batch->tag, batch->in[i]->bytes);
        VERIFY(batch->in[i]->buffer, key_of(batch, batch->left, i), batch->in[i]->bytes);
        mpitest_message_free(batch->in[i]);
        mpitest_message_free(batch->out[i]);
    }
}

/* One batch on a communicator. */
static void around(MPI_Comm comm, uint64_t *state)
{
    batch_t batch;

    make(&batch, comm, 5, state);
    post_batch(&batch, comm);
    send_batch(&batch, comm);
    finish_batch(&batch);
}

/* Dup, Idup, Dup_with_info, Split, Split_type, Create, Create_group, Cart, Graph: each is used. */
static void every_kind(uint64_t *state)
{
    int dims[2] = {0, 0}, periods[2] = {1, 1}, remain[2] = {0, 1}, i;
    int *ranks = malloc(sizeof(*ranks) * (size_t) mpitest.size);
    uint64_t own; /* of those who are in the group */
    MPI_Group world, part;
    MPI_Request request;
    MPI_Comm comm, grid;

    CHECK(NULL != ranks);
    MPI_OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    around(MPI_COMM_WORLD, state); /* while it is made */
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    around(comm, state);
    MPI_OK(MPI_Comm_free(&comm));

    MPI_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -mpitest.rank, MPI_INFO_NULL,
                               &comm));
    around(comm, state);
    MPI_OK(MPI_Comm_free(&comm));

    /* All but the last, in reverse order. With create_group the last one does not take part at all.
     */
    MPI_OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (i = 0; i < mpitest.size; ++i) {
        ranks[i] = mpitest.size - 1 - i;
    }
    MPI_OK(MPI_Group_incl(world, mpitest.size - 1, ranks + (2 < mpitest.size ? 1 : 0), &part));
    MPI_OK(MPI_Comm_create(MPI_COMM_WORLD, part, &comm));
    own = mpitest_random(state);
    if (MPI_COMM_NULL != comm) {
        around(comm, &own);
        MPI_OK(MPI_Comm_free(&comm));
    }
    MPI_OK(MPI_Group_rank(part, &i));
    if (MPI_UNDEFINED != i) {
        MPI_OK(MPI_Comm_create_group(MPI_COMM_WORLD, part, 17, &comm));
        around(comm, &own);
        MPI_OK(MPI_Comm_free(&comm));
    }
    MPI_OK(MPI_Group_free(&part));
    MPI_OK(MPI_Group_free(&world));

    MPI_OK(MPI_Dims_create(mpitest.size, 2, dims));
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    around(grid, state);
    MPI_OK(MPI_Cart_sub(grid, remain, &comm));
    MPI_OK(MPI_Comm_free(&grid));
    around(comm, state);
    MPI_OK(MPI_Comm_free(&comm));
    free(ranks);
}

/* Messages in flight on the parent while it is duplicated and freed, and the same on the child. */
static void in_flight(uint64_t *state)
{
    batch_t old, new;
    MPI_Comm parent, child;
    MPI_Request request;

    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    make(&old, parent, 5, state);
    send_batch(&old, parent); /* unexpected */
    MPI_OK(MPI_Comm_idup(parent, &child, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    make(&new, child, 5, state);
    post_batch(&new, child); /* must not find those of the parent */
    post_batch(&old, parent);
    MPI_OK(MPI_Comm_free(&parent));
    send_batch(&new, child);
    MPI_OK(MPI_Comm_free(&child));
    /* A new communicator immediately gets the context id of an old one. */
    around(MPI_COMM_WORLD, state);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    around(parent, state);
    finish_batch(&new);
    finish_batch(&old);
    MPI_OK(MPI_Comm_free(&parent));
}

/*
 * Messages that were matched by probes, received after their communicator was freed. Even ranks
 * only receive, so that no send of theirs keeps it alive.
 */
static void in_hand(uint64_t *state)
{
    MPI_Message messages[BATCH];
    MPI_Comm comm, others[4];
    MPI_Status status;
    batch_t batch;
    int i;

    if (0 != mpitest.size % 2) {
        return;
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    make(&batch, comm, 6, state);
    if (0 != mpitest.rank % 2) {
        send_batch(&batch, comm);
    } else {
        for (i = 0; i < BATCH; ++i) {
            MPI_OK(MPI_Mprobe(MPI_ANY_SOURCE, 6, comm, &messages[i], &status));
            CHECK_STATUS(&status, batch.left, 6, batch.in[i]->bytes);
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
    for (i = 0; i < 4; ++i) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &others[i]));
        around(others[i], state);
    }
    for (i = BATCH - 1; 0 <= i && 0 == mpitest.rank % 2; --i) {
        if (0 == i % 2) {
            MPI_OK(MPI_Mrecv(batch.in[i]->addr, 1, batch.in[i]->type, &messages[i], &status));
        } else {
            MPI_OK(MPI_Imrecv(batch.in[i]->addr, 1, batch.in[i]->type, &messages[i],
                              &batch.requests[BATCH + i]));
            MPI_OK(MPI_Wait(&batch.requests[BATCH + i], &status));
        }
        CHECK(MPI_MESSAGE_NULL == messages[i]);
        CHECK_STATUS(&status, batch.left, 6, batch.in[i]->bytes);
        VERIFY(batch.in[i]->buffer, key_of(&batch, batch.left, i), batch.in[i]->bytes);
    }
    MPI_OK(MPI_Waitall(BATCH, batch.requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < BATCH; ++i) {
        mpitest_message_free(batch.in[i]);
        mpitest_message_free(batch.out[i]);
    }
    for (i = 0; i < 4; ++i) {
        MPI_OK(MPI_Comm_free(&others[i]));
    }
}

/* All operations on an intercommunicator: two batches, probes, dup, merge. */
static void inter(uint64_t *state)
{
    int color = mpitest.rank % 2, remote, i;
    MPI_Comm local, comm, copy, merged;
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Status status;
    batch_t batch;

    if (2 > mpitest.size || 0 != mpitest.size % 2) {
        return;
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, color, 0, &local));
    MPI_OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - color, 3, &comm));
    MPI_OK(MPI_Comm_remote_size(comm, &remote));
    CHECK_INT(remote, mpitest.size / 2);
    around(comm, state);
    MPI_OK(MPI_Comm_dup(comm, &copy));
    make(&batch, comm, 5, state);
    send_batch(&batch, comm);
    around(copy, state);
    for (i = 0; i < BATCH; ++i) {
        MPI_OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        CHECK_STATUS(&status, batch.left, 5, batch.in[i]->bytes);
        MPI_OK(MPI_Mprobe(batch.left, MPI_ANY_TAG, comm, &message, &status));
        CHECK_STATUS(&status, batch.left, 5, batch.in[i]->bytes);
        MPI_OK(MPI_Imrecv(batch.in[i]->addr, 1, batch.in[i]->type, &message,
                          &batch.requests[BATCH + i]));
    }
    MPI_OK(MPI_Intercomm_merge(comm, color, &merged));
    MPI_OK(MPI_Comm_free(&comm));
    finish_batch(&batch);
    around(merged, state);
    /* Persistent ones. */
    make(&batch, copy, 8, state);
    MPI_OK(MPI_Recv_init(batch.in[0]->addr, 1, batch.in[0]->type, MPI_ANY_SOURCE, 8, copy,
                         &requests[0]));
    MPI_OK(MPI_Comm_rank(copy, &i));
    MPI_OK(MPI_Ssend_init(batch.out[0]->addr, 1, batch.out[0]->type, (i + 1) % remote, 8, copy,
                          &requests[1]));
    MPI_OK(MPI_Startall(2, requests));
    MPI_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    VERIFY(batch.in[0]->buffer, key_of(&batch, batch.left, 0), batch.in[0]->bytes);
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
    for (i = 0; i < BATCH; ++i) {
        mpitest_message_free(batch.in[i]);
        mpitest_message_free(batch.out[i]);
    }
    MPI_OK(MPI_Comm_free(&copy));
    MPI_OK(MPI_Comm_free(&merged));
    MPI_OK(MPI_Comm_free(&local));
}

/* Counts of the calls of the attribute functions below. */
static int copies, deletes;

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) comm;
    (void) keyval;
    (void) extra;
    ++copies;
    *(void **) out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

/* The communicator still exists: it can be used from here. */
static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, (uint64_t) (long) value);

    (void) keyval;
    (void) extra;
    ++deletes;
    around(comm, &state);
    return MPI_SUCCESS;
}

static void attributes(uint64_t *state)
{
    int keyval = MPI_KEYVAL_INVALID, flag = 0;
    void *value = NULL;
    MPI_Comm comm, copy;
    batch_t batch;

    copies = deletes = 0;
    MPI_OK(MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, NULL));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_OK(MPI_Comm_set_attr(comm, keyval, (void *) 17));
    make(&batch, comm, 6, state);
    send_batch(&batch, comm);
    MPI_OK(MPI_Comm_dup(comm, &copy));
    CHECK_INT(copies, 1);
    MPI_OK(MPI_Comm_get_attr(copy, keyval, &value, &flag));
    CHECK(flag && (void *) 17 == value);
    post_batch(&batch, comm);
    MPI_OK(MPI_Comm_free(&comm));
    CHECK_INT(deletes, 1);
    MPI_OK(MPI_Comm_delete_attr(copy, keyval));
    CHECK_INT(deletes, 2);
    MPI_OK(MPI_Comm_free(&copy));
    CHECK_INT(deletes, 2);
    finish_batch(&batch);
    MPI_OK(MPI_Comm_free_keyval(&keyval));
}

/* Freed requests on a freed communicator: the messages still arrive. */
static void all_freed(uint64_t *state)
{
    batch_t batch;
    MPI_Comm comm;
    int i;

    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    make(&batch, comm, 6, state);
    post_batch(&batch, comm);
    /* Before the last wildcard of this batch could match a message of another batch. */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    send_batch(&batch, comm);
    for (i = 0; i < BATCH; ++i) {
        MPI_OK(MPI_Request_free(&batch.requests[i]));
    }
    MPI_OK(MPI_Comm_free(&comm));
    for (i = 0; i < 3; ++i) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        MPI_OK(MPI_Comm_free(&comm));
    }
    MPI_OK(MPI_Waitall(BATCH, batch.requests + BATCH, MPI_STATUSES_IGNORE));
    /* All ranks have all messages: no send is pending any more. */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    for (i = 0; i < BATCH; ++i) {
        VERIFY(batch.in[i]->buffer, key_of(&batch, batch.left, i), batch.in[i]->bytes);
        mpitest_message_free(batch.in[i]);
        mpitest_message_free(batch.out[i]);
    }
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"every_kind", every_kind},
        {"in_flight", in_flight},
        {"in_hand", in_hand},
        {"inter", inter},
        {"attributes", attributes},
        {"all_freed", all_freed},
        {NULL, NULL},
    };

    mpitest_init(&argc, &argv, "comms", 1, MPI_THREAD_SINGLE);
    mpitest_run(parts);
    return mpitest_finish();
}
