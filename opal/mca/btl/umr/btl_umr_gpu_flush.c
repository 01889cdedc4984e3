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
 * Flush: makes a peer's writes to GPU memory visible to the GPU.
 *
 * After a FIN the HCA has issued the writes on PCIe, but the GPU may not see them yet. The device
 * requires one of three methods: none; cuFlushGPUDirectRDMAWrites; or a read of the same memory by
 * the same HCA, which does not overtake its writes. The read uses a queue pair connected to itself,
 * one byte per message. The message is complete when the byte has arrived.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_gpu_flush.h"

/* Reads in flight. */
#define DEPTH 16

/** A message that waits for its read. */
typedef struct waiter_t {
    opal_list_item_t super;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_done_fn_t done;
    void *context;
} waiter_t;
static OBJ_CLASS_INSTANCE(waiter_t, opal_list_item_t, NULL, NULL);

typedef struct mca_btl_umr_gpu_flusher_t {
    struct ibv_cq *cq;
    mca_btl_umr_sq_t sq;
    struct ibv_mr *mr;  /**< of landing */
    uint64_t target[8]; /**< destination of the reads; contents are ignored */
    uint32_t out;       /**< number of posted entries at the head of waiting */
    opal_list_t waiting;
    opal_list_t idle;
} mca_btl_umr_gpu_flusher_t;

static void flusher_free(mca_btl_umr_hca_t *hca, mca_btl_umr_gpu_flusher_t *flusher)
{
    if (NULL != flusher->sq.qp) {
        mca_btl_umr_qp_destroy(hca, &flusher->sq);
    }
    if (NULL != flusher->mr) {
        (void) ibv_dereg_mr(flusher->mr);
    }
    if (NULL != flusher->cq) {
        (void) ibv_destroy_cq(flusher->cq);
    }
    OPAL_LIST_DESTRUCT(&flusher->waiting);
    OPAL_LIST_DESTRUCT(&flusher->idle);
    free(flusher);
}

/** The flusher of an HCA, created when first needed. @return NULL: refused by the device */
static mca_btl_umr_gpu_flusher_t *flusher_of(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_gpu_flusher_t *flusher = hca->gpu.flusher;
    mca_btl_umr_route_t route;

    if (NULL != flusher || hca->gpu.flush_failed) {
        return flusher;
    }
    flusher = calloc(1, sizeof(*flusher));
    if (NULL == flusher) {
        return NULL;
    }
    OBJ_CONSTRUCT(&flusher->waiting, opal_list_t);
    OBJ_CONSTRUCT(&flusher->idle, opal_list_t);
    mca_btl_umr_qp_route_self(&hca->device, &route);
    route.reads_in = 1;
    route.reads_out = 1;
    flusher->cq = ibv_create_cq(hca->device.context, DEPTH, NULL, NULL, 0);
    flusher->mr = ibv_reg_mr(hca->device.pd, flusher->target, sizeof(flusher->target),
                             IBV_ACCESS_LOCAL_WRITE);
    if (NULL == flusher->cq || NULL == flusher->mr
        || 0
               != mca_btl_umr_qp_create(hca, MCA_BTL_UMR_QP_RDMA, flusher->cq, DEPTH, 0, NULL,
                                        &flusher->sq)
        || 0
               != mca_btl_umr_qp_connect(&hca->device, flusher->sq.qp, &route,
                                         flusher->sq.qp->qp_num, 0, 0)) {
        MCA_BTL_UMR_LOG(hca, "no queue pair for flush reads of GPU memory (%u)", hca->index);
        flusher_free(hca, flusher);
        hca->gpu.flush_failed = true;
        return NULL;
    }
    hca->gpu.flusher = flusher;
    return flusher;
}

/** Post reads as far as there is room. @return false: the queue pair failed */
static bool post(mca_btl_umr_gpu_flusher_t *flusher)
{
    opal_list_item_t *item = opal_list_get_first(&flusher->waiting);
    struct ibv_qp_ex *qpx = flusher->sq.qpx;

    for (uint32_t i = 0; i < flusher->out; ++i) {
        item = opal_list_get_next(item);
    }
    for (; DEPTH > flusher->out && item != opal_list_get_end(&flusher->waiting);
         item = opal_list_get_next(item)) {
        const mca_btl_umr_part_t *part = &((waiter_t *) item)->memory->parts[0];

        ibv_wr_start(qpx);
        qpx->wr_id = 0;
        qpx->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_read(qpx, part->reg->mr->rkey, part->end - 1);
        ibv_wr_set_sge(qpx, flusher->mr->lkey, (uintptr_t) flusher->target, 1);
        if (0 != ibv_wr_complete(qpx)) {
            return false;
        }
        ++flusher->out;
    }
    return true;
}

