/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Contiguous messages in GPU memory: which ones umrddt handles and which it passes through to the
 * base PML, for all values of pml_umrddt_contiguous, _contiguous_min and _base_gpu. Messages that
 * are passed through to a base PML that supports such memory cost no query.
 *
 * A base PML with CUDA support is simulated by one that copies with the CPU, if the driver allows
 * it (gpu=touch=1 of the software driver).
 *
 * --mode given: the base PML gets contiguous memory that is safe for it, by the rule of
 * pml_umrddt_base_gpu.h: to another node, or with pml_umrddt_contiguous = defer.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdlib.h>
#include <string.h>

#define TIMES    4
#define ENVELOPE 104

static bool have, aware, takes, given;
static long from;

static bool is_sender(void)
{
    return 0 == mpitest.rank % 2;
}

/* TIMES messages, and what was counted here of all but the first. */
static void transfer(MPI_Datatype type, int count, gpu_kind_t kind, int bytes, pvars_t *seen)
{
    mpitest_map_t *map = mpitest_map(type, count);
    mpitest_buffer_t *buffer = mpitest_buffer_of(map, kind);
    int peer = mpitest.rank ^ 1, i;
    pvars_t before, after;
    MPI_Status status;

    for (i = 0; i <= TIMES; ++i, ++mpitest.step) {
        uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, (uint64_t) bytes);

        if (1 == i) {
            pvars_read(&before);
        }
        if (is_sender()) {
            mpitest_fill(buffer, key);
            MPI_OK(MPI_Send(buffer->addr, count, type, peer, 1, MPI_COMM_WORLD));
        } else {
            mpitest_clear(buffer);
            MPI_OK(MPI_Recv(buffer->addr, count, type, peer, 1, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, peer, 1, bytes);
        }
        VERIFY(buffer, key, bytes);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, seen);
    mpitest_buffer_free(buffer);
    mpitest_map_free(map);
}

static uint64_t taken(const pvars_t *seen)
{
    return seen->value[PVARS_HANDLED_SENDS] + seen->value[PVARS_HANDLED_RECVS];
}

/* One piece to one piece. */
static void one_piece(gpu_kind_t out, gpu_kind_t in, int bytes)
{
    bool wanted = takes && GPU_HOST != out && from <= bytes && !(given && GPU_DEVICE == out);
    pvars_t seen;

    transfer(MPI_BYTE, bytes, is_sender() ? out : in, bytes, &seen);
    if (!have) {
        return;
    }
    CHECK_INT(taken(&seen), wanted ? TIMES : 0);
    CHECK_INT(seen.value[PVARS_FALLBACK_SENDS] + seen.value[PVARS_FALLBACK_RECVS], 0);
    if (given) {
        /* a buffer that an envelope may match, but that has no room for it, is replaced for the
         * receive */
        CHECK_INT(seen.value[PVARS_STAGED_SENDS],
                  is_sender() && GPU_HOST != out && GPU_DEVICE != out && !wanted ? TIMES : 0);
        CHECK_INT(seen.value[PVARS_STAGED_RECVS], !is_sender() && GPU_HOST != in
                                                          && (GPU_DEVICE != in || ENVELOPE > bytes)
                                                          && !wanted
                                                      ? TIMES
                                                      : 0);
    } else if (!aware) {
        CHECK_INT(seen.value[PVARS_STAGED_SENDS],
                  is_sender() && GPU_HOST != out && !wanted ? TIMES : 0);
    } else if (!wanted && ENVELOPE < bytes) {
        CHECK_INT(seen.value[PVARS_STAGED_SENDS] + seen.value[PVARS_STAGED_RECVS], 0);
        CHECK_INT(seen.value[PVARS_GPU_COPIES], 0);
        /* a message that is large enough to be handled, if in GPU memory, may need a query */
        CHECK(seen.value[PVARS_MEMORY_QUERIES]
              <= (takes && is_sender() && from <= bytes ? TIMES : 0));
    }
}

/* The base PML does not get memory that is not safe for it, or not at present. */
static void unsafe(void)
{
    CUcontext now;

    if (!given || NULL == gpu.cuCtxGetCurrent) {
        return;
    }
    one_piece(GPU_POOL, GPU_POOL, 1 << 16);
    one_piece(GPU_VMM, GPU_VMM, 1 << 16);
    GPU_OK(gpu.cuCtxGetCurrent(&now));
    GPU_OK(gpu.cuCtxSetCurrent(gpu_context((gpu_device() + 1) % gpu_device_count())));
    given = false;
    one_piece(GPU_DEVICE, GPU_DEVICE, 1 << 16);
    GPU_OK(gpu.cuCtxSetCurrent(now));
    given = true;
}

static void pieces(void)
{
    static const int sizes[] = {8,    64,   ENVELOPE, 800,     1023,   1024,
                                4096, 5000, 65535,    1 << 16, 300000, 1 << 20};
    static const gpu_kind_t places[3][2] = {
        {GPU_DEVICE, GPU_DEVICE}, {GPU_DEVICE, GPU_HOST}, {GPU_HOST, GPU_DEVICE}};
    size_t i, k;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (k = 0; k < 3; ++k) {
            one_piece(places[k][0], places[k][1], sizes[i]);
        }
    }
}

/* One side is contiguous, the other is not: the send buffer decides who carries it. */
static void one_sided(void)
{
    static const int sizes[] = {4096, 1 << 17};
    size_t i;
    int side;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (side = 0; side < 2; ++side) {
            bool flat = is_sender() == (0 == side);
            bool wanted = 1 == side || (takes && from <= sizes[i] && !given);
            MPI_Datatype vector;
            pvars_t seen;

            MPI_OK(MPI_Type_vector(sizes[i] / 64, 64, 128, MPI_BYTE, &vector));
            MPI_OK(MPI_Type_commit(&vector));
            transfer(flat ? MPI_BYTE : vector, flat ? sizes[i] : 1, GPU_DEVICE, sizes[i], &seen);
            MPI_OK(MPI_Type_free(&vector));
            CHECK(!have || (wanted ? TIMES : 0) == taken(&seen));
        }
    }
}

int main(int argc, char **argv)
{
    char text[32] = "";
    long least;

    mpitest_init(&argc, &argv, "gpu_contiguous", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    gpu_begin_all();
    have = PVARS_MAX == pvars_open();
    least = pvars_parameter("pml_umrddt_contiguous_min", 0);
    from = pvars_parameter("pml_umrddt_min_size", 0);
    from = least > from ? least : from;
    aware =
        pvars_parameter_text("pml_umrddt_base_gpu", text, sizeof(text)) && 0 == strcmp(text, "yes");
    (void) pvars_parameter_text("pml_umrddt_contiguous", text, sizeof(text));
    takes = 0 == strcmp(text, "take") || (0 == strcmp(text, "auto") && (!aware || 0 < least));
    given = 0 == strcmp(mpitest.mode, "given");
    pieces();
    one_sided();
    unsafe();
    pvars_close();
    return mpitest_finish();
}
