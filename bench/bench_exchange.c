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
 * Exchanges of applications, all ranks at once, each with the same amount of data for any number of
 * ranks (weak scaling): the stencils and the N-body code of HAND's experiments, the stencil of the
 * UMR paper (128^3), and the halo of TEMPI; and MPI_Alltoallw of blocks of a matrix. See usage().
 * Every expected word is checked, and also that no other word changed.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "bench_gpu.h"
#include "bench_pvars.h"
#include "bench_times.h"
#include "bench_util.h"

/* Directions in space, most messages of a round. */
#define SPACE 3
#define MOST  27

/* pattern_t.directions of one MPI_Alltoallw. */
#define ALLTOALLW (-1)

#define WARMUP 3

/* A word that no rank sends. */
#define NOTHING UINT64_MAX

/* A body has 8 words; 4 of them are sent: its place (3), and its mass. */
#define BODY      8
#define BODY_MASS 5

typedef struct pattern_t {
    const char *name;
    const char *what;
    int directions; /* of a grid; 0: bodies; or ALLTOALLW */
    bool diagonal;  /* all neighbours, not only those across a face */
    int fields;
    int radius;
    int side; /* of a rank's grid, without its border; or how many bodies a rank has */
} pattern_t;

static const pattern_t patterns[] = {
    {"stencil2d", "4 borders of 1024^2 words, width 1", 2, false, 1, 1, 1024},
    {"stencil3d", "6 faces of 64^3 words, width 1", 3, false, 1, 1, 64},
    {"stencil3d-128", "6 faces of 128^3 words, width 1", 3, false, 1, 1, 128},
    {"halo", "26 neighbours of 32^3 points of 8 quantities, width 3", 3, true, 8, 3, 32},
    {"nbody-struct", "all bodies to all ranks in a ring: 4 of the 8 words of a body, struct", 0,
     false, 0, 0, 4096},
    {"nbody-indexed", "a quarter of the bodies to both neighbours of a ring: 4 words, indexed", 0,
     false, 1, 0, 4096},
    {"alltoallw-64", "MPI_Alltoallw of 64^2 words for each rank, subarrays on both sides",
     ALLTOALLW, false, 1, 0, 64},
    {"alltoallw-256", "MPI_Alltoallw of 256^2 words for each rank", ALLTOALLW, false, 1, 0, 256},
    {"alltoallw-1024", "MPI_Alltoallw of 1024^2 words for each rank", ALLTOALLW, false, 1, 0, 1024},
};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* One message of a round, and the incoming one: from the same side, except in a ring. */
typedef struct message_t {
    int to, from;
    MPI_Datatype send, recv;
    int send_count, recv_count;
    size_t send_at, recv_at; /* words from the array's begin, of what MPI is given */
    int send_tag, recv_tag;
    uint64_t bytes, pieces; /* of the sending type, by plain arithmetic */
} message_t;

typedef struct job_t {
    const pattern_t *pattern;
    int rank, size, side;
    MPI_Comm comm, control;
    int dims[SPACE], here[SPACE]; /* the ranks' grid; [0] is the slowest in memory */
    size_t words;                 /* of the array */
    uint64_t *array, *wanted;     /* in system memory */
    uint64_t *gpu;                /* or NULL */
    int *listed;                  /* bodies that are sent; ascending */
    message_t messages[MOST];
    int count, rounds; /* messages of a round; rounds of an iteration */
} job_t;

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: mpirun -n RANKS bench_exchange [--memory host|gpu] [--iterations N] [--side N] PATTERN...\n\n"
        "Runs each pattern N times (default 10) after %d warm-ups, and verifies every word. Prints per iteration:\n"
        "messages, bytes and contiguous pieces that a rank sends to others; counters of umrddt (means over the\n"
        "ranks, both directions); the median time of the slowest rank in microseconds.\n"
        "--side sets the side of the grid of a rank, or its number of bodies.\n\n",
        WARMUP);
    for (size_t i = 0; i < PATTERNS; ++i) {
        fprintf(out, "  %-14s %s\n", patterns[i].name, patterns[i].what);
    }
}

