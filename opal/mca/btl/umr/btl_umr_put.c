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
 * Puts: split the keys of both sides into writes.
 *
 *     local keys   |    A    |  B  |       C       |
 *     remote keys  |  D  |      E      |    F      |
 *     writes       |  1  | 2 |  3  | 4 |    5      |
 *
 * One write for each piece that lies in one key on either side, not longer than the port's largest
 * message. If the last one is large and there is a FIN, the FIN follows in a write without bytes
 * (mca_btl_umr_put_write). Puts of an endpoint are in one list, in the order of the calls: first
 * the posted ones, then at most one that is partly posted, then the waiting ones.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_put.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

/** Build the next write of a put. The caller has checked that the queue has room. */
static uint64_t put_build(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    const mca_btl_umr_key_t *local = &put->keyset->keys[put->local_index];
    const mca_btl_umr_key_t *remote = &put->remote[put->remote_index];
    uint64_t local_left = local->length - put->local_offset;
    uint64_t remote_left = remote->length - put->remote_offset;
    uint64_t length = local_left < remote_left ? local_left : remote_left;

    length = length < hca->device.max_message ? length : hca->device.max_message;
    mca_btl_umr_put_write(endpoint, put, remote->rkey, remote->addr + put->remote_offset, length);
    ibv_wr_set_sge(endpoint->sq.qpx, local->lkey, local->addr + put->local_offset,
                   (uint32_t) length);

    put->local_offset += length;
    if (put->local_offset == local->length) {
        ++put->local_index;
        put->local_offset = 0;
    }
    put->remote_offset += length;
    if (put->remote_offset == remote->length) {
        ++put->remote_index;
        put->remote_offset = 0;
    }
    return length;
}

uint64_t mca_btl_umr_put_notify(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put)
{
    mca_btl_umr_sq_t *sq = &endpoint->sq;

    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, true, &put->last_seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(endpoint->index, put->last_seq);
    /* Without bytes it needs no key. */
    ibv_wr_rdma_write_imm(sq->qpx, 0, 0, htonl(put->fin));
    ibv_wr_set_sge_list(sq->qpx, 0, NULL);
    put->left = 0;
    return 0;
}

void mca_btl_umr_puts_post(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_sq_t *sq = &endpoint->sq;
    mca_btl_umr_put_t *put, *first = NULL;
    uint32_t posted, signalled;
    uint64_t bytes = 0;
    int err;

    if (endpoint->broken || 0 == mca_btl_umr_sq_room(sq)
        || (OPAL_UNLIKELY(!endpoint->proven) && !mca_btl_umr_probe(endpoint))) {
        return;
    }
    posted = sq->posted;
    signalled = sq->signalled;
    /* Backwards to the first that is not posted completely: the posted ones may be many. */
    OPAL_LIST_FOREACH_REV (put, &endpoint->puts, mca_btl_umr_put_t) {
        if (0 == put->left) {
            break;
        }
        first = put;
    }
    if (NULL == first) {
        return;
    }

    ibv_wr_start(sq->qpx);
    for (put = first; (opal_list_item_t *) put != opal_list_get_end(&endpoint->puts);
         put = (mca_btl_umr_put_t *) opal_list_get_next(&put->super)) {
        while (0 < put->left && 0 < mca_btl_umr_sq_room(sq)) {
            bytes += NULL != put->build ? put->build(endpoint, put) : put_build(endpoint, put);
        }
        if (0 == mca_btl_umr_sq_room(sq)) {
            break;
        }
    }
    err = ibv_wr_complete(sq->qpx);
    if (0 == err) {
        hca->stats.writes_posted += sq->posted - posted;
        hca->writes_out += sq->posted - posted;
        hca->stats.bytes_written += bytes;
        return;
    }
    /* Nothing of this batch was posted: its puts end after the previously posted writes. */
    ++hca->stats.errors;
    MCA_BTL_UMR_LOG(hca, "writes to %s cannot be posted: %s", OPAL_NAME_PRINT(endpoint->peer->name),
                    strerror(err));
    sq->posted = posted;
    sq->signalled = signalled;
    for (put = first; (opal_list_item_t *) put != opal_list_get_end(&endpoint->puts);
         put = (mca_btl_umr_put_t *) opal_list_get_next(&put->super)) {
        put->left = put->left > 0 ? put->left : 1;
        put->last_seq = posted;
    }
    mca_btl_umr_endpoint_fail(endpoint);
}

/** Sum of the lengths; false if one is 0 or the sum does not fit. */
static bool keys_length(const mca_btl_umr_key_t *keys, size_t count, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < count; ++i) {
        if (0 == keys[i].length || UINT64_MAX - *length < keys[i].length) {
            return false;
        }
        *length += keys[i].length;
    }
    return true;
}

mca_btl_umr_put_t *mca_btl_umr_put_new(mca_btl_umr_hca_t *hca, const mca_btl_umr_key_t *remote,
                                       size_t remote_count)
{
    mca_btl_umr_put_t *put = (mca_btl_umr_put_t *) opal_list_remove_first(&hca->puts_idle);

    if (NULL == put) {
        put = OBJ_NEW(mca_btl_umr_put_t);
    }
    if (NULL != put && put->capacity < remote_count) {
        void *keys = realloc(put->remote, remote_count * sizeof(*remote));

        if (NULL == keys) {
            OBJ_RELEASE(put);
            return NULL;
        }
        put->remote = keys;
        put->capacity = remote_count;
    }
    if (NULL != put) {
        /* (mostly one key: not worth a call) */
        for (size_t i = 0; i < remote_count; ++i) {
            put->remote[i] = remote[i];
        }
    }
    return put;
}

void mca_btl_umr_put_begin(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                           uint64_t length, const uint32_t *fin, mca_btl_umr_done_fn_t done,
                           void *context)
{
    put->left = length;
    put->started = false;
    put->last_seq = 0;
    put->has_fin = NULL != fin;
    put->fin = NULL != fin ? *fin : 0;
    put->status = OPAL_SUCCESS;
    put->done = done;
    put->context = context;
    opal_list_append(&endpoint->puts, &put->super);
    mca_btl_umr_puts_post(endpoint);
}

int mca_btl_umr_put(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
                    const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
                    mca_btl_umr_done_fn_t done, void *context)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_put_t *put;
    uint64_t length;
    int rc;

    if (!keyset->ready || 0 == remote_count || !keys_length(remote, remote_count, &length)
        || length != keyset->end - keyset->start
        || endpoint->hca != ((const mca_btl_umr_keyset_object_t *) keyset)->hca) {
        return OPAL_ERR_BAD_PARAM;
    }

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    rc = mca_btl_umr_endpoint_takes(endpoint);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return rc;
    }
    put = mca_btl_umr_put_new(hca, remote, remote_count);
    if (NULL == put) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    put->build = NULL;
    put->keyset = keyset;
    put->local_index = put->remote_index = 0;
    put->local_offset = put->remote_offset = 0;
    mca_btl_umr_put_begin(endpoint, put, length, fin, done, context);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return OPAL_SUCCESS;
}
