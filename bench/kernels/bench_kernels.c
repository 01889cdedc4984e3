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
 * How fast the kernels are on the machine's first GPU, and from it to the second, against the
 * driver's own copies. No test: nothing here fails because it is slow, only because it is wrong.
 *
 *     bench_kernels [--mib N | --kib N] [PART ...]
 *
 * PARTs: blocks bypass schemes fit fused host layouts large latency profile; all but the last, if
 * none is named. One line a figure, separated by tabs: part, what, ..., microseconds, GB/s of
 * payload, percent of the driver's copy of the same bytes. profile launches each kernel once, for
 * ncu to count what it does (bench/check_profile puts the two together), and has no times.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/datatype/singleton.h"

#include "opal/constants.h"

#include "bench/bench_util.h"
#include "bench/layouts.h"
#include "bench_kernels.h"

#define PLACES 6

bench_t bench_state;
uint64_t bench_message = UINT64_C(64) << 20;
static double floor_us; /* of the driver's copy of a message */

/* ---------------------------------------------------------------------------------------------
 * Layouts of one message
 * ------------------------------------------------------------------------------------------- */

/* `n` blocks, `apart` bytes from one to the next. */
opal_iov_cache_form_t *bench_vector(uint64_t block, uint64_t apart, uint64_t n)
{
    opal_iov_cache_form_t *form = NULL;
    MPI_Datatype bytes, type;

    MPI_Type_contiguous((int) block, MPI_BYTE, &bytes);
    MPI_Type_create_hvector((int) n, 1, (MPI_Aint) apart, bytes, &type);
    MPI_Type_commit(&type);
    if (OPAL_SUCCESS != opal_iov_cache_form_create(opal_type(type), 1, &form)) {
        bench_fatal("no form");
    }
    MPI_Type_free(&type);
    MPI_Type_free(&bytes);
    return form;
}

/* Blocks in random order, half of the array gaps: of one length, or else of one half to one and a
 * half of it, in multiples of 4. */
opal_iov_cache_form_t *bench_scattered(uint64_t block, uint64_t n, bool one_length)
{
    opal_iov_cache_iov_t *pieces = bench_alloc(n * sizeof(*pieces));
    int *slots = bench_random_distinct((int) n, (int) n, 7);
    opal_iov_cache_form_t *form = NULL;
    uint64_t state = 1, i;

    for (i = 0; i < n; ++i) {
        pieces[i].offset = (int64_t) slots[i] * 2 * (int64_t) block;
        pieces[i].length =
            one_length ? block : block / 2 + bench_random(&state) % (block / 4 + 1) * 4 % block;
    }
    if (OPAL_SUCCESS != opal_iov_cache_form_of_pieces(pieces, n, &form)) {
        bench_fatal("no form");
    }
    free(slots);
    free(pieces);
    return form;
}

/* ---------------------------------------------------------------------------------------------
 * Lines
 * ------------------------------------------------------------------------------------------- */

void bench_line(const char *part, const char *what, const char *how, double us, uint64_t size,
                double bare, const opal_umrddt_gpu_plan_t *plan)
{
    printf("%s\t%s\t%s\t", part, what, how);
    if (0 > us) {
        printf("-\t-\t-\n");
        return;
    }
    if (0 < us) {
        printf("%.2f\t%.1f\t%.0f", us, (double) size / us / 1e3, 0 < bare ? 100 * bare / us : 0);
    } else {
        printf("*\t*\t*"); /* not timed */
    }
    if (NULL != plan) {
        printf("\t%s %ux%ux%u of %ux%ux%u, width %u",
               opal_umrddt_gpu_kernel_name(plan->kernel) + 11, plan->grid[0], plan->grid[1],
               plan->grid[2], plan->block[0], plan->block[1], plan->block[2],
               plan->args.args.width);
    }
    printf("\n");
    fflush(stdout);
}

/* Time one copy; either form may be NULL. */
double bench_one_copy(const opal_iov_cache_form_t *from, opal_umrddt_gpu_scheme_t from_scheme,
                      const opal_iov_cache_form_t *to, opal_umrddt_gpu_scheme_t to_scheme,
                      unsigned places, opal_umrddt_gpu_plan_t *plan)
{
    const uint64_t size = NULL != from ? from->size : to->size;
    bench_end_t ends[2];
    double us = -1;

    memset(ends, 0, sizeof(ends));
    if (bench_end(&bench_state, false, from, size, from_scheme, places, &ends[0])
        && bench_end(&bench_state, true, to, size, to_scheme, places, &ends[1])) {
        us = bench_copy(&bench_state, &ends[0], &ends[1], size, plan);
    }
    bench_end_free(&bench_state, &ends[0]);
    bench_end_free(&bench_state, &ends[1]);
    return us;
}

