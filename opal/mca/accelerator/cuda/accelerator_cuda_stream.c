/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Streams and events of the framework. Open MPI creates them without a device, possibly before the
 * application uses CUDA, and copies memory of any context with them. So a stream of the framework
 * is a chain of CUDA streams, one for each context used, each of which waits for the previous one.
 * An event is created when it is recorded, in the context of the last of these.
 */

#include "accelerator_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

typedef struct link_t {
    struct link_t *next;
    opal_accelerator_cuda_context_t *context;
    CUstream stream;
    CUevent end; /**< for the next link */
} link_t;

typedef struct opal_accelerator_cuda_stream_t {
    opal_accelerator_stream_t super;
    pthread_mutex_t lock;
    link_t *links;
    link_t *last; /**< link with the latest work; NULL: none */
} opal_accelerator_cuda_stream_t;

typedef struct opal_accelerator_cuda_event_t {
    opal_accelerator_event_t super;
    pthread_mutex_t lock;
    opal_accelerator_cuda_context_t *context; /**< NULL: no pending work was recorded */
    CUevent event;
} opal_accelerator_cuda_event_t;

static const opal_umrddt_gpu_driver_t *the_driver(void)
{
    const opal_umrddt_gpu_driver_t *driver = NULL;

    (void) opal_umrddt_gpu_driver_load(&driver);
    return driver;
}

/* ---- links ---- */

/* With the context current, if it exists; else the driver's objects are gone. */
static void free_link(link_t *link)
{
    bool pushed;

    if (opal_accelerator_cuda_context_exists(link->context)
        && CUDA_SUCCESS == opal_accelerator_cuda_enter(link->context, &pushed)) {
        if (NULL != link->stream) {
            (void) the_driver()->cuStreamDestroy_v2(link->stream);
        }
        if (NULL != link->end) {
            (void) the_driver()->cuEventDestroy_v2(link->end);
        }
        opal_accelerator_cuda_leave(pushed);
    }
    free(link);
}

/* With the context current. */
static CUresult make_link(opal_accelerator_cuda_context_t *context, link_t **made)
{
    link_t *link = calloc(1, sizeof(*link));
    CUresult rc;

    if (NULL == link) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link->context = context;
    rc = the_driver()->cuStreamCreate(&link->stream, CU_STREAM_DEFAULT);
    if (CUDA_SUCCESS == rc) {
        rc = the_driver()->cuEventCreate(&link->end, CU_EVENT_DISABLE_TIMING);
    }
    if (CUDA_SUCCESS != rc) {
        free_link(link);
        return rc;
    }
    *made = link;
    return CUDA_SUCCESS;
}

/* With the stream's lock: let the following work wait for all work of the last link. */
static CUresult hand_on(const link_t *last, const link_t *next)
{
    bool pushed;
    CUresult rc;

    if (NULL == last || last == next || !opal_accelerator_cuda_context_exists(last->context)) {
        return CUDA_SUCCESS;
    }
    rc = opal_accelerator_cuda_enter(last->context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = the_driver()->cuEventRecord(last->end, last->stream);
        opal_accelerator_cuda_leave(pushed);
    }
    return CUDA_SUCCESS == rc ? the_driver()->cuStreamWaitEvent(next->stream, last->end, 0) : rc;
}

/* With the stream's lock, and the context current: the link for the following work. */
static CUresult link_in(opal_accelerator_cuda_stream_t *stream,
                        opal_accelerator_cuda_context_t *context, link_t **found)
{
    link_t *link = stream->links;
    CUresult rc = CUDA_SUCCESS;

    while (NULL != link && link->context != context) {
        link = link->next;
    }
    if (NULL == link) {
        rc = make_link(context, &link);
        if (CUDA_SUCCESS != rc) {
            return rc;
        }
        link->next = stream->links;
        stream->links = link;
    }
    rc = hand_on(stream->last, link);
    if (CUDA_SUCCESS == rc) {
        stream->last = link;
        *found = link;
    }
    return rc;
}

/* With the stream's lock: wait until all work is done. */
static CUresult finish(const opal_accelerator_cuda_stream_t *stream)
{
    const link_t *last = stream->last;
    bool pushed;
    CUresult rc;

    if (NULL == last || !opal_accelerator_cuda_context_exists(last->context)) {
        return CUDA_SUCCESS;
    }
    rc = opal_accelerator_cuda_enter(last->context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = the_driver()->cuStreamSynchronize(last->stream);
        opal_accelerator_cuda_leave(pushed);
    }
    return rc;
}

/* ---- streams ---- */

static void stream_construct(opal_accelerator_cuda_stream_t *stream)
{
    stream->super.stream = stream;
    pthread_mutex_init(&stream->lock, NULL);
    stream->links = NULL;
    stream->last = NULL;
}

static void stream_destruct(opal_accelerator_cuda_stream_t *stream)
{
    link_t *link, *next;

    for (link = stream->links; NULL != link; link = next) {
        next = link->next;
        free_link(link);
    }
    pthread_mutex_destroy(&stream->lock);
}

