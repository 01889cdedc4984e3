/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/common/options.h"

/* A device by itself on a node. */
#define ALONE(node)  \
    {                \
        -1, -1, node \
    }
/* Below a PCI switch. */
#define BELOW(root, node) \
    {                     \
        root, -1, node    \
    }

static const struct sim_machine machines[] = {
    {
        "dgx-h100",
        "8 GPUs, each with a port of 400 Gb/s below its PCI switch; 2 ports of storage and 2 of\n"
        "                    Ethernet",
        "devices=12,nodes=2,speed=ndr/ndr/edr/ndr/ndr/ndr/ndr/ndr/edr/ndr,"
        "link=ib/ib/eth/ib/ib/ib/ib/ib/eth/ib,gids=ll1+ll+v41+v4,"
        "fabric=compute/storage/lan/compute/compute/compute/compute/storage/lan/compute",
        8,
        {BELOW(0, 0), BELOW(1, 0), BELOW(2, 0), BELOW(3, 0), BELOW(4, 1), BELOW(5, 1), BELOW(6, 1),
         BELOW(7, 1)},
        {BELOW(0, 0), ALONE(0), ALONE(0), BELOW(1, 0), BELOW(2, 0), BELOW(3, 0), BELOW(4, 1),
         ALONE(1), ALONE(1), BELOW(5, 1), BELOW(6, 1), BELOW(7, 1)},
    },
    {
        "dual-port",
        "one HCA with two ports: InfiniBand of 200 Gb/s, Ethernet of 100 Gb/s; 2 GPUs",
        "devices=2,nodes=2,link=ib/eth,speed=hdr/edr,gids=ll1+ll+v41+v4,fabric=ib/lan",
        2,
        {ALONE(0), ALONE(1)},
        {ALONE(0), {-1, 0, 0}},
    },
    {
        "roce",
        "a management port of 25 Gb/s, then two ports of 100 Gb/s beside a GPU each; all RoCE",
        "devices=3,nodes=2,link=eth,speed=edr,width=1/4,gids=ll1+ll+v41+v4,"
        "fabric=management/data",
        2,
        {BELOW(0, 0), BELOW(1, 1)},
        {ALONE(0), BELOW(0, 0), BELOW(1, 1)},
    },
};

const struct sim_machine *sim_machine_at(size_t i)
{
    return i < sizeof(machines) / sizeof(machines[0]) ? &machines[i] : NULL;
}

const struct sim_machine *sim_machine_find(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (0 == strcmp(name, machines[i].name)) {
            return &machines[i];
        }
    }
    return NULL;
}

/* The next word of a list. @return the length of it; -1: it is too long */
static int next_word(const char **list, char separator, char *word, size_t size)
{
    const char *end = strchr(*list, separator);
    size_t length = NULL == end ? strlen(*list) : (size_t) (end - *list);

    if (length >= size) {
        return -1;
    }
    memcpy(word, *list, length);
    word[length] = '\0';
    *list = NULL == end ? NULL : end + 1;
    return (int) length;
}

int sim_port_each(struct sim_port *ports, const char *values,
                  int (*set)(struct sim_port *port, const char *value))
{
    char word[128];
    int i;

    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        if (NULL != values && 0 >= next_word(&values, '/', word, sizeof(word))) {
            return -1;
        }
        if (0 != set(&ports[i], word)) {
            return -1;
        }
    }
    return NULL == values ? 0 : -1;
}

int sim_port_link(struct sim_port *port, const char *value)
{
    int choice = options_choice(value, "ib|eth");

    port->eth = 1 == choice;
    return 0 > choice ? -1 : 0;
}

/* Tenths of Gb/s of a lane, and the kernel's name; the verbs number them by bits. */
static const struct {
    const char *word;
    const char *name;
    unsigned rate;
} speeds[] = {{"sdr", "SDR", 25},      {"ddr", "DDR", 50},  {"qdr", "QDR", 100},
              {"fdr10", "FDR10", 100}, {"fdr", "FDR", 140}, {"edr", "EDR", 250},
              {"hdr", "HDR", 500},     {"ndr", "NDR", 1000}};

