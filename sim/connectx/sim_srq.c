/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_srq.h"

#include <endian.h>
#include <string.h>

#include "sim_event.h"

static void break_down(struct sim_srq *srq, const char *why)
{
    sim_log(1, "SRQ 0x%x: %s", srq->srqn, why);
    srq->broken = true;
    sim_event_send(srq->super.ctx, IBV_EVENT_SRQ_ERR, srq->user_handle, &srq->events);
}

uint32_t sim_srq_posted(struct sim_srq *srq)
{
    uint16_t posted = (uint16_t) (be32toh(*srq->db) - srq->taken);

    atomic_thread_fence(memory_order_acquire);
    if (!srq->broken && posted > srq->count) {
        break_down(srq, "more receives are posted than it has room for");
    }
    return srq->broken ? 0 : posted;
}

int sim_srq_take(struct sim_srq *srq)
{
    struct mlx5_wqe_srq_next_seg next;
    uint16_t index = srq->head;

    memcpy(&next, srq->buffer + ((size_t) index << srq->shift), sizeof(next));
    if (be16toh(next.next_wqe_index) >= srq->count) {
        break_down(srq, "a receive names one after it that is not there");
        return -1;
    }
    srq->head = be16toh(next.next_wqe_index);
    srq->taken++;
    sim_srq_arm(srq, srq->limit);
    return index;
}

const uint8_t *sim_srq_segments(const struct sim_srq *srq, uint32_t index, uint32_t *entries)
{
    *entries = ((1u << srq->shift) - (uint32_t) sizeof(struct mlx5_wqe_srq_next_seg)) / 16;
    return srq->buffer + ((size_t) index << srq->shift) + sizeof(struct mlx5_wqe_srq_next_seg);
}

void sim_srq_arm(struct sim_srq *srq, uint32_t limit)
{
    srq->limit = limit;
    if (0 < limit && sim_srq_posted(srq) < limit) {
        /* Once; another event needs another request. */
        srq->limit = 0;
        sim_event_send(srq->super.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user_handle, &srq->events);
    }
}
