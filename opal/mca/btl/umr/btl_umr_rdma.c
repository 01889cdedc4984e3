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
 * The module's operations on contiguous memory: put, get, atomics, flush.
 *
 * Each operation is one work request and gives one completion, since the framework requires a
 * callback for each. On a reliable connection the completion of a write or an atomic follows its
 * execution in the peer's memory, as seen by other requests to that memory.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_event.h"
#include "opal/mca/btl/umr/btl_umr_module.h"

/* Completions of one poll. */
#define MCA_BTL_UMR_MODULE_POLL 32

static mca_btl_umr_module_t *const module = &mca_btl_umr_module;

typedef enum kind_t {
    KIND_PUT,
    KIND_GET,
    KIND_ADD,
    KIND_SWAP
} kind_t;

/** A work request. */
typedef struct request_t {
    kind_t kind;
    uint64_t remote;
    uint32_t rkey;
    uint32_t length;
    uint64_t operand; /**< addend, or value to compare with */
    uint64_t value;   /**< value to store if equal */
    mca_btl_umr_op_t op;
} request_t;

/* Operations in flight; also called without the lock. */
static uint32_t in_flight(void)
{
    return __atomic_load_n(&module->in_flight, __ATOMIC_RELAXED);
}

static void in_flight_add(uint32_t change)
{
    (void) __atomic_add_fetch(&module->in_flight, change, __ATOMIC_RELAXED);
}

/** Break the queue pair; operations in flight are flushed. Lock held. */
static void endpoint_fail(struct mca_btl_base_endpoint_t *endpoint)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (!endpoint->broken) {
        endpoint->broken = true;
        (void) ibv_modify_qp(endpoint->sq.qp, &attr, IBV_QP_STATE);
    }
}

/** Build it; there is room. @return its number */
static uint32_t build(struct mca_btl_base_endpoint_t *endpoint, const request_t *request)
{
    struct ibv_qp_ex *qpx = endpoint->sq.qpx;
    uint32_t seq;

    qpx->wr_flags = mca_btl_umr_sq_next(&endpoint->sq, true, &seq);
    qpx->wr_id = MCA_BTL_UMR_WR_ID(endpoint->index, seq);
    switch (request->kind) {
    case KIND_PUT:
        ibv_wr_rdma_write(qpx, request->rkey, request->remote);
        break;
    case KIND_GET:
        ibv_wr_rdma_read(qpx, request->rkey, request->remote);
        break;
    case KIND_ADD:
        ibv_wr_atomic_fetch_add(qpx, request->rkey, request->remote, request->operand);
        break;
    default:
        ibv_wr_atomic_cmp_swp(qpx, request->rkey, request->remote, request->operand,
                              request->value);
        break;
    }
    ibv_wr_set_sge(qpx, request->op.local_handle->lkey, (uintptr_t) request->op.local_address,
                   request->length);
    return seq;
}

static void count(const request_t *request)
{
    mca_btl_umr_stats_t *stats = &mca_btl_umr_first()->stats;

    switch (request->kind) {
    case KIND_PUT:
        ++stats->rdma_puts;
        break;
    case KIND_GET:
        ++stats->rdma_gets;
        break;
    default:
        ++stats->rdma_atomics;
        break;
    }
    stats->rdma_bytes += request->length;
}

static int post(struct mca_btl_base_endpoint_t *endpoint, const request_t *request)
{
    int rc = OPAL_SUCCESS, err;
    uint32_t seq, signalled;

    OPAL_THREAD_LOCK(&module->lock);
    if (endpoint->broken) {
        rc = OPAL_ERR_UNREACH;
        goto out;
    }
    if (NULL == endpoint->ops) {
        endpoint->ops = calloc(module->depth, sizeof(*endpoint->ops));
    }
    if (NULL == endpoint->ops || 0 == mca_btl_umr_sq_room(&endpoint->sq)
        || in_flight() == module->cq_size) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
        goto out;
    }
    signalled = endpoint->sq.signalled;
    ibv_wr_start(endpoint->sq.qpx);
    seq = build(endpoint, request);
    endpoint->ops[seq % module->depth] = request->op;
    err = ibv_wr_complete(endpoint->sq.qpx);
    if (0 != err) {
        /* libmlx5 rolled it back; it gives no completion. */
        --endpoint->sq.posted;
        endpoint->sq.signalled = signalled;
        MCA_BTL_UMR_LOG(mca_btl_umr_first(), "an operation on memory of %s cannot be posted: %s",
                        OPAL_NAME_PRINT(endpoint->name), strerror(err));
        endpoint_fail(endpoint);
        rc = OPAL_ERROR;
        goto out;
    }
    in_flight_add(1);
    count(request);