static OBJ_CLASS_INSTANCE(opal_accelerator_cuda_stream_t, opal_object_t, stream_construct,
                          stream_destruct);

int opal_accelerator_cuda_create_stream(int dev_id, opal_accelerator_stream_t **stream)
{
    opal_accelerator_cuda_stream_t *made;

    (void) dev_id;
    if (NULL == stream) {
        return OPAL_ERR_BAD_PARAM;
    }
    made = OBJ_NEW(opal_accelerator_cuda_stream_t);
    if (NULL == made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *stream = &made->super;
    return OPAL_SUCCESS;
}

#if UMRDDT_OPAL_RELEASE >= 600
static opal_accelerator_stream_t *default_stream;

int opal_accelerator_cuda_streams_open(void)
{
    return opal_accelerator_cuda_create_stream(MCA_ACCELERATOR_NO_DEVICE_ID, &default_stream);
}

void opal_accelerator_cuda_streams_close(void)
{
    if (NULL != default_stream) {
        OBJ_RELEASE(default_stream);
    }
}
#endif

static opal_accelerator_cuda_stream_t *stream_of(opal_accelerator_stream_t *super)
{
#if UMRDDT_OPAL_RELEASE >= 600
    if (MCA_ACCELERATOR_STREAM_DEFAULT == super) {
        super = default_stream;
    }
#endif
    return (opal_accelerator_cuda_stream_t *) super;
}

/* With the stream's lock. */
static CUresult copy_in(opal_accelerator_cuda_stream_t *stream,
                        const opal_accelerator_cuda_copy_t *copy)
{
    opal_accelerator_cuda_context_t *context = opal_accelerator_cuda_copy_context(copy);
    link_t *link;
    bool pushed;
    CUresult rc;

    if (NULL == context) {
        rc = finish(stream);
        if (CUDA_SUCCESS == rc) {
            memcpy((void *) (uintptr_t) copy->to, (const void *) (uintptr_t) copy->from,
                   copy->size);
        }
        return rc;
    }
    rc = opal_accelerator_cuda_enter(context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = link_in(stream, context, &link);
        if (CUDA_SUCCESS == rc) {
            rc = opal_accelerator_cuda_copy_put(copy, link->stream);
        }
        opal_accelerator_cuda_leave(pushed);
    }
    return rc;
}

int opal_accelerator_cuda_mem_copy_async(int to_device, int from_device, void *to, const void *from,
                                         size_t size, opal_accelerator_stream_t *super,
                                         opal_accelerator_transfer_type_t type)
{
    opal_accelerator_cuda_stream_t *stream = stream_of(super);
    opal_accelerator_cuda_copy_t copy;
    CUresult result;
    int rc;

    (void) to_device, (void) from_device, (void) type;
    if (NULL == stream) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (0 == size) {
        return OPAL_SUCCESS;
    }
    rc = opal_accelerator_cuda_copy_look(to, from, size, &copy);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    pthread_mutex_lock(&stream->lock);
    result = copy_in(stream, &copy);
    pthread_mutex_unlock(&stream->lock);
    return opal_accelerator_cuda_result(result, "an asynchronous copy failed");
}

/* ---- events ---- */

static void event_construct(opal_accelerator_cuda_event_t *event)
{
    event->super.event = event;
    pthread_mutex_init(&event->lock, NULL);
    event->context = NULL;
    event->event = NULL;
}

/* Reset to an event that was never recorded. */
static void event_clear(opal_accelerator_cuda_event_t *event)
{
    bool pushed;

    if (NULL != event->context && opal_accelerator_cuda_context_exists(event->context)
        && CUDA_SUCCESS == opal_accelerator_cuda_enter(event->context, &pushed)) {
        (void) the_driver()->cuEventDestroy_v2(event->event);
        opal_accelerator_cuda_leave(pushed);
    }
    event->context = NULL;
    event->event = NULL;
}

static void event_destruct(opal_accelerator_cuda_event_t *event)
{
    event_clear(event);
    pthread_mutex_destroy(&event->lock);
}

static OBJ_CLASS_INSTANCE(opal_accelerator_cuda_event_t, opal_object_t, event_construct,
                          event_destruct);

int opal_accelerator_cuda_create_event(int dev_id,
                                       opal_accelerator_event_t **event OPAL_ACCELERATOR_CUDA_IPC)
{
    opal_accelerator_cuda_event_t *made;

    (void) dev_id;
    if (NULL == event) {
        return OPAL_ERR_BAD_PARAM;
    }
    made = OBJ_NEW(opal_accelerator_cuda_event_t);
    if (NULL == made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *event = &made->super;
    return OPAL_SUCCESS;
}

/* With both locks, and the link's context current. */
static CUresult record(opal_accelerator_cuda_event_t *event, const link_t *link)
{
    CUresult rc = CUDA_SUCCESS;

    if (NULL == event->context) {
        rc = the_driver()->cuEventCreate(&event->event, CU_EVENT_DISABLE_TIMING);
        if (CUDA_SUCCESS != rc) {
            return rc;
        }
        event->context = link->context;
    }
    return the_driver()->cuEventRecord(event->event, link->stream);
}

int opal_accelerator_cuda_record_event(int dev_id, opal_accelerator_event_t *super_event,
                                       opal_accelerator_stream_t *super_stream)
{
    opal_accelerator_cuda_stream_t *stream = stream_of(super_stream);
    opal_accelerator_cuda_event_t *event = (opal_accelerator_cuda_event_t *) super_event;
    CUresult rc = CUDA_SUCCESS;
    const link_t *last;
    bool pushed;

    (void) dev_id;
    if (NULL == event || NULL == stream) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&event->lock);
    last = stream->last;
    if (NULL != last && !opal_accelerator_cuda_context_exists(last->context)) {
        last = NULL;
    }
    if (NULL == last || last->context != event->context) {
        event_clear(event);
    }
    if (NULL != last) {
        rc = opal_accelerator_cuda_enter(last->context, &pushed);
        if (CUDA_SUCCESS == rc) {
            rc = record(event, last);
            opal_accelerator_cuda_leave(pushed);
        }
    }
    pthread_mutex_unlock(&event->lock);
    pthread_mutex_unlock(&stream->lock);
    return opal_accelerator_cuda_result(rc, "an event cannot be recorded");
}

int opal_accelerator_cuda_query_event(int dev_id, opal_accelerator_event_t *super)
{
    opal_accelerator_cuda_event_t *event = (opal_accelerator_cuda_event_t *) super;
    CUresult rc = CUDA_SUCCESS;
    bool pushed;

    (void) dev_id;
    if (NULL == event) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&event->lock);
    if (NULL != event->context) {
        if (!opal_accelerator_cuda_context_exists(event->context)) {
            rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        } else {
            rc = opal_accelerator_cuda_enter(event->context, &pushed);
            if (CUDA_SUCCESS == rc) {
                rc = the_driver()->cuEventQuery(event->event);
                opal_accelerator_cuda_leave(pushed);
            }
        }
    }
    pthread_mutex_unlock(&event->lock);
    return CUDA_ERROR_NOT_READY == rc
               ? OPAL_ERR_RESOURCE_BUSY
               : opal_accelerator_cuda_result(rc, "the work of a stream failed");
}

