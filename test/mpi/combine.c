/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Collectives over derived types, each blocking and nonblocking: gather, scatter, all-to-all and
 * their forms with counts; reductions and scans of a user's type by a user's operation that does
 * not commute; the same on an intercommunicator; and many nonblocking ones at once, on two
 * communicators, with messages that umrddt handles between them.
 */

#include "blocks.h"
#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

#define RANKS 16

/* Waits for the request; a blocking call leaves none. */
#define RUN(nonblocking, blocking_call, nonblocking_call)  \
    do {                                                   \
        if (nonblocking) {                                 \
            MPI_Request request;                           \
                                                           \
            MPI_OK(nonblocking_call);                      \
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); \
        } else {                                           \
            MPI_OK(blocking_call);                         \
        }                                                  \
    } while (0)

/* Blocks from one rank to another if counts differ. */
static int count_of(int from, int to)
{
    return 1 + (2 * from + to) % 3;
}

/* The root gets count_of(r, root) blocks of each rank r, and returns as many. */
static void rooted(MPI_Comm comm, int elements, int root, bool nonblocking)
{
    int mine = count_of(mpitest.rank, root), counts[RANKS], at[RANKS], total = 0, i, j;
    bool is_root = root == mpitest.rank;
    mpitest_blocks_t *own = mpitest_blocks(elements, mine + 1, true), *all;

    for (i = 0; i < mpitest.size; ++i) {
        counts[i] = count_of(i, root);
        at[i] = total;
        total += counts[i] + 1; /* one stays empty */
    }
    all = mpitest_blocks(elements, total, true);
    for (j = 0; j < mine; ++j) {
        mpitest_block_set(own, j, mpitest.rank, root, j);
    }
    RUN(nonblocking,
        MPI_Gatherv(own->memory, mine, own->type, all->memory, counts, at, all->type, root, comm),
        MPI_Igatherv(own->memory, mine, own->type, all->memory, counts, at, all->type, root, comm,
                     &request));
    for (i = 0; i < mpitest.size && is_root; ++i) {
        for (j = 0; j < counts[i]; ++j) {
            CHECK_BLOCK(all, at[i] + j, i, root, j);
        }
        CHECK_NO_BLOCK(all, at[i] + counts[i]);
    }
    mpitest_blocks_clear(own);
    RUN(nonblocking,
        MPI_Scatterv(all->memory, counts, at, all->type, own->memory, mine, own->type, root, comm),
        MPI_Iscatterv(all->memory, counts, at, all->type, own->memory, mine, own->type, root, comm,
                      &request));
    for (j = 0; j < mine; ++j) {
        CHECK_BLOCK(own, j, mpitest.rank, root, j);
    }
    CHECK_NO_BLOCK(own, mine);
    /* One block each, and in place at the root. */
    mpitest_blocks_clear(all);
    if (is_root) {
        mpitest_block_set(all, root, root, root, 7);
    } else {
        mpitest_block_set(own, 0, mpitest.rank, root, 7);
    }
    RUN(nonblocking,
        MPI_Gather(is_root ? MPI_IN_PLACE : own->memory, 1, own->type, all->memory, 1, all->type,
                   root, comm),
        MPI_Igather(is_root ? MPI_IN_PLACE : own->memory, 1, own->type, all->memory, 1, all->type,
                    root, comm, &request));
    for (i = 0; i < mpitest.size && is_root; ++i) {
        CHECK_BLOCK(all, i, i, root, 7);
    }
    mpitest_blocks_clear(own);
    RUN(nonblocking, MPI_Scatter(all->memory, 1, all->type, own->memory, 1, own->type, root, comm),
        MPI_Iscatter(all->memory, 1, all->type, own->memory, 1, own->type, root, comm, &request));
    CHECK_BLOCK(own, 0, mpitest.rank, root, 7);
    CHECK_NO_BLOCK(own, 1);
    mpitest_blocks_free(own);
    mpitest_blocks_free(all);
}

