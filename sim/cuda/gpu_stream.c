/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Streams. Each has a thread, begun with its first work, which does one piece after the other: not
 * before the work that it depends on in other streams, and as late as the options say.
 */

#include "gpu.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

static unsigned long long last_id;

/* A thread's own default streams, one for each context that it used. */
struct own {
    struct own *next;
    CUcontext ctx;
    CUstream stream;
};
static __thread struct own *own;

void *gpu_work_new(size_t size, CUgraphNodeType type,
                   CUresult (*run)(struct gpu_work *work, CUcontext ctx),
                   void (*drop)(struct gpu_work *work))
{
    struct gpu_work *work = calloc(1, size);

    if (NULL != work) {
        work->refs = 1;
        work->type = type;
        work->run = run;
        work->drop = drop;
    }
    return work;
}

void gpu_work_drop(struct gpu_work *work)
{
    if (0 == --work->refs) {
        if (NULL != work->drop) {
            work->drop(work);
        }
        free(work);
    }
}

CUstream gpu_stream_new(CUcontext ctx, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof(*stream));

    if (NULL == stream) {
        return NULL;
    }
    stream->ctx = ctx;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++last_id;
    stream->refs = 1;
    pthread_cond_init(&stream->came, NULL);
    stream->tail = &stream->head;
    stream->next = ctx->streams;
    ctx->streams = stream;
    return stream;
}

void gpu_stream_drop(CUstream stream)
{
    if (0 == --stream->refs) {
        pthread_cond_destroy(&stream->came);
        free(stream);
    }
}

static CUstream thread_stream(CUcontext ctx)
{
    struct own *o;

    for (o = own; NULL != o; o = o->next) {
        if (o->ctx == ctx) {
            return o->stream;
        }
    }
    o = malloc(sizeof(*o));
    if (NULL == o) {
        return NULL;
    }
    o->ctx = ctx;
    o->stream = gpu_stream_new(ctx, CU_STREAM_DEFAULT, 0);
    if (NULL == o->stream) {
        free(o);
        return NULL;
    }
    o->next = own;
    own = o;
    return o->stream;
}

