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
 * Sends as MPI calls them: the decision which messages are handled, and their requests.
 * pml_umrddt_send_rndv.c continues with the envelope.
 */

#include "ompi_config.h"

#include "opal/datatype/opal_datatype.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_groups.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/** Memory kind of a message's buffer. */
typedef struct looked_t {
    bool done; /**< the other fields are valid */
    mca_pml_umrddt_memory_t memory;
    opal_umrddt_gpu_where_t where;
} looked_t;

/** Arguments of an MPI call, and the results of its classification. */
typedef struct call_t {
    const void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int dst;
    int tag;
    mca_pml_base_send_mode_t mode;
    ompi_communicator_t *comm;
    mca_pml_umrddt_comm_t *data; /**< set if the message is handled or staged */
    mca_pml_umrddt_peer_t *peer; /**< set if the message is handled */
    bool probes_memory;          /**< it is a probe message for the receive-memory hint */
    bool persistent;             /**< each start is a separate message */
    bool blocking;               /**< the call waits for the message */
    bool small;                  /**< smaller than min_size, in GPU memory */
    bool declinable;             /**< the receiver may decline it */
    uint64_t offer;              /**< its key in the offer cache, or 0 */
    looked_t looked;
} call_t;

/** Store the arguments of the call, with no classification. */
static inline void call_set(call_t *call, MCA_PML_UMRDDT_SEND_PARAMETERS)
{
    call->buf = buf;
    call->count = count;
    call->datatype = datatype;
    call->dst = dst;
    call->tag = tag;
    call->mode = mode;
    call->comm = comm;
    call->data = NULL;
    call->peer = NULL;
    call->probes_memory = false;
    call->persistent = false;
    call->blocking = false;
    call->small = false;
    call->declinable = false;
    call->offer = 0;
    call->looked.done = false;
}

/**
 * First step of the classification, by the datatype alone, which decides most messages. Inline, so
 * that plain messages reach the base PML by a jump.
 *
 * @return true if the base PML sends the message
 */
static inline bool is_plain(size_t count, const ompi_datatype_t *datatype)
{
    if (OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count))) {
        MCA_PML_UMRDDT_COUNT(passed_contiguous);
        return true;
    }
    if (datatype->super.size * count < mca_pml_umrddt.params.min_size) {
        MCA_PML_UMRDDT_COUNT(passed_small);
        return true;
    }
    return false;
}

/** Returns true if the base PML may access the buffer, even though it is device memory. */
static bool base_given(const call_t *call)
{
    return MCA_PML_BASE_SEND_BUFFERED != call->mode
           && mca_pml_umrddt_base_given(call->data, &call->looked.where, call->buf, call->count,
                                        call->datatype, call->dst, call->tag);
}

/** Returns true if a message smaller than min_size in GPU memory is handled. Programs rely on
 * blocking standard sends that do not wait. Persistent ones check the rest at a start. */
static __opal_attribute_noinline__ bool takes_small(call_t *call)
{
    if (mca_pml_umrddt_is_internal(call->tag) || MCA_PML_BASE_SEND_BUFFERED == call->mode
        || (call->blocking && MCA_PML_BASE_SEND_STANDARD == call->mode
            && call->datatype->super.size * call->count < mca_pml_umrddt.waits_from)
        || ((!mca_pml_umrddt.takes_contiguous || 0 < mca_pml_umrddt.params.contiguous_min)
            && mca_pml_umrddt_is_contiguous(call->datatype, call->count))
        || NULL == (call->peer = mca_pml_umrddt_peer(call->data, call->dst))
        || 0 == mca_pml_umrddt_schemes_reach(call->peer)) {
        return false;
    }
    call->small = mca_pml_umrddt_small_wanted(call->data, call->peer, &call->looked.where,
                                              call->dst, call->tag)
                  && !call->persistent;
    return call->small;
}

/** As is_plain, after the buffer was queried: contiguous and small GPU memory may be handled too.
 */
