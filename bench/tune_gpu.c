/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* GPU parameters: operations of the engine at the first process, and messages between the GPUs of
 * both processes, by CUDA IPC and by the HCA. */

#include "opal_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"
#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "bench_gpu.h"
#include "bench_times.h"
#include "bench_util.h"
#include "tune.h"

/* Bytes of a large copy; the buffers hold a vector of as many. */
#define LARGE ((size_t) 16 << 20)

/* Bytes of all blocks of a list, with which kernels may be much slower, and its maximum length. */
#define LISTED     ((size_t) 4 << 20)
#define LIST_LIMIT (LISTED / OPAL_UMRDDT_TUNING_CURVE_LEAST)

/* Pieces of a timed message. */
#define PIECES 4096
#define SPAN   (2 * LARGE)

/* Of copies by the engine. */
#define MOST    40
#define LEAST   5
#define SECONDS 0.1

/* A process's ends of copies. */
typedef struct ends_t {
    const tune_t *tune;
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_engine_t *engine;
    char *device, *other; /* of SPAN bytes each */
    void *pinned;         /* of LARGE bytes */
} ends_t;

static bool open_ends(ends_t *ends, const tune_t *tune)
{
    opal_umrddt_gpu_memory_t memory;

    memset(ends, 0, sizeof(*ends));
    ends->tune = tune;
    ends->device = bench_gpu_alloc(SPAN);
    ends->other = bench_gpu_alloc(SPAN);
    return OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&ends->driver)
           && CUDA_SUCCESS == ends->driver->cuMemHostAlloc(&ends->pinned, LARGE, 0)
           && OPAL_SUCCESS == opal_umrddt_gpu_classify(ends->device, &memory)
           && OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&memory, &ends->engine);
}

static void close_ends(ends_t *ends)
{
    opal_umrddt_gpu_engines_close();
    if (NULL != ends->pinned) {
        (void) ends->driver->cuMemFreeHost(ends->pinned);
    }
    bench_gpu_free(ends->other);
    bench_gpu_free(ends->device);
}

/* One copy, until the CPU sees its end, us. Negative: it failed. */
static double copy_once(const ends_t *ends, const opal_umrddt_gpu_copy_end_t *from,
                        const opal_umrddt_gpu_copy_end_t *to, uint64_t bytes)
{
    const double begin = bench_now();
    opal_umrddt_gpu_copy_t *in_flight;

    if (OPAL_SUCCESS != opal_umrddt_gpu_copy(ends->engine, from, to, 0, bytes, &in_flight)
        || OPAL_SUCCESS != opal_umrddt_gpu_copy_wait(in_flight)) {
        return -1;
    }
    return bench_now() - begin;
}

/* The median of several, us. Negative: it failed, or there is no more
 * time. */
static double copy(const ends_t *ends, const opal_umrddt_gpu_copy_end_t *from,
                   const opal_umrddt_gpu_copy_end_t *to, uint64_t bytes)
{
    double samples[MOST], end = bench_now() + SECONDS;
    bench_times_t times;
    int count = 0;

    if (!tune_time_left_alone(ends->tune)) {
        return -1;
    }
    for (int i = -2; count < MOST && (i < LEAST || bench_now() < end); ++i) {
        const double time = copy_once(ends, from, to, bytes);

        if (0 > time) {
            return -1;
        }
        if (0 <= i) {
            samples[count++] = time;
        }
    }
    bench_times_summarise(samples, count, &times);
    return times.median;
}

/* The layout of a vector; the caller releases it. */
static opal_iov_cache_layout_t *layout_of(int pieces, int block)
{
    return tune_layout(tune_vector(pieces, block));
}

/* An end of a copy, at the start of GPU memory. A layout of NULL: one piece */
static opal_umrddt_gpu_copy_end_t place_at(const void *memory, opal_iov_cache_layout_t *layout)
{
    opal_umrddt_gpu_copy_end_t place = {layout, (uintptr_t) memory, OPAL_UMRDDT_GPU_DEVICE, true,
                                        true};

    return place;
}

static opal_umrddt_gpu_copy_end_t place_pinned(const ends_t *ends)
{
    opal_umrddt_gpu_copy_end_t place = {NULL, (uintptr_t) ends->pinned, OPAL_UMRDDT_GPU_PINNED,
                                        true, false};

    return place;
}

/* Between a vector and one piece, and back. */
static void pack_and_unpack(const ends_t *ends, int pieces, int block, bool pinned, double *pack,
                            double *unpack)
{
    opal_iov_cache_layout_t *layout = layout_of(pieces, block);
    opal_umrddt_gpu_copy_end_t user = place_at(ends->device, layout);
    opal_umrddt_gpu_copy_end_t packed = pinned ? place_pinned(ends) : place_at(ends->other, NULL);

    *pack = copy(ends, &user, &packed, layout->size);
    *unpack = copy(ends, &packed, &user, layout->size);
    OBJ_RELEASE(layout);
}

