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
 * Compiled into the components (-include) by run_races, and into nothing else.
 *
 * ThreadSanitizer sees what is compiled with it and POSIX locks, but neither fences nor what an
 * Open MPI compiled without it does with atomics. What Open MPI's headers build of these is said
 * again here in words that it knows, with the same order and no more: a request's completion is an
 * acquire, and a free list is a lock of its own.
 */

#ifndef UMRDDT_TEST_RACES_H
#define UMRDDT_TEST_RACES_H

#include "ompi_config.h"

#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/class/opal_free_list.h"
#include "opal/runtime/opal_progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/tsan_interface.h>

/* What run_races must report, to show that it would report ours: a race on a variable, one on the
 * heap, and two locks that are taken in either order. Called whenever a request is taken from a
 * pool. */
static inline void races_plant(void)
{
#if UMRDDT_RACES_PLANT
    static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
    static int once, variable;
    static int *heap;
    int *mine = __atomic_load_n(&heap, __ATOMIC_ACQUIRE), *none = NULL;

    if (NULL == mine) {
        mine = calloc(1, sizeof(*mine));
        if (!__atomic_compare_exchange_n(&heap, &none, mine, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            free(mine);
            mine = none;
        }
    }
    ++variable;
    ++*mine;
    if (0 == __atomic_exchange_n(&once, 1, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 2; ++i) {
            pthread_mutex_lock(&locks[i]);
            pthread_mutex_lock(&locks[1 - i]);
            pthread_mutex_unlock(&locks[1 - i]);
            pthread_mutex_unlock(&locks[i]);
        }
    }
#endif
}

/* Who sees a request complete comes after who completed it; Open MPI's own compare-and-swap is an
 * acquire only, and leaves the release to the order of x86. */
static inline bool races_complete(ompi_request_t *request)
{
    if (REQUEST_COMPLETED != __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE)) {
        return false;
    }
    __tsan_acquire(&request->req_complete);
    return true;
}
#undef REQUEST_COMPLETE
#define REQUEST_COMPLETE(request) races_complete(request)

/* Whoever completes a request comes before who sees it complete, and before who gets it next. */
static inline void races_pass_on(ompi_request_t *request)
{
    __tsan_release(&request->req_complete);
    __tsan_release(request);
}

static inline int races_request_complete(ompi_request_t *request, bool with_signal)
{
    races_pass_on(request);
    return ompi_request_complete(request, with_signal);
}
#define ompi_request_complete           races_request_complete
#define MCA_PML_UMRDDT_PASS_ON(request) races_pass_on(request)

/* Whoever is called back comes after who posted the request, who wrote this word last. */
#define MCA_PML_UMRDDT_CALLED_BACK(request) \
    ((void) __atomic_load_n(&(request)->req_complete_cb_data, __ATOMIC_ACQUIRE))

static inline void races_wait_completion(ompi_request_t *request)
{
    while (!REQUEST_COMPLETE(request)) {
        opal_progress();
    }
}
#define ompi_request_wait_completion races_wait_completion

/* The host's pools of requests are pushed and popped by compare-and-swap in code that is not seen:
 * who gets a request from the host comes after who gave it back. */
static inline int races_request_free(ompi_request_t **request)
{
    ompi_request_free_fn_t host_free = (*request)->req_free;

    __tsan_release(*request);
    return host_free(request);
}
#define ompi_request_free races_request_free

static mca_pml_base_module_t races_host __attribute__((unused));

static inline int races_got(int rc, ompi_request_t **request)
{
    if (OMPI_SUCCESS == rc) {
        __tsan_acquire(*request);
    }
    return rc;
}

static inline int races_irecv_init(void *buf, size_t count, struct ompi_datatype_t *datatype,
                                   int src, int tag, struct ompi_communicator_t *comm,
                                   struct ompi_request_t **request)
{
    return races_got(races_host.pml_irecv_init(buf, count, datatype, src, tag, comm, request),
                     request);
}

static inline int races_irecv(void *buf, size_t count, struct ompi_datatype_t *datatype, int src,
                              int tag, struct ompi_communicator_t *comm,
                              struct ompi_request_t **request)
{
    return races_got(races_host.pml_irecv(buf, count, datatype, src, tag, comm, request), request);
}

static inline int races_imrecv(void *buf, size_t count, struct ompi_datatype_t *datatype,
                               struct ompi_message_t **message, struct ompi_request_t **request)
{
    return races_got(races_host.pml_imrecv(buf, count, datatype, message, request), request);
}

static inline int races_isend(const void *buf, size_t count, struct ompi_datatype_t *datatype,
                              int dst, int tag, mca_pml_base_send_mode_t mode,
                              struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    return races_got(races_host.pml_isend(buf, count, datatype, dst, tag, mode, comm, request),
                     request);
}

static inline void races_wrap(mca_pml_base_module_t *host)
{
    races_host = *host;
    host->pml_irecv_init = races_irecv_init;
    host->pml_irecv = races_irecv;
    host->pml_imrecv = races_imrecv;
    host->pml_isend = races_isend;
}

/* Once, when the host's functions are known and before the first request: pml/umrddt's progress is
 * registered then. */
#if defined(RACES_PML)
#define opal_progress_register(function)                                                       \
    (0 == strcmp("mca_pml_umrddt_progress", #function) ? (races_wrap(&mca_pml_umrddt.host), 0) \
                                                       : 0,                                    \
     opal_progress_register(function))
#endif

/* Our own pools. The lock is hidden from ThreadSanitizer, as it would order much that a list
 * without one does not: all that a pool promises is that who gets an item comes after who returned
 * it. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static inline void races_hide(opal_free_list_t *list)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    opal_mutex_lock(&list->fl_lock);
}

static inline void races_show(opal_free_list_t *list)
{
    opal_mutex_unlock(&list->fl_lock);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

static inline opal_free_list_item_t *races_free_list_get(opal_free_list_t *list)
{
    opal_free_list_item_t *item;

    races_plant();
    races_hide(list);
    item = opal_free_list_get_st(list);
    races_show(list);
    __tsan_acquire(item);
    return item;
}
#define opal_free_list_get    races_free_list_get
#define opal_free_list_get_mt races_free_list_get

static inline void races_free_list_return(opal_free_list_t *list, opal_free_list_item_t *item)
{
    __tsan_release(item);
    races_hide(list);
    opal_free_list_return_st(list, item);
    races_show(list);
}
#define opal_free_list_return    races_free_list_return
#define opal_free_list_return_mt races_free_list_return

#endif /* UMRDDT_TEST_RACES_H */