static bool is_plain_here(call_t *call)
{
    if (OPAL_UNLIKELY(call->datatype->super.size * call->count < mca_pml_umrddt.params.min_size)
        && MCA_PML_UMRDDT_MEMORY_GPU == call->looked.memory && takes_small(call)) {
        return false;
    }
    if (mca_pml_umrddt.takes_contiguous && MCA_PML_UMRDDT_MEMORY_GPU == call->looked.memory
        && mca_pml_umrddt_is_contiguous(call->datatype, call->count)
        && call->datatype->super.size * call->count >= mca_pml_umrddt.contiguous_from
        && !(mca_pml_umrddt.declines_far && MCA_PML_UMRDDT_SCHEME_AUTO == call->data->scheme
             && base_given(call))) {
        return false;
    }
    return is_plain(call->count, call->datatype);
}

/** Returns true if the buffer must be queried for every datatype (mca_pml_umrddt.looks is set).
 * Either the base PML must not access device memory, or a contiguous message may be handled. False
 * if the buffer is known to need neither. */
static inline bool must_look(const void *buf, size_t count, const ompi_datatype_t *datatype)
{
    const size_t size = datatype->super.size * count;

    return 0 != size
           && (MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu
               || size >= mca_pml_umrddt.contiguous_from)
           && !mca_pml_umrddt_known_system(buf, count, datatype);
}

/** Query the memory kind of the buffer, at most once for each request. */
static inline void look(call_t *call)
{
    looked_t *looked = &call->looked;

    if (looked->done) {
        return;
    }
    looked->done = true;
    if (mca_pml_umrddt_memory_again(call->data, call->buf, call->count, call->datatype,
                                    &looked->where)) {
        looked->memory = MCA_PML_UMRDDT_MEMORY_GPU;
        return;
    }
    if (NULL != mca_pml_umrddt.gpu && !mca_pml_umrddt_checks_pattern()
        && opal_umrddt_gpu_surely_system(call->buf, call->count, &call->datatype->super)) {
        looked->memory = MCA_PML_UMRDDT_MEMORY_SYSTEM;
        memset(&looked->where, 0, sizeof(looked->where));
        return;
    }
    looked->memory = mca_pml_umrddt_memory_of(call->data, call->buf, call->count, call->datatype,
                                              MCA_PML_UMRDDT_SENDER, &looked->where);
}

/** Returns true if the user asserts sends from system memory to GPU memory. */
static inline bool asserted_to_gpu(mca_pml_umrddt_comm_t *comm)
{
    return MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU == mca_pml_umrddt_pattern(comm);
}

/** Returns true if nothing is asserted about the receiver's buffers. */
static inline bool receiver_unknown(mca_pml_umrddt_comm_t *comm)
{
    const mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(comm);

    return MCA_PML_UMRDDT_PATTERN_NONE == pattern || MCA_PML_UMRDDT_PATTERN_SYSTEM == pattern;
}

/** Returns true if the user's assertion alone passes messages through. Either the assertion names
 * system memory at the sender and no GPU memory at the receiver, or there is no GPU. Always false
 * if assertions are checked. */
static inline bool pattern_defers(mca_pml_umrddt_comm_t *comm)
{
    return !receiver_unknown(comm) && !mca_pml_umrddt_checks_pattern()
           && (NULL == mca_pml_umrddt.gpu
               || (mca_pml_umrddt_asserted_system(comm, MCA_PML_UMRDDT_SENDER)
                   && !asserted_to_gpu(comm)));
}

/** Returns true if a probe message is due, to learn the memory kind of the receive buffer.
 * Persistent requests check that at each start. */
static bool probes_memory(call_t *call)
{
    call->offer = opal_umrddt_offer_key_of(call->data, call->dst, call->tag);
    return call->persistent || !opal_umrddt_offer_pauses(&mca_pml_umrddt.offers, call->offer);
}

/** As may_take, for system memory. Handled if a scheme can carry it, whatever the memory of the
 * receive buffer, or if that may be in GPU memory. A receive in GPU memory counts as a GPU message.
 * The user's assertion therefore overrides pml_umrddt_memory. */
static inline bool may_take_host(call_t *call, size_t size)
{
    mca_pml_umrddt_comm_t *comm = call->data;
    bool to_gpu = asserted_to_gpu(comm);
    const uint16_t schemes = mca_pml_umrddt.schemes & comm->schemes
                             & __atomic_load_n(&call->peer->reach, __ATOMIC_RELAXED);
    mca_pml_umrddt_can_send_t can;

    if (0 == (MCA_PML_UMRDDT_MEMORY_SYSTEM & mca_pml_umrddt.params.memory) && !to_gpu) {
        return false;
    }
    if (OPAL_LIKELY(0 != (schemes & mca_pml_umrddt.any_system))) {
        return true;
    }
    can = mca_pml_umrddt_schemes_can_send(schemes, comm, call->peer, &call->looked.where, size);
    if (MCA_PML_UMRDDT_CAN_SEND_TO_GPU != can) {
        return MCA_PML_UMRDDT_CAN_SEND == can;
    }
    call->probes_memory = !to_gpu;
    return MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU != mca_pml_umrddt_pattern(comm)
           && (to_gpu || probes_memory(call));
}

