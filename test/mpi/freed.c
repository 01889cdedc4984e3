/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A send whose request was freed, and whose buffer is unmapped when the receiver has answered. The
 * answer implies that the send is complete (MPI 4.1, 3.7.3, MPI_Request_free). The memory is mapped
 * and unmapped, so registration caches notice it, and later memory at the same address is
 * different.
 *
 * An HCA may report late to the sender that its write is done: the rows set late=MS.
 */

#include "layouts.h"
#include "mpitest.h"

#include <string.h>
#include <sys/mman.h>

#define BYTES 65536

static int peer;

/* The peer has received all. */
static void answer(bool give)
{
    if (give) {
        MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD));
    } else {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

/* A send by each send call that has a request, freed immediately. */
static void send_freed(int way, const void *buffer, MPI_Datatype type)
{
    MPI_Request request;

    switch (way % 4) {
    case 0:
        MPI_OK(MPI_Isend(buffer, 1, type, peer, 1, MPI_COMM_WORLD, &request));
        break;
    case 1:
        MPI_OK(MPI_Issend(buffer, 1, type, peer, 1, MPI_COMM_WORLD, &request));
        break;
    case 2:
        MPI_OK(MPI_Send_init(buffer, 1, type, peer, 1, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Start(&request));
        break;
    default:
        MPI_OK(MPI_Ssend_init(buffer, 1, type, peer, 1, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Start(&request));
        break;
    }
    MPI_OK(MPI_Request_free(&request));
}

/* Separate pages, at the address of the last unmapped ones, as the kernel places them. */
static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(MAP_FAILED != memory);
    return memory;
}

/* Unmapped when the answer is here. Then again, with the same layout at the same address. */
static void one_by_one(uint64_t *state)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, BYTES, 1);
    uint64_t key = mpitest_random(state);
    mpitest_map_t *places = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(places, GPU_HOST);
    size_t bytes = (size_t) places->span;
    int i;

    for (i = 0; i < 8; ++i, key += BYTES) {
        if (0 == mpitest.rank % 2) {
            void *memory = map(bytes);

            mpitest_fill(buffer, key);
            memcpy(memory, buffer->addr, bytes);
            send_freed(i, memory, type);
            answer(false);
            CHECK_INT(munmap(memory, bytes), 0);
        } else {
            mpitest_clear(buffer);
            MPI_OK(MPI_Recv(buffer->addr, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            answer(true);
            VERIFY(buffer, key, BYTES);
        }
    }
    mpitest_buffer_free(buffer);
    mpitest_map_free(places);
    MPI_OK(MPI_Type_free(&type));
}

/* Several pending sends from one mapping, whose first half is unmapped before the second. */
static void halves(uint64_t *state)
{
    enum {
        COUNT = 6
    };
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, BYTES, 1);
    uint64_t key = mpitest_random(state);
    mpitest_map_t *places = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(places, GPU_HOST);
    size_t bytes = ((size_t) places->span + 4095) / 4096 * 4096;
    char *memory = NULL;
    int i;

    if (0 == mpitest.rank % 2) {
        memory = map(COUNT * bytes);
        for (i = 0; i < COUNT; ++i) {
            mpitest_fill(buffer, key + (uint64_t) i);
            memcpy(memory + (size_t) i * bytes, buffer->addr, (size_t) places->span);
            send_freed(i, memory + (size_t) i * bytes, type);
        }
        for (i = 0; i < COUNT; ++i) {
            answer(false);
            CHECK_INT(munmap(memory + (size_t) i * bytes, bytes), 0);
        }
    } else {
        for (i = 0; i < COUNT; ++i) {
            mpitest_clear(buffer);
            MPI_OK(MPI_Recv(buffer->addr, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            answer(true);
            VERIFY(buffer, key + (uint64_t) i, BYTES);
        }
    }
    mpitest_buffer_free(buffer);
    mpitest_map_free(places);
    MPI_OK(MPI_Type_free(&type));
}

static const mpitest_part_t parts[] = {
    {"one_by_one", one_by_one}, {"halves", halves}, {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "freed", 2, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs pairs of ranks");
    }
    peer = mpitest.rank ^ 1;
    mpitest_run(parts);
    return mpitest_finish();
}
