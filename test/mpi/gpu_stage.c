/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The overhead for system memory in a process with a GPU, and the cost of staging GPU memory for
 * the base PML: the number of queries to the CUDA driver, and the work that is not repeated for the
 * next message.
 *
 * --mode aware: pml_umrddt_base_gpu declares that the base PML supports GPU memory. It does not, so
 * the test gives it none. It checks that umrddt does not pass it buffers that an envelope may
 * match.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TIMES 20
#define FLAT  4096

static bool have, aware;

/* TIMES contiguous messages from an even rank to the next one, and what was counted. */
static void flat(MPI_Comm comm, void *buffer, pvars_t *seen)
{
    int peer = mpitest.rank ^ 1, i;
    pvars_t before, after;

    pvars_read(&before);
    for (i = 0; i < TIMES; ++i) {
        if (0 == mpitest.rank % 2) {
            memset(buffer, i + 1, FLAT);
            MPI_OK(MPI_Send(buffer, FLAT, MPI_BYTE, peer, 1, comm));
        } else {
            memset(buffer, 0, FLAT);
            MPI_OK(MPI_Recv(buffer, FLAT, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE));
            CHECK_INT(((unsigned char *) buffer)[0], i + 1);
            CHECK_INT(((unsigned char *) buffer)[FLAT - 1], i + 1);
        }
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, seen);
}

/*
 * Driver queries for TIMES messages of system memory that is neither heap nor stack: one, or one
 * for each request if the result is not cached. None if the base PML supports GPU memory.
 */
static int expected_queries(void)
{
    return aware ? 0 : 0 != pvars_parameter("pml_umrddt_system_memory_cache", 0) ? 1 : TIMES;
}

/* No driver call asks about a pointer before CUDA is initialized. A library may have done that in
 * MPI_Init (UCX with CUDA does). */
static void before_cuda(void)
{
    static unsigned char data[FLAT]; /* neither heap nor stack */
    const int expected = gpu_is_initialized() ? expected_queries() : 0;
    pvars_t seen;

    flat(MPI_COMM_WORLD, data, &seen);
    if (have) {
        /* (An answer from MPI_Init about the same page may be remembered.) */
        CHECK(seen.value[PVARS_GPU_QUERIES] <= (uint64_t) expected);
    }
}

/* Memory of the CPU, once CUDA is in use. */
static void cpus(uint64_t *state)
{
    unsigned char *heap = malloc(FLAT), *fresh = malloc(4 * FLAT), stack[FLAT];
    unsigned char *mapped =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Comm comm;
    MPI_Info info;
    pvars_t seen;

    (void) state;
    CHECK(NULL != heap && NULL != fresh && MAP_FAILED != (void *) mapped);
    flat(MPI_COMM_WORLD, stack, &seen);
    if (have) {
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], 0);
        CHECK_INT(seen.value[PVARS_MEMORY_QUERIES], 0);
    }
    flat(MPI_COMM_WORLD, heap, &seen);
    if (have) {
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], 0);
    }
    flat(MPI_COMM_WORLD, mapped, &seen);
    if (have) {
        CHECK_INT(seen.value[PVARS_MEMORY_QUERIES], expected_queries());
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], expected_queries());
    }
    /* But for the user's word. */
    MPI_OK(MPI_Info_create(&info));
    MPI_OK(MPI_Info_set(info, "mpi_communication_pattern", "MPI_CPU_TO_CPU"));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    flat(comm, fresh + 2 * FLAT, &seen); /* the first message that needs the word comes later */
    MPI_OK(MPI_Comm_set_info(comm, info));
    MPI_OK(MPI_Info_free(&info));
    flat(comm, mapped + (1 << 19), &seen); /* a page that is not known */
    if (have && !UMRDDT_ENABLE_DEBUG) {
        CHECK_INT(seen.value[PVARS_MEMORY_QUERIES], 0);
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], 0);
    }
    MPI_OK(MPI_Comm_free(&comm));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(munmap(mapped, 1 << 20));
    free(fresh);
    free(heap);
}

