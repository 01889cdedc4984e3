/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages from GPU memory to another process of the node, which reads the memory itself: their
 * cost, by the performance variables, and the behaviour of messages for which this is impossible.
 * Rank 0 sends, rank 1 receives. --mode NAME runs one part:
 *
 * - graphs: the driver has a graph of repeated kernel work, unless disabled
 * - repeat: two kinds of memory, two layouts: from the second message on, each is an envelope,
 *   one copy, and a word of shared memory; without query, mapping, allocation or type walk
 * - again: memory that is freed and allocated again, at the same address, is not mistaken for the
 *   old memory
 * - burst: many messages at first contact: one sends a query for all of them
 * - many: more layouts and allocations than the caches hold
 * - truncated: the receive is smaller than the message
 * - freed: the communicator and the types are freed while the message is pending
 *
 * Not by default:
 *
 * - refused: the driver maps nothing: messages go by the base PML, with few queries
 * - third: it does not map the third allocation
 * - cpu: the receiver does not use CUDA: by the base PML, without queries
 * - forget: no caches: each message sends a query, and nothing stays mapped
 * - others: memory that cannot be opened, from pools, mapped, of the CPU: no query for it
 * - others_aware: the same where the base PML does not get managed memory, either
 * - beside: the HCA is offered, too, and faster to system memory: a receiver there uses it, and
 *   a receiver in GPU memory still reports the end through shared memory
 * - parted: the end of the last used communicator releases all mappings
 *
 * Every byte is checked, including those between the pieces.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
    ENVELOPE = 104,
    REPLY = 88
};

/* This rank's end of a message. */
typedef struct end_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
    int bytes;
} end_t;

static uint64_t key;
static bool done_flags;
static pvars_t last;

static bool is_sender(void)
{
    return 0 == mpitest.rank;
}

/* The end of this rank: 'from' at the sender, 'to' at the receiver. */
static end_t end_new(gpu_kind_t from, gpu_kind_t to, mpitest_kind_t send, mpitest_kind_t recv,
                     int bytes)
{
    end_t end = {.bytes = bytes};

    end.type = mpitest_type(is_sender() ? send : recv, bytes, mpitest.seed);
    end.map = mpitest_map(end.type, 1);
    end.buffer = mpitest_buffer_of(end.map, is_sender() ? from : to);
    return end;
}

static void end_free(end_t *end)
{
    mpitest_buffer_free(end->buffer);
    mpitest_map_free(end->map);
    MPI_OK(MPI_Type_free(&end->type));
}

static void transfer(end_t *end, int times)
{
    MPI_Status status;

    for (int i = 0; i < times; ++i) {
        ++key;
        if (is_sender()) {
            mpitest_fill(end->buffer, key);
            MPI_OK(MPI_Send(end->buffer->addr, 1, end->type, 1, 3, MPI_COMM_WORLD));
        } else {
            mpitest_clear(end->buffer);
            MPI_OK(MPI_Recv(end->buffer->addr, 1, end->type, 0, 3, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, 0, 3, end->bytes);
            VERIFY(end->buffer, key, end->bytes);
        }
    }
}

/* Counts here since the last call, with no pending message. */
static pvars_t since(void)
{
    pvars_t now, difference;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&now);
    pvars_subtract(&now, &last, &difference);
    last = now;
    if (mpitest.verbose) {
        printf("rank %d, step %ld:\n", mpitest.rank, mpitest.step);
        pvars_print("   ", &difference);
        fflush(stdout);
    }
    return difference;
}