CUresult gpu_stream_get(CUcontext ctx, CUstream handle, CUstream *stream)
{
    if (NULL == handle || CU_STREAM_LEGACY == handle) {
        *stream = ctx->legacy;
        return CUDA_SUCCESS;
    }
    if (CU_STREAM_PER_THREAD == handle) {
        *stream = thread_stream(ctx);
        return NULL == *stream ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (!gpu_stream_exists(handle)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *stream = handle;
    return handle->ctx->error;
}

/* ---- the thread ---- */

static void pause_us(uint64_t us)
{
    struct timespec time = {(time_t) (us / 1000000), (long) (us % 1000000) * 1000};

    if (0 < us) {
        nanosleep(&time, NULL);
    }
}

static void late(void)
{
    if (0 < gpu_conf.delay_us) {
        pause_us(gpu_random(gpu_conf.delay_us + 1ull));
    }
}

static void drop_op(struct gpu_op *op)
{
    unsigned i;

    for (i = 0; i < op->dep_count; i++) {
        gpu_stream_drop(op->deps[i].stream);
    }
    gpu_work_drop(op->work);
    free(op->deps);
    free(op);
}

static void *work(void *data)
{
    CUstream stream = data;

    pthread_mutex_lock(&gpu_lock);
    while (true) {
        struct gpu_op *op = stream->head;
        CUresult rc = CUDA_SUCCESS;
        unsigned i;

        if (NULL == op) {
            if (stream->closing) {
                break;
            }
            pthread_cond_wait(&stream->came, &gpu_lock);
            continue;
        }
        for (i = 0; i < op->dep_count; i++) {
            while (op->deps[i].stream->done < op->deps[i].number) {
                pthread_cond_wait(&gpu_changed, &gpu_lock);
            }
        }
        /* After an error nothing more is done in the context. */
        if (CUDA_SUCCESS == stream->ctx->error) {
            pthread_mutex_unlock(&gpu_lock);
            late();
            if (op->work->late) {
                pause_us(gpu_conf.late_us);
            }
            rc = op->work->run(op->work, stream->ctx);
            late();
            pthread_mutex_lock(&gpu_lock);
        }
        if (CUDA_SUCCESS != rc && CUDA_SUCCESS == stream->ctx->error) {
            stream->ctx->error = rc;
        }
        stream->head = op->next;
        if (NULL == op->next) {
            stream->tail = &stream->head;
        }
        stream->done = op->number;
        drop_op(op);
        pthread_cond_broadcast(&gpu_changed);
    }
    stream->started = false;
    gpu_stream_drop(stream);
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
    return NULL;
}

/* Signals are for the application's threads. */
static CUresult begin_thread(CUstream stream)
{
    sigset_t all;
    sigset_t old;
    int rc;

    if (stream->started) {
        return CUDA_SUCCESS;
    }
    sigfillset(&all);
    /* A signal by a fault of this code must not be hidden. */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    rc = pthread_create(&stream->thread, NULL, work, stream);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (0 != rc) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_detach(stream->thread);
    stream->started = true;
    stream->refs++;
    return CUDA_SUCCESS;
}

static bool blocking(CUstream stream)
{
    return 0 == (stream->flags & CU_STREAM_NON_BLOCKING);
}

static bool add_dep(struct gpu_op *op, CUstream stream, uint64_t number)
{
    struct gpu_dep *deps;

    if (stream->done >= number) {
        return true;
    }
    deps = realloc(op->deps, (op->dep_count + 1) * sizeof(*deps));
    if (NULL == deps) {
        return false;
    }
    op->deps = deps;
    deps[op->dep_count].stream = stream;
    deps[op->dep_count++].number = number;
    stream->refs++;
    return true;
}

/* The default stream waits for all blocking streams, and they for it. */
static bool add_default_deps(CUstream stream, struct gpu_op *op)
{
    CUcontext ctx = stream->ctx;
    CUstream s;

    if (!blocking(stream)) {
        return true;
    }
    if (stream != ctx->legacy) {
        return add_dep(op, ctx->legacy, ctx->legacy->submitted);
    }
    for (s = ctx->streams; NULL != s; s = s->next) {
        if (s != stream && blocking(s) && !add_dep(op, s, s->submitted)) {
            return false;
        }
    }
    return true;
}

static CUresult append(CUstream stream, struct gpu_work *work, CUstream other, uint64_t number)
{
    struct gpu_op *op = calloc(1, sizeof(*op));
    CUresult rc;

    if (NULL == op) {
        gpu_work_drop(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->work = work;
    rc = begin_thread(stream);
    if (CUDA_SUCCESS == rc
        && (!add_default_deps(stream, op) || (NULL != other && !add_dep(op, other, number)))) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (CUDA_SUCCESS != rc) {
        drop_op(op);
        return rc;
    }
    op->number = ++stream->submitted;
    *stream->tail = op;
    stream->tail = &op->next;
    pthread_cond_signal(&stream->came);
    return CUDA_SUCCESS;
}

CUresult gpu_submit_after(CUstream stream, struct gpu_work *work, CUstream other, uint64_t number)
{
    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return append(stream, work, other, number);
}

CUresult gpu_submit(CUstream stream, struct gpu_work *work, bool wait)
{
    CUresult rc;

    if (NULL == work) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (NULL != stream->capture) {
        return gpu_capture_add(stream, work);
    }
    rc = stream == stream->ctx->legacy ? gpu_capture_implicit(stream->ctx, true) : CUDA_SUCCESS;
    if (CUDA_SUCCESS != rc) {
        gpu_work_drop(work);
        return rc;
    }
    rc = append(stream, work, NULL, 0);
    return CUDA_SUCCESS == rc && wait ? gpu_stream_wait(stream, stream->submitted) : rc;
}

static CUresult nothing(struct gpu_work *work, CUcontext ctx)
{
    (void) work;
    (void) ctx;
    return CUDA_SUCCESS;
}

struct gpu_work *gpu_work_nothing(void)
{
    return gpu_work_new(sizeof(struct gpu_work), CU_GRAPH_NODE_TYPE_EMPTY, nothing, NULL);
}

CUresult gpu_submit_dep(CUstream stream, CUstream other, uint64_t number)
{
    return gpu_submit_after(stream, gpu_work_nothing(), other, number);
}

CUresult gpu_stream_wait(CUstream stream, uint64_t number)
{
    CUcontext ctx = stream->ctx;

    stream->refs++;
    while (stream->done < number) {
        pthread_cond_wait(&gpu_changed, &gpu_lock);
    }
    gpu_stream_drop(stream);
    return ctx->error;
}

/* A stream in which such work is in flight. @param[out] number  of the work */
static CUstream late_on(uint64_t id, uint64_t *number)
{
    struct gpu_op *op;
    CUcontext c;
    CUstream s;

    for (c = gpu_ctx_next(NULL); NULL != c; c = gpu_ctx_next(c)) {
        for (s = c->streams; NULL != s; s = s->next) {
            for (op = s->head; NULL != op; op = op->next) {
                if (op->work->late && (id == op->work->touches[0] || id == op->work->touches[1])) {
                    *number = op->number;
                    return s;
                }
            }
        }
    }
    return NULL;
}

void gpu_wait_late(uint64_t id)
{
    uint64_t number;
    CUstream stream;

    /* The lists may change while waiting. */
    while (NULL != (stream = late_on(id, &number))) {
        (void) gpu_stream_wait(stream, number);
    }
}

CUresult gpu_drain(CUcontext ctx)
{
    CUresult rc = CUDA_SUCCESS;
    CUcontext c;
    CUstream s;

    for (c = gpu_ctx_next(NULL); NULL != c; c = gpu_ctx_next(c)) {
        if (NULL != ctx && c != ctx) {
            continue;
        }
    again:
        for (s = c->streams; NULL != s; s = s->next) {
            if (s->done < s->submitted) {
                /* The list may change while waiting. */
                (void) gpu_stream_wait(s, s->submitted);
                goto again;
            }
        }
        if (CUDA_SUCCESS == rc) {
            rc = c->error;
        }
    }
    return rc;
}

static void end(CUstream stream)
{
    CUstream *p;

    for (p = &stream->ctx->streams; *p != stream; p = &(*p)->next) {
    }
    *p = stream->next;
    stream->closing = true;
    gpu_capture_end(stream);
    pthread_cond_signal(&stream->came);
    gpu_stream_drop(stream);
}

void gpu_streams_end(CUcontext ctx)
{
    while (NULL != ctx->streams) {
        CUstream stream = ctx->streams;

        stream->refs++;
        end(stream);
        while (stream->started) {
            pthread_cond_wait(&gpu_changed, &gpu_lock);
        }
        gpu_stream_drop(stream);
    }
}

bool gpu_stream_exists(CUstream stream)
{
    CUcontext c;
    CUstream s;

    for (c = gpu_ctx_next(NULL); NULL != c; c = gpu_ctx_next(c)) {
        for (s = c->streams; NULL != s; s = s->next) {
            if (s == stream) {
                return true;
            }
        }
    }
    return false;
}

/* ---- the API ---- */

static CUresult create(CUcontext ctx, CUstream *stream, unsigned flags, int priority)
{
    if (NULL == stream || CU_STREAM_NON_BLOCKING < (int) flags) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *stream = gpu_stream_new(ctx, flags, priority);
    return NULL == *stream ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuStreamCreate, &ctx);
    return gpu_end(create(ctx, stream, flags, 0));
}

GPU_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuStreamCreateWithPriority, &ctx);
    priority = 0 < priority ? 0 : priority;
    return gpu_end(create(ctx, stream, flags, -5 > priority ? -5 : priority));
}

CUcontext gpu_stream_context(const void *stream)
{
    CUstream handle = (CUstream) (uintptr_t) stream;

    return gpu_stream_exists(handle) ? handle->ctx : NULL;
}

GPU_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuStreamDestroy_v2, stream, &ctx);
    if (!gpu_stream_exists(stream) || stream == stream->ctx->legacy) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    end(stream);
    return gpu_end(CUDA_SUCCESS);
}

