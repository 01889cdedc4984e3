/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_here.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#define LID_MAX 0xbfffu /* above are the multicast ones */

/* GIDs of RoCE v2 on IPv4 are mapped addresses. */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static const char *text_of(uint32_t address, char text[INET_ADDRSTRLEN])
{
    struct in_addr in = {htonl(address)};

    return inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
}

/* Which of two interfaces is taken, if none is named: the larger. 0: not at all. */
static int rank_of(const struct sim_conf *conf, const struct ifaddrs *at, uint32_t *address)
{
    uint32_t mask = 0 == conf->prefix ? 0 : ~0u << (32 - conf->prefix);
    struct sockaddr_in in;

    if (NULL == at->ifa_addr || AF_INET != at->ifa_addr->sa_family
        || 0 == (at->ifa_flags & IFF_UP)) {
        return 0;
    }
    memcpy(&in, at->ifa_addr, sizeof(in));
    *address = ntohl(in.sin_addr.s_addr);
    if ((*address & mask) != (conf->address & mask)) {
        return 0;
    }
    return 0 == (at->ifa_flags & IFF_LOOPBACK) ? 2 : 1;
}

int sim_here_find(struct sim_conf *conf, char *error, size_t size)
{
    struct ifaddrs *all;
    const struct ifaddrs *at;
    char text[INET_ADDRSTRLEN];
    int best = 0;

    if (!conf->tcp) {
        return 0;
    }
    if (0 != getifaddrs(&all)) {
        snprintf(error, size, "the interfaces cannot be listed: %s", strerror(errno));
        return -1;
    }
    for (at = all; NULL != at; at = at->ifa_next) {
        uint32_t address = 0;
        int rank = rank_of(conf, at, &address);

        if (rank > best) {
            best = rank;
            conf->here = address;
        }
    }
    freeifaddrs(all);
    if (0 == best) {
        snprintf(error, size, "no interface that is up has the address %s/%u",
                 text_of(conf->address, text), conf->prefix);
        return -1;
    }
    if (!conf->ports[0].eth && (0 == (conf->here & 0xffff) || LID_MAX < (conf->here & 0xffff))) {
        snprintf(error, size, "the lower half of the address %s is no LID; set link=eth",
                 text_of(conf->here, text));
        return -1;
    }
    return 0;
}

uint64_t sim_here_guid(const struct sim_conf *conf, int device)
{
    /* Locally administered EUI-64s, without a vendor prefix. */
    return conf->tcp ? 0x02756d7300000000ULL + conf->here
                     : 0x02756d7200000000ULL + 0x10 * (uint64_t) (device + 1);
}

void sim_here_gid(const struct sim_conf *conf, int device, int index, uint8_t gid[16])
{
    static const uint8_t global[4] = {0x20, 0x01, 0x0d, 0xb8};
    static const uint8_t link[2] = {0xfe, 0x80};
    const struct sim_port *port = &conf->ports[device];
    uint64_t guid = sim_here_guid(conf, device);
    int i;

    memset(gid, 0, 16);
    if (SIM_GID_ZERO == port->gid[index]) {
        return;
    }
    for (i = 0; i < 8; i++) {
        gid[8 + i] = (uint8_t) (guid >> (56 - 8 * i));
    }
    switch (port->gid[index]) {
    case SIM_GID_IPV4:
    case SIM_GID_IPV4_1:
        memcpy(gid, mapped, sizeof(mapped));
        if (!conf->tcp) {
            /* 10.FABRIC.0.N */
            gid[12] = 10;
            gid[13] = (uint8_t) port->fabric;
            gid[14] = 0;
            gid[15] = (uint8_t) (device + 1);
        }
        break;
    case SIM_GID_IPV6:
    case SIM_GID_IPV6_1:
        memcpy(gid, global, sizeof(global));
        gid[7] = (uint8_t) port->fabric;
        break;
    default:
        memcpy(gid, link, sizeof(link));
        gid[6] = (uint8_t) (port->prefix >> 8);
        gid[7] = (uint8_t) port->prefix;
        break;
    }
}

bool sim_here_route(const struct sim_conf *conf, int device, int index, const uint8_t gid[16])
{
    uint8_t own[16];
    bool v4;

    sim_here_gid(conf, device, index, own);
    v4 = 0 == memcmp(own, mapped, sizeof(mapped));
    if (v4 != (0 == memcmp(gid, mapped, sizeof(mapped))) || (!v4 && 0 != memcmp(own, gid, 2))) {
        return false; /* of another family, or link-local and not */
    }
    return conf->tcp || (v4 ? own[13] == gid[13] : 0xfe == own[0] || own[7] == gid[7]);
}

uint16_t sim_here_lid(const struct sim_conf *conf, int device)
{
    if (conf->ports[device].eth) {
        return 0;
    }
    return (uint16_t) (conf->tcp ? conf->here & 0xffff : 1u + (uint32_t) device);
}

uint32_t sim_here_host(const struct sim_conf *conf, const uint8_t gid[16], uint16_t lid)
{
    if (!conf->tcp) {
        return 0;
    }
    if (!conf->ports[0].eth) {
        /* A subnet of InfiniBand is a network of 16 bits. */
        return 0 == lid ? 0 : (conf->here & 0xffff0000u) | lid;
    }
    if (0 != memcmp(gid, mapped, sizeof(mapped))) {
        return 0;
    }
    return (uint32_t) gid[12] << 24 | (uint32_t) gid[13] << 16 | (uint32_t) gid[14] << 8 | gid[15];
}