/* All 'times' messages used this scheme; 'asks' of them sent a query. */
static void check_result(const pvars_t *seen, int times, int bytes, int asks)
{
    const uint64_t *value = seen->value;

    CHECK_INT(value[PVARS_FALLBACK_SENDS] + value[PVARS_FALLBACK_RECVS], 0);
    if (is_sender()) {
        CHECK_INT(value[PVARS_HANDLED_SENDS], times);
        CHECK_INT(value[PVARS_SENDS_IPC], times);
        CHECK(value[PVARS_IPC_EXPORTED] <= (uint64_t) asks);
    } else {
        CHECK_INT(value[PVARS_HANDLED_RECVS], times);
        CHECK_INT(value[PVARS_RECVS_IPC], times);
        CHECK_INT(value[PVARS_IPC_BYTES], (long long) times * bytes);
        CHECK_INT(value[PVARS_GPU_COPIES], times);
        CHECK_INT(value[PVARS_IPC_INFO_REQS], asks);
        /* a completion flag or a message reports the end of each */
        CHECK_INT(value[PVARS_CONTROL_MESSAGES] + value[PVARS_IPC_DONE_FLAGS], times + asks);
        CHECK_INT(value[PVARS_CONTROL_BYTES], value[PVARS_CONTROL_MESSAGES] * REPLY);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

/* The same message again and again. */
static void repeated(gpu_kind_t from, gpu_kind_t to, mpitest_kind_t send, mpitest_kind_t recv)
{
    end_t end = end_new(from, to, send, recv, 65536);
    int times = 6;
    pvars_t seen;

    (void) since();
    transfer(&end, 1);
    seen = since();
    CHECK(seen.value[PVARS_IPC_INFO_REQS] <= 1);
    check_result(&seen, 1, end.bytes, is_sender() ? 1 : (int) seen.value[PVARS_IPC_INFO_REQS]);

    transfer(&end, times);
    seen = since();
    check_result(&seen, times, end.bytes, 0);
    CHECK_INT(seen.value[PVARS_LAYOUT_MISSES], 0);
    CHECK_INT(seen.value[PVARS_IPC_OPENED], 0);
    CHECK_INT(seen.value[PVARS_IPC_EXPORTED], 0);
    CHECK_INT(seen.value[PVARS_GPU_SHAPES_MADE], 0);
    CHECK_INT(seen.value[PVARS_GPU_LISTS_UPLOADED], 0);
    if (is_sender()) {
        CHECK_INT(seen.value[PVARS_CONTROL_MESSAGES], times);
        CHECK_INT(seen.value[PVARS_CONTROL_BYTES], times * ENVELOPE);
        CHECK_INT(seen.value[PVARS_GPU_COPIES], 0);
    } else {
        CHECK_INT(seen.value[PVARS_IPC_DONE_FLAGS], done_flags ? times : 0);
    }
    if (!is_sender() && GPU_HOST != to) {
        /* what is pageable goes in pieces; all else is one operation */
        CHECK_INT(seen.value[PVARS_GPU_LAUNCHES] + seen.value[PVARS_GPU_DRIVER_COPIES], times);
    }
    end_free(&end);
    ++mpitest.step;
}

/* What a kernel does again and again, the driver has ready; unless there shall be no graphs. */
static void graphs(void)
{
    const bool wanted = 0 != pvars_parameter("pml_umrddt_gpu_graphs", 0);
    const int times = 16;
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_IRREGULAR, MPITEST_FINE, 65536);
    pvars_t seen, now;

    transfer(&end, times);
    (void) since();
    transfer(&end, times);
    seen = since();
    pvars_read(&now);
    if (!is_sender()) {
        CHECK_INT(seen.value[PVARS_GPU_LAUNCHES], times);
        CHECK_INT(seen.value[PVARS_GPU_GRAPH_LAUNCHES], wanted ? times : 0);
        CHECK((0 < now.value[PVARS_GPU_GRAPHS]) == wanted);
    }
    end_free(&end);
    ++mpitest.step;
}

/* By the receiver's memory in turns; tuning parameters decide which is faster (models/beside.txt).
 */
static void beside(void)
{
    const int times = 6;

    for (int i = 0; i < 6; ++i) {
        const bool to_gpu = 0 == i % 2;
        end_t end = end_new(GPU_DEVICE, to_gpu ? GPU_DEVICE : GPU_HOST, MPITEST_COARSE,
                            MPITEST_COARSE, 65536);
        pvars_t seen;
        const uint64_t *value = seen.value;

        transfer(&end, 2);
        (void) since();
        transfer(&end, times);
        seen = since();
        CHECK_INT(value[PVARS_FALLBACK_SENDS] + value[PVARS_FALLBACK_RECVS], 0);
        if (is_sender()) {
            CHECK_INT(value[PVARS_SENDS_IPC], to_gpu ? times : 0);
            CHECK_INT(value[PVARS_SENDS_UMR] + value[PVARS_SENDS_DIRECT], to_gpu ? 0 : times);
            CHECK(!to_gpu || (uint64_t) times == value[PVARS_CONTROL_MESSAGES]);
        } else {
            CHECK_INT(value[PVARS_IPC_DONE_FLAGS], to_gpu ? times : 0);
            CHECK_INT(value[PVARS_CONTROL_MESSAGES], to_gpu ? 0 : times);
        }
        end_free(&end);
        ++mpitest.step;
    }
}

static void repeat(void)
{
    static const gpu_kind_t from[] = {GPU_DEVICE, GPU_INNER};
    static const gpu_kind_t to[] = {GPU_DEVICE, GPU_HOST,    GPU_PINNED, GPU_INNER,
                                    GPU_POOL,   GPU_MANAGED, GPU_VMM};
    static const mpitest_kind_t layouts[][2] = {
        {MPITEST_COARSE, MPITEST_COARSE},     {MPITEST_FINE, MPITEST_IRREGULAR},
        {MPITEST_IRREGULAR, MPITEST_FINE},    {MPITEST_NESTED, MPITEST_CONTIGUOUS},
        {MPITEST_DESCENDING, MPITEST_COARSE}, {MPITEST_NEGATIVE, MPITEST_NESTED},
    };

    for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); ++f) {
        for (size_t t = 0; t < sizeof(to) / sizeof(to[0]); ++t) {
            if (!gpu_kind_available(to[t])) {
                continue;
            }
            for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); ++l) {
                repeated(from[f], to[t], layouts[l][0], layouts[l][1]);
            }
            mpitest_alive();
        }
    }
}