/* From all ranks to all ranks. */
static void everybody(MPI_Comm comm, int elements, bool nonblocking)
{
    int counts[RANKS], at[RANKS], in_counts[RANKS], in_at[RANKS], out = 0, in = 0, i, j, k;
    mpitest_blocks_t *give, *get;

    for (i = 0; i < mpitest.size; ++i) {
        counts[i] = count_of(mpitest.rank, i);
        in_counts[i] = count_of(i, mpitest.rank);
        at[i] = out;
        in_at[i] = in;
        out += counts[i] + 1;
        in += in_counts[i] + 1;
    }
    give = mpitest_blocks(elements, out, true);
    get = mpitest_blocks(elements, in, true);
    for (i = 0; i < mpitest.size; ++i) {
        for (j = 0; j < counts[i]; ++j) {
            mpitest_block_set(give, at[i] + j, mpitest.rank, i, j);
        }
    }
    RUN(nonblocking,
        MPI_Alltoallv(give->memory, counts, at, give->type, get->memory, in_counts, in_at,
                      get->type, comm),
        MPI_Ialltoallv(give->memory, counts, at, give->type, get->memory, in_counts, in_at,
                       get->type, comm, &request));
    for (i = 0; i < mpitest.size; ++i) {
        for (j = 0; j < in_counts[i]; ++j) {
            CHECK_BLOCK(get, in_at[i] + j, i, mpitest.rank, j);
        }
        CHECK_NO_BLOCK(get, in_at[i] + in_counts[i]);
    }
    mpitest_blocks_clear(give);
    mpitest_blocks_clear(get);
    for (i = 0; i < mpitest.size; ++i) {
        mpitest_block_set(give, i, mpitest.rank, i, 9);
    }
    RUN(nonblocking, MPI_Alltoall(give->memory, 1, give->type, get->memory, 1, get->type, comm),
        MPI_Ialltoall(give->memory, 1, give->type, get->memory, 1, get->type, comm, &request));
    for (i = 0; i < mpitest.size; ++i) {
        CHECK_BLOCK(get, i, i, mpitest.rank, 9);
    }
    /* From the first of them to all, one or several, with gaps between those of two ranks. */
    for (k = 0; k < 2; ++k) {
        mpitest_blocks_clear(get);
        for (i = 0, in = 0; i < mpitest.size; ++i) {
            in_counts[i] = 0 == k ? 1 : 1 + i % 2;
            in_at[i] = in;
            in += in_counts[i] + (0 == k ? 0 : 1);
        }
        for (j = 0; j < in_counts[mpitest.rank]; ++j) {
            mpitest_block_set(give, j, mpitest.rank, 0, 11 + j);
        }
        if (0 == k) {
            RUN(nonblocking,
                MPI_Allgather(give->memory, 1, give->type, get->memory, 1, get->type, comm),
                MPI_Iallgather(give->memory, 1, give->type, get->memory, 1, get->type, comm,
                               &request));
        } else {
            RUN(nonblocking,
                MPI_Allgatherv(give->memory, in_counts[mpitest.rank], give->type, get->memory,
                               in_counts, in_at, get->type, comm),
                MPI_Iallgatherv(give->memory, in_counts[mpitest.rank], give->type, get->memory,
                                in_counts, in_at, get->type, comm, &request));
        }
        for (i = 0; i < mpitest.size; ++i) {
            for (j = 0; j < in_counts[i]; ++j) {
                CHECK_BLOCK(get, in_at[i] + j, i, 0, 11 + j);
            }
            if (1 == k) {
                CHECK_NO_BLOCK(get, in_at[i] + in_counts[i]);
            }
        }
    }
    mpitest_blocks_free(give);
    mpitest_blocks_free(get);
}

