/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Collectives from GPU to GPU some of whose messages are posted later than the call.
 */

#include "gpu_coll.h"

#include "pvars.h"

#include <stdlib.h>

/* Counters of calls from GPU to GPU and of staged ones. */
static void count(unsigned long long counters[2])
{
    counters[0] = gpu_coll_counter(GPU_COLL_DIRECT);
    counters[1] = gpu_coll_counter(GPU_COLL_STAGED);
}

/* So many calls were from GPU to GPU since, and none was staged. */
static void check_direct(const unsigned long long before[2], unsigned long long calls)
{
    if (gpu_coll_is_enabled()) {
        CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), before[0] + calls);
        CHECK_INT(gpu_coll_counter(GPU_COLL_STAGED), before[1]);
    }
}

/* Of each two calls, one is an all-to-all in place and the other one a broadcast. */
void gpu_coll_pending(uint64_t *state)
{
    enum {
        MANY = 150,
        PART = 4096
    };
    const size_t bytes = (size_t) mpitest.size * PART;
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, MANY * bytes);
    unsigned char *data = malloc(MANY * bytes);
    unsigned long long before[2];
    MPI_Request requests[MANY];
    MPI_Comm comm;

    (void) state;
    CHECK(NULL != data);
    for (size_t i = 0; i < MANY * bytes; ++i) {
        data[i] = (unsigned char) (i / bytes + i / PART * 16 + (size_t) mpitest.rank);
    }
    gpu_write(memory, 0, data, MANY * bytes);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    count(before);
    for (int k = 0; k < MANY; ++k) {
        unsigned char *at = memory->addr + (size_t) k * bytes;

        if (0 == k % 2) {
            MPI_OK(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at, PART, MPI_BYTE, comm,
                                 &requests[k]));
        } else {
            MPI_OK(MPI_Ibcast(at, PART, MPI_BYTE, k % mpitest.size, comm, &requests[k]));
        }
    }
    /* they end without the handle */
    MPI_OK(MPI_Comm_free(&comm));
    for (int k = MANY - 1; 0 <= k; --k) {
        MPI_OK(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
    }
    check_direct(before, MANY);
    gpu_read(memory, 0, data, MANY * bytes);
    for (size_t i = 0; i < MANY * bytes; ++i) {
        const size_t k = i / bytes, part = i % bytes / PART;
        const size_t rank = (size_t) mpitest.rank, size = (size_t) mpitest.size;
        /* the part of another process for this one, or the root's first part */
        const size_t was = 0 == k % 2 ? k * bytes + rank * PART : i;
        const size_t from = 0 == k % 2 ? part : 0 == part ? k % size : rank;

        CHECK_INT(data[i], (unsigned char) (k + was / PART * 16 + from));
    }
    free(data);
    gpu_memory_free(memory);
}

/* Parts that do not fit together into a group of copies, and a datatype with gaps that is freed
 * during the call. Some processes have their buffers in system memory. */
void gpu_coll_in_place(uint64_t *state)
{
    enum {
        LARGE = 530003, /* four of them are more than 8 MiB */
        SMALL = 3001
    };
    const int size = mpitest.size, rank = mpitest.rank;
    const size_t most = 2 * (size_t) size * LARGE * sizeof(int);
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, most), gpu_memory(GPU_HOST, most)};
    int *data = malloc(most);
    MPI_Comm comm;

    (void) state;
    CHECK(NULL != data);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int turn = 0; turn < 6; ++turn) {
        const int n = 0 == turn % 3 ? LARGE : SMALL, step = 1 == turn % 2 ? 2 : 1;
        const bool nonblocking = 2 <= turn, on_cpu = 4 <= turn && 0 == (turn + rank) % 2;
        gpu_memory_t *buffer = memory[on_cpu ? 1 : 0];
        unsigned long long before[2];
        MPI_Datatype vector, type;
        MPI_Request request;

        MPI_OK(MPI_Type_vector(n, 1, step, MPI_INT, &vector));
        MPI_OK(MPI_Type_create_resized(vector, 0, (MPI_Aint) n * step * 4, &type));
        MPI_OK(MPI_Type_commit(&type));
        MPI_OK(MPI_Type_free(&vector));
        for (int i = 0; i < size * n * step; ++i) {
            data[i] = i + turn + 1000 * rank;
        }
        gpu_write(buffer, 0, data, (size_t) (size * n * step) * sizeof(int));
        count(before);
        if (nonblocking) {
            MPI_OK(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer->addr, 1, type, comm,
                                 &request));
            MPI_OK(MPI_Type_free(&type));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPI_OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer->addr, 1, type, comm));
            MPI_OK(MPI_Type_free(&type));
        }
        check_direct(before, 1);
        gpu_read(buffer, 0, data, (size_t) (size * n * step) * sizeof(int));
        for (int i = 0; i < size * n * step; ++i) {
            const int part = i / (n * step);
            const bool moved = 0 == i % (n * step) % step;

            CHECK_INT(data[i], moved ? rank * n * step + i % (n * step) + turn + 1000 * part
                                     : i + turn + 1000 * rank);
        }
        ++mpitest.step;
    }
    MPI_OK(MPI_Comm_free(&comm));
    free(data);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

