/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Reports of users of MPI libraries about GPUs in one node, one part per report. Other tests cover
 * the other reports: README.md lists all of them.
 *
 * --mode part,part: some of the parts only.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int counters;

/* One end of a message, on the rank that has it: even ranks have the first, odd ones the second. */
typedef struct end_t {
    MPI_Datatype type;
    int count;
    gpu_kind_t kind;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
} end_t;

static void open_end(end_t *end)
{
    end->map = mpitest_map(end->type, end->count);
    end->buffer = mpitest_buffer_of(end->map, end->kind);
}

static void close_end(end_t *end)
{
    mpitest_buffer_free(end->buffer);
    mpitest_map_free(end->map);
}

static int peer(void)
{
    return mpitest.rank ^ 1;
}

/* A message from the even rank's end to the odd one's if @p there, else back. */
static void message(end_t *end, bool there, uint64_t key)
{
    bool sending = (0 == mpitest.rank % 2) == there;
    int bytes = -1;
    MPI_Status status;

    if (sending) {
        mpitest_fill(end->buffer, key);
        MPI_OK(MPI_Send(end->buffer->addr, end->count, end->type, peer(), 3, MPI_COMM_WORLD));
    } else {
        mpitest_clear(end->buffer);
        MPI_OK(
            MPI_Recv(end->buffer->addr, end->count, end->type, peer(), 3, MPI_COMM_WORLD, &status));
        MPI_OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
        CHECK_INT(bytes, end->map->size);
    }
    VERIFY(end->buffer, key, end->map->size);
}

/* ucx#9514, ucx#9373: a contiguous sender and a receiver with a vector on a GPU, with the types of
 * the reports; the reverse; and with one end in system memory. */
static void ucx_9514(uint64_t *state)
{
    static const gpu_kind_t places[3][2] = {
        {GPU_DEVICE, GPU_DEVICE}, {GPU_HOST, GPU_DEVICE}, {GPU_DEVICE, GPU_HOST}};
    MPI_Datatype vector;
    size_t i;

    MPI_OK(MPI_Type_vector(16, 4096, 8192, MPI_DOUBLE, &vector));
    MPI_OK(MPI_Type_commit(&vector));
    for (i = 0; i < 3; ++i) {
        bool even = 0 == mpitest.rank % 2;
        end_t end = {.type = even ? MPI_DOUBLE : vector,
                     .count = even ? 16 * 4096 : 1,
                     .kind = places[i][even ? 0 : 1]};

        open_end(&end);
        message(&end, true, mpitest_random(state));
        message(&end, false, mpitest_random(state));
        close_end(&end);
    }
    MPI_OK(MPI_Type_free(&vector));
}

/* ucxx#749: memory from an asynchronous pool, of which several allocations lie side by side. */
static void ucxx_749(uint64_t *state)
{
    MPI_Datatype type = mpitest_type(MPITEST_FINE, 3000, 0);
    int i, round;

    for (round = 0; round < 3; ++round) {
        end_t ends[8];

        for (i = 0; i < 8; ++i) {
            ends[i] = (end_t){.type = type,
                              .count = 1,
                              .kind = gpu_kind_available(GPU_POOL) ? GPU_POOL : GPU_DEVICE};
            open_end(&ends[i]);
        }
        for (i = 0; i < 8; ++i) {
            message(&ends[i], 0 == i % 2, mpitest_random(state));
        }
        for (i = 0; i < 8; ++i) {
            close_end(&ends[(3 * i) % 8]);
        }
    }
    MPI_OK(MPI_Type_free(&type));
}

/* What a message cost, on both sides together. */
static void cost(const pvars_t *before, pvars_t *all)
{
    pvars_t now, mine;

    pvars_read(&now);
    pvars_subtract(&now, before, &mine);
    pvars_sum(&mine, all);
}

/*
 * A repeated message: one GPU operation for each (or none, if the base PML carries it), and no type
 * read, translation, upload, export or import.
 */
static void repeat(end_t *end, uint64_t *state)
{
    static const pvars_index_t nothing[] = {PVARS_LAYOUT_MISSES, PVARS_GPU_SHAPES_MADE,
                                            PVARS_GPU_LISTS_UPLOADED, PVARS_IPC_EXPORTED,
                                            PVARS_IPC_OPENED};
    uint64_t messages = 3 * (uint64_t) (mpitest.size / 2), operations;
    pvars_t before, all;
    size_t i;
    int n;

    for (n = 0; n < 2; ++n) {
        message(end, true, mpitest_random(state));
    }
    pvars_read(&before);
    for (n = 0; n < 3; ++n) {
        message(end, true, mpitest_random(state));
    }
    cost(&before, &all);
    if (0 == counters) {
        return;
    }
    for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); ++i) {
        CHECK_INT(all.value[nothing[i]], 0);
    }
    operations = all.value[PVARS_GPU_LAUNCHES] + all.value[PVARS_GPU_DRIVER_COPIES];
    if (0 < all.value[PVARS_RECVS_IPC]) {
        CHECK_INT(all.value[PVARS_RECVS_IPC], messages);
        CHECK_INT(operations, messages);
    } else {
        /* Staged: one at each end. */
        CHECK(2 * messages >= operations);
    }
}

