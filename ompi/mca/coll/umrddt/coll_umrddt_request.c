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
 * Requests of nonblocking and persistent collectives. See coll_umrddt.h first.
 */

/*
 * The progress function tests the saved function's request. A completion callback is not possible,
 * because Open MPI sets its own in some cases, and a callback may run deep in a PML. When that
 * request completes, results are copied to the device; then the user's request completes.
 *
 * A request of a direct collective has messages instead. The progress function tests these.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/class/opal_free_list.h"
#include "opal/runtime/opal_progress.h"

#include "ompi/errhandler/errcode-internal.h"

#include "coll_umrddt_messages.h"
#include "coll_umrddt_request.h"

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_list_t pending;    /**< started requests that are not complete */
static opal_free_list_t pool;  /**< requests are never freed: Open MPI accesses freed ones */
static volatile size_t active; /**< length of pending */
static bool registered;        /**< the progress function is registered */

/** The inner request has completed: deactivate or free it. @return its error */
static int inner_over(mca_coll_umrddt_request_t *request)
{
    int rc = request->inner->req_status.MPI_ERROR;

    if (request->inner->req_persistent) {
        request->inner->req_state = OMPI_REQUEST_INACTIVE;
    } else {
        (void) ompi_request_free(&request->inner);
        request->inner = NULL;
    }
    return rc;
}

/** Progress of one request. @return true: it has ended, and req_status.MPI_ERROR is set */
static bool advance(mca_coll_umrddt_request_t *request)
{
    int rc;

    if (NULL != request->direct) {
        rc = mca_coll_umrddt_messages_test(request->direct);
        if (OMPI_ERR_RESOURCE_BUSY == rc) {
            return false;
        }
        if (!request->super.super.req_persistent) {
            mca_coll_umrddt_messages_put(request->direct);
            request->direct = NULL;
        }
        request->super.super.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(rc);
        return true;
    }
    if (!request->copying) {
        if (!REQUEST_COMPLETE(request->inner)) {
            return false;
        }
        rc = inner_over(request);
        if (OMPI_SUCCESS == rc) {
            rc = mca_coll_umrddt_stage_out(request->stage);
            request->copying = OMPI_SUCCESS == rc;
        }
    }
    if (request->copying) {
        rc = mca_coll_umrddt_stage_test(request->stage);
        if (OMPI_ERR_RESOURCE_BUSY == rc) {
            return false;
        }
        request->copying = false;
    }
    if (!request->super.super.req_persistent) {
        mca_coll_umrddt_stage_free(request->stage);
        request->stage = NULL;
    }
    request->super.super.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(rc);
    return true;
}

static int progress(void)
{
    opal_list_item_t *item, *next;
    opal_list_t over;
    int n;

    if (0 == active || 0 != opal_mutex_trylock(&lock)) {
        return 0;
    }
    OBJ_CONSTRUCT(&over, opal_list_t);
    OPAL_LIST_FOREACH_SAFE (item, next, &pending, opal_list_item_t) {
        if (advance((mca_coll_umrddt_request_t *) item)) {
            opal_list_remove_item(&pending, item);
            opal_list_append(&over, item);
            --active;
        }
    }
    opal_mutex_unlock(&lock);

    /* without the lock: a thread that waits for one of them may start the next */
    n = (int) opal_list_get_size(&over);
    while (NULL != (item = opal_list_remove_first(&over))) {
        ompi_communicator_t *comm = ((mca_coll_umrddt_request_t *) item)->retained;

        ((mca_coll_umrddt_request_t *) item)->retained = NULL;
        /* then another thread may free the request, or use it for another call */
        (void) ompi_request_complete((ompi_request_t *) item, true);
        if (NULL != comm) {
            OBJ_RELEASE(comm);
        }
    }
    OBJ_DESTRUCT(&over);
    return n;
}

static void watch(mca_coll_umrddt_request_t *request)
{
    bool first;

    request->copying = false;
    request->super.super.req_status.MPI_ERROR = OMPI_SUCCESS;
    request->super.super.req_status._cancelled = 0;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.super.req_complete = REQUEST_PENDING;
    opal_mutex_lock(&lock);
    opal_list_append(&pending, (opal_list_item_t *) request);
    ++active;
    first = !registered;
    registered = true;
    opal_mutex_unlock(&lock);
    if (first) {
        opal_progress_register(progress);
    }
}

/** Start the saved function's request; an empty one may have no start function. */
static int start_inner(ompi_request_t *inner)
{
    if (OMPI_REQUEST_NOOP == inner->req_type || NULL == inner->req_start) {
        inner->req_state = OMPI_REQUEST_ACTIVE;
        return OMPI_SUCCESS;
    }
    return inner->req_start(1, &inner);
}

/** MPI_Start and MPI_Startall. */
static int start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        mca_coll_umrddt_request_t *request = (mca_coll_umrddt_request_t *) requests[i];
        int rc;

        if (OPAL_UNLIKELY(OMPI_REQUEST_INACTIVE != requests[i]->req_state)) {
            return MPI_ERR_REQUEST; /* of the user; Open MPI 4.1 does not test it */
        }
        if (NULL != request->direct) {
            mca_coll_umrddt_messages_start(request->direct);
            watch(request);
            continue;
        }
        rc = mca_coll_umrddt_stage_in(request->stage);
        if (OMPI_SUCCESS == rc) {
            MCA_COLL_UMRDDT_COUNT(staged_nonblocking);
            rc = start_inner(request->inner);
        }
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        watch(request);
    }
    return OMPI_SUCCESS;
}

