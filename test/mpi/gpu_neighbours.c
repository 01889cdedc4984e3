/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The halo exchange of a cube with its 26 neighbours, in GPU memory: each of two ranks is all
 * neighbours of the other one. Every word is compared after each exchange, those that no message
 * writes too. The receives are posted before the messages arrive, or after it (mode "late"), or the
 * requests are persistent (mode "persistent"). In mode "wild" receives and matched probes have
 * wildcards, so the order of the messages decides, and one receive is cancelled.
 *
 * In mode "late" all messages of an exchange match at once. With CUDA IPC they take at most
 * LAUNCHES operations of the GPU from the third exchange on, and prepare nothing. Otherwise a
 * message may go alone, or with others, for the first time in any exchange. Each layout is prepared
 * once, so exchanges are repeated until QUIET in a row have prepared nothing. In mode "small"
 * the messages of one cell are below the minimum size, and use CUDA IPC after their hints arrived.
 *
 * In mode "one" the launch of a batch of rank 0 fails in the last exchange of a cube, and then the
 * copy of one of its messages: no other message falls back. (Before the last exchange a message may
 * be launched alone.)
 */

#include "exchange.h"
#include "gpu_memory.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEIGHBOURS 26
#define EXCHANGES  8
#define LAUNCHES   4
#define QUIET      3
#define FAULTS     "cuLaunchKernel:1:999;cuMemcpy2DAsync:1:999"
/* Shapes and lists of a rank: of the layouts of its receives, and of the peer's sends. */
#define PREPARED (2 * 2 * NEIGHBOURS)
/* Words of a cell: a message of one cell is below the default minimum size of umrddt. */
#define CELL 64

typedef struct cube_t {
    int n; /* cells of a side, without the border of one cell */
    size_t words;
    gpu_memory_t *memory;
    uint64_t *wanted, *got;
    MPI_Datatype out[NEIGHBOURS], in[NEIGHBOURS];
    MPI_Request requests[2 * NEIGHBOURS];
} cube_t;

static uint64_t value(uint64_t key, int rank, size_t word)
{
    return mpitest_mix(key, (uint64_t) rank, word);
}

/* The step to a neighbour; the opposite one is NEIGHBOURS - 1 - i. */
static void step_of(int i, int step[3])
{
    const int at = i < NEIGHBOURS / 2 ? i : i + 1; /* without the cube itself */

    step[0] = at / 9 - 1;
    step[1] = at / 3 % 3 - 1;
    step[2] = at % 3 - 1;
}

/* The cells for a neighbour, or (border) of it. */
static void region(const cube_t *cube, int i, bool border, int start[3], int part[3])
{
    int step[3], d;

    step_of(i, step);
    for (d = 0; d < 3; ++d) {
        part[d] = 0 == step[d] ? cube->n : 1;
        start[d] = 1;
        if (0 < step[d]) {
            start[d] = cube->n + (border ? 1 : 0);
        } else if (0 > step[d] && border) {
            start[d] = 0;
        }
    }
}

static MPI_Datatype type_of(const cube_t *cube, int i, bool border)
{
    int sizes[3] = {cube->n + 2, cube->n + 2, (cube->n + 2) * CELL}, start[3], part[3];
    MPI_Datatype type;

    region(cube, i, border, start, part);
    start[2] *= CELL;
    part[2] *= CELL;
    MPI_OK(MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_UINT64_T, &type));
    MPI_OK(MPI_Type_commit(&type));
    return type;
}

static size_t word_of(const cube_t *cube, const int start[3], int x, int y, int z)
{
    const size_t side = (size_t) cube->n + 2;

    return (((size_t) (start[0] + x) * side + (size_t) (start[1] + y)) * side + (size_t) start[2])
               * CELL
           + (size_t) z;
}

/* The border as the neighbours send it. */
static void expect(cube_t *cube, uint64_t key)
{
    int i, x, y, z, to[3], from[3], part[3];

    for (i = 0; i < NEIGHBOURS; ++i) {
        region(cube, i, true, to, part);
        region(cube, NEIGHBOURS - 1 - i, false, from, part);
        for (x = 0; x < part[0]; ++x) {
            for (y = 0; y < part[1]; ++y) {
                for (z = 0; z < part[2] * CELL; ++z) {
                    cube->wanted[word_of(cube, to, x, y, z)] =
                        value(key, mpitest.rank ^ 1, word_of(cube, from, x, y, z));
                }
            }
        }
    }
}

static void fill(cube_t *cube, uint64_t key)
{
    size_t i;

    for (i = 0; i < cube->words; ++i) {
        cube->wanted[i] = value(key, mpitest.rank, i);
    }
    gpu_write(cube->memory, 0, cube->wanted, cube->words * sizeof(uint64_t));
}

