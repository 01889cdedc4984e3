/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Events: points in streams. */

#include "gpu_event_ipc.h"

#include <stdlib.h>
#include <time.h>

struct CUevent_st {
    CUcontext ctx;
    unsigned flags;
    CUstream stream; /* NULL: never recorded; counted in its refs */
    uint64_t number;
    struct stamp *stamp;
    struct gpu_shared_event *shared; /* CU_EVENT_INTERPROCESS; then there is no stream or stamp */
    struct CUevent_st *next;
};

/* When it was reached. Of its own, as the event may be gone by then. */
struct stamp {
    unsigned refs;
    bool reached;
    struct timespec time;
};

struct record {
    struct gpu_work head;
    struct stamp *stamp;
};

/* A shared one is recorded, or waited for. */
struct shared_work {
    struct gpu_work head;
    struct gpu_shared_event *shared;
    uint64_t number;
};

static CUevent events;

static bool exists(CUevent event)
{
    CUevent e;

    for (e = events; NULL != e && e != event; e = e->next) {
    }
    return NULL != e;
}

static void drop_stamp(struct stamp *stamp)
{
    if (NULL != stamp && 0 == --stamp->refs) {
        free(stamp);
    }
}

static void drop_record(struct gpu_work *work)
{
    drop_stamp(((struct record *) work)->stamp);
}

static CUresult run_record(struct gpu_work *work, CUcontext ctx)
{
    struct record *record = (struct record *) work;

    (void) ctx;
    pthread_mutex_lock(&gpu_lock);
    clock_gettime(CLOCK_MONOTONIC, &record->stamp->time);
    record->stamp->reached = true;
    return gpu_end(CUDA_SUCCESS);
}

static void drop_shared(struct gpu_work *work)
{
    gpu_shared_drop(((struct shared_work *) work)->shared);
}

/* If it does not run, as its context broke, no thread waits for ever. */
static void drop_reach(struct gpu_work *work)
{
    struct shared_work *shared = (struct shared_work *) work;

    gpu_shared_reach(shared->shared, shared->number);
    gpu_shared_drop(shared->shared);
}

static CUresult run_reach(struct gpu_work *work, CUcontext ctx)
{
    struct shared_work *shared = (struct shared_work *) work;

    (void) ctx;
    gpu_shared_reach(shared->shared, shared->number);
    return CUDA_SUCCESS;
}

static CUresult run_wait(struct gpu_work *work, CUcontext ctx)
{
    struct shared_work *shared = (struct shared_work *) work;

    (void) ctx;
    gpu_shared_wait(shared->shared, shared->number);
    return CUDA_SUCCESS;
}

static CUresult record_shared(CUevent event, CUstream stream)
{
    struct shared_work *work =
        gpu_work_new(sizeof(*work), CU_GRAPH_NODE_TYPE_EVENT_RECORD, run_reach, drop_reach);

    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu_shared_hold(event->shared);
    work->shared = event->shared;
    work->number = gpu_shared_record(event->shared);
    return gpu_submit(stream, &work->head, false);
}

static CUresult wait_shared(CUevent event, CUstream stream)
{
    struct shared_work *work =
        gpu_work_new(sizeof(*work), CU_GRAPH_NODE_TYPE_WAIT_EVENT, run_wait, drop_shared);

    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu_shared_hold(event->shared);
    work->shared = event->shared;
    work->number = gpu_shared_recorded(event->shared);
    return gpu_submit(stream, &work->head, false);
}

static CUresult query_shared(CUevent event)
{
    return gpu_shared_reached(event->shared, gpu_shared_recorded(event->shared))
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_READY;
}

/* Gives the lock up. */
static CUresult synchronize_shared(CUevent event)
{
    struct gpu_shared_event *shared = event->shared;
    CUcontext ctx = event->ctx;
    uint64_t number = gpu_shared_recorded(shared);

    gpu_shared_hold(shared);
    pthread_mutex_unlock(&gpu_lock);
    gpu_shared_wait(shared, number);
    pthread_mutex_lock(&gpu_lock);
    gpu_shared_drop(shared);
    return ctx->error;
}

