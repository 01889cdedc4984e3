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
 * Control messages from receiver to sender and back, including NACKs. Their format is in
 * pml_umrddt_wire_reply.h. All functions run only in progress.
 *
 * If the base PML refuses a control message, progress sends it again until it succeeds, because the
 * peer waits for it. If the parent message ends first, the control message is withdrawn, because
 * the objects that it names are gone. Critical control messages (must) are never withdrawn.
 *
 * Control messages to one process of a communicator keep their order and do not block others. Their
 * number is bounded by the number of active messages. Queued messages retain their communicator.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "umrddt_help.h"

/** A control message that the base PML sends or has refused, or the receive buffer of a NACK. */
typedef struct control_t {
    mca_pml_umrddt_wait_t wait; /**< waits for the base PML; or the item in the list of refused
                                     messages */
    struct control_t *next;     /**< in the free list */
    ompi_request_t *request;
    mca_pml_umrddt_comm_t *comm;
    int peer;
    int tag;
    bool behind;     /**< refused, and an earlier one to the same process is also refused */
    bool must;       /**< critical: never withdrawn */
    time_t given_up; /**< time of the first refusal that is not a shortage of resources; 0: none */
    size_t length;   /**< of bytes, used */
    size_t room;     /**< of bytes, allocated */
    unsigned char bytes[];
} control_t;

/** Size that is sufficient for all but long lists of rkeys, bytes. */
#define CONTROL_ROOM 256

/** Length of the free list, and the part of it that is reserved for critical messages. */
#define CONTROL_CACHED   64
#define CONTROL_RESERVED 32

/** Handles NACKs; see mca_pml_umrddt_control_init. */
static mca_pml_umrddt_nack_handler_t *nacked;

static control_t *idle;
static unsigned idle_count;

static opal_list_t refused;         /**< in the order in which they are sent */
static mca_pml_umrddt_wait_t again; /**< active while the list is not empty */

/* ---------------------------------------------------------------------------------------------
 * Records
 * ------------------------------------------------------------------------------------------- */

static control_t *control_make(size_t room)
{
    control_t *control = malloc(sizeof(*control) + room);

    if (NULL != control) {
        OBJ_CONSTRUCT(&control->wait, mca_pml_umrddt_wait_t);
        control->request = NULL;
        control->room = room;
    }
    return control;
}

static void control_delete(control_t *control)
{
    OBJ_DESTRUCT(&control->wait);
    free(control);
}

static control_t *idle_take(void)
{
    control_t *control = idle;

    idle = control->next;
    --idle_count;
    return control;
}

static void idle_put(control_t *control)
{
    control->next = idle;
    idle = control;
    ++idle_count;
}

/** @param[in] must  critical: may use the reserve if there is no memory */
static control_t *control_new(size_t length, bool must)
{
    control_t *control;

    if (OPAL_UNLIKELY(CONTROL_ROOM < length)) {
        return control_make(length);
    }
    if (OPAL_LIKELY(CONTROL_RESERVED < idle_count)) {
        return idle_take();
    }
    control = control_make(CONTROL_ROOM);
    return NULL == control && must && 0 < idle_count ? idle_take() : control;
}

static void control_free(control_t *control)
{
    if (NULL != control->request) {
        ompi_request_free(&control->request);
        control->request = NULL;
    }
    if (CONTROL_CACHED > idle_count && CONTROL_ROOM == control->room) {
        idle_put(control);
    } else {
        control_delete(control);
    }
}