/* A vector of doubles, again and again. */
static void vector(uint64_t *state, int blocks, int length, int stride)
{
    end_t end = {.count = 1, .kind = GPU_DEVICE};

    MPI_OK(MPI_Type_vector(blocks, length, stride, MPI_DOUBLE, &end.type));
    MPI_OK(MPI_Type_commit(&end.type));
    open_end(&end);
    repeat(&end, state);
    close_end(&end);
    MPI_OK(MPI_Type_free(&end.type));
}

/* ompi#8720: a million blocks of 8 bytes are a million copies nowhere. */
static void ompi_8720(uint64_t *state)
{
    vector(state, 1 << 20, 1, 2);
}

/* uDALES#377: pieces of 8 to 24 bytes, as many as a real domain has and not one of 8 x 8 x 8. */
static void udales_377(uint64_t *state)
{
    int length;

    for (length = 1; length <= 3; ++length) {
        vector(state, 512 * 96, length, 20);
    }
}

/*
 * ompi#8720, the collective of the report: columns of a matrix to every process, into columns of
 * another one, by vectors and by subarrays. The driver counts the GPU operations at the end of the
 * program (gpuwork= in the table of cases).
 */
#define ROWS (1 << 15)
static void alltoall_8720(uint64_t *state)
{
    int n = mpitest.size, i, r, sizes[2] = {ROWS, 2 * n}, parts[2] = {ROWS, 1}, start[2] = {0, 0};
    size_t cells = (size_t) ROWS * (size_t) n;
    uint64_t *host = calloc(2 * cells, sizeof(*host)), salt = mpitest_random(state) >> 48;
    gpu_memory_t *out = gpu_memory(GPU_DEVICE, cells * sizeof(*host));
    gpu_memory_t *in = gpu_memory(GPU_DEVICE, 2 * cells * sizeof(*host));
    MPI_Datatype *out_types = calloc((size_t) n, sizeof(*out_types));
    MPI_Datatype *in_types = calloc((size_t) n, sizeof(*in_types));
    int *counts = calloc((size_t) n, sizeof(int)), *at = calloc((size_t) n, sizeof(int));
    int *zeros = calloc((size_t) n, sizeof(int));

    CHECK(NULL != host && NULL != out_types && NULL != in_types && NULL != counts && NULL != at
          && NULL != zeros);
    MPI_OK(MPI_Bcast(&salt, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    gpu_write(in, 0, host, 2 * cells * sizeof(*host));
    for (r = 0; r < ROWS; ++r) {
        for (i = 0; i < n; ++i) {
            host[(size_t) r * (size_t) n + (size_t) i] =
                salt << 48 | (uint64_t) mpitest.rank << 40 | (uint64_t) i << 32 | (uint64_t) r;
        }
    }
    gpu_write(out, 0, host, cells * sizeof(*host));
    for (i = 0; i < n; ++i) {
        counts[i] = 1;
        at[i] = i * (int) sizeof(*host);
        start[1] = 2 * i + 1;
        MPI_OK(MPI_Type_vector(ROWS, 1, n, MPI_UINT64_T, &out_types[i]));
        MPI_OK(MPI_Type_create_subarray(2, sizes, parts, start, MPI_ORDER_C, MPI_UINT64_T,
                                        &in_types[i]));
        MPI_OK(MPI_Type_commit(&out_types[i]));
        MPI_OK(MPI_Type_commit(&in_types[i]));
    }
    MPI_OK(MPI_Alltoallw(out->addr, counts, at, out_types, in->addr, counts, zeros, in_types,
                         MPI_COMM_WORLD));
    gpu_read(in, 0, host, 2 * cells * sizeof(*host));
    for (r = 0; r < ROWS; ++r) {
        for (i = 0; i < n; ++i) {
            const uint64_t *pair = &host[2 * ((size_t) r * (size_t) n + (size_t) i)];

            CHECK(
                0 == pair[0]
                && (salt << 48 | (uint64_t) i << 40 | (uint64_t) mpitest.rank << 32 | (uint64_t) r)
                       == pair[1]);
        }
    }
    for (i = 0; i < n; ++i) {
        MPI_OK(MPI_Type_free(&out_types[i]));
        MPI_OK(MPI_Type_free(&in_types[i]));
    }
    gpu_memory_free(out);
    gpu_memory_free(in);
    free(host);
    free(out_types);
    free(in_types);
    free(counts);
    free(at);
    free(zeros);
}

/* ompi PR 14126: blocks that are longer than the pieces in which they travel, and no multiple. */
static void ompi_14126(uint64_t *state)
{
    static const gpu_kind_t places[3][2] = {
        {GPU_DEVICE, GPU_HOST}, {GPU_HOST, GPU_DEVICE}, {GPU_DEVICE, GPU_DEVICE}};
    static const int lengths[] = {4095, 4097, 12289, 100003};
    size_t i, k;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        MPI_Datatype type;

        MPI_OK(MPI_Type_vector(7, lengths[i], lengths[i] + 13, MPI_BYTE, &type));
        MPI_OK(MPI_Type_commit(&type));
        for (k = 0; k < 3; ++k) {
            bool even = 0 == mpitest.rank % 2;
            end_t end = {.type = type, .count = 1, .kind = places[k][even ? 0 : 1]};

            open_end(&end);
            message(&end, true, mpitest_random(state));
            message(&end, false, mpitest_random(state));
            close_end(&end);
        }
        MPI_OK(MPI_Type_free(&type));
    }
}

/* ompi#12202, #12452: thousands of listed blocks in no order, of 8 bytes and of 8 KiB. */
static void ompi_12202(uint64_t *state)
{
    static const struct {
        int blocks, doubles;
    } lists[] = {{20000, 1}, {300, 1024}};
    size_t i;
    int k;

    for (i = 0; i < 2; ++i) {
        int *where = malloc(sizeof(int) * (size_t) lists[i].blocks);
        end_t end = {.count = 1, .kind = GPU_DEVICE};

        CHECK(NULL != where);
        for (k = 0; k < lists[i].blocks; ++k) {
            where[k] = 2 * k * lists[i].doubles;
        }
        mpitest_shuffle(state, where, lists[i].blocks);
        MPI_OK(MPI_Type_create_indexed_block(lists[i].blocks, lists[i].doubles, where, MPI_DOUBLE,
                                             &end.type));
        MPI_OK(MPI_Type_commit(&end.type));
        open_end(&end);
        repeat(&end, state);
        message(&end, false, mpitest_random(state));
        close_end(&end);
        MPI_OK(MPI_Type_free(&end.type));
        free(where);
    }
}

/* ompi#13708: one pointer query per request. */
static void ompi_13708(uint64_t *state)
{
    static const gpu_kind_t places[] = {GPU_HOST, GPU_DEVICE};
    size_t i;
    int n;

    for (i = 0; i < 2; ++i) {
        end_t end = {.type = mpitest_type(MPITEST_COARSE, 40000, 0), .count = 1, .kind = places[i]};
        pvars_t before, all;

        open_end(&end);
        message(&end, true, mpitest_random(state));
        pvars_read(&before);
        for (n = 0; n < 10; ++n) {
            message(&end, true, mpitest_random(state));
        }
        cost(&before, &all);
        if (0 < counters) {
            CHECK(2 * 10 * (uint64_t) (mpitest.size / 2) >= all.value[PVARS_MEMORY_QUERIES]);
        }
        close_end(&end);
        MPI_OK(MPI_Type_free(&end.type));
    }
}

/* easyconfigs#14801: to the own rank, contiguous, between GPU and system memory, of every size. */
static void easyconfigs_14801(uint64_t *state)
{
    static const int sizes[] = {0, 1, 200, 4096, 70001, 1 << 20};
    static const gpu_kind_t places[3][2] = {
        {GPU_DEVICE, GPU_DEVICE}, {GPU_HOST, GPU_DEVICE}, {GPU_DEVICE, GPU_HOST}};
    size_t i, k;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (k = 0; k < 3; ++k) {
            end_t from = {.type = MPI_BYTE, .count = sizes[i], .kind = places[k][0]};
            end_t to = {.type = MPI_BYTE, .count = sizes[i], .kind = places[k][1]};
            uint64_t key = mpitest_random(state);

            open_end(&from);
            open_end(&to);
            mpitest_fill(from.buffer, key);
            MPI_OK(MPI_Sendrecv(from.buffer->addr, from.count, MPI_BYTE, 0, 1, to.buffer->addr,
                                to.count, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
            VERIFY(from.buffer, key, sizes[i]);
            VERIFY(to.buffer, key, sizes[i]);
            close_end(&from);
            close_end(&to);
        }
    }
}

/* The test of PETSc for a GPU-aware MPI (src/sys/objects/device/impls/cupm/cupmdevice.cxx). PETSc
 * ends the program if it fails. */
static void petsc_aware(uint64_t *state)
{
    const int values[2] = {1, 0};
    int got[2] = {0, 0};
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, sizeof(values));

    (void) state;
    gpu_write(memory, 0, values, sizeof(values));
    MPI_OK(
        MPI_Allreduce(memory->addr, (int *) memory->addr + 1, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    gpu_read(memory, 0, got, sizeof(got));
    CHECK_INT(got[0], 1);
    CHECK_INT(got[1], 1);
    gpu_memory_free(memory);
}

static const mpitest_part_t parts[] = {{"ucx_9514", ucx_9514},
                                       {"ucxx_749", ucxx_749},
                                       {"ompi_8720", ompi_8720},
                                       {"udales_377", udales_377},
                                       {"alltoall_8720", alltoall_8720},
                                       {"ompi_14126", ompi_14126},
                                       {"ompi_12202", ompi_12202},
                                       {"ompi_13708", ompi_13708},
                                       {"easyconfigs_14801", easyconfigs_14801},
                                       {"petsc_aware", petsc_aware},
                                       {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "gpu_reports", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    gpu_begin_all();
    counters = pvars_open();
    mpitest_run(parts);
    pvars_close();
    return mpitest_finish();
}