static void moves(uint64_t *state)
{
    int nonblocking;

    for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
        rooted(MPI_COMM_WORLD, (int) mpitest_between(state, 1, 4000),
               (int) mpitest_between(state, 0, mpitest.size - 1), 0 != nonblocking);
        everybody(MPI_COMM_WORLD, (int) mpitest_between(state, 1, 4000), 0 != nonblocking);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Reductions
 * ------------------------------------------------------------------------------------------- */

#define PRIME 10007

/* x -> a * x + b over a prime field; with a gap between the two, and one at the end. */
typedef struct affine_t {
    int a;
    int unused;
    int b;
    int behind;
} affine_t;

static affine_t affine(int rank, int i)
{
    uint64_t bits = mpitest_mix((uint64_t) rank, (uint64_t) i, 77);
    affine_t map = {1 + (int) (bits % (PRIME - 1)), -5, (int) (bits >> 32) % PRIME, -6};

    map.b = map.b < 0 ? -map.b : map.b;
    return map;
}

/* First 'left', then 'right': associative, and not commutative. */
static affine_t then(affine_t left, affine_t right)
{
    affine_t both = {(int) ((long) left.a * right.a % PRIME), -5,
                     (int) (((long) right.a * left.b + right.b) % PRIME), -6};

    return both;
}

static void operation(void *in, void *inout, int *count, MPI_Datatype *type)
{
    affine_t *left = in, *right = inout;
    int i;

    (void) type;
    for (i = 0; i < *count; ++i) {
        affine_t both = then(left[i], right[i]);

        right[i].a = both.a;
        right[i].b = both.b;
    }
}

/* Ranks 0 to last, in order, of element i. */
static affine_t upto(int last, int i)
{
    affine_t all = affine(0, i);
    int rank;

    for (rank = 1; rank <= last; ++rank) {
        all = then(all, affine(rank, i));
    }
    return all;
}

static void check_affine(const affine_t *got, int n, int last, int offset)
{
    int i;

    for (i = 0; i < n; ++i) {
        affine_t wanted = upto(last, offset + i);

        CHECK_INT(got[i].a, wanted.a);
        CHECK_INT(got[i].b, wanted.b);
    }
}

static void reductions(uint64_t *state)
{
    int n = mpitest.size * (int) mpitest_between(state, 20, 400), i, nonblocking, counts[RANKS];
    int root = (int) mpitest_between(state, 0, mpitest.size - 1), last = mpitest.size - 1;
    int lengths[2] = {1, 1}, share = n / mpitest.size;
    affine_t *mine = malloc(sizeof(*mine) * (size_t) n), *all = malloc(sizeof(*all) * (size_t) n);
    MPI_Aint at[2] = {offsetof(affine_t, a), offsetof(affine_t, b)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT}, inner, type;
    MPI_Op op;

    CHECK(NULL != mine && NULL != all);
    MPI_OK(MPI_Type_create_struct(2, lengths, at, types, &inner));
    MPI_OK(MPI_Type_create_resized(inner, 0, sizeof(affine_t), &type));
    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Type_free(&inner));
    MPI_OK(MPI_Op_create(operation, 0, &op));
    for (i = 0; i < n; ++i) {
        mine[i] = affine(mpitest.rank, i);
    }
    for (i = 0; i < mpitest.size; ++i) {
        counts[i] = share;
    }
    for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
        RUN(nonblocking, MPI_Reduce(mine, all, n, type, op, root, MPI_COMM_WORLD),
            MPI_Ireduce(mine, all, n, type, op, root, MPI_COMM_WORLD, &request));
        check_affine(all, root == mpitest.rank ? n : 0, last, 0);
        RUN(nonblocking, MPI_Allreduce(mine, all, n, type, op, MPI_COMM_WORLD),
            MPI_Iallreduce(mine, all, n, type, op, MPI_COMM_WORLD, &request));
        check_affine(all, n, last, 0);
        RUN(nonblocking, MPI_Scan(mine, all, n, type, op, MPI_COMM_WORLD),
            MPI_Iscan(mine, all, n, type, op, MPI_COMM_WORLD, &request));
        check_affine(all, n, mpitest.rank, 0);
        RUN(nonblocking, MPI_Exscan(mine, all, n, type, op, MPI_COMM_WORLD),
            MPI_Iexscan(mine, all, n, type, op, MPI_COMM_WORLD, &request));
        check_affine(all, 0 < mpitest.rank ? n : 0, mpitest.rank - 1, 0);
        RUN(nonblocking, MPI_Reduce_scatter(mine, all, counts, type, op, MPI_COMM_WORLD),
            MPI_Ireduce_scatter(mine, all, counts, type, op, MPI_COMM_WORLD, &request));
        check_affine(all, share, last, mpitest.rank * share);
        RUN(nonblocking, MPI_Reduce_scatter_block(mine, all, share, type, op, MPI_COMM_WORLD),
            MPI_Ireduce_scatter_block(mine, all, share, type, op, MPI_COMM_WORLD, &request));
        check_affine(all, share, last, mpitest.rank * share);
    }
    MPI_OK(MPI_Reduce_local(mine, all, 1, type, op));
    MPI_OK(MPI_Op_free(&op));
    MPI_OK(MPI_Type_free(&type));
    free(mine);
    free(all);
}

