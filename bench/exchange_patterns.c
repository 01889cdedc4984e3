/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdlib.h>
#include <string.h>

#include "bench_util.h"
#include "exchange.h"

/* A body has 8 words; 4 of them are sent: its place (3), and its mass. */
#define BODY      8
#define BODY_MASS 5

const exchange_pattern_t exchange_patterns[] = {
    {"stencil2d", "4 borders of 1024^2 words, width 1", 2, false, false, 1, 1, 1024},
    {"stencil3d", "6 faces of 64^3 words, width 1", 3, false, false, 1, 1, 64},
    {"stencil3d-128", "6 faces of 128^3 words, width 1", 3, false, false, 1, 1, 128},
    {"halo", "26 neighbours of 32^3 points of 8 quantities, width 3", 3, true, false, 8, 3, 32},
    {"nbody-struct", "all bodies to all ranks in a ring: 4 of the 8 words of a body, struct", 0,
     false, false, 0, 0, 4096},
    {"nbody-indexed", "a quarter of the bodies to both neighbours of a ring: 4 words, indexed", 0,
     false, false, 1, 0, 4096},
    {"halo26-128", "26 neighbours of 128^3 words, width 1; of two ranks, all are the peer", 3, true,
     true, 1, 1, 128},
    {"halo26-32", "the same of 32^3 words", 3, true, true, 1, 1, 32},
    {"faces-128", "the 6 faces of halo26-128", 3, false, true, 1, 1, 128},
    {"faces-32", "the 6 faces of halo26-32", 3, false, true, 1, 1, 32},
    {"alltoallw-64", "MPI_Alltoallw of 64^2 words for each rank, subarrays on both sides",
     EXCHANGE_ALLTOALLW, false, false, 1, 0, 64},
    {"alltoallw-256", "MPI_Alltoallw of 256^2 words for each rank", EXCHANGE_ALLTOALLW, false,
     false, 1, 0, 256},
    {"alltoallw-1024", "MPI_Alltoallw of 1024^2 words for each rank", EXCHANGE_ALLTOALLW, false,
     false, 1, 0, 1024},
};

const size_t exchange_pattern_count = sizeof(exchange_patterns) / sizeof(exchange_patterns[0]);

/* -------------------------------------------------------------------------------------------------
 * Grids: fields, one behind the other, of points with a border
 * ---------------------------------------------------------------------------------------------- */

static int whole(const exchange_t *job, int direction)
{
    const int unused = EXCHANGE_SPACE - job->pattern->directions;

    return direction < unused ? 1 : job->side + 2 * job->pattern->radius;
}

static size_t word_of(const exchange_t *job, int field, const int *at)
{
    size_t word = (size_t) field;

    for (int d = 0; d < EXCHANGE_SPACE; ++d) {
        word = word * (size_t) whole(job, d) + (size_t) at[d];
    }
    return word;
}

/* The rank that is so many steps away, round the edges. */
static int neighbour(const exchange_t *job, const int *step)
{
    int rank = 0;

    if (job->pattern->peer && 2 == job->size && (0 != step[0] || 0 != step[1] || 0 != step[2])) {
        return 1 - job->rank;
    }
    for (int d = 0; d < EXCHANGE_SPACE; ++d) {
        rank = rank * job->dims[d] + (job->here[d] + step[d] + job->dims[d]) % job->dims[d];
    }
    return rank;
}

static MPI_Datatype region(const exchange_t *job, const int *step, bool out, uint64_t *bytes,
                           uint64_t *pieces)
{
    const exchange_pattern_t *p = job->pattern;
    int sizes[EXCHANGE_SPACE + 1] = {p->fields}, part[EXCHANGE_SPACE + 1] = {p->fields},
                               starts[EXCHANGE_SPACE + 1] = {0};
    MPI_Datatype type;

    *pieces = (uint64_t) p->fields;
    for (int d = 0; d < EXCHANGE_SPACE; ++d) {
        const bool single = 1 == whole(job, d);

        sizes[d + 1] = whole(job, d);
        part[d + 1] = single ? 1 : 0 == step[d] ? job->side : p->radius;
        starts[d + 1] = single        ? 0
                        : 0 > step[d] ? (out ? p->radius : 0)
                        : 0 < step[d] ? (out ? job->side : job->side + p->radius)
                                      : p->radius;
        *pieces *= EXCHANGE_SPACE - 1 == d ? 1 : (uint64_t) part[d + 1];
    }
    *bytes = 8 * *pieces * (uint64_t) part[EXCHANGE_SPACE];
    MPI_Type_create_subarray(EXCHANGE_SPACE + 1, sizes, part, starts, MPI_ORDER_C, MPI_UINT64_T,
                             &type);
    MPI_Type_commit(&type);
    return type;
}