int sim_port_speed(struct sim_port *port, const char *value)
{
    size_t i;

    for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        if (0 == strcmp(value, speeds[i].word)) {
            port->speed = (uint8_t) (1u << i);
            return 0;
        }
    }
    return -1;
}

/* The verbs' numbers of widths. */
static const struct {
    const char *word;
    unsigned lanes;
    uint8_t code;
} widths[] = {{"1", 1, 1}, {"2", 2, 16}, {"4", 4, 2}, {"8", 8, 4}, {"12", 12, 8}};

int sim_port_width(struct sim_port *port, const char *value)
{
    size_t i;

    for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (0 == strcmp(value, widths[i].word)) {
            port->width = widths[i].code;
            return 0;
        }
    }
    return -1;
}

int sim_port_fabric(struct sim_port *port, const char *value)
{
    uint32_t hash = 2166136261u;

    if (31 < strlen(value)) {
        return -1;
    }
    for (; '\0' != *value; value++) {
        hash = (hash ^ (uint8_t) *value) * 16777619u;
    }
    port->fabric = (uint16_t) (hash ^ hash >> 16);
    return 0;
}

int sim_port_prefix(struct sim_port *port, const char *value)
{
    uint64_t n;

    if (0 != options_number(value, 0, UINT16_MAX, &n)) {
        return -1;
    }
    port->prefix = (uint16_t) n;
    return 0;
}

int sim_port_route(struct sim_port *port, const char *value)
{
    static const uint8_t errors[] = {0, ETIMEDOUT, EADDRNOTAVAIL, ENETUNREACH, EINVAL};
    int choice = options_choice(value, "ok|timeout|address|network|invalid");

    if (0 > choice) {
        return -1;
    }
    port->route = errors[choice];
    return 0;
}

int sim_port_gids(struct sim_port *port, const char *value)
{
    char word[16];

    port->gids = 0;
    while (NULL != value) {
        int kind;

        if (0 > next_word(&value, '+', word, sizeof(word)) || SIM_MAX_GIDS == port->gids) {
            return -1;
        }
        kind = options_choice(word, "zero|ll|ll1|v4|v41|v6|v61");
        if (0 > kind) {
            return -1;
        }
        port->gid[port->gids++] = (uint8_t) kind;
    }
    return 0;
}

int sim_port_pkeys(struct sim_port *port, const char *value)
{
    char word[16];

    port->pkeys = 0;
    while (NULL != value) {
        uint64_t n;

        if (0 > next_word(&value, '+', word, sizeof(word)) || SIM_MAX_PKEYS == port->pkeys
            || 0 != options_number(word, 0, UINT16_MAX, &n)) {
            return -1;
        }
        port->pkey[port->pkeys++] = (uint16_t) n;
    }
    return 0;
}

void sim_port_defaults(struct sim_port *port, bool tcp)
{
    if (0 == port->speed) {
        (void) sim_port_speed(port, "hdr");
    }
    if (0 == port->width) {
        (void) sim_port_width(port, "4");
    }
    if (0 == port->gids || !port->eth) {
        port->gids = 1;
        port->gid[0] = port->eth && tcp ? SIM_GID_IPV4 : SIM_GID_LINK;
    }
    if (0 == port->pkeys) {
        port->pkeys = 1;
        port->pkey[0] = 0xffff;
    }
}

void sim_port_rate(const struct sim_port *port, char *text, size_t size)
{
    unsigned speed = 0, width = 0, rate;

    while (1u << speed != port->speed) {
        speed++;
    }
    while (widths[width].code != port->width) {
        width++;
    }
    rate = speeds[speed].rate * widths[width].lanes;
    snprintf(text, size, "%u%s Gb/sec (%uX %s)", rate / 10, 0 != rate % 10 ? ".5" : "",
             widths[width].lanes, speeds[speed].name);
}
