/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Neighbourhood collectives over derived types, blocking and nonblocking, on a graph in which every
 * rank has all ranks as neighbours in an order of its own; and all nonblocking ones at once, with
 * messages on the same communicator, which umrddt handles, between them.
 */

#include "blocks.h"
#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

#define RANKS    16
#define MESSAGES 4

static MPI_Comm graph;
/* Neighbour i is this rank: for incoming data, and for outgoing data. */
static int sources[RANKS], destinations[RANKS];

static void make_graph(void)
{
    int weights[RANKS], i;

    for (i = 0; i < mpitest.size; ++i) {
        weights[i] = 1;
        sources[i] = (mpitest.rank + mpitest.size - i) % mpitest.size;
        destinations[i] = (mpitest.rank + i) % mpitest.size;
    }
    MPI_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, mpitest.size, sources, weights,
                                          mpitest.size, destinations, weights, MPI_INFO_NULL, 0,
                                          &graph));
}

/* alltoallw: a layout of its own for each neighbour and side, at absolute addresses. */
typedef struct each_t {
    mpitest_message_t *out[RANKS], *in[RANKS];
    MPI_Datatype out_types[RANKS], in_types[RANKS];
    MPI_Aint out_at[RANKS], in_at[RANKS];
    int ones[RANKS];
    uint64_t salt;
} each_t;

static uint64_t each_key(const each_t *each, int from, int to)
{
    return mpitest_mix(each->salt, (uint64_t) from, (uint64_t) to);
}

static void each_make(each_t *each, uint64_t *state)
{
    int i;

    each->salt = mpitest_random(state);
    for (i = 0; i < mpitest.size; ++i) {
        /* Each pair of ranks has a size that both can compute. */
        uint64_t to = each_key(each, mpitest.rank, destinations[i]);
        uint64_t from = each_key(each, sources[i], mpitest.rank);
        int bytes = mpitest_draw_bytes(&to), room = mpitest_draw_bytes(&from);

        each->out[i] = mpitest_message(mpitest_draw_kind(&to), bytes, 1);
        mpitest_fill(each->out[i]->buffer, each_key(each, mpitest.rank, destinations[i]));
        each->in[i] =
            mpitest_message((mpitest_kind_t) (MPITEST_IRREGULAR + i % 2), room, (uint64_t) i);
        each->out_types[i] = each->out[i]->type;
        each->in_types[i] = each->in[i]->type;
        MPI_OK(MPI_Get_address(each->out[i]->addr, &each->out_at[i]));
        MPI_OK(MPI_Get_address(each->in[i]->addr, &each->in_at[i]));
        each->ones[i] = 1;
    }
}

static void each_start(each_t *each, MPI_Request *request)
{
    MPI_OK(MPI_Ineighbor_alltoallw(MPI_BOTTOM, each->ones, each->out_at, each->out_types,
                                   MPI_BOTTOM, each->ones, each->in_at, each->in_types, graph,
                                   request));
}

static void each_check(each_t *each)
{
    int i;

    for (i = 0; i < mpitest.size; ++i) {
        VERIFY(each->in[i]->buffer, each_key(each, sources[i], mpitest.rank), each->in[i]->bytes);
        VERIFY(each->out[i]->buffer, each_key(each, mpitest.rank, destinations[i]),
               each->out[i]->bytes);
    }
}

static void each_free(each_t *each)
{
    int i;

    for (i = 0; i < mpitest.size; ++i) {
        mpitest_message_free(each->out[i]);
        mpitest_message_free(each->in[i]);
    }
}

static void alltoallw(uint64_t *state)
{
    MPI_Request request;
    each_t each;
    int i;

    each_make(&each, state);
    MPI_OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, each.ones, each.out_at, each.out_types, MPI_BOTTOM,
                                  each.ones, each.in_at, each.in_types, graph));
    each_check(&each);
    for (i = 0; i < mpitest.size; ++i) {
        mpitest_clear(each.in[i]->buffer);
    }
    each_start(&each, &request);
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    each_check(&each);
    each_free(&each);
}

/* The others: 'out' to all neighbours or one block for each, 'in' one block from each, or more. */
typedef enum which_t {
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    WHICH_MAX
} which_t;

typedef struct rows_t {
    which_t which;
    int salt;
    mpitest_blocks_t *out, *in;
    int counts[RANKS], in_at[RANKS], in_counts[RANKS], out_at[RANKS];
} rows_t;

/* Blocks that rank 'from' sends, or sends to rank 'to'; one position in a row stays empty. */
static int rows_count(const rows_t *rows, int from, int to)
{
    switch (rows->which) {
    case ALLGATHERV:
        return 1 + from % 3;
    case ALLTOALLV:
        return 1 + (from + 2 * to) % 3;
    default:
        return 1;
    }
}

static void rows_make(rows_t *rows, which_t which, int elements, int salt)
{
    bool has_counts = ALLGATHERV == which || ALLTOALLV == which;
    int i, j, out_total = 0, in_total = 0;

    rows->which = which;
    rows->salt = salt;
    for (i = 0; i < mpitest.size; ++i) {
        rows->counts[i] = rows_count(rows, mpitest.rank, destinations[i]);
        rows->in_counts[i] = rows_count(rows, sources[i], mpitest.rank);
        rows->out_at[i] = out_total;
        rows->in_at[i] = in_total;
        out_total += rows->counts[i] + (has_counts ? 1 : 0);
        in_total += rows->in_counts[i] + (has_counts ? 1 : 0);
    }
    /* Gaps on one side only, or on both. */
    rows->out = mpitest_blocks(elements, out_total, 0 != salt % 3);
    rows->in = mpitest_blocks(elements, in_total, 1 != salt % 3);
    for (i = 0; i < mpitest.size; ++i) {
        for (j = 0; j < rows->counts[i]; ++j) {
            bool to_all = ALLGATHER == which || ALLGATHERV == which;

            mpitest_block_set(rows->out, rows->out_at[i] + j, mpitest.rank,
                              to_all ? 0 : destinations[i], salt + j);
        }
    }
}

