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
 * Every kernel of reductions, compiled for the host, against plain C: random values, counts,
 * numbers of sources and alignments, in place and not. Bytes around the target, and those between
 * the value and the index of a pair, must stay, and no access may be misaligned. With
 * UMRDDT_TEST_GPU=real the kernels of the device run.
 *
 *     test_reduce [count [seed]]
 *     test_reduce --names
 */

#include "opal_config.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_fatbin.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_host.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_plan.h"

#include "real.h"

#define DEFAULT_COUNT 60
#define DEFAULT_SEED  20261126
#define SOURCES       UMRDDT_GPU_REDUCE_SOURCES
#define ELEMENTS      1200
#define SPACE         (16 * ELEMENTS + 64)

static uint64_t state;

static uint64_t dice(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

/* ---------------------------------------------------------------------------------------------
 * Plain C: as Open MPI's operations, a the input, b the input and output
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    float v;
    int k;
} fi_t;
typedef struct {
    double v;
    int k;
} di_t;
typedef struct {
    int64_t v;
    int k;
} li_t;
typedef struct {
    int v;
    int k;
} ii_t;
typedef struct {
    short v;
    int k;
} si_t;

#define EACH(TYPE, RESULT)                              \
    for (size_t i = 0; i < count; ++i) {                \
        TYPE x, y;                                      \
        memcpy(&x, (const TYPE *) a + i, sizeof(TYPE)); \
        memcpy(&y, (const TYPE *) b + i, sizeof(TYPE)); \
        y = (TYPE) (RESULT);                            \
        memcpy((TYPE *) b + i, &y, sizeof(TYPE));       \
    }                                                   \
    break

#define SUM_OR_PROD(TYPE, WIDE)          \
    if (UMRDDT_GPU_REDUCE_SUM == op) {   \
        EACH(TYPE, (WIDE) x + (WIDE) y); \
    } else {                             \
        EACH(TYPE, (WIDE) y *(WIDE) x);  \
    }                                    \
    break

#define ORDERED(TYPE)                  \
    if (UMRDDT_GPU_REDUCE_MAX == op) { \
        EACH(TYPE, y > x ? y : x);     \
    } else {                           \
        EACH(TYPE, y < x ? y : x);     \
    }                                  \
    break

#define INTEGER(TYPE, WIDE)                    \
    switch (op) {                              \
    case UMRDDT_GPU_REDUCE_SUM:                \
    case UMRDDT_GPU_REDUCE_PROD:               \
        SUM_OR_PROD(TYPE, WIDE);               \
    case UMRDDT_GPU_REDUCE_MAX:                \
    case UMRDDT_GPU_REDUCE_MIN:                \
        ORDERED(TYPE);                         \
    case UMRDDT_GPU_REDUCE_LAND:               \
        EACH(TYPE, x &&y);                     \
    case UMRDDT_GPU_REDUCE_LOR:                \
        EACH(TYPE, x || y);                    \
    case UMRDDT_GPU_REDUCE_LXOR:               \
        EACH(TYPE, (x ? 1 : 0) ^ (y ? 1 : 0)); \
    case UMRDDT_GPU_REDUCE_BAND:               \
        EACH(TYPE, x &y);                      \
    case UMRDDT_GPU_REDUCE_BOR:                \
        EACH(TYPE, x | y);                     \
    default:                                   \
        EACH(TYPE, x ^ y);                     \
    }                                          \
    break

/* Floating point numbers are compared as numbers, not by their bits. */
#define PAIR(TYPE)                                                      \
    for (size_t i = 0; i < count; ++i) {                                \
        TYPE x = ((const TYPE *) a)[i], *y = (TYPE *) b + i;            \
        if (UMRDDT_GPU_REDUCE_MAXLOC == op ? x.v > y->v : x.v < y->v) { \
            y->v = x.v;                                                 \
            y->k = x.k;                                                 \
        } else if (x.v == y->v) {                                       \
            y->k = y->k < x.k ? y->k : x.k;                             \
        }                                                               \
    }                                                                   \
    break

static void combine(int op, int type, const void *a, void *b, size_t count)
{
    switch (type) {
    case UMRDDT_GPU_REDUCE_I8:
        INTEGER(int8_t, uint32_t);
    case UMRDDT_GPU_REDUCE_U8:
        INTEGER(uint8_t, uint32_t);
    case UMRDDT_GPU_REDUCE_I16:
        INTEGER(int16_t, uint32_t);
    case UMRDDT_GPU_REDUCE_U16:
        INTEGER(uint16_t, uint32_t);
    case UMRDDT_GPU_REDUCE_I32:
        INTEGER(int32_t, uint32_t);
    case UMRDDT_GPU_REDUCE_U32:
        INTEGER(uint32_t, uint32_t);
    case UMRDDT_GPU_REDUCE_I64:
        INTEGER(int64_t, uint64_t);
    case UMRDDT_GPU_REDUCE_U64:
        INTEGER(uint64_t, uint64_t);
    case UMRDDT_GPU_REDUCE_F32:
        if (UMRDDT_GPU_REDUCE_MAX == op || UMRDDT_GPU_REDUCE_MIN == op) {
            ORDERED(float);
        }
        SUM_OR_PROD(float, float);
    case UMRDDT_GPU_REDUCE_F64:
        if (UMRDDT_GPU_REDUCE_MAX == op || UMRDDT_GPU_REDUCE_MIN == op) {
            ORDERED(double);
        }
        SUM_OR_PROD(double, double);
    case UMRDDT_GPU_REDUCE_C32:
        SUM_OR_PROD(float complex, float complex);
    case UMRDDT_GPU_REDUCE_C64:
        SUM_OR_PROD(double complex, double complex);
    case UMRDDT_GPU_REDUCE_FI:
        PAIR(fi_t);
    case UMRDDT_GPU_REDUCE_DI:
        PAIR(di_t);
    case UMRDDT_GPU_REDUCE_LI:
        PAIR(li_t);
    case UMRDDT_GPU_REDUCE_II:
        PAIR(ii_t);
    default:
        PAIR(si_t);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Values
 * ------------------------------------------------------------------------------------------- */

/* Small numbers, of which all sums and products are exact; with `odd` also what has no order. */
static double draw(bool odd)
{
    static const double others[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1.5};

    return odd && 0 == dice() % 4 ? others[dice() % 6] : (double) (dice() % 7) - 3;
}

static void fill(int op, int type, unsigned char *bytes)
{
    const bool odd = UMRDDT_GPU_REDUCE_C32 != type && UMRDDT_GPU_REDUCE_C64 != type;
    const bool few = UMRDDT_GPU_REDUCE_LAND <= op && UMRDDT_GPU_REDUCE_LXOR >= op;

    for (size_t i = 0; i < SPACE; ++i) {
        bytes[i] = few && 0 != dice() % 4 ? 0 : (unsigned char) dice();
    }
    for (size_t i = 0; i + 16 <= SPACE; i += 8) {
        const double value = draw(odd);
        const float values[2] = {(float) value, (float) draw(odd)};
        const short small = (short) (dice() % 3);
        const int index = (int) (dice() % 5) - 2;

        switch (type) {
        case UMRDDT_GPU_REDUCE_F32:
        case UMRDDT_GPU_REDUCE_C32:
            memcpy(bytes + i, values, 8);
            break;
        case UMRDDT_GPU_REDUCE_F64:
        case UMRDDT_GPU_REDUCE_C64:
            memcpy(bytes + i, &value, 8);
            break;
        case UMRDDT_GPU_REDUCE_FI:
            memcpy(bytes + i, values, 4);
            memcpy(bytes + i + 4, &index, 4);
            break;
        case UMRDDT_GPU_REDUCE_DI:
            memcpy(bytes + i, &value, 8);
            i += 8;
            memcpy(bytes + i, &index, 4);
            break;
        case UMRDDT_GPU_REDUCE_LI:
            memset(bytes + i, 0, 8);
            memcpy(bytes + i, &small, 2);
            i += 8;
            memcpy(bytes + i, &index, 4);
            break;
        case UMRDDT_GPU_REDUCE_II:
        case UMRDDT_GPU_REDUCE_SI:
            memcpy(bytes + i, &small, 2);
            memset(bytes + i + 2, UMRDDT_GPU_REDUCE_II == type ? 0 : 0x77, 2);
            memcpy(bytes + i + 4, &index, 4);
            break;
        default:
            break;
        }
    }
}

/* Equal bytes; of sums and products that are no number only that. */
static bool same(int op, int type, const unsigned char *got, const unsigned char *wanted,
                 size_t count)
{
    const size_t bytes = count * opal_umrddt_gpu_reduce_extent((umrddt_gpu_reduce_type_t) type);

    if (UMRDDT_GPU_REDUCE_PROD < op
        || (UMRDDT_GPU_REDUCE_F32 != type && UMRDDT_GPU_REDUCE_F64 != type)) {
        return 0 == memcmp(got, wanted, bytes);
    }
    for (size_t i = 0; i < count; ++i) {
        double x, y;
        float f[2];

        if (UMRDDT_GPU_REDUCE_F64 == type) {
            memcpy(&x, got + 8 * i, 8);
            memcpy(&y, wanted + 8 * i, 8);
        } else {
            memcpy(&f[0], got + 4 * i, 4);
            memcpy(&f[1], wanted + 4 * i, 4);
            x = f[0];
            y = f[1];
        }
        if (!(isnan(x) && isnan(y)) && 0 != memcmp(&x, &y, 8)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Runs
 * ------------------------------------------------------------------------------------------- */

/* Sources, the target, what it must be, and the sources as C is given them. */
static unsigned char *buffers[SOURCES + 1], *wanted, *aligned[2];
static real_gpu_t the_gpu;
static const real_gpu_t *gpu; /* NULL: the kernels' host forms */
static CUfunction functions[UMRDDT_GPU_REDUCE_KERNEL_COUNT];
static real_mirror_t mirrors[SOURCES + 1];

static void make_buffers(void)
{
    for (int i = 0; i <= SOURCES; ++i) {
        buffers[i] = aligned_alloc(64, SPACE);
        if (NULL != gpu) {
            real_mirror(gpu, buffers[i], SPACE, &mirrors[i]);
        }
    }
    wanted = aligned_alloc(64, SPACE);
    aligned[0] = aligned_alloc(64, SPACE);
    aligned[1] = aligned_alloc(64, SPACE);
}

static void free_buffers(void)
{
    for (int i = 0; i <= SOURCES; ++i) {
        if (NULL != gpu) {
            real_unmirror(gpu, &mirrors[i]);
        }
        free(buffers[i]);
    }
    free(wanted);
    free(aligned[0]);
    free(aligned[1]);
}

static uint64_t address_of(int buffer, size_t offset)
{
    return (NULL != gpu ? (uint64_t) mirrors[buffer].device
                        : (uint64_t) (uintptr_t) buffers[buffer])
           + offset;
}

static bool launch(opal_umrddt_gpu_reduce_plan_t *plan)
{
    const uint32_t grid[3] = {plan->grid, 1, 1}, block[3] = {UMRDDT_GPU_REDUCE_THREADS, 1, 1};
    umrddt_gpu_counts_t counts = {{0}, 0};
    void *params[] = {&plan->args};

    if (NULL == gpu) {
        umrddt_gpu_host_launch(&umrddt_gpu_reduce_host_kernels[plan->kernel], grid, block,
                               &plan->args, &counts);
        return 0 == counts.misaligned;
    }
    REAL_OK(gpu, cuLaunchKernel(functions[plan->kernel], grid[0], 1, 1, block[0], 1, 1, 0, NULL,
                                params, NULL));
    REAL_OK(gpu, cuCtxSynchronize());
    return true;
}

/* One reduction. @return false: it was wrong */
static bool run(int op, int type)
{
    static const size_t counts[] = {1, 2, 3, 7, 15, 64, 257, ELEMENTS};
    const size_t extent = opal_umrddt_gpu_reduce_extent((umrddt_gpu_reduce_type_t) type);
    const size_t count = 0 == dice() % 2 ? counts[dice() % 8] : dice() % ELEMENTS;
    const unsigned n = 1 + (unsigned) (0 == dice() % 4 ? dice() % SOURCES : dice() % 3);
    const unsigned how = (unsigned) (dice() % 4);
    const int in_place = 0 == dice() % 3 ? (int) (dice() % n) : SOURCES;
    const size_t common = dice() % 16 / extent * extent;
    size_t at[SOURCES + 1];
    uint64_t source[SOURCES];
    opal_umrddt_gpu_reduce_plan_t plan;

    for (unsigned k = 0; k <= SOURCES; ++k) {
        /* equal modulo 16; aligned as elements are; anywhere */
        at[k] = 2 > how ? common : 2 == how ? dice() % 16 / extent * extent : dice() % 16;
        if (k < n || SOURCES == k) {
            fill(op, type, buffers[k]);
        }
    }
    memcpy(wanted, buffers[in_place], SPACE);
    memcpy(aligned[0], buffers[0] + at[0], count * extent);
    for (unsigned k = 1; k < n; ++k) {
        memcpy(aligned[1], buffers[k] + at[k], count * extent);
        combine(op, type, aligned[0], aligned[1], count);
        memcpy(aligned[0], aligned[1], count * extent);
    }
    for (size_t i = 0; i < count; ++i) {
        unsigned char *to = wanted + at[in_place] + i * extent;
        const unsigned char *from = aligned[0] + i * extent;

        if (UMRDDT_GPU_REDUCE_FI > type) {
            memcpy(to, from, extent);
        } else {
            memcpy(to, from, UMRDDT_GPU_REDUCE_SI == type ? 2 : extent / 2);
            memcpy(to + extent / 2, from + extent / 2, 4);
        }
    }
    for (unsigned k = 0; k < n; ++k) {
        source[k] = address_of((int) k, at[k]);
        if (NULL != gpu) {
            real_upload(gpu, &mirrors[k]);
        }
    }
    if (NULL != gpu) {
        real_upload(gpu, &mirrors[in_place]);
    }
    if (OPAL_SUCCESS
        != opal_umrddt_gpu_reduce_plan((umrddt_gpu_reduce_op_t) op, (umrddt_gpu_reduce_type_t) type,
                                       source, n, address_of(in_place, at[in_place]), count,
                                       1 + (uint32_t) (dice() % 4), &plan)) {
        return false;
    }
    if (2 > how && UMRDDT_GPU_REDUCE_FI > type && 16 != plan.args.width) {
        fprintf(stderr, "accesses of %u bytes, not 16\n", plan.args.width);
        return false;
    }
    if (0 < plan.grid && !launch(&plan)) {
        return false;
    }
    if (NULL != gpu) {
        real_download(gpu, &mirrors[in_place]);
    }
    return 0 == memcmp(buffers[in_place], wanted, at[in_place])
           && same(op, type, buffers[in_place] + at[in_place], wanted + at[in_place], count)
           && 0
                  == memcmp(buffers[in_place] + at[in_place] + count * extent,
                            wanted + at[in_place] + count * extent,
                            SPACE - at[in_place] - count * extent);
}

static void load(void)
{
    const void *image;
    CUmodule module;
    size_t bytes;

    real_begin(0, &the_gpu);
    gpu = &the_gpu;
    image = opal_umrddt_gpu_reduce_fatbin(&bytes);
    REAL_OK(gpu, cuModuleLoadData(&module, image));
    for (int i = 0; i < UMRDDT_GPU_REDUCE_KERNEL_COUNT; ++i) {
        REAL_OK(gpu, cuModuleGetFunction(
                         &functions[i], module,
                         opal_umrddt_gpu_reduce_kernel_name((umrddt_gpu_reduce_kernel_id_t) i)));
    }
}

/* What has no kernel is refused. */
static bool refuses(void)
{
    const uint64_t none[1] = {0};
    opal_umrddt_gpu_reduce_plan_t plan;

    return 0 > opal_umrddt_gpu_reduce_kernel(UMRDDT_GPU_REDUCE_BAND, UMRDDT_GPU_REDUCE_F32)
           && 0 > opal_umrddt_gpu_reduce_kernel(UMRDDT_GPU_REDUCE_SUM, UMRDDT_GPU_REDUCE_FI)
           && 0 > opal_umrddt_gpu_reduce_kernel(UMRDDT_GPU_REDUCE_OPS, UMRDDT_GPU_REDUCE_I8)
           && OPAL_ERR_NOT_SUPPORTED
                  == opal_umrddt_gpu_reduce_plan(UMRDDT_GPU_REDUCE_MAX, UMRDDT_GPU_REDUCE_C32, none,
                                                 1, 0, 1, 1, &plan)
           && OPAL_ERR_BAD_PARAM
                  == opal_umrddt_gpu_reduce_plan(UMRDDT_GPU_REDUCE_MAX, UMRDDT_GPU_REDUCE_F32, none,
                                                 0, 0, 1, 1, &plan)
           && OPAL_SUCCESS
                  == opal_umrddt_gpu_reduce_plan(UMRDDT_GPU_REDUCE_MAX, UMRDDT_GPU_REDUCE_F32, none,
                                                 1, 0, 0, 1, &plan)
           && 0 == plan.grid;
}

int main(int argc, char **argv)
{
    const long count = 1 < argc ? atol(argv[1]) : DEFAULT_COUNT;
    const uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED;
    int kernels = 0, failures = 0;

    if (1 < argc && 0 == strcmp(argv[1], "--names")) {
        for (int i = 0; i < UMRDDT_GPU_REDUCE_KERNEL_COUNT; ++i) {
            printf("%s\n", opal_umrddt_gpu_reduce_kernel_name((umrddt_gpu_reduce_kernel_id_t) i));
        }
        return 0;
    }
    if (real_wanted()) {
        load();
    }
    make_buffers();
    failures += refuses() ? 0 : 1;
    for (int op = 0; op < UMRDDT_GPU_REDUCE_OPS; ++op) {
        for (int type = 0; type < UMRDDT_GPU_REDUCE_TYPES; ++type) {
            const int kernel = opal_umrddt_gpu_reduce_kernel((umrddt_gpu_reduce_op_t) op,
                                                             (umrddt_gpu_reduce_type_t) type);

            kernels += 0 <= kernel ? 1 : 0;
            for (long i = 0; 0 <= kernel && i < count; ++i) {
                const uint64_t now = seed + (uint64_t) i;

                state = now * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t) (100 * op + type);
                if (!run(op, type)) {
                    fprintf(
                        stderr, "FAILED: test_reduce 1 %" PRIu64 ": %s, type %d\n", now,
                        opal_umrddt_gpu_reduce_kernel_name((umrddt_gpu_reduce_kernel_id_t) kernel),
                        type);
                    ++failures;
                    break;
                }
            }
        }
    }
    free_buffers();
    printf("%d operations on types, %ld times each, by %d kernels of the %s: %d failed\n", kernels,
           count, (int) UMRDDT_GPU_REDUCE_KERNEL_COUNT, NULL != gpu ? the_gpu.name : "host",
           failures);
    return 0 == failures ? 0 : 1;
}
