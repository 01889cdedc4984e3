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
 * Endpoints: one RC queue pair per peer and pair of HCAs, created when first needed.
 * btl_umr_rebuild.c replaces a broken one.
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_endpoint.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

/* Size of the first completion queue, over all HCAs; each later one doubles the total. */
#define MCA_BTL_UMR_CQ_SIZE 256

/*
 * Minimum of writes, and of FINs, per pair of HCAs when several pairs share the limits of a peer.
 */
#define MCA_BTL_UMR_LEAST_DEPTH 8

/* Microseconds between looks at a command of another thread. */
#define MCA_BTL_UMR_COMMAND_USEC 20

/* Bytes per endpoint in the tables that find it by index, name and queue pair number. */
#define MCA_BTL_UMR_TABLE_BYTES 256

OBJ_CLASS_INSTANCE(mca_btl_umr_cq_t, opal_list_item_t, NULL, NULL);

static void endpoint_construct(mca_btl_umr_endpoint_t *endpoint)
{
    memset((char *) endpoint + sizeof(opal_list_item_t), 0,
           sizeof(*endpoint) - sizeof(opal_list_item_t));
    OBJ_CONSTRUCT(&endpoint->puts, opal_list_t);
}

static void endpoint_destruct(mca_btl_umr_endpoint_t *endpoint)
{
    OBJ_DESTRUCT(&endpoint->puts);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_endpoint_t, opal_list_item_t, endpoint_construct, endpoint_destruct);

/* ------------------------------------------------------------------------------------------- *
 * Commands without the lock
 *
 * The commands that create and connect a queue pair take long: the firmware executes them one after
 * the other, and on Ethernet the kernel searches for the address of the peer. Other threads use the
 * HCAs meanwhile. An endpoint is known to others only when its queue pair exists. While it is being
 * connected its queue pair gets no other command: if it breaks, this thread stops the queue pair
 * afterwards. (No peer has a key for it before it is connected.)
 * ------------------------------------------------------------------------------------------- */

static void commands_begin(mca_btl_umr_hca_t *hca)
{
    ++hca->commands;
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

static void commands_end(mca_btl_umr_hca_t *hca)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    --hca->commands;
}

void mca_btl_umr_commands_look(mca_btl_umr_hca_t *hca)
{
    commands_begin(hca);
    (void) usleep(MCA_BTL_UMR_COMMAND_USEC);
    commands_end(hca);
}

/* ------------------------------------------------------------------------------------------- *
 * Creation and destruction
 * ------------------------------------------------------------------------------------------- */

void mca_btl_umr_endpoints_start(mca_btl_umr_hca_t *hca)
{
    OBJ_CONSTRUCT(&hca->endpoints_by_qpn, opal_hash_table_t);
    opal_hash_table_init(&hca->endpoints_by_qpn, 16);
    OBJ_CONSTRUCT(&hca->endpoints, opal_pointer_array_t);
    opal_pointer_array_init(&hca->endpoints, 16, INT_MAX, 64);
}

void mca_btl_umr_endpoints_stop(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item;

    while (NULL != opal_list_remove_first(&hca->receives.draining)) {
        continue; /* they are endpoints and are destroyed with these */
    }
    while (NULL != opal_list_remove_first(&hca->probing)) {
        continue;
    }
    for (int i = 0; i < opal_pointer_array_get_size(&hca->endpoints); ++i) {
        mca_btl_umr_endpoint_t *endpoint = opal_pointer_array_get_item(&hca->endpoints, i);

        if (NULL == endpoint) {
            continue;
        }
        mca_btl_umr_qp_destroy(hca, &endpoint->sq);
        opal_list_join(&hca->puts_done, opal_list_get_end(&hca->puts_done), &endpoint->puts);
        OBJ_RELEASE(endpoint);
    }
    OBJ_DESTRUCT(&hca->endpoints);
    OBJ_DESTRUCT(&hca->endpoints_by_qpn);
    mca_btl_umr_receives_stop(hca);
    hca->writes_out = 0;
    hca->stats.endpoints_now = 0;
    hca->stats.peer_bytes_now = 0;

    while (NULL != (item = opal_list_remove_first(&hca->puts_done))
           || NULL != (item = opal_list_remove_first(&hca->puts_idle))) {
        OBJ_RELEASE(item);
    }
    while (NULL != (item = opal_list_remove_first(&hca->cqs))) {
        int err = ibv_destroy_cq(((mca_btl_umr_cq_t *) item)->cq);

        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "a completion queue cannot be destroyed: %s", strerror(err));
        }
        OBJ_RELEASE(item);
    }
}