/* A layout of blocks with two alternating lengths and the same mean length. */
static opal_iov_cache_layout_t *list_of(int pieces, int block)
{
    int *lengths = bench_alloc((size_t) pieces * sizeof(*lengths));
    int *places = bench_alloc((size_t) pieces * sizeof(*places));
    MPI_Datatype type;

    for (int i = 0; i < pieces; ++i) {
        lengths[i] = block + (0 == i % 2 ? -4 : 4);
        places[i] = 2 * i * block;
    }
    MPI_Type_indexed(pieces, lengths, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    free(places);
    free(lengths);
    return tune_layout(type);
}

static double pack_list(const ends_t *ends, int pieces, int block)
{
    opal_iov_cache_layout_t *layout = list_of(pieces, block);
    opal_umrddt_gpu_copy_end_t user = place_at(ends->device, layout);
    opal_umrddt_gpu_copy_end_t packed = place_at(ends->other, NULL);
    double time = copy(ends, &user, &packed, layout->size);

    OBJ_RELEASE(layout);
    return time;
}

/* One piece between the GPU's memory and pinned memory. */
static double move(const ends_t *ends, bool in, uint64_t bytes)
{
    opal_umrddt_gpu_copy_end_t device = place_at(ends->device, NULL), pinned = place_pinned(ends);

    return in ? copy(ends, &pinned, &device, bytes) : copy(ends, &device, &pinned, bytes);
}

static void rate(tune_t *tune, double *curve, int i, const char *name, tune_curve_t points,
                 size_t bytes, double time, double least)
{
    if (time > least) {
        tune_enter(tune, &curve[i], tune_index(name), (double) bytes / (time - least));
        tune_point(tune, points,
                   OPAL_UMRDDT_TUNING_CURVE_LEAST * pow(OPAL_UMRDDT_TUNING_CURVE_STEP, i),
                   (double) bytes / (time - least));
    }
}

/* Blocks of a list, with as many bytes as a vector unless that is slow. */
static void lists(tune_t *tune, const ends_t *ends, int i, int block, double least)
{
    size_t bytes = LISTED, more = LIST_LIMIT * (size_t) block;
    double time = pack_list(ends, (int) (bytes / (size_t) block), block);

    more = more < LARGE ? more : LARGE;
    if (time < 10 * least && bytes < more) {
        bytes = more;
        time = pack_list(ends, (int) (bytes / (size_t) block), block);
    }
    rate(tune, tune->tuning.gpu_list, i, "gpu_list", TUNE_CURVE_GPU_LIST, bytes, time, least);
}

/* At the first process alone: the second one's GPU may be the same. */
static void alone(tune_t *tune, const ends_t *ends)
{
    opal_umrddt_tuning_t *tuning = &tune->tuning;
    int block = OPAL_UMRDDT_TUNING_CURVE_LEAST;
    double launch, unlaunch, out = move(ends, false, 256), in = move(ends, true, 256);
    double all_out = move(ends, false, LARGE), all_in = move(ends, true, LARGE);

    pack_and_unpack(ends, 16, 64, false, &launch, &unlaunch);
    TUNE_FIGURE(tune, gpu_launch, (launch + unlaunch) / 2);
    TUNE_FIGURE(tune, gpu_out_latency, out);
    TUNE_FIGURE(tune, gpu_in_latency, in);
    TUNE_FIGURE(tune, gpu_out_rate, (double) LARGE / (all_out - out));
    TUNE_FIGURE(tune, gpu_in_rate, (double) LARGE / (all_in - in));
    tune_point(tune, TUNE_CURVE_GPU_OUT, 256, out);
    tune_point(tune, TUNE_CURVE_GPU_IN, 256, in);
    tune_point(tune, TUNE_CURVE_GPU_OUT, (double) LARGE, all_out);
    tune_point(tune, TUNE_CURVE_GPU_IN, (double) LARGE, all_in);
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS;
         ++i, block *= OPAL_UMRDDT_TUNING_CURVE_STEP) {
        double pack, unpack;

        pack_and_unpack(ends, (int) (LARGE / (size_t) block), block, false, &pack, &unpack);
        rate(tune, tuning->gpu_pack, i, "gpu_pack", TUNE_CURVE_GPU_PACK, LARGE, pack, launch);
        rate(tune, tuning->gpu_unpack, i, "gpu_unpack", TUNE_CURVE_GPU_UNPACK, LARGE, unpack,
             unlaunch);
        pack_and_unpack(ends, (int) (LARGE / (size_t) block), block, true, &pack, &unpack);
        rate(tune, tuning->gpu_pack_host, i, "gpu_pack_host", TUNE_CURVE_GPU_PACK_HOST, LARGE, pack,
             launch);
        rate(tune, tuning->gpu_unpack_host, i, "gpu_unpack_host", TUNE_CURVE_GPU_UNPACK_HOST, LARGE,
             unpack, unlaunch);
        lists(tune, ends, i, block, launch);
    }
}