static void verify(cube_t *cube)
{
    size_t i;

    gpu_read(cube->memory, 0, cube->got, cube->words * sizeof(uint64_t));
    for (i = 0; i < cube->words; ++i) {
        if (cube->wanted[i] != cube->got[i]) {
            mpitest_fail(__FILE__, __LINE__, "side %d: word %zu is not right", cube->n, i);
        }
    }
    mpitest.checks += cube->words;
}

static void make(cube_t *cube, int n)
{
    int i;

    cube->n = n;
    cube->words = (size_t) (n + 2) * (size_t) (n + 2) * (size_t) (n + 2) * CELL;
    cube->memory = gpu_memory(GPU_DEVICE, cube->words * sizeof(uint64_t));
    cube->wanted = malloc(cube->words * sizeof(uint64_t));
    cube->got = malloc(cube->words * sizeof(uint64_t));
    CHECK(NULL != cube->wanted && NULL != cube->got);
    for (i = 0; i < NEIGHBOURS; ++i) {
        cube->out[i] = type_of(cube, i, false);
        cube->in[i] = type_of(cube, i, true);
    }
}

static void drop(cube_t *cube)
{
    int i;

    for (i = 0; i < NEIGHBOURS; ++i) {
        MPI_OK(MPI_Type_free(&cube->out[i]));
        MPI_OK(MPI_Type_free(&cube->in[i]));
    }
    gpu_memory_free(cube->memory);
    free(cube->wanted);
    free(cube->got);
}

/* The next message, whichever it is, by a receive or by a matched probe. */
static void receive_any(cube_t *cube, int i, bool probed)
{
    unsigned char *addr = cube->memory->addr;
    MPI_Message message;

    if (probed) {
        MPI_OK(
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        MPI_OK(MPI_Imrecv(addr, 1, cube->in[i], &message, &cube->requests[i]));
    } else {
        MPI_OK(MPI_Irecv(addr, 1, cube->in[i], MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         &cube->requests[i]));
    }
}

static void receives(cube_t *cube, int peer)
{
    int i;

    for (i = NEIGHBOURS - 1; 0 <= i; --i) {
        if (mpitest_has("wild")) {
            /* in the order of the sends; those that arrived are matched at once */
            receive_any(cube, i, mpitest_has("late") && 1 == i % 2);
        } else {
            MPI_OK(MPI_Irecv(cube->memory->addr, 1, cube->in[i], peer, NEIGHBOURS - 1 - i,
                             MPI_COMM_WORLD, &cube->requests[i]));
        }
    }
}

/* A receive that no message matches is cancelled while others are in progress. */
static void cancel(cube_t *cube, int peer, MPI_Request *request)
{
    MPI_Status status;
    int cancelled;

    if (MPI_REQUEST_NULL == *request) {
        MPI_OK(MPI_Irecv(cube->memory->addr, 1, cube->in[0], peer, NEIGHBOURS, MPI_COMM_WORLD,
                         request));
        return;
    }
    MPI_OK(MPI_Cancel(request));
    MPI_OK(MPI_Wait(request, &status));
    MPI_OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
}

static void exchange_halos(cube_t *cube, int peer)
{
    const bool late = mpitest_has("late");
    MPI_Request never = MPI_REQUEST_NULL;
    int i;

    if (mpitest_has("wild")) {
        cancel(cube, peer, &never);
    }
    if (mpitest_has("persistent")) {
        MPI_OK(MPI_Startall(2 * NEIGHBOURS, cube->requests));
    } else {
        if (!late) {
            receives(cube, peer);
        }
        for (i = 0; i < NEIGHBOURS; ++i) {
            MPI_OK(MPI_Isend(cube->memory->addr, 1, cube->out[i], peer, i, MPI_COMM_WORLD,
                             &cube->requests[NEIGHBOURS + i]));
        }
        if (late) {
            /* Its messages come after those above. */
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
            receives(cube, peer);
        }
    }
    if (MPI_REQUEST_NULL != never) {
        cancel(cube, peer, &never);
    }
    MPI_OK(MPI_Waitall(2 * NEIGHBOURS, cube->requests, MPI_STATUSES_IGNORE));
}

/* What an exchange costs at this rank. @return shapes and lists that were prepared */
static uint64_t check_cost(const pvars_t *before, int number)
{
    const long most = pvars_parameter("pml_umrddt_gpu_batch", 0);
    pvars_t after, cost;
    uint64_t operations, prepared;

    pvars_read(&after);
    pvars_subtract(&after, before, &cost);
    operations = cost.value[PVARS_GPU_LAUNCHES] + cost.value[PVARS_GPU_DRIVER_COPIES];
    prepared = cost.value[PVARS_GPU_SHAPES_MADE] + cost.value[PVARS_GPU_LISTS_UPLOADED];
    if (mpitest.verbose) {
        printf("rank %d, exchange %d: %llu operations, %llu prepared\n", mpitest.rank, number,
               (unsigned long long) operations, (unsigned long long) prepared);
    }
    if (2 > number || !mpitest_has("counted")) {
        return prepared;
    }
    CHECK(NEIGHBOURS == cost.value[PVARS_RECVS_IPC]);
    if (1 == most) {
        CHECK(NEIGHBOURS == operations && 0 == cost.value[PVARS_GPU_BATCHED] && 0 == prepared);
    } else if (mpitest_has("late")) {
        CHECK(LAUNCHES >= operations && 0 == prepared);
        CHECK(NEIGHBOURS - LAUNCHES <= cost.value[PVARS_GPU_BATCHED]);
    }
    return prepared;
}

/* Count the exchanges in a row that prepared nothing on any rank. If each layout is prepared once,
 * there are enough of them before the bound of their number. */
static void settle(uint64_t prepared, int number, uint64_t *total, int *quiet)
{
    *total += prepared;
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &prepared, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
    *quiet = 0 == prepared ? *quiet + 1 : 0;
    CHECK(PREPARED >= *total);
    CHECK(QUIET * (2 * PREPARED + 1) > number);
}

/* Exchange until no message is staged on any rank. */
static void warm(cube_t *cube, int peer)
{
    pvars_t before, after;
    uint64_t read = 0;
    int i;

    for (i = 0; i < 30 && NEIGHBOURS > read; ++i) {
        pvars_read(&before);
        exchange_halos(cube, peer);
        pvars_read(&after);
        read = after.value[PVARS_RECVS_IPC] - before.value[PVARS_RECVS_IPC];
        MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &read, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD));
    }
    CHECK(NEIGHBOURS == read);
    if (mpitest.verbose) {
        printf("rank %d: %d exchanges before the first without staging\n", mpitest.rank, i - 1);
    }
}

