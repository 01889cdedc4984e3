/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <errno.h>
#include <time.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "sim_here.h"
#include "sim_event.h"
#include "sim_qp.h"
#include "sim_srq.h"

#define INDEX_MASK ((1u << SIM_SLOT_SHIFT) - 1)

/* A free number in this process's slot. */
static uint32_t new_qpn(void)
{
    static uint32_t last;
    uint32_t n;

    for (n = 0; n < INDEX_MASK; n++) {
        uint32_t qpn;

        last = last % INDEX_MASK + 1;
        qpn = sim_wire_slot() << SIM_SLOT_SHIFT | last;
        if (NULL == sim_qp_find(qpn)) {
            return qpn;
        }
    }
    return 0;
}

/* Whether there may be one more. */
static bool one_more(void)
{
    const struct sim_qp *qp;
    uint64_t count = 0;

    for (qp = sim_qps; NULL != qp; qp = qp->next) {
        count++;
    }
    return 0 == sim.conf.qps || count < sim.conf.qps;
}

static int check_create(const struct ib_uverbs_create_qp *request,
                        const struct mlx5_ib_create_qp *driver)
{
    if (IBV_QPT_RC != request->qp_type) {
        return EOPNOTSUPP;
    }
    if (0 == driver->db_addr || (0 == driver->buf_addr && 0 < driver->sq_wqe_count)
        || 0 != (driver->sq_wqe_count & (driver->sq_wqe_count - 1))
        || 0 != (driver->rq_wqe_count & (driver->rq_wqe_count - 1))
        || driver->sq_wqe_count > sim.conf.max_wr || driver->rq_wqe_count > sim.conf.max_wr
        || request->max_send_sge > sim.conf.max_sge || request->max_recv_sge > sim.conf.max_sge
        || 9 < driver->rq_wqe_shift || (request->is_srq && 0 < driver->rq_wqe_count)) {
        return EINVAL;
    }
    return 0;
}

static int create(struct sim_ctx *ctx, const struct sim_call *call,
                  const struct ib_uverbs_create_qp *request, struct ib_uverbs_create_qp_resp *resp)
{
    struct mlx5_ib_create_qp driver;
    struct mlx5_ib_create_qp_resp driver_resp = {0};
    struct sim_pd *pd = sim_obj_get(ctx, SIM_PD, request->pd_handle);
    struct sim_cq *send_cq = sim_obj_get(ctx, SIM_CQ, request->send_cq_handle);
    struct sim_cq *recv_cq = sim_obj_get(ctx, SIM_CQ, request->recv_cq_handle);
    struct sim_srq *srq = request->is_srq ? sim_obj_get(ctx, SIM_SRQ, request->srq_handle) : NULL;
    struct sim_qp *qp;
    int rc;

    sim_copy(&driver, sizeof(driver), call->driver_in, call->driver_in_size);
    if (NULL == pd || NULL == send_cq || NULL == recv_cq || (request->is_srq && NULL == srq)) {
        return EINVAL;
    }
    rc = check_create(request, &driver);
    if (0 != rc) {
        return rc;
    }
    if (!one_more()) {
        return ENOMEM;
    }
    qp = sim_obj_new(ctx, SIM_QP, sizeof(*qp));
    if (NULL == qp) {
        return ENOMEM;
    }
    qp->qpn = new_qpn();
    if (0 == qp->qpn) {
        sim_obj_free(qp);
        return ENOMEM;
    }
    qp->user_handle = request->user_handle;
    qp->uidx = driver.uidx;
    qp->pd = pd;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    pd->super.uses++;
    send_cq->super.uses++;
    recv_cq->super.uses++;
    qp->srq = srq;
    if (NULL != srq) {
        srq->super.uses++;
    }
    qp->signal_all = 0 != request->sq_sig_all;
    qp->rq = (uint8_t *) (uintptr_t) driver.buf_addr;
    qp->rq_count = driver.rq_wqe_count;
    qp->rq_shift = driver.rq_wqe_shift;
    qp->sq = qp->rq + ((size_t) qp->rq_count << qp->rq_shift);
    qp->sq_count = driver.sq_wqe_count;
    qp->db = (volatile __be32 *) (uintptr_t) driver.db_addr;
    qp->max_send_wr = request->max_send_wr;
    qp->max_recv_wr = request->max_recv_wr;
    qp->max_send_sge = request->max_send_sge;
    qp->max_recv_sge = request->max_recv_sge;
    qp->max_inline = request->max_inline_data;
    qp->state = IBV_QPS_RESET;
    sim_qp_add(qp);

    resp->qp_handle = qp->super.handle;
    resp->qpn = qp->qpn;
    resp->max_send_wr = qp->max_send_wr;
    resp->max_recv_wr = qp->max_recv_wr;
    resp->max_send_sge = qp->max_send_sge;
    resp->max_recv_sge = qp->max_recv_sge;
    resp->max_inline_data = qp->max_inline;
    driver_resp.bfreg_index = driver.bfreg_index;
    sim_copy(call->driver_out, call->driver_out_size, &driver_resp, sizeof(driver_resp));
    sim_log(2, "QP 0x%x", qp->qpn);
    return 0;
}

