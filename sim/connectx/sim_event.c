/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_event.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

/* Both kinds of events begin with what user space calls the object. */
_Static_assert(0 == offsetof(struct ib_uverbs_async_event_desc, element), "asynchronous event");
_Static_assert(0 == offsetof(struct ib_uverbs_comp_event_desc, cq_handle), "completion event");

void sim_event_send(struct sim_ctx *ctx, enum ibv_event_type type, uint64_t user_handle,
                    uint32_t *sent)
{
    struct ib_uverbs_async_event_desc event = {.element = user_handle, .event_type = type};

    sim_log(2, "asynchronous event %d", (int) type);
    if (sizeof(event) == write(ctx->async[1], &event, sizeof(event))) {
        (*sent)++;
        sim.count.events++;
    }
}

/* Take the events of an object out of a pipe. @return how many there were */
static uint32_t take_back(const int fd[2], size_t size, uint64_t user_handle)
{
    char event[sizeof(struct ib_uverbs_async_event_desc)];
    uint32_t waiting = 0;
    int bytes = 0;

    if (0 != ioctl(fd[0], FIONREAD, &bytes)) {
        return 0;
    }
    for (; (int) size <= bytes; bytes -= (int) size) {
        uint64_t handle;

        if ((ssize_t) size != read(fd[0], event, size)) {
            break;
        }
        memcpy(&handle, event, sizeof(handle));
        if (handle == user_handle) {
            waiting++;
        } else if ((ssize_t) size != write(fd[1], event, size)) {
            break;
        }
    }
    return waiting;
}

uint32_t sim_event_read(struct sim_ctx *ctx, uint64_t user_handle, uint32_t sent)
{
    return 0 == sent ? 0
                     : sent
                           - take_back(ctx->async, sizeof(struct ib_uverbs_async_event_desc),
                                       user_handle);
}

uint32_t sim_event_read_channel(struct sim_channel *channel, uint64_t user_handle, uint32_t sent)
{
    return 0 == sent || NULL == channel
               ? 0
               : sent
                     - take_back(channel->fd, sizeof(struct ib_uverbs_comp_event_desc),
                                 user_handle);
}
