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

struct sim_qp *sim_qps;

struct sim_qp *sim_qp_find(uint32_t qpn)
{
    struct sim_qp *qp;

    for (qp = sim_qps; NULL != qp && qp->qpn != qpn; qp = qp->next) {
        continue;
    }
    return qp;
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