/* Memory is freed, and comes back at the same address. */
static void again(void)
{
    uint64_t opened = 0, rounds = 0, same = 0;
    void *was = NULL;

    for (int i = 0; i < 12; ++i) {
        end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 40000);
        pvars_t seen;

        (void) since();
        transfer(&end, 2);
        seen = since();
        CHECK(seen.value[PVARS_IPC_INFO_REQS] <= 1);
        check_result(&seen, 2, end.bytes, is_sender() ? 1 : (int) seen.value[PVARS_IPC_INFO_REQS]);
        opened += seen.value[PVARS_IPC_OPENED];
        same += was == end.buffer->addr ? 1 : 0;
        was = end.buffer->addr;
        ++rounds;
        end_free(&end);
        ++mpitest.step;
    }
    if (is_sender()) {
        CHECK(0 < same); /* else this proves nothing */
    } else {
        CHECK_INT(opened, rounds);
    }
}

/* Many messages of the same memory, or of two, before anything is known. */
static void burst(void)
{
    enum {
        COUNT = 24
    };
    end_t ends[2], into[COUNT];
    MPI_Request requests[COUNT];
    pvars_t seen;

    for (int i = 0; i < 2; ++i) {
        ends[i] = end_new(GPU_DEVICE, GPU_HOST, MPITEST_IRREGULAR, MPITEST_COARSE, 30000);
        if (is_sender()) {
            mpitest_fill(ends[i].buffer, ++key);
        } else {
            ++key;
        }
    }
    for (int i = 0; i < COUNT && !is_sender(); ++i) {
        into[i] = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_COARSE, MPITEST_COARSE, 30000);
    }
    (void) since();
    for (int i = 0; i < COUNT; ++i) {
        if (is_sender()) {
            MPI_OK(MPI_Isend(ends[i % 2].buffer->addr, 1, ends[i % 2].type, 1, i, MPI_COMM_WORLD,
                             &requests[i]));
        } else {
            MPI_OK(MPI_Irecv(into[i].buffer->addr, 1, into[i].type, 0, i, MPI_COMM_WORLD,
                             &requests[i]));
        }
    }
    MPI_OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    seen = since();
    /* the layout once, with the first allocation, and the other allocation */
    check_result(&seen, COUNT, 30000, 2);
    for (int i = 0; i < COUNT && !is_sender(); ++i) {
        VERIFY(into[i].buffer, key - 1 + (uint64_t) (i % 2), 30000);
        end_free(&into[i]);
    }
    end_free(&ends[0]);
    end_free(&ends[1]);
    ++mpitest.step;
}

