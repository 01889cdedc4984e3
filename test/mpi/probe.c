/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Probes: a probed message is the one that is received next, with its true size, in the right
 * order.
 *
 * Each rank sends every other rank a list of messages, mixed as in match.c. It receives them by a
 * random mixture of Probe, Iprobe, Mprobe, Improbe, followed by Recv, Irecv, Mrecv, Imrecv. Matched
 * messages may be received later and in another order. The expected message is known: the first
 * remaining message of a source that fits. A probe must find it repeatedly, and the count must be
 * that of the message, not that of the control message that is sent instead.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

#define PER_PAIR 10
#define RANKS    8
#define HELD     8

typedef struct sent_t {
    int tag;
    mpitest_kind_t kind;
    int bytes;
    uint64_t key;
    bool consumed;
} sent_t;

/* A message matched by Mprobe, or a pending receive of one. */
typedef struct held_t {
    MPI_Message handle;
    MPI_Request request;
    mpitest_message_t *message;
    sent_t *sent;
    int source;
} held_t;

static MPI_Comm comm;

static void list_of(long round, int from, int to, sent_t *list)
{
    static const int sizes[] = {0,   1,   63,   64,   65,   103,   104,
                                105, 300, 2000, 4096, 8200, 30000, 70000};
    uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) round, (uint64_t) (from * RANKS + to));
    int i;

    for (i = 0; i < PER_PAIR; ++i) {
        list[i].tag = (int) mpitest_between(&state, 0, 2);
        list[i].kind = (mpitest_kind_t) mpitest_between(&state, 0, MPITEST_KINDS - 1);
        list[i].bytes = sizes[mpitest_between(&state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
        if (MPITEST_WIDE == list[i].kind && 9000 < list[i].bytes) {
            list[i].bytes = 8704;
        }
        list[i].key = mpitest_random(&state);
        list[i].consumed = false;
    }
}

static sent_t *next_of(sent_t *list, int tag)
{
    int i;

    for (i = 0; i < PER_PAIR; ++i) {
        if (!list[i].consumed && (MPI_ANY_TAG == tag || tag == list[i].tag)) {
            return &list[i];
        }
    }
    return NULL;
}

/* Check the status of a probe or of a receive against the expected message. */
static sent_t *check_status(const MPI_Status *status, int source, int tag,
                            sent_t lists[RANKS][PER_PAIR], MPI_Datatype type)
{
    sent_t *sent = NULL;
    int count = -1;

    CHECK(0 <= status->MPI_SOURCE && status->MPI_SOURCE < mpitest.size);
    CHECK(MPI_ANY_SOURCE == source || source == status->MPI_SOURCE);
    sent = next_of(lists[status->MPI_SOURCE], tag);
    CHECK(NULL != sent);
    CHECK_INT(status->MPI_TAG, sent->tag);
    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_INT(count, sent->bytes);
    if (MPI_DATATYPE_NULL != type) {
        MPI_OK(MPI_Get_elements(status, type, &count));
        CHECK_INT(count, sent->bytes);
    }
    return sent;
}

static mpitest_message_t *room_for(sent_t *sent, uint64_t *state)
{
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);
    int more = 0 == mpitest_random(state) % 3 ? (int) mpitest_between(state, 1, 3000) : 0;

    return mpitest_message(MPITEST_WIDE == kind ? MPITEST_COARSE : kind, sent->bytes + more,
                           mpitest_random(state));
}

static void finish_held(held_t *held, uint64_t *state)
{
    MPI_Status status;
    int count = -1;

    if (MPI_REQUEST_NULL == held->request) {
        if (0 == mpitest_random(state) % 2) {
            MPI_OK(MPI_Mrecv(held->message->addr, 1, held->message->type, &held->handle, &status));
        } else {
            MPI_OK(MPI_Imrecv(held->message->addr, 1, held->message->type, &held->handle,
                              &held->request));
            MPI_OK(MPI_Wait(&held->request, &status));
        }
        CHECK(MPI_MESSAGE_NULL == held->handle);
    } else {
        MPI_OK(MPI_Wait(&held->request, &status));
    }
    CHECK_INT(status.MPI_SOURCE, held->source);
    CHECK_INT(status.MPI_TAG, held->sent->tag);
    MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_INT(count, held->sent->bytes);
    VERIFY(held->message->buffer, held->sent->key, held->sent->bytes);
    mpitest_message_free(held->message);
    held->message = NULL;
}

