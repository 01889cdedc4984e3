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
 * The wire: frames between the HCAs of two processes.
 *
 * Every process takes a slot, a number that is in its queue pair numbers (qpn == slot << 12 |
 * index), and listens under that number. A process with a request for a queue pair connects to its
 * slot. A connection carries the requests of the process that made it, and the answers to them.
 * Nothing ever blocks: data that the kernel does not accept waits in the connection, and a
 * requester checks first whether there is room.
 *
 * A wire's kind (sim_wire_kind.h) finds slots, and accepts or refuses processes: one
 * for the processes of a host, and TCP. A connection is a stream of frames behind a hello, and
 * other files use no more of it than that.
 */

#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "sim.h"

#define SIM_SLOTS      4096
#define SIM_SLOT_SHIFT 12
#define SIM_OPERANDS                                                            \
    2 /**< of an atomic: the value to swap in or add, the value to compare with \
       */
/** The network of a queue pair that reaches no port: no pkey is 0. */
#define SIM_NETWORK_NONE 0u

#define SIM_CHUNK 65536u /**< payload bytes of a frame, at most; a multiple of SIM_MTU */

/** Kinds of frames. Requests go one way on a connection, answers the other. */
enum sim_frame_type {
    SIM_HELLO = 1,
    SIM_WRITE, /**< request: (part of) an RDMA write */
    SIM_SEND,  /**< request: (part of) a send */
    SIM_READ,  /**< request: an RDMA read */
    SIM_ACK,   /**< answer: all up to psn is done */
    SIM_NAK,   /**< answer: psn failed with syndrome */
    SIM_RNR,   /**< answer: psn found no receive; wait as syndrome says */
    SIM_DROP,  /**< answer: psn was not accepted. Hardware is silent here; the answer avoids timers
                */
    SIM_DATA,  /**< answer: (part of) the data of a read, or the value before an atomic */
    SIM_SWAP,  /**< request: compare and swap; the operands follow, of this machine's byte order */
    SIM_ADD,   /**< request: fetch and add */
};

enum {
    SIM_FIRST = 1, /**< first frame of a message */
    SIM_LAST = 2,  /**< last frame of a message */
    SIM_IMM = 4,   /**< imm is immediate data */
    SIM_SOLICITED = 8,
    SIM_INVALIDATE = 16, /**< imm is a key that the receiver is to invalidate */
};

/** A frame's head; length bytes follow. */
struct sim_frame {
    uint32_t magic;
    uint8_t type;
    uint8_t flags;
    uint8_t syndrome;
    uint8_t reserved;
    uint32_t dst_qpn;
    uint32_t src_qpn;
    uint32_t psn;   /**< of the frame's first packet; of an answer: of its request */
    uint32_t epoch; /**< of the requester, repeated in answers */
    uint32_t length;
    uint32_t msg_length;
    uint32_t offset; /**< of this frame in the message */
    uint32_t rkey;
    uint64_t raddr;
    __be32 imm;
    uint32_t dst_port; /**< LID, or the lower half of the GID, of the destination */
    uint32_t src_port; /**< and of the source */
    uint32_t network;  /**< of a request: the fabric and the pkey; of a hello: the version */
};

_Static_assert(64 == sizeof(struct sim_frame), "frame head");

struct sim_conn;
struct sim_peer;

/** Take a slot and listen, unless done. @return 0 or -1 (logged) */
int sim_wire_open(void);
/** Send waiting data as far as the kernel accepts it, and close everything. */
void sim_wire_close(void);
/** In the child of a fork: close all without a word; the parent goes on using it. */
void sim_wire_forget(void);

uint32_t sim_wire_slot(void);
/** A descriptor that polls readable when there is something to do. */
int sim_wire_fd(void);
/** Read and write as far as possible; calls sim_frame_in(). @return the number of events */
int sim_wire_progress(void);

/**
 * The process that listens, or may, under a slot of a host.
 *
 * @param[in] host  as sim_here_host() says; 0 on a local wire
 *
 * @retval NULL  there cannot be one, or no memory; the functions below treat it as no process
 */
struct sim_peer *sim_wire_peer(uint32_t host, uint32_t slot);

/**
 * The connection to a peer, made if need be.
 *
 * @retval NULL  no process is there now
 */
struct sim_conn *sim_wire_to(struct sim_peer *peer);
/** Counts how often the connection to a peer broke; a change means that answers were lost. */
uint32_t sim_wire_breaks(const struct sim_peer *peer);
/** Returns true if the last of these connections was never established. */
bool sim_wire_absent(const struct sim_peer *peer);

/** Whether a frame with payload should be sent now. */
bool sim_conn_room(const struct sim_conn *conn);
/** Send a frame; payload is copied as far as it has to wait. */
void sim_conn_send(struct sim_conn *conn, struct sim_frame *frame, const void *payload);

/* Called by the wire: sim_engine.c */

/** A frame came. */
void sim_frame_in(struct sim_conn *conn, const struct sim_frame *frame, const void *payload);
/** The connection is gone; forget it. */
void sim_conn_gone(struct sim_conn *conn);

#endif /* SIM_WIRE_H */
