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
 * Receives are posted at the base PML and watched: an envelope may match any of them.
 */

/*
 * A nonblocking receive is the base PML's own request with a completion callback. For a plain
 * message the callback lets the request complete normally. For an envelope it keeps the request
 * pending until progress has received the data, and allocates a record for it. The request's free
 * function is replaced while it is watched, since only that call shows that the user has freed the
 * request. It is restored before the request returns to the base PML's pool.
 *
 * The record needs the arguments of the receive. Some base PMLs store them in the request (ob1,
 * mca_pml_umrddt.host_keeps); for others a watch holds them. A watch also has the bounce buffer of
 * a receive smaller than an envelope, so that the base PML never truncates an envelope: without its
 * end the receiver could not answer it. So there are three kinds:
 *
 * - bare: no watch, for ob1 and a buffer large enough for an envelope
 * - bounced: a watch with a bounce buffer, for ob1 and smaller buffers
 * - kept: a watch, whose bounce buffer is used if the buffer is smaller, for other base PMLs
 *
 * A single-threaded process posts a receive and then tests it: a completed one needs no watching.
 * With threads the receive might complete in between. It is therefore created by irecv_init,
 * watched, and then started. The gate (umrddt_gate.h) makes claim check and posting atomic.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/base/pml_base_request.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"

/** Kinds of watched requests. Always a constant, so that each kind has its own code. */
typedef enum kind_t {
    BARE,
    BOUNCED,
    KEPT
} kind_t;

/** Arguments and bounce buffer of a receive that the base PML has not matched. */
typedef struct watch_t {
    opal_free_list_item_t super;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char bytes[MCA_PML_UMRDDT_ENVELOPE]; /**< the buffer of the request, if bounced */
    };
    void *to;    /**< address of the user's first byte */
    size_t fits; /**< size of a contiguous buffer, in bytes; else 0 */
    void *buf;
    size_t count;
    ompi_datatype_t *datatype; /**< referenced while the request is pending */
    bool bounced;
} watch_t;

/** Free list of unused watches. */
static opal_free_list_t watches;

/** The base PML's free functions for receives, which callbacks restore: [of_init]. Access
 * atomically. */
static ompi_request_free_fn_t base_free[2];

/** Returns true if requests of a kind come from the base PML's irecv_init and differ from those of
 * its irecv: they expect to be persistent, and have another free function. A process may have both,
 * because a Session may enable threads. */
static inline bool of_init(kind_t kind, bool threads)
{
    return KEPT == kind && threads;
}

void mca_pml_umrddt_watches_init(void)
{
    memset(base_free, 0, sizeof(base_free)); /* after a restart of MPI the base PML may differ */
    OBJ_CONSTRUCT(&watches, opal_free_list_t);
    opal_free_list_init(&watches, sizeof(watch_t), opal_cache_line_size,
                        OBJ_CLASS(opal_free_list_item_t), 0, opal_cache_line_size, 0, -1, 64, NULL,
                        0, NULL, NULL, NULL);
}

void mca_pml_umrddt_watches_fini(void)
{
    OBJ_DESTRUCT(&watches);
}

/** Get a watch with the arguments of a receive. @param[in] small  use the bounce buffer. @return
 * NULL: no memory */
static inline __opal_attribute_always_inline__ watch_t *
watch_get(kind_t kind, bool small, bool threads, void *buf, size_t count, ompi_datatype_t *datatype)
{
    watch_t *watch =
        (watch_t *) (threads ? opal_free_list_get_mt(&watches) : opal_free_list_get_st(&watches));

    if (OPAL_UNLIKELY(NULL == watch)) {
        return NULL;
    }
    if (small) {
        watch->to = (char *) buf + datatype->super.true_lb;
        watch->fits = count * datatype->super.size;
        if (OPAL_UNLIKELY(!mca_pml_umrddt_is_contiguous(datatype, count))) {
            watch->fits = 0;
        }
        if (KEPT == kind) {
            mca_pml_umrddt_bounce_in(watch->bytes);
        }
    }
    if (KEPT == kind) {
        watch->bounced = small;
    }
    watch->buf = buf;
    watch->count = count;
    watch->datatype = datatype;
    return watch;
}

