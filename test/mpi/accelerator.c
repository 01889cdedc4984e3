/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * @file
 *
 * Tests an Open MPI 5.0 that is CUDA-aware by accelerator/cuda, without umrddt: its query
 * functions, and MPI_Pack, MPI_Unpack and messages of vectors in every kind of GPU memory, also
 * from a thread without a context. In mode "without" the component is missing, and the same calls
 * crash. In mode "contiguous" there are only contiguous messages, of an Open MPI that was
 * configured with CUDA, too. In mode "kinds" the job requests the memory kind cuda:device, which an
 * Open MPI 6.0 with the component provides.
 */

#include "layouts.h"
#include "mpitest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = {800, 8192, 300000};
#define SIZES ((int) (sizeof(sizes) / sizeof(sizes[0])))

/* The result of MPIX_Query_cuda_support(); -1 if this Open MPI does not have the function. */
static int query(void)
{
    int (*function)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");

    memcpy(&function, &found, sizeof(function));
    return NULL == function ? -1 : function();
}

/* One kind of memory, one size: packs into system memory and unpacks, and the same through the GPU.
 */
static void pack(gpu_kind_t kind, int bytes, uint64_t key)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, bytes, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *from = mpitest_buffer_of(map, kind), *to = mpitest_buffer_of(map, kind);
    gpu_memory_t *there = gpu_memory(GPU_DEVICE, (size_t) bytes);
    unsigned char *packed = calloc(1, (size_t) bytes);
    int position = 0, i;

    CHECK(NULL != packed);
    mpitest_fill(from, key);
    MPI_OK(MPI_Pack(from->addr, 1, type, packed, bytes, &position, MPI_COMM_WORLD));
    CHECK_INT(position, bytes);
    for (i = 0; i < bytes; ++i) {
        CHECK_INT(packed[i], mpitest_byte(key, (uint64_t) i));
    }
    position = 0;
    MPI_OK(MPI_Unpack(packed, bytes, &position, to->addr, 1, type, MPI_COMM_WORLD));
    VERIFY(to, key, bytes);
    VERIFY(from, key, bytes);

    /* Open MPI queries only the non-contiguous side. */
    if (!gpu_kind_is_cpus(kind)) {
        mpitest_fill(from, key + 1);
        position = 0;
        MPI_OK(MPI_Pack(from->addr, 1, type, there->addr, bytes, &position, MPI_COMM_WORLD));
        position = 0;
        mpitest_clear(to);
        MPI_OK(MPI_Unpack(there->addr, bytes, &position, to->addr, 1, type, MPI_COMM_WORLD));
        VERIFY(to, key + 1, bytes);
    }
    free(packed);
    gpu_memory_free(there);
    mpitest_buffer_free(from);
    mpitest_buffer_free(to);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static void message(gpu_kind_t from, gpu_kind_t to, int bytes, uint64_t key)
{
    MPI_Datatype type = mpitest_type(MPITEST_COARSE, bytes, 1);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *out = mpitest_buffer_of(map, from), *in = mpitest_buffer_of(map, to);
    const int left = mpitest_left(), right = mpitest_right();
    MPI_Status status;

    mpitest_fill(out, key + (uint64_t) mpitest.rank);
    MPI_OK(MPI_Sendrecv(out->addr, 1, type, right, 1, in->addr, 1, type, left, 1, MPI_COMM_WORLD,
                        &status));
    CHECK_STATUS(&status, left, 1, bytes);
    VERIFY(in, key + (uint64_t) left, bytes);
    mpitest_buffer_free(out);
    mpitest_buffer_free(in);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static gpu_kind_t kinds[GPU_KINDS];
static int kind_count;

static void all(void)
{
    int from, to, size;

    for (size = 0; size < SIZES; ++size) {
        for (from = 0; from < kind_count; ++from, ++mpitest.step) {
            pack(kinds[from], sizes[size], mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 1));
            for (to = 0; to < kind_count; ++to, ++mpitest.step) {
                message(kinds[from], kinds[to], sizes[size],
                        mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 2));
            }
        }
    }
}