/** Returns true if messages from this buffer are handled. False if the user asserts system memory
 * on both sides and the buffer is in system memory; the receiver checks its own side. */
static inline bool may_take(call_t *call, size_t size)
{
    mca_pml_umrddt_comm_t *comm = call->data;
    const mca_pml_umrddt_peer_t *peer = call->peer;
    const looked_t *looked = &call->looked;

    if (MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU == mca_pml_umrddt_pattern(comm)
        && MCA_PML_UMRDDT_MEMORY_SYSTEM == looked->memory) {
        return false;
    }
    if (MCA_PML_UMRDDT_MEMORY_GPU == looked->memory) {
        return 0 != (MCA_PML_UMRDDT_MEMORY_GPU & mca_pml_umrddt.params.memory)
               && MCA_PML_UMRDDT_CAN_SEND
                      == mca_pml_umrddt_schemes_can_send(
                          mca_pml_umrddt.schemes & comm->schemes
                              & __atomic_load_n(&peer->reach, __ATOMIC_RELAXED),
                          comm, peer, &looked->where, size);
    }
    return may_take_host(call, size);
}

/** Returns true if a message from system memory is sent as a probe message although the model would
 * pass it through. The HCA would carry it if the receive buffer is in GPU memory. */
static bool may_land(call_t *call)
{
    call->probes_memory =
        MCA_PML_UMRDDT_MEMORY_SYSTEM == call->looked.memory && !call->probes_memory
        && NULL != mca_pml_umrddt.hca && call->peer->has_hca && call->peer->has_gpu
        && receiver_unknown(call->data) && probes_memory(call)
        && !mca_pml_umrddt_select_passes(call->data, call->peer, &call->looked.where, true,
                                         call->count, call->datatype);
    return call->probes_memory;
}

/** Returns true if the receiver declined similar messages and the back-off covers this one. */
static bool is_declined(call_t *call)
{
    mca_pml_umrddt_comm_t *comm = call->data;
    uint64_t key;

    call->declinable = MCA_PML_UMRDDT_SCHEME_AUTO == comm->scheme && !call->looked.where.mixed;
    if (!call->declinable || call->probes_memory) {
        return false; /* probe messages already have a key */
    }
    key = mca_pml_umrddt_select_key(comm, call->peer,
                                    MCA_PML_UMRDDT_MEMORY_GPU == call->looked.memory, call->count,
                                    call->datatype);
    call->offer = opal_umrddt_offer_key(opal_umrddt_offer_mix(key, (uint32_t) call->tag));
    return !call->persistent && opal_umrddt_offer_pauses(&mca_pml_umrddt.offers, call->offer);
}

/**
 * Second step of the classification, once for each request. The cheapest tests come first. The
 * buffer is queried last, and only if the peer is reachable.
 *
 * @param[in,out] call  if the message is handled, data and peer are set
 *
 * @return false: the base PML sends it
 */
static inline bool classify(call_t *call)
{
    if (mca_pml_umrddt_is_internal(call->tag) || MCA_PML_BASE_SEND_BUFFERED == call->mode) {
        MCA_PML_UMRDDT_COUNT(passed_other);
        return false;
    }
    call->data = mca_pml_umrddt_watched(call->comm, call->tag);
    if (NULL == call->data || call->data->bypass) {
        MCA_PML_UMRDDT_COUNT(passed_other);
        return false;
    }
    if (pattern_defers(call->data)) {
        MCA_PML_UMRDDT_COUNT(passed_memory);
        return false;
    }
    call->peer = mca_pml_umrddt_peer(call->data, call->dst);
    if (NULL == call->peer || 0 == mca_pml_umrddt_schemes_reach(call->peer)) {
        MCA_PML_UMRDDT_COUNT(passed_peer);
        return false;
    }
    look(call);
    if (!may_take(call, call->count * call->datatype->super.size)) {
        MCA_PML_UMRDDT_COUNT(passed_memory);
        return false;
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt.declines) && !call->peer->self && !call->small
        && (is_declined(call)
            || (mca_pml_umrddt_select_passes(call->data, call->peer, &call->looked.where,
                                             call->probes_memory, call->count, call->datatype)
                && !may_land(call)))) {
        MCA_PML_UMRDDT_COUNT(passed_model);
        return false;
    }
    return true;
}

