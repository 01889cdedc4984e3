/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "bench/bench_util.h"
#include "bench_gpu.h"
#include "umrddt_cuda_all.h"

#define NOISE    (UINT64_C(16) << 20)
#define ROUNDS   7
#define LATENCY  200
#define MAX_LIST (UINT64_C(1) << 30)
#define ALIGN    512

static int compare(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t) n, sizeof(*values), compare);
    return values[n / 2];
}

void bench_begin(uint64_t bytes, bench_t *bench)
{
    const umrddt_cuda_all_t *driver;
    uint64_t *noise = bench_alloc(NOISE), state = 1, i;
    int count = 0, can = 0;
    void *flag;

    memset(bench, 0, sizeof(*bench));
    bench->bytes = bytes;
    real_begin(0, &bench->gpu[0]);
    driver = bench->gpu[0].driver;
    bench->gpus = 1;
    if (CUDA_SUCCESS == driver->cuDeviceGetCount(&count) && 1 < count
        && CUDA_SUCCESS == driver->cuDeviceCanAccessPeer(&can, 1, 0) && can) {
        real_begin(1, &bench->gpu[1]);
        REAL_OK(&bench->gpu[1], cuCtxEnablePeerAccess(bench->gpu[0].ctx, 0));
        REAL_OK(&bench->gpu[0], cuCtxSetCurrent(bench->gpu[0].ctx));
        REAL_OK(&bench->gpu[0], cuCtxEnablePeerAccess(bench->gpu[1].ctx, 0));
        bench->gpus = 2;
    }
    for (i = 0; i < NOISE / 8; ++i) {
        noise[i] = bench_random(&state);
    }
    for (i = 0; i < (uint64_t) bench->gpus; ++i) {
        real_gpu_t *gpu = &bench->gpu[i];

        REAL_OK(gpu, cuCtxSetCurrent(gpu->ctx));
        REAL_OK(gpu, cuMemAlloc_v2(&bench->targets[i], bytes));
        REAL_OK(gpu, cuStreamCreate(&bench->streams[i], CU_STREAM_NON_BLOCKING));
        REAL_OK(gpu, cuEventCreate(&bench->events[i][0], CU_EVENT_DEFAULT));
        REAL_OK(gpu, cuEventCreate(&bench->events[i][1], CU_EVENT_DEFAULT));
    }
    REAL_OK(&bench->gpu[0], cuCtxSetCurrent(bench->gpu[0].ctx));
    REAL_OK(&bench->gpu[0], cuMemAlloc_v2(&bench->source, bytes));
    for (i = 0; i < bytes; i += NOISE) {
        const uint64_t n = bytes - i < NOISE ? bytes - i : NOISE;

        REAL_OK(&bench->gpu[0], cuMemcpyHtoD_v2(bench->source + i, noise, n));
    }
    free(noise);
    REAL_OK(&bench->gpu[0],
            cuMemHostAlloc(&flag, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    bench->flag = flag;
    REAL_OK(&bench->gpu[0], cuMemHostGetDevicePointer_v2(&bench->flag_there, flag, 0));
    bench_worker(bench, 0);
}

void bench_worker(bench_t *bench, int worker)
{
    const opal_umrddt_gpu_fit_t fit = OPAL_UMRDDT_GPU_FIT_DEFAULT(1);
    const real_gpu_t *gpu = &bench->gpu[worker];

    bench->worker = worker;
    bench->target = bench->targets[worker];
    bench->stream = bench->streams[worker];
    bench->fit = fit;
    bench->fit.processors = (uint32_t) gpu->processors;
    if (NULL != getenv("FIT_THREADS")) {
        bench->fit.threads = (uint32_t) atoi(getenv("FIT_THREADS"));
    }
    if (NULL != getenv("FIT_BLOCKS")) {
        bench->fit.blocks = (uint32_t) atoi(getenv("FIT_BLOCKS"));
    }
    REAL_OK(gpu, cuCtxSetCurrent(gpu->ctx));
}

static void make_list(bench_t *bench, bench_end_t *end)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    const size_t bytes = end->map->list_bytes;

    if (BENCH_LIST_CACHED != bench->lists) {
        REAL_OK(gpu, cuMemHostAlloc(&end->pinned, bytes,
                                    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
        memcpy(end->pinned, end->map->list, bytes);
    }
    if (BENCH_LIST_PINNED == bench->lists) {
        REAL_OK(gpu, cuMemHostGetDevicePointer_v2(&end->list, end->pinned, 0));
        return;
    }
    REAL_OK(gpu, cuMemAlloc_v2(&end->list, bytes));
    REAL_OK(gpu, cuMemcpyHtoD_v2(end->list, end->map->list, bytes));
    end->copied = BENCH_LIST_COPIED == bench->lists;
}

bool bench_end(bench_t *bench, bool is_target, const opal_iov_cache_form_t *form, uint64_t size,
               opal_umrddt_gpu_scheme_t scheme, unsigned places, bench_end_t *end)
{
    memset(end, 0, sizeof(*end));
    end->form = form;
    end->span = NULL == form ? size : (uint64_t) (form->ub - form->lb);
    end->apart = (end->span + ALIGN) / ALIGN * ALIGN;
    end->places = places;
    while (1 < end->places && end->apart * end->places > bench->bytes) {
        --end->places;
    }
    if (end->apart > bench->bytes) {
        return false;
    }
    end->low = is_target ? bench->target : bench->source;
    end->first = end->low;
    if (NULL == form) {
        return true;
    }
    /* the lowest byte as far from an aligned one as it is from the buffer */
    end->low += (uint64_t) form->lb & 15;
    end->first = end->low - (uint64_t) form->lb;
    if (OPAL_SUCCESS != opal_umrddt_gpu_map_create(form, scheme, MAX_LIST, &end->map)) {
        return false;
    }
    if (0 < end->map->list_bytes) {
        make_list(bench, end);
    }
    return true;
}

void bench_end_free(bench_t *bench, bench_end_t *end)
{
    if (0 != end->list && (NULL == end->pinned || end->copied)) {
        REAL_OK(&bench->gpu[bench->worker], cuMemFree_v2(end->list));
    }
    if (NULL != end->pinned) {
        REAL_OK(&bench->gpu[bench->worker], cuMemFreeHost(end->pinned));
    }
    opal_umrddt_gpu_map_free(end->map);
    memset(end, 0, sizeof(*end));
}

static int plan_of(const bench_t *bench, const bench_end_t *from, const bench_end_t *to,
                   uint64_t size, unsigned turn, opal_umrddt_gpu_plan_t *plan)
{
    const bench_end_t *ends[2] = {from, to};
    opal_umrddt_gpu_end_t planned[2];
    int i;

    for (i = 0; i < 2; ++i) {
        planned[i].map = ends[i]->map;
        planned[i].list = ends[i]->list;
        planned[i].address = ends[i]->first + turn % ends[i]->places * ends[i]->apart;
    }
    return opal_umrddt_gpu_plan(&planned[0], &planned[1], 0, size, &bench->fit, plan);
}

/* What the stream of an end's first place is now. The caller frees it. */
static unsigned char *stream_of(bench_t *bench, const bench_end_t *end, uint64_t size)
{
    unsigned char *span = bench_alloc(end->span + 1), *stream;

    REAL_OK(&bench->gpu[0], cuMemcpyDtoH_v2(span, end->low, end->span));
    if (NULL == end->form) {
        return span;
    }
    stream = bench_alloc(size + 1);
    opal_iov_cache_form_pack(end->form, span - end->form->lb, 0, size, stream);
    free(span);
    return stream;
}

static bool arrived(bench_t *bench, const bench_end_t *from, const bench_end_t *to, uint64_t size)
{
    unsigned char *wanted = stream_of(bench, from, size), *got = stream_of(bench, to, size);
    const bool good = 0 == memcmp(wanted, got, size);

    free(wanted);
    free(got);
    return good;
}

/* Plans for all turns, made before the clock runs. */
typedef struct {
    opal_umrddt_gpu_plan_t *plans;
    unsigned n;
    const bench_end_t *ends[2];
} plans_t;

static void launch_plan(bench_t *bench, void *what, unsigned turn)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    const plans_t *plans = what;

    for (int i = 0; i < 2; ++i) {
        const bench_end_t *end = plans->ends[i];

        if (end->copied) {
            REAL_OK(gpu, cuMemcpyHtoDAsync_v2(end->list, end->pinned, end->map->list_bytes,
                                              bench->stream));
        }
    }
    real_launch(gpu, &plans->plans[turn % plans->n], bench->stream);
}

double bench_copy(bench_t *bench, const bench_end_t *from, const bench_end_t *to, uint64_t size,
                  opal_umrddt_gpu_plan_t *plan)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    plans_t plans = {NULL, from->places > to->places ? from->places : to->places, {from, to}};
    double time = -1;
    unsigned i;

    plans.plans = bench_alloc(plans.n * sizeof(*plans.plans));
    for (i = 0; i < plans.n; ++i) {
        if (OPAL_SUCCESS != plan_of(bench, from, to, size, i, &plans.plans[i])) {
            free(plans.plans);
            return -1;
        }
    }
    *plan = plans.plans[0];
    REAL_OK(gpu, cuMemsetD8_v2(to->low, 0x5a, to->span));
    REAL_OK(gpu, cuCtxSynchronize());
    launch_plan(bench, &plans, 0);
    REAL_OK(gpu, cuStreamSynchronize(bench->stream));
    if (arrived(bench, from, to, size)) {
        time = bench->once ? 0 : bench_rounds(bench, launch_plan, &plans);
    } else {
        printf("WRONG BYTES: %s\n", opal_umrddt_gpu_kernel_name(plan->kernel));
        ++bench->failures;
    }
    free(plans.plans);
    return time;
}

double bench_rounds(bench_t *bench, bench_work_fn_t work, void *what)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    CUevent *events = bench->events[bench->worker];
    double times[ROUNDS];
    unsigned n = 4, i;
    int round = -2;
    float ms;

    for (; round < ROUNDS; ++round) {
        REAL_OK(gpu, cuEventRecord(events[0], bench->stream));
        for (i = 0; i < n; ++i) {
            work(bench, what, i);
        }
        REAL_OK(gpu, cuEventRecord(events[1], bench->stream));
        REAL_OK(gpu, cuStreamSynchronize(bench->stream));
        REAL_OK(gpu, cuEventElapsedTime(&ms, events[0], events[1]));
        if (0 > round) {
            /* so that a round takes about 2 ms */
            n = 2 * n * 1.0 / ms < 8 ? 8 : 2 * n / (double) ms > 200 ? 200 : 2 * n / (double) ms;
        } else {
            times[round] = (double) ms * 1e3 / n;
        }
    }
    return median(times, ROUNDS);
}

