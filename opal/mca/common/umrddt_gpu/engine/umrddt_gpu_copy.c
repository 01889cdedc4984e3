/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies: start and completion. Each has a flag in memory that its stream writes after the data is
 * visible. If streams cannot write flags, an event is used.
 */

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_reach.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

/* Tests of a copy between driver calls. */
#define TESTS_PER_QUERY 1024
#define TESTS_PER_EVENT 8
/* Tests of a pending copy before all pending ones are launched. */
#define TESTS_PER_FLUSH 64
/* Tests in a row before a waiting thread yields. */
#define TESTS_PER_YIELD 64

/* ---------------------------------------------------------------------------------------------
 * Free copies
 * ------------------------------------------------------------------------------------------- */

unsigned char *opal_umrddt_gpu_registered(opal_umrddt_gpu_engine_t *engine, size_t bytes,
                                          CUdeviceptr *there)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    void *memory = NULL;

    if (0 != posix_memalign(&memory, 4096, bytes)) {
        return NULL;
    }
    memset(memory, 0, bytes);
    *there = 0;
    if (CUDA_SUCCESS
        == driver->cuMemHostRegister_v2(
            memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)) {
        if (CUDA_SUCCESS != driver->cuMemHostGetDevicePointer_v2(there, memory, 0)) {
            (void) driver->cuMemHostUnregister(memory);
            *there = 0;
        }
    }
    return memory;
}