static inline void watch_put(watch_t *watch, bool threads)
{
    if (threads) {
        opal_free_list_return_mt(&watches, &watch->super);
    } else {
        opal_free_list_return_st(&watches, &watch->super);
    }
}

/** Reference what the user may free while the request is pending: the base PML references only the
 * bounce buffer's type, and pml/ucx no communicator. */
static inline void watch_retain(const watch_t *watch, kind_t kind, ompi_communicator_t *comm)
{
    OMPI_DATATYPE_RETAIN(watch->datatype);
    if (KEPT == kind) {
        OBJ_RETAIN(comm);
    }
}

static inline void watch_release(const watch_t *watch, kind_t kind, ompi_communicator_t *comm)
{
    OMPI_DATATYPE_RELEASE_NO_NULLIFY(watch->datatype);
    if (KEPT == kind) {
        OBJ_RELEASE_NO_NULLIFY(comm);
    }
}

/** As bounce_out, for a message that is too long or a buffer that is not contiguous. */
static __opal_attribute_noinline__ void bounce_out_parts(const watch_t *watch,
                                                         ompi_status_public_t *status)
{
    status->MPI_ERROR = mca_pml_umrddt_bounce_out(watch->buf, watch->count, watch->datatype,
                                                  watch->bytes, status->MPI_ERROR, status->_ucount);
}

/** A plain message, or a part of one, is in the bounce buffer: copy it to the user. A cancelled
 * message has no bytes; pml/ucx does not set the length of one that failed. */