int mca_pml_umrddt_control_init(mca_pml_umrddt_nack_handler_t *handler)
{
    nacked = handler;
    OBJ_CONSTRUCT(&refused, opal_list_t);
    OBJ_CONSTRUCT(&again, mca_pml_umrddt_wait_t);
    while (CONTROL_CACHED > idle_count) {
        control_t *control = control_make(CONTROL_ROOM);

        if (NULL == control) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        idle_put(control);
    }
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_control_fini(void)
{
    opal_list_item_t *item;

    while (NULL != (item = opal_list_remove_first(&refused))) {
        control_delete((control_t *) item);
    }
    mca_pml_umrddt_wait_cancel(&again);
    while (0 < idle_count) {
        control_delete(idle_take());
    }
    OBJ_DESTRUCT(&again);
    OBJ_DESTRUCT(&refused);
}

/* ---------------------------------------------------------------------------------------------
 * Refusals
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_given_up(int rc, time_t *since)
{
    struct timespec now;

    /* a shortage of resources, which other messages will release */
    if (OMPI_ERR_OUT_OF_RESOURCE == rc || OMPI_ERR_TEMP_OUT_OF_RESOURCE == rc
        || OMPI_ERR_RESOURCE_BUSY == rc || OMPI_ERR_WOULD_BLOCK == rc) {
        *since = 0;
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (0 == *since) {
        *since = now.tv_sec + 1; /* never 0, and rounded up */
    }
    return 0 < mca_pml_umrddt.params.refusal_timeout
           && now.tv_sec - *since >= (time_t) mca_pml_umrddt.params.refusal_timeout;
}

void mca_pml_umrddt_control_fatal(mca_pml_umrddt_comm_t *comm, int peer, int rc)
{
    opal_show_help("help-mca-pml-umrddt.txt", "control-fatal", true, peer, rc,
                   mca_pml_umrddt.params.refusal_timeout);
    (void) ompi_mpi_abort(comm->comm, MPI_ERR_OTHER);
}

/** Get the first refused message to the same process; NULL: none. */
static control_t *first_for(const control_t *control)
{
    control_t *first;

    OPAL_LIST_FOREACH (first, &refused, control_t) {
        if (first->comm == control->comm && first->peer == control->peer) {
            return first;
        }
    }
    return NULL;
}

static bool control_sent(void *owner)
{
    control_t *control = owner;

    if (!REQUEST_COMPLETE(control->request)) {
        return false;
    }
    control_free(control);
    mca_pml_umrddt_active(-1);
    return true;
}

/** Pass a control message to the base PML. Inline, because every message comes here. @return
 * OMPI_SUCCESS or the error of the base PML */
static inline __opal_attribute_always_inline__ int give(control_t *control)
{
    int rc = mca_pml_umrddt.host.pml_isend(control->bytes, control->length, &ompi_mpi_byte.dt,
                                           control->peer, control->tag, MCA_PML_BASE_SEND_STANDARD,
                                           control->comm->comm, &control->request);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        control->request = NULL;
        MCA_PML_UMRDDT_COUNT(control_refused);
    }
    return rc;
}

/** The base PML has accepted the message. Inline for the same reason. */
static inline __opal_attribute_always_inline__ void given(control_t *control)
{
    MCA_PML_UMRDDT_COUNT(control_messages);
    MCA_PML_UMRDDT_COUNT_ADD(control_bytes, control->length);
    if (REQUEST_COMPLETE(control->request)) {
        control_free(control);
    } else {
        mca_pml_umrddt_active(1);
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &control->wait, control_sent, control);
    }
}

/** Remove a message from the refused ones. The next one to the same process may be sent. */
static void leave(control_t *control)
{
    control_t *next;

    opal_list_remove_item(&refused, &control->wait.super);
    (void) __atomic_fetch_sub(&mca_pml_umrddt.refused, 1, __ATOMIC_RELAXED);
    mca_pml_umrddt_active(-1);
    next = first_for(control);
    if (NULL != next) {
        next->behind = false;
    }
}

/** Retry function of a wait: send the first refused message of each process. */
static bool send_refused(void *owner)
{
    control_t *control, *next;

    (void) owner;
    OPAL_LIST_FOREACH_SAFE (control, next, &refused, control_t) {
        ompi_communicator_t *comm = control->comm->comm;
        int rc;

        if (control->behind) {
            continue;
        }
        rc = give(control);
        if (OMPI_SUCCESS == rc) {
            leave(control);
            given(control);
            OBJ_RELEASE(comm);
        } else if (mca_pml_umrddt_given_up(rc, &control->given_up)) {
            mca_pml_umrddt_control_fatal(control->comm, control->peer, rc);
        }
    }
    return opal_list_is_empty(&refused);
}

