/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Drivers that fail: each function that an engine calls, once; functions that a driver does not
 * have; memory that it does not give; a device that breaks. A copy that is said to be over has
 * copied, whatever went wrong before, and nothing hangs.
 */

#include "engine_parts.h"

#include <string.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#define COPIES 7

/* Once: one of the copies may fail. */
#define ONCE(function)               \
    {"fail=" function ":1:999", 1},  \
    {                                \
        "fail=" function ":2:999", 1 \
    }

const test_fault_t test_faults[] = {
    ONCE("cuCtxGetDevice"),
    ONCE("cuCtxGetId"),
    ONCE("cuDeviceGetAttribute"),
    ONCE("cuCtxPushCurrent"),
    ONCE("cuCtxGetCurrent"),
    ONCE("cuCtxGetStreamPriorityRange"),
    ONCE("cuStreamCreateWithPriority"),
    ONCE("cuModuleLoadData"),
    /* A kernel that cannot be had, the first or a later one: copies by the driver instead. */
    {"fail=cuModuleGetFunction:1:999", 0},
    {"fail=cuModuleGetFunction:2:999", 0},
    {"fail=cuModuleGetFunction:3:2", 0},
    ONCE("cuMemHostRegister"),
    ONCE("cuMemHostGetDevicePointer"),
    ONCE("cuStreamWriteValue32"),
    ONCE("cuEventCreate"),
    ONCE("cuEventRecord"),
    ONCE("cuLaunchKernel"),
    {"fail=cuLaunchKernel:3:999", 1},
    ONCE("cuMemcpyHtoDAsync"),
    ONCE("cuMemcpyAsync"),
    ONCE("cuMemcpy2DAsync"),
    ONCE("cuMemHostAlloc"),
    ONCE("cuMemsetD8Async"),
    {"fail=cuMemHostAlloc:3:2", 1},
    ONCE("cuStreamWaitEvent"),
    ONCE("cuDevicePrimaryCtxRelease"),
    ONCE("cuStreamDestroy"),
    ONCE("cuModuleUnload"),
    ONCE("cuMemHostUnregister"),
    /* Older or smaller drivers. */
    {"fail=cuStreamWriteValue32:*:801", 0},
    {"fail=cuStreamWriteValue32:*:801,fail=cuEventCreate:*:2", 0},
    {"fail=cuStreamWriteValue32:*:801,fail=cuEventRecord:*:801", 0},
    {"fail=cuMemHostRegister:*:801", 0},
    {"fail=cuStreamCreateWithPriority:*:801", 0},
    {"fail=cuCtxGetId:*:801", 0},
    {"fail=cuModuleLoadData:*:209", 0},
    {"fail=cuCtxGetStreamPriorityRange:*:801", 0},
    {"fail=cuMemsetD8Async:*:801,delay=20", 0},
    /* No pinned memory: the engine's own has to do; without that, nothing of what goes through it,
     * and all else. */
    {"fail=cuMemHostAlloc:*:2,delay=20", 0},
    {"fail=cuMemHostAlloc:*:2,fail=cuMemHostRegister:*:801", FAULT_NO_STAGING},
    /* Broken for good. */
    {"fail=kernel:1:700", FAULT_BROKEN},
    {"fail=kernel:2:719,delay=100", FAULT_BROKEN},
    {"fail=kernel:3:716", FAULT_BROKEN},
    {NULL, 0},
};

/* Copies of every sort: an irregular layout at one end, at both, boxes, one piece, system memory.
 */
static const struct {
    test_kind_t kind[2];
    int layout[2]; /* 0: packed; 1: random blocks; 2: rows; 3: other rows */
} copies[COPIES] = {
    {{ON_DEVICE, ON_DEVICE}, {1, 3}}, {{ON_DEVICE, ON_DEVICE}, {2, 0}},
    {{ON_DEVICE, ON_DEVICE}, {0, 0}}, {{ON_DEVICE, ON_HOST}, {1, 3}},
    {{ON_HOST, ON_DEVICE}, {0, 1}},   {{ON_DEVICE, ON_DEVICE}, {0, 1}},
    {{ON_DEVICE, ON_DEVICE}, {3, 1}},
};

static bool done(int i, test_end_t ends[2], uint64_t size)
{
    opal_umrddt_gpu_engine_t *engine = NULL;
    opal_umrddt_gpu_copy_t *copy = NULL;
    const test_end_t *of = ON_HOST == ends[0].kind ? &ends[1] : &ends[0];
    int rc;

    snprintf(test_doing, sizeof(test_doing), "%s, copy %d", getenv("UMRDDT_GPU"), i);
    rc = opal_umrddt_gpu_engine_get(&of->is, &engine);
    if (OPAL_SUCCESS == rc) {
        rc = opal_umrddt_gpu_copy(engine, &ends[0].place, &ends[1].place, 0, size, &copy);
    }
    if (OPAL_SUCCESS == rc) {
        rc = opal_umrddt_gpu_copy_wait(copy);
        CHECK(OPAL_SUCCESS == rc || OPAL_ERROR == rc);
    } else {
        CHECK(NULL == copy);
        CHECK(OPAL_ERROR == rc || OPAL_ERR_OUT_OF_RESOURCE == rc);
    }
    return OPAL_SUCCESS == rc;
}

void test_fault(const test_fault_t *fault)
{
    opal_umrddt_gpu_staging_stats_t staging;
    opal_iov_cache_layout_t *layouts[4];
    test_end_t ends[COPIES][2];
    int failed = 0, i, k;
    uint64_t size;

    layouts[0] = NULL;
    layouts[1] = test_blocks(900, 16, 40, true);
    layouts[2] = test_blocks(900, 16, 32, false);
    layouts[3] = test_blocks(90, 160, 200, false);
    size = layouts[1]->size;
    (void) test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    for (i = 0; i < COPIES; ++i) {
        for (k = 0; k < 2; ++k) {
            if (0 == copies[i].layout[k]) {
                test_end_packed(copies[i].kind[k], size, &ends[i][k]);
            } else {
                OBJ_RETAIN(layouts[copies[i].layout[k]]);
                test_end_make(copies[i].kind[k], layouts[copies[i].layout[k]], &ends[i][k]);
            }
        }
    }
    for (i = 0; i < COPIES; ++i) {
        const bool staged = ON_HOST == ends[i][0].kind || ON_HOST == ends[i][1].kind;

        if (!done(i, ends[i], size)) {
            ++failed;
            if (FAULT_NO_STAGING == fault->failures) {
                CHECK(staged);
            } else if (FAULT_BROKEN != fault->failures) {
                CHECK(1 == failed && 1 == fault->failures);
                /* It was for once. */
                CHECK(done(i, ends[i], size));
            }
        }
        if (FAULT_BROKEN != fault->failures && (FAULT_NO_STAGING != fault->failures || !staged)) {
            test_expect(&ends[i][0], &ends[i][1], 0, size);
            CHECK(test_end_good(&ends[i][1]));
        }
    }
    CHECK(FAULT_BROKEN != fault->failures || 0 < failed);
    CHECK(FAULT_NO_STAGING != fault->failures || 2 == failed);
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().shape_bytes_now);
    opal_umrddt_gpu_staging_stats(&staging);
    CHECK(0 == staging.used_now);
}