static inline __opal_attribute_always_inline__ void bounce_out(const watch_t *watch, kind_t kind,
                                                               ompi_status_public_t *status)
{
    size_t length = status->_ucount;

    if (KEPT == kind && OPAL_UNLIKELY(status->_cancelled)) {
        return;
    }
    if (OPAL_UNLIKELY(watch->fits < length || (KEPT == kind && MPI_SUCCESS != status->MPI_ERROR))) {
        bounce_out_parts(watch, status);
    } else if (OPAL_LIKELY(sizeof(uint64_t) == length)) {
        memcpy(watch->to, watch->bytes, sizeof(uint64_t));
    } else if (0 != length) { /* the buffer may be NULL without */
        memcpy(watch->to, watch->bytes, length);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Watching
 *
 * req_complete_cb_data of a watched request is its *word*: the watch, with a tag, until the
 * callback or the user's free, maybe in two threads at once, marks its action in it. The second of
 * them reads the mark. A record, which needs no tag, replaces the word of a request that the
 * callback keeps. Single-threaded, the callback restores the request and marks nothing.
 * ------------------------------------------------------------------------------------------- */

/** Tags of a word. A bare request has WORD_FREED or none. */
#define WORD_FREED                                                                 \
    ((uintptr_t) 1) /**< the user has freed the request: the callback must free it \
                     */
#define WORD_WATCH ((uintptr_t) 2)

/** Mark of the callback: plain message, the base PML owns the request. */
static uint64_t word_plain;

/** Returns true if neither the callback nor the user's free has marked a word. */
static inline bool word_is_new(const void *word)
{
    return NULL == word || WORD_WATCH == ((uintptr_t) word & (WORD_FREED | WORD_WATCH));
}

/** Replace the word @p word of a request by a mark. @return false: another mark was first */
static inline bool word_mark(ompi_request_t *request, bool threads, void *word, void *mark)
{
    if (threads) {
        return __atomic_compare_exchange_n(&request->req_complete_cb_data, &word, mark, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    request->req_complete_cb_data = mark;
    return true;
}

/** Store the base PML's free function, from any of its requests, before the first is watched. */
static inline void learn(const ompi_request_t *request, bool init)
{
    if (OPAL_UNLIKELY(NULL == __atomic_load_n(&base_free[init], __ATOMIC_RELAXED))) {
        __atomic_store_n(&base_free[init], request->req_free, __ATOMIC_RELAXED);
    }
}

static int let_go_init(ompi_request_t **request_p);

/** Watch a request just created by the base PML that is pending or not started. */
static inline void watch_request(ompi_request_t *request, bool init, watch_t *watch,
                                 ompi_request_complete_fn_t received)
{
    request->req_free = init ? let_go_init : mca_pml_umrddt_let_go;
    request->req_complete_cb = received;
    /* the callback may run in another thread, and acquires by reading the word */
    __atomic_store_n(&request->req_complete_cb_data,
                     NULL == watch ? NULL : (void *) ((char *) watch + WORD_WATCH),
                     __ATOMIC_RELEASE);
}

/** Restore the free function of the base PML's request. */
static inline void unwatch(ompi_request_t *request, bool init)
{
    request->req_free = __atomic_load_n(&base_free[init], __ATOMIC_RELAXED);
}

/** Return a request to the base PML. */
static int base_let_go(ompi_request_t **request_p, bool init)
{
    ompi_request_t *request = *request_p;

    unwatch(request, init);
    if (!mca_pml_umrddt.host_keeps) {
        request->req_persistent = init;
        mca_pml_umrddt_request_clear(request);
    }
    return request->req_free(request_p);
}

/**
 * Callback: the message may be an envelope, or the user has freed the request. Watch it with a
 * record from here on.
 */
static __opal_attribute_noinline__ int keep(ompi_request_t *request, kind_t kind, bool init,
                                            void *word)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;
    ompi_communicator_t *comm = request->req_mpi_object.comm;
    watch_t *watch = (watch_t *) ((uintptr_t) word & ~(WORD_FREED | WORD_WATCH));
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);

    if (NULL == recv) {
        if (sizeof(mca_pml_umrddt_rts_t) == request->req_status._ucount) {
            /* an envelope, whose sender would wait forever */
            mca_pml_umrddt_control_fatal(mca_pml_umrddt_comm_find(comm),
                                         request->req_status.MPI_SOURCE, OMPI_ERR_OUT_OF_RESOURCE);
        }
        if (!init) { /* else base_let_go restores more than that */
            unwatch(request, init);
        }
        __atomic_store_n(&request->req_complete_cb_data, init ? &word_plain : NULL,
                         __ATOMIC_RELAXED);
        request->req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        if (BARE != kind) {
            watch_release(watch, kind, comm);
            opal_free_list_return(&watches, &watch->super);
        }
        return 0;
    }
    recv->bounced = recv->kept = false;
    if (BARE == kind) {
        recv->buf = base->req_addr;
        recv->count = base->req_count;
        recv->datatype = base->req_datatype;
        OMPI_DATATYPE_RETAIN(recv->datatype);
    } else {
        recv->buf = watch->buf;
        recv->count = watch->count;
        recv->datatype = watch->datatype;
        if (BOUNCED == kind || watch->bounced) {
            recv->bounced = true;
            recv->rts = watch->rts;
        }
        opal_free_list_return(&watches, &watch->super);
    }
    if (KEPT != kind) {
        OBJ_RETAIN(comm);
    }
    recv->comm = mca_pml_umrddt_comm_find(comm);
    recv->state = MCA_PML_UMRDDT_RECV_POSTED;
    recv->req = request;
    recv->host = request;
    recv->release = 0;
    recv->host_free = __atomic_load_n(&base_free[init], __ATOMIC_RELAXED);
    recv->host_persistent = init;
    if (!word_is_new(word) || !word_mark(request, opal_using_threads(), word, recv)) {
        __atomic_store_n(&request->req_complete_cb_data, (void *) recv, __ATOMIC_RELEASE);
        recv->release = MCA_PML_UMRDDT_FREED;
    }
    /* after the word: that function takes the word for a record */
    __atomic_store_n(&request->req_free, mca_pml_umrddt_watched_free, __ATOMIC_RELEASE);
    return mca_pml_umrddt_base_received(request);
}

/** Callback of the base PML, before it completes the request. @return 0: let it complete; 1: keep
 * it pending */
static inline __opal_attribute_always_inline__ int received(ompi_request_t *request, kind_t kind,
                                                            bool threads)
{
    void *word = NULL;

    if (BARE != kind || !threads) {
        word = __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);
    } else {
        MCA_PML_UMRDDT_CALLED_BACK(request);
    }
    if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == request->req_status._ucount
                      || 0 != (WORD_FREED & (uintptr_t) word)
                      || (threads && !word_mark(request, true, word, &word_plain)))) {
        return keep(request, kind, of_init(kind, threads), word);
    }
    if (BARE != kind) {
        watch_t *watch = (watch_t *) ((char *) word - WORD_WATCH);

        if (BOUNCED == kind || watch->bounced) {
            bounce_out(watch, kind, &request->req_status);
        }
        watch_release(watch, kind, request->req_mpi_object.comm);
        watch_put(watch, threads || opal_using_threads()); /* enabled since it was posted */
    }
    if (!of_init(kind, threads)) { /* else base_let_go restores more than that */
        unwatch(request, false);
    }
    if (KEPT == kind && !threads) {
        mca_pml_umrddt_request_clear(request);
    }
    if (threads) {
        MCA_PML_UMRDDT_PASS_ON(request);
    }
    return 0;
}