int sim_cmd_create_qp(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_create_qp request;
    struct ib_uverbs_create_qp_resp resp = {0};
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    rc = create(ctx, call, &request, &resp);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return rc;
}

int sim_cmd_create_qp_ex(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_ex_create_qp request;
    struct ib_uverbs_create_qp core = {0};
    struct ib_uverbs_ex_create_qp_resp resp = {0};
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    if (0 != request.comp_mask || 0 != request.create_flags) {
        return EOPNOTSUPP;
    }
    core.user_handle = request.user_handle;
    core.pd_handle = request.pd_handle;
    core.send_cq_handle = request.send_cq_handle;
    core.recv_cq_handle = request.recv_cq_handle;
    core.max_send_wr = request.max_send_wr;
    core.max_recv_wr = request.max_recv_wr;
    core.max_send_sge = request.max_send_sge;
    core.max_recv_sge = request.max_recv_sge;
    core.max_inline_data = request.max_inline_data;
    core.sq_sig_all = request.sq_sig_all;
    core.qp_type = request.qp_type;
    core.is_srq = request.is_srq;
    core.srq_handle = request.srq_handle;
    rc = create(ctx, call, &core, &resp.base);
    resp.response_length = sizeof(resp);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return rc;
}

/* Attributes that a step of a reliable connection needs, and those it may bring. */
static const struct {
    enum ibv_qp_state from;
    enum ibv_qp_state to;
    unsigned required;
    unsigned optional;
} steps[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
         | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

static int check_step(const struct sim_qp *qp, enum ibv_qp_state to, unsigned mask)
{
    size_t i;

    if (IBV_QPS_RESET == to || IBV_QPS_ERR == to) {
        return 0 == (mask & ~(unsigned) (IBV_QP_STATE | IBV_QP_CUR_STATE)) ? 0 : EINVAL;
    }
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i].from == qp->state && steps[i].to == to) {
            mask &= ~(unsigned) IBV_QP_STATE;
            return (mask & steps[i].required) == steps[i].required
                           && 0 == (mask & ~(steps[i].required | steps[i].optional))
                       ? 0
                       : EINVAL;
        }
    }
    return EINVAL;
}

static int check_values(const struct sim_port *port, const struct ib_uverbs_modify_qp *r)
{
    if (((r->attr_mask & IBV_QP_PORT) && 1 != r->port_num)
        || ((r->attr_mask & IBV_QP_PKEY_INDEX) && port->pkeys <= r->pkey_index)
        || ((r->attr_mask & IBV_QP_PATH_MTU)
            && (r->path_mtu < IBV_MTU_256 || r->path_mtu > IBV_MTU_4096))
        || ((r->attr_mask & IBV_QP_TIMEOUT) && 31 < r->timeout)
        || ((r->attr_mask & IBV_QP_RETRY_CNT) && 7 < r->retry_cnt)
        || ((r->attr_mask & IBV_QP_RNR_RETRY) && 7 < r->rnr_retry)
        || ((r->attr_mask & IBV_QP_MIN_RNR_TIMER) && 31 < r->min_rnr_timer)
        || ((r->attr_mask & IBV_QP_MAX_QP_RD_ATOMIC) && 16 < r->max_rd_atomic)
        || ((r->attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) && 16 < r->max_dest_rd_atomic)) {
        return EINVAL;
    }
    if (r->attr_mask & IBV_QP_AV) {
        if (r->dest.is_global
            && (port->gids <= r->dest.sgid_index
                || SIM_GID_ZERO == port->gid[r->dest.sgid_index])) {
            return EINVAL;
        }
        /* RoCE uses GIDs only, InfiniBand within a subnet LIDs. */
        if (port->eth ? !r->dest.is_global : 0 == r->dest.dlid) {
            return EINVAL;
        }
    }
    return 0;
}

