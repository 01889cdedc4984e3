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
 * Sender's half of the scheme umr: RDMA writes between mkeys of both sides, in rounds. See
 * pml_umrddt_rdma.h first.
 */

/*
 *     REPLY --CTS--> KEYS -> MAPPING -> PUT --(more)--> REPLY
 *
 * Keys of the LOCAL role are held only from a CTS until its writes complete. These depend on no
 * other process, so that the keys are always released.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_send_rndv.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

/** Data of a send by this scheme. */
typedef struct held_t {
    mca_btl_umr_keyset_t *keyset;
} held_t;

static bool map_keys(void *owner);

static void put_done(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    uint64_t end = held->keyset->end;

    if (OPAL_SUCCESS != status) {
        mca_pml_umrddt.hca->keyset_release(held->keyset);
        held->keyset = NULL;
        mca_pml_umrddt_send_fail(send, true);
        return;
    }
    mca_pml_umrddt_keyset_done(held->keyset);
    held->keyset = NULL;
    send->position = end;
    if (end < send->reply->end) {
        send->state = MCA_PML_UMRDDT_SEND_KEYS;
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_keys,
                            send);
    } else if (end < send->total) {
        /* until here send->reply was needed for the range of the CTS */
        send->state = MCA_PML_UMRDDT_SEND_REPLY;
        mca_pml_umrddt_send_await(send);
    } else {
        mca_pml_umrddt_send_finish(send, MPI_SUCCESS);
    }
}

/** The peer's keys for the bytes of the keyset, which may begin and end within keys of the CTS. */
static size_t remote_keys(mca_pml_umrddt_send_t *send)
{
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t at = reply->start;
    size_t count = 0;

    if (OPAL_LIKELY(held->keyset->start == at && held->keyset->end == reply->end)) {
        for (; count < reply->key_count; ++count) {
            send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[count]);
        }
        return count;
    }
    for (uint32_t i = 0; i < reply->key_count && at < held->keyset->end; ++i) {
        uint64_t begin = at;
        uint64_t end = at + reply->keys[i].length;

        at = end;
        if (end <= held->keyset->start) {
            continue;
        }
        if (begin < held->keyset->start) {
            begin = held->keyset->start;
        }
        if (end > held->keyset->end) {
            end = held->keyset->end;
        }
        send->remote[count] = mca_pml_umrddt_key_of(&reply->keys[i]);
        send->remote[count].addr += begin - (at - reply->keys[i].length);
        send->remote[count].length = end - begin;
        ++count;
    }
    return count;
}

static void keys_ready(void *context, int status)
{
    mca_pml_umrddt_send_t *send = context;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    bool last = held->keyset->end == send->reply->end;
    size_t count;

    if (OPAL_SUCCESS == status) {
        send->state = MCA_PML_UMRDDT_SEND_PUT;
        count = remote_keys(send);
        status = mca_pml_umrddt.hca->put(send->endpoint, held->keyset, send->remote, count,
                                         last ? &send->reply->fin : NULL, put_done, send);
    }
    if (OPAL_SUCCESS != status) {
        bool in_flight = send->position > send->reply->start;

        mca_pml_umrddt.hca->keyset_release(held->keyset);
        held->keyset = NULL;
        mca_pml_umrddt_send_fail(send, in_flight);
    }
}

/** State KEYS: map as many local keys as are available for the range of the CTS. */
static bool map_keys(void *owner)
{
    mca_pml_umrddt_send_t *send = owner;
    held_t *held = MCA_PML_UMRDDT_HELD(held_t, send);
    uint64_t chunk = opal_iov_cache_layout_is_contiguous(send->layout) ? 0 : send->reply->chunk;
    int rc;

    if (NULL == send->memory && OPAL_LIKELY(!opal_umrddt_gpu_on_device(&send->where))) {
        held->keyset = mca_pml_umrddt.hca->keyset_lookup(
            send->endpoint, MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout, chunk,
            send->position, send->reply->end, mca_pml_umrddt.params.max_keys);
        if (OPAL_LIKELY(NULL != held->keyset)) {
            keys_ready(send, OPAL_SUCCESS);
            return true;
        }
    }
    if (!mca_pml_umrddt_rdma_has_memory(send)) {
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
        return true;
    }
    rc = mca_pml_umrddt.hca->keyset_map(
        MCA_BTL_UMR_LOCAL, (void *) send->buf, send->layout, send->memory, chunk, send->position,
        send->reply->end, mca_pml_umrddt.params.max_keys, keys_ready, send, &held->keyset);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mca_pml_umrddt_send_fail(send, send->position > send->reply->start);
        return true;
    }
    send->state = MCA_PML_UMRDDT_SEND_MAPPING;
    if (held->keyset->ready) {
        keys_ready(send, OPAL_SUCCESS);
    }
    return true;
}

