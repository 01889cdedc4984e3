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
 * Events, as user space reads them from a pipe: of completions and of everything else
 * (ibv_get_cq_event, ibv_get_async_event).
 */

#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "sim.h"

/**
 * Send an asynchronous event. It never waits: if no thread reads them, events beyond some thousands
 * are lost.
 *
 * @param[in]     user_handle  what user space calls the object
 * @param[in,out] sent         the object's count of events, goes up
 */
void sim_event_send(struct sim_ctx *ctx, enum ibv_event_type type, uint64_t user_handle,
                    uint32_t *sent);

/**
 * An object is being destroyed: take back its events that user space has not read.
 *
 * @return the number of those that it has, and will acknowledge
 */
uint32_t sim_event_read(struct sim_ctx *ctx, uint64_t user_handle, uint32_t sent);

/** The same for completion events, which are in a channel. */
uint32_t sim_event_read_channel(struct sim_channel *channel, uint64_t user_handle, uint32_t sent);

#endif /* SIM_EVENT_H */