/** Complete the first entry. Lock held, released for the callback. */
static void report_first(mca_btl_umr_gpu_flusher_t *flusher, int status)
{
    waiter_t *waiter = (waiter_t *) opal_list_remove_first(&flusher->waiting);
    mca_btl_umr_done_fn_t done = waiter->done;
    void *context = waiter->context;

    opal_list_append(&flusher->idle, &waiter->super);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    done(context, status);
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
}

int mca_btl_umr_gpu_flush_poll(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_gpu_flusher_t *flusher = hca->gpu.flusher;
    struct ibv_wc wc[DEPTH];
    int count, events = 0;

    if (OPAL_LIKELY(opal_list_is_empty(&flusher->waiting))) {
        return 0;
    }
    count = 0 < flusher->out ? ibv_poll_cq(flusher->cq, DEPTH, wc) : 0;
    for (int i = 0; i < count && !hca->gpu.flush_failed; ++i) {
        if (IBV_WC_SUCCESS != wc[i].status) {
            MCA_BTL_UMR_LOG(hca, "a flush read of GPU memory failed: %s",
                            ibv_wc_status_str(wc[i].status));
            ++hca->stats.errors;
            hca->gpu.flush_failed = true;
            break;
        }
        --flusher->out;
        ++events;
        report_first(flusher, OPAL_SUCCESS);
    }
    if (!hca->gpu.flush_failed && !post(flusher)) {
        hca->gpu.flush_failed = true;
    }
    while (hca->gpu.flush_failed && !opal_list_is_empty(&flusher->waiting)) {
        ++events;
        report_first(flusher, OPAL_ERROR);
    }
    return events;
}

/** Queue a read. @return OPAL_ERR_WOULD_BLOCK, or OPAL_ERROR if reads are impossible */
static int flush_by_read(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    mca_btl_umr_gpu_flusher_t *flusher;
    waiter_t *waiter = NULL;
    int rc = OPAL_ERROR;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    flusher = flusher_of(hca);
    if (NULL != flusher && !hca->gpu.flush_failed) {
        waiter = (waiter_t *) opal_list_remove_first(&flusher->idle);
        waiter = NULL == waiter ? OBJ_NEW(waiter_t) : waiter;
    }
    if (NULL != waiter) {
        waiter->memory = memory;
        waiter->done = done;
        waiter->context = context;
        opal_list_append(&flusher->waiting, &waiter->super);
        /* A refused read fails in progress, with all that wait. */
        hca->gpu.flush_failed = !post(flusher);
        ++hca->stats.gpu_flush_reads;
        rc = OPAL_ERR_WOULD_BLOCK;
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

opal_umrddt_gpu_flush_t mca_btl_umr_gpu_flush_how(int device)
{
    switch (mca_btl_umr_params.gpu_flush) {
    case MCA_BTL_UMR_GPU_FLUSH_CALL:
        return OPAL_UMRDDT_GPU_FLUSH_CALL;
    case MCA_BTL_UMR_GPU_FLUSH_READ:
        return OPAL_UMRDDT_GPU_FLUSH_READ;
    case MCA_BTL_UMR_GPU_FLUSH_OMIT:
        return OPAL_UMRDDT_GPU_FLUSH_NONE;
    default:
        return opal_umrddt_gpu_rdma_flush_how(device);
    }
}

int mca_btl_umr_gpu_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context)
{
    if (OPAL_LIKELY(!memory->gpu)) {
        return OPAL_SUCCESS;
    }
    switch (mca_btl_umr_gpu_flush_how(memory->where.device)) {
    case OPAL_UMRDDT_GPU_FLUSH_NONE:
        return OPAL_SUCCESS;
    case OPAL_UMRDDT_GPU_FLUSH_CALL:
        /* Without the lock: the driver call may take long. */
        ++memory->hca->stats.gpu_flush_calls;
        if (OPAL_LIKELY(OPAL_SUCCESS == opal_umrddt_gpu_rdma_flush(&memory->where))) {
            return OPAL_SUCCESS;
        }
        /* The received data would be lost without a flush: retry. */
        return opal_umrddt_gpu_rdma_flush(&memory->where);
    default:
        return flush_by_read(memory, done, context);
    }
}

void mca_btl_umr_gpu_flush_stop(mca_btl_umr_hca_t *hca)
{
    if (NULL != hca->gpu.flusher) {
        flusher_free(hca, hca->gpu.flusher);
        hca->gpu.flusher = NULL;
    }
}
