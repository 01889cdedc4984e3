/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Pending copies and batches: several small copies by one kernel, which signals once for all. One
 * pending copy is started as if it had not been pending. A batch that cannot be launched is
 * replaced by a launch per copy.
 *
 * A flush takes the pending copies out of the engine, so each is launched by one thread. Its state
 * changes last; then the thread that tests it may free it.
 */

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_flush.h"
#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_reach.h"

#include <time.h>

unsigned opal_umrddt_gpu_pending_copies;
unsigned opal_umrddt_gpu_expected;

/* Copies of a batch under construction, linked by `next`. */
typedef struct {
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *first;
    opal_umrddt_gpu_copy_t *last;
    opal_umrddt_gpu_batch_t batch;
} group_t;

/* ---------------------------------------------------------------------------------------------
 * The parts of a batch
 * ------------------------------------------------------------------------------------------- */

/*
 * Add a copy whose part is cached; with the lock.
 *
 * @param[out] full  there is one, but no room for it
 *
 * @return false if it was not added
 */
static bool add_cached(group_t *group, opal_umrddt_gpu_copy_t *copy, bool *full)
{
    opal_umrddt_gpu_engine_t *engine = group->engine;
    const opal_umrddt_gpu_launch_t *launch;
    const opal_umrddt_gpu_part_t *part;
    int i;

    *full = false;
    launch = opal_umrddt_gpu_launch_find(engine, copy->copy_end, copy->start, copy->end);
    part = NULL == launch ? NULL : &engine->part[launch - engine->launch];
    if (NULL == part || 0 == part->blocks) {
        return false;
    }
    if (!opal_umrddt_gpu_batch_add(&group->batch, part)) {
        *full = true;
        return false;
    }
    for (i = 0; i < 2; ++i) {
        copy->shape[i] = launch->shape[i];
        if (NULL != launch->shape[i]) {
            opal_umrddt_gpu_shape_use(engine, launch->shape[i]);
        }
    }
    return true;
}

/*
 * Plan a copy as a part. The copy gets its shapes.
 *
 * @retval OPAL_ERR_NOT_AVAILABLE  its list is used for the first time, and fits into the argument
 *                                 of a launch
 */
