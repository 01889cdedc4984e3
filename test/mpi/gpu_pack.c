/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Packed messages, in chunks, from rank 0 to rank 1 (pml_umrddt_scheme = pack-staged or pack-host),
 * or with any pml_umrddt_scheme that packs. Parts:
 *
 * - ways: between GPU memory and system memory, one end contiguous, or none: all are packed, and a
 *   repeated message creates nothing
 * - call: the call that sends packs nothing, and does not wait
 * - blocks: chunks that are smaller than a block
 * - overlap: some chunks of a message are in transfer while a GPU copies others (delay=)
 * - many: more messages than buffers, in both directions
 *
 * Not by default:
 *
 * - unpacked: a copy fails at the sender (rank 0): the message goes by the base PML
 * - unbegun: the sender (rank 0) has no engine for the first message: it goes by the base PML
 * - behind: small chunks, so that the sender completes before the receiver (whose GPU is slow)
 * - named: the info key of a communicator names the scheme
 * - broken: the sender's GPU fails for good: both ranks get errors, and nothing hangs
 * - lost: a copy fails twice at the receiver (rank 1), which gets an error
 *
 * Every byte is checked, including those between the pieces.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <string.h>

enum {
    TAG = 5,
    MEGABYTE = 1 << 20,
    TIMES = 5,
    REPEATED = 2
};

/* This rank's end of a message. */
typedef struct end_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
    int bytes;
} end_t;

static uint64_t key;
static MPI_Comm comm = MPI_COMM_WORLD;

static bool is_sender(void)
{
    return 0 == mpitest.rank;
}

static end_t end_of_type(gpu_kind_t kind, MPI_Datatype type, int bytes)
{
    end_t end = {.type = type, .bytes = bytes};

    end.map = mpitest_map(end.type, 1);
    end.buffer = mpitest_buffer_of(end.map, kind);
    return end;
}

/* The end of this rank: 'from' at the sender, 'to' at the receiver. */
static end_t end_new(gpu_kind_t from, gpu_kind_t to, mpitest_kind_t send, mpitest_kind_t recv,
                     int bytes)
{
    return end_of_type(is_sender() ? from : to,
                       mpitest_type(is_sender() ? send : recv, bytes, mpitest.seed), bytes);
}

static void end_free(end_t *end)
{
    mpitest_buffer_free(end->buffer);
    mpitest_map_free(end->map);
    MPI_OK(MPI_Type_free(&end->type));
}

static void transfer(end_t *end)
{
    MPI_Status status;

    ++key;
    ++mpitest.step;
    if (is_sender()) {
        mpitest_fill(end->buffer, key);
        MPI_OK(MPI_Send(end->buffer->addr, 1, end->type, 1, TAG, comm));
    } else {
        mpitest_clear(end->buffer);
        MPI_OK(MPI_Recv(end->buffer->addr, 1, end->type, 0, TAG, comm, &status));
        CHECK_STATUS(&status, 0, TAG, end->bytes);
        VERIFY(end->buffer, key, end->bytes);
    }
}

/* Counts here since 'before', with no pending message; updates 'before'. */
static pvars_t since(pvars_t *before)
{
    pvars_t now, difference;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&now);
    pvars_subtract(&now, before, &difference);
    *before = now;
    if (mpitest.verbose) {
        printf("rank %d, step %ld:\n", mpitest.rank, mpitest.step);
        pvars_print("   ", &difference);
        fflush(stdout);
    }
    return difference;
}

/* Sends that travelled packed. */
static long long sends_of(const pvars_t *seen)
{
    return (long long) (seen->value[PVARS_SENDS_PACK_GDR] + seen->value[PVARS_SENDS_PACK_STAGED]
                        + seen->value[PVARS_SENDS_PACK_HOST]);
}