double bench_latency(bench_t *bench, bench_work_fn_t work, void *what)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    double times[LATENCY];
    int i;

    for (i = -20; i < LATENCY; ++i) {
        const uint32_t value = (uint32_t) i + 100;
        double start;

        *bench->flag = 0;
        start = bench_now();
        work(bench, what, 0);
        REAL_OK(gpu, cuStreamWriteValue32_v2(bench->stream, bench->flag_there, value, 0));
        while (value != *bench->flag) {
        }
        if (0 <= i) {
            times[i] = (bench_now() - start) * 1e6;
        }
    }
    return median(times, LATENCY);
}

static void driver_copy(bench_t *bench, void *what, unsigned turn)
{
    const real_gpu_t *gpu = &bench->gpu[bench->worker];
    const uint64_t size = *(const uint64_t *) what;
    const uint64_t at = turn % (unsigned) (bench->bytes / size) * size;

    if (0 == bench->worker) {
        REAL_OK(gpu,
                cuMemcpyDtoDAsync_v2(bench->target + at, bench->source + at, size, bench->stream));
    } else {
        REAL_OK(gpu, cuMemcpyPeerAsync(bench->target + at, gpu->ctx, bench->source + at,
                                       bench->gpu[0].ctx, size, bench->stream));
    }
}

double bench_driver_copy(bench_t *bench, uint64_t size)
{
    return bench_rounds(bench, driver_copy, &size);
}