/* A broadcast of INTEGERS: its memory, and its datatype in this process. */
typedef struct pieces_t {
    gpu_memory_t *memory;
    MPI_Datatype type;
    int count;
    int step;
    int root;
    MPI_Request request;
} pieces_t;

#define INTEGERS 200003

static void pieces_write(const pieces_t *with, int *numbers, int turn)
{
    const size_t bytes = 2 * INTEGERS * sizeof(int);

    for (int i = 0; i < 2 * INTEGERS; ++i) {
        numbers[i] = with->root == mpitest.rank ? i / with->step + turn : -1;
    }
    gpu_write(with->memory, 0, numbers, bytes);
}

static void pieces_check(const pieces_t *with, int *numbers, int turn)
{
    gpu_read(with->memory, 0, numbers, 2 * INTEGERS * sizeof(int));
    for (int i = 0; i < 2 * INTEGERS; ++i) {
        const bool data = 0 == i % with->step && i / with->step < INTEGERS;
        const int wanted = data || with->root == mpitest.rank ? i / with->step + turn : -1;

        if (numbers[i] != wanted) {
            mpitest_fail(__FILE__, __LINE__, "turn %d, integer %d: %d, not %d", turn, i, numbers[i],
                         wanted);
        }
    }
}

/* Processes have different datatypes of one signature, also with gaps, and different memory. */
static void pieces_draw(pieces_t *with, gpu_memory_t *memory[2], int turn)
{
    const int kind = (turn + mpitest.rank) % 3;

    with->memory = memory[3 <= turn && 0 == (turn + mpitest.rank) % 4 ? 1 : 0];
    with->root = turn % mpitest.size;
    with->step = 2 == kind ? 2 : 1;
    with->count = 1 == kind ? INTEGERS : 1;
    with->type = MPI_INT;
    if (1 != kind) {
        MPI_OK(MPI_Type_vector(INTEGERS, 1, with->step, MPI_INT, &with->type));
        MPI_OK(MPI_Type_commit(&with->type));
    }
}

static void pieces_free_type(pieces_t *with)
{
    if (MPI_INT != with->type) {
        MPI_OK(MPI_Type_free(&with->type));
    }
}

void gpu_coll_large_ibcast(uint64_t *state)
{
    const size_t bytes = 2 * INTEGERS * sizeof(int);
    gpu_memory_t *memory[2][2];
    int *numbers = malloc(bytes);
    unsigned long long before[2];
    pieces_t with[2];
    MPI_Comm comm;

    (void) state;
    CHECK(NULL != numbers);
    for (int i = 0; i < 4; ++i) {
        memory[i / 2][i % 2] = gpu_memory(0 == i % 2 ? GPU_DEVICE : GPU_HOST, bytes);
    }
    for (int turn = 0; turn < 2 * mpitest.size; ++turn) {
        const bool persistent = 0 == turn % 3 && gpu_coll_has_form(GPU_COLL_PERSISTENT);

        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        count(before);
        for (int k = 0; k < 2; ++k) {
            pieces_draw(&with[k], memory[k], turn + k);
            pieces_write(&with[k], numbers, turn + k);
            if (persistent && 0 == k) {
                gpu_coll_bcast_init(with[k].memory->addr, with[k].count, with[k].type, with[k].root,
                                    comm, &with[k].request);
                MPI_OK(MPI_Start(&with[k].request));
            } else {
                MPI_OK(MPI_Ibcast(with[k].memory->addr, with[k].count, with[k].type, with[k].root,
                                  comm, &with[k].request));
            }
            pieces_free_type(&with[k]);
        }
        MPI_OK(MPI_Comm_free(&comm));
        for (int k = 0; k < 2; ++k) {
            pieces_t *one = &with[(turn + k + mpitest.rank) % 2];

            MPI_OK(MPI_Wait(&one->request, MPI_STATUS_IGNORE));
            if (MPI_REQUEST_NULL != one->request) {
                MPI_OK(MPI_Request_free(&one->request));
            }
        }
        check_direct(before, 2);
        for (int k = 0; k < 2; ++k) {
            pieces_check(&with[k], numbers, turn + k);
        }
        ++mpitest.step;
    }
    for (int i = 0; i < 4; ++i) {
        gpu_memory_free(memory[i / 2][i % 2]);
    }
    free(numbers);
}

/* A call without memory in rank 1, of PART integers for each process, which are values_of before.
 */
typedef enum lack_t {
    LACK_BCAST, /* from rank 0; rank 1 has gaps */
    LACK_BCAST_ROOT,
    LACK_ALLTOALL,
    LACK_ALLREDUCE,
    LACK_REDUCE_SCATTER,
    LACK_REDUCE,
    LACK_SCAN,
    LACKS
} lack_t;

enum {
    PART = 60000,
    REFUSED = 100000 /* bytes */
};