/* The stream, and whether it can be waited for or queried: not while it captures. */
static CUresult get_idle(CUcontext ctx, CUstream handle, CUstream *stream)
{
    CUresult rc = gpu_stream_get(ctx, handle, stream);

    if (CUDA_SUCCESS == rc && NULL != (*stream)->capture) {
        (*stream)->capture_broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (CUDA_SUCCESS == rc && *stream == (*stream)->ctx->legacy) {
        rc = gpu_capture_implicit((*stream)->ctx, true);
    }
    return CUDA_SUCCESS == rc ? gpu_capture_unsafe() : rc;
}

/* Work that the default stream waits for is part of it. */
static uint64_t last_of(CUstream stream)
{
    if (stream == stream->ctx->legacy) {
        CUstream s;

        for (s = stream->ctx->streams; NULL != s; s = s->next) {
            if (s != stream && blocking(s) && s->done < s->submitted) {
                (void) gpu_submit_dep(stream, s, s->submitted);
                break;
            }
        }
    }
    return stream->submitted;
}

GPU_EXPORT CUresult cuStreamQuery(CUstream handle)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamQuery, handle, &ctx);
    rc = get_idle(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc && stream->done < last_of(stream)) {
        rc = CUDA_ERROR_NOT_READY;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamSynchronize, handle, &ctx);
    gpu_count.syncs++;
    rc = get_idle(ctx, handle, &stream);
    return gpu_end(CUDA_SUCCESS == rc ? gpu_stream_wait(stream, last_of(stream)) : rc);
}

