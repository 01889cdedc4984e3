/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages from system memory (rank 0) to GPU memory or system memory (rank 1), without an HCA; or
 * (UMRDDT_RECEIVE_HINT=HCA) with one, and with tuning parameters by which it is faster than the
 * base PML only to GPU memory. The sender does not know the receive memory, and learns it by probe
 * messages. Or (UMRDDT_RECEIVE_HINT=left) from GPU memory, where CUDA IPC is faster to GPU memory,
 * and the base PML to system memory, which the receiver reports. Parts:
 *
 * - gpu: all messages are packed, or use the HCA
 * - host: the base PML carries them; probe messages become ever less frequent (and use the HCA, or
 *   the base PML)
 * - turns: both in turn, with one tag: few probe messages, no message is lost
 * - persistent: the same for a request that is started repeatedly
 * - others: the receive-memory hint of a tag does not apply to another one
 * - asserted: mpi_communication_pattern is MPI_CPU_TO_GPU: all are packed, without probe messages,
 *   also with pml_umrddt_memory = gpu; if the assertion is false, the base PML carries them
 *
 * Every byte is checked, including those between the pieces.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES = 20000,
    TIMES = 40,
    MANY = 300
};

static uint64_t key;
static bool hca, left;
static MPI_Comm comm = MPI_COMM_WORLD;
static MPI_Datatype type;
static mpitest_map_t *map;
/* the sender's, and the receiver's of both kinds */
static mpitest_buffer_t *here, *there[2];

static bool is_sender(void)
{
    return 0 == mpitest.rank;
}

static void check(mpitest_buffer_t *buffer)
{
    VERIFY(buffer, key, BYTES);
}

/* One message, into GPU memory or system memory. */
static void transfer(bool gpu, int tag)
{
    mpitest_buffer_t *buffer = there[gpu];
    MPI_Status status;

    ++key;
    ++mpitest.step;
    if (is_sender()) {
        mpitest_fill(here, key);
        MPI_OK(MPI_Send(here->addr, 1, type, 1, tag, comm));
        return;
    }
    mpitest_clear(buffer);
    MPI_OK(MPI_Recv(buffer->addr, 1, type, 0, MPI_ANY_TAG, comm, &status));
    CHECK_STATUS(&status, 0, tag, BYTES);
    check(buffer);
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

static pvars_t begin(void)
{
    pvars_t now;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&now);
    return now;
}

/* Of 'times' messages so many were tried, and so many went packed. */
static void check_result(const pvars_t *seen, int times, int tried, int packed)
{
    const uint64_t *value = seen->value;

    if (left && is_sender()) {
        CHECK_INT(value[PVARS_SENDS_IPC], packed);
        CHECK_INT(value[PVARS_HANDLED_SENDS], tried);
        CHECK_INT(value[PVARS_DECLINED_SENDS], tried - packed);
        CHECK_INT(value[PVARS_FALLBACK_SENDS], 0);
        CHECK_INT(value[PVARS_PASSED_MODEL], times - tried);
    } else if (left) {
        CHECK_INT(value[PVARS_HANDLED_RECVS], tried);
        CHECK_INT(value[PVARS_DECLINED_RECVS], tried - packed);
        CHECK_INT(value[PVARS_FALLBACK_RECVS], 0);
    } else if (hca && is_sender()) {
        CHECK_INT(value[PVARS_PROBE_SENDS], tried);
        CHECK_INT(value[PVARS_HANDLED_SENDS], tried);
        CHECK_INT(value[PVARS_FALLBACK_SENDS], 0);
        CHECK_INT(value[PVARS_PASSED_MODEL], times - tried);
    } else if (hca) {
        CHECK_INT(value[PVARS_HANDLED_RECVS], tried);
        CHECK_INT(value[PVARS_FALLBACK_RECVS], 0);
    } else if (is_sender()) {
        CHECK_INT(value[PVARS_PROBE_SENDS], tried);
        CHECK_INT(value[PVARS_SENDS_PACK_HOST] + value[PVARS_SENDS_PACK_STAGED], packed);
        CHECK_INT(value[PVARS_FALLBACK_SENDS], tried - packed);
        CHECK_INT(value[PVARS_PASSED_MEMORY], times - tried);
    } else {
        CHECK_INT(value[PVARS_HANDLED_RECVS], tried);
        CHECK_INT(value[PVARS_RECVS_PACK], packed);
        CHECK_INT(value[PVARS_FALLBACK_RECVS], tried - packed);
    }
}

/* How many of so many messages into system memory are tried: 16 are not, behind the first one, and
 * twice as many behind each further one. */
static int tries(int times)
{
    int count = 0, pause = 16;

    for (int at = 0; at < times; at += 1 + pause, pause *= 2) {
        ++count;
    }
    return count;
}

static void to_gpu(uint64_t *state)
{
    pvars_t before = begin(), seen;

    (void) state;
    for (int i = 0; i < TIMES; ++i) {
        transfer(true, 1);
    }
    seen = since(&before);
    check_result(&seen, TIMES, TIMES, TIMES);
}

static void to_host(uint64_t *state)
{
    pvars_t before = begin(), seen;

    (void) state;
    for (int i = 0; i < MANY; ++i) {
        transfer(false, 2);
    }
    seen = since(&before);
    check_result(&seen, MANY, tries(MANY), 0);
}