/** Carrier of a message. */
typedef enum carrier_t {
    CARRIER_BASE,  /**< the base PML */
    CARRIER_STAGE, /**< the base PML, from a staging buffer: it must not access the user's */
    CARRIER_UMRDDT /**< umrddt */
} carrier_t;

/** The carrier of a message that is not handled. */
static carrier_t carrier_unhandled(const call_t *call)
{
    const opal_umrddt_gpu_where_t *where = &call->looked.where;

    if (!call->looked.done) {
        return CARRIER_BASE;
    }
    if (OPAL_UNLIKELY(call->persistent)) {
        /* the memory may change before the request starts: it is queried again then */
        return (MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu
                && opal_umrddt_gpu_on_gpu(where))
                       || !mca_pml_umrddt_base_touches(where)
                   ? CARRIER_STAGE
                   : CARRIER_BASE;
    }
    return mca_pml_umrddt_base_touches(where) || base_given(call) ? CARRIER_BASE : CARRIER_STAGE;
}

/**
 * The whole classification, for messages that need more than is_plain.
 *
 * @param[in,out] call  data and peer are set if the message is handled; data if it is staged
 */
static carrier_t carrier_of(call_t *call)
{
    bool plain = false;

    if (mca_pml_umrddt.looks) {
        call->data = mca_pml_umrddt_comm_find(call->comm);
        if (NULL == call->data) {
            return CARRIER_BASE;
        }
        look(call);
        plain = is_plain_here(call);
    }
    if (!plain && classify(call)) {
        return CARRIER_UMRDDT;
    }
    call->data = mca_pml_umrddt_comm_find(call->comm);
    return carrier_unhandled(call);
}

/** The user frees the request of a message in progress. Any later message of the receiver may then
 * signal that the buffer can be reused or freed, maybe before the HCA reports the last write. Later
 * registrations are let go where they are made (mca_pml_umrddt_rdma_has_memory). */
static void send_let_go(mca_pml_umrddt_send_t *send)
{
    mca_pml_umrddt_send_split_t *split;

    mca_pml_umrddt_send_unhold(send);
    /* first set the flag, then read the registration; the progress thread does the reverse */
    __atomic_store_n(&send->freed, true, __ATOMIC_SEQ_CST);
    if (NULL == mca_pml_umrddt.hca) {
        return;
    }
    /* the registration may have been released and reused meanwhile, which is harmless */
    mca_pml_umrddt.hca->memory_let_go(__atomic_load_n(&send->memory, __ATOMIC_SEQ_CST));
    split = __atomic_load_n(&send->split, __ATOMIC_ACQUIRE);
    if (OPAL_UNLIKELY(NULL != split)) {
        split->let_go(split);
    }
}