static int plan(opal_umrddt_gpu_copy_t *copy, opal_umrddt_gpu_part_t *part)
{
    opal_umrddt_gpu_end_t ends[2];
    int rc;

    rc = opal_umrddt_gpu_launch_ends(copy, copy->copy_end, true, ends);
    if (OPAL_SUCCESS == rc) {
        rc = opal_umrddt_gpu_part_plan(&ends[0], &ends[1], copy->start, copy->end,
                                       &copy->engine->fit, part);
    }
    if (OPAL_SUCCESS == rc) {
        opal_umrddt_gpu_launch_keep(copy, copy->copy_end, copy->start, copy->end, part);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * The launch
 * ------------------------------------------------------------------------------------------- */

static void begin(group_t *group)
{
    group->first = NULL;
    group->last = NULL;
    opal_umrddt_gpu_batch_begin(&group->batch);
}

static void append(group_t *group, opal_umrddt_gpu_copy_t *copy)
{
    copy->next = NULL;
    if (NULL == group->first) {
        group->first = copy;
    } else {
        group->last->next = copy;
    }
    group->last = copy;
}

static CUresult launch(group_t *group)
{
    opal_umrddt_gpu_engine_t *engine = group->engine;
    void *params[] = {&group->batch.args};
    CUfunction function;
    CUresult rc;

    rc = opal_umrddt_gpu_function(engine, group->batch.kernel, &function);
    if (CUDA_SUCCESS == rc) {
        rc =
            engine->driver->cuLaunchKernel(function, group->batch.blocks, 1, 1, engine->fit.threads,
                                           1, 1, 0, group->first->stream, params, NULL);
    }
    if (CUDA_SUCCESS == rc) {
        COUNT(launches, 1);
        COUNT(batches, 1);
        COUNT(batched, group->batch.args.n);
    }
    return rc;
}

/* The batch is in the stream of the first copy: signal its end to all. */
static void signal_all(group_t *group)
{
    opal_umrddt_gpu_copy_t *first = group->first, *copy, *next;
    CUstream stream = first->stream;
    int signalled = opal_umrddt_gpu_copy_signal(first);
    const bool shared = OPAL_SUCCESS == signalled && !first->by_event;
    const uint32_t until = first->until;

    for (copy = first; NULL != copy; copy = next) {
        opal_umrddt_gpu_copy_kind_t kind = COPY_DIRECT;
        int rc = OPAL_SUCCESS;

        next = copy->next;
        if (shared) {
            copy->by_event = false;
            copy->watch = first->flag;
            copy->until = until;
        } else {
            if (first != copy) {
                signalled = opal_umrddt_gpu_copy_signal(copy);
            }
            if (OPAL_SUCCESS != signalled) {
                kind = COPY_OVER;
                rc = opal_umrddt_gpu_engine_error(
                    group->engine->driver->cuStreamSynchronize(stream));
            }
        }
        opal_umrddt_gpu_copy_started(copy, kind, rc);
    }
}

/* Launch what was added, and begin again. */
static void go(group_t *group)
{
    opal_umrddt_gpu_copy_t *copy, *next;

    if (NULL != group->first) {
        if (CUDA_SUCCESS == launch(group)) {
            signal_all(group);
        } else {
            for (copy = group->first; NULL != copy; copy = next) {
                next = copy->next;
                opal_umrddt_gpu_copy_start(copy);
            }
        }
    }
    begin(group);
}

/* Add a copy to a group that may have no room for it. @return false if it was started alone */
static bool add_planned(group_t *group, opal_umrddt_gpu_copy_t *copy)
{
    opal_umrddt_gpu_part_t part;
    const int rc = plan(copy, &part);

    if (OPAL_SUCCESS != rc) {
        opal_umrddt_gpu_copy_start(copy);
        return false;
    }
    if (!opal_umrddt_gpu_batch_add(&group->batch, &part)) {
        go(group);
        (void) opal_umrddt_gpu_batch_add(&group->batch, &part);
    }
    return true;
}

/* Launch several copies. @param[in] first  linked by `next` */
static void go_all(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_copy_t *first)
{
    opal_umrddt_gpu_copy_t *copy, *next;
    CUstream stream = first->stream;
    group_t group;
    bool full;

    group.engine = engine;
    begin(&group);
    OPAL_THREAD_LOCK(&engine->lock);
    for (copy = first; NULL != copy; copy = next) {
        bool added = add_cached(&group, copy, &full);

        next = copy->next;
        /* The lists that a part needs are uploaded there. */
        copy->stream = stream;
        if (OPAL_UNLIKELY(full)) {
            OPAL_THREAD_UNLOCK(&engine->lock);
            go(&group);
            OPAL_THREAD_LOCK(&engine->lock);
            added = add_cached(&group, copy, &full);
        }
        if (OPAL_UNLIKELY(!added)) {
            OPAL_THREAD_UNLOCK(&engine->lock);
            added = add_planned(&group, copy);
            OPAL_THREAD_LOCK(&engine->lock);
        }
        if (added) {
            append(&group, copy);
        }
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    go(&group);
}

/* ---------------------------------------------------------------------------------------------
 * Pending copies
 * ------------------------------------------------------------------------------------------- */

/* With the lock. @return the first of the copies, linked by `next`; NULL if there are none */
static opal_umrddt_gpu_copy_t *take(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_pending_t *pending = &engine->pending;
    opal_umrddt_gpu_copy_t *first = pending->first;

    opal_umrddt_gpu_change(&opal_umrddt_gpu_pending_copies, -(int) pending->n);
    pending->first = NULL;
    pending->n = 0;
    pending->before = 0;
    return first;
}

/* Start copies. */
static void start(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_copy_t *first)
{
    opal_umrddt_gpu_copy_t *next;
    bool pushed;
    const int rc = opal_umrddt_gpu_engine_swap_in(engine, &pushed);

    if (OPAL_SUCCESS != rc) {
        for (; NULL != first; first = next) {
            next = first->next;
            opal_umrddt_gpu_copy_started(first, COPY_OVER, rc);
        }
        return;
    }
    if (NULL == first->next) {
        opal_umrddt_gpu_copy_start(first);
    } else {
        go_all(engine, first);
    }
    opal_umrddt_gpu_engine_swap_out(engine, pushed);
}

void opal_umrddt_gpu_flush_now(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_copy_t *first;

    OPAL_THREAD_LOCK(&engine->lock);
    first = take(engine);
    OPAL_THREAD_UNLOCK(&engine->lock);
    if (NULL != first) {
        start(engine, first);
    }
}

static uint64_t now(void)
{
    struct timespec time;

    (void) clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * UINT64_C(1000000000) + (uint64_t) time.tv_nsec;
}

/* True if more copies are likely to come soon; with the lock. */
static bool hold(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_pending_t *pending = &engine->pending;
    const bool expected = opal_umrddt_gpu_expects(), grown = pending->n > pending->before;
    uint64_t time;

    if (!expected && !(grown && engine->busy > pending->n) && 0 == pending->before) {
        return false;
    }
    if (grown && 0 < pending->skips) {
        --pending->skips;
        return false;
    }
    time = now();
    if (0 < pending->before && HELD_MOST < time - pending->held_at) {
        pending->skips = HELD_SKIPS;
        return false;
    }
    if (grown && (expected || engine->busy > pending->n)) {
        pending->before = pending->n;
        pending->held_at = time;
        return true;
    }
    if (expected && HELD_NEXT > time - pending->held_at) {
        return true;
    }
    if (expected && 1 == pending->n) {
        pending->skips = HELD_SKIPS; /* it was held in vain */
    }
    return false;
}

static void flush(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_copy_t *first = NULL;

    if (OPAL_UMRDDT_GPU_BATCH_LATE == opal_umrddt_gpu_engine_set.batch) {
        return;
    }
    OPAL_THREAD_LOCK(&engine->lock);
    if (!hold(engine)) {
        first = take(engine);
    }
    OPAL_THREAD_UNLOCK(&engine->lock);
    if (NULL != first) {
        start(engine, first);
    }
}

void opal_umrddt_gpu_flush_pending(void)
{
    opal_umrddt_gpu_engines_each(flush);
}

static bool may_wait(const opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_copy_end_t *from,
                     const opal_umrddt_gpu_copy_end_t *to, uint64_t bytes)
{
    const opal_umrddt_gpu_engine_params_t *set = &opal_umrddt_gpu_engine_set;

    return __atomic_load_n(&engine->kernels, __ATOMIC_RELAXED) && 1 != set->batch
           && OPAL_UMRDDT_GPU_AUTO == set->scheme
           && (OPAL_UMRDDT_GPU_HOW_AUTO == set->how || OPAL_UMRDDT_GPU_HOW_KERNEL == set->how)
           && 0 < bytes && PENDING_BYTES >= bytes && opal_umrddt_gpu_is_reached(engine, from)
           && opal_umrddt_gpu_is_reached(engine, to);
}

int opal_umrddt_gpu_copy_later(opal_umrddt_gpu_engine_t *engine,
                               const opal_umrddt_gpu_copy_end_t *from,
                               const opal_umrddt_gpu_copy_end_t *to, uint64_t start_at,
                               uint64_t end, opal_umrddt_gpu_copy_t **result)
{
    const unsigned set = opal_umrddt_gpu_engine_set.batch;
    const unsigned most =
        0 == set || OPAL_UMRDDT_GPU_BATCH_MOST < set ? OPAL_UMRDDT_GPU_BATCH_MOST : set;
    opal_umrddt_gpu_pending_t *pending = &engine->pending;
    opal_umrddt_gpu_copy_t *copy;
    bool full;
    int rc;

    if (start_at > end || (NULL != from->layout && end > from->layout->size)
        || (NULL != to->layout && end > to->layout->size)
        || !may_wait(engine, from, to, end - start_at)) {
        return opal_umrddt_gpu_copy(engine, from, to, start_at, end, result);
    }
    OPAL_THREAD_LOCK(&engine->lock);
    copy = opal_umrddt_gpu_copy_pop(engine);
    if (OPAL_UNLIKELY(NULL == copy)) {
        OPAL_THREAD_UNLOCK(&engine->lock);
        rc = opal_umrddt_gpu_copy_take(engine, &copy);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        OPAL_THREAD_LOCK(&engine->lock);
    }
    copy->copy_end[0] = *from;
    copy->copy_end[1] = *to;
    copy->start = start_at;
    copy->end = end;
    copy->kind = COPY_PENDING;
    copy->next = NULL;
    *result = copy;
    if (NULL == pending->first) {
        pending->first = copy;
    } else {
        pending->last->next = copy;
    }
    pending->last = copy;
    full = most <= ++pending->n;
    opal_umrddt_gpu_change(&opal_umrddt_gpu_pending_copies, 1);
    OPAL_THREAD_UNLOCK(&engine->lock);
    COUNT(copies, 1);
    if (full) {
        opal_umrddt_gpu_flush_now(engine);
    }
    return OPAL_SUCCESS;
}
