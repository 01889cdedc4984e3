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
 * Exchanges of applications, all ranks at once, each with the same amount of data for any number of
 * ranks (weak scaling): the stencils and the N-body code of HAND's experiments, the stencil of the
 * UMR paper (128^3), and the halo of TEMPI; and MPI_Alltoallw of blocks of a matrix. See usage().
 * Every expected word is checked, and also that no other word changed. umrddt_bench --exchange
 * times them beside their contiguous equivalents.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "bench_gpu.h"
#include "bench_pvars.h"
#include "bench_times.h"
#include "bench_util.h"
#include "exchange.h"

#define WARMUP 3

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: mpirun -n RANKS bench_exchange [--memory host|gpu] [--iterations N] [--side N] PATTERN...\n\n"
        "Runs each pattern N times (default 10) after %d warm-ups, and verifies every word. Prints per iteration:\n"
        "messages, bytes and contiguous pieces that a rank sends to others; counters of umrddt (means over the\n"
        "ranks, both directions); the median time of the slowest rank in microseconds.\n"
        "--side sets the side of the grid of a rank, or its number of bodies.\n\n",
        WARMUP);
    for (size_t i = 0; i < exchange_pattern_count; ++i) {
        fprintf(out, "  %-14s %s\n", exchange_patterns[i].name, exchange_patterns[i].what);
    }
}

/* One iteration, checked. @return its time, seconds, of the slowest rank */
static double iterate(exchange_t *exchange, MPI_Comm control, int iteration)
{
    exchange_wrong_t wrong;
    double time, slowest;

    exchange_fill(exchange, iteration);
    MPI_Barrier(control);
    time = bench_now();
    exchange_run(exchange, false);
    time = bench_now() - time;
    MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, control);
    if (!exchange_check(exchange, iteration, &wrong)) {
        bench_fatal(
            "bench_exchange: %s, rank %d of %d, iteration %d: word %zu is %llx instead of %llx",
            exchange->name, exchange->rank, exchange->size, iteration, wrong.word,
            (unsigned long long) wrong.got, (unsigned long long) wrong.expected);
    }
    return slowest;
}

/* The counters that have a column. */
static const struct {
    const char *name;
    int pvar;
} columns[] = {
    {"handled", BENCH_PVAR_HANDLED_SENDS}, {"fallback", BENCH_PVAR_FALLBACK_SENDS},
    {"umr", BENCH_PVAR_KEYS_MAPPED},       {"entries", BENCH_PVAR_KEY_ENTRIES},
    {"rdma", BENCH_PVAR_WRITES_POSTED},    {"ctrl_B", BENCH_PVAR_CONTROL_BYTES},
    {"kernels", BENCH_PVAR_GPU_LAUNCHES},  {"copies", BENCH_PVAR_GPU_DRIVER_COPIES},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void print_head(void)
{
    printf("%-14s %5s %6s %9s %9s %9s", "pattern", "ranks", "side", "messages", "bytes", "pieces");
    for (size_t i = 0; i < COLUMNS; ++i) {
        printf(" %9s", columns[i].name);
    }
    printf(" %10s  verified\n", "us");
}

/* The sends of a rank, and its counters: means of the ranks. */
static void print_row(const exchange_t *exchange, MPI_Comm control, int iterations,
                      const uint64_t *counted, double *samples)
{
    uint64_t mine[3], all[3], sums[BENCH_PVAR_COUNT];
    const double ranks = exchange->size;
    bench_times_t times;

    exchange_sums(exchange, mine);
    MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, control);
    MPI_Reduce(counted, sums, BENCH_PVAR_COUNT, MPI_UINT64_T, MPI_SUM, 0, control);
    if (0 != exchange->rank) {
        return;
    }
    bench_times_summarise(samples, iterations, &times);
    printf("%-14s %5d %6d %9.1f %9.0f %9.0f", exchange->name, exchange->size, exchange->side,
           (double) all[1] / ranks, (double) all[0] / ranks, (double) all[2] / ranks);
    for (size_t i = 0; i < COLUMNS; ++i) {
        printf(" %9.2f", (double) sums[columns[i].pvar] / ranks / iterations);
    }
    printf(" %10.1f  yes\n", times.median);
    fflush(stdout);
}

static void run(const exchange_pattern_t *pattern, int side, int iterations, bool on_gpu,
                bench_pvars_t *pvars)
{
    uint64_t before[BENCH_PVAR_COUNT], counted[BENCH_PVAR_COUNT];
    double *samples = bench_alloc(sizeof(double) * (size_t) iterations);
    MPI_Comm comm, control;
    exchange_t exchange;
    MPI_Info info;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "pml_umrddt_scheme", "base"); /* not counted */
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &control);
    MPI_Info_free(&info);
    exchange_open_pattern(&exchange, pattern, side, comm, on_gpu);

    for (int i = 0; i < WARMUP + iterations; ++i) {
        double time;

        if (WARMUP == i) {
            bench_pvars_read(pvars, before);
        }
        time = iterate(&exchange, control, i);
        if (WARMUP <= i) {
            samples[i - WARMUP] = time;
        }
    }
    MPI_Barrier(control);
    bench_pvars_read(pvars, counted);
    for (int i = 0; i < BENCH_PVAR_COUNT; ++i) {
        counted[i] -= before[i];
    }
    print_row(&exchange, control, iterations, counted, samples);

    exchange_close(&exchange);
    MPI_Comm_free(&control);
    MPI_Comm_free(&comm);
    free(samples);
}

int main(int argc, char *argv[])
{
    int iterations = 10, side = 0, rank, size, arg;
    bool on_gpu = false, help = false, right = true;
    const char *why = NULL;
    bench_pvars_t pvars;

    for (arg = 1; arg < argc && '-' == argv[arg][0] && right && !help; arg += 2) {
        const char *text = arg + 1 < argc ? argv[arg + 1] : "";

        help = 0 == strcmp("--help", argv[arg]);
        if (0 == strcmp("--memory", argv[arg])) {
            on_gpu = 0 == strcmp("gpu", text);
            right = on_gpu || 0 == strcmp("host", text);
        } else if (0 == strcmp("--iterations", argv[arg])) {
            iterations = atoi(text);
            right = 0 < iterations;
        } else {
            side = atoi(text);
            right = 0 == strcmp("--side", argv[arg]) && 3 < side;
        }
    }
    for (int i = arg; i < argc; ++i) {
        right = right && NULL != exchange_find(argv[i]);
    }
    if (help || !right || arg >= argc) {
        usage(help ? stdout : stderr);
        return help ? 0 : 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 > size) {
        bench_fatal("bench_exchange: at least 2 ranks are required");
    }
    if (on_gpu && NULL != (why = bench_gpu_open(rank))) {
        bench_fatal("bench_exchange: no GPU: %s", why);
    }
    bench_pvars_open(&pvars);
    if (0 == rank) {
        print_head();
    }
    for (; arg < argc; ++arg) {
        run(exchange_find(argv[arg]), side, iterations, on_gpu, &pvars);
    }
    bench_pvars_close(&pvars);
    MPI_Finalize();
    return 0;
}
