/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The modex data of another process, as btl/umr and pml/umrddt (modex_pml.c) read it. For any data:
 * lanes are pairs of HCAs that both processes have and that can connect, none twice; an address of
 * the peer finds one of its own lanes or none; and a process of another version is not considered
 * capable.
 *
 * Compiled with the file under test; the modex, the queue pairs and the HCAs are simulated.
 */

#include "opal_config.h"

#include "umrddt_compat.h"

#include "opal/mca/btl/umr/btl_umr.h"

#include "fuzz.h"
#include "fuzz_modex.h"

#include "btl_umr_peer.c"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params;
mca_btl_umr_component_t mca_btl_umr_component;

const uint8_t *fuzz_modex_bytes;
size_t fuzz_modex_size;

static mca_btl_umr_hca_t hcas[MCA_BTL_UMR_MAX_HCAS];
static mca_btl_umr_endpoint_t made[MCA_BTL_UMR_MAX_HCAS];
static uint32_t refuse;

int fuzz_modex_get(void **datum, size_t *size)
{
    if (SIZE_MAX == fuzz_modex_size) {
        return OPAL_ERR_NOT_FOUND;
    }
    *datum = malloc(0 < fuzz_modex_size ? fuzz_modex_size : 1);
    FUZZ_CHECK(NULL != *datum);
    memcpy(*datum, fuzz_modex_bytes, fuzz_modex_size);
    *size = fuzz_modex_size;
    return OPAL_SUCCESS;
}

void mca_btl_umr_qp_route_self(const mca_btl_umr_device_t *device, mca_btl_umr_route_t *route)
{
    memset(route, 0, sizeof(*route));
    route->lid = 5;
    route->gid = device->gid;
    route->mtu = IBV_MTU_4096;
}

void mca_btl_umr_refuse(const char *format, ...)
{
    (void) format;
}

int mca_btl_umr_topology_address(const void *address)
{
    return (int) ((uintptr_t) address % 3) - 1;
}

/* Known of some. */
uint32_t mca_btl_umr_topology_gpu(mca_btl_umr_device_t *device, int gpu)
{
    return 2 < gpu ? MCA_BTL_UMR_GPU_FAR : (uint32_t) ((device->distance[1] / 10 + gpu) % 3);
}

bool mca_btl_umr_lane_works(mca_btl_umr_lane_t *lane)
{
    return lane->proven;
}

void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    FUZZ_CHECK(peer == lane->endpoint->peer && lane->endpoint->broken);
}

void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation)
{
    FUZZ_CHECK(peer == lane->endpoint->peer && generation > lane->endpoint->generation
               && MCA_BTL_UMR_GENERATION_MAX >= generation);
    lane->endpoint->generation = generation;
}

/* There is no other thread that makes a queue pair. */
void mca_btl_umr_commands_look(mca_btl_umr_hca_t *hca)
{
    FUZZ_CHECK(NULL == hca);
}

/* There is room for all. */
bool mca_btl_umr_room_enter(mca_btl_umr_peer_t *peer)
{
    peer->open = true;
    return true;
}

void mca_btl_umr_room_leave(mca_btl_umr_peer_t *peer)
{
    FUZZ_CHECK(peer->open);
}

