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
 * For the tests of the software ConnectX: one end of a connection, and checks that no NDEBUG
 * empties. A check that fails says where and ends the process with status 1; every wait has an end.
 */

#ifndef VERBS_END_H
#define VERBS_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/** Fail the process unless it holds. */
#define CHECK(what)                                                                          \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, end_case, #what); \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/** The case that runs, for messages. */
extern const char *end_case;

/** Milliseconds after which something that must come does not come any more, on a slow and busy
 * machine. */
#define END_LONG_MS 120000

/** Seconds after which a process that hangs is ended. */
#define END_HANG_SECONDS 280

/** The data for the other side. */
struct end_name {
    uint32_t qpn;
    uint32_t psn;
    uint16_t lid;
    union ibv_gid gid;
};

/** Device, protection domain, completion queue and queue pair. */
struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /**< of cq; NULL: none */
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_qp_ex *qpx;
    struct mlx5dv_qp_ex *mqp;
    struct end_name name;
    uint32_t max_inline;
};

/** Settings of a test; zero is the default. */
struct end_options {
    int device;          /**< index in the list */
    uint32_t max_inline; /**< requested from the queue pair (default 828) */
    uint32_t send_wr;    /**< (default 32) */
    uint32_t recv_wr;    /**< (default 32) */
    int cqes;            /**< (default 256) */
    uint8_t timeout;     /**< of the transport (default 8: a millisecond) */
    uint8_t rnr_retry;   /**< counted; (default 2) */
    uint8_t dest_reads;  /**< reads at once that it answers (default 4) */
    unsigned access;     /**< of the queue pair (default all remote rights) */
    struct end *share;   /**< context and protection domain of this one */
    bool channel;        /**< with completion events */
    struct ibv_srq *srq; /**< receives are taken from it */
};

/**
 * Run the test program below the software HCA with these options; comes back in the process that
 * does. To be called first in main.
 */
void end_start(char **argv, const char *options);

void end_open(struct end *end, const struct end_options *options);
/** Connect to a peer: INIT, RTR, RTS. */
void end_connect(struct end *end, const struct end_name *peer, const struct end_options *options);
void end_to_init(struct end *end, const struct end_options *options);
void end_to_rtr(struct end *end, const struct end_name *peer, const struct end_options *options);
void end_to_rts(struct end *end, const struct end_options *options);
void end_close(struct end *end);

/** Wait for one completion. @return false if there was none within ms */
bool end_poll(struct end *end, struct ibv_wc *wc, int ms);
/** Wait for a completion and compare its status. */
void end_expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status);

/** Wait for an asynchronous event of this type and acknowledge it. @return its object */
void *end_event(struct end *end, enum ibv_event_type type);
/** Whether an event comes within ms. */
bool end_has_event(struct end *end, int ms);

/** Register. */
struct ibv_mr *end_reg(struct end *end, void *addr, size_t length);
/** A new mkey. */
struct mlx5dv_mkey *end_mkey(struct end *end, uint16_t entries);

/** Post a UMR; waits for its completion if wait. */
void end_umr_list(struct end *end, struct mlx5dv_mkey *mkey, unsigned access, uint16_t count,
                  struct ibv_sge *sge, bool wait);
void end_umr_interleaved(struct end *end, struct mlx5dv_mkey *mkey, unsigned access,
                         uint32_t repeat, uint16_t count, struct mlx5dv_mr_interleaved *data,
                         bool wait);

/** Post an RDMA write; with imm unless it is 0. */
void end_write(struct end *end, uint64_t wr_id, uint32_t lkey, uint64_t addr, uint32_t length,
               uint32_t rkey, uint64_t raddr, uint32_t imm);
/** Post a receive. */
void end_recv(struct end *end, uint64_t wr_id, uint32_t lkey, void *addr, uint32_t length);

/**
 * Run a function in a child process, connected by a socket.
 *
 * @return the socket
 */
int end_fork(int (*child)(int fd), int *pid);
/** The child must have ended with 0. */
void end_wait(int pid);
void end_report(int fd, const void *data, size_t length);
void end_pipe_read(int fd, void *data, size_t length);

#endif /* VERBS_END_H */
