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
 * The receives of a queue pair, from its own queue or a shared one: taken by the first part of a
 * send, or by immediate data, and given back by a completion.
 */

#ifndef SIM_RECEIVE_H
#define SIM_RECEIVE_H

#include "sim_qp.h"

/** Whether a request that needs a receive has one, taken before or to be taken. */
bool sim_receive_there(struct sim_qp *qp);

/**
 * Take a receive, of those that are there, unless one is taken.
 *
 * @retval false  a shared queue broke down
 */
bool sim_receive_take(struct sim_qp *qp);

/**
 * Put a part of a send where the receive that was taken says.
 *
 * @return MLX5_CQE_SYNDROME_* of the receive, or 0
 */
uint8_t sim_receive_scatter(struct sim_qp *qp, uint32_t offset, uint32_t length,
                            const void *payload);

/** Complete the receive that was taken. */
void sim_receive_complete(struct sim_qp *qp, struct sim_cqe *cqe);

/** Complete it with an error. */
void sim_receive_fail(struct sim_qp *qp, uint8_t syndrome);

#endif /* SIM_RECEIVE_H */