static void pack_and_unpack(const char *part, const char *what, const opal_iov_cache_form_t *form,
                            opal_umrddt_gpu_scheme_t scheme)
{
    opal_umrddt_gpu_plan_t plan;
    char how[80];
    double us;

    us = bench_one_copy(form, scheme, NULL, 0, PLACES, &plan);
    snprintf(how, sizeof(how), "pack %s", opal_umrddt_gpu_scheme_name(scheme));
    bench_line(part, what, how, us, form->size, floor_us, &plan);
    us = bench_one_copy(NULL, 0, form, scheme, PLACES, &plan);
    snprintf(how, sizeof(how), "unpack %s", opal_umrddt_gpu_scheme_name(scheme));
    bench_line(part, what, how, us, form->size, floor_us, &plan);
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static const uint64_t lengths[] = {4, 8, 16, 32, 64, 100, 128, 256, 512, 1024, 4096, 65536};

/* The driver's copy of rows, as a pack. */
static void rows_by_driver(bench_t *on, void *what, unsigned turn)
{
    CUDA_MEMCPY2D copy = *(const CUDA_MEMCPY2D *) what;
    const uint64_t apart = copy.srcPitch * copy.Height;

    turn %= PLACES;
    copy.srcDevice += turn * apart;
    copy.dstDevice += turn * apart / 2;
    REAL_OK(&on->gpu[on->worker], cuMemcpy2DAsync_v2(&copy, on->stream));
}

static void part_blocks(void)
{
    size_t i;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        const uint64_t block = lengths[i], n = bench_message / block;
        opal_iov_cache_form_t *form = bench_vector(block, 2 * block, n);
        CUDA_MEMCPY2D copy;
        char what[80];

        snprintf(what, sizeof(what), "vector %" PRIu64, block);
        pack_and_unpack("blocks", what, form, OPAL_UMRDDT_GPU_AUTO);
        pack_and_unpack("blocks", what, form, OPAL_UMRDDT_GPU_TEMPI);
        pack_and_unpack("blocks", what, form, OPAL_UMRDDT_GPU_YAKSA);
        opal_iov_cache_form_free(form);
        memset(&copy, 0, sizeof(copy));
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = bench_state.source;
        copy.dstDevice = bench_state.target;
        copy.srcPitch = 2 * block;
        copy.dstPitch = block;
        copy.WidthInBytes = block;
        copy.Height = n;
        if (64 <= block) {
            bench_line("blocks", what, "pack cuMemcpy2D",
                       bench_rounds(&bench_state, rows_by_driver, &copy), bench_message, floor_us,
                       NULL);
        }
        if (4 < block) {
            form = bench_scattered(block, n, true);
            snprintf(what, sizeof(what), "indexed_block %" PRIu64, block);
            pack_and_unpack("blocks", what, form, OPAL_UMRDDT_GPU_AUTO);
            opal_iov_cache_form_free(form);
        }
    }
}

static void part_schemes(void)
{
    static const uint64_t some[] = {8, 64, 1024};
    size_t i;
    int kind, scheme;

    for (i = 0; i < sizeof(some) / sizeof(some[0]); ++i) {
        for (kind = 0; kind < 3; ++kind) {
            static const char *const kinds[] = {"vector", "indexed_block", "indexed"};
            const uint64_t block = some[i], n = bench_message / block;
            opal_iov_cache_form_t *form = 0 == kind ? bench_vector(block, 2 * block, n)
                                                    : bench_scattered(block, n, 1 == kind);
            char what[80];

            snprintf(what, sizeof(what), "%s %" PRIu64, kinds[kind], block);
            for (scheme = 0; scheme < OPAL_UMRDDT_GPU_SCHEMES; ++scheme) {
                pack_and_unpack("schemes", what, form, (opal_umrddt_gpu_scheme_t) scheme);
            }
            opal_iov_cache_form_free(form);
        }
    }
}

/* Pinned memory of the CPU, and which way. */
typedef struct host_t {
    void *pinned;
    bool to_gpu;
} host_t;

static void host_copy(bench_t *on, void *what, unsigned turn)
{
    const real_gpu_t *gpu = &on->gpu[on->worker];
    const host_t *host = what;
    CUdeviceptr pinned = (CUdeviceptr) (uintptr_t) host->pinned;

    (void) turn;
    REAL_OK(gpu, cuMemcpyAsync(host->to_gpu ? on->target : pinned,
                               host->to_gpu ? pinned : on->source, bench_message, on->stream));
}