/* More than is remembered. */
static void many(void)
{
    enum {
        COUNT = 40
    };
    long layouts = pvars_parameter("pml_umrddt_direct_layouts", -1);
    long imports = pvars_parameter("pml_umrddt_ipc_imports", -1);
    end_t ends[COUNT];
    pvars_t seen, now;

    CHECK(0 <= layouts && COUNT > layouts && 0 <= imports);
    for (int i = 0; i < COUNT; ++i) {
        ends[i] = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 8000 + 8 * i);
    }
    for (int round = 0; round < 2; ++round) {
        (void) since();
        for (int i = 0; i < COUNT; ++i) {
            transfer(&ends[i], 1);
        }
        seen = since();
        CHECK_INT(seen.value[PVARS_FALLBACK_SENDS] + seen.value[PVARS_FALLBACK_RECVS], 0);
        CHECK_INT(seen.value[PVARS_SENDS_IPC] + seen.value[PVARS_RECVS_IPC], COUNT);
        pvars_read(&now);
        CHECK(now.value[PVARS_IPC_OPEN] <= (uint64_t) imports);
    }
    for (int i = 0; i < COUNT; ++i) {
        end_free(&ends[i]);
    }
    ++mpitest.step;
}

/* The receive is too small. */
static void truncated(void)
{
    static const int rooms[] = {ENVELOPE, 5000, 12000, 29999};
    MPI_Status status;

    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); ++i) {
        int bytes = is_sender() ? 30000 : rooms[i], rc;
        end_t end = end_new(GPU_DEVICE, 0 == i % 2 ? GPU_DEVICE : GPU_HOST, MPITEST_FINE,
                            MPITEST_COARSE, bytes);

        ++key;
        if (is_sender()) {
            mpitest_fill(end.buffer, key);
            MPI_OK(MPI_Send(end.buffer->addr, 1, end.type, 1, 3, MPI_COMM_WORLD));
        } else {
            rc = MPI_Recv(end.buffer->addr, 1, end.type, 0, 3, MPI_COMM_WORLD, &status);
            CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
            VERIFY(end.buffer, key, bytes);
        }
        end_free(&end);
        /* and the next one is whole */
        end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 30000);
        transfer(&end, 1);
        end_free(&end);
        ++mpitest.step;
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* Only the request and the buffer are left to the user. */
static void freed(void)
{
    for (int i = 0; i < 6; ++i) {
        end_t end = end_new(GPU_DEVICE, 0 == i % 2 ? GPU_DEVICE : GPU_HOST, MPITEST_IRREGULAR,
                            MPITEST_NESTED, 30000 + 8 * i);
        MPI_Datatype type;
        MPI_Request request;
        MPI_Comm comm;

        MPI_OK(MPI_Type_dup(end.type, &type));
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        ++key;
        if (is_sender()) {
            mpitest_fill(end.buffer, key);
            MPI_OK(MPI_Isend(end.buffer->addr, 1, type, 1, 3, comm, &request));
        } else {
            MPI_OK(MPI_Irecv(end.buffer->addr, 1, type, 0, 3, comm, &request));
        }
        MPI_OK(MPI_Type_free(&type));
        MPI_OK(MPI_Comm_free(&comm));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (!is_sender()) {
            VERIFY(end.buffer, key, end.bytes);
        }
        end_free(&end);
        ++mpitest.step;
    }
}