/** Queue a message until the base PML accepts it. */
static void keep(control_t *control, bool behind)
{
    control->behind = behind;
    control->given_up = 0;
    OBJ_RETAIN(control->comm->comm); /* this keeps comm alive, too, which del_comm frees */
    opal_list_append(&refused, &control->wait.super);
    (void) __atomic_fetch_add(&mca_pml_umrddt.refused, 1, __ATOMIC_RELAXED);
    mca_pml_umrddt_active(1);
    if (NULL == again.list) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &again, send_refused, NULL);
    }
}

int mca_pml_umrddt_control(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *bytes,
                           size_t length, bool must)
{
    control_t *control = control_new(length, must);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(NULL == control)) {
        if (must) {
            mca_pml_umrddt_control_fatal(comm, peer, OMPI_ERR_OUT_OF_RESOURCE);
        }
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memcpy(control->bytes, bytes, length);
    control->length = length;
    control->comm = comm;
    control->peer = peer;
    control->tag = tag;
    control->must = must;
    if (OPAL_UNLIKELY(!opal_list_is_empty(&refused)) && NULL != first_for(control)) {
        keep(control, true);
    } else if (OPAL_LIKELY(OMPI_SUCCESS == give(control))) {
        given(control);
    } else {
        keep(control, false);
    }
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_control_withdraw(mca_pml_umrddt_comm_t *comm, int peer, int tag, uint64_t seq)
{
    control_t *control, *next;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    OPAL_LIST_FOREACH_SAFE (control, next, &refused, control_t) {
        if (comm == control->comm && peer == control->peer && tag == control->tag && !control->must
            && 0
                   == memcmp(control->bytes + offsetof(mca_pml_umrddt_reply_t, seq), &seq,
                             sizeof(seq))) {
            leave(control);
            OBJ_RELEASE(comm->comm);
            control_free(control);
        }
    }
    if (opal_list_is_empty(&refused)) {
        mca_pml_umrddt_wait_cancel(&again);
    }
}

void mca_pml_umrddt_control_drop(mca_pml_umrddt_comm_t *comm)
{
    control_t *control, *next;

    OPAL_LIST_FOREACH_SAFE (control, next, &refused, control_t) {
        if (NULL == comm || comm == control->comm) {
            leave(control);
            control_free(control);
        }
    }
    if (opal_list_is_empty(&refused)) {
        mca_pml_umrddt_wait_cancel(&again);
    }
}

/* ---------------------------------------------------------------------------------------------
 * NACKs
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_listen(mca_pml_umrddt_comm_t *comm)
{
    if (OPAL_LIKELY(comm->listening)) {
        return;
    }
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    if (!comm->listening) {
        comm->listening = true;
        opal_list_append(&mca_pml_umrddt.listeners, &comm->super);
        __atomic_add_fetch(&mca_pml_umrddt.listener_count, 1, __ATOMIC_RELAXED);
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
}

void mca_pml_umrddt_unlisten(mca_pml_umrddt_comm_t *comm)
{
    const int tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_NACK, 0);
    mca_pml_umrddt_hint_header_t unused;
    int matched = 0;

    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    if (comm->listening) {
        comm->listening = false;
        opal_list_remove_item(&mca_pml_umrddt.listeners, &comm->super);
        __atomic_sub_fetch(&mca_pml_umrddt.listener_count, 1, __ATOMIC_RELAXED);
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    /* late hints: pml/ucx would report them */
    while (&ompi_mpi_comm_world.comm == comm->comm && NULL != mca_pml_umrddt.gpu
           && !mca_pml_umrddt.host_keeps
           && OMPI_SUCCESS
                  == mca_pml_umrddt.host.pml_iprobe(OMPI_ANY_SOURCE, tag, comm->comm, &matched,
                                                    MPI_STATUS_IGNORE)
           && matched
           && OMPI_SUCCESS
                  == mca_pml_umrddt.host.pml_recv(&unused, sizeof(unused), &ompi_mpi_byte.dt,
                                                  OMPI_ANY_SOURCE, tag, comm->comm,
                                                  MPI_STATUS_IGNORE)) {
        ;
    }
}

