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
 * Peers: the modex data of this process's HCAs, and the pairs of HCAs (lanes) of two processes.
 *
 * The modex data does not depend on the peer (ports, fabrics, version). Queue pair numbers do, and
 * travel in the messages of the HCA's users.
 *
 * Lanes. Each process lists its HCAs in its order of preference. Two HCAs reach each other if they
 * have the same link layer and partition and, on InfiniBand, the same subnet, on Ethernet the same
 * kind of address. Both processes compute the same pairs: they sort all pairs by the sum of their
 * indices, ties by the index in the list of the process with the smaller name. Each pair whose two
 * HCAs are still free becomes a lane. The first HCA of a list is the one nearest to the GPU of its
 * process, so GPU memory at both ends is near to the first lane.
 *
 * If both lists have ports beside GPUs, these are not paired with the others, for storage perhaps,
 * whose network may be another one, unless there is no other lane.
 *
 *     A: 0 ib, 1 eth         pairs 0-0 no, 0-1 yes, 1-0 yes     lanes of A and B
 *     B: 0 eth, 1 ib                                            0-1, 1-0
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_peer.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_rebuild.h"
#include "opal/mca/btl/umr/btl_umr_room.h"

/**
 * The modex data: this for each HCA, in the order of the list; every number in network order.
 *
 *   0       4         6      7      8                       24    26    27      28     30  32
 *   | magic | version | arch | link | GID                   | LID | MTU | flags | pkey | 0 |
 */
typedef struct mca_btl_umr_modex_t {
    uint32_t magic;
    uint16_t version;
    uint8_t arch; /**< keys are sent in host order: 1 little endian, 2 big endian */
    uint8_t link; /**< IBV_LINK_LAYER_* */
    uint8_t gid[16];
    uint16_t lid;
    uint8_t mtu;   /**< enum ibv_mtu */
    uint8_t flags; /**< MODEX_* */
    uint16_t pkey;
    uint16_t zero;
} mca_btl_umr_modex_t;

_Static_assert(32 == sizeof(mca_btl_umr_modex_t), "the modex data has no padding");

#define MCA_BTL_UMR_MODEX_MAGIC   0x554d5243u /* "UMRC" */
#define MCA_BTL_UMR_MODEX_VERSION 2
#define MCA_BTL_UMR_MODEX_AT_GPU  1u /**< a port beside a GPU of its node */
#define MCA_BTL_UMR_MODEX_ROCE_V1 2u
#define MCA_BTL_UMR_ARCH          (__BYTE_ORDER == __LITTLE_ENDIAN ? 1 : 2)

static void peer_construct(mca_btl_umr_peer_t *peer)
{
    memset((char *) peer + sizeof(opal_list_item_t), 0, sizeof(*peer) - sizeof(opal_list_item_t));
}

static void peer_destruct(mca_btl_umr_peer_t *peer)
{
    free(peer->lanes);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_peer_t, opal_list_item_t, peer_construct, peer_destruct);

/* ------------------------------------------------------------------------------------------- *
 * Modex data
 * ------------------------------------------------------------------------------------------- */

static void entry_of(const mca_btl_umr_hca_t *hca, mca_btl_umr_modex_t *entry)
{
    mca_btl_umr_route_t self;

    mca_btl_umr_qp_route_self(&hca->device, &self);
    memset(entry, 0, sizeof(*entry));
    entry->magic = htonl(MCA_BTL_UMR_MODEX_MAGIC);
    entry->version = htons(MCA_BTL_UMR_MODEX_VERSION);
    entry->arch = MCA_BTL_UMR_ARCH;
    entry->link = hca->device.port_attr.link_layer;
    memcpy(entry->gid, self.gid.raw, sizeof(entry->gid));
    entry->lid = htons(self.lid);
    entry->mtu = self.mtu;
    entry->flags = (uint8_t) ((hca->device.at_gpu ? MCA_BTL_UMR_MODEX_AT_GPU : 0)
                              | (hca->device.roce_v1 ? MCA_BTL_UMR_MODEX_ROCE_V1 : 0));
    entry->pkey = htons(hca->device.pkey);
}