/* The driver maps nothing. */
static void refused(void)
{
    uint64_t asks = 0;

    for (int i = 0; i < 20; ++i) {
        end_t end = end_new(GPU_DEVICE, 0 == i % 3 ? GPU_HOST : GPU_DEVICE, MPITEST_FINE,
                            MPITEST_COARSE, 20000);
        pvars_t seen;

        (void) since();
        transfer(&end, 3);
        seen = since();
        CHECK_INT(seen.value[PVARS_SENDS_IPC] + seen.value[PVARS_RECVS_IPC], 0);
        CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], is_sender() ? 3 : 0);
        CHECK_INT(seen.value[PVARS_FALLBACK_RECVS], is_sender() ? 0 : 3);
        CHECK_INT(seen.value[PVARS_FALLBACK_IPC], is_sender() ? 0 : 3);
        asks += seen.value[PVARS_IPC_INFO_REQS];
        end_free(&end);
        ++mpitest.step;
    }
    CHECK(is_sender() ? 0 == asks : 0 < asks && 10 > asks);
}

/* The driver maps all allocations but the third. */
static void third(void)
{
    for (int i = 0; i < 5; ++i) {
        end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 20000);
        int back = 2 == i ? 4 : 0;
        pvars_t seen;

        (void) since();
        transfer(&end, 4);
        seen = since();
        CHECK_INT(seen.value[PVARS_SENDS_IPC], is_sender() ? 4 - back : 0);
        CHECK_INT(seen.value[PVARS_RECVS_IPC], is_sender() ? 0 : 4 - back);
        CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], is_sender() ? back : 0);
        CHECK_INT(seen.value[PVARS_FALLBACK_IPC], is_sender() ? 0 : back);
        CHECK_INT(seen.value[PVARS_IPC_INFO_REQS], is_sender() ? 0 : 1);
        end_free(&end);
        ++mpitest.step;
    }
}

/* The receiver has no context. */
static void cpu(void)
{
    end_t end = end_new(GPU_DEVICE, GPU_HOST, MPITEST_FINE, MPITEST_COARSE, 20000);
    pvars_t seen;

    (void) since();
    transfer(&end, 5);
    seen = since();
    CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], is_sender() ? 5 : 0);
    CHECK_INT(seen.value[PVARS_FALLBACK_IPC], is_sender() ? 0 : 5);
    CHECK_INT(seen.value[PVARS_IPC_INFO_REQS], 0);
    end_free(&end);
}

/* Memory that CUDA IPC does not support is known without a query: staged, or passed through. */
static void others_of(bool managed_staged)
{
    static const gpu_kind_t from[] = {GPU_POOL, GPU_VMM, GPU_MANAGED, GPU_PINNED, GPU_REGISTERED};

    for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); ++f) {
        end_t end;
        bool staged =
            GPU_POOL == from[f] || GPU_VMM == from[f] || (managed_staged && GPU_MANAGED == from[f]);
        pvars_t seen;

        if (!gpu_kind_available(from[f])) {
            continue;
        }
        end = end_new(from[f], GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 20000);
        (void) since();
        transfer(&end, 4);
        seen = since();
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS] + seen.value[PVARS_HANDLED_RECVS], 0);
        CHECK_INT(seen.value[PVARS_FALLBACK_SENDS] + seen.value[PVARS_FALLBACK_RECVS], 0);
        CHECK_INT(seen.value[PVARS_IPC_INFO_REQS] + seen.value[PVARS_IPC_EXPORTED], 0);
        CHECK_INT(seen.value[PVARS_STAGED_SENDS], is_sender() && staged ? 4 : 0);
        CHECK_INT(seen.value[PVARS_STAGED_RECVS], is_sender() ? 0 : 4);
        end_free(&end);
        ++mpitest.step;
    }
}

static void others(void)
{
    others_of(false);
}

/* An Open MPI with CUDA copies managed memory like device memory. pml/ucx is given neither unless
 * UCX has its module for CUDA. */