/* ---------------------------------------------------------------------------------------------
 * Between two groups, and all at once
 * ------------------------------------------------------------------------------------------- */

static void between_groups(uint64_t *state)
{
    int color = mpitest.rank % 2, n = (int) mpitest_between(state, 1, 5000), remote, mine, i;
    mpitest_blocks_t *give, *get;
    MPI_Comm local, inter;

    if (2 > mpitest.size || 0 != mpitest.size % 2) {
        return;
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, color, 0, &local));
    MPI_OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - color, 5, &inter));
    MPI_OK(MPI_Comm_remote_size(inter, &remote));
    MPI_OK(MPI_Comm_rank(inter, &mine));
    give = mpitest_blocks(n, remote, true);
    get = mpitest_blocks(n, remote, true);
    for (i = 0; i < remote; ++i) {
        mpitest_block_set(give, i, 100 * color + mine, i, 1);
    }
    MPI_OK(MPI_Alltoall(give->memory, 1, give->type, get->memory, 1, get->type, inter));
    for (i = 0; i < remote; ++i) {
        CHECK_BLOCK(get, i, 100 * (1 - color) + i, mine, 1);
    }
    mpitest_blocks_clear(get);
    MPI_OK(MPI_Allgather(give->memory, 1, give->type, get->memory, 1, get->type, inter));
    for (i = 0; i < remote; ++i) {
        CHECK_BLOCK(get, i, 100 * (1 - color) + i, 0, 1);
    }
    mpitest_blocks_clear(get);
    /* From the first of group 0 to all of group 1. */
    MPI_OK(MPI_Bcast(0 == color ? give->memory : get->memory, 1, give->type,
                     0 != color  ? 0
                     : 0 == mine ? MPI_ROOT
                                 : MPI_PROC_NULL,
                     inter));
    if (1 == color) {
        CHECK_BLOCK(get, 0, 0, 0, 1);
    }
    mpitest_blocks_free(give);
    mpitest_blocks_free(get);
    MPI_OK(MPI_Comm_free(&inter));
    MPI_OK(MPI_Comm_free(&local));
}

