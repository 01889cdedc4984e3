/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * When CUDA begins and ends in the life of an MPI program. --mode is a list of words:
 *
 *   early    CUDA is initialised before MPI_Init; else after it, and after messages of system
 * memory half     the even ranks never touch CUDA: system memory to and from GPUs own      a
 * context of the application's own (cuCtxCreate) instead of the primary one green    a green
 * context, where the driver has any devices  memory of every device of the machine in each process
 *   bare     no context is current when MPI is called
 *   destroy  the context is destroyed before MPI_Finalize (the primary one is reset)
 *   leave    the same, with the memory still allocated (it goes with the context)
 *   again    the same, and then all over again in a new context (and destroyed once more)
 *   one      only the odd ranks destroy it, between messages from one GPU buffer of their partners
 *
 * After the context is gone messages of system memory and MPI_Finalize must work: ompi#3244.
 */

#include "gpu_shapes.h"
#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_gpu;

/* Of each device; NULL: none. */
static CUgreenCtx greens[64];

static bool keeps_memory(void)
{
    return mpitest_has("leave");
}

/* One message in each direction with the other rank of the pair, in memory of @p device here. */
static void exchange(int which, int device, gpu_kind_t kind, uint64_t salt)
{
    gpu_shape_t *shape = gpu_shape_fixed(which);
    uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) which, salt);
    int peer = mpitest.rank ^ 1, was = gpu_device();
    mpitest_buffer_t *out, *in;
    MPI_Request requests[2];
    CUcontext before = NULL, after = NULL;

    if (has_gpu && GPU_HOST != kind) {
        gpu_device_set(device);
    } else {
        kind = GPU_HOST;
    }
    out = mpitest_buffer_of(shape->send.map, kind);
    in = mpitest_buffer_of(shape->recv.map, kind);
    mpitest_fill(out, key + (uint64_t) mpitest.rank);
    if (has_gpu) {
        GPU_OK(gpu.cuCtxSetCurrent(mpitest_has("bare") ? NULL : gpu_context(was)));
        GPU_OK(gpu.cuCtxGetCurrent(&before));
    }
    MPI_OK(MPI_Irecv(in->addr, shape->recv.count, shape->recv.type, peer, which, MPI_COMM_WORLD,
                     &requests[0]));
    MPI_OK(MPI_Isend(out->addr, shape->send.count, shape->send.type, peer, which, MPI_COMM_WORLD,
                     &requests[1]));
    MPI_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    if (has_gpu) {
        GPU_OK(gpu.cuCtxGetCurrent(&after));
        CHECK(before == after);
    }
    VERIFY(in, key + (uint64_t) peer, shape->bytes);
    VERIFY(out, key + (uint64_t) mpitest.rank, shape->bytes);
    if (!keeps_memory() || GPU_HOST == kind) {
        mpitest_buffer_free(out);
        mpitest_buffer_free(in);
    }
    if (has_gpu) {
        gpu_device_set(was);
    }
    gpu_shape_free(shape);
    ++mpitest.step;
}

/* Some of every size and shape. */
static void messages(gpu_kind_t kind, uint64_t salt)
{
    int count = gpu_shape_fixed_count(), which, device = 0;
    int devices = 0 < gpu_device_count() ? gpu_device_count() : 1;

    for (which = 0; which < count; which += 4) {
        device = mpitest_has("devices") ? (device + 1) % devices : gpu_device();
        exchange(which, device, kind, salt);
    }
}

static void begin(void)
{
    int device;

    for (device = 0; mpitest_has("own") && device < gpu_device_count(); ++device) {
        CUdevice handle;
        CUcontext ctx;

        GPU_OK(gpu.cuDeviceGet(&handle, device));
        GPU_OK(gpu.cuCtxCreate_v2(&ctx, 0, handle));
        gpu_context_set(device, ctx);
        if (mpitest_has("one")) {
            /* The only context that a receive in system memory can use is the own one. */
            (void) gpu.cuDevicePrimaryCtxRelease_v2(handle);
        }
    }
    for (device = 0; mpitest_has("green") && device < gpu_device_count(); ++device) {
        CUcontext ctx;

        greens[device] = gpu_green(device, &ctx);
        if (NULL == greens[device]) {
            mpitest_skip("this driver has no green contexts");
        }
        gpu_context_set(device, ctx);
    }
    GPU_OK(gpu.cuCtxSetCurrent(gpu_context(gpu_device())));
}