/* The half of a GID that tells the ports of a host apart. */
static uint32_t lower_half(const uint8_t gid[16])
{
    return (uint32_t) gid[12] << 24 | (uint32_t) gid[13] << 16 | (uint32_t) gid[14] << 8 | gid[15];
}

/*
 * The kernel's search for a route to an address (RoCE). Others may use the device while it waits.
 *
 * @return 0 or errno
 */
static int find_route(int device, const struct ib_uverbs_modify_qp *r)
{
    const struct sim_port *port = &sim.conf.ports[device];
    struct timespec time = {sim.conf.route_ms / 1000, sim.conf.route_ms % 1000 * 1000000l};
    const struct fault *fault;
    int rc = port->route;

    if (0 == (r->attr_mask & IBV_QP_AV)) {
        return 0;
    }
    fault = sim_fault(FAULT_route);
    if (NULL != fault) {
        rc = 0 == fault->how ? ETIMEDOUT : (int) fault->how;
    }
    if (0 == rc && port->eth
        && !sim_here_route(&sim.conf, device, r->dest.sgid_index, r->dest.dgid)) {
        rc = ETIMEDOUT;
    }
    if (ETIMEDOUT == rc) {
        pthread_mutex_unlock(&sim.lock);
        (void) nanosleep(&time, NULL);
        pthread_mutex_lock(&sim.lock);
    }
    return rc;
}

static void set_values(struct sim_qp *qp, const struct ib_uverbs_modify_qp *r)
{
    const int device = qp->super.ctx->device;
    const struct sim_port *port = &sim.conf.ports[device];
    const unsigned mask = r->attr_mask;

    if (mask & IBV_QP_ACCESS_FLAGS) {
        qp->access = r->qp_access_flags;
    }
    if (mask & IBV_QP_PKEY_INDEX) {
        qp->pkey_index = r->pkey_index;
    }
    if (mask & IBV_QP_PKEY_INDEX) {
        qp->network = (uint32_t) port->fabric << 16 | port->pkey[qp->pkey_index];
    }
    if (mask & IBV_QP_PORT) {
        qp->port = r->port_num;
    }
    if (mask & IBV_QP_AV) {
        memcpy(qp->dgid, r->dest.dgid, sizeof(qp->dgid));
        qp->dlid = r->dest.dlid;
        qp->is_global = r->dest.is_global;
        qp->sgid_index = r->dest.sgid_index;
        qp->hop_limit = r->dest.hop_limit;
        qp->sl = r->dest.sl;
        qp->traffic_class = r->dest.traffic_class;
        if (port->eth) {
            uint8_t own[16];

            sim_here_gid(&sim.conf, device, qp->sgid_index, own);
            qp->own_port = lower_half(own);
            qp->dest_port = lower_half(qp->dgid);
        } else {
            qp->own_port = sim_here_lid(&sim.conf, device);
            qp->dest_port = qp->dlid;
        }
    }
    if (mask & IBV_QP_PATH_MTU) {
        qp->path_mtu = r->path_mtu;
    }
    if (mask & IBV_QP_DEST_QPN) {
        qp->dest_qpn = r->dest_qp_num & 0xffffff;
    }
    if (mask & IBV_QP_DEST_QPN) {
        /* The path comes with it; see steps[]. */
        qp->peer = sim_wire_peer(sim_here_host(&sim.conf, qp->dgid, qp->dlid),
                                 qp->dest_qpn >> SIM_SLOT_SHIFT);
        qp->conn_breaks = sim_wire_breaks(qp->peer);
    }
    if (mask & IBV_QP_RQ_PSN) {
        qp->rq_psn = r->rq_psn & 0xffffff;
        qp->expected_psn = qp->rq_psn;
        qp->executed = 0;
    }
    if (mask & IBV_QP_SQ_PSN) {
        qp->sq_psn = r->sq_psn & 0xffffff;
        qp->next_psn = qp->sq_psn;
    }
    if (mask & IBV_QP_MIN_RNR_TIMER) {
        qp->min_rnr_timer = r->min_rnr_timer;
    }
    if (mask & IBV_QP_TIMEOUT) {
        qp->timeout = r->timeout;
    }
    if (mask & IBV_QP_RETRY_CNT) {
        qp->retry_cnt = r->retry_cnt;
        qp->retries_left = r->retry_cnt;
    }
    if (mask & IBV_QP_RNR_RETRY) {
        qp->rnr_retry = r->rnr_retry;
        qp->rnr_left = r->rnr_retry;
    }
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
        qp->max_rd_atomic = r->max_rd_atomic;
    }
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
        qp->max_dest_rd_atomic = r->max_dest_rd_atomic;
    }
}

