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
 * Reliable connected queue pairs: the requester half, which fetches send work requests and puts
 * them on the wire, and the responder half, which performs the requests in the frames of the peer.
 */

#ifndef SIM_QP_H
#define SIM_QP_H

#include "sim.h"
#include "sim_cq.h"
#include "sim_key.h"
#include "sim_wire.h"
#include "sim_wqe.h"

/** One send work request between its fetch and its completion. */
struct sim_req {
    struct sim_wqe wqe;
    uint64_t length; /**< of the message */
    uint32_t psn;    /**< of its first packet; valid from the first sending on */
    uint32_t packets;
    uint64_t sent;       /**< bytes put on the wire, or read */
    uint64_t not_before; /**< random delay of its start; 0: not drawn yet */
    uint64_t ready_at;   /**< and of its completion */
    bool begun;
    bool done;        /**< waits for the ones before it to complete */
    uint8_t syndrome; /**< MLX5_CQE_SYNDROME_*; 0: fine */
    uint8_t vendor;
    uint32_t mkey; /**< index of the mkey of a UMR */
};

/** Atomics of a queue pair that can come again: as many as a peer may have in flight. */
#define SIM_ATOMICS 16

/** An atomic that was done: it must not be done again, and its answer may have been lost. */
struct sim_atomic {
    bool valid;
    uint32_t psn;
    uint64_t before; /**< the previous value */
};

struct sim_qp {
    struct sim_obj super;
    struct sim_qp *next; /**< of all queue pairs */
    uint64_t user_handle;
    uint32_t qpn;
    uint32_t uidx;
    struct sim_pd *pd;
    struct sim_cq *send_cq;
    struct sim_cq *recv_cq;
    struct sim_srq *srq; /**< receives are taken from it; NULL: from rq */
    bool signal_all;

    uint8_t *rq;
    uint32_t rq_count;
    uint32_t rq_shift;
    uint8_t *sq;
    uint32_t sq_count;   /**< basic blocks of 64 bytes */
    volatile __be32 *db; /**< [0] receive, [1] send */

    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline;

    /* What modify_qp set. */
    enum ibv_qp_state state;
    unsigned access;
    uint32_t dest_qpn;
    uint32_t dest_port; /**< LID, or the lower half of the GID */
    uint32_t own_port;
    uint32_t network; /**< as in a frame */
    uint8_t traffic_class;
    uint8_t dgid[16];
    uint16_t dlid;
    uint8_t is_global;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t sl;
    uint8_t path_mtu;
    uint8_t port;
    uint16_t pkey_index;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint8_t min_rnr_timer;
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;

    /* Requester. Positions in req count up for ever; modulo sq_count they are indexes. */
    uint8_t *shadow;     /**< the send queue as fetched; NULL: there are no requests */
    struct sim_req *req; /**< likewise */
    uint32_t head;       /**< oldest not completed */
    uint32_t send;       /**< next to put on the wire */
    uint32_t tail;       /**< next to fetch */
    uint16_t sq_fetch;   /**< basic block that the next fetch starts at */
    uint16_t sq_done;    /**< basic block of the oldest not completed */
    uint32_t next_psn;
    uint32_t epoch;
    struct sim_peer *peer; /**< where dest_qpn is, from RTR on */
    uint32_t conn_breaks;  /**< of the connection when the oldest request went out */
    unsigned reads_out;
    uint64_t wait_until; /**< sends nothing before: RNR and retry timers */
    bool waiting;
    uint32_t resume; /**< where to go on after the wait */
    int retries_left;
    int rnr_left;
    bool fetch_stopped; /**< a work request that makes no sense: nothing more is fetched */

    /* Responder. */
    uint32_t expected_psn;
    uint32_t
        executed; /**< packets before it, as far as they can be distinguished from later ones */
    struct sim_atomic atomics[SIM_ATOMICS]; /**< the last ones */
    unsigned atomics_at;                    /**< where the next is noted */
    uint16_t rq_next;                       /**< next receive to use */
    bool rq_held;                           /**< one is taken, and not completed */
    uint16_t rq_index;                      /**< which */
    bool last_reported; /**< that no more of the shared receives will be taken */

    uint32_t events; /**< asynchronous events sent */
};

/** All queue pairs of the process. */
extern struct sim_qp *sim_qps;

struct sim_qp *sim_qp_find(uint32_t qpn);
/** Add one whose number is free; remove one. */
void sim_qp_add(struct sim_qp *qp);
void sim_qp_remove(struct sim_qp *qp);

/** Another one is first next time, so that the first cannot keep a connection to itself. */
void sim_qp_take_turns(void);

/** Fetch, send and complete all that is possible. @return whether anything was done */
bool sim_qp_request(struct sim_qp *qp);
/** When the requester has to be called again at the latest; UINT64_MAX: not by time. */
uint64_t sim_qp_wakeup(const struct sim_qp *qp);
/** An answer came. */
void sim_qp_answer(struct sim_qp *qp, const struct sim_frame *frame, const void *payload);

/** A request came. */
void sim_qp_respond(struct sim_conn *conn, const struct sim_frame *frame, const void *payload);
/** Answer RDMA reads as far as there is room. @return whether anything was done */
bool sim_qp_serve_reads(void);
/**
 * Drop pending answers of a connection, or of a queue pair.
 *
 * @param[in] all  false: requests before a refused one are still answered
 */
void sim_qp_forget_reads(const struct sim_conn *conn, uint32_t qpn, bool all);

/** To the error state for a reason that is no completion's: with an event. */
void sim_qp_fatal(struct sim_qp *qp);
/** To the error state: everything that is posted, and will be, is flushed. */
void sim_qp_error(struct sim_qp *qp);
/**
 * In the error state: complete the receives that are posted, with a flush error. Those of a shared
 * queue are left there, and an event reports when none is held any more. In sim_receive.c.
 *
 * @return whether there were any
 */
bool sim_qp_flush_receives(struct sim_qp *qp);
/** Drop everything that is in flight: reset or destroy. */
void sim_qp_reset(struct sim_qp *qp);

/** Packets of the path's MTU that so many bytes of a message take. */
uint32_t sim_qp_packets(const struct sim_qp *qp, uint32_t bytes);

#endif /* SIM_QP_H */