/** MPI_Request_free, and the last step of every wait and test. */
static int send_free(ompi_request_t **request)
{
    mca_pml_umrddt_send_t *send = (mca_pml_umrddt_send_t *) *request;
    bool early = 0 == __atomic_load_n(&send->release, __ATOMIC_ACQUIRE);

    if (OPAL_UNLIKELY(early)) {
        (void) __atomic_fetch_add(&mca_pml_umrddt.freed, 1, __ATOMIC_RELAXED);
        send_let_go(send);
    }
    if (mca_pml_umrddt_release(&send->release, MCA_PML_UMRDDT_FREED)) {
        if (OPAL_UNLIKELY(early)) {
            (void) __atomic_fetch_sub(&mca_pml_umrddt.freed, 1, __ATOMIC_RELAXED);
        }
        mca_pml_umrddt_send_return(send);
    }
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/** A send cannot be cancelled, because the envelope was sent. MPI permits that it completes. */
static int send_cancel(ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return OMPI_SUCCESS;
}

static void send_construct(mca_pml_umrddt_send_t *send)
{
    /* the maximum number of keys in a CTS of either kind */
    size_t keys = mca_pml_umrddt.params.max_keys < MCA_PML_UMRDDT_MAX_REGIONS
                      ? MCA_PML_UMRDDT_MAX_REGIONS
                      : mca_pml_umrddt.params.max_keys;

    send->super.req_type = OMPI_REQUEST_PML;
    send->super.req_start = mca_pml_umrddt_start;
    send->super.req_free = send_free;
    send->super.req_cancel = send_cancel;
    OBJ_CONSTRUCT(&send->event, mca_pml_umrddt_event_t);
    OBJ_CONSTRUCT(&send->wait, mca_pml_umrddt_wait_t);
    send->ops = NULL;
    send->split = NULL;
    send->split_cached = NULL;
    send->hold = 0;
    send->range = 0;
    memset(&send->stage, 0, sizeof(send->stage));
    send->reply = malloc(mca_pml_umrddt_reply_room());
    send->remote = malloc(keys * sizeof(*send->remote));
}

static void send_destruct(mca_pml_umrddt_send_t *send)
{
    free(send->split_cached);
    free(send->remote);
    free(send->reply);
    OBJ_DESTRUCT(&send->wait);
    OBJ_DESTRUCT(&send->event);
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_send_t, ompi_request_t, send_construct, send_destruct);

/** Allocate the request of a handled message, not started. */
static mca_pml_umrddt_send_t *send_alloc(const call_t *call, bool persistent)
{
    mca_pml_umrddt_send_t *send = mca_pml_umrddt_send_get();
    opal_iov_cache_layout_t *layout;

    if (NULL == send) {
        return NULL;
    }
    if (OPAL_SUCCESS != mca_pml_umrddt_layout(call->datatype, call->count, &layout)) {
        opal_free_list_return(&mca_pml_umrddt.sends, &send->super.super);
        return NULL;
    }
    OMPI_REQUEST_INIT(&send->super, persistent);
    send->super.req_mpi_object.comm = call->comm;
    send->super.req_status.MPI_ERROR = MPI_SUCCESS;
    send->super.req_status._cancelled = 0;
    send->state = MCA_PML_UMRDDT_SEND_IDLE;
    send->release = MCA_PML_UMRDDT_COMPLETED;
    send->buf = call->buf;
    send->count = call->count;
    send->datatype = call->datatype;
    send->dst = call->dst;
    send->tag = call->tag;
    send->mode = call->mode;
    send->comm = call->data;
    send->peer = call->peer;
    send->where = call->looked.where;
    send->layout = layout;
    send->endpoint = NULL;
    send->memory = NULL;
    send->envelope = NULL;
    send->listen = NULL;
    send->host = NULL;
    send->plain = false;
    send->probes_memory = call->probes_memory;
    send->declinable = call->declinable;
    send->offer = call->offer;
    send->freed = false;
    send->reported = false;
    send->hold = 0;
    OBJ_RETAIN(call->comm);
    OMPI_DATATYPE_RETAIN(call->datatype);
    return send;
}

/**
 * Create the request of a message, and start it unless it is persistent.
 *
 * @param[in] plain  the base PML sends a packed copy, whose buffer can be reused at once; a
 * persistent one is packed at each start
 */
static inline int prepare(const call_t *call, bool plain, mca_pml_umrddt_send_t **out)
{
    mca_pml_umrddt_send_t *send = send_alloc(call, call->persistent);
    int rc = OMPI_SUCCESS;

    if (NULL == send) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    send->plain = plain;
    if (!call->persistent) {
        rc = mca_pml_umrddt_send_start(send);
        if (OMPI_SUCCESS != rc) {
            mca_pml_umrddt_send_return(send);
            return rc;
        }
    }
    *out = send;
    return OMPI_SUCCESS;
}

/** Classify a message, and prepare it if it is handled. For lack of resources it is not. */
static inline carrier_t begin(call_t *call, mca_pml_umrddt_send_t **send)
{
    carrier_t carrier = carrier_of(call);

    if (CARRIER_UMRDDT == carrier && OMPI_SUCCESS != prepare(call, false, send)) {
        MCA_PML_UMRDDT_COUNT(passed_other);
        carrier = carrier_unhandled(call);
    }
    return carrier;
}

/** The request of a message that the base PML does not send from the user's buffer. @param[in] send
 * of a handled message */
static int own_request(const call_t *call, carrier_t carrier, mca_pml_umrddt_send_t *send,
                       ompi_request_t **request)
{
    int rc = CARRIER_STAGE == carrier ? prepare(call, true, &send) : OMPI_SUCCESS;

    if (OMPI_SUCCESS == rc) {
        *request = &send->super;
    }
    return rc;
}

/** isend of a message that is not obviously plain. Separate, so that isend needs no stack. */
static __opal_attribute_noinline__ int isend_other(MCA_PML_UMRDDT_SEND_PARAMETERS,
                                                   ompi_request_t **request)
{
    call_t call;
    mca_pml_umrddt_send_t *send = NULL;
    carrier_t carrier;

    call_set(&call, MCA_PML_UMRDDT_SEND_ARGUMENTS);
    carrier = begin(&call, &send);
    if (CARRIER_BASE != carrier) {
        return own_request(&call, carrier, send, request);
    }
    return mca_pml_umrddt.host.pml_isend(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
}

/** isend in a process that may have GPU memory. Separate for the same reason. */
static __opal_attribute_noinline__ int isend_looked(MCA_PML_UMRDDT_SEND_PARAMETERS,
                                                    ompi_request_t **request)
{
    if (OPAL_LIKELY(!must_look(buf, count, datatype) && is_plain(count, datatype))) {
        return mca_pml_umrddt.host.pml_isend(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
    }
    return isend_other(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
}

int mca_pml_umrddt_isend(MCA_PML_UMRDDT_SEND_PARAMETERS, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(mca_pml_umrddt.looks)) {
        return isend_looked(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
    }
    if (OPAL_LIKELY(is_plain(count, datatype))) {
        return mca_pml_umrddt.host.pml_isend(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
    }
    return isend_other(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
}

/** send of a message that is not obviously plain. */
static __opal_attribute_noinline__ int send_other(MCA_PML_UMRDDT_SEND_PARAMETERS)
{
    mca_pml_umrddt_send_t *send = NULL;
    ompi_request_t *request;
    carrier_t carrier;
    call_t call;
    int rc;

    call_set(&call, MCA_PML_UMRDDT_SEND_ARGUMENTS);
    call.blocking = true;
    carrier = begin(&call, &send);
    if (CARRIER_BASE == carrier) {
        return mca_pml_umrddt.host.pml_send(MCA_PML_UMRDDT_SEND_ARGUMENTS);
    }
    rc = own_request(&call, carrier, send, &request);
    return OMPI_SUCCESS == rc ? mca_pml_umrddt_wait_and_free(request, MPI_STATUS_IGNORE) : rc;
}

/** send in a process that may have GPU memory. */
static __opal_attribute_noinline__ int send_looked(MCA_PML_UMRDDT_SEND_PARAMETERS)
{
    if (OPAL_LIKELY(!must_look(buf, count, datatype) && is_plain(count, datatype))) {
        return mca_pml_umrddt.host.pml_send(MCA_PML_UMRDDT_SEND_ARGUMENTS);
    }
    return send_other(MCA_PML_UMRDDT_SEND_ARGUMENTS);
}

int mca_pml_umrddt_send(MCA_PML_UMRDDT_SEND_PARAMETERS)
{
    if (OPAL_UNLIKELY(mca_pml_umrddt.looks)) {
        return send_looked(MCA_PML_UMRDDT_SEND_ARGUMENTS);
    }
    if (OPAL_LIKELY(is_plain(count, datatype))) {
        return mca_pml_umrddt.host.pml_send(MCA_PML_UMRDDT_SEND_ARGUMENTS);
    }
    return send_other(MCA_PML_UMRDDT_SEND_ARGUMENTS);
}

int mca_pml_umrddt_isend_init(MCA_PML_UMRDDT_SEND_PARAMETERS, ompi_request_t **request)
{
    mca_pml_umrddt_send_t *send = NULL;
    carrier_t carrier = CARRIER_BASE;
    call_t call;

    call_set(&call, MCA_PML_UMRDDT_SEND_ARGUMENTS);
    call.persistent = true;
    if ((mca_pml_umrddt.looks && must_look(buf, count, datatype)) || !is_plain(count, datatype)) {
        carrier = begin(&call, &send);
    }
    if (CARRIER_BASE != carrier) {
        return own_request(&call, carrier, send, request);
    }
    return mca_pml_umrddt.host.pml_isend_init(MCA_PML_UMRDDT_SEND_ARGUMENTS, request);
}