/* The contexts go, of all devices. */
static void end(void)
{
    int device;

    for (device = 0; device < gpu_device_count(); ++device) {
        CUdevice handle;

        GPU_OK(gpu.cuDeviceGet(&handle, device));
        if (mpitest_has("own")) {
            GPU_OK(gpu.cuCtxDestroy_v2(gpu_context(device)));
        } else if (mpitest_has("green")) {
            GPU_OK(gpu.cuGreenCtxDestroy(greens[device]));
        } else {
            GPU_OK(gpu.cuDevicePrimaryCtxReset_v2(handle));
        }
        gpu_context_set(device, NULL);
    }
}

/* A message that takes several operations of the GPU. */
static gpu_shape_t *large_shape(void)
{
    int which = 0;
    gpu_shape_t *shape = gpu_shape_fixed(which);

    while (1 << 20 > shape->bytes) {
        gpu_shape_free(shape);
        shape = gpu_shape_fixed(++which);
    }
    return shape;
}

/* The same buffer of a GPU is sent to system memory before the receiver's context is gone, while
 * its GPU copies, and after that. */
static void end_of_one(void)
{
    gpu_shape_t *shape = large_shape();
    const bool sends = 0 == mpitest.rank % 2;
    const gpu_end_t *mine = sends ? &shape->send : &shape->recv;
    mpitest_buffer_t *buffer = mpitest_buffer_of(mine->map, sends ? GPU_DEVICE : GPU_HOST);
    int peer = mpitest.rank ^ 1, i, done;
    MPI_Request request;

    for (i = 0; i < 6; ++i) {
        uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) i, (uint64_t) mpitest.rank / 2);

        if (sends) {
            mpitest_fill(buffer, key);
            MPI_OK(MPI_Send(buffer->addr, mine->count, mine->type, peer, 0, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Probe(peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            MPI_OK(MPI_Irecv(buffer->addr, mine->count, mine->type, peer, 0, MPI_COMM_WORLD,
                             &request));
            if (3 == i) {
                MPI_OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE)); /* starts the copy */
                end();
            }
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            VERIFY(buffer, key, shape->bytes);
        }
        ++mpitest.step;
    }
    mpitest_buffer_free(buffer);
    gpu_shape_free(shape);
}

/* The GPUs of the ranks that shall have one; all skip if one finds none. */
static void take_gpus(void)
{
    const char *why = NULL;
    int lacks, lacking = 0;

    has_gpu = !(mpitest_has("half") && 0 == mpitest.rank % 2);
    if (has_gpu) {
        why = gpu_begin(mpitest.rank);
    }
    lacks = NULL != why;
    MPI_OK(MPI_Allreduce(&lacks, &lacking, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (0 != lacking) {
        mpitest_skip(NULL == why ? "a rank has no CUDA driver or device" : why);
    }
}

int main(int argc, char **argv)
{
    bool early = 2 < argc && NULL != strstr(argv[argc - 1], "early");
    bool half = 2 < argc && NULL != strstr(argv[argc - 1], "half");
    int turns, turn;

    if (early && !(half && 0 == mpitest_rank_before_init() % 2)) {
        has_gpu = NULL == gpu_begin(mpitest_rank_before_init());
    }
    mpitest_init(&argc, &argv, "gpu_finalize", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    if (!early) {
        messages(GPU_HOST, 1);
    }
    take_gpus();
    turns = mpitest_has("again") ? 2 : 1;
    for (turn = 0; turn < turns; ++turn) {
        if (has_gpu) {
            begin();
        }
        messages(GPU_DEVICE, 2 + 10 * (uint64_t) turn);
        messages(GPU_HOST, 3 + 10 * (uint64_t) turn);
        messages(GPU_DEVICE, 4 + 10 * (uint64_t) turn);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        if (mpitest_has("one")) {
            end_of_one();
        }
        if (has_gpu && (mpitest_has("destroy") || mpitest_has("leave") || mpitest_has("again"))) {
            end();
        }
    }
    messages(GPU_HOST, 5);
    return mpitest_finish();
}