int sim_cmd_modify_qp(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_modify_qp request;
    enum ibv_qp_state to;
    struct sim_qp *qp;
    int rc;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    qp = sim_obj_get(ctx, SIM_QP, request.qp_handle);
    if (NULL == qp) {
        return EINVAL;
    }
    to = (request.attr_mask & IBV_QP_STATE) ? (enum ibv_qp_state) request.qp_state : qp->state;
    if ((request.attr_mask & IBV_QP_CUR_STATE)
        && (enum ibv_qp_state) request.cur_qp_state != qp->state) {
        return EINVAL;
    }
    rc = check_step(qp, to, request.attr_mask);
    if (0 == rc) {
        rc = check_values(&sim.conf.ports[ctx->device], &request);
    }
    if (0 != rc) {
        sim_log(1, "QP 0x%x: state %d to %d with mask 0x%x refused", qp->qpn, (int) qp->state,
                (int) to, request.attr_mask);
        return rc;
    }
    rc = find_route(ctx->device, &request);
    if (0 != rc) {
        return rc;
    }
    set_values(qp, &request);
    if (IBV_QPS_ERR == to) {
        sim_qp_error(qp);
    } else {
        if (IBV_QPS_RESET == to) {
            sim_qp_reset(qp);
        }
        qp->state = to;
    }
    return 0;
}

int sim_cmd_query_qp(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_query_qp request;
    struct ib_uverbs_query_qp_resp resp = {0};
    struct sim_qp *qp;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    qp = sim_obj_get(ctx, SIM_QP, request.qp_handle);
    if (NULL == qp) {
        return EINVAL;
    }
    memcpy(resp.dest.dgid, qp->dgid, sizeof(qp->dgid));
    resp.dest.dlid = qp->dlid;
    resp.dest.is_global = qp->is_global;
    resp.dest.sgid_index = qp->sgid_index;
    resp.dest.hop_limit = qp->hop_limit;
    resp.dest.sl = qp->sl;
    resp.dest.traffic_class = qp->traffic_class;
    resp.dest.port_num = qp->port;
    resp.max_send_wr = qp->max_send_wr;
    resp.max_recv_wr = qp->max_recv_wr;
    resp.max_send_sge = qp->max_send_sge;
    resp.max_recv_sge = qp->max_recv_sge;
    resp.max_inline_data = qp->max_inline;
    resp.rq_psn = qp->expected_psn;
    resp.sq_psn = qp->next_psn;
    resp.dest_qp_num = qp->dest_qpn;
    resp.qp_access_flags = qp->access;
    resp.pkey_index = qp->pkey_index;
    resp.qp_state = (uint8_t) qp->state;
    resp.cur_qp_state = (uint8_t) qp->state;
    resp.path_mtu = qp->path_mtu;
    resp.max_rd_atomic = qp->max_rd_atomic;
    resp.max_dest_rd_atomic = qp->max_dest_rd_atomic;
    resp.min_rnr_timer = qp->min_rnr_timer;
    resp.port_num = qp->port;
    resp.timeout = qp->timeout;
    resp.retry_cnt = qp->retry_cnt;
    resp.rnr_retry = qp->rnr_retry;
    resp.sq_sig_all = qp->signal_all;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

void sim_qp_destroy(struct sim_obj *obj)
{
    struct sim_qp *qp = (struct sim_qp *) obj;

    sim_qp_remove(qp);
    sim_qp_reset(qp);
    qp->pd->super.uses--;
    qp->send_cq->super.uses--;
    qp->recv_cq->super.uses--;
    if (NULL != qp->srq) {
        qp->srq->super.uses--;
    }
    sim_obj_free(qp);
}

int sim_cmd_destroy_qp(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_destroy_qp request;
    struct ib_uverbs_destroy_qp_resp resp = {0};
    struct sim_qp *qp;

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    qp = sim_obj_get(ctx, SIM_QP, request.qp_handle);
    if (NULL == qp) {
        return EINVAL;
    }
    resp.events_reported = sim_event_read(ctx, qp->user_handle, qp->events);
    sim_cmd_destroy(&qp->super);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}
