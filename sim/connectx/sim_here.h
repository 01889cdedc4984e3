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
 * Where the HCA of this host is: its address on a wire of TCP, and the LID or GID that say so to
 * others. Without TCP all processes of a host share one address.
 */

#ifndef SIM_HERE_H
#define SIM_HERE_H

#include "sim_conf.h"

/**
 * Find this host's address, unless the wire is local.
 *
 * @param[in,out] conf   here is set
 * @param[out]    error  the error, at most @p size bytes; unchanged if there is none
 *
 * @retval 0   fine
 * @retval -1  no interface has such an address, or it makes no LID
 */
int sim_here_find(struct sim_conf *conf, char *error, size_t size);

/** The 64 bit GUID of a device's port, host order; on InfiniBand the lower half of its GID. */
uint64_t sim_here_guid(const struct sim_conf *conf, int device);

/** An entry of the GID table of a device's port, 16 bytes in network order. */
void sim_here_gid(const struct sim_conf *conf, int device, int index, uint8_t gid[16]);

/** True if packets with this source can have a route to this destination (RoCE). */
bool sim_here_route(const struct sim_conf *conf, int device, int index, const uint8_t gid[16]);

/** The LID of a device's port; 0 for RoCE. */
uint16_t sim_here_lid(const struct sim_conf *conf, int device);

/**
 * The host that a path leads to.
 *
 * @param[in] gid  of the peer, for RoCE
 * @param[in] lid  of the peer, for InfiniBand
 *
 * @retval 0  to none, or the wire is local
 */
uint32_t sim_here_host(const struct sim_conf *conf, const uint8_t gid[16], uint16_t lid);

#endif /* SIM_HERE_H */
