/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Matching: order, wildcards, and every wait call.
 *
 * In each round every rank sends a list of messages to every rank, itself included: small and
 * large, contiguous and not, so that messages that umrddt handles and messages that it passes
 * through follow each other with the same tags. All ranks know all lists. The status of a receive
 * identifies its message, which is checked by the rule of MPI: of the receives with messages of one
 * source, in the order of posting, each must have the first remaining message of that source that
 * fits.
 *
 * Each round gives each source one style, so that no wildcard can match a message that another
 * receive needs: its messages are received by exact tags and by (any source, tag), or all by
 * (source, any tag); or all messages of a round by (any source, any tag).
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_PAIR 6
#define RANKS    16
#define MESSAGES (PER_PAIR * RANKS)

/* Tags: below 10 for sources received by any tag; 10 to 14 for exact tags; from 15 on for any
 * source. */
#define TAG_EXACT      10
#define TAG_ANY_SOURCE 15

typedef struct sent_t {
    int tag;
    mpitest_kind_t kind;
    int bytes;
    uint64_t key;
    bool consumed;
} sent_t;

typedef struct receive_t {
    int source, tag;
    mpitest_message_t *message;
    MPI_Request request;
    MPI_Status status;
} receive_t;

typedef enum sends_t {
    SENDS_ISEND,
    SENDS_ISSEND,
    SENDS_PERSISTENT,
    SENDS_BUFFERED,
    SENDS_MAX
} sends_t;

typedef enum order_t {
    ORDER_RECEIVES_FIRST, /* all receives are posted before anything is sent */
    ORDER_SENDS_FIRST,    /* every message is unexpected, if it is fast */
    ORDER_MIXED,
    ORDER_BLOCKING, /* sends posted, then blocking receives */
    ORDER_MAX
} order_t;

static int max_bytes;
static char *attached;