GPU_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamGetFlags, handle, &ctx);
    rc = NULL == flags ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc) {
        *flags = stream->flags;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamGetPriority, handle, &ctx);
    rc = NULL == priority ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc) {
        *priority = stream->priority;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *of)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamGetCtx, handle, &ctx);
    rc = NULL == of ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc) {
        *of = stream->ctx;
    }
    return gpu_end(rc);
}

GPU_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_STREAM(cuStreamGetId, handle, &ctx);
    rc = NULL == id ? CUDA_ERROR_INVALID_VALUE : gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc) {
        *id = stream->id;
    }
    return gpu_end(rc);
}

/* ---- functions of the application in a stream ---- */

struct call {
    struct gpu_work head;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *data;
};

static CUresult run_call(struct gpu_work *work, CUcontext ctx)
{
    struct call *call = (struct call *) work;

    if (NULL != call->function) {
        call->function(call->data);
    } else {
        call->callback(call->stream, ctx->error, call->data);
    }
    return CUDA_SUCCESS;
}

static CUresult add_call(CUcontext ctx, CUstream handle, CUhostFn function,
                         CUstreamCallback callback, void *data)
{
    struct call *call;
    CUstream stream;
    CUresult rc = gpu_stream_get(ctx, handle, &stream);

    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    call = gpu_work_new(sizeof(*call), CU_GRAPH_NODE_TYPE_HOST, run_call, NULL);
    if (NULL == call) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    call->function = function;
    call->callback = callback;
    call->stream = handle;
    call->data = data;
    return gpu_submit(stream, &call->head, false);
}

GPU_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuLaunchHostFunc, stream, &ctx);
    return gpu_end(NULL == function ? CUDA_ERROR_INVALID_VALUE
                                    : add_call(ctx, stream, function, NULL, data));
}

GPU_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
                                        unsigned int flags)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuStreamAddCallback, stream, &ctx);
    return gpu_end(NULL == callback || 0 != flags ? CUDA_ERROR_INVALID_VALUE
                                                  : add_call(ctx, stream, NULL, callback, data));
}
