/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"
#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "bench_gpu.h"
#include "bench_breakdown.h"
#include "bench_times.h"
#include "bench_util.h"

/* Of one part: so many copies at most and at least, and those between for so many seconds. */
#define MOST    100
#define LEAST   5
#define SECONDS 0.2
#define WARMUP  2

typedef struct ends_t {
    const opal_umrddt_gpu_driver_t *driver;
    opal_umrddt_gpu_engine_t *engine;
    char *user;   /* the array of a side */
    char *packed; /* on the GPU */
    void *pinned;
    bool failed;
} ends_t;

/* One copy after the other, and the median of their times. */
static double copy(ends_t *ends, const opal_umrddt_gpu_copy_end_t *from,
                   const opal_umrddt_gpu_copy_end_t *to, uint64_t bytes)
{
    double samples[MOST], end = bench_now() + SECONDS;
    bench_times_t times;
    int count = 0, i;

    for (i = -WARMUP; count < MOST && (count < LEAST || bench_now() < end) && !ends->failed; ++i) {
        opal_umrddt_gpu_copy_t *in_flight;
        const double begin = bench_now();

        ends->failed =
            OPAL_SUCCESS != opal_umrddt_gpu_copy(ends->engine, from, to, 0, bytes, &in_flight)
            || OPAL_SUCCESS != opal_umrddt_gpu_copy_wait(in_flight);
        if (0 <= i) {
            samples[count++] = bench_now() - begin;
        }
    }
    if (ends->failed) {
        return 0.0;
    }
    bench_times_summarise(samples, count, &times);
    return times.median;
}

/* Between a side's layout and one piece. */
static double pack(ends_t *ends, const bench_side_t *side, bool unpack,
                   const opal_umrddt_gpu_copy_end_t *packed)
{
    opal_umrddt_gpu_copy_end_t user = {NULL, (uintptr_t) (ends->user + side->origin),
                                       OPAL_UMRDDT_GPU_DEVICE, true, true};
    double time;

    if (OPAL_SUCCESS
        != opal_iov_cache_layout_create(&((ompi_datatype_t *) side->type)->super,
                                        (size_t) side->count, &user.layout)) {
        ends->failed = true;
        return 0.0;
    }
    time = unpack ? copy(ends, packed, &user, side->bytes) : copy(ends, &user, packed, side->bytes);
    OBJ_RELEASE(user.layout);
    return time;
}

static const char *open_ends(ends_t *ends, const bench_layout_t *layout)
{
    const uint64_t most = layout->send.array_bytes > layout->recv.array_bytes
                              ? layout->send.array_bytes
                              : layout->recv.array_bytes;
    opal_umrddt_gpu_memory_t memory;

    memset(ends, 0, sizeof(*ends));
    ends->user = bench_gpu_alloc(most);
    ends->packed = bench_gpu_alloc(layout->send.bytes);
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&ends->driver)
        || OPAL_SUCCESS != opal_umrddt_gpu_classify(ends->user, &memory)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_get(&memory, &ends->engine)) {
        return "there is no engine for this GPU";
    }
    return CUDA_SUCCESS == ends->driver->cuMemHostAlloc(&ends->pinned, layout->send.bytes, 0)
               ? NULL
               : "no pinned memory";
}

static void close_ends(ends_t *ends)
{
    if (NULL != ends->pinned) {
        (void) ends->driver->cuMemFreeHost(ends->pinned);
    }
    bench_gpu_free(ends->packed);
    bench_gpu_free(ends->user);
}

const char *bench_breakdown_measure(const bench_layout_t *layout, const char *scheme,
                                    bench_breakdown_t *breakdown)
{
    bench_breakdown_t found = {0, 0, 0, 0};
    ends_t ends;
    const char *why = open_ends(&ends, layout);

    if (NULL == why) {
        const uint64_t bytes = layout->send.bytes;
        const opal_umrddt_gpu_copy_end_t device = {NULL, (uintptr_t) ends.packed,
                                                   OPAL_UMRDDT_GPU_DEVICE, true, true};
        const opal_umrddt_gpu_copy_end_t pinned = {NULL, (uintptr_t) ends.pinned,
                                                   OPAL_UMRDDT_GPU_PINNED, true, false};
        const opal_umrddt_gpu_copy_end_t *packed =
            0 == strcmp("pack-host", scheme) ? &pinned : &device;

        found.pack = pack(&ends, &layout->send, false, packed);
        found.unpack = pack(&ends, &layout->recv, true, packed);
        if (0 == strcmp("pack-staged", scheme)) {
            found.out = copy(&ends, &device, &pinned, bytes);
            found.in = copy(&ends, &pinned, &device, bytes);
        }
        why = ends.failed ? "a copy failed" : NULL;
    }
    close_ends(&ends);
    if (NULL == why) {
        *breakdown = found;
    }
    return why;
}