/** Check that the range of a CTS continues this message. The first CTS of a stripe sets its
 * start. */
static inline bool range_valid(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    if (OPAL_UNLIKELY(0 == send->total)) {
        send->position = reply->start;
    }
    return reply->start == send->position && reply->end > reply->start && reply->end <= reply->total
           && reply->total <= send->layout->size;
}

/** Returns true if the message offered this scheme. Otherwise it may have no endpoint. */
static inline bool keys_offered(const mca_pml_umrddt_send_t *send)
{
    return 0 != (MCA_PML_UMRDDT_BIT_UMR & send->rts.schemes);
}

/** Validate a CTS field by field. */
static bool keys_valid(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;
    uint64_t sum = 0;

    if (!keys_offered(send) || 1 > reply->key_count
        || mca_pml_umrddt.params.max_keys < reply->key_count
        || sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) != length
        || !range_valid(send)) {
        return false;
    }
    for (uint32_t i = 0; i < reply->key_count; ++i) {
        if (0 == reply->keys[i].length) {
            return false;
        }
        sum += reply->keys[i].length;
    }
    return reply->end - reply->start == sum;
}

/** Execute a valid CTS. */
static void cts(mca_pml_umrddt_send_t *send)
{
    if (0 == send->position) {
        MCA_PML_UMRDDT_COUNT(sends_umr);
    }
    send->total = send->reply->total;
    if (OPAL_SUCCESS
        != mca_pml_umrddt.hca->endpoint_connect(send->endpoint, &send->reply->address)) {
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    send->state = MCA_PML_UMRDDT_SEND_KEYS;
    if (!opal_list_is_empty(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL]) || !map_keys(send)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_LOCAL], &send->wait, map_keys,
                            send);
    }
}

/** Execute a CTS_CACHED: restore the CTS that it refers to. */
static void from_cache(mca_pml_umrddt_send_t *send)
{
    const mca_pml_umrddt_cts_cached_t *requested =
        (const mca_pml_umrddt_cts_cached_t *) send->reply;
    const bool in_gpu = 0 != (MCA_PML_UMRDDT_IN_GPU & requested->what);

    if (OPAL_UNLIKELY(!keys_offered(send)
                      || !mca_pml_umrddt_set_lookup(send->peer, requested, send->reply))) {
        /* the NACK makes the receiver discard its record of the cache slot */
        mca_pml_umrddt_send_fail(send, false);
        return;
    }
    mca_pml_umrddt_send_landed(send, in_gpu);
    if (OPAL_LIKELY(range_valid(send))) {
        cts(send); /* the keys were validated when they were stored */
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}

void mca_pml_umrddt_umr_reply(mca_pml_umrddt_send_t *send, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = send->reply;

    if (OPAL_LIKELY(MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_CACHED) == reply->magic)) {
        if (OPAL_LIKELY(sizeof(mca_pml_umrddt_cts_cached_t) == length)) {
            from_cache(send);
        } else {
            mca_pml_umrddt_send_malformed(send);
        }
    } else if (keys_valid(send, length)) {
        mca_pml_umrddt_send_landed(send, 0 != (MCA_PML_UMRDDT_IN_GPU & reply->what));
        mca_pml_umrddt_set_store(send->peer, send->reply);
        cts(send);
    } else {
        mca_pml_umrddt_send_malformed(send);
    }
}