int mca_btl_umr_peers_publish(void)
{
    mca_btl_umr_modex_t data[MCA_BTL_UMR_MAX_HCAS];
    int rc;

    for (uint32_t i = 0; i < mca_btl_umr.hca_count; ++i) {
        entry_of(mca_btl_umr.hcas[i], &data[i]);
    }
    OPAL_MODEX_SEND(rc, UMRDDT_PMIX_GLOBAL, &mca_btl_umr_component.super.btl_version, data,
                    mca_btl_umr.hca_count * sizeof(data[0]));
    if (OPAL_SUCCESS != rc) {
        mca_btl_umr_refuse("%s: the modex data cannot be published: %d",
                           mca_btl_umr_first()->device.name, rc);
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

/** Look up the modex data of a process. @return number of its HCAs; 0: none, or invalid data */
static uint32_t look_up(const opal_process_name_t *name, mca_btl_umr_modex_t *entries)
{
    void *found = NULL;
    uint32_t count = 0;
    size_t size = 0;
    int rc;

    OPAL_MODEX_RECV(rc, &mca_btl_umr_component.super.btl_version, name, &found, &size);
    if (OPAL_SUCCESS != rc || NULL == found) {
        return 0;
    }
    if (0 == size % sizeof(*entries) && MCA_BTL_UMR_MAX_HCAS >= size / sizeof(*entries)) {
        memcpy(entries, found, size);
        count = (uint32_t) (size / sizeof(*entries));
    }
    free(found);
    return count;
}

/** Kinds of addresses of Ethernet, which reach those of the same kind only. */
static int kind_of(const mca_btl_umr_modex_t *entry)
{
    union ibv_gid gid;

    memcpy(gid.raw, entry->gid, sizeof(gid.raw));
    return mca_btl_umr_gid_kind(&gid) << 1
           | (0 != (entry->flags & MCA_BTL_UMR_MODEX_ROCE_V1) ? 1 : 0);
}

/** One partition, of which two limited members do not reach each other. */
static bool same_partition(uint16_t a, uint16_t b)
{
    return 0 == ((a ^ b) & MCA_BTL_UMR_PKEY_NUMBER) && 0 != ((a | b) & MCA_BTL_UMR_PKEY_FULL);
}

/** True if the two HCAs can communicate; symmetric. */
static bool reaches(const mca_btl_umr_modex_t *a, const mca_btl_umr_modex_t *b)
{
    return MCA_BTL_UMR_MODEX_MAGIC == ntohl(b->magic)
           && MCA_BTL_UMR_MODEX_VERSION == ntohs(b->version) && MCA_BTL_UMR_ARCH == b->arch
           && a->link == b->link && IBV_MTU_256 <= b->mtu && IBV_MTU_4096 >= b->mtu
           && same_partition(ntohs(a->pkey), ntohs(b->pkey))
           /* InfiniBand without a router: one subnet. Ethernet uses IP routing. */
           && (IBV_LINK_LAYER_ETHERNET == a->link ? kind_of(a) == kind_of(b)
                                                  : 0 == memcmp(a->gid, b->gid, 8));
}

static void route_to(const mca_btl_umr_modex_t *mine, const mca_btl_umr_modex_t *theirs,
                     mca_btl_umr_route_t *route)
{
    memset(route, 0, sizeof(*route));
    route->lid = ntohs(theirs->lid);
    memcpy(route->gid.raw, theirs->gid, sizeof(theirs->gid));
    route->mtu = theirs->mtu < mine->mtu ? theirs->mtu : mine->mtu;
}

bool mca_btl_umr_route_look_up(const opal_process_name_t *name, mca_btl_umr_route_t *route)
{
    mca_btl_umr_modex_t theirs[MCA_BTL_UMR_MAX_HCAS], mine;

    entry_of(mca_btl_umr_first(), &mine);
    if (0 == look_up(name, theirs) || !reaches(&mine, &theirs[0])) {
        return false;
    }
    route_to(&mine, &theirs[0], route);
    return true;
}

/* ------------------------------------------------------------------------------------------- *
 * Lanes
 * ------------------------------------------------------------------------------------------- */

/** True if the HCAs differ in their distance to some memory. */
static bool has_choice(const mca_btl_umr_peer_t *peer)
{
    for (uint32_t i = 1; i < peer->lane_count; ++i) {
        if (0
            != memcmp(peer->lanes[0].hca->device.distance, peer->lanes[i].hca->device.distance,
                      sizeof(peer->lanes[0].hca->device.distance))) {
            return true;
        }
    }
    return false;
}

static void log_lanes(const mca_btl_umr_peer_t *peer)
{
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        MCA_BTL_UMR_VERBOSE(LANE, "rank %u: lane %u: %s to its HCA %u", peer->name.vpid, i,
                            peer->lanes[i].hca->device.name, peer->lanes[i].peer_index);
    }
    if (0 == peer->lane_count) {
        MCA_BTL_UMR_VERBOSE(LANE, "rank %u: no lane: no HCA is on the same network",
                            peer->name.vpid);
    }
}

/**
 * Make lanes of the pairs of HCAs in both lists, in their order.
 *
 * @param[in] me     the list of this process
 * @param[in] alike  only of two ports beside GPUs, and of two others
 */
static void pair_up(mca_btl_umr_peer_t *peer, mca_btl_umr_modex_t lists[2][MCA_BTL_UMR_MAX_HCAS],
                    const uint32_t counts[2], int me, bool alike)
{
    uint32_t taken[2] = {0, 0};

    for (uint32_t sum = 0; sum < counts[0] + counts[1] - 1; ++sum) {
        for (uint32_t i = 0; i <= sum && i < counts[0]; ++i) {
            uint32_t pair[2] = {i, sum - i};
            const mca_btl_umr_modex_t *mine, *theirs;
            mca_btl_umr_lane_t *lane;

            if (counts[1] <= pair[1] || 0 != (taken[0] & 1u << pair[0])
                || 0 != (taken[1] & 1u << pair[1])) {
                continue;
            }
            mine = &lists[me][pair[me]];
            theirs = &lists[1 - me][pair[1 - me]];
            if (!reaches(mine, theirs)
                || (alike && 0 != ((mine->flags ^ theirs->flags) & MCA_BTL_UMR_MODEX_AT_GPU))) {
                continue;
            }
            taken[0] |= 1u << pair[0];
            taken[1] |= 1u << pair[1];
            lane = &peer->lanes[peer->lane_count++];
            lane->hca = mca_btl_umr.hcas[pair[me]];
            lane->peer_index = (uint8_t) pair[1 - me];
            route_to(mine, theirs, &lane->route);
        }
    }
}

/** True if some port of the list is beside a GPU. */
static bool beside_gpus(const mca_btl_umr_modex_t *list, uint32_t count)
{
    uint8_t flags = 0;

    for (uint32_t i = 0; i < count; ++i) {
        flags |= list[i].flags;
    }
    return 0 != (flags & MCA_BTL_UMR_MODEX_AT_GPU);
}

/** Compute the lanes. @return OPAL_SUCCESS, also if there are none, or OPAL_ERR_OUT_OF_RESOURCE */
static int make_lanes(mca_btl_umr_peer_t *peer)
{
    mca_btl_umr_modex_t lists[2][MCA_BTL_UMR_MAX_HCAS];
    uint32_t counts[2];
    const opal_process_name_t *name = &peer->name;
    bool first = OPAL_PROC_MY_NAME.jobid != name->jobid ? OPAL_PROC_MY_NAME.jobid < name->jobid
                                                        : OPAL_PROC_MY_NAME.vpid < name->vpid;
    int me = first ? 0 : 1;

    counts[me] = mca_btl_umr.hca_count;
    for (uint32_t i = 0; i < counts[me]; ++i) {
        entry_of(mca_btl_umr.hcas[i], &lists[me][i]);
    }
    counts[1 - me] = look_up(name, lists[1 - me]);
    if (0 == counts[0] || 0 == counts[1]) {
        MCA_BTL_UMR_VERBOSE(LANE, "rank %u: no lane: one side has no HCA", name->vpid);
        return OPAL_SUCCESS;
    }
    peer->lanes = calloc(counts[0] < counts[1] ? counts[0] : counts[1], sizeof(*peer->lanes));
    if (NULL == peer->lanes) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (beside_gpus(lists[0], counts[0]) && beside_gpus(lists[1], counts[1])) {
        pair_up(peer, lists, counts, me, true);
    }
    if (0 == peer->lane_count) {
        pair_up(peer, lists, counts, me, false);
    }
    peer->has_choice = has_choice(peer);
    log_lanes(peer);
    return OPAL_SUCCESS;
}

void mca_btl_umr_peers_start(void)
{
    OBJ_CONSTRUCT(&mca_btl_umr.peers_open, opal_list_t);
    OBJ_CONSTRUCT(&mca_btl_umr.peers, opal_hash_table_t);
    opal_hash_table_init(&mca_btl_umr.peers, 16);
}

void mca_btl_umr_peers_stop(void)
{
    void *key, *peer, *node = NULL;
    size_t size;

    while (NULL != opal_list_remove_first(&mca_btl_umr.peers_open)) {
        continue; /* they are in the table */
    }
    OBJ_DESTRUCT(&mca_btl_umr.peers_open);
    while (OPAL_SUCCESS
           == (NULL == node ? opal_hash_table_get_first_key_ptr(&mca_btl_umr.peers, &key, &size,
                                                                &peer, &node)
                            : opal_hash_table_get_next_key_ptr(&mca_btl_umr.peers, &key, &size,
                                                               &peer, node, &node))) {
        OBJ_RELEASE_NO_NULLIFY((mca_btl_umr_peer_t *) peer);
    }
    OBJ_DESTRUCT(&mca_btl_umr.peers);
}

/** Find or create the peer of that name. @return OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE */
static int peer_get(const opal_process_name_t *name, mca_btl_umr_peer_t **result)
{
    mca_btl_umr_peer_t *peer;
    void *found = NULL;
    int rc;

    if (OPAL_SUCCESS
        == opal_hash_table_get_value_ptr(&mca_btl_umr.peers, name, sizeof(*name), &found)) {
        *result = found;
        return OPAL_SUCCESS;
    }
    peer = OBJ_NEW(mca_btl_umr_peer_t);
    if (NULL == peer) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    peer->name = *name;
    rc = make_lanes(peer);
    if (OPAL_SUCCESS == rc) {
        /* A peer without lanes is stored too, so the next message needs no modex lookup. */
        rc = opal_hash_table_set_value_ptr(&mca_btl_umr.peers, &peer->name, sizeof(peer->name),
                                           peer);
    }
    if (OPAL_SUCCESS != rc) {
        OBJ_RELEASE(peer);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *result = peer;
    return OPAL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- *
 * Selection of a lane
 * ------------------------------------------------------------------------------------------- */

/** Create the first endpoint of a lane, if the peer may have queue pairs. @return as the op */
static int make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    int rc;

    /* If another thread fails to create it, the peer has left the room. */
    while (OPAL_UNLIKELY(NULL == lane->endpoint && lane->making)) {
        mca_btl_umr_commands_look(lane->hca);
    }
    if (NULL != lane->endpoint) {
        return OPAL_SUCCESS;
    }
    if (!mca_btl_umr_room_enter(peer)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = mca_btl_umr_endpoint_make(peer, lane);
    if (OPAL_SUCCESS != rc) {
        mca_btl_umr_room_leave(peer);
    }
    return rc;
}

/** Get the first endpoint to a peer, and create its queue pair if there is none. @return as the op
 */
static int open_peer(mca_btl_umr_peer_t *peer, mca_btl_umr_endpoint_t **result)
{
    int rc = OPAL_ERR_UNREACH;

    for (uint32_t i = 0; i < peer->lane_count && OPAL_SUCCESS != rc; ++i) {
        rc = make(peer, &peer->lanes[i]);
        if (OPAL_SUCCESS == rc) {
            *result = peer->lanes[i].endpoint;
        }
    }
    return rc;
}

int mca_btl_umr_endpoint_get(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **result)
{
    mca_btl_umr_peer_t *peer = NULL;
    int rc = OPAL_ERR_UNREACH;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (0 < mca_btl_umr.users) {
        rc = peer_get(&proc->proc_name, &peer);
    }
    if (OPAL_SUCCESS == rc) {
        rc = open_peer(peer, result);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

/** Distance of memory from a lane's HCA: of a GPU, or (-1) of a node. */
static uint32_t distance(const mca_btl_umr_lane_t *lane, int gpu, int node)
{
    return 0 <= gpu   ? mca_btl_umr_topology_gpu(&lane->hca->device, gpu)
           : 0 > node ? MCA_BTL_UMR_FAR
                      : lane->hca->device.distance[node];
}

/** True if it cannot be used and will not be rebuilt. */
static bool dead(const mca_btl_umr_lane_t *lane)
{
    return lane->hca->failed || lane->hca->receives.failed
           || (NULL != lane->endpoint && lane->endpoint->broken);
}

static bool probes(const mca_btl_umr_lane_t *lane)
{
    return NULL != lane->endpoint && lane->endpoint->probing;
}

/**
 * True if a lane has not answered yet, or a thread creates its queue pair, while another one is
 * known to work; or if it has not answered for so long that no message waits any more.
 */
static bool waits(const mca_btl_umr_peer_t *peer, const mca_btl_umr_lane_t *lane)
{
    if (!lane->making && (!probes(lane) || lane->endpoint->late)) {
        return probes(lane);
    }
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        if (!dead(&peer->lanes[i]) && mca_btl_umr_lane_works(&peer->lanes[i])) {
            return true;
        }
    }
    return false;
}

/** As the op, if there is a choice. Not inlined: most processes have none. */
__attribute__((noinline)) static mca_btl_umr_endpoint_t *
choose_near(mca_btl_umr_endpoint_t *endpoint, const void *address, int gpu)
{
    mca_btl_umr_peer_t *peer = endpoint->peer;
    uint32_t tried = 0;
    int node;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    node = peer->has_choice && 0 > gpu ? mca_btl_umr_topology_address(address) : -1;
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        if (NULL != peer->lanes[i].endpoint && peer->lanes[i].endpoint->broken) {
            mca_btl_umr_endpoint_revive(peer, &peer->lanes[i]);
        }
    }
    endpoint = endpoint->lane->endpoint;
    for (;;) {
        mca_btl_umr_lane_t *best = NULL;

        for (uint32_t i = 0; i < peer->lane_count; ++i) {
            mca_btl_umr_lane_t *lane = &peer->lanes[i];

            if (0 == (tried & 1u << i) && !dead(lane) && !waits(peer, lane)
                && (NULL == best || distance(lane, gpu, node) < distance(best, gpu, node))) {
                best = lane;
            }
        }
        if (NULL == best) {
            break;
        }
        if (OPAL_SUCCESS == make(peer, best)) {
            endpoint = best->endpoint;
            break;
        }
        tried |= 1u << (best - peer->lanes);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return endpoint;
}

mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_near(mca_btl_umr_endpoint_t *endpoint,
                                                  const void *address, int gpu)
{
    if (OPAL_LIKELY(1 == endpoint->peer->lane_count)) {
        mca_btl_umr_endpoint_t *last = __atomic_load_n(&endpoint->lane->endpoint, __ATOMIC_ACQUIRE);

        if (OPAL_LIKELY(!__atomic_load_n(&last->broken, __ATOMIC_RELAXED))) {
            return last;
        }
    }
    return choose_near(endpoint, address, gpu);
}

/** As the op, if the result differs from @p endpoint. */
__attribute__((noinline)) static mca_btl_umr_endpoint_t *
find_at(mca_btl_umr_endpoint_t *endpoint, uint32_t index, uint32_t generation)
{
    mca_btl_umr_peer_t *peer = endpoint->peer;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        mca_btl_umr_lane_t *lane = &peer->lanes[i];

        while (lane->peer_index == index && lane->making) {
            mca_btl_umr_commands_look(lane->hca);
        }
        if (lane->peer_index == index && OPAL_SUCCESS == make(peer, lane)) {
            if (generation > lane->endpoint->generation) {
                mca_btl_umr_endpoint_follow(peer, lane, generation);
            }
            endpoint = lane->endpoint;
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return endpoint;
}

mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_at(mca_btl_umr_endpoint_t *endpoint,
                                                const mca_btl_umr_address_t *address)
{
    uint32_t index = MCA_BTL_UMR_ADDRESS_HCA(ntohl(address->qpn));
    uint32_t generation = MCA_BTL_UMR_ADDRESS_GENERATION(ntohl(address->psn));
    mca_btl_umr_endpoint_t *last = __atomic_load_n(&endpoint->lane->endpoint, __ATOMIC_ACQUIRE);

    return OPAL_LIKELY(endpoint->lane->peer_index == index && generation == last->generation)
               ? last
               : find_at(endpoint, index, generation);
}

size_t mca_btl_umr_endpoints_beside(mca_btl_umr_endpoint_t *endpoint,
                                    mca_btl_umr_endpoint_t **endpoints, size_t max)
{
    mca_btl_umr_peer_t *peer = endpoint->peer;
    size_t count = 1;

    endpoints[0] = endpoint;
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    for (uint32_t i = 0; i < peer->lane_count && count < max; ++i) {
        mca_btl_umr_lane_t *lane = &peer->lanes[i];

        if (lane != endpoint->lane && !dead(lane) && !probes(lane) && !lane->making
            && OPAL_SUCCESS == make(peer, lane)) {
            endpoints[count++] = lane->endpoint;
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return count;
}