/* ---- from 6.0 on ---- */

#if UMRDDT_OPAL_RELEASE >= 600
int opal_accelerator_cuda_sync_stream(opal_accelerator_stream_t *super)
{
    opal_accelerator_cuda_stream_t *stream = stream_of(super);
    CUresult rc;

    if (NULL == stream) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&stream->lock);
    rc = finish(stream);
    pthread_mutex_unlock(&stream->lock);
    return opal_accelerator_cuda_result(rc, "the work of a stream failed");
}

int opal_accelerator_cuda_wait_event(int dev_id, opal_accelerator_event_t *super_event,
                                     opal_accelerator_stream_t *super_stream)
{
    opal_accelerator_cuda_stream_t *stream = stream_of(super_stream);
    opal_accelerator_cuda_event_t *event = (opal_accelerator_cuda_event_t *) super_event;
    CUresult rc = CUDA_SUCCESS;
    link_t *link;
    bool pushed;

    (void) dev_id;
    if (NULL == event || NULL == stream) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&event->lock);
    /* no work was recorded, or it ended with its context: nothing to wait for */
    if (NULL != event->context && opal_accelerator_cuda_context_exists(event->context)) {
        rc = opal_accelerator_cuda_enter(event->context, &pushed);
        if (CUDA_SUCCESS == rc) {
            rc = link_in(stream, event->context, &link);
            if (CUDA_SUCCESS == rc) {
                rc = the_driver()->cuStreamWaitEvent(link->stream, event->event, 0);
            }
            opal_accelerator_cuda_leave(pushed);
        }
    }
    pthread_mutex_unlock(&event->lock);
    pthread_mutex_unlock(&stream->lock);
    return opal_accelerator_cuda_result(rc, "a stream cannot wait for an event");
}

int opal_accelerator_cuda_mem_move_async(int to_device, int from_device, void *to, const void *from,
                                         size_t size, opal_accelerator_stream_t *stream,
                                         opal_accelerator_transfer_type_t type)
{
    const uintptr_t low = (uintptr_t) (to < from ? to : from);
    const uintptr_t high = (uintptr_t) (to < from ? from : to);
    int rc;

    if (high - low >= size) {
        return opal_accelerator_cuda_mem_copy_async(to_device, from_device, to, from, size, stream,
                                                    type);
    }
    rc = opal_accelerator_cuda_sync_stream(stream);
    return OPAL_SUCCESS == rc
               ? opal_accelerator_cuda_mem_move(to_device, from_device, to, from, size, type)
               : rc;
}
#endif