bool mca_pml_umrddt_hints(mca_pml_umrddt_comm_t *comm)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == comm->hints) {
        __atomic_store_n(&comm->hints, opal_umrddt_hints_new(), __ATOMIC_RELEASE);
    }
    return NULL != comm->hints;
}

/** A receiver permits envelopes instead of small messages. Ignored if the communicator is gone. */
static void hinted(mca_pml_umrddt_comm_t *world, int src, const mca_pml_umrddt_hint_header_t *hint)
{
    mca_pml_umrddt_peer_t *peer = mca_pml_umrddt_peer(world, src);

    /* with the lock, no communicator is freed */
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    for (uint32_t i = 0; NULL != peer && i < mca_pml_umrddt.comm_end; ++i) {
        mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comms[i];

        if (NULL != comm) {
            const uint64_t id[2] = UMRDDT_COMM_ID(comm->comm);

            if (id[0] == hint->comm[0] && id[1] == hint->comm[1] && comm->added < hint->time
                && NULL != comm->peers && hint->rank < (uint32_t) comm->peer_count
                && peer == comm->peers[hint->rank] && mca_pml_umrddt_hints(comm)) {
                opal_umrddt_hint_set(&comm->hints->got, (int) hint->rank, hint->tag);
            }
        }
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
}

static bool notice_received(void *owner)
{
    control_t *control = owner;
    const mca_pml_umrddt_nack_header_t *fail =
        (const mca_pml_umrddt_nack_header_t *) control->bytes;
    const mca_pml_umrddt_hint_header_t *hint =
        (const mca_pml_umrddt_hint_header_t *) control->bytes;
    size_t length;

    if (!REQUEST_COMPLETE(control->request)) {
        return false;
    }
    length = MPI_SUCCESS == control->request->req_status.MPI_ERROR
                 ? control->request->req_status._ucount
                 : 0;
    if (sizeof(*fail) == length && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_NACK) == fail->magic
        && MCA_PML_UMRDDT_MAX_REQUEST_IDS > fail->request_id) {
        nacked(control->comm, control->peer, fail);
    } else if (sizeof(*hint) == length
               && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_HINT) == hint->magic
               && control->comm == mca_pml_umrddt_world()) {
        hinted(control->comm, control->peer, hint);
    } else {
        MCA_PML_UMRDDT_COUNT(protocol_errors);
    }
    OBJ_RELEASE(control->comm->comm);
    control_free(control);
    mca_pml_umrddt_active(-1);
    return true;
}

void mca_pml_umrddt_notice_look(void)
{
    int tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_NACK, 0);
    mca_pml_umrddt_comm_t *comm;
    ompi_communicator_t *ompi_comm = NULL;
    ompi_status_public_t status;
    control_t *control;
    int matched = 0;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    comm = (mca_pml_umrddt_comm_t *) opal_list_remove_first(&mca_pml_umrddt.listeners);
    if (NULL != comm) {
        opal_list_append(&mca_pml_umrddt.listeners, &comm->super);
        ompi_comm = comm->comm;
        OBJ_RETAIN(ompi_comm); /* this keeps comm alive, too, which del_comm frees */
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    if (NULL == comm) {
        return;
    }

    if (OMPI_SUCCESS
            == mca_pml_umrddt.host.pml_iprobe(OMPI_ANY_SOURCE, tag, ompi_comm, &matched, &status)
        && matched
        && NULL != (control = control_new(sizeof(mca_pml_umrddt_hint_header_t), false))) {
        control->comm = comm;
        control->peer = status.MPI_SOURCE;
        if (OMPI_SUCCESS
            == mca_pml_umrddt.host.pml_irecv(control->bytes, sizeof(mca_pml_umrddt_hint_header_t),
                                             &ompi_mpi_byte.dt, status.MPI_SOURCE, tag, ompi_comm,
                                             &control->request)) {
            OBJ_RETAIN(ompi_comm);
            mca_pml_umrddt_active(1);
            mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &control->wait, notice_received, control);
            mca_pml_umrddt_notice_soon(); /* there may be others */
        } else {
            control->request = NULL;
            control_free(control);
        }
    }
    OBJ_RELEASE(ompi_comm);
}