static int make_slab(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_slab_t **made)
{
    opal_umrddt_gpu_slab_t *slab = calloc(1, sizeof(*slab));
    int i;

    if (NULL == slab) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    slab->flags = opal_umrddt_gpu_registered(engine, SLAB * FLAG_BYTES, &slab->there);
    if (NULL == slab->flags) {
        free(slab);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (i = 0; i < SLAB; ++i) {
        opal_umrddt_gpu_copy_t *copy = &slab->copy[i];

        copy->engine = engine;
        copy->flag = (volatile uint32_t *) (void *) (slab->flags + i * FLAG_BYTES);
        copy->flag_there = 0 != slab->there ? slab->there + (CUdeviceptr) (i * FLAG_BYTES) : 0;
        copy->next = i + 1 < SLAB ? &slab->copy[i + 1] : NULL;
    }
    *made = slab;
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_copy_take(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_copy_t **copy)
{
    opal_umrddt_gpu_slab_t *slab;
    int rc;

    OPAL_THREAD_LOCK(&engine->lock);
    while (OPAL_UNLIKELY(NULL == (*copy = opal_umrddt_gpu_copy_pop(engine)))) {
        OPAL_THREAD_UNLOCK(&engine->lock);
        rc = make_slab(engine, &slab);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        OPAL_THREAD_LOCK(&engine->lock);
        slab->next = engine->slabs;
        engine->slabs = slab;
        slab->copy[SLAB - 1].next = engine->idle;
        engine->idle = &slab->copy[0];
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_copy_drop(opal_umrddt_gpu_copy_t *copy)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;

    OPAL_THREAD_LOCK(&engine->lock);
    copy->next = engine->idle;
    engine->idle = copy;
    --engine->busy;
    OPAL_THREAD_UNLOCK(&engine->lock);
}

void opal_umrddt_gpu_copies_free(opal_umrddt_gpu_engine_t *engine, bool alive)
{
    const opal_umrddt_gpu_driver_t *driver = engine->driver;
    int i;

    while (NULL != engine->slabs) {
        opal_umrddt_gpu_slab_t *slab = engine->slabs;

        engine->slabs = slab->next;
        for (i = 0; alive && i < SLAB; ++i) {
            if (NULL != slab->copy[i].event) {
                (void) driver->cuEventDestroy_v2(slab->copy[i].event);
            }
        }
        if (alive && 0 != slab->there) {
            (void) driver->cuMemHostUnregister(slab->flags);
        }
        free(slab->flags);
        free(slab);
    }
    engine->idle = NULL;
    if (NULL != engine->reserve) {
        if (alive) {
            (void) driver->cuMemHostUnregister(engine->reserve);
        }
        free(engine->reserve);
        engine->reserve = NULL;
    }
}

/* Release the resources of a copy, and the copy. @param[in] rc  its result */
static int finish(opal_umrddt_gpu_copy_t *copy, int rc)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    opal_umrddt_gpu_shape_t *unused[2] = {NULL, NULL};
    void *pinned[2] = {NULL, NULL};
    int i;

    OPAL_THREAD_LOCK(&engine->lock);
    for (i = 0; i < 2; ++i) {
        if (NULL != copy->shape[i]
            && OPAL_UNLIKELY(opal_umrddt_gpu_shape_unuse(
                copy->shape[i], OPAL_SUCCESS == rc && copy->listed[i], &pinned[i]))) {
            unused[i] = copy->shape[i];
        }
        copy->shape[i] = NULL;
        copy->listed[i] = false;
    }
    copy->next = engine->idle;
    engine->idle = copy;
    --engine->busy;
    OPAL_THREAD_UNLOCK(&engine->lock);
    for (i = 0; i < 2; ++i) {
        if (NULL != pinned[i]) {
            opal_umrddt_gpu_staging_put(pinned[i]);
        }
        if (NULL != unused[i]) {
            opal_umrddt_gpu_shape_free(engine, unused[i]);
        }
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Start
 * ------------------------------------------------------------------------------------------- */

int opal_umrddt_gpu_copy_signal(opal_umrddt_gpu_copy_t *copy)
{
    const opal_umrddt_gpu_driver_t *driver = copy->engine->driver;
    CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

    copy->by_event = false;
    if (0 != copy->flag_there && __atomic_load_n(&copy->engine->writes_values, __ATOMIC_RELAXED)) {
        ++copy->turn;
        rc = driver->cuStreamWriteValue32_v2(copy->stream, copy->flag_there, copy->turn,
                                             CU_STREAM_WRITE_VALUE_DEFAULT);
        if (CUDA_SUCCESS == rc) {
            copy->watch = copy->flag;
            copy->until = copy->turn;
            return OPAL_SUCCESS;
        }
        --copy->turn;
        if (CUDA_ERROR_NOT_SUPPORTED == rc) {
            __atomic_store_n(&copy->engine->writes_values, false, __ATOMIC_RELAXED);
        }
    }
    if (NULL == copy->event
        && CUDA_SUCCESS != driver->cuEventCreate(&copy->event, CU_EVENT_DISABLE_TIMING)) {
        copy->event = NULL;
        return OPAL_ERROR;
    }
    copy->by_event = true;
    return opal_umrddt_gpu_engine_error(driver->cuEventRecord(copy->event, copy->stream));
}

/* By driver copies. @param[in] route  the boxes to use; NULL: any number of copies */
static int submit_copies(opal_umrddt_gpu_copy_t *copy,
                         const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                         uint64_t end, const opal_umrddt_gpu_route_t *route, bool single)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    CUcontext homes[2];
    bool apart = false;
    int rc = OPAL_SUCCESS;

    if (!opal_umrddt_gpu_is_near(&copy_ends[0]) || !opal_umrddt_gpu_is_near(&copy_ends[1])) {
        rc = opal_umrddt_gpu_homes(engine, copy_ends, homes, &apart);
    }
    if (OPAL_SUCCESS != rc) {
        return OPAL_ERR_OUT_OF_RESOURCE == rc ? rc : OPAL_ERROR;
    }
    return opal_umrddt_gpu_engine_error(
        NULL == route || apart ? opal_umrddt_gpu_route_blocks(
            engine, copy->stream, copy_ends, start, end, single, apart ? homes : NULL)
                               : opal_umrddt_gpu_route_go(engine, copy->stream, route, copy_ends));
}

/* Submit all operations except the completion signal. */
static int submit(opal_umrddt_gpu_copy_t *copy, const opal_umrddt_gpu_copy_end_t copy_ends[2],
                  uint64_t start, uint64_t end, bool keep)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    const int how = opal_umrddt_gpu_engine_set.how;
    const bool kernels = __atomic_load_n(&engine->kernels, __ATOMIC_RELAXED);
    opal_umrddt_gpu_route_t route;
    int rc = OPAL_ERR_NOT_AVAILABLE;

    if (OPAL_UMRDDT_GPU_HOW_BLOCKS == how) {
        return submit_copies(copy, copy_ends, start, end, NULL, true);
    }
    if (OPAL_UMRDDT_GPU_HOW_KERNEL != how || !kernels) {
        opal_umrddt_gpu_route_find(engine, copy_ends, start, end, keep, &route);
        if (0 < route.n) {
            return submit_copies(copy, copy_ends, start, end, &route, false);
        }
    }
    if (kernels && REACH_KERNELS == opal_umrddt_gpu_reach(engine, &copy_ends[0], true)
        && REACH_KERNELS == opal_umrddt_gpu_reach(engine, &copy_ends[1], true)) {
        rc = opal_umrddt_gpu_launch(copy, copy_ends, start, end, keep);
    }
    return OPAL_ERR_NOT_AVAILABLE != rc ? rc
                                        : submit_copies(copy, copy_ends, start, end, NULL, false);
}

/*
 * Submit a copy with its signal.
 *
 * @param[in]     keep  cache the method
 * @param[in]     again  search the launch cache
 * @param[in,out] made  the copy to use; NULL: a free one. Set also on failure, if there is one
 * @param[out]    kind  its state
 */
static inline __opal_attribute_always_inline__ int
begin(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_copy_end_t copy_ends[2],
      uint64_t start, uint64_t end, bool keep, bool again, opal_umrddt_gpu_copy_t **made,
      opal_umrddt_gpu_copy_kind_t *kind)
{
    opal_umrddt_gpu_copy_t *copy;
    CUresult launched;
    int rc;

    *kind = COPY_DIRECT;
    if (again && opal_umrddt_gpu_launch_again(engine, copy_ends, start, end, made, &launched)) {
        rc = opal_umrddt_gpu_engine_error(launched);
    } else {
        rc = NULL == *made ? opal_umrddt_gpu_copy_take(engine, made) : OPAL_SUCCESS;
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        rc = submit(*made, copy_ends, start, end, keep);
    }
    copy = *made;
    if (OPAL_SUCCESS == rc && OPAL_UNLIKELY(OPAL_SUCCESS != opal_umrddt_gpu_copy_signal(copy))) {
        /* No completion signal is possible: complete it now. */
        *kind = COPY_OVER;
        rc = opal_umrddt_gpu_engine_error(engine->driver->cuStreamSynchronize(copy->stream));
    } else if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        /* A part of it may be in progress in the caller's memory. */
        (void) engine->driver->cuStreamSynchronize(copy->stream);
    }
    return rc;
}

int opal_umrddt_gpu_copy_direct(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_copy_t **result)
{
    opal_umrddt_gpu_copy_t *copy = NULL;
    opal_umrddt_gpu_copy_kind_t kind;
    const int rc = begin(engine, copy_ends, start, end, keep, true, &copy, &kind);

    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        return NULL == copy ? rc : finish(copy, rc);
    }
    copy->kind = kind;
    *result = copy;
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_copy_started(opal_umrddt_gpu_copy_t *copy, opal_umrddt_gpu_copy_kind_t kind,
                                  int rc)
{
    copy->result = rc;
    __atomic_store_n(&copy->kind, OPAL_SUCCESS == rc ? kind : COPY_OVER, __ATOMIC_RELEASE);
}

void opal_umrddt_gpu_copy_start(opal_umrddt_gpu_copy_t *copy)
{
    opal_umrddt_gpu_copy_kind_t kind;
    const bool fresh = NULL == copy->shape[0] && NULL == copy->shape[1];
    const int rc =
        begin(copy->engine, copy->copy_end, copy->start, copy->end, true, fresh, &copy, &kind);

    opal_umrddt_gpu_copy_started(copy, kind, rc);
}

static bool on_host(const opal_umrddt_gpu_copy_end_t *copy_end)
{
    return OPAL_UMRDDT_GPU_HOST == copy_end->kind;
}

/* True if the CPU can access both places, and one of them is pageable. */
static bool cpu_does_it(const opal_umrddt_gpu_copy_end_t copy_ends[2])
{
    return (on_host(&copy_ends[0])
            && (on_host(&copy_ends[1]) || OPAL_UMRDDT_GPU_PINNED == copy_ends[1].kind))
           || (on_host(&copy_ends[1]) && OPAL_UMRDDT_GPU_PINNED == copy_ends[0].kind);
}

static bool is_in_range(const opal_umrddt_gpu_copy_end_t *copy_end, uint64_t start, uint64_t end)
{
    return start <= end && (NULL == copy_end->layout || end <= copy_end->layout->size);
}

int opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_copy_end_t *from,
                         const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                         opal_umrddt_gpu_copy_t **copy)
{
    const opal_umrddt_gpu_copy_end_t copy_ends[2] = {*from, *to};
    bool pushed;
    int rc;

    if (!is_in_range(from, start, end) || !is_in_range(to, start, end)) {
        return OPAL_ERR_BAD_PARAM;
    }
    rc = opal_umrddt_gpu_engine_swap_in(engine, &pushed);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (start == end || cpu_does_it(copy_ends)) {
        rc = opal_umrddt_gpu_copy_take(engine, copy);
        if (OPAL_SUCCESS == rc) {
            (*copy)->kind = COPY_OVER;
            opal_umrddt_gpu_route_host(copy_ends, start, end);
        }
    } else if (on_host(from) || on_host(to)) {
        rc = opal_umrddt_gpu_staged_begin(engine, copy_ends, start, end, copy);
    } else {
        rc = opal_umrddt_gpu_copy_direct(engine, copy_ends, start, end, true, copy);
    }
    opal_umrddt_gpu_engine_swap_out(engine, pushed);
    if (OPAL_SUCCESS == rc) {
        COUNT(copies, 1);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Completion
 * ------------------------------------------------------------------------------------------- */

/* The owner of the flag may have written later turns since. */
static bool flag_is_up(const opal_umrddt_gpu_copy_t *copy)
{
    return 0 <= (int32_t) (__atomic_load_n(copy->watch, __ATOMIC_ACQUIRE) - copy->until);
}

/* Query the driver. */
static int test_event(opal_umrddt_gpu_copy_t *copy)
{
    const opal_umrddt_gpu_driver_t *driver = copy->engine->driver;
    CUstreamCaptureMode mode;
    CUresult rc;
    bool pushed;

    if (!opal_umrddt_gpu_engine_is_there(copy->engine)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_swap_in(copy->engine, &pushed)) {
        return OPAL_ERROR;
    }
    opal_umrddt_gpu_relax(driver, &mode);
    rc = copy->by_event ? driver->cuEventQuery(copy->event) : driver->cuStreamQuery(copy->stream);
    if (OPAL_UNLIKELY(CUDA_SUCCESS != rc && CUDA_ERROR_NOT_READY != rc)) {
        /* Its flag may be that of a batch: the next copy with this flag must come after the batch.
         */
        (void) driver->cuStreamSynchronize(copy->stream);
    }
    opal_umrddt_gpu_restore(driver, &mode);
    opal_umrddt_gpu_engine_swap_out(copy->engine, pushed);
    return CUDA_SUCCESS == rc           ? OPAL_SUCCESS
           : CUDA_ERROR_NOT_READY == rc ? OPAL_ERR_RESOURCE_BUSY
                                        : OPAL_ERROR;
}

static int test_direct(opal_umrddt_gpu_copy_t *copy)
{
    if (!copy->by_event && OPAL_LIKELY(flag_is_up(copy))) {
        return OPAL_SUCCESS;
    }
    ++copy->tests;
    return 0 == copy->tests % (copy->by_event ? TESTS_PER_EVENT : TESTS_PER_QUERY)
               ? test_event(copy)
               : OPAL_ERR_RESOURCE_BUSY;
}

/* If the caller does not flush. */
static int test_pending(opal_umrddt_gpu_copy_t *copy)
{
    if (0 == ++copy->tests % TESTS_PER_FLUSH) {
        opal_umrddt_gpu_flush_now(copy->engine);
    }
    return OPAL_ERR_RESOURCE_BUSY;
}

int opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy)
{
    int rc;

    switch (__atomic_load_n(&copy->kind, __ATOMIC_ACQUIRE)) {
    case COPY_DIRECT:
        rc = test_direct(copy);
        break;
    case COPY_STAGED:
        rc = opal_umrddt_gpu_staged_test(copy);
        break;
    case COPY_PENDING:
        return test_pending(copy);
    default:
        rc = copy->result;
        break;
    }
    return OPAL_ERR_RESOURCE_BUSY == rc ? rc : finish(copy, rc);
}

bool opal_umrddt_gpu_copy_flag(opal_umrddt_gpu_copy_t *copy, const volatile uint32_t **flag,
                               uint32_t *until)
{
    if (COPY_DIRECT != __atomic_load_n(&copy->kind, __ATOMIC_ACQUIRE) || copy->by_event) {
        return false;
    }
    *flag = copy->watch;
    *until = copy->until;
    copy->tests = TESTS_PER_QUERY - 1; /* the next test in vain queries the driver */
    return true;
}

int opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy)
{
    unsigned tests = 0;
    int rc;

    if (COPY_PENDING == __atomic_load_n(&copy->kind, __ATOMIC_ACQUIRE)) {
        opal_umrddt_gpu_flush_now(copy->engine);
    }
    while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(copy))) {
        if (0 == ++tests % TESTS_PER_YIELD) {
            (void) sched_yield();
        }
    }
    return rc;
}
