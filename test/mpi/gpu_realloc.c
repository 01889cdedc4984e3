/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * GPU memory that is freed and allocated again between messages: at the same address, with another
 * size and of another kind, at the sender, at the receiver, at both. Caches by address (IPC
 * handles, registrations) must not outlive the memory: ompi#11125, ucx#4269. Also more allocations
 * than caches hold, each used once: ompi#9051, #12849.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES      65536
#define REMEMBERED 64

static gpu_kind_t kinds[GPU_KINDS];
static int kind_count;

/* Addresses seen, and how often one came again. */
static const void *seen[REMEMBERED];
static unsigned seen_count;
static long came_again;

static void note(const mpitest_buffer_t *buffer)
{
    unsigned i;

    for (i = 0; i < REMEMBERED; ++i) {
        if (buffer->place->addr == seen[i]) {
            ++came_again;
            return;
        }
    }
    seen[seen_count++ % REMEMBERED] = buffer->place->addr;
}

/* The message of one step: from the even rank to the odd one, in the memory given. */
static void message(mpitest_buffer_t *buffer, MPI_Datatype type, uint64_t key)
{
    int peer = mpitest.rank ^ 1;

    if (0 == mpitest.rank % 2) {
        mpitest_fill(buffer, key);
        MPI_OK(MPI_Send(buffer->addr, 1, type, peer, 1, MPI_COMM_WORLD));
    } else {
        mpitest_clear(buffer);
        MPI_OK(MPI_Recv(buffer->addr, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    VERIFY(buffer, key, BYTES);
}

/* Who gets new memory in this step. */
static bool renews(long op)
{
    int who = (int) (op % 3);

    return 2 == who || mpitest.rank % 2 == who;
}

/*
 * One layout, repeatedly. Memory of one kind is used for two messages, then freed and requested
 * again. A driver may return the same address.
 */
static void same_place(uint64_t *state)
{
    mpitest_kind_t layouts[2] = {MPITEST_FINE, MPITEST_COARSE};
    MPI_Datatype type = mpitest_type(layouts[mpitest.rank % 2], BYTES, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    int k;
    long op;

    for (k = 0; k < kind_count; ++k) {
        mpitest_buffer_t *buffer = mpitest_buffer_of(map, kinds[k]);

        for (op = 0; op < 12; ++op, ++mpitest.step) {
            uint64_t key = mpitest_random(state);

            if (renews(op)) {
                mpitest_buffer_free(buffer);
                buffer = mpitest_buffer_of(map, kinds[k]);
                note(buffer);
            }
            message(buffer, type, key);
            message(buffer, type, key + 7);
        }
        mpitest_buffer_free(buffer);
    }
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

/* Memory of another size, of another kind and with another layout in it each time. */
static void other_memory(uint64_t *state)
{
    long op;

    for (op = 0; op < 40; ++op, ++mpitest.step) {
        mpitest_kind_t layouts[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        gpu_kind_t there[2] = {kinds[mpitest_between(state, 0, kind_count - 1)],
                               kinds[mpitest_between(state, 0, kind_count - 1)]};
        uint64_t key = mpitest_random(state);
        MPI_Datatype type = mpitest_type(layouts[mpitest.rank % 2], BYTES, key);
        mpitest_map_t *map = mpitest_map(type, 1);
        mpitest_buffer_t *buffer = mpitest_buffer_of(map, there[mpitest.rank % 2]);

        note(buffer);
        message(buffer, type, key);
        message(buffer, type, key + 1);
        mpitest_buffer_free(buffer);
        mpitest_map_free(map);
        MPI_OK(MPI_Type_free(&type));
    }
}

/* Freed under the feet of a persistent request that is not active; the address comes again. */
static void persistent(uint64_t *state)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, BYTES, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(map, GPU_DEVICE);
    bool sending = 0 == mpitest.rank % 2;
    int peer = mpitest.rank ^ 1;
    void *addr = buffer->addr;
    MPI_Request request;
    long op;

    MPI_OK((sending ? MPI_Send_init(addr, 1, type, peer, 2, MPI_COMM_WORLD, &request)
                    : MPI_Recv_init(addr, 1, type, peer, 2, MPI_COMM_WORLD, &request)));
    for (op = 0; op < 12; ++op, ++mpitest.step) {
        uint64_t key = mpitest_random(state);

        if (sending) {
            mpitest_fill(buffer, key);
        } else {
            mpitest_clear(buffer);
        }
        MPI_OK(MPI_Start(&request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        VERIFY(buffer, key, BYTES);
        if (renews(op)) {
            mpitest_buffer_free(buffer);
            buffer = mpitest_buffer_of(map, GPU_DEVICE);
            if (buffer->addr != addr) {
                /* Another place: another request. */
                MPI_OK(MPI_Request_free(&request));
                addr = buffer->addr;
                MPI_OK((sending ? MPI_Send_init(addr, 1, type, peer, 2, MPI_COMM_WORLD, &request)
                                : MPI_Recv_init(addr, 1, type, peer, 2, MPI_COMM_WORLD, &request)));
            }
        }
    }
    MPI_OK(MPI_Request_free(&request));
    mpitest_buffer_free(buffer);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

/* Many allocations at once, each used for one message and then once more. */
#define MANY 96
static void many(uint64_t *state)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, BYTES, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    uint64_t key = mpitest_random(state);
    mpitest_buffer_t *buffers[MANY];
    long bound = pvars_parameter("pml_umrddt_ipc_imports", -1);
    pvars_t now;
    int i, round;

    for (i = 0; i < MANY; ++i) {
        buffers[i] = mpitest_buffer_of(map, GPU_DEVICE);
    }
    for (round = 0; round < 2; ++round) {
        for (i = 0; i < MANY; ++i, ++mpitest.step) {
            message(buffers[i], type, key + (uint64_t) (i + MANY * round));
            pvars_read(&now);
            /* One is in use at a time. */
            CHECK(0 > bound || now.value[PVARS_IPC_OPEN] <= (uint64_t) bound + 1);
        }
    }
    for (i = 0; i < MANY; ++i) {
        mpitest_buffer_free(buffers[i]);
    }
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static uint64_t queries(void)
{
    pvars_t now;

    pvars_read(&now);
    return now.value[PVARS_GPU_QUERIES];
}

/* While a send is active, the driver is not queried about its allocation again. After its request
 * is freed it is: the application may learn the end of the message from another one, and free the
 * memory. */
static void freed(uint64_t *state)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, BYTES, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(map, GPU_DEVICE);
    const uint64_t key = mpitest_random(state);
    const int peer = mpitest.rank ^ 1;
    MPI_Request requests[3];
    int all_posted = 1;

    if (0 == mpitest.rank % 2) {
        mpitest_fill(buffer, key);
        for (int i = 0; i < 3; ++i) {
            const uint64_t before = queries();

            MPI_OK(MPI_Isend(buffer->addr, 1, type, peer, 3, MPI_COMM_WORLD, &requests[i]));
            CHECK_INT(queries() - before, 1 == i ? 0 : 1);
            if (1 == i) {
                MPI_OK(MPI_Request_free(&requests[0]));
                MPI_OK(MPI_Request_free(&requests[1]));
            }
        }
        MPI_OK(MPI_Send(&all_posted, 1, MPI_INT, peer, 4, MPI_COMM_WORLD));
        MPI_OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
    } else {
        MPI_OK(MPI_Recv(&all_posted, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 3; ++i) {
            mpitest_clear(buffer);
            MPI_OK(MPI_Recv(buffer->addr, 1, type, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            VERIFY(buffer, key, BYTES);
        }
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    mpitest_buffer_free(buffer);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static const mpitest_part_t parts[] = {{"same_place", same_place}, {"other_memory", other_memory},
                                       {"persistent", persistent}, {"many", many},
                                       {"freed", freed},           {NULL, NULL}};

int main(int argc, char **argv)
{
    const char *list = getenv("UMRDDT_TEST_MEMORY");
    long all = 0;

    mpitest_init(&argc, &argv, "gpu_realloc", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    gpu_begin_all();
    kind_count = gpu_kinds_of(NULL == list ? "device,inner,pool,managed" : list, kinds);
    CHECK(0 < kind_count);
    (void) pvars_open();
    mpitest_run(parts);
    pvars_close();
    MPI_OK(MPI_Allreduce(&came_again, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("addresses that came again: %ld\n", all);
    }
    /* Else this was no test. */
    CHECK(0 < all || (0 != strcmp(mpitest.mode, "") && !mpitest_has("same_place")));
    return mpitest_finish();
}