out:
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

static int move(kind_t kind, struct mca_btl_base_endpoint_t *endpoint, uint64_t remote_address,
                const mca_btl_base_registration_handle_t *remote_handle, size_t size,
                const mca_btl_umr_op_t *op)
{
    request_t request = {.kind = kind, .remote = remote_address, .op = *op};

    if (NULL == op->local_handle || NULL == remote_handle || size > module->super.btl_put_limit) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (0 == size) {
        if (NULL != op->cbfunc) {
            op->cbfunc(&module->super, endpoint, op->local_address, op->local_handle, op->context,
                       op->data, OPAL_SUCCESS);
        }
        return OPAL_SUCCESS;
    }
    request.rkey = remote_handle->rkey;
    request.length = (uint32_t) size;
    return post(endpoint, &request);
}

int mca_btl_umr_module_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle, size_t size,
                           int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                           void *context, void *data)
{
    mca_btl_umr_op_t op = {cbfunc, local_address, local_handle, context, data};

    (void) btl;
    (void) flags;
    (void) order;
    return move(KIND_PUT, endpoint, remote_address, remote_handle, size, &op);
}

int mca_btl_umr_module_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle, size_t size,
                           int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                           void *context, void *data)
{
    mca_btl_umr_op_t op = {cbfunc, local_address, local_handle, context, data};

    (void) btl;
    (void) flags;
    (void) order;
    return move(KIND_GET, endpoint, remote_address, remote_handle, size, &op);
}

static int atomic(struct mca_btl_base_endpoint_t *endpoint, request_t *request,
                  const mca_btl_base_registration_handle_t *remote_handle, int flags)
{
    if (0 != (MCA_BTL_ATOMIC_FLAG_32BIT & flags)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    /* The device would break the connection on an unaligned address. */
    if (NULL == request->op.local_handle || NULL == remote_handle || 0 != request->remote % 8) {
        return OPAL_ERR_BAD_PARAM;
    }
    request->rkey = remote_handle->rkey;
    request->length = 8;
    return post(endpoint, request);
}

int mca_btl_umr_module_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle,
                           mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                           mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
    request_t request = {.kind = KIND_ADD,
                         .remote = remote_address,
                         .operand = operand,
                         .op = {cbfunc, local_address, local_handle, context, data}};

    (void) btl;
    (void) order;
    if (MCA_BTL_ATOMIC_ADD != op) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return atomic(endpoint, &request, remote_handle, flags);
}

int mca_btl_umr_module_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                             void *local_address, uint64_t remote_address,
                             mca_btl_base_registration_handle_t *local_handle,
                             mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                             uint64_t value, int flags, int order,
                             mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
    request_t request = {.kind = KIND_SWAP,
                         .remote = remote_address,
                         .operand = compare,
                         .value = value,
                         .op = {cbfunc, local_address, local_handle, context, data}};

    (void) btl;
    (void) order;
    return atomic(endpoint, &request, remote_handle, flags);
}

/** A completion not reported to its user yet. */
typedef struct done_t {
    struct mca_btl_base_endpoint_t *endpoint;
    mca_btl_umr_op_t op;
    int status;
} done_t;

/**
 * The completion of an operation. Lock held.
 *
 * @return false: the operation was ended before (end_lost)
 */
static bool complete(const struct ibv_wc *wc, done_t *done, int *failures)
{
    struct mca_btl_base_endpoint_t *endpoint = &module->endpoints[MCA_BTL_UMR_WR_INDEX(wc->wr_id)];
    uint32_t seq = MCA_BTL_UMR_WR_SEQ(wc->wr_id);

    if (OPAL_UNLIKELY(endpoint->broken) && mca_btl_umr_sq_is_done(&endpoint->sq, seq)) {
        return false;
    }
    done->endpoint = endpoint;
    done->op = endpoint->ops[seq % module->depth];
    done->status = IBV_WC_SUCCESS == wc->status ? OPAL_SUCCESS : OPAL_ERR_UNREACH;
    mca_btl_umr_sq_complete(&endpoint->sq, seq);
    in_flight_add(UINT32_MAX); /* one less */
    if (IBV_WC_SUCCESS != wc->status) {
        if (!endpoint->broken) {
            ++*failures;
            ++mca_btl_umr_first()->stats.errors;
            MCA_BTL_UMR_LOG(
                mca_btl_umr_first(), "an operation on memory of %s failed: %s (vendor error 0x%x)",
                OPAL_NAME_PRINT(endpoint->name), ibv_wc_status_str(wc->status), wc->vendor_err);
        }
        endpoint_fail(endpoint);
    }
    return true;
}