/* Match one message by a matched probe; it stays in 'held' for a while. */
static void take_matched(held_t *held, int source, int tag, sent_t lists[RANKS][PER_PAIR],
                         uint64_t *state)
{
    MPI_Status status;
    int flag = 0;

    if (0 == mpitest_random(state) % 2) {
        MPI_OK(MPI_Mprobe(source, tag, comm, &held->handle, &status));
    } else {
        while (!flag) {
            MPI_OK(MPI_Improbe(source, tag, comm, &flag, &held->handle, &status));
        }
    }
    CHECK(MPI_MESSAGE_NULL != held->handle && MPI_MESSAGE_NO_PROC != held->handle);
    held->sent = check_status(&status, source, tag, lists, MPI_DATATYPE_NULL);
    held->source = status.MPI_SOURCE;
    held->sent->consumed = true;
    held->message = room_for(held->sent, state);
    held->request = MPI_REQUEST_NULL;
    if (0 == mpitest_random(state) % 2) {
        MPI_OK(
            MPI_Imrecv(held->message->addr, 1, held->message->type, &held->handle, &held->request));
        CHECK(MPI_MESSAGE_NULL == held->handle);
    }
}

/* Probe (several times), then receive with the probe's source and tag or with the same wildcards.
 */
static void take_probed(int source, int tag, sent_t lists[RANKS][PER_PAIR], uint64_t *state)
{
    int again = (int) mpitest_between(state, 1, 3), flag = 0;
    mpitest_message_t *message;
    sent_t *sent = NULL;
    MPI_Request request;
    MPI_Status status;

    while (0 < again--) {
        if (0 == mpitest_random(state) % 2) {
            MPI_OK(MPI_Probe(source, tag, comm, &status));
        } else {
            for (flag = 0; !flag;) {
                MPI_OK(MPI_Iprobe(source, tag, comm, &flag, &status));
            }
        }
        sent = check_status(&status, source, tag, lists, MPI_DATATYPE_NULL);
        /* Another probe for any source may find another source, which is correct: continue with
         * that one. */
        source = status.MPI_SOURCE;
    }
    if (MPI_ANY_TAG != tag || 0 == mpitest_random(state) % 2) {
        tag = status.MPI_TAG;
    }
    message = room_for(sent, state);
    if (0 == mpitest_random(state) % 2) {
        MPI_OK(MPI_Recv(message->addr, 1, message->type, source, tag, comm, &status));
    } else {
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, source, tag, comm, &request));
        MPI_OK(MPI_Wait(&request, &status));
    }
    CHECK(sent == check_status(&status, source, tag, lists, message->type));
    sent->consumed = true;
    VERIFY(message->buffer, sent->key, sent->bytes);
    mpitest_message_free(message);
}

static void one_round(long round)
{
    static sent_t lists[RANKS][PER_PAIR];
    static mpitest_message_t *outgoing[RANKS * PER_PAIR];
    static MPI_Request requests[RANKS * PER_PAIR];
    uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) round, 500 + (uint64_t) mpitest.rank);
    int n = mpitest.size * PER_PAIR, left = n, held_count = 0, rank, i, flag = 0;
    held_t held[HELD];
    MPI_Status status;

    for (i = 0; i < n; ++i) {
        int to = i % mpitest.size;
        sent_t list[PER_PAIR], *sent = &list[i / mpitest.size];

        list_of(round, mpitest.rank, to, list);
        outgoing[i] = mpitest_message(sent->kind, sent->bytes, sent->key);
        mpitest_fill(outgoing[i]->buffer, sent->key);
        MPI_OK((0 == i % 3 ? MPI_Issend : MPI_Isend)(outgoing[i]->addr, 1, outgoing[i]->type, to,
                                                     sent->tag, comm, &requests[i]));
    }
    for (rank = 0; rank < mpitest.size; ++rank) {
        list_of(round, rank, mpitest.rank, lists[rank]);
    }
    while (0 < left || 0 < held_count) {
        int source = (int) mpitest_between(&state, 0, mpitest.size - 1), tag = MPI_ANY_TAG;
        sent_t *any = next_of(lists[source], MPI_ANY_TAG);

        if (HELD == held_count || (0 < held_count && 0 == mpitest_random(&state) % 4)
            || 0 == left) {
            i = (int) mpitest_between(&state, 0, held_count - 1);
            finish_held(&held[i], &state);
            held[i] = held[--held_count];
            continue;
        }
        if (0 == mpitest_random(&state) % 4) {
            /* Any message from any source. */
            source = MPI_ANY_SOURCE;
        } else if (NULL == any) {
            continue;
        } else if (0 == mpitest_random(&state) % 2) {
            int which = (int) mpitest_between(&state, 0, PER_PAIR - 1);

            if (lists[source][which].consumed) {
                continue;
            }
            tag = lists[source][which].tag;
        }
        if (0 == mpitest_random(&state) % 2) {
            take_matched(&held[held_count++], source, tag, lists, &state);
        } else {
            take_probed(source, tag, lists, &state);
        }
        --left;
    }
    /* All messages are matched: no probe may find any more. */
    MPI_OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    MPI_OK(MPI_Barrier(comm));
    MPI_OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status));
    CHECK(!flag);
    MPI_OK(MPI_Barrier(comm));
    for (i = 0; i < n; ++i) {
        mpitest_message_free(outgoing[i]);
    }
}

