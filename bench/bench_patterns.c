/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * The messages and collectives of an iteration of some applications, repeated, on a communicator
 * with or without the info key mpi_communication_pattern: for queries, which counts the resulting
 * queries to the CUDA driver. See usage().
 *
 * Only the number, kind and approximate length of the calls are those of the applications; the
 * peers form a ring, and nothing is computed.
 */

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_gpu.h"
#include "bench_times.h"
#include "bench_util.h"

#define MAX_MESSAGES 64
#define WARMUP       3
#define ROOM         ((size_t) 1 << 20)

/** An iteration: messages to neighbours, all begun before one is waited for, and sums. */
typedef struct {
    const char *name;
    int messages;
    int bytes;
    int rounds;  /* of these messages */
    int reduces; /* of a double each, behind them */
} iteration_t;

static const iteration_t iterations[] = {
    {"ping-pong", 1, 1024, 1, 0}, /* IMB's, to a neighbour and from one */
    {"allreduce", 0, 0, 0, 1},
    {"LULESH", 26, 7200, 1, 1},     /* all neighbours in a cube, then the time step */
    {"miniFE", 6, 16384, 1, 2},     /* a product with a matrix, two dot products */
    {"Quicksilver", 6, 512, 4, 1},  /* particles, until none are left to send */
    {"CloverLeaf", 4, 30720, 3, 1}, /* the sides of three fields, then the time step */
};
#define ITERATIONS (sizeof(iterations) / sizeof(iterations[0]))

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: mpirun -n RANKS bench_patterns NAME host|gpu KEY TIMES\n\n"
        "Runs TIMES iterations of the pattern NAME in system memory (host) or GPU memory (gpu), on\n"
        "a communicator with the info key mpi_communication_pattern = KEY ('none': without the\n"
        "key), and prints the time of an iteration.\n\n"
        "Patterns:");
    for (size_t i = 0; i < ITERATIONS; ++i) {
        fprintf(out, " %s", iterations[i].name);
    }
    fprintf(out, "\n");
}

static void iterate(const iteration_t *it, MPI_Comm comm, char *send, char *recv)
{
    MPI_Request requests[2 * MAX_MESSAGES];
    int rank, size, round, i;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (round = 0; round < it->rounds; ++round) {
        for (i = 0; i < it->messages; ++i) {
            const int step = 1 + i % (size - 1);
            const size_t at = (size_t) i * (size_t) it->bytes;

            MPI_Irecv(recv + at, it->bytes, MPI_BYTE, (rank - step + size) % size, i, comm,
                      &requests[i]);
            MPI_Isend(send + at, it->bytes, MPI_BYTE, (rank + step) % size, i, comm,
                      &requests[it->messages + i]);
        }
        MPI_Waitall(2 * it->messages, requests, MPI_STATUSES_IGNORE);
    }
    for (i = 0; i < it->reduces; ++i) {
        MPI_Allreduce(send, recv, 1, MPI_DOUBLE, MPI_MIN, comm);
    }
}

int main(int argc, char *argv[])
{
    const iteration_t *it = NULL;
    char *send, *recv;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm;
    const char *why;
    bool gpu;
    double *samples;
    bench_times_t summary;
    int rank, size, times, i;

    if (5 != argc) {
        usage(2 == argc && 0 == strcmp(argv[1], "--help") ? stdout : stderr);
        return 2 == argc && 0 == strcmp(argv[1], "--help") ? 0 : 2;
    }
    for (size_t n = 0; n < ITERATIONS; ++n) {
        if (0 == strcmp(iterations[n].name, argv[1])) {
            it = &iterations[n];
        }
    }
    gpu = 0 == strcmp("gpu", argv[2]);
    times = atoi(argv[4]);
    if (NULL == it || (!gpu && 0 != strcmp("host", argv[2])) || times < 1) {
        usage(stderr);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        bench_fatal("bench_patterns: at least 2 ranks are required");
    }
    /* In system memory, too: an application whose processes use no GPU has no queries. */
    why = bench_gpu_open(rank);
    if (NULL != why) {
        bench_fatal("bench_patterns: no GPU: %s", why);
    }
    if (gpu) {
        send = bench_gpu_alloc(ROOM);
        recv = bench_gpu_alloc(ROOM);
    } else {
        send = calloc(1, ROOM);
        recv = calloc(1, ROOM);
        if (NULL == send || NULL == recv) {
            bench_fatal("bench_patterns: no memory");
        }
    }
    if (0 != strcmp("none", argv[3])) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_communication_pattern", argv[3]);
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    if (MPI_INFO_NULL != info) {
        MPI_Info_free(&info);
    }
    samples = bench_alloc((size_t) times * sizeof(double));
    for (i = -WARMUP; i < times; ++i) {
        const double begin = bench_now();

        iterate(it, comm, send, recv);
        samples[0 < i ? i : 0] = bench_now() - begin;
    }
    bench_times_summarise(samples, times, &summary);
    if (0 == rank) {
        printf("%.3f us per iteration, minimum %.3f\n", summary.median, summary.min);
    }
    free(samples);
    MPI_Comm_free(&comm);
    if (gpu) {
        bench_gpu_free(send);
        bench_gpu_free(recv);
    } else {
        free(send);
        free(recv);
    }
    MPI_Finalize();
    return 0;
}