/* The messages that rank 'from' sends to rank 'to' in this round; the same answer on every rank. */
static void list_of(long round, int from, int to, bool any_tag, sent_t *list)
{
    static const int sizes[] = {0,   1,   8,   63,   64,   65,   103,   104,
                                105, 200, 500, 2000, 5000, 9000, 20000, 40000};
    uint64_t state =
        mpitest_mix(mpitest.seed, (uint64_t) round, (uint64_t) (from * RANKS + to) + 1000);
    int i;

    for (i = 0; i < PER_PAIR; ++i) {
        list[i].tag =
            (int) (any_tag ? mpitest_between(&state, 0, 2)
                           : mpitest_between(&state, TAG_ANY_SOURCE - 2, TAG_ANY_SOURCE + 1));
        list[i].kind = (mpitest_kind_t) mpitest_between(&state, 0, MPITEST_KINDS - 1);
        if (0 == mpitest_random(&state) % 4) {
            list[i].kind = MPITEST_CONTIGUOUS;
        }
        list[i].bytes = sizes[mpitest_between(&state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
        if (MPITEST_WIDE == list[i].kind && 9000 < list[i].bytes) {
            list[i].bytes = 9000;
        }
        list[i].key = mpitest_random(&state);
        list[i].consumed = false;
    }
}

/* The receives of this rank: one for each incoming message, in an order of its own. */
static int make_receives(long round, uint64_t *state, sent_t lists[RANKS][PER_PAIR],
                         const bool *any_tag, bool any_any, receive_t *receives)
{
    int n = 0, source, i;
    receive_t swap;

    for (source = 0; source < mpitest.size; ++source) {
        for (i = 0; i < PER_PAIR; ++i) {
            const sent_t *sent = &lists[source][i];

            receives[n].source = source;
            receives[n].tag = any_tag[source] ? MPI_ANY_TAG : sent->tag;
            if (!any_tag[source] && TAG_ANY_SOURCE <= sent->tag) {
                receives[n].source = MPI_ANY_SOURCE;
            }
            if (any_any) {
                receives[n].source = MPI_ANY_SOURCE;
                receives[n].tag = MPI_ANY_TAG;
            }
            ++n;
        }
    }
    for (i = n - 1; i > 0; --i) {
        int j = (int) mpitest_between(state, 0, i);

        swap = receives[i];
        receives[i] = receives[j];
        receives[j] = swap;
    }
    for (i = 0; i < n; ++i) {
        mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);

        /* The capacity must suffice for any of the messages; a wide layout of that size needs too
         * much memory. */
        if (MPITEST_WIDE == kind) {
            kind = MPITEST_COARSE;
        }
        receives[i].message =
            mpitest_message(kind, max_bytes + (int) mpitest_between(state, 0, 50),
                            mpitest_mix(mpitest.seed, (uint64_t) round, (uint64_t) i));
        receives[i].request = MPI_REQUEST_NULL;
    }
    return n;
}

static void start_send(sends_t how, mpitest_message_t *message, int to, int tag,
                       MPI_Request *request)
{
    switch (how) {
    case SENDS_ISEND:
        MPI_OK(MPI_Isend(message->addr, 1, message->type, to, tag, MPI_COMM_WORLD, request));
        break;
    case SENDS_ISSEND:
        MPI_OK(MPI_Issend(message->addr, 1, message->type, to, tag, MPI_COMM_WORLD, request));
        break;
    case SENDS_BUFFERED:
        MPI_OK(MPI_Ibsend(message->addr, 1, message->type, to, tag, MPI_COMM_WORLD, request));
        break;
    default:
        MPI_OK(MPI_Send_init(message->addr, 1, message->type, to, tag, MPI_COMM_WORLD, request));
        MPI_OK(MPI_Start(request));
        break;
    }
}

static void start_receive(receive_t *receive, bool persistent)
{
    mpitest_message_t *message = receive->message;

    if (persistent) {
        MPI_OK(MPI_Recv_init(message->addr, 1, message->type, receive->source, receive->tag,
                             MPI_COMM_WORLD, &receive->request));
        MPI_OK(MPI_Start(&receive->request));
    } else {
        MPI_OK(MPI_Irecv(message->addr, 1, message->type, receive->source, receive->tag,
                         MPI_COMM_WORLD, &receive->request));
    }
}

/* Complete all requests with one of the completion calls; the statuses are in the order of the
 * requests. */
static void complete(int n, MPI_Request *requests, MPI_Status *statuses, uint64_t *state)
{
    MPI_Status some[MESSAGES * 2];
    int indices[MESSAGES * 2], order[MESSAGES * 2], done = 0, index, count, flag = 0, i;
    bool seen[MESSAGES * 2] = {false};
    int way = (int) mpitest_between(state, 0, 7);

    for (i = 0; i < n; ++i) {
        order[i] = i;
    }
    if (0 == way) {
        MPI_OK(MPI_Waitall(n, requests, statuses));
        return;
    }
    if (1 == way) {
        while (!flag) {
            MPI_OK(MPI_Testall(n, requests, &flag, statuses));
            if (!flag) {
                mpitest_sleep(50);
            }
        }
        return;
    }
    if (2 == way) {
        mpitest_shuffle(state, order, n);
        for (i = 0; i < n; ++i) {
            MPI_OK(MPI_Wait(&requests[order[i]], &statuses[order[i]]));
        }
        return;
    }
    if (3 == way) {
        mpitest_shuffle(state, order, n);
        for (i = 0; i < n; ++i) {
            for (flag = 0; !flag;) {
                MPI_OK(MPI_Request_get_status(requests[order[i]], &flag, &statuses[order[i]]));
            }
            MPI_OK(MPI_Test(&requests[order[i]], &flag, &statuses[order[i]]));
            CHECK(flag);
        }
        return;
    }
    while (done < n) {
        count = 1;
        if (4 == way) {
            MPI_OK(MPI_Waitany(n, requests, &indices[0], &some[0]));
        } else if (5 == way) {
            MPI_OK(MPI_Testany(n, requests, &index, &flag, &some[0]));
            indices[0] = index;
            count = flag ? 1 : 0;
        } else if (6 == way) {
            MPI_OK(MPI_Waitsome(n, requests, &count, indices, some));
            CHECK(MPI_UNDEFINED == count || 0 < count);
        } else {
            MPI_OK(MPI_Testsome(n, requests, &count, indices, some));
        }
        /* Inactive persistent requests count as completed: then all must have been seen. */
        CHECK(MPI_UNDEFINED != count && (0 == count || MPI_UNDEFINED != indices[0]));
        for (i = 0; i < count; ++i) {
            CHECK(0 <= indices[i] && indices[i] < n && !seen[indices[i]]);
            seen[indices[i]] = true;
            statuses[indices[i]] = some[i];
            ++done;
        }
        if (0 == count) {
            mpitest_sleep(50);
        }
    }
}

static void check_result(int n, receive_t *receives, sent_t lists[RANKS][PER_PAIR])
{
    int i, j;

    for (i = 0; i < n; ++i) {
        receive_t *receive = &receives[i];
        int source = receive->status.MPI_SOURCE, tag = receive->status.MPI_TAG, count = -1;
        sent_t *sent = NULL;

        CHECK(0 <= source && source < mpitest.size);
        CHECK(MPI_ANY_SOURCE == receive->source || source == receive->source);
        CHECK(MPI_ANY_TAG == receive->tag || tag == receive->tag);
        for (j = 0; j < PER_PAIR && NULL == sent; ++j) {
            if (!lists[source][j].consumed
                && (MPI_ANY_TAG == receive->tag || lists[source][j].tag == receive->tag)) {
                sent = &lists[source][j];
            }
        }
        CHECK(NULL != sent);
        CHECK_INT(tag, sent->tag);
        MPI_OK(MPI_Get_count(&receive->status, MPI_BYTE, &count));
        CHECK_INT(count, sent->bytes);
        MPI_OK(MPI_Get_elements(&receive->status, receive->message->type, &count));
        CHECK_INT(count, sent->bytes);
        VERIFY(receive->message->buffer, sent->key, sent->bytes);
        sent->consumed = true;
    }
}

static void one_round(long round)
{
    static sent_t lists[RANKS][PER_PAIR];
    static receive_t receives[MESSAGES];
    static mpitest_message_t *outgoing[MESSAGES];
    static MPI_Request requests[MESSAGES * 2];
    static MPI_Status statuses[MESSAGES * 2];
    uint64_t common = mpitest_mix(mpitest.seed, (uint64_t) round, 7);
    uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) round, 100 + (uint64_t) mpitest.rank);
    bool any_tag[RANKS], any_any = 0 == mpitest_random(&common) % 4;
    order_t order = (order_t) mpitest_between(&common, 0, ORDER_MAX - 1);
    bool persistent = 0 == mpitest_random(&state) % 4;
    int n, sent = 0, posted = 0, rank, i;

    for (rank = 0; rank < mpitest.size; ++rank) {
        any_tag[rank] = any_any || 0 == mpitest_random(&common) % 2;
    }
    for (rank = 0; rank < mpitest.size; ++rank) {
        sent_t list[PER_PAIR];

        list_of(round, mpitest.rank, rank, any_tag[mpitest.rank], list);
        for (i = 0; i < PER_PAIR; ++i) {
            outgoing[rank * PER_PAIR + i] =
                mpitest_message(list[i].kind, list[i].bytes, list[i].key);
            mpitest_fill(outgoing[rank * PER_PAIR + i]->buffer, list[i].key);
        }
        list_of(round, rank, mpitest.rank, any_tag[rank], lists[rank]);
    }
    n = make_receives(round, &state, lists, any_tag, any_any, receives);

    if (ORDER_RECEIVES_FIRST == order) {
        while (posted < n) {
            start_receive(&receives[posted++], persistent);
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    while (sent < n || (posted < n && ORDER_BLOCKING != order)) {
        if (sent < n
            && (ORDER_SENDS_FIRST == order || posted == n || ORDER_BLOCKING == order
                || 0 == mpitest_random(&state) % 2)) {
            /* Messages to one rank are sent in order, those to several ranks interleaved. */
            int to = sent % mpitest.size, which = sent / mpitest.size;
            sent_t list[PER_PAIR];

            list_of(round, mpitest.rank, to, any_tag[mpitest.rank], list);
            start_send((sends_t) mpitest_between(&state, 0, SENDS_MAX - 1),
                       outgoing[to * PER_PAIR + which], to, list[which].tag,
                       &requests[n + to * PER_PAIR + which]);
            ++sent;
        } else if (posted < n) {
            start_receive(&receives[posted++], persistent);
        }
        if (0 == mpitest_random(&state) % 8) {
            mpitest_sleep(mpitest_between(&state, 1, 300));
        }
    }
    if (ORDER_BLOCKING == order) {
        for (i = 0; i < n; ++i) {
            MPI_OK(MPI_Recv(receives[i].message->addr, 1, receives[i].message->type,
                            receives[i].source, receives[i].tag, MPI_COMM_WORLD,
                            &receives[i].status));
        }
        complete(n, requests + n, statuses, &state);
        memcpy(requests, requests + n, sizeof(requests[0]) * (size_t) n);
    } else {
        for (i = 0; i < n; ++i) {
            requests[i] = receives[i].request;
        }
        complete(2 * n, requests, statuses, &state);
        for (i = 0; i < n; ++i) {
            receives[i].status = statuses[i];
        }
    }
    check_result(n, receives, lists);
    for (i = 0; i < 2 * n; ++i) {
        if (MPI_REQUEST_NULL != requests[i] && (ORDER_BLOCKING != order || i < n)) {
            MPI_OK(MPI_Request_free(&requests[i]));
        }
    }
    for (i = 0; i < n; ++i) {
        mpitest_message_free(receives[i].message);
        mpitest_message_free(outgoing[i]);
    }
}

int main(int argc, char **argv)
{
    int size = 4 << 20, detached = 0;
    void *gone;
    long round;

    mpitest_init(&argc, &argv, "match", 25, MPI_THREAD_SINGLE);
    if (RANKS < mpitest.size) {
        mpitest_skip("made for at most 16 ranks");
    }
    max_bytes = 40000;
    attached = malloc((size_t) size);
    CHECK(NULL != attached);
    MPI_OK(MPI_Buffer_attach(attached, size));
    for (round = 0; round < mpitest.ops; ++round) {
        mpitest.step = round;
        one_round(round);
        /* Otherwise a wildcard of a slow rank could match a message of the next round. */
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        /* Buffered messages of a round must leave the buffer before it has room for the next. */
        MPI_OK(MPI_Buffer_detach(&gone, &detached));
        CHECK(gone == attached);
        MPI_OK(MPI_Buffer_attach(attached, size));
    }
    MPI_OK(MPI_Buffer_detach(&gone, &detached));
    free(attached);
    return mpitest_finish();
}