/**
 * Get a completion queue with room for all completions of one endpoint. Few endpoints take little
 * memory, and many endpoints share few queues, which progress has to poll.
 */
static mca_btl_umr_cq_t *cq_take(mca_btl_umr_hca_t *hca, uint32_t need)
{
    uint64_t size = MCA_BTL_UMR_CQ_SIZE / mca_btl_umr.hca_count, all = 0;
    mca_btl_umr_cq_t *cq;

    OPAL_LIST_FOREACH (cq, &hca->cqs, mca_btl_umr_cq_t) {
        if (need <= cq->room) {
            cq->room -= need;
            return cq;
        }
        all += cq->size;
    }
    size = size < all ? all : size;
    /* libmlx5 rounds the size plus one up to a power of two. */
    size = mca_btl_umr_round_up(size <= need ? need + 1 : size) - 1;
    if (0 < hca->device.attr.max_cqe && (uint64_t) hca->device.attr.max_cqe < size) {
        size = (uint64_t) hca->device.attr.max_cqe;
    }
    if (size < need) {
        errno = EINVAL;
        return NULL;
    }
    cq = OBJ_NEW(mca_btl_umr_cq_t);
    if (NULL == cq) {
        errno = ENOMEM;
        return NULL;
    }
    cq->cq = ibv_create_cq(hca->device.context, (int) size, NULL, NULL, 0);
    if (NULL == cq->cq) {
        OBJ_RELEASE(cq);
        return NULL;
    }
    cq->size = (uint32_t) size;
    cq->room = (uint32_t) size - need;
    opal_list_append(&hca->cqs, &cq->super);
    hca->stats.peer_bytes_now += mca_btl_umr_cq_bytes(cq->cq);
    return cq;
}

/**
 * The initial packet sequence number. It must differ between uses of the same queue pair number, so
 * that old packets are rejected. (Not random(): its sequence belongs to the application.)
 */
uint32_t mca_btl_umr_first_psn(const struct ibv_qp *qp)
{
    struct timespec time;
    uint64_t x;

    clock_gettime(CLOCK_MONOTONIC, &time);
    x = (uint64_t) time.tv_nsec ^ (uint64_t) time.tv_sec << 30 ^ (uint64_t) getpid() << 16
        ^ qp->qp_num;
    return (uint32_t) ((x * 0x9e3779b97f4a7c15ull) >> 40);
}

/**
 * The share of one pair in the limits of a peer: a peer costs the same with any number of pairs,
 * except for the fixed size of a queue pair.
 */
static uint32_t part_of(const mca_btl_umr_endpoint_t *endpoint, uint32_t depth)
{
    uint32_t part = depth / endpoint->peer->lane_count;

    return part >= MCA_BTL_UMR_LEAST_DEPTH   ? part
           : depth < MCA_BTL_UMR_LEAST_DEPTH ? depth
                                             : MCA_BTL_UMR_LEAST_DEPTH;
}

/** The address of an endpoint, for the peer. */
static void set_address(mca_btl_umr_endpoint_t *endpoint)
{
    const struct ibv_qp *qp = endpoint->sq.qp;
    uint32_t psn = MCA_BTL_UMR_ADDRESS_PSN(mca_btl_umr_first_psn(qp) | 1);

    endpoint->address.qpn = htonl(endpoint->hca->index << 24 | qp->qp_num);
    endpoint->address.psn = htonl(endpoint->generation << 24 | psn);
}