static int received_bare(ompi_request_t *request)
{
    return received(request, BARE, true);
}

int mca_pml_umrddt_received_bare_alone(ompi_request_t *request)
{
    return received(request, BARE, false);
}

static int received_bounced(ompi_request_t *request)
{
    return received(request, BOUNCED, true);
}

static int received_bounced_alone(ompi_request_t *request)
{
    return received(request, BOUNCED, false);
}

static int received_kept(ompi_request_t *request)
{
    return received(request, KEPT, true);
}

static int received_kept_alone(ompi_request_t *request)
{
    return received(request, KEPT, false);
}

static bool is_ours(ompi_request_complete_fn_t callback)
{
    return received_bare == callback || mca_pml_umrddt_received_bare_alone == callback
           || received_bounced == callback || received_bounced_alone == callback
           || received_kept == callback || received_kept_alone == callback;
}

static int let_go(ompi_request_t **request_p, bool init)
{
    ompi_request_t *request = *request_p;
    ompi_request_complete_fn_t callback = request->req_complete_cb;
    void *word;

    if (NULL == callback ? REQUEST_COMPLETE(request) : !is_ours(callback)) {
        /* complete, or the user of an internal communicator has set its own callback */
        return base_let_go(request_p, init);
    }
    word = __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE);
    if (word_is_new(word)
        && word_mark(request, opal_using_threads(), word, (char *) word + WORD_FREED)) {
        *request_p = MPI_REQUEST_NULL;
        return OMPI_SUCCESS;
    }
    if (&word_plain != __atomic_load_n(&request->req_complete_cb_data, __ATOMIC_ACQUIRE)) {
        return mca_pml_umrddt_watched_free(request_p);
    }
    while (!REQUEST_COMPLETE(request)) {
        ; /* another thread is still completing it */
    }
    return base_let_go(request_p, init);
}

int mca_pml_umrddt_let_go(ompi_request_t **request_p)
{
    return let_go(request_p, false);
}

static int let_go_init(ompi_request_t **request_p)
{
    return let_go(request_p, true);
}

/* ---------------------------------------------------------------------------------------------
 * Posting at the base PML
 * ------------------------------------------------------------------------------------------- */

/**
 * A receive completed when it was posted, with the size of an envelope: check whether it is one.
 *
 * @param[in] watch  with the bounce buffer; NULL: received into the user's buffer
 */
static __opal_attribute_noinline__ void look_into(void *buf, size_t count,
                                                  ompi_datatype_t *datatype, const watch_t *watch,
                                                  ompi_request_t **request)
{
    ompi_request_t *host = *request;
    ompi_status_public_t *status = &host->req_status;
    mca_pml_umrddt_rts_t rts;

    if (MPI_SUCCESS == status->MPI_ERROR && !mca_pml_umrddt_is_internal(status->MPI_TAG)
        && mca_pml_umrddt_read_envelope(NULL == watch ? NULL : watch->bytes, buf, count, datatype,
                                        &rts)) {
        *request = mca_pml_umrddt_envelope_in(mca_pml_umrddt_comm_find(host->req_mpi_object.comm),
                                              buf, count, datatype, &rts, status);
        ompi_request_free(&host);
    } else if (NULL != watch && !status->_cancelled) {
        bounce_out_parts(watch, status);
    }
}

int mca_pml_umrddt_bare_look_into(ompi_request_t **request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) *request;

    look_into(base->req_addr, base->req_count, base->req_datatype, NULL, request);
    return OMPI_SUCCESS;
}

/** Callback of requests with a watch. */
static inline ompi_request_complete_fn_t callback_of(kind_t kind, bool threads)
{
    if (BOUNCED == kind) {
        return threads ? received_bounced : received_bounced_alone;
    }
    return threads ? received_kept : received_kept_alone;
}