/* Nonblocking collectives of two communicators at the same time, and messages between them. */
static void at_once(uint64_t *state)
{
    enum {
        MESSAGES = 4,
        PER_COMM = 4
    };
    int n = (int) mpitest_between(state, 100, 4000), c, i, count = 0, root;
    mpitest_message_t *out[2][MESSAGES], *in[2][MESSAGES], *spread[2];
    MPI_Request requests[2 * (2 * MESSAGES + PER_COMM)];
    mpitest_blocks_t *give[2], *get[2], *all[2];
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    uint64_t key = mpitest_random(state);

    root = (int) mpitest_between(state, 0, mpitest.size - 1);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (c = 0; c < 2; ++c) {
        give[c] = mpitest_blocks(n, mpitest.size, 0 == c);
        get[c] = mpitest_blocks(n, mpitest.size, true);
        all[c] = mpitest_blocks(n, mpitest.size, true);
        spread[c] = mpitest_message(MPITEST_NESTED, 20000 + c, 1);
        if (root == mpitest.rank) {
            mpitest_fill(spread[c]->buffer, key + (uint64_t) c);
        }
        for (i = 0; i < mpitest.size; ++i) {
            mpitest_block_set(give[c], i, mpitest.rank, i, c);
        }
        for (i = 0; i < MESSAGES; ++i) {
            mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
            int bytes = mpitest_draw_bytes(state);

            if (0 == c && 0 == i) {
                /* At least this one is for umrddt, which ignores collectives. */
                kinds[0] = MPITEST_COARSE;
                bytes = 100000;
            }
            out[c][i] = mpitest_message(kinds[0], bytes, 1);
            in[c][i] = mpitest_message(kinds[1], bytes, 1);
            mpitest_fill(out[c][i]->buffer, (uint64_t) (mpitest.rank * 100 + c * 10 + i));
        }
    }
    for (i = 0; i < MESSAGES; ++i) {
        for (c = 0; c < 2; ++c) {
            MPI_OK(MPI_Irecv(in[c][i]->addr, 1, in[c][i]->type, MPI_ANY_SOURCE, MPI_ANY_TAG,
                             comms[c], &requests[count++]));
            switch (i) {
            case 0:
                MPI_OK(MPI_Ibcast(spread[c]->addr, 1, spread[c]->type, root, comms[c],
                                  &requests[count++]));
                break;
            case 1:
                MPI_OK(MPI_Ialltoall(give[c]->memory, 1, give[c]->type, get[c]->memory, 1,
                                     get[c]->type, comms[c], &requests[count++]));
                break;
            case 2:
                MPI_OK(MPI_Iallgather(give[c]->memory, 1, give[c]->type, all[c]->memory, 1,
                                      all[c]->type, comms[c], &requests[count++]));
                break;
            default:
                MPI_OK(MPI_Ibarrier(comms[c], &requests[count++]));
                break;
            }
            MPI_OK(MPI_Isend(out[c][i]->addr, 1, out[c][i]->type, mpitest_right(), i, comms[c],
                             &requests[count++]));
        }
    }
    MPI_OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    for (c = 0; c < 2; ++c) {
        VERIFY(spread[c]->buffer, key + (uint64_t) c, spread[c]->bytes);
        for (i = 0; i < mpitest.size; ++i) {
            CHECK_BLOCK(get[c], i, i, mpitest.rank, c);
            CHECK_BLOCK(all[c], i, i, 0, c);
        }
        for (i = 0; i < MESSAGES; ++i) {
            VERIFY(in[c][i]->buffer, (uint64_t) (mpitest_left() * 100 + c * 10 + i),
                   in[c][i]->bytes);
            mpitest_message_free(in[c][i]);
            mpitest_message_free(out[c][i]);
        }
        mpitest_blocks_free(give[c]);
        mpitest_blocks_free(get[c]);
        mpitest_blocks_free(all[c]);
        mpitest_message_free(spread[c]);
    }
    MPI_OK(MPI_Comm_free(&comms[1]));
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {{"moves", moves},
                                           {"reductions", reductions},
                                           {"between_groups", between_groups},
                                           {"at_once", at_once},
                                           {NULL, NULL}};

    mpitest_init(&argc, &argv, "combine", 2, MPI_THREAD_SINGLE);
    if (RANKS < mpitest.size) {
        mpitest_skip("made for at most 16 ranks");
    }
    mpitest_run(parts);
    return mpitest_finish();
}