/* All of 'times' messages used this scheme, in this rank's chunks. */
static void check_result(const pvars_t *seen, int times, int bytes)
{
    const uint64_t *value = seen->value;

    CHECK_INT(value[PVARS_FALLBACK_SENDS] + value[PVARS_FALLBACK_RECVS], 0);
    CHECK_INT(value[PVARS_STAGED_SENDS] + value[PVARS_STAGED_RECVS], 0);
    CHECK_INT(value[PVARS_PACK_BYTES], (long long) times * bytes);
    CHECK(value[PVARS_PACK_CHUNKS] >= (uint64_t) times);
    if (is_sender()) {
        CHECK_INT(sends_of(seen), times);
    } else {
        CHECK_INT(value[PVARS_RECVS_PACK], times);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static void ways(uint64_t *state)
{
    static const gpu_kind_t kinds[][2] = {
        {GPU_DEVICE, GPU_DEVICE}, {GPU_DEVICE, GPU_HOST}, {GPU_HOST, GPU_DEVICE}};
    static const mpitest_kind_t layouts[][2] = {{MPITEST_COARSE, MPITEST_FINE},
                                                {MPITEST_COARSE, MPITEST_CONTIGUOUS},
                                                {MPITEST_CONTIGUOUS, MPITEST_FINE},
                                                {MPITEST_CONTIGUOUS, MPITEST_CONTIGUOUS}};
    static const int sizes[] = {20000, MEGABYTE};
    size_t memory, layout, size;

    (void) state;
    for (memory = 0; memory < sizeof(kinds) / sizeof(kinds[0]); ++memory) {
        for (layout = 0; layout < sizeof(layouts) / sizeof(layouts[0]); ++layout) {
            for (size = 0; size < sizeof(sizes) / sizeof(sizes[0]); ++size) {
                end_t end = end_new(kinds[memory][0], kinds[memory][1], layouts[layout][0],
                                    layouts[layout][1], sizes[size]);
                pvars_t before, seen;
                int i;

                /* plain system memory in one piece is the base PML's to send */
                bool taken =
                    GPU_HOST != kinds[memory][0] || MPITEST_CONTIGUOUS != layouts[layout][0];

                transfer(&end);
                transfer(&end);
                MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
                pvars_read(&before);
                for (i = 0; i < REPEATED; ++i) {
                    transfer(&end);
                }
                seen = since(&before);
                if (taken) {
                    check_result(&seen, REPEATED, sizes[size]);
                }
                CHECK_INT(seen.value[PVARS_LAYOUT_MISSES], 0);
                CHECK_INT(seen.value[PVARS_GPU_SHAPES_MADE], 0);
                CHECK_INT(seen.value[PVARS_GPU_LISTS_UPLOADED], 0);
                CHECK_INT(seen.value[PVARS_GPU_PINNED_BUFFERS], 0);
                CHECK_INT(seen.value[PVARS_GPU_SCRATCH_BUFFERS], 0);
                CHECK_INT(seen.value[PVARS_PACK_REGISTERED], 0);
                CHECK_INT(seen.value[PVARS_REG_MISSES] + seen.value[PVARS_GPU_REG_MISSES], 0);
                end_free(&end);
            }
        }
    }
}

static void call(uint64_t *state)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, MEGABYTE);
    MPI_Request request;
    pvars_t before, after, seen;

    (void) state;
    transfer(&end);
    ++key;
    if (is_sender()) {
        mpitest_fill(end.buffer, key);
        pvars_read(&before);
        MPI_OK(MPI_Isend(end.buffer->addr, 1, end.type, 1, TAG, MPI_COMM_WORLD, &request));
        pvars_read(&after);
        pvars_subtract(&after, &before, &seen);
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS], 1);
        CHECK_INT(seen.value[PVARS_GPU_COPIES], 0);
        CHECK_INT(seen.value[PVARS_STAGED_SENDS], 0);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD)); /* only now is it received */
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        mpitest_clear(end.buffer);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_OK(MPI_Recv(end.buffer->addr, 1, end.type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        VERIFY(end.buffer, key, end.bytes);
    }
    end_free(&end);
}