/* In mode "one": both faults came about at rank 0, one message has fallen back, and there were
 * batches. */
static void check_one(const pvars_t *before)
{
    const int one = 0 == mpitest.rank ? 1 : 0;
    pvars_t after, cost;

    pvars_read(&after);
    pvars_subtract(&after, before, &cost);
    CHECK_INT(exchange_plan(NULL, 0), 2 * one);
    CHECK_INT(cost.value[PVARS_FALLBACK_IPC], one);
    CHECK(NEIGHBOURS < after.value[PVARS_GPU_BATCHED]);
}

static void run(uint64_t *state)
{
    const int peer = mpitest.rank ^ 1;
    const bool one = mpitest_has("one");
    uint64_t prepared, total = 0;
    cube_t cube;
    pvars_t before;
    int number, i, quiet = mpitest_has("counted") ? 0 : QUIET;

    make(&cube, (int) mpitest_between(state, 2, 7));
    for (i = 0; mpitest_has("persistent") && i < NEIGHBOURS; ++i) {
        MPI_OK(MPI_Recv_init(cube.memory->addr, 1, cube.in[i], peer, NEIGHBOURS - 1 - i,
                             MPI_COMM_WORLD, &cube.requests[i]));
        MPI_OK(MPI_Send_init(cube.memory->addr, 1, cube.out[i], peer, i, MPI_COMM_WORLD,
                             &cube.requests[NEIGHBOURS + i]));
    }
    if (mpitest_has("small")) {
        warm(&cube, peer);
    }
    for (number = 0; number < EXCHANGES || QUIET > quiet; ++number) {
        const uint64_t key = mpitest_random(state);

        fill(&cube, key);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        pvars_read(&before);
        if (one && EXCHANGES - 1 == number) {
            (void) exchange_plan(0 == mpitest.rank ? FAULTS : "", 1);
        }
        exchange_halos(&cube, peer);
        if (one && EXCHANGES - 1 == number) {
            check_one(&before);
        }
        prepared = check_cost(&before, number);
        if (mpitest_has("counted")) {
            settle(prepared, number, &total, &quiet);
        }
        expect(&cube, key);
        verify(&cube);
    }
    for (i = 0; mpitest_has("persistent") && i < 2 * NEIGHBOURS; ++i) {
        MPI_OK(MPI_Request_free(&cube.requests[i]));
    }
    drop(&cube);
}

int main(int argc, char **argv)
{
    uint64_t state;

    mpitest_init(&argc, &argv, "gpu_neighbours", 3, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs 2 ranks");
    }
    gpu_begin_all();
    if (mpitest_has("one") && 0 > exchange_plan("", 0)) {
        mpitest_skip("only the software driver fails on demand");
    }
    (void) pvars_open();
    state = mpitest.seed;
    for (mpitest.step = 0; mpitest.step < mpitest.ops; ++mpitest.step) {
        run(&state);
        mpitest_alive();
    }
    pvars_close();
    return mpitest_finish();
}