/* Messages of 8 bytes to 4 MiB, each from and to the same buffers several times. */
static void contiguous(void)
{
    for (int bytes = 8; bytes <= 4 << 20; bytes *= 8, ++mpitest.step) {
        MPI_Datatype type;

        MPI_OK(MPI_Type_contiguous(bytes, MPI_BYTE, &type));
        MPI_OK(MPI_Type_commit(&type));
        mpitest_map_t *map = mpitest_map(type, 1);
        mpitest_buffer_t *out = mpitest_buffer_of(map, GPU_DEVICE);
        mpitest_buffer_t *in = mpitest_buffer_of(map, GPU_DEVICE);
        const int left = mpitest_left(), right = mpitest_right();

        for (int i = 0; i < 4; ++i) {
            const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) bytes, (uint64_t) i);
            MPI_Status status;

            mpitest_fill(out, key + (uint64_t) mpitest.rank);
            mpitest_clear(in);
            MPI_OK(MPI_Sendrecv(out->addr, 1, type, right, i, in->addr, 1, type, left, i,
                                MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, left, i, bytes);
            VERIFY(in, key + (uint64_t) left, bytes);
        }
        mpitest_buffer_free(out);
        mpitest_buffer_free(in);
        mpitest_map_free(map);
        MPI_OK(MPI_Type_free(&type));
    }
}

static void *without_context(void *unused)
{
    CUcontext ctx = NULL;

    (void) unused;
    GPU_OK(gpu.cuCtxGetCurrent(&ctx));
    CHECK(NULL == ctx);
    all();
    GPU_OK(gpu.cuCtxGetCurrent(&ctx));
    CHECK(NULL == ctx);
    return NULL;
}

/* ---- the same Open MPI without the component ---- */

static sigjmp_buf back;

static void caught(int number)
{
    siglongjmp(back, number);
}

static void crash(void)
{
    struct sigaction action, before;

    memset(&action, 0, sizeof(action));
    action.sa_handler = caught;
    CHECK_INT(sigaction(SIGSEGV, &action, &before), 0);
    if (0 == sigsetjmp(back, 1)) {
        pack(GPU_DEVICE, sizes[0], 1);
        CHECK(!"MPI_Pack took memory of a GPU");
    }
    CHECK_INT(sigaction(SIGSEGV, &before, NULL), 0);
}

/* ---- memory kinds of MPI 4.1 ---- */

static void kinds_provided(void)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    const char *wanted = mpitest_has("without") ? "system,mpi" : "system,mpi,cuda:device";
    MPI_Info info;
    int found = 0;

    MPI_OK(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
    MPI_OK(MPI_Info_get(info, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL, value, &found));
    MPI_OK(MPI_Info_free(&info));
    if (0 == found || 0 != strcmp(wanted, value)) {
        mpitest_fail(__FILE__, __LINE__, "mpi_memory_alloc_kinds is \"%s\", expected \"%s\"", value,
                     wanted);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;

    mpitest_init(&argc, &argv, "accelerator", 1, MPI_THREAD_MULTIPLE);
    if (mpitest_has("kinds")) {
        if (6 > OMPI_MAJOR_VERSION) {
            mpitest_skip("no memory kinds before Open MPI 6.0");
        }
        kinds_provided();
        return mpitest_finish();
    }
    gpu_begin_all();
    if (mpitest_has("without")) {
        CHECK_INT(query(), 0);
        crash();
        return mpitest_finish();
    }
    CHECK_INT(query(), 1);
    if (mpitest_has("contiguous")) {
        contiguous();
        return mpitest_finish();
    }
    kind_count = gpu_kinds_of("all", kinds);
    CHECK(5 <= kind_count);
    all();
    CHECK_INT(pthread_create(&thread, NULL, without_context, NULL), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    return mpitest_finish();
}
