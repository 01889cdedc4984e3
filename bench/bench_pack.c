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
 * The time of MPI_Pack and MPI_Unpack between a layout in GPU memory and GPU memory, to the return
 * of the call, when the GPU is done; beside it the driver's copy of as many bytes within the GPU.
 * It is linked with libumrddt_mpi.
 *
 * usage: mpirun -n 1 --mca pml umrddt bench_pack [PATTERN [ITERATIONS]]
 *        mpirun -n 1 --mca pml umrddt bench_pack --system CALLS
 *
 * --system: only so many calls of MPI_Pack on system memory; test_pack counts their instructions.
 * PATTERN: a glob of layouts of umrddt_bench (--list); "*" by default, up to 16 MiB. Every layout
 * is checked once against MPI_Pack on system memory. The output is one line a layout, in columns
 * with tabs: bytes, blocks, and medians in microseconds.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "bench_gpu.h"
#include "bench_util.h"
#include "layouts.h"

#define BYTES_MOST ((uint64_t) 16 << 20)
#define WARMUP     10

static int iterations = 200;

/* A layout, and its packed bytes. */
typedef struct work_t {
    const bench_side_t *side;
    unsigned char *array;
    unsigned char *packed;
    unsigned char *other; /* for the driver's copies */
} work_t;

static void pack(const work_t *work)
{
    int position = 0;

    if (MPI_SUCCESS
        != MPI_Pack(work->array + work->side->origin, work->side->count, work->side->type,
                    work->packed, (int) work->side->bytes, &position, MPI_COMM_WORLD)) {
        bench_fatal("MPI_Pack failed");
    }
}

static void unpack(const work_t *work)
{
    int position = 0;

    if (MPI_SUCCESS
        != MPI_Unpack(work->packed, (int) work->side->bytes, &position,
                      work->array + work->side->origin, work->side->count, work->side->type,
                      MPI_COMM_WORLD)) {
        bench_fatal("MPI_Unpack failed");
    }
}

static void bare(const work_t *work)
{
    bench_gpu_copy(work->other, work->packed, work->side->bytes);
    bench_gpu_copy_end();
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/* The median, in microseconds. */
static double time_of(void (*call)(const work_t *), const work_t *work)
{
    double *times = bench_alloc(sizeof(double) * (size_t) iterations), median;

    for (int i = -WARMUP; i < iterations; ++i) {
        const double begin = bench_now();

        call(work);
        if (0 <= i) {
            times[i] = 1e6 * (bench_now() - begin);
        }
    }
    qsort(times, (size_t) iterations, sizeof(double), ascending);
    median = times[iterations / 2];
    free(times);
    return median;
}

/* Compare with MPI_Pack on system memory. */
static void check(const char *name, const work_t *work)
{
    const size_t bytes = work->side->bytes, array = work->side->array_bytes;
    unsigned char *image = bench_alloc(array), *wanted = bench_alloc(bytes),
                  *got = bench_alloc(bytes);
    uint64_t state = 1;
    int position = 0;

    for (size_t i = 0; i < array; ++i) {
        image[i] = (unsigned char) bench_random(&state);
    }
    bench_gpu_write(work->array, image, array);
    pack(work);
    bench_gpu_read(got, work->packed, bytes);
    MPI_Pack(image + work->side->origin, work->side->count, work->side->type, wanted, (int) bytes,
             &position, MPI_COMM_WORLD);
    if (0 != memcmp(wanted, got, bytes)) {
        bench_fatal("%s: the packed bytes are wrong", name);
    }
    memset(image, 0, array);
    bench_gpu_write(work->array, image, array);
    unpack(work);
    memset(wanted, 0, bytes);
    bench_gpu_read(image, work->array, array);
    position = 0;
    MPI_Pack(image + work->side->origin, work->side->count, work->side->type, wanted, (int) bytes,
             &position, MPI_COMM_WORLD);
    if (0 != memcmp(wanted, got, bytes)) {
        bench_fatal("%s: the unpacked bytes are wrong", name);
    }
    free(image);
    free(wanted);
    free(got);
}

static void measure(const bench_layout_entry_t *entry)
{
    bench_layout_t layout;
    work_t work;
    double times[3];

    bench_layout_create(entry, &layout);
    work.side = &layout.send;
    if (BYTES_MOST >= work.side->bytes && BYTES_MOST * 16 >= work.side->array_bytes) {
        work.array = bench_gpu_alloc(work.side->array_bytes);
        work.packed = bench_gpu_alloc(work.side->bytes);
        work.other = bench_gpu_alloc(work.side->bytes);
        check(entry->name, &work);
        times[0] = time_of(pack, &work);
        times[1] = time_of(unpack, &work);
        times[2] = time_of(bare, &work);
        printf("%s\t%llu\t%zu\t%.2f\t%.2f\t%.2f\n", entry->name,
               (unsigned long long) work.side->bytes, work.side->piece_count, times[0], times[1],
               times[2]);
        fflush(stdout);
        bench_gpu_free(work.array);
        bench_gpu_free(work.packed);
        bench_gpu_free(work.other);
    }
    bench_layout_destroy(&layout);
}

static int system_memory(int calls)
{
    unsigned char from[64] = {0}, *to = bench_alloc(sizeof(from));

    for (int i = 0; i < calls; ++i) {
        int position = 0;

        MPI_Pack(from, sizeof(from), MPI_BYTE, to, sizeof(from), &position, MPI_COMM_WORLD);
    }
    free(to);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    const char *pattern = 1 < argc ? argv[1] : "*", *why_not;
    int (*support)(void) = NULL;

    MPI_Init(&argc, &argv);
    if (2 < argc && 0 < atoi(argv[2])) {
        iterations = atoi(argv[2]);
    }
    if (0 == strcmp(pattern, "--system")) {
        return system_memory(iterations);
    }
    why_not = bench_gpu_open(0);
    if (NULL != why_not) {
        printf("SKIPPED: %s\n", why_not);
        MPI_Finalize();
        return 77;
    }
    *(void **) &support = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    if (NULL == support || 1 != support()) {
        bench_fatal("umrddt is not active: mpirun --mca pml umrddt");
    }
    printf("# %s, medians of %d, microseconds\n", bench_gpu_name(), iterations);
    printf("layout\tbytes\tblocks\tpack\tunpack\tdriver_copy\n");
    for (size_t i = 0; i < bench_layout_count; ++i) {
        if (bench_layout_is_meant(i, pattern)) {
            measure(&bench_layout_table[i]);
        }
    }
    MPI_Finalize();
    return 0;
}