static void blocks(uint64_t *state)
{
    enum {
        BLOCK = 300001,
        COUNT = 5
    };
    MPI_Datatype type;
    pvars_t before, seen;
    end_t end;

    (void) state;
    MPI_OK(MPI_Type_vector(COUNT, BLOCK, BLOCK + 7 + 4 * mpitest.rank, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    end = end_of_type(GPU_DEVICE, type, BLOCK * COUNT);
    pvars_read(&before);
    transfer(&end);
    transfer(&end);
    seen = since(&before);
    check_result(&seen, 2, BLOCK * COUNT);
    CHECK(seen.value[PVARS_PACK_CHUNKS] > (uint64_t) (2 * COUNT));
    end_free(&end);
}

/* Kernels of the software GPU run on a thread: whether one runs beside a write is the scheduler's
 * choice, on a machine with much else to do not in each message. */
static void overlap(uint64_t *state)
{
    enum {
        ROUNDS = 40
    };
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, 4 * MEGABYTE);
    pvars_t before, seen, all;
    int i, round, overlapped = 0;

    (void) state;
    for (round = 0; round < ROUNDS && !overlapped; ++round) {
        pvars_read(&before);
        for (i = 0; i < TIMES; ++i) {
            transfer(&end);
        }
        seen = since(&before);
        check_result(&seen, TIMES, 4 * MEGABYTE);
        overlapped = 0 < seen.value[PVARS_PACK_OVERLAPS];
        MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &overlapped, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    }
    CHECK(overlapped);
    pvars_read(&all);
    CHECK(2 <= all.value[PVARS_PACK_MOST]);
    end_free(&end);
}

static void many(uint64_t *state)
{
    enum {
        MESSAGES = 24
    };
    MPI_Request requests[2 * MESSAGES];
    end_t in[MESSAGES], out[MESSAGES];
    pvars_t before, seen;
    int peer = mpitest.rank ^ 1, i;

    (void) state;
    pvars_read(&before);
    for (i = 0; i < MESSAGES; ++i) {
        out[i] =
            end_of_type(GPU_DEVICE, mpitest_type(MPITEST_COARSE, MEGABYTE, mpitest.seed), MEGABYTE);
        in[i] =
            end_of_type(GPU_DEVICE, mpitest_type(MPITEST_FINE, MEGABYTE, mpitest.seed), MEGABYTE);
        mpitest_fill(out[i].buffer, key + (uint64_t) i);
        mpitest_clear(in[i].buffer);
        MPI_OK(MPI_Irecv(in[i].buffer->addr, 1, in[i].type, peer, TAG, MPI_COMM_WORLD,
                         &requests[2 * i]));
        MPI_OK(MPI_Isend(out[i].buffer->addr, 1, out[i].type, peer, TAG, MPI_COMM_WORLD,
                         &requests[2 * i + 1]));
    }
    MPI_OK(MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE));
    seen = since(&before);
    CHECK_INT(seen.value[PVARS_FALLBACK_SENDS] + seen.value[PVARS_FALLBACK_RECVS], 0);
    CHECK_INT(seen.value[PVARS_RECVS_PACK], MESSAGES);
    for (i = 0; i < MESSAGES; ++i) {
        VERIFY(in[i].buffer, key + (uint64_t) i, MEGABYTE);
        end_free(&in[i]);
        end_free(&out[i]);
    }
    key += MESSAGES;
}

/* This many messages, one of which goes by the base PML; @p begun  it starts packed, as the sender
 * sees it */
static void one_by_base(int messages, int begun)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, MEGABYTE);
    pvars_t before, seen;
    int i;

    pvars_read(&before);
    for (i = 0; i < messages; ++i) {
        transfer(&end);
    }
    seen = since(&before);
    CHECK_INT(seen.value[PVARS_FALLBACK_SENDS] + seen.value[PVARS_FALLBACK_RECVS], 1);
    CHECK_INT(sends_of(&seen), is_sender() ? begun : 0);
    CHECK_INT(seen.value[PVARS_RECVS_PACK], is_sender() ? 0 : messages - 1);
    end_free(&end);
}

static void unpacked(uint64_t *state)
{
    (void) state;
    one_by_base(2 * TIMES, 2 * TIMES);
}