/** Create the queue pair and its receives. */
static int endpoint_start(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    uint32_t sq_depth = part_of(endpoint, mca_btl_umr_params.sq_depth);
    uint32_t rq_depth = part_of(endpoint, mca_btl_umr_params.rq_depth);
    uint32_t own, need;
    mca_btl_umr_cq_t *cq;
    int index, err;

    if (0 < hca->device.attr.max_qp_wr) {
        uint32_t most = (uint32_t) hca->device.attr.max_qp_wr;

        sq_depth = sq_depth < most ? sq_depth : most;
        rq_depth = rq_depth < most ? rq_depth : most;
    }
    mca_btl_umr_receives_start(hca);
    if (hca->receives.failed) {
        err = EIO;
        goto fail;
    }
    own = NULL == hca->receives.srq ? rq_depth : 0;
    need = sq_depth + own;
    cq = cq_take(hca, need);
    if (NULL == cq) {
        err = errno;
        goto fail;
    }
    commands_begin(hca);
    err =
        mca_btl_umr_qp_create(hca, MCA_BTL_UMR_QP_DATA, cq->cq, sq_depth, own, NULL, &endpoint->sq);
    commands_end(hca);
    if (0 == err && (hca->lost || hca->receives.failed)) {
        mca_btl_umr_qp_destroy(hca, &endpoint->sq);
        err = EIO;
    }
    if (0 != err) {
        cq->room += need;
        goto fail;
    }
    endpoint->cq = cq;
    endpoint->cq_need = need;
    endpoint->receives = own;
    err = mca_btl_umr_qp_post_receives(endpoint->sq.qp, MCA_BTL_UMR_WR_RECEIVE, own);
    index = opal_pointer_array_add(&hca->endpoints, endpoint);
    if (0 == err && 0 > index) {
        err = ENOMEM;
    }
    if (0 == err
        && OPAL_SUCCESS
               != opal_hash_table_set_value_uint32(&hca->endpoints_by_qpn, endpoint->sq.qp->qp_num,
                                                   endpoint)) {
        err = ENOMEM;
    }
    if (0 != err) {
        if (0 <= index) {
            opal_pointer_array_set_item(&hca->endpoints, index, NULL);
        }
        mca_btl_umr_qp_destroy(hca, &endpoint->sq);
        cq->room += need;
        goto fail;
    }
    endpoint->index = (uint32_t) index;
    endpoint->fins_max = rq_depth;
    set_address(endpoint);
    ++hca->stats.endpoints_now;
    /* The completions were counted when their queue was created. */
    endpoint->bytes = mca_btl_umr_qp_bytes(endpoint->sq.qp);
    hca->stats.peer_bytes_now += endpoint->bytes + sizeof(*endpoint) + MCA_BTL_UMR_TABLE_BYTES;
    return OPAL_SUCCESS;

fail:
    if (!hca->qp_refused) {
        hca->qp_refused = true;
        MCA_BTL_UMR_LOG(hca, "no queue pair for %s: %s", OPAL_NAME_PRINT(endpoint->peer->name),
                        strerror(err));
    }
    return OPAL_ERR_OUT_OF_RESOURCE;
}

mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_new(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                                 uint32_t generation)
{
    mca_btl_umr_hca_t *hca = lane->hca;
    mca_btl_umr_endpoint_t *endpoint = hca->lost ? NULL : OBJ_NEW(mca_btl_umr_endpoint_t);
    int rc;

    if (NULL == endpoint) {
        return NULL;
    }
    endpoint->hca = hca;
    endpoint->peer = peer;
    endpoint->lane = lane;
    endpoint->generation = generation;
    endpoint->replaces = NULL != lane->endpoint && !lane->endpoint->closed;
    lane->making = true;
    rc = endpoint_start(endpoint);
    lane->making = false;
    if (OPAL_SUCCESS != rc) {
        OBJ_RELEASE(endpoint);
        return NULL;
    }
    mca_btl_umr_hca_use(hca);
    return endpoint;
}

int mca_btl_umr_endpoint_make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    mca_btl_umr_endpoint_t *endpoint;

    while (OPAL_UNLIKELY(NULL == lane->endpoint && lane->making)) {
        mca_btl_umr_commands_look(lane->hca);
    }
    if (NULL != lane->endpoint) {
        return OPAL_SUCCESS;
    }
    endpoint = mca_btl_umr_endpoint_new(peer, lane, 0);
    if (NULL == endpoint) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    __atomic_store_n(&lane->endpoint, endpoint, __ATOMIC_RELEASE);
    return OPAL_SUCCESS;
}