/* What staging cannot beat: the driver's copies between a GPU and pinned memory. */
static void part_host(void)
{
    const real_gpu_t *gpu = &bench_state.gpu[bench_state.worker];
    host_t host = {NULL, false};

    REAL_OK(gpu, cuMemHostAlloc(&host.pinned, bench_message, CU_MEMHOSTALLOC_PORTABLE));
    memset(host.pinned, 1, bench_message);
    bench_line("host", "contiguous", "D2H", bench_rounds(&bench_state, host_copy, &host),
               bench_message, 0, NULL);
    host.to_gpu = true;
    bench_line("host", "contiguous", "H2D", bench_rounds(&bench_state, host_copy, &host),
               bench_message, 0, NULL);
    REAL_OK(gpu, cuMemFreeHost(host.pinned));
}

static void part_fit(void)
{
    static const uint64_t some[] = {8, 64, 1024, 65536};
    const opal_umrddt_gpu_fit_t fit = bench_state.fit;
    size_t i;

    for (i = 0; i < sizeof(some) / sizeof(some[0]); ++i) {
        opal_iov_cache_form_t *form = bench_vector(some[i], 2 * some[i], bench_message / some[i]);
        uint32_t threads, blocks;

        for (threads = 64; threads <= 256; threads *= 2) {
            for (blocks = 1024 / threads; blocks <= 64 * 256 / threads; blocks *= 2) {
                opal_umrddt_gpu_plan_t plan;
                char what[80], how[80];
                double us;

                bench_state.fit.packed = 1;
                bench_state.fit.threads = threads;
                bench_state.fit.blocks = blocks;
                us = bench_one_copy(form, OPAL_UMRDDT_GPU_AUTO, NULL, 0, PLACES, &plan);
                snprintf(what, sizeof(what), "vector %" PRIu64, some[i]);
                snprintf(how, sizeof(how), "pack auto %u threads %u blocks", threads, blocks);
                bench_line("fit", what, how, us, bench_message, floor_us, &plan);
                us = bench_one_copy(NULL, 0, form, OPAL_UMRDDT_GPU_AUTO, PLACES, &plan);
                snprintf(how, sizeof(how), "unpack auto %u threads %u blocks", threads, blocks);
                bench_line("fit", what, how, us, bench_message, floor_us, &plan);
            }
        }
        bench_state.fit = fit;
        opal_iov_cache_form_free(form);
    }
}

static void part_fused(void)
{
    static const struct {
        uint64_t from, to;
        int kinds[2]; /* 0: vector; 1: indexed_block; 2: indexed */
    } cases[] = {{8, 8, {0, 0}},       {64, 64, {0, 0}},     {64, 1024, {0, 0}},
                 {1024, 1024, {0, 0}}, {4096, 4096, {0, 0}}, {8, 8, {1, 1}},
                 {64, 64, {1, 1}},     {1024, 1024, {1, 1}}, {8, 1024, {1, 0}}};
    const int worker = bench_state.worker;
    size_t i;
    int k;

    for (; bench_state.worker < bench_state.gpus;
         bench_worker(&bench_state, bench_state.worker + 1)) {
        const double bare = bench_driver_copy(&bench_state, bench_message);

        bench_line("fused", 0 == bench_state.worker ? "one GPU" : "peer", "driver copy", bare,
                   bench_message, bare, NULL);
        for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
            static const char *const kinds[] = {"vector", "indexed_block", "indexed"};
            opal_iov_cache_form_t *forms[2];
            opal_umrddt_gpu_plan_t plan;
            char how[80];

            for (k = 0; k < 2; ++k) {
                const uint64_t block = 0 == k ? cases[i].from : cases[i].to;

                forms[k] =
                    0 == cases[i].kinds[k]
                        ? bench_vector(block, 2 * block, bench_message / block)
                        : bench_scattered(block, bench_message / block, 1 == cases[i].kinds[k]);
            }
            snprintf(how, sizeof(how), "%s %" PRIu64 " to %s %" PRIu64, kinds[cases[i].kinds[0]],
                     cases[i].from, kinds[cases[i].kinds[1]], cases[i].to);
            bench_line("fused", 0 == bench_state.worker ? "one GPU" : "peer", how,
                       bench_one_copy(forms[0], OPAL_UMRDDT_GPU_AUTO, forms[1],
                                      OPAL_UMRDDT_GPU_AUTO, PLACES, &plan),
                       bench_message, bare, &plan);
            opal_iov_cache_form_free(forms[0]);
            opal_iov_cache_form_free(forms[1]);
        }
        if (bench_state.worker + 1 == bench_state.gpus) {
            break;
        }
    }
    bench_worker(&bench_state, worker);
}

