/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* HCA parameters for system memory, by messages with and without mkeys. */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_util.h"
#include "tune.h"

/* Unused buffers, for the cost of a first message. */
#define FRESH 5

/* Memory that was never registered, with allocated pages. */
static void *fresh(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (MAP_FAILED == memory) {
        bench_fatal("no memory");
    }
    memset(memory, 1, bytes);
    return memory;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/* The additional time of the first message of a layout and buffer: the median of some. Negative:
 * the messages did not use this scheme. */
static double extra(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, MPI_Datatype type,
                    size_t bytes)
{
    double samples[FRESH], first = 0;

    for (int i = 0; i < FRESH; ++i) {
        char *send = fresh(bytes), *recv = fresh(bytes);
        double later = tune_message(tune, scheme_id, send, recv, type, &first);

        munmap(send, bytes);
        munmap(recv, bytes);
        if (0 > later) {
            return -1;
        }
        samples[i] = first - later;
    }
    qsort(samples, FRESH, sizeof(samples[0]), by_value);
    return samples[FRESH / 2] < 0 ? 0 : samples[FRESH / 2];
}

/* Later messages of a vector. */
static double vector(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, int pieces, int block)
{
    MPI_Datatype type = tune_vector(pieces, block);
    char *send = fresh(tune_span(pieces, block)), *recv = fresh(tune_span(pieces, block));
    double time = tune_message(tune, scheme_id, send, recv, type, NULL);

    munmap(send, tune_span(pieces, block));
    munmap(recv, tune_span(pieces, block));
    MPI_Type_free(&type);
    return time;
}

/* Blocks of 16 bytes at irregular distances: each is an entry of an mkey. */
static MPI_Datatype irregular(int pieces)
{
    int *displacements = bench_alloc((size_t) pieces * sizeof(int)), at = 0;
    uint64_t state = 1;
    MPI_Datatype type;

    for (int i = 0; i < pieces; ++i) {
        displacements[i] = at;
        at += 17 + (int) (bench_random(&state) % 31);
    }
    MPI_Type_create_indexed_block(pieces, 16, displacements, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    free(displacements);
    return type;
}

static double control(const tune_t *tune)
{
    return 2 * (tune->near ? tune->tuning.near_latency : tune->tuning.far_latency);
}

/* Writes of messages without mkeys, and registration, which is all that their first ones wait for.
 */
static bool by_direct(tune_t *tune, double *registered)
{
    const int few = 2, many = 1024;
    double small = vector(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, few, 1024), large;
    MPI_Datatype type;

    if (0 > small) {
        return false;
    }
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, many, 64);
    /* the sender's pieces need a few more writes, which the tuning parameter includes */
    TUNE_FIGURE(tune, hca_write, (large - small) / (many - few));
    TUNE_FIGURE(tune, hca_latency, small - control(tune));
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, 16, 512 << 10);
    TUNE_FIGURE(tune, hca_rate, 16.0 * (512 << 10) / (large - small));

    type = tune_vector(few, 1024);
    *registered = extra(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, type, tune_span(few, 1024));
    MPI_Type_free(&type);
    type = tune_vector(few, 4 << 20);
    large = extra(tune, MCA_PML_UMRDDT_SCHEME_DIRECT, type, tune_span(few, 4 << 20));
    MPI_Type_free(&type);
    TUNE_FIGURE(tune, register_base, *registered / 2);
    TUNE_FIGURE(tune, register_mib, (large - *registered) / 2 / 12);
    return true;
}

void tune_hca(tune_t *tune)
{
    const int pieces = 4096;
    double small, large, registered = 0, keys, more;
    MPI_Datatype type;
    bool direct;

    if (!tune->umrddt || !tune_time_left(tune)) {
        return;
    }
    tune_progress(tune, "the HCA: writes and registration");
    direct = by_direct(tune, &registered);
    if (!tune_time_left(tune)) {
        return;
    }
    tune_progress(tune, "the HCA: mkeys");
    small = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, 2, 1024);
    if (0 > small) {
        return;
    }
    TUNE_FIGURE(tune, hca_latency, small - control(tune));
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, 16, 512 << 10);
    TUNE_FIGURE(tune, hca_rate, 16.0 * (512 << 10) / (large - small));
    large = vector(tune, MCA_PML_UMRDDT_SCHEME_UMR, 16384, 16);
    TUNE_FIGURE(tune, hca_entry, (large - small) / (2 * 16384));
    if (!direct) {
        return; /* registration and keys cannot be separated */
    }
    type = tune_vector(2, 1024);
    keys = extra(tune, MCA_PML_UMRDDT_SCHEME_UMR, type, tune_span(2, 1024));
    MPI_Type_free(&type);
    TUNE_FIGURE(tune, key_map, (keys - registered) / 2);
    type = irregular(pieces);
    more = extra(tune, MCA_PML_UMRDDT_SCHEME_UMR, type, (size_t) pieces * 48);
    MPI_Type_free(&type);
    TUNE_FIGURE(tune, key_entry, (more - keys) / (2 * pieces));
}

/* Messages by size and by number of pieces, and first ones by that. */
static void points(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id)
{
    const bool umr = MCA_PML_UMRDDT_SCHEME_UMR == scheme_id;

    for (int block = 256; block <= 512 << 10; block *= 8) {
        double time = vector(tune, scheme_id, TUNE_PIECES, block);

        if (0 > time) {
            return; /* the scheme is not available, or there is no time */
        }
        tune_point(tune, umr ? TUNE_CURVE_UMR : TUNE_CURVE_DIRECT, (double) TUNE_PIECES * block,
                   time);
    }
    for (int pieces = 32; pieces <= 16384; pieces *= 8) {
        tune_point(tune, umr ? TUNE_CURVE_PIECES_UMR : TUNE_CURVE_PIECES_DIRECT, pieces,
                   vector(tune, scheme_id, pieces, TUNE_BLOCK));
    }
    for (int pieces = 128; pieces <= 8192; pieces *= 8) {
        MPI_Datatype type = irregular(pieces);

        tune_point(tune, umr ? TUNE_CURVE_FIRST_UMR : TUNE_CURVE_FIRST_DIRECT, pieces,
                   extra(tune, scheme_id, type, (size_t) pieces * 48));
        MPI_Type_free(&type);
    }
}

void tune_hca_points(tune_t *tune)
{
    if (!tune->umrddt || !tune_time_left(tune)) {
        return;
    }
    tune_progress(tune, "for the plots: the HCA");
    points(tune, MCA_PML_UMRDDT_SCHEME_DIRECT);
    points(tune, MCA_PML_UMRDDT_SCHEME_UMR);
}