bool mca_btl_umr_endpoint_drained(const mca_btl_umr_endpoint_t *endpoint)
{
    return endpoint->broken && !endpoint->connecting
           && (!endpoint->connected
               || (endpoint->sq.posted == endpoint->sq.done
                   && opal_list_is_empty((opal_list_t *) &endpoint->puts) && !endpoint->draining
                   && 0 == endpoint->receives));
}

bool mca_btl_umr_endpoint_spent(const mca_btl_umr_endpoint_t *endpoint)
{
    return mca_btl_umr_endpoint_drained(endpoint)
           && (NULL == endpoint->hca->receives.srq || !endpoint->connected
               || endpoint->last_receive);
}

void mca_btl_umr_endpoint_retire(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;

    if (NULL == endpoint->sq.qp) {
        return;
    }
    (void) opal_hash_table_remove_value_uint32(&hca->endpoints_by_qpn, endpoint->sq.qp->qp_num);
    mca_btl_umr_qp_destroy(hca, &endpoint->sq);
    endpoint->cq->room += endpoint->cq_need;
    --hca->stats.endpoints_now;
    hca->stats.peer_bytes_now -= endpoint->bytes;
}

/* ------------------------------------------------------------------------------------------- *
 * Operations on an endpoint
 * ------------------------------------------------------------------------------------------- */

void mca_btl_umr_endpoint_address(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address)
{
    *address = endpoint->address;
}

static inline bool connected_to(const mca_btl_umr_endpoint_t *endpoint,
                                const mca_btl_umr_address_t *address)
{
    return endpoint->connected && !endpoint->broken && endpoint->theirs.qpn == address->qpn
           && endpoint->theirs.psn == address->psn;
}

/** The commands that connect it. Lock held, but not meanwhile. @return 0 or errno */
static int connect_qp(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *address)
{
    int err;

    endpoint->connecting = true;
    commands_begin(endpoint->hca);
    err = mca_btl_umr_qp_connect(&endpoint->hca->device, endpoint->sq.qp, &endpoint->lane->route,
                                 MCA_BTL_UMR_ADDRESS_QPN(ntohl(address->qpn)), ntohl(address->psn),
                                 ntohl(endpoint->address.psn));
    commands_end(endpoint->hca);
    endpoint->connecting = false;
    return err;
}

/** Stop the queue pair of a broken endpoint. */
static void endpoint_stop(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int err = ibv_modify_qp(endpoint->sq.qp, &attr, IBV_QP_STATE);

    if (0 != err && !hca->lost) {
        MCA_BTL_UMR_LOG(hca, "the queue pair to %s does not stop: %s",
                        OPAL_NAME_PRINT(endpoint->peer->name), strerror(err));
    }
    mca_btl_umr_receives_leave(endpoint);
    mca_btl_umr_puts_sweep(endpoint);
}

/** Connect it, or fail if it is connected to another address. Lock held, but not meanwhile. */
static __opal_attribute_noinline__ int connect_to(mca_btl_umr_endpoint_t *endpoint,
                                                  const mca_btl_umr_address_t *address)
{
    int err;

    while (endpoint->connecting) {
        mca_btl_umr_commands_look(endpoint->hca);
    }
    if (connected_to(endpoint, address)) {
        return OPAL_SUCCESS;
    }
    if (endpoint->broken || endpoint->connected
        || endpoint->lane->peer_index != MCA_BTL_UMR_ADDRESS_HCA(ntohl(address->qpn))
        || endpoint->generation != MCA_BTL_UMR_ADDRESS_GENERATION(ntohl(address->psn))) {
        return OPAL_ERR_UNREACH;
    }
    err = connect_qp(endpoint, address);
    if (endpoint->broken) {
        endpoint_stop(endpoint); /* it broke meanwhile */
        return OPAL_ERR_UNREACH;
    }
    if (0 != err) {
        MCA_BTL_UMR_LOG(endpoint->hca, "cannot connect to %s: %s",
                        OPAL_NAME_PRINT(endpoint->peer->name), strerror(err));
        if (ETIMEDOUT == err || EHOSTUNREACH == err || ENETUNREACH == err || EADDRNOTAVAIL == err) {
            mca_btl_umr_probe_fail(endpoint, true, strerror(err));
        }
        mca_btl_umr_endpoint_fail(endpoint);
        return OPAL_ERR_UNREACH;
    }
    endpoint->connected = true;
    endpoint->theirs = *address;
    endpoint->hca->stats.endpoints_rebuilt += endpoint->replaces ? 1 : 0;
    if (endpoint->replaces) {
        MCA_BTL_UMR_VERBOSE(LANE, "rank %u: %s: queue pair replaced, generation %u",
                            endpoint->peer->name.vpid, endpoint->hca->device.name,
                            endpoint->generation);
    } else {
        MCA_BTL_UMR_VERBOSE(QP, "rank %u: %s: queue pair %u connected", endpoint->peer->name.vpid,
                            endpoint->hca->device.name, endpoint->sq.qp->qp_num);
    }
    return OPAL_SUCCESS;
}

