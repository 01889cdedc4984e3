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
 * Completion queues: writing CQEs where libmlx5 polls them, overruns, and completion events.
 */

#ifndef SIM_CQ_H
#define SIM_CQ_H

#include "sim.h"

struct sim_cq {
    struct sim_obj super;
    uint64_t user_handle;
    uint32_t cqn;
    uint8_t *buffer;
    uint32_t size;       /**< CQEs, a power of 2 */
    uint32_t cqe_bytes;  /**< 64 or 128 */
    volatile __be32 *db; /**< [0] consumer index, [1] arm */
    uint32_t producer;
    bool overrun;
    struct sim_channel *channel;
    uint32_t armed_sn;           /**< serial number of the last event, to detect a new request */
    uint32_t events_written;     /**< put into the channel */
    uint32_t events;             /**< asynchronous ones sent */
    uint32_t producer_solicited; /**< producer after the last solicited or failed completion */
};

/** The content of a CQE. */
struct sim_cqe {
    uint8_t opcode;     /**< MLX5_CQE_* */
    uint8_t syndrome;   /**< MLX5_CQE_SYNDROME_*, of errors */
    uint8_t vendor;     /**< vendor error, of errors */
    uint8_t wqe_opcode; /**< of the send work request */
    uint16_t wqe_counter;
    uint32_t qpn;
    uint32_t uidx; /**< user index of the queue pair */
    uint32_t src_qpn;
    uint32_t bytes;
    __be32 imm;
    bool solicited;
};

/** Write a CQE. @return false if the queue is overrun: the queue pair must fail */
bool sim_cq_write(struct sim_cq *cq, const struct sim_cqe *cqe);

/** Lose all further completions, and report CQ_ERR. */
void sim_cq_fail(struct sim_cq *cq);

/** Send the event that user space has requested, if it is due. */
void sim_cq_events(struct sim_cq *cq);

#endif /* SIM_CQ_H */
