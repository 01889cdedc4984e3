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
 * The ports of the devices, one each: link, network, GIDs, pkeys; and whole machines by name.
 */

#ifndef SIM_PORT_H
#define SIM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 12
#define SIM_MAX_GIDS    8
#define SIM_MAX_PKEYS   4
#define SIM_MAX_GPUS    16

/** What an entry of a GID table is; _1: of RoCE v1. */
enum sim_gid {
    SIM_GID_ZERO,
    SIM_GID_LINK, /**< link-local */
    SIM_GID_LINK_1,
    SIM_GID_IPV4,
    SIM_GID_IPV4_1,
    SIM_GID_IPV6, /**< global */
    SIM_GID_IPV6_1,
};

struct sim_port {
    bool eth;        /**< RoCE instead of InfiniBand */
    uint8_t speed;   /**< of a lane, as the verbs number it; 0: HDR */
    uint8_t width;   /**< lanes, as the verbs number them; 0: 4x */
    uint16_t fabric; /**< packets to ports of another one are lost */
    uint16_t prefix; /**< lowest bits of the subnet prefix (InfiniBand) */
    uint8_t route;   /**< errno of modify_qp to RTR; 0: there are routes */
    uint8_t gids;
    uint8_t pkeys;
    uint8_t gid[SIM_MAX_GIDS]; /**< enum sim_gid */
    uint16_t pkey[SIM_MAX_PKEYS];
};

/** Where things of a machine are. */
struct sim_place {
    int8_t root; /**< what is below the same PCI switch; -1: below none, on a bus of its own */
    int8_t slot; /**< the device whose second function it is; -1: it is a device */
    int8_t node; /**< NUMA node */
};

/** A machine. */
struct sim_machine {
    const char *name;
    const char *help;
    const char *options; /**< of its ports */
    int gpus;
    struct sim_place gpu[SIM_MAX_GPUS];
    struct sim_place device[SIM_MAX_DEVICES];
};

/** The machine of that name, or NULL. */
const struct sim_machine *sim_machine_find(const char *name);

/** One more of them, for lists: NULL behind the last one. */
const struct sim_machine *sim_machine_at(size_t i);

/**
 * Set a property of all ports: values with '/' between them, of the devices in their order; the
 * last value is that of all further devices.
 *
 * @param[in] set  sets it at one port; returns 0 or -1
 *
 * @return 0, or -1: a bad value
 */
int sim_port_each(struct sim_port *ports, const char *values,
                  int (*set)(struct sim_port *port, const char *value));

int sim_port_link(struct sim_port *port, const char *value);
int sim_port_speed(struct sim_port *port, const char *value);
int sim_port_width(struct sim_port *port, const char *value);
int sim_port_fabric(struct sim_port *port, const char *value);
int sim_port_prefix(struct sim_port *port, const char *value);
int sim_port_route(struct sim_port *port, const char *value);
int sim_port_gids(struct sim_port *port, const char *value);
int sim_port_pkeys(struct sim_port *port, const char *value);

/** Fill in what no option has set. */
void sim_port_defaults(struct sim_port *port, bool tcp);

/** The text of the kernel's file "rate". */
void sim_port_rate(const struct sim_port *port, char *text, size_t size);

#endif /* SIM_PORT_H */