/* Pieces that need a kernel, because no driver copy has this shape. */
static opal_iov_cache_layout_t *irregular(void)
{
    int lengths[4] = {64, 72, 80, 88}, places[4] = {0, 256, 640, 1152};
    MPI_Datatype type;

    MPI_Type_indexed(4, lengths, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return tune_layout(type);
}

/* True if the processes do not share a GPU by turns: there are two GPUs, or CUDA MPS runs. */
#define NO_TURN 0.001

/* The cost of a switch between processes: kernels of both in turns, and of the first alone. */
static void turns(tune_t *tune, const ends_t *ends)
{
    const MPI_Comm comm = tune->comms[MCA_PML_UMRDDT_SCHEME_BASE];
    opal_iov_cache_layout_t *layout = irregular();
    opal_umrddt_gpu_copy_end_t user = place_at(ends->device, layout);
    opal_umrddt_gpu_copy_end_t packed = place_at(ends->other, NULL);
    double samples[MOST], alone = -1, turn;
    bench_times_t times;
    bool fine = true;

    MPI_Barrier(comm);
    if (0 == tune->rank) {
        alone = copy(ends, &user, &packed, layout->size);
    }
    for (int i = -2; i < MOST; ++i) {
        /* one after the other, each behind the other's end */
        for (int rank = 0; rank < 2; ++rank) {
            double *sample = &samples[i < 0 ? 0 : i];

            MPI_Barrier(comm);
            if (rank == tune->rank) {
                *sample = copy_once(ends, &user, &packed, layout->size);
                fine = fine && 0 <= *sample;
            }
        }
    }
    OBJ_RELEASE(layout);
    bench_times_summarise(samples, MOST, &times);
    turn = times.median - alone;
    if (fine && 0 < alone) {
        /* differences below the time of a kernel are noise */
        TUNE_FIGURE(tune, gpu_turn, turn > alone ? turn : NO_TURN);
    }
}

/* Messages from GPU to GPU by a scheme, of a vector. */
static double vector(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, void *send, void *recv,
                     int pieces, int block)
{
    MPI_Datatype type = tune_vector(pieces, block);
    double time = tune_message(tune, scheme_id, send, recv, type, NULL);

    MPI_Type_free(&type);
    return time;
}

static double control(const tune_t *tune)
{
    return tune->near ? tune->tuning.near_latency : tune->tuning.far_latency;
}

static void by_ipc(tune_t *tune, char *send, char *recv)
{
    int block = OPAL_UMRDDT_TUNING_CURVE_LEAST;
    double small;

    tune_progress(tune, "messages from GPU to GPU by CUDA IPC");
    small = vector(tune, MCA_PML_UMRDDT_SCHEME_IPC, send, recv, 16, 1024);
    if (0 > small) {
        return;
    }
    /* a shared GPU: without the time of a switch */
    TUNE_FIGURE(tune, ipc_latency, small - control(tune) - tune->tuning.gpu_turn);
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS && tune_time_left(tune);
         ++i, block *= OPAL_UMRDDT_TUNING_CURVE_STEP) {
        double time = vector(tune, MCA_PML_UMRDDT_SCHEME_IPC, send, recv,
                             (int) (LARGE / (size_t) block), block);

        if (0 < time) {
            rate(tune, tune->tuning.ipc_copy, i, "ipc_copy", TUNE_CURVE_IPC_COPY, LARGE, time,
                 small);
        }
    }
}

/* Contiguous messages from GPU to GPU of two nodes by the base PML, unless umrddt stages them. */
static void by_base(tune_t *tune, char *send, char *recv)
{
    uint64_t before[BENCH_PVAR_COUNT], after[BENCH_PVAR_COUNT];
    double small, large;
    int staged;

    bench_pvars_read(&tune->pvars, before);
    small = vector(tune, MCA_PML_UMRDDT_SCHEME_BASE, send, recv, 1, 104);
    bench_pvars_read(&tune->pvars, after);
    staged = before[BENCH_PVAR_STAGED_SENDS] != after[BENCH_PVAR_STAGED_SENDS];
    MPI_Allreduce(MPI_IN_PLACE, &staged, 1, MPI_INT, MPI_MAX,
                  tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (staged) {
        return;
    }
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_BASE, send, recv, 1, LARGE);
    TUNE_FIGURE(tune, gpu_base_latency, small);
    if (large > small) {
        TUNE_FIGURE(tune, gpu_base_rate, LARGE / (large - small));
    }
}