/**
 * The device failed, and all its completions were polled: end operations with an error. (A
 * completion that comes all the same is ignored.) Lock held.
 *
 * @return operations ended, at most MCA_BTL_UMR_MODULE_POLL
 */
static int end_lost(done_t *done)
{
    int count = 0;

    for (uint32_t i = 0; i < module->count; ++i) {
        struct mca_btl_base_endpoint_t *endpoint = &module->endpoints[i];

        endpoint_fail(endpoint);
        while (endpoint->sq.posted != endpoint->sq.done && MCA_BTL_UMR_MODULE_POLL > count) {
            done[count].endpoint = endpoint;
            done[count].op = endpoint->ops[++endpoint->sq.done % module->depth];
            done[count++].status = OPAL_ERR_UNREACH;
            in_flight_add(UINT32_MAX); /* one less */
        }
    }
    return count;
}

/** Nothing completes: read the events of the device from time to time. */
static void look(void)
{
    static uint32_t passes;

    if (0 == __atomic_add_fetch(&passes, 1, __ATOMIC_RELAXED) % MCA_BTL_UMR_LOOK_PERIOD) {
        OPAL_THREAD_LOCK(&mca_btl_umr.lock);
        mca_btl_umr_events_read(mca_btl_umr_first());
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    }
}

int mca_btl_umr_module_progress(void)
{
    static char info[] = "btl/umr: an operation on the memory of a peer failed";

    struct ibv_wc wc[MCA_BTL_UMR_MODULE_POLL];
    done_t done[MCA_BTL_UMR_MODULE_POLL];
    int polled, got = 0, failures = 0;
    bool lost;

    /* Nothing is in flight, and a later post is followed by a poll: no lock and no poll here. */
    if (0 == in_flight()) {
        return 0;
    }
    /* (before the poll, so that it sees all completions of a device that has failed) */
    lost = __atomic_load_n(&mca_btl_umr_first()->lost, __ATOMIC_ACQUIRE);
    OPAL_THREAD_LOCK(&module->lock);
    polled = module->open ? ibv_poll_cq(module->cq, MCA_BTL_UMR_MODULE_POLL, wc) : 0;
    for (int i = 0; i < polled; ++i) {
        got += complete(&wc[i], &done[got], &failures) ? 1 : 0;
    }
    if (OPAL_UNLIKELY(lost) && 0 >= polled && module->open) {
        got = failures = end_lost(done);
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (0 == got && !lost) {
        look();
    }

    for (int i = 0; i < got; ++i) {
        const mca_btl_umr_op_t *op = &done[i].op;

        if (NULL != op->cbfunc) {
            op->cbfunc(&module->super, done[i].endpoint, op->local_address, op->local_handle,
                       op->context, op->data, done[i].status);
        }
    }
    /* osc/rdma ignores the status: without this call it would take failures for success. */
    if (0 < failures && NULL != module->error_cb) {
        module->error_cb(&module->super, MCA_BTL_ERROR_FLAGS_FATAL, NULL, info);
    }
    return got;
}

/** Wait for all operations posted so far. */
static bool flush_one(struct mca_btl_base_endpoint_t *endpoint)
{
    uint32_t seq;
    bool done;

    OPAL_THREAD_LOCK(&module->lock);
    seq = endpoint->sq.posted;
    done = mca_btl_umr_sq_is_done(&endpoint->sq, seq);
    OPAL_THREAD_UNLOCK(&module->lock);
    while (!done) {
        (void) mca_btl_umr_module_progress();
        OPAL_THREAD_LOCK(&module->lock);
        done = mca_btl_umr_sq_is_done(&endpoint->sq, seq);
        OPAL_THREAD_UNLOCK(&module->lock);
    }
    return !endpoint->broken;
}

int mca_btl_umr_module_flush(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    bool good = true;

    (void) btl;
    (void) mca_btl_umr_module_progress();
    if (NULL != endpoint) {
        good = flush_one(endpoint);
    } else {
        for (uint32_t i = 0; i < module->count && 0 < in_flight(); ++i) {
            good = flush_one(&module->endpoints[i]) && good;
        }
    }
    return good ? OPAL_SUCCESS : OPAL_ERR_UNREACH;
}