/* The value of a word, different for each rank, place and iteration. */
static uint64_t value(int rank, size_t place, int iteration)
{
    uint64_t state = ((uint64_t) rank << 40) ^ ((uint64_t) (unsigned) iteration << 50) ^ place;

    return bench_random(&state) >> 1; /* never NOTHING */
}

/* -------------------------------------------------------------------------------------------------
 * Grids: fields, one behind the other, of points with a border
 * ---------------------------------------------------------------------------------------------- */

static int whole(const job_t *job, int direction)
{
    const int unused = SPACE - job->pattern->directions;

    return direction < unused ? 1 : job->side + 2 * job->pattern->radius;
}

static size_t word_of(const job_t *job, int field, const int *at)
{
    size_t word = (size_t) field;

    for (int d = 0; d < SPACE; ++d) {
        word = word * (size_t) whole(job, d) + (size_t) at[d];
    }
    return word;
}

/* The rank that is so many steps away, round the edges. */
static int neighbour(const job_t *job, const int *step)
{
    int rank = 0;

    for (int d = 0; d < SPACE; ++d) {
        rank = rank * job->dims[d] + (job->here[d] + step[d] + job->dims[d]) % job->dims[d];
    }
    return rank;
}

static MPI_Datatype region(const job_t *job, const int *step, bool out, uint64_t *bytes,
                           uint64_t *pieces)
{
    const pattern_t *p = job->pattern;
    int sizes[SPACE + 1] = {p->fields}, part[SPACE + 1] = {p->fields}, starts[SPACE + 1] = {0};
    MPI_Datatype type;

    *pieces = (uint64_t) p->fields;
    for (int d = 0; d < SPACE; ++d) {
        const bool single = 1 == whole(job, d);

        sizes[d + 1] = whole(job, d);
        part[d + 1] = single ? 1 : 0 == step[d] ? job->side : p->radius;
        starts[d + 1] = single        ? 0
                        : 0 > step[d] ? (out ? p->radius : 0)
                        : 0 < step[d] ? (out ? job->side : job->side + p->radius)
                                      : p->radius;
        *pieces *= SPACE - 1 == d ? 1 : (uint64_t) part[d + 1];
    }
    *bytes = 8 * *pieces * (uint64_t) part[SPACE];
    MPI_Type_create_subarray(SPACE + 1, sizes, part, starts, MPI_ORDER_C, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    return type;
}

static void open_grid(job_t *job)
{
    const pattern_t *p = job->pattern;
    int dims[SPACE] = {0, 0, 0}, rest = job->rank;

    dims[0] = 2 == p->directions ? 1 : 0;
    MPI_Dims_create(job->size, SPACE, dims);
    for (int d = SPACE - 1; 0 <= d; --d) {
        job->dims[d] = dims[d];
        job->here[d] = rest % dims[d];
        rest /= dims[d];
    }
    job->words = (size_t) p->fields * (size_t) whole(job, 0) * (size_t) whole(job, 1)
                 * (size_t) whole(job, 2);
    job->rounds = 1;
    for (int code = 0; code < MOST; ++code) {
        const int step[SPACE] = {code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
        const int far = abs(step[0]) + abs(step[1]) + abs(step[2]);
        message_t *message = &job->messages[job->count];

        if (0 == far || (1 < far && !p->diagonal) || (2 == p->directions && 0 != step[0])) {
            continue;
        }
        message->to = message->from = neighbour(job, step);
        message->send_tag = code;
        message->recv_tag = MOST - 1 - code; /* data in the opposite direction */
        message->recv = region(job, step, false, &message->bytes, &message->pieces);
        message->send = region(job, step, true, &message->bytes, &message->pieces);
        message->send_count = message->recv_count = 1;
        ++job->count;
    }
}

/* Expected content after an iteration; and before it, when nothing was sent. */
static void expect_grid(const job_t *job, int iteration, uint64_t *words, bool after)
{
    const pattern_t *p = job->pattern;
    int at[SPACE];

    for (int field = 0; field < p->fields; ++field) {
        for (at[0] = 0; at[0] < whole(job, 0); ++at[0]) {
            for (at[1] = 0; at[1] < whole(job, 1); ++at[1]) {
                for (at[2] = 0; at[2] < whole(job, 2); ++at[2]) {
                    int step[SPACE], inside[SPACE], far = 0;

                    for (int d = 0; d < SPACE; ++d) {
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
                            ? NOTHING
                            : value(neighbour(job, step), word_of(job, field, inside), iteration);
                }
            }
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * Bodies: as many for each rank (struct), or this rank's, and those from the left and the right
 * ---------------------------------------------------------------------------------------------- */

/* All bodies go to all ranks; else some to the neighbours. */
static bool is_ring(const pattern_t *pattern)
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

static void open_bodies(job_t *job)
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
        message_t *message = &job->messages[i];

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
static void turn_ring(job_t *job, int round)
{
    const size_t block = (size_t) BODY * (size_t) job->side;
    const int out = (job->rank - round + job->size) % job->size;

    job->messages[0].send_at = block * (size_t) out;
    job->messages[0].recv_at = block * (size_t) ((out + job->size - 1) % job->size);
}

static void expect_bodies(const job_t *job, int iteration, uint64_t *words, bool after)
{
    const bool listed = !is_ring(job->pattern);
    const size_t block = (size_t) BODY * (size_t) job->side;
    const int blocks = listed ? 3 : job->size;

    for (size_t i = 0; i < job->words; ++i) {
        words[i] = NOTHING;
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
                bodies[i] = value(from, i, iteration);
            }
            continue;
        }
        for (int i = 0; after && i < (listed ? job->side / 4 : job->side); ++i) {
            const size_t body = (size_t) BODY * (size_t) job->listed[i];

            for (size_t word = 0; word < 3; ++word) {
                bodies[body + word] = value(from, body + word, iteration);
            }
            bodies[body + BODY_MASS] = value(from, body + BODY_MASS, iteration);
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * Blocks: two matrices of side rows, sent and received, each with side columns for each rank
 * ---------------------------------------------------------------------------------------------- */

static void open_blocks(job_t *job)
{
    const int sizes[2] = {job->side, job->side * job->size}, part[2] = {job->side, job->side};

    if (MOST < job->size) {
        bench_fatal("bench_exchange: %s: at most %d ranks", job->pattern->name, MOST);
    }
    job->rounds = 1;
    job->count = job->size;
    job->words = 2 * (size_t) sizes[0] * (size_t) sizes[1];
    for (int i = 0; i < job->count; ++i) {
        const int starts[2] = {0, i * job->side};
        message_t *message = &job->messages[i];

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

static void expect_blocks(const job_t *job, int iteration, uint64_t *words, bool after)
{
    const size_t side = (size_t) job->side, wide = side * (size_t) job->size;
    const size_t half = job->words / 2, mine = side * (size_t) job->rank;

    for (size_t i = 0; i < half; ++i) {
        const size_t column = i % wide, from = column / side;

        words[i] = value(job->rank, i, iteration);
        words[half + i] =
            after ? value((int) from, i - column + mine + column % side, iteration) : NOTHING;
    }
}

static void alltoallw(job_t *job, char *array)
{
    const int none[MOST] = {0};
    MPI_Datatype send[MOST], recv[MOST];
    int ones[MOST];

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

static void open_pattern(job_t *job)
{
    const int directions = job->pattern->directions;

    (0 < directions ? open_grid : 0 == directions ? open_bodies : open_blocks)(job);
}

static void expect(const job_t *job, int iteration, uint64_t *words, bool after)
{
    const int directions = job->pattern->directions;

    (0 < directions    ? expect_grid
     : 0 == directions ? expect_bodies
                       : expect_blocks)(job, iteration, words, after);
}

static void exchange(job_t *job)
{
    char *array = (char *) (NULL == job->gpu ? job->array : job->gpu);
    MPI_Request requests[2 * MOST];

    if (ALLTOALLW == job->pattern->directions) {
        alltoallw(job, array);
        return;
    }
    for (int round = 0; round < job->rounds; ++round) {
        if (is_ring(job->pattern)) {
            turn_ring(job, round);
        }
        for (int i = 0; i < job->count; ++i) {
            const message_t *message = &job->messages[i];

            MPI_Irecv(array + 8 * message->recv_at, message->recv_count, message->recv,
                      message->from, message->recv_tag, job->comm, &requests[i]);
        }
        for (int i = 0; i < job->count; ++i) {
            const message_t *message = &job->messages[i];

            MPI_Isend(array + 8 * message->send_at, message->send_count, message->send, message->to,
                      message->send_tag, job->comm, &requests[job->count + i]);
        }
        MPI_Waitall(2 * job->count, requests, MPI_STATUSES_IGNORE);
    }
}

/* One iteration, checked. @return its time, seconds, of the slowest rank */
static double iterate(job_t *job, int iteration)
{
    const char *plant =
        getenv("UMRDDT_EXCHANGE_PLANT"); /* test hook: this word comes to rank 0 wrong */
    double time, slowest;

    expect(job, iteration, job->array, false);
    if (NULL != job->gpu) {
        bench_gpu_write(job->gpu, job->array, 8 * job->words);
    }
    MPI_Barrier(job->control);
    time = bench_now();
    exchange(job);
    time = bench_now() - time;
    MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, job->control);
    if (NULL != job->gpu) {
        bench_gpu_read(job->array, job->gpu, 8 * job->words);
    }
    if (NULL != plant && 0 == job->rank) {
        job->array[strtoull(plant, NULL, 10) % job->words] ^= 1;
    }
    expect(job, iteration, job->wanted, true);
    for (size_t i = 0; i < job->words; ++i) {
        if (job->array[i] != job->wanted[i]) {
            bench_fatal(
                "bench_exchange: %s, rank %d of %d, iteration %d: word %zu is %llx instead of %llx",
                job->pattern->name, job->rank, job->size, iteration, i,
                (unsigned long long) job->array[i], (unsigned long long) job->wanted[i]);
        }
    }
    return slowest;
}

/* The counters that have a column. */
static const struct {
    const char *name;
    int pvar;
} columns[] = {
    {"handled", BENCH_PVAR_HANDLED_SENDS}, {"fallback", BENCH_PVAR_FALLBACK_SENDS},
    {"umr", BENCH_PVAR_KEYS_MAPPED},       {"entries", BENCH_PVAR_KEY_ENTRIES},
    {"rdma", BENCH_PVAR_WRITES_POSTED},    {"ctrl_B", BENCH_PVAR_CONTROL_BYTES},
    {"kernels", BENCH_PVAR_GPU_LAUNCHES},  {"copies", BENCH_PVAR_GPU_DRIVER_COPIES},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void print_head(void)
{
    printf("%-14s %5s %6s %9s %9s %9s", "pattern", "ranks", "side", "messages", "bytes", "pieces");
    for (size_t i = 0; i < COLUMNS; ++i) {
        printf(" %9s", columns[i].name);
    }
    printf(" %10s  verified\n", "us");
}

/* The sends of a rank, and its counters: means of the ranks. */
static void print_row(const job_t *job, int iterations, const uint64_t *counted, double *samples)
{
    uint64_t mine[3] = {0, 0, 0}, all[3], sums[BENCH_PVAR_COUNT];
    const double ranks = job->size;
    bench_times_t times;

    for (int i = 0; i < job->count; ++i) {
        const message_t *message = &job->messages[i];

        if (message->to != job->rank) {
            mine[0] += (uint64_t) job->rounds;
            mine[1] += (uint64_t) job->rounds * message->bytes;
            mine[2] += (uint64_t) job->rounds * message->pieces;
        }
    }
    MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, job->control);
    MPI_Reduce(counted, sums, BENCH_PVAR_COUNT, MPI_UINT64_T, MPI_SUM, 0, job->control);
    if (0 != job->rank) {
        return;
    }
    bench_times_summarise(samples, iterations, &times);
    printf("%-14s %5d %6d %9.1f %9.0f %9.0f", job->pattern->name, job->size, job->side,
           (double) all[0] / ranks, (double) all[1] / ranks, (double) all[2] / ranks);
    for (size_t i = 0; i < COLUMNS; ++i) {
        printf(" %9.2f", (double) sums[columns[i].pvar] / ranks / iterations);
    }
    printf(" %10.1f  yes\n", times.median);
    fflush(stdout);
}

static void run(const pattern_t *pattern, int side, int iterations, bool on_gpu,
                bench_pvars_t *pvars)
{
    uint64_t before[BENCH_PVAR_COUNT], counted[BENCH_PVAR_COUNT];
    double *samples = bench_alloc(sizeof(double) * (size_t) iterations);
    MPI_Info info;
    job_t job;

    memset(&job, 0, sizeof(job));
    job.pattern = pattern;
    job.side = 0 < side ? side : pattern->side;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "pml_umrddt_scheme", "base"); /* not counted */
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &job.control);
    MPI_Info_free(&info);
    open_pattern(&job);
    job.array = bench_alloc(8 * job.words);
    job.wanted = bench_alloc(8 * job.words);
    job.gpu = on_gpu ? bench_gpu_alloc(8 * job.words) : NULL;

    for (int i = 0; i < WARMUP + iterations; ++i) {
        double time;

        if (WARMUP == i) {
            bench_pvars_read(pvars, before);
        }
        time = iterate(&job, i);
        if (WARMUP <= i) {
            samples[i - WARMUP] = time;
        }
    }
    MPI_Barrier(job.control);
    bench_pvars_read(pvars, counted);
    for (int i = 0; i < BENCH_PVAR_COUNT; ++i) {
        counted[i] -= before[i];
    }
    print_row(&job, iterations, counted, samples);

    for (int i = 0; i < job.count; ++i) {
        MPI_Type_free(&job.messages[i].send);
        MPI_Type_free(&job.messages[i].recv);
    }
    if (NULL != job.gpu) {
        bench_gpu_free(job.gpu);
    }
    MPI_Comm_free(&job.control);
    MPI_Comm_free(&job.comm);
    free(job.listed);
    free(job.wanted);
    free(job.array);
    free(samples);
}

static const pattern_t *find(const char *name)
{
    for (size_t i = 0; i < PATTERNS; ++i) {
        if (0 == strcmp(name, patterns[i].name)) {
            return &patterns[i];
        }
    }
    return NULL;
}

int main(int argc, char *argv[])
{
    int iterations = 10, side = 0, rank, size, arg;
    bool on_gpu = false, help = false, right = true;
    const char *why = NULL;
    bench_pvars_t pvars;

    for (arg = 1; arg < argc && '-' == argv[arg][0] && right && !help; arg += 2) {
        const char *text = arg + 1 < argc ? argv[arg + 1] : "";

        help = 0 == strcmp("--help", argv[arg]);
        if (0 == strcmp("--memory", argv[arg])) {
            on_gpu = 0 == strcmp("gpu", text);
            right = on_gpu || 0 == strcmp("host", text);
        } else if (0 == strcmp("--iterations", argv[arg])) {
            iterations = atoi(text);
            right = 0 < iterations;
        } else {
            side = atoi(text);
            right = 0 == strcmp("--side", argv[arg]) && 3 < side;
        }
    }
    for (int i = arg; i < argc; ++i) {
        right = right && NULL != find(argv[i]);
    }
    if (help || !right || arg >= argc) {
        usage(help ? stdout : stderr);
        return help ? 0 : 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 > size) {
        bench_fatal("bench_exchange: at least 2 ranks are required");
    }
    if (on_gpu && NULL != (why = bench_gpu_open(rank))) {
        bench_fatal("bench_exchange: no GPU: %s", why);
    }
    bench_pvars_open(&pvars);
    if (0 == rank) {
        print_head();
    }
    for (; arg < argc; ++arg) {
        run(find(argv[arg]), side, iterations, on_gpu, &pvars);
    }
    bench_pvars_close(&pvars);
    MPI_Finalize();
    return 0;
}