int mca_btl_umr_endpoint_connect(mca_btl_umr_endpoint_t *endpoint,
                                 const mca_btl_umr_address_t *address)
{
    int rc = OPAL_SUCCESS;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (OPAL_UNLIKELY(!connected_to(endpoint, address))) {
        rc = connect_to(endpoint, address);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

bool mca_btl_umr_endpoint_broken(const mca_btl_umr_endpoint_t *endpoint)
{
    return __atomic_load_n(&endpoint->broken, __ATOMIC_RELAXED);
}

/** Break an endpoint that is not broken. */
static void endpoint_end(mca_btl_umr_endpoint_t *endpoint)
{
    __atomic_store_n(&endpoint->broken, true, __ATOMIC_RELAXED);
    if (endpoint->probing) {
        mca_btl_umr_probe_end(endpoint);
    }
    (void) mca_btl_umr_lane_works(endpoint->lane); /* later endpoints have no FINs yet */
    if (!endpoint->connecting) {
        endpoint_stop(endpoint);
    }
}

void mca_btl_umr_endpoint_fail(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_rebuild_t *rebuild = &endpoint->lane->rebuild;

    if (endpoint->broken) {
        return;
    }
    endpoint_end(endpoint);
    if (mca_btl_umr_rebuild_failed(rebuild, endpoint->sq.done + endpoint->fins_came)) {
        MCA_BTL_UMR_LOG(
            hca, "the queue pair to %s has failed %u times in a row: it is not replaced any more",
            OPAL_NAME_PRINT(endpoint->peer->name), rebuild->tries);
    }
    MCA_BTL_UMR_VERBOSE(LANE, "rank %u: %s: queue pair %u broke (failure %u in a row)",
                        endpoint->peer->name.vpid, hca->device.name, endpoint->sq.qp->qp_num,
                        rebuild->tries);
}

void mca_btl_umr_endpoint_abandon(mca_btl_umr_endpoint_t *endpoint)
{
    if (endpoint->broken) {
        return;
    }
    endpoint_end(endpoint);
    mca_btl_umr_rebuild_later(&endpoint->lane->rebuild);
    MCA_BTL_UMR_VERBOSE(QP, "rank %u: %s: queue pair %u given up", endpoint->peer->name.vpid,
                        endpoint->hca->device.name, endpoint->sq.qp->qp_num);
}

void mca_btl_umr_endpoints_fail(mca_btl_umr_hca_t *hca)
{
    for (int i = 0; i < opal_pointer_array_get_size(&hca->endpoints); ++i) {
        mca_btl_umr_endpoint_t *endpoint = opal_pointer_array_get_item(&hca->endpoints, i);

        if (NULL != endpoint) {
            mca_btl_umr_endpoint_fail(endpoint);
        }
    }
}

mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_of_qp(mca_btl_umr_hca_t *hca, uint32_t qpn)
{
    void *endpoint = NULL;

    return OPAL_SUCCESS == opal_hash_table_get_value_uint32(&hca->endpoints_by_qpn, qpn, &endpoint)
               ? endpoint
               : NULL;
}

void mca_btl_umr_endpoint_break(mca_btl_umr_endpoint_t *endpoint)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    mca_btl_umr_endpoint_fail(endpoint);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}