/* The sender is through with a message, and begins the next, long before the receiver is. */
static void behind(uint64_t *state)
{
    enum {
        MESSAGES = 6,
        BYTES = 30000
    };
    MPI_Request requests[MESSAGES];
    end_t ends[MESSAGES];
    int i;

    (void) state;
    for (i = 0; i < MESSAGES; ++i) {
        ends[i] = end_of_type(GPU_DEVICE, mpitest_type(MPITEST_COARSE, BYTES, mpitest.seed), BYTES);
        if (is_sender()) {
            mpitest_fill(ends[i].buffer, key + (uint64_t) i);
        } else {
            mpitest_clear(ends[i].buffer);
            MPI_OK(MPI_Irecv(ends[i].buffer->addr, 1, ends[i].type, 0, TAG, MPI_COMM_WORLD,
                             &requests[i]));
        }
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    for (i = 0; is_sender() && i < MESSAGES; ++i) {
        MPI_OK(MPI_Send(ends[i].buffer->addr, 1, ends[i].type, 1, TAG, MPI_COMM_WORLD));
    }
    if (!is_sender()) {
        MPI_OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
    }
    for (i = 0; i < MESSAGES; ++i) {
        VERIFY(ends[i].buffer, key + (uint64_t) i, BYTES);
        end_free(&ends[i]);
    }
    key += MESSAGES;
}

static void unbegun(uint64_t *state)
{
    (void) state;
    one_by_base(TIMES, TIMES - 1);
}

static void lost(uint64_t *state)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, MEGABYTE);
    int errors = 0, i;

    (void) state;
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (i = 0; i < 2 * TIMES; ++i) {
        ++key;
        ++mpitest.step;
        if (is_sender()) {
            mpitest_fill(end.buffer, key);
            MPI_OK(MPI_Send(end.buffer->addr, 1, end.type, 1, TAG, MPI_COMM_WORLD));
        } else {
            int rc;

            mpitest_clear(end.buffer);
            rc = MPI_Recv(end.buffer->addr, 1, end.type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (MPI_SUCCESS == rc) {
                VERIFY(end.buffer, key, end.bytes);
            } else {
                CHECK_INT(mpitest_error_class(rc), MPI_ERR_OTHER);
                ++errors;
            }
        }
    }
    CHECK_INT(errors, is_sender() ? 0 : 1);
    end_free(&end);
}

static void broken(uint64_t *state)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, MEGABYTE);
    int rc = MPI_SUCCESS, i;

    (void) state;
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (i = 0; MPI_SUCCESS == rc && i < 4 * TIMES; ++i) {
        ++key;
        ++mpitest.step;
        if (is_sender()) {
            mpitest_fill(end.buffer, key);
            rc = MPI_Send(end.buffer->addr, 1, end.type, 1, TAG, MPI_COMM_WORLD);
        } else {
            mpitest_clear(end.buffer);
            rc = MPI_Recv(end.buffer->addr, 1, end.type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (MPI_SUCCESS == rc) {
                VERIFY(end.buffer, key, end.bytes);
            }
        }
    }
    CHECK(1 < i);
    CHECK_INT(mpitest_error_class(rc), MPI_ERR_OTHER);
    /* the buffer cannot be freed any more */
}

static void named(uint64_t *state)
{
    static const struct {
        const char *name;
        pvars_index_t counter;
    } schemes[] = {{"pack-staged", PVARS_SENDS_PACK_STAGED},
                   {"pack-host", PVARS_SENDS_PACK_HOST},
                   {"ipc", PVARS_SENDS_IPC},
                   {"host", PVARS_STAGED_SENDS},
                   {"auto", PVARS_SENDS_IPC}};
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_FINE, MEGABYTE);
    size_t i;

    (void) state;
    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); ++i) {
        pvars_t before, seen;
        MPI_Info info;
        int turn;

        MPI_OK(MPI_Info_create(&info));
        MPI_OK(MPI_Info_set(info, "pml_umrddt_scheme", schemes[i].name));
        MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
        MPI_OK(MPI_Info_free(&info));
        pvars_read(&before);
        for (turn = 0; turn < TIMES; ++turn) {
            transfer(&end);
        }
        seen = since(&before);
        CHECK_INT(seen.value[schemes[i].counter], is_sender() ? TIMES : 0);
        MPI_OK(MPI_Comm_free(&comm));
    }
    comm = MPI_COMM_WORLD;
    end_free(&end);
}

static const mpitest_part_t parts[] = {{"ways", ways},       {"call", call}, {"blocks", blocks},
                                       {"overlap", overlap}, {"many", many}, {NULL, NULL}};
static const mpitest_part_t failures[] = {
    {"unpacked", unpacked}, {"unbegun", unbegun}, {"lost", lost}, {"broken", broken},
    {"named", named},       {"behind", behind},   {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "gpu_pack", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("without umrddt there is nothing to count");
    }
    gpu_begin_all();
    if (0 == strcmp(mpitest.mode, "behind") || 0 == strcmp(mpitest.mode, "unbegun")
        || 0 == strcmp(mpitest.mode, "unpacked") || 0 == strcmp(mpitest.mode, "lost")
        || 0 == strcmp(mpitest.mode, "named") || 0 == strcmp(mpitest.mode, "broken")) {
        mpitest_run(failures);
    } else {
        mpitest_run(parts);
    }
    pvars_close();
    return mpitest_finish();
}