static int request_free(ompi_request_t **which)
{
    mca_coll_umrddt_request_t *request = (mca_coll_umrddt_request_t *) *which;

    if (!REQUEST_COMPLETE(*which)) {
        return MPI_ERR_REQUEST; /* MPI does not allow it */
    }
    if (NULL != request->inner) {
        (void) ompi_request_free(&request->inner);
        request->inner = NULL;
    }
    mca_coll_umrddt_stage_free(request->stage);
    request->stage = NULL;
    if (NULL != request->direct) {
        /* only a persistent request still has it */
        mca_coll_umrddt_messages_put(request->direct);
        request->direct = NULL;
    }
    if (request->super.super.req_persistent) {
        OBJ_RELEASE(request->super.super.req_mpi_object.comm);
    }
    OMPI_REQUEST_FINI(&request->super.super);
    opal_free_list_return(&pool, (opal_free_list_item_t *) request);
    *which = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/** A request of the pool. @return NULL: no memory */
static mca_coll_umrddt_request_t *request_get(ompi_communicator_t *comm, bool persistent)
{
    mca_coll_umrddt_request_t *request = (mca_coll_umrddt_request_t *) opal_free_list_get(&pool);

    if (NULL != request) {
        OMPI_REQUEST_INIT(&request->super.super, persistent);
        request->super.super.req_mpi_object.comm = comm;
        /* no objects or arrays that Open MPI attached to its previous use and released */
        memset(&request->super.data, 0, sizeof(request->super.data));
    }
    return request;
}

int mca_coll_umrddt_request_new(ompi_communicator_t *comm, mca_coll_umrddt_stage_t *stage, int rc,
                                ompi_request_t *inner, bool persistent, ompi_request_t **result)
{
    mca_coll_umrddt_request_t *request = NULL;

    if (OMPI_SUCCESS == rc) {
        request = request_get(comm, persistent);
        if (NULL != request) {
            /* the saved function posts messages after the application may have freed the
             * communicator, and coll/libnbc does not retain it */
            OBJ_RETAIN(comm);
        } else {
            rc = OMPI_ERR_OUT_OF_RESOURCE;
            if (!persistent) {
                /* it accesses the stage until it completes */
                (void) ompi_request_wait(&inner, MPI_STATUS_IGNORE);
            } else {
                (void) ompi_request_free(&inner);
            }
        }
    }
    if (NULL == request) {
        mca_coll_umrddt_stage_free(stage);
        return rc;
    }
    request->stage = stage;
    request->inner = inner;
    if (!persistent) {
        request->retained = comm;
        MCA_COLL_UMRDDT_COUNT(staged_nonblocking);
        watch(request);
    }
    *result = &request->super.super;
    return OMPI_SUCCESS;
}

int mca_coll_umrddt_request_messages(ompi_communicator_t *comm,
                                     struct mca_coll_umrddt_direct_t *direct, bool persistent,
                                     ompi_request_t **result)
{
    mca_coll_umrddt_request_t *request = request_get(comm, persistent);

    if (NULL == request) {
        mca_coll_umrddt_messages_put(direct);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    request->direct = direct;
    if (persistent) {
        mca_coll_umrddt_messages_retain(direct);
        OBJ_RETAIN(comm);
    } else {
        if (NULL != direct->step) {
            /* it posts messages after the application may have freed the communicator */
            OBJ_RETAIN(comm);
            request->retained = comm;
        }
        mca_coll_umrddt_messages_start(direct);
        watch(request);
    }
    *result = &request->super.super;
    return OMPI_SUCCESS;
}

static void request_construct(mca_coll_umrddt_request_t *request)
{
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->super.super.req_status.MPI_SOURCE = MPI_ANY_SOURCE;
    request->super.super.req_status.MPI_TAG = MPI_ANY_TAG;
    request->super.super.req_status._cancelled = 0;
    request->super.super.req_start = start;
    request->super.super.req_free = request_free;
    request->super.super.req_cancel = NULL;
    request->inner = NULL;
    request->stage = NULL;
    request->direct = NULL;
    request->retained = NULL;
    request->copying = false;
}

OBJ_CLASS_INSTANCE(mca_coll_umrddt_request_t, ompi_coll_base_nbc_request_t, request_construct,
                   NULL);

void mca_coll_umrddt_requests_open(void)
{
    OBJ_CONSTRUCT(&pending, opal_list_t);
    OBJ_CONSTRUCT(&pool, opal_free_list_t);
    (void) opal_free_list_init(&pool, sizeof(mca_coll_umrddt_request_t), opal_cache_line_size,
                               OBJ_CLASS(mca_coll_umrddt_request_t), 0, opal_cache_line_size, 0, -1,
                               8, NULL, 0, NULL, NULL, NULL);
}

void mca_coll_umrddt_requests_close(void)
{
    if (registered) {
        opal_progress_unregister(progress);
        registered = false;
    }
    mca_coll_umrddt_messages_close();
    OBJ_DESTRUCT(&pool);
    OBJ_DESTRUCT(&pending);
}