/* A probe of an envelope must not make a later plain receive of the same source overtake. */
static void probe_then_any_tag(void)
{
    int peer = mpitest.rank ^ 1, i, count = -1, order[3] = {5, 9, 7};
    mpitest_message_t *message;
    MPI_Status status;

    if (peer >= mpitest.size) {
        return;
    }
    if (1 == mpitest.rank % 2) {
        for (i = 0; i < 3; ++i) {
            MPI_Request request;

            message = mpitest_message(MPITEST_FINE, 4800 + 8 * i, 0);
            mpitest_fill(message->buffer, (uint64_t) order[i]);
            MPI_OK(MPI_Isend(message->addr, 1, message->type, peer, order[i], comm, &request));
            MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, 30 + i, comm));
            MPI_OK(MPI_Wait(&request, &status));
            mpitest_message_free(message);
        }
        return;
    }
    for (i = 0; i < 3; ++i) {
        message = mpitest_message(MPITEST_COARSE, 6000, 0);
        /* Receive the later empty message by its exact tag; then the large one is the first. */
        MPI_OK(MPI_Probe(peer, 30 + i, comm, &status));
        MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_INT(count, 0);
        MPI_OK(MPI_Probe(peer, MPI_ANY_TAG, comm, &status));
        CHECK_INT(status.MPI_TAG, order[i]);
        MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_INT(count, 4800 + 8 * i);
        MPI_OK(
            MPI_Recv(message->addr, 1, message->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        CHECK_INT(status.MPI_TAG, order[i]);
        VERIFY(message->buffer, (uint64_t) order[i], 4800 + 8 * i);
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        CHECK_INT(status.MPI_TAG, 30 + i);
        mpitest_message_free(message);
    }
}

/* A receive posted while probed messages are held completes as any other: its request is then null.
 */
static void receive_behind_probed(void)
{
    int peer = mpitest.rank ^ 1, i, tags[3] = {41, 42, 43};
    mpitest_kind_t kinds[3] = {MPITEST_FINE, MPITEST_FINE, MPITEST_CONTIGUOUS};
    mpitest_message_t *messages[3];
    MPI_Request requests[3];
    MPI_Status status;

    if (peer >= mpitest.size) {
        return;
    }
    for (i = 0; i < 3; ++i) {
        messages[i] = mpitest_message(kinds[i], 4800, 0);
    }
    if (1 == mpitest.rank % 2) {
        for (i = 0; i < 3; ++i) {
            if (2 == i) {
                /* Only once its receive is posted. */
                MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, 44, comm, &status));
            }
            mpitest_fill(messages[i]->buffer, (uint64_t) i);
            MPI_OK(MPI_Isend(messages[i]->addr, 1, messages[i]->type, peer, tags[i], comm,
                             &requests[i]));
        }
        MPI_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    } else {
        MPI_OK(MPI_Probe(peer, tags[1], comm, &status));
        MPI_OK(
            MPI_Irecv(messages[2]->addr, 1, messages[2]->type, peer, tags[2], comm, &requests[2]));
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, 44, comm));
        MPI_OK(MPI_Wait(&requests[2], &status));
        CHECK(MPI_REQUEST_NULL == requests[2]);
        VERIFY(messages[2]->buffer, 2, 4800);
        for (i = 0; i < 2; ++i) {
            MPI_OK(MPI_Recv(messages[i]->addr, 1, messages[i]->type, peer, tags[i], comm, &status));
            VERIFY(messages[i]->buffer, (uint64_t) i, 4800);
        }
    }
    for (i = 0; i < 3; ++i) {
        mpitest_message_free(messages[i]);
    }
}

/* Probing PROC_NULL finds an empty message at once. */
static void probe_proc_null(void)
{
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0, count = -1;

    MPI_OK(MPI_Probe(MPI_PROC_NULL, 3, comm, &status));
    CHECK_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    MPI_OK(MPI_Improbe(MPI_PROC_NULL, 3, comm, &flag, &handle, &status));
    CHECK(flag && MPI_MESSAGE_NO_PROC == handle);
    MPI_OK(MPI_Mrecv(NULL, 0, MPI_BYTE, &handle, &status));
    CHECK(MPI_MESSAGE_NULL == handle);
    CHECK_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_INT(count, 0);
}

int main(int argc, char **argv)
{
    long round;

    mpitest_init(&argc, &argv, "probe", 20, MPI_THREAD_SINGLE);
    if (RANKS < mpitest.size) {
        mpitest_skip("made for at most 8 ranks");
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    mpitest.step = -1;
    probe_proc_null();
    probe_then_any_tag();
    receive_behind_probed();
    MPI_OK(MPI_Barrier(comm));
    for (round = 0; round < mpitest.ops; ++round) {
        mpitest.step = round;
        one_round(round);
    }
    MPI_OK(MPI_Comm_free(&comm));
    return mpitest_finish();
}