static int value_of(int rank, int i)
{
    return 3 * rank + i % 1000;
}

static void lack_start(lack_t what, void *address, MPI_Datatype gaps, MPI_Request *request)
{
    const int all = mpitest.size * PART;
    MPI_Comm comm = MPI_COMM_WORLD;

    switch (what) {
    case LACK_BCAST:
    case LACK_BCAST_ROOT:
        MPI_OK(MPI_Ibcast(address, 1 == mpitest.rank ? 1 : all, 1 == mpitest.rank ? gaps : MPI_INT,
                          LACK_BCAST == what ? 0 : 1, comm, request));
        break;
    case LACK_ALLTOALL:
        MPI_OK(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, address, PART, MPI_INT, comm,
                             request));
        break;
    case LACK_ALLREDUCE:
        MPI_OK(MPI_Iallreduce(MPI_IN_PLACE, address, all, MPI_INT, MPI_SUM, comm, request));
        break;
    case LACK_REDUCE_SCATTER:
        MPI_OK(MPI_Ireduce_scatter_block(MPI_IN_PLACE, address, PART, MPI_INT, MPI_SUM, comm,
                                         request));
        break;
    case LACK_REDUCE:
        MPI_OK(MPI_Ireduce(0 == mpitest.rank ? MPI_IN_PLACE : address, address, all, MPI_INT,
                           MPI_SUM, 0, comm, request));
        break;
    default:
        MPI_OK(MPI_Iscan(MPI_IN_PLACE, address, all, MPI_INT, MPI_SUM, comm, request));
    }
}

/* An integer of the result of this rank; -1: not defined. */
static int lack_result(lack_t what, int i)
{
    const int size = mpitest.size, rank = mpitest.rank;
    int sum = 0;

    switch (what) {
    case LACK_BCAST:
    case LACK_BCAST_ROOT:
        return value_of(LACK_BCAST == what ? 0 : 1, i);
    case LACK_ALLTOALL:
        return value_of(i / PART, rank * PART + i % PART);
    case LACK_SCAN:
        for (int k = 0; k <= rank; ++k) {
            sum += value_of(k, i);
        }
        return sum;
    default:
        if ((LACK_REDUCE_SCATTER == what && PART <= i) || (LACK_REDUCE == what && 0 < rank)) {
            return -1;
        }
        for (int k = 0; k < size; ++k) {
            sum += value_of(k, LACK_REDUCE_SCATTER == what ? rank * PART + i : i);
        }
        return sum;
    }
}

/* The error of a call in which rank 1 had no memory. */
static void lack_check(lack_t what, int rc)
{
    const int class = mpitest_error_class(rc);

    if (1 == mpitest.rank) {
        CHECK_INT(class, MPI_ERR_NO_MEM);
    } else if ((LACK_BCAST == what || LACK_SCAN == what) && 0 == mpitest.rank) {
        CHECK_INT(class, MPI_SUCCESS);
    } else if (LACK_REDUCE != what || 0 == mpitest.rank) {
        CHECK_INT(class, MPI_ERR_OTHER);
    }
}

/* Rank 1 gets no memory for its copies in the first of two equal calls: an error there, and in each
 * process that needs its data. No process waits for it, and the second call is right. */
void gpu_coll_no_memory(void)
{
    const int all = mpitest.size * PART, step = 1 == mpitest.rank ? 2 : 1;
    const size_t bytes = 2 * (size_t) all * sizeof(int);
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, bytes);
    int *numbers = malloc(bytes);
    MPI_Datatype gaps;

    CHECK(NULL != numbers && 5 <= mpitest.size);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Type_vector(all, 1, 2, MPI_INT, &gaps));
    MPI_OK(MPI_Type_commit(&gaps));
    for (int turn = 0; turn < 2 * LACKS; ++turn) {
        const lack_t what = (lack_t) (turn / 2);
        const int of = LACK_ALLTOALL > what ? step : 1;
        const bool lacks = 0 == turn % 2;
        MPI_Request request;
        int rc;

        for (int i = 0; i < all; ++i) {
            numbers[i * of] = value_of(mpitest.rank, i);
        }
        gpu_write(memory, 0, numbers, bytes);
        gpu_coll_refuse(lacks && 1 == mpitest.rank ? REFUSED : 0);
        lack_start(what, memory->addr, gaps, &request);
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        gpu_coll_refuse(0);
        if (lacks) {
            lack_check(what, rc);
            continue;
        }
        MPI_OK(rc);
        gpu_read(memory, 0, numbers, bytes);
        for (int i = 0; i < all; ++i) {
            const int wanted = lack_result(what, i);

            CHECK(-1 == wanted || numbers[i * of] == wanted);
        }
        ++mpitest.step;
    }
    CHECK_INT(gpu_coll_counter(GPU_COLL_FAILURES), 1 == mpitest.rank ? LACKS : 0);
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 2 * LACKS);
    MPI_OK(MPI_Type_free(&gaps));
    gpu_memory_free(memory);
    free(numbers);
}