/** Single-threaded: post at the base PML, then test the request. @param[in] small  smaller than an
 * envelope; a constant too */
static inline __opal_attribute_always_inline__ int
post_alone(kind_t kind, bool small, MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    watch_t *watch = small ? watch_get(kind, true, false, buf, count, datatype) : NULL;
    ompi_request_t *host;
    int rc;

    if (small && OPAL_UNLIKELY(NULL == watch)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = small ? mca_pml_umrddt.host.pml_irecv(watch->bytes, MCA_PML_UMRDDT_ENVELOPE,
                                               &ompi_mpi_byte.dt, src, tag, comm, request)
               : mca_pml_umrddt.host.pml_irecv(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    host = *request;
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        ;
    } else if (!REQUEST_COMPLETE(host)) {
        if (!small) {
            watch = watch_get(kind, false, false, buf, count, datatype);
            if (OPAL_UNLIKELY(NULL == watch)) {
                ompi_request_cancel(host);
                ompi_request_free(request);
                return OMPI_ERR_OUT_OF_RESOURCE;
            }
        }
        watch_retain(watch, kind, comm);
        if (KEPT == kind) {
            learn(host, false);
        }
        watch_request(host, false, watch, callback_of(kind, false));
        return OMPI_SUCCESS;
    } else if (OPAL_UNLIKELY(sizeof(mca_pml_umrddt_rts_t) == host->req_status._ucount)) {
        look_into(buf, count, datatype, watch, request);
    } else if (small) {
        bounce_out(watch, kind, &host->req_status);
    }
    if (small) {
        watch_put(watch, false);
    }
    return rc;
}

int mca_pml_umrddt_post_bounced(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    return post_alone(BOUNCED, true, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}

int mca_pml_umrddt_post_kept_small(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    return post_alone(KEPT, true, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}

int mca_pml_umrddt_post_kept(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    return post_alone(KEPT, false, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}

/** With threads: create the request, watch it, and only then start it. */
static inline __opal_attribute_always_inline__ int
post_threads(kind_t kind, MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    watch_t *watch = NULL;
    ompi_request_t *host;
    int rc;

    if (BARE != kind) {
        const bool small = BOUNCED == kind || mca_pml_umrddt_is_small(count, datatype);

        watch = watch_get(kind, small, true, buf, count, datatype);
        if (OPAL_UNLIKELY(NULL == watch)) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        watch_retain(watch, kind, comm);
        if (small) {
            buf = watch->bytes;
            count = MCA_PML_UMRDDT_ENVELOPE;
            datatype = &ompi_mpi_byte.dt;
        }
    }
    rc = mca_pml_umrddt.host.pml_irecv_init(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        host = *request;
        host->req_persistent = false;
        learn(host, of_init(kind, true));
        watch_request(host, of_init(kind, true), watch,
                      BARE == kind ? received_bare : callback_of(kind, true));
        rc = mca_pml_umrddt.host.pml_start(1, &host);
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
            host = *request;
            *request = NULL;
            host->req_complete_cb = NULL;
            (void) base_let_go(&host, of_init(kind, true));
        }
    }
    if (BARE != kind && OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        watch_release(watch, kind, comm);
        watch_put(watch, true);
    }
    return rc;
}

int mca_pml_umrddt_post(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(NULL == __atomic_load_n(&base_free[false], __ATOMIC_RELAXED))
        && mca_pml_umrddt.host_keeps) {
        ompi_request_t *first;
        int rc = mca_pml_umrddt.host.pml_irecv_init(MCA_PML_UMRDDT_RECV_ARGUMENTS, &first);

        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        learn(first, false);
        ompi_request_free(&first);
    }
    if (!opal_using_threads()) {
        return mca_pml_umrddt_post_alone(MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    if (OPAL_UNLIKELY(!mca_pml_umrddt.host_keeps)) {
        return post_threads(KEPT, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    if (OPAL_LIKELY(!mca_pml_umrddt_is_small(count, datatype))) {
        return post_threads(BARE, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
    }
    return post_threads(BOUNCED, MCA_PML_UMRDDT_RECV_ARGUMENTS, request);
}