static void others_aware(void)
{
    others_of(NULL == dlopen("libuct_cuda.so.0", RTLD_LAZY | RTLD_NOLOAD));
}

/* One message on a communicator, and what is mapped here afterwards. */
static uint64_t mapped_by(end_t *end, MPI_Comm comm)
{
    pvars_t now;

    ++key;
    if (is_sender()) {
        mpitest_fill(end->buffer, key);
        MPI_OK(MPI_Send(end->buffer->addr, 1, end->type, 1, 3, comm));
    } else {
        mpitest_clear(end->buffer);
        MPI_OK(MPI_Recv(end->buffer->addr, 1, end->type, 0, 3, comm, MPI_STATUS_IGNORE));
        VERIFY(end->buffer, key, end->bytes);
    }
    pvars_read(&now);
    return now.value[PVARS_IPC_OPEN];
}

/* Nothing has been sent on MPI_COMM_WORLD that umrddt looks at: two other communicators meet. */
static void parted(void)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_FINE, MPITEST_COARSE, 20000);
    uint64_t open = is_sender() ? 0 : 1;
    pvars_t now;

    for (int i = 0; i < 3; ++i) {
        MPI_Comm first, second;

        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &first));
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &second));
        CHECK_INT(mapped_by(&end, first), open);
        CHECK_INT(mapped_by(&end, second), open);
        MPI_OK(MPI_Comm_disconnect(&first));
        pvars_read(&now);
        CHECK_INT(now.value[PVARS_IPC_OPEN], open);
        CHECK_INT(mapped_by(&end, second), open);
        MPI_OK(0 == i % 2 ? MPI_Comm_disconnect(&second) : MPI_Comm_free(&second));
        pvars_read(&now);
        CHECK_INT(now.value[PVARS_IPC_OPEN], 0);
        ++mpitest.step;
    }
    end_free(&end);
}

/* pml_umrddt_direct_layouts and pml_umrddt_ipc_imports are 0. */
static void forget(void)
{
    end_t end = end_new(GPU_DEVICE, GPU_DEVICE, MPITEST_IRREGULAR, MPITEST_COARSE, 500000);
    pvars_t seen, now;

    (void) since();
    transfer(&end, 5);
    seen = since();
    check_result(&seen, 5, end.bytes, 5);
    pvars_read(&now);
    CHECK_INT(now.value[PVARS_IPC_OPEN], 0);
    CHECK_INT(now.value[PVARS_IPC_LAYOUT_BYTES], 0);
    end_free(&end);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool named; /* only if named */
} parts[] = {
    {"graphs", graphs, false}, {"repeat", repeat, false},  {"again", again, false},
    {"burst", burst, false},   {"many", many, false},      {"truncated", truncated, false},
    {"freed", freed, false},   {"refused", refused, true}, {"third", third, true},
    {"cpu", cpu, true},        {"forget", forget, true},   {"parted", parted, true},
    {"others", others, true},  {"beside", beside, true},   {"others_aware", others_aware, true},
};

int main(int argc, char **argv)
{
    bool without;

    mpitest_init(&argc, &argv, "gpu_ipc", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    without = 0 == strcmp(mpitest.mode, "cpu");
    if (!without) {
        gpu_begin_all();
    } else if (is_sender()) {
        CHECK(NULL == gpu_begin(0));
    }
    if (PVARS_MAX != pvars_open()) {
        mpitest_fail(__FILE__, __LINE__, "not all performance variables of pml/umrddt exist");
    }
    key = mpitest_mix(mpitest.seed, 1, 2);
    done_flags = 0 != pvars_parameter("pml_umrddt_ipc_done_flags", 0);
    pvars_read(&last);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        if ('\0' == *mpitest.mode ? !parts[i].named : 0 == strcmp(mpitest.mode, parts[i].name)) {
            parts[i].run();
            mpitest_alive();
        }
    }
    pvars_close();
    return mpitest_finish();
}