static CUresult add(CUcontext ctx, unsigned flags, struct gpu_shared_event *shared, CUevent *event)
{
    CUevent e = calloc(1, sizeof(*e));

    if (NULL == e) {
        gpu_shared_drop(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->ctx = ctx;
    e->flags = flags;
    e->shared = shared;
    e->next = events;
    events = e;
    *event = e;
    return CUDA_SUCCESS;
}

CUcontext gpu_event_context(const void *event)
{
    CUevent handle = (CUevent) (uintptr_t) event;

    return exists(handle) ? handle->ctx : NULL;
}

GPU_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuIpcGetEventHandle, &ctx);
    if (NULL == handle || !exists(event)) {
        return gpu_end(NULL == handle ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
    }
    return gpu_end(NULL == event->shared ? CUDA_ERROR_INVALID_HANDLE
                                         : gpu_shared_export(event->shared, handle));
}

GPU_EXPORT CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    struct gpu_shared_event *shared;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuIpcOpenEventHandle, &ctx);
    if (NULL == event) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    rc = gpu_shared_open(&handle, &shared);
    if (CUDA_SUCCESS == rc) {
        rc = add(ctx, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, event);
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    struct gpu_shared_event *shared = NULL;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuEventCreate, &ctx);
    if (NULL == event || 7 < flags
        || (0 != (flags & CU_EVENT_INTERPROCESS) && 0 == (flags & CU_EVENT_DISABLE_TIMING))) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (0 != (flags & CU_EVENT_INTERPROCESS)) {
        shared = gpu_shared_make();
        if (NULL == shared) {
            return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
        }
    }
    return gpu_end(add(ctx, flags, shared, event));
}

static void forget(CUevent event)
{
    if (NULL != event->stream) {
        gpu_stream_drop(event->stream);
        event->stream = NULL;
    }
    drop_stamp(event->stamp);
    event->stamp = NULL;
}

GPU_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    CUcontext ctx;
    CUevent *p;

    GPU_BEGIN_EVENT(cuEventDestroy_v2, event, &ctx);
    if (!exists(event)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    for (p = &events; *p != event; p = &(*p)->next) {
    }
    *p = event->next;
    forget(event);
    gpu_shared_drop(event->shared);
    free(event);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle)
{
    struct record *record;
    struct stamp *stamp;
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuEventRecord, handle, &ctx);
    rc = exists(event) ? gpu_stream_get(ctx, handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (CUDA_SUCCESS != rc || stream->ctx != event->ctx) {
        return gpu_end(CUDA_SUCCESS != rc ? rc : CUDA_ERROR_INVALID_HANDLE);
    }
    if (NULL != stream->capture) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (NULL != event->shared) {
        return gpu_end(record_shared(event, stream));
    }
    stamp = calloc(1, sizeof(*stamp));
    record =
        gpu_work_new(sizeof(*record), CU_GRAPH_NODE_TYPE_EVENT_RECORD, run_record, drop_record);
    if (NULL == stamp || NULL == record) {
        free(stamp);
        free(record);
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    record->stamp = stamp;
    stamp->refs = 2;
    forget(event);
    event->stamp = stamp;
    rc = gpu_submit(stream, &record->head, false);
    if (CUDA_SUCCESS == rc) {
        event->stream = stream;
        stream->refs++;
        event->number = stream->submitted;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuEventQuery(CUevent event)
{
    CUcontext ctx;

    GPU_BEGIN_EVENT(cuEventQuery, event, &ctx);
    if (!exists(event)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (CUDA_SUCCESS != event->ctx->error) {
        return gpu_end(event->ctx->error);
    }
    if (CUDA_SUCCESS != gpu_capture_unsafe()) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (NULL != event->shared) {
        return gpu_end(query_shared(event));
    }
    return gpu_end(NULL == event->stream || event->stream->done >= event->number
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_NOT_READY);
}

GPU_EXPORT CUresult cuEventSynchronize(CUevent event)
{
    CUcontext ctx;

    GPU_BEGIN_EVENT(cuEventSynchronize, event, &ctx);
    gpu_count.syncs++;
    if (!exists(event)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (CUDA_SUCCESS != gpu_capture_unsafe()) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (NULL != event->shared) {
        return gpu_end(synchronize_shared(event));
    }
    return gpu_end(NULL == event->stream ? CUDA_SUCCESS
                                         : gpu_stream_wait(event->stream, event->number));
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    if (NULL == milliseconds) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!exists(start) || !exists(end) || NULL == start->stream || NULL == end->stream
        || 0 != ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!start->stamp->reached || !end->stamp->reached) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds =
        (float) ((double) (end->stamp->time.tv_sec - start->stamp->time.tv_sec) * 1e3
                 + (double) (end->stamp->time.tv_nsec - start->stamp->time.tv_nsec) * 1e-6);
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUcontext ctx;

    GPU_BEGIN_EVENT(cuEventElapsedTime, start, &ctx);
    return gpu_end(elapsed(milliseconds, start, end));
}

GPU_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    CUcontext ctx;

    GPU_BEGIN_EVENT(cuEventElapsedTime_v2, start, &ctx);
    return gpu_end(elapsed(milliseconds, start, end));
}

GPU_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamWaitEvent, handle, &ctx);
    if (0 != flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    rc = exists(event) ? gpu_stream_get(ctx, handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (CUDA_SUCCESS != rc) {
        return gpu_end(rc);
    }
    if (NULL != stream->capture) {
        return gpu_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (NULL != event->shared) {
        return gpu_end(wait_shared(event, stream));
    }
    return gpu_end(NULL == event->stream ? CUDA_SUCCESS
                                         : gpu_submit_dep(stream, event->stream, event->number));
}