static void part_layouts(void)
{
    const int worker = bench_state.worker;
    size_t i;

    for (; bench_state.worker < bench_state.gpus;
         bench_worker(&bench_state, bench_state.worker + 1)) {
        for (i = 0; i < bench_layout_count; ++i) {
            opal_iov_cache_form_t *forms[2] = {NULL, NULL};
            opal_umrddt_gpu_plan_t plan;
            bench_layout_t layout;
            double bare;

            bench_layout_create(&bench_layout_table[i], &layout);
            if (OPAL_SUCCESS
                    != opal_iov_cache_form_create(opal_type(layout.send.type),
                                                  (size_t) layout.send.count, &forms[0])
                || OPAL_SUCCESS
                       != opal_iov_cache_form_create(opal_type(layout.recv.type),
                                                     (size_t) layout.recv.count, &forms[1])) {
                bench_fatal("no form");
            }
            bare = bench_driver_copy(&bench_state, forms[0]->size);
            bench_line("layouts", bench_layout_table[i].name,
                       0 == bench_state.worker ? "one GPU" : "peer",
                       bench_one_copy(forms[0], OPAL_UMRDDT_GPU_AUTO, forms[1],
                                      OPAL_UMRDDT_GPU_AUTO, PLACES, &plan),
                       forms[0]->size, bare, &plan);
            opal_iov_cache_form_free(forms[0]);
            opal_iov_cache_form_free(forms[1]);
            bench_layout_destroy(&layout);
        }
        if (bench_state.worker + 1 == bench_state.gpus) {
            break;
        }
    }
    bench_worker(&bench_state, worker);
}

static void part_profile(void)
{
    static const uint64_t some[] = {8, 64, 100, 128, 1024};
    size_t i;

    bench_state.once = true;
    for (i = 0; i < sizeof(some) / sizeof(some[0]); ++i) {
        const uint64_t block = some[i], n = bench_message / block;
        opal_iov_cache_form_t *forms[] = {bench_vector(block, 2 * block, n),
                                          bench_scattered(block, n, true)};
        int k;

        for (k = 0; k < 2; ++k) {
            char what[80];

            snprintf(what, sizeof(what), "%s %" PRIu64, 0 == k ? "vector" : "indexed_block", block);
            pack_and_unpack("profile", what, forms[k], OPAL_UMRDDT_GPU_AUTO);
            opal_iov_cache_form_free(forms[k]);
        }
    }
    bench_state.once = false;
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"blocks", part_blocks},   {"bypass", bench_part_bypass}, {"latency", bench_part_latency},
    {"fused", part_fused},     {"large", bench_part_large},   {"layouts", part_layouts},
    {"schemes", part_schemes}, {"host", part_host},           {"fit", part_fit},
    {"profile", part_profile}};

int main(int argc, char **argv)
{
    int i, first = 1;
    size_t k;

    singleton_init(MPI_THREAD_SINGLE);
    if (2 < argc && (0 == strcmp(argv[1], "--mib") || 0 == strcmp(argv[1], "--kib"))) {
        bench_message = strtoull(argv[2], NULL, 0) << ('m' == argv[1][2] ? 20 : 10);
        first = 3;
    }
    if (UINT64_C(64) << 10 > bench_message || UINT64_C(512) << 20 < bench_message) {
        bench_fatal("messages have 64 KiB to 512 MiB");
    }
    /* what parts with messages of their own need, unless they are small */
    bench_begin(UINT64_C(16) << 20 > bench_message ? 48 * bench_message : UINT64_C(3) << 30,
                &bench_state);
    floor_us = bench_driver_copy(&bench_state, bench_message);
    printf("# %s, %d multiprocessors, %d GPUs\n", bench_state.gpu[0].name,
           bench_state.gpu[0].processors, bench_state.gpus);
    bench_line("blocks", "contiguous", "driver copy", floor_us, bench_message, floor_us, NULL);
    for (k = 0; k < sizeof(parts) / sizeof(parts[0]); ++k) {
        bool wanted = first >= argc && part_profile != parts[k].run;

        for (i = first; i < argc; ++i) {
            wanted = wanted || 0 == strcmp(argv[i], parts[k].name);
        }
        if (wanted) {
            parts[k].run();
        }
    }
    printf("# %d wrong\n", bench_state.failures);
    MPI_Finalize();
    return 0 == bench_state.failures ? 0 : 1;
}