int mca_btl_umr_endpoint_make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane)
{
    uint32_t i = (uint32_t) (lane - peer->lanes);

    FUZZ_CHECK(peer->lane_count > i);
    if (0 != (refuse & 1u << i)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    made[i] = (mca_btl_umr_endpoint_t){.hca = lane->hca, .peer = peer, .lane = lane};
    lane->endpoint = &made[i];
    return OPAL_SUCCESS;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    for (uint32_t i = 0; i < MCA_BTL_UMR_MAX_HCAS; ++i) {
        mca_btl_umr.hcas[i] = &hcas[i];
        hcas[i].device.port_attr.link_layer =
            0 == i % 2 ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
        hcas[i].device.gid.raw[0] = 0xfe;
        hcas[i].device.gid.raw[15] = (uint8_t) i;
        hcas[i].device.distance[1] = (uint8_t) (10 * i);
        hcas[i].device.pkey = 6 > i ? 0xffff : 0x7fff;
        hcas[i].device.at_gpu = 0 == i % 3;
    }
    mca_btl_umr.users = 1;
    return 0;
}

static void check_lanes(const mca_btl_umr_peer_t *peer, uint32_t peer_hcas)
{
    uint32_t ours = 0, theirs = 0;

    FUZZ_CHECK(mca_btl_umr.hca_count >= peer->lane_count && peer_hcas >= peer->lane_count);
    for (uint32_t i = 0; i < peer->lane_count; ++i) {
        const mca_btl_umr_lane_t *lane = &peer->lanes[i];
        uint32_t hca = (uint32_t) (lane->hca - hcas);

        FUZZ_CHECK(mca_btl_umr.hca_count > hca && peer_hcas > lane->peer_index);
        FUZZ_CHECK(0 == (ours & 1u << hca) && 0 == (theirs & 1u << lane->peer_index));
        FUZZ_CHECK(IBV_MTU_256 <= lane->route.mtu && IBV_MTU_4096 >= lane->route.mtu);
        ours |= 1u << hca;
        theirs |= 1u << lane->peer_index;
    }
}

/* A header of the right kind for each entry, unless the input wants it otherwise. */
static size_t entries(fuzz_bytes_t *input, mca_btl_umr_modex_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        uint8_t link = (uint8_t) (IBV_LINK_LAYER_INFINIBAND + fuzz_below(input, 3));
        uint16_t lid = (uint16_t) fuzz_number(input, 2);
        uint8_t byte = fuzz_byte(input);

        list[i] = (mca_btl_umr_modex_t){
            .magic = htonl(MCA_BTL_UMR_MODEX_MAGIC),
            .version = htons(MCA_BTL_UMR_MODEX_VERSION),
            .arch = MCA_BTL_UMR_ARCH,
            .link = link,
            .lid = lid,
            .mtu = byte % 8,
            .flags = byte >> 6,
            .pkey = htons(0 != (byte & 0x20) ? 0x7fff : 0xffff),
        };
        list[i].gid[0] = 0xfe;
    }
    fuzz_patch(input, list, count * sizeof(*list));
    return count * sizeof(*list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes_t input = {data, size};
    mca_btl_umr_modex_t list[MCA_BTL_UMR_MAX_HCAS + 2];
    mca_btl_umr_endpoint_t *endpoint = NULL, *other, *beside[4];
    uint8_t kind = fuzz_byte(&input);
    struct opal_proc_t proc = {.proc_name = {1, 1 + fuzz_below(&input, 2)}};
    void *found = NULL;

    OPAL_PROC_MY_NAME.jobid = 1;
    OPAL_PROC_MY_NAME.vpid = fuzz_byte(&input) & 3;
    refuse = fuzz_byte(&input);
    mca_btl_umr.hca_count = 1 + fuzz_below(&input, MCA_BTL_UMR_MAX_HCAS);
    if (0 == (kind & 3)) {
        fuzz_modex_size = fuzz_take(&input, 400, &fuzz_modex_bytes);
    } else {
        fuzz_modex_size = entries(&input, list, fuzz_below(&input, MCA_BTL_UMR_MAX_HCAS + 3));
        fuzz_modex_bytes = (const uint8_t *) list;
    }
    if (0 != (kind & 4)) {
        fuzz_modex_size = fuzz_modex_size < 3 ? 0 : fuzz_modex_size - fuzz_below(&input, 3);
    }
    mca_btl_umr_peers_start();
    if (OPAL_SUCCESS == mca_btl_umr_endpoint_get(&proc, &endpoint)) {
        mca_btl_umr_peer_t *peer = endpoint->peer;
        mca_btl_umr_address_t address = {.qpn = (uint32_t) fuzz_number(&input, 4)};
        size_t count;

        address.psn = htonl((ntohl(address.qpn) & 3) << 24);
        other = mca_btl_umr_endpoint_at(endpoint, &address);
        FUZZ_CHECK(other->peer == peer
                   && (other == endpoint
                       || MCA_BTL_UMR_ADDRESS_HCA(ntohl(address.qpn)) == other->lane->peer_index));
        other =
            mca_btl_umr_endpoint_near(endpoint, (void *) (uintptr_t) fuzz_number(&input, 2), -1);
        FUZZ_CHECK(other->peer == peer);
        other = mca_btl_umr_endpoint_near(endpoint, NULL, (int) fuzz_below(&input, 4));
        FUZZ_CHECK(other->peer == peer);
        count = mca_btl_umr_endpoints_beside(endpoint, beside, 4);
        FUZZ_CHECK(1 <= count && count <= peer->lane_count && beside[0] == endpoint);
    }
    if (OPAL_SUCCESS
        == opal_hash_table_get_value_ptr(&mca_btl_umr.peers, &proc.proc_name,
                                         sizeof(proc.proc_name), &found)) {
        check_lanes(found, (uint32_t) (fuzz_modex_size / sizeof(list[0])));
    }
    mca_btl_umr_peers_stop();
    fuzz_modex_pml(&input);
    return 0;
}
