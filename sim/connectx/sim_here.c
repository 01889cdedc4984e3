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
    if (!conf->link_eth && (0 == (conf->here & 0xffff) || LID_MAX < (conf->here & 0xffff))) {
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

void sim_here_gid(const struct sim_conf *conf, int device, uint8_t gid[16])
{
    uint64_t guid = sim_here_guid(conf, device);
    int i;

    memset(gid, 0, 16);
    gid[0] = 0xfe;
    gid[1] = 0x80;
    for (i = 0; i < 8; i++) {
        gid[8 + i] = (uint8_t) (guid >> (56 - 8 * i));
    }
    if (conf->tcp && conf->link_eth) {
        memcpy(gid, mapped, sizeof(mapped));
    }
}

uint16_t sim_here_lid(const struct sim_conf *conf, int device)
{
    if (conf->link_eth) {
        return 0;
    }
    return (uint16_t) (conf->tcp ? conf->here & 0xffff : 1u + (uint32_t) device);
}

uint32_t sim_here_host(const struct sim_conf *conf, const uint8_t gid[16], uint16_t lid)
{
    if (!conf->tcp) {
        return 0;
    }
    if (!conf->link_eth) {
        /* A subnet of InfiniBand is a network of 16 bits. */
        return 0 == lid ? 0 : (conf->here & 0xffff0000u) | lid;
    }
    if (0 != memcmp(gid, mapped, sizeof(mapped))) {
        return 0;
    }
    return (uint32_t) gid[12] << 24 | (uint32_t) gid[13] << 16 | (uint32_t) gid[14] << 8 | gid[15];
}