static void turns(uint64_t *state)
{
    pvars_t before = begin(), seen;

    (void) state;
    for (int i = 0; i < MANY; ++i) {
        transfer(0 == i % 2, 3);
    }
    seen = since(&before);
    if (is_sender()) {
        const uint64_t tried =
            left ? seen.value[PVARS_HANDLED_SENDS] : seen.value[PVARS_PROBE_SENDS];

        /* one of two attempts is in vain at worst, and then 16 are not made */
        CHECK(2 <= tried && 3 * (MANY / 16) >= (long) tried);
    }
}

/* The same send request all the time, half of it into memory of a GPU. */
static void persistent(uint64_t *state)
{
    pvars_t before = begin(), seen;

    (void) state;
    for (int gpu = 0; gpu < 2; ++gpu) {
        MPI_Request request;
        int tag = 4 + gpu;

        if (is_sender()) {
            MPI_OK(MPI_Send_init(here->addr, 1, type, 1, tag, comm, &request));
        }
        for (int i = 0; i < MANY; ++i) {
            MPI_Status status;

            ++key;
            ++mpitest.step;
            if (is_sender()) {
                mpitest_fill(here, key);
                MPI_OK(MPI_Start(&request));
                MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                mpitest_clear(there[gpu]);
                MPI_OK(MPI_Recv(there[gpu]->addr, 1, type, MPI_ANY_SOURCE, tag, comm, &status));
                CHECK_STATUS(&status, 0, tag, BYTES);
                check(there[gpu]);
            }
        }
        if (is_sender()) {
            MPI_OK(MPI_Request_free(&request));
        }
        seen = since(&before);
        if (is_sender()) {
            const bool model = hca || left;
            const uint64_t deferred = MANY - seen.value[PVARS_HANDLED_SENDS];

            CHECK_INT(seen.value[PVARS_PASSED_MODEL], model ? deferred : 0);
            CHECK_INT(seen.value[PVARS_PASSED_MEMORY], model ? 0 : deferred);
            CHECK_INT(seen.value[PVARS_PASSED_OTHER], 0);
        }
        if (is_sender() && left) {
            const int leaves = tries(MANY);

            CHECK_INT(seen.value[PVARS_HANDLED_SENDS], 0 == gpu ? leaves : MANY);
            CHECK_INT(seen.value[PVARS_DECLINED_SENDS], 0 == gpu ? leaves : 0);
            CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], 0);
        } else if (is_sender() && 0 == gpu) {
            CHECK_INT(seen.value[PVARS_PROBE_SENDS], tries(MANY));
            CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], hca ? 0 : tries(MANY));
        } else if (is_sender()) {
            CHECK_INT(seen.value[PVARS_PROBE_SENDS], MANY);
            CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], 0);
        }
    }
}

static void others(uint64_t *state)
{
    pvars_t before = begin(), seen;
    int offered;

    (void) state;
    for (int i = 0; i < TIMES; ++i) {
        transfer(false, 6);
        transfer(true, 7);
    }
    seen = since(&before);
    offered = tries(TIMES);
    check_result(&seen, 2 * TIMES, TIMES + offered, TIMES);
    if (left && !is_sender()) {
        /* after a message with a reply the completion flag is not read, once */
        CHECK_INT(seen.value[PVARS_IPC_DONE_FLAGS], TIMES - offered);
    }
}

static void asserted(uint64_t *state)
{
    pvars_t before;
    MPI_Info info;

    (void) state;
    MPI_OK(MPI_Info_create(&info));
    MPI_OK(MPI_Info_set(info, "mpi_communication_pattern", "MPI_CPU_TO_GPU"));
    MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_OK(MPI_Info_free(&info));
    for (int gpu = 1; 0 <= gpu; --gpu) {
        pvars_t seen;

        before = begin();
        for (int i = 0; i < TIMES; ++i) {
            transfer(gpu, 1);
        }
        seen = since(&before);
        if (is_sender()) {
            CHECK_INT(seen.value[PVARS_PROBE_SENDS], 0);
            CHECK_INT(seen.value[PVARS_HANDLED_SENDS], TIMES);
            CHECK_INT(seen.value[PVARS_FALLBACK_SENDS], gpu ? 0 : TIMES);
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
    comm = MPI_COMM_WORLD;
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"gpu", to_gpu},    {"host", to_host},      {"turns", turns}, {"persistent", persistent},
        {"others", others}, {"asserted", asserted}, {NULL, NULL}};

    const char *way = getenv("UMRDDT_RECEIVE_HINT");

    mpitest_init(&argc, &argv, "gpu_receive_hint", 1, MPI_THREAD_SINGLE);
    gpu_begin_all();
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("checks umrddt's own counters");
    }
    hca = NULL != way && 0 == strcmp("hca", way);
    left = NULL != way && 0 == strcmp("left", way);
    type = mpitest_type(MPITEST_FINE, BYTES, mpitest.seed);
    map = mpitest_map(type, 1);
    here = mpitest_buffer_of(map, left ? GPU_DEVICE : GPU_HOST);
    there[0] = mpitest_buffer_of(map, GPU_HOST);
    there[1] = mpitest_buffer_of(map, GPU_DEVICE);
    mpitest_run(parts);
    mpitest_buffer_free(here);
    mpitest_buffer_free(there[0]);
    mpitest_buffer_free(there[1]);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
    pvars_close();
    return mpitest_finish();
}