static void rows_run(rows_t *rows, MPI_Request *request)
{
    mpitest_blocks_t *out = rows->out, *in = rows->in;

    switch (rows->which) {
    case ALLGATHER:
        MPI_OK(NULL == request ? MPI_Neighbor_allgather(out->memory, 1, out->type, in->memory, 1,
                                                        in->type, graph)
                               : MPI_Ineighbor_allgather(out->memory, 1, out->type, in->memory, 1,
                                                         in->type, graph, request));
        break;
    case ALLGATHERV:
        MPI_OK(NULL == request
                   ? MPI_Neighbor_allgatherv(out->memory, rows->counts[0], out->type, in->memory,
                                             rows->in_counts, rows->in_at, in->type, graph)
                   : MPI_Ineighbor_allgatherv(out->memory, rows->counts[0], out->type, in->memory,
                                              rows->in_counts, rows->in_at, in->type, graph,
                                              request));
        break;
    case ALLTOALL:
        MPI_OK(NULL == request ? MPI_Neighbor_alltoall(out->memory, 1, out->type, in->memory, 1,
                                                       in->type, graph)
                               : MPI_Ineighbor_alltoall(out->memory, 1, out->type, in->memory, 1,
                                                        in->type, graph, request));
        break;
    default:
        MPI_OK(NULL == request ? MPI_Neighbor_alltoallv(out->memory, rows->counts, rows->out_at,
                                                        out->type, in->memory, rows->in_counts,
                                                        rows->in_at, in->type, graph)
                               : MPI_Ineighbor_alltoallv(out->memory, rows->counts, rows->out_at,
                                                         out->type, in->memory, rows->in_counts,
                                                         rows->in_at, in->type, graph, request));
        break;
    }
}

static void rows_check(const rows_t *rows)
{
    bool to_all = ALLGATHER == rows->which || ALLGATHERV == rows->which;
    int i, j;

    for (i = 0; i < mpitest.size; ++i) {
        for (j = 0; j < rows->in_counts[i]; ++j) {
            CHECK_BLOCK(rows->in, rows->in_at[i] + j, sources[i], to_all ? 0 : mpitest.rank,
                        rows->salt + j);
        }
        if (ALLGATHERV == rows->which || ALLTOALLV == rows->which) {
            CHECK_NO_BLOCK(rows->in, rows->in_at[i] + rows->in_counts[i]);
        }
    }
}

static void rows_free(rows_t *rows)
{
    mpitest_blocks_free(rows->out);
    mpitest_blocks_free(rows->in);
}

static void others(uint64_t *state)
{
    MPI_Request request;
    rows_t rows;
    int which, nonblocking;

    for (which = 0; which < WHICH_MAX; ++which) {
        for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
            rows_make(&rows, (which_t) which, (int) mpitest_between(state, 1, 6000),
                      10 * which + nonblocking);
            rows_run(&rows, nonblocking ? &request : NULL);
            if (nonblocking) {
                MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            rows_check(&rows);
            rows_free(&rows);
        }
    }
}

/* All nonblocking ones pending at once, and messages to neighbours before, between and after. */
static void at_once(uint64_t *state)
{
    mpitest_message_t *out[MESSAGES], *in[MESSAGES];
    MPI_Request requests[WHICH_MAX + 1 + 2 * MESSAGES];
    rows_t rows[WHICH_MAX];
    int which, i, n = 0;
    each_t each;

    each_make(&each, state);
    for (which = 0; which < WHICH_MAX; ++which) {
        rows_make(&rows[which], (which_t) which, (int) mpitest_between(state, 1, 3000), which);
    }
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        int bytes = mpitest_draw_bytes(state);

        if (0 == i) { /* umrddt handles at least one, for any draw */
            kinds[0] = MPITEST_FINE;
            bytes = 5000;
        }
        out[i] = mpitest_message(kinds[0], bytes, 1);
        in[i] = mpitest_message(kinds[1], bytes, 1);
        mpitest_fill(out[i]->buffer, (uint64_t) (mpitest.rank * MESSAGES + i));
    }
    for (i = 0; i < MESSAGES; ++i) {
        MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, 0 == i % 2 ? mpitest_left() : MPI_ANY_SOURCE,
                         MPI_ANY_TAG, graph, &requests[n++]));
        MPI_OK(MPI_Isend(out[i]->addr, 1, out[i]->type, mpitest_right(), i, graph, &requests[n++]));
        rows_run(&rows[i], &requests[n++]);
    }
    each_start(&each, &requests[n++]);
    MPI_OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    each_check(&each);
    each_free(&each);
    for (i = 0; i < MESSAGES; ++i) {
        rows_check(&rows[i]);
        rows_free(&rows[i]);
        VERIFY(in[i]->buffer, (uint64_t) (mpitest_left() * MESSAGES + i), in[i]->bytes);
        mpitest_message_free(in[i]);
        mpitest_message_free(out[i]);
    }
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"alltoallw", alltoallw}, {"others", others}, {"at_once", at_once}, {NULL, NULL}};

    mpitest_init(&argc, &argv, "neighbours", 3, MPI_THREAD_SINGLE);
    if (RANKS < mpitest.size) {
        mpitest_skip("made for at most 16 ranks");
    }
    make_graph();
    mpitest_run(parts);
    MPI_OK(MPI_Comm_free(&graph));
    return mpitest_finish();
}
