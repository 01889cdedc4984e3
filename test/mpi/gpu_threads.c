/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_THREAD_MULTIPLE and GPU memory: five threads per rank send and receive at once, with every
 * kind of memory. The threads differ in their current CUDA context: none, the one of the memory,
 * that of another device, one of their own, a green one. MPI must not change it.
 *
 * UMRDDT_TEST_MEMORY names the kinds (all by default); --mode host: plain memory, no driver.
 */

#include "gpu_shapes.h"
#include "layouts.h"
#include "mpitest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 5

/* Shapes are made before the threads are. */
#define SHAPES 24

static gpu_kind_t kinds[GPU_KINDS] = {GPU_HOST};
static int kind_count = 1;
static gpu_shape_t *shapes[SHAPES];

typedef struct worker_t {
    int number;
    MPI_Comm comm;
    CUcontext current;
    CUgreenCtx green;
} worker_t;

static CUcontext current(void)
{
    CUcontext ctx = NULL;

    if (NULL != gpu.cuCtxGetCurrent) {
        GPU_OK(gpu.cuCtxGetCurrent(&ctx));
    }
    return ctx;
}

/* What is current on this thread while it calls MPI. */
static void take_context(worker_t *worker)
{
    CUdevice device;

    if (NULL == gpu.cuCtxGetCurrent) {
        return;
    }
    switch (worker->number) {
    case 1:
        GPU_OK(gpu.cuCtxSetCurrent(gpu_context(gpu_device())));
        break;
    case 2:
        GPU_OK(gpu.cuCtxSetCurrent(gpu_context((gpu_device() + 1) % gpu_device_count())));
        break;
    case 3:
        GPU_OK(gpu.cuDeviceGet(&device, gpu_device()));
        GPU_OK(gpu.cuCtxCreate_v2(&worker->current, 0, device));
        break;
    case 4:
        worker->green = gpu_green(gpu_device(), &worker->current);
        GPU_OK(gpu.cuCtxSetCurrent(NULL == worker->green ? gpu_context(gpu_device())
                                                         : worker->current));
        break;
    default:
        break;
    }
    worker->current = current();
    CHECK((0 == worker->number) == (NULL == worker->current));
}

static void drop_context(worker_t *worker)
{
    if (NULL != gpu.cuCtxGetCurrent && 3 == worker->number) {
        GPU_OK(gpu.cuCtxDestroy_v2(worker->current));
    }
    if (NULL != worker->green) {
        GPU_OK(gpu.cuGreenCtxDestroy(worker->green));
    }
}

static void receive(mpitest_buffer_t *in, const gpu_shape_t *shape, int tag, MPI_Comm comm, int way,
                    MPI_Status *status)
{
    int peer = 1 - mpitest.rank, flag = 0;
    MPI_Request request;
    MPI_Message message;

    switch (way) {
    case 0:
        MPI_OK(MPI_Recv(in->addr, shape->recv.count, shape->recv.type, peer, tag, comm, status));
        break;
    case 1:
        MPI_OK(MPI_Irecv(in->addr, shape->recv.count, shape->recv.type, MPI_ANY_SOURCE, tag, comm,
                         &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    case 2:
        MPI_OK(MPI_Irecv(in->addr, shape->recv.count, shape->recv.type, peer, tag, comm, &request));
        while (!flag) {
            MPI_OK(MPI_Test(&request, &flag, status));
        }
        break;
    default:
        MPI_OK(MPI_Mprobe(peer, tag, comm, &message, status));
        MPI_OK(MPI_Mrecv(in->addr, shape->recv.count, shape->recv.type, &message, status));
        break;
    }
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    int peer = 1 - mpitest.rank;
    long op;

    take_context(worker);
    for (op = 0; op < mpitest.ops; ++op) {
        uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) op, (uint64_t) worker->number);
        const gpu_shape_t *shape = shapes[mpitest_between(&state, 0, SHAPES - 1)];
        gpu_kind_t from = kinds[mpitest_between(&state, 0, kind_count - 1)];
        gpu_kind_t to = kinds[mpitest_between(&state, 0, kind_count - 1)];
        int tag = worker->number * 100 + (int) (op % 50);
        int way = (int) mpitest_between(&state, 0, 3);
        bool synchronous = 0 == mpitest_random(&state) % 3;
        uint64_t key = mpitest_random(&state);
        mpitest_buffer_t *out = mpitest_buffer_of(shape->send.map, from);
        mpitest_buffer_t *in = mpitest_buffer_of(shape->recv.map, to);
        MPI_Request request;
        MPI_Status status;

        mpitest_fill(out, key + (uint64_t) mpitest.rank);
        MPI_OK((synchronous ? MPI_Issend : MPI_Isend)(
            out->addr, shape->send.count, shape->send.type, peer, tag, worker->comm, &request));
        CHECK(current() == worker->current);
        receive(in, shape, tag, worker->comm, way, &status);
        CHECK(current() == worker->current);
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(current() == worker->current);
        CHECK_STATUS(&status, peer, tag, (int) shape->bytes);
        VERIFY(in, key + (uint64_t) peer, shape->bytes);
        VERIFY(out, key + (uint64_t) mpitest.rank, shape->bytes);
        mpitest_buffer_free(out);
        mpitest_buffer_free(in);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *list = getenv("UMRDDT_TEST_MEMORY");
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    MPI_Comm own[2];
    uint64_t state;
    int i;

    mpitest_init(&argc, &argv, "gpu_threads", 40, MPI_THREAD_MULTIPLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (mpitest_base_is("ucx")) {
        mpitest_skip("pml/ucx with several threads: that of Open MPI 4.1.4 fails by itself, and "
                     "that of later releases is not tested");
    }
    if (0 != strcmp(mpitest.mode, "host")) {
        gpu_begin_all();
        kind_count = gpu_kinds_of(NULL == list ? "all" : list, kinds);
        CHECK(0 < kind_count);
    }
    state = mpitest_mix(mpitest.seed, 1, 2);
    for (i = 0; i < SHAPES; ++i) {
        shapes[i] = 0 == i % 3 ? gpu_shape_nested(&state) : gpu_shape_bytes(&state, 120000);
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[0]));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[1]));
    memset(workers, 0, sizeof(workers));
    for (i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].comm = 2 > i ? MPI_COMM_WORLD : own[i % 2];
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        drop_context(&workers[i]);
    }
    for (i = 0; i < SHAPES; ++i) {
        gpu_shape_free(shapes[i]);
    }
    MPI_OK(MPI_Comm_free(&own[0]));
    MPI_OK(MPI_Comm_free(&own[1]));
    return mpitest_finish();
}