static void by_hca(tune_t *tune, char *send, char *recv, char *host)
{
    double small, large, gather;

    tune_progress(tune, "messages from GPU to GPU by the HCA");
    small = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, send, recv, 2, 1024);
    if (0 > small) {
        return;
    }
    /* the difference to the time between system memory */
    TUNE_FIGURE(tune, gpu_flush, small - 2 * control(tune) - tune->tuning.hca_latency);
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, send, recv, 16, 512 << 10);
    if (large > small) {
        TUNE_FIGURE(tune, hca_gpu_rate, 16.0 * (512 << 10) / (large - small));
    }
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, send, host, PIECES, 16);
    gather = (large - small) / PIECES - tune->tuning.hca_entry;
    if (0 < gather) {
        TUNE_FIGURE(tune, hca_gpu_gather, gather);
    }
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, send, recv, PIECES, 16);
    if (large > small) {
        TUNE_FIGURE(tune, hca_gpu_scatter, (large - small) / PIECES - tune->tuning.hca_gpu_gather);
    }
}

void tune_gpu(tune_t *tune)
{
    char *send, *recv, *host;
    ends_t ends;
    int open;

    if (!tune->gpu || !tune_time_left(tune)) {
        return;
    }
    tune_progress(tune, "the GPU: launches, packing, copies");
    open = open_ends(&ends, tune);
    if (open && 0 == tune->rank) {
        alone(tune, &ends);
    }
    MPI_Allreduce(MPI_IN_PLACE, &open, 1, MPI_INT, MPI_MIN,
                  tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (open && tune->near) {
        turns(tune, &ends);
    }
    close_ends(&ends);
    MPI_Barrier(tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (!tune->umrddt || !tune_time_left(tune)) {
        return;
    }
    send = bench_gpu_alloc(SPAN);
    recv = bench_gpu_alloc(SPAN);
    by_ipc(tune, send, recv);
    if (!tune->near && tune_time_left(tune)) {
        by_base(tune, send, recv);
    }
    if (tune_time_left(tune)) {
        host = bench_alloc(SPAN);
        by_hca(tune, send, recv, host);
        free(host);
    }
    bench_gpu_free(recv);
    bench_gpu_free(send);
}

/* Copies by size, and packing by number of blocks. */
static void points_alone(tune_t *tune, const ends_t *ends)
{
    for (uint64_t bytes = 1024; bytes < LARGE; bytes *= 8) {
        tune_point(tune, TUNE_CURVE_GPU_OUT, (double) bytes, move(ends, false, bytes));
        tune_point(tune, TUNE_CURVE_GPU_IN, (double) bytes, move(ends, true, bytes));
    }
    for (int count = 16; count <= 1 << 16; count *= 8) {
        double pack, unpack;

        pack_and_unpack(ends, count, TUNE_BLOCK, false, &pack, &unpack);
        tune_point(tune, TUNE_CURVE_COUNT_PACK, count, pack);
        tune_point(tune, TUNE_CURVE_COUNT_UNPACK, count, unpack);
        pack_and_unpack(ends, count, TUNE_BLOCK, true, &pack, &unpack);
        tune_point(tune, TUNE_CURVE_COUNT_PACK_HOST, count, pack);
        tune_point(tune, TUNE_CURVE_COUNT_UNPACK_HOST, count, unpack);
    }
}

/* Messages by size. */
static void points(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, tune_curve_t curve,
                   void *send, void *recv)
{
    for (int block = 256; block <= 512 << 10; block *= 8) {
        tune_point(tune, curve, (double) TUNE_PIECES * block,
                   vector(tune, scheme_id, send, recv, TUNE_PIECES, block));
    }
}

void tune_gpu_points(tune_t *tune)
{
    char *send, *recv;
    ends_t ends;

    if (!tune->gpu || !tune_time_left(tune)) {
        return;
    }
    tune_progress(tune, "for the plots: the GPU");
    if (0 == tune->rank) {
        if (open_ends(&ends, tune)) {
            points_alone(tune, &ends);
        }
        close_ends(&ends);
    }
    MPI_Barrier(tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (!tune->umrddt) {
        return;
    }
    send = bench_gpu_alloc(SPAN);
    recv = bench_gpu_alloc(SPAN);
    points(tune, MCA_PML_UMRDDT_SCHEME_IPC, TUNE_CURVE_GPU_IPC, send, recv);
    points(tune, MCA_PML_UMRDDT_SCHEME_UMR, TUNE_CURVE_GPU_UMR, send, recv);
    bench_gpu_free(recv);
    bench_gpu_free(send);
}