static void open_grid(exchange_t *job)
{
    const exchange_pattern_t *p = job->pattern;
    int dims[EXCHANGE_SPACE] = {0, 0, 0}, rest = job->rank;

    dims[0] = 2 == p->directions ? 1 : 0;
    MPI_Dims_create(job->size, EXCHANGE_SPACE, dims);
    for (int d = EXCHANGE_SPACE - 1; 0 <= d; --d) {
        job->dims[d] = dims[d];
        job->here[d] = rest % dims[d];
        rest /= dims[d];
    }
    job->words = (size_t) p->fields * (size_t) whole(job, 0) * (size_t) whole(job, 1)
                 * (size_t) whole(job, 2);
    job->rounds = 1;
    for (int code = 0; code < EXCHANGE_CODES; ++code) {
        const int step[EXCHANGE_SPACE] = {code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
        const int far = abs(step[0]) + abs(step[1]) + abs(step[2]);
        exchange_message_t *message = &job->messages[job->count];

        if (0 == far || (1 < far && !p->diagonal) || (2 == p->directions && 0 != step[0])) {
            continue;
        }
        message->to = message->from = neighbour(job, step);
        message->send_tag = code;
        message->recv_tag = EXCHANGE_CODES - 1 - code; /* data in the opposite direction */
        message->recv = region(job, step, false, &message->bytes, &message->pieces);
        message->send = region(job, step, true, &message->bytes, &message->pieces);
        message->send_count = message->recv_count = 1;
        ++job->count;
    }
}

/* Expected content after an iteration; and before it, when nothing was sent. */
static void expect_grid(const exchange_t *job, int iteration, uint64_t *words, bool after)
{
    const exchange_pattern_t *p = job->pattern;
    int at[EXCHANGE_SPACE];

    for (int field = 0; field < p->fields; ++field) {
        for (at[0] = 0; at[0] < whole(job, 0); ++at[0]) {
            for (at[1] = 0; at[1] < whole(job, 1); ++at[1]) {
                for (at[2] = 0; at[2] < whole(job, 2); ++at[2]) {
                    int step[EXCHANGE_SPACE], inside[EXCHANGE_SPACE], far = 0;

                    for (int d = 0; d < EXCHANGE_SPACE; ++d) {
                        const int from = at[d] - p->radius;

                        step[d] = 1 == whole(job, d)  ? 0
                                  : 0 > from          ? -1
                                  : from >= job->side ? 1
                                                      : 0;
                        inside[d] = at[d] - step[d] * job->side;
                        far += abs(step[d]);
                    }
                    words[word_of(job, field, at)] =
                        (0 < far && !after) || (1 < far && !p->diagonal)
                            ? EXCHANGE_NOTHING
                            : exchange_value(neighbour(job, step), word_of(job, field, inside),
                                             iteration);
                }
            }
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * Bodies: as many for each rank (struct), or this rank's, and those from the left and the right
 * ---------------------------------------------------------------------------------------------- */

/* All bodies go to all ranks; else some to the neighbours. */
static bool is_ring(const exchange_pattern_t *pattern)
{
    return 0 == pattern->directions && 0 == pattern->fields;
}

static MPI_Datatype body_type(void)
{
    const int lengths[2] = {3, 1};
    const MPI_Aint places[2] = {0, 8 * BODY_MASS};
    const MPI_Datatype words[2] = {MPI_UINT64_T, MPI_UINT64_T};
    MPI_Datatype some, body;

    MPI_Type_create_struct(2, lengths, places, words, &some);
    MPI_Type_create_resized(some, 0, 8 * BODY, &body);
    MPI_Type_free(&some);
    return body;
}

static void open_bodies(exchange_t *job)
{
    const bool listed = !is_ring(job->pattern);
    const int right = (job->rank + 1) % job->size, left = (job->rank + job->size - 1) % job->size;
    const size_t block = (size_t) BODY * (size_t) job->side;
    uint64_t seed = 77;
    MPI_Datatype body = body_type();

    job->rounds = listed ? 1 : job->size - 1;
    job->count = listed ? 2 : 1;
    job->words = block * (size_t) (listed ? 3 : job->size);
    job->listed = bench_alloc(sizeof(int) * (size_t) job->side);
    for (int i = 0; i < job->side; ++i) {
        job->listed[i] = listed ? 4 * i + (int) (bench_random(&seed) % 4) : i;
    }
    for (int i = 0; i < job->count; ++i) {
        exchange_message_t *message = &job->messages[i];

        message->to = 0 == i ? right : left;
        message->from = listed ? message->to : left;
        message->send_tag = i;
        message->recv_tag = listed ? 1 - i : i;
        message->send_count = message->recv_count = listed ? 1 : job->side;
        message->pieces = 2 * (uint64_t) (listed ? job->side / 4 : job->side);
        message->bytes = 16 * message->pieces;
        if (listed) {
            MPI_Type_create_indexed_block(job->side / 4, 1, job->listed, body, &message->send);
            message->recv_at = block * (size_t) (1 + i);
        } else {
            MPI_Type_dup(body, &message->send);
        }
        MPI_Type_commit(&message->send);
        MPI_Type_dup(message->send, &message->recv);
    }
    MPI_Type_free(&body);
}

/* A ring: the data received in a round is sent on in the next one. */
static void turn_ring(exchange_t *job, int round)
{
    const size_t block = (size_t) BODY * (size_t) job->side;
    const int out = (job->rank - round + job->size) % job->size;

    job->messages[0].send_at = block * (size_t) out;
    job->messages[0].recv_at = block * (size_t) ((out + job->size - 1) % job->size);
}

static void expect_bodies(const exchange_t *job, int iteration, uint64_t *words, bool after)
{
    const bool listed = !is_ring(job->pattern);
    const size_t block = (size_t) BODY * (size_t) job->side;
    const int blocks = listed ? 3 : job->size;

    for (size_t i = 0; i < job->words; ++i) {
        words[i] = EXCHANGE_NOTHING;
    }
    for (int which = 0; which < blocks; ++which) {
        const int from = !listed ? which
                                 : (job->rank
                                    + (0 == which   ? 0
                                       : 1 == which ? 1
                                                    : job->size - 1))
                                       % job->size;
        const bool mine = listed ? 0 == which : job->rank == which;
        uint64_t *bodies = words + block * (size_t) which;

        if (mine) {
            for (size_t i = 0; i < block; ++i) {
                bodies[i] = exchange_value(from, i, iteration);
            }
            continue;
        }
        for (int i = 0; after && i < (listed ? job->side / 4 : job->side); ++i) {
            const size_t body = (size_t) BODY * (size_t) job->listed[i];

            for (size_t word = 0; word < 3; ++word) {
                bodies[body + word] = exchange_value(from, body + word, iteration);
            }
            bodies[body + BODY_MASS] = exchange_value(from, body + BODY_MASS, iteration);
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * Blocks: two matrices of side rows, sent and received, each with side columns for each rank
 * ---------------------------------------------------------------------------------------------- */

static void open_blocks(exchange_t *job)
{
    const int sizes[2] = {job->side, job->side * job->size}, part[2] = {job->side, job->side};

    if (EXCHANGE_RANKS < job->size) {
        bench_fatal("bench_exchange: %s: at most %d ranks", job->name, EXCHANGE_RANKS);
    }
    job->rounds = 1;
    job->count = job->size;
    job->words = 2 * (size_t) sizes[0] * (size_t) sizes[1];
    for (int i = 0; i < job->count; ++i) {
        const int starts[2] = {0, i * job->side};
        exchange_message_t *message = &job->messages[i];

        message->to = message->from = i;
        message->send_count = message->recv_count = 1;
        message->recv_at = job->words / 2;
        message->pieces = (uint64_t) job->side;
        message->bytes = 8 * message->pieces * (uint64_t) job->side;
        MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_UINT64_T, &message->send);
        MPI_Type_commit(&message->send);
        MPI_Type_dup(message->send, &message->recv);
    }
}

static void expect_blocks(const exchange_t *job, int iteration, uint64_t *words, bool after)
{
    const size_t side = (size_t) job->side, wide = side * (size_t) job->size;
    const size_t half = job->words / 2, mine = side * (size_t) job->rank;

    for (size_t i = 0; i < half; ++i) {
        const size_t column = i % wide, from = column / side;

        words[i] = exchange_value(job->rank, i, iteration);
        words[half + i] =
            after ? exchange_value((int) from, i - column + mine + column % side, iteration)
                  : EXCHANGE_NOTHING;
    }
}

static void call_alltoallw(exchange_t *job, char *array)
{
    const int none[EXCHANGE_RANKS] = {0};
    MPI_Datatype send[EXCHANGE_RANKS], recv[EXCHANGE_RANKS];
    int ones[EXCHANGE_RANKS];

    for (int i = 0; i < job->count; ++i) {
        send[i] = job->messages[i].send;
        recv[i] = job->messages[i].recv;
        ones[i] = 1;
    }
    MPI_Alltoallw(array, ones, none, send, array + 8 * job->messages[0].recv_at, ones, none, recv,
                  job->comm);
}

/* -------------------------------------------------------------------------------------------------
 * All
 * ---------------------------------------------------------------------------------------------- */

const exchange_pattern_t *exchange_find(const char *name)
{
    for (size_t i = 0; i < exchange_pattern_count; ++i) {
        if (0 == strcmp(name, exchange_patterns[i].name)) {
            return &exchange_patterns[i];
        }
    }
    return NULL;
}

void exchange_open_pattern(exchange_t *exchange, const exchange_pattern_t *pattern, int side,
                           MPI_Comm comm, bool on_gpu)
{
    exchange_open(exchange, pattern->name, comm);
    exchange->pattern = pattern;
    exchange->side = 0 < side ? side : pattern->side;
    if (0 < pattern->directions) {
        exchange->expect = expect_grid;
        open_grid(exchange);
    } else if (0 == pattern->directions) {
        exchange->expect = expect_bodies;
        exchange->turn = is_ring(pattern) ? turn_ring : NULL;
        open_bodies(exchange);
    } else {
        exchange->expect = expect_blocks;
        exchange->call = call_alltoallw;
        open_blocks(exchange);
    }
    exchange_make_array(exchange, on_gpu);
}
