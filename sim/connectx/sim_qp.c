/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_qp.h"

#include <string.h>

#include "sim_event.h"
#include "sim_here.h"
#include "sim_req.h"

struct sim_qp *sim_qps;

/* By the part of their numbers that is this process's: each frame is for one of many. */
static struct sim_qp *by_index[1u << SIM_SLOT_SHIFT];

static struct sim_qp **place_of(uint32_t qpn)
{
    return &by_index[qpn & ((1u << SIM_SLOT_SHIFT) - 1)];
}

struct sim_qp *sim_qp_find(uint32_t qpn)
{
    struct sim_qp *qp = *place_of(qpn);

    return NULL != qp && qp->qpn == qpn ? qp : NULL;
}

void sim_qp_add(struct sim_qp *qp)
{
    qp->next = sim_qps;
    sim_qps = qp;
    *place_of(qp->qpn) = qp;
}

void sim_qp_remove(struct sim_qp *qp)
{
    struct sim_qp **at = &sim_qps;

    while (*at != qp) {
        at = &(*at)->next;
    }
    *at = qp->next;
    *place_of(qp->qpn) = NULL;
}

void sim_qp_take_turns(void)
{
    struct sim_qp *first = sim_qps;
    struct sim_qp **at;

    if (NULL == first || NULL == first->next) {
        return;
    }
    for (at = &first->next; NULL != *at; at = &(*at)->next) {
        continue;
    }
    *at = first;
    sim_qps = first->next;
    first->next = NULL;
}

uint32_t sim_qp_packets(const struct sim_qp *qp, uint32_t bytes)
{
    uint32_t mtu = 128u << qp->path_mtu;

    return 0 == bytes ? 1 : (bytes + mtu - 1) / mtu;
}

void sim_qp_error(struct sim_qp *qp)
{
    if (IBV_QPS_ERR == qp->state) {
        return;
    }
    sim_log(2, "QP 0x%x is in error", qp->qpn);
    qp->state = IBV_QPS_ERR;
    qp->waiting = false;
    sim_key_forget(qp->qpn);
    sim_qp_forget_reads(NULL, qp->qpn, false);
}

void sim_qp_fatal(struct sim_qp *qp)
{
    if (IBV_QPS_ERR != qp->state) {
        sim_event_send(qp->super.ctx, IBV_EVENT_QP_FATAL, qp->user_handle, &qp->events);
    }
    sim_qp_error(qp);
}

void sim_qp_reset(struct sim_qp *qp)
{
    sim_key_forget(qp->qpn);
    sim_qp_forget_reads(NULL, qp->qpn, true);
    sim_req_rings_give(qp);
    qp->head = 0;
    qp->send = 0;
    qp->tail = 0;
    qp->sq_fetch = 0;
    qp->sq_done = 0;
    qp->reads_out = 0;
    qp->waiting = false;
    qp->fetch_stopped = false;
    qp->executed = 0;
    memset(qp->atomics, 0, sizeof(qp->atomics));
    qp->rq_next = 0;
    qp->rq_held = false;
    qp->last_reported = false;
    qp->epoch++;
}
