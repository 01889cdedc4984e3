/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Parameters of the base PML and of packing by the CPU; the timing of messages. */

#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"

#include "bench_times.h"
#include "bench_util.h"
#include "tune.h"

#define TAG 5

/* Limits of a measurement: messages, seconds, and the minimum number of messages. */
#define MOST_MESSAGES  200
#define LEAST_MESSAGES 6
#define SECONDS        0.15
#define WARMUP         3

MPI_Datatype tune_vector(int pieces, int block)
{
    MPI_Datatype type;

    MPI_Type_vector(pieces, block, 2 * block, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

opal_iov_cache_layout_t *tune_layout(MPI_Datatype type)
{
    opal_iov_cache_layout_t *layout;

    if (OPAL_SUCCESS
        != opal_iov_cache_layout_create(&((ompi_datatype_t *) type)->super, 1, &layout)) {
        bench_fatal("no layout");
    }
    MPI_Type_free(&type);
    return layout;
}

size_t tune_span(int pieces, int block)
{
    return (size_t) (2 * pieces - 1) * (size_t) block;
}

/* The counter of messages by a scheme. */
static int counter_of(mca_pml_umrddt_scheme_id_t scheme_id)
{
    switch (scheme_id) {
    case MCA_PML_UMRDDT_SCHEME_IPC:
        return BENCH_PVAR_SENDS_IPC;
    case MCA_PML_UMRDDT_SCHEME_DIRECT:
        return BENCH_PVAR_SENDS_DIRECT;
    case MCA_PML_UMRDDT_SCHEME_PACK_GDR:
        return BENCH_PVAR_SENDS_PACK_GDR;
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
        return BENCH_PVAR_SENDS_PACK_STAGED;
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return BENCH_PVAR_SENDS_PACK_HOST;
    default:
        return BENCH_PVAR_HANDLED_SENDS;
    }
}

/* One message in each direction; seconds of one. */
static double trip(tune_t *tune, MPI_Comm comm, void *send, void *recv, MPI_Datatype type)
{
    double begin = bench_now();

    if (0 == tune->rank) {
        MPI_Send(send, 1, type, 1, TAG, comm);
        MPI_Recv(recv, 1, type, 1, TAG, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(recv, 1, type, 0, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Send(send, 1, type, 0, TAG, comm);
    }
    return (bench_now() - begin) / 2;
}

double tune_message(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, void *send, void *recv,
                    MPI_Datatype type, double *first)
{
    MPI_Comm comm = tune->comms[scheme_id];
    uint64_t before[BENCH_PVAR_COUNT], after[BENCH_PVAR_COUNT];
    double samples[MOST_MESSAGES], begin;
    int went, counter = counter_of(scheme_id), count = 0, more;
    bench_times_t times;

    /* the base PML is always measured */
    if (MCA_PML_UMRDDT_SCHEME_BASE != scheme_id && !tune_time_left(tune)) {
        return -1;
    }
    bench_pvars_read(&tune->pvars, before);
    MPI_Barrier(tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    begin = trip(tune, comm, send, recv, type);
    if (NULL != first) {
        *first = 1e6 * begin;
    }
    for (int i = 0; i < WARMUP; ++i) {
        (void) trip(tune, comm, send, recv, type);
    }
    bench_pvars_read(&tune->pvars, after);
    went = MCA_PML_UMRDDT_SCHEME_BASE == scheme_id
           || (WARMUP + 1 == after[counter] - before[counter]
               && before[BENCH_PVAR_FALLBACK_SENDS] == after[BENCH_PVAR_FALLBACK_SENDS]);
    MPI_Allreduce(MPI_IN_PLACE, &went, 1, MPI_INT, MPI_MIN,
                  tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (!went) {
        return -1;
    }
    /* both processes use the same number */
    begin = trip(tune, comm, send, recv, type);
    more = (int) (SECONDS / (2 * (1e-9 < begin ? begin : 1e-9)));
    more = more < LEAST_MESSAGES ? LEAST_MESSAGES : more > MOST_MESSAGES ? MOST_MESSAGES : more;
    MPI_Bcast(&more, 1, MPI_INT, 0, tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    for (; count < more; ++count) {
        samples[count] = trip(tune, comm, send, recv, type);
    }
    bench_times_summarise(samples, count, &times);
    return times.median;
}

/* Time one packing, by MPI_Pack or by umrddt. */
static double pack(const char *buffer, char *packed, int bytes, MPI_Datatype type,
                   const opal_iov_cache_layout_t *layout)
{
    const double begin = bench_now();
    int position = 0;

    if (NULL == layout) {
        MPI_Pack(buffer, 1, type, packed, bytes, &position, MPI_COMM_SELF);
    } else {
        (void) opal_iov_cache_form_pack(layout->form, buffer, 0, (uint64_t) bytes, packed);
    }
    return bench_now() - begin;
}

/* Rates of packing by the length of blocks. */
static void cpu(tune_t *tune)
{
    const int bytes = 4 << 20;
    char *buffer = bench_alloc(2 * (size_t) bytes), *packed = bench_alloc((size_t) bytes);
    int block = OPAL_UMRDDT_TUNING_CURVE_LEAST;

    memset(buffer, 1, 2 * (size_t) bytes);
    memset(packed, 1, (size_t) bytes);
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS;
         ++i, block *= OPAL_UMRDDT_TUNING_CURVE_STEP) {
        MPI_Datatype type = tune_vector(bytes / block, block);
        opal_iov_cache_layout_t *layout = tune_layout(tune_vector(bytes / block, block));
        double samples[2][7];
        bench_times_t by_mpi, by_us;

        for (int j = 0; j < 7; ++j) {
            samples[0][j] = pack(buffer, packed, bytes, type, NULL);
            samples[1][j] = pack(buffer, packed, bytes, type, layout);
        }
        bench_times_summarise(samples[0], 7, &by_mpi);
        bench_times_summarise(samples[1], 7, &by_us);
        tune_enter(tune, &tune->tuning.cpu_copy[i], tune_index("cpu_copy"), bytes / by_mpi.median);
        tune_enter(tune, &tune->tuning.cpu_pack[i], tune_index("cpu_pack"), bytes / by_us.median);
        tune_point(tune, TUNE_CURVE_CPU_COPY, block, bytes / by_mpi.median);
        tune_point(tune, TUNE_CURVE_CPU_PACK, block, bytes / by_us.median);
        OBJ_RELEASE(layout);
        MPI_Type_free(&type);
    }
    free(packed);
    free(buffer);
}

/* A message of one piece, by the base PML. */
static double one_piece(tune_t *tune, void *send, void *recv, size_t bytes)
{
    MPI_Datatype type;
    double time;

    MPI_Type_contiguous((int) bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    time = tune_message(tune, MCA_PML_UMRDDT_SCHEME_BASE, send, recv, type, NULL);
    MPI_Type_free(&type);
    tune_point(tune, TUNE_CURVE_HOST, (double) bytes, time);
    return time;
}

void tune_host(tune_t *tune)
{
    const size_t small = 104, large = (size_t) 8 << 20; /* as large as an envelope */
    char *send = bench_alloc(large), *recv = bench_alloc(large);
    double latency, time;

    memset(send, 1, large);
    memset(recv, 1, large);
    tune_progress(tune, "the base PML");
    latency = one_piece(tune, send, recv, small);
    time = one_piece(tune, send, recv, large) - latency;
    if (tune->near) {
        TUNE_FIGURE(tune, near_latency, latency);
        TUNE_FIGURE(tune, near_rate, (double) large / time);
    } else {
        TUNE_FIGURE(tune, far_latency, latency);
        TUNE_FIGURE(tune, far_rate, (double) large / time);
    }
    free(recv);
    free(send);
    tune_progress(tune, "packing by the CPU");
    cpu(tune);
}

void tune_host_points(tune_t *tune)
{
    const size_t most = (size_t) 4 << 20;
    char *send = bench_alloc(most), *recv = bench_alloc(most);

    memset(send, 1, most);
    memset(recv, 1, most);
    tune_progress(tune, "for the plots: the base PML");
    for (size_t bytes = 1024; bytes <= most && tune_time_left(tune); bytes *= 8) {
        (void) one_piece(tune, send, recv, bytes);
    }
    free(recv);
    free(send);
}