/* TIMES messages between these buffers, and what was counted of the last ones. */
static void exchange(mpitest_kind_t layout, int bytes, gpu_kind_t from, gpu_kind_t to,
                     pvars_t *seen)
{
    MPI_Datatype type = mpitest_type(layout, bytes, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(map, 0 == mpitest.rank % 2 ? from : to);
    int peer = mpitest.rank ^ 1, i;
    pvars_t before, after;

    for (i = 0; i < 2 + TIMES; ++i, ++mpitest.step) {
        uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 0);

        if (2 == i) {
            pvars_read(&before);
        }
        if (0 == mpitest.rank % 2) {
            mpitest_fill(buffer, key);
            MPI_OK(MPI_Send(buffer->addr, 1, type, peer, 2, MPI_COMM_WORLD));
        } else {
            mpitest_clear(buffer);
            MPI_OK(MPI_Recv(buffer->addr, 1, type, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        VERIFY(buffer, key, bytes);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, seen);
    mpitest_buffer_free(buffer);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

/* Too small for umrddt, so the base PML carries it, from and to memory that it cannot access. */
static void staged(uint64_t *state)
{
    static const struct {
        mpitest_kind_t layout;
        int bytes;
    } messages[] = {{MPITEST_FINE, 800}, {MPITEST_CONTIGUOUS, 800}, {MPITEST_CONTIGUOUS, 8}};
    bool sends = 0 == mpitest.rank % 2;
    pvars_t seen;
    size_t i;

    (void) state;
    for (i = 0; i < sizeof(messages) / sizeof(messages[0]); ++i) {
        exchange(messages[i].layout, messages[i].bytes, GPU_DEVICE, GPU_DEVICE, &seen);
        if (!have) {
            continue;
        }
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS] + seen.value[PVARS_HANDLED_RECVS], 0);
        CHECK_INT(seen.value[PVARS_STAGED_SENDS], sends ? TIMES : 0);
        CHECK_INT(seen.value[PVARS_STAGED_RECVS], sends ? 0 : TIMES);
        CHECK_INT(seen.value[PVARS_STAGED_BYTES], (uint64_t) messages[i].bytes * TIMES);
        CHECK_INT(seen.value[PVARS_MEMORY_QUERIES], TIMES);
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], TIMES);
        CHECK_INT(seen.value[PVARS_GPU_COPIES], TIMES);
        /* cached resources are not created again */
        CHECK_INT(seen.value[PVARS_LAYOUT_MISSES], 0);
        CHECK_INT(seen.value[PVARS_GPU_SHAPES_MADE], 0);
        CHECK_INT(seen.value[PVARS_GPU_PINNED_BUFFERS], 0);
    }
}

/* Envelopes for device memory, with a base PML that is assumed to support it. */
static void envelopes(uint64_t *state)
{
    pvars_t seen;

    (void) state;
    /* handled, and not by the base PML: in pieces, so the receive is one of umrddt */
    exchange(MPITEST_COARSE, 20000, GPU_DEVICE, GPU_DEVICE, &seen);
    if (have) {
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS] + seen.value[PVARS_HANDLED_RECVS], TIMES);
    }
    exchange(MPITEST_COARSE, 20000, GPU_DEVICE, GPU_HOST, &seen);
    exchange(MPITEST_COARSE, 20000, GPU_HOST, GPU_DEVICE, &seen);
    if (have) {
        CHECK_INT(seen.value[PVARS_STAGED_SENDS], 0);
        CHECK_INT(seen.value[PVARS_STAGED_RECVS], 0 == mpitest.rank % 2 ? 0 : TIMES);
    }
    /* smaller than an envelope */
    exchange(MPITEST_CONTIGUOUS, 64, GPU_HOST, GPU_DEVICE, &seen);
    exchange(MPITEST_FINE, 64, GPU_HOST, GPU_DEVICE, &seen);
}

static const mpitest_part_t unaware_parts[] = {{"cpus", cpus}, {"staged", staged}, {NULL, NULL}};
static const mpitest_part_t aware_parts[] = {
    {"cpus", cpus}, {"envelopes", envelopes}, {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "gpu_stage", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    have = PVARS_MAX == pvars_open();
    aware = 0 == strcmp(mpitest.mode, "aware");
    mpitest.mode = "";
    before_cuda();
    gpu_begin_all();
    mpitest_run(aware ? aware_parts : unaware_parts);
    pvars_close();
    return mpitest_finish();
}
