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
 * The operations of a kind of wire for sim_wire.c: how a slot is taken and found, which processes
 * are accepted, and how a connection is known to be dead whose other side says nothing.
 */

#ifndef SIM_WIRE_KIND_H
#define SIM_WIRE_KIND_H

#include "sim_wire.h"

/** A process on the wire; there for as long as this one. */
struct sim_peer {
    uint32_t host;
    uint32_t slot;
    struct sim_conn *conn; /**< that we made; NULL if there is none */
    uint32_t breaks;
    bool absent;
    struct sim_peer *next;
};

/** How a connection was when it was last looked at. */
struct sim_pulse {
    uint64_t since;     /**< when it was first seen to wait in vain; 0: it does not */
    uint64_t last_data; /**< milliseconds of the system at the last data of the other side */
};

/** One kind of wire. Descriptors do not block, and are closed by an exec. */
struct sim_wire_kind {
    /** Listen under this slot. @return a descriptor, or -1 with errno; EADDRINUSE: it is taken */
    int (*listen)(uint32_t slot);
    /** Begin to connect. @return a descriptor, which may not be connected yet; or -1 with errno */
    int (*connect)(const struct sim_peer *peer);
    /** The part of a hello after its head. @return bytes */
    uint32_t (*hello)(const char **text);
    /** A connection was accepted. */
    void (*accepted)(int fd);
    /** Returns true if the sender of a hello is accepted. */
    bool (*welcome)(int fd, const char *text, uint32_t length);
    /**
     * Whether the other side is there, as far as can be known; called some times a second.
     *
     * @param[in]     connected  false: it is still to come about
     * @param[in,out] pulse      zero at first
     */
    bool (*answers)(int fd, bool connected, struct sim_pulse *pulse);
};

/** Close a descriptor after an error. @return -1; errno is unchanged */
int sim_wire_give_up(int fd);

/** Abstract Unix sockets: they vanish with their process, however it ends. */
extern const struct sim_wire_kind sim_wire_local;
/** TCP, on the address of this host. */
extern const struct sim_wire_kind sim_wire_tcp;

#endif /* SIM_WIRE_KIND_H */
